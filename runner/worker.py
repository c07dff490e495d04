"""What a slot does with one message: admit, attempt, commit or give back, publish, acknowledge."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from core.errors import AdeError, StoreUnavailable
from core.jobs import Job, JobError, State, move, start
from core.ports import Clock, Delivery, JobTable, Message, Refused, WorkQueue
from core.retries import Retry, decide
from core.settings import Settings
from core.statuses import HELD_SECONDS, since
from core.verdicts import EXPLAINED, Fault, Verdict
from infra.logs import Log
from infra.presence import Presence
from runner.attempt import Attempts, Outcome
from runner.changes import mutate
from runner.leases import Beats, Held, fenced
from runner.publish import Publisher
from runner.results import job_folder
from runner.watch import Watch

REFUSED_SECONDS = 1.0
_FRESH_RECEIVES = 20  # well below what a deployment's queue allows before it calls a message dead


class Worker:
    """Handles deliveries; every method may run in several slots at once."""

    def __init__(
        self,
        *,
        table: JobTable,
        queue: WorkQueue,
        clock: Clock,
        settings: Settings,
        attempts: Attempts,
        publisher: Publisher,
        beats: Beats,
        presence: Presence,
        log: Log,
    ) -> None:
        self._table = table
        self._queue = queue
        self._clock = clock
        self._settings = settings
        self._attempts = attempts
        self._publisher = publisher
        self._beats = beats
        self._presence = presence
        self._log = log
        self._watch = Watch(settings.timings.watch_seconds)

    def handle(self, delivery: Delivery) -> Refused | None:
        """Do what the job of a message needs now. Refused: it may not start yet and was put back."""
        job = self._table.get(delivery.message.job_id)
        if job is not None and job.state is State.RUNNING:
            job = self.rescue(job)
        if job is None or job.state in (State.AWAITING, State.SCHEDULED, State.RUNNING):
            self._queue.ack(delivery.receipt)
            return None
        if job.state is not State.QUEUED:
            self.finish(job)
            self._queue.ack(delivery.receipt)
            return None
        admitted = self._admit(job)
        if isinstance(admitted, Refused):
            self._wait(job, delivery, admitted)
            return admitted
        if admitted is None:
            self._queue.hide(delivery.receipt, 0.0)
            return None
        self._work(admitted, delivery)
        return None

    def put_back(self, delivery: Delivery) -> None:
        """Show a message again in a moment, however often that takes: an old one is replaced by a fresh one in time."""
        seconds = REFUSED_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries
        if delivery.receives < _FRESH_RECEIVES:
            self._queue.hide(delivery.receipt, seconds)
            return
        self._queue.send(delivery.message, delay=seconds)
        self._queue.ack(delivery.receipt)

    def rescue(self, job: Job) -> Job | None:
        """Take a job from a runner that lost it; the job as it is now, whoever moved it."""
        lease, now = job.lease, self._clock.now()
        dead = lease is not None and not self._presence.alive(lease.owner)
        if job.state is not State.RUNNING or not (dead or self._watch.silent(job, now)):
            return job
        owner = lease.owner if lease else "nobody"
        said = "died" if dead else "was silent past its lease"
        outcome = Outcome(verdict=Verdict.RUNNER_LOST, message=f"runner {owner} {said}", sandbox=job.sandbox)
        moved = mutate(self._table, job.job_id, lambda j: self._after(j, outcome) if j.rev == job.rev else None)
        if moved is None:
            return self._table.get(job.job_id)
        self._log.warning("job_rescued", job_id=job.job_id, owner=owner, dead=dead, state=str(moved.state))
        self._follow(moved, None)
        return moved

    def finish(self, job: Job) -> Job | None:
        """What an end still needs, whoever comes by: a dead letter where the fault was ours, then its publication."""
        if job.state is State.FAILED and job.unpublished and job.error is not None and job.error.fault == Fault.OURS:
            self._queue.bury(_message(job), job.error.message)
        return self._publisher.finish(job)

    def _admit(self, job: Job) -> Job | Refused | None:
        started = start(
            job, owner=self._presence.owner, now=self._clock.now(), lease_seconds=self._settings.lease_seconds
        )
        return self._table.admit(job, started, self._settings.caps)

    def _wait(self, job: Job, delivery: Delivery, refused: Refused) -> None:
        held = job.announced or self._clock.now() - since(job) >= HELD_SECONDS
        if job.reason != refused.reason or job.announced != held:
            told = self._table.replace(job, replace(job, reason=refused.reason, announced=held))
            if told is not None and held:
                self._publisher.statuses.announce(told)
        self.put_back(delivery)

    def _work(self, job: Job, delivery: Delivery) -> None:
        held = self._beats.hold(job, delivery.receipt)
        log = self._log.bind(job_id=job.job_id, attempt=job.attempts_total)
        log.info("job_started", tenant=job.tenant, workflow=job.workflow)
        self._announce(job)
        try:
            outcome = self._attempts.run(job, killed=lambda: held.lost(self._clock), on_event=lambda e: _note(held, e))
        finally:
            self._beats.let_go(held)
        if held.killed is not None and outcome.verdict is not Verdict.OK:
            outcome = replace(outcome, verdict=held.killed)
        moved = self._commit(held, lambda j: self._after(j, outcome))
        if moved is None:
            log.warning("lease_lost", verdict=str(outcome.verdict))
            return
        said = outcome.detail or outcome.message
        log.info("attempt_ended", verdict=str(outcome.verdict), state=str(moved.state), message=said)
        self._follow(moved, delivery.receipt)

    def _announce(self, job: Job) -> None:
        """Tell the sender where an announced job is; a status is not worth an attempt."""
        if job.announced:
            try:
                self._publisher.statuses.announce(job)
            except (AdeError, OSError) as error:
                self._log.warning("status_not_written", job_id=job.job_id, error=type(error).__name__)

    def _commit(self, held: Held, change: Callable[[Job], Job]) -> Job | None:
        """Write the row that this process wrote last; where somebody else did since, by what the row says now."""
        written = self._table.replace(held.job, change(held.job))
        return written or mutate(self._table, held.job.job_id, fenced(held.fence, change))

    def _after(self, job: Job, outcome: Outcome) -> Job:
        """The row after an attempt: the commit of a success, an end, or back to the queue."""
        now, verdict = self._clock.now(), outcome.verdict
        if job.cancel_requested_at is not None and verdict in (Verdict.OK, Verdict.RELEASED, Verdict.RUNNER_LOST):
            verdict = Verdict.CANCELLED
        summary = {k: v for k, v in job.summary.items() if k != "progress"} | outcome.summary
        facts: dict[str, Any] = {"summary": summary, "sandbox": outcome.sandbox or job.sandbox}
        if verdict is Verdict.OK:
            return move(job, State.PUBLISHING, now=now, files=outcome.files, **facts)
        message = outcome.message or f"ended with verdict {verdict}"
        error = JobError(verdict=verdict, message=message, where=outcome.where)
        decision = decide(verdict, attempt=job.attempt, policy=self._settings.retry_policy, jitter=random.random())  # noqa: S311
        if isinstance(decision, Retry):
            attempt = job.attempt - (verdict is Verdict.RELEASED)
            announced = job.announced or decision.delay >= HELD_SECONDS
            return move(
                job, State.QUEUED, now=now, reason=f"to be tried again: {message}", error=error, attempt=attempt,
                due_at=now + decision.delay, announced=announced, **facts,
            )  # fmt: skip
        reason = "superseded: its input was replaced or removed" if decision.state is State.SKIPPED else ""
        files = tuple(f for f in outcome.files if f.name == "logs.txt" or verdict in EXPLAINED)
        return move(job, decision.state, now=now, reason=reason, error=error, files=files, **facts)

    def _follow(self, job: Job, receipt: str | None) -> None:
        """Carry out what the row now says. A crash on any line here is mended by the janitor."""
        if job.state is State.QUEUED:
            delay = max(0.0, (job.due_at or 0.0) - self._clock.now())
            if receipt is None or not self._queue.hide(receipt, delay):
                self._queue.send(_message(job), delay=delay)
            sent = self._table.replace(job, replace(job, enqueued_at=self._clock.now()))
            self._announce(sent or job)
            return
        try:
            published = self.finish(job)
        except (StoreUnavailable, OSError) as error:
            self._log.warning("publish_failed", job_id=job.job_id, error=type(error).__name__)
            if receipt is not None:
                self._queue.hide(receipt, self._settings.retry_backoff_seconds)
            return
        if published is not None and published.ended:
            self._log.info("job_ended", job_id=job.job_id, state=str(published.state), outputs=job_folder(job))
        if receipt is not None:
            self._queue.ack(receipt)


def _message(job: Job) -> Message:
    return Message(job_id=job.job_id, tenant=job.tenant, priority=job.priority)


def _note(held: Held, event: dict[str, Any]) -> None:
    if event.get("event") == "progress":
        held.progress = {k: event.get(k) for k in ("pass", "done", "total")}
