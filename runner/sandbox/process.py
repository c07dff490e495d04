"""The `process` driver: a separate interpreter with limits and no isolation, for trusted code."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from core.errors import SandboxUnavailable
from runner.boxes import BoxOrder, BoxReport, Isolation, Killed, OnEvent, ignore_event
from runner.sandbox.box.keeper import EngineRequest
from runner.sandbox.drivers import require
from runner.sandbox.registry import Registry
from runner.sandbox.session import (
    CHANNEL,
    OWN_ROOT,
    Engine,
    Session,
    write_order,
)

BASELINE_MB = 256  # address space of an interpreter with the engine loaded, which the job does not pay for
START_SECONDS = 30.0
_KEEPER = """\
import sys
sys.path.insert(0, sys.argv[1])
from runner.sandbox.box import keeper
sys.exit(keeper.main(int(sys.argv[2])))
"""
_ENGINE = """\
import json, sys
root, paths, package, layer = sys.argv[1], json.loads(sys.argv[2]), *sys.argv[3:5]
sys.argv[1:5] = []
sys.path.insert(0, root)
from runner.sandbox.box import starting
starting.run_engine(package, paths, layer)
"""


class ProcessSandbox:
    """Limits, a clean environment, and a process tree that ends with its runner. Boxes can read what their user can."""

    def __init__(self, *, run_dir: Path, min_level: str = "none", engine: Engine | None = None) -> None:
        self._engine = engine or Engine()
        self._min_level = min_level
        self._registry = Registry(run_dir)

    def isolation(self) -> Isolation:
        return Isolation(
            driver="process",
            level="limits",
            rungs={"rlimits": True},
            gaps=(
                "rules run as the runner's user: its files, its memory and the network are open to them",
                "root is limited in threads, but not in processes",
            ),
        )

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        if not order.trusted:
            require(self.isolation(), self._min_level)
        with Session(order, engine=True) as session:
            path = order.scratch / "order.json"
            root, layer = str(order.scratch.resolve()), None if order.layer is None else str(order.layer)
            write_order(path, session.engine_order(self.isolation(), root=root, layer=layer).encode())
            keeper, control = _start_keeper(session)
            try:
                pid = _start_box(control, self._request(session, path))
                with self._registry.entry(order.label, pid):
                    watched = session.watch(
                        control, killed=killed, kill=lambda: _hang_up(control), on_event=on_event, pid=pid
                    )
            finally:
                control.close()  # makes the keeper end the tree
                keeper.wait()
            return session.report(watched)

    def reap(self, alive: Callable[[str], bool]) -> int:
        return len(self._registry.reap(alive))

    def close(self) -> None:
        """Nothing to do: every box ends with its `run`."""

    def _request(self, session: Session, order_path: Path) -> EngineRequest:
        order = session.order
        layer = "" if order.layer is None else str(order.layer)
        where = (str(OWN_ROOT), json.dumps(self._engine.paths))
        command = ("-I", "-B", "-c", _ENGINE, *where, self._engine.package, layer)
        return {
            "argv": [sys.executable, *command, str(order_path.resolve()), "--channel", str(CHANNEL)],
            "env": clean_environment(order.label),
            "cwd": str(order.scratch.resolve()),
            "limits": session.limits,
            "baseline": BASELINE_MB * 1024 * 1024,
            "fds": {str(target): source for target, source in session.fds.items()},
        }


def clean_environment(label: str) -> dict[str, str]:
    """The environment of a box. The label identifies it in process listings."""
    return {"ADE_BOX": label, "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "TZ": "UTC", "HOME": "/nonexistent"}


def _start_keeper(session: Session) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _KEEPER, str(OWN_ROOT), str(theirs.fileno())],
            env={"ADE_BOX": session.order.label},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), *set(session.fds.values())),
            start_new_session=True,
        )
    return keeper, ours


def _start_box(control: socket.socket, request: EngineRequest) -> int:
    """The pid of the engine's process."""
    control.settimeout(START_SECONDS)
    try:
        control.sendall(json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            byte = control.recv(1)
            if not byte:
                break
            answer += byte
        return int(json.loads(answer)["pid"])
    except (OSError, ValueError, KeyError) as error:
        raise SandboxUnavailable(
            "the process box did not start: its keeper gave no answer; "
            f"check that {sys.executable} can start processes here"
        ) from error


def _hang_up(control: socket.socket) -> None:
    """Ask the keeper to end the tree, but still receive its report."""
    control.shutdown(socket.SHUT_WR)
