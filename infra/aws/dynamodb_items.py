"""The layout of the one DynamoDB table: keys, attributes, indexes.

| item            | pk                       | sk                | holds                                         |
| --------------- | ------------------------ | ----------------- | --------------------------------------------- |
| job             | J#<job_id>               | -                 | the record, its version, rev, what the        |
|                 |                          |                   |  indexes need and what people look for        |
| line            | L#<hash of the line>     | <created>#<id>    | which jobs a line has, readable consistently  |
| slots           | C#<tenant>[#<workflow>]  | -                 | how many jobs run; whether it is paused;      |
|                 |  and the same with ##<n> |                   |  several where one would be written too often |
| doubt           | D                        | <tenant>#<workfl> | a start was refused: slots to be recounted    |
| pause           | P                        | <tenant>#<workfl> | who paused what and when                      |
| everything      | PA#<shard>               | -                 | there while everything is paused              |
| lease           | X#<name>                 | -                 | owner, expiry                                 |
| generation      | G#<name>                 | -                 | how often something was changed               |
| fence           | F#<tenant>               | -                 | the greatest fence of removed jobs; copies,   |
|                 |  and the same with ##<n> |                   |  on which transactions do not meet            |
| ends            | E#<slot>                 | <time>            | what ended in five minutes (core/ends.py)     |
| ends of senders | S#<day>                  | <tenant>#<workfl> | the same of a day, by sender                  |
| resolution      | R                        | <what>            | who took care of what, and up to when         |

Index partitions carry a shard number taken from the job id, so that no partition takes every write.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from core.chores import resting
from core.ends import DAY, EndCounts
from core.errors import RecordNewer, RowUnreadable
from core.jobs import Job, Outcome, State, dump_job, load_job, record_version, stamp_text, version_of
from core.ports import NewerRow

Item = dict[str, dict[str, Any]]

BY_TIME, BY_TENANT, BY_STATE, BY_WAKE = "by_time", "by_tenant", "by_state", "by_wake"
SHARDS = 8
COUNTERS = 16
END_SLOTS = 4
RESOLUTIONS = "R"
FENCES = 64  # copies of a tenant's fence
NOT_CLEAN = (Outcome.ERRORS, Outcome.WARNINGS)
_PLAIN_CHARACTERS = 200
_COMPRESSED_FROM = 512  # a write costs by the kilobyte; JSON of refs shrinks to about half


def text(value: str) -> dict[str, str]:
    return {"S": value}


def number(value: float) -> dict[str, str]:
    return {"N": repr(value)}


def job_key(job_id: str) -> Item:
    return {"pk": text(f"J#{job_id}"), "sk": text("-")}


def line_key(job: Job) -> Item:
    return {"pk": text(line_partition(job.line)), "sk": text(created(job))}


def line_partition(line: str) -> str:
    return f"L#{hashlib.sha256(line.encode()).hexdigest()}"  # a line may be longer than a key


def slots_key(tenant: str, workflow: str | None = None, counter: int = 0) -> Item:
    """A counter of running jobs: the first, for small caps, or one of `COUNTERS` that spread the writes."""
    whole = f"C#{tenant}" if workflow is None else f"C#{tenant}#{workflow}"
    return {"pk": text(f"{whole}##{counter}" if counter else whole), "sk": text("-")}


def slots_keys(tenant: str, workflow: str | None = None) -> list[Item]:
    return [slots_key(tenant, workflow, counter) for counter in range(COUNTERS + 1)]


def pause_key(tenant: str | None, workflow: str | None) -> Item:
    return {"pk": text("P"), "sk": text(f"{tenant or ''}#{workflow or ''}")}


def doubt_key(tenant: str, workflow: str | None) -> Item:
    return {"pk": text("D"), "sk": text(f"{tenant}#{workflow or ''}")}


def all_paused_key(shard: int) -> Item:
    return {"pk": text(f"PA#{shard}"), "sk": text("-")}


def lease_key(name: str) -> Item:
    return {"pk": text(f"X#{name}"), "sk": text("-")}


def generation_key(name: str) -> Item:
    return {"pk": text(f"G#{name}"), "sk": text("-")}


def fence_key(tenant: str, copy: int | None = None) -> Item:
    return {"pk": text(f"F#{tenant}" if copy is None else f"F#{tenant}##{copy}"), "sk": text("-")}


def ends_partition(slot: int) -> str:
    return f"E#{slot}"


def ends_key(slot: int, at: float) -> Item:
    return {"pk": text(ends_partition(slot)), "sk": text(moment(at))}


def moment(at: float) -> str:
    """Sorts as the time does."""
    return f"{max(0.0, at):012.0f}"


def sender_ends_partition(day: int) -> str:
    return f"S#{day}"


def sender_ends_key(counts: EndCounts) -> Item:
    day = sender_ends_partition(int(counts.at // DAY))
    return {"pk": text(day), "sk": text(f"{counts.tenant}#{counts.workflow}")}


def resolution_key(what: str) -> Item:
    return {"pk": text(RESOLUTIONS), "sk": text(what)}


def created(job: Job) -> str:
    """Sorts as (created_at, job_id) does."""
    return f"{created_at(job.created_at)}#{job.job_id}"


def created_at(at: float) -> str:
    return f"{at:019.7f}"


def shard_of(job_id: str, shards: int) -> int:
    return zlib.crc32(job_id.encode()) % shards


def partition_of(index: str, shard: int, value: str = "") -> str:
    return f"{index}#{shard}#{value}"


def _state_and_outcome(job: Job) -> str:
    """What a job is found by in the index of states: results that are not clean have partitions of their own."""
    outcome = job.outcome if job.state is State.SUCCEEDED else None
    return str(job.state) if outcome in (None, Outcome.CLEAN) else outcome_value(outcome)


def outcome_value(outcome: Outcome) -> str:
    return f"{State.SUCCEEDED}+{outcome}"


def state_values(states: Iterable[State], outcome: Outcome | None = None) -> list[str]:
    """The values of the index of states under which jobs of these states are, or those of an outcome."""
    if outcome in NOT_CLEAN:
        return [outcome_value(outcome)]
    more = [outcome_value(one) for one in NOT_CLEAN] if outcome is None and State.SUCCEEDED in states else []
    return sorted([*map(str, states), *more])


def wake_partition(shard: int, *, resting: bool) -> str:
    """Jobs that only wait to expire have their own partition, so that they never hide urgent ones."""
    return partition_of(BY_WAKE, shard, "resting" if resting else "")


def job_item(job: Job, writer: str, wake_at: Callable[[Job], float | None], shards: int) -> Item:
    """The row of a job, laid out as in docs/reference/rows.md.

    `writer` is unique to this write, which distinguishes a lost answer from a lost race.
    """
    shard = shard_of(job.job_id, shards)
    wake = wake_at(job)
    doc = dump_job(job).encode()
    item: Item = {
        **job_key(job.job_id),
        "doc": {"B": zlib.compress(doc)} if len(doc) > _COMPRESSED_FROM else {"B": doc},
        "v": number(record_version(job)),
        "rev": number(job.rev),
        "writer": text(writer),
        "job_id": text(job.job_id),
        "tenant": text(job.tenant),
        "workflow": text(job.workflow),
        "state": text(job.state),
        "created": text(created(job)),
        f"{BY_TIME}_pk": text(partition_of(BY_TIME, shard)),
        f"{BY_TENANT}_pk": text(partition_of(BY_TENANT, shard, job.tenant)),
        f"{BY_STATE}_pk": text(partition_of(BY_STATE, shard, _state_and_outcome(job))),
    }
    item |= _plain(job)
    if wake is not None:
        item |= {
            f"{BY_WAKE}_pk": text(wake_partition(shard, resting=resting(job))),
            "wake_at": number(wake),
        }
    return item


def _plain(job: Job) -> Item:
    """Attributes for people who open the item in a console (docs/reference/rows.md); programs read `lease_owner`."""
    primaries = [i.ref.key for i in job.inputs if i.role == "primary"]
    item: Item = {"attempts": number(job.attempts_total), "inputs": number(len(primaries))}
    if primaries:
        item["input_key"] = text(primaries[0])
    if job.state is State.SUCCEEDED and job.outcome is not None:
        item["outcome"] = text(job.outcome)
    if job.reason:
        item["reason"] = text(job.reason[:_PLAIN_CHARACTERS])
    if job.error is not None:
        item["error_verdict"] = text(job.error.verdict)
        item["error_fault"] = text(job.error.fault)
        item["error_message"] = text(job.error.message[:_PLAIN_CHARACTERS])
    if job.lease is not None:
        item["lease_owner"] = text(job.lease.owner)
        item["lease_expires"] = text(stamp_text(job.lease.expires) or "")
    return item


def job_of(item: Item) -> Job:
    """The job of an item; raises RowUnreadable if it holds none."""
    name = item["pk"]["S"].removeprefix("J#")
    try:
        if "v" in item:
            version_of(int(item["v"]["N"]), name)  # before the record, whose format may be newer
        doc: bytes = item["doc"]["B"]
        text_of = doc if doc.startswith(b"{") else zlib.decompress(doc)
    except (KeyError, TypeError, AttributeError, ValueError, zlib.error) as error:
        raise RowUnreadable(
            f"row {name} cannot be read ({type(error).__name__}); repair or delete it in the table"
        ) from None
    return load_job(text_of, name)


def newer_row(item: Item, why: RecordNewer) -> NewerRow:
    """What a job's item has beside its record in every version."""
    names = {name: str(item.get(name, {}).get("S", "")) for name in ("job_id", "tenant", "workflow", "state")}
    created_at = item.get("created", {}).get("S", "").partition("#")[0]
    try:
        return NewerRow(**names, created_at=float(created_at), why=why)
    except ValueError:
        return NewerRow(**names, created_at=0.0, why=why)


def written_by(item: Item) -> str | None:
    """Which write an item comes from; None if it was made by hand."""
    writer: str | None = item.get("writer", {}).get("S")
    return writer


def table_definition(name: str) -> dict[str, Any]:
    """The arguments of CreateTable, equal to infra/deploy's template."""
    names = ("pk", "sk", "created", *(f"{index}_pk" for index in (BY_TIME, BY_TENANT, BY_STATE, BY_WAKE)))
    shown = {
        BY_TIME: ["job_id", "tenant", "workflow", "state"],
        BY_TENANT: ["job_id", "workflow", "state"],
        BY_STATE: ["job_id", "tenant", "workflow", "state"],
    }
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            *({"AttributeName": n, "AttributeType": "S"} for n in names),
            {"AttributeName": "wake_at", "AttributeType": "N"},
        ],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "GlobalSecondaryIndexes": [
            *(
                {
                    "IndexName": index,
                    "KeySchema": _index_keys(index, "created"),
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": attributes},
                }
                for index, attributes in shown.items()
            ),
            {
                "IndexName": BY_WAKE,
                "KeySchema": _index_keys(BY_WAKE, "wake_at"),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["job_id"]},
            },
        ],
    }


def _index_keys(index: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": f"{index}_pk", "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
