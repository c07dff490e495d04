"""A second stranger, third sitting: around what was weak, and what nobody had brought yet."""

from datetime import date, timedelta
from random import Random
from typing import Any

from tests.truth.cases import Case, Formula
from tests.truth.strangers.kit import Raw, any_of, each, person, size, stranger
from tests.truth.strangers.second import FARM, FLEET, HOTEL, MONTHS, VET, _named, start, trade
from tests.truth.strangers.second_cells import bare, lines


@stranger("second_phases_as_rows_of_words")
def _(rng: Random) -> Case:
    """Words on a row of their own between the records, in the column of names."""
    d = start(rng, HOTEL, "en")
    d.header()
    for n, word in enumerate(rng.sample(each("Ground floor|First floor|Annexe|North wing|Groups|Day guests"), 3)):
        if n:
            d.line(word, why="caption")
        d.records(rng.randrange(3, 8), start=n * 10)
    return d.any()


@stranger("second_subtotals_by_keeper_sorted")
def _(rng: Random) -> Case:
    """What a program's Subtotal command makes: 'Anna Total' rows and a 'Grand Total', as formulas."""
    d = start(rng, "driver day km charge", "en")
    d.header()
    n, every = 0, []
    for name in rng.sample(each("Anna|Bram|Carla|Dirk"), 3):
        rows = []
        for _trip in range(rng.randrange(1, 5)):
            row = d.values(n)
            row[0] = name
            d.record(row)
            rows.append(row)
            n += 1
        every += rows
        d.line(
            f"{name} Total",
            None,
            None,
            Formula("=SUBTOTAL(9,D2:D3)", round(sum(r[3] for r in rows), 2)),
            why="subtotal",
        )
    d.line("Grand Total", None, None, Formula("=SUBTOTAL(9,D2:D30)", round(sum(r[3] for r in every), 2)), why="total")
    return d.book("xlsxwriter raw_xml xlwt ods")


@stranger("second_quarters_among_months")
def _(rng: Random) -> Case:
    d = start(rng, "plot hectares harvest", "en")
    d.cols[0] = _named("month", "text", "en=Month", lambda r, n: "")
    d.header()
    quarter: list[list[Any]] = []
    for n, month in enumerate(
        each("January|February|March|April|May|June|July|August|September|October|November|December")
    ):
        row = [month, *d.values(n)[1:]]
        d.record(row)
        quarter.append(row)
        if n % 3 == 2:
            d.line(
                rng.choice((f"Q{n // 3 + 1}", f"{n // 3 + 1}. quarter")),
                *[round(sum(r[c] for r in quarter), 2) for c in (1, 2)],
                why="quarter",
            )
            quarter = []
    return d.any()


@stranger("second_months_only", plain=True)
def _(rng: Random) -> Case:
    d = start(rng, "plot hectares harvest", "en")
    d.cols[0] = _named("month", "text", "en=Month", lambda r, n: "")
    d.header()
    for n, month in enumerate(
        each("January|February|March|April|May|June|July|August|September|October|November|December")
    ):
        d.record([month, *d.values(n)[1:]])
    return d.any()


@stranger("second_dues_and_rest")
def _(rng: Random) -> Case:
    """Below the sum: what was paid, and the rest."""
    d = start(rng, "part pieces charge", "en")
    d.header()
    rows = d.records(size(rng, 4, 20))
    whole = round(sum(r[2] for r in rows), 2)
    d.line("Total", None, whole, why="total")
    d.line(rng.choice(("Deposit paid", "Paid on account", "Advance")), None, -100.0, why="deposit")
    d.line(rng.choice(("Balance due", "Rest", "To pay")), None, round(whole - 100, 2), why="rest")
    return d.any()


@stranger("second_copy_in_other_order_of_columns")
def _(rng: Random) -> Case:
    """For printing: the same rows, the columns in another order, dates as texts."""
    d = start(rng, VET, "en")
    d.sheet("Data").header()
    rows = d.records(size(rng, 6, 35))
    d.sheet("Print").line(*[d.heads[n] for n in (3, 1, 2, 0, 4)])
    for row in sorted(rows, key=lambda r: r[3]):
        d.line(f"{row[3]:%d %b %Y}", row[1], row[2], row[0], row[4], why="again")
    return d.book()


@stranger("second_rounded_copy", right=False)
def _(rng: Random) -> Case:
    """For the board: the same rows, the amounts in whole numbers."""
    d = start(rng, FARM, "en")
    d.sheet("Fields").header()
    rows = d.records(size(rng, 6, 35))
    d.sheet("Board").header()
    for row in rows:
        d.line(row[0], row[1], round(row[2]), round(row[3]), why="again")
    return d.book()


@stranger("second_this_year_and_last", right=False)
def _(rng: Random) -> Case:
    """A sheet for each year; the file was asked for with no year: both are records, if they are told or not."""
    d = start(rng, FARM, "en")
    rows = [d.values(n) for n in range(size(rng, 6, 35))]
    for year in ("2024", "2025"):
        d.sheet(year).header()
        for row in rows:
            d.record([*row[:3], round(row[3] * rng.uniform(0.7, 1.3), 1)])
    return d.book()


@stranger("second_shop_sheets", plain=True)
def _(rng: Random) -> Case:
    """A sheet for each branch, the same goods, other numbers."""
    d = start(rng, "part pieces charge")
    parts = each("Brake pad|Air filter|Wiper blade|Spark plug|Bulb H7|Fuse 10A")
    for town in rng.sample(each("Aarhus|Brno|Cork|Porto|Tampere|Izmir"), rng.randrange(2, 5)):
        d.sheet(town).header()
        for n, part in enumerate(parts):
            d.record([part, *d.values(n)[1:]])
    return d.book()


@stranger("second_prices_sheet_beside_sales")
def _(rng: Random) -> Case:
    """Sales have a part and its price; the price list has the same two."""
    d = start(rng, "day part pieces charge", "en")
    prices = {
        p: rng.randrange(200, 9000) / 100
        for p in each("Brake pad|Air filter|Wiper blade|Spark plug|Bulb H7|Fuse 10A|Horn")
    }
    d.sheet("Sales").header()
    for n in range(size(rng, 12, 60)):
        row = d.values(n)
        row[1] = rng.choice(list(prices))
        row[3] = prices[row[1]]
        d.record(row)
    d.sheet("Prices").line("Part", "Charge", why="header")
    for part, price in prices.items():
        d.line(part, price, why="price list")
    return d.book()


@stranger("second_empty_template_sheet", plain=True)
def _(rng: Random) -> Case:
    """The next month is prepared: a header and no rows."""
    d = trade(rng)
    months = MONTHS[d.loc.lang]
    for n, month in enumerate(months[:2]):
        d.sheet(month).header()
        d.records(rng.randrange(3, 12), start=n * 20)
    d.sheet(months[2]).line(*d.heads)
    return d.book()


@stranger("second_numbered_blank_lines")
def _(rng: Random) -> Case:
    """A form for signing up: thirty numbered lines, some filled in."""
    d = start(rng, "guest room nights", "en da")
    d.cols.insert(0, _named("line", "integer", "en=No", lambda r, n: n + 1))
    d.header()
    filled = rng.randrange(5, 12)
    d.records(filled)
    for n in range(filled, filled + rng.randrange(3, 9)):
        d.record([n + 1, None, None, None])
    return d.any()


@stranger("second_name_cell_says_more")
def _(rng: Random) -> Case:
    """Last records hold a long text in the name's cell and nothing else: companies, places, estates."""
    d = start(rng, rng.choice((HOTEL, FLEET)), "en")
    at = next(n for n, c in enumerate(d.cols) if c.field in ("guest", "driver"))
    d.header()
    rows = size(rng, 5, 35)
    d.records(rows)
    for _more in range(rng.randrange(1, 4)):
        row: list[Any] = [None] * len(d.cols)
        row[at] = rng.choice((
            "Association of Retired Railway Workers, Upper Valley Branch (12 persons)", "Mr and Mrs Prof. Dr. von und zu Hohenfels-Langenburg",
            "n.n.", "Smith (see also Jones)", "to be named by the agency", "Group: Sunshine Tours", "VIP!", "Ann & Bob Lee",
        ))  # fmt: skip
        d.record(row)
    return d.any()


@stranger("second_extra_header_names")
def _(rng: Random) -> Case:
    """The header has a name that no row fills; the last cells of the rows are cut."""
    d = trade(rng, "en")
    d.line(*d.heads[:2], rng.choice(("Reserved", "Filler", "Checked")), *d.heads[2:])
    rows = [",".join(d.page.rows[0])]
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        d.record(row)
        rows.append(",".join(str(v) if not isinstance(v, float) else f"{v:.2f}" for v in row))
    for t in d.tables:
        t.columns = {k: v + (v > 2) for k, v in t.columns.items()}
    return lines(d, rows)


@stranger("second_column_shifted_in_a_sheet", right=False)
def _(rng: Random) -> Case:
    """From some row on somebody inserted a cell: everything stands one column to the right."""
    d = start(rng, VET, "en")
    d.header()
    d.records(rng.randrange(6, 15))
    for n in range(rng.randrange(2, 5)):
        row = d.values(40 + n)
        moved = [row[0], None, *row[1:]]
        number = d.record(
            row, {c.field: any_of(v, m) for c, v, m in zip(d.cols, row, moved, strict=False)}, cells=moved
        )
        d.tell(None, number)
    return d.any("book csv")


@stranger("second_dates_of_two_calendars", right=False)
def _(rng: Random) -> Case:
    """Two clerks: one writes day first, the other month first, in one column."""
    d = start(rng, "chip animal visit", "en")
    d.header()
    for n in range(size(rng, 12, 35)):
        row = d.values(n)
        row[2] = date(2025, 1, 1) + timedelta(days=rng.randrange(360))
        said = f"{row[2]:%d/%m/%Y}" if n % 2 else f"{row[2]:%m/%d/%Y}"
        d.record(row, cells=[*row[:2], Raw(said)])
    d.tell("visit")
    return d.any("csv")


@stranger("second_amounts_of_two_clerks")
def _(rng: Random) -> Case:
    """One writes 1.234,50, the other 1,234.50."""
    d = start(rng, "chip animal charge", "en")
    bare(d, [{"name": "chip"}, {"name": "animal"}, {"name": "charge", "type": "money"}])
    d.header()
    for n in range(size(rng, 8, 35)):
        row = d.values(n)
        row[2] = rng.randrange(100000, 990000) / 100
        said = f"{row[2]:,.2f}"
        if n % 2:
            said = said.translate(str.maketrans(",.", ".,"))
        d.record(row, cells=[*row[:2], Raw(said)])
    d.tell("charge")
    return d.any("csv book")


@stranger("second_negatives_of_the_world")
def _(rng: Random) -> Case:
    """Minus as people and programs write it."""
    d = start(rng, "chip animal charge", "en")
    form = rng.choice(
        ("−{}", "–{}", "{}-", "({})", "- {}", "-{}", "<{}>", "{} -", "▲{}", "△{}", "[{}]", "minus {}", "{}CR")
    )
    d.header()
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        if n % 3 == 1:
            said = form.format(f"{row[2]:.2f}")
            d.record(row, {"charge": any_of(-row[2], said)}, cells=[*row[:2], Raw(said)])
        else:
            d.record(row)
    return d.any("csv book")


@stranger("second_notes_in_number_cells")
def _(rng: Random) -> Case:
    """A word behind or before the number: 12 pcs, 3 (2 broken), 4x, 10+2."""
    d = start(rng, "chip part pieces", "en")
    d.header()
    for n in range(size(rng, 8, 35)):
        row = d.values(n)
        form = rng.choice(
            (
                "{}",
                "{}",
                "{}",
                "{} pcs",
                "{} (2 broken)",
                "{}x",
                "{}+2",
                "{}/2",
                "2x{}",
                "{} of 40",
                "{}..50",
                "{}k",
                "{}%",
                "#{}",
                "{}th",
                "{}:1",
            )
        )
        said = form.format(row[2])
        fine = {"{}": (row[2],), "{} pcs": (row[2], said), "{}x": (row[2], said)}.get(form, (said,))
        d.record(row, {"pieces": any_of(*fine)}, cells=[*row[:2], row[2] if form == "{}" else Raw(said)])
    return d.any("csv book")


@stranger("second_two_people_in_a_cell", plain=True)
def _(rng: Random) -> Case:
    """Texts with slashes, brackets and semicolons are texts."""
    d = start(rng, "keeper animal charge", "en")
    d.header()
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        row[0] = rng.choice(
            (
                f"{person(rng)} / {person(rng)}",
                f"{person(rng)} ({person(rng)})",
                f"{person(rng)}; {person(rng)}",
                row[0],
            )
        )
        d.record(row)
    return d.any()


@stranger("second_header_says_before_or_after", right=False)
def _(rng: Random) -> Case:
    """Two columns that fit the field, neither of which is called as the field."""
    d = start(rng, "flat tenant", "en")
    field, left, right = rng.choice((
        ("price", "Price before tax", "Price after tax"), ("weight", "Weight in", "Weight out"), ("rent", "Rent (warm)", "Rent (cold)"),
        ("address", "Billing address", "Shipping address"), ("date", "Date received", "Date shipped"), ("amount", "Amount requested", "Amount approved"),
        ("quantity", "Quantity on hand", "Quantity on order"), ("score", "Score home", "Score away"), ("rate", "Buying rate", "Selling rate"),
    ))  # fmt: skip
    kind = "text" if field == "address" else "date" if field == "date" else "decimal"
    bare(d, [{"name": "flat"}, {"name": "tenant"}, {"name": field, "type": kind}])
    d.line(*d.heads, left, right)
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        one, two = (
            (f"Mill Lane {n}", f"High Street {n + 3}") if kind == "text"
            else (date(2025, 1, 3) + timedelta(days=n), date(2025, 2, 3) + timedelta(days=n)) if kind == "date"
            else (rng.randrange(100, 900) / 10, rng.randrange(100, 900) / 10)
        )  # fmt: skip
        d.record(row, {field: any_of(None, one, two)}, cells=[*row, one, two])
    d.tell(field)
    return d.any("book csv")


@stranger("second_all_zero_column_named_as_field", right=False)
def _(rng: Random) -> Case:
    """The column with the field's name is blank; the values stand under a name beside it."""
    d = start(rng, "flat tenant", "en")
    bare(d, [{"name": "flat"}, {"name": "tenant"}, {"name": "rent", "type": "money"}])
    d.line(*d.heads, "Rent", "Rent 2025")
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        value = float(rng.randrange(300, 1600))
        d.record(row, {"rent": any_of(None, value)}, cells=[*row, None, value])
    d.tables[0].columns["rent"] = 3
    d.tell("rent")
    return d.any("book csv")
