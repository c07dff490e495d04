from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import servers

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Over a server every step costs a hundred times as much."""
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if item.path.is_relative_to(HERE) and any(
            isinstance(value, str) and ("cloud" in value or value == "postgres") for value in values
        ):
            item.add_marker(pytest.mark.slow)
