"""An order to verify: what a box wrote comes in, the counts that hold and the report go out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from runner.engine.protocol import BadOutput, EventWriter, open_target, place_of
from runner.engine.report import report
from runner.engine.verifying.balance import balance
from runner.engine.verifying.document import MAX_BYTES, read_document
from runner.engine.verifying.rejects_book import write_rejects
from runner.engine.verifying.workbook_check import named, read_book

ARTIFACT, WORKBOOK, REPORT = "artifact.json", "normalized.xlsx", "report.html"
DESCRIPTION, REJECTS, PROFILE = "rejects.jsonl", "rejects.xlsx", "profile.json"
_INPUT: Final = ("role", "name", "sha256", "size")
_ODD: Final = "the outputs broke the verifier"


def carry_out(order: dict[str, Any], voice: EventWriter, folder: Path) -> None:
    """Say whether the outputs hold; the report is written from what has been checked."""
    try:
        places = {given["name"]: given["path"] for given in order["inputs"]}
        paths = {name: at if isinstance(at, int) else folder / at for name, at in places.items()}
        artifact = verify(order, paths)
        _make_rejects(order, artifact, paths.get(DESCRIPTION), folder)
        _write_profile(order, artifact, folder)
        target = order["outputs"].get(REPORT)
        if target is not None:
            with open_target(target, folder) as file:
                file.write(report(artifact).encode(errors="replace"))
    except BadOutput as refused:
        voice.fail("bad_output", str(refused), {})
    except MemoryError:
        voice.fail("out_of_memory", "the outputs are more than can be verified in the memory a job may use", {})
    except Exception as error:  # noqa: BLE001  # whatever it was, these bytes brought it about
        voice.fail("engine_error", f"{_ODD}: {type(error).__name__}", place_of(error))
    else:
        voice.succeed(artifact["summary"])


def _make_rejects(order: dict[str, Any], artifact: dict[str, Any], described: Path | int | None, folder: Path) -> None:
    """Write rejects.xlsx from the box's description, which must have the rows that the artifact counts."""
    wanted, target = artifact["output"].get("rejects", {}).get("rows", 0), order["outputs"].get(REJECTS)
    rows = 0
    if described is not None and target is not None:
        with open(described, "rb") as source, open_target(target, folder) as file:  # noqa: PTH123 - as below
            source.seek(0)
            rows = write_rejects(source, file, job=str(order["job"]["job_id"]), title=order["verify"]["title"])
    if rows != wanted and target is not None:
        raise BadOutput(f"artifact.json counts {wanted} rows of rejects.xlsx, the box described {rows}")


def _write_profile(order: dict[str, Any], artifact: dict[str, Any], folder: Path) -> None:
    """The profile by itself, for the sender's next drop to be compared with."""
    target, found = order["outputs"].get(PROFILE), artifact.get("profile")
    if target is not None and found is not None:
        with open_target(target, folder) as file:
            file.write(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))


def verify(order: dict[str, Any], paths: Mapping[str, Path | int]) -> dict[str, Any]:
    """The artifact of outputs that hold. Raises BadOutput."""
    asked = order["verify"]
    for name in (ARTIFACT,) if asked["audit"] else (ARTIFACT, WORKBOOK):
        if name not in paths:
            raise BadOutput(f"the box wrote no {name}")
    with open(paths[ARTIFACT], "rb") as file:  # noqa: PTH123 - by a path or by a descriptor
        file.seek(0)  # a descriptor may stand where the engine stopped writing
        artifact = read_document(file.read(MAX_BYTES + 1))
    _same_job(order, artifact)
    balance(artifact)
    if asked["audit"]:
        if artifact["output"]["rows"] or artifact["output"]["sheets"]:
            raise BadOutput("artifact.json counts rows of a workbook that was not written")
        return artifact
    with open(paths[WORKBOOK], "rb") as file:  # noqa: PTH123 - as above
        _same_rows(asked, artifact["output"], file)
    return artifact


def _same_job(order: dict[str, Any], artifact: dict[str, Any]) -> None:
    """What the runner knows itself must stand in the artifact as the runner knows it."""
    said = {
        "job": {k: artifact["job"].get(k) for k in order["job"]},
        "params": artifact["job"]["params"],
        "config": artifact["config"]["digest"],
        "inputs": [{k: i.get(k) for k in _INPUT} for i in artifact["inputs"]],
        "sandbox": [artifact["engine"]["sandbox"].get(k) for k in ("driver", "level")],
    }
    known = {
        "job": order["job"],
        "params": order["params"],
        "config": order["config"]["digest"],
        "inputs": [{k: i[k] for k in _INPUT} for i in order["verify"]["inputs"]],
        "sandbox": [order["sandbox"]["driver"], order["sandbox"]["level"]],
    }
    for what, value in known.items():
        if said[what] != value:
            raise BadOutput(f"artifact.json says something else about its {what} than the runner knows")


def _same_rows(asked: dict[str, Any], output: dict[str, Any], file: IO[bytes]) -> None:
    """The workbook has the sheets that the artifact names, with as many rows and columns."""
    sheets = read_book(file, title=asked["title"], formats=asked["formats"])
    names = [*output["sheets"], *(extra["name"] for extra in output["extra_sheets"])]
    if sorted(map(named, names)) != sorted(sheet.name for sheet in sheets):
        raise BadOutput("artifact.json names other sheets than normalized.xlsx has")
    found = {sheet.name: sheet for sheet in sheets}
    data = [found[named(name)] for name in output["sheets"]]
    rows = [sheet.rows for sheet in data]
    if sum(rows) != output["rows"]:
        raise BadOutput(f"artifact.json counts {output['rows']} rows, normalized.xlsx has {sum(rows)}")
    if rows != output["sheet_rows"]:
        raise BadOutput("artifact.json counts other rows on a sheet than normalized.xlsx has there")
    if any(sheet.columns != len(output["columns"]) for sheet in data):
        raise BadOutput("artifact.json lists other columns than normalized.xlsx has")
    if any(found[named(extra["name"])].rows != extra["rows"] for extra in output["extra_sheets"]):
        raise BadOutput("artifact.json counts other rows on a sheet beside the data than normalized.xlsx has there")
