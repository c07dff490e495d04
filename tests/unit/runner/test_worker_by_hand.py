"""One message at a time through one worker: what becomes of its job, of the message and of who has failed it."""

import sqlite3
from dataclasses import replace

import pytest

from core.errors import ObjectRefused, RecordNewer, StoreUnavailable
from core.jobs import JobError, Lease, OutputFile, State, move, start
from core.ports import Caps, Message, Refused
from core.verdicts import Verdict
from runner import worker as workers
from runner.attempt import AttemptEnd
from runner.boxes import BoxReport
from runner.engine.contract import LogLine, PassProgress
from runner.worker import _forgiven, _note
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path, max_attempts=2, retry_backoff_seconds=4.0)
    made.draw = lambda: 0.5
    yield made
    made.close()


def received(world, visibility=35.0):
    (delivery,) = world.queue.receive(most=1, wait=0, visibility=visibility)
    return delivery


def dropped(world, **manifest):
    world.intake.changed(world.drop(**manifest))
    (job,) = world.jobs()
    return job


def now(world, job):
    return world.table.get(job.job_id)


def said(world) -> str:
    return world.log._stream.getvalue()


def seen_again_after(world, seconds: float) -> bool:
    """Whether the only message is shown again after exactly so long."""
    world.clock.move(seconds - 0.001)
    early = world.queue.receive(most=1, wait=0, visibility=0.0005)
    world.clock.move(0.002)
    return not early and bool(world.queue.receive(most=1, wait=0, visibility=35))


def running(world, job, owner="gone", **more):
    begun = replace(start(job, owner=owner, now=world.clock.now(), lease_seconds=30.0), **more)
    return world.table.admit(job, begun, Caps(tenant=0, workflow=0))


class TestPutBack:
    def test_a_message_is_shown_again_after_the_time_that_was_asked_for(self, world):
        dropped(world)
        assert world.runner().worker.put_back(received(world), 7.0)
        assert seen_again_after(world, 7.0)

    def test_without_a_time_it_is_shown_again_in_about_a_second(self, world):
        dropped(world)
        assert world.runner().worker.put_back(received(world))
        assert seen_again_after(world, 1.0)

    @pytest.mark.parametrize(("receives", "fresh"), [(19, False), (20, True)])
    def test_one_that_was_received_often_is_replaced_by_a_fresh_one(self, world, receives, fresh):
        dropped(world)
        runner, sent, acked = world.runner(), [], []
        delivery = replace(received(world), receives=receives)
        world.queue.send = lambda message, **more: sent.append((message, more))
        world.queue.ack = acked.append
        assert runner.worker.put_back(delivery, 3.0)
        assert sent == ([(delivery.message, {"delay": 3.0})] if fresh else [])
        assert acked == ([delivery.receipt] if fresh else [])

    def test_a_stale_receipt_is_reported(self, world):
        dropped(world)
        delivery = received(world, visibility=1.0)
        world.clock.move(2)
        received(world)
        assert not world.runner().worker.put_back(delivery, 3.0)


class TestMessages:
    @pytest.mark.parametrize("state", [State.AWAITING, State.SCHEDULED])
    def test_a_message_of_a_job_that_may_not_start_is_dropped(self, world, state):
        job = dropped(world)
        world.table.replace(job, replace(job, state=state, due_at=world.clock.now() + 3600))
        assert world.runner().worker.handle(received(world)) is None
        assert now(world, job).state is state
        assert world.queue.stats().in_flight == 0

    def test_a_message_of_no_job_is_dropped(self, world):
        world.queue.send(Message(job_id="nobody", tenant="acme"))
        assert world.runner().worker.handle(received(world)) is None
        assert world.queue.stats().in_flight == 0

    def test_a_message_of_a_job_that_runs_elsewhere_is_dropped_and_the_job_left(self, world):
        before = running(world, dropped(world))
        assert world.runner().worker.handle(received(world)) is None
        assert now(world, before) == before
        assert world.queue.stats().in_flight == 0

    def test_a_message_of_a_job_that_is_to_be_published_publishes_it(self, world):
        job = dropped(world)
        ended = world.table.replace(job, move(job, State.CANCELLED, now=world.clock.now()))
        world.runner().worker.handle(received(world))
        assert world.result(ended)["status"] == "CANCELLED"
        assert not now(world, job).unpublished
        assert world.queue.stats().in_flight == 0

    def test_a_start_that_another_runner_won_shows_the_message_again_at_once(self, world):
        dropped(world)
        world.table.admit = lambda *_: None
        assert world.runner().worker.handle(received(world)) is None
        assert world.queue.stats().ready == 1

    def test_a_row_of_a_newer_program_is_left_alone_for_about_a_minute(self, world):
        job = dropped(world)

        def newer(_):
            raise RecordNewer("the row", 9, 1)

        get, world.table.get = world.table.get, newer
        runner = world.runner()
        delivery = received(world)
        assert runner.worker.serve(delivery) is None
        world.table.get = get
        assert runner.worker.left_alone == {job.job_id}
        assert "job_not_handled" not in said(world)
        assert seen_again_after(world, 60.0)

    def test_a_refused_start_says_why_and_says_the_sender_after_half_a_minute(self, world):
        job = dropped(world)
        world.table.admit = lambda *_: Refused(reason="waiting: at the cap", scope="tenant")
        runner = world.runner()
        for at, announced in ((0.0, False), (28.9, False), (30.0, True)):
            world.clock.at = job.updated_at + at
            refused = runner.worker.serve(received(world, visibility=0.0))
            assert refused.scope == "tenant"
            assert (now(world, job).reason, now(world, job).announced) == ("waiting: at the cap", announced)
        rev = now(world, job).rev
        world.clock.move(5)
        runner.worker.serve(received(world))
        assert now(world, job).rev == rev, "nothing new to tell: no write"
        assert any(key.endswith("/status.json") for key in world.store.keys("outputs/"))


class TestPoison:
    def broken(self, world):
        def get(_):
            raise KeyError("something nobody thought of")

        world.table.get = get

    def test_a_message_that_breaks_its_handler_waits_longer_each_time_and_goes_to_people_at_the_tenth(self, world):
        dropped(world)
        runner, waited = world.runner(), []
        runner.worker.surroundings.to_blame = lambda **_: False
        self.broken(world)
        hide = world.queue.hide
        world.queue.hide = lambda receipt, seconds: waited.append(seconds) or hide(receipt, seconds)
        for n in range(10):
            assert world.queue.dead() == (), f"after {n} failures"
            assert runner.worker.serve(received(world)) is None
            world.clock.move(100)
        assert waited == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
        (letter,) = world.queue.dead()
        assert "10 times" in letter.reason
        assert "KeyError" in letter.reason
        assert world.queue.stats().ready == world.queue.stats().in_flight == 0
        assert runner.worker._failures == {}

    def test_failures_that_the_surroundings_caused_do_not_count(self, world):
        dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: True
        self.broken(world)
        for _ in range(15):
            runner.worker.serve(received(world))
            world.clock.move(100)
        assert world.queue.dead() == ()
        assert runner.worker._failures == {}

    def test_one_success_forgets_the_failures_before_it(self, world):
        job = dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: False
        get = world.table.get
        self.broken(world)
        runner.worker.serve(received(world))
        assert runner.worker._failures == {job.job_id: 1}
        world.table.get = get
        world.clock.move(100)
        runner.worker.serve(received(world))
        assert runner.worker._failures == {}
        assert now(world, job).state is State.SUCCEEDED

    def test_a_refusal_is_no_success(self, world):
        job = dropped(world)
        runner = world.runner()
        runner.worker._failures[job.job_id] = 3
        world.table.admit = lambda *_: Refused(reason="waiting", scope="tenant")
        runner.worker.serve(received(world))
        assert runner.worker._failures == {job.job_id: 3}

    def test_failures_are_remembered_for_so_many_jobs_and_no_more(self, world, monkeypatch):
        monkeypatch.setattr(workers, "_MOST_REMEMBERED", 2)
        job = dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: False
        self.broken(world)
        runner.worker._failures = {"a": 1, "b": 1}
        runner.worker.serve(received(world))
        assert runner.worker._failures == {"a": 1, "b": 1, job.job_id: 1}
        world.clock.move(100)
        runner.worker.serve(received(world))
        assert runner.worker._failures == {job.job_id: 1}

    def test_a_queue_that_is_away_too_breaks_nothing(self, world):
        dropped(world)
        runner = world.runner()
        self.broken(world)

        def away(*_):
            raise StoreUnavailable("the queue did not answer")

        delivery = received(world)
        world.queue.hide = away
        assert runner.worker.serve(delivery) is None
        assert "release_failed" in said(world)


class TestRescue:
    def test_a_dead_owners_job_goes_back_at_once_with_its_attempt_counted(self, world):
        dead, runner = world.runner(), world.runner()
        job = running(world, dropped(world), owner=dead.presence.owner)
        assert runner.worker.rescue(job) is job
        dead.presence._lock.close()
        received(world)
        rescued = runner.worker.rescue(job)
        assert (rescued.state, rescued.attempt, rescued.lease) == (State.QUEUED, 1, None)
        assert rescued.error.verdict is Verdict.RUNNER_LOST
        assert rescued.error.message == f"runner {dead.presence.owner} died"
        assert rescued.due_at == world.clock.now() + 3.0
        assert now(world, job).enqueued_at == world.clock.now()
        assert seen_again_after(world, 3.0)

    def test_a_silent_owners_job_goes_back_when_its_lease_has_ended(self, world):
        runner = world.runner()
        job = running(world, dropped(world), owner="elsewhere")
        world.clock.move(29.9)
        assert runner.worker.rescue(job) is job
        world.clock.move(0.1)
        rescued = runner.worker.rescue(job)
        assert rescued.state is State.QUEUED
        assert rescued.error.message == "runner elsewhere did not renew its lease"

    def test_the_last_attempt_ends_the_job_with_a_letter(self, world):
        runner = world.runner()
        job = running(world, dropped(world), owner="elsewhere", attempt=2)
        world.clock.move(31)
        assert runner.worker.rescue(job).state is State.FAILED
        assert world.result(job)["status"] == "FAILED"
        (letter,) = world.queue.dead()
        assert "did not renew" in letter.reason

    def test_a_job_that_has_moved_since_it_was_read_is_left_to_who_moved_it(self, world):
        runner = world.runner()
        job = running(world, dropped(world), owner="elsewhere")
        world.clock.move(31)
        newer = world.table.replace(job, replace(job, reason="beaten"))
        assert runner.worker.rescue(job) == newer
        assert now(world, job) == newer

    def test_a_job_that_does_not_run_is_given_back_as_it_is(self, world):
        job = dropped(world)
        ended = replace(job, lease=Lease(owner="x", expires=0.0))
        assert world.runner().worker.rescue(ended) is ended

    def test_a_start_of_the_product_whose_answer_was_lost_costs_no_attempt(self, world):
        runner = world.runner()
        job = running(world, dropped(world), owner=runner.presence.owner)
        world.clock.move(31)
        assert runner.worker.rescue(job).attempt == 0

    def test_a_job_of_the_product_that_a_slot_lost_costs_its_attempt(self, world):
        runner = world.runner()
        job = running(world, dropped(world), owner=runner.presence.owner)
        runner.beats.hold(job, "r")
        world.clock.move(31)
        assert runner.worker.rescue(job).attempt == 1

    def test_a_cancelled_job_that_was_lost_is_cancelled_and_not_tried_again(self, world):
        runner = world.runner()
        job = running(world, dropped(world), owner="elsewhere", cancel_requested_at=world.clock.now())
        world.clock.move(31)
        assert runner.worker.rescue(job).state is State.CANCELLED


class TestUnwritten:
    """The table is away just when an attempt has ended."""

    ERRORS = (StoreUnavailable("away"), OSError(28, "full"), sqlite3.OperationalError("locked"))

    def ended_meanwhile(self, world, error):
        job = dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: True
        write = world.table.replace

        def away(*_):
            raise error

        world.sandbox.during = lambda: setattr(world.table, "replace", away)
        runner.worker.serve(received(world))
        world.table.replace = write
        assert now(world, job).state is State.RUNNING
        return runner, job

    @pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
    def test_the_end_is_written_once_the_table_is_back(self, world, error):
        runner, job = self.ended_meanwhile(world, error)
        runner.worker.write_results()
        assert (now(world, job).state, now(world, job).attempts_total) == (State.SUCCEEDED, 1)
        runner.worker.write_results()
        assert runner.worker._unwritten == {}

    def test_or_when_its_message_comes_back(self, world):
        runner, job = self.ended_meanwhile(world, self.ERRORS[0])
        world.clock.move(20)
        assert runner.worker.serve(received(world)) is None
        assert (now(world, job).state, now(world, job).attempts_total) == (State.SUCCEEDED, 1)
        assert world.queue.stats().in_flight == 0

    def test_or_when_it_is_to_be_rescued(self, world):
        runner, job = self.ended_meanwhile(world, self.ERRORS[0])
        world.clock.move(31)
        assert runner.worker.rescue(now(world, job)).state is State.SUCCEEDED
        assert now(world, job).attempts_total == 1

    @pytest.mark.parametrize("other", ["the fleet", "its message", "a rescue"])
    def test_what_its_slot_is_writing_nobody_else_writes(self, world, other):
        job, runner = dropped(world), world.runner()
        write, writes = world.table.replace, []

        def meanwhile(old, new):
            writes.append(new.state)
            if len(writes) == 1:
                match other:
                    case "the fleet":
                        runner.worker.write_results()
                    case "its message":
                        world.clock.move(36)
                        runner.worker.serve(received(world))
                    case _:
                        world.clock.move(31)
                        runner.worker.rescue(now(world, job))
            return write(old, new)

        world.sandbox.during = lambda: setattr(world.table, "replace", meanwhile)
        runner.worker.serve(received(world))
        assert writes.count(State.PUBLISHING) == 1
        assert "lease_lost" not in said(world)
        assert (now(world, job).state, now(world, job).attempts_total) == (State.SUCCEEDED, 1)
        assert runner.worker._unwritten == {}

    def test_one_of_an_older_start_is_not_written_for_a_newer_one(self, world):
        runner, job = self.ended_meanwhile(world, self.ERRORS[0])
        row = now(world, job)
        row = world.table.replace(row, replace(row, fence=row.fence + 1))
        world.clock.move(31)
        assert runner.worker.rescue(row).state is State.QUEUED

    def test_an_error_that_the_table_did_not_cause_is_not_kept(self, world):
        runner, _ = self.ended_meanwhile(world, KeyError("bug"))
        assert runner.worker._unwritten == {}


class TestAttempts:
    def attempt(self, world, runner, outcome):
        runner.worker.attempts.run = lambda *_, **__: outcome
        runner.worker.serve(received(world))
        (job,) = world.jobs()
        return job

    def test_an_attempt_that_breaks_the_runner_is_tried_again(self, world):
        dropped(world)
        runner = world.runner()

        def run(*_, **__):
            raise KeyError("bug")

        runner.worker.attempts.run = run
        runner.worker.serve(received(world))
        (job,) = world.jobs()
        assert (job.state, job.error.verdict) == (State.QUEUED, Verdict.BOX_FAILED)
        assert job.error.message == "the runner failed: KeyError"
        assert not runner.beats.holds(job)
        assert runner.worker._unwritten == {}

    def test_what_ended_the_box_is_the_verdict_unless_it_succeeded(self, world):
        dropped(world)
        runner = world.runner()
        world.sandbox.during = lambda: runner.beats.kill_all(Verdict.RELEASED)
        runner.worker.serve(received(world))
        (job,) = world.jobs()
        assert (job.state, job.error.verdict, job.attempt) == (State.QUEUED, Verdict.RELEASED, 0)
        assert job.due_at == world.clock.now()

    def test_a_box_that_broke_as_it_was_killed_counts_as_killed(self, world):
        dropped(world)
        runner = world.runner()

        def run(*_, **__):
            runner.beats.kill_all(Verdict.RELEASED)
            return AttemptEnd(verdict=Verdict.SIGNAL)

        runner.worker.attempts.run = run
        runner.worker.serve(received(world))
        (job,) = world.jobs()
        assert job.error.verdict is Verdict.RELEASED

    def test_work_that_was_done_as_the_runner_shuts_down_is_kept(self, world):
        dropped(world)
        runner, run = world.runner(), world.sandbox.run

        def late(*args, **more):
            report = run(*args, **more)
            runner.beats.kill_all(Verdict.RELEASED)
            return report

        world.sandbox.run = late
        runner.worker.serve(received(world))
        assert [job.state for job in world.jobs()] == [State.SUCCEEDED]

    @pytest.mark.parametrize("suspicion", ["", "a signal that our own code gets"])
    def test_a_suspected_fault_of_the_engine_is_logged(self, world, suspicion):
        dropped(world)
        self.attempt(world, world.runner(), AttemptEnd(verdict=Verdict.RULE_ERROR, suspicion=suspicion))
        assert ("engine_fault_suspected" in said(world)) == bool(suspicion)

    @pytest.mark.parametrize(
        ("verdict", "missed", "blamed", "counts"),
        [
            (Verdict.LEASE_LOST, True, False, 0),
            (Verdict.LEASE_LOST, False, True, 1),
            (Verdict.BOX_FAILED, False, True, 0),
            (Verdict.BOX_FAILED, True, False, 1),
            (Verdict.STORE_FAILED, False, True, 0),
            (Verdict.STORE_FAILED, True, False, 1),
        ],
    )
    def test_an_attempt_costs_nothing_where_any_other_job_had_met_the_same(
        self, world, verdict, missed, blamed, counts
    ):
        dropped(world)
        runner, asked = world.runner(), []
        runner.worker.surroundings.to_blame = lambda *, box=False: asked.append(box) or blamed

        def run(job, **_):
            runner.beats._held[job.job_id].missed = missed
            return AttemptEnd(verdict=verdict)

        runner.worker.attempts.run = run
        runner.worker.serve(received(world))
        (job,) = world.jobs()
        assert (job.state, job.attempt, job.attempts_total) == (State.QUEUED, counts, 1)
        assert asked == {Verdict.BOX_FAILED: [True], Verdict.STORE_FAILED: [False]}.get(verdict, [])

    def test_a_fault_of_the_input_asks_nobody_else(self, world):
        dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: pytest.fail("asked")
        assert self.attempt(world, runner, AttemptEnd(verdict=Verdict.RULE_ERROR)).state is State.FAILED

    def test_a_retry_waits_its_time_and_says_why(self, world):
        dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: False
        job = self.attempt(world, runner, AttemptEnd(verdict=Verdict.BOX_FAILED, message="no box", summary={"rows": 1}))
        assert (job.state, job.reason) == (State.QUEUED, "to be tried again: no box")
        assert (job.due_at, job.enqueued_at) == (world.clock.now() + 3.0, world.clock.now())
        assert job.summary == {"rows": 1}
        assert not job.announced
        assert seen_again_after(world, 3.0)

    @pytest.mark.parametrize(("backoff", "announced"), [(39.0, False), (40.0, True)])
    def test_a_retry_that_is_half_a_minute_away_is_reported_to_the_sender(self, tmp_path, backoff, announced):
        world = World(tmp_path / "w", retry_backoff_seconds=backoff)
        world.draw = lambda: 0.5
        dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: False
        job = self.attempt(world, runner, AttemptEnd(verdict=Verdict.BOX_FAILED))
        assert job.announced == announced
        assert any(key.endswith("/status.json") for key in world.store.keys("outputs/")) == announced
        assert job.error.message == "ended with verdict box_failed"
        world.close()

    def test_a_status_that_cannot_be_written_costs_no_attempt(self, world):
        job = dropped(world)
        world.table.replace(job, replace(job, announced=True))
        runner = world.runner()

        def refused(_):
            raise ObjectRefused("AccessDenied")

        runner.publisher.statuses.announce = refused
        runner.worker.serve(received(world))
        assert now(world, job).state is State.SUCCEEDED
        assert "status_not_written" in said(world)

    def test_a_message_that_is_with_somebody_else_by_then_is_sent_again(self, world):
        dropped(world)
        runner = world.runner()
        runner.worker.surroundings.to_blame = lambda **_: False
        runner.worker.put_back = lambda *_: False
        sent = []
        world.queue.send = lambda message, **more: sent.append((message.job_id, more))
        job = self.attempt(world, runner, AttemptEnd(verdict=Verdict.BOX_FAILED))
        assert sent == [(job.job_id, {"delay": 3.0})]

    def test_the_progress_of_an_attempt_does_not_outlive_it(self, world):
        dropped(world)
        runner = world.runner()

        def run(job, *, on_event, **_):
            on_event(PassProgress("transform", 1, 2))
            on_event(LogLine("info", "table_mapped", {"pass": "write", "done": 9}))
            world.clock.move(10)
            runner.beats.round()
            (row,) = world.jobs()
            assert row.summary["progress"] == {"pass": "transform", "done": 1, "total": 2}
            return AttemptEnd(verdict=Verdict.RULE_ERROR, summary={"rows": 1})

        runner.worker.attempts.run = run
        runner.worker.serve(received(world))
        (job,) = world.jobs()
        assert job.summary == {"rows": 1}

    @pytest.mark.parametrize(
        ("verdict", "kept"),
        [(Verdict.RULE_ERROR, ["logs.txt"]), (Verdict.NOTHING_MAPPED, ["artifact.json", "logs.txt"])],
    )
    def test_an_end_without_success_keeps_the_log_and_what_explains_it(self, world, verdict, kept):
        dropped(world)
        files = tuple(OutputFile(name=name, size=1, sha256="0" * 64) for name in ("artifact.json", "logs.txt"))
        runner = world.runner()
        runner.publisher.finish = lambda job, **_: job
        job = self.attempt(world, runner, AttemptEnd(verdict=verdict, files=files, sandbox={"driver": "x"}))
        assert [file.name for file in job.files] == kept
        assert job.sandbox == {"driver": "x"}
        assert job.reason == ""

    def test_a_replaced_input_skips_the_job_and_says_so(self, world):
        dropped(world)
        job = self.attempt(world, world.runner(), AttemptEnd(verdict=Verdict.INPUT_GONE))
        assert (job.state, job.reason) == (State.SKIPPED, "superseded: its input was replaced or removed")
        assert world.queue.stats().in_flight == 0

    @pytest.mark.parametrize(
        ("verdict", "state"),
        [
            (Verdict.OK, State.CANCELLED),
            (Verdict.RELEASED, State.CANCELLED),
            (Verdict.RULE_ERROR, State.FAILED),
        ],
    )
    def test_a_cancel_that_came_too_late_for_the_box_ends_what_has_not_failed(self, world, verdict, state):
        job = dropped(world)
        runner = world.runner()

        def run(job, **_):
            row = now(world, job)
            world.table.replace(row, replace(row, cancel_requested_at=world.clock.now()))
            return AttemptEnd(verdict=verdict)

        runner.worker.attempts.run = run
        runner.worker.serve(received(world))
        assert now(world, job).state is state

    def test_the_end_of_a_lost_lease_is_not_written_and_publishes_nothing(self, world):
        job = dropped(world)
        runner = world.runner()

        def run(job, **_):
            row = now(world, job)
            world.table.replace(row, replace(row, fence=row.fence + 1))
            return AttemptEnd(verdict=Verdict.RULE_ERROR)

        runner.worker.attempts.run = run
        runner.worker.serve(received(world))
        assert (now(world, job).state, now(world, job).error) == (State.RUNNING, None)
        assert world.result(job) is None
        assert "lease_lost" in said(world)
        assert "job_not_handled" not in said(world)
        assert world.queue.stats().in_flight == 1, "the message is another's"

    def test_an_end_is_logged_where_it_was_published(self, world):
        dropped(world)
        runner = world.runner()
        runner.worker.serve(received(world))
        assert "job_ended" in said(world)
        assert "attempt_ended" in said(world)


class TestForgiving:
    LOST = JobError(verdict=Verdict.RUNNER_LOST, message="")

    def job(self, world, **more):
        return replace(dropped(world), **({"fence": 3, "attempt": 1, "error": self.LOST} | more))

    def test_a_job_that_others_took_for_lost_gets_its_attempt_back(self, world):
        assert _forgiven(self.job(world), 3).attempt == 0

    @pytest.mark.parametrize(
        "other",
        [
            {"fence": 4},
            {"fence": 2},
            {"attempt": 0},
            {"error": None},
            {"error": JobError(verdict=Verdict.BOX_FAILED, message="")},
            {"state": State.RUNNING},
            {"state": State.FAILED},
        ],
        ids=str,
    )
    def test_any_other_job_is_left_as_it_is(self, world, other):
        assert _forgiven(self.job(world, **other), 3) is None


def test_only_progress_is_noted(world):
    runner = world.runner()
    held = runner.beats.hold(dropped(world), "r")
    _note(held, LogLine("info", "table_mapped", {"pass": "write"}))
    assert held.progress == {}
    _note(held, PassProgress("write", 3))
    assert held.progress == {"pass": "write", "done": 3, "total": None}


def test_a_letter_is_written_only_for_what_was_our_fault(world):
    """A rule that raises is its author's affair; a box that broke is the operator's."""
    dropped(world)
    runner = world.runner()
    runner.worker.attempts.run = lambda *_, **__: AttemptEnd(verdict=Verdict.RULE_ERROR)
    runner.worker.serve(received(world))
    assert world.queue.dead() == ()


def test_a_report_that_the_box_gives_reaches_the_row(world):
    dropped(world)
    world.sandbox.run = lambda *_, **__: BoxReport(
        verdict=Verdict.RULE_ERROR, message="rule total: no such column", where={"rule": "total"}
    )
    runner = world.runner()
    runner.worker.serve(received(world))
    (job,) = world.jobs()
    assert (job.error.message, job.error.where) == ("rule total: no such column", {"rule": "total"})
