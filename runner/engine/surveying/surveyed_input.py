"""An input of a job, with what the survey finds in it: its sheets, its tables, and the account of its rows."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from runner.engine.common.findings import FindingPlace
from runner.engine.contract import EndCode, InputFile, Json
from runner.engine.corrections.corrected import Corrections, seems_keyed
from runner.engine.document_types import SheetHead
from runner.engine.options import ReadingOptions
from runner.engine.protocol import EngineStop
from runner.engine.reading import Book, InputUnreadable, TextOptions, open_book
from runner.engine.reading.spool import SpooledSheet
from runner.engine.surveying.ledger import SheetBooks
from runner.engine.surveying.partitions import PartitionDoubt
from runner.engine.tables.sources import SourceTable

_LONGEST_LABEL: Final = 200  # characters of a sheet's name that a memory keeps
UNMATCHED: Final = "no pattern in reading.sheets matches it"
_MOST_SHEETS, _LONGEST_NAME = 10, 60  # sheets named in a message, and characters of their names


class SurveyedInput:
    """A primary input: read once, and again only if a sheet is too large to spool.

    `survey` fills in what it found; `close_books` accounts for the rows after they were streamed.
    """

    def __init__(self, file: InputFile, reading: ReadingOptions, corrections: Corrections | None = None) -> None:
        """Know an input that is not opened yet; `corrections` replace rejected rows of it by corrected ones."""
        self.file = file
        self._corrections = corrections
        self.options = TextOptions(encoding=reading.encoding, delimiter=reading.delimiter, quote=reading.quote)
        if (reading.encoding or reading.delimiter or reading.quote) and seems_keyed(file.path):
            self.options = TextOptions()  # the manifest is about the sender's files, not about how people save rejects
        self.format = ""  # of the file, as its reader found it
        self.reader = ""
        self.notes: Json = {}  # what the reader found out about the file, such as its encoding
        self.sheets: list[SheetHead] = []
        self.tables: list[SourceTable] = []  # that hold records, for all we know
        self.skipped: list[SourceTable] = []  # left out by a person or by a hook
        self.spools: dict[int, SpooledSheet] = {}  # sheets that were read, by their place in the book
        self.books: dict[int, SheetBooks] = {}  # the account of their rows
        self.partitions: list[PartitionDoubt] = []  # parts of sheets that could be cut into tables otherwise
        self.is_single = False  # it has one sheet

    def label(self, sheet: str) -> str:
        """Return what a memory calls a sheet: its name, or nothing for the only one, which may be named after the
        file."""
        return "" if self.is_single else sheet[:_LONGEST_LABEL]

    @property
    def letters(self) -> str:
        """Return the letters of the file's name, so that `members-2026-06.csv` and `Members 07.csv` are alike."""
        stem = self.file.name.rpartition("/")[2].rpartition(".")[0]
        return "".join(filter(str.isalpha, stem)).casefold()[:_LONGEST_LABEL]

    @property
    def has_no_bytes(self) -> bool:
        """Whether the file is empty."""
        return self.file.path.stat().st_size == 0

    def why_empty(self) -> str:
        """Explain in words why the input has no rows of data."""
        if self.has_no_bytes:
            return "the file has 0 bytes"
        if self.skipped and not self.tables:
            return "every sheet with a table was left out, by a person or by a hook"
        if any(t.has_data for t in self.tables):
            return "no row of its tables is a row of data"
        if self.tables:
            return "a header without rows below it"
        unread = {row["skipped"] for row in self.sheets if "skipped" in row}
        if self.spools or not unread:
            return "it contains no table"
        names = ", ".join(f"“{row['name'][:_LONGEST_NAME]}”" for row in self.sheets[:_MOST_SHEETS])
        names += f" and {len(self.sheets) - _MOST_SHEETS} more" if len(self.sheets) > _MOST_SHEETS else ""
        if unread == {UNMATCHED}:
            return f"no sheet matches reading.sheets; its sheets are {names}"
        return f"none of its sheets is read ({names}): {'; '.join(sorted(unread))}"

    @contextmanager
    def book(self) -> Iterator[Book]:
        """Open the file until the context ends, with corrected rows in place of the rejected ones; raises EngineStop if
        it is unreadable."""
        try:
            with open_book(self.file.path, name=self.file.hint, options=self.options) as book:
                if self._corrections is not None:
                    book.sheets = [self._corrections.of(self.file.name, sheet) for sheet in book.sheets]
                yield book
        except InputUnreadable as error:
            raise EngineStop(
                EndCode.INPUT_UNREADABLE,
                f"{self.file.name}: {error.message}",
                input=self.file.name,
                reason=error.code,
                remedy=error.remedy,
            ) from None

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Open a context within which the tables' rows can be read again; sheets that were too long to spool are
        reopened."""
        large = [t for t in (*self.tables, *self.skipped) if not self.spools[t.sheet.index].complete]
        if not large:
            yield
            return
        with self.book() as book:
            sheets = {s.index: s for s in book.sheets}
            for table in large:
                table.sheet = sheets[table.sheet.index]
                self.spools[table.sheet.index].reopen(table.sheet)
            yield

    def close_books(self, used: Collection[str], refs: Iterator[str]) -> None:
        """Set `books`, which account for every row that was read.

        `used`: ids of the tables in the output; `refs`: short names for all tables.
        """
        every = sorted((*self.tables, *self.skipped), key=lambda t: (t.table.range.top, t.table.range.left))
        for index, spool in self.spools.items():
            of_sheet = [
                (t, next(refs), t in self.skipped or (t.has_data and t.id not in used))
                for t in every
                if t.sheet.index == index
            ]
            self.books[index] = SheetBooks(spool, of_sheet, FindingPlace(self.file.name, spool.name, ""))
