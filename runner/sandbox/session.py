"""What every driver does around a box: prepare folders and pipes, watch it while it runs, then reach a verdict.

Theory of operation. `Session` opens the outputs, the log and the pipes; the driver starts the box with their far ends.
`Watch` then follows the box from outside: result channel, log, clock, resource use, and the runner's wish to end it.
`judge` decides how it ended: first by what the runner saw and the kernel reports, and only then by what the box says.
"""

import json
import os
import re
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from core.verdicts import Verdict
from infra import own_code
from runner.boxes import BoxLimits, BoxOrder, BoxReport, Isolation, Killed, OnEvent, Verification, ignore_event
from runner.engine.contract import (
    EXPLAINED,
    EndCode,
    FinalEvent,
    InspectOrder,
    Json,
    Order,
    Place,
    SandboxFacts,
    VerifyOrder,
    Where,
)
from runner.sandbox import claims
from runner.sandbox.box.limits import MIB, TASKS, THREADS, KernelLimits
from runner.sandbox.claims import CappedLog, Channel, ChannelViolation

# The verdicts of ends that are not called like them.
_VERDICTS = {
    EndCode.OUT_OF_MEMORY: Verdict.MEMORY,
    EndCode.ENGINE_ERROR: Verdict.RULE_ERROR,  # ours if no rule was in the box: a rule can break or forge it
}
_OWN_KILL = {
    Verdict.CANCELLED: "cancelled",
    Verdict.LEASE_LOST: "the lease was lost while the box ran",
    Verdict.RELEASED: "released by its runner",
}
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
_REFUSED_FORK = "BlockingIOError"  # what Python raises when a fork is refused, and hardly otherwise
_NAME = re.compile(r"[A-Za-z_0-9]{1,40}")
_TRACE = re.compile(r"(?:(?:^| )[a-z_]{1,30}/[a-z_0-9]{1,30}\.py:[0-9]{1,5}){1,20}")
OUT_OF_MEMORY = 72  # exit code of the code in the box


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the runner observed of one box."""

    end: FinalEvent | None  # the final event, checked for form
    code: int | None  # exit status, negative: killed by that signal; None: unknown
    cpu_seconds: float = 0.0
    killed_as: Verdict | None = None  # why the runner killed it
    violation: str | None = None  # what was wrong on the channel or with the log
    output_problem: str | None = None
    output_at_limit: str | None = None
    out_of_memory: bool = False  # reported by the kernel
    too_many_processes: bool = False  # reported by the kernel
    host_out_of_memory: bool = False  # the kernel killed it for want of memory, but not at the box's own limit
    setup_problem: str | None = None  # why the box could not be built
    trusted: bool = False  # no rules ran in the box


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    verdict: Verdict
    message: str
    where: Where = field(default_factory=dict)
    suspicion: str = ""  # evidence of a bug in the engine, as names and lines of its code
    by_host: bool = False  # as in BoxReport


def judge(seen: Seen, limits: BoxLimits) -> Ending:
    """The verdict. The kernel's reports count before the box's."""
    if seen.setup_problem is not None:
        return Ending(verdict=Verdict.BOX_FAILED, message=f"the box could not start: {seen.setup_problem}")
    if seen.killed_as is not None:
        return _killed_by_us(seen.killed_as, seen, limits)
    if seen.violation is not None:
        return Ending(verdict=Verdict.BAD_OUTPUT, message=f"the box broke its protocol: {seen.violation}")
    if seen.host_out_of_memory:
        message = "killed by the kernel because this host had too little memory, not at the limit of the box"
        return Ending(verdict=Verdict.BOX_FAILED, message=message, by_host=True)
    if seen.out_of_memory:
        return _memory(limits)
    if seen.code is None:
        return Ending(verdict=Verdict.BOX_FAILED, message="the process that keeps the box was lost")
    if seen.code < 0:
        return _signalled(-seen.code, seen, limits)
    if seen.end is None:
        return _silent(seen, limits)
    return _ending_reported(seen.end, seen, limits)


def _killed_by_us(why: Verdict, seen: Seen, limits: BoxLimits) -> Ending:
    if why is Verdict.WALL_CLOCK:
        message = f"still running after {limits.wall_seconds:g} s of wall clock"
    elif why is Verdict.BAD_OUTPUT:
        message = f"the box broke its protocol: {seen.violation}"
    elif why is Verdict.FILE_SIZE:
        message = (
            f"wrote more than allowed: {limits.file_mb} MiB per file, "
            f"and many times the {limits.log_bytes} bytes of its log"
        )
    elif why is Verdict.PROCESSES:
        message = "started more threads than allowed"
    else:
        message = _OWN_KILL.get(why, str(why))
    return Ending(verdict=why, message=message)


def _signalled(number: int, seen: Seen, limits: BoxLimits) -> Ending:
    # The kernel ends process 1 of a namespace by SIGKILL, and counts CPU for limits more coarsely than for usage.
    if number == signal.SIGXCPU or (number == signal.SIGKILL and seen.cpu_seconds >= limits.cpu_seconds / 2):
        return Ending(verdict=Verdict.CPU, message=f"used more than {limits.cpu_seconds} s of CPU")
    if number == signal.SIGXFSZ:
        return _file_size(limits)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    if seen.trusted and number in _FROM_OUTSIDE:
        message = f"killed from outside by {name}: neither this runner nor anything in the box sends it"
        return Ending(verdict=Verdict.BOX_FAILED, message=message, by_host=True)
    if number == signal.SIGSYS:
        return Ending(verdict=Verdict.SIGNAL, message="made a forbidden system call (SIGSYS)")
    return Ending(verdict=Verdict.SIGNAL, message=f"killed by {name}")


def _silent(seen: Seen, limits: BoxLimits) -> Ending:
    if seen.output_at_limit is not None:
        return _file_size(limits)
    if seen.code == OUT_OF_MEMORY:
        return _memory(limits)
    return Ending(verdict=Verdict.BAD_OUTPUT, message=f"ended with exit code {seen.code} without a final event")


def verdict_of(code: EndCode) -> Verdict:
    """What an engine's end means to the runner."""
    return _VERDICTS.get(code) or Verdict(code)


def _ending_reported(end: FinalEvent, seen: Seen, limits: BoxLimits) -> Ending:
    error = end.error
    if error is None or error.code in EXPLAINED:
        if seen.output_problem is not None:
            return Ending(verdict=Verdict.BAD_OUTPUT, message=seen.output_problem)
        if seen.code != 0:
            message = f"reported success but ended with exit code {seen.code}"
            return Ending(verdict=Verdict.BAD_OUTPUT, message=message)
    if error is None:
        return Ending(verdict=Verdict.OK, message="")
    where = {key: value for key, value in error.where.items() if key != "trace"}
    verdict = verdict_of(error.code)
    suspicion = ""
    if error.code is EndCode.ENGINE_ERROR:
        verdict = Verdict.ENGINE_FAILED if seen.trusted else verdict
        suspicion = _suspicion(str(where.get("exception", "")), str(error.where.get("trace", "")))
    if error.code in (EndCode.ENGINE_ERROR, EndCode.RULE_ERROR):
        if seen.output_at_limit is not None:
            return _file_size(limits)
        if seen.too_many_processes or _REFUSED_FORK in error.message:
            message = f"tried to start more than {limits.processes} processes"
            return Ending(verdict=Verdict.PROCESSES, message=message, where=where)
    return Ending(verdict=verdict, message=error.message, where=where, suspicion=suspicion)


def _suspicion(exception: str, trace: str) -> str:
    """The engine bug that a box reports. A rule can forge it, so only names of the right form are kept."""
    name = exception if _NAME.fullmatch(exception) else "an error"
    return f"{name} at {trace if _TRACE.fullmatch(trace) else 'an unknown place'}"


def _memory(limits: BoxLimits) -> Ending:
    return Ending(verdict=Verdict.MEMORY, message=f"used more than {limits.memory_mb} MiB of memory")


def _file_size(limits: BoxLimits) -> Ending:
    return Ending(verdict=Verdict.FILE_SIZE, message=f"wrote a file of more than {limits.file_mb} MiB")


CHECK_EVERY = 0.1  # seconds between checks of what the kernel may not limit
TICK = 0.05  # seconds between checks whether the runner wants the box to end
STILL = 5.0  # seconds without a check: this host stood still (suspended, paused), and the box with it
GRACE = 10.0  # seconds that a keeper may take to end its tree
SLACK_MB = 8  # overhead of file systems
_CHUNK = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class KeeperReport:
    """What the process that keeps a box says about its end; it is our own code."""

    code: int | None = None  # exit status, negative: killed by that signal; None: unknown
    cpu_seconds: float = 0.0
    peak_kb: int = 0
    setup_problem: str | None = None  # why the box could not be built

    @classmethod
    def decode(cls, raw: Json) -> Self:
        code, cpu, peak, problem = (raw.get(key) for key in ("code", "cpu", "peak_kb", "setup_problem"))
        return cls(
            code=code if isinstance(code, int) else None,
            cpu_seconds=float(cpu) if isinstance(cpu, int | float) else 0.0,
            peak_kb=peak if isinstance(peak, int) else 0,
            setup_problem=None if problem is None else str(problem),
        )


@dataclass(slots=True)
class Watched:
    """What the watch saw."""

    report: KeeperReport | None = None  # the keeper's final message; None: the keeper was lost
    end: FinalEvent | None = None  # the engine's final event, checked for form
    verified: FinalEvent | None = None  # its verification of its own outputs; counts only if no rules ran
    killed_as: Verdict | None = None
    violation: str | None = None


class Excess:
    """Checks use of the host that not every level limits: threads, and disk space beyond a file's end."""

    def __init__(self, pid: int | None, outputs: Sequence[int], limits: BoxLimits) -> None:
        self._status = None if pid is None else f"/proc/{pid}/status"
        self._outputs = outputs
        self._threads = TASKS + THREADS + limits.processes
        self._blocks = (limits.file_mb + SLACK_MB) * MIB // 512
        self._next = time.monotonic() + CHECK_EVERY

    def seen(self, now: float) -> Verdict | None:
        """What exceeds its limit, checked every CHECK_EVERY seconds."""
        if now < self._next:
            return None
        self._next = now + CHECK_EVERY
        if any(os.fstat(fd).st_blocks > self._blocks for fd in self._outputs):
            return Verdict.FILE_SIZE
        return Verdict.PROCESSES if self._count() > self._threads else None

    def _count(self) -> int:
        if self._status is None:
            return 0
        try:
            with open(self._status, "rb") as status:  # noqa: PTH123 - often
                return int(status.read().partition(b"\nThreads:")[2].split(None, 1)[0])
        except (OSError, IndexError, ValueError):
            return 0


class Watch:
    """Watches one running box. Owns the reading ends of its pipes and closes them."""

    def __init__(
        self,
        *,
        control: socket.socket,
        channel_fd: int,
        log: tuple[int, CappedLog] | None = None,
        on_event: OnEvent = ignore_event,
        excess: Excess,
    ) -> None:
        self._excess = excess
        self.channel = Channel()
        self._control = control
        self._fds: dict[int, Callable[[bytes], None]] = {channel_fd: self._channel_data}
        self._log = None
        if log is not None:
            log_fd, self._log = log
            self._fds[log_fd] = self._log.write
        self._on_event = on_event
        self._result = Watched()
        self._received = b""
        for fd in self._fds:
            os.set_blocking(fd, False)
        control.setblocking(False)

    def until_over(self, *, deadline: float, killed: Killed, kill: Callable[[], None]) -> Watched:
        """Follow the box to its end; `kill` is called once if it must end early."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        for fd in self._fds:
            poll.register(fd, select.POLLIN)
        abandon_at: float | None = None
        before = time.monotonic()
        try:
            while not self._over:
                now = time.monotonic()
                if now - before > STILL:
                    deadline += now - before
                before = now
                if abandon_at is None:
                    why = self._reason_to_kill(now, deadline, killed)
                    if why is not None:
                        self._result.killed_as = why
                        abandon_at = now + GRACE
                        kill()
                elif now > abandon_at:
                    break
                left = deadline - now if abandon_at is None else abandon_at - now
                for fd, _ in poll.poll(max(1.0, min(TICK, left) * 1000)):
                    if not self._receive(fd):
                        poll.unregister(fd)
            self._drain()
        finally:
            for fd in self._fds:
                os.close(fd)
        return self._result

    @property
    def _over(self) -> bool:
        return self._result.report is not None or self._control.fileno() < 0

    def _reason_to_kill(self, now: float, deadline: float, killed: Killed) -> Verdict | None:
        if self._result.violation is not None:
            return Verdict.BAD_OUTPUT
        if self._log is not None and self._log.flooded:
            return Verdict.FILE_SIZE
        why = killed()
        if why is not None:
            return why
        return Verdict.WALL_CLOCK if now >= deadline else self._excess.seen(now)

    def _receive(self, fd: int) -> bool:
        """Read once from a ready descriptor; returns whether more may come."""
        if fd not in self._fds:
            return self._control_data()
        data = read_ready(fd)
        if data:
            self._fds[fd](data)
        return data is None or bool(data)

    def _control_data(self) -> bool:
        try:
            data = self._control.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self._control.close()
            return False
        self._received += data
        if b"\n" in self._received:
            self._result.report = KeeperReport.decode(json.loads(self._received.split(b"\n", 1)[0]))
        return True

    def _channel_data(self, data: bytes) -> None:
        if self._result.violation is not None:
            return
        try:
            for event in self.channel.feed(data):
                if not isinstance(event, FinalEvent):
                    self._on_event(event)
        except ChannelViolation as violation:
            self._result.violation = str(violation)

    def _drain(self) -> None:
        """Read what the dead box left in the pipes."""
        for fd, receive in self._fds.items():
            while data := read_ready(fd):
                receive(data)
        try:
            self.channel.close()
        except ChannelViolation as violation:
            self._result.violation = self._result.violation or str(violation)
        self._result.end, self._result.verified = self.channel.end, self.channel.verified


def read_ready(fd: int) -> bytes | None:
    """What a descriptor of the box has for us: None if nothing yet, empty at its end.

    A socket whose other side was killed before it had read everything sent to it ends with an error; that is its end.
    """
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""


OWN_ROOT = own_code.ROOT  # the root of this product's packages
NULL, LOG, CHANNEL, FIRST_OUTPUT = 0, 1, 3, 4  # descriptors in the box
VERIFY_ORDER = "verify.json"
CODE_SECONDS = 10.0  # seconds between checks of the engine's code for changes


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """What runs in the box: a package with a `__main__` and a `job` module. Tests use their own."""

    package: str = "runner.engine"
    root: Path | None = None  # where to import it from, if not from OWN_ROOT
    rehearses: bool = True  # whether it can warm up with a small spreadsheet

    @property
    def paths(self) -> list[str]:
        """Import paths that the box needs in addition to its interpreter's."""
        return [str(path) for path in (self.root, OWN_ROOT) if path is not None]

    def version(self) -> object:
        """Changes with the engine's code: zygotes that imported an older version are then replaced."""
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
    """The kernel's counters for the box, if the driver has them."""

    out_of_memory: bool = False
    too_many_processes: bool = False
    peak_mb: float | None = None
    host_out_of_memory: bool | None = None  # None: the driver cannot tell whose memory it was


def oom_kills() -> int:
    """How many processes the kernel of this host has killed for want of memory; 0 if it does not say."""
    try:
        with open("/proc/vmstat", "rb") as vmstat:  # noqa: PTH123 - for every box
            return int(vmstat.read().partition(b"\noom_kill ")[2].split(None, 1)[0])
    except (OSError, IndexError, ValueError):
        return 0


class Session:
    """One box from before its start to after its end. A context manager: it leaves nothing open."""

    def __init__(self, order: BoxOrder, *, warden: bool = False, engine: bool = False) -> None:
        """Who may verify outputs in this driver's boxes: a warden always, the engine only if no rules run."""
        self.order = order
        self.engine_verifies = engine and order.verification is not None and _no_code(order)
        self._verification = order.verification if warden or self.engine_verifies else None
        self.warden_fds: list[int] = []  # descriptors for a verifying warden: its order, its outputs, and what it reads
        self._stack = ExitStack()
        self._out = order.scratch / "out"
        self._started = self._begun = time.monotonic()
        self._oom_kills = oom_kills()

    def __enter__(self) -> Self:
        order = self.order
        self._log = CappedLog(order.scratch / "log.txt", order.limits.log_bytes)
        self._stack.callback(self._log.close)
        asked = self._verification
        more = asked.outputs if asked is not None and self.engine_verifies else ()
        opened = claims.open_outputs(self._out, (*order.outputs, *more))
        self._stack.callback(claims.close_all, tuple(opened.values()))
        self._channel_read, channel_write = os.pipe2(os.O_CLOEXEC)
        self._log_read, log_write = os.pipe2(os.O_CLOEXEC)
        self._opened = tuple(opened.values())
        self._box_ends = [channel_write, log_write]
        self._our_ends = [self._channel_read, self._log_read]
        self._places = {name: FIRST_OUTPUT + index for index, name in enumerate(opened)}
        self.fds = {LOG: log_write, LOG + 1: log_write, CHANNEL: channel_write} | {
            self._places[name]: fd for name, fd in opened.items()
        }
        if asked is not None and not self.engine_verifies:
            self._open_for_warden(asked)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release_box_ends()
        claims.close_all(self._our_ends)
        self._stack.close()

    def release_box_ends(self) -> None:
        """Close our copies of the box's ends of the pipes."""
        claims.close_all(self._box_ends)
        self._box_ends = []

    @property
    def limits(self) -> KernelLimits:
        return _limits(self.order.limits)

    @property
    def verification_limits(self) -> KernelLimits:
        return _limits(self.order.limits if self._verification is None else self._verification.limits)

    def engine_order(self, isolation: Isolation, *, root: str, layer: str | None) -> Order | VerifyOrder | InspectOrder:
        """The order for the engine; `root`: where the box sees `scratch`."""
        place, sandbox = Path(root), _facts(isolation)
        job = self.order.job.below(place)
        outputs: dict[str, Place] = {name: self._places[name] for name in self.order.outputs}
        if not isinstance(job, Order):
            return replace(job, outputs=outputs, sandbox=sandbox)
        verification = None
        if self.engine_verifies:
            verification = self._verification_order(isolation, self._places, self.order.outputs, Verdict.OK)
        return replace(
            job,
            config=place / "config" if _has_config(self.order) else None,
            layer=layer,
            outputs=outputs,
            sandbox=sandbox,
            verification=verification,
        )

    def watch(
        self,
        control: socket.socket,
        *,
        killed: Killed,
        kill: Callable[[], None],
        on_event: OnEvent,
        pid: int | None = None,
    ) -> Watched:
        """Follow the box to its end; `pid`: its first process, if it is visible on this host."""
        self._begun = time.monotonic()
        self.release_box_ends()
        watch = Watch(
            control=control,
            channel_fd=self._channel_read,
            log=(self._log_read, self._log),
            on_event=on_event,
            excess=Excess(pid, self._opened, self.order.limits),
        )
        self._our_ends = []  # the watch closes them
        deadline = self._started + self.order.limits.wall_seconds
        return watch.until_over(deadline=deadline, killed=killed, kill=kill)

    def report(self, watched: Watched, kernel: Kernel | None = None) -> BoxReport:
        """The verdict, and the outputs that may be used."""
        kernel = kernel or Kernel()
        report = self._report(self.order, watched, kernel, self._started)
        if not self.engine_verifies or watched.verified is None or not self.wants_verification(report):
            return report
        seen = Watched(report=KeeperReport(code=0), end=watched.verified)
        return replace(report, verification=self._verification_report(seen, kernel, time.monotonic()))

    def wants_verification(self, report: BoxReport) -> bool:
        return self._verification is not None and (report.verdict is Verdict.OK or report.verdict in EXPLAINED)

    def order_verification(self, isolation: Isolation, report: BoxReport, *, first: int) -> None:
        """Write the order to verify; `first`: the box's descriptor of the first of `warden_fds`."""
        names = [*self._asked.outputs, *self.order.outputs]
        places = {name: first + 1 + index for index, name in enumerate(names)}
        order = self._verification_order(isolation, places, report.outputs, report.verdict)
        write_order(self.order.scratch / VERIFY_ORDER, order.encode())

    def watch_verification(
        self,
        control: socket.socket,
        channel_fd: int,
        *,
        killed: Killed,
        kill: Callable[[], None],
        pid: int,
        kernel: Callable[[], Kernel | None],
        spent: float,
    ) -> BoxReport:
        """Follow the verification to its end. `spent`: CPU seconds that the box used before."""
        asked, now = self._asked, time.monotonic()
        watch = Watch(
            control=control,
            channel_fd=channel_fd,
            excess=Excess(pid, self.warden_fds[1 : 1 + len(asked.outputs)], asked.limits),
        )
        deadline = max(self._started + self.order.limits.wall_seconds, now + asked.least_seconds)
        watched = watch.until_over(deadline=deadline, killed=killed, kill=kill)
        return self._verification_report(watched, kernel() or Kernel(), now, spent=spent)

    @property
    def _asked(self) -> Verification:
        if self._verification is None:
            raise ValueError("no verification was requested")
        return self._verification

    def _verification_order(
        self, isolation: Isolation, places: dict[str, int], written: Iterable[str], verdict: Verdict
    ) -> VerifyOrder:
        return replace(
            self._asked.job.ended(verdict),
            written={name: places[name] for name in written},
            outputs={name: places[name] for name in self._asked.outputs},
            sandbox=_facts(isolation),
        )

    def _verification_report(
        self, watched: Watched, kernel: Kernel, started: float, *, spent: float = 0.0
    ) -> BoxReport:
        order = replace(self.order, outputs=self._asked.outputs, limits=self._asked.limits, trusted=True)
        return self._report(order, watched, kernel, started, spent=spent)

    def _open_for_warden(self, asked: Verification) -> None:
        """Open its outputs, and read-only descriptors of what it verifies."""
        order = self.order.scratch / VERIFY_ORDER
        write_order(order, {})
        self.warden_fds.append(os.open(order, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        self.warden_fds += claims.open_outputs(self._out, asked.outputs).values()
        for name in self.order.outputs:
            self.warden_fds.append(os.open(self._out / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        self._stack.callback(claims.close_all, self.warden_fds)

    def _report(
        self, order: BoxOrder, watched: Watched, kernel: Kernel, started: float, *, spent: float = 0.0
    ) -> BoxReport:
        keeper = watched.report or KeeperReport()
        found, problem = claims.collect(self._out, order.outputs, order.limits.file_mb)
        cpu = max(0.0, keeper.cpu_seconds - spent)
        starved = kernel.host_out_of_memory
        if starved is None:
            killed = keeper.code in (None, -signal.SIGKILL) and cpu < order.limits.cpu_seconds / 2
            starved = killed and not kernel.out_of_memory and oom_kills() > self._oom_kills
        seen = Seen(
            end=watched.end,
            code=keeper.code,
            cpu_seconds=cpu,
            killed_as=watched.killed_as,
            violation=watched.violation,
            output_problem=problem,
            output_at_limit=claims.at_limit(self._out, order.outputs, order.limits.file_mb),
            out_of_memory=kernel.out_of_memory,
            too_many_processes=kernel.too_many_processes,
            host_out_of_memory=starved,
            setup_problem=keeper.setup_problem,
            trusted=order.trusted,
        )
        ending = judge(seen, order.limits)
        return BoxReport(
            verdict=ending.verdict,
            message=ending.message,
            where=ending.where,
            suspicion=ending.suspicion,
            by_host=ending.by_host,
            claim=watched.end.summary if watched.end is not None else {},
            outputs=found if ending.verdict is Verdict.OK or ending.verdict in EXPLAINED else {},
            log=self._log.path,
            wall_seconds=time.monotonic() - started,
            start_seconds=self._begun - self._started,
            cpu_seconds=cpu,
            peak_mb=kernel.peak_mb if kernel.peak_mb is not None else keeper.peak_kb / 1024,
        )


def _has_config(order: BoxOrder) -> bool:
    return (order.scratch / "config").is_dir()


def _no_code(order: BoxOrder) -> bool:
    """Whether only the engine runs in the box, judging by what was staged."""
    return order.trusted and order.layer is None and not _has_config(order)


def _limits(limits: BoxLimits) -> KernelLimits:
    return {
        "cpu_seconds": limits.cpu_seconds,
        "memory_mb": limits.memory_mb,
        "file_mb": limits.file_mb,
        "open_files": limits.open_files,
        "processes": limits.processes,
    }


def _facts(isolation: Isolation) -> SandboxFacts:
    return SandboxFacts(
        driver=isolation.driver, level=isolation.level, rungs=dict(isolation.rungs), gaps=tuple(isolation.gaps)
    )


def write_order(path: Path, order: Json) -> None:
    """Write the order to a file, for drivers that start the engine as a program."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o640), "w", encoding="utf-8") as file:
        file.write(json.dumps(order))
