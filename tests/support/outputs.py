"""The smallest outputs that a well-behaved box can write: they pass every check of the runner."""

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.verdicts import Verdict
from runner import attempt
from runner.boxes import BoxReport, Isolation
from runner.engine.contract import InputFile, JobFacts, Order, SandboxFacts, VerifyOrder
from runner.engine.deciding.questions import question_id
from runner.engine.pages.report import report
from runner.engine.pages.review_page import review_page
from runner.engine.verifying import BadOutput
from runner.engine.verifying.order import summary_of, verify_review
from runner.engine.verifying.order import verify as verify_outputs
from runner.engine.writing import BookWriter, OutputColumn
from runner.engine.writing.book import ArchiveWriter

PASSES = ("structure", "mapping", "read", "transform", "validate", "write")

BOX = Isolation(driver="jail", level="isolated", rungs={}, gaps=())
ORDER = Order(
    job=JobFacts(job_id="a-b-1", tenant="a", workflow="b", attempt=1),
    manifest={},
    inputs=(InputFile(role="primary", name="m.csv", path=Path("in", "0"), size=3, sha256="0" * 64),),
    config_digest="d",
)


def workbook(rows: int = 1, *, title: str = "") -> bytes:
    """A workbook of our own with a header and so many rows."""
    body = io.BytesIO()
    book = BookWriter(body, title=title)
    sheet = book.sheet("Normalized", [OutputColumn("n")])
    sheet.write([list(range(1, rows + 1))], rows)
    sheet.close()
    book.close()
    return body.getvalue()


def members(book: bytes) -> dict[str, bytes]:
    """The parts of a workbook, to be changed and zipped again."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: Iterable[tuple[str, bytes]]) -> bytes:
    """Parts as a zip that our own writer could have made: only what is in them can be wrong."""
    body = io.BytesIO()
    archive = ArchiveWriter(body)
    for name, part in parts:
        entry = archive.entry(name)
        entry.write(part)
        entry.close()
    archive.close()
    return body.getvalue()


def order_to_verify(
    order: Order, names: Iterable[str], isolation: Isolation, *, audit: bool = False, review: bool = False
) -> VerifyOrder:
    """The order that the runner makes of a job's, as a driver would hand it on."""
    return replace(
        attempt.verification_order(order),
        audit=audit,
        review=review,
        written={name: Path(name) for name in names},
        sandbox=SandboxFacts(driver=isolation.driver, level=isolation.level),
        outputs={name: Path(name) for name in ("report.html", "review.html", "rejects.xlsx")},
    )


def check(order: Order, paths: Mapping[str, Path], isolation: Isolation, *, audit: bool = False) -> dict[str, Any]:
    """Verify outputs here, without a box; the counts that hold. Raises BadOutput."""
    asked = replace(order_to_verify(order, (), isolation, audit=audit), written=dict(paths))
    found = verify_outputs(asked)
    report(found)
    return attempt.counts(found["summary"])


def review(order: Order, questions: int = 1) -> dict[str, Any]:
    """The smallest review that a job can end with."""
    asked = {
        "kind": "column", "input": None, "sheet": "Sheet1", "table": None, "column": "A", "header": "id", "field": None,
        "text": "Which field is column A?", "chosen": "id",
        "candidates": [{"value": "id", "label": "id", "probability": 0.6, "reasons": []}],
    }  # fmt: skip
    return {
        "review_version": 1,
        "job": order.job.encode() | {"params": order.params},
        "inputs": [i.facts.encode() for i in order.inputs],
        "answer_to": order.answer_to,
        "why": attempt.verification_order(order).why,
        "decision": None if order.decision is None else order.decision.facts(),
        "questions": [asked | {"id": question_id("column", str(n))} for n in range(questions)],
        "left_out": 0,
    }


def verify_here(order: VerifyOrder, scratch: Path, isolation: Isolation) -> BoxReport:
    """A box's work done in this process, for sandboxes that only pretend."""
    asked = replace(order.below(scratch), sandbox=SandboxFacts(driver=isolation.driver, level=isolation.level))
    page = scratch / ("review.html" if asked.review else "report.html")
    try:
        found = verify_review(asked) if asked.review else verify_outputs(asked)
    except BadOutput as error:
        return BoxReport(verdict=Verdict.BAD_OUTPUT, message=str(error))
    page.write_text(review_page(found) if asked.review else report(found), encoding="utf-8")
    summary = {"questions": len(found["questions"])} if asked.review else summary_of(found)
    outputs = {page.name: page}
    if "profile" in found:
        outputs["profile.json"] = scratch / "profile.json"
        outputs["profile.json"].write_bytes(as_bytes(found["profile"]))
    return BoxReport(verdict=Verdict.OK, message="", claim=summary, outputs=outputs)


COLUMN = {"column": "A", "header": "n", "field": None, "type": None}


# What a box says about the tables of a drop that a person has decided about.
PROFILE = {
    "profile": 1, "rows": 0, "columns": [],
    "tables": [{"sheet": "", "header_rows": [1], "headers": ["ID No"], "decided": True}],
}  # fmt: skip


def artifact(order: Order, isolation: Isolation, *, rows: int = 1) -> dict[str, Any]:
    findings = {"error": 0, "warning": 0, "info": 0}
    return {
        "artifact_version": 1,
        "job": {**order.job.encode(), "params": order.params},
        "engine": {
            "name": "ade-drop",
            "version": "0",
            "readers": [],
            "sandbox": {"driver": isolation.driver, "level": isolation.level, "rungs": {}},
        },
        "config": {
            "digest": order.config_digest,
            "rules": [],
            **({"overlays": [one.encode() for one in order.overlays]} if order.overlays else {}),
        },
        **({"decision": order.decision.facts()} if order.decision else {}),
        "inputs": [i.facts.encode() for i in order.inputs],
        "sheets": [
            {
                "input": order.inputs[0].name if order.inputs else "",
                "name": "Sheet1",
                "index": 0,
                "visibility": "visible",
                "tables": [
                    {
                        "id": "t",
                        "ref": "t1",
                        "range": f"A1:A{rows + 1}",
                        "header_rows": [1],
                        "data_range": f"A2:A{rows + 1}",
                        "confidence": 1.0,
                        "why": [],
                        "rows_in": rows,
                        "rows_out": rows,
                        "left_out": {},
                        "left_out_columns": [],
                    }
                ],
                "rows_read": rows + 1,
                "rows": [
                    {"from": 1, "to": 1, "as": "header", "table": "t1", "rows": 1},
                    {"from": 2, "to": rows + 1, "as": "data", "table": "t1", "rows": rows},
                ],
                "shared": [],
                "beside": [],
            }
        ],
        **({"profile": PROFILE | {"rows": rows}} if order.decision else {}),
        "mapping": [],
        "readings": [],
        "transforms": [],
        "validation": {
            "findings": [],
            "kept": 0,
            "total": 0,
            "by_severity": findings,
            "by_code": {},
            "totals": [],
        },
        "output": {
            "sheets": ["Normalized"],
            "sheet_rows": [rows],
            "rows": rows,
            "columns": [COLUMN],
            "extra_sheets": [],
        },
        "pass_history": [{"pass": name, "seconds": 0.25, "rows": None} for name in PASSES],
        "summary": {
            "tables": 1,
            "rows_in": rows,
            "rows_out": rows,
            "left_out": {},
            "sheets_out": 1,
            "columns_mapped": 0,
            "columns_unmapped": 0,
            "findings": findings,
        },
    }


def audit(order: Order, isolation: Isolation) -> dict[str, Any]:
    """An artifact of a job that wrote no workbook."""
    told = artifact(order, isolation)
    told["sheets"] = []
    told["output"] |= {"sheets": [], "sheet_rows": [], "rows": 0}
    told["summary"] |= {"tables": 0, "rows_in": 0, "rows_out": 0, "sheets_out": 0}
    return told


def as_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()
