"""The power goes after any system call, and the disk has lost, torn or mixed what was not synced: nothing acknowledged
is lost, nothing half-written is seen, and what stands can be worked with."""

import json
import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from core.ports import Message
from infra.clocks import HandClock
from infra.local.folder import FolderStore
from infra.local.sqlite import Database
from infra.local.sqlite_queue import SqliteWorkQueue
from infra.local.sqlite_table import SqliteJobTable
from tests.contract.jobs import NOW, a_job
from tests.power.disk import Disk, record, write_out

ROOT = Path(__file__).parents[2]
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture
def place():
    if shutil.which("strace") is None:
        if os.environ.get("CI"):
            pytest.fail("strace is not installed")
        pytest.skip("needs strace")
    folder = Path(tempfile.mkdtemp(dir=MEMORY, prefix="power-")).resolve()
    yield folder
    shutil.rmtree(folder)


def allowed(marks):
    """By name, every value that may stand: the last that was acknowledged, and one that is being written."""
    found = {}
    for text in marks:
        for line in text.splitlines():
            word, name, value = json.loads(line)
            if word == "do" or word == "any":
                found[name] = {*found.get(name, {None}), value}
            else:
                found[name] = {value}
    return found


def standing_objects(data):
    with closing(FolderStore(data)) as store:
        found = {
            f"object:{o.key}": store.read(o.key, version=o.version, limit=1000).decode() for o in store.objects("")
        }
        store.put("inbox/after/x.csv", b"after")
    return found


def standing_rows(data):
    with closing(Database(data / "ade.sqlite")) as database:
        table = SqliteJobTable(database, HandClock(NOW), lambda _job: None)
        queue = SqliteWorkQueue(database, HandClock(NOW + 3600))
        names = {f"acme-members-j{a}{b}" for a in range(2) for b in range(4)}
        found = {f"row:{name}": job.reason for name, job in table.get_all(names).items()}
        found |= {f"letter:{letter.message.job_id}": letter.reason for letter in queue.dead()}
        taken = queue.receive(most=100, wait=0, visibility=60)
        found |= {f"message:{delivery.message.job_id}": "sent" for delivery in taken}
        table.add(a_job("after"))
        queue.send(Message(job_id="after", tenant="acme"))
    return found


def losses(place, what, standing):
    """Every promise that some state of the disk breaks, and how many states were tried."""
    (place / "disk").mkdir()
    trace = record(["-m", "tests.power.work", what, str(place / "disk" / "data")], place / "trace")
    disk, tried = Disk(place / "disk"), set()
    for step, call in enumerate(disk.replay(trace)):
        may = allowed(disk.marks)
        for how, state in disk.crashes(step):
            known = (hash(tuple(sorted(state.items(), key=lambda item: item[0]))), str(may))
            if known in tried:
                continue
            tried.add(known)
            write_out(state, place / "after")
            found = standing(place / "after" / "data")
            for name in {**may, **found}:
                if found.get(name) not in may.get(name, {None}):
                    yield f"step {step} ({call}), {how}: {name} is {found.get(name)!r}, may be {may.get(name, {None})}"
    assert len(tried) > 50, "nothing was tried"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.mark.slow
@pytest.mark.parametrize(("what", "standing"), [("objects", standing_objects), ("rows", standing_rows)])
def test_nothing_acknowledged_is_lost_with_the_power(place, what, standing):
    found = list(losses(place, what, standing))
    assert not found, f"{len(found)} losses:\n" + "\n".join(found[:20])


@pytest.mark.parametrize(
    ("what", "standing"), [("careless_objects", standing_objects), ("careless_rows", standing_rows)]
)
def test_who_does_not_sync_is_found_out(place, what, standing):
    assert next(losses(place, what, standing), None) is not None
