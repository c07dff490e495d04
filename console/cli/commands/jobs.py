"""`ade jobs`: list jobs, newest first."""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import job_shape, newer_shape, note, span
from core.jobs import Job, Outcome, State
from core.ports import JobQuery, JobTable, NewerRow

_PAGE = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        metavar="STATE",
        action="append",
        default=[],
        type=_state,
        help=f"only jobs in this state; repeatable: {', '.join(State)}",
    )
    parser.add_argument("--outcome", choices=[*Outcome], help="only results of this outcome")
    parser.add_argument("--tenant", metavar="T", help="only jobs of this tenant")
    parser.add_argument("--workflow", metavar="W", help="only jobs of this workflow")
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="at most N jobs (default: 50)")
    parser.add_argument("--all", action="store_true", help="no limit")


def run(args: argparse.Namespace, out: Printer) -> int:
    query = JobQuery(
        states=frozenset(args.state) or None,
        outcome=Outcome(args.outcome) if args.outcome else None,
        tenant=args.tenant,
        workflow=args.workflow,
    )
    with wire.opened() as stack:
        found = rows(stack.table, query)
        jobs = found if args.all else islice(found, max(0, args.limit))
        if out.as_json:
            _stream(jobs)
            return Exit.OK
        now = stack.clock.now()
        shown = list(jobs)
        more = not args.all and next(found, None) is not None
    if not shown:
        out.note("no jobs" + (" match" if query != JobQuery() else "; add one with `ade drop`"))
        return Exit.OK
    columns = ("JOB", "STATE", "TENANT", "WORKFLOW", "SUBJECT", "AGE", "NOTE")
    out.table(columns, [row(job, now) for job in shown])
    if more:
        out.note(f"showing the newest {len(shown)}; use --limit or --all for more")
    return Exit.OK


def row(job: Job | NewerRow, now: float) -> tuple[str, ...]:
    if isinstance(job, NewerRow):
        age = span(now - job.created_at)
        return (job.job_id, job.state, job.tenant, job.workflow, "", age, f"newer than this program: {job.why}")
    return (
        job.job_id,
        str(job.state),
        job.tenant,
        job.workflow,
        job.subject,
        span(now - job.created_at),
        note(job),
    )


def every(table: JobTable, query: JobQuery) -> Iterator[Job]:
    """All jobs of a query, page by page."""
    return (row for row in rows(table, query) if isinstance(row, Job))


def rows(table: JobTable, query: JobQuery) -> Iterator[Job | NewerRow]:
    """All jobs of a query, and the rows among them that a newer program wrote."""
    cursor: str | None = None
    while True:
        page = table.page(query, limit=_PAGE, cursor=cursor)
        found: list[Job | NewerRow] = [*page.jobs, *page.newer]
        yield from sorted(found, key=lambda row: (row.created_at, row.job_id), reverse=True)
        cursor = page.cursor
        if cursor is None:
            return


def _state(word: str) -> State:
    try:
        return State(word.upper())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not a state; use one of {', '.join(State)}") from None


def _stream(jobs: Iterator[Job | NewerRow]) -> None:
    """A JSON array, one job per line, however long."""
    sys.stdout.write("[")
    for n, job in enumerate(jobs):
        shown = newer_shape(job) if isinstance(job, NewerRow) else job_shape(job)
        sys.stdout.write((",\n" if n else "\n") + json.dumps(shown, ensure_ascii=False))
    sys.stdout.write("\n]\n")
