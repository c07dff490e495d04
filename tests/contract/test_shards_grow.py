"""A table may be given more shards while it holds jobs: readers first, then writers (docs/explanation/scale/README.md)."""

from contextlib import closing
from secrets import token_hex

import pytest

from core.jobs import State, move
from core.ports import JobQuery
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import table_definition
from tests.contract import servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job

NAMES = [f"j{n}" for n in range(12)]


@pytest.fixture
def few_and_many(clock):
    server, name = servers.ministack(), f"shards-{token_hex(4)}"
    url = f"dynamodb://{name}?endpoint={server.endpoint}"
    with servers.credentials(server), closing(client(parse_address(url))) as admin:
        admin.create_table(**table_definition(name))
        with (
            closing(DynamoJobTable(parse_address(f"{url}&shards=2"), clock, job_wake_at)) as few,
            closing(DynamoJobTable(parse_address(f"{url}&shards=7"), clock, job_wake_at)) as many,
        ):
            yield few, many


def test_readers_with_more_shards_see_what_writers_with_fewer_wrote(few_and_many):
    few, many = few_and_many
    jobs = {few.add(a_job(name))[0].job_id for name in NAMES}
    assert {j.job_id for j in many.page(JobQuery()).jobs} == jobs
    assert {j.job_id for j in many.page(JobQuery(states=frozenset({State.QUEUED}))).jobs} == jobs
    assert many.counts() == few.counts()
    assert {j.job_id for j in many.attention(NOW + 1e6)} == jobs


def test_a_row_that_is_written_anew_moves_to_its_new_shard_and_stands_nowhere_twice(few_and_many):
    few, many = few_and_many
    for name in NAMES:
        job, _ = few.add(a_job(name))
        many.replace(job, move(job, State.CANCELLED, now=NOW))
    assert many.counts() == {State.CANCELLED: len(NAMES)}
    assert len(many.page(JobQuery()).jobs) == len(NAMES)
    assert many.page(JobQuery(states=frozenset({State.QUEUED}))).jobs == ()
