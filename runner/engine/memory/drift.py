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
from typing import Any, Final, NamedTuple, cast

from runner.engine.common.blanks import blank_count
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
FEW_ROWS: Final = 20  # rows below which shares and counts say nothing
MAX_BLANK_CHANGE: Final = 0.2  # a blank share that differs by more is out of range
MAX_WRONG_GROWTH: Final = 0.1  # so is a share of values not of their type that grew by more
MAX_TIMES_ROWS: Final = 2.0  # so is a drop of more than so many times the rows, or fewer than one part in so many
_MOST_NAMED: Final = 5  # columns of one kind of change in a message
_CHUNKS_SEARCHED: Final = 8  # chunks of a table that are searched for kinds of values
_KIND_OF_TYPE: Final[dict[type, str]] = {
    str: "text", int: "number", float: "number", bool: "boolean", date: "date", datetime: "date", time: "time",
    timedelta: "time",
}  # fmt: skip
CHANGES: Final = ("new", "gone", "renamed", "moved", "remapped")


class Shares:
    """What the columns of one table hold, counted chunk by chunk."""

    def __init__(self, columns: int) -> None:
        """Count nothing yet, for a table of so many columns."""
        self.rows = 0
        self.blank = [0] * columns
        self.wrong = [0] * columns  # values that are not of their field's type
        self.kinds: list[set[str]] = [set() for _ in range(columns)]
        self._chunks = 0

    def add(self, columns: Sequence[list[Any]], count: int) -> None:
        """Count the values of a chunk of `count` rows, which is passed by column."""
        self.rows += count
        self._chunks += 1
        for index, blank in enumerate(self.blank):
            column = columns[index]
            self.blank[index] = blank + blank_count(column)
            if self._chunks <= _CHUNKS_SEARCHED:
                self.kinds[index] |= {_KIND_OF_TYPE[kind] for kind in set(map(type, column)) if kind in _KIND_OF_TYPE}


class ProfiledColumn:
    """A column as a profile has it."""

    __slots__ = ("at", "blank", "field", "header", "kinds", "rows", "wrong")

    def __init__(self, header: str, field: str | None, at: int) -> None:
        """Count nothing yet, for the column `at` this position in its table, from 1."""
        self.header = header
        self.field = field
        self.at = at
        self.kinds: set[str] = set()
        self.rows = self.blank = self.wrong = 0

    def as_dict(self) -> ProfileColumn:
        """Return the column as profile.json has it: of its counts, the shares."""
        rows = max(1, self.rows)
        return {
            "header": self.header,
            "field": self.field,
            "at": self.at,
            "types": sorted(self.kinds),
            "blank": round(self.blank / rows, 4),
            "wrong": round(self.wrong / max(1, self.rows - self.blank), 4),
        }


def make_profile(tables: Iterable[tuple[Sequence[tuple[str, str | None]], Shares | None]]) -> ProfileDocument:
    """Make the profile of a drop. Each table gives its columns (header, field) from left to right, and what they hold;
    columns of several tables with the same header and field are one."""
    columns: dict[tuple[str, int, str | None], ProfiledColumn] = {}
    rows = 0
    for headers_and_fields, shares in tables:
        rows += shares.rows if shares else 0
        before = Counter[str]()
        for index, (header, field) in enumerate(headers_and_fields):
            name = fold_header(header)
            key = (name, before[name], field)  # columns of one table that share a header are several
            before[name] += 1
            if key not in columns and len(columns) < MAX_COLUMNS:
                columns[key] = ProfiledColumn(shorten_header(header), field, index + 1)
            if shares is not None and key in columns:
                column = columns[key]
                column.rows += shares.rows
                column.blank += shares.blank[index]
                column.wrong += shares.wrong[index]
                column.kinds |= shares.kinds[index]
    return {"profile": VERSION, "rows": rows, "columns": [column.as_dict() for column in columns.values()]}


def shorten_header(header: str) -> str:
    """Shorten a header to what a profile has room for; two that differ only further on stay different."""
    if len(header) <= MAX_HEADER:
        return header
    from hashlib import sha256  # noqa: PLC0415  # takes milliseconds to load

    digest = sha256(fold_header(header).encode(errors="backslashreplace")).hexdigest()[:10]
    return f"{header[: MAX_HEADER - 12]}…~{digest}"


class EarlierProfile(NamedTuple):
    """A profile of an earlier drop of the same sender."""

    profile: ProfileDocument
    job: str | None  # whose it is
    order: tuple[float, float, str]  # stamp and creation of that job, and its name: the newest is the greatest


def read_profiles(body: bytes) -> list[EarlierProfile]:
    """Read the stored profiles of a sender, the newest first; an empty list where nothing can be read."""
    if len(body) > MAX_BYTES:
        return []
    lines = body.split(b"\n")[: 2 * MAX_KINDS + 1]
    profiles = []
    for index, line in enumerate(lines):
        before = lines[index - 1] if index else b""
        if not line.startswith(b'{"kept"') and (read := read_profile(line)) is not None:
            profiles.append(EarlierProfile(read, *_parse_head(before if before.startswith(b'{"kept"') else b"")))
    return sorted(profiles, key=lambda earlier: earlier.order, reverse=True)


class _ProfileHead(NamedTuple):
    """The line above a stored profile."""

    job: str | None
    order: tuple[float, float, str]  # sorts profiles, the oldest first


def _parse_head(line: bytes) -> _ProfileHead:
    """Read the job and the order from the line above a stored profile; no job and the oldest order if it cannot be
    read."""
    try:
        head = json.loads(line)
        stamp, created, name = head["order"]
        job = head.get("job_id")
        order = (float(stamp), float(created), str(name))
        return _ProfileHead(job if isinstance(job, str) and len(job) <= MAX_HEADER else None, order)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return _ProfileHead(None, (0.0, 0.0, ""))


class ChosenProfile(NamedTuple):
    """The profile to compare a drop with."""

    earlier: EarlierProfile
    is_same_kind: bool  # of file


def choose_likest(profiles: Sequence[EarlierProfile], now: ProfileDocument) -> ChosenProfile | None:
    """Choose the profile to compare a drop with; None without profiles.

    The one that has most columns in common; of several the newest, and where all differ widely the newest of all.
    """
    if not profiles:
        return None
    shares = [likeness(earlier.profile, now) for earlier in profiles]
    best = max(shares)
    if best >= SAME_KIND:
        return ChosenProfile(profiles[shares.index(best)], is_same_kind=True)
    return ChosenProfile(profiles[0], is_same_kind=False)


def likeness(before: ProfileDocument, now: ProfileDocument) -> float:
    """Return the share of columns that two profiles have in common, by header or by field: 0 to 1."""
    columns = _pair_columns(before, now)
    common = len(columns.both) + len(columns.renamed)
    return common / max(1, common + len(columns.gone) + len(columns.fresh))


def layout_digest(profiled: ProfileDocument) -> str:
    """Make a digest of a profile's columns: equal for drops that differ only in their values."""
    columns = sorted([fold_header(column["header"]), column["field"] or ""] for column in profiled["columns"])
    from hashlib import sha256  # noqa: PLC0415  # takes milliseconds to load

    return sha256(json.dumps(columns).encode(errors="backslashreplace")).hexdigest()[:16]


def read_profile(body: bytes) -> ProfileDocument | None:
    """Read a stored profile; None for anything else: it comes back from a bucket, so nothing about it is certain."""
    if len(body) > MAX_BYTES:
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("profile") != VERSION or not _is_count(document.get("rows")):
        return None
    columns = document.get("columns")
    if not isinstance(columns, list) or len(columns) > MAX_COLUMNS or not all(map(_is_column, columns)):
        return None
    return cast("ProfileDocument", document)


def compare_columns(before: ProfileDocument, now: ProfileDocument) -> ColumnChanges:
    """Compare the columns of two drops: which are new, gone, renamed, moved, and mapped to another field."""
    columns = _pair_columns(before, now)
    renamed: list[DriftedColumn] = [
        {"from": old["header"], "to": new["header"], "field": old["field"]} for old, new in columns.renamed
    ]
    remapped: list[DriftedColumn] = [
        {"header": new["header"], "from": old["field"], "to": new["field"]}
        for old, new in columns.both
        if old["field"] != new["field"]
    ]
    order = {id(column): place for place, column in enumerate(before["columns"])}
    unmoved = _find_unmoved([order[id(old)] for old, _ in columns.both])
    moved: list[DriftedColumn] = [
        {"header": new["header"], "from": old["at"], "to": new["at"]}
        for index, (old, new) in enumerate(columns.both)
        if index not in unmoved and old["at"] != new["at"]
    ]
    return {
        "new": list(map(_header_and_field, columns.fresh[:MAX_LISTED])),
        "gone": list(map(_header_and_field, columns.gone[:MAX_LISTED])),
        "renamed": renamed[:MAX_LISTED],
        "moved": moved[:MAX_LISTED],
        "remapped": remapped[:MAX_LISTED],
    }


def _header_and_field(column: ProfileColumn) -> DriftedColumn:
    """Return a column as a list of new or gone ones names it."""
    return {"header": column["header"], "field": column["field"]}


def compare_columns_values(before: ProfileDocument, now: ProfileDocument) -> list[ValuesChange]:
    """List columns whose kinds of values, blank share or share of values of a wrong type are out of range; none if a
    drop has too few rows."""
    if min(before["rows"], now["rows"]) < FEW_ROWS:
        return []
    changes = []
    columns = _pair_columns(before, now)
    for old, new in (*columns.both, *columns.renamed):
        if new["types"] and old["types"] and not set(new["types"]) <= set(old["types"]):
            changes.append(_value_change(new, "types", old["types"], new["types"]))
        if abs(new["blank"] - old["blank"]) > MAX_BLANK_CHANGE:
            changes.append(_value_change(new, "blank", old["blank"], new["blank"]))
        if new["wrong"] - old["wrong"] > MAX_WRONG_GROWTH:
            changes.append(_value_change(new, "wrong", old["wrong"], new["wrong"]))
    return changes[:MAX_LISTED]


def _value_change(column: ProfileColumn, what: str, before: float | list[str], now: float | list[str]) -> ValuesChange:
    """Make the entry of artifact.json for a column of which something is out of range."""
    return {
        "header": column["header"],
        "field": column["field"],
        "what": what,
        "before": before,
        "now": now,
    }


def differs(columns: ColumnChanges | None) -> bool:
    """Whether there is any change of columns."""
    return columns is not None and any(columns.values())


def compare_rows(before: ProfileDocument, now: ProfileDocument) -> RowsChange:
    """Compare the numbers of rows, and say whether the new one is out of range; it never is if both are small."""
    old, new = before["rows"], now["rows"]
    is_out_of_range = max(old, new) >= FEW_ROWS and (new > old * MAX_TIMES_ROWS or new * MAX_TIMES_ROWS < old)
    return {"before": old, "now": new, "out_of_range": is_out_of_range}


def describe_changes(columns: ColumnChanges) -> str:
    """Describe the changes of columns in one line, for findings and messages."""
    parts = []
    for kind in CHANGES:
        if changed := columns.get(kind):
            listed = [
                f"{column['from']} → {column['to']}" if kind == "renamed" else str(column["header"])
                for column in changed[:_MOST_NAMED]
            ]
            more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
            parts.append(f"{kind}: {', '.join(listed)}{more}")
    return "; ".join(parts)


def fold_header(header: str) -> str:
    """Fold case and blanks of a header."""
    return " ".join(header.casefold().split())


class _PairedColumns(NamedTuple):
    """The columns of two profiles. A pair has the earlier one first."""

    both: list[tuple[ProfileColumn, ProfileColumn]]  # with one header, in the order of the later profile
    renamed: list[tuple[ProfileColumn, ProfileColumn]]  # with one field and different headers
    gone: list[ProfileColumn]
    fresh: list[ProfileColumn]


def _pair_columns(before: ProfileDocument, now: ProfileDocument) -> _PairedColumns:
    """Pair the columns by header, then by field.

    Of several with one header those with the same field are pairs, then the others from left to right.
    """
    by_header: dict[str, list[ProfileColumn]] = {}
    for column in before["columns"]:
        by_header.setdefault(fold_header(column["header"]), []).append(column)
    earlier: dict[int, ProfileColumn] = {}  # by the index of the later column
    for same_field in (True, False):
        for index, column in enumerate(now["columns"]):
            unpaired = by_header.get(fold_header(column["header"]), [])
            match = next((old for old in unpaired if not same_field or old["field"] == column["field"]), None)
            if index not in earlier and match is not None:
                earlier[index] = match
                unpaired.remove(match)
    both = [(earlier[index], column) for index, column in enumerate(now["columns"]) if index in earlier]
    fresh = [column for index, column in enumerate(now["columns"]) if index not in earlier]
    gone = _without(before["columns"], earlier.values())
    renamed = _pair_by_field(gone, fresh)
    return _PairedColumns(
        both, renamed, _without(gone, [old for old, _ in renamed]), _without(fresh, [new for _, new in renamed])
    )


def _pair_by_field(
    gone: Sequence[ProfileColumn], fresh: Sequence[ProfileColumn]
) -> list[tuple[ProfileColumn, ProfileColumn]]:
    """Pair gone and new columns that are the same field, from left to right."""
    by_field: dict[str | None, list[ProfileColumn]] = {}
    for column in reversed(fresh):
        by_field.setdefault(column["field"], []).append(column)
    return [
        (old, by_field[old["field"]].pop()) for old in gone if old["field"] is not None and by_field.get(old["field"])
    ]


def _without(columns: Iterable[ProfileColumn], others: Iterable[ProfileColumn]) -> list[ProfileColumn]:
    """Return the columns that are not among the others; two that are equal are still two."""
    identities = set(map(id, others))
    return [column for column in columns if id(column) not in identities]


def _find_unmoved(places: Sequence[int]) -> set[int]:
    """Return the indexes of a longest ascending run of places: the columns that have not moved past the others."""
    ends: list[int] = []  # the smallest place that a run of each length ends with
    index_of_end: list[int] = []
    before: list[int] = []  # for each index the one before it in its run
    for index, place in enumerate(places):
        length = bisect_left(ends, place)
        before.append(index_of_end[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            index_of_end.append(index)
        else:
            ends[length], index_of_end[length] = place, index
    unmoved: set[int] = set()
    index = index_of_end[-1] if index_of_end else -1
    while index >= 0:
        unmoved.add(index)
        index = before[index]
    return unmoved


def _is_count(value: object) -> bool:
    """Whether a value is a whole number that JSON keeps exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_column(value: object) -> bool:
    """Whether a value is a column of a profile."""
    if not isinstance(value, dict):
        return False
    header, field, types = value.get("header"), value.get("field"), value.get("types")
    return (
        isinstance(header, str)
        and len(header) <= MAX_HEADER
        and (field is None or (isinstance(field, str) and len(field) <= MAX_HEADER))
        and _is_count(value.get("at"))
        and isinstance(types, list)
        and all(isinstance(type_name, str) for type_name in types)
        and set(types) <= set(_KIND_OF_TYPE.values())
        and _is_share(value.get("blank"))
        and _is_share(value.get("wrong"))
    )
