"""The table that `ade contract export --to postgres` writes takes good rows and refuses wrong ones."""

import secrets

import psycopg
import pytest

from console.contracts import exported
from tests.contract import servers
from tests.unit.console.test_contracts import MANIFEST

pytestmark = pytest.mark.slow
GOOD = {
    "order_id": "A1234",
    "qty": 5,
    "price": 1.5,
    "day": "2026-01-31",
    "ok": True,
    "status": "open",
    "size": 2,
    "code": "way too long",
}
WRONG = ({"order_id": "A12345"}, {"qty": 1001}, {"price": None}, {"day": "2019-01-01"}, {"status": "new"}, {"size": 4})


def insert(connection, table, row):
    names = ", ".join(f'"{name}"' for name in row)
    connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({", ".join(["%s"] * len(row))})', list(row.values()))


def test_the_exported_table_judges_rows():
    table = f"orders_{secrets.token_hex(6)}"
    script = exported(MANIFEST.model_copy(update={"name": table}), "postgres")
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as connection:
        connection.execute(script)
        try:
            insert(connection, table, GOOD)
            for number, wrong in enumerate(WRONG):
                with pytest.raises(psycopg.IntegrityError):
                    insert(connection, table, {**GOOD, "order_id": f"B-{number}", **wrong})
            with pytest.raises(psycopg.errors.UniqueViolation):
                insert(connection, table, GOOD)
        finally:
            connection.execute(f'DROP TABLE "{table}"')
