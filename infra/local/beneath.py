"""Opens what is below a folder through no link, whatever others do to the folders on the way at the same time.

A path that was checked and is then used by its name can be swapped for a link in between. So nothing here checks a
path: the kernel resolves it in one call that refuses links (`openat2`, Linux 5.6), or, where it has none, each part is
opened from the descriptor of the one before. What follows is done to the descriptor, never to the path again.
"""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PASSAGE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # to go through; not to list or sync it
_OPENAT2 = 437  # the same on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_TRIES = 100  # of a call that the kernel wants repeated since a folder was moved in the meantime
_SYSCALL: Any = getattr(ctypes.CDLL(None, use_errno=True), "syscall", None)


@contextlib.contextmanager
def opened(root: Path, path: str, flags: int = FOLDER, *, make: bool = False) -> Iterator[int]:
    """A descriptor of what is at `path` below `root` ("": that folder itself), closed at the end.

    `make`: create the folder and its parents where they are missing. Raises OSError; ELOOP: a link is on the way.
    """
    top = os.open(root, PASSAGE)
    try:
        fd = _at(top, path, flags)
    except FileNotFoundError:
        if not make:
            raise
        fd = _made(top, path)
    finally:
        os.close(top)
    try:
        yield fd
    finally:
        os.close(fd)


def _at(folder: int, path: str, flags: int) -> int:
    if path.startswith("/") or not {"", ".", ".."}.isdisjoint(path.split("/") if path else ()):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return _resolve(folder, path or ".", flags | os.O_CLOEXEC)


def _made(top: int, path: str) -> int:
    fd = os.open(".", PASSAGE, dir_fd=top)
    for part in path.split("/"):
        above = fd
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
            fd = _at(above, part, FOLDER)
        finally:
            os.close(above)
    return fd


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _by_kernel(folder: int, path: str, flags: int) -> int:
    how = _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    name, size, number = os.fsencode(path), ctypes.c_size_t(ctypes.sizeof(how)), 0
    for _ in range(_TRIES):
        fd = int(_SYSCALL(ctypes.c_long(_OPENAT2), ctypes.c_int(folder), name, ctypes.byref(how), size))
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)


def _by_steps(folder: int, path: str, flags: int) -> int:
    fd = os.open(".", PASSAGE, dir_fd=folder)
    *parents, name = path.split("/")
    for part, wanted in (*((parent, PASSAGE) for parent in parents), (name, flags)):
        above = fd
        try:
            fd = os.open(part, wanted | os.O_NOFOLLOW, dir_fd=above)
        except NotADirectoryError:
            # So is a link called, too, where a folder is wanted.
            if stat.S_ISLNK(os.stat(part, dir_fd=above, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
            raise
        finally:
            os.close(above)
    return fd


def _kernel_can() -> bool:
    """Whether there is an openat2, and no profile of an older container runtime forbids it."""
    if _SYSCALL is None or not hasattr(os, "O_PATH"):
        return False
    top = os.open("/", PASSAGE)
    try:
        os.close(_by_kernel(top, ".", PASSAGE))
    except OSError:
        return False
    finally:
        os.close(top)
    return True


_resolve = _by_kernel if _kernel_can() else _by_steps
