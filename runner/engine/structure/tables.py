"""What the structure pass returns: row labels, and tables with exact places and the reasons for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from runner.engine.structure.totals import Says


class Label(IntEnum):
    """A rule in `row_types/` names a label in lower case: `{"scores": {"total": 1.5}}`."""

    HEADER = 0
    DATA = 1
    TOTAL = 2  # a sum, a mean: derived from other rows
    GROUP = 3  # a caption over the data rows that follow
    TITLE = 4  # above a table and no part of it
    NOTE = 5  # below or beside a table and no part of it


BODY = frozenset({Label.DATA, Label.TOTAL, Label.GROUP})
NAMES: Mapping[str, Label] = {label.name.lower(): label for label in Label}

# Row number (1-based) and values, to what rules add to a label's score. One point multiplies odds by e.
RowScores = Callable[[int, Sequence[object]], Mapping[str, float]]


def letters(column: int) -> str:
    """A column's name: 1 is A, 27 is AA."""
    out = ""
    while column:
        column, rest = divmod(column - 1, 26)
        out = chr(65 + rest) + out
    return out


@dataclass(frozen=True, slots=True)
class CellRange:
    """A rectangle of cells, 1-based, both ends included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def a1(self) -> str:
        return f"{letters(self.left)}{self.top}:{letters(self.right)}{self.bottom}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `parts` are the header's cells from top to leaf, without repeats."""

    index: int  # 1-based, in the sheet
    name: str
    parts: tuple[str, ...] = ()
    generated: bool = False  # the header is blank here; the name is made from the column's letters


class Choice(NamedTuple):
    """A choice between two readings of a table, as `Findings.chose` records it."""

    kind: str  # header, total, group
    chosen: str
    evidence: Mapping[str, int]  # reading -> how many cells, columns or rows spoke for it
    sure: bool
    message: str = ""  # what was assumed, where it is not sure
    row: int | None = None
    settle: str | None = None  # the manifest line that settles it


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One table of a sheet.

    Its data are the rows from `data_range.top` to `data_range.bottom` that hold something in its columns and
    stand in none of `groups`, `totals`, `asides` and `repeated`. `data_range` is None where a header has no data.
    """

    range: CellRange
    header_rows: tuple[int, ...]
    data_range: CellRange | None
    columns: tuple[Column, ...]
    confidence: float
    why: tuple[str, ...] = ()
    titles: tuple[int, ...] = ()  # rows right above that name the table
    notes: tuple[int, ...] = ()  # rows right below that comment on it
    groups: frozenset[int] = field(default_factory=frozenset)  # captions between the data
    totals: frozenset[int] = field(default_factory=frozenset)  # sums and means, wherever they stand
    asides: frozenset[int] = field(default_factory=frozenset)  # notes between the data
    repeated: frozenset[int] = field(default_factory=frozenset)  # the header written again between the data
    choices: tuple[Choice, ...] = ()  # readings of this table that could have been others
    # Until its sums are looked at: rows that may be totals, by how plainly they say so, and those worth a word if not.
    suspected: Mapping[int, Says] = field(default_factory=dict)
    doubted: tuple[int, ...] = ()

    @property
    def generated_header(self) -> bool:
        return not self.header_rows

    @property
    def left_out(self) -> frozenset[int]:
        """Rows inside `data_range` that are no data."""
        return self.groups | self.totals | self.asides | self.repeated

    def as_dict(self) -> dict[str, object]:
        """How `ade scan` and the artifact show it: places and reasons, no cell values."""
        return {
            "range": self.range.a1,
            "header_rows": list(self.header_rows),
            "data_range": self.data_range.a1 if self.data_range else None,
            "confidence": round(self.confidence, 3),
            "why": list(self.why),
        }
