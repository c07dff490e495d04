"""Handles one message in a slot: admit the job, run an attempt, commit or give back, publish, acknowledge.

Theory of operation. A slot calls `serve`, which never raises. If `handle` fails, a probe decides if it is an outage
(runner/surroundings.py). If so, the message is shown again later and nothing counts. If not, the failure counts against
this job, in this process only: a row that no program can read fails in every process, and each reports it after so many
failures. Receives never count: a job that waits at a cap is received a thousand times without anything being wrong. A
queue service does count receives before it declares a message dead, so the message is replaced by a fresh one well
before that. The result of an attempt that could not be written while the table was down is kept, and written when the
message comes back or the table does.
"""

import random
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from core.chores import retention
from core.errors import AdeError, RecordNewer, StoreUnavailable
from core.fairness import longest_run
from core.jobs import (
    CorrectionOf,
    Job,
    JobError,
    PinChanges,
    Retry,
    Review,
    State,
    ask,
    decide,
    load_job,
    move,
    since,
    start,
)
from core.keys import decision_place, job_folder
from core.manifests import ReviewTerms
from core.ports import Clock, Delivery, JobTable, Message, Refused, WorkQueue
from core.settings import Settings
from core.verdicts import FAULTS, Fault, Verdict
from infra.local.presence import Presence
from infra.logs import Log
from infra.queueing import enqueue, mutate, note_sent
from infra.statuses import HELD_SECONDS
from infra.telemetry import Telemetry, job_fields
from runner.attempt import AttemptEnd, Attempts
from runner.bundles import InHand
from runner.engine.contract import EXPLAINED, REVIEW_FILES, Event, OutputName, PassProgress, check_published
from runner.failures import is_reported
from runner.leases import Beats, Held, LeaseWatch, fenced
from runner.publish import BUNDLE_SECONDS, Publisher, count_moved
from runner.surroundings import Surroundings, lacks_room

REFUSED_SECONDS = 1.0
NEWER_SECONDS = 60.0  # how soon the message of a job is shown again that only a newer program can run
_FRESH_RECEIVES = 20  # well below the queue's limit, after which a message is dead
_POISON_FAILURES = 10  # after so many failures without an outage, a message goes to the dead letters
_MOST_REMEMBERED = 10_000
_MOST_FORGIVEN = 20  # attempts that the host may have ended, on evidence that a job might be able to bring about
_LONGEST_WAIT_SECONDS = 60.0  # between two tries of such a message

# An attempt that ends so after a cancel was requested is cancelled.
_CANCELLABLE = frozenset({Verdict.OK, Verdict.NEEDS_REVIEW, Verdict.RELEASED, Verdict.RUNNER_LOST})

# What a box may report where the system refused it something.
_SYSTEM_ERRORS = frozenset(
    {Verdict.ENGINE_FAILED, Verdict.INPUT_UNREADABLE, Verdict.RULE_ERROR, Verdict.BAD_OUTPUT, Verdict.BOX_FAILED}
)

# Attempts that ended so show no failure in their trace.
_FINE = frozenset({Verdict.OK, Verdict.NEEDS_REVIEW, Verdict.CANCELLED, Verdict.RELEASED})

# Waits until a leased job may have a box, or is killed: gets the job's longest run so far, and what returns the verdict
# that killed it.
Ready = Callable[[float, Callable[[], Verdict | None]], None]


class _Facts(PinChanges, total=False):
    """What an attempt found out, whatever its end."""

    summary: dict[str, Any]
    sandbox: dict[str, Any]
    mends: CorrectionOf | None


@dataclass(frozen=True, slots=True)
class Unwritten:
    """The result of an attempt whose row is not written yet."""

    held: Held
    outcome: AttemptEnd
    delivery: Delivery
    began: float
    turn: threading.Lock = field(default_factory=lambda: threading.Lock())  # noqa: PLW0108 - of who writes it now


@dataclass(kw_only=True, eq=False, repr=False)
class Worker:
    """Handles deliveries; every method may run in several slots at once."""

    table: JobTable
    queue: WorkQueue
    clock: Clock
    settings: Settings
    attempts: Attempts
    publisher: Publisher
    beats: Beats
    presence: Presence
    surroundings: Surroundings
    log: Log
    draw: Callable[[], float] = random.random
    telemetry: Telemetry = field(default_factory=Telemetry)

    def __post_init__(self) -> None:
        self._watch = LeaseWatch(self.settings.timings.watch_seconds)
        self._lock = threading.Lock()
        self._failures: dict[str, int] = {}
        self._unwritten: dict[str, Unwritten] = {}
        self.left_alone: set[str] = set()  # jobs whose rows a newer program wrote

    def serve(self, delivery: Delivery, ready: Ready = lambda *_: None) -> Refused | None:
        """Call `handle` and deal with its failures. Never raises."""
        try:
            refused = self.handle(delivery, ready)
        except Exception as error:  # noqa: BLE001 - one message that fails must not block the others
            self._broken(delivery, error)
            return None
        if refused is None:
            with self._lock:
                self._failures.pop(delivery.message.job_id, None)
        return refused

    def handle(self, delivery: Delivery, ready: Ready = lambda *_: None) -> Refused | None:
        """Do what the job of a message needs now. Returns Refused if it may not start yet and was put back.

        `ready` is called once the job has its lease, and returns when it may have a box.
        """
        try:
            refused = self._handle(delivery, ready)
        except RecordNewer as error:
            self.left_alone.add(delivery.message.job_id)
            self.log.warning("job_left_alone", job_id=delivery.message.job_id, error=str(error))
            self.put_back(delivery, NEWER_SECONDS * (0.8 + 0.4 * self.draw()))
            return None
        self.left_alone.discard(delivery.message.job_id)
        return refused

    def _handle(self, delivery: Delivery, ready: Ready) -> Refused | None:
        with self._lock:
            unwritten = self._unwritten.get(delivery.message.job_id)
        if unwritten is not None:
            if not self._write_result(replace(unwritten, delivery=delivery)):
                self.put_back(delivery)
            return None
        job_id, record = delivery.message.job_id, delivery.record
        job = self.table.get(job_id) if record is None else load_job(record, job_id)
        if job is not None and job.state is State.RUNNING:
            job = self.rescue(job)
        if job is None or job.state in (State.AWAITING, State.SCHEDULED, State.RUNNING):
            self.queue.ack(delivery.receipt)
            return None
        if job.state is not State.QUEUED:
            self.finish(job)
            self.queue.ack(delivery.receipt)
            return None
        admitted = self._admit(job)
        if isinstance(admitted, Refused):
            self._wait(job, delivery, admitted)
            return admitted
        if admitted is None:
            self.put_back(delivery, 0.0)
            return None
        self._work(admitted, delivery, ready)
        return None

    def put_back(self, delivery: Delivery, seconds: float | None = None) -> bool:
        """Show a message again after `seconds`, or in a moment; one that was received often is replaced by a fresh one.

        False: its receipt is stale, so another runner has it or will get it.
        """
        if seconds is None:
            seconds = REFUSED_SECONDS * (0.8 + 0.4 * self.draw())
        if delivery.receives < _FRESH_RECEIVES:
            return self.queue.hide(delivery.receipt, seconds)
        self.queue.send(delivery.message, delay=seconds)
        self.queue.ack(delivery.receipt)
        return True

    def write_results(self) -> None:
        """Write results of attempts that could not be written before, and delete what was staged for others."""
        with self._lock:
            unwritten = list(self._unwritten.values())
        for one in unwritten:
            self._write_result(one)
        self.publisher.tidy(BUNDLE_SECONDS)

    def rescue(self, job: Job) -> Job | None:
        """Take a job from a lost runner; returns its current row, whoever moved it."""
        lease, now = job.lease, self.clock.now()
        dead = lease is not None and not self.presence.alive(lease.owner)
        if job.state is not State.RUNNING or not (dead or self._watch.silent(job, now, self.clock.steady())):
            return job
        with self._lock:
            unwritten = self._unwritten.get(job.job_id)
        if unwritten is not None and unwritten.held.is_of(job):
            self._write_result(unwritten)
            return self.table.get(job.job_id)
        # This runner owns it, but no slot runs it: its start was written and the answer lost.
        astray = lease is not None and lease.owner == self.presence.owner and not self.beats.holds(job)
        owner = lease.owner if lease else "nobody"
        what = "died" if dead else "did not renew its lease"
        message = f"runner {owner} {what}"
        outcome = AttemptEnd(verdict=Verdict.RUNNER_LOST, message=message, sandbox=job.sandbox, blameless=astray)
        moved = mutate(self.table, job.job_id, lambda j: self._after(j, outcome) if j.rev == job.rev else None)
        if moved is None:
            return self.table.get(job.job_id)
        self.log.warning("job_rescued", **job_fields(job), owner=owner, dead=dead, state=str(moved.state))
        self.telemetry.meters.add("ade.rescues")
        count_moved(self.telemetry, moved)
        self._follow(moved, None)
        return moved

    def finish(self, job: Job, in_hand: InHand | None = None) -> Job | None:
        """Complete what an ended job still needs: its publication, then a dead letter if the fault was ours."""
        error = job.error
        if job.state is not State.FAILED or not job.unpublished or error is None or error.fault != Fault.OURS:
            return self.publisher.finish(job, in_hand=in_hand)
        return self.publisher.finish(job, on_written=lambda: self._bury(Message.of(job), error.message))

    def _bury(self, message: Message, reason: str) -> None:
        self.queue.bury(message, reason)
        self.telemetry.meters.add("ade.dead.letters")

    def _admit(self, job: Job) -> Job | Refused | None:
        started = start(
            job,
            owner=self.presence.owner,
            now=self.clock.now(),
            lease_seconds=self.settings.lease_seconds,
            retention_seconds=retention(job, self.settings.timings),
        )
        if not started.trace and (root := self.telemetry.root("job", start=job.created_at)):
            # Recorded by a process that makes no traces.
            started = replace(started, trace=root.trace)
            root.end(self.telemetry.now(), job_id=job.job_id)
        return self.table.admit(job, started, self.settings.caps)

    def _wait(self, job: Job, delivery: Delivery, refused: Refused) -> None:
        self.telemetry.meters.add("ade.waits", scope=refused.scope)
        held = job.announced or self.clock.now() - since(job) >= HELD_SECONDS
        if job.reason != refused.reason or job.announced != held:
            sent = job.enqueued_at or self.clock.now()  # its message is here, and is put back
            updated = self.table.replace(job, replace(job, reason=refused.reason, announced=held, enqueued_at=sent))
            if updated is not None and held:
                self.publisher.statuses.announce(updated)
        self.put_back(delivery)

    def _work(self, job: Job, delivery: Delivery, ready: Ready) -> None:
        began = self.telemetry.now()
        held = self.beats.hold(job, delivery.receipt)
        log = self.log.bind(**job_fields(job), attempt=job.attempts_total)
        log.info("job_started", tenant=job.tenant, workflow=job.workflow)
        self._announce(job)
        self.telemetry.meters.add("ade.running", 1)
        try:
            ready(longest_run(job), lambda: held.lost(self.clock))
            outcome = self.attempts.run(job, killed=lambda: held.lost(self.clock), on_event=lambda e: _note(held, e))
        except Exception as error:  # noqa: BLE001 - our fault: tried again, then reported
            outcome = AttemptEnd(verdict=Verdict.BOX_FAILED, message=f"the runner failed: {type(error).__name__}")
        finally:
            self.beats.let_go(held)
            self.telemetry.meters.add("ade.running", -1)
        if held.killed is not None and outcome.verdict is not Verdict.OK:
            outcome = replace(outcome, verdict=held.killed)
        self.surroundings.room.note(outcome.used)
        if _may_lack_room(outcome) and self.surroundings.to_blame():
            message = "there was no room left on the disk of this runner"
            outcome = replace(outcome, verdict=Verdict.STORE_FAILED, message=message, files=(), suspicion="")
        if outcome.suspicion:
            log.error("engine_fault_suspected", what=outcome.suspicion, rules=bool(job.config))
        spared = outcome.blameless or outcome.full or (outcome.by_host and _forgivable(job))
        outcome = replace(outcome, blameless=self._blameless(held, outcome.verdict) or spared)
        unwritten = Unwritten(held, outcome, delivery, began)
        with self._lock:
            self._unwritten[job.job_id] = unwritten
        self._write_result(unwritten)

    def _blameless(self, held: Held, verdict: Verdict) -> bool:
        """Whether an outage ended an attempt: any other job would have failed too."""
        if verdict is Verdict.LEASE_LOST:
            return held.missed or (held.late and _forgivable(held.job))
        box = verdict is Verdict.BOX_FAILED
        return (box or verdict is Verdict.STORE_FAILED) and self.surroundings.to_blame(box=box)

    def _write_result(self, unwritten: Unwritten) -> bool:
        """Write the result of an attempt, unless another thread does or has done so; returns whether it was tried."""
        if not unwritten.turn.acquire(blocking=False):
            return False
        try:
            with self._lock:
                known = self._unwritten.get(unwritten.held.job.job_id)
            if known is None or known.held is not unwritten.held:
                return False
            self._write(unwritten)
        finally:
            unwritten.turn.release()
        return True

    def _write(self, unwritten: Unwritten) -> None:
        """Write the result of an attempt and carry out what follows; keep it if the table is down."""
        held, outcome = unwritten.held, unwritten.outcome
        job_id = held.job.job_id
        log = self.log.bind(**job_fields(held.job), attempt=held.job.attempts_total)
        is_down = False
        try:
            moved = self._commit(held, lambda j: self._after(j, outcome))
        except (StoreUnavailable, OSError, sqlite3.Error):
            is_down = True
            raise
        finally:
            if not is_down:
                with self._lock:
                    self._unwritten.pop(job_id, None)
        _record_attempt(
            self.telemetry, held.job, outcome, delivery=unwritten.delivery, began=unwritten.began, moved=moved
        )
        if moved is None:
            log.warning("lease_lost", verdict=str(outcome.verdict))
            mutate(self.table, job_id, lambda j: _forgiven(j, held.fence))
            return
        message = outcome.detail or outcome.message
        fault = str(moved.error.fault) if moved.error else str(Fault.NOBODY)
        log.info("attempt_ended", verdict=str(outcome.verdict), fault=fault, state=str(moved.state), message=message)
        self._follow(moved, unwritten.delivery, outcome.in_hand)

    def _broken(self, delivery: Delivery, error: Exception) -> None:
        """Show a message that failed again, or move it to the dead letters if it alone fails every time."""
        job_id, cause = delivery.message.job_id, f"{type(error).__name__}: {error}"
        failures, full = 0, lacks_room(error)
        if not self.surroundings.to_blame() and not full:
            with self._lock:
                if len(self._failures) > _MOST_REMEMBERED:
                    self._failures.clear()  # most of them were handled by others long ago
                failures = self._failures[job_id] = self._failures.get(job_id, 0) + 1
        self.log.error("job_not_handled", job_id=job_id, failures=failures, error=cause)
        try:
            if failures >= _POISON_FAILURES:
                self._bury(delivery.message, f"could not be handled {failures} times; last error: {cause}")
                self.queue.ack(delivery.receipt)
                with self._lock:
                    self._failures.pop(job_id, None)
                    self._unwritten.pop(job_id, None)
            else:
                seconds = _LONGEST_WAIT_SECONDS if full else min(_LONGEST_WAIT_SECONDS, REFUSED_SECONDS * 2.0**failures)
                self.put_back(delivery, seconds * (0.5 + self.draw()))
        except Exception as failed:  # noqa: BLE001 - it is redelivered when its visibility ends
            self.log.warning("release_failed", job_id=job_id, error=type(failed).__name__)

    def _announce(self, job: Job) -> None:
        """Update status.json of an announced job; a failed status must not cost an attempt."""
        if job.announced:
            try:
                self.publisher.statuses.announce(job)
            except (AdeError, OSError) as error:
                self.log.warning("status_not_written", job_id=job.job_id, error=type(error).__name__)

    def _commit(self, held: Held, change: Callable[[Job], Job]) -> Job | None:
        """Write the row from this process's last version, or from the current one if another process wrote since."""
        return mutate(self.table, held.job.job_id, fenced(held, change), known=held.job)

    def _after(self, job: Job, outcome: AttemptEnd) -> Job:
        """The row after an attempt: the commit of a success, a question, an end, or back to the queue."""
        verdict = outcome.verdict
        if job.cancel_requested_at is not None and verdict in _CANCELLABLE:
            verdict = Verdict.CANCELLED
        summary = {k: v for k, v in job.summary.items() if k != "progress"} | outcome.summary
        facts: _Facts = {"summary": summary, "sandbox": outcome.sandbox or job.sandbox, "mends": outcome.mends}
        if outcome.pins is not None:
            facts["memories"] = outcome.pins.memories if verdict is Verdict.OK else outcome.pins.pinned
        if verdict is Verdict.OK:
            return self._succeeded(job, outcome, facts)
        if verdict is Verdict.NEEDS_REVIEW:
            return self._asked(job, outcome, facts)
        return self._ended_or_retried(job, outcome, verdict, facts)

    def _succeeded(self, job: Job, outcome: AttemptEnd, facts: _Facts) -> Job:
        """The row after a success, with the decision that was applied: its files are committed."""
        applied = outcome.pins.decision if outcome.pins is not None else None
        facts |= {
            "decision": applied,
            "decided_at": outcome.decision_before_at if applied is not None else job.decided_at,
        }
        check_published((file.name for file in outcome.files), succeeded=True)
        return move(job, State.PUBLISHING, now=self.clock.now(), files=outcome.files, **facts)

    def _ended_or_retried(self, job: Job, outcome: AttemptEnd, verdict: Verdict, facts: _Facts) -> Job:
        """The row after an attempt that failed: back in the queue if the retry policy says so, else ended."""
        now = self.clock.now()
        message = outcome.message or f"ended with verdict {verdict}"
        error = JobError(verdict=verdict, message=message, where=outcome.where)
        policy = self.settings.retry_policy
        spared = job.attempts_total - job.attempt if outcome.full or outcome.by_host else 0
        decision = decide(
            verdict, attempt=job.attempt, policy=policy, jitter=self.draw(), blameless=outcome.blameless, spared=spared
        )
        if isinstance(decision, Retry):
            attempt = job.attempt - (not decision.counts)
            announced = job.announced or decision.delay >= HELD_SECONDS
            return move(
                job, State.QUEUED, now=now, reason=f"to be tried again: {message}", error=error, attempt=attempt,
                due_at=now + decision.delay, announced=announced, **facts,
            )  # fmt: skip
        reason = "superseded: its input was replaced or removed" if decision.state is State.SKIPPED else ""
        published = {OutputName.LOG} | ({OutputName.REPORT} if is_reported(verdict) else set())
        files = tuple(f for f in outcome.files if f.name in published or verdict in EXPLAINED)
        return move(job, decision.state, now=now, reason=reason, error=error, files=files, **facts)

    def _asked(self, job: Job, outcome: AttemptEnd, facts: _Facts) -> Job:
        """The row after an attempt that needs a person: it waits, unless a decision came while it ran."""
        now, before = self.clock.now(), outcome.decision_before
        if job.decision is not None and (before is None or before.digest != job.decision.digest):
            reason = f"decided by {job.decision.key} while it ran"
            return move(job, State.QUEUED, now=now, reason=reason, attempt=0, files=(), **facts)
        terms, pins = outcome.terms or ReviewTerms(), outcome.pins
        review = Review(questions=outcome.questions, on_expiry=terms.on_expiry)
        asked = replace(job, decision=pins.decision if pins is not None else None)
        files = tuple(f for f in outcome.files if f.name in REVIEW_FILES)  # no name that a result may have
        return ask(asked, now=now, review=review, expires=terms.seconds, key=decision_place(job), files=files, **facts)

    def _follow(self, job: Job, delivery: Delivery | None, in_hand: InHand | None = None) -> None:
        """Carry out what the row now says. The janitor repairs a crash on any line here."""
        if job.state is State.QUEUED:
            delay = max(0.0, (job.due_at or 0.0) - self.clock.now())
            if delivery is not None and self.put_back(delivery, delay):
                job = note_sent(self.table, job, self.clock.now()) or job
            else:
                job = enqueue(self.table, self.queue, self.clock, job, delay=delay)
            self._announce(job)
            return
        published = self.finish(job, in_hand)
        if published is not None and published.ended:
            self.log.info("job_ended", **job_fields(job), state=str(published.state), outputs=job_folder(job))
        if delivery is not None:
            self.queue.ack(delivery.receipt)


def _forgivable(job: Job) -> bool:
    return job.attempts_total - job.attempt < _MOST_FORGIVEN


def _forgiven(job: Job, fence: int) -> Job | None:
    """Give the attempt back to a job that was taken for lost: its runner is alive, so the job did not kill it.

    Only while it waits for its next attempt: a row that another runner holds is never changed from here.
    """
    lost = job.error is not None and job.error.verdict is Verdict.RUNNER_LOST
    if job.state is not State.QUEUED or job.fence != fence or not lost or job.attempt < 1:
        return None
    return replace(job, attempt=job.attempt - 1)


def _may_lack_room(outcome: AttemptEnd) -> bool:
    """Whether a box reports an error of the system, such as a full disk; the room is measured too, for it may lie."""
    claim = f"{outcome.message} {outcome.where.get('exception', '')}"
    return outcome.verdict in _SYSTEM_ERRORS and "OSError" in claim


def _note(held: Held, event: Event) -> None:
    if isinstance(event, PassProgress):
        held.progress = {"pass": event.step, "done": event.done, "total": event.total}


def _record_attempt(
    telemetry: Telemetry, job: Job, outcome: AttemptEnd, *, delivery: Delivery, began: float, moved: Job | None
) -> None:
    """An attempt is over. `moved`: the row that followed; None if the lease was lost."""
    now, meters, fault = telemetry.now(), telemetry.meters, FAULTS[outcome.verdict]
    meters.add("ade.attempts", verdict=str(outcome.verdict), fault=str(fault))
    meters.observe("ade.attempt", now - began)
    meters.observe("ade.queue.wait", began - delivery.sent_at)
    for name, seconds in outcome.passes.items():
        meters.observe("ade.pass", seconds, **{"pass": name})
    if outcome.start_seconds:
        meters.observe("ade.box.start", outcome.start_seconds)
    if moved is None:
        meters.add("ade.leases.lost")
    else:
        count_moved(telemetry, moved)
    if telemetry.traces:
        _trace(telemetry, job, outcome, delivery=delivery, times=(began, now), state=moved.state if moved else None)


def _trace(
    telemetry: Telemetry,
    job: Job,
    outcome: AttemptEnd,
    *,
    delivery: Delivery,
    times: tuple[float, float],
    state: State | None,
) -> None:
    began, now = times
    sent = min(delivery.sent_at, began)  # by the queue's clock
    telemetry.span("queue", job.trace, start=sent, end=began, kind="consumer", receives=delivery.receives)
    owner = job.lease.owner if job.lease else None
    attempt = telemetry.span(
        "attempt", job.trace, start=began, end=now, job_id=job.job_id, tenant=job.tenant, workflow=job.workflow,
        attempt=job.attempts_total, fence=job.fence, runner=owner, verdict=str(outcome.verdict),
        state=str(state) if state else None, failed=None if outcome.verdict in _FINE else str(outcome.verdict),
    )  # fmt: skip
    boxes = [phase for phase in outcome.phases if phase.name == "box"]
    for phase in outcome.phases:
        inside = telemetry.span(phase.name, attempt, start=phase.start, end=phase.end)
        if phase not in boxes[-1:]:  # the measurements are those of the last one
            continue
        # Passes 3 to 5 take turns, chunk by chunk; they are shown one after the other.
        at = phase.start
        for name, seconds in {"box start": outcome.start_seconds, **_named(outcome)}.items():
            telemetry.span(name, inside, start=at, end=at + seconds)
            at += seconds


def _named(outcome: AttemptEnd) -> dict[str, float]:
    return {f"pass {name}": seconds for name, seconds in outcome.passes.items()}
