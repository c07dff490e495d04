"""A sender swaps a folder of its inbox for a link, over and over, against every operation of the folder bucket.

Nothing outside of the folder is read, written, deleted or listed, whichever of the two an operation meets. The usual
number of swaps is small; with ADE_TEST_FULL=1 each operation meets ten thousand.
"""

import contextlib
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from core.errors import AdeError, ObjectMissing
from infra.local import beneath
from infra.local.folder import FolderStore
from infra.local.folder_watch import FolderWatch
from tests.support.effort import FULL, QUICK

SWAPS = 10_000 if FULL else 60 if QUICK else 300
LEAST_TURNS = 1000 if FULL else 10 if QUICK else 30
SECRET = b"not for you"
# Exchanges two names in one step (renameat2, RENAME_EXCHANGE), until its input ends; counts in a shared file.
SWAPPER = """
import ctypes, mmap, os, sys, threading
folder, count = sys.argv[1:]
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
libc, at = ctypes.CDLL(None), os.open(folder, os.O_RDONLY)
shared = mmap.mmap(os.open(count, os.O_RDWR), 8)
n = 0
while True:
    if libc.renameat2(at, b"d", at, b"l", 2) != 0:
        os._exit(1)
    n += 1
    shared[:] = n.to_bytes(8, "little")
"""


class Outside:
    """What the link leads to: a folder that looks like the sender's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sub").mkdir(parents=True)
        (folder / "empty/inner").mkdir(parents=True)
        for name in ("a.csv", "outside.csv", "sub/a.csv", "sub/outside.csv", "tokens.json"):
            (folder / name).write_bytes(SECRET)
        self._before = self._state()

    def _state(self) -> dict[str, Any]:
        found = {}
        for at, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                path = Path(at) / name
                facts = path.lstat()
                content = path.read_bytes() if path.is_file() else None
                found[str(path.relative_to(self.folder))] = (facts.st_ino, facts.st_mtime_ns, facts.st_nlink, content)
        return found

    def assert_untouched(self) -> None:
        assert self._state() == self._before


@pytest.fixture(params=["by_kernel", "by_steps"])
def resolver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to open a folder through no link: in one call, and step by step on an older kernel."""
    monkeypatch.setattr(beneath, "_resolve", getattr(beneath, f"_{request.param}"))


@pytest.fixture
def store(tmp_path: Path, resolver: None) -> Iterator[FolderStore]:
    with closing(FolderStore(tmp_path / "data")) as store:
        yield store
        if (watch := WATCHES.pop(store, None)) is not None:
            watch.close()


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


@contextlib.contextmanager
def swapping(folder: Path, outside: Outside) -> Iterator[Callable[[], int]]:
    """`d` in the folder is now a real folder, now a link; how often it was swapped so far."""
    (folder / "d/sub").mkdir(parents=True, exist_ok=True)
    (folder / "l").symlink_to(outside.folder)
    count = outside.folder.parent / "swaps"
    count.write_bytes(bytes(8))
    with count.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        command = [sys.executable, "-S", "-c", SWAPPER, str(folder), str(count)]
        swapper = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            while not int.from_bytes(shared[:], "little"):
                assert swapper.poll() is None
                time.sleep(0.001)  # until it has begun
            yield lambda: int.from_bytes(shared[:], "little")
            assert swapper.poll() is None
        finally:
            if swapper.stdin is not None:
                swapper.stdin.close()
            swapper.wait()


def listed(store: FolderStore) -> list[str]:
    level = store.level("inbox/acme/d/")
    return [
        *store.keys("inbox/"),
        *(o.key for o in store.objects("inbox/acme/d/")),
        *(o.key for o in store.folder("inbox/acme/d/").objects),
        *level.keys,
        *level.folders,
        *store.changed_since("inbox/", 0.0),
    ]


def fetched(store: FolderStore) -> bytes:
    to = store.root.parent / "fetched"
    to.unlink(missing_ok=True)
    store.fetch("inbox/acme/d/a.csv", to, limit=100)
    return to.read_bytes()


WATCHES: WeakKeyDictionary[FolderStore, FolderWatch] = WeakKeyDictionary()  # many together take long to close


def watch_of(store: FolderStore) -> FolderWatch:
    if store not in WATCHES:
        WATCHES[store] = FolderWatch(store)
    return WATCHES[store]


def watched(store: FolderStore) -> list[str | None]:
    watch = watch_of(store)
    found = [*watch._watch("inbox/acme/d"), *watch._watch("inbox/acme/d/sub")]
    return [*found, *next(watch.batches(idle_seconds=0))]


def polled(store: FolderStore) -> list[str | None]:
    return list(watch_of(store)._polled(0.0))


def copied(store: FolderStore) -> bytes:
    """A copy of what is at the key, which is the sender's own file or none."""
    store.copy("inbox/acme/d/a.csv", "outputs/acme/x")
    return store.read("outputs/acme/x", limit=100)


OPERATIONS: dict[str, Callable[[FolderStore], Any]] = {
    "put": lambda store: store.put("inbox/acme/d/a.csv", b"ours"),
    "put deeper": lambda store: store.put("inbox/acme/d/sub/tokens.json", b"ours"),
    "put in a new folder": lambda store: store.put("inbox/acme/d/new/a.csv", b"ours"),
    "put if absent": lambda store: store.put("inbox/acme/d/tokens.json", b"ours", if_absent=True),
    "copy to": lambda store: store.copy("work/j/x", "inbox/acme/d/a.csv"),
    "copy from": copied,
    "delete": lambda store: store.delete("inbox/acme/d/a.csv"),
    "delete all": lambda store: store.delete_all(["inbox/acme/d/sub/a.csv", "inbox/acme/d/outside.csv"]),
    "delete prefix": lambda store: store.delete_prefix("inbox/acme/d/"),
    "list": listed,
    "head": lambda store: [store.head("inbox/acme/d/outside.csv"), store.head("inbox/acme/d/sub/outside.csv")],
    "read": lambda store: store.read("inbox/acme/d/sub/a.csv", limit=100),
    "fetch": fetched,
    "exists": lambda store: [store.exists("inbox/acme/d/outside.csv") and "outside.csv"],
    "complete": lambda store: [store.complete("inbox/acme/d/outside.csv") and "outside.csv"],
    "watch": watched,
    "watch by looking": polled,
}


def assert_ours(got: Any) -> None:
    """What an operation returned knows nothing of the other folder."""
    assert SECRET not in (got if isinstance(got, bytes) else b"")
    for one in got if isinstance(got, list) else ():
        assert one is None or "outside.csv" not in str(one), f"listed {one}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_meets_a_link_does_nothing_outside(store: FolderStore, outside: Outside, operation: str):
    store.put("work/j/x", b"ours")
    act, turns = OPERATIONS[operation], 0
    with swapping(store.root / "inbox/acme", outside) as swaps:
        while swaps() < SWAPS or turns < LEAST_TURNS:
            turns += 1
            if turns % 2:
                with contextlib.suppress(AdeError, OSError):
                    store.put("inbox/acme/d/a.csv", b"ours")
            with contextlib.suppress(AdeError, OSError):
                assert_ours(act(store))
    outside.assert_untouched()


@pytest.mark.slow
def test_folders_of_outputs_that_are_removed_are_the_buckets_own(store: FolderStore, outside: Outside):
    turns = 0
    with swapping(store.root / "outputs/acme", outside) as swaps:
        while swaps() < SWAPS or turns < LEAST_TURNS:
            turns += 1
            with contextlib.suppress(AdeError, OSError):
                store.put("outputs/acme/d/empty/inner/x", b"ours")
            with contextlib.suppress(AdeError, OSError):
                store.delete("outputs/acme/d/empty/inner/x")
            with contextlib.suppress(AdeError, OSError):
                store.delete_prefix("outputs/acme/d/empty/")
    outside.assert_untouched()


def test_tokens_are_where_no_key_of_a_tenant_leads(store: FolderStore, tmp_path: Path):
    store.put("access/tokens.json", b"{}")
    assert not (store.root / "access").exists()
    assert (tmp_path / "data/access/tokens.json").read_bytes() == b"{}"
    assert store.read("access/tokens.json", limit=100) == b"{}"
    assert [o.key for o in store.objects("access/")] == ["access/tokens.json"]
    assert list(store.keys("")) == []
    for key in ("inbox/../access/tokens.json", "../access/tokens.json", "inbox/acme/../../../access/tokens.json"):
        with pytest.raises(ObjectMissing):
            store.read(key, limit=100)


def test_tokens_of_an_earlier_release_move_out_of_the_bucket(tmp_path: Path):
    (tmp_path / "data/bucket/access").mkdir(parents=True)
    (tmp_path / "data/bucket/access/tokens.json").write_bytes(b"{}")
    for _ in range(2):
        with closing(FolderStore(tmp_path / "data")) as store:
            assert store.read("access/tokens.json", limit=100) == b"{}"
            assert not (store.root / "access").exists()
