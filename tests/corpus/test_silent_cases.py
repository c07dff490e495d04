"""Files that were once read wrong without a word: each is read right, or a warning names the place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.truth.cases import Case
from tests.truth.running import Outcome, run_case

CASES = Path(__file__).parents[3] / "shared" / "eval" / "silent"
Records = list[dict[str, Any]]

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_dir(), reason="the shared corpus is not here"),
]


class Expected(NamedTuple):
    right: Callable[[Records], bool]
    rows: frozenset[int] = frozenset()  # a warning at one of them is an answer too
    field: str = ""  # so is one about this field
    code: str = ""  # or one of this code


def count(number: int) -> Callable[[Records], bool]:
    return lambda records: len(records) == number


def column(name: str, *values: Any) -> Callable[[Records], bool]:
    return lambda records: [r.get(name) for r in records] == list(values)


def unmapped(name: str) -> Callable[[Records], bool]:
    return lambda records: all(r.get(name) is None for r in records)


def at(*rows: int) -> frozenset[int]:
    return frozenset(rows)


def never(records: Records) -> bool:
    return False


EXPECTED = {
    "01_last_entries_lost": Expected(count(8)),
    "01b_last_record_lost": Expected(count(4)),
    "01c_required_key_lost": Expected(count(8)),
    "01d_after_a_blank_row": Expected(count(6), at(7, 8)),
    "02_summary_sheet": Expected(count(12)),
    "02b_summary_beside": Expected(count(12)),
    "03_lookup_sheet": Expected(count(12)),
    "04_all_and_parts": Expected(count(12), code="table_repeated"),
    "04b_sorted_copy": Expected(count(12), code="table_repeated"),
    "05_crash_text_with_point": Expected(count(2)),
    "06_lines_in_quotes": Expected(column("id", "k1", "k2", "k3", "k4"), code="delimiter_assumed"),
    "07_a_cell_too_few": Expected(never, at(5)),
    "07b_broken_line": Expected(
        column("name", "Ann Lee", "Bob Ray", "Cid Fox", "Dora May", "Eve Orr", "Finn Poe"), at(5, 6)
    ),
    "08_two_delimiters": Expected(count(6), code="delimiter_mixed"),
    "09_raised_footnote": Expected(column("population", 1253, 8841, 7712, 912), field="population"),
    "09b_raised_footnote_html": Expected(column("population", 1253, 8841, 7712), field="population"),
    "10_hidden_span_html": Expected(column("points", 7, 12, 3)),
    "10b_input_html": Expected(column("qty", 5, 7, 2)),
    "11_bare_sum_under_dates": Expected(count(8), at(10)),
    "12_inactive_for_active": Expected(unmapped("active"), field="active"),
    "12b_lb_for_kg": Expected(unmapped("weight_kg"), field="weight_kg"),
    "12c_ordered_or_shipped": Expected(unmapped("quantity"), field="quantity"),
    "12d_phone_2_for_phone_1": Expected(unmapped("phone_1"), field="phone_1"),
    "12e_emails_under_name": Expected(never, field="name"),
    "13_codes_turned_into_dates": Expected(never, at(3, 7)),
    "14_scale_in_title": Expected(never, code="scale_ignored"),
    "14b_scale_in_format": Expected(never, field="revenue"),
    "14c_scale_in_header_words": Expected(never, code="scale_ignored"),
    "15_invoice_footer": Expected(count(3), at(6, 7)),
    "17_currencies_in_decimal": Expected(never, code="currency_mixed"),
    "18_brand_called_total": Expected(count(4)),
    "19_two_line_records": Expected(count(3), at(3, 5, 7)),
    "21_orders_with_lines": Expected(column("item", "Lamp", "Desk", "Sofa"), at(3, 4, 5, 7, 8)),
    "23_header_over_two_columns": Expected(column("name", "Ann Lee", "Bob Ray", "Cid Fox"), code="header_shared"),
    "24_outline_sums_above": Expected(count(4), at(2, 5)),
    "25_sap_stars": Expected(count(3), at(4, 6, 7)),
    "27_page_headings": Expected(count(7), at(8, 9)),
    "31_struck_out_text": Expected(column("price", 15, 88, 77, 55), field="price"),
    "32_small_cents_html": Expected(column("price", 5.99, 12.5, 7.95), field="price"),
}


def run(stem: str, folder: Path) -> Outcome:
    path = next(p for p in CASES.glob(f"{stem}.*") if not p.name.endswith(".manifest.json"))
    manifest = json.loads((CASES / f"{stem}.manifest.json").read_bytes())
    fields = manifest.pop("fields")
    return run_case(Case("silent", 0, path.name, path.read_bytes(), fields, [], manifest=manifest), folder)


def told(outcome: Outcome, expected: Expected) -> bool:
    warnings = [f for f in outcome.artifact["validation"]["findings"] if f["severity"] != "info"]
    return any(
        f.get("row") in expected.rows
        or f["code"] == expected.code
        or (expected.field and f.get("field") == expected.field)
        for f in warnings
    )


@pytest.mark.parametrize("stem", sorted(EXPECTED))
def test_is_read_right_or_reported(stem: str, tmp_path: Path) -> None:
    outcome = run(stem, tmp_path)
    assert outcome.error is None
    records = [dict(zip(outcome.header, row, strict=False)) for row in outcome.rows]
    expected = EXPECTED[stem]
    findings = outcome.artifact["validation"]["findings"]
    assert expected.right(records) or told(outcome, expected), f"{len(records)} records, findings {findings}"


def test_every_case_is_expected() -> None:
    assert {p.name.removesuffix(".manifest.json") for p in CASES.glob("*.manifest.json")} == set(EXPECTED)
