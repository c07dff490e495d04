"""Sheets with nothing but one column: a plain list, whatever its entries look like."""

from collections.abc import Sequence

from runner.engine.structure import naming
from runner.engine.structure.bands import Band
from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.drafts import Draft
from runner.engine.structure.heads import TOLD, Asked, note
from runner.engine.structure.labels import Label
from runner.engine.structure.likeness import Profile
from runner.engine.structure.rows import Row

LEAST = 3  # rows of a list without a header
PROSE = 0.2  # share of long or sentence-like cells above which a column is text to read
TITLES = 3  # rows above a header or a list that may name it
NOTES = 4  # rows below a list that may comment on it
UNSURE = 0.5
DOUBT = 1.0  # points for or against a header below which it is not sure
_PROSE = int(Mark.SENTENCE | Mark.NOTE)
_TEXT = int(Kind.TEXT)


def find(rows: Sequence[Row], asked: Asked) -> Draft | None:
    """The list, where all rows stand in one column and read like entries."""
    columns = {at for row in rows for at in row.filled}
    if len(columns) != 1 or any(row.last > row.filled[0] + 1 for row in rows):
        return None
    (column,) = columns
    head = next((at for at, row in enumerate(rows[: TITLES + 1]) if _says_header(row, asked)), -1)
    first = head + 1 if head >= 0 else 0
    told = head >= 0
    if not told:
        if _reads(rows, column) and not _texts_under_a_name(rows, column):
            return None
        first, head = _start(rows, column)
    last = _end(rows, first, column)
    if last - first < (1 if head >= 0 else LEAST):
        return None
    draft = _draft(rows, head, first, last, column)
    if not told:
        _doubt(draft)
    return draft


def _doubt(draft: Draft) -> None:
    """Note a header that could be an entry, or an entry that could be a header."""
    top, *rest = [draft.rows[at] for at in draft.band.all]
    vote = naming.votes(top, rest)
    headed = bool(draft.band.head)
    if abs(vote.points) < DOUBT and (headed or vote.points > 0):
        note(draft, top.number, vote, header=headed)


def _says_header(row: Row, asked: Asked) -> bool:
    return asked.header(row.number) >= TOLD or (asked.spelled is not None and asked.spelled(row.values) > 0)


def _draft(rows: Sequence[Row], head: int, first: int, last: int, column: int) -> Draft:
    top = head if head >= 0 else first
    labels = [
        Label.TITLE if at < top else Label.HEADER if at == head else Label.DATA if at < last else Label.NOTE
        for at in range(len(rows))
    ]
    chances: list[Sequence[float]] = [[UNSURE if one is label else UNSURE / 5 for one in Label] for label in labels]
    band = Band([head] if head >= 0 else [], list(range(first, last)))
    return Draft(list(rows), labels, chances, band, column, column)


def _reads(rows: Sequence[Row], column: int) -> bool:
    """Whether the column is text to read."""
    prose = sum(1 for row in rows if row.marks[column] & _PROSE or row.words[column] > 8)
    return prose > PROSE * len(rows)


def _texts_under_a_name(rows: Sequence[Row], column: int) -> bool:
    """Whether texts to read stand under one word that names them, without a blank row: an export of comments."""
    name = rows[0]
    short = name.kinds[column] == _TEXT and name.words[column] == 1 and not name.marks[column] & _PROSE
    if not short or any(row.gap for row in rows[1:]) or len(rows) <= LEAST:
        return False
    return sum(1 for row in rows[1:] if row.words[column] <= 2) * 5 < len(rows)


def _start(rows: Sequence[Row], column: int) -> tuple[int, int]:
    """Where the entries start, and the header's place, or -1."""
    for head in range(min(TITLES, len(rows) - 1), 0, -1):
        # A title may stand above the header, but only with good reason for both.
        rest = rows[head + 1 :]
        if len(rest) > head and _names(rows[head], rest) and _title(rows[:head], rest, column):
            return head + 1, head
    if len(rows) > 1 and naming.votes(rows[0], rows[1:]).points > 0:
        return 1, 0
    parted = next((at for at, row in enumerate(rows[1 : TITLES + 1], 1) if row.gap), 0)
    if parted and len(rows) - parted > LEAST and _title(rows[:parted], rows[parted:], column):
        return parted, -1
    return 0, -1


def _names(row: Row, below: Sequence[Row]) -> bool:
    return naming.votes(row, below).points >= naming.CLEAR


def _title(above: Sequence[Row], below: Sequence[Row], column: int) -> bool:
    """Whether texts above a list are unlike its entries."""
    profile = Profile(str(row.values[column]) for row in below if row.kinds[column] == _TEXT)
    return all(row.kinds[column] == _TEXT and not profile.like(str(row.values[column])) for row in above)


def _end(rows: Sequence[Row], first: int, column: int) -> int:
    """Where the entries end: what comments on them below a blank row is none of them."""
    for last in range(len(rows) - 1, max(first, len(rows) - 1 - NOTES), -1):
        if not rows[last].gap:
            continue
        profile = Profile(str(row.values[column]) for row in rows[first:last] if row.kinds[column] == _TEXT)
        if all(
            row.kinds[column] == _TEXT and row.words[column] > 2 and not profile.like(str(row.values[column]))
            for row in rows[last:]
        ):
            return last
    return len(rows)
