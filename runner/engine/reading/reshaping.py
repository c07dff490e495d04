"""Reads lines of a text file that do not keep its shape, where only one reading fits the columns of the others.

A record of another width than the table's is one of three things: a whole line in quotes, a line with another
delimiter, or a line that a break inside a value has cut in two. Each is read right if the result has the table's width
and its values are of the kinds that the columns hold, and is reported with its row. Anything else stays as it is.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from runner.engine.reading.kinds import LEAST, Class, Kinds, class_of, contradicts
from runner.engine.reading.records import Dialect, Troubles

OTHERS: Final = ";,\t|"
_SAMPLE: Final = 200
_LINES: Final = 4  # lines that one record may be cut into
_WHOLE = re.compile(r'"((?:[^"]|"")*+)"([ \t]*[\r\n]*)')
_QUOTED_SHARE: Final = 0.8
_WIDE: Final = 3  # columns from which a line in quotes cannot be a name such as "Lee, Ann"


def whole_lines(sample: Sequence[str]) -> list[str] | None:
    """The lines without the quotes around each of them; None unless that is how the file is written."""
    lines = [_WHOLE.fullmatch(line) for line in sample]
    inner = [found[1].replace('""', '"') for found in lines if found]
    if len(inner) < 2 or len(inner) < _QUOTED_SHARE * (len(sample) - 1):
        return None
    bare = [found[1].replace('""', '"') if found else line for found, line in zip(lines, sample, strict=True)]
    for delimiter in OTHERS:
        widths = {len(_split(line, delimiter)) for line in bare}
        spaced = sum(f"{delimiter} " in line for line in inner)
        if len(widths) == 1 and widths.pop() >= _WIDE and spaced * 2 < len(inner):
            return unquoted(sample)
    return None


def unquoted(lines: Iterable[str]) -> list[str]:
    """The lines, those that are in quotes as a whole without them."""
    found = [(line, _WHOLE.fullmatch(line)) for line in lines]
    return [whole[1].replace('""', '"') + whole[2] if whole else line for line, whole in found]


def unquoted_blocks(blocks: Iterable[list[str]]) -> Iterator[list[str]]:
    return map(unquoted, blocks)


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


class Reshaper:
    """Corrects the records of one file, batch by batch."""

    def __init__(self, dialect: Dialect, troubles: Troubles) -> None:
        self._delimiter = dialect.delimiter
        self._width = dialect.width
        self._troubles = troubles
        self._kinds = Kinds()
        self._classes: list[Class] = []

    def reshape(self, above: int, records: list[list[str]], widths: Sequence[int]) -> None:
        """Correct them in place; `above`: the number of records before these. A line that joins another is blank."""
        if widths.count(self._width) == len(widths) or (self._width < 2 and not self._is_split(widths)):
            return
        if not self._classes:
            self._learn(records)
        at = 0
        while at < len(records):
            width = widths[at]
            if width and width != self._width:
                at += self._mend(at, above + at + 1, records, widths)
            at += 1

    def _is_split(self, widths: Sequence[int]) -> bool:
        """Whether the file starts with records of several cells, though most lines have one; takes their width."""
        first = next(filter(None, widths), 0)
        if self._classes or first < _WIDE or widths.count(first) < LEAST:
            return False
        self._width = first
        return True

    def _learn(self, records: Sequence[list[str]]) -> None:
        whole = [record for record in records if len(record) == self._width][1 : _SAMPLE + 1]
        columns = zip(*whole, strict=True) if whole else [()] * self._width
        self._classes = [class_of([self._kinds[one] for one in column if one]) for column in columns]

    def _mend(self, at: int, row: int, records: list[list[str]], widths: Sequence[int]) -> int:
        """Correct the record at this place; returns how many records after it are part of it."""
        record = records[at]
        if (
            len(record) == 1
            and self._delimiter in record[0]
            and self._is_whole(found := _split(record[0], self._delimiter), row)
        ):
            records[at] = found
            self._troubles.add("line_quoted", row)
            return 0
        text = self._delimiter.join(record)
        for other in OTHERS:
            if other != self._delimiter and text.count(other) >= self._width - 1:
                found = _split(text, other)
                if self._is_whole(found, row) and (self._width > 2 or len(record) == 1):
                    records[at] = found
                    self._troubles.add("delimiter_mixed", row)
                    return 0
        return self._join(at, row, records, widths) if len(record) < self._width else 0

    def _is_whole(self, record: Sequence[str], row: int) -> bool:
        """Whether the values are those of a record, or the names of a header."""
        if len(record) != self._width:
            return False
        kinds = [self._kinds[one] if one else None for one in record]
        is_header = row == 1 and all(kind == "word" for kind in kinds)
        return is_header or not any(map(contradicts, kinds, self._classes))

    def _join(self, at: int, row: int, records: list[list[str]], widths: Sequence[int]) -> int:
        """Join lines that a break inside a value has cut, if only the joined record fits the columns."""
        joined = records[at]
        for count in range(1, _LINES):
            if at + count >= len(records) or not 0 < widths[at + count] < self._width:
                return 0
            following = records[at + count]
            both = f"{joined[-1]}\n{following[0]}".strip("\n")
            joined = [*joined[:-1], both, *following[1:]]
            if len(joined) > self._width:
                return 0
            alone = [self._kinds[one] if one else None for one in following]
            if self._is_whole(joined, row) and any(map(contradicts, alone, self._classes)):
                records[at] = joined
                for absorbed in range(at + 1, at + count + 1):
                    records[absorbed] = []
                self._troubles.add("line_joined", row)
                return count
        return 0
