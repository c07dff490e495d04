"""Short commands of `ade` without the time that Python takes to load them, which is most of what a command costs.

    python -m tests.support.forks DESCRIPTOR

This process loads all commands once and waits. The program `ade` that `forked_ade` writes hands it the words, the folder,
the environment and the three streams, and gets back the exit code of a fork that runs them: a process of its own like any
other, which only did not have to load anything. Commands that stay, and those whose environment Python itself reads when
it starts, go to the real program.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import marshal
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from tests.support.effort import FULL

ADE = Path(sys.executable).with_name("ade")
# What commands load when they need it.
_LOADED_LATE = (
    "infra.aws.dynamodb",
    "infra.aws.s3",
    "infra.aws.sqs",
    "infra.postgres.connections",
    "infra.postgres.listening",
    "infra.postgres.pg_queue",
    "infra.postgres.pg_table",
)
_READ_BY_PYTHON = ("PYTHON", "LANG", "LC_", "LD_")

_PROGRAM = """\
#!{python} -IS
import marshal, os, signal, socket, sys

words = sys.argv[1:]
read_by_python = {{name: value for name, value in os.environ.items() if name.startswith({names!r})}}
if read_by_python != {values!r} or {{"up", "serve", "listen"}}.intersection(words[:1]):
    os.execv({ade!r}, [{ade!r}, *words])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = marshal.dumps((words, os.getcwd(), dict(os.environ)))
    socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(asked)
    pid = int.from_bytes(server.recv(4), "big")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = os.waitstatus_to_exitcode(int.from_bytes(server.recv(4), "big"))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@functools.cache
def short_ade() -> Path:
    """The program for short commands, for all tests of this process; with ADE_TEST_FULL=1 the real one."""
    if FULL:
        return ADE
    kept = contextlib.ExitStack()
    atexit.register(kept.close)
    folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="ade-forks-"))
    return kept.enter_context(forked_ade(Path(folder)))


@contextlib.contextmanager
def forked_ade(folder: Path) -> Iterator[Path]:
    """A program `ade` in a folder, until the context ends."""
    address, program = folder / "forks", folder / "ade"
    values = {name: value for name, value in os.environ.items() if name.startswith(_READ_BY_PYTHON)}
    filled = {"names": _READ_BY_PYTHON, "values": values, "ade": str(ADE), "address": str(address)}
    program.write_text(_PROGRAM.format(python=sys.executable, **filled))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(64)
        server = _started(listening.fileno())
    try:
        yield program
    finally:
        said, _ = server.communicate()
        assert server.returncode == 0, f"what runs short commands died: {said}"


def _started(listening: int) -> "subprocess.Popen[str]":
    """The process that waits; its streams are pipes, as those of most commands: Python remembers what they can do."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.forks", str(listening)],
        cwd=Path(__file__).parents[2],
        pass_fds=[listening],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def serve(listening: socket.socket) -> None:
    """Run what comes in, each in a fork of a fork: the first waits for the second and reports its end.

    Until whoever started this closes its standard input, or dies.
    """
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        asking, _ = listening.accept()
        with asking:
            if os.fork() == 0:
                listening.close()
                _answer(asking)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _answer(asking: socket.socket) -> NoReturn:
    head, streams, *_ = socket.recv_fds(asking, 4, 3)
    with asking.makefile("rb") as rest:
        words, folder, environment = marshal.loads(rest.read(int.from_bytes(head, "big")))
    pid = os.fork()
    if pid == 0:
        asking.close()
        _become(words, folder, environment, streams)
    for stream in streams:
        os.close(stream)
    asking.sendall(pid.to_bytes(4, "big"))
    _, status = os.waitpid(pid, 0)
    asking.sendall(status.to_bytes(4, "big"))
    os._exit(0)


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> NoReturn:
    """Be the command, up to the end of this process."""
    for number, given in enumerate(streams):
        os.dup2(given, number)
        os.close(given)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = [str(ADE), *words]
    from ade_drop.__main__ import leave, start  # noqa: PLC0415 - it is what a fork becomes

    try:
        start()
    except SystemExit as end:
        leave(int(end.code or 0))


def main() -> None:
    from ade_drop import put_own_packages_first  # noqa: PLC0415

    put_own_packages_first()
    from console.cli.commands import COMMANDS, module_of  # noqa: PLC0415

    for name in COMMANDS:
        module_of(name)
    for name in _LOADED_LATE:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork has only the thread that forks"
    gc.freeze()  # or the first collection of every fork would copy all of it
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
