"""What spreadsheet programs write of a value, and whether a corrected cell still holds the value that was shown.

A workbook keeps values. A text file has only what cells show: dates in an order that nobody names, numbers grouped and
rounded, `####` where a column is too narrow. So a text stands for the value that was there wherever it may. How a
column is written is learnt from the cells that nobody was asked to correct, and by that its corrected cells are read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from math import isclose
from typing import Final, NamedTuple, TypeVar

from runner.engine.common.patterns import LazyPattern
from runner.engine.reading import NoCachedValue, Shown, Value
from runner.engine.writing.parts import MAX_TEXT, cut, too_long

_BLANKS = LazyPattern(r"[\s'\u2019$€£¥]")
_WHOLE_PART: Final = r"-?(0|[1-9][0-9]{{0,2}}(?:{0}[0-9]{{2,3}})*{0}[0-9]{{3}}|[1-9][0-9]{{0,20}})"
_EXPONENT: Final = r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
_NUMBERS: Final = {  # by the sign between groups of digits and that before decimals
    ",.": LazyPattern(_WHOLE_PART.format(",") + r"(?:\.(?P<decimals>[0-9]{0,20}))?" + _EXPONENT),
    ".,": LazyPattern(_WHOLE_PART.format(r"\.") + r"(?:,(?P<decimals>[0-9]{0,20}))?" + _EXPONENT),
}
_DAY = LazyPattern(
    r"(?P<first>[0-9]{1,4})(?P<sign>[-./ ])(?P<second>[0-9]{1,2})(?P=sign)(?P<third>[0-9]{1,4})"
    r"(?:[ T]+(?P<clock>\S.*))?"
)
_CLOCK = LazyPattern(
    r"(?P<hours>[0-9]{1,5}):(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,6}))?)?"
    r"(?: ?(?P<half>[AaPp])[Mm])?"
)
_DATE_ORDERS: Final = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}  # where year, month and day are
_PIVOT: Final = 30  # two digits from here on are years of the last century
_ROUNDING_SECONDS: Final = 0.0015  # seconds by which spreadsheet programs round a moment
_DAY_SECONDS: Final = 86_400.0
_MIDNIGHT: Final = datetime(1900, 1, 1)  # noqa: DTZ001 - as in the sheet
_LONGEST_DURATION: Final = timedelta(days=100_000)
_NARROW_SIGNS: Final = frozenset("#")
_NO_VALUES: Final = (type(None), NoCachedValue)
_TOLERANCE: Final = 1e-14


class ReadNumber(NamedTuple):
    """A number that a text may stand for."""

    style: str  # the sign between groups of digits, and that before decimals
    value: float
    places: int  # decimals shown
    slack: float  # by which the value itself may be more or less


class ReadMoment(NamedTuple):
    """A moment, or a time since midnight, that a text may stand for."""

    style: str  # the order of year, month and day, and the signs between them
    value: datetime
    slack: float  # the seconds that are not shown


_Reading = TypeVar("_Reading", ReadNumber, ReadMoment)


def is_same(source: Value, corrected: Value) -> bool:
    """Whether a cell of a corrected workbook still has the value that rejects.xlsx showed for a value of the source.

    A spreadsheet program writes numbers with fewer digits and texts with other line ends. A text that can be read as
    the value of the source is that value: a cell that is wrong comes back, one misread would not.
    """
    if type(corrected) is NoCachedValue:
        return True  # a formula without a result says nothing; a cell that is wrong comes back
    if type(source) in _NO_VALUES or source == "":
        return corrected is None or corrected == ""
    if type(corrected) is str:
        return _is_written_as(source, corrected)
    if isinstance(source, bool):
        return isinstance(corrected, int) and int(source) == int(corrected)  # some formats have only numbers
    if isinstance(source, int | float) and isinstance(corrected, int | float):
        return not isinstance(corrected, bool) and (
            source == corrected or isclose(source, corrected, rel_tol=_TOLERANCE)
        )
    if isinstance(source, date) and isinstance(corrected, date):
        return abs(_as_moment(source) - _as_moment(corrected)).total_seconds() < _ROUNDING_SECONDS
    return type(source) is type(corrected) and source == corrected


def _is_written_as(source: Value, text: str) -> bool:
    """Whether a workbook may have this text for the value."""
    if type(source) is str:
        return _is_same_text(source, text)
    return text == str.__str__(source) if isinstance(source, str) else _reads_as(text.strip(), source)


def _is_same_text(source: str, corrected: str) -> bool:
    """Whether two texts differ only in their line ends, or in what a cell has no room for."""
    plain = _with_plain_line_ends(corrected)
    return plain == _with_plain_line_ends(source) or (
        too_long(source) and plain == _with_plain_line_ends(cut(source, MAX_TEXT))
    )


def _reads_as(text: str, source: Value) -> bool:
    """Whether a text is a usual style of writing a value that is not a text: `1,200.50`, `31.12.2026`."""
    if text.casefold() == str(source).casefold():
        return True
    if isinstance(source, Shown):
        return text == source.shown
    if isinstance(source, bool):
        return False
    if isinstance(source, int | float):
        return any(isclose(reading.value, source, rel_tol=_TOLERANCE) for reading in _read_numbers(text))
    if isinstance(source, date):
        return any(reading.value == _as_moment(source) for reading in _read_moments(text))
    return False


class WrittenColumn:
    """How one column of a corrected text file is written."""

    def __init__(self) -> None:
        """Know nothing yet about how the column is written; `learn` changes that."""
        self._styles = Counter[str]()
        self._rounded_numbers = Counter[int]()  # decimals shown -> numbers that have more

    def learn(self, source: Value, text: str) -> None:
        """Learn from a cell that nobody was asked to correct how the file writes numbers or dates."""
        if isinstance(source, int | float) and not isinstance(source, bool):
            for number in _read_numbers(text.strip()):
                if _is_near(number, source):
                    self._styles[number.style] += 1
                    self._rounded_numbers[number.places] += not isclose(number.value, source, rel_tol=_TOLERANCE)
        elif isinstance(source, date):
            self._styles.update(
                moment.style for moment in _read_moments(text.strip()) if _is_within(moment, _as_moment(source))
            )

    def is_same(self, source: Value, text: str, *, to_correct: bool) -> bool:
        """Whether a text stands for the value of the source. `to_correct`: the row says that the cell has to be
        corrected, so the text is less likely the old value."""
        bare = text.strip()
        if type(source) in _NO_VALUES or source == "":
            return not bare
        if isinstance(source, str):
            return _is_same_text(source, text) or (
                type(source) is str and not to_correct and _are_alike(source.strip(), bare)
            )
        if not bare:
            return False
        if isinstance(source, bool):
            return _means_same_truth(bare, source=source, to_correct=to_correct)
        if _NARROW_SIGNS.issuperset(bare) or (_reads_as(bare, source) and not isinstance(source, date)):
            return True
        if isinstance(source, int | float):
            return self._is_number(source, bare, to_correct=to_correct)
        return self._is_moment(source, bare, to_correct=to_correct)

    def _is_number(self, source: float, text: str, *, to_correct: bool) -> bool:
        """Whether a text may stand for a number of the source, in the style of the column; a text that is not a number
        may, unless it is to be corrected."""
        numbers = self._in_known_style(_read_numbers(text))
        likely = [number for number in numbers if not to_correct or self._rounded_numbers[number.places]]
        return any(_is_near(number, source) for number in likely) or not (numbers or to_correct)

    def _is_moment(self, source: Value, text: str, *, to_correct: bool) -> bool:
        """Whether a text may stand for a date or time of the source, in the style of the column; a text that is no
        moment may, unless it is to be corrected."""
        moments = self._in_known_style(_read_moments(text)) if isinstance(source, date) else list(_read_clock(text))
        return any(_is_within(moment, _as_moment(source)) for moment in moments) or not (moments or to_correct)

    def value(self, text: str) -> Value:
        """Read a corrected text to the value that it means: the text itself unless the column taught how to read it."""
        bare = text.strip()
        for moment in self._in_known_style(_read_moments(bare), sure=True):
            return moment.value.date() if moment.slack >= _DAY_SECONDS else moment.value
        for number in self._in_known_style(_read_numbers(bare), sure=True):
            return int(number.value) if not number.places and number.value.is_integer() else number.value
        return text

    def _in_known_style(self, readings: Iterable[_Reading], *, sure: bool = False) -> list[_Reading]:
        """Choose the readings in the style that most cells of the column are written in; if that is unknown all of
        them, or none if `sure`."""
        all_readings = list(readings)
        counts = sorted(((self._styles[reading.style], reading.style) for reading in all_readings), reverse=True)
        best = {style for count, style in counts if count and count == counts[0][0]}
        return [reading for reading in all_readings if {reading.style} == best] or ([] if sure else all_readings)


def _means_same_truth(text: str, *, source: bool, to_correct: bool) -> bool:
    """Whether a text means this true or false; other languages have other words for it."""
    same, opposite = ({str(value).casefold(), str(int(value))} for value in (source, not source))
    return text.casefold() in same or not (to_correct or text.casefold() in opposite)


def _are_alike(source: str, text: str) -> bool:
    """Whether a program that took a text for a number or a date may have written it like that."""
    numbers = [reading.value for reading in _read_numbers(source.lstrip("0") or "0")]
    if any(_is_near(reading, value) for reading in _read_numbers(text) for value in numbers):
        return True
    moments = [reading.value for reading in _read_moments(source)]
    return any(_is_within(reading, value) for reading in _read_moments(text) for value in moments)


def _is_near(number: ReadNumber, source: Value) -> bool:
    """Whether the number that a text shows is this value, as far as the text shows it."""
    return (
        isinstance(source, int | float)
        and abs(number.value - source) <= number.slack * (1 + 1e-9) + abs(source) * _TOLERANCE
    )


def _is_within(moment: ReadMoment, source: datetime) -> bool:
    """Whether a value is within the time that a text shows: 14:30:20 is within 14:30."""
    return -_ROUNDING_SECONDS <= (source - moment.value).total_seconds() < moment.slack


def _with_plain_line_ends(text: str) -> str:
    """Replace every kind of line end by a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _as_moment(value: Value) -> datetime:
    """Convert a date, or a time since midnight, to a moment without a zone; midnight for any other value."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, timedelta):
        return _MIDNIGHT + min(value, _LONGEST_DURATION)
    return datetime.combine(_MIDNIGHT, value.replace(tzinfo=None)) if isinstance(value, time) else _MIDNIGHT


def _read_numbers(text: str) -> Iterator[ReadNumber]:
    """Yield the numbers that a text may stand for, in each style of writing them; none if it is not a number."""
    bare = _BLANKS.sub("", text)
    sign = -1 if bare[:1] == "(" and bare[-1:] == ")" else 1  # as accountants write it
    plain, divisor = (bare[:-1], 100.0) if bare.endswith("%") else (bare[1:-1] if sign < 0 else bare, 1.0)
    for style, pattern in _NUMBERS.items():
        if (digits := pattern.fullmatch(plain)) is not None:
            places, power = len(digits["decimals"] or ""), int(digits["exponent"] or 0)
            grouping, decimal_sign = style[:1], style[1:]
            number = float(plain.replace(grouping, "").replace(decimal_sign, "."))
            yield ReadNumber(style, sign * number / divisor, places, 0.5 * 10.0 ** (power - places) / divisor)


def _read_moments(text: str) -> Iterator[ReadMoment]:
    """Yield the moments that a text may stand for, in each order of year, month and day, and in both centuries for a
    year of two digits; none if it is not a date."""
    written = _DAY.fullmatch(text)
    if written is None:
        return
    clock, slack = _since_midnight(written["clock"]) if written["clock"] else (timedelta(), _DAY_SECONDS)
    if clock is None:
        return
    numbers = written.group("first", "second", "third")
    for order, (year_at, month_at, day_at) in _DATE_ORDERS.items():
        year = int(numbers[year_at])
        centuries = [0]
        if len(numbers[year_at]) <= 2:
            centuries = [1900, 2000] if year >= _PIVOT else [2000, 1900]
        # 26/01/02 and 2026-01-02 are two styles, so that one is no more likely for knowing the other.
        year_digits = len(numbers[0]) if order == "ymd" else ""
        for century in centuries:
            try:
                midnight = datetime(century + year, int(numbers[month_at]), int(numbers[day_at]))  # noqa: DTZ001 - as in the sheet
                yield ReadMoment(f"{order}{written['sign']}{year_digits}", midnight + clock, slack)
            except (ValueError, OverflowError):
                continue


def _read_clock(text: str) -> Iterator[ReadMoment]:
    """Yield the time since midnight that a text may stand for, if it is one."""
    clock, slack = _since_midnight(text)
    if clock is not None:
        yield ReadMoment("", _MIDNIGHT + clock, slack)


class _ShownClock(NamedTuple):
    """A time of day or a duration, as a text shows it."""

    clock: timedelta | None  # None: the text is not one
    slack: float  # the seconds that it does not show


def _since_midnight(text: str) -> _ShownClock:
    """Read a time of day or a duration such as 14:30, 26:30:00 or 2:30 pm."""
    written = _CLOCK.fullmatch(text)
    if written is None:
        return _ShownClock(None, 0.0)
    hours = int(written["hours"])
    if written["half"]:
        hours = hours % 12 + 12 * (written["half"] in ("p", "P"))
    fraction = written["fraction"] or ""
    clock = timedelta(
        hours=hours,
        minutes=int(written["minutes"]),
        seconds=int(written["seconds"] or 0),
        microseconds=int(fraction.ljust(6, "0")),
    )
    return _ShownClock(clock, 60.0 if written["seconds"] is None else 10.0 ** -len(fraction))
