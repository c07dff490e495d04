"""How often real files break what was drafted from their first half: `python -m tests.bench.draft_halves [FOLDER…]`.

Takes the CSV files of the shared corpus that are one table with its header in the first row. Three parts of the first half
are the samples, three of the second half are the later files; many files are sorted, so these are harder than a sender's
next file. A case is a rule of the draft that meets a later file.
"""

import csv
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from runner.engine.scan import scan_file
from tests.bench.dirty_tables import drafted
from tests.bench.draft_scores import RULES, broken

SHARED = Path(__file__).parents[2] / "../shared"
FOLDERS = (SHARED / "corpus" / "labelled", SHARED / "corpus" / "messy", SHARED / "eval" / "dirty")
SAMPLES = 3
MOST_BYTES, ROWS = 3_000_000, range(100, 8000)


def rows_of(path: Path) -> list[list[str]]:
    """The rows of a file that is one table under its first row; empty if it is not."""
    tables = [table for sheet in scan_file(path).get("sheets", ()) for table in sheet["tables"]]
    if len(tables) != 1 or tables[0]["header_rows"] != [1]:
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        rows = list(csv.reader(lines, csv.Sniffer().sniff(lines[0])))
    except (UnicodeDecodeError, csv.Error):
        return []
    return rows if len(rows) in ROWS else []


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(rows)
    return path


def judge(rows: list[list[str]], folder: Path, cases: Counter[str], breaks: Counter[str]) -> None:
    part = len(rows) // (2 * SAMPLES)
    parts = [[rows[0], *rows[1 + n * part : 1 + (n + 1) * part]] for n in range(2 * SAMPLES)]
    manifest = drafted([write(folder / f"{n}.csv", part) for n, part in enumerate(parts[:SAMPLES])])
    for later in parts[SAMPLES:]:
        hit = broken(manifest, write(folder / "later.csv", later), folder)
        for spec in manifest["fields"]:
            for rule, code in RULES.items():
                if rule in spec and (rule != "type" or spec["type"] not in ("text", "enum")):
                    cases[rule] += 1
                    breaks[rule] += (spec["name"], code) in hit


def main(folders: list[str]) -> None:
    files = [
        path
        for folder in folders or FOLDERS
        for path in Path(folder).rglob("*.csv")
        if not path.name.endswith(".dirty.csv")
    ]
    random.Random(3).shuffle(files)
    cases, breaks, used = Counter[str](), Counter[str](), 0
    for path in files:
        rows = rows_of(path) if path.stat().st_size < MOST_BYTES else []
        if not rows:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                judge(rows, Path(folder), cases, breaks)
            except Exception as error:  # noqa: BLE001 - one file must not end the others
                print(f"{path.name}: {type(error).__name__}")
                continue
        used += 1
    print(f"{used} files")
    for rule, count in sorted(cases.items()):
        print(f"{rule:<9} {count:>5} cases, broken {breaks[rule]:>3}: {breaks[rule] / count:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
