"""The last step on the workbench: whom the workflow serves, draft or live, what a replay of history says, and back."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from console import saving
from console.api.operations import Call
from console.api.problems import ProblemError
from console.benches import Bench
from console.desk.differences import summary
from console.desk.drafts import for_all_tenants
from console.library import DRAFTED, LIVE, Library, Standing, differences
from console.replays import DIFFERS, NOT_COMPARED, SAME, JobDifference, Pair, Replayer, ReplayReport
from console.web.bench_access import benches_of, note
from console.web.rehearsals import LINE, at_work, preview_boxes, preview_settings
from core.errors import UsageError
from core.keys import SHARED_TENANT
from core.manifests import Limits
from runner.comparisons import Inspections
from runner.documents import ended_as
from runner.staging import box_limits

DAYS: Final = (1, 7, 30)
_MOST: Final = 500  # jobs of a replay that a browser follows
_AT_ONCE: Final = 2
_SECONDS: Final = 15.0  # of comparing, for one answer
_SHOWN: Final = 50
_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    tenant: str
    subject: str
    job_id: str
    result: str
    breaking: bool
    words: str


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """How far a replay is, and what it found so far."""

    id: str
    version: str
    since: int
    jobs: int
    ended: int
    compared: int
    counts: dict[str, int]
    breaking: int
    differences: list[DifferenceLine]
    done: bool


def facts(call: Call, bench: Bench) -> dict[str, Any]:
    """What is there of the workflow now."""
    library = Library(call.context.stack.store)
    standing = _standing(library, bench)
    manifest = bench.facts.manifest
    live = draft = None
    if standing is not None:
        is_live = standing.is_live and standing.unfinished is None
        live = library.load(standing, LIVE) if is_live else None
        draft = library.draft(standing)
    return {
        "standing": standing,
        "live": live,
        "draft": draft,
        "versions": library.versions(standing)[:30] if standing is not None else [],
        "changes": differences(live, draft)[:100] if live is not None and draft is not None else [],
        "is_shared": bench.owner == SHARED_TENANT,
        "tenants": _texts(manifest.get("tenants")) or ["*"],
        "subscribe": _texts(manifest.get("subscribe")) or _usual(manifest),
        "days": DAYS,
        "replay": None,
    }


def _usual(manifest: Mapping[str, Any]) -> list[str]:
    try:
        return _texts(for_all_tenants({**manifest, "name": manifest.get("name") or "workflow"})["subscribe"])
    except (AttributeError, TypeError, KeyError):
        return []


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _standing(library: Library, bench: Bench) -> Standing | None:
    return None if bench.facts.origin is None else library.at(bench.facts.origin.key)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def save(call: Call, bench: Bench, form: Mapping[str, str]) -> str:
    """Save the bench as a workflow; returns what to say."""
    live, stack = form.get("as") == "live", call.context.stack
    tenants, subscribe = _lines(form.get("tenants", "")), _lines(form.get("subscribe", ""))
    manifest = saving.for_senders(bench.facts.manifest, bench.owner, tenants, subscribe)
    note(call, bench, "workflow_save", live=live)
    saved = saving.save(stack, bench, manifest, benches_of(call).cases(bench), live=live)
    benches_of(call).change(bench, manifest=manifest, origin=saved.origin)
    return f"{saved.standing.name} is {'live' if live else 'saved as a draft'}: version {saved.version.id}"


def promote(call: Call, bench: Bench, form: Mapping[str, str]) -> str:
    """Make the draft, or a version that ran, the live one; returns what to say."""
    library = Library(call.context.stack.store)
    standing = _required(library, bench)
    which = form.get("version_id") or DRAFTED
    note(call, bench, "workflow_promote", version=which)
    before = saving.promote(call.context.stack, standing, which, form.get("live") or None)
    now = library.at(standing.key)
    if now is not None:
        benches_of(call).change(bench, origin=saving.origin_of(library, now, benches_of(call).cases(bench)))
    return f"{standing.name} is live" + (f"; {before} was before" if before else "")


def _required(library: Library, bench: Bench) -> Standing:
    standing = _standing(library, bench)
    if standing is None:
        raise UsageError("save the workflow first")
    return standing


def replay(call: Call, bench: Bench, form: Mapping[str, str]) -> ReplayProgress:
    """Take a replay of history with the draft some steps further: a few jobs, then a few comparisons."""
    stack, library = call.context.stack, Library(call.context.stack.store)
    standing = _required(library, bench)
    version = library.load(standing, DRAFTED)
    since = _since(form, stack.clock.now())
    replayer = Replayer(stack, standing, version, tenant=None, since=float(since))
    if replayer.lacking:
        raise UsageError(f"the draft needs {', '.join(replayer.lacking)}; put it into the bucket")
    if "since" not in form:
        note(call, bench, "replay", version=version.id, since=since)
    pairs = replayer.pairs(most=_MOST)
    seen = list[int]()
    done = replayer.feed(pairs, at_once=_AT_ONCE, stopped=lambda: True, seen=seen.append)
    report = _compared(call, replayer, pairs) if done and pairs else ReplayReport(replayer.replay, ())
    return ReplayProgress(
        id=replayer.replay.id,
        version=version.id,
        since=since,
        jobs=len(pairs),
        ended=seen[-1] if seen else 0,
        compared=len(report.jobs),
        counts={name: report.count(name) for name in (SAME, DIFFERS, NOT_COMPARED)},
        breaking=sum(one.breaking for one in report.jobs),
        differences=[_line(one) for one in report.differences[:_SHOWN]],
        done=done and report.is_whole,
    )


def _compared(call: Call, replayer: Replayer, pairs: list[Pair]) -> ReplayReport:
    """What differs, as far as it can be compared now: not at all while a preview of the viewer runs."""
    until, settings = time.monotonic() + _SECONDS, preview_settings(call.context)
    try:
        with (
            LINE.turn(at_work(call)),
            call.context.spool.scratch() as scratch,
            preview_boxes(settings, scratch) as sandbox,
        ):
            inspections = Inspections(sandbox.sandbox, box_limits(Limits(), settings), scratch / "inspections")
            return replayer.report(pairs, inspections, scratch, stopped=lambda: time.monotonic() > until)
    except ProblemError as problem:
        if "Retry-After" not in problem.headers:
            raise
        return ReplayReport(replayer.replay, (), is_whole=False)


def _since(form: Mapping[str, str], now: float) -> int:
    since, days = form.get("since", ""), form.get("days", "")
    if since.isdecimal() and len(since) < 12:
        return int(since)
    number = int(days) if days.isdecimal() and len(days) < 4 else DAYS[1]
    return int((now // _DAY + 1 - number) * _DAY)


def _line(one: JobDifference) -> DifferenceLine:
    words = [text for text, _ in summary(one.details)] if one.details is not None else [one.why]
    after = ended_as(one.again) if one.again is not None else ""
    before = ended_as(one.job)
    ends = f"{before} → {after}" if after and after != before else ""
    return DifferenceLine(
        tenant=one.job.tenant,
        subject=one.job.subject,
        job_id=one.job.job_id,
        result=one.result,
        breaking=one.breaking,
        words=", ".join(filter(None, [ends, *words])),
    )
