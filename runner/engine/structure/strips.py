"""Tables side by side: which blank columns of a band part tables and which only space them."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.engine.structure.bands import Band
from runner.engine.structure.cells import Kind
from runner.engine.structure.rows import Row

UNLIKE_HEIGHT = 0.85  # of the shorter to the taller: what stands beside is another table
NUMBERS = 0.9  # of a column's cells that are of the kind
STRAY = 0.5  # of the rows; what is filled less and has no header is no column


@dataclass(slots=True)
class Strip:
    """Neighbouring columns (0-based, both ends included) of a band, and what they hold."""

    left: int
    right: int
    head: int = 0  # columns with something in the header rows
    rows: int = 0  # body rows with something in them
    first: int = 0  # place in the body of the first of them
    last: int = 0

    @property
    def width(self) -> int:
        return self.right - self.left + 1


def strips(rows: Sequence[Row], band: Band) -> list[Strip]:
    """The band cut at every column that is blank from top to bottom."""
    used: set[int] = set()
    for at in band.all:
        used.update(rows[at].filled)
    out: list[Strip] = []
    for column in sorted(used):
        if out and out[-1].right == column - 1:
            out[-1].right = column
        else:
            out.append(Strip(column, column))
    for strip in out:
        inside = range(strip.left, strip.right + 1)
        strip.head = len({c for at in band.head for c in rows[at].filled if c in inside})
        own = [place for place, at in enumerate(band.body) if any(c in inside for c in rows[at].filled)]
        strip.rows = len(own)
        strip.first, strip.last = (own[0], own[-1]) if own else (0, 0)
    return out


def groups(rows: Sequence[Row], band: Band) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Column ranges that are tables of their own, from left to right, and strays that belong to none."""
    parts = strips(rows, band)
    height = max(strip.rows for strip in parts)
    solid = [s for s in parts if s.head or s.rows > height * STRAY or s.width > 2]
    strays = [(s.left, s.right) for s in parts if s not in solid]
    out: list[list[Strip]] = []
    for strip in solid:
        if out and not _parted(rows, band, out[-1], strip):
            out[-1].append(strip)
        else:
            out.append([strip])
    ranges = [(group[0].left, group[-1].right) for group in out]
    return [part for one in ranges for part in _repeats(rows, band, *one)], strays


def _repeats(rows: Sequence[Row], band: Band, left: int, right: int) -> list[tuple[int, int]]:
    """The range cut where its only header row starts over: Year, Month, Jobs, Year, Month, Rate."""
    whole = [(left, right)]
    if len(band.head) != 1:
        return whole
    texts = [str(value) for value in rows[band.head[0]].values[left : right + 1]]
    if len(texts) < right - left + 1 or texts.count(texts[0]) < 2:
        return whole
    period = texts.index(texts[0], 1)
    same = sum(1 for at in range(period) if len(set(texts[at::period])) == 1)
    if len(texts) % period or same < 2 or same * 2 < period:
        return whole
    return [(at, at + period - 1) for at in range(left, right + 1, period)]


def _parted(rows: Sequence[Row], band: Band, left: list[Strip], right: Strip) -> bool:
    width = left[-1].right - left[0].left + 1
    if min(right.width, width) < 2 or not right.rows or not any(strip.rows for strip in left):
        return False
    # Compared by where they start and end: a column that is filled here and there still belongs to its table.
    tall = max(strip.last for strip in left) - min(strip.first for strip in left) + 1
    own = right.last - right.first + 1
    if min(own, tall) < UNLIKE_HEIGHT * max(own, tall) and abs(own - tall) > 1:
        return not _leans(rows, band, left, right)
    if not band.head or right.head < right.width or len(left) > 1 or left[0].head < left[0].width:
        return False
    return _same_header(rows, band, left[0], right) or (_key(rows, band, left[0].left) and _key(rows, band, right.left))


def _leans(rows: Sequence[Row], band: Band, left: list[Strip], right: Strip) -> bool:
    """Whether named columns of nothing but numbers, filled from the first row on, get their keys from the left."""
    near = right.left == left[-1].right + 2
    if not near or not band.head or right.head < right.width or right.first != left[0].first:
        return False
    leaf = rows[band.head[-1]]
    if any(at >= len(leaf.kinds) or leaf.kinds[at] != Kind.TEXT for at in range(right.left, right.right + 1)):
        return False
    body = [rows[at] for at in band.body]
    numbers = all(_share(body, at, (Kind.NUMBER, Kind.FILLER)) >= NUMBERS for at in range(right.left, right.right + 1))
    return numbers and _share(body, left[0].left, (Kind.TEXT, Kind.DATE)) >= NUMBERS


def _share(body: Sequence[Row], column: int, kinds: Sequence[Kind]) -> float:
    held = [row.kinds[column] for row in body if column < len(row.kinds) and row.kinds[column]]
    return sum(1 for kind in held if kind in kinds) / len(held) if held else 0.0


def _same_header(rows: Sequence[Row], band: Band, left: Strip, right: Strip) -> bool:
    leaf = rows[band.head[-1]].values
    a = {str(value) for value in leaf[left.left : left.right + 1] if value is not None}
    b = [str(value) for value in leaf[right.left : right.right + 1] if value is not None]
    first = left.left < len(leaf) and right.left < len(leaf) and leaf[left.left] == leaf[right.left]
    return bool(b) and first and sum(1 for one in b if one in a) * 2 >= len(b)


def _key(rows: Sequence[Row], band: Band, column: int) -> bool:
    """A column of different texts in nearly every row: what names a table's rows."""
    values = [rows[at].values[column] for at in band.body if column < len(rows[at].kinds) and rows[at].kinds[column]]
    texts = sum(1 for at in band.body if column < len(rows[at].kinds) and rows[at].kinds[column] == Kind.TEXT)
    return len(values) >= 2 and texts >= 0.8 * len(band.body) and len(set(map(str, values))) >= 0.9 * len(values)
