"""A second stranger, more of it: ends of lists, kin of tables, odd writers and odd words."""

from datetime import date, datetime, time
from random import Random
from typing import Any

from tests.truth.cases import Case, Shown
from tests.truth.strangers.kit import Draft, Raw, any_of, each, person, size, stranger
from tests.truth.strangers.second import FARM, FLEET, HOTEL, MINE, VET, _named, start, total, trade
from tests.truth.strangers.second_cells import bare, lines

# Ends of lists


@stranger("second_closing_words")
def _(rng: Random) -> Case:
    """A line that the sender wrote below the list."""
    d = trade(rng, "en")
    d.header()
    d.records(size(rng, 4, 35))
    if rng.random() < 0.7:
        d.line()
    d.line(rng.choice((
        "Thanks, Maria", "Contact: Mr Huber, ext. 12", "Prices excl. VAT", "All amounts in EUR", "printed 5 May 2025", "Anna on holiday from May",
        "Please return by Friday", "last updated by JK", "Page 1", "1/1", "- 2 -", "end of list", "copy to accounting", "v2.1 final",
    )), why="closing words")  # fmt: skip
    return d.any()


@stranger("second_day_of_printing_below")
def _(rng: Random) -> Case:
    d = trade(rng, "en da cs")
    d.header()
    d.records(size(rng, 4, 35))
    if rng.random() < 0.7:
        d.line()
    d.line(*[None] * rng.choice((0, 0, len(d.cols) - 1)), date(2025, 5, 5), why="day of printing")
    return d.any()


@stranger("second_bank_details_below")
def _(rng: Random) -> Case:
    d = trade(rng, "en")
    d.header()
    d.records(size(rng, 4, 35))
    d.line()
    d.line("IBAN", "DK50 0040 0440 1162 43", "BIC", "NDEADKKK", why="bank")
    d.line("VAT no.", "DK 12 34 56 78", why="bank")
    return d.any()


@stranger("second_invoice_of_the_world")
def _(rng: Random) -> Case:
    d = start(rng, "part pieces charge", "cs hu tr da fi pt ru")
    d.header()
    rows = d.records(rng.randrange(3, 12))
    words = {
        "cs": "Mezisoučet|Sleva|DPH 21 %|Celkem k úhradě", "hu": "Részösszeg|Kedvezmény|ÁFA 27%|Fizetendő", "tr": "Ara toplam|İskonto|KDV %20|Genel toplam",
        "da": "Subtotal|Rabat|Moms 25%|At betale", "fi": "Välisumma|Alennus|ALV 25,5 %|Maksettava", "pt": "Subtotal|Desconto|IVA 23%|Total a pagar",
        "ru": "Подытог|Скидка|НДС 20%|Итого к оплате",
    }[d.loc.lang].split("|")  # fmt: skip
    sub = round(sum(r[2] for r in rows), 2)
    off, tax = -round(sub * 0.05, 2), round(sub * 0.19, 2)
    for word, value in zip(words, (sub, off, tax, round(sub + off + tax, 2)), strict=True):
        d.line(word, None, value, why=word)
    return d.any()


@stranger("second_weeks_summed")
def _(rng: Random) -> Case:
    """A sum after each week, called by its number."""
    d = start(rng, "day driver km charge", "en")
    d.header()
    n = 0
    for week in range(rng.randrange(2, 5)):
        rows = d.records(rng.randrange(3, 7), start=n)
        n += 7
        line = total(d, rows)
        d.line(rng.choice(("Week {}", "W{}", "Wk. {}")).format(week + 10), *line[1:], why="week")
    return d.any()


@stranger("second_sums_called_by_the_person")
def _(rng: Random) -> Case:
    d = start(rng, "driver day km", "en pt")
    d.header()
    n = 0
    for name in rng.sample(each("Anna|Bram|Carla|Dirk"), 3):
        rows = []
        for _trip in range(rng.randrange(3, 6)):
            row = d.values(n)
            row[0] = name
            d.record(row)
            rows.append(row)
            n += 1
        d.line(
            rng.choice(("Total {}", "{} total", "Σ {}", "{}:")).format(name), None, sum(r[2] for r in rows), why="sum"
        )
    return d.any()


@stranger("second_presence_counted")
def _(rng: Random) -> Case:
    """Marks in the columns of days, and how many below."""
    d = start(rng, "guest", "en da")
    d.cols += [
        _named(f"day_{n}", "text", f"en=Day {n}", lambda r, n: "x" if r.random() < 0.7 else None) for n in (1, 2, 3)
    ]
    d.header()
    rows = d.records(size(rng, 5, 20))
    d.line(
        rng.choice(("Present", "Count", None, "Attended")),
        *[sum(r[n] == "x" for r in rows) for n in (1, 2, 3)],
        why="count",
    )
    return d.any()


@stranger("second_captions_in_their_own_column")
def _(rng: Random) -> Case:
    """The kind stands once, on a row of its own, in a column that the records leave blank."""
    d = start(rng, "crop plot hectares harvest", "en pt")
    d.header()
    n = 0
    for crop in rng.sample(each("Barley|Maize|Rye|Oats"), rng.randrange(2, 5)):
        d.line(crop, why="caption")
        for _row in range(rng.randrange(2, 6)):
            row = d.values(n)
            n += 1
            d.record([None, *row[1:]], {"crop": any_of(None, crop)})
    return d.any()


@stranger("second_plain_names_that_are_words", plain=True)
def _(rng: Random) -> Case:
    """Min, Max, Mean, Note and Sum are people."""
    d = start(rng, "animal keeper visit charge", "en")
    names = each("Max|Min|Mean|Note|Sum|Count|Total|May|Page|Rest|Legend|Null|True|None|Average")
    d.header()
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        row[0] = rng.choice(names)
        row[1] = f"{rng.choice(names)} {row[1].split()[-1]}"
        d.record(row)
    return d.any()


@stranger("second_keeper_once_dog_called_max")
def _(rng: Random) -> Case:
    """As a report writes it: the keeper once, then his animals; some are called Max or Min."""
    d = start(rng, "keeper animal visit charge")
    d.header()
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        if n % 3:
            row[0] = None
            row[1] = rng.choice(("Max", "Min", "Rex", "Sum"))
        d.record(row)
    return d.any()


# Kin of tables


def _amount(d: Draft) -> int:
    return next(n for n, c in enumerate(d.cols) if c.field in ("charge", "harvest"))


@stranger("second_cleaned_copy", right=False)
def _(rng: Random) -> Case:
    """Raw and clean: the same records, spelled otherwise."""
    d = trade(rng, "en")
    rows = [d.values(n) for n in range(size(rng, 6, 35))]
    d.sheet(rng.choice(("Raw", "Import"))).header()
    for row in rows:
        d.line(*[v.upper() + " " if isinstance(v, str) else v for v in row], why="raw")
    d.sheet(rng.choice(("Clean", "Data"))).header()
    for row in rows:
        d.record(row)
    return d.book()


@stranger("second_other_currency_sheet", right=False)
def _(rng: Random) -> Case:
    """The same bookings again, the amounts in another currency."""
    d = start(rng, rng.choice((HOTEL, VET, FLEET)), "en")
    at = _amount(d)
    rows = [d.values(n) for n in range(size(rng, 6, 35))]
    d.sheet("EUR").header()
    for row in rows:
        d.record(row)
    d.sheet("USD").header()
    for row in rows:
        d.line(*[round(v * 1.08, 2) if n == at else v for n, v in enumerate(row)], why="converted")
    return d.book()


@stranger("second_plan_and_actual", right=False)
def _(rng: Random) -> Case:
    """The same keys on two sheets, other amounts: planned and real."""
    d = start(rng, FARM, "en")
    rows = [d.values(n) for n in range(size(rng, 6, 35))]
    d.sheet("Actual").header()
    for row in rows:
        d.record(row)
    d.sheet(rng.choice(("Plan", "Budget", "Forecast"))).header()
    for row in rows:
        d.line(*row[:3], round(row[3] * rng.uniform(0.7, 1.3), 1), why="planned")
    return d.book()


@stranger("second_columns_in_two_halves", right=False)
def _(rng: Random) -> Case:
    """Names on one sheet, amounts on the other, one key for both."""
    d = start(rng, VET, "en")
    rows = [d.values(n) for n in range(size(rng, 6, 20))]
    d.sheet("Animals").line(*d.heads[:3])
    for row in rows:
        d.record(row, cells=row[:3])
    d.sheet("Charges").line(d.heads[0], *d.heads[3:])
    for row in rows:
        d.line(row[0], *row[3:], why="other half")
    return d.book()


@stranger("second_running_total_sheet")
def _(rng: Random) -> Case:
    """What a chart is drawn from: day and sum so far."""
    d = start(rng, "plate driver day charge", "en")
    d.sheet("Trips").header()
    rows = d.records(size(rng, 6, 35))
    d.sheet("Chart").line("Day", rng.choice(("Charge", "Charge so far")), why="header")
    so_far = 0.0
    for row in rows:
        so_far = round(so_far + row[3], 2)
        d.line(row[2], so_far, why="so far")
    return d.book()


@stranger("second_average_by_driver")
def _(rng: Random) -> Case:
    d = start(rng, "plate driver day charge", "en")
    d.cols[1] = _named("driver", "text", "en=Driver", lambda r, n: r.choice(each("Anna|Bram|Carla|Dirk")))
    d.sheet("Trips").header()
    rows = d.records(size(rng, 12, 60))
    d.sheet("Sheet2").line("Driver", "Charge", why="header")
    for name in sorted({r[1] for r in rows}):
        mine = [r[3] for r in rows if r[1] == name]
        d.line(name, round(sum(mine) / len(mine), 2), why="mean")
    return d.book()


@stranger("second_two_years_in_the_header", right=False)
def _(rng: Random) -> Case:
    """Two years beside each other, each with the same columns."""
    d = start(rng, "plot crop", "en")
    bare(
        d,
        [
            {"name": "plot"},
            {"name": "crop"},
            {"name": "hectares", "type": "decimal"},
            {"name": "harvest", "type": "decimal"},
        ],
    )
    d.line(None, None, "2024", None, "2025", None)
    d.page.merges = [(1, 3, 1, 4), (1, 5, 1, 6)]
    d.line("Plot", "Crop", "Hectares", "Harvest", "Hectares", "Harvest")
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        numbers = [rng.randrange(100, 900) / 10 for _ in range(4)]
        d.record(
            row, {"hectares": any_of(None, numbers[0]), "harvest": any_of(None, numbers[1])}, cells=[*row, *numbers]
        )
    d.tables[0].columns |= {"hectares": 3, "harvest": 4}
    d.tell("harvest")
    return d.book("openpyxl xlsxwriter raw_xml")


@stranger("second_fields_down_the_side", right=False)
def _(rng: Random) -> Case:
    """The records are columns."""
    d = trade(rng, "en")
    rows = [d.values(n) for n in range(rng.randrange(3, 8))]
    for n, head in enumerate(d.heads):
        d.page.add([head, *[r[n] for r in rows]])
    for n, row in enumerate(rows):
        d.want(1, {c.field: v for c, v in zip(d.cols, row, strict=True)}, at=n + 2)
    case = d.book()
    case.fails = frozenset("*")
    return case


# Odd writers


@stranger("second_row_names_of_r")
def _(rng: Random) -> Case:
    """write.table: the rows have a name more than the header has cells."""
    d = trade(rng, "en")
    d.header()
    d.records(size(rng, 4, 12))
    texts = d.texts()
    rows = [",".join(f'"{h}"' for h in texts[0])]
    rows += [f'"{n}",' + ",".join(f'"{c}"' for c in r) for n, r in enumerate(texts[1:], 1)]
    for t in d.tables:
        t.columns = {k: v + 1 for k, v in t.columns.items()}
    return lines(d, rows)


@stranger("second_index_of_pandas", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng, "en")
    d.line(None, *d.heads)
    for n in range(size(rng, 4, 35)):
        row = d.values(n)
        d.record(row, cells=[n, *row], at=1)
    for t in d.tables:
        t.columns = {k: v + 1 for k, v in t.columns.items()}
    return d.csv(delimiter=",")


@stranger("second_end_of_file_mark", plain=True)
def _(rng: Random) -> Case:
    """An old program ends its files with Ctrl-Z."""
    d = trade(rng)
    d.header()
    d.records(size(rng, 4, 35))
    case = d.csv(ending="\r\n")
    case.body += b"\x1a"
    return case


@stranger("second_marks_between_joined_files")
def _(rng: Random) -> Case:
    """Files with a byte-order mark, put together by copy a+b."""
    d = trade(rng, "en fi")
    d.line("\ufeff" + d.heads[0], *d.heads[1:])
    d.records(rng.randrange(3, 9))
    d.line("\ufeff" + d.heads[0], *d.heads[1:], why="second header")
    d.records(rng.randrange(3, 9), start=20)
    return d.csv()


@stranger("second_old_mac_lines", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng)
    d.header()
    d.records(size(rng, 4, 35))
    return d.csv(ending="\r")


@stranger("second_blank_after_the_comma")
def _(rng: Random) -> Case:
    """Quotes come after a blank: a, "b, c", d."""
    d = start(rng, FLEET, "en")
    d.cols[1] = _named("driver", "text", "en=Driver", lambda r, n: f"{person(r).split()[-1]}, {person(r).split()[0]}")
    d.header()
    d.records(size(rng, 4, 35))
    rows = [", ".join(f'"{c}"' if "," in c else c for c in r) for r in d.texts()]
    return lines(d, rows)


@stranger("second_tabs_to_align", right=False)
def _(rng: Random) -> Case:
    """Typed by hand: two tabs after a short word, one after a long one."""
    d = start(rng, "animal keeper nights", "en")
    d.header()
    d.records(size(rng, 5, 20))
    rows = ["".join(c + ("\t\t" if len(c) < 8 else "\t") for c in r[:-1]) + r[-1] for r in d.texts()]
    return lines(d, rows, "data.txt")


@stranger("second_code_pages")
def _(rng: Random) -> Case:
    d = trade(rng, "cs tr hu ru pt da")
    d.header()
    d.records(size(rng, 12, 60))
    page = {"cs": "cp1250 iso8859-2", "tr": "cp1254", "hu": "cp1250 iso8859-2", "ru": "cp1251 koi8-r cp866", "pt": "cp1252 cp850", "da": "cp1252 cp850"}  # fmt: skip
    name = rng.choice(page[d.loc.lang].split())
    for row in [*d.page.rows]:
        for n, v in enumerate(row):
            if isinstance(v, str):
                row[n] = v.encode(name, "ignore").decode(name)
    for t in d.tables:
        for r in t.rows:
            for k, v in r.wants.items():
                if isinstance(v, str):
                    r.wants[k] = v.encode(name, "ignore").decode(name)
    return d.csv(delimiter=";", encoding=name)


# Odd cells


@stranger("second_days_without_a_year")
def _(rng: Random) -> Case:
    """25-May has no year; May-25 may be a day or a year."""
    d = start(rng, "chip animal visit", "en")
    form = rng.choice(("%d-%b", "%b-%d", "%a %d %b", "%d/%m", "%d %B"))
    d.header()
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        said = row[2].strftime(form)
        d.record(row, {"visit": said}, cells=[*row[:2], Raw(said)])
    return d.any("csv book")


@stranger("second_times_with_points")
def _(rng: Random) -> Case:
    """7.30, 7h30, 0730 and 19.30 Uhr are times."""
    d = start(rng, "station day", "en")
    d.cols.append(_named("opens", "time", "en=Opens", lambda r, n: time(r.randrange(6, 22), r.choice((0, 15, 30, 45)))))
    form = rng.choice(("{h}.{m:02}", "{h}h{m:02}", "{h:02}{m:02}", "{h}.{m:02} Uhr", "kl. {h}.{m:02}", "{h}:{m:02} h"))
    d.header()
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        said = form.format(h=row[2].hour, m=row[2].minute)
        d.record(row, {"opens": any_of(row[2], said)}, cells=[*row[:2], Raw(said)])
    return d.any("csv book")


@stranger("second_letters_for_yes")
def _(rng: Random) -> Case:
    """Yes and no as one letter, or as programs write them."""
    d = start(rng, "flat tenant", "en")
    d.cols.append(_named("paid", "boolean", "en=Paid", lambda r, n: r.random() < 0.6))
    yes, no = rng.choice((
        ("-1", "0"), ("O", "N"), ("S", "N"), ("A", "N"), ("E", "H"), ("K", "E"), ("Д", "Н"), ("T", "N"), ("Po", "Jo"), ("V", "Y"), ("I", "N"),
        ("ΝΑΙ", "ΟΧΙ"), ("〇", "×"), ("是", "否"), ("P", "A"), ("on", "off"), ("done", "open"), ("+", "-"), ("tak", "nie"), ("da", "ne"),
    ))  # fmt: skip
    d.header()
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        d.record(row, {"paid": any_of(row[2], yes if row[2] else no)}, cells=[*row[:2], Raw(yes if row[2] else no)])
    return d.any("csv book")


@stranger("second_year_by_format")
def _(rng: Random) -> Case:
    """A date that shows its year only; the field is a year."""
    d = start(rng, "title author year", "en")
    d.header()
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        cell = Shown(datetime(row[2], 1, 1), "yyyy", str(row[2]))
        d.record(row, cells=[*row[:2], cell])
    return d.book("openpyxl xlsxwriter xlwt")


@stranger("second_shares_shown_as_percent", right=False)
def _(rng: Random) -> Case:
    """15 % is stored as 0.15; the field counts percent, as a decimal."""
    d = start(rng, "plot crop", "en")
    d.cols.append(_named("moisture_percent", "decimal", "en=Moisture percent", lambda r, n: r.randrange(8, 40)))
    d.header()
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        d.record(
            row,
            {"moisture_percent": any_of(row[2], row[2] / 100)},
            cells=[*row[:2], Shown(row[2] / 100, "0%", f"{row[2]}%")],
        )
    d.tell("moisture_percent")
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("second_vulgar_fractions")
def _(rng: Random) -> Case:
    """A recipe: ½, 1½, 2 1/4."""
    d = start(rng, "crop", "en")
    d.cols.append(_named("cups", "decimal", "en=Cups", lambda r, n: 0))
    d.header()
    for n in range(size(rng, 5, 20)):
        said, value = rng.choice(
            (
                ("½", 0.5),
                ("1½", 1.5),
                ("2 1/4", 2.25),
                ("¾", 0.75),
                ("3", 3),
                ("1 ½", 1.5),
                ("2¼", 2.25),
                ("1/2", 0.5),
                ("2²", "2²"),
                ("①", "①"),
            )
        )
        d.record([None, None], {"crop": (crop := d.values(n)[0]), "cups": any_of(value, said)}, cells=[crop, Raw(said)])
    return d.any("csv book")


@stranger("second_codes_like_numbers", plain=True)
def _(rng: Random) -> Case:
    """Codes that a program could take for numbers, dates or nothing."""
    d = start(rng, "driver day charge", "en")
    words = each("1E05|2E10|10-12|3/4|007|INF|NaN|NULL|None|TRUE|NA|1.10|0x1F|+5|5-|1_000|MAR1|12:30|-|N/A")
    d.cols.insert(0, _named("code", "text", "en=Code", lambda r, n: f"{r.choice(words)}"))
    d.header()
    d.records(size(rng, 8, 35))
    return d.any("csv html")


# Odd names


@stranger("second_kin_of_the_field")
def _(rng: Random) -> Case:
    """The column is about somebody else, about before, or about all."""
    d = start(rng, "flat tenant", "en")
    field, kind, head = rng.choice((
        ("phone", "phone", "Emergency phone"), ("email", "email", "Supervisor email"), ("city", "text", "Birth city"), ("last_name", "text", "Maiden name"),
        ("customer_id", "text", "Old customer ID"), ("address", "text", "Previous address"), ("amount", "decimal", "Cumulative amount"),
        ("price", "decimal", "Max price"), ("amount", "decimal", "Average amount"), ("vat_rate", "decimal", "VAT amount"),
        ("discount_percent", "decimal", "Discount amount"), ("number_of_guests", "integer", "Guest number"), ("room_no", "integer", "No. of rooms"),
        ("name", "text", "Father's name"), ("salary", "decimal", "Spouse salary"), ("rent", "decimal", "Rent arrears"),
        ("deposit", "decimal", "Deposit refunded"), ("email", "email", "Invalid email"), ("bank_account", "text", "Closed bank account"),
    ))  # fmt: skip
    bare(d, [{"name": "flat"}, {"name": "tenant"}, {"name": field, "type": kind}])
    d.line(*d.heads, head)
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        made: Any = {"phone": f"+4420{rng.randrange(10**7, 10**8)}", "email": f"a{n}@example.org", "text": MINE["shelf"].make(rng, n), "integer": n + 1}.get(kind, rng.randrange(40, 990) / 10)  # fmt: skip
        d.record(row, {field: None}, cells=[*row, made])
    d.tables[0].columns[field] = 3
    return d.any("book csv")


@stranger("second_usual_names", plain=True)
def _(rng: Random) -> Case:
    """Other words for the field, that mean the same."""
    d = start(rng, "flat tenant", "en")
    field, kind, head, made = rng.choice((
        ("phone", "phone", "Phone number", "+442071234567"), ("email", "email", "E-mail address", "a@example.org"), ("city", "text", "Town/City", "York"),
        ("customer_id", "text", "Customer ID", "C77"), ("amount", "decimal", "Amount", 12.25), ("price", "decimal", "Price", 3.75),
        ("quantity", "integer", "Qty", 4), ("start_date", "date", "Start Date", date(2025, 3, 14)), ("last_name", "text", "Last Name", "Berger"),
    ))  # fmt: skip
    d.cols.append(_named(field, kind, f"en={head}", lambda r, n: made))
    bare(d, [{"name": "flat"}, {"name": "tenant"}, {"name": field, "type": kind}])
    d.header()
    d.records(size(rng, 5, 35))
    return d.any("book csv")
