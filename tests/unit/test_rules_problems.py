"""Bad rules: each error names the file, the line and the remedy."""

import pytest
from engine_jobs import run_job

ROWS = [["code", "n"], ["a1", 1], ["b2", 2], ["c3", 3]]
GOOD = "def transform(*, value):\n    return value\n"
# what: (files, file, line, words of the message, words of the remedy); these end the job
FATAL = {
    "no Python": ({"columns/code.py": "x = 1\ndef transform(:\n"}, "columns/code.py", 2, "no Python", "correct this line"),
    "zero bytes": ({"columns/code.py": "x = '\0'\n"}, "columns/code.py", None, "no Python", "correct this line"),
    "raises on import": ({"columns/code.py": "\n\n1 / 0\n"}, "columns/code.py", 3, "ZeroDivisionError", "correct this line"),
    "imports what is not there": ({"columns/code.py": "import no_such_package\n"}, "columns/code.py", 1, "no_such_package", "requirements.txt"),
    "exits on import": ({"columns/code.py": "import sys\nsys.exit()\n"}, "columns/code.py", 2, "SystemExit", "correct this line"),
    "no rule in it": ({"columns/code.py": "x = 1\n"}, "columns/code.py", 1, "no rule in it", "detect_*, transform, validate"),
    "a hook nobody calls": ({"hooks/h.py": "def after_lunch(*, state):\n    pass\n"}, "hooks/h.py", 1, "no rule in it", "on_job_start"),
    "asks for what is not given": ({"columns/code.py": "def transform(*, value, colour):\n    return value\n"}, "columns/code.py", 1, "asks for colour", "params"),
    "takes positional arguments": ({"columns/code.py": "def transform(*values):\n    return values\n"}, "columns/code.py", 1, "positional", "keyword"),
    "asks for neither value nor values": ({"columns/code.py": "\ndef transform(*, header):\n    return header\n"}, "columns/code.py", 2, "must ask for `value`", "values"),
    "asks for both": ({"columns/code.py": "def validate(*, value, values):\n    pass\n"}, "columns/code.py", 1, "must ask for `value`", "values"),
    "a row type nobody knows": ({"row_types/banana.py": "def detect(*, row_index):\n    pass\n"}, "row_types/banana.py", 1, "no kind of row", "header, data, total"),
}  # fmt: skip
# what: (files, file, line, words of the message); these are findings, or end the job where the manifest says so
TOLD = {
    "raises": ({"columns/code.py": "def transform(*, value):\n    x = 1\n    return value + x\n"}, "columns/code.py", 3, "raised TypeError"),
    "raises in a helper": ({"columns/code.py": "from h import f\ndef transform(*, value):\n    return f(value)\n", "h.py": "def f(v):\n    raise ValueError(v)\n"}, "columns/code.py", 3, "raised ValueError"),
    "too few values": ({"columns/code.py": "def transform(*, values):\n    return values[1:]\n"}, "columns/code.py", 1, "returned 0 values for 1"),
    "no list": ({"columns/code.py": "def transform(*, values):\n    return 7\n"}, "columns/code.py", 1, "returned int"),
    "a strange value": ({"columns/code.py": "def transform(*, value):\n    return {1, 2}\n"}, "columns/code.py", 1, "of type set"),
    "an issue of no cell": ({"columns/code.py": "def validate(*, values):\n    return [{'message': 'x'}]\n"}, "columns/code.py", 1, "without an index"),
    "an issue out of range": ({"columns/code.py": "def validate(*, values):\n    return [{'index': 70}]\n"}, "columns/code.py", 1, "index 70 of 1"),
    "a severity nobody knows": ({"columns/code.py": "def validate(*, value):\n    return {'severity': 'bad'}\n"}, "columns/code.py", 1, "unknown severity"),
    "a detector of another field": ({"columns/code.py": "def detect_x(*, header):\n    return {'scores': {'zz': 1}}\n"}, "columns/code.py", 1, "not declared"),
    "a detector without numbers": ({"columns/code.py": "def detect_x(*, header):\n    return {'scores': {'code': 'high'}}\n"}, "columns/code.py", 1, "no number"),
    "a row type with a wrong label": ({"row_types/total.py": "def detect_x(*, row_index):\n    return {'scores': {'sum': 1}}\n"}, "row_types/total.py", 1, "wrong label"),
    "a hook that returns a list": ({"hooks/h.py": "def after_mapping(*, mapping):\n    return []\n"}, "hooks/h.py", 1, "returned list"),
    "a hook that maps to nothing known": ({"hooks/h.py": "def after_mapping(*, mapping):\n    return {'mapping': {'A': 'zz'}}\n"}, "hooks/h.py", 1, "do not exist"),
    "a hook that skips what is not there": ({"hooks/h.py": "def after_structure(*, tables):\n    return {'skip': ['zz']}\n"}, "hooks/h.py", 1, "do not exist"),
    "a hook with columns too short": ({"hooks/h.py": "def after_transform(*, columns):\n    return {'columns': {'code': []}}\n"}, "hooks/h.py", 1, "wrong name or length"),
    "a hook with a bad issue": ({"hooks/h.py": "def after_validate(*, rows):\n    return {'issues': [{'index': 99}]}\n"}, "hooks/h.py", 1, "wrong shape"),
    "a sheet that is no table": ({"hooks/h.py": "def finalize(*, state):\n    return {'sheets': {'x': 3}}\n"}, "hooks/h.py", 1, "wrong shape"),
    "a hook that raises": ({"hooks/h.py": "def on_job_start(*, state):\n    return state['x']\n"}, "hooks/h.py", 2, "raised KeyError"),
}  # fmt: skip


@pytest.mark.parametrize("what", FATAL)
def test_a_package_that_cannot_be_loaded_ends_the_job_with_the_place_and_the_remedy(what, tmp_path):
    files, file, line, message, remedy = FATAL[what]
    error = run_job(tmp_path, ROWS, fields=[{"name": "code"}], rules=files).error
    assert error["code"] == "rule_error"
    assert message in error["message"]
    assert (error["where"]["file"], error["where"].get("line")) == (file, line)
    assert remedy in error["where"]["remedy"]


@pytest.mark.parametrize("what", TOLD)
def test_a_rule_that_misbehaves_is_a_finding_with_its_place(what, tmp_path):
    files, file, line, message = TOLD[what]
    done = run_job(tmp_path, ROWS, fields=[{"name": "code"}], rules=files)
    found = [f for f in done.findings if f["code"] == "rule_error"]
    assert found, done.findings
    assert (found[0]["file"], found[0]["line"]) == (file, line)
    assert message in found[0]["message"]


@pytest.mark.parametrize("what", TOLD)
def test_the_same_ends_the_job_where_the_manifest_says_so_with_a_remedy(what, tmp_path):
    files, file, line, _ = TOLD[what]
    error = run_job(tmp_path, ROWS, fields=[{"name": "code"}], rules=files, on_rule_error="fail").error
    assert error["code"] == "rule_error"
    assert (error["where"]["file"], error["where"]["line"]) == (file, line)
    assert error["where"]["remedy"]
