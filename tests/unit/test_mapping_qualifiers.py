"""Columns that are qualified otherwise than a field: billing and shipping, start and end, net and gross."""

import random

import pytest

from runner.engine.fields import Field
from runner.engine.mapping.score import THRESHOLD, ColumnIn, Sample, choose
from tests.bench.made_tables import values

OPPOSITES = (
    "billing shipping", "start end", "home work", "net gross", "planned actual", "from to", "minimum maximum",
    "sender recipient", "buyer seller", "departure arrival", "debit credit", "mother father", "landlord tenant",
    "internal external", "opening closing", "budget actual", "expected actual", "estimated actual",
    "requested approved", "ordered delivered", "origin destination", "pickup delivery", "import export",
    "permanent temporary", "source target", "issue expiry", "admission discharge", "entry exit", "hire termination",
    "purchase sale", "sent received", "opened closed", "inbound outbound", "supplier customer", "day night",
    "business private", "guardian student", "employer employee", "highest lowest", "loan return", "upper lower",
)  # fmt: skip
NOUNS = {
    "date": "date", "price": "money", "amount": "money", "address": "address", "phone": "phone", "email": "email",
    "name": "person", "city": "place", "postcode": "postcode", "quantity": "quantity", "weight": "decimal",
    "salary": "money", "time": "time", "account": "identifier", "number": "identifier", "status": "status",
    "country": "country", "cost": "money", "value": "money", "rate": "decimal", "code": "identifier",
}  # fmt: skip
TYPES = {"date": "date", "phone": "phone", "email": "email", "time": "time"}
PAIRS = [tuple(pair.split()) for pair in OPPOSITES]


def chosen(field, noun, headers, *, typed=False):
    rng = random.Random(f"{field} {headers}")
    declared = {"name": field} | ({"type": TYPES[noun]} if typed and noun in TYPES else {})
    columns = [ColumnIn(n, (header,), Sample(values(NOUNS[noun], rng, 25))) for n, header in enumerate(headers)]
    found = choose(columns, [Field(declared)], threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    return {headers[c.position]: c.probability for c in found if c.field}


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_field_without_a_qualifier_gets_neither_of_two_opposite_columns(one, other):
    headers = {noun: [f"{one.title()} {noun}", f"{other.title()} {noun}"] for noun in NOUNS}
    wrong = {noun: found for noun, both in headers.items() if (found := chosen(noun, noun, both, typed=True))}
    assert wrong == {}


@pytest.mark.parametrize(("one", "other"), [pair for p in PAIRS for pair in (p, p[::-1])])
def test_a_field_does_not_get_the_column_of_the_opposite_qualifier(one, other):
    wrong = {
        noun: found
        for noun in NOUNS
        for typed in (False, True)
        if (found := chosen(f"{one}_{noun}", noun, [f"{other.title()} {noun}"], typed=typed))
    }
    assert wrong == {}


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_field_gets_the_column_of_its_own_qualifier_beside_that_of_the_opposite_one(one, other):
    for noun in NOUNS:
        headers = [f"{other.title()} {noun}", f"{noun.title()} ({one})"]
        assert set(chosen(f"{one}_{noun}", noun, headers)) <= {headers[1]}, noun
