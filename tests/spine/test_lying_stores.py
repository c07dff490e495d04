"""A store that answers with other bytes than were pinned, or keeps nothing: the job waits for it and loses no attempt."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreUnavailable
from core.jobs import State
from core.keys import result_key
from core.ports import Fetched, ObjectInfo
from tests.support.world import World


class Lying:
    """A store of which the next answers to some calls are false."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.fetches: list[Callable[[bytes], bytes]] = []
        self.unwritten: list[str] = []  # ends of keys of which one put each is answered and not done

    def fetch(self, key: str, to: Path, **more: Any) -> Fetched:
        fetched = self._port.fetch(key, to, **more)
        if not self.fetches or not key.startswith("inbox/"):
            return fetched
        body = self.fetches.pop()(to.read_bytes())
        to.write_bytes(body)
        return Fetched(size=len(body), sha256=hashlib.sha256(body).hexdigest())

    def put(self, key: str, body: Any, **more: Any) -> ObjectInfo:
        for end in self.unwritten:
            if key.endswith(end):
                self.unwritten.remove(end)
                return ObjectInfo(key=key, version="v", digest="d", size=0, modified=0.0)
        return self._port.put(key, body, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


@pytest.fixture
def lying(world: World) -> Lying:
    made = Lying(world.fragile.store._port)
    world.fragile.store._port = made
    return made


@pytest.mark.parametrize(
    "lie",
    [lambda body: body[: len(body) // 3], lambda body: body[::-1], lambda _: b""],
    ids=["short", "other", "empty"],
)
def test_an_input_that_is_not_what_was_pinned_is_fetched_again(world: World, lying: Lying, lie: Callable[..., bytes]):
    body = b"id\n1\n2\n3\n"
    world.intake.changed(world.drop(body=body))
    lying.fetches = [lie] * 5  # more often than a job has attempts
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.attempt, job.error) == (State.SUCCEEDED, 1, None)
    seen = [order.inputs[0].sha256 for order in world.sandbox.orders]
    assert seen == [hashlib.sha256(body).hexdigest()], "no box saw other bytes"


def test_a_result_that_was_answered_as_written_and_is_not_there_is_written_again(world: World, lying: Lying):
    world.intake.changed(world.drop())
    lying.unwritten = ["result.json"]
    runner = world.runner()
    with pytest.raises(StoreUnavailable, match=r"result\.json"):
        world.handle_one(runner)
    world.work_off(runner)
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    assert world.store.head(result_key(job)) is not None
