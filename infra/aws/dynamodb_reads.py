"""Reads of the DynamoDB table: index entries merged over their shards, then checked against the base items."""

import heapq
import itertools
import math
import operator
import time
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from core.errors import RecordNewer, RowUnreadable
from core.jobs import ENDED, Job, State
from core.ports import JobQuery, NewerRow, Page, Pause
from infra.aws.calls import Caller
from infra.aws.dynamodb_items import (
    BY_STATE,
    BY_TENANT,
    BY_TIME,
    BY_WAKE,
    Item,
    created_at,
    job_key,
    job_of,
    line_partition,
    newer_row,
    number,
    partition_of,
    text,
    wake_partition,
)

_BATCH = 100
_MORE_AT_ONCE, _MOST_AT_ONCE = 4, 1000  # of a partition that was asked before: so many times as many entries
_MOST_SCANNED = 2000  # index entries that one page scans at most where no index has the answer
_BELIEVED_SECONDS = 60.0
_STATES = frozenset(State)


class Reads:
    def __init__(self, db: Any, call: Caller, table: str, shards: int) -> None:
        self._db = db
        self._call = call
        self._table = table
        self._shards = range(shards)
        self._unreadable: dict[str, float] = {}  # until when to skip them

    def item(self, key: Item) -> Item:
        """An item, read consistently; empty if it does not exist."""
        answer = self._call("get", lambda: self._db.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        found: Item = answer.get("Item", {})
        return found

    def items(self, keys: list[Item]) -> list[Item]:
        """Those of the items that exist, read consistently."""
        return [item for at in range(0, len(keys), _BATCH) for item in self._batch(keys[at : at + _BATCH])]

    def page(self, query: JobQuery, limit: int, cursor: str | None) -> Page:
        if query.states is not None and not query.states:
            return Page(jobs=(), cursor=None)
        index, values = BY_TIME, [""]
        if query.states is not None and (query.tenant is None or not query.states & ENDED):
            # Few jobs have not ended, of however many a tenant has.
            index, values = BY_STATE, sorted(query.states)
        elif query.tenant is not None:
            index, values = BY_TENANT, [query.tenant]
        partitions = [partition_of(index, shard, value) for shard in self._shards for value in values]
        judged = query != JobQuery(states=query.states if index == BY_STATE else None, tenant=query.tenant)
        judged = judged or (index == BY_STATE and query.tenant is not None)
        most, at_once = (_MOST_SCANNED, _BATCH) if judged else (limit, limit)
        share = _share(at_once + 1, len(self._shards))
        shards = [self._entries(partition, index, query, cursor, share) for partition in partitions]
        # A job on its way from one state to the next may be in an index twice.
        merged = heapq.merge(*shards, key=operator.itemgetter(0), reverse=True)
        once = (next(group) for _, group in itertools.groupby(merged, key=operator.itemgetter(0)))
        taken: list[tuple[str, Item]] = []
        newer: list[NewerRow] = []
        jobs: list[Job] = []
        looked = 0
        while looked < most and (room := limit - len(jobs) - len(newer)):
            taken += itertools.islice(once, looked + at_once + 1 - len(taken))  # one more: is that all?
            if looked == len(taken):
                break
            batch = taken[looked : looked + at_once]
            looked = self._judge(batch, looked, room, query, jobs, newer)
        return Page(
            jobs=tuple(jobs), cursor=taken[looked - 1][0] if 0 < looked < len(taken) else None, newer=tuple(newer)
        )

    def _judge(  # noqa: PLR0917 - where a page goes on, and what it has so far
        self,
        batch: list[tuple[str, Item]],
        looked: int,
        room: int,
        query: JobQuery,
        jobs: list[Job],
        newer: list[NewerRow],
    ) -> int:
        """Add the jobs of index entries that fit, as many as there is room for; where the next page begins."""
        likely = [entry["job_id"]["S"] for _, entry in batch if _may_hold(entry, query)]
        more: list[NewerRow] = []
        found: dict[str, Job | NewerRow] = {job.job_id: job for job in self.jobs(likely, more)}
        found |= {row.job_id: row for row in more}
        for _, entry in batch:
            if room == 0:
                break
            looked += 1
            one = found.get(entry["job_id"]["S"])
            if one is None or not query.holds(one):
                continue
            room -= 1
            if isinstance(one, NewerRow):
                newer.append(one)
            else:
                jobs.append(one)
        return looked

    def line(self, line: str, *, whole: bool) -> tuple[Job, ...]:
        found = self._query({":pk": text(line_partition(line))}, "pk = :pk", ConsistentRead=True)
        newer: list[NewerRow] = []
        # A row that was deleted by hand and created again is in its line twice.
        jobs = tuple(self.jobs(list(dict.fromkeys(item["job_id"]["S"] for item in found)), newer))
        if whole and newer:
            raise newer[0].why
        return jobs

    def awake(self, before: float, limit: int, *, resting: bool) -> list[Job]:
        """Jobs that need attention according to an index; callers check the items."""
        now, found = time.monotonic(), list[Job]()
        shards = [self._due(shard, before, limit, resting=resting) for shard in self._shards]
        # Unreadable rows stay first forever: read past them, and rarely read them again.
        fresh = (job_id for _, job_id in heapq.merge(*shards) if self._unreadable.get(job_id, 0.0) <= now)
        while len(found) < limit and (batch := list(itertools.islice(fresh, limit - len(found)))):
            found += self.jobs(batch)
        return found

    def _due(self, shard: int, before: float, limit: int, *, resting: bool) -> Iterator[tuple[float, str]]:
        """Index entries of one shard as (wake_at, job_id), longest overdue first."""
        values = {":pk": text(wake_partition(shard, resting=resting)), ":before": number(before)}
        condition = f"{BY_WAKE}_pk = :pk AND wake_at <= :before"
        for item in self._query(values, condition, IndexName=BY_WAKE, Limit=limit):
            yield float(item["wake_at"]["N"]), item["job_id"]["S"]

    def damaged(self, limit: int) -> dict[str, RowUnreadable]:
        found: dict[str, RowUnreadable] = {}
        for shard in self._shards:
            values = {":pk": text(partition_of(BY_TIME, shard))}
            entries = (i["job_id"]["S"] for i in self._query(values, f"{BY_TIME}_pk = :pk", IndexName=BY_TIME))
            while batch := list(itertools.islice(entries, _BATCH)):
                for item in self._batch([job_key(job_id) for job_id in dict.fromkeys(batch)]):
                    if (why := _damage(item)) is not None:
                        found[item["pk"]["S"].removeprefix("J#")] = why
                if len(found) >= limit:
                    return found
        return found

    def states(self, tenant: str | None) -> Iterator[tuple[str, State]]:
        """Tenant and state of every job (of one tenant)."""
        index = BY_TIME if tenant is None else BY_TENANT
        for shard in self._shards:
            values = {":pk": text(partition_of(index, shard, tenant or ""))}
            for item in self._query(values, f"{index}_pk = :pk", IndexName=index):
                if item["state"]["S"] in _STATES:  # else it was edited by hand; `damaged` reports it
                    yield tenant or item["tenant"]["S"], State(item["state"]["S"])

    def running(self, tenant: str) -> list[Item]:
        """A tenant's rows that are running according to an index, read again."""
        found: list[str] = []
        for shard in self._shards:
            values = {":pk": text(partition_of(BY_STATE, shard, State.RUNNING)), ":tenant": text(tenant)}
            more = {"IndexName": BY_STATE, "FilterExpression": "tenant = :tenant"}
            found += [entry["job_id"]["S"] for entry in self._query(values, f"{BY_STATE}_pk = :pk", **more)]
        rows = self.items([job_key(job_id) for job_id in dict.fromkeys(found)])
        return [row for row in rows if row["state"]["S"] == State.RUNNING]

    def doubts(self) -> list[Item]:
        return list(self._query({":pk": text("D")}, "pk = :pk", ConsistentRead=True))

    def count(self, states: frozenset[State], before: float) -> int:
        """Counts the index entries of these states."""
        found = 0
        for partition in (partition_of(BY_STATE, shard, state) for shard in self._shards for state in sorted(states)):
            ask: dict[str, Any] = {
                "TableName": self._table,
                "IndexName": BY_STATE,
                "Select": "COUNT",
                "KeyConditionExpression": f"{BY_STATE}_pk = :pk AND created < :before",
                "ExpressionAttributeValues": {":pk": text(partition), ":before": text(created_at(before))},
            }
            while True:
                answer = self._call("count", lambda: self._db.query(**ask))  # noqa: B023 - called at once
                found += int(answer["Count"])
                if "LastEvaluatedKey" not in answer:
                    break
                ask["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return found

    def pauses(self) -> tuple[Pause, ...]:
        found = []
        for item in self._query({":pk": text("P")}, "pk = :pk", ConsistentRead=True):
            tenant, _, workflow = item["sk"]["S"].partition("#")
            since, by = float(item["since"]["N"]), item["by"]["S"]
            found.append(Pause(tenant=tenant or None, workflow=workflow or None, since=since, by=by))
        return tuple(sorted(found, key=lambda pause: pause.since))

    def jobs(self, job_ids: list[str], newer: list[NewerRow] | None = None) -> list[Job]:
        """The current jobs, in the order of their ids; those that are gone or unreadable are left out.

        `newer` receives the rows that a newer program wrote.
        """
        found: dict[str, Job] = {}
        for at in range(0, len(job_ids), _BATCH):
            for item in self._batch([job_key(job_id) for job_id in dict.fromkeys(job_ids[at : at + _BATCH])]):
                name = item["pk"]["S"].removeprefix("J#")
                try:
                    found[name] = job_of(item)
                    self._unreadable.pop(name, None)
                except RowUnreadable as error:
                    self._unreadable[name] = time.monotonic() + _BELIEVED_SECONDS
                    if newer is not None and isinstance(error, RecordNewer):
                        newer.append(newer_row(item, error))
        return [found[job_id] for job_id in job_ids if job_id in found]

    def _entries(
        self, partition: str, index: str, query: JobQuery, cursor: str | None, limit: int
    ) -> Iterator[tuple[str, Item]]:
        """Index entries of one partition, newest first, each after its time and id."""
        values: dict[str, Any] = {":pk": text(partition)}
        condition = f"{index}_pk = :pk"
        upper = [cursor] if cursor is not None else []
        upper += [created_at(query.created_to)] if query.created_to is not None else []
        if query.created_from is not None:
            # A key takes one range: the upper end is left to the condition below where both are given.
            values |= {":from": text(created_at(query.created_from)), ":to": text(min(upper, default="~"))}
            condition += " AND created BETWEEN :from AND :to"
        elif upper:
            values[":to"] = text(min(upper))
            condition += " AND created < :to"
        more: dict[str, Any] = {"ScanIndexForward": False, "IndexName": index, "Limit": limit}
        for item in self._query(values, condition, **more):
            if not upper or item["created"]["S"] < min(upper):
                yield item["created"]["S"], item

    def _query(self, values: dict[str, Any], condition: str, **more: Any) -> Iterator[Item]:
        ask = {
            "TableName": self._table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            **more,
        }
        while True:
            answer = self._call("query", lambda: self._db.query(**ask))
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            ask["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if "Limit" in ask:
                ask["Limit"] = max(ask["Limit"], min(ask["Limit"] * _MORE_AT_ONCE, _MOST_AT_ONCE))

    def _batch(self, keys: list[Item]) -> list[Item]:
        """Up to a hundred rows; those that a busy table leaves unread are read again after a pause."""
        found: list[Item] = []

        def act() -> None:
            nonlocal keys
            ask = {self._table: {"Keys": keys, "ConsistentRead": True}}
            answer = self._db.batch_get_item(RequestItems=ask)
            found.extend(answer["Responses"].get(self._table, ()))
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if keys:
                left = {"Code": "ThrottlingException", "Message": f"{len(keys)} rows left unread"}
                raise ClientError({"Error": left}, "BatchGetItem")

        self._call("batch get", act)
        return found


def _damage(item: Item) -> RowUnreadable | None:
    try:
        job = job_of(item)
    except RowUnreadable as error:
        return error
    if item["state"]["S"] != job.state:
        return RowUnreadable(f"row {job.job_id} says {item['state']['S']} in its attribute, {job.state} in its record")
    return None


def _may_hold(entry: Item, query: JobQuery) -> bool:
    """Whether a job may fit by what its index entry says, which may be a moment old; the row has the last word."""
    return (
        (query.tenant is None or entry.get("tenant", {}).get("S", query.tenant) == query.tenant)
        and (query.workflow is None or entry["workflow"]["S"] == query.workflow)
        and (query.states is None or entry["state"]["S"] in query.states)
    )


def _share(wanted: int, shards: int) -> int:
    """How many entries to ask each shard for, so that mostly once is enough: ids spread evenly, not exactly."""
    share = wanted / shards
    return math.ceil(share + 3 * math.sqrt(share)) if shards > 1 else wanted
