"""The declared cleaning steps on a text."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from runner.engine.values.words import NOTHING

_BLANKS = re.compile(r"\s+")
# Never part of a word: the zero-width space, the word joiner, the byte-order mark, the soft hyphen.
_DIRT: Final = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"))
# Letters of many scripts and emoji hang together by joiners; only at the ends are those, and marks of direction, dirt.
_ENDS: Final = (
    "".join(c for c in map(chr, range(0x3001)) if c.isspace())
    + "\u200c\u200d\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def _strip(text: str) -> str:
    return text.strip() if text.isascii() else text.translate(_DIRT).strip(_ENDS)


def _unaccent(text: str) -> str:
    """Latin and Greek letters without their accents; in other scripts a mark makes another letter."""
    if text.isascii():
        return text
    out: list[str] = []
    plain = False
    for c in unicodedata.normalize("NFD", text):
        if not unicodedata.combining(c):
            plain = c.isascii() or "\u0370" <= c <= "\u03ff"
        elif plain and "\u0300" <= c <= "\u036f":
            continue
        out.append(c)
    return unicodedata.normalize("NFC", "".join(out))


STEPS: Final[dict[str, Callable[[str], str]]] = {
    "strip": _strip,
    "collapse": lambda text: _BLANKS.sub(" ", text),
    "upper": str.upper,
    "lower": str.lower,
    "title": lambda text: re.sub(r"(?<![^\W_])[^\W\d_]+", lambda word: word[0].capitalize(), text),
    "digits": lambda text: "".join(c for c in text if "0" <= c <= "9"),
    "unaccent": _unaccent,
    "nullify": lambda text: "" if text.strip().casefold() in NOTHING else text,
}


_ASCII: Final[dict[str, Callable[[str], str]]] = {"strip": str.strip, "upper": str.upper, "lower": str.lower}


def column_cleaner(steps: tuple[str, ...]) -> Callable[[list[str | None]], list[str | None]]:
    """The same for a column of texts and blanks, step by step where compiled code can take each."""
    clean = cleaner(steps)
    functions = [_ASCII[name] for name in steps if name in _ASCII]

    def one_by_one(values: list[str | None]) -> list[str | None]:
        return [v and clean(v) for v in values]

    def at_once(values: list[str | None]) -> list[str | None]:
        if None in values or not all(map(str.isascii, values)):  # type: ignore[arg-type]
            return one_by_one(values)
        texts: list[str] = values  # type: ignore[assignment]
        for function in functions:
            texts = list(map(function, texts))
        return list(texts)

    return at_once if len(functions) == len(steps) else one_by_one


def cleaner(steps: tuple[str, ...]) -> Callable[[str], str]:
    """One function that does the steps in their order."""
    functions = [STEPS[name] for name in steps]
    if not functions:
        return str
    if len(functions) == 1:
        return functions[0]

    def clean(text: str) -> str:
        for function in functions:
            text = function(text)
        return text

    return clean
