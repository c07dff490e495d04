"""NOTIFY and LISTEN: who waits for a message or a change is notified at once, from whatever machine it comes.

Theory of operation. A bell is a channel of the database. One thread of each process keeps a connection that listens to
both bells and rings them. It rings after the write is committed, in a transaction of its own: NOTIFY makes committing
transactions of the whole server wait for each other, and one that writes nothing else keeps nobody waiting for the
disk. Many rings in a short time are one. A ring that is lost with its process or its connection only costs time, since
everybody who waits looks by itself too: seldom where it can listen, often where it cannot (no connection just now,
or a pooler that lends sessions by the transaction).
"""

import contextlib
import os
import random
import select
import threading
import time
from collections import Counter

import psycopg

from core.errors import StoreUnavailable
from infra.postgres.connections import Connections, Link

QUEUE, JOBS = "queue", "jobs"
CHECK_SECONDS = 10.0  # how often who waits looks by itself, in case a ring was lost
POLL_SECONDS = 0.5  # the same where no notification arrives
_LEAST_SECONDS = {QUEUE: 0.005, JOBS: 0.05}  # between two rings of one bell
_ALIVE_SECONDS = 20.0
_LONGEST_PAUSE = 5.0


class PostgresBells:
    """Both bells, for all threads of a process; the thread starts when the first of them is rung or waited for."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        schema = connections.database.schema
        self._channels = {bell: f"{schema}_{bell}" for bell in (QUEUE, JOBS)}
        self._bells = {channel: bell for bell, channel in self._channels.items()}
        self._rung = threading.Condition()
        self._count: Counter[str] = Counter()
        self._pending: set[str] = set()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._listens = False
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)

    @property
    def listens(self) -> bool:
        """Whether notifications of other processes arrive at the moment."""
        return self._listens

    def ring(self, bell: str) -> None:
        """Notify everybody who waits, here and elsewhere."""
        with self._rung:
            self._count[bell] += 1
            self._rung.notify_all()
            if bell in self._pending:
                return  # it will be rung, once for all
            self._pending.add(bell)
            self._start()
        self._wake()

    def ring_here(self, bell: str) -> None:
        """Notify who waits in this process only."""
        with self._rung:
            self._count[bell] += 1
            self._rung.notify_all()

    def count(self, bell: str) -> int:
        """Pass it to `wait`: what is rung in between is not missed."""
        return self._count[bell]

    def wait(self, bell: str, seen: int, seconds: float) -> None:
        """Return when the bell has been rung since `seen`, after `seconds`, or when it is time to look anyway."""
        with self._rung:
            self._start()
            pause = CHECK_SECONDS * random.uniform(0.8, 1.2) if self._listens else POLL_SECONDS  # noqa: S311 - jitter
            self._rung.wait_for(lambda: self._count[bell] != seen, timeout=max(0.0, min(seconds, pause)))

    def close(self) -> None:
        """Ring what is still to be rung, and end."""
        with self._rung:
            self._ended = True
            thread = self._thread
        if thread is not None:
            self._wake()
            thread.join(5)
        with contextlib.suppress(OSError):
            os.close(self._wake_in)
            os.close(self._wake_out)

    def _start(self) -> None:
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._run, name="postgres-bells", daemon=True)
            self._thread.start()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_out, b"x")

    def _run(self) -> None:
        pause = 0.1
        while True:
            with contextlib.suppress(psycopg.Error, StoreUnavailable, OSError):
                link, own = self._connections.connect()
                with contextlib.closing(link):
                    pause = 0.1
                    self._serve(link, own_session=own)
            self._listens = False
            self._ring_all_here()  # who relied on hearing looks by itself from now on
            if self._ended:
                return
            pause = min(pause * 2, _LONGEST_PAUSE)
            select.select([self._wake_in], [], [], pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            self._drain()
            if not self._ended:
                time.sleep(0.05)  # however often it is woken

    def _serve(self, link: Link, *, own_session: bool) -> None:
        link.add_notify_handler(lambda notice: self._on_notify(notice.channel, notice.pid, link))
        if own_session:
            with self._connections.watched(link):
                for channel in self._channels.values():
                    link.execute(f'LISTEN "{channel}"')
            self._listens = True
            self._ring_all_here()  # what was rung before cannot have been received
        else:
            self._connections.on_note(
                f"{self._connections.service} is behind a pooler that lends sessions by the transaction: "
                f"no notification arrives, so the queue is polled every {POLL_SECONDS:g} s"
            )
        rung: dict[str, float] = {}
        while True:
            left = self._ring_pending(link, rung)
            if self._ended and left is None:
                return
            socket = link.fileno()
            ready, _, _ = select.select([socket, self._wake_in], [], [], _ALIVE_SECONDS if left is None else left)
            if self._wake_in in ready:
                self._drain()
            if socket in ready:
                link.pgconn.consume_input()
                while (notice := link.pgconn.notifies()) is not None:
                    self._on_notify(notice.relname.decode(), notice.be_pid, link)
            elif not ready and left is None:
                with self._connections.watched(link):
                    link.execute("SELECT 1")  # a connection that broke silently is noticed here

    def _ring_pending(self, link: Link, rung: dict[str, float]) -> float | None:
        """Ring what may be rung now; seconds until the next may, None: nothing is left."""
        with self._rung:
            pending = set(self._pending)
        wait: float | None = None
        for bell in pending:
            ahead = 0.0 if self._ended else rung.get(bell, 0.0) + _LEAST_SECONDS[bell] - time.monotonic()
            if ahead > 0:
                wait = ahead if wait is None else min(wait, ahead)
                continue
            with self._rung:
                self._pending.discard(bell)
            rung[bell] = time.monotonic()
            try:
                with self._connections.watched(link):
                    link.execute("SELECT pg_notify(%s, '')", (self._channels[bell],))
            except psycopg.Error:
                with self._rung:
                    self._pending.add(bell)
                raise
        return wait

    def _on_notify(self, channel: str, by: int, link: Link) -> None:
        bell = self._bells.get(channel)
        if bell is not None and by != link.info.backend_pid:  # what we rang is known here
            self.ring_here(bell)

    def _ring_all_here(self) -> None:
        for bell in self._channels:
            self.ring_here(bell)

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._wake_in, 1024):
                pass
