"""The declared cleaning steps on a text."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from runner.engine.values.words import NOTHING

_BLANKS = re.compile(r"\s+")
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


def _strip(text: str) -> str:
    text = text.strip()
    return text if text.isascii() else text.translate(_INVISIBLE).strip()


def _unaccent(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


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
