"""Job ids: computed from what the job is, so that duplicates meet in one row; readable by people."""

import hashlib
import json
import re
from typing import Any

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: read aloud without mistakes
LENGTHS = (8, 13, 26)  # the next one is used where a shorter id is taken by another job


def identity(
    *, tenant: str, workflow: str, subject: str, config_digest: str, inputs: list[str], params: dict[str, Any]
) -> str:
    """The full hash of what a job is: the same for every event that speaks of it."""
    facts = [tenant, workflow, subject, config_digest, sorted(inputs), params]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def job_id(tenant: str, workflow: str, identity_hash: str, length: int = LENGTHS[0]) -> str:
    number = int(identity_hash, 16)
    tail = "".join(_ALPHABET[(number >> (5 * i)) & 31] for i in range(length))
    return f"{_slug(tenant)}-{_slug(workflow)}-{tail}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-") or "x"


def digest_of(parts: list[tuple[str, str]]) -> str:
    """One digest for a set of named digests, whatever their order."""
    text = "\n".join(f"{name}\0{digest}" for name, digest in sorted(parts))
    return hashlib.sha256(text.encode()).hexdigest()
