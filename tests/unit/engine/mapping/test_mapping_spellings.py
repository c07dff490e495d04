"""One header in many spellings: numbered, starred, joined, broken, in two languages, in letters of two scripts."""

import random

import pytest

from runner.engine.common.fields import Field
from runner.engine.mapping.score import ColumnIn, Sample, choose
from tools.made_tables import values

# field -> its header in words, in another language, and its values
COLUMNS = {
    "first_name": ("First name", "Prénom", "first_name"), "invoice_date": ("Invoice date", "Date de facture", "date"),
    "net_amount": ("Net amount", "Montant net", "money"), "weight": ("Weight", "Poids", "decimal"),
    "customer_number": ("Customer number", "Kundennummer", "identifier"), "phone": ("Phone", "Téléphone", "phone"),
    "postcode": ("Postal code", "Code postal", "postcode"), "unit_price": ("Unit price", "Stückpreis", "money"),
    "order_status": ("Order status", "Bestellstatus", "status"), "job_title": ("Job title", "Poste", "text_short"),
}  # fmt: skip
CYRILLIC = str.maketrans({"a": "\u0430", "e": "\u0435", "o": "\u043e", "c": "\u0441", "P": "\u0420"})
SPELLINGS = {
    "numbered": "3. {}", "numbered in parts": "2.3.1 {}", "lettered": "b) {}", "starred": "{} *", "asked": "{}?",
    "required": "{} (required)", "noted": "{}\n(see note 2)", "of a year": "{} 2024", "begged": "Please enter your {}",
    "of a table": "Customers.{}", "in two languages": "{} / {other}", "below each other": "{other}\n{}",
    "translated in brackets": "{} ({other})", "translated": "{other}",
}  # fmt: skip
STYLES = {
    "camel": lambda text: "".join(text.title().split()), "snake": lambda text: text.lower().replace(" ", "_"),
    "kebab": lambda text: text.lower().replace(" ", "-"), "joined": lambda text: text.upper().replace(" ", ""),
    "broken": lambda text: text.replace(" ", "\n"), "unseen": lambda text: f"{text[:2]}\u200b{text[2:]}",
    "two scripts": lambda text: text.translate(CYRILLIC), "wide": lambda text: text.replace(" ", "\u00a0"),
    **{name: (lambda text, pattern=pattern: pattern.format(text, other=OTHERS[text])) for name, pattern in SPELLINGS.items()},
}  # fmt: skip
OTHERS = {header: other for header, other, _ in COLUMNS.values()}


@pytest.mark.parametrize("style", STYLES)
def test_a_header_is_known_however_it_is_written(style):
    rng = random.Random(3)
    headers = [STYLES[style](header) for header, _, _ in COLUMNS.values()]
    columns = [
        ColumnIn(n, (header,), Sample(values(kind, rng, 12)))
        for n, (header, (_, _, kind)) in enumerate(zip(headers, COLUMNS.values(), strict=True))
    ]
    found = choose(columns, [Field({"name": name}) for name in COLUMNS], detected={}, allowed=lambda _: None)
    assert [c.field for c in found] == list(COLUMNS)


def test_columns_of_several_years_are_not_one_of_them():
    columns = [ColumnIn(n, (f"Sales {2023 + n}",), Sample([10.5, 20.5, 30.25, 4.75])) for n in range(3)]
    found = choose(columns, [Field({"name": "sales", "type": "money"})], detected={}, allowed=lambda _: None)
    assert [c.field for c in found] == [None, None, None]


def test_a_word_that_differs_by_its_accents_is_another_one():
    columns = [ColumnIn(0, ("Lön",), Sample(["31 500,00", "28 900,00", "40 200,50"]))]
    fields = [Field({"name": "salary"}), Field({"name": "longitude"})]
    assert [c.field for c in choose(columns, fields, detected={}, allowed=lambda _: None)] == ["salary"]
