"""Verifies the outputs of a box, in a box of their own, before anything is published.

Rules run in the engine's own process, so a hostile one can write anything into the outputs. It must not be able to
publish an artifact that names another job or input, an artifact of another shape, a workbook that holds more than
values, counts that do not match the workbook, or books that do not balance. The runner holds credentials, so it opens
none of those files: a process that never ran a rule reads them (engine/verifying), under limits and within the job's
deadline, and returns one line. It is the first process of the job's own box if nothing in the box could touch it, and
otherwise runs in a second box. A job without rules needs neither: its engine verifies its own outputs. The report is
written there too, from the verified data.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.ports import BoxLimits, BoxOrder, BoxReport, Sandbox, Verification
from core.verdicts import EXPLAINED, Verdict

ARTIFACT, WORKBOOK, REPORT = "artifact.json", "normalized.xlsx", "report.html"
PROFILE = "profile.json"
DESCRIPTION, REJECTS = "rejects.jsonl", "rejects.xlsx"  # the box describes the one, the verification writes the other
REVIEW, PAGE = "review.json", "review.html"
REPORT_MB = 16
LEAST_SECONDS = 10.0  # for outputs that were finished at the last moment
_COUNTS = ("tables", "rows_in", "rows_out", "sheets_out", "columns_mapped", "columns_unmapped", "rows_with_errors")
_LEFT_OUT = ("total", "group", "note", "repeated_header", "hidden", "rejected", "skipped_table", "outside")
_FINDINGS = ("error", "warning", "info")
_INPUT = ("role", "name", "sha256", "size")
_MOST = 2**53
_PASSES = ("structure", "mapping", "read", "transform", "validate", "write")
_MOST_SECONDS = 86400.0
_MAX_MESSAGE = 300
_OURS = frozenset({Verdict.CANCELLED, Verdict.LEASE_LOST, Verdict.RELEASED, Verdict.BOX_FAILED})
_LIMITS = frozenset({Verdict.CPU, Verdict.MEMORY, Verdict.WALL_CLOCK})


def run_verified(
    sandbox: Sandbox,
    job: BoxOrder,
    *,
    limits: BoxLimits,
    killed: Callable[[], Verdict | None],
    on_event: Callable[[dict[str, Any]], None] = lambda _: None,
) -> BoxReport:
    """Run a job and verify its outputs, in the same box if that is safe; `limits` are those of the verification."""
    wanted = Verification(
        job=_order(job.job),
        outputs=_made(job),
        limits=replace(limits, file_mb=_file_mb(job)),
        least_seconds=LEAST_SECONDS,
    )
    report = sandbox.run(replace(job, verification=wanted), killed=killed, on_event=on_event)
    return verified(report, job, sandbox, limits=limits, killed=killed)


def verified(
    report: BoxReport,
    job: BoxOrder,
    sandbox: Sandbox,
    *,
    limits: BoxLimits,
    killed: Callable[[], Verdict | None],
) -> BoxReport:
    """The report of a job with its verified outputs, counts and page, or the reason why they were refused."""
    if report.verdict is not Verdict.OK and report.verdict not in EXPLAINED:
        return replace(report, claim={}, outputs={})
    names, page = _expected(report.verdict)
    taken = {name: report.outputs[name] for name in names if name in report.outputs}
    seen = report.verification
    if seen is None:
        taken = _moved(taken, job.scratch / "verify" / "in")
        seen = _second_box(report, job, taken, sandbox, limits=limits, killed=killed)
    spent = replace(
        report,
        wall_seconds=report.wall_seconds + seen.wall_seconds,
        cpu_seconds=report.cpu_seconds + seen.cpu_seconds,
        peak_mb=max(report.peak_mb, seen.peak_mb),
        claim={},
        outputs={},
        verification=None,
    )
    if seen.verdict is Verdict.OK and page in seen.outputs:
        claim = asked(seen.claim) if page == PAGE else counts(seen.claim)
        made = {name: seen.outputs[name] for name in (page, PROFILE, REJECTS) if name in seen.outputs}
        taken.pop(DESCRIPTION, None)
        return replace(spent, claim=claim, outputs=taken | made, passes=passes(seen.claim))
    refusal = _refusal(seen)
    suspicion = seen.suspicion
    if job.trusted and refusal["verdict"] is Verdict.BAD_OUTPUT and not suspicion:
        suspicion = f"outputs of the engine alone were refused: {refusal['message']}"
    return replace(spent, **refusal, where={}, suspicion=suspicion)


def _second_box(
    report: BoxReport,
    job: BoxOrder,
    taken: dict[str, Path],
    sandbox: Sandbox,
    *,
    limits: BoxLimits,
    killed: Callable[[], Verdict | None],
) -> BoxReport:
    scratch, verify = job.scratch / "verify", _order(job.job)
    order = BoxOrder(
        label=job.label,
        tenant=job.tenant,
        scratch=scratch,
        job=verify
        | {
            "inputs": [{"name": name, "path": f"in/{name}"} for name in taken],
            "verify": {
                **verify["verify"],
                "audit": report.verdict in EXPLAINED,
                "review": report.verdict is Verdict.NEEDS_REVIEW,
            },
        },
        outputs=_made(job),
        limits=replace(
            limits,
            file_mb=_file_mb(job),
            wall_seconds=max(LEAST_SECONDS, job.limits.wall_seconds - report.wall_seconds),
        ),
        trusted=True,
        grouped=False,  # limits on address space suffice; a cgroup would cost as much as the work
    )
    return sandbox.run(order, killed=killed)


def _made(job: BoxOrder) -> tuple[str, ...]:
    """What the verification writes."""
    return (REPORT, PAGE, PROFILE, REJECTS) if DESCRIPTION in job.outputs else (REPORT, PAGE, PROFILE)


def _file_mb(job: BoxOrder) -> int:
    return max(REPORT_MB, job.limits.file_mb) if DESCRIPTION in job.outputs else REPORT_MB


def _expected(verdict: Verdict) -> tuple[tuple[str, ...], str]:
    """The outputs of a job that ended so, and the page that is made of them."""
    if verdict is Verdict.NEEDS_REVIEW:
        return (REVIEW,), PAGE
    audit = (ARTIFACT, DESCRIPTION)
    return (audit if verdict in EXPLAINED else (*audit, WORKBOOK)), REPORT


def asked(claim: dict[str, Any]) -> dict[str, Any]:
    """How many questions a review has."""
    summary = claim.get("summary")
    number = summary.get("questions") if isinstance(summary, dict) else None
    return {
        "questions": number if isinstance(number, int) and not isinstance(number, bool) and 0 < number < _MOST else 1
    }


def counts(claim: dict[str, Any]) -> dict[str, Any]:
    """Known counts as whole numbers, and nothing else: no text from a box reaches the table."""
    summary = claim.get("summary")
    summary = summary if isinstance(summary, dict) else {}

    def whole(value: object) -> int:
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else 0

    def known(name: str) -> dict[str, Any]:
        value = summary.get(name)
        return value if isinstance(value, dict) else {}

    findings, left_out = known("findings"), known("left_out")
    drift = whole(summary.get("drift"))
    return (
        ({"drift": drift} if drift else {})
        | {name: whole(summary.get(name)) for name in _COUNTS}
        | {
            "left_out": {name: n for name in _LEFT_OUT if (n := whole(left_out.get(name)))},
            "findings": {name: whole(findings.get(name)) for name in _FINDINGS},
        }
    )


def passes(claim: dict[str, Any]) -> dict[str, float]:
    """How long each known pass took, in seconds."""
    summary = claim.get("summary")
    times = summary.get("passes") if isinstance(summary, dict) else None
    if not isinstance(times, dict):
        return {}
    return {
        name: float(seconds)
        for name in _PASSES
        if isinstance(seconds := times.get(name), int | float) and 0 <= seconds < _MOST_SECONDS
    }


def _moved(outputs: dict[str, Path], folder: Path) -> dict[str, Path]:
    """Move the outputs of a dead box to the inputs of the next; no other process has them open."""
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    return {name: path.rename(folder / name) for name, path in outputs.items()}


def _order(job: dict[str, Any]) -> dict[str, Any]:
    """What the runner knows about the job; the outputs are checked against it."""
    manifest = job.get("manifest") or {}
    formats = {field.get("number_format") for field in manifest.get("fields") or ()}
    return {
        "order": 1,
        "job": job["job"],
        "params": job["params"],
        "config": {"digest": job["config"]["digest"]},
        "verify": {
            "inputs": [{k: given[k] for k in _INPUT} for given in job["inputs"]],
            "title": str(manifest.get("name", "")),
            "formats": sorted(f for f in formats if f),
            "decision": _named(job.get("decision")),
            "memories": [{k: str(one[k]) for k in ("key", "version", "sha256")} for one in job.get("memories") or ()],
            "why": _why(manifest),
        },
    }


def _why(manifest: dict[str, Any]) -> str:
    """Why a job of a manifest may ask a person; "never": it may not."""
    why = str((manifest.get("mapping") or {}).get("review", "never"))
    drifts = (manifest.get("drift") or {}).get("columns") == "review"
    return "drift" if why == "never" and drifts else why


def _named(decision: dict[str, Any] | None) -> dict[str, str] | None:
    return None if decision is None else {k: str(decision[k]) for k in ("key", "version", "sha256", "by")}


def _refusal(seen: BoxReport) -> dict[str, Any]:
    """The verdict on outputs that failed verification: never our fault if the bytes caused it."""
    message = seen.message[:_MAX_MESSAGE]
    if seen.verdict in _OURS:
        return {"verdict": seen.verdict, "message": message}
    if seen.verdict in _LIMITS:
        return {"verdict": seen.verdict, "message": f"while its outputs were verified: {message}"}
    if seen.suspicion:
        return {"verdict": Verdict.BAD_OUTPUT, "message": "its outputs broke the verification"}
    if seen.verdict is Verdict.BAD_OUTPUT:
        return {"verdict": Verdict.BAD_OUTPUT, "message": message}
    return {"verdict": Verdict.BAD_OUTPUT, "message": f"its outputs could not be verified: {seen.verdict}"}
