"""Keeps the rows of a sheet compactly, so that it is parsed once instead of twice.

The structure pass must see a whole sheet before the first row can be transformed. Parsing it again would cost more
than all other passes together, so rows are spooled as they stream by, in column-wise blocks. The first million cells or
so are kept as they are, except columns of texts that hardly repeat, which are joined. After that, and from the first
row on where the sheet is known to be long, each column is packed by the kinds of its values and deflated, at a few
bytes a cell. A sheet that exceeds its budget is dropped and read again instead, so memory stays bounded.
"""

import marshal
import pickle
from array import array
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from itertools import compress
from typing import Any, Final, NamedTuple

from isal import isal_zlib

from runner.engine.common.rowsets import RowSet
from runner.engine.reading import Block, Layout, Row, Sheet, SizedSheet, blocks_of, rows_of

PACKED_BYTES: Final = 96 * 1024 * 1024  # the most bytes of packed rows that a job keeps
LOOSE_CELLS: Final = 1_200_000  # the most cells that a job keeps unpacked
LONG_PART_BYTES: Final = 48 * 1024 * 1024  # bytes of a sheet's part that has too many cells to be kept unpacked
_LEVEL: Final = 1
_TEXTS_SAMPLED: Final = 64  # texts that show whether those of a column repeat
_SEPARATOR: Final = "\x1f"


class Room:
    """The budget that all sheets of a job share: bytes left for packed blocks, cells left for loose ones."""

    __slots__ = ("left", "loose")

    def __init__(self, left: int = PACKED_BYTES, loose: int = LOOSE_CELLS) -> None:
        """Begin with so many bytes for packed blocks, and so many cells for loose ones."""
        self.left = left
        self.loose = loose


class LooseBlock(NamedTuple):
    """A block of rows that is kept as it is, except for columns whose texts are joined to one."""

    numbers: range | list[int]
    columns: list[list[Any] | str]

    @property
    def cells(self) -> int:
        """How many cells it has, blank ones included."""
        return len(self.columns) * len(self.numbers)

    def restored(self, wanted: Collection[int] | None) -> Block:
        """Return the block as it was; joined columns (0-based) that are not wanted are empty."""
        columns: list[list[Any]] = [
            column
            if isinstance(column, list)
            else (column.split(_SEPARATOR) if wanted is None or index in wanted else [])
            for index, column in enumerate(self.columns)
        ]
        return Block(list(self.numbers), columns)


class Extent(NamedTuple):
    """The extent of a block: first and last row, and a bit for each column with a value (bit 1: column A)."""

    first: int
    last: int
    columns: int


class SpooledSheet:
    """A sheet whose rows are spooled on the first reading; afterwards `blocks` returns them by column."""

    def __init__(self, sheet: Sheet, room: Room) -> None:
        """Spool nothing yet; `room` is shared with the job's other sheets."""
        self._sheet = sheet
        self._room = room
        self._is_long = (
            isinstance(sheet, SizedSheet) and sheet.stored_bytes() > LONG_PART_BYTES
        )  # packed from its first block on
        self._blocks: list[LooseBlock | slice] = []  # a slice: of the packed bytes
        self._packed = bytearray()  # of all blocks: one area that grows has no gaps
        self.complete = False  # every row is spooled; the sheet itself is no longer needed
        self.read = RowSet()  # row numbers of the first reading
        self.extents: list[Extent] = []  # of the blocks, in their order
        self.name = sheet.name
        self.index = sheet.index
        self.visibility = sheet.visibility

    def layout(self) -> Layout:
        return self._sheet.layout()

    def reopen(self, sheet: Sheet) -> None:
        """Continue with the same sheet of a reopened file, which has to be open while rows are read."""
        self._sheet = sheet

    def rows(self) -> Iterator[Row]:
        return rows_of(self.blocks()) if self.complete else self._sheet.rows()

    def blocks(self) -> Iterator[Block]:
        """Yield the rows by column, from the spool, or from the sheet while they are spooled."""
        if self.complete:
            return map(self._restore, self._blocks)
        return self._first_reading()

    def columns(self, columns: Collection[int]) -> Iterator[Block]:
        """Yield the spooled rows again with only these columns (0-based) restored; the others are empty lists. Only of
        a sheet that is `complete`."""
        for block in self._blocks:
            yield self._restore(block, columns)

    def _first_reading(self) -> Iterator[Block]:
        """Read the sheet and spool it on the way; what is known of its rows counts only at the end."""
        room = self._room
        self._drop_blocks()
        fits = True
        numbers, extents = RowSet(), []
        for block in blocks_of(self._sheet):
            yield block
            numbers.add(block.numbers)
            extents.append(_extent_of(block))
            fits = fits and self._spool_block(block, room)
        self.complete, self.read, self.extents = fits, numbers, extents

    def some_blocks(self, wanted: Callable[[Extent], object]) -> Iterator[Block]:
        """Yield the blocks whose extent is wanted; the others are not unpacked. A sheet that is not `complete` is read
        again, up to the last such block."""
        is_wanted = [wanted(extent) for extent in self.extents]
        if self.complete:
            yield from map(self._restore, compress(self._blocks, is_wanted))
        elif any(is_wanted):
            last_row = max(extent.last for extent in compress(self.extents, is_wanted))
            for block in blocks_of(self._sheet):
                if block.numbers[0] > last_row:
                    return
                if wanted(_extent_of(block)):
                    yield block

    def _spool_block(self, block: Block, room: Room) -> bool:
        """Spool a block; False if the sheet exceeded the budget and was dropped."""
        cells = len(block.columns) * len(block.numbers)
        if room.loose >= cells and not self._is_long:
            room.loose -= cells
            self._blocks.append(_loosen(block))
            return True
        packed = pack(block)
        room.left -= len(packed)
        start = len(self._packed)
        self._packed += packed
        self._blocks.append(slice(start, len(self._packed)))
        if room.left < 0:
            self._drop_blocks()
            return False
        return True

    def _restore(self, block: LooseBlock | slice, wanted: Collection[int] | None = None) -> Block:
        """Restore a spooled block; columns (0-based) that are not wanted may be empty."""
        if isinstance(block, slice):
            return unpack(memoryview(self._packed)[block], wanted)
        return block.restored(wanted)

    def release(self) -> None:
        """Free the memory of the rows; whoever wants them again reads the sheet."""
        self._drop_blocks()
        self.complete = False

    def _drop_blocks(self) -> None:
        """Forget the spooled blocks and give their room back."""
        for block in self._blocks:
            if isinstance(block, LooseBlock):
                self._room.loose += block.cells
        self._room.left += len(self._packed)
        self._blocks, self._packed = [], bytearray()


def _extent_of(block: Block) -> Extent:
    """Return the extent of a block."""
    filled = 0
    for number, column in enumerate(block.columns, 1):
        # The first value settles it for most columns; only a column that starts blank is scanned.
        if any(column) or column.count(None) != len(column):
            filled |= 1 << number
    return Extent(block.numbers[0], block.numbers[-1], filled)


def _loosen(block: Block) -> LooseBlock:
    """Return the block in less memory: texts that hardly repeat take several times the memory of one long text."""
    numbers = block.numbers
    return LooseBlock(_as_range(numbers) or numbers, [_join_distinct(column) for column in block.columns])


def _join_distinct(column: list[Any]) -> list[Any] | str:
    """Return the texts of a column as one text if they hardly repeat; otherwise the column."""
    if len(set(column[:_TEXTS_SAMPLED])) * 2 < _TEXTS_SAMPLED or set(map(type, column)) != {str}:
        return column
    joined = _SEPARATOR.join(column)
    return joined if joined.count(_SEPARATOR) == len(column) - 1 else column


def _as_range(numbers: list[int]) -> range | None:
    """Return the numbers as a range; None if any is missing between the first and the last one."""
    whole = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    return whole if numbers == list(whole) else None


def pack(block: Block) -> bytes:
    """Return a block as compressed bytes."""
    whole = _as_range(block.numbers)
    numbers = array("I", block.numbers).tobytes() if whole is None else (whole.start, whole.stop)
    content = (numbers, [_pack_column(column) for column in block.columns])
    return bytes(isal_zlib.compress(marshal.dumps(content), _LEVEL))


def unpack(data: bytes | memoryview, wanted: Collection[int] | None = None) -> Block:
    """Restore the block of compressed bytes; columns (0-based) that are not wanted are empty."""
    numbers, columns = marshal.loads(isal_zlib.decompress(data))  # noqa: S302  # our own bytes, never left this process
    rows = list(array("I", numbers)) if isinstance(numbers, bytes) else list(range(*numbers))
    restored = [
        _RESTORERS[form](body) if wanted is None or index in wanted else []
        for index, (form, body) in enumerate(columns)
    ]
    if any(column and len(column) != len(rows) for column in restored):
        raise RuntimeError("a spooled column lost a value")
    return Block(rows, restored)


_PLAIN_KINDS: Final = frozenset({type(None), bool, int, float, str})
_TIMED_KINDS: Final = _PLAIN_KINDS | {datetime}
_DATED_KINDS: Final = _TIMED_KINDS - {int} | {date}
_ONLY_DAYS: Final = {date}
# How a column may be packed; numbers, as they are part of packed blocks.
_VALUES, _NUMBERED_DAYS, _TIMED, _DATED, _ANYTHING = range(5)


def _pack_column(column: list[Any]) -> tuple[int, bytes]:
    """Return the form in which a column is packed, a key of `_RESTORERS`, and the packed values; all of them are
    restored with the types that they have.

    The fastest form that the kinds of values allow is taken: marshal knows all but dates and times.
    """
    kinds = set(map(type, column))
    if kinds <= _PLAIN_KINDS:
        return _VALUES, marshal.dumps(column)
    if kinds == _ONLY_DAYS:
        return _NUMBERED_DAYS, array("i", map(date.toordinal, column)).tobytes()
    if kinds <= _TIMED_KINDS:
        return _TIMED, marshal.dumps([v.isoformat().encode() if type(v) is datetime else v for v in column])
    if kinds <= _DATED_KINDS:
        return _DATED, marshal.dumps([v if type(v) in _PLAIN_KINDS else _number_or_text(v) for v in column])
    return _ANYTHING, pickle.dumps(column, 5)


def _number_or_text(moment: date) -> int | bytes:
    """Return the number of a date, or the text of a date with a time of day, which stand for it in a packed column."""
    return moment.isoformat().encode() if isinstance(moment, datetime) else moment.toordinal()


def _restore_timed(body: bytes) -> list[Any]:
    """Restore a column in which bytes stand for dates with a time of day."""
    values = marshal.loads(body)  # noqa: S302  # as above
    return [datetime.fromisoformat(v.decode()) if type(v) is bytes else v for v in values]


def _restore_dated(body: bytes) -> list[Any]:
    """Restore a column in which numbers stand for dates, and bytes for dates with a time of day."""
    values = marshal.loads(body)  # noqa: S302  # as above
    days = [date.fromordinal(v) if type(v) is int else v for v in values]
    return [datetime.fromisoformat(v.decode()) if type(v) is bytes else v for v in days] if _has_bytes(days) else days


def _has_bytes(values: list[Any]) -> bool:
    """Whether any value is bytes."""
    return bytes in set(map(type, values))


_RESTORERS: Final[dict[int, Callable[[bytes], list[Any]]]] = {
    _VALUES: marshal.loads,
    _NUMBERED_DAYS: lambda body: list(map(date.fromordinal, array("i", body))),
    _TIMED: _restore_timed,
    _DATED: _restore_dated,
    _ANYTHING: pickle.loads,
}
