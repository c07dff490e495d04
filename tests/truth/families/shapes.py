"""Shapes that exports take: index columns, years as headers, all texts, sparse rows, options of the manifest."""

from random import Random

from tests.truth import words
from tests.truth.cases import Case, Row, Sheet, Table, family
from tests.truth.families.numbers import member, texts_case
from tests.truth.families.rows import money_columns, total_row, written
from tests.truth.tables import (
    Column,
    book_case,
    cents,
    content,
    either,
    person,
    place,
    size,
    some_columns,
    tell,
)
from tests.truth.writers import as_csv


@family("all_text", plain=True)
def all_text(rng: Random) -> Case:
    """Nothing but texts under headers that are fields."""
    columns = [
        Column("name", "text", person),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
        Column("country", "text", lambda r, n: r.choice(words.COUNTRIES)),
        Column("colour", "text", lambda r, n: r.choice(words.COLOURS)),
    ][: rng.randrange(2, 5)]
    rng.shuffle(columns)
    return either(rng, content(rng, columns, size(rng)))


@family("all_numbers", plain=True)
def all_numbers(rng: Random) -> Case:
    columns = [
        Column(f"{rng.choice(words.GOODS)}_{n}", "decimal", lambda r, _: r.randrange(1, 10**6) / 100)
        for n in range(rng.randrange(2, 7))
    ]
    return either(rng, content(rng, columns, size(rng)))


@family("sparse_tables", plain=True)
def sparse_tables(rng: Random) -> Case:
    """More blanks than values, the key always there."""
    columns = some_columns(rng, 4, 8)
    return either(rng, content(rng, columns, rng.choice((8, 20, 60, 200)), blanks=rng.choice((0.4, 0.6, 0.8))))


@family("blank_keys", plain=True)
def blank_keys(rng: Random) -> Case:
    """The first column is blank here and there; the rest is not."""
    made = content(rng, some_columns(rng, 4, 7), rng.choice((8, 20, 60)))
    for row in made.values[1:]:
        if rng.random() < 0.2:
            row[0] = None
    return either(rng, made)


@family("equal_rows", plain=True)
def equal_rows(rng: Random) -> Case:
    """The same row several times is several rows."""
    made = content(rng, some_columns(rng, 2, 5), rng.choice((4, 10, 30)))
    made.values = [list(row) for row in made.values for _ in range(rng.choice((1, 1, 2, 5)))]
    return either(rng, made)


@family("index_column", plain=True)
def index_column(rng: Random) -> Case:
    """An export with row numbers under a blank header."""
    columns = some_columns(rng, 3, 6)
    start = rng.choice((0, 1))
    texts = rng.random() < 0.6
    index = Column("?index", "integer", lambda r, n: start + n, header="", declared=False)
    if texts:
        index.want = str
    made = content(rng, [index, *columns], size(rng) + 1)
    sheet = Sheet("Data")
    table = place(sheet, made, texts=texts)
    sheet.rows[0][0] = None
    return written(rng, [sheet], [table], made.fields, texts=texts)


@family("years_as_headers", plain=True)
def years_as_headers(rng: Random) -> Case:
    """`country, 2019, 2020, 2021`: the years name columns."""
    first = rng.randrange(1990, 2018)
    columns: list[Column] = [Column("country", "text", lambda r, n: f"{r.choice(words.COUNTRIES)} {n}")]
    for year in range(first, first + rng.randrange(3, 7)):
        columns.append(Column(str(year), "decimal", lambda r, n: r.randrange(10**3, 10**7) / 100, declared=False))
    made = content(rng, columns, rng.choice((3, 8, 25)))
    sheet = Sheet("Data")
    texts = rng.random() < 0.4
    if texts:
        for column in columns[1:]:
            column.want = repr
    table = place(sheet, made, texts=texts)
    if not texts:
        sheet.rows[0] = [made.head[0], *map(int, made.head[1:])]
    return written(rng, [sheet], [table], made.fields, texts=texts)


@family("headers_with_blanks_and_breaks", plain=True)
def headers_with_breaks(rng: Random) -> Case:
    """Line breaks, outer blanks and units in header cells."""
    columns = some_columns(rng, 3, 6)
    for column in columns:
        said = column.name.replace("_", rng.choice(("\n", " ", "  ")))
        column.header = rng.choice((said, f" {said} ", f"{said}:", said.title()))
    return either(rng, content(rng, columns, size(rng) + 1), writers="openpyxl xlsxwriter raw_xml")


@family("columns_without_values", plain=True)
def columns_without_values(rng: Random) -> Case:
    """Headers over nothing: the fields are there and blank."""
    columns = some_columns(rng, 3, 6)
    made = content(rng, columns, size(rng) + 1)
    for row in made.values:
        row[-1] = None
        if len(columns) > 4:
            row[2] = None
    return either(rng, made)


@family("numbers_stored_as_text", plain=True)
def numbers_stored_as_text(rng: Random) -> Case:
    """Real numbers and numbers typed as texts in one column of a workbook."""
    column = Column("amount", rng.choice(("money", "decimal")), cents)
    made = content(rng, [member(rng), column], rng.choice((5, 15, 60)))
    sheet = Sheet("Data")
    column.cell = lambda v: f"{v:,.2f}" if rng.random() < 0.3 else v
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False)


@family("numbers_in_text_fields", plain=True)
def numbers_in_text_fields(rng: Random) -> Case:
    """Number cells in a text field become the text a person would type."""
    column = Column(
        "code", "text", lambda r, n: r.choice((7, 12.5, 501, -3, 0.1, 10**9, 2.0)),
        want=lambda v: str(int(v)) if v == int(v) else repr(v),
    )  # fmt: skip
    made = content(rng, [Column("name", "text", lambda r, n: f"{person(r)} {n}"), column], rng.choice((4, 12, 40)))
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False)


@family("currencies_mixed", mostly_right=False)
def currencies_mixed(rng: Random) -> Case:
    """Dollars and euros in one column: the numbers stay, and it is said that they are not alike."""
    signs = rng.sample(("$", "€", "£", "CHF "), 2)
    made = content(
        rng,
        [member(rng), Column("price", "money", lambda r, n: r.randrange(100, 10**6) / 100)],
        rng.choice((4, 12, 40)),
    )
    counter = iter(range(10**6))
    made.columns[1].text = lambda v: f"{signs[next(counter) % 5 == 1]}{v:.2f}"
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("currency_mixed", field="price")]
    return case


@family("second_table_of_other_columns")
def second_table(rng: Random) -> Case:
    """A list of codes further right or below that no field is for: left out, and said; or kept as a table of its own."""
    made = content(rng, some_columns(rng, 3, 5), rng.choice((6, 12, 30)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    left: dict[tuple[str, int], str] = {}
    sheet.add([])
    sheet.add([])
    left["Data", sheet.add(["Code", "Meaning"])] = "other table"
    for code, meaning in (("A", "active since birth"), ("B", "broken"), ("C", "closed"), ("D", "don't know")):
        left["Data", sheet.add([code, meaning])] = "other table"
    case = book_case(rng, [sheet], [table], made.fields)
    case.left = left
    case.told = frozenset({"table_unmapped"})
    return case


@family("comment_lines")
def comment_lines(rng: Random) -> Case:
    """`# written by …` above the header of a text file."""
    made = content(rng, some_columns(rng, 3, 6), size(rng) + 2)
    sheet = Sheet("data")
    lines = rng.randrange(1, 4)
    for n in range(lines):
        sheet.add([f"# {rng.choice(('exported by tool 3.1', 'encoding utf-8', 'period 2025-03', 'all sites'))} {n}"])
    table = place(sheet, made, texts=True)
    case = Case(
        "", 0, "data.csv", as_csv(sheet.rows, delimiter=rng.choice(",;\t")), made.fields, [table], sheets=[sheet]
    )
    case.left = {("data", n): "title" for n in range(1, lines + 1)}
    return case


@family("option_total_rows_keep", plain=True)
def option_total_rows(rng: Random) -> Case:
    """`reading.total_rows: keep`: the total is a row like any other."""
    made = content(rng, money_columns(rng), rng.choice((5, 12, 40)))
    sheet = Sheet("Orders")
    table = place(sheet, made)
    total = total_row(made, "Total", made.values)
    table.rows.append(Row(sheet.add(total), {c.name: v for c, v in zip(made.columns, total, strict=True)}))
    case = book_case(rng, [sheet], [table], made.fields)
    case.manifest = {"reading": {"total_rows": "keep"}}
    return case


@family("option_group_rows")
def option_group_rows(rng: Random) -> Case:
    """`reading.group_rows: fill` puts the caption beside each of its rows; `keep` leaves it among them."""
    columns = [
        Column("id", "integer", lambda r, n: 1000 + n),
        Column("amount", "money", cents),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
    ]
    made = content(rng, columns, rng.choice((9, 20)))
    fill = rng.random() < 0.6
    sheet = Sheet("Data")
    sheet.add(made.head)
    table = Table("Data", {"id": 1, "amount": 2, "city": 3}, [])
    left: dict[tuple[str, int], str] = {}
    caption = ""
    for n, (cells, wants) in enumerate(zip(made.cells(), made.wants(), strict=True)):
        if n % 4 == 0:
            caption = f"Region {'NSEW'[n // 4 % 4]}"
            number = sheet.add([caption])
            if fill:
                left["Data", number] = "group"
            else:
                table.rows.append(Row(number, {"id": caption, "amount": None, "city": None}))
        table.rows.append(Row(sheet.add(cells), {**wants, "group": caption} if fill else wants))
    if fill:
        table.columns["group"] = 1
    case = book_case(rng, [sheet], [table], made.fields)
    case.manifest = {"reading": {"group_rows": "fill" if fill else "keep"}}
    case.left = left
    if not fill:
        case.told = frozenset({"type_error"})
    case.note += " fill" if fill else " keep"
    return case


@family("option_header_rows", plain=True)
def option_header_rows(rng: Random) -> Case:
    """`reading.header_rows` says where the header is, however little it looks like one."""
    made = content(rng, some_columns(rng, 3, 5), rng.choice((3, 10, 30)))
    sheet = Sheet("Data")
    above = rng.randrange(0, 3)
    left: dict[tuple[str, int], str] = {}
    for _ in range(above):
        left["Data", sheet.add(["2024", 17, "x"])] = "title"
    table = place(sheet, made)
    case = book_case(rng, [sheet], [table], made.fields)
    case.manifest = {"reading": {"header_rows": [above + 1]}}
    case.left = left
    case.told = frozenset({"rows_outside"})
    return case


@family("option_header_none", plain=True)
def option_header_none(rng: Random) -> Case:
    """`reading.header: none`: columns are known by their letters, the first row is data."""
    columns = some_columns(rng, 3, 5)
    for n, column in enumerate(columns):
        column.spec = {**column.spec, "synonyms": [f"Column {'ABCDEFGH'[n]}"]}
    made = content(rng, columns, size(rng) + 1)
    sheet = Sheet("Data")
    texts = rng.random() < 0.5
    table = place(sheet, made, texts=texts, header=False)
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.manifest = {"reading": {"header": "none"}}
    return case


@family("option_provenance", plain=True)
def option_provenance(rng: Random) -> Case:
    """`output.provenance`: file, sheet and row stand beside each row."""
    made = content(rng, some_columns(rng, 3, 5), size(rng))
    case = either(rng, made)
    case.manifest = {"output": {"provenance": True}}
    for table in case.tables:
        table.columns |= {"source_file": 1, "source_sheet": 1, "source_row": 1}
        for row in table.rows:
            row.wants.update(source_file=case.name, source_sheet=table.sheet, source_row=row.number)
    return case


@family("option_constant_and_default", plain=True)
def option_constant(rng: Random) -> Case:
    """A constant field has its value in every row; a default stands where a cell is blank."""
    made = content(rng, some_columns(rng, 3, 5), size(rng), blanks=0.2)
    city = Column("town", "text", lambda r, n: r.choice(words.CITIES) if r.random() < 0.6 else None)
    made.columns.append(city)
    for n, row in enumerate(made.values):
        row.append(city.value(rng, n))
    case = either(rng, made)
    for column in case.fields:
        if column["name"] == "town":
            column["default"] = "nowhere"
    case.fields.append({"name": "sender", "constant": "acme"})
    for table in case.tables:
        table.columns["sender"] = 1
        for row in table.rows:
            row.wants["sender"] = "acme"
            row.wants["town"] = row.wants["town"] or "nowhere"
    return case


@family("long_tables", plain=True, by_hand=True)
def long_tables(rng: Random) -> Case:
    """Fifty thousand rows."""
    made = content(rng, some_columns(rng, 3, 5), 50_000, blanks=0.02)
    return either(rng, made, writers="xlsxwriter")
