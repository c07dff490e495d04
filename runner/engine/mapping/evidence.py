"""What speaks for each pair of column and field, in numbers that can be added: log-odds.

Four sources: the header against the field's declared names, general knowledge of what headers mean, what was learnt,
and the values. A small linear model (`matcher.json`, trained by tests/bench/train_mapping.py on made-up tables) weighs
them. The sum for a field against 0 for "no field" and against the sums of the other fields is a probability.
"""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import log2
from operator import mul
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from runner.engine.fields import Field
from runner.engine.mapping import knowledge
from runner.engine.mapping.headers import EXACT, SAME_WORDS, akin, bare_words, coverage, likeness, words
from runner.engine.mapping.profile import by_number, chances, profile
from runner.engine.mapping.recall import Likely, Recall
from runner.engine.mapping.spelling import joined, normalized
from runner.engine.values.convert import Converter, fold, text_of

GOOD: Final = 0.8
POOR: Final = 0.3
FEWEST: Final = 3
FEW: Final = 6  # values that show half of what many would
TESTED: Final = 60  # values that a type is tried on
LEAST_LIKENESS: Final = 0.2
PART: Final = 0.95  # the last part of a stacked header says a little less than the whole
MOST_COMPARISONS: Final = 200_000
PER_POINT: Final = 12.0  # log-odds of a point that a Python rule gives
_MOST: Final = 3.0  # log-odds that letters or values alone may give
_KINDS: Final = ("name", "label", "synonym")
_PARTS: Final = 4  # ranks of last parts come after those of whole headers
_PROBES: Final = ("x", "Abc def", "17", "2026-01-31", "a.b@c.de", "M-1")
_CLASSES: Final[Mapping[str, frozenset[str]]] = {  # what values of a declared type look like
    "email": frozenset({"email"}),
    "url": frozenset({"url"}),
    "phone": frozenset({"phone"}),
    "date": frozenset({"date"}),
    "datetime": frozenset({"date"}),
    "time": frozenset({"time"}),
}
_RARE: Final = frozenset({"email", "url", "phone"})
_STRONG: Final = frozenset({"date", "datetime", "time", "boolean"})
LIKE: Final = "memory:like"
NAMES: Final = (
    "prior", "exact", "same_words", "nearly_same", "similar_words", "generic_differs", "covers", "inside", "alike",
    "alike_squared", "nothing_said", "meaning", "meaning_plain", "other_meaning", "foreign", "technical",
    "confirmed", "confirmed_often", "confirmed_other", "said", "said_other", "near", "near_squared", "near_other",
    "letters", "letters_lead", "values", "values_against", "type_rare", "type_strong", "type_weak", "type_against",
    "pattern", "pattern_against", "allowed", "allowed_against", "neighbour",
)  # fmt: skip
# What the artifact calls a contribution, by the numbers that it is made of.
_RULES: Final = {
    "prior": "prior", "exact": "header", "same_words": "header", "nearly_same": "header", "similar_words": "header",
    "generic_differs": "header", "covers": "header", "inside": "header", "alike": "header", "alike_squared": "header",
    "nothing_said": "header", "meaning": "meaning", "meaning_plain": "meaning", "other_meaning": "other meaning",
    "foreign": "other meaning", "technical": "other meaning", "confirmed": "memory:header",
    "confirmed_often": "memory:header", "confirmed_other": "memory:other field", "said": "memory:person",
    "said_other": "memory:person", "near": "memory:like", "near_squared": "memory:like", "near_other": "memory:like",
    "letters": "memory:letters", "letters_lead": "memory:letters", "values": "values", "values_against": "values",
    "type_rare": "type", "type_strong": "type", "type_weak": "type", "type_against": "type", "pattern": "pattern",
    "pattern_against": "pattern", "allowed": "allowed", "allowed_learnt": "memory:spellings",
    "allowed_against": "allowed", "neighbour": "neighbours",
}  # fmt: skip


class Sample:
    """The first values of a column, and what each type makes of them, worked out once."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = [v for v in values if v is not None]
        self.texts = [t for t in map(text_of, self.values) if t.strip()]
        self.blank = 1 - len(self.texts) / len(values) if values else 1.0
        self._fits: dict[Any, float | None] = {}
        self._chances: dict[str, float] | None = None

    def fit(self, field: Field) -> float | None:
        """The share of values that are of the field's type; None where there is no evidence."""
        key = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        if key not in self._fits:
            self._fits[key] = self._fit(field)
        return self._fits[key]

    def chances(self) -> Mapping[str, float]:
        """How likely each class of values is, as log-odds against the average column."""
        if self._chances is None:
            size = len(self.texts)
            seen = {} if size < FEWEST else chances(profile(self.texts, self.blank), model()["values"])
            self._chances = {name: odds * size / (size + FEW) for name, odds in seen.items()}
        return self._chances

    def _fit(self, field: Field) -> float | None:
        values = self.values[:TESTED]
        if not values:
            return None
        out, bad = Converter(field, values).convert(values)
        present = sum(v is not None for v in out)
        return (present - len(bad)) / present if present else None


class ColumnIn(NamedTuple):
    """A column of a source table as mapping sees it."""

    position: int  # 0-based within the table
    headers: tuple[str, ...]  # the whole name, then its last part where headers are stacked; none if generated
    sample: Sample
    letters: str = ""


class Contribution(NamedTuple):
    rule: str
    delta: float  # in log-odds; a Python rule's own points until they are weighed


class Evidence(NamedTuple):
    """What speaks for one pair of column and field."""

    told: Callable[[], tuple[Contribution, ...]]  # what the artifact says about it
    exact: int | None  # rank of a header that is one of the field's names; None for any other header
    header: float  # how alike header and field are, 0 to 1
    name: str  # of the field's names the one most like the header
    values: float
    rules: float  # points of Python rules
    contradicted: bool  # the values are plainly not of the field's type
    confirmed: bool  # this very header was confirmed for this field
    plain: bool  # in general the header plainly means this
    total: float  # log-odds against "no field"


Detected = Mapping[int, Mapping[str, Sequence[Contribution]]]  # column index -> field -> what rules said
Allowed = Callable[[Field], frozenset[Any] | None]
Table = dict[tuple[int, int], Evidence]
EMPTY: Final = Recall()


@cache
def model() -> dict[str, Any]:
    """The weights, from a file of our own."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / "matcher.json").read_bytes())
    loaded["pair"]["allowed_learnt"] = loaded["pair"]["allowed"]  # a confirmed spelling is as good as the value
    loaded["values"]["by_number"] = by_number(loaded["values"]["classes"])
    return loaded


def type_fit(sample: Sample, field: Field) -> str | None:
    """Whether values speak for a field's type or plainly against it."""
    if field.type in ("text", "enum", "any") or len(sample.values) < FEWEST:
        return None
    fit = sample.fit(field)
    if fit is None:
        return None
    if fit >= GOOD:
        return "type_rare" if field.type in _RARE else "type_strong" if field.type in _STRONG else "type_weak"
    return "type_against" if fit < POOR else None


def pattern_fit(sample: Sample, field: Field) -> tuple[str, float] | None:
    """A pattern that fits speaks for a field as far as it does not fit just anything."""
    if field.pattern is None or len(sample.texts) < FEWEST:
        return None
    texts = [text_of(v) for v in Converter(field).convert(list(sample.texts[:TESTED]))[0] if v is not None]
    fit = sum(field.pattern.fullmatch(t) is not None for t in texts) / max(1, len(texts))
    if fit >= GOOD:
        loose = sum(field.pattern.fullmatch(p) is not None for p in _PROBES)
        return "pattern", fit * max(0.0, 1 - loose / 3)
    return ("pattern_against", 1.0) if fit < POOR / 2 else None


def allowed_fit(
    sample: Sample, allowed: frozenset[Any] | None, spelled: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, float]:
    """Values that are all among the allowed ones speak for an enum; few different ones speak softly.

    `spelled`: texts that were confirmed to mean one of them. They agree, too, but a bare number or a single letter is
    no reason by itself: any column may hold those.
    """
    if not allowed or len(sample.texts) < FEWEST:
        return {}
    found = [fold(t) for t in sample.texts[:TESTED]]
    own = sum(f in allowed for f in found) / len(found)
    learnt = [f for f in found if f in spelled] if spelled else []
    fit = own + len(learnt) / len(found)
    if fit >= GOOD:
        strength = 1.0 if len({spelled.get(f, f) for f in found}) > 2 else 0.6
        telling = sum(len(f) > 1 and not f.isdecimal() for f in learnt) / len(found)
        return {name: strength * x for name, x in (("allowed", own), ("allowed_learnt", telling)) if x}
    return {"allowed_against": 1.0} if fit < POOR / 2 else {}


class Numbers(NamedTuple):
    """A pair's evidence before it is weighed."""

    values: dict[str, float]
    exact: int | None
    header: float
    name: str
    word: str  # how the header was found to be the field's
    like: str  # the confirmed header that is most like this one


_Named = tuple[int, float, str, str]  # rank, likeness, which of the field's names, what kind of name
_Likeness = tuple[float, str, str, Mapping[str, float]]  # how alike, which name, what kind of name, and in numbers
_UNLIKE: Final[_Likeness] = (0.0, "", "", {})
_FAR: Final = (0.0, "")
_OF_HEADERS: Final = frozenset({"meaning", "confirmed", "said", "near"})


class Weigher:
    """One table's columns against the fields: the numbers of each pair, and their weighed sums."""

    def __init__(
        self, columns: Sequence[ColumnIn], fields: Sequence[Field], allowed: Allowed, recall: Recall = EMPTY
    ) -> None:
        self._columns = columns
        self._fields = fields
        self._recall = recall
        self._allowed = [allowed(f) for f in fields]
        self._index = _index(fields)
        self._stems = _stems(fields)
        self._wide = len(columns) * sum(len(f.names) for f in fields) > MOST_COMPARISONS
        self.concepts = field_concepts(fields)
        self.classes = [field_classes(f, mine) for f, mine in zip(fields, self.concepts, strict=True)]
        self.theirs = {name for mine in self.concepts for name in mine}
        self._having: dict[str, list[int]] = {}  # word -> fields of which a name has it
        self._spelled: dict[str, list[int]] = {}
        for n, field in enumerate(fields):
            for name, _ in field.names:
                self._spelled.setdefault(normalized(name), []).append(n)
                for word in words(name):
                    self._having.setdefault(word, []).append(n)
        self._close: dict[str, list[int]] = {}
        first: dict[object, int] = {}
        self._declared = [first.setdefault(self._declaration(n), n) for n in range(len(fields))]

    def _declaration(self, n: int) -> object:
        """What its values are compared with; the same for fields that are declared alike."""
        field = self._fields[n]
        kind = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        return kind, field.pattern, id(self._allowed[n]) if self._allowed[n] else None, self.classes[n]

    def numbers(self) -> dict[tuple[int, int], Numbers]:
        """Every pair's numbers but for its neighbours."""
        likely = self._recall.likely([c.headers[0] if c.headers else "" for c in self._columns])
        out = {}
        for column, memory in zip(self._columns, likely, strict=True):
            named = self._named(column.headers)
            alike = {} if self._wide else self._alike(column.headers, named)
            meaning = _Meanings(column.headers, self)
            learnt = _Memories(column.headers, self._recall, memory) if len(self._recall) else None
            values = self._values(column.sample)
            for n, field in enumerate(self._fields):
                if n in named:
                    rank, header, name, word = named[n]
                    out[column.position, n] = Numbers({"exact": header, **values[n]}, rank, header, name, word, "")
                    continue
                header, name, word, found = alike.get(n, _UNLIKE)
                found = {**found, **meaning.of(n)}
                like = learnt.add(field.name, found) if learnt is not None else ""
                found |= values[n]
                if not header and not (
                    "meaning" in found or "confirmed" in found or "said" in found or "near" in found
                ):
                    found["nothing_said"] = 1.0
                out[column.position, n] = Numbers(found, None, header, name, word, like)
        return out

    def _alike(self, headers: tuple[str, ...], named: Container[int]) -> dict[int, _Likeness]:
        """Fields that share a word with a header, or one that is like it: how alike they are."""
        near = {n for header in headers for n in self._near(header)}
        out: dict[int, _Likeness] = {}
        for n in sorted(near):
            if n in named:
                continue
            header, name, word = self._likeness(headers, self._fields[n])
            found: dict[str, float] = {}
            if header >= SAME_WORDS * PART:
                found["same_words"] = 1.0
            elif header:
                found["alike"], found["alike_squared"] = header, header * header
                for text in headers[:1]:
                    if how := coverage(bare_words(text), words(name), self._stems):
                        found[how] = 1.0
            out[n] = header, name, word, found
        return out

    def _near(self, header: str) -> Iterator[int]:
        yield from self._spelled.get(normalized(header), ())
        for word in bare_words(header):
            if word not in self._close:
                self._close[word] = [n for other, mine in self._having.items() if akin(word, other) for n in mine]
            yield from self._close[word]

    def _values(self, sample: Sample) -> list[dict[str, float]]:
        """What a column's values say about each field; fields that are declared alike are compared once."""
        seen = sample.chances()
        told: list[dict[str, float]] = []
        for n, (field, like) in enumerate(zip(self._fields, self._declared, strict=True)):
            if like != n:
                told.append(told[like])
                continue
            found: dict[str, float] = {}
            if kind := type_fit(sample, field):
                found[kind] = 1.0
            if fits := pattern_fit(sample, field):
                found[fits[0]] = fits[1]
            found |= allowed_fit(sample, self._allowed[n], self._recall.spelled(field.name))
            if seen and self.classes[n]:
                best = max([seen.get(name, 0.0) for name in self.classes[n]])
                found["values" if best > 0 else "values_against"] = min(_MOST, best)
            told.append(found)
        return told

    def _named(self, headers: tuple[str, ...]) -> dict[int, _Named]:
        """Fields whose name, label or synonym a header is: rank, score, that name and the rule's word."""
        found: dict[int, _Named] = {}
        for part, header in enumerate(headers):
            for n, rank, name in self._index.get(joined(header), ()):
                same = rank == 1 and header.strip().casefold() == self._fields[n].name.casefold()
                mine = (rank - same + _PARTS * part, PART if part else EXACT, name, _KINDS[rank - 1])
                if n not in found or mine[0] < found[n][0]:
                    found[n] = mine
        return found

    def _likeness(self, headers: tuple[str, ...], field: Field) -> tuple[float, str, str]:
        best, which, how = 0.0, "", ""
        for n, header in enumerate(headers):
            for name, word in field.names:
                alike = round(likeness(header, name, self._stems) * (PART if n else 1.0), 4)
                if alike > best:
                    best, which, how = alike, name, word
        return (best, which, how) if best >= LEAST_LIKENESS else (0.0, "", "")


class _Meanings:
    """What a column's header means in general, against what each field is."""

    def __init__(self, headers: tuple[str, ...], weigher: Weigher) -> None:
        self._meaning = dict(knowledge.concepts_of(headers[0])) if headers else {}
        self._concepts = weigher.concepts
        self._theirs = weigher.theirs
        self._no_field = self._against(())

    def of(self, n: int) -> dict[str, float]:
        if self._meaning.keys().isdisjoint(self._concepts[n]):
            return self._no_field
        return self._against(self._concepts[n])

    def _against(self, concepts: tuple[str, ...]) -> dict[str, float]:
        found: dict[str, float] = {}
        mine = max((self._meaning.get(name, 0.0) for name in concepts), default=0.0)
        other = max(((score, name) for name, score in self._meaning.items() if name not in concepts), default=(0.0, ""))
        if mine:
            found["meaning"] = mine
            found["meaning_plain"] = float(mine >= 0.85)
        if other[0] > mine:
            found["other_meaning"] = other[0] - mine
            if other[1] not in self._theirs:
                found["foreign"] = other[0] - mine
            if knowledge.is_technical(other[1]):
                found["technical"] = 1.0
        return found


class _Memories:
    """What was learnt about a column's header."""

    def __init__(self, headers: tuple[str, ...], recall: Recall, likely: Likely) -> None:
        self._exact = next((one for h in headers if (one := recall.exact(h)) is not None), None)
        self._likely = likely

    def add(self, field: str, found: dict[str, float]) -> str:
        """Add what speaks for a field; returns the confirmed header that is most like this one."""
        exact, likely = self._exact, self._likely
        if exact is not None and exact.said is not None:
            found["said" if exact.said == field else "said_other"] = 1.0
        elif exact is not None and "technical" not in found:  # counts alone do not make a row number an identifier
            if share := exact.share(field):
                found["confirmed"] = share
                found["confirmed_often"] = share * min(3.0, log2(1 + exact.count(field)))
            if share < 1:
                found["confirmed_other"] = 1 - share
        if likely.chances:
            mine = likely.chances.get(field, -_MOST)
            best, chance, second = likely.best
            lead = mine - (second if best == field else chance)
            found["letters"] = -_MOST if mine < -_MOST else min(_MOST, mine)
            found["letters_lead"] = -_MOST if lead < -_MOST else min(_MOST, lead)
        near, like = likely.nearest.get(field, _FAR)
        if near:
            found["near"], found["near_squared"] = near, near * near
        closest, alike, second = likely.closest
        found["near_other"] = second if closest == field else alike
        return like


def field_concepts(fields: Sequence[Field]) -> list[tuple[str, ...]]:
    """What each field is, by its names; where a name may mean two things, that of the other fields' domain."""
    found: list[dict[str, float]] = []
    for field in fields:
        mine: dict[str, float] = {}
        for text, _ in field.names[:8]:
            for name, score in knowledge.concepts_of(text):
                if knowledge.concept(name).values in _CLASSES.get(field.type, (knowledge.concept(name).values,)):
                    mine[name] = max(mine.get(name, 0.0), score)
        top = max(mine.values(), default=0.0)
        found.append({name: score for name, score in mine.items() if score >= max(0.5, top - 0.05)})
    domains = Counter(d for mine in found for d in {knowledge.concept(name).domain for name in mine})
    out = []
    for mine in found:
        best = max((domains[knowledge.concept(name).domain] for name in mine), default=0)
        out.append(tuple(sorted(n for n in mine if domains[knowledge.concept(n).domain] == best)))
    return out


def field_classes(field: Field, concepts: Iterable[str]) -> frozenset[str]:
    """The classes of values that a field may have."""
    return frozenset(knowledge.concept(name).values for name in concepts) or _CLASSES.get(field.type, frozenset())


def weighed(numbers: Mapping[str, float]) -> float:
    weights = model()["pair"]
    return float(weights["prior"] + sum(map(mul, map(weights.__getitem__, numbers), numbers.values())))


_OF_VALUES: Final = frozenset({
    "values", "values_against", "type_rare", "type_strong", "type_weak", "type_against", "pattern", "pattern_against",
    "allowed", "allowed_learnt", "allowed_against",
})  # fmt: skip


def weighed_values(numbers: Mapping[str, float]) -> float:
    """What the values say of it."""
    weights = model()["pair"]
    return float(sum([weights[name] * x for name, x in numbers.items() if name in _OF_VALUES]))


def contributions(pair: Numbers, field: Field, values: Iterable[str]) -> tuple[Contribution, ...]:
    """What the artifact says about a pair: each source once, with its log-odds."""
    weights = model()["pair"]
    sums: dict[str, float] = {"prior": weights["prior"]}
    for name, number in pair.values.items():
        rule = _RULES[name]
        if rule == "header":
            rule = (
                f"header:{pair.word}"
                if name in ("exact", "same_words")
                else f"header:{pair.word}~"
                if pair.word
                else "header"
            )
        elif rule == "type":
            rule = f"type:{field.type}"
        elif rule == "values":
            rule = f"values:{'/'.join(sorted(values))}"
        elif rule == LIKE and pair.like:
            rule = f"{LIKE} {pair.like}"
        sums[rule] = sums.get(rule, 0.0) + weights[name] * number
    told = [Contribution(rule, round(delta, 2)) for rule, delta in sums.items() if abs(delta) >= 0.005]
    return tuple(sorted(told, key=lambda c: (c.rule == "prior", -abs(c.delta))))


def _index(fields: Sequence[Field]) -> dict[str, list[tuple[int, int, str]]]:
    """Every name of every field -> field, rank and the name itself."""
    index: dict[str, list[tuple[int, int, str]]] = {}
    for n, field in enumerate(fields):
        for name, kind in field.names:
            if key := joined(name):
                index.setdefault(key, []).append((n, 1 + _KINDS.index(kind), name))
    return index


def _stems(fields: Sequence[Field]) -> Mapping[str, int]:
    """How many fields have a word in one of their names."""
    return Counter(w for f in fields for w in frozenset[str]().union(*(words(name) for name, _ in f.names)))


def with_neighbours(weigher: Weigher, pairs: dict[tuple[int, int], Numbers]) -> dict[tuple[int, int], Numbers]:
    """Add what a column's neighbours say: a last name beside a first name, a longitude beside a latitude."""
    sure: dict[int, set[str]] = {}  # column -> what it plainly is
    for (column, n), pair in pairs.items():
        if (
            pair.exact is not None
            or pair.values.get("meaning_plain")
            or pair.values.get("confirmed", 0.0) > 0.5
            or "said" in pair.values
        ):
            sure.setdefault(column, set()).update(weigher.concepts[n])
    anywhere = {name for names in sure.values() for name in names}
    partners = [{partner for name in mine for partner in knowledge.partners(name)} for mine in weigher.concepts]
    partners = [wanted & anywhere for wanted in partners]
    for (column, n), pair in pairs.items():
        wanted = partners[n]
        if wanted and pair.exact is None:
            beside = sure.get(column - 1, set()) | sure.get(column + 1, set())
            pair.values["neighbour"] = 1.0 if wanted & beside else 0.5
    return pairs
