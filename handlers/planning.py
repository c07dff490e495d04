"""In: a workflow and the objects of one scan. Out: its jobs, handed to the recorder, and the scan's report."""

import functools
import hashlib
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from posixpath import basename

from core.drops import (
    MAX_INPUTS,
    MAX_SWEPT_REFS,
    Package,
    Workflow,
    misfitting,
    needs_metadata,
    plan,
    too_many,
    unselected,
    without_input,
)
from core.errors import ManifestInvalid, RowUnreadable
from core.jobs import NO_WORKFLOW, Job
from core.keys import INBOX, is_decision, is_manifest, is_spreadsheet, rejected_key
from core.keys import place as place_of
from core.memories import own_key
from core.ports import Clock, Marks, ObjectInfo, ObjectStore
from handlers.decisions import Decisions
from handlers.generations import Generations
from handlers.overlays import Overlays
from handlers.recording import FollowUps, Planned, Recorded, Recorder
from handlers.workflows import BucketView, LiveView, Packages, Workflows, folder_of, manifests_at

_FEW = 150  # inputs that always fit into a row, however long their keys are
_AT_ONCE = 2000  # jobs that are planned and recorded together: a few MiB, however many files and combinations there are
_PLANS = "1"  # raise it where the same objects lead to other jobs than before
_ROW_BYTES = 300_000  # for the inputs of one row; a DynamoDB item holds 400 KB


@dataclass
class Report:
    """What one scan did, for logs and `ade sweep`."""

    objects: int = 0
    recorded: Recorded = field(default_factory=Recorded)
    rejected: list[str] = field(default_factory=list)  # keys of invalid manifests
    refused: list[str] = field(default_factory=list)  # objects that will never be read, each with the reason
    failed: list[str] = field(default_factory=list)  # what this scan could not read, each with the reason


def report_dict(report: Report) -> dict[str, list[str]]:
    """The documented JSON shape of a report."""
    done = report.recorded
    return {
        "created": [j.job_id for j in done.created],
        "queued": [j.job_id for j in done.queued],
        "superseded": [j.job_id for j in done.superseded],
        "met": [j.job_id for j in done.met],
        "rejected": report.rejected,
        "refused": report.refused,
        "failed": report.failed,
    }


@dataclass
class Scan:
    """One scan in progress, over the keys of one folder or over a whole tenant."""

    view: BucketView
    report: Report
    followups: FollowUps
    generations: Generations
    removed_from: set[str] = field(default_factory=set)  # tenants that removed an object
    folders: set[str] = field(default_factory=set)  # whose rejected.json may be out of date
    # Tenant, manifest, version and subject that are already planned.
    planned: set[tuple[str, str, str, str]] = field(default_factory=set)
    marks: Marks | None = None  # of a sweep: what need not be planned again
    again: bool = False  # also what an earlier version of a standing workflow has processed


@dataclass(frozen=True)
class Planner:
    """Turns a workflow's inputs into jobs. Safe to share between threads."""

    store: ObjectStore
    clock: Clock
    workflows: Workflows
    packages: Packages
    recorder: Recorder
    _: KW_ONLY
    decisions: Decisions
    overlays: Overlays
    settle_seconds: float

    def plan_workflow(self, scan: Scan, workflow: Workflow) -> set[str]:
        """Plan every input set of a workflow; returns the keys it selects."""
        steps = self.steps(scan, workflow)
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                return set(ended.value)

    def steps(self, scan: Scan, workflow: Workflow) -> Generator[None, None, set[str]]:
        """`plan_workflow` in steps, between which others may be served."""
        inputs = list(self.inputs(scan.view, workflow))
        sets: dict[str, list[ObjectInfo]] = {}
        for info in inputs:
            sets.setdefault(workflow.subject(info.key), []).append(info)
        yield from self._plan_sets(scan, workflow, list(sets.values()))
        if not inputs and not workflow.standing:
            self.place(scan, without_input(workflow, now=self.clock.now()))
        auxiliary = [key for key in workflow.auxiliary_keys() if key.startswith(INBOX)]
        # Until this manifest came, these files were reported as unread.
        scan.folders |= {
            folder_of(k) for k in (*auxiliary, *(i.key for i in inputs)) if not is_spreadsheet(basename(k))
        }
        scan.followups.drop(unselected(i, now=self.clock.now(), reason="") for i in scan.view.infos(auxiliary))
        return {i.key for i in inputs}

    def plan_input(self, scan: Scan, workflow: Workflow, info: ObjectInfo) -> None:
        """Plan the one input set that an object belongs to."""
        if workflow.too_long(info.key):
            return
        primaries = [info]
        if workflow.manifest.inputs.per == "drop":
            subject = workflow.subject(info.key)
            if _planned_as(workflow, info.key) in scan.planned:
                return  # planned with another object of the same drop
            primaries = [i for i in self.inputs(scan.view, workflow) if workflow.subject(i.key) == subject] or [info]
        for _ in self._plan_sets(scan, workflow, [primaries]):
            pass

    def unplaced(self, scan: Scan, infos: list[ObjectInfo]) -> Iterator[tuple[Job, bytes | None]]:
        """Placeholders for spreadsheets that no manifest selects, each with what it is planned from (see `LineMark`).

        Without those that are as a sweep found them in order.
        """
        invalid = functools.cache(functools.partial(self._invalid_above, scan))
        wanted: dict[str, tuple[bytes, ObjectInfo, str]] = {}
        for info in infos:
            at = place_of(info.key)
            reason = invalid(at.tenant, at.folder) or f"no manifest selects {info.key}"
            line = f"{at.tenant}/{at.path}|{NO_WORKFLOW}"
            wanted[line] = (_digest(_facts(info), reason), info, reason)
        marked = scan.marks.marked(wanted) if scan.marks is not None else {}
        for line, (planned_from, info, reason) in wanted.items():
            if marked.get(line) != planned_from:
                placeholder = unselected(info, now=self.clock.now(), reason=reason)
                yield placeholder, planned_from if scan.marks is not None else None

    def _invalid_above(self, scan: Scan, tenant: str, folder: str) -> str:
        reason = ""
        for above in ancestors(tenant, folder):
            for other in manifests_at(scan.view, above):
                if isinstance(self.workflows.load(other), ManifestInvalid):
                    reason = f"manifest {other.key} does not validate; see {rejected_key(other.key)}"
        return reason

    def place(self, scan: Scan, placeholder: Job, planned_from: bytes | None = None) -> None:
        """Record a placeholder."""
        self.recorder.place(placeholder, scan.report.recorded, scan.followups, planned_from)
        if scan.followups.full:
            self.recorder.follow_up(scan.followups)

    def inputs(self, view: BucketView, workflow: Workflow) -> Iterator[ObjectInfo]:
        """What a workflow selects of what is there."""

        def wanted(key: str) -> bool:
            name = basename(key)
            return workflow.selects(key) and not (is_manifest(name) or is_decision(name) or workflow.too_long(key))

        if workflow.standing or workflow.deep:
            return (i for i in view.below(workflow.base) if wanted(i.key))
        return iter(view.infos([key for key in view.names(workflow.base) if wanted(key)]))

    def _plan_sets(self, scan: Scan, workflow: Workflow, sets: list[list[ObjectInfo]]) -> Iterator[None]:
        """Plan input sets that this scan has not planned yet, and record their jobs, some at a time."""
        now, info = self.clock.now(), workflow.info
        fresh = [s for s in sets if _planned_as(workflow, s[0].key) not in scan.planned]
        scan.planned |= {_planned_as(workflow, s[0].key) for s in fresh}
        if not fresh:
            return
        if workflow.manifest.inputs.per == "drop" and (
            hidden := [k for k in scan.view.unreadable if workflow.selects(k)]
        ):
            # An incomplete set must not be processed as if it were complete.
            scan.report.failed.append(f"{info.key!r}: part of its drop is refused: {scan.view.unreadable[hidden[0]]}")
            return
        try:
            workflow, package = self.packages.find(scan.view, workflow)
        except ManifestInvalid:
            return
        auxiliary = {i.key: i for i in scan.view.infos(list(workflow.auxiliary_keys()))}
        for large in [s for s in fresh if _too_large(s, workflow, package)]:
            count = len(large) + (len(package.refs) if workflow.manifest.combinations > 1 else 0)
            self.place(scan, too_many(workflow, workflow.subject(large[0].key), count, now=now))
            fresh.remove(large)
        fresh = self._with_usable_overlays(scan, workflow, fresh, now)
        self.workflows.recall(scan.view, own_key(workflow.tenant, workflow.manifest.name), scan.generations)
        source = _Source.of(scan.view, workflow, package, auxiliary)
        failed: RowUnreadable | None = None
        at_once = max(1, _AT_ONCE // workflow.manifest.combinations)
        for at in range(0, len(fresh), at_once):
            try:
                self._plan_some(scan, source, fresh[at : at + at_once])
            except RowUnreadable as error:
                failed = failed or error
            yield
        if failed is not None:
            raise failed

    def _with_usable_overlays(
        self, scan: Scan, workflow: Workflow, sets: list[list[ObjectInfo]], now: float
    ) -> list[list[ObjectInfo]]:
        """The sets without those whose overlay cannot be used; these wait, unless they were processed before."""
        usable = []
        for one in sets:
            overlays = self.overlays.of(scan.view, workflow, one[0].key, scan.generations)
            misfit = self.overlays.misfit(workflow, overlays)
            if misfit is None:
                usable.append(one)
            else:
                waiting = misfitting(workflow, one[0], misfit, now=now)
                if scan.again or not self.recorder.is_processed(waiting, one[0].modified):
                    self.place(scan, waiting)
        return usable

    def _plan_some(self, scan: Scan, source: "_Source", fresh: list[list[ObjectInfo]]) -> None:
        """Plan input sets, except those that are as a sweep found them in order, and record their jobs."""
        now, workflow, package = self.clock.now(), source.workflow, source.package
        origins: list[bytes] = []
        if scan.marks is not None:
            lines = [f"{workflow.tenant}/{workflow.subject(s[0].key)}|{workflow.manifest.name}" for s in fresh]
            digests = [source.digest(scan.view, s, self.overlays.of(scan.view, workflow, s[0].key)) for s in fresh]
            marked = scan.marks.marked(lines)
            left = [n for n, line in enumerate(lines) if marked.get(line) != digests[n]]
            fresh, origins = [fresh[n] for n in left], [digests[n] for n in left]
        if needs_metadata(workflow.manifest):
            fresh = [[self._described(info) for info in s] for s in fresh]
        overlays = [self.overlays.of(scan.view, workflow, s[0].key) for s in fresh]
        jobs = [
            self.decisions.pinned(
                scan.view,
                workflow,
                package,
                s,
                plan(
                    workflow,
                    s,
                    package=package,
                    auxiliary=source.auxiliary,
                    now=now,
                    overlays=of_set,
                ),
            )
            for s, of_set in zip(fresh, overlays, strict=True)
        ]
        planned = [self._planned(workflow, package, s, of_set, now) for s, of_set in zip(fresh, jobs, strict=True)]
        lines_found = self.recorder.record(
            planned, standing=workflow.standing and not scan.again, done=scan.report.recorded, followups=scan.followups
        )
        in_order = {
            line.planned.line: line.mark(origin)
            for line, origin in zip(lines_found, origins, strict=False)
            if line is not None and line.is_in_order
        }
        scan.followups.mark(in_order)
        _drop_placeholders(scan, workflow, fresh, now)
        changed = [s[0] for s, of_set in zip(fresh, overlays, strict=True) if of_set]
        scan.followups.drop(misfitting(workflow, info, "", now=now) for info in changed)
        if scan.followups.full:
            self.recorder.follow_up(scan.followups)

    def _described(self, info: ObjectInfo) -> ObjectInfo:
        """An object with its metadata, unless it has just been replaced: then its own scan plans the new version."""
        now = self.store.head(info.key) if info.metadata is None else None
        return now if now is not None and now.version == info.version else info

    def _planned(
        self, workflow: Workflow, package: Package, primaries: list[ObjectInfo], jobs: list[Job], now: float
    ) -> Planned:
        first = jobs[0]
        # Objects that are uploaded one by one: start once the last upload is `settle_seconds` old.
        many = workflow.manifest.inputs.per == "drop" or len(package.refs) > 1
        delay = max(0.0, min(self.settle_seconds, first.stamp + self.settle_seconds - now)) if many else 0.0
        dropped = max(info.modified for info in primaries)
        return Planned(jobs, functools.cache(lambda: self._is_current(workflow, first)), delay, dropped)

    def _is_current(self, workflow: Workflow, job: Job) -> bool:
        """Whether the bucket, read again, still holds exactly what a job was planned from."""
        view = LiveView(self.store)
        info = view.head(workflow.info.key)
        found = self.workflows.load(info) if info is not None else None
        loaded = found.for_tenant(job.tenant) if isinstance(found, Workflow) else None
        if loaded is None:
            return False
        if loaded.manifest.inputs.per == "file":
            primaries = view.infos([i.ref.key for i in job.inputs if i.role == "primary"])
        else:
            primaries = [i for i in self.inputs(view, loaded) if loaded.subject(i.key) == job.subject]
        if not primaries:
            return False
        try:
            loaded, package = self.packages.find(view, loaded)
        except ManifestInvalid:
            return False
        overlays = self.overlays.of(view, loaded, primaries[0].key)
        (now,) = plan(loaded, primaries, package=package, auxiliary={}, now=self.clock.now(), most=1, overlays=overlays)
        return now.generation == job.generation


@dataclass(frozen=True, slots=True)
class _Source:
    """What the input sets of one workflow are planned from, besides the inputs themselves."""

    workflow: Workflow
    package: Package
    auxiliary: dict[str, ObjectInfo]
    _digest: bytes

    @classmethod
    def of(cls, view: BucketView, workflow: Workflow, package: Package, auxiliary: dict[str, ObjectInfo]) -> "_Source":
        memories = [*workflow.manifest.mapping.memory, own_key(workflow.tenant, workflow.manifest.name)]
        parts = [_facts(workflow.info), repr(package), *map(_facts, auxiliary.values())]
        return cls(workflow, package, auxiliary, _digest(_PLANS, *parts, *map(_facts, view.infos(memories))))

    def digest(self, view: BucketView, primaries: list[ObjectInfo], overlays: Sequence[ObjectInfo]) -> bytes:
        """Of everything that the jobs of an input set are planned from."""
        folders = dict.fromkeys(folder_of(info.key) for info in primaries)
        decisions = [key for folder in folders for key in sorted(view.decisions(folder))]
        parts = [*primaries, *view.infos(decisions), *overlays]
        return _digest(self._digest.hex(), *map(_facts, parts))


def _planned_as(workflow: Workflow, key: str) -> tuple[str, str, str, str]:
    return workflow.tenant, workflow.info.key, workflow.info.version, workflow.subject(key)


def _facts(info: ObjectInfo) -> str:
    return f"{info.key}\0{info.version}\0{info.modified!r}\0{sorted(info.metadata.items()) if info.metadata else ''}"


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\n".join(parts).encode(errors="surrogateescape"), digest_size=16).digest()


def _too_large(primaries: list[ObjectInfo], workflow: Workflow, package: Package) -> bool:
    """Whether the inputs of one job would not fit into a row of every table: too many, or with very long keys.

    Each combination of a sweep has a row of its own, which names them all and the files of the config.
    """
    combinations = workflow.manifest.combinations
    swept = (len(primaries) + len(package.refs)) * combinations > MAX_SWEPT_REFS
    if len(primaries) > MAX_INPUTS or (combinations > 1 and swept):
        return True
    if len(primaries) < _FEW:
        return False
    named = "".join(f"{i.key}{i.version}{i.digest}" for i in primaries)
    return len(zlib.compress(named.encode())) > _ROW_BYTES


def ancestors(tenant: str, folder: str) -> list[str]:
    """Prefixes of a folder and of every folder above it, up to the tenant's own."""
    parts = [p for p in folder.split("/") if p]
    return [f"{INBOX}{tenant}/" + "".join(f"{p}/" for p in parts[:n]) for n in range(len(parts), -1, -1)]


def _drop_placeholders(scan: Scan, workflow: Workflow, planned: list[list[ObjectInfo]], now: float) -> None:
    """Drop the rows that said what input sets were waiting for: these are planned."""
    scan.followups.drop(unselected(i, now=now, reason="") for s in planned for i in s)
    if not workflow.standing and planned:
        scan.followups.drop([without_input(workflow, now=now)])
    if workflow.manifest.inputs.per == "drop" or workflow.manifest.combinations > 1:
        scan.followups.drop(too_many(workflow, workflow.subject(s[0].key), 0, now=now) for s in planned)
