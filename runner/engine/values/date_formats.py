"""Readers of the date formats that a manifest declares, such as %d.%m.%Y.

Formats are compiled to regular expressions: the standard library's strptime takes eight microseconds per cell.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from runner.engine.values.calendar_names import MONTHS, folded

# Directive -> the name of its group in a pattern, and what the group matches.
_GROUP_OF_DIRECTIVE: Final = {
    "Y": ("Y", "[0-9]{4}"),
    "y": ("y", "[0-9]{2}"),
    "m": ("m", "1[0-2]|0?[1-9]"),
    "d": ("d", "3[01]|[12][0-9]|0?[1-9]"),
    "e": ("d", "3[01]|[12][0-9]|0?[1-9]"),
    "b": ("b", r"[^\W\d_]{3,14}\.?"),
    "B": ("b", r"[^\W\d_]{3,14}\.?"),
    "H": ("H", "2[0-3]|[01]?[0-9]"),
    "I": ("I", "1[0-2]|0?[1-9]"),
    "M": ("M", "[0-5]?[0-9]"),
    "S": ("S", "[0-5]?[0-9]"),
    "f": ("f", "[0-9]{1,6}"),
    "p": ("p", "[AaPp]\\.?[Mm]\\.?"),
}


_RUN_ON_FORMAT: Final = re.compile("(?:%[YymdHMS])+")  # %y%m%d: digits without separators


def make_format_reader(form: str) -> Callable[[str], datetime | None]:
    """Compile a declared format, such as %d.%m.%Y, to a function that parses a text and returns None if it does not
    fit.

    Digits without separators (%d%m%y) may lack their first zero, which a number loses: 10226 is 01.02.26. A year of
    four digits has none to lose.
    """
    if _RUN_ON_FORMAT.fullmatch(form):
        width = 2 * form.count("%") + 2 * form.count("%Y")
        shortest = width if form.startswith("%Y") else width - 1
        read_spaced = make_format_reader(form.replace("%", " %").lstrip())
        digit_groups = re.compile("".join(rf"([0-9]{{{4 if directive == 'Y' else 2}}})" for directive in form[1::2]))

        def read_digits(text: str) -> datetime | None:
            """Parse digits without separators; None if they do not fit the format or there is no such moment."""
            digits = digit_groups.fullmatch(text.zfill(width)) if len(text) >= shortest else None
            return read_spaced(" ".join(digits.groups())) if digits else None

        return read_digits
    pattern = _compile_format(form)
    return _reader_by_strptime(form) if pattern is None else _reader_by_pattern(pattern)


def day_first_in_formats(formats: tuple[str, ...]) -> bool | None:
    """Whether declared formats of whole dates have the day before the month; None if none is of a whole date, or they
    disagree."""
    whole_dates = [form for form in formats if "%d" in form and "%m" in form and ("%y" in form or "%Y" in form)]
    orders = {form.find("%d") < form.find("%m") for form in whole_dates}
    return orders.pop() if len(orders) == 1 else None


def _compile_format(form: str) -> re.Pattern[str] | None:
    """Compile a format to a regular expression with a group for each part; None if a part occurs twice or only strptime
    knows it."""
    pattern, at = "", 0
    names: set[str] = set()  # of groups
    while at < len(form):
        if form[at] != "%":
            pattern += r"\s+" if form[at].isspace() else re.escape(form[at])
            at += 1
            continue
        directive = form[at + 1 : at + 2]
        at += 2
        if directive == "%":
            pattern += "%"
            continue
        if directive not in _GROUP_OF_DIRECTIVE or _GROUP_OF_DIRECTIVE[directive][0] in names:
            return None
        name, expression = _GROUP_OF_DIRECTIVE[directive]
        names.add(name)
        pattern += f"(?P<{name}>{expression})"
    return re.compile(pattern) if names else None


def _reader_by_pattern(pattern: re.Pattern[str]) -> Callable[[str], datetime | None]:
    """Return a function that parses a text by the expression of `_compile_format`, and returns None if it does not
    fit."""

    def read(text: str) -> datetime | None:
        """Parse a text; None if it does not fit the format or there is no such moment."""
        written = pattern.fullmatch(text)
        if written is None:
            return None
        part = written.groupdict()
        year = int(part["Y"]) if "Y" in part else 1900
        if "y" in part:
            year = int(part["y"]) + (1900 if int(part["y"]) > 68 else 2000)  # as strptime reads two digits
        month = MONTHS.get(folded(part["b"].rstrip(".")), 0) if "b" in part else int(part.get("m", 1))
        hour = int(part.get("H", 0))
        if "I" in part:
            hour = int(part["I"]) % 12 + (12 if part.get("p", "a")[0] in "pP" else 0)
        microsecond = int(part.get("f", "0").ljust(6, "0"))
        try:
            return datetime(  # noqa: DTZ001  # spreadsheets hold naive times
                year, month, int(part.get("d", 1)), hour, int(part.get("M", 0)), int(part.get("S", 0)), microsecond
            )
        except ValueError:
            return None

    return read


def _reader_by_strptime(form: str) -> Callable[[str], datetime | None]:
    """Return a function that parses a text by the standard library's slower strptime, and returns None if it does not
    fit."""

    def read(text: str) -> datetime | None:
        """Parse a text, with its zone if the format has one; None if it does not fit the format."""
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007  # spreadsheets hold naive times
        except ValueError:
            return None

    return read
