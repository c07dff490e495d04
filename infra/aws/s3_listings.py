"""Lists a bucket, with the versions of objects where that saves a request for each.

ListObjectsV2 says which objects exist; it knows no versions. ListObjectVersions knows them, but lists what was replaced
or deleted too, and many stores answer it that were never asked before. So its answers are only believed as far as
ListObjectsV2 agrees: object by object in a long listing, and for a folder once that has been tried out in this process.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import CallRefused
from infra.aws.calls import Caller
from infra.aws.s3_answers import StoreAnswers, etag_of

Page = Mapping[str, Any]
_WORTH = 3  # requests for single objects that a listing of versions must save
_MOST_PAGES = 2  # of versions for each page of objects; beyond, most are of objects that were replaced
_TRIES = 3


class Listings:
    """Safe to share between threads."""

    def __init__(self, s3: Any, call: Caller, bucket: str, answers: StoreAnswers, *, page_size: int) -> None:
        self._s3 = s3
        self._call = call
        self._bucket = bucket
        self._answers = answers
        self._page_size = page_size
        self._refused = False  # the store does not list versions, or we may not
        self._agreed: bool | None = None  # whether both listings of a folder have been found to be the same
        self._disagreed = 0

    def pages(self, prefix: str, **more: str) -> Iterator[Page]:
        """What exists, by key."""
        pages = self.raw(prefix, **more)
        first = next(pages)
        yield from _sorted([first, *pages]) if _lists_as_tree(first) else itertools.chain([first], pages)

    def raw(self, prefix: str, **more: str) -> Iterator[Page]:
        """The same in the order of the store."""
        ask: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix, "MaxKeys": self._page_size, **more}
        while True:
            page = self._call(f"list {prefix}", lambda: self._checked(prefix, self._s3.list_objects_v2(**ask)))
            yield page
            if not page.get("IsTruncated"):
                return
            ask["ContinuationToken"] = page["NextContinuationToken"]

    def folder(self, prefix: str) -> Iterator[Page]:
        """One level, with versions where they come in one answer."""
        versions = self._versions_of_folder(prefix) if self._agreed is not False else None
        if versions is not None and self._agreed and not versions["CommonPrefixes"]:
            yield versions
            return
        pages = list(self.pages(prefix, Delimiter="/"))
        if versions is not None:
            self._compare(versions, pages)
            known = {o["Key"]: o for o in versions["Contents"]}
            pages = [page | {"Contents": _joined(page.get("Contents", ()), known)} for page in map(dict, pages)]
        yield from pages

    def with_versions(self, prefix: str, page: Page, unknown: int) -> Page:
        """A page of `pages` with the versions of its objects, as far as they cost less than a request for each.

        `unknown`: how many objects would have to be requested one by one.
        """
        contents = page.get("Contents", ())
        if unknown < _WORTH or self._refused:
            return page
        most = min(unknown - 1, _MOST_PAGES * -(-len(contents) // self._page_size))
        known: dict[str, Any] = {}
        for versions in itertools.islice(self._versions(prefix, before=contents[0]["Key"]), most):
            known |= {o["Key"]: o for o in versions["Contents"]}
            if versions["Last"] > contents[-1]["Key"]:
                break
        return dict(page) | {"Contents": _joined(contents, known)}

    def _versions_of_folder(self, prefix: str) -> dict[str, Any] | None:
        """A whole level in one answer; None if it takes more, as many were replaced."""
        page = next(self._versions(prefix, Delimiter="/"), None)
        return page if page is not None and not page["IsTruncated"] else None

    def _versions(self, prefix: str, before: str | None = None, **more: str) -> Iterator[dict[str, Any]]:
        """The newest versions of objects, in pages; none if the store refuses. `before`: a key to begin with."""
        arguments: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix, "MaxKeys": self._page_size, **more}
        if before is not None and len(before) > len(prefix):
            arguments["KeyMarker"] = before[:-1]
        while not self._refused:
            try:
                answer = self._call(
                    f"list versions {prefix}", lambda: self._checked(prefix, self._s3.list_object_versions(**arguments))
                )
            except CallRefused:
                self._refused, self._agreed = True, False
                return
            listed = [*answer.get("Versions", ()), *answer.get("DeleteMarkers", ())]
            yield {
                "Contents": [version for version in answer.get("Versions", ()) if version.get("IsLatest")],
                "CommonPrefixes": answer.get("CommonPrefixes", ()),
                "IsTruncated": answer.get("IsTruncated"),
                "Last": max((version["Key"] for version in listed), default=""),
            }
            if not answer.get("IsTruncated") or not answer.get("NextKeyMarker"):
                return
            arguments["KeyMarker"] = answer["NextKeyMarker"]
            arguments.pop("VersionIdMarker", None)
            if answer.get("NextVersionIdMarker"):
                arguments["VersionIdMarker"] = answer["NextVersionIdMarker"]

    def _compare(self, versions: Page, pages: list[Page]) -> None:
        """Whether both listings say the same; a change between the two may be why they do not."""
        there = {_fact(o) for page in pages for o in page.get("Contents", ())}
        if not there and not versions["Contents"]:
            return
        if there == {_fact(o) for o in versions["Contents"]}:
            self._agreed = True
            return
        self._disagreed += 1
        if self._disagreed >= _TRIES:
            self._agreed = False

    def _checked(self, prefix: str, page: dict[str, Any]) -> dict[str, Any]:
        self._answers.check_listing(prefix, page)
        return page


def _joined(contents: Any, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Listed objects with the versions of those that are the same in both listings."""
    return [
        o | {"VersionId": known[o["Key"]]["VersionId"]}
        if o["Key"] in known and "VersionId" in known[o["Key"]] and _fact(known[o["Key"]]) == _fact(o)
        else o
        for o in contents
    ]


def _fact(listed: Mapping[str, Any]) -> tuple[str, str, int]:
    return listed["Key"], etag_of(listed), int(listed["Size"])


def _lists_as_tree(page: Page) -> bool:
    """SeaweedFS lists folder by folder, so `a/x` comes before `a-b`; S3 lists by key."""
    return "SeaweedFS" in page.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("server", "")


def _sorted(pages: list[Page]) -> list[Page]:
    """The same listing as one page in key order; costs memory for every key."""
    objects = sorted((o for page in pages for o in page.get("Contents", ())), key=lambda o: str(o["Key"]))
    folders = sorted((p for page in pages for p in page.get("CommonPrefixes", ())), key=lambda p: str(p["Prefix"]))
    return [{"Contents": objects, "CommonPrefixes": folders}]
