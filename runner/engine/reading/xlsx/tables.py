"""Tables and areas that a workbook declares by name."""

from runner.engine.reading.books import DeclaredTable, Layout
from runner.engine.reading.xlsx.coordinates import area
from runner.engine.reading.xlsx.packages import Package
from runner.engine.reading.xlsx.style_parts import number

_MAX_TABLES = 1_000
_PRINT_TITLES, _FILTER = "_xlnm.Print_Titles", "_xlnm._FilterDatabase"
NAMED_AREAS = (_PRINT_TITLES, _FILTER)


def declared_tables(package: Package, sheet_part: str, identities: list[str]) -> list[DeclaredTable]:
    """The ListObjects of a sheet, in the order it names them; a part that is missing is passed over."""
    if not identities:
        return []
    relations = package.relations(sheet_part)
    found = []
    for identity in identities[:_MAX_TABLES]:
        relation = relations.get(identity)
        entry = package.archive.find(relation.part) if relation else None
        if entry is None:
            continue
        for event in package.events(entry):
            if event[0] == "start" and event[1] == "table" and (where := area(event[2].get("ref", ""))):
                attributes = event[2]
                found.append(
                    DeclaredTable(
                        name=attributes.get("displayName") or attributes.get("name", ""),
                        area=where,
                        header_rows=number(attributes, "headerRowCount") if "headerRowCount" in attributes else 1,
                        totals_rows=number(attributes, "totalsRowCount"),
                    )
                )
    return found


def name_areas(layout: Layout, names: list[tuple[str, int | None, str]], position: int) -> None:
    """Print titles and the filter's area, which are kept as defined names of the sheet."""
    for name, sheet, formula in names:
        if sheet != position:
            continue
        if name == _PRINT_TITLES:
            layout.print_title_rows = _rows(formula)
        elif name == _FILTER and layout.autofilter is None:
            layout.autofilter = area(formula.rpartition("!")[2])


def _rows(formula: str) -> tuple[int, int] | None:
    """The rows of ``Sheet1!$A:$A,Sheet1!$3:$4``."""
    for reference in formula.split(","):
        first, _, last = reference.rpartition("!")[2].replace("$", "").partition(":")
        if _is_row(first) and _is_row(last):
            return int(first), int(last)
    return None


def _is_row(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 9
