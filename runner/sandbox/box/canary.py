"""Tries, from inside a box, what a box must not be able to do, and says what happened. Standard library only."""

import errno
import json
import os
import resource
import socket
from collections.abc import Callable
from typing import Any, TextIO


def run(order: dict[str, Any], channel: TextIO) -> int:
    """As an engine runs: the answers go out as the summary of the closing event."""
    answers: dict[str, Any] = {
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
