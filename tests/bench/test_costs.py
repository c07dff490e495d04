"""What the docs say a job costs is what a fresh count finds."""

import pickle
import re
from pathlib import Path

import pytest

from tests.bench import prices
from tests.bench.bench_cloud import ROWS, PerJob, per_job, warm
from tests.bench.cloud_rig import rig
from tests.bench.meter import _index_units, item_bytes, units
from tests.contract import servers
from tests.support.keeper import made_once

DOCS = Path(__file__).parents[2] / "docs"
# An event that comes in another answer of the queue, or a manifest looked up twice at once, moves a count this much.
TOLERANCE = 0.35
MOST_REQUESTS = 22


@pytest.fixture
def counted() -> PerJob:
    """Counted once in a run: it takes seconds."""
    return pickle.loads(made_once("costs", lambda path: path.write_bytes(pickle.dumps(count()))).read_bytes())


def count() -> PerJob:
    with servers.credentials(server := servers.ministack()), rig(server, scripted=False) as made:
        warm(made)
        found, _, taken = per_job(made, 10, first=4)
        assert len(taken) == 10, "not every drop became a job"
    servers.stop_all()
    return found


def documented() -> dict[str, tuple[float, float]]:
    text = (DOCS / "guides" / "cloud.md").read_text()
    table = text[text.index("<!-- counted by") : text.index("<!-- end -->")]
    rows = re.findall(r"^\| ([^|,]+)[^|]* \| ([\d.]+) \| ([\d.]+) \|$", table, re.MULTILINE)
    return {name.strip(): (float(requests), float(dollars)) for name, requests, dollars in rows}


def test_the_table_has_the_rows_that_the_bench_counts():
    assert list(documented()) == [*ROWS, "all"]


@pytest.mark.slow
def test_the_table_has_the_requests_of_a_job(counted: PerJob):
    wanted = {name: documented()[name][0] for name in ROWS}
    assert {name: counted.row(name) for name in ROWS} == pytest.approx(wanted, abs=TOLERANCE)


@pytest.mark.slow
def test_the_table_has_what_they_cost(counted: PerJob):
    wanted = {name: documented()[name][1] for name in ROWS}
    assert {name: counted.row_dollars(name) * 1000 for name in ROWS} == pytest.approx(wanted, abs=0.002)


@pytest.mark.slow
def test_every_request_of_a_job_is_in_a_row(counted: PerJob):
    covered = {operation for operations in ROWS.values() for operation in operations}
    assert set(counted.requests) - covered == set()


@pytest.mark.slow
def test_a_small_drop_makes_at_most_22_requests(counted: PerJob):
    assert sum(counted.requests.values()) <= MOST_REQUESTS, counted.requests


@pytest.mark.slow
def test_a_scan_after_an_event_makes_less_than_six_requests(counted: PerJob):
    assert sum(counted.handler.values()) / 2 < 6


@pytest.mark.slow
def test_the_plan_counts_on_units_that_are_counted(counted: PerJob):
    """The busiest index decides how many shards docs/explanation/scale/README.md asks for."""
    text = (DOCS / "explanation" / "scale" / "README.md").read_text()
    told = dict(re.findall(r"^\| (DynamoDB table|index `by_wake`)[^|]* \| (\d+) \|", text, re.MULTILINE))
    assert float(told["index `by_wake`"]) == pytest.approx(counted.writes["by_wake"], abs=0.5)
    assert float(told["DynamoDB table"]) == pytest.approx(counted.writes["table"], abs=2)


class TestUnits:
    def test_a_kilobyte_and_a_byte_are_two_write_units(self):
        assert [units(n, 1024) for n in (0, 1, 1024, 1025)] == [1, 1, 1, 2]

    def test_names_and_values_count(self):
        assert item_bytes({"pk": {"S": "é"}, "flag": {"BOOL": True}}) == 2 + 2 + 4 + 1

    @pytest.mark.parametrize(
        ("old", "new", "cost"),
        [
            (None, None, 0),
            (None, {"k": {"S": "a"}}, 1),
            ({"k": {"S": "a"}}, None, 1),
            ({"k": {"S": "a"}}, {"k": {"S": "a"}}, 0),
            ({"k": {"S": "a"}}, {"k": {"S": "b"}}, 2),
            ({"k": {"S": "a"}, "x": {"S": "1"}}, {"k": {"S": "a"}, "x": {"S": "2"}}, 1),
        ],
    )
    def test_an_index_entry_costs_what_happens_to_it(self, old, new, cost):
        assert _index_units(old, new, ("k",)) == cost

    def test_deletes_are_free_and_lists_cost_as_writes(self):
        free, listed = prices.request_price("S3 DeleteObjects"), prices.request_price("S3 ListObjectsV2")
        assert (free, listed) == (0.0, prices.S3_PUT)
