"""The one place that enqueues a job, and the one loop that reads, decides and writes its row.

In infra because both handlers (new jobs) and the runner (retries, rescues, operator commands) enqueue, and neither may
import the other. `Lanes` runs the independent calls of a batch in parallel, since they mostly wait for a network.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from core.jobs import Job, State
from core.ports import AddsWithMessage, Clock, JobTable, Message, SharesDatabase, WorkQueue

_TRIES = 50
T = TypeVar("T")
R = TypeVar("R")


class Lanes:
    """Up to `most` at a time. A single lane works in the caller's own thread, one after the other."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="lane") if most > 1 else None

    def each(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """What `act` returns for each; if any raises, the first error, once all have ended."""
        if self._pool is None or len(things) < 2:
            return [act(thing) for thing in things]
        running = [self._pool.submit(act, thing) for thing in things]
        wait(running)
        return [one.result() for one in running]


def mutate(
    table: JobTable, job_id: str, change: Callable[[Job], Job | None], *, known: Job | None = None
) -> Job | None:
    """Apply a pure change to a job's newest record; None if the change declines or the job is gone.

    `change` sees the record that will be overwritten, so its conditions on state and fence hold at the write. `known`:
    the record as the caller last read or wrote it, which saves a read if it is still current.
    """
    job = known
    for _ in range(_TRIES):
        job = job or table.get(job_id)
        if job is None or (after := change(job)) is None:
            return None
        if (written := table.replace(job, after)) is not None:
            return written
        job = None
    return None


def add(table: JobTable, queue: WorkQueue, clock: Clock, job: Job, *, delay: float = 0.0) -> tuple[Job, bool]:
    """Insert a job. Where table and queue are one database, its message is sent with it, and the row says so."""
    one = _one_database(table, queue)
    if one is None or job.state is not State.QUEUED or job.enqueued_at:
        return table.add(job)
    return one.add_sent(replace(job, enqueued_at=clock.now()), delay)


def without_message(table: JobTable, queue: WorkQueue, cursor: str | None = None) -> tuple[tuple[Job, ...], str | None]:
    """QUEUED jobs whose message was sent and is gone, and where to go on, None: at the end.

    Only where one statement tells, since table and queue are one database. Elsewhere none: a message that nobody
    acted on for `Timings.resend_seconds` is checked there.
    """
    one = _one_database(table, queue)
    return ((), None) if one is None else one.without_message(cursor)


def _one_database(table: JobTable, queue: WorkQueue) -> AddsWithMessage | None:
    """The table, if the queue is in the same database."""
    if isinstance(table, AddsWithMessage) and isinstance(queue, SharesDatabase) and table.database == queue.database:
        return table
    return None


def is_current(table: JobTable, job: Job) -> bool:
    """Whether a job's row is still as the caller read or wrote it."""
    now = table.get(job.job_id)
    return now is not None and now.rev == job.rev


def enqueue(table: JobTable, queue: WorkQueue, clock: Clock, job: Job, *, delay: float = 0.0) -> Job:
    """Send a job's message, then note it in the row; returns the row.

    A crash in between sends the message twice, which is harmless; a row that changed in the meantime needs no note.
    """
    queue.send(Message.of(job), delay=delay)
    return note_sent(table, job, clock.now()) or job


def enqueue_all(
    table: JobTable,
    queue: WorkQueue,
    clock: Clock,
    jobs: Sequence[tuple[Job, float]],
    *,
    lanes: Lanes,
    unnoted: Collection[str] = (),
) -> None:
    """The same for several, each with its delay, in as few calls as the services allow.

    `unnoted`: jobs that were added just now (`core.chores.Timings.unnoted_seconds`).
    """
    queue.send_all([(Message.of(job), delay) for job, delay in jobs])
    now = clock.now()
    lanes.each(lambda job: note_sent(table, job, now), [job for job, _ in jobs if job.job_id not in unnoted])


def note_sent(table: JobTable, job: Job, now: float) -> Job | None:
    """Note that a job's message is in the queue; None if the row has changed."""
    return table.replace(job, replace(job, enqueued_at=now))
