"""The system calls that Python does not offer. Standard library only: this runs inside boxes."""

import ctypes
import fcntl
import os
import struct
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 1 << 18, 2, 4
MNT_DETACH = 2
RDONLY, NOSUID, NODEV = 1, 2, 4  # attributes of mount_setattr


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def check(result: int, what: str) -> int:
    """Return the `result` of a C call; raises OSError with `what` if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, arg2: int = 0, arg3: int = 0) -> int:
    return check(
        _libc.prctl(option, ctypes.c_ulong(arg2), ctypes.c_ulong(arg3), ctypes.c_ulong(0), ctypes.c_ulong(0)),
        f"prctl {option}",
    )


def syscall(number: int, *args: int | bytes | ctypes.Array[ctypes.c_char] | None, what: str) -> int:
    """A raw system call; integers go as longs."""
    arguments = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return check(_libc.syscall(ctypes.c_long(number), *arguments), what)


def set_name(name: str) -> None:
    """Set the name that `ps` shows, at most 15 bytes."""
    raw = ctypes.create_string_buffer(name.encode()[:15] + b"\0")
    check(_libc.prctl(PR_SET_NAME, raw, 0, 0, 0), "prctl name")


def die_with_parent(parent: int) -> None:
    """Get killed when the parent thread ends; `parent` closes the race before that."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def place_fds(wanted: dict[int, int]) -> None:
    """Set up exactly these descriptors (target: source), /dev/null as standard input, and close all others."""
    null = os.open(os.devnull, os.O_RDONLY)
    first_free = max(wanted) + 1
    safe = {target: fcntl.fcntl(source, fcntl.F_DUPFD, first_free) for target, source in wanted.items()}
    os.dup2(null, 0)
    for target, source in safe.items():
        os.dup2(source, target)
    os.closerange(first_free, os.sysconf("SC_OPEN_MAX"))


def unshare(flags: int) -> None:
    check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    arguments = (source.encode(), target.encode(), kind.encode() if kind else None)
    check(
        _libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() if data else None),
        f"mount {source} on {target}",
    )


def umount(target: str, flags: int) -> None:
    check(_libc.umount2(target.encode(), flags), f"umount {target}")


def pivot_root_here() -> None:
    """Make the current folder, a mount, the root; the old root is unmounted."""
    number = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
    syscall(number, b".", b".", what="pivot_root")
    umount(".", MNT_DETACH)
    os.chdir("/")


def seal_mount(path: str, attributes: int) -> None:
    """Take rights away from a mount and all mounts below it."""
    raw = struct.pack("=QQQQ", attributes, 0, 0, 0)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    number, at_fdcwd, recursive = 442, -100, 0x8000
    syscall(number, at_fdcwd, path.encode(), recursive, buffer, len(raw), what=f"mount_setattr {path}")


def drop_bounding_set() -> None:
    """Prevent regaining capabilities; possible only while some are left."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the last one, or not permitted: no_new_privs still applies


def drop_capabilities() -> None:
    """Drop all capabilities irrevocably."""
    drop_bounding_set()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    with suppress(OSError):  # a kernel without ambient capabilities
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    check(_libc.capset(header, bytes(24)), "capset")
