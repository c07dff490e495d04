"""Benches: where an author turns samples into a workflow, kept in a place of their own until they are saved.

A bench is `access/benches/<owner>/<id>/` with `bench.json`, its samples and its test cases. The owner is a tenant, or
`_shared` for a workflow of several, which only somebody of no tenant sees. No drop, no manifest and no job can name
anything there. Every change of a bench is one conditional write, and a change of an older one is refused. A bench that
nobody changes expires.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from console.desk.drafts import manifest_text
from core.budget import Budget, read
from core.errors import AdeError, ObjectMissing, ObjectTooLarge, PreconditionFailed, UsageError
from core.fields import Strict
from core.keys import BENCHES, INBOX, SHARED_TENANT, place
from core.manifests import MAX_MANIFEST_BYTES, MAX_VALUES
from core.ports import Clock, ObjectStore
from infra.newest import read_newest

MOST_SAMPLES: Final = 10
LARGEST: Final = 16 * 1024 * 1024  # bytes of all samples of a bench
MOST_CASES: Final = 20
CASE_BYTES: Final = 4 * 1024 * 1024  # of all cases
MOST_BENCHES: Final = 30  # of one owner
EXPIRY_SECONDS: Final = 7 * 86400.0
_BUDGET: Final = Budget(bytes=2 * MAX_MANIFEST_BYTES, values=MAX_VALUES + 20_000)
_FILE: Final = "bench.json"
_NAME = Annotated[str, Field(min_length=1, max_length=200)]


class BenchChanged(AdeError):
    """Somebody else changed the bench, or what it was made from, since it was read."""


class BenchSample(Strict):
    name: _NAME  # as its sender called it; never part of a key
    key: _NAME
    size: Annotated[int, Field(ge=0)]


class Suggestion(Strict):
    """Something that the samples suggest and do not prove: taken only if the author says so."""

    field: _NAME
    text: Annotated[str, Field(max_length=500)]
    change: dict[str, Any]


class BenchOrigin(Strict):
    """The workflow that a bench changes, as it was when the bench read it."""

    key: _NAME
    live: str | None = None  # ids of the versions; None: there was none
    draft: str | None = None
    # Digests of the files of its test cases, by their names below tests/.
    cases: dict[str, str] = Field(default_factory=dict)


class BenchFacts(Strict):
    """`bench.json`."""

    bench: Literal[1] = 1
    created_at: float
    by: str = ""
    samples: Annotated[tuple[BenchSample, ...], Field(max_length=MOST_SAMPLES)] = ()
    # As the author wrote it, valid or not: a JSON object.
    manifest: dict[str, Any]
    notes: Annotated[tuple[str, ...], Field(max_length=200)] = ()
    suggestions: Annotated[tuple[Suggestion, ...], Field(max_length=200)] = ()
    origin: BenchOrigin | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench as it was read: changes are made to `facts`, on condition that it is still of this `version`."""

    owner: str
    id: str
    facts: BenchFacts
    version: str
    modified: float

    @property
    def folder(self) -> str:
        return bench_folder(self.owner, self.id)

    @property
    def name(self) -> str:
        name = self.facts.manifest.get("name")
        return name[:100] if isinstance(name, str) else ""

    @property
    def fields(self) -> list[dict[str, Any]]:
        return fields_of(self.facts.manifest)

    @property
    def body(self) -> bytes:
        """The manifest as it would be saved."""
        return manifest_bytes(self.facts.manifest)


def fields_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = manifest.get("fields")
    return [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """A manifest as people read it, as far as it is one."""
    fields = manifest.get("fields")
    is_one = isinstance(fields, list) and len(fields) == len(fields_of(manifest))
    text = manifest_text(dict(manifest)) if is_one else json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    return text.encode(errors="replace")


def bench_folder(owner: str, number: str = "") -> str:
    return f"{BENCHES}{owner}/{number}/" if number else f"{BENCHES}{owner}/"


def check_owner(owner: str) -> str:
    """Raises KeyRefused for what is neither a tenant nor `_shared`."""
    return owner if owner == SHARED_TENANT else place(f"{INBOX}{owner}/x").tenant


class Benches:
    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def of(self, owner: str) -> list[Bench]:
        """The benches of an owner, the one that was changed last first."""
        ids = [folder.rstrip("/").rpartition("/")[2] for folder in self._store.level(bench_folder(owner)).folders]
        found = [bench for number in ids[: 2 * MOST_BENCHES] if (bench := self._read(owner, number)) is not None]
        return sorted(found, key=lambda one: one.modified, reverse=True)

    def owners(self) -> list[str]:
        return [folder.removeprefix(BENCHES).rstrip("/") for folder in self._store.level(BENCHES).folders]

    def find(self, owner: str, number: str) -> Bench:
        """Raises ObjectMissing."""
        bench = self._read(owner, number) if number.isalnum() and len(number) <= 32 else None
        if bench is None:
            raise ObjectMissing(f"there is no bench {number[:40]!r}; it was removed, or it expired after a week")
        return bench

    def new(self, owner: str, facts: BenchFacts, samples: Mapping[str, Path]) -> Bench:
        """A bench with these samples. Raises UsageError if there are too many."""
        if len(self.of(owner)) >= MOST_BENCHES:
            raise UsageError(f"there are {MOST_BENCHES} benches already; remove one")
        number = token_hex(8)
        stored = self._put_samples(owner, number, samples, ())
        return self._written(owner, number, facts.model_copy(update={"samples": stored}), None)

    def add_samples(self, bench: Bench, samples: Mapping[str, Path]) -> Bench:
        stored = self._put_samples(bench.owner, bench.id, samples, bench.facts.samples)
        return self.change(bench, samples=stored)

    def _put_samples(
        self, owner: str, number: str, samples: Mapping[str, Path], there: tuple[BenchSample, ...]
    ) -> tuple[BenchSample, ...]:
        """Samples first and `bench.json` last: what a dead process leaves is found by nobody and expires."""
        size = sum(one.size for one in there) + sum(path.stat().st_size for path in samples.values())
        if size > LARGEST or len(there) + len(samples) > MOST_SAMPLES:
            raise UsageError(f"a bench takes {MOST_SAMPLES} samples of {LARGEST // 2**20} MB together; choose fewer")
        found = list(there)
        for name, path in samples.items():
            key = f"{bench_folder(owner, number)}samples/{token_hex(8)}"
            self._store.put(key, path.read_bytes(), if_absent=True)
            found.append(BenchSample(name=name, key=key, size=path.stat().st_size))
        return tuple(found)

    def change(self, bench: Bench, **changes: Any) -> Bench:
        """The bench with other facts. Raises BenchChanged if it is not as it was read."""
        return self._written(bench.owner, bench.id, bench.facts.model_copy(update=changes), bench.version)

    def _written(self, owner: str, number: str, facts: BenchFacts, version: str | None) -> Bench:
        key, body = f"{bench_folder(owner, number)}{_FILE}", facts.model_dump_json().encode(errors="replace")
        if len(body) > _BUDGET.bytes:
            raise UsageError("the manifest is too large for a bench; use `ade workflow draft`")
        try:
            info = self._store.put(key, body, if_version=version, if_absent=version is None)
        except PreconditionFailed:
            raise BenchChanged("this bench was changed in another window, or by somebody else") from None
        return Bench(owner, number, facts, info.version, info.modified)

    def _read(self, owner: str, number: str) -> Bench | None:
        key = f"{bench_folder(owner, number)}{_FILE}"
        with contextlib.suppress(ObjectTooLarge):
            found = read_newest(self._store, key, limit=_BUDGET.bytes)
            if found is None or found.info.modified < self._clock.now() - EXPIRY_SECONDS:
                return None
            facts, info = read(found.body, BenchFacts, _BUDGET), found.info
            return None if isinstance(facts, list) else Bench(owner, number, facts, info.version, info.modified)
        return None

    def fetch(self, sample: BenchSample, to: Path) -> Path:
        self._store.fetch(sample.key, to, limit=LARGEST)
        return to

    def remove(self, bench: Bench) -> None:
        """`bench.json` first: half a bench is none."""
        self._store.delete(f"{bench.folder}{_FILE}")
        self._store.delete_prefix(bench.folder)

    def tidy(self) -> None:
        """Delete what expired, and what a dead process left."""
        since = self._clock.now() - EXPIRY_SECONDS
        for owner in self.owners():
            for folder in self._store.level(bench_folder(owner)).folders:
                if all(info.modified < since for info in self._store.objects(folder)):
                    self._store.delete_prefix(folder)

    # Test cases

    def cases(self, bench: Bench) -> dict[str, bytes]:
        """The files of the cases, by their names below `tests/`."""
        folder, found, left = f"{bench.folder}cases/", dict[str, bytes](), CASE_BYTES
        for info in self._store.objects(folder):
            if info.size <= left:
                left -= info.size
                found[info.key.removeprefix(folder)] = self._store.read(info.key, limit=CASE_BYTES)
        return found

    def put_case(self, bench: Bench, files: Mapping[str, bytes]) -> None:
        """Write files of cases. Raises UsageError if there are too many."""
        merged = {**self.cases(bench), **files}
        names = {name.partition("/")[0] for name in merged}
        if len(names) > MOST_CASES or sum(map(len, merged.values())) > CASE_BYTES:
            raise UsageError(
                f"a bench has {MOST_CASES} cases of {CASE_BYTES // 2**20} MB together; use a smaller sample"
            )
        for name, body in files.items():
            self._store.put(f"{bench.folder}cases/{name}", body)

    def remove_case(self, bench: Bench, name: str) -> None:
        self._store.delete_prefix(f"{bench.folder}cases/{name}/")


def each_case(files: Mapping[str, bytes]) -> Iterator[str]:
    """The names of the cases that files are of."""
    yield from dict.fromkeys(name.partition("/")[0] for name in files)


def with_manifest(bench: Bench, manifest: dict[str, Any]) -> Bench:
    """The bench as it would be with another manifest; nothing is written."""
    return replace(bench, facts=bench.facts.model_copy(update={"manifest": manifest}))
