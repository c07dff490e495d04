"""Writes the normalized workbook front to back: a zip whose sheets grow row by row.

An entry may open with a *head*: bytes of fixed length stored as one uncompressed deflate block in front of the
compressed rest. Its place in the file is known, so it can be written again when the entry is complete; its
checksum is joined with that of the rest. That is how a sheet gets its true dimension and widths while streaming.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Final

from isal import isal_zlib

from runner.engine.common import a1
from runner.engine.common.fields import ANY
from runner.engine.common.findings import Findings
from runner.engine.contract import EndCode
from runner.engine.document_types import ExtraSheet
from runner.engine.mapping.output_layout import OutColumn
from runner.engine.protocol import EngineStop
from runner.engine.writing import parts
from runner.engine.writing.parts import FORMATS, HEADER, KIND_OF, CellFormatter, StyleSheet, cell_text, cut, spelled

LOCAL: Final = struct.Struct("<4s5H3I2H")
CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
END: Final = struct.Struct("<4s4H2IH")
_STORED_BLOCK: Final = struct.Struct("<BHH")  # before the bytes of an uncompressed deflate block
DATE_1980: Final = 0x21  # a fixed date: a job gives the same bytes whenever it runs
DEFLATED: Final = 8
_LEVEL: Final = 1
MAX_HEAD: Final = 0xFFFF


class ArchiveWriter:
    """Writes a zip to a seekable file, one entry after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write into a seekable file from where it is; nothing is written yet."""
        self.file = file
        self._directory: list[bytes] = []  # the records of the entries that are complete

    def entry(self, name: str, head: bytes = b"") -> "EntryWriter":
        """Open an entry; close it before the next one. `head`: its first bytes, which `close` may replace."""
        return EntryWriter(self, name, head)

    def put(self, name: str, text: str) -> None:
        """Write a whole entry that consists of this text."""
        entry = self.entry(name)
        entry.write(text.encode())
        entry.close()

    def add_to_directory(self, record: bytes) -> None:
        """Note the record of an entry that is complete."""
        self._directory.append(record)

    def close(self) -> None:
        """Complete the archive: write its directory and the end record."""
        offset = self.file.tell()
        listing = b"".join(self._directory)
        count = len(self._directory)
        self.file.write(listing)
        self.file.write(END.pack(b"PK\5\6", 0, 0, count, count, len(listing), offset, 0))
        self.file.flush()


class EntryWriter:
    """One file of the archive, open for writing."""

    def __init__(self, archive: ArchiveWriter, name: str, head: bytes) -> None:
        """Write the entry's own header and the head, stored as they are."""
        self._archive = archive
        self._file = archive.file
        self._name = name.encode()
        self._start = self._file.tell()
        self._file.write(LOCAL.pack(b"PK\3\4", 20, 0, DEFLATED, 0, DATE_1980, 0, 0, 0, len(self._name), 0))
        self._file.write(self._name)
        self._data_at = self._file.tell()
        self._head = head
        if head:
            self._file.write(_STORED_BLOCK.pack(0, len(head), len(head) ^ 0xFFFF) + head)
        self._pack = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)
        self._crc = 0
        self.size = 0  # bytes after the head

    def write(self, data: bytes) -> None:
        """Append bytes to the entry; they are compressed, and counted for its checksum."""
        self._crc = isal_zlib.crc32(data, self._crc)
        self.size += len(data)
        self._file.write(self._pack.compress(data))

    def close(self, head: bytes | None = None) -> None:
        """Finish the entry; `head` replaces the one given at the start, and must have its length (else ValueError)."""
        self._file.write(self._pack.flush())
        end = self._file.tell()
        if head is not None:
            if len(head) != len(self._head):
                raise ValueError("a head keeps its length")
            self._file.seek(self._data_at + _STORED_BLOCK.size)
            self._file.write(head)
            self._head = head
        crc = isal_zlib.crc32_combine(isal_zlib.crc32(self._head), self._crc, self.size)
        size, packed = self.size + len(self._head), end - self._data_at
        self._file.seek(self._start)
        self._file.write(LOCAL.pack(b"PK\3\4", 20, 0, DEFLATED, 0, DATE_1980, crc, packed, size, len(self._name), 0))
        self._file.seek(end)
        sizes = (crc, packed, size, len(self._name))
        record = CENTRAL.pack(b"PK\1\2", 20, 20, 0, DEFLATED, 0, DATE_1980, *sizes, 0, 0, 0, 0, 0, self._start)
        self._archive.add_to_directory(record + self._name)


MAX_ROWS: Final = 1_048_576
MAX_COLUMNS: Final = 16_384
MAX_NAME: Final = 31  # UTF-16 units of a sheet's name
_RESERVED: Final = "history"  # a name that Excel reserves
MAX_SHEET_BYTES: Final = 0xF000_0000  # an entry's size is a 32-bit number
_MEASURED_VALUES: Final = 64  # values per chunk that determine a column's width
_ROWS_TO_JOIN: Final = 512  # rows that become one text: few enough to stay in the CPU cache
_WIDEST_COLUMN: Final = 60
_NARROWEST_COLUMN: Final = 8
_FINDING_COLUMNS: Final = (
    "severity",
    "code",
    "cell",
    "field",
    "message",
    "rule",
    "sheet",
    "input",
    "table",
    "file",
    "line",
)


class OutputColumn:
    """A column to write: its header, its number format, and the kind of value the format is for."""

    __slots__ = ("header", "kind", "number_format")

    def __init__(self, header: str, number_format: str | None = None, kind: type | None = None) -> None:
        """Without a format, or a kind, all its values have the usual one of their own kind."""
        self.header = header
        self.number_format = number_format
        self.kind = kind

    @classmethod
    def typed(cls, header: str, field_type: str, number_format: str | None) -> "OutputColumn":
        """Return a column for values of a field's type."""
        return cls(header, number_format, KIND_OF.get(field_type, str))


class BookWriter:
    """Writes one workbook into a seekable file; sheets one after the other."""

    def __init__(self, file: IO[bytes], *, title: str) -> None:
        """Begin a workbook without sheets; `title`: in its properties."""
        self.archive = ArchiveWriter(file)
        self.styles = StyleSheet()
        self._title = title
        self._sheets: list[parts.SheetPart] = []

    def sheet(self, name: str, columns: list[OutputColumn]) -> "SheetWriter":
        """Open a sheet; close it before the next one."""
        return SheetWriter(self, name, columns)

    def free_name(self, name: str) -> str:
        """Return `name`, or the first `name (n)` that is not in use, as a sheet may be called: within 31 characters,
        and without those that Excel forbids."""
        clean = "".join("_" if char in "[]:*?/\\" or not char.isprintable() else char for char in name).strip("' ")
        used = {_RESERVED, *(sheet.name.casefold() for sheet in self._sheets)}
        free, number = cut(clean, MAX_NAME).rstrip("' ") or "Sheet", 1
        while free.casefold() in used:
            number += 1
            suffix = f" ({number})"
            free = cut(clean or "Sheet", MAX_NAME - len(suffix)) + suffix
        return free

    def open_part(self, name: str) -> tuple[int, str]:
        """Add a sheet under a free name; returns its number, from 1, and its name."""
        free_name = self.free_name(name)
        self._sheets.append(parts.SheetPart(free_name))
        return len(self._sheets), free_name

    def closed(self, number: int, filtered: str) -> None:
        """Note the filtered area of a sheet that is complete."""
        self._sheets[number - 1].filtered = filtered

    def close(self) -> None:
        """Write the small parts; a workbook without sheets gets an empty one."""
        if not self._sheets:
            self.sheet("Normalized", []).close()
        put = self.archive.put
        put("xl/workbook.xml", parts.workbook(self._sheets))
        put("xl/_rels/workbook.xml.rels", parts.workbook_rels(len(self._sheets)))
        put("xl/styles.xml", self.styles.xml())
        put("docProps/core.xml", parts.core(self._title))
        put("docProps/app.xml", parts.app())
        put("_rels/.rels", parts.root_rels())
        put("[Content_Types].xml", parts.content_types(len(self._sheets)))
        self.archive.close()


class SheetWriter:
    """Writes a sheet, and continues on further sheets at the row limit of the format."""

    def __init__(self, book: BookWriter, name: str, columns: list[OutputColumn]) -> None:
        """Write to a first sheet called `name`; further sheets follow wherever one is full."""
        self._book = book
        self._name = name
        self._columns = columns[:MAX_COLUMNS]
        styles = book.styles
        self._cells = [
            CellFormatter(a1.letters(n), styles.of(c.number_format), c.kind, styles.by_kind)
            for n, c in enumerate(self._columns, 1)
        ]
        self._widths = [len(c.header) + 3 for c in self._columns]  # in characters; they grow with the values
        self.rows = 0  # data rows on all its sheets
        self.names: list[str] = []  # of its sheets
        self._rows_of_full_sheets: list[int] = []  # data rows on each full sheet
        self._open_next_sheet()

    def _open_next_sheet(self) -> None:
        """Open the next sheet and write its header row."""
        self._number, name = self._book.open_part(self._name)
        self.names.append(name)
        self._row = 1
        widest = parts.sheet_head([_WIDEST_COLUMN] * len(self._columns), MAX_ROWS, active=self._number == 1)
        self._head_size = len(widest)
        self._entry = self._book.archive.entry(f"xl/worksheets/sheet{self._number}.xml", widest.encode())
        header = "".join(
            f'<c r="{a1.letters(number)}1" s="{HEADER}" t="inlineStr">{cell_text(column.header)}</c>'
            for number, column in enumerate(self._columns, 1)
        )
        self._entry.write(f'<sheetData><row r="1" ht="18" customHeight="1">{header}</row>'.encode())

    def rows_by_sheet(self) -> list[int]:
        """Data rows on each of its sheets, in the order of `names`."""
        return [*self._rows_of_full_sheets, self._row - 1]

    def altered_cells(self) -> list[int]:
        """Return how many cells of each column could not be written unchanged so far."""
        return [cells.altered for cells in self._cells]

    def write(self, columns: list[list[Any]], count: int) -> None:
        """Append `count` rows, given as one list per column; continues on a new sheet wherever one is full."""
        written = 0
        while written < count:
            fitting = min(count - written, MAX_ROWS - self._row)
            if fitting == 0 or self._entry.size > MAX_SHEET_BYTES:
                self._close_sheet()
                self._rows_of_full_sheets.append(self._row - 1)
                self._open_next_sheet()
                continue
            slices = columns if fitting == count else [column[written : written + fitting] for column in columns]
            self._append_rows(slices, fitting)
            written += fitting
        self.rows += count

    def _append_rows(self, columns: list[list[Any]], count: int) -> None:
        """Write rows to the open sheet, which has room for them, and widen its columns."""
        rows = list(map(str, range(self._row + 1, self._row + 1 + count)))
        pieces: parts.Pieces = ['<row r="', rows, '">']
        for cells, values in zip(self._cells, columns, strict=True):
            pieces += cells.pieces(values, rows)
        pieces.append("</row>")
        for text in _join_rows(pieces, count):
            self._entry.write(text.encode(errors="replace"))
        self._row += count
        self._widen_columns(columns)

    def _widen_columns(self, columns: list[list[Any]]) -> None:
        """Widen columns to the longest of the first values of a chunk."""
        for index, values in enumerate(columns):
            if self._widths[index] < _WIDEST_COLUMN:
                longest = max(
                    (len(spelled(value)) for value in values[:_MEASURED_VALUES] if value is not None), default=0
                )
                self._widths[index] = max(self._widths[index], longest + 2)

    def _close_sheet(self) -> None:
        """Finish the open sheet with its true dimension and widths."""
        last = f"{a1.letters(max(1, len(self._columns)))}{self._row}"
        filter_area = f"A1:{last}" if self._columns else ""
        tail = f'<autoFilter ref="{filter_area}"/>' if filter_area else ""
        self._entry.write(f"</sheetData>{tail}{parts.SHEET_TAIL}".encode())
        widths = [min(_WIDEST_COLUMN, max(_NARROWEST_COLUMN, width)) for width in self._widths]
        head = parts.sheet_head(widths, self._row, active=self._number == 1)
        self._entry.close(head.ljust(self._head_size).encode())
        self._book.closed(self._number, filter_area)

    def close(self) -> None:
        """Finish the last sheet."""
        self._close_sheet()


def _join_rows(pieces: parts.Pieces, count: int) -> Iterator[str]:
    """Join the pieces of `count` rows, row by row; yields the text of a few hundred rows at a time.

    Faster than zipping them: the constants of all rows are repeated at once, and the others put between them by column.
    """
    pieces = _join_constants(pieces)
    texts = [piece if isinstance(piece, str) else "" for piece in pieces] * count
    for place, piece in enumerate(pieces):
        if not isinstance(piece, str):
            texts[place :: len(pieces)] = piece
    texts_at_once = _ROWS_TO_JOIN * len(pieces)
    for start in range(0, len(texts), texts_at_once):
        yield "".join(texts[start : start + texts_at_once])


def _join_constants(pieces: parts.Pieces) -> parts.Pieces:
    """Join neighbouring constants: fewer pieces per row."""
    joined_pieces: parts.Pieces = []
    for piece in pieces:
        if joined_pieces and isinstance(piece, str) and isinstance(before := joined_pieces[-1], str):
            joined_pieces[-1] = before + piece
        else:
            joined_pieces.append(piece)
    return joined_pieces


class NormalizedBook:
    """The output workbook. Without a file it counts rows and writes nothing."""

    def __init__(self, file: IO[bytes] | None, columns: Sequence[OutColumn], *, title: str, sheet: str) -> None:
        """Open the workbook and its main sheet; without a `file` nothing is written. Raises EngineStop for more columns
        than a sheet has."""
        if len(columns) > MAX_COLUMNS:
            fields = sum(c.field is not None for c in columns)
            raise EngineStop(
                EndCode.INPUT_UNREADABLE,
                f"the result would have {len(columns):,} columns ({fields:,} fields and {len(columns) - fields:,} "
                f"unmapped columns); the limit of a sheet is {MAX_COLUMNS:,}",
                reason="too_large",
                remedy='leave unmapped columns out with "mapping": {"unmapped": "drop"}, or split the input by columns',
            )
        self._book = BookWriter(file, title=title) if file else None
        self.main: SheetWriter | None = (
            self._book.sheet(sheet, [_output_column(c) for c in columns]) if self._book else None
        )
        self.extra: list[ExtraSheet] = []

    def sheets(self) -> list[tuple[str, int]]:
        """Return the data sheets, each with its number of rows."""
        return list(zip(self.main.names, self.main.rows_by_sheet(), strict=True)) if self.main else []

    def finish(self, beside: Iterable[tuple[str, list[list[Any]]]], findings: Findings | None) -> None:
        """Close the main sheet, then write the sheets that hooks added (`beside`) and, if given, the findings."""
        if self._book is None or self.main is None:
            return
        self.main.close()
        for name, (header, *rows) in beside:
            self._add_sheet(name, [str(title) for title in header], rows)
        if findings is not None:
            finding_rows = [finding.as_dict() for finding in findings.listed]
            self._add_sheet(
                "Findings",
                _FINDING_COLUMNS,
                [[finding.get(title) for title in _FINDING_COLUMNS] for finding in finding_rows],
            )
        self._book.close()

    def _add_sheet(self, name: str, header: Sequence[str], rows: list[list[Any]]) -> None:
        """Write an extra sheet, its rows cut or filled to its header, and list it in `extra`."""
        if self._book is None:
            return
        sheet = self._book.sheet(name, [OutputColumn(title) for title in header])
        width = len(header)
        padded_rows = [row[:width] + [None] * (width - len(row)) for row in rows]
        if padded_rows:
            sheet.write([list(column) for column in zip(*padded_rows, strict=True)], len(padded_rows))
        sheet.close()
        self.extra.append({"name": sheet.names[0], "rows": len(padded_rows)})


def _output_column(column: OutColumn) -> OutputColumn:
    """Return a column of the output with the number format of its field's type."""
    field = column.field
    if field is None or field.type == ANY:
        return OutputColumn(column.header)
    return OutputColumn.typed(column.header, field.type, field.number_format or FORMATS.get(field.type))
