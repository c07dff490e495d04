"""Compares the tables that were read row by row with the best partition of the sheet, and takes the better one."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from runner.engine.reading import Layout
from runner.engine.structure import search
from runner.engine.structure.bands import Band, Classify, Draft, bands, cut_rows
from runner.engine.structure.facts import Row
from runner.engine.structure.grid import Grid, Rect
from runner.engine.structure.tables import Label, Partition, Table

CLOSE = 0.5  # probability from which the other partition is named: most differences are a toss-up
MOST_ROWS = 1_500  # kept rows up to which a sheet is searched
MOST_TABLES = 60


class SheetReading(NamedTuple):
    """The drafts of a sheet's tables, and the partition that is nearly as likely, if there is one."""

    drafts: list[Draft]
    alternative: Partition | None = None


def better(
    rows: Sequence[Row], chances: Sequence[Sequence[float]], read: list[Draft], layout: Layout, classify: Classify
) -> SheetReading:
    """The tables of the better partition; `read`: the drafts that were read row by row."""
    if not read or len(rows) > MOST_ROWS or len(read) > MOST_TABLES or is_plain(rows, read):
        return SheetReading(read)
    grid = Grid(rows, chances, layout)
    rects = [_rect_of(grid, draft) for draft in read]
    found = search.search(grid, rects, search.load())
    tables = sorted(found.best.tables)
    if not tables or set(tables) == set(rects):
        return SheetReading(read)
    if found.is_sure:
        known = dict(zip(rects, read, strict=True))
        drafts = [known.get(rect) or _draft(rows, rect, tables, classify) for rect in tables]
        kept = [replace(draft, beside=draft.beside or len(drafts) > 1) for draft in drafts if draft is not None]
        return SheetReading(kept, _partition(grid, rects, 1 - found.probability))
    return SheetReading(read, _partition(grid, tables, found.probability))


def is_plain(rows: Sequence[Row], read: Sequence[Draft]) -> bool:
    """Whether one table without a blank row or column takes all rows but single titles and notes."""
    if len(read) != 1:
        return False
    (draft,) = read
    inside = [draft.rows[at] for at in draft.band.all]
    first, last = inside[0].number, inside[-1].number
    if any(row.gap for row in inside[1:]) or any(
        len(row.filled) > 1 for row in rows if not first <= row.number <= last
    ):
        return False
    used = {column for row in inside for column in row.filled}
    return used == set(range(draft.left, draft.right + 1))


def _rect_of(grid: Grid, draft: Draft) -> Rect:
    numbers = [row.number for row in grid.rows]
    own = [draft.rows[at].number for at in draft.band.all]
    top, bottom = bisect_left(numbers, min(own)), bisect_right(numbers, max(own)) - 1
    return Rect(top, bottom, draft.left, min(draft.right, grid.width - 1))


def _partition(grid: Grid, tables: Sequence[Rect], probability: float) -> Partition | None:
    if probability < CLOSE:
        return None
    return Partition(tuple(grid.range_of(rect) for rect in sorted(tables)), probability)


def _draft(rows: Sequence[Row], rect: Rect, tables: Sequence[Rect], classify: Classify) -> Draft | None:
    """The draft of a rectangle: its rows, and those above and below it up to the next table in its columns."""
    beside = [one for one in tables if one.left <= rect.right and rect.left <= one.right]
    start = max((one.bottom + 1 for one in beside if one.bottom < rect.top), default=0)
    end = min((one.top for one in beside if one.top > rect.bottom), default=len(rows))
    own = cut_rows(rows[start:end], rect.left, rect.right)
    labels, chances = classify(own)
    first, last = rows[rect.top].number, rows[rect.bottom].number
    inside = [at for at, row in enumerate(own) if first <= row.number <= last]
    band = _band(own, labels, inside)
    if not band.body:
        return None
    settled = [label if at in set(inside) else _around(at, inside) for at, label in enumerate(labels)]
    return Draft(own, settled, list(chances), band, rect.left, rect.right)


def _around(at: int, inside: Sequence[int]) -> Label:
    return Label.TITLE if at < inside[0] else Label.NOTE


def _band(rows: Sequence[Row], labels: Sequence[Label], inside: Sequence[int]) -> Band:
    """The header and the body of these rows: as read row by row if that is one table, else all rows are its body."""
    own = [rows[at] for at in inside]
    found = bands(own, [labels[at] for at in inside])
    if len(found) == 1 and found[0].all[0] <= 1 and found[0].all[-1] >= len(own) - 2:
        return Band(*([inside[at] for at in part] for part in (found[0].head, found[0].body, found[0].again)))
    head: list[int] = []
    for at in inside[:-1]:
        if labels[at] is not Label.HEADER and not (labels[at] is Label.TITLE and not head):
            break
        head += [at] if labels[at] is Label.HEADER else []
    start = head[-1] + 1 if head else inside[0]
    return Band(head, [at for at in inside if at >= start])


def with_alternative(tables: Sequence[Table], alternative: Partition | None) -> list[Table]:
    """The tables, each that another partition does not have with that partition's tables instead."""
    if alternative is None:
        return list(tables)
    ranges = {table.range for table in tables}
    others = tuple(one for one in alternative.ranges if one not in ranges)
    if not others:
        return list(tables)
    instead = Partition(others, alternative.probability)
    return [table if table.range in alternative.ranges else replace(table, alternative=instead) for table in tables]
