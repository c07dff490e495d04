"""`ade logs JOB [-f]`: what a job's rules printed."""

import argparse
from pathlib import Path

from console.cli import wire
from console.cli.acts import follow, is_at_rest
from console.cli.guard import Exit, exit_of
from console.cli.output import Printer
from console.job_facts import job_shape, note
from core.errors import ObjectMissing
from core.jobs import Job, State
from core.keys import job_folder
from core.ports import ObjectStore
from infra.wiring import Stack
from runner.engine.contract import escape_controls

_LIMIT = 64 * 1024 * 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument("-f", "--follow", action="store_true", help="follow until the job ends; exit with its status")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        job = wire.make_control(stack).find(args.job)
        tail = Tail(stack, out)
        if args.follow and not job.ended:
            job = next(iter(follow(stack.table, [job.job_id], seen=tail.state, each=tail.read)), job)
        tail.rest(job)
        if out.as_json:
            out.emit({"job": job_shape(job), "log": "\n".join(map(escape_controls, tail.text.split("\n")))})
    if not tail.text and not out.as_json:
        out.note(f"job {job.job_id} is {job.state} and its rules printed nothing")
    return exit_of([job]) if args.follow and is_at_rest(job) else Exit.OK


class Tail:
    """Prints a log as it grows: from the box on this machine while it runs, from the bucket afterwards."""

    def __init__(self, stack: Stack, out: Printer) -> None:
        self._stack = stack
        self._out = out
        self.text = ""

    def state(self, job: Job) -> None:
        if not self._out.as_json:
            self._out.note(f"{job.state}  {note(job)}".rstrip())

    def read(self, job: Job) -> None:
        if job.state is State.RUNNING:
            self._print(_running_log(self._stack.run_dir, job))

    def rest(self, job: Job) -> None:
        self._print(_running_log(self._stack.run_dir, job) if not job.ended else _published_log(self._stack.store, job))

    def _print(self, whole: str) -> None:
        new = whole.removeprefix(self.text)
        if new and not self._out.as_json:
            for line in new.splitlines():
                print(escape_controls(line), flush=True)
        self.text = whole or self.text


def _running_log(run_dir: Path, job: Job) -> str:
    if job.lease is None:
        return ""
    path = run_dir / job.lease.owner / f"{job.job_id}-{job.fence}" / "log.txt"
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _published_log(store: ObjectStore, job: Job) -> str:
    try:
        return store.read(f"{job_folder(job)}logs.txt", limit=_LIMIT).decode("utf-8", "replace")
    except ObjectMissing:
        return ""
