"""The bucket, as a folder or on S3: what the client needs of it."""

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol, cast

from ade_drop.client.parcels import Content

_PIECE = 1 << 20  # bytes that are copied at a time


class Store(Protocol):
    """A bucket. Keys are relative to its root."""

    def put(self, key: str, content: Content) -> str:
        """Write an object whole or not at all; returns its version as result.json names it."""

    def is_same(self, key: str, version: str, other: str) -> bool:
        """Whether two versions of an object have the same content: the job of one is the job of the other."""

    def open(self, key: str) -> IO[bytes]:
        """Raises FileNotFoundError where there is no such object."""

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys that begin with `prefix`, which ends in a slash."""


class FolderStore:
    """The folder of an embedded deployment. A version is the SHA-256 of the content."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, content: Content) -> str:
        target = self._root / key
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        # Hidden until it is renamed: half a file is never read.
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", suffix=".part", delete=False) as partial:
            try:
                with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
                    while piece := source.read(_PIECE):
                        digest.update(piece)
                        partial.write(piece)
                partial.flush()
                os.fsync(partial.fileno())
                os.fchmod(partial.fileno(), 0o644)
                Path(partial.name).replace(target)
            except BaseException:
                Path(partial.name).unlink(missing_ok=True)
                raise
        return digest.hexdigest()

    def is_same(self, key: str, version: str, other: str) -> bool:  # noqa: ARG002 - a version is the content's digest
        return version == other

    def open(self, key: str) -> IO[bytes]:
        return (self._root / key).open("rb")

    def keys(self, prefix: str) -> Iterator[str]:
        for folder, _, names in os.walk(self._root / prefix):
            for name in names:
                if not name.startswith("."):
                    yield Path(folder, name).relative_to(self._root).as_posix()


class S3Store:
    """A bucket on S3 or a compatible store, with boto3 and its usual settings."""

    def __init__(self, bucket: str, endpoint: str | None = None) -> None:
        import boto3  # noqa: PLC0415 - only those who use S3 load it

        self._bucket = bucket
        self._s3: Any = boto3.client("s3", endpoint_url=endpoint)

    def put(self, key: str, content: Content) -> str:
        if isinstance(content, bytes):
            answer = self._s3.put_object(Bucket=self._bucket, Key=key, Body=content)
        else:
            with content.open("rb") as body:
                answer = self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
        version = str(answer.get("VersionId") or "null")
        return version if version != "null" else "etag:" + answer["ETag"].strip('"')

    def is_same(self, key: str, version: str, other: str) -> bool:
        if version == other or "etag:" in (version[:5], other[:5]):
            return version == other
        return self._etag(key, version) == self._etag(key, other) is not None

    def _etag(self, key: str, version: str) -> str | None:
        """None: the version is gone."""
        try:
            return str(self._s3.head_object(Bucket=self._bucket, Key=key, VersionId=version)["ETag"])
        except self._s3.exceptions.ClientError:
            return None

    def open(self, key: str) -> IO[bytes]:
        try:
            return cast("IO[bytes]", self._s3.get_object(Bucket=self._bucket, Key=key)["Body"])
        except self._s3.exceptions.NoSuchKey:
            raise FileNotFoundError(f"s3://{self._bucket}/{key}") from None

    def keys(self, prefix: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        for page in pages:
            for listed in page.get("Contents", ()):
                yield listed["Key"]
