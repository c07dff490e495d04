"""What only workbooks have: formulas, errors, markup of many programs, web pages that say they are Excel."""

import re
import zipfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from io import BytesIO
from random import Random
from typing import Any

import xlsxwriter

from tests.truth import words
from tests.truth.cases import AnyOf, Case, Error, Formula, Sheet, Shown, family
from tests.truth.families.numbers import member
from tests.truth.tables import Column, book_case, content, person, place, size, some_columns, some_moment, tell
from tests.truth.writers import as_html, as_xlsb, with_openpyxl, with_raw_xml, with_xlsxwriter


@family("formulas", plain=True)
def formulas(rng: Random) -> Case:
    """A formula is its stored result."""
    label = Column("label", "text", lambda r, n: r.choice(words.CITIES), cell=lambda v: Formula('="x"', v))
    return _priced(rng, lambda v: Formula("=B2*1.19", v), [label], (with_xlsxwriter, with_raw_xml))


def _priced(rng: Random, gross: Callable[[Any], Formula], more: list[Column], writers: Sequence[Any]) -> Case:
    columns = [
        member(rng),
        Column("price", "money", lambda r, n: r.randrange(100, 99_999) / 100),
        Column("gross", "money", lambda r, n: r.randrange(100, 99_999) / 100, cell=gross),
        *more,
    ]
    made = content(rng, columns, rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    write = rng.choice(writers)
    return Case("", 0, "data.xlsx", write([sheet]), made.fields, [table])


@family("formulas_without_results", mostly_right=False)
def formulas_without_results(rng: Random) -> Case:
    """A program that never calculated: blank, and told cell by cell."""
    return _priced(rng, lambda v: Formula("=B2*1.19", None), [], (with_openpyxl, with_raw_xml))


@family("error_cells")
def error_cells(rng: Random) -> Case:
    """#N/A and kin stay errors, each with one finding."""
    columns = [
        member(rng),
        Column("price", "money", lambda r, n: r.randrange(100, 99_999) / 100),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
    ]
    made = content(rng, columns, rng.choice((6, 12, 40)))
    for n in rng.sample(range(len(made.values)), 3):
        made.values[n][rng.choice((1, 2))] = Error(
            rng.choice(("#N/A", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!"))
        )
    sheet = Sheet("Data")
    table = place(sheet, made)
    name, body = rng.choice((("data.xlsx", with_openpyxl), ("data.xlsx", with_raw_xml), ("data.xlsb", as_xlsb)))
    case = Case("", 0, name, body([sheet]), made.fields, [table])
    case.tells = [
        tell("cell_error", row=r.number) for r in table.rows if any(isinstance(v, Error) for v in r.wants.values())
    ]
    case.told = frozenset({"cell_error"})
    return case


@family("forged_errors")
def forged_errors(rng: Random) -> Case:
    """The text of an error cell is no markup: it forges no neighbour."""
    columns = [
        member(rng),
        Column("price", "money", lambda r, n: r.randrange(100, 9_999) / 100),
        Column("paid", "money", lambda r, n: 1.0, spec={"max": 100}),
    ]
    made = content(rng, columns, 7)
    sheet = Sheet("Data")
    at = rng.randrange(7)
    made.values[at][1] = Error(rng.choice(('1</v></c><c r="C8"><v>999999', "A&B", "<x/>", "#N/A")))
    made.values[at][2] = None
    table = place(sheet, made)
    codes = ("#N/A", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!")
    table.rows[at].wants["price"] = AnyOf((None, *codes, made.values[at][1].code))
    case = Case("", 0, "data.xlsx", with_raw_xml([sheet]), made.fields, [table])
    case.told = frozenset({"cell_error"})
    return case


def _rewritten(body: bytes, change: dict[str, str]) -> bytes:
    """The same book with its first sheet's markup spelt in another way."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(body)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name)
            if name.startswith("xl/worksheets/"):
                said = text.decode()
                for pattern, by in change.items():
                    said = re.sub(pattern, by, said)
                text = said.encode()
            new.writestr(name, text)
    return out.getvalue()


MARKUP = {
    "single_quotes": {r'="([^"]*)"': r"='\1'"},
    "blanks": {r'<row r="(\d+)"': r'<row  r = "\1" ', r"</sheetData>": "</sheetData >", r"</row>": "</row\n>"},
    "prefix": {r"<(/?)(row|c|v|is|t|f)\b": r"<\1m:\2", r"<worksheet xmlns=": '<worksheet xmlns:m="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns='},
    "comments": {r"<row": "<!-- a row --><row", r"</c>": "</c><!-- x -->"},
    "newlines": {r"(</row>|</c>|<row[^>]*>)": r"\1\n  "},
    "attributes": {r'<c r="([A-Z]+\d+)"': r'<c ph="0" r="\1" cm="0"'},
    "no_addresses": {r'<c r="[A-Z]+\d+"': "<c"},
    "cdata": {r"<t xml:space=\"preserve\">([^<&]*)</t>": r"<t><![CDATA[\1]]></t>"},
    "entities": {r">([A-Z])([a-z]+) ": r">&#x41;&#66;\1\2 "},
    "plain": {},
}  # fmt: skip


@family("xlsx_markup", plain=True)
def xlsx_markup(rng: Random) -> Case:
    """The same cells in every spelling of XML that programs use."""
    way = rng.choice([w for w in MARKUP if w != "entities"])
    made = content(rng, some_columns(rng, 3, 6), size(rng) + 2)
    sheet = Sheet("Data")
    table = place(sheet, made)
    return Case("", 0, "data.xlsx", _rewritten(with_raw_xml([sheet]), MARKUP[way]), made.fields, [table], note=way)


@family("units_in_any_markup", mostly_right=False)
def units_in_any_markup(rng: Random) -> Case:
    """Currencies that only number formats show are told in every spelling of XML, also with the style first."""
    ways = MARKUP | {
        "style_first": {r'<c r="([A-Z]+\d+)" s="(\d+)"': r'<c s="\2" r="\1"'},
        "type_between": {r'<c r="([A-Z]+\d+)" s="(\d+)"': r'<c r="\1" t="n" s="\2"'},
    }
    way = rng.choice([w for w in ways if w != "entities"])
    cells = iter(range(10_000))
    forms = ("[$€-407] #,##0.00", '"$"#,##0.00')
    column = Column(
        "figure", "money", lambda r, n: r.randrange(999) / 4, cell=lambda v: Shown(v, forms[next(cells) % 2], "")
    )
    made = content(rng, [Column("name", "text", person), column], rng.choice((3, 30)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    case = Case("", 0, "data.xlsx", _rewritten(with_raw_xml([sheet]), ways[way]), made.fields, [table], note=way)
    case.tells = [tell("currency_mixed", field="figure")]
    return case


@family("xlsx_out_of_order", plain=True)
def xlsx_out_of_order(rng: Random) -> Case:
    """Rows in any order in the file."""
    made = content(rng, some_columns(rng, 3, 6), rng.choice((4, 12, 40)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    body = with_raw_xml([sheet])
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(body)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.startswith("xl/worksheets/"):
                said = text.decode()
                rows = re.findall(r"<row .*?</row>", said, re.DOTALL)
                mixed = rows[:]
                rng.shuffle(mixed)
                said = said[: said.index(rows[0])] + "".join(mixed) + said[said.index("</sheetData>") :]
                text = said.encode()
            new.writestr(name, text)
    return Case("", 0, "data.xlsx", out.getvalue(), made.fields, [table])


@family("html_xls")
def html_xls(rng: Random) -> Case:
    """A web page that calls itself data.xls."""
    made = content(rng, some_columns(rng, 3, 6), size(rng) + 2)
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    return Case("", 0, "data.xls", as_html(sheet.rows), made.fields, [table])


@family("html_rounded", plain=True)
def html_rounded(rng: Random) -> Case:
    """Excel saves the number itself beside the rounded text that a page shows."""
    made = content(
        rng,
        [member(rng), Column("ratio", "decimal", lambda r, n: r.randrange(10**4, 10**9) / 10**5)],
        rng.choice((3, 9)),
    )
    sheet = Sheet("Table 1")
    table = place(sheet, made)
    lines = [
        f'<tr><td>{name}</td><td x:num="{ratio!r}">{ratio:,.2f}</td></tr>'
        if isinstance(ratio, float)
        else f"<tr><td>{name}</td><td>{ratio}</td></tr>"
        for name, ratio in sheet.rows
    ]
    body = (
        '<html xmlns:x="urn:schemas-microsoft-com:office:excel"><body><table>'
        + "".join(lines)
        + "</table></body></html>"
    )
    return Case("", 0, "data.xls", body.encode(), made.fields, [table])


@family("dates_with_a_zone", plain=True)
def dates_with_a_zone(rng: Random) -> Case:
    """A date cell in ISO may have a zone: the moment counts, in UTC."""
    hours = rng.choice((0, 2, -5))
    column = Column("seen", "datetime", some_moment)
    made = content(rng, [member(rng), column], rng.choice((3, 9)))
    sheet = Sheet("Data")
    table = place(sheet, made)
    for row, values in zip(sheet.rows[1:], made.values, strict=True):
        row[1] = values[1] + timedelta(hours=hours)
    body = with_raw_xml([sheet])
    zone = {r'(t="d"><v>[^<]*)</v>': rf"\g<1>{hours:+03}:00</v>"}
    return Case("", 0, "data.xlsx", _rewritten(body, zone), made.fields, [table])


@family("xls_big_numbers", plain=True)
def xls_big_numbers(rng: Random) -> Case:
    """Sixteen digits in a number cell: a text field shows them all."""
    columns = [
        Column("card", "text", lambda r, n: r.randrange(10**15, 9 * 10**15), want=str, cell=float),
        Column("n", "text", lambda r, n: f"x{n}"),
    ]
    made = content(rng, columns, rng.choice((3, 10)))
    sheet = Sheet("Data")
    return book_case(rng, [sheet], [place(sheet, made)], made.fields, "xlwt openpyxl raw_xml xlsxwriter")


@family("declared_tables", plain=True)
def declared_tables(rng: Random) -> Case:
    """Insert, Table in Excel, with filter and frozen panes."""
    columns = [c for c in some_columns(rng, 3, 6) if c.type not in ("date", "datetime", "percent")]
    made = content(rng, columns, rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    top = rng.choice((0, 3))
    for _ in range(top):
        sheet.add([])
    table = place(sheet, made)
    out = BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    page = book.add_worksheet("Data")
    page.add_table(
        top,
        0,
        top + len(made.values),
        len(columns) - 1,
        {"columns": [{"header": c.head} for c in columns], "data": made.cells()},
    )
    page.freeze_panes(top + 1, 0)
    book.close()
    return Case("", 0, "data.xlsx", out.getvalue(), made.fields, [table])
