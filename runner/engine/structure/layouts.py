"""Facts of a row that only its wider surroundings tell: the values it stands over, its likes, forms around it."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import pairwise

from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.rows import Row

NAMES = ["rich_far", "rich_gap", "rich_contrast", "rich_agree", "rich_cover", "rich_width", "rich_lone", "rich_text"]
NAMES += ["shape_before", "shape_after", "alternates", "rises", "purity", "ragged", "colons", "labels", "names_below"]

SOME = 5  # rows of values that a row is held against
FAR = 20  # rows further down that are looked at for them
AROUND = 6  # rows on either side among which a form would show
_TEXT = int(Kind.TEXT)
_COLON = int(Mark.COLON)
_NAME = int(Mark.NAME)
_NUMBER = (int(Kind.NUMBER), int(Kind.DATE))

_NUMERALS = re.compile(r"\d{1,12}(?:\.\d{1,12})?")

Shape = tuple[tuple[int, ...], bytes]


def vectors(rows: Sequence[Row], families: Sequence[bytes], rich: Sequence[bool]) -> list[list[float]]:
    """One vector for each row in the order of NAMES, empty for a plain one; `rich` rows mostly hold values."""
    below = _next_rich(rich)
    shapes = [_shape(row, family) for row, family in zip(rows, families, strict=True)]
    ahead = Counter(shapes)
    behind: Counter[Shape] = Counter()
    out: list[list[float]] = []
    for i, row in enumerate(rows):
        shape = shapes[i]
        ahead[shape] -= 1
        vector: list[float] = []
        if not row.plain:
            vector = _over(rows, families, rich, i, below[i])
            vector += [float(min(behind[shape], 10)), float(min(ahead[shape], 10))]
            vector += [_alternates(row), rises(row)]
            vector += _form(rows[max(0, i - AROUND) : i + AROUND + 1])
            vector.append(_names(rows[i + 1 : i + 1 + SOME]))
        behind[shape] += 1
        out.append(vector)
    return out


def _shape(row: Row, family: bytes) -> Shape:
    return row.filled, bytes([family[at] for at in row.filled])


def _next_rich(rich: Sequence[bool]) -> list[int]:
    """For each row the next one below that mostly holds values; -1: none."""
    out = [-1] * len(rich)
    found = -1
    for i in range(len(rich) - 1, -1, -1):
        out[i] = found
        if rich[i]:
            found = i
    return out


def _over(rows: Sequence[Row], families: Sequence[bytes], rich: Sequence[bool], i: int, j: int) -> list[float]:
    """How the row fits as a header over the next rows of values, whatever texts stand between."""
    if j < 0 or j - i > FAR:
        return [-1.0] * 8
    row, own = rows[i], families[i]
    some = [k for k in range(j, min(j + SOME * 2, len(rows))) if rich[k]][:SOME]
    contrast = agree = cover = 0
    for at in row.filled:
        there = [families[k][at] for k in some if at < len(families[k]) and families[k][at]]
        if there:
            cover += 1
            values = there.count(2) * 2 >= len(there)
            contrast += own[at] == 1 and values
            agree += there.count(own[at]) * 2 >= len(there)
    n = len(row.filled) or 1
    between = range(i + 1, j)
    width = sum(rows[k].width for k in some) / len(some)
    lone = sum(1 for k in between if rows[k].width == 1)
    texts = sum(1 for k in between if rows[k].width > 1 and families[k].count(2) == 0)
    gap = sum(rows[k].gap for k in range(i + 1, j + 1))
    shares = [contrast / n, agree / n, cover / n, row.width / width]
    return [float(j - i), float(min(gap, 10)), *shares, float(lone), float(texts)]


def _alternates(row: Row) -> float:
    """Share of neighbouring cells that are a text and a value right of it: a form's pairs."""
    kinds = [row.kinds[at] for at in row.filled]
    pairs = sum(1 for a, b in pairwise(kinds) if a == _TEXT and b != _TEXT)
    return 2 * pairs / len(kinds) if kinds else 0.0


def rises(row: Row) -> float:
    """Share of neighbouring numbers or dates that rise: years, months, hours, classes."""
    keys = _keys(row)
    return sum(1 for a, b in pairwise(keys) if b > a) / (len(keys) - 1) if keys else 0.0


def falls(row: Row) -> float:
    """Share of neighbouring numbers or dates that fall: depths, years back."""
    keys = _keys(row)
    return sum(1 for a, b in pairwise(keys) if b < a) / (len(keys) - 1) if keys else 0.0


def _keys(row: Row) -> list[tuple[float, ...]]:
    """The row's numbers and dates in order, where they are most of its cells."""
    keys = [_key(row.values[at]) for at in row.filled if row.kinds[at] in _NUMBER]
    return keys if len(keys) >= 3 and len(keys) * 2 >= len(row.filled) else []


def _key(value: object) -> tuple[float, ...]:
    """What a number or a date is ordered by, also where it is written as text: 2005/06, 2024-01-31."""
    if isinstance(value, int | float):
        return (float(value),)
    if isinstance(value, date):
        return (float(value.year), float(value.month), float(value.day))
    return tuple([float(one) for one in _NUMERALS.findall(str(value))[:3]])


def _names(below: Sequence[Row]) -> float:
    """Share of the cells below that read like names of columns: a header's own stand out only where they do not."""
    cells = sum(len(row.filled) for row in below)
    return sum(1 for row in below for at in row.filled if row.marks[at] & _NAME) / cells if cells else -1.0


def _form(near: Sequence[Row]) -> list[float]:
    """Whether rows around are a form: columns of mixed kinds, ragged rows, labels with colons in front."""
    columns: dict[int, list[int]] = {}
    for row in near:
        for at in row.filled[:12]:
            columns.setdefault(at, []).append(row.kinds[at])
    seen = sum(len(kinds) for kinds in columns.values())
    pure = sum(max(kinds.count(kind) for kind in set(kinds)) for kinds in columns.values())
    widths = [row.width for row in near]
    mean = sum(widths) / len(widths)
    ragged = sum(abs(width - mean) for width in widths) / len(widths) / mean
    colons = sum(1 for row in near if row.marks[row.filled[0]] & _COLON)
    labels = sum(1 for row in near if row.kinds[row.filled[0]] == _TEXT)
    return [pure / seen, ragged, colons / len(near), labels / len(near)]
