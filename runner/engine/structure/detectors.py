"""Built-in detectors beside the line classifier: what the layout says, and shapes it has seen too little of.

Each adds points to a row's labels, as the rules in `row_types/` do. One point multiplies the odds by e.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from runner.engine.reading import Layout
from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.rows import Row

BOLD = 0.7  # a row in bold over one that is not
FILLED = 0.5  # the same with a background colour
FROZEN = 1.5  # the last row above the freeze line
TITLES = 1.0  # rows repeated on each printed page
FILTER = 3.0  # the row that carries the filter's arrows
CAPTION = -1.5  # a lone text under a header, in the body's first column, as others further down
ANEW = 2.0  # texts after a blank row, over rows unlike the ones above
LOOK = 5  # rows above and below that are compared

Points = dict[int, dict[str, float]]
Marks = dict[int, set[int]]


def points(rows: Sequence[Row], layout: Layout) -> Points:
    """What the built-in detectors add for the header of each row, by row number."""
    out: dict[int, float] = {}
    lone = Counter(row.filled[0] for row in rows if row.width == 1 and row.kinds[row.filled[0]] == Kind.TEXT)
    styled = False  # only the first row that stands out by its style: further down it may as well be a total
    for at, row in enumerate(rows):
        below = rows[at + 1] if at + 1 < len(rows) else None
        score = ANEW if _starts_anew(rows, at) else 0.0
        if at and _captions(rows, at, lone):
            score += CAPTION
        if not styled and below is not None and below.number <= layout.styled_rows and len(row.filled) > 1:
            style = BOLD * _only(layout.bold, row, below) + FILLED * _only(layout.filled, row, below)
            styled = style > 0
            score += style
        if row.number == layout.frozen_rows and len(row.filled) > 1:
            score += FROZEN
        if layout.print_title_rows and layout.print_title_rows[0] <= row.number <= layout.print_title_rows[1]:
            score += TITLES
        if layout.autofilter and row.number == layout.autofilter[0]:
            score += FILTER
        if score:
            out[row.number] = score
    return {number: {"header": score} for number, score in out.items()}


def styled(rows: Sequence[Row], layout: Layout, number: int) -> float:
    """What style, filter, frozen rows and print titles say for one of these rows."""
    bare = [replace(row, gap=0) for row in rows]  # where it stands says nothing here
    return points(bare, layout).get(number, {}).get("header", 0.0)


def _only(marks: Marks, row: Row, below: Row) -> bool:
    """Whether the row is all text, every cell with the mark, and hardly any below it has it."""
    own, under = marks.get(row.number, set()), marks.get(below.number, set())
    here = all(at + 1 in own and row.kinds[at] == Kind.TEXT for at in row.filled)
    there = sum(1 for at in below.filled if at + 1 in under)
    return here and there * 2 < len(below.filled)


def _captions(rows: Sequence[Row], at: int, lone: Counter[int]) -> bool:
    """Whether the row looks like the first of several captions between data, not like one more header row."""
    row = rows[at]
    first = row.filled[0]
    if row.width != 1 or row.kinds[first] != Kind.TEXT or rows[at - 1].width == 1:
        return False
    below = rows[at + 1 : at + 1 + LOOK]
    return bool(below) and first <= min(other.filled[0] for other in below) and lone[first] > 1


def _starts_anew(rows: Sequence[Row], at: int) -> bool:
    row = rows[at]
    if not at or not row.gap or len(row.filled) < 2:
        return False
    if any(row.kinds[one] != Kind.TEXT or row.marks[one] & Mark.SENTENCE for one in row.filled):
        return False
    below = [rows[one] for one in range(at + 1, min(at + 1 + LOOK, len(rows)))]
    for index, other in enumerate(below):
        if other.gap:
            below = below[:index]
            break
    above = rows[max(0, at - LOOK) : at]
    over = sum(1 for one in row.filled if _kind(below, one) not in (Kind.BLANK, Kind.TEXT))
    if not below or not over:
        return False
    used = {one for other in (*above, *below) for one in other.filled}
    same = sum(1 for one in used if _kind(above, one) == _kind(below, one))
    return same * 2 < len(used)


def _kind(rows: Sequence[Row], column: int) -> int:
    """The usual kind of a column, blank where nothing stands."""
    kinds = [row.kinds[column] for row in rows if column < len(row.kinds) and row.kinds[column]]
    return max(set(kinds), key=kinds.count) if kinds else int(Kind.BLANK)
