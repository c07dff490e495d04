"""Fix in the browser: a job's rejected rows as a grid, checked while they are edited, dropped as corrected rejects.

What is submitted is rejects.xlsx with the edited cells changed, in the folder of the first file: the same drop as that
of somebody who corrects the workbook (docs/guides/rejects.md).
"""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from starlette.responses import Response

from console.api import models
from console.api.operations import Answer, Call
from console.api.problems import ProblemError
from console.desk.fixing import LARGEST, LONGEST_TEXT, Edit, as_csv, edited_rows, rejected_rows, with_edits
from console.web.own_page import is_sender
from console.web.own_words import fixing_words, words
from console.web.rehearsals import asker, rehearse_input
from console.web.rendering import page
from core.errors import ObjectMissing, ObjectTooLarge
from core.jobs import InputRef, Job, ObjectRef
from core.keys import job_folder
from infra.apart import TooCostly, apart
from runner.engine.common import a1

REJECTS = "rejects.xlsx"
_MOST_EDITS = 10_000  # of one submission
_NAME_DIGITS = 8  # of the digest in a corrected file's name
_NAME_BYTES = 200  # of the first file's name in it


def _fits_cell(text: str) -> str:
    """A cell counts UTF-16 units: a longer text would be cut where nobody sees it."""
    if len(text.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST_TEXT:
        raise ValueError(f"is longer than a cell takes, {LONGEST_TEXT} characters")
    return text


class FixBody(models.RequestModel):
    """Cells of rejects.xlsx as somebody changed them: sheet from 0, row and column from 1, and the text."""

    # SHA-256 of the workbook that they saw: the same job may run again, and another row be where theirs was.
    of: str | None = Field(default=None, max_length=64)
    edits: list[
        tuple[
            Annotated[int, Field(ge=0, le=99)],
            Annotated[int, Field(ge=1, le=1_048_576)],
            Annotated[int, Field(ge=1, le=16_384)],
            Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_fits_cell)],
        ]
    ] = Field(min_length=1, max_length=_MOST_EDITS)


def download(call: Call) -> Answer:
    """The workbook by its name: report.html links to it as to a file beside itself."""
    return call.context.downloads.one(call.context.seen(call.job_id, call.principal), REJECTS, inline=False)


def fixing(call: Call) -> Response:
    """The page with the grid."""
    job = _fixable(call)
    text = words(call.request.headers.get("accept-language", "") if is_sender(call) else "")
    return page(
        call,
        "fix.html",
        job=job,
        at=f"/jobs/{job.job_id}",
        text=text,
        fixing=fixing_words(text["language"]),
        own=is_sender(call),
    )


def rows(call: Call) -> Answer:
    """What the grid shows."""
    job = _fixable(call)
    call.context.actions.note(call.principal, "read_rejects", tenant=job.tenant, job=job.job_id)
    with _fetched(call, job) as path:
        shown: dict[str, Any] = _apart(rejected_rows, str(path))
    return {**shown, "of": _published(job)}


def check(call: Call) -> Answer:
    """What the workflow's rules say of the edited rows. The whole file is checked once they are submitted."""
    job, body = _fixable(call), call.body
    with _fetched(call, job, body.of) as path:
        small, places = _apart(edited_rows, str(path), _edits(body))
        file = path.with_name("rows.xlsx")
        file.write_bytes(small)
        done = rehearse_input(call.context, job, (_input(job, small, file.name), file), path.parent, asker(call))
    found = {(sheet, row): at for sheet, row, at in places}
    edited = {(sheet, row) for sheet, row, _, _ in body.edits}
    return {"checked": done.artifact is not None, "wrong": _wrong(done.artifact or {}, found, edited)}


def submit(call: Call) -> Answer:
    """Drop the corrected workbook beside the first file."""
    job, body = _fixable(call), call.body
    with _fetched(call, job, body.of) as path:
        corrected = _apart(with_edits, str(path), _edits(body))
        digest = hashlib.sha256(corrected).hexdigest()[:_NAME_DIGITS]
        stem = corrected_stem(_primary(job).ref.key, digest)
        key, content = _selected(call, stem, corrected, path.with_name("corrected.xlsx"))
    call.context.submissions.check_backlog(job.tenant)
    call.context.actions.note(call.principal, "fix", tenant=job.tenant, job=job.job_id, cells=len(body.edits), key=key)
    call.context.stack.store.put(key, content)
    return call.context.submissions.record(job.tenant, [key], trace=call.span.trace).shape()


def corrected_stem(key: str, digest: str) -> str:
    """The key of a corrected file without its ending: beside the first one, cut where the name would be too long."""
    first = PurePosixPath(key)
    stem = first.stem.encode()[:_NAME_BYTES].decode(errors="ignore")
    return str(first.with_name(f"{stem}-corrected-{digest}"))


def _fixable(call: Call) -> Job:
    job = call.context.seen(call.job_id, call.principal)
    if REJECTS not in {file.name for file in job.files}:
        raise ObjectMissing(
            f"job {job.job_id} has no {REJECTS}: no row has an error, or the manifest lacks output.rejects"
        )
    return job


def _published(job: Job) -> str:
    """The SHA-256 of the job's rejects.xlsx, as its row has it."""
    return next(file.sha256 for file in job.files if file.name == REJECTS)


@contextlib.contextmanager
def _fetched(call: Call, job: Job, of: str | None = None) -> Iterator[Path]:
    """The job's rejects.xlsx as it was published, in a folder that goes afterwards.

    `of`: the one that the caller saw. Raises ProblemError if another was published since.
    """
    with call.context.spool.scratch() as scratch:
        path = scratch / REJECTS
        try:
            fetched = call.context.stack.store.fetch(job_folder(job) + REJECTS, path, limit=LARGEST)
        except ObjectTooLarge:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"{REJECTS} is larger than {LARGEST // 2**20} MB; download it and correct it in a spreadsheet program",
            ) from None
        if not fetched.sha256 == _published(job) == (of or fetched.sha256):
            raise ProblemError(HTTPStatus.CONFLICT, f"{REJECTS} has changed since; load the page again")
        yield path


def _apart(act: Any, *arguments: Any) -> Any:
    try:
        return apart(act, *arguments)
    except TooCostly as error:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{REJECTS} cannot be edited here: {error}; download it instead"
        ) from None
    except RuntimeError as error:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{REJECTS} has no such cell: {error}") from None


def _edits(body: FixBody) -> list[Edit]:
    return [Edit(*edit) for edit in body.edits]


def _primary(job: Job) -> InputRef:
    return next(one for one in job.inputs if one.role == "primary")


def _input(job: Job, content: bytes, name: str) -> InputRef:
    digest = hashlib.sha256(content).hexdigest()
    key = str(PurePosixPath(_primary(job).ref.key).with_name(name))
    ref = ObjectRef(key=key, version=digest, digest=digest, size=len(content))
    return replace(_primary(job), name=name, ref=ref)


def _selected(call: Call, stem: str, workbook: bytes, scratch: Path) -> tuple[str, bytes]:
    """The corrected file under a name that a workflow selects: as a workbook, or else as CSV."""
    submissions = call.context.submissions
    try:
        submissions.standing([f"{stem}.xlsx"])
    except ProblemError:
        submissions.standing([f"{stem}.csv"])
        scratch.write_bytes(workbook)
        return f"{stem}.csv", _apart(as_csv, str(scratch))
    return f"{stem}.xlsx", workbook


def _wrong(
    artifact: dict[str, Any], places: dict[tuple[int, int], int], edited: set[tuple[int, int]]
) -> list[dict[str, object]]:
    """Errors of edited rows, at their places in rejects.xlsx."""
    sheets = {sheet["name"]: number for number, sheet in enumerate(artifact.get("sheets", ()))}
    found: list[dict[str, object]] = []
    for finding in artifact.get("validation", {}).get("findings", ()):
        at = (sheets.get(finding.get("sheet"), -1), finding.get("row") or 0)
        row = places.get(at)
        if row is None or finding["severity"] != "error" or (at[0], row) not in edited:
            continue
        letters = str(finding.get("cell") or "").rstrip("0123456789")
        found.append({"sheet": at[0], "row": row, "column": a1.column_number(letters), "message": finding["message"]})
    return found
