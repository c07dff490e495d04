"""What else people send: odd digits, near sums, forms above tables, damaged bytes, columns that fit two fields."""

from datetime import date, datetime
from random import Random

from tests.truth import words
from tests.truth.cases import AnyOf, Case, Formula, Row, Sheet, Shown, Table, family
from tests.truth.families.delimited import placed, talky, text_case
from tests.truth.families.numbers import STYLES, member, say, texts_case
from tests.truth.families.rows import money_columns, total_row, written
from tests.truth.tables import (
    Column,
    book_case,
    cents,
    content,
    either,
    hours,
    person,
    place,
    size,
    some_columns,
    some_date,
    tell,
)
from tests.truth.writers import as_csv


@family("number_spellings", plain=True)
def number_spellings(rng: Random) -> Case:
    """Exponents, plus signs, bare points, blanks around."""
    ways = (
        lambda v: f"{v:.2f}", lambda v: f"+{v:.2f}" if v > 0 else f"{v:.2f}", lambda v: f" {v:.2f} ",
        lambda v: f"{v:.6E}", lambda v: f"{v:.8e}", lambda v: f"\u00a0{v:.2f}",
    )  # fmt: skip
    way = rng.choice(ways)
    column = Column("value", "decimal", lambda r, n: r.randrange(-9999, 99_999) / 100, way)
    return texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))


@family("other_digits")
def other_digits(rng: Random) -> Case:
    """Full-width and Arabic digits: read, or told."""
    table = str.maketrans("0123456789.", rng.choice(("０１２３４５６７８９．", "٠١٢٣٤٥٦٧٨٩.", "०१२३४५६७८९.")))
    column = Column(
        "value", "decimal", lambda r, n: r.randrange(100, 99_999) / 100, lambda v: f"{v:.2f}".translate(table)
    )
    return texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))


@family("percents_without_a_sign", mostly_right=False)
def percents_without_a_sign(rng: Random) -> Case:
    """45 in a percent field: 45 % or 4,500 %; the file does not say."""
    column = Column(
        "share",
        "percent",
        lambda r, n: r.randrange(1, 100) / 100,
        lambda v: f"{v * 100:.0f}",
    )
    case = texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))
    case.tells = [tell("unit_assumed", field="share")]
    return case


@family("impossible_dates", mostly_right=False)
def impossible_dates(rng: Random) -> Case:
    """The thirtieth of February stays what it is, with a finding."""
    column = Column("due", "date", some_date, lambda v: v if isinstance(v, str) else v.isoformat())
    made = content(rng, [member(rng), column], rng.choice((5, 20)))
    bad = rng.sample(range(len(made.values)), 2)
    for n in bad:
        made.values[n][1] = rng.choice(("2025-02-30", "2025-13-01", "31/31/2025", "0000-00-00", "2025-00-10"))
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("type_error", field="due", row=n + 2) for n in bad]
    return case


@family("months_without_a_day", mostly_right=False)
def months_without_a_day(rng: Random) -> Case:
    """`Mar 2025`, `2025-03`: no day is made up in silence."""
    form = rng.choice(("%b %Y", "%Y-%m", "%m/%Y", "%B %Y"))
    column = Column(
        "month", "date", lambda r, n: date(r.randrange(2000, 2030), r.randrange(1, 13), 1), lambda v: v.strftime(form)
    )
    case = texts_case(rng, [member(rng), column], rng.choice((3, 10)))
    case.tells = [tell("type_error", field="month")]
    return case


@family("compact_dates_in_books", plain=True)
def compact_dates(rng: Random) -> Case:
    """20260131 as a number in a date field."""
    column = Column("due", "date", some_date, cell=lambda v: int(v.strftime("%Y%m%d")))
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=False)


@family("fractions_of_seconds", plain=True)
def fractions_of_seconds(rng: Random) -> Case:
    def moment(r: Random, n: int) -> datetime:
        return datetime(
            2020 + n % 5,
            r.randrange(1, 13),
            r.randrange(1, 29),
            r.randrange(24),
            r.randrange(60),
            r.randrange(60),
            r.randrange(1000) * 1000,
        )

    column = Column("seen", "datetime", moment, lambda v: v.isoformat(rng.choice(" T"), "milliseconds"))
    return texts_case(rng, [member(rng), column], rng.choice((3, 10)))


@family("dates_in_text_fields")
def dates_in_text_fields(rng: Random) -> Case:
    """A date cell in a text field: what the cell shows, or the date in ISO."""
    column = Column(
        "due", "text", some_date, cell=lambda v: Shown((v - date(1899, 12, 30)).days, "dd/mm/yyyy", v.strftime("%d/%m/%Y")),
        want=lambda v: AnyOf((v.isoformat(), v.strftime("%d/%m/%Y"))),
    )  # fmt: skip
    made = content(rng, [member(rng), column], rng.choice((3, 10)))
    sheet = Sheet("Data")
    return written(
        rng, [sheet], [place(sheet, made)], made.fields, texts=False, writers="openpyxl xlsxwriter raw_xml xlwt"
    )


@family("control_characters")
def control_characters(rng: Random) -> Case:
    """Characters that no cell can hold: kept by an escape, or told."""
    sign = rng.choice("\x01\x07\x0b\x1b\x7f\x85")
    column = Column("note", "text", lambda r, n: f"a{sign}b {n}" if r.random() < 0.5 else f"plain {n}")
    made = content(rng, [member(rng), column, Column("score", "integer", lambda r, n: n)], rng.choice((4, 12)))
    sheet, table = placed(made)
    case = text_case(made, as_csv(sheet.rows), table)
    case.note = repr(sign)
    return case


@family("line_breaks_in_cells", plain=True)
def line_breaks_in_cells(rng: Random) -> Case:
    """CR LF and LF inside quoted cells: the lines stay apart."""
    sign = rng.choice(("\n", "\r\n"))
    column = Column(
        "note", "text", lambda r, n: f"first line{sign}second {n}" if r.random() < 0.6 else f"one line {n}",
        want=lambda v: AnyOf((v, v.replace("\r\n", "\n"))),
    )  # fmt: skip
    made = content(rng, [member(rng), column, Column("score", "integer", lambda r, n: n)], rng.choice((4, 12, 50)))
    sheet, table = placed(made)
    return text_case(made, as_csv(sheet.rows, ending=rng.choice(("\n", "\r\n"))), table)


@family("blank_texts", plain=True)
def blank_texts(rng: Random) -> Case:
    """Cells with nothing but blanks are blank; blanks around a text go."""
    made = content(
        rng,
        [
            member(rng),
            Column("city", "text", lambda r, n: r.choice(words.CITIES)),
            Column("score", "integer", lambda r, n: n),
        ],
        rng.choice((5, 20)),
    )
    for row in made.values:
        if rng.random() < 0.3:
            row[1] = None
    sheet = Sheet("Data")
    texts = rng.random() < 0.6
    table = place(sheet, made, texts=texts)
    for row in table.rows:
        cells = sheet.rows[row.number - 1]
        cells[1] = (
            rng.choice((" ", "   ", "\u00a0", "\t"))
            if cells[1] is None
            else rng.choice((cells[1], f" {cells[1]}", f"{cells[1]}\u00a0 "))
        )
    return written(rng, [sheet], [table], made.fields, texts=texts, writers="openpyxl xlsxwriter raw_xml ods")


@family("accidental_sums")
def accidental_sums(rng: Random) -> Case:
    """A row that happens to be the sum of those above it, under a name like the others: it is data."""
    columns = [
        Column("product", "text", lambda r, n: f"{r.choice(words.COLOURS)} {r.choice(words.GOODS)}"),
        Column("pieces", "integer", lambda r, n: r.randrange(1, 5)),
    ]
    made = content(rng, columns, rng.choice((4, 8, 15)))
    at = rng.randrange(2, len(made.values))
    made.values[at][1] = sum(row[1] for row in made.values[:at])
    return either(rng, made)


@family("averages_and_counts", mostly_right=False)
def averages(rng: Random) -> Case:
    """A last row of averages, or of counts: no data, or kept and told."""
    made = content(rng, money_columns(rng), rng.choice((5, 10, 30)))
    sheet = Sheet("Orders")
    table = place(sheet, made)
    out = total_row(made, rng.choice(("Average", "Mean", "Durchschnitt", "Moyenne")), made.values)
    out = [round(v / len(made.values), 2) if isinstance(v, int | float) else v for v in out]
    number = sheet.add(out)
    case = book_case(rng, [sheet], [table], made.fields)
    case.left = {("Orders", number): "total"}
    return case


@family("total_label_elsewhere")
def total_label_elsewhere(rng: Random) -> Case:
    """The word stands beside the numbers, not in the first column."""
    columns = [
        Column("item", "text", lambda r, n: f"{r.choice(words.GOODS)} {n}"),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
        Column("amount", "money", lambda r, n: r.randrange(100, 10**6) / 100),
    ]
    made = content(rng, columns, rng.choice((4, 10, 40)))
    sheet = Sheet("Orders")
    table = place(sheet, made)
    number = sheet.add(
        total_row(made, rng.choice(("Total", "Total:", "TOTAL", "Summe:", "Grand Total")), made.values, label_at=1)
    )
    case = book_case(rng, [sheet], [table], made.fields)
    case.left = {("Orders", number): "total"}
    return case


@family("form_above_table")
def form_above_table(rng: Random) -> Case:
    """Labels and values above the table, one pair a row."""
    made = content(rng, some_columns(rng, 4, 6), rng.choice((5, 12, 40)))
    sheet = Sheet("Order")
    left = {}
    for label, value in rng.sample(
        (
            ("Customer", "Acme Ltd"),
            ("Order", 4711),
            ("Date", "2025-03-01"),
            ("Contact", "Ann Lee"),
            ("Currency", "EUR"),
        ),
        3,
    ):
        left["Order", sheet.add([label, value])] = "title"
    sheet.add([])
    table = place(sheet, made)
    case = book_case(rng, [sheet], [table], made.fields)
    case.left = left
    return case


@family("cover_sheet")
def cover_sheet(rng: Random) -> Case:
    """A sheet of prose before the sheet of data."""
    cover = Sheet(
        "Read me", [["About this file"], [], ["It lists all members of the club."], ["Ask the office if in doubt."]]
    )
    made = content(rng, some_columns(rng, 3, 6), size(rng) + 1)
    sheet = Sheet("Members")
    table = place(sheet, made)
    case = book_case(rng, [cover, sheet], [table], made.fields)
    case.left = {("Read me", n): "note" for n in (1, 3, 4)}
    case.told = frozenset({"no_table"})
    return case


@family("sheets_of_other_order", plain=True)
def sheets_of_other_order(rng: Random) -> Case:
    """The same columns on each sheet, in another order, one more here and there."""
    columns = some_columns(rng, 3, 6)
    sheets, tables = [], []
    for n in range(rng.randrange(2, 4)):
        mine = columns[:]
        rng.shuffle(mine)
        if n == 1 and len(mine) > 3:
            mine.pop()
        sheet = Sheet(f"Part {n}")
        tables.append(place(sheet, content(rng, mine, rng.choice((3, 8, 20)))))
        sheets.append(sheet)
    return book_case(rng, sheets, tables, [c.as_field() for c in columns])


@family("rows_of_no_value")
def rows_of_no_value(rng: Random) -> Case:
    """Rows of n/a in typed columns: kept, each cell told."""
    columns = [
        member(rng),
        hours(lambda v: v if isinstance(v, str) else f"{v:.2f}"),
        Column("score", "integer", lambda r, n: r.randrange(90)),
    ]
    made = content(rng, columns, rng.choice((6, 20, 60)))
    bad = {0, rng.randrange(len(made.values))} if rng.random() < 0.5 else {rng.randrange(len(made.values))}
    for n in bad:
        made.values[n][1:] = ["n/a", "n/a"]
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("type_error", field="hours", row=n + 2) for n in bad]
    return case


@family("header_only")
def header_only(rng: Random) -> Case:
    """A header and no rows: the job fails and says so; nothing is made up."""
    made = content(rng, some_columns(rng, 3, 6), 0)
    case = either(rng, made)
    case.fails = frozenset({"empty_input"})
    return case


@family("mixed_line_endings", plain=True)
def mixed_line_endings(rng: Random) -> Case:
    made = content(rng, some_columns(rng, 3, 6), rng.choice((6, 20)))
    sheet, table = placed(made)
    body = as_csv(sheet.rows, ending="\n").decode().split("\n")
    return text_case(made, "".join(line + rng.choice(("\n", "\r\n")) for line in body[:-1]), table)


@family("blank_lines_and_eof_marks", plain=True)
def blank_lines(rng: Random) -> Case:
    """Blank lines, lines of delimiters, a DOS end-of-file mark."""
    made = content(rng, some_columns(rng, 3, 6), rng.choice((6, 20)))
    sheet, table = placed(made)
    body = as_csv(sheet.rows, ending="\n") + rng.choice((b"", b"\n\n", b",,\n", b"\x1a", b"   \n"))
    return text_case(made, body, table)


@family("damaged_utf8", mostly_right=False)
def damaged_utf8(rng: Random) -> Case:
    """One byte that is no UTF-8 in a file that is: the others keep their letters, and the file says so."""
    pool = words.SCRIPTS[rng.choice(("western", "central", "cyrillic", "japanese"))]
    columns = [
        Column("id", "integer", lambda r, n: n + 1),
        Column("name", "text", lambda r, n: f"{r.choice(pool)} {n}"),
        Column("score", "integer", lambda r, n: n),
    ]
    made = content(rng, columns, rng.choice((10, 60, 300)))
    sheet, table = placed(made)
    at = rng.randrange(len(made.values))
    body = as_csv(sheet.rows, ending="\n").split(b"\n")
    body[at + 1] = body[at + 1].replace(b" ", b" \xff", 1)
    case = text_case(made, b"\n".join(body), table)
    case.encoding = "utf-8"
    case.tells = [tell("undecodable", "encoding_assumed")]
    table.rows[at].wants["name"] = AnyOf(
        (made.values[at][1].replace(" ", " \ufffd"), made.values[at][1].replace(" ", " ÿ"))
    )
    return case


@family("utf16_without_a_mark")
def utf16_without_a_mark(rng: Random) -> Case:
    made = talky(rng, ("Zoë Größe", "naïve"))
    sheet, table = placed(made)
    case = text_case(made, as_csv(sheet.rows, encoding=rng.choice(("utf-16-le", "utf-16-be"))), table)
    case.encoding = "utf-16"
    return case


@family("two_columns_for_a_field", mostly_right=False)
def two_columns_for_a_field(rng: Random) -> Case:
    """`Phone 1` and `Phone 2` for one field: neither is taken without a word, and both stay."""
    columns = [
        Column("name", "text", person),
        Column("?1", "text", lambda r, n: f"555-100{r.randrange(1000, 9999)}", header="Phone 1", declared=False),
        Column("?2", "text", lambda r, n: f"555-200{r.randrange(1000, 9999)}", header="Phone 2", declared=False),
    ]
    made = content(rng, columns, rng.choice((3, 10, 30)))
    case = either(rng, made)
    case.fields.append({"name": "phone", "type": "text"})
    for table in case.tables:
        for row in table.rows:
            row.wants["phone"] = None
        table.columns["phone"] = 2
    return case


@family("halves_of_names", plain=True)
def halves_of_names(rng: Random) -> Case:
    """`first_name`, `last_name`, `start_date`, `end_date`, `billing_city`, `shipping_city`: never crossed."""
    pairs = rng.sample(
        (
            ("first_name", "last_name"),
            ("start_date", "end_date"),
            ("billing_city", "shipping_city"),
            ("net_amount", "gross_amount"),
        ),
        2,
    )
    columns = [member(rng)]
    for pair in pairs:
        for name in pair:
            kind = "date" if "date" in name else "money" if "amount" in name else "text"
            make = (
                some_date
                if kind == "date"
                else cents
                if kind == "money"
                else (lambda r, n, p=name: f"{r.choice(words.LAST)} {p[0]}{n}")
            )
            columns.append(Column(name, kind, make, header=name.replace("_", " ").title()))
    rng.shuffle(columns)
    return either(rng, content(rng, columns, size(rng) + 1))


@family("formula_kinds", plain=True)
def formula_kinds(rng: Random) -> Case:
    """Formulas that gave an empty text, a text, a number."""
    columns = [
        member(rng),
        Column("label", "text", lambda r, n: r.choice((*words.CITIES[:3], None)), cell=lambda v: v),
        Column("gross", "decimal", lambda r, n: r.randrange(100, 9999) / 100, cell=lambda v: Formula("=A1*2", v)),
    ]
    made = content(rng, columns, rng.choice((4, 12)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    for row in table.rows:
        value = sheet.rows[row.number - 1][1]
        sheet.rows[row.number - 1][1] = Formula('=IF(A1="","","x")', value or "")
    return written(rng, [sheet], [table], made.fields, texts=False, writers="raw_xml")


@family("accounting_formats", plain=True)
def accounting_formats(rng: Random) -> Case:
    """Numbers under every kind of number format stay numbers."""
    form = rng.choice(
        (
            "#,##0.00 €",
            '_-* #,##0.00\\ "kr"_-;-* #,##0.00',
            "0.00E+00",
            "#,##0.00_);[Red](#,##0.00)",
            "0.0%",
            "# ?/?",
            "[>100]0.0;0.00",
            '"No. "0',
        )
    )
    column = Column("amount", rng.choice(("money", "decimal")), cents, cell=lambda v: Shown(v, form, ""))
    made = content(rng, [member(rng), column], rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    case = written(
        rng, [sheet], [place(sheet, made)], made.fields, texts=False, writers="openpyxl xlsxwriter raw_xml xlwt"
    )
    case.note += f" {form}"
    return case


@family("ledger_balances", plain=True)
def ledger_balances(rng: Random) -> Case:
    """A running balance beside amounts: no row of it is a total."""
    columns = [
        Column("booked", "date", some_date),
        Column("text", "text", lambda r, n: r.choice(words.SENTENCES)),
        Column("amount", "money", cents, lambda v: f"{v:.2f}"),
        Column("balance", "money", cents, lambda v: f"{v:.2f}"),
    ]
    made = content(rng, columns, rng.choice((5, 15, 60)))
    balance = 0.0
    for row in made.values:
        balance = round(balance + row[2], 2)
        row[3] = balance
    made.values[0][1] = rng.choice(("Opening balance", "Balance brought forward", "Saldo"))
    return either(rng, made)


@family("comma_totals", plain=True)
def comma_decimals_with_total(rng: Random) -> Case:
    """A total in a file with comma decimals adds up as well."""
    style = STYLES["comma"]
    columns = [
        Column("item", "text", lambda r, n: f"{r.choice(words.GOODS)} {n}"),
        Column("amount", "money", lambda r, n: r.randrange(100, 10**6) / 100, lambda v: say(v, style)),
    ]
    made = content(rng, columns, rng.choice((4, 10, 40)))
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    total = round(sum(row[1] for row in made.values), 2)
    number = sheet.add([rng.choice(("Summe", "Gesamtsumme", "Total")), say(total, style)])
    case = written(rng, [sheet], [table], made.fields, texts=True)
    case.left = {("data", number): "total"}
    return case


@family("hierarchies")
def hierarchies(rng: Random) -> Case:
    """An outline: the parent's name only in its first row, blanks below, children in the next column."""
    sheet = Sheet("Data")
    sheet.add(["region", "city", "amount"])
    table = Table("Data", {"region": 1, "city": 2, "amount": 3}, [])
    for n in range(rng.choice((6, 15, 40))):
        region = rng.choice(("North", "South", "East")) if n % rng.choice((2, 3)) == 0 else None
        row = {"region": region, "city": rng.choice(words.CITIES), "amount": cents(rng)}
        table.rows.append(Row(sheet.add(list(row.values())), row))
    return book_case(rng, [sheet], [table], [{"name": "region"}, {"name": "city"}, {"name": "amount", "type": "money"}])
