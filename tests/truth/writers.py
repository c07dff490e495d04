"""Writers of spreadsheets that are not ours: the standard library, openpyxl, XlsxWriter, xlwt, and bytes by hand."""

import csv
import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import openpyxl
import xlsxwriter
import xlwt
from openpyxl.utils import get_column_letter as letters
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from tests.truth.cases import Error, Formula, Sheet, Shown

Writer = Callable[[list[Sheet]], bytes]
STAMP = (2026, 1, 1, 0, 0, 0)


def as_csv(
    rows: list[list[Any]],
    *,
    delimiter: str = ",",
    quote: str = '"',
    ending: str = "\r\n",
    encoding: str = "utf-8",
    quoting: int = csv.QUOTE_MINIMAL,
    bom: bytes = b"",
) -> bytes:
    sheet = io.StringIO()
    writer = csv.writer(sheet, delimiter=delimiter, quotechar=quote, lineterminator=ending, quoting=quoting)  # type: ignore[arg-type]
    for row in rows:
        cells = ["" if v is None else v for v in row]
        if cells == [""] and quoting == csv.QUOTE_MINIMAL:
            sheet.write(ending)
        else:
            writer.writerow(cells)
    return bom + sheet.getvalue().encode(encoding)


def covered_by(made: Sheet) -> set[tuple[int, int]]:
    """Every cell of every merged area."""
    return {
        (row, column)
        for top, left, bottom, right in made.merges
        for row in range(top, bottom + 1)
        for column in range(left, right + 1)
    }


def cells_of(made: Sheet) -> Iterator[tuple[int, int, Any, tuple[int, int] | None]]:
    """Row, column, value and, for the first cell of a merged area, its last row and column; no covered cells."""
    covered = covered_by(made)
    tops = {(top, left): (bottom, right) for top, left, bottom, right in made.merges}
    for number, row in enumerate(made.rows, 1):
        for column, value in enumerate(row, 1):
            if value is not None and ((number, column) not in covered or (number, column) in tops):
                yield number, column, value, tops.get((number, column))


def with_openpyxl(sheets: list[Sheet], *, epoch_1904: bool = False) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    if epoch_1904:
        book.epoch = CALENDAR_MAC_1904
    for made in sheets:
        sheet = book.create_sheet(made.name)
        for number, row in enumerate(made.rows, 1):
            for column, value in enumerate(row, 1):
                if value is None:
                    continue
                cell = sheet.cell(number, column)
                match value:
                    case Shown():
                        cell.value, cell.number_format = value.value, value.format
                    case Formula():
                        cell.value = value.text
                    case Error():
                        cell.value, cell.data_type = value.code, "e"
                    case str():
                        cell.value = value
                        cell.data_type = "s"
                    case _:
                        cell.value = value
        for top, left, bottom, right in made.merges:
            sheet.merge_cells(start_row=top, start_column=left, end_row=bottom, end_column=right)
        for number in made.hidden_rows:
            sheet.row_dimensions[number].hidden = True
        for column in made.hidden_columns:
            sheet.column_dimensions[letters(column)].hidden = True
        if made.hidden:
            sheet.sheet_state = "hidden"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_xlsxwriter(sheets: list[Sheet], *, constant_memory: bool = False) -> bytes:
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"constant_memory": constant_memory, "in_memory": True})
    book.set_properties({"created": datetime(2026, 1, 1)})

    @cache
    def style(number_format: str) -> Any:
        return book.add_format({"num_format": number_format})

    for made in sheets:
        sheet = book.add_worksheet(made.name)
        for number, column, value, end in cells_of(made):
            if end is not None:
                sheet.merge_range(number - 1, column - 1, end[0] - 1, end[1] - 1, value)
                continue
            at = number - 1, column - 1
            match value:
                case Shown():
                    sheet.write(*at, value.value, style(value.format))
                case Formula():
                    sheet.write_formula(*at, value.text, None, "" if value.cached is None else value.cached)
                case Error():
                    sheet.write_formula(*at, "=NA()", None, value.code)
                case bool():
                    sheet.write_boolean(*at, value)
                case int() | float():
                    sheet.write_number(*at, value)
                case datetime():
                    sheet.write_datetime(*at, value, style("yyyy-mm-dd hh:mm:ss"))
                case date():
                    sheet.write_datetime(*at, value, style("yyyy-mm-dd"))
                case time():
                    sheet.write_datetime(*at, value, style("hh:mm:ss"))
                case timedelta():
                    sheet.write_datetime(*at, value, style("[h]:mm:ss"))
                case _:
                    sheet.write_string(*at, str(value))
        for number in made.hidden_rows:
            sheet.set_row(number - 1, None, None, {"hidden": True})
        for column in made.hidden_columns:
            sheet.set_column(column - 1, column - 1, None, None, {"hidden": True})
        if made.hidden:
            sheet.hide()
    book.close()
    return out.getvalue()


def with_xlwt(sheets: list[Sheet]) -> bytes:
    book = xlwt.Workbook(encoding="utf-8")

    @cache
    def style(number_format: str) -> Any:
        return xlwt.easyxf(num_format_str=number_format)

    for made in sheets:
        sheet = book.add_sheet(made.name)
        for number, column, value, end in cells_of(made):
            at = number - 1, column - 1
            match value:
                case _ if end is not None:
                    sheet.write_merge(number - 1, end[0] - 1, column - 1, end[1] - 1, value)
                case Shown():
                    sheet.write(*at, value.value, style(value.format))
                case Error():
                    sheet.row(number - 1).set_cell_error(column - 1, value.code)
                case datetime():
                    sheet.write(*at, value, style("yyyy-mm-dd hh:mm:ss"))
                case date():
                    sheet.write(*at, value, style("yyyy-mm-dd"))
                case time():
                    sheet.write(*at, value, style("hh:mm:ss"))
                case _:
                    sheet.write(*at, value)
        for number in made.hidden_rows:
            sheet.row(number - 1).hidden = True
        for column in made.hidden_columns:
            sheet.col(column - 1).hidden = True
        if made.hidden:
            sheet.visibility = 1
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _zipped(parts: dict[str, str | bytes], *, stored: tuple[str, ...] = ()) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for name, body in parts.items():
            info = zipfile.ZipInfo(name, STAMP)
            book.writestr(info, body, zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED)
    return out.getvalue()


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OOXML = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def xml_cell(row: int, column: int, value: Any, styles: list[str]) -> str:
    at = f'r="{letters(column)}{row}"'
    match value:
        case None:
            return ""
        case Shown():
            if value.format not in styles:
                styles.append(value.format)
            return f'<c {at} s="{styles.index(value.format) + 1}"><v>{value.value!r}</v></c>'
        case Formula(text=text, cached=None):
            return f"<c {at}><f>{escape(text[1:])}</f></c>"
        case Formula(text=text, cached=str(cached)):
            return f'<c {at} t="str"><f>{escape(text[1:])}</f><v>{escape(cached)}</v></c>'
        case Formula(text=text, cached=cached):
            return f"<c {at}><f>{escape(text[1:])}</f><v>{cached!r}</v></c>"
        case Error():
            return f'<c {at} t="e"><v>{escape(value.code)}</v></c>'
        case bool():
            return f'<c {at} t="b"><v>{int(value)}</v></c>'
        case int() | float():
            return f"<c {at}><v>{value!r}</v></c>"
        case datetime() | date():
            return f'<c {at} t="d"><v>{value.isoformat()}</v></c>'
        case _:
            return f'<c {at} t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'


def with_raw_xml(sheets: list[Sheet], *, epoch_1904: bool = False) -> bytes:
    """The least a workbook can be: inline strings, no theme, no document properties."""
    styles: list[str] = []
    parts: dict[str, str | bytes] = {}
    kinds, names, links = [], [], []
    for n, made in enumerate(sheets, 1):
        body = []
        for number, row in enumerate(made.rows, 1):
            cells = "".join(xml_cell(number, column, value, styles) for column, value in enumerate(row, 1))
            hidden = ' hidden="1"' if number in made.hidden_rows else ""
            if cells:
                body.append(f'<row r="{number}"{hidden}>{cells}</row>')
        columns = "".join(f'<col min="{c}" max="{c}" hidden="1"/>' for c in sorted(made.hidden_columns))
        areas = "".join(f'<mergeCell ref="{letters(lt)}{t}:{letters(rt)}{b}"/>' for t, lt, b, rt in made.merges)
        parts[f"xl/worksheets/sheet{n}.xml"] = (
            f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{MAIN}">'
            f"{f'<cols>{columns}</cols>' if columns else ''}<sheetData>{''.join(body)}</sheetData>"
            f"{f'<mergeCells>{areas}</mergeCells>' if areas else ''}</worksheet>"
        )
        kinds.append(f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{OOXML}.worksheet+xml"/>')
        state = ' state="hidden"' if made.hidden else ""
        names.append(f'<sheet name={quoteattr(made.name)} sheetId="{n}"{state} r:id="rId{n}"/>')
        links.append(f'<Relationship Id="rId{n}" Type="{DOCUMENT}/worksheet" Target="worksheets/sheet{n}.xml"/>')
    formats = "".join(f'<numFmt numFmtId="{200 + n}" formatCode={quoteattr(f)}/>' for n, f in enumerate(styles))
    cells = "".join(
        f'<xf numFmtId="{200 + n}" fontId="0" fillId="0" borderId="0" applyNumberFormat="1"/>'
        for n in range(len(styles))
    )
    parts["xl/styles.xml"] = (
        f'<styleSheet xmlns="{MAIN}">{f"<numFmts>{formats}</numFmts>" if formats else ""}<fonts><font/></fonts>'
        "<fills><fill/></fills><borders><border/></borders>"
        f'<cellXfs><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>{cells}</cellXfs></styleSheet>'
    )
    kinds.append(f'<Override PartName="/xl/styles.xml" ContentType="{OOXML}.styles+xml"/>')
    links.append(f'<Relationship Id="rId{len(sheets) + 1}" Type="{DOCUMENT}/styles" Target="styles.xml"/>')
    old = '<workbookPr date1904="1"/>' if epoch_1904 else ""
    return _zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{OOXML}.sheet.main+xml"/>{"".join(kinds)}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{DOCUMENT}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{DOCUMENT}">{old}'
            f"<sheets>{''.join(names)}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(links)}</Relationships>',
            **parts,
        }
    )


ODF = "urn:oasis:names:tc:opendocument:xmlns"


def _ods_cell(value: Any) -> str:
    match value:
        case None:
            return "<table:table-cell/>"
        case Shown():
            return _ods_cell(value.value)
        case bool():
            said = str(value).lower()
            return f'<table:table-cell office:value-type="boolean" office:boolean-value="{said}"><text:p>{said.upper()}</text:p></table:table-cell>'
        case int() | float():
            return f'<table:table-cell office:value-type="float" office:value="{value!r}"><text:p>{value!r}</text:p></table:table-cell>'
        case datetime() | date():
            said = value.isoformat()
            return f'<table:table-cell office:value-type="date" office:date-value="{said}"><text:p>{said}</text:p></table:table-cell>'
        case time():
            said = f"PT{value.hour:02}H{value.minute:02}M{value.second:02}S"
            return f'<table:table-cell office:value-type="time" office:time-value="{said}"><text:p>{value}</text:p></table:table-cell>'
        case _:
            lines = "".join(f"<text:p>{_ods_text(line)}</text:p>" for line in str(value).split("\n"))
            return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'


def _ods_text(line: str) -> str:
    """OpenDocument folds blanks: runs and outer ones are elements."""
    out, n = [], 0
    while n < len(line):
        if line[n] == " ":
            run = len(line[n:]) - len(line[n:].lstrip(" "))
            out.append(f'<text:s text:c="{run}"/>' if run > 1 or n == 0 or n + run == len(line) else " ")
            n += run
        elif line[n] == "\t":
            out.append("<text:tab/>")
            n += 1
        else:
            out.append(escape(line[n]))
            n += 1
    return "".join(out)


def as_ods(sheets: list[Sheet]) -> bytes:
    tables = []
    for made in sheets:
        rows, blank = [], 0
        for number, row in enumerate(made.rows, 1):
            if not any(v is not None for v in row):
                blank += 1
                continue
            if blank:
                rows.append(
                    f'<table:table-row table:number-rows-repeated="{blank}"><table:table-cell/></table:table-row>'
                )
                blank = 0
            hidden = ' table:visibility="collapse"' if number in made.hidden_rows else ""
            rows.append(f"<table:table-row{hidden}>{''.join(map(_ods_cell, row))}</table:table-row>")
        style = ' table:style-name="hid"' if made.hidden else ""
        tables.append(
            f"<table:table table:name={quoteattr(made.name)}{style}>"
            '<table:table-column table:number-columns-repeated="1024"/>'
            f'{"".join(rows)}<table:table-row table:number-rows-repeated="1000"><table:table-cell '
            'table:number-columns-repeated="1024"/></table:table-row></table:table>'
        )
    spaces = " ".join(
        f'xmlns:{n}="{ODF}:{u}:1.0"' for n, u in
        (("office", "office"), ("table", "table"), ("text", "text"), ("style", "style"))
    )  # fmt: skip
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    hid = (
        '<office:automatic-styles><style:style style:name="hid" style:family="table">'
        '<style:table-properties table:display="false"/></style:style></office:automatic-styles>'
    )
    return _zipped(
        {
            "mimetype": kind,
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{ODF}:manifest:1.0"><m:file-entry m:full-path="/" '
            f'm:media-type="{kind}"/><m:file-entry m:full-path="content.xml" m:media-type="text/xml"/></m:manifest>',
            "content.xml": f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces} office:version="1.2">{hid}'
            f"<office:body><office:spreadsheet>{''.join(tables)}</office:spreadsheet></office:body></office:document-content>",
        },
        stored=("mimetype",),
    )


def _record(kind: int, body: bytes = b"") -> bytes:
    """A record of xlsb: kind and length are numbers of seven bits a byte."""
    out = bytearray([kind] if kind < 0x80 else [(kind & 0x7F) | 0x80, kind >> 7])
    size = len(body)
    while True:
        out.append((size & 0x7F) | (0x80 if size > 0x7F else 0))
        size >>= 7
        if not size:
            return bytes(out) + body


def _wide(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return struct.pack("<I", len(data) // 2) + data


def as_xlsb(sheets: list[Sheet]) -> bytes:
    """Texts, numbers, booleans and errors; no styles, so no dates."""
    errors = {"#NULL!": 0, "#DIV/0!": 7, "#VALUE!": 15, "#REF!": 23, "#NAME?": 29, "#NUM!": 36, "#N/A": 42}
    parts: dict[str, str | bytes] = {}
    kinds, links, bundle = [], [], b""
    for n, made in enumerate(sheets, 1):
        body = _record(129) + _record(145)
        for number, row in enumerate(made.rows, 1):
            body += _record(0, struct.pack("<IIHHBI", number - 1, 0, 300, 0, 0, 0))
            for column, value in enumerate(row):
                at = struct.pack("<II", column, 0)
                match value:
                    case None:
                        continue
                    case bool():
                        body += _record(4, at + bytes([value]))
                    case int() | float():
                        body += _record(5, at + struct.pack("<d", value))
                    case Error():
                        body += _record(3, at + bytes([errors[value.code]]))
                    case _:
                        body += _record(6, at + _wide(str(value)))
        parts[f"xl/worksheets/sheet{n}.bin"] = body + _record(146) + _record(130)
        kinds.append(
            f'<Override PartName="/xl/worksheets/sheet{n}.bin" ContentType="application/vnd.ms-excel.worksheet"/>'
        )
        links.append(f'<Relationship Id="rId{n}" Type="{DOCUMENT}/worksheet" Target="worksheets/sheet{n}.bin"/>')
        bundle += _record(156, struct.pack("<II", int(made.hidden), n) + _wide(f"rId{n}") + _wide(made.name))
    return _zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="bin" ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/>'
            f"{''.join(kinds)}</Types>",
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{DOCUMENT}/officeDocument" Target="xl/workbook.bin"/></Relationships>',
            "xl/workbook.bin": _record(131) + _record(143) + bundle + _record(144) + _record(132),
            "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(links)}</Relationships>',
            **parts,
        }
    )


def as_html(rows: list[list[Any]], *, encoding: str = "utf-8") -> bytes:
    """What many web applications call an Excel export."""
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape('' if v is None else str(v))}</td>" for v in row) + "</tr>" for row in rows
    )
    text = (
        f'<html xmlns:x="urn:schemas-microsoft-com:office:excel"><head><meta http-equiv="Content-Type" '
        f'content="text/html; charset={encoding}"></head><body><table border="1">\n{body}\n</table></body></html>'
    )
    return text.encode(encoding)


BOOKS: dict[str, tuple[str, Writer]] = {
    "openpyxl": ("xlsx", with_openpyxl),
    "xlsxwriter": ("xlsx", with_xlsxwriter),
    "raw_xml": ("xlsx", with_raw_xml),
    "xlwt": ("xls", with_xlwt),
    "ods": ("ods", as_ods),
}
