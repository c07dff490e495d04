"""Every row and cell of a sheet is in the output or named in the artifact, whatever the sheet looks like."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import openpyxl
import pytest
from openpyxl.utils import coordinate_to_tuple, get_column_letter

from runner.boxes import Isolation
from runner.engine import job
from runner.engine.contract import InputFile, JobFacts, Order
from runner.engine.pages.explain import explain
from runner.engine.reading.spool import Room
from runner.engine.writing import book
from tests.support.effort import examples
from tests.support.engine_jobs import run_job, workbook
from tests.support.outputs import check as verify

FIELDS = [{"name": "code"}, {"name": "n", "type": "integer"}]
BOX = Isolation(driver="process", level="limits", rungs={}, gaps=())


ORDER = Order(
    job=JobFacts(job_id="acme-test-1", tenant="acme", workflow="test", attempt=1),
    manifest={"name": "test"},
    inputs=(InputFile(role="primary", name="in.xlsx", path=Path("in.xlsx"), size=1, sha256="0" * 64),),
    config_digest="0" * 8,
)


def check(done):
    """What the runner would say of these outputs."""
    return verify(ORDER, {n: done.folder / n for n in ("artifact.json", "normalized.xlsx")}, BOX)


def runs(done, sheet=0):
    return [(r["from"], r["to"], r["as"], r["rows"]) for r in done.artifact["sheets"][sheet]["rows"]]


def messages(done, code):
    return [(f["severity"], f["message"]) for f in done.findings if f["code"] == code]


def test_the_runs_name_every_row_and_what_it_was_taken_for(tmp_path):
    rows = [
        ["A report"], [None], ["code", "n", "x"],
        *([f"c{n}", n, n / 2] for n in range(20)), ["Total", 190, 95], [None], ["Source: nobody"],
    ]  # fmt: skip
    done = run_job(tmp_path, rows, fields=FIELDS)
    assert runs(done) == [(1, 1, "title", 1), (3, 3, "header", 1), (4, 23, "data", 20), (24, 24, "total", 1), (26, 26, "note", 1)]  # fmt: skip
    (table,) = done.artifact["sheets"][0]["tables"]
    assert (table["rows_in"], table["rows_out"], table["left_out"]) == (22, 20, {"total": 1, "note": 1})
    assert done.artifact["summary"]["rows_in"] == 22
    assert check(done)["left_out"] == {"total": 1, "note": 1}


def test_a_plain_file_gets_no_finding(tmp_path):
    done = run_job(tmp_path, [["code", "n"], *([f"c{n}", n] for n in range(20))], fields=FIELDS)
    assert done.findings == []
    assert done.artifact["summary"] | {"columns_mapped": 0} == {
        "tables": 1, "rows_in": 20, "rows_out": 20, "left_out": {}, "sheets_out": 1, "columns_mapped": 0,
        "columns_unmapped": 0, "findings": {"error": 0, "warning": 0, "info": 0}, "rows_with_errors": 0,
    }  # fmt: skip


def test_rows_of_spaces_are_blank_rows(tmp_path):
    rows = [["code", "n"], ["a", 1], ["b", 2], [" ", None], ["  ", "\xa0"], ["c", 3], ["d", 4], [None], [" "]]
    done = run_job(tmp_path, rows, fields=FIELDS)
    assert done.column("code") == ["a", "b", "c", "d"]
    assert done.artifact["sheets"][0]["rows_read"] == 5
    assert done.findings == []
    check(done)


def test_left_out_totals_have_addresses(tmp_path):
    rows = [["code", "n"], *([f"c{n}", n] for n in range(9)), ["Total", 36]]
    done = run_job(tmp_path, rows, fields=FIELDS)
    ((severity, message),) = messages(done, "rows_total")
    assert severity == "info"
    assert message.startswith("row 11 is left out: a total; to keep:")


def test_rows_of_records_that_belong_to_no_table_are_a_warning(tmp_path):
    rows = [["code", "n"], *([f"c{n}", n] for n in range(60)), *[[None]] * 12, ["left", 7, "over", 9]]
    done = run_job(tmp_path, {"Sheet1": rows, "Words": [["only a word"]]}, fields=FIELDS)
    told = [(f["sheet"], f["row"], f["severity"]) for f in done.findings if f["code"] == "rows_outside"]
    outside = [(r["from"], r["to"]) for r in done.artifact["sheets"][0]["rows"] if r["as"] == "outside"]
    assert outside == [(74, 74)]
    assert told == [("Sheet1", 74, "warning"), ("Words", 1, "info")]


def test_hidden_rows_that_are_skipped_are_listed(tmp_path):
    path = workbook(tmp_path / "in.xlsx", {"Sheet1": [["code", "n"], *([f"c{n}", n] for n in range(20))]})
    made = openpyxl.load_workbook(path)
    for row in (5, 6, 9):
        made.worksheets[0].row_dimensions[row].hidden = True
    made.save(path)
    done = run_job(tmp_path, fields=FIELDS, reading={"hidden_rows": "skip"})
    assert [r for r in runs(done) if r[2] == "hidden"] == [(5, 6, "hidden", 2), (9, 9, "hidden", 1)]
    assert done.artifact["summary"]["left_out"] == {"hidden": 3}
    assert len(messages(done, "rows_hidden")) == 2
    check(done)


def test_rows_that_only_hidden_columns_fill_are_hidden(tmp_path):
    rows = [["code", "n", "secret"], *([f"c{n}", n, n] for n in range(20))]
    rows[7] = [None, None, 5]
    path = workbook(tmp_path / "in.xlsx", {"Sheet1": rows})
    made = openpyxl.load_workbook(path)
    made.worksheets[0].column_dimensions["C"].hidden = True
    made.save(path)
    done = run_job(tmp_path, fields=FIELDS, reading={"hidden_columns": "skip"})
    assert [r for r in runs(done) if r[2] not in ("data", "header")] == [(8, 8, "hidden", 1)]
    assert done.artifact["sheets"][0]["tables"][0]["left_out_columns"] == [{"column": "C", "why": "hidden"}]
    check(done)


def test_a_table_that_a_hook_leaves_out_is_listed(tmp_path):
    hook = "def after_structure(*, tables):\n    return {'skip': [t['id'] for t in tables if t['sheet'] == 'b']}\n"
    rows = [["code", "n"], *([f"c{n}", n] for n in range(9))]
    done = run_job(tmp_path, {"a": rows, "b": rows}, fields=FIELDS, rules={"hooks/skip.py": hook})
    assert runs(done, 1) == [(1, 1, "header", 1), (2, 10, "skipped_table", 9)]
    assert messages(done, "table_skipped") == [("info", "a hook skipped this table")]
    assert done.artifact["summary"]["left_out"] == {"skipped_table": 9}
    check(done)


def test_a_table_with_no_declared_field_is_listed(tmp_path):
    other = [["Mystery", "Riddle"], *(["x" * n, f"2020-01-{n + 1:02d}"] for n in range(1, 9))]
    rows = {"a": [["code", "n"], *([f"c{n}", n] for n in range(9))], "b": other}
    done = run_job(tmp_path, rows, fields=FIELDS)
    assert runs(done, 1) == [(1, 1, "header", 1), (2, 9, "skipped_table", 8)]
    assert done.artifact["summary"]["rows_in"] == 17
    check(done)


def test_the_books_of_a_job_that_maps_nothing_balance_too(tmp_path):
    rows = [["A title"], ["Mystery", "Riddle"], *(["x" * n, f"2020-01-{n + 1:02d}"] for n in range(1, 9))]
    done = run_job(tmp_path, rows, fields=[{"name": "zip_code"}, {"name": "salary", "type": "money"}])
    assert done.error["code"] == "nothing_mapped"
    told = json.loads((tmp_path / "artifact.json").read_bytes())
    assert told["summary"]["left_out"]["skipped_table"] == 8
    assert sum(run["rows"] for run in told["sheets"][0]["rows"]) == told["sheets"][0]["rows_read"] == 10
    assert verify(ORDER, {"artifact.json": tmp_path / "artifact.json"}, BOX, audit=True)["rows_out"] == 0


def test_cells_beside_a_table_are_named(tmp_path):
    rows = [["code", "n"], *([f"c{n}", n] for n in range(40))]
    rows[5] += [None, None, None, None, "look here"]
    done = run_job(tmp_path, rows, fields=FIELDS)
    assert done.artifact["sheets"][0]["beside"] == [{"range": "G6:G6", "cells": 1}]
    assert messages(done, "cells_beside") == [("info", "G6 is beside a table, outside its columns; left out")]


def test_a_column_that_fills_late_is_kept(tmp_path):
    """A column without a header is not blank because its first rows are."""
    rows = [["code", None, "n"], *([f"c{n}", None, n] for n in range(400))]
    for row in rows[300:]:
        row[1] = "late"
    done = run_job(tmp_path, rows, fields=FIELDS)
    assert Counter(v for row in done.rows() for v in row)["late"] == 101 or done.artifact["sheets"][0]["beside"]


def test_unmapped_columns_that_are_dropped_are_named(tmp_path):
    rows = [["code", "n", "other", "blank"], *([f"c{n}", n, n, None] for n in range(9))]
    done = run_job(tmp_path, rows, fields=FIELDS, mapping={"unmapped": "drop"})
    assert done.artifact["sheets"][0]["tables"][0]["left_out_columns"] == [{"column": "C", "why": "unmapped"}]


def test_rows_that_do_not_fit_on_a_sheet_go_on_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "MAX_ROWS", 11)
    done = run_job(tmp_path, [["code", "n"], *([f"c{n}", n] for n in range(25))], fields=FIELDS)
    output = done.artifact["output"]
    assert output["sheets"] == ["Normalized", "Normalized (2)", "Normalized (3)"]
    assert output["sheet_rows"] == [10, 10, 5]
    ((severity, message),) = messages(done, "output_split")
    assert severity == "warning"
    assert "Normalized (10 rows), Normalized (2) (10 rows), Normalized (3) (5 rows)" in message
    assert check(done)["sheets_out"] == 3


def grouped():
    """Rows with captions that a rule tells apart, so that the test is not about finding them."""
    body = [["North", None], *([f"c{n}", n] for n in range(5)), ["South", None], *([f"d{n}", n] for n in range(5))]
    return [["code", "n"], *body, ["Total", 20]]


CAPTIONS = {
    "row_types/group.py": "def detect_group(*, row_values_sample):\n"
    "    held = [v for v in row_values_sample if v is not None]\n"
    "    return {'scores': {'group': 20.0}} if held and held[0] in ('North', 'South', 'Oslo', 'Bergen') else None\n"
}


def test_captions_fill_a_column(tmp_path):
    done = run_job(tmp_path, grouped(), fields=FIELDS, rules=CAPTIONS, reading={"group_rows": "fill"})
    assert done.rows()[0] == ["code", "n", "group"]
    assert done.column("group") == ["North"] * 5 + ["South"] * 5
    assert done.artifact["summary"]["left_out"] == {"group": 2, "total": 1}
    check(done)


def test_captions_fill_a_declared_field(tmp_path):
    fields = [{"name": "region", "required": True, "clean": ["strip", "upper"]}, *FIELDS]
    reading = {"group_rows": "fill", "group_column": "region"}
    done = run_job(tmp_path, grouped(), fields=fields, rules=CAPTIONS, reading=reading)
    assert done.rows()[:2] == [["region", "code", "n"], ["NORTH", "c0", 0]]
    assert not messages(done, "missing_field")
    check(done)


def test_a_caption_holds_until_the_next_of_its_level(tmp_path):
    body = [["North"], ["Oslo"], ["a", 1], ["b", 1], ["Bergen"], ["c", 1], ["d", 1], ["South"], ["Oslo"], ["e", 2]]
    done = run_job(
        tmp_path, [["code", "n"], *body, ["f", 3]], fields=FIELDS, rules=CAPTIONS, reading={"group_rows": "fill"}
    )
    assert done.column("group") == ["North / Oslo"] * 2 + ["North / Bergen"] * 2 + ["South / Oslo"] * 2


def test_captions_and_totals_are_kept_where_the_manifest_says_so(tmp_path):
    reading = {"group_rows": "keep", "total_rows": "keep"}
    done = run_job(tmp_path, grouped(), fields=FIELDS, rules=CAPTIONS, reading=reading)
    assert done.column("code") == [row[0] for row in grouped()[1:]]
    assert runs(done) == [(1, 1, "header", 1), (2, 14, "data", 13)]
    assert done.artifact["summary"]["left_out"] == {}


def test_provenance_says_where_each_row_comes_from(tmp_path):
    rows = [["code", "n", "source_row"], [None], *([f"c{n}", n, "x"] for n in range(9))]
    more = [["code", "n", "source_row"], [None], *([f"d{n}", n, "x"] for n in range(9))]
    done = run_job(tmp_path, {"a": rows, "b": more}, fields=FIELDS, output={"provenance": True})
    assert done.rows()[0] == ["code", "n", "source_row", "source_file", "source_sheet", "source_row_2"]
    assert done.rows()[1][-3:] == ["in.xlsx", "a", 3]
    assert done.column("source_row_2") == [*range(3, 12)] * 2
    assert done.artifact["output"]["columns"][-1]["added"] == "source_row"


def test_what_was_left_out_is_explained_with_addresses(tmp_path):
    done = run_job(tmp_path, grouped(), fields=FIELDS, rules=CAPTIONS)
    text = "\n".join(explain(done.artifact))
    assert "left out: rows 2, 8: group; row 14: total" in text
    assert "<td>row 8</td><td>group heading</td>" in (done.folder / "report.html").read_text()


# --- random sheets ---------------------------------------------------------------------------------------------------


def random_sheet(rng):
    """A sheet as people make them: what stands where is known only as cells."""
    cells = {}
    row = 1

    def put(at, values, left=1):
        for n, value in enumerate(values):
            if value is not None:
                cells[at, left + n] = value

    for _ in range(rng.randint(1, 3)):
        left = rng.choice([1, 1, 2, 4])
        if rng.random() < 0.5:
            put(row, [f"Report {rng.randint(1, 99)}"], left)
            row += rng.randint(1, 3)
        width = rng.randint(2, 4)
        beside = rng.random() < 0.3
        heads = rng.sample(["code", "n", "amount", "city", "when"], width)
        put(row, heads, left)
        if beside:
            put(row, ["item", "price"], left + width + 1)
        for n in range(rng.randint(0, 40)):
            row += 1 + (rng.random() < 0.05)
            if rng.random() < 0.05:
                put(row, [rng.choice(["North", "Subtotal", "note: see below"])], left)
            elif rng.random() < 0.05:
                put(row, heads, left)
            elif rng.random() < 0.95:
                put(row, [rng.choice(["x", "y", None]), n, n / 4, "Oslo"][:width], left)
            if beside and rng.random() < 0.6:
                put(row, [f"i{n}", n], left + width + 1)
            if rng.random() < 0.03:
                put(row, ["stray"], left + width + rng.randint(1, 9))
        if rng.random() < 0.4:
            row += 1
            put(row, ["Total", 99, 7][:width], left)
        if rng.random() < 0.4:
            row += rng.randint(1, 3)
            put(row, ["Note: made by hand"], left)
        row += rng.randint(2, 9)
    return cells


def box_of(area):
    first, last = re.fullmatch(r"([A-Z]+[0-9]+):([A-Z]+[0-9]+)", area).groups()
    (top, left), (bottom, right) = coordinate_to_tuple(first), coordinate_to_tuple(last)
    return range(top, bottom + 1), range(left, right + 1)


def expanded(sheet, held):
    """row -> [(table, kind)], by the runs; `held` are the rows that hold something."""
    found = {row: [] for row in held}
    for run in sheet["rows"]:
        inside = [row for row in held if run["from"] <= row <= run["to"]]
        for row in inside:
            found[row].append((run.get("table"), run["as"], len(inside) == run["rows"]))
    return found


@pytest.mark.parametrize("seed", range(examples(60)))
def test_every_row_and_cell_is_accounted_for(tmp_path, seed, monkeypatch):
    rng = random.Random(seed)
    if seed % 3 == 0:  # no room to set rows aside: the sheet is read again
        monkeypatch.setattr(job, "Room", lambda: Room(0, loose=0))
    sheets = {f"s{n}": random_sheet(rng) for n in range(rng.randint(1, 2))}
    path, hidden = tmp_path / "in.xlsx", {}
    made = openpyxl.Workbook()
    made.remove(made.worksheets[0])
    for name, cells in sheets.items():
        page = made.create_sheet(name)
        for (row, column), value in cells.items():
            page.cell(row, column, value)
        hidden[name] = {row for row, _ in cells if rng.random() < 0.1}
        for row in hidden[name]:
            page.row_dimensions[row].hidden = True
    made.save(path)
    skip = rng.random() < 0.5
    reading = {"hidden_rows": "skip" if skip else "read", "group_rows": rng.choice(["drop", "keep", "fill"])}
    done = run_job(tmp_path, fields=FIELDS, reading=reading, output={"provenance": True})
    if not done.end["ok"]:
        assert done.error["code"] == "nothing_mapped"
        return
    check(done)
    written = Counter(zip(done.column("source_sheet"), done.column("source_row"), strict=True))
    for sheet in done.artifact["sheets"]:
        cells = sheets[sheet["name"]]
        held = {row for row, _ in cells}
        assert sheet["rows_read"] == len(held)
        found = expanded(sheet, held)
        ranges = {t["ref"]: box_of(t["range"]) for t in sheet["tables"]}
        for row, claims in found.items():
            assert claims, f"row {row} of {sheet['name']} is in no run"
            tables = [table for table, _, _ in claims]
            outside = None in tables
            assert not outside or len(claims) == 1, f"row {row} is a table's and nobody's"
            data = sum(kind == "data" for _, kind, _ in claims)
            if len(sheet["tables"]) == 1 or outside:  # side by side, a run may span blank rows of its own table
                assert len(claims) == 1
                assert written[sheet["name"], row] == data
            if skip and row in hidden[sheet["name"]]:
                assert written[sheet["name"], row] == 0
        shared = sum((one["tables"] - 1) * one["rows"] for one in sheet["shared"])
        assert sum(run["rows"] for run in sheet["rows"]) - shared == len(held)
        for row, column in cells:
            covered = (
                any(kind in ("outside", "title", "note", "hidden") for _, kind, _ in found[row])
                or any(column in ranges[table][1] for table, _, _ in found[row] if table)
                or any(row in rows and column in columns for rows, columns in (box_of(b["range"]) for b in sheet["beside"]))
            )  # fmt: skip
            assert covered, f"{get_column_letter(column)}{row} is nowhere"
    assert sum(written.values()) == done.artifact["summary"]["rows_out"]
    assert Path(done.folder / "report.html").exists()
