"""The intake: a look at the bucket becomes jobs. Level-triggered: events are hints, the bucket is what counts.

Any arrival order gives the same jobs, because each look reads what is there now and plans everything that the
changed keys touch; whoever brings the last missing piece makes the transition.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from core.drops import (
    MAX_PACKAGE_BYTES,
    Package,
    Workflow,
    find_package,
    is_placeholder,
    make_workflow,
    plan,
    unselected,
    without_input,
)
from core.errors import (
    KeyRefused,
    ManifestInvalid,
    ObjectChanged,
    ObjectMissing,
    ObjectTooLarge,
    PackageRefused,
    Problem,
)
from core.jobs import NO_WORKFLOW, Job, State, move
from core.keys import CONFIGS, INBOX, SHARED, is_manifest, is_spreadsheet, place, rejected_key
from core.manifests import MAX_MANIFEST_BYTES, parse_manifest
from core.packages import check_zip
from core.ports import Clock, JobQuery, JobTable, ObjectInfo, ObjectStore, WorkQueue
from handlers.recording import Recorded, Recorder
from handlers.views import ListedView, LiveView, View

_CACHED_MANIFESTS = 2000


@dataclass
class Report:
    """What one look did, for logs and `ade sweep`."""

    objects: int = 0
    recorded: Recorded = field(default_factory=Recorded)
    rejected: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Intake:
    def __init__(
        self, store: ObjectStore, table: JobTable, queue: WorkQueue, clock: Clock, *, settle_seconds: float = 1.0
    ) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._settle = settle_seconds
        self._recorder = Recorder(table, queue, clock)
        self._parsed: OrderedDict[tuple[str, str], Workflow | ManifestInvalid] = OrderedDict()

    def changed(self, keys: Iterable[str]) -> Report:
        """Keys that came, changed or went. A key that belongs nowhere is refused and named in the report."""
        report, view = Report(), LiveView(self._store)
        gone: set[str] = set()
        for key in keys:
            report.objects += 1
            try:
                self._changed(view, key, gone, report)
            except KeyRefused as error:
                report.refused.append(str(error))
        for tenant in sorted(gone):
            self._forget_vanished(view, tenant)
        return report

    def sweep(self) -> Report:
        """Look through the whole inbox and record what events lost."""
        report = Report()
        shared = list(self._store.objects(SHARED))
        for prefix in self._store.folder(INBOX).folders:
            tenant = prefix.removeprefix(INBOX).rstrip("/")
            objects = list(self._store.objects(prefix))
            report.objects += len(objects)
            try:
                place(f"{prefix}x")
                standing = list(self._store.objects(f"{CONFIGS}{tenant}/"))
                self._sweep_tenant(ListedView([*objects, *standing, *shared]), tenant, report)
            except KeyRefused as error:
                report.refused.append(str(error))
        self._forget_vanished(LiveView(self._store), None)
        return report

    def _sweep_tenant(self, view: View, tenant: str, report: Report) -> None:
        workflows = [*self._local(view.below(f"{INBOX}{tenant}/"), report), *self._standing(view, tenant, report)]
        self._tell_rejected(view, {o.key for o in view.below(f"{INBOX}{tenant}/") if is_manifest(place(o.key).name)})
        taken: set[str] = set()
        for workflow in workflows:
            taken |= self._plan_all(view, workflow, report)
        for info in view.below(f"{INBOX}{tenant}/"):
            used = info.key in taken or any(w.uses(info.key) for w in workflows)
            if not used and is_spreadsheet(place(info.key).name):
                self._recorder.place(self._unselected(view, info), report.recorded)

    def _changed(self, view: View, key: str, gone: set[str], report: Report) -> None:
        if key.startswith(CONFIGS):
            if not key.startswith(SHARED):
                at = place(key, CONFIGS)
                for workflow in self._standing(view, at.tenant, report):
                    if key.startswith(workflow.folder):
                        self._plan_all(view, workflow, report)
                self._tell_rejected(view, {key} if is_manifest(at.name) else set())
                return
            self._replan_awaiting(view, report)
            return
        at = place(key)
        info = view.head(key)
        if info is None:
            gone.add(at.tenant)
        if is_manifest(at.name):
            self._tell_rejected(view, {key})
            for workflow in self._local([info] if info else [], report):
                self._plan_all(view, workflow, report)
            return
        self._arrived(view, key, info, report)

    def _arrived(self, view: View, key: str, info: ObjectInfo | None, report: Report) -> None:
        at, selected = place(key), False
        beside = [o for folder in _ancestors(at.tenant, at.folder) for o in view.beside(folder)]
        for workflow in [*self._local(beside, report), *self._standing(view, at.tenant, report)]:
            if workflow.uses(key):
                selected = True
                self._plan_all(view, workflow, report)
            elif info is not None and workflow.selects(key):
                selected = True
                self._plan_some(view, workflow, info, report)
        if not selected and info is not None and is_spreadsheet(at.name):
            self._recorder.place(self._unselected(view, info), report.recorded)

    def _plan_all(self, view: View, workflow: Workflow, report: Report) -> set[str]:
        """Plan every input set of a workflow; the keys it takes."""
        inputs = list(self._inputs(view, workflow))
        sets: dict[str, list[ObjectInfo]] = {}
        for info in inputs:
            sets.setdefault(workflow.subject(info.key), []).append(info)
        for primaries in sets.values():
            self._plan(view, workflow, primaries, report)
        if not inputs and not workflow.standing:
            self._recorder.place(without_input(workflow, now=self._clock.now()), report.recorded)
        for key in workflow.auxiliary_keys():
            if key.startswith(INBOX) and (found := view.head(key)) is not None:
                self._recorder.give_way(unselected(found, now=self._clock.now(), reason=""))
        return {i.key for i in inputs}

    def _plan_some(self, view: View, workflow: Workflow, info: ObjectInfo, report: Report) -> None:
        """Plan the one input set that an object belongs to."""
        primaries = [info]
        if workflow.manifest.inputs.per == "drop":
            subject = workflow.subject(info.key)
            primaries = [i for i in self._inputs(view, workflow) if workflow.subject(i.key) == subject] or [info]
        self._plan(view, workflow, primaries, report)

    def _inputs(self, view: View, workflow: Workflow) -> Iterator[ObjectInfo]:
        found = view.below(workflow.base) if workflow.standing or workflow.deep else view.beside(workflow.base)
        return (i for i in found if workflow.selects(i.key) and not is_manifest(place(i.key).name))

    def _plan(self, view: View, workflow: Workflow, primaries: list[ObjectInfo], report: Report) -> None:
        now = self._clock.now()
        auxiliary = {k: found for k in workflow.auxiliary_keys() if (found := view.head(k)) is not None}
        try:
            workflow, package = self._packaged(view, workflow)
        except ManifestInvalid:
            return
        for job in plan(workflow, primaries, package=package, auxiliary=auxiliary, now=now):
            # Many objects, uploaded one by one: start when the last of them has been quiet for a moment.
            many = workflow.manifest.inputs.per == "drop" or len(package.refs) > 1
            delay = max(0.0, min(self._settle, job.stamp + self._settle - now)) if many else 0.0
            self._recorder.record(job, standing=workflow.standing, delay=delay, done=report.recorded)
        for info in primaries:
            self._recorder.give_way(unselected(info, now=now, reason=""))
        if not workflow.standing:
            self._recorder.give_way(without_input(workflow, now=now))

    def _packaged(self, view: View, workflow: Workflow) -> tuple[Workflow, Package]:
        """A workflow with its package: the one it names, or what stands beside it as `config/` or `config.zip`."""
        package = self._package(view, workflow)
        unnamed = workflow.unnamed_zip
        if unnamed is not None and not package.refs and view.head(unnamed) is not None:
            workflow = workflow.with_zip()
            package = self._package(view, workflow)
        return workflow, package

    def _package(self, view: View, workflow: Workflow) -> Package:
        at = workflow.config_place
        there = list(view.below(at)) if at.endswith("/") else [o for o in [view.head(at)] if o is not None]
        package = find_package(workflow, there)
        if not at.endswith("/") and there:
            try:
                check_zip(self._store.read(at, version=there[0].version, limit=MAX_PACKAGE_BYTES))
            except (PackageRefused, ObjectTooLarge) as error:
                raise ManifestInvalid(
                    [Problem("$.config", f"{at}: {error}", "a plain zip; see docs/rule-author.md")]
                ) from None
            except (ObjectMissing, ObjectChanged):
                return Package((), 0.0, missing=at)
        return package

    def _unselected(self, view: View, info: ObjectInfo) -> Job:
        at = place(info.key)
        reason = f"no manifest selects {info.key}"
        for folder in _ancestors(at.tenant, at.folder):
            for other in view.beside(folder):
                if is_manifest(place(other.key).name) and isinstance(self._load(other), ManifestInvalid):
                    reason = f"manifest {other.key} does not validate; see {rejected_key(other.key)}"
        return unselected(info, now=self._clock.now(), reason=reason)

    def _local(self, objects: Iterable[ObjectInfo], report: Report) -> list[Workflow]:
        return self._valid((o for o in objects if is_manifest(place(o.key).name)), report)

    def _standing(self, view: View, tenant: str, report: Report) -> list[Workflow]:
        prefix = f"{CONFIGS}{tenant}/"
        return self._valid((o for o in view.below(prefix) if is_manifest(place(o.key, CONFIGS).name)), report)

    def _valid(self, manifests: Iterable[ObjectInfo], report: Report) -> list[Workflow]:
        found = []
        for info in manifests:
            loaded = self._load(info)
            if isinstance(loaded, Workflow):
                found.append(loaded)
            elif loaded is not None and info.key not in report.rejected:
                report.rejected.append(info.key)
        return found

    def _load(self, info: ObjectInfo) -> Workflow | ManifestInvalid | None:
        """A manifest at its version, parsed once; None where it is gone again."""
        known = self._parsed.get((info.key, info.version))
        if known is None:
            try:
                body = self._store.read(info.key, version=info.version, limit=MAX_MANIFEST_BYTES)
                known = make_workflow(parse_manifest(body), info)
            except ManifestInvalid as error:
                known = error
            except ObjectTooLarge as error:
                known = ManifestInvalid([Problem("$", str(error), f"at most {MAX_MANIFEST_BYTES} bytes")])
            except (ObjectMissing, ObjectChanged):
                return None
            self._parsed[info.key, info.version] = known
            if len(self._parsed) > _CACHED_MANIFESTS:
                self._parsed.popitem(last=False)
        if isinstance(known, Workflow) and known.info != info:
            known = Workflow(known.manifest, info, known.tenant, known.folder, known.standing)
        return known

    def _tell_rejected(self, view: View, manifest_keys: set[str]) -> None:
        """Write what is wrong with the manifests of a folder beside where their outputs would go, or take it back."""
        for target in sorted({rejected_key(k) for k in manifest_keys}):
            folders = {k[: k.rfind("/") + 1] for k in manifest_keys if rejected_key(k) == target}
            problems = [
                {"manifest": info.key, **problem.as_dict()}
                for folder in sorted(folders)
                for info in view.beside(folder)
                if is_manifest(info.key.rpartition("/")[2])
                for problem in self._problems(view, info)
            ]
            there = self._store.head(target)
            if problems:
                body = json.dumps({"rejected": 1, "problems": problems}, indent=2, ensure_ascii=False).encode()
                self._store.put(target, body)
            elif there is not None:
                self._store.delete(target)

    def _problems(self, view: View, info: ObjectInfo) -> list[Problem]:
        loaded = self._load(info)
        if isinstance(loaded, Workflow):
            try:
                self._packaged(view, loaded)
            except ManifestInvalid as error:
                return error.problems
            return []
        return loaded.problems if loaded is not None else []

    def _replan_awaiting(self, view: View, report: Report) -> None:
        """A shared package changed: whoever waits may be complete now."""
        cursor: str | None = None
        while True:
            page = self._table.page(JobQuery(states=frozenset({State.AWAITING})), cursor=cursor)
            for job in page.jobs:
                info = view.head(job.manifest.key) if job.manifest else None
                for workflow in self._valid([info] if info else [], report):
                    self._plan_all(view, workflow, report)
            cursor = page.cursor
            if cursor is None:
                return

    def _forget_vanished(self, view: View, tenant: str | None) -> None:
        """Rows that wait for company of an object that its sender took back."""
        cursor: str | None = None
        while True:
            page = self._table.page(JobQuery(states=frozenset({State.AWAITING}), tenant=tenant), cursor=cursor)
            for job in page.jobs:
                needs = [i.ref.key for i in job.inputs if i.role == "primary"]
                needs += [job.manifest.key] if job.manifest and job.workflow != NO_WORKFLOW else []
                if all(view.head(key) is not None for key in needs):
                    continue
                if is_placeholder(job):
                    self._table.remove(job)
                else:
                    reason = "its sender took the input back"
                    self._table.replace(job, move(job, State.SKIPPED, now=self._clock.now(), reason=reason))
            cursor = page.cursor
            if cursor is None:
                return


def _ancestors(tenant: str, folder: str) -> list[str]:
    """Prefixes of a folder and of every folder above it, up to the tenant's own."""
    parts = [p for p in folder.split("/") if p]
    return [f"{INBOX}{tenant}/" + "".join(f"{p}/" for p in parts[:n]) for n in range(len(parts), -1, -1)]
