"""Reads an object completely, over as many connections as it takes.

After a broken connection, the next one requests the rest of the same version, so a large object arrives even over a bad
line and is never a mix of two versions.
"""

import contextlib
import hashlib
from collections.abc import Collection, Mapping
from typing import Any, BinaryIO, Protocol

from botocore.exceptions import ClientError, FlexibleChecksumError

from core.errors import ObjectTooLarge, StoreUnavailable
from core.ports import Fetched
from infra.aws.calls import Caller

_BLOCK = 1024 * 1024
_REPLACED = ("412", "PreconditionFailed", "NoSuchVersion", "InvalidRange", "416")


class Sink(Protocol):
    """Receives the content."""

    def write(self, block: bytes) -> None: ...

    def restart(self) -> None:
        """Discard what was written: the content starts over."""
        ...


class InMemory:
    def __init__(self) -> None:
        self._content = bytearray()

    def write(self, block: bytes) -> None:
        self._content += block

    def restart(self) -> None:
        self._content.clear()

    def content(self) -> bytes:
        return bytes(self._content)


class InFile:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._hasher = hashlib.sha256()
        self._size = 0

    def write(self, block: bytes) -> None:
        self._out.write(block)
        self._hasher.update(block)
        self._size += len(block)

    def restart(self) -> None:
        self._out.seek(0)
        self._out.truncate()
        self._hasher, self._size = hashlib.sha256(), 0

    def fetched(self) -> Fetched:
        self._out.flush()
        return Fetched(size=self._size, sha256=self._hasher.hexdigest())


def read_to_end(
    s3: Any,
    call: Caller,
    target: Mapping[str, str],
    sink: Sink,
    *,
    pin: Mapping[str, str],
    limit: int,
    expect: Collection[str],
) -> None:
    """Read an object at the version of `pin` (parameters of GetObject), or the newest.

    Each call has its deadline; a call that read at least one block gets another.
    """
    reading = _Reading(s3, target, sink, pin, limit)
    while True:
        before = reading.received
        try:
            return call(f"read {target['Key']}", reading.go_on, expect=expect)
        except StoreUnavailable:
            if reading.received <= before:
                raise


class _Reading:
    def __init__(self, s3: Any, target: Mapping[str, str], sink: Sink, pin: Mapping[str, str], limit: int) -> None:
        self._s3 = s3
        self._target = target
        self._sink = sink
        self._pin = pin
        self._limit = limit
        self._etag = ""  # of the version being read
        self._same: dict[str, str] = {}  # pins the version being read
        self.received = 0

    def go_on(self) -> None:
        """Request what is missing; a second call continues where the first broke off."""
        rest = {"Range": f"bytes={self.received}-"} if self.received else {}
        try:
            answer = self._s3.get_object(**self._target, **{**self._same, **self._pin}, **rest)
        except ClientError as error:
            if self._same and not self._pin and error.response.get("Error", {}).get("Code") in _REPLACED:
                self._restart()  # replaced, and the caller did not pin the old version
                return self.go_on()
            raise
        with contextlib.closing(answer["Body"]) as body:
            if rest and not self._continues(answer):
                self._restart()
                if answer.get("ContentRange"):
                    return self.go_on()
            if not self.received:
                self._begin(answer)
            try:
                for block in body.iter_chunks(_BLOCK):
                    self._sink.write(block)
                    self.received += len(block)
            except FlexibleChecksumError:
                self._restart()
                raise
        return None

    def _begin(self, answer: Mapping[str, Any]) -> None:
        if answer["ContentLength"] > self._limit:
            size, key = answer["ContentLength"], self._target["Key"]
            raise ObjectTooLarge(f"object {key} is {size} bytes; the limit here is {self._limit}")
        self._etag = str(answer.get("ETag", ""))
        version = str(answer.get("VersionId") or "null")
        self._same = {"VersionId": version} if version != "null" else {"IfMatch": self._etag}

    def _continues(self, answer: Mapping[str, Any]) -> bool:
        """Whether an answer continues the version being read; some servers ignore ranges or conditions."""
        said = str(answer.get("ContentRange", ""))
        return said.startswith(f"bytes {self.received}-") and str(answer.get("ETag", "")) == self._etag

    def _restart(self) -> None:
        self._sink.restart()
        self.received, self._same = 0, {}
