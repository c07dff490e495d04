"""Dates and times as people write them: given formats first, then ISO, then common shapes."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from runner.engine.values.formats import MONTHS, reader_of
from runner.engine.values.memo import BAD, Bad

_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001  # spreadsheets hold naive times
LAST_SERIAL: Final = 2_958_465  # 9999-12-31
_DAYS_TO_1904: Final = 1462  # from the epoch above to 1904-01-01
_DATE = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
    r"(?:(?P<y1>[0-9]{4})(?P<s1>[-/. ])(?P<m1>[0-9]{1,2})(?P=s1)(?P<d1>[0-9]{1,2})"
    r"|(?P<a>[0-9]{1,2})(?P<s2>[-/. ])(?P<b>[0-9]{1,2})(?P=s2)(?P<y2>[0-9]{4}|[0-9]{2})"
    r"|(?P<d3>[0-9]{1,2})(?:st|nd|rd|th)?\.?[-/ ,]*(?:of\s+)?(?P<m3>[a-z]{3,9})\.?[-/ ,]*(?P<y3>[0-9]{4}|'?[0-9]{2})"
    r"|(?P<m4>[a-z]{3,9})\.?[-/ ]*(?P<d4>[0-9]{1,2})(?:st|nd|rd|th)?[-/ ,]+(?P<y4>[0-9]{4}|'[0-9]{2})"
    r"|(?P<y5>[0-9]{4})[-/ ](?P<m5>[a-z]{3,9})[-/ ](?P<d5>[0-9]{1,2})"
    r"|(?P<y6>(?:19|20)[0-9]{2})(?P<m6>[0-9]{2})(?P<d6>[0-9]{2}))",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?P<h>[0-9]{1,2})(?::(?P<mi>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,](?P<f>[0-9]{1,9}))?)?)?\s*(?P<p>[ap])?\.?(?(p)m\.?)"
    r"\s*(?P<z>z|utc|gmt|[-+][0-9]{2}:?[0-9]{2})?",
    re.IGNORECASE,
)
_ORDER = re.compile(r"\s*([0-9]{1,2})[-/. ]([0-9]{1,2})[-/. ](?:[0-9]{4}|[0-9]{2})\b")
_SERIAL = re.compile(r"[1-9][0-9]{4}(?:\.[0-9]+)?")
MAX_TEXT: Final = 60


def day_first_of(texts: Iterable[str]) -> bool | None:
    """Whether a column's own dates show the day first; None where every one could be read both ways."""
    first = second = 0
    for text in texts:
        if found := _ORDER.match(text):
            first += int(found[1]) > 12
            second += int(found[2]) > 12
    return None if first == second else first > second


def ambiguous(texts: Iterable[str]) -> bool:
    """Whether any text can be read both day first and month first."""
    return any(
        (found := _ORDER.match(text)) is not None and "." not in found[0] and found[1] != found[2] for text in texts
    )


def year_of(text: str) -> int:
    year = int(text.lstrip("'"))
    return year if len(text.lstrip("'")) == 4 else year + (1900 if year > 68 else 2000)


class DateReader:
    """Reads texts as moments under one column's conventions."""

    def __init__(self, formats: tuple[str, ...], *, day_first: bool | None, epoch_1904: bool = False) -> None:
        self.formats: list[Callable[[str], datetime | None]] = [reader_of(f) for f in formats]
        self.day_first = bool(day_first)
        self.epoch_1904 = epoch_1904

    def day(self, text: str) -> date | Bad | None:
        moment = self.moment(text)
        return moment.date() if isinstance(moment, datetime) else moment

    def moment(self, text: str) -> datetime | Bad | None:
        text = text.strip()
        if not text:
            return None
        if len(text) > MAX_TEXT:
            return BAD
        for read in self.formats:
            if (moment := read(text)) is not None:
                return moment
        found = _DATE.match(text)
        if found is None:
            return from_serial(float(text), epoch_1904=self.epoch_1904) if _SERIAL.fullmatch(text) else BAD
        day = self._day(found)
        rest = text[found.end() :].lstrip(" T,\t")
        if day is None or (rest and text[found.end()].isdigit()):
            return BAD
        clock = _clock(rest) if rest else (time(), None)
        if clock is None:
            return BAD
        moment = datetime.combine(day, clock[0])
        return moment if clock[1] is None else _to_utc(moment, clock[1])

    def _day(self, found: re.Match[str]) -> date | None:
        part = found.groupdict()
        if part["a"] is not None:
            a, b = int(part["a"]), int(part["b"])
            day, month = (a, b) if self.day_first or part["s2"] == "." else (b, a)
            if month > 12 >= day:
                day, month = month, day
            return _valid(year_of(part["y2"]), month, day)
        for n in "16":
            if part["y" + n] is not None:
                return _valid(int(part["y" + n]), int(part["m" + n]), int(part["d" + n]))
        for n in "345":
            if part["y" + n] is not None:
                month = MONTHS.get(part["m" + n].casefold(), 0)
                return _valid(year_of(part["y" + n]), month, int(part["d" + n]))
        return None

    def clock(self, text: str) -> time | Bad | None:
        text = text.strip()
        if not text:
            return None
        if len(text) > MAX_TEXT:
            return BAD
        for read in self.formats:
            if (moment := read(text)) is not None:
                return moment.time()
        clock = _clock(text) if ":" in text or text[-1:] in "mM." else None
        return BAD if clock is None else clock[0]


def _valid(year: int, month: int, day: int) -> date | None:
    if not (1 <= month <= 12 and year >= 1 and 1 <= day <= 31):
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _clock(text: str) -> tuple[time, str | None] | None:
    found = _TIME.fullmatch(text)
    if found is None or (found["mi"] is None and found["p"] is None):
        return None
    hour, minute, second = int(found["h"]), int(found["mi"] or 0), int(found["s"] or 0)
    if found["p"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["p"] in "pP" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return time(hour, minute, second, int((found["f"] or "0").ljust(6, "0")[:6])), found["z"]


def _to_utc(moment: datetime, zone: str) -> datetime | Bad:
    if zone[0] not in "+-":
        return moment
    shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    try:
        return moment - shift if zone[0] == "+" else moment + shift
    except OverflowError:
        return BAD


def from_serial(number: float, *, epoch_1904: bool = False) -> datetime | Bad:
    """A day number of a book with this epoch as a moment; a bare year or anything out of range is no date."""
    if 10_000_000 <= number <= 99_991_231 and number == int(number):
        year, rest = divmod(int(number), 10_000)
        day = _valid(year, rest // 100, rest % 100)
        return BAD if day is None else datetime.combine(day, time())
    if not 1 <= number < LAST_SERIAL + 1 or (1900 <= number <= 2100 and number == int(number)):
        return BAD
    if epoch_1904:
        number += _DAYS_TO_1904
    elif number < 60:  # a book counts a 29 February 1900, so earlier days are one off
        number += 1
    if number >= LAST_SERIAL + 1:
        return BAD
    return _EPOCH + timedelta(days=int(number), seconds=round(number % 1 * 86_400, 3))


def naive(moment: datetime) -> datetime:
    """Spreadsheets know no zones: a moment with one is written in UTC."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
