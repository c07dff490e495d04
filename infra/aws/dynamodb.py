"""JobTable on DynamoDB.

Theory of operation. A job is one item; every write of it is conditional on its rev. Slots are counters per tenant and
per workflow that change only in the transaction that moves a job into or out of RUNNING (dynamodb_slots.py). Because
the rev condition pins the state that the job had before, the counters always equal the number of RUNNING jobs: two
runners cannot both take the last slot, and a lost runner's slot is freed when its job is moved on. Pauses are on the
same items, so a start needs no extra read. Indexes lag behind, so the base item of every entry is read again and
decides. A tenant's fence item is raised before a row with a greater fence is removed, and a copy of it is checked as a
row is added. Each write carries a unique name: if a retry meets a failed condition, the name shows whether
an earlier try succeeded.
"""

import contextlib
import copy
import threading
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from core.ends import EndCounts
from core.errors import RowUnreadable
from core.jobs import Job, State, first, lease_owner
from core.ports import Caps, Clock, JobQuery, Page, Pause, Refused, Resolution, Tally
from infra.addresses import Address
from infra.aws import dynamodb_items as items
from infra.aws.calls import Answered, Caller, client, timeouts
from infra.aws.dynamodb_ends import EndCounters
from infra.aws.dynamodb_items import Item, number, text
from infra.aws.dynamodb_reads import Reads
from infra.aws.dynamodb_slots import Slots

_NO = "ConditionalCheckFailed"
_ONE_NO = "ConditionalCheckFailedException"
_DONE_BEFORE = "IdempotentParameterMismatchException"
_TRIES = 5
_FENCE_SECONDS = 60.0


class DynamoJobTable:
    """One table, created by `infra/aws/provision.py` or the template. Safe to share between threads."""

    def __init__(
        self, address: Address, clock: Clock, wake_at: Callable[[Job], float | None], *, caller: Caller | None = None
    ) -> None:
        self._address = address
        self._name = address.name
        self._shards = int(address.options.get("shards", items.SHARDS))
        self._clock = clock
        self._wake_at = wake_at
        caller = caller or Caller(str(address))
        self._connect(client(address, read_timeout=caller.longest_try), caller)
        self._fences: dict[str, tuple[int, float]] = {}  # by tenant, and until when it need not be read
        self._changed = threading.Condition()
        self._changes = 0
        self._seen = threading.local()  # a change between two waits of a thread is not lost

    def within(self, seconds: float) -> "DynamoJobTable":
        """The same table with calls that end within `seconds`, for heartbeats; has its own client, to be closed."""
        hasty = copy.copy(self)
        hasty._connect(client(self._address, **timeouts(seconds)), self._call.within(seconds))  # noqa: SLF001 - same class
        return hasty

    def _connect(self, db: Any, call: Caller) -> None:
        self._db, self._call = db, call
        self._reads = Reads(db, call, self._name, self._shards)
        self._slots = Slots(db, call, self._reads, self._name, self._shards)
        self._ends = EndCounters(db, call, self._reads, self._name)

    def add(self, job: Job) -> tuple[Job, bool]:
        wanted = job
        for _ in range(_TRIES):
            floor = self._floor(wanted.tenant)
            job, writer = first(wanted, floor), _writer()
            line = items.line_key(job) | {"job_id": text(job.job_id)}
            try:
                self._transact(
                    f"add {job.job_id}",
                    writer,
                    {"Put": self._item(job, writer) | {"ConditionExpression": "attribute_not_exists(pk)"}},
                    {"Put": {"TableName": self._name, "Item": line}},
                    {"ConditionCheck": self._fence_is_at_most(floor, job)},
                    *self._slots.counted(job, _delta(None, job)),
                )
            except Answered:
                if (there := self._row(job.job_id)) is not None:
                    return items.job_of(there), items.written_by(there) == writer
                self._fences.pop(wanted.tenant, None)  # a greater one was raised, or the row was just removed
                continue
            self._notify()
            return job, True
        raise AssertionError(f"row {job.job_id} is removed again each time it is added")

    def get(self, job_id: str) -> Job | None:
        item = self._row(job_id)
        return items.job_of(item) if item else None

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        return {job.job_id: job for job in self._reads.jobs(sorted(set(job_ids)))}

    def replace(self, old: Job, new: Job) -> Job | None:
        written, writer = replace(new, rev=old.rev + 1), _writer()
        delta = _delta(old, new)
        put = self._item(written, writer) | _still(old)
        counters = self._slots.counted(old if delta < 0 else new, delta) + self._ends.counted(old, written)
        try:
            if counters:
                self._transact(f"write {old.job_id}", writer, {"Put": put}, *counters)
            else:
                self._call(f"write {old.job_id}", lambda: self._db.put_item(**put), expect=(_ONE_NO,))
        except Answered:
            return written if self._wrote(old.job_id, writer) else None
        self._notify()
        return written

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        writer = _writer()
        for _ in range(_TRIES):
            on, counts = self._slots.start(new, caps)
            written = replace(on, rev=old.rev + 1)
            put = {"Put": self._item(written, writer) | _still(old)}
            try:
                self._transact(f"start {old.job_id}", writer, put, *counts)
            except Answered as no:
                if self._wrote(old.job_id, writer):
                    break
                reasons = no.response.get("CancellationReasons", [])
                if not reasons or reasons[0].get("Code") == _NO:
                    return None
                if (refused := self._slots.refused(new, caps)) is not None:
                    return refused
                writer = _writer()  # the obstacle is gone; a token is only valid for one transaction
            else:
                break
        else:
            return Refused(reason=f"waiting: tenant {new.tenant} is busy starting jobs", scope="tenant")
        self._notify()
        return written

    def remove(self, old: Job) -> bool:
        if old.fence and old.fence > self._fence(old.tenant):
            # Before the row is removed: raising a fence needlessly is harmless, not raising it is not.
            self._raise_fence(old.tenant, old.fence)
        try:
            self._transact(
                f"remove {old.job_id}",
                _writer(),
                {"Delete": {"TableName": self._name, "Key": items.job_key(old.job_id)} | _still(old)},
                {"Delete": {"TableName": self._name, "Key": items.line_key(old)}},
                *self._slots.counted(old, _delta(old, None)),
            )
        except Answered as no:
            if no.code != _DONE_BEFORE:
                return False
        self._notify()
        return True

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page:
        return self._reads.page(query, limit, cursor)

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        return self._reads.line(line, whole=whole)

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._awake(before, limit, resting=False)

    def outdated(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._awake(before, limit, resting=True)

    def damaged(self, *, limit: int = 100) -> dict[str, RowUnreadable]:
        return self._reads.damaged(limit)

    def counts(self) -> dict[State, int]:
        return {state: n for state in State if (n := self._reads.count([state]))}

    def count(self, states: frozenset[State], *, before: float) -> int:
        return self._reads.count(states, before)

    def tally(self, tenant: str | None = None) -> Tally:
        return self._reads.tally(tenant)

    def ends(self, since: float) -> tuple[EndCounts, ...]:
        return self._ends.ends(since)

    def sender_ends(self, since: float, tenant: str | None = None) -> tuple[EndCounts, ...]:
        return self._ends.sender_ends(since, self._clock.now(), tenant)

    def resolve(self, resolution: Resolution) -> bool:
        return self._ends.resolve(resolution)

    def resolutions(self) -> tuple[Resolution, ...]:
        return self._ends.resolutions()

    def erase_tenant(self, tenant: str) -> int:
        """Jobs that cannot be read stay, as messages in SQS do: nobody finds them by their tenant."""
        workflows = self._ends.erase(tenant, self._clock.now())
        return self._slots.erase(tenant, workflows)

    def recount(self) -> int:
        now = self._clock.now()
        self._ends.tidy(now)
        return self._slots.recount(now)

    def pause(self, pause: Pause) -> None:
        item = items.pause_key(pause.tenant, pause.workflow)
        item |= {"since": number(pause.since), "by": text(pause.by)}
        first = {"TableName": self._name, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        try:
            self._transact(
                "pause", _writer(), {"Put": first}, *self._slots.pausing(pause.tenant, pause.workflow, on=True)
            )
        except Answered:
            return

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        there = {"TableName": self._name, "Key": items.pause_key(tenant, workflow)}
        there |= {"ConditionExpression": "attribute_exists(pk)"}
        try:
            self._transact("resume", _writer(), {"Delete": there}, *self._slots.pausing(tenant, workflow, on=False))
        except Answered as no:
            if no.code != _DONE_BEFORE:
                return False
        self._notify()
        return True

    def pauses(self) -> tuple[Pause, ...]:
        return self._reads.pauses()

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        now = self._clock.now()
        put = {
            "TableName": self._name,
            "Item": items.lease_key(name) | {"owner": text(owner), "expires": number(now + seconds)},
            "ConditionExpression": "attribute_not_exists(pk) OR #owner = :owner OR expires <= :now",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {":owner": text(owner), ":now": number(now)},
        }
        try:
            self._call(f"hold {name}", lambda: self._db.put_item(**put), expect=(_ONE_NO,))
        except Answered:
            return False
        return True

    def let_go(self, name: str, owner: str) -> None:
        delete = {
            "TableName": self._name,
            "Key": items.lease_key(name),
            "ConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {":owner": text(owner)},
        }
        try:
            self._call(f"let go {name}", lambda: self._db.delete_item(**delete), expect=(_ONE_NO,))
        except Answered:
            return

    def generations(self, names: Collection[str]) -> dict[str, int]:
        keys = {items.generation_key(name)["pk"]["S"]: name for name in names}
        found = self._reads.items([items.generation_key(name) for name in keys.values()])
        return dict.fromkeys(names, 0) | {keys[item["pk"]["S"]]: int(item["n"]["N"]) for item in found}

    def advance(self, name: str) -> None:
        update = {
            "TableName": self._name,
            "Key": items.generation_key(name),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": number(1)},
        }
        self._call(f"advance {name}", lambda: self._db.update_item(**update))

    def _fence(self, tenant: str) -> int:
        found = self._reads.item(items.fence_key(tenant))
        return int(found["fence"]["N"]) if found else 0

    def _floor(self, tenant: str) -> int:
        """The fence of a tenant as it was known lately; a transaction checks a copy of it."""
        now = time.monotonic()
        fence, until = self._fences.get(tenant, (0, 0.0))
        if now >= until:
            fence = self._fence(tenant)
            self._fences[tenant] = fence, now + _FENCE_SECONDS
        return fence

    def _fence_is_at_most(self, fence: int, job: Job) -> dict[str, Any]:
        return {
            "TableName": self._name,
            "Key": items.fence_key(job.tenant, items.shard_of(job.job_id, items.FENCES)),
            "ConditionExpression": "attribute_not_exists(pk) OR fence <= :fence",
            "ExpressionAttributeValues": {":fence": number(fence)},
        }

    def _raise_fence(self, tenant: str, fence: int) -> None:
        """Rarely called: rows of about the same age have about the same fence. All copies are raised at once."""
        condition = {
            "ConditionExpression": "attribute_not_exists(pk) OR fence < :fence",
            "ExpressionAttributeValues": {":fence": number(fence)},
        }
        keys = [items.fence_key(tenant), *(items.fence_key(tenant, n) for n in range(items.FENCES))]
        puts = [{"Put": {"TableName": self._name, "Item": key | {"fence": number(fence)}} | condition} for key in keys]
        with contextlib.suppress(Answered):  # another process has raised them higher
            self._transact(f"raise fence of {tenant}", _writer(), *puts)

    def wait(self, seconds: float) -> None:
        """Wakes for this process's own changes; those of others show after `seconds`."""
        with self._changed:
            seen = getattr(self._seen, "changes", self._changes)
            self._changed.wait_for(lambda: self._changes != seen, timeout=seconds)
            self._seen.changes = self._changes

    def close(self) -> None:
        self._db.close()

    def _awake(self, before: float, limit: int, *, resting: bool) -> tuple[Job, ...]:
        found = [(self._wake_at(job), job) for job in self._reads.awake(before, limit, resting=resting)]
        due = sorted(((at, job) for at, job in found if at is not None and at <= before), key=lambda pair: pair[0])
        return tuple(job for _, job in due)[:limit]

    def _notify(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def _row(self, job_id: str) -> Item | None:
        answer = self._call(
            f"get {job_id}",
            lambda: self._db.get_item(TableName=self._name, Key=items.job_key(job_id), ConsistentRead=True),
        )
        item: Item | None = answer.get("Item")
        return item

    def _wrote(self, job_id: str, writer: str) -> bool:
        item = self._row(job_id)
        return item is not None and items.written_by(item) == writer

    def _item(self, job: Job, writer: str) -> dict[str, Any]:
        return {"TableName": self._name, "Item": items.job_item(job, writer, self._wake_at, self._shards)}

    def _transact(self, what: str, token: str, *writes: dict[str, Any]) -> None:
        """All or nothing; raises Answered if a condition failed or an earlier try of the same call succeeded.

        The token makes repeated calls one transaction; a server that forgot the answer says the token is in use.
        """
        self._call(
            what,
            lambda: self._db.transact_write_items(TransactItems=list(writes), ClientRequestToken=token),
            expect=(_NO, _DONE_BEFORE),
        )


def _writer() -> str:
    return uuid.uuid4().hex


def _still(old: Job) -> dict[str, Any]:
    """Condition: the row is as the caller last read it; the state too, since slots are counted by it."""
    condition, values = "rev = :rev AND #state = :state", {":rev": number(old.rev), ":state": text(old.state)}
    if (owner := lease_owner(old)) is not None:
        condition += " AND (attribute_not_exists(lease_owner) OR lease_owner = :owner)"
        values[":owner"] = text(owner)
    return {
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {"#state": "state"},
        "ExpressionAttributeValues": values,
    }


def _delta(old: Job | None, new: Job | None) -> int:
    """What a write changes in the number of running jobs."""
    return int(new is not None and new.state is State.RUNNING) - int(old is not None and old.state is State.RUNNING)
