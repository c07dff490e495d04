"""What every driver does around a box: folders, pipes and outputs before, watching while, judging after."""

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from core.ports import BoxLimits, BoxOrder, BoxReport, Isolation, Verification
from core.verdicts import EXPLAINED, Verdict
from runner.sandbox import outputs
from runner.sandbox.box.limits import Limits
from runner.sandbox.endings import Seen, judge
from runner.sandbox.logs import CappedLog
from runner.sandbox.watch import Excess, Watch, Watched

OWN_ROOT = Path(__file__).resolve().parents[2]  # where our own packages are imported from
NULL, LOG, CHANNEL, FIRST_OUTPUT = 0, 1, 3, 4  # descriptors in the box
VERIFY_ORDER = "verify.json"
CODE_SECONDS = 10.0  # how often the engine's code is looked at for changes


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """What runs in the box: a package with a `__main__` and a `boxed` module. Tests bring their own."""

    package: str = "runner.engine"
    root: Path | None = None  # where to import it from, if not from where we are
    rehearses: bool = True  # whether it takes a spreadsheet to warm up on

    @property
    def paths(self) -> list[str]:
        """Where the box has to look for it, beside where its interpreter looks anyway."""
        return [str(path) for path in (self.root, OWN_ROOT) if path is not None]

    def version(self) -> object:
        """Changes when the engine's code does: a zygote that has imported it is then out of date."""
        folder = (self.root or OWN_ROOT) / self.package.replace(".", "/")
        return _newest(str(folder), int(time.monotonic() / CODE_SECONDS))


@lru_cache(maxsize=4)
def _newest(folder: str, turn: int) -> tuple[int, int]:  # noqa: ARG001 - a walk costs milliseconds
    stamps = [
        os.stat(f"{place}/{name}").st_mtime_ns  # noqa: PTH116 - a walk over many files
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith(".py")
    ]
    return max(stamps, default=0), len(stamps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """What the kernel counted against the box, where a driver can ask it."""

    out_of_memory: bool = False
    too_many_processes: bool = False
    peak_mb: float | None = None


class Session:
    """One box from before its start to after its end. A context: nothing of it stays open."""

    def __init__(self, order: BoxOrder, *, verifies: bool = False) -> None:
        """`verifies`: the driver has a safe place to verify the outputs in the same box."""
        self.order = order
        self._verification = order.verification if verifies else None
        self.kept: list[int] = []  # for who verifies: its order, its outputs, and what it reads
        self._stack = ExitStack()
        self._out = order.scratch / "out"
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        order = self.order
        self._log = CappedLog(order.scratch / "log.txt", order.limits.log_bytes)
        self._stack.callback(self._log.close)
        opened = outputs.open_outputs(self._out, order.outputs)
        self._stack.callback(outputs.close_all, tuple(opened.values()))
        self._channel_read, channel_write = os.pipe2(os.O_CLOEXEC)
        self._log_read, log_write = os.pipe2(os.O_CLOEXEC)
        self._opened = tuple(opened.values())
        self._box_ends = [channel_write, log_write]
        self._our_ends = [self._channel_read, self._log_read]
        self._outputs = {name: FIRST_OUTPUT + index for index, name in enumerate(opened)}
        self.fds = {LOG: log_write, LOG + 1: log_write, CHANNEL: channel_write} | {
            self._outputs[name]: fd for name, fd in opened.items()
        }
        if self._verification is not None:
            self._open_for_verification(self._verification)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release_box_ends()
        outputs.close_all(self._our_ends)
        self._stack.close()

    def release_box_ends(self) -> None:
        """The box has its ends of the pipes; ours must not keep them open."""
        outputs.close_all(self._box_ends)
        self._box_ends = []

    @property
    def limits(self) -> Limits:
        return _limits(self.order.limits)

    @property
    def verification_limits(self) -> Limits:
        return _limits(self.order.limits if self._verification is None else self._verification.limits)

    def engine_order(self, isolation: Isolation, *, root: str, layer: str | None) -> dict[str, Any]:
        """The order as the engine gets it; `root` is where the box sees what `scratch` holds."""
        job = self.order.job
        has_config = (self.order.scratch / "config").is_dir()
        return {
            **job,
            "inputs": [
                {**given, "path": f"{root}/{given.get('path', f'in/{index}')}"}
                for index, given in enumerate(job.get("inputs", ()))
            ],
            "config": {
                "digest": (job.get("config") or {}).get("digest", ""),
                "path": f"{root}/config" if has_config else None,
            },
            "layer": layer,
            "outputs": self._outputs,
            "sandbox": _told(isolation),
        }

    def watch(
        self,
        control: socket.socket,
        *,
        killed: Callable[[], Verdict | None],
        kill: Callable[[], None],
        on_event: Callable[[dict[str, Any]], None],
        pid: int | None = None,
    ) -> Watched:
        """Follow the box to its end; `pid` is its first process, where it is one of this host's."""
        self.release_box_ends()
        watch = Watch(
            control=control,
            channel_fd=self._channel_read,
            log=(self._log_read, self._log),
            on_event=on_event,
            excess=Excess(pid, self._opened, self.order.limits),
        )
        self._our_ends = []  # the watch closes what it has read to the end
        deadline = self._started + self.order.limits.wall_seconds
        return watch.until_over(deadline=deadline, killed=killed, kill=kill)

    def report(self, watched: Watched, kernel: Kernel | None = None) -> BoxReport:
        """The verdict and what may be taken from the box."""
        return self._report(self.order, watched, kernel or Kernel(), self._started)

    def wants_verification(self, report: BoxReport) -> bool:
        return self._verification is not None and (report.verdict is Verdict.OK or report.verdict in EXPLAINED)

    def order_verification(self, isolation: Isolation, report: BoxReport, *, first: int) -> None:
        """Write the order to verify; `first` is the number under which the box has the first of `kept`."""
        if self._verification is None:
            raise ValueError("nobody asked for a verification")
        job = self._verification.job
        names = [*self._verification.outputs, *self.order.outputs]
        places = {name: first + 1 + index for index, name in enumerate(names)}
        order = {
            **job,
            "inputs": [{"name": name, "path": places[name]} for name in report.outputs],
            "outputs": {name: places[name] for name in self._verification.outputs},
            "verify": {**job["verify"], "audit": report.verdict in EXPLAINED},
            "sandbox": _told(isolation),
        }
        write_order(self.order.scratch / VERIFY_ORDER, order)

    def watch_verification(
        self,
        control: socket.socket,
        channel_fd: int,
        *,
        killed: Callable[[], Verdict | None],
        kill: Callable[[], None],
        pid: int,
        kernel: Callable[[], Kernel | None],
        spent: float,
    ) -> BoxReport:
        """Follow the verification to its end. `spent` is the CPU of the box before it."""
        if self._verification is None:
            raise ValueError("nobody asked for a verification")
        asked, now = self._verification, time.monotonic()
        watch = Watch(
            control=control,
            channel_fd=channel_fd,
            excess=Excess(pid, self.kept[1 : 1 + len(asked.outputs)], asked.limits),
        )
        deadline = max(self._started + self.order.limits.wall_seconds, now + asked.least_seconds)
        watched = watch.until_over(deadline=deadline, killed=killed, kill=kill)
        order = replace(self.order, outputs=asked.outputs, limits=asked.limits, trusted=True)
        return self._report(order, watched, kernel() or Kernel(), now, spent=spent)

    def _open_for_verification(self, asked: Verification) -> None:
        """Its outputs, and what it reads by descriptors that nothing was ever written through."""
        order = self.order.scratch / VERIFY_ORDER
        write_order(order, {})
        self.kept.append(os.open(order, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        self.kept += outputs.open_outputs(self._out, asked.outputs).values()
        for name in self.order.outputs:
            self.kept.append(os.open(self._out / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        self._stack.callback(outputs.close_all, self.kept)

    def _report(
        self, order: BoxOrder, watched: Watched, kernel: Kernel, started: float, *, spent: float = 0.0
    ) -> BoxReport:
        said = watched.report or {}
        found, problem = outputs.collect(self._out, order.outputs, order.limits.file_mb)
        cpu = max(0.0, float(said.get("cpu", 0.0)) - spent)
        seen = Seen(
            end=watched.end,
            code=said.get("code"),
            cpu_seconds=cpu,
            killed_as=watched.killed_as,
            violation=watched.violation,
            output_problem=problem,
            output_at_limit=outputs.at_limit(self._out, order.outputs, order.limits.file_mb),
            out_of_memory=kernel.out_of_memory,
            too_many_processes=kernel.too_many_processes,
            setup_problem=said.get("setup_problem"),
            trusted=order.trusted,
        )
        ending = judge(seen, order.limits)
        return BoxReport(
            verdict=ending.verdict,
            message=ending.message,
            where=ending.where,
            suspicion=ending.suspicion,
            claim=watched.end or {},
            outputs=found if ending.verdict is Verdict.OK or ending.verdict in EXPLAINED else {},
            log=self._log.path,
            wall_seconds=time.monotonic() - started,
            cpu_seconds=cpu,
            peak_mb=kernel.peak_mb if kernel.peak_mb is not None else said.get("peak_kb", 0) / 1024,
        )


def _limits(given: BoxLimits) -> Limits:
    return {
        "cpu_seconds": given.cpu_seconds,
        "memory_mb": given.memory_mb,
        "file_mb": given.file_mb,
        "open_files": given.open_files,
        "processes": given.processes,
    }


def _told(isolation: Isolation) -> dict[str, Any]:
    return {
        "driver": isolation.driver,
        "level": isolation.level,
        "rungs": isolation.rungs,
        "gaps": list(isolation.gaps),
    }


def write_order(path: Path, order: dict[str, Any]) -> None:
    """The order as a file, for a driver that starts the engine by name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o640), "w", encoding="utf-8") as file:
        file.write(json.dumps(order))
