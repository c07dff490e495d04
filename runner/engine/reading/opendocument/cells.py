"""One cell of an OpenDocument sheet to its value."""

import re
from datetime import time, timedelta

from runner.engine.reading import serials
from runner.engine.reading.values import NO_CACHED_VALUE, CellError, Value

_DURATION = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,40}))?S)?)?")
_ERROR = re.compile(r"#[A-Z/0]{3,12}[!?]?|Err:\d{3}")

_NUMBERED = {  # LibreOffice shows an error that Excel has no word for by its number
    "Err:503": "#NUM!",
    "Err:521": "#NULL!",
    "Err:524": "#REF!",
    "Err:525": "#NAME?",
    "Err:532": "#DIV/0!",
}


def value_of(attributes: dict[str, str], text: str) -> Value:  # one line per type of cell
    """``attributes`` by local name; ``text`` is what the cell shows."""
    if attributes.get("calcext") == "error":
        return _error(text)
    kind = attributes.get("value-type", "")
    formula = "formula" in attributes
    if kind in ("float", "percentage", "currency"):
        return serials.number_from_text(attributes.get("value", "")) if attributes.get("value") else text or None
    if kind == "date":
        return serials.iso_value(attributes.get("date-value", "")) or text or None
    if kind == "time":
        return _time(attributes.get("time-value", "")) or text or None
    if kind == "boolean":
        return attributes.get("boolean-value", text).strip().lower() == "true"
    if formula and not kind and not text:
        return NO_CACHED_VALUE
    if formula and _ERROR.fullmatch(text):
        return _error(text)
    return attributes.get("string-value") or text or None


def _error(text: str) -> CellError:
    return CellError(_NUMBERED.get(text.strip(), text))


def _time(text: str) -> Value:
    """A time of day below 24 hours, else a duration: the format keeps both alike."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    sign, days, hours, minutes, seconds, fraction = match.groups()
    try:
        span = timedelta(
            days=int(days or 0),
            hours=int(hours or 0),
            minutes=int(minutes or 0),
            seconds=int(seconds or 0),
        )
        span += serials.fraction_of(fraction)
    except (OverflowError, ValueError):
        return text
    if sign:
        return -span
    if span < timedelta(days=1):
        whole, microsecond = span.seconds, span.microseconds
        return time(whole // 3600, whole // 60 % 60, whole % 60, microsecond)
    return span
