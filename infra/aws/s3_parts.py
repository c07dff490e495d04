"""Objects put together from parts: large files, read once and in blocks, and copies that are too large for one call.

The object appears whole with the last call, which carries the condition; a failed one leaves no parts behind. Each
upload has a name of its own in the object's metadata: where the last call is refused, the name tells whether an
earlier try of it had got through.
"""

import base64
import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import AdeError, ObjectMissing, StoreUnavailable
from infra.aws.calls import Answered, Caller

PART_BYTES = 16 * 1024 * 1024
COPIED_AT_ONCE = 5 * 1024**3  # what S3 copies with one call, at most
_COPY_PART_BYTES = 512 * 1024 * 1024
_MOST_PARTS = 10_000
_NAME = "ade-upload"
_ABSENT = ("404", "NoSuchKey", "NotFound")
_LOST = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")

Part = dict[str, Any]


class Parts:
    """Uploads and copies in parts on one bucket."""

    def __init__(
        self,
        s3: Any,
        call: Caller,
        bucket: str,
        *,
        part_bytes: int = PART_BYTES,
        copied_at_once: int = COPIED_AT_ONCE,
    ) -> None:
        self._s3 = s3
        self._call = call
        self._bucket = bucket
        self.part_bytes = part_bytes
        self._copied_at_once = copied_at_once

    def upload(
        self, key: str, source: Path, *, extra: dict[str, Any], condition: dict[str, str], lost: Callable[[], AdeError]
    ) -> dict[str, Any]:
        """Upload a file; what the store answers. Raises `lost` where the condition fails."""

        def parts(upload: dict[str, str]) -> Iterator[Part]:
            for number, block in _blocks(source, self.part_bytes):
                md5 = base64.b64encode(hashlib.md5(block, usedforsecurity=False).digest()).decode()
                sent = self._call(
                    f"part {number} of {key}",
                    lambda: self._s3.upload_part(**upload, PartNumber=number, Body=block, ContentMD5=md5),  # noqa: B023 - called at once
                )
                yield {"PartNumber": number, "ETag": sent["ETag"]}

        return self._assemble(key, extra, parts, condition, lost)

    def copy(self, source: str, target: str, refusal: AdeError) -> None:
        """Copy what one call cannot; `refusal` is raised where the source is not that large after all."""
        try:
            found = self._call(
                f"head {source}", lambda: self._s3.head_object(Bucket=self._bucket, Key=source), expect=_ABSENT
            )
        except Answered:
            raise ObjectMissing(f"object {source} is not there") from None
        size = int(found["ContentLength"])
        if size <= self._copied_at_once:
            raise refusal
        step = max(min(self._copied_at_once, _COPY_PART_BYTES), -(-size // _MOST_PARTS))
        pinned = {"CopySource": {"Bucket": self._bucket, "Key": source}, "CopySourceIfMatch": found["ETag"]}

        def parts(upload: dict[str, str]) -> Iterator[Part]:
            for number, start in enumerate(range(0, size, step), start=1):
                span = f"bytes={start}-{min(start + step, size) - 1}"
                sent = self._call(
                    f"part {number} of {target}",
                    lambda: self._s3.upload_part_copy(**upload, **pinned, PartNumber=number, CopySourceRange=span),  # noqa: B023 - called at once
                    expect=_ABSENT,
                )
                yield {"PartNumber": number, "ETag": sent["CopyPartResult"]["ETag"]}

        kept = {name: found[name] for name in ("ContentType", "Metadata") if name in found}
        try:
            self._assemble(target, kept, parts, {}, lambda: refusal)
        except Answered:
            raise ObjectMissing(f"object {source} is not there") from None

    def _assemble(
        self,
        key: str,
        extra: dict[str, Any],
        parts: Callable[[dict[str, str]], Iterator[Part]],
        condition: dict[str, str],
        lost: Callable[[], AdeError],
    ) -> dict[str, Any]:
        target, name = {"Bucket": self._bucket, "Key": key}, secrets.token_hex(8)
        named = extra | {"Metadata": {**extra.get("Metadata", {}), _NAME: name}}
        made = self._call(f"start {key}", lambda: self._s3.create_multipart_upload(**target, **named))
        upload = target | {"UploadId": made["UploadId"]}
        try:
            listed = {"Parts": list(parts(upload))}
            answer: dict[str, Any] = self._call(
                f"complete {key}",
                lambda: self._s3.complete_multipart_upload(**upload, MultipartUpload=listed, **condition),
                expect=(*_LOST, *_ABSENT, "NoSuchUpload"),
            )
        except Answered as no:
            if (mine := self._named(target, name)) is not None:
                return mine
            self._abort(upload)
            if no.code in _LOST:
                raise lost() from None
            if no.code != "NoSuchUpload":
                raise
            raise StoreUnavailable(f"the upload of {key} was ended by somebody else; try again") from None
        except BaseException:
            self._abort(upload)
            raise
        return answer

    def _named(self, target: Mapping[str, str], name: str) -> dict[str, Any] | None:
        """The object where it is the one of this upload: an earlier try got through and its answer was lost."""
        try:
            found: dict[str, Any] = self._call(
                f"head {target['Key']}", lambda: self._s3.head_object(**target), expect=_ABSENT
            )
        except Answered:
            return None
        return found if found.get("Metadata", {}).get(_NAME) == name else None

    def _abort(self, upload: dict[str, str]) -> None:
        with contextlib.suppress(AdeError, Answered):
            self._call(
                f"abort {upload['Key']}",
                lambda: self._s3.abort_multipart_upload(**upload),
                expect=("NoSuchUpload", "404"),
            )


def _blocks(source: Path, part_bytes: int) -> Iterator[tuple[int, bytes]]:
    size = max(part_bytes, -(-source.stat().st_size // _MOST_PARTS))
    with source.open("rb") as file:
        number = 1
        while block := file.read(size):
            yield number, block
            number += 1
