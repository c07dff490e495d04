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
MOST_ROWS = 1_500  # stored rows up to which a sheet is searched
MOST_TABLES = 60


class SheetReading(NamedTuple):
    """The drafts of a sheet's tables, and the partition that is nearly as likely, if there is one."""

    drafts: list[Draft]
    alternative: Partition | None = None


def better(
    rows: Sequence[Row], chances: Sequence[Sequence[float]], read: list[Draft], layout: Layout, classify: Classify
) -> SheetReading:
    """Return the tables of the better partition; `read`: the drafts that were read row by row."""
    if not read or len(rows) > MOST_ROWS or len(read) > MOST_TABLES or is_plain(rows, read):
        return SheetReading(read)
    grid = Grid(rows, chances, layout)
    rects = [_rect_of(grid, draft) for draft in read]
    outcome = search.search(grid, rects, search.load())
    tables = sorted(outcome.best.tables)
    if not tables or set(tables) == set(rects):
        return SheetReading(read)
    if outcome.is_sure:
        known = dict(zip(rects, read, strict=True))
        drafts = [known.get(rect) or _draft(rows, rect, tables, classify) for rect in tables]
        usable = [replace(draft, beside=draft.beside or len(drafts) > 1) for draft in drafts if draft is not None]
        return SheetReading(usable, _partition(grid, rects, 1 - outcome.probability))
    return SheetReading(read, _partition(grid, tables, outcome.probability))


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
    """Return the rectangle of a draft's header and body."""
    numbers = [row.number for row in grid.rows]
    of_draft = [draft.rows[at].number for at in draft.band.all]
    top, bottom = bisect_left(numbers, min(of_draft)), bisect_right(numbers, max(of_draft)) - 1
    return Rect(top, bottom, draft.left, min(draft.right, grid.width - 1))


def _partition(grid: Grid, tables: Sequence[Rect], probability: float) -> Partition | None:
    """Return these tables as a partition that is named; None if it is too unlikely."""
    if probability < CLOSE:
        return None
    return Partition(tuple(grid.range_of(rect) for rect in sorted(tables)), probability)


def _draft(rows: Sequence[Row], rect: Rect, tables: Sequence[Rect], classify: Classify) -> Draft | None:
    """Make the draft of a rectangle: its rows, and those above and below it up to the next table in its columns.

    None if it has no body.
    """
    in_columns = [table for table in tables if table.left <= rect.right and rect.left <= table.right]
    start = max((table.bottom + 1 for table in in_columns if table.bottom < rect.top), default=0)
    end = min((table.top for table in in_columns if table.top > rect.bottom), default=len(rows))
    part = cut_rows(rows[start:end], rect.left, rect.right)
    labels, chances = classify(part)
    first, last = rows[rect.top].number, rows[rect.bottom].number
    inside = [at for at, row in enumerate(part) if first <= row.number <= last]
    band = _band(part, labels, inside)
    if not band.body:
        return None
    final_labels = [label if at in set(inside) else _label_outside(at, inside) for at, label in enumerate(labels)]
    return Draft(part, final_labels, list(chances), band, rect.left, rect.right)


def _label_outside(at: int, inside: Sequence[int]) -> Label:
    """Label a row above or below the rows of a table."""
    return Label.TITLE if at < inside[0] else Label.NOTE


def _band(rows: Sequence[Row], labels: Sequence[Label], inside: Sequence[int]) -> Band:
    """Divide rows into header and body: as read row by row if that is one table, else all rows are its body."""
    rows_inside = [rows[at] for at in inside]
    read = bands(rows_inside, [labels[at] for at in inside])
    if len(read) == 1 and read[0].all[0] <= 1 and read[0].all[-1] >= len(rows_inside) - 2:
        return Band(*([inside[at] for at in part] for part in (read[0].head, read[0].body, read[0].repeated_headers)))
    head: list[int] = []
    for at in inside[:-1]:
        if labels[at] is not Label.HEADER and not (labels[at] is Label.TITLE and not head):
            break
        head += [at] if labels[at] is Label.HEADER else []
    start = head[-1] + 1 if head else inside[0]
    return Band(head, [at for at in inside if at >= start])


def with_alternative(tables: Sequence[Table], alternative: Partition | None) -> list[Table]:
    """Return the tables; each that another partition does not have is given that partition's tables as alternative."""
    if alternative is None:
        return list(tables)
    ranges = {table.range for table in tables}
    others = tuple(cell_range for cell_range in alternative.ranges if cell_range not in ranges)
    if not others:
        return list(tables)
    instead = Partition(others, alternative.probability)
    return [table if table.range in alternative.ranges else replace(table, alternative=instead) for table in tables]
