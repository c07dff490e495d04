"""The model every format is read into: a book of sheets that stream rows of values, and the limits of reading."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from types import TracebackType
from typing import Final, Literal, NamedTuple, Protocol, Self, Union, runtime_checkable

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Every bound is counted while reading; a size that the file declares is only the first check."""

    max_file_bytes: int = 4096 * MIB
    max_entries: int = 20_000  # parts in a zip; a workbook with a thousand sheets and charts has about 5,000
    max_entry_bytes: int = 4096 * MIB  # one streamed part: a full sheet of 16 million cells is near 700 MiB
    max_part_bytes: int = 64 * MIB  # one part beside sheets and strings: workbook, styles, relations
    max_styles: int = 200_000  # Excel stops at 65,490
    max_strings: int = 20_000_000
    max_strings_held: int = 128 * MIB  # shared strings in memory, as UTF-8
    max_ratio: int = 250  # inflated / stored, where a part is over ratio_floor; XML of real sheets stays under 60
    ratio_floor: int = 32 * MIB
    max_rows: int = 1_048_576  # per sheet, as the formats say; text files have no such bound
    max_columns: int = 16_384
    max_cells: int = 200_000_000  # per sheet, the blanks left of a value counted
    max_sorted_cells: int = 5_000_000  # in sheets whose rows are out of order, which must be held to be sorted
    max_sheets: int = 2_000
    max_token_bytes: int = 4 * MIB  # one XML tag or text run
    max_depth: int = 200  # nested XML elements
    max_loaded_bytes: int = 96 * MIB  # a file that can only be read whole (xls)
    max_page_bytes: int = 48 * MIB  # a web page, which is held whole
    max_page_cells: int = 2_000_000
    max_page_tables: int = 2_000
    max_merged: int = 300_000  # merged areas beyond are not told
    layout_rows: int = 4_000  # rows whose cell styles are kept as hints


ERROR_CODES: Final = frozenset({
    "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!", "#FIELD!",
    "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!", "#EXTERNAL!", "#PYTHON!", "#TIMEOUT!",
})  # fmt: skip
OTHER_ERROR: Final = "#VALUE!"


class CellError(str):
    """An error cell such as ``#N/A``: a text that is never data.

    A file can claim any text to be an error, so only those that spreadsheets know are kept; any other is ``#VALUE!``.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        code = text.strip().upper()
        return super().__new__(cls, code if code in ERROR_CODES else OTHER_ERROR)


class Shown(int):
    """A whole number whose format shows more than its digits, such as 501 shown as ``00501``: a number that, where a
    text is wanted, is the text a person sees."""

    shown: str

    def __new__(cls, number: int, shown: str = "") -> Self:
        value = super().__new__(cls, number)
        value.shown = shown or str(number)
        return value


class NoCachedValue:
    """The cell holds a formula whose result was never stored. One instance: ``NO_CACHED_VALUE``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_CACHED_VALUE"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NO_CACHED_VALUE"  # stays the one instance through pickle and copy


NO_CACHED_VALUE: Final = NoCachedValue()

Value = Union[  # noqa: UP007  # mypy reads an alias with None best this way
    None, str, int, float, bool, datetime, date, time, timedelta, CellError, NoCachedValue
]
Row = tuple[int, list[Value]]


class Block(NamedTuple):
    """Consecutive rows by column: their numbers, and one list of values per column from column A."""

    numbers: list[int]
    columns: list[list[Value]]

    def within(self, first: int, last: int) -> "Block":
        """The rows from `first` to `last`."""
        start, end = bisect_left(self.numbers, first), bisect_right(self.numbers, last)
        return Block(self.numbers[start:end], [column[start:end] for column in self.columns])


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
class ReadingChoice:
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


class BookSource(Protocol):
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
        source: BookSource,
        choices: Sequence[ReadingChoice] = (),
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
