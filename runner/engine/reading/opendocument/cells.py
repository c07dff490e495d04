"""One cell of an OpenDocument sheet to its value."""

import re
from datetime import time, timedelta

from runner.engine.reading import serials
from runner.engine.reading.shown import MOST, Shower, shown
from runner.engine.reading.values import NO_CACHED_VALUE, CellError, Value

_DURATION = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,40}))?S)?)?")
_ERROR = re.compile(r"#[A-Z/0]{3,12}[!?]?|Err:\d{3}")

_DIGITS = re.compile("[0-9]+")
_AMOUNT = re.compile(r"[.,%\u2019'\u00a0\u202f$\u00a2-\u00a5\u20a0-\u20cf]|[0-9]E[+-]|[0-9]/[0-9]")
_GROUPED = re.compile("[-+(]?[1-9][0-9]{0,2}(?: [0-9]{3})+[-)]?")
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
        if not attributes.get("value"):
            return text or None
        number = serials.number_from_text(attributes["value"])
        return shown(_showing(text), number) if kind == "float" and type(number) is int else number
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


def _showing(text: str) -> Shower:
    """The format is not kept with the cell, but what it shows is."""
    bare = " ".join(text.split())

    def show(number: int) -> str | None:
        """None for an amount: digits in groups, or others than the number has."""
        digits = "".join(_DIGITS.findall(bare))
        if _AMOUNT.search(bare) or _GROUPED.fullmatch(bare) or (digits and int(digits) != abs(number)):
            return None
        return bare if bare and bare != str(number) else None

    return show if len(bare) <= MOST else lambda _: None


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
