"""Units, currencies and scales that a text states: `Weight (lb)`, `price_eur`, `Budget in TEUR`.

`measures.json` has their spellings, as headers are normalized, with `_` between words. Those in `short` are other words
too, and count only where a unit is written: at the end, at the end of brackets, behind "in" or "per".
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from runner.engine.common.patterns import LazyPattern
from runner.engine.common.spelling import normalized

_LONGEST_TEXT: Final = 200  # characters of a text that are read
_WORDS_OF_SPELLING: Final = 4  # of the longest spelling
_LONGEST_UNIT: Final = 16  # characters of a unit
_BRACKETS: Final = re.compile(r"[(\[]([^()\[\]]{1,40})[)\]]")
_POWER: Final = LazyPattern(r"\b10\s?(?:(?:\^|\*\*)\s?([3-9])|([\u00b3\u2074-\u2079]))")
_TIMES: Final = LazyPattern(r"[x\u00d7*] ?(?=1[., ]?000)", re.IGNORECASE)
_RAISED_DIGITS: Final = {"\u00b3": "3"} | {chr(0x2070 + n): str(n) for n in range(4, 10)}
_EAST_ASIAN: Final = LazyPattern(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+")
_SCALE_OF_PREFIX: Final = {"t": 3, "k": 3, "mil": 3, "m": 6, "mm": 6, "mn": 6, "mio": 6, "b": 9, "bn": 9, "mrd": 9}
_SCALE_OF_ASIDE: Final = {
    "k": 3,
    "K": 3,
    "mil": 3,
    "M": 6,
    "MM": 6,
    "mn": 6,
    "Mn": 6,
}  # in brackets: metres are no millions
_ZEROS: Final = re.compile(r"(?:000)+s?")
PERCENT: Final = "percent"


class Measure(NamedTuple):
    """What a text states beside the name of a thing."""

    units: Mapping[str, frozenset[str]]  # by dimension; behind "per" the dimension starts with it
    currencies: frozenset[str]  # those that it may mean: a $ is one of several
    scale: int | None  # the power of ten that it counts in

    def contradicts(self, other: "Measure") -> str:
        """Name what the two measures state differently, "unit" or "currency"; empty if nothing."""
        for dimension in self.units.keys() & other.units.keys():
            if self.units[dimension].isdisjoint(other.units[dimension]):
                return "unit"
        if self.currencies and other.currencies:
            return "currency" if self.currencies.isdisjoint(other.currencies) else ""
        money, share = (self, other) if self.currencies else (other, self)
        return "unit" if money.currencies and PERCENT in share.units and PERCENT not in money.units else ""


NOTHING: Final = Measure({}, frozenset(), None)


class _MeasureEntry(NamedTuple):
    """What one spelling may mean."""

    units: tuple[tuple[str, str], ...] = ()  # dimensions and units
    currencies: frozenset[str] = frozenset()
    scale: int | None = None


class _Measures(NamedTuple):
    """measures.json, laid out to be looked up."""

    entries: Mapping[str, _MeasureEntry]  # by spelling
    short: frozenset[str]  # spellings that are other words too
    signs: Mapping[str, str]  # a currency's sign -> a word for it
    sign: re.Pattern[str]  # any of these signs
    per: frozenset[str]  # words that mean "per"


@cache
def _measures() -> _Measures:
    """Load and index measures.json, the spellings of units, currencies and scales, once per process."""
    raw: dict[str, Any] = json.loads((Path(__file__).parent / "measures.json").read_bytes())
    units: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(raw["percent"].split(), ((PERCENT, PERCENT),))
    for dimension, spellings in raw["units"].items():
        for unit, text in spellings.items():
            for alias in text.split():
                units[alias] = (*units.get(alias, ()), (dimension, unit))
    entries = {alias.replace("_", " "): _MeasureEntry(spellings) for alias, spellings in units.items()}
    signs: dict[str, str] = {}
    for codes, text in (*raw["currencies"].items(), *raw["shared"].items()):
        word = next((alias for alias in text.split() if alias.isalpha()), codes[:3].casefold())
        for alias in text.split():
            if alias[-1].isalnum():
                known = entries.get(alias, _MeasureEntry())
                entries[alias] = known._replace(currencies=known.currencies | frozenset(codes.split()))
            else:
                signs[alias] = word
    for power, text in raw["scales"].items():
        for alias in text.split():
            spelled = alias.replace("_", " ")
            entries[spelled] = entries.get(spelled, _MeasureEntry())._replace(scale=int(power))
    sign = re.compile(
        "|".join(re.escape(sign_text) for sign_text in sorted(signs, key=len, reverse=True)), re.IGNORECASE
    )
    return _Measures(entries, frozenset(raw["short"].split()), signs, sign, frozenset(raw["per"].split()))


@lru_cache(maxsize=4096)
def measure(text: str) -> Measure:
    """Parse the units, currencies and scale that a header or name states; NOTHING if it states none. Cached by text."""
    words = _spelled_words(text)
    asides = [aside_words for aside in _BRACKETS.findall(text) if (aside_words := _spelled_words(aside))]
    ends = {words[-1]} if len(words) > 1 else set[str]()  # where a short spelling counts
    ends.update(aside_words[-1] for aside_words in asides)
    units: dict[str, frozenset[str]] = {}
    currencies: frozenset[str] = frozenset()
    scale: int | None = None
    for entry, run, before in _known_entries(words):
        behind = before in _measures().per
        if run in _measures().short and not (behind or before == "in" or run in ends):
            continue
        for dimension, unit in entry.units:
            key = f"per {dimension}" if behind else dimension
            units[key] = units.get(key, frozenset()) | {unit}
        currencies |= entry.currencies
        if scale is None and not behind and not before.isdecimal():  # 5 million are an amount
            scale = entry.scale
    if scale is None:
        scale = 3 if words[-2:] == ["in", "k"] else _scale_written_alone(text)
    return Measure(units, currencies, scale) if units or currencies or scale is not None else NOTHING


_UNIT_LIKE: Final = LazyPattern(r"[(\[]?(?=[^\s]*[/%\u00b0\u00b5\u03bc\u00b2\u00b3\u2126])[^\s\d][^\s]{0,9}[)\]]?")


def is_unit(text: str) -> bool:
    """Whether a text, such as the cell below a header, is nothing but a unit: `kg`, `mg/l`, `(EUR)`, `µS/cm`."""
    if len(text) > _LONGEST_UNIT or not text.strip():
        return False
    if _UNIT_LIKE.fullmatch(text.strip()):
        return True
    words = _spelled_words(text)
    known_entries = [entry for entry, _, _ in _known_entries(words)]
    known_words = sum(len(run.split()) for _, run, _ in _known_entries(words)) + sum(
        w in _measures().per for w in words
    )
    return bool(known_entries) and known_words >= len(words)


def measure_of(texts: Iterable[str]) -> Measure:
    """Merge what several names of one field state: all units and currencies, and the first scale."""
    measures = [text_measure for text in texts if (text_measure := measure(text)) is not NOTHING]
    if len(measures) < 2:
        return measures[0] if measures else NOTHING
    units: dict[str, frozenset[str]] = {}
    for text_measure in measures:
        for dimension, names in text_measure.units.items():
            units[dimension] = units.get(dimension, frozenset()) | names
    scale = next((text_measure.scale for text_measure in measures if text_measure.scale is not None), None)
    return Measure(units, frozenset[str]().union(*(text_measure.currencies for text_measure in measures)), scale)


def _spelled_words(text: str) -> list[str]:
    """Normalize a text to words for `measure` and `is_unit`, with signs of currencies and powers of ten spelled out."""
    text = text[:_LONGEST_TEXT].replace("/", " per ")
    if "1" in text:
        text = _POWER.sub(lambda m: f" power {m[1] or _RAISED_DIGITS[m[2]]} ", text)
        text = _TIMES.sub(" times ", text)
    known = _measures()
    if not text.isascii() or "$" in text:
        text = known.sign.sub(lambda m: f" {known.signs[m[0].casefold()]} ", text)
    return normalized(text).split()


def _known_entries(words: list[str]) -> Iterator[tuple[_MeasureEntry, str, str]]:
    """Yield the runs of words that measures.json knows, the longest at each place: what the run may mean, its words,
    and the word before it."""
    known = _measures().entries
    at = 0
    while at < len(words):
        entry, size = _read_scale(words, at)
        if entry is None:
            longest = range(min(_WORDS_OF_SPELLING, len(words) - at), 0, -1)
            sized = ((known_entry, n) for n in longest if (known_entry := known.get(" ".join(words[at : at + n]))))
            entry, size = next(sized, (None, size))  # a word that is not known, too, is passed over
        before = words[at - 1] if at else ""
        if entry is not None:
            following = _scale_after_currency(words, at + size) if entry.currencies and entry.scale is None else None
            if following is not None:  # € m, USD 000
                entry, size = entry._replace(scale=following, units=()), size + 1
            yield entry, " ".join(words[at : at + size]), before
        at += size


def _scale_after_currency(words: list[str], at: int) -> int | None:
    """Return the power of ten that the word behind a currency means (`€ m`, `USD 000`); None if it is not a scale."""
    if at >= len(words):
        return None
    return _SCALE_OF_PREFIX.get(words[at], 3 if _ZEROS.fullmatch(words[at]) else None)


# Words of a language that are a prefix and the code of a currency as well: ARS, ALL.
_ORDINARY: Final = frozenset({"mars", "tars", "mall", "ball", "tall"})


class _ReadWords(NamedTuple):
    """What some words of a text mean."""

    entry: _MeasureEntry | None  # None: nothing
    size: int  # words that were read


def _read_scale(words: list[str], at: int) -> _ReadWords:
    """Read a scale at position `at` that is written with digits or with a currency: `TEUR`, `k €`, `1.000 €`, `'000`,
    `10^6`; None if none starts here."""
    known, word, rest = _measures().entries, words[at], words[at + 1 :]
    if (word in known and word not in _SCALE_OF_PREFIX) or " ".join(words[at : at + 2]) in known:
        return _ReadWords(None, 1)
    if _ZEROS.fullmatch(word) and not (at and words[at - 1].isdecimal()):
        groups = 2 if rest[:1] == ["000"] else 1
        return _ReadWords(_MeasureEntry(scale=word.count("0") * groups), groups)
    if word == "power" and rest and rest[0].isdecimal():
        return _ReadWords(_MeasureEntry(scale=int(rest[0])), 2)
    if word in {"1", "1000", "1000000"}:
        return _read_thousand(words, at)
    return _with_prefix(word, rest)


def _with_prefix(word: str, rest: list[str]) -> _ReadWords:
    """Read a currency that has a prefix, in two words or one: `k €`, `TEUR`; None if there is none. `rest`: the words
    behind `word`."""
    next_currencies = _currencies(rest[0]) if rest and word not in {"b", "mm"} else None
    for prefix, power in _SCALE_OF_PREFIX.items():
        if word == prefix and next_currencies:
            return _ReadWords(_MeasureEntry(currencies=next_currencies, scale=power), 2)
        if word in _ORDINARY or not word.startswith(prefix):
            continue
        if currencies := _currencies(word[len(prefix) :]):
            return _ReadWords(_MeasureEntry(currencies=currencies, scale=power), 1)
    return _ReadWords(None, 1)


def _currencies(word: str) -> frozenset[str]:
    """Return the currencies that a word may stand for; none if it is not one."""
    entry = _measures().entries.get(word)
    return entry.currencies if entry is not None else frozenset()


def _read_thousand(words: list[str], at: int) -> _ReadWords:
    """Read the scale of `x 1.000`, `in 1.000` or `1.000 €`; None for a 1000 by itself."""
    end = at + 1
    while words[at] == "1" and end < len(words) and words[end] == "000":
        end += 1
    zeros = "".join(words[at:end]).count("0")
    money = _measures().entries.get(words[end]) if end < len(words) else None
    is_stated = (at and words[at - 1] in {"times", "in"}) or (money is not None and money.currencies)
    return _ReadWords(_MeasureEntry(scale=zeros) if zeros and is_stated else None, end - at)


def _scale_written_alone(text: str) -> int | None:
    """Read a scale in brackets of its own, or at the end of a run of signs without blanks: `(K)`, `(1.000)`, 単位千円;
    return the power of ten, None if there is none."""
    for aside in _BRACKETS.findall(text):
        if (power := _SCALE_OF_ASIDE.get(aside.strip())) is not None:
            return power
        if aside.strip() in {"1000", "1.000", "1,000", "1 000", "1'000"}:
            return 3
    for run in () if text.isascii() else _EAST_ASIAN.findall(text):
        for size in range(min(4, len(run)), 1, -1):
            if (entry := _measures().entries.get(run[-size:])) and entry.scale:
                return entry.scale
    return None
