"""Reads and writes a memory in a store: read, change, put if nobody else wrote in the meantime, else again."""

import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from core.errors import PreconditionFailed, StoreUnavailable
from core.memories import MAX_MEMORY_BYTES, Memory, serialized
from core.ports import ObjectInfo, ObjectStore
from infra.newest import read_newest
from infra.parsing import check_memory, read_memory_text

_TRIES: Final = 40
_PAUSE: Final = 0.05  # seconds, times the tries so far


class StoredMemory(NamedTuple):
    memory: Memory
    info: ObjectInfo | None  # None: there is no such object


def read_memory(store: ObjectStore, key: str) -> StoredMemory:
    """The newest memory under a key, empty if there is none. Raises MemoryInvalid or ObjectTooLarge."""
    found = read_newest(store, key, limit=MAX_MEMORY_BYTES)
    return StoredMemory(Memory(), None) if found is None else StoredMemory(read_memory_text(found.body), found.info)


def change_memory(
    store: ObjectStore, key: str, change: Callable[[Memory], Memory], *, pause: Callable[[float], None] = time.sleep
) -> StoredMemory:
    """Apply a change to whatever the memory is by now, so that two writers lose nothing.

    `change` may be called several times. A writer that dies before its put has changed nothing. One whose answer got
    lost and who repeats the call counts its facts twice, which moves a count and no decision.
    """
    for tries in range(_TRIES):
        old = read_memory(store, key)
        new = change(old.memory)
        body = serialized(new)
        check_memory(body)  # what is written can be read again
        if new == old.memory:
            return old
        try:
            if old.info is None:
                return StoredMemory(new, store.put(key, body, if_absent=True))
            return StoredMemory(new, store.put(key, body, if_version=old.info.version))
        except PreconditionFailed:
            pause(random.uniform(0, _PAUSE * (tries + 1)))  # noqa: S311  # spreads writers, hides nothing
    raise StoreUnavailable(f"memory {key}: others write to it all the time; {_TRIES} tries were not enough; try again")
