"""The `jail` driver: runs hostile rules safely, and starts them in milliseconds.

Theory of operation
-------------------
Each tenant has a *zygote* (zygotes.py starts it, box/zygote.py is its program), executed with a clean environment. It
enters its own namespaces, imports the engine once and waits. For each job it forks a *box*, which drops every privilege
(box/zygote.py) before it learns its job:

  1. a pid namespace whose process 1 is ours, so that its end is the end of everything in the box;
  2. a mount namespace whose root has only the interpreter, the engine and the job's inputs, all read-only: no writable
     folder, no /proc, no socket, nothing of another job;
  3. an unprivileged user (if the runner is root), and no capabilities;
  4. Landlock, which restricts files once more, and also works where namespaces are not available;
  5. rlimits and, where possible, a control group;
  6. seccomp: a list of the allowed system calls.

The box writes its outputs to descriptors that the runner opened; the runner never follows a path that a box chose. The
box's messages come through a pipe and are checked (claims.py) by the session (session.py), which watches the box and
reaches the verdict. Between lock-down and go the runner reads /proc/<pid>/status and refuses a box that is not locked
down. With rules, process 1 is the *warden*: it forks the engine before either learns the job, outlives it, kills what
it left behind, and verifies the outputs. Without rules, process 1 is the engine, which verifies its own outputs.

Which of these rungs hold on a host is probed by running a canary (box/zygote.py) through this same code: builds are
tried strongest first, and only what stopped the canary counts. The order of the rungs matters: capabilities are dropped
after the mounts that need them, Landlock comes after the root it refers to, rlimits after what has to be opened, and
seccomp last, because it forbids all the others.
"""

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from core.errors import SandboxBusy, SandboxUnavailable
from core.manifests import parse_manifest
from core.verdicts import Verdict
from runner.boxes import BoxLimits, BoxOrder, BoxReport, Isolation, Killed, OnEvent, ignore_event
from runner.engine.contract import PRIMARY, InputFile, JobFacts, Json, Order, OutputName, SandboxFacts, VerifyOrder
from runner.sandbox.box import landlock, namespaces, seccomp
from runner.sandbox.box.zygote import BoxRequest, Plan, WarmUp, network_files
from runner.sandbox.cgroups import Cgroups, Group
from runner.sandbox.drivers import gaps_of, level_of, require
from runner.sandbox.registry import Registry
from runner.sandbox.session import (
    CHANNEL,
    GRACE,
    OWN_ROOT,
    Engine,
    KeeperReport,
    Kernel,
    Session,
    write_order,
)
from runner.sandbox.zygotes import Box, Pool, ZygoteProcess

BOX_ID = 64_900  # user and group of boxes if the runner is root; unused by any distribution


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One way to build boxes."""

    namespaces: str  # "own", "bubblewrap" or "none"
    own_user: bool = False
    landlock: bool = True
    seccomp: bool = True

    @property
    def cold_only(self) -> bool:
        """Whether boxes cannot be forked: bubblewrap creates its namespaces for one job."""
        return self.namespaces == "bubblewrap"

    @property
    def can_have_warden(self) -> bool:
        """Whether the first process can be a warden that outlives the engine: nothing in its namespace can touch it."""
        return self.namespaces == "own"

    @property
    def verifies(self) -> bool:
        """Whether the warden may verify: no engine can signal, trace or write to it, and it sees them all end."""
        return self.can_have_warden and self.seccomp

    @property
    def box_root(self) -> str | None:
        """Where a box sees its job; None: at the host's path."""
        return None if self.namespaces == "none" else namespaces.JOB

    def plan(self, engine: Engine, *, network: bool, root: Path, warm: bool) -> Plan:
        kind = {"own": "own", "bubblewrap": "given", "none": "none"}[self.namespaces]
        return Plan(
            module=f"{engine.package}.job",
            package=engine.package,
            paths=engine.paths,
            namespaces=kind,
            landlock=self.landlock,
            seccomp=self.seccomp,
            network=network,
            box_id=BOX_ID if self.own_user else None,
            root=str(root),
            rehearsal=rehearsal() if warm and engine.rehearses else None,
        )

    def shown(self, order: BoxOrder) -> list[tuple[str, str]]:
        """The host paths that a box sees, and where."""
        scratch = order.scratch.resolve()
        pairs = [(scratch / "in", f"{namespaces.JOB}/in"), (scratch / "config", f"{namespaces.JOB}/config")]
        if order.layer is not None:
            pairs.append((order.layer.resolve(), namespaces.LAYER))
        there = [(str(source), target) for source, target in pairs if source.is_dir()]
        return there if self.box_root else [(source, source) for source, _ in there]

    def layer(self, order: BoxOrder) -> str | None:
        """Where a box sees its layer."""
        if order.layer is None:
            return None
        return namespaces.LAYER if self.box_root else str(order.layer.resolve())

    def wrapper(self, order: BoxOrder, engine: Engine) -> list[str]:
        """The command that wraps the zygote's."""
        if self.namespaces != "bubblewrap":
            return []
        args = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        args += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        args += ["--uid", str(namespaces.INSIDE_USER), "--gid", str(namespaces.INSIDE_USER)]
        args += [] if order.network else ["--unshare-net"]
        places = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache"]
        places += ["/etc/localtime", "/usr/share/zoneinfo", sys.base_prefix, sys.prefix]
        places += [str(OWN_ROOT / "runner"), *([] if engine.root is None else [str(engine.root)])]
        if order.network:
            places += network_files()
        for place in dict.fromkeys(places):
            if os.path.islink(place):  # noqa: PTH114 - the link itself is wanted, unresolved
                args += ["--symlink", os.readlink(place), place]  # noqa: PTH115 - as above
            else:
                args += ["--ro-bind-try", place, place]
        for device in ("/dev/null", "/dev/zero", "/dev/urandom"):
            args += ["--dev-bind", device, device]
        for source, target in self.shown(order):
            args += ["--ro-bind", source, target]
        return [*args, "--proc", "/proc", "--chdir", "/", "--"]


# Cells of the usual kinds, clean and dirty, so that most of what a job runs has run before.
_CELLS = """Members,,,,,,,,
,,,,,,,,
ID,Code,Name,E-mail,Start,Pay,Hours,Plan,Active
1,a1 ,Ann Lee,ann@example.com,2026-01-05,"1,200.50",7.5,gold,yes
2,B2,Bob,bob@example.com,02/16/2026,$980.00,8,Silver,no
3,C3, Cleo,not given,2026-03-07,(15.25),,Gold,Y
4,D4,Dan,dan@example.com,03/28/2026,1100,6,silver,N
5,x,Eve,eve@example.com,2026-04-30,990.10,7,tin,yes
6,F6,,fay@example.com,2026-05-01,1010,7.25,Gold,no
"""


def rehearsal() -> WarmUp:
    """A small built-in job to warm up the engine, and the verification of its outputs."""
    manifest = {
        "manifest": 1,
        "name": "rehearsal",
        "fields": [
            {"name": "id", "type": "integer", "required": True, "unique": True},
            {"name": "code", "pattern": "[A-Z][0-9]+", "clean": ["strip", "upper"]},
            {"name": "name"},
            {"name": "email", "type": "email"},
            {"name": "start", "type": "date", "required": True},
            {"name": "pay", "type": "money", "min": 0},
            {"name": "hours", "type": "decimal"},
            {"name": "plan", "type": "enum", "allowed": ["Gold", "Silver"]},
            {"name": "active", "type": "boolean"},
        ],
    }
    source = InputFile(role=PRIMARY, name="rehearsal.csv", path=Path("in", "0"), sha256="0" * 64)
    job = Order(
        job=JobFacts(job_id="rehearsal", tenant="_rehearsal", workflow="rehearsal", attempt=1),
        manifest=parse_manifest(json.dumps(manifest).encode()).model_dump(mode="json"),
        inputs=(source,),
        sandbox=SandboxFacts(driver="jail", level="none", rungs={}),
    )
    verify = VerifyOrder(
        job=job.job, params={}, config_digest="", known=(source.facts,), title="rehearsal", sandbox=job.sandbox
    )
    return WarmUp(
        text=_CELLS,
        source=source.encode(),
        order=job.encode(),
        verify=verify.encode(),
        outputs=[OutputName.WORKBOOK, OutputName.ARTIFACT],
        workbook=OutputName.WORKBOOK,
        pages=[OutputName.REPORT],
    )


def candidates() -> list[Build]:
    """All builds worth trying on this host."""
    has_landlock, has_seccomp = landlock.version() > 0, seccomp.supported()
    root = os.geteuid() == 0
    found = [Build(namespaces="own", own_user=True)] if root else []
    found.append(Build(namespaces="own"))
    if shutil.which("bwrap"):
        found.append(Build(namespaces="bubblewrap"))
    found.append(Build(namespaces="none"))
    return [
        Build(
            namespaces=build.namespaces,
            own_user=build.own_user,
            landlock=has_landlock,
            seccomp=has_seccomp,
        )
        for build in found
    ]


_NAMESPACES = {"user", "pid", "mnt", "net", "ipc", "uts"}


class Jailer:
    """Runs boxes of one build."""

    def __init__(
        self,
        build: Build,
        *,
        engine: Engine,
        run_dir: Path,
        cgroups: Cgroups | None,
        warm: bool,
        recycle_after: int,
    ) -> None:
        self.build = build
        self.warm = warm and not build.cold_only
        self.cgroups = cgroups
        self._engine = engine
        self._registry = Registry(run_dir)
        self._root = run_dir.resolve() / "root"
        self._root.mkdir(parents=True, exist_ok=True)
        self._pool = Pool(self._make, recycle_after=recycle_after, version=engine.version)

    def run(
        self,
        order: BoxOrder,
        isolation: Isolation,
        *,
        killed: Killed,
        on_event: OnEvent = ignore_event,
        canary: Path | None = None,
    ) -> BoxReport:
        """As Sandbox.run; with `canary`, a file out of its reach, the box probes its limits instead of working."""
        with Session(order, warden=self.build.verifies, engine=True) as session, ExitStack() as stack:
            if self.build.own_user:
                open_to_all(order.scratch / "in")
                open_to_all(order.scratch / "config")
            group = None
            if self.cgroups is not None and order.grouped:
                limits = order.limits
                group = stack.enter_context(
                    self.cgroups.group(
                        order.label,
                        memory_mb=limits.memory_mb,
                        processes=limits.processes + self._needs_warden(session),
                    )
                )
            box = self._box(stack, session, isolation, canary, group)
            stack.callback(box.close)
            stack.callback(box.kill)  # it must not outlive this call
            self._check_lockdown(box, network=order.network)
            for pid in box.pids:
                _put_in(group, pid)  # the engine may have been forked before the warden was put there

            def kernel() -> Kernel | None:
                return group.seen() if group is not None else None

            # A canary is not a job: a janitor must not find it.
            with nullcontext() if canary is not None else self._registry.entry(order.label, box.pid):
                box.go()
                control = box.gate if box.has_warden else box.report
                watched = session.watch(control, killed=killed, kill=box.kill, on_event=on_event, pid=box.pids[-1])
                if box.has_warden and watched.report is None:  # the warden was killed, and the box with it
                    left = box.leave(GRACE)
                    watched.report = None if left is None else KeeperReport.decode(left)
                    return session.report(watched, kernel())
                report = session.report(watched, kernel())
                if not box.has_warden:
                    return report
                if not session.wants_verification(report):
                    box.leave(GRACE)
                    return report
                session.order_verification(isolation, report, first=max(session.fds) + 3)
                seen = session.watch_verification(
                    box.report,
                    box.verify(),
                    killed=killed,
                    kill=box.kill,
                    pid=box.pid,
                    kernel=kernel,
                    spent=report.cpu_seconds,
                )
                return replace(report, verification=seen)

    def hand_over(self, tenant: str) -> None:
        """Let the next tenant take over this one's zygote."""
        self._pool.hand_over(tenant)

    def close(self) -> None:
        self._pool.close()

    def _box(
        self, stack: ExitStack, session: Session, isolation: Isolation, canary: Path | None, group: Group | None
    ) -> Box:
        """A box from the tenant's zygote or, if that fails, from a new one; its first process is in the group."""
        order = session.order
        if self.warm:
            try:
                zygote = stack.enter_context(self._pool.zygote(order.tenant, network=order.network))
                return self._start(zygote, session, isolation, canary, group)
            except SandboxUnavailable:
                self._pool.discard(order.tenant, network=order.network)
        zygote = self._make(order.network, order)
        stack.callback(zygote.close)
        return self._start(zygote, session, isolation, canary, group)

    def _make(self, network: bool, order: BoxOrder | None = None) -> ZygoteProcess:  # noqa: FBT001 - a factory
        plan = self.build.plan(self._engine, network=network, root=self._root, warm=order is None)
        return ZygoteProcess(plan, wrapper=[] if order is None else self.build.wrapper(order, self._engine))

    def _start(
        self,
        zygote: ZygoteProcess,
        session: Session,
        isolation: Isolation,
        canary: Path | None,
        group: Group | None,
    ) -> Box:
        order = session.order
        root = self.build.box_root or str(order.scratch.resolve())
        path = order.scratch / "order.json"
        layer = self.build.layer(order)
        probed = {} if canary is None else {"forbidden": str(canary)}
        write_order(path, session.engine_order(isolation, root=root, layer=layer).encode() | probed)
        targets = sorted(session.fds)
        shown = self.build.shown(order)
        request: BoxRequest = {
            "targets": targets,
            "divided": self._needs_warden(session),
            "warden_fds": len(session.warden_fds),
            "entries": 0,
            "warden": session.verification_limits,
            "channel": CHANNEL,
            "limits": session.limits,
            "canary": canary is not None,
            "layer": layer,
            "show": shown if self.build.namespaces == "own" else [],
            "readable": [target for _, target in shown],
        }
        ways_in: AbstractContextManager[list[int]] = nullcontext([]) if group is None else group.entries()
        with path.open("rb") as order_file, ways_in as entries:
            request["entries"] = len(entries)
            fds = [order_file.fileno(), *(session.fds[target] for target in targets), *session.warden_fds, *entries]
            return zygote.start(
                request,
                fds,
                processes=1 + self._needs_warden(session),
                # The kernel takes some milliseconds to move a process; at the same time the box locks itself down.
                forked=lambda pid: None if entries else _put_in(group, pid),
            )

    def _needs_warden(self, session: Session) -> bool:
        """Whether the box gets a warden: without rules it needs none."""
        return self.build.can_have_warden and not session.engine_verifies

    def _check_lockdown(self, box: Box, *, network: bool) -> None:
        """Refuse a box that is not locked down according to the kernel, whatever it claims itself."""
        wanted = {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16}
        if self.build.seccomp:
            wanted["Seccomp"] = "2"
        wrong: list[str] = []
        for pid in box.pids:
            status = _status(pid)
            wrong += [
                f"{name} is not {value}" for name, value in wanted.items() if f"\n{name}:\t{value}\n" not in status
            ]
        if self.build.namespaces != "none":  # a fork stays in its parent's, and neither process can leave them
            kinds = _NAMESPACES - ({"net"} if network else set())
            wrong += [f"its {kind} namespace is ours" for kind in sorted(kinds) if _shares(box.pid, kind)]
        if wrong:
            raise SandboxUnavailable(f"the box is not locked down: {', '.join(wrong)}")


def _shares(pid: int, kind: str) -> bool:
    """Whether a process is in our namespace; one that cannot be seen counts as shared."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}") == _own_namespace(kind)  # noqa: PTH115 - often
    except OSError:
        return True


@cache
def _own_namespace(kind: str) -> str:
    return os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 - beside the other


def _put_in(group: Group | None, pid: int) -> None:
    """Move a process into a box's group, if the box has one; what has ended already says why when it is waited for."""
    try:
        if group is not None:
            group.add(pid)
    except ProcessLookupError:
        return
    except OSError as error:
        raise SandboxUnavailable(f"cannot move the box into its control group: {error}") from error


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError as error:
        raise SandboxUnavailable("the box ended before its job started") from error


def open_to_all(folder: Path) -> None:
    """Let the boxes' user read a job's files; the folders around them stay closed."""
    if not folder.is_dir():
        return
    for place, _, files in os.walk(folder):
        _add_mode(place, 0o555, os.O_DIRECTORY)
        for name in files:
            _add_mode(f"{place}/{name}", 0o444, 0)


def _add_mode(path: str, bits: int, flags: int) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        mode = os.fstat(fd).st_mode & 0o777
        if mode & bits != bits:
            os.fchmod(fd, mode | bits)
    finally:
        os.close(fd)


_LIMITS = BoxLimits(wall_seconds=20, cpu_seconds=7, memory_mb=256, file_mb=1)
_TENANT = "_canary"
_UNKNOWN = Isolation(driver="jail", level="none", rungs={}, gaps=())


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The build to use, its isolation, and why stronger ones were rejected."""

    jailer: Jailer
    isolation: Isolation
    refused: tuple[str, ...]


def strongest(builds: Sequence[Build], make: Callable[[Build], Jailer], run_dir: Path) -> Found:
    """The first build whose canary confirms its promises.

    Raises SandboxUnavailable if there is none, and SandboxBusy if the host was too slow to tell.
    """
    refused: list[str] = []
    for build in builds:
        jailer = make(build)
        try:
            answers = send_canary(jailer, run_dir)
            rungs = rungs_met(jailer, answers)
            missing = _broken_promises(build, rungs)
            if not missing:
                level = level_of(rungs)
                gaps = (*gaps_of(rungs), *(f"rejected: {reason}" for reason in refused))
                isolation = Isolation(driver="jail", level=level, rungs=rungs, gaps=gaps)
                jailer.hand_over(_TENANT)
                return Found(jailer=jailer, isolation=isolation, refused=tuple(refused))
            reason = f"the canary got past {', '.join(missing)}"
        except SandboxBusy:  # no reason to settle for a weaker build
            jailer.close()
            raise
        except SandboxUnavailable as error:
            reason = str(error)
        jailer.close()
        refused.append(f"{_name(build)}: {reason}")
    raise SandboxUnavailable(
        f"no jail works on this host ({'; '.join(refused)}); "
        "see docs/explanation/sandbox.md for what to install or allow"
    )


def send_canary(jailer: Jailer, run_dir: Path) -> Json:
    """Run a canary: what a box of this build can do."""
    scratch = run_dir.resolve() / f"canary-{os.getpid()}-{os.urandom(4).hex()}"
    (scratch / "in").mkdir(parents=True)
    try:
        (scratch / "in" / "0").write_bytes(b"tweet")
        forbidden = scratch / "forbidden"
        forbidden.write_bytes(b"not for the box")
        order = BoxOrder(
            label=scratch.name,
            tenant=_TENANT,
            scratch=scratch,
            job=Order(manifest={}, inputs=(InputFile(role=PRIMARY, name="0", path=Path("in", "0")),)),
            outputs=(),
            limits=_LIMITS,
        )
        report = jailer.run(order, _UNKNOWN, killed=lambda: None, canary=forbidden)
        if report.verdict is Verdict.WALL_CLOCK:
            late = f"a box that only probes its limits took over {_LIMITS.wall_seconds:.0f} s"
            raise SandboxBusy(f"{late}; this host has too much to do, try again when it has less")
        if report.verdict is not Verdict.OK:
            raise SandboxUnavailable(f"the canary died: {report.message or report.verdict}")
        return report.claim
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def rungs_met(jailer: Jailer, answers: Json) -> dict[str, bool]:
    """The rungs that stopped the canary."""
    if answers["read_input"] != "done" or answers["imports"] != "done":
        raise SandboxUnavailable("a box of this build cannot read its own job")
    limits = answers["cpu_limit"] == _LIMITS.cpu_seconds and answers["core_limit"] == 0
    return {
        "namespaces": answers["stat_outside"] == "ENOENT",  # and the jailer has checked them all from outside
        "landlock": jailer.build.landlock and answers["list_root"] == "EACCES",
        "seccomp": answers["socket"] == "EPERM" and answers["fork"] == "EAGAIN",
        "rlimits": limits,
        "cgroup": jailer.cgroups is not None,
        "own_user": jailer.build.own_user,
        "warm": jailer.warm,
        "sealed": answers["read_outside"] != "done"
        and answers["write_input"] != "done"
        and answers["make_file"] != "done",
    }


def _broken_promises(build: Build, rungs: dict[str, bool]) -> list[str]:
    promised = {
        "namespaces": build.namespaces != "none",
        "landlock": build.landlock,
        "seccomp": build.seccomp,
        "rlimits": True,
        "sealed": build.landlock or build.namespaces != "none",
    }
    return [name for name, wanted in promised.items() if wanted and not rungs[name]]


def _name(build: Build) -> str:
    user = " with a user of its own" if build.own_user else ""
    return f"namespaces={build.namespaces}{user}"


RECYCLE_AFTER = 500  # jobs of one zygote
STALE_SECONDS = 60.0  # a group that stays empty for this long is left over


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to build boxes; tests restrict what the host offers."""

    warm: bool = True
    recycle_after: int = RECYCLE_AFTER
    builds: tuple[Build, ...] | None = None  # which to try, strongest first; None: all
    cgroups: bool = True


class JailSandbox:
    """Boxes for untrusted code. Thread-safe."""

    def __init__(
        self, *, run_dir: Path, min_level: str, engine: Engine | None = None, options: Options | None = None
    ) -> None:
        self._run_dir = run_dir
        self._min_level = min_level
        self._engine = engine or Engine()
        self._options = options or Options()
        self._registry = Registry(run_dir)
        cgroups = Cgroups.find() if self._options.cgroups else None
        self._cgroups = cgroups if cgroups is not None and cgroups.usable() else None
        self._lock = threading.Lock()
        self._found: Found | None = None

    def isolation(self) -> Isolation:
        try:
            return self._probed().isolation
        except SandboxUnavailable as error:
            return Isolation(driver="jail", level="none", rungs={}, gaps=(str(error),))

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        found = self._probed()
        if not order.trusted:
            require(found.isolation, self._min_level)
        return found.jailer.run(order, found.isolation, killed=killed, on_event=on_event)

    def reap(self, alive: Callable[[str], bool]) -> int:
        reaped = self._registry.reap(alive)
        if self._cgroups is not None:
            for label in reaped:
                self._cgroups.remove(label)
            self._cgroups.sweep(STALE_SECONDS)
        return len(reaped)

    def close(self) -> None:
        with self._lock:
            if self._found is not None:
                self._found.jailer.close()

    def _probed(self) -> Found:
        with self._lock:
            if self._found is None:
                builds = candidates() if self._options.builds is None else self._options.builds
                self._found = strongest(builds, self._jailer, self._run_dir)
            return self._found

    def _jailer(self, build: Build) -> Jailer:
        return Jailer(
            build,
            engine=self._engine,
            run_dir=self._run_dir,
            cgroups=self._cgroups,
            warm=self._options.warm,
            recycle_after=self._options.recycle_after,
        )
