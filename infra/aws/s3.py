"""ObjectStore on S3 and compatible stores.

A version is the store's VersionId in a versioned bucket, else the ETag, to which reads and writes are pinned by
If-Match. A digest is what the store knows about the content: the ETag if it is an MD5 of the content, otherwise a
full-object checksum (uploads in parts, KMS), otherwise still the ETag. A listing that has all of this spares a request
for each object (s3_listings.py); the others are requested once and cached by their ETag and time. An answer counts only
if it proves itself (s3_answers.py); otherwise it is asked for again.
"""

import base64
import contextlib
import hashlib
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from botocore.exceptions import ClientError

from core.errors import (
    AnswerDoubted,
    CallRefused,
    ObjectChanged,
    ObjectMissing,
    ObjectRefused,
    ObjectTooLarge,
    PreconditionFailed,
    StoreUnavailable,
)
from core.keys import WORK, check_key, content_type, refusal
from core.ports import Body, Fetched, Folder, Level, Metadata, ObjectInfo
from infra.addresses import Address
from infra.aws.calls import Answered, Caller, client, link_client
from infra.aws.s3_answers import (
    ETAG,
    MD5_ETAG,
    StoreAnswers,
    check_deleted,
    check_named,
    etag_of,
    md5_hex,
    version_of,
)
from infra.aws.s3_listings import Listings
from infra.aws.s3_purging import folders_with_versions, purge_former, purge_versions
from infra.aws.s3_reads import InFile, InMemory, Memo, Sink, read_to_end
from infra.aws.s3_uploads import PART_BYTES, Uploads

_ABSENT = ("404", "NoSuchKey", "NotFound", "NoSuchVersion", "405", "MethodNotAllowed")
_LOST = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")
_TOO_LARGE = ("InvalidRequest", "EntityTooLarge")  # for a single copy; both codes may mean something else
_CHECKSUMS = ("SHA256", "CRC64NVME")
_EMPTY = md5_hex(b"")
_DELETED_AT_ONCE = 1000
_COPIED_AT_ONCE = 5 * 1024**3  # the largest object that S3 copies with one call
_COPY_PART_BYTES = 512 * 1024 * 1024


class S3Store:
    """A bucket behind an S3 API. Safe to share between threads."""

    def __init__(
        self,
        address: Address,
        *,
        caller: Caller | None = None,
        page_size: int = 1000,
        part_bytes: int = PART_BYTES,
        copied_at_once: int = _COPIED_AT_ONCE,
    ) -> None:
        self._address = address
        self._bucket = address.name
        self._s3 = client(address)
        self._links: Any = None  # made by the first link
        self._call = caller or Caller(str(address))
        if address.endpoint is not None:
            self._s3.meta.events.register("before-call.s3.DeleteObjects", _vouch)
        self._answers = StoreAnswers(opaque=address.options.get("etag") == "opaque")
        self._uploads = Uploads(self._s3, self._call, self._bucket, self._answers, part_bytes=part_bytes)
        self._copied_at_once = copied_at_once
        self._listings = Listings(self._s3, self._call, self._bucket, self._answers, page_size=page_size)
        self._memo: Memo[tuple[str, int, float], ObjectInfo] = Memo(100_000)
        self._etags: Memo[str, str] = Memo(10_000)  # by key, of the version that was seen last
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="s3-head")
        self._conditional: bool | None = None

    def head(self, key: str) -> ObjectInfo | None:
        return self._described(key, None)

    def _described(self, key: str, listed: tuple[str, int] | None) -> ObjectInfo | None:
        """`listed`: the ETag and size that a listing says."""
        if not _possible(key):
            return None
        try:
            answer = self._call(f"head {key}", lambda: self._head(key, listed), expect=_ABSENT)
        except Answered:
            return None
        except CallRefused as error:
            raise ObjectRefused(str(error)) from error
        info = self._info(key, answer)
        self._memo.put(key, (etag_of(answer), info.size, info.modified), info)
        self._etags.put(key, info.version, etag_of(answer))
        return info

    def objects(self, prefix: str, *, unreadable: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        for page in self._listings.pages(prefix):
            if unreadable is not None:
                unreadable |= {o["Key"]: why for o in page.get("Contents", ()) if (why := _refusal(o["Key"]))}
            asked = self._listings.with_versions(prefix, page, self._unknown(page))
            yield from self._detailed(asked.get("Contents", ()), {} if unreadable is None else unreadable)

    def keys(self, prefix: str) -> Iterator[str]:
        for page in self._listings.pages(prefix):
            yield from (o["Key"] for o in page.get("Contents", ()) if _possible(o["Key"]))

    def folder(self, prefix: str) -> Folder:
        objects: list[ObjectInfo] = []
        folders: list[str] = []
        for page in self._listings.folder(prefix):
            objects += self._detailed(page.get("Contents", ()))
            folders += [p["Prefix"] for p in page.get("CommonPrefixes", ())]
        return Folder(objects=tuple(objects), folders=tuple(folders))

    def level(self, prefix: str) -> Level:
        listed: dict[str, Any] = {}
        folders: list[str] = []
        refused: list[str] = []
        for page in self._listings.folder(prefix):
            contents = page.get("Contents", ())
            listed |= {o["Key"]: o for o in contents if _possible(o["Key"])}
            refused += [o["Key"] for o in contents if _refusal(o["Key"])]
            folders += [p["Prefix"] for p in page.get("CommonPrefixes", ())]

        def infos(keys: Collection[str]) -> list[ObjectInfo]:
            return self._detailed([listed[key] for key in keys if key in listed], unreadable)

        unreadable: dict[str, str] = {}
        return Level(
            keys=tuple(listed), folders=tuple(folders), infos=infos, refused_keys=tuple(refused), unreadable=unreadable
        )

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        sink = InMemory()
        self._get(key, version, limit, sink)
        return sink.content()

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        with to.open("xb") as out:
            sink = InFile(out)
            try:
                return sink.fetched(self._get(key, version, limit, sink))
            except BaseException:
                to.unlink(missing_ok=True)
                raise

    def put(
        self, key: str, body: Body, *, if_version: str | None = None, if_absent: bool = False, metadata: Metadata = None
    ) -> ObjectInfo:
        check_key(key)
        extra: dict[str, Any] = {"Metadata": dict(metadata)} if metadata else {}
        condition = self._condition(key, if_version, if_absent=if_absent)
        if isinstance(body, Path) and body.stat().st_size > self._uploads.part_bytes:
            lost = self._lost(key, condition)
            answer = self._uploads.upload(key, body, extra=extra, condition=condition, lost=lambda: lost)
            size = body.stat().st_size
        else:
            content = body if isinstance(body, bytes) else body.read_bytes()
            answer, size = self._put(key, content, extra, condition), len(content)
        answer["ContentLength"] = size
        if self._answers.md5(answer) is None:
            # Only the store knows the checksum of an object assembled from parts, and how much of it has arrived.
            there = self.head(key)
            if there is not None and there.version == version_of(answer):
                if there.size != size:
                    raise AnswerDoubted(f"object {key}: {size} bytes were written, and the store holds {there.size}")
                return there
        return self._info(key, answer | {"Metadata": dict(metadata or {})})

    def link(self, key: str, *, seconds: int, write: bool = False, save_as: str | None = None) -> str | None:
        params: dict[str, Any] = {"Bucket": self._bucket, "Key": check_key(key)}
        if save_as is not None and not write:
            params["ResponseContentDisposition"] = f"attachment; filename*=UTF-8''{quote(save_as, safe='')}"
            params["ResponseContentType"] = content_type(save_as)
        name = "put_object" if write else "get_object"
        if self._links is None:
            self._links = link_client(self._address)
        url: str = self._links.generate_presigned_url(name, Params=params, ExpiresIn=seconds)
        return url

    def copy(self, source: str, target: str) -> None:
        check_key(target)
        if not _possible(source):
            raise ObjectMissing(f"object {source!r} is not there: no such key can be")

        def act() -> None:
            source_at = {"Bucket": self._bucket, "Key": source}
            answer = self._s3.copy_object(Bucket=self._bucket, Key=target, CopySource=source_at)
            check_named(target, answer.get("CopyObjectResult", {}))

        try:
            self._call(f"copy {source}", act, expect=(*_ABSENT, *_TOO_LARGE))
        except Answered as no:
            if no.code not in _TOO_LARGE:
                raise ObjectMissing(f"object {source} is not there") from None
            refusal = StoreUnavailable(f"{self._address} refused copy {source}: {no.code}")
            self._copy_large(source, target, refusal)

    def _copy_large(self, source: str, target: str, refusal: StoreUnavailable) -> None:
        """Copy in parts by boto3's managed transfer; raises `refusal` if the source is not that large after all."""
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - rarely needed, and slow to import

        try:
            described = self._call(f"head {source}", lambda: self._head(source), expect=_ABSENT)
            if int(described["ContentLength"]) <= self._copied_at_once:
                raise refusal
            properties = {name: described[name] for name in ("ContentType", "Metadata") if name in described}
            part = min(self._copied_at_once, _COPY_PART_BYTES)
            config = TransferConfig(multipart_threshold=part, multipart_chunksize=part)
            self._call(
                f"copy {source}",
                lambda: self._s3.copy(
                    {"Bucket": self._bucket, "Key": source},
                    self._bucket,
                    target,
                    ExtraArgs=properties | {"CopySourceIfMatch": described["ETag"]},
                    Config=config,
                ),
                expect=_ABSENT,
            )
        except Answered:
            raise ObjectMissing(f"object {source} is not there") from None

    def delete(self, key: str) -> None:
        check_key(key)

        def act() -> None:
            check_deleted(key, self._s3.delete_object(Bucket=self._bucket, Key=key))

        with contextlib.suppress(Answered):
            self._call(f"delete {key}", act, expect=_ABSENT)

    def delete_all(self, keys: Sequence[str]) -> None:
        for at in range(0, len(keys), _DELETED_AT_ONCE):
            self._delete_many(list(keys[at : at + _DELETED_AT_ONCE]))

    def delete_prefix(self, prefix: str) -> int:
        gone = 0
        for page in self._listings.raw(prefix):
            keys = [o["Key"] for o in page.get("Contents", ())]
            self._delete_many(keys)
            gone += sum(_possible(key) for key in keys)
        return gone

    def purge(self, prefix: str) -> int:
        """Every version and delete marker, and the parts of uploads that were broken off."""
        return purge_versions(self._s3, self._call, self._bucket, prefix) + self.delete_prefix(prefix)

    def purgeable_folders(self, prefix: str) -> Iterator[str]:
        return folders_with_versions(self._s3, self._call, self._bucket, prefix)

    def purge_former(self, key: str) -> int:
        return purge_former(self._s3, self._call, self._bucket, key)

    def conditional(self) -> bool:
        """Whether the store honours conditional writes, tested once; if not, the loser of a race may win."""
        if self._conditional is None:
            self._conditional = self._probe()
        return self._conditional

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._s3.close()

    def _unknown(self, page: Mapping[str, Any]) -> int:
        """How many objects of a listing without versions would have to be requested one by one, but not with them."""
        contents = [
            listed for listed in page.get("Contents", ()) if _possible(listed["Key"]) and self._has_digest(listed)
        ]
        return sum(self._memo.get(listed["Key"], _fact(listed)) is None for listed in contents)

    def _has_digest(self, listed: Mapping[str, Any]) -> bool:
        """Whether the ETag of a listed object is the MD5 digest of its content."""
        return MD5_ETAG.fullmatch(etag_of(listed)) is not None and not self._answers.opaque

    def _as_listed(self, listed: Mapping[str, Any]) -> ObjectInfo | None:
        """What a listing with versions says of an object, except its metadata; None: it has to be requested.

        The time has whole seconds as in all other answers, or a job would seem to have a newer input than it has.
        """
        empty = int(listed["Size"]) == 0
        if "VersionId" not in listed or not self._has_digest(listed) or empty != (etag_of(listed) == _EMPTY):
            return None
        modified = listed["LastModified"].replace(microsecond=0)
        info = self._info(str(listed["Key"]), {**listed, "ContentLength": listed["Size"], "LastModified": modified})
        return replace(info, metadata=None)

    def _detailed(self, listed: Any, unreadable: dict[str, str] | None = None) -> list[ObjectInfo]:
        """Listed objects with version, digest and metadata; those that have vanished are left out.

        `unreadable` receives those that the store refuses to describe; without it, the first one ends the listing.
        """

        def ask(item: tuple[str, tuple[str, int, float]]) -> ObjectInfo | None:
            key, (etag, size, _) = item
            try:
                info = self.head(key)
                return info if info is None or info.size == size else self._described(key, (etag, size))
            except ObjectRefused as error:
                if unreadable is None:
                    raise
                unreadable[key] = str(error)
                return None

        facts = [(o["Key"], _fact(o)) for o in listed if _possible(o["Key"])]
        for o in listed:
            if _possible(o["Key"]) and self._memo.get(o["Key"], _fact(o)) is None and (info := self._as_listed(o)):
                self._memo.put(info.key, _fact(o), info)
        unknown = [(key, fact) for key, fact in facts if self._memo.get(key, fact) is None]
        fresh: dict[str, ObjectInfo | None] = {}
        for (key, fact), info in zip(unknown, self._pool.map(ask, unknown), strict=True):
            fresh[key] = info
            if info is not None:
                self._memo.put(key, fact, info)
        found = [fresh[key] if key in fresh else self._memo.get(key, fact) for key, fact in facts]
        return [info for info in found if info is not None]

    def _head(self, key: str, listed: tuple[str, int] | None = None) -> dict[str, Any]:
        mode = {} if self._address.endpoint and not self._answers.opaque else {"ChecksumMode": "ENABLED"}
        answer: dict[str, Any] = self._s3.head_object(Bucket=self._bucket, Key=key, **mode)
        self._answers.check_head(key, answer, listed)
        return answer

    def _info(self, key: str, answer: Mapping[str, Any]) -> ObjectInfo:
        modified = answer.get("LastModified")
        return ObjectInfo(
            key=key,
            version=version_of(answer),
            digest=self._digest(answer),
            size=int(answer["ContentLength"]),
            modified=modified.timestamp() if modified is not None else time.time(),
            metadata=answer.get("Metadata", {}),
        )

    def _digest(self, answer: Mapping[str, Any]) -> str:
        etag, size = etag_of(answer), int(answer["ContentLength"])
        if MD5_ETAG.fullmatch(etag) and not self._answers.opaque:
            return f"md5:{etag}:{size}"
        if answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
            for name in _CHECKSUMS:
                if value := answer.get(f"Checksum{name}"):
                    return f"{name.lower()}:{value}:{size}"
        return f"{ETAG}{etag}:{size}"

    def _get(self, key: str, version: str | None, limit: int, sink: Sink) -> str:
        """Read an object to its end; returns the version that was read."""
        if not _possible(key):
            raise ObjectMissing(f"object {key!r} is not there: no such key can be")
        target, pin = {"Bucket": self._bucket, "Key": key}, {}
        if version is not None:
            pin = {"IfMatch": f'"{version[len(ETAG) :]}"'} if version.startswith(ETAG) else {"VersionId": version}
        try:
            expect = (*_ABSENT, *_LOST, "InvalidArgument")
            answer = read_to_end(
                self._s3, self._call, target, sink, pin=pin, limit=limit, expect=expect, answers=self._answers
            )
        except CallRefused as error:
            raise ObjectRefused(str(error)) from error
        except Answered as no:
            if no.code in _LOST or "VersionId" in pin:
                raise ObjectChanged(f"object {key} is no longer at version {version}; it was replaced") from None
            raise ObjectMissing(f"object {key} is not there") from None
        self._etags.put(key, version_of(answer), etag_of(answer))
        return version_of(answer)

    def _condition(self, key: str, if_version: str | None, *, if_absent: bool) -> dict[str, str]:
        """The conditions of a put, as headers; for a store that ignores them, check the object beforehand."""
        if not if_absent and if_version is None:
            return {}
        if if_version is not None and (etag := self._etags.get(key, if_version)) is not None and self.conditional():
            return {"IfMatch": f'"{etag}"'}
        there = self.head(key) if if_version is not None or not self.conditional() else None
        if if_version is not None and (there is None or there.version != if_version):
            raise PreconditionFailed(
                f"object {key}: expected {if_version}, found {there.version if there else 'nothing'}"
            )
        if if_absent and there is not None:
            raise PreconditionFailed(f"object {key}: expected nothing, found {there.version}")
        if not self.conditional():
            return {}
        if there is None or if_version is None:
            return {"IfNoneMatch": "*"}
        return {"IfMatch": f'"{self._etag_of(there)}"'}

    def _etag_of(self, info: ObjectInfo) -> str:
        if info.version.startswith(ETAG):
            return info.version[len(ETAG) :]
        answer = self._call(
            f"head {info.key}",
            lambda: self._s3.head_object(Bucket=self._bucket, Key=info.key, VersionId=info.version),
        )
        return etag_of(answer)

    def _put(self, key: str, body: bytes, extra: dict[str, Any], condition: dict[str, str]) -> dict[str, Any]:
        md5, tries = _md5(body), 0

        def act() -> dict[str, Any]:
            nonlocal tries
            tries += 1
            answer: dict[str, Any] = self._s3.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ContentMD5=md5,
                **extra,
                **condition,
            )
            self._answers.check_put(key, answer, body)
            return answer

        try:
            return self._call(f"put {key}", act, expect=(*_LOST, *_ABSENT) if condition else ())
        except Answered:
            if tries > 1 and (mine := self._mine(key, body)) is not None:
                return mine
            raise self._lost(key, condition) from None

    def _mine(self, key: str, body: bytes) -> dict[str, Any] | None:
        """The object, if it holds what we tried to write: an earlier try succeeded and its answer was lost."""
        try:
            if self.read(key, limit=len(body)) != body:
                return None
            return self._call(f"head {key}", lambda: self._head(key), expect=_ABSENT)
        except (ObjectMissing, ObjectTooLarge, Answered):
            return None

    def _lost(self, key: str, condition: Mapping[str, str]) -> PreconditionFailed:
        expected = condition.get("IfMatch", "nothing")
        return PreconditionFailed(f"object {key}: expected {expected}, found something else")

    def _delete_many(self, keys: list[str]) -> None:
        """Delete up to a page of keys; retries those that the store was too busy for."""

        def act() -> None:
            nonlocal keys
            # Not quietly: the keys in the answer prove that the store has read the request.
            wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": False}
            answer = self._s3.delete_objects(Bucket=self._bucket, Delete=wanted)
            if not answer.get("Deleted") and not answer.get("Errors"):
                raise AnswerDoubted(f"{len(keys)} objects were answered as deleted, without their names")
            failed = [error for error in answer.get("Errors", ()) if error.get("Code") not in _ABSENT]
            keys = [error["Key"] for error in failed]
            if failed:
                raise ClientError({"Error": failed[0]}, "DeleteObjects")

        if keys:
            self._call(f"delete {len(keys)} objects", act)

    def _probe(self) -> bool:
        key = f"{WORK}.probe/{secrets.token_hex(8)}"
        self._call("probe", lambda: self._s3.put_object(Bucket=self._bucket, Key=key, Body=b"1"))
        honoured = 0
        try:
            for condition in ({"IfNoneMatch": "*"}, {"IfMatch": '"0123456789abcdef0123456789abcdef"'}):
                try:
                    self._call(
                        "probe",
                        lambda: self._s3.put_object(Bucket=self._bucket, Key=key, Body=b"2", **condition),  # noqa: B023 - called at once
                        expect=(*_LOST, "NotImplemented", "InvalidArgument"),
                    )
                except Answered as no:
                    honoured += no.code in _LOST
        finally:
            self.delete(key)
        return honoured == 2


def _vouch(params: dict[str, Any], **_: object) -> None:
    """boto3 sends a CRC32 with this call, but older servers require Content-MD5."""
    params["context"].pop("checksum", None)
    params["headers"]["Content-MD5"] = _md5(params["body"])


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def _possible(key: str) -> bool:
    """Whether we handle a key; consoles create folder markers, and others may write anything."""
    return not key.endswith("/") and _refusal(key) is None


def _refusal(key: str) -> str | None:
    """Why a key is refused; None if it is not, and for a folder marker, which is not a file."""
    return None if key.endswith("/") else refusal(key)


def _fact(listed: Mapping[str, Any]) -> tuple[str, int, float]:
    """What a listing says of an object, and what changes with it."""
    return etag_of(listed), int(listed["Size"]), listed["LastModified"].timestamp()
