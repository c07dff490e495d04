"""Slots in the DynamoDB table: counters of running jobs, caps over them, and the pauses on the same items.

Theory of operation. A counter changes only in the transaction that moves a job into or out of RUNNING, so it always
equals the number of RUNNING jobs that use it. One item takes some 100 transactions a second, and a job makes two.
So a tenant and a workflow have a first counter, which small caps need to be exact, and several more to spread over:
with no cap, or a large one, a start picks one of those, each with its share of the cap. The lease names its
counter, and the end of the job counts down that one, whatever the caps are by then. A cap also counts jobs that started
under a cap of the other kind, on counters that it does not use itself.

A counter can still be wrong, if a row was deleted or the counter edited by hand. One that is too high would refuse
starts forever, so a refused start leaves a note, and the janitor recounts the counters in such notes. A counter records
how often it has changed. Once it has not changed for a while, the index has every job that it counts; they are read,
and the counter is set to their number if it has not changed since, so that no start or end is lost.
"""

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from core.errors import RowUnreadable
from core.jobs import Job
from core.ports import Caps, Refused
from infra.aws import dynamodb_items as items
from infra.aws.calls import Answered, Caller
from infra.aws.dynamodb_items import Item, number, text
from infra.aws.dynamodb_reads import Reads

_BELIEVED_SECONDS = 30.0
_AT_REST_SECONDS = 20.0  # an index has caught up by then
_NO = "ConditionalCheckFailedException"

Write = dict[str, Any]


class Slots:
    def __init__(self, db: Any, call: Caller, reads: Reads, table: str, shards: int) -> None:
        self._db = db
        self._call = call
        self._reads = reads
        self._name = table
        self._shards = shards
        self._none_elsewhere: dict[tuple[str, str | None, bool], float] = {}  # until when to trust it
        self._doubted: dict[tuple[str, str], float] = {}  # when to leave the next note
        self._unchanged: dict[str, tuple[int, float]] = {}  # by counter: its changes, since when

    def counted(self, job: Job, delta: int) -> list[Write]:
        """The update of the counter that a job's lease names."""
        if not delta:
            return []
        tenant, workflow = job.lease.counters if job.lease else (0, 0)
        keys = items.slots_key(job.tenant, None, tenant), items.slots_key(job.tenant, job.workflow, workflow)
        return [self._slot(key, delta) for key in keys]

    def start(self, job: Job, caps: Caps) -> tuple[Job, list[Write]]:
        """A started job with new counters, and their updates, conditional on caps and pauses."""
        counters = _pick(caps.tenant), _pick(caps.workflow)
        on = job if job.lease is None else replace(job, lease=replace(job.lease, counters=counters))
        places: list[tuple[int, int, str | None]] = [
            (caps.tenant, counters[0], None),
            (caps.workflow, counters[1], job.workflow),
        ]
        writes = [
            self._start(items.slots_key(job.tenant, workflow, counter), self._room(cap, counter, job.tenant, workflow))
            for cap, counter, workflow in places
        ]
        everything = {"TableName": self._name, "Key": self._all_paused(job)}
        return on, [*writes, {"ConditionCheck": everything | {"ConditionExpression": "attribute_not_exists(pk)"}}]

    def refused(self, job: Job, caps: Caps) -> Refused | None:
        """Why a start was refused, read consistently; None if it may start now."""
        if self._reads.item(self._all_paused(job)):
            return Refused(reason="waiting: paused, everything", scope="pause")
        if "paused" in self._reads.item(items.slots_key(job.tenant)):
            return Refused(reason=f"waiting: paused, tenant {job.tenant}", scope="pause")
        if "paused" in self._reads.item(items.slots_key(job.tenant, job.workflow)):
            what = f"workflow {job.workflow} of tenant {job.tenant}"
            return Refused(reason=f"waiting: paused, {what}", scope="pause")
        if caps.tenant and (n := self._count(caps.tenant, job.tenant, None)) >= caps.tenant:
            self._doubt(job)
            return Refused(reason=f"waiting: tenant {job.tenant} {n}/{caps.tenant} running", scope="tenant")
        if caps.workflow and (n := self._count(caps.workflow, job.tenant, job.workflow)) >= caps.workflow:
            self._doubt(job)
            return Refused(reason=f"waiting: workflow {job.workflow} {n}/{caps.workflow} running", scope="workflow")
        return None

    def pausing(self, tenant: str | None, workflow: str | None, *, on: bool) -> list[Write]:
        """The writes that show a pause (or its end) to starts, whichever counter they pick."""
        if tenant is not None:
            update: dict[str, Any] = {"TableName": self._name, "UpdateExpression": "REMOVE paused"}
            if on:
                update["UpdateExpression"] = "SET paused = :yes"
                update["ExpressionAttributeValues"] = {":yes": {"BOOL": True}}
            return [{"Update": update | {"Key": key}} for key in items.slots_keys(tenant, workflow)]
        keys = [items.all_paused_key(shard) for shard in range(self._shards)]
        if on:
            return [{"Put": {"TableName": self._name, "Item": key}} for key in keys]
        return [{"Delete": {"TableName": self._name, "Key": key}} for key in keys]

    def recount(self, now: float) -> int:
        """Set counters that refused a start to the number of their jobs; returns how many were wrong."""
        corrected, checked = 0, set[str]()
        for note in self._reads.doubts():
            tenant, workflow = note["tenant"]["S"], note["workflow"]["S"] or None
            counters = self._reads.items(items.slots_keys(tenant, workflow))
            at_rest = [counter for counter in counters if self._is_at_rest(counter, now)]
            checked |= {counter["pk"]["S"] for counter in counters}
            standing = self._standing(tenant, workflow) if at_rest else None
            if standing is None:
                continue
            for counter in at_rest:
                if _running(counter) != standing[counter["pk"]["S"]]:
                    corrected += self._correct(counter, standing[counter["pk"]["S"]])
            if len(at_rest) == len(counters):
                key = items.doubt_key(tenant, workflow)
                self._call("drop a note", lambda: self._db.delete_item(TableName=self._name, Key=key))  # noqa: B023
        self._unchanged = {pk: seen for pk, seen in self._unchanged.items() if pk in checked}
        return corrected

    def erase(self, tenant: str, workflows: Iterable[str]) -> int:
        """Delete a tenant's counters of workflows and the notes about them; those of the tenant itself stay."""
        notes = [note for note in self._reads.doubts() if note["tenant"]["S"] == tenant]
        names = {*workflows, *(note["workflow"]["S"] for note in notes)} - {""}
        keys = [items.doubt_key(tenant, note["workflow"]["S"] or None) for note in notes]
        for name in names:
            counters = self._reads.items(items.slots_keys(tenant, name))
            keys += [{"pk": counter["pk"], "sk": counter["sk"]} for counter in counters]
        for key in keys:
            self._call("erase a counter", lambda: self._db.delete_item(TableName=self._name, Key=key))  # noqa: B023
        return len(keys)

    def _is_at_rest(self, counter: Item, now: float) -> bool:
        """Whether a counter has not changed for so long that the index has every job it counts."""
        pk, changes = counter["pk"]["S"], _changes(counter)
        known, since = self._unchanged.get(pk, (None, now))
        if known != changes:
            self._unchanged[pk] = changes, now
        return known == changes and now - since >= _AT_REST_SECONDS

    def _standing(self, tenant: str, workflow: str | None) -> Counter[str] | None:
        """The number of running jobs per counter; None if a row cannot be read."""
        found: Counter[str] = Counter()
        for row in self._reads.running(tenant):
            try:
                job = items.job_of(row)
            except RowUnreadable:
                return None
            on = job.lease.counters if job.lease else (0, 0)
            if workflow is None or workflow == job.workflow:
                key = items.slots_key(tenant, workflow, on[0] if workflow is None else on[1])
                found[key["pk"]["S"]] += 1
        return found

    def _correct(self, counter: Item, running: int) -> bool:
        """Set a counter unless it has changed since it was read."""
        still = "running = :was" if "running" in counter else "attribute_not_exists(running)"
        unchanged = "changes = :changes" if "changes" in counter else "attribute_not_exists(changes)"
        values = {":running": number(running), ":one": number(1)}
        values |= {":was": counter["running"]} if "running" in counter else {}
        values |= {":changes": counter["changes"]} if "changes" in counter else {}
        update = {
            "TableName": self._name,
            "Key": {"pk": counter["pk"], "sk": counter["sk"]},
            "UpdateExpression": "SET running = :running ADD changes :one",
            "ConditionExpression": f"{still} AND {unchanged}",
            "ExpressionAttributeValues": values,
        }
        try:
            self._call("correct a counter", lambda: self._db.update_item(**update), expect=(_NO,))
        except Answered:
            return False
        return True

    def _doubt(self, job: Job) -> None:
        """Leave notes for the janitor, not too often, since a reached cap refuses many starts."""
        now, name = time.monotonic(), (job.tenant, job.workflow)
        if self._doubted.get(name, 0.0) > now:
            return
        for workflow in (None, job.workflow):
            note = items.doubt_key(job.tenant, workflow)
            note |= {"tenant": text(job.tenant), "workflow": text(workflow or "")}
            self._call("leave a note", lambda: self._db.put_item(TableName=self._name, Item=note))  # noqa: B023
        self._doubted = {known: until for known, until in list(self._doubted.items()) if until > now}
        self._doubted[name] = now + _BELIEVED_SECONDS

    def _all_paused(self, job: Job) -> Item:
        return items.all_paused_key(items.shard_of(job.job_id, self._shards))

    def _slot(self, key: Item, delta: int) -> Write:
        update: dict[str, Any] = {
            "TableName": self._name,
            "Key": key,
            "UpdateExpression": "ADD running :delta, changes :one",
            "ExpressionAttributeValues": {":delta": number(delta), ":one": number(1)},
        }
        return {"Update": update}

    def _start(self, key: Item, room: int | None) -> Write:
        slot = self._slot(key, 1)
        update = slot["Update"]
        update["ConditionExpression"] = "attribute_not_exists(paused)"
        if room is not None:
            free = "running < :room OR attribute_not_exists(running)" if room > 0 else "running < :room"
            update["ConditionExpression"] += f" AND ({free})"
            update["ExpressionAttributeValues"][":room"] = number(room)
        return slot

    def _room(self, cap: int, counter: int, tenant: str, workflow: str | None) -> int | None:
        """How many jobs a counter may have; None: any number."""
        if cap == 0:
            return None
        room = cap - self._elsewhere(cap, tenant, workflow)
        return room // items.COUNTERS if counter else room

    def _count(self, cap: int, tenant: str, workflow: str | None) -> int:
        keys = items.slots_keys(tenant, workflow)
        used = sum(_running(item) for item in self._reads.items(keys[1:] if _spread(cap) else keys[:1]))
        return used + self._elsewhere(cap, tenant, workflow)

    def _elsewhere(self, cap: int, tenant: str, workflow: str | None) -> int:
        """Jobs on the counters that a cap of this size does not use.

        Only exist for a while after caps were changed; "none" is cached for half a minute.
        """
        name = (tenant, workflow, _spread(cap))
        if self._none_elsewhere.get(name, 0.0) > time.monotonic():
            return 0
        keys = items.slots_keys(tenant, workflow)
        there = sum(_running(item) for item in self._reads.items(keys[:1] if _spread(cap) else keys[1:]))
        if not there:
            self._none_elsewhere[name] = time.monotonic() + _BELIEVED_SECONDS
        return there


def _spread(cap: int) -> bool:
    """Whether starts under this cap may use any counter: no cap, or one large enough to share."""
    return cap == 0 or cap >= 4 * items.COUNTERS


def _pick(cap: int) -> int:
    return random.randint(1, items.COUNTERS) if _spread(cap) else 0  # noqa: S311 - spreads writes


def _changes(item: Item) -> int:
    return int(item["changes"]["N"]) if "changes" in item else 0


def _running(item: Item) -> int:
    return int(item["running"]["N"]) if "running" in item else 0
