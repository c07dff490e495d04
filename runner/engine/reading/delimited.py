"""Reads CSV, TSV and similar files as a book of one sheet. Values stay text; later passes convert them."""

import io
import json
import re
from collections.abc import Iterator
from itertools import compress, zip_longest
from pathlib import PurePath
from typing import BinaryIO, Final

from runner.engine.reading import dialects, encodings, errors
from runner.engine.reading.books import (
    BLOCK,
    Block,
    Book,
    Layout,
    ReadingChoice,
    ReadLimits,
    Remark,
    Row,
    TextOptions,
    Value,
    Visibility,
    rows_of,
)
from runner.engine.reading.kinds import LEAST_VALUES
from runner.engine.reading.records import Dialect, Records, Trouble, Troubles, line_blocks
from runner.engine.reading.reshaping import Reshaper, unquoted_blocks

_SAMPLE_LINES: Final = 2_000
_SAMPLE_CHARS: Final = 512 * 1024
_SPOILED_SIGNS: Final = {"replace": re.compile("\ufffd"), "surrogateescape": re.compile("[\udc80-\udcff]")}
_REMARKS: Final[dict[Trouble, str]] = {
    "open_quote": "a quote opens a field here and never closes it; it was read as a plain character",
    "stray_quote": "a quote inside a quoted field is not doubled; it was read as part of the value",
    "undecodable": "some bytes are not valid {encoding}; they were read as {instead}",
    "entities": "the row has HTML entities such as &amp; in its text; kept as they are",
    "line_quoted": "the whole line is in quotes; it was read without them",
    "line_joined": "a line break inside a value is not quoted; the line was joined with the next",
    "delimiter_mixed": "the row has another delimiter than the others; it was split by its own",
    "short_row": "all rows have one cell fewer than the header: values may be shifted against the names of the columns",
    "encoded_twice": "letters look as if UTF-8 had been read as Windows-1252 before it was saved, or are lost; kept as "
    "they are",
}
_REMEDIES: Final[dict[Trouble, str]] = {
    "undecodable": '"reading": {"encoding": "cp1252"}',
    "short_row": "give the header as many cells as the rows have",
    "encoded_twice": "send the file as it was before that",
    "entities": "export the text without entities",
    "line_quoted": "quote values, not lines",
    "line_joined": "quote values that contain line breaks",
    "delimiter_mixed": "use one delimiter in the whole file",
}
_LEAST_WIDTH: Final = 3  # columns of a header from which a row without the last cell is no note
_SIGN_IN_WORDS: Final = {"\t": "tab", " ": "blank"}


class DelimitedSheet:
    """The one sheet of a text file."""

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        encoding: encodings.Encoding,
        dialect: Dialect,
        limits: ReadLimits,
    ) -> None:
        """Prepare to read the file from its start, by its encoding and its dialect."""
        self.name = name
        self.index = 0
        self.visibility: Visibility = "visible"
        self._file = file
        self._encoding = encoding
        self._dialect = dialect
        self._limits = limits
        self._troubles = Troubles()
        self._reshaper = Reshaper(dialect, self._troubles)

    def layout(self) -> Layout:
        return Layout()

    def rows(self) -> Iterator[Row]:
        return rows_of(self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the rows by column; records of another shape than the table's are corrected on the way."""
        limits = self._limits
        pending: list[list[str]] = []
        cells = rows_above = header_width = 0
        widths_below = set[int]()  # widths of the rows under the header
        for records in self._read_batches():
            widths = list(map(len, records))
            widths_below.update(widths if header_width else widths[1:])
            header_width = header_width or (widths[0] if all(records[0]) else -1)
            self._reshaper.reshape(rows_above + len(pending), records, widths)
            cells += sum(widths)
            if max(widths) > limits.max_columns or cells > limits.max_cells:
                raise _refuse_size(rows_above + len(pending), widths, cells, limits)
            pending += records
            while len(pending) >= BLOCK:
                yield from _to_block(rows_above, pending[:BLOCK])
                rows_above += BLOCK
                del pending[:BLOCK]
        if (
            widths_below == {header_width - 1}
            and header_width >= _LEAST_WIDTH
            and rows_above + len(pending) > LEAST_VALUES
        ):
            self._troubles.add("short_row", 1)
        yield from _to_block(rows_above, pending)

    def remarks(self) -> list[Remark]:
        """Return remarks on the ambiguous rows of the last reading, as far as it got."""
        instead = "Windows-1252" if self._encoding.errors == "surrogateescape" else "U+FFFD"
        return [
            Remark(
                code=kind,
                message=_REMARKS[kind].format(encoding=self._encoding.name, instead=instead),
                rows=tuple(rows),
                count=self._troubles.counts[kind],
                settle=_REMEDIES.get(kind, _manifest_line(quote="")),
            )
            for kind, rows in self._troubles.rows.items()
        ]

    def _read_batches(self) -> Iterator[list[list[str]]]:
        """Yield the records of the file from its start, batch by batch."""
        with _OpenText(self._file, self._encoding) as text:
            for _ in range(self._dialect.skip_lines):
                text.readline()
            lines = unquoted_blocks(line_blocks(text)) if self._dialect.in_quotes else line_blocks(text)
            records = Records(lines, self._dialect, spoiled=_SPOILED_SIGNS.get(self._encoding.errors))
            self._troubles = records.troubles
            self._reshaper = Reshaper(self._dialect, records.troubles)
            yield from filter(None, records.batches())


def _to_block(above: int, records: list[list[str]]) -> Iterator[Block]:
    """Turn the non-blank records into a block of columns; nothing if there are none. `above`: how many records are
    before them."""
    numbers = list(range(above + 1, above + len(records) + 1))
    filled = list(map(any, records))
    if not all(filled):
        numbers, records = list(compress(numbers, filled)), list(compress(records, filled))
    columns: list[list[Value]] = [[cell or None for cell in column] for column in zip_longest(*records)]
    while columns and not any(columns[-1]):
        columns.pop()
    if columns:
        yield Block(numbers, columns)


def _refuse_size(above: int, widths: list[int], cells: int, limits: ReadLimits) -> errors.InputUnreadable:
    """Make the error for a file with too many columns or cells."""
    wide_row = next((row for row, width in enumerate(widths, above + 1) if width > limits.max_columns), None)
    if wide_row is not None:
        width = widths[wide_row - above - 1]
        return errors.too_wide(f"row {wide_row} has {width:,} columns; the limit is {limits.max_columns:,}")
    return errors.too_large(f"{cells:,} cells up to row {above + len(widths)}; the limit is {limits.max_cells:,}")


class _OpenText:
    """The file as text from its start; leaving the context does not close the file."""

    def __init__(self, file: BinaryIO, encoding: encodings.Encoding) -> None:
        """Go to the start of the file."""
        file.seek(0)
        self._text = io.TextIOWrapper(file, encoding=encoding.name, errors=encoding.errors, newline="")

    def __enter__(self) -> io.TextIOWrapper:
        return self._text

    def __exit__(self, *_: object) -> None:
        self._text.detach()


def open_delimited(file: BinaryIO, *, name: str, limits: ReadLimits, options: TextOptions) -> Book:
    """Open a text file; what the manifest does not declare about it is detected."""
    encoding = encodings.detect(file, declared=options.encoding)
    sample, is_cut = _read_sample(file, encoding)
    dialect = dialects.detect(sample, name=name, is_cut=is_cut, delimiter=options.delimiter, quote=options.quote)
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
    return Book(
        file_format="tsv" if is_tabbed else "csv",
        reader="text",
        sheets=[sheet],
        notes=notes,
        choices=[*encoding_choice(encoding), *_delimiter_choice(dialect)],
        source=file,
    )


def _manifest_line(**option: str) -> str:
    """Return a line of the manifest that sets an option of `reading`."""
    return f'"reading": {json.dumps(option, ensure_ascii=False)}'


def _read_sample(file: BinaryIO, encoding: encodings.Encoding) -> tuple[list[str], bool]:
    """Return the first lines, and whether there are more."""
    lines: list[str] = []
    characters = 0
    with _OpenText(file, encoding) as text:
        for block in line_blocks(text):
            lines += block
            characters += sum(map(len, block))
            if len(lines) > _SAMPLE_LINES or characters >= _SAMPLE_CHARS:
                return lines[:_SAMPLE_LINES], True
    return lines, False


def encoding_choice(encoding: encodings.Encoding) -> Iterator[ReadingChoice]:
    """Yield the choice of an encoding, if there was one."""
    if encoding.evidence:
        rivals = [name for name in encoding.evidence if name != encoding.name]
        other = f"; {rivals[0]} gives a different text that is as plausible" if rivals else ""
        yield ReadingChoice(
            kind="encoding",
            chosen=encoding.name,
            evidence=encoding.evidence,
            sure=encoding.sure,
            settle=_manifest_line(encoding=encoding.name),
            message=f"the text is not UTF-8 and was read as {encoding.name}{other}",
        )


def _delimiter_choice(dialect: Dialect) -> Iterator[ReadingChoice]:
    """Yield the choice of a delimiter, if another one fits nearly as well."""
    if dialect.sure and dialect.evidence.get(dialect.rival, 0) < 2:
        return
    chosen, rival = (_SIGN_IN_WORDS.get(sign, sign) for sign in (dialect.delimiter, dialect.rival))
    other = f"{rival} would split them as well" if rival else "not every line has one"
    yield ReadingChoice(
        kind="delimiter",
        chosen=chosen,
        evidence={_SIGN_IN_WORDS.get(sign, sign): count for sign, count in dialect.evidence.items()},
        sure=dialect.sure,
        settle=_manifest_line(delimiter=dialect.delimiter),
        message=f"columns were split at each {chosen}, but {other}",
    )
