"""How messages and dead letters stand in SQS bodies. Decoded once, here; what is not ours is None."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from core.ports import DeadLetter, Message

N = TypeVar("N", int, float)

VERSION = 1  # of the body; docs/upgrading.md
FOREIGN = "not a message of ours"
_MOVED = "received again and again and never handled; moved here by SQS"
_SHOWN = 2000  # characters of a foreign body that go along


@dataclass(frozen=True, slots=True)
class Body:
    message: Message
    not_before: float = 0.0  # carried along where SQS cannot delay for so long


def encode(message: Message, **more: str | float) -> str:
    return json.dumps(
        {"v": VERSION, "job_id": message.job_id, "tenant": message.tenant, "priority": message.priority} | more
    )


def decode(text: str) -> Body | None:
    match _loaded(text):
        case {"job_id": str(job_id), "tenant": str(tenant), **rest}:
            message = Message(job_id=job_id, tenant=tenant, priority=_number(rest, "priority", int))
            return Body(message, _number(rest, "not_before", float))
        case _:
            return None


def newer(text: str) -> bool:
    """Whether a newer program wrote this body, whatever it holds."""
    match _loaded(text):
        case {"v": int(version)}:
            return version > VERSION
        case _:
            return False


def letter(raw: dict[str, Any]) -> DeadLetter:
    """Ours say why; those that SQS moved here by itself do not; others are shown under their own id."""
    sent = int(raw["Attributes"]["SentTimestamp"]) / 1000
    found = decode(raw["Body"])
    if found is None:
        return DeadLetter(message=stranger(raw), reason=f"{FOREIGN}; see it in the queue", at=sent)
    said = _loaded(raw["Body"])
    return DeadLetter(
        message=found.message, reason=str(said.get("reason", _MOVED)), at=_number(said, "at", float) or sent
    )


def stranger(raw: dict[str, Any]) -> Message:
    """What stands for a message that names no job."""
    return Message(job_id=f"message-{raw['MessageId']}", tenant="-")


def foreign(raw: dict[str, Any], at: float) -> str:
    """The dead letter of a message that is not ours."""
    return encode(stranger(raw), reason=FOREIGN, at=at, body=raw["Body"][:_SHOWN])


def group(tenant: str) -> str:
    """A MessageGroupId: at most 128 of the characters that SQS allows there; tenants with odd names share less well."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in tenant)[:128] or "_"


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(values: Mapping[Any, Any], name: str, kind: Callable[[float], N]) -> N:
    value = values.get(name, 0)
    return kind(value if isinstance(value, int | float) and math.isfinite(value) else 0)
