"""What a cell may hold once it is read."""

from bisect import bisect_left, bisect_right
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple, Self, Union

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
