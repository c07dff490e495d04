"""Serial numbers to dates, in both epochs, and texts to numbers."""

import math
import re
from datetime import date, datetime, time, timedelta

from runner.engine.reading.values import CellError, Value

_DAY_MS = 86_400_000
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001  # a sheet's times have no zone
_EPOCH_1904 = datetime(1904, 1, 1)  # noqa: DTZ001
_EPOCH_DAY = _EPOCH.toordinal()
_MARCH_1900 = 61  # the first serial after the 29 February 1900 that Excel believes in
_LAST = 2_958_466  # the first serial after 9999-12-31
_EXACT = 2**53  # below this one every whole number is exact in a double


def number_from_text(text: str) -> Value:
    """The number a file stores as text: a whole one as int, exact at any length; no number: the text."""
    if text.isdecimal():
        return int(text) if len(text) < 400 else text
    try:
        value = float(text)
    except ValueError:
        return text.strip() or None
    if value.is_integer() and -_EXACT < value < _EXACT:
        return int(value)
    if not math.isfinite(value):
        return CellError("#NUM!")
    bare = text.strip()
    if bare[:1] in "+-" and bare[1:].isdecimal() and len(bare) < 400:
        return int(bare)
    return value


def moment(serial: float, *, epoch_1904: bool) -> datetime | None:
    """The date and time of a serial, to the millisecond; None outside what a calendar has."""
    if epoch_1904:
        start = _EPOCH_1904
        if not -1 < serial < _LAST - 1462:
            return None
    else:
        start = _EPOCH
        if not 0 <= serial < _LAST:
            return None
        if serial < 60:  # Excel counts a 29 February 1900, so earlier days are one off
            serial += 1
    try:
        return start + timedelta(milliseconds=round(serial * _DAY_MS))
    except OverflowError:
        return None


def date_value(serial: float, *, epoch_1904: bool) -> Value:
    """A number in a date format: a date when it is a whole day, else a datetime, a time below one day."""
    if type(serial) is int and not epoch_1904 and _MARCH_1900 <= serial < _LAST:  # nearly every date there is
        return date.fromordinal(_EPOCH_DAY + serial)
    whole = float(serial).is_integer()
    if not epoch_1904 and serial < 1:
        return serial if whole else time_value(serial, epoch_1904=epoch_1904)
    found = moment(serial, epoch_1904=epoch_1904)
    if found is None:
        return serial
    return found.date() if whole else found


def datetime_value(serial: float, *, epoch_1904: bool) -> Value:
    if not epoch_1904 and 0 <= serial < 1:
        return time_value(serial, epoch_1904=epoch_1904)
    found = moment(serial, epoch_1904=epoch_1904)
    return serial if found is None else found


def time_value(serial: float, *, epoch_1904: bool) -> Value:
    """A number in a time format: a time of day below one day, else the moment it stands for."""
    if not 0 <= serial < 1:
        found = moment(serial, epoch_1904=epoch_1904)
        return serial if found is None else found
    milliseconds = round(serial * _DAY_MS) % _DAY_MS
    return (_EPOCH + timedelta(milliseconds=milliseconds)).time()


def duration_value(serial: float) -> Value:
    try:
        return timedelta(milliseconds=round(serial * _DAY_MS))
    except (OverflowError, ValueError):
        return serial


_ISO = re.compile(
    r"(?:(\d{4})-(\d{2})-(\d{2}))?T?(?:(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,40}))?)?)?(?:Z|[+-]\d{2}:?\d{2})?"
)
_NEAR_MS = 2  # microseconds: as near to a whole millisecond as a day number in a double can be told apart


def fraction_of(digits: str | None) -> timedelta:
    """The digits behind a second's point; more than six come from a day number, and may mean a whole millisecond."""
    if not digits:
        return timedelta()
    if len(digits) <= 6:
        return timedelta(microseconds=int(digits.ljust(6, "0")))
    exact = round(int(digits) / 10 ** (len(digits) - 6))
    whole = round(exact, -3)
    return timedelta(microseconds=whole if abs(exact - whole) <= _NEAR_MS else exact)


def iso_value(text: str) -> Value:
    """An ISO 8601 date cell (strict OOXML and ODS); a zone is dropped; what it is not stays text."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        return text or None
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        day_of = date(int(year), int(month), int(day)) if year else None
        if not hour:
            return day_of or text or None
        clock = datetime.combine(day_of or _EPOCH, time(int(hour), int(minute), int(second or 0)))
        clock += fraction_of(fraction)
        return clock if day_of else clock.time()
    except (ValueError, OverflowError):
        return text
