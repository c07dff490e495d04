"""The fields that columns are compared with: what each is in general, what its values look like, what it is called."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from typing import Any, Final

from runner.engine.common.fields import Field
from runner.engine.mapping import knowledge, odd_values
from runner.engine.mapping.contrasts import FieldStated
from runner.engine.mapping.headers import FieldNames
from runner.engine.mapping.nearness import Near, Nearness, first_sentence
from runner.engine.mapping.sample import UNTESTED, Sample, allowed_fit, most_type_fit, pattern_fit, type_fit
from runner.engine.memory.recall import Recall

FEW_FIELDS: Final = 40  # which the weights were trained for
_MOST_NAMES: Final = 8  # of a field whose meaning is worked out
_LEAST_SCORE: Final = 0.5  # of a concept that a field is, by how plainly its names mean it
_NEARLY_BEST: Final = 0.05  # by which it may be less plain than the plainest
MOST_BY_VALUES: Final = 3.0  # log-odds that the class of values alone may give
_CLASSES: Final[Mapping[str, frozenset[str]]] = {  # what values of a declared type look like
    "email": frozenset({"email"}),
    "url": frozenset({"url"}),
    "phone": frozenset({"phone"}),
    "date": frozenset({"date"}),
    "datetime": frozenset({"date"}),
    "time": frozenset({"time"}),
}
_DISTINCT: Final = frozenset().union(*_CLASSES.values())  # classes that values plainly are of or not
_NOTHING: Final = frozenset[str]()

Allowed = Callable[[Field], frozenset[Any] | None]


class Target:
    """The fields that columns are compared with; each is named by its number, and most lists have an item for each."""

    def __init__(self, fields: Sequence[Field], allowed: Allowed, recall: Recall, *, wide: bool) -> None:
        """Index the manifest's fields for all columns of a table: names, concepts, classes of values, learnt spellings.
        `wide`: there are too many columns and names to compare each with each."""
        self.fields = fields
        self.called = {field.name: n for n, field in enumerate(fields)}
        self._allowed = [allowed(f) for f in fields]  # folded values; None: any
        self._spellings = [recall.spelled(f.name) for f in fields]  # learnt texts for the allowed values
        # Whether the values of a column have to be tried: on a type, a pattern or allowed values.
        self.tested = [
            bool(f.type not in UNTESTED or f.pattern is not None or allowed)
            for f, allowed in zip(fields, self._allowed, strict=True)
        ]
        self.concepts = concepts_by_field(fields)  # what each field is in general
        # What a field is in part: a `certification_begin_date` a start date.
        self.kin = [
            frozenset(name for text in texts_of(field) for name, _ in knowledge.concepts_of(text)) for field in fields
        ]
        self.classes = [field_classes(f, concepts) for f, concepts in zip(fields, self.concepts, strict=True)]
        self.being: dict[str, list[int]] = {}  # concept -> the fields that are it
        for n, concepts in enumerate(self.concepts):
            for name in concepts:
                self.being.setdefault(name, []).append(n)
        self.akin: dict[str, list[int]] = {}  # concept -> the fields that are it in part
        for n, kin in enumerate(self.kin):
            for name in kin:
                self.akin.setdefault(name, []).append(n)
        first: dict[object, int] = {}
        # Of fields that are declared alike the first stands for all.
        self.declared = [first.setdefault(self._declaration(n), n) for n in range(len(fields))]
        self.distinct = tuple(dict.fromkeys(self.declared))
        self.names = FieldNames(fields, wide=wide)
        # Of many fields each is less likely to be the one that a column is, as long as the header says nothing.
        self.crowd = log(max(1.0, len(fields) / FEW_FIELDS)) / 2
        self._nearness: Nearness | None = None
        self._stated: dict[int, FieldStated] = {}

    def near(self, headers: Sequence[str], texts: Sequence[str]) -> dict[int, Near]:
        """Measure how near a column with such headers and values is to each field; the index behind it is built at the
        first call."""
        if self._nearness is None:
            self._nearness = Nearness(self.fields, self._allowed)
        return self._nearness.of(headers, texts)

    def statements_of(self, n: int) -> FieldStated:
        """Return what the names of field number `n` state together; parsed once."""
        if n not in self._stated:
            self._stated[n] = FieldStated(self.fields[n])
        return self._stated[n]

    def _declaration(self, n: int) -> object:
        """Return a key that is equal for fields whose values are tested alike, so that they are tested once."""
        field = self.fields[n]
        kind = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        allowed = (id(self._allowed[n]), id(self._spellings[n])) if self._allowed[n] else None
        return kind, field.pattern, allowed, self.classes[n], self._is_known(n)

    def _is_known(self, n: int) -> bool:
        """Whether it is certain enough what a field's values look like that others speak against it."""
        return bool(self.concepts[n]) or self.classes[n] <= _DISTINCT

    def values(self, n: int, sample: Sample, *, tries_type: bool = True) -> dict[str, float]:
        """Return the named numbers by which a column's values speak for field number `n` or against it; the most they
        can say for its type, if that is not tried."""
        numbers = self._declared_fit(n, sample, tries_type=tries_type) if self.tested[n] else {}
        if self.classes[n] and (odds_by_class := sample.class_log_odds()):
            best = max([odds_by_class.get(name, 0.0) for name in self.classes[n]])
            if best > 0 or self._is_known(n):
                numbers["values" if best > 0 else "values_against"] = min(MOST_BY_VALUES, best)
        return numbers

    def odd_kind(self, n: int, sample: Sample) -> str:
        """Name the kind that a column's values plainly are if a text field such as number `n` never has it; empty if it
        may."""
        field = self.fields[n]
        free = field.type in UNTESTED and not (field.allowed or field.lookup or field.pattern)
        if not free or not (seen := sample.shares()):
            return ""
        return odd_values.odd_kind(field, self.classes[n], seen, is_known=bool(self.concepts[n]))

    def _declared_fit(self, n: int, sample: Sample, *, tries_type: bool) -> dict[str, float]:
        """Return the named numbers for how a column's values fit the type, pattern and allowed values that field number
        `n` declares; the most they can say for its type, if that is not tried."""
        field = self.fields[n]
        numbers = allowed_fit(sample, self._allowed[n], self._spellings[n])
        if type_number := type_fit(sample, field) if tries_type else most_type_fit(field):
            numbers[type_number] = 1.0
        return numbers | pattern_fit(sample, field)


def texts_of(field: Field) -> list[str]:
    """Return what a field is called, and what it is described as."""
    names = [text for text, _ in field.names[:_MOST_NAMES]]
    return [*names, first_sentence(field.description)] if field.description else names


def concepts_by_field(fields: Sequence[Field]) -> list[tuple[str, ...]]:
    """Return for each field the concepts that its names mean; of several meanings those win whose domain most fields
    are of."""
    scores: list[dict[str, float]] = []
    for field in fields:
        own_scores: dict[str, float] = {}
        for text, _ in field.names[:_MOST_NAMES]:
            for name, score in knowledge.concepts_of(text):
                if knowledge.concept(name).values in _CLASSES.get(field.type, (knowledge.concept(name).values,)):
                    own_scores[name] = max(own_scores.get(name, 0.0), score)
        best_score = max(own_scores.values(), default=0.0)
        least_score = max(_LEAST_SCORE, best_score - _NEARLY_BEST)
        scores.append({name: score for name, score in own_scores.items() if score >= least_score})
    domains = Counter(d for own_scores in scores for d in {knowledge.concept(name).domain for name in own_scores})
    concepts = []
    for own_scores in scores:
        most_fields = max((domains[knowledge.concept(name).domain] for name in own_scores), default=0)
        concepts.append(tuple(sorted(n for n in own_scores if domains[knowledge.concept(n).domain] == most_fields)))
    return concepts


def field_classes(field: Field, concepts: Iterable[str]) -> frozenset[str]:
    """Return the classes of values that a field may have, by its concepts, or else its type, or else the last word of
    its name; none if nothing tells."""
    known = frozenset(knowledge.concept(name).values for name in concepts) or _CLASSES.get(field.type, _NOTHING)
    return known or (knowledge.head_classes(field.name) if field.type in UNTESTED else _NOTHING)
