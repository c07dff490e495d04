"""What the bucket holds, as the intake sees it: live for one event, or listed once for a sweep."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Protocol

from core.ports import ObjectInfo, ObjectStore


class View(Protocol):
    def head(self, key: str) -> ObjectInfo | None: ...

    def beside(self, folder: str) -> list[ObjectInfo]:
        """Objects directly in a folder (its prefix ends in '/')."""
        ...

    def below(self, prefix: str) -> Iterator[ObjectInfo]: ...


class LiveView:
    """Asks the store, each question once."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._beside: dict[str, list[ObjectInfo]] = {}

    def head(self, key: str) -> ObjectInfo | None:
        return self._store.head(key)

    def beside(self, folder: str) -> list[ObjectInfo]:
        if folder not in self._beside:
            self._beside[folder] = list(self._store.folder(folder).objects)
        return self._beside[folder]

    def below(self, prefix: str) -> Iterator[ObjectInfo]:
        return self._store.objects(prefix)


class ListedView:
    """Answers from one listing, so that a sweep costs one pass over the bucket and not one call per object."""

    def __init__(self, objects: Iterable[ObjectInfo]) -> None:
        self._objects = {o.key: o for o in objects}
        self._keys = sorted(self._objects)
        self._beside: dict[str, list[ObjectInfo]] = {}
        for key in self._keys:
            self._beside.setdefault(key[: key.rfind("/") + 1], []).append(self._objects[key])

    def head(self, key: str) -> ObjectInfo | None:
        return self._objects.get(key)

    def beside(self, folder: str) -> list[ObjectInfo]:
        return self._beside.get(folder, [])

    def below(self, prefix: str) -> Iterator[ObjectInfo]:
        for n in range(bisect_left(self._keys, prefix), len(self._keys)):
            if not self._keys[n].startswith(prefix):
                return
            yield self._objects[self._keys[n]]
