"""One stored cell to its value."""

from collections.abc import Callable, Sequence

from runner.engine.reading import serials
from runner.engine.reading.texts import unescaped
from runner.engine.reading.values import NO_CACHED_VALUE, CellError, Value
from runner.engine.reading.xlsx.styles import Kind, Styles

_MEMO = 50_000  # dates and numbers repeat; the memory of them is bounded


class CellReader:
    """Turns (type, style, text, formula) into a value, with the book's strings, styles and epoch at hand."""

    def __init__(self, strings: Callable[[], Sequence[str]], styles: Styles, *, epoch_1904: bool) -> None:
        self._load_strings = strings
        self._strings: Sequence[str] | None = None
        self._styles = styles
        self._epoch_1904 = epoch_1904
        self._dates: dict[tuple[Kind, str], Value] = {}

    def value(  # one line per type of cell
        self, kind: str, style: int, text: str | None, *, formula: bool
    ) -> Value:
        """``text`` is None where the cell stores no value at all."""
        if not text:
            return self._blank(kind, text, formula=formula)
        if kind == "s":
            return self.shared(text)
        if kind in ("n", ""):
            return self.number(style, text)
        if kind in ("str", "inlineStr"):
            return unescaped(text) or None
        if kind == "b":
            return text.strip().lower() not in ("0", "false")
        if kind == "e":
            return CellError(text.strip()[:40])
        if kind == "d":
            return serials.iso_value(text)
        return self.number(style, text)

    def shared(self, text: str) -> Value:
        if self._strings is None:
            self._strings = self._load_strings()
        text = text.strip()
        if not text.isdecimal() or len(text) > 12 or int(text) >= len(self._strings):
            return CellError("#VALUE!")  # points past the end of the strings: there is no value to give
        return self._strings[int(text)] or None

    def number(self, style: int, text: str) -> Value:
        kind = self._styles.kind(style)
        if kind is Kind.NUMBER:
            return serials.number_from_text(text)
        key = (kind, text)
        if key in self._dates:
            return self._dates[key]
        value = self._dated(kind, serials.number_from_text(text))
        if len(self._dates) >= _MEMO:
            self._dates.clear()
        self._dates[key] = value
        return value

    def _dated(self, kind: Kind, serial: Value) -> Value:
        if not isinstance(serial, int | float) or abs(serial) > 1e9:
            return serial
        if kind is Kind.DURATION:
            return serials.duration_value(serial)
        if kind is Kind.TIME:
            return serials.time_value(serial, epoch_1904=self._epoch_1904)
        if kind is Kind.DATETIME:
            return serials.datetime_value(serial, epoch_1904=self._epoch_1904)
        return serials.date_value(serial, epoch_1904=self._epoch_1904)

    @staticmethod
    def _blank(kind: str, text: str | None, *, formula: bool) -> Value:
        if formula and (text is None or kind != "str"):
            return NO_CACHED_VALUE
        return None  # an empty text is a blank to a person
