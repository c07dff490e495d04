"""Every declared type, from cell to written cell."""

import json
from datetime import date, datetime, time

import openpyxl
import pytest

from tests.support.engine_jobs import run_job

D = datetime
CASES = {
    "text": ([" a ", 12, 12.5, True, date(2026, 1, 31), "007"], ["a", "12", "12.5", "TRUE", "2026-01-31", "007"], []),
    "integer": (["1,234", 7, 8.0, "x", 2.5, "9.0"], [1234, 7, 8, "x", 2.5, 9], ["A5", "A6"]),
    "decimal": (["1.5", 2, "(3.25)", "x"], [1.5, 2, -3.25, "x"], ["A5"]),
    "money": (["$1,200.50", "€5", 3, "free"], [1200.5, 5, 3, "free"], ["A5"]),
    "percent": (["45%", 0.5, "7.5 %", "x"], [0.45, 0.5, 0.075, "x"], ["A5"]),
    "date": (["2026-01-31", date(2026, 1, 31), 46053, "soon"], [D(2026, 1, 31)] * 3 + ["soon"], ["A5"]),
    "datetime": (["2026-01-31 10:20", D(2026, 1, 31, 10, 20), "x"], [D(2026, 1, 31, 10, 20)] * 2 + ["x"], ["A4"]),
    "time": (["9:30 pm", time(21, 30), "x"], [time(21, 30), time(21, 30), "x"], ["A4"]),
    "boolean": (["yes", "N", 1, True, "?"], [True, False, True, True, "?"], ["A6"]),
    "email": (["A@B.de", "x"], ["A@b.de", "x"], ["A3"]),
    "phone": (["+1 555 123 4567", "x", 5551234567], ["+15551234567", "x", "5551234567"], ["A3"]),
    "url": (["www.a.de/X", "x"], ["https://www.a.de/X", "x"], ["A3"]),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_type_converts_what_it_can_and_keeps_the_rest_with_a_finding(kind, tmp_path):
    before, after, wrong = CASES[kind]
    done = run_job(
        tmp_path, [["Field", "n"], *([v, n] for n, v in enumerate(before))], fields=[{"name": "field", "type": kind}]
    )
    assert done.column("field") == after
    assert done.cells("type_error") == wrong


def test_an_enum_is_spelled_as_declared(tmp_path):
    fields = [{"name": "plan", "type": "enum", "allowed": ["Gold", "Silver", 3]}]
    done = run_job(tmp_path, [["plan", "n"], [" gold", 1], ["SILVER", 2], ["tin", 3], [3, 4]], fields=fields)
    assert done.column("plan") == ["Gold", "Silver", "tin", 3]
    assert done.cells("not_allowed") == ["A4"]


def test_an_enum_is_spelled_as_its_lookup_table_does(tmp_path):
    fields = [{"name": "plan", "type": "enum", "allowed": {"lookup": "plans", "column": "Code"}}]
    rows = [["plan", "n"], ["gold", 1], ["tin", 2]]
    done = run_job(tmp_path, rows, fields=fields, aux={"plans": "code,name\nGOLD,Gold plan\nSILVER,Silver plan\n"})
    assert done.column("plan") == ["GOLD", "tin"]
    assert done.findings[0]["rule"] == "lookup:plans.Code"


def test_a_lookup_column_that_is_not_there_is_the_configs_fault(tmp_path):
    fields = [{"name": "plan", "type": "enum", "allowed": {"lookup": "plans", "column": "kode"}}]
    done = run_job(tmp_path, [["plan", "n"], ["a", 1]], fields=fields, aux={"plans": "code,name\nGOLD,x\n"})
    assert done.error["code"] == "config_refused"
    assert "code, name" in done.error["where"]["remedy"]


def test_the_column_decides_the_order_of_its_dates(tmp_path):
    rows = [["when", "n"], ["02/03/2026", 1], ["25/03/2026", 2]]
    done = run_job(tmp_path, rows, fields=[{"name": "when", "type": "date"}])
    assert done.column("when") == [D(2026, 3, 2), D(2026, 3, 25)]
    assert done.artifact["transforms"][0]["day_first"] is True


def test_dates_that_can_be_read_both_ways_are_reported_to_be_assumed(tmp_path):
    rows = [["when", "n"], ["02/03/2026", 1], ["04/03/2026", 2]]
    done = run_job(tmp_path, rows, fields=[{"name": "when", "type": "date"}])
    (told,) = done.findings
    assert (told["code"], told["severity"]) == ("date_order_assumed", "warning")
    assert '"day_first": true (or false) on field when' in told["message"]


def test_the_column_decides_its_decimal_sign(tmp_path):
    done = run_job(tmp_path, [["pay", "n"], ["1.234", 1], ["12,50", 2]], fields=[{"name": "pay", "type": "money"}])
    assert done.column("pay") == [1234, 12.5]


def test_a_default_fills_blanks_and_absent_columns(tmp_path):
    fields = [{"name": "a"}, {"name": "b", "default": "none"}, {"name": "c", "type": "integer", "default": 0}]
    done = run_job(tmp_path, [["a", "b"], ["x", None], ["y", "z"]], fields=fields)
    assert done.rows()[1:] == [["x", "none", 0], ["y", "z", 0]]


def test_whole_numbers_beyond_fifteen_digits_keep_their_digits_as_text(tmp_path):
    done = run_job(tmp_path, [["id", "n"], ["12345678901234567890", 1]], fields=[{"name": "id", "type": "integer"}])
    assert done.column("id") == ["12345678901234567890"]


def test_text_that_looks_like_a_formula_stays_text(tmp_path):
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"]
    done = run_job(tmp_path, [["a", "b"], *([t, t] for t in texts)], fields=[{"name": "a", "clean": []}])
    sheet = openpyxl.load_workbook(done.folder / "normalized.xlsx").active
    assert {c.data_type for row in sheet.iter_rows(min_row=2) for c in row} == {"s"}
    assert done.column("a") == done.column("b") == texts


def test_an_error_cell_is_a_finding_and_stays_an_error(tmp_path):
    done = run_job(tmp_path, [["a", "b"], ["#N/A", 1], ["x", 2]], fields=[{"name": "a"}])
    assert done.cells("cell_error") == ["A2"]
    assert done.column("a") == ["#N/A", "x"]


def test_a_table_without_a_header_keeps_all_its_rows_and_says_so(tmp_path):
    rows = [[n, n * 2.5, f"2026-01-{n:02d}"] for n in range(1, 12)]
    done = run_job(tmp_path, rows, fields=[{"name": "when", "type": "date"}], mapping={"threshold": 0.2})
    assert len(done.column("when")) == 11
    assert "no_header" in {f["code"] for f in done.findings}


def test_a_text_too_long_for_a_cell_is_cut_with_a_finding(tmp_path):
    done = run_job(tmp_path, [["a", "n"], ["x" * 32_000, 1], ["y", 2]], fields=[{"name": "a"}], rules=LONGER)
    assert done.cells("text_cut") == ["A2"]
    assert len(done.column("a")[0]) == 32_767


LONGER = {"columns/a.py": "def transform(*, value):\n    return value * 2\n"}


def test_what_a_spreadsheet_cannot_hold_exactly_is_reported_to_be_text(tmp_path):
    rows = [["id", "n"], ["12345678901234567890", 1], ["7", 2]]
    done = run_job(tmp_path, rows, fields=[{"name": "id", "type": "integer"}])
    assert done.cells("kept_as_text") == ["A2"]


def test_hidden_sheets_are_skipped_and_said(tmp_path):
    book = openpyxl.Workbook()
    for name in ("seen", "hidden"):
        sheet = book.create_sheet(name)
        for row in (["code", "n"], [name, 1], ["x", 2]):
            sheet.append(row)
    book["hidden"].sheet_state = "hidden"
    book.remove(book.worksheets[0])
    book.save(tmp_path / "in.xlsx")
    done = run_job(tmp_path, fields=[{"name": "code"}])
    assert done.column("code") == ["seen", "x"]
    assert [f["code"] for f in done.findings] == ["hidden_sheet_skipped"]
    read = run_job(tmp_path, fields=[{"name": "code"}], reading={"hidden_sheets": "read"})
    assert read.column("code") == ["seen", "x", "hidden", "x"]


def test_hidden_rows_and_columns_follow_the_manifest(tmp_path):
    book = openpyxl.Workbook()
    for row in (["code", "secret", "n"], ["a", 1, 1], ["b", 2, 2], ["c", 3, 3]):
        book.active.append(row)
    book.active.row_dimensions[3].hidden = True
    book.active.column_dimensions["B"].hidden = True
    book.save(tmp_path / "in.xlsx")
    assert run_job(tmp_path, fields=[{"name": "code"}]).rows()[0] == ["code", "secret", "n"]
    done = run_job(tmp_path, fields=[{"name": "code"}], reading={"hidden_rows": "skip", "hidden_columns": "skip"})
    assert done.rows() == [["code", "n"], ["a", 1], ["c", 3]]


def test_sheets_are_chosen_by_pattern(tmp_path):
    sheets = {"2026-01": [["code", "n"], ["a", 1], ["b", 2]], "notes": [["code", "n"], ["c", 1], ["d", 2]]}
    done = run_job(tmp_path, sheets, fields=[{"name": "code"}], reading={"sheets": ["2026-*"]})
    assert done.column("code") == ["a", "b"]
    assert [s.get("skipped") is not None for s in done.artifact["sheets"]] == [False, True]


def test_rows_in_no_table_are_reported_and_not_shown(tmp_path):
    form = [["Prepared", "Xq7-marker"], [None], [None]]
    table = [["code", "n"], *[[f"c{n}", n] for n in range(60)]]
    done = run_job(tmp_path, [*form, *table], fields=[{"name": "code"}, {"name": "n", "type": "integer"}])
    (told,) = [f for f in done.findings if f["code"] == "rows_outside"]
    assert told["message"].startswith("row 1 is left out")
    assert "Xq7" not in json.dumps(done.artifact)


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        ("● ○ ●", [True, False, True]),
        ("○ × ○", [True, False, True]),  # noqa: RUF001
        ("☑ ☐", [True, False]),
        ("✅ ❌", [True, False]),
        ("☒ ☐", [True, False]),
        ("■ □", [True, False]),
        ("☑ ☒ ☐", [True, "☒", False]),
        ("Y N", [True, False]),
        ("V Y V", ["V", "Y", "V"]),  # Turkish for yes and no: each by itself would be a yes
        ("A N A", ["A", "N", "A"]),
        ("Y Y", [True, True]),
        ("Y yes", [True, True]),
        ("✓ x", [True, "x"]),
    ],
)
def test_marks_are_read_together(tmp_path, cells, read):
    rows = [["id", "paid"], *([f"k{n}", cell] for n, cell in enumerate(cells.split()))]
    done = run_job(tmp_path, rows, fields=[{"name": "id"}, {"name": "paid", "type": "boolean"}])
    assert done.column("paid") == read
    assert len(done.cells("type_error")) == sum(isinstance(one, str) for one in read)


@pytest.mark.parametrize(("name", "told"), [("moisture_percent", ["unit_assumed"]), ("moisture", [])])
def test_shares_shown_as_percent_are_told_where_the_field_counts_percent(tmp_path, name, told):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["id", name], ["a", 0.15], ["b", 0.2], ["c", 0.31]):
        sheet.append(row)
    for n in (2, 3, 4):
        sheet.cell(n, 2).number_format = "0%"
    book.save(tmp_path / "in.xlsx")
    done = run_job(tmp_path, fields=[{"name": "id"}, {"name": name, "type": "decimal"}])
    assert [f["code"] for f in done.findings if f["severity"] != "info"] == told
