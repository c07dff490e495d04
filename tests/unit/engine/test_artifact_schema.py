"""artifact.json keeps its published schema, its counts are exact, and people can read it."""

import json
from pathlib import Path

import jsonschema
import pytest

from runner.engine.pages.explain import explain
from tests.support.engine_jobs import run_job

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "reference" / "artifact.schema.json").read_text())
FIELDS = [
    {"name": "code", "required": True, "unique": True},
    {"name": "when", "type": "date"},
    {"name": "gone", "required": True},
]
ROWS = [["Code", "When", "Other"], ["a", "2026-01-31", 1], [None, "soon", 2], ["a", "2026-02-01", 3]]
RULES = {
    "columns/code.py": "def transform(*, value):\n    return value\n\ndef validate(*, value):\n    return 1 / 0\n",
    "hooks/end.py": "def finalize(*, state):\n    return {'sheets': {'S': [['a'], [1]]}}\n",
}
CASES = {
    "fields": {"rows": ROWS, "fields": FIELDS},
    "rules": {"rows": ROWS, "fields": FIELDS, "rules": RULES, "output": {"findings_sheet": True}},
    "no table": {"rows": {"Empty": []}, "fields": FIELDS},
    "no header": {"rows": [[1, 2.5], [2, 3.5], [3, 4.5]], "fields": [{"name": "n", "type": "integer"}]},
    "two sheets": {"rows": {"a": ROWS, "b": ROWS}, "fields": FIELDS},
    "redacted": {"rows": ROWS, "fields": FIELDS, "redact_headers": True},
    "a drop": {"files": {"a.xlsx": ROWS, "b.xlsx": ROWS}, "fields": FIELDS, "inputs": {"per": "drop"}},
    "a lookup": {
        "rows": ROWS,
        "fields": [{"name": "code", "allowed": {"lookup": "t", "column": "c"}}],
        "aux": {"t": "c,d\na,1\nb,2\n"},
    },
    "params": {"rows": ROWS, "fields": FIELDS, "params": {"year": 2026, "rate": 1.5, "on": True, "none": None}},
}


@pytest.mark.parametrize("name", CASES)
def test_every_artifact_validates(name, tmp_path):
    jsonschema.Draft202012Validator(SCHEMA).validate(run_job(tmp_path, **CASES[name]).artifact)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_findings_are_capped_and_totals_are_exact(tmp_path):
    rows = [["code", "n"], *([None, n] for n in range(2500))]
    validation = run_job(tmp_path, rows, fields=[{"name": "code", "required": True}]).artifact["validation"]
    assert (validation["kept"], validation["total"]) == (1000, 2500)
    assert validation["totals"] == [{"code": "required", "severity": "error", "field": "code", "count": 2500}]


def test_the_findings_sheet_lists_the_findings(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS, output={"findings_sheet": True})
    rows = done.rows("Findings")
    assert rows[0][:5] == ["severity", "code", "cell", "field", "message"]
    assert ["error", "type_error", "B3", "when"] in [r[:4] for r in rows]


def test_the_summary_of_the_end_event_is_that_of_the_artifact(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS)
    assert done.end["summary"] == done.artifact["summary"]
    assert done.end["summary"]["rows_out"] == 3


def test_the_explanation_says_each_decision_and_its_reason(tmp_path):
    text = "\n".join(explain(run_job(tmp_path, ROWS, fields=FIELDS).artifact))
    assert "table A1:C4, header row 1" in text
    assert "column A “Code” is code (99 %" in text
    assert "column C “Other” is not mapped" in text
    assert "error required, code: 1, first at Sheet1!A3: is blank" in text
    assert "no column was found for the required field gone" in text
    assert text.endswith("Written: 3 rows in 4 columns.")


def test_the_report_is_one_page_that_fetches_nothing(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS)
    page = (done.folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "http:" not in page
    assert "https:" not in page
    assert "<script" not in page
    assert "No column was found for the required field “gone”." in page


def test_headers_are_escaped_in_the_report(tmp_path):
    done = run_job(tmp_path, [["<script>x</script>", "n"], ["a", 1], ["b", 2]], fields=[{"name": "code"}])
    assert "<script" not in (done.folder / "report.html").read_text()
