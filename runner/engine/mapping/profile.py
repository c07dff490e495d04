"""What a column's values look like, as numbers: kinds of signs, lengths, ranges, repetition, vocabulary.

`chances` turns them into how likely each class of values is (a street, a place, a postcode, a date …) with a small
linear model, trained by tests/bench/train_mapping.py on columns that it makes up, from `matcher.json`.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log
from typing import Any, Final

from runner.engine.mapping.knowledge import folded_words, vocabulary
from runner.engine.values.convert import text_of

LOOKED_AT: Final = 40  # values
VOCABULARIES: Final = (
    "street", "region", "unit", "direction", "district", "company", "status", "country", "first", "last"
)  # fmt: skip
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_DECIMAL = re.compile(r"[+-]?\d{1,3}(?:[ ,.']?\d{3})*[.,]\d+|[+-]?\d+[.,]\d+")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?:[T ].*)?"
    r"|\d{1,2}[ -]?[A-Za-z]{3,9}[ -,]+\d{2,4}"
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_PHONE = re.compile(r"\+?[\d(][\d ()./-]{5,18}\d(?: ?(?:x|ext).*)?")
_HEX = re.compile(r"\{?[0-9A-Fa-f]{8}[0-9A-Fa-f-]{8,30}\}?")
_MONEY = re.compile(r"[-(]?[$€£¥] ?[\d.,' ]+\)?|[\d.,' ]+ ?(?:[$€£¥]|EUR|USD|CHF)")
_NUMBER_LETTER = re.compile(r"\d{1,5} ?[-/]? ?[A-Za-z]{1,3}|\d{1,5}[-/]\d{1,4}")
_CODE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9._/-]{2,30}")
_POSTCODE = re.compile(
    r"\d{5}(?:-\d{4})?|\d{3} ?\d{2}|\d{4}|\d{6}|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d"
    r"|\d{4} ?[A-Z]{2}|\d{5}-\d{3}|\d{2}-\d{3}|\d{4}-\d{3}|\d{3}-\d{4}"
)
_TRUTHS: Final = frozenset(
    {"yes", "no", "y", "n", "true", "false", "t", "f", "0", "1", "ja", "nein", "oui", "non", "si", "x"}
)
NAMES: Final = (
    "integer", "decimal", "date", "clock", "email", "url", "phone", "hex", "money", "number_letter", "code", "postcode",
    "truth", "words_only", "signs", "one_word", "two_words", "many_words", "upper", "title", "short", "middle", "long",
    "same_length", "few", "distinct", "all_distinct", "five_digits", "up_to_20", "up_to_200", "up_to_9999", "large",
    "year", "counts_up", "one_up", "in_90", "in_180", "over_90", "fine", "blank", "leading_number", "negative",
    *(f"vocabulary_{name}" for name in VOCABULARIES),
)  # fmt: skip


def profile(values: Sequence[Any], blank: float = 0.0) -> list[float] | None:
    """A number from 0 to 1 for each of NAMES; None where there is nothing to see."""
    step = max(1, len(values) // LOOKED_AT)
    texts = [t for t in (text_of(v).strip() for v in values[::step][:LOOKED_AT] if v is not None) if t]
    if not texts:
        return None
    size = len(texts)
    seen = dict.fromkeys(NAMES, 0.0)
    numbers: list[float] = []
    for text in texts:
        _look(text, seen, numbers)
    out = {name: count / size for name, count in seen.items()}
    lengths = {len(t) for t in texts}
    different = len(set(texts))
    out["same_length"] = float(len(lengths) == 1)
    out["few"] = float(different <= max(2, size // 3))
    out["distinct"] = different / size
    out["all_distinct"] = float(different == size and size > 3)
    whole = [n for n in numbers if n == int(n)] if len(numbers) * 2 > size else []
    if len(whole) > 2:
        steps = {b - a for a, b in pairwise(whole)}
        out["counts_up"] = float(min(steps) > 0)
        out["one_up"] = float(steps == {1.0})
    out["blank"] = blank
    return [out[name] for name in NAMES]


def _look(text: str, seen: dict[str, float], numbers: list[float]) -> None:
    """Count what one text is."""
    size = len(text)
    seen["short" if size <= 4 else "middle" if size <= 15 else "long"] += 1
    if _INTEGER.fullmatch(text):
        seen["integer"] += 1
        number = float(text)
        numbers.append(number)
        seen["postcode"] += _POSTCODE.fullmatch(text) is not None
        seen["five_digits"] += size == 5
        _range(number, seen)
        return
    letters = sum(map(str.isalpha, text))
    if _DECIMAL.fullmatch(text):
        seen["decimal"] += 1
        _fraction(text, seen, numbers)
        return
    for name, pattern in _SHAPES:
        if pattern.fullmatch(text):
            seen[name] += 1
            if name in ("email", "url"):
                return
    if text.casefold() in _TRUTHS:
        seen["truth"] += 1
    seen["words_only"] += letters > 0 and not any(map(str.isdigit, text))
    seen["leading_number"] += text[0].isdigit() and letters > 1
    seen["signs"] += not letters and not text.isalnum()
    words = folded_words(text)
    seen["one_word" if len(words) <= 1 else "two_words" if len(words) == 2 else "many_words"] += 1
    seen["upper"] += text.isupper()
    seen["title"] += text.istitle()
    for name in VOCABULARIES:
        known = vocabulary(name)
        seen[f"vocabulary_{name}"] += any(w in known for w in words) if name != "region" else text.casefold() in known
    if words and words[-1].endswith(_STREETS):
        seen["vocabulary_street"] += not any(w in vocabulary("street") for w in words)


_STREETS: Final = (
    "strasse", "straße", "str", "weg", "gasse", "platz", "straat", "laan", "gatan", "vägen", "veien", "gata", "vej",
    "gade", "utca", "katu", "tie", "allee",
)  # fmt: skip
_SHAPES: Final = (
    ("date", _DATE), ("clock", _CLOCK), ("email", _EMAIL), ("url", _URL), ("phone", _PHONE), ("hex", _HEX),
    ("money", _MONEY), ("number_letter", _NUMBER_LETTER), ("code", _CODE), ("postcode", _POSTCODE),
)  # fmt: skip


_LEAST: Final = -3.0  # log-odds: values may always be of a kind that nobody thought of
_SIZES: Final = (("up_to_20", 20), ("up_to_200", 200), ("up_to_9999", 9999))


def _range(number: float, seen: dict[str, float]) -> None:
    size = next((name for name, most in _SIZES if abs(number) <= most), "large")
    seen[size] += 1
    seen["year"] += 1900 <= number <= 2100
    seen["negative"] += number < 0
    seen["in_90"] += abs(number) <= 90
    seen["in_180"] += abs(number) <= 180


def _fraction(text: str, seen: dict[str, float], numbers: list[float]) -> None:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return
    numbers.append(number)
    _range(number, seen)
    seen["over_90"] += 90 < abs(number) <= 180
    seen["fine"] += len(text.replace(",", ".").rpartition(".")[2]) >= 4


def chances(vector: Sequence[float] | None, model: Mapping[str, Any]) -> dict[str, float]:
    """Class of values -> log of how much more likely it is than it was before looking. Empty: nothing to say."""
    if vector is None:
        return {}
    scores = {}
    for name, (start, *weights) in model["classes"].items():
        scores[name] = start + sum(w * x for w, x in zip(weights, vector, strict=True) if x)
    top = max(scores.values())
    whole = sum(exp(s - top) for s in scores.values())
    size = log(len(scores))
    return {name: max(_LEAST, s - top - log(whole) + size) for name, s in scores.items()}
