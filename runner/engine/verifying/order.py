"""Carries out an order to verify: takes a box's outputs, returns verified counts and writes the page about them."""

import json
import time
from collections.abc import Iterable
from typing import IO, Final

from runner.engine.common.rowsets import RowSet
from runner.engine.contract import (
    DATA_FORMATS,
    EndCode,
    EndError,
    FinalEvent,
    Json,
    OutputName,
    Place,
    VerifyOrder,
    data_files,
    split_name,
)
from runner.engine.document_types import ArtifactDocument, OutputPart, ReviewDocument
from runner.engine.memory.drift import layout_digest
from runner.engine.options import DUPLICATE, FILTERED, DataOptions
from runner.engine.pages.fixes import LONGEST_VALUE
from runner.engine.pages.report import report
from runner.engine.pages.review_page import review_page
from runner.engine.protocol import BadOutput, open_target, place_of
from runner.engine.verifying.balance import balance
from runner.engine.verifying.data_check import SplitFile, check_data_files, named_as, open_written
from runner.engine.verifying.document import MAX_BYTES, read_artifact, read_review
from runner.engine.verifying.rejects_book import RowExists, write_rejects
from runner.engine.verifying.split_column import SplitColumn
from runner.engine.verifying.workbook_check import escaped_name, read_book

MAX_REVIEW: Final = 4 * 1024 * 1024
MAX_VALUES: Final = 64 * 1024 * 1024  # as many findings as an artifact can have
_MAY_HAVE_ERRORS: Final = ("data", "rejected", "skipped_table")  # as what the books list rows that may have errors
_FAILED: Final = "the verifier failed on the outputs"


def carry_out(order: VerifyOrder) -> FinalEvent:
    """Verify the outputs, and write the page about them from what was verified; whatever fails is in the event that is
    returned."""
    try:
        return FinalEvent(_verify_review(order) if order.review else _verify_outputs(order))
    except BadOutput as refused:
        problem = EndError(EndCode.BAD_OUTPUT, str(refused))
    except MemoryError:
        problem = EndError(EndCode.OUT_OF_MEMORY, "verifying the outputs exceeded the job's memory limit")
    except Exception as error:  # noqa: BLE001  # whatever it was, these bytes brought it about
        problem = EndError(EndCode.ENGINE_ERROR, f"{_FAILED}: {type(error).__name__}", place_of(error))
    return FinalEvent(error=problem)


def _verify_review(order: VerifyOrder) -> Json:
    """Verify the questions of a review and write its page; returns the summary of the run."""
    review = verify_review(order)
    _write_page(order, OutputName.REVIEW_PAGE, review_page(review))
    return {"questions": len(review["questions"]) + review["left_out"]}


def _verify_outputs(order: VerifyOrder) -> Json:
    """Verify the outputs of a job, and write its rejects, profile and report; returns the summary of the run."""
    artifact = verify(order)
    _make_rejects(order, artifact)
    _write_profile(order, artifact)
    values = _read_shown_values(order, artifact)
    _write_page(order, OutputName.REPORT, report(artifact, at=time.time(), terms=order.report, values=values))
    return summary_of(artifact)


def _read_shown_values(order: VerifyOrder, artifact: ArtifactDocument) -> dict[int, str] | None:
    """Read the values that the report shows, by finding; None if the manifest does not ask for any. Raises
    BadOutput."""
    name = OutputName.SHOWN_VALUES
    place = order.written.get(name)
    if not order.report.shows_values:
        if place is not None:
            raise BadOutput(f"the box wrote {name}, which the manifest does not ask for")
        return None
    raw = b"" if place is None else _read_bytes(place, MAX_VALUES)
    if len(raw) > MAX_VALUES:
        raise BadOutput(f"{name} is over {MAX_VALUES} bytes")
    try:
        read = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise BadOutput(f"{name} is not JSON") from None
    count = len(artifact["validation"]["findings"])
    if not isinstance(read, dict) or not all(_is_shown(number, text, count) for number, text in read.items()):
        raise BadOutput(f"{name} does not hold short texts by finding")
    return {int(number): text for number, text in read.items()}


def _is_shown(number: str, text: object, count: int) -> bool:
    """Whether this is the number of a finding and a text that a report may show."""
    is_number = number.isascii() and number.isdecimal() and len(number) < 10 and int(number) < count
    return is_number and isinstance(text, str) and len(text) <= LONGEST_VALUE


def _write_page(order: VerifyOrder, name: OutputName, page: str) -> None:
    """Write a page if the order asks for it."""
    target = order.outputs.get(name)
    if target is not None:
        with open_target(target) as file:
            file.write(page.encode(errors="replace"))


def summary_of(artifact: ArtifactDocument) -> Json:
    """Return what the runner gets to know: the counts, and how long each pass took."""
    times = {entry["pass"]: entry["seconds"] for entry in artifact["pass_history"]}
    split = artifact["output"].get("split")
    split_rows: Json = {} if split is None else {"split": list(split["rows"].values())}
    return {**artifact["summary"], **split_rows, "drift": _count_changes(artifact), "passes": times}


def _make_rejects(order: VerifyOrder, artifact: ArtifactDocument) -> None:
    """Write rejects.xlsx from the box's description, if both are ordered; raises BadOutput if it has other rows than
    the artifact counts."""
    counted_rows, target = artifact["output"].get("rejects", {}).get("rows", 0), order.outputs.get(OutputName.REJECTS)
    description = order.written.get(OutputName.REJECTED_ROWS)
    described_rows = 0
    if description is not None and target is not None:
        with open(description, "rb") as source, open_target(target) as file:  # noqa: PTH123 - as below
            source.seek(0)
            described_rows = write_rejects(
                source, file, job=order.job.job_id, title=order.title, exists=_make_row_exists(artifact)
            )
    if described_rows != counted_rows and target is not None:
        raise BadOutput(f"artifact.json counts {counted_rows} rows of rejects.xlsx, the box described {described_rows}")


def _make_row_exists(artifact: ArtifactDocument) -> RowExists:
    """Return a function that says whether the books of an artifact have a row of data (`row`) or any other row."""
    names = [source["name"] for source in artifact["inputs"] if source["role"] == "primary"]
    data_rows: dict[tuple[int, int], RowSet] = {}
    all_rows: dict[tuple[int, int], RowSet] = {}
    for sheet in artifact["sheets"]:
        if sheet["input"] not in names:
            continue
        place = (names.index(sheet["input"]), sheet["index"])
        runs = [(run["from"], run["to"], run["as"]) for run in sheet.get("rows", ())]
        all_rows[place] = _join_overlapping((first, last) for first, last, _ in runs)
        data_rows[place] = _join_overlapping((first, last) for first, last, kind in runs if kind in _MAY_HAVE_ERRORS)
    nothing = RowSet()
    return lambda kind, input_number, index, row: (
        row in (data_rows if kind == "row" else all_rows).get((input_number, index), nothing)
    )


def _join_overlapping(runs: Iterable[tuple[int, int]]) -> RowSet:
    """Join runs that may overlap, as those of tables side by side do, into a set of rows."""
    joined_runs: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if joined_runs and first <= joined_runs[-1][1]:
            joined_runs[-1] = (joined_runs[-1][0], max(last, joined_runs[-1][1]))
        else:
            joined_runs.append((first, last))
    return RowSet(joined_runs)


def _count_changes(artifact: ArtifactDocument) -> int:
    """Count the places in which this drop differs from the sender's last one."""
    drift = artifact.get("drift")
    if drift is None:
        return 0
    rows = "rows" in drift and drift["rows"]["out_of_range"]
    return sum(len(changed_columns) for changed_columns in drift["columns"].values()) + len(drift["values"]) + rows


def _write_profile(order: VerifyOrder, artifact: ArtifactDocument) -> None:
    """Write the profile by itself, for the sender's next drop to be compared with, below a line that says what it
    follows."""
    target, profile = order.outputs.get(OutputName.PROFILE), artifact.get("profile")
    if target is not None and profile is not None:
        drift = artifact.get("drift")
        same_kind = drift is not None and drift["previous"].get("same_kind")
        head = {
            "after": drift["previous"].get("job_id") if drift and same_kind else None,
            "layout": layout_digest(profile),
        }
        with open_target(target) as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(json.dumps(profile, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))


def verify(order: VerifyOrder) -> ArtifactDocument:
    """Check the outputs against the artifact and what the runner knows; returns the artifact. Raises BadOutput."""
    written = order.written
    formats = ("xlsx",) if order.data is None else DataOptions.parse(order.data.output).formats
    needed = () if order.audit else (name for name in data_files(formats) if name is not OutputName.JSONL)
    for name in (OutputName.ARTIFACT, *needed):
        if name not in written:
            raise BadOutput(f"the box did not write {name}")
    artifact = read_artifact(_read_bytes(written[OutputName.ARTIFACT], MAX_BYTES))
    _check_job(order, artifact)
    if artifact.get("decision") != order.decision:
        raise BadOutput("artifact.json names another decision than the runner knows")
    if artifact["config"].get("overlays", []) != [overlay.encode() for overlay in order.overlays]:
        raise BadOutput("artifact.json names other overlays than the runner knows")
    memories = list(order.memories)
    if artifact.get("memories", memories) != memories:
        raise BadOutput("artifact.json names other memories than the runner knows")
    balance(artifact)
    if unasked := {FILTERED, DUPLICATE} & set(artifact["summary"]["left_out"]) - set(order.removes):
        raise BadOutput(f"artifact.json leaves out rows as {min(unasked)}, which the manifest does not ask for")
    if order.audit:
        if artifact["output"]["rows"] or artifact["output"]["sheets"]:
            raise BadOutput("artifact.json counts rows of a workbook that was not written")
        return artifact
    split_files = _list_split_files(order, artifact["output"], formats)
    if "xlsx" in formats:
        with open(written[OutputName.WORKBOOK], "rb") as file:  # noqa: PTH123 - by a path or by a descriptor
            _check_rows(order, artifact["output"], file)
        for part in split_files:
            if part.kind is OutputName.WORKBOOK:
                _check_split_book(order, artifact["output"], part)
    if order.data is not None:
        check_data_files(written, order.data, artifact["output"], split_files)
    return artifact


def _list_split_files(order: VerifyOrder, output: OutputPart, formats: Iterable[str]) -> list[SplitFile]:
    """List the files of the split that the manifest asks for, with the rows that the artifact counts. Raises
    BadOutput."""
    split, counted = order.split, output.get("split")
    if split is None or counted is None:
        if split is not None or counted is not None:
            raise BadOutput("artifact.json and the manifest disagree about a split")
        return []
    if counted["field"] != split.field or list(counted["rows"]) != list(split.labels):
        raise BadOutput("artifact.json has another split than the manifest asks for")
    if sum(counted["rows"].values()) != output["rows"]:
        raise BadOutput(f"artifact.json counts {output['rows']} rows, and others in the files of the split")
    at = next((n for n, column in enumerate(output["columns"]) if column["field"] == split.field), None)
    if at is None:
        raise BadOutput("artifact.json has no column for the field that the rows are split by")
    values = frozenset(split.values)
    return [
        SplitFile(split_name(label, kind), DATA_FORMATS[kind], counted["rows"][label], SplitColumn(at, values, value))
        for label, value in zip(split.labels, (*split.values, None), strict=True)
        for kind in formats
    ]


def _check_split_book(order: VerifyOrder, output: OutputPart, part: SplitFile) -> None:
    """Check that a workbook of the split has its rows, on sheets that are named as those of the whole output; raises
    BadOutput."""
    with open_written(order.written, part.name) as file, named_as(part):
        sheets = read_book(file, title=order.title, formats=order.formats, column=part.column)
    if [sheet.name for sheet in sheets] != [escaped_name(name) for name in output["sheets"][: len(sheets)]]:
        raise BadOutput(f"artifact.json and {part.name} have different sheets")
    rows = sum(sheet.rows for sheet in sheets)
    if rows != part.rows:
        raise BadOutput(f"artifact.json counts {part.rows} rows, {part.name} has {rows}")
    if any(sheet.columns != len(output["columns"]) for sheet in sheets):
        raise BadOutput(f"artifact.json and {part.name} have different columns")


def verify_review(order: VerifyOrder) -> ReviewDocument:
    """Read and check the questions of a job that asks for them. Raises BadOutput."""
    name = OutputName.REVIEW
    if name not in order.written:
        raise BadOutput(f"the box did not write {name}")
    raw = _read_bytes(order.written[name], MAX_REVIEW)
    if len(raw) > MAX_REVIEW:
        raise BadOutput(f"{name} is over {MAX_REVIEW} bytes")
    review = read_review(raw)
    reported = {
        "job": {k: review["job"].get(k) for k in order.job.encode()},
        "params": review["job"]["params"],
        "inputs": review["inputs"],
        "decision": review["decision"],
        "answer_to": review["answer_to"],
    }
    known = {
        "job": order.job.encode(),
        "params": order.params,
        "inputs": [input_facts.encode() for input_facts in order.known],
        "decision": order.decision,
        "answer_to": order.answer_to,
    }
    for what, value in known.items():
        if reported[what] != value:
            raise BadOutput(f"{name} says something else about its {what} than the runner knows")
    if order.why != review["why"]:
        raise BadOutput(f"{name} asks although the manifest does not say so")
    ids = [question["id"] for question in review["questions"]]
    if len(set(ids)) != len(ids):
        raise BadOutput(f"{name} asks one question twice")
    return review


def _read_bytes(path: Place, most: int) -> bytes:
    """Read `most` bytes of a file, or one more if it has more; less if it is shorter."""
    with open(path, "rb") as file:  # noqa: PTH123 - by a path or by a descriptor
        file.seek(0)  # the descriptor may be at the end
        return file.read(most + 1)


def _check_job(order: VerifyOrder, artifact: ArtifactDocument) -> None:
    """Check that the artifact agrees with what the runner itself knows; raises BadOutput."""
    known = {
        "job": order.job.encode(),
        "params": order.params,
        "config": order.config_digest,
        "inputs": [file.encode() for file in order.known],
        "sandbox": [order.sandbox.driver, order.sandbox.level],
    }
    reported = {
        "job": {key: artifact["job"].get(key) for key in order.job.encode()},
        "params": artifact["job"]["params"],
        "config": artifact["config"]["digest"],
        "inputs": [{key: entry.get(key) for key in ("role", "name", "sha256", "size")} for entry in artifact["inputs"]],
        "sandbox": [artifact["engine"]["sandbox"].get(key) for key in ("driver", "level")],
    }
    for what, value in known.items():
        if reported[what] != value:
            raise BadOutput(f"artifact.json and the runner disagree about its {what}")


def _check_rows(order: VerifyOrder, output: OutputPart, file: IO[bytes]) -> None:
    """Check that the workbook has the artifact's sheets, rows and columns; raises BadOutput."""
    sheets = read_book(file, title=order.title, formats=order.formats)
    names = [*output["sheets"], *(extra["name"] for extra in output["extra_sheets"])]
    if sorted(map(escaped_name, names)) != sorted(sheet.name for sheet in sheets):
        raise BadOutput("artifact.json and normalized.xlsx have different sheets")
    sheets_by_name = {sheet.name: sheet for sheet in sheets}
    data_sheets = [sheets_by_name[escaped_name(name)] for name in output["sheets"]]
    rows = [sheet.rows for sheet in data_sheets]
    if sum(rows) != output["rows"]:
        raise BadOutput(f"artifact.json counts {output['rows']} rows, normalized.xlsx has {sum(rows)}")
    if rows != output["sheet_rows"]:
        raise BadOutput("artifact.json and normalized.xlsx have different row counts for a sheet")
    if any(sheet.columns != len(output["columns"]) for sheet in data_sheets):
        raise BadOutput("artifact.json and normalized.xlsx have different columns")
    if any(sheets_by_name[escaped_name(extra["name"])].rows != extra["rows"] for extra in output["extra_sheets"]):
        raise BadOutput("artifact.json and normalized.xlsx have different row counts for an extra sheet")
