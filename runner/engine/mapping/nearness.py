"""How near a column is to each field where nothing is plain: rare words in common, abbreviations, allowed values.

Fields are looked up as a search engine looks up pages. A word that few fields have counts more than one that many have
(`laterality` more than `tumor`), words match when one is the other cut off, abbreviated or inflected (`Loc`, `Chk`,
`pathological`), and a value counts as far as its words are those of a field's allowed values. `evidence` turns nearness
into log-odds that order the runners-up, but are never enough to map a column.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log, sqrt
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.spelling import LETTERS_OR_DIGITS, normalized
from runner.engine.mapping.knowledge import is_word, similar_to, usual_spelling

LEAST_NEARNESS: Final = 0.2  # nearness that counts
_MOST_NAMES: Final = 8  # of a field that are compared
_MOST_ALLOWED: Final = 1000  # values of a field: of more, the words say little
_MOST_OF_ALL_FIELDS: Final = 50_000  # values of all fields that are compared
_VALUES_COMPARED: Final = 40  # values of a column that are compared
_LETTERS_COMPARED: Final = 200  # letters of a value
_WORDS_COMPARED: Final = 10  # of a header, a name or a value
# A word leads to the fields that have it, if these are at most a share of all, or so many; but never to more than most.
_LEADING_SHARE: Final = 0.1
_LEADING_ANYWAY: Final = 40
_MOST_LEADING: Final = 100
_MOST_COMPARED: Final = 400  # names with a word that many fields have
_LITTLE_WORDS: Final = frozenset(
    {"the", "of", "a", "an", "and", "or", "for", "in", "on", "to", "at", "by", "is", "with", "as", "per", "from"}
    | {"was", "are", "be", "which", "that", "this", "it", "its", "his", "her", "their", "when", "whether", "if"}
)
_WEIGHT_OF_LITTLE_WORD: Final = 0.3  # what such a word counts
_FIELDS_WITH_UNSEEN_WORD: Final = 0.7  # fields that have a word which none has: it is rarer than what one has
_MISSED: Final = 0.5  # what a word counts that only one side has
_UNTOLD: Final = 0.25  # what a word of a description counts that the header lacks
# How much a word counts that is not the same.
_SAME_MEANING: Final = 0.95
_WEIGHT_OF_CUT: Final = 0.85
_WEIGHT_OF_SHORT_CUT: Final = 0.7
_WEIGHT_OF_SIMILAR: Final = 0.7
_WEIGHT_OF_ABBREVIATION: Final = 0.6
_WEIGHT_OF_INITIALS: Final = 0.95
_LEAST_STEM: Final = 4  # letters that inflected words share
_LONGEST_ENDING: Final = 4  # letters of an ending
_VOWELS: Final = frozenset("aeiou")


class Near(NamedTuple):
    """How near a column is to a field, by what: each from 0 to 1."""

    words: float = 0.0  # of the header and the field's names
    values: float = 0.0  # and its allowed values
    described: float = 0.0  # words of the header and the field's description


class Nearness:
    """The fields of a manifest, to find those that a column is near to."""

    def __init__(self, fields: Sequence[Field], allowed: Sequence[Collection[Any] | None]) -> None:
        """Index the fields' names, descriptions and allowed values by word. `allowed`: by field, None where any value
        is."""
        names = [(n, tokens(name)) for n, field in enumerate(fields) for name, _ in field.names[:_MOST_NAMES]]
        self._names = _TextIndex(names, len(fields), _MISSED)
        described = [(n, _content(field.description)) for n, field in enumerate(fields) if field.description]
        self._descriptions = _TextIndex(described, len(fields), _UNTOLD) if described else None
        self._values = _ValueIndex(allowed) if any(allowed) else None

    def of(self, headers: Sequence[str], texts: Sequence[str]) -> dict[int, Near]:
        """Measure how near a column with such headers and values is to each field; fields that it is hardly near to are
        left out."""
        words: dict[int, float] = {}
        for header in headers:
            for n, share in self._names.like(header).items():
                words[n] = max(words.get(n, 0.0), share)
        described = self._descriptions.like(headers[0]) if self._descriptions and headers else {}
        values = self._values.like(texts) if self._values else {}
        near_by_field = {
            n: Near(words.get(n, 0.0), values.get(n, 0.0), described.get(n, 0.0))
            for n in words.keys() | values.keys() | described.keys()
        }
        return {n: near for n, near in near_by_field.items() if max(near) >= LEAST_NEARNESS}


class _TextIndex:
    """Short texts of fields (their names, or their descriptions), found by the words of a header."""

    def __init__(self, texts: Sequence[tuple[int, tuple[str, ...]]], fields: int, missed: float) -> None:
        """Index texts by word. `texts`: the words of each, with its field; `fields`: how many there are; `missed`: what
        a word counts that a header lacks."""
        self._owners = [n for n, _ in texts]  # by text: its field
        self._words = [words for _, words in texts]  # by text
        self._missed = missed
        self._texts_by_word: dict[str, list[int]] = {}  # word -> texts
        self._initials: dict[str, list[int]] = {}  # first letters of all words -> texts
        for at, words in enumerate(self._words):
            for word in words:
                self._texts_by_word.setdefault(word, []).append(at)
            if len(words) > 1:
                self._initials.setdefault(_initials(words), []).append(at)
        owners = {word: {self._owners[at] for at in having} for word, having in self._texts_by_word.items()}
        self._rarity = {word: rarity(word, len(fields_with_it), fields) for word, fields_with_it in owners.items()}
        self._leading = frozenset(
            word for word, with_it in owners.items() if len(with_it) <= _most_fields_of_word(fields)
        )
        self._rarest = rarity("", _FIELDS_WITH_UNSEEN_WORD, fields)
        self._weights = [sum([self._rarity[word] for word in words]) for words in self._words]  # by text
        self._spellings = _SpellingIndex(self._texts_by_word)

    def like(self, header: str) -> dict[int, float]:
        """Score each field by the weight of the words that its texts share with a header, over the weight of all their
        words."""
        asked_words = tokens(header)
        matched = {word: self._spellings.of(word) for word in asked_words}
        by_text = {text: self._overlap(text, matched) for text in self._texts_with(matched)}
        by_text |= {text: max(score, by_text.get(text, 0.0)) for text, score in self._by_initials(asked_words)}
        by_field: dict[int, float] = {}
        for text, score in by_text.items():
            by_field[self._owners[text]] = max(score, by_field.get(self._owners[text], 0.0))
        return by_field

    def _texts_with(self, matched: Mapping[str, Mapping[str, float]]) -> set[int]:
        """Return the texts worth comparing with a header: those with a word that few fields have, or else some with the
        rarest one.

        `matched`: as in `_overlap`.
        """
        words = {other for others in matched.values() for other in others}
        if leading := words & self._leading:
            return {at for word in leading for at in self._texts_by_word[word]}
        rarest = min((self._texts_by_word[word] for word in words), key=len, default=[])
        return set(rarest[:_MOST_COMPARED])

    def _by_initials(self, header_words: tuple[str, ...]) -> Iterator[tuple[int, float]]:
        """Yield texts that a header abbreviates to initials (`LVI`), or that abbreviate the header (`Body Mass Index`),
        each with its score."""
        if len(header_words) == 1 and len(header_words[0]) > 1:
            yield from ((at, _WEIGHT_OF_INITIALS) for at in self._initials.get(header_words[0], ()))
        if len(header_words) > 2 and (short := _initials(header_words)) in self._texts_by_word:
            yield from (
                (at, _WEIGHT_OF_INITIALS * self._rarity[short] / self._weights[at]) for at in self._texts_by_word[short]
            )

    def _overlap(self, text: int, matched: Mapping[str, Mapping[str, float]]) -> float:
        """Divide the weight of the words that a text and a header share by the weight of all their words, from 0 to 1.

        `matched`: the header's words, each with the words of fields that may be the same and how much each counts.
        """
        shared: dict[str, float] = {}
        lacking = 0.0
        for word, likenesses in matched.items():
            likeness, twin = max(
                [(likenesses[own_word], own_word) for own_word in self._words[text] if own_word in likenesses],
                default=(0.0, ""),
            )
            if likeness > shared.get(twin, 0.0):
                shared[twin] = likeness
            lacking += (1 - likeness) * self._rarity.get(
                word, _WEIGHT_OF_LITTLE_WORD if word in _LITTLE_WORDS else self._rarest
            )
        common = sum([self._rarity[word] * likeness for word, likeness in shared.items()])
        return common / (common + self._missed * (self._weights[text] - common) + _MISSED * lacking) if common else 0.0


class _SpellingIndex:
    """Words of fields, found by other spellings of them; remembers what it found."""

    def __init__(self, words: Iterable[str]) -> None:
        """Index the words of fields by first letter and by usual spelling."""
        self._starting: dict[str, list[str]] = {}  # first letter -> words
        self._meaning: dict[str, list[str]] = {}  # a word in its usual spelling -> words
        for word in words:
            self._starting.setdefault(word[0], []).append(word)
            for meant in usual_spelling(word):
                self._meaning.setdefault(meant, []).append(word)
        self._known: dict[str, dict[str, float]] = {}

    def of(self, word: str) -> Mapping[str, float]:
        """Return the indexed words that may be the same word, each with how much it then counts; remembered by word."""
        if word not in self._known:
            self._known[word] = self._find(word)
        return self._known[word]

    def _find(self, word: str) -> dict[str, float]:
        """Find the indexed words that may be the same word: cut off, abbreviated, inflected, spelled otherwise or
        synonymous; each with how alike it is."""
        if word in _LITTLE_WORDS:
            return {word: 1.0} if word in self._starting.get(word[0], ()) else {}
        likenesses: dict[str, float] = {}
        for other in self._starting.get(word[0], ()):
            if likeness := _word_likeness(word, other):
                likenesses[other] = likeness
        usual = usual_spelling(word)
        for meant in usual:
            for other in self._meaning.get(meant, ()):
                likenesses[other] = max(
                    likenesses.get(other, 0.0), _SAME_MEANING if len(usual) == 1 else _WEIGHT_OF_CUT
                )
            for akin in similar_to(meant):
                for other in self._meaning.get(akin, ()):
                    likenesses.setdefault(other, _WEIGHT_OF_SIMILAR)
        return likenesses


@lru_cache(maxsize=32768)
def _word_likeness(a: str, b: str) -> float:
    """Measure, for two words with the same first letter, how much one counts as the other: cut off, inflected or
    without its vowels; 0 for two words of their own."""
    if a == b:
        return 1.0
    if not _LITTLE_WORDS.isdisjoint((a, b)) or a.isdecimal() or b.isdecimal():
        return 0.0
    if _is_whole_word(a) and _is_whole_word(b):
        return 0.0  # two words of their own are the same only by their meaning
    short, long = sorted((a, b), key=len)
    same = next((n for n, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if same == len(short) >= 3:
        return _WEIGHT_OF_CUT if same >= _LEAST_STEM or len(long) <= 8 else _WEIGHT_OF_SHORT_CUT
    if same >= _LEAST_STEM and len(long) - same <= _LONGEST_ENDING:
        return _WEIGHT_OF_CUT
    return (
        _WEIGHT_OF_ABBREVIATION
        if len(short) + 2 <= len(long) <= 3 * len(short) <= 15 and _is_skeleton(short, long)
        else 0.0
    )


def _is_whole_word(word: str) -> bool:
    """Whether a word is known, so that it is neither cut off nor abbreviated."""
    return is_word(word) or (word.endswith("s") and is_word(word[:-1]))


def _is_skeleton(short: str, long: str) -> bool:
    """Whether a word is another one without its vowels and perhaps some letters more: `chk` and `check`."""
    letters = iter(long)
    return _VOWELS.isdisjoint(short[1:]) and all(letter in letters for letter in short)


class _ValueIndex:
    """The allowed values of fields, found by the words of a column's values."""

    def __init__(self, allowed: Sequence[Collection[Any] | None]) -> None:
        """Index the words of the fields' allowed values; fields with very many values are left out."""
        having: dict[str, list[int]] = {}  # word of a value -> fields
        remaining_values = _MOST_OF_ALL_FIELDS
        indexed_fields = 0
        for n, values in enumerate(allowed):
            if not values or len(values) > min(_MOST_ALLOWED, remaining_values):
                continue
            remaining_values -= len(values)
            indexed_fields += 1
            for word in {word for value in values for word in _value_words(str(value))}:
                having.setdefault(word, []).append(n)
        self._rarity = {word: rarity(word, len(fields), indexed_fields) for word, fields in having.items()}
        self._rarest = rarity("", _FIELDS_WITH_UNSEEN_WORD, indexed_fields)
        self._texts_by_word = {
            word: fields for word, fields in having.items() if len(fields) <= _most_fields_of_word(indexed_fields)
        }

    def like(self, texts: Sequence[str]) -> dict[int, float]:
        """Measure for each field how far a column's values consist of rare words of its allowed values, from 0 to 1."""
        counts = Counter(texts[:_VALUES_COMPARED])
        sums: dict[int, float] = {}
        for text, count in counts.items():
            for n, share in self._like(text).items():
                sums[n] = sums.get(n, 0.0) + sqrt(count) * share
        all_counts = sum(map(sqrt, counts.values()))
        return {n: share / all_counts for n, share in sums.items()}

    def _like(self, text: str) -> dict[int, float]:
        """Measure for each field how much one value is like its allowed values, from 0 to 1."""
        words = _value_words(text)
        total_rarity = sum([self._rarity.get(word, self._rarest) for word in words])
        shared_rarity: dict[int, float] = {}
        for word in words:
            for n in self._texts_by_word.get(word, ()):
                shared_rarity[n] = shared_rarity.get(n, 0.0) + self._rarity[word]
        return {n: min(1.0, shared) * sqrt(min(1.0, shared / total_rarity)) for n, shared in shared_rarity.items()}


@lru_cache(maxsize=8192)
def _value_words(text: str) -> tuple[str, ...]:
    """Return the words of a value; bare numbers and single letters are none."""
    words = normalized(text[:_LETTERS_COMPARED]).split()[:_WORDS_COMPARED]
    return tuple(dict.fromkeys(word for word in words if len(word) > 1 and not word.isdecimal()))


@lru_cache(maxsize=16384)
def tokens(text: str) -> tuple[str, ...]:
    """Return the different words of a header or name as they are written, numbers apart."""
    return tuple(dict.fromkeys(LETTERS_OR_DIGITS.findall(normalized(text))))[:_WORDS_COMPARED]


def _initials(words: Iterable[str]) -> str:
    """Return the first letters of words."""
    return "".join([word[0] for word in words])


def _most_fields_of_word(fields: int) -> int:
    """Return how many of so many fields may share a word that leads to them: that bounds what a column costs."""
    return min(_MOST_LEADING, max(_LEADING_ANYWAY, round(_LEADING_SHARE * fields)))


def rarity(word: str, having: float, fields: int) -> float:
    """Return how much a word counts that `having` of so many fields have: 1 if none has it, less the more of them have
    it; 0 without fields."""
    much = log(1 + fields / having) / log(1 + fields / _FIELDS_WITH_UNSEEN_WORD) if fields else 0.0
    return _WEIGHT_OF_LITTLE_WORD * much if word in _LITTLE_WORDS else much


def _content(description: str) -> tuple[str, ...]:
    """Return the first different words of a description's first sentence, but for little ones such as `the`."""
    words = LETTERS_OR_DIGITS.findall(normalized(first_sentence(description)))
    return tuple(dict.fromkeys(word for word in words if word not in _LITTLE_WORDS))[: 2 * _WORDS_COMPARED]


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, which may go on about exceptions and sources."""
    return text.partition(". ")[0].partition(";")[0]
