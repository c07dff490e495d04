"""What came out of a box is a claim: the artifact and the workbook are checked before anything is published.

Rules run in the engine's own process, so a hostile one can write whatever it likes into the outputs. What it cannot
do is to publish an artifact that names another job or input, an artifact of another shape, a workbook with formulas,
macros or links to elsewhere in it, or counts that the workbook does not bear out.
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
_COUNTS = ("tables", "rows_in", "rows_out", "columns_mapped", "columns_unmapped")
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
    rows = _data_rows(outputs["normalized.xlsx"], artifact["output"]["sheets"])
    if rows != artifact["output"]["rows"]:
        raise BadOutput(f"artifact.json counts {artifact['output']['rows']} rows, normalized.xlsx has {rows}")
    return counts(artifact["summary"])


def verify_audit(order: dict[str, Any], outputs: dict[str, Path], isolation: Isolation) -> dict[str, Any]:
    """Check the artifact of a box that wrote no workbook, and says why; the counts that hold. Raises BadOutput."""
    for name in AUDIT:
        if name not in outputs:
            raise BadOutput(f"the box wrote no {name}")
    artifact = _artifact(outputs["artifact.json"])
    _same_job(order, artifact, isolation)
    if artifact["output"]["rows"] or artifact["output"]["sheets"]:
        raise BadOutput("artifact.json counts rows of a workbook that was not written")
    return counts(artifact["summary"])


def counts(summary: dict[str, Any]) -> dict[str, Any]:
    """Known counts as whole numbers, and nothing else: no text of the box's reaches the table."""

    def whole(value: object) -> int:
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

    findings = summary.get("findings")
    told = findings if isinstance(findings, dict) else {}
    return {name: whole(summary.get(name)) for name in _COUNTS} | {
        "findings": {name: whole(told.get(name)) for name in _FINDINGS}
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


def _data_rows(path: Path, data_sheets: list[str]) -> int:
    """Rows below the headers of the data sheets, counted; refuses parts that a plain workbook does not have."""
    try:
        with zipfile.ZipFile(path) as book:
            for name in book.namelist():
                if not _PARTS.fullmatch(name):
                    raise BadOutput("normalized.xlsx has a part that a plain workbook does not have")
            places = _sheets(book)
            rows = {name: _count(book, part) for name, part in places.items()}
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, OSError, ValueError, RuntimeError):
        raise BadOutput("normalized.xlsx is no workbook that can be read back") from None
    if missing := [name for name in data_sheets if name not in rows]:
        raise BadOutput(f"artifact.json names {len(missing)} sheets that normalized.xlsx does not have")
    return sum(max(0, rows[name] - 1) for name in data_sheets)


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


def _count(book: zipfile.ZipFile, part: str) -> int:
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
