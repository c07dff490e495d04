"""What speaks for each pair of column and field, in numbers that can be added: log-odds.

Four sources: the header against the field's declared names, general knowledge of what headers mean, what was learnt,
and the values. A small linear model (`matcher.json`, trained by tools/train_mapping.py on made-up tables) weighs
them. The sum for a field against 0 for "no field" and against the sums of the other fields is a probability.
Every pair gets its sum; what it is made of is put together only for the pairs that are asked for.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from math import exp, log, log2
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.document_types import Contributor
from runner.engine.mapping import knowledge, odd_values
from runner.engine.mapping.contrasts import FieldStated, is_qualified
from runner.engine.mapping.headers import PART, SAME_WORDS, UNLIKE, FieldNames
from runner.engine.mapping.looks import LOOKS, TRUTHS, ClassWeights, class_log_odds, class_weights, looks_of
from runner.engine.mapping.nearness import Near, Nearness, first_sentence
from runner.engine.memory.recall import Likely, Recall
from runner.engine.values.convert import Converter, fold, text_of

GOOD: Final = 0.8
PLAIN: Final = 0.85  # what a header plainly means
POOR: Final = 0.3
FEWEST: Final = 3
FEW: Final = 6  # values that show half of what many would
TESTED: Final = 60  # values that a type is tried on
MOST_COMPARISONS: Final = 200_000
# Log-odds of nearness. Words or values alone order the fields of a column, but for at most even odds; a little more
# tells fields apart for which all else is the same, and words and values that agree are evidence.
PER_NEAR: Final = 3.0
MOST_BY_NEARNESS: Final = 0.0
PER_NEAR_ALWAYS: Final = 0.3
PER_AGREEMENT: Final = 3.0
AGREES: Final = 0.3  # nearness of values that do not speak against a field, though they are not its allowed ones
FEW_FIELDS: Final = 40  # which the weights were trained for
PER_POINT: Final = 12.0  # log-odds of a point that a Python rule gives
_MOST: Final = 3.0  # log-odds that letters or values alone may give
_PROBES: Final = ("x", "Abc def", "17", "2026-01-31", "a.b@c.de", "M-1")
_CLASSES: Final[Mapping[str, frozenset[str]]] = {  # what values of a declared type look like
    "email": frozenset({"email"}),
    "url": frozenset({"url"}),
    "phone": frozenset({"phone"}),
    "date": frozenset({"date"}),
    "datetime": frozenset({"date"}),
    "time": frozenset({"time"}),
}
_DISTINCT: Final = frozenset().union(*_CLASSES.values())  # classes that values plainly are of or not
_STRIPPED: Final = ("strip",)
_OF_DIGITS: Final = frozenset({"integer", "decimal", "money", "percent", "date", "datetime", "time", "phone"})
_DIGIT: Final = re.compile("[0-9]")
_UNTESTED: Final = frozenset({"text", "enum", "any"})  # types that say nothing about their values
_COMMON: Final = 0.2  # what an allowed value counts that many columns hold
_RARE: Final = frozenset({"email", "url", "phone"})
_STRONG: Final = frozenset({"date", "datetime", "time", "boolean"})
LIKE: Final = "memory:like"
NAMES: Final = (
    "prior", "exact", "same_words", "nearly_same", "similar_words", "generic_differs", "covers", "inside",
    "subject", "replaced", "alike", "alike_squared", "nothing_said", "meaning", "meaning_plain", "other_meaning",
    "foreign", "technical", "confirmed", "confirmed_often", "confirmed_other", "said", "said_other", "near",
    "near_squared", "near_other", "letters", "letters_lead", "values", "values_against", "type_rare", "type_strong",
    "type_weak", "type_against", "pattern", "pattern_against", "allowed", "allowed_against", "neighbour",
    "other_role", "contrary", "described",
)  # fmt: skip
# What the artifact calls a contribution, by the numbers that it is made of.
_RULES: Final = {
    "prior": "prior", "exact": "header", "same_words": "header", "nearly_same": "header", "similar_words": "header",
    "generic_differs": "header", "covers": "header", "inside": "header", "subject": "header", "replaced": "header",
    "alike": "header", "alike_squared": "header", "nothing_said": "header", "meaning": "meaning",
    "meaning_plain": "meaning", "other_meaning": "other meaning", "foreign": "other meaning",
    "technical": "other meaning", "confirmed": "memory:header", "confirmed_often": "memory:header",
    "confirmed_other": "memory:other field", "said": "memory:person", "said_other": "memory:person",
    "near": "memory:like", "near_squared": "memory:like", "near_other": "memory:like", "letters": "memory:letters",
    "letters_lead": "memory:letters", "values": "values", "values_against": "values", "type_rare": "type",
    "type_strong": "type", "type_weak": "type", "type_against": "type", "pattern": "pattern",
    "pattern_against": "pattern", "allowed": "allowed", "allowed_learnt": "memory:spellings",
    "allowed_against": "allowed", "neighbour": "neighbours", "other_role": "other role",
    "contrary": "contradiction", "described": "description", "nearness": "near", "many_fields": "many fields",
}  # fmt: skip


class Sample:
    """The first values of a column, and what each type makes of them, worked out once."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = [v for v in values if v is not None]
        self.texts = [t for t in map(text_of, self.values) if t.strip()]
        self._fits: dict[Any, float | None] = {}
        self._class_log_odds: dict[str, float] | None = None
        self._looks: list[float] | None = None
        self._text: str | None = None  # all tested values, if they are texts

    def fit(self, field: Field) -> float | None:
        """The share of values that are of the field's type; None where there is no evidence."""
        key = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        if key not in self._fits:
            self._fits[key] = self._fit(field)
        return self._fits[key]

    def class_log_odds(self) -> Mapping[str, float]:
        """How likely each class of values is, as log-odds against the average column."""
        if self._class_log_odds is None:
            size = len(self.texts)
            found = {} if size < FEWEST else class_log_odds(self._all_looks(), model().classes)
            self._class_log_odds = {name: odds * size / (size + FEW) for name, odds in found.items()}
        return self._class_log_odds

    def shares(self) -> Mapping[str, float]:
        """The shares of values by their looks; empty where there are too few."""
        looks = self._all_looks() if len(self.texts) >= odd_values.FEWEST else None
        return dict(zip(LOOKS, looks, strict=True)) if looks else {}

    def _all_looks(self) -> list[float] | None:
        if self._looks is None:
            self._looks = looks_of(self.texts)
        return self._looks

    def _fit(self, field: Field) -> float | None:
        values = self.values[:TESTED]
        if not values:
            return None
        if field.clean == _STRIPPED and not field.formats and self._rules_out(field.type):
            return 0.0
        out, bad = Converter(field, values).convert(values)
        present = sum(v is not None for v in out)
        return (present - len(bad)) / present if present else None

    def _rules_out(self, kind: str) -> bool:
        """Whether all values are texts without the signs that every value of a type has, however it is written."""
        if self._text is None:
            values = self.values[:TESTED]
            self._text = "".join(values) if set(map(type, values)) == {str} else ""
        text = self._text
        if not text.strip():
            return False
        if kind in _OF_DIGITS:
            return text.isascii() and _DIGIT.search(text) is None
        if kind == "email":
            return "@" not in text
        return kind == "url" and "://" not in text and "www." not in text.casefold()


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

    numbers: Mapping[str, float]  # before they are weighed
    exact: int | None  # rank of a header that is one of the field's names; None for any other header
    header: float  # how alike header and field are, 0 to 1
    name: str  # of the field's names the one most like the header
    word: str  # what kind of name that is
    like: str  # the confirmed header that is most like this one
    points: Sequence[Contribution]  # of Python rules
    rules: float  # their sum

    @property
    def contradicted(self) -> bool:
        """Whether the values are plainly not of the field's type."""
        return "type_against" in self.numbers

    @property
    def confirmed(self) -> bool:
        """Whether this very header was confirmed for this field."""
        return _is_confirmed(self.numbers)

    @property
    def plain(self) -> bool:
        """Whether in general the header plainly means this."""
        return bool(self.numbers.get("meaning_plain"))

    @property
    def is_about(self) -> bool:
        """Whether the header says something about the field, or is near to it."""
        return "nothing_said" not in self.numbers or "nearness" in self.numbers

    @property
    def values(self) -> float:
        """What the values say of it, in log-odds."""
        return weighed({name: x for name, x in self.numbers.items() if name in _OF_VALUES})


Detected = Mapping[int, Mapping[str, Sequence[Contribution]]]  # column index -> field -> what rules said
Allowed = Callable[[Field], frozenset[Any] | None]
NO_RULES: Final[Detected] = {}
EMPTY: Final = Recall()


class MatcherModel(NamedTuple):
    """The trained weights of mapping."""

    pair: Mapping[str, float]  # of the numbers of a pair of column and field, in log-odds
    classes: ClassWeights  # of the looks of a column's values


@cache
def model() -> MatcherModel:
    """The weights, from a file of our own."""
    loaded = json.loads((Path(__file__).parent / "matcher.json").read_bytes())
    pair: dict[str, float] = loaded["pair"]
    same = {"allowed_learnt": pair["allowed"]}  # a confirmed spelling is as good as the value
    in_log_odds = {"nearness": 1.0, "many_fields": -1.0}  # already
    return MatcherModel(pair | same | in_log_odds, class_weights(loaded["values"]["classes"]))


def type_fit(sample: Sample, field: Field) -> str | None:
    """Whether values speak for a field's type or plainly against it."""
    if field.type in _UNTESTED or len(sample.values) < FEWEST:
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
    """Values that are all among the allowed ones speak for an enum; few different ones speak softly, and so do yes and
    no, bare numbers and single letters: many columns hold those.

    `spelled`: texts that were confirmed to mean one of them. They agree, too, but such short ones are no reason.
    """
    if not allowed or len(sample.texts) < FEWEST:
        return {}
    found = [fold(t) for t in sample.texts[:TESTED]]
    own = [f for f in found if f in allowed]
    learnt = [f for f in found if f in spelled] if spelled else []
    fit = (len(own) + len(learnt)) / len(found)
    if fit >= GOOD:
        strength = (1.0 if len({spelled.get(f, f) for f in found}) > 2 else 0.6) / len(found)
        telling = sum(map(_is_telling, own))
        much = {"allowed": telling + _COMMON * (len(own) - telling), "allowed_learnt": sum(map(_is_telling, learnt))}
        return {name: strength * x for name, x in much.items() if x}
    return {"allowed_against": 1.0} if fit < POOR / 2 else {}


def _is_telling(folded: str) -> bool:
    """Whether a value is one that few columns hold."""
    return len(folded) > 1 and not folded.isdecimal() and folded not in TRUTHS


_FAR: Final = (0.0, "")
_NOWHERE: Final = Near()
_NOTHING: Final = frozenset[str]()
_NOBODY: Final = "\0"  # the name of no field
_OF_HEADERS: Final = frozenset({"alike", "same_words", "meaning", "confirmed", "said", "near", "described"})
_OF_VALUES: Final = frozenset({
    "values", "values_against", "type_rare", "type_strong", "type_weak", "type_against", "pattern", "pattern_against",
    "allowed", "allowed_learnt", "allowed_against",
})  # fmt: skip
_OF_SIMILAR: Final = frozenset({"similar_words", "alike", "alike_squared"})
_SAYS_NOTHING: Final = frozenset({"near_other", "letters", "letters_lead", "nothing_said"})


def weighed(numbers: Mapping[str, float]) -> float:
    weights = model().pair
    return float(sum([weights[name] * x for name, x in numbers.items()]))


def _is_confirmed(numbers: Mapping[str, float]) -> bool:
    return numbers.get("confirmed", 0.0) > 0.5 or "said" in numbers


class Weigher:
    """One table's columns against the fields."""

    def __init__(
        self,
        columns: Sequence[ColumnIn],
        fields: Sequence[Field],
        allowed: Allowed,
        recall: Recall = EMPTY,
        detected: Detected = NO_RULES,
    ) -> None:
        target = _Target(
            fields, allowed, recall, wide=len(columns) * sum(len(f.names) for f in fields) > MOST_COMPARISONS
        )
        likely = recall.likely([c.headers[0] if c.headers else "" for c in columns])
        self._target = target
        self._detected = detected
        self._columns = {
            c.position: _Against(target, c, recall, memory) for c, memory in zip(columns, likely, strict=True)
        }
        self._neighbours = self._beside()
        self._known: dict[tuple[int, int], Evidence] = {}

    def totals(self) -> dict[int, dict[int, float]]:
        """Column -> field -> the log-odds against "no field", of every pair that anything is known about."""
        out: dict[int, dict[int, float]] = {}
        weights = model().pair
        for at, column in self._columns.items():
            beside = self._neighbours[at]
            points = {n: PER_POINT * self._points(at, n) for n in self._ruled(at)}
            out[at] = mine = column.totals(beside.keys() | points.keys())
            for n, much in beside.items():
                mine[n] += weights["neighbour"] * much
            for n, much in points.items():
                mine[n] += much
        return out

    def named(self, at: int) -> frozenset[int]:
        """The fields one of whose names the column's header is."""
        return self._columns[at].named

    def is_another_one(self, at: int, n: int) -> bool:
        """Whether a column is the second of its kind and the field is not, or the other way round."""
        headers = self._columns[at].column.headers
        return bool(headers) and self._target.statements_of(n).is_another_one(headers[0])

    def leaves_open(self, at: int, n: int, others: Sequence[str]) -> list[bool]:
        """Whether a field does not say which of two opposite headers it is, for each of others."""
        headers = self._columns[at].column.headers
        if not headers or not is_qualified(headers[0]):
            return [False] * len(others)
        return [bool(other) and self._target.statements_of(n).leaves_open(headers[0], other) for other in others]

    def contrary(self, at: int) -> Mapping[int, str]:
        """The fields that a column would be like but for what its header contradicts them in."""
        return self._columns[at].contrary

    def odd_kind(self, sample: Sample, n: int) -> str:
        """What a column's values plainly are, if a text field never has such values."""
        target, field = self._target, self._target.fields[n]
        free = field.type in _UNTESTED and not (field.allowed or field.lookup or field.pattern)
        if not free or not (seen := sample.shares()):
            return ""
        return odd_values.odd_kind(field, target.classes[n], seen, is_known=bool(target.concepts[n]))

    def evidence(self, at: int, n: int) -> Evidence:
        """What a pair's log-odds are made of."""
        if (at, n) not in self._known:
            column, name = self._columns[at], self._target.fields[n].name
            numbers = dict(column.numbers(n))
            if n in self._neighbours[at]:
                numbers["neighbour"] = self._neighbours[at][n]
            header = column.headers.get(n, UNLIKE)
            like = "" if header.exact is not None else column.like(n)
            points = self._detected.get(at, {}).get(name, ())
            self._known[at, n] = Evidence(
                numbers, header.exact, header.alike, header.name, header.word, like, points, self._points(at, n)
            )
        return self._known[at, n]

    def contributions(self, at: int, n: int) -> tuple[Contribution, ...]:
        """What the artifact says about a pair."""
        return contributions(self.evidence(at, n), self._target.fields[n], self._target.classes[n])

    def _ruled(self, at: int) -> list[int]:
        """The fields that a Python rule has said something about."""
        return [self._target.called[name] for name, said in self._detected.get(at, {}).items() if said]

    def _points(self, at: int, n: int) -> float:
        return round(sum(c.delta for c in self._detected.get(at, {}).get(self._target.fields[n].name, ())), 4)

    def _beside(self) -> dict[int, dict[int, float]]:
        """What each column's neighbours say: a last name beside a first name, a longitude beside a latitude."""
        concepts = self._target.concepts
        sure = {at: _NOTHING.union(*(concepts[n] for n in one.sure())) for at, one in self._columns.items()}
        anywhere = _NOTHING.union(*sure.values())
        partners = [_NOTHING.union(*map(knowledge.partners, mine)) & anywhere for mine in concepts]
        wanted = {n: mine for n, mine in enumerate(partners) if mine}
        out: dict[int, dict[int, float]] = {}
        for at, one in self._columns.items():
            beside = sure.get(at - 1, _NOTHING) | sure.get(at + 1, _NOTHING)
            out[at] = {n: 1.0 if mine & beside else 0.5 for n, mine in wanted.items() if n not in one.named}
        return out


class _Target:
    """The fields that columns are compared with."""

    def __init__(self, fields: Sequence[Field], allowed: Allowed, recall: Recall, *, wide: bool) -> None:
        self.fields = fields
        self.called = {field.name: n for n, field in enumerate(fields)}
        self._allowed = [allowed(f) for f in fields]
        self._spellings = [recall.spelled(f.name) for f in fields]
        self.tested = [
            bool(f.type not in _UNTESTED or f.pattern is not None or allowed)
            for f, allowed in zip(fields, self._allowed, strict=True)
        ]
        self.concepts = field_concepts(fields)
        # What a field is in part: a `certification_begin_date` a start date.
        self.kin = [
            frozenset(name for text in texts_of(field) for name, _ in knowledge.concepts_of(text)) for field in fields
        ]
        self.classes = [field_classes(f, mine) for f, mine in zip(fields, self.concepts, strict=True)]
        self.being: dict[str, list[int]] = {}  # concept -> the fields that are it
        for n, mine in enumerate(self.concepts):
            for name in mine:
                self.being.setdefault(name, []).append(n)
        self.akin: dict[str, list[int]] = {}  # concept -> the fields that are it in part
        for n, some in enumerate(self.kin):
            for name in some:
                self.akin.setdefault(name, []).append(n)
        first: dict[object, int] = {}
        # Of fields that are declared alike the first stands for all.
        self.declared = [first.setdefault(self._declaration(n), n) for n in range(len(fields))]
        self.distinct = tuple(dict.fromkeys(self.declared))
        self.names = FieldNames(fields, wide=wide)
        # Of many fields each is less likely to be the one that a column is, as long as the header says nothing.
        self.crowd = log(max(1.0, len(fields) / FEW_FIELDS)) / 2
        self._nearness: Nearness | None = None
        self._said: dict[int, FieldStated] = {}

    def near(self, column: ColumnIn) -> dict[int, Near]:
        """The fields that a column is near to."""
        if self._nearness is None:
            self._nearness = Nearness(self.fields, self._allowed)
        return self._nearness.of(column.headers, column.sample.texts)

    def statements_of(self, n: int) -> FieldStated:
        if n not in self._said:
            self._said[n] = FieldStated(self.fields[n])
        return self._said[n]

    def _declaration(self, n: int) -> object:
        """What its values are compared with; the same for fields that are declared alike."""
        field = self.fields[n]
        kind = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        allowed = (id(self._allowed[n]), id(self._spellings[n])) if self._allowed[n] else None
        return kind, field.pattern, allowed, self.classes[n], self._is_known(n)

    def _is_known(self, n: int) -> bool:
        """Whether it is certain enough what a field's values look like that others speak against it."""
        return bool(self.concepts[n]) or self.classes[n] <= _DISTINCT

    def values(self, n: int, sample: Sample) -> dict[str, float]:
        """What a column's values say about a field."""
        found = self._fits(n, sample) if self.tested[n] else {}
        if self.classes[n] and (seen := sample.class_log_odds()):
            best = max([seen.get(name, 0.0) for name in self.classes[n]])
            if best > 0 or self._is_known(n):
                found["values" if best > 0 else "values_against"] = min(_MOST, best)
        return found

    def _fits(self, n: int, sample: Sample) -> dict[str, float]:
        """Whether a column's values are of the type, the pattern and the allowed values that a field declares."""
        field = self.fields[n]
        found = allowed_fit(sample, self._allowed[n], self._spellings[n])
        if kind := type_fit(sample, field):
            found[kind] = 1.0
        if fits := pattern_fit(sample, field):
            found[fits[0]] = fits[1]
        return found


class _Against:
    """One column against all fields: its header's words, what they mean in general, what was learnt, its values."""

    def __init__(self, target: _Target, column: ColumnIn, recall: Recall, likely: Likely) -> None:
        self._target = target
        self.column = column
        self._meaning = dict(knowledge.concepts_of(column.headers[0])) if column.headers else {}
        self._exact = next((one for h in column.headers if (one := recall.exact(h)) is not None), None)
        self._likely = likely
        self._learnt = len(recall) > 0
        self._found: dict[int, dict[str, float]] = {}  # what each field's numbers are, once they were asked for
        self._of_values: dict[int, dict[str, float]] = {}  # of fields whose type, pattern or values are tested
        self._of_meaning: dict[tuple[tuple[str, ...], frozenset[str]], dict[str, float]] = {}
        self.contrary: dict[int, str] = {}  # fields that the header contradicts, and in what
        self.headers = target.names.like(column.headers)
        self.named = frozenset(n for n, one in self.headers.items() if one.exact is not None)
        self._of_role = target.names.of_role(column.headers)
        is_same = any(one.alike >= SAME_WORDS * PART for one in self.headers.values())
        self._near_to = {} if is_same else target.near(column)
        confirmed = () if self._exact is None else self._exact.labels()
        # Fields that the header says something about, be it its words, what they mean or what was confirmed.
        self._about = self.headers.keys() | {n for name in self._meaning for n in target.akin.get(name, ())}
        self._about |= {target.called[name] for name in confirmed if name in target.called}
        self._about |= self._near_to.keys()

    def sure(self) -> list[int]:
        """The fields that the column plainly is."""
        found = []
        for n in self._about:
            meant = self._meant(n)
            if (
                n in self.named
                or meant.get("meaning_plain")
                or _is_confirmed(self._confirmed(self._target.fields[n].name, meant))
            ):
                found.append(n)
        return found

    def numbers(self, n: int) -> Mapping[str, float]:
        """What speaks for a field, but for neighbours and rules."""
        if n not in self._found:
            numbers = self._all_numbers(n)
            if n in self._near_to and (raised := self._raised_by(n, model().pair["prior"] + weighed(numbers))):
                numbers["nearness"] = raised
            self._found[n] = numbers
        return self._found[n]

    def _raised_by(self, n: int, total: float) -> float:
        """The log-odds that nearness adds to those of a pair."""
        near = self._near_to[n]
        much = near.words + near.values
        softened = -log(exp(-total - PER_NEAR * much) + exp(-MOST_BY_NEARNESS))  # the lesser of the two, and below it
        return max(0.0, softened - total) + PER_NEAR_ALWAYS * much + PER_AGREEMENT * near.words * near.values

    def _values(self, n: int) -> dict[str, float]:
        if not self._target.tested[n]:
            return self._target.values(n, self.column.sample)
        if n not in self._of_values:
            self._of_values[n] = self._target.values(n, self.column.sample)
        return self._of_values[n]

    def _all_numbers(self, n: int) -> dict[str, float]:
        header = self.headers.get(n)
        told = {} if header is None else self._target.names.numbers(self.column.headers, header)
        values = self._values(self._target.declared[n])
        if n in self.named:
            return told | values
        meant = self._meant(n)
        told |= (
            meant
            | self._confirmed(self._target.fields[n].name, meant)
            | self._near(self._target.fields[n].name)
            | values
        )
        if n in self._near_to and (described := self._near_to[n].described):
            told["described"] = described
        if meant.get("meaning_plain") and "similar_words" in told:  # the same knowledge twice
            told = {name: x for name, x in told.items() if name not in _OF_SIMILAR}
        if _OF_HEADERS.isdisjoint(told):
            told["nothing_said"] = 1.0
            if self._target.crowd and n not in self._near_to:
                told["many_fields"] = self._target.crowd
        if self._is_anothers(n, meant):
            told["other_role"] = 1.0
            told.pop("covers", None)  # of a header that has all words of the field, and this one
        if self._near_to.get(n, _NOWHERE).values >= AGREES:
            told.pop("allowed_against", None)
        if n in self._about and self.column.headers:
            self._contradict(n, told)
        return told

    def _contradict(self, n: int, told: dict[str, float]) -> None:
        """Count what the header says against the field, unless this very header was confirmed for it."""
        how = "" if _is_confirmed(told) else self._target.statements_of(n).contradiction(self.column.headers[0])
        if how:
            told["contrary"] = 1.0
            self.contrary[n] = how

    def _is_anothers(self, n: int, meant: Mapping[str, float]) -> bool:
        """Whether the header is like the field but for somebody's role, and neither plain nor confirmed as it is."""
        if self._of_role is None or n in self._of_role or self._exact is not None:
            return False
        meaning = meant.get("meaning", 0.0)
        return meaning < PLAIN and (meaning > 0 or n in self.headers)

    def totals(self, kept: Container[int]) -> dict[int, float]:
        """Field -> the weighed `numbers`, which are made only where the header is about that field in particular.

        Fields that only the header's letters speak for are left out, but for those that are to be `kept`.
        """
        target, weights = self._target, model().pair
        told = {n: self._values(n) for n in target.distinct}
        values = {n: sum([weights[name] * x for name, x in numbers.items()]) for n, numbers in told.items()}
        meant = self._meant(None)
        others = meant | self._confirmed(_NOBODY, meant)
        least = weights["prior"] + weighed(others)
        of_letters, of_lead, of_others = weights["letters"], weights["letters_lead"], weights["near_other"]
        of_near, of_square, of_nothing = weights["near"], weights["near_squared"], weights["nothing_said"]
        letters = lead = near = other = 0.0
        out: dict[int, float] = {}
        for n, (name, declared) in enumerate(zip(target.called, target.declared, strict=True)):
            if n in self._about:
                numbers = self.numbers(n)
                if n in kept or not numbers.keys() <= _SAYS_NOTHING:
                    out[n] = weights["prior"] + weighed(numbers)
                continue
            if self._learnt:
                letters, lead, near, other = self._letters(name)
            if near or others or told[declared] or n in kept:
                spoken = (of_near + of_square * near) * near if near else of_nothing - target.crowd
                out[n] = least + values[declared] + of_letters * letters + of_lead * lead + of_others * other + spoken
        return out

    def like(self, n: int) -> str:
        """The confirmed header of a field that is most like this one."""
        return self._likely.nearest.get(self._target.fields[n].name, _FAR)[1]

    def _meant(self, n: int | None) -> dict[str, float]:
        """What the header means in general, against what a field is."""
        concepts, kin = ((), _NOTHING) if n is None else (self._target.concepts[n], self._target.kin[n])
        known = self._of_meaning.get((concepts, kin))
        if known is not None:
            return known
        found = self._of_meaning[concepts, kin] = {}
        mine = max((self._meaning.get(name, 0.0) for name in concepts), default=0.0)
        other = max(
            ((score, name) for name, score in self._meaning.items() if name not in concepts and name not in kin),
            default=(0.0, ""),
        )
        if mine:
            found["meaning"] = mine
            found["meaning_plain"] = float(mine >= PLAIN)
        if other[0] > mine:
            found["other_meaning"] = other[0] - mine
            if other[1] not in self._target.being:
                found["foreign"] = other[0] - mine
            if knowledge.is_technical(other[1]):
                found["technical"] = 1.0
        return found

    def _confirmed(self, field: str, meant: Container[str]) -> dict[str, float]:
        """What was said about this very header."""
        exact = self._exact
        if exact is None:
            return {}
        if exact.person_field is not None:
            return {"said" if exact.person_field == field else "said_other": 1.0}
        if "technical" in meant:  # counts alone do not make a row number an identifier
            return {}
        found: dict[str, float] = {}
        if share := exact.share(field):
            found["confirmed"] = share
            found["confirmed_often"] = share * min(3.0, log2(1 + exact.count(field)))
        if share < 1:
            found["confirmed_other"] = 1 - share
        return found

    def _letters(self, field: str) -> tuple[float, float, float, float]:
        """What headers of other spelling say: how likely the field is, how far ahead of the next, how alike its most
        similar header is, and that of the others.
        """
        likely = self._likely
        mine = likely.chances.get(field, -_MOST)
        best, chance, second = likely.best
        lead = mine - (second if best == field else chance)
        closest, alike, next_alike = likely.closest
        return (
            -_MOST if mine < -_MOST else min(_MOST, mine),
            -_MOST if lead < -_MOST else min(_MOST, lead),
            likely.nearest.get(field, _FAR)[0],
            next_alike if closest == field else alike,
        )

    def _near(self, field: str) -> dict[str, float]:
        if not self._learnt:
            return {}
        letters, lead, near, other = self._letters(field)
        found = {"letters": letters, "letters_lead": lead, "near_other": other}
        return found | {"near": near, "near_squared": near * near} if near else found


def texts_of(field: Field) -> list[str]:
    """What a field is called, and what it is described as."""
    names = [text for text, _ in field.names[:8]]
    return [*names, first_sentence(field.description)] if field.description else names


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
    """The classes of values that a field may have; if it is nothing that is known, those of its last word."""
    known = frozenset(knowledge.concept(name).values for name in concepts) or _CLASSES.get(field.type, _NOTHING)
    return known or (knowledge.head_classes(field.name) if field.type in _UNTESTED else _NOTHING)


def listed(parts: Iterable[Contribution], *, redact: bool = False) -> list[Contributor]:
    """As an artifact says it; `redact`: without the confirmed headers that contributions name."""
    return [
        {"rule": LIKE if redact and part.rule.startswith(LIKE) else part.rule, "weight": part.delta} for part in parts
    ]


def contributions(pair: Evidence, field: Field, values: Iterable[str]) -> tuple[Contribution, ...]:
    """What the artifact says about a pair: each source once, with its log-odds."""
    weights = model().pair
    sums: dict[str, float] = {"prior": weights["prior"]}
    for name, number in pair.numbers.items():
        rule = _RULES[name]
        if rule == "header" and pair.word:
            rule = f"header:{pair.word}{'' if name in ('exact', 'same_words') else '~'}"
        elif rule == "type":
            rule = f"type:{field.type}"
        elif rule == "values":
            rule = f"values:{'/'.join(sorted(values))}"
        elif rule == LIKE and pair.like:
            rule = f"{LIKE} {pair.like}"
        sums[rule] = sums.get(rule, 0.0) + weights[name] * number
    told = [Contribution(rule, round(delta, 2)) for rule, delta in sums.items() if abs(delta) >= 0.005]
    points = (Contribution(c.rule, round(PER_POINT * c.delta, 2)) for c in pair.points)
    return (*points, *sorted(told, key=lambda c: (c.rule == "prior", -abs(c.delta))))
