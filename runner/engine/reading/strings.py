"""A workbook's shared strings, held within a bound."""

from array import array

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits

_LISTED = 300_000  # strings kept as they are; values that repeat come early in the part, so these serve most


class SharedStrings:
    """Strings by index: the first ones as a list, the rest packed as UTF-8 in a fraction of the memory.

    An empty string is None: a blank to a person.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self.listed: list[str | None] = []
        self._packed = bytearray()
        self._ends = array("Q", [0])
        self._limits = limits

    def __len__(self) -> int:
        return len(self.listed) + len(self._ends) - 1

    def extend(self, strings: list[str | None]) -> None:
        room = _LISTED - len(self.listed)
        if room > 0:
            self.listed += strings[:room]
            strings = strings[room:]
        for one in strings:
            self._packed += (one or "").encode("utf-8", "replace")
            self._ends.append(len(self._packed))
        if len(self) > self._limits.max_strings or len(self._packed) > self._limits.max_strings_held:
            raise errors.too_large(f"{len(self)} shared strings and more")

    def __getitem__(self, index: int) -> str | None:
        """IndexError past the end; a negative index is the caller's to refuse."""
        if index < len(self.listed):
            return self.listed[index]
        index -= len(self.listed)
        start, end = self._ends[index], self._ends[index + 1]
        return self._packed[start:end].decode() or None
