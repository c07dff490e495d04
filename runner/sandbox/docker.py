"""The `docker` driver: a container per job, for hosts that have an engine and no wish for anything else.

The image holds the interpreter and ade-drop itself (infra/deploy). Outputs are files that the runner made, each bound
on its own, so no folder in the container can be written to; they reach the engine as descriptors, as in the jail. An
engine gives every container the variables of its image and of the client's proxies, and a writable volume wherever the
image declares one: the box gets neither.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.errors import SandboxUnavailable
from runner.boxes import BoxOrder, BoxReport, Isolation, Killed, OnEvent, ignore_event
from runner.sandbox.box.limits import THREADS
from runner.sandbox.drivers import gaps_of, level_of, require
from runner.sandbox.jail import BOX_ID, open_to_all
from runner.sandbox.session import (
    CHANNEL,
    FIRST_OUTPUT,
    Engine,
    Kernel,
    Session,
    write_order,
)

IMAGE = "ade-drop:latest"
LABEL = "ade.box"
HOME = "ade.home"  # label: the run folder whose runners may end the box
JOB = "/job"
LAYER = "/layer"
CLI_SECONDS = 60.0
_ENGINE = """\
import sys, ade_drop
layer, package = sys.argv[1:3]
sys.argv[1:3] = []
ade_drop.put_own_packages_first()
from runner.sandbox.box import starting
starting.run_engine(package, [str(ade_drop.ROOT)], layer)
"""
_ENVIRONMENT = "LANG=C.UTF-8 TZ=UTC HOME=/nonexistent"
_CLI_FAILED = 125  # exit code of `docker run` without a container


class DockerSandbox:
    """Containers without network, capabilities or a writable root. Thread-safe."""

    def __init__(self, *, run_dir: Path, min_level: str, image: str = IMAGE, engine: Engine | None = None) -> None:
        self._home = sha256(str(run_dir.resolve()).encode()).hexdigest()[:24]
        self._min_level = min_level
        self._image = image
        self._engine = engine or Engine()

    def isolation(self) -> Isolation:
        engine = _described("info")
        problem = self._problem(engine)
        if problem is not None:
            return Isolation(driver="docker", level="none", rungs={}, gaps=(problem,))
        rungs = {
            "namespaces": True,
            "landlock": False,
            "seccomp": _filters_calls(engine),
            "rlimits": True,
            "cgroup": True,
            "own_user": True,
        }
        trusted = ("the container engine and its profile are trusted, not probed", "boxes start cold")
        gaps = gaps_of({**rungs, "landlock": True})
        return Isolation(driver="docker", level=level_of(rungs), rungs=rungs, gaps=(*gaps, *trusted))

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        isolation = self.isolation()
        if isolation.level == "none":
            raise SandboxUnavailable(f"no container can be started: {isolation.gaps[0]}")
        if not order.trusted:
            require(isolation, self._min_level)
        name = container_name(order.label)
        with Session(order) as session:
            for folder in ("in", "config"):
                open_to_all(order.scratch / folder)
            layer = None if order.layer is None else LAYER
            write_order(order.scratch / "order.json", session.engine_order(isolation, root=JOB, layer=layer).encode())
            (order.scratch / "order.json").chmod(0o644)
            for output in order.outputs:
                (order.scratch / "out" / output).chmod(0o666)  # writable for the container's user; the folder is not
            ours, theirs = socket.socketpair()
            with ours:
                process, waiter = self._start(order, session, theirs)
                try:
                    watched = session.watch(ours, killed=killed, kill=lambda: _kill(name), on_event=on_event)
                    kernel = Kernel(out_of_memory=_out_of_memory(name))
                finally:
                    process.kill()  # a client that still waits for its engine would start the container after all
                    waiter.join()
                    _cli("rm", "--force", "--volumes", name)
            return session.report(watched, kernel)

    def reap(self, alive: Callable[[str], bool]) -> int:
        mine = ("--filter", f"label={HOME}={self._home}")
        listed = _cli("ps", "--all", *mine, "--format", f'{{{{.ID}}}} {{{{.Label "{LABEL}"}}}}')
        gone = [line.split(" ", 1)[0] for line in listed.splitlines() if line and not alive(line.split(" ", 1)[1])]
        if gone:
            _cli("rm", "--force", "--volumes", *gone)
        return len(gone)

    def close(self) -> None:
        """Nothing to do: every container ends with its `run`."""

    def command(self, order: BoxOrder) -> list[str]:
        """The command line of one box."""
        limits = order.limits
        memory = f"{limits.memory_mb}m"
        args = ["docker", "run", "--name", container_name(order.label), "--label", f"{LABEL}={order.label}"]
        args += ["--label", f"{HOME}={self._home}"]
        args += ["--pull", "never", "--log-driver", "none", "--hostname", "box", "--workdir", "/"]
        args += ["--network", "bridge" if order.network else "none", "--ipc", "none", "--read-only"]
        args += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", f"{BOX_ID}:{BOX_ID}"]
        args += ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes + THREADS)]
        args += ["--ulimit", f"cpu={limits.cpu_seconds}", "--ulimit", f"fsize={limits.file_mb * 1024 * 1024}"]
        args += ["--ulimit", f"nofile={limits.open_files}", "--ulimit", "core=0"]
        for place in self._volumes():
            args += ["--tmpfs", f"{place}:ro,noexec,nosuid,nodev,mode=0555,size=4k"]
        scratch = order.scratch.resolve()
        args += _bind(f"{scratch}/order.json", f"{JOB}/order.json")
        for folder in ("in", "config"):
            if (scratch / folder).is_dir():
                args += _bind(f"{scratch}/{folder}", f"{JOB}/{folder}")
        if order.layer is not None:
            args += _bind(str(order.layer.resolve()), LAYER)
        for output in order.outputs:
            args += _bind(f"{scratch}/out/{output}", f"{JOB}/out/{output}", readonly=False)
        args += ["--entrypoint", "/bin/sh", self._image, "-c", self._script(order), "box"]
        args += ["python3", "-I", "-B", "-c", _ENGINE, LAYER if order.layer else "", self._engine.package]
        return [*args, f"{JOB}/order.json", "--channel", str(CHANNEL)]

    def _script(self, order: BoxOrder) -> str:
        """Open the engine's descriptors: the channel is standard output, the rules' log is standard error."""
        opened = (f"{FIRST_OUTPUT + n}<>{JOB}/out/{name}" for n, name in enumerate(order.outputs))
        return " ".join((f'exec env -i PATH="$PATH" {_ENVIRONMENT} "$@"', f"{CHANNEL}>&1", "1>&2", *opened))

    def _start(
        self, order: BoxOrder, session: Session, report: socket.socket
    ) -> tuple["subprocess.Popen[bytes]", threading.Thread]:
        process = subprocess.Popen(
            self.command(order),
            stdin=subprocess.DEVNULL,
            stdout=session.fds[CHANNEL],
            stderr=session.fds[1],
        )

        def wait() -> None:
            code = process.wait()
            words: dict[str, int | str] = {"code": code if code < 128 else 128 - code}
            if code == _CLI_FAILED and not _cli("inspect", "--format", "{{.Id}}", container_name(order.label)):
                words["setup_problem"] = "the container engine refused; see the log"
            with report, contextlib.suppress(OSError):  # nobody waits for one that was given up
                report.sendall(json.dumps(words).encode() + b"\n")

        waiter = threading.Thread(target=wait, name=f"docker-{order.label}")
        waiter.start()
        return process, waiter

    def _volumes(self) -> list[str]:
        """Where the image declares volumes: the engine would make them writable, on the host's disk."""
        config = _described("image", "inspect", self._image).get("Config") or {}
        return sorted(config.get("Volumes") or {})

    def _problem(self, engine: dict[str, Any]) -> str | None:
        if shutil.which("docker") is None:
            return "there is no docker command; install one or set ADE_SANDBOX=jail"
        if not engine.get("ServerVersion"):
            return "the docker engine does not answer; start it or set ADE_SANDBOX=jail"
        if not (engine.get("MemoryLimit") and engine.get("PidsLimit")):  # it would take the limits and ignore them
            return "the docker engine cannot limit memory or processes; delegate control groups to it"
        if not _cli("image", "inspect", "--format", "{{.Id}}", self._image):
            return f"there is no image {self._image}; build it with infra/deploy, or pull it"
        return None


def container_name(label: str) -> str:
    """A valid container name for any label."""
    return f"ade-{sha256(label.encode()).hexdigest()[:24]}"


def _bind(source: str, target: str, *, readonly: bool = True) -> list[str]:
    if "," in source:
        raise SandboxUnavailable(f"the docker driver cannot bind {source}: its name contains a comma")
    return ["--mount", f"type=bind,src={source},dst={target}{',readonly' if readonly else ''}"]


def _described(*words: str) -> dict[str, Any]:
    """What the engine says of itself or of an image; empty if it says nothing."""
    try:
        found = json.loads(_cli(*words, "--format", "{{json .}}") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _filters_calls(engine: dict[str, Any]) -> bool:
    """Whether containers get a seccomp profile; an engine may be set up to give them none."""
    options = [str(option) for option in engine.get("SecurityOptions") or ()]
    return any("name=seccomp" in option and "profile=unconfined" not in option for option in options)


def _kill(name: str) -> None:
    _cli("kill", name)


def _out_of_memory(name: str) -> bool:
    return _cli("inspect", "--format", "{{.State.OOMKilled}}", name) == "true"


def _cli(*args: str) -> str:
    """The output of a docker command; empty if it failed."""
    try:
        ran = subprocess.run(["docker", *args], capture_output=True, text=True, timeout=CLI_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
