"""Caps that are large or absent: a table may spread what it counts, and still passes no cap and loses no slot."""

import itertools

import pytest

from core.jobs import Job, State, again, move, start
from core.ports import Caps, JobTable, Pause, Refused
from tests.contract.jobs import NOW, a_job

LARGE = Caps(tenant=64, workflow=0)
FREE = Caps(tenant=0, workflow=0)


def try_start(table: JobTable, job: Job, caps: Caps) -> Job | Refused | None:
    return table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), caps)


def start_until_refused(table: JobTable, names: "itertools.count[int]", caps: Caps) -> list[Job]:
    found: list[Job] = []
    while len(found) < 200:
        job, _ = table.add(a_job(f"j{next(names)}"))
        answer = try_start(table, job, caps)
        if isinstance(answer, Refused):
            return found
        assert isinstance(answer, Job)
        found.append(answer)
    raise AssertionError("200 jobs started and no cap was met")


@pytest.mark.slow
@pytest.mark.long
def test_a_large_cap_is_never_passed_and_freed_slots_are_given_again(table: JobTable):
    names = itertools.count()
    first = start_until_refused(table, names, LARGE)
    assert 40 <= len(first) <= LARGE.tenant
    for job in first:
        table.replace(job, move(job, State.FAILED, now=NOW))
    second = start_until_refused(table, names, LARGE)
    assert 40 <= len(second) <= LARGE.tenant


def test_a_pause_stops_starts_without_a_cap(table: JobTable):
    for n in range(3):
        assert isinstance(try_start(table, table.add(a_job(f"j{n}"))[0], FREE), Job)
    table.pause(Pause(tenant="acme", workflow=None, since=NOW, by="test"))
    waiting, _ = table.add(a_job("waiting"))
    for _ in range(5):
        answer = try_start(table, waiting, FREE)
        assert isinstance(answer, Refused)
        assert answer.scope == "pause"
    table.resume("acme", None)
    assert isinstance(try_start(table, waiting, FREE), Job)


def test_a_job_started_without_a_cap_leaves_no_trace_for_a_cap_that_comes_later(table: JobTable):
    one = Caps(tenant=1, workflow=1)
    job = try_start(table, table.add(a_job("a"))[0], FREE)
    assert isinstance(job, Job)
    ended = table.replace(job, move(job, State.FAILED, now=NOW))
    assert ended is not None
    queued = table.replace(ended, again(ended, now=NOW, reason="retry"))
    assert queued is not None
    assert isinstance(try_start(table, queued, one), Job)
    assert isinstance(try_start(table, table.add(a_job("b"))[0], one), Refused)
