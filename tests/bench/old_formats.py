"""CPU time and peak memory of reading xls and ods: our readers beside calamine and xlrd.

    python -m tests.bench.old_formats [--rows 60000]

Each way runs in its own process and reads every cell; peak memory is that of the process.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = 10
WAYS = {"xls": ("ours", "calamine", "xlrd"), "ods": ("ours", "calamine")}


def make(path: Path, rows: int) -> None:
    content = [[f"column {c}" for c in range(COLUMNS)]]
    content += [[n * c + 0.5 if c % 2 else f"text {n % 997}" for c in range(COLUMNS)] for n in range(rows)]
    if path.suffix == ".xls":
        import xlwt  # noqa: PLC0415 - only for this format

        book = xlwt.Workbook()
        sheet = book.add_sheet("data")
        for r, row in enumerate(content):
            for c, value in enumerate(row):
                sheet.write(r, c, value)
        book.save(str(path))
        return
    from tests.truth.cases import Sheet  # noqa: PLC0415 - not in the measured processes
    from tests.truth.writers import as_ods  # noqa: PLC0415

    made = [Sheet("data", content)]
    path.write_bytes(as_ods(made))


def read(way: str, path: Path) -> int:
    """Reads every cell; returns the number of rows."""
    if way == "ours":
        from runner.engine.reading.opening import open_book  # noqa: PLC0415

        return sum(1 for sheet in open_book(path, name=path.name).sheets for _ in sheet.rows())
    if way == "xlrd":
        import xlrd  # noqa: PLC0415

        return sum(1 for sheet in xlrd.open_workbook(str(path)).sheets() for _ in sheet.get_rows())
    from python_calamine import CalamineWorkbook  # noqa: PLC0415

    book = CalamineWorkbook.from_path(str(path))
    return sum(len(book.get_sheet_by_name(name).to_python()) for name in book.sheet_names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--only", choices=sorted(WAYS), help="one format")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FILE"))
    args = parser.parse_args()
    if args.one:
        before = time.process_time()
        rows = read(args.one[0], Path(args.one[1]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(json.dumps({"rows": rows, "cpu": time.process_time() - before, "peak_mb": peak}))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind, ways in WAYS.items():
            if args.only not in (None, kind):
                continue
            path = Path(folder) / f"made.{kind}"
            subprocess.run(  # its memory must not count
                [
                    sys.executable,
                    "-c",
                    f"from tests.bench.old_formats import *; make(Path({str(path)!r}), {args.rows})",
                ],
                check=True,
            )
            for way in ways:
                command = [sys.executable, "-m", "tests.bench.old_formats", "--one", way, str(path)]
                out = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
                sys.stdout.write(
                    f"{kind:5} {way:9} {out['rows']:7} rows {out['cpu']:6.2f} s {out['peak_mb']:6.0f} MB\n"
                )


if __name__ == "__main__":
    main()
