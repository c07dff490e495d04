"""Settings of every test: random tests draw the same examples in every run, and none of them watches the clock."""

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.effort import FULL, examples
from tests.support.keeper import run_folder

if TYPE_CHECKING:
    from tests.support.world import World

# What is collected lives as long as the run; looking through it again and again took a third of the time it takes to collect.
gc.set_threshold(20_000)

_USUAL = 100  # Hypothesis's own default
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
    max_examples=examples(_USUAL),
)
settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile(os.environ.get("ADE_TEST_RANDOM", "repeatable"))

_RUN = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Servers start when a test needs one and end with the run; the first process of the run keeps them."""
    if not hasattr(config, "workerinput"):
        _RUN.enter_context(run_folder())


def pytest_unconfigure() -> None:
    _RUN.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first: one that starts last would keep the other process waiting. The long ones when asked for."""
    if not FULL:
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip("takes long: ADE_TEST_FULL=1"))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.fixture
def world(tmp_path: Path) -> Iterator["World"]:
    """The embedded product, moved step by step."""
    yield from _world(tmp_path)


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator["World"]:
    """The same, for a test in a module whose other tests run in each place."""
    yield from _world(tmp_path)


@pytest.fixture(params=["embedded", "cloud"])
def world_in_each_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["World"]:
    from tests.support.places import PLACES  # noqa: PLC0415

    yield from _world(tmp_path, PLACES[request.param])


def _world(*where: Any) -> Iterator["World"]:
    from tests.support.world import World  # noqa: PLC0415  # most tests do without

    made = World(*where)
    yield made
    made.close()
