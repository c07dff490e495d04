"""The smallest outputs that a well-behaved box can write: they pass every check of the runner."""

import io
import json
import zipfile
from typing import Any

from core.ports import Isolation

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(rows: int = 1, *, sheet: str = "", more: dict[str, str] | None = None) -> bytes:
    """A workbook with a header and so many rows; `sheet` replaces the sheet's rows, `more` adds parts."""
    row = '<row r="{0}"><c r="A{0}"><v>{0}</v></c></row>'
    lines = sheet or "".join(row.format(n) for n in range(1, rows + 2))
    parts = {
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>'
        '<sheet name="Normalized" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>',
        **(more or {}),
    }
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return body.getvalue()


def artifact(order: dict[str, Any], isolation: Isolation, *, rows: int = 1) -> dict[str, Any]:
    findings = {"error": 0, "warning": 0, "info": 0}
    return {
        "artifact_version": 1,
        "job": {**order["job"], "params": order["params"]},
        "engine": {
            "name": "ade-drop",
            "version": "0",
            "readers": [],
            "sandbox": {"driver": isolation.driver, "level": isolation.level, "rungs": {}},
        },
        "config": {"digest": order["config"]["digest"], "rules": []},
        "inputs": [{k: i[k] for k in ("role", "name", "sha256", "size")} for i in order["inputs"]],
        "sheets": [
            {
                "input": order["inputs"][0]["name"] if order["inputs"] else "",
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
        "output": {"sheets": ["Normalized"], "sheet_rows": [rows], "rows": rows, "columns": [], "extra_sheets": []},
        "pass_history": [],
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


def audit(order: dict[str, Any], isolation: Isolation) -> dict[str, Any]:
    """An artifact of a job that wrote no workbook."""
    told = artifact(order, isolation)
    told["sheets"] = []
    told["output"] |= {"sheets": [], "sheet_rows": [], "rows": 0}
    told["summary"] |= {"tables": 0, "rows_in": 0, "rows_out": 0, "sheets_out": 0}
    return told


def as_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()
