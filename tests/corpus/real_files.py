"""Real files through all passes, with a manifest made from their own headers: rows and cells in = out + reported.

``python -m tests.corpus.real_files [--files N] [--seed S] [--list]`` reads the workbooks of ``../shared`` with openpyxl, xlrd
and ``csv``, which share no code with the engine, and accounts for every row that holds something. A row is *out* if it is in the
output with all of its cells, *proven* if it names columns, repeats a header, is a title above a table or a sum,
*told* if a warning covers it, *labelled* if people who labelled the file say that it is no record, and *silent* otherwise. A cell of a row that is out must be in that row of the output, or told.
Not everything silent is wrong (a remark below a table is left out with an info): ``--list`` names the places to read.
"""

import argparse
import contextlib
import csv
import io
import json
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import xlrd

from runner.engine.scan import scan_file
from tests.truth.cases import Case
from tests.truth.running import Outcome, run_case

SHARED = Path(__file__).parents[3] / "shared"
BOOKS = (".xlsx", ".xlsm", ".xls")
TEXTS = (".csv", ".CSV")
MAX_BYTES, MAX_FIELDS, MAX_ROWS = 600_000, 60, 20_000
PROVEN = {"header", "title", "repeated_header", "total", "hidden"}
NO_RECORDS = {"notes", "group", "metadata", "header", "derived"}  # what people call them
Cells = dict[int, list[str]]  # row, from 1 -> what its cells show, normalized


@dataclass
class Account:
    file: str
    error: str | None = None
    rows: Counter[str] = field(default_factory=Counter)
    cells: Counter[str] = field(default_factory=Counter)
    silent: tuple[str, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)


def plain(value: Any) -> str:
    """One text for what a cell holds, whatever type a reader or a writer gave it."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, timedelta):
        return f"{value.total_seconds() / 86400:.9g}"
    if isinstance(value, datetime):
        value = (value + timedelta(microseconds=500_000)).replace(microsecond=0)
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float | int):
        return f"{value:.12g}"
    text = re.sub(r"\s+", " ", str(value)).strip().lower()
    try:
        return f"{float(text):.12g}" if re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?", text) else text
    except ValueError:
        return text


def sheets_of(path: Path, notes: dict[str, Any]) -> dict[str, Cells]:
    """The non-blank cells of each sheet, by readers that are not ours."""
    if path.suffix in BOOKS:
        return {name: _cells(rows) for name, rows in _grids(path)}
    text = path.read_bytes().decode(notes.get("encoding") or "utf-8", "replace").lstrip("\ufeff")
    csv.field_size_limit(10**9)
    return {"": _cells(csv.reader(io.StringIO(text, newline=""), delimiter=notes.get("delimiter") or ","))}


def _grids(path: Path) -> Iterator[tuple[str, list[list[Any]]]]:
    """openpyxl for the formats it reads, xlrd for the old one: both place cells by their address."""
    if path.suffix == ".xls":
        book = xlrd.open_workbook(path, on_demand=True)
        for sheet in book.sheets():
            yield sheet.name, [[_xlrd_value(c, book.datemode) for c in row] for row in sheet.get_rows()]
    else:
        workbook = openpyxl.load_workbook(path, data_only=True)
        for worksheet in workbook.worksheets:
            yield worksheet.title, [list(row) for row in worksheet.iter_rows(min_row=1, min_col=1, values_only=True)]


def _xlrd_value(cell: Any, epoch: int) -> Any:
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            return xlrd.xldate_as_datetime(cell.value, epoch)
        except (ValueError, OverflowError):
            return cell.value
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return xlrd.error_text_from_code.get(cell.value, "#?")
    return bool(cell.value) if cell.ctype == xlrd.XL_CELL_BOOLEAN else cell.value


def _cells(rows: Any) -> Cells:
    found: Cells = {}
    for number, row in enumerate(rows, 1):
        filled = [text for text in map(plain, row) if text]
        if filled:
            found[number] = filled
    return found


def manifest_for(path: Path) -> list[dict[str, Any]]:
    """A field for each header of the largest table that a scan finds: its text, nothing else."""
    scanned = scan_file(path)
    tables = [(t, s["name"]) for s in scanned.get("sheets", ()) for t in s["tables"] if t["header_rows"]]  # type: ignore[attr-defined]
    if not tables:
        return []
    table, sheet = max(tables, key=lambda t: _area(t[0]["range"]))
    if path.suffix in BOOKS:
        header = dict(_grids(path))[sheet][table["header_rows"][-1] - 1]
    else:
        header = next(iter(_texts(path, table["header_rows"][-1])), [])
    labels = dict.fromkeys(str(text).strip()[:150] for text in header if text is not None and str(text).strip())
    return [{"name": f"c{n}", "label": label} for n, label in enumerate(labels)][:MAX_FIELDS]


def _texts(path: Path, row: int) -> Iterator[list[str]]:
    text = path.read_bytes().decode("utf-8", "replace").lstrip("\ufeff")
    dialect: Any = csv.excel
    with contextlib.suppress(csv.Error):
        dialect = csv.Sniffer().sniff(text[:20_000], ",;\t|")
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline=""), dialect), 1):
        if number == row:
            yield cells
            return


def _area(box: str) -> int:
    left, top, right, bottom = re.fullmatch(r"([A-Z]+)(\d+):([A-Z]+)(\d+)", box).groups()  # type: ignore[union-attr]
    return (int(bottom) - int(top)) * (_number(right) - _number(left) + 1)


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def account(path: Path) -> Account:
    name = str(path.relative_to(SHARED))
    try:
        fields = manifest_for(path)
    except Exception as error:  # noqa: BLE001  # the other reader's
        return Account(name, f"unread: {type(error).__name__}")
    if not fields:
        return Account(name, "no header")
    case = Case("real", 0, path.name, path.read_bytes(), fields, [], manifest={"output": {"provenance": True}})
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_case(case, Path(folder))
    if outcome.error is not None:
        return Account(name, f"failed: {outcome.error['code']}", warnings=_warnings(outcome))
    try:
        sheets = sheets_of(path, outcome.artifact["inputs"][0].get("notes") or {})
    except Exception as error:  # noqa: BLE001
        return Account(name, f"unread: {type(error).__name__}")
    return compare(name, sheets, outcome)


def _warnings(outcome: Outcome) -> Counter[str]:
    found = outcome.artifact.get("validation", {}).get("totals", ())
    return Counter({t["code"]: 1 for t in found if t["severity"] != "info"})


def compare(name: str, sheets: dict[str, Cells], outcome: Outcome) -> Account:
    artifact = outcome.artifact
    out = _rows_out(outcome)
    rows: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    silent: list[str] = []
    for sheet in artifact["sheets"]:
        if sheet.get("skipped"):
            rows["told"] += len(sheets.get(sheet["name"], ()))
            continue
        kinds, warned = _kinds(sheet), _warned(artifact, sheet)
        excused = bool(sheet.get("beside")) or any(t.get("left_out_columns") for t in sheet["tables"])
        for number, filled in sheets.get(
            sheet["name"] if len(sheets) > 1 or sheet["name"] in sheets else "", {}
        ).items():
            got = out.get((sheet["name"], number))
            if got is None:
                word = _fate(kinds.get(number, "unknown"), number in warned, _label(name, number))
                rows[word] += 1
                if word.startswith("silent"):
                    silent.append(f"{sheet['name']}!{number} {kinds.get(number, 'unknown')}")
                continue
            rows["out"] += 1
            lost = sum(_missing(filled, got).values())
            cells["out"] += len(filled) - lost
            if lost:
                word = "told" if number in warned or excused else "silent"
                cells[word] += lost
                if word == "silent":
                    silent.append(f"{sheet['name']}!{number} {lost} cells")
    return Account(name, None, rows, cells, tuple(silent), _warnings(outcome))


def _missing(filled: list[str], got: Counter[str]) -> Counter[str]:
    """Cells that the output row lacks; a text field shows numbers as their format does, with the same digits."""
    missing = Counter(filled) - got
    shown = Counter(re.sub(r"[^0-9]", "", text) for text in (got - Counter(filled)).elements())
    for text in list(missing):
        digits = re.sub(r"[^0-9]", "", text)
        fits = min(missing[text], shown[digits]) if digits else 0
        missing[text] -= fits
        shown[digits] -= fits
    return +missing


def _fate(kind: str, warned: bool, label: str) -> str:
    if kind in PROVEN:
        return "proven"
    if warned:
        return "told"
    return "labelled" if label in NO_RECORDS else f"silent {kind}"


def _label(name: str, number: int) -> str:
    """What people call a row of a file; empty if nobody did."""
    labels = _labels().get(name.removeprefix("corpus/labelled/"), [])
    return labels[number - 1] if number <= len(labels) else ""


@cache
def _labels() -> dict[str, list[str]]:
    lines = [
        line for path in (SHARED / "corpus/labelled/truth").glob("lines_*") for line in path.open(encoding="utf-8")
    ]
    return {one["file"]: one["line_labels"] for one in map(json.loads, lines)}


def _rows_out(outcome: Outcome) -> dict[tuple[str, int], Counter[str]]:
    names = [str(h) for h in outcome.header]
    sheet_at, row_at = names.index("source_sheet"), names.index("source_row")
    found: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for row in outcome.rows:
        key = str(row[sheet_at] or ""), int(row[row_at])
        found[key].update(text for text in map(plain, row[: len(row) - 3]) if text)
    return found


def _kinds(sheet: dict[str, Any]) -> dict[int, str]:
    kinds: dict[int, str] = {}
    for run in sheet["rows"]:
        for number in range(run["from"], run["to"] + 1):
            kinds[number] = run["as"]
    return kinds


def _warned(artifact: dict[str, Any], sheet: dict[str, Any]) -> set[int]:
    """Rows of a sheet that a warning names, or whose table, sheet or file one names."""
    found: set[int] = set()
    runs = [range(run["from"], run["to"] + 1) for run in sheet["rows"]]
    for finding in artifact["validation"]["findings"]:
        if finding["severity"] == "info" or finding.get("sheet") not in (None, sheet["name"]):
            continue
        if (row := finding.get("row")) is not None:
            found.update(next((run for run in runs if row in run), [row]))
            continue
        within = [t for t in sheet["tables"] if t["id"] == finding.get("table")]
        for table in within:
            top, bottom = (int(n) for n in re.findall(r"\d+", table["range"])[:2])
            found.update(range(top, bottom + 1))
    return found


def files(seed: int, most: int) -> list[Path]:
    found = [
        path
        for folder in ("corpus", "enron")
        for path in sorted((SHARED / folder).rglob("*"))
        if path.suffix in BOOKS + TEXTS and "expected" not in path.parts and path.stat().st_size <= MAX_BYTES
    ]
    return sorted(random.Random(seed).sample(found, min(most, len(found))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name every place that is silent")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    warnings: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    with ProcessPoolExecutor(2) as pool:
        for one in pool.map(account, files(options.seed, options.files), chunksize=4):
            ends[one.error or "accounted"] += 1
            rows, cells, warnings = rows + one.rows, cells + one.cells, warnings + one.warnings
            if options.list and one.silent:
                print(one.file, *one.silent[:12], "…" if len(one.silent) > 12 else "", sep="\n   ")
    total = {"files": dict(ends), "rows": dict(rows), "cells": dict(cells), "files_with_warnings": dict(warnings)}
    if options.json:
        print(json.dumps(total))
    else:
        for part, counts in total.items():
            print(f"{part:20}", ", ".join(f"{k} {n}" for k, n in sorted(counts.items(), key=lambda x: -x[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
