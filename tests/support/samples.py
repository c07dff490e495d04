"""Small artifacts and reviews, in the shape of their schemas, for pages to be made of."""

from typing import Any


def artifact(text: str) -> dict[str, Any]:
    """An artifact in which every text is the same."""
    table = {
        "id": text, "ref": "t1", "range": "A1:B9", "header_rows": [1], "data_range": "A2:B8", "confidence": 1.0,
        "why": [text], "rows_in": 8, "rows_out": 7, "left_out": {"total": 1}, "skipped": text,
        "left_out_columns": [{"column": "B", "why": "unmapped"}],
    }  # fmt: skip
    finding = {
        "code": text, "severity": "error", "message": text, "input": text, "sheet": text, "table": text, "cell": "A3",
        "row": 3, "field": text, "rule": text, "file": text, "line": 1,
    }  # fmt: skip
    column = {
        "table": text, "column": "A", "header": text, "header_cell": "A1", "target": text, "probability": 0.5,
        "contributors": [{"rule": text, "weight": 1}], "runners_up": [{"field": text, "probability": 0.2}], "note": text,
    }  # fmt: skip
    drifted = {"header": text, "field": text, "from": text, "to": text}
    return {
        "job": {"job_id": "x", "tenant": text, "workflow": text, "attempt": 1, "params": {}},
        "decision": {"key": text, "version": text, "sha256": "", "by": text},
        "memories": [{"key": text, "version": text, "sha256": ""}],
        "inputs": [{"role": "primary", "name": text, "sha256": "", "size": 1}],
        "sheets": [
            {"input": text, "name": text, "index": 0, "visibility": "visible", "tables": [table], "rows_read": 9,
             "rows": [{"from": 1, "to": 1, "as": "header", "table": "t1", "rows": 1},
                      {"from": 2, "to": 8, "as": "data", "table": "t1", "rows": 7},
                      {"from": 9, "to": 9, "as": "total", "table": "t1", "rows": 1}], "shared": [], "beside": []},
            {"input": text, "name": text, "index": 1, "visibility": "hidden", "tables": [], "rows_read": 0, "rows": [],
             "shared": [], "beside": [], "skipped": text},
        ],
        "readings": [{"kind": text, "chosen": text, "evidence": {text: 1}, "sure": False, "settle": text, "table": text}],
        "mapping": [column, column | {"column": "B", "target": None}],
        "validation": {"findings": [finding], "kept": 1, "total": 2, "by_severity": {"error": 2}, "by_code": {text: 2},
                       "totals": [{"code": text, "severity": "error", "field": text, "count": 2}]},
        "drift": {"previous": {}, "values": [{"header": text, "field": text, "what": text, "before": [text], "now": 1}],
                  "columns": {kind: [drifted] for kind in ("new", "gone", "renamed", "moved", "remapped")}},
        "output": {"sheets": [text], "sheet_rows": [7], "rows": 7, "columns": []},
        "pass_history": [{"pass": text, "seconds": 0.1, "rows": 1}],
        "summary": {"rows_out": 7, "left_out": {"total": 1}, "findings": {"error": 2, "warning": 0, "info": 0},
                    "tables": 1, "columns_mapped": 1, "columns_unmapped": 1},
        "transforms": [],
    }  # fmt: skip


def review(text: str) -> dict[str, Any]:
    """A review.json of one question in which every text is the same."""
    candidate = {"value": text, "label": text, "probability": 0.5, "reasons": [{"rule": text, "weight": 1}]}
    question = {
        "id": text, "kind": "column", "input": text, "sheet": text, "table": text, "column": text, "header": text,
        "text": text, "chosen": text, "candidates": [candidate],
    }  # fmt: skip
    return {"questions": [question]}
