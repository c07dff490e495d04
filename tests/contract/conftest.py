"""Fixtures that run a suite over every adapter of its port."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.ports import JobTable, ObjectStore, WorkQueue
from infra.clocks import HandClock
from tests.contract import servers
from tests.contract.adapters import QUEUES, STORES, TABLES
from tests.contract.rigs import Rig


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=STORES)
def store_rig(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Rig[ObjectStore]]:
    with STORES[request.param](tmp_path / "data", clock) as rig:
        yield rig


@pytest.fixture
def store(store_rig: Rig[ObjectStore]) -> ObjectStore:
    return store_rig.port


@pytest.fixture(params=TABLES)
def table_rig(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
    with TABLES[request.param](tmp_path / "data", clock) as rig:
        yield rig


@pytest.fixture
def table(table_rig: Rig[JobTable]) -> JobTable:
    return table_rig.port


@pytest.fixture(params=QUEUES)
def queue_rig(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    with QUEUES[request.param](tmp_path / "data", clock) as rig:
        yield rig


@pytest.fixture
def queue(queue_rig: Rig[WorkQueue]) -> WorkQueue:
    return queue_rig.port


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()
