"""What speaks for each pair of column and field, in numbers that can be added: log-odds.

Four sources: the header against the field's declared names, general knowledge of what headers mean, what was learnt,
and the values. A small linear model (`matcher.json`, trained by tools/train_mapping.py on made-up tables) weighs
them. The sum for a field against 0 for "no field" and against the sums of the other fields is a probability.
Every pair gets its sum; what it is made of is put together only for the pairs that are asked for.
"""

from collections import Counter
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
_ROUNDED: Final = 0.005  # log-odds from which a contribution is not rounded to nothing
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
        """Compare all headers with the fields, and each column with its neighbours, for `score.choose`; pairs are
        weighed when they are asked for."""
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
        self._evidence_by_pair: dict[tuple[int, int], Evidence] = {}  # by column and field

    def totals(self, least_likely: float = 0.0) -> dict[int, dict[int, float]]:
        """Weigh every pair that anything is known about; column -> field -> its log-odds against "no field", neighbours
        and Python rules included.

        A column that alone is called as one field is has only this field, if all others are certainly less likely than
        `least_likely`.
        """
        totals: dict[int, dict[int, float]] = {}
        weights = model().pair
        only_fields = self._only_fields() if least_likely and not self._detected else {}
        for position, column in self._columns.items():
            neighbour_shares = self._neighbours[position]
            only = only_fields.get(position)
            if only is not None:
                total = column.total_of_only_field(only, neighbour_shares, least_likely)
                if total is not None:
                    totals[position] = {only: total}
                    continue
            rule_log_odds = {
                field: PER_POINT * self._rule_points(position, field) for field in self._fields_with_rules(position)
            }
            totals[position] = column_totals = column.totals(neighbour_shares.keys() | rule_log_odds.keys())
            for field, amount in neighbour_shares.items():
                column_totals[field] += weights["neighbour"] * amount
            for field, amount in rule_log_odds.items():
                column_totals[field] += amount
        return totals

    def _only_fields(self) -> dict[int, int]:
        """Return for each column whose header names one field, which no other column's header names, that field; it
        goes to this column whatever the values say."""
        columns_by_field = Counter(n for column in self._columns.values() for n in column.named)
        fields = self._target.fields
        return {
            position: n
            for position, column in self._columns.items()
            if len(column.named) == 1
            for n in column.named
            if columns_by_field[n] == 1 and fields[n].needs_column
        }

    def named(self, at: int) -> frozenset[int]:
        """Return the numbers of the fields one of whose names the header of the column at a position is."""
        return self._columns[at].named

    def is_another_one(self, at: int, n: int) -> bool:
        """Whether a column is the second of its kind and the field is not, or the other way round."""
        headers = self._columns[at].column.headers
        return bool(headers) and self._target.statements_of(n).is_another_one(headers[0])

    def leaves_open(self, position: int, field: int, others: Sequence[str]) -> list[bool]:
        """Say for each header in `others` whether it is the opposite of this column's header while the field does not
        say which of the two it means."""
        headers = self._columns[position].column.headers
        if not headers or not is_qualified(headers[0]):
            return [False] * len(others)
        return [bool(other) and self._target.statements_of(field).leaves_open(headers[0], other) for other in others]

    def contrary(self, at: int) -> Mapping[int, str]:
        """Return the fields that the column at a position would be like but for what its header contradicts them in:
        field -> a key of CONTRARY, or ANOTHER. Only of fields whose evidence was asked for."""
        return self._columns[at].contrary

    def odd_kind(self, sample: Sample, n: int) -> str:
        """Return what a column's values plainly are, if a text field never has such values; empty if it may have
        them."""
        return self._target.odd_kind(n, sample)

    def evidence(self, position: int, field: int) -> Evidence:
        """Return all that speaks for one pair of column (by position) and field (by number); put together once, then
        remembered."""
        if (position, field) not in self._evidence_by_pair:
            column, name = self._columns[position], self._target.fields[field].name
            numbers = dict(column.numbers(field))
            if field in self._neighbours[position]:
                numbers["neighbour"] = self._neighbours[position][field]
            header = column.headers.get(field, UNLIKE)
            confirmed_header = "" if header.exact is not None else column.like(field)
            points = self._detected.get(position, {}).get(name, ())
            self._evidence_by_pair[position, field] = Evidence(
                numbers,
                header.exact,
                header.alike,
                header.name,
                header.word,
                confirmed_header,
                points,
                self._rule_points(position, field),
            )
        return self._evidence_by_pair[position, field]

    def contributions(self, at: int, n: int) -> tuple[Contribution, ...]:
        """Return what speaks for a pair and against it, as the artifact lists it."""
        return contributions(self.evidence(at, n), self._target.fields[n], self._target.classes[n])

    def _fields_with_rules(self, at: int) -> list[int]:
        """Return the fields that a Python rule has said something about."""
        return [self._target.called[name] for name, points in self._detected.get(at, {}).items() if points]

    def _rule_points(self, at: int, n: int) -> float:
        """Return the sum of the points that Python rules give a pair; 0 without rules."""
        return round(sum(c.delta for c in self._detected.get(at, {}).get(self._target.fields[n].name, ())), 4)

    def _neighbour_scores(self) -> dict[int, dict[int, float]]:
        """Score for each column the fields that its neighbours make likely: 1 if a partner of the field (a last name
        beside a first name) is next to it, 0.5 if it is elsewhere in the table."""
        concepts = self._target.concepts
        plain_concepts = {
            position: _NOTHING.union(*(concepts[n] for n in column.sure()))
            for position, column in self._columns.items()
        }
        all_plain_concepts = _NOTHING.union(*plain_concepts.values())
        partners = [
            _NOTHING.union(*map(knowledge.partners, own_partners)) & all_plain_concepts for own_partners in concepts
        ]
        fields_with_partners = {n: own_partners for n, own_partners in enumerate(partners) if own_partners}
        shares: dict[int, dict[int, float]] = {}
        for position, column in self._columns.items():
            beside = plain_concepts.get(position - 1, _NOTHING) | plain_concepts.get(position + 1, _NOTHING)
            shares[position] = {
                n: 1.0 if own_partners & beside else 0.5
                for n, own_partners in fields_with_partners.items()
                if n not in column.named
            }
        return shares


def listed(parts: Iterable[Contribution], *, redact: bool = False) -> list[Contributor]:
    """Convert contributions to the form of artifact.json; `redact` cuts off the confirmed headers that rules quote,
    since those come from cells."""
    return [
        {"rule": LIKE if redact and part.rule.startswith(LIKE) else part.rule, "weight": part.delta} for part in parts
    ]


def contributions(pair: Evidence, field: Field, values: Iterable[str]) -> tuple[Contribution, ...]:
    """List what speaks for a pair, as review and artifact show it: the points of Python rules, then each source's
    log-odds, the weightiest first.

    `values`: the classes of values that the field may have, for the name of that source.
    """
    weights = model().pair
    log_odds_by_rule: dict[str, float] = {"prior": weights["prior"]}
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
        log_odds_by_rule[rule] = log_odds_by_rule.get(rule, 0.0) + weights[name] * number
    parts = [Contribution(rule, round(delta, 2)) for rule, delta in log_odds_by_rule.items() if abs(delta) >= _ROUNDED]
    points = (Contribution(c.rule, round(PER_POINT * c.delta, 2)) for c in pair.points)
    return (*points, *sorted(parts, key=lambda c: (c.rule == "prior", -abs(c.delta))))
