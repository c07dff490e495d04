"""WorkQueue on PostgreSQL: lanes per tenant served in turn, visibility, delay, priority, dead letters.

What it does is in the functions of the schema (sql/migrations): each call is one statement. A receipt is the
message's job and a number that every delivery draws afresh, so that it is found without an index of its own.
"""

import threading
import time
from collections.abc import Callable, Sequence

from core.ports import Clock, DeadLetter, Delivery, Message, QueueStats
from infra.postgres.connections import Connections, OnConnections
from infra.postgres.listening import QUEUE, PostgresBells

# One step of priority is worth this head start over messages sent later: urgent work overtakes,
# and nothing waits behind more than a fixed time's worth of later arrivals.
PRIORITY_SECONDS = 60.0
_BATCH = 500
_RECEIPT_DIGITS = 16
_MANY = 10_000  # messages, from which on counting them takes a while


class PostgresWorkQueue(OnConnections):
    """One schema of a database, made by `ade infra init`. Safe to share between threads."""

    chooses_tenants = True

    def __init__(self, connections: Connections, bells: PostgresBells, *, clock: Clock | None = None) -> None:
        """`clock`: whose time messages go by; None: the server's, which all machines share."""
        super().__init__(connections)
        self._bells = bells
        self._clock = clock
        self._woken = threading.Event()
        self._counted: tuple[QueueStats | None, float] = (None, 0.0)  # and until when that will do

    def send(self, message: Message, *, delay: float = 0.0) -> None:
        self.send_all([(message, delay)])

    def send_all(self, messages: Sequence[tuple[Message, float]]) -> None:
        for begin in range(0, len(messages), _BATCH):
            batch = messages[begin : begin + _BATCH]
            self._db.run(
                "send",
                "send",
                now=self._now(),
                ids=[message.job_id for message, _ in batch],
                tenants=[message.tenant for message, _ in batch],
                priorities=[message.priority for message, _ in batch],
                delays=[float(delay) for _, delay in batch],
                head_start=PRIORITY_SECONDS,
            )
            self._bells.ring(QUEUE)  # for delayed ones too: who waits then knows until when

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        until = time.monotonic() + wait
        while True:
            seen = self._bells.count(QUEUE)
            deliveries, ahead = self._claim(most, visibility, avoid)
            left = until - time.monotonic()
            if deliveries or left <= 0 or self._woken.is_set():
                self._woken.clear()
                return deliveries
            self._bells.wait(QUEUE, seen, min(left, max(ahead, 0.01)))

    def hide(self, receipt: str, seconds: float) -> bool:
        job_id, number = _read_receipt(receipt)
        if number is None:
            return False
        ((hidden,),) = self._db.run(
            f"hide {job_id}", "hide", now=self._now(), job_id=job_id, receipt=number, seconds=float(seconds)
        )
        if hidden and seconds <= 0:
            self._bells.ring(QUEUE)
        return bool(hidden)

    def ack(self, receipt: str) -> None:
        job_id, number = _read_receipt(receipt)
        if number is not None:
            self._db.run(f"ack {job_id}", "ack", job_id=job_id, receipt=number)

    def missing(self, job_ids: Sequence[str], expected: Callable[[], int]) -> tuple[str, ...]:
        """Exact: every message can be looked up."""
        del expected
        there: set[str] = set()
        for begin in range(0, len(job_ids), _BATCH):
            there |= {i for (i,) in self._db.run("look", "present", job_ids=list(job_ids[begin : begin + _BATCH]))}
        return tuple(job_id for job_id in job_ids if job_id not in there)

    def bury(self, message: Message, reason: str) -> None:
        self._db.change(
            f"bury {message.job_id}",
            "bury",
            job_id=message.job_id,
            tenant=message.tenant,
            priority=message.priority,
            reason=reason,
            now=self._now(),
        )

    def dead(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        return tuple(
            DeadLetter(message=Message(job_id=job_id, tenant=tenant, priority=priority), reason=reason, at=at)
            for job_id, tenant, priority, reason, at in self._db.run("read dead letters", "dead", limit=limit)
        )

    def redrive(self, job_id: str | None = None) -> int:
        if job_id is None:
            return self._db.change("redrive", "redrive_all")
        return self._db.change("redrive", "redrive", job_id=job_id)

    def stats(self) -> QueueStats:
        """Exact. Reads every message: counts of very many are kept for a while, and cost a twentieth of the time."""
        found, until = self._counted
        if found is not None and time.monotonic() < until:
            return found
        began = time.monotonic()
        ((ready, held, delayed, dead, oldest),) = self._db.run("count messages", "stats", now=self._now())
        found = QueueStats(
            ready=ready,
            in_flight=held,
            delayed=delayed,
            dead=dead,
            oldest_seconds=None if oldest is None else max(0.0, oldest),
        )
        ended = time.monotonic()
        self._counted = (found, ended + 20 * (ended - began)) if ready + held + delayed > _MANY else (None, 0.0)
        return found

    def wake(self) -> None:
        self._woken.set()
        self._bells.ring_here(QUEUE)

    def _now(self) -> float | None:
        return None if self._clock is None else self._clock.now()

    def _claim(self, most: int, visibility: float, avoid: frozenset[str]) -> tuple[tuple[Delivery, ...], float]:
        """What is ready now; with nothing, the seconds until a hidden message becomes visible."""
        rows = self._db.run(
            "receive", "take", now=self._now(), most=most, visibility=float(visibility), avoid=sorted(avoid)
        )
        if rows and rows[0][0] is None:
            return (), float("inf") if rows[0][7] is None else rows[0][7]
        return tuple(
            Delivery(
                message=Message(job_id=job_id, tenant=tenant, priority=priority),
                receipt=f"{token}.{job_id}",
                receives=times,
                sent_at=sent,
                record=record,
            )
            for job_id, tenant, priority, token, times, sent, record, _ in rows
        ), 0.0


def _read_receipt(receipt: str) -> tuple[str, int | None]:
    number, _, job_id = receipt.partition(".")
    return job_id, int(number) if number.isascii() and number.isdigit() and len(number) <= _RECEIPT_DIGITS else None
