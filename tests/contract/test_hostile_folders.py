"""A folder bucket among senders who may make any folder: none of them ends the watch or the sweep of the others."""

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.keys import MAX_KEY_BYTES
from infra.local import folder
from infra.local.folder import FolderStore
from infra.local.folder_watch import FolderWatch
from tests.support.world import World

DEEP = 2_500  # folders: deeper than Python recurses and than a path may be long


@contextmanager
def standing_in(folder: Path) -> Iterator[None]:
    back = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(back)
        os.close(back)


def dig(folder: Path, levels: int = DEEP) -> None:
    """Folders within folders, made as a sender can who goes down step by step, and a file at the bottom."""
    folder.mkdir(parents=True, exist_ok=True)
    with standing_in(folder):
        for _ in range(levels):
            os.mkdir("a")  # noqa: PTH102 - relative on purpose: the whole path is too long
            os.chdir("a")
        Path("x.csv").write_bytes(b"id\n1\n")


def fill_in(folder: Path, levels: int = DEEP) -> None:
    """The opposite; rmtree of pytest cannot."""
    with standing_in(folder):
        for _ in range(levels):
            os.chdir("a")
        Path("x.csv").unlink()
        for _ in range(levels):
            os.chdir("..")
            os.rmdir("a")  # noqa: PTH106 - as above


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def pit(world: World) -> Iterator[Path]:
    """One tenant's endless folder."""
    folder = world.store.root / "inbox/evil/pit"
    dig(folder)
    yield folder
    fill_in(folder)


def test_a_folder_without_end_keeps_no_other_tenant_waiting(world: World, pit: Path):
    world.drop(tenant="acme")
    world.drop(tenant="evil")  # its own other drops neither
    report = world.intake.sweep()
    assert {job.tenant for job in report.recorded.created} == {"acme", "evil"}
    assert any("is longer than" in line for line in report.refused)
    assert all(len(key.encode()) < MAX_KEY_BYTES + 300 for key, _ in world.store._all("inbox/"))


def test_a_folder_without_end_is_watched_as_far_as_keys_go(world: World, pit: Path):
    with closing(FolderWatch(world.store)) as watch:
        world.drop(tenant="acme")
        found: set[str | None] = set()
        for batch in watch.batches(idle_seconds=0.2):
            found |= batch
            if not batch or "inbox/acme/d/manifest.json" in found:
                break
        assert {"inbox/acme/d/a.csv", "inbox/acme/d/manifest.json"} <= found


def test_a_folder_without_end_that_comes_while_watched(world: World):
    folder = world.store.root / "inbox/evil/pit"
    with closing(FolderWatch(world.store)) as watch:
        dig(folder)
        try:
            found: set[str | None] = set()
            for batch in watch.batches(idle_seconds=0.2):
                found |= batch
                if not batch:
                    break
            assert found - {None}
            world.intake.changed([key for key in found if key is not None])
        finally:
            fill_in(folder)


def test_folders_that_we_may_not_list_keep_no_other_tenant_waiting(world: World, monkeypatch: pytest.MonkeyPatch):
    """Four tenants in a row, each with a folder for its own eyes only: that is not the store being down."""
    hostile = [f"a{n}" for n in range(5)]
    for tenant in hostile:
        world.drop(tenant=tenant)
        (world.store.root / f"inbox/{tenant}/private").mkdir()
    world.drop(tenant="globex")
    opened = folder.opened

    def guarded(top: Path, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("/private"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(top, path, *args, **kwargs)

    monkeypatch.setattr(folder, "opened", guarded)
    report = world.intake.sweep()
    assert "globex" in {job.tenant for job in report.recorded.created}
    assert all(any(f"inbox/{tenant}/private/" in line for line in report.failed) for tenant in hostile)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file grows beyond `size`, as on a disk that is about to be full: a write is cut short, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_an_object_that_the_disk_has_no_room_for_is_refused_not_cut(tmp_path: Path):
    with closing(FolderStore(tmp_path / "data")) as store:
        before = store.put("outputs/acme/result.json", b"old")
        with small_files(4096), pytest.raises(OSError, match=r"large|space"):
            store.put("outputs/acme/result.json", b"x" * 10_000)
        assert store.read("outputs/acme/result.json", limit=1 << 20) == b"old"
        assert store.head("outputs/acme/result.json").version == before.version
