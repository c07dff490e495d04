"""Test cases of a config package: files whose results a person has read, run again and compared (`ade test`).

A case is a folder `tests/<case>/` beside the manifest, with `input.*` (or several files in `input/`, under their own
names) and what is expected of it: `expected.csv` for the rows, `expected.json` for the rest. A sweep has such a pair
for each combination of parameters. Cases run one box each, forked from one warm process, on whatever isolation this
machine gives: the rules are the author's own.
"""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from secrets import token_hex

from console.desk.boxes import boxes
from console.desk.files import Desk, DeskSource, inbox_folder, lay_out, read_manifest
from console.desk.trials import TENANT, Trial, TriedTable, trials_of
from core.drops import TESTS
from core.errors import UsageError
from core.jobs import Job
from core.keys import DECISION, is_ignored
from core.manifests import Limits
from core.settings import Settings
from core.verdicts import FAULTS, Fault, Verdict
from runner.attempt import Boxes
from runner.boxes import Isolation, Killed
from runner.comparisons import FinishedResult, Inspections, ResultUnreadable
from runner.documents import ended_as
from runner.engine.contract import BY_SOURCE, InspectName, Json
from runner.staging import box_limits

INPUT = "input"
_MAX_NAME = 60
# Ends that say something about this machine or this moment, and nothing about the package.
_NO_RESULT = frozenset(
    {*(v for v, fault in FAULTS.items() if fault is Fault.OURS), Verdict.INPUT_GONE, Verdict.CANCELLED}
)


class CaseVerdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NEW = "new"  # nothing is expected of it yet
    BROKEN = "broken"  # it cannot be run or compared


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    folder: Path
    inputs: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseRun:
    """One job of a case: what is expected, and what came out."""

    case: Case
    params: str  # which combination of a sweep; empty if there is one job
    verdict: CaseVerdict
    seconds: float
    status: str = ""
    comparison: Json | None = None
    message: str = ""
    expected: bytes = b""  # expected.json as it would be written
    expected_rows: bytes = b""

    @property
    def name(self) -> str:
        return f"{self.case.name} [{self.params}]" if self.params else self.case.name

    @property
    def is_changed(self) -> bool:
        """Whether an update would write it."""
        return self.verdict in (CaseVerdict.FAILED, CaseVerdict.NEW)

    def write(self) -> list[Path]:
        """Make what came out what is expected."""
        facts, rows = _expected_paths(self.case, self.params)
        facts.write_bytes(self.expected)
        rows.write_bytes(self.expected_rows)
        return [facts, rows]


def find_cases(manifest: Path, names: Sequence[str] = ()) -> list[Case]:
    """The cases beside a manifest; `names`: of those to find, or patterns. Raises UsageError if there are none."""
    place = manifest.parent / TESTS
    folders = sorted(path for path in place.iterdir() if _is_case(path)) if place.is_dir() else []
    chosen = [path for path in folders if not names or any(fnmatchcase(path.name, one) for one in names)]
    if not chosen:
        known = ", ".join(path.name for path in folders[:10])
        what = (
            f"no case in {place} is called {' or '.join(names)}; there are: {known}"
            if folders
            else (
                f"{place} has no cases; make a folder {place / 'first'} with a file input.xlsx or input.csv, "
                "and run `ade test --update`"
            )
        )
        raise UsageError(what)
    return [Case(path.name, path, _inputs(path)) for path in chosen]


def _is_case(path: Path) -> bool:
    """Whether a folder is meant as a case: it has an input, or files that are no Python."""
    if not path.is_dir() or path.name.startswith((".", "_")):
        return False
    files = (file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    return bool(_inputs(path)) or any(file.suffix != ".py" for file in files)


def _inputs(folder: Path) -> tuple[Path, ...]:
    beside = [path for path in folder.glob(f"{INPUT}.*") if not path.name.endswith(DECISION)]
    inside = (folder / INPUT).iterdir() if (folder / INPUT).is_dir() else ()
    return tuple(sorted(path for path in (*beside, *inside) if path.is_file() and not is_ignored(path.name)))


def write_case(
    manifest: Path, sample: Path, *, settings: Settings, name: str = "sample", file_name: str | None = None
) -> list[Path]:
    """Make a case of a sample: copy it, run it, and expect what comes out. Returns the files that it wrote.

    `file_name`: what the sample is called in the case, if its rules depend on that; `input.*` otherwise. A person
    should read expected.csv before relying on it. Raises UsageError, ManifestInvalid or SandboxUnavailable.
    """
    folder = manifest.parent / TESTS / name
    target = folder / f"{INPUT}{sample.suffix.lower()}" if file_name is None else folder / INPUT / file_name
    if folder.exists():
        raise UsageError(f"{folder} exists already; choose another name for the case")
    target.parent.mkdir(parents=True)
    shutil.copyfile(sample, target)
    paths = [target]
    with case_runner(manifest, settings) as runner:
        for run in runner.run(Case(name, folder, (target,))):
            if run.verdict is CaseVerdict.BROKEN:
                raise UsageError(f"{folder}: {run.message}")
            paths += run.write()
    return paths


def _never() -> Verdict | None:
    return None


@contextlib.contextmanager
def case_runner(manifest: Path, settings: Settings, *, killed: Killed = _never) -> Iterator["CaseRunner"]:
    """A runner for the cases of a package. Its boxes need nothing of this machine, and have what it offers."""
    bucket = settings.storage_data_dir / "bucket"
    read = read_manifest(manifest).model_copy(update={"subscribe": (), "tenants": ()})
    desk = lay_out(manifest, read, folder=inbox_folder(TENANT, ""), bucket=bucket)
    easy = replace(settings, sandbox="jail", sandbox_min_level="none")
    with tempfile.TemporaryDirectory(prefix="ade-test-") as scratch, boxes(easy, Path(scratch, "run")) as sandbox:
        yield CaseRunner(desk, easy, sandbox, Path(scratch, "cases"), killed)


class CaseRunner:
    """Runs the cases of one package. `run` may be called from several threads."""

    def __init__(self, desk: Desk, settings: Settings, sandbox: Boxes, scratch: Path, killed: Killed) -> None:
        self._desk = desk
        self._settings = settings
        self._boxes = sandbox
        self._scratch = scratch
        self._killed = killed
        limits = box_limits(Limits(), settings)
        place = scratch / "inspections"
        self._inspections = Inspections(sandbox.sandbox, limits, place, killed=killed, tenant=TENANT)

    @property
    def isolation(self) -> Isolation:
        return self._boxes.sandbox.isolation()

    @property
    def workflow(self) -> str:
        return self._desk.workflow.manifest.name

    def run(self, case: Case) -> list[CaseRun]:
        """Run each job of a case and compare it with what is expected."""
        began = time.monotonic()
        folder = self._desk.workflow.folder
        files = {folder + path.name: path for path in case.inputs}
        files[self._desk.workflow.info.key] = self._desk.manifest_path
        places = {path.parent for path in case.inputs}
        files |= {folder + path.name: path for at in places for path in at.glob(f"*{DECISION}")}
        scratch = self._scratch / token_hex(8)
        scratch.mkdir(parents=True)
        try:
            self._check(case)
            trials = list(trials_of(self._desk, files, scratch / "out"))
            table = TriedTable(
                self._settings, self._boxes, DeskSource({**self._desk.files, **files}), scratch, traced=True
            )
            runs = [self._run(table, case, trial, _params(trial.job, trials)) for trial in trials]
            return [*runs, *_stale(case, [run.params for run in runs], began)]
        except UsageError as error:
            return [_broken(case, "", str(error), began)]
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _check(self, case: Case) -> None:
        if not case.inputs:
            raise UsageError(
                f"{case.folder} has no input; call its file {INPUT}.xlsx, {INPUT}.csv or so, or put it into {INPUT}/"
            )
        if len(case.inputs) > 1 and self._desk.workflow.manifest.inputs.per == "file":
            raise UsageError(
                f"{case.folder} has {len(case.inputs)} inputs and the manifest takes one file at a time; "
                'make a case of each, or use "per": "drop"'
            )

    def _run(self, table: TriedTable, case: Case, trial: Trial, params: str) -> CaseRun:
        began = time.monotonic()
        # Two cases may have the same file, and so the same id; boxes are named after it.
        job = table.run(Trial(replace(trial.job, job_id=f"case-{token_hex(8)}"), trial.out), stopped=self._killed)
        status = ended_as(job)
        if job.error is not None and job.error.verdict in _NO_RESULT:
            return replace(_broken(case, params, job.error.message, began), status=status)
        result = FinishedResult.in_folder(trial.out, status)
        try:
            expected, rows = self._inspections.describe(result)
            found = _expected(case, params)
            same = found is not None and _bytes(found.facts) == expected and _bytes(found.rows) == rows
            comparison = (
                self._inspections.compare(found, result, by=BY_SOURCE, values=True)
                if found is not None and not same
                else None
            )
        except ResultUnreadable as error:
            return replace(_broken(case, params, str(error), began), status=status)
        same = same or (comparison is not None and bool(comparison["same"]))
        verdict = CaseVerdict.PASSED if same else CaseVerdict.NEW if found is None else CaseVerdict.FAILED
        return CaseRun(
            case=case,
            params=params,
            verdict=verdict,
            seconds=time.monotonic() - began,
            status=status,
            comparison=comparison,
            message="" if job.error is None else job.error.message,
            expected=expected,
            expected_rows=rows,
        )


def _broken(case: Case, params: str, message: str, began: float) -> CaseRun:
    return CaseRun(
        case=case, params=params, verdict=CaseVerdict.BROKEN, seconds=time.monotonic() - began, message=message
    )


def _stale(case: Case, params: Sequence[str], began: float) -> list[CaseRun]:
    """What is expected of jobs that the case does not have: of a combination that the sweep no longer makes."""
    used = {_expected_paths(case, one)[0] for one in params}
    others = sorted(path for path in case.folder.glob("expected*.json") if path not in used)
    return [_broken(case, "", f"{path} belongs to no job of this case; delete it", began) for path in others]


def _bytes(path: Path | None) -> bytes:
    return b"" if path is None else path.read_bytes()


def _expected(case: Case, params: str) -> FinishedResult | None:
    facts, rows = _expected_paths(case, params)
    if not facts.is_file():
        return None
    return FinishedResult(rows=rows if rows.is_file() else None, facts=facts, status="")


def _expected_paths(case: Case, params: str) -> tuple[Path, Path]:
    more = f"-{params}" if params else ""
    names = (InspectName.EXPECTED, InspectName.EXPECTED_ROWS)
    facts, rows = (case.folder / name.replace("expected", f"expected{more}") for name in names)
    return facts, rows


def _params(job: Job, trials: Sequence[Trial]) -> str:
    """The parameters by which a job differs from the others of its case."""
    if len(trials) < 2:
        return ""
    first = trials[0].job.params
    varying = [name for name in job.params if any(one.job.params.get(name) != first.get(name) for one in trials)]
    words = "-".join(f"{name}={job.params[name]}" for name in sorted(varying))
    return "".join(c if c.isalnum() or c in "=-._" else "_" for c in words)[:_MAX_NAME]
