"""Books that do not balance are refused, whatever was tampered with."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engine.verifying import BadOutput
from tests.support.outputs import BOX, ORDER, artifact, as_bytes, check, workbook


def run(first, last, kind, table="t1", rows=None):
    made = {"from": first, "to": last, "as": kind, "table": table, "rows": rows or last - first + 1}
    return {k: v for k, v in made.items() if v is not None}


def table(ref, rows_out, **left_out):
    return {
        "id": f"m/{ref}", "ref": ref, "range": "A1:B9", "header_rows": [2], "data_range": "A3:B9", "confidence": 1.0,
        "why": [], "rows_in": rows_out + sum(left_out.values()), "rows_out": rows_out, "left_out": left_out,
        "left_out_columns": [],
    }  # fmt: skip


def honest():
    """Two tables side by side that share nine rows, a note in the way, rows outside and a table left out."""
    made = artifact(ORDER, BOX, rows=15)
    sheet = {
        "input": "m.csv", "name": "Sheet1", "index": 0, "visibility": "visible", "rows_read": 19,
        "tables": [table("t1", 9, total=1), table("t2", 6, group=1, note=1), table("t3", 0, skipped_table=2) | {"skipped": "a hook"}],
        "rows": [
            run(1, 1, "title"), run(2, 2, "header"), run(2, 2, "header", "t2"), run(3, 3, "group", "t2"),
            run(3, 12, "data", rows=9), run(4, 8, "data", "t2"), run(9, 9, "note", "t2"), run(10, 10, "data", "t2"),
            run(13, 13, "total"), run(15, 17, "outside", None, rows=2), run(20, 20, "header", "t3"),
            run(21, 22, "skipped_table", "t3"), run(30, 31, "outside", None),
        ],
        "shared": [{"from": 2, "to": 10, "tables": 2, "rows": 9}],
        "beside": [],
    }  # fmt: skip
    made["sheets"] = [sheet]
    made["summary"] |= {
        "tables": 2, "rows_in": 24, "rows_out": 15,
        "left_out": {"total": 1, "group": 1, "note": 1, "skipped_table": 2, "outside": 4},
    }  # fmt: skip
    return made


def judge(tmp_path: Path, made, *, rows=15, order=ORDER):
    (tmp_path / "artifact.json").write_bytes(as_bytes(made))
    (tmp_path / "normalized.xlsx").write_bytes(workbook(rows))
    return check(order, {name: tmp_path / name for name in ("artifact.json", "normalized.xlsx")}, BOX)


def test_books_that_balance_pass(tmp_path):
    assert judge(tmp_path, honest())["left_out"] == honest()["summary"]["left_out"]


def at(path, value):
    def change(made):
        *way, last = path
        for step in way:
            made = made[step]
        made[last] = value(made[last]) if callable(value) else value

    change.__name__ = ".".join(map(str, path))
    return change


def drop(n):
    def change(made):
        del made["sheets"][0]["rows"][n]

    change.__name__ = f"run {n} is missing"
    return change


def more(n):
    return lambda found: found + n


def together(*changes):
    def change(made):
        for one in changes:
            one(made)

    change.__name__ = " and ".join(one.__name__ for one in changes)
    return change


SHEET = ("sheets", 0)
ROWS = (*SHEET, "rows")
TAMPERED = [
    *(drop(n) for n in range(len(honest()["sheets"][0]["rows"]))),
    at((*SHEET, "rows_read"), more(1)),
    at((*SHEET, "rows_read"), more(-1)),
    at((*SHEET, "shared"), []),
    at((*SHEET, "shared", 0, "rows"), 8),
    at((*SHEET, "shared", 0, "tables"), 3),
    at((*SHEET, "shared", 0, "to"), 3),
    at((*SHEET, "tables", 0, "rows_out"), more(1)),
    at((*SHEET, "tables", 0, "rows_in"), more(1)),
    at((*SHEET, "tables", 0, "left_out"), {}),
    at((*SHEET, "tables", 0, "left_out"), {"total": 1, "note": 1}),
    at((*SHEET, "tables", 0, "ref"), "t9"),
    at((*SHEET, "tables", 1, "ref"), "t1"),
    at((*ROWS, 4, "rows"), 10),
    at((*ROWS, 4, "to"), 13),
    at((*ROWS, 4, "as"), "total"),
    at((*ROWS, 8, "from"), 12),
    at((*ROWS, 9, "as"), "note"),
    at((*ROWS, 8, "as"), "outside"),
    at((*ROWS, 9, "rows"), 3),
    at((*ROWS, 9, "from"), 13),
    at((*ROWS, 11, "as"), "data"),
    at((*ROWS, 0, "as"), "surprise"),
    at((*ROWS, 5), run(4, 8, "data", "t8")),
    at(("summary", "rows_in"), more(-9)),
    at(("summary", "rows_out"), more(-1)),
    at(("summary", "left_out"), {}),
    at(("summary", "left_out", "outside"), 1),
    at(("summary", "sheets_out"), 2),
    at(("output", "rows"), more(1)),
    at(("output", "sheet_rows"), [14]),
    at(("output", "sheet_rows"), [15, 0]),
    # Rows quietly gone from every count but the one made while reading.
    together(
        drop(9), at(("summary", "left_out", "outside"), 2), at(("summary", "rows_in"), more(-2))
    ),
    # A row said to be in the output that is not: the workbook is counted.
    together(
        at((*ROWS, 8), run(13, 13, "data")), at((*SHEET, "tables", 0), table("t1", 10)), at(("output", "rows"), 16),
        at(("output", "sheet_rows"), [16]), at(("summary", "rows_out"), 16),
        at(("summary", "left_out"), {"group": 1, "note": 1, "skipped_table": 2, "outside": 4}),
    ),
]  # fmt: skip


@pytest.mark.parametrize("change", TAMPERED, ids=lambda change: change.__name__)
def test_books_that_do_not_balance_are_refused(tmp_path, change):
    made = copy.deepcopy(honest())
    change(made)
    assert made != honest()
    with pytest.raises(BadOutput):
        judge(tmp_path, made)


def test_rows_of_a_sheet_that_was_not_read_are_refused(tmp_path):
    made = artifact(ORDER, BOX, rows=15)
    made["sheets"][0]["skipped"] = "it is hidden"
    with pytest.raises(BadOutput, match="not read"):
        judge(tmp_path, made)


def test_data_of_a_table_that_was_left_out_is_refused(tmp_path):
    made = artifact(ORDER, BOX, rows=15)
    made["sheets"][0]["tables"][0]["skipped"] = "a hook skipped it"
    with pytest.raises(BadOutput, match="left out"):
        judge(tmp_path, made)


CHOOSY = replace(ORDER, manifest={**ORDER.manifest, "rows": {"filter": "n > 1", "dedupe": {"key": ["n"]}}})


def choosy():
    """Rows of a table that the manifest leaves out, as it asks for."""
    made = artifact(CHOOSY, BOX, rows=15)
    made["sheets"] = [
        {
            "input": "m.csv", "name": "Sheet1", "index": 0, "visibility": "visible", "rows_read": 20, "shared": [], "beside": [],
            "tables": [table("t1", 15, filtered=3, duplicate=1)],
            "rows": [run(1, 1, "header"), run(2, 6, "data"), run(7, 9, "filtered"), run(10, 10, "duplicate"), run(11, 20, "data")],
        }
    ]  # fmt: skip
    made["summary"] |= {"tables": 1, "rows_in": 19, "rows_out": 15, "left_out": {"filtered": 3, "duplicate": 1}}
    return made


def test_rows_that_the_manifest_leaves_out_are_counted(tmp_path):
    assert judge(tmp_path, choosy(), order=CHOOSY)["left_out"] == {"filtered": 3, "duplicate": 1}


@pytest.mark.parametrize(
    "change",
    [
        drop(2), at((*ROWS, 2, "rows"), 2), at((*ROWS, 2, "to"), 10), at((*ROWS, 3, "as"), "filtered"),
        at((*SHEET, "tables", 0, "left_out", "filtered"), 4), at(("summary", "left_out", "duplicate"), 2), at(("summary", "rows_in"), more(1)),
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_forged_counts_of_rows_that_are_left_out_are_refused(tmp_path, change):
    made = choosy()
    change(made)
    with pytest.raises(BadOutput):
        judge(tmp_path, made, order=CHOOSY)


@pytest.mark.parametrize(
    ("rows", "kind"), [({}, "duplicate"), ({"filter": "n > 1"}, "duplicate"), ({"dedupe": {"key": ["n"]}}, "filtered")]
)
def test_rows_are_left_out_only_as_the_manifest_asks(tmp_path, rows, kind):
    """Rules that run in the box cannot hide rows behind a filter that nobody wrote."""
    with pytest.raises(BadOutput, match=f"as {kind}, which the manifest does not ask for"):
        judge(tmp_path, choosy(), order=replace(CHOOSY, manifest={**ORDER.manifest, "rows": rows}))
