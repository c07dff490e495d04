"""The real engine in real boxes of every driver: what the contract promises to both sides."""

import json
import os

import pytest

from core.verdicts import Verdict
from runner.engine.contract import PassProgress
from runner.sandbox.jail import Build, JailSandbox, Options
from runner.sandbox.process import ProcessSandbox
from tests.abuse.boxes import log_of, never
from tests.abuse.jobs import job

KINDS = {
    "jail": None,
    "confined": Options(builds=(Build(namespaces="none"),)),
    "cold": Options(warm=False),
}


@pytest.fixture(params=[*KINDS, "process"], scope="module")
def sandbox(request, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("run")
    if request.param == "process":
        made = ProcessSandbox(run_dir=run_dir)
    else:
        made = JailSandbox(run_dir=run_dir, min_level="confined", options=KINDS[request.param])
    yield made
    made.close()


def test_a_job_gives_its_three_outputs_and_says_what_it_did(sandbox, tmp_path):
    events = []
    report = sandbox.run(job(tmp_path), killed=never, on_event=events.append)
    assert report.verdict is Verdict.OK, report.message + log_of(report)
    assert set(report.outputs) == {"normalized.xlsx", "artifact.json"}
    assert report.claim["rows_out"] == 3
    assert any(isinstance(event, PassProgress) for event in events)


def test_the_artifact_says_which_box_made_it(sandbox, tmp_path):
    report = sandbox.run(job(tmp_path), killed=never)
    artifact = json.loads(report.outputs["artifact.json"].read_text(encoding="utf-8"))
    assert artifact["engine"]["sandbox"]["level"] == sandbox.isolation().level


def test_a_rule_runs_and_what_it_prints_is_in_the_log(sandbox, tmp_path):
    rules = {"columns/name.py": "def transform(*, value, **_):\n    print('seen')\n    return value.upper()\n"}
    report = sandbox.run(job(tmp_path, rules), killed=never)
    assert report.verdict is Verdict.OK, report.message + log_of(report)
    assert log_of(report).count("seen") >= 3


def test_a_rule_that_raises_is_named_with_its_line(sandbox, tmp_path):
    rules = {"columns/name.py": "def transform(*, value, **_):\n    raise KeyError(value)\n"}
    report = sandbox.run(job(tmp_path, rules), killed=never)
    assert (report.verdict, report.where["line"]) == (Verdict.RULE_ERROR, 2), report.message


def test_a_rule_cannot_read_the_credentials_of_its_runner(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    source = f"""
import os
def transform(*, value, **_):
    try:
        with open('/proc/{os.getpid()}/environ', 'rb') as file:
            found = b's3cr3t' in file.read()
    except OSError:
        found = False
    print('found' if found or 's3cr3t' in os.environ.values() else 'nothing')
    return value
"""
    report = sandbox.run(job(tmp_path, {"columns/name.py": source}), killed=never)
    if sandbox.isolation().driver == "jail":
        assert "nothing" in log_of(report)
        assert "found" not in log_of(report)


def test_an_input_that_is_no_spreadsheet_is_the_inputs_fault(sandbox, tmp_path):
    given = job(tmp_path)
    (given.scratch / "in" / "0").write_bytes(b"PK\x03\x04" + bytes(100))
    assert sandbox.run(given, killed=never).verdict is Verdict.INPUT_UNREADABLE
