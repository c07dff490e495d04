"""`ade queue`: counts, dead letters, and messages from a file."""

import argparse
import json
import sys
from pathlib import Path
from typing import TextIO

from console.cli import wire
from console.cli.acts import act
from console.cli.commands.sweep import print_refusals
from console.cli.guard import Exit
from console.cli.output import Printer, Progress
from console.job_facts import span, when
from core.errors import UsageError
from core.jobs import RETRIABLE, State
from core.keys import CONFIGS, INBOX
from core.ports import Message
from handlers.intake import Intake
from handlers.planning import report_dict
from infra.wiring import Stack

_BATCH = 500


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="stats | import | dead | redrive")
    what.add_parser("stats", help="how many messages are ready, in flight or dead")
    imports = what.add_parser("import", help='messages from a file: {"job_id": …} or {"key": "inbox/…"} per line')
    imports.add_argument("file", metavar="FILE.jsonl", help="`-` reads standard input")
    dead = what.add_parser("dead", help="jobs that used up their attempts without a fault of their own")
    dead.add_argument("--limit", metavar="N", type=int, default=100)
    redrive = what.add_parser("redrive", help="retry dead letters and remove them from the list")
    redrive.add_argument("jobs", metavar="JOB", nargs="*", help="default: all of them")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        match args.what:
            case "stats":
                return _stats(stack, out)
            case "import":
                return _import(stack, args.file, out)
            case "dead":
                return _dead(stack, args.limit, out)
            case _:
                return _redrive(stack, args.jobs, out)


def _stats(stack: Stack, out: Printer) -> int:
    stats = stack.queue.stats()
    counts = stack.table.counts()
    working = wire.runners(stack)
    if out.as_json:
        out.emit(
            {
                "ready": stats.ready,
                "in_flight": stats.in_flight,
                "delayed": stats.delayed,
                "dead": stats.dead,
                "oldest_seconds": stats.oldest_seconds,
                "states": {str(s): n for s, n in sorted(counts.items())},
                "runners": list(working),
            }
        )
        return Exit.OK
    oldest = "" if stats.oldest_seconds is None else f" (the oldest for {span(stats.oldest_seconds)})"
    out.pairs(
        [
            ("ready", f"{stats.ready}{oldest}"),
            ("in flight", str(stats.in_flight)),
            ("delayed", str(stats.delayed)),
            ("dead", str(stats.dead)),
            ("jobs", ", ".join(f"{n} {s}" for s, n in sorted(counts.items())) or "none"),
            ("runners", ", ".join(working) or "none on this machine"),
        ]
    )
    return Exit.OK


def _dead(stack: Stack, limit: int, out: Printer) -> int:
    letters = stack.queue.dead(limit=limit)
    if out.as_json:
        out.emit(
            [{"job_id": d.message.job_id, "tenant": d.message.tenant, "reason": d.reason, "at": d.at} for d in letters]
        )
    elif letters:
        rows = [(d.message.job_id, d.message.tenant, when(d.at), d.reason) for d in letters]
        out.table(("JOB", "TENANT", "AT", "REASON"), rows)
    else:
        out.note("no dead letters")
    return Exit.OK


def _redrive(stack: Stack, job_ids: list[str], out: Printer) -> int:
    """Retry the FAILED jobs of dead letters. A letter whose job has changed since is dropped."""
    wanted = job_ids or [d.message.job_id for d in stack.queue.dead(limit=1_000_000)]
    again = []
    for job_id in wanted:
        job = stack.table.get(job_id)
        if job_ids or (job is not None and job.state in RETRIABLE):
            again.append(job_id)
        else:
            stack.queue.redrive(job_id)
    code = act(again, wire.again(stack, "retry"), done=lambda job: str(job.state), out=out)
    out.note(f"{len(again)} jobs sent again, {len(wanted) - len(again)} letters of changed jobs dropped")
    return code


def _import(stack: Stack, name: str, out: Printer) -> int:
    if name == "-":
        return Import(stack, out).read(sys.stdin)
    try:
        with Path(name).open(encoding="utf-8") as lines:
            return Import(stack, out).read(lines)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8; write one JSON object per line") from None


class Import:
    """Reads lines, sends their messages, and accounts for every line."""

    def __init__(self, stack: Stack, out: Printer) -> None:
        self._stack = stack
        self._out = out
        self._intake = Intake.over(stack)
        self._keys: list[tuple[int, str]] = []
        self._bad: list[dict[str, object]] = []
        self._sent: list[str] = []
        self._recorded: set[str] = set()
        self._lines = 0

    def read(self, lines: TextIO) -> int:
        progress = Progress()
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._lines += 1
                self._one(number, line)
            if number % 100 == 0:
                progress.show(f"{number} lines read")
        self._flush()
        progress.clear()
        if self._out.as_json:
            result = {"lines": self._lines, "sent": self._sent, "recorded": sorted(self._recorded), "bad": self._bad}
            self._out.emit(result)
        else:
            self._out.line(
                f"{self._lines} lines: {len(self._sent)} messages sent, {len(self._recorded)} jobs recorded or met, "
                f"{len(self._bad)} lines not used"
            )
        return Exit.USAGE if self._bad else Exit.OK

    def _one(self, number: int, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError as error:
            self._refuse(number, f"is not valid JSON: {error}")
            return
        match entry:
            case {"job_id": str(job_id)} if len(entry) == 1:
                self._send(number, job_id)
            case {"key": str(key)} if len(entry) == 1 and key.startswith((INBOX, CONFIGS)):
                self._keys.append((number, key))
                if len(self._keys) >= _BATCH:
                    self._flush()
            case {"key": str(key)} if len(entry) == 1:
                self._refuse(number, f"key {key!r} is not below {INBOX} or {CONFIGS}")
            case _:
                self._refuse(number, 'must be {"job_id": "…"} or {"key": "inbox/…"} and nothing else')

    def _send(self, number: int, job_id: str) -> None:
        job = self._stack.table.get(job_id)
        if job is None:
            self._refuse(number, f"there is no job {job_id}")
        elif job.state is not State.QUEUED:
            self._refuse(number, f"job {job_id} is {job.state}; only a QUEUED job takes a message (see `ade retry`)")
        else:
            self._stack.queue.send(Message.of(job))
            self._sent.append(job_id)

    def _flush(self) -> None:
        """Scan each key alone, so that a refused key is reported with its line."""
        for number, key in self._keys:
            report = self._intake.changed([key])
            for problem in report.refused:
                self._refuse(number, problem)
            if not report.refused and self._stack.store.head(key) is None:
                self._refuse(number, f"the store has no object {key}")
            found = report_dict(report)
            self._recorded.update(found["created"] + found["met"] + found["queued"])
            report.refused.clear()
            print_refusals(report, self._out)
        self._keys.clear()

    def _refuse(self, number: int, problem: str) -> None:
        self._bad.append({"line": number, "problem": problem})
        self._out.note(f"line {number}: {problem}")
