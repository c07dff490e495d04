# words as people type them
"""Parses dates and times: given formats first, then ISO, then common forms in many languages."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, NamedTuple

from runner.engine.common.patterns import LazyPattern
from runner.engine.values.calendar_names import ERAS, ERAS_SHORT, MONTHS, WEEKDAYS, folded, names_another_weekday
from runner.engine.values.date_formats import make_format_reader
from runner.engine.values.words import BAD, Bad

_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001  # spreadsheets hold naive times
FIRST_SERIAL: Final = 10_000  # smaller numbers are more likely counts than days before 1927
LAST_SERIAL: Final = 2_958_465  # 9999-12-31, which stands for "never"
PLAUSIBLE_SERIALS: Final = 100_000  # larger numbers (year 2173) are rather dates without separators: 260131, 1122025
COMPACT_DATES: Final = 10_000_000  # 20260131 is a date without separators
_NEVER: Final = 99_991_231
_COMPACT_YEARS: Final = range(1800, 2200)  # of whole numbers such as 20260131
BUDDHIST: Final = range(2400, 2700)  # years that are far ahead, or counted by the Buddhist calendar
PIVOT: Final = 69  # two-digit years from here on belong to the last century
SHORT_YEARS: Final = range(30, PIVOT)  # years that may belong to either century
BIRTH_YEARS: Final = range(25, PIVOT)  # the same of births: people become a hundred
_DAYS_TO_1904: Final = 1462  # from the epoch above to 1904-01-01
_ORDINAL = r"(?:(?:st|nd|rd|th|er|re|e|o|a)(?![^\W\d_]))?"
_DATE = LazyPattern(
    r"(?:(?P<weekday>[^\W\d_]{2,14}(?:-feira)?)\.?,?\s+)?"
    r"(?:(?P<year_iso>[0-9]{4})(?P<sign_iso>\. |[-/. ])(?P<month_iso>[0-9]{1,2})(?P=sign_iso)(?P<day_iso>[0-9]{1,2})\.?"
    r"|(?P<first>[0-9]{1,2})(?P<sign>\. |[-/. ])(?P<second>[0-9]{1,2})(?P=sign)(?P<year_last>[0-9]{4}|[0-9]{2})"
    rf"|(?P<day_dmy>[0-9]{{1,2}}){_ORDINAL}\.?[-/ ,]*(?:(?:of|de|den)\s+)?(?P<month_dmy>[^\W\d_]{{3,14}})\.?[-/ ,]*"
    r"(?:del?\s+)?(?P<year_dmy>[0-9]{4}|'?[0-9]{2})"
    rf"|(?P<month_mdy>[^\W\d_]{{3,14}})\.?[-/ ]*(?P<day_mdy>[0-9]{{1,2}}){_ORDINAL}[-/ ,.]+"
    r"(?P<year_mdy>[0-9]{4}|'[0-9]{2})"
    r"|(?P<year_ymd>[0-9]{4})(?:\. |[-/ ])(?P<month_ymd>[^\W\d_]{3,14})\.?[-/ ](?P<day_ymd>[0-9]{1,2})\.?"
    r"|(?P<year_digits>(?:19|20)[0-9]{2}|9999)(?P<month_digits>[0-9]{2})(?P<day_digits>[0-9]{2})(?:\.0(?![0-9]))?"
    r"|(?P<year_week>[0-9]{4})-?w(?P<month_week>[0-9]{2})-?(?P<day_week>[1-7])(?![0-9]))"
)
# The forms of dates, as groups of `_DATE` end: iso 2026-02-01; last 01/02/2026; dmy 1 May 2026; mdy May 1, 2026;
# ymd 2026 May 1; digits 20260201; week 2026-W05-7, whose "month" is the week.
_EAST = LazyPattern(
    rf"(?:(?P<era>{'|'.join(ERAS)})\s*(?P<count>元|[0-9]{{1,2}})|(?P<year>[0-9]{{4}}))\s*[年년]\s*"
    r"(?P<month>[0-9]{1,2})\s*[月월]\s*(?P<day>[0-9]{1,2})\s*[日일]?(?:\s*\(.\))?"
)
_SHORT_ERA = LazyPattern(
    rf"(?P<era>[{''.join(ERAS_SHORT)}])(?P<count>[0-9]{{1,2}})[./-](?P<month>[0-9]{{1,2}})[./-](?P<day>[0-9]{{1,2}})"
)
_TIME = LazyPattern(
    r"(?:(?:at|um|kl\.?|a|o)\s+)?(?P<hour>[0-9]{1,2})"
    r"(?:[:h](?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    r"\s*(?P<half>[ap])?\.?(?(half)\s?m\.?)\s*(?:uhr|h)?\s*"
    r"(?:(?P<zone>(?:(?:utc|gmt)\s?)?[-+][0-9]{2}(?::?[0-9]{2})?|(?:utc|gmt)[-+][0-9]|[a-z]{1,4})(?:\[[a-z0-9/_+-]+\])?)?"
)
# Hours ahead of UTC, of abbreviations with one usual meaning: CST, IST and BST have several.
_ZONES: Final = {
    "z": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 1, "cet": 1, "mez": 1, "cest": 2, "mesz": 2, "eet": 2, "eest": 3,
    "msk": 3, "jst": 9, "hkt": 8, "sgt": 8, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13, "est": -5, "edt": -4,
    "pst": -8, "pdt": -7,
}  # fmt: skip
_MOST_AHEAD: Final = 14  # hours
_RUN_ON_CLOCKS: Final = (4, 6)  # digits of a time without separators
_RUN_ON_TIME = LazyPattern(r"\At?([0-9]{2})([0-9]{2})([0-9]{2})?(?![0-9:])")
_DOTTED_TIME = LazyPattern(r"([0-9]{1,2})\.([0-9]{2})\.([0-9]{2})(?![0-9])")
_EASTERN_CLOCK: Final = str.maketrans({"時": ":", "시": ":", "分": ":", "분": ":", "秒": None, "초": None})
_DIGIT = re.compile(r"[0-9]")
_NUMBER = re.compile(r"[1-9](?:[0-9]{4}|[0-9]{9}|[0-9]{12})(?:\.[0-9]+)?")  # day numbers and Unix times
MAX_TEXT: Final = 60


# What the numbers of a date column are: counts of days, dates without separators (260131), Unix times.
NumberMeaning = Literal["days", "digits", "seconds"]


class NumericDate(NamedTuple):
    """A date of three numbers that begins with its day or with its month: 01/02/2025."""

    first: int
    second: int
    sign: str  # between the numbers
    year: str  # of two or four digits
    weekday: str | None  # that the text names before the date

    @property
    def comes_first(self) -> Literal["day", "month", "either", "same", "neither"]:
        """Tell which of day and month is first, by the numbers or the weekday.

        either: both orders are dates; same: both orders are the same date; neither: no order is a date.
        """
        first, second = self.first, self.second
        if not (1 <= min(first, second) <= 12 and max(first, second) <= 31):
            return "neither"
        if first > 12:
            return "day"
        if second > 12:
            return "month"
        if first == second:
            return "same"
        if self.weekday is not None and len(self.year) == 4:
            fits_day_first = self._falls_on_its_weekday(month=second, day=first)
            if fits_day_first != self._falls_on_its_weekday(month=first, day=second):
                return "day" if fits_day_first else "month"
        return "either"

    def _falls_on_its_weekday(self, *, month: int, day: int) -> bool:
        """Whether it is a date in this order that does not contradict the weekday that its text names."""
        day_read = _valid_date(int(self.year), month, day)
        return day_read is not None and not names_another_weekday(self.weekday or "", day_read)


def first_date(text: str) -> re.Match[str] | None:
    """Match the date at the start of a folded text, by the groups of `_DATE`; None if there is none or its digits go
    on.

    Tallies and readers share it, so that both find the same dates.
    """
    written = _DATE.match(text)
    if written is None or ((weekday := written["weekday"]) is not None and weekday not in WEEKDAYS):
        return None
    end = written.end()
    return None if end < len(text) and _runs_on(text[end:]) else written


def numeric_date(written: re.Match[str]) -> NumericDate | None:
    """Return the three numbers of a date that `first_date` matched; None for forms with only one order, such as
    2026-02-01."""
    if written.lastgroup != "year_last":
        return None
    first, second, sign, year, weekday = written.group("first", "second", "sign", "year_last", "weekday")
    return NumericDate(int(first), int(second), sign, year, weekday)


def _runs_on(rest: str) -> bool:
    """Whether the digits of a date go on behind it, and not with a time of day."""
    return rest[:1].isdigit() and not (rest.isdecimal() and len(rest) in _RUN_ON_CLOCKS)


def names_zone(clock: str) -> bool | None:
    """Whether a folded text is a time of day with a time zone; None if it is not a time of day."""
    zoned = _parse_zoned_time(clock)
    return None if zoned is None else zoned.ahead is not None


class ZonedTime(NamedTuple):
    """A time of day as it is written."""

    clock: time
    ahead: timedelta | None  # of UTC, if it says so


class ZonedMoment(NamedTuple):
    """A date and time as it is written."""

    moment: datetime
    ahead: timedelta | None  # of UTC, if it says so


class DateReader:
    """Parses texts as dates and times by one column's conventions.

    Parsing adds to `remarks` the codes of findings about the text; the caller reads and clears it after each text.
    """

    def __init__(
        self,
        formats: tuple[str, ...],
        *,
        day_first: bool | None,
        dots_day_first: bool | None = None,
        year_first: bool = False,
        pivot: int = PIVOT,
        short_years: bool = True,
        births: bool = False,
        epoch_1904: bool = False,
        numbers: NumberMeaning = "days",
    ) -> None:
        """Set the conventions by which texts are parsed, those of a `Convention` (values/convention_choices.py); None
        for an order that nothing decided."""
        self.formats: list[Callable[[str], datetime | None]] = [make_format_reader(form) for form in formats]
        self._day_first = day_first
        self._dots_day_first = dots_day_first
        self._year_first = year_first
        self._pivot = pivot
        self._short_years = short_years  # whether the column's own years decided the pivot
        self._either_century = BIRTH_YEARS if births else SHORT_YEARS
        self.epoch_1904 = epoch_1904
        self._numbers: NumberMeaning = numbers
        self.remarks: list[str] = []

    def day(self, text: str) -> date | Bad | None:
        """Parse a date as it is written, whatever the zone of its time; None for a blank, BAD for another text.

        Remarks on a time of day that is dropped, and on a year that may be Buddhist.
        """
        written = self._parse_moment(text)
        if not isinstance(written, ZonedMoment):
            return written
        if written.moment.time() != time():
            self.remarks.append("time_dropped")
        if written.moment.year in BUDDHIST:
            self.remarks.append("calendar_assumed")
        return written.moment.date()

    def moment(self, text: str) -> datetime | Bad | None:
        """Parse a date and time, converted to UTC if the text names a zone; None for a blank, BAD for another text.

        Remarks on that conversion, and on a year that may be Buddhist.
        """
        written = self._parse_moment(text)
        if not isinstance(written, ZonedMoment):
            return written
        moment, ahead = written
        if moment.year in BUDDHIST:
            self.remarks.append("calendar_assumed")
        if ahead is None:
            return moment
        self.remarks.append("zone_converted")
        try:
            return moment - ahead
        except OverflowError:
            return BAD

    def number(self, value: float) -> datetime | Bad:
        """Convert a number cell to a date and time, by a declared format of digits (%Y%m%d), else as the column counts
        days; BAD if it is neither."""
        if self.formats and value == int(value):
            moment = self._parse_by_first_format(str(int(value)))
            if moment is not None:
                return moment
        return from_number(value, epoch_1904=self.epoch_1904, numbers=self._numbers)

    def clock(self, text: str) -> time | Bad | None:
        """Parse a time of day as it is written, None for a blank, BAD for another text; remarks on a zone that is
        dropped."""
        formatted = self._parse_by_formats(text)
        if isinstance(formatted, datetime):
            self.remarks += ["zone_dropped"] if formatted.tzinfo is not None else []
            return formatted.time()
        if not isinstance(formatted, str):
            return formatted
        written = _parse_zoned_time(folded(formatted))
        if written is None:
            return BAD
        if written.ahead is not None:
            self.remarks.append("zone_dropped")
        return written.clock

    def _parse_by_formats(self, text: str) -> datetime | Bad | str | None:
        """Parse a text by the declared formats: None for a blank, BAD if it is too long, the stripped text itself if no
        format fits."""
        text = text.strip()
        if not text:
            return None
        if len(text) > MAX_TEXT:
            return BAD
        return self._parse_by_first_format(text) or text

    def _parse_by_first_format(self, text: str) -> datetime | None:
        """Return the moment that the first fitting declared format reads, with the zone if it has one; None if none
        fits."""
        for read in self.formats:
            if (moment := read(text)) is not None:
                return moment
        return None

    def _parse_moment(self, text: str) -> ZonedMoment | Bad | None:
        """Parse a date and time by a declared format, else as a number, else in a form that people write; None for a
        blank, BAD for another text.

        Remarks on a weekday that the date does not fall on.
        """
        formatted = self._parse_by_formats(text)
        if not isinstance(formatted, str):
            if isinstance(formatted, datetime):
                self._check_weekday(text, formatted)
                return ZonedMoment(formatted.replace(tzinfo=None), formatted.utcoffset())
            return formatted
        if formatted.isascii() and _DIGIT.search(formatted) is None:
            return BAD
        if _NUMBER.fullmatch(formatted):
            number = from_number(float(formatted), epoch_1904=self.epoch_1904, numbers=self._numbers)
            return BAD if isinstance(number, Bad) else ZonedMoment(number, None)
        return self._parse_common_form(folded(formatted))

    def _parse_common_form(self, text: str) -> ZonedMoment | Bad:
        """Parse a folded text in one of the forms that people write (3. märz 2026, 14:30); BAD for another text. May
        add remarks."""
        if (written := first_date(text)) is not None:
            day, rest = self._resolve_day(written), text[written.end() :]
        else:
            day, rest = _split_off_eastern_date(text)
        if day is None:
            return BAD
        if written is not None and (weekday := written["weekday"]) is not None:
            self._check_weekday(weekday, day)
        if rest[:1] == "t" or rest[:1].isdigit():
            rest = _RUN_ON_TIME.sub(lambda digits: f"{digits[1]}:{digits[2]}:{digits[3] or '00'}", rest, count=1)
        rest = _DOTTED_TIME.sub(r"\1:\2:\3", rest.lstrip(" t,\t"), count=1)
        if not rest:
            return ZonedMoment(datetime.combine(day, time()), None)
        time_of_day = _parse_zoned_time(rest)
        if time_of_day is None:
            return BAD
        return ZonedMoment(datetime.combine(day, time_of_day.clock), time_of_day.ahead)

    def _check_weekday(self, text: str, day: date) -> None:
        """Remark on a text that names a weekday which its date does not fall on."""
        if names_another_weekday(text, day):
            self.remarks.append("weekday_contradicts")

    def _resolve_day(self, match: re.Match[str]) -> date | None:
        """Return the date that `first_date` matched; None if there is no such day, as on 31.02.2026. Remarks on orders
        and centuries that are guessed."""
        if (numeric := numeric_date(match)) is not None:
            return self._resolve_numeric_day(numeric)
        form = str(match.lastgroup).partition("_")[2]  # as the names of its groups end
        year, month, day = match.group(f"year_{form}", f"month_{form}", f"day_{form}")
        if form == "week":
            return _day_of_week(int(year), int(month), int(day))
        if form in ("iso", "digits"):
            return _valid_date(int(year), int(month), int(day))
        return _valid_date(self._resolve_year(year), MONTHS.get(month, 0), int(day))

    def _resolve_numeric_day(self, numeric: NumericDate) -> date | None:
        """Resolve 01/02/2025 to a date: in the order that the date itself proves, else the column's, else as dots
        suggest; None if there is no such day.

        Remarks on a guess, and on a date that contradicts its column.
        """
        first, second, year = numeric.first, numeric.second, numeric.year
        if self._year_first and len(year) == 2:
            return _valid_date(self._resolve_year(f"{first:02}"), second, int(year))
        has_dots = numeric.sign[0] == "."
        convention = self._dots_day_first if has_dots else self._day_first
        day_first = has_dots if convention is None else convention
        proven = numeric.comes_first
        if proven == "either" and convention is None and not day_first:
            self.remarks.append("date_order_assumed")
        if proven in ("day", "month") and day_first != (proven == "day"):
            day_first = not day_first
            if convention is not None:
                self.remarks.append("date_order_mixed")
        day, month = (first, second) if day_first else (second, first)
        return _valid_date(self._resolve_year(year), month, day)

    def _resolve_year(self, text: str) -> int:
        """Return the year of two or four digits, with the column's century for two; remarks on a century that was
        guessed."""
        text = text.lstrip("'")
        year = int(text)
        if len(text) == 2 and not self._short_years and year in self._either_century:
            self.remarks.append("century_assumed")
        return year if len(text) == 4 else year + (1900 if year >= self._pivot else 2000)


def _split_off_eastern_date(text: str) -> tuple[date | None, str]:
    """Split an East Asian date (2026年3月1日, R8.3.1) off the start of a text; return it, None without one, and the
    rest of the text behind it."""
    if written := _EAST.match(text):
        if written["year"]:
            year = int(written["year"])
        else:  # 元 is the first year of an era
            year = _year_of_era(written["era"], 1 if written["count"] == "元" else int(written["count"]))
    elif written := _SHORT_ERA.match(text):
        year = _year_of_era(ERAS_SHORT[written["era"]], int(written["count"]))
    else:
        return None, ""
    rest = text[written.end() :]
    return None if _runs_on(rest) else _valid_date(year, int(written["month"]), int(written["day"])), rest


def _year_of_era(era: str, count: int) -> int:
    """Return the year that is `count` years into a Japanese era; 0 if the era was over by then."""
    last_before, years = ERAS[era]
    return last_before + count if 1 <= count <= years else 0


def _valid_date(year: int, month: int, day: int) -> date | None:
    """Return the date of these numbers; None if there is no such day."""
    if not (1 <= month <= 12 and year >= 1 and 1 <= day <= 31):
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _day_of_week(year: int, week: int, day: int) -> date | None:
    """Return the date of an ISO week and weekday, 1 for Monday; None if there is no such day."""
    try:
        return date.fromisocalendar(year, week, day)
    except ValueError:
        return None


def _parse_zoned_time(text: str) -> ZonedTime | None:
    """Parse a folded text that is a time of day, maybe with a zone (14:30 +02:00); None for any other text."""
    if not text.isascii():
        text = text.translate(_EASTERN_CLOCK).rstrip(":")
    written = _TIME.fullmatch(text)
    if written is None or (written["minute"] is None and written["half"] is None):
        return None
    clock, zone = _resolve_clock(written), written["zone"]
    if clock is None or zone is None:
        return None if clock is None else ZonedTime(clock, None)
    ahead = _zone_offset(zone)
    if ahead is None:
        return None
    if written["second"] is None and zone[0] == "-" and -ahead > timedelta(hours=clock.hour, minutes=clock.minute):
        return None  # 10:15-11:00 is rather from a time to another
    return ZonedTime(clock, ahead)


def _resolve_clock(match: re.Match[str]) -> time | None:
    """Return the time of day that `_TIME` matched, in 24 hours; None if there is no such time, such as 25:00."""
    hour, minute, second = int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"] == "p" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    microsecond = int((match["fraction"] or "0").ljust(6, "0")[:6])
    return time(hour, minute, second, microsecond)


def _zone_offset(zone: str) -> timedelta | None:
    """Return how far a zone (cet, +02:00) is ahead of UTC; None if the zone is unknown."""
    name = zone.rstrip("-+:0123456789 ")
    digits = "".join(filter(str.isdecimal, zone))
    if not digits:
        return timedelta(hours=_ZONES[name]) if name in _ZONES else None
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if hours > _MOST_AHEAD or minutes % 15:
        return None
    shift = timedelta(hours=hours, minutes=minutes)
    return -shift if "-" in zone else shift


_FIRST_SECOND: Final = 10**9  # 2001-09-09 as a Unix time
_FIRST_MILLISECOND: Final = 10**12  # the same in milliseconds
_UNIX_SPAN: Final = 42 * 10**8  # seconds since 1970, up to 2103
_UNIX_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # spreadsheets hold naive times


def is_unix(number: float) -> bool:
    """Whether a number can be the seconds or milliseconds since 1970, between 2001 and 2103."""
    return _FIRST_SECOND <= number < _UNIX_SPAN or _FIRST_MILLISECOND <= number < _UNIX_SPAN * 1000


def from_number(number: float, *, epoch_1904: bool = False, numbers: NumberMeaning = "days") -> datetime | Bad:
    """Convert a day number, a Unix time or digits such as 20260131 to a moment; BAD for a plain year, a small count and
    other numbers.

    `numbers` says what all numbers of the column are: "digits" if they are dates without separators.
    """
    if number >= COMPACT_DATES and number == int(number) and (moment := _parse_run_on_digits(int(number))) is not None:
        return moment
    if numbers == "seconds" and is_unix(number):
        milliseconds = number if number >= _FIRST_MILLISECOND else number * 1000
        return _UNIX_EPOCH + timedelta(milliseconds=round(milliseconds))
    if number < FIRST_SERIAL or numbers != "days":
        return BAD
    if epoch_1904:
        number += _DAYS_TO_1904
    if number >= PLAUSIBLE_SERIALS and number != LAST_SERIAL:
        return BAD
    return _EPOCH + timedelta(days=int(number), seconds=round(number % 1 * 86_400, 3))


def _parse_run_on_digits(number: int) -> datetime | None:
    """Parse the digits 20260131, 202601311015 or 20260131101500 to a moment; None for digits that are not one."""
    digits = str(number)
    if len(digits) not in (8, *(8 + more for more in _RUN_ON_CLOCKS)):
        return None
    day = _valid_date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    if day is None or not (day.year in _COMPACT_YEARS or number == _NEVER):
        return None
    hour, minute, second = (int(digits[at : at + 2] or 0) for at in (8, 10, 12))
    return datetime.combine(day, time(hour, minute, second)) if hour < 24 and max(minute, second) < 60 else None


def naive(moment: datetime) -> datetime:
    """Convert a moment with a zone to UTC without one, as spreadsheets have no zones; one without a zone stays."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
