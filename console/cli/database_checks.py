"""The checks of `ade doctor` for PostgreSQL databases; imported only where table or queue is in one."""

from collections.abc import Iterator

from console.cli.checks import OK, WARNING, WRONG, Check
from console.job_facts import span
from infra.postgres.health import RUNNER_CONNECTIONS, ServerHealth, examine_all
from infra.wiring import Stack

_LONG_SECONDS = 600.0  # an open transaction of this age keeps vacuum from its work
_RIGHTS = {
    "own": "the owner of the schema",
    "run": "who may run jobs",
    "record": "who may record jobs but not run them",
    "read": "who may only read",
    "": "a stranger",
}


def check_databases(stack: Stack) -> Iterator[Check]:
    for found in examine_all(stack.callers):
        yield from check_health(found)


def check_health(found: ServerHealth) -> Iterator[Check]:
    name, schema = found.name, found.schema
    if found.newer:
        message = f"{name} has schema version {found.version}, one ahead of this program"
        yield Check("database", WARNING, message, "upgrade this process before the next version comes")
    if not found.may or found.standby:
        why = "is a standby, which takes no writes" if found.standby else f"gives {found.user} no rights"
        remedy = (
            "add target_session_attrs=read-write to the URL, and name every host in it"
            if found.standby
            else f"GRANT {schema}_runner TO {found.user}; docs/guides/postgres.md says which role is for whom"
        )
        yield Check("database", WRONG, f"{name} {why}", remedy)
    left = found.most_connections - found.connections
    if left < 2 * RUNNER_CONNECTIONS:
        message = (
            f"{name} has {found.connections} of {found.most_connections} connections in use; "
            f"a runner opens up to {RUNNER_CONNECTIONS}"
        )
        yield Check("database", WARNING, message, "raise max_connections, or lower ?pool= of the URLs")
    for table, (rows, dead) in found.bloated.items():
        remedy = f"find out why autovacuum does not keep up, then VACUUM {schema}.{table}"
        if not found.autovacuum:
            remedy = "turn autovacuum on"
        elif found.longest_transaction > _LONG_SECONDS:
            remedy = f"end the transaction that has been open for {span(found.longest_transaction)}: it keeps them all"
        yield Check("database", WARNING, f"{schema}.{table} has {rows} rows and {dead} dead ones", remedy)
    if not found.autovacuum:
        yield Check("database", WARNING, f"{name} has autovacuum off: its tables grow without end", "turn it on")
    if not found.fsync:
        yield Check("database", WRONG, f"{name} has fsync off: a crash may lose or damage every job", "turn it on")
    if found.pooled:
        message = f"{name} is behind a pooler in transaction mode: runners poll the queue twice a second"
        yield Check("database", WARNING, message, "let runners connect directly: they then learn of a job at once")
    message = (
        f"PostgreSQL {found.server}, schema version {found.version}, as {found.user}, {_RIGHTS[found.may]}; "
        f"{found.connections} of {found.most_connections} connections; {found.bytes / 1024**2:.0f} MB"
    )
    yield Check("database", OK, message)
