"""The judge of the strangers' files: what it has to catch, and what it must not excuse."""

from datetime import date, datetime
from typing import Any

import pytest

from tests.truth.cases import AnyOf, Row, Table, Tell
from tests.truth.running import Outcome
from tests.truth.strangers.judging import Stranger, judge

FIELDS = [{"name": "id"}, {"name": "amount", "type": "money"}, {"name": "due", "type": "date"}]
ROWS = [["a", 1234, datetime(2025, 3, 4)], ["b", 2500.0, datetime(2025, 5, 6)], ["c", 7.5, datetime(2025, 7, 31)]]


def said(
    rows: list[list[Any]], *findings: dict[str, Any], places: list[int] | None = None, **changes: Any
) -> list[tuple[str, str, str]]:
    wants = [
        Row(n, {"id": r[0], "amount": r[1], "due": date(r[2].year, r[2].month, r[2].day)})
        for n, r in enumerate(ROWS, 2)
    ]
    case = Stranger("x", 0, "in.csv", b"", FIELDS, [Table("in", {"id": 1, "amount": 2, "due": 3}, wants)], **changes)
    found = [{"severity": "warning", "sheet": "in", "message": "", **f} for f in findings]
    artifact = {
        "validation": {"findings": found},
        "sheets": [
            {
                "name": "in",
                "rows": [{"from": 2, "to": 9, "as": "data"}],
                "tables": [{"id": "in!A1:C9", "header_rows": [1]}],
            }
        ],
    }
    origins = places or list(range(2, 2 + len(rows)))
    out = [[*r, "in.csv", "in", at] for r, at in zip(rows, origins, strict=True)]
    header = ["id", "amount", "due", "source_file", "source_sheet", "source_row"]
    return [(d.verdict, d.kind, d.code) for d in judge(case, Outcome(None, artifact, header, out)).differences]


def test_equal_rows_in_any_order_are_right():
    assert said([ROWS[2], ROWS[0], ROWS[1]], places=[4, 2, 3]) == []


def test_a_lost_row_needs_a_warning_that_covers_it():
    lost = {"rows": ROWS[:2], "places": [2, 3]}
    assert said(**lost) == [("silent", "row lost", "")]
    assert said(lost["rows"], {"code": "rows_outside", "row": 4}, places=[2, 3]) == [
        ("told", "row lost", "rows_outside")
    ]
    assert said(lost["rows"], {"code": "rows_outside", "row": 4, "severity": "info"}, places=[2, 3])[0][0] == "silent"
    assert said(lost["rows"], {"code": "rows_outside", "row": 2}, places=[2, 3])[0][0] == "silent"
    assert (
        said(lost["rows"], {"code": "row_short", "message": "rows 3 to 5 are too short"}, places=[2, 3])[0][0] == "told"
    )


def test_an_added_row_is_not_excused_by_an_error_in_one_of_its_cells():
    more = [*ROWS, ["Total", "x", None]]
    assert said(more, {"code": "type_error", "cell": "B5", "row": 5, "field": "amount"}) == [
        ("silent", "row added", "")
    ]
    assert said(more, {"code": "total_assumed", "row": 5}) == [("told", "row added", "total_assumed")]


def test_a_wrong_cell_needs_a_finding_at_that_cell():
    rows = [ROWS[0], ["b", 2.5, ROWS[1][2]], ROWS[2]]
    assert said(rows) == [("silent", "cell", "")]
    assert said(rows, {"code": "type_error", "cell": "B3", "row": 3, "field": "amount"})[0][0] == "told"
    assert said(rows, {"code": "type_error", "cell": "B4", "row": 4, "field": "amount"})[0][0] == "silent"
    assert said(rows, {"code": "total_assumed", "row": 3})[0][0] == "silent"
    assert said(rows, {"code": "decimal_assumed", "field": "amount"})[0][0] == "told"
    assert said(rows, {"code": "decimal_assumed", "field": "due"})[0][0] == "silent"


def test_a_finding_at_a_header_speaks_of_its_column():
    rows = [[r[0], None, r[2]] for r in ROWS]
    assert {v for v, _, _ in said(rows)} == {"silent"}
    doubt = {"code": "mapping_doubtful", "cell": "B1", "row": 1, "field": "amount", "table": "in!A1:C9"}
    assert {v for v, _, _ in said(rows, doubt)} == {"told"}
    assert {v for v, _, _ in said(rows, {**doubt, "field": "due"})} == {"silent"}


@pytest.mark.parametrize(("finding", "silent"), [({}, True), ({"field": "amount"}, False), ({"field": "due"}, True)])
def test_what_has_to_be_told_is_asked_of_its_field(finding, silent):
    tell = Tell(frozenset(), "amount", None)
    found = [{"code": "scale_ignored", **finding}] if finding else []
    assert bool(said(ROWS, *found, tells=[tell])) is silent


def test_an_engine_error_is_never_excused():
    case = Stranger("x", 0, "in.csv", b"", FIELDS, [], fails=frozenset("*"))
    broken = judge(case, Outcome({"code": "engine_error", "message": "ValueError"}, {}, [], []))
    assert broken.word == "silent"
    assert judge(case, Outcome({"code": "nothing_mapped"}, {}, [], [])).word == "right"


def test_several_readings_may_be_right():
    rows = [["a", 1234, ROWS[0][2]], *ROWS[1:]]
    case = Stranger("x", 0, "in.csv", b"", FIELDS, [Table("in", {"id": 1}, [Row(2, {"id": AnyOf(("a", "A"))})])])
    out = Outcome(None, {"validation": {"findings": []}, "sheets": []}, ["id"], [["A"]])
    assert judge(case, out).word == "right"
    assert said(rows) == []
