"""Keeps every version of a standing workflow that ran, and forgets it with the last job that names it.

Keeping is repeatable: an object under the name of a version is never replaced, and the manifest is written last, so a
version with a manifest is whole. It is no reason for a job to fail: what could not be kept is logged, and the next job
of that version tries again.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from core.drops import MAX_PACKAGE_BYTES
from core.errors import AdeError, ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, PreconditionFailed
from core.jobs import Job, State
from core.keys import CONFIGS, REPLAYS, SHARED_TENANT, VERSIONS
from core.manifests import MAX_MANIFEST_BYTES
from core.overlays import ENDING
from core.ports import JobQuery, JobTable, ObjectStore
from core.versions import MANIFEST, MAX_PROMOTION_BYTES, StoredPart, is_promotion, parse_promotion, stored_parts
from infra.logs import Log
from infra.parsing import read_manifest
from runner.replays import REPLAY_FILE, read_replay

_MOST_KNOWN: Final = 10_000
_PAGES: Final = 1000  # of rows, to find out whether one names a version
_NAMING: Final = frozenset(State) - {State.EXPIRED}
_GONE: Final = (ObjectMissing, ObjectChanged, ObjectTooLarge)


class StoredVersions:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, log: Log | None = None) -> None:
        self._store = store
        self._log = log
        self._lock = threading.Lock()
        self._known: set[str] = set()  # keys that are kept, as far as this process knows

    def store_of(self, job: Job) -> None:
        """Copy what a job is made of, unless that was done before."""
        parts = stored_parts(job)
        with self._lock:
            missing = [part for part in parts if part.key not in self._known]
        if not missing:
            return
        try:
            is_whole = parts[-1] not in missing or self._store.head(parts[-1].key) is not None
            for part in missing:
                if part.key.endswith(ENDING) or not is_whole:
                    self._copy(part)
        except (*_GONE, OSError, AdeError) as error:
            if self._log is not None:
                self._log.warning("version_not_kept", job_id=job.job_id, error=f"{type(error).__name__}: {error}")
            return
        with self._lock:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known |= {part.key for part in missing}

    def _copy(self, part: StoredPart) -> None:
        if self._store.head(part.key) is not None:
            return
        body = self._store.read(part.ref.key, version=part.ref.version, limit=MAX_PACKAGE_BYTES)
        with contextlib.suppress(PreconditionFailed):  # another runner was faster, with the same
            self._store.put(part.key, body, if_absent=True)

    def forget(self, table: JobTable, before: float, named: frozenset[str]) -> int:
        """Delete versions that were kept before a time and that no job names; returns how many objects.

        `named`: folders of versions that are needed all the same. Those of the last promotion stay: it can be reverted.
        """
        found: dict[str, list[str]] = {}
        young: set[str] = set()
        for info in self._store.objects(CONFIGS):
            if is_promotion(info.key):
                named |= self._promoted(info.key)
            version = _version_of(info.key)
            if version is None:
                continue
            found.setdefault(version, []).append(info.key)
            if info.modified >= before:
                young.add(version)
        gone = 0
        for version, keys in found.items():
            if version in young or version in named or self._is_named(table, version):
                continue
            with self._lock:
                self._known -= set(keys)
            self._store.delete(f"{version}{MANIFEST}")  # first: a version without one is not whole, nobody uses it
            self._store.delete_all(keys)
            gone += len(keys)
        return gone

    def _promoted(self, key: str) -> frozenset[str]:
        with contextlib.suppress(*_GONE):
            promotion = parse_promotion(key, self._store.read(key, limit=MAX_PROMOTION_BYTES))
            return frozenset() if promotion is None else promotion.folders
        return frozenset()

    def _is_named(self, table: JobTable, version: str) -> bool:
        query = self._query(version)
        return query is None or any(
            part.key.startswith(version) for job in _jobs(table, query) for part in stored_parts(job)
        )

    def _query(self, version: str) -> JobQuery | None:
        """What finds the jobs that may name a version; None: it cannot be known."""
        owner = version.split("/")[1]
        tenant = None if owner == SHARED_TENANT else owner
        if version.endswith(ENDING):
            return JobQuery(tenant=tenant, states=_NAMING)
        try:
            body = self._store.read(f"{version}{MANIFEST}", limit=MAX_MANIFEST_BYTES)
            return JobQuery(tenant=tenant, workflow=read_manifest(body).name, states=_NAMING)
        except (*_GONE, ManifestInvalid):
            return JobQuery(tenant=tenant, states=_NAMING)


def forget_replays(store: ObjectStore, before: float) -> frozenset[str]:
    """Delete what is left of replays that began before a time; returns the folders of the versions of the others."""
    named = set[str]()
    for folder in store.level(REPLAYS).folders:
        info = store.head(f"{folder}{REPLAY_FILE}")
        if info is not None and info.modified >= before:
            replay = read_replay(store, folder)
            named |= {replay.version_folder} if replay is not None else set()
        elif info is not None:
            store.delete_prefix(folder)
    return frozenset(named)


def _version_of(key: str) -> str | None:
    """The folder of a version that a key is of, or the key itself of a kept overlay; None: neither."""
    before, found, inside = key.partition(f"/{VERSIONS}")
    name, slash, _ = inside.partition("/")
    return f"{before}{found}{name}{slash}" if found and (slash or name.endswith(ENDING)) else None


def _jobs(table: JobTable, query: JobQuery) -> Iterator[Job]:
    """The jobs that fit, newest first. Raises AdeError where there are too many to be sure."""
    cursor: str | None = None
    for _ in range(_PAGES):
        page = table.page(query, cursor=cursor)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return
    raise AdeError("there are too many rows to check")
