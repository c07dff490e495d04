"""Resource limits of a box. Standard library only: this runs inside boxes."""

import os
import resource
from contextlib import suppress
from typing import TypedDict

MIB = 1024 * 1024
FIRST_USER, USERS = 64_901, 500  # users of boxes that run in no namespace and would be root; in no distribution's list
THREADS = 32  # rules may use threads; memory bounds them further
TASKS = 256  # at most, with room for what starts beside a box; a control group says it more exactly


class KernelLimits(TypedDict):
    """BoxLimits as it travels to the box."""

    cpu_seconds: int
    memory_mb: int
    file_mb: int
    open_files: int
    processes: int


def apply(limits: KernelLimits, *, baseline: int, tasks: int) -> None:
    """Set the limits of this process for good.

    `baseline`: address space in use before the job, which is ours and not the job's. `tasks`: processes and
    threads that count against the same user already. The kernel does not hold root to it: see `count_apart`.
    """
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_CPU, limits["cpu_seconds"])
    _cap(resource.RLIMIT_FSIZE, limits["file_mb"] * MIB)
    _cap(resource.RLIMIT_NOFILE, limits["open_files"])
    _cap(resource.RLIMIT_MEMLOCK, 0)
    _cap(resource.RLIMIT_MSGQUEUE, 0)
    _cap(resource.RLIMIT_RTPRIO, 0)
    _cap(resource.RLIMIT_NPROC, tasks + limits["processes"] + THREADS)
    _cap(resource.RLIMIT_AS, baseline + limits["memory_mb"] * MIB)


def address_space() -> int:
    """Bytes of address space this process has now."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib is not worth its import here
        return int(statm.read().split()[0]) * resource.getpagesize()


def count_apart() -> None:
    """Where we are root, be counted as a user of this box's own: the kernel bounds no tasks of root's.

    Only the real user changes, which is the one that tasks are counted by; files are opened as before. A root that may
    not change users (all capabilities dropped) stays what it is, and the watcher alone bounds its threads.
    """
    if os.getuid() == 0:
        with suppress(OSError):
            os.setresuid(FIRST_USER + os.getpid() % USERS, -1, -1)


def tasks_of_user() -> int:
    """Threads that count against this user's limit now; what cannot be read is not counted."""
    uid = os.getuid()
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:  # noqa: PTH116 - as above
                    count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208 - as above
            except OSError:
                continue
    return count


def _cap(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (wanted, wanted))
