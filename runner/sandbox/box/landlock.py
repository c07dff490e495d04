"""Landlock: which files a box may open, enforced by the kernel, irrevocably. Standard library only."""

import ctypes
import os
import struct
from collections.abc import Iterable

from runner.sandbox.box import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # number of file rights in each version
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals
_NET_SINCE, _SCOPE_SINCE = 4, 6


def version() -> int:
    """The kernel's Landlock version; 0: none."""
    try:
        return kernel.syscall(_CREATE, None, 0, _VERSION, what="landlock version")
    except OSError:
        return 0


def restrict(*, readable: Iterable[str], writable: Iterable[str], network: bool) -> None:
    """From now on allow only paths below `readable` (to read) and files in `writable` (also to write).

    Missing paths are skipped. Needs no_new_privs.
    """
    ruleset = _create(network=network)
    for path in readable:
        _add(ruleset, path, READ_FILE | READ_DIR)
    for path in writable:
        _add(ruleset, path, READ_FILE | WRITE_FILE)
    kernel.syscall(_RESTRICT, ruleset, 0, what="landlock restrict")
    os.close(ruleset)


def _create(*, network: bool) -> int:
    offered = version()
    fs = (1 << _FS_BITS.get(offered, 16)) - 1
    fields = [fs]
    if offered >= _NET_SINCE:
        fields.append(0 if network else _TCP)
    if offered >= _SCOPE_SINCE:
        fields.append(_SCOPES)
    raw = struct.pack(f"={len(fields)}Q", *fields)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    return kernel.syscall(_CREATE, buffer, len(raw), 0, what="landlock ruleset")


def _add(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib is not worth its import here
            rights &= ~READ_DIR
        raw = struct.pack("=Qi", rights, fd)
        buffer = ctypes.create_string_buffer(raw, len(raw))
        kernel.syscall(_ADD, ruleset, _PATH_BENEATH, buffer, 0, what=f"landlock rule for {path}")
    finally:
        os.close(fd)
