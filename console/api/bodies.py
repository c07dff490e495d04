"""Bodies of requests while they arrive: bounded each by itself, and together by who sends them.

A body is kept in memory and has to be small, until an operation says that it goes to the disk. What has arrived counts
against its caller and against all until the request is answered, so that nobody fills memory or disk with requests that
they never finish. Files of a form go straight to the disk, one open at a time.
"""

import asyncio
import contextlib
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from io import BufferedWriter
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request
from starlette.types import Message, Receive

from console.api.problems import ProblemError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

LARGEST_IN_MEMORY = 4 * 1024 * 1024  # of one body
LARGEST_OF_STRANGERS = 8 * 1024  # of a body that comes without a token
MEMORY_OF_ONE, MEMORY = 16 * 1024 * 1024, 64 * 1024 * 1024
DISK_OF_ONE, DISK = 2, 4  # times the largest body
DISK_LEFT_FREE = 256 * 1024 * 1024
_READ_SECONDS = 30.0  # the longest silence while a body arrives
_STRANGER_SECONDS = 5.0  # in all, for a body that comes without a token
_SLOWEST = 1024  # bytes a second that a body may come at in the long run
READ_AWAY = 8 * 1024 * 1024  # of a body that nobody wants, so that its sender gets to read why
_READ_AWAY_SECONDS = 3.0
_FIELDS = 8  # of a form with files
_RETRY = {"Retry-After": "10"}


class Bodies:
    """Counts what has arrived of all requests that are not answered yet. Belongs to its event loop."""

    def __init__(self, *, largest: int, spool: Path) -> None:
        self.largest = largest
        self._spool = spool
        self._memory: Counter[str] = Counter()
        self._disk: Counter[str] = Counter()

    def reserve(self, who: str | None, size: int, *, on_disk: bool) -> None:
        """Count bytes of a caller; `who` None: only against all. Raises ProblemError if there is no room for them."""
        counted = self._disk if on_disk else self._memory
        of_one, of_all = (DISK_OF_ONE * self.largest, DISK * self.largest) if on_disk else (MEMORY_OF_ONE, MEMORY)
        if who is not None and counted[who] + size > of_one:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{of_one} bytes of requests that this caller has begun are not answered yet; finish those first",
                headers=_RETRY,
            )
        if on_disk and (counted.total() + size > of_all or shutil.disk_usage(self._spool).free < DISK_LEFT_FREE):
            raise ProblemError(
                HTTPStatus.INSUFFICIENT_STORAGE, "no room is left for files on their way in; send this later"
            )
        if counted.total() + size > of_all:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are arriving; send this later", headers=_RETRY
            )
        counted[who or ""] += size

    def release(self, who: str | None, size: int, *, on_disk: bool) -> None:
        counted = self._disk if on_disk else self._memory
        counted[who or ""] -= size
        if counted[who or ""] <= 0:
            del counted[who or ""]


class ReceivedBody:
    """The body of one request as it arrives: bounded in bytes and in time, and counted."""

    def __init__(self, receive: Receive, bodies: Bodies, declared: int) -> None:
        self._receive = receive
        self._bodies = bodies
        self._declared = declared
        self._most = min(LARGEST_IN_MEMORY, bodies.largest)
        self._who: str | None = ""
        self._largest = bodies.largest
        self._on_disk = False
        self._seconds = float("inf")
        self._waited = 0.0
        self._ended = False  # nothing more to come, or nothing more to wait for
        self._reserved = {True: 0, False: 0}  # on the disk, in memory
        self.seen = 0

    def comes_from(self, who: str | None) -> None:
        """Whom its bytes count against; None: only against all."""
        self._who = who

    def comes_from_stranger(self, address: str) -> None:
        self._who, self._most, self._seconds = f"address {address}", LARGEST_OF_STRANGERS, _STRANGER_SECONDS

    def comes_by_link(self, who: str, most: int) -> None:
        """From the holder of an upload link: counted against that, and no larger than it says."""
        self._who, self._largest, self._seconds = who, most, float("inf")

    def goes_to_disk(self) -> None:
        self._on_disk, self._most = True, min(self._bodies.largest, self._largest)

    def count_in_memory(self, size: int) -> None:
        """Count a part of a body on the disk that is in memory as well."""
        self._reserve(size, on_disk=False)

    async def receive(self) -> Message:
        if self._ended:
            return await self._receive()  # only reports that the client has disconnected
        if max(self._declared, self.seen) > self._most:
            raise self._over()
        began = time.monotonic()
        patience = min(_READ_SECONDS, _READ_SECONDS + self.seen / _SLOWEST - self._waited, self._seconds - self._waited)
        try:
            message = await asyncio.wait_for(self._receive(), max(patience, 0.0))
        except TimeoutError:
            self._ended = True
            raise ProblemError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"nothing came for {min(_READ_SECONDS, self._seconds):g} seconds, or less than {_SLOWEST} bytes a "
                "second; send the body faster",
            ) from None
        self._waited += time.monotonic() - began
        self._see(message)
        if self.seen > self._most:
            raise self._over()
        self._reserve(len(message.get("body", b"")), on_disk=self._on_disk)
        return message

    async def read_away(self) -> None:
        most = self.seen + READ_AWAY
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READ_AWAY_SECONDS):
                while not self._ended and self.seen < most:
                    self._see(await self._receive())

    @property
    def left(self) -> int:
        return self._declared - self.seen

    def close(self) -> None:
        for on_disk, size in self._reserved.items():
            self._bodies.release(self._who, size, on_disk=on_disk)

    def _reserve(self, size: int, *, on_disk: bool) -> None:
        self._bodies.reserve(self._who, size, on_disk=on_disk)
        self._reserved[on_disk] += size

    def _see(self, message: Message) -> None:
        self.seen += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)

    def _over(self) -> ProblemError:
        return too_large(self._most) if self._on_disk else _too_large_in_memory(self._most)


def too_large(most: int) -> ProblemError:
    return ProblemError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body is over {most} bytes (ADE_CONSOLE_BODY_MB); send less at once",
    )


def _too_large_in_memory(most: int) -> ProblemError:
    return ProblemError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is over {most} bytes, the most that this request may have"
    )


def body_of(request: Request) -> ReceivedBody:
    body: ReceivedBody = request.scope["ade.body"]
    return body


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file of a form, on the disk."""

    filename: str
    path: Path
    size: int


Part = tuple[str, str | ReceivedFile]  # its name, and what it holds


async def read_form(
    request: Request, folder: Path, *, files: int, field_bytes: int
) -> list[tuple[str, str | ReceivedFile]]:
    """The parts of a multipart form in their order; files go into `folder`."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary, charset = options.get(b"boundary"), options.get(b"charset", b"utf-8")
    if kind != b"multipart/form-data" or not boundary:
        raise _unreadable("it is not multipart/form-data with a boundary")
    if charset.lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the form is not in UTF-8; send UTF-8")
    body = body_of(request)
    body.goes_to_disk()
    form = _Form(body, folder, files=files, field_bytes=field_bytes)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
    except FormParserError as error:
        raise _unreadable(str(error)[:200]) from None
    finally:
        form.close()
    return form.parts


def _unreadable(why: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, f"the form cannot be read: {why}")


class _Form:
    """Receives the parts of a form from the parser: fields into memory, files onto the disk."""

    def __init__(self, body: ReceivedBody, folder: Path, *, files: int, field_bytes: int) -> None:
        self.parts: list[Part] = []
        self._body = body
        self._folder = folder
        self._left = {"files": files, "fields": _FIELDS}
        self._field_bytes = field_bytes
        self._header = self._value = self._disposition = b""
        self._name = self._filename = ""
        self._file: BufferedWriter | None = None
        self._text = bytearray()

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self.part_begin,
            "on_header_field": self.header_field,
            "on_header_value": self.header_value,
            "on_header_end": self.header_end,
            "on_headers_finished": self.headers_finished,
            "on_part_data": self.part_data,
            "on_part_end": self.part_end,
        }

    def part_begin(self) -> None:
        self._disposition = b""
        self._text = bytearray()

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise _unreadable("a part has no name")
        self._name = _decoded(options[b"name"])
        kind = "files" if b"filename" in options else "fields"
        self._left[kind] -= 1
        if self._left[kind] < 0:
            raise _unreadable(f"Too many {kind}")
        if kind == "files":
            self._filename = _decoded(options[b"filename"])
            self._file = (self._folder / token_hex(8)).open("xb")

    def part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._body.count_in_memory(end - start)
        self._text += data[start:end]
        if len(self._text) > self._field_bytes:
            raise _unreadable(f"field {self._name[:50]!r} is over {self._field_bytes} bytes")

    def part_end(self) -> None:
        if self._file is None:
            self.parts.append((self._name, _decoded(bytes(self._text))))
            return
        size = self._file.tell()
        self._file.close()
        self.parts.append((self._name, ReceivedFile(self._filename, Path(str(self._file.name)), size)))
        self._file = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
