"""Fills values down: captions into a column (`reading.captions`), merged cells into the rows they cover, and any value
into the blank cells below it (`fill_down`)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.reading import NO_CACHED_VALUE, Area

JOIN: Final = " / "


class Caption(NamedTuple):
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
        """`above`: the caption of the rows before the first one."""
        self._levels: list[Caption] = []
        self._fresh: list[Caption] = []  # captions with no data below them yet
        self._value = above

    def fill(self, numbers: Sequence[int], captions: Sequence[Caption]) -> list[str | None]:
        """The caption in force at each row, None before the first one; `captions` lie between the rows.

        Remembers the captions for the rows of the next call.
        """
        in_force: list[str | None] = []
        for caption in captions:
            while len(in_force) < len(numbers) and numbers[len(in_force)] < caption.row:
                in_force.append(self._current())
            self._fresh.append(caption)
        if len(in_force) < len(numbers):
            in_force += [self._current()] * (len(numbers) - len(in_force))
        return in_force

    def _current(self) -> str | None:
        """The caption of the rows from here on, once those that came since the last row are in force; None: none is."""
        if self._fresh:
            self._levels = _with_fresh_captions(self._levels, self._fresh)
            self._fresh = []
            self._value = JOIN.join(c.text.strip() for c in self._levels)
        return self._value


def _with_fresh_captions(levels: list[Caption], fresh: list[Caption]) -> list[Caption]:
    """The levels of captions once fresh ones are in force."""
    if len({level.column for level in (*levels, *fresh)}) > 1:
        for caption in fresh:
            levels = [*(level for level in levels if level.column < caption.column), caption]
        return levels
    return [*levels[: max(0, len(levels) - len(fresh))], *fresh]


CODE: Final = "merged_blank"
MESSAGE: Final = (
    'is blank under a merged cell, whose value counts for its first row only; to repeat it: "merged": "fill" '
    "on the field"
)


class ColumnMerges:
    """The merged cells of one column of a table, tracked across its chunks."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans = sorted(spans)
        self._ends = [last for _, last in self._spans]
        self._held: tuple[int, Any] = (0, None)  # the first row and the value of the latest merged cell

    def covered(self, numbers: Sequence[int], values: Sequence[Any]) -> dict[int, Any]:
        """Index of each blank cell of this chunk under a merged cell -> that cell's value."""
        values_above: dict[int, Any] = {}
        for first, last in self._spans[bisect_left(self._ends, numbers[0]) :]:
            if first > numbers[-1]:
                break
            position = bisect_left(numbers, first)
            if first >= numbers[0]:
                self._held = (first, values[position] if numbers[position] == first else None)
            if self._held[0] != first or self._held[1] in (None, NO_CACHED_VALUE):
                continue
            for below in range(bisect_right(numbers, first), bisect_right(numbers, last)):
                if values[below] is None:
                    values_above[below] = self._held[1]
        return values_above


def of_column(areas: Iterable[Area], column: int) -> ColumnMerges | None:
    """The merged cells of several rows that cover a column; None if there are none."""
    spans = [(top, bottom) for top, left, bottom, right in areas if left <= column <= right]
    return ColumnMerges(spans) if spans else None


def within(areas: Iterable[Area], top: int, bottom: int) -> list[Area]:
    """The areas that cover several data rows; one that begins in the header belongs to the header."""
    return [area for area in areas if area[2] > area[0] and top <= area[0] < bottom]


def filled(values: Sequence[Any], covered: dict[int, Any]) -> list[Any]:
    """The values of a chunk with those of merged cells in the blanks that they cover."""
    repeated = list(values)
    for index, value in covered.items():
        repeated[index] = value
    return repeated


class FilledDown(NamedTuple):
    """Blank cells of a column that took the value above."""

    first: int  # the row of the first one
    cells: int


def filled_down(column: list[Any], above: Any, rows: Sequence[int]) -> tuple[list[Any], FilledDown | None]:
    """The column with the value above for each blank cell, and how many took one; None if none did.

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


def without_dittos(column: list[Any], above: Any) -> list[Any]:
    """The column with the value above for each ditto mark; `above`: the value before the first one."""
    values: list[Any] = []
    for value in column:
        above = above if value in DITTO and above is not None else value
        values.append(above)
    return values
