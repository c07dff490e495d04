"""Sheets of which somebody has stated the tables: exact ranges, one table, or one between blank columns or rows.

Each part of such a sheet is read as a sheet of its own. Detection finds its header; everything below that is the table,
as below header rows that the manifest names. Parts are cut at blank rows and columns alone, so where they lie depends
on nothing that detection has learnt.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from runner.engine.options import ReadingOptions, TableCut
from runner.engine.reading import Area, Block, Layout, OutOfOrder, Row, Value, blocks_of, rows_of
from runner.engine.reading.books import Visibility
from runner.engine.reading.spool import SpooledSheet
from runner.engine.structure.tables import Choice, Table

_PARTS: Final = 500  # of one sheet; more are no tables
_REREAD: Final = 10  # parts of a sheet that is read again for each of them
_WORDS: Final = {"columns": "blank columns", "rows": "blank rows", "both": "blank columns and rows"}

Detect = Callable[["SheetArea", ReadingOptions], list[Table]]


class SheetArea:
    """A rectangle of a sheet, read as a sheet."""

    def __init__(self, sheet: SpooledSheet, area: Area) -> None:
        self.name, self.index, self.visibility = sheet.name, sheet.index, sheet.visibility
        self._sheet = sheet
        self.area = area

    name: str
    index: int
    visibility: Visibility

    def rows(self) -> Iterator[Row]:
        return rows_of(self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the rows with a value in the rectangle; columns outside of it are blank."""
        top, left, bottom, right = self.area
        for block in self._sheet.some_blocks(lambda e: e.first <= bottom and top <= e.last):
            numbers, columns = block.within(top, bottom)
            inside = columns[left - 1 : right]
            filled = [at for at, values in enumerate(zip(*inside, strict=True)) if any(v is not None for v in values)]
            if filled:
                outside: list[list[Value]] = [[None] * len(filled) for _ in range(left - 1)]
                cells = [[column[at] for at in filled] for column in inside]
                yield Block([numbers[at] for at in filled], outside + cells)

    def layout(self) -> Layout:
        """Return the sheet's layout without the tables that the file declares: somebody has stated others."""
        top, left, bottom, right = self.area
        layout = self._sheet.layout()
        merged = [m for m in layout.merged if top <= m[0] and m[2] <= bottom and left <= m[1] and m[3] <= right]
        return replace(layout, merged=merged, declared_tables=[], autofilter=None)


def stated_tables(sheet: SpooledSheet, cut: TableCut, reading: ReadingOptions, detect: Detect) -> list[Table]:
    """Find the tables of a sheet that is cut as somebody stated, from top to bottom and left to right."""
    box = _used_area(sheet)
    if box is None:
        return []
    parts = _parts(sheet, cut, box)
    if len(parts) > (_PARTS if sheet.complete else _REREAD):
        tables = detect(SheetArea(sheet, box), reading)
        return _with_choice(tables, f"the sheet would be cut into {len(parts)} parts, too many for tables of its size")
    is_exact = cut.how == "ranges"
    tables_of_parts = (_one_table(SheetArea(sheet, part), reading, detect, is_exact=is_exact) for part in parts)
    tables = [table for tables_of_part in tables_of_parts for table in tables_of_part]
    if cut.how in _WORDS and len(parts) == 1:
        tables = _with_choice(
            tables, f"the sheet is to be split at {_WORDS[cut.how]}, and has none; it was read as one"
        )
    return sorted(tables, key=lambda table: (table.range.top, table.range.left))


def _with_choice(tables: list[Table], message: str) -> list[Table]:
    """Return the tables, the first of them with a choice that reports what was assumed about the sheet."""
    choice = Choice("tables", "as found", {"tables": len(tables)}, sure=False, message=message)
    return [replace(t, choices=(*t.choices, choice)) if t is tables[0] else t for t in tables]


def _used_area(sheet: SpooledSheet) -> Area | None:
    """Return the rows and columns of a sheet that hold something, None if it is blank; reads and spools the sheet."""
    try:
        _read(sheet)
    except OutOfOrder:
        _read(sheet)
    columns = 0
    for extent in sheet.extents:
        columns |= extent.columns
    if not columns:
        return None
    left = (columns & -columns).bit_length() - 1
    return sheet.extents[0].first, left, sheet.extents[-1].last, columns.bit_length() - 1


def _read(sheet: SpooledSheet) -> None:
    for _ in blocks_of(sheet):
        pass


def _parts(sheet: SpooledSheet, cut: TableCut, box: Area) -> list[Area]:
    """Cut the used area of a sheet as stated; parts at blank rows and columns are cut until there are no more."""
    if cut.how == "ranges":
        return [part for area in cut.ranges if (part := _clipped(area_of(area), box)) is not None]
    if cut.how == "one":
        return [box]
    ways = {"columns": (_strips,), "rows": (_bands,), "both": (_bands, _strips)}[cut.how]
    whole: list[Area] = []
    uncut = [box]
    while uncut and len(uncut) + len(whole) <= _PARTS:
        area = uncut.pop(0)
        pieces = next((parts for way in ways if len(parts := way(sheet, area)) > 1), None)
        if pieces is None:
            whole.append(area)
        else:
            uncut += pieces
    return whole + uncut


def area_of(text: str) -> Area:
    """Return the rectangle of a range such as A3:C94."""
    (top, left), (bottom, right) = (_place(cell) for cell in text.split(":"))
    return top, left, bottom, right


def _place(cell: str) -> tuple[int, int]:
    """Return row and column of a cell such as C94."""
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(cell[len(letters) :]), column


def _clipped(area: Area, box: Area) -> Area | None:
    """Return what two rectangles share; None if that is nothing."""
    top, left, bottom, right = (
        max(area[0], box[0]), max(area[1], box[1]), min(area[2], box[2]), min(area[3], box[3]),
    )  # fmt: skip
    return (top, left, bottom, right) if top <= bottom and left <= right else None


def _bands(sheet: SpooledSheet, area: Area) -> list[Area]:
    """Return the parts between blank rows, without those of single cells: titles, captions and notes."""
    _, left, _, right = area
    runs: list[tuple[int, int, int]] = []  # first and last row, and the most cells of one
    for number, filled in _rows(sheet, area):
        width = filled.bit_count()
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number, max(runs[-1][2], width))
        else:
            runs.append((number, number, width))
        if len(runs) > 2 * _PARTS:
            break
    wide = [run for run in runs if run[2] > 1] or runs
    return [(first, left, last, right) for first, last, _ in wide]


def _strips(sheet: SpooledSheet, area: Area) -> list[Area]:
    """Return the parts between columns that are blank in the full rows: titles and remarks reach over gaps."""
    top, _, bottom, _ = area
    widths: dict[int, int] = {}  # by the number of cells in a row: the columns that such rows fill
    for _, filled in _rows(sheet, area):
        width = filled.bit_count()
        widths[width] = widths.get(width, 0) | filled
    least = max(widths, default=0) // 2
    columns = 0
    for width, filled in widths.items():
        columns |= filled if width > 1 and width >= least else 0
    used = [at for at in range(columns.bit_length()) if columns >> at & 1]
    starts = [b for a, b in pairwise([-1, *used]) if b > a + 1 or a < 0]
    ends = [*(a for a, b in pairwise(used) if b > a + 1), *used[-1:]]
    return [(top, first, bottom, last) for first, last in zip(starts, ends, strict=True)]


def _rows(sheet: SpooledSheet, area: Area) -> Iterator[tuple[int, int]]:
    """Yield the rows with a value in a rectangle: their numbers, and the columns with one as bits."""
    _, left, _, right = area
    for numbers, columns in SheetArea(sheet, area).blocks():
        marks = [0] * len(numbers)
        for column in range(left, min(right, len(columns)) + 1):
            bit = 1 << column
            for at, value in enumerate(columns[column - 1]):
                if value is not None and not (value.__class__ is str and not str(value).strip()):
                    marks[at] |= bit
        yield from ((number, filled) for number, filled in zip(numbers, marks, strict=True) if filled)


def _one_table(part: SheetArea, reading: ReadingOptions, detect: Detect, *, is_exact: bool) -> list[Table]:
    """Read a part as one table: the first header that detection finds in it, and everything below that.

    `is_exact`: the table reaches to the ends of the part.
    """
    tables = detect(part, reading)
    if not tables or reading.headless or reading.header_rows:
        return tables
    if len(tables) == 1 and (not is_exact or _fills(part, tables[0])):
        return [replace(tables[0], alternative=None)]
    head = next((table.header_rows for table in tables if table.header_rows), ())
    fixed = reading._replace(header="auto", header_rows=head) if head else reading._replace(header="none")
    return detect(part, fixed) or tables


def _fills(part: SheetArea, table: Table) -> bool:
    """Whether a table reaches to the ends of its part."""
    _, left, bottom, right = part.area
    return (table.range.left, table.range.bottom, table.range.right) == (left, bottom, right)


def ranges_without_table(ranges: Sequence[str], tables: Sequence[Table]) -> list[str]:
    """Return the ranges that no table is in."""
    boxes = [table.range for table in tables]
    areas = {text: area_of(text) for text in ranges}
    return [
        text
        for text, (top, left, bottom, right) in areas.items()
        if not any(top <= b.top and b.bottom <= bottom and left <= b.left and b.right <= right for b in boxes)
    ]
