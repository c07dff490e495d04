"""Each chore of the janitor by itself, by a clock that is moved by hand; who leads; what a dead runner leaves."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from core.errors import ObjectRefused, RowUnreadable
from core.jobs import InputRef, Lease, ObjectRef, State
from core.ports import Caps
from infra.queueing import enqueue
from runner import janitor as janitors
from tests.contract.jobs import a_job
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.close()


def add(world, name, **more):
    at = world.clock.now()
    job, _ = world.table.add(a_job(name, **({"created_at": at, "updated_at": at} | more)))
    return job


def now(world, job):
    return world.table.get(job.job_id)


def events(world, name) -> list[dict]:
    lines = [json.loads(line) for line in world.log._stream.getvalue().splitlines()]
    return [line for line in lines if line["event"] == name]


def received(world) -> list[str]:
    return [d.message.job_id for d in world.queue.receive(most=10, wait=0, visibility=60)]


class Leader:
    """A janitor's entry of the scheduler whose chore only counts."""

    def __init__(self, runner) -> None:
        self.janitor = runner.janitor
        self.done = 0

    def turn(self) -> bool:
        """Whether it worked."""
        before = self.done
        self.janitor._led(self._work)
        return self.done > before

    def _work(self) -> Counter[str]:
        self.done += 1
        return Counter()


class TestLeading:
    def test_one_leads_and_another_takes_over_when_its_lease_has_ended(self, world):
        one, two = Leader(world.runner()), Leader(world.runner())
        assert one.turn()
        assert not two.turn()
        world.clock.move(29)
        assert not two.turn()
        world.clock.move(2)
        assert two.turn()
        assert not one.turn()

    def test_a_leader_that_works_stays_one(self, world):
        one, two = Leader(world.runner()), Leader(world.runner())
        for _ in range(20):
            assert one.turn()
            assert not two.turn()
            world.clock.move(9)

    def test_the_lease_is_prolonged_from_its_middle_on_and_not_with_every_chore(self, world):
        runner, held = world.runner(), []
        hold = world.table.hold
        world.table.hold = lambda *args: held.append(args) or hold(*args)
        leader = Leader(runner)
        for at, times in ((0, 1), (15, 1), (15.1, 2), (30, 2)):
            world.clock.at = 1_750_000_000.0 + at
            assert leader.turn()
            assert len(held) == times, f"after {at} seconds"
        assert set(held) == {("janitor", runner.presence.owner, 30.0)}

    def test_one_that_does_not_lead_asks_every_time(self, world):
        one, two = Leader(world.runner()), Leader(world.runner())
        one.turn()
        two.turn()
        one.janitor.resign()
        assert two.turn()

    def test_who_resigns_leaves_the_lead_at_once_and_only_once(self, world):
        runner = world.runner()
        left = []
        let_go = world.table.let_go
        world.table.let_go = lambda *args: left.append(args) or let_go(*args)
        runner.janitor.resign()
        assert left == [], "it never led"
        leader, other = Leader(runner), Leader(world.runner())
        leader.turn()
        runner.janitor.resign()
        runner.janitor.resign()
        assert left == [("janitor", runner.presence.owner)]
        assert other.turn()
        assert not leader.turn()

    def test_a_chore_that_breaks_is_logged_and_nothing_escapes(self, world):
        runner = world.runner()

        def breaks():
            raise KeyError("bug")

        runner.janitor._led(breaks)
        assert [one["error"] for one in events(world, "chores_failed")] == ["KeyError: 'bug'"]
        assert events(world, "janitor_alive") == []

    def test_it_says_that_it_lives_every_five_minutes_and_what_it_did(self, world):
        runner, done_now = world.runner(), Counter()
        runner.janitor.urgent = lambda _: done_now
        (urgent,) = [job.func for job in runner.janitor.scheduler().get_jobs() if job.name == "urgent"]
        started = world.clock.now()
        for at, times in ((0, 1), (299, 1), (300, 2), (599, 2), (600, 3)):
            world.clock.at = started + at
            urgent()
            assert len(events(world, "janitor_alive")) == times, f"after {at} seconds"
        assert events(world, "chores_done") == []
        done_now.update(jobs_resend=2, none=0)
        urgent()
        (done,) = events(world, "chores_done")
        assert done["jobs_resend"] == 2
        assert "none" not in done

    def test_chores_that_nobody_waits_for_prove_nothing_of_its_life(self, world):
        runner, felt = world.runner(), []
        runner.janitor.pulse = lambda: felt.append("beat")
        runner.janitor._led(Counter)
        assert felt == events(world, "janitor_alive") == []

    def test_its_pulse_is_felt_though_another_leads(self, world):
        Leader(world.runner()).turn()
        second, felt = world.runner(), []
        second.janitor.pulse = lambda: felt.append("beat")
        second.janitor.urgent = lambda _: pytest.fail("it does not lead")
        (urgent,) = [job.func for job in second.janitor.scheduler().get_jobs() if job.name == "urgent"]
        urgent()
        assert felt == ["beat"]
        assert events(world, "chores_failed") == []

    def test_the_chores_come_on_their_intervals(self, world):
        made = world.runner().janitor.scheduler()
        seconds = {job.name: job.trigger.interval.total_seconds() for job in made.get_jobs()}
        assert seconds == {
            "urgent": 2,
            "tidy": 10,
            "recount": 30,
            "replenish": 30,
            "audit": 600,
            "collect": 600,
            "sweep": 300,
        }
        runner = world.runner()
        runner.janitor.scan_inbox = None
        assert "sweep" not in {job.name for job in runner.janitor.scheduler().get_jobs()}
        assert runner.janitor.sweep() == Counter()

    def test_the_rounds_of_the_scheduler_are_bounded(self, world):
        runner, asked = world.runner(), {}
        runner.janitor.urgent = lambda seconds: asked.update(urgent=seconds) or Counter()
        runner.janitor.tidy = lambda seconds: asked.update(tidy=seconds) or Counter()
        for job in runner.janitor.scheduler().get_jobs():
            job.func()
        assert asked == {"urgent": 2.0, "tidy": 8.0}


class TestChores:
    def test_all_chores_by_hand_tell_what_was_done_and_nothing_else(self, world):
        world.drop()
        world.clock.move(1)
        assert world.runner().janitor.run_once() == Counter(sweeps=1)
        assert [job.state for job in world.jobs()] == [State.QUEUED]

    def test_a_scheduled_job_is_queued_when_its_time_has_come(self, world):
        runner = world.runner()
        job = add(world, "s", state=State.SCHEDULED, due_at=world.clock.now() + 10, announced=True, enqueued_at=None)
        world.clock.move(9.9)
        assert not runner.janitor.chores()
        assert now(world, job) == job
        world.clock.move(0.1)
        assert runner.janitor.chores() == Counter(jobs_enqueue=1)
        after = now(world, job)
        assert (after.state, after.announced, after.enqueued_at) == (State.QUEUED, False, world.clock.now())
        assert received(world) == [job.job_id]

    def test_a_job_that_was_moved_meanwhile_gets_no_message(self, world):
        runner = world.runner()
        job = add(world, "s", state=State.SCHEDULED, due_at=world.clock.now())
        world.table.replace(job, replace(job, reason="moved"))
        runner.janitor._one(job, world.clock.now())
        assert received(world) == []

    def test_a_message_that_was_never_sent_is_sent_after_a_moment(self, world):
        runner = world.runner()
        job = add(world, "q", enqueued_at=None)
        world.clock.move(1.9)
        assert not runner.janitor.chores()
        world.clock.move(0.1)
        assert runner.janitor.chores() == Counter(jobs_resend=1)
        assert now(world, job).enqueued_at == world.clock.now()
        assert received(world) == [job.job_id]
        assert not runner.janitor.chores()

    def test_a_job_that_runs_by_then_is_not_noted_as_sent(self, world):
        job = add(world, "q", enqueued_at=None)
        running = world.table.replace(job, replace(job, state=State.RUNNING, lease=Lease(owner="x", expires=9e9)))
        enqueue(world.table, world.queue, world.clock, job)
        assert now(world, job) == running

    def test_lost_messages_are_sent_again_and_those_that_are_there_are_noted(self, world):
        runner = world.runner()
        world.intake.changed(world.drop())
        (there,) = world.jobs()
        lost = add(world, "lost", enqueued_at=world.clock.now())
        due = add(world, "due", enqueued_at=world.clock.now(), due_at=world.clock.now() + 960)
        sent, send_all = [], world.queue.send_all
        world.queue.send_all = lambda messages: sent.extend(messages) or send_all(messages)
        world.clock.move(899)
        assert not runner.janitor.chores()
        world.clock.move(1)
        assert runner.janitor.chores() == Counter(jobs_resend=2)
        assert {message.job_id: delay for message, delay in sent} == {lost.job_id: 0.0, due.job_id: 60.0}
        assert {now(world, job).enqueued_at for job in (there, lost, due)} == {world.clock.now()}
        assert not runner.janitor.chores()

    def test_those_that_were_refused_are_the_last_to_have_lost_their_message(self, world):
        runner, asked = world.runner(), []
        at = world.clock.now()
        jobs = [
            add(world, "a", enqueued_at=at + 1, reason="waiting: a cap"),
            add(world, "b", enqueued_at=at + 3, reason=""),
            add(world, "c", enqueued_at=at + 2, reason=""),
        ]
        world.queue.missing = lambda ids, expected: asked.append((list(ids), expected())) or ()
        world.clock.move(1000)
        add(world, "fresh", enqueued_at=world.clock.now())  # which a service's count may not show yet
        runner.janitor._resend(jobs, world.clock.now())
        assert asked == [([jobs[2].job_id, jobs[1].job_id, jobs[0].job_id], 3)]

    def test_a_message_that_seems_to_be_there_is_sent_anyway_after_hours(self, world):
        runner, sent = world.runner(), []
        job = add(world, "a", enqueued_at=world.clock.now(), history=(("QUEUED", world.clock.now()),))
        world.queue.missing = lambda *_: ()
        world.queue.send_all = lambda messages: sent.extend(m.job_id for m, _ in messages)
        for hours, times in ((5, 0), (6, 1), (7, 1), (12, 2)):
            world.clock.at = job.created_at + hours * 3600
            runner.janitor.chores()
            assert len(sent) == times, f"after {hours} hours"

    def test_a_queue_that_cannot_be_asked_stops_no_other_chore(self, world):
        runner = world.runner()
        job = add(world, "a", enqueued_at=world.clock.now())

        def broken(*_):
            raise KeyError("bug")

        world.queue.missing = broken
        world.clock.move(900)
        assert runner.janitor.chores() == Counter(chores_failed=1)
        assert now(world, job) == job
        assert events(world, "chore_failed")[0]["chore"] == "resend"

    def test_a_chore_that_fails_steps_back_and_is_counted_once(self, world):
        runner = world.runner()
        job = add(world, "s", state=State.SCHEDULED, due_at=world.clock.now())

        def broken(_):
            raise KeyError("bug")

        runner.janitor._statuses.clear = broken
        assert runner.janitor.chores() == Counter(chores_failed=1)
        assert now(world, job).deferred_until == world.clock.now() + 10
        assert [e["chore"] for e in events(world, "chore_failed")] == ["enqueue"]
        world.clock.move(9)
        assert not runner.janitor.chores()
        world.clock.move(2)
        assert runner.janitor.chores() == Counter(chores_failed=1)

    def test_a_lost_job_is_rescued_once_its_lease_has_ended(self, world):
        runner = world.runner()
        job = add(world, "r", state=State.RUNNING, fence=1, lease=Lease(owner="gone", expires=world.clock.now() + 30))
        world.clock.move(29)
        assert not runner.janitor.urgent()
        world.clock.move(1)
        assert runner.janitor.urgent() == Counter(jobs_rescue=1)
        assert now(world, job).state is State.QUEUED

    def test_a_runner_that_is_only_watched_counts_as_no_chore(self, world):
        runner = world.runner()
        job = add(world, "r", state=State.RUNNING, fence=1, lease=Lease(owner="x", expires=world.clock.now()))
        runner.worker._watch._seconds = 20.0
        assert not runner.janitor.urgent()
        assert now(world, job) == job

    def test_an_end_is_published_and_expires_after_its_retention_and_is_forgotten_later(self, world):
        runner = world.runner()
        job = add(world, "c", state=State.CANCELLED, ended_at=world.clock.now(), unpublished=True)
        world.clock.move(2)
        assert runner.janitor.tidy() == Counter()
        assert runner.janitor.urgent() == Counter(jobs_publish=1)
        assert world.result(job)["status"] == "CANCELLED"
        world.clock.move(48 * 3600 - 3)
        assert not runner.janitor.chores()
        world.clock.move(1)
        assert runner.janitor.urgent() == Counter()
        assert runner.janitor.tidy() == Counter(jobs_expire=1)
        assert now(world, job).state is State.EXPIRED
        assert world.result(job)["status"] == "EXPIRED"
        world.clock.move(48 * 3600 - 1)
        assert not runner.janitor.chores()
        world.clock.move(1)
        assert runner.janitor.tidy() == Counter(jobs_forget=1)
        assert now(world, job) is None
        assert world.result(job) is None

    @pytest.mark.parametrize("role", ["primary", "auxiliary"])
    @pytest.mark.parametrize("same", [True, False])
    def test_a_row_is_kept_while_its_own_input_stands_in_the_inbox(self, world, role, same):
        runner = world.runner()
        key = world.put("inbox/acme/d/a.csv", b"id\n1\n")
        digest = world.store.head(key).digest if same else "another"
        ref = ObjectRef(key=key, version="1", digest=digest, size=5)
        job = add(world, "x", state=State.EXPIRED, inputs=(InputRef(role=role, name="a.csv", ref=ref),))
        world.clock.move(48 * 3600)
        runner.janitor.tidy()
        if same and role == "primary":
            assert now(world, job).updated_at == world.clock.now(), "asked again after another retention"
        else:
            assert now(world, job) is None

    def test_nothing_is_due_for_a_job_that_has_moved_since_it_was_listed(self, world):
        runner = world.runner()
        job = add(world, "q", enqueued_at=world.clock.now())
        assert runner.janitor._one(job, world.clock.now()) == Counter()
        assert received(world) == []

    def test_counts_of_running_jobs_are_corrected(self, world):
        world.table.recount = lambda: 3
        assert world.runner().janitor.recount() == Counter(slots_corrected=3)

    def test_a_bounded_round_stops_and_goes_on_with_the_next(self, world):
        runner = world.runner()
        for n in range(60):
            add(world, f"s{n}", state=State.SCHEDULED, due_at=world.clock.now())
        send = world.queue.send

        def slow(message, **more):
            world.clock.move(0.125)
            send(message, **more)

        world.queue.send = slow
        assert runner.janitor.urgent(3.0) == Counter(jobs_enqueue=24), "the time is over when it is reached"
        assert runner.janitor.urgent(4.5) == Counter(jobs_enqueue=36)
        assert not runner.janitor.urgent(4.5)

    def test_every_job_of_a_crowd_is_dealt_with_in_one_round(self, world, monkeypatch):
        monkeypatch.setattr(janitors, "_BATCH", 5)
        runner = world.runner()
        for n in range(23):
            add(world, f"s{n:02}", state=State.SCHEDULED, due_at=world.clock.now())
        assert runner.janitor.urgent() == Counter(jobs_enqueue=23)

    def test_what_stays_due_does_not_hide_what_comes_after_it(self, world, monkeypatch):
        monkeypatch.setattr(janitors, "_BATCH", 3)
        runner = world.runner()
        runner.worker._watch._seconds = 20.0
        at = world.clock.now()
        for n in range(7):
            add(world, f"r{n}", state=State.RUNNING, fence=1, lease=Lease(owner="x", expires=at))
        world.clock.move(1)
        job = add(world, "s", state=State.SCHEDULED, due_at=world.clock.now())
        assert runner.janitor.urgent() == Counter(jobs_enqueue=1)
        assert now(world, job).state is State.QUEUED

    def test_lost_jobs_come_before_a_crowd(self, world, monkeypatch):
        monkeypatch.setattr(janitors, "_BATCH", 2)
        runner, order = world.runner(), []
        at = world.clock.now()
        for n in range(4):
            add(world, f"s{n}", state=State.SCHEDULED, due_at=at)
        for n in range(3):
            add(world, f"l{n}", state=State.RUNNING, fence=1, lease=Lease(owner="x", expires=at + 1))
        add(world, "alive", state=State.RUNNING, fence=1, lease=Lease(owner="x", expires=at + 99))
        world.clock.move(2)
        one = runner.janitor._one
        runner.janitor._one = lambda job, now, **more: order.append(job.job_id.rsplit("-")[-1]) or one(job, now, **more)
        runner.janitor.urgent()
        assert sorted(order[:3]) == ["l0", "l1", "l2"]
        assert sorted(order) == ["l0", "l1", "l2", "s0", "s1", "s2", "s3"], "each once"


class TestCollecting:
    def staged(self, world, job) -> str:
        return world.put(f"work/{job.job_id}/1/a", b"x")

    @pytest.mark.parametrize(
        ("state", "unpublished", "kept"),
        [
            (State.RUNNING, False, True),
            (State.PUBLISHING, False, True),
            (State.FAILED, True, True),
            (State.FAILED, False, False),
            (State.SUCCEEDED, False, False),
        ],
    )
    def test_staged_files_stay_while_a_job_may_publish_them(self, world, state, unpublished, kept):
        key = self.staged(world, add(world, "x", state=state, unpublished=unpublished))
        done = world.runner().janitor.collect()
        assert (world.store.head(key) is not None) == kept
        assert done["staged_files_removed"] == (not kept)

    def test_staged_files_of_no_job_are_removed(self, world):
        key = world.put("work/nobody/1/a", b"x")
        assert world.runner().janitor.collect()["staged_files_removed"] == 1
        assert world.store.head(key) is None

    @pytest.mark.parametrize("error", [RowUnreadable("cannot be read"), ObjectRefused("AccessDenied")])
    def test_one_that_cannot_be_scanned_keeps_no_other(self, world, error):
        bad, good = world.put("work/a/1/a", b"x"), world.put("work/b/1/a", b"x")
        get = world.table.get

        def broken(job_id):
            if job_id == "a":
                raise error
            return get(job_id)

        world.table.get = broken
        world.runner().janitor.collect()
        assert world.store.head(bad) is not None
        assert world.store.head(good) is None
        assert events(world, "staged_files_kept")[0]["prefix"] == "work/a/"

    def test_boxes_and_layers_are_collected_and_counted(self, world):
        runner, asked = world.runner(), []
        world.sandbox.reap = lambda alive: asked.append(alive("nobody-1")) or 2
        runner.janitor.boxes.layers.collect = lambda seconds: asked.append(seconds) or 3
        assert runner.janitor.collect() == Counter(staged_files_removed=0, boxes_reaped=2, layers_removed=3)
        assert asked == [False, 7 * 86400.0]

    def test_a_box_lives_while_its_attempt_does(self, world):
        alive = world.runner().janitor._label_alive
        job = add(world, "a-b", state=State.RUNNING, fence=2)
        assert alive(f"{job.job_id}-2")
        assert not alive(f"{job.job_id}-1")
        assert not alive("nobody-2")
        world.table.replace(job, replace(job, state=State.QUEUED))
        assert not alive(f"{job.job_id}-2")

        def unreadable(_):
            raise RowUnreadable("cannot be read")

        world.table.get = unreadable
        assert alive("anybody-1")


class TestBurial:
    def dead(self, world, jobs):
        """A runner that died with jobs of its own, and how they stand."""
        gone = world.runner()
        made = [
            add(world, f"d{n}", state=State.RUNNING, fence=1,
                lease=Lease(owner=gone.presence.owner, expires=world.clock.now() + 30))
            for n in range(jobs)
        ]  # fmt: skip
        folder = world.fragile.run_dir / gone.presence.owner
        (folder / "x").mkdir(parents=True)
        gone.presence._lock.close()
        return gone.presence.owner, made, folder

    def test_its_jobs_go_back_at_once_and_its_folder_and_lock_go(self, world):
        runner = world.runner()
        owner, jobs, folder = self.dead(world, 3)
        other = add(world, "other", state=State.RUNNING, fence=1, lease=Lease(owner="x", expires=world.clock.now() + 9))
        bare = add(world, "bare", state=State.RUNNING, fence=1, lease=None, updated_at=world.clock.now() + 60)
        reaped = []
        world.sandbox.reap = lambda alive: reaped.append(alive) or 0
        assert runner.janitor.urgent() == Counter(jobs_rescued=3, owners_buried=1)
        assert {now(world, job).state for job in jobs} == {State.QUEUED}
        assert now(world, other) == other
        assert now(world, bare) == bare
        assert not folder.exists()
        assert owner not in runner.presence.sweep()
        assert len(reaped) == 1
        assert not runner.janitor.urgent()

    def test_it_is_buried_only_when_all_of_its_jobs_are_rescued(self, world):
        runner = world.runner()
        owner, jobs, folder = self.dead(world, 2)
        rescue = runner.worker.rescue

        def broken(job):
            if job.job_id == jobs[0].job_id:
                raise KeyError("bug")
            return rescue(job)

        runner.worker.rescue = broken
        assert runner.janitor._bury_owner(owner) == Counter(jobs_rescued=1, chores_failed=1)
        assert folder.exists()
        assert owner in runner.presence.sweep()
        runner.worker.rescue = rescue
        assert runner.janitor._bury_owner(owner) == Counter(jobs_rescued=1, owners_buried=1)

    def test_all_pages_of_running_jobs_are_looked_through(self, world):
        runner = world.runner()
        owner, jobs, _ = self.dead(world, 3)
        page = world.table.page
        world.table.page = lambda query, *, limit=1, cursor=None: page(query, limit=1, cursor=cursor)
        runner.janitor._bury_owner(owner)
        world.table.page = page
        assert {now(world, job).state for job in jobs} == {State.QUEUED}


def test_a_slot_is_free_again_when_a_dead_runners_job_was_taken_from_it(world):
    runner, gone = world.runner(), world.runner()
    first = add(world, "a", enqueued_at=None)
    begun = replace(
        first, state=State.RUNNING, fence=1, lease=Lease(owner=gone.presence.owner, expires=world.clock.now() + 30)
    )
    assert world.table.admit(first, begun, Caps(tenant=1, workflow=1)) is not None
    gone.presence._lock.close()
    runner.janitor.urgent()
    second = add(world, "b", enqueued_at=None)
    begun = replace(second, state=State.RUNNING, fence=1, lease=Lease(owner="x", expires=world.clock.now() + 30))
    assert getattr(world.table.admit(second, begun, Caps(tenant=1, workflow=1)), "state", None) is State.RUNNING
