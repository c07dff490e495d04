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
from runner.engine.values.calendar_names import MONTHS

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
_LATER_NUMBERS: Final = frozenset({"2", "3", "02", "03"})  # of more than one; a `Zip4` or `ICD-10` is the only one
_RANKS: Final = {"primary": 1, "secondary": 2}
_THING_WORDS: Final = frozenset(
    {"company", "country", "city", "state", "region", "street", "department", "bank", "school", "project", "product"}
)
_IN_AND_OUT: Final = frozenset({"in", "out"})  # at the end of a header; elsewhere `in` is a word like any other
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz")


class _Contrasts(NamedTuple):
    """The words of contrasts.json that set names apart."""

    ordinals: Mapping[str, int]
    negations: frozenset[str]
    of_truths: frozenset[str]  # of a yes or no also those that mean other things elsewhere: a number, a step
    negating: tuple[str, ...]  # what words start with
    languages: frozenset[str]
    outdated: frozenset[str]
    ended: frozenset[str]  # what is over, of what has no date


@cache
def _contrasts() -> _Contrasts:
    """Load contrasts.json, the words that set names apart, once per process."""
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

    tokens: tuple[str, ...]  # as they are written
    words: frozenset[str]  # in their usual spelling
    order: tuple[str, ...]  # the words as they follow each other
    plain: frozenset[str]  # word by word, whatever several of them mean together
    measure: Measure
    numbers: frozenset[int]
    years: frozenset[int]
    months: frozenset[int]


@lru_cache(maxsize=4096)
def statements_in(text: str) -> Stated:
    """Parse a header or a field's name into what it states: words, ordinals, years, months and units; cached by
    text."""
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
    """What a field's names say together, to be compared with what a header says."""

    def __init__(self, field: Field) -> None:
        """Gather from all names of a field what a header could contradict: words, numbers, years, months, units."""
        names = [name for name, _ in field.names]
        statements = self._names = [statements_in(name) for name in names]
        self.is_truth = field.type == "boolean"
        self.is_money = field.type == "money"
        ends = self.is_truth or field.type in ("date", "datetime", "time", "enum")
        self._outdated = _contrasts().outdated | (frozenset() if ends else _contrasts().ended)
        self.words = frozenset[str]().union(*(statement.words for statement in statements))
        self.plain = frozenset[str]().union(*(statement.plain for statement in statements))
        self.tokens = frozenset(token for statement in statements for token in statement.tokens)
        self.ends = frozenset(statement.tokens[-1] for statement in statements if statement.tokens)  # last tokens
        self.numbers = frozenset[int]().union(*(statement.numbers for statement in statements))
        self.years = frozenset[int]().union(*(statement.years for statement in statements))
        self.months = frozenset[int]().union(*(statement.months for statement in statements))
        self.measure = measure_of(names)
        if field.type == "percent" and not self.measure.currencies:
            self.measure = self.measure._replace(units={**self.measure.units, PERCENT: frozenset({PERCENT})})

    def contradiction(self, header: str) -> str:
        """Name what a header contradicts the field in, the plainest first (UNIT, CURRENCY, NUMBER, OPPOSITE, OUTDATED,
        COUNTED, ANOTHER); empty if in nothing."""
        header_states = statements_in(header)
        if header_states.measure is not NOTHING:
            if differs := header_states.measure.contradicts(self.measure):
                return differs
            if self.is_money and PERCENT in header_states.measure.units and not header_states.measure.currencies:
                return UNIT
        if self._is_numbered_otherwise(header_states):
            return NUMBER
        if self._is_opposite(header_states):
            return OPPOSITE
        if self._is_outdated(header_states):
            return OUTDATED
        if self._counts_otherwise(header_states):
            return COUNTED
        return ANOTHER if self._is_of_another(header_states) else ""

    def is_another_one(self, header: str) -> bool:
        """Whether only one of the two, the header or the field, is the second of its kind or a later one: `Phone 2` for
        `phone`."""
        stated = statements_in(header)
        is_header_second = _is_second(stated) and not self.numbers
        return is_header_second or (not stated.numbers and any(map(_is_second, self._names)))

    def leaves_open(self, header: str, other: str) -> bool:
        """Whether two headers differ only by opposite words and the field has neither of them: `Qty ordered` and `Qty
        shipped` for `quantity`.

        Of a primary and a secondary one, the primary one is meant.
        """
        tokens, other_tokens = statements_in(header).tokens, statements_in(other).tokens
        if len(tokens) > 1 and tokens[:-1] == other_tokens[:-1] and {tokens[-1], other_tokens[-1]} == _IN_AND_OUT:
            return self.tokens.isdisjoint(_IN_AND_OUT)
        words, other_words = statements_in(header).plain, statements_in(other).plain
        only_here, only_there = words - other_words, other_words - words
        if not (words & other_words and are_opposite(only_here, only_there)):
            return False
        return bool(unqualified(only_here)) and (only_here | only_there).isdisjoint(self.plain | self.words)

    def _is_numbered_otherwise(self, header: Stated) -> bool:
        """Whether a header has other numbers, years or months than the field, or ends in another single letter or
        language."""
        pairs = ((header.numbers, self.numbers), (header.years, self.years), (header.months, self.months))
        if any(of_header and of_field and of_header.isdisjoint(of_field) for of_header, of_field in pairs):
            return True
        last = header.tokens[-1] if len(header.tokens) > 1 else ""
        return last not in self.ends and any(
            last in kind and not self.ends.isdisjoint(kind) for kind in (_LETTERS, _contrasts().languages)
        )

    def _is_of_another(self, header: Stated) -> bool:
        """Whether a header names something that belongs to the field's subject instead of the subject itself: `Employee
        firm name` for `employee_name`. A customer's company is the customer."""
        things = [word for word in header.order[:-1] if word in _THING_WORDS]
        next_to_last = header.order[-2] if len(header.order) > 2 else ""
        if (
            things != [next_to_last]
            or next_to_last in self.words
            or not all(name.order[-1:] == header.order[-1:] for name in self._names)
        ):
            return False
        subjects = {name.order[-2] for name in self._names if len(name.order) > 1}
        if not subjects or not subjects <= set(header.order[:-2]):
            return False
        kinds = {concept(name).values for subject in subjects for name, _ in concepts_of(subject)}
        return not (next_to_last == "company" and "company" in kinds)

    def _is_outdated(self, header: Stated) -> bool:
        """Whether the header names what was before or is no longer valid, and the field does not."""
        outdated = self._outdated.intersection(header.tokens)
        return bool(outdated) and len(header.tokens) > 1 and self._outdated.isdisjoint(self.tokens | self.words)

    def _counts_otherwise(self, header: Stated) -> bool:
        """Whether one counts things and the other has their numbers: `number_of_guests` and `Guest number`."""
        counts, calls = any(map(_counts, self._names)), any(map(_calls, self._names))
        return counts != calls and ((counts and _calls(header)) or (calls and _counts(header)))

    def _is_opposite(self, header: Stated) -> bool:
        """Whether exactly one of header and field is negated (`Inactive` for `active`), or they have opposite words
        (net and gross)."""
        negations = _contrasts().of_truths if self.is_truth else _contrasts().negations
        header_negates = any(t in negations for t in header.tokens) or _negates(header.tokens, self.words)
        field_negates = not negations.isdisjoint(self.tokens) or _negates(self.tokens, header.words)
        if header_negates or field_negates:
            return header_negates != field_negates
        return are_opposite(header.words, self.words) or are_opposite(header.plain, self.plain | self.words)


def _counts(name: Stated) -> bool:
    """Whether a name's statements say that it counts things, as `number of guests` does."""
    if len(name.order) > 2 and name.order[:2] == ("number", "of"):
        return name.tokens[-1].endswith("s")
    return len(name.order) > 1 and name.order[0] in ("quantity", "count") and "number" not in name.plain


def _calls(name: Stated) -> bool:
    """Whether a name's statements say that it calls things by numbers, as `guest number` does."""
    return len(name.order) > 1 and name.order[-1] == "number" and not _counts(name)


def _is_second(name: Stated) -> bool:
    """Whether a name's statements say that it is the second of its kind or later: `Phone 2`, `Second address`,
    `email2`."""
    last = LETTERS_OR_DIGITS.findall(name.tokens[-1])[-1] if name.tokens else ""
    ordinals = {int(last)} if last in _LATER_NUMBERS else {_contrasts().ordinals.get(t, 0) for t in name.tokens}
    return max(ordinals | {_RANKS.get(w, 0) for w in name.words}) > 1 and not measure(name.tokens[-1]).units


def is_qualified(header: str) -> bool:
    """Whether a header has a word that tells it from another column of its kind."""
    return bool(qualifiers_of(statements_in(header).plain)) or statements_in(header).tokens[-1:] in (("in",), ("out",))


@lru_cache(maxsize=4096)
def _negated(token: str) -> frozenset[str]:
    """Return the words that a token negates by its prefix, such as `active` for `inactive`; empty if it negates
    none."""
    opposites = frozenset[str]()
    for start in _contrasts().negating:
        base = token[len(start) :] if token.startswith(start) else ""
        if len(base) > (3 if token.isascii() else 1) and base not in GENERIC:
            meant, known = split_words(base)
            opposites |= {base, *(meant if known == len(base) else ())}
    return opposites


def _negates(tokens: Iterable[str], others: frozenset[str]) -> bool:
    """Whether one of the tokens is the opposite of one of the other words by how it starts."""
    return any(not others.isdisjoint(_negated(token)) for token in tokens)
