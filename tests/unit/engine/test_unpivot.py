"""Columns that become rows: months across, one row for each."""

import copy

import pytest

from runner.engine.protocol import BadOutput
from runner.engine.tables import unpivoting
from runner.engine.verifying.balance import balance
from tests.support.engine_jobs import run_job

FIELDS = [{"name": "item", "required": True}, {"name": "month"}, {"name": "amount", "type": "decimal"}]
MONTHS = ["Jan", "Feb", "Mar"]
UNPIVOT = {"columns": MONTHS, "name_to": "month", "value_to": "amount"}
ROWS = [
    ["Item", *MONTHS, "Note"],
    ["bolt", 1, 2, 3, "x"],
    ["nut", 4, None, 6, "y"],
    ["washer", None, None, None, "z"],
    ["screw", 7, 8, 9, "w"],
]


def unpivoted(folder, rows=ROWS, fields=FIELDS, *, rules=None, aux=None, **unpivot):
    more = {name: unpivot.pop(name) for name in ("on_error", "output", "reading", "mapping") if name in unpivot}
    return run_job(folder, rows, fields=fields, row_shape={"unpivot": UNPIVOT | unpivot}, rules=rules, aux=aux, **more)


def findings(done, code):
    return [f for f in done.artifact["validation"]["findings"] if f["code"] == code]


def table(done):
    (found,) = [t for sheet in done.artifact["sheets"] for t in sheet["tables"]]
    return found


def test_each_month_of_a_row_is_a_row(tmp_path):
    done = unpivoted(tmp_path)
    assert done.rows() == [
        ["item", "Note", "month", "amount"],
        ["bolt", "x", "Jan", 1], ["bolt", "x", "Feb", 2], ["bolt", "x", "Mar", 3],
        ["nut", "y", "Jan", 4], ["nut", "y", "Mar", 6],
        ["screw", "w", "Jan", 7], ["screw", "w", "Feb", 8], ["screw", "w", "Mar", 9],
    ]  # fmt: skip


def test_every_row_of_the_sheet_is_accounted_for(tmp_path):
    done = unpivoted(tmp_path)
    summary, found = done.artifact["summary"], table(done)
    assert (summary["rows_in"], summary["rows_used"], summary["rows_out"]) == (4, 3, 8)
    assert summary["left_out"] == {"blank": 1}
    assert found["unpivot"] == {"columns": 3, "letters": ["B", "C", "D"], "rows": 8, "blanks": "drop"}
    assert [(f["row"], f["severity"]) for f in findings(done, "rows_blank")] == [(4, "info")]


def test_blank_cells_are_kept_where_the_manifest_says_so(tmp_path):
    done = unpivoted(tmp_path, blanks="keep")
    assert len(done.rows()) == 1 + 12
    assert done.column("amount")[6:9] == [None] * 3
    assert "blank" not in done.artifact["summary"]["left_out"]


@pytest.mark.parametrize("forged", [7, 9, 100])
def test_rows_that_the_columns_did_not_become_are_refused(tmp_path, forged):
    done = unpivoted(tmp_path)
    artifact = copy.deepcopy(done.artifact)
    balance(artifact)
    (made,) = [t for sheet in artifact["sheets"] for t in sheet["tables"]]
    made["unpivot"]["rows"] = forged
    with pytest.raises(BadOutput):
        balance(artifact)


@pytest.mark.parametrize("change", [{"rows": 2}, {"rows": 10}, {"blanks": "keep"}, {"columns": 2}])
def test_forged_books_of_unpivoted_tables_are_refused(tmp_path, change):
    artifact = copy.deepcopy(unpivoted(tmp_path).artifact)
    (made,) = [t for sheet in artifact["sheets"] for t in sheet["tables"]]
    made["unpivot"] |= change
    if "rows" in change:  # told alike everywhere
        artifact["output"]["rows"] = artifact["summary"]["rows_out"] = change["rows"]
    with pytest.raises(BadOutput):
        balance(artifact)


def test_findings_name_the_cell_that_a_value_comes_from(tmp_path):
    rows = [ROWS[0], ["bolt", 1, "two", 3, "x"], ["nut", 4, 5, 6, "y"], [None, 7, 8, 9, "w"], ["pin", 1, 1, 1, "v"]]
    done = unpivoted(tmp_path, rows)
    assert [f["cell"] for f in findings(done, "type_error")] == ["C2"]
    assert {f["cell"] for f in findings(done, "required")} == {"A4"}


def test_a_row_with_one_wrong_month_is_set_aside_as_a_whole(tmp_path):
    rows = [ROWS[0], ["bolt", 1, "two", 3, "x"], ["nut", 4, 5, 6, "y"], ["screw", 7, 8, 9, "w"]]
    done = unpivoted(tmp_path, rows, on_error="split", output={"rejects": True})
    assert done.column("item") == ["nut"] * 3 + ["screw"] * 3
    assert done.artifact["summary"]["left_out"] == {"rejected": 1}
    assert done.artifact["summary"]["rows_used"] == 2


@pytest.mark.parametrize("pattern", ["2024-*", "2024-0?", "20*"])
def test_columns_are_named_by_patterns(tmp_path, pattern):
    rows = [["Item", "2024-01", "2024-02"], ["bolt", 1, 2], ["nut", 3, 4], ["pin", 5, 6]]
    done = unpivoted(tmp_path, rows, columns=[pattern])
    assert done.column("month") == ["2024-01", "2024-02"] * 3


def test_the_last_row_of_a_header_names_a_column_unless_it_does_so_twice(tmp_path):
    rows = [
        [None, "2023", "2023", "2024", "2024"], ["Item", "Jan", "Feb", "Jan", "Feb"],
        ["bolt", 1, 2, 3, 4], ["nut", 5, 6, 7, 8], ["pin", 9, 10, 11, 12],
    ]  # fmt: skip
    done = unpivoted(tmp_path, rows)
    assert done.column("month")[:4] == ["2023 / Jan", "2023 / Feb", "2024 / Jan", "2024 / Feb"]


def test_amounts_that_are_texts_are_read_in_one_convention(tmp_path):
    rows = [["Item", "Jan", "Feb"], ["bolt", "1.234,50", "2,25"], ["nut", "7", "1.000"], ["pin", "3,5", "2.500,75"]]
    done = unpivoted(tmp_path, rows)
    assert done.column("amount") == [1234.5, 2.25, 7, 1000, 3.5, 2500.75]


def test_names_and_values_that_no_field_takes_are_columns_at_the_end(tmp_path):
    done = unpivoted(tmp_path, fields=FIELDS[:1])
    assert done.rows()[0] == ["item", "Note", "month", "amount"]
    assert [c.get("added") for c in done.artifact["output"]["columns"]][-2:] == ["unpivoted_name", "unpivoted_value"]


def test_a_table_without_such_columns_is_reported(tmp_path):
    done = unpivoted(tmp_path, [["Item", "Qty"], ["bolt", 1], ["nut", 2], ["pin", 3]])
    assert findings(done, "unpivot_missing")
    assert done.column("item") == ["bolt", "nut", "pin"]


def test_a_column_among_the_months_that_is_not_named_is_reported(tmp_path):
    rows = [["Item", "Jan", "Febuary", "Mar"], ["bolt", 1, 2, 3], ["nut", 4, 5, 6], ["pin", 7, 8, 9]]
    done = unpivoted(tmp_path, rows)
    assert [f["cell"] for f in findings(done, "unpivot_assumed")] == ["C1"]


def test_blank_names_are_filled_before_rows_are_made(tmp_path):
    """The row above may make no row, and still names the rows below it."""
    rows = [ROWS[0][:4], ["bolt", 1, 2, 3], ["nut", None, None, None], [None, 4, 5, 6], ["pin", 7, 8, 9]]
    fields = [{"name": "item", "required": True, "fill_down": True}, *FIELDS[1:]]
    done = unpivoted(tmp_path, rows, fields)
    assert done.column("item") == ["bolt"] * 3 + ["nut"] * 3 + ["pin"] * 3


def test_sheets_of_the_same_items_are_all_used(tmp_path):
    """The items of two years are the same; their amounts are not."""
    years = {
        year: [["Item", *MONTHS], *([f"item {n}", n * k, n + k, 3 * n + k] for n in range(1, 9))]
        for year, k in (("2023", 7), ("2024", 11))
    }
    done = unpivoted(tmp_path, years, reading={"sheets": ["*"]})
    assert done.artifact["summary"]["rows_out"] == 48


def test_rows_are_made_in_parts_of_bounded_size(monkeypatch):
    monkeypatch.setattr(unpivoting, "_ROWS_AT_ONCE", 6)
    spread = [unpivoting.SpreadColumn(n, f"c{n}") for n in (2, 3, 4)]
    columns = [[1, None, 3, 4, 5], [1, None, None, 4, 5], [1, None, 3, 4, 5]]
    parts = list(unpivoting.make_rows(spread, columns, drop=True))
    assert [len(part.at) for part in parts] == [3, 5, 3]
    assert [row for part in parts for row in part.unmade] == [1]
    assert [at for part in parts for at in part.at] == [0] * 3 + [2] * 2 + [3] * 3 + [4] * 3


def test_hooks_and_rules_see_the_made_rows(tmp_path):
    rules = {"columns/amount.py": "def transform(*, value, row, column, **_):\n    return value * 10\n"}
    done = unpivoted(tmp_path, rules=rules)
    assert done.column("amount")[:3] == [10, 20, 30]
