"""Keeps the rows of a sheet compactly, so that it is parsed once instead of twice.

The structure pass must see a whole sheet before the first row can be transformed. Parsing it again would cost more
than all other passes together, so rows are spooled as they stream by, in column-wise blocks. The first million cells or
so are kept as they are; after that each column is packed by type and deflated, at a few bytes a cell. A sheet that
exceeds its budget is dropped and read again instead, so memory stays bounded.
"""

import pickle
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, datetime
from itertools import repeat
from typing import Any, Final, NamedTuple

from isal import isal_zlib

from runner.engine.common.rowsets import RowSet
from runner.engine.reading import Block, Layout, Row, Sheet, blocks_of, rows_of

ROOM: Final = 96 * 1024 * 1024  # the most bytes of packed rows that a job keeps
LOOSE: Final = 1_200_000  # the most cells that a job keeps unpacked
_SEPARATOR: Final = "\x1f"
_SMALL: Final = 2**62
_LEVEL: Final = 0


class Room:
    """The budget that all sheets of a job share: bytes left for packed blocks, cells left for loose ones."""

    __slots__ = ("left", "loose")

    def __init__(self, left: int = ROOM, loose: int = LOOSE) -> None:
        self.left = left
        self.loose = loose


class Extent(NamedTuple):
    """The extent of a block: first and last row, and a bit for each column with a value (bit 1: column A)."""

    first: int
    last: int
    columns: int


class SpooledSheet:
    """A sheet whose rows are spooled on the first reading; afterwards `blocks` returns them by column."""

    def __init__(self, sheet: Sheet, room: Room) -> None:
        self._sheet = sheet
        self._room = room
        self._blocks: list[Block | bytes] = []
        self.complete = False  # every row is spooled; the sheet itself is no longer needed
        self.read = RowSet()  # row numbers of the first reading
        self.extents: list[Extent] = []  # of the blocks, in their order
        self.name = sheet.name
        self.index = sheet.index
        self.visibility = sheet.visibility

    def layout(self) -> Layout:
        return self._sheet.layout()

    def reopen(self, sheet: Sheet) -> None:
        """Continue with the same sheet of a reopened file."""
        self._sheet = sheet

    def rows(self) -> Iterator[Row]:
        return rows_of(self.blocks()) if self.complete else self._sheet.rows()

    def blocks(self) -> Iterator[Block]:
        """Yield the rows by column, from the spool, or from the sheet while they are spooled."""
        if self.complete:
            return (block if isinstance(block, Block) else unpack(block) for block in self._blocks)
        return self._first_reading()

    def columns(self, columns: Collection[int]) -> Iterator[Block]:
        """The rows again with only these columns (0-based) restored; the others are empty lists."""
        for block in self._blocks:
            yield block if isinstance(block, Block) else unpack(block, columns)

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
        """Yield the blocks whose extent is wanted; the others are not unpacked."""
        is_wanted = [wanted(extent) for extent in self.extents]
        if self.complete:
            chosen = (block for block, is_block_wanted in zip(self._blocks, is_wanted, strict=True) if is_block_wanted)
            yield from (block if isinstance(block, Block) else unpack(block) for block in chosen)
        elif any(is_wanted):
            last = max(
                extent.last for extent, is_block_wanted in zip(self.extents, is_wanted, strict=True) if is_block_wanted
            )
            for block in blocks_of(self._sheet):
                if block.numbers[0] > last:
                    return
                if wanted(_extent_of(block)):
                    yield block

    def _spool_block(self, block: Block, room: Room) -> bool:
        """Spool a block; False if the sheet exceeded the budget and was dropped."""
        cells = len(block.columns) * len(block.numbers)
        if room.loose >= cells:
            room.loose -= cells
            self._blocks.append(block)
            return True
        packed = pack(block)
        room.left -= len(packed)
        self._blocks.append(packed)
        if room.left < 0:
            self._drop_blocks()
            return False
        return True

    def release(self) -> None:
        """Free the memory of the rows; whoever wants them again reads the sheet."""
        self._drop_blocks()
        self.complete = False

    def _drop_blocks(self) -> None:
        """Forget the spooled blocks and give their room back."""
        for block in self._blocks:
            if isinstance(block, Block):
                self._room.loose += len(block.columns) * len(block.numbers)
            else:
                self._room.left += len(block)
        self._blocks = []


def _extent_of(block: Block) -> Extent:
    """Return the extent of a block."""
    filled = 0
    for number, column in enumerate(block.columns, 1):
        # The first value settles it for most columns; only a column that starts blank is scanned.
        if any(column) or column.count(None) != len(column):
            filled |= 1 << number
    return Extent(block.numbers[0], block.numbers[-1], filled)


def pack(block: Block) -> bytes:
    """A block as compressed bytes."""
    content = (array("I", block.numbers), [_pack_column(column) for column in block.columns])
    return bytes(isal_zlib.compress(pickle.dumps(content, 5), _LEVEL))


def unpack(data: bytes, wanted: Collection[int] | None = None) -> Block:
    """Restore the block of compressed bytes; columns (0-based) that are not wanted are empty."""
    numbers, columns = pickle.loads(isal_zlib.decompress(data))  # noqa: S301  # our own bytes, never left this process
    return Block(
        list(numbers),
        [
            _restore_column(kinds, parts, len(numbers)) if wanted is None or index in wanted else []
            for index, (kinds, parts) in enumerate(columns)
        ],
    )


def _texts(values: list[str]) -> Any:
    """Texts as one string, which packs better; as they are if one holds the separator."""
    text = _SEPARATOR.join(values)
    return text if text.count(_SEPARATOR) == len(values) - 1 else values


def _split(packed: Any) -> Iterable[Any]:
    """The texts that `_texts` packed."""
    return packed.split(_SEPARATOR) if isinstance(packed, str) else packed


def _whole(values: list[int]) -> Any:
    """Whole numbers as an array; as they are if one is too large."""
    return array("q", values) if min(values) > -_SMALL and max(values) < _SMALL else values


# How values of each type are packed and restored. A column with any other type is pickled.
_PACKERS: Final[dict[type, tuple[Callable[[list[Any]], Any], Callable[[Any], Iterable[Any]]]]] = {
    type(None): (len, lambda count: repeat(None, count)),
    str: (_texts, _split),
    float: (lambda values: array("d", values), iter),
    int: (_whole, iter),
    date: (lambda values: array("i", map(date.toordinal, values)), lambda part: map(date.fromordinal, part)),
    datetime: (
        lambda values: _texts(list(map(datetime.isoformat, values))),
        lambda p: map(datetime.fromisoformat, _split(p)),
    ),
}
_CODES: Final = {kind: code for code, kind in enumerate(_PACKERS)}
_KINDS: Final = list(_PACKERS)
_AS_IT_IS: Final = 255


def _pack_column(column: list[Any]) -> tuple[bytes | int, list[Any]]:
    """Return the types of a column's values (a single number if they are all the same), and the packed values of each
    type."""
    types = list(map(type, column))
    kinds = set(types)
    if not kinds <= _PACKERS.keys():
        return _AS_IT_IS, [column]
    if len(kinds) == 1:
        kind = types[0]
        return _CODES[kind], [_PACKERS[kind][0](column)]
    codes = bytes(map(_CODES.__getitem__, types))
    parts = [
        _PACKERS[kind][0]([v for v, t in zip(column, types, strict=True) if t is kind]) if kind in kinds else None
        for kind in _KINDS
    ]
    return codes, parts


def _restore_column(kinds: bytes | int, parts: list[Any], count: int) -> list[Any]:
    """Restore the values of a column that `_pack_column` packed."""
    if isinstance(kinds, int):
        if kinds == _AS_IT_IS:
            return list(parts[0])
        restored = _PACKERS[_KINDS[kinds]][1](parts[0])
        return list(restored)
    streams = [
        iter(()) if part is None else iter(_PACKERS[kind][1](part)) for kind, part in zip(_KINDS, parts, strict=True)
    ]
    nexts = [stream.__next__ for stream in streams]
    values = [nexts[code]() for code in kinds]
    if len(values) != count:
        raise RuntimeError("a spooled column lost a value")
    return values
