"""Counters of ends (core/ends.py) in the DynamoDB table, and what people took care of.

Theory of operation. A job's last write is a transaction that adds to two items: the counter of all jobs, one of several
at random since every job adds to it, and the sender's of that day. A repeated call is one transaction, by its token, so
nothing is counted twice. Whatever is too old is deleted by whoever recounts, once an hour in each process.
"""

import contextlib
import random
import time
from collections.abc import Iterable
from typing import Any

from core.ends import COUNTER_SECONDS, DAY, NUMBERS, SENDER_SECONDS, EndCounts, end_counts
from core.jobs import Job
from core.ports import Resolution
from infra.aws import dynamodb_items as items
from infra.aws.calls import Answered, Caller
from infra.aws.dynamodb_items import Item, number, text
from infra.aws.dynamodb_reads import Reads

_NO = "ConditionalCheckFailedException"
_BEYOND_DAYS = 7  # that are deleted late, where nobody recounted for a while
_TIDY_SECONDS = 3600.0


class EndCounters:
    def __init__(self, db: Any, call: Caller, reads: Reads, table: str) -> None:
        self._db = db
        self._call = call
        self._reads = reads
        self._name = table
        self._tidied = 0.0

    def counted(self, old: Job, new: Job) -> list[dict[str, Any]]:
        """The updates of the counters that a write of a job adds to."""
        counts = end_counts(old, new)
        if counts is None:
            return []
        of_all, of_sender = counts
        slot = random.randrange(items.END_SLOTS)  # noqa: S311 - spreads writes
        keys = items.ends_key(slot, of_all.at), items.sender_ends_key(of_sender)
        return [self._added(key, one) for key, one in zip(keys, counts, strict=True)]

    def _added(self, key: Item, counts: EndCounts) -> dict[str, Any]:
        values = {f":{name}": number(n) for name, n in zip(NUMBERS, counts.numbers, strict=True) if n}
        added = ", ".join(f"#{name[1:]} {name}" for name in values)
        # The last one is of whoever wrote last: ends of one sender that meet are of the same moment.
        update = {
            "TableName": self._name,
            "Key": key,
            "UpdateExpression": f"SET last_at = :at, last_job = :job ADD {added}",
            "ExpressionAttributeNames": {f"#{name[1:]}": name[1:] for name in values},
            "ExpressionAttributeValues": values | {":at": number(counts.last_at), ":job": text(counts.last_job)},
        }
        return {"Update": update}

    def ends(self, since: float) -> tuple[EndCounts, ...]:
        found: dict[float, EndCounts] = {}
        for slot in range(items.END_SLOTS):
            for item in self._reads.after(items.ends_partition(slot), items.moment(since)):
                one = _counts(item, at=float(item["sk"]["S"]))
                found[one.at] = found[one.at] + one if one.at in found else one
        return tuple(found[at] for at in sorted(found))

    def sender_ends(self, since: float, now: float, tenant: str | None) -> tuple[EndCounts, ...]:
        first, last = int(max(since, now - SENDER_SECONDS) // DAY), int(now // DAY) + 1
        found = []
        for day in range(first, last + 1):
            start = "" if tenant is None else f"{tenant}#"
            for item in self._reads.after(items.sender_ends_partition(day), start or " ", begins=start):
                owner, _, workflow = item["sk"]["S"].partition("#")
                found.append(_counts(item, at=day * DAY, tenant=owner, workflow=workflow))
        return tuple(one for one in found if one.at >= since)

    def resolve(self, one: Resolution) -> bool:
        put = {
            "TableName": self._name,
            "Item": items.resolution_key(one.what)
            | {"until": number(one.until), "tenant": text(one.tenant), "at": number(one.at)}
            | {"by": text(one.by), "note": text(one.note)},
            "ConditionExpression": "attribute_not_exists(pk) OR #until < :until",
            "ExpressionAttributeNames": {"#until": "until"},
            "ExpressionAttributeValues": {":until": number(one.until)},
        }
        try:
            self._call("resolve", lambda: self._db.put_item(**put), expect=(_NO,))
        except Answered:  # perhaps by an earlier try of this call
            return one in self.resolutions()
        return True

    def resolutions(self) -> tuple[Resolution, ...]:
        found = [
            Resolution(
                what=item["sk"]["S"],
                until=float(item["until"]["N"]),
                tenant=item["tenant"]["S"],
                at=float(item["at"]["N"]),
                by=item["by"]["S"],
                note=item["note"]["S"],
            )
            for item in self._reads.after(items.RESOLUTIONS, " ")
        ]
        return tuple(sorted(found, key=lambda one: (-one.at, one.what)))

    def tidy(self, now: float) -> None:
        """Delete what is too old."""
        if time.monotonic() - self._tidied < _TIDY_SECONDS and self._tidied:
            return
        self._tidied = time.monotonic()
        old: list[Item] = []
        for slot in range(items.END_SLOTS):
            old += self._reads.before(items.ends_partition(slot), items.moment(now - COUNTER_SECONDS))
        oldest = int((now - SENDER_SECONDS) // DAY)
        for day in range(oldest - _BEYOND_DAYS, oldest):
            old += self._reads.after(items.sender_ends_partition(day), " ")
        old += [
            item for item in self._reads.after(items.RESOLUTIONS, " ") if float(item["at"]["N"]) < now - SENDER_SECONDS
        ]
        self._delete({"pk": item["pk"], "sk": item["sk"]} for item in old)

    def erase(self, tenant: str, now: float) -> set[str]:
        """Delete the counters and resolutions of a tenant; returns the workflows that were counted.

        Counters of all keep their numbers, without the name of a job that was the tenant's.
        """
        days, mine = int(now // DAY) + 1, list[Item]()
        for day in range(int((now - SENDER_SECONDS) // DAY) - _BEYOND_DAYS, days + 1):
            mine += self._reads.after(items.sender_ends_partition(day), " ", begins=f"{tenant}#")
        workflows = {item["sk"]["S"].partition("#")[2] for item in mine}
        mine += [one for one in self._reads.after(items.RESOLUTIONS, " ") if one["tenant"]["S"] == tenant]
        self._delete({"pk": item["pk"], "sk": item["sk"]} for item in mine)
        starts = tuple(f"{tenant}-{workflow}-" for workflow in workflows)
        for slot in range(items.END_SLOTS):
            for item in self._reads.after(items.ends_partition(slot), items.moment(0.0)):
                if item["last_job"]["S"].startswith(starts):
                    self._forget_job(item)
        return workflows

    def _forget_job(self, item: Item) -> None:
        change = {
            "TableName": self._name,
            "Key": {"pk": item["pk"], "sk": item["sk"]},
            "UpdateExpression": "SET last_job = :none",
            "ConditionExpression": "last_job = :job",  # else another job ended since
            "ExpressionAttributeValues": {":none": text(""), ":job": item["last_job"]},
        }
        with contextlib.suppress(Answered):
            self._call("forget a job", lambda: self._db.update_item(**change), expect=(_NO,))

    def _delete(self, keys: Iterable[Item]) -> None:
        for key in keys:
            self._call("delete an old counter", lambda: self._db.delete_item(TableName=self._name, Key=key))  # noqa: B023 - called at once


def _counts(item: Item, *, at: float, tenant: str = "", workflow: str = "") -> EndCounts:
    return EndCounts(
        at=at,
        numbers=tuple(int(item[name]["N"]) if name in item else 0 for name in NUMBERS),
        tenant=tenant,
        workflow=workflow,
        last_at=float(item["last_at"]["N"]),
        last_job=item["last_job"]["S"],
    )
