"""Resolves corrected rejects: the inputs of the jobs whose rejects a file says it corrects.

A box that finds keys of `rejects.xlsx` in an input says which job they name. That is a claim like any other: the job
must be of the same tenant and workflow, and its inputs must still be in the bucket at their pinned versions. A
corrected file may correct the rejects of a result that itself came from one; the chain is followed to the first drop.

Several people may correct copies of one file. So the row of the first drop lists its corrections, in the order in which
attempts at them began, and each attempt reads all that are listed by then, whatever became of their results. The
result of the last one listed is therefore the most complete, and `latest.json` names that one.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge, StoreUnavailable
from core.jobs import Correction, CorrectionOf, InputRef, Job, State
from core.keys import corrected_name, job_folder
from core.ports import Fetched, JobTable
from core.verdicts import Verdict
from infra.queueing import mutate
from runner.engine.contract import CORRECTED, InputFile, OriginJob
from runner.staging import MAX_ROUNDS, Staged, StagedSource, StagingFailed, sender_of, stage_decision, stage_file

MAX_CORRECTIONS = 64  # corrected files of one drop
_WITHDRAWN = frozenset({State.CANCELLED, State.SKIPPED})
# The corrected file itself may be what ended its job, so it must not end those of others.
_HARMFUL = frozenset(
    {
        Verdict.INPUT_UNREADABLE, Verdict.MENDS, Verdict.CPU, Verdict.MEMORY, Verdict.WALL_CLOCK, Verdict.FILE_SIZE,
        Verdict.PROCESSES, Verdict.SIGNAL, Verdict.ENGINE_FAILED,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CorrectionInput:
    """A corrected input, the job whose rejects it corrects, and that job's inputs by name, in key order."""

    item: InputRef
    owner: Job
    job: str
    inputs: tuple[str, ...]
    knows: tuple[int, ...] = ()  # those before it that were in the result which it corrects, by number
    earlier: bool = False  # of another drop
    needed: bool = True  # the job's own, or part of a result whose rejects its own correct

    @property
    def identity(self) -> tuple[str, str]:
        return self.item.ref.key, self.item.ref.digest


@dataclass
class OriginInputs:
    """What a job over corrected files really reads."""

    primaries: list[InputRef] = field(default_factory=list)
    corrected: list[CorrectionInput] = field(default_factory=list)
    roots: list[Job] = field(default_factory=list)  # the jobs of the first drops
    place: int = 0  # among the corrections of the first drop
    lost: list[str] = field(default_factory=list)  # names of earlier corrections that cannot be read

    def merge(self, other: "OriginInputs") -> None:
        self.add(other.primaries)
        known = {file.identity for file in self.corrected}
        self.corrected += [file for file in other.corrected if file.identity not in known]
        self.roots += [root for root in other.roots if root.job_id not in [known.job_id for known in self.roots]]

    def add(self, primaries: Iterable[InputRef]) -> None:
        known = {item.ref.key for item in self.primaries}
        self.primaries += [item for item in primaries if item.ref.key not in known]


class Origins:
    """Finds what corrected files belong to, and lists them with the drop that they correct."""

    def __init__(self, table: JobTable) -> None:
        self._table = table

    def find(self, job: Job, files: Mapping[str, str]) -> OriginInputs:
        """The inputs behind a job's corrected files (key -> the job whose rejects it corrects), and what earlier
        corrections of the same inputs there are; raises StagingFailed."""
        behind = Expansion(self._table.get)
        found = behind.of(job, files)
        listed: list[Correction] = []
        for root in found.roots:
            listed += self._listed(root, job, files, found.corrected)
        found.place = next((c.place for c in listed if c.job_id == job.job_id), 0)
        self._add_earlier(found, job, listed, behind)
        return found

    def _listed(
        self, root: Job, job: Job, files: Mapping[str, str], chain: Sequence[CorrectionInput]
    ) -> list[Correction]:
        """The corrections of a drop, this one last. An attempt that is repeated is listed again."""
        owners = {file.owner.job_id: file.owner for file in chain if file.owner.job_id != job.job_id}

        def change(row: Job) -> Job:
            others = [c for c in row.corrections if c.job_id != job.job_id]
            if len(row.corrections) >= MAX_CORRECTIONS and len(others) == len(row.corrections):  # not listed before
                name = next(item.name for item in job.inputs if item.ref.key in files)
                problem = f"{name} corrects rows of {row.subject}, which {MAX_CORRECTIONS} files corrected before"
                raise StagingFailed(Verdict.MENDS, f"{problem}; drop the whole file again")
            known = {c.job_id for c in others}
            place = max((c.place for c in row.corrections), default=0)
            for owner in owners.values():
                if owner.job_id not in known and owner.mends is not None:  # listed by no program before this one
                    place += 1
                    others.append(_correction(owner, dict(owner.mends.files), place))
            return replace(row, corrections=(*others, _correction(job, files, place + 1)))

        written = mutate(self._table, root.job_id, change)
        if written is None:
            raise StoreUnavailable(f"job {root.job_id} could not list its correction; try again")
        return list(written.corrections)

    def _add_earlier(self, found: OriginInputs, job: Job, listed: Sequence[Correction], behind: "Expansion") -> None:
        """Add the files of other corrections, from the oldest to the newest, and none before what it was made of."""
        places = {c.job_id: c.place for c in listed}
        rows = self._table.get_all([c.job_id for c in listed if c.job_id != job.job_id])
        own = {file.identity: file for file in found.corrected}
        first: dict[tuple[str, str], int] = {}  # when each was listed first
        order: dict[tuple[str, str], CorrectionInput] = {}
        for listing in sorted(listed, key=lambda c: (c.stamp, c.place)):
            is_own = listing.job_id == job.job_id
            files = found.corrected if is_own else _files_of(rows.get(listing.job_id), listing, found, behind)
            for file in files:
                place = places.get(file.owner.job_id, listing.place)
                first[file.identity] = min(place, first.get(file.identity, place))
                order.setdefault(file.identity, own.get(file.identity, file))
        found.corrected = [
            replace(
                file,
                knows=tuple(n for n, other in enumerate(order) if n < at and first[other] <= places.get(file.job, 0)),
                earlier=file.owner.job_id != job.job_id,
                needed=file.identity in own,
            )
            for at, file in enumerate(order.values())
        ]


def _files_of(row: Job | None, listing: Correction, found: OriginInputs, behind: "Expansion") -> list[CorrectionInput]:
    """The files of an earlier correction, those that it was made of first; none if it was withdrawn."""
    if row is None:
        found.lost.append(f"job {listing.job_id}")  # removed, or forgotten after its result had expired
        return []
    if row.state in _WITHDRAWN:
        return []
    claims = {row.inputs[n].ref.key: claim for n, claim in listing.claims if n < len(row.inputs)}
    names = [item.name for item in row.inputs if item.ref.key in claims]
    if row.error is not None and row.ended and row.error.verdict in _HARMFUL:
        found.lost += names
        return []
    try:
        return behind.of(row, claims).corrected
    except StagingFailed:
        found.lost += names
        return []


def _correction(job: Job, files: Mapping[str, str], place: int) -> Correction:
    claims = tuple((n, files[item.ref.key]) for n, item in enumerate(job.inputs) if item.ref.key in files)
    return Correction(place=place, job_id=job.job_id, stamp=job.stamp, claims=claims)


class Expansion:
    """What is behind corrected files. Each job on the way is read once, however many files name it."""

    def __init__(self, find: Callable[[str], Job | None]) -> None:
        self._find = find
        self._known: dict[str, tuple[Job, OriginInputs]] = {}

    def of(self, job: Job, files: Mapping[str, str], way: tuple[str, ...] = ()) -> OriginInputs:
        """The inputs behind a job's corrected files, and the corrected files on the way; raises StagingFailed."""
        own = [item for item in job.inputs if item.role == "primary"]
        plain = {item.ref.key: item for item in own if item.ref.key not in files}
        found = OriginInputs()
        for item in own:
            if item.ref.key in plain:
                continue
            claim = files[item.ref.key]
            behind = self._behind(job, item, claim, (*way, job.job_id))
            for first in behind.primaries:
                if (now := plain.get(first.ref.key)) is not None and now.ref.digest != first.ref.digest:
                    problem = f"and {first.name} of that job was replaced in this drop; take {item.name} out of it"
                    raise _refused(item, claim, problem)
            found.merge(behind)
            found.corrected.append(CorrectionInput(item, job, claim, tuple(i.name for i in behind.primaries)))
        found.add(plain.values())
        if not found.roots:
            found.roots.append(job)
        return found

    def _behind(self, job: Job, item: InputRef, claim: str, way: tuple[str, ...]) -> OriginInputs:
        """The inputs of the job whose rejects a file corrects."""
        origin, known = self._known.get(claim, (None, None))
        origin = _checked(job, item, claim, origin or self._find(claim))
        if claim in way or len(way) > MAX_ROUNDS:
            problem = "which would correct itself, or was corrected too often; drop the whole file again"
            raise _refused(item, claim, problem)
        if known is None:
            known = self.of(origin, dict(origin.mends.files) if origin.mends else {}, way)
            self._known[claim] = (origin, known)
        return known


def _checked(job: Job, item: InputRef, claim: str, origin: Job | None) -> Job:
    if origin is None or origin.tenant != job.tenant:  # another tenant's job is as unknown as none
        raise _refused(item, claim, "of which nothing is known any more; drop the whole file again")
    if origin.workflow != job.workflow:
        problem = (
            f"a job of the workflow {origin.workflow}, and this is {job.workflow}; drop it where that one selects it"
        )
        raise _refused(item, claim, problem)
    if not any(i.role == "primary" for i in origin.inputs):
        raise _refused(item, claim, "which has no inputs; drop the whole file again")
    return origin


def _refused(item: InputRef, claim: str, why: str) -> StagingFailed:
    return StagingFailed(Verdict.MENDS, f"{item.name} corrects the rejects of job {claim}, {why}")


def stage_origin(
    store: StagedSource, job: Job, staged: Staged, origin: OriginInputs, folder: Path, *, file_mb: int
) -> Staged:
    """A staged job over the inputs that its corrected files belong to; what an earlier box left behind is removed."""
    for left in ("out", "verify"):
        shutil.rmtree(folder / left, ignore_errors=True)
    order = staged.order
    present = {item.ref: one for item, one in zip(job.inputs, order.inputs, strict=True)}
    lost, numbered = list(origin.lost), count()

    def bring(item: InputRef, file: CorrectionInput | None = None) -> InputFile:
        if item.ref in present:
            return present[item.ref]  # as it was when the attempt began, whatever replaced it since
        path = Path("in", f"origin-{next(numbered)}")
        got = _fetched(store, item, file, folder / path, file_mb=file_mb)
        return InputFile(role=item.role, name=item.name, path=path, size=got.size, sha256=got.sha256)

    inputs = [*(bring(item) for item in origin.primaries), *order.auxiliary]
    numbers: dict[int, int] = {}  # of a corrected file among all, and among those that are there
    for n, file in enumerate(origin.corrected):
        try:
            found = bring(file.item, file)
        except StagingFailed:
            if file.needed:
                raise
            lost.append(file.item.name)
            continue
        corrects = OriginJob(
            job=file.job,
            inputs=tuple(file.inputs),
            key=file.item.ref.key,
            knows=tuple(numbers[k] for k in file.knows if k in numbers),
            earlier=file.earlier,
        )
        inputs.append(replace(found, role=CORRECTED, corrects=corrects))
        numbers[n] = len(numbers)
    decision = order.decision
    if decision is None:  # what a person decided about the file counts for its corrections, too
        others = [file.owner for file in reversed(origin.corrected) if file.owner.job_id != job.job_id] + origin.roots
        decision = next(filter(None, (stage_decision(store, other, folder) for other in others)), None)
    sender = sender_of(origin.roots[0])  # what was learnt from the first file's sender counts
    whole = replace(order, inputs=tuple(inputs), decision=decision, sender=sender, previous=None, lost=tuple(lost))
    return replace(staged, order=whole)


def _fetched(store: StagedSource, item: InputRef, file: CorrectionInput | None, to: Path, *, file_mb: int) -> Fetched:
    """Fetch an input of an earlier job, or the copy of it that the job published; raises StagingFailed."""
    to.unlink(missing_ok=True)
    try:
        return stage_file(store, item.ref, to, file_mb=file_mb)
    except StagingFailed as error:
        if error.verdict is not Verdict.INPUT_GONE:
            raise
        if file is not None and (got := _fetched_copy(store, file, to)) is not None:
            return got
        problem = f"{item.name} is needed to put corrected rows back, but is gone or was replaced ({error})"
        raise StagingFailed(Verdict.MENDS, f"{problem}; drop the whole file again") from error


def _fetched_copy(store: StagedSource, file: CorrectionInput, to: Path) -> Fetched | None:
    name = next(corrected_name(n, item) for n, item in enumerate(file.owner.inputs) if item.ref == file.item.ref)
    facts = next((f for f in file.owner.files if f.name == name), None)
    if facts is None:
        return None
    to.unlink(missing_ok=True)
    try:
        got = store.fetch(job_folder(file.owner) + name, to, limit=facts.size)
    except (ObjectMissing, ObjectChanged, ObjectTooLarge):
        return None
    return got if got.sha256 == facts.sha256 else None


def corrected_files(job: Job, staged: Staged, files: Mapping[str, str], folder: Path) -> dict[str, Path]:
    """Copies of a job's corrected files, to be published: the originals may be replaced by other corrections."""
    paths = [one.path for one in staged.order.inputs]
    return {corrected_name(n, item): folder / paths[n] for n, item in enumerate(job.inputs) if item.ref.key in files}


def correction_of(files: Mapping[str, str], origin: OriginInputs) -> CorrectionOf:
    """What the row says of it: which files hold corrected rejects, and the first drop."""
    first = origin.roots[0]
    return CorrectionOf(
        files=tuple(sorted(files.items())),
        job_id=first.job_id,
        subject=first.subject,
        stamp=first.stamp,
        created_at=first.created_at,
        place=origin.place,
    )
