"""Rows that have to wait for all the others: to be sorted, or until it is known which of several stays.

Theory of operation. A box has no disk, so rows wait in memory, packed by column at a few bytes a cell. `MAX_BYTES` and
`MAX_ROWS` bound it; a job beyond them ends with a clear error. Sorting moves no rows: it orders row numbers by one
column after the other, from the least important to the most important one, which Python's stable sort allows. Then rows
are dealt out to as many piles as it takes for one to fit into memory unpacked, and each pile is put in order.
"""

import pickle
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from runner.engine.contract import EndCode
from runner.engine.options import DedupeOptions
from runner.engine.protocol import EngineStop
from runner.engine.reading import Block
from runner.engine.reading.spool import pack, unpack
from runner.engine.transforming.computing import RowRemark
from runner.engine.values.checking import CellProblem

MAX_BYTES: Final = 128 * 1024 * 1024  # of packed rows
MAX_ROWS: Final = 2_000_000
PILE: Final = 65_536  # rows that are unpacked at once
_BATCH: Final = 1_024  # rows of a pile that are packed together
_NUMBERS: Final = frozenset({int, float, Decimal})


class Chunk(NamedTuple):
    """Transformed rows of a table, not validated yet."""

    numbers: list[int]  # in the sheet
    columns: list[list[Any]]
    wrong: list[list[int]]  # by column: indexes of cells that are not of its type
    remarks: list[RowRemark]  # to report
    errors: dict[int, list[CellProblem]]  # by index: what is wrong with the row already
    value_columns: Sequence[int] = ()  # of rows that columns became: the column of the sheet that each value is in
    # Row of the sheet -> how many of the rows that its columns became are left out, where some stay.
    partly: Mapping[int, int] = MappingProxyType({})
    # By output column that takes the first value of several: the column of the sheet that each value is in.
    chosen: Mapping[int, Sequence[int]] = MappingProxyType({})

    def only(self, indexes: Sequence[int]) -> "Chunk":
        """Copy the rows with these indexes, which are in ascending order."""
        new_index = {old: new for new, old in enumerate(indexes)}
        return Chunk(
            [self.numbers[i] for i in indexes],
            [[values[i] for i in indexes] for values in self.columns],
            [[new_index[i] for i in wrong if i in new_index] for wrong in self.wrong],
            [
                remark._replace(indexes=[new_index[i] for i in remark.indexes if i in new_index])
                for remark in self.remarks
            ],
            {new_index[i]: problems for i, problems in self.errors.items() if i in new_index},
            [self.value_columns[i] for i in indexes] if self.value_columns else (),
            self._count_partly(indexes) if self.value_columns else self.partly,
            {n: [columns[i] for i in indexes] for n, columns in self.chosen.items()},
        )

    def _count_partly(self, indexes: Sequence[int]) -> Mapping[int, int]:
        """Count again, for `partly`, how many rows of each sheet row are left out once only those with these indexes
        stay."""
        before, stay = Counter(self.numbers), Counter(self.numbers[i] for i in indexes)
        return {row: self.partly.get(row, 0) + before[row] - stay[row] for row in stay}


class WaitingRoom:
    """Counts the memory that waiting rows take, and ends a job that needs too much."""

    def __init__(self, why: str) -> None:
        """Count nothing yet; `why` names the setting of the manifest for which rows wait."""
        self._why = why
        self._bytes = 0

    def reserve(self, size: int, rows: int) -> None:
        """Add so many bytes; `rows`: all rows that wait now. Raises EngineStop once either is too much."""
        self._bytes += size
        if self._bytes > MAX_BYTES or rows > MAX_ROWS:
            raise EngineStop(
                EndCode.INPUT_UNREADABLE,
                f"{self._why} has to hold all rows at once, and these are too many: the limit is {MAX_ROWS:,} rows "
                f"and {MAX_BYTES // 1024 // 1024} MiB",
                rule=self._why, reason="too_large",
                remedy=f"split the input, or leave out {self._why}",
            )  # fmt: skip


class HeldChunks:
    """Chunks of all tables, until every row has been seen and it is known which rows stay."""

    def __init__(self, options: DedupeOptions, column_by_field: Mapping[str, int]) -> None:
        """Hold nothing yet; `column_by_field`: the output column of each field."""
        self._budget = WaitingRoom("rows.dedupe")
        self._keys = RowKeys(options)
        self._key_columns = [column_by_field[name] for name in options.key]
        # The output column that says which row is newer.
        self._newness_column = None if options.by is None else column_by_field[options.by]
        self._packed: list[tuple[str, bytes, bytes] | None] = []  # table, columns, the rest of a chunk; None: drained
        self._starts = array("q")  # of each chunk: how many rows were there before it
        self.rows = 0

    def add(self, table: str, chunk: Chunk) -> None:
        """Hold the rows of a table back until all rows have come."""
        body = pack(Block(chunk.numbers, chunk.columns))
        rest = pickle.dumps(
            (chunk.wrong, chunk.remarks, chunk.errors, chunk.value_columns, dict(chunk.partly), dict(chunk.chosen)), 5
        )
        self._starts.append(self.rows)
        self.rows += len(chunk.numbers)
        self._budget.reserve(len(body) + len(rest), self.rows)
        self._packed.append((table, body, rest))
        newness: list[Any] | None = None
        if self._newness_column is not None:
            newness = list(chunk.columns[self._newness_column])
            for n in chunk.wrong[self._newness_column]:
                newness[n] = None  # what is not of its type is not newer than what is
        self._keys.add([chunk.columns[n] for n in self._key_columns], newness)

    def drain(self) -> Iterator["JudgedChunk"]:
        """Yield each chunk once, in the order of their coming, and free its memory."""
        is_removed, tied = self._keys.decide_removed()
        for n, packed in enumerate(self._packed):
            if packed is not None:
                table, body, rest = packed
                self._packed[n] = None
                block = unpack(body)
                rest_of_chunk = pickle.loads(rest)  # noqa: S301  # our own bytes, never left this process
                chunk = Chunk(block.numbers, block.columns, *rest_of_chunk)
                start, end = self._starts[n], self._starts[n] + len(block.numbers)
                tied_rows = tied[bisect_left(tied, start) : bisect_left(tied, end)]
                yield JudgedChunk(table, chunk, is_removed[start:end], [row - start for row in tied_rows])


class JudgedChunk(NamedTuple):
    """Rows of a table, and which of them stay."""

    table: str
    chunk: Chunk
    gone: bytearray  # by index: 1 if another row with its key stays
    tied: list[int]  # indexes of rows that stay though another one is as new


class RemovedRows(NamedTuple):
    """Which rows leave because another one has their key."""

    flags: bytearray  # by row: 1 if another row with its key stays
    tied: list[int]  # rows that stay though another one is as new


class RowKeys:
    """Remembers the keys of rows in the order of their coming, and decides which of several with one key stays."""

    def __init__(self, options: DedupeOptions) -> None:
        """Remember no row yet; `options.keep` says which of several stays: first, last or newest."""
        self._policy = options.keep
        self._high, self._low = array("q"), array("q")  # halves of each key's digest
        self._newness: list[Any] = []  # what says which row is newer, by row; empty without such a field
        self._lacks_key = bytearray()  # 1: a part of the row's key is blank

    def add(self, keys: Sequence[Sequence[Any]], newness: Sequence[Any] | None) -> None:
        """Remember some rows: the columns of their key, and what says which is newer, if anything does."""
        from hashlib import blake2b  # noqa: PLC0415  # takes milliseconds to load

        for row in zip(*keys, strict=True):
            digest = blake2b(
                repr(tuple(map(_comparable, row))).encode("utf-8", "surrogatepass"), digest_size=16
            ).digest()
            self._high.append(int.from_bytes(digest[:8], signed=True))
            self._low.append(int.from_bytes(digest[8:], signed=True))
            self._lacks_key.append(None in row)
        self._newness += newness or ()

    def decide_removed(self) -> RemovedRows:
        """Decide for all rows which of several with one key stays; rows without a whole key do."""
        gone, tied = bytearray(len(self._lacks_key)), []
        order = sorted((n for n in range(len(gone)) if not self._lacks_key[n]), key=self._high.__getitem__)
        for group in _group_by_key(order, lambda n: (self._high[n], self._low[n])):
            chosen, is_tied = self._choose_row(group)
            for n in group:
                gone[n] = n != chosen
            tied += [chosen] if is_tied else []
        return RemovedRows(gone, sorted(tied))

    def _choose_row(self, group: Sequence[int]) -> tuple[int, bool]:
        """Choose the row of a group that stays, and say whether another one is as new; `group`: in the order of their
        coming."""
        if self._policy != "newest":
            return group[0 if self._policy == "first" else -1], False
        dated_rows = [n for n in group if self._newness[n] is not None]
        if not dated_rows:
            return group[-1], len(group) > 1
        newest = max(_sort_key(self._newness[n]) for n in dated_rows)
        newest_rows = [n for n in dated_rows if _sort_key(self._newness[n]) == newest]
        return newest_rows[-1], len(newest_rows) > 1


def _group_by_key(order: Sequence[int], key: Callable[[int], tuple[int, int]]) -> Iterator[list[int]]:
    """Yield groups of two and more rows with the same key, each in ascending order; `order` has rows whose keys begin
    alike side by side, `key` returns both halves of a row's key."""
    at = 0
    while at < len(order):
        end = at + 1
        while end < len(order) and key(order[end])[0] == key(order[at])[0]:
            end += 1
        if end - at > 1:
            same: dict[int, list[int]] = {}
            for n in sorted(order[at:end]):
                same.setdefault(key(n)[1], []).append(n)
            yield from (group for group in same.values() if len(group) > 1)
        at = end


def _comparable(value: Any) -> object:
    """Convert a value of a key so that equal numbers are equal: 5 for 5.0."""
    if type(value) is float and value.is_integer():
        return int(value)
    return str(value) if type(value) is Decimal else value


def _sort_key(value: Any) -> tuple[int, Any]:
    """Return a key that puts values of different kinds in some order: numbers, dates, times, the rest as texts."""
    kind = type(value)
    if kind in _NUMBERS or kind is bool:
        return 0, value
    if kind is datetime:
        return 1, value
    if kind is date:
        return 1, datetime.combine(value, time())
    return (2, value) if kind is time else (3, str(value))


class SortedRows:
    """Holds the rows of the output until all have come, and gives them back in order."""

    def __init__(self, keys: Sequence[tuple[int, bool]]) -> None:
        """Hold nothing yet; `keys`: columns of the output, the most important first, and whether the largest value
        comes first."""
        self._keys = keys
        self._budget = WaitingRoom("rows.sort")
        self._packed: list[bytes] = []  # chunks, in the order of their coming
        self._counts = array("q")  # rows of each
        self.rows = 0

    def add(self, columns: list[list[Any]], count: int) -> None:
        """Hold rows back until all of them can be sorted."""
        body = pack(Block(list(range(count)), columns))
        self.rows += count
        self._budget.reserve(len(body), self.rows)
        self._packed.append(body)
        self._counts.append(count)

    def drain(self) -> Iterator[list[list[Any]]]:
        """Yield the rows in order, as lists of columns with at most `PILE` rows each; frees the memory as it goes."""
        ranks = self._rank_rows()
        piles = [_Pile() for _ in range(-(-self.rows // PILE))]
        start = 0
        for n, body in enumerate(self._packed):
            columns = unpack(body).columns
            self._packed[n] = b""
            dealt: dict[int, list[int]] = {}
            for at in range(self._counts[n]):
                dealt.setdefault(ranks[start + at] // PILE, []).append(at)
            for number, indexes in dealt.items():
                mine = [ranks[start + at] for at in indexes]
                piles[number].add(mine, [[values[at] for at in indexes] for values in columns])
            start += self._counts[n]
        for pile in piles:
            yield pile.pop_in_order()

    def _rank_rows(self) -> "array[int]":
        """Return the place in the output of each row, from 0, by the row's number in the order of coming."""
        order = list(range(self.rows))
        for column, descending in reversed(self._keys):
            known: dict[str, str] = {}  # equal texts are kept once
            cells = (v for body in self._packed for v in unpack(body, {column}).columns[column])
            values = [known.setdefault(folded := v.casefold(), folded) if type(v) is str else v for v in cells]
            order = _sort_rows(order, values, descending=descending)
            del values, known
        ranks = array("q", bytes(8 * self.rows))
        for place, row in enumerate(order):
            ranks[row] = place
        return ranks


def _sort_rows(order: list[int], values: list[Any], *, descending: bool) -> list[int]:
    """Sort row numbers by their values, blanks last; rows with equal values stay in the order that they have."""
    filled = [n for n in order if values[n] is not None]
    try:
        filled.sort(key=values.__getitem__, reverse=descending)
    except TypeError:  # a cell that is not of its type
        filled.sort(key=lambda n: _sort_key(values[n]), reverse=descending)
    return filled if len(filled) == len(order) else filled + [n for n in order if values[n] is None]


class _Pile:
    """Rows whose places in the output are next to each other."""

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._places: list[int] = []
        self._columns: list[list[Any]] = []

    def add(self, places: list[int], columns: list[list[Any]]) -> None:
        """Add rows with their places; they are packed once there are enough."""
        self._places += places
        self._columns = [a + b for a, b in zip(self._columns, columns, strict=True)] if self._columns else columns
        if len(self._places) >= _BATCH:
            self._packed.append(pack(Block(self._places, self._columns)))
            self._places, self._columns = [], []

    def pop_in_order(self) -> list[list[Any]]:
        """Return the columns of the pile's rows in the order of their places, and empty the pile."""
        places, columns = self._places, self._columns
        for body in self._packed:
            block = unpack(body)
            places = places + block.numbers
            columns = [a + b for a, b in zip(columns, block.columns, strict=True)] if columns else block.columns
        self._packed, self._places, self._columns = [], [], []
        order = sorted(range(len(places)), key=places.__getitem__)
        return [[values[n] for n in order] for values in columns]
