"""The standing workflows of a bucket and their versions: the live one, those that ran, and a draft.

A draft is `.draft/` in the workflow's folder. No drop is processed with it: it is tried, tested and replayed, and then
promoted. What was live is kept before it is replaced, so that every promotion can be reverted. A promotion that changes
nothing but the manifest is one conditional write. One that changes the config removes the manifest first and puts it
last, so that no file is ever processed with half of each; files that come in between wait for the manifest.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import basename

from core.drops import MAX_PACKAGE_BYTES, Workflow, make_workflow
from core.errors import ObjectChanged, ObjectMissing, PreconditionFailed, UsageError
from core.jobs import ObjectRef, digest_of
from core.keys import CONFIGS, DRAFT, SHARED
from core.manifests import MAX_MANIFEST_BYTES, Manifest
from core.ports import ObjectInfo, ObjectStore
from core.replays import VersionPins
from core.versions import CONFIG, ID_LENGTH, MANIFEST, version_folder, version_id, versions_folder
from handlers.workflows import LiveView, Packages, manifests_at
from infra.parsing import read_manifest

LIVE, DRAFTED = "live", "draft"
_ZIP = "config.zip"
_NOTE_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Version:
    """A manifest and its config, by their names inside the package. Its id is made of their content."""

    id: str
    manifest: bytes
    package: Mapping[str, bytes]
    stored_at: float | None = None  # when it was kept; None: it is not, yet

    @property
    def read(self) -> Manifest:
        return read_manifest(self.manifest)


@dataclass(frozen=True, slots=True)
class Standing:
    """A workflow as it is live: its manifest and where that is."""

    workflow: Workflow

    @property
    def name(self) -> str:
        return self.workflow.manifest.name

    @property
    def key(self) -> str:
        return self.workflow.info.key

    @property
    def folder(self) -> str:
        return self.workflow.folder


class Library:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def all(self, tenant: str | None = None) -> Iterator[Standing]:
        """The valid standing workflows: of a tenant, else the shared ones and those of every tenant."""
        view, place = LiveView(self._store), CONFIGS if tenant is None else f"{CONFIGS}{tenant}/"
        for info in manifests_at(view, place):
            with contextlib.suppress(UsageError, ObjectMissing):
                yield self._loaded(info)

    def find(self, name: str, tenant: str | None = None) -> Standing:
        """The workflow of this name: of a tenant, else the shared one. Raises UsageError."""
        place = SHARED if tenant is None else f"{CONFIGS}{tenant}/"
        found = [self._loaded(info) for info in manifests_at(LiveView(self._store), place)]
        named = [one for one in found if one.name == name]
        if not named:
            known = ", ".join(sorted(one.name for one in found)) or "none"
            more = "" if tenant else "; name a tenant's own with --tenant"
            raise UsageError(f"there is no workflow {name} below {place}; there are: {known}{more}")
        if len(named) > 1:
            raise UsageError(f"several manifests are named {name}: {', '.join(one.key for one in named)}")
        return named[0]

    def versions(self, standing: Standing) -> list[Version]:
        """The versions of a workflow that are kept, the newest first."""
        folder, found = versions_folder(standing.key), list[Version]()
        for info in self._store.objects(folder):
            inside = info.key.removeprefix(folder)
            if inside.count("/") == 1 and basename(inside) == MANIFEST:
                version = self._stored(standing, inside.split("/")[0], info.modified)
                if version is not None and version.read.name == standing.name:
                    found.append(version)
        return sorted(found, key=lambda one: (one.stored_at or 0.0, one.id), reverse=True)

    def load(self, standing: Standing, which: str) -> Version:
        """A version by its id or the beginning of it, `live` or `draft`. Raises UsageError."""
        if which == LIVE:
            return self._live(standing)
        if which == DRAFTED:
            return self._draft(standing)
        matching = [one for one in self.versions(standing) if one.id.startswith(which)]
        if len(matching) != 1:
            known = ", ".join(one.id for one in self.versions(standing)) or "none"
            what = "several versions" if matching else "no version"
            raise UsageError(f"{which} names {what} of {standing.name}; kept are: {known}; and `live`, `draft`")
        return matching[0]

    def has_draft(self, standing: Standing) -> bool:
        return self._store.head(f"{standing.folder}{DRAFT}{MANIFEST}") is not None

    def put_draft(self, standing: Standing, files: Mapping[str, bytes]) -> Version:
        """Replace the draft by these files, `manifest.json` among them, which is written last."""
        place = f"{standing.folder}{DRAFT}"
        self._store.delete_prefix(place)
        for name, body in sorted(files.items(), key=lambda one: one[0] == MANIFEST):
            self._store.put(place + name, body)
        return self._draft(standing)

    def store_version(self, standing: Standing, version: Version) -> VersionPins:
        """Keep a version, if it is not kept, and pin it."""
        folder = version_folder(standing.key, version.id)
        refs = [self._put_new(f"{folder}{CONFIG}{name}", body) for name, body in sorted(version.package.items())]
        manifest = self._put_new(f"{folder}{MANIFEST}", version.manifest)
        zipped = [ref.key for ref in refs] == [f"{folder}{CONFIG}{_ZIP}"]
        place = refs[0].key if zipped else f"{folder}{CONFIG}"
        return VersionPins(version.id, manifest, tuple(refs), place)

    def promote(self, standing: Standing, version: Version) -> Version:
        """Make a version the live one; returns what was live, which is kept. Raises UsageError if others changed it."""
        try:
            live = self._live(standing)
        except (ObjectMissing, ObjectChanged):
            raise UsageError(f"{standing.key} was changed by somebody else; check it and repeat") from None
        workflow = make_workflow(version.read, standing.workflow.info)
        if version.read.name != standing.name:
            raise UsageError(f"version {version.id} is of workflow {version.read.name}, not of {standing.name}")
        self.store_version(standing, live)
        self._store.put(f"{versions_folder(standing.key)}{_before(standing)}", json.dumps({"id": live.id}).encode())
        own = not workflow.config_place.startswith(SHARED) or workflow.config_place.startswith(standing.folder)
        if dict(version.package) == dict(live.package) or not own:
            try:
                self._store.put(standing.key, version.manifest, if_version=standing.workflow.info.version)
            except PreconditionFailed:
                raise UsageError(f"{standing.key} was changed by somebody else; check it and repeat") from None
            return live
        self._store.delete(standing.key)
        before = Packages(self._store).find(LiveView(self._store), standing.workflow)[1]
        place = workflow.config_place if _ZIP not in version.package else f"{standing.folder}{_ZIP}"
        wanted = {_place(place, name): body for name, body in version.package.items()}
        self._store.delete_all([ref.key for ref in before.refs if ref.key not in wanted])
        for key, body in wanted.items():
            self._store.put(key, body)
        self._store.put(standing.key, version.manifest)
        return live

    def before_live(self, standing: Standing) -> str:
        """The id of the version that was live before the last promotion. Raises UsageError if there was none."""
        try:
            body = self._store.read(f"{versions_folder(standing.key)}{_before(standing)}", limit=_NOTE_BYTES)
            return str(json.loads(body)["id"])
        except (ObjectMissing, ValueError, KeyError, TypeError):
            raise UsageError(f"nothing was promoted to {standing.name} yet; name a version to go back to") from None

    def _loaded(self, info: ObjectInfo) -> Standing:
        body = self._store.read(info.key, version=info.version, limit=MAX_MANIFEST_BYTES)
        return Standing(make_workflow(read_manifest(body), info))

    def _live(self, standing: Standing) -> Version:
        info = standing.workflow.info
        body = self._store.read(info.key, version=info.version, limit=MAX_MANIFEST_BYTES)
        workflow, package = Packages(self._store).find(LiveView(self._store), standing.workflow)
        names = {_inside(ref.key, workflow.config_place): ref for ref in package.refs}
        parts = [(ref.key.removeprefix(workflow.config_place), ref.digest) for ref in package.refs]
        files = {n: self._store.read(r.key, version=r.version, limit=MAX_PACKAGE_BYTES) for n, r in names.items()}
        return Version(version_id(digest_of([("manifest", info.digest), *parts])), body, files)

    def _draft(self, standing: Standing) -> Version:
        place = f"{standing.folder}{DRAFT}"
        found = {info.key.removeprefix(place): info for info in self._store.objects(place)}
        if MANIFEST not in found:
            raise UsageError(f"workflow {standing.name} has no draft; put one into {place}, or: ade workflow draft")
        bodies = {n: self._store.read(i.key, version=i.version, limit=MAX_PACKAGE_BYTES) for n, i in found.items()}
        workflow = make_workflow(read_manifest(bodies[MANIFEST]), standing.workflow.info)
        named = [name for name in found if workflow.is_config(standing.folder + name)]
        if workflow.unnamed_zip is not None and named == [_ZIP]:
            workflow = workflow.with_zip()
        place_of = workflow.config_place
        parts = [((standing.folder + n).removeprefix(place_of), found[n].digest) for n in named]
        digest = digest_of([("manifest", found[MANIFEST].digest), *parts])
        files = {_inside(standing.folder + n, place_of): bodies[n] for n in named}
        return Version(version_id(digest), bodies[MANIFEST], files)

    def _stored(self, standing: Standing, name: str, stored_at: float) -> Version | None:
        folder = version_folder(standing.key, name)
        try:
            manifest = self._store.read(f"{folder}{MANIFEST}", limit=MAX_MANIFEST_BYTES)
            files = {
                info.key.removeprefix(f"{folder}{CONFIG}"): self._store.read(info.key, limit=MAX_PACKAGE_BYTES)
                for info in self._store.objects(f"{folder}{CONFIG}")
            }
        except ObjectMissing:
            return None  # it was forgotten just now
        return Version(name, manifest, files, stored_at)

    def _put_new(self, key: str, body: bytes) -> ObjectRef:
        info = self._store.head(key)
        if info is None:
            with contextlib.suppress(PreconditionFailed):
                return self._store.put(key, body, if_absent=True).ref
            info = self._store.head(key)
        if info is None:
            raise UsageError(f"{key} was removed while it was written; repeat")
        return info.ref


def _before(standing: Standing) -> str:
    """The name of the note on which version was live before, beside the versions."""
    return f"{standing.name}.before.json"


def _inside(key: str, place: str) -> str:
    """The name of a file inside its package; a zip has one name."""
    return key.removeprefix(place) if place.endswith("/") else _ZIP


def _place(place: str, name: str) -> str:
    return place + name if place.endswith("/") else place


def differences(before: Version, after: Version) -> list[tuple[str, str, str]]:
    """What differs: a path of the manifest or a file, and what it is before and after; empty where it is not there."""
    old, new = _leaves(json.loads(before.manifest)), _leaves(json.loads(after.manifest))
    found = [(path, old.get(path, ""), new.get(path, "")) for path in dict.fromkeys((*old, *new))]
    names = dict.fromkeys((*before.package, *after.package))
    files = [(f"config/{n}", _digest(before.package.get(n)), _digest(after.package.get(n))) for n in names]
    return [one for one in (*found, *files) if one[1] != one[2]]


def _digest(body: bytes | None) -> str:
    return "" if body is None else hashlib.sha256(body).hexdigest()[:ID_LENGTH]


def _leaves(value: object, path: str = "") -> dict[str, str]:
    """Each value of a document by its path; fields and other named things by their names."""
    if isinstance(value, dict) and value:
        return {k: v for key, inner in value.items() for k, v in _leaves(inner, f"{path}.{key}".lstrip(".")).items()}
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in value)
    ):
        names = [one["name"] for one in value]
        order = {f"{path}[order]": json.dumps(names, ensure_ascii=False)} if len(names) > 1 else {}
        return order | {k: v for one in value for k, v in _leaves(one, f"{path}.{one['name']}").items()}
    return {path: json.dumps(value, ensure_ascii=False)}
