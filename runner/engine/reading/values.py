"""What a cell may hold once it is read."""

from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple, Self, Union

ERROR_CODES: Final = frozenset(
    "#NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM! #N/A #GETTING_DATA #SPILL! #CALC! #FIELD! #BLOCKED! #CONNECT! "
    "#UNKNOWN! #BUSY! #EXTERNAL! #PYTHON! #TIMEOUT!".split()
)
OTHER_ERROR: Final = "#VALUE!"


class CellError(str):
    """An error cell such as ``#N/A``: a text that is never data.

    A file can claim any text to be an error, so only those that spreadsheets know are kept; any other is ``#VALUE!``.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        code = text.strip().upper()
        return super().__new__(cls, code if code in ERROR_CODES else OTHER_ERROR)


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
