"""Change notice of the folder bucket: whatever tool a sender uses, the key is named once the file is whole."""

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infra.local import folder_watch
from infra.local.folder import FolderStore
from infra.local.folder_watch import _AT_ONCE, FolderWatch


@pytest.fixture
def store(folder_store: FolderStore) -> FolderStore:
    return folder_store


@pytest.fixture
def watch(store: FolderStore) -> Iterator[FolderWatch]:
    with closing(FolderWatch(store)) as watch:
        yield watch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "members.csv"
    path.write_bytes(b"id\n1\n")
    return path


def seen(watch: FolderWatch, *expected: str | None) -> set[str | None]:
    """All keys named until the expected ones came, or until there was nothing more to name."""
    found: set[str | None] = set()
    for empty, batch in enumerate(watch.batches(idle_seconds=0.5)):
        found |= batch
        if found.issuperset(expected) or empty > 20:
            return found
    return found


def test_a_copied_file(store: FolderStore, watch: FolderWatch, file: Path):
    subprocess.run(["cp", file, store.root / "inbox/acme/a.csv"], check=True)
    assert "inbox/acme/a.csv" in seen(watch, "inbox/acme/a.csv")


def test_a_moved_file(store: FolderStore, watch: FolderWatch, file: Path):
    subprocess.run(["mv", file, store.root / "inbox/acme/a.csv"], check=True)
    assert "inbox/acme/a.csv" in seen(watch, "inbox/acme/a.csv")


def test_a_file_renamed_to_its_final_name(store: FolderStore, watch: FolderWatch):
    part = store.root / "inbox/acme/a.csv.part"
    part.write_bytes(b"id\n1\n")
    part.rename(store.root / "inbox/acme/a.csv")
    found = seen(watch, "inbox/acme/a.csv")
    assert "inbox/acme/a.csv" in found
    assert "inbox/acme/a.csv.part" not in found


def test_a_file_rewritten_in_place(store: FolderStore, watch: FolderWatch):
    (store.root / "inbox/acme/a.csv").write_bytes(b"one")
    seen(watch, "inbox/acme/a.csv")
    (store.root / "inbox/acme/a.csv").write_bytes(b"two")
    assert "inbox/acme/a.csv" in seen(watch, "inbox/acme/a.csv")


def test_a_deleted_file(store: FolderStore, watch: FolderWatch):
    (store.root / "inbox/acme/a.csv").write_bytes(b"one")
    seen(watch, "inbox/acme/a.csv")
    (store.root / "inbox/acme/a.csv").unlink()
    assert "inbox/acme/a.csv" in seen(watch, "inbox/acme/a.csv")


def test_a_file_in_folders_made_at_the_same_moment(store: FolderStore, watch: FolderWatch):
    (store.root / "inbox/new/2026/01").mkdir(parents=True)
    (store.root / "inbox/new/2026/01/a.csv").write_bytes(b"one")
    assert "inbox/new/2026/01/a.csv" in seen(watch, "inbox/new/2026/01/a.csv")


def test_a_file_that_comes_later_into_a_folder_made_meanwhile(store: FolderStore, watch: FolderWatch):
    (store.root / "inbox/new/2026/01").mkdir(parents=True)
    next(watch.batches(idle_seconds=0.5))
    (store.root / "inbox/new/2026/01/a.csv").write_bytes(b"one")
    assert "inbox/new/2026/01/a.csv" in seen(watch, "inbox/new/2026/01/a.csv")


def test_a_whole_tree_copied_in(store: FolderStore, watch: FolderWatch, tmp_path: Path):
    expected = {f"inbox/acme/tree/{folder}/{n}.csv" for folder in "ab" for n in range(5)}
    for key in expected:
        path = tmp_path / key.removeprefix("inbox/acme/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    shutil.copytree(tmp_path / "tree", store.root / "inbox/acme/tree")
    assert expected <= seen(watch, *expected)


def test_a_whole_tree_moved_in(store: FolderStore, watch: FolderWatch, tmp_path: Path):
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/deep/a.csv").write_bytes(b"x")
    (tmp_path / "tree").rename(store.root / "inbox/acme/tree")
    assert "inbox/acme/tree/deep/a.csv" in seen(watch, "inbox/acme/tree/deep/a.csv")


def test_a_tree_moved_within_the_bucket_is_still_watched_under_its_new_name(store: FolderStore, watch: FolderWatch):
    (store.root / "inbox/acme/old/deep").mkdir(parents=True)
    next(watch.batches(idle_seconds=0.5))
    (store.root / "inbox/acme/old").rename(store.root / "inbox/acme/new")
    next(watch.batches(idle_seconds=0.5))
    (store.root / "inbox/acme/new/deep/a.csv").write_bytes(b"x")
    assert "inbox/acme/new/deep/a.csv" in seen(watch, "inbox/acme/new/deep/a.csv")


def test_a_tree_moved_out_asks_for_a_full_look(store: FolderStore, watch: FolderWatch, tmp_path: Path):
    (store.root / "inbox/acme/tree").mkdir()
    (store.root / "inbox/acme/tree/a.csv").write_bytes(b"x")
    seen(watch, "inbox/acme/tree/a.csv")
    (store.root / "inbox/acme/tree").rename(tmp_path / "data" / "gone")
    assert None in seen(watch, None)


def test_a_file_is_named_only_when_its_writer_is_done(store: FolderStore, watch: FolderWatch):
    with (store.root / "inbox/acme/a.csv").open("wb") as sender:
        sender.write(b"half")
        sender.flush()
        assert next(watch.batches(idle_seconds=0.2)) == set()
    assert "inbox/acme/a.csv" in seen(watch, "inbox/acme/a.csv")


def test_ten_thousand_files_of_one_tenant_hold_up_no_other(store: FolderStore, watch: FolderWatch):
    """And all of them are named in the end."""
    (store.root / "inbox/mallory").mkdir()
    next(watch.batches(idle_seconds=0.5))
    theirs = {f"inbox/mallory/{n}.csv" for n in range(2000)}
    for key in theirs:
        (store.root / key).write_bytes(b"x")
    (store.root / "inbox/acme/a.csv").write_bytes(b"x")
    looked: list[str] = []
    complete = store.complete
    store.complete = lambda key: looked.append(key) or complete(key)  # type: ignore[method-assign]
    while "inbox/acme/a.csv" not in looked:
        before = len(looked)
        next(watch.batches(idle_seconds=0.5))
        assert len(looked) - before <= _AT_ONCE
        if len(looked) == before:
            pytest.fail("it was never looked at")
    assert len(looked) < len(theirs), "it came after all of theirs"
    assert theirs - set(looked) <= seen(watch, *(theirs - set(looked)))


def test_what_is_being_written_holds_up_nobody(store: FolderStore, watch: FolderWatch):
    with contextlib.ExitStack() as senders:
        for n in range(2 * _AT_ONCE):
            senders.enter_context((store.root / f"inbox/acme/{n}.csv").open("wb"))
        (store.root / "inbox/globex").mkdir()
        (store.root / "inbox/globex/a.csv").write_bytes(b"x")
        assert "inbox/globex/a.csv" in seen(watch, "inbox/globex/a.csv")
    expected = {f"inbox/acme/{n}.csv" for n in range(2 * _AT_ONCE)}
    assert expected <= seen(watch, *expected)


def test_whether_a_file_is_whole_is_reported_without_reading_it(store: FolderStore, monkeypatch: pytest.MonkeyPatch):
    """Hashing what one tenant sent would keep everybody else's drops waiting."""
    monkeypatch.setattr(store, "_hash", lambda *_: pytest.fail("its content was read"))
    with (store.root / "inbox/acme/a.csv").open("wb") as sender:
        sender.write(b"half")
        assert not store.complete("inbox/acme/a.csv")
    assert store.complete("inbox/acme/a.csv")
    assert not store.complete("inbox/acme/b.csv")


def test_a_linked_folder_is_not_watched(store: FolderStore, watch: FolderWatch, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (store.root / "inbox/acme/link").symlink_to(outside)
    (outside / "a.csv").write_bytes(b"x")
    (store.root / "inbox/acme/b.csv").write_bytes(b"x")
    assert not {k for k in seen(watch, "inbox/acme/b.csv") if k and k.startswith("inbox/acme/link/")}


def test_a_standing_config_is_watched_too(store: FolderStore, watch: FolderWatch):
    store.put("configs/acme/members/manifest.json", b"{}")
    key = "configs/acme/members/manifest.json"
    assert key in seen(watch, key)


def test_outputs_are_not_watched(store: FolderStore, watch: FolderWatch):
    store.put("outputs/acme/x", b"x")
    store.put("inbox/acme/a.csv", b"x")
    assert seen(watch, "inbox/acme/a.csv") == {"inbox/acme/a.csv"}


def test_an_overflow_asks_for_a_full_look(store: FolderStore, watch: FolderWatch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch._inotify, "read", lambda: [folder_watch.Event(-1, folder_watch.OVERFLOW, "")])
    assert next(watch.batches(idle_seconds=0)) == {None}


def test_without_inotify_changes_are_found_by_looking(store: FolderStore, file: Path, monkeypatch: pytest.MonkeyPatch):
    def none_here() -> None:
        raise OSError("this system has no inotify")

    monkeypatch.setattr(folder_watch, "Inotify", none_here)
    with closing(FolderWatch(store)) as watch:
        shutil.copy(file, store.root / "inbox/acme/a.csv")
        assert "inbox/acme/a.csv" in next(watch.batches(idle_seconds=0))


def test_without_inotify_a_file_that_vanishes_while_looking_does_no_harm(
    store: FolderStore, file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder_watch, "Inotify", lambda: (_ for _ in ()).throw(OSError("none")))
    shutil.copy(file, store.root / "inbox/acme/gone.csv")
    since = store.changed_since

    def vanishing(prefix: str, at: float) -> Iterator[str]:
        for key in since(prefix, at):
            (store.root / key).unlink()
            yield key

    monkeypatch.setattr(store, "changed_since", vanishing)
    with closing(FolderWatch(store)) as watch:
        assert next(watch.batches(idle_seconds=0)) == {"inbox/acme/gone.csv"}


def test_stop_ends_a_waiting_watch(watch: FolderWatch):
    ended = threading.Event()

    def look() -> None:
        for _ in watch.batches(idle_seconds=60):
            pass
        ended.set()

    thread = threading.Thread(target=look)
    thread.start()
    watch.stop()
    thread.join(20)
    assert ended.is_set()
