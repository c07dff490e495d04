"""What several commands share: the scope of a pause, following jobs until they end, and one action on several jobs."""

import argparse
import getpass
import sys
import time
from collections.abc import Callable, Iterable

from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import job_shape
from core.errors import AdeError, UsageError
from core.jobs import Job, State
from core.ports import QUARANTINE, JobTable


def add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scope",
        nargs="*",
        metavar="SCOPE",
        help="`all`, `tenant T` or `workflow T W`; without it: list what is paused",
    )


def read_scope(words: list[str]) -> tuple[str | None, str | None]:
    match words:
        case ["all"]:
            return None, None
        case ["tenant", tenant]:
            return tenant, None
        case ["workflow", tenant, workflow]:
            return tenant, workflow
    raise UsageError(f"{' '.join(words)!r} is not a scope; use `all`, `tenant T` or `workflow T W`")


def scope_words(tenant: str | None, workflow: str | None) -> str:
    if tenant is None:
        return "everything"
    if workflow == QUARANTINE:
        return f"tenant {tenant}, in quarantine"
    return f"tenant {tenant}" if workflow is None else f"workflow {workflow} of tenant {tenant}"


def person() -> str:
    """Who gives this command, for logs."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def confirmed(question: str, answer: str) -> bool:
    """Ask on the terminal; False if nobody is there, or says anything but `answer`."""
    if not sys.stdin.isatty():
        return False
    print(f"{question} Type {answer!r} to go on: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == answer


_POLL_SECONDS = 1.0


def follow(
    table: JobTable,
    job_ids: Iterable[str],
    *,
    seconds: float | None = None,
    seen: Callable[[Job], None],
    each: Callable[[Job], None] = lambda _: None,
) -> list[Job]:
    """Wait until every job has ended and its result.json is written, or waits for a person; returns the jobs.

    `seen` is called for each change of state, reason or progress, `each` for every read. After `seconds` the
    current jobs are returned. A job whose row is removed (also a placeholder that was replaced) is left out.
    """
    until = None if seconds is None else time.monotonic() + seconds
    wanted = list(dict.fromkeys(job_ids))
    known: dict[str, tuple[object, ...]] = {}
    while True:
        jobs = [job for job_id in wanted if (job := table.get(job_id)) is not None]
        for job in jobs:
            facts = (job.state, job.reason, job.cancel_requested_at, str(job.summary.get("progress")))
            if known.get(job.job_id) != facts:
                known[job.job_id] = facts
                seen(job)
            each(job)
        left = _POLL_SECONDS if until is None else min(_POLL_SECONDS, until - time.monotonic())
        if all(is_at_rest(job) for job in jobs) or left <= 0:
            return jobs
        table.wait(left)


def is_at_rest(job: Job) -> bool:
    """Whether nothing more will happen to a job unless a person does something, and all it has to say is written."""
    return (job.ended or job.state is State.REVIEW) and not job.unpublished


def add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", metavar="JOB", nargs="+")


def _new_state(job: Job) -> str:
    return f"{job.state}: {job.reason}"


def act(
    job_ids: Iterable[str], change: Callable[[str], Job], *, out: Printer, done: Callable[[Job], str] = _new_state
) -> int:
    """Run an action on every job; one that fails is reported and does not stop the others."""
    code, results = Exit.OK, list[dict[str, object]]()
    for job_id in job_ids:
        try:
            job = change(job_id)
        except AdeError as error:
            code = Exit.USAGE
            results.append({"job_id": job_id, "refused": str(error)})
            out.note(f"ade: {error}")
            continue
        results.append(job_shape(job))
        if not out.as_json:
            out.line(f"{job.job_id}  {done(job)}")
    if out.as_json:
        out.emit(results)
    return code
