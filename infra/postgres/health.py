"""How a database of ade-drop is: version, rights, connections, dead rows, and settings that break a promise."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from infra.postgres.connections import SCHEMA_VERSION, Connections

RUNNER_CONNECTIONS = 13  # the most that one runner opens with the default pool; see docs/guides/postgres.md
_DEAD_ROWS = 20_000  # of a table of any size
_DEAD_SHARE = 0.25  # of a large one; its autovacuum settings start at a tenth of this


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """What can be seen with the rights of any role."""

    name: str
    schema: str
    server: str  # its version
    version: int  # of the schema
    user: str
    may: str  # "own", "run", "record" or "read": the most that the user's rights allow; "" for less
    pooled: bool  # a pooler lends sessions by the transaction
    standby: bool
    fsync: bool
    autovacuum: bool
    connections: int  # in use, of all databases
    most_connections: int  # that ordinary users can have
    dead: dict[str, tuple[int, int]]  # table → rows, dead rows
    longest_transaction: float  # seconds, of the sessions that this user may see
    bytes: int  # on disk, indexes included

    @property
    def newer(self) -> bool:
        return self.version > SCHEMA_VERSION

    @property
    def bloated(self) -> dict[str, tuple[int, int]]:
        """The tables that vacuum does not keep up with."""
        return {
            table: (rows, dead)
            for table, (rows, dead) in self.dead.items()
            if dead > _DEAD_ROWS + _DEAD_SHARE * (rows + dead)
        }


def examine_all(callers: Iterable[object]) -> Iterator[ServerHealth]:
    """Of every PostgreSQL among the services that a process calls."""
    yield from (examine(caller) for caller in callers if isinstance(caller, Connections))


def examine(connections: Connections) -> ServerHealth:
    pooled = connections("examine", lambda db, _retried: db.prepare_threshold is None)
    ((server, version, user, may, standby, fsync, autovacuum, used, most, longest),) = connections.run(
        "examine", "health", schema=connections.database.schema
    )
    tables = connections.run("examine tables", "dead_rows", schema=connections.database.schema)
    return ServerHealth(
        name=connections.service,
        schema=connections.database.schema,
        server=server,
        version=version or 0,
        user=user,
        may=may,
        pooled=pooled,
        standby=standby,
        fsync=fsync,
        autovacuum=autovacuum,
        connections=used,
        most_connections=most,
        dead={name: (rows, dead) for name, rows, dead, _ in tables},
        longest_transaction=longest,
        bytes=sum(size for *_, size in tables),
    )
