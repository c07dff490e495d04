"""`ade try`: run a manifest on local files. Same planning, staging, engine and sandbox; no bucket, no table."""

import argparse
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from console.cli.explain import explained
from console.cli.guard import exit_of
from console.cli.output import Printer, Progress
from console.cli.signals import Signals
from console.desk.boxes import boxes
from console.desk.files import DeskSource, find_manifest, inbox_folder
from console.desk.trials import TENANT, Trial, TriedTable, desk_of, trials_of
from core.jobs import Job, Outcome, State
from core.settings import Settings
from core.verdicts import Verdict
from runner.documents import final_state, result_body
from runner.engine.contract import Event, OutputName, PassProgress


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="primary inputs, whatever their names")
    parser.add_argument("--manifest", metavar="M", required=True, type=Path)
    parser.add_argument("--out", metavar="DIR", required=True, type=Path, help="where the results go")


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = Settings.from_env(os.environ)
    bucket = settings.storage_data_dir / "bucket"
    folder = inbox_folder(TENANT, "")
    desk, files = desk_of(find_manifest(args.manifest), args.files, folder, bucket)
    trials = list(trials_of(desk, files, args.out))
    with tempfile.TemporaryDirectory(prefix="ade-try-") as scratch, Signals() as signals:
        place = Path(scratch)
        with boxes(settings, place / "run", rehearses=False) as sandbox:
            table = TriedTable(settings, sandbox, DeskSource({**desk.files, **files}), place)
            ended = []
            for trial in trials:
                job = _run(table, trial, signals)
                ended.append(job)
                if not out.as_json:
                    _print(trial, job, out)
    for path in args.files if not out.as_json else ():
        if not desk.workflow.selects(folder + path.name):
            patterns = ", ".join(desk.workflow.patterns)
            out.line(f"A drop of {path.name} would not be selected: inputs.primary is {patterns}.")
    if out.as_json:
        out.emit(
            [{"out": str(t.out), "result": json.loads(result_body(j))} for t, j in zip(trials, ended, strict=True)]
        )
    return exit_of([replace(job, state=final_state(job)) for job in ended])


def _run(table: TriedTable, trial: Trial, signals: Signals) -> Job:
    progress = Progress()
    try:
        return table.run(
            trial,
            stopped=lambda: Verdict.CANCELLED if signals.asked else None,
            on_event=lambda event: progress.show(_progress_words(trial.job, event)),
        )
    finally:
        progress.clear()


def _progress_words(job: Job, event: Event) -> str:
    if not isinstance(event, PassProgress):
        return f"{job.subject}:  "
    total = f"/{event.total}" if event.total else ""
    return f"{job.subject}: {event.step} {event.done or ''}{total}"


def _print(trial: Trial, job: Job, out: Printer) -> None:
    state = str(final_state(job))
    quality = "" if job.outcome in (None, Outcome.CLEAN) else f", with {job.outcome}"
    out.heading(f"{trial.job.subject or trial.job.workflow}: {state}{quality}")
    if job.error is not None:
        out.line(f"  {job.error.message} ({job.error.verdict}; at fault: {job.error.fault})")
        for name, value in job.error.where.items():
            out.line(f"  {name}: {value}")
        if (trial.out / OutputName.LOG).exists():
            out.line(f"  what the rules printed: {trial.out / OutputName.LOG}")
    if job.state is State.REVIEW:
        name = job.waiting_for[0].rpartition("/")[2]
        page = trial.out / OutputName.REVIEW_PAGE
        out.line(f"  {job.reason}; answer in {name} beside the file: {page} has one to copy")
    for line in explained(trial.out / OutputName.ARTIFACT):
        out.line(f"  {line}")
    out.line(f"  results: {trial.out}")
