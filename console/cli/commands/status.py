"""`ade status JOB`: everything about one job."""

import argparse

from console.cli import wire
from console.cli.explain import accounted
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import counts, job_shape, progress, size, span, when
from core.jobs import RETRIABLE, Job, State
from core.keys import job_folder


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        job = wire.make_control(stack).find(args.job)
        now = stack.clock.now()
        has_artifact = not out.as_json and any(f.name == "artifact.json" for f in job.files)
        gone, readings = accounted(stack.store, f"{job_folder(job)}artifact.json") if has_artifact else ([], [])
    if out.as_json:
        out.emit(job_shape(job))
        return Exit.OK
    out.heading(job.job_id)
    out.pairs(_facts(job, now))
    if job.history:
        out.line()
        begin = job.history[0][1]
        out.table(("STATE", "SINCE START", "AT"), [(state, span(at - begin), when(at)) for state, at in job.history])
    if job.files:
        out.line()
        out.table(("FILE", "SIZE", "SHA-256"), [(f.name, size(f.size), f.sha256) for f in job.files])
    for title, lines in (("what was left out", gone), ("choices between readings", readings)):
        if lines:
            out.line()
            out.heading(title)
            for line in lines:
                out.line(f"  {line}")
    if next_step := _next_step(job):
        out.note(f"\n{next_step}")
    return Exit.OK


def _facts(job: Job, now: float) -> list[tuple[str, str]]:
    lease = job.lease
    held = f"{lease.owner} until {when(lease.expires)}" if lease else ""
    error = job.error
    where = ", ".join(f"{k} {v}" for k, v in error.where.items()) if error else ""
    level = f"{job.sandbox.get('driver')}, {job.sandbox.get('level')}" if job.sandbox else ""
    return [
        ("state", str(job.state)),
        ("outcome", str(job.outcome or "")),
        ("reason", job.reason),
        ("waiting for", ", ".join(job.waiting_for)),
        ("error", f"{error.message} ({error.verdict}; at fault: {error.fault})" if error else ""),
        ("where", where),
        ("tenant", job.tenant),
        ("workflow", job.workflow),
        ("subject", job.subject),
        ("params", ", ".join(f"{k}={v}" for k, v in job.params.items())),
        ("manifest", job.manifest.key if job.manifest else ""),
        ("inputs", ", ".join(i.ref.key for i in job.inputs)),
        ("age", span(now - job.created_at)),
        ("due", when(job.due_at)),
        ("attempt", f"{job.attempt} (in all {job.attempts_total})" if job.attempts_total else ""),
        ("lease", held),
        ("progress", progress(job)),
        ("cancel", f"requested at {when(job.cancel_requested_at)}" if _cancelling(job) else ""),
        ("result", counts(job)),
        ("sandbox", level),
        ("decision", job.decision.key if job.decision else ""),
        ("kept until", when(job.expires_at)),
        ("outputs", job_folder(job) if job.ended or job.state is State.REVIEW else ""),
    ]


def _cancelling(job: Job) -> bool:
    return job.cancel_requested_at is not None and not job.ended


def _next_step(job: Job) -> str:
    if job.state is State.SUCCEEDED:
        return f"`ade outputs {job.job_id} --to DIR` downloads its files"
    if job.state is State.REVIEW:
        return f"`ade review {job.job_id}` walks through its questions"
    if job.state in RETRIABLE:
        return f"`ade logs {job.job_id}` shows what its rules printed, `ade retry {job.job_id}` runs it again"
    return ""
