"""Numbers as binary formats store them, given the meaning of their style."""

import math
import struct

from runner.engine.reading import serials
from runner.engine.reading.shown import shown
from runner.engine.reading.styles import Kind, Styles
from runner.engine.reading.values import CellError, Value

_EXACT = 2**53  # below this one every whole number is exact in a double
_MEMO = 50_000
_DOUBLE = struct.Struct("<d")
ERRORS = {
    0x00: CellError("#NULL!"),
    0x07: CellError("#DIV/0!"),
    0x0F: CellError("#VALUE!"),
    0x17: CellError("#REF!"),
    0x1D: CellError("#NAME?"),
    0x24: CellError("#NUM!"),
    0x2A: CellError("#N/A"),
    0x2B: CellError("#GETTING_DATA"),
}
UNKNOWN_ERROR = CellError("#UNKNOWN!")


def rk(raw: int) -> float:
    """A number packed into 32 bits: the top of a double or a whole number, perhaps in hundredths."""
    if raw & 2:
        value: float = (raw >> 2) - (1 << 30 if raw & 0x80000000 else 0)
    else:
        (value,) = _DOUBLE.unpack(b"\0\0\0\0" + struct.pack("<I", raw & 0xFFFFFFFC))
    return value / 100 if raw & 1 else value


def dated(kind: Kind, serial: float, *, epoch_1904: bool) -> Value:
    """A serial number in a date, time or duration format."""
    if abs(serial) > 1e9:
        return serial
    if kind is Kind.DURATION:
        return serials.duration_value(serial)
    if kind is Kind.TIME:
        return serials.time_value(serial, epoch_1904=epoch_1904)
    if kind is Kind.DATETIME:
        return serials.datetime_value(serial, epoch_1904=epoch_1904)
    return serials.date_value(serial, epoch_1904=epoch_1904)


class NumberReader:
    def __init__(self, styles: Styles, *, epoch_1904: bool) -> None:
        self._styles = styles
        self._epoch_1904 = epoch_1904
        self._known: dict[tuple[Kind, float], Value] = {}

    def value(self, style: int, number: float) -> Value:
        kind = self._styles.kind(style)
        if not math.isfinite(number):
            return ERRORS[0x24]
        plain: float = int(number) if -_EXACT < number < _EXACT and number == int(number) else number
        if kind is Kind.NUMBER:
            return plain
        if kind is Kind.SHOWN:
            return shown(self._styles.shows[style], plain)
        key = (kind, plain)
        if key not in self._known:
            if len(self._known) >= _MEMO:
                self._known.clear()
            self._known[key] = dated(kind, plain, epoch_1904=self._epoch_1904)
        return self._known[key]
