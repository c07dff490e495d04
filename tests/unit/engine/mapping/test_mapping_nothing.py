"""A job that finds none of its fields fails, and says what it saw instead."""

import json

import pytest

from tests.support.engine_jobs import run_job

FIELDS = [{"name": "salary"}, {"name": "employee"}]
STRANGE = [["Mystery A", "Mystery B"], ["x1", 7], ["x2", 8], ["x3", 9]]


def failed(done):
    assert done.error["code"] == "nothing_mapped", done.end
    return done.error


def test_no_field_in_any_table_ends_the_job_with_its_artifact(tmp_path):
    done = run_job(tmp_path, STRANGE, fields=FIELDS)
    failed(done)
    assert done.artifact["validation"]["by_code"]["nothing_mapped"] == 1
    assert done.artifact["output"]["rows"] == 0
    assert "Mystery A" in (done.folder / "report.html").read_text()
    assert not (done.folder / "normalized.xlsx").exists()


def test_the_message_names_the_headers_that_were_seen_and_the_nearest_fields(tmp_path):
    rows = [["Mystery A", "Employee city"], ["x1", 7], ["x2", 8], ["x3", 9]]
    error = failed(run_job(tmp_path, rows, fields=[{"name": "salary"}, {"name": "employee_gross_pay"}]))
    assert "A “Mystery A”" in error["message"]
    assert "B “Employee city” (nearest: employee_gross_pay)" in error["message"]
    assert "synonyms" in error["where"]["remedy"]
    assert (error["where"]["input"], error["where"]["sheet"]) == ("in.xlsx", "Sheet1")


def test_redacted_headers_are_not_in_the_message(tmp_path):
    done = run_job(tmp_path, STRANGE, fields=FIELDS, redact_headers=True)
    assert "Mystery" not in json.dumps(done.events)
    assert "columns seen: A, B" in failed(done)["message"]


def test_a_wide_table_names_some_of_its_headers_and_counts_the_rest(tmp_path):
    rows = [[f"Mystery {n} {'x' * 90}" for n in range(200)], *([n] * 200 for n in range(4))]
    message = failed(run_job(tmp_path, rows, fields=FIELDS))["message"]
    assert message.endswith("and 180 more")
    assert len(message) < 2000


@pytest.mark.parametrize("policy", ["keep", "prefix", "drop"])
def test_what_becomes_of_unmapped_columns_does_not_matter(policy, tmp_path):
    failed(run_job(tmp_path, STRANGE, fields=FIELDS, mapping={"unmapped": policy}))


def test_defaults_alone_make_no_table(tmp_path):
    failed(run_job(tmp_path, STRANGE, fields=[{"name": "salary", "default": "0"}]))


def test_one_mapped_table_is_enough(tmp_path):
    sheets = {"a": [["salary", "n"], ["x", 1], ["y", 2], ["z", 3]], "b": STRANGE}
    done = run_job(tmp_path, sheets, fields=FIELDS)
    assert done.column("salary") == ["x", "y", "z"]
    assert [f["code"] for f in done.findings] == ["table_unmapped", "field_unmapped"]


def test_constant_and_computed_fields_need_no_column(tmp_path):
    fields = [{"name": "source", "constant": "HR"}, {"name": "twice", "type": "integer"}]
    rule = "def transform(*, values, rows):\n    return [2 * row for row in rows]\n"
    done = run_job(tmp_path, STRANGE, fields=fields, rules={"columns/twice.py": rule})
    assert done.column("source") == ["HR"] * 3
    assert done.column("twice") == [4, 6, 8]


def test_a_field_that_a_rule_could_not_compute_does_not_count(tmp_path):
    rule = "def transform(*, value):\n    return value.upper()\n"
    failed(run_job(tmp_path, STRANGE, fields=[{"name": "salary"}], rules={"columns/salary.py": rule}))


def test_a_package_without_fields_keeps_every_column(tmp_path):
    hook = "def on_job_end(*, summary):\n    pass\n"
    done = run_job(tmp_path, STRANGE, rules={"hooks/end.py": hook})
    assert done.rows() == STRANGE


def test_a_field_that_only_the_package_speaks_of_is_mapped_and_counts(tmp_path):
    rule = "def validate(*, value):\n    pass\n"
    done = run_job(tmp_path / "a", STRANGE, rules={"columns/mystery_a.py": rule})
    assert done.rows()[0] == ["mystery_a", "Mystery B"]
    failed(run_job(tmp_path / "b", STRANGE, rules={"columns/salary.py": rule}))


def test_a_hook_may_map_what_nothing_else_did(tmp_path):
    hook = "def after_mapping(*, mapping):\n    return {'mapping': {'A': 'salary'}}\n"
    done = run_job(tmp_path, STRANGE, fields=FIELDS, rules={"hooks/map.py": hook})
    assert done.column("salary") == ["x1", "x2", "x3"]


def test_columns_without_a_header_row_may_be_named_by_their_letters(tmp_path):
    rows = [["Ann", "Oslo", 1], ["Bob", "Rome", 2], ["Cy", "Bonn", 3]]
    fields = [{"name": "city", "synonyms": ["B"]}, {"name": "name", "synonyms": ["a"]}]
    done = run_job(tmp_path, rows, fields=fields, reading={"header": "none"})
    assert (done.column("city"), done.column("name")) == (["Oslo", "Rome", "Bonn"], ["Ann", "Bob", "Cy"])


def test_a_file_without_a_header_row_is_reported_how_to_name_its_columns(tmp_path):
    rows = [["Ann", "Oslo", 1], ["Bob", "Rome", 2], ["Cy", "Bonn", 3]]
    error = failed(run_job(tmp_path, rows, fields=FIELDS, reading={"header": "none"}))
    assert '"synonyms": ["B"]' in error["where"]["remedy"]
    assert "Ann" not in json.dumps(error)
