"""Sheets of which the manifest, a decision or a memory says how they are cut into tables."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.memories import Memory, learn, parse_memory, serialized, shapes_in
from runner.engine.common.a1 import CellRange
from runner.engine.structure import Partition
from runner.engine.structure.stated_cuts import area_of
from runner.engine.surveying import survey
from runner.engine.surveying.partitions import word_of
from tests.support.engine_jobs import run_job

FIELDS = [{"name": "item"}, {"name": "qty", "type": "integer"}]


def block(name, rows=4):
    return [["Item", "Qty"], *([f"{name}{n}", n] for n in range(rows))]


def beside(*blocks, gap=1):
    """Blocks side by side."""
    high = max(map(len, blocks))
    padded = [[*b, *([None, None] for _ in range(high - len(b)))] for b in blocks]
    return [
        [v for n, part in enumerate(parts) for v in ([None] * gap if n else []) + part]
        for parts in zip(*padded, strict=True)
    ]


def ranges(done):
    return [t["range"] for sheet in done.artifact["sheets"] for t in sheet["tables"] if "skipped" not in t]


def codes(done, code):
    return [f for f in done.artifact["validation"]["findings"] if f["code"] == code]


def cut(sheet="*", **how):
    return {"tables": [{"sheet": sheet, **how}]}


THREE = beside(block("a"), block("b"), block("c"))


def test_ranges_are_the_tables(tmp_path):
    done = run_job(tmp_path, THREE, fields=FIELDS, reading=cut(ranges=["A1:B5", "D1:E5", "G1:H5"]))
    assert ranges(done) == ["A1:B5", "D1:E5", "G1:H5"]
    assert done.column("item") == [f"{c}{n}" for c in "abc" for n in range(4)]


def test_a_range_is_the_table_even_where_detection_would_take_less_or_more(tmp_path):
    rows = [["List of items"], *block("a"), [], ["x9", 9], [], ["y9", 8]]
    done = run_job(tmp_path, rows, fields=FIELDS, reading=cut(ranges=["A2:B10"]))
    assert ranges(done) == ["A2:B10"]
    assert done.column("item") == ["a0", "a1", "a2", "a3", "x9", "y9"]


def test_what_is_outside_the_ranges_is_left_out_and_listed(tmp_path):
    done = run_job(tmp_path, THREE, fields=FIELDS, reading=cut(ranges=["A1:B5"]))
    assert done.column("item") == [f"a{n}" for n in range(4)]
    assert codes(done, "cells_beside")


def test_a_range_without_a_table_is_reported(tmp_path):
    done = run_job(tmp_path, THREE, fields=FIELDS, reading=cut(ranges=["A1:B5", "P1:Q9"]))
    (found,) = codes(done, "no_table")
    assert "P1:Q9" in found["message"]


@pytest.mark.parametrize("gap", [1, 2, 3])
@pytest.mark.parametrize("how", ["columns", "both"])
def test_a_sheet_is_split_at_blank_columns(tmp_path, how, gap):
    rows = [["Stock of all halls"], *beside(block("a"), block("b", 9), block("c", 6), gap=gap)]
    done = run_job(tmp_path, rows, fields=FIELDS, reading=cut(split=how))
    assert done.column("item") == [f"a{n}" for n in range(4)] + [f"b{n}" for n in range(9)] + [
        f"c{n}" for n in range(6)
    ]


@pytest.mark.parametrize("gap", [1, 2, 3])
@pytest.mark.parametrize("how", ["rows", "both"])
def test_a_sheet_is_split_at_blank_rows(tmp_path, how, gap):
    blank = [[] for _ in range(gap)]
    rows = [["Stock"], *block("a"), *blank, *block("b"), *blank, ["Hall C"], *block("c")]
    done = run_job(tmp_path, rows, fields=FIELDS, reading=cut(split=how))
    assert done.column("item") == [f"{c}{n}" for c in "abc" for n in range(4)]
    assert len(ranges(done)) == 3


def test_a_grid_of_tables_is_split_at_both(tmp_path):
    upper, lower = beside(block("a"), block("b")), beside(block("c", 3), block("d", 5))
    done = run_job(tmp_path, [*upper, [], *lower], fields=FIELDS, reading=cut(split="both"))
    assert sorted(done.column("item")) == sorted(
        [f"{c}{n}" for c, k in (("a", 4), ("b", 4), ("c", 3), ("d", 5)) for n in range(k)]
    )


def test_a_sheet_is_read_as_one_table(tmp_path):
    rows = [["Item", "Qty", None, "Hall"], *([f"a{n}", n, None, "x"] for n in range(3)), [], [], ["b0", 7, None, "y"]]
    done = run_job(tmp_path, rows, fields=[*FIELDS, {"name": "hall"}], reading=cut(one=True))
    assert done.column("item") == ["a0", "a1", "a2", "b0"]
    assert done.column("hall") == ["x", "x", "x", "y"]


def test_a_sheet_without_blank_columns_says_so(tmp_path):
    done = run_job(tmp_path, block("a"), fields=FIELDS, reading=cut(split="columns"))
    assert len(done.column("item")) == 4
    assert "blank columns" in codes(done, "tables_assumed")[0]["message"]


def test_other_sheets_are_left_out_as_with_names(tmp_path):
    done = run_job(
        tmp_path, {"Orders": THREE, "Other": block("z")}, fields=FIELDS, reading=cut("Ord*", split="columns")
    )
    assert not any(str(item).startswith("z") for item in done.column("item"))
    assert codes(done, "table_skipped")


@pytest.mark.parametrize(("text", "area"), [("A3:C94", (3, 1, 94, 3)), ("AA1:AB2", (1, 27, 2, 28))])
def test_ranges_are_rows_and_columns(text, area):
    assert area_of(text) == area


@pytest.mark.parametrize(
    ("areas", "word"),
    [
        ([(1, 1, 5, 8)], "one"),
        ([(1, 1, 5, 2), (1, 4, 9, 5)], "columns"),
        ([(1, 1, 5, 2), (7, 1, 9, 5)], "rows"),
        ([(1, 1, 5, 2), (1, 4, 5, 5), (7, 1, 9, 5)], "both"),
    ],
)
def test_a_partition_has_a_word(areas, word):
    assert word_of([CellRange(*area) for area in areas]) == word


WHOLE, PARTS = CellRange(1, 1, 5, 8), (CellRange(1, 1, 5, 2), CellRange(1, 4, 5, 5), CellRange(1, 7, 5, 8))
REVIEWED = {"fields": FIELDS, "mapping": {"review": "unsure"}}


@pytest.fixture
def doubtful(monkeypatch):
    """Detection finds one table over three, and says that three are nearly as likely."""
    real = survey.find_tables

    def find(sheet, **options):
        found = real(sheet, **options)
        if isinstance(sheet, survey.SpooledSheet):  # the whole sheet, and no part of it
            one = real(sheet, **{**options, "reading": options["reading"]._replace(header_rows=(1,))})
            return [replace(one[0], alternative=Partition(PARTS, 0.41))]
        return found

    monkeypatch.setattr(survey, "find_tables", find)


def asked(folder):
    run_job(folder, THREE, **REVIEWED)
    (question,) = [q for q in json.loads((folder / "review.json").read_text())["questions"] if q["kind"] == "tables"]
    return question


def answered(folder, value, **more):
    question = asked(folder / "asked")
    decision = {"answers": [{"id": question["id"], "value": value}], "accept": True}
    return run_job(folder / "decided", THREE, **REVIEWED, decision=decision, **more)


@pytest.mark.usefixtures("doubtful")
def test_two_partitions_that_are_close_are_a_finding_with_the_lines_that_settle_it(tmp_path):
    done = run_job(tmp_path, THREE, fields=FIELDS)
    (found,) = codes(done, "tables_assumed")
    assert found["severity"] == "warning"
    for part in ("A1:H5", "A1:B5, D1:E5, G1:H5", '"ranges": ["A1:B5", "D1:E5", "G1:H5"]', "one table or three"):
        assert part in found["message"]
    assert done.artifact["sheets"][0]["tables"][0]["alternative"]["probability"] == 0.41


@pytest.mark.usefixtures("doubtful")
def test_the_line_that_settles_it_does(tmp_path):
    done = run_job(tmp_path, THREE, fields=FIELDS, reading=cut(ranges=[one.a1 for one in PARTS]))
    assert not codes(done, "tables_assumed")
    assert len(done.column("item")) == 12


@pytest.mark.usefixtures("doubtful")
def test_a_review_asks_and_its_answer_is_applied(tmp_path):
    question = asked(tmp_path / "a")
    assert "one table or three" in question["text"]
    assert [c["value"] for c in question["candidates"]] == ["one", "columns"]
    assert "3 tables: A1:B5, D1:E5, G1:H5" in [c["label"] for c in question["candidates"]]
    split = answered(tmp_path / "b", "columns")
    assert ranges(split) == ["A1:B5", "D1:E5", "G1:H5"]
    assert not codes(split, "tables_assumed")
    assert not codes(split, "decision_unused")
    whole = answered(tmp_path / "c", "one")
    assert ranges(whole) == ["A1:H5"]
    assert not codes(whole, "tables_assumed")


@pytest.mark.usefixtures("doubtful")
def test_an_answer_is_remembered_for_the_next_file_of_the_sender(tmp_path):
    done = answered(tmp_path, "columns")
    (entry,) = [t for t in done.artifact["profile"]["tables"] if "cut" in t]
    assert (entry["cut"], entry["decided"], entry["left_out"]) == ("columns", True, False)
    facts = shapes_in(done.artifact["profile"], sender="acme", by="ann", decided=True)
    memory = serialized(learn(Memory(), facts, at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert parse_memory(memory).shapes[0].cut == "columns"
    again = run_job(tmp_path / "next", THREE, fields=FIELDS, memory=memory, sender="acme")
    assert ranges(again) == ["A1:B5", "D1:E5", "G1:H5"]
    assert not codes(again, "tables_assumed")
    assert "confirmed by ann" in again.artifact["sheets"][0]["tables"][0]["why"][-1]
    other = run_job(tmp_path / "other", THREE, fields=FIELDS, memory=memory, sender="else")
    assert codes(other, "tables_assumed"), "it was said of another sender"


def test_what_is_remembered_counts_only_where_there_is_a_doubt(tmp_path):
    shape = {"sender": "acme", "sheet": "", "cut": "one", "at": "2026-01-01T00:00:00Z", "by": "ann"}
    memory = json.dumps({"memory": 1, "headers": [], "values": [], "shapes": [shape]}).encode()
    rows = [*block("a"), [], [], [], [], ["Name", "Town"], ["Ann", "Oslo"], ["Bob", "Rome"], ["Cy", "Bonn"]]
    plain = run_job(tmp_path / "a", rows, fields=FIELDS)
    remembered = run_job(tmp_path / "b", rows, fields=FIELDS, memory=memory, sender="acme")
    assert ranges(remembered) == ranges(plain)
