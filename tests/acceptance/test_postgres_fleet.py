"""A fleet of processes behind a real pgbouncer in transaction mode, which has three sessions for all of them."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from core.settings import Settings
from infra.wiring import open_stack
from tests.acceptance.ade import Ade
from tests.contract import postgres_adapters, servers
from tests.support.crew import RUN, Crew, check_outcome, ended
from tests.support.storm import ENV, drop

DROPS = 4
PATIENCE_SECONDS = 120
SCHEMA = "behind"


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


@pytest.mark.slow
def test_a_fleet_behind_pgbouncer_works_and_says_that_it_polls(tmp_path: Path):
    url = postgres_adapters.url_of(servers.pgbouncer(), SCHEMA, pool="8")
    ade = Ade(tmp_path, ENV | {"ADE_TABLE_URL": url, "ADE_LOG_LEVEL": "warning"}, within=True)
    try:
        ade("infra", "init")
        settings = Settings.from_env(ade.environment())
        with Crew([("up",), RUN], ade.environment(), tmp_path / "crew.log") as crew, open_stack(settings) as stack:
            for n in range(DROPS):
                drop(stack, n)
            until = time.monotonic() + PATIENCE_SECONDS
            while ended(stack) < DROPS:
                assert time.monotonic() < until, f"{stack.table.counts()}\n{crew.said()}"
                stack.table.wait(0.2)
            checks = ade("doctor", "--json", expect=None).json["checks"]
        with open_stack(settings) as stack:
            check_outcome(stack, DROPS)
        said = [
            json.loads(line) for line in (tmp_path / "crew.log").read_text().splitlines() if '"postgres_note"' in line
        ]
        assert len(said) == 2, "each process says once that it polls"
        assert [c["level"] for c in checks if "behind a pooler in transaction mode" in c["said"]] == ["warning"]
    finally:
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            db.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
