"""Drift: what a drop looks like, and how it differs from the sender's last one.

A profile holds headers, fields, positions, kinds of values, shares and counts; never a value. It is kept in the bucket
for each sender (an inbox folder of a workflow) and compared with the next drop's. Pure functions, but for `Shares`,
which counts while rows stream by.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final

VERSION: Final = 1
MAX_BYTES: Final = 1024 * 1024
MAX_COLUMNS: Final = 1_000  # of a profile; wider drops are compared by their first columns
MAX_LISTED: Final = 200  # columns of one kind of change that are named
MAX_HEADER: Final = 200
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

    def as_dict(self) -> dict[str, Any]:
        rows = max(1, self.rows)
        return {
            "header": self.header,
            "field": self.field,
            "at": self.at,
            "types": sorted(self.kinds),
            "blank": round(self.blank / rows, 4),
            "wrong": round(self.wrong / max(1, self.rows - self.blank), 4),
        }


def profile(tables: Iterable[tuple[Sequence[tuple[str, str | None]], Shares | None]]) -> dict[str, Any]:
    """The profile of a drop. Each table gives its columns (header, field) from left to right, and what they hold."""
    columns: dict[tuple[str, str | None], ProfiledColumn] = {}
    rows = 0
    for named, shares in tables:
        rows += shares.rows if shares else 0
        for n, (header, field) in enumerate(named):
            key = (folded(header), field)
            if key not in columns and len(columns) < MAX_COLUMNS:
                columns[key] = ProfiledColumn(header[:MAX_HEADER], field, n + 1)
            if shares is not None and key in columns:
                column = columns[key]
                column.rows += shares.rows
                column.blank += shares.blank[n]
                column.wrong += shares.wrong[n]
                column.kinds |= shares.kinds[n]
    return {"profile": VERSION, "rows": rows, "columns": [c.as_dict() for c in columns.values()]}


def read_profile(body: bytes) -> dict[str, Any] | None:
    """A kept profile; None for anything else: it is read back from a bucket, so nothing about it is certain."""
    if len(body) > MAX_BYTES:
        return None
    try:
        found = json.loads(body.split(b"\n", 1)[-1] if body.startswith(b'{"kept"') else body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("profile") != VERSION or not _is_count(found.get("rows")):
        return None
    columns = found.get("columns")
    if not isinstance(columns, list) or len(columns) > MAX_COLUMNS or not all(map(_is_column, columns)):
        return None
    return found


def columns_drift(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """How the columns differ: new, gone, renamed, moved, and mapped to another field."""
    old, new = _by_header(before), _by_header(now)
    gone = [c for name, c in old.items() if name not in new]
    fresh = [c for name, c in new.items() if name not in old]
    renamed = []
    for column in list(gone):
        other = next((c for c in fresh if c["field"] is not None and c["field"] == column["field"]), None)
        if other is not None:
            renamed.append({"from": column["header"], "to": other["header"], "field": column["field"]})
            gone.remove(column)
            fresh.remove(other)
    both = [name for name in new if name in old]
    remapped = [
        {"header": new[n]["header"], "from": old[n]["field"], "to": new[n]["field"]}
        for n in both
        if old[n]["field"] != new[n]["field"]
    ]
    order = {name: n for n, name in enumerate(old)}
    kept = _in_order([order[name] for name in both])
    moved = [
        {"header": new[name]["header"], "from": old[name]["at"], "to": new[name]["at"]}
        for n, name in enumerate(both)
        if n not in kept and old[name]["at"] != new[name]["at"]
    ]
    return {
        "new": [{"header": c["header"], "field": c["field"]} for c in fresh][:MAX_LISTED],
        "gone": [{"header": c["header"], "field": c["field"]} for c in gone][:MAX_LISTED],
        "renamed": renamed[:MAX_LISTED],
        "moved": moved[:MAX_LISTED],
        "remapped": remapped[:MAX_LISTED],
    }


def values_drift(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns whose kinds of values, blank share or share of values of a wrong type are out of range."""
    if min(before["rows"], now["rows"]) < FEW:
        return []
    old, found = _by_header(before), []
    for name, column in _by_header(now).items():
        other = old.get(name)
        if other is None:
            continue
        said = {"header": column["header"], "field": column["field"]}
        if column["types"] and other["types"] and not set(column["types"]) <= set(other["types"]):
            found.append({**said, "what": "types", "before": other["types"], "now": column["types"]})
        if abs(column["blank"] - other["blank"]) > BLANK:
            found.append({**said, "what": "blank", "before": other["blank"], "now": column["blank"]})
        if column["wrong"] - other["wrong"] > WRONG:
            found.append({**said, "what": "wrong", "before": other["wrong"], "now": column["wrong"]})
    return found[:MAX_LISTED]


def rows_drift(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Rows before and now, and whether that is out of range."""
    old, new = before["rows"], now["rows"]
    out = max(old, new) >= FEW and (new > old * TIMES or new * TIMES < old)
    return {"before": old, "now": new, "out_of_range": out}


def words(columns: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The changes of columns in one line, for findings and messages."""
    said = []
    for kind in CHANGES:
        if found := columns.get(kind):
            named = [f"{c['from']} → {c['to']}" if kind == "renamed" else str(c["header"]) for c in found[:5]]
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            said.append(f"{kind}: {', '.join(named)}{more}")
    return "; ".join(said)


def folded(header: str) -> str:
    return " ".join(header.casefold().split())


def _by_header(profiled: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Columns by header; of two with one header the mapped one."""
    found: dict[str, Mapping[str, Any]] = {}
    for column in profiled["columns"]:
        name = folded(column["header"])
        if name not in found or (found[name]["field"] is None and column["field"] is not None):
            found[name] = column
    return found


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
    kept: set[int] = set()
    n = at[-1] if at else -1
    while n >= 0:
        kept.add(n)
        n = before[n]
    return kept


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
