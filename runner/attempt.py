"""One attempt at a job: stage the inputs, run the box, verify and upload its outputs. The worker decides what follows.

Rules run in the engine's own process, so a hostile one can write anything into the outputs. It must not be able to
publish an artifact that names another job or input, an artifact of another shape, a workbook that holds more than
values, counts that do not match the workbook, or books that do not balance. The runner holds credentials, so it opens
none of those files: a process that never ran a rule reads them (engine/verifying), under limits and within the job's
deadline, and returns one line. It is the first process of the job's own box if nothing in the box could touch it, and
otherwise runs in a second box. A job without rules needs neither: its engine verifies its own outputs. The report is
written there too, from the verified data.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from core.chores import retention
from core.errors import AnswerDoubted, ObjectChanged, ObjectMissing, SandboxUnavailable, StoreUnavailable
from core.jobs import CorrectionOf, Job, ObjectRef, OutputFile
from core.keys import staging_folder
from core.manifests import Limits, ReviewTerms, parse_manifest
from core.ports import ObjectStore
from core.settings import Settings
from core.verdicts import FAULTS, Fault, Verdict
from infra.parsing import KnownTexts
from infra.queueing import Lanes
from infra.telemetry import Telemetry
from runner.boxes import BoxLimits, BoxOrder, BoxReport, Killed, OnEvent, Sandbox, Verification, ignore_event
from runner.bundles import BUNDLE, InHand, is_bundled, pack
from runner.engine.contract import (
    EXPLAINED,
    PRIMARY,
    TIMED_PASSES,
    VERIFIED_FILES,
    ContractBroken,
    InputFile,
    Json,
    Order,
    OutputName,
    ReportTerms,
    VerifyOrder,
    Where,
    check_published,
    is_data,
)
from runner.engine.options import VerifiedOptions
from runner.failures import write_report
from runner.origins import Origins, corrected_files, correction_of, stage_origin
from runner.patience import CallLeft, PatientCalls
from runner.sandbox.install.layers import LayerRefused, Layers
from runner.staging import (
    Pins,
    Staged,
    StagingFailed,
    box_limits,
    box_outputs,
    corrected_input,
    make_order,
    stage,
)
from runner.surroundings import lacks_room
from runner.versions import StoredVersions

REPORT_MB = 16
LEAST_SECONDS = 10.0  # for outputs that were finished at the last moment
_COUNTS = ("tables", "rows_in", "rows_out", "sheets_out", "columns_mapped", "columns_unmapped", "rows_with_errors")
_LEFT_OUT = (
    "total", "group", "note", "repeated_header", "hidden", "blank", "filtered", "duplicate", "rejected",
    "skipped_table", "outside",
)  # fmt: skip
_FINDINGS = ("error", "warning", "info")
_MOST_FIELDS = 50  # empty ones that a row names
_MOST = 2**53
_MOST_SECONDS = 86400.0
_MAX_MESSAGE = 300
_OURS = frozenset({Verdict.CANCELLED, Verdict.LEASE_LOST, Verdict.RELEASED, Verdict.BOX_FAILED})
_LIMITS = frozenset({Verdict.CPU, Verdict.MEMORY, Verdict.WALL_CLOCK})
_BLOCK = 1024 * 1024
_LAST_SECONDS = 5.0  # after a kill, for the upload of what is finished
_MOST_FILES = 10_000
_FOR_VERIFIER = (OutputName.REJECTED_ROWS, OutputName.SHOWN_VALUES)  # what others are made from; never published
_ROOM_PER_BYTE, _ROOM = 4, 64 * 1024 * 1024
_PROBE_INPUT = b"id\n1\n"
_PROBE_MANIFEST = parse_manifest(b'{"manifest": 1, "name": "probe", "fields": [{"name": "id"}]}')
_PROBE_JOB = Job(job_id="probe", identity="", tenant="_probe", workflow="probe", subject="probe.csv")
_PLACE = re.compile(r"(?:[a-z0-9+]+://|(?<![\w.…/])/(?=[\w.]))[^\s'\",;()]*")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of an attempt, for its trace."""

    name: str  # "stage", "box" or "upload"
    start: float
    end: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptEnd:
    """How an attempt ended. `files` are staged in the bucket, in the attempt's own folder."""

    verdict: Verdict
    message: str = ""
    detail: str = ""  # the same message with this host's paths and addresses, for the operator's log
    where: Where = field(default_factory=dict)
    files: tuple[OutputFile, ...] = ()
    in_hand: InHand | None = None  # of the first attempt, where it succeeded
    summary: Json = field(default_factory=dict)
    sandbox: Json = field(default_factory=dict)
    suspicion: str = ""  # evidence of a bug in the engine
    mends: CorrectionOf | None = None  # the drop that its result completes
    blameless: bool = False  # an outage (runner/surroundings.py), or a lie of the store: the job keeps its attempt
    used: int = 0  # bytes of the scratch disk, as far as an honest job may need them
    by_host: bool = False  # the host ended its box, and neither its contents nor its limits did
    full: bool = False  # this runner was refused room, on a disk or by the store
    decision_before: ObjectRef | None = None  # the decision that the row had when the attempt began
    decision_before_at: float | None = None  # when that one was uploaded
    pins: Pins | None = None  # what the attempt was really given; None: it did not get that far
    terms: ReviewTerms | None = None  # how long a person has to decide
    phases: tuple[Phase, ...] = ()
    start_seconds: float = 0.0  # until the box began to work
    passes: dict[str, float] = field(default_factory=dict)  # seconds by pass

    @property
    def questions(self) -> int:
        """How many questions a person has to answer, if the job asks."""
        return _whole(self.summary.get("questions")) or 1


@dataclass(frozen=True, slots=True)
class Boxes:
    """What an attempt runs in: the sandbox, and the installed requirements of config packages."""

    sandbox: Sandbox
    layers: Layers


class Attempts:
    """Runs attempts in one scratch folder of this machine."""

    def __init__(
        self,
        store: ObjectStore,
        boxes: Boxes,
        settings: Settings,
        scratch: Path,
        lanes: Lanes,
        *,
        telemetry: Telemetry | None = None,
        origins: Origins,
        patient: PatientCalls | None = None,
        bundles: bool = False,
        versions: StoredVersions | None = None,
    ) -> None:
        """`origins`: finds what inputs that correct the rejects of an earlier job belong to.

        `patient`: makes the calls to a store that may hang. `bundles`: stages small outputs together.
        """
        self._bundles = bundles
        self._versions = versions or StoredVersions(store)
        self._patient = patient
        self._origins = origins
        self._store = store
        self._texts = KnownTexts(store)
        self._now = (telemetry or Telemetry()).now
        self._lanes = lanes
        self._boxes = boxes
        self._settings = settings
        self._scratch = scratch

    def _stage(self, job: Job, folder: Path, file_mb: int) -> Staged:
        staged = stage(self._store, job, folder, file_mb=file_mb, texts=self._texts)
        self._versions.store_of(job)
        return staged

    def folder(self, job: Job) -> Path:
        return self._scratch / f"{job.job_id}-{job.fence}"

    def run(self, job: Job, *, killed: Killed, on_event: OnEvent) -> AttemptEnd:
        """Never raises, whatever the job, its files or the store do."""
        phases: list[Phase] = []
        folder = self.folder(job)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            outcome = self._run(job, folder, phases, killed=killed, on_event=on_event)
            return replace(outcome, phases=tuple(phases), used=_used(folder, job))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(
        self,
        job: Job,
        folder: Path,
        phases: list[Phase],
        *,
        killed: Killed,
        on_event: OnEvent,
    ) -> AttemptEnd:
        try:
            try:
                return self._staged_and_boxed(job, folder, phases, killed=killed, on_event=on_event)
            except StagingFailed as error:
                return self._unstaged(job, folder, error, killed)
        except CallLeft as left:
            return AttemptEnd(verdict=left.verdict)
        except SandboxUnavailable as error:
            return self._ended(Verdict.BOX_FAILED, str(error))
        except ContractBroken as error:
            return self._ended(Verdict.BOX_FAILED, f"its outputs cannot be published: {error}")
        except (ObjectMissing, ObjectChanged) as error:
            return self._ended(Verdict.STORE_FAILED, f"staged file vanished: {error}")
        except AnswerDoubted as error:
            return replace(self._ended(Verdict.STORE_FAILED, str(error)), blameless=True)
        except (StoreUnavailable, OSError) as error:
            ended = self._ended(Verdict.STORE_FAILED, f"{type(error).__name__}: {error}")
            return replace(ended, full=lacks_room(error))

    def _staged_and_boxed(
        self,
        job: Job,
        folder: Path,
        phases: list[Phase],
        *,
        killed: Killed,
        on_event: OnEvent,
    ) -> AttemptEnd:
        """Stage the inputs, run the box and upload what is to be published."""
        with self._timed("stage", phases):
            folder.mkdir(parents=True)
            file_mb = self._settings.worker_fsize_mb
            staged = self._leavable(
                "deliver the inputs",
                lambda: self._stage(job, folder, file_mb),
                folder,
                killed,
            )
        if (stopped := killed()) is not None:
            return AttemptEnd(verdict=stopped)
        try:
            report, mends = self._boxed(job, staged, folder, phases, killed=killed, on_event=on_event)
        except StagingFailed as error:
            error.language = staged.manifest.language
            raise
        seconds = retention(job, self._settings.timings)
        report = with_report(report, job, folder, language=staged.manifest.language, retention_seconds=seconds)
        with self._timed("upload", phases):
            published, plain = deliverables(report), report.verdict is Verdict.OK and mends is None
            check_published(published, succeeded=report.verdict is Verdict.OK)
            profile = report.outputs.get(OutputName.PROFILE) if plain else None
            files, in_hand = self._leavable(
                "take the outputs",
                lambda: self._upload(job, published, profile, bundled=plain and self._bundles),
                folder,
                killed,
                _LAST_SECONDS,
            )
        return AttemptEnd(
            verdict=report.verdict,
            message=report.message if FAULTS[report.verdict] is not Fault.OURS else without_places(report.message),
            detail=report.message,
            where=report.where,
            files=files,
            in_hand=replace(in_hand, previous=staged.previous) if plain and in_hand is not None else None,
            summary=summarize(report),
            sandbox=isolation_facts(self._boxes.sandbox),
            suspicion=report.suspicion,
            by_host=report.by_host,
            mends=mends,
            decision_before=job.decision,
            decision_before_at=job.decided_at,
            pins=staged.pins,
            terms=staged.manifest.review,
            start_seconds=report.start_seconds,
            passes=report.passes,
        )

    def _unstaged(self, job: Job, folder: Path, error: StagingFailed, killed: Killed) -> AttemptEnd:
        """How a job ends that could not be staged: with a report, if its sender or author can do something about it."""
        ended = self._ended(error.verdict, str(error))
        seconds = retention(job, self._settings.timings)
        paths = write_report(
            job,
            ended.verdict,
            ended.message,
            error.where,
            language=error.language,
            to=folder,
            retention_seconds=seconds,
        )
        if not paths:
            return ended
        files, _ = self._leavable(
            "take the report", lambda: self._upload(job, paths, None, bundled=False), folder, killed, _LAST_SECONDS
        )
        return replace(ended, files=files, where=error.where)

    def _leavable(self, what: str, act: Callable[[], T], folder: Path, killed: Killed, last: float = 0.0) -> T:
        """Make calls to the store, for as long as a box may take, and for `last` seconds after the job was killed."""
        if self._patient is None:
            return act()

        def tidy() -> None:
            shutil.rmtree(folder, ignore_errors=True)

        seconds = self._settings.job_timeout_seconds
        return self._patient(what, act, killed=killed, seconds=seconds, tidy=tidy, last_seconds=last)

    @contextlib.contextmanager
    def _timed(self, name: str, phases: list[Phase]) -> Iterator[None]:
        began = self._now()
        try:
            yield
        finally:
            phases.append(Phase(name, began, self._now()))

    def _boxed(
        self,
        job: Job,
        staged: Staged,
        folder: Path,
        phases: list[Phase],
        *,
        killed: Killed,
        on_event: OnEvent,
    ) -> tuple[BoxReport, CorrectionOf | None]:
        """Run the box; again with other inputs for as long as it finds one that corrects the rejects of another job."""
        files: dict[str, str] = {}
        mends: CorrectionOf | None = None
        initial = staged
        while True:
            with self._timed("box", phases):
                report = run_box(
                    self._boxes,
                    staged,
                    folder,
                    label=f"{job.job_id}-{job.fence}",
                    tenant=job.tenant,
                    settings=self._settings,
                    killed=killed,
                    on_event=on_event,
                    retention_seconds=retention(job, self._settings.timings),
                )
            claim = corrected_input(job, report, files)
            if claim is None:
                is_used = report.verdict is Verdict.OK or report.verdict in EXPLAINED - {Verdict.NEEDS_REVIEW}
                copies = corrected_files(job, initial, files, folder) if files and is_used else {}
                return replace(report, outputs=report.outputs | copies), mends
            files |= claim
            origin = self._origins.find(job, files)
            mends = correction_of(files, origin)
            file_mb = self._settings.worker_fsize_mb
            staged = self._leavable(
                "deliver the earlier inputs",
                lambda: stage_origin(self._store, job, initial, origin, folder, file_mb=file_mb),  # noqa: B023 - waited for
                folder,
                killed,
            )

    def check_box(self) -> None:
        """Run a small built-in job in a box; raises SandboxUnavailable if no box can be built."""
        folder = self._scratch / "probe-box"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            (folder / "in").mkdir(parents=True)
            (folder / "in" / "0").write_bytes(_PROBE_INPUT)
            probe = describe("0", folder / "in" / "0")
            path = Path("in", "0")
            inputs = [InputFile(role=PRIMARY, name="probe.csv", path=path, size=probe.size, sha256=probe.sha256)]
            report = run_box(
                self._boxes,
                Staged(_PROBE_MANIFEST, make_order(_PROBE_JOB, _PROBE_MANIFEST, inputs, None), None, None),
                folder,
                label=f"{self._scratch.name}-0",
                tenant=_PROBE_JOB.tenant,
                settings=self._settings,
                killed=lambda: None,
                on_event=lambda _: None,
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if report.verdict is Verdict.BOX_FAILED:
            raise SandboxUnavailable(report.message)

    def _ended(self, verdict: Verdict, message: str) -> AttemptEnd:
        return AttemptEnd(verdict=verdict, message=without_places(message), detail=message)

    def _upload(
        self, job: Job, paths: dict[str, Path], profile: Path | None, *, bundled: bool
    ) -> tuple[tuple[OutputFile, ...], InHand | None]:
        """Stage the outputs, `bundled` if they are small; what is published at once need not be read again."""
        staging = staging_folder(job.job_id, job.fence)
        profiled = {str(OutputName.PROFILE): profile.read_bytes()} if profile is not None else {}
        described = tuple(describe(name, path) for name, path in paths.items()) if bundled else ()
        if described and is_bundled(job, described):
            contents = {file.name: paths[file.name].read_bytes() for file in described}
            self._store.put(staging + BUNDLE, pack(contents | profiled))
            return described, InHand(contents, profiled.get(OutputName.PROFILE))

        def upload(name: str) -> OutputFile:
            facts = describe(name, paths[name])
            self._store.put(staging + name, paths[name])
            return facts

        files = tuple(self._lanes.each(upload, list(paths)))
        for name, body in profiled.items():
            self._store.put(staging + name, body)
        return files, InHand(None, profiled.get(OutputName.PROFILE)) if job.attempts_total == 1 else None


def run_box(
    boxes: Boxes,
    staged: Staged,
    folder: Path,
    *,
    label: str,
    tenant: str,
    settings: Settings,
    killed: Killed,
    on_event: OnEvent,
    retention_seconds: float = 0.0,
) -> BoxReport:
    """Run one staged job in a box; used by the fleet and by `ade try` alike."""
    trusted = staged.config is None
    if staged.manifest.runtime_network_access and not settings.runtime_network_access:
        return BoxReport(
            verdict=Verdict.CONFIG_REFUSED,
            message="the manifest asks for runtime_network_access, which this fleet does not allow; "
            "remove it or let the operator set ADE_RUNTIME_NETWORK_ACCESS=true",
        )
    layer = None
    if staged.requirements is not None:
        try:
            layer = boxes.layers.prepare_layer(staged.requirements, tenant=tenant, killed=killed)
        except LayerRefused as error:
            return BoxReport(verdict=error.verdict, message=str(error))
    outputs = box_outputs(staged.manifest)
    order = BoxOrder(
        label=label,
        tenant=tenant,
        scratch=folder,
        job=staged.order,
        outputs=outputs,
        limits=box_limits(staged.manifest.limits, settings, outputs),
        network=staged.manifest.runtime_network_access,
        trusted=trusted,
        layer=layer,
        retention_seconds=retention_seconds,
    )
    limits = box_limits(Limits(), settings, outputs)
    return run_verified(boxes.sandbox, order, limits=limits, killed=killed, on_event=on_event)


def _used(folder: Path, job: Job) -> int:
    """Bytes that an attempt used on the disk: its scratch folder, and its inputs once more for what it uploads.

    At most so much as a job with such inputs needs: rules that fill the disk prove nothing.
    """
    inputs, used = sum(item.ref.size for item in job.inputs), 0
    files = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
    for path in islice(files, _MOST_FILES):
        with contextlib.suppress(OSError):
            used += path.lstat().st_size
    return min(used + inputs, _ROOM_PER_BYTE * inputs + _ROOM)


def deliverables(report: BoxReport) -> dict[str, Path]:
    """The files to publish: all after success, the audit if it explains the failure, otherwise report and log."""
    is_published = report.verdict is Verdict.OK or report.verdict in EXPLAINED
    paths = {
        name: path
        for name, path in sorted(report.outputs.items())
        if name != OutputName.PROFILE and (is_published or name == OutputName.REPORT)
    }
    if report.log is not None and report.log.exists():
        paths[OutputName.LOG] = report.log
    return paths


def with_report(
    report: BoxReport, job: Job, folder: Path, *, language: str, retention_seconds: float = 0.0
) -> BoxReport:
    """The report of a box with a page for people, if it ended without an artifact that one could be made from."""
    page = write_report(
        job,
        report.verdict,
        report.message,
        report.where,
        language=language,
        to=folder,
        retention_seconds=retention_seconds,
    )
    return replace(report, outputs=page) if page else report


def without_places(message: str) -> str:
    """A message for the job's owner, without this host's paths and the addresses of its services."""
    return _PLACE.sub("…", message)


def describe(name: str, path: Path) -> OutputFile:
    hasher, size = hashlib.sha256(), 0
    with path.open("rb") as source:
        while block := source.read(_BLOCK):
            hasher.update(block)
            size += len(block)
    return OutputFile(name=name, size=size, sha256=hasher.hexdigest())


def summarize(report: BoxReport) -> Json:
    """The verified counts and the runner's own measurements."""
    return {
        **report.claim,
        "wall_seconds": round(report.wall_seconds, 3),
        "cpu_seconds": round(report.cpu_seconds, 3),
        "peak_mb": round(report.peak_mb, 1),
    } | ({"engine_fault": report.suspicion} if report.suspicion else {})


def isolation_facts(sandbox: Sandbox) -> Json:
    return asdict(sandbox.isolation())


def run_verified(
    sandbox: Sandbox,
    job: BoxOrder,
    *,
    limits: BoxLimits,
    killed: Killed,
    on_event: OnEvent = ignore_event,
) -> BoxReport:
    """Run a job and verify its outputs, in the same box if that is safe; `limits` are those of the verification."""
    wanted = Verification(
        job=verification_order(job_order(job), job.retention_seconds),
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
    killed: Killed,
) -> BoxReport:
    """The report of a job with its verified outputs, counts and page, or the reason why they were refused."""
    if report.verdict is not Verdict.OK and report.verdict not in EXPLAINED:
        return replace(report, claim={}, outputs={})
    names, page = _expected(report.verdict, job)
    checked: dict[str, Path] = {name: report.outputs[name] for name in names if name in report.outputs}
    seen = report.verification
    if seen is None:
        checked = _moved(checked, job.scratch / "verify" / "in")
        seen = _second_box(report, job, checked, sandbox, limits=limits, killed=killed)
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
        claim = asked(seen.claim) if page == OutputName.REVIEW_PAGE else _counted(seen.claim, job)
        written = (page, OutputName.PROFILE, OutputName.REJECTS)
        made = {name: seen.outputs[name] for name in written if name in seen.outputs}
        empty = _empty_lines((name for name in names if name not in checked), job.scratch)
        checked = empty | {name: path for name, path in checked.items() if name not in _FOR_VERIFIER}
        return replace(spent, claim=claim, outputs=checked | made, passes=passes(seen.claim))
    verdict, message = _refusal(seen)
    suspicion = seen.suspicion
    if job.trusted and verdict is Verdict.BAD_OUTPUT:
        verdict = Verdict.ENGINE_FAILED
        suspicion = suspicion or f"outputs of the engine alone were refused: {message}"
    return replace(spent, verdict=verdict, message=message, where={}, suspicion=suspicion, by_host=seen.by_host)


def _empty_lines(names: Iterable[str], folder: Path) -> dict[str, Path]:
    """Files of JSON lines without a line: what a box leaves empty is not collected, and verified to have no row."""
    files = {name: folder / f"empty-{name}" for name in names if name.endswith(".jsonl") and is_data(name)}
    for file in files.values():
        file.touch()
    return files


def _second_box(
    report: BoxReport,
    job: BoxOrder,
    outputs: dict[str, Path],
    sandbox: Sandbox,
    *,
    limits: BoxLimits,
    killed: Killed,
) -> BoxReport:
    verify = verification_order(job_order(job), job.retention_seconds).ended(report.verdict)
    order = BoxOrder(
        label=job.label,
        tenant=job.tenant,
        scratch=job.scratch / "verify",
        job=replace(verify, written={name: Path("in", name) for name in outputs}),
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
    return (*VERIFIED_FILES, OutputName.REJECTS) if OutputName.REJECTED_ROWS in job.outputs else VERIFIED_FILES


def _file_mb(job: BoxOrder) -> int:
    return max(REPORT_MB, job.limits.file_mb) if OutputName.REJECTED_ROWS in job.outputs else REPORT_MB


def _expected(verdict: Verdict, job: BoxOrder) -> tuple[tuple[str, ...], OutputName]:
    """The outputs of a job that ended so, and the page that is made of them."""
    if verdict is Verdict.NEEDS_REVIEW:
        return (OutputName.REVIEW,), OutputName.REVIEW_PAGE
    audit = (OutputName.ARTIFACT, *_FOR_VERIFIER)
    data = () if verdict in EXPLAINED else filter(is_data, job.outputs)
    return (*audit, *data), OutputName.REPORT


def asked(claim: Json) -> Json:
    """How many questions a review has."""
    return {"questions": _whole(claim.get("questions")) or 1}


def _declared(job: BoxOrder) -> tuple[str, ...]:
    """The names of the manifest's fields."""
    listed = job_order(job).manifest.get("fields")
    return tuple(str(one["name"]) for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()


def _counted(claim: Json, job: BoxOrder) -> Json:
    """The verified counts of a job, and the rows of its split files by labels and values that the manifest declares."""
    split = VerifiedOptions.parse(job_order(job).manifest).split
    rows = claim.get("split")
    counted = counts(claim, _declared(job))
    if split is None or not isinstance(rows, list) or len(rows) != len(split.labels):
        return counted
    parts = zip(split.labels, (*split.values, None), map(_whole, rows), strict=True)
    return counted | {"split": [{"name": name, "value": value, "rows": n} for name, value, n in parts]}


def counts(claim: Json, fields: Sequence[str] = ()) -> Json:
    """Known counts as whole numbers, and names of `fields`; nothing else: no text from a box reaches the table."""
    findings, left_out = _known(claim, "findings"), _known(claim, "left_out")
    named = claim.get("empty_fields")
    empty = [name for name in fields if name in named] if isinstance(named, list) else []
    drift = _whole(claim.get("drift"))
    return (
        ({"drift": drift} if drift else {})
        | ({"rows_used": _whole(claim["rows_used"])} if "rows_used" in claim else {})
        | ({"empty_fields": empty[:_MOST_FIELDS]} if empty else {})
        | {name: _whole(claim.get(name)) for name in _COUNTS}
        | {
            "left_out": {name: n for name in _LEFT_OUT if (n := _whole(left_out.get(name)))},
            "findings": {name: _whole(findings.get(name)) for name in _FINDINGS},
        }
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else 0


def _known(claim: Json, name: str) -> Json:
    value = claim.get(name)
    return value if isinstance(value, dict) else {}


def passes(claim: Json) -> dict[str, float]:
    """How long each known pass took, in seconds."""
    times = _known(claim, "passes")
    return {
        name: float(seconds)
        for name in TIMED_PASSES
        if isinstance(seconds := times.get(name), int | float) and 0 <= seconds < _MOST_SECONDS
    }


def _moved(outputs: dict[str, Path], folder: Path) -> dict[str, Path]:
    """Move the outputs of a dead box to the inputs of the next; no other process has them open."""
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    return {name: path.rename(folder / name) for name, path in outputs.items()}


def job_order(box: BoxOrder) -> Order:
    """The order of a box that runs a job."""
    if not isinstance(box.job, Order):
        raise TypeError("an order to verify is not verified itself")
    return box.job


def verification_order(job: Order, retention_seconds: float = 0.0) -> VerifyOrder:
    """What the runner knows about the job; the outputs are checked against it."""
    options = VerifiedOptions.parse(job.manifest)
    return VerifyOrder(
        job=job.job,
        params=job.params,
        config_digest=job.config_digest,
        overlays=job.overlays,
        known=tuple(one.facts for one in job.inputs),
        title=options.title,
        formats=options.formats,
        decision=None if job.decision is None else job.decision.facts(),
        answer_to=job.answer_to,
        memories=tuple(one.facts() for one in job.memories),
        why=options.why,
        data=options.data,
        split=options.split,
        removes=options.removes,
        report=ReportTerms(
            language=options.language,
            shows_values=options.shows_values,
            drop_to=(job.answer_to or "").rpartition("/")[0],
            retention_seconds=int(retention_seconds),
        ),
    )


def _refusal(seen: BoxReport) -> tuple[Verdict, str]:
    """The verdict on outputs that failed verification: never our fault if the bytes caused it."""
    message = seen.message[:_MAX_MESSAGE]
    if seen.verdict in _OURS:
        return seen.verdict, message
    if seen.verdict in _LIMITS:
        return seen.verdict, f"while its outputs were verified: {message}"
    if seen.suspicion:
        return Verdict.BAD_OUTPUT, "its outputs broke the verification"
    if seen.verdict is Verdict.BAD_OUTPUT:
        return Verdict.BAD_OUTPUT, message
    return Verdict.BAD_OUTPUT, f"its outputs could not be verified: {seen.verdict}"
