"""Deletes what a listing does not show: former versions, delete markers, parts of uploads that were never completed."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from core.errors import StoreUnavailable
from infra.aws.calls import Caller

_AT_ONCE = 1000
_ROUNDS = 10_000  # of a thousand versions each


def purge_versions(s3: Any, call: Caller, bucket: str, prefix: str) -> int:
    """Delete every version of every key below `prefix`; returns how many there were. Safe to repeat."""
    gone, ask = 0, {"Bucket": bucket, "Prefix": prefix}
    for _ in range(_ROUNDS):
        page = call(f"list versions {prefix}", lambda: s3.list_object_versions(**ask, MaxKeys=_AT_ONCE))
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if not found:
            break
        _delete(s3, call, bucket, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found])
        gone += len(found)
    else:
        raise StoreUnavailable(f"{prefix} has ever more versions; stop whoever writes there, and repeat")
    uploads = call(f"list uploads {prefix}", lambda: s3.list_multipart_uploads(**ask)).get("Uploads", ())
    for one in uploads:
        upload = {"Bucket": bucket, "Key": one["Key"], "UploadId": one["UploadId"]}
        call(f"abort {one['Key']}", partial(s3.abort_multipart_upload, **upload))
    return gone


def folders_with_versions(s3: Any, call: Caller, bucket: str, prefix: str) -> Iterator[str]:
    """The folders right below `prefix` that hold a version of anything, or a delete marker."""
    ask: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", "MaxKeys": _AT_ONCE}
    while True:
        page = call(f"list versions {prefix}", partial(s3.list_object_versions, **ask))
        yield from (one["Prefix"] for one in page.get("CommonPrefixes", ()))
        if not page.get("IsTruncated"):
            return
        marks = {"KeyMarker": page.get("NextKeyMarker"), "VersionIdMarker": page.get("NextVersionIdMarker")}
        ask = {**ask, **{name: mark for name, mark in marks.items() if mark}}


def purge_former(s3: Any, call: Caller, bucket: str, key: str) -> int:
    """Delete all versions of one key but its newest; returns how many there were. Safe to repeat."""
    gone = 0
    for _ in range(_ROUNDS):
        ask = {"Bucket": bucket, "Prefix": key, "MaxKeys": _AT_ONCE}
        page = call(f"list versions {key}", lambda: s3.list_object_versions(**ask))  # noqa: B023 - called at once
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        old = [one for one in found if one["Key"] == key and not one["IsLatest"]]
        if not old:
            break
        _delete(s3, call, bucket, [{"Key": key, "VersionId": one["VersionId"]} for one in old])
        gone += len(old)
    return gone


def _delete(s3: Any, call: Caller, bucket: str, objects: list[dict[str, str]]) -> None:
    def act() -> None:
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        if answer.get("Errors"):
            raise ClientError({"Error": answer["Errors"][0]}, "DeleteObjects")

    call(f"delete {len(objects)} versions", act)
