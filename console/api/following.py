"""Live views: jobs and counts are read once, however many clients watch them, and sent as server-sent events.

A log's event id is `<fence>.<bytes>`: how much of which attempt's log a client has. It says so again when it comes
back (Last-Event-ID), and goes on from there; of a new attempt it gets everything.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from http import HTTPStatus
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from console.api.clients import CONNECTIONS
from console.api.operations import Call
from console.api.problems import ProblemError
from console.facade import Facade, log_text
from core.jobs import Job
from core.ports import JobTable

_SILENCE_SECONDS = 15.0  # after which a comment keeps proxies from closing the stream
_LONGEST_SECONDS = 600.0  # then the client comes back, and whether it may is asked again
MOST_STREAMS = CONNECTIONS * 3 // 4  # the rest is for those who ask and go
_SENT_AT_ONCE = 256 * 1024
_BATCH = 100
RETRY_MILLISECONDS = 2000
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class _Followed:
    """One job that somebody watches."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self.gone = False
        self.fence = -1
        self.log = bytearray()
        self.done = False
        self.watchers = 0


class Followers:
    """Everything that is watched, read by one task. Lives in the server's event loop."""

    def __init__(self, facade: Facade, table: JobTable, *, seconds: float) -> None:
        self._facade = facade
        self._table = table
        self._seconds = seconds
        self._jobs: dict[str, _Followed] = {}
        self._counts_watchers = 0
        self._counts: dict[str, dict[str, int]] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._streams = 0

    async def follow(self, job_id: str, have: tuple[int, int]) -> AsyncIterator[str]:
        """Events of one job until it has ended: `state`, `log`, `end`. `have`: fence and bytes of its log."""
        with self._streaming():
            async with contextlib.aclosing(self._follow(job_id, have)) as events:
                async for event in events:
                    yield event

    async def counts(self, tenant: str | None) -> AsyncIterator[str]:
        """Counts by tenant and state as they change: `overview`."""
        with self._streaming():
            async with contextlib.aclosing(self._count(tenant)) as events:
                async for event in events:
                    yield event

    async def _follow(self, job_id: str, have: tuple[int, int]) -> AsyncGenerator[str]:
        followed = self._jobs.get(job_id)
        if followed is None or followed.done or followed.gone:
            followed = self._jobs[job_id] = _Followed()  # whoever watched its last end has their own
        followed.watchers += 1
        until = asyncio.get_running_loop().time() + _LONGEST_SECONDS
        self._wake()
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            fence, after = have
            sent: Any = None
            while not self._closed and asyncio.get_running_loop().time() < until:
                changed = self._changed
                job = followed.job
                if followed.gone:
                    yield _event("gone", {"job_id": job_id})
                    return
                if job is not None:
                    facts = _facts(job)
                    if facts != sent:
                        sent = facts
                        yield _event("state", facts)
                    if fence != followed.fence:
                        fence, after = followed.fence, 0
                    while after < len(followed.log):
                        piece = bytes(followed.log[after : after + _SENT_AT_ONCE])
                        last = after + len(piece) == len(followed.log) and followed.done
                        long = len(piece) == _SENT_AT_ONCE and b"\n" not in piece
                        text, length = log_text(piece, whole=last or long)
                        if not length:
                            break
                        after += length
                        yield _event("log", {"text": text, "after": after}, name=f"{fence}.{after}")
                    if followed.done:
                        yield _event("end", facts, name=f"{fence}.{after}")
                        return
                if not await _woken(changed):
                    yield ": still here\n\n"
        finally:
            followed.watchers -= 1
            if followed.watchers <= 0 and self._jobs.get(job_id) is followed:
                del self._jobs[job_id]

    async def _count(self, tenant: str | None) -> AsyncGenerator[str]:
        self._counts_watchers += 1
        self._wake()
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            sent: Any = None
            until = asyncio.get_running_loop().time() + _LONGEST_SECONDS
            while not self._closed and asyncio.get_running_loop().time() < until:
                changed = self._changed
                shown = {name: states for name, states in self._counts.items() if tenant in (None, name)}
                if shown != sent:
                    sent = shown
                    yield _event("overview", {"tenants": shown})
                if not await _woken(changed):
                    yield ": still here\n\n"
        finally:
            self._counts_watchers -= 1

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._notify()
        if self._task is not None:
            self._task.cancel()

    def end(self) -> None:
        """`close`, from another thread."""
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notify)

    def check_room(self) -> None:
        """503 where as many streams are open as may be; polling is always possible."""
        if self._streams >= MOST_STREAMS:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too many streams are open; close some, or poll (/overview, /jobs/{job_id}/logs?after=)",
                headers={"Retry-After": "10"},
            )

    @contextlib.contextmanager
    def _streaming(self) -> Iterator[None]:
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _wake(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll_while_watched())

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _poll_while_watched(self) -> None:
        while (self._jobs or self._counts_watchers) and not self._closed:
            with contextlib.suppress(Exception):  # watchers wait until the table answers again
                if await run_in_threadpool(self._poll):
                    self._notify()
            await asyncio.sleep(self._seconds)

    def _poll(self) -> bool:
        """Read everything that is watched; returns whether anything changed. Runs in a worker thread."""
        news = False
        watched = dict(self._jobs)
        ids = [job_id for job_id, one in watched.items() if not (one.done or one.gone)]
        for at in range(0, len(ids), _BATCH):
            batch = ids[at : at + _BATCH]
            found = self._table.get_all(batch)
            for job_id in batch:
                news |= self._update(watched[job_id], found.get(job_id))
        if self._counts_watchers:
            counted = {
                name: {str(state): n for state, n in sorted(states.items()) if n}
                for name, states in self._facade.tally().tenants.items()
            }
            news |= counted != self._counts
            self._counts = counted
        return news

    def _update(self, followed: _Followed, job: Job | None) -> bool:
        if job is None:
            followed.gone = True
            return True
        news = followed.job is None or followed.job.rev != job.rev
        if job.fence != followed.fence:
            followed.log = bytearray()
        whole = job.ended and not job.unpublished
        more = self._facade.log(job, len(followed.log))
        if more:
            followed.log += more
        followed.fence, followed.job = job.fence, job
        followed.done = whole
        return news or bool(more) or whole


def event_stream(call: Call, events: AsyncIterator[str]) -> Response:
    """Events as an answer; of HEAD only that it would be one."""
    if call.request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=_HEADERS)
    call.context.followers.check_room()
    return StreamingResponse(_while_allowed(call, events), media_type="text/event-stream", headers=_HEADERS)


async def _while_allowed(call: Call, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Ends the stream of a caller whose token was revoked or has expired: at the next event, or comment."""
    async for event in events:
        if not await run_in_threadpool(call.context.access.lasts, call.principal):
            return
        yield event


def resume(last: str | None) -> tuple[int, int]:
    """Fence and bytes of a Last-Event-ID; from the start if it is not valid."""
    fence, _, after = (last or "").partition(".")
    if fence.isdecimal() and after.isdecimal() and len(fence) + len(after) < 20:
        return int(fence), int(after)
    return -1, 0


def _facts(job: Job) -> dict[str, object]:
    return {
        "job_id": job.job_id,
        "state": str(job.state),
        "reason": job.reason,
        "progress": job.summary.get("progress"),
        "attempt": job.attempt,
        "cancel_requested": job.cancel_requested_at is not None,
    }


def _event(kind: str, data: dict[str, object], *, name: str | None = None) -> str:
    head = f"id: {name}\n" if name is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


async def _woken(changed: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(changed.wait(), _SILENCE_SECONDS)
    except TimeoutError:
        return False
    return True
