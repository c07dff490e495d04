"""The files that leave a box: named by the runner, opened with care, never a link, never more than the limit."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

MIB = 1024 * 1024


def plain_name(name: str) -> str:
    """`name` if it names a file right below a folder; anything else is a mistake of the caller."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name or len(name) > 255:
        raise ValueError(f"{name!r} is not the name of an output file")
    return name


def open_outputs(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """New empty files, open for reading and writing; the box gets only the descriptors."""
    folder.mkdir(mode=0o700, exist_ok=True)
    opened: dict[str, int] = {}
    try:
        for name in names:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            opened[name] = os.open(folder / plain_name(name), flags, 0o640)
    except BaseException:
        close_all(opened.values())
        raise
    return opened


def collect(folder: Path, names: Iterable[str], limit_mb: int) -> tuple[dict[str, Path], str | None]:
    """The outputs that are there and not empty, and what is wrong with one of them, if anything is."""
    kept: dict[str, Path] = {}
    for name in names:
        path = folder / plain_name(name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError:
            return {}, f"output {name} is not a regular file"
        try:
            found = os.fstat(fd)
        finally:
            os.close(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return {}, f"output {name} is not a regular file of its own"
        if found.st_size > limit_mb * MIB:
            return {}, f"output {name} is larger than {limit_mb} MiB"
        if found.st_size:
            kept[name] = path
    return kept, None


def at_limit(folder: Path, names: Iterable[str], limit_mb: int) -> str | None:
    """The name of an output that has grown to its limit, which is where writing began to fail."""
    for name in names:
        try:
            if os.lstat(folder / name).st_size >= limit_mb * MIB:
                return name
        except FileNotFoundError:
            continue
    return None


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
