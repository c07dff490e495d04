"""The standing workflows of a bucket and their versions: the live one, those that ran, and a draft.

A draft is `.draft/` in the workflow's folder. No drop is processed with it: it is tried, tested and replayed, and then
promoted. What was live is kept before it is replaced, so that every promotion can be reverted. A promotion that changes
nothing but the manifest is one conditional write. One that changes the config removes the manifest first and puts it
last, so that no file is ever processed with half of each; files that come in between wait for the manifest. A note
beside the versions says what is promoted before anything is removed: whoever finds no manifest goes on from there, and
of two that promote at once, the one whose note was replaced stops. A draft is replaced on condition that it is the one
that its author saw: a claim takes the place of its manifest while its config is written.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename
from secrets import token_hex

from core.drops import MAX_PACKAGE_BYTES, TESTS, Workflow, is_case_file, make_workflow
from core.errors import (
    ManifestInvalid,
    ObjectChanged,
    ObjectMissing,
    ObjectTooLarge,
    PreconditionFailed,
    UsageError,
)
from core.jobs import ObjectRef, digest_of
from core.keys import CONFIGS, DRAFT, SHARED
from core.manifests import MAX_MANIFEST_BYTES, Manifest
from core.ports import ObjectInfo, ObjectStore
from core.replays import VersionPins
from core.versions import (
    CONFIG,
    ID_LENGTH,
    MANIFEST,
    MAX_PROMOTION_BYTES,
    Promotion,
    is_promotion,
    parse_promotion,
    promotion_key,
    version_folder,
    version_id,
    versions_folder,
)
from handlers.workflows import LiveView, Packages, manifests_at
from infra.newest import read_newest
from infra.parsing import read_manifest

LIVE, DRAFTED = "live", "draft"
_ZIP = "config.zip"
_OTHERS = "{} was changed by somebody else; check it and repeat"
_CLAIM = b'{"draft": "is being written"'


class WorkflowChanged(UsageError):
    """Somebody else changed the workflow or its draft since it was read."""


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
    # A promotion that was begun and did not end: `workflow` was live before it, and nothing is now.
    unfinished: Promotion | None = None
    is_live: bool = True  # False: nothing was promoted yet, and `workflow` is its draft
    draft: str | None = None  # the version of the object that is the manifest of its draft, or a claim on it

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
        return iter(self._below(CONFIGS if tenant is None else f"{CONFIGS}{tenant}/"))

    def find(self, name: str, tenant: str | None = None) -> Standing:
        """The workflow of this name: of a tenant, else the shared one. Raises UsageError."""
        place = SHARED if tenant is None else f"{CONFIGS}{tenant}/"
        found = self._below(place)
        named = self._named(name, found)
        if named is None:
            known = ", ".join(sorted(one.name for one in found)) or "none"
            more = "" if tenant else "; name a tenant's own with --tenant"
            raise UsageError(f"there is no workflow {name} below {place}; there are: {known}{more}")
        return named

    def find_or_new(self, name: str, manifest: Manifest, tenant: str | None = None) -> Standing:
        """The workflow of this name, of a tenant or else the shared one; a new one of this manifest if there is none.

        Raises UsageError, and ManifestInvalid for a new one that names nothing it may serve.
        """
        place = SHARED if tenant is None else f"{CONFIGS}{tenant}/"
        named = self._named(name, self._below(place))
        if named is not None:
            return named
        if manifest.name != name:
            raise UsageError(f"there is no workflow {name}, and the manifest is of {manifest.name}; name it like that")
        return self.new(f"{place}{name}/{MANIFEST}", manifest)

    def _named(self, name: str, found: Sequence[Standing]) -> Standing | None:
        """The workflow of this name; None if there is none. Raises UsageError if there are several."""
        named = [one for one in found if one.name == name]
        if len(named) > 1:
            raise UsageError(f"several manifests are named {name}: {', '.join(one.key for one in named)}")
        return named[0] if named else None

    def _below(self, place: str) -> list[Standing]:
        """The workflows whose manifests are below a place, and those that a promotion left without a valid one."""
        found = list[Standing]()
        for info in manifests_at(LiveView(self._store), place):
            with contextlib.suppress(ManifestInvalid, ObjectMissing):
                found.append(self._loaded(info))
        live = {one.key for one in found}
        for key in list(self._store.keys(place)):
            promotion = self._promotion(key) if is_promotion(key) else None
            if promotion is not None and promotion.manifest not in live:
                found += self._left(promotion)
        return [*found, *self._unpublished(place, {one.key for one in found})]

    def _unpublished(self, place: str, known: set[str]) -> Iterator[Standing]:
        """The workflows of which there is only a draft."""
        for key in list(self._store.keys(place)):
            live = key.removesuffix(DRAFT + MANIFEST) + MANIFEST
            if not key.endswith(f"/{DRAFT}{MANIFEST}") or live in known or self._store.head(live) is not None:
                continue
            with contextlib.suppress(ManifestInvalid, ObjectMissing, ObjectTooLarge):
                yield self.new(live, read_manifest(self._store.read(key, limit=MAX_MANIFEST_BYTES)))

    def new(self, key: str, manifest: Manifest) -> Standing:
        """A workflow that is not live yet: for its first draft. Raises ManifestInvalid."""
        info = ObjectInfo(key=key, version="", digest="", size=0, modified=0.0)
        return replace(self._standing(make_workflow(manifest, info)), is_live=False)

    def at(self, key: str) -> Standing | None:
        """The workflow whose manifest is, or will be, at a key."""
        return next((one for one in self._below(key.rpartition("/")[0] + "/") if one.key == key), None)

    def case_files(self, standing: Standing, *, most: int) -> dict[str, bytes]:
        """The files of a workflow's test cases, by their names below `tests/`, as many bytes of them."""
        place, found = f"{standing.folder}{TESTS}/", dict[str, bytes]()
        for info in self._store.objects(place):
            if info.size <= most and is_case_file(f"{TESTS}/{info.key.removeprefix(place)}"):
                most -= info.size
                found[info.key.removeprefix(place)] = self._store.read(info.key, version=info.version, limit=info.size)
        return found

    def case_digests(self, standing: Standing) -> dict[str, str]:
        """The digests of the files of a workflow's test cases."""
        place = f"{standing.folder}{TESTS}/"
        return {info.key.removeprefix(place): info.digest for info in self._store.objects(place)}

    def config_files(self, standing: Standing) -> dict[str, bytes]:
        """The files of a workflow's own config by their names below its folder: of its draft, else of what is live."""
        draft = f"{standing.folder}{DRAFT}"
        if self.has_draft(standing):
            found = {info.key.removeprefix(draft): info.ref for info in self._store.objects(draft)}
        else:
            found = {ref.key.removeprefix(standing.folder): ref for ref in self._package(standing.workflow)}
        return {
            name: self._store.read(ref.key, version=ref.version, limit=MAX_PACKAGE_BYTES)
            for name, ref in found.items()
            if name != MANIFEST
        }

    def _left(self, promotion: Promotion) -> Iterator[Standing]:
        """The workflow of a promotion that did not end, as it was before; nothing if that is not kept."""
        before = f"{version_folder(promotion.manifest, promotion.id)}{MANIFEST}"
        with contextlib.suppress(ManifestInvalid, ObjectMissing):
            manifest = read_manifest(self._store.read(before, limit=MAX_MANIFEST_BYTES))
            info = ObjectInfo(key=promotion.manifest, version="", digest="", size=0, modified=0.0)
            yield self._standing(make_workflow(manifest, info), promotion)

    def _promotion(self, key: str) -> Promotion | None:
        with contextlib.suppress(ObjectMissing, ObjectTooLarge):
            return parse_promotion(key, self._store.read(key, limit=MAX_PROMOTION_BYTES))
        return None

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
            _check_ended(standing)
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
        try:
            body = self._store.read(f"{standing.folder}{DRAFT}{MANIFEST}", limit=MAX_MANIFEST_BYTES)
        except ObjectMissing:
            return False
        except ObjectTooLarge:
            return True
        return not body.startswith(_CLAIM)

    def draft(self, standing: Standing) -> Version | None:
        """The draft; None if there is none that can be used: it does not validate, or somebody is writing it."""
        with contextlib.suppress(UsageError, ManifestInvalid, ObjectTooLarge):
            return self._draft(standing)
        return None

    def put_draft(self, standing: Standing, files: Mapping[str, bytes]) -> Version:
        """Replace the draft by these files, its manifest last. Raises WorkflowChanged if the draft is not the one that
        there was when the workflow was read, or if somebody else writes one at the same time."""
        place = f"{standing.folder}{DRAFT}"
        with _changed_by_others(f"the draft of {standing.name}"):
            there = {info.key.removeprefix(place): info for info in self._store.objects(place)}
            written = standing.draft
            if not self._is_config(there, files):
                claim = _CLAIM + f', "by": "{token_hex(8)}"}}'.encode()
                written = self._put_over(place + MANIFEST, claim, written)
                self._replace_draft(place, files, written)
            self._put_over(place + MANIFEST, files[MANIFEST], written)
        return self._draft(standing, files)

    def _is_config(self, there: Mapping[str, ObjectInfo], files: Mapping[str, bytes]) -> bool:
        """Whether the config of a draft is that of these files."""
        config = {name: body for name, body in files.items() if name != MANIFEST}
        return there.keys() - {MANIFEST} == config.keys() and all(
            there[name].size == len(body)
            and self._store.read(there[name].key, version=there[name].version, limit=len(body)) == body
            for name, body in config.items()
        )

    def _replace_draft(self, place: str, files: Mapping[str, bytes], claim: str) -> None:
        """Write the config of a draft in place of the one that is there, as long as the claim on it holds."""
        for info in list(self._store.objects(place)):
            name = info.key.removeprefix(place)
            if name != MANIFEST and name not in files:
                self._check_claim(place, claim)
                self._store.delete(info.key)
        for name in sorted(files.keys() - {MANIFEST}):
            there = self._store.head(place + name)
            self._check_claim(place, claim)
            self._put_over(place + name, files[name], there.version if there else None)

    def _check_claim(self, place: str, claim: str) -> None:
        there = self._store.head(place + MANIFEST)
        if there is None or there.version != claim:
            raise WorkflowChanged(_OTHERS.format(place))

    def _put_over(self, key: str, body: bytes, version: str | None) -> str:
        """Write an object over a version of it, or where there is none; returns its new version."""
        return self._store.put(key, body, if_version=version, if_absent=version is None).version

    def store_version(self, standing: Standing, version: Version) -> VersionPins:
        """Keep a version, if it is not kept, and pin it."""
        folder = version_folder(standing.key, version.id)
        refs = [self._put_new(f"{folder}{CONFIG}{name}", body) for name, body in sorted(version.package.items())]
        manifest = self._put_new(f"{folder}{MANIFEST}", version.manifest)
        zipped = [ref.key for ref in refs] == [f"{folder}{CONFIG}{_ZIP}"]
        place = refs[0].key if zipped else f"{folder}{CONFIG}"
        return VersionPins(version.id, manifest, tuple(refs), place)

    def promote(self, standing: Standing, version: Version) -> str:
        """Make a version the live one; returns the id of what was before, which is kept. Empty: nothing was.

        Raises UsageError if somebody else changes the workflow in the meantime. Repeated, it goes on.
        """
        workflow = make_workflow(version.read, standing.workflow.info)
        if version.read.name != standing.name:
            raise UsageError(f"version {version.id} is of workflow {version.read.name}, not of {standing.name}")
        check_whole(version)
        if not standing.is_live:
            return self._publish_first(standing, workflow, version)
        live = self._before(standing)
        if standing.unfinished is None and live.id == version.id:
            return live.id
        self.store_version(standing, live)
        self.store_version(standing, version)
        note = self._note(standing, Promotion(id=live.id, to=version.id, manifest=standing.key))
        own = _has_own_config(workflow)
        with _changed_by_others(standing.key):
            if standing.unfinished is None and (dict(version.package) == dict(live.package) or not own):
                self._store.put(standing.key, version.manifest, if_version=standing.workflow.info.version)
            else:
                place = workflow.config_place if _ZIP not in version.package else f"{standing.folder}{_ZIP}"
                files = {_place(place, name): body for name, body in version.package.items()} if own else {}
                self._replace_package(standing, files, note)
                self._store.put(standing.key, version.manifest, if_absent=True)
        return live.id

    def _publish_first(self, standing: Standing, workflow: Workflow, version: Version) -> str:
        """Make the first version live: its config, then the manifest, which makes it take files."""
        self.store_version(standing, version)
        if _has_own_config(workflow):
            place = workflow.config_place if _ZIP not in version.package else f"{standing.folder}{_ZIP}"
            for name, body in version.package.items():
                self._store.put(_place(place, name), body)
        with _changed_by_others(standing.key):
            self._store.put(standing.key, version.manifest, if_absent=True)
        return ""

    def _before(self, standing: Standing) -> Version:
        """What is live, or was until a promotion that did not end."""
        if standing.unfinished is not None:
            return self.load(standing, standing.unfinished.id)
        with _changed_by_others(standing.key):
            return self._live(standing)

    def _note(self, standing: Standing, promotion: Promotion) -> ObjectInfo:
        """Note a promotion, instead of the one before it."""
        key = promotion_key(standing.key, standing.name)
        there = self._store.head(key)
        with _changed_by_others(standing.key):
            if there is None:
                return self._store.put(key, promotion.body(), if_absent=True)
            return self._store.put(key, promotion.body(), if_version=there.version)

    def _replace_package(self, standing: Standing, wanted: Mapping[str, bytes], note: ObjectInfo) -> None:
        """Remove the manifest, then write the files of a config, by their keys, in place of those that are there."""
        there = self._store.head(standing.key)
        if standing.unfinished is None and (there is None or there.version != standing.workflow.info.version):
            raise WorkflowChanged(_OTHERS.format(standing.key))
        self._check(standing, note)
        self._store.delete(standing.key)
        replaced = {ref.key for one in self._owners(standing) for ref in self._package(one)}
        for key in sorted(replaced - wanted.keys()):
            self._check(standing, note)
            self._store.delete(key)
        for key, body in wanted.items():
            there = self._store.head(key)
            self._check(standing, note)
            self._store.put(key, body, if_version=there.version if there else None, if_absent=there is None)
        self._check(standing, note)

    def _owners(self, standing: Standing) -> Iterator[Workflow]:
        """The workflows whose config may be there."""
        yield standing.workflow
        if standing.unfinished is not None:
            with contextlib.suppress(UsageError, ManifestInvalid):
                yield make_workflow(self.load(standing, standing.unfinished.to).read, standing.workflow.info)

    def _package(self, workflow: Workflow) -> tuple[ObjectRef, ...]:
        found, package = Packages(self._store).find(LiveView(self._store), workflow)
        return tuple(package.refs) if _has_own_config(found) else ()

    def _check(self, standing: Standing, note: ObjectInfo) -> None:
        there = self._store.head(note.key)
        if there is None or there.version != note.version:
            raise WorkflowChanged(_OTHERS.format(standing.key))

    def before_live(self, standing: Standing) -> str:
        """The id of the version that was live before the last promotion. Raises UsageError if that is not known."""
        _check_ended(standing)
        promotion = self._promotion(promotion_key(standing.key, standing.name))
        if promotion is None:
            raise UsageError(f"nothing was promoted to {standing.name} yet; name a version to go back to")
        if promotion.id == self._live(standing).id:
            what = f"the last promotion of {standing.name}, to {promotion.to}, did not take effect"
            raise UsageError(f"{what}: {promotion.id} is live; name a version")
        return promotion.id

    def _loaded(self, info: ObjectInfo) -> Standing:
        found = read_newest(self._store, info.key, limit=MAX_MANIFEST_BYTES, listed=info)
        if found is None:
            raise ObjectMissing(f"{info.key} was removed just now")
        return self._standing(make_workflow(read_manifest(found.body), found.info))

    def _standing(self, workflow: Workflow, promotion: Promotion | None = None) -> Standing:
        draft = self._store.head(f"{workflow.folder}{DRAFT}{MANIFEST}")
        return Standing(workflow, promotion, draft=None if draft is None else draft.version)

    def _live(self, standing: Standing) -> Version:
        info = standing.workflow.info
        body = self._store.read(info.key, version=info.version, limit=MAX_MANIFEST_BYTES)
        return self._with_package(body, info.digest, standing.workflow)

    def _with_package(self, manifest: bytes, digest: str, workflow: Workflow) -> Version:
        """A version with the config that is where its manifest says, or beside it."""
        workflow, package = Packages(self._store).find(LiveView(self._store), workflow)
        names = {_inside(ref.key, workflow.config_place): ref for ref in package.refs}
        parts = [(ref.key.removeprefix(workflow.config_place), ref.digest) for ref in package.refs]
        files = {n: self._store.read(r.key, version=r.version, limit=MAX_PACKAGE_BYTES) for n, r in names.items()}
        return Version(version_id(digest_of([("manifest", digest), *parts])), manifest, files)

    def _draft(self, standing: Standing, written: Mapping[str, bytes] | None = None) -> Version:
        place = f"{standing.folder}{DRAFT}"
        found = {info.key.removeprefix(place): info for info in self._store.objects(place)}
        if MANIFEST not in found:
            raise UsageError(f"workflow {standing.name} has no draft; put one into {place}, or: ade workflow draft")
        try:
            bodies = {n: self._store.read(i.key, version=i.version, limit=MAX_PACKAGE_BYTES) for n, i in found.items()}
        except (ObjectMissing, ObjectChanged):
            bodies = {}
        if bodies != (written or bodies) or MANIFEST not in bodies or bodies[MANIFEST].startswith(_CLAIM):
            what = f"somebody else is writing a draft of {standing.name}, or died doing so"
            raise WorkflowChanged(f"{what}; repeat")
        workflow = make_workflow(read_manifest(bodies[MANIFEST]), standing.workflow.info)
        if not _has_own_config(workflow):
            return self._with_package(bodies[MANIFEST], found[MANIFEST].digest, workflow)
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


def check_whole(version: Version) -> None:
    """Raises UsageError if a version lacks the config that its manifest names: without its rules it is another one."""
    if version.read.config is not None and not version.package:
        what = f"version {version.id} of {version.read.name} lacks its config"
        raise UsageError(f"{what}: its manifest names {version.read.config}, and nothing is there")


def _has_own_config(workflow: Workflow) -> bool:
    """Whether a workflow's config is its own, and no package in configs/_shared/ that others may use too."""
    return not workflow.config_place.startswith(SHARED) or workflow.config_place.startswith(workflow.folder)


def _check_ended(standing: Standing) -> None:
    if not standing.is_live:
        raise UsageError(f"{standing.name} has no live version yet, only a draft: `ade workflow promote` makes it live")
    if standing.unfinished is not None:
        before, to = standing.unfinished.id, standing.unfinished.to
        choice = f"go on with `ade workflow promote {standing.name} {to}`, or go back with {before}"
        raise UsageError(f"{standing.name} has no live version, its promotion did not end: {choice}")


@contextlib.contextmanager
def _changed_by_others(what: str) -> Iterator[None]:
    try:
        yield
    except (PreconditionFailed, ObjectMissing, ObjectChanged):
        raise WorkflowChanged(_OTHERS.format(what)) from None


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
