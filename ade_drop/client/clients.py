"""The client itself, for programs that wait and for those that do not block."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ade_drop.client.backends import ApiBackend, Backend, BucketBackend
from ade_drop.client.errors import AdeError, NotDone, Unavailable
from ade_drop.client.parcels import parcel_of
from ade_drop.client.results import Drop, Result
from ade_drop.client.stores import FolderStore, S3Store

AnyPath = str | os.PathLike[str]
Manifest = AnyPath | Mapping[str, Any]

_SHORTEST_WAIT = 0.05  # seconds between two looks for a result, at first
_LONGEST_WAIT = 2.0  # and in the end: a look at S3 is a paid request


class Client:
    """Drops files and fetches results; the methods block."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def drop(
        self,
        files: AnyPath | Sequence[AnyPath],
        *,
        tenant: str,
        manifest: Manifest | None = None,
        path: str | None = None,
    ) -> Drop:
        """Drop files together; without a manifest, standing workflows process them.

        `path` is the folder below the tenant's inbox: by default the workflow's name, over the API a new one for each
        drop. The same content again is the same job, which is not run again unless it had failed.
        """
        return self._backend.drop(parcel_of(files, manifest), tenant=tenant, path=path)

    def results(self, drop: Drop) -> list[Result]:
        """Results of the drop that are there now: one for each file and workflow, later more, perhaps."""
        return self._backend.results(drop)

    def wait(self, drop: Drop, *, timeout: float = 300) -> Result:
        """The drop's first result; NotDone after `timeout` seconds, Unavailable if nobody answers then."""
        deadline = time.monotonic() + timeout
        for pause in _pauses():
            is_last = time.monotonic() + pause > deadline
            if found := self._results_now(drop, is_last=is_last):
                return found[0]
            if is_last:
                raise self._not_done(drop, timeout)
            time.sleep(pause)
        raise AssertionError("pauses never end")

    def latest(self, *, tenant: str, subject: str, workflow: str) -> Result | None:
        """The newest good result of a file, by its path below the tenant's inbox; None while there is none."""
        return self._backend.latest(tenant, subject, workflow)

    def _results_now(self, drop: Drop, *, is_last: bool) -> list[Result]:
        """The results of a drop; none while the deployment does not answer, unless there is no time to ask again."""
        try:
            return self._backend.results(drop)
        except Unavailable:
            if is_last:
                raise
            return []

    def _not_done(self, drop: Drop, timeout: float) -> NotDone:
        reason = self._backend.pending(drop)
        return NotDone(f"{drop.keys[0]} has no result after {timeout:g} seconds ({reason})", reason)


class AsyncClient:
    """The same for asyncio: requests run in threads, waiting does not."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def drop(
        self,
        files: AnyPath | Sequence[AnyPath],
        *,
        tenant: str,
        manifest: Manifest | None = None,
        path: str | None = None,
    ) -> Drop:
        return await asyncio.to_thread(self._client.drop, files, tenant=tenant, manifest=manifest, path=path)

    async def results(self, drop: Drop) -> list[Result]:
        return await asyncio.to_thread(self._client.results, drop)

    async def wait(self, drop: Drop, *, timeout: float = 300) -> Result:  # noqa: ASYNC109 - as the blocking one
        """The drop's first result; NotDone after `timeout` seconds, Unavailable if nobody answers then."""
        deadline = time.monotonic() + timeout
        for pause in _pauses():
            is_last = time.monotonic() + pause > deadline
            if found := await asyncio.to_thread(self._client._results_now, drop, is_last=is_last):  # noqa: SLF001 - one class in two
                return found[0]
            if is_last:
                raise await asyncio.to_thread(self._client._not_done, drop, timeout)  # noqa: SLF001 - as above
            await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    async def latest(self, *, tenant: str, subject: str, workflow: str) -> Result | None:
        return await asyncio.to_thread(self._client.latest, tenant=tenant, subject=subject, workflow=workflow)


def connect(place: AnyPath, *, token: str | None = None, endpoint: str | None = None) -> Client:
    """A client for a deployment, by its bucket's folder, `s3://BUCKET` or the address of its API.

    `token` is for the API; `endpoint` for a store that is not AWS'. Credentials of S3 are those that boto3 finds.
    """
    text = os.fspath(place)
    if text.startswith(("http://", "https://")):
        return Client(ApiBackend(text, token))
    if token is not None:
        raise AdeError(f"{text} is a bucket: it takes no token; give the address of the API")
    if text.startswith("s3://"):
        return Client(BucketBackend(S3Store(text.removeprefix("s3://").rstrip("/"), endpoint)))
    if not Path(text).is_dir():
        raise AdeError(f"{text} is not a folder; the bucket of an embedded deployment is $ADE_STORAGE_DATA_DIR/bucket")
    return Client(BucketBackend(FolderStore(Path(text))))


def connect_async(place: AnyPath, *, token: str | None = None, endpoint: str | None = None) -> AsyncClient:
    """As `connect`, for asyncio."""
    return AsyncClient(connect(place, token=token, endpoint=endpoint))


def _pauses() -> Iterator[float]:
    pause = _SHORTEST_WAIT
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_WAIT)
