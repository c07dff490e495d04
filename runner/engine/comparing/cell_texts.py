"""Values of a result as texts that a person reads and a program compares: each value has one text, each text one value.

As in a spreadsheet, an apostrophe marks a text that looks like something else: `'42` is the text 42, `42` the number.
"""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from runner.engine.reading import CellError, NoCachedValue

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?")
_TIME: Final = re.compile(r"-?[0-9]{2,}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?")
_BOOLEANS: Final = frozenset({"true", "false"})
# A text that begins with one would be a formula, or a mark, where the file is opened as a sheet.
_FORMULA_SIGNS: Final = ("'", "=", "+", "-", "@", "\t", "\r")
_EXACT_WHOLE: Final = 10**15  # whole numbers up to here are the same as int and as float


def cell_text(value: object) -> str:
    """Write a value as its one text; a blank is empty."""
    if value is None or isinstance(value, NoCachedValue):
        return ""
    if isinstance(value, str):
        return value if isinstance(value, CellError) else _mark_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT_WHOLE else repr(value)
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration_text(value)
    return _mark_text(str(value))


def kind_of(text: str) -> str:
    """Name the kind of value that a text of `cell_text` stands for: blank, text, boolean, number, date, date and time,
    or time."""
    if not text:
        return "blank"
    if text.startswith("'"):
        return "text"
    return _kind_by_form(text)


def _kind_by_form(text: str) -> str:
    """Name the kind of value that an unmarked text looks like: a boolean, a number, a date, a time or a text."""
    if text in _BOOLEANS:
        return "boolean"
    for pattern, kind in ((_NUMBER, "number"), (_DATE, "date"), (_DATETIME, "date and time"), (_TIME, "time")):
        if pattern.fullmatch(text):
            return kind
    return "text"


def _mark_text(text: str) -> str:
    """Put an apostrophe in front of a text that could be taken for a value of another kind, a formula or a blank."""
    return f"'{text}" if text.startswith(_FORMULA_SIGNS) or not text or _kind_by_form(text) != "text" else text


def _duration_text(value: timedelta) -> str:
    """Write a duration as hours, minutes and seconds; hours may exceed a day."""
    sign, whole = ("-", -value) if value < timedelta() else ("", value)
    minutes, seconds = divmod(whole.days * 86_400 + whole.seconds, 60)
    part = f".{whole.microseconds:06}" if whole.microseconds else ""
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{part}"
