"""Whoever reads what others replace gets one version or the next, never an error and never nothing."""

import json
from typing import Any

import pytest

from console.api.access import TOKENS_KEY, Access, Scope
from console.benches import Benches, BenchFacts
from console.facade import Facade
from console.library import Library
from core.errors import StoreUnavailable
from core.settings import Settings
from infra.newest import read_newest
from infra.wiring import Stack, open_stack

MANIFEST = {"manifest": 1, "name": "people", "subscribe": ["*.csv"], "fields": [{"name": "id"}]}
KEY = "configs/acme/people/manifest.json"


class Replacing:
    """A store in which somebody replaces an object just before it is read at its version, `times` times."""

    def __init__(self, store: Any, times: int = 1) -> None:
        self._store = store
        self.left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        if version is not None and self.left:
            self.left -= 1
            self._store.put(key, self._store.read(key, limit=limit) + b"\n")
        return bytes(self._store.read(key, version=version, limit=limit))


def bench(stack: Stack, store: Replacing) -> object:
    number = Benches(stack.store, stack.clock).new("acme", BenchFacts(created_at=1.0, manifest=MANIFEST), {}).id
    return Benches(store, stack.clock).find("acme", number).name


def tokens(stack: Stack, store: Replacing) -> object:
    Access(stack.store, stack.clock).new("ann", Scope.READER, tenant=None)
    Access(store, stack.clock).new("bob", Scope.READER, tenant=None)
    return [grant.name for grant in Access(stack.store, stack.clock).grants()]


def document(stack: Stack, store: Replacing) -> object:
    stack.store.put("outputs/acme/review.json", b'{"questions": []}')
    facade = Facade(stack)
    facade._stack = type("StackWithIt", (), {"store": store})  # type: ignore[assignment]
    return facade.document("outputs/acme/review.json")


def workflow(stack: Stack, store: Replacing) -> object:
    stack.store.put(KEY, json.dumps(MANIFEST).encode())
    found = Library(store).at(KEY)
    return None if found is None else found.name


@pytest.mark.parametrize(
    ("reads", "result"),
    [(bench, "people"), (tokens, ["ann", "bob"]), (document, {"questions": []}), (workflow, "people")],
)
def test_what_is_replaced_between_two_calls_is_read_again(tmp_path, reads, result):
    with open_stack(Settings(storage_data_dir=tmp_path)) as stack:
        store = Replacing(stack.store)
        assert reads(stack, store) == result
        assert not store.left


def test_what_is_replaced_all_the_time_is_an_outage_and_what_is_gone_is_nothing(tmp_path):
    with open_stack(Settings(storage_data_dir=tmp_path)) as stack:
        assert read_newest(stack.store, TOKENS_KEY, limit=99) is None
        stack.store.put(TOKENS_KEY, b"{}")
        listed = stack.store.head(TOKENS_KEY)
        with pytest.raises(StoreUnavailable, match="by others all the time"):
            read_newest(Replacing(stack.store, 999), TOKENS_KEY, limit=9999)
        stack.store.delete(TOKENS_KEY)
        assert read_newest(stack.store, TOKENS_KEY, limit=99, listed=listed) is None
