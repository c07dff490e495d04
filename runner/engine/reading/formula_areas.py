"""The areas that the formulas of an .xls read: `SUM(B5:B20)` shows that these rows are one table.

A formula is a sequence of tokens ([MS-XLS] 2.5.198). Only areas of the same sheet are of interest; the lengths of the
other tokens are needed to find them. At a token that is not known, the rest of the formula is skipped.
"""

from collections.abc import Iterator

from runner.engine.reading.books import Area

_AREA, _TEXT, _ATTRIBUTE, _CHOOSE = 0x25, 0x17, 0x19, 0x04
_LENGTH_OFFSET = 20  # of the length of the tokens in a formula's record, in Excel 97 and later
_OPERATORS = range(0x03, 0x17)  # operators: no operands
# token -> bytes of its operands
_OPERAND_BYTES = {
    0x01: 4, 0x02: 4, 0x1C: 1, 0x1D: 1, 0x1E: 2, 0x1F: 8, 0x20: 7, 0x21: 2, 0x22: 3, 0x23: 4, 0x24: 4, 0x25: 8,
    0x26: 6, 0x27: 6, 0x28: 6, 0x29: 2, 0x2A: 4, 0x2B: 8, 0x2C: 4, 0x2D: 8, 0x39: 6, 0x3A: 6, 0x3B: 10, 0x3C: 6,
    0x3D: 10,
}  # fmt: skip


def _u16(body: bytes, at: int) -> int:
    """Read a 16-bit number at an offset, which must be inside."""
    return body[at] | body[at + 1] << 8


def areas_read(body: bytes) -> Iterator[Area]:
    """Yield the areas that the formula of a record reads, those of the same sheet; none from an unknown token on."""
    if len(body) < _LENGTH_OFFSET + 2:
        return
    tokens = body[_LENGTH_OFFSET + 2 : _LENGTH_OFFSET + 2 + _u16(body, _LENGTH_OFFSET)]
    at = 0
    while at < len(tokens):
        token = tokens[at] if tokens[at] < 0x20 else tokens[at] & 0x1F | 0x20  # without the class of its operand
        length = _operand_length(tokens, at + 1, token)
        if length is None or at + 1 + length > len(tokens):
            return
        if token == _AREA:
            top, bottom, left, right = (_u16(tokens, at + 1 + step) for step in (0, 2, 4, 6))
            yield top + 1, (left & 0xFF) + 1, bottom + 1, (right & 0xFF) + 1
        at += 1 + length


def _operand_length(tokens: bytes, at: int, token: int) -> int | None:
    """Return the length in bytes of a token's operands, which start at an offset; None: not known."""
    if token in _OPERATORS:
        return 0
    if token == _TEXT and at + 1 < len(tokens):
        return 2 + tokens[at] * (2 if tokens[at + 1] & 1 else 1)
    if token == _ATTRIBUTE and at + 2 < len(tokens):
        return 3 + (2 * (_u16(tokens, at + 1) + 1) if tokens[at] & _CHOOSE else 0)
    return _OPERAND_BYTES.get(token)
