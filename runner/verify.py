"""What came out of a box is a claim: the artifact and the workbook are checked before anything is published.

Rules run in the engine's own process, so a hostile one can write whatever it likes into the outputs. What it cannot
do is to publish an artifact that names another job or input, an artifact of another shape, a workbook with formulas,
macros or links to elsewhere in it, counts that the workbook does not bear out, or books that do not balance: every
row read from a sheet is in one run of a table, or in none, and what was left out adds up by kind.
"""

import html
import json
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from core.ports import Isolation
from runner.results import AUDIT

MAX_ARTIFACT_BYTES = 64 * 1024 * 1024
MAX_SHEET_BYTES = 4 * 1024 * 1024 * 1024
_MAX_PART_BYTES = 16 * 1024 * 1024
_BLOCK = 1024 * 1024
_SHEET = re.compile(r"xl/worksheets/sheet[0-9]+\.xml")
_PARTS = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(core|app)\.xml|xl/(workbook|styles|sharedStrings)\.xml"
    r"|xl/_rels/workbook\.xml\.rels|xl/theme/theme1\.xml|" + _SHEET.pattern
)
_FORMULA = re.compile(rb"<(?:[\w.-]+:)?f[\s>/]")
_COUNTS = ("tables", "rows_in", "rows_out", "sheets_out", "columns_mapped", "columns_unmapped")
_LEFT_OUT = ("total", "group", "note", "repeated_header", "hidden", "skipped_table", "outside")
_FINDINGS = ("error", "warning", "info")


class BadOutput(Exception):
    """The box wrote something that may not be published."""


def verify(order: dict[str, Any], outputs: dict[str, Path], isolation: Isolation) -> dict[str, Any]:
    """Check the outputs of a box that says it succeeded; the counts that hold. Raises BadOutput."""
    for name in ("artifact.json", "normalized.xlsx"):
        if name not in outputs:
            raise BadOutput(f"the box wrote no {name}")
    artifact = _artifact(outputs["artifact.json"])
    _same_job(order, artifact, isolation)
    _balance(artifact)
    output = artifact["output"]
    rows = _data_rows(outputs["normalized.xlsx"], output["sheets"])
    if sum(rows) != output["rows"]:
        raise BadOutput(f"artifact.json counts {output['rows']} rows, normalized.xlsx has {sum(rows)}")
    if rows != output["sheet_rows"]:
        raise BadOutput("artifact.json counts other rows on a sheet than normalized.xlsx has there")
    return counts(artifact["summary"])


def verify_audit(order: dict[str, Any], outputs: dict[str, Path], isolation: Isolation) -> dict[str, Any]:
    """Check the artifact of a box that wrote no workbook, and says why; the counts that hold. Raises BadOutput."""
    for name in AUDIT:
        if name not in outputs:
            raise BadOutput(f"the box wrote no {name}")
    artifact = _artifact(outputs["artifact.json"])
    _same_job(order, artifact, isolation)
    _balance(artifact)
    if artifact["output"]["rows"] or artifact["output"]["sheets"]:
        raise BadOutput("artifact.json counts rows of a workbook that was not written")
    return counts(artifact["summary"])


def counts(summary: dict[str, Any]) -> dict[str, Any]:
    """Known counts as whole numbers, and nothing else: no text of the box's reaches the table."""

    def whole(value: object) -> int:
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

    def known(name: str) -> dict[str, Any]:
        told = summary.get(name)
        return told if isinstance(told, dict) else {}

    findings, left_out = known("findings"), known("left_out")
    return {name: whole(summary.get(name)) for name in _COUNTS} | {
        "left_out": {name: n for name in _LEFT_OUT if (n := whole(left_out.get(name)))},
        "findings": {name: whole(findings.get(name)) for name in _FINDINGS},
    }


@cache
def _validator() -> jsonschema_rs.Validator:
    schema = json.loads((Path(__file__).parent / "artifact.schema.json").read_text())
    return jsonschema_rs.validator_for(schema)


def _artifact(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_ARTIFACT_BYTES:
        raise BadOutput(f"artifact.json is over {MAX_ARTIFACT_BYTES} bytes")
    try:
        found = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadOutput("artifact.json is no JSON") from None
    try:
        _validator().validate(found)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        where = "/".join(str(p) for p in getattr(error, "instance_path", []))
        raise BadOutput(f"artifact.json does not fit its schema at /{where}") from None
    return dict(found)


def _no_constant(_: str) -> None:
    raise ValueError


def _same_job(order: dict[str, Any], artifact: dict[str, Any], isolation: Isolation) -> None:
    """What the runner knows itself must stand in the artifact as the runner knows it."""
    said = {
        "job": {k: artifact["job"].get(k) for k in order["job"]},
        "config": artifact["config"]["digest"],
        "inputs": [{k: i.get(k) for k in ("role", "name", "sha256", "size")} for i in artifact["inputs"]],
        "sandbox": [artifact["engine"]["sandbox"].get(k) for k in ("driver", "level")],
    }
    known = {
        "job": order["job"],
        "config": order["config"]["digest"],
        "inputs": [{k: i[k] for k in ("role", "name", "sha256", "size")} for i in order["inputs"]],
        "sandbox": [isolation.driver, isolation.level],
    }
    for what, value in known.items():
        if said[what] != value:
            raise BadOutput(f"artifact.json says something else about its {what} than the runner knows")


def _balance(artifact: dict[str, Any]) -> None:
    """Add up the books of every sheet and table, and the summary; refuse what does not come out even."""
    left_out: dict[str, int] = {}
    rows_out = 0
    for sheet in artifact["sheets"]:
        runs = _runs_by_table(sheet)
        _add_up_sheet(sheet, runs)
        for table in sheet["tables"]:
            rows_out += _add_up_table(table, _by_kind(runs[table["ref"]]))
            _count(left_out, table["left_out"])
        _count(left_out, _by_kind(runs[None]))
    summary, output = artifact["summary"], artifact["output"]
    _same("the rows of its tables and its output", rows_out, output["rows"])
    _same("the rows of its summary and its output", summary["rows_out"], output["rows"])
    _same("what was left out, in its sheets and its summary", left_out, summary["left_out"])
    _same("the rows in and out of its summary", summary["rows_in"], rows_out + sum(left_out.values()))
    _same("the sheets of its summary and its output", summary["sheets_out"], len(output["sheets"]))


def _runs_by_table(sheet: dict[str, Any]) -> dict[str | None, list[dict[str, Any]]]:
    """The runs of each table, and under None those of no table."""
    owners: dict[str | None, list[dict[str, Any]]] = {None: []}
    owners |= {table["ref"]: [] for table in sheet["tables"]}
    if len(owners) != len(sheet["tables"]) + 1:
        raise BadOutput("artifact.json gives two tables of a sheet one name")
    for run in sheet["rows"]:
        if run.get("table") not in owners:
            raise BadOutput("artifact.json lists rows of a table that it does not have")
        if (run["as"] == "outside") != ("table" not in run):
            raise BadOutput("artifact.json lists rows outside of all tables as a table's, or a table's as nobody's")
        owners[run.get("table")].append(run)
    return owners


def _add_up_sheet(sheet: dict[str, Any], owners: dict[str | None, list[dict[str, Any]]]) -> None:
    """Each row that was read is in one run, or in one run of each table that shares it."""
    for runs in (*owners.values(), sheet["shared"]):
        _in_order(runs)
    _keep_apart(sheet["rows"])
    _really_shared(sheet)
    listed = sum(run["rows"] for run in sheet["rows"])
    twice = sum((one["tables"] - 1) * one["rows"] for one in sheet["shared"])
    _same("the rows that were read and those listed", sheet["rows_read"], listed - twice)
    if sheet.get("skipped") and (sheet["rows_read"] or sheet["tables"]):
        raise BadOutput("artifact.json lists rows of a sheet that was not read")


def _in_order(runs: list[dict[str, Any]]) -> None:
    end = 0
    for run in runs:
        if not end < run["from"] <= run["to"]:
            raise BadOutput("artifact.json lists runs of rows that overlap or are out of order")
        if run["rows"] > run["to"] - run["from"] + 1:
            raise BadOutput("artifact.json lists a run with more rows than it has room for")
        end = run["to"]


def _keep_apart(runs: list[dict[str, Any]]) -> None:
    """Rows of no table stand in no table's run; tables side by side may share theirs."""
    inside = outside = 0
    for run in sorted(runs, key=lambda run: int(run["from"])):
        if run["from"] <= (outside if "table" in run else max(inside, outside)):
            raise BadOutput("artifact.json lists rows as a table's and as nobody's")
        if "table" in run:
            inside = max(inside, run["to"])
        else:
            outside = run["to"]


def _really_shared(sheet: dict[str, Any]) -> None:
    """Rows that so many tables are said to share stand where the runs of so many tables lie over each other."""
    steps: dict[int, int] = {}
    for run in sheet["rows"] if sheet["shared"] else ():
        steps[run["from"]] = steps.get(run["from"], 0) + 1
        steps[run["to"] + 1] = steps.get(run["to"] + 1, 0) - 1
    rows = sorted(steps)
    at = depth = 0
    for one in sheet["shared"]:
        while at < len(rows) and rows[at] <= one["from"]:
            depth += steps[rows[at]]
            at += 1
        most = depth
        while at < len(rows) and rows[at] <= one["to"]:
            depth += steps[rows[at]]
            most = max(most, depth)
            at += 1
        if most < one["tables"]:
            raise BadOutput("artifact.json says that tables share rows which are not theirs")


def _add_up_table(table: dict[str, Any], found: dict[str, int]) -> int:
    """The rows that a table gave to the output."""
    rows_out = found.pop("data", 0)
    left_out = {kind: rows for kind, rows in found.items() if kind not in ("header", "title")}
    _same("the rows of a table and its runs", table["rows_out"], rows_out)
    _same("what a table left out and its runs", table["left_out"], left_out)
    _same("the rows in and out of a table", table["rows_in"], rows_out + sum(left_out.values()))
    if rows_out and table.get("skipped"):
        raise BadOutput("artifact.json counts rows of a table that was left out")
    return rows_out


def _by_kind(runs: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in runs:
        _count(found, {run["as"]: run["rows"]})
    return found


def _count(into: dict[str, int], more: dict[str, int]) -> None:
    for kind, rows in more.items():
        into[kind] = into.get(kind, 0) + rows


def _same(what: str, one: object, other: object) -> None:
    if one != other:
        raise BadOutput(f"the books do not balance: artifact.json differs in {what}")


def _data_rows(path: Path, data_sheets: list[str]) -> list[int]:
    """Rows below the header of each data sheet, counted; refuses parts that a plain workbook does not have."""
    try:
        with zipfile.ZipFile(path) as book:
            for name in book.namelist():
                if not _PARTS.fullmatch(name):
                    raise BadOutput("normalized.xlsx has a part that a plain workbook does not have")
            places = _sheets(book)
            rows = {name: _rows_of(book, part) for name, part in places.items()}
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, OSError, ValueError, RuntimeError):
        raise BadOutput("normalized.xlsx is no workbook that can be read back") from None
    if missing := [name for name in data_sheets if name not in rows]:
        raise BadOutput(f"artifact.json names {len(missing)} sheets that normalized.xlsx does not have")
    if len(set(data_sheets)) != len(data_sheets):
        raise BadOutput("artifact.json names a sheet twice")
    return [max(0, rows[name] - 1) for name in data_sheets]


def _sheets(book: zipfile.ZipFile) -> dict[str, str]:
    """Sheet name to part."""
    texts = [_part(book, name) for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels")]
    targets = {
        _attribute(tag, "Id"): _attribute(tag, "Target") for tag in re.findall(r"<Relationship [^>]*>", texts[1])
    }
    found = {}
    for tag in re.findall(r"<sheet [^>]*>", texts[0]):
        part = "xl/" + targets[_attribute(tag, "r:id")].removeprefix("/xl/")
        if not _SHEET.fullmatch(part):
            raise BadOutput("normalized.xlsx has a sheet that is no worksheet")
        found[html.unescape(_attribute(tag, "name"))] = part
    return found


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\s{re.escape(name)}="([^"]*)"', tag)
    if found is None:
        raise ValueError(name)
    return found[1]


def _part(book: zipfile.ZipFile, name: str) -> str:
    with book.open(name) as source:
        body = source.read(_MAX_PART_BYTES + 1)
    if len(body) > _MAX_PART_BYTES:
        raise BadOutput("normalized.xlsx has a part that is too large")
    return body.decode()


def _rows_of(book: zipfile.ZipFile, part: str) -> int:
    """Row tags of a sheet, streamed. Formulas are refused: what was text must stay text."""
    rows = 0
    for block in _blocks(book, part):
        rows += block.count(b"<row")
        # Cheap looks spare the pattern for nearly every block, and single bytes are found ten times as fast.
        if (b"<f" in block or (b":" in block and b":f" in block)) and _FORMULA.search(block):
            raise BadOutput("normalized.xlsx holds a formula; only values are published")
        if b"\0" in block or (b"!" in block and b"<!" in block):
            raise BadOutput("normalized.xlsx has a sheet in a form that is not read back")
    return rows


def _blocks(book: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """The part in pieces that end at a tag's end, so that no tag is cut in two."""
    total, rest = 0, b""
    with book.open(part) as source:
        while piece := source.read(_BLOCK):
            total += len(piece)
            if total > MAX_SHEET_BYTES:
                raise BadOutput("normalized.xlsx has a sheet that is too large")
            piece = rest + piece
            end = piece.rfind(b">") + 1
            if not end and len(piece) > 4 * _BLOCK:
                raise BadOutput("normalized.xlsx has a sheet that is no sheet")
            yield piece[:end]
            rest = piece[end:]
    yield rest
