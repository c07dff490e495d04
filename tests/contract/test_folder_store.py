"""What only a folder has to promise: it lives among other programs, and senders write into it with plain tools."""

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import KeyRefused, ObjectMissing, ObjectRefused
from core.ports import ObjectInfo
from infra.local import disk, folder
from infra.local.folder import FolderStore
from infra.local.sqlite import Database

LIMIT = 1 << 20


@pytest.fixture
def store(folder_store: FolderStore) -> FolderStore:
    return folder_store


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside the bucket that nobody may be talked into reading."""
    path = tmp_path / "secret.csv"
    path.write_bytes(b"not yours")
    return path


def test_a_file_that_is_open_for_writing_is_not_seen(store: FolderStore):
    with (store.root / "inbox/acme/a.csv").open("wb") as sender:
        sender.write(b"half")
        sender.flush()
        assert store.head("inbox/acme/a.csv") is None
        assert list(store.objects("inbox/")) == []
        assert store.folder("inbox/acme/").objects == ()


def test_a_file_is_seen_once_its_writer_closed_it(store: FolderStore):
    with (store.root / "inbox/acme/a.csv").open("wb") as sender:
        sender.write(b"half")
        assert store.head("inbox/acme/a.csv") is None
        sender.write(b" and half")
    head = store.head("inbox/acme/a.csv")
    assert head is not None
    assert head.size == 13


def test_an_old_file_that_is_opened_again_for_appending_is_not_seen_meanwhile(store: FolderStore):
    store.put("inbox/acme/a.csv", b"first")
    with (store.root / "inbox/acme/a.csv").open("ab"):
        assert store.head("inbox/acme/a.csv") is None
    assert store.head("inbox/acme/a.csv") is not None


@pytest.mark.parametrize("name", [".hidden.csv", "a.csv.part", "a.xlsx.tmp", "~$a.xlsx", "a.csv~", ".a.csv.swp"])
def test_names_of_unfinished_files_are_not_listed(store: FolderStore, name: str):
    (store.root / "inbox/acme" / name).write_bytes(b"x")
    assert list(store.keys("inbox/")) == []


class TestLinksAndSpecialFiles:
    def assert_unseen(self, store: FolderStore, key: str):
        assert store.head(key) is None
        assert [o.key for o in store.objects("inbox/")] == []
        assert store.folder("inbox/acme/").objects == ()
        with pytest.raises(ObjectMissing):
            store.read(key, limit=LIMIT)

    def test_a_link_to_a_file_outside(self, store: FolderStore, secret: Path):
        (store.root / "inbox/acme/a.csv").symlink_to(secret)
        self.assert_unseen(store, "inbox/acme/a.csv")

    def test_a_link_to_another_tenants_file(self, store: FolderStore):
        store.put("inbox/other/b.csv", b"theirs")
        (store.root / "inbox/acme/a.csv").symlink_to("../other/b.csv")
        assert store.head("inbox/acme/a.csv") is None
        with pytest.raises(ObjectMissing):
            store.read("inbox/acme/a.csv", limit=LIMIT)

    def test_a_linked_folder(self, store: FolderStore, secret: Path):
        (store.root / "inbox/acme/sub").symlink_to(secret.parent)
        self.assert_unseen(store, "inbox/acme/sub/secret.csv")

    def test_a_linked_tenant(self, store: FolderStore):
        store.put("inbox/other/b.csv", b"theirs")
        (store.root / "inbox/evil").symlink_to("other")
        assert store.head("inbox/evil/b.csv") is None
        assert list(store.keys("inbox/evil/")) == []

    def test_a_pipe_does_not_hang_us(self, store: FolderStore):
        os.mkfifo(store.root / "inbox/acme/a.csv")
        self.assert_unseen(store, "inbox/acme/a.csv")

    def test_a_socket(self, store: FolderStore, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(store.root / "inbox/acme")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("a.csv")
            self.assert_unseen(store, "inbox/acme/a.csv")

    def test_a_file_of_somebody_else_under_a_second_name(
        self, store: FolderStore, secret: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """A hard link; the kernel lets a sender make one of a file that it cannot read, unless told otherwise."""
        (store.root / "inbox/acme/a.csv").hardlink_to(secret)
        assert store.head("inbox/acme/a.csv") is not None, "their own file under a second name is theirs to drop"
        store._known.forget(["inbox/acme/a.csv"])
        fstat = os.fstat

        def of_another(fd: int) -> os.stat_result:
            facts = fstat(fd)
            return facts if stat.S_ISDIR(facts.st_mode) else os.stat_result((*facts[:4], facts.st_uid + 1, *facts[5:]))

        monkeypatch.setattr(folder.os, "fstat", of_another)
        refused: dict[str, str] = {}
        assert list(store.objects("inbox/", unreadable=refused)) == []
        assert "drop a copy" in refused["inbox/acme/a.csv"]
        with pytest.raises(ObjectRefused, match="hard link"):
            store.read("inbox/acme/a.csv", limit=LIMIT)

    def test_a_pipe_is_not_even_opened(self, store: FolderStore, monkeypatch: pytest.MonkeyPatch):
        """Its writer would wake up, and be killed when nobody reads."""
        os.mkfifo(store.root / "inbox/acme/a.csv")
        opened, names = os.open, list[str]()
        monkeypatch.setattr(
            folder.os, "open", lambda path, *args, **kw: (names.append(str(path)), opened(path, *args, **kw))[1]
        )
        assert store.head("inbox/acme/a.csv") is None
        assert not store.exists("inbox/acme/a.csv")
        assert "a.csv" not in names

    def test_a_folder_with_a_files_name(self, store: FolderStore):
        (store.root / "inbox/acme/a.csv").mkdir()
        self.assert_unseen(store, "inbox/acme/a.csv")

    def test_a_copy_never_carries_a_link_along(self, store: FolderStore, secret: Path):
        (store.root / "work/j/1").mkdir(parents=True)
        (store.root / "work/j/1/x").symlink_to(secret)
        with pytest.raises(ObjectMissing):
            store.copy("work/j/1/x", "outputs/acme/x")
        assert list(store.keys("outputs/")) == []

    def test_a_put_replaces_a_link_and_spares_what_it_points_to(self, store: FolderStore, secret: Path):
        (store.root / "outputs/acme").mkdir()
        (store.root / "outputs/acme/x").symlink_to(secret)
        store.put("outputs/acme/x", b"ours")
        assert secret.read_bytes() == b"not yours"
        assert store.read("outputs/acme/x", limit=LIMIT) == b"ours"

    @pytest.mark.parametrize(
        "act",
        [
            lambda store: store.put("outputs/acme/secret.csv", b"ours"),
            lambda store: store.copy("work/j/x", "outputs/acme/secret.csv"),
            lambda store: store.delete("outputs/acme/secret.csv"),
        ],
        ids=["put", "copy", "delete"],
    )
    def test_nothing_is_written_or_deleted_through_a_linked_folder(
        self, store: FolderStore, secret: Path, act: Callable[[FolderStore], object]
    ):
        (store.root / "outputs/acme").symlink_to(secret.parent)
        store.put("work/j/x", b"ours")
        with pytest.raises(KeyRefused, match="link"):
            act(store)
        assert secret.read_bytes() == b"not yours"


class TestWhoMayRead:
    """Under the usual umask of 022, which lets everybody read what is not said to be private."""

    @pytest.fixture(autouse=True)
    def _umask(self) -> Iterator[None]:
        before = os.umask(0o022)
        yield
        os.umask(before)

    def test_only_the_owner_enters_a_new_data_folder(self, tmp_path: Path):
        data = tmp_path / "not/there/yet"
        with closing(FolderStore(data)), closing(Database(data / "ade.sqlite")):
            assert data.stat().st_mode & 0o777 == 0o700
            assert data.parent.stat().st_mode & 0o777 == 0o755, "those above are not ours to close"

    def test_a_data_folder_that_is_there_keeps_its_mode(self, tmp_path: Path):
        (tmp_path / "data").mkdir(0o750)
        with closing(FolderStore(tmp_path / "data")):
            assert (tmp_path / "data").stat().st_mode & 0o777 == 0o750

    def test_whoever_may_enter_it_reads_neither_tokens_nor_rows(self, tmp_path: Path):
        data = tmp_path / "data"
        data.mkdir(0o755)
        with closing(FolderStore(data)) as store, closing(Database(data / "ade.sqlite")):
            store.put("access/tokens.json", b"{}")
            store.put("inbox/acme/a.csv", b"x")
            store.head("inbox/acme/a.csv")
            for name in ("access", "tmp", "locks"):
                assert (data / name).stat().st_mode & 0o077 == 0, name
            for path in data.glob("*.sqlite*"):
                assert path.stat().st_mode & 0o077 == 0, path


def test_a_second_connection_of_a_process_keeps_the_locks_of_the_first(tmp_path: Path):
    """Else another process takes itself for the last one, and removes the log with what was not written back yet."""
    path = tmp_path / "data/ade.sqlite"
    with closing(Database(path)) as first:
        first.read().execute("SELECT count(*) FROM jobs").fetchone()
        Database(path).close()
        other = f"import sqlite3; db = sqlite3.connect({str(path)!r}); db.execute('SELECT * FROM jobs'); db.close()"
        subprocess.run([sys.executable, "-c", other], check=True)
        assert path.with_name("ade.sqlite-wal").exists()


FOREIGN = [
    "../outside.csv",
    "inbox/../../outside.csv",
    "/etc/passwd",
    "inbox//a.csv",
    "inbox/./a.csv",
    "inbox/acme/",
    "",
    "inbox/a\0b",
    "inbox/a\\b",
    "inbox/a\nb",
    "inbox/" + "x/" * 600 + "y",
]


@pytest.mark.parametrize("key", FOREIGN)
def test_a_key_that_points_elsewhere_is_not_there(store: FolderStore, key: str):
    assert store.head(key) is None
    with pytest.raises(ObjectMissing):
        store.read(key, limit=LIMIT)


@pytest.mark.parametrize("key", FOREIGN)
def test_a_key_that_points_elsewhere_is_not_written(store: FolderStore, key: str):
    store.put("work/j/x", b"ours")
    with pytest.raises(KeyRefused):
        store.put(key, b"x")
    with pytest.raises(KeyRefused):
        store.copy("work/j/x", key)


@pytest.mark.parametrize("prefix", ["../", "inbox/../../", "/etc/", "inbox/../../secret"])
def test_a_prefix_that_points_elsewhere_lists_nothing(store: FolderStore, secret: Path, prefix: str):
    assert list(store.keys(prefix)) == []
    assert store.folder(prefix).objects == ()
    assert store.delete_prefix(prefix) == 0
    assert secret.exists()


def test_a_name_that_no_file_can_have_is_refused_by_name(store: FolderStore):
    with pytest.raises(KeyRefused, match="255"):
        store.put("inbox/acme/" + "n" * 256, b"x")


def test_a_key_below_an_object_is_refused_by_name(store: FolderStore):
    store.put("outputs/acme/x", b"an object")
    with pytest.raises(KeyRefused, match="outputs/acme/x/y"):
        store.put("outputs/acme/x/y", b"below it")


class TestHashesDoNotLie:
    def test_when_content_changes_with_equal_size_and_modification_time(self, store: FolderStore):
        path = store.root / "inbox/acme/a.csv"
        path.write_bytes(b"one")
        first = store.head("inbox/acme/a.csv")
        times = path.stat()
        with path.open("r+b") as same_file:
            same_file.write(b"two")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        second = store.head("inbox/acme/a.csv")
        assert first is not None
        assert second is not None
        assert first.version != second.version
        assert store.read("inbox/acme/a.csv", version=second.version, limit=LIMIT) == b"two"

    def test_when_a_file_is_rewritten_at_once_again_and_again(self, store: FolderStore):
        path = store.root / "inbox/acme/a.csv"
        for n in range(50):
            body = f"{n:03d}".encode()
            path.write_bytes(body)
            head = store.head("inbox/acme/a.csv")
            assert head is not None
            assert store.read("inbox/acme/a.csv", version=head.version, limit=LIMIT) == body

    def test_when_another_file_is_moved_in_its_place(self, store: FolderStore, tmp_path: Path):
        store.put("inbox/acme/a.csv", b"one")
        first = store.head("inbox/acme/a.csv")
        other = tmp_path / "data" / "other.csv"
        other.write_bytes(b"two")
        other.rename(store.root / "inbox/acme/a.csv")
        second = store.head("inbox/acme/a.csv")
        assert first is not None
        assert second is not None
        assert first.version != second.version

    @pytest.mark.parametrize("year", [1938, 2096, 2300, 2440])
    def test_whatever_century_a_sender_dates_it_in(self, store: FolderStore, monkeypatch, year: int):
        monkeypatch.setattr(disk, "_RACY_SECONDS", -1.0)
        path = store.root / "inbox/acme/a.csv"
        path.write_bytes(b"one")
        dated = (year - 1970) * 31_556_952
        os.utime(path, (dated, dated))
        heads = [store.head("inbox/acme/a.csv") for _ in range(2)]
        assert heads[0] == heads[1]
        assert [head.ref.key for head in store.objects("inbox/")] == ["inbox/acme/a.csv"]
        path.write_bytes(b"two")
        os.utime(path, (dated + 1, dated + 1))
        assert store.head("inbox/acme/a.csv") != heads[0]

    def test_when_the_cache_is_lost(self, store: FolderStore, tmp_path: Path):
        put = store.put("inbox/acme/a.csv", b"one")
        for leftover in (tmp_path / "data").glob("hashes.sqlite*"):
            leftover.unlink()
        with closing(FolderStore(tmp_path / "data")) as fresh:
            assert fresh.head("inbox/acme/a.csv").ref == put.ref

    def test_when_the_cache_is_damaged(self, store: FolderStore, tmp_path: Path):
        put = store.put("inbox/acme/a.csv", b"one")
        store.close()
        (tmp_path / "data" / "hashes.sqlite").write_bytes(b"no database at all" * 100)
        with closing(FolderStore(tmp_path / "data")) as fresh:
            assert fresh.head("inbox/acme/a.csv").ref == put.ref


def test_a_failed_put_leaves_the_old_object_and_no_litter(store: FolderStore, tmp_path: Path):
    store.put("outputs/acme/x", b"old")
    with pytest.raises(FileNotFoundError):
        store.put("outputs/acme/x", tmp_path / "no such file")
    assert store.read("outputs/acme/x", limit=LIMIT) == b"old"
    assert list((tmp_path / "data" / "tmp").iterdir()) == []


def test_deleting_the_last_object_of_a_work_folder_removes_the_folder(store: FolderStore):
    store.put("work/job/1/x", b"x")
    store.delete_prefix("work/job/")
    assert not (store.root / "work/job").exists()


def test_deleting_a_senders_file_leaves_the_senders_folder(store: FolderStore):
    store.put("inbox/acme/2026/x.csv", b"x")
    store.delete("inbox/acme/2026/x.csv")
    assert (store.root / "inbox/acme/2026").is_dir()


class TestPuttingTogether:
    def test_writes_where_there_is_nothing_and_names_the_rest(self, store: FolderStore):
        store.put("outputs/acme/j/b.json", b"another's")
        new = {"outputs/acme/j/a.json": b"a", "outputs/acme/j/b.json": b"b", "outputs/acme/latest.json": b"c"}
        assert store.put_new(new) == {"outputs/acme/j/b.json"}
        found = {key: store.read(key, limit=LIMIT) for key in store.keys("outputs/")}
        assert found == new | {"outputs/acme/j/b.json": b"another's"}

    def test_a_conditional_put_of_the_same_moment_is_one_step(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch
    ):
        """Another process has looked whether there is anything, and is about to write."""
        key, there = "outputs/acme/latest.json", list[frozenset[str]]()
        together = threading.Thread(target=lambda: there.append(store.put_new({key: b"another's"})))
        head = store.head

        def slow(asked: str) -> ObjectInfo | None:
            found = head(asked)
            together.start()
            together.join(0.3)  # it may end only after this put
            return found

        monkeypatch.setattr(store, "head", slow)
        store.put(key, b"first", if_absent=True)
        together.join()
        assert there == [frozenset({key})]
        assert store.read(key, limit=LIMIT) == b"first"

    def test_a_folder_in_the_place_of_an_object_is_told_of(self, store: FolderStore):
        store.put("outputs/acme/j/a/b.json", b"x")
        assert store.put_new({"outputs/acme/j/a": b"a"}) == {"outputs/acme/j/a"}

    def test_a_key_that_is_refused_leaves_nothing(self, store: FolderStore, tmp_path: Path):
        with pytest.raises(KeyRefused):
            store.put_new({"outputs/acme/a": b"a", f"outputs/acme/{'x' * 300}": b"b"})
        assert list(store.keys("outputs/")) == []
        assert list((tmp_path / "data" / "tmp").iterdir()) == []

    def test_no_link_is_followed(self, store: FolderStore, tmp_path: Path):
        (tmp_path / "elsewhere").mkdir()
        (store.root / "outputs" / "acme").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(KeyRefused):
            store.put_new({"outputs/acme/a": b"a"})
        assert list((tmp_path / "elsewhere").iterdir()) == []
