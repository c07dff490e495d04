"""Whatever a request holds, an operation or a page costs at most a second and 50 MiB for each MB: docs/explanation/cost.md."""

import re
from pathlib import Path

import pytest

from tests.abuse.cost import MOST_MIB, MOST_SECONDS, Attack
from tests.abuse.cost_http import EXTRA, OPERATIONS, attacks, growth, site, worst
from tests.support.effort import examples

DOC = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"
GENEROUS = 3.0  # CPU time on a machine with other work to do
HTTP = attacks()


@pytest.mark.slow
@pytest.mark.parametrize("of_one", HTTP, ids=[of_one[0].name for of_one in HTTP])
def test_no_request_costs_more_than_its_bytes_allow(of_one: list[Attack]):
    site()
    for cost in worst(of_one, trials=examples(2), seed=11)[1]:
        seconds, mib = cost.rates
        assert seconds <= MOST_SECONDS * GENEROUS, cost
        assert mib <= MOST_MIB, cost


@pytest.mark.parametrize("path", ["/jobs", "/session", "/health", "/login"])
def test_a_process_grows_at_its_first_request_and_no_more(path: str):
    """So that what the first one takes is no cost of requests."""
    site()
    (operation,) = [one for one in (*OPERATIONS, *EXTRA) if (one.method, one.path) == ("GET", path)]
    assert growth(operation, 60) - growth(operation, 1) <= 1.0, "MiB after 60 requests"


def test_the_table_in_the_docs_names_every_operation_and_page_within_the_limits():
    of_requests = DOC.read_text().partition("## Every operation and page")[2]
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \| \d+ \| ([\d.]+) \| (\d+) \|$", of_requests, re.MULTILINE)
    assert [row[:2] for row in rows] == [(of_one[0].name, of_one[0].by) for of_one in HTTP]
    assert max(float(row[2]) for row in rows) <= MOST_SECONDS
    assert max(int(row[3]) for row in rows) <= MOST_MIB
