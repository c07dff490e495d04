"""Files as programs export them: drawn lines, units in headers and formats, rows that are too wide."""

from datetime import date
from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Row, Sheet, Shown, Table, family
from tests.truth.families.delimited import text_case
from tests.truth.families.numbers import member
from tests.truth.families.rows import written
from tests.truth.tables import Column, book_case, cents, content, person, place, some_columns, some_date, tell

WRITERS = "openpyxl xlsxwriter raw_xml xlwt"


@family("ruled_listings")
def ruled_listings(rng: Random) -> Case:
    """A listing with drawn lines, as SAP, psql, mysql and Markdown print it; SAP marks its totals with asterisks."""
    made = content(
        rng,
        [
            Column("name", "text", person),
            Column("start_date", "date", some_date),
            Column("amount", "money", cents, lambda v: f"{v:.2f}"),
        ],
        rng.choice((3, 5, 12)),
    )
    texts = made.texts()
    sort = rng.choice(("sap", "mysql", "markdown"))
    widths = [max(len(str(row[n])) for row in [made.head, *texts]) for n in range(3)]
    line = {
        "sap": "-" * (sum(widths) + 10),
        "mysql": "+" + "+".join("-" * (w + 2) for w in widths) + "+",
        "markdown": "|" + "|".join(rng.choice((" --- ", ":----", " ---: ", ":-----:")) for _ in widths) + "|",
    }[sort]

    def drawn(cells: list[str]) -> str:
        return "| " + " | ".join(str(c).ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"

    lines = [drawn(made.head), line]
    if sort != "markdown":
        lines.insert(0, line)
    table = Table("data", {c.name: n + 2 for n, c in enumerate(made.columns)}, [])
    for cells, wants in zip(texts, made.wants(), strict=True):
        lines.append(drawn(cells))
        table.rows.append(Row(len(lines), wants))
    case = text_case(made, "", table, "data.txt")
    if sort != "markdown":
        lines.append(line)
    if sort == "sap":
        lines += [drawn(["*", "", f"{sum(row[2] for row in made.values):.2f}"]), line]
        case.left = {("data", len(lines) - 1): "total"}
    case.body = "".join(one + "\n" for one in lines).encode()
    case.note = sort
    return case


@family("small_bare_sums", mostly_right=False)
def small_bare_sums(rng: Random) -> Case:
    """A last row of nothing but a sum, however small, is kept and told."""
    made = content(
        rng,
        [
            Column("region", "text", lambda r, n: f"Region {n}"),
            Column("hours", "decimal", lambda r, n: r.randrange(25, 900) / 100, lambda v: f"{v:.2f}"),
        ],
        rng.choice((2, 3, 5, 9)),
    )
    sheet = Sheet("Data")
    table = place(sheet, made, texts=rng.random() < 0.5)
    number = sheet.add([None, round(sum(row[1] for row in made.values), 2)])
    case = written(rng, [sheet], [table], made.fields, texts=False)
    case.left = {(sheet.name, number): "total"}
    return case


@family("unquoted_delimiters", mostly_right=False)
def unquoted_delimiters(rng: Random) -> Case:
    """A thousands comma that is not quoted moves the cells of its row: the row is named."""
    made = content(
        rng,
        [
            Column("member_id", "text", lambda r, n: f"M{n:04}"),
            Column("name", "text", person),
            Column("amount", "money", lambda r, n: r.randrange(100, 99999) / 100, lambda v: f"{v:.2f}"),
        ],
        rng.choice((8, 20)),
    )
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    for n in rng.sample(range(len(made.values)), rng.choice((1, 3))):
        value = rng.randrange(100_000, 999_999) / 100
        sheet.rows[n + 1][2] = f"{value:,.2f}"
        table.rows[n].wants["amount"] = value
        table.sources[table.rows[n].number, "amount"] = f"{value:,.2f}"
    return text_case(made, "".join(",".join(map(str, row)) + "\n" for row in sheet.rows), table)


@family("formats_of_one_unit", plain=True)
def formats_of_one_unit(rng: Random) -> Case:
    """Percent formats are shares however large; several formats of one currency are one currency."""
    unit = rng.choice(("percent", "money", "decimal"))
    forms = {
        "percent": ("0%", "0.0%", "0.00%"),
        "money": ("[$€-407] #,##0.00", '#,##0.00 "EUR"', "#,##0.00 €", '_-* #,##0.00 [$€-1]_-;-* "x"', "0.00"),
        "decimal": ('0.0" kg"', '#,##0.00 "kg"', '0 "KG"', "0.00"),
    }[unit]
    column = Column(
        "figure", unit, lambda r, n: r.randrange(20, 900) / 100, cell=lambda v: Shown(v, rng.choice(forms), "")
    )
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    return book_case(rng, [sheet], [place(sheet, made)], made.fields, WRITERS)


@family("formats_of_several_units", mostly_right=False)
def formats_of_several_units(rng: Random) -> Case:
    """Currencies and units that only the number formats tell apart are told to be lost."""
    kind, forms = rng.choice((("money", ("[$€-407] #,##0.00", '"$"#,##0.00')), ("decimal", ('0.0" kg"', '0.0" lb"'))))
    cells = iter(range(10_000))
    column = Column("figure", kind, cents, cell=lambda v: Shown(v, forms[next(cells) % 2], ""))
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    case = book_case(rng, [sheet], [place(sheet, made)], made.fields, WRITERS)
    case.tells = [tell("currency_mixed", "unit_mixed", field="figure")]
    return case


@family("headers_with_units", plain=True)
def headers_with_units(rng: Random) -> Case:
    """A unit behind the name, in brackets, after a blank or in a row of its own, is not part of the name."""
    columns = [
        member(rng),
        Column("weight", "decimal", cents, header=rng.choice(("Weight (kg)", "weight / kg", "Weight kg", "Weight in kg"))),
        Column("cost", "money", cents, header=rng.choice(("Cost EUR", "cost [€]", "Cost in USD", "Cost €"))),
        Column("margin", "percent", lambda r, n: r.randrange(100) / 100, header="Margin %", cell=lambda v: Shown(v, "0%", "")),
    ]  # fmt: skip
    made = content(rng, columns, rng.choice((4, 15)))
    sheet = Sheet("Data")
    return book_case(rng, [sheet], [place(sheet, made)], made.fields, WRITERS)


@family("headers_with_scales")
def headers_with_scales(rng: Random) -> Case:
    """A header that counts in thousands, and two tables in two currencies, are told."""
    first, second = rng.choice(
        (("Budget in TEUR", None), ("Budget ($ thousands)", None), ("Budget (EUR)", "Budget (USD)"))
    )
    sheets, tables = [], []
    columns = [member(rng), Column("budget", "money", cents)]
    for header in filter(None, (first, second)):
        columns[1].header = header
        made = content(rng, columns, 6)
        sheet = Sheet(f"Sheet{len(sheets) + 1}")
        tables.append(place(sheet, made))
        sheets.append(sheet)
    case = book_case(rng, sheets, tables, made.fields, WRITERS)
    case.tells = [tell("unit_mixed" if second else "scale_ignored", field="budget")]
    return case


@family("digits_like_dates", mostly_right=False)
def digits_like_dates(rng: Random) -> Case:
    """Dates without separators and with two-digit years, stored as numbers, are no day numbers: told, never guessed."""
    form = rng.choice(("%y%m%d", "%d%m%Y", "%m%d%Y"))
    column = Column(
        "start_date", "date", some_date, lambda v: str(int(v.strftime(form))), cell=lambda v: int(v.strftime(form))
    )
    made = content(rng, [member(rng), column], rng.choice((3, 10)))
    made.values[0][1] = date(2015, 11, 23)
    sheet = Sheet("Data")
    texts = rng.random() < 0.5
    case = written(rng, [sheet], [place(sheet, made, texts=texts)], made.fields, texts=texts)
    case.note += f" {form}"
    return case


@family("numbered_columns")
def numbered_columns(rng: Random) -> Case:
    """A row of (1), (2), (3) below the header, as official statistics have it, is no record."""
    made = content(rng, some_columns(rng, 3, 7), rng.choice((3, 8, 30)))
    sheet = Sheet("Data")
    texts = rng.random() < 0.5
    form = rng.choice(("({})", "[{}]"))
    marks = "abcdefg" if rng.random() < 0.3 else "1234567"
    sheet.add(list(made.head))
    number = sheet.add([form.format(marks[n]) for n in range(len(made.columns))])
    table = place(sheet, made, texts=texts, header=False)
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, number): "header"}
    return case


@family("swapped_by_a_program", mostly_right=False)
def swapped_by_a_program(rng: Random) -> Case:
    """Dates that a program of another region read: swapped where that is possible, left as texts where not."""

    def opened(v: date) -> Any:
        return date(v.year, v.day, v.month) if v.day <= 12 else v.strftime("%d/%m/%Y")

    made = content(rng, [member(rng), Column("start_date", "date", some_date, cell=opened)], rng.choice((12, 40)))
    for n in range(3):
        made.values[n][1] = date(2026, 3 + n, 5 + n)
    made.values[3][1] = date(2026, 4, 25)
    sheet = Sheet("Data")
    case = book_case(rng, [sheet], [place(sheet, made)], made.fields)
    case.tells = [tell("date_order_assumed", field="start_date")]
    return case


@family("remarks_between_records", mostly_right=False)
def remarks_between_records(rng: Random) -> Case:
    """What printed pages put between records is told, even where a text could stand."""
    made = content(rng, [Column("name", "text", person), Column("city", "text", lambda r, n: f"City {n}")], 9)
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    remark = rng.choice(("# page 2", "-- end of section --", "Continued on next page", "Seite 2 von 3"))
    at = rng.randrange(3, 8)
    sheet.rows.insert(at, [remark])
    table.rows = [Row(r.number + (r.number > at), r.wants) for r in table.rows]
    table.sources = {}
    case = text_case(made, "".join(",".join(map(str, row)) + "\n" for row in sheet.rows), table)
    case.left = {("data", at + 1): "note"}
    return case


@family("formats_changed_late", mostly_right=False)
def formats_changed_late(rng: Random) -> Case:
    """The currency of the number formats changes thousands of rows down, once or from there on: told."""
    late = rng.randrange(4_100, 4_900)
    once = rng.random() < 0.5
    cells = iter(range(10_000))

    def format_of(n: int) -> str:
        return '"$"#,##0.00' if n == late or (n > late and not once) else "[$€-407] #,##0.00"

    column = Column("figure", "money", cents, cell=lambda v: Shown(v, format_of(next(cells)), ""))
    made = content(rng, [member(rng), column], 5_000)
    sheet = Sheet("Data")
    case = book_case(rng, [sheet], [place(sheet, made)], made.fields, WRITERS)
    case.tells = [tell("currency_mixed", field="figure")]
    return case


@family("percents_and_numbers", mostly_right=False)
def percents_and_numbers(rng: Random) -> Case:
    """45 % and 45 in one column of numbers: each is kept as it is stored, and the column is told."""
    column = Column(
        "figure", "decimal", lambda r, n: r.randrange(1, 99) / 100 if n % 2 else float(r.randrange(2, 99)),
        cell=lambda v: Shown(v, "0%", "") if v < 1 else v,
    )  # fmt: skip
    made = content(rng, [member(rng), column], rng.choice((4, 12)))
    sheet = Sheet("Data")
    case = book_case(rng, [sheet], [place(sheet, made)], made.fields, WRITERS)
    case.tells = [tell("unit_mixed", field="figure")]
    return case


@family("tables_without_a_gap", mostly_right=False)
def tables_without_a_gap(rng: Random) -> Case:
    """Another table right below the first, without a blank row: never the same table without a word."""
    made = content(
        rng,
        [
            Column("name", "text", person),
            Column("city", "text", lambda r, n: r.choice(words.CITIES)),
            *([Column("amount", "money", cents, lambda v: f"{v:.2f}")] if rng.random() < 0.4 else []),
        ],
        rng.choice((3, 8, 40, 300)),
    )
    texts = rng.random() < 0.5
    sheet = Sheet("Data")
    table = place(sheet, made, texts=texts)
    heads = (("Product", "Supplier", "Price"), ("sku", "brand", "unit_cost"), ("ARTIKEL", "LIEFERANT", "PREIS"), ("order_id", "customer", "total_amount"))  # fmt: skip
    width = len(made.columns)
    left = {sheet.add(list(rng.choice(heads))[:width]): "header"}
    for n in range(rng.choice((2, 5))):
        cells = [f"P{rng.randrange(99)}{'abc'[n % 3]}", rng.choice(words.COLOURS), round(rng.random() * 90, 2)]
        left[sheet.add([str(c) if texts else c for c in cells[:width]])] = "data of another table"
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, number): why for number, why in left.items()}
    case.tells = [tell("record_assumed", row=min(left))]
    return case


@family("headers_in_another_order", plain=True)
def headers_in_another_order(rng: Random) -> Case:
    """The header again, its names in another order: what follows has its columns in that order."""
    made = content(rng, some_columns(rng, 3, 5), rng.choice((3, 12, 60)))
    again = content(rng, made.columns[::-1], rng.choice((2, 9)))
    texts = rng.random() < 0.5
    sheet = Sheet("Data")
    tables = [place(sheet, made, texts=texts), place(sheet, again, texts=texts)]
    return written(rng, [sheet], tables, made.fields, texts=texts)


@family("rows_about_columns")
def rows_about_columns(rng: Random) -> Case:
    """Types, bare column numbers or the identifiers of a survey tool below the header are no records."""
    made = content(
        rng,
        [Column("name", "text", person), Column("city", "text", lambda r, n: r.choice(words.CITIES)),
         Column("start_date", "date", some_date), Column("hours", "decimal", lambda r, n: r.randrange(99) / 4, lambda v: f"{v:.2f}")],
        rng.choice((3, 12)),
    )  # fmt: skip
    made.columns = made.columns[: rng.choice((3, 4))]
    made.values = [row[: len(made.columns)] for row in made.values]
    width = len(made.columns)
    texts = rng.random() < 0.5
    extra: list[list[Any]] = rng.choice(
        (
            [["varchar(20)", "string", "date", "decimal(10,2)"]],
            [["Text", "Text", "Date", "Number"]],
            [["1", "2", "3", "4"] if texts else [1, 2, 3, 4]],
            [
                ["What is your name?", "Where?", "Since when?", "How long?"],
                [f'{{"ImportId":"QID{n}"}}' for n in range(4)],
            ],
        )
    )
    sheet = Sheet("Data")
    sheet.add(list(made.head))
    left = [sheet.add(row[:width]) for row in extra]
    table = place(sheet, made, texts=texts, header=False)
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    case.left = {(sheet.name, number): "about the columns" for number in left}
    return case


@family("rows_that_may_explain", mostly_right=False)
def rows_that_may_explain(rng: Random) -> Case:
    """Questions, examples and remarks for whoever fills the sheet in, below the header: told."""
    made = content(
        rng, [Column("name", "text", person), Column("city", "text", lambda r, n: r.choice(words.CITIES))], 6
    )
    sheet = Sheet("Data")
    sheet.add(list(made.head))
    number = sheet.add(list(rng.choice((["Your name?", "Where do you live?"], ["e.g. John Smith", "e.g. London"], ["required", "optional"]))))  # fmt: skip
    table = place(sheet, made, texts=True, header=False)
    case = written(rng, [sheet], [table], made.fields, texts=rng.random() < 0.5)
    case.left = {(sheet.name, number): "about the columns"}
    case.tells = [tell("record_assumed", row=number)]
    return case


@family("trailers", mostly_right=False)
def trailers(rng: Random) -> Case:
    """The last line of a mainframe's file: a mark, the number of records, perhaps a sum; or just EOF."""
    made = content(
        rng,
        [
            Column("name", "text", person),
            Column("city", "text", lambda r, n: r.choice(words.CITIES)),
            Column("amount", "money", lambda r, n: r.randrange(1, 900) / 100, lambda v: f"{v:.2f}"),
        ],
        rng.choice((4, 9, 30)),
    )
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    last = rng.choice((["T", str(len(made.values)), f"{sum(row[2] for row in made.values):.2f}"], ["TRL", str(len(made.values))], ["EOF"], ["*** END"]))  # fmt: skip
    number = sheet.add(list(last))
    case = text_case(made, "".join(",".join(map(str, row)) + "\n" for row in sheet.rows), table)
    case.left = {("data", number): "trailer"}
    return case


@family("carried_forward", plain=True)
def carried_forward(rng: Random) -> Case:
    """Printed pages carry the sum so far to the next one: neither line is a record."""
    columns = [
        Column("name", "text", person),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
        Column("amount", "money", lambda r, n: r.randrange(1, 9000) / 100, lambda v: f"{v:.2f}"),
    ]
    texts = rng.random() < 0.5
    end, start = rng.choice((("Carried forward", "Brought forward"), ("Übertrag", "Übertrag"), ("à reporter", "à reporter"), ("A riportare", "Riporto")))  # fmt: skip
    sheet = Sheet("Data")
    made = content(rng, columns, rng.choice((4, 20)))
    more = content(rng, columns, rng.choice((3, 8)))
    so_far = round(sum(row[2] for row in made.values), 2)
    tables = [place(sheet, made, texts=texts)]
    left = [
        sheet.add([word, None, f"{so_far:.2f}" if texts else so_far]) for word in (end, start)[: rng.choice((1, 2))]
    ]
    tables.append(place(sheet, more, texts=texts, header=False))
    case = written(rng, [sheet], tables, made.fields, texts=texts)
    case.left = {(sheet.name, number): "total" for number in left}
    return case


@family("copied_sheets")
def copied_sheets(rng: Random) -> Case:
    """A sheet and its copy: every row comes out once, and the copy is told."""
    made = content(rng, some_columns(rng, 3, 6), rng.choice((3, 20)))
    sheets = [Sheet("Data"), Sheet("Data (2)")]
    for _ in range(rng.choice((0, 2))):
        sheets[1].add([])
    tables = [place(sheet, made) for sheet in sheets]
    case = book_case(rng, sheets, tables[:1], made.fields)
    case.tells = [tell("table_repeated")]
    return case
