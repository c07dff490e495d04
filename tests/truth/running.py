"""Run a case through all passes of the engine, in this process, by the contract of docs/reference/engine-order.md."""

import io
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl

from core.manifests import parse_manifest
from runner.engine.job import run as run_engine
from tests.truth.cases import Case

OUTPUTS = ("normalized.xlsx", "artifact.json")


class Outcome(NamedTuple):
    error: dict[str, Any] | None
    artifact: dict[str, Any]
    header: list[Any]
    rows: list[list[Any]]


def manifest_of(case: Case) -> dict[str, Any]:
    spec = {"manifest": 1, "name": "truth", "fields": case.fields, **case.manifest}
    if case.auxiliary:
        spec["inputs"] = {"auxiliary": [{"name": name, "path": f"{name}.csv"} for name in case.auxiliary]}
    return spec


def run_case(case: Case, folder: Path, outputs: tuple[str, ...] = OUTPUTS) -> Outcome:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {*OUTPUTS, *outputs}
    for name in wanted:
        (folder / name).unlink(missing_ok=True)
    (folder / case.name).write_bytes(case.body)
    for name, body in case.auxiliary.items():
        (folder / f"{name}.csv").write_bytes(body)
    checked = parse_manifest(json.dumps(manifest_of(case)).encode())
    order = {
        "order": 1,
        "job": {"job_id": "acme-truth-1", "tenant": "acme", "workflow": "truth", "attempt": 1},
        "manifest": checked.model_dump(mode="json"),
        "params": {},
        "inputs": [
            {"role": "primary", "name": case.name, "path": case.name, "size": len(case.body), "sha256": "0" * 64},
            *({"role": "auxiliary", "name": n, "file": f"{n}.csv", "path": f"{n}.csv"} for n in case.auxiliary),
        ],
        "config": {"path": None, "digest": "0" * 8},
        "outputs": {name: name for name in sorted(wanted)},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    channel = io.StringIO()
    run_engine(order, channel, folder=folder)
    end = json.loads(channel.getvalue().splitlines()[-1])
    return collect(folder, None if end["ok"] else end["error"])


def try_case(case: Case, folder: Path) -> Outcome:
    """The same through the command at the desk: runner, sandbox and the check outside the box."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / case.name).write_bytes(case.body)
    (folder / "manifest.json").write_text(json.dumps({**manifest_of(case), "inputs": {"primary": ["*"]}}))
    command = [Path(sys.executable).with_name("ade"), "try", case.name, "--manifest", "manifest.json", "--out", "out"]
    done = subprocess.run([*command, "--json"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("["), f"{case.title}: {done.stdout}{done.stderr}"
    result = json.loads(done.stdout)[0]["result"]
    return collect(folder / "out", None if result["status"] == "SUCCEEDED" else result["error"])


def collect(folder: Path, error: dict[str, Any] | None) -> Outcome:
    """What a run left in its folder, read with a reader that is not ours."""
    path = folder / "artifact.json"
    artifact = json.loads(path.read_bytes()) if path.exists() and path.stat().st_size else {}
    if error is not None:
        return Outcome(error, artifact, [], [])
    logging.getLogger("openpyxl").setLevel(logging.ERROR)
    book = openpyxl.load_workbook(folder / "normalized.xlsx")
    header: list[Any] = []
    rows: list[list[Any]] = []
    for name in artifact["output"]["sheets"]:
        body = [[unescaped(v) for v in r] for r in book[name].iter_rows(values_only=True)]
        header = body[0] if body else header
        rows += body[1:]
    return Outcome(None, artifact, header, rows)


def unescaped(value: Any) -> Any:
    """Undo _xHHHH_, which openpyxl leaves as it stands in the file."""
    if isinstance(value, str) and "_x" in value:
        return re.sub(r"_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m[1], 16)), value)
    return value
