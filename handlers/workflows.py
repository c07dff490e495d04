"""Config packages at their places.

Manifests as workflows: each version read and parsed once; those above a drop remembered while nobody changed them.

Theory of operation. A file may concern the manifests of its own folder, of the folders above it, and the standing ones
of its tenant. The own folder is listed for every look. The others change rarely, and a tenant's top folder lists
every drop it ever had, so what was found there is remembered under the tenant's generation. Whoever is told of a
manifest that reaches beyond its own folder counts the generation up before it lists that manifest's inputs; whoever
is told of a file reads the generation after the file was there. So one of the two sees the other: either the file's
look finds a new generation and lists again, or the manifest's look lists after the file came. A remembered manifest
that concerns a file is asked for once more before it counts, for it may have changed or gone. What is remembered is
forgotten after a minute, since an event may be lost, and never used to say that no manifest selects a file.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from posixpath import basename
from typing import TypeVar

from core.drops import MAX_PACKAGE_BYTES, Package, Workflow, find_package, make_workflow
from core.errors import ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, PackageRefused, Problem
from core.keys import CONFIGS, is_manifest
from core.manifests import MAX_MANIFEST_BYTES, parse_manifest
from core.packages import check_zip
from core.ports import Clock, ObjectInfo, ObjectStore
from handlers.views import View


class Packages:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def find(self, view: View, workflow: Workflow) -> tuple[Workflow, Package]:
        """A workflow with its package: the one it names, or what stands beside it as `config/` or `config.zip`."""
        package = self._at_its_place(view, workflow)
        unnamed = workflow.unnamed_zip
        if unnamed is not None and not package.refs and view.head(unnamed) is not None:
            workflow = workflow.with_zip()
            package = self._at_its_place(view, workflow)
        return workflow, package

    def _at_its_place(self, view: View, workflow: Workflow) -> Package:
        at = workflow.config_place
        there = view.below(at) if at.endswith("/") else view.infos([at])
        package = find_package(workflow, there)
        if not at.endswith("/") and there:
            try:
                check_zip(self._store.read(at, version=there[0].version, limit=MAX_PACKAGE_BYTES))
            except (PackageRefused, ObjectTooLarge) as error:
                raise ManifestInvalid(
                    [Problem("$.config", f"{at}: {error}", "a plain zip; see docs/rule-author.md")]
                ) from None
            except (ObjectMissing, ObjectChanged):
                return Package((), 0.0, missing=at)
        return package


K = TypeVar("K")
V = TypeVar("V")

_PARSED = 2000
_REMEMBERED = 10_000
_REMEMBERED_SECONDS = 60.0


class Workflows:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._parsed: OrderedDict[tuple[str, str], Workflow | ManifestInvalid] = OrderedDict()
        self._above: OrderedDict[str, tuple[int, float, tuple[ObjectInfo, ...]]] = OrderedDict()

    def valid(self, manifests: Iterable[ObjectInfo], rejected: list[str]) -> list[Workflow]:
        """Those that validate; the keys of the others are added to `rejected`."""
        found = []
        for info in manifests:
            loaded = self.load(info)
            if isinstance(loaded, Workflow):
                found.append(loaded)
            elif loaded is not None and info.key not in rejected:
                rejected.append(info.key)
        return found

    def load(self, info: ObjectInfo) -> Workflow | ManifestInvalid | None:
        """A manifest at its version; None where it is gone again."""
        with self._lock:
            known = self._parsed.get((info.key, info.version))
        if known is None:
            try:
                body = self._store.read(info.key, version=info.version, limit=MAX_MANIFEST_BYTES)
            except ObjectTooLarge as error:
                known = ManifestInvalid([Problem("$", str(error), f"at most {MAX_MANIFEST_BYTES} bytes")])
            except (ObjectMissing, ObjectChanged):
                return None
            else:
                known = _parsed(body, info)
            self._keep(self._parsed, (info.key, info.version), known, _PARSED)
        if isinstance(known, Workflow) and known.info != info:
            known = Workflow(known.manifest, info, known.tenant, known.folder, known.standing)
        return known

    def above(
        self,
        view: View,
        places: Sequence[str],
        concerned: Callable[[Workflow], bool],
        *,
        generation: int | None,
        rejected: list[str],
    ) -> list[Workflow]:
        """Workflows at these places (folders of the inbox, a tenant's configs) that are concerned.

        `generation`: of the tenant, read after the change that is looked at; None: trust no memory.
        """
        found = []
        for at in places:
            remembered = None if generation is None else self._remembered(at, generation)
            workflows = self._concerned(remembered or (), concerned, rejected)
            if remembered is None or not all(_same(view.head(w.info.key), w.info) for w in workflows):
                infos = manifests_at(view, at)
                if generation is not None:
                    self._keep(self._above, at, (generation, self._clock.now(), tuple(infos)), _REMEMBERED)
                workflows = self._concerned(infos, concerned, rejected)
            found += workflows
        return found

    def _concerned(
        self, infos: Iterable[ObjectInfo], concerned: Callable[[Workflow], bool], rejected: list[str]
    ) -> list[Workflow]:
        return [w for w in self.valid(infos, rejected) if concerned(w)]

    def _remembered(self, at: str, generation: int) -> tuple[ObjectInfo, ...] | None:
        with self._lock:
            then, when, infos = self._above.get(at, (-1, 0.0, ()))
        fresh = then == generation and self._clock.now() - when < _REMEMBERED_SECONDS
        return infos if fresh else None

    def _keep(self, where: OrderedDict[K, V], key: K, value: V, most: int) -> None:
        with self._lock:
            where[key] = value
            where.move_to_end(key)
            if len(where) > most:
                where.popitem(last=False)


def _parsed(body: bytes, info: ObjectInfo) -> Workflow | ManifestInvalid:
    try:
        return make_workflow(parse_manifest(body), info)
    except ManifestInvalid as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a manifest does to its parser, it does to nobody else
        said = f"cannot be read ({type(error).__name__})"
        return ManifestInvalid([Problem("$", said, "a manifest as docs/manifest.md describes it")])


def manifests_at(view: View, at: str) -> list[ObjectInfo]:
    """The manifests directly in a folder of the inbox, or anywhere in a tenant's configs."""
    if at.startswith(CONFIGS):
        return [o for o in view.below(at) if is_manifest(basename(o.key))]
    return view.infos(view.manifests(at))


def _same(now: ObjectInfo | None, then: ObjectInfo) -> bool:
    return now is not None and now.version == then.version
