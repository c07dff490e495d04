"""In: keys that changed, or a request to sweep. Out: a scan of the bucket, whose jobs are in the table and the queue.

The intake is level-triggered: an event is only a hint to read the bucket again. Each scan reads what is there now and
plans everything that the changed keys affect, so any arrival order gives the same jobs. The keys of one folder are
scanned together and in order; folders are independent and may be scanned in parallel.

How a scan goes: `changed` or `sweep` finds the workflows that a key concerns (handlers/workflows.py), the planner turns
them into jobs (handlers/planning.py), the recorder writes those (handlers/recording.py), and what cannot be used is
reported to its sender (handlers/rejections.py).
"""

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from posixpath import basename

from core.drops import Workflow, is_placeholder
from core.errors import KeyRefused, ObjectRefused, Problem, StoreUnavailable
from core.jobs import NO_WORKFLOW, Job, State, move
from core.keys import (
    CONFIGS,
    INBOX,
    MAX_KEY_BYTES,
    SHARED,
    SHARED_TENANT,
    is_decision,
    is_ignored,
    is_literal,
    is_manifest,
    is_set_aside,
    is_spreadsheet,
    place,
    refusal,
)
from core.memories import is_memory
from core.overlays import ENDING as OVERLAY
from core.overlays import is_overlay
from core.ports import Clock, JobQuery, JobTable, Marks, ObjectInfo, ObjectStore, WorkQueue
from handlers.decisions import Decisions
from handlers.expectations import Expectations
from handlers.generations import Generations
from handlers.overlays import Overlays
from handlers.planning import Planner, Report, Scan, ancestors
from handlers.recording import FollowUps, MetJob, Recorder
from handlers.rejections import (
    Rejections,
    all_report_marks,
    is_unread,
    report_folder,
    report_marks,
    unread_line,
)
from handlers.workflows import (
    BucketView,
    ListedView,
    LiveView,
    Packages,
    Workflows,
    folder_of,
    manifests_at,
    standing_places,
)
from infra.quarantine import in_quarantine, quarantine_mark
from infra.queueing import Lanes
from infra.statuses import Statuses, status_key
from infra.telemetry import Telemetry
from infra.wiring import Stack

_REMOTE_LANES = 8
_SHARED = SHARED.replace(CONFIGS, INBOX, 1)
_LONG = MAX_KEY_BYTES // 4  # a shorter input key never leads to an output key that is too long
_TURN_SECONDS = 1.0  # of one tenant in a sweep, while others wait
_AT_ONCE = 500
_REFRESHED_SECONDS, _MOST_REFRESHED = 3600.0, 100_000
_FAILED_TENANTS = 3  # so many in a row: the store is down, not the tenants


class _Stopped(Exception):
    pass


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
        telemetry: Telemetry | None = None,
        marks: Marks | None = None,
        unnoted: bool = False,
    ) -> None:
        self.telemetry = telemetry or Telemetry()
        self._store = store
        self._table = table
        self._clock = clock
        self._marks = marks
        self._stopped = threading.Event()
        self._refreshed: dict[str, tuple[tuple[str, int] | None, float]] = {}  # each status.json: whose, and until when
        self._workflows = Workflows(store, clock)
        packages = Packages(store)
        self._decisions = decisions = Decisions(store, table, packages)
        self._rejections = Rejections(
            store,
            table,
            self._workflows,
            packages,
            lambda view, folder: decisions.problems(view, folder, self.selecting),
            self._overlay_problems,
        )
        # Folders wait for their records, so each of the two has its own lanes.
        self._folders, records = Lanes(lanes), Lanes(lanes)
        self._statuses = Statuses(store, table)
        self._recorder = Recorder(table, queue, clock, records, self._statuses, telemetry=self.telemetry, marks=marks)
        self._recorder.unnoted = unnoted
        self._expectations = Expectations(table, clock, self._recorder)
        self._overlays = Overlays(store, self._workflows)
        self._planner = Planner(
            store,
            clock,
            self._workflows,
            packages,
            self._recorder,
            decisions=decisions,
            overlays=self._overlays,
            settle_seconds=settle_seconds,
        )

    @classmethod
    def over(cls, stack: Stack) -> "Intake":
        """An intake over a process's ports; parallel where every answer comes over a network."""
        lanes = _REMOTE_LANES if stack.settings.store_url else 1
        seconds = stack.settings.settle_seconds
        return cls(
            stack.store,
            stack.table,
            stack.queue,
            stack.clock,
            settle_seconds=seconds,
            lanes=lanes,
            telemetry=stack.telemetry,
            marks=stack.marks,
            unnoted=stack.settings.timings.unnoted_seconds > 0,
        )

    def changed(self, keys: Iterable[str], *, trace: str = "") -> Report:
        """Scan keys that were created, changed or removed; the report names the keys that are refused.

        `trace`: of the request that brought them; the traces of new jobs are below it.
        """
        report = Report()
        with self._measured(report):
            self._changed(keys, report, trace)
        return report

    def _changed(self, keys: Iterable[str], report: Report, trace: str) -> None:
        followups = FollowUps(self.telemetry.now(), trace)
        folders: dict[str, list[str]] = {}
        for key in keys:
            report.objects += 1
            folders.setdefault(folder_of(key), []).append(key)
        scans = [
            (Scan(LiveView(self._store), report, followups, generations), keys)
            for folder, keys in folders.items()
            for generations in (self._generations(folder),)
            if not self._waits(folder, generations)
        ]
        try:
            self._folders.each(lambda scan: self._scan_keys(*scan), scans)
        except Exception:
            self._recorder.follow_up(followups)  # so that the other folders' jobs need not wait for the janitor
            raise
        self._recorder.follow_up(followups)
        for tenant in sorted(set().union(*(scan.removed_from for scan, _ in scans))):
            self._forget_vanished(self._waiting(tenant), report)

    def _generations(self, folder: str) -> Generations:
        """What a scan of a folder asks for."""
        _, *below = folder.split("/")
        if len(below) < 2:  # in no tenant's folder
            return Generations(self._table, [])
        names = [below[0], SHARED_TENANT, quarantine_mark(below[0]), *report_marks(folder)]
        return Generations(self._table, names)

    def _waits(self, folder: str, generations: Generations) -> bool:
        """Whether the files of a folder wait because their tenant is in quarantine.

        Only of the inbox: a scan of workflows changes generations, and must not have read them before.
        """
        parts = folder.split("/")
        if not folder.startswith(INBOX) or len(parts) <= 2 or not generations.of(quarantine_mark(parts[1])):
            return False
        return in_quarantine(self._table, parts[1])

    @contextlib.contextmanager
    def _measured(self, report: Report) -> Iterator[None]:
        """Count a scan and what it recorded, also if it fails half-way."""
        began, meters, outcome = self.telemetry.now(), self.telemetry.meters, "failed"
        try:
            yield
            outcome = "ok"
        finally:
            meters.add("ade.scans", outcome=outcome)
            meters.observe("ade.scan", self.telemetry.now() - began)
            done = report.recorded
            for what, jobs in (("created", done.created), ("queued", done.queued), ("superseded", done.superseded)):
                if jobs:
                    meters.add("ade.jobs.recorded", len(jobs), what=what)

    def stop(self) -> None:
        """End a sweep in progress, and let none begin: the next process goes on. Safe from a signal handler."""
        self._stopped.set()

    def sweep(self) -> Report:
        """Scan the whole inbox and record what lost events did not announce. Tenants are served in turns."""
        report = Report()
        with self._measured(report):
            self._sweep(report)
        return report

    def _sweep(self, report: Report) -> None:
        shared = [info for info in self._store.objects(SHARED) if not is_set_aside(info.key)]
        named = self._sweep_shared(shared, report)
        top = self._store.level(INBOX)
        for key in (*top.keys, *top.refused_keys):
            if not is_ignored(basename(key)):
                report.refused.append(f"key {key!r} is not below {INBOX}<tenant>/; put it there")
        failed = 0
        emptied = {f"{INBOX}{place(folder + 'x').tenant}/" for folder in self._rejections.reported(INBOX)}
        # A workflow may expect a drop of a tenant whose inbox is empty.
        expecting = {folder.replace(CONFIGS, INBOX, 1) for folder in self._store.level(CONFIGS).folders} - {_SHARED}
        expecting |= {f"{INBOX}{tenant}/" for tenant in named}
        tenants = [prefix.removeprefix(INBOX).rstrip("/") for prefix in sorted({*top.folders} | emptied | expecting)]
        jobs, present = list(self._waiting()), set[str]()
        needed = {key for job in jobs for key in _needs(job)}

        def see(key: str) -> None:
            if key in needed:
                present.add(key)

        waiting = deque((tenant, self._sweep_tenant(tenant, shared, report, see)) for tenant in tenants)
        while waiting and not self._stopped.is_set():
            tenant, steps = waiting.popleft()
            try:
                if self._has_more(steps):
                    waiting.append((tenant, steps))
                    continue
            except KeyRefused as error:
                report.refused.append(str(error))
            except Exception as error:
                report.failed.append(f"tenant {tenant}: {type(error).__name__}: {error}")
                failed += _is_outage(error)
                if failed > _FAILED_TENANTS:
                    raise
            else:
                failed = 0
        for _, steps in waiting:
            with contextlib.suppress(_Stopped):
                steps.throw(_Stopped())
        if not self._stopped.is_set():
            self._forget_vanished(jobs, report, present)

    def _sweep_shared(self, shared: list[ObjectInfo], report: Report) -> set[str]:
        """Report what is wrong with shared manifests; returns the tenants by name that one of them expects drops of."""
        view, generations = ListedView(shared), Generations(self._table, all_report_marks(SHARED_TENANT))
        manifests = manifests_at(view, SHARED)
        folders = {folder_of(info.key) for info in manifests} | {*self._rejections.reported(SHARED)}
        for folder in sorted(folders):
            with self._guarded(report, folder):
                self._rejections.report(view, folder, (), generations, cached=True)
        self._rejections.all_checked(SHARED_TENANT, generations)
        expecting = [w for w in self._workflows.valid(manifests, report.rejected) if w.manifest.expect is not None]
        return {name for w in expecting for name in w.manifest.tenants if is_literal(name)}

    def _has_more(self, steps: Iterator[None]) -> bool:
        """Go on with a tenant's sweep for one turn; False: it is done."""
        until = self._clock.steady() + _TURN_SECONDS
        return any(self._stopped.is_set() or self._clock.steady() >= until for _ in steps)

    def _sweep_tenant(
        self, tenant: str, shared: list[ObjectInfo], report: Report, see: Callable[[str], None]
    ) -> Generator[None, None, None]:
        """The sweep of one tenant, in steps: a large inbox, or files that take long to read, keep nobody waiting.

        `see` is called with each key.
        """
        place(f"{INBOX}{tenant}/x")
        generations = Generations(self._table, [quarantine_mark(tenant), *all_report_marks(tenant)])
        unreadable: dict[str, str] = {}
        files = list(shared)
        for prefix in (INBOX, CONFIGS):
            for info in self._store.objects(f"{prefix}{tenant}/", unreadable=unreadable):
                report.objects += prefix == INBOX
                files.append(info)
                see(info.key)
                yield
        if self._waits(f"{INBOX}{tenant}/", generations):
            return
        followups = FollowUps(self.telemetry.now())
        scan = Scan(ListedView(files, unreadable), report, followups, generations, marks=self._marks)
        try:
            yield from self._scan_tenant(scan, tenant)
        except Exception:  # not GeneratorExit: a sweep that is given up with its process does nothing more
            self._recorder.follow_up(scan.followups)
            raise
        self._recorder.follow_up(scan.followups)  # so that recorded jobs need not wait for the janitor

    def _scan_tenant(self, scan: Scan, tenant: str) -> Iterator[None]:
        inbox = scan.view.below(f"{INBOX}{tenant}/")
        local = [o for o in inbox if is_manifest(basename(o.key))]
        manifests = [*local, *(info for at in standing_places(tenant) for info in manifests_at(scan.view, at))]
        workflows = self._workflows.of_tenant(manifests, tenant, scan.report.rejected)
        claimed: set[str] = set()
        planned: set[str] = set()
        for workflow in workflows:
            with self._guarded(scan.report, workflow.info.key):
                claimed |= yield from self._planner.steps(scan, workflow)
                planned.add(workflow.info.key)
                self._expectations.check(scan, workflow)
        unplanned = [w for w in workflows if w.info.key not in planned]
        files = [
            o
            for o in inbox
            if o.key not in claimed
            and not is_manifest(basename(o.key))
            and not any(w.selects(o.key) for w in unplanned)
        ]
        folders: dict[str, list[str]] = {folder_of(o.key): [] for o in inbox}
        unselected = _unselected(files, workflows, folders)
        for at in range(0, len(unselected), _AT_ONCE):
            self._place(scan, unselected[at : at + _AT_ONCE])
            yield
        _add_unreadable(scan, folders)
        invalid, failed = {folder_of(key) for key in scan.report.rejected}, len(scan.report.failed)
        self._report_folders(scan, folders, invalid)
        emptied = self._rejections.reported(f"{INBOX}{tenant}/")
        self._report_folders(scan, {folder: [] for folder in emptied if folder not in folders}, set())
        self._report_configs(scan, tenant)
        if len(scan.report.failed) == failed:
            self._rejections.all_checked(tenant, scan.generations)

    def _report_folders(self, scan: Scan, folders: dict[str, list[str]], invalid: set[str]) -> None:
        """Report each folder's manifests and unread files; `invalid`: folders with an invalid manifest."""
        for folder, unread in folders.items():
            # An invalid manifest may have meant these files.
            maybe = any(folder.startswith(other) for other in invalid)
            shown = [key for key in unread if not maybe or refusal(key) is not None]
            with self._guarded(scan.report, folder):
                self._rejections.report(scan.view, folder, shown, scan.generations, cached=True)
            scan.report.refused += [unread_line(key) for key in shown]

    def _report_configs(self, scan: Scan, tenant: str) -> None:
        files = [o.key for o in scan.view.below(f"{CONFIGS}{tenant}/") if not is_set_aside(o.key)]
        reported = self._rejections.reported(f"{CONFIGS}{tenant}/")
        for folder in sorted({*reported, *(folder_of(k) for k in files if is_manifest(basename(k)) or is_overlay(k))}):
            with self._guarded(scan.report, folder):
                self._rejections.report(scan.view, folder, (), scan.generations, cached=True)

    @contextlib.contextmanager
    def _guarded(self, report: Report, what: str) -> Iterator[None]:
        """Report an object's failure and go on; an outage of the store, table or queue is raised."""
        try:
            yield
        except KeyRefused as error:
            report.refused.append(str(error))
        except Exception as error:
            if _is_outage(error):
                raise
            report.failed.append(f"{what!r}: {type(error).__name__}: {error}")

    def _scan_keys(self, scan: Scan, keys: list[str]) -> None:
        """Scan the keys of one folder, in their order."""
        wanted = set(keys)
        for key in keys:
            with self._guarded(scan.report, key):
                if key.startswith(CONFIGS):
                    self._scan_config(scan, key)
                    continue
                if refusal(key) is not None and (folder := report_folder(key)) is not None:
                    scan.folders.add(folder)
                at = place(key)
                if wanted:
                    # One request for everything that the folder's keys will need, instead of one per key.
                    names = scan.view.names(f"{INBOX}{at.tenant}/{at.folder}")
                    scan.view.infos([k for k in names if k in wanted or is_manifest(basename(k))])
                    wanted.clear()
                self._scan_key(scan, key)
        for folder in sorted(scan.folders):
            with self._guarded(scan.report, folder):
                self._report_folder(scan, folder, set(keys))

    def _report_folder(self, scan: Scan, folder: str, keys: set[str]) -> None:
        """Rewrite the report of one folder; `keys`: the keys of this scan."""
        if folder.startswith(CONFIGS):
            self._rejections.report(scan.view, folder, (), scan.generations)
            return
        unread = [key for key in scan.view.refused_keys(folder) if not is_ignored(basename(key))]
        # Finding the workflows takes a listing of every folder above, so it is only done where such files exist.
        doubtful = [key for key in scan.view.names(folder) if is_unread(key, ()) or len(key) > _LONG]
        if doubtful:
            at, rejected = place(f"{folder}x"), list[str]()
            places = [*ancestors(at.tenant, at.folder), *standing_places(at.tenant)]
            workflows = self._workflows.above(
                scan.view, places, at.tenant, lambda _: True, generations=None, rejected=rejected
            )
            # Without a workflow, a manifest may still be on its way; the sweep reports these files if none comes.
            if workflows and not rejected:
                unread += [key for key in doubtful if is_unread(key, workflows)]
        self._rejections.report(scan.view, folder, unread, scan.generations)
        scan.report.refused += [unread_line(key) for key in unread if key in keys]

    def _scan_config(self, scan: Scan, key: str) -> None:
        if is_set_aside(key):
            return
        if key.startswith(SHARED):
            self._scan_shared(scan, key)
            return
        if is_memory(key):
            self._table.advance(place(key, CONFIGS).tenant)
            return  # a new memory runs nothing again
        at = place(key, CONFIGS)
        self._table.advance(at.tenant)
        if is_overlay(key):
            self._scan_overlay(scan, key)
            return
        manifests = manifests_at(scan.view, f"{CONFIGS}{at.tenant}/")
        for workflow in self._workflows.valid(manifests, scan.report.rejected):
            if key.startswith(workflow.folder):
                self._planner.plan_workflow(scan, workflow)
        scan.folders |= {w.folder for w in self._workflows.valid(manifests, []) if key.startswith(w.folder)}
        if is_manifest(at.name):
            scan.folders.add(folder_of(key))

    def _scan_overlay(self, scan: Scan, key: str) -> None:
        """Plan again what waits for an overlay. Like a new manifest, it does not run again what has been processed."""
        tenant, name = place(key, CONFIGS).tenant, basename(key).removesuffix(OVERLAY)
        scan.folders.add(folder_of(key))
        for job in self._jobs(frozenset({State.AWAITING}), tenant):
            for item in job.inputs if job.workflow == name and is_placeholder(job) else ():
                self._scan_file(scan, item.ref.key, scan.view.head(item.ref.key))

    def _scan_shared(self, scan: Scan, key: str) -> None:
        """Let waiting files find a shared workflow, and waiting jobs a shared package. The sweep does the rest.

        Listing the inbox of every tenant that a workflow serves is a sweep, which serves the tenants in turns.
        """
        self._table.advance(SHARED_TENANT)
        if is_memory(key):
            return
        manifests = manifests_at(scan.view, SHARED)
        found = [w for w in self._workflows.valid(manifests, scan.report.rejected) if key.startswith(w.folder)]
        if is_manifest(basename(key)):
            scan.folders.add(folder_of(key))
        scan.folders |= {w.folder for w in found}
        self._replan_awaiting(scan, found)

    def _scan_key(self, scan: Scan, key: str) -> None:
        at, info = place(key), scan.view.head(key)
        if key in scan.view.unreadable:
            scan.report.failed.append(f"{key!r}: {scan.view.unreadable[key]}")
            return
        if is_decision(at.name):
            self._scan_decision(scan, key)
            return
        if info is None:
            scan.removed_from.add(at.tenant)
        if not is_manifest(at.name):
            self._scan_file(scan, key, info)
            return
        workflows = self._workflows.valid([info] if info else [], scan.report.rejected)
        if any(w.reaches for w in workflows):
            self._table.advance(at.tenant)
        scan.folders.add(folder_of(key))
        for workflow in workflows:
            self._planner.plan_workflow(scan, workflow)

    def _scan_decision(self, scan: Scan, key: str) -> None:
        """Plan the file that a decision is about again, and report again what is wrong with the folder's decisions."""
        scan.folders.add(folder_of(key))
        for about in self._decisions.about(key):
            if (info := scan.view.head(about)) is not None:
                self._scan_file(scan, about, info)

    def selecting(self, view: BucketView, key: str) -> list[Workflow]:
        """The workflows that select a key, which need not be in the bucket."""
        at = place(key)
        places = [*ancestors(at.tenant, at.folder), *standing_places(at.tenant)]
        return self._workflows.above(view, places, at.tenant, lambda w: w.selects(key), generations=None, rejected=[])

    def successor(self, job: Job) -> Job | None:
        """The job of the same input and parameters with a standing workflow as it is now, recorded if there was none.

        None if that is the job itself, or if its workflow or input is not there as it was.
        """
        if job.manifest is None or not job.manifest.key.startswith(CONFIGS):
            return None
        scan = Scan(LiveView(self._store), Report(), FollowUps(self.telemetry.now()), self._generations(""), again=True)
        info = scan.view.head(job.manifest.key)
        pinned = {i.ref.key: i.ref.digest for i in job.inputs if i.role == "primary"}
        there = {i.key: i.digest for i in scan.view.infos(list(pinned))}
        if info is None or not pinned or there != pinned:
            return None
        for workflow in self._workflows.of_tenant([info], job.tenant, []):
            if workflow.manifest.name == job.workflow and all(map(workflow.selects, pinned)):
                self._planner.plan_input(scan, workflow, scan.view.infos([next(iter(pinned))])[0])
        self._recorder.follow_up(scan.followups)
        done = scan.report.recorded
        found = [*map(MetJob.of, done.created), *done.met]
        found = [row for row in found if row.config_digest != job.config_digest and not row.is_placeholder]
        row = next((row for row in found if row.params == job.params), found[0] if found else None)
        return None if row is None else self._table.get(row.job_id)

    def _overlay_problems(self, view: BucketView, folder: str) -> list[tuple[str, Problem]]:
        """What is wrong with the overlays of a folder of configs/, each with its key."""
        tenant = place(f"{folder}x", CONFIGS).tenant
        infos = view.infos([key for key in view.names(folder) if is_overlay(key)])
        workflows = self._standing(view, tenant) if infos else []
        found = list[tuple[str, Problem]]()
        for info in infos:
            own = [w for w in workflows if w.manifest.name == basename(info.key).removesuffix(OVERLAY)]
            known = sorted({w.manifest.name for w in workflows})
            problems = [problem for w in own for problem in self._overlays.problems(w, info)]
            if not own:
                names = f"<workflow>{OVERLAY}, of a standing workflow: {', '.join(known) or 'there is none yet'}"
                problems = [Problem("$", "is named after no workflow of this tenant", names)]
            found += [(info.key, problem) for problem in problems]
        return found

    def standing(self, tenant: str) -> list[Workflow]:
        """The workflows that serve a tenant's whole inbox: its own, and the shared ones."""
        return self._standing(LiveView(self._store), tenant)

    def _standing(self, view: BucketView, tenant: str) -> list[Workflow]:
        return self._workflows.above(
            view, standing_places(tenant), tenant, lambda _: True, generations=None, rejected=[]
        )

    def expected(self, keys: Iterable[str], most: int, *, manifest: Workflow | None = None) -> int:
        """How many jobs a scan of these keys would record; counting ends above `most`.

        `keys` need not be in the bucket yet; nor need `manifest`, which is about to be put.
        """
        view, keys = LiveView(self._store), list(keys)
        readers = {(workflow.info.key, workflow.subject(key)): workflow for key, workflow in self._pairs(view, keys)}
        if manifest is not None:
            chosen = [key for key in keys if manifest.selects(key)]
            there = (info.key for info in self._planner.inputs(view, manifest))
            readers |= {(manifest.info.key, manifest.subject(key)): manifest for key in (*chosen, *there)}
        total = 0
        for workflow in readers.values():
            total += workflow.manifest.combinations
            if total > most:
                break
        return total

    def _pairs(self, view: BucketView, keys: list[str]) -> Iterator[tuple[str, Workflow]]:
        """Each input that a scan of these keys concerns, with the workflows that select it."""
        for key in keys:
            if is_manifest(basename(key)):
                info = view.head(key)
                for workflow in self._workflows.valid([info] if info else [], []):
                    yield from ((one.key, workflow) for one in self._planner.inputs(view, workflow))
            else:
                yield from ((key, workflow) for workflow in self.selecting(view, key))

    def _scan_file(self, scan: Scan, key: str, info: ObjectInfo | None) -> None:
        at = place(key)
        own, *above = ancestors(at.tenant, at.folder)
        above += standing_places(at.tenant)

        def concerned(workflow: Workflow) -> bool:
            return workflow.uses(key) or (info is not None and workflow.selects(key))

        def workflows(generations: Generations | None) -> list[Workflow]:
            find, rejected = functools.partial(self._workflows.above, scan.view), scan.report.rejected
            beside = find([own], at.tenant, concerned, generations=None, rejected=rejected)
            return beside + find(above, at.tenant, concerned, generations=generations, rejected=rejected)

        # A file that may belong to a config package concerns manifests that did not change, so no cache is used.
        plain = is_spreadsheet(at.name) and "/config/" not in f"/{at.folder}"
        readers = workflows(scan.generations if plain else None)
        if not readers and info is not None and plain:
            readers = workflows(None)
        for workflow in readers:
            if workflow.uses(key):
                self._planner.plan_workflow(scan, workflow)
            elif info is not None:
                self._planner.plan_input(scan, workflow, info)
        if is_unread(key, readers):
            scan.folders.add(own)
        elif is_spreadsheet(at.name) and not readers and info is not None:
            self._place(scan, [info])

    def _place(self, scan: Scan, infos: list[ObjectInfo]) -> None:
        """Record placeholders for spreadsheets that no manifest selects."""
        for placeholder, planned_from in self._planner.unplaced(scan, infos):
            with self._guarded(scan.report, f"{INBOX}{placeholder.tenant}/{placeholder.subject}"):
                self._planner.place(scan, placeholder, planned_from)

    def _replan_awaiting(self, scan: Scan, changed: list[Workflow]) -> None:
        """Plan every waiting job again: the shared package that changed may complete it.

        `changed`: shared workflows that may select files which wait for a manifest.
        """
        for job in self._jobs(frozenset({State.AWAITING})):
            with self._guarded(scan.report, job.job_id):
                if job.workflow == NO_WORKFLOW:
                    self._find_manifest(scan, job, changed)
                    continue
                info = scan.view.head(job.manifest.key) if job.manifest else None
                for workflow in self._workflows.of_tenant([info] if info else [], job.tenant, scan.report.rejected):
                    self._planner.plan_workflow(scan, workflow)

    def _find_manifest(self, scan: Scan, job: Job, changed: list[Workflow]) -> None:
        """Plan a file that waits for a manifest, if one of these workflows selects it."""
        own = [w for one in changed if (w := one.for_tenant(job.tenant)) is not None]
        for item in job.inputs:
            if any(w.selects(item.ref.key) for w in own):
                self._scan_file(scan, item.ref.key, scan.view.head(item.ref.key))

    def _forget_vanished(self, jobs: Iterable[Job], report: Report, present: Collection[str] = ()) -> None:
        """End waiting jobs whose objects the sender removed; refresh status.json of the others.

        `present`: keys that were there a moment ago.
        """
        view, announced = LiveView(self._store), set[str]()
        for job in jobs:
            with self._guarded(report, job.job_id):
                vanished = self._forget_if_vanished(view, job, present)
                if not vanished and job.announced and status_key(job) not in announced:
                    announced.add(status_key(job))
                    self._refresh(job)

    def _refresh(self, job: Job) -> None:
        """Write status.json if it is missing or outdated, and look again only after a while."""
        key, now = status_key(job), self._clock.steady()
        known, until = self._refreshed.get(key, (None, 0.0))
        if known == (job.job_id, job.rev) and now < until:
            return
        self._statuses.announce(job)
        if len(self._refreshed) > _MOST_REFRESHED:
            self._refreshed.clear()
        self._refreshed[key] = (job.job_id, job.rev), now + _REFRESHED_SECONDS

    def _waiting(self, tenant: str | None = None) -> Iterator[Job]:
        return self._jobs(frozenset({State.AWAITING, State.SCHEDULED, State.REVIEW}), tenant)

    def _jobs(self, states: frozenset[State], tenant: str | None = None) -> Iterator[Job]:
        cursor: str | None = None
        while True:
            page = self._table.page(JobQuery(states=states, tenant=tenant), cursor=cursor)
            yield from page.jobs
            cursor = page.cursor
            if cursor is None:
                return

    def _forget_if_vanished(self, view: BucketView, job: Job, present: Collection[str]) -> bool:
        needs = [key for key in _needs(job) if key not in present]
        if job.state is State.SCHEDULED or all(view.head(key) is not None or key in view.unreadable for key in needs):
            return False
        if is_placeholder(job):
            self._statuses.remove(job)
        else:
            reason = "the sender removed its input"
            self._table.replace(job, move(job, State.SKIPPED, now=self._clock.now(), reason=reason))
        return True


def _needs(job: Job) -> list[str]:
    """The objects without which a waiting job is none."""
    needs = [i.ref.key for i in job.inputs if i.role == "primary"]
    if job.state is State.AWAITING and job.manifest and job.workflow != NO_WORKFLOW:
        needs += [job.manifest.key, *(key for key in job.waiting_for if is_overlay(key))]
    return needs


def _is_outage(error: Exception) -> bool:
    """Whether the store, table or queue is down, rather than this one object unreadable."""
    return isinstance(error, StoreUnavailable | OSError) and not isinstance(error, ObjectRefused)


def _unselected(
    files: Iterable[ObjectInfo], workflows: list[Workflow], folders: dict[str, list[str]]
) -> list[ObjectInfo]:
    """The spreadsheets that no workflow uses; adds the files that no workflow can read to `folders`."""
    found = []
    for info in files:
        if is_unread(info.key, workflows):
            folders[folder_of(info.key)].append(info.key)
        elif is_spreadsheet(basename(info.key)) and not any(w.uses(info.key) for w in workflows):
            found.append(info)
    return found


def _add_unreadable(scan: Scan, folders: dict[str, list[str]]) -> None:
    """Add what the store refuses to the folder where it is reported, or to the scan's own report."""
    for key, why in scan.view.unreadable.items():
        folder = report_folder(key) if refusal(key) is not None else None
        if folder is None:
            scan.report.refused.append(f"{key!r}: {why}")
        elif not is_ignored(basename(key)):
            folders.setdefault(folder, []).append(key)
