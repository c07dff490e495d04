"""The runner's side of zygotes: one per tenant, started on demand, asked for boxes, recycled when idle.

`Pool` holds the zygotes; `ZygoteProcess` starts one and speaks its protocol over a socket; `Box` is a fork that is
locked down and waits for its go. Their inside is box/zygote.py.
"""

import array
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from core.errors import SandboxBusy, SandboxUnavailable
from runner.engine.contract import Json
from runner.sandbox.box.keeper import children
from runner.sandbox.box.zygote import GO, VERIFY, BoxRequest, Plan
from runner.sandbox.session import OWN_ROOT

START_SECONDS = 30.0
_LATE = f"no box started within {START_SECONDS:.0f} s; this host has too much to do, try again when it has less"
_ZYGOTE = """\
import os, sys
sys.path.insert(0, sys.argv[1])
from runner.sandbox.box import zygote
os._exit(zygote.main(int(sys.argv[2])))  # taking all apart that was loaded would take a sixth of its start
"""
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "TZ": "UTC",
    "HOME": "/nonexistent",
    "MALLOC_ARENA_MAX": "1",  # threads share the box's address space limit
}


def command(control: int) -> list[str]:
    """The command that starts a zygote; `control`: the descriptor of its control socket."""
    return [sys.executable, "-I", "-B", "-c", _ZYGOTE, str(OWN_ROOT), str(control)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A locked-down box that waits for its go."""

    pids: tuple[int, ...]  # as seen from the runner: the first process, whose death ends the others, and the engine's
    pidfd: int
    report: socket.socket
    gate: socket.socket

    @property
    def pid(self) -> int:
        return self.pids[0]

    @property
    def has_warden(self) -> bool:
        """Whether it has a warden that waits for the engine to end."""
        return len(self.pids) > 1

    def go(self) -> None:
        for _ in self.pids:
            self.gate.send(GO)
        if not self.has_warden:
            self.gate.close()

    def verify(self) -> int:
        """Let the warden verify; returns the descriptor of its channel."""
        try:
            self.gate.setblocking(True)
            self.gate.send(VERIFY)
        except OSError as error:
            raise SandboxUnavailable(f"the warden of the box is gone: {error}") from error
        return self.gate.detach()

    def leave(self, seconds: float) -> Json | None:
        """Dismiss the warden and wait for its end; returns the zygote's report of it."""
        self.gate.close()
        self.report.settimeout(seconds)
        try:
            return _receive(self.report)[0] or None
        except OSError:
            return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def close(self) -> None:
        self.gate.close()
        self.report.close()
        os.close(self.pidfd)


class ZygoteProcess:
    """One zygote. `start` may be called from several threads at once."""

    def __init__(self, plan: Plan, *, wrapper: Sequence[str] = ()) -> None:
        self.jobs = 0
        self.busy = 0
        self.used_at = time.monotonic()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*wrapper, *command(theirs.fileno())],
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
            )
        self._control.settimeout(START_SECONDS)
        try:
            self._control.send(json.dumps(asdict(plan)).encode())
            words = _receive(self._control)[0]
        except TimeoutError:
            self.close()
            raise SandboxBusy(_LATE) from None
        except OSError as error:
            self.close()
            raise SandboxUnavailable(f"the zygote did not answer: {error}") from error
        if "ready" not in words:
            self.close()
            raise SandboxUnavailable(f"the zygote could not start: {words.get('setup_problem', 'it ended')}")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def start(self, request: BoxRequest, fds: Sequence[int], *, processes: int, forked: Callable[[int], None]) -> Box:
        """Fork a locked-down box of this many processes; raises SandboxUnavailable if that fails.

        `forked` is called with the pid of the first one while that locks itself down.
        """
        report, report_theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gate, gate_theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pidfd = -1
        try:
            with report_theirs, gate_theirs, _written(json.dumps(request).encode()) as asked:
                handed = array.array("i", [report_theirs.fileno(), gate_theirs.fileno(), asked.fileno(), *fds])
                self._control.sendmsg([GO], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
            report.settimeout(START_SECONDS)
            gate.settimeout(START_SECONDS)
            words, pidfd = _receive(report)
            if pidfd < 0:
                raise SandboxUnavailable(f"no box from the zygote: {words.get('setup_problem', 'it ended')}")
            pid = _pid_of(pidfd)
            forked(pid)
            for _ in range(processes):
                answer = gate.recv(1000)
                if answer != GO:
                    text = answer.decode("utf-8", "replace") or "it ended at once"
                    raise SandboxUnavailable(f"the box could not lock itself down: {text}")
            pids = (pid, *(children(pid) if processes > 1 else ()))
            if len(pids) != processes:
                raise SandboxUnavailable("the box has lost its engine, or this kernel does not list children")
            return Box(pids=pids, pidfd=pidfd, report=report, gate=gate)
        except BaseException as error:
            for end in (report, gate):
                end.close()
            if pidfd >= 0:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)
            if isinstance(error, TimeoutError):
                raise SandboxBusy(_LATE) from None
            if isinstance(error, OSError):
                raise SandboxUnavailable(f"the zygote is gone: {error}") from error
            raise

    def close(self) -> None:
        """End the zygote and all its boxes."""
        self._control.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _written(data: bytes) -> BinaryIO:
    """A file in memory that holds this, to be read from its start."""
    file = os.fdopen(os.memfd_create("request", os.MFD_CLOEXEC), "w+b", buffering=0)
    file.write(data)
    file.seek(0)
    return file


def _receive(sock: socket.socket) -> tuple[Json, int]:
    """A message from a zygote, and the descriptor that came with it (-1: none)."""
    message, ancillary, _, _ = sock.recvmsg(4096, socket.CMSG_LEN(4))
    fd = -1
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fd = array.array("i", data)[0]
    return (json.loads(message) if message else {}), fd


def _pid_of(pidfd: int) -> int:
    """The pid in this process's namespace."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "Pid":
            return int(value)
    raise SandboxUnavailable("this kernel does not report the pid of a pidfd")


IDLE_SECONDS = 300.0
MOST_IDLE = 8


@dataclass(slots=True)
class _Place:
    """The slot of one tenant's zygote; locked while it starts."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    zygote: ZygoteProcess | None = None
    made_of: object = None


class Pool:
    """One zygote per tenant, started on first use, replaced after many jobs or when the code changes."""

    def __init__(
        self, make: Callable[[bool], ZygoteProcess], *, recycle_after: int, version: Callable[[], object]
    ) -> None:
        self._make = make
        self._recycle_after = recycle_after
        self._version = version
        self._places: dict[tuple[str, bool], _Place] = {}
        self._spare: _Place | None = None
        self._lock = threading.Lock()
        self._retired: list[ZygoteProcess] = []

    @contextmanager
    def zygote(self, tenant: str, *, network: bool) -> Iterator[ZygoteProcess]:
        """This tenant's zygote, kept while the context lasts."""
        with self._lock:
            if not network and self._spare is not None and (tenant, network) not in self._places:
                self._places[tenant, network], self._spare = self._spare, None
            place = self._places.setdefault((tenant, network), _Place())
        with place.lock:
            zygote = self._current(place, network=network)
            zygote.busy += 1
            zygote.jobs += 1
        try:
            yield zygote
        finally:
            with place.lock:
                zygote.busy -= 1
                zygote.used_at = time.monotonic()
            self._tidy()

    def hand_over(self, tenant: str) -> None:
        """Let the next tenant take over this one's zygote: only the engine has run in its boxes."""
        with self._lock:
            place = self._places.pop((tenant, False), None)
            if place is not None and place.zygote is not None:
                place.zygote.jobs = 0
                self._spare = place

    def discard(self, tenant: str, *, network: bool) -> None:
        """Do not use this tenant's zygote again."""
        with self._lock:
            place = self._places.get((tenant, network))
        if place is not None:
            with place.lock:
                self._retire(place)
        self._tidy()

    def close(self) -> None:
        with self._lock:
            places, self._places = list(self._places.values()), {}
            places += [self._spare] if self._spare is not None else []
            self._spare = None
        for place in places:
            with place.lock:
                if place.zygote is not None:
                    place.zygote.close()
                    place.zygote = None
        for zygote in self._retired:
            zygote.close()
        self._retired = []

    def _current(self, place: _Place, *, network: bool) -> ZygoteProcess:
        version = self._version()
        worn = place.zygote is not None and (
            place.zygote.jobs >= self._recycle_after or place.made_of != version or not place.zygote.alive
        )
        if worn:
            self._retire(place)
        if place.zygote is None:
            place.zygote = self._make(network)
            place.made_of = version
        return place.zygote

    def _retire(self, place: _Place) -> None:
        if place.zygote is not None:
            with self._lock:
                self._retired.append(place.zygote)
            place.zygote = None

    def _tidy(self) -> None:
        """End retired zygotes that have no box left, and idle ones that are old or too many."""
        now = time.monotonic()
        with self._lock:
            done = [zygote for zygote in self._retired if zygote.busy == 0]
            self._retired = [zygote for zygote in self._retired if zygote.busy]
            idle = sorted(
                (place.zygote.used_at, key)
                for key, place in self._places.items()
                if place.zygote is not None and place.zygote.busy == 0
            )
            surplus = len(idle) - MOST_IDLE
            for index, (used_at, key) in enumerate(idle):
                place = self._places[key]
                if (index < surplus or now - used_at > IDLE_SECONDS) and place.lock.acquire(blocking=False):
                    try:
                        if place.zygote is not None and place.zygote.busy == 0:
                            done.append(place.zygote)
                            place.zygote = None
                    finally:
                        place.lock.release()
        for zygote in done:
            zygote.close()
