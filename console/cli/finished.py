"""Finished results as commands name them: a folder as `ade try --out` writes it, or a job of the bucket."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from console.cli import wire
from console.desk.boxes import boxes
from core.budget import Budget, plain
from core.errors import ObjectMissing, UsageError
from core.jobs import Job
from core.keys import job_folder
from core.manifests import Limits
from core.settings import Settings
from infra.wiring import Stack
from runner.comparisons import FinishedResult, Inspections
from runner.documents import ended_as, status_text
from runner.engine.contract import OutputName
from runner.staging import box_limits

_RESULT = Budget(bytes=4 * 1024 * 1024, values=100_000)
_LARGEST = 1 << 40


@contextlib.contextmanager
def finished_results(names: Sequence[str]) -> Iterator[tuple[Inspections, list[FinishedResult]]]:
    """The results that these names stand for, and what reads them. Raises UsageError for what is not one."""
    settings = Settings.from_env(os.environ)
    with tempfile.TemporaryDirectory(prefix="ade-results-") as scratch, contextlib.ExitStack() as opened:
        stack: Stack | None = None
        results: list[FinishedResult] = []
        for n, name in enumerate(names):
            if Path(name).is_dir():
                results.append(_in_folder(Path(name)))
                continue
            if os.sep in name:
                raise UsageError(f"no such folder: {name}; name a folder that `ade try --out` wrote, or a job")
            if stack is None:
                stack = opened.enter_context(wire.opened())
            results.append(_of_job(stack, wire.make_control(stack).find(name), Path(scratch, str(n))))
        # No rules run: a box that reads needs no more of this machine than it gives.
        sandbox = opened.enter_context(boxes(replace(settings, sandbox_min_level="none"), Path(scratch, "run")))
        yield Inspections(sandbox.sandbox, box_limits(Limits(), settings), Path(scratch, "inspections")), results


def _in_folder(folder: Path) -> FinishedResult:
    """Raises UsageError if the folder holds no result."""
    path = folder / OutputName.RESULT
    try:
        with path.open("rb") as file:
            result = plain(file.read(_RESULT.bytes + 1), _RESULT)
    except FileNotFoundError:
        raise UsageError(f"{folder} has no result.json; name a folder that `ade try --out` wrote, or a job") from None
    except ValueError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(result, dict) or not isinstance(result.get("status"), str):
        raise UsageError(f"{path} is not a result.json of ade: it does not say how a job ended")
    failure = result.get("error")
    verdict = failure.get("verdict") if isinstance(failure, dict) else None
    status = status_text(result["status"], verdict if isinstance(verdict, str) else None)
    return FinishedResult.in_folder(folder, status)


def _of_job(stack: Stack, job: Job, folder: Path) -> FinishedResult:
    """Fetch what a job published."""
    folder.mkdir(parents=True)
    for name in (OutputName.WORKBOOK, OutputName.ARTIFACT):
        with contextlib.suppress(ObjectMissing):
            stack.store.fetch(job_folder(job) + name, folder / name, limit=_LARGEST)
    found = FinishedResult.in_folder(folder, ended_as(job))
    if found.facts is None:
        raise UsageError(f"job {job.job_id} is {job.state} and has published no artifact.json; nothing can be compared")
    return found
