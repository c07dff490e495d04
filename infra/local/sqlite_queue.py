"""WorkQueue on SQLite: lanes per tenant served in turn, visibility, delay, priority, dead letters."""

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from sqlite3 import Connection, Row

from core.ports import Clock, DeadLetter, Delivery, Message, QueueStats
from infra.local import bells
from infra.local.sqlite import Database

# One step of priority is worth this head start over messages sent later: urgent work overtakes,
# but no message waits for more than a fixed time's worth of later ones.
PRIORITY_SECONDS = 60.0


class SqliteWorkQueue:
    chooses_tenants = True

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock
        self._bell = queue_bell(database)
        self._listener: bells.Listener | None = None
        self._woken = threading.Event()

    @property
    def database(self) -> Path:
        return self._db.path

    def send(self, message: Message, *, delay: float = 0.0) -> None:
        self.send_all([(message, delay)])

    def send_all(self, messages: Sequence[tuple[Message, float]]) -> None:
        now = self._clock.now()
        with self._db.write() as db:
            for message, delay in messages:
                insert_message(db, message, delay=delay, now=now)
        bells.ring(self._bell)

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        if wait > 0 and self._listener is None:
            self._listener = bells.Listener(self._bell)
        until = time.monotonic() + wait
        while True:
            ahead = self._until_next()
            deliveries = self._claim(most, visibility, avoid) if ahead <= 0 else ()
            left = until - time.monotonic()
            if deliveries or left <= 0 or self._listener is None or self._woken.is_set():
                self._woken.clear()
                return deliveries
            # Ready but not taken: only avoided tenants. A bell or the caller's next try wakes us.
            self._listener.wait(min(left, ahead) if ahead > 0 else left)

    def hide(self, receipt: str, seconds: float) -> bool:
        now = self._clock.now()
        with self._db.write_unsynced() as db:
            # Back in its lane, which invalidates the receipt.
            changed = db.execute(
                "UPDATE messages SET visible_at = ?, receipt = CASE WHEN ? THEN NULL ELSE receipt END"
                " WHERE receipt = ? AND ready = 0",
                (now + seconds, seconds <= 0, receipt),
            ).rowcount
        if seconds <= 0:
            bells.ring(self._bell)
        return changed == 1

    def ack(self, receipt: str) -> None:
        with self._db.write_unsynced() as db:
            db.execute("DELETE FROM messages WHERE receipt = ?", (receipt,))

    def missing(self, job_ids: Sequence[str], expected: Callable[[], int]) -> tuple[str, ...]:
        """Exact: every message can be looked up."""
        del expected
        db = self._db.read()
        return tuple(
            job_id
            for job_id in job_ids
            if db.execute("SELECT 1 FROM messages WHERE job_id = ?", (job_id,)).fetchone() is None
        )

    def bury(self, message: Message, reason: str) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT OR REPLACE INTO dead_letters (job_id, tenant, priority, reason, at) VALUES (?, ?, ?, ?, ?)",
                (message.job_id, message.tenant, message.priority, reason, self._clock.now()),
            )

    def dead(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        rows = self._db.read().execute("SELECT * FROM dead_letters ORDER BY at LIMIT ?", (limit,))
        return tuple(DeadLetter(message=_message(r), reason=r["reason"], at=r["at"]) for r in rows)

    def redrive(self, job_id: str | None = None) -> int:
        with self._db.write() as db:
            if job_id is None:
                return db.execute("DELETE FROM dead_letters").rowcount
            return db.execute("DELETE FROM dead_letters WHERE job_id = ?", (job_id,)).rowcount

    def stats(self) -> QueueStats:
        now, db = self._clock.now(), self._db.read()
        ready, oldest = db.execute(
            "SELECT count(*), min(sent_at) FROM messages WHERE ready = 1 OR visible_at <= ?", (now,)
        ).fetchone()
        hidden = db.execute("SELECT receipt IS NOT NULL AS held, visible_at FROM messages WHERE ready = 0").fetchall()
        due = sum(1 for r in hidden if r["visible_at"] <= now)  # ready, but not received since
        held = sum(1 for r in hidden if r["held"] and r["visible_at"] > now)
        dead = db.execute("SELECT count(*) FROM dead_letters").fetchone()[0]
        return QueueStats(
            ready=ready,
            in_flight=held,
            delayed=len(hidden) - due - held,
            dead=dead,
            oldest_seconds=None if oldest is None else max(0.0, now - oldest),
        )

    def wake(self) -> None:
        self._woken.set()
        if self._listener is not None:
            self._listener.wake()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _until_next(self) -> float:
        """Seconds until a message may be ready, read without the write lock."""
        db = self._db.read()
        if db.execute("SELECT 1 FROM messages WHERE ready = 1 LIMIT 1").fetchone() is not None:
            return 0.0
        at = db.execute("SELECT min(visible_at) FROM messages WHERE ready = 0").fetchone()[0]
        return float("inf") if at is None else max(0.0, at - self._clock.now())

    def _claim(self, most: int, visibility: float, avoid: frozenset[str]) -> tuple[Delivery, ...]:
        now = self._clock.now()
        deliveries: list[Delivery] = []
        with self._db.write_unsynced() as db:
            due = db.execute("SELECT DISTINCT tenant FROM messages WHERE ready = 0 AND visible_at <= ?", (now,))
            for (tenant,) in due.fetchall():
                _open_lane(db, tenant)
            db.execute("UPDATE messages SET ready = 1, receipt = NULL WHERE ready = 0 AND visible_at <= ?", (now,))
            while len(deliveries) < most and (row := _next(db, avoid)) is not None:
                receipt = secrets.token_hex(12)
                db.execute(
                    "UPDATE messages SET ready = 0, receipt = ?, visible_at = ?, receives = receives + 1"
                    " WHERE job_id = ?",
                    (receipt, now + visibility, row["job_id"]),
                )
                db.execute(
                    "UPDATE lanes SET served = (SELECT max(served) FROM lanes) + 1 WHERE tenant = ?", (row["tenant"],)
                )
                deliveries.append(
                    Delivery(
                        message=_message(row), receipt=receipt, receives=row["receives"] + 1, sent_at=row["sent_at"]
                    )
                )
        return tuple(deliveries)


def _next(db: Connection, avoid: frozenset[str]) -> Row | None:
    """The first message, by rank, of the tenant that was served longest ago."""
    for (tenant,) in db.execute("SELECT tenant FROM lanes ORDER BY served, tenant").fetchall():
        if tenant in avoid:
            continue
        row: Row | None = db.execute(
            "SELECT * FROM messages WHERE ready = 1 AND tenant = ? ORDER BY rank LIMIT 1", (tenant,)
        ).fetchone()
        if row is not None:
            return row
        db.execute("DELETE FROM lanes WHERE tenant = ?", (tenant,))
    return None


def queue_bell(database: Database) -> Path:
    """What to ring when there are messages."""
    return database.folder / "bells" / "queue"


def insert_message(db: Connection, message: Message, *, delay: float, now: float) -> None:
    """Send a message in the caller's transaction."""
    db.execute(
        "INSERT INTO messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job_id) DO UPDATE SET ready = excluded.ready,"
        " visible_at = excluded.visible_at, receipt = NULL",
        (
            message.job_id,
            message.tenant,
            message.priority,
            now - message.priority * PRIORITY_SECONDS,
            int(delay <= 0),
            now + delay,
            now,
        ),
    )
    if delay <= 0:
        _open_lane(db, message.tenant)


def _open_lane(db: Connection, tenant: str) -> None:
    """A tenant that joins starts level with the one that has waited longest."""
    db.execute(
        "INSERT OR IGNORE INTO lanes (tenant, served) VALUES (?, (SELECT coalesce(min(served), 0) FROM lanes))",
        (tenant,),
    )


def _message(row: Row) -> Message:
    return Message(job_id=row["job_id"], tenant=row["tenant"], priority=row["priority"])
