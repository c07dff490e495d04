"""`ade try`: run a manifest on local files. Same planning, staging, engine and sandbox; no bucket, no table."""

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from console.cli.boxes import boxes
from console.cli.desk import Desk, DeskSource, inbox_folder, info_of, lay_out, read_manifest
from console.cli.explain import explained
from console.cli.guard import exit_of
from console.cli.output import Printer, Progress
from console.cli.service import Signals
from core.decisions import DecisionInvalid
from core.drops import plan
from core.errors import UsageError
from core.jobs import End, Job, JobError, Review, State, ask, decide, move, start
from core.keys import DECISION, decision_place, decision_places, is_decision
from core.ports import ObjectInfo
from core.settings import Settings
from core.verdicts import Verdict
from infra.clocks import SystemClock
from infra.parsing import read_decision
from runner.attempt import Boxes, deliverables, describe, isolation_facts, run_box, summarize
from runner.engine.contract import PUBLISHED_FILES, Event, OutputName, PassProgress, Where
from runner.publish import outcome, result_body
from runner.staging import StagedSource, StagingFailed, stage

TENANT = "desk"
_NAMES = (*PUBLISHED_FILES, OutputName.RESULT)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="primary inputs, whatever their names")
    parser.add_argument("--manifest", metavar="M", required=True, type=Path)
    parser.add_argument("--out", metavar="DIR", required=True, type=Path, help="where the results go")


@dataclass(frozen=True, slots=True)
class Trial:
    job: Job
    out: Path


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = Settings.from_env(os.environ)
    bucket = settings.storage_data_dir / "bucket"
    desk, files = desk_of(args.manifest, args.files, inbox_folder(TENANT, ""), bucket)
    trials = list(trials_of(desk, files, args.out))
    with tempfile.TemporaryDirectory(prefix="ade-try-") as scratch, Signals() as signals:
        place = Path(scratch)
        with boxes(settings, place / "run") as sandbox:
            table = TriedTable(settings, sandbox, DeskSource({**desk.files, **files}), place)
            ended = []
            for trial in trials:
                job = table.run(trial, stopped=lambda: Verdict.CANCELLED if signals.asked else None)
                ended.append(job)
                if not out.as_json:
                    _print(trial, job, out)
    if out.as_json:
        out.emit(
            [{"out": str(t.out), "result": json.loads(result_body(j))} for t, j in zip(trials, ended, strict=True)]
        )
    return exit_of([replace(job, state=outcome(job)) for job in ended])


def desk_of(manifest_path: Path, files: list[Path], folder: str, bucket: Path) -> tuple[Desk, dict[str, Path]]:
    """The manifest with its files, and the primary inputs by the keys they would have in a folder of the inbox.

    `bucket`: where to find what the manifest names by whole keys.
    """
    manifest = read_manifest(manifest_path)
    # The files are given explicitly, so what a standing manifest subscribes to does not matter.
    desk = lay_out(manifest_path, manifest.model_copy(update={"subscribe": ()}), folder=folder, bucket=bucket)
    keys = {folder + path.name: path for path in files}
    if len(keys) < len(files):
        raise UsageError("two files have the same name, so their results would collide; rename one")
    beside = {path.parent for path in files}
    keys |= {folder + path.name: path for place in beside for path in place.glob(f"*{DECISION}") if path.is_file()}
    return desk, {**keys, desk.workflow.info.key: manifest_path}


def trials_of(desk: Desk, files: dict[str, Path], out: Path) -> Iterator[Trial]:
    inputs = {key: path for key, path in files.items() if key != desk.workflow.info.key and not is_decision(path.name)}
    primaries = [info_of(key, path) for key, path in inputs.items()]
    per_file = desk.workflow.manifest.inputs.per == "file"
    sets = [[p] for p in primaries] if per_file else [primaries]
    for chosen in sets:
        jobs = [_decided(job, files) for job in _planned(desk, chosen)]
        for job in jobs:
            place = out / chosen[0].key.rpartition("/")[2] if len(sets) > 1 else out
            yield Trial(job, place / _params_name(job) if len(jobs) > 1 else place)


def _decided(job: Job, files: dict[str, Path]) -> Job:
    """The job with the decision that is beside one of its files."""
    found = [(key, files[key]) for key in decision_places(job) if key in files]
    for key, path in found[:1]:
        try:
            read_decision(path.read_bytes())
        except DecisionInvalid as error:
            problems = "".join(f"\n  {p.path}: {p.problem} (allowed: {p.allowed})" for p in error.problems)
            raise UsageError(f"{path} does not validate:{problems}") from None
        return replace(job, decision=info_of(key, path).ref, decided_at=job.created_at)
    return job


def _planned(desk: Desk, primaries: list[ObjectInfo]) -> list[Job]:
    jobs = plan(desk.workflow, primaries, package=desk.package, auxiliary=desk.auxiliary(), now=SystemClock().now())
    literal = {p.key for p in primaries}
    missing = [m for m in jobs[0].waiting_for if m not in literal] if jobs[0].state is State.AWAITING else []
    if missing:
        folder = desk.workflow.folder
        names = ", ".join(m.removeprefix(folder) for m in missing)
        raise UsageError(f"not found beside {desk.manifest_path}: {names}")
    # Here a job runs now, whatever its schedule says.
    return [replace(job, state=State.QUEUED, reason="", due_at=None, ended_at=None, unpublished=False) for job in jobs]


def _params_name(job: Job) -> str:
    words = "-".join(f"{k}={v}" for k, v in sorted(job.params.items()))
    return "".join(c if c.isalnum() or c in "=-._" else "_" for c in words)[:80] + f"-{job.job_id[-8:]}"


class TriedTable:
    """Runs trials one after the other and writes what would be in `outputs/`."""

    def __init__(self, settings: Settings, boxes: Boxes, source: StagedSource, scratch: Path) -> None:
        self._settings = settings
        self._boxes = boxes
        self._source = source
        self._scratch = scratch
        self._clock = SystemClock()

    def run(self, trial: Trial, *, stopped: Callable[[], Verdict | None]) -> Job:
        """The job as its row would be after the attempt; its files are in the trial's folder."""
        trial.out.mkdir(parents=True, exist_ok=True)
        for name in _NAMES:
            (trial.out / name).unlink(missing_ok=True)
        job = start(trial.job, owner="desk", now=self._clock.now(), lease_seconds=self._settings.lease_seconds)
        folder = self._scratch / job.job_id
        folder.mkdir()
        try:
            job = self._attempt(job, folder, trial.out, stopped)
        except StagingFailed as error:
            job = self._ended(job, error.verdict, str(error), {})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if job.state is not State.REVIEW:
            (trial.out / OutputName.RESULT).write_bytes(result_body(job))
        return job

    def _attempt(self, job: Job, folder: Path, out: Path, stopped: Callable[[], Verdict | None]) -> Job:
        staged = stage(self._source, job, folder, file_mb=self._settings.worker_fsize_mb)
        progress = Progress()
        report = run_box(
            self._boxes,
            staged,
            folder,
            label=f"{job.job_id}-1",
            tenant=job.tenant,
            settings=self._settings,
            killed=stopped,
            on_event=lambda event: progress.show(_progress_words(job, event)),
        )
        progress.clear()
        paths = deliverables(report)
        files = tuple(describe(name, path) for name, path in paths.items())
        for name, path in paths.items():
            shutil.copyfile(path, out / name)
        job = replace(job, files=files, summary=summarize(report), sandbox=isolation_facts(self._boxes.sandbox))
        if report.verdict is Verdict.OK:
            return move(job, State.PUBLISHING, now=self._clock.now())
        if report.verdict is Verdict.NEEDS_REVIEW:
            terms, questions = staged.manifest.review, int(job.summary.get("questions", 1))
            review = Review(questions=questions, on_expiry=terms.on_expiry)
            return ask(job, now=self._clock.now(), review=review, expires=terms.seconds, key=decision_place(job))
        return self._ended(job, report.verdict, report.message, report.where)

    def _ended(self, job: Job, verdict: Verdict, message: str, where: Where) -> Job:
        """What the fleet would decide, without retries."""
        decision = decide(verdict, attempt=1, policy=replace(self._settings.retry_policy, max_attempts=1), jitter=0.0)
        state = decision.state if isinstance(decision, End) else State.FAILED
        error = JobError(verdict=verdict, message=message or f"ended with verdict {verdict}", where=where)
        return move(job, state, now=self._clock.now(), error=error)


def _progress_words(job: Job, event: Event) -> str:
    if not isinstance(event, PassProgress):
        return f"{job.subject}:  "
    total = f"/{event.total}" if event.total else ""
    return f"{job.subject}: {event.step} {event.done or ''}{total}"


def _print(trial: Trial, job: Job, out: Printer) -> None:
    state = str(outcome(job))
    out.heading(f"{trial.job.subject or trial.job.workflow}: {state}")
    if job.error is not None:
        out.line(f"  {job.error.message} ({job.error.verdict}; at fault: {job.error.fault})")
        for name, value in job.error.where.items():
            out.line(f"  {name}: {value}")
        if (trial.out / OutputName.LOG).exists():
            out.line(f"  what the rules printed: {trial.out / OutputName.LOG}")
    if job.state is State.REVIEW:
        name = job.waiting_for[0].rpartition("/")[2]
        out.line(
            f"  {job.reason}; answer in {name} beside the file: {trial.out / OutputName.REVIEW_PAGE} has one to copy"
        )
    for line in explained(trial.out / OutputName.ARTIFACT):
        out.line(f"  {line}")
    out.line(f"  results: {trial.out}")
