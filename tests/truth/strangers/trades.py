"""Files of labs, clinics, schools, clubs, carriers, towns, shops and utilities, mostly without any mess."""

from datetime import date, datetime, timedelta
from random import Random

from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import COLS, FIRST, GOODS, LAST, Raw, any_of, col, draft, person, size, stranger

# labs and clinics


@stranger("lab_units_row")
def lab_units_row(rng: Random) -> Stranger:
    """Units in a row of their own below the header."""
    d = draft(rng, "sample_id date result consumption", "en de")
    d.cols = [*d.cols[:2], d.cols[2].called("Nitrate"), d.cols[3].called("Conductivity")]
    d.header()
    d.line(None, None, "mg/l", "µS/cm", why="units")
    d.records(size(rng))
    return d.any("book csv")


@stranger("lab_below_detection", right=False)
def lab_below_detection(rng: Random) -> Stranger:
    d = draft(rng, "sample_id analyte result")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i % 4 == 2:
            d.record(
                row,
                {"result": any_of("<0.5", "< 0,05", "n.d.")},
                cells=[*row[:2], rng.choice(("<0.5", "< 0,05", "n.d."))],
            )
        else:
            d.record(row)
    for t in d.tables:
        for r in t.rows:
            if not isinstance(r.wants["result"], float):
                d.tell("result", r.number)
    return d.any("book csv")


@stranger("lab_instrument_block")
def lab_instrument_block(rng: Random) -> Stranger:
    """Instrument, operator and method above the readings."""
    d = draft(rng, "sample_id analyte result", "en uk de")
    for key, value in (
        ("Instrument", "ICP-MS 7700"),
        ("Operator", person(rng)),
        ("Method", "EN 17294"),
        ("Run", "2024-11-02 08:15"),
    ):
        d.line(key, value)
    d.line()
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("lab_replicate_means", right=False)
def lab_replicate_means(rng: Random) -> Stranger:
    """Three replicates, then their mean and the deviation."""
    d = draft(rng, "sample_id analyte result", "en")
    d.header()
    for i in range(rng.randint(2, 12)):
        rows = [[f"S-{i:03}", "Nitrate", rng.randrange(200, 900) / 100] for _ in range(3)]
        for row in rows:
            d.record(row)
        mean = round(sum(r[2] for r in rows) / 3, 4)
        d.line("Mean", None, mean, why="mean")
        d.line("SD", None, round((sum((r[2] - mean) ** 2 for r in rows) / 2) ** 0.5, 4), why="deviation")
    return d.any("book csv")


@stranger("clinic_texts_like_numbers", plain=True)
def clinic_texts_like_numbers(rng: Random) -> Stranger:
    """Blood pressure 120/80, dose 1-0-1, eye test 6/12: texts."""
    d = draft(rng, "patient_id name", "en de fr")
    d.cols = [
        *d.cols,
        col("pressure", "text", "en=Blood pressure", lambda r, n: f"{r.randrange(95, 180)}/{r.randrange(50, 110)}"),
        col("dose", "text", "en=Dose", lambda r, n: r.choice(("1-0-1", "0-0-1", "1-1-1", "1/2-0-1/2"))),
        col("vision", "text", "en=Vision", lambda r, n: r.choice(("6/12", "6/6", "20/40"))),
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("clinic_two_digit_birth_years", right=False)
def clinic_two_digit_birth_years(rng: Random) -> Stranger:
    d = draft(rng, "patient_id name", "de")
    d.cols = [
        *d.cols,
        col("born", "date", "en=Born", lambda r, n: date(1925, 1, 1) + timedelta(days=r.randrange(33000))),
    ]
    d.header()
    for i in range(size(rng, least=6)):
        row = d.values(i)
        d.record(row, cells=[*row[:2], Raw(row[2].strftime("%d.%m.%y"))])
    return d.csv()


@stranger("clinic_appointments_by_day")
def clinic_appointments_by_day(rng: Random) -> Stranger:
    """One block per day with the date above and the header again."""
    d = draft(rng, "patient_id name phone", "en uk fr")
    n = 0
    for i in range(rng.randint(2, 4)):
        d.line(f"Appointments of {date(2025, 3, 3 + i):%d %B %Y}", why="caption")
        d.header()
        more = rng.randint(3, 8)
        d.records(more, start=n)
        n += more
        d.line()
    return d.any("book csv")


@stranger("clinic_free_slots", plain=True)
def clinic_free_slots(rng: Random) -> Stranger:
    """Times without a patient: records with two cells."""
    d = draft(rng, "remark name phone", "en de")
    d.cols = [col("time", "time", "en=Time", lambda r, n: f"{8 + n // 4:02}:{n % 4 * 15:02}"), *d.cols[1:]]
    d.header()
    for i in range(rng.choice((8, 20, 40))):
        row = d.values(i)
        moment = datetime(2025, 1, 1, 8 + i // 4, i % 4 * 15).time()
        filled = rng.random() < 0.6
        d.record(
            [moment, *(row[1:] if filled else [None, None])],
            cells=[Raw(row[0]), *(row[1:] if filled else [None, None])],
        )
    return d.any("book csv")


# schools


@stranger("school_grades_with_signs", plain=True)
def school_grades_with_signs(rng: Random) -> Stranger:
    d = draft(rng, "name class", "en de")
    d.cols = [
        *d.cols,
        col("grade", "text", "en=Grade", lambda r, n: r.choice(("1-", "2+", "3", "A-", "B+", "2-3", "-", "+"))),
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("school_timetable", plain=True)
def school_timetable(rng: Random) -> Stranger:
    d = draft(rng, "class", "en de")
    days = {"en": "Monday Tuesday Wednesday Thursday Friday", "de": "Montag Dienstag Mittwoch Donnerstag Freitag"}[
        d.loc.lang
    ].split()
    d.cols = [
        col("lesson", "text", "en=Lesson|de=Stunde", lambda r, n: f"{n + 1}."),
        *[
            col(f"day_{n}", "text", f"en={day}", lambda r, n: r.choice(("Maths", "Latin", "Sport", "Music", "Art")))
            for n, day in enumerate(days, 1)
        ],
    ]
    d.header()
    for i in range(rng.randint(5, 9)):
        row = d.values(i)
        d.record([v if n == 0 or rng.random() < 0.85 else None for n, v in enumerate(row)])
    return d.any("book csv")


@stranger("school_attendance_marks", plain=True)
def school_attendance_marks(rng: Random) -> Stranger:
    """Days 1 to 5 as headers, an x for presence."""
    d = draft(rng, "name class", "en de fr")
    d.cols = [*d.cols, *[col(f"d{n}", "text", f"en={n}", lambda r, n: r.choice(("x", None))) for n in range(1, 6)]]
    d.line(*d.heads[:2], 1, 2, 3, 4, 5)
    d.records(size(rng, least=5, most=60))
    return d.any("book csv")


@stranger("school_class_sheets_and_teacher", right=False)
def school_class_sheets_and_teacher(rng: Random) -> Stranger:
    """A sheet per class, and one with the teachers, who have names too."""
    d = draft(rng, "name class score", "en de")
    for form in ("5a", "5b"):
        d.sheet(form)
        d.header()
        for i in range(rng.randint(5, 25)):
            row = d.values(i)
            d.record([row[0], form, row[2]])
    d.sheet("Teachers")
    d.line(d.heads[0], "Room", why="other list")
    for i in range(rng.randint(2, 5)):
        d.line(person(rng), f"R{i + 10}", why="other list")
    return d.book()


@stranger("school_points_maximum_row", right=False)
def school_points_maximum_row(rng: Random) -> Stranger:
    """The first row below the header holds the points that can be had."""
    d = draft(rng, "name score result", "en de")
    d.cols = [
        d.cols[0],
        col("task_1", "integer", "en=Task 1", lambda r, n: r.randrange(0, 11)),
        col("task_2", "integer", "en=Task 2", lambda r, n: r.randrange(0, 21)),
    ]
    d.header()
    d.line({"en": "max. points", "de": "max. Punkte"}[d.loc.lang], 10, 20, why="maximum")
    d.records(size(rng, least=5, most=60))
    return d.any("book csv")


# clubs


@stranger("club_results_colon", plain=True)
def club_results_colon(rng: Random) -> Stranger:
    d = draft(rng, "date team", "en uk de")
    d.cols = [
        d.cols[0],
        col("home", "text", "en=Home", d.cols[1].make),
        col("away", "text", "en=Away", d.cols[1].make),
        col("result", "text", "en=Result", lambda r, n: f"{r.randrange(7)}:{r.randrange(7)}"),
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("club_ranking_ties", plain=True)
def club_ranking_ties(rng: Random) -> Stranger:
    """The second of two equals has no rank."""
    d = draft(rng, "name team score", "en de sv")
    d.cols = [col("rank", "integer", "en=Rank|de=Platz|sv=Plats", lambda r, n: n + 1), *d.cols]
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record([None if i % 5 == 3 else row[0], *row[1:]])
    return d.any("book csv")


@stranger("club_lap_times", plain=True)
def club_lap_times(rng: Random) -> Stranger:
    d = draft(rng, "name team", "en")
    d.cols = [
        *d.cols,
        col(
            "best_lap",
            "text",
            "en=Best lap",
            lambda r, n: f"{r.randrange(1, 4)}:{r.randrange(60):02}.{r.randrange(100):02}",
        ),
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("club_did_not_finish", right=False)
def club_did_not_finish(rng: Random) -> Stranger:
    """DNF below the ranked ones, without rank and score."""
    d = draft(rng, "name team score", "en de")
    d.cols = [col("rank", "integer", "en=Rank|de=Platz", lambda r, n: n + 1), *d.cols]
    d.header()
    n = size(rng)
    d.records(n)
    for i in range(rng.randint(1, 3)):
        row = d.values(i)
        at = d.record(
            [None, row[1], row[2], None],
            {"score": any_of("DNF", None)},
            cells=["DNF", row[1], row[2], None] if i % 2 else [None, row[1], row[2], "DNF"],
        )
        d.tables[-1].rows[-1].wants["rank"] = any_of(None, "DNF")
        d.tell("rank" if i % 2 else "score", at)
    return d.any("book csv")


@stranger("club_teams_stacked")
def club_teams_stacked(rng: Random) -> Stranger:
    """Team by team: caption, header, players."""
    d = draft(rng, "name member_no score", "en de nl")
    n = 0
    for team in rng.sample(("U15 girls", "U17 boys", "Seniors", "Veterans"), rng.randint(2, 4)):
        d.line(team, why="caption")
        d.header()
        more = rng.randint(3, 9)
        d.records(more, start=n)
        n += more
        d.line()
    return d.any("book csv")


@stranger("club_tree_of_knockout", right=False)
def club_tree_of_knockout(rng: Random) -> Stranger:
    """Rounds of a cup as captions between the matches, in a merged line."""
    d = draft(rng, "date team score", "en")
    d.cols = [d.cols[0], col("home", "text", "en=Home", d.cols[1].make), col("away", "text", "en=Away", d.cols[1].make)]
    d.header()
    for rounds, more in (("Quarter finals", 4), ("Semi finals", 2), ("Final", 1)):
        at = d.line(rounds, why="caption")
        d.page.merges.append((at, 1, at, 3))
        d.records(more)
    return d.book("openpyxl xlsxwriter xlwt")


# carriers


@stranger("carrier_pallet_captions")
def carrier_pallet_captions(rng: Random) -> Stranger:
    d = draft(rng, "sku product quantity weight_kg", "en de nl")
    d.header()
    n, pallets = 0, rng.randint(2, 4)
    for p in range(1, pallets + 1):
        d.line(f"Pallet {p} of {pallets}", why="caption")
        more = rng.randint(2, 8)
        d.records(more, start=n)
        n += more
    return d.any("book csv")


@stranger("carrier_long_tracking_numbers", plain=True)
def carrier_long_tracking_numbers(rng: Random) -> Stranger:
    d = draft(rng, "shipment city weight_kg")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record([f"00{rng.randrange(10**19, 10**20)}", *row[1:]])
    return d.any("book csv")


@stranger("carrier_ean_as_number", plain=True)
def carrier_ean_as_number(rng: Random) -> Stranger:
    """Thirteen digits stored as a number, asked for as text."""
    d = draft(rng, "sku product quantity")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        ean = rng.randrange(4 * 10**12, 5 * 10**12)
        d.record([str(ean), *row[1:]], cells=[ean, *row[1:]])
    return d.book()


@stranger("carrier_dimensions", plain=True)
def carrier_dimensions(rng: Random) -> Stranger:
    d = draft(rng, "shipment", "en de fr")
    d.cols = [
        *d.cols,
        col(
            "size", "text", "en=Size", lambda r, n: f"{r.randrange(10, 120)}x{r.randrange(10, 80)}x{r.randrange(5, 60)}"
        ),
        col("bay", "text", "en=Bay", lambda r, n: f"{r.randrange(1, 13)}-{r.randrange(1, 13)}"),
        COLS["city"],
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("carrier_route_total_km", right=False)
def carrier_route_total_km(rng: Random) -> Stranger:
    """Stops with the distance so far; the last line says how far in words."""
    d = draft(rng, "city street consumption", "en de")
    d.cols = [*d.cols[:2], col("km", "decimal", "en=Km", lambda r, n: 0.0)]
    d.header()
    run = 0.0
    for i in range(size(rng, most=35)):
        run = round(run + rng.randrange(5, 400) / 10, 1)
        d.record([*d.values(i)[:2], run])
    d.line(
        {"en": f"Distance: {run} km, back before 6 pm", "de": f"Strecke: {run} km, zurück bis 18 Uhr"}[d.loc.lang],
        why="remark",
    )
    return d.any("book csv")


# towns


@stranger("town_house_numbers", plain=True)
def town_house_numbers(rng: Random) -> Stranger:
    d = draft(rng, "street city", "en de fr")
    d.cols = [
        COLS["street"],
        col(
            "house_no",
            "text",
            "en=House no|de=Hausnr.|fr=N°",
            lambda r, n: r.choice(("1-3", "12a", "5/7", "10", "3 bis", "1/2")),
        ),
        COLS["city"],
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("town_election_shares", right=False)
def town_election_shares(rng: Random) -> Stranger:
    """Votes and shares per party, with eligible, cast and valid votes above them."""
    d = draft(rng, "team quantity", "en")
    d.cols = [
        col(
            "party",
            "text",
            "en=Party",
            lambda r, n: r.choice(("Left", "Green", "Liberal", "Centre", "Farmers", "Local list")) + f" {n}",
        ),
        col("votes", "integer", "en=Votes", lambda r, n: r.randrange(100, 9000)),
    ]
    d.header()
    made = [d.values(i) for i in range(rng.randint(4, 9))]
    total = sum(r[1] for r in made)
    for row in made:
        d.record(row)
    d.line("Valid votes", total, why="total")
    d.line("Invalid votes", 57, why="not a party")
    d.line("Turnout", total + 57, why="total")
    return d.any("book csv")


@stranger("town_districts_indented", plain=True)
def town_districts_indented(rng: Random) -> Stranger:
    """Indented by blanks, without any sums."""
    d = draft(rng, "city quantity", "en de")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record(row, cells=["   " * (i % 3) + row[0], row[1]])
    return d.any("book csv")


@stranger("town_year_in_caption_columns", right=False)
def town_year_in_caption_columns(rng: Random) -> Stranger:
    """Inhabitants of three years side by side for one field `inhabitants`."""
    d = draft(rng, "city quantity", "en")
    d.line("Town", "Inhabitants 2022", "Inhabitants 2023", "Inhabitants 2024")
    d.fields = [{"name": "town"}, {"name": "inhabitants", "type": "integer"}]
    d.cols = [
        col("town", "text", "en=Town", COLS["city"].make),
        col("inhabitants", "integer", "en=Inhabitants", lambda r, n: r.randrange(900, 90000)),
    ]
    for i in range(size(rng, least=4)):
        row = d.values(i)
        years = [row[1], row[1] + 7, row[1] + 19]
        d.record(row, {"inhabitants": any_of(*years, None)}, cells=[row[0], *years])
    d.tell("inhabitants")
    return d.any("book csv")


@stranger("town_not_available_signs", right=False)
def town_not_available_signs(rng: Random) -> Stranger:
    """Statistics use . - x and … for nothing, unknown and secret."""
    d = draft(rng, "city quantity score", "de en")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i % 3 == 1:
            sign = rng.choice((".", "-", "x", "…", "/"))
            at = d.record(row, {"quantity": any_of(sign, None, 0)}, cells=[row[0], sign, row[2]])
            d.tell("quantity", at)
        else:
            d.record(row)
    return d.any("book csv")


# shops


@stranger("shop_order_lines_sparse", plain=True)
def shop_order_lines_sparse(rng: Random) -> Stranger:
    """One shop writes the order only into its first line item."""
    d = draft(rng, "order_no email product quantity amount", "en")
    d.header()
    for i in range(size(rng, most=120)):
        row = d.values(i)
        d.record(row)
        for _ in range(rng.randrange(3)):
            more = d.values(i)
            d.record(
                [row[0], None, more[2], more[3], None], {"email": any_of(None, row[1]), "amount": any_of(None, row[4])}
            )
    return d.csv()


@stranger("shop_sizes_and_fractions", plain=True)
def shop_sizes_and_fractions(rng: Random) -> Stranger:
    d = draft(rng, "sku product", "en")
    d.cols = [
        *d.cols,
        col(
            "size", "text", "en=Size", lambda r, n: r.choice(("10-12", "1/2", "3/4", "XL", "36/38", "6-7", "2XL", "42"))
        ),
        COLS["quantity"],
    ]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("shop_price_ranges", right=False)
def shop_price_ranges(rng: Random) -> Stranger:
    d = draft(rng, "sku product unit_price", "en")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i % 4 == 2:
            text = rng.choice(
                (f"from {row[2]:.2f}", f"{row[2]:.2f} - {row[2] + 2:.2f}", "on request", f"ca. {row[2]:.2f}", "free")
            )
            at = d.record(row, {"unit_price": any_of(text)}, cells=[*row[:2], text])
            d.tell("unit_price", at)
        else:
            d.record(row)
    return d.any("book csv")


@stranger("shop_sku_leading_zeros", plain=True)
def shop_sku_leading_zeros(rng: Random) -> Stranger:
    d = draft(rng, "sku product quantity")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record([f"{rng.randrange(10**4):07}", *row[1:]])
    return d.any("book csv")


@stranger("shop_gift_card_last", plain=True)
def shop_gift_card_last(rng: Random) -> Stranger:
    """The last article is a short one: a gift card without stock and with a round price."""
    d = draft(rng, "sku product quantity unit_price")
    d.header()
    d.records(size(rng))
    d.record(["GC-1", "Gift card", None, 50.0])
    return d.any("book csv")


@stranger("shop_category_captions")
def shop_category_captions(rng: Random) -> Stranger:
    d = draft(rng, "sku product unit_price", "en de fr")
    d.header()
    n = 0
    for group in rng.sample(("Lamps", "Chairs", "Paper", "Printers", "Kitchen"), rng.randint(2, 4)):
        d.line(None, group.upper(), None, why="caption")
        more = rng.randint(2, 7)
        d.records(more, start=n)
        n += more
    return d.any("book csv")


@stranger("shop_bundle_parts", right=False)
def shop_bundle_parts(rng: Random) -> Stranger:
    """Parts of a bundle below it, with a dash and no price."""
    d = draft(rng, "sku product quantity amount", "en")
    d.header()
    for i in range(size(rng, most=60)):
        row = d.values(i)
        d.record(row)
        if i % 3 == 0:
            for _ in range(2):
                part = f"- {rng.choice(GOODS)}"
                d.record([None, part, rng.randrange(1, 5), None], {"product": any_of(part, part[2:])})
    return d.any("book csv")


# people


@stranger("staff_two_people_in_a_row", right=False)
def staff_two_people_in_a_row(rng: Random) -> Stranger:
    """A couple shares a line: two names with a slash stay one text."""
    d = draft(rng, "member_no name city", "en de")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        if i % 4 == 1:
            row[1] = f"{rng.choice(FIRST)} / {rng.choice(FIRST)} {rng.choice(LAST)}"
        d.record(row)
    return d.any("book csv")


@stranger("staff_vacant_posts", plain=True)
def staff_vacant_posts(rng: Random) -> Stranger:
    """Posts without a person."""
    d = draft(rng, "staff_no department name start_date", "en de fr")
    d.header()
    n = size(rng)
    for i in range(n):
        row = d.values(i)
        d.record([*row[:2], None, None] if i % 4 == 2 or i == n - 1 else row)
    return d.any("book csv")


@stranger("staff_secret_salaries", right=False)
def staff_secret_salaries(rng: Random) -> Stranger:
    d = draft(rng, "staff_no name amount", "en de")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i % 5 == 2:
            at = d.record(row, {"amount": "confidential"}, cells=[*row[:2], "confidential"])
            d.tell("amount", at)
        else:
            d.record(row)
    return d.any("book csv")


@stranger("staff_since_dates", right=False)
def staff_since_dates(rng: Random) -> Stranger:
    """`since 2015`, `spring 2019`, `06/2020` in a date column."""
    d = draft(rng, "staff_no name start_date", "en")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i % 4 == 2:
            text = rng.choice(("since 2015", "spring 2019", "2020?", "before 2010"))
            at = d.record(row, {"start_date": text}, cells=[*row[:2], text])
            d.tell("start_date", at)
        else:
            d.record(row)
    return d.any("book csv")


@stranger("staff_hidden_by_filter", plain=True)
def staff_hidden_by_filter(rng: Random) -> Stranger:
    """Rows that a filter hid: read like the others, as the docs say."""
    d = draft(rng, "staff_no name department")
    d.header()
    d.records(size(rng, least=5))
    for n in range(3, len(d.page.rows), 3):
        d.page.hidden_rows.add(n)
    return d.book("openpyxl xlsxwriter xlwt")


# surveys and utilities


@stranger("survey_three_header_rows", right=False)
def survey_three_header_rows(rng: Random) -> Stranger:
    """Codes, questions and import ids, as a survey tool exports."""
    d = draft(rng, "email score remark", "en")
    d.cols = [
        col("respondent", "text", "en=ResponseId", lambda r, n: f"R_{n:05}"),
        col("q1", "integer", "en=Q1", lambda r, n: r.randrange(1, 8)),
        col("q2", "text", "en=Q2", COLS["remark"].make),
    ]
    d.header()
    d.line("Response ID", "How satisfied are you?", "What could we do better?", why="questions")
    d.line('{"ImportId":"_recordId"}', '{"ImportId":"QID1"}', '{"ImportId":"QID2_TEXT"}', why="ids")
    d.records(size(rng, least=4))
    return d.any("book csv")


@stranger("survey_likert_texts", plain=True)
def survey_likert_texts(rng: Random) -> Stranger:
    d = draft(rng, "member_no", "en")
    scale = ("1 - strongly disagree", "2", "3", "4", "5 - strongly agree")
    d.cols = [*d.cols, *[col(f"q{n}", "text", f"en=Q{n}", lambda r, n: r.choice(scale)) for n in range(1, 5)]]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("survey_one_word_answers", plain=True)
def survey_one_word_answers(rng: Random) -> Stranger:
    """Long free texts, some of them the only cell of their line."""
    d = draft(rng, "remark city score", "en")
    d.cols = [
        col(
            "answer",
            "text",
            "en=Answer",
            lambda r, n: r.choice(
                (
                    "none",
                    "It took far too long until somebody answered the phone, and then I was cut off.",
                    "ok",
                    "Total chaos",
                    "More seats please!",
                )
            ),
        ),
        *d.cols[1:],
    ]
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record(row if i % 3 else [row[0], None, None])
    return d.any("book csv")


@stranger("utility_half_hours_across", plain=True)
def utility_half_hours_across(rng: Random) -> Stranger:
    d = draft(rng, "date", "en")
    d.cols = [
        *d.cols,
        *[col(f"h{h:02}", "decimal", f"en={h:02}:00", lambda r, n: r.randrange(1, 900) / 10) for h in range(6)],
    ]
    d.header()
    for i in range(size(rng, most=120)):
        row = d.values(i)
        d.record([date(2024, 1, 1) + timedelta(days=i), *row[1:]])
    return d.any("book csv")


@stranger("utility_clock_change", plain=True)
def utility_clock_change(rng: Random) -> Stranger:
    """02:00 occurs twice in October: both are readings."""
    d = draft(rng, "meter consumption", "en")
    d.cols = [col("read_at", "datetime", "en=Read at", lambda r, n: None), *d.cols]
    d.header()
    for h in (0, 1, 2, 2, 3, 4, 5):
        d.record([datetime(2024, 10, 27, h), "1ESY20000", rng.randrange(10, 900) / 10])
    return d.any("book csv")


@stranger("utility_meter_swapped", right=False)
def utility_meter_swapped(rng: Random) -> Stranger:
    """A remark line between the readings: the meter was changed."""
    d = draft(rng, "date meter consumption", "en de")
    d.header()
    n = size(rng, least=6)
    d.records(n // 2)
    d.line(
        {"en": "meter changed, old reading 99812", "de": "Zählerwechsel, alter Stand 99812"}[d.loc.lang], why="remark"
    )
    d.records(n - n // 2, start=n)
    return d.any("book csv")


@stranger("utility_tariff_table_on_top", right=False)
def utility_tariff_table_on_top(rng: Random) -> Stranger:
    """Prices per kWh above the readings; the price is a field of neither."""
    d = draft(rng, "meter date consumption", "en")
    d.line("Tariff", "Price per kWh")
    d.line("day", 0.31)
    d.line("night", 0.24)
    d.line()
    d.header()
    d.records(size(rng, least=5))
    return d.any("book csv")
