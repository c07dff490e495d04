"""Tables that the file itself declares (Excel's ListObjects): taken as they are, nothing is guessed."""

from collections.abc import Sequence

from runner.engine.reading import DeclaredTable
from runner.engine.structure.bands import Band
from runner.engine.structure.drafts import Draft, cut
from runner.engine.structure.labels import Label
from runner.engine.structure.rows import Row


def take(rows: Sequence[Row], tables: Sequence[DeclaredTable]) -> tuple[list[Draft], list[Row]]:
    """Drafts of the declared tables, and the rows with what is left beside and below them."""
    drafts: list[Draft] = []
    left = list(rows)
    for table in tables:
        draft = _draft(left, table)
        if draft is not None:
            drafts.append(draft)
            left = [one for row in left if (one := _without(row, table)) is not None]
    return drafts, left


def _draft(rows: Sequence[Row], table: DeclaredTable) -> Draft | None:
    top, left, bottom, right = table.area
    own = [one for row in rows if top <= row.number <= bottom and (one := cut(row, left - 1, right - 1))]
    if not own:
        return None
    labels = [_label(row.number, table) for row in own]
    head = [at for at, label in enumerate(labels) if label is Label.HEADER]
    body = [at for at, label in enumerate(labels) if label is not Label.HEADER]
    chances: list[Sequence[float]] = [[0.99 if one is label else 0.002 for one in Label] for label in labels]
    return Draft(own, labels, chances, Band(head, body), left - 1, right - 1, declared=True)


def _label(number: int, table: DeclaredTable) -> Label:
    if number < table.area[0] + table.header_rows:
        return Label.HEADER
    return Label.TOTAL if number > table.area[2] - table.totals_rows else Label.DATA


def _without(row: Row, table: DeclaredTable) -> Row | None:
    """The row with the table's cells blanked; None where nothing else stands in it."""
    top, left, bottom, right = table.area
    if not top <= row.number <= bottom:
        return row
    beside = [at for at in row.filled if not left - 1 <= at <= right - 1]
    if not beside:
        return None
    rest = cut(row, 0, len(row.kinds) - 1)
    if rest is None:
        return None
    span = slice(left - 1, min(right, len(row.kinds)))
    gone = len(row.kinds[span])
    rest.kinds = row.kinds[: span.start] + bytes(gone) + row.kinds[span.start + gone :]
    rest.values = row.values[: span.start] + (None,) * gone + row.values[span.start + gone :]
    rest.filled = tuple(beside)
    rest.width = len(beside)
    rest.last = beside[-1] + 1
    return rest
