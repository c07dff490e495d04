"""Plans and runs the jobs of a manifest on local files. Same planning, staging, engine and sandbox as the fleet's."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from console.desk.files import Desk, info_of, lay_out, read_manifest
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
from runner.attempt import Boxes, deliverables, describe, isolation_facts, run_box, summarize, with_report
from runner.boxes import Killed, OnEvent, ignore_event
from runner.documents import result_body
from runner.engine.contract import PUBLISHED_FILES, OutputName, Where, is_split_file
from runner.failures import write_report
from runner.staging import Staged, StagedSource, StagingFailed, stage

TENANT = "desk"
_NAMES = (*PUBLISHED_FILES, OutputName.RESULT)


@dataclass(frozen=True, slots=True)
class Trial:
    job: Job
    out: Path


def desk_of(manifest_path: Path, files: list[Path], folder: str, bucket: Path) -> tuple[Desk, dict[str, Path]]:
    """The manifest with its files, and the primary inputs by the keys they would have in a folder of the inbox.

    `bucket`: where to find what the manifest names by whole keys.
    """
    manifest = read_manifest(manifest_path)
    # The files are given explicitly, so what a standing manifest subscribes to does not matter.
    desk = lay_out(
        manifest_path, manifest.model_copy(update={"subscribe": (), "tenants": ()}), folder=folder, bucket=bucket
    )
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

    def __init__(
        self, settings: Settings, boxes: Boxes, source: StagedSource, scratch: Path, *, traced: bool = False
    ) -> None:
        """`traced`: there is a workbook that names the source of each row, whatever the manifest asks for."""
        self._traced = traced
        self._settings = settings
        self._boxes = boxes
        self._source = source
        self._scratch = scratch
        self._clock = SystemClock()

    def run(self, trial: Trial, *, stopped: Killed, on_event: OnEvent = ignore_event) -> Job:
        """The job as its row would be after the attempt; its files are in the trial's folder."""
        trial.out.mkdir(parents=True, exist_ok=True)
        split_files = (path.name for path in trial.out.iterdir() if is_split_file(path.name))
        for name in (*_NAMES, *split_files):
            (trial.out / name).unlink(missing_ok=True)
        job = start(trial.job, owner="desk", now=self._clock.now(), lease_seconds=self._settings.lease_seconds)
        folder = self._scratch / job.job_id
        folder.mkdir()
        try:
            job = self._attempt(job, folder, trial.out, stopped, on_event)
        except StagingFailed as error:
            paths = write_report(job, error.verdict, str(error), error.where, language=error.language, to=folder)
            job = self._ended(_with_files(job, paths, trial.out), error.verdict, str(error), error.where)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if job.state is not State.REVIEW:
            (trial.out / OutputName.RESULT).write_bytes(result_body(job))
        return job

    def _attempt(self, job: Job, folder: Path, out: Path, stopped: Killed, on_event: OnEvent) -> Job:
        staged = stage(self._source, job, folder, file_mb=self._settings.worker_fsize_mb)
        if self._traced:
            staged = _with_sources(staged)
        report = run_box(
            self._boxes,
            staged,
            folder,
            label=f"{job.job_id}-1",
            tenant=job.tenant,
            settings=self._settings,
            killed=stopped,
            on_event=on_event,
        )
        report = with_report(report, job, folder, language=staged.manifest.language)
        job = _with_files(job, deliverables(report), out)
        job = replace(job, summary=summarize(report), sandbox=isolation_facts(self._boxes.sandbox))
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


def _with_files(job: Job, paths: dict[str, Path], out: Path) -> Job:
    """The job with these files, which are copied to where the trial's outputs go."""
    for name, path in paths.items():
        shutil.copyfile(path, out / name)
    return replace(job, files=tuple(describe(name, path) for name, path in paths.items()))


def _with_sources(staged: Staged) -> Staged:
    """The same job with a workbook that names the source of each row, whatever else the manifest asks for."""
    output = staged.manifest.output
    formats = output.formats if "xlsx" in output.formats else ("xlsx", *output.formats)
    output = output.model_copy(update={"provenance": True, "formats": formats})
    order = replace(staged.order, manifest={**staged.order.manifest, "output": output.model_dump(mode="json")})
    return replace(staged, manifest=staged.manifest.model_copy(update={"output": output}), order=order)
