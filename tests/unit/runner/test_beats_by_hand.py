"""One beat at a time, by a clock that is moved by hand: what each look at a lease writes, and what it ends."""

from dataclasses import replace

import pytest

from core.errors import RecordNewer, StoreUnavailable
from core.jobs import State, dump_job, move
from core.verdicts import Verdict
from runner.leases import Beats, fenced
from tests.unit.runner.test_beats import Table, expires, held_jobs, make_beats


def down(*_):
    raise StoreUnavailable("down")


def hidden(world) -> list[tuple[str, float]]:
    """What the beats tell the queue."""
    told = []
    hide = world.queue.hide
    world.queue.hide = lambda receipt, seconds: told.append((receipt, seconds)) or hide(receipt, seconds)
    return told


def row(world, held):
    return world.table.get(held.job.job_id)


def test_a_beat_prolongs_the_lease_and_then_hides_the_message_for_longer(world):
    beats = make_beats(world)
    (held,) = held_jobs(world, beats)
    told = hidden(world)
    world.clock.move(9.9)
    beats.round()
    assert told == []
    assert held.job.rev == row(world, held).rev, "a look in between writes nothing"
    world.clock.move(0.1)
    beats.round()
    now = world.clock.now()
    assert expires(world, held) == now + 30
    assert told == [(held.receipt, 35.0)], "the message comes back after the lease has ended, never before"
    assert held.job == row(world, held)
    assert (held.ends, held.next_beat) == (now + 27, now + 10)
    assert not held.missed
    assert held.lost(world.clock) is None


def test_one_beat_is_one_write_and_no_read(world):
    calls = []
    table = Table(world, get=lambda *_: calls.append("get") or world.table.get(*_))
    beats = make_beats(world, table)
    (held,) = held_jobs(world, beats)
    before = row(world, held).rev
    world.clock.move(10)
    beats.round()
    assert calls == []
    assert row(world, held).rev == before + 1


def test_a_lease_that_is_held_late_ends_with_what_is_left_of_it(world):
    beats = make_beats(world)
    (held,) = held_jobs(world, beats)
    beats.let_go(held)
    world.clock.move(12)
    again = beats.hold(held.job, held.receipt)
    assert again.ends == world.clock.now() + 18 - 3
    assert again.next_beat == world.clock.now() + 10
    without = beats.hold(replace(held.job, lease=None), held.receipt)
    assert without.lost(world.clock) is Verdict.LEASE_LOST


def test_a_box_is_ended_at_nine_tenths_of_its_lease_and_not_before(world):
    beats = make_beats(world, Table(world, replace=down, get=down))
    (held,) = held_jobs(world, beats)
    world.clock.move(26.9)
    assert held.lost(world.clock) is None
    assert held.killed is None
    world.clock.move(0.1)
    assert held.lost(world.clock) is Verdict.LEASE_LOST
    held.killed = Verdict.CANCELLED
    assert held.lost(world.clock) is Verdict.CANCELLED, "the first reason stands"


def test_a_beat_that_fails_is_made_again_with_the_next_check(world):
    fails = [True]
    write = world.table.replace
    beats = make_beats(world, Table(world, replace=lambda old, new: down() if fails else write(old, new)))
    (held,) = held_jobs(world, beats)
    before, told = held.ends, hidden(world)
    world.clock.move(10)
    for _ in range(2):
        beats.round()
        assert held.missed
        assert held.ends == before
        assert held.killed is None
        assert not held.queued
        world.clock.move(1)
    assert told == []
    fails.clear()
    beats.round()
    assert not held.missed, "the table has answered since"
    assert held.ends == world.clock.now() + 27


def test_a_look_in_between_that_fails_is_no_missed_beat(world):
    beats = make_beats(world, Table(world, get=down))
    (held,) = held_jobs(world, beats)
    world.clock.move(5)
    beats.round()
    assert not held.missed
    assert held.killed is None


def test_a_missed_beat_is_not_forgotten_by_a_look_that_fails(world):
    beats = make_beats(world, Table(world, get=down, replace=down))
    (held,) = held_jobs(world, beats)
    world.clock.move(10)
    beats.round()
    held.next_beat += 10
    beats.round()
    assert held.missed


@pytest.mark.parametrize("seconds", [1, 10])
def test_a_cancel_is_seen_by_every_look_and_ends_the_box(world, seconds):
    beats = make_beats(world)
    (held,) = held_jobs(world, beats)
    job = row(world, held)
    world.table.replace(job, replace(job, cancel_requested_at=world.clock.now()))
    world.clock.move(seconds)
    beats.round()
    assert held.lost(world.clock) is Verdict.CANCELLED
    assert row(world, held).cancel_requested_at is not None, "the beat did not write over the cancel"
    assert row(world, held).state is State.RUNNING


@pytest.mark.parametrize("seconds", [1, 10])
@pytest.mark.parametrize("what", ["another fence", "queued again", "gone", "newer"])
def test_a_lease_that_somebody_else_has_taken_is_lost_with_the_next_check(world, seconds, what):
    beats = make_beats(world)
    (held,) = held_jobs(world, beats)
    job = row(world, held)
    if what == "another fence":
        world.table.replace(job, replace(job, fence=job.fence + 1))
    elif what == "queued again":
        world.table.replace(job, move(job, State.QUEUED, now=world.clock.now()))
    elif what == "newer":

        def newer(*_):
            raise RecordNewer("the row", 9, 1)

        beats = make_beats(world, Table(world, get=newer, replace=newer))
        beats.hold(held.job, held.receipt)
        held = beats._held[job.job_id]
    else:
        ended = world.table.replace(job, move(job, State.CANCELLED, now=world.clock.now()))
        assert world.table.remove(ended)
    before, told = row(world, held), hidden(world)
    world.clock.move(seconds)
    beats.round()
    assert held.killed is Verdict.LEASE_LOST
    assert not held.missed
    assert row(world, held) == before, "a beat writes nothing into the row of another"
    assert told == [], "the message is another's now"


@pytest.mark.parametrize("seconds", [1, 10])
def test_the_first_reason_to_end_a_box_counts(world, seconds):
    beats = make_beats(world)
    one, two = held_jobs(world, beats, 2)
    two.killed = Verdict.CANCELLED
    beats.kill_all(Verdict.RELEASED)
    assert (one.killed, two.killed) == (Verdict.RELEASED, Verdict.CANCELLED)
    job = row(world, one)
    world.table.replace(job, replace(job, cancel_requested_at=world.clock.now()))
    job = row(world, two)
    world.table.replace(job, replace(job, fence=job.fence + 1))
    world.clock.move(seconds)
    beats.round()
    assert (one.killed, two.killed) == (Verdict.RELEASED, Verdict.CANCELLED)


def test_a_job_that_a_slot_holds_only_after_the_end_was_ordered_is_ended_too(world):
    beats = make_beats(world)
    beats.kill_all(Verdict.RELEASED)
    (late,) = held_jobs(world, beats, 1)
    assert late.killed is Verdict.RELEASED


def test_progress_goes_into_the_row_with_the_beat_and_leaves_the_rest_there(world):
    beats = make_beats(world)
    one, two = held_jobs(world, beats, 2)
    assert one.progress == {}
    job = row(world, one)
    one.job = world.table.replace(job, replace(job, summary={"rows": 3}))
    one.progress = {"pass": "read", "done": 1, "total": 2}
    world.clock.move(10)
    beats.round()
    assert row(world, one).summary == {"rows": 3, "progress": one.progress}
    assert "progress" not in row(world, two).summary


def test_what_was_let_go_gets_no_beat_and_is_not_held(world):
    beats = make_beats(world)
    one, two = held_jobs(world, beats, 2)
    assert beats.holds(one.job)
    assert not beats.holds(replace(one.job, fence=one.fence + 1))
    before, told = row(world, one), hidden(world)
    beats.let_go(one)
    assert one.let_go
    assert not beats.holds(one.job)
    assert beats.holds(two.job)
    assert beats._some.is_set(), "there is another lease to keep"
    world.clock.move(10)
    beats.round()
    beats._tend(one)  # it was handed out before it was let go
    assert row(world, one) == before
    assert told == [(two.receipt, 35.0)]
    beats.let_go(two)
    assert not beats._some.is_set(), "nothing is held: the thread sleeps"
    beats.round()
    assert len(told) == 1


def test_letting_an_older_lease_go_leaves_the_newer_one_of_the_job(world):
    beats = make_beats(world)
    (old,) = held_jobs(world, beats)
    new = beats.hold(old.job, old.receipt)
    beats.let_go(old)
    assert beats.holds(new.job)
    assert not new.let_go


def test_a_lease_that_is_being_scanned_is_not_handed_out_again_and_the_most_urgent_goes_first(world):
    beats = make_beats(world)
    one, two, three = held_jobs(world, beats, 3)
    one.ends, two.ends, three.ends = 5.0, 20.0, 10.0
    one.queued = True
    looked = []
    beats._tend = looked.append
    beats.round()
    assert looked == [three, two]
    beats.round()
    assert looked == [three, two]


def test_beats_that_run_can_be_ended_twice_and_are_not_revived_then(world):
    beats = make_beats(world)
    beats.revive()
    assert beats._thread is None, "nothing to revive before the start"
    beats.start()
    thread, pool = beats._thread, beats._pool
    assert thread.is_alive()
    beats.revive()
    assert beats._thread is thread
    beats.stop()
    assert not thread.is_alive()
    with pytest.raises(RuntimeError):
        pool.submit(print)
    beats._thread = thread
    beats.revive()
    assert beats._thread is thread
    beats._thread = None
    beats.stop()


def test_the_thread_reads_what_is_held_and_rests_between_two_looks(world):
    """The bell of the table rings for every job: without a rest one busy neighbour would keep every runner reading."""
    waited, rests = [], []
    beats = Beats(
        world.table, world.queue, world.clock, world.log, lease_seconds=30.0, beat_seconds=0.4, wait=waited.append
    )

    def rest(seconds):
        rests.append(seconds)
        if len(rests) == 2:
            beats._stopped = True

    slept = []
    beats._some.wait = lambda: slept.append("until something is held")
    beats._pause.wait = rest
    (held,) = held_jobs(world, beats)
    world.clock.move(10)
    beats._loop()
    assert waited == [0.2, 0.2]
    assert len(slept) == 3, "before each look, and before it ends"
    assert rests == [0.1, 0.1]
    assert expires(world, held) == world.clock.now() + 30
    beats._beat, beats._stopped = 10.0, False
    rests.clear()
    beats._loop()
    assert waited[2:] == [1.0, 1.0]
    assert rests == [0.25, 0.25]


def test_a_change_under_a_fence_is_made_only_while_the_job_runs_under_it(world):
    (held,) = held_jobs(world, make_beats(world))
    change = fenced(held, lambda job: replace(job, reason="changed"))
    assert change(held.job).reason == "changed"
    assert change(replace(held.job, fence=held.fence + 1)) is None
    assert change(replace(held.job, fence=held.fence - 1)) is None
    assert change(move(held.job, State.QUEUED, now=1.0)) is None
    assert change(replace(held.job, lease=replace(held.job.lease, owner="another"))) is None


def test_a_lease_that_another_runner_has_under_the_same_fence_is_lost(world):
    """A table that was restored from a backup gives out the same fence twice."""
    beats = make_beats(world)
    (held,) = held_jobs(world, beats)
    row = world.table.get(held.job.job_id)
    assert beats.holds(row)
    with world.table._db.write() as db:  # as a restored table does: the same rev, too
        theirs = replace(row, lease=replace(row.lease, owner="another"))
        db.execute("UPDATE jobs SET doc = ? WHERE job_id = ?", (dump_job(theirs), row.job_id))
    world.clock.move(10)
    beats.round()
    assert held.killed is Verdict.LEASE_LOST
    assert world.table.get(row.job_id) == theirs
    assert not beats.holds(theirs)
