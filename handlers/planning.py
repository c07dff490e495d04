"""In: a workflow and the objects of one scan. Out: its jobs, handed to the recorder, and the scan's report."""

import functools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from posixpath import basename

from core.drops import MAX_INPUTS, MAX_SWEPT_REFS, Package, Workflow, plan, too_many, unselected, without_input
from core.errors import ManifestInvalid
from core.jobs import Job
from core.keys import INBOX, is_decision, is_manifest, is_spreadsheet, place, rejected_key
from core.ports import Clock, ObjectInfo, ObjectStore
from handlers.decisions import Decisions
from handlers.recording import FollowUps, Planned, Recorded, Recorder
from handlers.workflows import BucketView, LiveView, Packages, Workflows, folder_of, manifests_at

_AT_ONCE = 2000  # jobs that are planned together: a few MiB, however many files and combinations there are
_FEW = 150  # inputs that always fit into a row, however long their keys are
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
    generation: Callable[[str], int | None] = lambda _tenant: None
    removed_from: set[str] = field(default_factory=set)  # tenants that removed an object
    folders: set[str] = field(default_factory=set)  # whose rejected.json may be out of date
    planned: set[tuple[str, str, str]] = field(default_factory=set)  # manifest, version, subject already planned


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
    settle_seconds: float

    def plan_workflow(self, scan: Scan, workflow: Workflow) -> set[str]:
        """Plan every input set of a workflow; returns the keys it selects."""
        inputs = list(self.inputs(scan.view, workflow))
        sets: dict[str, list[ObjectInfo]] = {}
        for info in inputs:
            sets.setdefault(workflow.subject(info.key), []).append(info)
        self._plan_sets(scan, workflow, list(sets.values()))
        if not inputs and not workflow.standing:
            self._place(scan, without_input(workflow, now=self.clock.now()))
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
            if (workflow.info.key, workflow.info.version, subject) in scan.planned:
                return  # planned with another object of the same drop
            primaries = [i for i in self.inputs(scan.view, workflow) if workflow.subject(i.key) == subject] or [info]
        self._plan_sets(scan, workflow, [primaries])

    def place_unselected(self, scan: Scan, info: ObjectInfo) -> None:
        """Record a placeholder for a spreadsheet that no manifest selects."""
        at = place(info.key)
        reason = f"no manifest selects {info.key}"
        for folder in ancestors(at.tenant, at.folder):
            for other in manifests_at(scan.view, folder):
                if isinstance(self.workflows.load(other), ManifestInvalid):
                    reason = f"manifest {other.key} does not validate; see {rejected_key(other.key)}"
        self._place(scan, unselected(info, now=self.clock.now(), reason=reason))

    def _place(self, scan: Scan, placeholder: Job) -> None:
        self.recorder.place(placeholder, scan.report.recorded, scan.followups)

    def inputs(self, view: BucketView, workflow: Workflow) -> Iterator[ObjectInfo]:
        """What a workflow selects of what is there."""

        def wanted(key: str) -> bool:
            name = basename(key)
            return workflow.selects(key) and not (is_manifest(name) or is_decision(name) or workflow.too_long(key))

        if workflow.standing or workflow.deep:
            return (i for i in view.below(workflow.base) if wanted(i.key))
        return iter(view.infos([key for key in view.names(workflow.base) if wanted(key)]))

    def _plan_sets(self, scan: Scan, workflow: Workflow, sets: list[list[ObjectInfo]]) -> None:
        """Plan input sets that this scan has not planned yet, and record their jobs."""
        now, info = self.clock.now(), workflow.info
        fresh = [s for s in sets if (info.key, info.version, workflow.subject(s[0].key)) not in scan.planned]
        scan.planned |= {(info.key, info.version, workflow.subject(s[0].key)) for s in fresh}
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
            self._place(scan, too_many(workflow, workflow.subject(large[0].key), count, now=now))
            fresh.remove(large)
        at_once = max(1, _AT_ONCE // workflow.manifest.combinations)
        for some in (fresh[n : n + at_once] for n in range(0, len(fresh), at_once)):
            jobs = [
                self.decisions.pinned(
                    scan.view, workflow, package, s, plan(workflow, s, package=package, auxiliary=auxiliary, now=now)
                )
                for s in some
            ]
            planned = [self._planned(workflow, package, of_set, now) for of_set in jobs]
            self.recorder.record(
                planned, standing=workflow.standing, done=scan.report.recorded, followups=scan.followups
            )
        scan.followups.drop(unselected(i, now=now, reason="") for s in fresh for i in s)
        if not workflow.standing and fresh:
            scan.followups.drop([without_input(workflow, now=now)])
        if workflow.manifest.inputs.per == "drop" or workflow.manifest.combinations > 1:
            scan.followups.drop(too_many(workflow, workflow.subject(s[0].key), 0, now=now) for s in fresh)
        if scan.followups.full:
            self.recorder.settle(scan.followups)

    def _planned(self, workflow: Workflow, package: Package, jobs: list[Job], now: float) -> Planned:
        first = jobs[0]
        # Objects that are uploaded one by one: start once the last upload is `settle_seconds` old.
        many = workflow.manifest.inputs.per == "drop" or len(package.refs) > 1
        delay = max(0.0, min(self.settle_seconds, first.stamp + self.settle_seconds - now)) if many else 0.0
        return Planned(jobs, functools.cache(lambda: self._is_current(workflow, first)), delay)

    def _is_current(self, workflow: Workflow, job: Job) -> bool:
        """Whether the bucket, read again, still holds exactly what a job was planned from."""
        view = LiveView(self.store)
        info = view.head(workflow.info.key)
        loaded = self.workflows.load(info) if info is not None else None
        if not isinstance(loaded, Workflow):
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
        (now,) = plan(loaded, primaries, package=package, auxiliary={}, now=self.clock.now(), most=1)
        return now.generation == job.generation


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
