"""Python rules: what they are given, what they may return, and what happens when they break."""

import pytest

from tests.support.engine_jobs import run_job

ROWS = [["code", "n"], ["a1", 1], ["b2", 2], ["c3", 3]]
FIELD = [{"name": "code"}]


def run(folder, source, *, rows=ROWS, fields=FIELD, **more):
    return run_job(folder, rows, fields=fields, rules={"columns/code.py": source}, **more)


def test_a_transform_of_a_column_returns_its_values(tmp_path):
    done = run(tmp_path, "def transform(*, values):\n    return {'values': [v.upper() for v in values]}\n")
    assert done.column("code") == ["A1", "B2", "C3"]
    assert done.artifact["transforms"][0]["rule"] == "columns.code.transform"
    assert done.artifact["transforms"][0]["changed"] == 3


def test_a_transform_of_a_cell_returns_its_value(tmp_path):
    assert run(tmp_path, "def transform(*, value):\n    return value[::-1]\n").column("code") == ["1a", "2b", "3c"]


def test_a_transform_sees_typed_values_and_its_result_is_checked(tmp_path):
    source = "def transform(*, value):\n    return value * 2 if isinstance(value, float) else 'none'\n"
    rows = [["code", "n"], ["$1.50", 1], ["free", 2]]
    done = run(tmp_path, source, rows=rows, fields=[{"name": "code", "type": "money"}])
    assert done.column("code") == [3, "none"]
    assert done.cells("type_error") == ["A3"]


def test_a_transform_may_mend_what_the_type_refused(tmp_path):
    source = "from datetime import date\ndef transform(*, value):\n    return date(2026, 1, 1) if value == 'new year' else value\n"
    done = run(
        tmp_path,
        source,
        rows=[["code", "n"], ["new year", 1], ["2026-02-01", 2]],
        fields=[{"name": "code", "type": "date"}],
    )
    assert done.findings == []


def test_a_transform_may_warn(tmp_path):
    source = "def transform(*, values):\n    return {'values': values, 'warnings': [{'index': 1, 'message': 'looks old', 'code': 'old'}]}\n"
    found = run(tmp_path, source).findings
    assert [(f["code"], f["severity"], f["cell"], f["message"]) for f in found] == [
        ("old", "warning", "A3", "looks old")
    ]


def test_a_validator_of_a_column_returns_issues(tmp_path):
    source = "def validate(*, values):\n    return {'issues': [{'index': i, 'message': 'no b'} for i, v in enumerate(values) if 'b' in v]}\n"
    (found,) = run(tmp_path, source).findings
    assert (found["code"], found["cell"], found["message"], found["file"], found["line"]) == (
        "rule_issue",
        "A3",
        "no b",
        "columns/code.py",
        1,
    )


@pytest.mark.parametrize("answer", ["'too short'", "False", "{'message': 'too short'}"])
def test_a_validator_of_a_cell_says_what_is_wrong(answer, tmp_path):
    done = run(tmp_path, f"def validate(*, value):\n    return {answer} if value == 'b2' else None\n")
    assert done.cells("rule_issue") == ["A3"]


def test_a_rule_takes_only_what_it_names(tmp_path):
    source = (
        "def validate(*, value, row, header, field, column, table, sheet, input, params, lookups, state, job):\n"
        "    state.setdefault('seen', []).append(row)\n"
        "    ok = (header, field, column, sheet, input) == ('code', 'code', 'A', 'Sheet1', 'in.xlsx')\n"
        "    ok = ok and params['year'] == 2026 and 'in.xlsx' in table and job['tenant'] == 'acme'\n"
        "    return None if ok and lookups['plans']['id'] == ['x'] else 'wrong arguments'\n"
    )
    done = run(tmp_path, source, params={"year": 2026}, aux={"plans": "id,label\nx,y\n"})
    assert done.findings == []


def test_detectors_add_scores_and_are_named_in_the_artifact(tmp_path):
    source = (
        "def detect_shape(*, values_sample, header):\n    return {'scores': {'code': 0.8 if header == 'Zzz' else -1}}\n"
    )
    done = run(tmp_path, source, rows=[["Zzz", "n"], ["a1", 1], ["b2", 2]])
    first = done.artifact["mapping"][0]
    assert first["target"] == "code"
    assert first["contributors"][0] == {"rule": "columns.code.detect_shape", "weight": 9.6}


def test_a_config_alone_declares_its_fields(tmp_path):
    source = "def detect(*, header):\n    return 1.0 if header == 'code' else None\n\ndef transform(*, value):\n    return value\n"
    done = run(tmp_path, source, fields=[])
    assert done.rows()[0] == ["code", "n"]


def test_row_types_add_to_the_structure(tmp_path):
    rows = [["code", "kind"], ["a1", "x"], ["key", "sort"], ["b2", "y"], ["c3", "z"], ["d4", "z"]]
    source = "def detect_key(*, row_values_sample, row_index):\n    return {'scores': {'header': 30}} if row_values_sample[0] == 'key' else None\n"
    done = run_job(tmp_path, rows, fields=[{"name": "key"}], rules={"row_types/header.py": source})
    assert done.column("key")[-3:] == ["b2", "c3", "d4"]
    assert any(3 in t["header_rows"] for t in done.artifact["sheets"][0]["tables"])


RAISES = "def transform(*, value):\n    if value == 'b2':\n        raise ValueError(f'bad {value}')\n    return value.upper()\n"


def test_a_rule_that_raises_fails_only_its_cell(tmp_path):
    done = run(tmp_path, RAISES)
    assert done.column("code") == ["A1", "b2", "C3"]
    (found,) = done.findings
    assert (found["code"], found["cell"], found["rule"], found["file"], found["line"]) == (
        "rule_error",
        "A3",
        "columns.code.transform",
        "columns/code.py",
        3,
    )
    assert "ValueError" in found["message"]


def test_a_rule_over_a_column_that_raises_fails_only_its_cells(tmp_path):
    source = "def transform(*, values):\n    return [v.upper() if v != 'b2' else 1 / 0 for v in values]\n"
    done = run(tmp_path, source)
    assert done.column("code") == ["A1", "b2", "C3"]
    assert done.cells("rule_error") == ["A3"]


def test_a_rule_that_raises_ends_the_job_where_the_manifest_says_so(tmp_path):
    error = run(tmp_path, RAISES, on_rule_error="fail").error
    assert error["code"] == "rule_error"
    assert {k: error["where"][k] for k in ("file", "line", "cell", "rule", "field")} == {
        "file": "columns/code.py", "line": 3, "cell": "A3", "rule": "columns.code.transform", "field": "code",
    }  # fmt: skip


def test_a_rule_broken_on_every_row_is_counted_exactly(tmp_path):
    rows = [["code", "n"], *([f"x{n}", n] for n in range(3000))]
    done = run(tmp_path, "def transform(*, values):\n    raise KeyError('x')\n", rows=rows)
    assert done.artifact["validation"]["by_code"] == {"rule_error": 3000}
    assert len(done.findings) == 1000


def test_a_rule_may_not_exit_the_engine(tmp_path):
    assert run(tmp_path, "import sys\ndef validate(*, value):\n    sys.exit(3)\n").cells("rule_error") == [
        "A2",
        "A3",
        "A4",
    ]


SHAPES = {
    "too few values": "def transform(*, values):\n    return values[1:]\n",
    "no list": "def transform(*, values):\n    return 7\n",
    "a strange value": "def transform(*, value):\n    return object()\n",
    "an issue without index": "def validate(*, values):\n    return {'issues': [{'message': 'x'}]}\n",
    "an index out of range": "def validate(*, values):\n    return {'issues': [{'index': 99}]}\n",
    "an unknown severity": "def validate(*, values):\n    return {'issues': [{'index': 0, 'severity': 'fatal'}]}\n",
    "no issues": "def validate(*, values):\n    return 7\n",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_wrong_shape_is_a_rule_error(name, tmp_path):
    assert run(tmp_path, SHAPES[name]).artifact["validation"]["by_code"] == {"rule_error": 3}


def test_a_message_made_at_run_time_is_withheld(tmp_path):
    done = run(tmp_path, "def validate(*, value):\n    return f'{value} is bad'\n")
    assert "b2" not in (done.folder / "artifact.json").read_text()


HOOKS = """
def on_job_start(*, state, inputs, fields):
    state["calls"] = ["start"]

def after_structure(*, tables, state):
    state["calls"].append("structure")

def after_mapping(*, mapping, headers, state):
    state["calls"].append("mapping")
    return {"mapping": {"B": "count"}}

def after_transform(*, columns, rows, state):
    state["calls"].append("transform")
    return {"columns": {"code": [c + "!" for c in columns["code"]]}}

def after_validate(*, columns, state):
    state["calls"].append("validate")
    return {"issues": [{"index": 2, "field": "count", "message": "seen late", "severity": "info"}]}

def accumulate(*, columns, state):
    state["sum"] = state.get("sum", 0) + sum(columns["count"])

def finalize(*, state):
    return {"sheets": {"Totals": [["what", "value"], ["sum", state["sum"]]]}}

def on_job_end(*, summary, state, log):
    state["calls"].append("end")
    log(" ".join(state["calls"]), summary["rows_out"])
"""


def test_hooks_are_called_at_their_moments_and_may_change_things(tmp_path, capsys):
    done = run_job(
        tmp_path, ROWS, fields=[{"name": "code"}, {"name": "count", "type": "integer"}], rules={"hooks/all.py": HOOKS}
    )
    assert done.rows() == [["code", "count"], ["a1!", 1], ["b2!", 2], ["c3!", 3]]
    assert done.rows("Totals") == [["what", "value"], ["sum", 6]]
    assert done.cells("rule_issue") == ["B4"]
    assert "start structure mapping transform validate end 3" in capsys.readouterr().out


def test_accumulate_sees_every_file_of_a_drop(tmp_path):
    source = (
        "def accumulate(*, columns, input, state):\n    state.setdefault('rows', {})\n"
        "    state['rows'][input] = state['rows'].get(input, 0) + len(columns['code'])\n"
        "def finalize(*, state):\n    return {'sheets': {'Counts': [['file', 'rows'], *map(list, sorted(state['rows'].items()))]}}\n"
    )
    files = {"a.xlsx": ROWS, "b.xlsx": [ROWS[0], ["x7", *ROWS[1][1:]], ["x8", *ROWS[2][1:]]]}
    done = run_job(tmp_path, fields=FIELD, files=files, rules={"hooks/count.py": source}, inputs={"per": "drop"})
    assert done.rows("Counts") == [["file", "rows"], ["a.xlsx", 3], ["b.xlsx", 2]]
    assert done.artifact["output"]["extra_sheets"] == [{"name": "Counts", "rows": 2}]


def test_a_hook_may_leave_a_table_out(tmp_path):
    source = "def after_structure(*, tables):\n    return {'skip': [t['id'] for t in tables if t['sheet'] == 'old']}\n"
    done = run_job(tmp_path, {"old": ROWS, "new": ROWS}, fields=FIELD, rules={"hooks/skip.py": source})
    assert len(done.column("code")) == 3
    assert done.artifact["sheets"][0]["tables"][0]["skipped"] == "a hook skipped it"


def test_rules_import_helpers_of_their_package(tmp_path):
    rules = {
        "columns/code.py": "from helper import twice\ndef transform(*, value):\n    return twice(value)\n",
        "helper.py": "def twice(v):\n    return v + v\n",
    }
    assert run_job(tmp_path, ROWS, fields=FIELD, rules=rules).column("code")[0] == "a1a1"


def test_a_hook_that_answers_with_an_unknown_key_is_reported(tmp_path):
    hook = "def after_transform(*, columns):\n    return {'code': list(columns['code'])}\n"
    done = run_job(tmp_path, ROWS, fields=FIELD, rules={"hooks/totals.py": hook})
    assert "rule_error" in done.artifact["validation"]["by_code"]
