"""Compares two results by their mapping, columns, rows, cells and findings, and says which changes break a reader.

All counts are exact; of what differs the first are listed. Breaking is what somebody who reads the left result may
stumble over in the right one: something is gone, or is something else. More of the same is not.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple

from runner.engine.comparing.cell_texts import kind_of
from runner.engine.comparing.result_sides import ResultFacts, ResultSide, SideRow, output_cell
from runner.engine.comparing.row_pairs import RowId, RowPair, RowPairs, rows_in_memory
from runner.engine.contract import BY_KEY, BY_SOURCE, Json
from runner.engine.protocol import BadOutput

COMPARISON_VERSION: Final = 1
MOST_LISTED: Final = 500  # cells, rows and findings of each kind that are listed
_LONGEST_VALUE: Final = 200  # characters of a value
_VALUES_LISTED: Final = 12  # values of a row that only one result has
_BEST_FIRST: Final = ("SUCCEEDED", "REVIEW")  # states from the best to the worst; all others are failures

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
    """Collects what differs between two results while they are compared; the lists hold items of comparison.json."""

    by: str  # how rows are paired
    status: tuple[str, str] = ("", "")  # of the left and of the right result
    counts: Counter[str] = field(default_factory=Counter)  # how often each key of BREAKING differs
    columns: list[Json] = field(default_factory=list)
    mapping: list[Json] = field(default_factory=list)
    sheets: list[Json] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)  # left, right, same, changed, added, removed
    by_column: Counter[str] = field(default_factory=Counter)  # column -> cells that differ
    cells: list[Json] = field(default_factory=list)  # the first that differ
    added: list[Json] = field(default_factory=list)  # the first rows that only the right result has
    removed: list[Json] = field(default_factory=list)  # the first rows that only the left result has
    findings: list[Json] = field(default_factory=list)
    finding_counts: list[Json] = field(default_factory=list)
    left_out: list[Json] = field(default_factory=list)

    def encode(self) -> Json:
        """Return the differences as comparison.json has them."""
        changes = [
            {"what": what, "count": self.counts[what], "breaking": breaking}
            for what, breaking in BREAKING.items()
            if self.counts[what]
        ]
        return {
            "comparison": COMPARISON_VERSION,
            "same": not changes,
            "breaking": any(change["breaking"] for change in changes),
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


def compare(left: ResultSide, right: ResultSide, *, by: str, show_values: bool, spool: IO[bytes] | None) -> Json:
    """Compare two results, rows included, and return comparison.json.

    `by`: how rows are paired (empty: by key where both have one, else by source; where the sources of only one result
    are known, by the rows of the output). `show_values`: list values, not only their kinds. `spool`: an empty file for
    rows that do not fit into memory.
    """
    right_facts = right.facts.with_sheet_of(left.facts)
    paired, ids = _choose_pairing(left.facts, right_facts, by)
    if paired == BY_SOURCE and {left.knows_sources, right.knows_sources} == {True, False}:
        paired, ids = _BY_PLACE
    differences = Differences(by=paired)
    compare_facts(left.facts, right_facts, differences)
    cells = _CellComparison(differences, list(left.facts.columns), list(right_facts.columns), show_values=show_values)
    most = rows_in_memory(max(len(left.facts.columns), len(right_facts.columns)))
    pairs = RowPairs(ids, spool, most_waiting=most).pairs(left.rows(), right.rows())
    for pair in pairs:
        cells.add(pair)
    for listed in (differences.cells, differences.added, differences.removed):
        listed.sort(key=_sort_key)
    return differences.encode()


def _sort_key(listed_row: Json) -> tuple[int, str]:
    """Return a key that sorts listed cells and rows by the row of the output; rows of a spool come in another order."""
    place = str(listed_row.get("row", ""))
    row = place.rpartition("!")[2]
    return (int(row) if row.isdecimal() else 0, place)


class _Pairing(NamedTuple):
    """How the rows of two results are paired."""

    by: str  # in words
    ids: tuple[RowId, RowId]  # what tells the id of a row, on the left and on the right


_BY_PLACE: Final = _Pairing("row", (lambda row: row.place, lambda row: row.place))


def _choose_pairing(left: ResultFacts, right: ResultFacts, by: str) -> _Pairing:
    """Choose how rows are paired: by a key that both results have, unless `by` asks for the source, else by source.

    Raises BadOutput if `by` asks for a key and the results share none.
    """
    key = next((name for name in left.unique if name in right.columns), None) if by != BY_SOURCE else None
    if key is not None:
        ids = _id_by_cell(list(left.columns).index(key)), _id_by_cell(list(right.columns).index(key))
        return _Pairing(f"{BY_KEY} {key}", ids)
    if by == BY_KEY:
        raise BadOutput("the results share no field that the manifest calls unique; pair their rows by source")
    has_single_sheets = left.only_sheet is not None and right.only_sheet is not None
    return _Pairing(BY_SOURCE, (_id_by_row, _id_by_row) if has_single_sheets else (_id_by_source, _id_by_source))


def _id_by_cell(position: int) -> RowId:
    """Return a function that identifies rows by the value of a column."""
    return lambda row: row.cells[position]


def _id_by_source(row: SideRow) -> str:
    """Identify a row by where it comes from; one of unknown source by its place in the output."""
    return row.source or f"row {row.place}"


def _id_by_row(row: SideRow) -> str:
    """Identify a row by its number in the only sheet, whose name does not count: a text file's sheet is called like the
    file."""
    return row.source.rpartition("!")[2] or f"row {row.place}"


class _CellComparison:
    """Compares rows that belong together, cell by cell, over the columns that both results have.

    What differs is added to the `differences` that it was made with.
    """

    def __init__(
        self,
        differences: Differences,
        left_columns: Sequence[str],
        right_columns: Sequence[str],
        *,
        show_values: bool,
    ) -> None:
        """Prepare to compare rows with these columns; `show_values`: list values, not only their kinds."""
        self._differences = differences
        # Name -> its position in the left rows and in the right ones.
        self._shared_columns = {
            name: (left_columns.index(name), right_columns.index(name))
            for name in left_columns
            if name in right_columns
        }
        self._same_columns = left_columns == right_columns
        self._show_values = show_values

    def add(self, pair: RowPair) -> None:
        """Compare a pair of rows and count what differs; a row without a partner is added or removed."""
        differences, left, right = self._differences, pair.left, pair.right
        differences.rows["left"] += left is not None
        differences.rows["right"] += right is not None
        if left is None or right is None:
            self._count_single(pair)
        elif self._same_columns and left.cells == right.cells:
            differences.rows["same"] += 1
        else:
            self._count_cells(left, right)

    def _count_single(self, pair: RowPair) -> None:
        """Count a row that only one side has, and list it while there is room."""
        differences = self._differences
        if pair.left is not None:
            row, what, listed = pair.left, "removed", differences.removed
        elif pair.right is not None:
            row, what, listed = pair.right, "added", differences.added
        else:
            return
        differences.rows[what] += 1
        differences.counts[f"rows_{what}"] += 1
        if len(listed) < MOST_LISTED:
            values = {"values": [cut(text) for text in row.cells[:_VALUES_LISTED]]} if self._show_values else {}
            listed.append(_locate_row(row) | values)

    def _count_cells(self, left: SideRow, right: SideRow) -> None:
        """Count the cells that differ in two rows, and list them while there is room."""
        differences, is_changed = self._differences, False
        shown = cut if self._show_values else kind_of
        for name, (left_position, right_position) in self._shared_columns.items():
            before, after = left.cells[left_position], right.cells[right_position]
            if before == after:
                continue
            is_changed = True
            differences.by_column[name] += 1
            differences.counts[_kind_of_change(before, after)] += 1
            if len(differences.cells) < MOST_LISTED:
                place = {"cell": output_cell(right_position, right.place), "field": name}
                differences.cells.append({**_locate_row(right), **place, "left": shown(before), "right": shown(after)})
        differences.rows["changed" if is_changed else "same"] += 1


def _kind_of_change(before: str, after: str) -> str:
    """Return the key of BREAKING for a cell whose text differs; an empty text is a blank."""
    if not before:
        return "values_filled"
    return "values_changed" if after else "values_blanked"


def _locate_row(row: SideRow) -> Json:
    """Locate a row as comparison.json has it: in the output, and in the input if that is known."""
    return {"row": row.place, **({"source": row.source} if row.source else {})}


def cut(text: str) -> str:
    """Cut a text to as many characters as comparison.json may show of a value, with … at its end."""
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def compare_facts(left: ResultFacts, right: ResultFacts, differences: Differences) -> None:
    """Compare all but the rows; adds what differs to `differences`.

    Two statuses of the same rank, such as failures of two kinds, count as worse: the right one breaks in a new way.
    """
    differences.status = (left.status, right.status)
    if left.status != right.status:
        is_better = _rank(right.status) < _rank(left.status)
        differences.counts["status_better" if is_better else "status_worse"] += 1
    _compare_columns(left.columns, right.columns, differences)
    _compare_mapping(left.tables, right.tables, differences)
    _compare_findings(left, right, differences)
    for name in _names_of_either(left.sheets, right.sheets):
        before, after = left.sheets.get(name), right.sheets.get(name)
        if before != after:
            differences.counts["sheets_changed"] += 1
            differences.sheets.append({"sheet": name, "left": before, "right": after})
    for kind in _names_of_either(left.left_out, right.left_out):
        rows_before, rows_after = left.left_out.get(kind, 0), right.left_out.get(kind, 0)
        if rows_before != rows_after:
            differences.counts["left_out_changed"] += 1
            differences.left_out.append({"kind": kind, "left": rows_before, "right": rows_after})


def _rank(status: str) -> int:
    """Rank a status, 0 for the best, the same for all failures; the word before a space is the job's state, a verdict
    may follow."""
    state = status.partition(" ")[0]
    return _BEST_FIRST.index(state) if state in _BEST_FIRST else len(_BEST_FIRST)


def _names_of_either(left: Iterable[str], right: Iterable[str]) -> list[str]:
    """List the names that one side or both have, each once, those of the left first."""
    return list(dict.fromkeys([*left, *right]))


def _compare_columns(left: dict[str, str], right: dict[str, str], differences: Differences) -> None:
    """Add the columns that are new, gone, of another type or in another place to `differences`.

    `left`, `right`: the type of each column, in their order. A column has moved if another one is in its place once
    those that only one side has are left out.
    """
    shared = [name for name in left if name in right]
    partners = dict(zip(shared, (name for name in right if name in left), strict=True))
    for name in _names_of_either(left, right):
        before, after = left.get(name), right.get(name)
        if before is None or after is None:
            change = "columns_removed" if after is None else "columns_added"
        elif before != after:
            change = "types_changed"
        elif partners[name] != name:
            change = "columns_moved"
        else:
            continue
        differences.counts[change] += 1
        differences.columns.append({"column": name, "what": change, "left": before, "right": after})


def _compare_mapping(
    left: dict[str, dict[str, str]], right: dict[str, dict[str, str]], differences: Differences
) -> None:
    """Add the columns that became another field to `differences`; `left`, `right`: table -> column -> field.

    Tables are compared by name, and what is left of them in their order: a longer file has a longer range.
    """
    unpaired = [name for name in right if name not in left]
    for table, left_fields in left.items():
        partner: str | None = table
        if table not in right:
            partner = unpaired.pop(0) if unpaired else None
        right_fields = {} if partner is None else right[partner]
        for column in _names_of_either(left_fields, right_fields):
            before, after = left_fields.get(column, ""), right_fields.get(column, "")
            if before != after:
                differences.counts["mapping_changed" if before else "mapping_added"] += 1
                differences.mapping.append(
                    {"table": partner or table, "column": column, "left": before or None, "right": after or None}
                )
    for table in unpaired:
        fields = [name for name in right[table].values() if name]
        differences.counts["mapping_added"] += 1
        differences.mapping.append({"table": table, "column": None, "left": None, "right": ", ".join(fields) or None})


_PLURAL: Final = {"error": "errors", "warning": "warnings"}


def _compare_findings(left: ResultFacts, right: ResultFacts, differences: Differences) -> None:
    """Add the findings that only one side has, and those whose numbers differ, to `differences`; a line is a finding as
    expected.json has it."""
    before, after = Counter(left.findings), Counter(right.findings)
    for side, lines in (("left", before - after), ("right", after - before)):
        for line, count in lines.items():
            differences.counts[_kind_of_finding(line, is_new=side == "right")] += count
        differences.findings += [
            {"only": side, "finding": line, "count": n} for line, n in list(lines.items())[:MOST_LISTED]
        ]
    listed = {line.partition(" at ")[0] for line in (before - after) + (after - before)}
    for name in _names_of_either(left.counts, right.counts):
        count_before, count_after = left.counts.get(name, 0), right.counts.get(name, 0)
        if count_before != count_after:
            differences.finding_counts.append({"finding": name, "left": count_before, "right": count_after})
            if name not in listed:  # only their numbers are known
                kind = _kind_of_finding(name, is_new=count_after > count_before)
                differences.counts[kind] += abs(count_after - count_before)


def _kind_of_finding(line: str, *, is_new: bool) -> str:
    """Return the key of BREAKING for a new or a missing finding, whose line starts with its severity."""
    severity = line.partition(" ")[0]
    if severity == "error":
        return "errors_added" if is_new else "errors_removed"
    return f"{_PLURAL.get(severity, 'infos')}_changed"
