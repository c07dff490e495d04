"""Namespaces of a zygote, and of each of its boxes. Standard library only.

The zygote becomes process 1 of a new user, pid, mount, ipc, uts and (unless the job may use it) network namespace.
Each job gets a pid namespace inside it, and a mount namespace whose root has only the code and the job's own files.
"""

import os
import signal

from runner.sandbox.box import kernel

INSIDE_ROOT, INSIDE_USER = 0, 1000  # ids as seen from inside
_ALL = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
JOB = "/job"
LAYER = "/layer"


def enter(*, network: bool, box_id: int | None) -> None:
    """Return as process 1 of new namespaces; the calling process stays behind and ends with it.

    `box_id`: the outside user that boxes run as, which only root can choose; None: our own.
    """
    outside = os.getuid(), os.getgid()
    helper = _Mapper(outside, box_id)
    kernel.unshare(_ALL | (0 if network else kernel.CLONE_NEWNET))
    helper.map()
    pid = os.fork()
    if pid:
        _stay_until_end_of(pid)
    inside = INSIDE_USER if box_id is None else INSIDE_ROOT
    os.setresgid(inside, inside, inside)
    os.setresuid(inside, inside, inside)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # now: a change of user would clear it
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)


def _stay_until_end_of(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class _Mapper:
    """Writes the id maps from outside the new user namespace: only there can root map a second id."""

    def __init__(self, outside: tuple[int, int], box_id: int | None) -> None:
        self._target = os.getpid()
        self._read, self._write = os.pipe()
        self._maps = []
        for name, ours in zip(("uid", "gid"), outside, strict=True):
            lines = [f"{INSIDE_ROOT} {ours} 1", f"{INSIDE_USER} {box_id} 1"]
            self._maps.append((name, f"{INSIDE_USER} {ours} 1" if box_id is None else "\n".join(lines)))
        self._helper = os.fork()
        if self._helper == 0:
            self._serve(deny_setgroups=box_id is None)

    def map(self) -> None:
        os.close(self._read)
        os.write(self._write, b"x")
        os.close(self._write)
        _, status = os.waitpid(self._helper, 0)
        if status:
            raise PermissionError("cannot map the ids of a new user namespace")

    def _serve(self, *, deny_setgroups: bool) -> None:
        code = 1
        try:
            os.close(self._write)
            if os.read(self._read, 1):
                if deny_setgroups:
                    _write(f"/proc/{self._target}/setgroups", "deny")
                for name, text in self._maps:
                    _write(f"/proc/{self._target}/{name}_map", text)
                code = 0
        finally:
            os._exit(code)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode())
    os.close(fd)


def build_root(root: str, code: list[str], devices: tuple[str, ...]) -> None:
    """Build a small file system at `root` with only the code; jobs use it as their root."""
    kernel.mount("ade", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,nr_inodes=4k,mode=755")
    for path in code:
        if os.path.islink(path):  # noqa: PTH114 - pathlib is not worth its import here
            _make_parents(root, path)
            os.symlink(os.readlink(path), root + path)  # noqa: PTH115, PTH211 - as above
        else:
            show(path, root + path)
    for path in devices:
        _make_point(path, root + path)
        kernel.mount(path, root + path, None, kernel.MS_BIND)
    for point in (JOB, f"{JOB}/in", f"{JOB}/config", LAYER):
        os.mkdir(root + point, 0o755)  # noqa: PTH102 - as above


def show(source: str, target: str) -> None:
    """Bind `source` at `target`, read-only, with all mounts below it."""
    _make_point(source, target)
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.seal_mount(target, kernel.RDONLY | kernel.NOSUID | kernel.NODEV)


def enter_root(root: str) -> None:
    """Make `root` the root of this mount namespace; nothing else stays reachable."""
    os.chdir(root)
    kernel.pivot_root_here()
    kernel.seal_mount("/", kernel.RDONLY | kernel.NOSUID)


def become_user() -> None:
    """Switch to the unprivileged user of boxes."""
    if os.getuid() == INSIDE_ROOT:
        os.setgroups([])
        os.setresgid(INSIDE_USER, INSIDE_USER, INSIDE_USER)
        os.setresuid(INSIDE_USER, INSIDE_USER, INSIDE_USER)


def fork(own: int) -> int:
    """Fork a child as process 1 of a new pid namespace; `own`: our namespace, to return to."""
    kernel.unshare(kernel.CLONE_NEWPID)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid:  # the parent, or a failed fork
            kernel.setns(own, kernel.CLONE_NEWPID)
    return pid


def _make_point(source: str, target: str) -> None:
    if os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)  # noqa: PTH103, PTH120 - as above
    if os.path.isdir(source):  # noqa: PTH112 - as above
        os.mkdir(target, 0o755)  # noqa: PTH102 - as above
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _make_parents(root: str, path: str) -> None:
    os.makedirs(os.path.dirname(root + path), 0o755, exist_ok=True)  # noqa: PTH103, PTH120 - as above
