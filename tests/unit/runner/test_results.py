"""What result.json and latest.json say of a job: made from its row alone."""

import json
from dataclasses import replace

import pytest

from core.jobs import InputRef, Job, JobError, ObjectRef, OutputFile, State
from core.keys import latest_key, result_key
from core.verdicts import Verdict
from runner.documents import latest_body, result_body

REF = ObjectRef(key="inbox/acme/d/a.csv", version="v1", digest="d1", size=7)
JOB = Job(
    job_id="acme-members-1",
    identity="1",
    tenant="acme",
    workflow="members",
    subject="d/a.csv",
    params={"rate": 2},
    state=State.PUBLISHING,
    config_digest="c1",
    inputs=(InputRef(role="primary", name="a.csv", ref=REF),),
    stamp=100.0,
    attempts_total=2,
    files=(OutputFile(name="normalized.xlsx", size=9, sha256="abc"),),
    summary={"rows": 3, "progress": {"done": 1}},
    sandbox={"driver": "jail"},
    created_at=101.0,
    updated_at=140.0,
    started_at=102.0,
    history=(("QUEUED", 101.0), ("RUNNING", 102.0), ("PUBLISHING", 112.5)),
)


def test_a_success_is_reported_in_full():
    assert json.loads(result_body(JOB)) == {
        "result": 1,
        "job_id": "acme-members-1",
        "status": "SUCCEEDED",
        "outcome": None,
        "quality": None,
        "reason": None,
        "error": None,
        "tenant": "acme",
        "workflow": "members",
        "subject": "d/a.csv",
        "params": {"rate": 2},
        "attempts": 2,
        "inputs": [{"role": "primary", "name": "a.csv", "key": "inbox/acme/d/a.csv", "version": "v1", "size": 7}],
        "config_digest": "c1",
        "expires_at": None,
        "files": [{"name": "normalized.xlsx", "size": 9, "sha256": "abc"}],
        "summary": {"rows": 3},
        "sandbox": {"driver": "jail"},
        "timings": {
            "uploaded_at": "1970-01-01T00:01:40.000+00:00",
            "created_at": "1970-01-01T00:01:41.000+00:00",
            "started_at": "1970-01-01T00:01:42.000+00:00",
            "ended_at": "1970-01-01T00:01:52.500+00:00",
            "run_seconds": 10.5,
        },
    }


def test_a_failure_says_whose_fault_it_was():
    error = JobError(verdict=Verdict.RULE_ERROR, message="the rule raised", where={"line": 3})
    told = json.loads(result_body(replace(JOB, state=State.FAILED, reason="why", error=error)))
    assert (told["status"], told["reason"]) == ("FAILED", "why")
    assert told["error"] == {
        "verdict": "rule_error",
        "fault": "config",
        "message": "the rule raised",
        "where": {"line": 3},
    }


def test_the_end_is_when_the_job_came_to_its_last_state():
    history = (("RUNNING", 102.0), ("FAILED", 110.0), ("RUNNING", 120.0), ("FAILED", 130.0), ("EXPIRED", 200.0))
    failed = replace(JOB, state=State.FAILED, history=history, started_at=120.0)
    assert json.loads(result_body(failed))["timings"]["run_seconds"] == 10.0
    bare = json.loads(result_body(replace(JOB, history=(), started_at=None)))["timings"]
    assert (bare["ended_at"], bare["run_seconds"]) == ("1970-01-01T00:02:20.000+00:00", None)


def test_a_clock_that_went_back_makes_no_negative_time():
    assert json.loads(result_body(replace(JOB, started_at=500.0)))["timings"]["run_seconds"] == 0.0


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.PUBLISHING])
def test_the_same_row_gives_the_same_text_before_and_after_its_end(state):
    assert b'"SUCCEEDED"' in result_body(replace(JOB, state=state))


def test_latest_names_the_job_its_result_and_its_place_in_the_order():
    assert latest_key(JOB) == "outputs/acme/d/a.csv/members/latest.json"
    assert json.loads(latest_body(JOB)) == {
        "latest": 1,
        "job_id": "acme-members-1",
        "result": result_key(JOB),
        "params": {"rate": 2},
        "uploaded_at": "1970-01-01T00:01:40.000+00:00",
        "order": [100.0, 101.0, "acme-members-1"],
    }


def test_names_of_every_script_stay_readable():
    assert "Łódź" in result_body(replace(JOB, subject="Łódź.csv")).decode()
    assert "Łódź" in latest_body(replace(JOB, params={"city": "Łódź"})).decode()


COUNTED = {
    "rows_in": 12, "rows_out": 6, "rows_with_errors": 2, "left_out": {"total": 4, "rejected": 2}, "empty_fields": ["email"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("findings", "outcome"),
    [
        ({"error": 0, "warning": 0, "info": 7}, "clean"),
        ({"error": 0, "warning": 1, "info": 0}, "warnings"),
        ({"error": 3, "warning": 1, "info": 0}, "errors"),
    ],
)
def test_a_result_says_how_good_it_is(findings, outcome):
    body = json.loads(result_body(replace(JOB, summary={**COUNTED, "findings": findings})))
    assert body["outcome"] == outcome
    assert body["quality"] == {
        "rows_in": 12,
        "rows_out": 6,
        "rows_rejected": 2,
        "rows_with_errors": 2,
        "error_rate": 0.25,
        "left_out": {"total": 4, "rejected": 2},
        "empty_fields": ["email"],
    }


def test_a_job_that_failed_has_no_outcome_but_what_it_counted():
    failed = replace(
        JOB, state=State.FAILED, summary={**COUNTED, "rows_out": 0, "left_out": {}, "findings": {"error": 2}}
    )
    body = json.loads(result_body(failed))
    assert body["outcome"] is None
    assert body["quality"]["error_rate"] == round(2 / 12, 4)
