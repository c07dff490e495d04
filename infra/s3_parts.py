"""Uploads in parts: large files are read once, in blocks, and a failed upload leaves no parts behind."""

import base64
import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.errors import AdeError
from infra.remote import Answered, Caller

PART_BYTES = 16 * 1024 * 1024
_MOST_PARTS = 10_000


def upload_in_parts(
    s3: Any,
    call: Caller,
    target: dict[str, str],
    source: Path,
    *,
    extra: dict[str, Any],
    condition: dict[str, str],
    lost: Callable[[], AdeError],
) -> dict[str, Any]:
    """Upload a file; the object appears whole with the last call, which carries the condition."""
    key = target["Key"]
    made = call(f"start {key}", lambda: s3.create_multipart_upload(**target, **extra))
    upload = target | {"UploadId": made["UploadId"]}
    try:
        parts = []
        for number, block in _blocks(source):
            md5 = base64.b64encode(hashlib.md5(block, usedforsecurity=False).digest()).decode()
            sent = call(
                f"part {number} of {key}",
                lambda: s3.upload_part(**upload, PartNumber=number, Body=block, ContentMD5=md5),  # noqa: B023 - called at once
            )
            parts.append({"PartNumber": number, "ETag": sent["ETag"]})
        try:
            answer: dict[str, Any] = call(
                f"complete {key}",
                lambda: s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, **condition),
                expect=("412", "PreconditionFailed", "409", "ConditionalRequestConflict", "NoSuchUpload"),
            )
        except Answered as no:
            if no.code != "NoSuchUpload":
                raise lost() from None
            # The upload is gone because an earlier try completed it and its answer was lost.
            answer = call(f"head {key}", lambda: s3.head_object(**target))
    except BaseException:
        with contextlib.suppress(AdeError, Answered):
            call(f"abort {key}", lambda: s3.abort_multipart_upload(**upload), expect=("NoSuchUpload", "404"))
        raise
    return answer


def _blocks(source: Path) -> Iterator[tuple[int, bytes]]:
    size = max(PART_BYTES, -(-source.stat().st_size // _MOST_PARTS))
    with source.open("rb") as file:
        number = 1
        while block := file.read(size):
            yield number, block
            number += 1
