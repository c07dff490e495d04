"""In: the body of a change notification, in any envelope. Out: the changes it announces, decoded once at the edge.

The intake reads the bucket's current state, so a change is only a hint which key to scan. That makes duplicates, lost
order and deletes harmless. What has to be right is the exact key, and no body that might be a change may be dropped: an
unknown shape raises UnknownEvent with a reason that people can act on.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import unquote_plus

from core.budget import Budget, within
from core.errors import AdeError, Problem

BUDGET = Budget(bytes=1024 * 1024, values=100_000)
_REASON = 500


class UnknownEvent(AdeError):
    """A body that is not a known change notification."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:_REASON])


class ChangeKind(StrEnum):
    CREATED = "created"  # or changed
    REMOVED = "removed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One object that was created, changed or removed."""

    bucket: str
    key: str
    kind: ChangeKind
    sequencer: str = ""  # orders changes of one key, where the store gives one
    version: str | None = None

    @property
    def order(self) -> str:
        """Comparable within one key: S3's sequencers are hexadecimal, of varying length, in either case."""
        return self.sequencer.upper().ljust(64, "0")


_KINDS = {
    "ObjectCreated": ChangeKind.CREATED,
    "ObjectRemoved": ChangeKind.REMOVED,
    "LifecycleExpiration": ChangeKind.REMOVED,
}
_BRIDGE_KINDS = {"Object Created": ChangeKind.CREATED, "Object Deleted": ChangeKind.REMOVED}
_WEED_KINDS = {
    "create": ChangeKind.CREATED,
    "update": ChangeKind.CREATED,
    "rename": ChangeKind.CREATED,
    "delete": ChangeKind.REMOVED,
}
_WEED_BUCKETS = "/buckets/"
_WEED_OWN = (".uploads", ".system")  # unfinished uploads, its own metadata
_WEED_VERSIONS = re.compile(r"(.+)\.versions(?:/v_[^/]+)?$")
_DEEPEST = 3  # SNS in SQS is one; anything deeper is an attack


def decode(body: str | bytes | Mapping[str, Any]) -> list[Change]:
    """The changes that a body announces, in its order; none for a test event or one that changes no content."""
    return _decode(body, 0)


def newest(changes: Iterable[Change]) -> list[Change]:
    """One change per key: the last by sequencer, and where there is none, by arrival."""
    latest: dict[tuple[str, str], Change] = {}
    for change in changes:
        known = latest.get((change.bucket, change.key))
        if known is None or change.order >= known.order:
            latest[change.bucket, change.key] = change
    return list(latest.values())


def _decode(body: str | bytes | Mapping[str, Any], depth: int) -> list[Change]:
    if depth > _DEEPEST:
        raise UnknownEvent(f"an event wrapped more than {_DEEPEST} times")
    event = body if isinstance(body, Mapping) else _parsed(body)
    try:
        return [_checked(change) for change in _changes(event, depth)]
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RecursionError) as error:
        raise UnknownEvent(
            f"an event of a known kind, but incomplete or malformed: {type(error).__name__} {str(error)[:200]}"
        ) from None


def _checked(change: Change) -> Change:
    """Checks types: JSON may have null or a number where text belongs."""
    parts: dict[str, object] = {name: getattr(change, name) for name in ("bucket", "key", "sequencer", "version")}
    for name in ("bucket", "key"):
        if not isinstance(parts[name], str):
            raise UnknownEvent(f"an event whose {name} is not text")
    sequencer = parts["sequencer"] if isinstance(parts["sequencer"], str) else ""
    version = parts["version"] if isinstance(parts["version"], str) else None
    return replace(change, sequencer=sequencer, version=version)


def _parsed(body: str | bytes) -> Mapping[str, Any]:
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    over = within(raw, BUDGET)
    if isinstance(over, Problem):
        raise UnknownEvent(f"a body that {over.problem}; {over.allowed}")
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        raise UnknownEvent("a body that is not valid JSON, or nested too deep") from None
    if not isinstance(event, dict):
        raise UnknownEvent(f"a JSON {type(event).__name__}; an event is an object")
    return event


def _changes(event: Mapping[str, Any], depth: int) -> list[Change]:
    if event.get("Event") == "s3:TestEvent":
        return []
    if "Records" in event:
        if not isinstance(event["Records"], list):
            raise UnknownEvent("an event whose Records is not a list")
        return [change for record in event["Records"] for change in _record(record, depth)]
    if event.get("source") == "aws.s3" and "detail" in event:
        return _from_bridge(event)
    if event.get("Type") == "Notification" and "Message" in event:
        return _decode(event["Message"], depth + 1)
    if event.get("Type") in {"SubscriptionConfirmation", "UnsubscribeConfirmation"}:
        raise UnknownEvent(f"SNS asks for a {event['Type']} of {event.get('TopicArn')}; confirm it in the console")
    if "event_type" in event and "message" in event and "key" in event:
        return _from_seaweedfs(event)
    raise UnknownEvent(f"an object with the keys {', '.join(sorted(map(str, event))[:12]) or 'none'}")


def _record(record: Mapping[str, Any], depth: int) -> list[Change]:
    source = record.get("eventSource", record.get("EventSource"))
    if source == "aws:sns":
        return _decode(record["Sns"]["Message"], depth + 1)
    if source == "aws:sqs":
        return _decode(record["body"], depth + 1)
    if "s3" not in record:
        raise UnknownEvent(f"a record from {source!r} without an s3 part")
    version = str(record.get("eventVersion", ""))
    if not version.startswith("2."):
        raise UnknownEvent(f"an S3 record of version {version!r}; only 2.x is supported")
    kind = _KINDS.get(record["eventName"].removeprefix("s3:").split(":")[0])
    if kind is None:
        return []  # restores, tags, access control: the content did not change
    return [_change(record["s3"], unquote_plus(record["s3"]["object"]["key"]), kind, version="versionId")]


def _from_bridge(event: Mapping[str, Any]) -> list[Change]:
    kind = _BRIDGE_KINDS.get(event["detail-type"])
    if kind is None:
        return []
    # The key is plain here, unlike in direct notifications.
    return [_change(event["detail"], event["detail"]["object"]["key"], kind, version="version-id")]


def _change(record: Mapping[str, Any], key: str, kind: ChangeKind, *, version: str) -> Change:
    found = record["object"]
    return Change(
        bucket=record["bucket"]["name"],
        key=key,
        kind=kind,
        sequencer=found.get("sequencer", ""),
        version=found.get(version),
    )


def _from_seaweedfs(event: Mapping[str, Any]) -> list[Change]:
    """The filer reports files and folders; objects are the files below /buckets/<bucket>/."""
    kind = _WEED_KINDS.get(event["event_type"])
    if kind is None:
        raise UnknownEvent(f"a SeaweedFS event of type {event['event_type']!r}")
    message = event["message"]
    moved = [(event["key"], message.get("old_entry"), kind)]
    if event["event_type"] == "rename":
        at = f"{message.get('new_parent_path', '')}/{message['new_entry']['name']}"
        moved = [
            (event["key"], message.get("old_entry"), ChangeKind.REMOVED),
            (at, message["new_entry"], ChangeKind.CREATED),
        ]
    changes = []
    for path, entry, what in moved:
        bucket, slash, key = path.removeprefix(_WEED_BUCKETS).partition("/")
        own = key.split("/")[0] in _WEED_OWN or bucket in _WEED_OWN
        if not path.startswith(_WEED_BUCKETS) or not slash or own:
            continue
        folder = (entry or message.get("new_entry") or {}).get("is_directory", False)
        versioned = _WEED_VERSIONS.match(key)
        if versioned:
            # In a versioned bucket an object is a folder of its versions; the current one is announced last.
            changes.append(
                Change(bucket=bucket, key=versioned[1], kind=ChangeKind.CREATED, sequencer=_weed_time(message))
            )
        elif not folder:
            changes.append(Change(bucket=bucket, key=key, kind=what, sequencer=_weed_time(message)))
    return changes


def _weed_time(message: Mapping[str, Any]) -> str:
    times = [c.get("modified_ts_ns", 0) for c in (message.get("new_entry") or {}).get("chunks", [])]
    return f"{max(times):020d}" if times else ""
