"""Which rows stay and in which order; rules over all rows; the books count what is left out, with its address."""

import datetime as dt
import random

import pytest

from runner.engine.transforming import holding
from tests.support.engine_jobs import run_job

FIELDS = [{"name": "id"}, {"name": "amount", "type": "decimal"}, {"name": "day", "type": "date"}]
ROWS = [
    ["id", "amount", "day"],
    ["b", 5, "2026-01-02"],
    ["a", 7, "2026-01-03"],
    ["b", -1, "2026-01-05"],
    ["C", None, "2026-01-04"],
    ["a", 2, None],
]


def job(folder, rows=ROWS, fields=FIELDS, *, rules=None, files=None, **shape):
    more = {"inputs": {"per": "drop"}} if files else {}
    return run_job(
        folder, None if files else rows, files=files, fields=fields, row_rules=rules, row_shape=shape or None, **more
    )


def runs(done, kind):
    return [(r["from"], r["to"]) for s in done.artifact["sheets"] for r in s["rows"] if r["as"] == kind]


def ids(done):
    return [(row[0], row[1]) for row in done.rows()[1:]]


def told(done, code):
    return [(f["severity"], f.get("cell"), f.get("row"), f.get("rule")) for f in done.findings if f["code"] == code]


def test_rows_that_the_filter_refuses_are_left_out_with_their_address(tmp_path):
    done = job(tmp_path, filter="coalesce(amount, 1) > 0")
    assert ids(done) == [("b", 5), ("a", 7), ("C", None), ("a", 2)]
    assert runs(done, "filtered") == [(4, 4)]
    assert done.artifact["summary"]["left_out"] == {"filtered": 1}
    assert told(done, "rows_filtered") == [("info", None, 4, "rows.filter")]
    assert (done.folder / "artifact.json").exists()


def test_a_row_that_the_filter_cannot_judge_stays_and_is_reported(tmp_path):
    done = job(tmp_path, filter="10 / (amount - 2) > 0")
    assert ids(done) == [("b", 5), ("a", 7), ("C", None), ("a", 2)]
    assert told(done, "filter_unsure") == [("warning", "B5", 5, "rows.filter"), ("warning", "B6", 6, "rows.filter")]


def test_a_row_that_is_left_out_has_no_errors(tmp_path):
    fields = [
        {"name": "id", "unique": True},
        {"name": "amount", "type": "decimal", "min": 0, "required": True},
        {"name": "day", "type": "date", "required": True},
    ]
    done = job(tmp_path, fields=fields, filter="amount > 6")
    assert ids(done) == [("a", 7), ("C", None)]
    assert [(f["code"], f["cell"]) for f in done.findings if f["severity"] == "error"] == [("required", "B5")]


def test_a_filter_that_leaves_nothing_ends_the_job_and_says_so(tmp_path):
    done = job(tmp_path, filter="amount > 100 and amount is not blank")
    assert done.error["code"] == "empty_input"
    assert "rows.filter" in done.error["message"]


@pytest.mark.parametrize(
    ("dedupe", "wanted", "gone"),
    [
        ({"key": ["id"]}, [("b", 5), ("a", 7), ("C", None)], [(4, 4), (6, 6)]),
        ({"key": ["id"], "keep": "last"}, [("b", -1), ("C", None), ("a", 2)], [(2, 3)]),
        ({"key": ["id"], "keep": "newest", "by": "day"}, [("a", 7), ("b", -1), ("C", None)], [(2, 2), (6, 6)]),
        ({"key": ["id", "amount"]}, [("b", 5), ("a", 7), ("b", -1), ("C", None), ("a", 2)], []),
    ],
)
def test_one_of_several_rows_with_a_key_stays(dedupe, wanted, gone, tmp_path):
    done = job(tmp_path, dedupe=dedupe)
    assert ids(done) == wanted
    assert runs(done, "duplicate") == gone
    assert done.artifact["summary"]["left_out"] == ({"duplicate": 2} if gone else {})


def test_rows_with_a_blank_in_their_key_all_stay_and_equal_numbers_are_one_key(tmp_path):
    rows = [["id", "amount"], ["a", 5], ["b", "5.0"], ["c", None], ["d", None], ["e", 5.5]]
    done = job(tmp_path, rows, FIELDS[:2], dedupe={"key": ["amount"]})
    assert [row[0] for row in done.rows()[1:]] == ["a", "c", "d", "e"]


def test_equally_new_rows_are_reported(tmp_path):
    rows = [["id", "day"], ["a", "2026-01-02"], ["a", "2026-01-02"], ["b", None], ["b", None], ["c", "2026-01-03"]]
    done = job(tmp_path, rows, [FIELDS[0], FIELDS[2]], dedupe={"key": ["id"], "keep": "newest", "by": "day"})
    assert runs(done, "duplicate") == [(2, 2), (4, 4)]
    assert told(done, "dedupe_tied") == [("warning", "B3", 3, "rows.dedupe"), ("warning", "B5", 5, "rows.dedupe")]


def test_rows_are_deduplicated_and_sorted_over_all_files_and_unique_is_judged_afterwards(tmp_path):
    files = {"x.xlsx": ROWS, "y.xlsx": [["id", "amount", "day"], ["a", 9, "2026-02-01"], ["d", 1, "2026-01-01"]]}
    fields = [{"name": "id", "unique": True}, *FIELDS[1:]]
    done = job(
        tmp_path, files=files, fields=fields, dedupe={"key": ["id"], "keep": "newest", "by": "day"}, sort=["-amount"]
    )
    assert ids(done) == [("a", 9), ("d", 1), ("b", -1), ("C", None)]
    assert not told(done, "duplicate")


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [
        (["id"], ["a7", "a2", "b5", "b-1", "CNone"]),
        (["-id"], ["CNone", "b5", "b-1", "a7", "a2"]),
        (["amount"], ["b-1", "a2", "b5", "a7", "CNone"]),
        (["-amount"], ["a7", "b5", "a2", "b-1", "CNone"]),
        (["id", "-amount"], ["a7", "a2", "b5", "b-1", "CNone"]),
        (["-day", "id"], ["b-1", "CNone", "a7", "b5", "a2"]),
    ],
)
def test_sorting_is_stable_and_blanks_come_last(sort, wanted, tmp_path):
    assert [f"{a}{b}" for a, b in ids(job(tmp_path, sort=sort))] == wanted


def test_cells_that_are_not_of_their_type_are_sorted_too(tmp_path):
    rows = [["id", "amount"], ["a", "x"], ["b", 3], ["c", None], ["d", 1], ["e", "#N/A"]]
    assert [row[0] for row in job(tmp_path, rows, FIELDS[:2], sort=["amount"]).rows()[1:]] == ["d", "b", "e", "a", "c"]


def test_a_finding_on_writing_names_its_own_row_after_sorting(tmp_path):
    rows = [["id", "amount"], ["a", 3], ["b", "12345678901234567890"], ["c", 1]]
    done = job(tmp_path, rows, FIELDS[:2], sort=["amount"])
    assert [row[0] for row in done.rows()[1:]] == ["c", "a", "b"]
    assert told(done, "kept_as_text") == [("info", "B3", 3, "write")]


def test_many_rows_are_sorted_in_piles(tmp_path, monkeypatch):
    monkeypatch.setattr(holding, "PILE", 50)
    monkeypatch.setattr(holding, "_BATCH", 7)
    rng = random.Random(5)
    values = [
        (f"k{rng.randrange(40)}", rng.randrange(1000), dt.date(2026, 1, 1) + dt.timedelta(rng.randrange(300)))
        for _ in range(1500)
    ]
    rows = [["id", "amount", "day"], *map(list, values)]
    done = job(
        tmp_path, rows, sort=["id", "-day"], dedupe={"key": ["id", "amount"], "keep": "last"}, filter="amount >= 100"
    )
    left = {(a, b): (a, b, c) for a, b, c in values if b >= 100}
    last = [v for n, v in enumerate(values) if v[1] >= 100 and not any(v[:2] == w[:2] for w in values[n + 1 :])]
    assert len(last) == len(left)
    wanted = sorted(sorted(last, key=lambda v: v[2], reverse=True), key=lambda v: v[0])
    assert [(r[0], r[1], r[2].date()) for r in done.rows()[1:]] == wanted
    summary = done.artifact["summary"]
    assert summary["rows_in"] == 1500 == summary["rows_out"] + sum(summary["left_out"].values())
    assert summary["left_out"]["filtered"] == sum(b < 100 for _, b, _ in values)


@pytest.mark.parametrize("shape", [{"sort": ["id"]}, {"dedupe": {"key": ["id"]}}])
def test_too_many_rows_to_hold_end_the_job_clearly(shape, tmp_path, monkeypatch):
    monkeypatch.setattr(holding, "MAX_ROWS", 4)
    done = job(tmp_path, **shape)
    assert done.error["code"] == "input_unreadable"
    assert f"rows.{next(iter(shape))}" in done.error["message"]
    assert "split the input" in done.error["where"]["remedy"]


def test_rejected_rows_and_removed_rows_add_up(tmp_path):
    fields = [FIELDS[0], {"name": "amount", "type": "decimal", "max": 6}, FIELDS[2]]
    more = {"on_error": "split", "output": {"rejects": True}}
    shape = {"filter": "amount is not blank", "dedupe": {"key": ["id"]}}
    done = run_job(tmp_path, ROWS, fields=fields, row_shape=shape, **more)
    assert done.artifact["summary"]["left_out"] == {"filtered": 1, "duplicate": 2, "rejected": 1}
    assert ids(done) == [("b", 5)]


# Rules.


def rule(**more):
    return [{"name": "r", **more}]


def test_a_check_names_the_cell_of_its_first_field_and_skips_blanks(tmp_path):
    done = job(tmp_path, rules=rule(check="amount * 2 >= 4 or id == 'C'", severity="warning"))
    assert told(done, "row_rule") == [("warning", "B4", 4, "r")]
    done = job(tmp_path / "2", rules=rule(check="day < date('2026-01-05')", message="too late"))
    assert [(f["message"], f["cell"]) for f in done.findings] == [("too late", "C4")]


def test_a_check_that_divides_by_zero_is_a_finding(tmp_path):
    done = job(tmp_path, rules=rule(check="1 / (amount - 2) > 0", when={"field": "id", "op": "==", "value": "a"}))
    assert told(done, "expression_error") == [("error", "B6", 6, "r")]
    assert not told(done, "row_rule")


def test_several_fields_may_be_unique_together(tmp_path):
    rows = [["id", "amount"], ["a", 1], ["a", 2], ["a", "1.0"], ["b", None], ["b", None]]
    done = job(tmp_path, rows, FIELDS[:2], rules=rule(unique=["id", "amount"]))
    assert told(done, "duplicate") == [("error", "A4", 4, "r")]


@pytest.mark.parametrize(("rows", "found"), [({"max": 4}, 1), ({"min": 6}, 1), ({"min": 5, "max": 5}, 0)])
def test_the_number_of_rows_may_be_bounded(rows, found, tmp_path):
    assert len(told(job(tmp_path, rules=rule(rows=rows)), "row_count")) == found


BILL = [["item", "amount"], *([f"item {n}", n + 0.1] for n in range(1, 11))]
BILL_FIELDS = [{"name": "item"}, {"name": "amount", "type": "money"}]


@pytest.mark.parametrize(
    ("total", "more", "codes"),
    [(56.0, {}, []), (56.01, {}, ["total_mismatch"]), (56.01, {"tolerance": 0.01}, []), (None, {}, ["total_missing"])],
)
def test_a_sum_is_compared_with_the_total_row(total, more, codes, tmp_path):
    rows = [*BILL, *([["Total", total]] if total else [])]
    done = job(tmp_path, rows, BILL_FIELDS, rules=rule(sum="amount", equals="total_row", **more))
    found = [f for f in done.findings if f["code"].startswith("total_m")]
    assert [f["code"] for f in found] == codes
    if codes == ["total_mismatch"]:
        assert found[0]["cell"] == "B12"


def test_a_total_is_about_the_rows_that_were_sent_and_of_several_totals_one_has_to_be_the_sum(tmp_path):
    rows = [BILL[0], *BILL[1:6], ["Subtotal", 15.5], *BILL[6:], ["Subtotal", 40.5], ["Total", 56]]
    done = job(
        tmp_path,
        rows,
        BILL_FIELDS,
        rules=rule(sum="amount", equals="total_row"),
        filter="amount > 5",
        dedupe={"key": ["item"]},
    )
    assert done.artifact["summary"]["left_out"] == {"total": 3, "filtered": 4}
    assert not [f for f in done.findings if f["code"].startswith("total_m")]


@pytest.mark.parametrize(("stated", "found"), [("56.00", 0), ("57", 1)])
def test_a_sum_is_compared_with_a_labelled_value(stated, found, tmp_path):
    rows = [["Control total", stated], [None], *BILL]
    fields = [*BILL_FIELDS, {"name": "control", "type": "money", "from": {"label": "Control total"}}]
    done = job(tmp_path, rows, fields, rules=rule(sum="amount", equals="control"))
    assert len(told(done, "total_mismatch")) == found


@pytest.mark.parametrize(
    ("total_rows", "rows", "codes"), [("auto", 11, ["total_assumed"]), ("drop", 10, ["rows_total"]), ("keep", 11, [])]
)
def test_a_doubtful_total_may_be_dropped_or_kept(total_rows, rows, codes, tmp_path):
    """A row that is labelled as a total and does not add up."""
    done = run_job(tmp_path, [*BILL, ["Total", 99]], fields=BILL_FIELDS, reading={"total_rows": total_rows})
    assert done.artifact["summary"]["rows_out"] == rows
    assert [f["code"] for f in done.findings if f["code"] in ("total_assumed", "rows_doubtful", "rows_total")] == codes


def test_what_is_no_date_is_never_the_newest(tmp_path):
    fields = [{"name": "id"}, {"name": "at", "type": "date"}]
    rows = [["id", "at"], ["a", "2026-01-02"], ["a", "soon"], ["a", "2027-01-01"], ["a", "zz"]]
    shape = {"dedupe": {"key": ["id"], "keep": "newest", "by": "at"}}
    outcome = run_job(tmp_path, rows, fields=fields, row_shape=shape)
    assert [str(value) for value in outcome.column("at")] == ["2027-01-01 00:00:00"]
