"""What an answer of S3 says about an object, and whether it proves itself (core/proofs.py)."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from core.errors import AnswerDoubted
from core.proofs import check_described, check_written

ETAG = "etag:"  # begins a version that is an ETag, in a bucket without versions
_NO_CONTENT = 204
MD5_ETAG = re.compile(r"[0-9a-f]{32}")


def etag_of(answer: Mapping[str, Any]) -> str:
    return str(answer.get("ETag", "")).strip('"')


def version_of(answer: Mapping[str, Any]) -> str:
    version = str(answer.get("VersionId") or "null")
    return version if version != "null" else ETAG + etag_of(answer)


def md5_hex(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


class StoreAnswers:
    """Checks the answers of one bucket. `opaque`: its ETags are never digests (docs/guides/cloud.md)."""

    def __init__(self, *, opaque: bool) -> None:
        self.opaque = opaque

    def md5(self, answer: Mapping[str, Any]) -> str | None:
        """The MD5 of the content; None where the ETag is something else: uploads in parts, SSE-KMS, SSE-C."""
        sealed = str(answer.get("ServerSideEncryption", "")).startswith("aws:kms") or "SSECustomerAlgorithm" in answer
        etag = etag_of(answer)
        return etag if MD5_ETAG.fullmatch(etag) and not sealed and not self.opaque else None

    def check_head(self, key: str, answer: Mapping[str, Any], listed: tuple[str, int] | None = None) -> None:
        """`listed`: ETag and size in a listing."""
        etag = etag_of(answer)
        if not etag or "ContentLength" not in answer:
            raise AnswerDoubted(f"object {key} was described without an ETag or a length; does a proxy answer?")
        listed_size = listed[1] if listed is not None and listed[0] == etag else None
        check_described(key, size=int(answer["ContentLength"]), digest=self.md5(answer), listed_size=listed_size)

    def check_put(self, key: str, answer: Mapping[str, Any], body: bytes) -> None:
        """Of an object, or of one part of it. A store whose ETags are no digests proves at least that it answered."""
        digest, stored_digest = md5_hex(body), self.md5(answer)
        if stored_digest is not None or not etag_of(answer):
            check_written(key, digest=digest, stored_digest=stored_digest)

    def check_listing(self, prefix: str, answer: Mapping[str, Any]) -> None:
        """Check that an answer is a listing."""
        if not answer.keys() & {"Name", "IsTruncated", "MaxKeys"}:
            raise AnswerDoubted(f"the listing of {prefix or 'the bucket'} is none; does a proxy answer?")


def check_deleted(key: str, answer: Mapping[str, Any]) -> None:
    """S3 answers a DELETE with 204, which no page has; a store that does not has at least numbered the request."""
    response = answer.get("ResponseMetadata", {})
    if response.get("HTTPStatusCode") != _NO_CONTENT and "x-amz-request-id" not in response.get("HTTPHeaders", {}):
        raise AnswerDoubted(f"object {key} was answered as deleted by something that is not the store")


def check_named(key: str, answer: Mapping[str, Any], name: str = "ETag") -> Mapping[str, Any]:
    """An answer that must hold something only the store can know."""
    if not answer.get(name):
        raise AnswerDoubted(f"object {key} was answered without {name}; does a proxy answer?")
    return answer
