"""Step 4: cuts labelled rows into drafts of tables: bands from top to bottom, strips from left to right, then again."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from runner.engine.structure.equal_blocks import is_named_alike, period_of_header
from runner.engine.structure.facts import CellKind, Mark, Profile, Row
from runner.engine.structure.features import rises
from runner.engine.structure.grid import Span
from runner.engine.structure.tables import BODY, Choice, Label, LeftRow

HEADER_GAP = 5  # blank rows that separate two header rows
BODY_GAP = 8  # blank rows in a body after which differently shaped rows are another table
OTHER_GAP = 2  # blank rows that suffice if the rows are both narrower and of other kinds
INTERRUPTION = 3  # rows of notes after which a body may continue
LEAST = 4  # rows that a body without a header needs next to tables with one
NARROW = 0.6  # share of the width above; narrower rows after such a gap are not part of the table
RISING = 0.9  # share of a row's numbers or dates that increase from left to right
NEAR = 60  # rows of a body that the next row is compared with
COMPARED = 12  # rows of a body that another body, or a row after a gap, is compared with
FEW = 2  # rows of a body needed for a comparison
ALIKE = 0.8  # share of a row's cells with the usual kind of their column
_NOTES = int(Mark.NOTE | Mark.FOOTNOTE)


@dataclass(slots=True)
class Band:
    """Indexes into the rows it was cut from."""

    head: list[int] = field(default_factory=list)
    body: list[int] = field(default_factory=list)
    repeated_headers: list[int] = field(default_factory=list)  # repeated headers between the rows of the body

    @property
    def all(self) -> list[int]:
        """The header and the body."""
        return self.head + self.body


def bands(rows: Sequence[Row], labels: Sequence[Label]) -> list[Band]:
    """Cut labelled rows into bands, from top to bottom: headers with the rows below them."""
    cut_bands = _cut(rows, labels)
    for band in cut_bands:
        _trim(rows, band, labels)
    joined = _join_continued(rows, [band for band in cut_bands if band.all])
    joined = [band for band in joined if band.body] or joined
    has_header = any(band.head for band in joined)
    return [band for band in joined if band.head or not has_header or len(band.body) >= LEAST]


def _cut(rows: Sequence[Row], labels: Sequence[Label]) -> list[Band]:
    """Cut rows into headers with the rows below them, from top to bottom; some may be empty."""
    cut_bands = [Band()]
    for at, predicted in enumerate(labels):
        band, label = cut_bands[-1], predicted
        if label is not Label.HEADER and label not in BODY:
            if not _goes_on(rows, at, band):
                cut_bands += [Band()] if band.all else []
                continue
            label = Label.DATA
        if band.body and _reorders(rows, at, band):
            label = Label.HEADER
        elif band.body and label is Label.HEADER:
            if _repeats_header(rows, at, band):
                band.repeated_headers.append(at)
                continue
            if not _counts_up(rows[at]) and fits(rows, at, band):
                label = Label.DATA
        if _starts_band(rows, at, label, band):
            band = Band()
            cut_bands.append(band)
        (band.head if label is Label.HEADER else band.body).append(at)
    return cut_bands


def _goes_on(rows: Sequence[Row], at: int, band: Band) -> bool:
    """Whether a row that was labelled as no record is right below a body and like its rows."""
    return bool(band.body) and band.body[-1] == at - 1 and fits(rows, at, band)


def _repeats_header(rows: Sequence[Row], at: int, band: Band) -> bool:
    """Whether the row repeats the header between two rows of the body, as on each printed page."""
    row = rows[at]
    if len(band.head) != 1 or row.gap or len(row.filled) < 2 or band.body[-1] != at - 1 or at + 1 == len(rows):
        return False
    above, below = rows[at - 1], rows[at + 1]
    if below.gap or above.width < 2 or below.width < 2:  # captions or titles: another table of the same kind
        return False
    head = rows[band.head[0]]
    return row.filled == head.filled and [row.values[c] for c in row.filled] == [head.values[c] for c in head.filled]


def _reorders(rows: Sequence[Row], at: int, band: Band) -> bool:
    """Whether the row has the names of the header in another order: the columns of what follows are others."""
    row = rows[at]
    if len(band.head) != 1 or len(row.filled) < FEW or at + 1 == len(rows):
        return False
    head = rows[band.head[0]]
    if len(row.filled) != len(head.filled) or row.values[row.filled[0]] not in head.values:
        return False
    values, names = [row.values[c] for c in row.filled], [head.values[c] for c in head.filled]
    is_all_text = row.kinds.count(CellKind.TEXT) == len(values)
    return values != names and set(map(str, values)) == set(map(str, names)) and is_all_text


def _counts_up(row: Row) -> bool:
    """Whether a row names its columns by years, hours or classes, or by years alone."""
    values = [at for at in row.filled if row.kinds[at] == CellKind.NUMBER]
    years = sum(1 for at in values if row.marks[at] & Mark.YEAR)
    return rises(row) >= RISING or (years > 1 and years == len(values))


def fits(rows: Sequence[Row], at: int, band: Band) -> bool:
    """Whether a row right below a body belongs to it: each cell is like the others of its column."""
    row = rows[at]
    near = [rows[other] for other in band.body[-NEAR:]]
    if row.gap or len(near) < FEW:
        return False
    for column in row.filled:
        filled = [other for other in near if column < len(other.kinds) and other.kinds[column]]
        alike = [other for other in filled if other.kinds[column] == row.kinds[column]]
        if not filled and len(row.filled) > 1 and any(column in rows[other].filled for other in band.head):
            continue  # the first value under a name
        if len(alike) * 2 < len(filled) or not alike:
            return False
        if row.kinds[column] == CellKind.TEXT:
            if row.marks[column] & _NOTES and not any(other.marks[column] & _NOTES for other in alike):
                return False
            if not Profile(str(other.values[column]) for other in alike).like(str(row.values[column])):
                return False
    return True


def _join_continued(rows: Sequence[Row], cut_bands: Sequence[Band]) -> list[Band]:
    """Join each body without a header to the band above that it continues, in place; returns the bands that remain.

    Such a body is near, about as wide, and of like kinds: a note or a blank row was between them.
    """
    joined: list[Band] = []
    for band in cut_bands:
        above = joined[-1] if joined else None
        is_near = above and above.body and not band.head and band.body[0] - above.body[-1] <= INTERRUPTION + 1
        if above and is_near and rows[band.body[0]].gap < BODY_GAP and _continues(rows, band, above):
            above.body += band.body
            above.repeated_headers += band.repeated_headers
        else:
            joined.append(band)
    return joined


def _continues(rows: Sequence[Row], band: Band, last: Band) -> bool:
    """Whether the first rows of a body are as wide as the last ones of another, or near it, and of like kinds."""
    above = [rows[at] for at in last.body[-COMPARED:]]
    first = [rows[at] for at in band.body[:3]]
    gap = sum(rows[at].gap for at in range(last.body[-1] + 1, band.body[0] + 1))
    is_narrow = max(row.width for row in first) < NARROW * max(row.width for row in above)
    is_narrow = is_narrow or _falls_short(rows, band.body[0], above)
    return not (gap >= OTHER_GAP and is_narrow) and all(_has_kinds_of(row, above) for row in first)


def _starts_band(rows: Sequence[Row], at: int, label: Label, band: Band) -> bool:
    """Whether a row with this label starts another band below this one."""
    row, gap = rows[at], rows[at].gap
    if label is Label.HEADER:
        return bool(band.body) or gap > HEADER_GAP
    if not band.body or gap < OTHER_GAP:
        return False
    above = [rows[other] for other in band.body[-COMPARED:]]
    is_narrow = row.width < NARROW * max(other.width for other in above)
    is_unlike = not _has_kinds_of(row, above)
    if row.width > 1 and _falls_short(rows, at, above):
        return True
    return (is_narrow or is_unlike) if gap >= BODY_GAP else (is_narrow and is_unlike and row.width > 1)


def _falls_short(rows: Sequence[Row], at: int, above: Sequence[Row]) -> bool:
    """Whether every row down to the next gap is narrower than every row above: another list, whatever its values."""
    below = [rows[at].width]
    for row in rows[at + 1 :]:
        if row.gap:
            break
        below.append(row.width)
    return len(above) > 2 and len(below) > 2 and max(below) < min(row.width for row in above)


def _has_kinds_of(row: Row, above: Sequence[Row]) -> bool:
    """Whether most of the row's cells have the kinds of their columns above."""
    agreeing = 0
    for at in row.filled:
        kinds = [other.kinds[at] for other in above if at < len(other.kinds) and other.kinds[at]]
        agreeing += kinds.count(row.kinds[at]) * 2 >= len(kinds) > 0
    return agreeing >= ALIKE * len(row.filled)


def _trim(rows: Sequence[Row], band: Band, labels: Sequence[Label]) -> None:
    """Drop captions with no rows under them, or over a body without a header."""
    while band.body and labels[band.body[-1]] is Label.GROUP:
        last = band.body.pop()
        if fits(rows, last, band):
            band.body.append(last)
            break
    while band.body and not band.head and labels[band.body[0]] is Label.GROUP:
        band.body.pop(0)


UNLIKE_HEIGHT = 0.85  # ratio of heights below which neighbours are different tables
NUMBERS = 0.9  # share of a column's cells of the kind
STRAY = 0.5  # share of rows; less filled, without a header, it is not a column


@dataclass(slots=True)
class Strip:
    """Neighbouring columns (0-based, inclusive) of a band, and their contents."""

    left: int
    right: int
    head: int = 0  # columns with a value in the header rows
    rows: int = 0  # body rows with a value
    first: int = 0  # index in the body of the first of them
    last: int = 0

    @property
    def width(self) -> int:
        return self.right - self.left + 1


def strips(rows: Sequence[Row], band: Band) -> list[Strip]:
    """Cut the band at every blank column, and describe each part."""
    used: set[int] = set()
    for at in band.all:
        used.update(rows[at].filled)
    parts: list[Strip] = []
    for column in sorted(used):
        if parts and parts[-1].right == column - 1:
            parts[-1].right = column
        else:
            parts.append(Strip(column, column))
    for strip in parts:
        inside = range(strip.left, strip.right + 1)
        strip.head = len({c for at in band.head for c in rows[at].filled if c in inside})
        places = [place for place, at in enumerate(band.body) if any(c in inside for c in rows[at].filled)]
        strip.rows = len(places)
        strip.first, strip.last = (places[0], places[-1]) if places else (0, 0)
    return parts


def groups(rows: Sequence[Row], band: Band) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the column ranges of separate tables, from left to right, and of strays that belong to none."""
    parts = strips(rows, band)
    height = max(strip.rows for strip in parts)
    solid = [s for s in parts if s.head or s.rows > height * STRAY or s.width > 2]
    strays = [(s.left, s.right) for s in parts if s not in solid]
    tables: list[list[Strip]] = []
    for strip in solid:
        if tables and not _are_separate(rows, band, tables[-1], strip):
            tables[-1].append(strip)
        else:
            tables.append([strip])
    ranges = [(table[0].left, table[-1].right) for table in tables]
    return [part for left, right in ranges for part in _cut_repeats(rows, band, left, right)], strays


def _cut_repeats(rows: Sequence[Row], band: Band, left: int, right: int) -> list[tuple[int, int]]:
    """Cut the range where its only header row starts over."""
    period = period_of_header(rows[band.head[0]], Span(left, right)) if len(band.head) == 1 else None
    if period is None:
        return [(left, right)]
    return [(at, at + period - 1) for at in range(left, right + 1, period)]


def _are_separate(rows: Sequence[Row], band: Band, left: list[Strip], right: Strip) -> bool:
    """Whether a strip and those left of it are separate tables: by their headers, their heights, or names of rows."""
    if is_named_alike(rows, band.head, Span(left[0].left, left[0].right), Span(right.left, right.right)):
        return True
    width = left[-1].right - left[0].left + 1
    if min(right.width, width) < 2 or not right.rows or not any(strip.rows for strip in left):
        return False
    # Compare starts and ends only: a sparsely filled column still belongs to its table.
    left_height = max(strip.last for strip in left) - min(strip.first for strip in left) + 1
    height = right.last - right.first + 1
    if min(height, left_height) < UNLIKE_HEIGHT * max(height, left_height) and abs(height - left_height) > 1:
        return not _gets_keys_from_left(rows, band, left, right)
    if not band.head or right.head < right.width or len(left) > 1 or left[0].head < left[0].width:
        return False
    if _has_same_header(rows, band, left[0], right):
        return True
    return _names_rows(rows, band, left[0].left) and _names_rows(rows, band, right.left)


def _gets_keys_from_left(rows: Sequence[Row], band: Band, left: list[Strip], right: Strip) -> bool:
    """Whether named columns of only numbers, filled from the first row on, get their keys from the left."""
    is_near = right.left == left[-1].right + 2
    if not is_near or not band.head or right.head < right.width or right.first != left[0].first:
        return False
    leaf = rows[band.head[-1]]
    if any(at >= len(leaf.kinds) or leaf.kinds[at] != CellKind.TEXT for at in range(right.left, right.right + 1)):
        return False
    body = [rows[at] for at in band.body]
    has_only_numbers = all(
        _share(body, at, (CellKind.NUMBER, CellKind.FILLER)) >= NUMBERS for at in range(right.left, right.right + 1)
    )
    return has_only_numbers and _share(body, left[0].left, (CellKind.TEXT, CellKind.DATE)) >= NUMBERS


def _share(body: Sequence[Row], column: int, kinds: Sequence[CellKind]) -> float:
    """Return the share of a column's filled cells that are of these kinds."""
    filled = [row.kinds[column] for row in body if column < len(row.kinds) and row.kinds[column]]
    return sum(1 for kind in filled if kind in kinds) / len(filled) if filled else 0.0


def _has_same_header(rows: Sequence[Row], band: Band, left: Strip, right: Strip) -> bool:
    """Whether two strips have the same first name, and at least half of the right one's names are the left one's."""
    leaf = rows[band.head[-1]].values
    left_names = {str(value) for value in leaf[left.left : left.right + 1] if value is not None}
    names = [str(value) for value in leaf[right.left : right.right + 1] if value is not None]
    is_first_equal = left.left < len(leaf) and right.left < len(leaf) and leaf[left.left] == leaf[right.left]
    return bool(names) and is_first_equal and sum(1 for name in names if name in left_names) * 2 >= len(names)


def _names_rows(rows: Sequence[Row], band: Band, column: int) -> bool:
    """Whether a column has a different text in nearly every row, and so names the rows."""
    values = [rows[at].values[column] for at in band.body if column < len(rows[at].kinds) and rows[at].kinds[column]]
    texts = sum(1 for at in band.body if column < len(rows[at].kinds) and rows[at].kinds[column] == CellKind.TEXT)
    return len(values) >= 2 and texts >= 0.8 * len(band.body) and len(set(map(str, values))) >= 0.9 * len(values)


DEPTH = 3
LONG = 20  # rows of a body that suffice to distinguish single cells from columns
SLIPS = 0.05  # share of rows that a column without a header must fill
MANY = 10  # cells that are not slips anymore

Labelled = tuple[list[Label], Sequence[Sequence[float]]]  # the labels of rows, and the chances of each label
Classify = Callable[[Sequence[Row]], Labelled]


@dataclass(slots=True)
class Draft:
    """A table in the making: its own rows, cut to its columns, and their labels."""

    rows: list[Row]
    labels: list[Label]
    chances: list[Sequence[float]]
    band: Band
    left: int  # 0-based
    right: int
    beside: bool = False  # another table is beside it
    strays: int = 0  # columns further out with cells of no table
    declared: bool = False  # the file itself declares this table
    form: bool = False  # labels with values of mixed kinds beside them: one record
    is_fixed: bool = False  # the manifest sets its header rows
    choices: list[Choice] = field(default_factory=list)  # readings that were close
    left_out: dict[int, LeftRow] = field(default_factory=dict)  # rows between and below that are no records, by number


def cut(row: Row, left: int, right: int) -> Row | None:
    """Return a row reduced to these columns; None if nothing is left."""
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
    """Return the rows reduced to these columns, as a sheet of their own: without those that are blank there."""
    reduced: list[Row] = []
    for row in rows:
        part = cut(row, left, right)
        if part is not None:
            part.ordinal = len(reduced)
            part.gap = part.number - reduced[-1].number - 1 - part.skipped if reduced else part.number - rows[0].number
            reduced.append(part)
    return reduced


def drafts(rows: Sequence[Row], labelled: Labelled, classify: Classify, depth: int = DEPTH) -> list[Draft]:
    """Cut labelled rows into drafts of tables; parts beside each other are labelled again, each on its own.

    `depth`: how often parts may be cut again.
    """
    labels, chances = labelled
    found_drafts: list[Draft] = []
    for band in bands(rows, labels):
        tables, strays = groups(rows, band)
        if len(tables) > 1 and depth:
            first, last = band.all[0], band.all[-1]
            for left, right in tables:
                part = cut_rows(rows[first : last + 1], left, right)
                inner = drafts(part, classify(part), classify, depth - 1)
                for draft in inner:
                    draft.beside = True
                found_drafts += inner
        elif tables:
            left, right = tables[0][0], tables[-1][1]
            if not strays and right == max(rows[at].filled[-1] for at in band.all):
                right = max(rows[at].last for at in band.all) - 1
            last_column = _last_column(rows, band, right)
            outside = sum(1 for first, last in strays if last < left or first > right) + (last_column < right)
            found_drafts.append(Draft(list(rows), labels, list(chances), band, left, last_column, strays=outside))
    return found_drafts


def _last_column(rows: Sequence[Row], band: Band, right: int) -> int:
    """Return the last column, without outer ones that have no header and only a stray cell or two."""
    if not band.head or len(band.body) < LONG:
        return right
    named = max(rows[at].last for at in band.head) - 1
    counts = Counter(column for at in band.body for column in rows[at].filled if column > named)
    few = min(SLIPS * len(band.body), MANY)
    while right > named and counts[right] <= few:
        right -= 1
    return right
