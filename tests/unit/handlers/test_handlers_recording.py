"""What a recorder does with one plan and the rows it meets: what is written, sent and told, and what is left alone."""

import hashlib
from dataclasses import replace

import pytest

from core.drops import unselected
from core.errors import RowUnreadable
from core.jobs import RETRIABLE, InputRef, ObjectRef, State, job_id
from handlers.recording import FollowUps, MetJob, Planned, Recorded, _Line
from infra.queueing import mutate
from tests.contract.jobs import a_job

ENDS = (State.FAILED, State.TIMED_OUT, State.CANCELLED, State.EXPIRED, State.SKIPPED)


@pytest.fixture
def recorder(world):
    return world.intake._recorder


def primary(digest):
    ref = ObjectRef(key="inbox/acme/d/a.csv", version="v", digest=digest, size=1)
    return (InputRef(role="primary", name="a.csv", ref=ref),)


MANIFEST = ObjectRef(key="inbox/acme/d/manifest.json", version="v", digest="m", size=1)


def job(name="a", **more):
    facts = {"subject": "a.csv", "stamp": 10.0, "enqueued_at": None, "manifest": MANIFEST, "config_digest": "c1"}
    known = hashlib.sha256(name.encode()).hexdigest()
    return replace(a_job(name, **(facts | more)), identity=known, job_id=job_id("acme", "members", known))


def record(recorder, *jobs, stands=True, standing=False, delay=0.0):
    done, due = Recorded(), FollowUps()
    recorder.record([Planned(list(jobs), lambda: stands, delay)], standing=standing, done=done, followups=due)
    return done, due


def after(recorder, row, planned, others=(), *, stands=False):
    return recorder._after(row, planned, _Line(planned, (row, *others)), lambda: stands)


def test_a_new_job_is_created_and_sent_and_only_one_that_waits_is_reported(world, recorder):
    done, due = record(recorder, job("q"), delay=3.0)
    (created,) = done.created
    assert done.queued == [created]
    messages, _, waiting, _ = due.drain()
    assert (messages, waiting) == ([], []), "its message was sent with its row"
    assert world.queue.stats().delayed == 1
    waits = job("w", subject="w.csv", state=State.AWAITING, announced=True)
    done, due = record(recorder, waits)
    assert due.drain()[::2] == ([], done.created)
    again, due = record(recorder, waits)
    assert (again.created, again.met) == ([], [MetJob.of(job) for job in done.created])
    assert due.drain() == ([], {}, [], {}), "nothing has changed: nobody is told again"


def test_a_row_that_waits_for_something_else_now_is_reported_again(world, recorder):
    waits = job(state=State.AWAITING, announced=True, waiting_for=("x",))
    record(recorder, waits)
    _, due = record(recorder, replace(waits, waiting_for=("y",), reason="waiting for y"))
    (told,) = due.drain()[2]
    assert (told.waiting_for, told.reason) == (("y",), "waiting for y")


def test_what_was_sent_is_not_sent_again(world, recorder):
    _, due = record(recorder, job())
    recorder.follow_up(due)
    (row,) = world.jobs()
    assert row.enqueued_at == world.clock.now()
    assert world.queue.stats().ready == 1
    done, due = record(recorder, job())
    assert done.queued == []
    assert due.drain()[0] == []


def test_one_row_that_cannot_be_read_keeps_no_other_of_its_set_waiting(world, recorder):
    add_sent = world.table.add_sent

    def broken(new, delay):
        if new.identity == job("a").identity:
            raise RowUnreadable("cannot be read")
        return add_sent(new, delay)

    world.table.add_sent = broken
    done, due = Recorded(), FollowUps()
    both = [job("a"), job("b")]
    with pytest.raises(RowUnreadable):
        recorder.record([Planned(both, lambda: True)], standing=False, done=done, followups=due)
    assert [made.identity for made in done.created] == [job("b").identity]


def test_a_newer_version_takes_the_place_of_what_has_not_started_and_says_so(world, recorder):
    (old,) = record(recorder, job("old", inputs=primary("1")))[0].created
    done, _ = record(recorder, job("new", inputs=primary("2"), stamp=20.0))
    (superseded,) = done.superseded
    assert (superseded.job_id, superseded.state) == (old.job_id, State.SKIPPED)
    assert superseded.reason == f"superseded by {job('new').job_id}"
    assert world.table.get(old.job_id) == superseded


def test_a_version_whose_stamp_is_not_the_greatest_counts_only_where_it_is(world, recorder):
    (old,) = record(recorder, job("old", inputs=primary("1"), stamp=20.0))[0].created
    done, _ = record(recorder, job("new", inputs=primary("2"), stamp=20.0), stands=False)
    assert (done.created, done.superseded) == ([], [])
    done, _ = record(recorder, job("new", inputs=primary("2"), stamp=20.0), stands=True)
    (new,) = done.created
    assert new.stamp > 20.0
    assert [one.job_id for one in done.superseded] == [old.job_id]


def test_a_change_that_always_loses_the_race_is_given_up(world, recorder):
    (row,) = record(recorder, job())[0].created
    tried = []
    world.table.replace = lambda *_: tried.append("once")
    assert mutate(world.table, row.job_id, lambda j: replace(j, reason="x"), known=row) is None
    assert len(tried) == 50
    assert mutate(world.table, row.job_id, lambda _: None, known=row) is None
    assert len(tried) == 50


class TestPlaceholders:
    def one(self, world, reason="no manifest selects it"):
        info = world.store.head(world.put("inbox/acme/d/a.csv", b"id\n1\n"))
        return unselected(info, now=world.clock.now(), reason=reason)

    def test_one_is_reported_when_it_is_made_and_when_it_says_something_else(self, world, recorder):
        done, due = Recorded(), FollowUps()
        recorder.place(self.one(world), done, due)
        (made,) = done.created
        assert due.drain()[2] == [made]
        recorder.place(self.one(world), done, due)
        assert due.drain()[2] == []
        assert world.table.get(made.job_id) == made
        world.clock.move(5)
        recorder.place(self.one(world, "its manifest does not validate"), done, due)
        (told,) = due.drain()[2]
        assert (told.reason, told.created_at) == ("its manifest does not validate", made.created_at)
        assert world.table.get(made.job_id) == told
        assert done.created == [made]

    def test_one_that_another_has_changed_meanwhile_is_left_to_that_one(self, world, recorder):
        done, due = Recorded(), FollowUps()
        recorder.place(self.one(world), done, due)
        due.drain()
        world.table.replace = lambda *_: None
        recorder.place(self.one(world, "other"), done, due)
        assert due.drain()[2] == []

    def test_it_gives_way_only_where_it_is_one_and_the_same(self, world, recorder):
        due = FollowUps()
        placed = self.one(world)
        recorder.place(placed, Recorded(), due)
        recorder.follow_up(due)
        due.drop([replace(placed, identity="of another")])
        recorder.follow_up(due)
        assert world.table.get(placed.job_id) is not None
        row = world.table.get(placed.job_id)
        real = world.table.replace(row, replace(row, config_digest="c1"))
        due.drop([placed])
        recorder.follow_up(due)
        assert world.table.get(placed.job_id) == real, "it has become a job"
        world.table.replace(real, replace(real, config_digest=placed.config_digest))
        due.drop([placed])
        due.drop([])
        recorder.follow_up(due)
        assert world.table.get(placed.job_id) is None


class TestMeeting:
    """A plan for a job that has a row."""

    @pytest.mark.parametrize("state", ENDS)
    def test_what_ended_without_success_and_was_dropped_anew_runs_again(self, world, recorder, state):
        row = job(state=state, updated_at=0.0, attempt=3)
        fresh = after(recorder, row, job(stamp=11.0, priority=5))
        assert (fresh.state, fresh.reason, fresh.attempt) == (State.QUEUED, "because", 0)
        assert (fresh.stamp, fresh.priority) == (11.0, 5)
        assert after(recorder, row, job(stamp=11.0, reason="")).reason == "dropped again"
        assert after(recorder, row, job(stamp=11.0, state=State.SKIPPED)) is None
        assert after(recorder, row, job(stamp=10.0)) is None
        stood = after(recorder, row, job(stamp=10.0), stands=True)
        assert (stood is not None) is (state is State.SKIPPED), "skipped by a planner that was too slow"

    @pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.PUBLISHING, State.SUCCEEDED])
    def test_what_is_under_way_or_has_succeeded_is_left_as_it_is(self, recorder, state):
        row = job(state=state, updated_at=0.0)
        assert after(recorder, row, job(stamp=11.0), stands=True) is None

    def test_a_success_that_another_version_overtook_is_the_newest_again(self, world, recorder):
        row, other = job(state=State.SUCCEEDED, stamp=10.0), job("o", inputs=primary("9"), stamp=12.0)
        back = after(recorder, row, job(stamp=13.0), [other])
        assert (back.stamp, back.unpublished, back.ended_at) == (13.0, True, world.clock.now())
        assert after(recorder, row, job(stamp=10.0), [other]) is None, "it is not newer"
        earlier = replace(other, stamp=9.0)
        assert after(recorder, row, job(stamp=13.0), [earlier]) is None, "nothing came between"

    def test_a_publication_under_way_is_not_changed(self, recorder):
        row, other = job(state=State.PUBLISHING, stamp=10.0), job("o", inputs=primary("9"), stamp=12.0)
        assert after(recorder, row, job(stamp=13.0), [other]) is None
        moved = after(recorder, replace(row, state=State.RUNNING), job(stamp=13.0), [other])
        assert (moved.state, moved.stamp) == (State.RUNNING, 13.0)

    def test_what_is_being_taken_back_waits_for_the_next_sweep(self, world, recorder):
        row = job(state=State.EXPIRED, unpublished=True, updated_at=0.0)
        assert after(recorder, row, job(stamp=11.0)) is None

    def test_a_job_that_waited_moves_when_all_is_there(self, world, recorder):
        row = job(state=State.AWAITING, waiting_for=("x",), announced=True)
        moved = after(recorder, row, job(state=State.SCHEDULED, due_at=99.0, reason="not before", announced=True))
        assert (moved.state, moved.due_at, moved.reason) == (State.SCHEDULED, 99.0, "not before")
        assert (moved.announced, moved.waiting_for) == (True, ())
        assert after(recorder, row, job(state=State.AWAITING, waiting_for=("x",))) is None


class TestStandingWorkflows:
    """A standing workflow that changes does not run again over what an earlier version of it has worked on."""

    def line(self, *others):
        return _Line(job(config_digest="c2", inputs=primary("1")), others)

    def test_what_an_earlier_version_worked_on_is_known(self):
        assert not self.line().is_processed(0.0)
        assert self.line(job(state=State.SUCCEEDED, inputs=primary("1"))).is_processed(0.0)
        assert self.line(job(state=State.RUNNING, inputs=primary("1"))).is_processed(0.0)
        for state in (State.QUEUED, State.AWAITING, State.SCHEDULED, State.SKIPPED):
            assert not self.line(job(state=state, inputs=primary("1"))).is_processed(0.0)
        assert not self.line(job(state=State.SUCCEEDED, inputs=primary("2"))).is_processed(0.0)

    def test_another_input_since_then_is_worked_on_anew_when_the_first_is_put_back(self):
        then = job("then", state=State.SUCCEEDED, inputs=primary("1"), stamp=10.0)
        since = job("since", state=State.SUCCEEDED, inputs=primary("2"), stamp=11.0)
        assert not self.line(then, since).is_processed(0.0)
        assert self.line(then, replace(since, stamp=9.0)).is_processed(0.0)
        waiting = replace(since, state=State.AWAITING, config_digest="awaiting:x")
        assert self.line(then, waiting).is_processed(0.0), "a row that only says what is missing is no version"

    def test_a_failed_input_that_was_uploaded_again_is_worked_on_by_the_next_version(self):
        for state in RETRIABLE:
            failed = job(state=state, inputs=primary("1"), stamp=10.0)
            assert self.line(failed).is_processed(10.0)
            assert not self.line(failed).is_processed(10.5)
        assert self.line(job(state=State.SUCCEEDED, inputs=primary("1"), stamp=10.0)).is_processed(10.5)
