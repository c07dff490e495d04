"""Fills values down: captions into a column (`reading.captions`), merged cells into the rows they cover, and any value
into the blank cells below it (`fill_down`)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.common.a1 import CellRange
from runner.engine.reading import NO_CACHED_VALUE, Area

JOIN: Final = " / "


class Caption(NamedTuple):
    """A row inside a table whose only text names the rows below it."""

    row: int
    column: int  # among the table's own columns; a caption further left is of a higher level
    text: str


class CaptionColumn:
    """The captions in force at the current row.

    A caption applies until the next one of its level. Captions right below each other are nested levels: the next block
    of captions replaces as many levels, from the innermost, as it has captions. If captions are in different columns,
    the column is the level.
    """

    def __init__(self, above: str | None = None) -> None:
        """Start above the first row; `above` is the caption that the table itself has, None without one."""
        self._levels: list[Caption] = []
        self._fresh: list[Caption] = []  # captions with no data below them yet
        self._value = above

    def fill(self, numbers: Sequence[int], captions: Sequence[Caption]) -> list[str | None]:
        """Return the caption that applies to each row, None before the first one; `captions` lie between the rows.

        Remembers the captions for the rows of the next call.
        """
        in_force: list[str | None] = []
        for caption in captions:
            while len(in_force) < len(numbers) and numbers[len(in_force)] < caption.row:
                in_force.append(self._apply_fresh_captions())
            self._fresh.append(caption)
        if len(in_force) < len(numbers):
            in_force += [self._apply_fresh_captions()] * (len(numbers) - len(in_force))
        return in_force

    def _apply_fresh_captions(self) -> str | None:
        """Put the captions since the last row in force, and return the text that applies from here on; None without
        captions."""
        if self._fresh:
            self._levels = _replace_levels(self._levels, self._fresh)
            self._fresh = []
            self._value = JOIN.join(c.text.strip() for c in self._levels)
        return self._value


def _replace_levels(levels: list[Caption], fresh: list[Caption]) -> list[Caption]:
    """Return the nested captions after fresh ones came: each replaces the one of its level, and all below that."""
    if len({level.column for level in (*levels, *fresh)}) > 1:
        for caption in fresh:
            levels = [*(level for level in levels if level.column < caption.column), caption]
        return levels
    return [*levels[: max(0, len(levels) - len(fresh))], *fresh]


CODE: Final = "merged_blank"
MESSAGE: Final = (
    'is blank under a merged cell, whose value counts for its first cell only; to repeat it: "merged": "fill" '
    "on the field"
)


class _MergedCell(NamedTuple):
    """A merged cell."""

    first_row: int
    value: Any


class ColumnMerges:
    """The merged cells that cover one column of a table and begin in the same one, tracked across its chunks."""

    def __init__(self, spans: Iterable[tuple[int, int]], left: int) -> None:
        """Prepare for merged cells that cover these rows (first, last), and whose values column `left` stores."""
        self.left = left
        self._spans = sorted(spans)
        self._ends = [last for _, last in self._spans]
        self._latest = _MergedCell(0, None)

    def covered(self, numbers: Sequence[int], values: Sequence[Any], stored: Sequence[Any]) -> dict[int, Any]:
        """Map the index of each blank cell under a merged cell to that cell's value; remembers a cell that goes on into
        the next chunk.

        `values`: of the column, `stored`: of the column in which the merged cells begin.
        """
        covered_values: dict[int, Any] = {}
        for first, last in self._spans[bisect_left(self._ends, numbers[0]) :]:
            if first > numbers[-1]:
                break
            position = bisect_left(numbers, first)
            if first >= numbers[0]:
                self._latest = _MergedCell(first, stored[position] if numbers[position] == first else None)
            if self._latest.first_row != first or self._latest.value in (None, NO_CACHED_VALUE):
                continue
            for at in range(position, bisect_right(numbers, last)):
                if values[at] is None:
                    covered_values[at] = self._latest.value
        return covered_values


def of_column(areas: Iterable[Area], column: int) -> list[ColumnMerges]:
    """Return the merged cells that cover a column of the sheet, by the column in which they begin."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for top, left, bottom, right in areas:
        if left <= column <= right and (left < column or top < bottom):
            spans.setdefault(left, []).append((top, bottom))
    return [ColumnMerges(rows, left) for left, rows in spans.items()]


def within(areas: Iterable[Area], data: CellRange) -> list[Area]:
    """Return the merged areas that begin in the data rows of a table, and do not cover all of its columns: such a cell
    is a caption, and one that begins in the header belongs to the header."""
    return [
        (first, left, last, right)
        for first, left, last, right in areas
        if data.top <= first <= data.bottom and (first < last or left > data.left or right < data.right)
    ]


def fill_merged(values: Sequence[Any], covered: dict[int, Any]) -> list[Any]:
    """Copy the values of a chunk, with those of merged cells in the blanks that they cover."""
    repeated = list(values)
    for index, value in covered.items():
        repeated[index] = value
    return repeated


class FilledDown(NamedTuple):
    """Blank cells of a column that took the value above."""

    first: int  # the row of the first one
    cells: int


def fill_down(column: list[Any], above: Any, rows: Sequence[int]) -> tuple[list[Any], FilledDown | None]:
    """Fill each blank cell with the value above; return the new column, and how many cells took one (None if none did).

    `above`: the value above the first cell.
    """
    values: list[Any] = []
    blank: list[int] = []
    for row, value in zip(rows, column, strict=True):
        if value is not None and not (value.__class__ is str and not value.strip()):
            above = value
        elif above is not None:
            blank.append(row)
        values.append(above)
    return values, FilledDown(blank[0], len(blank)) if blank else None


# What people write instead of the value above: ditto marks and words.
DITTO: Final = frozenset({
    '"', "''", "\u2033", "\u3003", "\u201d", "\u201e", '-"-', '- " -', '\u2014"\u2014', '\u2013"\u2013', "-\u201d-",
    "-''-", '"-"', '" "', '" " "', "ditto", "Ditto", "DITTO", "do.", "Do.", "dto.", "Dto.", "dto", "idem", "Idem",
    "id.", "dito", "Dito", "wie oben", "as above", "same as above",
})  # fmt: skip

QUOTES: Final = frozenset({'"', "''", "\u201d", "\u201e", '" "'})  # those that are values, too


def replace_dittos(column: list[Any], above: Any) -> list[Any]:
    """Copy a column with the value above in place of each ditto mark; `above`: the value before the first cell."""
    values: list[Any] = []
    for value in column:
        above = above if value in DITTO and above is not None else value
        values.append(above)
    return values
