"""`ade move URL`: move jobs and messages from the data folder to PostgreSQL."""

import argparse
from pathlib import Path

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import plural
from core.errors import UsageError
from infra.addresses import is_postgres
from infra.local.presence import alive_owners, open_below
from infra.local.sqlite import leaving
from infra.wiring import open_table_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="postgresql://…, a schema that `ade infra init` just made")


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    data = settings.storage_data_dir.absolute()
    source = data / "ade.sqlite"
    if settings.table_url or settings.queue_url:
        raise UsageError("ADE_TABLE_URL or ADE_QUEUE_URL is set: only the table of a data folder can be moved")
    if not is_postgres(args.url):
        raise UsageError("the table can be moved to postgresql://… only")
    if not source.exists():
        raise UsageError(f"{data} has no ade.sqlite; set ADE_STORAGE_DATA_DIR to the data folder")
    _check_idle(data)
    with open_table_of(data, settings) as table:
        if damaged := table.damaged(limit=5):
            raise UsageError(f"rows cannot be read: {', '.join(damaged)}; repair or delete them first (`ade doctor`)")
    from infra.postgres.moving import move_tables  # noqa: PLC0415 - psycopg is slow to import

    with leaving(source):
        _check_idle(data)  # whoever comes now waits for the file, and is refused
        moved, before = move_tables(source, args.url)
    if out.as_json:
        tables = {name: {"rows": one.rows, "sha256": one.sha256} for name, one in moved.items()}
        out.emit({"moved": tables, "before": before})
        return Exit.OK
    out.table(("TABLE", "ROWS", "SHA-256"), [(name, f"{one.rows:,}", one.sha256[:16]) for name, one in moved.items()])
    out.note(f"{plural(moved['jobs'].rows, 'job')} compared; from now on set ADE_TABLE_URL. {source} is not used again")
    return Exit.OK


def _check_idle(data: Path) -> None:
    if busy := [*alive_owners(data / "run"), *(f"process {pid}" for pid in open_below(data / "ade.sqlite"))]:
        raise UsageError(f"{', '.join(busy)} works on {data}; stop every process of it first (SIGTERM drains)")
