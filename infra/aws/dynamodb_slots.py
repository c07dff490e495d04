"""Slots in the DynamoDB table: counters of running jobs, caps over them, and the pauses that stand on the same items.

Theory of operation. A counter changes only in the transaction that moves a job into or out of RUNNING, so it always
equals the number of RUNNING jobs that stand on it. One item takes some 100 transactions a second, and a job makes two.
So a tenant and a workflow have a first counter, which small caps need to be exact, and several more to spread over:
where there is no cap, or a large one, a start picks one of those, each with its share of the cap. The lease says
which counter it stands on, and whoever ends it counts down that one, whatever the caps are by then. A cap also
counts what started under a cap of the other kind and stands on counters that it does not use itself.
"""

import random
import time
from dataclasses import replace
from typing import Any

from core.jobs import Job
from core.ports import Caps, Refused
from infra.aws import dynamodb_items as items
from infra.aws.dynamodb_items import Item, number
from infra.aws.dynamodb_reads import Reads

_BELIEVED_SECONDS = 30.0

Write = dict[str, Any]


class Slots:
    def __init__(self, reads: Reads, table: str, shards: int) -> None:
        self._reads = reads
        self._name = table
        self._shards = shards
        self._none_elsewhere: dict[tuple[str, str | None, bool], float] = {}  # until when that is believed

    def counted(self, job: Job, delta: int) -> list[Write]:
        """What counts a job where its lease says that it stands."""
        if not delta:
            return []
        tenant, workflow = job.lease.counters if job.lease else (0, 0)
        keys = items.slots_key(job.tenant, None, tenant), items.slots_key(job.tenant, job.workflow, workflow)
        return [self._slot(key, delta) for key in keys]

    def start(self, job: Job, caps: Caps) -> tuple[Job, list[Write]]:
        """A started job on counters picked anew, and what counts it there unless it is over a cap or paused."""
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
        """Why a start was refused, read again consistently; None: nothing stands in its way any more."""
        if self._reads.item(self._all_paused(job)):
            return Refused(reason="waiting: paused, everything", scope="pause")
        if "paused" in self._reads.item(items.slots_key(job.tenant)):
            return Refused(reason=f"waiting: paused, tenant {job.tenant}", scope="pause")
        if "paused" in self._reads.item(items.slots_key(job.tenant, job.workflow)):
            what = f"workflow {job.workflow} of tenant {job.tenant}"
            return Refused(reason=f"waiting: paused, {what}", scope="pause")
        if caps.tenant and (n := self._count(caps.tenant, job.tenant, None)) >= caps.tenant:
            return Refused(reason=f"waiting: tenant {job.tenant} {n}/{caps.tenant} running", scope="tenant")
        if caps.workflow and (n := self._count(caps.workflow, job.tenant, job.workflow)) >= caps.workflow:
            return Refused(reason=f"waiting: workflow {job.workflow} {n}/{caps.workflow} running", scope="workflow")
        return None

    def pausing(self, tenant: str | None, workflow: str | None, *, on: bool) -> list[Write]:
        """What makes starts see a pause (or its end), whichever counter they pick."""
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

    def _all_paused(self, job: Job) -> Item:
        return items.all_paused_key(items.shard_of(job.job_id, self._shards))

    def _slot(self, key: Item, delta: int) -> Write:
        update: dict[str, Any] = {
            "TableName": self._name,
            "Key": key,
            "UpdateExpression": "ADD running :delta",
            "ExpressionAttributeValues": {":delta": number(delta)},
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
        """How many jobs may stand on a counter; None: any number."""
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

        There are some only for a while after caps were changed; that there are none is believed for half a minute.
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
    """Whether starts under this cap may use any counter: no cap, or one of which each counter gets a fair share."""
    return cap == 0 or cap >= 4 * items.COUNTERS


def _pick(cap: int) -> int:
    return random.randint(1, items.COUNTERS) if _spread(cap) else 0  # noqa: S311 - spreads writes


def _running(item: Item) -> int:
    return int(item["running"]["N"]) if "running" in item else 0
