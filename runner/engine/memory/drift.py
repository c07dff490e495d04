"""Drift: what a drop looks like, and how it differs from the sender's last one.

A profile holds headers, fields, positions, kinds of values, shares and counts; never a value. It is kept in the bucket
for each sender (an inbox folder of a workflow) and compared with the next drop's. A sender may drop several kinds of
files into one folder, so the last profile of each kind is kept, and a drop is compared with the one that is most like
it. Pure functions, but for `Shares`, which counts while rows stream by.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast

from runner.engine.document_types import (
    ColumnChanges,
    DriftedColumn,
    ProfileColumn,
    ProfileDocument,
    RowsChange,
    ValuesChange,
)

VERSION: Final = 1
MAX_BYTES: Final = 1024 * 1024
MAX_COLUMNS: Final = 1_000  # of a profile; wider drops are compared by their first columns
MAX_LISTED: Final = 200  # columns of one kind of change that are named
MAX_HEADER: Final = 200
MAX_KINDS: Final = 8  # profiles of one sender that are read
SAME_KIND: Final = 0.5  # the share of columns that drops of one kind have in common
FEW: Final = 20  # rows below which shares and counts say nothing
BLANK: Final = 0.2  # a blank share that differs by more is out of range
WRONG: Final = 0.1  # so is a share of values not of their type that grew by more
TIMES: Final = 2.0  # so is a drop of more than so many times the rows, or fewer than one part in so many
_TYPED: Final = 8  # chunks of a table that are searched for kinds of values
_KINDS: Final[dict[type, str]] = {
    str: "text", int: "number", float: "number", bool: "boolean", date: "date", datetime: "date", time: "time",
    timedelta: "time",
}  # fmt: skip
CHANGES: Final = ("new", "gone", "renamed", "moved", "remapped")


class Shares:
    """What the columns of one table hold, counted chunk by chunk."""

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self.blank = [0] * columns
        self.wrong = [0] * columns  # values that are not of their field's type
        self.kinds: list[set[str]] = [set() for _ in range(columns)]
        self._chunks = 0

    def add(self, columns: Sequence[list[Any]], count: int) -> None:
        self.rows += count
        self._chunks += 1
        for n, blank in enumerate(self.blank):
            column = columns[n]
            self.blank[n] = blank + column.count(None)
            if self._chunks <= _TYPED:
                self.kinds[n] |= {_KINDS[kind] for kind in set(map(type, column)) if kind in _KINDS}


class ProfiledColumn:
    """A column as a profile has it."""

    __slots__ = ("at", "blank", "field", "header", "kinds", "rows", "wrong")

    def __init__(self, header: str, field: str | None, at: int) -> None:
        self.header = header
        self.field = field
        self.at = at
        self.kinds: set[str] = set()
        self.rows = self.blank = self.wrong = 0

    def as_dict(self) -> ProfileColumn:
        rows = max(1, self.rows)
        return {
            "header": self.header,
            "field": self.field,
            "at": self.at,
            "types": sorted(self.kinds),
            "blank": round(self.blank / rows, 4),
            "wrong": round(self.wrong / max(1, self.rows - self.blank), 4),
        }


def profile(tables: Iterable[tuple[Sequence[tuple[str, str | None]], Shares | None]]) -> ProfileDocument:
    """The profile of a drop. Each table gives its columns (header, field) from left to right, and what they hold."""
    columns: dict[tuple[str, int, str | None], ProfiledColumn] = {}
    rows = 0
    for named, shares in tables:
        rows += shares.rows if shares else 0
        before = Counter[str]()
        for n, (header, field) in enumerate(named):
            name = folded(header)
            key = (name, before[name], field)  # columns of one table that share a header are several
            before[name] += 1
            if key not in columns and len(columns) < MAX_COLUMNS:
                columns[key] = ProfiledColumn(shortened(header), field, n + 1)
            if shares is not None and key in columns:
                column = columns[key]
                column.rows += shares.rows
                column.blank += shares.blank[n]
                column.wrong += shares.wrong[n]
                column.kinds |= shares.kinds[n]
    return {"profile": VERSION, "rows": rows, "columns": [c.as_dict() for c in columns.values()]}


def shortened(header: str) -> str:
    """A header that a profile has room for; two that differ only further on stay different."""
    if len(header) <= MAX_HEADER:
        return header
    digest = sha256(folded(header).encode(errors="backslashreplace")).hexdigest()[:10]
    return f"{header[: MAX_HEADER - 12]}…~{digest}"


class EarlierProfile(NamedTuple):
    profile: ProfileDocument
    job: str | None  # whose it is
    order: tuple[float, float, str]


def read_profiles(body: bytes) -> list[EarlierProfile]:
    """The kept profiles of a sender, the newest first; none where nothing can be read."""
    if len(body) > MAX_BYTES:
        return []
    lines = body.split(b"\n")[: 2 * MAX_KINDS + 1]
    found = []
    for n, line in enumerate(lines):
        before = lines[n - 1] if n else b""
        if not line.startswith(b'{"kept"') and (one := read_profile(line)) is not None:
            found.append(EarlierProfile(one, *_head(before if before.startswith(b'{"kept"') else b"")))
    return sorted(found, key=lambda profiles: profiles.order, reverse=True)


def _head(line: bytes) -> tuple[str | None, tuple[float, float, str]]:
    """The job and the order in the line above a kept profile."""
    try:
        head = json.loads(line)
        stamp, created, name = head["order"]
        job = head.get("job_id")
        return job if isinstance(job, str) and len(job) <= MAX_HEADER else None, (
            float(stamp),
            float(created),
            str(name),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None, (0.0, 0.0, "")


def most_like(profiles: Sequence[EarlierProfile], now: ProfileDocument) -> tuple[EarlierProfile, bool] | None:
    """The profile to compare a drop with, and whether it is one of the same kind of file; None if there is none.

    The one that has most columns in common; of several the newest, and where all differ widely the newest of all.
    """
    if not profiles:
        return None
    shares = [likeness(one.profile, now) for one in profiles]
    best = max(shares)
    return (profiles[shares.index(best)], True) if best >= SAME_KIND else (profiles[0], False)


def likeness(before: ProfileDocument, now: ProfileDocument) -> float:
    """The share of columns that two profiles have in common, by header or by field."""
    both, gone, fresh = _paired(before, now)
    common = len(both) + len(_remove_renamed(gone, fresh))
    return common / max(1, common + len(gone) + len(fresh))


def layout(profiled: ProfileDocument) -> str:
    """A digest of a profile's columns: equal for drops that differ only in their values."""
    named = sorted([folded(c["header"]), c["field"] or ""] for c in profiled["columns"])
    return sha256(json.dumps(named).encode(errors="backslashreplace")).hexdigest()[:16]


def read_profile(body: bytes) -> ProfileDocument | None:
    """A kept profile; None for anything else: it is read back from a bucket, so nothing about it is certain."""
    if len(body) > MAX_BYTES:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("profile") != VERSION or not _is_count(found.get("rows")):
        return None
    columns = found.get("columns")
    if not isinstance(columns, list) or len(columns) > MAX_COLUMNS or not all(map(_is_column, columns)):
        return None
    return cast("ProfileDocument", found)


def columns_drift(before: ProfileDocument, now: ProfileDocument) -> ColumnChanges:
    """How the columns differ: new, gone, renamed, moved, and mapped to another field."""
    both, gone, fresh = _paired(before, now)
    renamed: list[DriftedColumn] = [
        {"from": old["header"], "to": new["header"], "field": old["field"]} for old, new in _remove_renamed(gone, fresh)
    ]
    remapped: list[DriftedColumn] = [
        {"header": new["header"], "from": old["field"], "to": new["field"]}
        for old, new in both
        if old["field"] != new["field"]
    ]
    order = {id(column): n for n, column in enumerate(before["columns"])}
    unmoved = _in_order([order[id(old)] for old, _ in both])
    moved: list[DriftedColumn] = [
        {"header": new["header"], "from": old["at"], "to": new["at"]}
        for n, (old, new) in enumerate(both)
        if n not in unmoved and old["at"] != new["at"]
    ]
    return {
        "new": list(map(_named, fresh[:MAX_LISTED])),
        "gone": list(map(_named, gone[:MAX_LISTED])),
        "renamed": renamed[:MAX_LISTED],
        "moved": moved[:MAX_LISTED],
        "remapped": remapped[:MAX_LISTED],
    }


def _named(column: ProfileColumn) -> DriftedColumn:
    return {"header": column["header"], "field": column["field"]}


def values_drift(before: ProfileDocument, now: ProfileDocument) -> list[ValuesChange]:
    """Columns whose kinds of values, blank share or share of values of a wrong type are out of range."""
    if min(before["rows"], now["rows"]) < FEW:
        return []
    found = []
    both, gone, fresh = _paired(before, now)
    for other, column in (*both, *_remove_renamed(gone, fresh)):
        if column["types"] and other["types"] and not set(column["types"]) <= set(other["types"]):
            found.append(_change(column, "types", other["types"], column["types"]))
        if abs(column["blank"] - other["blank"]) > BLANK:
            found.append(_change(column, "blank", other["blank"], column["blank"]))
        if column["wrong"] - other["wrong"] > WRONG:
            found.append(_change(column, "wrong", other["wrong"], column["wrong"]))
    return found[:MAX_LISTED]


def _change(column: ProfileColumn, what: str, before: float | list[str], now: float | list[str]) -> ValuesChange:
    return {"header": column["header"], "field": column["field"], "what": what, "before": before, "now": now}


def differs(columns: ColumnChanges | None) -> bool:
    """Whether there is any change of columns."""
    return columns is not None and any(columns.values())


def rows_drift(before: ProfileDocument, now: ProfileDocument) -> RowsChange:
    """Rows before and now, and whether that is out of range."""
    old, new = before["rows"], now["rows"]
    out = max(old, new) >= FEW and (new > old * TIMES or new * TIMES < old)
    return {"before": old, "now": new, "out_of_range": out}


def words(columns: ColumnChanges) -> str:
    """The changes of columns in one line, for findings and messages."""
    parts = []
    for kind in CHANGES:
        if found := columns.get(kind):
            named = [f"{c['from']} → {c['to']}" if kind == "renamed" else str(c["header"]) for c in found[:5]]
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            parts.append(f"{kind}: {', '.join(named)}{more}")
    return "; ".join(parts)


def folded(header: str) -> str:
    return " ".join(header.casefold().split())


_Column = ProfileColumn


def _paired(
    before: ProfileDocument, now: ProfileDocument
) -> tuple[list[tuple[_Column, _Column]], list[_Column], list[_Column]]:
    """The columns that both have (in the order of the second), those that are gone, and those that are new.

    Of several with one header those with the same field are pairs, then the others from left to right.
    """
    old: dict[str, list[_Column]] = {}
    for column in before["columns"]:
        old.setdefault(folded(column["header"]), []).append(column)
    pairs: dict[int, _Column] = {}
    for alike in (True, False):
        for n, column in enumerate(now["columns"]):
            left = old.get(folded(column["header"]), [])
            match = next((c for c in left if not alike or c["field"] == column["field"]), None)
            if n not in pairs and match is not None:
                pairs[n] = match
                left.remove(match)
    both = [(pairs[n], column) for n, column in enumerate(now["columns"]) if n in pairs]
    fresh = [column for n, column in enumerate(now["columns"]) if n not in pairs]
    matched = {id(c) for c in pairs.values()}
    return both, [c for c in before["columns"] if id(c) not in matched], fresh


def _remove_renamed(gone: list[_Column], fresh: list[_Column]) -> list[tuple[_Column, _Column]]:
    """Take the columns with another header for the same field out of those that are gone and new."""
    left: dict[str | None, list[_Column]] = {}
    for column in reversed(fresh):
        left.setdefault(column["field"], []).append(column)
    renamed = [(c, left[c["field"]].pop()) for c in gone if c["field"] is not None and left.get(c["field"])]
    matched = {id(column) for pair in renamed for column in pair}
    for columns in (gone, fresh):
        columns[:] = [column for column in columns if id(column) not in matched]
    return renamed


def _in_order(places: Sequence[int]) -> set[int]:
    """The indexes of a longest ascending run of places: the columns that have not moved past the others."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for n, place in enumerate(places):
        k = bisect_left(ends, place)
        before.append(at[k - 1] if k else -1)
        if k == len(ends):
            ends.append(place)
            at.append(n)
        else:
            ends[k], at[k] = place, n
    unmoved: set[int] = set()
    n = at[-1] if at else -1
    while n >= 0:
        unmoved.add(n)
        n = before[n]
    return unmoved


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_column(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    header, field, types = value.get("header"), value.get("field"), value.get("types")
    return (
        isinstance(header, str)
        and len(header) <= MAX_HEADER
        and (field is None or (isinstance(field, str) and len(field) <= MAX_HEADER))
        and _is_count(value.get("at"))
        and isinstance(types, list)
        and all(isinstance(one, str) for one in types)
        and set(types) <= set(_KINDS.values())
        and _is_share(value.get("blank"))
        and _is_share(value.get("wrong"))
    )
