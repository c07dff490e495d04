"""The two ways to a deployment: its bucket, or its API."""

import hashlib
import http.client
import io
import json
import secrets
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO, Any, Protocol, cast

from ade_drop.client.errors import AdeError, DropRejected, NotPublished, Unavailable
from ade_drop.client.parcels import Content, Parcel, inbox_folder
from ade_drop.client.results import Drop, Result, result_of
from ade_drop.client.stores import Store

RESULT = "result.json"
_ENDED = frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED", "SKIPPED", "EXPIRED"})
_GOOD = "SUCCEEDED"
_LATER = frozenset({429, 502, 503, 504})  # statuses of a server, or of a proxy before it, that is busy or restarts
_ANSWER_SECONDS = 60  # that a server may be silent


class Backend(Protocol):
    """What the client needs of a deployment."""

    def drop(self, parcel: Parcel, *, tenant: str, path: str | None) -> Drop:
        """Put the parcel in. The same parcel again is the same drop."""

    def results(self, drop: Drop) -> list[Result]:
        """Those results of the drop that are there now; DropRejected if it never gets any."""

    def pending(self, drop: Drop) -> str:
        """What the drop waits for, as far as it is known."""

    def latest(self, tenant: str, subject: str, workflow: str) -> Result | None:
        """The newest good result of a file; None while there is none."""


class BucketBackend:
    """Over the bucket alone: nothing is called, results are found where they are published."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def drop(self, parcel: Parcel, *, tenant: str, path: str | None) -> Drop:
        folder = inbox_folder(parcel, tenant, path or parcel.workflow)
        outputs = f"outputs/{folder.removeprefix('inbox/')}"
        places = [f"{outputs}{parcel.workflow}/"] if parcel.per_drop else [f"{outputs}{name}/" for name in parcel.files]
        earlier = {key: digest for key, _, digest in self._documents(places)}
        versions = {name: self._store.put(folder + name, content) for name, content in parcel.uploads()}
        return Drop(
            tenant=tenant,
            keys=tuple(folder + name for name in parcel.files),
            versions=tuple(versions[name] for name in parcel.files),
            workflow=parcel.workflow,
            places=tuple(places),
            earlier=earlier,
            rejections=f"{outputs}rejected.json",
        )

    def results(self, drop: Drop) -> list[Result]:
        found = []
        for key, document, digest in self._documents(list(drop.places)):
            if drop.workflow and document["workflow"] != drop.workflow:
                continue
            if document["status"] not in _ENDED or not self._is_of(document, drop):
                continue
            # A failed job runs again when its file is dropped again: its earlier result is not the answer.
            if document["status"] != _GOOD and drop.earlier.get(key) == digest:
                continue
            found.append(self._result(key, document))
        if not found:
            self._check_rejections(drop)
        return found

    def pending(self, drop: Drop) -> str:
        for place in drop.places:
            for key in self._store.keys(place):
                if key.endswith("/status.json"):
                    document = self._read(key)
                    return f"{document.get('state', '')}: {document.get('reason', '')}" if document else ""
        return "nothing is published for it yet; is a runner alive?"

    def latest(self, tenant: str, subject: str, workflow: str) -> Result | None:
        folder = f"outputs/{tenant}/{subject}/{workflow}/"
        named = self._read(f"{folder}latest.json")
        if named is None:
            return None
        key, document = named["result"], self._read(named["result"])
        if document is not None and document["status"] != _GOOD:  # of a workflow that wants to see failures there
            found = [(other["timings"]["created_at"], at, other) for at, other, _ in self._documents([folder])]
            good = [one for one in found if one[-1]["status"] == _GOOD]
            _, key, document = max(good, key=lambda one: one[:2], default=("", "", None))
        return None if document is None else self._result(key, document)

    def _is_of(self, document: dict[str, Any], drop: Drop) -> bool:
        """Whether a result was made from what was dropped, in that version."""
        used = {entry["key"]: entry["version"] for entry in document.get("inputs", ())}
        dropped = zip(drop.keys, drop.versions, strict=True)
        return any(key in used and self._store.is_same(key, used[key], version) for key, version in dropped)

    def _check_rejections(self, drop: Drop) -> None:
        rejected = self._read(drop.rejections) if drop.rejections else None
        folder = PurePosixPath(drop.keys[0]).parent.as_posix()
        problems = tuple(
            problem
            for problem in (rejected or {}).get("problems", ())
            if problem.get("file") in drop.keys
            or (drop.workflow and str(problem.get("manifest", "")).startswith(f"{folder}/"))
        )
        if problems:
            raise DropRejected(_listed(problems, drop.rejections), problems)

    def _documents(self, places: list[str]) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Every result.json below `places`: key, content and digest."""
        for place in places:
            for key in list(self._store.keys(place)):
                if key.endswith(f"/{RESULT}"):
                    body = self._body(key)
                    if body:
                        yield key, json.loads(body), hashlib.sha256(body).hexdigest()

    def _result(self, key: str, document: dict[str, Any]) -> Result:
        folder = key.removesuffix(RESULT)
        return result_of(document, lambda name: self._store.open(folder + name))

    def _read(self, key: str) -> dict[str, Any] | None:
        body = self._body(key)
        return json.loads(body) if body else None

    def _body(self, key: str) -> bytes:
        try:
            with self._store.open(key) as file:
                return file.read()
        except FileNotFoundError:
            return b""


class ApiBackend:
    """Over the job API of `ade up` or `ade serve`."""

    def __init__(self, address: str, token: str | None) -> None:
        self._address = address.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def drop(self, parcel: Parcel, *, tenant: str, path: str | None) -> Drop:
        form = [("tenant", tenant)] + ([("path", path)] if path is not None else [])
        body, content_type = _form(form, parcel)
        answer = self._json("/jobs", body, {"Content-Type": content_type})
        return Drop(
            tenant=tenant,
            keys=tuple(answer["keys"]),
            versions=(),
            jobs=tuple(job["job_id"] for job in answer["jobs"]),
            workflow=parcel.workflow,
        )

    def results(self, drop: Drop) -> list[Result]:
        ended = (job for job in drop.jobs if self._job(job)["state"] in _ENDED)
        return [result for job in ended if (result := self._result(job)) is not None]

    def pending(self, drop: Drop) -> str:
        job = self._job(drop.jobs[0]) if drop.jobs else {}
        return f"{job.get('state', '')}: {job.get('reason', '')}"

    def latest(self, tenant: str, subject: str, workflow: str) -> Result | None:
        asked = {"tenant": tenant, "workflow": workflow, "text": subject, "state": _GOOD}
        cursor: str | None = ""
        while cursor is not None:  # a page may be short, even empty, while there is more
            page = self._json(f"/jobs?{urllib.parse.urlencode(asked | ({'cursor': cursor} if cursor else {}))}")
            for job in page["jobs"]:
                if job["subject"] == subject:
                    return self._result(job["job_id"])
            cursor = page.get("cursor")
        return None

    def _job(self, job_id: str) -> dict[str, Any]:
        return self._json(f"/jobs/{urllib.parse.quote(job_id)}")

    def _result(self, job_id: str) -> Result | None:
        """None: the job has ended, and its result is about to be written."""

        def opened(name: str) -> IO[bytes]:
            return self._open(f"/jobs/{urllib.parse.quote(job_id)}/output?{urllib.parse.urlencode({'name': name})}")

        try:
            return result_of(self._parse(lambda: opened(RESULT)), opened)
        except NotPublished:
            return None

    def _parse(self, opened: Callable[[], IO[bytes]]) -> dict[str, Any]:
        """The JSON object of an answer."""
        try:
            with opened() as answer:
                return cast("dict[str, Any]", json.load(answer))
        except (OSError, http.client.HTTPException, ValueError) as failed:  # an answer that broke off
            raise self._unavailable(failed) from failed

    def _json(self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> dict[str, Any]:
        return self._parse(lambda: self._open(path, body, headers))

    def _open(self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> IO[bytes]:
        url = self._address + path
        request = urllib.request.Request(url, data=body, headers=self._headers | (headers or {}))  # noqa: S310
        try:
            # The token goes to the API alone: a link into the store carries its own right.
            return cast("IO[bytes]", _opener().open(request, timeout=_ANSWER_SECONDS))
        except urllib.error.HTTPError as refused:
            with refused:
                raise _refusal(refused.code, refused.read(1 << 20)) from None
        except (OSError, http.client.HTTPException) as failed:
            raise self._unavailable(failed) from failed

    def _unavailable(self, failed: Exception) -> Unavailable:
        return Unavailable(f"{self._address} does not answer: {failed}")


class _WithoutToken(urllib.request.HTTPRedirectHandler):
    """Follows redirects to the store without the headers that are meant for the API."""

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            following.headers.pop("Authorization", None)
        return following


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_WithoutToken)


def _refusal(status: int, body: bytes) -> AdeError:
    try:
        problem = json.loads(body)
        detail, problems = str(problem["detail"]), tuple(problem.get("problems", ()))
    except (ValueError, KeyError, TypeError):
        detail, problems = f"the answer has status {status}", ()
    match status:
        case http.HTTPStatus.UNPROCESSABLE_ENTITY:
            return DropRejected(detail, problems)
        case http.HTTPStatus.NOT_FOUND:
            return NotPublished(detail)
        case status if status in _LATER:
            return Unavailable(detail)
        case _:
            return AdeError(detail)


def _form(fields: list[tuple[str, str]], parcel: Parcel) -> tuple[bytes, str]:
    """The parcel as multipart/form-data, and its content type."""
    boundary = f"ade-{secrets.token_hex(16)}"
    body = io.BytesIO()

    def add(disposition: str, content: bytes) -> None:
        body.write(f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode())
        body.write(content + b"\r\n")

    for name, value in fields:
        add(f'name="{name}"', value.encode())
    for name, content in parcel.uploads():
        part = "manifest" if name == parcel.manifest_name else "files"
        quoted = name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        add(f'name="{part}"; filename="{quoted}"', _bytes(content))
    body.write(f"--{boundary}--\r\n".encode())
    return body.getvalue(), f"multipart/form-data; boundary={boundary}"


def _bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _listed(problems: tuple[dict[str, Any], ...], key: str) -> str:
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    where = first.get("manifest") or first.get("file")
    return f"{where}: {first.get('path', '')} {first.get('problem', '')}{more}; see {key}"
