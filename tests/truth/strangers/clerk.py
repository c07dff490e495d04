"""Lists that a clerk keeps: to-do lists, remarks, signatures, legends."""

import io
from dataclasses import replace
from random import Random

import openpyxl
from openpyxl.styles import Font

from tests.truth.cases import Sheet
from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import COLS, LAST, Raw, any_of, cols, draft, each, person, size, stranger


@stranger("todo_last_rows_one_cell")
def todo_last_rows_one_cell(rng: Random) -> Stranger:
    d = draft(rng, "task owner due")
    d.header()
    d.records(size(rng))
    for n in range(rng.randint(1, 3)):
        d.record([COLS["task"].make(rng, 900 + n), None, None])
    return d.any()


@stranger("todo_every_third_one_cell", plain=True)
def todo_every_third_one_cell(rng: Random) -> Stranger:
    d = draft(rng, "task owner due remark")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        d.record(row if n % 3 else [row[0], None, None, None])
    return d.any("book csv")


@stranger("required_key_only_at_the_end")
def required_key_only_at_the_end(rng: Random) -> Stranger:
    d = draft(rng, "member_no name city email")
    d.cols = [replace(d.cols[0], spec={"required": True, "unique": True}), *d.cols[1:]]
    d.header()
    n = size(rng)
    d.records(n)
    for more in range(rng.randint(1, 2)):
        d.record([f"M{5000 + more}", None, None, None])
    return d.any()


@stranger("companies_short_last_rows", plain=True)
def companies_short_last_rows(rng: Random) -> Stranger:
    """csv with ragged ends: trailing blanks are simply not written."""
    d = draft(rng, "name city phone email")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        d.record(row[: rng.choice((4, 4, 4, 3, 2))])
    return d.csv(pad=False)


@stranger("one_record_after_blank_row")
def one_record_after_blank_row(rng: Random) -> Stranger:
    """Somebody left a row free before the latecomers."""
    d = draft(rng, "member_no name city start_date")
    d.header()
    n = size(rng)
    d.records(n)
    d.line()
    d.records(rng.randint(1, 2), start=n)
    return d.any("book csv")


@stranger("remark_below")
def remark_below(rng: Random) -> Stranger:
    d = draft(rng, "order_no date product quantity amount", "en uk de fr nl")
    d.header()
    d.records(size(rng))
    if rng.random() < 0.6:
        d.line()
    texts = {
        "en": "Prices do not include delivery and are valid until further notice.",
        "de": "Alle Preise verstehen sich ohne Lieferung und gelten bis auf Weiteres.",
        "fr": "Les prix s'entendent hors livraison et sont valables jusqu'à nouvel ordre.",
        "nl": "Alle prijzen zijn exclusief bezorging en gelden tot nader order.",
    }
    d.line(texts[d.loc.lang], why="remark")
    return d.any("book csv")


@stranger("signature_lines", right=False)
def signature_lines(rng: Random) -> Stranger:
    """Place, date and signature under a list of participants."""
    d = draft(rng, "name city phone")
    d.header()
    d.records(size(rng, most=60))
    for _ in range(rng.randint(1, 2)):
        d.line()
    kind = rng.choice(
        (
            ["Date: ________", None, "Signature: ________"],
            ["_________________", None, "_________________"],
            [None, None, "Approved by: ____________"],
        )
    )
    d.line(*kind, why="signature")
    if rng.random() < 0.5:
        d.line("(place, date)", None, "(signature)", why="signature")
    return d.any("book csv")


@stranger("colour_legend_below", right=False)
def colour_legend_below(rng: Random) -> Stranger:
    d = draft(rng, "member_no name city paid")
    d.header()
    d.records(size(rng, most=60))
    d.line()
    for text in rng.sample(
        ["yellow = reminder sent", "green = paid", "red = left the club", "grey = moved away"], rng.randint(2, 4)
    ):
        d.line(text, why="legend")
    return d.book()


@stranger("abbreviations_below", right=False)
def abbreviations_below(rng: Random) -> Stranger:
    """A key of codes in two columns under a list of four."""
    d = draft(rng, "staff_no name department remark")
    d.header()
    for n in range(size(rng, most=120)):
        row = d.values(n)
        d.record([*row[:3], rng.choice("UKXF")])
    d.line()
    for short, long in (("U", "holiday"), ("K", "ill"), ("X", "present"), ("F", "absent without leave")):
        d.line(short, long, why="legend")
    return d.any("book csv")


@stranger("continued_on_next_page")
def continued_on_next_page(rng: Random) -> Stranger:
    d = draft(rng, "invoice_no date name amount", "en de fr")
    word = {"en": "continued on next page", "de": "Fortsetzung nächste Seite", "fr": "suite page suivante"}[d.loc.lang]
    d.header()
    n = rng.choice((20, 30, 60))
    for start in range(0, n, 10):
        d.records(10, start=start)
        if start + 10 < n:
            d.line(None, None, word, None, why="page line")
            d.header()
    return d.any("book csv")


@stranger("dashes_under_header")
def dashes_under_header(rng: Random) -> Stranger:
    d = draft(rng, "order_no product quantity unit_price")
    d.header()
    sign = rng.choice("-=_")
    d.line(*[sign * rng.randint(4, 12) for _ in d.cols], why="a ruled line")
    d.records(size(rng))
    if rng.random() < 0.5:
        d.line(*[sign * 8 for _ in d.cols], why="a ruled line")
    return d.any("book csv")


@stranger("blank_between_all_rows", plain=True)
def blank_between_all_rows(rng: Random) -> Stranger:
    d = draft(rng, "member_no name city email")
    d.header()
    for n in range(size(rng, most=60)):
        d.line()
        d.record(d.values(n))
    return d.any("book csv")


@stranger("spacer_columns", plain=True)
def spacer_columns(rng: Random) -> Stranger:
    """A narrow blank column between all columns, for looks."""
    d = draft(rng, "order_no date product quantity amount")
    width = len(d.cols)

    def spread(row: list) -> list:
        return [v for pair in zip(row, [None] * width, strict=True) for v in pair]

    d.line(*spread(d.heads))
    for n in range(size(rng, least=4, most=60)):
        row = d.values(n)
        d.record(row, cells=spread(row))
    for t in d.tables:
        t.columns = {c.field: 1 + 2 * n for n, c in enumerate(d.cols)}
    return d.book()


@stranger("unnamed_number_column", plain=True)
def unnamed_number_column(rng: Random) -> Stranger:
    """A first column 1, 2, 3 … that nobody gave a header."""
    d = draft(rng, "name city email phone")
    d.line(None, *d.heads)
    for n in range(size(rng)):
        row = d.values(n)
        d.record(row, cells=[n + 1, *row])
    for t in d.tables:
        t.columns = {c.field: 2 + n for n, c in enumerate(d.cols)}
    return d.any("book csv")


@stranger("headers_with_marks", plain=True)
def headers_with_marks(rng: Random) -> Stranger:
    """Asterisks, colons and line breaks in headers."""
    d = draft(rng, "name street city email start_date")
    marks = [
        lambda h: f"{h}*",
        lambda h: f"{h}:",
        lambda h: f" {h} ",
        lambda h: h.replace(" ", "\n"),
        lambda h: f"{h} (*)",
    ]
    d.line(*[rng.choice(marks)(h) for h in d.heads])
    d.records(size(rng))
    return d.any("book csv")


@stranger("ditto_marks")
def ditto_marks(rng: Random) -> Stranger:
    d = draft(rng, "order_no name city product")
    mark = rng.choice(('"', "„", "〃", "dito", "ditto", '-"-', "''"))
    d.header()
    last: list = []
    for n in range(size(rng, most=120)):
        row = d.values(n)
        if last and rng.random() < 0.4:
            row[1], row[2] = last[1], last[2]
            d.record(row, cells=[row[0], mark, mark, row[3]])
        else:
            d.record(row)
        last = row
    if not any(mark in r for r in d.page.rows):
        row = [f"B{9000}", last[1], last[2], "Desk lamp"]
        d.record(row, cells=[row[0], mark, mark, row[3]])
    return d.book() if rng.random() < 0.6 else d.csv(delimiter="\t" if mark == '"' else "")


@stranger("inch_marks_are_no_ditto", plain=True)
def inch_marks_are_no_ditto(rng: Random) -> Stranger:
    d = draft(rng, "sku product remark quantity")
    d.header()
    for n in range(size(rng, most=120)):
        row = d.values(n)
        row[2] = rng.choice(('3/4"', '1/2" brass', 'screen 24"', "5' rope", '2" x 4"'))
        d.record(row)
    return d.book()


@stranger("legend_is_a_product_list", plain=True)
def legend_is_a_product_list(rng: Random) -> Stranger:
    """Values that read like remarks, but are the records."""
    d = draft(rng, "order_no remark amount")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        row[1] = rng.choice(
            (
                "Note: fragile",
                "Total loss, see letter",
                "Source: web",
                "* see back",
                "Remark of the driver",
                "Page 2 missing",
            )
        )
        d.record(row)
    return d.any("book csv")


@stranger("caption_dates_over_rows")
def caption_dates_over_rows(rng: Random) -> Stranger:
    """A week plan: the day as a line of its own above its rows."""
    d = draft(rng, "task owner remark", "en uk de fr nl")
    days = {
        "en": "Monday Tuesday Wednesday Thursday",
        "de": "Montag Dienstag Mittwoch Donnerstag",
        "fr": "lundi mardi mercredi jeudi",
        "nl": "maandag dinsdag woensdag donderdag",
    }
    d.header()
    n = 0
    for i, day in enumerate(days[d.loc.lang].split()):
        d.line(f"{day}, {3 + i}.3.2025", why="caption")
        more = rng.randint(2, 6)
        d.records(more, start=n)
        n += more
    return d.any("book csv")


@stranger("section_left_company")
def section_left_company(rng: Random) -> Stranger:
    """The same columns go on below a caption after a blank row."""
    d = draft(rng, "staff_no name department start_date", "en de nl")
    d.header()
    n = size(rng, most=60)
    d.records(n)
    d.line()
    d.line({"en": "Former employees", "de": "Ehemalige", "nl": "Uit dienst"}[d.loc.lang], why="caption")
    d.records(rng.randint(2, 5), start=n)
    return d.any("book csv")


@stranger("newspaper_columns")
def newspaper_columns(rng: Random) -> Stranger:
    """A long list printed in two or three blocks side by side, each with the header."""
    d = draft(rng, "member_no name score")
    blocks, n = rng.choice((2, 3)), size(rng, least=4, most=60)
    gap = [None] if rng.random() < 0.7 else []
    rows = [d.values(i) for i in range(n * blocks)]
    d.line(*[v for b in range(blocks) for v in (d.heads + (gap if b < blocks - 1 else []))])
    for i in range(n):
        picked = [rows[b * n + i] for b in range(blocks)]
        number = d.line(*[v for b, r in enumerate(picked) for v in (r + (gap if b < blocks - 1 else []))])
        for r in picked:
            d.want(number, {c.field: v for c, v in zip(d.cols, r, strict=True)})
    return d.any("book csv")


@stranger("bilingual_header_rows")
def bilingual_header_rows(rng: Random) -> Stranger:
    d = draft(rng, "name street city date amount", "de fr es nl pl sv it")
    d.header()
    d.line(*[c.heads["en"] for c in d.cols], why="second header")
    d.records(size(rng))
    return d.any("book csv")


@stranger("title_block_and_stamp", plain=True)
def title_block_and_stamp(rng: Random) -> Stranger:
    """Title, author and date above the list, as in every office."""
    d = draft(rng, "member_no name street city")
    d.line(rng.choice(("List of members", "Mitgliederliste", "Liste des membres")))
    d.line(f"printed by {person(rng)}")
    d.line()
    d.header()
    d.records(size(rng, least=4))
    return d.any("book csv")


@stranger("deleted_rows_struck", right=False)
def deleted_rows_struck(rng: Random) -> Stranger:
    """A whole record crossed out: the reader has to be asked whether it still counts."""
    d = draft(rng, "member_no name city")
    d.header()
    d.records(size(rng, least=4, most=35))
    case = d.book("openpyxl")
    book = openpyxl.load_workbook(io.BytesIO(case.body))
    at = rng.randint(2, len(d.page.rows))
    for cell in book.worksheets[0][at]:
        cell.font = Font(strike=True)
    out = io.BytesIO()
    book.save(out)
    case.body = out.getvalue()
    d.tell(None, at)
    return case


@stranger("small_table_beside", right=False)
def small_table_beside(rng: Random) -> Stranger:
    """Opening hours or prices next to the list, in columns of their own."""
    d = draft(rng, "member_no name city paid")
    d.line(*d.heads, None, "Fee class", "Fee")
    fees = [["adult", 60], ["child", 20], ["family", 110]]
    for n in range(size(rng, least=5, most=60)):
        row = d.values(n)
        d.record(row, cells=row + ([None, *fees[n]] if n < 3 else []))
    return d.any("book csv")


@stranger("small_table_below")
def small_table_below(rng: Random) -> Stranger:
    """Counts by town below the list; the town is a field of the list too."""
    d = draft(rng, "member_no name city amount", "en de")
    d.header()
    made = d.records(size(rng, least=6, most=120))
    d.line()
    d.line()
    d.line(d.heads[2], d.heads[3], why="second table")
    for town in sorted({r[2] for r in made})[:8]:
        d.line(town, round(sum(r[3] for r in made if r[2] == town), 2), why="second table")
    return d.any("book csv")


@stranger("instructions_sheet")
def instructions_sheet(rng: Random) -> Stranger:
    d = draft(rng, "name street city email start_date")
    d.sheet(rng.choice(("Instructions", "Read me", "Anleitung")))
    for text in (
        "How to fill in this list",
        "1. One person per line",
        "2. Dates as day.month.year",
        "3. Send it back until Friday",
    ):
        d.line(text)
    d.sheet("List")
    d.header()
    d.records(size(rng))
    return d.book()


@stranger("example_sheet")
def example_sheet(rng: Random) -> Stranger:
    """A sheet with two filled-in examples beside the real list."""
    d = draft(rng, "name street city email start_date")
    d.sheet(rng.choice(("Example", "Beispiel", "Exemple")))
    d.header()
    for name in ("Jane Doe", "John Doe"):
        row = d.values(1)
        d.line(name, *row[1:], why="example")
    d.sheet(rng.choice(("Your data", "Sheet2", "Members")))
    d.header()
    d.records(size(rng))
    if rng.random() < 0.5:
        d.sheets.reverse()
    return d.book()


@stranger("example_row_below_header", right=False)
def example_row_below_header(rng: Random) -> Stranger:
    """The first line of a form says how to fill it in."""
    d = draft(rng, "name street city email", "en de")
    d.header()
    d.line("e.g. Jane Doe", "e.g. High Street 1", "e.g. York", "e.g. jane@example.org", why="example")
    d.records(size(rng))
    return d.any("book csv")


@stranger("glossary_sheet")
def glossary_sheet(rng: Random) -> Stranger:
    d = draft(rng, "order_no date product quantity amount", "en uk")
    d.sheet("Orders")
    d.header()
    d.records(size(rng))
    d.sheet("Glossary")
    d.line("Column", "Description")
    for head in d.heads:
        d.line(head, f"what the {head.lower()} of an order is", why="glossary")
    return d.book()


@stranger("allowed_values_sheet")
def allowed_values_sheet(rng: Random) -> Stranger:
    d = draft(rng, "order_no date department product amount")
    d.sheet("Data")
    d.header()
    d.records(size(rng, least=6))
    d.sheet(rng.choice(("Lists", "Listen", "dropdown", "Sheet3")))
    d.line(d.heads[2], why="list")
    for one in ["Sales", "Purchasing", "Warehouse", "Finance", "IT", "Legal", "Marketing", "Service"]:
        d.line(one, why="list")
    if rng.random() < 0.5:
        d.sheets.reverse()
    return d.book()


@stranger("department_sheet_is_the_data", plain=True)
def department_sheet_is_the_data(rng: Random) -> Stranger:
    """A book whose only list is one column of departments, asked for as such."""
    d = draft(rng, "department")
    d.cols = [COLS["department"].called("Department")]
    d.header()
    for one in rng.sample(
        ["Sales", "Purchasing", "Warehouse", "Finance", "IT", "Legal", "Marketing", "Service"], rng.randint(3, 8)
    ):
        d.record([one])
    return d.any("book csv")


@stranger("empty_and_header_only", right=False)
def empty_and_header_only(rng: Random) -> Stranger:
    """No records at all: the job fails or says so."""
    d = draft(rng, "order_no date name amount")
    kind = rng.choice(("nothing", "header", "title", "blank lines"))
    if kind == "header":
        d.header()
    elif kind == "title":
        d.line("Orders of March")
    elif kind == "blank lines":
        d.line("")
    d.note = kind
    if kind == "nothing":
        case = d.text_file(b"")
    else:
        case = d.any("book csv") if kind != "blank lines" else d.text_file(b"\r\n\r\n\r\n")
    case.fails = frozenset(("*", "no_rows"))
    return case


@stranger("wrong_sheet_named", right=False)
def wrong_sheet_named(rng: Random) -> Stranger:
    """The manifest names a sheet that this month's workbook calls otherwise."""
    d = draft(rng, "order_no date name amount")
    d.sheet(rng.choice(("March 2025", "Sheet1", "Export")))
    d.header()
    d.records(size(rng, most=60))
    d.manifest = {"reading": {"sheets": ["Orders"]}}
    case = d.book()
    case.fails = frozenset(("*", "no_rows"))
    return case


@stranger("other_workbook", right=False)
def other_workbook(rng: Random) -> Stranger:
    """Somebody sent the wrong file: nothing that was asked for is in it."""
    d = draft(rng, "team score remark", "en")
    d.header()
    d.records(size(rng, most=60))
    d.fields = [{"name": c.field, "type": c.type} for c in cols("invoice_no due amount email")]
    case = d.any("book csv")
    case.tables = []
    case.fails = frozenset(("*", "nothing_mapped"))
    return case


@stranger("copied_sheet_with_old_data")
def copied_sheet_with_old_data(rng: Random) -> Stranger:
    """`List (2)`: a copy of the first half, from before the rest was typed in."""
    d = draft(rng, "member_no name city email")
    d.sheet("List")
    d.header()
    made = d.records(size(rng, least=6))
    d.sheets.append(Sheet("List (2)", [d.heads, *made[: len(made) // 2]]))
    return d.book()


@stranger("text_that_starts_like_a_formula", plain=True)
def text_that_starts_like_a_formula(rng: Random) -> Stranger:
    d = draft(rng, "sku remark quantity")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        row[1] = rng.choice(("-10% coupon", "@home", "+ plus pack", "=same as above", "'quoted", "#1 seller"))
        d.record(row)
    return d.any("book csv")


@stranger("two_words_for_nothing", plain=True)
def two_words_for_nothing(rng: Random) -> Stranger:
    """People called Null, True and May; codes NA, NO and ON."""
    d = draft(rng, "member_no last_name first_name remark")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        row[1] = rng.choice(("Null", "None", "True", "Nan", "Sunday", row[1], row[1]))
        row[2] = rng.choice(("May", "April", "June", "Summer", row[2]))
        row[3] = rng.choice(("NA", "NO", "ON", "YES", "n/a", "-", "0", "E1"))
        d.record(row)
    return d.any("book csv")


@stranger("line_breaks_in_cells", plain=True)
def line_breaks_in_cells(rng: Random) -> Stranger:
    d = draft(rng, "member_no name street remark")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        row[2] = f"{row[2]}\n{rng.randrange(10000, 99999)} {rng.choice(('York', 'Kiel'))}"
        d.record(row)
    return d.any("book csv")


@stranger("invisible_blanks", plain=True)
def invisible_blanks(rng: Random) -> Stranger:
    """No-break spaces around values and inside headers, as pasted from the web."""
    d = draft(rng, "member_no name city amount")
    d.line(*[h.replace(" ", "\u00a0") + rng.choice(("", "\u00a0")) for h in d.heads])
    for n in range(size(rng)):
        row = d.values(n)
        d.record(row, cells=[row[0], f"\u00a0{row[1]}", Raw(f"{row[2]}\u00a0"), row[3]])
    return d.any("book csv")


SENTENCES = each(
    "Ask the caretaker whether the heating in room 12 can be turned on earlier|Order new chairs for the large meeting room|"
    "Send the signed contract back to the supplier by registered mail|Find out who has the second key of the archive.|"
    "Invite the neighbours to the summer party|Thank the volunteers of last year!|Check: is the old projector still insured?"
)


@stranger("todo_sentences_at_the_end")
def todo_sentences_at_the_end(rng: Random) -> Stranger:
    """The newest tasks have neither owner nor date yet."""
    d = draft(rng, "task owner due", "en uk")
    d.header()
    for n in range(size(rng)):
        d.record([rng.choice(SENTENCES), *d.values(n)[1:]])
    for text in rng.sample(SENTENCES, rng.randint(1, 4)):
        d.record([text, None, None])
    return d.any()


@stranger("long_names_at_the_end")
def long_names_at_the_end(rng: Random) -> Stranger:
    """Companies of which nothing but the name is known yet, one blank row or none below the others."""
    d = draft(rng, "name city phone email")
    d.cols = [d.cols[0].called("Company"), *d.cols[1:]]
    forms = each(
        "GmbH|Ltd.|S.A.|Sp. z o.o.|AB|B.V.|GmbH & Co. KG|and Sons Trading Company Ltd.|Maschinenbau und Handel GmbH"
    )

    def firm() -> str:
        return f"{rng.choice(LAST)} {rng.choice(forms)}"

    d.header()
    for n in range(size(rng)):
        d.record([firm(), *d.values(n)[1:]])
    if rng.random() < 0.4:
        d.line()
    for _ in range(rng.randint(1, 2)):
        d.record([firm(), None, None, None])
    return d.any()


@stranger("last_record_two_cells", plain=True)
def last_record_two_cells(rng: Random) -> Stranger:
    """The last order is not delivered yet."""
    d = draft(rng, "order_no name date amount remark")
    d.header()
    n = size(rng)
    d.records(n)
    d.record([*d.values(n)[:2], None, None, None])
    return d.any("book csv")


@stranger("numbers_only_at_the_end", plain=True)
def numbers_only_at_the_end(rng: Random) -> Stranger:
    """Numbers reserved for members who have not joined yet: a key and nothing else."""
    d = draft(rng, "member_no name city start_date")
    d.header()
    n = size(rng)
    d.records(n)
    for more in range(rng.randint(1, 5)):
        d.record([f"M{1000 + n + more}", None, None, None])
    return d.any("book csv")


@stranger("diary_without_dates")
def diary_without_dates(rng: Random) -> Stranger:
    """A log book: several entries of one day, the date only at the first."""
    d = draft(rng, "date remark name", "en de")
    d.header()
    for n in range(size(rng, most=60)):
        row = d.values(n)
        d.record([row[0], rng.choice(SENTENCES), row[2]])
        for _ in range(rng.randrange(3)):
            d.record([None, rng.choice(SENTENCES), None], {"date": any_of(None, row[0]), "name": any_of(None, row[2])})
    return d.any("book csv")
