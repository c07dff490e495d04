from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import servers

HERE = Path(__file__).parent
# The same path over a server takes a hundred times as long, and the contract suites hold every server to every promise of the
# ports. So of a test's alike cases in the cloud CI runs a part; ADE_TEST_FULL=1 runs all of them.
EVERY = 3


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def _is_cloud(item: pytest.Item) -> bool:
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return item.path.is_relative_to(HERE) and any(isinstance(value, str) and "cloud" in value for value in values)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests over a server as slow, and all but some alike ones as long."""
    seen: Counter[str] = Counter()
    for item in filter(_is_cloud, items):
        item.add_marker(pytest.mark.slow)
        test = item.nodeid.split("[")[0]
        if seen[test] % EVERY and not item.get_closest_marker("every_cloud"):
            item.add_marker(pytest.mark.long)
        seen[test] += 1
