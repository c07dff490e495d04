"""The model that every format is read into (a book of sheets that stream rows), its limits, and what readers share.

Readers build rows with `RowBuilder`, sort them with `ascending` where a file stores them out of order, and keep shared
strings in `SharedStrings`.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import islice, zip_longest
from types import TracebackType
from typing import Final, Literal, NamedTuple, Protocol, Self, Union, runtime_checkable

from runner.engine.reading import errors

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Every limit is enforced while reading; a size that the file declares is only the first check."""

    max_file_bytes: int = 4096 * MIB
    max_entries: int = 20_000  # parts in a zip; a workbook with a thousand sheets and charts has about 5,000
    max_entry_bytes: int = 4096 * MIB  # one streamed part: a full sheet of 16 million cells is near 700 MiB
    max_part_bytes: int = 64 * MIB  # any other part: workbook, styles, relations
    max_styles: int = 200_000  # Excel stops at 65,490
    max_strings: int = 20_000_000
    max_strings_held: int = 128 * MIB  # shared strings in memory, as UTF-8
    max_ratio: int = 250  # inflated / stored size of a part over ratio_floor; XML of real sheets stays under 60
    ratio_floor: int = 32 * MIB
    max_rows: int = 1_048_576  # per sheet, as the formats define; text files have no such limit
    max_columns: int = 16_384
    max_cells: int = 200_000_000  # per sheet, including blanks left of a value
    max_sorted_cells: int = 5_000_000  # in a sheet whose rows are out of order and must be sorted in memory
    max_sheets: int = 2_000
    max_token_bytes: int = 4 * MIB  # one XML tag or text run
    max_depth: int = 200  # nested XML elements
    max_loaded_bytes: int = 96 * MIB  # a file that can only be read whole (xls)
    max_page_bytes: int = 48 * MIB  # a web page, which is read whole
    max_page_cells: int = 2_000_000
    max_page_tables: int = 2_000
    max_merged: int = 300_000  # further merged areas are ignored
    layout_rows: int = 4_000  # rows whose cell styles are kept as hints


ERROR_CODES: Final = frozenset({
    "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!", "#FIELD!",
    "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!", "#EXTERNAL!", "#PYTHON!", "#TIMEOUT!",
})  # fmt: skip
OTHER_ERROR: Final = "#VALUE!"
MINUS: Final = "-"  # the "unit" of a number format that shows positive numbers as negative ones


class CellError(str):
    """An error cell such as ``#N/A``: text that is never data.

    A file can store any text as an error; only those that spreadsheets define are kept, others become ``#VALUE!``.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Make the cell of an error by its code, in any case; an unknown code becomes `#VALUE!`."""
        code = text.strip().upper()
        return super().__new__(cls, code if code in ERROR_CODES else OTHER_ERROR)


class Shown(int):
    """A whole number whose format shows more than its digits, such as 501 shown as ``00501``. Text fields take the text
    that a person sees."""

    shown: str

    def __new__(cls, number: int, shown: str = "") -> Self:
        """Make a number that is shown as a text; by default its digits."""
        value = super().__new__(cls, number)
        value.shown = shown or str(number)
        return value


class NoCachedValue:
    """A formula without a stored result. Singleton: ``NO_CACHED_VALUE``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_CACHED_VALUE"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NO_CACHED_VALUE"  # stays a singleton through pickle and copy


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
        """Return the rows from `first` to `last`; the block itself if that is all of them."""
        if self.numbers and first <= self.numbers[0] and self.numbers[-1] <= last:
            return self
        start, end = bisect_left(self.numbers, first), bisect_right(self.numbers, last)
        return Block(self.numbers[start:end], [column[start:end] for column in self.columns])


Format = Literal["xlsx", "xlsm", "xls", "xlsb", "ods", "csv", "tsv", "html"]
Visibility = Literal["visible", "hidden", "very_hidden"]
Area = tuple[int, int, int, int]  # first row, first column, last row, last column; 1-based, inclusive
Marks = dict[int, set[int]]  # row -> columns


class DeclaredTable(NamedTuple):
    """A table that the file itself declares (an Excel ListObject, an ODS database range)."""

    name: str
    area: Area
    header_rows: int = 1
    totals_rows: int = 0


class Design(NamedTuple):
    """How a cell looks, as far as a table's edges show by it."""

    above: bool = False  # a line is drawn there
    below: bool = False
    left: bool = False
    right: bool = False
    fill: int = 0  # a colour; 0: none
    bold: bool = False
    size: int = 0  # of the letters
    kind: int = 0  # the same for cells that differ in their lines only


@dataclass(kw_only=True)
class Layout:
    """What a sheet stores besides its values. Whatever a format does not store is empty."""

    merged: list[Area] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    bold: Marks = field(default_factory=dict)
    filled: Marks = field(default_factory=dict)
    lined: Marks = field(default_factory=dict)  # cells with a line drawn above or below (.xls only)
    struck: Marks = field(default_factory=dict)  # of all rows
    # column -> unit that a number format shows ("%", "€", "kg") -> first and last row of each run, of all rows
    units: dict[int, dict[str, "array[int]"]] = field(default_factory=dict)
    styled_rows: int = 0  # the style marks above cover rows up to this one; 0: the format stores no styles
    declared_tables: list[DeclaredTable] = field(default_factory=list)
    autofilter: Area | None = None
    frozen_rows: int = 0  # rows above the freeze line
    frozen_columns: int = 0
    print_title_rows: tuple[int, int] | None = None
    column_widths: dict[int, float] = field(default_factory=dict)  # by column, in usual widths (.xls only)
    # by row and column, blank cells included: an index of `designs` (.xls only)
    cell_designs: dict[int, dict[int, int]] = field(default_factory=dict)
    designs: list[Design] = field(default_factory=list)
    formulas: Marks = field(default_factory=dict)  # cells with a formula (.xls only)
    summed: list[Area] = field(
        default_factory=list
    )  # areas of several cells that formulas of the sheet read (.xls only)

    def add_unit(self, column: int, unit: str, first: int, last: int) -> None:
        """Remember the unit that a column's number format shows in a run of rows; runs must come from top to bottom."""
        runs = self.units.setdefault(column, {}).setdefault(unit, array("I"))
        if runs and runs[-1] == first - 1:
            runs[-1] = last
        else:
            runs.extend((first, last))


class SurveyedLayout(NamedTuple):
    """What one pass over a sheet shows before its rows are used."""

    layout: Layout
    are_rows_ordered: bool  # their numbers ascend, so they can be streamed


class Sheet(Protocol):
    """One sheet. ``rows`` may be called repeatedly; each call reads from the start."""

    name: str
    index: int  # 0-based position in the book
    visibility: Visibility

    def rows(self) -> Iterator[Row]:
        """Stream (row number, values from column A): ascending, no blank rows, no trailing blanks."""
        ...

    def layout(self) -> Layout:
        """Merges, hidden rows, style hints. Read once, then cached."""
        ...


class ListedSheet(NamedTuple):
    """A sheet as the workbook lists it, before it is read."""

    name: str
    visibility: Visibility
    part: str = ""  # name of its part in an .xlsx, id of its relation in an .xlsb
    position: int = 0  # offset in the stream of an .xls; 0-based among all sheets and charts of an .xlsx


# The states of a sheet as .xls and .xlsb number them; any other is visible.
STATES: Final[Mapping[int, Visibility]] = {1: "hidden", 2: "very_hidden"}


@runtime_checkable
class Columnar(Protocol):
    """A sheet that can return its rows by column, at a fraction of the cost."""

    def blocks(self) -> Iterator[Block]:
        """Return the rows of ``rows``, in blocks; the first call may raise ``OutOfOrder``."""
        ...


class TextOptions(NamedTuple):
    """What the sender declares about a text file; None: detect it."""

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None  # empty: the file has no quotes


class ReadingChoice(NamedTuple):
    """A choice between two readings of a whole file."""

    kind: str
    chosen: str
    evidence: Mapping[str, int]
    sure: bool
    settle: str  # the manifest line that settles it
    message: str


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Rows that could be read in two ways."""

    code: str
    message: str
    rows: tuple[int, ...]  # the first ones
    count: int
    settle: str | None = None
    columns: tuple[int, ...] = ()  # of its cells, one for each row; empty: the whole rows


@runtime_checkable
class Remarking(Protocol):
    """A sheet that reports ambiguous rows after reading."""

    def remarks(self) -> list[Remark]:
        """Return what was ambiguous in the rows read so far."""
        ...


@runtime_checkable
class SizedSheet(Protocol):
    """A sheet that knows how much the file stores of it."""

    def stored_bytes(self) -> int:
        """Bytes of its part, not compressed; 0 if the file has none."""
        ...


class BookSource(Protocol):
    """The open file behind a book."""

    def close(self) -> None:
        """Close the file."""
        ...


class Book:
    """An opened file: its format, its reader, what was detected, and its sheets in order."""

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
        """Describe an open file. `notes`: what the reader found out, for artifact.json. `source` is closed with it."""
        self.format: Format = file_format
        self.reader = reader
        self.sheets = sheets
        self.notes = notes
        self.choices = list(choices)
        self._source = source

    def close(self) -> None:
        """Close the file; its sheets can no longer be read."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


BLOCK = 2048  # rows: enough to work by column, few enough to stay in the CPU cache


class RowBuilder:
    """Builds one row at a time from its cells, and raises InputUnreadable beyond the limits of a sheet."""

    def __init__(self, limits: ReadLimits, on_twice: Callable[[int, int], None] | None = None) -> None:
        """Start without a row. `on_twice` is called with the row and column of a cell that has two different values."""
        self._limits = limits
        self._number = 0
        self._values: dict[int, Value] = {}
        self._slots = 0
        self._on_twice = on_twice

    def next_row(self, number: int) -> Row | None:
        """Start a row; returns the previous one, or None if it has no value."""
        if not 0 < number <= self._limits.max_rows:
            raise errors.damaged(f"a row number over {self._limits.max_rows}, the limit of a sheet")
        previous_row = self.finish()
        self._number = number
        return previous_row

    def put(self, column: int, value: Value) -> None:
        """Set a cell of the open row; a blank never replaces a value."""
        if not 0 < column <= self._limits.max_columns:
            raise errors.damaged(f"a cell beyond column {self._limits.max_columns}, the limit of a sheet")
        if value or (value is not None and (value is not NO_CACHED_VALUE or column not in self._values)):
            if self._on_twice and self._values.get(column, value) != value:
                self._on_twice(self._number, column)
            self._values[column] = value  # of two cells with one address the later wins, unless it is blank

    def finish(self) -> Row | None:
        """Finish the open row: return it, or None if it has no value, and forget its cells."""
        if not self._values:
            return None
        width = max(self._values)
        self._slots += width
        if self._slots > self._limits.max_cells:
            raise errors.too_large(f"a sheet has over {self._limits.max_cells} cells, including blanks")
        values: list[Value] = [None] * width
        for column, value in self._values.items():
            values[column - 1] = value
        self._values = {}
        return self._number, values


def ascending(
    rows: Iterable[Row], limits: ReadLimits, on_twice: Callable[[int, int], None] | None = None
) -> Iterator[Row]:
    """Yield the rows of a sheet that stores them out of order sorted by number; rows with one number are joined. Raises
    InputUnreadable if they are too many. `on_twice`: as for `RowBuilder`."""
    rows_by_number: dict[int, list[Value]] = {}
    slots = 0
    for number, values in rows:
        slots += len(values)
        if slots > limits.max_sorted_cells:
            raise errors.too_large("a sheet stores its rows out of order and is too large to sort")
        before = rows_by_number.get(number)
        if before is not None and on_twice:
            for column, (old, new) in enumerate(zip(before, values, strict=False), 1):
                if None not in (old, new) and old != new:
                    on_twice(number, column)
        rows_by_number[number] = values if before is None else _joined_row(before, values)
    yield from sorted(rows_by_number.items())


def _joined_row(before: list[Value], after: list[Value]) -> list[Value]:
    """Join two readings of one row: the later value wins, unless it is blank or unknown."""
    blanks = (None, NO_CACHED_VALUE)
    return [
        old if new is None or (new is NO_CACHED_VALUE and old not in blanks) else new
        for old, new in zip_longest(before, after)
    ]


class OutOfOrder(Exception):  # an event, not an error
    """The rows of a sheet turned out not to ascend after some were returned: a second call returns them in order."""


def blocks_of(sheet: Sheet) -> Iterator[Block]:
    """Return a sheet's rows by column, from its start; the first call for a sheet may raise ``OutOfOrder``."""
    return sheet.blocks() if isinstance(sheet, Columnar) else turned(sheet.rows())


def turned(rows: Iterable[Row], size: int = BLOCK) -> Iterator[Block]:
    """Turn rows into blocks of columns, `size` rows in each."""
    source = iter(rows)
    while batch := list(islice(source, size)):
        yield Block([number for number, _ in batch], list(map(list, zip_longest(*[values for _, values in batch]))))


def trimmed(values: list[Value]) -> list[Value]:
    """Cut the blanks at the end of a row's values."""
    width = len(values)
    while width and values[width - 1] is None:
        width -= 1
    return values[:width]


def rows_of(blocks: Iterable[Block]) -> Iterator[Row]:
    """Turn blocks back into rows, without trailing blanks."""
    for numbers, columns in blocks:
        for number, values in zip(numbers, map(list, zip(*columns, strict=True)), strict=True):
            yield number, values if values[-1] is not None else trimmed(values)


def join_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """Join neighbouring blocks until each has BLOCK rows or more, the last one excepted; none is cut."""
    numbers: list[int] = []
    columns: list[list[Value]] = []
    for block in blocks:
        columns += [[None] * len(numbers) for _ in block.columns[len(columns) :]]
        for index, column in enumerate(columns):
            column.extend(block.columns[index] if index < len(block.columns) else [None] * len(block.numbers))
        numbers += block.numbers
        if len(numbers) >= BLOCK:
            yield Block(numbers, columns)
            numbers, columns = [], []
    if numbers:
        yield Block(numbers, columns)


_MOST_LISTED_STRINGS = (
    300_000  # strings kept unpacked; values that repeat come early in the part, so most lookups hit these
)
_LISTED_CHARACTERS = 32 * 1024 * 1024
_PLAIN_TYPES = frozenset({str, type(None)})


class SharedStrings:
    """A workbook's strings by index: the first ones in a list, the rest packed as UTF-8 in a fraction of the memory.

    An empty string is None, like a blank cell.
    """

    def __init__(self, limits: ReadLimits) -> None:
        """Start without strings."""
        self.listed: list[str | None] = []
        self.noted: dict[int, str] = {}  # texts with something to report about their cells
        self._packed = bytearray()
        self._ends = array("Q", [0])
        self._characters = 0  # in the list
        self._limits = limits

    def __len__(self) -> int:
        return len(self.listed) + len(self._ends) - 1

    def clear(self) -> None:
        """Forget all strings."""
        self.listed = []
        self._packed = bytearray()
        self._ends = array("Q", [0])

    def extend(self, strings: list[str | None]) -> None:
        """Add strings in their order; raises InputUnreadable if they take too much memory."""
        if not _PLAIN_TYPES.issuperset(map(type, strings)):
            self.noted |= {
                index: text for index, text in enumerate(strings, len(self)) if text and text.__class__ is not str
            }
        if len(self.listed) < _MOST_LISTED_STRINGS and self._characters < _LISTED_CHARACTERS and len(self._ends) == 1:
            self.listed += strings
            self._characters += sum(map(len, filter(None, strings)))
            strings = []
        for text in strings:
            self._packed += (text or "").encode("utf-8", "replace")
            self._ends.append(len(self._packed))
        size = self._characters + len(self._packed)
        if len(self) > self._limits.max_strings or size > self._limits.max_strings_held:
            raise errors.too_large(f"it has over {len(self)} shared strings")

    def __getitem__(self, index: int) -> str | None:
        """Return the string at an index, None for an empty one; IndexError past the end.

        The caller must refuse negative indexes.
        """
        if index < len(self.listed):
            return self.listed[index]
        if index in self.noted:
            return self.noted[index]
        index -= len(self.listed)
        start, end = self._ends[index], self._ends[index + 1]
        return self._packed[start:end].decode() or None
