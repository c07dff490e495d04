"""Whether an answer of a store can be believed.

Between us and a store there are proxies, caches and gateways, and each may answer in its place: with part of an object,
with another object, with a page that says "200 OK". An adapter believes an answer only with the store's own proof that
it is about these bytes; everything else is doubted, tried again, and never the fault of a job.
"""

import hashlib
import re

from core.errors import AnswerDoubted
from core.jobs import ObjectRef

_EMPTY = frozenset(hash_of(b"", usedforsecurity=False).hexdigest() for hash_of in (hashlib.md5, hashlib.sha256))
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_read(key: str, *, size: int, digest: str, stored_size: int | None, stored_digest: str | None) -> None:
    """`size` and `digest` of the bytes that came; what the store said they are (None: it did not say)."""
    if stored_size is not None and stored_size != size:
        raise AnswerDoubted(f"object {key}: {size} bytes came, and the store holds {stored_size}")
    if stored_digest is not None and stored_digest != digest:
        raise AnswerDoubted(f"object {key}: the {size} bytes that came are not those that its digest is of")


def check_described(key: str, *, size: int, digest: str | None, listed_size: int | None = None) -> None:
    """Whether a description holds together. `listed_size`: what a listing said of the same version."""
    if listed_size is not None and listed_size != size:
        raise AnswerDoubted(f"object {key} is described with {size} bytes and listed with {listed_size}")
    if digest is not None and (size == 0) != (digest in _EMPTY):
        raise AnswerDoubted(f"object {key} is described with {size} bytes, which is not what its digest is of")


def check_written(key: str, *, digest: str, stored_digest: str | None) -> None:
    """`digest`: of the bytes that were sent; what the store answered it has (None: no proof at all)."""
    if stored_digest is None:
        raise AnswerDoubted(f"object {key} was answered as written, without a proof that it was")
    if stored_digest != digest:
        raise AnswerDoubted(f"object {key} was answered as written, with other content than was sent")


def check_pinned(ref: ObjectRef, *, size: int, sha256: str) -> None:
    """Whether content is what a job was made for. A digest of another kind is the adapter's to check."""
    stored_digest = ref.digest if _SHA256.fullmatch(ref.digest) else None
    check_read(ref.key, size=size, digest=sha256, stored_size=ref.size, stored_digest=stored_digest)
