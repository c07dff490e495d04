"""The judge itself: what it has to catch, and what it must not excuse."""

import re
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.truth.cases import AnyOf, Case, Row, Table, same
from tests.truth.judge import EXPLAINING, align, judge
from tests.truth.running import Outcome
from tests.truth.tables import tell

FIELDS = [{"name": "id"}, {"name": "amount", "type": "money"}, {"name": "due", "type": "date"}]


def a_case(**changes: Any) -> Case:
    rows = [
        Row(2, {"id": "a", "amount": 1234.0, "due": date(2025, 3, 4)}),
        Row(3, {"id": "b", "amount": 2500.0, "due": date(2025, 5, 6)}),
        Row(4, {"id": "c", "amount": 7.5, "due": date(2025, 7, 31)}),
    ]
    texts = {(2, "amount"): "1.234", (3, "amount"): "2.500", (4, "amount"): "7,50"}
    table = Table("in", {"id": 1, "amount": 2, "due": 3}, rows, texts)
    return replace(Case("x", 0, "in.csv", b"", FIELDS, [table]), **changes)


def right_rows() -> list[list[Any]]:
    return [["a", 1234, datetime(2025, 3, 4)], ["b", 2500, datetime(2025, 5, 6)], ["c", 7.5, datetime(2025, 7, 31)]]


def an_outcome(rows: list[list[Any]], *findings: dict[str, Any], header: list[str] | None = None) -> Outcome:
    found = [{"severity": "warning", "sheet": "in", **f} for f in findings]
    artifact = {
        "validation": {"findings": found, "totals": []},
        "sheets": [],
        "summary": {"rows_out": len(rows), "rows_in": len(rows)},
    }
    return Outcome(None, artifact, header or ["id", "amount", "due"], rows)


def words(rows: list[list[Any]], *findings: dict[str, Any], **changes: Any) -> list[tuple[str, str]]:
    return [(d.verdict, d.kind) for d in judge(a_case(**changes), an_outcome(rows, *findings)).differences]


def test_what_is_right_is_right():
    said = judge(a_case(), an_outcome(right_rows()))
    assert (said.word, said.right, said.differences) == ("right", 9, [])


def test_a_value_divided_by_a_thousand_is_silent():
    rows = right_rows()
    rows[0][1] = 1.234
    assert words(rows) == [("silent", "decimal sign")]


def test_decimal_assumed_excuses_its_own_field_only():
    rows = right_rows()
    rows[0][1] = 1.234
    assert words(rows, {"code": "decimal_assumed", "field": "amount"}) == [("told", "decimal sign")]
    assert words(rows, {"code": "decimal_assumed", "field": "due"}) == [("silent", "decimal sign")]
    rows[0][1] = 99.0
    assert words(rows, {"code": "decimal_assumed", "field": "amount"}) == [("silent", "value")]


def test_a_flipped_sign_is_no_matter_of_the_decimal_sign():
    rows = right_rows()
    rows[0][1] = -1234
    assert words(rows, {"code": "decimal_assumed", "field": "amount"}) == [("silent", "value")]


def test_a_swapped_date_needs_a_word_about_the_order():
    rows = right_rows()
    rows[0][2] = datetime(2025, 4, 3)
    assert words(rows) == [("silent", "date order")]
    assert words(rows, {"code": "type_error", "field": "due", "cell": "C2", "row": 2}) == [("silent", "date order")]
    assert words(rows, {"code": "date_order_assumed", "field": "due"}) == [("told", "date order")]


def test_a_type_error_excuses_its_own_cell_and_only_what_stayed():
    rows = right_rows()
    rows[2][1] = "7,50"
    here = {"code": "type_error", "field": "amount", "cell": "B4", "row": 4}
    assert words(rows) == [("silent", "not read")]
    assert words(rows, here) == [("told", "not read")]
    assert words(rows, {**here, "cell": "B3", "row": 3}) == [("silent", "not read")]
    rows[2][1] = None
    assert words(rows, here) == [("silent", "blanked")]


def test_a_lost_row_is_reported_only_by_a_warning_at_that_row():
    rows = right_rows()
    del rows[1]
    assert words(rows) == [("silent", "row lost")]
    assert words(rows, {"code": "group_assumed", "row": 3}) == [("told", "row lost")]
    assert words(rows, {"code": "group_assumed", "row": 2}) == [("silent", "row lost")]
    assert words(rows, {"code": "group_assumed", "row": 3, "severity": "info"}) == [("silent", "row lost")]


def test_a_lost_row_that_only_the_account_mentions_is_wrong():
    rows = right_rows()
    del rows[1]
    outcome = an_outcome(rows)
    outcome.artifact["sheets"] = [{"name": "in", "rows": [{"from": 3, "to": 3, "as": "group"}]}]
    said = judge(a_case(), outcome)
    assert [(d.verdict, d.kind) for d in said.differences] == [("wrong", "row lost")]
    assert said.word == "silent"


def test_a_total_among_the_data_is_reported_at_its_row():
    rows = [*right_rows(), ["Total", 3741.5, None]]
    left = {("in", 5): "total"}
    assert words(rows, left=left) == [("silent", "row from nowhere")]
    assert words(rows, {"code": "total_assumed", "row": 5}, left=left) == [("told", "total kept")]


def test_a_doubled_row_is_silent():
    rows = right_rows()
    assert words([rows[0], *rows]) == [("silent", "row from nowhere")]


def test_values_in_the_wrong_field_are_silent():
    rows = [[None, r[1], r[2], r[0]] for r in right_rows()]
    outcome = an_outcome(rows, header=["id", "amount", "due", "ID"])
    kinds = {d.kind for d in judge(a_case(), outcome).silent}
    assert kinds == {"column from nowhere", "blanked"}


def test_a_lost_column_is_silent():
    case = a_case(fields=FIELDS[:2])
    outcome = an_outcome([r[:2] for r in right_rows()], header=["id", "amount"])
    assert {(d.verdict, d.kind) for d in judge(case, outcome).differences} == {("silent", "column lost")}


def test_mojibake_needs_a_word_about_the_encoding():
    case = a_case(encoding="cp1252")
    case.tables[0].rows[0].wants["id"] = "Zoë"
    rows = right_rows()
    rows[0][0] = "Zoл"
    assert [d.verdict for d in judge(case, an_outcome(rows)).differences] == ["silent"]
    assert [d.verdict for d in judge(case, an_outcome(rows, {"code": "encoding_assumed"})).differences] == ["told"]


def test_a_guess_must_be_reported_even_where_it_is_right():
    case = a_case(tells=[tell("date_order_assumed", field="due")])
    assert [d.kind for d in judge(case, an_outcome(right_rows())).silent] == ["a guess that is not told"]


def test_a_broken_engine_is_never_reported():
    broken = Outcome({"code": "engine_error", "message": "boom"}, {}, [], [])
    assert judge(a_case(), broken).word == "silent"
    refused = Outcome({"code": "input_unreadable", "message": "…"}, {}, [], [])
    assert judge(a_case(), refused).word == "told"


def test_warnings_are_counted_as_noise():
    said = judge(
        a_case(), an_outcome(right_rows(), {"code": "no_header"}, {"code": "kept_as_text", "severity": "info"})
    )
    assert dict(said.warnings) == {"no_header": 1}


@pytest.mark.parametrize(
    ("want", "got", "equal"),
    [
        (1, 1.0, True), (1, True, False), (True, 1, False), ("1", 1, False), (None, "", True), (0, None, False),
        (date(2025, 1, 2), datetime(2025, 1, 2), True), (date(2025, 1, 2), datetime(2025, 1, 2, 3), False),
        (date(2025, 1, 2), "2025-01-02", False), (AnyOf((1, "1")), "1", True), (0.1, 0.1 + 1e-9, False),
    ],
)  # fmt: skip
def test_equal_means_value_and_kind(want, got, equal):
    assert same(want, got) is equal


def test_rows_are_paired_in_order_around_what_is_missing_and_extra():
    wants = [{"a": n, "b": str(n)} for n in range(6)]
    gots = [wants[0], {"a": 77, "b": "x"}, wants[1], wants[3], wants[4], wants[5]]
    assert align(wants, gots) == ([(0, 0), (1, 2), (3, 3), (4, 4), (5, 5)], [2], [1])


def test_every_code_that_explains_a_difference_is_documented():
    said = (Path(__file__).parents[2] / "docs" / "reference" / "findings.md").read_text()
    assert sorted(EXPLAINING - set(re.findall(r"`([a-z_]+)`", said))) == []
