"""A warm process that has imported the engine and forks a box for each job.

It is exec'ed with a clean environment, holds one socket of the runner's and nothing else, runs one thread, and never
runs a rule itself. It ends when the runner closes that socket, however that comes about, and its boxes end with it.
Standard library only.
"""

import array
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

from runner.sandbox.box import kernel, limits, lockdown, namespaces

MAX_REQUEST = 128 * 1024
MAX_FDS = 64
CANNOT_START = 71


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What this zygote was asked to be. Travels as JSON."""

    module: str  # the engine's `boxed`
    package: str
    paths: list[str]  # where to import them from, beside the usual places
    namespaces: str  # "own", "given" (somebody has made them around us) or "none"
    landlock: bool
    seccomp: bool
    network: bool
    box_id: int | None  # user and group that boxes run as; None: ours
    root: str  # an empty folder to build a box's root on
    rehearsal: dict[str, Any] | None  # an order of our own to warm the engine up with


@dataclass(slots=True)
class Zygote:
    plan: Plan
    control: socket.socket
    engine: Any
    code: list[str]
    baseline: int
    pid_namespace: int | None
    boxes: dict[int, tuple[int, socket.socket]] = field(default_factory=dict)  # pidfd: pid, where to report

    def serve(self) -> None:
        """Until the runner goes away."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.control.fileno():
                    message, fds = _receive(self.control)
                    if not message:
                        return
                    pidfd = self._start(json.loads(message), fds)
                    if pidfd is not None:
                        poll.register(pidfd, select.POLLIN)
                else:
                    poll.unregister(fd)
                    self._bury(fd)

    def _start(self, request: dict[str, Any], fds: list[int]) -> int | None:
        """Fork a box. The first two descriptors are where we report and where the box waits for its go."""
        report = socket.socket(fileno=fds[0])
        if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - pathlib is not worth its import here
            _say(report, {"setup_problem": "the zygote has more than one thread"})
            return None
        zygote = os.getpid()
        try:
            pid = os.fork() if self.pid_namespace is None else namespaces.fork(self.pid_namespace)
        except OSError as error:
            _say(report, {"setup_problem": f"no fork: {error.strerror}"})
            pid = -1
        if pid == 0:
            lockdown.become_box(self, request, fds, zygote)
        for fd in fds[1:]:
            os.close(fd)
        if pid < 0:
            report.close()
            return None
        pidfd = os.pidfd_open(pid)
        _say(report, {"started": pid}, pidfd)
        self.boxes[pidfd] = (pid, report)
        return pidfd

    def _bury(self, pidfd: int) -> None:
        pid, report = self.boxes.pop(pidfd)
        _, status, usage = os.wait4(pid, 0)
        os.close(pidfd)
        _say(
            report,
            {
                "code": os.waitstatus_to_exitcode(status),
                "cpu": usage.ru_utime + usage.ru_stime,
                "peak_kb": usage.ru_maxrss,
            },
        )
        report.close()


def main(control_fd: int) -> int:
    control = socket.socket(fileno=control_fd)
    plan = Plan(**json.loads(_receive(control)[0]))
    try:
        zygote = prepare(plan, control)
    except Exception as error:  # noqa: BLE001 - whatever it is, the runner has to hear of it
        _say(control, {"setup_problem": f"{type(error).__name__}: {error}"})
        return CANNOT_START
    _say(control, {"ready": os.getpid()})
    zygote.serve()
    return 0


def prepare(plan: Plan, control: socket.socket) -> Zygote:
    """Enter the namespaces, import the engine, build the root."""
    if plan.namespaces == "own":
        namespaces.enter(network=plan.network, box_id=plan.box_id)
    else:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.set_name("ade-zygote")
    sys.path += [path for path in plan.paths if path not in sys.path]
    engine = importlib.import_module(plan.module)
    shown = lockdown.paths((plan.package, "runner.sandbox.box"), network=plan.network)
    if plan.rehearsal is not None:
        rehearse(engine, plan.rehearsal)
    own = None
    if plan.namespaces == "own":
        namespaces.build_root(plan.root, shown, lockdown.DEVICES)
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    if plan.seccomp:
        lockdown.warm_filters(network=plan.network)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle
    return Zygote(
        plan=plan,
        control=control,
        engine=engine,
        code=shown,
        baseline=limits.address_space(),
        pid_namespace=own,
    )


def rehearse(engine: Any, order: dict[str, Any]) -> None:
    """Run the engine once on a few cells of our own and verify what came out: patterns get compiled and caches filled
    before the first fork."""
    names = ["input", *order["outputs"], "report.html"]
    fds = {name: os.memfd_create(name, os.MFD_CLOEXEC) for name in names}
    try:
        os.write(fds["input"], order["text"].encode())
        job = {name: value for name, value in order.items() if name not in ("text", "verify")}
        inputs = [{**given, "path": _path(fds["input"])} for given in order["inputs"]]
        written = [{"name": name, "path": _path(fds[name])} for name in order["outputs"]]
        with open(os.devnull, "w", encoding="utf-8") as channel:  # noqa: PTH123 - pathlib is not worth its import here
            engine.run({**job, "inputs": inputs, "outputs": {name: fds[name] for name in order["outputs"]}}, channel)
            more = {"verify": order["verify"], "inputs": written, "outputs": {"report.html": fds["report.html"]}}
            engine.run(job | more, channel)
    finally:
        for fd in fds.values():
            os.close(fd)


def _path(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    fds = array.array("i")
    message, ancillary, _, _ = control.recvmsg(MAX_REQUEST, socket.CMSG_LEN(MAX_FDS * fds.itemsize))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)


def _say(to: socket.socket, words: dict[str, Any], fd: int | None = None) -> None:
    ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    try:
        to.sendmsg([json.dumps(words).encode() + b"\n"], ancillary)
    except OSError:
        return  # the runner has stopped listening; its end will reach us on the control socket
