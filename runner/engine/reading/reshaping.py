"""Reads lines of a text file that do not keep its shape, where only one reading fits the columns of the others.

A record of another width than the table's is one of three things: a whole line in quotes, a line with another
delimiter, or a line that a break inside a value has cut in two. Each is read right if the result has the table's width
and its values are of the kinds that the columns hold, and is reported with its row. Anything else stays as it is.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from runner.engine.reading.kinds import LEAST_VALUES, Class, Kinds, class_of, contradicts
from runner.engine.reading.records import Dialect, Troubles

OTHERS: Final = ";,\t|"
_SAMPLE_ROWS: Final = 200
_MOST_LINES: Final = 4  # lines that one record may be cut into
_WHOLE = re.compile(r'"(?P<inside>(?:[^"]|"")*+)"(?P<end>[ \t]*[\r\n]*)')
_QUOTED_SHARE: Final = 0.8
_LEAST_WIDTH: Final = 3  # columns from which a line in quotes cannot be a name such as "Lee, Ann"


def whole_lines(sample: Sequence[str]) -> list[str] | None:
    """Strip the quotes around each of the lines; None unless that is how the file is written."""
    matches = [_WHOLE.fullmatch(line) for line in sample]
    inner = [match["inside"].replace('""', '"') for match in matches if match]
    if len(inner) < 2 or len(inner) < _QUOTED_SHARE * (len(sample) - 1):
        return None
    bare = [match["inside"].replace('""', '"') if match else line for match, line in zip(matches, sample, strict=True)]
    for delimiter in OTHERS:
        widths = {len(_split(line, delimiter)) for line in bare}
        spaced = sum(f"{delimiter} " in line for line in inner)
        if len(widths) == 1 and widths.pop() >= _LEAST_WIDTH and spaced * 2 < len(inner):
            return unquoted(sample)
    return None


def unquoted(lines: Iterable[str]) -> list[str]:
    """Return the lines; of a line that is in quotes as a whole, what is between them."""
    matched = [(line, _WHOLE.fullmatch(line)) for line in lines]
    return [whole["inside"].replace('""', '"') + whole["end"] if whole else line for line, whole in matched]


def unquoted_blocks(blocks: Iterable[list[str]]) -> Iterator[list[str]]:
    """Return the blocks with their lines as `unquoted` returns them."""
    return map(unquoted, blocks)


def _split(line: str, delimiter: str) -> list[str]:
    """Split a line by a delimiter; empty if its quotes are irregular."""
    try:
        return next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


class Reshaper:
    """Corrects the records of one file, batch by batch."""

    def __init__(self, dialect: Dialect, troubles: Troubles) -> None:
        """Know the usual width of records; `troubles` receives those that are corrected."""
        self._delimiter = dialect.delimiter
        self._width = dialect.width
        self._troubles = troubles
        self._kinds = Kinds()
        self._classes: list[Class] = []

    def reshape(self, above: int, records: list[list[str]], widths: Sequence[int]) -> None:
        """Correct the records of a batch in place; a line that joins another becomes a blank record.

        `above`: the number of records before these, `widths`: the number of cells of each. The first batch with a
        record of another width shows what kinds of values the columns have.
        """
        if widths.count(self._width) == len(widths) or (self._width < 2 and not self._learn_width(widths)):
            return
        if not self._classes:
            self._learn_kinds(records)
        index = 0
        while index < len(records):
            width = widths[index]
            if width and width != self._width:
                index += self._correct(index, above + index + 1, records, widths)
            index += 1

    def _learn_width(self, widths: Sequence[int]) -> bool:
        """Set the width of records to that of the first ones if these have several cells, though most lines have one;
        whether it was set."""
        first = next(filter(None, widths), 0)
        if self._classes or first < _LEAST_WIDTH or widths.count(first) < LEAST_VALUES:
            return False
        self._width = first
        return True

    def _learn_kinds(self, records: Sequence[list[str]]) -> None:
        """Learn what kinds of values the columns hold, from the first whole records."""
        whole = [record for record in records if len(record) == self._width][1 : _SAMPLE_ROWS + 1]
        columns = zip(*whole, strict=True) if whole else [()] * self._width
        self._classes = [class_of([self._kinds[cell] for cell in column if cell]) for column in columns]

    def _correct(self, index: int, row: int, records: list[list[str]], widths: Sequence[int]) -> int:
        """Correct the record at an index of the batch, if only one reading fits the columns; returns how many records
        after it are part of it. `row`: its number in the file."""
        record = records[index]
        if (
            len(record) == 1
            and self._delimiter in record[0]
            and self._is_whole(cells := _split(record[0], self._delimiter), row)
        ):
            records[index] = cells
            self._troubles.add("line_quoted", row)
            return 0
        text = self._delimiter.join(record)
        for other in OTHERS:
            if other != self._delimiter and text.count(other) >= self._width - 1:
                cells = _split(text, other)
                if self._is_whole(cells, row) and (self._width > 2 or len(record) == 1):
                    records[index] = cells
                    self._troubles.add("delimiter_mixed", row)
                    return 0
        return self._join_lines(index, row, records, widths) if len(record) < self._width else 0

    def _is_whole(self, record: Sequence[str], row: int) -> bool:
        """Whether the values are those of a record, or the names of a header."""
        if len(record) != self._width:
            return False
        kinds = [self._kinds[cell] if cell else None for cell in record]
        is_header = row == 1 and all(kind == "word" for kind in kinds)
        return is_header or not any(map(contradicts, kinds, self._classes))

    def _join_lines(self, index: int, row: int, records: list[list[str]], widths: Sequence[int]) -> int:
        """Join lines that a break inside a value has cut, if only the joined record fits the columns; returns how many
        records became part of it."""
        record = records[index]
        for count in range(1, _MOST_LINES):
            if index + count >= len(records) or not 0 < widths[index + count] < self._width:
                return 0
            following = records[index + count]
            joined_cell = f"{record[-1]}\n{following[0]}".strip("\n")
            record = [*record[:-1], joined_cell, *following[1:]]
            if len(record) > self._width:
                return 0
            alone = [self._kinds[cell] if cell else None for cell in following]
            if self._is_whole(record, row) and any(map(contradicts, alone, self._classes)):
                records[index] = record
                for absorbed in range(index + 1, index + count + 1):
                    records[absorbed] = []
                self._troubles.add("line_joined", row)
                return count
        return 0
