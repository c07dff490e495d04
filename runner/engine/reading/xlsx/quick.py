"""Rows by cutting text instead of parsing it: many times quicker, for sheets as programs write them.

Whatever is not plain goes to the parser: a row of unusual form alone, the rest of the sheet after a comment.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.rows import OutOfOrder, turned
from runner.engine.reading.values import Block, Row, Value
from runner.engine.reading.xlsx.careful import SheetData, careful_rows
from runner.engine.reading.xlsx.cells import CellReader
from runner.engine.reading.xlsx.chunks import Chunks, Opened, drain, is_odd
from runner.engine.reading.xlsx.patterns import Found, RowPattern
from runner.engine.reading.xlsx.surveys import Surveyor

_FORMULA = re.compile(r"<f(?:\s[^<>]*)?/>|<f(?:\s[^<>]*)?>[^<]*</f>")  # never past the next tag: linear in time
_END_DATA = re.compile(r"</(?:[\w.-]+:)?sheetData\s*>\Z")
_WRAP: Final = "<worksheet><sheetData>"
_UNWRAP: Final = "</sheetData></worksheet>"
_LEARN: Final = 64 * 1024  # characters of rows that are looked at to learn how a sheet is written
_LESSONS: Final = 12
_RARE: Final = 50  # rows for each odd one: no need to learn from so few


def quick_blocks(
    opened: Opened, cells: CellReader, limits: ReadLimits, surveyor: Surveyor | None = None
) -> Iterator[Block]:
    """Rows in the order of the part, opened at its ``sheetData``.

    A surveyor is told what is seen on the way; rows that do not ascend then end the reading in ``OutOfOrder``.
    """
    if opened.is_empty_element():
        _end(chain([opened.head], opened.rest), surveyor)
        return
    source = Chunks(opened, ending=b"row", what="a sheet", limits=limits)
    reader = _Rows(cells, limits)
    for chunk in source:
        if is_odd(chunk, ":row"):
            if surveyor is not None:
                raise OutOfOrder  # cannot be told from the text: known when they are read again
            data = b"" if chunk.startswith("<sheetData") else b"<" + opened.prefix + b"sheetData>"
            rest = chain([opened.root + data], source.again())
            yield from turned(careful_rows(rest, cells, limits, after=reader.last))
            return
        block = reader.read(chunk)
        if surveyor is not None:
            surveyor.rows(chunk, reader.numbers)
            if not surveyor.survey.ordered:
                raise OutOfOrder
        if block.numbers:
            yield block
    _end(chain([opened.root], source.rest()), surveyor)
    drain(source.rest())


def _end(pieces: Iterator[bytes], surveyor: Surveyor | None) -> None:
    """What follows the rows; read to its end, for the checksum."""
    if surveyor is not None:
        surveyor.tail(pieces)
    drain(pieces)


class _Rows:
    """Takes chunks of whole rows apart; what it learnt of one serves the next."""

    def __init__(self, cells: CellReader, limits: ReadLimits) -> None:
        self.last = 0  # number of the last row read
        self.numbers: list[int] = []  # of all rows of the last chunk, blank ones too
        self._cells = cells
        self._limits = limits
        self._pattern = RowPattern(cells, limits.max_columns)
        self._lessons = _LESSONS
        self._formulas = False  # seen so far; looking for them in every chunk would take as long as reading it
        self._slots = 0

    def read(self, chunk: str) -> Block:
        plain = self._plain(chunk)
        found = self._pattern.find(plain)
        if (found is None or any(found.odd)) and not self._formulas and "<f" in chunk:
            self._formulas = True
            plain = self._plain(chunk)
            found = self._pattern.find(plain)
        if found is None and self._lessons:
            self._learn(plain)
            found = self._pattern.find(plain)
        self.numbers = []
        if found is not None and not any(found.odd) and self._pattern.counts_on(chunk, self.last):
            columns = self._columns(found.groups, len(found.numbers))
            if columns is not None:
                self.numbers = self._numbers(found.numbers)
                return self._without_blank_rows(self.numbers, columns)
        if found is None or not any(found.odd) or not self._pattern.counts_on(chunk, self.last):
            return _block(self._parsed(chunk))
        odd = [text for text in found.odd if text]
        if self._lessons and len(odd) * _RARE > len(found.odd):
            self._learn("".join(odd))
            found = self._pattern.find(plain) or found
        return _block(self._mixed(chunk, found))

    def _plain(self, chunk: str) -> str:
        """The same rows with formulas emptied: only what they gave is read."""
        return _FORMULA.sub("<f/>", chunk) if self._formulas else chunk

    def _learn(self, rows: str) -> None:
        self._lessons -= 1
        self._pattern.learn(rows[: rows.find("</row>", _LEARN)])

    def _numbers(self, digits: tuple[str, ...]) -> list[int]:
        if self._pattern.numbered:
            numbers = list(map(int, digits))
        else:
            numbers = list(range(self.last + 1, self.last + 1 + len(digits)))
        if numbers:
            if min(numbers) < 1 or max(numbers) > self._limits.max_rows:
                raise errors.damaged(f"a row numbered past {self._limits.max_rows}, the last there is")
            self.last = numbers[-1]
        return numbers

    def _columns(self, groups: list[tuple[str, ...]], height: int) -> list[list[Value]] | None:
        """The columns from A to the last that holds a value; None where only the parser can tell."""
        filled = self._pattern.columns(groups)
        if filled is None:
            return None
        width = max(filled, default=-1) + 1
        self._slots += width * height
        if self._slots > self._limits.max_cells:
            raise errors.too_large(f"a sheet of over {self._limits.max_cells} cells, blanks counted")
        return [filled.get(at) or [None] * height for at in range(width)]

    def _without_blank_rows(self, numbers: list[int], columns: list[list[Value]]) -> Block:
        if all(None in column for column in columns):
            kept = [at for at, row in enumerate(zip(*columns, strict=True)) if row.count(None) != len(row)]
            if len(kept) != len(numbers):
                return Block([numbers[at] for at in kept], [[column[at] for at in kept] for column in columns])
        return Block(numbers, columns)

    def _mixed(self, chunk: str, found: Found) -> list[Row]:
        """Rows that fit and rows that only the parser can read, in their order."""
        fit = [at for at, text in enumerate(found.odd) if not text]
        groups = [tuple([group[at] for at in fit]) for group in found.groups]
        columns = self._columns(groups, len(fit))
        if columns is None:
            return self._parsed(chunk)
        values = zip(*columns, strict=True)
        rows: list[Row] = []
        originals = chunk.split("<row")
        at = 1
        for digits, text in zip(found.numbers, found.odd, strict=True):
            count = text.count("<row") or 1
            if text:
                rows += self._parsed("<row" + "<row".join(originals[at : at + count]))
            else:
                self.numbers += self._numbers((digits,))
                rows.append((self.last, list(next(values, ()))))
            at += count
        return rows

    def _parsed(self, rows: str) -> list[Row]:
        """Rows of unusual form, through the parser."""
        start = max(rows.find("<row"), 0)
        text = _WRAP + _END_DATA.sub("", rows[start:]) + _UNWRAP
        data = SheetData(self._cells, self._limits, after=self.last)
        data.feed(text.encode(), last=True)
        self.last = data.row
        self.numbers += data.numbers
        return data.done


def _block(rows: list[Row]) -> Block:
    for block in turned((row for row in rows if any(value is not None for value in row[1])), size=len(rows) or 1):
        return block
    return Block([], [])
