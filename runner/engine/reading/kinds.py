"""What a value looks like (a number, a date, a code, a word), and what the values of a column have in common."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final, Literal

Kind = Literal["number", "date", "code", "word", "other"]
Class = Literal["number", "date", "code", "word", "any"]

LEAST_VALUES: Final = 3  # values that show what a column holds
LEAST_ALIKE: Final = 0.95  # share of them that agree
MONTH: Final = r"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zé]{0,6}\.?"
_MAX_REMEMBERED: Final = 50_000
_LONGEST: Final = 100  # characters of a number or a date
_NUMBER = re.compile(r"[-+(]?\s?[$€£¥]?\s?\d[\d.,'\u00a0\u202f ]*(?:[eE][-+]?\d+)?\s?(?:[%€$£¥]|EUR|USD|GBP|CHF)?[)-]?")
_DATE = re.compile(
    rf"\d{{1,4}}[-/.]\s?\d{{1,2}}[-/.]\s?\d{{1,4}}(?:[T ].*)?|\d{{1,2}}[.\s/-]+{MONTH}[,.\s/-]*\d{{2,4}}.*"
    rf"|{MONTH}[\s/-]+\d{{1,2}}(?:st|nd|rd|th)?,?[\s/-]+\d{{2,4}}.*",
    re.IGNORECASE,
)


class Kinds(dict[str, Kind]):
    """The kinds of texts, worked out once for each: `kinds[text]`."""

    def __missing__(self, text: str) -> Kind:
        """Work out the kind of a text; that of a long one is not remembered."""
        if len(text) > _LONGEST:
            return "code" if any(map(str.isdecimal, text[:_LONGEST])) else "word"
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        kind = self[text] = _kind_with_digits(text.strip()) if any(map(str.isdecimal, text)) else "word"
        return kind

    def of(self, value: Any) -> Kind:
        """Return the kind of any value that is not blank."""
        if value.__class__ is str:
            return self[value]
        if isinstance(value, bool):
            return "other"
        if isinstance(value, (int, float)):
            return "number"
        return "date" if isinstance(value, date) else "other"


def _kind_with_digits(text: str) -> Kind:
    """Return the kind of a text that has digits."""
    if _DATE.fullmatch(text):
        return "date"
    return "number" if _NUMBER.fullmatch(text) else "code"


def class_of(kinds: Sequence[Kind]) -> Class:
    """Return what the values of a column have in common; a column of codes may hold numbers and dates."""
    if len(kinds) < LEAST_VALUES:
        return "any"
    least = LEAST_ALIKE * len(kinds)
    for kind in ("number", "date", "word"):
        if kinds.count(kind) >= least:
            return kind
    with_digits = sum(kind in ("number", "date", "code") for kind in kinds)
    return "code" if with_digits >= least and "other" not in kinds else "any"


def contradicts(kind: Kind | None, column_class: Class) -> bool:
    """Whether a value of this kind cannot be one of such a column; False for a blank (None)."""
    if kind is None or kind == "other" or column_class == "any":
        return False
    if column_class == "code":
        return kind == "word"
    return kind != column_class and not (column_class == "word" and kind == "code")
