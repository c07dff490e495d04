"""Reads an object completely, over as many connections as it takes, and caches facts that cost a request.

After a broken connection, the next one requests the rest of the same version, so a large object arrives even over a bad
line and is never a mix of two versions. What came is compared with what the store says it is: with its MD5, else with a
checksum that boto3 verifies, else with the size and version of a second request. If they differ, it is read again.
"""

import contextlib
import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from botocore.exceptions import ClientError, FlexibleChecksumError
from botocore.httpchecksum import StreamingChecksumBody

from core.caches import BoundedCache
from core.errors import AnswerDoubted, ObjectTooLarge, StoreUnavailable
from core.ports import Fetched
from core.proofs import check_read
from infra.aws.calls import Caller
from infra.aws.s3_answers import StoreAnswers, check_named, etag_of, version_of

F = TypeVar("F")
V = TypeVar("V")

_ONE_IN = 16
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

    def fetched(self, version: str) -> Fetched:
        self._out.flush()
        return Fetched(size=self._size, sha256=self._hasher.hexdigest(), version=version)


def read_to_end(
    s3: Any,
    call: Caller,
    target: Mapping[str, str],
    sink: Sink,
    *,
    pin: Mapping[str, str],
    limit: int,
    expect: Collection[str],
    answers: StoreAnswers,
) -> Mapping[str, Any]:
    """Read an object at the version of `pin` (parameters of GetObject), or the newest; returns what S3 said of it.

    Each call has its deadline; a call that read at least one block gets another.
    """
    reading = _Reading(s3, target, sink, pin=pin, limit=limit, answers=answers)
    while True:
        before = reading.received
        try:
            call(f"read {target['Key']}", reading.go_on, expect=expect)
            return reading.first
        except StoreUnavailable:
            if reading.received <= before:
                raise


class _Reading:
    def __init__(
        self,
        s3: Any,
        target: Mapping[str, str],
        sink: Sink,
        *,
        pin: Mapping[str, str],
        limit: int,
        answers: StoreAnswers,
    ) -> None:
        self._s3 = s3
        self._target = target
        self._sink = sink
        self._pin = pin
        self._limit = limit
        self._answers = answers
        self.first: Mapping[str, Any] = {}  # the answer that began the version being read
        self._same: dict[str, str] = {}  # pins the version being read
        self._md5 = hashlib.md5(usedforsecurity=False)
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
        try:
            with contextlib.closing(answer["Body"]) as body:
                self._check_version(answer)
                if rest and not self._continues(answer):
                    self._restart()
                    if answer.get("ContentRange"):
                        return self.go_on()
                if not self.received:
                    self._begin(answer)
                self._receive(body.iter_chunks(_BLOCK))
            self._check_content(whole=not rest and isinstance(answer["Body"], StreamingChecksumBody))
        except (FlexibleChecksumError, AnswerDoubted):
            self._restart()
            raise
        return None

    def _receive(self, blocks: Iterable[bytes]) -> None:
        """Write blocks to the sink, and count and digest them."""
        for block in blocks:
            self._sink.write(block)
            self._md5.update(block)
            self.received += len(block)

    def _begin(self, answer: Mapping[str, Any]) -> None:
        """Note the version that is read; raises ObjectTooLarge."""
        if answer["ContentLength"] > self._limit:
            size, key = answer["ContentLength"], self._target["Key"]
            raise ObjectTooLarge(f"object {key} is {size} bytes; the limit here is {self._limit}")
        self.first = answer
        version = str(answer.get("VersionId") or "null")
        self._same = {"VersionId": version} if version != "null" else {"IfMatch": str(answer["ETag"])}

    def _check_version(self, answer: Mapping[str, Any]) -> None:
        """Whether an answer is about the version that was asked for."""
        key = self._target["Key"]
        check_named(key, answer)
        for name, came in (("IfMatch", str(answer["ETag"])), ("VersionId", str(answer.get("VersionId")))):
            if self._pin.get(name, came) != came:
                raise AnswerDoubted(f"object {key}: version {self._pin[name]} was asked for, and {came} came")

    def _check_content(self, *, whole: bool) -> None:
        """`whole`: boto3 compared all of it with a checksum that the store keeps."""
        key, stored_digest, stored_size = self._target["Key"], self._answers.md5(self.first), None
        if stored_digest is None and not whole:
            version = {name: value for name, value in self._same.items() if name == "VersionId"}
            described = self._s3.head_object(**self._target, **version)
            self._answers.check_head(key, described)
            stored_size = int(described["ContentLength"])
            if version_of(described) != version_of(self.first):
                raise AnswerDoubted(f"object {key} was replaced while it was read")
        check_read(
            key, size=self.received, digest=self._md5.hexdigest(), stored_size=stored_size, stored_digest=stored_digest
        )

    def _continues(self, answer: Mapping[str, Any]) -> bool:
        """Whether an answer continues the version being read; some servers ignore ranges or conditions."""
        content_range = str(answer.get("ContentRange", ""))
        return content_range.startswith(f"bytes {self.received}-") and etag_of(answer) == etag_of(self.first)

    def _restart(self) -> None:
        """Forget what was received, and begin with the next answer."""
        self._sink.restart()
        self.received, self._same, self.first = 0, {}, {}
        self._md5 = hashlib.md5(usedforsecurity=False)


class Memo(Generic[F, V]):
    """The latest value by key, valid while the `fact` it was stored with stays the same; made for scans."""

    def __init__(self, size: int) -> None:
        self._held = BoundedCache[str, tuple[F, V]](size, newcomers=_ONE_IN)

    def get(self, key: str, fact: F) -> V | None:
        held = self._held.get(key)
        return held[1] if held is not None and held[0] == fact else None

    def put(self, key: str, fact: F, value: V) -> None:
        self._held.put(key, (fact, value))
