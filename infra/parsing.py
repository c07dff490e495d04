"""Reads what tenants wrote, once for each content: small texts here, others in a process with limits of its own.

What was found is kept by the bytes that it takes, what is wrong with a text as well; `core/budget.py` says what a text
may cost.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from core.budget import Budget, Parsed, parse, weight_of, weight_of_problems
from core.caches import BoundedCache
from core.decisions import Decision, DecisionInvalid, parse_decision
from core.errors import ManifestInvalid, Problem
from core.jobs import ObjectRef
from core.manifests import Manifest, parse_manifest
from core.memories import Memory, MemoryInvalid, MemorySummary, parse_memory, summary
from core.overlays import Overlay, parse_overlay
from infra.apart import SMALL, TooCostly, apart

_CACHE_BYTES: Final = 64 * 1024 * 1024  # of memory, for all kinds of text together
_VALID: Final = True
SHOWN: Final = 50  # entries of each kind in a summary

_TEXT_BYTES: Final = 16 * 1024 * 1024
_OF_CONTENT: Final = re.compile(r"(?:md5:)?([0-9a-f]{32}(?:[0-9a-f]{32})?)(?::\d+)?")

T = TypeVar("T")
_found: Final = BoundedCache[tuple[str, bytes], object](_CACHE_BYTES)


class Readable(Protocol):
    """The part of an ObjectStore that reads a text."""

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes: ...


class KnownTexts:
    """Texts that were read before, by tenant and digest: most drops of a tenant come with the same manifest.

    Only a text that has its digest is kept, so whoever finds two texts with one digest misleads nobody but themselves.
    Safe to share between threads.
    """

    def __init__(self, store: Readable) -> None:
        self._store = store
        self._texts = BoundedCache[tuple[str, str], bytes](_TEXT_BYTES)

    def read(self, tenant: str, ref: ObjectRef, *, limit: int) -> bytes:
        """The text at its version; raises like ObjectStore.read unless it is known."""
        known = self._texts.get((tenant, ref.digest))
        if known is not None and len(known) == ref.size <= limit:
            return known
        body = self._store.read(ref.key, version=ref.version, limit=limit)
        if len(body) == ref.size and _has_digest(body, ref.digest):
            self._texts.put((tenant, ref.digest), body, len(body) + 200)
        return body


def _has_digest(body: bytes, digest: str) -> bool:
    """Whether a digest is one of the content, and of this."""
    match = _OF_CONTENT.fullmatch(digest)
    if match is None:
        return False
    made = hashlib.md5(body, usedforsecurity=False) if len(match[1]) == 32 else hashlib.sha256(body)
    return made.hexdigest() == match[1]


def read_manifest(body: bytes) -> Manifest:
    """Raises ManifestInvalid."""
    return _valid(
        _read(Manifest, _manifest, body, "a manifest as docs/reference/manifest.md describes it"), ManifestInvalid
    )


def read_overlay(body: bytes) -> Overlay:
    """Raises ManifestInvalid."""
    return _valid(
        _read(Overlay, _overlay, body, "an overlay as docs/reference/overlays.md describes it"), ManifestInvalid
    )


def read_decision(body: bytes) -> Decision:
    """Raises DecisionInvalid."""
    return _valid(_read(Decision, _decision, body, "a decision as docs/guides/review.md describes it"), DecisionInvalid)


def read_memory_text(body: bytes) -> Memory:
    """Raises MemoryInvalid."""
    return _valid(_read(Memory, _memory, body, "a memory as docs/explanation/mapping.md describes it"), MemoryInvalid)


def check_memory(body: bytes) -> None:
    """Raise MemoryInvalid unless it is a memory; cheaper than reading it, as nothing of it comes here."""
    _valid(_read(bool, _valid_memory, body, "a memory as docs/explanation/mapping.md describes it"), MemoryInvalid)


def memory_summary(body: bytes) -> MemorySummary | None:
    """What a page shows of a memory; None: it cannot be read."""
    found = _read(MemorySummary, _summary, body, "a memory")
    return found if isinstance(found, MemorySummary) else None


def parse_body(body: bytes, budget: Budget) -> Parsed | list[Problem]:
    """The JSON of a request, or what is wrong with it; not kept, since hardly anybody sends the same again."""
    try:
        return body_of(body, budget) if len(body) <= SMALL else apart(body_of, body, budget)
    except TooCostly as error:
        return [Problem("$", f"cannot be read: {error}", "a JSON object")]


def body_of(body: bytes, budget: Budget) -> Parsed | list[Problem]:
    return parse(body, budget, twins=True)


def _valid(found: T | list[Problem], invalid: Callable[[list[Problem]], Exception]) -> T:
    """What was read; raises `invalid` if problems were found instead."""
    if isinstance(found, list):
        raise invalid(found)
    return found


def _read(kind: type[T], how: Callable[[bytes], T | list[Problem]], body: bytes, allowed: str) -> T | list[Problem]:
    key = (how.__name__, hashlib.sha256(body).digest())
    known = _found.get(key)
    if isinstance(known, (kind, list)):
        return known
    try:
        found = how(body) if len(body) <= SMALL else apart(how, body)
    except TooCostly as error:
        found = [Problem("$", f"cannot be read: {error}", allowed)]
    stored = b"" if found is _VALID else body  # of the text, by what is kept
    _found.put(key, found, weight_of_problems(found) if isinstance(found, list) else weight_of(stored))
    return found


def _manifest(body: bytes) -> Manifest | list[Problem]:
    try:
        return parse_manifest(body)
    except ManifestInvalid as error:
        return error.problems


def _overlay(body: bytes) -> Overlay | list[Problem]:
    try:
        return parse_overlay(body)
    except ManifestInvalid as error:
        return error.problems


def _decision(body: bytes) -> Decision | list[Problem]:
    try:
        return parse_decision(body)
    except DecisionInvalid as error:
        return error.problems


def _memory(body: bytes) -> Memory | list[Problem]:
    try:
        return parse_memory(body)
    except MemoryInvalid as error:
        return error.problems


def _summary(body: bytes) -> MemorySummary | list[Problem]:
    return summary(body, SHOWN) or []


def _valid_memory(body: bytes) -> bool | list[Problem]:
    found = _memory(body)
    return found if isinstance(found, list) else _VALID
