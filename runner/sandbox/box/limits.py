"""Resource limits of a box. Standard library only: this runs inside boxes."""

import os
import resource
from contextlib import suppress
from typing import TypedDict

MIB = 1024 * 1024
FIRST_USER, USERS = 64_901, 500  # users of boxes that would be root without a namespace; unused by any distribution
THREADS = 32  # rules may use threads; memory limits them further
TASKS = 256  # the most, with room for other boxes; a control group is more exact


class KernelLimits(TypedDict):
    """BoxLimits as sent to the box."""

    cpu_seconds: int
    memory_mb: int
    file_mb: int
    open_files: int
    processes: int


def apply(limits: KernelLimits, *, baseline: int, tasks: int) -> None:
    """Set the limits of this process irrevocably.

    `baseline`: address space in use before the job, which the job does not pay for. `tasks`: processes and threads
    that already count against the same user. The kernel does not limit root: see `count_apart`.
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
    """This process's address space in bytes."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib is not worth its import here
        return int(statm.read().split()[0]) * resource.getpagesize()


def count_apart() -> None:
    """If we are root, count as a separate user for this box: the kernel does not limit root's tasks.

    Only the real user changes, by which tasks are counted; files are opened as before. A root that may not change users
    (all capabilities dropped) stays root, and only the watcher limits its threads.
    """
    if os.getuid() == 0:
        with suppress(OSError):
            os.setresuid(FIRST_USER + os.getpid() % USERS, -1, -1)


def tasks_of_user() -> int:
    """Threads that count against this user's limit now, as far as they can be read."""
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
