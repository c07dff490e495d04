"""Workbooks with several tables: those that all hold records, and those of which some repeat, sum up or explain others."""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Sheet, Table, family
from tests.truth.tables import Column, Content, book_case, cents, content, person, place, some_columns, tell

REGIONS = ("North", "South", "East", "West", "Centre")
LEFT_OUT = frozenset({"table_assumed", "table_repeated", "table_unmapped"})


def orders(rng: Random, *, keyed: bool = True, start: int | None = None) -> list[Column]:
    first = rng.randrange(1000, 9000) if start is None else start
    day = date(2024, rng.randrange(1, 9), 1)
    columns = [
        Column("order", "text", lambda r, n: f"SO-{first + n}"),
        Column("region", "text", lambda r, n: r.choice(REGIONS[:4])),
        Column("rep", "text", lambda r, n: r.choice(words.FIRST[:5])),
        Column("date", "date", lambda r, n: day + timedelta(days=n * 3)),
        Column("item", "text", lambda r, n: r.choice(words.GOODS[:9])),
        Column("quantity", "integer", lambda r, n: r.randrange(1, 40)),
        Column("amount", "money", lambda r, n: r.randrange(100, 90_000) / 100),
    ]
    picked = rng.sample(range(1, 7), rng.randint(3, 6))
    kept = sorted({*picked, 1, 6})
    return [*(columns[:1] if keyed else ()), *(columns[n] for n in kept)]


def filled(rng: Random, columns: list[Column] | None = None) -> Content:
    return content(rng, columns or orders(rng), rng.choice((8, 12, 30, 90)))


def at(made: Content, name: str) -> list[Any]:
    n = [c.name for c in made.columns].index(name)
    return [row[n] for row in made.values]


def by_group(made: Content, name: str, of: str = "amount") -> dict[Any, list[float]]:
    groups: dict[Any, list[float]] = {}
    for group, number in zip(at(made, name), at(made, of), strict=True):
        groups.setdefault(group, []).append(number)
    return groups


def case_of(rng: Random, sheets: list[Sheet], tables: list[Table], made: Content, left: Iterable[Sheet] = ()) -> Case:
    if rng.random() < 0.3 and len(sheets) > 1 and left:
        sheets = [*sheets[1:], sheets[0]]
    case = book_case(rng, sheets, tables, made.fields)
    case.left = {(s.name, n): "other table" for s in left for n in range(1, len(s.rows) + 1)}
    case.told = LEFT_OUT
    return case


def beside(rng: Random, made: Content, rows: list[list[Any]], name: str) -> Case:
    """Other rows on a sheet of their own, to the right of the table, or below it."""
    sheet, other = Sheet("Data"), Sheet(name)
    where = rng.choice(("sheet", "right", "below"))
    table = place(sheet, made)
    if where == "sheet":
        other.rows = rows
        return case_of(rng, [sheet, other], [table], made, [other])
    left: dict[tuple[str, int], str] = {}
    if where == "right":
        width = len(made.columns) + rng.choice((1, 2))
        for n, row in enumerate(rows):
            if n < len(sheet.rows):
                sheet.rows[n] += [None] * (width - len(sheet.rows[n])) + row
            else:
                left[sheet.name, sheet.add([None] * width + row)] = "other table"
    else:
        for _ in range(rng.choice((2, 3))):
            sheet.add([])
        left |= {(sheet.name, sheet.add(list(row))): "other table" for row in rows}
    case = case_of(rng, [sheet], [table], made)
    case.left, case.note = left, f"{case.note} {where}"
    return case


# --- all of them hold records ----------------------------------------------------------------------------------------


@family("month_sheets", plain=True)
def month_sheets(rng: Random) -> Case:
    """A sheet for each month, with the same header."""
    months = words.MONTHS[rng.choice(("en", "de", "fr"))].split()[: rng.choice((2, 3, 6, 12))]
    start, sheets, tables, made = rng.randrange(1000, 5000), [], [], None
    columns = orders(rng, keyed=rng.random() < 0.7, start=0)
    for n, month in enumerate(months):
        if columns[0].name == "order":
            columns[0].value = lambda r, k, first=start + n * 100: f"SO-{first + k}"
        made = content(rng, columns, rng.choice((3, 8, 20)))
        sheets.append(Sheet(month))
        tables.append(place(sheets[-1], made))
    assert made is not None
    return book_case(rng, sheets, tables, made.fields)


@family("timesheets_by_week", plain=True)
def timesheets_by_week(rng: Random) -> Case:
    """The same people every week, other hours."""
    people = [f"{first} {words.LAST[n]}" for n, first in enumerate(rng.sample(words.FIRST, rng.choice((4, 9))))]
    sheets, tables, made = [], [], None
    for week in range(rng.choice((2, 5))):
        columns = [
            Column("name", "text", lambda r, n: people[n]),
            Column("project", "text", lambda r, n: r.choice(("Alpha", "Beta"))),
            Column("hours", "decimal", lambda r, n: r.randrange(60, 200) / 4),
        ]
        made = content(rng, columns, len(people))
        sheets.append(Sheet(f"Week {week + 1}"))
        tables.append(place(sheets[-1], made))
    assert made is not None
    return book_case(rng, sheets, tables, made.fields)


@family("payroll_by_month", plain=True)
def payroll_by_month(rng: Random) -> Case:
    """The same people with the same pay every month, and only the sheet's name says which month it is."""
    columns = [
        Column("employee", "integer", lambda r, n: 4000 + n),
        Column("name", "text", lambda r, n: f"{words.FIRST[n]} {words.LAST[n]}"),
        Column("pay", "money", lambda r, n: r.randrange(2000, 9000) + 0.5),
    ]
    made = content(rng, columns, rng.choice((4, 20)))
    names = rng.choice((["Jan", "Feb", "Mar"], ["2024-01", "2024-02"], ["Pay March", "Pay April"], ["Q1", "Q2", "Q3"]))
    names = rng.choice((names, ["KW 12", "KW 13"], ["Week 1", "Week 2"], ["März 24", "April 24"]))
    sheets = [Sheet(name) for name in names]
    return book_case(rng, sheets, [place(sheet, made) for sheet in sheets], made.fields)


@family("sheets_with_a_column_fewer", plain=True)
def sheets_with_a_column_fewer(rng: Random) -> Case:
    """A sheet for each region, some without a column of the others."""
    columns = orders(rng)
    start, sheets, tables = rng.randrange(1000, 5000), [], []
    for n, region in enumerate(REGIONS[: rng.choice((2, 3, 5))]):
        columns[0].value = lambda r, k, first=start + n * 100: f"SO-{first + k}"
        without = rng.choice(columns[1:]).name if n else ""
        made = content(rng, [c for c in columns if c.name != without], rng.choice((3, 8, 20)))
        sheets.append(Sheet(region))
        tables.append(place(sheets[-1], made))
    return book_case(rng, sheets, tables, [c.as_field() for c in columns])


@family("sheets_with_other_headers", plain=True)
def sheets_with_other_headers(rng: Random) -> Case:
    """The same fields under other spellings and in another order."""
    spelled = {"order": "Order", "region": "REGION", "rep": "Rep.", "amount": "Amount", "quantity": "Quantity"}
    columns = orders(rng)
    made = content(rng, columns, rng.choice((4, 12)))
    first = rng.randrange(20_000, 30_000)
    columns[0].value = lambda r, n: f"SO-{first + n}"
    more = content(rng, rng.sample(columns, len(columns)), rng.choice((4, 12)))
    sheets = [Sheet("Old system"), Sheet("New system")]
    tables = [place(sheets[0], made)]
    for column in more.columns:
        column.header = spelled.get(column.name)
    tables.append(place(sheets[1], more))
    return book_case(rng, sheets, tables, made.fields)


@family("a_few_more_records_elsewhere", plain=True)
def a_few_more_records_elsewhere(rng: Random) -> Case:
    """A short sheet of late entries beside a long one."""
    columns = some_columns(rng, 3, 6)
    made = content(rng, columns, rng.choice((20, 60)))
    first = rng.randrange(50_000, 60_000)
    columns[0].value = lambda r, n: first + n if columns[0].type == "integer" else f"M{first + n:06}"
    more = content(rng, columns, rng.choice((2, 3, 5)))
    sheets = [Sheet("List"), Sheet(rng.choice(("Late", "Nachtrag", "New in May", "Sheet2")))]
    tables = [place(sheets[0], made), place(sheets[1], more)]
    return book_case(rng, sheets, tables, made.fields)


@family("files_by_person", plain=True)
def files_by_person(rng: Random) -> Case:
    """A sheet for each person with the same days and much the same hours."""
    day = date(2024, 3, 4)
    sheets, tables, made = [], [], None
    for name in rng.sample(words.FIRST, 3):
        columns = [
            Column("day", "date", lambda r, n: day + timedelta(days=n)),
            Column("task", "text", lambda r, n: r.choice(("plan", "build", "test", "write", "meet"))),
            Column("hours", "decimal", lambda r, n: r.choice((4.0, 7.5, 8.0, 8.5))),
        ]
        made = content(rng, columns, rng.choice((10, 20)))
        sheets.append(Sheet(name))
        tables.append(place(sheets[-1], made))
    assert made is not None
    return book_case(rng, sheets, tables, made.fields)


# --- some of them hold something else --------------------------------------------------------------------------------


@family("summary_by_group")
def summary_by_group(rng: Random) -> Case:
    """Sums by region or rep, with or without a total and a count; on a sheet, to the right or below."""
    made = filled(rng, orders(rng, keyed=rng.random() < 0.8))
    name = rng.choice([c.name for c in made.columns if c.name in ("region", "rep", "item")])
    groups = by_group(made, name)
    counted = rng.random() < 0.4
    rows: list[list[Any]] = [[name, *(["Count"] if counted else []), "amount"]]
    rows += [[g, *([len(v)] if counted else []), round(sum(v), 2)] for g, v in sorted(groups.items())]
    if rng.random() < 0.4:
        rows.append(["Total", *([len(made.values)] if counted else []), round(sum(at(made, "amount")), 2)])
    return beside(rng, made, rows, rng.choice(("Summary", "Sheet2", "Pivot", "Auswertung")))


@family("summary_of_two_fields")
def summary_of_two_fields(rng: Random) -> Case:
    """The list has no more fields than its summary."""
    columns = [
        Column("region", "text", lambda r, n: r.choice(REGIONS[:4])),
        Column("amount", "money", lambda r, n: r.randrange(100, 90_000) / 100),
    ]
    made = filled(rng, columns)
    rows = [["region", "amount"], *([g, round(sum(v), 2)] for g, v in sorted(by_group(made, "region").items()))]
    other = Sheet("By region", rows)
    sheet = Sheet("Data")
    return case_of(rng, [sheet, other], [place(sheet, made)], made, [other])


@family("summary_by_month")
def summary_by_month(rng: Random) -> Case:
    columns = orders(rng)
    if "date" not in [c.name for c in columns]:
        columns.insert(1, Column("date", "date", lambda r, n: date(2024, 1, 1) + timedelta(days=n * 5)))
    made = filled(rng, columns)
    sums: dict[date, float] = {}
    for day, amount in zip(at(made, "date"), at(made, "amount"), strict=True):
        sums[day.replace(day=1)] = sums.get(day.replace(day=1), 0.0) + amount
    texts = rng.random() < 0.5
    rows: list[list[Any]] = [[rng.choice(("Month", "date")), "amount"]]
    rows += [[f"{m:%B %Y}" if texts else m, round(s, 2)] for m, s in sums.items()]
    other = Sheet("Months", rows)
    sheet = Sheet("Orders")
    return case_of(rng, [sheet, other], [place(sheet, made)], made, [other])


@family("year_of_months")
def year_of_months(rng: Random) -> Case:
    """A sheet for each month and one with the sum of each."""
    case = month_sheets(rng)
    other = Sheet("Year", [["Month", "amount"]])
    for table in case.tables:
        other.add([table.sheet, round(sum(row.wants["amount"] for row in table.rows), 2)])
    sheets = [*case.sheets, other] if rng.random() < 0.5 else [other, *case.sheets]
    made = book_case(rng, sheets, case.tables, case.fields)
    made.left = {("Year", n): "other table" for n in range(1, len(other.rows) + 1)}
    made.told = LEFT_OUT
    return made


@family("lists_of_values")
def lists_of_values(rng: Random) -> Case:
    """A sheet with the allowed values of some columns."""
    made = filled(rng)
    names = [c.name for c in made.columns if c.name in ("region", "rep", "item")]
    picked = rng.sample(names, rng.randint(1, len(names)))
    known = {"region": REGIONS, "rep": words.FIRST[:5], "item": words.GOODS[:9]}
    lists = {n: list(known[n]) if rng.random() < 0.5 else sorted(set(at(made, n))) for n in picked}
    rows: list[list[Any]] = [list(picked)]
    for n in range(max(map(len, lists.values()))):
        rows.append([lists[name][n] if n < len(lists[name]) else None for name in picked])
    other = Sheet(rng.choice(("Lists", "Sheet3", "Werte")), rows)
    sheet = Sheet("Data")
    return case_of(rng, [sheet, other], [place(sheet, made)], made, [other])


@family("price_list")
def price_list(rng: Random) -> Case:
    """The goods that the orders name, with columns of their own."""
    prices = {item: rng.randrange(100, 9000) / 100 for item in words.GOODS[:9]}
    columns = [
        Column("order", "text", lambda r, n: f"SO-{n + 500}"),
        Column("customer", "text", person),
        Column("item", "text", lambda r, n: r.choice(words.GOODS[:9])),
        Column("price", "money", lambda r, n: 0.0),
        Column("quantity", "integer", lambda r, n: r.randrange(1, 40)),
    ]
    made = content(rng, columns, rng.choice((30, 60)))
    for row in made.values:
        row[3] = prices[row[2]]
    rows: list[list[Any]] = [["item", "price", "Supplier", "Weight"]]
    rows += [[i, p, rng.choice(words.CITIES), rng.randrange(1, 90)] for i, p in prices.items()]
    other = Sheet("Products", rows)
    sheet = Sheet("Orders")
    return case_of(rng, [sheet, other], [place(sheet, made)], made, [other])


@family("all_and_parts")
def all_and_parts(rng: Random) -> Case:
    """A sheet with all rows and one for each region."""
    made = filled(rng)
    sheet = Sheet(rng.choice(("All", "Total", "Gesamt", "Sheet1")))
    table = place(sheet, made)
    region = [c.name for c in made.columns].index("region")
    bare = rng.random() < 0.5  # the sheet's name says which region it is
    columns = [c for c in made.columns if not bare or c.name != "region"]
    parts = []
    for name in sorted(set(at(made, "region"))):
        rows = [row for row in made.values if row[region] == name]
        if bare:
            rows = [row[:region] + row[region + 1 :] for row in rows]
        parts.append(Sheet(name))
        place(parts[-1], Content(columns, rows))
    sheets = [sheet, *parts] if rng.random() < 0.5 else [*parts, sheet]
    case = book_case(rng, sheets, [table], made.fields)
    case.left = {(s.name, n): "other table" for s in parts for n in range(1, len(s.rows) + 1)}
    case.told = LEFT_OUT
    return case


def _copy(rng: Random, name: str, change: Callable[[Content], Content]) -> Case:
    made = filled(rng, rng.choice((orders, lambda r: some_columns(r, 4, 7)))(rng))
    sheet, other = Sheet("Data"), Sheet(name)
    table = place(sheet, made)
    place(other, change(made))
    case = case_of(rng, [sheet, other], [table], made)  # of two copies the first is used
    case.tells = [tell("table_repeated", "table_assumed")]
    return case


@family("sorted_copies")
def sorted_copies(rng: Random) -> Case:
    """The same rows in another order, and sometimes the columns too."""

    def change(made: Content) -> Content:
        order = list(range(len(made.columns)))
        if rng.random() < 0.4:
            rng.shuffle(order)
        rows = rng.sample(made.values, len(made.values))
        return Content([made.columns[n] for n in order], [[row[n] for n in order] for row in rows])

    return _copy(rng, "sorted", change)


@family("filtered_copies")
def filtered_copies(rng: Random) -> Case:
    """Some of the rows again, as a filter leaves them."""
    return _copy(
        rng,
        "open",
        lambda made: Content(made.columns, [r for r in made.values if rng.random() < 0.4] or made.values[:1]),
    )


@family("older_copies")
def older_copies(rng: Random) -> Case:
    """A copy from before some rows were changed."""

    def change(made: Content) -> Content:
        at_ = [c.name for c in made.columns].index("amount")
        rows = [list(row) for row in made.values]
        for row in rng.sample(rows, max(1, len(rows) // 5)):
            row[at_] = row[at_] + 1.25
        return Content(made.columns, rows[: len(rows) - rng.choice((0, 1))])

    made = filled(rng)
    sheet, other = Sheet("Data"), Sheet(rng.choice(("Data (2)", "Data old", "Backup")))
    table = place(sheet, made)
    place(other, change(made))
    case = case_of(rng, [sheet, other], [table], made)
    case.tells = [tell("table_repeated", "table_assumed")]
    return case


@family("overlapping_exports", mostly_right=False)
def overlapping_exports(rng: Random) -> Case:
    """Two sheets that share some rows and have others of their own: all are used, and it is told."""
    made = content(rng, orders(rng), 20)
    sheets = [Sheet("Export 1"), Sheet("Export 2")]
    tables = [
        place(sheets[n], Content(made.columns, rows)) for n, rows in enumerate((made.values[:14], made.values[7:]))
    ]
    case = book_case(rng, sheets, tables, made.fields)
    case.told, case.tells = LEFT_OUT, [tell("table_repeated")]
    return case


@family("narrow_copies")
def narrow_copies(rng: Random) -> Case:
    """The rows again with some of their columns, the key among them."""

    def change(made: Content) -> Content:
        kept = sorted({0, *rng.sample(range(len(made.columns)), len(made.columns) - 2)})
        return Content([made.columns[n] for n in kept], [[row[n] for n in kept] for row in made.values])

    return _copy(rng, "for print", change)


@family("glossaries")
def glossaries(rng: Random) -> Case:
    """A sheet that says what each column means."""
    made = filled(rng)
    rows: list[list[Any]] = [[rng.choice(("Column", "Field", "item")), rng.choice(("Meaning", "Description"))]]
    rows += [[c.head, rng.choice(words.SENTENCES)] for c in made.columns]
    other = Sheet(rng.choice(("Legend", "Readme", "Sheet2")), rows)
    sheet = Sheet("Data")
    return case_of(rng, [sheet, other], [place(sheet, made)], made, [other])


@family("examples_of_rows")
def examples_of_rows(rng: Random) -> Case:
    """A sheet that shows how a row is to be filled in."""
    made = filled(rng)
    other = Sheet(rng.choice(("Example", "Beispiel", "Exemple", "How to fill in (sample)")))
    columns = list(made.columns)
    columns[0] = Column("order", "text", lambda r, n: f"SO-{n + 1:04}")
    place(other, content(rng, columns, rng.choice((1, 2, 3))))
    sheet = Sheet("Data")
    case = case_of(rng, [sheet, other], [place(sheet, made)], made, [other])
    case.tells = [tell("table_assumed")]
    return case


@family("targets_by_group")
def targets_by_group(rng: Random) -> Case:
    """Amounts by region that are no sums of the rows: nobody can tell, so it is told."""
    made = filled(rng)
    rows: list[list[Any]] = [
        ["region", "amount"],
        *([region, float(rng.randrange(1, 99) * 1000)] for region in REGIONS),
    ]
    return beside(rng, made, rows, rng.choice(("Targets", "Budget", "Sheet2")))


@family("a_single_total_elsewhere")
def a_single_total_elsewhere(rng: Random) -> Case:
    made = filled(rng)
    rows: list[list[Any]] = [["amount", "quantity"][: rng.choice((1, 2))]]
    total = [round(sum(at(made, "amount")), 2), len(made.values)]
    rows.append(total[: len(rows[0])])
    other = Sheet("Total", rows)
    sheet = Sheet("Data")
    return case_of(rng, [sheet, other], [place(sheet, made)], made, [other])


@family("contacts_of_the_same_people", mostly_right=False)
def contacts_of_the_same_people(rng: Random) -> Case:
    """A second list with two of many fields, and other people in it: left out, or used, but told."""
    columns = [
        Column("name", "text", lambda r, n: f"{person(r)} {n}"),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
        Column("country", "text", lambda r, n: r.choice(words.COUNTRIES)),
        Column("amount", "money", cents),
        Column("active", "boolean", lambda r, n: r.random() < 0.5),
    ]
    made = content(rng, columns, 20)
    more = content(rng, columns[:2], 8)
    sheets = [Sheet("Members"), Sheet("Guests")]
    case = book_case(rng, sheets, [place(sheets[0], made), place(sheets[1], more)], made.fields)
    case.told = LEFT_OUT
    return case
