"""Counts what real boto3 clients ask S3, SQS and DynamoDB for, and what AWS would charge for it.

DynamoDB's units follow its documented rules, since emulators answer ConsumedCapacity by guesses: 1 KB to a write unit
and 4 KB to a read unit, both rounded up per item; a transaction writes each of its items twice; an index entry costs
a unit where it is added, removed or shows a changed attribute, and two where it moves; a failed condition costs as
much as a write of the item that is there.
"""

import math
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from infra.aws.dynamodb_items import BY_STATE, BY_TENANT, BY_TIME, BY_WAKE, table_definition

_WRITTEN, _READ = 1024, 4096
_ENTRY = 200  # bytes of an index entry that was not sent
_INDEXES = {
    index["IndexName"]: (
        tuple(key["AttributeName"] for key in index["KeySchema"]),
        tuple(index["Projection"]["NonKeyAttributes"]),
    )
    for index in table_definition("any")["GlobalSecondaryIndexes"]
}
assert set(_INDEXES) == {BY_TIME, BY_TENANT, BY_STATE, BY_WAKE}


def item_bytes(item: dict[str, dict[str, Any]]) -> int:
    """The size of an item as DynamoDB counts it: names and values."""
    size = 0
    for name, typed in item.items():
        ((kind, value),) = typed.items()
        size += len(name.encode())
        if kind == "N":
            size += len(value.lstrip("-0.").replace(".", "")) // 2 + 2
        elif kind in {"S", "B"}:
            size += len(value.encode() if isinstance(value, str) else value)
        else:
            size += 1
    return size


def units(size: int, per: int) -> int:
    return max(1, math.ceil(size / per))


@dataclass
class Meter:
    """Attach it to every client of a run before anything is written."""

    requests: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)  # write units by table or index
    reads: float = 0.0  # read units
    seconds: Counter[str] = field(default_factory=Counter)  # time spent waiting for answers, by service
    largest: int = 0  # bytes of the largest job row
    _rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attach(self, client: Any) -> None:
        events, service = client.meta.events, client.meta.service_model.service_name
        events.register(f"before-parameter-build.{service}", self._before)
        events.register(f"after-call.{service}", self._after)

    def reset(self) -> None:
        """Start counting anew; what the table holds stays known."""
        with self._lock:
            self.requests, self.writes, self.seconds, self.reads = Counter(), Counter(), Counter(), 0.0

    def _before(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"], context["began"] = params, time.perf_counter()

    def _after(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        service, name = model.service_model.service_name, model.name
        took = time.perf_counter() - context["began"]
        ok = parsed.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) < 300
        with self._lock:
            self.requests[f"{_SHOWN[service]} {name}"] += 1
            self.seconds[_SHOWN[service]] += took
            if service == "dynamodb":
                self._units(name, context["asked"], parsed, ok=ok)

    def _units(self, name: str, asked: dict[str, Any], answer: dict[str, Any], *, ok: bool) -> None:
        if name == "GetItem":
            self.reads += units(item_bytes(answer.get("Item", {})), _READ) * (1 if asked.get("ConsistentRead") else 0.5)
        elif name == "BatchGetItem":
            found = [item for items in answer.get("Responses", {}).values() for item in items]
            missing = sum(len(a["Keys"]) for a in asked["RequestItems"].values()) - len(found)
            self.reads += sum(units(item_bytes(item), _READ) for item in found) + missing
        elif name == "Query":
            size, shown = sum(item_bytes(item) for item in answer.get("Items", ())), answer.get("Count", 0)
            # What a filter left out, or a count did not send, was read as well.
            unseen = answer.get("ScannedCount", shown) - (shown if "Items" in answer else 0)
            size += unseen * (size // shown if size else _ENTRY)
            self.reads += units(size, _READ) * (1 if asked.get("ConsistentRead") else 0.5)
        elif name == "TransactWriteItems":
            for write in asked["TransactItems"]:
                ((kind, what),) = write.items()
                self._write(kind, what, times=2, ok=ok)
        elif name in {"PutItem", "UpdateItem", "DeleteItem"}:
            self._write(name.removesuffix("Item"), asked, times=1, ok=ok)

    def _write(self, kind: str, what: dict[str, Any], *, times: int, ok: bool) -> None:
        new = what.get("Item", {})
        key = new or what["Key"]
        at = (key["pk"]["S"], key["sk"]["S"])
        old = self._rows.get(at, {})
        size = max(item_bytes(old), item_bytes(new)) if ok else item_bytes(old)
        self.writes["table"] += times * units(size, _WRITTEN)
        if at[0].startswith("J#"):
            self.largest = max(self.largest, item_bytes(new))
        if not ok or kind in {"Update", "ConditionCheck"}:
            return  # counters and marks: small, and in no index
        self._rows[at] = new
        for index, (keys, shown) in _INDEXES.items():
            self.writes[index] += _index_units(_entry(old, keys, shown), _entry(new, keys, shown), keys)

    @property
    def written(self) -> float:
        return float(sum(self.writes.values()))


_SHOWN = {"s3": "S3", "sqs": "SQS", "dynamodb": "DynamoDB"}


def _entry(item: dict[str, Any], keys: tuple[str, ...], shown: tuple[str, ...]) -> dict[str, Any] | None:
    if not all(key in item for key in keys):
        return None
    return {name: item[name] for name in ("pk", "sk", *keys, *shown) if name in item}


def _index_units(old: dict[str, Any] | None, new: dict[str, Any] | None, keys: tuple[str, ...]) -> int:
    if old == new:
        return 0
    if old is None or new is None:
        return units(item_bytes(new or old or {}), _WRITTEN)
    if all(old[key] == new[key] for key in keys):
        return units(max(item_bytes(old), item_bytes(new)), _WRITTEN)
    return units(item_bytes(old), _WRITTEN) + units(item_bytes(new), _WRITTEN)
