"""Notices: who is notified of what about a job. Pure decisions; runner/notifier.py carries them out.

A notice is written into the job's row by the same conditional write as what it is about (`core.jobs.move`), so neither
exists without the other. It stays there until its receiver has taken it: it is delivered at least once, and every
delivery carries the same id.
"""

import hashlib
import hmac
import ipaddress
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from core.jobs import Job, Notice, State, stamp_text
from core.keys import output_folder
from core.loads import PREFIX as LOAD_PREFIX

SIGNATURE, TIMESTAMP, NOTICE_ID = "Ade-Signature", "Ade-Timestamp", "Ade-Notice-Id"
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
EVENT_TYPE = "dev.ade-drop.notice"
MOST_TRIES = 18  # about a day
_FIRST_WAIT, _LONGEST_WAIT = 10.0, 3 * 3600.0
_COUNTS = ("rows_in", "rows_out", "rows_with_errors", "tables", "questions")
# No user, no fragment, nothing that two parsers might read differently.
_URL = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253})(?::([0-9]{1,5}))?(/[!-~]*)?")
# What a text of a CloudEvent must not have: control characters, and code points that are no characters.
_NOT_IN_EVENTS = re.compile(
    "[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def pending(job: Job) -> float | None:
    """When the next delivery is due; None: none is, or what it is about is not in the bucket yet."""
    if not job.notices or job.unpublished or job.state is State.EXPIRED:
        return None
    return min(notice.next_at for notice in job.notices)


def delivered(job: Job, notice_id: str) -> Job | None:
    """The job without a notice that has arrived; None if it has none of that id."""
    left = tuple(notice for notice in job.notices if notice.id != notice_id)
    return None if len(left) == len(job.notices) else replace(job, notices=left)


def without_loads(job: Job) -> Job | None:
    """The job without the loads that are still to be tried; None if it has none."""
    left = tuple(notice for notice in job.notices if not notice.to.startswith(LOAD_PREFIX))
    return None if len(left) == len(job.notices) else replace(job, notices=left)


def postponed(job: Job, notice_id: str, *, now: float, jitter: float) -> Job | None:
    """The job after a delivery that failed: the notice waits longer each time, and is given up after about a day."""
    found = next((notice for notice in job.notices if notice.id == notice_id), None)
    if found is None or found.tries + 1 >= MOST_TRIES:
        return delivered(job, notice_id)
    wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**found.tries) * (0.75 + jitter / 2)
    later = replace(found, tries=found.tries + 1, next_at=now + wait)
    return replace(job, notices=tuple(later if notice.id == notice_id else notice for notice in job.notices))


def held_until(job: Job, notice_id: str, until: float) -> Job | None:
    """The job whose notice goes later, with others; that is no failure."""
    if all(notice.id != notice_id for notice in job.notices):
        return None
    later = tuple(replace(one, next_at=until) if one.id == notice_id else one for one in job.notices)
    return replace(job, notices=later)


def body(job: Job, notice: Notice) -> bytes:
    """A notice as a CloudEvent 1.0, in the structured mode of its JSON format."""
    event = {
        "specversion": "1.0",
        "id": notice.id,
        "source": f"ade-drop/{_escaped(job.tenant)}/{_escaped(job.workflow)}",
        "type": f"{EVENT_TYPE}.{notice.kind}",
        "time": stamp_text(notice.at),
        **({"subject": _NOT_IN_EVENTS.sub("\ufffd", job.subject)} if job.subject else {}),
        "datacontenttype": "application/json",
        "data": facts(job, notice),
    }
    return json.dumps(event, ensure_ascii=False).encode()


def _escaped(name: str) -> str:
    """A name as a part of a URI."""
    return re.sub(rb"[^A-Za-z0-9._~-]", lambda found: b"%%%02X" % found[0][0], name.encode(errors="replace")).decode()


def facts(job: Job, notice: Notice) -> dict[str, object]:
    """What a receiver learns: names, states and counts; never a cell's value, nor a message that might quote one."""
    folder = output_folder(job.tenant, job.subject, job.workflow, job.job_id)
    ended = notice.kind in ("succeeded", "errors", "failed")
    error = job.error if notice.kind == "failed" else None
    return {
        "notice": 1,
        "id": notice.id,
        "kind": notice.kind,
        "at": stamp_text(notice.at),
        "job_id": job.job_id,
        "tenant": job.tenant,
        "workflow": job.workflow,
        "subject": job.subject,
        "outcome": job.outcome if notice.kind in ("succeeded", "errors") else None,
        "verdict": str(error.verdict) if error else None,
        "fault": str(error.fault) if error else None,
        "result": f"{folder}result.json" if ended else None,
        "review": f"{folder}review.json" if notice.kind == "review" else None,
        "expected": job.params.get("expected") if notice.kind == "missing" else None,
        "counts": {name: n for name in _COUNTS if isinstance(n := job.summary.get(name), int)},
    }


def key_of(secret: str, host: str) -> str:
    """The key of one receiver: whoever knows it can forge notices to that host and to no other."""
    return hmac.new(secret.encode(), host.encode(), hashlib.sha256).hexdigest()


def signature(key: str, timestamp: str, sent: bytes) -> str:
    """`v1=` and the HMAC-SHA256 of timestamp, a dot and the body."""
    return "v1=" + hmac.new(key.encode(), f"{timestamp}.".encode() + sent, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a notice is not sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where a notice may go."""

    kind: str  # "webhook", "sns" or "eventbridge"
    to: str
    private: bool = False  # whether it may be in a private network
    secure: bool = True
    host: str = ""
    port: int = 0
    path: str = ""


class Allowed:
    """What the operator allows (ADE_NOTIFY_ALLOW).

    `host` or `*.host`: HTTPS, port 443, public addresses only. `https://host:port` or `http://host:port`: exactly that,
    in a private network too. `arn:…`: that topic or bus; a `*` at its end stands for the rest.
    """

    def __init__(self, entries: str) -> None:
        self._entries = [entry.strip() for entry in entries.split(",") if entry.strip()]

    def receiver(self, to: str) -> Receiver | Refusal:
        if to.startswith("arn:"):
            return self._service(to)
        known = _URL.fullmatch(to)
        if known is None:
            return Refusal("its address is not a plain http(s) URL")
        scheme, host, port = _origin(known)
        found = Receiver("webhook", to, secure=scheme == "https", host=host, port=port, path=known[4] or "/")
        origins = (_origin(entry) for text in self._entries if (entry := _URL.fullmatch(text)) is not None)
        if (scheme, host, port) in origins:
            return replace(found, private=True)
        if (scheme, port) == ("https", 443) and any(_covers(entry, host) for entry in self._entries):
            return found
        return Refusal(f"ADE_NOTIFY_ALLOW does not name {scheme}://{host}:{port}")

    def _service(self, arn: str) -> Receiver | Refusal:
        if not any(entry == arn or (entry.endswith("*") and arn.startswith(entry[:-1])) for entry in self._entries
                   if entry.startswith("arn:")):  # fmt: skip
            return Refusal(f"ADE_NOTIFY_ALLOW does not name {arn}")
        service = arn.split(":")[2]
        kinds = {"sns": "sns", "events": "eventbridge"}
        return Receiver(kinds[service], arn) if service in kinds else Refusal(f"{arn} is neither a topic nor a bus")


def _origin(url: re.Match[str]) -> tuple[str, str, int]:
    scheme = url[1].lower()
    return scheme, url[2].lower().rstrip("."), int(url[3] or (443 if scheme == "https" else 80))


def _covers(entry: str, host: str) -> bool:
    entry = entry.lower().rstrip(".")
    return host.endswith(entry[1:]) and len(host) > len(entry) - 1 if entry.startswith("*.") else host == entry


_UNICAST: Final = ipaddress.ip_network("2000::/3")


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet: not of this machine, a private network or the cloud's metadata."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)
    if inner is not None:
        return is_public(str(inner))
    # Of IPv6 only unicast addresses: others stand for IPv4 ones (NAT64, `::10.0.0.1`) or for a site's own.
    return ip.is_global and not ip.is_multicast and (ip.version == 4 or ip in _UNICAST)


def check_addresses(addresses: Iterable[str], *, private: bool) -> str | Refusal:
    """The address to connect to. One that is not public refuses them all: the name may answer otherwise next time."""
    found = list(addresses)
    if not found:
        return Refusal("its host has no address")
    if not private and not all(is_public(address) for address in found):
        return Refusal("its host is in a private network; name its origin in ADE_NOTIFY_ALLOW to allow that")
    return found[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """By when a workflow expects a drop, and since when one counts for it."""

    at: float
    since: float


def last_deadline(by: str, tz: str, days: tuple[str, ...], now: float) -> Deadline:
    """The last time of day `by` that has passed on one of the `days`, and the one before it."""
    zone, (hour, minute) = ZoneInfo(tz), map(int, by.split(":"))
    today = datetime.fromtimestamp(now, UTC).astimezone(zone).date()
    passed: list[float] = []
    for back in range(16):
        day = today - timedelta(days=back)
        # A time that the change to summer time leaves out is taken as an hour later, one that comes twice as the first.
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).timestamp()
        if DAYS[day.weekday()] in days and at <= now:
            passed.append(at)
            if len(passed) == 2:
                return Deadline(at=passed[0], since=passed[1])
    raise ValueError("a week has at least one of the days")  # the manifest was checked


def arrived(jobs: Iterable[Job], deadline: Deadline, is_placeholder: Callable[[Job], bool]) -> bool:
    """Whether a drop came since the deadline before: in time, or late by now."""
    return any(max(job.created_at, job.stamp) > deadline.since for job in jobs if not is_placeholder(job))
