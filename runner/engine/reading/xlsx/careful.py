"""Converts stored cells to values, and reads rows with a full XML parser: slower than quick.py, right for any XML."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from json import loads
from typing import NamedTuple

from runner.engine.reading import errors, number_formats
from runner.engine.reading.books import NO_CACHED_VALUE, CellError, ReadLimits, Row, RowBuilder, SharedStrings, Value
from runner.engine.reading.number_formats import NumberKind, Shower, Styles, value_by_kind
from runner.engine.reading.runs import CellNotes, Noted, Run, RunStyle, may_be_twice, noted_twice, shown
from runner.engine.reading.xlsx.markup import (
    XML_BLANKS,
    Attributes,
    Markup,
    cell,
    local,
    number,
    unescaped,
    without_entities,
)

_SEPARATOR = "\x1f"  # never in XML text
_MEMO = 50_000  # dates, booleans and errors repeat; limits the cache
_SAMPLE = 64  # indexes of shared strings that show whether those of a column repeat
_EXACT = 1e15  # whole numbers below this are exact in a double
_POINTS_NOWHERE = CellError("#VALUE!")  # for an index past the end of the strings


def run_style(name: str, attributes: Attributes) -> RunStyle:
    """Return how a property of a run makes it look; nothing if it does not matter."""
    value = attributes.get("val", "")
    if name == "strike":
        return "struck" if value not in ("0", "false") else ""
    if name != "vertAlign":
        return ""
    if value == "superscript":
        return "raised"
    return "lowered" if value == "subscript" else ""


class Stored(NamedTuple):
    """How a cell is stored."""

    kind: str = ""
    style: int = 0
    formula: bool = False
    strip: bool = False  # strip blanks around the text


class StringMemo(dict[str, Value]):
    """Caches the value of each text; that of no text is a blank."""

    def __init__(self, meaning: Callable[[str], Value]) -> None:
        super().__init__()
        self._meaning = meaning

    def __missing__(self, text: str) -> Value:
        """Work out the value of a text that is not cached, and cache it."""
        if len(self) >= _MEMO:
            self.clear()
        value = self[text] = self._meaning(text) if text else None
        return value


class CellReader:
    """Converts (type, style, text, formula) to a value with the book's strings, styles and epoch."""

    def __init__(
        self,
        strings: Callable[[], SharedStrings],
        styles: Styles,
        *,
        epoch_1904: bool,
        notes: CellNotes | None = None,
    ) -> None:
        self.notes = notes or CellNotes()
        self.has_noted = False  # a text stored in a cell is `Noted`
        self._load_strings = strings
        self._loaded: SharedStrings | None = None
        self._styles = styles
        self._epoch_1904 = epoch_1904
        self._shown: dict[int, StringMemo] = {}
        self._repeated = StringMemo(self._shared_at)  # shared strings of columns that have few different ones
        self._memos: dict[str | NumberKind, StringMemo] = {
            "b": StringMemo(_boolean),
            "e": StringMemo(_error),
            "d": StringMemo(number_formats.iso_value),
            **{kind: StringMemo(partial(self._convert_date, kind)) for kind in NumberKind},
        }

    def are_notes_expected(self) -> bool:
        """Whether any value so far may be `Noted`."""
        return self.has_noted or (self._loaded is not None and bool(self._loaded.noted))

    def counts(self, style: int) -> bool:
        """Whether a number in this style is a plain number, not a date or a time."""
        return self._styles.kind(style) is NumberKind.NUMBER

    def column(self, stored: Stored, texts: Sequence[str], *, plain: bool) -> list[Value]:
        """Convert cells that are stored the same way; the texts still contain entities, and empty ones are blanks.

        ``plain`` texts are known to be an index, a day or a number in its simplest form, and need no checks.
        """
        kind, style, formula, _ = stored
        if plain:
            return self._convert_plain(kind, style, texts)
        if "" in texts:
            following = iter(self.column(stored, list(filter(None, texts)), plain=False)).__next__
            return [following() if text else None for text in texts]
        joined = _SEPARATOR.join(texts)
        if "&" in joined:
            texts = list(map(without_entities, texts))
        values: list[Value] | None = None
        if kind in ("str", "inlineStr"):
            values = _clean_texts(texts, joined, strip=stored.strip)
            if may_be_twice(joined):
                self.has_noted, values = True, list(noted_twice(values))
            return values
        if kind == "s":
            values = self._shared_strings_at(texts)
        elif kind in self._memos:
            values = list(map(self._memos[kind].__getitem__, texts))
        elif kind in ("", "n"):
            number = self._styles.kind(style)
            values = (
                _parse_numbers(texts)
                if number is NumberKind.NUMBER
                else list(map(self._memo(number, style).__getitem__, texts))
            )
        return values or [self.value(kind, style, text, formula=formula) for text in texts]

    def _convert_plain(self, kind: str, style: int, texts: Sequence[str]) -> list[Value]:
        """Convert texts in their simplest form: an index of a shared string, a day or a number."""
        if kind == "s":
            if len(set(texts[:_SAMPLE])) * 2 < min(len(texts), _SAMPLE):
                return list(map(self._repeated.__getitem__, texts))
            listed = self._strings().listed
            try:
                if "" in texts:
                    return [listed[int(text)] if text else None for text in texts]
                return list(map(listed.__getitem__, map(int, texts)))
            except IndexError:
                return [self._shared_at(text) if text else None for text in texts]
        number = self._styles.kind(style)
        if number is NumberKind.NUMBER:
            joined = f",{','.join(texts)},"
            if ",," in joined:  # neighbouring blanks share a comma, so one pass leaves every other one
                joined = joined.replace(",,", ",null,").replace(",,", ",null,")
            numbers: list[Value] = loads(f"[{joined[1:-1]}]")
            return numbers
        return list(map(self._memo(number, style).__getitem__, texts))

    def value(self, kind: str, style: int, text: str | None, *, formula: bool) -> Value:
        """Convert one cell; ``text`` is None if it stores no value."""
        if not text:
            return NO_CACHED_VALUE if formula and (text is None or kind != "str") else None
        if kind == "s":
            return self._shared_at(text.strip())
        if kind in ("str", "inlineStr"):
            return self._convert_text(text)
        if kind in ("b", "e", "d"):
            return self._memos[kind][text]
        number = self._styles.kind(style)
        return number_formats.number_from_text(text) if number is NumberKind.NUMBER else self._memo(number, style)[text]

    def _convert_text(self, text: str) -> Value:
        """Convert a text that a cell stores; `Noted`, and `has_noted` set, if something is to be reported about it."""
        if isinstance(text, Noted):
            note = text.note
        elif may_be_twice(text):
            note = "encoded_twice"
        else:
            return unescaped(text)
        self.has_noted = True
        return Noted(unescaped(text), note)

    def _shared_strings_at(self, texts: Sequence[str]) -> list[Value] | None:
        """Return the shared strings of these indexes; None if one is not an index."""
        strings = self._strings()
        try:
            indexes = list(map(int, texts))
            if min(indexes) < 0:
                return None
            if max(indexes) < len(strings.listed):
                return list(map(strings.listed.__getitem__, indexes))
            return list(map(strings.__getitem__, indexes))
        except (ValueError, IndexError):
            return None

    def _shared_at(self, text: str) -> Value:
        """Return the shared string of one index; an error value if there is none."""
        strings = self._strings()
        if not (text.isascii() and text.isdecimal()) or len(text) > 12 or int(text) >= len(strings):
            return _POINTS_NOWHERE
        return strings[int(text)]

    def _strings(self) -> SharedStrings:
        """Return the shared strings, loaded on first use."""
        if self._loaded is None:
            self._loaded = self._load_strings()
        return self._loaded

    def _memo(self, kind: NumberKind, style: int) -> StringMemo:
        """Return what converts and caches the numbers of a kind; of numbers that are shown otherwise, those of a
        style."""
        if kind is not NumberKind.SHOWN:
            return self._memos[kind]
        if style not in self._shown:
            self._shown[style] = StringMemo(partial(_shown, self._styles.shows[style]))
        return self._shown[style]

    def _convert_date(self, kind: NumberKind, text: str) -> Value:
        """Convert a stored number to a date, time or duration."""
        serial = number_formats.number_from_text(text)
        if not isinstance(serial, int | float):
            return serial
        return value_by_kind(kind, serial, epoch_1904=self._epoch_1904)


def _parse_numbers(texts: Sequence[str]) -> list[Value] | None:
    """Parse plain numbers, whole ones as int; None if any is not plain."""
    try:
        if texts[0].isdecimal():
            return list(map(int, texts))
    except ValueError:
        pass
    try:
        numbers = list(map(float, texts))
    except ValueError:
        return None
    if not math.isfinite(sum(numbers)) or max(numbers) >= _EXACT or min(numbers) <= -_EXACT:
        return None
    return [int(number) if number.is_integer() else number for number in numbers]


def _clean_texts(texts: Sequence[str], joined: str, *, strip: bool) -> list[Value]:
    """Return texts as they are shown; None for those that are then empty."""
    shown_texts = list(map(str.strip, texts, repeat(XML_BLANKS))) if strip else list(texts)
    if "_x" in joined:
        shown_texts = list(map(unescaped, shown_texts))
    return [text or None for text in shown_texts] if "" in shown_texts else list(shown_texts)


def _shown(show: Shower, text: str) -> Value:
    """Return a stored number together with what its format shows."""
    return number_formats.shown(show, number_formats.number_from_text(text))


def _boolean(text: str) -> Value:
    """Return a stored boolean."""
    return text.strip().lower() not in ("0", "false")


def _error(text: str) -> Value:
    """Return a stored error."""
    return CellError(text)


class SheetData:
    """Parses a sheet part, or rows cut from one."""

    def __init__(self, cells: CellReader, limits: ReadLimits, after: int) -> None:
        self.done: list[Row] = []  # complete rows
        self.numbers: list[int] = []  # of all rows, blank ones included
        self._cells = cells
        self._limits = limits
        self._depth = 0  # of open elements
        self._in_data = False  # inside the element with the cells
        self.row = after  # the number of the last row
        self._unnumbered = False  # the open row has no number; its first cell may
        self._column = 0
        self._builder = RowBuilder(limits, cells.notes.add_twice)
        # Of the open cell: how it is stored.
        self._kind = ""
        self._style = 0
        self._formula = False
        self._stored_text: str | None = None  # the stored value
        self._inline: list[Run] = []  # the text stored in the cell itself
        self._run_style: RunStyle = ""
        # Of the open text: its pieces, whether they count, and whether blanks around it do not.
        self._text: list[str] = []
        self._collects = False
        self._strip = False
        self._phonetic = False  # inside a phonetic guide, which is no part of the text
        self._markup = Markup("a sheet", limits)
        self._markup.parser.StartElementHandler = self.start
        self._markup.parser.EndElementHandler = self.end
        self._markup.parser.CharacterDataHandler = self.text

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Parse the next bytes."""
        self._markup.feed(piece, last=last)

    def start(self, name: str, attributes: Attributes) -> None:
        """Process an opening tag: starts a row or a cell, or notes what the value behind it is."""
        self._depth += 1
        if self._depth > self._limits.max_depth:
            raise errors.hostile(f"elements nested more than {self._limits.max_depth} deep in a sheet")
        name = local(name)
        if name == "c" and self._in_data:
            self._start_cell(attributes)
        elif name == "row" and self._in_data:
            digits = attributes.get("r", "").strip().removeprefix("+")
            self._unnumbered = not (digits.isascii() and digits.isdecimal() and len(digits) < 12)
            self._column = 0
            self._start_row(self.row + 1 if self._unnumbered else int(digits))
        elif name == "sheetData":
            self._in_data = True
        elif name == "f":
            self._formula = True
        elif name in ("v", "t"):
            self._collects = not self._phonetic
            self._strip = name == "t" and attributes.get("xml:space") != "preserve"
            self._text = []
        elif name == "rPh":
            self._phonetic = True
        else:
            self._run_style = "" if name in ("r", "is") else run_style(name, attributes) or self._run_style

    def _start_row(self, row: int) -> None:
        """Open a row and note its number."""
        self.row = row
        self._builder.next_row(row)
        self.numbers.append(row)

    def _start_cell(self, attributes: Attributes) -> None:
        """Start a cell, at its reference or right of the one before."""
        row, column = cell(attributes.get("r", ""))
        if self._unnumbered:  # its first cell may have the row number
            self._unnumbered = False
            if row and row != self.row:
                self.numbers.pop()
                self._start_row(row)
        self._column = column or self._column + 1
        self._kind = attributes.get("t", "")
        self._style = number(attributes, "s")
        self._formula = False
        self._stored_text = None
        self._inline = []

    def text(self, data: str) -> None:
        """Collect the text of a stored value."""
        if self._collects:
            self._text.append(data)

    def end(self, name: str) -> None:
        """Process a closing tag: at its end a cell gets its value, and a row is complete."""
        self._depth -= 1
        name = local(name)
        if name in ("v", "t"):
            if self._collects:
                text = "".join(self._text)
                if name == "v":
                    self._stored_text = text
                else:
                    self._inline.append(Run(text.strip(XML_BLANKS) if self._strip else text, self._run_style))
            self._collects = False
        elif name == "c" and self._in_data:
            inline = self._kind == "inlineStr" or self._stored_text is None
            stored = shown(self._inline) if inline and self._inline else self._stored_text
            value = self._cells.value(self._kind, self._style, stored, formula=self._formula)
            self._builder.put(self._column, value)
        elif name == "row" and self._in_data:
            if (complete_row := self._builder.finish()) is not None:
                self.done.append(complete_row)
        elif name == "rPh":
            self._phonetic = False
        elif name == "sheetData":
            self._in_data = False


def careful_rows(pieces: Iterable[bytes], cells: CellReader, limits: ReadLimits, *, after: int = 0) -> Iterator[Row]:
    """Yield rows in the order of the part, ascending or not; rows without a number count up from ``after``."""
    data = SheetData(cells, limits, after)
    for piece in pieces:
        data.feed(piece)
        yield from data.done
        data.done.clear()
        data.numbers.clear()
    data.feed(b"", last=True)
    yield from data.done
