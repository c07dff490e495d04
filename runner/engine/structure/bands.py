"""From labelled rows to bands: a header and the body below it, across all columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.labels import BODY, Label
from runner.engine.structure.layouts import rises
from runner.engine.structure.likeness import Profile
from runner.engine.structure.rows import Row

HEADER_GAP = 5  # blank rows between two header rows that part them
BODY_GAP = 8  # blank rows in a body after which rows of another shape are another table
OTHER_GAP = 2  # blank rows that are enough where rows are both narrower and of other kinds
INTERRUPTION = 3  # rows of notes that a body may go on after
LEAST = 4  # rows that a body without a header needs beside tables with one
NARROW = 0.6  # of the width above, below which rows after such a gap are no part of the table
RISING = 0.9  # of a row's numbers or dates that rise from left to right
NEAR = 60  # rows of a body that the next one is compared with
FEW = 2  # rows of a body with which another can be compared
ALIKE = 0.8  # of a row's cells that have the kind usual in their column
_NOTES = int(Mark.NOTE | Mark.FOOTNOTE)


@dataclass(slots=True)
class Band:
    """Indexes into the rows it was cut from."""

    head: list[int] = field(default_factory=list)
    body: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)  # the header, written again between the rows of the body

    @property
    def all(self) -> list[int]:
        return self.head + self.body


def bands(rows: Sequence[Row], labels: Sequence[Label]) -> list[Band]:
    found: list[Band] = []
    now: Band | None = None
    for at, said in enumerate(labels):
        label = said
        if label is not Label.HEADER and label not in BODY:
            if now is None or not now.body or now.body[-1] != at - 1 or not fits(rows, at, now):
                now = None
                continue
            label = Label.DATA
        if label is Label.HEADER and now is not None and now.body:
            if _same(rows, at, now):
                now.again.append(at)
                continue
            if not _rising(rows[at]) and fits(rows, at, now):
                label = Label.DATA
        if now is None or _starts_anew(rows, at, label, now):
            now = Band()
            found.append(now)
        (now.head if label is Label.HEADER else now.body).append(at)
    for band in found:
        _trim(rows, band, labels)
    found = _joined(rows, [band for band in found if band.all])
    found = [band for band in found if band.body] or found
    headed = [band for band in found if band.head]
    return [band for band in found if band.head or not headed or len(band.body) >= LEAST]


def _same(rows: Sequence[Row], at: int, band: Band) -> bool:
    """Whether the row is the header again, as on the next printed page, right between two rows of the body."""
    row = rows[at]
    if len(band.head) != 1 or row.gap or len(row.filled) < 2 or band.body[-1] != at - 1 or at + 1 == len(rows):
        return False
    above, below = rows[at - 1], rows[at + 1]
    if below.gap or above.width < 2 or below.width < 2:  # captions or titles: another table of the same kind
        return False
    head = rows[band.head[0]]
    return row.filled == head.filled and [row.values[c] for c in row.filled] == [head.values[c] for c in head.filled]


def _rising(row: Row) -> bool:
    """Whether a row names its columns by years, hours or classes, or by years alone."""
    values = [at for at in row.filled if row.kinds[at] == Kind.NUMBER]
    years = sum(1 for at in values if row.marks[at] & Mark.YEAR)
    return rises(row) >= RISING or (years > 1 and years == len(values))


def fits(rows: Sequence[Row], at: int, band: Band) -> bool:
    """Whether a row right below a body is one more of its rows: each cell is like the others of its column."""
    row = rows[at]
    near = [rows[one] for one in band.body[-NEAR:]]
    if row.gap or len(near) < FEW:
        return False
    for column in row.filled:
        held = [other for other in near if column < len(other.kinds) and other.kinds[column]]
        same = [other for other in held if other.kinds[column] == row.kinds[column]]
        if not held and len(row.filled) > 1 and any(column in rows[one].filled for one in band.head):
            continue  # the first value under a name
        if len(same) * 2 < len(held) or not same:
            return False
        if row.kinds[column] == Kind.TEXT:
            if row.marks[column] & _NOTES and not any(other.marks[column] & _NOTES for other in same):
                return False
            if not Profile(str(other.values[column]) for other in same).like(str(row.values[column])):
                return False
    return True


def _joined(rows: Sequence[Row], found: Sequence[Band]) -> list[Band]:
    """A headless body that looks like the one above it goes on with it: a note stood between them."""
    out: list[Band] = []
    for band in found:
        last = out[-1] if out else None
        near = last and last.body and not band.head and band.body[0] - last.body[-1] <= INTERRUPTION + 1
        if last and near and rows[band.body[0]].gap < BODY_GAP:
            above = [rows[one] for one in last.body[-12:]]
            gap = sum(rows[one].gap for one in range(last.body[-1] + 1, band.body[0] + 1))
            narrow = max(rows[one].width for one in band.body[:3]) < NARROW * max(row.width for row in above)
            narrow = narrow or _falls_short(rows, band.body[0], above)
            if not (gap >= OTHER_GAP and narrow) and all(_alike(rows[one], above) for one in band.body[:3]):
                last.body += band.body
                last.again += band.again
                continue
        out.append(band)
    return out


def _starts_anew(rows: Sequence[Row], at: int, label: Label, now: Band) -> bool:
    gap = rows[at].gap
    if label is Label.HEADER:
        return bool(now.body) or gap > HEADER_GAP
    if not now.body or gap < OTHER_GAP:
        return False
    above = [rows[one] for one in now.body[-12:]]
    narrow = rows[at].width < NARROW * max(row.width for row in above)
    unlike = not _alike(rows[at], above)
    if rows[at].width > 1 and _falls_short(rows, at, above):
        return True
    return (narrow or unlike) if gap >= BODY_GAP else (narrow and unlike and rows[at].width > 1)


def _falls_short(rows: Sequence[Row], at: int, above: Sequence[Row]) -> bool:
    """Whether every row down to the next gap is narrower than every row above: another list, whatever it holds."""
    below = [rows[at].width]
    for row in rows[at + 1 :]:
        if row.gap:
            break
        below.append(row.width)
    return len(above) > 2 and len(below) > 2 and max(below) < min(row.width for row in above)


def _alike(row: Row, above: Sequence[Row]) -> bool:
    """Whether the row's cells have the kinds that stand in their columns above."""
    agree = 0
    for at in row.filled:
        kinds = [other.kinds[at] for other in above if at < len(other.kinds) and other.kinds[at]]
        agree += kinds.count(row.kinds[at]) * 2 >= len(kinds) > 0
    return agree >= ALIKE * len(row.filled)


def _trim(rows: Sequence[Row], band: Band, labels: Sequence[Label]) -> None:
    """A caption with nothing under it, or over a headless body, is no part of the table."""
    while band.body and labels[band.body[-1]] is Label.GROUP:
        last = band.body.pop()
        if fits(rows, last, band):
            band.body.append(last)
            break
    while band.body and not band.head and labels[band.body[0]] is Label.GROUP:
        band.body.pop(0)
