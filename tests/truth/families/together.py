"""Tables that belong together, and values around them: labels, captions, blocks, months across, blank cells below."""

from collections.abc import Callable
from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Row, Sheet, Table, family
from tests.truth.families.rows import written
from tests.truth.tables import Column, Content, book_case, content, place, tell

SIZES = (3, 4, 6, 9, 15, 40, 120)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
REGIONS = ("North", "South", "East", "West", "Centre", "Islands", "Coast", "Hills")
# A label, what it may be called in a sheet, and how its values come about.
LABELS: tuple[tuple[str, tuple[str, ...], Callable[[Random], str]], ...] = (
    ("Account", ("Account", "ACCOUNT", "account"), lambda r: f"DE{r.randrange(10**9, 10**10)}"),
    ("Customer no", ("Customer No.", "customer_no", "Customer no"), lambda r: f"C-{r.randrange(1000, 9999)}"),
    ("Period", ("Period", "PERIOD", "period"), lambda r: f"2024-{r.randrange(1, 13):02}"),
    ("Prepared by", ("Prepared by", "Prepared By"), lambda r: f"{r.choice(words.FIRST)} {r.choice(words.LAST)}"),
)


def stock(rng: Random, rows: int | None = None) -> Content:
    start = rng.randrange(100, 900)
    columns = [
        Column("item", "text", lambda r, n: f"{r.choice(words.GOODS)} {start + n}"),
        Column("quantity", "integer", lambda r, n: r.randrange(1, 90)),
        Column("amount", "money", lambda r, n: r.randrange(100, 10**6) / 100, lambda v: f"{v:.2f}"),
    ]
    if rng.random() < 0.4:
        columns.insert(1, Column("city", "text", lambda r, n: r.choice(words.CITIES)))
    return content(rng, columns, rows or rng.choice(SIZES))


def with_value(table: Table, name: str, value: Any) -> None:
    """Every row of a table has this value, which is in none of its columns."""
    table.columns[name] = 1
    table.rows = [Row(row.number, {**row.wants, name: value}) for row in table.rows]


def again(rng: Random, made: Content, rows: int | None = None) -> Content:
    """Other rows under the same header."""
    return content(rng, made.columns, rows or rng.choice(SIZES))


def labelled(rng: Random, sheet: Sheet, count: int) -> dict[str, str]:
    """Write a form of labels and values, in one of the ways people do; returns what they are."""
    chosen = rng.sample(LABELS, count)
    values = {name: make(rng) for name, _, make in chosen}
    spelled = {name: rng.choice(ways) for name, ways, _ in chosen}
    how = rng.choice(("right", "right", "colon", "cell", "far") if count < 3 else ("right", "colon", "cell", "below"))
    if how == "below":
        sheet.add([spelled[name] for name in values])
        sheet.add(list(values.values()))
    for name, value in values.items() if how != "below" else ():
        sheet.add(
            {
                "right": [f"{spelled[name]}:" if count < 3 else spelled[name], value],
                "colon": [f"{spelled[name]}:", value],
                "cell": [f"{spelled[name]}: {value}"],
                "far": [f"{spelled[name]}:", None, None, value],
            }[how]
        )
    return values


def sources(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name.lower().replace(" ", "_"), "from": {"label": name}} for name in values]


@family("label_above", plain=True)
def label_above(rng: Random) -> Case:
    """An account, a customer, a period above the table are fields of its rows."""
    sheet = Sheet(rng.choice(("Sheet1", "Statement", "May")))
    if rng.random() < 0.4:
        sheet.add(["Stock statement"])
        sheet.add([])
    values = labelled(rng, sheet, rng.choice((1, 1, 2, 3, 4)))
    sheet.rows += [[] for _ in range(rng.choice((1, 1, 2, 3)))]
    made = stock(rng)
    texts = rng.random() < 0.3
    table = place(sheet, made, texts=texts)
    for name, value in values.items():
        with_value(table, name.lower().replace(" ", "_"), value)
    case = written(rng, [sheet], [table], [*made.fields, *sources(values)], texts=texts)
    case.told = frozenset({"rows_outside", "table_unmapped", "table_assumed"})
    return case


@family("label_of_each_block")
def label_of_each_block(rng: Random) -> Case:
    """Blocks below each other, each under its own account."""
    sheet, tables = Sheet("Accounts"), []
    made = stock(rng)
    for n in range(rng.choice((2, 3, 5))):
        if n:
            made = again(rng, made)
            sheet.rows += [[] for _ in range(rng.choice((1, 2, 3)))]
        value = f"DE{rng.randrange(10**9, 10**10)}"
        sheet.add(["Account:", value] if rng.random() < 0.7 else [f"Account: {value}"])
        if rng.random() < 0.3:
            sheet.add([])
        tables.append(place(sheet, made))
        with_value(tables[-1], "account", value)
    case = book_case(rng, [sheet], tables, [*made.fields, {"name": "account", "from": {"label": "Account"}}])
    case.told = frozenset({"rows_outside", "table_unmapped", "tables_assumed"})
    return case


@family("label_missing")
def label_missing(rng: Random) -> Case:
    """The label that a required field needs is not there."""
    sheet = Sheet("Sheet1")
    sheet.add(["Customer:", rng.choice(words.LAST)])
    sheet.add([])
    made = stock(rng)
    table = place(sheet, made)
    with_value(table, "account", None)
    field = {"name": "account", "required": rng.random() < 0.5, "from": {"label": "Account"}}
    case = book_case(rng, [sheet], [table], [*made.fields, field])
    case.tells = [tell("label_missing", field="account")]
    return case


def blocks(rng: Random, sheet: Sheet, *, captions: bool, gap: int) -> tuple[list[Table], Content]:
    """Blocks with one header below each other, each under its caption."""
    tables, made = [], stock(rng)
    for n, region in enumerate(rng.sample(REGIONS, rng.choice((2, 3, 5, 8)))):
        if n:
            made = again(rng, made)
            sheet.rows += [[] for _ in range(gap)]
        if captions:
            sheet.add([region])
        tables.append(place(sheet, made))
        if captions:
            with_value(tables[-1], "region", region)
    return tables, made


@family("captions_of_blocks", plain=True)
def captions_of_blocks(rng: Random) -> Case:
    """Blocks under the names of their regions; the manifest says that blank rows part them."""
    sheet = Sheet("Regions")
    tables, made = blocks(rng, sheet, captions=True, gap=rng.choice((1, 2, 3)))
    as_source = rng.random() < 0.5
    field = {"name": "region", "from": {"caption": True}} if as_source else {"name": "region"}
    case = book_case(rng, [sheet], tables, [*made.fields, field])
    case.manifest = {"reading": {"tables": [{"sheet": "Regions", "split": "rows"}]}}
    if not as_source:
        case.manifest["reading"]["captions"] = {"to": "region"}
    return case


@family("captions_of_found_blocks")
def captions_of_found_blocks(rng: Random) -> Case:
    """The same without a word about where the blocks are, with or without blank rows between."""
    sheet = Sheet("Regions")
    tables, made = blocks(rng, sheet, captions=True, gap=rng.choice((0, 1, 2, 3)))
    case = book_case(rng, [sheet], tables, [*made.fields, {"name": "region"}])
    case.manifest = {"reading": {"captions": {"to": "region"}}}
    case.told = frozenset({"tables_assumed"})
    return case


@family("stated_rows", plain=True)
def stated_rows(rng: Random) -> Case:
    """Blocks below each other, parted by blank rows, as the manifest says."""
    sheet = Sheet("Blocks")
    tables, made = blocks(rng, sheet, captions=False, gap=rng.choice((1, 2, 3)))
    case = book_case(rng, [sheet], tables, made.fields)
    case.manifest = {"reading": {"tables": [{"split": rng.choice(("rows", "both"))}]}}
    return case


def side_by_side(rng: Random, sheet: Sheet, *, gap: int, equal: bool) -> tuple[list[Table], Content]:
    """Blocks with one header beside each other."""
    first = stock(rng)
    every = [first, *(again(rng, first, len(first.values) if equal else None) for _ in range(rng.choice((1, 2))))]
    wide, top = len(first.columns) + gap, len(sheet.rows)
    tables = []
    for n, made in enumerate(every):
        own = Sheet(sheet.name, rows=[[] for _ in range(top)])
        tables.append(place(own, made, left=1 + n * wide))
        for at, row in enumerate(own.rows):
            if at == len(sheet.rows):
                sheet.rows.append([])
            kept = sheet.rows[at] + [None] * max(0, n * wide - len(sheet.rows[at])) if row else sheet.rows[at]
            sheet.rows[at] = kept[: n * wide] + row[n * wide :] if row else kept
    return tables, first


@family("stated_columns", plain=True)
def stated_columns(rng: Random) -> Case:
    """Blocks beside each other with one to three blank columns between, as long as each other or not."""
    sheet = Sheet("Halls")
    if rng.random() < 0.4:
        sheet.add(["Stock of all halls"])
        sheet.add([])
    tables, made = side_by_side(rng, sheet, gap=rng.choice((1, 2, 3)), equal=rng.random() < 0.5)
    case = book_case(rng, [sheet], tables, made.fields)
    case.manifest = {"reading": {"tables": [{"sheet": "Halls", "split": "columns"}]}}
    return case


@family("stated_ranges", plain=True)
def stated_ranges(rng: Random) -> Case:
    """The manifest names the ranges, whatever is around them."""
    sheet = Sheet("Halls")
    tables, made = side_by_side(rng, sheet, gap=rng.choice((1, 2)), equal=rng.random() < 0.5)
    ranges = [_range(table, made) for table in tables]
    case = book_case(rng, [sheet], tables, made.fields)
    case.manifest = {"reading": {"tables": [{"sheet": "Halls", "ranges": ranges}]}}
    return case


def _range(table: Table, made: Content) -> str:
    left = min(table.columns.values())
    letters = [chr(64 + left), chr(64 + left + len(made.columns) - 1)]
    return f"{letters[0]}{table.rows[0].number - 1}:{letters[1]}{table.rows[-1].number}"


@family("twins_over_sheets", plain=True)
def twins_over_sheets(rng: Random) -> Case:
    """Sheets with one header; the values of some of them look like another field's."""
    first = rng.randrange(1000, 5000)
    columns = [
        Column("order", "text", lambda r, n: f"SO-{first + n}"),
        Column("contact", "text", lambda r, n: r.choice(words.LAST), header="Contact"),
        Column("town", "text", lambda r, n: r.choice(words.CITIES), header="Place"),
        Column("amount", "money", lambda r, n: r.randrange(100, 10**6) / 100),
    ]
    columns[2].spec = {"synonyms": ["place"]}
    sheets, tables = [], []
    made = content(rng, columns, 8)
    for n, name in enumerate(rng.sample(REGIONS, rng.choice((2, 3, 4)))):
        columns[0].value = lambda r, k, n=n: f"SO-{first + 500 * n + k}"
        made = content(rng, columns, rng.choice((4, 8, 20)))
        sheets.append(Sheet(name))
        tables.append(place(sheets[-1], made))
    return book_case(rng, sheets, tables, made.fields)


@family("places_as_fields", plain=True)
def places_as_fields(rng: Random) -> Case:
    """The file, the sheet and the row are fields."""
    sheets, tables = [], []
    made = stock(rng)
    for n, name in enumerate(rng.sample(REGIONS, rng.choice((1, 2, 3)))):
        made = again(rng, made) if n else made
        sheets.append(Sheet(name))
        tables.append(place(sheets[-1], made))
        with_value(tables[-1], "hall", name)
        tables[-1].columns["line"] = 1
        tables[-1].rows = [Row(row.number, {**row.wants, "line": row.number}) for row in tables[-1].rows]
    fields = [{"name": "hall", "from": {"sheet": True}}, {"name": "line", "type": "integer", "from": {"row": True}}]
    return book_case(rng, sheets, tables, [*made.fields, *fields])


@family("filled_down", plain=True)
def filled_down(rng: Random) -> Case:
    """The name of a group is written once; the cells below are blank."""
    made = stock(rng, rng.choice((6, 12, 30, 90)))
    made.columns.insert(0, Column("hall", "text", lambda r, n: "", spec={"fill_down": True}))
    halls, wants = rng.sample(REGIONS, 4), []
    for n, row in enumerate(made.values):
        is_first = n == 0 or rng.random() < 0.25
        wants.append(halls[len(wants) % 4] if is_first else wants[-1])
        row.insert(0, wants[-1] if is_first or rng.random() < 0.1 else None)
    texts = rng.random() < 0.3
    sheet = Sheet("Sheet1")
    table = place(sheet, made, texts=texts)
    table.rows = [Row(r.number, {**r.wants, "hall": want}) for r, want in zip(table.rows, wants, strict=True)]
    return written(rng, [sheet], [table], made.fields, texts=texts)


@family("months_across", plain=True)
def months_across(rng: Random) -> Case:
    """A column for each month becomes a row for each month; blank cells make none, or one."""
    start, keeps = rng.randrange(100, 900), rng.random() < 0.3
    first = rng.randrange(0, 6)
    names = list(MONTHS[first : first + rng.randrange(3, 7)])
    if rng.random() < 0.4:
        names = [f"2024-{MONTHS.index(name) + 1:02}" for name in names]
    columns = [
        Column("item", "text", lambda r, n: f"{r.choice(words.GOODS)} {start + n}"),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
        *(Column(name, "money", lambda r, n: r.randrange(100, 10**6) / 100, lambda v: f"{v:.2f}") for name in names),
    ]
    made = content(rng, columns, rng.choice(SIZES))
    for n, row in enumerate(made.values):
        for at in range(2, len(row)):
            row[at] = None if n and rng.random() < 0.15 else row[at]
    texts, sheet = rng.random() < 0.3, Sheet("Sheet1")
    placed = place(sheet, made, texts=texts)
    table = Table(placed.sheet, {"item": 1, "city": 2, "month": 1, "amount": 3}, [])
    for row in placed.rows:
        for name in names:
            if keeps or row.wants[name] is not None:
                kept = {"item": row.wants["item"], "city": row.wants["city"]}
                table.rows.append(Row(row.number, {**kept, "month": name, "amount": row.wants[name]}))
    fields = [{"name": "item"}, {"name": "city"}, {"name": "month"}, {"name": "amount", "type": "money"}]
    case = written(rng, [sheet], [table], fields, texts=texts)
    listed = names if names[0] in MONTHS else ["2024-*"]
    unpivot = {"columns": listed, "name_to": "month", "value_to": "amount", "blanks": "keep" if keeps else "drop"}
    case.manifest = {"rows": {"unpivot": unpivot}}
    return case


@family("label_forms")
def label_forms(rng: Random) -> Case:
    """Forms as people lay them out, colons or none, values right or below; what two readings fit is told."""
    sheet = Sheet("Form")
    chosen = rng.sample(LABELS, rng.choice((2, 2, 3)))
    values = {name: make(rng) for name, _, make in chosen}
    asked = dict(list(values.items())[: rng.choice((1, len(values)))])
    colon = rng.choice(("", "", ":", " :"))
    left: list[Any] = [None] * rng.choice((0, 0, 1, 3))
    how = rng.choice(("column", "row", "pairs", "under"))
    if how == "row":
        sheet.add([*left, *(f"{name}{colon}" for name in values)])
        sheet.add([*left, *values.values()])
    elif how == "pairs":
        sheet.add([*left, *(part for name, value in values.items() for part in (f"{name}{colon}", value))])
    for name, value in values.items() if how in ("column", "under") else ():
        if how == "under":
            sheet.add([*left, f"{name}{colon}"])
            sheet.add([*left, value])
            sheet.add([])
        else:
            sheet.add([*left, f"{name}{colon}", value])
    sheet.rows += [[] for _ in range(rng.choice((1, 2)))]
    made = stock(rng)
    texts = rng.random() < 0.3
    table = place(sheet, made, texts=texts)
    for name, value in asked.items():
        with_value(table, name.lower().replace(" ", "_"), value)
    case = written(rng, [sheet], [table], [*made.fields, *sources(asked)], texts=texts)
    case.told = frozenset({"rows_outside", "table_unmapped", "table_assumed", "label_assumed"})
    return case


@family("labels_side_by_side")
def labels_side_by_side(rng: Random) -> Case:
    """Blocks beside each other, each under its own account."""
    sheet = Sheet("Halls")
    accounts = [f"DE{rng.randrange(10**9, 10**10)}" for _ in range(3)]
    sheet.rows = [[], []]
    tables, made = side_by_side(rng, sheet, gap=rng.choice((1, 2, 3)), equal=rng.random() < 0.5)
    for table, account in zip(tables, accounts, strict=False):
        at = min(table.columns.values())
        above = sheet.rows[0] + [None] * (at - 1 - len(sheet.rows[0]))
        sheet.rows[0] = above + (["Account:", account] if rng.random() < 0.7 else [f"Account: {account}"])
        with_value(table, "account", account)
    case = book_case(rng, [sheet], tables, [*made.fields, {"name": "account", "from": {"label": "Account"}}])
    case.manifest = {"reading": {"tables": [{"split": "columns"}]}}
    case.told = frozenset({"rows_outside"})
    return case


@family("months_of_many")
def months_of_many(rng: Random) -> Case:
    """Months across under titles and years, over several sheets, with a sum of the year that is no month."""
    sheets, tables = [], []
    start = rng.randrange(100, 900)
    names = list(MONTHS[: rng.randrange(3, 7)])
    for sheet_name in rng.sample(REGIONS, rng.choice((1, 2, 3))):
        sheet = Sheet(sheet_name)
        if rng.random() < 0.5:
            sheet.add([f"Sales {sheet_name}"])
            sheet.add([])
        items = [f"{rng.choice(words.GOODS)} {start + n}" for n in range(rng.choice((4, 8, 20)))]
        sheet.add(["Item", *names, "Year"])
        table = Table(sheet.name, {"item": 1, "month": 1, "amount": 2, "Year": len(names) + 2}, [])
        for item in items:
            amounts = [rng.randrange(100, 90_000) / 100 if rng.random() < 0.9 else None for _ in names]
            year = round(sum(a for a in amounts if a is not None), 2)
            number = sheet.add([item, *amounts, year])
            for name, amount in zip(names, amounts, strict=True):
                if amount is not None:
                    table.rows.append(Row(number, {"item": item, "month": name, "amount": amount, "Year": year}))
        sheets.append(sheet)
        tables.append(table)
    fields = [{"name": "item"}, {"name": "month"}, {"name": "amount", "type": "money"}]
    case = book_case(rng, sheets, tables, fields)
    case.manifest = {"rows": {"unpivot": {"columns": names, "name_to": "month", "value_to": "amount"}}}
    return case
