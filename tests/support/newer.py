"""Rows as a newer program would write them, and what is there byte by byte."""

import json
import zlib
from typing import Any

from core.jobs import RECORD_VERSION
from tests.support.world import World


def raw(world: World, job_id: str) -> dict[str, Any]:
    """The whole stored row, undecoded."""
    table: Any = world.table
    if hasattr(table, "_reads"):
        found: dict[str, Any] = table._row(job_id)
        return found
    return dict(table._db.read().execute("SELECT * FROM jobs WHERE job_id = ?", (job_id,)).fetchone())


def record(world: World, job_id: str) -> dict[str, Any]:
    """A row's own record, whatever this program thinks of it."""
    row = raw(world, job_id)
    doc = row["doc"]["B"] if isinstance(row["doc"], dict) else row["doc"]
    if isinstance(doc, bytes) and not doc.startswith(b"{"):
        doc = zlib.decompress(doc)
    found: dict[str, Any] = json.loads(doc)
    return found


def rewrite(world: World, job_id: str, *, version: int = RECORD_VERSION, state: str | None = None, **more: Any) -> None:
    """Write the row as a program of `version` does: the next rev, the same facts, and whatever it adds."""
    table: Any = world.table
    there = record(world, job_id)
    there |= {"v": version, "rev": there["rev"] + 1} | ({"state": state} if state else {}) | more
    shown, doc = there.get("state", "AWAITING"), json.dumps(there)
    if hasattr(table, "_reads"):
        item = raw(world, job_id)
        item |= {"doc": {"B": zlib.compress(doc.encode())}, "v": {"N": str(version)}, "rev": {"N": str(there["rev"])}}
        item |= {"state": {"S": shown}, "writer": {"S": "another program"}}
        item["by_state_pk"] = {"S": f"{item['by_state_pk']['S'].rpartition('#')[0]}#{shown}"}
        table._db.put_item(TableName=table._name, Item=item)
        return
    with table._db.write() as db:
        db.execute("UPDATE jobs SET doc = ?, state = ?, rev = ? WHERE job_id = ?", (doc, shown, there["rev"], job_id))
