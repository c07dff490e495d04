"""Cells whose stored content is not what a person sees: raised and struck runs, html parts, codes turned into dates."""

import io
import zipfile
from datetime import date, datetime, time
from html import escape
from random import Random
from typing import Any

import openpyxl
import xlsxwriter
import xlwt
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from tests.truth.cases import Shown
from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import Draft, any_of, col, draft, say, size, stranger


def html_case(d: Draft, cells: dict[tuple[int, int], str]) -> Stranger:
    """A web export; `cells` gives the markup of some cells by row and column, both from 1."""
    rows = []
    for n, row in enumerate(d.texts(), 1):
        rows.append(
            "<tr>" + "".join(f"<td>{cells.get((n, c), escape(v))}</td>" for c, v in enumerate(row, 1)) + "</tr>"
        )
    body = f'<html><head><meta charset="utf-8"><style>.x{{display:none}}</style></head><body><table>{"".join(rows)}</table></body></html>'
    case = d.html()
    case.body = body.encode()
    return case


def rich_case(d: Draft, runs: dict[tuple[int, int], list[tuple[str, str]]], writer: str) -> Stranger:
    """A workbook with formatted runs in some cells."""
    case = d.book(writer if writer in ("xlwt", "ods") else "openpyxl")
    if writer == "openpyxl":
        book = openpyxl.load_workbook(io.BytesIO(case.body))
        for (row, column), parts in runs.items():
            blocks = [
                TextBlock(
                    InlineFont(
                        vertAlign="superscript" if how == "sup" else None,
                        strike=how == "strike" or None,
                        b=how == "bold" or None,
                    ),
                    text,
                )
                if how
                else text
                for text, how in parts
            ]
            book.worksheets[0].cell(row, column).value = CellRichText(*blocks)
        out = io.BytesIO()
        book.save(out)
    elif writer == "xlwt":
        out = rich_xls(d, runs)
    elif writer == "ods":
        out = rich_ods(case.body, runs)
    else:
        out = io.BytesIO()
        made = xlsxwriter.Workbook(out, {"in_memory": True})
        sheet = made.add_worksheet("Sheet1")
        formats = {
            "sup": made.add_format({"font_script": 1}),
            "strike": made.add_format({"font_strikeout": True}),
            "bold": made.add_format({"bold": True}),
            "": made.add_format({"italic": True}),
        }
        day = made.add_format({"num_format": "yyyy-mm-dd"})
        for n, row in enumerate(d.page.rows):
            for c, value in enumerate(row):
                parts = runs.get((n + 1, c + 1))
                if parts:
                    sheet.write_rich_string(n, c, *[x for text, how in parts for x in (formats[how], text)])
                elif isinstance(value, date):
                    sheet.write_datetime(n, c, datetime.combine(value, time()), day)
                elif value is not None:
                    sheet.write(n, c, value)
        made.close()
    case.body, case.note = out.getvalue(), f"{writer} rich {d.loc.lang}"
    return case


def rich_xls(d: Draft, runs: dict[tuple[int, int], list[tuple[str, str]]]) -> io.BytesIO:
    book = xlwt.Workbook(encoding="utf-8")
    sheet = book.add_sheet("Sheet1")
    day = xlwt.easyxf(num_format_str="yyyy-mm-dd")
    fonts = {how: xlwt.Font() for how in ("", "sup", "strike", "bold")}
    fonts["sup"].escapement, fonts["strike"].struck_out, fonts["bold"].bold = (
        xlwt.Font.ESCAPEMENT_SUPERSCRIPT,
        True,
        True,
    )
    for n, row in enumerate(d.page.rows):
        for c, value in enumerate(row):
            if (n + 1, c + 1) in runs:
                sheet.write_rich_text(n, c, [(text, fonts[how]) for text, how in runs[n + 1, c + 1]])
            elif isinstance(value, date):
                sheet.write(n, c, value, day)
            elif value is not None:
                sheet.write(n, c, value)
    out = io.BytesIO()
    book.save(out)
    return out


def rich_ods(body: bytes, runs: dict[tuple[int, int], list[tuple[str, str]]]) -> io.BytesIO:
    """The same file with spans in place of the plain texts of those cells."""
    styles = "".join(
        f'<style:style style:name="{how}" style:family="text"><style:text-properties {what}/></style:style>'
        for how, what in (
            ("sup", 'style:text-position="super 58%"'),
            ("strike", 'style:text-line-through-style="solid"'),
            ("bold", 'fo:font-weight="bold"'),
        )
    )
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.infolist():
            data = old.read(part)
            if part.filename == "content.xml":
                text = data.decode().replace("<office:automatic-styles>", f"<office:automatic-styles>{styles}", 1)
                text = text.replace(
                    "<office:document-content ",
                    '<office:document-content xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" ',
                    1,
                )
                for parts in runs.values():
                    whole = escape("".join(t for t, _ in parts))
                    spans = "".join(
                        f'<text:span text:style-name="{how}">{escape(t)}</text:span>' if how else escape(t)
                        for t, how in parts
                    )
                    text = text.replace(f"<text:p>{whole}</text:p>", f"<text:p>{spans}</text:p>")
                data = text.encode()
            new.writestr(part, data)
    return out


RICH = ("openpyxl", "xlsxwriter", "xlwt", "ods", "html", "html")


@stranger("footnote_signs_raised")
def footnote_signs_raised(rng: Random) -> Stranger:
    d = draft(rng, "city quantity")
    d.header()
    runs, markup = {}, {}
    for n in range(size(rng, least=4, most=60)):
        row = d.values(n)
        row[1] += 1000
        if n % 3 == 1:
            foot = str(rng.randint(1, 9))
            at = d.record(row, cells=[row[0], f"{row[1]}{foot}"])
            runs[at, 2] = [(str(row[1]), ""), (foot, "sup")]
            markup[at, 2] = f"{row[1]}<sup>{foot}</sup>"
        else:
            d.record(row)
    kind = rng.choice(RICH)
    return html_case(d, markup) if kind == "html" else rich_case(d, runs, kind)


@stranger("units_raised", plain=True)
def units_raised(rng: Random) -> Stranger:
    """m² with a raised 2 in a text field: nothing but looks."""
    d = draft(rng, "sku remark", "en")
    d.header()
    runs, markup = {}, {}
    for n in range(size(rng, least=4, most=60)):
        unit = rng.choice(("m", "cm", "km"))
        at = d.record([f"K{n}", f"{unit}2"], {"remark": any_of(f"{unit}2", f"{unit}²")})
        runs[at, 2] = [(unit, ""), ("2", "sup")]
        markup[at, 2] = f"{unit}<sup>2</sup>"
    kind = rng.choice(RICH)
    return html_case(d, markup) if kind == "html" else rich_case(d, runs, kind)


@stranger("struck_values")
def struck_values(rng: Random) -> Stranger:
    d = draft(rng, "product quantity remark")
    d.header()
    runs, markup = {}, {}
    for n in range(size(rng, least=4, most=60)):
        row = d.values(n)
        if n % 3 == 1:
            old = str(rng.randrange(1, 90))
            at = d.record(row, cells=[row[0], f"{old}{row[1]}", row[2]])
            runs[at, 2] = [(old, "strike"), (str(row[1]), "")]
            tag = rng.choice(("s", "del", "strike"))
            markup[at, 2] = f"<{tag}>{old}</{tag}>{row[1]}"
        else:
            d.record(row)
    kind = rng.choice(RICH)
    return html_case(d, markup) if kind == "html" else rich_case(d, runs, kind)


@stranger("bold_parts", plain=True)
def bold_parts(rng: Random) -> Stranger:
    """Some letters bold: the text is the text."""
    d = draft(rng, "member_no name quantity")
    d.header()
    runs, markup = {}, {}
    for n in range(size(rng, least=4, most=60)):
        row = d.values(n)
        at = d.record(row)
        runs[at, 2] = [(row[1][:2], "bold"), (row[1][2:], "")]
        markup[at, 2] = f"<b>{escape(row[1][:2])}</b>{escape(row[1][2:])}"
    kind = rng.choice(RICH)
    return html_case(d, markup) if kind == "html" else rich_case(d, runs, kind)


@stranger("html_sort_keys")
def html_sort_keys(rng: Random) -> Stranger:
    """Hidden spans for sorting in front of what the page shows."""
    d = draft(rng, "name date quantity", "en")
    d.header()
    markup = {}
    style = rng.choice(('style="display:none"', 'style="display: none;"', "hidden", 'style="visibility:hidden"'))
    for n in range(size(rng, most=60)):
        row = d.values(n)
        at = d.record(row)
        markup[at, 3] = f"<span {style}>{row[2]:09}</span>{row[2]}"
        markup[at, 1] = f"<span {style}>{escape(row[0].split()[-1].upper())}</span>{escape(row[0])}"
    return html_case(d, markup)


@stranger("html_inputs")
def html_inputs(rng: Random) -> Stranger:
    """A form in a table: the values stand in inputs and selects."""
    d = draft(rng, "name quantity paid remark", "en")
    d.header()
    markup = {}
    for n in range(size(rng, most=60)):
        row = d.values(n)
        row[3] = rng.choice(("red", "blue"))
        at = d.record(row)
        markup[at, 2] = f'<input type="text" value="{row[1]}">'
        markup[at, 3] = f'<input type="checkbox"{" checked" if row[2] else ""}>'
        other = {"red": "blue", "blue": "red"}[row[3]]
        markup[at, 4] = f"<select><option>{other}</option><option selected>{row[3]}</option></select>"
    return html_case(d, markup)


@stranger("html_small_print")
def html_small_print(rng: Random) -> Stranger:
    """Cents raised or small: 5<sup>99</sup>."""
    d = draft(rng, "product amount", "en")
    d.header()
    markup = {}
    tag = rng.choice(("sup", "small"))
    for n in range(size(rng, most=60)):
        row = d.values(n)
        whole, cents = f"{row[1]:.2f}".split(".")
        at = d.record(row)
        markup[at, 2] = f"{whole}<{tag}>{cents}</{tag}>"
    return html_case(d, markup)


@stranger("html_breaks_and_links", plain=True)
def html_breaks_and_links(rng: Random) -> Stranger:
    d = draft(rng, "member_no name email city", "en")
    d.header()
    markup = {}
    for n in range(size(rng, most=60)):
        row = d.values(n)
        at = d.record(row, {"name": any_of(row[1], row[1].replace(" ", "\n"))})
        markup[at, 2] = escape(row[1]).replace(" ", rng.choice((" ", "<br>", "&nbsp;")))
        markup[at, 3] = f'<a href="mailto:{row[2]}">{row[2]}</a>'
    for r in d.tables[0].rows:
        r.wants["name"] = any_of(*r.wants["name"].values, r.wants["name"].values[0].replace(" ", "\u00a0"))
    return html_case(d, markup)


@stranger("html_icons_and_titles", right=False)
def html_icons_and_titles(rng: Random) -> Stranger:
    """A status as a picture with alternative text; the cell has no text."""
    d = draft(rng, "member_no name remark", "en")
    d.header()
    markup = {}
    for n in range(size(rng, least=4, most=60)):
        row = d.values(n)
        row[2] = rng.choice(("ok", "late", "lost"))
        at = d.record(row)
        markup[at, 3] = f'<img src="{row[2]}.png" alt="{row[2]}" title="{row[2]}">'
    d.tell("remark")
    case = html_case(d, markup)
    for r in d.tables[0].rows:
        r.wants["remark"] = any_of(r.wants["remark"], None)
    return case


@stranger("html_nested_layout", right=False)
def html_nested_layout(rng: Random) -> Stranger:
    """The list sits in a table that only makes the layout, with a menu beside it."""
    d = draft(rng, "order_no name amount", "en")
    d.header()
    d.records(size(rng, most=60))
    inner = "".join("<tr>" + "".join(f"<td>{escape(v)}</td>" for v in row) + "</tr>" for row in d.texts())
    case = d.html()
    case.body = f'<html><head><meta charset="utf-8"></head><body><table><tr><td>Home<br>Orders<br>Log out</td><td><table>{inner}</table></td></tr></table></body></html>'.encode()
    return case


@stranger("codes_became_dates", right=False)
def codes_became_dates(rng: Random) -> Stranger:
    """Sizes, scores and genes that a spreadsheet took for dates, among those it left alone."""
    d = draft(rng, "sku product quantity", "en")
    d.header()
    kind = rng.choice(("size", "gene", "score"))
    n = size(rng, least=6, most=120)
    for i in range(n):
        row = d.values(i)
        if i % 4 == 1:
            month, day = rng.randrange(1, 12), rng.randrange(1, 12)
            cell: Any = date(2024, month, day)
            if kind == "gene":
                cell = Shown(45536 + i % 20, "d-mmm", "1-Sep")
            typed = any_of(f"{month}-{day}", f"{day}-{month}", f"{month}/{day}")
            d.record(row, {"sku": any_of("SEPT1") if kind == "gene" else typed}, cells=[cell, *row[1:]])
        else:
            code = {
                "size": f"{rng.randrange(13, 60)}-{rng.randrange(40, 90)}",
                "gene": f"BRCA{i}",
                "score": f"{rng.randrange(40, 80)}-{rng.randrange(32, 80)}",
            }[kind]
            d.record([code, *row[1:]])
    return d.book("openpyxl xlsxwriter")


@stranger("dates_in_a_text_field", plain=True)
def dates_in_a_text_field(rng: Random) -> Stranger:
    """All cells are dates and the field is text: the dates as texts."""
    d = draft(rng, "remark product quantity", "en")
    d.header()
    for i in range(size(rng, most=120)):
        row = d.values(i)
        day = date(2024, 1 + i % 12, 1 + i % 28)
        d.record(
            [day.isoformat(), *row[1:]],
            {"remark": any_of(day.isoformat(), f"{day.isoformat()} 00:00:00")},
            cells=[day, *row[1:]],
        )
    return d.book("openpyxl xlsxwriter ods")


@stranger("scores_became_times", right=False)
def scores_became_times(rng: Random) -> Stranger:
    """3:1 typed into a spreadsheet is a time of day."""
    d = draft(rng, "team remark", "en")
    d.cols = [d.cols[0], col("result", "text", "en=Result", lambda r, n: "")]
    d.header()
    for i in range(size(rng, least=4, most=60)):
        row = d.values(i)
        a, b = rng.randrange(0, 9), rng.randrange(0, 9)
        if i % 3 == 2:
            d.record([row[0], "25:30"])
        else:
            d.record(
                [row[0], f"{a}:{b}"],
                {"result": any_of(f"{a}:{b}", f"{a}:{b:02}", f"{a:02}:{b:02}")},
                cells=[row[0], Shown((a * 60 + b) / 1440, "h:mm", f"{a}:{b:02}")],
            )
    return d.book("openpyxl xlsxwriter xlwt")


@stranger("weekday_contradicts_date", right=False)
def weekday_contradicts_date(rng: Random) -> Stranger:
    d = draft(rng, "date task owner", "en")
    d.header()
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    for i in range(size(rng, least=5, most=60)):
        row = d.values(i)
        off = 1 if i == 3 else 0
        text = f"{names[(row[0].weekday() + off) % 7]}, {row[0].day} {row[0]:%B %Y}"
        at = d.record(row, {"date": any_of(row[0], text)} if off else {}, cells=[text, *row[1:]])
        if off:
            d.tell("date", at)
    return d.any("book csv")


@stranger("weekday_agrees", plain=True)
def weekday_agrees(rng: Random) -> Stranger:
    d = draft(rng, "date task owner", "en")
    d.header()
    for i in range(size(rng, most=60)):
        row = d.values(i)
        d.record(row, cells=[f"{row[0]:%A}, {row[0].day} {row[0]:%B %Y}", *row[1:]])
    return d.any("book csv")


@stranger("negative_by_format", plain=True)
def negative_by_format(rng: Random) -> Stranger:
    """Negatives in brackets and red by number format."""
    d = draft(rng, "account description amount")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        v = row[2] if i % 2 else -row[2]
        d.record(
            [*row[:2], v],
            cells=[*row[:2], Shown(v, "#,##0.00;[Red](#,##0.00)", f"({-v:,.2f})" if v < 0 else f"{v:,.2f}")],
        )
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("sign_by_format", right=False)
def sign_by_format(rng: Random) -> Stranger:
    """A format that shows a minus before every positive number: what a person sees is not what is stored."""
    d = draft(rng, "account description amount")
    d.header()
    for i in range(size(rng, least=4)):
        row = d.values(i)
        d.record(
            [*row[:2], -row[2]],
            {"amount": any_of(-row[2])},
            cells=[*row[:2], Shown(row[2], '"-"#,##0.00', f"-{row[2]:,.2f}")],
        )
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("unit_by_format", right=False)
def unit_by_format(rng: Random) -> Stranger:
    """Some cells show kg, others lb."""
    d = draft(rng, "shipment weight_kg", "en")
    d.cols = [d.cols[0], d.cols[1].called("Weight")]
    d.header()
    for i in range(size(rng, least=6)):
        row = d.values(i)
        unit = "lb" if i % 4 == 3 else "kg"
        d.record(row, cells=[row[0], Shown(row[1], f'0.0" {unit}"', f"{row[1]} {unit}")])
    d.tell("weight_kg")
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("values_with_units", right=False)
def values_with_units(rng: Random) -> Stranger:
    """12.5 kg as text in a number field, one of them in grams."""
    d = draft(rng, "shipment weight_kg", "en")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i == 3:
            grams = row[1] * 1000
            d.record(row, {"weight_kg": any_of(row[1])}, cells=[row[0], f"{grams:.0f} g"])
        else:
            d.record(row, {"weight_kg": any_of(row[1])}, cells=[row[0], f"{row[1]} kg"])
    return d.any("book csv")


@stranger("texts_with_points", plain=True)
def texts_with_points(rng: Random) -> Stranger:
    """Part numbers such as 12345.A1 and 11357.5(A)HS in text columns, declared or not."""
    d = draft(rng, "sku product quantity", "en")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record(
            [
                rng.choice((f"{12345 + i}.A1", f"{11357 + i}.5(A)HS", f"{i}.6 kg", f"{i}..2", f"1{i}.5e", f"{i}.٣x")),
                *row[1:],
            ]
        )
    return d.any("book csv")


@stranger("currency_by_format", right=False)
def currency_by_format(rng: Random) -> Stranger:
    d = draft(rng, "order_no name amount", "en")
    d.header()
    for i in range(size(rng, least=6)):
        row = d.values(i)
        form = "[$$-409]#,##0.00" if i % 3 == 2 else "#,##0.00 [$€-407]"
        d.record(row, cells=[*row[:2], Shown(row[2], form, say(row[2], d.loc))])
    d.tell("amount")
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("checkbox_characters", plain=True)
def checkbox_characters(rng: Random) -> Stranger:
    d = draft(rng, "member_no name paid", "en")
    d.header()
    yes, no = rng.choice((("☑", "☐"), ("✓", "✗"), ("✔", "✘"), ("x", "")))
    for i in range(size(rng, least=4)):
        row = d.values(i)
        d.record(row, {"paid": row[2] if row[2] or no else None}, cells=[*row[:2], yes if row[2] else no])
    d.note = f"{yes} {no}"
    return d.any("book csv")


@stranger("two_cells_at_one_address", right=False)
def two_cells_at_one_address(rng: Random) -> Stranger:
    """A program wrote a cell twice with different values; spreadsheet programs show one of them."""
    d = draft(rng, "member_no name city", "en")
    d.header()
    made = d.records(size(rng, least=4, most=60))
    at = rng.randrange(len(made)) + 2
    case = d.book("raw_xml")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(case.body)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.infolist():
            data = old.read(part)
            if part.filename.endswith("sheet1.xml"):
                again = f'<c r="C{at}" t="inlineStr"><is><t>Elsewhere</t></is></c></row><row r="{at + 1}"'
                first = f'</row><row r="{at + 1}"' if at < len(made) + 1 else "</row></sheetData>"
                data = (
                    data.decode()
                    .replace(
                        first,
                        again
                        if at < len(made) + 1
                        else f'<c r="C{at}" t="inlineStr"><is><t>Elsewhere</t></is></c></row></sheetData>',
                        1,
                    )
                    .encode()
                )
            new.writestr(part, data)
    case.body = out.getvalue()
    row = case.tables[0].rows[at - 2]
    row.wants["city"] = any_of(row.wants["city"], "Elsewhere")
    d.tell(None, at)
    return case
