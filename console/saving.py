"""Saves a bench as a workflow: as a draft, or live, by the same code as `ade workflow`.

What a bench was made from is compared with what is there now: a workflow that somebody else changed since then is not
replaced. Repeated after a death anywhere, it goes on: a draft that has the bench's manifest is the bench's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from console.benches import Bench, BenchChanged, BenchOrigin, fields_of, manifest_bytes
from console.library import LIVE, Library, Standing, Version
from core.drops import TESTS
from core.errors import PreconditionFailed, UsageError
from core.keys import CONFIGS, SHARED_TENANT
from core.ports import ObjectStore
from core.versions import MANIFEST
from handlers.intake import Intake
from infra.parsing import read_manifest
from infra.wiring import Stack

_MANIFEST_KEYS = ("tenants", "subscribe")


@dataclass(frozen=True, slots=True)
class Saved:
    standing: Standing
    version: Version
    origin: BenchOrigin
    before: str  # the version that was live; empty: none, or this is a draft


def workflow_key(owner: str, name: str) -> str:
    return f"{CONFIGS}{owner}/{name}/{MANIFEST}"


def for_senders(manifest: Mapping[str, Any], owner: str, tenants: list[str], subscribe: list[str]) -> dict[str, Any]:
    """The manifest as configs have it: whom it serves, and which of their files."""
    made = {key: value for key, value in manifest.items() if key not in _MANIFEST_KEYS and key != "fields"}
    if owner == SHARED_TENANT:
        made["tenants"] = tenants
    return {**made, "subscribe": subscribe, "fields": manifest.get("fields", fields_of(manifest))}


def origin_of(library: Library, standing: Standing, cases: Iterable[str]) -> BenchOrigin:
    """What is there of a workflow now. `cases`: the files of its test cases that the bench has."""
    digests = library.case_digests(standing)
    is_live, draft = standing.is_live and standing.unfinished is None, library.draft(standing)
    return BenchOrigin(
        key=standing.key,
        live=library.load(standing, LIVE).id if is_live else None,
        draft=None if draft is None else draft.id,
        cases={name: digests[name] for name in cases if name in digests},
    )


def save(stack: Stack, bench: Bench, manifest: Mapping[str, Any], cases: Mapping[str, bytes], *, live: bool) -> Saved:
    """Save a manifest of a bench and its test cases. Raises BenchChanged, WorkflowChanged, ManifestInvalid or
    UsageError."""
    library, body = Library(stack.store), manifest_bytes(manifest)
    read = read_manifest(body)
    origin = bench.facts.origin
    key = origin.key if origin is not None else workflow_key(bench.owner, read.name)
    new = library.new(key, read)  # checks what depends on the place, too: subscribe, tenants, keys of others
    there = library.at(key)
    _check(library, there, bench, body, read.name)
    standing = new if there is None else there
    _save_cases(stack.store, standing, cases, {} if origin is None else origin.cases)
    files = {} if there is None else library.config_files(there)
    version = library.put_draft(standing, {**files, MANIFEST: body})
    before = ""
    if live:
        before = library.promote(standing, version)
        Intake.over(stack).changed([standing.key])
    now = library.at(key)
    if now is None:
        raise UsageError(f"{key} was removed while it was saved; repeat")
    return Saved(now, version, origin_of(library, now, cases), before)


def _check(library: Library, there: Standing | None, bench: Bench, body: bytes, name: str) -> None:
    origin = bench.facts.origin
    if there is not None and there.name != name:
        raise UsageError(f"{there.key} is workflow {there.name}; a workflow keeps its name: save {name} on a new bench")
    if there is None:
        return
    now, draft = origin_of(library, there, ()), library.draft(there)
    own_draft = draft is not None and draft.manifest == body
    if origin is None and own_draft and now.live is None:
        return  # we died after writing it
    if origin is None:
        raise BenchChanged(f"there is a workflow {there.name} already at {there.key}; open it on a bench to change it")
    if now.live != origin.live or (now.draft != origin.draft and not own_draft):
        what = "draft" if now.live == origin.live else "live version"
        raise BenchChanged(f"the {what} of {there.name} was changed by somebody else since this bench was made from it")


def promote(stack: Stack, standing: Standing, which: str, expected: str | None) -> str:
    """Make a version live, if that is still what the caller saw as live; returns what was. Raises BenchChanged."""
    library = Library(stack.store)
    live = library.load(standing, LIVE).id if standing.is_live and standing.unfinished is None else None
    if standing.unfinished is None and live != expected:
        raise BenchChanged(f"another version of {standing.name} went live since then: {live}")
    before = library.promote(standing, library.load(standing, which))
    Intake.over(stack).changed([standing.key])
    return before


def _save_cases(store: ObjectStore, standing: Standing, files: Mapping[str, bytes], known: Mapping[str, str]) -> None:
    """Write test cases beside the workflow; `known`: digests of those that the bench began with, by name.

    Raises BenchChanged where somebody else wrote one of them since then.
    """
    place = f"{standing.folder}{TESTS}/"
    for name in known.keys() - files.keys():
        there = store.head(place + name)
        if there is not None and there.digest == known[name]:
            store.delete(place + name)  # its case was removed on the bench
    for name, body in sorted(files.items()):
        there = store.head(place + name)
        if there is not None and store.read(place + name, version=there.version, limit=there.size) == body:
            continue
        if there is not None and known.get(name) != there.digest:
            raise BenchChanged(f"test case {name.partition('/')[0]} was changed by somebody else; take another name")
        try:
            store.put(place + name, body, if_version=there.version if there else None, if_absent=there is None)
        except PreconditionFailed:
            raise BenchChanged(
                f"test case {name.partition('/')[0]} is being changed by somebody else; repeat"
            ) from None
