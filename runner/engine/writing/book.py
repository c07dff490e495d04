"""The normalized workbook: sheets that grow row by row, parts that are known at the end."""

from itertools import chain, repeat
from typing import IO, Any, Final

from runner.engine import a1
from runner.engine.writing import parts
from runner.engine.writing.archive import Archive
from runner.engine.writing.cells import CellFormatter, spelled
from runner.engine.writing.styles import HEADER, KIND_OF, Styles
from runner.engine.writing.texts import cell_text, cut

MAX_ROWS: Final = 1_048_576
MAX_COLUMNS: Final = 16_384
MAX_NAME: Final = 31  # UTF-16 units of a sheet's name
_RESERVED: Final = "history"  # Excel keeps this name for itself
MAX_SHEET_BYTES: Final = 0xF000_0000  # an entry's size is a 32-bit number
_LOOKED_AT: Final = 64  # values per chunk that a column's width is fitted to
_WIDEST: Final = 60
_NARROWEST: Final = 8


class Column:
    """A column to write: its header, its number format, and the kind of value the format is for."""

    __slots__ = ("header", "kind", "number_format")

    def __init__(self, header: str, number_format: str | None = None, kind: type | None = None) -> None:
        self.header = header
        self.number_format = number_format
        self.kind = kind

    @classmethod
    def typed(cls, header: str, field_type: str, number_format: str | None) -> "Column":
        return cls(header, number_format, KIND_OF.get(field_type, str))


class BookWriter:
    """Writes one workbook into a seekable file; sheets one after the other."""

    def __init__(self, file: IO[bytes], *, title: str) -> None:
        self.archive = Archive(file)
        self.styles = Styles()
        self._title = title
        self._sheets: list[parts.SheetPart] = []

    def sheet(self, name: str, columns: list[Column]) -> "SheetWriter":
        """Open a sheet; close it before the next one."""
        return SheetWriter(self, name, columns)

    def free_name(self, name: str) -> str:
        """`name`, or the first `name (n)` that no sheet bears yet, within 31 characters."""
        clean = "".join("_" if c in "[]:*?/\\" or not c.isprintable() else c for c in name).strip("' ")
        taken = {_RESERVED, *(s.name.casefold() for s in self._sheets)}
        free, n = cut(clean, MAX_NAME).rstrip("' ") or "Sheet", 1
        while free.casefold() in taken:
            n += 1
            tail = f" ({n})"
            free = cut(clean or "Sheet", MAX_NAME - len(tail)) + tail
        return free

    def opened(self, name: str) -> tuple[int, str]:
        free = self.free_name(name)
        self._sheets.append(parts.SheetPart(free))
        return len(self._sheets), free

    def closed(self, number: int, filtered: str) -> None:
        self._sheets[number - 1].filtered = filtered

    def close(self) -> None:
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
    """A sheet that goes on, on a next one, where the format's limit of rows is reached."""

    def __init__(self, book: BookWriter, name: str, columns: list[Column]) -> None:
        self._book = book
        self._name = name
        self._columns = columns[:MAX_COLUMNS]
        styles = book.styles
        self._cells = [
            CellFormatter(a1.letters(n), styles.of(c.number_format), c.kind, styles.by_kind)
            for n, c in enumerate(self._columns, 1)
        ]
        self._widths = [len(c.header) + 3 for c in self._columns]
        self.rows = 0  # rows of data over all the sheets it took
        self.names: list[str] = []
        self._full: list[int] = []  # rows of data on the sheets that are full
        self._open()

    def _open(self) -> None:
        self._number, name = self._book.opened(self._name)
        self.names.append(name)
        self._row = 1
        widest = parts.sheet_head([_WIDEST] * len(self._columns), MAX_ROWS, active=self._number == 1)
        self._head_size = len(widest)
        self._entry = self._book.archive.entry(f"xl/worksheets/sheet{self._number}.xml", widest.encode())
        header = "".join(
            f'<c r="{a1.letters(n)}1" s="{HEADER}" t="inlineStr">{cell_text(c.header)}</c>'
            for n, c in enumerate(self._columns, 1)
        )
        self._entry.write(f'<sheetData><row r="1" ht="18" customHeight="1">{header}</row>'.encode())

    def parts(self) -> list[int]:
        """Rows of data on each of the sheets it took."""
        return [*self._full, self._row - 1]

    def odd(self) -> list[int]:
        """How many cells of each column could not be written as they were, so far."""
        return [cells.odd for cells in self._cells]

    def write(self, columns: list[list[Any]], count: int) -> None:
        """Append `count` rows, given as one list per column."""
        at = 0
        while at < count:
            room = min(count - at, MAX_ROWS - self._row)
            if room == 0 or self._entry.size > MAX_SHEET_BYTES:
                self._close_part()
                self._full.append(self._row - 1)
                self._open()
                continue
            part = columns if room == count else [c[at : at + room] for c in columns]
            self._append(part, room)
            at += room
        self.rows += count

    def _append(self, columns: list[list[Any]], count: int) -> None:
        rows = list(map(str, range(self._row + 1, self._row + 1 + count)))
        pieces: list[Any] = [repeat('<row r="'), rows, repeat('">')]
        for cells, values in zip(self._cells, columns, strict=True):
            pieces += cells.pieces(values, rows)
        pieces.append(repeat("</row>"))
        text = "".join(chain.from_iterable(zip(*_merged(pieces), strict=False)))
        self._entry.write(text.encode(errors="replace"))
        self._row += count
        self._fit(columns)

    def _fit(self, columns: list[list[Any]]) -> None:
        for n, values in enumerate(columns):
            if self._widths[n] < _WIDEST:
                longest = max((len(spelled(v)) for v in values[:_LOOKED_AT] if v is not None), default=0)
                self._widths[n] = max(self._widths[n], longest + 2)

    def _close_part(self) -> None:
        last = f"{a1.letters(max(1, len(self._columns)))}{self._row}"
        filtered = f"A1:{last}" if self._columns else ""
        tail = f'<autoFilter ref="{filtered}"/>' if filtered else ""
        self._entry.write(f"</sheetData>{tail}{parts.SHEET_TAIL}".encode())
        widths = [min(_WIDEST, max(_NARROWEST, w)) for w in self._widths]
        head = parts.sheet_head(widths, self._row, active=self._number == 1)
        self._entry.close(head.ljust(self._head_size).encode())
        self._book.closed(self._number, filtered)

    def close(self) -> None:
        self._close_part()


def _merged(pieces: list[Any]) -> list[Any]:
    """Join neighbouring constants: fewer pieces per row."""
    out: list[Any] = []
    constant = ""
    for piece in pieces:
        if isinstance(piece, repeat):
            constant += next(piece)
            continue
        if constant:
            out.append(repeat(constant))
            constant = ""
        out.append(piece)
    if constant:
        out.append(repeat(constant))
    return out
