"""Makes sheets of several tables out of the tables of labelled sheets, so that the search sees more of them.

A composed sheet stacks tables, or puts them side by side or in a grid, with some blank rows or columns between. The
tables are several of the pool, or the pieces of one, each with the header of the whole.
"""

from dataclasses import dataclass
from itertools import pairwise

from runner.engine.reading import Layout
from runner.engine.structure.detection import add_layout
from runner.engine.structure.facts import row_of

WIDEST, SHORTEST = 30, 3
SIZES = (6, 10, 20, 40)  # lines that a table is cut to
COUNTS = (2, 2, 2, 3, 3, 4, 5, 6)  # tables of a sheet


@dataclass
class Piece:
    """Lines of values with their row numbers in the sheet they come from; the table is a part of the lines."""

    layout: Layout
    left: int  # the first column in the sheet they come from
    numbers: list
    lines: list
    top: int  # index of the table's first line
    bottom: int

    @property
    def width(self):
        return len(self.lines[0])


def make(pool, count, rng):
    """`count` sheets as (rows, layout, boxes of tables) from (rows, layout, boxes)."""
    tables = [(rows, layout, table) for rows, layout, own in pool for table in own if _is_usable(rows, table)]
    out = []
    for _ in range(count * 20):
        if len(out) == count or not tables:
            break
        pieces = _pieces(tables, rng)
        made = _sheet(_placed(pieces, rng)) if pieces else None
        if made is not None:
            out.append(made)
    return out


def _is_usable(rows, table):
    top, left, bottom, right = table
    own = [row for row in rows if top < row.number <= bottom]
    fits = 2 <= right - left + 1 <= WIDEST and len(own) >= SHORTEST
    return fits and not any(row.skipped for row in own[:60])


def _pieces(tables, rng):
    one = rng.choice(tables)
    count, titles = rng.choice(COUNTS), rng.random() < 0.5
    if rng.random() < 0.5:
        return _chunks(one, count, titles, rng)
    styled = one[1].styled_rows > 0
    alike = [other for other in tables if (other[1].styled_rows > 0) == styled]
    chosen = [one, *(rng.choice(alike) for _ in range(count - 1))]
    return [_piece(other, _cut(other[2], rng), titles, rng) for other in chosen]


def _cut(table, rng):
    numbers = list(range(table[0], table[2] + 1))
    most = rng.choice(SIZES)
    if len(numbers) <= most:
        return numbers
    kept = rng.randint(max(4, most // 2), most)
    return numbers[:kept] if rng.random() < 0.7 else numbers[: kept - 3] + numbers[-3:]


def _chunks(one, count, titles, rng):
    """A table in pieces, each with the header of the whole."""
    top, _, bottom, _ = one[2]
    head = rng.choice((1, 1, 1, 2)) if bottom - top > 5 else 1
    body = list(range(top + head, bottom + 1))
    count = min(count, max(2, len(body) // 2))
    if len(body) <= count:
        return []
    equal = rng.random() < 0.5
    cuts = (
        [len(body) * n // count for n in range(1, count)]
        if equal
        else sorted(rng.sample(range(1, len(body)), count - 1))
    )
    ends = [0, *cuts, len(body)]
    header = list(range(top, top + head))
    longest = rng.choice((8, 15, 30))
    return [_piece(one, header + body[a:b][:longest], titles, rng) for a, b in pairwise(ends) if a < b]


def _piece(one, numbers, titles, rng):
    rows, layout, (top, left, _, right) = one
    by_number = {row.number: row for row in rows}
    above = []
    for number in range(top - 1, max(0, top - 4), -1):
        row = by_number.get(number)
        if row is not None and len(row.filled) > 2:
            break
        above.insert(0, number)
    keep = rng.randint(0, len(above)) if titles and above else 0
    above = above[len(above) - keep :] if keep else []
    lines = []
    for number in (*above, *numbers):
        values = by_number[number].values if number in by_number else ()
        lines.append([values[at] if at < len(values) else None for at in range(left - 1, right)])
    return Piece(layout, left, [*above, *numbers], lines, len(above), len(above) + len(numbers) - 1)


def _placed(pieces, rng):
    """The pieces with the row and column of their first cell."""
    top, left = 1 + rng.choice((0, 0, 1, 2)), 1 + rng.choice((0, 0, 0, 1))
    way = rng.random()
    out = []
    if way < 0.55:
        gap = rng.choice((1, 1, 1, 2, 2, 3, 4))
        for piece in pieces:
            out.append((top, left, piece))
            top += len(piece.lines) + (gap if rng.random() < 0.8 else rng.choice((1, 2, 3)))
    elif way < 0.9:
        gap, level = rng.choice((1, 1, 1, 2, 2, 3)), max(piece.top for piece in pieces)
        for piece in pieces:
            out.append((top + level - piece.top, left, piece))
            left += piece.width + gap
    else:
        down, across, first = rng.choice((1, 2, 3)), rng.choice((1, 1, 2)), left
        for at in range(0, len(pieces), 2):
            pair, column = pieces[at : at + 2], first
            for piece in pair:
                out.append((top, column, piece))
                column += piece.width + across
            top += max(len(piece.lines) for piece in pair) + down
    return out


def _sheet(placed):
    cells, layout, tables = {}, Layout(), []
    for top, left, piece in placed:
        own = [
            (y, x)
            for y in range(piece.top, piece.bottom + 1)
            for x, value in enumerate(piece.lines[y])
            if value is not None
        ]
        if not own or left + piece.width > 120:
            return None
        ys, xs = [y for y, _ in own], [x for _, x in own]
        tables.append((top + min(ys), left + min(xs), top + max(ys), left + max(xs)))
        for y, line in enumerate(piece.lines):
            cells.setdefault(top + y, {}).update({left + x: value for x, value in enumerate(line) if value is not None})
            _copy_styles(piece, y, layout, top + y, left)
        for at in range(piece.width):
            if piece.left + at in piece.layout.column_widths:
                layout.column_widths[left + at] = piece.layout.column_widths[piece.left + at]
    rows, last = [], 0
    for number in sorted(cells):
        own = cells[number]
        values = [own.get(column) for column in range(1, max(own, default=0) + 1)]
        row = row_of(number, values, ordinal=len(rows), gap=number - last - 1) if own else None
        if row is not None:
            rows.append(row)
            last = number
    layout.styled_rows = max(cells) if any(piece.layout.styled_rows for _, _, piece in placed) else 0
    return (add_layout(rows, layout), layout, tables) if rows else None


def _copy_styles(piece, y, layout, number, left):
    for name in ("bold", "filled", "lined"):
        marked = getattr(piece.layout, name).get(piece.numbers[y], ())
        own = {left + column - piece.left for column in marked if piece.left <= column < piece.left + piece.width}
        if own:
            getattr(layout, name)[number] = own
