"""Bad rules: each error names the file, the line and the remedy."""

import pytest

from tests.support.engine_jobs import run_job

ROWS = [["code", "n"], ["a1", 1], ["b2", 2], ["c3", 3]]
GOOD = "def transform(*, value):\n    return value\n"
# what: (files, file, line, words of the message, words of the remedy); these end the job
FATAL = {
    "not valid Python": ({"columns/code.py": "x = 1\ndef transform(:\n"}, "columns/code.py", 2, "not valid Python", "correct this line"),
    "zero bytes": ({"columns/code.py": "x = '\0'\n"}, "columns/code.py", None, "not valid Python", "correct this line"),
    "raises on import": ({"columns/code.py": "\n\n1 / 0\n"}, "columns/code.py", 3, "ZeroDivisionError", "correct this line"),
    "imports what is not there": ({"columns/code.py": "import no_such_package\n"}, "columns/code.py", 1, "no_such_package", "requirements.txt"),
    "exits on import": ({"columns/code.py": "import sys\nsys.exit()\n"}, "columns/code.py", 2, "SystemExit", "correct this line"),
    "no rule in it": ({"columns/code.py": "x = 1\n"}, "columns/code.py", 1, "defines no rule", "detect_*, transform, validate"),
    "a hook nobody calls": ({"hooks/h.py": "def after_lunch(*, state):\n    pass\n"}, "hooks/h.py", 1, "defines no rule", "on_job_start"),
    "asks for what is not given": ({"columns/code.py": "def transform(*, value, colour):\n    return value\n"}, "columns/code.py", 1, "asks for colour", "params"),
    "takes positional arguments": ({"columns/code.py": "def transform(*values):\n    return values\n"}, "columns/code.py", 1, "positional", "keyword"),
    "asks for neither value nor values": ({"columns/code.py": "\ndef transform(*, header):\n    return header\n"}, "columns/code.py", 2, "must ask for `value`", "values"),
    "asks for both": ({"columns/code.py": "def validate(*, value, values):\n    pass\n"}, "columns/code.py", 1, "must ask for `value`", "values"),
    "a field nobody declared": ({"columns/cod.py": GOOD, "columns/coode.py": GOOD}, "columns/coode.py", 1, "did you mean code?", "columns/code.py"),
    "a field in capitals": ({"columns/CODE.py": GOOD}, "columns/CODE.py", 1, "did you mean code?", "columns/code.py"),
    "a folder nobody looks into": ({"column/code.py": GOOD}, "column/code.py", 1, "did you mean columns/?", "columns/code.py"),
    "a folder in capitals": ({"Columns/code.py": GOOD}, "Columns/code.py", 1, "did you mean columns/?", "columns/code.py"),
    "a folder of one hook": ({"hook/h.py": "def on_job_end(*, state):\n    pass\n"}, "hook/h.py", 1, "did you mean hooks/?", "hooks/h.py"),
    "a folder of one row type": ({"row_type/total.py": "def detect_x(*, row_index):\n    pass\n"}, "row_type/total.py", 1, "did you mean row_types/?", "row_types/total.py"),
    "a folder too deep": ({"columns/hr/code.py": GOOD}, "columns/hr/code.py", 1, "too deep", "columns/code.py"),
    "a rule outside columns": ({"code.py": GOOD, "hooks/h.py": "def on_job_end(*, state):\n    pass\n"}, "code.py", 1, "outside columns/", "columns/code.py"),
    "a function with a slip": ({"columns/code.py": GOOD + "def transfrom(*, value):\n    return 1\n"}, "columns/code.py", 3, "did you mean transform?", "name it transform"),
    "a detector with a slip": ({"columns/code.py": GOOD + "def detct_x(*, header):\n    return 1\n"}, "columns/code.py", 3, "did you mean detect_x?", "detect_x"),
    "a hook with a slip": ({"hooks/h.py": "def on_job_end(*, state):\n    pass\ndef acumulate(*, rows):\n    pass\n"}, "hooks/h.py", 3, "did you mean accumulate?", "accumulate"),
    "a row type with a slip": ({"row_types/totl.py": "def detect_x(*, row_index):\n    pass\n"}, "row_types/totl.py", 1, "did you mean total?", "header, data, total"),
    "a rule from elsewhere": ({"columns/code.py": "from elsewhere import transform\ndef validate(*, value):\n    pass\n", "elsewhere.py": GOOD}, "columns/code.py", 1, "not a function of this file", "def transform"),
    "a rule in a wrapper": ({"columns/code.py": "import functools\n@functools.cache\ndef transform(*, value):\n    return value\ndef validate(*, value):\n    pass\n"}, "columns/code.py", 1, "not a function of this file", "def transform"),
    "a row type nobody knows": ({"row_types/banana.py": "def detect(*, row_index):\n    pass\n"}, "row_types/banana.py", 1, "does not name a row type", "header, data, total"),
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
    "a detector without numbers": ({"columns/code.py": "def detect_x(*, header):\n    return {'scores': {'code': 'high'}}\n"}, "columns/code.py", 1, "not a number"),
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


FINE = {
    "a helper with a rule's name in its own": {"columns/code.py": GOOD + "def transform_one(v):\n    return v\n"},
    "a helper that is called": {"columns/code.py": "def validte(v):\n    return v\n\ndef transform(*, value):\n    return validte(value)\n"},
    "a helper that starts with _": {"columns/code.py": GOOD + "def _transfrom(v):\n    return v\n"},
    "a field of another number": {"columns/code2.py": GOOD},
    "a field of its own": {"columns/month.py": GOOD},
    "a package of helpers": {"columns/code.py": GOOD, "hook/__init__.py": "", "hook/tools.py": "def clean(v):\n    return v\n"},
    "a module with a field's name": {"columns/code.py": "from code_tools import f\n" + GOOD, "code_tools.py": "def f(v):\n    return v\n"},
    "a function of a library": {"columns/code.py": "from re import match\n" + GOOD},
    "an imported rule that is called": {
        "columns/code.py": "from other_place import validate\ndef transform(*, value):\n    return validate(value)\n",
        "other_place.py": "def validate(v):\n    return v\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("what", FINE)
def test_helpers_are_left_alone(what, tmp_path):
    done = run_job(tmp_path, ROWS, fields=[{"name": "code"}], rules=FINE[what])
    assert done.column("code") == ["a1", "b2", "c3"]


WANTS_NETWORK = {
    "by_address": "    socket.create_connection(('127.0.0.1', 1), timeout=1)\n",
    "by_name": "    raise urllib.error.URLError('x')\n",
    "inside_another": (
        "    try:\n        socket.create_connection(('127.0.0.1', 1), timeout=1)\n"
        "    except OSError as error:\n        raise ValueError('x') from error\n"
    ),
}


@pytest.mark.parametrize("body", WANTS_NETWORK.values(), ids=WANTS_NETWORK)
def test_a_rule_that_wants_the_network_is_told_that_boxes_have_none(tmp_path, body):
    rule = f"import socket, urllib.error\ndef transform(*, value):\n{body}"
    done = run_job(tmp_path, [["code"], ["a"]], fields=[{"name": "code"}], rules={"columns/code.py": rule})
    (one,) = done.findings
    assert "has no network, unless the manifest asks for runtime_network_access" in one["message"]
    assert done.column("code") == ["a"]


def test_so_is_one_that_wants_it_when_it_is_loaded(tmp_path):
    rule = "import socket\nsocket.create_connection(('127.0.0.1', 1), timeout=1)\ndef transform(*, value):\n    return value\n"
    done = run_job(tmp_path, [["code"], ["a"]], fields=[{"name": "code"}], rules={"columns/code.py": rule})
    assert "has no network" in done.error["message"]
    assert done.error["where"]["line"] == 2


def test_other_errors_of_the_system_are_not_taken_for_it(tmp_path):
    rule = "def transform(*, value):\n    open('/no/such/file')\n"
    done = run_job(tmp_path, [["code"], ["a"]], fields=[{"name": "code"}], rules={"columns/code.py": rule})
    assert "network" not in done.findings[0]["message"]
