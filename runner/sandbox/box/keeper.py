"""Keeps one box without isolation: starts it, waits, ends its whole process tree, and reports how it ended.

The keeper is a process between runner and box because only a parent can adopt a box's daemons (subreaper), and because
it ends with the runner: the control socket closes however the runner dies. Standard library only.
"""

import json
import os
import select
import signal
import socket
import sys
from typing import Any, TypedDict

from runner.sandbox.box import kernel, limits


class EngineRequest(TypedDict):
    """How to start the engine as a program."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    limits: limits.KernelLimits
    baseline: int  # bytes of address space that the job does not pay for
    fds: dict[str, int]  # the numbers that descriptors have in the box, and here


def main(control_fd: int) -> int:
    """Serve one request on the control socket."""
    control = socket.socket(fileno=control_fd)
    request: EngineRequest = json.loads(_line(control))
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.set_name("ade-keeper")
    keeper = os.getpid()
    tasks = limits.tasks_of_user()
    failed_read, failed_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_box(request, keeper, tasks, failed_write)
    for fd in {failed_write, *request["fds"].values()}:
        os.close(fd)
    control.sendall(json.dumps({"pid": pid}).encode() + b"\n")
    status, usage = _wait(control, pid)
    kill_descendants()
    problem = os.read(failed_read, 1000).decode("utf-8", "replace")
    report = {
        "setup_problem": problem or None,
        "code": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_kb": usage.ru_maxrss,
    }
    try:
        control.sendall(json.dumps(report).encode() + b"\n")
    except OSError:
        return 1  # the runner is gone; the tree is already dead
    return 0


def _line(control: socket.socket) -> bytes:
    with control.makefile("rb") as lines:
        return lines.readline()


def _become_box(request: EngineRequest, keeper: int, tasks: int, failed: int) -> None:
    """Execute the engine's program; errors before that are written to `failed`."""
    try:
        os.setsid()
        kernel.die_with_parent(keeper)
        places = {int(target): source for target, source in request["fds"].items()}
        highest = max(places) + 1
        kernel.place_fds(places | {highest: failed})
        failed = highest
        os.set_inheritable(failed, False)
        os.chdir(request["cwd"])
        limits.apply(request["limits"], baseline=request["baseline"], tasks=tasks)
        os.execve(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - no shell on purpose
    except BaseException as error:  # noqa: BLE001 - a fork must never return into the keeper's code
        os.write(failed, f"{type(error).__name__}: {error}".encode()[:500])
    os._exit(1)


def _wait(control: socket.socket, pid: int) -> tuple[int, Any]:
    """Wait until the box ends; kill it if the runner asks for it or goes away."""
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(pidfd, select.POLLIN)
    ready = {fd for fd, _ in poll.poll()}
    if pidfd not in ready:
        kill_descendants(spare_status_of=pid)
    os.close(pidfd)
    _, status, usage = os.wait4(pid, 0)
    return status, usage


def kill_descendants(spare_status_of: int | None = None) -> None:
    """Kill everything below this process, adopted daemons included, until nothing is left.

    `spare_status_of`: this child is killed but not waited for; the caller needs its status.
    """
    while True:
        below = descendants(os.getpid())
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if not _reap(spare_status_of):
            return


def _reap(spare: int | None) -> bool:
    """Wait for ended children; returns whether others may remain."""
    if spare is not None:
        os.waitid(os.P_PID, spare, os.WEXITED | os.WNOWAIT)
        others = [pid for pid in children(os.getpid()) if pid != spare]
        for pid in others:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                continue
        return bool(others)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        return False
    return True


def descendants(root: int) -> list[int]:
    """Every process below `root`, parents first."""
    found: list[int] = []
    queue = [root]
    while queue:
        below = children(queue.pop())
        found += below
        queue += below
    return found


def children(pid: int) -> list[int]:
    """Direct children of all threads; none if the process is gone."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib is not worth its import here
            with open(f"/proc/{pid}/task/{task}/children", "rb") as listed:  # noqa: PTH123 - as above
                found += [int(word) for word in listed.read().split()]
    except OSError:
        return found
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
