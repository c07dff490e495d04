from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import servers

HERE = Path(__file__).parent
# The same path over a server takes a hundred times as long, and the contract suites hold every server to every promise of the
# ports. So of a test's alike cases in the cloud CI runs a part; ADE_TEST_FULL=1 runs all of them.
EVERY = 8


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def _server(item: pytest.Item) -> str | None:
    """The kind of server that a case of this folder runs over: alike cases share it."""
    values = item.callspec.params.values() if hasattr(item, "callspec") and item.path.is_relative_to(HERE) else ()
    named = (kind for value in values if isinstance(value, str) for kind in ("cloud", "postgres") if kind in value)
    return next(named, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests over a server as slow, and all but some alike ones as long."""
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        if (server := _server(item)) is None:
            continue
        item.add_marker(pytest.mark.slow)
        alike = (item.nodeid.split("[")[0], server)
        if seen[alike] % EVERY and not item.get_closest_marker("every_cloud"):
            item.add_marker(pytest.mark.long)
        seen[alike] += 1
