"""Dates and times as people of many places write them."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from random import Random

from tests.truth import words
from tests.truth.cases import AnyOf, Case, Sheet, Shown, family
from tests.truth.families.numbers import member, texts_case
from tests.truth.families.rows import written
from tests.truth.tables import Column, Content, content, place, some_date, some_moment, tell
from tests.truth.writers import with_openpyxl, with_raw_xml


def slashed(day: date, *, day_first: bool, sign: str, padded: bool = True, short: bool = False) -> str:
    a, b = (day.day, day.month) if day_first else (day.month, day.day)
    year = f"{day.year % 100:02}" if short else str(day.year)
    return f"{a:02}{sign}{b:02}{sign}{year}" if padded else f"{a}{sign}{b}{sign}{year}"


def early(rng: Random, _n: int = 0) -> date:
    """A date that reads both ways."""
    month = rng.randrange(1, 13)
    return date(rng.randrange(1990, 2030), month, rng.choice([d for d in range(1, 13) if d != month]))


@family("dates_slashed", plain=True)
def dates_slashed(rng: Random) -> Case:
    """Day first or month first, with a day above twelve to show it."""
    first, sign, padded = rng.random() < 0.5, rng.choice("//-."), rng.random() < 0.7
    if sign == ".":
        first = True
    column = Column("due", "date", some_date, lambda v: slashed(v, day_first=first, sign=sign, padded=padded))
    made = content(rng, [member(rng), column], rng.choice((4, 10, 40, 150)))
    made.values[rng.randrange(len(made.values))][1] = date(2024, 5, 23)
    return texts_case(rng, [], 0, made)


@family("dates_iso_and_kin", plain=True)
def dates_iso(rng: Random) -> Case:
    form = rng.choice(
        (
            "%Y-%m-%d",
            "%Y/%m/%d",
            "%Y%m%d",
            "%Y.%m.%d",
            "%Y-%m-%dT00:00:00",
            "%d-%b-%Y",
            "%d %b %Y",
            "%B %d, %Y",
            "%d-%B-%Y",
            "%a, %d %b %Y",
        )
    )
    column = Column("due", "date", some_date, lambda v: v.strftime(form))
    case = texts_case(rng, [member(rng), column], rng.choice((2, 4, 10, 40)))
    case.note += f" {form}"
    return case


@family("dates_month_names")
def dates_month_names(rng: Random) -> Case:
    """Month names of ten languages, whole."""
    language = rng.choice([*words.MONTHS, "ja", "zh"])
    months = words.MONTHS.get(language, "").split()
    shapes = {
        "de": ("{d}. {m} {y}", "{d:02}. {m} {y}"), "es": ("{d} de {m} de {y}", "{d} {m} {y}"), "pt": ("{d} de {m} de {y}",),
        "en": ("{d} {m} {y}", "{m} {d}, {y}"), "ja": ("{y}年{n}月{d}日",), "zh": ("{y}年{n}月{d}日",),
    }  # fmt: skip
    shape = rng.choice(shapes.get(language, ("{d} {m} {y}",)))
    column = Column(
        "due",
        "date",
        some_date,
        lambda v: shape.format(d=v.day, m=months[v.month - 1] if months else "", n=v.month, y=v.year),
    )
    case = texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))
    case.note += f" {language}"
    return case


@family("dates_two_digit_years")
def dates_two_digit_years(rng: Random) -> Case:
    first, sign = rng.random() < 0.6, rng.choice("/.-")
    first = first or sign == "."
    column = Column(
        "due", "date", lambda r, n: date(1975, 1, 1) + timedelta(days=r.randrange(19_000)),
        lambda v: slashed(v, day_first=first, sign=sign, short=True),
    )  # fmt: skip
    made = content(rng, [member(rng), column], rng.choice((4, 12, 40)))
    made.values[0][1] = date(2024, 5, 23)
    return texts_case(rng, [], 0, made)


@family("dates_ambiguous", mostly_right=False)
def dates_ambiguous(rng: Random) -> Case:
    """No day above twelve: one order, and a finding."""
    first = rng.random() < 0.5
    column = Column("due", "date", early, lambda v: slashed(v, day_first=first, sign=rng.choice("//-")))
    sign = rng.choice("/-")
    column.text = lambda v: slashed(v, day_first=first, sign=sign)
    case = texts_case(rng, [member(rng), column], rng.choice((2, 3, 10, 40, 300)))
    case.tells = [tell("date_order_assumed", field="due")]
    return case


@family("dates_proved_late")
def dates_proved_late(rng: Random) -> Case:
    """Hundreds of dates that read both ways, a proof only at the end, and blanks before it."""
    first = rng.random() < 0.5
    rows = rng.choice((60, 250, 500, 1200))
    column = Column("due", "date", early, lambda v: slashed(v, day_first=first, sign="/"))
    made = content(rng, [member(rng), column], rows)
    for _ in range(rng.choice((1, 1, 4))):
        made.values[rng.randrange(rows - rows // 8, rows)][1] = date(2024, rng.randrange(1, 12), rng.randrange(13, 29))
    if rng.random() < 0.4:
        for row in made.values[: rows // 2]:
            row[1] = None
    return texts_case(rng, [], 0, made)


@family("dates_mixed_orders", mostly_right=False)
def dates_mixed(rng: Random) -> Case:
    """Both orders in one column, each proved by a day above twelve: the rest could be either, and that is said."""
    made = content(rng, [member(rng), Column("due", "date", early)], rng.choice((6, 20, 60)))
    order = [rng.random() < 0.5 for _ in made.values]
    made.values[0][1], order[0] = date(2025, 12, 31), True
    made.values[1][1], order[1] = date(2025, 12, 13), False
    counter = iter(order)
    made.columns[1].text = lambda v: slashed(v, day_first=next(counter), sign="/")
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("date_order_assumed", "date_order_mixed", field="due")]
    return case


@family("date_times", plain=True)
def date_times(rng: Random) -> Case:
    form = rng.choice(
        (
            "%Y-%m-%d %H:%M:%S",
            "%Y-%m-%dT%H:%M:%S",
            "%d.%m.%Y %H:%M:%S",
            "%m/%d/%Y %I:%M:%S %p",
            "%d/%m/%Y %H:%M:%S",
            "%d %b %Y %H:%M:%S",
        )
    )
    column = Column("seen", "datetime", some_moment, lambda v: v.strftime(form))
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    made.values[0][1] = datetime(2024, 5, 23, 17, 8, 9)
    case = texts_case(rng, [], 0, made)
    case.note += f" {form}"
    return case


@family("zones", plain=True)
def zones(rng: Random) -> Case:
    """Moments with a zone come out in UTC."""
    zone = timezone(timedelta(minutes=rng.choice((0, 60, 120, 330, -300, -570))))
    column = Column(
        "seen", "datetime", some_moment, lambda v: v.replace(tzinfo=UTC).astimezone(zone).isoformat(),
    )  # fmt: skip
    return texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))


@family("times_in_a_date_field", mostly_right=False)
def times_in_a_date_field(rng: Random) -> Case:
    """A date field has no room for the time of day: what is lost is said."""
    column = Column("due", "date", some_moment, lambda v: v.isoformat(rng.choice(" T")))
    column.text = lambda v: v.isoformat(" ")
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    if rng.random() < 0.5:
        return texts_case(rng, [], 0, made)
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False, writers="openpyxl xlsxwriter xlwt ods")


@family("date_serials", plain=True)
def date_serials(rng: Random) -> Case:
    """Day numbers without a date format, in a date field."""
    column = Column(
        "due",
        "date",
        some_date,
        lambda v: str((v - date(1899, 12, 30)).days),
        cell=lambda v: (v - date(1899, 12, 30)).days,
    )
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    if rng.random() < 0.4:
        return texts_case(rng, [], 0, made, book=False)
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False)


@family("date_formats_of_books", plain=True)
def date_formats_of_books(rng: Random) -> Case:
    """Real dates under many number formats, in both epochs."""
    old = rng.random() < 0.4
    base = date(1904, 1, 1) if old else date(1899, 12, 30)
    form = rng.choice(
        (
            "yyyy-mm-dd",
            "dd/mm/yyyy",
            "m/d/yy",
            "d. mmmm yyyy",
            "[$-407]dd.mm.yyyy",
            "mmm yy",
            "ddd d mmm yyyy",
            "yyyy\\-mm\\-dd;@",
        )
    )
    column = Column("due", "date", some_date, cell=lambda v: Shown((v - base).days, form, ""))
    bare = Column("paid", "date", some_date, cell=lambda v: (v - base).days if old else v)
    made = content(rng, [member(rng), column, bare], rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    write = rng.choice((with_openpyxl, with_raw_xml))
    return Case(
        "", 0, "data.xlsx", write([sheet], epoch_1904=old), made.fields, [table], note=f"{form} {'1904' if old else ''}"
    )


@family("dates_before_1901")
def dates_before_1901(rng: Random) -> Case:
    """The days around the start of the calendar, and the day that never was."""
    days = [
        date(1900, 1, 1),
        date(1900, 1, 2),
        date(1900, 2, 27),
        date(1900, 2, 28),
        date(1900, 3, 1),
        date(1899, 12, 31),
        date(1850, 6, 15),
        date(1900, 12, 31),
    ]
    column = Column("born", "date", lambda r, n: r.choice(days), want=lambda v: AnyOf((v, v.isoformat())))
    case = texts_case(rng, [member(rng), column], rng.choice((3, 8, 20)))
    case.told = frozenset({"kept_as_text"})
    return case


@family("times_of_day", plain=True)
def times_of_day(rng: Random) -> Case:
    form = rng.choice(("%H:%M:%S", "%H:%M", "%I:%M %p"))
    column = Column("opens", "time", lambda r, n: time(r.randrange(24), r.randrange(60)), lambda v: v.strftime(form))
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    if rng.random() < 0.6:
        return texts_case(rng, [], 0, made)
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False, writers="openpyxl xlsxwriter xlwt ods")


@family("durations")
def durations(rng: Random) -> Case:
    """Hours beyond a day, shown as [h]:mm, in a text field."""
    column = Column(
        "worked", "text", lambda r, n: timedelta(minutes=r.randrange(30, 6000)),
        cell=lambda v: Shown(v.total_seconds() / 86400, "[h]:mm", ""),
        want=lambda v: AnyOf((f"{int(v.total_seconds()) // 3600}:{int(v.total_seconds()) // 60 % 60:02}", f"{int(v.total_seconds()) // 3600}:{int(v.total_seconds()) // 60 % 60:02}:00")),
    )  # fmt: skip
    made = content(rng, [member(rng), column], rng.choice((3, 10)))
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False, writers="openpyxl xlsxwriter raw_xml")


def run_on(rng: Random) -> tuple[str, Content]:
    """Dates without separators that look like day numbers once they have lost their first zero."""
    form, within = rng.choice((("%y%m%d", 9), ("%d%m%y", 9), ("%m%d%y", 9), ("%m%d%y", 1)))

    def day(r: Random, n: int) -> date:
        near = n % within + 1
        if form == "%y%m%d":
            return date(2000 + near, r.randrange(1, 13), r.randrange(1, 29))
        if form == "%d%m%y":
            return date(r.randrange(2010, 2027), r.randrange(1, 13), near)
        return date(2026, near, 1 + (7 * n) % 28)

    column = Column("due", "date", day, lambda v: str(int(v.strftime(form))), cell=lambda v: int(v.strftime(form)))
    return form, content(rng, [member(rng), column], rng.choice((3, 9, 40)))


@family("dates_run_on", mostly_right=False)
def dates_run_on(rng: Random) -> Case:
    """10203 is the third of February 2001 or a day of 1927: the file does not say."""
    form, made = run_on(rng)
    sheet, texts = Sheet("Data"), rng.random() < 0.4
    case = written(rng, [sheet], [place(sheet, made, texts=texts)], made.fields, texts=texts)
    case.tells, case.note = [tell("date_form_assumed", field="due")], f"{case.note} {form}"
    return case


@family("dates_run_on_settled", plain=True)
def dates_run_on_settled(rng: Random) -> Case:
    """The same where the manifest names the format, which counts for number cells as well."""
    form, made = run_on(rng)
    made.columns[1].spec["formats"] = [form]
    sheet, texts = Sheet("Data"), rng.random() < 0.4
    return written(rng, [sheet], [place(sheet, made, texts=texts)], made.fields, texts=texts)


@family("zone_names", plain=True)
def zone_names(rng: Random) -> Case:
    """Zones by their abbreviations, by hours only, and with the name of the place."""
    name, hours = rng.choice(
        ((" CET", 1), (" CEST", 2), (" EST", -5), (" PDT", -7), (" JST", 9), ("+02", 2), (" UTC-3", -3), (" GMT+05:30", 5.5), ("+01:00[Europe/Berlin]", 1), (" MEZ", 1))
    )  # fmt: skip
    ahead = timedelta(hours=hours)
    column = Column("seen", "datetime", some_moment, lambda v: f"{(v + ahead).isoformat(' ')}{name}")
    case = texts_case(rng, [member(rng), column], rng.choice((3, 10)))
    case.note += name
    return case


@family("zones_with_several_meanings", mostly_right=False)
def zones_with_several_meanings(rng: Random) -> Case:
    """CST is Chicago or Shanghai, and 09:00-11:00 two times rather than a zone: told."""
    end = rng.choice((" CST", " IST", " BST", "", ""))
    column = Column("seen", "datetime", some_moment, lambda v: f"{v.isoformat(' ')}{end}", want=lambda v: None)
    if not end:
        column.value = lambda r, n: datetime(2026, 1 + n % 12, 3, 8, 15)
        column.text = lambda v: f"{v.isoformat(' ', 'minutes')}-{v.hour + 2:02}:00"
    made = content(rng, [member(rng), column], 4)
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("type_error", field="seen")]
    for row in case.tables[0].rows:
        row.wants["seen"] = case.tables[0].sources[row.number, "seen"]
    return case


@family("unix_times", plain=True)
def unix_times(rng: Random) -> Case:
    """Seconds or milliseconds since 1970 are moments in UTC."""
    per = rng.choice((1, 1000))
    column = Column(
        "seen",
        "datetime",
        lambda r, n: datetime(2001, 10, 1) + timedelta(seconds=r.randrange(10**9)),
        lambda v: str(int((v - datetime(1970, 1, 1)).total_seconds()) * per),
        cell=lambda v: int((v - datetime(1970, 1, 1)).total_seconds()) * per,
    )
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    if rng.random() < 0.5:
        return texts_case(rng, [], 0, made)
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False)


@family("moments_of_programs", plain=True)
def moments_of_programs(rng: Random) -> Case:
    """What databases and other regions write: Oracle, ISO without separators, week dates, a. m. with blanks."""
    ways = (
        lambda v: v.strftime("%d-%b-%y %I.%M.%S.000000 %p").upper(),
        lambda v: v.strftime("%Y%m%dT%H%M%S"),
        lambda v: v.strftime("%Y%m%d%H%M%S"),
        lambda v: v.strftime("%G-W%V-%uT%H:%M:%S"),
        lambda v: v.strftime("%d/%m/%Y %I:%M:%S ") + ("a.\u00a0m." if v.hour < 12 else "p.\u00a0m."),
    )
    column = Column("seen", "datetime", some_moment, rng.choice(ways))
    made = content(rng, [member(rng), column], rng.choice((3, 10)))
    made.values[0][1] = datetime(2024, 5, 23, 17, 8, 9)
    return texts_case(rng, [], 0, made)


@family("zones_in_some_rows", mostly_right=False)
def zones_in_some_rows(rng: Random) -> Case:
    """Some times have a zone and others have none: what they were is not known."""
    end = rng.choice(("+02:00", "Z", " CET", "-0500"))
    hours = {"+02:00": 2, "Z": 0, " CET": 1, "-0500": -5}[end]
    ahead = timedelta(hours=hours)
    made = content(rng, [member(rng), Column("seen", "datetime", some_moment)], rng.choice((4, 30)))
    made.columns[1].text = lambda v: f"{(v + ahead).isoformat(' ')}{end}" if v.second % 2 else v.isoformat(" ")
    made.values[0][1], made.values[1][1] = datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 4, 6)
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("zone_mixed", field="seen")]
    return case
