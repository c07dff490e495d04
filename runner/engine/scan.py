"""Scans files without running a workflow, one JSON line per file: their tables, or their columns' fields as well.

`python -m runner.engine.scan FILE…` finds tables; with `--map` an order without inputs and outputs is read from
standard input (docs/reference/engine-order.md) and every table's columns are mapped to its fields.
"""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.engine.job import EngineJob
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.protocol import EngineStop, EventWriter, read_order
from runner.engine.reading import InputUnreadable, open_book
from runner.engine.structure import find_tables


def scan_file(path: str | Path) -> dict[str, object]:
    """Return the sheets and tables of a file, or why it cannot be read. Never raises."""
    return _guarded(path, _sheets)


def map_file(path: str | Path, order: dict[str, Any]) -> dict[str, object]:
    """Return the tables of a file with each column's field, or why it cannot be read. Never raises."""
    return _guarded(path, lambda path: _tables(path, order))


def _guarded(path: str | Path, scan: Callable[[str | Path], dict[str, object]]) -> dict[str, object]:
    """Return what a scan found in a file, or in words why it cannot be scanned."""
    try:
        return {"file": str(path), **scan(path)}
    except InputUnreadable as error:
        return {"file": str(path), "error": f"{error.message} {error.remedy}", "code": error.code}
    except EngineStop as stop:
        remedy = stop.where.get("remedy")
        code = stop.where.get("reason") or stop.code
        return {"file": str(path), "error": f"{stop.message} {remedy}" if remedy else stop.message, "code": code}
    except OSError as error:
        return {"file": str(path), "error": f"cannot open the file: {error.strerror}", "code": "unopened"}
    except MemoryError:
        return {"file": str(path), "error": "the file needs more memory than there is", "code": "out_of_memory"}
    except Exception as error:  # noqa: BLE001  # one hostile file must not stop the others; the type names the fault
        return {"file": str(path), "error": f"the engine failed: {type(error).__name__}", "code": "engine_error"}


def _sheets(path: str | Path) -> dict[str, object]:
    """Return the tables of each sheet of a file."""
    with open_book(path, name=Path(path).name) as book:
        sheets = [
            {"name": sheet.name, "tables": [table.as_dict() for table in find_tables(sheet)]} for sheet in book.sheets
        ]
    return {"sheets": sheets}


def _tables(path: str | Path, order: dict[str, Any]) -> dict[str, object]:
    """Return the tables of a file with their columns mapped by an order's manifest."""
    source = {"role": "primary", "name": Path(path).name, "path": str(Path(path).absolute())}
    asked = {"order": 1, **order, "inputs": [source, *order.get("inputs", ())], "outputs": {}}
    tables = EngineJob(read_order(asked, Path.cwd()), EventWriter(None)).map_only()
    return {"tables": [_table(table) for table in tables]}


def _table(table: MappedTable) -> dict[str, object]:
    """Return a table as its JSON form: where it is, its header and its mapped columns."""
    return {
        "sheet": table.source.place.sheet,
        "range": table.source.table.range.a1,
        "header_rows": list(table.source.table.header_rows),
        "columns": [table.column_facts(choice) for choice in table.choices],
    }


def main(arguments: list[str]) -> int:
    """Scan files, or map them with the order from standard input (`--map`); one line of JSON each."""
    order = json.load(sys.stdin) if arguments[:1] == ["--map"] else None
    for path in arguments if order is None else arguments[1:]:
        result = scan_file(path) if order is None else map_file(path, order)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever asked is gone: so is the answer
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
