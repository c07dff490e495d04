"""Step 2: turns rows into feature vectors for the classifier: the row, its neighbours and its surroundings."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import reduce
from itertools import accumulate, pairwise, zip_longest
from math import log2
from operator import or_

from runner.engine.structure.facts import CellKind, Mark, Row

NAMES = ["rich_far", "rich_gap", "rich_contrast", "rich_agree", "rich_cover", "rich_width", "rich_lone", "rich_text"]
NAMES += ["shape_before", "shape_after", "alternates", "rises", "purity", "ragged", "colons", "labels", "names_below"]

SOME = 5  # rows of values that a row is compared with
FAR = 20  # rows further down searched for them
AROUND = 6  # rows on either side examined for a form
_FORM_CELLS = 12  # the first cells of a row, that show whether it is of a form
_FILLED_KINDS = tuple(int(kind) for kind in CellKind if kind)
_TEXT_KIND = int(CellKind.TEXT)
_COLON = int(Mark.COLON)
_NAME = int(Mark.NAME)
_VALUE_KINDS = (int(CellKind.NUMBER), int(CellKind.DATE))

_NUMERALS = re.compile(r"\d{1,12}(?:\.\d{1,12})?")

Shape = tuple[tuple[int, ...], bytes]


def surroundings(
    rows: Sequence[Row], families: Sequence[bytes], rich: Sequence[bool], *, every: bool
) -> list[list[float]]:
    """One vector for each row in the order of NAMES, empty for a plain one unless `every` row gets one; `rich` rows
    mostly hold values."""
    below = _next_rich(rich)
    shapes = [_shape(row, family) for row, family in zip(rows, families, strict=True)]
    columns = [bytes(column) for column in zip_longest(*map(_first_kinds, rows), fillvalue=0)]
    ahead = Counter(shapes)
    behind: Counter[Shape] = Counter()
    out: list[list[float]] = []
    for i, row in enumerate(rows):
        shape = shapes[i]
        ahead[shape] -= 1
        vector: list[float] = []
        if every or not row.plain:
            vector = _over(rows, families, rich, i, below[i])
            vector += [float(min(behind[shape], 10)), float(min(ahead[shape], 10))]
            vector += [_alternates(row), rises(row)]
            vector += _form(rows, columns, max(0, i - AROUND), i + AROUND + 1)
            vector.append(_names(rows[i + 1 : i + 1 + SOME]))
        behind[shape] += 1
        out.append(vector)
    return out


def _shape(row: Row, family: bytes) -> Shape:
    return row.filled, bytes([family[at] for at in row.filled])


def _next_rich(rich: Sequence[bool]) -> list[int]:
    """Return for each row the next one below that mostly holds values; -1: none."""
    below = [-1] * len(rich)
    nearest = -1
    for i in range(len(rich) - 1, -1, -1):
        below[i] = nearest
        if rich[i]:
            nearest = i
    return below


def _over(rows: Sequence[Row], families: Sequence[bytes], rich: Sequence[bool], i: int, j: int) -> list[float]:
    """Describe how a row fits as a header over the next rows of values, ignoring texts in between."""
    if j < 0 or j - i > FAR:
        return [-1.0] * 8
    row, family = rows[i], families[i]
    some = [k for k in range(j, min(j + SOME * 2, len(rows))) if rich[k]][:SOME]
    contrast = agree = cover = 0
    for at in row.filled:
        there = [families[k][at] for k in some if at < len(families[k]) and families[k][at]]
        if there:
            cover += 1
            values = there.count(2) * 2 >= len(there)
            contrast += family[at] == 1 and values
            agree += there.count(family[at]) * 2 >= len(there)
    n = len(row.filled) or 1
    between = range(i + 1, j)
    width = sum(rows[k].width for k in some) / len(some)
    lone = sum(1 for k in between if rows[k].width == 1)
    texts = sum(1 for k in between if rows[k].width > 1 and families[k].count(2) == 0)
    gap = sum(rows[k].gap for k in range(i + 1, j + 1))
    shares = [contrast / n, agree / n, cover / n, row.width / width]
    return [float(j - i), float(min(gap, 10)), *shares, float(lone), float(texts)]


def _alternates(row: Row) -> float:
    """Return the share of neighbouring cells that are a text followed by a value: the pairs of a form."""
    kinds = [row.kinds[at] for at in row.filled]
    pairs = sum(1 for a, b in pairwise(kinds) if a == _TEXT_KIND and b != _TEXT_KIND)
    return 2 * pairs / len(kinds) if kinds else 0.0


def rises(row: Row) -> float:
    """Return the share of neighbouring numbers or dates that increase: years, months, hours, classes."""
    keys = _keys(row)
    return sum(1 for a, b in pairwise(keys) if b > a) / (len(keys) - 1) if keys else 0.0


def falls(row: Row) -> float:
    """Return the share of neighbouring numbers or dates that decrease: depths, years back."""
    keys = _keys(row)
    return sum(1 for a, b in pairwise(keys) if b < a) / (len(keys) - 1) if keys else 0.0


def _keys(row: Row) -> list[tuple[float, ...]]:
    """Return sort keys of the row's numbers and dates, if they are most of its cells."""
    keys = [_key(row.values[at]) for at in row.filled if row.kinds[at] in _VALUE_KINDS]
    return keys if len(keys) >= 3 and len(keys) * 2 >= len(row.filled) else []


def _key(value: object) -> tuple[float, ...]:
    """Return the sort key of a number or a date, also one written as text: 2005/06, 2024-01-31."""
    if isinstance(value, int | float):
        return (float(value),)
    if isinstance(value, date):
        return (float(value.year), float(value.month), float(value.day))
    return tuple([float(digits) for digits in _NUMERALS.findall(str(value))[:3]])


def _names(below: Sequence[Row]) -> float:
    """Return the share of the cells below that look like column names: a header is distinct only if they do not."""
    cells = sum(len(row.filled) for row in below)
    return sum(1 for row in below for at in row.filled if row.marks[at] & _NAME) / cells if cells else -1.0


def _first_kinds(row: Row) -> bytes:
    """Return the kinds of the first cells of a row."""
    return row.kinds if len(row.filled) <= _FORM_CELLS else row.kinds[: row.filled[_FORM_CELLS - 1] + 1]


def _form(rows: Sequence[Row], columns: Sequence[bytes], low: int, high: int) -> list[float]:
    """Describe signs of a form from one row up to another: columns of mixed kinds, ragged rows, labels with colons.

    `columns`: the kinds of each row's first cells, by column.
    """
    near = rows[low:high]
    seen = pure = 0
    for column in columns:
        counts = [column.count(kind, low, high) for kind in _FILLED_KINDS]
        seen += sum(counts)
        pure += max(counts)
    widths = [row.width for row in near]
    mean = sum(widths) / len(widths)
    ragged = sum(abs(width - mean) for width in widths) / len(widths) / mean
    colons = sum(1 for row in near if row.marks[row.filled[0]] & _COLON)
    labels = sum(1 for row in near if row.kinds[row.filled[0]] == _TEXT_KIND)
    return [pure / seen, ragged, colons / len(near), labels / len(near)]


WINDOW = 8
STEADY = 0.8  # share of equal steps between numbers
Place = tuple[int, object]  # a column and its value
NEAR = (-3, -2, -1, 1, 2, 3)
_FAMILY = bytes([0, 1, 2, 2, 3, 2, 2])  # kinds that are interchangeable in a column
MARKS = (
    Mark.YEAR,
    Mark.PERIOD,
    Mark.TOTAL,
    Mark.NOTE,
    Mark.TITLE,
    Mark.COLON,
    Mark.SENTENCE,
    Mark.CAPS,
    Mark.CAPITAL,
    Mark.FOOTNOTE,
    Mark.UNIT,
    Mark.INDENT,
    Mark.RULE,
    Mark.CODE,
    Mark.DIGITS,
    Mark.NAME,
)
FIRST_MARKS = (
    Mark.YEAR,
    Mark.TOTAL,
    Mark.NOTE,
    Mark.TITLE,
    Mark.COLON,
    Mark.SENTENCE,
    Mark.CAPS,
    Mark.FOOTNOTE,
    Mark.INDENT,
)

_MARKS = tuple(int(mark) for mark in MARKS)
_FIRST_MARKS = tuple(int(mark) for mark in FIRST_MARKS)
_NOTES = int(Mark.NOTE | Mark.FOOTNOTE | Mark.SENTENCE)
_TEXT, _NUMBER = int(CellKind.TEXT), int(CellKind.NUMBER)


def names() -> list[str]:
    """Return the names of the features in order, for the training script and the tests."""
    own = ["width", "width_log", "first", "spread", "text", "number", "date", "bool", "error", "filler"]
    own += [f"mark_{mark.name}" for mark in MARKS] + [f"first_{mark.name}" for mark in FIRST_MARKS]
    own += ["first_kind", "last_kind", "length_mean", "length_max", "length_first", "words_mean", "words_max"]
    own += ["distinct", "repeats_left", "sequence"]
    place = ["ordinal", "number", "left", "share_done", "gap_above", "gap_below", "skipped"]
    place += ["width_of_max", "width_of_usual", "values_above", "since_values", "lone_above", "seen_before"]
    near: list[str] = []
    for at in NEAR:
        near += [f"{name}_{at:+d}" for name in ("there", "width", "text", "values", "agree", "cover", "gap", "note")]
    windows: list[str] = []
    for side in ("up", "down"):
        windows += [
            f"{side}_{n}" for n in ("values", "width", "contrast", "agree", "cover", "length", "repeat", "lone")
        ]
        windows += [f"{side}_{n}" for n in ("first_blank", "first_agree", "beyond")]
    block = [f"block_{n}" for n in ("size", "at", "left", "values", "contrast", "agree", "cover", "width")]
    block += ["block_next_values", "block_next_width", "block_next_agree"]
    again = ["text_seen", "text_again", "values_seen", "values_again"]
    return own + place + near + windows + block + again + NAMES


def _families(row: Row) -> bytes:
    return row.kinds.translate(_TABLE)


_TABLE = _FAMILY + bytes(range(len(_FAMILY), 256))


def _own(row: Row) -> list[float]:
    """Describe a row by itself."""
    return [*_extent(row), *_kinds_and_marks(row), *_texts(row), *_repeats(row), _sequence(row)]


def _extent(row: Row) -> tuple[float, float, float, float]:
    """Describe how wide a row is, where it starts and how dense it is."""
    filled = row.filled
    if not filled:
        return float(row.width), log2(row.width + 1), 0.0, 0.0
    return float(row.width), log2(row.width + 1), float(filled[0]), len(filled) / (filled[-1] - filled[0] + 1)


def _kinds_and_marks(row: Row) -> list[float]:
    """Return the shares of the kinds and marks among the row's cells, and those of its first and last cell."""
    filled, kinds, marks = row.filled, row.kinds, row.marks
    n = len(filled) or 1
    out = [kinds.count(kind) / n for kind in (1, 2, 3, 4, 5, 6)]
    found = [marks[at] for at in filled]
    some = reduce(or_, found, 0)
    out += [sum([1 for one in found if one & mark]) / n if some & mark else 0.0 for mark in _MARKS]
    head = found[0] if found else 0
    out += [1.0 if head & mark else 0.0 for mark in _FIRST_MARKS]
    out += [float(kinds[filled[0]]), float(kinds[filled[-1]])] if filled else [0.0, 0.0]
    return out


def _texts(row: Row) -> tuple[float, float, float, float, float]:
    """Describe how long the row's texts are, in characters and in words."""
    texts = [at for at in row.filled if row.kinds[at] == _TEXT]
    lengths = [row.lengths[at] for at in texts] or [0]
    words = [row.words[at] for at in texts] or [0]
    first = float(row.lengths[row.filled[0]]) if row.filled else 0.0
    return sum(lengths) / len(lengths), float(max(lengths)), first, sum(words) / len(words), float(max(words))


def _repeats(row: Row) -> tuple[float, float]:
    """Return the shares of the row's values: distinct ones, and those equal to their left neighbour."""
    values = [row.values[at] for at in row.filled]
    n = len(values) or 1
    return len({str(value) for value in values}) / n, sum(1 for a, b in pairwise(values) if a == b) / n


def _as_number(value: object) -> float | None:
    """Return a value as a number; None if it is not written like one."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value.strip()[:12])
        except ValueError:
            return None
    return None


def _sequence(row: Row) -> float:
    """Return the share of neighbouring numbers with the same small step: 1990, 1991, 1992."""
    numbers = [_as_number(row.values[at]) for at in row.filled if row.kinds[at] == _NUMBER]
    pairs = [b - a for a, b in pairwise(numbers) if a is not None and b is not None]
    if len(pairs) < 2:
        return 0.0
    usual = max(set(pairs), key=pairs.count)
    return pairs.count(usual) / len(pairs) if usual and abs(usual) <= 10 else 0.0


def steady(row: Row) -> bool:
    """Whether the row's numbers increase by one small step."""
    return _sequence(row) >= STEADY


def _agreement(a: bytes, b: bytes, filled: Sequence[int]) -> tuple[float, float]:
    """Return the shares of the first row's cells: same family in the second, anything in the second."""
    n = same = there = 0
    limit = len(b)
    for at in filled:
        n += 1
        if at < limit and b[at]:
            there += 1
            same += a[at] == b[at]
    return (same / n, there / n) if n else (0.0, 0.0)


class _Grid:
    """Rows, the families of their cells, and the same by column: what a row is compared with is counted there."""

    def __init__(self, rows: Sequence[Row], families: Sequence[bytes]) -> None:
        self.rows, self.families = rows, families
        self.columns = [bytes(column) for column in zip_longest(*families, fillvalue=0)]
        blank = (0,) * len(self.columns)
        lengths = zip(*[(row.lengths + blank)[: len(blank)] for row in rows], strict=True)
        # For each column: how long the texts above each row are together.
        self.lengths = [
            list(accumulate([size if one == 1 else 0 for size, one in zip(sizes, column, strict=True)], initial=0))
            for sizes, column in zip(lengths, self.columns, strict=True)
        ]
        self.values = [family.count(2) for family in families]
        self.sizes = [len(row.filled) for row in rows]
        self.widths = [row.width for row in rows]
        self.firsts = [row.filled[0] if row.filled else len(self.columns) for row in rows]
        self.lasts = [row.last for row in rows]

    def window(self, i: int, low: int, high: int, *, nearest: int) -> list[float]:
        """Describe how a row compares with the rows from `low` up to `high`, right above it or below it."""
        if low >= high:
            return [-1.0] * 11
        row, family, count = self.rows[i], self.families[i], high - low
        width = sum(self.widths[low:high]) / count
        first = min(self.firsts[low:high])
        own_first = row.filled[0] if row.filled else 0
        return [
            sum(self.values[low:high]) / (sum(self.sizes[low:high]) or 1),
            row.width / (width or 1),
            *self._columns(i, low, high),
            self.widths[low:high].count(1) / count,
            float(own_first - (first if first < len(self.columns) else 0)),
            float(_starts_alike(family, self.rows[nearest], self.families[nearest])),
            sum([last > row.last for last in self.lasts[low:high]]) / count,
        ]

    def _columns(self, i: int, low: int, high: int) -> list[float]:
        """Describe how a row's cells compare with those of their columns: shares, and the ratio of texts' lengths."""
        row, family = self.rows[i], self.families[i]
        contrast = agree = cover = repeat = 0
        own_length = length = texts = 0
        for at in row.filled:
            column = self.columns[at][low:high]
            there = high - low - column.count(0)
            if not there:
                continue
            length += self.lengths[at][high] - self.lengths[at][low]
            texts += column.count(1)
            cover += 1
            own = family[at]
            agree += column.count(own) * 2 >= there
            if own == 1:
                contrast += column.count(2) * 2 >= there
                own_length += row.lengths[at]
                value = row.values[at]
                others = self.rows[low:high]
                repeat += any(at < len(other.values) and other.values[at] == value for other in others)
        n = len(row.filled) or 1
        own_texts = family.count(1) or 1
        ratio = (own_length / own_texts) / (length / texts) if length else -1.0
        return [contrast / n, agree / n, cover / n, min(ratio, 20.0), repeat / own_texts]


def _starts_alike(family: bytes, other: Row, others: bytes) -> bool:
    """Whether a row has a cell of the same family where the other row has its first one."""
    return bool(other.filled) and other.filled[0] < len(family) and family[other.filled[0]] == others[other.filled[0]]


def vectors(rows: Sequence[Row], *, total: int, every: bool = False) -> list[list[float]]:
    """One vector for each row, empty for a plain one unless `every` row gets one; `total`: the number of non-blank
    rows, skipped ones included."""
    families = [_families(row) for row in rows]
    widths = sorted(row.width for row in rows) or [1]
    widest, usual = widths[-1], widths[len(widths) // 2]
    rich = [
        fam.count(2) * 2 >= len(row.filled) and len(row.filled) > 1 for row, fam in zip(rows, families, strict=True)
    ]
    seen: dict[tuple[object, ...], int] = {}
    out: list[list[float]] = []
    above = since = lone = 0
    base = [_base(row, fam) for row, fam in zip(rows, families, strict=True)]
    blocks = _blocks(rows)
    again = _again(rows)
    grid = _Grid(rows, families)
    more = surroundings(rows, families, rich, every=every)
    for i, row in enumerate(rows):
        if row.skipped:
            above, since, lone = above + row.skipped, 0, 0
        key = tuple(row.values[at] for at in row.filled)
        vector: list[float] = []
        if every or not row.plain:
            vector = _own(row)
            gap_below = rows[i + 1].gap if i + 1 < len(rows) else -1
            left = total - row.ordinal - 1
            vector += [float(min(row.ordinal, 60)), float(min(row.number, 100)), float(min(left, 60))]
            vector += [row.ordinal / (total or 1), float(min(row.gap, 10)), float(min(gap_below, 10))]
            vector += [float(min(row.skipped, 50)), row.width / (widest or 1), row.width / (usual or 1)]
            vector += [float(min(above, 40)), float(min(since, 20)), float(min(lone, 10))]
            vector += [float(min(seen.get(key, 0), 3)) if len(key) > 1 else -1.0]
            for d in NEAR:
                vector += _near(rows, families, base, i, d)
            vector += grid.window(i, max(0, i - WINDOW), i, nearest=i - 1)
            below = grid.window(i, i + 1, min(len(rows), i + 1 + WINDOW), nearest=i + 1)
            vector += below
            vector += _block(grid, blocks, i, below)
            vector += again[i]
            vector += more[i]
        out.append(vector)
        seen[key] = seen.get(key, 0) + 1
        if rich[i]:
            above, since, lone = above + 1, 0, 0
        else:
            since += 1
            lone = lone + 1 if row.width == 1 else 0
    return out


def _base(row: Row, family: bytes) -> tuple[float, float, float]:
    """Describe a row for its neighbours: shares of texts and of values, and whether it opens as a note."""
    n = len(row.filled) or 1
    note = any(row.marks[at] & _NOTES for at in row.filled[:1])
    return (family.count(1) / n, family.count(2) / n, float(note))


def _near(
    rows: Sequence[Row],
    families: Sequence[bytes],
    base: Sequence[tuple[float, float, float]],
    i: int,
    d: int,
) -> list[float]:
    """Describe the row `d` below (above, if negative) row `i`, and how the two agree."""
    j = i + d
    if not 0 <= j < len(rows):
        return [0.0] + [-1.0] * 7
    row, other = rows[i], rows[j]
    agree, cover = _agreement(families[i], families[j], row.filled)
    gap = sum(rows[k].gap for k in range(min(i, j) + 1, max(i, j) + 1))
    text, values, note = base[j]
    return [1.0, other.width / (row.width or 1), text, values, agree, cover, float(min(gap, 10)), note]


def _blocks(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return for each row the start and end of its block; blocks are separated by blank rows."""
    starts = [i for i, row in enumerate(rows) if i == 0 or row.gap or row.skipped] + [len(rows)]
    return [(a, b) for a, b in pairwise(starts) for _ in range(a, b)]


def _block(grid: _Grid, blocks: Sequence[tuple[int, int]], i: int, below: Sequence[float]) -> list[float]:
    """Describe how a row compares with the rest of its block and with the next block.

    `below`: how it compares with the rows below, of any block.
    """
    start, end = blocks[i]
    out = [float(min(end - start, 40)), float(min(i - start, 40)), float(min(end - i - 1, 40))]
    low, high = i + 1, min(end, i + 1 + WINDOW)
    if low < high:
        is_same = high == min(len(grid.rows), low + WINDOW)
        window = below if is_same else grid.window(i, low, high, nearest=low)
        out += [window[0], window[2], window[3], window[4], window[1]]
    else:
        out += [-1.0] * 5
    if end < len(grid.rows):
        window = grid.window(i, end, min(blocks[end][1], end + WINDOW), nearest=end)
        out += [window[0], window[1], window[3]]
    else:
        out += [-1.0] * 3
    return out


def _again(rows: Sequence[Row]) -> list[list[float]]:
    """Return the shares of a row's texts and values that occur in the same column above and below."""
    keys: list[tuple[list[Place], list[Place]]] = []
    counts: dict[Place, int] = {}
    for row in rows:
        pair: tuple[list[Place], list[Place]] = ([], [])
        for at in row.filled[:40]:
            key = (at, row.values[at])
            pair[row.kinds[at] != _TEXT].append(key)
            counts[key] = counts.get(key, 0) + 1
        keys.append(pair)
    before_it: dict[Place, int] = {}
    out: list[list[float]] = []
    for pair in keys:
        line: list[float] = []
        for one in pair:
            n = len(one)
            before = sum(1 for key in one if key in before_it)
            after = sum(1 for key in one if counts[key] > before_it.get(key, 0) + 1)
            line += [before / n, after / n] if n else [-1.0, -1.0]
        out.append(line)
        for one in pair:
            for key in one:
                before_it[key] = before_it.get(key, 0) + 1
    return out
