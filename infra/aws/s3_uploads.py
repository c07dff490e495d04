"""Conditional uploads of large files, in parts.

The object appears with the last call, which carries the condition; a failed upload leaves no parts behind. Each upload
puts a unique name into the object's metadata: if the last call is refused, the name shows whether an earlier try of it
succeeded. boto3's managed transfer does none of this (docs/explanation/decisions/own-uploads.md); large copies use it.
"""

import base64
import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import AdeError, StoreUnavailable
from infra.aws.calls import Answered, Caller
from infra.aws.s3_answers import StoreAnswers, check_named

PART_BYTES = 16 * 1024 * 1024
_MOST_PARTS = 10_000
_NAME = "ade-upload"
_ABSENT = ("404", "NoSuchKey", "NotFound")
_LOST = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")


class Uploads:
    """Uploads in parts to one bucket."""

    def __init__(
        self, s3: Any, call: Caller, bucket: str, answers: StoreAnswers, *, part_bytes: int = PART_BYTES
    ) -> None:
        self._s3 = s3
        self._call = call
        self._bucket = bucket
        self._answers = answers
        self.part_bytes = part_bytes

    def upload(
        self, key: str, source: Path, *, extra: dict[str, Any], condition: dict[str, str], lost: Callable[[], AdeError]
    ) -> dict[str, Any]:
        """Upload a file; returns the store's answer. Raises `lost` if the condition fails."""
        target, name = {"Bucket": self._bucket, "Key": key}, secrets.token_hex(8)
        named = extra | {"Metadata": {**extra.get("Metadata", {}), _NAME: name}}
        made = self._call(
            f"start {key}", lambda: check_named(key, self._s3.create_multipart_upload(**target, **named), "UploadId")
        )
        upload = target | {"UploadId": made["UploadId"]}
        try:
            parts = {"Parts": list(self._send(source, upload))}
            answer = self._call(
                f"complete {key}",
                lambda: check_named(
                    key, self._s3.complete_multipart_upload(**upload, MultipartUpload=parts, **condition)
                ),
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
            raise StoreUnavailable(f"the upload of {key} was aborted by another process; try again") from None
        except BaseException:
            self._abort(upload)
            raise
        return dict(answer)

    def _send(self, source: Path, upload: dict[str, str]) -> Iterator[dict[str, Any]]:
        for number, block in _blocks(source, self.part_bytes):
            md5 = base64.b64encode(hashlib.md5(block, usedforsecurity=False).digest()).decode()

            def send(number: int = number, block: bytes = block, md5: str = md5) -> dict[str, Any]:
                sent: dict[str, Any] = self._s3.upload_part(**upload, PartNumber=number, Body=block, ContentMD5=md5)
                self._answers.check_put(upload["Key"], sent, block)
                return sent

            sent = self._call(f"part {number} of {upload['Key']}", send)
            yield {"PartNumber": number, "ETag": sent["ETag"]}

    def _named(self, target: Mapping[str, str], name: str) -> dict[str, Any] | None:
        """The object, if it is the one of this upload: an earlier try succeeded and its answer was lost."""
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
