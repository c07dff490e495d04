"""What is done while the power may go: says on standard output what it is about to do, and what was acknowledged."""

import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.chores import Timings, wake_at
from core.ports import Message
from infra.clocks import HandClock
from infra.local import folder
from infra.local.folder import FolderStore
from infra.local.sqlite import Database
from infra.local.sqlite_queue import SqliteWorkQueue
from infra.local.sqlite_table import SqliteJobTable
from tests.contract.jobs import NOW, a_job


def mark(word: str, name: str, value: Any) -> None:
    os.write(1, json.dumps([word, name, value]).encode() + b"\n")


class Doing:
    """`with Doing("object", key, value):` tells of the step before and after it."""

    def __init__(self, kind: str, name: str, value: Any) -> None:
        self._told = (f"{kind}:{name}", value)

    def __enter__(self) -> None:
        mark("do", *self._told)

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            mark("done", *self._told)


def objects(data: Path) -> None:
    store = FolderStore(data)

    def put(key: str, body: str, **conditions: Any) -> str:
        with Doing("object", key, body):
            return store.put(key, body.encode(), **conditions).version

    put("inbox/acme/d/a.csv", "id 1")
    put("inbox/acme/d/a.csv", "id 2, which is longer")
    put("inbox/acme/d/new/deep/b.csv", "id 3")
    for name in ("artifact.json", "normalized.xlsx"):
        # What is staged may be lost, for its job runs again, and may come back, for the janitor collects it.
        mark("any", f"object:work/j/1/{name}", f"content of {name}")
        store.put(f"work/j/1/{name}", f"content of {name}".encode())
        key = f"outputs/acme/d/a.csv/members/j/{name}"
        with Doing("object", key, f"content of {name}"):
            store.copy(f"work/j/1/{name}", key)
    latest = put("outputs/acme/d/a.csv/members/latest.json", "names j", if_absent=True)
    put("outputs/acme/d/a.csv/members/j/result.json", "SUCCEEDED", if_absent=True)
    put("outputs/acme/d/a.csv/members/latest.json", "names k", if_version=latest)
    together = {
        f"outputs/acme/d/b.csv/members/{name}": f"content of {name}" for name in ("k/artifact.json", "latest.json")
    }
    with contextlib.ExitStack() as doing:
        for key, body in together.items():
            doing.enter_context(Doing("object", key, body))
        store.put_new({key: body.encode() for key, body in together.items()})
    store.delete_prefix("work/j/")
    with Doing("object", "outputs/acme/d/a.csv/members/latest.json", None):
        store.delete("outputs/acme/d/a.csv/members/latest.json")
    for name in ("artifact.json", "normalized.xlsx", "result.json"):
        with Doing("object", f"outputs/acme/d/a.csv/members/j/{name}", None):
            store.delete(f"outputs/acme/d/a.csv/members/j/{name}")
    with Doing("object", "inbox/acme/d/new/deep/b.csv", None):
        store.delete_all(["inbox/acme/d/new/deep/b.csv"])
    put("inbox/acme/d/a.csv", "id 1")
    store.close()


def rows(data: Path) -> None:
    timings = Timings()
    for life in range(2):  # the last one to close the file writes the log back to it
        database = Database(data / "ade.sqlite")
        table = SqliteJobTable(database, HandClock(NOW), lambda job: wake_at(job, timings))
        queue = SqliteWorkQueue(database, HandClock(NOW))
        for n in range(3):
            job = a_job(f"j{life}{n}", reason="made")
            with Doing("row", job.job_id, "made"):
                job, _ = table.add(job)
            with Doing("message", job.job_id, "sent"):
                queue.send(Message(job_id=job.job_id, tenant="acme"))
            with Doing("row", job.job_id, "replaced"):
                job = table.replace(job, replace(job, reason="replaced"))
        with Doing("row", job.job_id, None):
            table.remove(job)
        (taken,) = queue.receive(most=1, wait=0, visibility=60)
        mark("any", f"message:{taken.message.job_id}", None)  # what was acknowledged may be received once more
        queue.ack(taken.receipt)
        both = a_job(f"j{life}3", reason="made")
        with Doing("row", both.job_id, "made"), Doing("message", both.job_id, "sent"):
            table.add_sent(both, 0.0)
        with Doing("letter", "lost", f"reason {life}"):
            queue.bury(Message(job_id="lost", tenant="acme"), f"reason {life}")
        queue.close()
        database.close()


def careless_objects(data: Path) -> None:
    """The same by a store that never syncs a folder: the test must notice."""
    folder.sync_folder = lambda _folder: None
    objects(data)


def careless_rows(data: Path) -> None:
    """The same by a database that syncs its log now and then: the test must notice."""
    read = Database.read

    def relaxed(self: Database) -> Any:
        db = read(self)
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    Database.read = relaxed  # type: ignore[method-assign]
    rows(data)


if __name__ == "__main__":
    {f.__name__: f for f in (objects, rows, careless_objects, careless_rows)}[sys.argv[1]](Path(sys.argv[2]))
