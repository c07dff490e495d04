"""Reads of the DynamoDB table: index entries merged over their shards, then checked against the base items."""

import heapq
import itertools
import math
import operator
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from core.errors import RecordNewer, RowUnreadable
from core.jobs import ENDED, Job, State
from core.ports import JobQuery, NewerRow, Page, Pause, Tally
from infra.aws.calls import Caller
from infra.aws.dynamodb_items import (
    BY_STATE,
    BY_TENANT,
    BY_TIME,
    BY_WAKE,
    NOT_CLEAN,
    Item,
    created_at,
    job_key,
    job_of,
    line_partition,
    newer_row,
    number,
    partition_of,
    state_values,
    text,
    wake_partition,
)

_BATCH = 100
_MORE_AT_ONCE, _MOST_AT_ONCE = 4, 1000  # of a partition that was asked before: so many times as many entries
_MOST_SCANNED = 2000  # index entries that one page scans at most where no index has the answer
_MOST_COUNTED = 2000  # of jobs that have not ended, and of all
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
        if query.outcome is not None:
            query = replace(query, states=frozenset({State.SUCCEEDED}) & (query.states or _STATES))
        if query.states is not None and not query.states:
            return Page(jobs=(), cursor=None)
        index, values = _index_of(query)
        most, at_once = (_MOST_SCANNED, _BATCH) if _is_judged(query, index) else (limit, limit)
        # Most jobs succeed: of the others there may be none among very many, and what does not fit is not sent.
        rare = query.states is not None and index != BY_STATE and State.SUCCEEDED not in query.states
        entries = self._newest(index, values, query, cursor, most if rare else at_once + 1)  # one more: is that all?
        newer: list[NewerRow] = []
        jobs: list[Job] = []
        while most > 0 and (room := limit - len(jobs) - len(newer)):
            batch = list(_next_entries(entries, at_once, most))
            position = self._judge(batch, room, query, jobs, newer)
            if position < len(batch):
                return Page(jobs=tuple(jobs), cursor=batch[position - 1].created, newer=tuple(newer))
            if not batch:
                break
            cursor = batch[-1].created
            most -= sum(entry.scanned for entry in batch)
        left = next(entries, None) is not None
        return Page(jobs=tuple(jobs), cursor=cursor if left else None, newer=tuple(newer))

    def _judge(self, batch: "list[_Entry]", room: int, query: JobQuery, jobs: list[Job], newer: list[NewerRow]) -> int:
        """Add the jobs of index entries that fit, as many as there is room for; how many entries that took."""
        more: list[NewerRow] = []
        ids = [entry.job_id for entry in batch if entry.job_id]
        found: dict[str, Job | NewerRow] = {job.job_id: job for job in self.jobs(ids, more)}
        found |= {row.job_id: row for row in more}
        for position, entry in enumerate(batch):
            if room == 0:
                return position
            one = found.get(entry.job_id)
            if one is None or not query.holds(one):
                continue
            room -= 1
            if isinstance(one, NewerRow):
                newer.append(one)
            else:
                jobs.append(one)
        return len(batch)

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

    def tally(self, tenant: str | None) -> Tally:
        """The newest jobs, and where those are not all, older ones that have not ended: as many at most."""
        query, seen, whole = JobQuery(tenant=tenant), dict[str, tuple[str, State]](), False
        every = self._newest(BY_TIME if tenant is None else BY_TENANT, [tenant or ""], query, None, _MOST_COUNTED)
        live = self._newest(BY_STATE, state_values(_STATES - ENDED), query, None, _MOST_COUNTED)
        for entries in (every, live):
            for entry in _next_entries(entries, _MOST_COUNTED, _MOST_COUNTED):
                if entry.state in _STATES:  # else it was edited by hand; `damaged` reports it
                    seen.setdefault(entry.created, (tenant or entry.tenant, State(entry.state)))
            if entries is every and next(every, None) is None:
                whole = True
                break
        found: dict[str, dict[State, int]] = {}
        for name, state in seen.values():
            counts = found.setdefault(name, {})
            counts[state] = counts.get(state, 0) + 1
        return Tally(found, whole=whole)

    def running(self, tenant: str) -> list[Item]:
        """A tenant's rows that are running according to an index, read again."""
        found: list[str] = []
        for shard in self._shards:
            values = {":pk": text(partition_of(BY_STATE, shard, State.RUNNING)), ":tenant": text(tenant)}
            more = {"IndexName": BY_STATE, "FilterExpression": "tenant = :tenant"}
            found += [entry["job_id"]["S"] for entry in self._query(values, f"{BY_STATE}_pk = :pk", **more)]
        rows = self.items([job_key(job_id) for job_id in dict.fromkeys(found)])
        return [row for row in rows if row["state"]["S"] == State.RUNNING]

    def after(self, partition: str, first: str, *, begins: str = "") -> list[Item]:
        """The items of a partition from a sort key on, or those whose sort key begins so; of any size, in order."""
        values = {":pk": text(partition), ":sk": text(begins or first)}
        condition = "pk = :pk AND " + ("begins_with(sk, :sk)" if begins else "sk >= :sk")
        return list(self._query(values, condition))

    def before(self, partition: str, end: str) -> list[Item]:
        """The items of a partition whose sort key is less."""
        return list(self._query({":pk": text(partition), ":sk": text(end)}, "pk = :pk AND sk < :sk"))

    def doubts(self) -> list[Item]:
        return list(self._query({":pk": text("D")}, "pk = :pk", ConsistentRead=True))

    def count(self, states: Iterable[State], before: float | None = None) -> int:
        """Counts the index entries of these states, of which none is sent: a request for each megabyte."""
        found = 0
        for partition in (
            partition_of(BY_STATE, shard, state) for shard in self._shards for state in state_values(states)
        ):
            ask: dict[str, Any] = {
                "TableName": self._table,
                "IndexName": BY_STATE,
                "Select": "COUNT",
                "KeyConditionExpression": f"{BY_STATE}_pk = :pk AND created < :before",
                "ExpressionAttributeValues": {
                    ":pk": text(partition),
                    ":before": text("~" if before is None else created_at(before)),
                },
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

    def _newest(
        self, index: str, values: list[str], query: JobQuery, cursor: str | None, wanted: int
    ) -> "Iterator[_Entry]":
        """Index entries of all shards that may fit, each job once, newest first; mostly `wanted` are enough."""
        partitions = [partition_of(index, shard, value) for shard in self._shards for value in values]
        share = _share(wanted, len(self._shards))
        shards = [self._entries(partition, index, query, cursor, share) for partition in partitions]
        merged = heapq.merge(*shards, key=operator.attrgetter("created"), reverse=True)
        # A job on its way from one state to the next may be in an index twice.
        for _, group in itertools.groupby(merged, key=operator.attrgetter("created")):
            same = list(group)
            yield replace(
                next((entry for entry in same if entry.job_id), same[0]), scanned=sum(entry.scanned for entry in same)
            )

    def _entries(
        self, partition: str, index: str, query: JobQuery, cursor: str | None, limit: int
    ) -> "Iterator[_Entry]":
        """Index entries of one partition that may fit, newest first, and how far each answer went.

        An entry may be a moment old; the row has the last word.
        """
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
        more |= _entry_filter(index, query, values)
        for answer in self._answers(values, condition, **more):
            for item in answer["Items"]:
                if not upper or item["created"]["S"] < min(upper):
                    columns = {name: str(item.get(name, {}).get("S", "")) for name in ("job_id", "tenant", "state")}
                    yield _Entry(item["created"]["S"], 1, **columns)
            left_out = int(answer["ScannedCount"]) - len(answer["Items"])
            if left_out and "LastEvaluatedKey" in answer:
                yield _Entry(answer["LastEvaluatedKey"]["created"]["S"], left_out)

    def _query(self, values: dict[str, Any], condition: str, **more: Any) -> Iterator[Item]:
        for answer in self._answers(values, condition, **more):
            yield from answer["Items"]

    def _answers(self, values: dict[str, Any], condition: str, **more: Any) -> Iterator[dict[str, Any]]:
        ask = {
            "TableName": self._table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            **more,
        }
        times = _MORE_AT_ONCE if "FilterExpression" not in more else _MORE_AT_ONCE**2
        while True:
            answer: dict[str, Any] = self._call("query", lambda: self._db.query(**ask))
            yield answer
            if "LastEvaluatedKey" not in answer:
                return
            ask["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if "Limit" in ask:
                ask["Limit"] = max(ask["Limit"], min(ask["Limit"] * times, _MOST_AT_ONCE))

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


@dataclass(frozen=True, slots=True)
class _Entry:
    """What an index has of a job; without an id: everything down to here was scanned, and did not fit."""

    created: str
    scanned: int
    job_id: str = ""
    tenant: str = ""
    state: str = ""


def _next_entries(entries: Iterator[_Entry], most: int, scanned: int) -> Iterator[_Entry]:
    """The next entries, until there are so many or so many were scanned for them."""
    while most > 0 and scanned > 0 and (entry := next(entries, None)) is not None:
        yield entry
        most, scanned = most - 1, scanned - entry.scanned


def _entry_filter(index: str, query: JobQuery, values: dict[str, Any]) -> dict[str, Any]:
    """What the service itself leaves out, so that it need not be sent; adds to the values of the query."""
    wanted: dict[str, list[str]] = {}
    if query.tenant is not None and index != BY_TENANT:
        wanted["tenant"] = [query.tenant]
    if query.workflow is not None:
        wanted["workflow"] = [query.workflow]
    if query.states is not None and index != BY_STATE:
        wanted["state"] = sorted(query.states)
    if not wanted:
        return {}
    parts = []
    for name, allowed in wanted.items():
        named = {f":{name}{n}": text(value) for n, value in enumerate(allowed)}
        values |= named
        parts.append(f"#{name} IN ({', '.join(named)})")
    return {
        "FilterExpression": " AND ".join(parts),
        "ExpressionAttributeNames": {f"#{name}": name for name in wanted},
    }


def _share(wanted: int, shards: int) -> int:
    """How many entries to ask each shard for, so that mostly once is enough: ids spread evenly, not exactly."""
    share = wanted / shards
    return math.ceil(share + 3 * math.sqrt(share)) if shards > 1 else wanted


def _index_of(query: JobQuery) -> tuple[str, list[str]]:
    """The index that answers a query with the fewest entries, and the values to ask it for."""
    if query.outcome is not None and (query.tenant is None or query.outcome in NOT_CLEAN):
        return BY_STATE, state_values([State.SUCCEEDED], query.outcome)
    if query.states is not None and (query.tenant is None or not query.states & ENDED):
        return BY_STATE, state_values(query.states)  # few jobs have not ended, of however many a tenant has
    return (BY_TENANT, [query.tenant]) if query.tenant is not None else (BY_TIME, [""])


def _is_judged(query: JobQuery, index: str) -> bool:
    """Whether entries of the index may not fit the query, so that each job has to be read."""
    indexed = JobQuery(states=query.states, outcome=query.outcome) if index == BY_STATE else JobQuery()
    return query != replace(indexed, tenant=query.tenant) or (index == BY_STATE and query.tenant is not None)
