"""Checks that a workbook contains nothing that our own writer could not have written.

The small parts are generated again from their contents and must be identical, byte for byte. A sheet is a language so
simple that patterns without backtracking describe it completely (rows, cells, numbers, texts), in linear time. There is
no list of dangerous things: a formula, a link, a prefix, a comment or a second attribute is not in the language.
"""

import re
from collections.abc import Iterator, Sequence
from typing import IO, Final, NamedTuple

from runner.engine.common import a1
from runner.engine.protocol import BadOutput
from runner.engine.reading.books import ERROR_CODES
from runner.engine.reading.xlsx.markup import unescaped, without_entities
from runner.engine.verifying.archive import Archive, Member
from runner.engine.verifying.split_column import WRONG_FILE, SplitColumn
from runner.engine.writing import parts
from runner.engine.writing.parts import BUILT_IN, DURATION, FORMATS, StyleSheet, attribute

MAX_SHEETS: Final = 10_000
MAX_PART: Final = 16 * 1024 * 1024
_MAX_HEAD: Final = 256 * 1024
_MAX_STYLES: Final = 1024 * 1024
_CELL_END: Final = b"</c>"
_MAX_PIECE: Final = 4 * 1024 * 1024  # one cell holds 32,767 characters, escaped

_AFTER_SHEETS: Final = (
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/styles.xml",
    "docProps/core.xml",
    "docProps/app.xml",
    "_rels/.rels",
    "[Content_Types].xml",
)
_CHARS = rb"[^<&>\x00-\x08\x0b-\x1f]*+"
_TEXT = _CHARS + rb"(?:&(?:amp|lt|gt);" + _CHARS + rb")*+"
_STRING = rb' t="inlineStr"><is><t(?: xml:space="preserve")?+>' + _TEXT + rb"</t></is></c>"
_ERRORS = b"|".join(re.escape(code.encode()) for code in sorted(ERROR_CODES))
_CELL = (
    rb'<c r="[A-Z]{1,3}+[1-9][0-9]{0,6}+"(?: s="[0-9]{1,5}+")?+'
    rb'(?:(?: t="b")?+><v>[-+.0-9e]{1,40}+</v></c>|' + _STRING + rb'| t="e"><v>(?:' + _ERRORS + rb")</v></c>)"
)
_CELLS = re.compile(rb"(?:" + _CELL + rb'|</row><row r="[1-9][0-9]{0,6}+">)*+')
_OPENING = re.compile(
    rb'<c r="([A-Z]{1,3}+)[1-9][0-9]{0,6}+"((?: s="[0-9]{1,5}+")?+'
    rb'(?:(?: t="b")?+><v>| t="inlineStr"><is><t(?: xml:space="preserve")?+>))'
)
_BYTES_TO_LEARN_FROM: Final = 64 * 1024  # bytes of rows whose cells show how the others are written
_MOST_LESSONS: Final = 4
_WORTH_LEARNING: Final = 16 * 1024  # bytes of rows; fewer are checked sooner than an expression is compiled
_QUOTED_NAME_NUMBER = re.compile("'\ue000([0-9]+)\ue000'")
_NAME_NUMBER = re.compile('"\ue000([0-9]+)\ue000"')
_MOST_OPENINGS: Final = 500  # of all columns: compiling takes a tenth of a millisecond for each
_HEADER_CELL = rb'<c r="[A-Z]{1,3}+1" s="1"' + _STRING
_HEADER_CELLS = re.compile(rb"(?:" + _HEADER_CELL + rb")*+")
_SPLIT_CELL = rb'(?: s="[0-9]{1,5}+")?+(?: t="inlineStr"><is><t(?: xml:space="preserve")?+>(' + _TEXT + rb")</t>)?"
_ROW = re.compile(rb'<row r="([0-9]+)">')
_NONCHARACTERS = re.compile(rb"\xef\xbf[\xbe\xbf]")
_HEADER_ROW: Final = b'<sheetData><row r="1" ht="18" customHeight="1">'
_WIDTH = re.compile(rb'<col min="([0-9]+)" max="\1" width="([0-9]{1,2})" customWidth="1"/>')
_SHEET_NAME = re.compile(r'<sheet name="([^"]*)"')
_ATTRIBUTE = re.compile(r'(?:[^"<>&\x00-\x1f]|&(?:amp|lt|gt|quot);){1,400}+')
_FORMAT = re.compile(r'<numFmt numFmtId="([0-9]+)" formatCode="([^"]*)"/>')
_CELL_FORMATS = re.compile(
    r'<xf numFmtId="([0-9]{1,5})" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
)


class WrittenSheet(NamedTuple):
    """What a sheet of the workbook holds."""

    name: str  # as in the attribute, escaped
    columns: int
    rows: int  # below the header


class _MeasuredSheet(NamedTuple):
    """What a sheet's own part says of it, checked."""

    columns: int
    rows: int  # below the header
    filter_area: str  # as A1:C9; empty without columns


def read_book(
    file: IO[bytes], *, title: str, formats: Sequence[str], column: SplitColumn | None = None
) -> list[WrittenSheet]:
    """Check a workbook, and return its sheets; raises BadOutput.

    `formats`: the number formats in the manifest; `column`: what one column must hold.
    """
    archive = Archive(file)
    *sheets, book, rels, styles, core, app, root, types = _check_parts(archive)
    count = len(sheets)
    exact = {
        rels: parts.workbook_rels(count),
        core: parts.core(title),
        app: parts.app(),
        root: parts.root_rels(),
        types: parts.content_types(count),
    }
    for member, text in exact.items():
        if archive.text(member, MAX_PART) != text:
            raise BadOutput(f"normalized.xlsx has a {member.name} that the engine does not write")
    _check_styles(archive.text(styles, _MAX_STYLES), formats)
    measured = [_SheetReader(archive, member, number, column).read() for number, member in enumerate(sheets, 1)]
    names = _check_names(archive.text(book, MAX_PART), [sheet.filter_area for sheet in measured])
    return [WrittenSheet(name, sheet.columns, sheet.rows) for name, sheet in zip(names, measured, strict=True)]


def escaped_name(name: str) -> str:
    """Return a sheet's name as `WrittenSheet` has it: escaped."""
    return attribute(name)


def _check_parts(archive: Archive) -> list[Member]:
    """Return the members, sheets first; raises BadOutput unless they are exactly those that the engine writes."""
    members = archive.members
    count = len(members) - len(_AFTER_SHEETS)
    if count > MAX_SHEETS:
        raise BadOutput(f"normalized.xlsx has more than {MAX_SHEETS} sheets")
    expected = (*(f"xl/worksheets/sheet{number}.xml" for number in range(1, count + 1)), *_AFTER_SHEETS)
    if count < 1 or tuple(member.name for member in members) != expected:
        raise BadOutput("normalized.xlsx has parts that the engine does not write")
    return members


def _check_names(text: str, filter_areas: list[str]) -> list[str]:
    """Return the sheets' names, escaped, from xl/workbook.xml; raises BadOutput if it has anything else in it."""
    names = _SHEET_NAME.findall(text)
    if len(names) != len(filter_areas) or len(set(names)) != len(names):
        raise BadOutput("normalized.xlsx does not name each of its sheets once")
    if not all(_ATTRIBUTE.fullmatch(name) for name in names):
        raise BadOutput("normalized.xlsx has a sheet with an invalid name")
    sheets = [parts.SheetPart(f"\ue000{number}\ue000") for number in range(len(names))]
    for sheet, area in zip(sheets, filter_areas, strict=True):
        sheet.filtered = area
    # The definition of a filter quotes the name, so quotes in it are doubled.
    quoted = [name.replace("'", "''").replace("&quot;", '"') for name in names]
    expected = _QUOTED_NAME_NUMBER.sub(lambda number: f"'{quoted[int(number[1])]}'", parts.workbook(sheets))
    expected = _NAME_NUMBER.sub(lambda number: f'"{names[int(number[1])]}"', expected)
    if text != expected:
        raise BadOutput("normalized.xlsx has a xl/workbook.xml that the engine does not write")
    return names


def _check_styles(text: str, formats: Sequence[str]) -> None:
    """Check that every number format is the engine's or the manifest's, and the rest as the engine writes it; raises
    BadOutput."""
    known = {attribute(number_format): number_format for number_format in (*FORMATS.values(), DURATION, *formats)}
    by_number = {str(number): number_format for number_format, number in BUILT_IN.items()}
    for number, escaped_format in _FORMAT.findall(text):
        if escaped_format not in known:
            raise BadOutput("normalized.xlsx has a number format that is not in the manifest")
        by_number[number] = known[escaped_format]
    cell_formats = _CELL_FORMATS.findall(text)
    if len(cell_formats) > len(by_number) or not all(number in by_number for number in cell_formats):
        raise BadOutput("normalized.xlsx has a cell format that the engine does not write")
    if text != StyleSheet([by_number[number] for number in cell_formats]).xml():
        raise BadOutput("normalized.xlsx has a xl/styles.xml that the engine does not write")


class _SheetReader:
    """Checks one sheet piece by piece, a few blocks at a time."""

    def __init__(self, archive: Archive, member: Member, number: int, column: SplitColumn | None) -> None:
        """Prepare to read the `number`th sheet; `column`: what one column must hold."""
        self._split_cells = None if column is None else _SplitCells(column)
        self._blocks = archive.blocks(member)
        self._number = number
        self._unchecked = b""  # what is decompressed of the part
        self._columns = 0
        self._row = 1  # the last one that was checked
        self._usual = _UsualRows()

    def read(self) -> _MeasuredSheet:
        """Check and measure the whole sheet; raises BadOutput."""
        head = self._read_until(_HEADER_ROW, _MAX_HEAD)
        self._check_header()
        for piece in self._cut_into_pieces():
            rows = self._usual.rows(piece)
            if rows is None:
                if not _CELLS.fullmatch(piece):
                    raise BadOutput("normalized.xlsx has a sheet with something other than values")
                rows = _ROW.findall(piece)
            if rows:
                if rows != [b"%d" % n for n in range(self._row + 1, self._row + 1 + len(rows))]:
                    raise BadOutput("normalized.xlsx has rows out of order")
                self._row += len(rows)
            if self._split_cells is not None:
                self._split_cells.check(piece)
        if self._split_cells is not None:
            self._split_cells.end()
        last = f"{a1.letters(max(1, self._columns))}{self._row}"
        filter_area = f"A1:{last}" if self._columns else ""
        tail = f'<autoFilter ref="{filter_area}"/>' if filter_area else ""
        if self._unchecked != f"</row></sheetData>{tail}{parts.SHEET_TAIL}".encode():
            raise BadOutput("normalized.xlsx has a sheet with an unexpected end")
        widths = [int(width) for _, width in _WIDTH.findall(head)]
        widths += [0] * (self._columns - len(widths))
        if head.rstrip(b" ") != parts.sheet_head(widths, self._row, active=self._number == 1).encode():
            raise BadOutput("normalized.xlsx has a sheet with an unexpected beginning")
        return _MeasuredSheet(self._columns, self._row - 1, filter_area)

    def _read_until(self, mark: bytes, most: int) -> bytes:
        """Return what is before `mark`; reading continues after it. Raises BadOutput if that is more than `most`
        bytes."""
        while mark not in self._unchecked:
            if len(self._unchecked) > most or not self._read_more():
                raise BadOutput("normalized.xlsx has a sheet with an unexpected beginning")
        before, _, self._unchecked = self._unchecked.partition(mark)
        return before

    def _read_more(self) -> bool:
        """Decompress the next piece of the sheet into `_unchecked`; returns False at its end."""
        piece = next(self._blocks, b"")
        self._unchecked += piece
        return bool(piece)

    def _check_header(self) -> None:
        """Check and count the cells of the header row, up to its end; raises BadOutput."""
        while True:
            row_ends = self._unchecked.find(b"</row>")
            end = row_ends if row_ends >= 0 else self._unchecked.rfind(_CELL_END) + len(_CELL_END)
            if row_ends >= 0 or end >= len(_CELL_END):
                piece, self._unchecked = self._unchecked[:end], self._unchecked[end:]
                _check_characters(piece)
                if not _HEADER_CELLS.fullmatch(piece):
                    raise BadOutput("normalized.xlsx has a header with something other than texts")
                self._columns += piece.count(b"<c ")
            if row_ends >= 0:
                return
            if len(self._unchecked) > _MAX_PIECE or not self._read_more():
                raise BadOutput("normalized.xlsx has a sheet that is not a sheet")

    def _cut_into_pieces(self) -> Iterator[bytes]:
        """Yield everything up to the last row's end, cut between rows; between cells where a row is very long. Raises
        BadOutput."""
        more = True
        while more:
            more = self._read_more()
            if more:
                end = self._unchecked.rfind(b"</row>")
                if end <= 0:
                    end = self._unchecked.rfind(_CELL_END) + len(_CELL_END)
            else:
                end = max(0, self._unchecked.rfind(b"</row></sheetData>"))
            if end >= len(_CELL_END):
                piece, self._unchecked = self._unchecked[:end], self._unchecked[end:]
                _check_characters(piece)
                yield piece
            if len(self._unchecked) > _MAX_PIECE:
                raise BadOutput("normalized.xlsx has a sheet that is not a sheet")


class _SplitCells:
    """Checks the cells of one column, row by row: each row has at most one, which is its own."""

    def __init__(self, column: SplitColumn) -> None:
        """Prepare to check the cells of this column."""
        letters = a1.letters(column.at + 1).encode()
        self._tokens = re.compile(rb'<row r="([0-9]+)">|<c r="' + letters + rb'([0-9]+)"' + _SPLIT_CELL)
        self._column = column
        self._row = b""  # the digits of the row whose cell is due
        self._has_cell = True  # which was checked

    def check(self, piece: bytes) -> None:
        """Check the cells of a piece; raises BadOutput."""
        for row, cell, text in self._tokens.findall(piece):
            if row:
                self.end()
                self._row, self._has_cell = row, False
            elif cell != self._row or self._has_cell or not self._column.holds([_read_text(text)]):
                raise BadOutput(WRONG_FILE)
            else:
                self._has_cell = True

    def end(self) -> None:
        """Complete the row; raises BadOutput if it lacks its cell."""
        if not self._has_cell and not self._column.holds([None]):
            raise BadOutput(WRONG_FILE)


def _read_text(raw: bytes) -> str | None:
    """Return the text of a cell as a reader finds it, None if it is something else; raises BadOutput for another
    spelling than the engine's."""
    if not raw:
        return None
    text = unescaped(without_entities(raw.decode()))
    if parts.escaped(text) != raw.decode():
        raise BadOutput(WRONG_FILE)
    return text


class _UsualRows:
    """An expression for rows as most of a sheet has them: half the time of the whole language, of which it is a part.

    Each column's cells open in one of a few ways, which are learned from rows on the way; each is one of the language.
    """

    def __init__(self) -> None:
        """Begin without any; `rows` learns them."""
        self._lessons_left = _MOST_LESSONS
        self._openings: dict[bytes, dict[bytes, None]] = {}  # by the letters of a column, from left to right
        self._patterns: dict[bool, re.Pattern[bytes]] = {}  # for rows with entities and without

    def rows(self, piece: bytes) -> list[bytes] | None:
        """Return the numbers of a piece's rows if all of it is as usual; else learn from it, and return None."""
        numbers = self._match_usual(piece)
        if numbers is None and self._lessons_left and len(piece) >= _WORTH_LEARNING:
            self._lessons_left -= 1
            self._learn_openings(piece)
            numbers = self._match_usual(piece)
        return numbers

    def _match_usual(self, piece: bytes) -> list[bytes] | None:
        """Return the numbers of a piece's rows if the expressions learnt so far match all of it; else None."""
        if not self._openings:
            return None
        has_entities = b"&" in piece
        if has_entities not in self._patterns:
            self._patterns[has_entities] = self._compile_rows(_TEXT if has_entities else _CHARS)
        found = self._patterns[has_entities].findall(piece)
        return None if any(unusual for _, unusual in found) else [number for number, _ in found]

    def _learn_openings(self, piece: bytes) -> None:
        """Learn how the cells of a piece's first rows open; with too many openings, forget all and learn no more."""
        for letters, opening in _OPENING.findall(
            piece, 0, piece.find(b"</row>", _BYTES_TO_LEARN_FROM) + 1 or len(piece)
        ):
            self._openings.setdefault(letters, {})[opening] = None
        self._patterns.clear()
        if sum(map(len, self._openings.values())) > _MOST_OPENINGS:
            self._lessons_left, self._openings = 0, {}

    def _compile_rows(self, text: bytes) -> re.Pattern[bytes]:
        """Compile the expression for a row whose texts match `text`, or for all that follows the last such row."""
        cells = b""
        for letters in sorted(self._openings, key=lambda letters: (len(letters), letters)):
            openings = self._openings[letters]
            spellings = [
                opening + (text + b"</t></is></c>" if b"<is>" in opening else rb"[-+.0-9e]{1,40}+</v></c>")
                for opening in openings
            ]
            cells += rb'(?><c r="%s\1"(?:%s)|)' % (letters, b"|".join(spellings))
        return re.compile(rb'</row><row r="([1-9][0-9]{0,6})">' + cells + rb"(?=</row>|\Z)|((?s:.+))")


def _check_characters(piece: bytes) -> None:
    """Check that all characters are valid in XML, but for control characters, which are not in the language anyway;
    raises BadOutput."""
    if piece.isascii():
        return
    try:
        piece.decode()
    except UnicodeDecodeError:
        raise BadOutput("normalized.xlsx has a sheet that is not UTF-8") from None
    if _NONCHARACTERS.search(piece):
        raise BadOutput("normalized.xlsx has characters that are invalid in XML")
