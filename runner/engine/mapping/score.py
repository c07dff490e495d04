"""Chooses each column's field: one probability per pair, the best evidence first, none where none is likely enough.

A header that is the field's name, label or synonym goes before everything else; then a header that was confirmed; then
headers of the same words; then what is likely. A pair needs `mapping.threshold`, a probability. A column whose field
went to a better one gets its next choice only for reasons that did not speak for the first one as well.

For those who ask (review, drift, report): `MappingChoice` has the field (None: unmapped), its `probability`, what
contributed in log-odds, `runners_up` with the same (also of a column that stays unmapped: the first of them is the
nearest), and `tier`, the kind of evidence: `rule`, `name`, `confirmed`, `words`, `likely` or `none`.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from typing import Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.findings import FindingText
from runner.engine.common.spelling import joined
from runner.engine.mapping.assign import Rank, assign
from runner.engine.mapping.column_evidence import MOST_LOG_ODDS, ColumnIn
from runner.engine.mapping.contrasts import CONTRARY, OUTDATED
from runner.engine.mapping.evidence import EMPTY, PER_POINT, Contribution, Detected, Weigher
from runner.engine.mapping.headers import (
    FUZZY,
    PART,
    SAME_WORDS,
    are_numbered,
    are_numbered_alike,
    bare_words,
    count_specific,
    extra_words,
    overlap,
    words,
)
from runner.engine.mapping.knowledge import are_opposite
from runner.engine.mapping.matcher import model
from runner.engine.mapping.sample import Sample
from runner.engine.mapping.target import Allowed
from runner.engine.memory.recall import Recall
from runner.engine.options import THRESHOLD

__all__ = ["THRESHOLD", "ColumnIn", "Contribution", "Doubt", "MappingChoice", "RunnerUp", "Sample", "choose"]

LEAST_SHOWN: Final = 0.01  # probability of a runner-up
LEAST_LIKELY: Final = 0.1  # probability of a nearest field that the header is not like
SURE: Final = 0.95  # a guess that is as likely as this is not reported
# Log-odds by which two columns may differ and still be as much a field: any two; two that each say something more; two
# that say opposite things; two whose values are compared.
TIE: Final = 0.1
CONTRAST: Final = 2.5
OPPOSED: Final = 6.0
AS_MUCH: Final = 0.5
ENOUGH_ALONE: Final = 0.25  # likeness, and points of rules, that are a reason by themselves
RULE_IS_SURE: Final = 1.0  # a Python rule that gives a point says as much as the field's own name
# Groups of ranks, the better evidence first: 0 for rules, then those of exact names, then these.
_DOUBTED_NAMES: Final = 10  # added for blank or contradicting columns: they come after all other names
_CONFIRMED_GROUP: Final = 20
_SAME_WORDS_GROUP: Final = 21
_REST_GROUP: Final = 22


class Doubt(NamedTuple):
    """A choice that could have been another one: a finding's code and words, and what spoke for each reading."""

    code: str
    message: str
    field: str  # the one that is in doubt
    evidence: Mapping[str, int]
    remedy: str  # a line of the manifest; empty: the finding is only information


class ListedFields(NamedTuple):
    """How many of the other fields that a column could be are listed, and how likely they have to be."""

    most: int
    least_likely: float


IN_SHORT: Final = ListedFields(3, LEAST_SHOWN)
IN_FULL: Final = ListedFields(10, 0.0001)  # for `ade map`


class RunnerUp(NamedTuple):
    """A field that a column could also be."""

    field: str
    probability: float
    contributors: tuple[Contribution, ...] = ()


class MappingChoice(NamedTuple):
    """What was decided for one column."""

    position: int
    field: str | None  # None: unmapped
    probability: float  # of the field; of an unmapped column that of the nearest one
    contributors: tuple[Contribution, ...]
    runners_up: tuple[RunnerUp, ...]
    note: str | None  # why it was not mapped, or what else is worth knowing
    doubt: Doubt | None = None
    tier: str = "none"

    def decided(self, field: str | None, rule: str, note: str, tier: str) -> "MappingChoice":
        """Return a copy in which a person, a memory or a hook has decided the field; `rule` and `tier` say by what."""
        others = tuple(other for other in self.runners_up if other.field != field)
        return self._replace(
            field=field,
            probability=1.0 if field is not None else max((other.probability for other in others), default=0.0),
            contributors=(Contribution(rule, 1.0),),
            runners_up=others,
            note=note,
            doubt=None,
            tier=tier,
        )


def choose(
    columns: Sequence[ColumnIn],
    fields: Sequence[Field],
    *,
    threshold: float = THRESHOLD,
    detected: Detected,
    allowed: Allowed,
    recall: Recall = EMPTY,
    shown: ListedFields = IN_SHORT,
) -> list[MappingChoice]:
    """Choose a field for every column of one table and return the choices in the columns' order; each field goes to one
    column at most.

    `detected`: what Python rules said. `allowed`: the values that a field allows. `recall`: what was learnt.
    """
    return _Chooser(columns, fields, threshold, Weigher(columns, fields, allowed, recall, detected), shown).choices()


class _Chooser:
    """Chooses between one table's columns and the fields: decided once it is made, `choices` then says why.

    Columns are named by their position, fields by their number. While pairs are assigned, best evidence first, rivals
    of a pair that is given up are noted in `_undecided_fields` and `_undecided_columns`, and the chances of one that
    holds in `_chances`.
    """

    def __init__(
        self,
        columns: Sequence[ColumnIn],
        fields: Sequence[Field],
        threshold: float,
        weigher: Weigher,
        shown: ListedFields,
    ) -> None:
        """Weigh and rank all pairs of column and field, and assign the fields; `choices` only explains what was decided
        here."""
        self._columns = {c.position: c for c in columns}
        self._fields = fields
        self._threshold = threshold
        self._weigher = weigher
        self._shown = shown
        self._evidence = weigher.evidence
        self._totals = weigher.totals(shown.least_likely)  # column -> field -> log-odds
        self._odds = {
            at: {n: exp(min(MOST_LOG_ODDS, total)) for n, total in totals.items()}
            for at, totals in self._totals.items()
        }
        # Of all fields and of none.
        self._total_odds = {at: 1.0 + sum(odds.values()) for at, odds in self._odds.items()}
        # Every row has the value of these already.
        self._constant_fields = {n for n, f in enumerate(fields) if not f.needs_column}
        self._undecided_fields: dict[int, tuple[int, ...]] = {}  # columns that fit several fields equally well
        self._undecided_columns: dict[int, tuple[int, list[int]]] = {}  # columns that fit a field as well as others do
        self._chances: dict[tuple[int, int], float] = {}  # of pairs that held when they were chosen
        # Last: these need all of the above.
        self._ranks = {pair: rank for pair in self._likely_pairs() if (rank := self._rank_pair(*pair))}
        self._chosen = assign(self._ranks, self._still_holds)  # column -> field
        self._column_of = {f: c for c, f in self._chosen.items()}  # field -> column

    def _likely_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of column and field that may be assigned: likely enough, or with the field's own name as
        header."""
        for at, odds_by_field in self._odds.items():
            named = self._weigher.named(at)
            for n, odds in odds_by_field.items():
                is_likely = odds / (1.0 + odds) >= self._threshold
                if (is_likely or n in named) and n not in self._constant_fields:
                    yield at, n

    def choices(self) -> list[MappingChoice]:
        """Return what was decided for each column, and why."""
        return [self._make_choice(column) for column in self._columns.values()]

    def _chance(self, column: int, field: int, excluded: frozenset[int] = frozenset()) -> float:
        """Return how likely a pair is, from 0 to 1, among the fields of its column and none, apart from `excluded`
        fields."""
        odds = self._odds[column]
        return odds[field] / (self._total_odds[column] - sum([odds[n] for n in excluded]))

    def _probability_alone(self, column: int, field: int) -> float:
        """Return how likely a pair is against no field, from 0 to 1, whatever other fields the column may be."""
        odds = self._odds[column][field]
        return odds / (1.0 + odds)

    def _rank_pair(self, column: int, field: int) -> Rank | None:
        """Rank the evidence for a pair for `assign`: Python rules first, then names, confirmed headers, the same words,
        the rest; None where it is not enough."""
        total = self._totals[column][field]
        evidence = self._evidence(column, field)
        if evidence.rules >= RULE_IS_SURE and self._probability_alone(column, field) >= self._threshold:
            return Rank((0,), total)
        if evidence.exact is not None:
            if evidence.rules < 0 and evidence.header + evidence.rules < 0.5:
                return None
            is_doubted = evidence.contradicted or not self._columns[column].sample.texts
            return Rank((evidence.exact + (_DOUBTED_NAMES if is_doubted else 0),), total)
        if self._probability_alone(column, field) < self._threshold:
            return None
        if evidence.confirmed:
            return Rank((_CONFIRMED_GROUP,), total)
        if evidence.header >= SAME_WORDS * PART:
            return Rank((_SAME_WORDS_GROUP,), total)
        # Values that such a field never has: numbers are no `experiment_name`, however alike the header is.
        is_odd = not evidence.rules and self._weigher.odd_kind(self._columns[column].sample, field)
        return None if is_odd else Rank((_REST_GROUP, -total), total)

    def _still_holds(self, column: int, field: int, chosen: Mapping[int, int]) -> bool:
        """Decide for `assign`, just before it chooses a pair, whether the evidence still suffices now that better pairs
        are taken.

        Stores the chance of a pair that holds in `_chances`, else the fields that the column fits equally well in
        `_undecided_fields`.
        """
        if self._ranks[column, field].group[0] < _CONFIRMED_GROUP:
            return True
        unavailable = set(chosen.values()) | self._constant_fields
        others = [g for g in self._totals[column] if g != field]
        not_rivals = frozenset(g for g in others if g in unavailable and self._speaks_alone(column, field, g))
        chance = self._chance(column, field, not_rivals)
        if chance >= self._threshold:
            is_alone = self._has_no_rival(column, field, chosen, unavailable)
            if is_alone:
                self._chances[column, field] = chance
            return is_alone
        own_total = self._totals[column][field]
        rivals = tuple(
            g
            for g in others
            if g not in unavailable and abs(self._totals[column][g] - own_total) <= TIE and (column, g) in self._ranks
        )
        if rivals:
            self._undecided_fields.setdefault(column, (field, *rivals))
        return False

    def _has_no_rival(self, column: int, field: int, chosen: Mapping[int, int], owned: set[int]) -> bool:
        """Whether no free column is as much this field, and no free field as much this column; stores rivals in
        `_undecided_columns` or `_undecided_fields`. `owned`: fields that are not free."""
        group = self._ranks[column, field].group[0]
        twins = self._opposed_columns(column, field, chosen) if group != _CONFIRMED_GROUP else []
        if twins or (group >= _REST_GROUP and (twins := self._equally_likely_columns(column, field, chosen))):
            self._undecided_columns[column] = (field, twins)
            return False
        is_plain = self._evidence(column, field).plain
        rivals = () if is_plain else tuple(self._other_fields_in_header(column, field, owned))
        if not rivals or group < _REST_GROUP:
            return True
        self._undecided_fields[column] = (field, *rivals)
        return False

    def _equally_likely_columns(self, column: int, field: int, chosen: Mapping[int, int]) -> list[int]:
        """Return the columns without a field that are as likely to be this one (`Phone 1` and `Phone 2`), or would be
        but for words that the field does not have (`Home phone` and `Work phone`)."""
        own_total = self._totals[column][field]
        close_columns = [
            (c, totals[field] - own_total)
            for c, totals in self._totals.items()
            if c != column and c not in chosen and field in totals and abs(totals[field] - own_total) <= OPPOSED
        ]
        return [c for c, gap in close_columns if abs(gap) <= TIE or self._differ_in_words(column, c, field, abs(gap))]

    def _opposed_columns(self, column: int, field: int, chosen: Mapping[int, int]) -> list[int]:
        """Return the columns without a field whose header is the opposite of this column's while the field does not say
        which it means: `Qty ordered` and `Qty shipped` for `quantity`. A `Primary phone` is the phone, beside a
        `Secondary phone`."""
        headers = [
            column_in.headers[0] if column_in.headers and c not in chosen else ""
            for c, column_in in self._columns.items()
        ]
        open_to = self._weigher.leaves_open(column, field, headers)
        return [c for c, is_open in zip(self._columns, open_to, strict=True) if is_open and c != column]

    def _differ_in_words(self, column: int, other: int, field: int, gap: float) -> bool:
        """Whether two columns' headers each say something more than the field, and not the same: a different number or
        word. `gap`: how far apart their log-odds are."""
        name = self._evidence(column, field).name or self._fields[field].name
        headers = [*self._columns[column].headers[:1], *self._columns[other].headers[:1]]
        if len(headers) == 2 and are_numbered_alike(*headers):
            return True
        extra = [more for header in headers if (more := extra_words(header, name))]
        return len(extra) == 2 and extra[0] != extra[1] and (gap <= CONTRAST or are_opposite(*extra))

    def _speaks_alone(self, column: int, field: int, owned: int) -> bool:
        """Whether something speaks for a field of a column that does not speak as well for another field, `owned`,
        which another column has."""
        evidence, owned_evidence = self._evidence(column, field), self._evidence(column, owned)
        shared = words(owned_evidence.name) if owned_evidence.name else frozenset()
        unshared = 0.0
        for header in self._columns[column].headers if evidence.name else ():
            unshared = max(unshared, FUZZY * overlap(bare_words(header) - shared, words(evidence.name) - shared))
        values_speak_more = max(0.0, evidence.values - owned_evidence.values) / PER_POINT
        return unshared + values_speak_more + evidence.rules >= ENOUGH_ALONE

    def _other_fields_in_header(self, column: int, field: int, owned: set[int]) -> Iterator[int]:
        """Yield the free fields that the header names beside `field`, by other words: `Street number` where both are
        fields."""
        for header in self._columns[column].headers[:1]:
            header_words = bare_words(header)
            field_words = words(self._fields[field].name)
            if not field_words < header_words:
                continue
            for n in self._totals[column]:
                if n == field or n in owned:
                    continue
                other_words = words(self._fields[n].name)
                is_in_header = bool(other_words) and other_words < header_words
                if is_in_header and other_words.isdisjoint(field_words):
                    yield n

    def _make_choice(self, column: ColumnIn) -> MappingChoice:
        """Put together the choice that `choices` reports for a column: its field and what spoke for it, or why it has
        none; with runners-up, note and doubt."""
        position, field = column.position, self._chosen.get(column.position)
        fields_by_likelihood = [n for _, n in sorted([(-total, n) for n, total in self._totals[position].items()])]
        likely = [(n, round(self._chance(position, n), 4)) for n in fields_by_likelihood[: self._shown.most + 1]]
        shown_fields = [(n, p) for n, p in likely if n != field and p >= self._shown.least_likely][: self._shown.most]
        others = tuple(
            RunnerUp(self._fields[n].name, p, self._weigher.contributions(position, n)) for n, p in shown_fields
        )
        if field is None:
            note, doubt = self._explain_unmapped(column, likely)
            likeliest = likely[0] if likely else (-1, 0.0)
            _, chance = self._nearest_free_field(position, likely) or likeliest
            return MappingChoice(position, None, chance, (), others, note, doubt)
        probability = round(self._chances.get((position, field), self._probability_alone(position, field)), 4)
        rivals = self._equal_unmapped_columns(position, field)
        note, likeliest_field = None, fields_by_likelihood[0] if fields_by_likelihood else field
        if rivals:
            note = f"tie: {len(rivals)} other column(s) score the same; the one further left was taken"
        elif likeliest_field != field and likeliest_field in {*self._column_of, *self._constant_fields}:
            note = f"first choice {self._fields[likeliest_field].name} went to another column"
        return MappingChoice(
            position,
            self._fields[field].name,
            probability,
            self._weigher.contributions(position, field),
            others,
            note,
            self._find_doubt(column, field, rivals, probability),
            self._tier(position, field),
        )

    def _nearest_free_field(self, column: int, likely: Sequence[tuple[int, float]]) -> tuple[int, float] | None:
        """Return the likeliest field that no column has, with its probability; None if it is too unlikely and the
        header is not like it."""
        for n, chance in likely:
            if n in self._column_of or n in self._constant_fields or chance < LEAST_SHOWN:
                continue
            if chance >= LEAST_LIKELY or self._evidence(column, n).is_about:
                return n, chance
        return None

    def _find_doubt(self, column: ColumnIn, field: int, rivals: Sequence[int], probability: float) -> Doubt | None:
        """Decide whether the field that a column got is worth a finding, and word it; None if not. `rivals`: columns
        that fit it as well."""
        evidence, name = self._evidence(column.position, field), self._fields[field].name
        if evidence.contradicted and evidence.exact is not None:
            return self._contradicted_name(column, field)
        if not rivals or evidence.exact is not None:
            return self._doubt_about_reasons(column, field, probability) or self._doubt_about_values(column, field)
        tied = [self._columns[c] for c in (column.position, *rivals)]
        return Doubt(
            "mapping_doubtful",
            f"columns {', '.join(c.letters for c in tied)} fit the field {name} equally well; the first one was taken",
            name,
            {c.letters: len(c.sample.values) for c in tied},
            f'{{"name": "{name}", "synonyms": [the header of the right column]}}',
        )

    def _doubt_about_reasons(self, column: ColumnIn, field: int, probability: float) -> Doubt | None:
        """Word the doubt about a field that a column got for other reasons than its name (other words, only its
        values); None if the reasons are good."""
        evidence, name = self._evidence(column.position, field), self._fields[field].name
        if evidence.exact is not None or evidence.confirmed:
            return None
        former_columns = self._letters_of_former_columns(column, field)
        if not former_columns and (evidence.header >= SAME_WORDS * PART or evidence.rules > 0):
            return None
        remedy = f'{{"name": "{name}", "synonyms": [the header of this column]}}'
        objection = ""
        if former_columns:
            objection = (
                f"it has a header that says more, and column {', '.join(former_columns)} one that names a former one"
            )
        elif self._weigher.is_another_one(column.position, field):
            objection = "only one of them is the second or a later one"
        elif others := self._letters_of_numbered_columns(column, field):
            objection = f"column {', '.join(others)} has such values, too, and a header that differs by a number"
        if objection:
            message = f"the column was taken for the field {name}, but {objection}"
            counts = {"probability in percent": round(100 * probability)}
            return Doubt("mapping_doubtful", FindingText(message, "taken"), name, counts, remedy)
        if probability >= SURE:
            return None
        if not evidence.header:
            message = f"the column was taken for the field {name} because of its values; its header does not name it"
            counts = {"values": len(column.sample.values), "header": 0}
            return Doubt("mapping_doubtful", FindingText(message, "taken"), name, counts, remedy)
        other_words = min(count_specific(bare_words(header), words(evidence.name)) for header in column.headers)
        if not other_words:
            return None
        message = f"the column was taken for the field {name}, but its header has other words than the field"
        return Doubt(
            "mapping_doubtful",
            FindingText(message, "taken"),
            name,
            {"probability in percent": round(100 * probability), "other words": other_words},
            remedy,
        )

    def _letters_of_former_columns(self, column: ColumnIn, field: int) -> list[str]:
        """Return the letters of unmapped columns whose header says that they are the former field (`Old price`), where
        this column's header has a word that theirs lacks (`New price`, not just `Price`)."""
        own = set(column.headers[0].casefold().split()) if column.headers else set()
        return [
            other.letters
            for at, other in self._columns.items()
            if at not in self._chosen
            and self._weigher.contrary(at).get(field) == OUTDATED
            and not own <= set(other.headers[0].casefold().split())
        ]

    def _letters_of_numbered_columns(self, column: ColumnIn, field: int) -> list[str]:
        """Return the letters of unmapped columns whose header differs by a number and whose values speak as much for
        this field; a second address counts, the second line of one does not."""
        if not column.headers:
            return []
        least = max(self._evidence(column.position, field).values - AS_MUCH, AS_MUCH)
        numbered = [
            (at, other)
            for at, other in self._columns.items()
            if at not in self._chosen and other.headers and are_numbered(column.headers[0], other.headers[0])
        ]
        return [
            other.letters
            for at, other in numbered
            if field in self._totals[at] and self._evidence(at, field).values >= least
        ]

    def _doubt_about_values(self, column: ColumnIn, field: int) -> Doubt | None:
        """Word the doubt about a text field whose values it never has, such as email addresses under `name`; None if
        they may be its values."""
        evidence, declared = self._evidence(column.position, field), self._fields[field]
        if evidence.rules > 0 or evidence.confirmed:
            return None
        kind = self._weigher.odd_kind(column.sample, field)
        if not kind:
            return None
        return Doubt(
            "mapping_doubtful",
            FindingText(
                f"the column was taken for the field {declared.name}, but most of its values are {kind}", "values"
            ),
            declared.name,
            {"header": 1, "values": len(column.sample.values)},
            f'a synonym for the right column, or a "pattern" on field {declared.name} that its values match',
        )

    def _equal_unmapped_columns(self, column: int, field: int) -> list[int]:
        """Return the columns without a field whose evidence for this field is of the same rank and as strong as this
        column's."""
        rank = self._ranks[column, field]
        unchosen = [c for c in self._columns if c != column and c not in self._chosen]
        others = [(c, other) for c in unchosen if (other := self._ranks.get((c, field))) is not None]
        return [c for c, other in others if other.group[0] == rank.group[0] and abs(other.weight - rank.weight) <= TIE]

    def _contradicted_name(self, column: ColumnIn, field: int) -> Doubt:
        """Word the doubt about a column whose header is the field's name while most values are not of its type."""
        declared = self._fields[field]
        count = len(column.sample.values)
        fits = round((column.sample.fit(declared) or 0.0) * count)
        message = f"the header is the field {declared.name}, but most of its values are not of type {declared.type}"
        return Doubt(
            "mapping_doubtful",
            FindingText(message, "values"),
            declared.name,
            {"header": 1, f"values of type {declared.type}": fits, "other values": count - fits},
            f'{{"name": "{declared.name}", "type": "text"}}, or a synonym for the right column',
        )

    def _explain_tied_fields(self, column: ColumnIn, fields: Sequence[int]) -> tuple[str, Doubt]:
        """Word the note and the doubt for a column that got none of several fields that it fits equally well."""
        names = [self._fields[n].name for n in fields]
        message = f"fits {' and '.join(names)} equally well; it was given to neither"
        evidence = {name: len(column.sample.values) for name in names}
        remedy = f'{{"name": "{names[0]}", "synonyms": [the header of this column]}}'
        return message, Doubt("mapping_doubtful", f"the column {message}", names[0], evidence, remedy)

    def _explain_tied_columns(self, field: int, positions: Sequence[int]) -> tuple[str, Doubt]:
        """Word the note and the doubt for columns that fit one field equally well, so that none got it."""
        name, letters = self._fields[field].name, [self._columns[c].letters for c in sorted(positions)]
        message = f"columns {', '.join(letters)} fit the field {name} equally well; none of them was taken"
        evidence = {self._columns[c].letters: len(self._columns[c].sample.values) for c in positions}
        remedy = f'{{"name": "{name}", "synonyms": [the header of the right column]}}'
        return message, Doubt("mapping_doubtful", message, name, evidence, remedy)

    def _explain_unmapped(
        self, column: ColumnIn, likely: Sequence[tuple[int, float]]
    ) -> tuple[str | None, Doubt | None]:
        """Word the note for a column without a field, and a doubt if that is worth a finding. `likely`: fields and
        probabilities, the likeliest first."""
        at = column.position
        if at in self._undecided_fields:
            return self._explain_tied_fields(column, self._undecided_fields[at])
        if at in self._undecided_columns:
            field, others = self._undecided_columns[at]
            return self._explain_tied_columns(field, (at, *others))
        for n in sorted(self._weigher.named(at)):
            if n in self._constant_fields or (at, n) in self._ranks:
                return self._explain_occupied_name(column, n)
        if (contrary := self._explain_contradiction(column)) is not None:
            return contrary
        n, chance = likely[0] if likely else (-1, 0.0)
        if chance >= self._threshold and (n in self._column_of or n in self._constant_fields):
            if n in self._column_of and _is_same_header(column, self._columns[self._column_of[n]]):
                return self._explain_occupied_name(column, n)
            return f"{self._fields[n].name} went to a column that fits better", None
        nearest = self._nearest_free_field(at, likely)
        if nearest is None:
            return "no field is like it", None
        nearest_field, probability = nearest
        name = self._fields[nearest_field].name
        return f"nearest is {name} with {probability:.2f}, below the threshold {self._threshold:.2f}", None

    def _explain_contradiction(self, column: ColumnIn) -> tuple[str, Doubt] | None:
        """Word the note and the doubt for a column that would have got a free field but for a contradiction in its
        header; None if there is no such field."""
        without_contradiction = -model().pair["contrary"]
        least_total = MOST_LOG_ODDS if self._threshold >= 1 else -MOST_LOG_ODDS
        if 0 < self._threshold < 1:
            least_total = log(self._threshold / (1 - self._threshold))
        candidates = [
            (total, n, contradiction)
            for n, contradiction in self._weigher.contrary(column.position).items()
            if contradiction in CONTRARY
            and n not in self._column_of
            and n not in self._constant_fields
            and (total := self._totals[column.position].get(n, -MOST_LOG_ODDS) + without_contradiction) >= least_total
        ]
        if not candidates:
            return None
        _, n, contradiction = max(candidates)
        name = self._fields[n].name
        message = f"the header is like the field {name}, but {CONTRARY[contradiction]}; the column was not taken for it"
        remedy = f'{{"name": "{name}", "synonyms": [the header of this column]}} if it is the right one'
        evidence = {"like": 1, "contradicts": 1}
        return message, Doubt("mapping_doubtful", FindingText(message, "refused"), name, evidence, remedy)

    def _explain_occupied_name(self, column: ColumnIn, field: int) -> tuple[str, Doubt]:
        """Word the note and the doubt for a column whose header names a field that is a constant or went to another
        column."""
        name, count = self._fields[field].name, len(column.sample.values)
        if field in self._constant_fields:
            other = "a constant" if self._fields[field].source is None else "another source"
            message = f"the header is the field {name}, which has {other}; the column was not used for it"
            return message, Doubt("constant_field", message, name, {"constant": 1, "column": count}, "")
        owner = self._columns[self._column_of[field]]
        message = (
            f"the header names the field {name}, which column {owner.letters} was taken for; this column is unmapped"
        )
        evidence = {owner.letters: len(owner.sample.values), column.letters: count}
        remedy = f'a hook after_mapping that returns {{"mapping": {{"{column.letters}": "{name}"}}}}'
        return message, Doubt("duplicate_header", message, name, evidence, remedy)

    def _tier(self, column: int, field: int) -> str:
        """Name the kind of evidence that gave a column its field, in the words of artifact.json."""
        group = self._ranks[column, field].group[0]
        if group == 0:
            return "rule"
        names = {_CONFIRMED_GROUP: "confirmed", _SAME_WORDS_GROUP: "words", _REST_GROUP: "likely"}
        return names.get(int(group), "name")


def _is_same_header(column: ColumnIn, other: ColumnIn) -> bool:
    """Whether two columns have the same header but for blanks and signs."""
    return bool(column.headers and other.headers) and joined(column.headers[0]) == joined(other.headers[0]) != ""
