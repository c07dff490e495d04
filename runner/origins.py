"""Resolves corrected rejects: the inputs of the jobs whose rejects a file says it corrects.

A box that finds keys of `rejects.xlsx` in an input says which job they name. That is a claim like any other: the job
must be of the same tenant and workflow, and its inputs must still be in the bucket at their pinned versions. A
corrected file may correct the rejects of a result that itself came from one; the chain is followed to the first drop.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.jobs import InputRef, Job, Mends
from core.ports import BoxReport
from core.verdicts import Verdict
from runner.staging import Staged, StagedSource, StagingFailed, stage_file

MAX_ROUNDS = 16  # results that may be made of one another's corrected rejects


@dataclass
class OriginInputs:
    """What a job over corrected files really reads."""

    primaries: list[InputRef] = field(default_factory=list)
    mended: list["MendedFile"] = field(default_factory=list)
    first: Job | None = None  # the job of the first drop

    def take(self, other: "OriginInputs") -> None:
        self.add(other.primaries)
        self.mended += [file for file in other.mended if file.item.ref not in [m.item.ref for m in self.mended]]
        self.first = self.first or other.first

    def add(self, primaries: list[InputRef]) -> None:
        known = {item.ref.key for item in self.primaries}
        self.primaries += [item for item in primaries if item.ref.key not in known]


@dataclass(frozen=True, slots=True)
class MendedFile:
    """A corrected input, the job whose rejects it corrects, and that job's inputs by name, in key order."""

    item: InputRef
    job: str
    inputs: tuple[str, ...]


def find_origin(job: Job, files: Mapping[str, str], find: Callable[[str], Job | None]) -> OriginInputs:
    """The inputs behind a job's corrected files (key -> the job whose rejects it corrects); raises StagingFailed."""
    return _expanded(job, files, find, (job.job_id,))


def _expanded(
    job: Job, files: Mapping[str, str], find: Callable[[str], Job | None], way: tuple[str, ...]
) -> OriginInputs:
    own = [item for item in job.inputs if item.role == "primary"]
    found = OriginInputs()
    for item in own:
        if item.ref.key not in files:
            continue
        claim = files[item.ref.key]
        origin = _checked(job, item, claim, find(claim))
        if claim in way or len(way) > MAX_ROUNDS:
            raise _refused(
                item, claim, "which would correct itself, or was corrected too often; drop the whole file again"
            )
        behind = _expanded(origin, dict(origin.mends.files) if origin.mends else {}, find, (*way, claim))
        found.take(behind)
        found.mended.append(MendedFile(item, claim, tuple(i.name for i in behind.primaries)))
    found.add([item for item in own if item.ref.key not in files])
    found.first = found.first or job
    return found


def _checked(job: Job, item: InputRef, claim: str, origin: Job | None) -> Job:
    if origin is None or origin.tenant != job.tenant:  # another tenant's job is as unknown as none
        raise _refused(item, claim, "of which nothing is known any more; drop the whole file again")
    if origin.workflow != job.workflow:
        said = f"a job of the workflow {origin.workflow}, and this is {job.workflow}; drop it where that one selects it"
        raise _refused(item, claim, said)
    if not any(i.role == "primary" for i in origin.inputs):
        raise _refused(item, claim, "which has no inputs; drop the whole file again")
    return origin


def _refused(item: InputRef, claim: str, why: str) -> StagingFailed:
    return StagingFailed(Verdict.MENDS, f"{item.name} corrects the rejects of job {claim}, {why}")


def mended_input(job: Job, report: BoxReport, known: Mapping[str, str]) -> dict[str, str] | None:
    """The input in which a box found corrected rejects, and the job it names; None if the box did not stop for one."""
    if report.verdict is not Verdict.MENDS:
        return None
    name, claim = report.where.get("input"), report.where.get("job")
    item = next((i for i in job.inputs if i.role == "primary" and i.name == name and i.ref.key not in known), None)
    return {item.ref.key: claim} if item is not None and isinstance(claim, str) and len(known) < MAX_ROUNDS else None


def stage_origin(store: StagedSource, staged: Staged, origin: OriginInputs, folder: Path, *, file_mb: int) -> Staged:
    """The same job over the inputs that its corrected files belong to; what the first box left behind is removed."""
    for left in ("out", "verify"):
        shutil.rmtree(folder / left, ignore_errors=True)
    inputs: list[dict[str, Any]] = []

    def bring(item: InputRef, **more: object) -> None:
        path = f"in/origin-{len(inputs)}"
        (folder / path).unlink(missing_ok=True)
        try:
            got = stage_file(store, item.ref, folder / path, file_mb=file_mb)
        except StagingFailed as error:
            if error.verdict is not Verdict.INPUT_GONE:
                raise
            said = f"{item.name} is needed to put corrected rows back, but is gone or was replaced ({error})"
            raise StagingFailed(Verdict.MENDS, f"{said}; drop the whole file again") from error
        given = {"role": item.role, "name": item.name, "path": path, "size": got.size, "sha256": got.sha256}
        inputs.append(given | more)

    for item in origin.primaries:
        bring(item)
    inputs += [given for given in staged.order["inputs"] if given["role"] == "auxiliary"]
    for file in origin.mended:
        bring(file.item, role="mended", mends={"job": file.job, "inputs": list(file.inputs)})
    order = {name: value for name, value in staged.order.items() if name != "previous"}
    return replace(staged, order=order | {"inputs": inputs})


def mends_of(files: Mapping[str, str], origin: OriginInputs) -> Mends | None:
    """What the row says of it; which files hold corrected rejects, and the first drop."""
    first = origin.first
    if first is None:
        return None
    return Mends(
        files=tuple(sorted(files.items())),
        job_id=first.job_id,
        subject=first.subject,
        stamp=first.stamp,
        created_at=first.created_at,
    )
