"""CSV, TSV and their kin as a book of one sheet. Values stay text: what they mean is decided later."""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.books import Book, Layout, Visibility
from runner.engine.reading.delimited import dialects, encodings
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.values import Row, Value

_SAMPLE_LINES = 2_000
_SAMPLE_CHARS = 512 * 1024
_LINES_PER_FIELD = 500  # a quoted field that runs on for more lines was never closed
_MAX_LINE = 16 * 1024 * 1024


class _Lines:
    """The lines of a text, with a memory of those that the current record has taken."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._again: list[str] = []
        self.taken: list[str] = []

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._again.pop() if self._again else self._text.readline(_MAX_LINE)
        if not line:
            raise StopIteration
        if len(line) >= _MAX_LINE:
            raise errors.too_large(f"a line of over {_MAX_LINE} characters")
        self.taken.append(line)
        if len(self.taken) > _LINES_PER_FIELD:
            raise csv.Error("a quoted field does not end")
        return line

    def give_back(self) -> str:
        """The first line of the record; the others will be read again."""
        first, *others = self.taken
        self._again += reversed(others)
        self.taken = []
        return first


class DelimitedSheet:
    def __init__(
        self,
        file: BinaryIO,
        name: str,
        encoding: encodings.Encoding,
        dialect: dialects.Dialect,
        limits: ReadLimits,
    ) -> None:
        self.name = name
        self.index = 0
        self.visibility: Visibility = "visible"
        self._file = file
        self._encoding = encoding
        self._dialect = dialect
        self._limits = limits

    def layout(self) -> Layout:
        return Layout()

    def rows(self) -> Iterator[Row]:
        cells = 0
        for number, fields in enumerate(self._records(), 1):
            cells += len(fields)
            if len(fields) > self._limits.max_columns or cells > self._limits.max_cells:
                raise errors.too_large(f"row {number} has {len(fields)} columns, {cells} cells up to it")
            values: list[Value] = [one or None for one in fields]
            while values and values[-1] is None:
                values.pop()
            if values:
                yield number, values

    def _records(self) -> Iterator[list[str]]:
        with _Text(self._file, self._encoding) as text:
            lines = _Lines(text)
            for _ in islice(lines, self._dialect.skip_lines):
                pass
            while True:
                lines.taken.clear()
                reader = self._reader(lines)
                try:
                    for record in reader:
                        lines.taken.clear()
                        yield record
                except csv.Error:
                    if not lines.taken:
                        raise errors.damaged("a line cannot be taken apart") from None
                    yield self._unquoted(lines.give_back())
                else:
                    return

    def _reader(self, lines: Iterator[str]) -> Iterator[list[str]]:
        dialect = self._dialect
        return csv.reader(
            lines,
            delimiter=dialect.delimiter,
            quotechar=dialect.quote,
            escapechar=dialect.escape,
            strict=False,
        )

    def _unquoted(self, line: str) -> list[str]:
        """A line whose quote never closes, with its quotes as plain characters."""
        return line.rstrip("\r\n").split(self._dialect.delimiter)


class _Text:
    """The file as text from its start; leaving it does not close the file."""

    def __init__(self, file: BinaryIO, encoding: encodings.Encoding) -> None:
        file.seek(0)
        self._text = io.TextIOWrapper(file, encoding=encoding.name, errors=encoding.errors, newline="")

    def __enter__(self) -> io.TextIOWrapper:
        return self._text

    def __exit__(self, *_: object) -> None:
        self._text.detach()


def open_delimited(file: BinaryIO, *, name: str, limits: ReadLimits) -> Book:
    encoding = encodings.detect(file)
    lines: list[str] = []
    characters = 0
    with _Text(file, encoding) as text:
        while len(lines) < _SAMPLE_LINES and characters < _SAMPLE_CHARS:
            line = text.readline(_MAX_LINE)
            if not line:
                break
            lines.append(line)
            characters += len(line)
    dialect = dialects.detect(lines, name=name)
    sheet = DelimitedSheet(file, PurePath(name).stem or "Sheet1", encoding, dialect, limits)
    notes: dict[str, object] = {
        "encoding": encoding.name,
        "encoding_sure": encoding.sure,
        "delimiter": dialect.delimiter,
        "quote": dialect.quote,
        "escape": dialect.escape,
        "sep_line": bool(dialect.skip_lines),
    }
    is_tabbed = dialect.delimiter == "\t"
    return Book(file_format="tsv" if is_tabbed else "csv", reader="text", sheets=[sheet], notes=notes, source=file)
