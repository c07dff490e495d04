"""The facts of one row that the line classifier needs, without keeping the sheet."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.engine.structure.cells import look

MAX_COLUMNS = 512  # cells further out only widen the table that stands before them
KEPT_TEXT = 256


@dataclass(slots=True)
class Row:
    """One row that holds something. Columns are 1-based; `kinds[0]` belongs to column 1."""

    number: int
    ordinal: int  # how many rows that hold something stand above it
    gap: int  # blank rows right above
    kinds: bytes
    marks: tuple[int, ...]
    lengths: tuple[int, ...]
    words: tuple[int, ...]
    values: tuple[object, ...]
    filled: tuple[int, ...]  # 0-based columns
    last: int  # last filled column, 1-based, beyond MAX_COLUMNS too
    width: int = 0  # filled cells, the ones beyond MAX_COLUMNS too
    skipped: int = 0  # plain data rows right above that were only counted
    bold: float = -1.0  # share of filled cells in bold; -1: not known
    merged: int = 0  # merged ranges of several columns that start here
    plain: bool = False  # looks like its column's usual rows; kept only as a neighbour of one that does not

    @property
    def first(self) -> int:
        return self.filled[0] + 1 if self.filled else 1


def _short(value: object) -> object:
    return value[:KEPT_TEXT] if isinstance(value, str) and len(value) > KEPT_TEXT else value


def row_of(number: int, values: Sequence[object], *, ordinal: int, gap: int) -> Row | None:
    """The row's facts; None where its first columns hold only blanks."""
    looks = [look(value) for value in values[:MAX_COLUMNS]]
    kinds = bytes([one[0] for one in looks])
    filled = tuple([at for at, kind in enumerate(kinds) if kind])
    last = len(values)
    while last and not look(values[last - 1])[0]:
        last -= 1
    if not filled:
        return None
    beyond = sum(value is not None for value in values[MAX_COLUMNS:last])
    return Row(
        number=number,
        ordinal=ordinal,
        gap=gap,
        kinds=kinds,
        marks=tuple([one[2] for one in looks]),
        lengths=tuple([one[1] for one in looks]),
        words=tuple([one[3] for one in looks]),
        values=tuple([_short(value) for value in values]),
        filled=filled,
        last=last,
        width=len(filled) + beyond,
    )
