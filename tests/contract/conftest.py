"""Fixtures that run a suite over every adapter of its port."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.ports import JobTable, ObjectStore, WorkQueue
from infra.clocks import HandClock
from infra.local.folder import FolderStore
from tests.contract import servers
from tests.contract.adapters import QUEUES, STORES, TABLES
from tests.contract.rigs import Rig


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def folder_store(tmp_path: Path) -> Iterator[FolderStore]:
    with closing(FolderStore(tmp_path / "data")) as store:
        (store.root / "inbox/acme").mkdir()
        yield store


def rig_fixture(adapters: Mapping[str, Any]) -> Any:
    """A fixture that opens each adapter of a port in turn."""

    @pytest.fixture(params=adapters)
    def rig(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Rig[Any]]:
        with adapters[request.param](tmp_path / "data", clock) as opened:
            yield opened

    return rig


store_rig, table_rig, queue_rig = rig_fixture(STORES), rig_fixture(TABLES), rig_fixture(QUEUES)


@pytest.fixture
def store(store_rig: Rig[ObjectStore]) -> ObjectStore:
    return store_rig.port


@pytest.fixture
def table(table_rig: Rig[JobTable]) -> JobTable:
    return table_rig.port


@pytest.fixture
def queue(queue_rig: Rig[WorkQueue]) -> WorkQueue:
    return queue_rig.port


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()
