"""The record of a job: its version, what is kept of it, and what would be another version."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from core import jobs
from core.errors import RecordNewer, RowUnreadable
from core.jobs import RECORD_VERSION, Job, JobError, ObjectRef, dump_job, job_dict, load_job
from core.ports import Message
from core.verdicts import Verdict
from infra.aws.sqs import decode, encode, newer
from tests.contract.jobs import a_job

RECORDS = Path(__file__).parents[2] / "records"
CHANGED = "what is written into records changed: docs/guides/upgrading.md says when that takes a new RECORD_VERSION"
PARTS = (
    "ObjectRef",
    "InputRef",
    "Lease",
    "JobError",
    "OutputFile",
    "Review",
    "CorrectionOf",
    "Correction",
    "EarlierResult",
)
STORED_PARTS = {"CorrectionOf": "Mends"}  # what a part is called in the layouts


@pytest.mark.parametrize("path", sorted(RECORDS.glob("job-v*.json")), ids=lambda p: p.stem)
def test_a_record_of_every_version_that_was_ever_written_can_be_read(path):
    text = path.read_text()
    job = load_job(text)
    assert load_job(dump_job(job)) == job
    assert job.unknown == {}
    told = json.loads(text)
    assert {name: told[name] for name in ("job_id", "state", "attempts_total", "fence", "rev")} == {
        name: getattr(job, name) for name in ("job_id", "state", "attempts_total", "fence", "rev")
    }


def test_the_golden_record_of_this_version_has_every_field():
    told = json.loads((RECORDS / f"job-v{RECORD_VERSION}.json").read_text())
    assert set(told) - {"v"} == {f.name for f in fields(Job)} - {"unknown"}, CHANGED


def test_what_programs_of_this_version_can_read_is_what_is_written():
    """A name or a part that they do not know would make their rows unreadable, or be lost when they write back."""
    layout = json.loads((RECORDS / f"layout-v{RECORD_VERSION}.json").read_text())
    assert layout["states"] == sorted(jobs.State), CHANGED
    assert layout["verdicts"] == sorted(Verdict), CHANGED
    assert {part: layout[STORED_PARTS.get(part, part)] for part in PARTS} == {
        part: sorted(f.name for f in fields(getattr(jobs, part))) for part in PARTS
    }, CHANGED


def test_a_record_says_the_lowest_version_that_holds_it():
    ref = ObjectRef(key="k", version="v", digest="d", size=1)
    old, job = {"v": 1}, a_job("a")
    assert json.loads(dump_job(job)) | old == json.loads(dump_job(job)), "programs of version 1 can work on it"
    assert json.loads(dump_job(replace(job, memories=(ref,))))["v"] == 1, "they may ignore what was learnt"
    assert json.loads(dump_job(replace(job, retention_seconds=9.0)))["v"] == 1, (
        "they keep it as long as their settings say"
    )
    expired = JobError(verdict=Verdict.REVIEW_EXPIRED, message="")
    for more in ({"state": jobs.State.REVIEW}, {"decision": ref}, {"error": expired}):
        assert json.loads(dump_job(replace(job, **more)))["v"] == 2, more
    for verdict in (Verdict.EMPTY_INPUT, Verdict.ENGINE_FAILED):
        failed = replace(job, error=JobError(verdict=verdict, message=""))
        assert json.loads(dump_job(failed))["v"] == 3, verdict
    for more in ({"overlays": (ref,)}, {"earlier": jobs.EarlierResult(files=())}, {"replay": "a"}, {"keep_days": 0.5}):
        assert json.loads(dump_job(replace(job, **more)))["v"] == RECORD_VERSION, more


def test_a_record_without_a_version_is_one_of_the_first():
    told = json.loads(dump_job(a_job("a")))
    del told["v"]
    assert load_job(json.dumps(told)) == a_job("a")


@pytest.mark.parametrize("form", ['{"v": %d}', '{"v": %d, "job_id": 5}', '{"v": %d, "state": ["x"]}'])
def test_of_a_newer_record_nothing_but_its_version_is_scanned(form):
    with pytest.raises(RecordNewer, match="row a-b-c") as caught:
        load_job(form % (RECORD_VERSION + 7), "a-b-c")
    assert caught.value.version == RECORD_VERSION + 7


@pytest.mark.parametrize("text", ['{"v": 0}', '{"v": -1}', '{"v": "2"}', '{"v": true}', '{"v": 1.5}', '{"v": null}'])
def test_a_version_that_is_none_is_damage(text):
    with pytest.raises(RowUnreadable) as caught:
        load_job(text, "a-b-c")
    assert not isinstance(caught.value, RecordNewer)


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "{}", "[" * 5000, '{"v": 1', '{"job_id": "\\ud800"}', "\x00"])
def test_what_is_no_record_is_damage(text):
    with pytest.raises(RowUnreadable):
        load_job(text, "a-b-c")


def test_unknown_fields_are_kept_and_shown_to_nobody():
    told = json.loads(dump_job(a_job("a"))) | {"lane": {"a": [1, None, "é"]}, "unknown": 3}
    job = load_job(json.dumps(told))
    assert job.unknown == {"lane": {"a": [1, None, "é"]}, "unknown": 3}
    assert json.loads(dump_job(replace(job, reason="moved"))) == told | {"reason": "moved"}
    assert "unknown" not in job_dict(job)
    assert "lane" not in job_dict(job)


def test_a_message_says_its_version():
    body = encode(Message(job_id="a", tenant="t"))
    assert (json.loads(body)["v"], newer(body)) == (1, False)


@pytest.mark.parametrize(
    ("body", "is_newer"),
    [
        ('{"v": 2, "job": "a"}', True),
        ('{"v": 2, "job_id": "a", "tenant": "t"}', True),
        ('{"job_id": "a", "tenant": "t"}', False),
        ('{"v": "2", "job_id": "a", "tenant": "t"}', False),
        ("[2]", False),
        ("no", False),
    ],
)
def test_a_newer_message_is_reported_from_a_foreign_one(body, is_newer):
    assert newer(body) is is_newer


def test_a_message_of_before_there_were_versions_is_read():
    found = decode('{"job_id": "a", "tenant": "t", "priority": 3}')
    assert found is not None
    assert found.message.priority == 3
