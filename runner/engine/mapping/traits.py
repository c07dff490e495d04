"""What a column's values look like, as numbers: kinds of signs, lengths, ranges, repetition, vocabulary.

`traits_of` classifies each value and returns a number per trait of TRAITS. `class_log_odds` turns them into how likely
each class of values is (a street, a place, a postcode, a date …) with a small linear model, trained by
tools/train_mapping.py on columns that it makes up, from `matcher.json`. `Sample` asks for both, once a column.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from math import exp, log
from operator import add
from typing import Any, Final, NamedTuple

from runner.engine.mapping.knowledge import folded_words, vocabulary
from runner.engine.values.convert import text_of

_VALUES_CLASSIFIED: Final = 40  # values of a column
_MOST_DIGITS: Final = 18  # of an integer
_MOST_LATITUDE: Final = 90
_MOST_LONGITUDE: Final = 180
_TRAITS_BY_LENGTH: Final = {
    4: ("postcode",),
    5: ("five_digits", "postcode"),
    6: ("postcode",),
}  # length -> what they may be
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
# The forms that a text with digits may have, by what it starts with: a letter, a + or bracket, a digit.
_AFTER_LETTER: Final = (("code", _CODE.fullmatch), ("postcode", _POSTCODE.fullmatch))
_AFTER_SIGN: Final = (*_AFTER_LETTER, ("phone", _PHONE.fullmatch))
_AFTER_DIGIT: Final = (
    ("date", _DATE.fullmatch), ("clock", _CLOCK.fullmatch), ("number_letter", _NUMBER_LETTER.fullmatch), *_AFTER_SIGN
)  # fmt: skip
TRUTHS: Final = frozenset(
    {"yes", "no", "y", "n", "true", "false", "t", "f", "0", "1", "ja", "nein", "oui", "non", "si", "x"}
)
TRAITS: Final = (
    "integer", "decimal", "date", "clock", "email", "url", "phone", "hex", "money", "number_letter", "code", "postcode",
    "truth", "words_only", "signs", "one_word", "two_words", "many_words", "upper", "title", "short", "middle", "long",
    "same_length", "few", "distinct", "all_distinct", "five_digits", "up_to_20", "up_to_200", "up_to_9999", "large",
    "year", "counts_up", "one_up", "in_90", "in_180", "over_90", "fine", "leading_number", "negative",
    *(f"vocabulary_{name}" for name in VOCABULARIES),
)  # fmt: skip
_STREET_ENDINGS: Final = (  # of casefolded words
    "strasse", "str", "weg", "gasse", "platz", "straat", "laan", "gatan", "vägen", "veien", "gata", "vej", "gade",
    "utca", "katu", "tie", "allee",
)  # fmt: skip
_LEAST_LOG_ODDS: Final = -3.0  # values may always be of a class that nobody thought of

TraitNames = list[str]  # names of TRAITS that one text has


def traits_of(values: Sequence[Any]) -> list[float] | None:
    """Measure how much a column looks like each of TRAITS, from 0 to 1, for `Sample`; None if all values are blank.

    Of many values some are classified, evenly spaced.
    """
    stride = max(1, len(values) // _VALUES_CLASSIFIED)
    texts = [t for v in values[::stride][:_VALUES_CLASSIFIED] if v is not None and (t := text_of(v).strip())]
    if not texts:
        return None
    classified = {text: _classify(text) for text in dict.fromkeys(texts)}
    count_by_trait = Counter(chain.from_iterable([classified[text].traits for text in texts]))
    numbers = [number for text in texts if (number := classified[text].number) is not None]
    shares = {trait: count / len(texts) for trait, count in count_by_trait.items()}
    traits = (
        dict.fromkeys(TRAITS, 0.0) | shares | _repetition_traits(texts) | _sequence_traits(numbers, len(texts), stride)
    )
    return list(map(traits.__getitem__, TRAITS))


def _repetition_traits(texts: Sequence[str]) -> dict[str, float]:
    """Return the column's traits of repetition: equal lengths, few or only different values."""
    size, different = len(texts), len(set(texts))
    return {
        "same_length": float(len({len(text) for text in texts}) == 1),
        "few": float(different <= max(2, size // 3)),
        "distinct": different / size,
        "all_distinct": float(different == size and size > 3),
    }


def _sequence_traits(numbers: Sequence[float], size: int, stride: int) -> dict[str, float]:
    """Return the traits of counting if most of `size` values are whole numbers: that they go up, and by one each.
    `stride`: every how manieth value is there."""
    whole = [number for number in numbers if number == int(number)] if len(numbers) * 2 > size else []
    if len(whole) <= 2:
        return {}
    steps = {after - before for before, after in pairwise(whole)}
    return {"counts_up": float(min(steps) > 0), "one_up": float(steps == {float(stride)})}


class _ClassifiedText(NamedTuple):
    """What one text is like."""

    traits: TraitNames
    number: float | None = None  # if it is one


def _classify(text: str) -> _ClassifiedText:
    """Return the traits of one text, which is not empty, and its number if it is one."""
    size, first = len(text), text[0]
    length = _length_trait(size)
    if text.isdecimal() and size <= _MOST_DIGITS:
        number = float(text)
        return _ClassifiedText([length, "integer", *_TRAITS_BY_LENGTH.get(size, ()), *_size_traits(number)], number)
    has_digits = _DIGIT.search(text) is not None
    if has_digits and (first in "+-" or first.isdecimal()):
        if first in "+-" and text[1:].isdecimal() and size <= _MOST_DIGITS + 1:
            number = float(text)
            five_digits = ("five_digits",) if size == 5 else ()
            return _ClassifiedText([length, "integer", *five_digits, *_size_traits(number)], number)
        if _DECIMAL.fullmatch(text):
            return _classify_decimal(text, length)
    return _ClassifiedText([length, *_text_traits(text, has_digits=has_digits)])


def _length_trait(size: int) -> str:
    """Name the trait for a text of this length."""
    if size <= 4:
        return "short"
    return "middle" if size <= 15 else "long"


def _classify_decimal(text: str, length: str) -> _ClassifiedText:
    """Return the traits of a text with a decimal number, and the number unless its thousands are grouped. `length`: the
    trait of its length."""
    plain = text.replace(",", ".")
    try:
        number = float(plain)
    except ValueError:
        return _ClassifiedText([length, "decimal"])
    traits = [length, "decimal", *_size_traits(number)]
    if _MOST_LATITUDE < abs(number) <= _MOST_LONGITUDE:
        traits.append("over_90")
    if len(plain.rpartition(".")[2]) >= 4:
        traits.append("fine")
    return _ClassifiedText(traits, number)


def _size_trait(size: float) -> str:
    """Name the trait for a number this far from zero."""
    if size <= 20:
        return "up_to_20"
    if size <= 200:
        return "up_to_200"
    return "up_to_9999" if size <= 9999 else "large"


def _size_traits(number: float) -> TraitNames:
    """Return the traits of a number: how large it is, and whether it may be a year or an angle."""
    size = abs(number)
    traits = [_size_trait(size)]
    if 1900 <= number <= 2100:
        traits.append("year")
    if number < 0:
        traits.append("negative")
    if size <= _MOST_LONGITUDE:
        traits += ("in_90", "in_180") if size <= _MOST_LATITUDE else ("in_180",)
    return traits


_WORD_TRAITS: Final = ("one_word", "one_word", "two_words", "many_words")  # by how many words a text has


def _text_traits(text: str, *, has_digits: bool) -> TraitNames:
    """Return the traits of a text that is not a plain number: an address, a date, an amount, words."""
    if text[0] in "hHwW" and _URL.fullmatch(text):
        return ["url"]
    if "@" in text and _EMAIL.fullmatch(text):
        return ["email"]
    folded = text.casefold()
    words = folded.replace(",", " ").replace(".", " ").split() if text.isascii() else folded_words(text)
    return [
        *(_digit_traits(text) if has_digits else ()),
        *_form_traits(text, folded),
        *_letter_traits(text, has_digits=has_digits),
        _WORD_TRAITS[min(len(words), 3)],
        *_vocabulary_traits(folded, words),
    ]


def _digit_traits(text: str) -> TraitNames:
    """Return the forms (date, phone number, postcode …) that a text with digits has as a whole."""
    first = text[0]
    forms = _AFTER_DIGIT if first.isdecimal() else _AFTER_SIGN if first in "+(" else _AFTER_LETTER
    return [name for name, matches in forms if matches(text)]


def _form_traits(text: str, folded: str) -> TraitNames:
    """Return the other forms that a text has as a whole: an identifier, an amount, yes or no, a leading house
    number."""
    first = text[0]
    traits: TraitNames = []
    if len(text) >= 16 and _HEX.fullmatch(text):
        traits.append("hex")
    if (first in "-($€£¥" or text[-1] in "$€£¥RDF") and _MONEY.fullmatch(text):
        traits.append("money")
    if len(text) < 6 and folded in TRUTHS:
        traits.append("truth")
    if first.isdigit() and sum(map(str.isalpha, text)) > 1:
        traits.append("leading_number")
    return traits


def _letter_traits(text: str, *, has_digits: bool) -> TraitNames:
    """Return the traits for whether a text has letters or only signs, and how it is capitalised."""
    traits: TraitNames = []
    has_letters = text.isalpha() or any(map(str.isalpha, text))
    if has_letters and not has_digits and (text.isascii() or not any(map(str.isdigit, text))):
        traits.append("words_only")
    elif not has_letters and not text.isalnum():
        traits.append("signs")
    if text.isupper():
        traits.append("upper")
    if text.istitle():
        traits.append("title")
    return traits


def _vocabulary_traits(folded: str, words: Sequence[str]) -> set[str]:
    """Return the vocabularies (countries, streets …) that a casefolded text or one of its words is in."""
    known = _vocabularies_by_word()
    traits = {name for word in words if word in known for name in known[word]}
    if folded in vocabulary("region"):
        traits.add("vocabulary_region")
    if words and words[-1].endswith(_STREET_ENDINGS):
        traits.add("vocabulary_street")
    return traits


@cache
def _vocabularies_by_word() -> Mapping[str, tuple[str, ...]]:
    """Index words by the vocabularies that have them, once per process; regions are known by their whole names only."""
    traits_by_word: dict[str, tuple[str, ...]] = {}
    for name in VOCABULARIES:
        for word in vocabulary(name) if name != "region" else ():
            traits_by_word[word] = (*traits_by_word.get(word, ()), f"vocabulary_{name}")
    return traits_by_word


class ClassWeights(NamedTuple):
    """The linear model from traits to classes of values, laid out to be added up trait by trait."""

    classes: tuple[str, ...]
    starts: tuple[float, ...]  # what each class starts with
    by_trait: tuple[tuple[float, ...], ...]  # for each of TRAITS: the weight of each class


def class_weights(classes: Mapping[str, Sequence[float]]) -> ClassWeights:
    """Lay out the weights of `matcher.json`; `classes`: for each class what it starts with, then the weights of
    TRAITS."""
    starts, *by_trait = zip(*classes.values(), strict=True)
    return ClassWeights(tuple(classes), starts, tuple(by_trait))


def class_log_odds(traits: Sequence[float] | None, weights: ClassWeights) -> dict[str, float]:
    """Return for each class of values the log-odds that the linear model gives a column with these traits, against the
    average column; empty without traits."""
    if traits is None:
        return {}
    log_odds = list(weights.starts)
    for amount, class_weights in zip(traits, weights.by_trait, strict=True):
        if amount == 1.0:
            log_odds = list(map(add, log_odds, class_weights))
        elif amount:
            log_odds = [s + w * amount for s, w in zip(log_odds, class_weights, strict=True)]
    highest = max(log_odds)
    average = highest + log(sum([exp(s - highest) for s in log_odds]) / len(log_odds))
    return {name: max(_LEAST_LOG_ODDS, s - average) for name, s in zip(weights.classes, log_odds, strict=True)}
