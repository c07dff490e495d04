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
from runner.engine.memory.recall import Likely, Recall

PLAIN: Final = 0.85  # what a header plainly means
# Log-odds of nearness. Words or values alone order the fields of a column, but for at most even odds; a little more
# tells fields apart for which all else is the same, and words and values that agree are evidence.
PER_NEAR: Final = 3.0
MOST_BY_NEARNESS: Final = 0.0
PER_NEAR_ALWAYS: Final = 0.3
PER_AGREEMENT: Final = 3.0
AGREES: Final = 0.3  # nearness of values that do not speak against a field, though they are not its allowed ones
_MOST: Final = 3.0  # log-odds that letters alone may give
_FAR: Final = (0.0, "")
_NOWHERE: Final = Near()
_NOTHING: Final = frozenset[str]()
_NOBODY: Final = "\0"  # the name of no field
_OF_HEADERS: Final = frozenset({"alike", "same_words", "meaning", "confirmed", "said", "near", "described"})
_OF_SIMILAR: Final = frozenset({"similar_words", "alike", "alike_squared"})
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
        """Compare a column's header with the fields; `likely`: what learnt headers of other spelling say about this
        one."""
        self._target = target
        self.column = column
        # Concept -> how plainly the header means it.
        self._meaning = dict(knowledge.concepts_of(column.headers[0])) if column.headers else {}
        # What was learnt of this very header.
        self._exact = next((memory for h in column.headers if (memory := recall.exact(h)) is not None), None)
        self._likely = likely
        self._learnt = len(recall) > 0
        self._found: dict[int, dict[str, float]] = {}  # what each field's numbers are, once they were asked for
        self._of_values: dict[int, dict[str, float]] = {}  # of fields whose type, pattern or values are tested
        self._of_meaning: dict[tuple[tuple[str, ...], frozenset[str]], dict[str, float]] = {}  # by a field's concepts
        self.contrary: dict[int, str] = {}  # fields that the header contradicts, and in what
        self.headers = target.names.like(column.headers)  # field -> how alike, for those with a name like the header
        self.named = frozenset(n for n, likeness in self.headers.items() if likeness.exact is not None)
        self._of_role = target.names.of_role(column.headers)
        is_same = any(likeness.alike >= SAME_WORDS * PART for likeness in self.headers.values())
        self._near_to = {} if is_same else target.near(column.headers, column.sample.texts)
        confirmed = () if self._exact is None else self._exact.labels()
        # Fields that the header says something about, be it its words, what they mean or what was confirmed.
        self._about = self.headers.keys() | {n for name in self._meaning for n in target.akin.get(name, ())}
        self._about |= {target.called[name] for name in confirmed if name in target.called}
        self._about |= self._near_to.keys()

    def sure(self) -> list[int]:
        """The fields that the column plainly is: by name, by what its header means, or because it was confirmed."""
        return [n for n in self._about if self._is_plainly(n)]

    def _is_plainly(self, n: int) -> bool:
        """Whether the column plainly is a field."""
        meant = self._meant(n)
        if n in self.named or meant.get("meaning_plain"):
            return True
        return is_confirmed(self._confirmed(self._target.fields[n].name, meant))

    def numbers(self, n: int) -> Mapping[str, float]:
        """Return what speaks for a field, by the names of matcher.NAMES; neighbours and rules are not in it."""
        if n not in self._found:
            numbers = self._all_numbers(n)
            if n in self._near_to and (raised := self._raised_by(n, model().pair["prior"] + weighed(numbers))):
                numbers["nearness"] = raised
            self._found[n] = numbers
        return self._found[n]

    def _raised_by(self, n: int, total: float) -> float:
        """Return the log-odds that nearness adds to those of a pair."""
        near = self._near_to[n]
        nearness = near.words + near.values
        softened = -log(
            exp(-total - PER_NEAR * nearness) + exp(-MOST_BY_NEARNESS)
        )  # the lesser of the two, and below it
        return max(0.0, softened - total) + PER_NEAR_ALWAYS * nearness + PER_AGREEMENT * near.words * near.values

    def _values(self, n: int) -> dict[str, float]:
        """Return what the column's values say about a field; remembered where its values have to be tested."""
        if not self._target.tested[n]:
            return self._target.values(n, self.column.sample)
        if n not in self._of_values:
            self._of_values[n] = self._target.values(n, self.column.sample)
        return self._of_values[n]

    def _all_numbers(self, n: int) -> dict[str, float]:
        """Work out every number by which a field is weighed: of its header, its meaning, memories and values.

        Remembers in `contrary` what the header contradicts the field in.
        """
        header = self.headers.get(n)
        numbers = {} if header is None else self._target.names.numbers(self.column.headers, header)
        values = self._values(self._target.declared[n])
        if n in self.named:
            return numbers | values
        meant = self._meant(n)
        numbers |= (
            meant
            | self._confirmed(self._target.fields[n].name, meant)
            | self._near(self._target.fields[n].name)
            | values
        )
        if n in self._near_to and (described := self._near_to[n].described):
            numbers["described"] = described
        if meant.get("meaning_plain") and "similar_words" in numbers:  # the same knowledge twice
            numbers = {name: x for name, x in numbers.items() if name not in _OF_SIMILAR}
        if _OF_HEADERS.isdisjoint(numbers):
            numbers["nothing_said"] = 1.0
            if self._target.crowd and n not in self._near_to:
                numbers["many_fields"] = self._target.crowd
        if self._is_anothers(n, meant):
            numbers["other_role"] = 1.0
            numbers.pop("covers", None)  # of a header that has all words of the field, and this one
        if self._near_to.get(n, _NOWHERE).values >= AGREES:
            numbers.pop("allowed_against", None)
        if how := self._contradiction(n, numbers):
            numbers["contrary"] = 1.0
            self.contrary[n] = how
        return numbers

    def _contradiction(self, n: int, numbers: Mapping[str, float]) -> str:
        """Name in what the header contradicts the field; empty if in nothing, or if the header was confirmed for it."""
        if n not in self._about or not self.column.headers or is_confirmed(numbers):
            return ""
        return self._target.statements_of(n).contradiction(self.column.headers[0])

    def _is_anothers(self, n: int, meant: Mapping[str, float]) -> bool:
        """Whether the header is like the field but for somebody's role, and neither plain nor confirmed as it is."""
        if self._of_role is None or n in self._of_role or self._exact is not None:
            return False
        meaning = meant.get("meaning", 0.0)
        return meaning < PLAIN and (meaning > 0 or n in self.headers)

    def totals(self, always: Container[int]) -> dict[int, float]:
        """Weigh the `numbers` of each field, which are made only where the header is about that field in particular.

        Fields that only the header's letters speak for are left out, but for those that are `always` wanted.
        """
        target, weights = self._target, model().pair
        of_values = {n: self._values(n) for n in target.distinct}
        values = {n: sum([weights[name] * x for name, x in numbers.items()]) for n, numbers in of_values.items()}
        meant = self._meant(None)
        others = meant | self._confirmed(_NOBODY, meant)
        least = weights["prior"] + weighed(others)
        of_letters, of_lead, of_others = weights["letters"], weights["letters_lead"], weights["near_other"]
        of_near, of_square, of_nothing = weights["near"], weights["near_squared"], weights["nothing_said"]
        letters = lead = near = other = 0.0
        totals: dict[int, float] = {}
        for n, (name, declared) in enumerate(zip(target.called, target.declared, strict=True)):
            if n in self._about:
                numbers = self.numbers(n)
                if n in always or not numbers.keys() <= _NO_REASONS:
                    totals[n] = weights["prior"] + weighed(numbers)
                continue
            if self._learnt:
                letters, lead, near, other = self._letters(name)
            if near or others or of_values[declared] or n in always:
                of_header = (of_near + of_square * near) * near if near else of_nothing - target.crowd
                totals[n] = (
                    least + values[declared] + of_letters * letters + of_lead * lead + of_others * other + of_header
                )
        return totals

    def like(self, n: int) -> str:
        """The confirmed header of a field that is most like this one; empty if there is none."""
        return self._likely.nearest.get(self._target.fields[n].name, _FAR)[1]

    def _meant(self, n: int | None) -> dict[str, float]:
        """Return the numbers for what the header means in general, against what a field is (None: a field of no
        meaning)."""
        concepts, kin = ((), _NOTHING) if n is None else (self._target.concepts[n], self._target.kin[n])
        known = self._of_meaning.get((concepts, kin))
        if known is not None:
            return known
        numbers = self._of_meaning[concepts, kin] = {}
        own_score = max((self._meaning.get(name, 0.0) for name in concepts), default=0.0)
        other_meaning = max(
            ((score, name) for name, score in self._meaning.items() if name not in concepts and name not in kin),
            default=(0.0, ""),
        )
        if own_score:
            numbers["meaning"] = own_score
            numbers["meaning_plain"] = float(own_score >= PLAIN)
        if other_meaning[0] > own_score:
            numbers["other_meaning"] = other_meaning[0] - own_score
            if other_meaning[1] not in self._target.being:
                numbers["foreign"] = other_meaning[0] - own_score
            if knowledge.is_technical(other_meaning[1]):
                numbers["technical"] = 1.0
        return numbers

    def _confirmed(self, field: str, meant: Container[str]) -> dict[str, float]:
        """Return the numbers for what was confirmed about this very header; empty if nothing was."""
        exact = self._exact
        if exact is None:
            return {}
        if exact.person_field is not None:
            return {"said" if exact.person_field == field else "said_other": 1.0}
        if "technical" in meant:  # counts alone do not make a row number an identifier
            return {}
        numbers: dict[str, float] = {}
        if share := exact.share(field):
            numbers["confirmed"] = share
            numbers["confirmed_often"] = share * min(3.0, log2(1 + exact.count(field)))
        if share < 1:
            numbers["confirmed_other"] = 1 - share
        return numbers

    def _letters(self, field: str) -> tuple[float, float, float, float]:
        """Return what headers of other spelling say: how likely the field is, how far ahead of the next, how alike its
        most similar header is, and that of the others."""
        likely = self._likely
        own_chance = likely.chances.get(field, -_MOST)
        best, chance, second = likely.best
        lead = own_chance - (second if best == field else chance)
        closest, alike, next_alike = likely.closest
        return (
            -_MOST if own_chance < -_MOST else min(_MOST, own_chance),
            -_MOST if lead < -_MOST else min(_MOST, lead),
            likely.nearest.get(field, _FAR)[0],
            next_alike if closest == field else alike,
        )

    def _near(self, field: str) -> dict[str, float]:
        """Return the numbers for how near confirmed headers are to this one, for a field and for any other; empty if
        nothing was learnt."""
        if not self._learnt:
            return {}
        letters, lead, near, other = self._letters(field)
        numbers = {"letters": letters, "letters_lead": lead, "near_other": other}
        return numbers | {"near": near, "near_squared": near * near} if near else numbers
