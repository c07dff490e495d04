"""Headers that contradict a field in spite of common words: other units, currencies, numbers, years, opposites."""

# ruff: noqa: RUF001  # letters of other scripts are part of what is read

import pytest

from runner.engine.common.fields import Field
from runner.engine.mapping.contrasts import FieldStated
from runner.engine.mapping.measures import measure
from runner.engine.mapping.score import THRESHOLD, ColumnIn, Sample, choose
from runner.engine.memory.recall import Recall

VALUES = {
    "boolean": ["Yes", "No"] * 6,
    "decimal": [50.5 + n for n in range(12)],
    "integer": list(range(5, 17)),
    "money": [f"{n}.50" for n in range(12)],
    "date": [f"2026-01-{n:02}" for n in range(1, 13)],
    "phone": [f"+49 30 12345{n:02}" for n in range(12)],
    "text": ["Main St 1", "Oak Rd 4", "High St 9", "Elm Ave 3"] * 3,
}
CONTRARY = {
    "boolean": "Inactive>active; Not active>active; Nicht aktiv>aktiv; Inaktiv>active; Inactif>actif; Inactivo>activo;"
    "No activo>activo; Niet actief>actief; Ej aktiv>aktiv; Active>inactive; Unpaid>paid; No pagado>pagado;"
    "Unbezahlt>bezahlt; Paid>unpaid; Invalid>valid; Incomplete>complete; Unavailable>available; Has no car>has_car;"
    "Excluded>included; Is closed>is_open; Opt-out>opt_in; Non-member>member; Ohne Rabatt>rabatt; Sans TVA>tva;"
    "Do not call>call; Unverified>verified; Nontaxable>taxable; Inactive customer>active_customer; 非公開>公開",
    "decimal": "Weight (lb)>weight_kg; Weight lb>weight_kg; Weight (lbs.)>weight_kg; Gewicht (g)>gewicht_kg;"
    "Area (sq ft)>area_m2; Area sqft>area_m2; Fläche (ha)>flaeche_m2; Distance (mi)>distance_km;"
    "Temp (°F)>temp_c; Temp F>temp_c; Height (in)>height_cm; Length (mm)>length_cm; Energy (MWh)>energy_kwh;"
    "Duration (h)>duration_minutes; Price per lb>price_per_kg; Cost per month>cost_per_year; Weight before>weight_after",
    "money": "Price (USD)>price_eur; Price USD>price_eur; Price $>price_eur; Preis (€)>preis_usd; Betrag in CHF>betrag_eur;"
    "Discount (%)>discount; Budget 2023>budget_2024; Umsatz 2022>umsatz_2023; Sales FY23>sales_fy24; Q1 sales>q2_sales;"
    "Sales Jan>sales_feb; Net amount>gross_amount; Montant TTC>montant_ht; Soll>haben; Crédit>débit; Price min>price_max;"
    "Opening balance>closing_balance; Amount due>amount_paid; Old price>new_price; Estimated cost>actual_cost",
    "integer": "Qty shipped>qty_ordered; Quantity delivered>quantity_ordered; Qty returned>qty_ordered; Score 2>score_1;"
    "Guest number>number_of_guests; No. of rooms>room_no; Anzahl Gäste>gastnummer; Score away>score_home",
    "date": "Date left>date_joined; Valid to>valid_from; Bis>von; Date closed>date_opened; Last visit>first_visit",
    "phone": "Phone 2>phone_1; Tel 2>tel_1; Phone (2)>phone_1; Phone2>phone1; Phone_02>phone_01; Other phone>phone_1;"
    "Téléphone 2>telephone_1; Second phone>first_phone; Work phone>home_phone",
    "text": "Address line 2>address_line_1; Second address>first_address; Option B>option_a; Description EN>description_de;"
    "Previous address>current_address; Email 2>email_1; Question 3>question_4; Invalid email>email; Old customer ID>customer_id;"
    "Closed bank account>bank_account; Ehemalige Adresse>adresse; Ancienne adresse>adresse; Vorige adres>adres",
}  # fmt: skip
AGREEING = {
    "boolean": "Is active>active; Not active>inactive; Unpaid>not_paid; Nicht aktiv>inactive",
    "decimal": "Weight (kg)>weight_kg; Weight in pounds>weight_lb; Area (m²)>area_m2; Weight (kg)>weight; Temp (°C)>temp_c;"
    "Price (EUR/kg)>price_per_kg; Delivery time min (days)>delivery_time_days",
    "money": "Price (€)>price_eur; Price ($)>price_usd; Price ($)>price_cad; Amount (kr)>amount_sek; Budget 2024>budget_2024;"
    "Sales FY24>sales_2024; Price (EUR)>price",
    "integer": "Qty ordered>ordered_qty; Ordered>order_quantity; Score (1-5)>score; No. of guests>number_of_guests; Room no.>room_number",
    "phone": "Phone 1>phone_1; Phone>phone_1; Business phone>work_phone; Primary phone>phone_1",
    "text": "Address line 1>address_1; Company name>business_name; CO2 class>co2_class; Previous address>former_address; Old customer ID>old_customer_id",
}  # fmt: skip


def pairs(cases):
    return [
        pytest.param(kind, *(part.strip() for part in pair.split(">")), id=pair.strip())
        for kind, text in cases.items()
        for pair in text.split(";")
    ]


def chosen(header, field, kind="text", recall=None, **more):
    columns = [
        ColumnIn(0, ("key",), Sample([f"k{n}" for n in range(12)]), "A"),
        ColumnIn(1, (header,), Sample(VALUES[kind]), "B"),
    ]
    fields = [Field({"name": "key"}), Field({"name": field, "type": kind, **more})]
    return choose(
        columns, fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None, recall=recall or Recall(())
    )[1]


@pytest.mark.parametrize(("kind", "header", "field"), pairs(CONTRARY))
def test_a_column_whose_header_contradicts_a_field_is_not_taken_for_it_without_a_word(kind, header, field):
    choice = chosen(header, field, kind)
    assert choice.field is None or choice.doubt is not None, choice


@pytest.mark.parametrize(("kind", "header", "field"), pairs(AGREEING))
def test_a_header_that_says_the_same_in_other_words_contradicts_nothing(kind, header, field):
    assert FieldStated(Field({"name": field, "type": kind})).contradiction(header) == ""


@pytest.mark.parametrize(("header", "field"), [("Weight (lb)", "weight_kg"), ("Phone 2", "phone_1")])
def test_a_column_left_out_because_of_a_contradiction_is_reported(header, field):
    kind = "phone" if "phone" in field else "decimal"
    choice = chosen(header, field, kind)
    assert choice.doubt is not None, choice
    assert (choice.field, choice.doubt.code, choice.doubt.field) == (None, "mapping_doubtful", field)


@pytest.mark.parametrize("thing", ["firm", "country", "bank"])
def test_the_name_of_something_of_a_person_is_not_the_name_of_the_person(thing):
    choice = chosen(f"EMPLOYEE_{thing.upper()}_NAME", "employee_name")
    assert (choice.field, choice.doubt) == (None, None)


def test_a_customers_company_is_the_customer():
    assert FieldStated(Field({"name": "customer_name"})).contradiction("Customer company name") == ""


def test_a_contradicting_column_beside_the_right_one_is_not_reported():
    columns = [ColumnIn(n, (h,), Sample(VALUES["phone"]), "AB"[n]) for n, h in enumerate(("Phone 2", "Phone 1"))]
    fields = [Field({"name": "phone_1", "type": "phone"})]
    found = choose(columns, fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    assert [(c.field, c.doubt) for c in found] == [(None, None), ("phone_1", None)]


@pytest.mark.parametrize("header", ["Weight (lb)", "Weight lb"])
def test_a_synonym_outweighs_what_the_header_says_otherwise(header):
    choice = chosen(header, "weight_kg", "decimal", synonyms=[header])
    assert (choice.field, choice.doubt) == ("weight_kg", None)


def test_what_a_person_confirmed_outweighs_what_the_header_says_otherwise():
    recall = Recall([{"header": "Phone 2", "field": "phone_1", "by": "ann", "at": "2026-01-01T00:00:00Z"}])
    choice = chosen("Phone 2", "phone_1", "phone", recall=recall)
    assert (choice.field, choice.doubt) == ("phone_1", None)


@pytest.mark.parametrize(
    ("header", "field"), [("Phone 2", "phone"), ("Phone", "phone_2"), ("Address line 2", "address")]
)
def test_the_second_of_a_kind_is_taken_for_the_only_one_with_a_warning(header, field):
    choice = chosen(header, field, "phone" if "phone" in field else "text")
    assert choice.field == field
    assert choice.doubt is not None
    assert choice.doubt.code == "mapping_doubtful"


@pytest.mark.parametrize(
    "headers",
    [
        ("Qty ordered", "Qty shipped"),
        ("Qty in", "Qty out"),
        ("Quantity (warm)", "Quantity (cold)"),
        ("Qty ordered", "Qty received"),
        ("Ordered quantity", "Delivered quantity"),
    ],
)
def test_a_field_that_does_not_say_which_of_two_opposite_columns_it_is_gets_neither(headers):
    columns = [ColumnIn(n, (h,), Sample(VALUES["integer"]), "AB"[n]) for n, h in enumerate(headers)]
    fields = [Field({"name": "quantity", "type": "integer"})]
    found = choose(columns, fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    assert [c.field for c in found] == [None, None]


SCALES = {
    3: "in thousands; TEUR; T€; kEUR; EUR k; Tsd. €; Beträge in Tsd. EUR; en milliers d'euros; (000s); $ '000; USD 000;"
    "(K); (tkr); tys. zł; tys. zl; tis. Kč; (migliaia di euro); miles de euros; duizend euro; (x 1.000); × 1000 EUR;"
    "in 1.000 €; (1000); тыс. руб.; ezer Ft; R$ mil; bin TL; 売上（千円）; tusen kronor; 10^3 EUR",
    4: "单位：万元; 万円",
    5: "Rs. in lakhs",
    6: "($mm); MSEK; (mnkr); MNOK; Mio. €; €m; M€; EUR M; mln zł; milj. €; 10^6 EUR; 10⁶ EUR; млн руб; en millions d’euros;"
    "(in millions); (x 1.000.000); mil. Kč; 百万円; milioni di euro",
    7: "(₹ Cr); Rs. crore",
    9: "Mrd. EUR; USD bn; $ billions",
}


@pytest.mark.parametrize(
    ("power", "text"), [(power, text.strip()) for power, texts in SCALES.items() for text in texts.split(";")]
)
def test_a_scale_is_known_in_many_spellings(power, text):
    assert measure(text if "（" in text else f"Revenue {text}").scale == power


@pytest.mark.parametrize(
    "text",
    ["Deaths per 1000", "Price per million", "Order no. 1000", "Length (mm)", "Distance (m)", "Amount (EUR)", "Miles",
     "Member", "Kundennr", "Total km", "Bin", "1.250.000", "Weight (t)", "Milestone", "Temp (°C)", "Thousand Oaks"[9:]],
)  # fmt: skip
def test_what_is_no_scale_is_not_taken_for_one(text):
    assert measure(text).scale is None


ODD = {
    "emails": ("name full_name city phone first_name company_name Kundenname street", "email id user customer contact comment"),
    "dates": ("name city email company phone", "date birth_date comment status"),
    "numbers": ("name city email first_name", "id amount postcode department customer comment country"),
    "people": ("email phone employee_code invoice_number postcode", "name customer product contact comment city"),
}  # fmt: skip
SHOWN = {
    "emails": [f"p{n}@example.com" for n in range(8)],
    "dates": [f"2026-01-{n:02}" for n in range(1, 9)],
    "numbers": [str(1000 + 7 * n) for n in range(8)],
    "people": [
        "Ann Lee",
        "Bob Lee",
        "Cid Lee",
        "Maria Garcia",
        "John Smith",
        "Peter Brown",
        "Eva Novak",
        "Paul Jansen",
    ],
}


@pytest.mark.parametrize(
    ("kind", "field", "told"),
    [
        (kind, name, told)
        for kind, both in ODD.items()
        for told, names in enumerate(both[::-1])
        for name in names.split()
    ],
)
def test_values_that_plainly_contradict_the_name_of_a_text_field_are_reported(kind, field, told):
    columns = [ColumnIn(0, (field,), Sample(SHOWN[kind]), "A")]
    (choice,) = choose(columns, [Field({"name": field})], threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    assert (choice.field, choice.doubt is not None) == (field, bool(told)), choice


def test_a_pattern_settles_that_a_text_field_has_odd_values():
    columns = [ColumnIn(0, ("Name",), Sample(SHOWN["emails"]), "A")]
    fields = [Field({"name": "name", "pattern": ".+@.+"})]
    (choice,) = choose(columns, fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    assert (choice.field, choice.doubt) == ("name", None)


@pytest.mark.parametrize(
    ("headers", "is_reported"),
    [
        (("Current address", "Former address"), True),
        (("Present address", "Previous address"), True),
        (("Address", "Former address"), False),
        (("Adresse", "Ehemalige Adresse"), False),
    ],
)
def test_a_column_beside_its_former_one_is_taken_with_a_warning_unless_it_is_the_plain_one(headers, is_reported):
    columns = [ColumnIn(n, (h,), Sample(VALUES["text"]), "AB"[n]) for n, h in enumerate(headers)]
    fields = [Field({"name": "address"})]
    taken, former = choose(columns, fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    assert (taken.field, taken.doubt is not None, former.field) == ("address", is_reported, None)
