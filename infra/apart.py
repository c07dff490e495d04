"""Runs one of our functions on what a tenant wrote, in a process with limits of its own.

Theory of operation. Two helper processes at most, started when they are first needed and gone after a minute without
work. A helper has no credentials in its environment, can write no file, and may use so many seconds of CPU for a call
and so much memory in all. A call goes to it as a pickle. Its answer is read with care: of all classes only our own
plain ones are loaded. Who is at fault follows from how a helper ends: out of memory or of CPU time, the text is too
costly; otherwise it was our surroundings, and trying again later may work.
"""

import atexit
import contextlib
import io
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from core.errors import AdeError, StoreUnavailable

SMALL: Final = 32 * 1024  # bytes of a text that is cheap whatever it holds
_HELPERS: Final = 2
_IDLE_SECONDS: Final = 60.0
_CPU_SECONDS: Final = 10
_WALL_SECONDS: Final = 60.0
_MEMORY: Final = 1024 * 1024 * 1024  # of addresses, the interpreter's own among them
_LARGEST: Final = 512 * 1024 * 1024  # of an answer
_HEAD: Final = struct.Struct(">BQ")
_DONE, _COSTLY, _FAILED = range(3)
_PLAIN: Final = frozenset(
    {("datetime", "datetime"), ("datetime", "timezone"), ("datetime", "timedelta"),
     ("pydantic_core._pydantic_core", "TzInfo")}
)  # fmt: skip

T = TypeVar("T")


class TooCostly(AdeError):
    """A text takes more time or memory to read than it may."""


def apart(act: Callable[..., T], *arguments: Any) -> T:
    """What one of our functions gives for these arguments. Raises TooCostly or StoreUnavailable."""
    return _POOL.call(act, arguments)


class _Helper:
    """One process. `call` by one thread at a time."""

    def __init__(self, cpu_seconds: int) -> None:
        self._cpu_seconds = cpu_seconds
        code = f"from infra.apart import serve; serve({cpu_seconds})"
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.environ.get("PATH", "")}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],  # -P: nothing from the folder that we happen to be in
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=0,
        )
        self._until = time.monotonic()

    def call(self, act: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        self._until = time.monotonic() + _WALL_SECONDS
        try:
            _write(self._process.stdin, _DONE, pickle.dumps((act, arguments), protocol=5))
            how, size = _HEAD.unpack(self._read(_HEAD.size))
            body = self._read(size) if size <= _LARGEST else b""
        except (OSError, EOFError, struct.error):
            self.end()
            raise self._ended() from None
        if how == _COSTLY:
            self.end()  # what it has not given back, the next call would lack
            raise TooCostly("it takes too much memory")
        answer = _Answer(io.BytesIO(body)).load()
        if how == _FAILED:
            raise RuntimeError(f"{act.__name__}: {answer}")
        made: T = answer
        return made

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ended(self) -> AdeError:
        if self._process.returncode == -signal.SIGXCPU:
            return TooCostly(f"it takes more than {self._cpu_seconds} seconds")
        return StoreUnavailable("the process that reads large texts has ended; try again")

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - opened above
        found = bytearray()
        while len(found) < size:
            left = self._until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise EOFError
            piece = self._process.stdout.read(size - len(found))
            if not piece:
                raise EOFError
            found += piece
        return bytes(found)


class HelperPool:
    """Safe to share between threads."""

    def __init__(self, cpu_seconds: int = _CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._turns = threading.BoundedSemaphore(_HELPERS)
        self._idle: list[_Helper] = []

    def call(self, act: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._turns:
            helper = self._one()
            try:
                return helper.call(act, arguments)
            finally:
                if helper.lives:
                    self._idle.append(helper)

    def _one(self) -> _Helper:
        with contextlib.suppress(IndexError):
            while True:
                helper = self._idle.pop()
                if helper.lives:
                    return helper
                helper.end()
        try:
            return _Helper(self._cpu_seconds)
        except OSError as error:
            raise StoreUnavailable(f"no process to read large texts could be started: {error}") from None

    def end(self) -> None:
        for helper in self._idle:
            helper.end()


class _Answer(pickle.Unpickler):
    """Loads plain values and our own classes: whatever went wrong in a helper, it cannot make us run anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN or module.partition(".")[0] in ("core", "runner"):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not one of our values")


def serve(cpu_seconds: int) -> None:
    """The helper's side: one call after the other until nobody calls any more."""
    source, target = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for our parent, which drains first
    for limit, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (most, most))
    while select.select([source], [], [], _IDLE_SECONDS)[0]:
        head = source.read(_HEAD.size)
        if not head:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        how, answer = _answered(source, _HEAD.unpack(head)[1])
        _write(target, how, answer)


def _answered(source: io.FileIO, size: int) -> tuple[int, bytes]:
    try:
        body = bytearray()
        while len(body) < size and (piece := source.read(size - len(body))):
            body += piece
        act, arguments = pickle.loads(bytes(body))  # noqa: S301 - written by our own parent
        return _DONE, pickle.dumps(act(*arguments), protocol=5)
    except MemoryError:
        return _COSTLY, b""
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        return _FAILED, pickle.dumps(f"{type(error).__name__}: {error}"[:500])


def _write(target: Any, how: int, body: bytes) -> None:
    left = memoryview(_HEAD.pack(how, len(body)) + body)
    while left:
        left = left[target.write(left) :]


_POOL = HelperPool()


def _forget() -> None:
    """In a fork: the helpers are the parent's."""
    global _POOL  # noqa: PLW0603
    _POOL = HelperPool()


def _end() -> None:
    _POOL.end()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
