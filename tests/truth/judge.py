"""Compare every cell of an output with what the case says, and judge each difference: right, told or silent.

A difference is *told* only where the artifact names it: a finding at that cell, row, field, table or input whose code
explains just this difference. A finding about something else excuses nothing. A row of data that is left out is told
only by a warning; where nothing but the account of rows mentions it, it is *wrong*, which fails like silent does.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

from openpyxl.utils import get_column_letter as letters

from tests.truth.cases import AnyOf, Case, Error, Formula, Row, Shown, Table, same
from tests.truth.running import Outcome

# What a finding may explain. Each code is documented in docs/reference/findings.md.
UNREAD = {"type_error", "not_allowed"}  # at the cell: it stays as it was
REWRITTEN = {"kept_as_text"}  # at the cell: the same value, as a text
ROW_LEFT_OUT = {"total_assumed", "group_assumed", "header_assumed", "rows_outside"}
ROW_KEPT = {"total_assumed", "group_assumed", "header_assumed", "record_assumed", "no_header"}
ENCODING = {"encoding_assumed", "undecodable"}
DIALECT = {"delimiter_assumed", "open_quote", "stray_quote"}
WIDE = {"wide_row"}  # at the row: its cells may have moved
DECIMAL = {"decimal_assumed", "decimal_mixed"}
ORDER = {"date_order_assumed", "date_order_mixed"}
FORM = {"date_form_assumed"}  # digits read as a day number
MERGED = {"merged_blank"}
TIME = {"time_dropped"}
CENTURY = {"century_assumed"}
UNMAPPED = {"missing_field", "mapping_doubtful", "table_unmapped", "no_header", "header_assumed"}
MOVED = {"mapping_doubtful"}


LABEL = {"label_missing", "label_assumed", "label_repeated", "caption_missing"}
BESIDE = {"cells_beside"}
SKIPPED = {"table_unmapped", "table_skipped", "table_assumed", "table_repeated", "no_table"}
CELLS = {"cell_error", "no_cached_value", "text_cut"}
EXPLAINING = (
    UNREAD | REWRITTEN | ROW_LEFT_OUT | ROW_KEPT | ENCODING | DIALECT | DECIMAL | ORDER | FORM | MERGED | TIME | CENTURY | UNMAPPED | MOVED
    | BESIDE | SKIPPED | CELLS | WIDE | LABEL
)  # fmt: skip


class Difference(NamedTuple):
    verdict: str  # told, wrong or silent
    kind: str
    place: str
    want: Any
    got: Any
    code: str = ""


@dataclass
class Verdict:
    right: int = 0
    differences: list[Difference] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)

    @property
    def told(self) -> Counter[str]:
        return Counter(d.code for d in self.differences if d.verdict == "told")

    @property
    def silent(self) -> list[Difference]:
        return [d for d in self.differences if d.verdict != "told"]

    @property
    def word(self) -> str:
        return "silent" if self.silent else "told" if self.differences else "right"


def judge(case: Case, outcome: Outcome) -> Verdict:
    return _Judge(case, outcome).verdict()


class _Judge:
    def __init__(self, case: Case, outcome: Outcome) -> None:
        self.case = case
        self.outcome = outcome
        self.found = outcome.artifact.get("validation", {}).get("findings", [])
        self.totals = Counter[tuple[str, str | None]]()
        for t in outcome.artifact.get("validation", {}).get("totals", []):
            self.totals[t["code"], t.get("field")] += t["count"]
        self.said = Verdict()
        self.declared = {f["name"] for f in case.fields}

    def verdict(self) -> Verdict:
        self.said.warnings = Counter(
            f["code"] for f in self.found if f["severity"] != "info" and f["code"] not in self.case.told
        )
        error = self.outcome.error
        if error is not None:
            self._failed(error)
            return self.said
        if self.case.fails:
            self._add("silent", "should have failed", "job", sorted(self.case.fails), "succeeded")
        names = self._columns()
        wants = [(t, row) for t in self.case.tables for row in t.rows]
        pairs, missing, extra = align(
            [{n: row.wants.get(n) for n in names} for _, row in wants],
            [{n: r[at] if at is not None else None for n, at in names.items()} for r in self.outcome.rows],
        )
        for w, g in pairs:
            self._compare(*wants[w], names, self.outcome.rows[g])
        for w in missing:
            self._missing(*wants[w])
        self._extra(extra)
        self._tells()
        self._books()
        return self.said

    def _add(self, verdict: str, kind: str, place: str, want: Any, got: Any, code: str = "") -> None:
        self.said.differences.append(Difference(verdict, kind, place, want, got, code))

    def _failed(self, error: dict[str, Any]) -> None:
        code = error["code"]
        if code in self.case.fails:
            self.said.right += 1
        elif code == "engine_error":
            self._add("wrong", "engine error", "job", "an output", error.get("message"))
        else:
            self._add("told", "failed", "job", "an output", code, f"job:{code}")

    # columns

    def _columns(self) -> dict[str, int | None]:
        """Where each wanted column stands in the output; names that begin with ? are found by what they hold."""
        header = [None if h is None else str(h) for h in self.outcome.header]
        wanted = list(dict.fromkeys([n for t in self.case.tables for n in t.columns]))
        at: dict[str, int | None] = {n: header.index(n) if n in header else None for n in wanted if n[0] != "?"}
        free = [n for n, h in enumerate(header) if n not in at.values() and h not in self.declared]
        for name in wanted:
            if name[0] != "?":
                continue
            values = [r.wants[name] for t in self.case.tables for r in t.rows if r.wants.get(name) is not None]
            score = {n: sum(any(same(v, r[n]) for r in self.outcome.rows) for v in values[:30]) for n in free}
            best = max(free, key=lambda n: score[n], default=None)
            at[name] = best if best is not None and score[best] else None
            if at[name] is not None:
                free.remove(best)  # type: ignore[arg-type]
        for n, name in enumerate(header):
            if n in at.values() or all(r[n] is None for r in self.outcome.rows):
                continue
            if name in self.declared:
                code = self._finding(MOVED, field=name)
                self._add("told" if code else "silent", "field filled from nowhere", str(name), None, "values", code)
            elif not self._finding(ENCODING | DIALECT | UNMAPPED | WIDE):
                self._add("silent", "column from nowhere", str(name), None, "values")
        return {n: at[n] for n in wanted}

    # cells

    def _compare(self, table: Table, row: Row, names: dict[str, int | None], got: list[Any]) -> None:
        for name, at in names.items():
            want = row.wants.get(name)
            value = got[at] if at is not None else None
            if same(want, value):
                self.said.right += 1
                continue
            source = table.sources.get((row.number, name), want)
            kind, code = self._explain(table, row, name, source, want, value, lost=at is None)
            place = (
                f"{table.sheet}!{letters(table.columns[name])}{row.number} {name}" if name in table.columns else name
            )
            self._add("told" if code else "silent", kind, place, want, value, code)

    def _explain(
        self, table: Table, row: Row, name: str, source: Any, want: Any, got: Any, *, lost: bool
    ) -> tuple[str, str]:
        sheet, column = table.sheet, table.columns.get(name)
        cell = f"{letters(column)}{row.number}" if column else None
        here: dict[str, Any] = {"sheet": sheet, "cell": cell, "field": name}
        text = shown(source)
        if code := self._finding(LABEL, field=name):
            return "value of a label", code
        if lost:
            return "column lost", self._beside(sheet, row.number, column) or self._finding(
                UNMAPPED, field=name
            ) or self._finding({"table_unmapped", "no_header", "header_assumed"} | ENCODING | DIALECT, sheet=sheet)
        if isinstance(want, Error) or isinstance(source, Error):
            return "error cell", self._finding({"cell_error"}, **here)
        if isinstance(source, Formula) and source.cached is None:
            return "no result", self._finding({"no_cached_value"}, **here)
        if isinstance(got, str) and same_value_as_text(want, got):
            code = self._finding(REWRITTEN | UNREAD, **here)
            if code:
                return "kept as text", code
        kept = isinstance(got, str) or not isinstance(source, str)
        if got is not None and kept and isinstance(text, str) and str(shown(got)).strip() == text.strip():
            return "not read", self._finding(UNREAD, **here)
        if got is None:
            code = (
                self._beside(sheet, row.number, column)
                or self._finding(MERGED, **here)
                or self._finding(MERGED, field=name)
            )
            return "blanked", code or self._finding(UNMAPPED, field=name) or self._dialect(sheet)
        if isinstance(got, int | float) and is_number(want) and other_sign(text, want, got):
            return "decimal sign", self._finding(DECIMAL, field=name)
        if isinstance(got, datetime) and any(swapped(w, got) for w in each(want)):
            return "date order", self._finding(ORDER, field=name)
        if isinstance(got, datetime) and isinstance(text, str) and text.isdecimal():
            return "digits", self._finding(FORM, field=name)
        if isinstance(got, datetime) and any(
            isinstance(w, date) and w.year % 100 == got.year % 100 and (w.month, w.day) == (got.month, got.day)
            for w in each(want)
        ):
            dropped = any(w.year == got.year for w in each(want) if isinstance(w, date))
            return ("time of day" if dropped else "century"), self._finding(TIME if dropped else CENTURY, field=name)
        if isinstance(got, str) and isinstance(want, str) and len(got) >= 32_000 and want.startswith(got):
            return "cut", self._finding({"text_cut"}, **here)
        if self.case.encoding and isinstance(want, str) and not want.isascii() and isinstance(got, str):
            return "mojibake", self._finding(ENCODING)
        return "value", self._finding(WIDE, sheet=sheet, row=row.number) or self._dialect(sheet)

    def _beside(self, sheet: str, row: int, column: int | None) -> str:
        """Cells that stand in none of a table's columns are listed by their area, with a warning."""
        if not self._finding(BESIDE, sheet=sheet, warning=True):
            return ""
        for s in self.outcome.artifact["sheets"]:
            for area in s.get("beside", []) if s["name"] == sheet else ():
                left, top, right, bottom = area_of(area["range"])
                if top <= row <= bottom and left <= (column or 0) <= right:
                    return "cells_beside"
        return ""

    def _dialect(self, sheet: str) -> str:
        """A dialect taken wrongly moves cells about: it explains any difference of a text file, if it says so."""
        if self.case.name.rpartition(".")[2] not in ("csv", "tsv", "txt"):
            return ""
        return self._finding(DIALECT, sheet=sheet)

    def _finding(
        self,
        codes: set[str],
        *,
        sheet: str | None = None,
        cell: str | None = None,
        row: int | None = None,
        field: str | None = None,
        warning: bool = False,
    ) -> str:
        """The code of a finding that speaks of this place: of the cell if a cell is asked for, else of what is wider."""
        for f in self.found:
            if f["code"] not in codes or (warning and f["severity"] == "info"):
                continue
            if sheet is not None and f.get("sheet") not in (None, "", sheet):
                continue
            if cell is not None and f.get("cell") != cell:
                continue
            if row is not None and f.get("row") != row:
                continue
            if field is not None and cell is None and f.get("field") not in (field, None):
                continue
            if field is not None and cell is None and f.get("field") is None and f.get("row") is not None:
                continue
            return str(f["code"])
        if cell is not None:  # past the first thousand only the count is kept
            for code in codes:
                if self.totals[code, field] > 1000:
                    return code
        return ""

    # rows

    def _missing(self, table: Table, row: Row) -> None:
        place = f"{table.sheet}!{row.number}"
        code = self._finding(ROW_LEFT_OUT, sheet=table.sheet, row=row.number, warning=True)
        code = code or self._skipped(table.sheet, row.number)
        code = code or self._finding(DIALECT, warning=True)
        listed = self._listed(table.sheet, row.number)
        verdict = "told" if code else "wrong" if listed and listed != "data" else "silent"
        self._add(verdict, "row lost", place, list(row.wants.values()), listed or None, code)

    def _skipped(self, sheet: str, row: int) -> str:
        """The warning that a whole table, or all there is, was not read."""
        for f in self.found:
            if f["code"] in SKIPPED and f.get("sheet") in (None, "", sheet):
                area = re.search(r"![A-Z]+(\d+):[A-Z]+(\d+)$", f.get("table", ""))
                if f["severity"] != "info" and (area is None or int(area[1]) <= row <= int(area[2])):
                    return str(f["code"])
        return ""

    def _extra(self, extra: list[int]) -> None:
        kept = [at for at in self.case.left if self._finding(ROW_KEPT, sheet=at[0], row=at[1])]
        for g in extra:
            values = self.outcome.rows[g]
            if all(v is None for v in values):
                self._add("silent", "blank row added", f"output row {g + 2}", None, values)
            elif kept:
                sheet, number = kept.pop(0)
                code = self._finding(ROW_KEPT, sheet=sheet, row=number)
                self._add("told", f"{self.case.left[sheet, number]} kept", f"{sheet}!{number}", None, values, code)
            else:
                code = self._finding({"no_header", "header_assumed", "record_assumed"} | DIALECT, warning=True)
                code = code or self._used_table()
                self._add("told" if code else "silent", "row from nowhere", f"output row {g + 2}", None, values, code)

    def _used_table(self) -> str:
        """The warning that a table was used which may hold no records, or rows of another."""
        codes = ("table_assumed", "table_repeated")
        said = [f for f in self.found if f["code"] in codes and f["message"].startswith("the table is used")]
        return str(said[0]["code"]) if said else ""

    def _tells(self) -> None:
        for tell in self.case.tells:
            if not self._finding(set(tell.codes), row=tell.row, field=tell.field):
                at = f"field {tell.field}" if tell.field else f"row {tell.row}"
                self._add("silent", "a guess that is not told", at, sorted(tell.codes), None)

    # the account of rows

    def _listed(self, sheet: str, row: int) -> str:
        for s in self.outcome.artifact.get("sheets", []):
            if s["name"] == sheet:
                for run in s.get("rows", []):
                    if run["from"] <= row <= run["to"]:
                        return str(run["as"])
        return ""

    def _books(self) -> None:
        """Every row that holds something is listed, data as data, and the sums are those of the file."""
        sheets = {s["name"]: s for s in self.outcome.artifact.get("sheets", [])}
        for made in self.case.sheets:
            listed = sheets.get(made.name)
            if listed is None or made.hidden:
                if not self._finding({"hidden_sheet_skipped"}, sheet=made.name) and listed is None:
                    self._add("silent", "sheet not accounted for", made.name, "in the artifact", None)
                continue
            if "rows_read" not in listed:
                continue
            full = [n for n, row in enumerate(made.rows, 1) if any(v is not None and v != "" for v in row)]
            seen = Counter(n for run in listed["rows"] for n in full if run["from"] <= n <= run["to"])
            for n in full:
                if seen[n] != 1 and not any(s["from"] <= n <= s["to"] for s in listed["shared"]):
                    self._add("silent", "row not accounted for", f"{made.name}!{n}", "one run", seen[n])
            if listed["rows_read"] != len(full):
                self._add("silent", "rows read", made.name, len(full), listed["rows_read"])
        summary = self.outcome.artifact["summary"]
        if summary["rows_out"] != len(self.outcome.rows):
            self._add("silent", "rows out", "summary", len(self.outcome.rows), summary["rows_out"])
        used = summary.get("rows_used", summary["rows_out"])
        if "left_out" in summary and summary["rows_in"] != used + sum(summary["left_out"].values()):
            self._add("silent", "rows in", "summary", used, summary["rows_in"])


def align(
    wants: list[dict[str, Any]], gots: list[dict[str, Any]]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pair wanted rows with written ones, in order; what has no partner is missing or extra."""
    pairs: list[tuple[int, int]] = []
    missing: list[int] = []
    extra: list[int] = []
    w = g = 0
    while w < len(wants) and g < len(gots):
        if likeness(wants[w], gots[g]) >= 0.5:
            pairs.append((w, g))
            w, g = w + 1, g + 1
            continue
        skip = _resume(wants, gots, w, g)
        if skip is None:
            if len(wants) - w == len(gots) - g:
                pairs += zip(range(w, len(wants)), range(g, len(gots)), strict=True)
                return pairs, missing, extra
            break
        both = min(skip) if skip[0] == skip[1] else 0
        pairs += [(w + n, g + n) for n in range(both)]
        missing += range(w + both, w + skip[0])
        extra += range(g + both, g + skip[1])
        w, g = w + skip[0], g + skip[1]
    return pairs, missing + list(range(w, len(wants))), extra + list(range(g, len(gots)))


def _resume(wants: list[dict[str, Any]], gots: list[dict[str, Any]], w: int, g: int) -> tuple[int, int] | None:
    for total in range(1, 120):
        for more in range(total + 1):
            a, b = w + more, g + total - more
            if a < len(wants) and b < len(gots) and likeness(wants[a], gots[b]) >= 0.6:
                return more, total - more
    return None


def likeness(want: dict[str, Any], got: dict[str, Any]) -> float:
    """The share of cells that agree, of those that are not blank on both sides."""
    cells = [(w, got[n]) for n, w in want.items() if w is not None or got[n] is not None]
    return sum(same(w, g) for w, g in cells) / len(cells) if cells else 1.0


def area_of(text: str) -> tuple[int, int, int, int]:
    """`B2:D9` or `B2` as column, row, last column, last row."""
    ends = [re.fullmatch(r"([A-Z]+)(\d+)", end) for end in text.split(":")]
    (left, top), (right, bottom) = [(number(e[1]), int(e[2])) for e in (ends[0], ends[-1]) if e]
    return left, top, right, bottom


def number(name: str) -> int:
    at = 0
    for letter in name:
        at = at * 26 + ord(letter) - 64
    return at


def each(want: Any) -> tuple[Any, ...]:
    return want.values if isinstance(want, AnyOf) else (want,)


def shown(value: Any) -> Any:
    return value.text if isinstance(value, Shown) else str(value) if isinstance(value, bool | int | float) else value


def is_number(want: Any) -> bool:
    return any(isinstance(w, int | float) and not isinstance(w, bool) for w in each(want))


def same_value_as_text(want: Any, got: str) -> bool:
    for w in each(want):
        if isinstance(w, datetime | date) and got[:10] == w.isoformat()[:10]:
            return True
        if isinstance(w, int | float) and not isinstance(w, bool):
            try:
                if float(got) == float(w):
                    return True
            except (ValueError, OverflowError):
                continue
    return False


def other_sign(text: Any, want: Any, got: float) -> bool:
    """Is `got` what the text says if points and commas change places?"""
    if not isinstance(text, str) or any(isinstance(w, int | float) and w * got < 0 for w in each(want)):
        return False
    bare = re.sub(r"[^\d.,]", "", text)
    for decimal, group in ((",", "."), (".", ",")):
        try:
            if abs(float(bare.replace(group, "").replace(decimal, "."))) in (abs(got), abs(got) * 100):
                return True
        except ValueError:
            continue
    return False


def swapped(want: Any, got: datetime) -> bool:
    if not isinstance(want, date) or want.day == want.month:
        return False
    return (want.year, want.month, want.day) == (got.year, got.day, got.month)
