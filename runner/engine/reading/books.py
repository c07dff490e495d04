"""The shape every format is read into: a book of sheets that stream rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self, runtime_checkable

from runner.engine.reading.values import Block, Row

Format = Literal["xlsx", "xlsm", "xls", "xlsb", "ods", "csv", "tsv", "html"]
Visibility = Literal["visible", "hidden", "very_hidden"]
Area = tuple[int, int, int, int]  # first row, first column, last row, last column; 1-based, inclusive
Marks = dict[int, set[int]]  # row -> columns


@dataclass(frozen=True, kw_only=True)
class DeclaredTable:
    """A table that the file itself declares (an Excel ListObject, an ODS database range)."""

    name: str
    area: Area
    header_rows: int = 1
    totals_rows: int = 0


@dataclass(kw_only=True)
class Layout:
    """What a sheet says beside its values. Whatever a format cannot tell is empty."""

    merged: list[Area] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    bold: Marks = field(default_factory=dict)
    italic: Marks = field(default_factory=dict)
    filled: Marks = field(default_factory=dict)
    border_top: Marks = field(default_factory=dict)
    border_bottom: Marks = field(default_factory=dict)
    centred: Marks = field(default_factory=dict)
    indented: Marks = field(default_factory=dict)
    styled_rows: int = 0  # the style marks above cover rows up to this one; 0: the format tells none
    declared_tables: list[DeclaredTable] = field(default_factory=list)
    autofilter: Area | None = None
    frozen_rows: int = 0  # rows above the freeze line
    frozen_columns: int = 0
    print_title_rows: tuple[int, int] | None = None


class Sheet(Protocol):
    """One sheet. ``rows`` may be called again; each call reads from the start."""

    name: str
    index: int  # 0-based position in the book
    visibility: Visibility

    def rows(self) -> Iterator[Row]:
        """Stream (row number, values from column A): ascending, no blank rows, no trailing blanks."""
        ...

    def layout(self) -> Layout:
        """Merges, hidden rows, style hints. Read once, then remembered."""
        ...


@runtime_checkable
class Columnar(Protocol):
    """A sheet that can give its rows by column, at a fraction of the cost."""

    def blocks(self) -> Iterator[Block]:
        """The rows of ``rows``, in blocks; may end in ``OutOfOrder``, once."""
        ...


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """What the sender knows of a text file better than any detection; None: to be found out."""

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None  # empty: no character quotes


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A choice between two readings of a whole file."""

    kind: str
    chosen: str
    evidence: Mapping[str, int]
    sure: bool
    settle: str  # the manifest's line
    message: str


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Rows that could be read in more than one way."""

    code: str
    message: str
    rows: tuple[int, ...]  # the first of them
    count: int
    settle: str | None = None


@runtime_checkable
class Remarking(Protocol):
    """A sheet that has something to say about rows it has read."""

    def remarks(self) -> list[Remark]: ...


class Source(Protocol):
    """What a book holds open."""

    def close(self) -> None: ...


class Book:
    """An opened file: its format, which reader reads it, what was detected, and its sheets in order."""

    def __init__(
        self,
        *,
        file_format: Format,
        reader: str,
        sheets: list[Sheet],
        notes: dict[str, object],
        source: Source,
        choices: Sequence[Choice] = (),
    ) -> None:
        self.format: Format = file_format
        self.reader = reader
        self.sheets = sheets
        self.notes = notes
        self.choices = list(choices)
        self._source = source

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
