"""What every work queue promises: at least once, hidden while it is worked on, and nothing lost.

`SHORT` is a visibility that real servers can wait out; where time is moved by hand it costs nothing.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.ports import Delivery, Message, WorkQueue
from tests.contract import contenders
from tests.contract.rigs import Rig

SHORT, LONG = 1.0, 60.0


def a_message(name: str, tenant: str = "acme", priority: int = 0) -> Message:
    return Message(job_id=name, tenant=tenant, priority=priority)


def take(rig: Rig[WorkQueue], *, most: int = 1, visibility: float = LONG, patience: float = 5.0) -> list[Delivery]:
    """Receive until `most` have come; real servers get the time they need, a hand-moved clock needs none."""
    found: list[Delivery] = []
    until = time.monotonic() + (0 if rig.moves_time else patience)
    while True:
        found += rig.port.receive(most=most - len(found), wait=0 if rig.moves_time else 1, visibility=visibility)
        if len(found) >= most or time.monotonic() >= until:
            return found


def names(deliveries: list[Delivery] | tuple[Delivery, ...]) -> list[str]:
    return [delivery.message.job_id for delivery in deliveries]


def nothing(rig: Rig[WorkQueue]) -> bool:
    return rig.port.receive(most=10, wait=0, visibility=LONG) == ()


class TestSendingAndReceiving:
    def test_what_was_sent_is_received_whole(self, queue_rig: Rig[WorkQueue]):
        message = a_message("acme-members-7f3k9q2d", tenant="Acme & Söhne _1", priority=3)
        queue_rig.port.send(message)
        (got,) = take(queue_rig)
        assert got.message == message
        assert got.receives == 1

    def test_an_empty_queue_gives_nothing(self, queue: WorkQueue):
        assert queue.receive(most=10, wait=0, visibility=LONG) == ()

    def test_no_more_than_asked_for(self, queue_rig: Rig[WorkQueue]):
        for n in range(4):
            queue_rig.port.send(a_message(f"j{n}"))
        assert len(queue_rig.port.receive(most=2, wait=0, visibility=LONG)) <= 2

    def test_more_than_one_answer_holds(self, queue_rig: Rig[WorkQueue]):
        for n in range(13):
            queue_rig.port.send(a_message(f"j{n}"))
        assert sorted(names(take(queue_rig, most=13))) == sorted(f"j{n}" for n in range(13))

    def test_a_received_message_is_hidden(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        take(queue_rig)
        assert nothing(queue_rig)

    def test_another_client_sees_what_this_one_sent(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        with queue_rig.another() as other:
            assert names(other.receive(most=1, wait=2, visibility=LONG)) == ["a"]

    def test_an_acked_message_does_not_come_back(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (got,) = take(queue_rig, visibility=SHORT)
        queue_rig.port.ack(got.receipt)
        queue_rig.later(SHORT * 2)
        assert take(queue_rig, patience=SHORT * 2) == []

    def test_an_ack_again_is_fine(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (got,) = take(queue_rig)
        queue_rig.port.ack(got.receipt)
        queue_rig.port.ack(got.receipt)

    def test_a_message_may_be_sent_again_after_its_ack(self, queue_rig: Rig[WorkQueue]):
        for _ in range(2):
            queue_rig.port.send(a_message("a"))
            (got,) = take(queue_rig)
            queue_rig.port.ack(got.receipt)
        assert nothing(queue_rig)

    def test_a_message_sent_while_it_is_worked_on_is_not_lost(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (first,) = take(queue_rig)
        queue_rig.port.send(a_message("a"))
        queue_rig.port.ack(first.receipt)
        assert names(take(queue_rig)) == ["a"]

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_concurrent_receivers_share_the_messages(self, queue_rig: Rig[WorkQueue], kind: str):
        for n in range(20):
            queue_rig.port.send(a_message(f"j{n:02d}"))
        shares = contenders.race(
            queue_rig.race_in(kind), 4, contenders.receive_all, [queue_rig.another] * 4, [LONG] * 4
        )
        assert sorted(name for share in shares for name in share) == [f"j{n:02d}" for n in range(20)]


class TestVisibility:
    def test_an_unacked_message_comes_back_and_counts(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        take(queue_rig, visibility=SHORT)
        queue_rig.later(SHORT)
        (again,) = take(queue_rig)
        assert (again.message.job_id, again.receives) == ("a", 2)

    def test_hide_prolongs(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (got,) = take(queue_rig, visibility=2 * SHORT)
        assert queue_rig.port.hide(got.receipt, LONG)
        queue_rig.later(3 * SHORT)
        assert take(queue_rig, patience=3 * SHORT) == []
        assert queue_rig.port.hide(got.receipt, LONG), "the receipt lives as long as it is prolonged"

    def test_hide_for_no_time_gives_the_message_back(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (got,) = take(queue_rig)
        assert queue_rig.port.hide(got.receipt, 0)
        assert names(take(queue_rig)) == ["a"]

    def test_hide_for_a_while_delays_the_next_delivery(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (got,) = take(queue_rig)
        queue_rig.port.hide(got.receipt, SHORT)
        assert nothing(queue_rig)
        queue_rig.later(SHORT)
        assert names(take(queue_rig)) == ["a"]

    def test_the_later_delivery_has_another_receipt(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (first,) = take(queue_rig, visibility=SHORT)
        queue_rig.later(SHORT)
        (second,) = take(queue_rig)
        assert first.receipt != second.receipt

    def test_a_stale_receipt_hides_nothing(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (first,) = take(queue_rig, visibility=SHORT)
        queue_rig.later(SHORT)
        (second,) = take(queue_rig)
        assert not queue_rig.port.hide(first.receipt, 0)
        assert nothing(queue_rig), "the second receiver's message was shown to a third"
        assert queue_rig.port.hide(second.receipt, LONG)

    def test_a_stale_receipt_deletes_nothing(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (first,) = take(queue_rig, visibility=SHORT)
        queue_rig.later(SHORT)
        take(queue_rig, visibility=SHORT)
        queue_rig.port.ack(first.receipt)
        queue_rig.later(SHORT)
        assert names(take(queue_rig)) == ["a"]

    def test_the_receipt_of_an_acked_message_is_stale(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"))
        (got,) = take(queue_rig)
        queue_rig.port.ack(got.receipt)
        assert not queue_rig.port.hide(got.receipt, LONG)

    def test_a_receipt_that_never_was_is_stale(self, queue: WorkQueue):
        assert not queue.hide("no-such-receipt", LONG)
        queue.ack("no-such-receipt")


class TestDelay:
    def test_a_delayed_message_comes_when_it_is_due_and_not_before(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"), delay=SHORT)
        assert nothing(queue_rig)
        queue_rig.later(SHORT)
        assert names(take(queue_rig)) == ["a"]

    def test_a_delayed_message_holds_up_no_other(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"), delay=LONG)
        queue_rig.port.send(a_message("b"))
        assert names(take(queue_rig)) == ["b"]

    def test_a_delay_beyond_what_servers_know_does_not_come_early(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a"), delay=6 * 3600)
        queue_rig.later(5 * 3600)
        assert take(queue_rig, patience=SHORT) == []


class TestOrder:
    @pytest.fixture(autouse=True)
    def _ordering(self, queue_rig: Rig[WorkQueue]):
        if not queue_rig.orders:
            pytest.skip("this service leans towards an order and promises none")

    def drain(self, rig: Rig[WorkQueue], count: int) -> list[str]:
        found = []
        for _ in range(count):
            (got,) = rig.port.receive(most=1, wait=0, visibility=LONG)
            rig.port.ack(got.receipt)
            found.append(got.message.job_id)
        return found

    def test_of_one_tenant_first_come_first_served(self, queue_rig: Rig[WorkQueue]):
        for n in range(5):
            queue_rig.port.send(a_message(f"j{n}"))
            queue_rig.later(1)
        assert self.drain(queue_rig, 5) == ["j0", "j1", "j2", "j3", "j4"]

    def test_urgent_work_overtakes(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("plain"))
        queue_rig.port.send(a_message("low", priority=-1))
        queue_rig.port.send(a_message("urgent", priority=5))
        assert self.drain(queue_rig, 3) == ["urgent", "plain", "low"]

    def test_urgent_work_that_keeps_coming_starves_nobody(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("plain"))
        for n in range(1000):
            queue_rig.later(10)
            queue_rig.port.send(a_message(f"urgent {n}", priority=9))
            if self.drain(queue_rig, 1) == ["plain"]:
                return
        pytest.fail("a plain message waited behind 1000 urgent ones")

    def test_tenants_are_served_in_turn(self, queue_rig: Rig[WorkQueue]):
        for n in range(50):
            queue_rig.port.send(a_message(f"big {n}", tenant="big"))
        for n in range(3):
            queue_rig.port.send(a_message(f"small {n}", tenant="small"))
        first_six = self.drain(queue_rig, 6)
        assert sum(name.startswith("small") for name in first_six) == 3

    def test_a_tenant_that_comes_late_does_not_wait_behind_a_backlog(self, queue_rig: Rig[WorkQueue]):
        for n in range(50):
            queue_rig.port.send(a_message(f"big {n}", tenant="big"))
        self.drain(queue_rig, 10)
        queue_rig.port.send(a_message("late", tenant="late"))
        assert "late" in self.drain(queue_rig, 2)

    def test_one_answer_is_fair_too(self, queue_rig: Rig[WorkQueue]):
        for n in range(10):
            queue_rig.port.send(a_message(f"big {n}", tenant="big"))
        queue_rig.port.send(a_message("small", tenant="small"))
        assert "small" in names(queue_rig.port.receive(most=4, wait=0, visibility=LONG))

    def test_urgency_of_one_tenant_does_not_starve_another(self, queue_rig: Rig[WorkQueue]):
        for n in range(20):
            queue_rig.port.send(a_message(f"big {n}", tenant="big", priority=9))
        queue_rig.port.send(a_message("small", tenant="small"))
        assert "small" in self.drain(queue_rig, 2)


class TestChosenTenants:
    @pytest.fixture(autouse=True)
    def _choosing(self, queue_rig: Rig[WorkQueue]):
        if not queue_rig.port.chooses_tenants:
            pytest.skip("this queue says that it cannot choose")

    def test_avoided_tenants_are_left_alone(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a", tenant="full"))
        queue_rig.port.send(a_message("b", tenant="free"))
        got = queue_rig.port.receive(most=5, wait=0, visibility=LONG, avoid=frozenset({"full"}))
        assert names(got) == ["b"]

    def test_an_avoided_tenant_is_served_when_it_is_no_longer_avoided(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a", tenant="full"))
        assert queue_rig.port.receive(most=5, wait=0, visibility=LONG, avoid=frozenset({"full"})) == ()
        assert names(queue_rig.port.receive(most=5, wait=0, visibility=LONG)) == ["a"]

    def test_who_waits_for_others_is_woken_by_their_message(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("a", tenant="full"))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(queue_rig.port.receive, most=1, wait=LONG, visibility=LONG, avoid=frozenset({"full"}))
            queue_rig.port.send(a_message("b", tenant="free"))
            assert names(waiting.result(timeout=LONG / 2)) == ["b"]


def test_a_queue_that_cannot_choose_brings_avoided_tenants_too(queue_rig: Rig[WorkQueue]):
    """So that nothing is lost by asking, and the caller can put them back."""
    if queue_rig.port.chooses_tenants:
        pytest.skip("this queue chooses")
    queue_rig.port.send(a_message("a", tenant="full"))
    got: list[Delivery] = []
    for _ in range(10):
        got += queue_rig.port.receive(most=5, wait=1, visibility=LONG, avoid=frozenset({"full"}))
        if got:
            break
    assert names(got) == ["a"]


class TestDeadLetters:
    def test_a_buried_message_is_shown_with_its_reason(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.bury(a_message("a", priority=2), "tries used up: runner lost")
        (letter,) = queue_rig.port.dead()
        assert letter.message == a_message("a", priority=2)
        assert letter.reason == "tries used up: runner lost"

    def test_showing_does_not_take_away(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.bury(a_message("a"), "x")
        assert len(queue_rig.port.dead()) == 1
        assert len(queue_rig.port.dead()) == 1

    def test_a_job_buried_again_has_one_letter_and_the_last_reason(self, queue_rig: Rig[WorkQueue]):
        for reason in ("first", "second"):
            queue_rig.port.bury(a_message("a"), reason)
            queue_rig.later(1)
        assert [letter.reason for letter in queue_rig.port.dead()] == ["second"]
        assert queue_rig.port.redrive() == 1
        assert queue_rig.port.dead() == ()

    def test_a_buried_message_is_not_delivered(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.bury(a_message("a"), "x")
        assert nothing(queue_rig)

    def test_no_dead_letters(self, queue: WorkQueue):
        assert queue.dead() == ()
        assert queue.redrive() == 0

    def test_the_limit_holds(self, queue: WorkQueue):
        for n in range(3):
            queue.bury(a_message(f"j{n}"), "x")
        assert len(queue.dead(limit=2)) == 2

    def test_redrive_takes_all(self, queue: WorkQueue):
        for n in range(3):
            queue.bury(a_message(f"j{n}"), "x")
        assert queue.redrive() == 3
        assert queue.dead() == ()

    def test_redrive_takes_one_jobs_letter_and_leaves_the_rest(self, queue: WorkQueue):
        for name in "ab":
            queue.bury(a_message(name), "x")
        assert queue.redrive("a") == 1
        assert [letter.message.job_id for letter in queue.dead()] == ["b"]

    def test_redrive_of_a_job_without_a_letter_takes_nothing(self, queue: WorkQueue):
        queue.bury(a_message("a"), "x")
        assert queue.redrive("b") == 0
        assert len(queue.dead()) == 1


class TestStats:
    def test_an_empty_queue(self, queue: WorkQueue):
        stats = queue.stats()
        assert (stats.ready, stats.in_flight, stats.delayed, stats.dead) == (0, 0, 0, 0)
        assert stats.oldest_seconds is None

    def test_every_message_is_counted_where_it_is(self, queue_rig: Rig[WorkQueue]):
        queue = queue_rig.port
        queue.send(a_message("a"))
        take(queue_rig)
        queue.send(a_message("b"))
        queue.send(a_message("c"), delay=LONG)
        queue.bury(a_message("d"), "x")
        stats = queue.stats()
        assert (stats.ready, stats.in_flight, stats.delayed, stats.dead) == (1, 1, 1, 1)

    def test_the_age_of_the_oldest_that_is_ready(self, queue_rig: Rig[WorkQueue]):
        if not queue_rig.orders:
            pytest.skip("this service tells no age")
        queue_rig.port.send(a_message("a"))
        queue_rig.later(7)
        queue_rig.port.send(a_message("b"))
        assert queue_rig.port.stats().oldest_seconds == 7

    def test_a_message_that_became_visible_again_counts_as_ready_with_its_age(self, queue_rig: Rig[WorkQueue]):
        if not queue_rig.orders:
            pytest.skip("this service tells no age")
        queue_rig.port.send(a_message("a"))
        take(queue_rig, visibility=SHORT)
        queue_rig.later(SHORT + 7)
        stats = queue_rig.port.stats()
        assert (stats.ready, stats.in_flight) == (1, 0)
        assert stats.oldest_seconds == SHORT + 7


class TestWaiting:
    def test_a_waiting_receive_is_ended_by_a_send(self, queue_rig: Rig[WorkQueue]):
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(queue_rig.port.receive, most=1, wait=20, visibility=LONG)
            queue_rig.port.send(a_message("a"))
            assert names(waiting.result(timeout=30)) == ["a"]

    def test_a_waiting_receive_is_ended_by_another_clients_send(self, queue_rig: Rig[WorkQueue]):
        with ThreadPoolExecutor(1) as pool, queue_rig.another() as other:
            waiting = pool.submit(queue_rig.port.receive, most=1, wait=20, visibility=LONG)
            other.send(a_message("a"))
            assert names(waiting.result(timeout=30)) == ["a"]

    def test_wake_ends_a_waiting_receive(self, queue: WorkQueue):
        waiting = threading.Event()
        before = time.monotonic()

        def wait() -> tuple[Delivery, ...]:
            waiting.set()
            return queue.receive(most=1, wait=120, visibility=LONG)

        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(wait)
            waiting.wait()
            queue.wake()
            assert result.result(timeout=100) == ()
        assert time.monotonic() - before < 100, "the wait ran its whole length"

    def test_wake_before_receive_is_not_lost(self, queue: WorkQueue):
        queue.wake()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(queue.receive, most=1, wait=120, visibility=LONG).result(timeout=100) == ()

    def test_a_message_received_around_a_wake_is_not_lost(self, queue_rig: Rig[WorkQueue]):
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(queue_rig.port.receive, most=1, wait=20, visibility=LONG)
            queue_rig.port.wake()
            queue_rig.port.send(a_message("a"))
            got = list(waiting.result(timeout=30))
        assert names(got or take(queue_rig, patience=15)) == ["a"]


class TestMissing:
    """Whether the message of a job is lost. A queue that can only count takes the first of those it is asked about."""

    def test_what_is_ready_held_or_delayed_is_not_missing(self, queue_rig: Rig[WorkQueue]):
        for name in ("held", "ready"):
            queue_rig.port.send(a_message(name))
        queue_rig.port.send(a_message("delayed"), delay=LONG)
        take(queue_rig)
        assert queue_rig.port.missing(["ready", "held", "delayed"], lambda: 3) == ()

    def test_what_was_never_sent_or_is_gone_is_missing(self, queue_rig: Rig[WorkQueue]):
        queue_rig.port.send(a_message("gone"))
        (got,) = take(queue_rig)
        queue_rig.port.ack(got.receipt)
        queue_rig.port.send(a_message("here"))
        assert queue_rig.port.missing(["gone", "never", "here"], lambda: 3) == ("gone", "never")

    def test_of_nothing_nothing_is_missing(self, queue: WorkQueue):
        assert queue.missing([], lambda: 5) == ()

    def test_what_was_missing_and_sent_again_is_not(self, queue_rig: Rig[WorkQueue]):
        assert queue_rig.port.missing(["a"], lambda: 1) == ("a",)
        queue_rig.port.send(a_message("a"))
        assert queue_rig.port.missing(["a"], lambda: 1) == ()
