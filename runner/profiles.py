"""Drift profiles: what the last drops of a sender looked like, stored for the comparison with the next one."""

import json
from typing import Any

from core.errors import PreconditionFailed
from core.jobs import Job
from core.keys import profile_key, staging_folder
from core.ports import ObjectStore
from runner.bundles import StoredProfile
from runner.documents import MAX_DOCUMENT_BYTES, LineOrder, order_of, parse_order, read_document
from runner.engine.contract import OutputName

_MAX_HEAD_BYTES = 4000  # of the line above a profile
_MAX_HEAD_TEXT = 200  # characters of a name or a digest in it
_MAX_KINDS = 8  # profiles of one sender, one for each kind of file
_MAX_REPLACED = 12  # jobs that a head names as replaced by its own
_TRIES = 20  # of a write that another process was ahead of


def store_profile(
    store: ObjectStore, job: Job, staged: bytes | None = None, previous: StoredProfile | None = None
) -> None:
    """Store what this drop looked like for the sender's next one, unless a newer drop's profile is already there.

    The profile is copied unread; the line above it, by which profiles are ordered, is ours. Of each kind of file
    the newest is stored. `staged`: the profile, if it is known; `previous`: what was stored a moment ago, likewise.
    """
    key = profile_key(job)
    if staged is None:
        staged = read_document(store, staging_folder(job.job_id, job.fence) + OutputName.PROFILE)
    if key is None or staged is None or _is_too_long(staged):
        return
    for _ in range(_TRIES):
        if previous is None:
            current = store.head(key)
            previous = StoredProfile(
                current.version if current else None, read_document(store, key) if current else None
            )
        body = with_profile(previous.body, job, staged)
        if body is None:
            return
        try:
            store.put(key, body, if_version=previous.version, if_absent=previous.version is None)
        except PreconditionFailed:
            previous = None
            continue
        return


def first_profile(job: Job, staged: bytes | None, previous: StoredProfile | None) -> dict[str, bytes]:
    """What `store_profile` would write, by key, where the sender had no profile a moment ago; else empty."""
    key = profile_key(job)
    if key is None or staged is None or previous is None or previous.version is not None or _is_too_long(staged):
        return {}
    body = with_profile(None, job, staged)
    return {} if body is None else {key: body}


def _is_too_long(staged: bytes) -> bool:
    return len(staged) > MAX_DOCUMENT_BYTES // 2


def with_profile(stored: bytes | None, job: Job, staged: bytes) -> bytes | None:
    """The stored profiles of a sender with that of a job; None if a newer one of the same kind of file is there.

    Each is a line under a head of its own: whose it is, its order, a digest of its columns, and whose profiles of the
    same kind it replaced. A result that comes late is recognized by them.
    """
    line, _, profile = staged.rpartition(b"\n")
    claim = _object_of(line)
    after, layout = (str(claim.get(name) or "")[:_MAX_HEAD_TEXT] for name in ("after", "layout"))
    mine = order_of(job)
    others: list[tuple[LineOrder, bytes, bytes]] = []
    replaced = [after] if after else []
    for head, body in _profiles(stored):
        order = parse_order(head.get("order"))
        before = head.get("was")
        known = [str(head.get("job_id") or ""), *map(str, before[:_MAX_REPLACED] if isinstance(before, list) else ())]
        if order is None:
            continue
        if job.job_id in known or (after and after in known) or (layout and layout == head.get("layout")):
            if order > mine:
                return None
            replaced += [one for one in known if one and one not in (*replaced, job.job_id)]
        else:
            others.append((order, json.dumps(head).encode(), body))
    head = {"kept": 1, "job_id": job.job_id, "order": list(mine), "layout": layout, "was": replaced[-_MAX_REPLACED:]}
    lines = sorted([*others, (mine, json.dumps(head).encode(), profile)], reverse=True)[:_MAX_KINDS]
    while len(lines) > 1 and sum(len(h) + len(b) + 2 for _, h, b in lines) > MAX_DOCUMENT_BYTES:
        lines.pop()
    return b"".join(h + b"\n" + b + b"\n" for _, h, b in lines)


def _profiles(body: bytes | None) -> list[tuple[dict[str, Any], bytes]]:
    """The lines of a file of profiles in pairs: our head, and the profile under it."""
    lines = (body or b"").split(b"\n")[: 2 * _MAX_KINDS]
    return [(head, below) for above, below in zip(lines[::2], lines[1::2], strict=False) if (head := _object_of(above))]


def _object_of(line: bytes) -> dict[str, Any]:
    """A short line of JSON; empty if it is not an object."""
    try:
        found = json.loads(line) if len(line) <= _MAX_HEAD_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
