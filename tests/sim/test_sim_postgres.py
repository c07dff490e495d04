"""The simulated fleet over a real PostgreSQL server; more seeds: `python -m tests.sim --postgres --seeds 500`."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.contract import servers
from tests.sim.postgres_world import Database, simulate_on

pytestmark = pytest.mark.slow
SEEDS = int(os.environ.get("ADE_TEST_SIM_POSTGRES_SEEDS", "12"))
SOMETIMES = (
    *(
        "died",
        "refused",
        "unanswered",
        "unreachable",
        "message_again",
        "duplicate_delivery",
        "jobs_resend",
        "job_rescued",
    ),
    *("conditional_write_lost", "superseded", "messages_purged", "answer_cut", "call_cut", "database_clock_set"),
)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with closing(Database(servers.postgres().endpoint)) as made:
        yield made


def test_no_seed_breaks_a_promise_or_makes_table_and_model_differ(database: Database):
    met: Counter[str] = Counter()
    for seed in range(SEEDS):
        outcome = simulate_on(database, seed)
        met.update(outcome.met)
        assert not outcome.broken, (
            f"seed {seed}: {outcome.broken[:5]}; its story: python -m tests.sim --postgres --seed {seed} -v\n"
            + "\n".join(outcome.lines[-40:])
        )
    assert not [name for name in SOMETIMES if not met[name]]


def test_one_seed_is_one_run(database: Database):
    assert simulate_on(database, 5).digest == simulate_on(database, 5).digest


def test_a_writer_that_does_not_know_its_own_work_is_found(database: Database, monkeypatch: pytest.MonkeyPatch):
    """Without it a write whose answer was lost counts as another's."""
    monkeypatch.setitem(database.connections.sql, "written_by", "SELECT 1 WHERE false")
    assert any(simulate_on(database, seed).broken for seed in range(24, 60))
