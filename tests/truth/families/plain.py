"""Tables that leave nothing open: they come out right, without a warning."""

from random import Random

from tests.truth import words
from tests.truth.cases import Case, Sheet, family
from tests.truth.tables import Column, book_case, content, csv_case, either, place, size, some_columns
from tests.truth.writers import as_xlsb


@family("plain_csv", plain=True)
def plain_csv(rng: Random) -> Case:
    made = content(rng, some_columns(rng), size(rng), blanks=rng.choice((0, 0, 0.05, 0.15)))
    return csv_case(made, delimiter=rng.choice(",,;\t|"), ending=rng.choice(("\n", "\r\n")))


@family("plain_book", plain=True)
def plain_book(rng: Random) -> Case:
    made = content(rng, some_columns(rng), size(rng), blanks=rng.choice((0, 0, 0.05, 0.15)))
    sheet = Sheet(rng.choice(("Sheet1", "Data", "Tabelle1", "Members 2026")))
    return book_case(rng, [sheet], [place(sheet, made)], made.fields)


@family("plain_xlsb", plain=True)
def plain_xlsb(rng: Random) -> Case:
    columns = [c for c in some_columns(rng, 4, 9) if c.type not in ("date", "datetime", "percent")]
    made = content(rng, columns, size(rng))
    sheet = Sheet("Sheet1")
    table = place(sheet, made)
    return Case("", 0, "data.xlsb", as_xlsb([sheet]), made.fields, [table])


@family("one_column", plain=True)
def one_column(rng: Random) -> Case:
    """A list under its header: addresses, cities, codes, numbers."""
    rows = rng.choice((3, 5, 8, 12, 20, 36, 50, 80, 120, 300, 700))
    start = rng.randrange(1, 10**5)
    column = rng.choice(
        (
            Column("email", "email", lambda r, n: f"{r.choice(words.FIRST).lower()}{n}@example.com"),
            Column("city", "text", lambda r, n: r.choice(words.CITIES)),
            Column("code", "text", lambda r, n: f"{r.choice('ABC')}{start + n}"),
            Column("number", "integer", lambda r, n: start + r.randrange(5000)),
            Column("amount", "money", lambda r, n: r.randrange(100, 10**6) / 100, lambda v: f"{v:.2f}"),
            Column("name", "text", lambda r, n: f"{r.choice(words.FIRST)} {r.choice(words.LAST)}"),
            Column("product", "text", lambda r, n: f"{r.choice(words.COLOURS)} {r.choice(words.GOODS)}"),
            Column("sku", "text", lambda r, n: f"SKU-{n:05}"),
        )
    )
    return either(rng, content(rng, [column], rows))


@family("id_and_long_text", plain=True)
def id_and_long_text(rng: Random) -> Case:
    """An id beside long texts."""
    columns = [
        Column("id", "integer", lambda r, n: n + 1),
        Column("story", "text", lambda r, n: ". ".join(r.choices(words.SENTENCES, k=r.randrange(1, 12))) + "."),
    ]
    if rng.random() < 0.5:
        columns.append(Column("reply", "text", lambda r, n: ", ".join(r.choices(words.SENTENCES, k=r.randrange(1, 6)))))
    return either(rng, content(rng, columns, rng.choice((3, 6, 12, 30, 90))))


@family("many_rows", plain=True)
def many_rows(rng: Random) -> Case:
    """Long enough for the engine to work in several pieces."""
    made = content(rng, some_columns(rng, 3, 5), rng.choice((1500, 2500, 4100, 6000)), blanks=0.03)
    return either(rng, made, writers="xlsxwriter raw_xml")


@family("many_columns", plain=True)
def many_columns(rng: Random) -> Case:
    """Up to three hundred columns, most of them not declared."""
    columns = [Column("member_id", "text", lambda r, n: f"M{n:05}")]
    for n in range(rng.choice((60, 120, 300))):
        kind = rng.randrange(3)
        if kind == 0:
            column = Column(f"q{n}_score", "integer", lambda r, _: r.randrange(100))
        elif kind == 1:
            column = Column(f"q{n}_share", "decimal", lambda r, _: r.randrange(10_000) / 1000)
        else:
            column = Column(f"q{n}_colour", "text", lambda r, _: r.choice(words.COLOURS))
        column.declared = rng.random() < 0.2
        if not column.declared and kind < 2:
            column.want = None
        columns.append(column)
    made = content(rng, columns, rng.choice((3, 12, 40)))
    sheet = Sheet("Wide")
    return book_case(rng, [sheet], [place(sheet, made)], made.fields, "openpyxl xlsxwriter raw_xml ods")


@family("header_spellings", plain=True)
def header_spellings(rng: Random) -> Case:
    """Case, punctuation, labels and synonyms of a header; columns in any order."""
    columns = some_columns(rng, 3, 9)
    for column in columns:
        way = rng.randrange(5)
        if way == 1:
            column.header = column.name.replace("_", " ").title()
        elif way == 2:
            column.header = column.name.upper().replace("_", "-")
        elif way == 3:
            column.header = f"The {column.name} we use"
            column.spec = {**column.spec, "label": column.header}
        elif way == 4:
            column.header = f"{rng.choice(words.GOODS)} {rng.choice(words.COLOURS)} {column.name[:2]}"
            column.spec = {**column.spec, "synonyms": [column.header.upper()]}
    made = content(rng, columns, size(rng))
    fields = made.fields
    rng.shuffle(fields)
    case = either(rng, made)
    case.fields = fields
    return case


@family("exact_among_near", plain=True)
def exact_among_near(rng: Random) -> Case:
    """A header that is a field's name belongs to that field, whatever else sounds like it."""
    stem = rng.choice(("agent_attorney", "customer", "owner", "employee", "ship_to"))
    parts = ["name", "firm_name", "city", "firm_city", "postal_code", "code", "street", "country_name"]
    rng.shuffle(parts)
    there = parts[: rng.randrange(3, 7)]
    columns = [
        Column(
            f"{stem}_{p}",
            "text",
            lambda r, n, p=p: f"{r.choice(words.CITIES if 'city' in p else words.LAST)} {p[:1]}{n}",
        )
        for p in there
    ]
    for column in columns:
        column.header = column.name.upper() if rng.random() < 0.5 else column.name
    absent = [Column(f"{stem}_{p}") for p in parts[len(there) :]]
    if rng.random() < 0.5 and len(columns) > 3:  # a column that no field is for, near to those that are
        columns[-1].declared = False
    made = content(rng, columns, size(rng))
    case = either(rng, made)
    case.fields = made.fields + [{**c.as_field(), "optional": True} for c in absent]
    for table in case.tables:
        for column in columns:
            if not column.declared and column.head != column.name:
                table.columns[column.head] = table.columns.pop(column.name)
                for row in table.rows:
                    row.wants[column.head] = row.wants.pop(column.name)
    rng.shuffle(case.fields)
    return case
