"""The spans and numbers of an attempt and of a job's end, made once they are known."""

from core.jobs import Job, State
from core.ports import Delivery
from core.verdicts import FAULTS, Verdict
from infra.telemetry import Telemetry
from runner.attempt import Outcome

_FINE = frozenset({Verdict.OK, Verdict.NEEDS_REVIEW, Verdict.CANCELLED, Verdict.RELEASED})


def attempt_ended(
    telemetry: Telemetry, job: Job, outcome: Outcome, *, delivery: Delivery, began: float, moved: Job | None
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
        job_moved(telemetry, moved)
    if telemetry.traces:
        _trace(telemetry, job, outcome, delivery=delivery, times=(began, now), state=moved.state if moved else None)


def job_moved(telemetry: Telemetry, job: Job) -> None:
    """Count a job that this process has just ended, or made wait for a person."""
    if job.state is State.REVIEW:
        telemetry.meters.add("ade.reviews")
    elif job.ended and job.state is not State.EXPIRED:
        verdict = str(job.error.verdict) if job.error else "ok"
        fault = str(job.error.fault) if job.error else "nobody"
        telemetry.meters.add("ade.jobs.ended", state=str(job.state), verdict=verdict, fault=fault)


def published(telemetry: Telemetry, job: Job, *, began: float) -> None:
    """The outputs of a job, its questions or its end are in the bucket."""
    now = telemetry.now()
    telemetry.meters.observe("ade.publish", now - began)
    telemetry.span("publish", job.trace, start=began, end=now, job_id=job.job_id, state=str(job.state))


def _trace(
    telemetry: Telemetry,
    job: Job,
    outcome: Outcome,
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


def _named(outcome: Outcome) -> dict[str, float]:
    return {f"pass {name}": seconds for name, seconds in outcome.passes.items()}
