"""Reads an object that others may replace at the same time."""

from typing import Final, NamedTuple

from core.errors import ObjectChanged, ObjectMissing, StoreUnavailable
from core.ports import ObjectInfo, ObjectStore

_TRIES: Final = 40  # each lost to a write of somebody else


class NewestObject(NamedTuple):
    body: bytes
    info: ObjectInfo  # of this very content


def read_newest(store: ObjectStore, key: str, *, limit: int, listed: ObjectInfo | None = None) -> NewestObject | None:
    """The newest content of an object and its version; None if there is no such object. Raises ObjectTooLarge.

    `listed`: what a listing or `head` said a moment ago; another version is returned if it was replaced since then.
    """
    for _ in range(_TRIES):
        info = listed or store.head(key)
        if info is None:
            return None
        try:
            return NewestObject(store.read(key, version=info.version, limit=limit), info)
        except (ObjectMissing, ObjectChanged):
            listed = None
    raise StoreUnavailable(f"{key} is changed by others all the time; try again")
