"""What each operation does with the values of one row: scalars in, a scalar or a Failure out; never raises.

Numbers are whole numbers or decimals, never binary floats. No argument is blank or failed here: `evaluation` answers
for those, and for the operations that have a rule of their own about blanks.
"""

import operator
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

MAX_TEXT: Final = 32_767  # characters: what a cell holds
MAX_PLACES: Final = 15  # of round
_HUGE_DIGITS: Final = 400  # digits of a number that no cell holds
_LARGE_WHOLE: Final = 10**15  # whole numbers from here on are decimals, whose precision is bounded
_HUGE_WHOLE: Final = 10**_HUGE_DIGITS
_MOST_DAYS: Final = 4_000_000  # between two dates
_MOST_MONTHS: Final = 120_000  # likewise
_MICROSECONDS_OF_DAY: Final = Decimal(86_400_000_000)  # of a day
Number = int | Decimal
# Wide enough that no expression leaves it: the numbers of cells have at most 308 digits, an expression 200 parts.
CONTEXT: Final = Context(prec=40, Emin=-999_999, Emax=999_999, traps=[])


class Failure:
    """Why an expression has no value in a row, and the field that is to blame, as far as it is known."""

    __slots__ = ("field", "why")

    def __init__(self, why: str, field: str | None = None) -> None:
        """Say `why` as a predicate (`divides by zero`); without a field, `evaluation` finds the one to blame."""
        self.why = why
        self.field = field


ZERO: Final = Failure("divides by zero")
LARGE: Final = Failure("gives a number that is too large")
LONG: Final = Failure(f"gives a text of more than {MAX_TEXT:,} characters")
INPUT: Final = Failure("uses a cell that is not of its type")
NO_NUMBER: Final = Failure("reads a number in a text that is not one")
NO_DATE: Final = Failure("gives a date that does not exist")
NOT_WHOLE: Final = Failure("counts with a number that is not a whole one, or too large")
FAILURES: Final = (ZERO, LARGE, LONG, INPUT, NO_NUMBER, NO_DATE, NOT_WHOLE)


def read_number(value: Any) -> Any:
    """Convert a number of a cell to an exact one: a whole number, or a decimal with the digits that the cell shows; a
    failure for any other value."""
    if type(value) is float:
        if value.is_integer() and abs(value) < _LARGE_WHOLE:
            return int(value)
        exact = Decimal(repr(value))
        return exact if exact.is_finite() else INPUT
    if type(value) is int:
        return value if -_LARGE_WHOLE < value < _LARGE_WHOLE else _widen(value)
    return value if type(value) is Decimal and value.is_finite() else INPUT


def _widen(value: int) -> Decimal | Failure:
    """Convert a large whole number to a decimal; a failure if it has too many digits."""
    return CONTEXT.create_decimal(value) if abs(value) < 10**CONTEXT.prec else LARGE


def write_number(value: Any) -> Any:
    """Convert a number to what cells hold: a whole number, a float, or a decimal where no float has its digits; else a
    failure."""
    if type(value) is int:
        return value if abs(value) < _HUGE_WHOLE else LARGE
    if value.adjusted() >= _HUGE_DIGITS:
        return LARGE
    if value == value.to_integral_value():
        return int(value)
    return float(value) if value.adjusted() < MAX_PLACES else value


def text_of_number(value: Number) -> Any:
    """Write a number in plain digits without trailing zeros; a failure for one with too many."""
    if isinstance(value, int):
        return str(value) if abs(value) < _HUGE_WHOLE else LARGE
    if abs(value.adjusted()) >= _HUGE_DIGITS:
        return LARGE
    plain = f"{value or 0:f}"  # zero has no sign
    return (plain.rstrip("0").rstrip(".") or "0") if "." in plain else plain


def text_of(value: Any) -> Any:
    """Write a cell of a text field whose value is something else, such as a number among allowed values."""
    if type(value) in (int, float, Decimal):
        number = read_number(value)
        return number if type(number) is Failure else text_of_number(number)
    return text(value) if type(value) in (bool, date, datetime, time) else INPUT


def text(value: Any) -> Any:
    """Write any value as a text, as a person would type it."""
    kind = type(value)
    if kind is str:
        return value
    if kind is bool:
        return "TRUE" if value else "FALSE"
    if kind is datetime:
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    return value.isoformat() if kind in (date, time) else text_of_number(value)


def _as_whole(value: Number, most: int) -> int | None:
    """Convert a number to an int; None if it is not whole, or further from zero than `most`."""
    if not -most <= value <= most or value != int(value):
        return None
    return int(value)


def _refuse_long(made: str) -> Any:
    """Return a text; a failure if it is too long."""
    return made if len(made) <= MAX_TEXT else LONG


def join_texts(values: list[Any], separator: str = "") -> Any:
    """Put values together as one text; a failure if one of them fails, or if the text is too long."""
    texts = [text(value) for value in values]
    failed = next((value_text for value_text in texts if type(value_text) is Failure), None)
    if failed is not None:
        return failed
    size = sum(map(len, texts)) + len(separator) * max(0, len(texts) - 1)
    return separator.join(texts) if size <= MAX_TEXT else LONG


def _append_text(left: Any, right: Any) -> Any:
    """Put two values together as one text; a failure of either comes first."""
    head = left if type(left) is str else text(left)
    tail = right if type(right) is str else text(right)
    if type(head) is Failure or type(tail) is Failure:
        return head if type(head) is Failure else tail
    return head + tail if len(head) + len(tail) <= MAX_TEXT else LONG


def _split_text(value: str, separator: str, part: Number) -> Any:
    """Return a piece of a text, counted from 1, or from the end if `part` is negative; blank if there is none."""
    number = _as_whole(part, MAX_TEXT)
    if number is None or number == 0:
        return NOT_WHOLE
    pieces = value.split(separator) if separator else value.split()
    at = number - 1 if number > 0 else number
    piece = pieces[at].strip() if -len(pieces) <= at < len(pieces) else ""
    return piece or None


def _first_characters(value: str, count: Number) -> Any:
    """Return the first `count` characters; blank if there are none, a failure if it is not a count."""
    size = _as_whole(count, MAX_TEXT)
    if size is None or size < 0:
        return NOT_WHOLE
    return value[:size] or None


def _last_characters(value: str, count: Number) -> Any:
    """Return the last `count` characters; blank if there are none, a failure if it is not a count."""
    size = _as_whole(count, MAX_TEXT)
    if size is None or size < 0:
        return NOT_WHOLE
    return (value[-size:] if size else "") or None


def _middle_characters(value: str, start: Number, count: Number = MAX_TEXT) -> Any:
    """Return `count` characters from the one at `start`, counted from 1; blank if there are none."""
    first, size = _as_whole(start, MAX_TEXT), _as_whole(count, MAX_TEXT)
    if first is None or first < 1:
        return NOT_WHOLE
    if size is None or size < 0:
        return NOT_WHOLE
    return value[first - 1 : first - 1 + size] or None


def _replace_text(value: str, old: str, new: str) -> Any:
    """Replace every `old` in a text; a failure if it becomes too long."""
    if not old:
        return value
    size = len(value) + value.count(old) * (len(new) - len(old))
    return (value.replace(old, new) or None) if size <= MAX_TEXT else LONG


def _pad_left(value: str, width: Number, fill: str) -> Any:
    """Put `fill` before a text up to a width; a failure for a width that is not a count, or several signs."""
    size = _as_whole(width, MAX_TEXT)
    if size is None or size < 0 or len(fill) != 1:
        return NOT_WHOLE
    return value.rjust(size, fill)


def _parse_number(value: str) -> Any:
    """Parse a number that is written with digits and a decimal point; a failure for another text."""
    plain = value.strip()
    digits = plain.removeprefix("-").replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()) or plain[-1] == "." or plain.removeprefix("-")[0] == ".":
        return NO_NUMBER
    if len(digits) > CONTEXT.prec:
        return LARGE
    return Decimal(plain) if "." in plain else int(plain)


def _divide(dividend: Number, divisor: Number) -> Any:
    """Divide; a failure if the divisor is zero."""
    return CONTEXT.divide(dividend, divisor) if divisor else ZERO


def _modulo(dividend: Number, divisor: Number) -> Any:
    """Return the rest of a division, with the sign of the divisor, as spreadsheets have it."""
    if not divisor:
        return ZERO
    rest = CONTEXT.remainder(dividend, divisor)
    if not rest.is_finite():
        return LARGE
    return CONTEXT.add(rest, divisor) if rest and (rest < 0) != (divisor < 0) else rest


def _round(value: Number, places: Number = 0) -> Any:
    """Round to so many decimals; halves go away from zero, as spreadsheets and people round."""
    digits = _as_whole(places, MAX_PLACES)
    return NOT_WHOLE if digits is None else _round_to(value, digits, ROUND_HALF_UP)


def _round_to(value: Number, digits: int, rounding: str) -> Any:
    """Round to so many decimals; a value that has no more stays as it is."""
    exact = Decimal(value)
    shifted = exact.scaleb(digits, context=CONTEXT)
    if shifted == shifted.to_integral_value():
        return value
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=_QUANTIZING)
    return rounded if rounded.is_finite() else LARGE


_QUANTIZING: Final = Context(prec=_HUGE_DIGITS, Emin=-999_999, Emax=999_999, traps=[])


def _add_days(value: date, days: Number) -> Any:
    """Return the date so many days later; a datetime also by parts of a day. A failure if there is no such date."""
    if type(value) is datetime:
        if not -_MOST_DAYS <= days <= _MOST_DAYS:
            return NO_DATE
        micros = CONTEXT.multiply(days, _MICROSECONDS_OF_DAY)
        step = timedelta(microseconds=int(_round_to(micros, 0, ROUND_HALF_UP)))
    else:
        count = _as_whole(days, _MOST_DAYS)
        if count is None:
            return NOT_WHOLE
        step = timedelta(days=count)
    try:
        return value + step
    except OverflowError:
        return NO_DATE


def _days_between(start: date, end: date) -> Any:
    """Count the days from one date to another: whole for dates, with a fraction for datetimes."""
    between = end - start
    if not between.seconds and not between.microseconds:
        return between.days
    return CONTEXT.divide(Decimal(between // timedelta(microseconds=1)), _MICROSECONDS_OF_DAY)


def _months_between(start: date, end: date) -> int:
    """Count the whole months from one date to another; the 31st of January to the 28th of February is not yet one."""
    if end < start:
        return -_months_between(end, start)
    months = (end.year - start.year) * 12 + end.month - start.month
    return months - (_within_month(end) < _within_month(start))


def _within_month(value: date) -> tuple[int, time]:
    """Return how far into its month a date or a moment is."""
    return value.day, value.time() if isinstance(value, datetime) else time()


def _years_between(start: date, end: date) -> int:
    """Count the whole years from one date to another."""
    months = _months_between(start, end)
    return months // 12 if months >= 0 else -(-months // 12)


def _add_months(value: date, months: Number) -> Any:
    """Return the same day some months later, or the last day of that month if it is shorter; a failure beyond the
    calendar."""
    count = _as_whole(months, _MOST_MONTHS)
    if count is None:
        return NOT_WHOLE
    year, month = divmod(value.year * 12 + value.month - 1 + count, 12)
    if not 1 <= year <= 9999:
        return NO_DATE
    return value.replace(year=year, month=month + 1, day=min(value.day, _days_in_month(year, month + 1)))


def _month_end(value: date) -> date:
    """Return the last day of a date's month."""
    return date(value.year, value.month, _days_in_month(value.year, value.month))


def _days_in_month(year: int, month: int) -> int:
    """Return how many days a month has."""
    from calendar import monthrange  # noqa: PLC0415  # takes milliseconds to load

    return monthrange(year, month)[1]


def _date_of_text(value: str) -> Any:
    """Parse a date such as 2026-01-31; a failure for another text."""
    try:
        return date.fromisoformat(value) if len(value) == 10 else NO_DATE
    except ValueError:
        return NO_DATE


def _date_of_parts(year: Number, month: Number, day: Number) -> Any:
    """Make a date of a year, a month and a day; a failure if there is none."""
    parts = [_as_whole(part, 9999) for part in (year, month, day)]
    try:
        return NO_DATE if None in parts else date(*(part for part in parts if part is not None))
    except ValueError:
        return NO_DATE


# Operations of one row's values, by name. Those of `SAFE` never fail.
OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": _divide,
    "negative": operator.neg,
    "append": _append_text,
    "equal": operator.eq,
    "unequal": operator.ne,
    "less": operator.lt,
    "at_most": operator.le,
    "greater": operator.gt,
    "at_least": operator.ge,
    "invert": operator.not_,
    "add_days": _add_days,
    "subtract_days": lambda value, days: _add_days(value, -days),
    "days_from": lambda end, start: (end - start).days,
    "split": _split_text,
    "upper": lambda value: _refuse_long(value.upper()),
    "lower": lambda value: _refuse_long(value.lower()),
    "title": lambda value: _refuse_long(value.title()),
    "trim": lambda value: " ".join(value.split()) or None,
    "length": len,
    "left": _first_characters,
    "right": _last_characters,
    "substring": _middle_characters,
    "replace": _replace_text,
    "pad": _pad_left,
    "contains": operator.contains,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "text": text,
    "number": _parse_number,
    "round": _round,
    "floor": lambda value: _round_to(value, 0, ROUND_FLOOR),
    "ceiling": lambda value: _round_to(value, 0, ROUND_CEILING),
    "absolute": abs,
    "modulo": _modulo,
    "least": min,
    "greatest": max,
    "date_of_text": _date_of_text,
    "date_of_datetime": datetime.date,
    "date_of_parts": _date_of_parts,
    "year": operator.attrgetter("year"),
    "quarter": lambda value: (value.month + 2) // 3,
    "month": operator.attrgetter("month"),
    "week": lambda value: value.isocalendar().week,
    "day": operator.attrgetter("day"),
    "weekday": lambda value: value.isoweekday(),
    "hour": operator.attrgetter("hour"),
    "minute": operator.attrgetter("minute"),
    "add_months": _add_months,
    "month_end": _month_end,
    "days_between": _days_between,
    "months_between": _months_between,
    "years_between": _years_between,
    "hours_between": lambda start, end: CONTEXT.divide(
        Decimal((end - start) // timedelta(microseconds=1)), Decimal(3_600_000_000)
    ),
}
SAFE: Final = frozenset(
    {"equal", "unequal", "less", "at_most", "greater", "at_least", "invert", "length", "contains", "starts_with",
     "ends_with", "least", "greatest", "date_of_datetime", "year", "quarter", "month", "week", "day", "weekday", "hour",
     "minute", "month_end", "days_from", "months_between", "years_between", "days_between", "hours_between", "absolute",
     "negative", "add", "subtract", "multiply"}
)  # fmt: skip
