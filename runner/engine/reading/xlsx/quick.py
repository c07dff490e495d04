"""Rows by cutting text instead of parsing it: many times quicker, for sheets as programs write them.

Whatever is not plain goes to the parser: a row of unusual form alone, the rest of the sheet after a comment.
"""

import re
from collections.abc import Iterator
from itertools import chain, repeat
from operator import itemgetter

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.texts import BLANKS_DROPPED
from runner.engine.reading.values import Row, Value
from runner.engine.reading.xlsx.careful import SheetData, careful_rows
from runner.engine.reading.xlsx.cells import CellReader
from runner.engine.reading.xlsx.chunks import Chunks, Opened, drain, is_odd
from runner.engine.reading.xlsx.shapes import Shape, shape_of

_FORMULA = re.compile(r"<f(?:\s[^<>]*)?/>|<f(?:\s[^<>]*)?>[^<]*</f>")  # never past the next tag: linear in time
_NUMBER_ELSEWHERE = re.compile(r"<row\s[^<>]*\br=")
_BLANK_FORMULA = "<f/>"
_MAX_WEIGHT = 16 * 1024 * 1024  # bytes, roughly, of shapes that are remembered
_WRAP = "<worksheet><sheetData>"
_UNWRAP = "</sheetData></worksheet>"

_Group = tuple[Shape, list[str], list[list[str]]]  # rows of one shape: their numbers, their stored values


def quick_rows(opened: Opened, cells: CellReader, limits: ReadLimits) -> Iterator[Row]:
    """Rows in the order of the part, opened at its ``sheetData``."""
    if opened.is_empty_element():
        drain(opened.rest)
        return
    source = Chunks(opened, ending=b"row", what="a sheet", limits=limits)
    reader = _Rows(cells, limits)
    for chunk in source:
        if is_odd(chunk):
            start = "<{0}worksheet>" if chunk.startswith("<sheetData") else "<{0}worksheet><{0}sheetData>"
            rest = chain([start.format(opened.prefix.decode()).encode()], source.again())
            yield from careful_rows(rest, cells, limits, after=reader.last)
            return
        yield from reader.read(chunk)
    drain(source.rest())


def _plain(chunk: str) -> str:
    """The same rows with formulas emptied, inline texts as values, and ``<v>`` on both sides of a value."""
    if "f" in chunk and "<f" in chunk:
        chunk = _FORMULA.sub(_BLANK_FORMULA, chunk)
    if "i" in chunk and "<is>" in chunk:
        chunk = chunk.replace("<is><t>", "<v>" + BLANKS_DROPPED).replace('<is><t xml:space="preserve">', "<v>")
        chunk = chunk.replace("</t></is>", "<v>")
    if "x" in chunk and "<v " in chunk:
        chunk = chunk.replace('<v xml:space="preserve">', "<v>")
    return chunk.replace("</v>", "<v>")


class _Rows:
    """Takes chunks of whole rows apart; remembers shapes from one chunk to the next."""

    def __init__(self, cells: CellReader, limits: ReadLimits) -> None:
        self.last = 0  # number of the last row read
        self._cells = cells
        self._limits = limits
        self._shapes: dict[str, Shape] = {}
        self._weight = 0
        self._slots = 0

    def read(self, chunk: str) -> list[Row]:
        rows = self._numbered(_plain(chunk))
        if rows is None:
            return self._parsed(chunk)
        groups: dict[str, _Group] = {}
        odd: list[int] = []
        for position, (digits, _, row) in enumerate(rows, 1):
            parts = row.split("<v>")
            between = "<v>".join(parts[::2])
            key = between.replace(digits + '"', '"')
            group = groups.get(key)
            if group is None:
                group = groups[key] = (self._shape(key), [], [])
            shape = group[0]
            if len(between) - len(key) != shape.referenced * len(digits) or len(parts) != shape.parts:
                odd.append(position)
                continue
            group[1].append(digits)
            group[2].append(parts[1::2])
        found: list[Row] = []
        for group in groups.values():
            if group[1] and group[0].width:
                found += self._filled(*group)
        if odd:
            originals = chunk.split("<row")
            for position in odd:
                self.last = int(rows[position - 1][0]) - 1
                found += self._parsed(f"<row{originals[position]}")
        if rows:
            self.last = int(rows[-1][0])
        found.sort(key=itemgetter(0))
        return found

    def _numbered(self, chunk: str) -> list[tuple[str, str, str]] | None:
        """(number, quote, rest) of each row; None where only the parser can tell the numbers."""
        segments = chunk.split('<row r="')[1:]
        if chunk.count("<row") == len(segments):
            rows = [segment.partition('"') for segment in segments]
            numbers = [row[0] for row in rows]
            if numbers and not ("".join(numbers).isdecimal() and all(numbers) and max(map(len, numbers)) <= 10):
                return None
            return rows
        if segments or _NUMBER_ELSEWHERE.search(chunk):
            return None
        return [(str(at), "", row) for at, row in enumerate(chunk.split("<row")[1:], self.last + 1)]

    def _shape(self, key: str) -> Shape:
        shape = self._shapes.get(key)
        if shape is None:
            shape = shape_of(key, self._limits.max_columns)
            self._weight += len(key) + 100 * len(shape.slots)
            if self._weight > _MAX_WEIGHT:  # every row its own shape, and wide: remembering them would not pay
                self._shapes.clear()
                self._weight = 0
            self._shapes[key] = shape
        return shape

    def _filled(self, shape: Shape, digits: list[str], texts: list[list[str]]) -> list[Row]:
        numbers = list(map(int, digits))
        if min(numbers) < 1 or max(numbers) > self._limits.max_rows:
            raise errors.damaged(f"a row numbered past {self._limits.max_rows}, the last there is")
        self._slots += shape.width * len(numbers)
        if self._slots > self._limits.max_cells:
            raise errors.too_large(f"a sheet of over {self._limits.max_cells} cells, blanks counted")
        columns: list[list[Value] | repeat[Value]] = [repeat(None)] * shape.width
        for column, value in shape.fixed.items():
            columns[column] = repeat(value)
        for slot, stored in zip(shape.slots, zip(*texts, strict=True), strict=True):
            columns[slot.column] = self._cells.column(slot.kind, slot.style, stored, formula=slot.formula)
        rows = []
        for number, values in zip(numbers, map(list, zip(*columns, strict=False)), strict=False):
            if values[-1] is None:
                while values and values[-1] is None:
                    values.pop()
                if not values:
                    continue
            rows.append((number, values))
        return rows

    def _parsed(self, rows: str) -> list[Row]:
        """Rows of unusual form, through the parser."""
        start = max(rows.find("<row"), 0)
        text = _WRAP + rows[start:].replace("</sheetData>", "") + _UNWRAP
        data = SheetData(self._cells, self._limits, after=self.last)
        data.feed(text.encode(), last=True)
        self.last = data.row
        return data.done
