"""The result of the structure pass: row labels, and tables with their exact ranges and reasons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import NamedTuple

from runner.engine.common.a1 import CellRange


class Label(IntEnum):
    """A rule in `row_types/` names a label in lower case: `{"scores": {"total": 1.5}}`."""

    HEADER = 0
    DATA = 1
    TOTAL = 2  # a sum, a mean: derived from other rows
    GROUP = 3  # a caption of the data rows that follow
    TITLE = 4  # above a table, not part of it
    NOTE = 5  # below or beside a table, not part of it


BODY = frozenset({Label.DATA, Label.TOTAL, Label.GROUP})
NAMES: Mapping[str, Label] = {label.name.lower(): label for label in Label}

# Row number (1-based) and values -> points that rules add to labels. One point multiplies the odds by e.
RowScores = Callable[[int, Sequence[object]], Mapping[str, float]]


class Clarity(IntEnum):
    """How clearly a row is labelled as a total."""

    NOTHING = 0
    HINT = 1  # a word that may mean a total: "Mean Well PSU", "Balance", "All regions"
    NAMED = 2  # a total of something: "Total North", "Summe Nord"
    PLAINLY = 3  # only the word itself


class RowKind(StrEnum):
    """What a row of a table is, if it is no record; the words of `as` in artifact.json."""

    TITLE = "title"
    REPEATED_HEADER = "repeated_header"
    GROUP = "group"
    TOTAL = "total"
    NOTE = "note"


class Proof(StrEnum):
    """Why a row cannot be a record. A row that is left out without one is reported as a warning (ledger.py)."""

    ASKED = "the manifest or a rule says so"
    DECLARED = "the file declares it"
    REPEATS = "it repeats the header, or what is above the header"
    ADDS_UP = "it is labelled and adds up, or adds up beyond chance"
    HEADS = "it heads the rows below and is unlike the values of its column"
    DESCRIBES = "it numbers the columns or states their types"
    LINE = "it is a drawn line"
    ABOVE = "it is above the header, and unlike the records"
    REMARK = "it reads as a remark, and does not fit its column"
    REPORTED = "a choice of the table reports it"


class LeftRow(NamedTuple):
    """A row that is not data, and the proof; None: it could be a record."""

    kind: RowKind
    proof: Proof | None


class Suspicion(NamedTuple):
    """Why a row may be a total."""

    clarity: Clarity
    full: bool = False  # it has all that the records have, names and dates too
    lacks: int = 0  # columns that are blank here, and that all records fill
    is_last: bool = False  # of the table, or above a blank row or a drawn line
    named: bool = False  # it is reported if it does not add up, whatever its clarity
    charge: bool = False  # it is called what footers add to a sum: shipping, taxes, a discount
    is_part: bool = False  # it is called a part of the row above: of which women
    tops: bool = False  # it is the first row, and as large as those below
    under: bool = False  # it is below a total, and lacks all that the total lacks
    counts: bool = False  # its numbers are how often the marks above them occur
    heads: bool = False  # it is the sum of the rows below or above, as all others of its table's outline


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `parts` are the header's cells from top to leaf, without repeats."""

    index: int  # 1-based, in the sheet
    name: str
    parts: tuple[str, ...] = ()
    generated: bool = False  # the header is blank here; the column is named by its letters


class Choice(NamedTuple):
    """A choice between two readings of a table, as `Findings.chose` records it."""

    kind: str  # header, total, group
    chosen: str
    evidence: Mapping[str, int]  # reading -> how many cells, columns or rows support it
    sure: bool
    message: str = ""  # what was assumed, if it is not sure
    row: int | None = None
    settle: str | None = None  # the manifest line that settles it


class RememberedShape(NamedTuple):
    """A table of a sender that a person has confirmed, or (without headers) a sheet that a person left out or cut."""

    sender: str
    sheet: str  # empty: the only sheet of its file
    header_rows: tuple[int, ...]
    headers: tuple[str, ...]  # one for each column, empty where there is none
    file: str  # of a table without a header row: the letters of its file's name
    fields: tuple[str | None, ...]  # of a table without a header row
    named: bool  # a person named the header rows: everything below them is the table
    left_out: bool
    cut: str  # of a sheet that could be cut into tables in two ways: one, columns, rows or both
    by: str
    by_person: bool
    moment: datetime
    memory: str
    version: str

    def as_dict(self) -> dict[str, object]:
        """Encode it as artifact.json names it."""
        return {
            "memory": self.memory,
            "version": self.version,
            "sender": self.sender,
            "sheet": self.sheet,
            "header_rows": list(self.header_rows),
            "by": self.by,
            "at": self.moment.isoformat().replace("+00:00", "Z"),
        }


@dataclass(frozen=True, slots=True)
class Partition:
    """A way to cut a part of a sheet into tables."""

    ranges: tuple[CellRange, ...]  # from top to bottom and left to right
    probability: float  # that the tables of this part are exactly these

    def as_dict(self) -> dict[str, object]:
        """Encode it as `ade scan` and the artifact have it."""
        return {"ranges": [cell_range.a1 for cell_range in self.ranges], "probability": round(self.probability, 3)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One table of a sheet.

    Its data are the rows from `data_range.top` to `data_range.bottom` with a value in its columns, except those in
    `left_out`. `data_range` is None if a header has no data.
    """

    range: CellRange
    header_rows: tuple[int, ...]
    data_range: CellRange | None
    columns: tuple[Column, ...]
    confidence: float
    why: tuple[str, ...] = ()
    left_out: Mapping[int, LeftRow] = field(default_factory=dict)  # rows that are no records, around it and inside
    choices: tuple[Choice, ...] = ()  # readings of this table that were close
    suspected: Mapping[int, Suspicion] = field(default_factory=dict)  # until totals are checked: rows that may be some
    shape: RememberedShape | None = None  # what a memory said about it
    # The tables that would be here in the second best partition of the sheet, if that is close. Every table that is
    # not among them has the same alternative; a table of both partitions has none.
    alternative: Partition | None = None

    @property
    def generated_header(self) -> bool:
        return not self.header_rows

    def rows_of(self, kind: RowKind) -> frozenset[int]:
        """Return the left-out rows of a kind."""
        return frozenset(number for number, row in self.left_out.items() if row.kind is kind)

    @property
    def titles(self) -> tuple[int, ...]:
        """Rows above that name the table."""
        return tuple(sorted(self.rows_of(RowKind.TITLE)))

    @property
    def notes(self) -> tuple[int, ...]:
        """Rows below that comment on it."""
        return tuple(sorted(n for n in self.rows_of(RowKind.NOTE) if n > self.range.bottom))

    @property
    def asides(self) -> frozenset[int]:
        """Notes between the data."""
        return frozenset(n for n in self.rows_of(RowKind.NOTE) if n <= self.range.bottom)

    @property
    def groups(self) -> frozenset[int]:
        """Captions between the data."""
        return self.rows_of(RowKind.GROUP)

    @property
    def totals(self) -> frozenset[int]:
        """Sums and means."""
        return self.rows_of(RowKind.TOTAL)

    @property
    def repeated(self) -> frozenset[int]:
        """Repeated headers."""
        return self.rows_of(RowKind.REPEATED_HEADER)

    def as_dict(self) -> dict[str, object]:
        """Encode it as `ade scan` and the artifact have it: ranges and reasons, no cell values."""
        return {
            "range": self.range.a1,
            "header_rows": list(self.header_rows),
            "data_range": self.data_range.a1 if self.data_range else None,
            "confidence": round(self.confidence, 3),
            "why": list(self.why),
            **({"shape": self.shape.as_dict()} if self.shape is not None else {}),
            **({"alternative": self.alternative.as_dict()} if self.alternative is not None else {}),
        }
