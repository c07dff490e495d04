"""What needs a person, as one list: the most urgent first, each with its next step.

A matter is named by what it is, not by one case of it, and carries when the newest case happened. Whoever takes care of
it resolves it up to then; a later case brings it back. Pure functions; the facade reads what they work on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from console.job_facts import plural, span
from console.senders import SenderHistory
from core.jobs import Job
from core.ports import DeadLetter, QueueStats, Resolution
from core.verdicts import Fault

NOW, SOON, LATER = 0, 1, 2  # how urgent
STUCK_SECONDS = 900.0
_WAITS_SECONDS = 3600.0  # before somebody should know that a job lacks something
_REVIEW_SOON_SECONDS = 86400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Matter:
    """Something that needs a person."""

    what: str
    kind: str
    urgency: int
    happened: float  # when its newest case did
    text: str
    step: str  # what to do, as a link says it
    link: str
    tenant: str = ""
    workflow: str = ""
    count: int = 1

    @property
    def order(self) -> tuple[float, ...]:
        return (self.urgency, _KINDS.index(self.kind), -self.happened)


_KINDS = ("stuck", "dead", "failures", "missing", "review", "errors", "drift", "waiting")


def unresolved(matters: Iterable[Matter], resolutions: Sequence[Resolution]) -> list[Matter]:
    """Those that nobody took care of since they last happened, the most urgent first."""
    until = {one.what: one.until for one in resolutions}
    return sorted(
        (one for one in matters if one.happened > until.get(one.what, float("-inf"))), key=lambda one: one.order
    )


def failures(jobs: Iterable[Job]) -> list[Matter]:
    """Jobs that failed, by sender and cause."""
    groups: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        if job.error is not None:
            groups.setdefault((job.tenant, job.workflow, str(job.error.verdict)), []).append(job)
    matters = []
    for (tenant, workflow, verdict), group in groups.items():
        newest = max(group, key=_ended)
        fault = newest.error.fault if newest.error is not None else ""
        whose = {Fault.OURS: "a fault of ade-drop or its machines", Fault.CONFIG: "the workflow is at fault"}
        about = whose.get(Fault(fault), "")
        one = len(group) == 1
        matters.append(
            Matter(
                what=f"failures/{tenant}/{workflow}/{verdict}",
                kind="failures",
                urgency=NOW if about else SOON,
                happened=_ended(newest),
                text=f"{_files(group)} failed: {verdict.replace('_', ' ')}" + (f"; {about}" if about else ""),
                step="See why" if one else "See them",
                link=f"/jobs/{newest.job_id}"
                if one
                else _link("/jobs", tenant=tenant, workflow=workflow, verdict=verdict),
                tenant=tenant,
                workflow=workflow,
                count=len(group),
            )
        )
    return matters


def reviews(jobs: Iterable[Job], now: float) -> list[Matter]:
    """Jobs that ask a person, by sender."""
    matters = []
    for (tenant, workflow), group in _by_sender(jobs).items():
        due = min((job.due_at for job in group if job.due_at is not None), default=None)
        soon = due is not None and due - now < _REVIEW_SOON_SECONDS
        until = f", until {span(due - now)} from now" if soon and due is not None else ""
        matters.append(
            Matter(
                what=f"review/{tenant}/{workflow}",
                kind="review",
                urgency=NOW if soon else SOON,
                happened=max(job.updated_at for job in group),
                text=f"{_files(group)} {'waits' if len(group) == 1 else 'wait'} for an answer{until}",
                step="Answer",
                link=_link("/review", job=min(group, key=lambda job: job.created_at).job_id),
                tenant=tenant,
                workflow=workflow,
                count=len(group),
            )
        )
    return matters


def incomplete(jobs: Iterable[Job], now: float) -> list[Matter]:
    """Expected drops that have not come, and jobs that lack something for long."""
    missing = [job for job in jobs if job.params.get("expected")]
    matters = [
        Matter(
            what=f"missing/{job.tenant}/{job.workflow}/{job.subject}",
            kind="missing",
            urgency=NOW,
            happened=job.created_at,
            text=f"nothing has come by {job.params['expected']}",
            step="See the sender",
            link=sender_link(job.tenant, job.workflow),
            tenant=job.tenant,
            workflow=job.workflow,
        )
        for job in missing
    ]
    waiting = [job for job in jobs if not job.params.get("expected") and now - job.created_at > _WAITS_SECONDS]
    for (tenant, workflow), group in _by_sender(waiting).items():
        newest = max(group, key=lambda job: job.created_at)
        matters.append(
            Matter(
                what=f"waiting/{tenant}/{workflow}",
                kind="waiting",
                urgency=LATER,
                happened=newest.created_at,
                text=f"{_files(group)} cannot start: {newest.reason or 'something is missing'}",
                step="See what is missing",
                link=f"/jobs/{newest.job_id}"
                if len(group) == 1
                else _link("/jobs", tenant=tenant, workflow=workflow, state="AWAITING"),
                tenant=tenant,
                workflow=workflow,
                count=len(group),
            )
        )
    return matters


def of_senders(senders: Iterable[SenderHistory], now: float, expected: Iterable[Job]) -> list[Matter]:
    """Senders whose rows get worse, whose files changed, and who are late by their own rhythm."""
    # Whoever misses a deadline is on the list already.
    known = {(job.tenant, job.workflow) for job in expected if job.params.get("expected")}
    matters = []
    for one in senders:
        name = f"{one.tenant}/{one.workflow}"
        if one.is_bad and one.rate is not None:
            before = f", {one.rate_before:.1%} before" if one.rate_before is not None else ""
            text = f"{one.rate:.1%} of rows have errors{before}"
            matters.append(_of_sender(one, f"errors/{name}", "errors", SOON, one.last_at, text, "See what is wrong"))
        if one.has_drifted:
            text = "the last files differ from those before"
            matters.append(_of_sender(one, f"drift/{name}", "drift", LATER, one.last_at, text, "See what changed"))
        if one.is_late(now) and one.next_at is not None and (one.tenant, one.workflow) not in known:
            text = f"no file for {span(now - one.last_at)}; one came every {span(one.rhythm or 0.0)}"
            matters.append(_of_sender(one, f"late/{name}", "missing", SOON, one.next_at, text, "See the sender"))
    return matters


def _of_sender(  # noqa: PLR0917 - read as a table above
    one: SenderHistory, what: str, kind: str, urgency: int, happened: float, text: str, step: str
) -> Matter:
    return Matter(
        what=what,
        kind=kind,
        urgency=urgency,
        happened=happened,
        text=text,
        step=step,
        link=sender_link(one.tenant, one.workflow),
        tenant=one.tenant,
        workflow=one.workflow,
    )


def stuck(jobs: Sequence[Job], queue: QueueStats | None, now: float, *, paused: bool) -> list[Matter]:
    """Work that nobody does: jobs that the janitor should have moved, and a queue that nobody takes from."""
    matters = []
    if jobs:
        first = jobs[0]
        matters.append(
            Matter(
                what="stuck",
                kind="stuck",
                urgency=NOW,
                happened=max(job.updated_at for job in jobs),
                text=f"stuck in {first.state}: {_files(jobs)}; no janitor moves them on",
                step="See the oldest",
                link=f"/jobs/{first.job_id}",
                count=len(jobs),
            )
        )
    waited = None if queue is None or paused else queue.oldest_seconds
    if waited is not None and waited > STUCK_SECONDS:
        matters.append(
            Matter(
                what="queue",
                kind="stuck",
                urgency=NOW,
                happened=(now - waited) // STUCK_SECONDS * STUCK_SECONDS,
                text=f"the oldest message has waited for {span(waited)}: too few runners, or none",
                step="See what waits",
                link=_link("/jobs", state="QUEUED"),
            )
        )
    return matters


def buried(letters: Sequence[DeadLetter]) -> list[Matter]:
    """Dead letters: jobs that used up their attempts for a fault of ade-drop."""
    if not letters:
        return []
    newest = max(letters, key=lambda letter: letter.at)
    return [
        Matter(
            what="dead",
            kind="dead",
            urgency=NOW,
            happened=newest.at,
            text=f"{plural(len(letters), 'dead letter')}, the newest because: {newest.reason}",
            step="See the newest job",
            link=f"/jobs/{newest.message.job_id}",
            count=len(letters),
        )
    ]


def sender_link(tenant: str, workflow: str) -> str:
    return _link("/sender", tenant=tenant, workflow=workflow)


def _link(path: str, **query: str) -> str:
    return f"{path}?{urlencode(query)}"


def _by_sender(jobs: Iterable[Job]) -> dict[tuple[str, str], list[Job]]:
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.tenant, job.workflow), []).append(job)
    return groups


def _ended(job: Job) -> float:
    return job.ended_at if job.ended_at is not None else job.updated_at


def _files(jobs: Sequence[Job]) -> str:
    """The file of one job, or how many there are."""
    if len(jobs) == 1:
        return (jobs[0].subject or jobs[0].job_id).rpartition("/")[2]
    return f"{len(jobs)} files"
