"""Compares two results by their mapping, columns, rows, cells and findings, and says which changes break a reader.

All counts are exact; of what differs the first are listed. Breaking is what somebody who reads the left result may
stumble over in the right one: something is gone, or is something else. More of the same is not.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from runner.engine.comparing.cell_texts import kind_of
from runner.engine.comparing.result_sides import ResultFacts, ResultSide, SideRow, output_cell
from runner.engine.comparing.row_pairs import RowId, RowPair, RowPairs, rows_in_memory
from runner.engine.contract import BY_KEY, BY_SOURCE, Json
from runner.engine.protocol import BadOutput

COMPARISON_VERSION: Final = 1
LISTED: Final = 500  # cells, rows and findings of each kind that are listed
_SHOWN: Final = 200  # characters of a value
_FIRST: Final = 12  # values of a row that only one result has
_BEST_FIRST: Final = ("SUCCEEDED", "REVIEW")  # ends from the best to the worst; all others are failures

# What may differ, and whether it breaks somebody who reads the result.
BREAKING: Final = {
    "status_worse": True,
    "status_better": False,
    "columns_removed": True,
    "columns_moved": True,
    "types_changed": True,
    "columns_added": False,
    "sheets_changed": True,
    "mapping_changed": True,
    "mapping_added": False,
    "rows_removed": True,
    "rows_added": False,
    "values_changed": True,
    "values_blanked": True,
    "values_filled": False,
    "errors_added": True,
    "errors_removed": False,
    "warnings_changed": False,
    "infos_changed": False,
    "left_out_changed": False,
}


@dataclass
class Differences:
    """What differs so far."""

    by: str
    status: tuple[str, str] = ("", "")
    counts: Counter[str] = field(default_factory=Counter)  # of BREAKING
    columns: list[Json] = field(default_factory=list)
    mapping: list[Json] = field(default_factory=list)
    sheets: list[Json] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)  # left, right, same, changed, added, removed
    by_column: Counter[str] = field(default_factory=Counter)
    cells: list[Json] = field(default_factory=list)
    added: list[Json] = field(default_factory=list)
    removed: list[Json] = field(default_factory=list)
    findings: list[Json] = field(default_factory=list)
    finding_counts: list[Json] = field(default_factory=list)
    left_out: list[Json] = field(default_factory=list)

    def encode(self) -> Json:
        changes = [
            {"what": what, "count": self.counts[what], "breaking": breaking}
            for what, breaking in BREAKING.items()
            if self.counts[what]
        ]
        return {
            "comparison": COMPARISON_VERSION,
            "same": not changes,
            "breaking": any(one["breaking"] for one in changes),
            "by": self.by,
            "status": list(self.status),
            "changes": changes,
            "columns": self.columns,
            "mapping": self.mapping,
            "sheets": self.sheets,
            "rows": {name: self.rows[name] for name in ("left", "right", "same", "changed", "added", "removed")},
            "cells_by_column": dict(self.by_column),
            "cells": self.cells,
            "rows_added": self.added,
            "rows_removed": self.removed,
            "left_out": self.left_out,
            "findings": self.findings,
            "finding_counts": self.finding_counts,
        }


def compare(left: ResultSide, right: ResultSide, *, by: str, values: bool, spool: IO[bytes] | None) -> Json:
    """`by`: how rows are paired (empty: by key where both have one, else by source). `values`: show them."""
    theirs = right.facts.with_sheet_of(left.facts)
    paired, ids = _ids(left.facts, theirs, by)
    found = Differences(by=paired)
    compare_facts(left.facts, theirs, found)
    names = [name for name in left.facts.columns if name in theirs.columns]
    cells = _CellComparison(found, names, list(left.facts.columns), list(theirs.columns), values=values)
    most = rows_in_memory(max(len(left.facts.columns), len(theirs.columns)))
    pairs = RowPairs(ids, spool, waiting=most).pairs(left.rows(), right.rows())
    for pair in pairs:
        cells.add(pair)
    for listed in (found.cells, found.added, found.removed):
        listed.sort(key=_place)
    return found.encode()


def _place(one: Json) -> tuple[int, str]:
    """By the row of the output; rows of a spool come in another order."""
    place = str(one.get("row", ""))
    row = place.rpartition("!")[2]
    return (int(row) if row.isdecimal() else 0, place)


def _ids(left: ResultFacts, right: ResultFacts, by: str) -> tuple[str, tuple[RowId, RowId]]:
    """How rows are paired, in words, and the id of a row on each side."""
    keys = [name for name in left.unique if name in right.columns] if by != BY_SOURCE else []
    if keys:
        at = (list(left.columns).index(keys[0]), list(right.columns).index(keys[0]))
        return f"{BY_KEY} {keys[0]}", (_of_cell(at[0]), _of_cell(at[1]))
    if by == BY_KEY:
        raise BadOutput("the results share no field that the manifest calls unique; pair their rows by source")
    plain = left.only_sheet is not None and right.only_sheet is not None
    return BY_SOURCE, (_of_row, _of_row) if plain else (_of_source, _of_source)


def _of_cell(n: int) -> RowId:
    return lambda row: row.cells[n]


def _of_source(row: SideRow) -> str:
    return row.source or f"row {row.place}"


def _of_row(row: SideRow) -> str:
    """The row of the only sheet, whatever it is called: a text file's sheet is called like the file."""
    return row.source.rpartition("!")[2] or f"row {row.place}"


class _CellComparison:
    """Compares rows that belong together, cell by cell, over the columns that both results have."""

    def __init__(
        self, found: Differences, names: Sequence[str], left: Sequence[str], right: Sequence[str], *, values: bool
    ) -> None:
        self._found = found
        self._names = names
        self._at = [(left.index(name), right.index(name)) for name in names]
        self._plain = left == right
        self._values = values

    def add(self, pair: RowPair) -> None:
        found, left, right = self._found, pair.left, pair.right
        found.rows["left"] += left is not None
        found.rows["right"] += right is not None
        if left is None or right is None:
            self._alone(pair)
        elif self._plain and left.cells == right.cells:
            found.rows["same"] += 1
        else:
            self._cells(left, right)

    def _alone(self, pair: RowPair) -> None:
        found = self._found
        row, what, listed = (
            (pair.left, "removed", found.removed) if pair.left is not None else (pair.right, "added", found.added)
        )
        found.rows[what] += 1
        found.counts[f"rows_{what}"] += 1
        if row is not None and len(listed) < LISTED:
            listed.append(
                _where(row) | ({"values": [cut(text) for text in row.cells[:_FIRST]]} if self._values else {})
            )

    def _cells(self, left: SideRow, right: SideRow) -> None:
        found, differ = self._found, False
        for name, (mine, theirs) in zip(self._names, self._at, strict=True):
            before, after = left.cells[mine], right.cells[theirs]
            if before == after:
                continue
            differ = True
            found.by_column[name] += 1
            found.counts["values_filled" if not before else "values_changed" if after else "values_blanked"] += 1
            if len(found.cells) < LISTED:
                shown = (cut(before), cut(after)) if self._values else (kind_of(before), kind_of(after))
                place = {"cell": output_cell(theirs, right.place), "field": name}
                found.cells.append({**_where(right), **place, "left": shown[0], "right": shown[1]})
        found.rows["changed" if differ else "same"] += 1


def _where(row: SideRow) -> Json:
    return {"row": row.place, **({"source": row.source} if row.source else {})}


def cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def compare_facts(left: ResultFacts, right: ResultFacts, found: Differences) -> None:
    """Compare all but the rows; adds to `found`."""
    found.status = (left.status, right.status)
    if left.status != right.status:
        worse = _rank(right.status) >= _rank(left.status)
        found.counts["status_worse" if worse else "status_better"] += 1
    _compare_columns(left.columns, right.columns, found)
    _compare_mapping(left.tables, right.tables, found)
    _compare_findings(left, right, found)
    for name in _both(left.sheets, right.sheets):
        before, after = left.sheets.get(name), right.sheets.get(name)
        if before != after:
            found.counts["sheets_changed"] += 1
            found.sheets.append({"sheet": name, "left": before, "right": after})
    for kind in _both(left.left_out, right.left_out):
        rows = left.left_out.get(kind, 0), right.left_out.get(kind, 0)
        if rows[0] != rows[1]:
            found.counts["left_out_changed"] += 1
            found.left_out.append({"kind": kind, "left": rows[0], "right": rows[1]})


def _rank(status: str) -> int:
    """0 for the best end; the word before a space is the state, a verdict may follow."""
    state = status.partition(" ")[0]
    return _BEST_FIRST.index(state) if state in _BEST_FIRST else len(_BEST_FIRST)


def _both(left: Iterable[str], right: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*left, *right]))


def _compare_columns(left: dict[str, str], right: dict[str, str], found: Differences) -> None:
    shared = [name for name in left if name in right]
    moved = dict(zip(shared, (name for name in right if name in left), strict=True))
    for name in _both(left, right):
        before, after = left.get(name), right.get(name)
        if before is None or after is None:
            what = "columns_removed" if after is None else "columns_added"
        elif before != after:
            what = "types_changed"
        elif moved[name] != name:
            what = "columns_moved"
        else:
            continue
        found.counts[what] += 1
        found.columns.append({"column": name, "what": what, "left": before, "right": after})


def _compare_mapping(left: dict[str, dict[str, str]], right: dict[str, dict[str, str]], found: Differences) -> None:
    """Tables are compared by name, and what is left of them in their order: a longer file has a longer range."""
    rest = [name for name in right if name not in left]
    partners = {name: name if name in right else (rest.pop(0) if rest else None) for name in left}
    for table, partner in partners.items():
        mine, theirs = left[table], {} if partner is None else right[partner]
        for column in _both(mine, theirs):
            before, after = mine.get(column, ""), theirs.get(column, "")
            if before != after:
                found.counts["mapping_changed" if before else "mapping_added"] += 1
                found.mapping.append(
                    {"table": partner or table, "column": column, "left": before or None, "right": after or None}
                )
    for table in rest:
        fields = [name for name in right[table].values() if name]
        found.counts["mapping_added"] += 1
        found.mapping.append({"table": table, "column": None, "left": None, "right": ", ".join(fields) or None})


_PLURAL: Final = {"error": "errors", "warning": "warnings"}


def _compare_findings(left: ResultFacts, right: ResultFacts, found: Differences) -> None:
    before, after = Counter(left.findings), Counter(right.findings)
    for side, lines in (("left", before - after), ("right", after - before)):
        for line, count in lines.items():
            found.counts[_kind(line, is_new=side == "right")] += count
        found.findings += [{"only": side, "finding": line, "count": n} for line, n in list(lines.items())[:LISTED]]
    listed = {one.partition(" at ")[0] for one in (before - after) + (after - before)}
    for name in _both(left.counts, right.counts):
        counts = left.counts.get(name, 0), right.counts.get(name, 0)
        if counts[0] != counts[1]:
            found.finding_counts.append({"finding": name, "left": counts[0], "right": counts[1]})
            if name not in listed:  # only their numbers are known
                found.counts[_kind(name, is_new=counts[1] > counts[0])] += abs(counts[1] - counts[0])


def _kind(line: str, *, is_new: bool) -> str:
    severity = line.partition(" ")[0]
    if severity == "error":
        return "errors_added" if is_new else "errors_removed"
    return f"{_PLURAL.get(severity, 'infos')}_changed"
