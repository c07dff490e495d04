"""Text as OOXML stores it: entities and escapes decoded, and a workbook's shared strings within a memory bound."""

import re
from array import array

from runner.engine.reading import errors
from runner.engine.reading.books import ReadLimits

XML_BLANKS = " \t\r\n"
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_ENTITY = re.compile("&(?:#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def unescaped(text: str) -> str:
    """Undo ``_x000D_`` escapes; halves of surrogate pairs are joined, lone ones replaced."""
    if "_x" not in text:
        return text
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        plain = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def without_entities(text: str) -> str:
    """Undo the five named entities and numbered characters; anything else stays as it is."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


_LISTED = 300_000  # strings kept as they are; values that repeat come early in the part, so these serve most
_LISTED_CHARACTERS = 32 * 1024 * 1024


class SharedStrings:
    """Strings by index: the first ones as a list, the rest packed as UTF-8 in a fraction of the memory.

    An empty string is None: a blank to a person.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self.listed: list[str | None] = []
        self._packed = bytearray()
        self._ends = array("Q", [0])
        self._characters = 0  # in the listed ones
        self._limits = limits

    def __len__(self) -> int:
        return len(self.listed) + len(self._ends) - 1

    def extend(self, strings: list[str | None]) -> None:
        if len(self.listed) < _LISTED and self._characters < _LISTED_CHARACTERS and len(self._ends) == 1:
            self.listed += strings
            self._characters += sum(map(len, filter(None, strings)))
            strings = []
        for one in strings:
            self._packed += (one or "").encode("utf-8", "replace")
            self._ends.append(len(self._packed))
        held = self._characters + len(self._packed)
        if len(self) > self._limits.max_strings or held > self._limits.max_strings_held:
            raise errors.too_large(f"{len(self)} shared strings and more")

    def __getitem__(self, index: int) -> str | None:
        """IndexError past the end; a negative index is the caller's to refuse."""
        if index < len(self.listed):
            return self.listed[index]
        index -= len(self.listed)
        start, end = self._ends[index], self._ends[index + 1]
        return self._packed[start:end].decode() or None
