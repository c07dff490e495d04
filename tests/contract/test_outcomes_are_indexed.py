"""A list of results by outcome reads those results and no others, however many jobs there are beside them.

PostgreSQL's plans are in test_postgres_plans.py.
"""

from contextlib import closing
from secrets import token_hex

import pytest

from core.jobs import Outcome, State
from core.ports import JobQuery
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import table_definition
from infra.clocks import HandClock
from infra.local.sqlite import Database
from infra.local.sqlite_table import SqliteJobTable
from tests.bench.meter import Meter
from tests.contract import servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job

SHARDS = 3


def result(n: int, errors: int = 0):
    findings = {"error": errors, "warning": 0, "info": 1}
    return a_job(f"j{n:03}", state=State.SUCCEEDED, created_at=NOW + n, summary={"findings": findings})


@pytest.mark.parametrize("query", [JobQuery(outcome=Outcome.ERRORS), JobQuery(outcome=Outcome.WARNINGS, tenant="acme")])
def test_sqlite_reads_the_index_of_outcomes(tmp_path, query: JobQuery):
    database = Database(tmp_path / "ade.sqlite")
    table = SqliteJobTable(database, HandClock(), job_wake_at)
    for n in range(50):
        table.add(result(n, errors=n % 10 == 0))
    statements: list[str] = []
    database.read().set_trace_callback(statements.append)
    table.page(query, limit=5)
    database.read().set_trace_callback(None)
    (listing,) = [one for one in statements if "outcome =" in one]
    plan = " ".join(row["detail"] for row in database.read().execute(f"EXPLAIN QUERY PLAN {listing}"))
    index = "jobs_outcome" if query.tenant is None else "jobs_tenant_outcome"
    assert f"USING INDEX {index} (" in plan
    assert "SCAN jobs" not in plan
    database.close()


def test_dynamodb_asks_each_shard_once_whatever_else_is_there():
    server, name = servers.ministack(), f"outcomes-{token_hex(4)}"
    address = parse_address(f"dynamodb://{name}?endpoint={server.endpoint}&shards={SHARDS}")
    with servers.credentials(server), closing(client(address)) as admin:
        admin.create_table(**table_definition(name))
        with closing(DynamoJobTable(address, HandClock(), job_wake_at)) as table:
            bad = [table.add(result(n, errors=1))[0] for n in (10, 20)]
            before = requests(table)
            for n in range(30, 90):
                table.add(result(n))
            assert requests(table) == before == {"DynamoDB Query": SHARDS, "DynamoDB BatchGetItem": 1, "items": 2}
            assert list(table.page(JobQuery(outcome=Outcome.ERRORS), limit=5).jobs) == bad[::-1]


def requests(table: DynamoJobTable) -> dict[str, int]:
    """How many requests a page takes, and how many items DynamoDB evaluates for it, which is what it bills."""
    meter, evaluated = Meter(), list[int]()
    meter.attach(table._db)

    def count(parsed: dict[str, int], **_: object) -> None:
        evaluated.append(parsed["ScannedCount"])

    table._db.meta.events.register("after-call.dynamodb.Query", count)
    table.page(JobQuery(outcome=Outcome.ERRORS), limit=5)
    table._db.meta.events.unregister("after-call.dynamodb.Query", count)
    return {**meter.requests, "items": sum(evaluated)}
