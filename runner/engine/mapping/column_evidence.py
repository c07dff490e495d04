"""What speaks for each field of one column, in numbers: its header's words, their meaning, what was learnt, its values.

`evidence.Weigher` has one of these per column. Every field gets its log-odds (`totals`); the numbers that they are made
of are put together only for fields that the header is about in particular, and for those that are asked for.
"""

from collections.abc import Container, Mapping
from math import exp, log, log2
from typing import Final, NamedTuple

from runner.engine.mapping import knowledge
from runner.engine.mapping.headers import PART, SAME_WORDS
from runner.engine.mapping.matcher import model, weighed
from runner.engine.mapping.nearness import Near
from runner.engine.mapping.sample import Sample
from runner.engine.mapping.target import Target
from runner.engine.memory.recall import Likely, Recall, SimilarHeader

PLAIN: Final = 0.85  # what a header plainly means
# Log-odds of nearness. Words or values alone order the fields of a column, but for at most even odds; a little more
# tells fields apart for which all else is the same, and words and values that agree are evidence.
PER_NEAR: Final = 3.0
MOST_BY_NEARNESS: Final = 0.0
PER_NEAR_ALWAYS: Final = 0.3
PER_AGREEMENT: Final = 3.0
AGREES: Final = 0.3  # nearness of values that do not speak against a field, though they are not its allowed ones
_MOST_BY_LETTERS: Final = 3.0  # log-odds that letters alone may give
MOST_LOG_ODDS: Final = 30.0  # that become odds
_FAR: Final = SimilarHeader(0.0, "")
_NOWHERE: Final = Near()
_NOTHING: Final = frozenset[str]()
_NOBODY: Final = "\0"  # the name of no field
_HEADER_NUMBERS: Final = frozenset({"alike", "same_words", "meaning", "confirmed", "said", "near", "described"})
_SIMILARITY_NUMBERS: Final = frozenset({"similar_words", "alike", "alike_squared"})
_NO_REASONS: Final = frozenset({"near_other", "letters", "letters_lead", "nothing_said"})


class ColumnIn(NamedTuple):
    """A column of a source table as mapping sees it."""

    position: int  # 0-based within the table
    headers: tuple[str, ...]  # the whole name, then its last part where headers are stacked; none if generated
    sample: Sample
    letters: str = ""


def is_confirmed(numbers: Mapping[str, float]) -> bool:
    """Whether the numbers of a pair say that its header was confirmed for its field, mostly or by a person."""
    return numbers.get("confirmed", 0.0) > 0.5 or "said" in numbers


class ColumnEvidence:
    """One column against all fields: its header's words, what they mean in general, what was learnt, its values.

    Fields are named by their number. Numbers are made when they are first asked for and then remembered; `contrary`
    grows with them.
    """

    def __init__(self, target: Target, column: ColumnIn, recall: Recall, likely: Likely) -> None:
        """Look up once, for one column, what its header has in common with every field; no field is weighed yet.
        `likely`: the fields that learnt headers of other spelling point to."""
        self._target = target
        self.column = column
        # Concept -> how plainly the header means it.
        self._meaning = dict(knowledge.concepts_of(column.headers[0])) if column.headers else {}
        # What was learnt of this very header.
        self._confirmed_about_header = next(
            (memory for h in column.headers if (memory := recall.exact(h)) is not None), None
        )
        self._likely = likely
        self._learnt = len(recall) > 0
        # The numbers of each field, once they were asked for.
        self._numbers_by_field: dict[int, dict[str, float]] = {}
        self._tested_values: dict[int, dict[str, float]] = {}  # of fields whose type, pattern or values are tested
        # By a field's concepts and those that it is in part.
        self._numbers_by_meaning: dict[tuple[tuple[str, ...], frozenset[str]], dict[str, float]] = {}
        self.contrary: dict[int, str] = {}  # fields that the header contradicts, and in what
        self.headers = target.names.like(column.headers)  # field -> how alike, for those with a name like the header
        self.named = frozenset(n for n, likeness in self.headers.items() if likeness.exact is not None)
        self._of_role = target.names.of_role(column.headers)
        is_same = any(likeness.alike >= SAME_WORDS * PART for likeness in self.headers.values())
        self._near_to = {} if is_same else target.near(column.headers, column.sample.texts)
        confirmed = () if self._confirmed_about_header is None else self._confirmed_about_header.labels()
        # Fields that the header says something about, be it its words, what they mean or what was confirmed.
        self._fields_concerned = self.headers.keys() | {n for name in self._meaning for n in target.akin.get(name, ())}
        self._fields_concerned |= {target.called[name] for name in confirmed if name in target.called}
        self._fields_concerned |= self._near_to.keys()

    def sure(self) -> list[int]:
        """Return the fields that the column plainly is: by name, by what its header means, or because it was
        confirmed."""
        return [n for n in self._fields_concerned if self._is_plainly(n)]

    def _is_plainly(self, n: int) -> bool:
        """Whether the column plainly is field number `n`: by name, by what its header means, or because that was
        confirmed."""
        meant = self._meaning_numbers(n)
        if n in self.named or meant.get("meaning_plain"):
            return True
        return is_confirmed(self._confirmed_numbers(self._target.fields[n].name, meant))

    def numbers(self, n: int) -> Mapping[str, float]:
        """Return the named numbers (matcher.NAMES) that speak for field number `n`, computed at the first call and then
        remembered; neighbours and Python rules are not among them."""
        if n not in self._numbers_by_field:
            numbers = self._compute_numbers(n)
            if n in self._near_to and (bonus := self._nearness_bonus(n, model().pair["prior"] + weighed(numbers))):
                numbers["nearness"] = bonus
            self._numbers_by_field[n] = numbers
        return self._numbers_by_field[n]

    def _nearness_bonus(self, n: int, total: float) -> float:
        """Return by how much nearness in words and values raises a pair's log-odds, which are `total` without it."""
        near = self._near_to[n]
        nearness = near.words + near.values
        # The smaller of the total with nearness and the most that nearness may lead to, without an edge between them.
        softened_minimum = -log(exp(-total - PER_NEAR * nearness) + exp(-MOST_BY_NEARNESS))
        return (
            max(0.0, softened_minimum - total) + PER_NEAR_ALWAYS * nearness + PER_AGREEMENT * near.words * near.values
        )

    def _value_numbers(self, n: int) -> dict[str, float]:
        """Return the named numbers by which the column's values speak for field number `n`; remembers them if its type,
        pattern or allowed values had to be tried."""
        if not self._target.tested[n]:
            return self._target.values(n, self.column.sample)
        if n not in self._tested_values:
            self._tested_values[n] = self._target.values(n, self.column.sample)
        return self._tested_values[n]

    def _compute_numbers(self, n: int) -> dict[str, float]:
        """Compute every named number by which field number `n` is weighed, from the header, its meaning, confirmed
        headers and the values; a contradiction between header and field is also stored in `contrary`."""
        header = self.headers.get(n)
        numbers = {} if header is None else self._target.names.numbers(self.column.headers, header)
        values = self._value_numbers(self._target.declared[n])
        if n in self.named:
            return numbers | values
        meant = self._meaning_numbers(n)
        numbers |= (
            meant
            | self._confirmed_numbers(self._target.fields[n].name, meant)
            | self._spelling_numbers(self._target.fields[n].name)
            | values
        )
        if n in self._near_to and (described := self._near_to[n].described):
            numbers["described"] = described
        if meant.get("meaning_plain") and "similar_words" in numbers:  # the same knowledge twice
            numbers = {name: x for name, x in numbers.items() if name not in _SIMILARITY_NUMBERS}
        if _HEADER_NUMBERS.isdisjoint(numbers):
            numbers["nothing_said"] = 1.0
            if self._target.crowd and n not in self._near_to:
                numbers["many_fields"] = self._target.crowd
        if self._is_of_other_role(n, meant):
            numbers["other_role"] = 1.0
            numbers.pop("covers", None)  # of a header that has all words of the field, and this one
        if self._near_to.get(n, _NOWHERE).values >= AGREES:
            numbers.pop("allowed_against", None)
        if how := self._contradiction(n, numbers):
            numbers["contrary"] = 1.0
            self.contrary[n] = how
        return numbers

    def _contradiction(self, n: int, numbers: Mapping[str, float]) -> str:
        """Name the kind of contradiction between the header and field number `n`, such as another unit; empty if there
        is none, or if a person or habit confirmed the header for it."""
        if n not in self._fields_concerned or not self.column.headers or is_confirmed(numbers):
            return ""
        return self._target.statements_of(n).contradiction(self.column.headers[0])

    def _is_of_other_role(self, n: int, meant: Mapping[str, float]) -> bool:
        """Whether the header names the field's thing for somebody else (`Owner street` for `street`) and neither means
        the field plainly nor was confirmed."""
        if self._of_role is None or n in self._of_role or self._confirmed_about_header is not None:
            return False
        meaning = meant.get("meaning", 0.0)
        return meaning < PLAIN and (meaning > 0 or n in self.headers)

    def total_of_only_field(self, n: int, neighbour_shares: Mapping[int, float], least_likely: float) -> float | None:
        """Return the log-odds of field number `n`, which the header names, if every other field is less likely than
        `least_likely` whatever the types of the values are; None if types have to be tried."""
        totals = self.totals(neighbour_shares, tries_types=False)
        own_total = totals.pop(n)
        most = min(MOST_LOG_ODDS, own_total) + log(least_likely / 2)  # half of it is rounded to less
        of_neighbour = model().pair["neighbour"]
        is_only = all(total + of_neighbour * neighbour_shares.get(m, 0.0) < most for m, total in totals.items())
        return own_total if is_only else None

    def totals(self, always: Container[int], *, tries_types: bool = True) -> dict[int, float]:
        """Return the log-odds of every field for this column; field -> log-odds against "no field".

        The single `numbers` are computed (and remembered) only for fields that the header concerns; the others share
        one sum. Fields that nothing but the header's letters speaks for are left out, except those in `always`.
        `tries_types`: if not, values count as of every type that the header does not concern: the most they can say.
        """
        target, weights = self._target, model().pair
        of_values = {
            n: self._value_numbers(n) if tries_types else target.values(n, self.column.sample, tries_type=False)
            for n in target.distinct
        }
        values = {n: sum([weights[name] * x for name, x in numbers.items()]) for n, numbers in of_values.items()}
        meant = self._meaning_numbers(None)
        others = meant | self._confirmed_numbers(_NOBODY, meant)
        least = weights["prior"] + weighed(others)
        of_letters, of_lead, of_others = weights["letters"], weights["letters_lead"], weights["near_other"]
        of_near, of_square, of_nothing = weights["near"], weights["near_squared"], weights["nothing_said"]
        letters = lead = near = other = 0.0
        totals: dict[int, float] = {}
        for n, (name, declared) in enumerate(zip(target.called, target.declared, strict=True)):
            if n in self._fields_concerned:
                numbers = self.numbers(n)
                if n in always or not numbers.keys() <= _NO_REASONS:
                    totals[n] = weights["prior"] + weighed(numbers)
                continue
            if self._learnt:
                letters, lead, near, other = self._compare_spellings(name)
            if near or others or of_values[declared] or n in always:
                of_header = (of_near + of_square * near) * near if near else of_nothing - target.crowd
                totals[n] = (
                    least + values[declared] + of_letters * letters + of_lead * lead + of_others * other + of_header
                )
        return totals

    def like(self, n: int) -> str:
        """Return the confirmed header of field number `n` that is most like this one; empty if there is none."""
        return self._likely.nearest.get(self._target.fields[n].name, _FAR).text

    def _meaning_numbers(self, n: int | None) -> dict[str, float]:
        """Compare what the header means in general with the concepts of field number `n` and return the named numbers
        of that; None stands for a field without a meaning. Remembered by concepts."""
        concepts, kin = ((), _NOTHING) if n is None else (self._target.concepts[n], self._target.kin[n])
        remembered = self._numbers_by_meaning.get((concepts, kin))
        if remembered is not None:
            return remembered
        numbers = self._numbers_by_meaning[concepts, kin] = {}
        own_score = max((self._meaning.get(name, 0.0) for name in concepts), default=0.0)
        other_score, other_concept = max(
            ((score, name) for name, score in self._meaning.items() if name not in concepts and name not in kin),
            default=(0.0, ""),
        )
        if own_score:
            numbers["meaning"] = own_score
            numbers["meaning_plain"] = float(own_score >= PLAIN)
        if other_score > own_score:
            numbers["other_meaning"] = other_score - own_score
            if other_concept not in self._target.being:
                numbers["foreign"] = other_score - own_score
            if knowledge.is_technical(other_concept):
                numbers["technical"] = 1.0
        return numbers

    def _confirmed_numbers(self, field: str, meant: Container[str]) -> dict[str, float]:
        """Return the named numbers of what people or earlier files confirmed about exactly this header, for or against
        `field`; empty if nothing was. `meant`: names of the numbers of the header's meaning."""
        confirmed = self._confirmed_about_header
        if confirmed is None:
            return {}
        if confirmed.person_field is not None:
            return {"said" if confirmed.person_field == field else "said_other": 1.0}
        if "technical" in meant:  # counts alone do not make a row number an identifier
            return {}
        numbers: dict[str, float] = {}
        if share := confirmed.share(field):
            numbers["confirmed"] = share
            numbers["confirmed_often"] = share * min(3.0, log2(1 + confirmed.count(field)))
        if share < 1:
            numbers["confirmed_other"] = 1 - share
        return numbers

    def _compare_spellings(self, field: str) -> tuple[float, float, float, float]:
        """Return what learnt headers of other spelling say about `field`: its log-odds, its lead over the next field,
        the likeness of its most similar header and that of the most similar header of any other field."""
        likely = self._likely
        own_chance = likely.chances.get(field, -_MOST_BY_LETTERS)
        likeliest_field, best_chance, second_chance = likely.best
        lead = own_chance - (second_chance if likeliest_field == field else best_chance)
        closest_field, alike, next_alike = likely.closest
        return (
            -_MOST_BY_LETTERS if own_chance < -_MOST_BY_LETTERS else min(_MOST_BY_LETTERS, own_chance),
            -_MOST_BY_LETTERS if lead < -_MOST_BY_LETTERS else min(_MOST_BY_LETTERS, lead),
            likely.nearest.get(field, _FAR).likeness,
            next_alike if closest_field == field else alike,
        )

    def _spelling_numbers(self, field: str) -> dict[str, float]:
        """Return the named numbers of `_compare_spellings` for `field`; empty if the workflow has learnt nothing."""
        if not self._learnt:
            return {}
        letters, lead, near, other = self._compare_spellings(field)
        numbers = {"letters": letters, "letters_lead": lead, "near_other": other}
        return numbers | {"near": near, "near_squared": near * near} if near else numbers
