"""`python -m runner.engine.scan FILE…`: the structure of each file, one JSON line a file."""

import json
import sys
from pathlib import Path

from runner.engine.reading import InputUnreadable, open_book
from runner.engine.structure import find_tables


def scan_file(path: str | Path) -> dict[str, object]:
    """Sheets and tables of a file, or why it cannot be read. Never raises."""
    try:
        with open_book(path, name=Path(path).name) as book:
            sheets = [
                {"name": sheet.name, "tables": [table.as_dict() for table in find_tables(sheet)]}
                for sheet in book.sheets
            ]
    except InputUnreadable as error:
        return {"file": str(path), "error": f"{error.message} {error.remedy}", "code": error.code}
    except OSError as error:
        return {"file": str(path), "error": f"cannot open the file: {error.strerror}", "code": "unopened"}
    except MemoryError:
        return {
            "file": str(path),
            "error": "the file needs more memory than there is",
            "code": "out_of_memory",
        }
    except Exception as error:  # noqa: BLE001  # one hostile file must not stop the others; the type names the fault
        return {
            "file": str(path),
            "error": f"the engine failed: {type(error).__name__}",
            "code": "engine_error",
        }
    return {"file": str(path), "sheets": sheets}


def main(arguments: list[str]) -> int:
    for path in arguments:
        sys.stdout.write(json.dumps(scan_file(path)) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
