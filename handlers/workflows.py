"""In: a place in the bucket. Out: the workflows found there, each with its config package.

`BucketView` is what a scan sees of the bucket; `Packages` finds config packages; `Workflows` reads and parses each
version of a manifest once, and caches the manifests above a drop while nobody changes them.

Theory of operation. A file may concern the manifests of its own folder, of the folders above it, the tenant's standing
ones in configs/, and the shared ones in configs/_shared/ that serve it; these have a generation of their own. Every
scan lists the file's own folder. The others change rarely, and a tenant's top folder lists every drop it ever had, so
their manifests are cached under the tenant's generation. A scan of a manifest that reaches beyond its own folder
advances the generation before it lists that manifest's inputs; a scan of a file reads the generation after the file was
put. So one of the two sees the other: either the file's scan finds a new generation and lists again, or the manifest's
scan lists after the file was put. A cached manifest that concerns a file is read once more before it is used, since it
may have changed or gone. Entries expire after a minute, since an event may be lost, and are never used to decide that
no manifest selects a file. A workflow's memory is cached in the same way: whoever writes one advances the generation.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from posixpath import basename
from typing import Protocol

from core.budget import weight_of, weight_of_problems
from core.caches import BoundedCache
from core.drops import MAX_PACKAGE_BYTES, Package, Workflow, find_package, make_workflow
from core.errors import (
    ManifestInvalid,
    ObjectChanged,
    ObjectMissing,
    ObjectRefused,
    ObjectTooLarge,
    PackageRefused,
    Problem,
    StoreUnavailable,
)
from core.keys import CONFIGS, SHARED, is_decision, is_manifest, is_set_aside, refusal
from core.manifests import MAX_MANIFEST_BYTES
from core.packages import check_zip
from core.ports import Clock, Level, ObjectInfo, ObjectStore
from handlers.generations import Generations
from infra.parsing import KnownTexts, read_manifest

_PARSED_BYTES = 32 * 1024 * 1024  # some hundred manifests of the usual size; infra/parsing.py keeps more, by content
_CACHED = 10_000
_CACHED_SECONDS = 60.0


def folder_of(key: str) -> str:
    """The key up to and including its last slash."""
    return key[: key.rfind("/") + 1]


def _decisions(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(key for key in keys if is_decision(basename(key)))


def _decisions_by_folder(keys: Iterable[str]) -> dict[str, frozenset[str]]:
    """The decisions among some keys by their folders; every folder of a key has an entry."""
    found: dict[str, set[str]] = {}
    for key in keys:
        here = found.setdefault(folder_of(key), set())
        if is_decision(basename(key)):
            here.add(key)
    return {folder: frozenset(here) for folder, here in found.items()}


class BucketView(Protocol):
    """What the bucket holds. A view gives the same answer every time: what was there when it was first asked."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Objects that the store refuses to describe, and why. No other method returns them."""
        ...

    def head(self, key: str) -> ObjectInfo | None: ...

    def infos(self, keys: Collection[str]) -> list[ObjectInfo]:
        """Those of the keys that exist, in their order."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """Keys of the objects directly in a folder (its prefix ends in '/')."""
        ...

    def manifests(self, folder: str) -> tuple[str, ...]:
        """Those of `names` that are manifests; called for every file of a folder."""
        ...

    def decisions(self, folder: str) -> frozenset[str]:
        """Those of `names` that are decisions; called for every file of a folder."""
        ...

    def refused_keys(self, folder: str) -> tuple[str, ...]:
        """Keys directly in a folder that are refused; no other method returns them."""
        ...

    def below(self, prefix: str) -> list[ObjectInfo]: ...


class LiveView:
    """Reads the store, each object and folder once."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._levels: dict[str, Level] = {}
        self._infos: dict[str, ObjectInfo | None] = {}
        self._below: dict[str, list[ObjectInfo]] = {}
        self._manifests: dict[str, tuple[str, ...]] = {}
        self._decisions: dict[str, frozenset[str]] = {}
        self.unreadable: dict[str, str] = {}

    def head(self, key: str) -> ObjectInfo | None:
        if key not in self._infos:
            level = self._levels.get(folder_of(key))
            if level is not None:
                self._ask(level, [key])
                return self._infos[key]
            try:
                self._infos[key] = self._store.head(key)
            except ObjectRefused as error:
                self._infos[key], self.unreadable[key] = None, str(error)
        return self._infos[key]

    def know(self, key: str, info: ObjectInfo | None) -> None:
        """What is there, for a caller that need not ask."""
        self._infos.setdefault(key, info)

    def infos(self, keys: Collection[str]) -> list[ObjectInfo]:
        for folder in {folder_of(key) for key in keys} & self._levels.keys():
            unknown = [key for key in keys if folder_of(key) == folder and key not in self._infos]
            if unknown:
                self._ask(self._levels[folder], unknown)
        return [info for key in keys if (info := self.head(key)) is not None]

    def names(self, folder: str) -> tuple[str, ...]:
        if folder not in self._levels:
            self._levels[folder] = self._store.level(folder)
        return self._levels[folder].keys

    def manifests(self, folder: str) -> tuple[str, ...]:
        if folder not in self._manifests:
            self._manifests[folder] = tuple(key for key in self.names(folder) if is_manifest(basename(key)))
        return self._manifests[folder]

    def decisions(self, folder: str) -> frozenset[str]:
        if folder not in self._decisions:
            listed = next((p for p in self._below if folder.startswith(p)), None)
            if listed is None or folder in self._levels:
                self._decisions[folder] = _decisions(self.names(folder))
            else:
                self._decisions |= _decisions_by_folder([info.key for info in self._below[listed]])
        return self._decisions.get(folder, frozenset())

    def refused_keys(self, folder: str) -> tuple[str, ...]:
        self.names(folder)
        return self._levels[folder].refused_keys

    def below(self, prefix: str) -> list[ObjectInfo]:
        if prefix not in self._below:
            above = self._levels.get(folder_of(prefix.rstrip("/")))
            known_empty = above is not None and prefix.endswith("/") and prefix not in above.folders
            self._below[prefix] = [] if known_empty else list(self._store.objects(prefix, unreadable=self.unreadable))
        return self._below[prefix]

    def _ask(self, level: Level, keys: list[str]) -> None:
        there = {info.key: info for info in level.infos(keys)}
        for key in keys:
            self._infos[key] = there.get(key)
            if key in level.unreadable:
                self.unreadable[key] = level.unreadable[key]


class ListedView:
    """Reads from one listing, so a sweep costs one pass over the bucket instead of one call per object."""

    def __init__(self, objects: Iterable[ObjectInfo], unreadable: Mapping[str, str] | None = None) -> None:
        self.unreadable = unreadable or {}
        self._objects = {o.key: o for o in objects}
        self._keys = sorted(self._objects)
        self._names: dict[str, list[str]] = {}
        self._manifests: dict[str, list[str]] = {}
        for key in self._keys:
            self._names.setdefault(folder_of(key), []).append(key)
            if is_manifest(basename(key)):
                self._manifests.setdefault(folder_of(key), []).append(key)
        self._decisions = _decisions_by_folder(self._keys)

    def head(self, key: str) -> ObjectInfo | None:
        return self._objects.get(key)

    def infos(self, keys: Collection[str]) -> list[ObjectInfo]:
        return [self._objects[key] for key in keys if key in self._objects]

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(self._names.get(folder, ()))

    def decisions(self, folder: str) -> frozenset[str]:
        return self._decisions.get(folder, frozenset())

    def manifests(self, folder: str) -> tuple[str, ...]:
        return tuple(self._manifests.get(folder, ()))

    def refused_keys(self, folder: str) -> tuple[str, ...]:
        return tuple(key for key in self.unreadable if folder_of(key) == folder and refusal(key) is not None)

    def below(self, prefix: str) -> list[ObjectInfo]:
        found = []
        for n in range(bisect_left(self._keys, prefix), len(self._keys)):
            if not self._keys[n].startswith(prefix):
                break
            found.append(self._objects[self._keys[n]])
        return found


class Packages:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def find(self, view: BucketView, workflow: Workflow) -> tuple[Workflow, Package]:
        """A workflow with its package: the one it names, or `config/` or `config.zip` beside the manifest."""
        package = self._at_its_place(view, workflow)
        unnamed = workflow.unnamed_zip
        if unnamed is not None and not package.refs and view.head(unnamed) is not None:
            workflow = workflow.with_zip()
            package = self._at_its_place(view, workflow)
        return workflow, package

    def _at_its_place(self, view: BucketView, workflow: Workflow) -> Package:
        at = workflow.config_place
        found = view.below(at) if at.endswith("/") else view.infos([at])
        package = find_package(workflow, found)
        if not at.endswith("/") and found:
            try:
                check_zip(self._store.read(at, version=found[0].version, limit=MAX_PACKAGE_BYTES))
            except (PackageRefused, ObjectTooLarge) as error:
                raise ManifestInvalid(
                    [Problem("$.config", f"{at}: {error}", "a plain zip; see docs/guides/rule-author.md")]
                ) from None
            except (ObjectMissing, ObjectChanged):
                return Package((), 0.0, missing=at)
        return package


class Workflows:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._texts = KnownTexts(store)
        self._clock = clock
        self._parsed = BoundedCache[tuple[str, str], Workflow | ManifestInvalid](_PARSED_BYTES)
        self._above = BoundedCache[str, tuple[int, float, tuple[ObjectInfo, ...]]](_CACHED)

    def valid(self, manifests: Iterable[ObjectInfo], rejected: list[str]) -> list[Workflow]:
        """The valid ones; the keys of the others are added to `rejected`."""
        found = []
        for info in manifests:
            loaded = self.load(info)
            if isinstance(loaded, Workflow):
                found.append(loaded)
            elif loaded is not None and info.key not in rejected:
                rejected.append(info.key)
        return found

    def load(self, info: ObjectInfo) -> Workflow | ManifestInvalid | None:
        """A manifest at its version; None if it is gone."""
        known = self._parsed.get((info.key, info.version))
        if known is None:
            body = b""
            try:
                tenant = info.key.split("/")[1]
                body = self._texts.read(tenant, info.ref, limit=MAX_MANIFEST_BYTES)
                known = _parsed(body, info)
            except ObjectTooLarge as error:
                known = ManifestInvalid([Problem("$", str(error), f"at most {MAX_MANIFEST_BYTES} bytes")])
            except (ObjectMissing, ObjectChanged):
                return None
            weight = weight_of(body) if isinstance(known, Workflow) else weight_of_problems(known.problems)
            self._parsed.put((info.key, info.version), known, weight)
        if isinstance(known, Workflow) and known.info != info:
            known = Workflow(known.manifest, info, known.tenant, known.folder, known.standing)
        return known

    def above(
        self,
        view: BucketView,
        places: Sequence[str],
        tenant: str,
        concerned: Callable[[Workflow], bool],
        *,
        generations: Generations | None,
        rejected: list[str],
    ) -> list[Workflow]:
        """A tenant's workflows at these places (folders of the inbox, `standing_places`) that `concerned` accepts.

        `generations`: first read after the change that is scanned; None: do not use the cache.
        """
        found = []
        for at in places:
            generation = None if generations is None else generations.of(at.split("/")[1])
            cached = None if generation is None else self._cached(at, generation)
            workflows = self._concerned(cached or (), tenant, concerned, rejected)
            if cached is None or not all(_same(view.head(w.info.key), w.info) for w in workflows):
                infos = manifests_at(view, at)
                if generation is not None:
                    self._above.put(at, (generation, self._clock.now(), tuple(infos)))
                workflows = self._concerned(infos, tenant, concerned, rejected)
            found += workflows
        return found

    def of_tenant(self, manifests: Iterable[ObjectInfo], tenant: str, rejected: list[str]) -> list[Workflow]:
        """The valid ones that serve a tenant; the keys of the invalid ones are added to `rejected`."""
        return [own for w in self.valid(manifests, rejected) if (own := w.for_tenant(tenant)) is not None]

    def recall(self, view: BucketView, memory: str, generations: Generations) -> None:
        """Let a view know a memory or an overlay of its tenant, as it was when last asked for in this generation."""
        if not isinstance(view, LiveView):
            return
        generation = generations.of(memory.split("/")[1])
        cached = self._cached(memory, generation)
        if cached is None:
            info = view.head(memory)
            self._above.put(memory, (generation, self._clock.now(), (info,) if info is not None else ()))
        else:
            view.know(memory, cached[0] if cached else None)

    def _concerned(
        self, infos: Iterable[ObjectInfo], tenant: str, concerned: Callable[[Workflow], bool], rejected: list[str]
    ) -> list[Workflow]:
        return [w for w in self.of_tenant(infos, tenant, rejected) if concerned(w)]

    def _cached(self, at: str, generation: int) -> tuple[ObjectInfo, ...] | None:
        then, when, infos = self._above.get(at) or (-1, 0.0, ())
        fresh = then == generation and self._clock.now() - when < _CACHED_SECONDS
        return infos if fresh else None


def _parsed(body: bytes, info: ObjectInfo) -> Workflow | ManifestInvalid:
    try:
        return make_workflow(read_manifest(body), info)
    except StoreUnavailable:
        raise
    except ManifestInvalid as error:
        return ManifestInvalid(error.problems)  # without what its traceback holds on to
    except Exception as error:  # noqa: BLE001 - a manifest that breaks the parser must not break the scan
        problem = f"cannot be read ({type(error).__name__})"
        return ManifestInvalid([Problem("$", problem, "a manifest as docs/reference/manifest.md describes it")])


def standing_places(tenant: str) -> list[str]:
    """Where the workflows are that serve all of a tenant's inbox: its own, and the shared ones."""
    return [f"{CONFIGS}{tenant}/", SHARED]


def manifests_at(view: BucketView, at: str) -> list[ObjectInfo]:
    """The manifests directly in a folder of the inbox, or anywhere in configs of a tenant or in the shared ones."""
    if at.startswith(CONFIGS):
        return [o for o in view.below(at) if is_manifest(basename(o.key)) and not is_set_aside(o.key)]
    return view.infos(view.manifests(at))


def _same(now: ObjectInfo | None, then: ObjectInfo) -> bool:
    return now is not None and now.version == then.version
