"""What stands still costs next to nothing, and what comes then does not wait."""

import json

import pytest

from core.jobs import State
from core.ports import JobQuery
from tests.bench.idle_hour import HOUR, Quiet, quiet
from tests.contract import servers

pytestmark = [pytest.mark.slow, pytest.mark.long]

MOST_TABLE_CALLS = 1_850  # listing successes asks three partitions: clean, with warnings, with errors
MOST_STORE_CALLS = 480


@pytest.fixture(scope="module")
def rested():
    with servers.credentials(server := servers.ministack()), quiet(server) as made:
        yield made, made.pass_time(HOUR)


def test_an_idle_hour_makes_few_calls(rested):
    made, asked = rested
    shown = json.dumps(dict(made.meter.requests))
    assert asked["DynamoDB"] <= MOST_TABLE_CALLS, shown
    assert asked["S3"] <= MOST_STORE_CALLS, shown


def test_a_drop_after_it_is_recorded_and_run_without_any_round(rested: tuple[Quiet, object]):
    made, _ = rested
    made.intake.changed(made.drop(1_000))
    assert made.work() == 1
    jobs = made.stack.table.page(JobQuery(tenant="t0"), limit=200).jobs
    assert [job.state for job in jobs if "d1000/" in job.subject] == [State.SUCCEEDED]


def test_a_drop_whose_event_was_lost_is_found_by_a_sweep(rested: tuple[Quiet, object]):
    made, _ = rested
    made.drop(1_001)
    made.pass_time(made.stack.settings.sweep_seconds + 5)
    assert made.work() == 1
