"""General knowledge of headers: what the file says holds together, and opposites stay apart."""

import json
from pathlib import Path

import pytest

from runner.engine.common.fields import Field
from runner.engine.common.spelling import normalized
from runner.engine.mapping import knowledge
from runner.engine.mapping.matcher import model
from runner.engine.mapping.score import ColumnIn, Sample, choose

RAW = json.loads((Path(knowledge.__file__).parent / "knowledge.json").read_text())
DATES = ["2026-01-31", "2026-02-14", "2026-03-02", "2025-12-24"]
SUMS = ["1204.50", "88.10", "312.99", "45.00"]
NAMES = ["Acme Ltd", "Muster GmbH", "Delta Inc", "Nord AB"]
CODES = ["K-10023", "K-10401", "K-20077", "K-30911"]


def mapped(headers, fields):
    """The field of each header; a header maps to its values."""
    columns = [ColumnIn(n, (h,), Sample(v)) for n, (h, v) in enumerate(headers.items())]
    found = choose(columns, [Field(f) for f in fields], detected={}, allowed=lambda _: None)
    return {list(headers)[c.position]: c.field for c in found if c.field}


def test_no_spelling_has_two_meanings():
    seen = {}
    for word, spellings in RAW["words"].items():
        for spelling in ([] if " " in word else [word]) + spellings.split():
            assert seen.setdefault(normalized(spelling), word) == word, f"{spelling} is {word} too"


def test_what_words_stand_for_is_itself_not_spelled_otherwise():
    for section in ("words", "alone", "sayings"):
        for phrase in RAW[section]:
            for word in phrase.split():
                assert knowledge.split_words(word)[0] in {(word,), tuple(phrase.split())}, f"{phrase} in {section}"


def test_every_concept_that_is_named_exists_and_has_values_that_the_model_knows():
    concepts, classes = RAW["concepts"], {*model().classes.classes, "any"}
    named = [n for names in RAW["ambiguous"].values() for n in names.replace(";", ",").split(", ")]
    named += [n for pair in RAW["partners"] for n in pair] + RAW["technical"].split()
    named += [n for c in concepts.values() for n in c.get("is", "").split()]
    assert set(named) <= set(concepts)
    assert {kind for c in concepts.values() for kind in c["values"].split()} <= classes


@pytest.mark.parametrize(
    ("field", "header"),
    [
        ("net_amount", "Gross amount"), ("gross_amount", "Netto"), ("start_date", "Ende"), ("end_date", "Beginn"),
        ("order_date", "Lieferdatum"), ("delivery_date", "Order date"), ("invoice_date", "Fällig am"),
        ("due_date", "Rechnungsdatum"), ("ship_date", "Delivery date"), ("debit", "Haben"), ("credit", "Soll"),
        ("first_name", "Nachname"), ("last_name", "Prénom"), ("buyer_name", "Verkäufer"), ("seller", "Käufer"),
        ("billing_city", "Ship to city"), ("shipping_city", "Bill to city"), ("quantity", "Unit price"),
        ("price", "Menge"), ("price", "EK-Preis"), ("price", "Old price"), ("iban", "BIC"), ("phone", "Fax"),
        ("height", "Width"), ("bedrooms", "Bathrooms"), ("departure_date", "Ankunft"), ("hire_date", "Austritt"),
        ("net_weight", "Bruttogewicht"), ("patient_id", "Policy No."), ("tenant", "Owner"), ("sender", "Empfänger"),
        ("birth_date", "Hire date"), ("gross_pay", "Net pay"), ("admission_date", "Discharge date"),
        ("customer_number", "Supplier No."), ("reading", "Previous reading"), ("city", "Modified by"),
    ],
)  # fmt: skip
def test_an_opposite_is_not_the_field(field, header):
    values = DATES if "date" in field else NAMES if field in ("buyer_name", "seller", "tenant", "sender") else SUMS
    assert mapped({header: values}, [{"name": field}]) == {}


def test_headers_of_an_invoice_list_are_known_in_other_languages():
    fields = ["invoice_number", "invoice_date", "due_date", "customer_name", "net_amount", "tax_amount", "gross_amount"]
    values = [CODES, DATES, DATES, NAMES, SUMS, SUMS, SUMS]
    for text in (
        "INVNO, INVDATE, Due, Customer, Subtotal, VAT, Total incl. VAT",
        "Rechnungsnr., Rg.-Datum, Fällig am, Kunde, Netto, MwSt-Betrag, Brutto",
        "N° facture, Date facture, Date d'échéance, Client, Montant HT, TVA, Montant TTC",
        "Factuurnr, Factuurdatum, Vervaldatum, Klant, Bedrag excl. BTW, BTW, Bedrag incl. BTW",
        "Fatura No, Fatura Tarihi, Vade Tarihi, Müşteri, Tutar KDV hariç, KDV, Tutar KDV dahil",
    ):
        headers = text.split(", ")
        wanted = dict(zip(headers, fields, strict=True))
        found = mapped(dict(zip(headers, values, strict=True)), [{"name": f} for f in fields])
        assert found == wanted, text


def test_a_special_meaning_is_the_general_field_but_not_the_other_way_round():
    numbers = [f"+49 171 55500{n}" for n in range(10, 40)]
    assert mapped({"Handy": numbers}, [{"name": "phone"}]) == {"Handy": "phone"}
    assert mapped({"Telefon": numbers}, [{"name": "mobile"}]) == {}
    assert mapped({"Telefon": numbers}, [{"name": "fax"}]) == {}


def test_what_a_header_may_mean_is_not_what_a_field_of_that_name_is():
    places = ["Springfield", "Berlin", "Lyon", "Torino", "Utrecht"]
    assert mapped({"City": places}, [{"name": "name"}]) == {}
    assert mapped({"State": ["NY", "CA", "TX", "WA"]}, [{"name": "department"}]) == {}


def test_words_that_differ_in_a_letter_are_no_slips_of_each_other():
    assert mapped({"Share": ["0.25", "0.5", "0.75", "0.1"]}, [{"name": "shape"}]) == {}


def test_what_stands_in_brackets_does_not_hide_the_meaning():
    assert dict(knowledge.concepts_of("Betrag (EUR)"))["amount"] == pytest.approx(1.0, abs=0.15)
