"""The small parts of a workbook beside its cells."""

from typing import Final

from runner.engine import a1
from runner.engine.writing.texts import attribute, escaped

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACK: Final = "http://schemas.openxmlformats.org/package/2006"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006"
_TYPES: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
SHEET_TAIL: Final = (
    '<pageMargins left="0.7" right="0.7" top="0.75" bottom="0.75" header="0.3" footer="0.3"/></worksheet>'
)
_MOST_WIDTHS: Final = 1000  # widths fit into the head's fixed room; wider tables keep the default


class SheetPart:
    """What the workbook part says about a sheet."""

    __slots__ = ("filtered", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.filtered = ""


def sheet_head(widths: list[int], last_row: int, *, active: bool) -> str:
    last = f"{a1.letters(max(1, len(widths)))}{last_row}"
    cols = "".join(
        f'<col min="{n}" max="{n}" width="{width}" customWidth="1"/>'
        for n, width in enumerate(widths[:_MOST_WIDTHS], 1)
    )
    return (
        f'{_XML}<worksheet xmlns="{_MAIN}"><dimension ref="A1:{last}"/>'
        f'<sheetViews><sheetView {"tabSelected=" + chr(34) + "1" + chr(34) + " " if active else ""}workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        '<selection pane="bottomLeft" activeCell="A2" sqref="A2"/></sheetView></sheetViews>'
        '<sheetFormatPr defaultRowHeight="15"/>' + (f"<cols>{cols}</cols>" if cols else "")
    )


def workbook(sheets: list[SheetPart]) -> str:
    listed = "".join(
        f'<sheet name="{attribute(s.name)}" sheetId="{n}" r:id="rId{n}"/>' for n, s in enumerate(sheets, 1)
    )
    names = "".join(
        f'<definedName name="_xlnm._FilterDatabase" localSheetId="{n}" hidden="1">'
        f"{escaped(_quoted(s.name))}!{_absolute(s.filtered)}</definedName>"
        for n, s in enumerate(sheets)
        if s.filtered
    )
    return (
        f'{_XML}<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><workbookPr defaultThemeVersion="124226"/>'
        f'<bookViews><workbookView xWindow="0" yWindow="0" windowWidth="24000" windowHeight="12000"/></bookViews>'
        f"<sheets>{listed}</sheets>{f'<definedNames>{names}</definedNames>' if names else ''}"
        '<calcPr calcId="124519"/></workbook>'
    )


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _absolute(area: str) -> str:
    def fixed(cell: str) -> str:
        word = cell.rstrip("0123456789")
        return f"${word}${cell[len(word) :]}"

    first, _, last = area.partition(":")
    return f"{fixed(first)}:{fixed(last)}"


def workbook_rels(count: int) -> str:
    sheets = "".join(
        f'<Relationship Id="rId{n}" Type="{_REL}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, count + 1)
    )
    return (
        f'{_XML}<Relationships xmlns="{_PACK}/relationships">{sheets}'
        f'<Relationship Id="rId{count + 1}" Type="{_REL}/styles" Target="styles.xml"/></Relationships>'
    )


def root_rels() -> str:
    return (
        f'{_XML}<Relationships xmlns="{_PACK}/relationships">'
        f'<Relationship Id="rId1" Type="{_REL}/officeDocument" Target="xl/workbook.xml"/>'
        f'<Relationship Id="rId2" Type="{_PACK}/relationships/metadata/core-properties" Target="docProps/core.xml"/>'
        f'<Relationship Id="rId3" Type="{_REL}/extended-properties" Target="docProps/app.xml"/></Relationships>'
    )


def content_types(count: int) -> str:
    sheets = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{_TYPES}.worksheet+xml"/>'
        for n in range(1, count + 1)
    )
    return (
        f'{_XML}<Types xmlns="{_PACK}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>{sheets}'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/>'
        '<Override PartName="/docProps/core.xml" '
        'ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        '<Override PartName="/docProps/app.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.extended-properties+xml"/></Types>'
    )


def core(title: str) -> str:
    return (
        f'{_XML}<cp:coreProperties xmlns:cp="{_PACK}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escaped(title)}</dc:title><dc:creator>ade-drop</dc:creator></cp:coreProperties>"
    )


def app() -> str:
    return f'{_XML}<Properties xmlns="{_OFFICE}/extended-properties"><Application>ade-drop</Application></Properties>'
