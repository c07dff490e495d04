"""What a failing rule leaves in the job's log: a traceback, bounded, and nothing of it in the artifact."""

import io
import sys

import pytest

from tests.support.engine_jobs import run_job

ROWS = [["code", "n"], ["a1", 1], ["Xq7-marker", 2], ["c3", 3]]


def run(folder, source, *, path="columns/code.py", rows=ROWS, **manifest):
    return run_job(folder, rows, fields=[{"name": "code"}], rules={path: source}, **manifest)


RAISES = "def transform(*, value):\n    if 'q7' in value:\n        raise ValueError(f'not {value}')\n    return value\n"


@pytest.mark.parametrize("policy", ["finding", "fail"])
def test_the_traceback_is_in_the_log_and_its_words_are_nowhere_else(policy, tmp_path, capsys):
    done = run(tmp_path, RAISES, on_rule_error=policy)
    log = capsys.readouterr().out
    assert "columns.code.transform raised on in.xlsx, Sheet1, column A, row 3" in log
    assert 'File "columns/code.py", line 3, in transform' in log
    assert "ValueError: not Xq7-marker" in log
    assert "raise ValueError(f'not {value}')" in log
    assert "call.py" not in log
    assert "Xq7-marker" not in str(done.events)
    if policy == "finding":
        assert all("Xq7-marker" not in (done.folder / n).read_text() for n in ("artifact.json", "report.html"))


FAILING = {
    "columns/code.py": "def detect_x(*, header):\n    return 1 / 0\n",
    "row_types/total.py": "def detect_x(*, row_index):\n    return 1 / 0\n",
    "hooks/h.py": "def on_job_end(*, summary):\n    return 1 / 0\n",
}


@pytest.mark.parametrize("path", FAILING)
def test_every_kind_of_rule_leaves_its_traceback(path, tmp_path, capsys):
    run(tmp_path, FAILING[path], path=path)
    log = capsys.readouterr().out
    assert f'File "{path}", line 2' in log
    assert "ZeroDivisionError" in log


def test_a_rule_that_cannot_be_loaded_leaves_its_traceback(tmp_path, capsys):
    run(tmp_path, "def f():\n    return {}['x']\n\nf()\n")
    log = capsys.readouterr().out
    assert 'File "columns/code.py", line 2, in f' in log
    assert "KeyError: 'x'" in log
    assert "load.py" not in log


def test_a_failure_of_every_row_is_shown_once_and_counted(tmp_path, capsys):
    rows = [["code", "n"], *([f"x{n}", n] for n in range(3000))]
    run(tmp_path, "def transform(*, value):\n    return value + 1\n", rows=rows)
    log = capsys.readouterr().out
    assert log.count("Traceback") == 1
    assert "columns.code.transform raised in 3000 calls" in log
    assert len(log) < 2000


def test_failures_of_many_kinds_are_bounded(tmp_path, capsys):
    source = "def transform(*, value):\n    raise type(f'E{value}', (Exception,), {})(value * 100_000)\n"
    rows = [["code", "n"], *([f"x{n}", n] for n in range(3000))]
    run(tmp_path, source, rows=rows)
    log = capsys.readouterr().out
    assert log.count("Traceback") == 5
    assert len(log) < 25_000


def test_endless_recursion_is_cut_short(tmp_path, capsys):
    run(tmp_path, "def f(v):\n    return f(v)\n\ndef transform(*, value):\n    return f(value)\n")
    log = capsys.readouterr().out
    assert "RecursionError" in log
    assert len(log) < 10_000


def test_an_exception_that_cannot_be_shown_does_not_end_the_job(tmp_path, capsys):
    source = (
        "class Bad(Exception):\n    def __str__(self):\n        raise SystemExit\n"
        "def transform(*, value):\n    raise Bad\n"
    )
    assert run(tmp_path, source).artifact["validation"]["by_code"] == {"rule_error": 3}
    assert "Bad" in capsys.readouterr().out


def test_a_rule_that_closes_the_log_is_still_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    done = run(tmp_path, "import sys\ndef transform(*, value):\n    sys.stdout.close()\n    return 1 / 0\n")
    assert done.artifact["validation"]["by_code"] == {"rule_error": 3}
