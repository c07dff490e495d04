"""Settings of every test: random tests draw the same examples in every run, and none of them watches the clock."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile(os.environ.get("ADE_TEST_RANDOM", "repeatable"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first: one that starts last would keep the other process waiting. The long ones when asked for."""
    if os.environ.get("ADE_TEST_FULL") != "1":
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip("takes long: ADE_TEST_FULL=1"))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
