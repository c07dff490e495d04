"""Run the engine on small made-up workbooks, in this process, and look at what came out."""

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl

from core.decisions import parse_decision
from core.manifests import parse_manifest
from runner.boxes import Isolation
from runner.engine.contract import EXPLAINED, Order, data_files, is_split_file
from runner.engine.job import run as run_engine
from runner.staging import box_outputs
from tests.support.outputs import order_to_verify


class Outcome(NamedTuple):
    code: int
    events: list[dict[str, Any]]
    folder: Path

    @property
    def end(self) -> dict[str, Any]:
        return self.events[-1]

    @property
    def error(self) -> dict[str, Any]:
        assert self.end["ok"] is False, self.end
        return self.end["error"]

    @property
    def artifact(self) -> dict[str, Any]:
        assert self.end["ok"] is True or self.error["code"] in EXPLAINED, self.end
        return json.loads((self.folder / "artifact.json").read_bytes())

    @property
    def questions(self) -> list[dict[str, Any]]:
        assert self.error["code"] == "needs_review", self.end
        return json.loads((self.folder / "review.json").read_bytes())["questions"]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self.artifact["validation"]["findings"]

    def cells(self, code: str) -> list[str | None]:
        """The cells of all findings of a code."""
        return [f.get("cell") for f in self.findings if f["code"] == code]

    def rows(self, sheet: str | None = None) -> list[list[Any]]:
        """The written rows, header first, as openpyxl reads them."""
        assert self.end["ok"] is True, self.end
        book = openpyxl.load_workbook(self.folder / "normalized.xlsx")
        return [list(r) for r in (book[sheet] if sheet else book.worksheets[0]).iter_rows(values_only=True)]

    def column(self, header: str) -> list[Any]:
        rows = self.rows()
        at = rows[0].index(header)
        return [r[at] for r in rows[1:]]

    def mapped(self) -> dict[str, str | None]:
        """header -> field."""
        return {m["header"]: m["target"] for m in self.artifact["mapping"]}


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for number, row in enumerate(rows, 1):
            for column, value in enumerate(row, 1):
                if value is not None:
                    cell = sheet.cell(number, column, value)
                    if isinstance(value, str) and value.startswith("="):
                        cell.data_type = "s"  # a text, not a formula
    book.save(path)
    return path


def run_job(
    folder: Path,
    rows: list[list[Any]] | dict[str, list[list[Any]]] | None = None,
    *,
    fields: list[dict[str, Any]] | None = None,
    files: dict[str, list[list[Any]]] | None = None,
    rules: dict[str, str] | None = None,
    aux: dict[str, str] | None = None,
    params: dict[str, Any] | None = None,
    row_rules: list[dict[str, Any]] | None = None,
    row_shape: dict[str, Any] | None = None,
    decision: dict[str, Any] | None = None,
    accept: bool = False,
    memory: bytes | None = None,
    sender: str = "",
    **manifest: Any,
) -> Outcome:
    """One job over `rows` (a sheet, or sheets by name) or over several `files`, with Python `rules` by path."""
    folder.mkdir(parents=True, exist_ok=True)
    if files is None:
        files = {"in.xlsx": rows or []} if isinstance(rows, list) else {}
        if isinstance(rows, dict):
            workbook(folder / "in.xlsx", rows)
    for name, body in files.items():
        workbook(folder / name, {"Sheet1": body})
    names = list(files) or ["in.xlsx"]
    for path, source in (rules or {}).items():
        place = folder / "config" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source)
    spec: dict[str, Any] = {"manifest": 1, "name": "test", "fields": fields or [], "rules": row_rules or [], **manifest}
    if row_shape:
        spec["rows"] = row_shape
    if rules:
        spec["config"] = "./config"
    if aux:
        listed = [{"name": n, "path": f"{n}.csv"} for n in aux]
        spec["inputs"] = {**spec.get("inputs", {}), "auxiliary": listed}
        for name, body in aux.items():
            (folder / f"{name}.csv").write_text(body)
    checked = parse_manifest(json.dumps(spec, default=str).encode())
    order = {
        "order": 1,
        "job": {"job_id": "acme-test-1", "tenant": "acme", "workflow": "test", "attempt": 1},
        "manifest": checked.model_dump(mode="json"),
        "params": params or {},
        "inputs": [{"role": "primary", "name": n, "path": n, "size": 1, "sha256": "0" * 64} for n in names]
        + [{"role": "auxiliary", "name": n, "file": f"{n}.csv", "path": f"{n}.csv"} for n in aux or ()],
        "config": {"path": "config" if rules else None, "digest": "0" * 8},
        "outputs": {n: n for n in box_outputs(checked)},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    if decision is not None:
        body = json.dumps({"decision": 1, "by": "ann", **decision}).encode()
        (folder / "decision.json").write_bytes(body)
        parse_decision(body)
        order["decision"] = {"path": "decision.json", "key": "k", "version": "v", "sha256": "0" * 64, "by": "ann"}
    if memory is not None:
        (folder / "memory-0.json").write_bytes(memory)
        named = {"path": "memory-0.json", "key": "k", "version": "v", "sha256": "0" * 64}
        order |= {"memories": [named], "sender": sender}
    if accept:
        order["review"] = "accept"
    return run_order(order, folder)


def run_order(order: dict[str, Any], folder: Path) -> Outcome:
    channel = io.StringIO()
    path, modules, writes = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    try:
        code = run_engine(order, channel, folder=folder)
    finally:  # in the box a job has a process of its own; here the next test must not meet this one's rules
        sys.path[:] = path
        sys.dont_write_bytecode = writes
        for name in set(sys.modules) - modules:
            if name.startswith(("columns.", "row_types.", "hooks.")) or name in ("columns", "hooks", "row_types"):
                del sys.modules[name]
    events = [json.loads(line) for line in channel.getvalue().splitlines()]
    if events and events[-1]["event"] == "end":
        _verify(order, folder, events[-1])
    return Outcome(code, events, folder)


def _verify(order: dict[str, Any], folder: Path, end: dict[str, Any]) -> None:
    """What any job of any test writes is what the verifier lets through; the page about it is made here, too."""
    code = None if end["ok"] else end["error"]["code"]
    audit, review = code in EXPLAINED, code == "needs_review"
    taken = {"artifact.json", "rejects.jsonl", "values.json"}
    taken |= set() if audit else {"normalized.xlsx", *data_files(["xlsx", "csv", "jsonl", "parquet"])}
    split_files = () if audit or review else filter(is_split_file, order["outputs"])
    names = [*(n for n in order["outputs"] if n in ({"review.json"} if review else taken)), *split_files]
    if (not end["ok"] and not audit) or len(order["outputs"]) < 2 or "sandbox" not in order:
        return
    box = Isolation(driver=order["sandbox"]["driver"], level=order["sandbox"]["level"], rungs={}, gaps=())
    asked = order_to_verify(Order.decode(order), names, box, audit=audit, review=review).encode()
    channel = io.StringIO()
    assert run_engine(asked, channel, folder=folder) == 0
    said = json.loads(channel.getvalue())
    assert said["ok"], said["error"]["message"]
