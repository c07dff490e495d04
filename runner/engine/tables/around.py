"""Finds what stands around the tables of a sheet: the values of labels, and the caption above each table.

A label counts wherever no table in use is: above a table first, the nearest part of the sheet before those further up,
then right below it. Its value is in the same cell behind a colon, right of it or below it. Where both neighbours could
be the value, the one that was taken is a choice that is reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.common.spelling import normalized
from runner.engine.reading import Block, blocks_of
from runner.engine.reading.spool import SpooledSheet
from runner.engine.tables.sources import SourceTable, SuppliedCell
from runner.engine.tables.supplied import WantedLabel

_ROWS_ABOVE: Final = 400  # rows above a table that are searched, beside the first ones of the sheet
_FIRST_ROWS: Final = 200
_ROWS_BELOW: Final = 100
_MOST_BLANKS_BETWEEN: Final = 3  # blank cells between a label and its value
_ROWS_TO_CAPTION: Final = 10  # rows above a table among which its caption is looked for
_ROWS_OF_FORM: Final = 3  # rows of label and value, or labels above values, that are no chance
_LONGEST_LABELLED: Final = 400  # characters of a cell with a label and its value
_COLONS: Final = (":", "\uff1a")

Cells = dict[int, dict[int, Any]]  # row -> column -> value; no blanks


class CellPosition(NamedTuple):
    """Where a cell is in its sheet, from 1."""

    row: int
    column: int


class FoundLabel(NamedTuple):
    """A label's value, with what speaks against it."""

    cell: SuppliedCell | None  # None: there is no such label, or no value beside it
    label: CellPosition | None = None  # where the label is
    other: CellPosition | None = None  # a cell that could be the value, too
    differing: CellPosition | None = None  # another label of the same name with another value


class _TableBox(NamedTuple):
    """What a table covers."""

    top: int
    left: int
    bottom: int
    right: int

    def holds(self, row: int, column: int) -> bool:
        """Whether a cell is inside the box."""
        return self.top <= row <= self.bottom and self.left <= column <= self.right


class AroundTables:
    """The cells of a sheet around its tables in use, read once, to find captions and values of labels."""

    def __init__(self, tables: Sequence[SourceTable]) -> None:
        """Read the cells near the tables of one sheet, but for those inside a table."""
        self._boxes = {table.id: _outline(table) for table in tables}
        self._notes = {row for table in tables for row in table.table.notes}
        self._cells: Cells = {}
        boxes = sorted(self._boxes.values())
        near = [(1, _FIRST_ROWS)]
        near += [
            (first, last) for box in boxes for first, last in ((box.top - _ROWS_ABOVE, box.top - 1), _rows_below(box))
        ]
        for block in _blocks_near(tables[0], near):
            for first, last in _join_ranges(near):
                self._add_rows(block.within(first, last), boxes)

    def _add_rows(self, rows: Block, boxes: Sequence[_TableBox]) -> None:
        """Add the cells of a block of rows that are outside all tables to `_cells`."""
        if not rows.numbers:
            return
        boxes_here = [box for box in boxes if box.top <= rows.numbers[-1] and rows.numbers[0] <= box.bottom]
        for at, number in enumerate(rows.numbers):
            inside = [box for box in boxes_here if box.top <= number <= box.bottom]
            cells = {
                column: values[at]
                for column, values in enumerate(rows.columns, 1)
                if _has_value(values[at]) and not any(box.left <= column <= box.right for box in inside)
            }
            if cells:
                self._cells[number] = cells

    def caption(self, table: SourceTable, known: Mapping[str, WantedLabel]) -> SuppliedCell | None:
        """Find the caption of a table: the single text nearest above it, in its columns; None if there is none near it.

        `known`: the labels that the manifest names, which are not captions.
        """
        box = self._boxes[table.id]
        labels = [normalized(wanted.label) for wanted in known.values()]
        first = max(self._last_row_above(box) + 1, box.top - _ROWS_TO_CAPTION)
        for row in range(box.top - 1, first - 1, -1):
            cells = {at: value for at, value in self._cells.get(row, {}).items() if box.left <= at <= box.right}
            texts = {value.strip() if isinstance(value, str) else None for value in cells.values()}
            text = texts.pop() if len(texts) == 1 else None
            if text is None or row in self._notes or any(_is_named(text, name) for name in labels):
                continue
            return SuppliedCell(row, min(cells), text)
        return None

    def value_of(self, table: SourceTable, wanted: WantedLabel, all_wanted: Mapping[str, WantedLabel]) -> FoundLabel:
        """Find the value of the label that is nearest to a table; `all_wanted`: all labels that the manifest names.

        Its `cell` is None if there is no such label, or no value beside it.
        """
        box, name = self._boxes[table.id], normalized(wanted.label)
        labels = {normalized(label.label) for label in all_wanted.values()}
        for rows in self._rows_by_nearness(box):
            labels_here = [
                _find_value(self._cells, CellPosition(row, column), wanted.side, labels)
                for row in rows
                for column, value in self._cells[row].items()
                if isinstance(value, str) and _is_named(value, name)
            ]
            if not labels_here:
                continue
            in_columns = [
                candidate
                for candidate in labels_here
                if candidate.label and box.left <= candidate.label.column <= box.right
            ]
            nearest_first = in_columns or labels_here
            nearest_first.sort(
                key=lambda candidate: candidate.cell is None
            )  # stable: the nearest with a value comes first
            best, *others = nearest_first
            differing = (
                candidate.label
                for candidate in others
                if best.cell and candidate.cell and candidate.cell.value != best.cell.value
            )
            return best._replace(differing=next(differing, None))
        return FoundLabel(None)

    def _rows_by_nearness(self, box: _TableBox) -> Iterator[list[int]]:
        """Yield the filled rows around a table, nearest first: up to the next table above, those further up, beside it,
        below it."""
        last_row_above = self._last_row_above(box)
        above = sorted((row for row in self._cells if row < box.top), reverse=True)
        yield [row for row in above if row > last_row_above]
        yield [row for row in above if row <= last_row_above]
        yield [row for row in sorted(self._cells) if box.top <= row <= box.bottom]  # beside it
        floor = min(
            (other.top for other in self._boxes.values() if other.top > box.bottom),
            default=box.bottom + _ROWS_BELOW + 1,
        )
        yield [row for row in sorted(self._cells) if box.bottom < row < floor]

    def _last_row_above(self, box: _TableBox) -> int:
        """Return the last row of the next table above, in the columns of this one; 0 if there is none."""
        above = [other for other in self._boxes.values() if other.bottom < box.top]
        over = [other.bottom for other in above if other.left <= box.right and box.left <= other.right]
        return max(over, default=0)


def _outline(table: SourceTable) -> _TableBox:
    """Return the box that a table and its header cover; header rows above a blank row are left out."""
    cells, head = table.table.range, list(table.table.header_rows)
    top = head.pop() if head else cells.top
    while head and head[-1] == top - 1:
        top = head.pop()  # what is above a blank row is no part of a header for sure
    return _TableBox(top, cells.left, max(cells.bottom, table.bottom), cells.right)


def _rows_below(box: _TableBox) -> tuple[int, int]:
    """Return the first and last row below a table in which its labels may be."""
    return box.bottom + 1, box.bottom + _ROWS_BELOW


def _join_ranges(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges of rows (first, last) that overlap or touch, and sort them."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _blocks_near(table: SourceTable, near: Sequence[tuple[int, int]]) -> Iterator[Block]:
    """Yield the blocks of a sheet that may have rows in one of the ranges `near` its tables."""
    sheet = table.sheet
    if isinstance(sheet, SpooledSheet):
        return sheet.some_blocks(lambda e: any(e.first <= last and first <= e.last for first, last in near))
    return blocks_of(sheet)


def _has_value(value: Any) -> bool:
    """Whether a cell has more than spaces in it."""
    return value is not None and not (value.__class__ is str and not value.strip())


def _is_named(text: str, name: str) -> bool:
    """Whether a cell's text is this label, with or without its value: `Account`, `Account: 4711`."""
    return len(text) <= _LONGEST_LABELLED and (normalized(text) == name or normalized(_split_at_colon(text)[0]) == name)


def _split_at_colon(text: str) -> tuple[str, str]:
    """Split `Account: 4711` into the label and the value behind the colon; the value is empty without one."""
    at = min((at for colon in _COLONS if (at := text.find(colon)) >= 0), default=len(text))
    return text[:at], text[at + 1 :].strip()


def _find_value(cells: Cells, label: CellPosition, side: str | None, labels: set[str]) -> FoundLabel:
    """Find the value of a label: behind its colon, else right of it or below it; its `cell` is None if there is none.

    `side`: where the manifest says it is. `labels`: all that the manifest names, which are not values.
    """
    row, column = label
    text = str(cells[row][column])
    _, value_behind_colon = _split_at_colon(text)
    if value_behind_colon and normalized(text) not in labels and side is None:
        return FoundLabel(SuppliedCell(row, column, value_behind_colon), label)
    right, below = _value_to_the_right(cells, row, column), _value_below(cells, row, column)
    right = None if side == "below" or (side is None and _is_label(right, labels)) else right
    below = None if side == "right" or (side is None and _is_label(below, labels)) else below
    if right is None or below is None:
        return FoundLabel(right or below, label)
    chosen, is_sure = _choose_neighbour(cells, label, right, below)
    other = below if chosen is right else right
    return FoundLabel(chosen, label, None if is_sure else CellPosition(other.row, other.column))


def _choose_neighbour(
    cells: Cells, label: CellPosition, right: SuppliedCell, below: SuppliedCell
) -> tuple[SuppliedCell, bool]:
    """Choose the value from the cells right of and below a label, and say whether the choice is sure."""
    row, column = label
    if str(cells[row][column]).rstrip().endswith(_COLONS):
        return right, True
    is_text_right, is_text_below = isinstance(right.value, str), isinstance(below.value, str)
    if is_text_right is not is_text_below:  # the text is another label
        return (right if is_text_below else below), True
    pairs = sum(_is_pair(cells.get(row + n, {}), column) for n in range(-_ROWS_OF_FORM, _ROWS_OF_FORM + 1))
    if pairs >= _ROWS_OF_FORM:  # a form of two columns; one of two rows has as many pairs as a heading over values
        return right, True
    if len(cells[row]) >= _ROWS_OF_FORM and cells[row].keys() == cells[below.row].keys():
        return below, True
    has_digits_right, has_digits_below = (any(map(str.isdigit, str(cell.value))) for cell in (right, below))
    return (below if has_digits_below and not has_digits_right else right), False


def _is_pair(line: Mapping[int, Any], column: int) -> bool:
    """Whether a row has a label in this column, a value right of it, and nothing else."""
    return isinstance(line.get(column), str) and len(line) == 2 and column + 1 in line


def _value_to_the_right(cells: Cells, row: int, column: int) -> SuppliedCell | None:
    """Return the first filled cell to the right of a label, close enough to belong to it; None if there is none."""
    for at in range(column + 1, column + 2 + _MOST_BLANKS_BETWEEN):
        if at in cells[row]:
            return SuppliedCell(row, at, cells[row][at])
    return None


def _value_below(cells: Cells, row: int, column: int) -> SuppliedCell | None:
    """Return the cell right below a label; None if it is blank."""
    value = cells.get(row + 1, {}).get(column)
    return None if value is None else SuppliedCell(row + 1, column, value)


def _is_label(cell: SuppliedCell | None, labels: set[str]) -> bool:
    """Whether a neighbour is a label itself: it ends in a colon, or the manifest names it."""
    if cell is None or not isinstance(cell.value, str):
        return False
    text = cell.value.rstrip()
    return text.endswith(_COLONS) or normalized(text) in labels or normalized(_split_at_colon(text)[0]) in labels
