"""Linux inotify through ctypes: wake on a change, with no thread and no polling."""

import ctypes
import errno
import os
import select
import struct
from dataclasses import dataclass
from pathlib import Path

ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x4, 0x8, 0x40, 0x80
CREATE, DELETE, DELETE_SELF = 0x100, 0x200, 0x400
OVERFLOW, IGNORED, ISDIR = 0x4000, 0x8000, 0x40000000
_HEAD = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class Event:
    watch: int
    mask: int
    name: str


class Inotify:
    """One inotify instance. Raises OSError where the system has none (any but Linux)."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            init, self._add = libc.inotify_init1, libc.inotify_add_watch
        except AttributeError:
            raise OSError(errno.ENOSYS, "this system has no inotify") from None
        self.fd = init(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def add(self, path: Path, mask: int) -> int:
        watch: int = self._add(self.fd, os.fsencode(path), ctypes.c_uint32(mask))
        if watch < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
        return watch

    def read(self) -> list[Event]:
        """Events that are there now; none: an empty list."""
        try:
            data = os.read(self.fd, 256 * 1024)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            events.append(Event(watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))))
            at += length
        return events

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def wait_readable(fds: list[int], seconds: float) -> bool:
    """Whether one of the descriptors became readable within `seconds`."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
