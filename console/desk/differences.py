"""The differences of two results in words: for `ade test`, `ade diff` and whoever reports a comparison."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Comparison = Mapping[str, Any]  # as runner/comparisons.py returns it; docs/reference/commands.md has its keys

_WORDS = {
    "status_worse": ("the job ends worse", "the job ends worse"),
    "status_better": ("the job ends better", "the job ends better"),
    "columns_removed": ("column removed", "columns removed"),
    "columns_moved": ("column moved", "columns moved"),
    "types_changed": ("column of another type", "columns of another type"),
    "columns_added": ("column added", "columns added"),
    "sheets_changed": ("further sheet changed", "further sheets changed"),
    "mapping_changed": ("column mapped otherwise", "columns mapped otherwise"),
    "mapping_added": ("column mapped in addition", "columns mapped in addition"),
    "rows_removed": ("row removed", "rows removed"),
    "rows_added": ("row added", "rows added"),
    "values_changed": ("value changed", "values changed"),
    "values_blanked": ("value blanked", "values blanked"),
    "values_filled": ("blank filled", "blanks filled"),
    "errors_added": ("error added", "errors added"),
    "errors_removed": ("error removed", "errors removed"),
    "warnings_changed": ("warning added or removed", "warnings added or removed"),
    "infos_changed": ("note added or removed", "notes added or removed"),
    "left_out_changed": ("other number of rows left out", "other numbers of rows left out"),
}


class Sides(NamedTuple):
    """What the two results are called."""

    first: str
    second: str


def summary(comparison: Comparison) -> list[tuple[str, bool]]:
    """Each kind of change in words, and whether it breaks readers of the left result; breaking ones first."""
    changes = sorted(comparison["changes"], key=lambda one: not one["breaking"])
    return [(_words_of(one["what"], one["count"]), bool(one["breaking"])) for one in changes]


def _words_of(what: str, count: int) -> str:
    one, several = _WORDS.get(what, (what, what))
    return one if what.startswith("status") else f"{count:,} {one if count == 1 else several}"


def lines(comparison: Comparison, sides: Sides, most: int) -> list[str]:
    """What differs, one line each, at most so many of each kind."""
    first, second = sides
    parts: Sequence[tuple[str, Iterator[str], int]] = (
        ("", _statuses(comparison, sides), 1),
        ("columns", _columns(comparison, sides), len(comparison["columns"])),
        ("mappings", _mappings(comparison, sides), len(comparison["mapping"])),
        ("cells", _cells(comparison, sides), sum(comparison["cells_by_column"].values())),
        ("rows", _rows(comparison["rows_removed"], f"only {first}"), comparison["rows"]["removed"]),
        ("rows", _rows(comparison["rows_added"], f"only {second}"), comparison["rows"]["added"]),
        ("sheets", _sheets(comparison, sides), len(comparison["sheets"])),
        ("kinds", _left_out(comparison, sides), len(comparison["left_out"])),
        ("findings", _findings(comparison, sides), len(comparison["findings"])),
        ("findings", _finding_counts(comparison, sides), len(comparison["finding_counts"])),
    )
    listing: list[str] = []
    for noun, texts, total in parts:
        some = [text for _, text in zip(range(most), texts, strict=False)]
        listing += some
        if total > len(some) and some:
            listing.append(f"… and {total - len(some):,} more {noun}")
    return listing


def _statuses(comparison: Comparison, sides: Sides) -> Iterator[str]:
    before, after = comparison["status"]
    if before != after:
        yield f"end: {sides.first} {before}, {sides.second} {after}"


def _columns(comparison: Comparison, sides: Sides) -> Iterator[str]:
    for one in comparison["columns"]:
        what = one["what"]
        if what == "columns_moved":
            yield f"column {one['column']}: is at another place"
        elif what == "types_changed":
            yield f"column {one['column']}: {sides.first} {one['left']}, {sides.second} {one['right']}"
        else:
            yield f"column {one['column']}: only {sides.first if what == 'columns_removed' else sides.second}"


def _mappings(comparison: Comparison, sides: Sides) -> Iterator[str]:
    for one in comparison["mapping"]:
        column = f", column {one['column']}" if one["column"] else ""
        before, after = one["left"] or "no field", one["right"] or "no field"
        yield f"mapping of {one['table']}{column}: {sides.first} {before}, {sides.second} {after}"


def _cells(comparison: Comparison, sides: Sides) -> Iterator[str]:
    for one in comparison["cells"]:
        before, after = one["left"] or "a blank", one["right"] or "a blank"
        yield f"{one['cell']}{_from(one)} {one['field']}: {sides.first} {before}, {sides.second} {after}"


def _from(one: Mapping[str, Any]) -> str:
    return f" (from {one['source']})" if one.get("source") else ""


def _rows(rows: Sequence[Mapping[str, Any]], where: str) -> Iterator[str]:
    for one in rows:
        values = f": {', '.join(one['values'])}" if "values" in one else ""
        yield f"row {one['row']}{_from(one)} {where}{values}"


def _sheets(comparison: Comparison, sides: Sides) -> Iterator[str]:
    for one in comparison["sheets"]:
        yield f"sheet {one['sheet']}: {sides.first} {one['left'] or 'none'}, {sides.second} {one['right'] or 'none'}"


def _left_out(comparison: Comparison, sides: Sides) -> Iterator[str]:
    for one in comparison["left_out"]:
        kind = one["kind"].replace("_", " ")
        yield f"rows left out, {kind}: {sides.first} {one['left']}, {sides.second} {one['right']}"


def _findings(comparison: Comparison, sides: Sides) -> Iterator[str]:
    for one in comparison["findings"]:
        times = f" ({one['count']} times)" if one["count"] > 1 else ""
        yield f"only {sides.first if one['only'] == 'left' else sides.second}: {one['finding']}{times}"


def _finding_counts(comparison: Comparison, sides: Sides) -> Iterator[str]:
    listed = {one["finding"].partition(" at ")[0] for one in comparison["findings"]}
    for one in comparison["finding_counts"]:
        if one["finding"] not in listed:
            yield f"{one['finding']}: {sides.first} {one['left']:,}, {sides.second} {one['right']:,}"
