"""What a column's values look like, as numbers: kinds of signs, lengths, ranges, repetition, vocabulary.

`chances` turns them into how likely each class of values is (a street, a place, a postcode, a date …) with a small
linear model, trained by tools/train_mapping.py on columns that it makes up, from `matcher.json`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from math import exp, log
from operator import add
from typing import Any, Final

from runner.engine.mapping.knowledge import folded_words, vocabulary
from runner.engine.values.convert import text_of

SAMPLED: Final = 40  # values
_MOST_DIGITS: Final = 18  # of an integer
_POSTCODES: Final = {4: ("postcode",), 5: ("five_digits", "postcode"), 6: ("postcode",)}  # digits -> what they may be
VOCABULARIES: Final = (
    "street", "region", "unit", "direction", "district", "company", "status", "country", "first", "last"
)  # fmt: skip
_DIGIT = re.compile(r"\d")
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
_OF_LETTERS: Final = (("code", _CODE.fullmatch), ("postcode", _POSTCODE.fullmatch))
_OF_SIGNS: Final = (*_OF_LETTERS, ("phone", _PHONE.fullmatch))
_OF_NUMBERS: Final = (
    ("date", _DATE.fullmatch), ("clock", _CLOCK.fullmatch), ("number_letter", _NUMBER_LETTER.fullmatch), *_OF_SIGNS
)  # fmt: skip
TRUTHS: Final = frozenset(
    {"yes", "no", "y", "n", "true", "false", "t", "f", "0", "1", "ja", "nein", "oui", "non", "si", "x"}
)
LOOKS: Final = (
    "integer", "decimal", "date", "clock", "email", "url", "phone", "hex", "money", "number_letter", "code", "postcode",
    "truth", "words_only", "signs", "one_word", "two_words", "many_words", "upper", "title", "short", "middle", "long",
    "same_length", "few", "distinct", "all_distinct", "five_digits", "up_to_20", "up_to_200", "up_to_9999", "large",
    "year", "counts_up", "one_up", "in_90", "in_180", "over_90", "fine", "blank", "leading_number", "negative",
    *(f"vocabulary_{name}" for name in VOCABULARIES),
)  # fmt: skip


def looks_of(values: Sequence[Any], blank: float = 0.0) -> list[float] | None:
    """How much a column looks like each of LOOKS, from 0 to 1; None if all values are blank.

    Up to SAMPLED values are classified, evenly spaced. `blank`: the share of blank cells.
    """
    step = max(1, len(values) // SAMPLED)
    texts = [t for v in values[::step][:SAMPLED] if v is not None and (t := text_of(v).strip())]
    if not texts:
        return None
    size = len(texts)
    told: dict[str, tuple[list[str], float | None]] = {text: _classify(text) for text in dict.fromkeys(texts)}
    seen = Counter(chain.from_iterable([told[text][0] for text in texts]))
    numbers = [number for text in texts if (number := told[text][1]) is not None]
    out = dict.fromkeys(LOOKS, 0.0) | {name: count / size for name, count in seen.items()}
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
    return list(map(out.__getitem__, LOOKS))


def _classify(text: str) -> tuple[list[str], float | None]:
    """What one text is, and the number that it is, if it is one."""
    size, first = len(text), text[0]
    seen = ["short" if size <= 4 else "middle" if size <= 15 else "long"]
    if text.isdecimal() and size <= _MOST_DIGITS:
        seen += ("integer", *_POSTCODES.get(size, ()))
        return _range(float(text), seen)
    digits = _DIGIT.search(text) is not None
    if digits and (first in "+-" or first.isdecimal()):
        if first in "+-" and text[1:].isdecimal() and size <= _MOST_DIGITS + 1:
            seen += ("integer", "five_digits") if size == 5 else ("integer",)
            return _range(float(text), seen)
        if _DECIMAL.fullmatch(text):
            seen.append("decimal")
            return _fraction(text, seen)
    _add_looks(text, seen, digits=digits)
    return seen, None


def _add_looks(text: str, seen: list[str], *, digits: bool) -> None:
    """Add the looks of a text that is no plain number: an address, a date, an amount, words."""
    first, plain = text[0], text.isascii()
    if first in "hHwW" and _URL.fullmatch(text):
        seen.append("url")
        return
    if "@" in text and _EMAIL.fullmatch(text):
        seen.append("email")
        return
    if digits:
        seen += _with_digits(text, first)
    folded = text.casefold()
    _add_forms(text, folded, seen)
    _add_letters(text, seen, digits=digits)
    words = folded.replace(",", " ").replace(".", " ").split() if plain else folded_words(text)
    seen.append("one_word" if len(words) <= 1 else "two_words" if len(words) == 2 else "many_words")
    seen += _vocabularies(folded, words)


def _add_forms(text: str, folded: str, seen: list[str]) -> None:
    """Add the forms of values that the whole text has."""
    first = text[0]
    if len(text) >= 16 and _HEX.fullmatch(text):
        seen.append("hex")
    if (first in "-($€£¥" or text[-1] in "$€£¥RDF") and _MONEY.fullmatch(text):
        seen.append("money")
    if len(text) < 6 and folded in TRUTHS:
        seen.append("truth")
    if first.isdigit() and sum(map(str.isalpha, text)) > 1:
        seen.append("leading_number")


def _add_letters(text: str, seen: list[str], *, digits: bool) -> None:
    """Add whether the text has letters or only signs, and how it is capitalised."""
    has_letters = text.isalpha() or any(map(str.isalpha, text))
    if has_letters and not digits and (text.isascii() or not any(map(str.isdigit, text))):
        seen.append("words_only")
    elif not has_letters and not text.isalnum():
        seen.append("signs")
    if text.isupper():
        seen.append("upper")
    if text.istitle():
        seen.append("title")


def _vocabularies(folded: str, words: Sequence[str]) -> set[str]:
    """The vocabularies that a casefolded text or one of its words is in."""
    known = _known()
    hits = {name for word in words if word in known for name in known[word]}
    if folded in vocabulary("region"):
        hits.add("vocabulary_region")
    if words and words[-1].endswith(_STREETS):
        hits.add("vocabulary_street")
    return hits


def _with_digits(text: str, first: str) -> list[str]:
    """The shapes of a text that has digits, by its first sign."""
    shapes = _OF_NUMBERS if first.isdecimal() else _OF_SIGNS if first in "+(" else _OF_LETTERS
    return [name for name, matches in shapes if matches(text)]


@cache
def _known() -> Mapping[str, tuple[str, ...]]:
    """Word -> the vocabularies that have it; regions are known by their whole names only."""
    out: dict[str, tuple[str, ...]] = {}
    for name in VOCABULARIES:
        for word in vocabulary(name) if name != "region" else ():
            out[word] = (*out.get(word, ()), f"vocabulary_{name}")
    return out


_STREETS: Final = (
    "strasse", "straße", "str", "weg", "gasse", "platz", "straat", "laan", "gatan", "vägen", "veien", "gata", "vej",
    "gade", "utca", "katu", "tie", "allee",
)  # fmt: skip

_LEAST: Final = -3.0  # log-odds: values may always be of a kind that nobody thought of


def _range(number: float, seen: list[str]) -> tuple[list[str], float]:
    size = abs(number)
    seen.append("up_to_20" if size <= 20 else "up_to_200" if size <= 200 else "up_to_9999" if size <= 9999 else "large")
    if 1900 <= number <= 2100:
        seen.append("year")
    if number < 0:
        seen.append("negative")
    if size <= 90:
        seen.append("in_90")
    if size <= 180:
        seen.append("in_180")
    return seen, number


def _fraction(text: str, seen: list[str]) -> tuple[list[str], float | None]:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return seen, None
    if 90 < abs(number) <= 180:
        seen.append("over_90")
    if len(text.replace(",", ".").rpartition(".")[2]) >= 4:
        seen.append("fine")
    return _range(number, seen)


def by_number(classes: Mapping[str, Sequence[float]]) -> tuple[list[str], list[float], list[tuple[float, ...]]]:
    """The weights of all classes for each number of a profile, after the names and what each class starts with."""
    starts, *columns = zip(*classes.values(), strict=True)
    return list(classes), list(starts), columns


def chances(vector: Sequence[float] | None, model: Mapping[str, Any]) -> dict[str, float]:
    """Class of values -> log of how much more likely it is than it was before looking. Empty: nothing to say."""
    if vector is None:
        return {}
    names, starts, columns = model.get("by_number") or by_number(model["classes"])
    sums = starts
    for x, weights in zip(vector, columns, strict=True):
        if x == 1.0:
            sums = list(map(add, sums, weights))
        elif x:
            sums = [s + w * x for s, w in zip(sums, weights, strict=True)]
    top = max(sums)
    average = top + log(sum([exp(s - top) for s in sums]) / len(sums))
    return {name: max(_LEAST, s - average) for name, s in zip(names, sums, strict=True)}
