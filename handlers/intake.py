"""The intake: a look at the bucket becomes jobs. Level-triggered: events are hints, the bucket is what counts.

Any arrival order gives the same jobs, because each look reads what is there now and plans everything that the
changed keys touch; whoever brings the last missing piece makes the transition. Keys of one folder are looked at
together and in order; folders are independent of each other and may be looked at side by side.
"""

import contextlib
import functools
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from posixpath import basename

from core.drops import MAX_INPUTS, Package, Workflow, is_placeholder, plan, too_many, unselected, without_input
from core.errors import KeyRefused, ManifestInvalid, ObjectRefused, StoreUnavailable
from core.jobs import NO_WORKFLOW, Job, State, move
from core.keys import (
    CONFIGS,
    INBOX,
    MAX_KEY_BYTES,
    SHARED,
    is_ignored,
    is_manifest,
    is_spreadsheet,
    place,
    refusal,
    rejected_key,
)
from core.ports import Clock, JobQuery, JobTable, ObjectInfo, ObjectStore, WorkQueue
from handlers.recording import Due, Planned, Recorded, Recorder
from handlers.rejections import Rejections, home, is_unread, unread_line
from handlers.views import ListedView, LiveView, View
from handlers.workflows import Packages, Workflows, manifests_at
from infra.lanes import Lanes
from infra.statuses import Statuses, status_key
from infra.wiring import Stack

_REMOTE_LANES = 8
_LONG = MAX_KEY_BYTES // 4  # keys of outputs cannot be too long where the input's is shorter
_FEW = 150  # inputs that fit whatever their keys are
_ROW_BYTES = 300_000  # of what a row says of its inputs; an item of DynamoDB holds 400 KB
_SILENT_TENANTS = 3  # so many in a row that could not be looked at: it is the store, not they


@dataclass
class Report:
    """What one look did, for logs and `ade sweep`."""

    objects: int = 0
    recorded: Recorded = field(default_factory=Recorded)
    rejected: list[str] = field(default_factory=list)  # keys of manifests that do not validate
    refused: list[str] = field(default_factory=list)  # objects that nobody will read, each with the reason
    failed: list[str] = field(default_factory=list)  # what could not be looked at now, each with the reason


def report_dict(report: Report) -> dict[str, list[str]]:
    """The documented shape of a look at the bucket."""
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
class IntakeLook:
    """One look under way: at the keys of one folder, or at a whole tenant."""

    view: View
    report: Report
    due: Due
    generation: Callable[[str], int | None] = lambda _tenant: None
    gone: set[str] = field(default_factory=set)  # tenants that took something back
    folders: set[str] = field(default_factory=set)  # whose rejected.json may be out of date
    planned: set[tuple[str, str, str]] = field(default_factory=set)  # manifest, version, subject: once is enough


class Intake:
    """Safe to share between threads."""

    def __init__(
        self,
        store: ObjectStore,
        table: JobTable,
        queue: WorkQueue,
        clock: Clock,
        *,
        settle_seconds: float = 1.0,
        lanes: int = 1,
    ) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._settle = settle_seconds
        self._workflows = Workflows(store, clock)
        self._packages = Packages(store)
        self._rejections = Rejections(store, self._workflows, self._packages)
        # Folders wait for their records, so each of the two has lanes of its own.
        self._folders, self._records = Lanes(lanes), Lanes(lanes)
        self._statuses = Statuses(store, table)
        self._recorder = Recorder(table, queue, clock, self._records, self._statuses)

    @classmethod
    def over(cls, stack: Stack) -> "Intake":
        """An intake over the ports of a process; side by side where each answer comes over a network."""
        lanes = _REMOTE_LANES if stack.settings.store_url else 1
        settle = stack.settings.settle_seconds
        return cls(stack.store, stack.table, stack.queue, stack.clock, settle_seconds=settle, lanes=lanes)

    def changed(self, keys: Iterable[str]) -> Report:
        """Keys that came, changed or went. A key that belongs nowhere is refused and named in the report."""
        report, due = Report(), Due()
        folders: dict[str, list[str]] = {}
        for key in keys:
            report.objects += 1
            folders.setdefault(key[: key.rfind("/") + 1], []).append(key)
        generation = functools.cache(self._table.generation)
        looks = [(IntakeLook(LiveView(self._store), report, due, generation), keys) for keys in folders.values()]
        try:
            self._folders.each(lambda look: self._look(*look), looks)
        except Exception:
            self._recorder.settle(due)  # what the other folders recorded need not wait for the janitor
            raise
        self._recorder.settle(due)
        for tenant in sorted(set().union(*(look.gone for look, _ in looks))):
            self._forget_vanished(tenant, report)
        return report

    def sweep(self) -> Report:
        """Look through the whole inbox and record what events lost."""
        report = Report()
        shared = list(self._store.objects(SHARED))
        top = self._store.level(INBOX)
        for key in (*top.keys, *top.refused_keys):
            if not is_ignored(basename(key)):
                report.refused.append(f"key {key!r} is not below {INBOX}<tenant>/; put it there")
        silent = 0
        emptied = {f"{INBOX}{place(folder + 'x').tenant}/" for folder in self._rejections.told(INBOX)}
        for prefix in sorted({*top.folders} | emptied):
            tenant = prefix.removeprefix(INBOX).rstrip("/")
            try:
                place(f"{prefix}x")
                self._sweep_listed(tenant, shared, report)
            except KeyRefused as error:
                report.refused.append(str(error))
            except Exception as error:
                report.failed.append(f"tenant {tenant}: {type(error).__name__}: {error}")
                silent += _is_outage(error)
                if silent > _SILENT_TENANTS:
                    raise
            else:
                silent = 0
        self._forget_vanished(None, report)
        return report

    def _sweep_listed(self, tenant: str, shared: list[ObjectInfo], report: Report) -> None:
        unreadable: dict[str, str] = {}
        objects = list(self._store.objects(f"{INBOX}{tenant}/", unreadable=unreadable))
        standing = list(self._store.objects(f"{CONFIGS}{tenant}/", unreadable=unreadable))
        report.objects += len(objects)
        look = IntakeLook(ListedView([*objects, *standing, *shared], unreadable), report, Due())
        try:
            self._sweep_tenant(look, tenant)
        finally:
            self._recorder.settle(look.due)  # what was recorded need not wait for the janitor

    def _sweep_tenant(self, look: IntakeLook, tenant: str) -> None:
        inbox = look.view.below(f"{INBOX}{tenant}/")
        local = [o for o in inbox if is_manifest(basename(o.key))]
        manifests = [*local, *manifests_at(look.view, f"{CONFIGS}{tenant}/")]
        workflows = self._workflows.valid(manifests, look.report.rejected)
        taken: set[str] = set()
        planned: set[str] = set()
        for workflow in workflows:
            with self._guarded(look.report, workflow.info.key):
                taken |= self._plan_all(look, workflow)
                planned.add(workflow.info.key)
        unplanned = [w for w in workflows if w.info.key not in planned]
        folders: dict[str, list[str]] = {_folder(o.key): [] for o in inbox}
        for info in inbox:
            if info.key in taken or is_manifest(basename(info.key)) or any(w.selects(info.key) for w in unplanned):
                continue
            if is_unread(info.key, workflows):
                folders[_folder(info.key)].append(info.key)
            elif is_spreadsheet(basename(info.key)) and not any(w.uses(info.key) for w in workflows):
                with self._guarded(look.report, info.key):
                    self._recorder.place(self._unselected(look, info), look.report.recorded, look.due)
        for key, why in look.view.unreadable.items():
            folder = home(key) if refusal(key) is not None else None
            if folder is None:
                look.report.refused.append(f"{key!r}: {why}")
            elif not is_ignored(basename(key)):
                folders.setdefault(folder, []).append(key)
        invalid = {_folder(key) for key in look.report.rejected}
        self._report_folders(look, folders, invalid)
        gone = self._rejections.told(f"{INBOX}{tenant}/")
        self._report_folders(look, {folder: [] for folder in gone if folder not in folders}, set())
        self._reject_standing(look, tenant)

    def _report_folders(self, look: IntakeLook, folders: dict[str, list[str]], invalid: set[str]) -> None:
        """Report on folders and the files in them that nobody reads; `invalid`: folders of manifests of no use."""
        for folder, unread in folders.items():
            # A manifest that does not validate may have meant these files.
            maybe = any(folder.startswith(other) for other in invalid)
            shown = [key for key in unread if not maybe or refusal(key) is not None]
            with self._guarded(look.report, folder):
                self._rejections.report(look.view, folder, shown, remembered=True)
            look.report.refused += [unread_line(key) for key in shown]

    def _reject_standing(self, look: IntakeLook, tenant: str) -> None:
        for folder in sorted({_folder(o.key) for o in manifests_at(look.view, f"{CONFIGS}{tenant}/")}):
            with self._guarded(look.report, folder):
                self._rejections.report(look.view, folder, (), remembered=True)

    @contextlib.contextmanager
    def _guarded(self, report: Report, what: str) -> Iterator[None]:
        """One object's trouble is named and set aside; a store, table or queue that does not answer is not its."""
        try:
            yield
        except KeyRefused as error:
            report.refused.append(str(error))
        except Exception as error:
            if _is_outage(error):
                raise
            report.failed.append(f"{what!r}: {type(error).__name__}: {error}")

    def _look(self, look: IntakeLook, keys: list[str]) -> None:
        """The keys of one folder, in their order."""
        wanted = set(keys)
        for key in keys:
            with self._guarded(look.report, key):
                if key.startswith(CONFIGS):
                    self._config_changed(look, key)
                    continue
                if refusal(key) is not None and (folder := home(key)) is not None:
                    look.folders.add(folder)
                at = place(key)
                if wanted:
                    # Everything that the whole folder will ask for is asked for at once, not one by one.
                    names = look.view.names(f"{INBOX}{at.tenant}/{at.folder}")
                    look.view.infos([k for k in names if k in wanted or is_manifest(basename(k))])
                    wanted.clear()
                self._changed(look, key)
        for folder in sorted(look.folders):
            with self._guarded(look.report, folder):
                self._report_folder(look, folder, set(keys))

    def _report_folder(self, look: IntakeLook, folder: str, keys: set[str]) -> None:
        """Report anew on one folder; `keys`: what this look is about."""
        if folder.startswith(CONFIGS):
            self._rejections.report(look.view, folder, ())
            return
        unread = [key for key in look.view.refused_keys(folder) if not is_ignored(basename(key))]
        # Who might read them is asked only where there are such files: that takes a listing of every folder above.
        doubtful = [key for key in look.view.names(folder) if is_unread(key, ()) or len(key) > _LONG]
        if doubtful:
            at, rejected = place(f"{folder}x"), list[str]()
            places = [*_ancestors(at.tenant, at.folder), f"{CONFIGS}{at.tenant}/"]
            workflows = self._workflows.above(look.view, places, lambda _: True, generation=None, rejected=rejected)
            # Where nothing says what this folder is about, a manifest may be on its way; else the sweep comes by.
            if workflows and not rejected:
                unread += [key for key in doubtful if is_unread(key, workflows)]
        self._rejections.report(look.view, folder, unread)
        look.report.refused += [unread_line(key) for key in unread if key in keys]

    def _config_changed(self, look: IntakeLook, key: str) -> None:
        if key.startswith(SHARED):
            self._replan_awaiting(look)
            return
        at = place(key, CONFIGS)
        self._table.advance(at.tenant)
        standing = manifests_at(look.view, f"{CONFIGS}{at.tenant}/")
        for workflow in self._workflows.valid(standing, look.report.rejected):
            if key.startswith(workflow.folder):
                self._plan_all(look, workflow)
        look.folders |= {w.folder for w in self._workflows.valid(standing, []) if key.startswith(w.folder)}
        if is_manifest(at.name):
            look.folders.add(_folder(key))

    def _changed(self, look: IntakeLook, key: str) -> None:
        at, info = place(key), look.view.head(key)
        if key in look.view.unreadable:
            look.report.failed.append(f"{key!r}: {look.view.unreadable[key]}")
            return
        if info is None:
            look.gone.add(at.tenant)
        if not is_manifest(at.name):
            self._arrived(look, key, info)
            return
        workflows = self._workflows.valid([info] if info else [], look.report.rejected)
        if any(w.reaches for w in workflows):
            self._table.advance(at.tenant)
        look.folders.add(_folder(key))
        for workflow in workflows:
            self._plan_all(look, workflow)

    def _arrived(self, look: IntakeLook, key: str, info: ObjectInfo | None) -> None:
        at = place(key)
        own, *above = _ancestors(at.tenant, at.folder)
        above.append(f"{CONFIGS}{at.tenant}/")

        def concerned(workflow: Workflow) -> bool:
            return workflow.uses(key) or (info is not None and workflow.selects(key))

        def workflows(generation: int | None) -> list[Workflow]:
            rejected = look.report.rejected
            beside = self._workflows.above(look.view, [own], concerned, generation=None, rejected=rejected)
            return beside + self._workflows.above(look.view, above, concerned, generation=generation, rejected=rejected)

        # What may be part of a package belongs to a manifest that has no reason to announce itself.
        plain = is_spreadsheet(at.name) and "/config/" not in f"/{at.folder}"
        found = workflows(look.generation(at.tenant) if plain else None)
        if not found and info is not None and plain:
            found = workflows(None)
        for workflow in found:
            if workflow.uses(key):
                self._plan_all(look, workflow)
            elif info is not None:
                self._plan_some(look, workflow, info)
        if is_unread(key, found):
            look.folders.add(own)
        elif is_spreadsheet(at.name) and not found and info is not None:
            self._recorder.place(self._unselected(look, info), look.report.recorded, look.due)

    def _plan_all(self, look: IntakeLook, workflow: Workflow) -> set[str]:
        """Plan every input set of a workflow; the keys it takes."""
        inputs = list(self._inputs(look.view, workflow))
        sets: dict[str, list[ObjectInfo]] = {}
        for info in inputs:
            sets.setdefault(workflow.subject(info.key), []).append(info)
        self._plan(look, workflow, list(sets.values()))
        if not inputs and not workflow.standing:
            self._recorder.place(without_input(workflow, now=self._clock.now()), look.report.recorded, look.due)
        auxiliary = [key for key in workflow.auxiliary_keys() if key.startswith(INBOX)]
        # What was of no use until this manifest came.
        look.folders |= {_folder(k) for k in (*auxiliary, *(i.key for i in inputs)) if not is_spreadsheet(basename(k))}
        look.due.give_way(unselected(i, now=self._clock.now(), reason="") for i in look.view.infos(auxiliary))
        return {i.key for i in inputs}

    def _plan_some(self, look: IntakeLook, workflow: Workflow, info: ObjectInfo) -> None:
        """Plan the one input set that an object belongs to."""
        if workflow.too_long(info.key):
            return
        primaries = [info]
        if workflow.manifest.inputs.per == "drop":
            subject = workflow.subject(info.key)
            if (workflow.info.key, workflow.info.version, subject) in look.planned:
                return  # by another object of the same drop, from all of them
            primaries = [i for i in self._inputs(look.view, workflow) if workflow.subject(i.key) == subject] or [info]
        self._plan(look, workflow, [primaries])

    def _inputs(self, view: View, workflow: Workflow) -> Iterator[ObjectInfo]:
        def wanted(key: str) -> bool:
            return workflow.selects(key) and not is_manifest(basename(key)) and not workflow.too_long(key)

        if workflow.standing or workflow.deep:
            return (i for i in view.below(workflow.base) if wanted(i.key))
        return iter(view.infos([key for key in view.names(workflow.base) if wanted(key)]))

    def _plan(self, look: IntakeLook, workflow: Workflow, sets: list[list[ObjectInfo]]) -> None:
        """Plan input sets of a workflow and bring them to the table."""
        now, info = self._clock.now(), workflow.info
        fresh = [s for s in sets if (info.key, info.version, workflow.subject(s[0].key)) not in look.planned]
        look.planned |= {(info.key, info.version, workflow.subject(s[0].key)) for s in fresh}
        if not fresh:
            return
        if workflow.manifest.inputs.per == "drop" and (
            hidden := [k for k in look.view.unreadable if workflow.selects(k)]
        ):
            # A set that is not whole must not be taken for one that is.
            look.report.failed.append(f"{info.key!r}: part of its drop is refused: {look.view.unreadable[hidden[0]]}")
            return
        try:
            workflow, package = self._packages.find(look.view, workflow)
        except ManifestInvalid:
            return
        auxiliary = {i.key: i for i in look.view.infos(list(workflow.auxiliary_keys()))}
        for large in [s for s in fresh if _too_large(s)]:
            self._recorder.place(
                too_many(workflow, workflow.subject(large[0].key), len(large), now=now), look.report.recorded, look.due
            )
            fresh.remove(large)
        jobs = [plan(workflow, s, package=package, auxiliary=auxiliary, now=now) for s in fresh]
        planned = [self._planned(workflow, package, of_set, now) for of_set in jobs]
        self._recorder.record(planned, standing=workflow.standing, done=look.report.recorded, due=look.due)
        look.due.give_way(unselected(i, now=now, reason="") for s in fresh for i in s)
        if not workflow.standing and fresh:
            look.due.give_way([without_input(workflow, now=now)])
        if workflow.manifest.inputs.per == "drop":
            look.due.give_way(too_many(workflow, workflow.subject(s[0].key), 0, now=now) for s in fresh)
        if look.due.full:
            self._recorder.settle(look.due)

    def _planned(self, workflow: Workflow, package: Package, jobs: list[Job], now: float) -> Planned:
        first = jobs[0]
        # Many objects, uploaded one by one: start when the last of them has been quiet for a moment.
        many = workflow.manifest.inputs.per == "drop" or len(package.refs) > 1
        delay = max(0.0, min(self._settle, first.stamp + self._settle - now)) if many else 0.0
        return Planned(jobs, functools.cache(lambda: self._stands(workflow, first)), delay)

    def _stands(self, workflow: Workflow, job: Job) -> bool:
        """Whether the bucket, asked anew, holds exactly what a job was planned from."""
        view = LiveView(self._store)
        info = view.head(workflow.info.key)
        loaded = self._workflows.load(info) if info is not None else None
        if not isinstance(loaded, Workflow):
            return False
        if loaded.manifest.inputs.per == "file":
            primaries = view.infos([i.ref.key for i in job.inputs if i.role == "primary"])
        else:
            primaries = [i for i in self._inputs(view, loaded) if loaded.subject(i.key) == job.subject]
        if not primaries:
            return False
        try:
            loaded, package = self._packages.find(view, loaded)
        except ManifestInvalid:
            return False
        now = plan(loaded, primaries, package=package, auxiliary={}, now=self._clock.now())
        return now[0].generation == job.generation

    def _unselected(self, look: IntakeLook, info: ObjectInfo) -> Job:
        at = place(info.key)
        reason = f"no manifest selects {info.key}"
        for folder in _ancestors(at.tenant, at.folder):
            for other in manifests_at(look.view, folder):
                if isinstance(self._workflows.load(other), ManifestInvalid):
                    reason = f"manifest {other.key} does not validate; see {rejected_key(other.key)}"
        return unselected(info, now=self._clock.now(), reason=reason)

    def _replan_awaiting(self, look: IntakeLook) -> None:
        """A shared package changed: whoever waits may be complete now."""
        cursor: str | None = None
        while True:
            page = self._table.page(JobQuery(states=frozenset({State.AWAITING})), cursor=cursor)
            for job in page.jobs:
                info = look.view.head(job.manifest.key) if job.manifest else None
                for workflow in self._workflows.valid([info] if info else [], look.report.rejected):
                    self._plan_all(look, workflow)
            cursor = page.cursor
            if cursor is None:
                return

    def _forget_vanished(self, tenant: str | None, report: Report) -> None:
        """Rows that wait for company of an object that its sender took back; of the others, status.json tells."""
        view, cursor, spoken = LiveView(self._store), None, set[str]()
        while True:
            page = self._table.page(
                JobQuery(states=frozenset({State.AWAITING, State.SCHEDULED}), tenant=tenant), cursor=cursor
            )
            for job in page.jobs:
                with self._guarded(report, job.job_id):
                    if not self._forget_if_vanished(view, job) and job.announced and status_key(job) not in spoken:
                        spoken.add(status_key(job))
                        self._statuses.announce(job)
            cursor = page.cursor
            if cursor is None:
                return

    def _forget_if_vanished(self, view: View, job: Job) -> bool:
        needs = [i.ref.key for i in job.inputs if i.role == "primary"]
        needs += [job.manifest.key] if job.manifest and job.workflow != NO_WORKFLOW else []
        if job.state is not State.AWAITING or all(
            view.head(key) is not None or key in view.unreadable for key in needs
        ):
            return False
        if is_placeholder(job):
            self._statuses.remove(job)
        else:
            reason = "its sender took the input back"
            self._table.replace(job, move(job, State.SKIPPED, now=self._clock.now(), reason=reason))
        return True


def _folder(key: str) -> str:
    return key[: key.rfind("/") + 1]


def _too_large(primaries: list[ObjectInfo]) -> bool:
    """Whether a job of these inputs would not fit into one row of every table: by number, or with very long keys."""
    if len(primaries) > MAX_INPUTS:
        return True
    if len(primaries) < _FEW:
        return False
    named = "".join(f"{i.key}{i.version}{i.digest}" for i in primaries)
    return len(zlib.compress(named.encode())) > _ROW_BYTES


def _is_outage(error: Exception) -> bool:
    """Whether it is the surroundings that fail, not the object in hand."""
    return isinstance(error, StoreUnavailable | OSError) and not isinstance(error, ObjectRefused)


def _ancestors(tenant: str, folder: str) -> list[str]:
    """Prefixes of a folder and of every folder above it, up to the tenant's own."""
    parts = [p for p in folder.split("/") if p]
    return [f"{INBOX}{tenant}/" + "".join(f"{p}/" for p in parts[:n]) for n in range(len(parts), -1, -1)]
