"""Numbers that count in thousands, in another unit or in several currencies are reported, wherever that is said."""

import openpyxl
import pytest

from runner.engine.reading.number_formats import unit_of_format
from tests.support.engine_jobs import run_job

CITIES = ["Oslo", "Rome", "Lima", "Bonn"]
NUMBERS = [1250, 980, 1110, 640]


def outcome(folder, rows, *, kind="money", field="revenue", form=None, sheet="Data", **more):
    book = openpyxl.Workbook()
    page = book.active
    page.title = sheet
    for row in rows:
        page.append(row)
    if form:
        for row in page.iter_rows(min_row=len(rows) - len(CITIES) + 1, min_col=2, max_col=2):
            row[0].number_format = form
    book.save(folder / "in.xlsx")
    return run_job(folder, fields=[{"name": "city"}, {"name": field, "type": kind, **more}])


def table(header="revenue", above=(), below=(), numbers=NUMBERS):
    return [*([line, None] for line in above), ["city", header], *zip(CITIES, numbers, strict=True), *below]


def codes(done):
    return {(f["code"], f.get("field")) for f in done.findings if f["severity"] != "info"}


TOLD = ("scale_ignored", "revenue")


@pytest.mark.parametrize(
    "line",
    ["Figures in thousands of euros", "(in TEUR)", "EUR '000", "all figures in EUR million", "Beträge in Tsd. €",
     "en milliers d'euros", "w tys. zł", "importi in migliaia di euro", "x 1.000 EUR", "単位 千円"],
)  # fmt: skip
def test_a_scale_in_a_line_above_the_table_is_reported(tmp_path, line):
    assert codes(outcome(tmp_path, table(above=["Revenue by city", line]))) == {TOLD}


@pytest.mark.parametrize("line", ["Sales of 5 million in 2024", "Cities of millions", "Report 2024", "Thousand Oaks"])
def test_a_line_above_that_states_no_scale_is_not_reported(tmp_path, line):
    assert TOLD not in codes(
        outcome(tmp_path, table(above=[f"{line}: revenue of the four offices of the company", ""]))
    )


def test_a_line_below_and_the_name_of_the_sheet_state_a_scale_too(tmp_path):
    assert TOLD in codes(outcome(tmp_path, [*table(), [None, None], ["All amounts in thousands of EUR", None]]))
    assert TOLD in codes(outcome(tmp_path, table(), sheet="Revenue (TEUR)"))


def test_a_line_above_is_about_amounts_and_not_about_years_or_other_measures(tmp_path):
    for kind, name in (("integer", "year"), ("decimal", "weight_kg"), ("percent", "share")):
        done = outcome(tmp_path, table(header=name, above=["in thousands of euros", ""]), kind=kind, field=name)
        assert ("scale_ignored", name) not in codes(done)


@pytest.mark.parametrize(
    "header", ["revenue (MSEK)", "Revenue ($mm)", "Revenue (K)", "Revenue in TEUR", "revenue (miles)"]
)
def test_a_scale_in_a_header_is_reported(tmp_path, header):
    assert codes(outcome(tmp_path, table(header))) == {TOLD}


@pytest.mark.parametrize(
    ("form", "told"),
    [('#,##0" TEUR"', True), ("#,##0,", True), ('0.0,,"M"', True), ('#,##0.0 "Mio. €"', True), ("#,##0.00", False),
     ('#,##0 "EUR"', False), ("#,##0.00 [$€-407]", False), ('_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-', False)],
)  # fmt: skip
def test_a_scale_that_a_number_format_shows_is_reported(tmp_path, form, told):
    assert (TOLD in codes(outcome(tmp_path, table(), form=form))) is told


@pytest.mark.parametrize("scaled", [{"field": "revenue_teur"}, {"synonyms": ["in TEUR"]}, {"label": "Revenue (k€)"}])
def test_a_field_that_says_the_same_scale_needs_no_report(tmp_path, scaled):
    name = scaled.get("field", "revenue")
    done = outcome(tmp_path, table(header=name, above=["in TEUR", ""]), **scaled)
    assert ("scale_ignored", name) not in codes(done)


def test_a_field_of_another_scale_than_the_header_is_reported(tmp_path):
    done = outcome(tmp_path, table("Revenue (Mio. EUR)"), field="revenue_teur", synonyms=["Revenue (Mio. EUR)"])
    assert ("scale_ignored", "revenue_teur") not in codes(done)  # the manifest says both
    done = outcome(tmp_path, table("revenue", above=["in Mio. EUR", ""]), field="revenue_teur", synonyms=["revenue"])
    assert ("scale_ignored", "revenue_teur") in codes(done)


@pytest.mark.parametrize("kind", ["money", "decimal", "integer"])
def test_several_currencies_are_reported_in_any_numeric_field(tmp_path, kind):
    rows = [["city", "price"], ["Oslo", "$5"], ["Rome", "€7"], ["Lima", "£3"], ["Bonn", "€4"]]
    done = outcome(tmp_path, rows, kind=kind, field="price")
    assert ("currency_mixed", "price") in codes(done)


def test_a_currency_far_down_a_column_is_reported(tmp_path):
    rows = [["city", "price"], *([f"c{n}", f"${n}.50" if n < 4000 else f"€{n}.50"] for n in range(1, 4200))]
    assert ("currency_mixed", "price") in codes(outcome(tmp_path, rows, kind="decimal", field="price"))


@pytest.mark.parametrize(
    ("field", "header", "form", "code"),
    [("weight_kg", "weight_kg", '0.0" lb"', "unit_mixed"), ("price_eur", "price_eur", '"$"0.00', "currency_mixed"),
     ("weight_kg", "weight_kg", '0.0" kg"', None), ("price", "Price (EUR)", '"$"0.00', "currency_mixed")],
)  # fmt: skip
def test_a_unit_beside_the_numbers_that_contradicts_the_field_or_the_header_is_reported(
    tmp_path, field, header, form, code
):
    done = outcome(tmp_path, table(header), kind="decimal", field=field, form=form)
    assert {c for c, _ in codes(done)} == ({code} if code else set())


@pytest.mark.parametrize(
    ("code", "unit"),
    [("#,##0,", ","), ('0.0,,"M"', ",,M"), ('#,##0" TEUR"', "TEUR"), ("#,##0", ""), ("#,##0.00", ""), ("0,", ","),
     ('[>=1000000]0.0,,"M";0', ",,M"), ("#,##0,%", "%"), ("#,###,", ","), ("#,##0_);(#,##0)", "")],
)  # fmt: skip
def test_the_unit_of_a_format_begins_with_the_thousands_that_it_leaves_out(code, unit):
    assert unit_of_format(code) == unit


@pytest.mark.parametrize("name", ["Nitrate", "Conductivity"])
def test_a_row_of_units_under_the_names_is_no_part_of_them(tmp_path, name):
    rows = [
        ["Sample", "Nitrate", "Conductivity"],
        [None, "mg/l", "µS/cm"],
        ["S-1", 29.3, 280.3],
        ["S-2", 36.5, 5491.2],
        ["S-3", 1.2, 33.1],
    ]
    fields = [{"name": "sample"}, {"name": "value", "type": "decimal", "synonyms": [name]}]
    mapped = run_job(tmp_path, rows, fields=fields).mapped()
    assert [header for header, field in mapped.items() if field == "value" and name in header] != []
