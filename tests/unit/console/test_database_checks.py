"""What `ade doctor` makes of what a database says about itself."""

from dataclasses import replace

import pytest

from console.cli.database_checks import check_health
from infra.postgres.connections import SCHEMA_VERSION
from infra.postgres.health import ServerHealth

WELL = ServerHealth(
    name="postgresql://db/ade",
    schema="ade",
    server="17.6",
    version=SCHEMA_VERSION,
    user="fleet",
    may="run",
    pooled=False,
    standby=False,
    fsync=True,
    autovacuum=True,
    connections=30,
    most_connections=197,
    dead={"jobs": (1_000_000, 60_000), "messages": (0, 15_000)},
    longest_transaction=0.0,
    bytes=2 * 1024**3,
)


def said(**changes) -> list[tuple[str, str, str]]:
    """Level, message and remedy of all that is not well."""
    found = list(check_health(replace(WELL, **changes)))
    assert all(check.remedy for check in found if check.level != "ok")
    return [(check.level, check.message, check.remedy) for check in found if check.level != "ok"]


def test_a_database_that_is_well_gets_one_line_with_its_facts():
    (check,) = check_health(WELL)
    assert check.message == (
        f"PostgreSQL 17.6, schema version {SCHEMA_VERSION}, as fleet, who may run jobs; 30 of 197 connections; 2048 MB"
    )


def test_dead_rows_that_autovacuum_clears_in_time_are_none_of_our_business():
    assert said() == []


def test_a_table_that_vacuum_does_not_keep_up_with_is_named():
    ((level, message, remedy),) = said(dead={"messages": (10, 60_000)})
    assert (level, message) == ("warning", "ade.messages has 10 rows and 60000 dead ones")
    assert "VACUUM ade.messages" in remedy


def test_a_transaction_that_was_left_open_is_what_keeps_them():
    ((_, _, remedy),) = said(dead={"messages": (10, 60_000)}, longest_transaction=7200.0)
    assert remedy.startswith("end the transaction that has been open for 2h00m")


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({"may": ""}, "wrong", "gives fleet no rights"),
        ({"standby": True}, "wrong", "takes no writes"),
        ({"fsync": False}, "wrong", "fsync off"),
        ({"autovacuum": False}, "warning", "autovacuum off"),
        ({"connections": 180}, "warning", "180 of 197 connections in use"),
        ({"pooled": True}, "warning", "pooler in transaction mode"),
        ({"version": SCHEMA_VERSION + 1}, "warning", "one ahead of this program"),
    ],
)
def test_what_is_wrong_is_reported_with_its_remedy(changes: dict[str, object], level: str, words: str):
    ((found, message, _),) = said(**changes)
    assert found == level
    assert words in message
