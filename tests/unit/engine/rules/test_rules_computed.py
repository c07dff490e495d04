"""Fields without a column: computed by a rule, constant, or given a default."""

import openpyxl
import pytest

from tests.support.engine_jobs import run_job

ROWS = [["code", "hours"], ["a", 1], ["b", 2], ["c", None], ["d", 4]]
FIELDS = [{"name": "code"}, {"name": "hours", "type": "integer"}]


def run(folder, source, *, name="pay", rows=ROWS, field=None, **manifest):
    fields = [*FIELDS, {"name": name, "type": "integer"} | (field or {})]
    return run_job(folder, rows, fields=fields, rules={f"columns/{name}.py": source}, **manifest)


def test_a_rule_of_a_field_without_a_column_computes_it(tmp_path):
    done = run(tmp_path, "def transform(*, values, params):\n    return [params['m']] * len(values)\n", params={"m": 7})
    assert done.column("pay") == [7, 7, 7, 7]
    assert done.findings == []


PER_CHUNK = "def transform(*, values, columns):\n    return [h and 10 * h for h in columns['hours']]\n"
PER_CELL = "def transform(*, value, record):\n    return record['hours'] and 10 * record['hours']\n"


@pytest.mark.parametrize("source", [PER_CHUNK, PER_CELL])
def test_it_sees_the_other_fields_of_its_rows_typed(source, tmp_path):
    rows = [["code", "hours"], ["a", "1"], ["b", "2"], ["c", None], ["d", "4"]]
    assert run(tmp_path, source, rows=rows).column("pay") == [10, 20, None, 40]


def test_rules_that_look_at_others_run_after_those_that_do_not_in_the_declared_order(tmp_path):
    fields = [
        {"name": "total", "type": "integer"},
        {"name": "tax", "type": "integer"},
        {"name": "hours", "type": "integer"},
    ]
    rules = {
        "columns/total.py": "def transform(*, values, columns):\n    return [h * 10 for h in columns['hours']]\n",
        "columns/tax.py": "def transform(*, value, record):\n    return record['total'] + 1\n",
        "columns/hours.py": "def transform(*, value):\n    return value + 100\n",
    }
    done = run_job(tmp_path, [["hours", "x"], [1, "a"], [2, "b"]], fields=fields, rules=rules)
    assert done.rows()[1:] == [[1010, 1011, 101, "a"], [1020, 1021, 102, "b"]]


def test_a_mapped_column_may_look_at_others_too(tmp_path):
    source = "def transform(*, values, columns):\n    return [f'{v}-{h}' for v, h in zip(values, columns['hours'])]\n"
    done = run_job(tmp_path, ROWS, fields=FIELDS, rules={"columns/code.py": source})
    assert done.column("code") == ["a-1", "b-2", "c-None", "d-4"]
    (code,) = [t for t in done.artifact["transforms"] if t["field"] == "code"]
    assert (code["changed"], code["total"]) == (4, 4)


def test_checks_and_validate_run_on_computed_values(tmp_path):
    source = PER_CHUNK + "def validate(*, value, record):\n    if record['code'] == 'b':\n        return 'no b'\n"
    done = run(tmp_path, source, field={"max": 30, "required": True})
    assert done.artifact["validation"]["by_code"] == {
        "max": 1,
        "required": 1,
        "rule_issue": 1,
    }


def test_what_a_rule_computes_is_read_by_the_declared_type(tmp_path):
    done = run(tmp_path, "def transform(*, values):\n    return ['31'] * len(values)\n")
    assert done.column("pay") == [31] * 4


def test_a_computed_field_may_be_required(tmp_path):
    done = run(tmp_path, "def transform(*, values):\n    return [1] * len(values)\n", field={"required": True})
    assert done.findings == []


def test_a_rule_that_needs_a_column_that_is_not_there_is_reported_with_its_count(tmp_path):
    rows = [["code", "hours"], *([f"c{n}", n] for n in range(500))]
    done = run(tmp_path, "def transform(*, value):\n    return value.upper()\n", rows=rows)
    assert done.column("pay") == [None] * 500
    assert done.artifact["validation"]["by_code"] == {"rule_error": 500}
    assert "no column was found for pay" in done.findings[0]["message"]


def test_the_default_stands_where_a_rule_gives_nothing(tmp_path):
    assert run(tmp_path, PER_CHUNK, field={"default": 0}).column("pay") == [10, 20, 0, 40]


def test_rows_of_later_chunks_meet_their_own_others(tmp_path):
    rows = [["code", "hours"], *([f"c{n}", n] for n in range(1, 5001))]
    assert run(tmp_path, PER_CHUNK, rows=rows).column("pay") == [10 * n for n in range(1, 5001)]


def test_a_failing_row_of_a_chunk_does_not_shift_the_others(tmp_path):
    source = "def transform(*, values, columns):\n    return [10 * h for h in columns['hours']]\n"
    done = run(tmp_path, source)
    assert done.column("pay") == [10, 20, None, 40]
    assert done.artifact["validation"]["by_code"] == {"rule_error": 1}


@pytest.mark.parametrize("source", [
    "def transform(*, value, columns):\n    return 1\n", "def transform(*, values, record):\n    return values\n",
])  # fmt: skip
def test_what_goes_with_cells_does_not_go_with_chunks(source, tmp_path):
    assert "`record` go with `value`" in run(tmp_path, source).error["message"]


def test_a_constant_stands_in_every_row(tmp_path):
    fields = [*FIELDS, {"name": "source", "constant": "HR"}, {"name": "day", "type": "date", "constant": "2026-01-31"}]
    done = run_job(tmp_path, ROWS, fields=fields)
    assert done.column("source") == ["HR"] * 4
    assert [d.date().isoformat() for d in done.column("day")] == ["2026-01-31"] * 4
    assert done.findings == []


def test_no_column_is_mapped_to_a_constant_and_one_with_its_name_is_reported(tmp_path):
    rows = [["code", "source"], ["a", "x"], ["b", "y"], ["c", "z"]]
    done = run_job(tmp_path, rows, fields=[{"name": "code"}, {"name": "source", "constant": "HR"}])
    assert done.rows()[:2] == [["code", "source_2", "source"], ["a", "x", "HR"]]
    assert done.cells("constant_field") == ["B1"]


def test_a_column_like_a_constant_is_given_to_no_other_field(tmp_path):
    rows = [["code", "agent attorney name"], ["a", "x"], ["b", "y"], ["c", "z"]]
    fields = [{"name": "code"}, {"name": "agent_attorney_name", "constant": "-"}, {"name": "agent_attorney_firm_name"}]
    assert run_job(tmp_path, rows, fields=fields).mapped()["agent attorney name"] is None


def test_checks_and_rules_run_on_constants(tmp_path):
    fields = [*FIELDS, {"name": "source", "constant": "HR", "pattern": "[a-z]+"}]
    rules = {"columns/source.py": "def validate(*, value):\n    return 'never'\n"}
    done = run_job(tmp_path, ROWS, fields=fields, rules=rules)
    assert done.artifact["validation"]["by_code"] == {"pattern": 4, "rule_issue": 4}


def test_a_default_stands_where_there_is_no_column_and_where_a_cell_is_blank(tmp_path):
    fields = [{"name": "code"}, {"name": "hours", "type": "integer", "default": 9}, {"name": "plan", "default": "A"}]
    done = run_job(tmp_path, ROWS, fields=fields)
    assert (done.column("hours"), done.column("plan")) == ([1, 2, 9, 4], ["A"] * 4)


def test_values_that_a_hook_gives_a_missing_field_are_checked(tmp_path):
    hook = "def after_transform(*, columns):\n    return {'columns': {'pay': [1, 99, 3, 4]}}\n"
    fields = [*FIELDS, {"name": "pay", "type": "integer", "max": 10}]
    done = run_job(tmp_path, ROWS, fields=fields, rules={"hooks/pay.py": hook})
    assert done.artifact["validation"]["by_code"] == {"max": 1}


def test_a_rule_may_rewrite_a_constant(tmp_path):
    fields = [*FIELDS, {"name": "source", "constant": "HR"}]
    rules = {"columns/source.py": "def transform(*, value, row):\n    return f'{value}-{row}'\n"}
    assert run_job(tmp_path, ROWS, fields=fields, rules=rules).column("source") == ["HR-2", "HR-3", "HR-4", "HR-5"]


def test_a_field_is_mapped_in_one_table_and_computed_in_another(tmp_path):
    sheets = {
        "a": [["code", "hours", "pay"], ["a", 1, 5], ["b", 2, 6], ["c", 3, 7]],
        "b": [["code", "hours"], ["d", 4], ["e", 5], ["f", 6]],
    }
    rule = "def transform(*, value, record):\n    return value if value is not None else 10 * record['hours']\n"
    done = run_job(
        tmp_path, sheets, fields=[*FIELDS, {"name": "pay", "type": "integer"}], rules={"columns/pay.py": rule}
    )
    assert done.column("pay") == [5, 6, 7, 40, 50, 60]


def test_texts_that_a_rule_gives_a_field_are_reported_where_they_can_be_read_in_two_ways(tmp_path):
    rows = [["code", "day"], ["a", "x"], ["b", "y"], ["c", "z"]]
    fields = [{"name": "code"}, {"name": "day", "type": "date"}, {"name": "size", "type": "decimal"}]
    rules = {
        "columns/day.py": "def transform(*, value):\n    return '03/04/2025'\n",
        "columns/size.py": "def transform(*, values):\n    return ['1.234'] * len(values)\n",
    }
    done = run_job(tmp_path, rows, fields=fields, rules=rules)
    assert done.cells("date_order_assumed") == ["B2", "B3", "B4"]
    assert done.artifact["validation"]["by_code"]["decimal_assumed"] == 3


def test_a_rule_that_passes_on_a_long_number_keeps_its_digits(tmp_path):
    long = ["12345678901234567.89", "1.5", "12345678901234567891"]
    rows = [["code", "pay"], *([f"c{n}", text] for n, text in enumerate(long))]
    fields = [{"name": "code"}, {"name": "pay", "type": "decimal"}]
    done = run_job(
        tmp_path, rows, fields=fields, rules={"columns/pay.py": "def transform(*, values):\n    return values\n"}
    )
    assert done.column("pay") == [long[0], 1.5, long[2]]
    assert done.cells("kept_as_text") == ["B2", "B4"]


def test_a_hook_gives_a_field_to_one_column_only(tmp_path):
    rows = [["code", "b", "c"], ["a", "x", "p"], ["b", "y", "q"]]
    hook = "def after_mapping(**given):\n    return {'mapping': {'B': 'plan', 'C': 'plan'}}\n"
    done = run_job(tmp_path, rows, fields=[{"name": "code"}, {"name": "plan"}], rules={"hooks/plan.py": hook})
    assert done.artifact["validation"]["by_code"] == {"field_unmapped": 1, "rule_error": 1}
    assert done.rows()[1:] == [["a", "x", "p", None], ["b", "y", "q", None]]


def test_a_hook_gives_cells_what_a_cell_can_hold(tmp_path):
    rows = [["code", "b"], ["a", "x"], ["b", "y"]]
    hook = "def after_transform(*, columns, **given):\n    return {'columns': {'code': [['a'], {'b': 1}]}}\n"
    done = run_job(tmp_path, rows, fields=[{"name": "code"}], rules={"hooks/code.py": hook})
    assert done.artifact["validation"]["by_code"] == {"rule_error": 1}
    assert done.column("code") == ["a", "b"]


def test_a_rule_that_passes_on_a_padded_number_keeps_what_the_cell_shows(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["code", "zip"])
    for n, number in enumerate((501, 2134, 90210), 2):
        sheet.cell(n, 1, f"c{n}")
        sheet.cell(n, 2, number).number_format = "00000"
    book.save(tmp_path / "in.xlsx")
    rules = {"columns/zip.py": "def transform(*, values):\n    return values\n"}
    done = run_job(tmp_path, fields=[{"name": "code"}], rules=rules)
    assert done.column("zip") == ["00501", "02134", "90210"]
