"""Cells merged over rows of data: blank below the first row is told, and filled where the field asks for it."""

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.tables.filling import ColumnMerges
from tests.support.effort import examples
from tests.support.engine_jobs import run_job

ROWS = [
    ["region", "city", "sales"],
    ["North", "Oslo", 10],
    [None, "Bergen", 20],
    [None, "Hamar", 30],
    ["South", "Rome", 40],
    [None, "Bari", 50],
    ["West", "Cork", 60],
]
FIELDS = [{"name": "region"}, {"name": "city"}, {"name": "sales", "type": "integer"}]


def merged_book(path, rows=ROWS, areas=("A2:A4", "A5:A6")):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for area in areas:
        book.active.merge_cells(area)
    book.save(path)


def test_blanks_under_a_merged_cell_are_reported_with_their_addresses(tmp_path):
    merged_book(tmp_path / "in.xlsx")
    done = run_job(tmp_path, fields=FIELDS)
    assert done.column("region") == ["North", None, None, "South", None, "West"]
    assert done.cells("merged_blank") == ["A3", "A4", "A6"]
    told = [f for f in done.findings if f["code"] == "merged_blank"]
    assert {(f["severity"], f["field"]) for f in told} == {("warning", "region")}
    assert all('"merged": "fill"' in f["message"] and "North" not in f["message"] for f in told)


def test_a_field_may_repeat_the_value_for_every_row_the_merge_covers(tmp_path):
    merged_book(tmp_path / "in.xlsx")
    fields = [{"name": "region", "merged": "fill", "required": True}, *FIELDS[1:]]
    done = run_job(tmp_path, fields=fields)
    assert done.column("region") == ["North", "North", "North", "South", "South", "West"]
    assert done.findings == []


def test_a_merge_over_one_row_or_of_the_header_is_none_of_the_data(tmp_path):
    rows = [["region", "sales", None], [None, "city", "amount"], *([f"r{n}", f"c{n}", n] for n in range(1, 12))]
    merged_book(tmp_path / "in.xlsx", rows, ["A1:A2", "B1:C1"])
    done = run_job(tmp_path, fields=FIELDS[:2])
    assert done.cells("merged_blank") == []


def test_a_merge_that_crosses_chunks_is_one_merge(tmp_path):
    rows = [["region", "city", "sales"], *(["all" if n == 0 else None, f"c{n}", n] for n in range(5_000))]
    merged_book(tmp_path / "in.xlsx", rows, ["A2:A5001"])
    done = run_job(tmp_path, fields=[{"name": "region", "merged": "fill"}, *FIELDS[1:]])
    assert set(done.column("region")) == {"all"}


@pytest.mark.parametrize("kind", [None, "fill"])
def test_a_value_that_the_file_stores_under_a_merge_stays(tmp_path, kind):
    merged_book(tmp_path / "in.xlsx", areas=())
    book = openpyxl.load_workbook(tmp_path / "in.xlsx")
    book.active["A3"] = "Kept"
    book.active.merged_cells.add("A2:A4")
    book.save(tmp_path / "in.xlsx")
    done = run_job(tmp_path, fields=[{"name": "region", "merged": kind}, *FIELDS[1:]])
    assert done.column("region")[:3] == ["North", "Kept", "North" if kind else None]
    assert done.cells("merged_blank") == ([] if kind else ["A4"])


def test_a_merge_across_columns_counts_for_each_field_that_it_covers(tmp_path):
    rows = [["region", "city", "sales"], ["North", "Oslo", 5], ["both", None, 6], ["All of it", None, None]]
    merged_book(tmp_path / "in.xlsx", rows, ["A3:B3", "A4:C4"])
    done = run_job(tmp_path, fields=FIELDS)
    assert done.cells("merged_blank") == ["B3"], "a cell as wide as the table is a caption, or a record by itself"
    filled = run_job(tmp_path, fields=[FIELDS[0], {**FIELDS[1], "merged": "fill"}, FIELDS[2]])
    assert filled.column("city")[:2] == ["Oslo", "both"]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.lists(st.integers(1, 6), max_size=8),
    st.integers(1, 7),
    st.sets(st.integers(1, 40), max_size=10),
    st.booleans(),
)
def test_however_rows_are_cut_into_chunks_every_covered_blank_gets_its_value(filled, heights, size, missing, beside):
    """The oracle walks the sheet row by row."""
    spans, at = [], 1
    for height in heights:
        spans.append((at, at + height - 1))
        at += height + height % 2
    numbers = [n for n in range(1, len(filled) + 1) if n not in missing]
    values = {n: f"v{n}" if filled[n - 1] else None for n in numbers}
    stored = {n: f"left {n}" if n % 3 else None for n in numbers} if beside else values
    wanted = {}
    for first, last in spans:
        for n in range(first, last + 1):
            if n in values and values[n] is None and stored.get(first) is not None:
                wanted[n] = stored[first]
    merges = ColumnMerges(spans, 1)
    found = {}
    for start in range(0, len(numbers), size):
        part = numbers[start : start + size]
        covered = merges.covered(part, [values[n] for n in part], [stored[n] for n in part])
        found |= {part[i]: value for i, value in covered.items()}
    assert found == wanted
