"""Carries out an order to verify: takes a box's outputs, returns verified counts and writes the page about them."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

from runner.engine.drift import layout
from runner.engine.protocol import BadOutput, EventWriter, open_target, place_of
from runner.engine.report import report
from runner.engine.review_page import review_page
from runner.engine.rowsets import RowSet
from runner.engine.verifying.balance import balance
from runner.engine.verifying.document import ARTIFACT, MAX_BYTES, REVIEW, read_document
from runner.engine.verifying.rejects_book import write_rejects
from runner.engine.verifying.workbook_check import named, read_book

WORKBOOK, REPORT, PAGE = "normalized.xlsx", "report.html", "review.html"
DESCRIPTION, REJECTS, PROFILE = "rejects.jsonl", "rejects.xlsx", "profile.json"
MAX_REVIEW: Final = 4 * 1024 * 1024
_DATA: Final = ("data", "rejected", "skipped_table")  # as what the books list rows that may have errors
_INPUT: Final = ("role", "name", "sha256", "size")
_ODD: Final = "the verifier failed on the outputs"


def carry_out(order: dict[str, Any], voice: EventWriter, folder: Path) -> None:
    """Verify the outputs, and write the page about them from what was verified."""
    try:
        places = {given["name"]: given["path"] for given in order["inputs"]}
        paths = {name: at if isinstance(at, int) else folder / at for name, at in places.items()}
        if order["verify"].get("review"):
            review = verify_review(order, paths)
            page, name, summary = (
                review_page(review),
                PAGE,
                {"questions": len(review["questions"]) + review["left_out"]},
            )
        else:
            artifact = verify(order, paths)
            _make_rejects(order, artifact, paths.get(DESCRIPTION), folder)
            _write_profile(order, artifact, folder)
            page, name, summary = report(artifact, at=time.time()), REPORT, summary_of(artifact)
        target = order["outputs"].get(name)
        if target is not None:
            with open_target(target, folder) as file:
                file.write(page.encode(errors="replace"))
    except BadOutput as refused:
        voice.fail("bad_output", str(refused), {})
    except MemoryError:
        voice.fail("out_of_memory", "verifying the outputs exceeded the job's memory limit", {})
    except Exception as error:  # noqa: BLE001  # whatever it was, these bytes brought it about
        voice.fail("engine_error", f"{_ODD}: {type(error).__name__}", place_of(error))
    else:
        voice.succeed(summary)


def summary_of(artifact: dict[str, Any]) -> dict[str, Any]:
    """What the runner gets to know: the counts, and how long each pass took."""
    times = {one["pass"]: one["seconds"] for one in artifact["pass_history"]}
    return {**artifact["summary"], "drift": _changes(artifact), "passes": times}


def _make_rejects(order: dict[str, Any], artifact: dict[str, Any], described: Path | int | None, folder: Path) -> None:
    """Write rejects.xlsx from the box's description, which must have the rows that the artifact counts."""
    wanted, target = artifact["output"].get("rejects", {}).get("rows", 0), order["outputs"].get(REJECTS)
    rows = 0
    if described is not None and target is not None:
        with open(described, "rb") as source, open_target(target, folder) as file:  # noqa: PTH123 - as below
            source.seek(0)
            rows = write_rejects(
                source, file, job=str(order["job"]["job_id"]), title=order["verify"]["title"], exists=_books(artifact)
            )
    if rows != wanted and target is not None:
        raise BadOutput(f"artifact.json counts {wanted} rows of rejects.xlsx, the box described {rows}")


def _books(artifact: dict[str, Any]) -> Callable[[str, int, int, int], bool]:
    """Whether the books of an artifact have a row of data (`row`) or any other row."""
    names = [given["name"] for given in artifact["inputs"] if given["role"] == "primary"]
    data: dict[tuple[int, int], RowSet] = {}
    every: dict[tuple[int, int], RowSet] = {}
    for sheet in artifact["sheets"]:
        if sheet["input"] not in names:
            continue
        place = (names.index(sheet["input"]), sheet["index"])
        runs = [(run["from"], run["to"], run["as"]) for run in sheet.get("rows", ())]
        every[place] = _covered((first, last) for first, last, _ in runs)
        data[place] = _covered((first, last) for first, last, kind in runs if kind in _DATA)
    nothing = RowSet()
    return lambda kind, n, index, row: row in (data if kind == "row" else every).get((n, index), nothing)


def _covered(runs: Iterable[tuple[int, int]]) -> RowSet:
    """The rows of runs that may overlap, as those of tables side by side do."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return RowSet(joined)


def _changes(artifact: dict[str, Any]) -> int:
    """In how many places this drop differs from the sender's last one."""
    found = artifact.get("drift")
    if found is None:
        return 0
    rows = bool((found.get("rows") or {}).get("out_of_range"))
    return sum(len(changed) for changed in found["columns"].values()) + len(found["values"]) + rows


def _write_profile(order: dict[str, Any], artifact: dict[str, Any], folder: Path) -> None:
    """The profile by itself, for the sender's next drop to be compared with, below a line that says what it follows."""
    target, found = order["outputs"].get(PROFILE), artifact.get("profile")
    if target is not None and found is not None:
        previous = (artifact.get("drift") or {}).get("previous") or {}
        head = {"after": previous.get("job_id") if previous.get("same_kind") else None, "layout": layout(found)}
        with open_target(target, folder) as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))


def verify(order: dict[str, Any], paths: Mapping[str, Path | int]) -> dict[str, Any]:
    """Verify the outputs and return the artifact. Raises BadOutput."""
    asked = order["verify"]
    for name in (ARTIFACT,) if asked["audit"] else (ARTIFACT, WORKBOOK):
        if name not in paths:
            raise BadOutput(f"the box did not write {name}")
    artifact = read_document(_read(paths[ARTIFACT], MAX_BYTES))
    _same_job(order, artifact)
    if artifact.get("decision") != asked.get("decision"):
        raise BadOutput("artifact.json names another decision than the runner knows")
    memories = asked.get("memories", [])
    if artifact.get("memories", memories) != memories:
        raise BadOutput("artifact.json names other memories than the runner knows")
    balance(artifact)
    if asked["audit"]:
        if artifact["output"]["rows"] or artifact["output"]["sheets"]:
            raise BadOutput("artifact.json counts rows of a workbook that was not written")
        return artifact
    with open(paths[WORKBOOK], "rb") as file:  # noqa: PTH123 - by a path or by a descriptor
        _same_rows(asked, artifact["output"], file)
    return artifact


def verify_review(order: dict[str, Any], paths: Mapping[str, Path | int]) -> dict[str, Any]:
    """The questions of a job that asks for them, if they hold. Raises BadOutput."""
    asked = order["verify"]
    if REVIEW not in paths:
        raise BadOutput(f"the box did not write {REVIEW}")
    raw = _read(paths[REVIEW], MAX_REVIEW)
    if len(raw) > MAX_REVIEW:
        raise BadOutput(f"{REVIEW} is over {MAX_REVIEW} bytes")
    review = read_document(raw, REVIEW)
    said = {
        "job": {k: review["job"].get(k) for k in order["job"]},
        "params": review["job"]["params"],
        "inputs": review["inputs"],
        "decision": review["decision"],
        "answer_to": review["answer_to"],
    }
    known = {
        "job": order["job"],
        "params": order["params"],
        "inputs": [{k: i[k] for k in _INPUT} for i in asked["inputs"]],
        "decision": asked.get("decision"),
        "answer_to": asked.get("answer_to"),
    }
    for what, value in known.items():
        if said[what] != value:
            raise BadOutput(f"{REVIEW} says something else about its {what} than the runner knows")
    if asked.get("why") != review["why"]:
        raise BadOutput(f"{REVIEW} asks although the manifest does not say so")
    ids = [question["id"] for question in review["questions"]]
    if len(set(ids)) != len(ids):
        raise BadOutput(f"{REVIEW} asks one question twice")
    return review


def _read(path: Path | int, most: int) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - by a path or by a descriptor
        file.seek(0)  # the descriptor may be at the end
        return file.read(most + 1)


def _same_job(order: dict[str, Any], artifact: dict[str, Any]) -> None:
    """Check that the artifact agrees with what the runner itself knows."""
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
            raise BadOutput(f"artifact.json and the runner disagree about its {what}")


def _same_rows(asked: dict[str, Any], output: dict[str, Any], file: IO[bytes]) -> None:
    """Check that the workbook has the artifact's sheets, rows and columns."""
    sheets = read_book(file, title=asked["title"], formats=asked["formats"])
    names = [*output["sheets"], *(extra["name"] for extra in output["extra_sheets"])]
    if sorted(map(named, names)) != sorted(sheet.name for sheet in sheets):
        raise BadOutput("artifact.json and normalized.xlsx have different sheets")
    found = {sheet.name: sheet for sheet in sheets}
    data = [found[named(name)] for name in output["sheets"]]
    rows = [sheet.rows for sheet in data]
    if sum(rows) != output["rows"]:
        raise BadOutput(f"artifact.json counts {output['rows']} rows, normalized.xlsx has {sum(rows)}")
    if rows != output["sheet_rows"]:
        raise BadOutput("artifact.json and normalized.xlsx have different row counts for a sheet")
    if any(sheet.columns != len(output["columns"]) for sheet in data):
        raise BadOutput("artifact.json and normalized.xlsx have different columns")
    if any(found[named(extra["name"])].rows != extra["rows"] for extra in output["extra_sheets"]):
        raise BadOutput("artifact.json and normalized.xlsx have different row counts for an extra sheet")
