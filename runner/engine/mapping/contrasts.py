"""Whether a header contradicts a field: another unit or currency, another number or year, the opposite.

Words in common do not make up for a contradiction: `Weight (lb)` is not `weight_kg`, `Phone 2` not `phone_1`, `Budget
2023` not `budget_2024`, `Inactive` not `active`. What the header does not say contradicts nothing, and a field says
what any of its names says.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.spelling import LETTERS_OR_DIGITS, normalized
from runner.engine.mapping.headers import GENERIC, words
from runner.engine.mapping.knowledge import (
    are_opposite,
    concept,
    concepts_of,
    qualifiers_of,
    split_words,
    understood,
    unqualified,
)
from runner.engine.mapping.measures import NOTHING, PERCENT, Measure, measure, measure_of
from runner.engine.values.dates import MONTHS

UNIT: Final = "unit"
CURRENCY: Final = "currency"
NUMBER: Final = "number"
OPPOSITE: Final = "opposite"
OUTDATED: Final = "outdated"
COUNTED: Final = "counted"
ANOTHER: Final = "another"
CONTRARY: Final = {  # what is worth a report; a column of another thing is just another column
    UNIT: "states another unit",
    CURRENCY: "states another currency",
    NUMBER: "has another number, year, month or letter",
    OPPOSITE: "says the opposite",
    OUTDATED: "names a former or invalid one",
    COUNTED: "has a number by which things are called where the field counts them, or the other way round",
}
_YEARS: Final = range(1900, 2100)
_LATER: Final = frozenset({"2", "3", "02", "03"})  # of more than one; a `Zip4` or `ICD-10` is the only one
_RANKS: Final = {"primary": 1, "secondary": 2}
_THINGS: Final = frozenset(
    {"company", "country", "city", "state", "region", "street", "department", "bank", "school", "project", "product"}
)
_IN_AND_OUT: Final = frozenset({"in", "out"})  # at the end of a header; elsewhere `in` is a word like any other
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz")


class _Contrasts(NamedTuple):
    ordinals: Mapping[str, int]
    negations: frozenset[str]
    of_truths: frozenset[str]  # of a yes or no also those that mean other things elsewhere: a number, a step
    negating: tuple[str, ...]  # what words start with
    languages: frozenset[str]
    outdated: frozenset[str]
    ended: frozenset[str]  # what is over, of what has no date


@cache
def _contrasts() -> _Contrasts:
    raw: dict[str, Any] = json.loads((Path(__file__).parent / "contrasts.json").read_bytes())
    negations = frozenset(raw["negations"].split())
    return _Contrasts(
        {spelled: int(number) for number, text in raw["ordinals"].items() for spelled in text.split()},
        negations,
        negations | frozenset(raw["negations_of_truths"].split()),
        tuple(raw["negating"].split()),
        frozenset(raw["languages"].split()),
        frozenset(raw["outdated"].split()),
        frozenset(raw["ended"].split()),
    )


class Stated(NamedTuple):
    """What a text says that another may contradict."""

    tokens: tuple[str, ...]
    words: frozenset[str]
    order: tuple[str, ...]  # the words as they follow each other
    plain: frozenset[str]  # word by word, whatever several of them mean together
    measure: Measure
    numbers: frozenset[int]
    years: frozenset[int]
    months: frozenset[int]


@lru_cache(maxsize=4096)
def stated(text: str) -> Stated:
    tokens = tuple(normalized(text).split())
    numbers, years = set[int](), set[int]()
    for token in tokens:
        if (known := _contrasts().ordinals.get(token)) is not None:
            numbers.add(known)
        elif not token.isalpha() and not (measure(token).units and len(tokens) > 1):
            previous = ""
            for part in LETTERS_OR_DIGITS.findall(token):
                if part.isdecimal() and len(part) <= 4:
                    number = int(part) + (2000 if previous == "fy" and len(part) == 2 else 0)
                    (years if number in _YEARS else numbers).add(number)
                previous = part
    own_words = words(text)
    if not numbers:
        numbers.update(number for word, number in _RANKS.items() if word in own_words)
    months = frozenset(MONTHS[token] for token in tokens if len(token) > 2 and token in MONTHS)
    plain = frozenset(word for token in tokens for word in split_words(token)[0])
    return Stated(
        tokens, own_words, understood(text).words, plain, measure(text), frozenset(numbers), frozenset(years), months
    )


class FieldStated:
    """What a field's names say together."""

    def __init__(self, field: Field) -> None:
        names = [name for name, _ in field.names]
        statements = self._names = [stated(name) for name in names]
        self.is_truth = field.type == "boolean"
        self.is_money = field.type == "money"
        ends = self.is_truth or field.type in ("date", "datetime", "time", "enum")
        self._outdated = _contrasts().outdated | (frozenset() if ends else _contrasts().ended)
        self.words = frozenset[str]().union(*(one.words for one in statements))
        self.plain = frozenset[str]().union(*(one.plain for one in statements))
        self.tokens = frozenset(token for one in statements for token in one.tokens)
        self.ends = frozenset(one.tokens[-1] for one in statements if one.tokens)
        self.numbers = frozenset[int]().union(*(one.numbers for one in statements))
        self.years = frozenset[int]().union(*(one.years for one in statements))
        self.months = frozenset[int]().union(*(one.months for one in statements))
        self.measure = measure_of(names)
        if field.type == "percent" and not self.measure.currencies:
            self.measure = self.measure._replace(units={**self.measure.units, PERCENT: frozenset({PERCENT})})

    def contradiction(self, header: str) -> str:
        """What a header contradicts it in; empty if in nothing."""
        one = stated(header)
        if one.measure is not NOTHING:
            if differs := one.measure.contradicts(self.measure):
                return differs
            if self.is_money and PERCENT in one.measure.units and not one.measure.currencies:
                return UNIT
        if self._is_numbered_otherwise(one):
            return NUMBER
        if self._is_opposite(one):
            return OPPOSITE
        if self._is_outdated(one):
            return OUTDATED
        if self._counts_otherwise(one):
            return COUNTED
        return ANOTHER if self._is_of_another(one) else ""

    def is_another_one(self, header: str) -> bool:
        """Whether the header has an ordinal above one and the field has no number, or the other way round."""
        one = stated(header)
        return (_is_second(one) and not self.numbers) or (not one.numbers and any(map(_is_second, self._names)))

    def leaves_open(self, header: str, other: str) -> bool:
        """Whether two headers have the same words but for opposite ones, and the field has neither: `Qty ordered` and
        `Qty shipped` for `quantity`. Of a primary and a secondary one, the primary one is meant.
        """
        one, two = stated(header).tokens, stated(other).tokens
        if len(one) > 1 and one[:-1] == two[:-1] and {one[-1], two[-1]} == _IN_AND_OUT:
            return self.tokens.isdisjoint(_IN_AND_OUT)
        ours, theirs = stated(header).plain, stated(other).plain
        left, right = ours - theirs, theirs - ours
        if not (ours & theirs and are_opposite(left, right)):
            return False
        return bool(unqualified(left)) and (left | right).isdisjoint(self.plain | self.words)

    def _is_numbered_otherwise(self, one: Stated) -> bool:
        pairs = ((one.numbers, self.numbers), (one.years, self.years), (one.months, self.months))
        if any(ours and theirs and ours.isdisjoint(theirs) for ours, theirs in pairs):
            return True
        last = one.tokens[-1] if len(one.tokens) > 1 else ""
        return last not in self.ends and any(
            last in kind and not self.ends.isdisjoint(kind) for kind in (_LETTERS, _contrasts().languages)
        )

    def _is_of_another(self, one: Stated) -> bool:
        """Whether the header names something of the field's subject whose name or the like it is: `Employee firm name`
        for `employee_name`. A customer's company is the customer.
        """
        found = [word for word in one.order[:-1] if word in _THINGS]
        thing = one.order[-2] if len(one.order) > 2 else ""
        if (
            found != [thing]
            or thing in self.words
            or not all(name.order[-1:] == one.order[-1:] for name in self._names)
        ):
            return False
        subjects = {name.order[-2] for name in self._names if len(name.order) > 1}
        if not subjects or not subjects <= set(one.order[:-2]):
            return False
        kinds = {concept(name).values for subject in subjects for name, _ in concepts_of(subject)}
        return not (thing == "company" and "company" in kinds)

    def _is_outdated(self, one: Stated) -> bool:
        """Whether the header names what was before or is no longer valid, and the field does not."""
        outdated = self._outdated.intersection(one.tokens)
        return bool(outdated) and len(one.tokens) > 1 and self._outdated.isdisjoint(self.tokens | self.words)

    def _counts_otherwise(self, one: Stated) -> bool:
        """Whether one counts things and the other has their numbers: `number_of_guests` and `Guest number`."""
        counts, calls = any(map(_counts, self._names)), any(map(_calls, self._names))
        return counts != calls and ((counts and _calls(one)) or (calls and _counts(one)))

    def _is_opposite(self, one: Stated) -> bool:
        negations = _contrasts().of_truths if self.is_truth else _contrasts().negations
        ours = any(t in negations for t in one.tokens) or _negates(one.tokens, self.words)
        theirs = not negations.isdisjoint(self.tokens) or _negates(self.tokens, one.words)
        if ours or theirs:
            return ours != theirs
        return are_opposite(one.words, self.words) or are_opposite(one.plain, self.plain | self.words)


def _counts(one: Stated) -> bool:
    """Whether a text is `number of guests` or the like."""
    if len(one.order) > 2 and one.order[:2] == ("number", "of"):
        return one.tokens[-1].endswith("s")
    return len(one.order) > 1 and one.order[0] in ("quantity", "count") and "number" not in one.plain


def _calls(one: Stated) -> bool:
    """Whether a text is `guest number` or the like."""
    return len(one.order) > 1 and one.order[-1] == "number" and not _counts(one)


def _is_second(one: Stated) -> bool:
    """Whether a text names the second of its kind, or a later one: `Phone 2`, `Second address`, `email2`."""
    last = LETTERS_OR_DIGITS.findall(one.tokens[-1])[-1] if one.tokens else ""
    ordinals = {int(last)} if last in _LATER else {_contrasts().ordinals.get(t, 0) for t in one.tokens}
    return max(ordinals | {_RANKS.get(w, 0) for w in one.words}) > 1 and not measure(one.tokens[-1]).units


def is_qualified(header: str) -> bool:
    """Whether a header has a word that tells it from another column of its kind."""
    return bool(qualifiers_of(stated(header).plain)) or stated(header).tokens[-1:] in (("in",), ("out",))


@lru_cache(maxsize=4096)
def _negated(token: str) -> frozenset[str]:
    """What a word is the opposite of by how it starts: `inactive`, `unbezahlt`, `nonmember`."""
    found = frozenset[str]()
    for start in _contrasts().negating:
        base = token[len(start) :] if token.startswith(start) else ""
        if len(base) > (3 if token.isascii() else 1) and base not in GENERIC:
            meant, known = split_words(base)
            found |= {base, *(meant if known == len(base) else ())}
    return found


def _negates(tokens: Iterable[str], others: frozenset[str]) -> bool:
    return any(not others.isdisjoint(_negated(token)) for token in tokens)
