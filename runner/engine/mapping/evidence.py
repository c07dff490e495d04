"""What speaks for each pair of column and field, in numbers that can be added: log-odds.

Four sources: the header against the field's declared names, general knowledge of what headers mean, what was learnt,
and the values. A small linear model (`matcher.json`, trained by tools/train_mapping.py on made-up tables) weighs
them. The sum for a field against 0 for "no field" and against the sums of the other fields is a probability.
Every pair gets its sum; what it is made of is put together only for the pairs that are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.document_types import Contributor
from runner.engine.mapping import knowledge
from runner.engine.mapping.column_evidence import ColumnEvidence, ColumnIn, is_confirmed
from runner.engine.mapping.contrasts import is_qualified
from runner.engine.mapping.headers import UNLIKE
from runner.engine.mapping.matcher import model, weighed
from runner.engine.mapping.sample import Sample
from runner.engine.mapping.target import Allowed, Target
from runner.engine.memory.recall import Recall

MOST_COMPARISONS: Final = 200_000
PER_POINT: Final = 12.0  # log-odds of a point that a Python rule gives
LIKE: Final = "memory:like"
_NOTHING: Final = frozenset[str]()
_OF_VALUES: Final = frozenset({
    "values", "values_against", "type_rare", "type_strong", "type_weak", "type_against", "pattern", "pattern_against",
    "allowed", "allowed_learnt", "allowed_against",
})  # fmt: skip
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


class Contribution(NamedTuple):
    """One thing that speaks for a field or against it."""

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
        return is_confirmed(self.numbers)

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
NO_RULES: Final[Detected] = {}
EMPTY: Final = Recall()


class Weigher:
    """Weighs one table's columns against the fields; columns are named by position, fields by number.

    What a pair's log-odds are made of is worked out when it is first asked for, and then remembered.
    """

    def __init__(
        self,
        columns: Sequence[ColumnIn],
        fields: Sequence[Field],
        allowed: Allowed,
        recall: Recall = EMPTY,
        detected: Detected = NO_RULES,
    ) -> None:
        """Prepare to weigh every column against every field; nothing is weighed yet."""
        target = Target(
            fields, allowed, recall, wide=len(columns) * sum(len(f.names) for f in fields) > MOST_COMPARISONS
        )
        likely = recall.find_likely([c.headers[0] if c.headers else "" for c in columns])
        self._target = target
        self._detected = detected
        self._columns = {
            c.position: ColumnEvidence(target, c, recall, memory) for c, memory in zip(columns, likely, strict=True)
        }
        self._neighbours = self._neighbour_scores()  # column -> field -> how much its neighbours speak for it
        self._known: dict[tuple[int, int], Evidence] = {}  # by column and field

    def totals(self) -> dict[int, dict[int, float]]:
        """Weigh every pair that anything is known about: column -> field -> the log-odds against "no field"."""
        totals: dict[int, dict[int, float]] = {}
        weights = model().pair
        for at, column in self._columns.items():
            beside = self._neighbours[at]
            points = {n: PER_POINT * self._points(at, n) for n in self._ruled(at)}
            totals[at] = column_totals = column.totals(beside.keys() | points.keys())
            for n, share in beside.items():
                column_totals[n] += weights["neighbour"] * share
            for n, share in points.items():
                column_totals[n] += share
        return totals

    def named(self, at: int) -> frozenset[int]:
        """The fields one of whose names the column's header is."""
        return self._columns[at].named

    def is_another_one(self, at: int, n: int) -> bool:
        """Whether a column is the second of its kind and the field is not, or the other way round."""
        headers = self._columns[at].column.headers
        return bool(headers) and self._target.statements_of(n).is_another_one(headers[0])

    def leaves_open(self, at: int, n: int, others: Sequence[str]) -> list[bool]:
        """For each of the `others`, whether it is the opposite of the column's header and the field does not say which
        of the two it is."""
        headers = self._columns[at].column.headers
        if not headers or not is_qualified(headers[0]):
            return [False] * len(others)
        return [bool(other) and self._target.statements_of(n).leaves_open(headers[0], other) for other in others]

    def contrary(self, at: int) -> Mapping[int, str]:
        """The fields that a column would be like but for what its header contradicts them in."""
        return self._columns[at].contrary

    def odd_kind(self, sample: Sample, n: int) -> str:
        """What a column's values plainly are, if a text field never has such values; empty if it may have them."""
        return self._target.odd_kind(n, sample)

    def evidence(self, at: int, n: int) -> Evidence:
        """Return what the log-odds of a column (`at`) and a field (`n`) are made of; worked out once."""
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
        """What speaks for a pair and against it, as the artifact lists it."""
        return contributions(self.evidence(at, n), self._target.fields[n], self._target.classes[n])

    def _ruled(self, at: int) -> list[int]:
        """The fields that a Python rule has said something about."""
        return [self._target.called[name] for name, points in self._detected.get(at, {}).items() if points]

    def _points(self, at: int, n: int) -> float:
        """The sum of the points that Python rules give a pair."""
        return round(sum(c.delta for c in self._detected.get(at, {}).get(self._target.fields[n].name, ())), 4)

    def _neighbour_scores(self) -> dict[int, dict[int, float]]:
        """Score fields by what is beside a column: 1 if a neighbour is a partner of the field, such as a last name
        beside a first name, and 0.5 if another column of the table is."""
        concepts = self._target.concepts
        sure = {at: _NOTHING.union(*(concepts[n] for n in column.sure())) for at, column in self._columns.items()}
        anywhere = _NOTHING.union(*sure.values())
        partners = [_NOTHING.union(*map(knowledge.partners, own_partners)) & anywhere for own_partners in concepts]
        wanted = {n: own_partners for n, own_partners in enumerate(partners) if own_partners}
        shares: dict[int, dict[int, float]] = {}
        for at, column in self._columns.items():
            beside = sure.get(at - 1, _NOTHING) | sure.get(at + 1, _NOTHING)
            shares[at] = {
                n: 1.0 if own_partners & beside else 0.5 for n, own_partners in wanted.items() if n not in column.named
            }
        return shares


def listed(parts: Iterable[Contribution], *, redact: bool = False) -> list[Contributor]:
    """Return contributions as the artifact has them; `redact`: without the confirmed headers that they name."""
    return [
        {"rule": LIKE if redact and part.rule.startswith(LIKE) else part.rule, "weight": part.delta} for part in parts
    ]


def contributions(pair: Evidence, field: Field, values: Iterable[str]) -> tuple[Contribution, ...]:
    """List what speaks for a pair: points of rules first, then each source once with its log-odds, the weightiest
    first.

    `values`: the classes of values that the field may have.
    """
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
    parts = [Contribution(rule, round(delta, 2)) for rule, delta in sums.items() if abs(delta) >= 0.005]
    points = (Contribution(c.rule, round(PER_POINT * c.delta, 2)) for c in pair.points)
    return (*points, *sorted(parts, key=lambda c: (c.rule == "prior", -abs(c.delta))))
