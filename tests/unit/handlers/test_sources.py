"""How `ade up` hears of drops in a folder: each tenant's changes in their order, no tenant's behind another's."""

import io
import threading

import pytest

from core.settings import Settings
from handlers.intake import Intake
from handlers.planning import Report
from handlers.sources.listening import Watcher
from infra.logs import Log
from infra.wiring import open_stack

EVERYTHING = "everything"


class Looks:
    """Looks at the bucket, as they begin; that of a tenant named in `held` lasts until it is let go."""

    def __init__(self) -> None:
        self.begun: list[frozenset[str]] = []
        self.held = {"mallory": threading.Event(), EVERYTHING: threading.Event()}
        self._changed = threading.Condition()

    def look(self, keys, whose):
        with self._changed:
            self.begun.append(frozenset(keys))
            self._changed.notify_all()
        if whose in self.held:
            assert self.held[whose].wait(60)
        return Report()

    def until_begun(self, *keys):
        """Until one look has all of these keys; a file in a new folder may be announced twice, by both of their events."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(set(keys) <= one for one in self.begun), 60), self.begun

    def let_go(self):
        for event in self.held.values():
            event.set()


@pytest.fixture
def looks(monkeypatch):
    made = Looks()
    monkeypatch.setattr(Intake, "changed", lambda _, keys: made.look(keys, next(iter(keys)).split("/")[1]))
    monkeypatch.setattr(Intake, "sweep", lambda _: made.look({EVERYTHING}, EVERYTHING))
    return made


@pytest.fixture
def watched(tmp_path, looks):
    """A bucket whose watcher runs; its first sweep is under way and does not end."""
    with open_stack(Settings(storage_data_dir=tmp_path)) as stack:
        watcher = Watcher(stack, Log(stream=io.StringIO()))
        thread = threading.Thread(target=watcher.run)
        thread.start()
        looks.until_begun(EVERYTHING)
        yield stack.store
        looks.let_go()
        watcher.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_a_look_that_takes_long_keeps_no_other_tenant_waiting(watched, looks):
    watched.put("inbox/mallory/d/a.csv", b"1")
    looks.until_begun("inbox/mallory/d/a.csv")
    watched.put("inbox/acme/d/a.csv", b"1")
    looks.until_begun("inbox/acme/d/a.csv")


def test_what_comes_while_a_tenants_look_is_under_way_is_the_next_ones(watched, looks):
    watched.put("inbox/mallory/d/a.csv", b"1")
    looks.until_begun("inbox/mallory/d/a.csv")
    later = {f"inbox/mallory/d/{n}.csv" for n in range(5)}
    for key in sorted(later):
        watched.put(key, b"1")
    watched.put("inbox/acme/d/a.csv", b"1")  # the watch has seen what came before it
    looks.until_begun("inbox/acme/d/a.csv")
    assert len([keys for keys in looks.begun if any("mallory" in key for key in keys)]) == 1
    looks.held["mallory"].set()
    looks.until_begun(*later)
