"""A store that tells other times than it has: whole seconds, as S3 does, or a clock that goes back."""

from collections.abc import Callable
from dataclasses import replace

from core.ports import ObjectInfo
from tests.support.world import World


def stamped(world: World, stamp: Callable[[ObjectInfo], float]) -> World:
    """Let `stamp` say when each object was modified."""
    head, objects, level = world.store.head, world.store.objects, world.store.level

    def changed(info):
        return None if info is None else replace(info, modified=stamp(info))

    def leveled(prefix):
        found = level(prefix)
        return replace(found, infos=lambda keys: [changed(info) for info in found.infos(keys)])

    world.store.head = lambda key: changed(head(key))
    world.store.objects = lambda prefix, **more: (changed(info) for info in objects(prefix, **more))
    world.store.level = leveled
    return world
