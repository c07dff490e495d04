"""Pass 1 for a whole job: open each input, find its tables, say what was found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from runner.engine.errors import EngineStop
from runner.engine.findings import Findings, Place
from runner.engine.orders import InputFile
from runner.engine.reading import Book, InputUnreadable, Sheet, open_book
from runner.engine.sources import SourceTable
from runner.engine.structure import RowScores, find_tables


class Source:
    """A primary input: opened to be surveyed, and again to be streamed where there are many."""

    def __init__(self, file: InputFile, *, keep_open: bool) -> None:
        self.file = file
        self._keep = keep_open
        self._book: Book | None = None
        self.format = ""
        self.reader = ""
        self.notes: dict[str, Any] = {}
        self.sheets: list[dict[str, Any]] = []
        self.tables: list[SourceTable] = []
        self.skipped: list[SourceTable] = []  # left out by a hook

    @contextmanager
    def opened(self) -> Iterator[Book]:
        """The book; tables are bound to its sheets as long as it is open."""
        try:
            book = self._book or open_book(self.file.path, name=self.file.file)
            self._book = book if self._keep else None
            for table in self.tables:
                table.sheet = next(s for s in book.sheets if s.index == table.sheet.index)
            yield book
        except InputUnreadable as error:
            raise EngineStop(
                "input_unreadable",
                f"{self.file.name}: {error.message}",
                input=self.file.name,
                reason=error.code,
                remedy=error.remedy,
            ) from None
        if not self._keep:
            book.close()

    def close(self) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None


def survey(
    source: Source, reading: dict[str, Any], findings: Findings, scores: Callable[[Sheet], RowScores | None]
) -> None:
    """Find the tables of an input; what is left out is said."""
    with source.opened() as book:
        source.format, source.reader, source.notes = book.format, book.reader, dict(book.notes)
        patterns = reading.get("sheets") or ("*",)
        for sheet in book.sheets:
            row: dict[str, Any] = {"name": sheet.name, "index": sheet.index, "visibility": sheet.visibility}
            source.sheets.append(row)
            if not any(fnmatchcase(sheet.name, p) for p in patterns):
                row["skipped"] = "no pattern of reading.sheets names it"
            elif sheet.visibility != "visible" and reading.get("hidden_sheets", "skip") == "skip":
                row["skipped"] = "it is hidden"
                place = Place(source.file.name, sheet.name, "")
                findings.add("hidden_sheet_skipped", "info", "the sheet is hidden and was not read", place=place)
            else:
                source.tables += _tables(source, sheet, reading, scores(sheet))


def _tables(source: Source, sheet: Sheet, reading: dict[str, Any], scores: RowScores | None) -> Iterator[SourceTable]:
    none: frozenset[int] = frozenset()
    rows = columns = none
    if reading.get("hidden_rows") == "skip" or reading.get("hidden_columns") == "skip":
        layout = sheet.layout()
        rows = frozenset(layout.hidden_rows) if reading.get("hidden_rows") == "skip" else none
        columns = frozenset(layout.hidden_columns) if reading.get("hidden_columns") == "skip" else none
    for table in find_tables(sheet, row_scores=scores):
        place = Place(source.file.name, sheet.name, f"{source.file.name}/{sheet.name}!{table.range.a1}")
        yield SourceTable(place, sheet, table, hidden_rows=rows, hidden_columns=columns)
