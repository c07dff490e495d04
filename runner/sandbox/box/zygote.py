"""A warm process that has imported the engine and forks a box for each job; and what the fork does to become that box.

It is exec'ed with a clean environment, holds one socket of the runner's and nothing else, runs one thread, and never
runs a rule itself. It ends when the runner closes that socket, however that comes about, and its boxes end with it.
A fork drops every privilege, in this order, before it reads the job; `become_box` never returns, since a fork must not
continue in the zygote's code. Also here: which files a box needs to run Python, and the canary, which tries from inside
what a box must not be able to do. Standard library only.
"""

import array
import errno
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, TextIO, TypedDict

from runner.sandbox.box import kernel, landlock, limits, namespaces, seccomp, starting

MAX_REQUEST = 128 * 1024
MAX_FDS = 253  # as many as the kernel passes with one message
CANNOT_START, OUT_OF_MEMORY = 71, 72
GO, VERIFY = b"g", b"v"
NULL = 0
_ALL_OTHERS = -1  # for `kill`: every process of the namespace but its first
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
)
# Of Debian, Fedora, SUSE and Alpine. The folders around them may hold keys.
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_filters: dict[tuple[bool, bool], seccomp.Filter] = {}


class WarmUp(TypedDict):
    """A small job to warm the engine up with, and the verification of its outputs."""

    text: str  # the content of its only input
    source: dict[str, object]  # that input, as the order names it
    order: dict[str, object]  # without the places of files
    verify: dict[str, object]
    outputs: list[str]
    workbook: str  # the output that is read again as an input
    pages: list[str]  # that the verification writes


class BoxRequest(TypedDict):
    """What a box has to know before it learns its job."""

    targets: list[int]  # the numbers of its descriptors
    divided: bool  # it has a warden
    warden_fds: int  # how many descriptors of the warden follow
    entries: int  # and after those, how many by which it moves into its control group
    warden: limits.KernelLimits
    channel: int
    limits: limits.KernelLimits
    canary: bool
    layer: str | None  # a further import path
    show: list[tuple[str, str]]
    readable: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What this zygote was asked to be. Travels as JSON."""

    module: str  # the engine's `job`
    package: str
    paths: list[str]  # where to import them from
    namespaces: str  # "own", "given" (somebody has made them around us) or "none"
    landlock: bool
    seccomp: bool
    network: bool
    box_id: int | None  # user and group that boxes run as; None: ours
    root: str  # an empty folder to build a box's root on
    rehearsal: WarmUp | None


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
                    pidfd = self._start(fds)
                    if pidfd is not None:
                        poll.register(pidfd, select.POLLIN)
                else:
                    poll.unregister(fd)
                    self._bury(fd)

    def _start(self, fds: list[int]) -> int | None:
        """Fork a box. The first two descriptors are where we report and where the box waits for its go.

        The third is the request, which only the box reads: whatever we read, later boxes would find in their memory.
        """
        report = socket.socket(fileno=fds[0])
        if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - pathlib is not worth its import here
            _send(report, {"setup_problem": "the zygote has more than one thread"})
            return None
        zygote = os.getpid()
        try:
            pid = os.fork() if self.pid_namespace is None else namespaces.fork(self.pid_namespace)
        except OSError as error:
            _send(report, {"setup_problem": f"no fork: {error.strerror}"})
            pid = -1
        if pid == 0:
            become_box(self, fds, zygote)
        for fd in fds[1:]:
            os.close(fd)
        if pid < 0:
            report.close()
            return None
        pidfd = os.pidfd_open(pid)
        _send(report, {"started": pid}, pidfd)
        self.boxes[pidfd] = (pid, report)
        return pidfd

    def _bury(self, pidfd: int) -> None:
        pid, report = self.boxes.pop(pidfd)
        _, status, usage = os.wait4(pid, 0)
        os.close(pidfd)
        _send(
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
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported to the runner
        _send(control, {"setup_problem": f"{type(error).__name__}: {error}"})
        return CANNOT_START
    _send(control, {"ready": os.getpid()})
    zygote.serve()
    return 0


def prepare(plan: Plan, control: socket.socket) -> Zygote:
    """Enter the namespaces, import the engine, build the root."""
    if plan.namespaces == "own":
        namespaces.enter(network=plan.network, box_id=plan.box_id)
    else:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.set_name("ade-zygote")
    engine = starting.import_engine(plan.module, plan.paths)
    if plan.network and (bundle := ca_bundle()):
        os.environ["SSL_CERT_FILE"] = bundle
    shown = shown_paths((plan.package, "runner.sandbox.box"), network=plan.network)
    if plan.rehearsal is not None:
        rehearse(engine, plan.rehearsal)
        gc.collect()
    own = None
    if plan.namespaces == "own":
        namespaces.build_root(plan.root, shown, DEVICES)
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    if plan.seccomp:
        warm_filters(network=plan.network)
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


def rehearse(engine: Any, job: WarmUp) -> None:
    """Run the engine on a few cells of our own, then on the workbook that it wrote, and verify what came out.

    Patterns get compiled, caches filled and code specialized before the first fork, not in every box.
    """
    written = ("first", "second")
    names = ["input", *job["pages"], *(f"{turn} {name}" for turn in written for name in job["outputs"])]
    fds = {name: os.memfd_create(name, os.MFD_CLOEXEC) for name in names}
    engine.load_everything()
    texts = {**job["source"], "path": _path(fds["input"])}
    book = {**job["source"], "name": job["workbook"], "path": _path(fds[f"first {job['workbook']}"])}
    try:
        os.write(fds["input"], job["text"].encode())
        with open(os.devnull, "w", encoding="utf-8") as channel:  # noqa: PTH123 - pathlib is not worth its import here
            for turn, source in zip(written, (texts, book), strict=True):
                outputs = {name: fds[f"{turn} {name}"] for name in job["outputs"]}
                engine.run({**job["order"], "inputs": [source], "outputs": outputs}, channel)
            checked = [{"name": name, "path": _path(fds[f"second {name}"])} for name in job["outputs"]]
            pages = {name: fds[name] for name in job["pages"]}
            engine.run({**job["verify"], "inputs": checked, "outputs": pages}, channel)
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


def _send(to: socket.socket, words: dict[str, object], fd: int | None = None) -> None:
    ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    try:
        to.sendmsg([json.dumps(words).encode() + b"\n"], ancillary)
    except OSError:
        return  # the runner has stopped listening; its end will reach us on the control socket


def become_box(zygote: Zygote, fds: list[int], parent: int) -> NoReturn:
    """Become the box: lock down, wait for the go, run the engine, exit.

    In a pid namespace of its own a box with rules is two processes. The first is the *warden*: it waits for the engine
    to end, kills all that is left, and then verifies the outputs. It forks the engine before either learns the job.
    """
    status = CANNOT_START
    try:
        with os.fdopen(fds[2], "rb", closefd=False) as file:
            request: BoxRequest = json.load(file)
        entries = len(fds) - request["entries"]
        for fd in fds[entries:]:
            os.write(fd, b"0")
        order, gate = _arrange_descriptors(request, fds[:entries])
        engine = _divide(zygote, request, parent, gate)
        os.write(gate, GO)
        if os.read(gate, 1) != GO:
            os._exit(CANNOT_START)
        if engine:
            for fd in (1, 2):
                os.dup2(NULL, fd)
            os.closerange(3, gate)  # the engine's descriptors
            status = _guard(zygote, gate, engine)
        else:
            os.closerange(gate, gate + 1 + request["warden_fds"])  # the warden's descriptors
            status = _run(zygote, request, order)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException:  # noqa: BLE001 - as above
        traceback.print_exc()
        status = 70
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(status & 0xFF)


def _arrange_descriptors(request: BoxRequest, fds: list[int]) -> tuple[int, int]:
    """Arrange the descriptors (the job's, its order, the gate, the warden's) and close all others."""
    targets = [int(target) for target in request["targets"]]
    order, gate = max(targets) + 1, max(targets) + 2
    places = [*targets, *range(gate + 1, gate + 1 + request["warden_fds"])]
    kernel.place_fds({gate: fds[1], order: fds[3]} | dict(zip(places, fds[4:], strict=True)))
    return order, gate


def _divide(zygote: Zygote, request: BoxRequest, parent: int, gate: int) -> int:
    """Drop every privilege. With a warden, return in it with the engine's pid, and in the engine with 0."""
    try:
        tasks = _lock_down(zygote, request, parent)
        engine = os.fork() if request["divided"] else 0
        if engine:
            _seal_warden(zygote, request)
        else:
            _seal_engine(zygote, request, tasks)
    except BaseException as error:  # noqa: BLE001 - it is reported to the runner, whatever it is
        os.write(gate, f"{type(error).__name__}: {error}".encode()[:500])
        os._exit(CANNOT_START)
    return engine


def _lock_down(zygote: Zygote, request: BoxRequest, parent: int) -> int:
    """Drop what neither process of a box needs; returns how many tasks already count against their user."""
    plan = zygote.plan
    kernel.set_name("ade-box")
    own = plan.namespaces == "own"
    if own:
        kernel.unshare(kernel.CLONE_NEWNS)
        for name, target in request["show"]:
            namespaces.show(name, plan.root + target)
        namespaces.enter_root(plan.root)
        kernel.drop_bounding_set()
        namespaces.become_user()
    else:
        os.chdir("/")
        if plan.namespaces == "none":
            limits.count_apart()
    kernel.drop_capabilities()
    if own:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        kernel.die_with_parent(parent)
    # A separate user counts only its own tasks; otherwise those of the same user outside count too.
    tasks = limits.TASKS + (0 if plan.namespaces != "none" else limits.tasks_of_user())
    if plan.landlock:
        readable = [*zygote.code, *request["readable"]]
        landlock.restrict(readable=readable, writable=DEVICES, network=plan.network)
    return tasks


def _seal_engine(zygote: Zygote, request: BoxRequest, tasks: int) -> None:
    plan = zygote.plan
    if request["layer"] is not None:
        starting.add_layer(request["layer"])
    limits.apply(request["limits"], baseline=zygote.baseline, tasks=tasks)
    if plan.seccomp:
        may_fork = plan.namespaces == "own" and request["limits"]["processes"] > 0
        _filters[may_fork, plan.network].install(os.getpid())


def _seal_warden(zygote: Zygote, request: BoxRequest) -> None:
    """Allow no network and no fork; the only signal it may send goes to all other processes of its namespace."""
    limits.apply(request["warden"], baseline=zygote.baseline, tasks=limits.TASKS)
    if zygote.plan.seccomp:
        _filters[False, False].install(_ALL_OTHERS)


def _guard(zygote: Zygote, gate: int, engine: int) -> int:
    """Report how the engine ended once nothing of it is left; then verify its outputs if the runner asks for it."""
    while (ended := os.waitpid(-1, 0))[0] != engine:
        continue
    while _others():
        continue
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = {
        "code": os.waitstatus_to_exitcode(ended[1]),
        "cpu": used.ru_utime + used.ru_stime,
        "peak_kb": used.ru_maxrss,
    }
    os.write(gate, json.dumps(words).encode() + b"\n")
    if os.read(gate, 1) != VERIFY:
        return 0
    with os.fdopen(gate + 1, "rb") as file:
        order = json.load(file)
    with os.fdopen(gate, "w", encoding="utf-8") as channel:
        return int(zygote.engine.run(order, channel))


def _others() -> bool:
    """Kill every other process of the namespace and wait for one; returns whether there was one."""
    with suppress(ProcessLookupError):
        os.kill(_ALL_OTHERS, signal.SIGKILL)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        return False
    return True


def _run(zygote: Zygote, request: BoxRequest, order_fd: int) -> int:
    with os.fdopen(order_fd, "rb") as file:
        order = json.load(file)
    run = run_canary if request["canary"] else zygote.engine.run
    with os.fdopen(request["channel"], "w", encoding="utf-8") as channel:
        return int(run(order, channel))


def warm_filters(*, network: bool) -> None:
    """Assemble the filters before the fork: every job needs them."""
    for kind in ((False, network), (True, network), (False, False)):
        _filters[kind] = seccomp.Filter(processes=kind[0], network=kind[1])


def network_files() -> list[str]:
    """What a box needs besides sockets: names of hosts, and whom to trust."""
    bundle = ca_bundle()
    return [*NETWORK_FILES, *([bundle] if bundle else [])]


def ca_bundle() -> str | None:
    """The host's certificates of authorities, one file without links."""
    return next((os.path.realpath(path) for path in CA_BUNDLES if os.path.isfile(path)), None)  # noqa: PTH113


def shown_paths(packages: tuple[str, ...], *, network: bool) -> list[str]:
    """Every file and folder to show, including those of the imported `packages`."""
    wanted = [*LIBRARIES, *FILES, *(network_files() if network else ())]
    wanted += [entry for entry in sys.path if _is_library(entry)]
    wanted.append(f"{sys.base_prefix}/lib")
    for name in packages:
        wanted += list(sys.modules[name].__path__)
    return _outermost([path for path in wanted if os.path.exists(path)])  # noqa: PTH110 - stays light


def _is_library(entry: str) -> bool:
    """Whether a path is the interpreter's or of installed packages, not a checkout that happens to be on sys.path."""
    if not os.path.isdir(entry):  # noqa: PTH112 - as above
        return False
    name = os.path.basename(entry)  # noqa: PTH119 - as above
    return name in {"site-packages", "dist-packages"} or entry.startswith(f"{sys.base_prefix}/lib")


def _outermost(wanted: list[str]) -> list[str]:
    """The paths without those below another one."""
    outermost: list[str] = []
    for path in sorted(set(wanted)):
        if not any(path.startswith(f"{outer}/") and not os.path.islink(outer) for outer in outermost):  # noqa: PTH114
            outermost.append(path)
    return outermost


def run_canary(order: dict[str, Any], channel: TextIO) -> int:
    """Runs like an engine; the answers are the summary of the final event."""
    answers: dict[str, object] = {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "read_outside": _tried(lambda: os.close(os.open(order["forbidden"], os.O_RDONLY))),
        "stat_outside": _tried(lambda: os.stat(order["forbidden"])),  # noqa: PTH116 - stays light
        "list_root": _tried(lambda: os.listdir("/")),  # noqa: PTH208 - as above
        "read_input": _tried(lambda: os.close(os.open(order["inputs"][0]["path"], os.O_RDONLY))),
        "write_input": _tried(lambda: os.close(os.open(order["inputs"][0]["path"], os.O_WRONLY))),
        "make_file": _tried(lambda: os.close(os.open("/tmp/ade-canary", os.O_CREAT | os.O_WRONLY))),  # noqa: S108
        "socket": _tried(lambda: socket.socket(socket.AF_UNIX).close()),
        "fork": _tried(_fork),
        "cpu_limit": resource.getrlimit(resource.RLIMIT_CPU)[0],
        "core_limit": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "imports": _tried(lambda: __import__("decimal")),
    }
    channel.write(json.dumps({"event": "end", "ok": True, "summary": answers}) + "\n")
    return 0


def _tried(attempt: Callable[[], object]) -> str:
    """ "done", or the name of the error."""
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "OSError")
    except Exception as error:  # noqa: BLE001 - any failure is an answer
        return type(error).__name__
    return "done"


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
