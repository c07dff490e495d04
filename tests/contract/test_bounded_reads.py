"""A page of the DynamoDB table scans so many index entries and no more; a tally counts so many."""

from collections.abc import Iterator
from contextlib import closing
from secrets import token_hex

import pytest

from core.jobs import Job, State
from core.ports import JobQuery, JobTable
from infra.addresses import parse_address
from infra.aws import dynamodb_reads
from infra.aws.calls import client
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import table_definition
from infra.clocks import HandClock
from tests.bench.meter import Meter
from tests.contract import servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job

MOST = 20


@pytest.fixture(scope="module")
def table() -> Iterator[DynamoJobTable]:
    """90 jobs that ended, of which every ninth failed; the oldest of all still waits."""
    server, name = servers.ministack(), f"bounds-{token_hex(4)}"
    address = parse_address(f"dynamodb://{name}?endpoint={server.endpoint}&shards=3")
    with servers.credentials(server), closing(client(address)) as admin:
        admin.create_table(**table_definition(name))
        with closing(DynamoJobTable(address, HandClock(), job_wake_at)) as made:
            made.add(a_job("waits", created_at=NOW))
            for n in range(1, 91):
                made.add(a_job(f"j{n:02}", created_at=NOW + n, state=State.SUCCEEDED if n % 9 else State.FAILED))
            yield made


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb_reads, "_MOST_SCANNED", MOST)
    monkeypatch.setattr(dynamodb_reads, "_MOST_COUNTED", MOST)
    monkeypatch.setattr(dynamodb_reads, "_BATCH", 5)
    monkeypatch.setattr(dynamodb_reads, "_MOST_AT_ONCE", 8)


def walk(table: JobTable, query: JobQuery, limit: int) -> list[list[Job]]:
    pages, cursor = [], None
    while True:
        page = table.page(query, limit=limit, cursor=cursor)
        pages.append(list(page.jobs))
        if (cursor := page.cursor) is None:
            return pages
        assert len(pages) < 100, "the walk does not end"


@pytest.mark.parametrize("limit", [1, 3, 50])
@pytest.mark.parametrize("state", [State.FAILED, State.SUCCEEDED, State.EXPIRED])
def test_pages_that_end_at_the_bound_miss_nothing(table: DynamoJobTable, state: State, limit: int):
    query = JobQuery(tenant="acme", states=frozenset({state}))
    found = [job for page in walk(table, query, limit) for job in page]
    every = [job for page in walk(table, JobQuery(), 50) for job in page]
    assert found == [job for job in every if job.state is state]


def test_a_page_without_a_match_ends_at_the_bound(table: DynamoJobTable):
    page = table.page(JobQuery(tenant="acme", states=frozenset({State.EXPIRED})), limit=3)
    assert (page.jobs, page.cursor is not None) == ((), True)


def test_what_does_not_fit_is_not_sent(table: DynamoJobTable):
    meter = Meter()
    meter.attach(table._db)
    table.page(JobQuery(tenant="acme", states=frozenset({State.EXPIRED})), limit=3)
    assert meter.requests.keys() == {"DynamoDB Query"}


def test_a_tally_has_the_newest_and_whatever_has_not_ended(table: DynamoJobTable):
    tally = table.tally()
    assert not tally.whole
    assert tally.tenants == {"acme": {State.QUEUED: 1, State.SUCCEEDED: 17, State.FAILED: 3}}
    assert table.tally("acme") == tally
    assert table.tally("nobody").tenants == {}


def test_a_count_of_all_is_exact(table: DynamoJobTable):
    assert table.counts() == {State.QUEUED: 1, State.SUCCEEDED: 80, State.FAILED: 10}
