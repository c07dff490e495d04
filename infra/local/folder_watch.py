"""Change notifications for the folder bucket: inotify through ctypes, and a rescan if the OS cannot notify."""

import contextlib
import ctypes
import errno
import itertools
import os
import select
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.errors import ObjectRefused
from core.keys import is_unfinished, refusal
from infra.local.beneath import opened
from infra.local.folder import FolderStore, too_deep

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
    """One inotify instance. Raises OSError on systems without it (any but Linux)."""

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
        """The pending events; an empty list if there are none."""
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


_MASK = CLOSE_WRITE | MOVED_TO | MOVED_FROM | CREATE | DELETE | DELETE_SELF | ATTRIB
_RECHECK_SECONDS = 0.5
_AT_ONCE = 200  # files per batch, so that a single file does not wait for ten thousand of another tenant
_MOST_READS = 8
_POLL_SECONDS = 2.0
_TOPS = ("inbox", "configs")
_DESCRIPTORS = Path("/proc/self/fd")  # what is open, by number


class FolderWatch:
    """Yields batches of changed keys below inbox/ and configs/. None in a batch: rescan everything."""

    def __init__(self, store: FolderStore) -> None:
        self._store = store
        self._folders: dict[int, str] = {}
        self._changed: dict[str, set[str]] = {}  # keys to check, by tenant
        self._unfinished: set[str] = set()
        self._recheck_at = 0.0
        self._stopped = False
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._inotify: Inotify | None = None
        with contextlib.suppress(OSError):
            self._inotify = Inotify() if _DESCRIPTORS.is_dir() else None
        if self._inotify is not None:
            for top in _TOPS:
                self._watch(top)

    def stop(self) -> None:
        """End `batches`; safe from a signal handler or another thread."""
        self._stopped = True
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_w, b"w")

    def batches(self, idle_seconds: float) -> Iterator[set[str | None]]:
        """Batches as they arrive; an empty one after `idle_seconds` without a change, for the caller's other work."""
        source = self._polled if self._inotify is None else self._notified
        while not self._stopped:
            yield source(idle_seconds)

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        for fd in (self._wake_r, self._wake_w):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _notified(self, idle_seconds: float) -> set[str | None]:
        notifier = self._inotify
        if notifier is None:
            return {None}
        if self._changed:
            idle_seconds = 0.0
        elif self._unfinished:
            idle_seconds = min(idle_seconds, _RECHECK_SECONDS)
        wait_readable([notifier.fd, self._wake_r], idle_seconds)
        changed: set[str | None] = set()
        appeared: set[str] = set()  # folders; one that is moved to and fro is scanned once
        # Read all pending events, since the kernel keeps only so many; but stop at some point if they keep coming.
        batches = itertools.islice(iter(notifier.read, []), _MOST_READS)
        for event in itertools.chain.from_iterable(batches):
            if event.mask & OVERFLOW:
                changed.add(None)
                continue
            folder = self._folders.get(event.watch)
            if event.mask & IGNORED:
                self._folders.pop(event.watch, None)
            elif folder is None or not event.name:
                continue
            elif event.mask & ISDIR:
                if event.mask & (CREATE | MOVED_TO):
                    appeared.add(f"{folder}/{event.name}")
                elif event.mask & (DELETE | MOVED_FROM):
                    changed.add(None)
            elif not is_unfinished(event.name):
                changed.add(f"{folder}/{event.name}")
        for folder in appeared:
            changed |= self._watch(folder)
        return self._finished(changed)

    def _finished(self, changed: set[str | None]) -> set[str | None]:
        """Hold back files that are still being written; check them again until they are complete or gone.

        Checks some files of each tenant; the rest is left for the next batches.
        """
        for key in changed - {None}:
            self._add(key)
        if self._unfinished and time.monotonic() >= self._recheck_at:
            self._recheck_at = time.monotonic() + _RECHECK_SECONDS
            for key in self._unfinished:
                self._add(key)
        ready: set[str | None] = changed & {None}
        for key in self._next():
            if refusal(key) is not None or self._is_whole(key):
                ready.add(key)
                self._unfinished.discard(key)
            else:
                self._unfinished.add(key)
        return ready

    def _add(self, key: str | None) -> None:
        if key is not None:
            self._changed.setdefault("/".join(key.split("/", 2)[:2]), set()).add(key)

    def _next(self) -> list[str]:
        """The keys of the next batch: the same number from each tenant, or all if they fit."""
        found: list[str] = []
        share = max(1, _AT_ONCE // max(1, len(self._changed)))
        for whose, keys in list(self._changed.items()):
            found += [keys.pop() for _ in range(min(share, len(keys)))]
            if not keys:
                del self._changed[whose]
        return found

    def _is_whole(self, key: str) -> bool:
        return self._store.complete(key) or not self._store.exists(key)

    def _watch(self, top: str) -> set[str | None]:
        """Watch a folder and all below it; report its files, which may be older than the watch.

        The folder is opened through no link, and what is watched and listed is what was opened: a path could lead
        elsewhere a moment later.
        """
        found: set[str | None] = set()
        folders = [top]
        while folders and self._inotify is not None:
            folder = folders.pop()
            if too_deep(folder):  # no key in it can be valid; its own is refused, with the reason
                found.add(folder)
                continue
            try:
                with opened(self._store.root, folder) as fd:
                    self._folders[self._inotify.add(_DESCRIPTORS / str(fd), _MASK)] = folder
                    with os.scandir(fd) as entries:
                        for entry in entries:
                            if entry.is_dir(follow_symlinks=False):
                                folders.append(f"{folder}/{entry.name}")
                            elif not is_unfinished(entry.name):
                                found.add(f"{folder}/{entry.name}")
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    # No watches left (fs.inotify.max_user_watches): the sweep finds what this misses.
                    found.add(None)
        return found

    def _polled(self, idle_seconds: float) -> set[str | None]:
        wait_readable([self._wake_r], min(idle_seconds, _POLL_SECONDS))
        fresh = time.time() - 2 * _POLL_SECONDS
        changed: set[str | None] = set()
        for folder in (folder for top in _TOPS for folder in self._store.level(f"{top}/").folders):
            with contextlib.suppress(ObjectRefused):  # the sweep reports it
                changed.update(self._store.changed_since(folder, fresh))
        return self._finished(changed)
