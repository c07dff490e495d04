"""Values beside what explains them: cells around findings, and samples of the columns that a review asks about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.api.operations import Call
from console.api.values import ShownCells, WantedCells, cells_or_trouble
from console.web.explanations import Explanation
from core.jobs import Job
from runner.engine.common import a1

_INPUTS = 3  # that one page reads
_WINDOW_ROWS = 24  # drawn of one sheet
_COLUMNS = 12
_LAST_ROW = 10_000_000


@dataclass(frozen=True, slots=True)
class CellWindow:
    """Rows of a sheet as they were sent, with marks where findings are."""

    title: str
    columns: list[str]
    rows: list[tuple[int, list[tuple[str, str]]]]  # number; text and mark of each cell


@dataclass(frozen=True, slots=True)
class SeenFindings:
    """The values of the findings that a page shows."""

    shown: Mapping[str, ShownCells]  # by input
    windows: list[CellWindow]
    trouble: str

    def value(self, finding: Mapping[str, Any]) -> str:
        row, column = place(str(finding.get("cell") or ""))
        cells = self.shown.get(str(finding.get("input") or ""))
        return cells.cell(str(finding.get("sheet") or ""), row, column) if cells is not None and row else ""


def place(cell: str) -> tuple[int, int]:
    """Row and column of an address; zeros for none."""
    letters = cell.rstrip("0123456789")
    number = cell[len(letters) :]
    column = a1.column_number(letters) if letters and len(letters) <= 3 else 0
    return (int(number), column) if column and number and len(number) <= 7 else (0, 0)


def seen_findings(call: Call, job: Job, explained: Explanation) -> SeenFindings:
    """Read the cells of the findings that are shown, and those above and below."""
    findings = explained.findings.shown if explained.findings is not None else []
    by_input: dict[str, list[Mapping[str, Any]]] = {}
    one: Mapping[str, Any]
    for one in findings:
        by_input.setdefault(str(one.get("input") or ""), []).append(one)
    shown: dict[str, ShownCells] = {}
    windows: list[CellWindow] = []
    trouble = ""
    for name, group in list(by_input.items())[:_INPUTS]:
        wanted = WantedCells()
        for one in group:
            row, _ = place(str(one.get("cell") or ""))
            sheet = str(one.get("sheet") or "")
            if row:
                rows = wanted.rows.setdefault(sheet, set(explained.heads.get(sheet, ())))
                rows |= {row - 1, row, row + 1} - {0}
        if not wanted.rows:
            continue
        shown[name], why = cells_or_trouble(call, job, name or None, wanted, on="findings")
        trouble = trouble or why
        windows += [_window(sheet, cells, group) for sheet, cells in shown[name].rows.items() if cells]
    return SeenFindings(shown, windows, trouble)


def _window(sheet: str, cells: Mapping[int, Sequence[str]], findings: Sequence[Mapping[str, Any]]) -> CellWindow:
    marks = {
        place(str(one.get("cell") or "")): str(one.get("severity") or "")
        for one in findings
        if str(one.get("sheet") or "") == sheet
    }
    kinds = {"error": "error", "warning": "warning"}
    numbers = sorted(cells)[:_WINDOW_ROWS]
    wide = min(_COLUMNS, max((len(cells[n]) for n in numbers), default=0))
    rows = [
        (
            n,
            [(cells[n][c] if c < len(cells[n]) else "", kinds.get(marks.get((n, c + 1), ""), "")) for c in range(wide)],
        )
        for n in numbers
    ]
    return CellWindow(f"Sheet “{sheet}”", [a1.letters(c + 1) for c in range(wide)], rows)


@dataclass(frozen=True, slots=True)
class SeenQuestions:
    """Samples of the columns that questions are about, and the first rows of their tables."""

    cells: Mapping[str, ShownCells]
    trouble: str

    def samples(self, question: Mapping[str, Any], column: object) -> list[str]:
        cells = self.cells.get(str(question.get("input") or ""))
        if cells is None or not isinstance(column, str):
            return []
        return cells.samples.get(str(question.get("sheet") or ""), {}).get(column, [])

    def picture(self, question: Mapping[str, Any]) -> CellWindow | None:
        """The first rows of the question's table; its columns are marked, and so are those it may be about."""
        cells = self.cells.get(str(question.get("input") or ""))
        sheet = str(question.get("sheet") or "")
        first, _ = _rows_of(question)
        rows = {n: row for n, row in (cells.rows.get(sheet, {}) if cells else {}).items() if first <= n < first + 6}
        if not rows:
            return None
        asked = {a1.column_number(letters) for letters in _columns_of(question)}
        shown = _columns_near(asked, max(len(row) for row in rows.values()))
        drawn = [
            (n, [(row[c - 1] if c <= len(row) else "", "asked" if c in asked else "") for c in shown])
            for n, row in sorted(rows.items())
        ]
        return CellWindow(f"Sheet “{sheet}”" if sheet else "The sheet", [a1.letters(c) for c in shown], drawn)


def seen_questions(call: Call, job: Job, questions: Sequence[Mapping[str, Any]]) -> SeenQuestions:
    """Five values of each column that is asked about, and of each that may be the answer."""
    by_input: dict[str, WantedCells] = {}
    for one in questions:
        wanted = by_input.setdefault(str(one.get("input") or ""), WantedCells())
        sheet = str(one.get("sheet") or "")
        first, last = _rows_of(one)
        wanted.rows.setdefault(sheet, set()).update(range(first, first + 6))
        known = {letters for letters, _, _ in wanted.samples.setdefault(sheet, [])}
        wanted.samples[sheet] += [(c, first + 1, last) for c in sorted(_columns_of(one) - known)]
    cells: dict[str, ShownCells] = {}
    trouble = ""
    for name, wanted in list(by_input.items())[:_INPUTS]:
        cells[name], why = cells_or_trouble(call, job, name or None, wanted, on="review")
        trouble = trouble or why
    return SeenQuestions(cells, trouble)


def _columns_of(question: Mapping[str, Any]) -> set[str]:
    """Letters of the column that a question is about, and of those that its candidates name."""
    letters = {str(question.get("column") or "")}
    if question.get("kind") == "required":
        letters |= {str(one.get("value") or "") for one in question.get("candidates") or ()}
    return {one for one in letters if one.isascii() and one.isalpha() and one.isupper() and len(one) <= 3}


def _columns_near(asked: set[int], width: int) -> list[int]:
    """The columns to draw: the first, or those around what is asked."""
    wide = min(_COLUMNS, width)
    begin = max(1, min(min(asked, default=1) - 2, width - wide + 1))
    near = list(range(begin, begin + wide))
    return near if all(c in near for c in asked) else sorted({*near[: max(1, wide - len(asked))], *asked})[:_COLUMNS]


def _rows_of(question: Mapping[str, Any]) -> tuple[int, int]:
    """The first and last row of the table that a question is about."""
    start, _, end = str(question.get("table") or "").rpartition("!")[2].partition(":")
    first, _ = place(start)
    last, _ = place(end)
    return first or 1, last or _LAST_ROW
