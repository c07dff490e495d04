"""The system calls that Python does not offer. Standard library only: this runs inside boxes."""

import ctypes
import fcntl
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def check(result: int, what: str) -> int:
    """`result` of a C call, or OSError with what was tried."""
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
    given = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return check(_libc.syscall(ctypes.c_long(number), *given), what)


def set_name(name: str) -> None:
    """What `ps` shows, at most 15 bytes."""
    raw = ctypes.create_string_buffer(name.encode()[:15] + b"\0")
    check(_libc.prctl(PR_SET_NAME, raw, 0, 0, 0), "prctl name")


def die_with_parent(parent: int) -> None:
    """Be killed when the thread that forked us ends; `parent` closes the race before that."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def place_fds(wanted: dict[int, int]) -> None:
    """Have exactly these descriptors (target: source) and /dev/null as standard input; every other is closed."""
    null = os.open(os.devnull, os.O_RDONLY)
    first_free = max(wanted) + 1
    safe = {target: fcntl.fcntl(source, fcntl.F_DUPFD, first_free) for target, source in wanted.items()}
    os.dup2(null, 0)
    for target, source in safe.items():
        os.dup2(source, target)
    os.closerange(first_free, os.sysconf("SC_OPEN_MAX"))
