from collections.abc import Iterator

import pytest

from tests.contract import servers


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()
