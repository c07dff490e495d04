"""Columns that are qualified otherwise than a field: billing and shipping, start and end, net and gross."""

import random

import pytest

from runner.engine.common.fields import Field
from runner.engine.mapping.score import THRESHOLD, ColumnIn, Sample, choose
from tools.made_tables import values

OPPOSITES = (
    "billing shipping", "start end", "home work", "net gross", "planned actual", "minimum maximum", "sender recipient",
    "buyer seller", "departure arrival", "debit credit", "mother father", "landlord tenant", "internal external",
    "opening closing", "budget actual", "expected actual", "estimated actual", "requested approved",
    "ordered delivered", "origin destination", "pickup delivery", "import export", "permanent temporary",
    "source target", "issue expiry", "admission discharge", "entry exit", "hire termination", "purchase sale",
    "sent received", "opened closed", "inbound outbound", "day night", "business private", "highest lowest",
    "loan return", "upper lower",
)  # fmt: skip
# Of these the second is what rows are usually about: it may be taken, the first may not.
COUNTERPARTS = ("supplier customer", "guardian student", "employer employee")
NOUNS = {
    "date": "date", "amount": "money", "address": "address", "phone": "phone", "email": "email", "name": "person",
    "weight": "decimal",
}  # fmt: skip
TYPES = {"date": "date", "phone": "phone", "email": "email"}
PAIRS = [tuple(pair.split()) for pair in OPPOSITES]


def chosen(field, noun, headers, *, typed=False):
    """The columns that become the only field."""
    rng = random.Random(f"{field} {headers}")
    declared = {"name": field} | ({"type": TYPES[noun]} if typed and noun in TYPES else {})
    columns = [ColumnIn(n, (header,), Sample(values(NOUNS[noun], rng, 12))) for n, header in enumerate(headers)]
    found = choose(columns, [Field(declared)], threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    return {headers[c.position] for c in found if c.field}


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_field_without_a_qualifier_gets_neither_of_two_opposite_columns(one, other):
    headers = {noun: [f"{one.title()} {noun}", f"{other.title()} {noun}"] for noun in NOUNS}
    assert {noun: found for noun, both in headers.items() if (found := chosen(noun, noun, both, typed=True))} == {}


@pytest.mark.parametrize(("one", "other"), [tuple(pair.split()) for pair in COUNTERPARTS])
def test_a_field_without_a_qualifier_is_not_that_of_a_counterpart(one, other):
    for noun in NOUNS:
        headers = [f"{one.title()} {noun}", f"{other.title()} {noun}"]
        assert headers[0] not in chosen(noun, noun, headers, typed=True)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_field_does_not_get_the_column_of_the_opposite_qualifier(one, other):
    wrong = [
        (mine, noun)
        for noun in NOUNS
        for mine, header in ((one, other), (other, one))
        if chosen(f"{mine}_{noun}", noun, [f"{header.title()} {noun}"], typed=True)
    ]
    assert wrong == []


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_brackets_say_tells_two_columns_apart(one, other):
    missed = []
    for noun in NOUNS:
        headers = [f"{noun.title()} ({other})", f"{noun.title()} ({one})"]
        if (found := chosen(f"{one}_{noun}", noun, headers)) != {headers[1]}:
            missed.append((noun, found))
    assert missed == []


def test_of_a_primary_and_a_secondary_column_the_primary_one_is_taken():
    for noun in ("phone", "email", "address"):
        headers = [f"Secondary {noun}", f"Primary {noun}"]
        assert chosen(noun, noun, headers, typed=True) == {headers[1]}


def test_columns_that_only_a_number_tells_apart_are_left_to_a_person_whatever_their_values():
    some, others = [f"555-100{1000 + 37 * n}" for n in range(30)], [f"+1 202 555 01{n:02}" for n in range(30)]
    columns = [ColumnIn(0, ("Phone 1",), Sample(some)), ColumnIn(1, ("Phone 2",), Sample(others))]
    found = choose(columns, [Field({"name": "phone"})], detected={}, allowed=lambda _: None)
    assert [one.field for one in found] == [None, None]


def test_the_first_of_two_numbered_addresses_is_taken_and_reported_and_a_second_line_is_no_other_address():
    streets = [f"{n} {name}" for n in range(3, 8) for name in ("High Street", "Mill Lane", "Church Road", "Park Ave")]
    for second, told in ((streets[::-1], True), (["Apt 4", "Suite 300", "", "Unit 7"] * 5, False)):
        columns = [ColumnIn(0, ("Address 1",), Sample(streets)), ColumnIn(1, ("Address 2",), Sample(second), "B")]
        first, other = choose(columns, [Field({"name": "address"})], detected={}, allowed=lambda _: None)
        assert (first.field, other.field) == ("address", None)
        assert (first.doubt is not None) is told
