"""What the janitor must do for a job that stops moving, and when. Pure: the janitor carries it out."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from core.jobs import Job, State, is_as_added, since
from core.notices import pending

DAY_SECONDS = 86_400.0
_EXPIRED_SECONDS = 3600.0
_SENT_ANYWAY_SECONDS = 6 * 3600.0
_RECHECK_SECONDS = DAY_SECONDS  # between checks of a result that stays because no newer one has come
_SHORTEST_DEFERRAL, LONGEST_DEFERRAL = 10.0, 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    lease_seconds: float = 30.0
    retention_seconds: float = 48 * 3600.0
    latest_retention_seconds: float = 0.0  # how long the newest success of a line outlives that, at most
    longest_retention_seconds: float = math.inf  # the most that a manifest may ask for
    resend_seconds: float = 900.0  # a message that nobody acted on for this long is checked, and sent again if lost
    # How long to watch a lease that has expired by our clock: a runner that renews it in that time is alive and only
    # has another clock. 0: all runners share our clock.
    watch_seconds: float = 0.0
    # Above 0: whoever adds a job sends its message at once and does not note that; most jobs start within this time.
    unnoted_seconds: float = 0.0
    grace_seconds: float = 2.0  # how long whoever moved a job has to do the next step itself


def retention(job: Job, timings: Timings) -> float:
    """How long the outputs of a job are kept after its end: as its manifest asks, else as the settings say."""
    if job.keep_days is None:
        return timings.retention_seconds
    return min(job.keep_days * DAY_SECONDS, timings.longest_retention_seconds)


class Chore(StrEnum):
    ENQUEUE = "enqueue"  # it is due
    RESEND = "resend"  # recorded, but its message was never sent, or is lost
    RESCUE = "rescue"  # its lease expired
    PUBLISH = "publish"  # committed or ended, but not everything is written
    EXPIRE = "expire"  # its retention is over
    FORGET = "forget"  # expired long ago: the row goes too, unless its input is still in the inbox
    CLOSE_REVIEW = "close_review"  # nobody decided in time
    NOTIFY = "notify"  # a notice is to be delivered


def resting(job: Job) -> bool:
    """Whether a job only has to expire and be forgotten, which nobody waits for."""
    return job.state is State.EXPIRED or (job.ended and not job.unpublished and not job.notices)


def wake_at(job: Job, timings: Timings) -> float | None:
    """When the janitor should check a job; None: only an event or a command will move it."""
    at = _due_at(job, timings)
    return at if at is None or job.deferred_until is None else max(at, job.deferred_until)


def defer(job: Job, now: float, timings: Timings) -> Job:
    """Postpone a job whose chore could not be done, by as long as it is overdue, within bounds."""
    late = now - (_due_at(job, timings) or now)
    return replace(job, deferred_until=now + min(max(late, _SHORTEST_DEFERRAL), LONGEST_DEFERRAL))


def stays_until(job: Job, newest: Job, now: float, timings: Timings) -> float | None:
    """When to check again a success whose retention is over; None: it expires now.

    The newest good result of a line stays until a newer one has been there for a whole retention, and no longer than
    `latest_retention_seconds`: Friday's file is there on Monday. `newest`: the newest success of its line.
    """
    most = _ended_at(job) + timings.latest_retention_seconds
    until = most if newest.job_id == job.job_id else min(most, _ended_at(newest) + timings.retention_seconds)
    return min(until, now + _RECHECK_SECONDS) if now < until else None


def _ended_at(job: Job) -> float:
    return job.updated_at if job.ended_at is None else job.ended_at


def may_be_sent(job: Job, timings: Timings) -> bool:
    """Whether the message of a QUEUED job was probably sent, noted or not."""
    return job.enqueued_at is not None or (timings.unnoted_seconds > 0 and is_as_added(job))


def sent_anyway(job: Job, now: float) -> bool:
    """Whether a QUEUED job's message is sent again although the queue seems to have it.

    A queue that can only count its messages may mistake a duplicate of another job's for it. So it is sent again
    after 6, 12, 24 hours and so on: few duplicates, however long a pause lasts.
    """
    queued, checked = since(job), job.enqueued_at or now
    step = _SENT_ANYWAY_SECONDS
    while queued + step <= checked:
        step *= 2
    return queued + step <= now


def _due_at(job: Job, timings: Timings) -> float | None:
    match job.state:
        case State.AWAITING:
            return pending(job)
        case State.EXPIRED:
            # An expired row stays as long as its input, however short the retention: no need to check again at once.
            rest = max(timings.retention_seconds, _EXPIRED_SECONDS)
            return job.updated_at + (timings.grace_seconds if job.unpublished else rest)
        case State.SCHEDULED:
            return job.due_at if job.due_at is not None else job.updated_at
        case State.QUEUED:
            if job.enqueued_at is not None:
                return job.enqueued_at + timings.resend_seconds
            return job.updated_at + (timings.unnoted_seconds if may_be_sent(job, timings) else timings.grace_seconds)
        case State.RUNNING:
            return job.lease.expires if job.lease else job.updated_at
        case State.PUBLISHING:
            return job.updated_at + timings.lease_seconds
        case State.REVIEW:
            if job.unpublished:
                return job.updated_at + timings.grace_seconds
            return min((at for at in (job.due_at, pending(job)) if at is not None), default=None)
        case _:
            if job.unpublished:
                # A planner that skips a job publishes nothing itself; a runner that ends one is already publishing.
                skipped = job.state is State.SKIPPED
                return job.updated_at + (0.0 if skipped else timings.grace_seconds)
            # What its result.json promised holds, whatever the settings are by now.
            expires = _ended_at(job) + max(retention(job, timings), job.retention_seconds or 0.0)
            due = pending(job)
            return expires if due is None else min(due, expires)


def chore(job: Job, now: float, timings: Timings) -> Chore | None:
    """What is due for a job now; None: nothing, it has moved on since it was listed."""
    at = wake_at(job, timings)
    if at is None or at > now:
        return None
    due = pending(job)
    if due is not None and due <= now and (job.ended or job.state in (State.REVIEW, State.AWAITING)):
        return Chore.NOTIFY
    match job.state:
        case State.AWAITING:
            return None
        case State.SCHEDULED:
            return Chore.ENQUEUE
        case State.QUEUED:
            return Chore.RESEND
        case State.RUNNING:
            return Chore.RESCUE
        case State.PUBLISHING:
            return Chore.PUBLISH
        case State.REVIEW if not job.unpublished:
            return Chore.CLOSE_REVIEW
        case State.EXPIRED if not job.unpublished:
            return Chore.FORGET
        case _:
            return Chore.PUBLISH if job.unpublished else Chore.EXPIRE
