"""Runs one job in a jail's box: asks a zygote for it, looks it over from outside, lets it go, and watches."""

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import SandboxUnavailable
from core.ports import BoxOrder, BoxReport, Isolation
from core.verdicts import Verdict
from runner.sandbox.builds import Build
from runner.sandbox.cgroups import Cgroups, Group
from runner.sandbox.pool import Pool
from runner.sandbox.registry import Registry
from runner.sandbox.session import CHANNEL, Engine, Kernel, Session, write_order
from runner.sandbox.watch import GRACE
from runner.sandbox.zygotes import Box, ZygoteProcess

_NAMESPACES = {"user", "pid", "mnt", "net", "ipc", "uts"}


class Jailer:
    """One build, carried out."""

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
        killed: Callable[[], Verdict | None],
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
        canary: dict[str, Any] | None = None,
    ) -> BoxReport:
        """As Sandbox.run; a `canary` is what the box is told beside its order, to try things instead of working."""
        with Session(order, verifies=self.build.verifies) as session, ExitStack() as stack:
            if self.build.own_user:
                open_to_all(order.scratch / "in")
                open_to_all(order.scratch / "config")
            group = None
            if self.cgroups is not None and order.grouped:
                limits = order.limits
                group = stack.enter_context(
                    self.cgroups.group(
                        order.label, memory_mb=limits.memory_mb, processes=limits.processes + self.build.kept
                    )
                )
            box = self._box(stack, session, isolation, canary)
            stack.callback(box.close)
            stack.callback(box.kill)  # whatever happens below, it does not outlive us
            self._look_over(box, network=order.network)
            if group is not None:
                for pid in box.pids:
                    _put_in(group, pid)

            def kernel() -> Kernel | None:
                return group.seen() if group is not None else None

            # A canary is nobody's job: a janitor that looks for jobs without a runner must not find it.
            with nullcontext() if canary is not None else self._registry.entry(order.label, box.pid):
                box.go()
                control = box.gate if box.kept else box.report
                watched = session.watch(control, killed=killed, kill=box.kill, on_event=on_event, pid=box.pids[-1])
                if box.kept and watched.report is None:  # the warden was killed, and everything with it
                    watched.report = box.leave(GRACE)
                    return session.report(watched, kernel())
                report = session.report(watched, kernel())
                if not box.kept:
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
        """Let the next tenant have this one's zygote."""
        self._pool.hand_over(tenant)

    def close(self) -> None:
        self._pool.close()

    def _box(self, stack: ExitStack, session: Session, isolation: Isolation, canary: dict[str, Any] | None) -> Box:
        """A box from the tenant's zygote or, where that has failed, from one of its own."""
        order = session.order
        if self.warm:
            try:
                zygote = stack.enter_context(self._pool.zygote(order.tenant, network=order.network))
                return self._start(zygote, session, isolation, canary)
            except SandboxUnavailable:
                self._pool.discard(order.tenant, network=order.network)
        zygote = self._make(order.network, order)
        stack.callback(zygote.close)
        return self._start(zygote, session, isolation, canary)

    def _make(self, network: bool, order: BoxOrder | None = None) -> ZygoteProcess:  # noqa: FBT001 - a factory
        plan = self.build.plan(self._engine, network=network, root=self._root, warm=order is None)
        return ZygoteProcess(plan, wrapper=[] if order is None else self.build.wrapper(order, self._engine))

    def _start(
        self,
        zygote: ZygoteProcess,
        session: Session,
        isolation: Isolation,
        canary: dict[str, Any] | None,
    ) -> Box:
        order = session.order
        root = self.build.box_root or str(order.scratch.resolve())
        path = order.scratch / "order.json"
        layer = self.build.layer(order)
        write_order(path, session.engine_order(isolation, root=root, layer=layer) | (canary or {}))
        targets = sorted(session.fds)
        shown = self.build.shown(order)
        request = {
            "targets": targets,
            "kept": len(session.kept),
            "warden": session.verification_limits,
            "channel": CHANNEL,
            "limits": session.limits,
            "canary": canary is not None,
            "path": [] if layer is None else [layer],
            "show": shown if self.build.namespaces == "own" else [],
            "readable": [target for _, target in shown],
        }
        order_fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            handed = [order_fd, *(session.fds[target] for target in targets), *session.kept]
            return zygote.start(request, handed, processes=2 if self.build.kept else 1)
        finally:
            os.close(order_fd)

    def _look_over(self, box: Box, *, network: bool) -> None:
        """Refuse a box that is not locked down, by what the kernel says of it and not by what it says itself."""
        wanted = {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16}
        if self.build.seccomp:
            wanted["Seccomp"] = "2"
        wrong: list[str] = []
        for pid in box.pids:
            status = _status(pid)
            wrong += [
                f"{name} is not {value}" for name, value in wanted.items() if f"\n{name}:\t{value}\n" not in status
            ]
        if self.build.namespaces != "none":  # a fork stays in its parent's, and neither process may leave them
            kinds = _NAMESPACES - ({"net"} if network else set())
            wrong += [f"its {kind} namespace is ours" for kind in sorted(kinds) if _shares(box.pid, kind)]
        if wrong:
            raise SandboxUnavailable(f"the box is not locked down: {', '.join(wrong)}")


def _shares(pid: int, kind: str) -> bool:
    """Whether a process is in the same namespace as we are; what cannot be seen counts as shared."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}") == _own_namespace(kind)  # noqa: PTH115 - often
    except OSError:
        return True


@cache
def _own_namespace(kind: str) -> str:
    return os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 - beside the other


def _put_in(group: Group, pid: int) -> None:
    try:
        group.add(pid)
    except OSError as error:
        raise SandboxUnavailable(f"the box could not be put into its control group: {error}") from error


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError as error:
        raise SandboxUnavailable("the box ended before it began") from error


def open_to_all(folder: Path) -> None:
    """Let the user of boxes read a job's own copies; the folders around them stay closed to everybody else."""
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
