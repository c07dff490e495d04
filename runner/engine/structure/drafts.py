"""Cuts rows into tables: bands from top to bottom, strips from left to right, then again inside."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from runner.engine.structure.bands import Band, bands
from runner.engine.structure.labels import Label
from runner.engine.structure.rows import Row
from runner.engine.structure.strips import groups
from runner.engine.structure.tables import Choice

DEPTH = 3
LONG = 20  # rows of a body in which single cells can be told from columns
SLIPS = 0.05  # share of rows that a column without a header needs
MANY = 10  # cells that are no slips any more

Classify = Callable[[Sequence[Row]], tuple[list[Label], Sequence[Sequence[float]]]]


@dataclass(slots=True)
class Draft:
    """A table before it gets its names: its own rows (cut to its columns) and what they were taken for."""

    rows: list[Row]
    labels: list[Label]
    chances: list[Sequence[float]]
    band: Band
    left: int  # 0-based
    right: int
    beside: bool = False  # another table stands beside it
    strays: int = 0  # columns further out that hold cells of no table
    declared: bool = False  # the file itself says that this is a table
    form: bool = False  # labels with values of all kinds beside them: one record
    settled: bool = False  # the manifest says which rows are its header
    choices: list[Choice] = field(default_factory=list)  # readings that could have been others


def cut(row: Row, left: int, right: int) -> Row | None:
    """The row as if the sheet had only these columns; None where nothing is left."""
    filled = tuple([at for at in row.filled if left <= at <= right])
    if not filled:
        return None
    blank = bytes(left)
    end = right + 1
    zeros = (0,) * left
    return replace(
        row,
        kinds=blank + row.kinds[left:end],
        marks=zeros + row.marks[left:end],
        lengths=zeros + row.lengths[left:end],
        words=zeros + row.words[left:end],
        values=(None,) * left + row.values[left:end],
        filled=filled,
        last=filled[-1] + 1,
        width=len(filled),
    )


def cut_rows(rows: Sequence[Row], left: int, right: int) -> list[Row]:
    out: list[Row] = []
    for row in rows:
        one = cut(row, left, right)
        if one is not None:
            one.ordinal = len(out)
            one.gap = one.number - out[-1].number - 1 - one.skipped if out else one.number - rows[0].number
            out.append(one)
    return out


def drafts(rows: Sequence[Row], classify: Classify, depth: int = DEPTH) -> list[Draft]:
    labels, chances = classify(rows)
    out: list[Draft] = []
    for band in bands(rows, labels):
        tables, strays = groups(rows, band)
        if len(tables) > 1 and depth:
            first, last = band.all[0], band.all[-1]
            for left, right in tables:
                inner = drafts(cut_rows(rows[first : last + 1], left, right), classify, depth - 1)
                for draft in inner:
                    draft.beside = True
                out += inner
        elif tables:
            left, right = tables[0][0], tables[-1][1]
            if not strays and right == max(rows[at].filled[-1] for at in band.all):
                right = max(rows[at].last for at in band.all) - 1
            trimmed = _trimmed(rows, band, right)
            outside = sum(1 for one in strays if one[1] < left or one[0] > right) + (trimmed < right)
            out.append(Draft(list(rows), labels, list(chances), band, left, trimmed, strays=outside))
    return out


def _trimmed(rows: Sequence[Row], band: Band, right: int) -> int:
    """The last column without those further out that have no header and hold a slip of the hand or two."""
    if not band.head or len(band.body) < LONG:
        return right
    named = max(rows[at].last for at in band.head) - 1
    counts = Counter(column for at in band.body for column in rows[at].filled if column > named)
    few = min(SLIPS * len(band.body), MANY)
    while right > named and counts[right] <= few:
        right -= 1
    return right
