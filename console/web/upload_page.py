"""The page of an upload link: a file goes in, its verdict comes out, and nothing else can be seen.

Whoever has the link needs no account. It is of one tenant and one workflow; its files go to folders of their own, so
that nobody overwrites or sees what others sent, and a verdict is found by the number of its upload alone.
"""

import re
import secrets
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from posixpath import basename

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from console.api.access import Grant
from console.api.app import UPLOAD
from console.api.bodies import ReceivedFile, body_of, read_form
from console.api.operations import Call, in_turn
from console.api.problems import ProblemError
from console.api.submissions import HttpDrop
from console.desk.files import inbox_folder
from console.web.own_page import verdict
from console.web.own_words import words
from console.web.rendering import bare_page
from core.drops import is_placeholder
from core.errors import KeyRefused
from core.jobs import Job, State
from core.keys import OUTPUTS, check_key, is_ignored, is_spreadsheet
from runner.documents import quality

_FORM_BYTES = 4096  # of a form beside its file
_LONGEST_NAME = 150
_MOST_FILES = 20  # of one upload whose verdicts are shown: it has one, and corrections of it
_NUMBER = re.compile(r"[0-9a-f]{32}")


def show_upload(call: Call) -> Response:
    link = _link(call)
    return _page(call, link, number=call.request.query_params.get("sent", ""))


async def receive_upload(call: Call) -> Response:
    link = await run_in_threadpool(_link, call)
    most = link.most_mb * 1024 * 1024
    body_of(call.request).comes_by_link(f"link {link.id}", most + _FORM_BYTES)
    with call.context.spool.scratch() as scratch:
        parts = await read_form(call.request, scratch, files=1, field_bytes=_FORM_BYTES)
        files = [value for name, value in parts if name == "file" and isinstance(value, ReceivedFile)]
        if len(files) != 1 or not files[0].filename:
            raise ProblemError(HTTPStatus.BAD_REQUEST, "choose one file first")
        if files[0].size > most:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"this link takes files of at most {link.most_mb} MB"
            )
        number = await in_turn(call, _store, call, link, file_name(files[0].filename), files[0].path)
    token = call.request.path_params["token"]
    return RedirectResponse(f"{UPLOAD}{token}?sent={number}", status_code=HTTPStatus.SEE_OTHER)


def file_name(sent_name: str) -> str:
    """The name of an uploaded file, without the folders of whoever sent it; only spreadsheets have one."""
    name = basename(sent_name.replace("\\", "/")).strip()
    try:
        check_key(f"inbox/x/{name}")
    except KeyRefused:
        name = ""
    if not is_spreadsheet(name) or is_ignored(name) or len(name.encode()) > _LONGEST_NAME:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "this is not the name of a spreadsheet (.xlsx, .xlsm, .xls, .xlsb, .ods, .csv, .tsv; at most 150 letters)",
        )
    return name


def upload_folder(link: Grant, number: str) -> str:
    """The folder of one upload below the tenant's inbox."""
    return "/".join(part for part in (link.path.strip("/"), f"link-{link.id}", number) if part)


def _link(call: Call) -> Grant:
    token = str(call.request.path_params["token"])
    link = call.context.guard.holder_of_link(call.request, call.context.links, token)
    if link.tenant is None or not link.workflow:
        raise _over()
    return link


def _over() -> ProblemError:
    return ProblemError(HTTPStatus.NOT_FOUND, "there is no such upload link, or it is over; ask for another")


def _store(call: Call, link: Grant, name: str, file: Path) -> str:
    context, number, tenant = call.context, secrets.token_hex(16), link.tenant or ""
    if context.links.grant(str(call.request.path_params["token"])) != link:
        raise _over()  # since the upload began, which may have taken its time
    folder = upload_folder(link, number)
    found = {
        workflow.manifest.name for workflow in context.submissions.standing([f"{inbox_folder(tenant, folder)}{name}"])
    }
    if found != {link.workflow}:
        raise ProblemError(HTTPStatus.CONFLICT, "this link is for a workflow that takes no such file; ask for another")
    context.actions.note(link.principal(), "upload", tenant=tenant, link=link.id, files=[name])
    context.submissions.drop(HttpDrop(tenant, b"", {name: file}, folder), trace=call.span.trace)
    return number


def _jobs_of(call: Call, link: Grant, number: str) -> list[Job]:
    """The jobs of one upload by this link, found by their lines: at the same cost whatever else the tenant drops."""
    store, table = call.context.stack.store, call.context.stack.table
    folder, tenant = upload_folder(link, number), link.tenant or ""
    below = inbox_folder(tenant, folder)
    sent = islice(store.keys(below), _MOST_FILES)
    names = {key.removeprefix(below) for key in sent} or {
        basename(one.rstrip("/")) for one in islice(store.level(f"{OUTPUTS}{tenant}/{folder}/").folders, _MOST_FILES)
    }
    lines = [f"{tenant}/{subject}|{link.workflow}" for subject in (folder, *(f"{folder}/{n}" for n in sorted(names)))]
    found = (job for line in lines for job in table.line(line))
    inputs = ((job, [one.ref.key for one in job.inputs if one.role == "primary"]) for job in found)
    return [
        job for job, keys in inputs if keys and all(key.startswith(below) for key in keys) and not is_placeholder(job)
    ]


def _shown(job: Job, text: dict[str, str]) -> dict[str, object]:
    """What a sender may know of a job: how it ended, how many rows there are and how many are wrong."""
    sentence, colour = verdict(job, text)
    counted = quality(job) if job.state is State.SUCCEEDED else None
    return {
        "file": basename(job.subject.rstrip("/")),
        "said": sentence if job.ended or job.state in (State.REVIEW, State.AWAITING) else text["upload_received"],
        "colour": colour,
        "rows": (counted or {}).get("rows_out"),
        "why": job.error.message if job.error is not None else "",
    }


def _page(call: Call, link: Grant, *, number: str) -> Response:
    text = words(call.request.headers.get("accept-language", ""))
    found = _jobs_of(call, link, number) if _NUMBER.fullmatch(number) else []
    sent = [_shown(job, text) for job in found]
    page = bare_page(
        call.request,
        "upload.html",
        text=text,
        name=link.name,
        most_mb=link.most_mb,
        verdicts=sent,
        sent=bool(number),
    )
    page.headers["X-Robots-Tag"] = "noindex"
    return page
