"""Which rows are data: lone keys, captions, totals, titles, notes, several tables, hidden parts."""

from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Row, Sheet, Table, family
from tests.truth.tables import (
    Column,
    Content,
    book_case,
    cents,
    content,
    either,
    person,
    place,
    plain_text,
    size,
    some_columns,
    some_date,
    tell,
)
from tests.truth.writers import as_csv


def written(
    rng: Random,
    sheets: list[Sheet],
    tables: list[Table],
    fields: list[dict[str, Any]],
    *,
    texts: bool,
    writers: str = "",
) -> Case:
    """A text file where the cells are texts, else a workbook."""
    if texts:
        sheets[0].name = "data"
        for table in tables:
            table.sheet = "data"
        how = {"delimiter": rng.choice(",;\t"), "ending": rng.choice(("\n", "\r\n"))}
        return Case("", 0, "data.csv", as_csv(sheets[0].rows, **how), fields, tables, sheets=sheets)
    return book_case(rng, sheets, tables, fields, writers)


@family("lone_keys", plain=True)
def lone_keys(rng: Random) -> Case:
    """Rows that hold nothing but their key are data: the key is like the others."""
    start = rng.randrange(1, 5000)
    first = rng.choice(
        (
            Column("sku", "text", lambda r, n: f"SKU-{start + n:05}", spec={"required": True}),
            Column("employee", "text", person, spec={"required": True}),
            Column(
                "email", "email", lambda r, n: f"{r.choice(words.FIRST).lower()}{n}@example.com", spec={"unique": True}
            ),
            Column("sku", "text", lambda r, n: f"{r.choice('ABC')}{start + n}"),
            Column("id", "integer", lambda r, n: start + n),
            Column("employee", "text", person),
        )
    )
    rest = [c for c in some_columns(rng, 3, 5, keyed=False) if c.name != first.name]
    made = content(rng, [first, *rest], rng.choice((8, 11, 25, 60, 200, 400)))
    share = rng.choice((0.03, 0.1, 0.2))
    alone = {n for n in range(len(made.values)) if rng.random() < share} | {
        len(made.values) - 1 if rng.random() < 0.5 else 2
    }
    for n in alone:
        made.values[n][1:] = [None] * len(rest)
    return either(rng, made)


def money_columns(rng: Random) -> list[Column]:
    columns = [
        Column("item", "text", lambda r, n: f"{r.choice(words.COLOURS)} {r.choice(words.GOODS)} {n}"),
        Column("quantity", "integer", lambda r, n: r.randrange(1, 90)),
        Column("amount", "money", lambda r, n: r.randrange(100, 10**6) / 100, lambda v: f"{v:.2f}"),
    ]
    if rng.random() < 0.5:
        columns.insert(1, Column("city", "text", lambda r, n: r.choice(words.CITIES)))
    if rng.random() < 0.3:
        columns.append(Column("ordered", "date", some_date))
    return columns


def total_row(
    made: Content, word: str, rows: list[list[Any]], *, off: float = 0.0, texts: bool = False, label_at: int = 0
) -> list[Any]:
    """A row that sums up `rows`; `off` makes it wrong."""
    out: list[Any] = [None] * len(made.columns)
    out[label_at] = word
    for n, column in enumerate(made.columns):
        if column.type in ("money", "integer"):
            value = sum(r[n] for r in rows)
            value = round(value, 2) + off if column.type == "money" else value + int(off)
            out[n] = (f"{value:.2f}" if column.type == "money" else str(value)) if texts else value
    return out


@family("totals_that_add_up")
def totals_that_add_up(rng: Random) -> Case:
    """A last row with a word for total, in many languages, whose numbers are the sums: it is no data."""
    made = content(rng, money_columns(rng), rng.choice((3, 5, 8, 20, 60, 300)))
    word = rng.choice(words.TOTALS[rng.choice(list(words.TOTALS))])
    texts = rng.random() < 0.4
    sheet = Sheet("Orders")
    table = place(sheet, made, texts=texts)
    if rng.random() < 0.2:
        sheet.add([])
    number = sheet.add(total_row(made, word, made.values, texts=texts))
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, number): "total"}
    case.note += f" {word}"
    return case


@family("groups_and_subtotals")
def groups_and_subtotals(rng: Random) -> Case:
    """Captions over groups of rows, a subtotal under each, a grand total at the end."""
    made = content(rng, money_columns(rng), rng.choice((9, 16, 30, 80)))
    texts = rng.random() < 0.4
    language = rng.choice(list(words.TOTALS))
    both = words.TOTALS[language]
    sheet = Sheet("Orders")
    sheet.add(made.head)
    table = Table(sheet.name, {c.name: n for n, c in enumerate(made.columns, 1)}, [])
    left: dict[tuple[str, int], str] = {}
    cells, wants = (made.texts() if texts else made.cells()), made.wants()
    captions = rng.random() < 0.6
    n = 0
    while n < len(cells):
        upto = min(len(cells), n + rng.randrange(2, 9))
        if captions:
            left[
                sheet.name, sheet.add([rng.choice(("Region North", "Region South", "East", "WEST", "Warehouse 2"))])
            ] = "group"
        for at in range(n, upto):
            number = sheet.add(cells[at])
            table.rows.append(Row(number, wants[at]))
            for column, cell in zip(made.columns, cells[at], strict=True):
                table.sources[number, column.name] = cell
        word = both[1] if len(both) > 1 else both[0]
        left[sheet.name, sheet.add(total_row(made, word, made.values[n:upto], texts=texts))] = "total"
        n = upto
    left[sheet.name, sheet.add(total_row(made, both[0], made.values, texts=texts))] = "total"
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {("data" if texts else s, r): k for (s, r), k in left.items()}
    case.note += f" {language}"
    return case


def _orders(rng: Random) -> tuple[Content, bool, Sheet, Table]:
    made = content(rng, money_columns(rng), rng.choice((5, 8, 20, 60)))
    texts = rng.random() < 0.4
    sheet = Sheet("Orders")
    return made, texts, sheet, place(sheet, made, texts=texts)


@family("totals_that_do_not_add_up", mostly_right=False)
def totals_that_do_not(rng: Random) -> Case:
    """It says total, but the numbers are others: it stays, and the file says so."""
    made, texts, sheet, table = _orders(rng)
    word = rng.choice(words.TOTALS[rng.choice(list(words.TOTALS))])
    out = total_row(made, word, made.values, off=rng.choice((1000.5, -77.25, 31.0)), texts=texts)
    number = sheet.add(out)
    wants = dict.fromkeys(table.columns)
    for column, cell in zip(made.columns, out, strict=True):
        value = cell
        if texts and cell is not None and column.type in ("money", "integer"):
            value = float(cell)
        wants[column.name] = value
        table.sources[number, column.name] = cell
    table.rows.append(Row(number, wants))
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.tells = [tell("total_assumed", row=number)]
    case.note += f" {word}"
    return case


@family("sums_without_a_word", mostly_right=False)
def sums_without_a_word(rng: Random) -> Case:
    """A last row that adds up and does not say so: it stays, and the file says so."""
    made, texts, sheet, table = _orders(rng)
    number = sheet.add(total_row(made, "", made.values, texts=texts))
    sheet.rows[-1][0] = rng.choice((None, "xx", "All of it"))
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, number): "total"}
    return case


@family("sounds_like_total", plain=True)
def sounds_like_total(rng: Random) -> Case:
    """Products and names with a word for total in them are data, wherever they stand."""
    columns = money_columns(rng)
    made = content(rng, columns, rng.choice((5, 8, 20, 60)))
    for n in {len(made.values) - 1, rng.randrange(len(made.values))}:
        made.values[n][0] = rng.choice(words.SOUNDS_LIKE_TOTAL)
    return either(rng, made)


@family("headerless")
def headerless(rng: Random) -> Case:
    """Records from the first row on, and the manifest knows it."""
    columns = some_columns(rng, 3, 6)
    made = content(rng, columns, size(rng) + 1)
    for c in columns:
        c.declared = False
    sheet = Sheet("Sheet1")
    texts = rng.random() < 0.5
    for c in columns:
        c.want = (
            (c.text or plain_text)
            if texts
            else (lambda v, c=c: v if c.cell is None else getattr(c.cell(v), "value", c.cell(v)))
        )
    table = place(sheet, made, texts=texts, header=False)
    table.columns = {f"?{n}": at for n, at in table.columns.items()}
    table.rows = [Row(r.number, {f"?{n}": v for n, v in r.wants.items()}) for r in table.rows]
    table.sources = {(r, f"?{n}"): v for (r, n), v in table.sources.items()}
    case = written(rng, [sheet], [table], [{"name": "unheard_of"}], texts=texts)
    case.manifest = {"reading": {"header": "none"}}
    case.fails = frozenset({"nothing_mapped"})
    return case


@family("first_record_as_header", mostly_right=False)
def first_record_as_header(rng: Random) -> Case:
    """All texts, no header, fields that are not named in the file: never blank columns without a word."""
    columns = [
        Column("name", "text", person, declared=False),
        Column("city", "text", lambda r, n: r.choice(words.CITIES), declared=False),
        Column("country", "text", lambda r, n: r.choice(words.COUNTRIES), declared=False),
    ]
    made = content(rng, columns, rng.choice((2, 3, 6, 20, 80)))
    sheet = Sheet("Sheet1")
    texts = rng.random() < 0.6
    table = place(sheet, made, texts=texts, header=False)
    table.columns = {f"?{n}": at for n, at in table.columns.items()}
    table.rows = [Row(r.number, {f"?{n}": v for n, v in r.wants.items()}) for r in table.rows]
    case = written(rng, [sheet], [table], [{"name": n} for n in ("name", "city", "country")], texts=texts)
    case.fails = frozenset({"nothing_mapped"})
    return case


@family("unknown_headers", mostly_right=False)
def unknown_headers(rng: Random) -> Case:
    """Not one header that a field could have: the job fails and says what it saw."""
    columns = some_columns(rng, 2, 5)
    for n, column in enumerate(columns):
        column.header = f"Mystery {'ABCDEFGH'[n]}"
    made = content(rng, columns, size(rng))
    case = either(rng, made)
    case.tables = []
    case.fields = [{"name": n} for n in ("surname", "town", "land")]
    case.fails = frozenset({"nothing_mapped"})
    return case


@family("title_and_notes")
def title_and_notes(rng: Random) -> Case:
    """A title above, a source or a footnote below, a blank row between or not."""
    made = content(rng, some_columns(rng, 3, 7), rng.choice((4, 8, 20, 60)))
    texts = rng.random() < 0.4
    sheet = Sheet("Report")
    left: dict[int, str] = {}
    for _ in range(rng.randrange(0, 3)):
        left[
            sheet.add(
                [rng.choice(("Members of the club", "Quarterly report 2025", "Export of 3 May 2026", "Confidential"))]
            )
        ] = "title"
    if left and rng.random() < 0.8:
        sheet.add([])
    table = place(sheet, made, texts=texts, left=rng.choice((1, 1, 1, 2)))
    if rng.random() < 0.6:
        sheet.add([])
        left[
            sheet.add(
                [
                    rng.choice(
                        (
                            "Source: the club's own list.",
                            "* without interns",
                            "Note: figures are provisional and may change.",
                            "Printed by the accounting department",
                        )
                    )
                ]
            )
        ] = "note"
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, n): kind for n, kind in left.items()}
    return case


@family("several_sheets", plain=True)
def several_sheets(rng: Random) -> Case:
    """The same table on each sheet of a workbook."""
    columns = some_columns(rng, 3, 6)
    sheets, tables = [], []
    for n in range(rng.randrange(2, 6)):
        sheet = Sheet(f"Month {n + 1}")
        made = content(rng, columns, rng.choice((2, 4, 9, 30)))
        tables.append(place(sheet, made))
        sheets.append(sheet)
    return book_case(rng, sheets, tables, [c.as_field() for c in columns])


@family("tables_below_each_other")
def tables_below(rng: Random) -> Case:
    """The same table again further down, under its own header."""
    columns = some_columns(rng, 3, 6)
    sheet = Sheet("Data")
    tables = []
    for n in range(rng.randrange(2, 4)):
        if n:
            for _ in range(rng.randrange(1, 4)):
                sheet.add([])
        tables.append(place(sheet, content(rng, columns, rng.choice((3, 6, 15, 40)))))
    return book_case(rng, [sheet], tables, [c.as_field() for c in columns])


@family("tables_side_by_side")
def tables_side_by_side(rng: Random) -> Case:
    """Two tables with their own headers, a blank column or two between them."""
    columns = some_columns(rng, 2, 4)
    high = rng.choice((4, 9, 25))
    one = content(rng, columns, high)
    two = content(rng, columns, high if rng.random() < 0.3 else max(3, high - 2))
    sheet = Sheet("Data")
    left = place(sheet, one)
    start = len(columns) + rng.randrange(2, 4)
    right = Table(sheet.name, {c.name: start + n for n, c in enumerate(columns)}, [])
    blank: list[Any] = [None] * (start - 1 - len(columns))
    sheet.rows[0] = sheet.rows[0] + blank + two.head
    for n, (cells, wants) in enumerate(zip(two.cells(), two.wants(), strict=True)):
        sheet.rows[n + 1] = sheet.rows[n + 1] + blank + cells
        right.rows.append(Row(n + 2, wants))
        for column, cell in zip(columns, cells, strict=True):
            right.sources[n + 2, column.name] = cell
    return book_case(rng, [sheet], [left, right], one.fields)


@family("hidden_parts")
def hidden_parts(rng: Random) -> Case:
    """Hidden rows and columns are read unless the manifest skips them; hidden sheets are skipped and named."""
    columns = some_columns(rng, 4, 6)
    made = content(rng, columns, rng.choice((6, 15, 40)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    what = rng.choice(("rows", "rows_skip", "columns", "columns_skip", "sheet", "sheet_read"))
    case_left: dict[tuple[str, int], str] = {}
    manifest: dict[str, Any] = {}
    sheets, tables = [sheet], [table]
    hide = sorted(rng.sample(range(2, len(sheet.rows) + 1), 3))
    if what.startswith("rows"):
        sheet.hidden_rows = set(hide)
        if what == "rows_skip":
            manifest = {"reading": {"hidden_rows": "skip"}}
            table.rows = [r for r in table.rows if r.number not in hide]
            case_left = {("Data", n): "hidden" for n in hide}
    elif what.startswith("columns"):
        at = rng.randrange(1, len(columns))
        sheet.hidden_columns = {at + 1}
        if what == "columns_skip":
            manifest = {"reading": {"hidden_columns": "skip"}}
            name = columns[at].name
            del table.columns[name]
            table.rows = [Row(r.number, {k: v for k, v in r.wants.items() if k != name}) for r in table.rows]
    else:
        other = Sheet("Old", hidden=True)
        old = place(other, content(rng, columns, 4))
        sheets.append(other)
        if what == "sheet_read":
            manifest = {"reading": {"hidden_sheets": "read"}}
            tables.append(old)
        else:
            case_left = {("Old", n): "hidden" for n in range(1, 6)}
    writers = "openpyxl xlsxwriter raw_xml xlwt" + (" ods" if what.startswith(("sheet", "rows")) else "")
    case = book_case(rng, sheets, tables, made.fields, writers)
    case.manifest, case.left = manifest, case_left
    case.note += f" {what}"
    return case


@family("stacked_headers")
def stacked_headers(rng: Random) -> Case:
    """A row of captions, merged or not, over the row of names."""
    made = content(rng, some_columns(rng, 4, 7), rng.choice((4, 10, 30)))
    sheet = Sheet("Data")
    half = len(made.columns) // 2
    top: list[Any] = [None] * len(made.columns)
    top[1], top[half + 1 if half + 1 < len(top) else -1] = "Person", "Account"
    sheet.add(top)
    merged = rng.random() < 0.5
    if merged and half > 1:
        sheet.merges.append((1, 2, 1, half + 1))
    table = place(sheet, made)
    return book_case(rng, [sheet], [table], made.fields, "openpyxl raw_xml ods" if not merged else "openpyxl raw_xml")


@family("blank_rows_and_columns")
def blank_inside(rng: Random) -> Case:
    """Blank rows inside the data, a blank column between two columns, a table that does not begin at A1."""
    columns = some_columns(rng, 3, 6)
    made = content(rng, columns, rng.choice((6, 15, 40)))
    texts = rng.random() < 0.4
    sheet = Sheet("Data")
    for _ in range(rng.choice((0, 0, 1, 3))):
        sheet.add([])
    gaps = rng.sample(range(1, len(made.values)), rng.randrange(0, 4))
    table = place(sheet, made, texts=texts, left=rng.choice((1, 2, 4)), rows=gaps)
    return written(rng, [sheet], [table], made.fields, texts=texts)


@family("repeated_headers")
def repeated_headers(rng: Random) -> Case:
    """A print-out that repeats its header every page."""
    made = content(rng, some_columns(rng, 3, 6), rng.choice((12, 30, 90)))
    texts = rng.random() < 0.5
    sheet = Sheet("Data")
    sheet.add(made.head)
    table = Table(sheet.name, {c.name: n for n, c in enumerate(made.columns, 1)}, [])
    left: dict[int, str] = {}
    page = rng.choice((5, 10, 25))
    cells = made.texts() if texts else made.cells()
    for n, (row, wants) in enumerate(zip(cells, made.wants(), strict=True)):
        if n and n % page == 0:
            left[sheet.add(made.head)] = "repeated_header"
        number = sheet.add(row)
        table.rows.append(Row(number, wants))
        for column, cell in zip(made.columns, row, strict=True):
            table.sources[number, column.name] = cell
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, n): kind for n, kind in left.items()}
    return case


@family("merged_data")
def merged_data(rng: Random) -> Case:
    """A value merged over several rows belongs to each of them: filled where the manifest says so, else told."""
    fill = rng.random() < 0.5
    region = Column("region", "text", lambda r, n: "", spec={"merged": "fill"} if fill else {})
    columns = [region, Column("city", "text", lambda r, n: r.choice(words.CITIES)), Column("amount", "money", cents)]
    made = content(rng, columns, rng.choice((6, 12, 30)))
    sheet = Sheet("Data")
    table = Table("Data", {c.name: n for n, c in enumerate(columns, 1)}, [])
    sheet.add(made.head)
    n = 0
    while n < len(made.values):
        upto = min(len(made.values), n + rng.randrange(1, 5))
        name = rng.choice(("North", "South", "East", "West"))
        top = len(sheet.rows) + 1
        for at in range(n, upto):
            row = made.values[at]
            number = sheet.add([name if at == n else None, *row[1:]])
            table.rows.append(Row(number, {"region": name, "city": row[1], "amount": row[2]}))
        if upto - n > 1:
            sheet.merges.append((top, 1, top + upto - n - 1, 1))
        n = upto
    case = book_case(rng, [sheet], [table], made.fields, "openpyxl xlsxwriter raw_xml xlwt")
    case.told = frozenset({"merged_blank"})
    case.note += " fill" if fill else ""
    return case


@family("undeclared_columns", plain=True)
def undeclared_columns(rng: Random) -> Case:
    """Columns that no field is for are kept under their own header."""
    columns = some_columns(rng, 4, 9)
    texts = rng.random() < 0.4
    for column in columns[1:]:
        if rng.random() < 0.5:
            column.declared = False
            column.header = f"extra {column.name}"
    made = content(rng, columns, size(rng))
    for column in columns:
        if not column.declared:
            column.name = column.head
            if texts:
                column.want = column.text or plain_text
            elif column.cell is not None:
                column.want = lambda v, c=column: getattr(c.cell(v), "value", c.cell(v))
    sheet = Sheet("Data")
    table = place(sheet, made, texts=texts)
    return written(rng, [sheet], [table], made.fields, texts=texts)


@family("duplicate_headers")
def duplicate_headers(rng: Random) -> Case:
    """The same header twice: one is the field, the other is kept under another name."""
    columns = some_columns(rng, 3, 5)
    again = Column(
        f"?{columns[1].name}",
        "text",
        lambda r, n: f"{r.choice(words.COLOURS)} {n}",
        header=columns[1].head,
        declared=False,
    )
    columns.append(again)
    made = content(rng, columns, size(rng) + 2)
    sheet = Sheet("Data")
    table = place(sheet, made)
    return book_case(rng, [sheet], [table], made.fields)
