"""`ade demo`: three messy spreadsheets from start to finish, on an embedded stack in a new folder."""

import argparse
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from console.cli import wire
from console.cli.demo.drops import DROPS, DemoDrop
from console.cli.explain import explained
from console.cli.guard import exit_of
from console.cli.output import Printer
from console.cli.service import service
from console.job_facts import job_shape, note
from core.errors import StoreUnavailable
from core.jobs import NO_WORKFLOW, Job
from core.keys import job_folder
from core.ports import JobQuery
from core.settings import Settings
from infra.wiring import Stack, open_stack

_TIMEOUT_SECONDS = 180.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", metavar="DIR", type=Path, default=Path("demo"), help="default: demo/")


def run(args: argparse.Namespace, out: Printer) -> int:
    began = time.monotonic()
    home = _new_folder(args.dir)
    settings = replace(Settings.from_env(os.environ), storage_data_dir=home, settle_seconds=0.0)
    _note(out, f"A bucket in {home}/bucket, a table in {home}/ade.sqlite, watched by this process.")
    with (home / "log.jsonl").open("w", encoding="utf-8") as stream, open_stack(settings) as stack:
        log = wire.make_log(settings, stream=stream)
        with service(stack, log, role="up", everything=True) as parts:
            parts.start()
            _drop_all(home, out)
            jobs = _watch(stack, began, out)
    if out.as_json:
        out.emit({"data_dir": str(home), "jobs": [job_shape(job) for job in jobs]})
    else:
        for job in jobs:
            _show(home, job, out)
        out.line()
        out.line(
            f"Done in {time.monotonic() - began:.1f} s. Explore it: ADE_STORAGE_DATA_DIR={home} {sys.argv[0]} jobs"
        )
        out.line(
            f"Open the console: ADE_STORAGE_DATA_DIR={home} {sys.argv[0]} serve, then {_console(settings)} in a browser"
        )
    return exit_of(jobs)


def _new_folder(parent: Path) -> Path:
    """A new folder."""
    parent.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    for n in range(100):
        home = parent / (f"{stamp}-{n}" if n else stamp)
        try:
            home.mkdir()
        except FileExistsError:
            continue
        return home
    raise StoreUnavailable(f"cannot create a new folder in {parent}; remove old ones")


def _drop_all(home: Path, out: Printer) -> None:
    """Copy files as a sender would, once with the manifest first, then with it last: order does not matter."""
    for n, drop in enumerate(DROPS):
        desk = home / "desk" / drop.tenant
        desk.mkdir(parents=True)
        drop.write(desk / drop.file)
        (desk / "manifest.json").write_text(drop.manifest_text(), encoding="utf-8")
        target = home / "bucket" / "inbox" / drop.tenant / drop.folder
        target.mkdir(parents=True)
        for name in (drop.file, "manifest.json") if n else ("manifest.json", drop.file):
            shutil.copyfile(desk / name, target / name)
        _note(out, f"dropped inbox/{drop.tenant}/{drop.folder}/{drop.file} and its manifest: {drop.mess}")
    _note(out, "")


def _watch(stack: Stack, began: float, out: Printer) -> list[Job]:
    """Print each job's changes until all have ended; returns the jobs in the order of the drops."""
    moves: dict[str, int] = {}
    until = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < until:
        jobs = [job for job in stack.table.page(JobQuery()).jobs if job.workflow != NO_WORKFLOW]
        for job in sorted(jobs, key=lambda j: j.updated_at):
            for state, at in job.history[moves.get(job.job_id, 0) :]:
                after = max(0.0, at - stack.clock.now() + time.monotonic() - began)
                _note(out, f"{after:6.2f}s  {job.job_id:<26} {state}")
            moves[job.job_id] = len(job.history)
        done = [job for job in jobs if job.ended and not job.unpublished]
        if len(done) == len(DROPS):
            return sorted(done, key=_place)
        stack.table.wait(1.0)
    raise StoreUnavailable(f"the demo's jobs did not end within {_TIMEOUT_SECONDS:g} seconds; see log.jsonl")


def _place(job: Job) -> int:
    return next((n for n, drop in enumerate(DROPS) if _is_of(job, drop)), len(DROPS))


def _is_of(job: Job, drop: DemoDrop) -> bool:
    return job.tenant == drop.tenant


def _show(home: Path, job: Job, out: Printer) -> None:
    """Print one job's decisions, read from its artifact in the bucket."""
    folder = home / "bucket" / job_folder(job)
    out.line()
    out.heading(f"{job.tenant}/{job.subject} → {job.state} ({note(job)})")
    for line in explained(folder / "artifact.json"):
        out.line(f"  {line}")
    for name in ("normalized.xlsx", "artifact.json", "report.html", "result.json"):
        if (folder / name).exists():
            out.line(f"  {folder / name}")


def _note(out: Printer, text: str) -> None:
    if not out.as_json:
        out.line(text)


def _console(settings: Settings) -> str:
    listen = Settings().console_listen if settings.console_listen == "off" else settings.console_listen
    return f"http://{listen}/"
