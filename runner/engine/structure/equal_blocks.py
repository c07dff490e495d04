"""Blocks with the same header: whatever else speaks for it, they are never one table.

A block beside another, with blank columns between, names its columns alike: the first column and at least half of the
others, two or more in all. If the first column of one has no name, its rows may be named further left. Without a blank
column between them, blocks share their only header row, which starts over. A block below another repeats the whole
header, after a blank row or a caption. A header that is repeated right between two records, as on each printed page,
starts no block.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from runner.engine.structure.facts import CellKind, Row
from runner.engine.structure.grid import Grid, Rect, Span
from runner.engine.structure.tables import Label

LEAST = 2  # labels that blocks share
COMPARED = 40  # rows below a header in which its first label is no value
FIRST = 5  # lines of a rectangle among which its header is
LIKELY = 0.5  # probability from which a line is a header


def has_equal_blocks(grid: Grid, rect: Rect) -> bool:
    """Whether a rectangle has two blocks with the same header."""
    lines = grid.lines(rect)
    heads = [line for line in lines[:FIRST] if grid.chances[line][Label.HEADER] >= LIKELY]
    if not heads:
        return False
    first, *others = grid.column_spans(rect)
    if any(is_named_alike(grid.rows, heads, first, other) for other in others):
        return True
    if len(heads) == 1 and period_of_header(grid.rows[heads[0]], Span(rect.left, rect.right)) is not None:
        return True
    return _is_stacked(grid, rect, lines, heads)


def is_named_alike(rows: Sequence[Row], heads: Iterable[int], block: Span, other: Span) -> bool:
    """Whether a header row names the columns of two blocks beside each other alike."""
    for head in heads:
        first, second = (_labels(rows[head], span) for span in (block, other))
        shared = len(set(first) & set(second))
        is_alike = shared >= LEAST and first[0] == second[0] and 2 * shared >= max(len(first), len(second))
        if is_alike and all(span.first in rows[head].filled for span in (block, other)):  # else the left names both
            below = rows[head + 1 : head + 1 + COMPARED]
            return all(first[0] not in _labels(row, block)[:1] for row in below)
    return False


def period_of_header(row: Row, columns: Span) -> int | None:
    """Return after how many columns a header row starts over: 3 for Year, Month, Jobs, Year, Month, Rate; None if it
    does not."""
    texts = [str(value) for value in row.values[columns.first : columns.last + 1]]
    if len(texts) < columns.last - columns.first + 1 or texts.count(texts[0]) < 2:
        return None
    period = texts.index(texts[0], 1)
    same = sum(1 for at in range(period) if len(set(texts[at::period])) == 1)
    return None if len(texts) % period or same < LEAST or same * 2 < period else period


def _is_stacked(grid: Grid, rect: Rect, lines: Sequence[int], heads: Sequence[int]) -> bool:
    """Whether a line below repeats a header, after a blank row or a line of one cell."""
    columns = Span(rect.left, rect.right)
    names = [labels for head in heads if len(labels := _labels(grid.rows[head], columns)) >= LEAST]
    return any(
        _labels(grid.rows[below], columns) in names
        for above, below in pairwise(lines)
        if above >= heads[-1] and (grid.gap(above, below) or grid.cells_of(above, rect.left, rect.right) == 1)
    )


def _labels(row: Row, block: Span) -> list[str]:
    """Return the texts of a row's block; none if another value is among them, or a text is there twice."""
    inside = [at for at in row.filled if block.first <= at <= block.last]
    if any(row.kinds[at] != CellKind.TEXT for at in inside):
        return []
    texts = [str(row.values[at]).strip().lower() for at in inside]
    return texts if len(set(texts)) == len(texts) else []
