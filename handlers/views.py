"""What the bucket holds, as the intake sees it: live for the events of one folder, or listed once for a sweep."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from posixpath import basename
from typing import Protocol

from core.errors import ObjectRefused
from core.keys import is_manifest, refusal
from core.ports import Level, ObjectInfo, ObjectStore


class View(Protocol):
    """Every question has one answer for as long as a view lives: what was there when it was first asked."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Objects that the store refuses to tell of, and why. No other answer has them: they may be anything."""
        ...

    def head(self, key: str) -> ObjectInfo | None: ...

    def infos(self, keys: Collection[str]) -> list[ObjectInfo]:
        """Those of the keys that are there, in their order."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """Keys of the objects directly in a folder (its prefix ends in '/')."""
        ...

    def manifests(self, folder: str) -> tuple[str, ...]:
        """Those of `names` that are manifests; asked for every file of a folder."""
        ...

    def refused_keys(self, folder: str) -> tuple[str, ...]:
        """Keys directly in a folder that are refused, and so are in none of the other answers."""
        ...

    def below(self, prefix: str) -> list[ObjectInfo]: ...


class LiveView:
    """Asks the store, each question once, and nothing that an earlier answer has told already."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._levels: dict[str, Level] = {}
        self._infos: dict[str, ObjectInfo | None] = {}
        self._below: dict[str, list[ObjectInfo]] = {}
        self._manifests: dict[str, tuple[str, ...]] = {}
        self.unreadable: dict[str, str] = {}

    def head(self, key: str) -> ObjectInfo | None:
        if key not in self._infos:
            level = self._levels.get(_folder(key))
            if level is not None:
                self._ask(level, [key])
                return self._infos[key]
            try:
                self._infos[key] = self._store.head(key)
            except ObjectRefused as error:
                self._infos[key], self.unreadable[key] = None, str(error)
        return self._infos[key]

    def infos(self, keys: Collection[str]) -> list[ObjectInfo]:
        for folder in {_folder(key) for key in keys} & self._levels.keys():
            unknown = [key for key in keys if _folder(key) == folder and key not in self._infos]
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

    def refused_keys(self, folder: str) -> tuple[str, ...]:
        self.names(folder)
        return self._levels[folder].refused_keys

    def below(self, prefix: str) -> list[ObjectInfo]:
        if prefix not in self._below:
            above = self._levels.get(_folder(prefix.rstrip("/")))
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
    """Answers from one listing, so that a sweep costs one pass over the bucket and not one call per object."""

    def __init__(self, objects: Iterable[ObjectInfo], unreadable: Mapping[str, str] | None = None) -> None:
        self.unreadable = unreadable or {}
        self._objects = {o.key: o for o in objects}
        self._keys = sorted(self._objects)
        self._names: dict[str, list[str]] = {}
        for key in self._keys:
            self._names.setdefault(_folder(key), []).append(key)

    def head(self, key: str) -> ObjectInfo | None:
        return self._objects.get(key)

    def infos(self, keys: Collection[str]) -> list[ObjectInfo]:
        return [self._objects[key] for key in keys if key in self._objects]

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(self._names.get(folder, ()))

    def manifests(self, folder: str) -> tuple[str, ...]:
        return tuple(key for key in self.names(folder) if is_manifest(basename(key)))

    def refused_keys(self, folder: str) -> tuple[str, ...]:
        return tuple(key for key in self.unreadable if _folder(key) == folder and refusal(key) is not None)

    def below(self, prefix: str) -> list[ObjectInfo]:
        found = []
        for n in range(bisect_left(self._keys, prefix), len(self._keys)):
            if not self._keys[n].startswith(prefix):
                break
            found.append(self._objects[self._keys[n]])
        return found


def _folder(key: str) -> str:
    return key[: key.rfind("/") + 1]
