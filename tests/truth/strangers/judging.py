"""A second judge, for the strangers' files: it shares no code with the engine and excuses nothing by hints.

Rows are compared as sets, cell by cell; the output's own provenance says where a row came from. A difference is *told* only by a
finding of severity warning or error whose place covers it and whose code can be about such a difference. A code that is not listed
here is believed at its own place: the judge must not need to know the engine's newest words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from openpyxl.utils import get_column_letter as letters
from openpyxl.utils import range_boundaries

from tests.truth.cases import AnyOf, Case, Row, Table, same
from tests.truth.judge import Difference, Verdict
from tests.truth.running import Outcome

LOST, ADDED, CELL, COLUMN, MEANING = "row lost", "row added", "cell", "column", "not told"
EVERYTHING = frozenset((LOST, ADDED, CELL, COLUMN, MEANING))
# What the codes of docs/reference/findings.md can be about; only warnings and errors are asked.
ABOUT: dict[str, frozenset[str]] = {
    **dict.fromkeys(("min", "max", "min_length", "max_length", "rule_issue", "rule_warning", "rule_error", "row_rule"), frozenset()),
    **dict.fromkeys(("memory_refused", "shape_ignored", "decision_unused", "output_split", "rules_unused"), frozenset()),
    **dict.fromkeys(("required", "pattern", "merged_blank", "cell_error", "no_cached_value", "text_cut"), frozenset((CELL, MEANING))),
    **dict.fromkeys(("type_error", "not_allowed", "time_dropped", "date_dropped", "digits_lost"), frozenset((CELL, MEANING))),
    **dict.fromkeys(("decimal_mixed", "date_order_mixed", "undecodable", "encoded_twice"), frozenset((CELL, MEANING))),
    **dict.fromkeys(("decimal_assumed", "date_order_assumed", "date_form_assumed", "century_assumed"), frozenset((CELL, MEANING))),
    **dict.fromkeys(("calendar_assumed", "unit_assumed", "currency_mixed", "unit_mixed", "scale_ignored"), frozenset((CELL, MEANING))),
    "zone_mixed": frozenset((CELL, MEANING)),
    "duplicate": frozenset((ADDED,)),
    **dict.fromkeys(("missing_field", "mapping_doubtful", "duplicate_header"), frozenset((CELL, COLUMN, MEANING))),
    **dict.fromkeys(("total_assumed", "group_assumed"), frozenset((LOST, ADDED, MEANING))),
    "rows_outside": frozenset((LOST,)),
    **dict.fromkeys(("table_unmapped", "table_skipped", "no_table", "nothing_mapped"), frozenset((LOST, MEANING))),
    "table_repeated": frozenset((ADDED, MEANING)),
    "cells_beside": frozenset((LOST, CELL, COLUMN, MEANING)),
}  # fmt: skip
WHOLE_FILE = {"encoding_assumed", "delimiter_assumed"}
ROWS_NAMED = re.compile(r"\brows? (\d+(?:(?:, | and | to |-|–)\d+)*)")


@dataclass
class Stranger(Case):
    """A case with what only this judge uses."""

    lines: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)  # further lines of a record


def judge(case: Case, outcome: Outcome) -> Verdict:
    return _Judge(case, outcome).verdict()


class _Judge:
    def __init__(self, case: Case, outcome: Outcome) -> None:
        self.case, self.outcome = case, outcome
        self.sheets = outcome.artifact.get("sheets", [])
        findings = outcome.artifact.get("validation", {}).get("findings", [])
        self.found = [f for f in findings if f["severity"] != "info"]
        self.said = Verdict(warnings=Counter(f["code"] for f in self.found if f["code"] not in case.told))

    def verdict(self) -> Verdict:
        error = self.outcome.error
        if error is not None:
            self._failed(error["code"], error.get("message"))
            return self.said
        if self.case.fails:
            named = [f["code"] for f in self.found]
            self._add(
                "told" if named else "silent", "should have failed", "job", sorted(self.case.fails), named, *named[:1]
            )
            return self.said
        self._rows()
        self._tells()
        return self.said

    def _failed(self, code: str, message: Any) -> None:
        if code == "engine_error":
            self._add("silent", "engine error", "job", "an output", message)
        elif code in self.case.fails or "*" in self.case.fails:
            self.said.right += 1
        else:
            self._add("told", "failed", "job", "an output", code, f"job:{code}")

    def _add(self, verdict: str, kind: str, place: str, want: Any, got: Any, code: str = "") -> None:
        self.said.differences.append(Difference(verdict, kind, place, want, got, code))

    # rows

    def _rows(self) -> None:
        header = [str(h) for h in self.outcome.header]
        names = list(dict.fromkeys(n for t in self.case.tables for n in t.columns))
        names += [f["name"] for f in self.case.fields if f["name"] not in names]
        at = {n: header.index(n) for n in names if n in header}
        came = [_origin(header, row) for row in self.outcome.rows]
        gots = [{n: row[c] for n, c in at.items()} for row in self.outcome.rows]
        wants = [(t, r) for t in self.case.tables for r in t.rows]
        pairs, missing, extra = pair([(t.sheet, r) for t, r in wants], gots, came)
        whole = self._wrong_columns([(wants[w][1], gots[g]) for w, g in pairs])
        for w, g in pairs:
            self._compare(*wants[w], gots[g], whole, names)
        for w in missing:
            table, row = wants[w]
            code = self._told(LOST, table.sheet, (row.number, *self._lines(table.sheet, row.number)))
            self._add(
                "told" if code else "silent", LOST, f"{table.sheet}!{row.number}", list(row.wants.values()), None, code
            )
        copies = {_exact(r.wants) for _, r in wants}
        for g in extra:
            sheet, number = came[g]
            code = self._told(ADDED, sheet, (number,))
            if not code and _exact(gots[g]) in copies and any(f["code"] == "table_repeated" for f in self.found):
                code = "table_repeated"
            why = self.case.left.get((sheet, number)) or self.case.left.get((self._only(sheet), number), "")
            self._add(
                "told" if code else "silent",
                f"{ADDED} {why}".strip(),
                f"{sheet}!{number}",
                None,
                list(gots[g].values()),
                code,
            )

    def _lines(self, sheet: str, number: int) -> tuple[int, ...]:
        return self.case.lines.get((sheet, number), ()) if isinstance(self.case, Stranger) else ()

    def _only(self, sheet: str) -> str:
        """The name that the case gave a file's only sheet."""
        return self.case.tables[0].sheet if len(self.sheets) == 1 and self.case.tables else sheet

    def _wrong_columns(self, pairs: list[tuple[Row, dict[str, Any]]]) -> set[str]:
        """Fields of which most values differ: the column is wrong, not its cells."""
        whole = set()
        for name in {n for row, _ in pairs for n in row.wants}:
            filled = [
                (r.wants.get(name), g.get(name))
                for r, g in pairs
                if r.wants.get(name) is not None or g.get(name) is not None
            ]
            wrong = sum(not agrees(w, g) for w, g in filled)
            if filled and wrong * 5 >= len(filled) * 4:
                whole.add(name)
        return whole

    def _compare(self, table: Table, row: Row, got: dict[str, Any], whole: set[str], names: list[str]) -> None:
        for name in names:
            want, value = row.wants.get(name), got.get(name)
            if agrees(want, value):
                self.said.right += 1
                continue
            column = table.columns.get(name)
            cell = f"{letters(column)}{row.number}" if column else None
            numbers = (row.number, *self._lines(table.sheet, row.number))
            code = self._told(CELL, table.sheet, numbers, name, cell)
            if not code and name in whole:
                code = self._told(COLUMN, table.sheet, numbers, name, cell)
            kind = COLUMN if name in whole else CELL
            self._add(
                "told" if code else "silent", kind, f"{table.sheet}!{cell or row.number} {name}", want, value, code
            )

    def _tells(self) -> None:
        for tell in self.case.tells:
            rows = (tell.row,) if tell.row else ()
            sheet = self.case.tables[0].sheet if self.case.tables else ""
            if tell.codes:
                code = next((f["code"] for f in self.found if f["code"] in tell.codes), "")
            else:
                code = self._told(MEANING, sheet, rows, tell.field)
            if not code:
                self._add(
                    "silent", MEANING, f"field {tell.field} row {tell.row}", sorted(tell.codes) or "a warning", None
                )

    # findings

    def _told(
        self, kind: str, sheet: str, rows: tuple[int, ...], name: str | None = None, cell: str | None = None
    ) -> str:
        for f in self.found:
            if kind in ABOUT.get(f["code"], EVERYTHING) and self._covers(f, sheet, rows, name, cell):
                return str(f["code"])
        return ""

    def _covers(self, f: dict[str, Any], sheet: str, rows: tuple[int, ...], name: str | None, cell: str | None) -> bool:
        if f["code"] in WHOLE_FILE:
            return True
        if len(self.sheets) > 1 and f.get("sheet") not in (None, "", sheet):
            return False
        on_header = self._on_header(f)
        placed = (f.get("cell") is not None or f.get("row") is not None) and not on_header
        if f.get("field") not in (None, name) and not (name is None and placed):
            return False
        if f.get("cell") is not None and not on_header:
            if cell is None:
                return not rows or int(re.sub(r"\D", "", f["cell"])) in rows
            return bool(f["cell"] == cell)
        if (f.get("row") is not None or ROWS_NAMED.search(f["message"])) and not on_header:
            named = self._named(f)
            return (
                not rows or any(r in named for r in rows) or (f["code"] == "record_assumed" and min(named) <= max(rows))
            )
        if f.get("field") is not None or not rows:
            return True
        area = re.search(r"!([A-Z]+\d+:[A-Z]+\d+)$", f.get("table", ""))
        if area is None:
            return True
        _, top, _, bottom = range_boundaries(area[1])
        return any(top <= r <= bottom for r in rows)

    def _on_header(self, f: dict[str, Any]) -> bool:
        """A finding at a header speaks of the column, or of the table."""
        headers = {
            row
            for s in self.sheets
            if s["name"] == f.get("sheet")
            for t in s.get("tables", [])
            if f.get("table") in (None, "", t["id"])
            for row in t["header_rows"]
        }
        return f.get("row") in headers

    def _named(self, f: dict[str, Any]) -> set[int]:
        """The rows that a finding speaks of: its own, those of its run of left-out rows, those that its message lists."""
        rows = {f["row"]} if f.get("row") else set()
        for listed in ROWS_NAMED.findall(f["message"]):
            for part in re.split(r", | and ", listed):
                ends = [int(n) for n in re.split(r" to |-|–", part)]
                rows |= set(range(ends[0], ends[-1] + 1))
        for s in self.sheets:
            for run in s.get("rows", []) if s["name"] == f.get("sheet") else ():
                if run["as"] != "data" and f.get("row") and run["from"] <= f["row"] <= run["to"]:
                    rows |= set(range(run["from"], run["to"] + 1))
        return rows


def _origin(header: list[str], row: list[Any]) -> tuple[str, int]:
    if "source_row" not in header:
        return "", 0
    return str(row[header.index("source_sheet")]), int(row[header.index("source_row")] or 0)


def agrees(want: Any, got: Any) -> bool:
    if isinstance(want, AnyOf):
        return any(agrees(w, got) for w in want.values)
    if isinstance(want, float) and isinstance(got, int | float) and not isinstance(got, bool):
        return abs(want - got) <= 1e-9 * max(1.0, abs(want))
    return same(want, got)


def _exact(values: dict[str, Any]) -> tuple[Any, ...]:
    """What a row holds, comparable; whole numbers and floats alike, dates by their day."""
    made = []
    for name in sorted(values):
        v = values[name]
        v = v.values[0] if isinstance(v, AnyOf) else v
        if v is None or v == "":
            continue
        if isinstance(v, int | float) and not isinstance(v, bool):
            v = f"{float(v):.6f}"
        made.append((name, v[:200] if isinstance(v, str) else str(v).removesuffix(" 00:00:00")))
    return tuple(made)


def likeness(want: dict[str, Any], got: dict[str, Any]) -> float:
    cells = [(w, got.get(n)) for n, w in want.items() if w is not None or got.get(n) is not None]
    return sum(agrees(w, g) for w, g in cells) / len(cells) if cells else 1.0


def pair(
    wants: list[tuple[str, Row]], gots: list[dict[str, Any]], came: list[tuple[str, int]]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Rows that are equal first, then those of one source row, then those that agree in half of their cells."""
    pairs: list[tuple[int, int]] = []
    free_w, free_g = dict.fromkeys(range(len(wants))), dict.fromkeys(range(len(gots)))

    def take(w: int, g: int) -> None:
        pairs.append((w, g))
        del free_w[w], free_g[g]

    by_place: dict[int, list[int]] = defaultdict(list)
    by_value: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for g in range(len(gots)):
        by_place[came[g][1]].append(g)
        by_value[_exact(gots[g])].append(g)
    for lookup, least in ((by_place, 1.0), (by_value, 1.0), (by_place, 0.34)):
        for w in list(free_w):
            key: Any = wants[w][1].number if lookup is by_place else _exact(wants[w][1].wants)
            for g in lookup.get(key, ()):
                if g in free_g and likeness(wants[w][1].wants, gots[g]) >= least:
                    take(w, g)
                    break
    for w, g in _alike(wants, gots, free_w, free_g):
        if w in free_w and g in free_g:
            take(w, g)
    return pairs, list(free_w), list(free_g)


def _alike(
    wants: list[tuple[str, Row]], gots: list[dict[str, Any]], ws: dict[int, None], gs: dict[int, None]
) -> Iterator[tuple[int, int]]:
    if len(ws) * len(gs) > 40_000:
        return
    scored = [(likeness(wants[w][1].wants, gots[g]), -w, -g) for w in ws for g in gs]
    for score, w, g in sorted(scored, reverse=True):
        if score < 0.5:
            return
        yield -w, -g
