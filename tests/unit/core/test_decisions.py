"""Decisions come from outside: bounded, validated, and refused with the place, the problem and what is allowed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.decisions import MAX_DECISION_BYTES, DecisionInvalid, decision_schema, is_for, misfits, parse_decision
from core.jobs import Job, JobError, ObjectRef, Review, State, ask, decided, undecided
from core.verdicts import Verdict

GOOD = {"decision": 1, "workflow": "members", "by": "ann", "answers": [{"header": "CALLE", "field": "street"}]}
JOB = Job(job_id="a-b-1", identity="1", tenant="a", workflow="b", subject="x.csv", state=State.RUNNING, attempt=2)
REF = ObjectRef(key="inbox/a/x.csv.decision.json", version="1", digest="1", size=10)


def problems(said):
    with pytest.raises(DecisionInvalid) as caught:
        parse_decision(said if isinstance(said, bytes) else json.dumps(said).encode())
    return {p.path: (p.problem, p.allowed) for p in caught.value.problems}


def test_a_decision_with_every_kind_of_answer_is_read():
    answers = [
        {"header": "CALLE", "field": "street"},
        {"header": "Notes", "field": None},
        {"sheet": "Sheet1", "column": "AB", "reading": "day_first"},
        {"id": "header-1", "header_rows": [3, 4]},
        {"id": "drift-2", "value": "accept"},
        {"id": "required-3", "value": None},
    ]
    found = parse_decision(json.dumps(GOOD | {"answers": answers, "remember": False}).encode())
    assert [a.model_dump(exclude_unset=True) | {"header_rows": None} for a in found.answers] == [
        a | {"header_rows": None} for a in answers
    ]
    assert not found.remember


@pytest.mark.parametrize(
    ("said", "path", "word"),
    [
        (b"", "$", "not JSON"),
        (b"[1]", "$", "is [1]"),
        (b"\xff", "$", "not UTF-8"),
        (b'{"by": "\\ud800"}', "$", "half a character"),
        (b'{"by": NaN}', "$", "NaN"),
        (b'{"by": 1, "by": 2}', "$", "duplicate key: by"),
        (b"[" * 100_000, "$", "nested"),
        (b'{"decision": 1, "by": "' + b"x" * 1024 * 1024 + b'"}', "$", "bytes"),
        (GOOD | {"decision": 2}, "$.decision", "is 2"),
        (GOOD | {"answer": []}, "$.answer", "did you mean answers"),
        ({k: v for k, v in GOOD.items() if k != "by"}, "$.by", "missing"),
        (GOOD | {"answers": []}, "$.answers", "is empty"),
        (GOOD | {"answers": [{"header": "A"}]}, "$.answers[0]", "says nothing"),
        (GOOD | {"answers": [{"field": "a"}]}, "$.answers[0]", "names no column"),
        (GOOD | {"answers": [{"value": "a"}]}, "$.answers[0].value", "no id"),
        (GOOD | {"answers": [{"header": "A", "field": "a", "reading": "comma"}]}, "$.answers[0]", "field, reading"),
        (GOOD | {"answers": [{"header": "A", "reading": "sideways"}]}, "$.answers[0].reading", "sideways"),
        (GOOD | {"answers": [{"column": "1", "field": "a"}]}, "$.answers[0].column", "1"),
        (GOOD | {"answers": [{"id": "h", "header_rows": [0]}]}, "$.answers[0].header_rows[0]", "0"),
        (GOOD | {"answers": [{"header": "A", "field": "a"}] * 2001}, "$.answers", "2001"),
        (GOOD | {"accept": "yes"}, "$.accept", "yes"),
        (GOOD | {"remember": 0}, "$.remember", "0"),
        (GOOD | {"by": "  "}, "$.by", "  "),
        (GOOD | {"by": "a\x1b[31mnn"}, "$.by", "31mnn"),
    ],
)
def test_a_bad_decision_is_refused_with_the_place_and_what_is_allowed(said, path, word):
    found = problems(said)
    assert path in found, found
    assert word in found[path][0]
    assert found[path][1]


def test_a_decision_that_is_too_large_is_not_parsed():
    assert "at most" in problems(b" " * (MAX_DECISION_BYTES + 1))["$"][1]


def test_a_decision_may_name_only_workflows_and_fields_of_its_file():
    decision = parse_decision(json.dumps(GOOD).encode())
    assert misfits(decision, workflows={"members": frozenset({"street"})}) == []
    assert misfits(decision, workflows={"members": None}) == [], "only the engine knows the fields of a zip"
    (other,) = misfits(decision, workflows={"payroll": frozenset({"street"})})
    assert (other.path, "payroll" in other.allowed) == ("$.workflow", True)
    (field,) = misfits(decision, workflows={"members": frozenset({"city"})})
    assert (field.path, field.problem) == ("$.answers[0].field", 'is "street"')
    assert "city" in field.allowed


def test_the_published_schema_is_that_of_the_model():
    published = Path(__file__).parents[3] / "docs" / "reference" / "decision.schema.json"
    assert json.loads(published.read_text()) == decision_schema()


def asked(**more):
    return ask(JOB, now=100.0, review=Review(questions=2, on_expiry="fail"), expires=60.0, key=REF.key, **more)


def test_a_job_that_asks_holds_no_lease_and_says_what_it_waits_for():
    job = asked()
    assert (job.state, job.lease, job.due_at, job.waiting_for) == (State.REVIEW, None, 160.0, (REF.key,))
    assert (job.unpublished, job.announced, job.attempt) == (True, True, 0)
    assert "2 questions" in job.reason


def test_a_decision_sends_a_waiting_job_back_to_the_queue_once():
    job = decided(asked(), REF, now=110.0, at=105.0)
    assert (job.state, job.decision, job.decided_at) == (State.QUEUED, REF, 105.0)
    again = replace(job, state=State.REVIEW)
    assert decided(again, replace(REF, version="2"), now=120.0, at=1.0) is None, "the same answer is no new answer"
    assert decided(again, replace(REF, digest="2"), now=120.0, at=1.0).state is State.QUEUED


@pytest.mark.parametrize("state", [State.AWAITING, State.SCHEDULED, State.QUEUED, State.RUNNING])
def test_a_decision_that_comes_before_the_question_is_taken_along(state):
    job = decided(replace(JOB, state=state), REF, now=1.0, at=0.5)
    assert (job.state, job.decision) == (state, REF)


@pytest.mark.parametrize("state", [State.PUBLISHING, State.SUCCEEDED, State.CANCELLED, State.SKIPPED, State.FAILED])
def test_a_decision_changes_nothing_about_a_job_that_is_committed_or_over(state):
    assert decided(replace(JOB, state=state), REF, now=1.0, at=0.5) is None


def test_a_review_that_nobody_answered_fails_and_a_late_answer_runs_it_again():
    failed = undecided(asked(), now=200.0)
    assert (failed.state, failed.error.verdict, failed.unpublished) == (State.FAILED, Verdict.REVIEW_EXPIRED, True)
    assert REF.key in failed.error.message
    assert decided(failed, REF, now=201.0, at=200.5) is None, "its result.json comes first"
    late = decided(replace(failed, unpublished=False), REF, now=201.0, at=200.5)
    assert (late.state, late.error, late.decision) == (State.QUEUED, None, REF)
    other = replace(failed, unpublished=False, error=JobError(verdict=Verdict.RULE_ERROR, message=""))
    assert decided(other, REF, now=201.0, at=200.5) is None


def test_a_review_that_nobody_answered_is_accepted_where_the_manifest_says_so():
    job = replace(asked(), review=Review(questions=2, on_expiry="accept"))
    accepted = undecided(job, now=200.0)
    assert (accepted.state, accepted.review.accepted) == (State.QUEUED, True)


@pytest.mark.parametrize(
    ("names", "fits", "fits_planned"),
    [
        ({}, True, True),
        ({"workflow": "b"}, True, True),
        ({"workflow": "c"}, False, False),
        ({"job": "a-b-1"}, True, True),
        ({"job": "a-b-1234"}, False, True),  # the id that a planned job gets where another one has the shorter
        ({"job": "a-b"}, False, False),
        ({"job": "a-b-2"}, False, False),
        ({"workflow": "b", "job": "a-b-1"}, True, True),
        ({"workflow": "c", "job": "a-b-1"}, False, False),
    ],
)
def test_a_decision_fits_the_jobs_that_it_does_not_exclude(names, fits, fits_planned):
    decision = parse_decision(json.dumps({"decision": 1, "by": "ann", "accept": True} | names).encode())
    assert (is_for(decision, JOB), is_for(decision, JOB, is_planned=True)) == (fits, fits_planned)
