"""Decides a table's header: does a row name the columns below it, or is it the first data row?

The classifier sees kinds and lengths. If all cells are texts, these show little, so each column votes on its values: is
the text repeated below, is it written like the others, does it look like a column name?
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from typing import NamedTuple

from runner.engine.common.a1 import letters
from runner.engine.reading import Layout, NoCachedValue
from runner.engine.structure import features, labelling
from runner.engine.structure.bands import Band, Draft
from runner.engine.structure.facts import CellKind, Mark, Profile, Row, text_shape
from runner.engine.structure.features import falls, rises
from runner.engine.structure.tables import Choice, Column, Label

JOIN = " / "
MAX_NAME = 200
Area = tuple[int, int, int, int]


def columns(head: Sequence[Row], left: int, right: int, merged: Sequence[Area] = ()) -> tuple[Column, ...]:
    """Name the columns from `left` to `right` (0-based, both included) by these header rows; `merged`: merged areas."""
    lines = [_texts(row, left, right) for row in head]
    for at, row in enumerate(head[:-1]):
        _spread_captions(lines[at], lines[at + 1 :], [m for m in merged if m[0] <= row.number <= m[2]], left)
    named: list[Column] = []
    for offset in range(right - left + 1):
        parts: list[str] = []
        for line in lines:
            text = line[offset]
            if text and (not parts or parts[-1] != text):
                parts.append(text)
        index = left + offset + 1
        name = JOIN.join(parts)[:MAX_NAME] or f"Column {letters(index)}"
        named.append(Column(index, name, tuple(parts), generated=not parts))
    return tuple(named)


def _texts(row: Row, left: int, right: int) -> list[str]:
    return [cell_text(row.values[at]) if at < len(row.values) else "" for at in range(left, right + 1)]


def cell_text(value: object) -> str:
    """Return a header's cell as part of a column's name; a formula without a stored result names nothing."""
    if value is None or type(value) is NoCachedValue:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())


def _spread_captions(line: list[str], below: Sequence[list[str]], merged: Sequence[Area], left: int) -> None:
    """Extend each text of a header line to the right: over its merge, or up to the next cell with a leaf below.

    Changes `line`; `below`: the lines below it.
    """
    spans = {m[1] - left - 1: m[3] - left - 1 for m in merged if m[3] > m[1]}
    if spans:
        for start, end in spans.items():
            if 0 <= start < len(line):
                for at in range(start, min(end, len(line) - 1) + 1):
                    line[at] = line[at] or line[start]
        return
    caption = ""
    for at, text in enumerate(line):
        has_leaf = any(other[at] for other in below)
        if text:
            # A cell with nothing under it is itself a leaf.
            caption = text if has_leaf else ""
        elif not has_leaf:
            caption = ""
        else:
            line[at] = caption


MOST_ROWS = 400  # rows below that are examined
FEW = 3  # texts from which a column has a style
SAME = 0.8  # share of a column's texts in one style
MOST_COLUMNS = 40  # columns that are examined
LONG = 3.0  # texts below are prose if this many times longer than the name
COMMON_NAMES = 0.2  # share of texts below that look like names; with more, a name above proves nothing
CLEAR_VOTE = 2.0  # points that settle it
# Texts that never name a column: addresses, answers, numbers with a sign or a code in front.
VALUE = re.compile(
    r"\S+@\S+\.\w+|(?:https?://|www\.)\S+|\+?\d[\d ()/.-]{5,}|yes|no|true|false|ja|nein|oui|non|[A-Z]{1,6}-?\d{3,}",
    re.IGNORECASE,
)
_NAMES = int(Mark.NAME | Mark.CODE)
_YEAR = int(Mark.YEAR)
_TEXT, _FILLER = int(CellKind.TEXT), int(CellKind.FILLER)


class Votes(NamedTuple):
    """The evidence for a header against one more data row, by column."""

    points: float  # above zero: a header
    names: int  # columns that vote for names
    values: int  # columns that vote for values

    @property
    def sure(self) -> bool:
        return abs(self.points) >= CLEAR_VOTE


def votes(first: Row, below: Sequence[Row]) -> Votes:
    """Let the columns of a row vote on whether it names them or is one more of the rows below it."""
    rows = below[:MOST_ROWS]
    column_votes = [_vote(first, rows, at) for at in first.filled[:MOST_COLUMNS]]
    names, values = sum(1 for vote in column_votes if vote > 0), sum(1 for vote in column_votes if vote < 0)
    points = sum(column_votes) / max(1.0, (names + values) ** 0.5)
    texts = [key for key, _ in groupby(str(first.values[at]) for at in first.filled if first.kinds[at] == _TEXT)]
    if len(texts) > 1 and len(set(texts)) < len(texts):
        points -= 1.0  # column names are distinct
    used = {
        at for row in rows for at in row.filled if sum(at in other.filled for other in rows[:20]) * 2 > len(rows[:20])
    }
    blank = len(used.difference(first.filled))
    points -= 1.0 if blank * 4 > len(used) else 0.0
    return Votes(points, names, values)


def _vote(first: Row, below: Sequence[Row], at: int) -> float:
    """Return the vote of one column: positive for a name, negative for a value, 0 if it says nothing."""
    kind = first.kinds[at]
    kinds = Counter(row.kinds[at] for row in below if at < len(row.kinds) and row.kinds[at] not in (0, _FILLER))
    count = kinds.total()
    if first.values[at] == "#" and count:
        return 1.0
    if not count or kind == _FILLER:
        return 0.0
    texts = kinds[_TEXT]
    if kind != _TEXT:
        years = sum(1 for row in below if at < len(row.kinds) and row.kinds[at] and row.marks[at] & _YEAR)
        if first.marks[at] & _YEAR and years * 5 < count and len(first.filled) > 1:
            return 1.0  # a year over other values
        return -1.5 if kinds[kind] * 2 > count else 0.0
    if (count - texts) * 2 > count:
        return 2.5
    return _vote_among_texts(first, [row for row in below if at < len(row.kinds) and row.kinds[at] == _TEXT], at)


def _vote_among_texts(first: Row, below: Sequence[Row], at: int) -> float:
    """Return the vote of a text over texts."""
    text = str(first.values[at])
    profile = Profile(str(row.values[at]) for row in below)
    if profile.has(text):
        return -2.5
    count = profile.count
    shape = text_shape(text)
    points = -1.5 if VALUE.fullmatch(text.strip()[:200]) else 0.0
    named = sum(1 for row in below if row.marks[at] & _NAMES)
    if first.marks[at] & _NAMES and named <= COMMON_NAMES * count:
        points += 1.5
    if count >= FEW:
        form, times = profile.forms.most_common(1)[0]
        if times >= SAME * count:
            is_specific = any(char in form for char in "9@-_/")
            points += (-2.0 if is_specific else -0.7) if shape.form == form else (1.5 if is_specific else 1.0)
        elif profile.styles[shape.style, shape.digits, shape.signs] == 0:
            points += 1.0
        elif profile.like(text):
            points -= 0.5
        # A rare value would be an outlier among values that repeat.
        distinct = len(profile.texts)
        if distinct * 2 <= count:
            points += min(2.0, 0.5 * (count / distinct - 1.0))
    if profile.length > LONG * shape.length and shape.words <= FEW:
        points += 1.0
    return points


Spelled = Callable[[Sequence[object]], int]  # how many of these values are declared names

DECISIVE = 4.0  # points of a rule or of declared names that make a row the header
STYLED = 0.7  # points for bold, colour, a filter or frozen rows that do so, too
BELIEF = 0.4  # weight of the row classifier's odds relative to the votes
MOST = 4.0  # of these odds, as a logarithm
CERTAIN = 1.0  # points from which the choice is sure
ABOVE = 3  # rows above a body that may be its header, mistaken for titles
NAMED_SHARE = 0.6  # share of a table's columns that such a row names
BELIEVED = 0.7  # probability of a header row from which the votes do not count
MANY_VALUES = 6  # as many numbers do not increase by chance
RISING = 0.9  # share of numbers or dates that increase from left to right: years, hours, classes


@dataclass(frozen=True, slots=True)
class Hints:
    """Evidence about rows from outside the classifier: rules, declared names, the layout, the manifest."""

    scores: Mapping[int, Mapping[str, float]]  # points of rules and of declared names, by row
    layout: Layout
    ruled: frozenset[int] = frozenset()  # rows with points from a rule
    spelled: Spelled | None = None
    captions: str = "drop"  # what to do with captions: drop, keep or fill
    notes: str = "auto"  # what to do with notes: auto, drop or keep
    fixed: tuple[int, ...] | None = None  # the manifest's header rows; empty: no header
    key: Callable[[str], bool] | None = None  # whether a column's name is that of a required or unique field

    def keys(self, columns: Sequence[Column]) -> frozenset[int]:
        """Return the columns (0-based) of required or unique fields."""
        if self.key is None:
            return frozenset()
        return frozenset(
            column.index - 1 for column in columns if any(map(self.key, (column.name, *column.parts[-1:])))
        )

    def header(self, number: int) -> float:
        """Return the points for a header that rules and declared names give to a row."""
        return self.scores.get(number, {}).get("header", 0.0)


def decide_header(draft: Draft, hints: Hints) -> None:
    """Decide whether a draft's first row is its header; changes its labels and band, and notes a close call."""
    if draft.declared or draft.form or not draft.band.body:
        return
    if not draft.band.head:
        _promote_first_row(draft, hints)
        return
    leaf = draft.band.head[-1]
    row = draft.rows[leaf]
    if _is_certain(draft, leaf, hints):
        return
    body = [draft.rows[at] for at in draft.band.body]
    vote = votes(row, body)
    points = vote.points + BELIEF * _odds(draft, leaf)
    if len(draft.band.head) > 1:
        is_doubted = vote.points <= -CLEAR_VOTE and draft.chances[leaf][Label.HEADER] < BELIEVED
        if is_doubted or _is_single_key(draft, row, body):
            _demote_last_header_row(draft)
            decide_header(draft, hints)
        return
    if points <= 0:
        behead(draft)
        if points > -CERTAIN:
            note(draft, row.number, vote, header=False)
    elif points < CERTAIN:
        note(draft, row.number, vote, header=True)


def _promote_first_row(draft: Draft, hints: Hints) -> None:
    """Make the first row of a body, or a row right above it, the header if it looks like one."""
    if _promote_titles(draft):
        return
    first = draft.band.body[0]
    row = draft.rows[first]
    rest = [draft.rows[at] for at in draft.band.body[1:]]
    if not rest or (row.number in hints.scores and hints.header(row.number) < DECISIVE):
        return
    vote = votes(row, rest)
    points = vote.points + BELIEF * _odds(draft, first)
    if hints.spelled is not None and hints.spelled(row.values):
        points += DECISIVE
    if points >= CERTAIN and (not vote.values or points >= DECISIVE):
        draft.labels[first] = Label.HEADER
        draft.band = Band([first], draft.band.body[1:], draft.band.repeated_headers)
    elif points > 0 and vote.names:
        note(draft, row.number, vote, header=False)


def _promote_titles(draft: Draft) -> bool:
    """Turn titles right above a body into its header, or into more of its rows, if they fit; whether it has one now."""
    first = draft.band.body[0]
    body = [draft.rows[at] for at in draft.band.body]
    for at in range(first - 1, max(-1, first - 1 - ABOVE), -1):
        row, below = draft.rows[at], draft.rows[at + 1]
        if below.gap or below.skipped or draft.labels[at] not in (Label.TITLE, Label.NOTE, Label.GROUP):
            return False
        inside = sum(1 for column in row.filled if draft.left <= column <= draft.right)
        if inside < 2 or inside < NAMED_SHARE * (draft.right - draft.left + 1) or inside != row.width:
            continue
        points = votes(row, body).points
        between = list(range(at + 1, draft.band.body[0]))
        if points >= CLEAR_VOTE:
            _relabel(draft, at, between, Label.HEADER)
            draft.band = Band([at], between + draft.band.body, draft.band.repeated_headers)
            return True
        if points >= (CERTAIN if inside == draft.right - draft.left + 1 else 0.0):
            return False
        _relabel(draft, at, between, Label.DATA)
        draft.band = Band([], [at, *between, *draft.band.body], draft.band.repeated_headers)
    return False


def _relabel(draft: Draft, at: int, between: Sequence[int], label: Label) -> None:
    """Change the label of a row, and make the rows `between` it and the body captions."""
    draft.labels[at] = label
    for row in between:
        draft.labels[row] = Label.GROUP


def _is_single_key(draft: Draft, row: Row, body: Sequence[Row]) -> bool:
    """Whether a row under a header is a single text in a named column of texts: a key or a caption."""
    column = row.filled[0]
    above = draft.rows[draft.band.head[-2]]
    if row.width > 1 or above.width < 2 or column not in above.filled:
        return False
    kinds = [other.kinds[column] for other in body if column < len(other.kinds) and other.kinds[column]]
    return kinds.count(CellKind.TEXT) * 2 > len(kinds)


def _is_certain(draft: Draft, at: int, hints: Hints) -> bool:
    """Whether the row is certainly a header."""
    row = draft.rows[at]
    if hints.header(row.number) >= DECISIVE or (hints.spelled is not None and hints.spelled(row.values)):
        return True
    if _counts_up(row):
        return True
    near = draft.rows[max(0, at - 1) : at + 2]
    return labelling.style_points(near, hints.layout, row.number) >= STYLED


def _counts_up(row: Row) -> bool:
    """Whether a row names its columns by years, months, hours or classes."""
    if rises(row) < RISING:
        return falls(row) >= RISING and row.width >= 2 * MANY_VALUES
    kinds = {row.kinds[at] for at in row.filled if row.kinds[at] in (CellKind.NUMBER, CellKind.DATE)}
    values = [row.values[at] for at in row.filled if row.kinds[at] in kinds]
    years = all(row.marks[at] & Mark.YEAR for at in row.filled if row.kinds[at] == CellKind.NUMBER)
    return len(kinds) == 1 and (kinds == {CellKind.DATE} or years or len(values) >= MANY_VALUES or features.steady(row))


def _odds(draft: Draft, at: int) -> float:
    """Return the row classifier's log odds of a header, within bounds."""
    chance = draft.chances[at][Label.HEADER]
    other = max(1e-9, 1.0 - chance)
    return max(-MOST, min(MOST, log(max(chance, 1e-9) / other)))


def note(draft: Draft, number: int, vote: Votes, *, header: bool) -> None:
    """Add a close call to a draft's choices: a row that was read as the header, or as data, and may be the other."""
    evidence = {"header": vote.names, "none": vote.values}
    if header:
        message = f"row {number} was read as the header, but it looks like the rows below it"
        remedy = '"reading": {"header": "none"}'
    else:
        message = f"row {number} was read as data and the table has no header, but this row could be the header"
        remedy = f'"reading": {{"header_rows": [{number}]}}'
    chosen = f"row {number}" if header else "none"
    draft.choices.append(Choice("header", chosen, evidence, False, message, number, remedy))


def behead(draft: Draft) -> None:
    """Turn the header rows into data."""
    draft.labels = [Label.DATA if at in draft.band.head else label for at, label in enumerate(draft.labels)]
    draft.band = Band(body=draft.band.all, repeated_headers=draft.band.repeated_headers)


def _demote_last_header_row(draft: Draft) -> None:
    """Turn the last header row into data."""
    *head, leaf = draft.band.head
    draft.labels[leaf] = Label.DATA
    draft.band = Band(head, [leaf, *draft.band.body], draft.band.repeated_headers)
