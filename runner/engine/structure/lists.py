"""The last resort: a sheet in which no table was found may still hold a plain list in one column."""

from collections.abc import Sequence

from runner.engine.structure.bands import Band
from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.drafts import Draft
from runner.engine.structure.labels import Label
from runner.engine.structure.rows import Row

LEAST = 4  # rows
PROSE = 0.2  # share of long or sentence-like cells above which a column is text to read
UNSURE = 0.5


def find(rows: Sequence[Row]) -> Draft | None:
    """The list, where all rows stand in one column without a blank row and read like entries."""
    columns = {at for row in rows for at in row.filled}
    if len(columns) != 1 or len(rows) < LEAST or any(row.gap for row in rows[1:]):
        return None
    (column,) = columns
    prose = sum(1 for row in rows if row.marks[column] & (Mark.SENTENCE | Mark.NOTE) or row.words[column] > 8)
    if prose > PROSE * len(rows):
        return None
    head = [0] if _heads(rows[0], rows[1:], column) else []
    labels = [Label.HEADER if at in head else Label.DATA for at in range(len(rows))]
    chances: list[Sequence[float]] = [[UNSURE if one is label else UNSURE / 5 for one in Label] for label in labels]
    return Draft(list(rows), labels, chances, Band(head, list(range(len(head), len(rows)))), column, column)


def _heads(first: Row, rest: Sequence[Row], column: int) -> bool:
    """A short label without digits that is unlike what follows: other kind, other marks, never repeated."""
    if first.kinds[column] != Kind.TEXT or first.words[column] > 4 or first.marks[column] & Mark.DIGITS:
        return False
    if any(row.values[column] == first.values[column] for row in rest):
        return False
    telling = Mark.DIGITS | Mark.CODE | Mark.CAPS | Mark.CAPITAL
    unlike = sum(
        1
        for row in rest
        if row.kinds[column] != Kind.TEXT or row.marks[column] & telling != first.marks[column] & telling
    )
    return unlike * 2 > len(rest)
