"""Whether a row names the columns below it or is one more of their values, judged value by value.

The line classifier sees kinds and lengths. Where all cells are texts these say little, and what the column holds must
speak: does the text come again below, is it written as the others are, does it read like a column's name?
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.likeness import Profile, look
from runner.engine.structure.rows import Row

MANY = 400  # rows below that are looked at
FEW = 3  # texts from which a way of writing can be called a column's own
SAME = 0.8  # of a column's texts written alike
WIDE = 40  # columns that are looked at
LONG = 3.0  # times the length of a name that the texts below it have where they are texts to read
COMMON_NAMES = 0.2  # share of texts below that read like names: where more do, one above says nothing
CLEAR = 2.0  # points that leave no doubt
# What nobody names a column: addresses, answers, numbers with a sign or a code in front.
VALUE = re.compile(
    r"\S+@\S+\.\w+|(?:https?://|www\.)\S+|\+?\d[\d ()/.-]{5,}|yes|no|true|false|ja|nein|oui|non|[A-Z]{1,6}-?\d{3,}",
    re.IGNORECASE,
)
_NAMES = int(Mark.NAME | Mark.CODE)
_YEAR = int(Mark.YEAR)
_TEXT, _FILLER = int(Kind.TEXT), int(Kind.FILLER)


class Votes(NamedTuple):
    """What speaks for a header, and what for one more row of data, column by column."""

    points: float  # above zero: a header
    names: int  # columns that speak for names
    values: int  # columns that speak for values

    @property
    def sure(self) -> bool:
        return abs(self.points) >= CLEAR


def votes(first: Row, below: Sequence[Row]) -> Votes:
    """How the columns of a row vote."""
    some = below[:MANY]
    each = [_vote(first, some, at) for at in first.filled[:WIDE]]
    names, values = sum(1 for one in each if one > 0), sum(1 for one in each if one < 0)
    speaking = names + values
    points = sum(each) / max(1.0, speaking**0.5)
    texts = [key for key, _ in groupby(str(first.values[at]) for at in first.filled if first.kinds[at] == _TEXT)]
    if len(texts) > 1 and len(set(texts)) < len(texts):
        points -= 1.0  # names differ from each other
    used = {
        at for row in some for at in row.filled if sum(at in other.filled for other in some[:20]) * 2 > len(some[:20])
    }
    blank = len(used.difference(first.filled))
    points -= 1.0 if blank * 4 > len(used) else 0.0
    return Votes(points, names, values)


def _vote(first: Row, below: Sequence[Row], at: int) -> float:
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
            return 1.0  # a year over what is none
        return -1.5 if kinds[kind] * 2 > count else 0.0
    if (count - texts) * 2 > count:
        return 2.5
    return _among_texts(first, [row for row in below if at < len(row.kinds) and row.kinds[at] == _TEXT], at)


def _among_texts(first: Row, below: Sequence[Row], at: int) -> float:
    """The vote of a text over texts."""
    text = str(first.values[at])
    profile = Profile(str(row.values[at]) for row in below)
    if profile.has(text):
        return -2.5
    count = profile.count
    own = look(text)
    points = -1.5 if VALUE.fullmatch(text.strip()[:200]) else 0.0
    named = sum(1 for row in below if row.marks[at] & _NAMES)
    if first.marks[at] & _NAMES and named <= COMMON_NAMES * count:
        points += 1.5
    if count >= FEW:
        form, times = profile.forms.most_common(1)[0]
        if times >= SAME * count:
            telling = any(char in form for char in "9@-_/")
            points += (-2.0 if telling else -0.7) if own.form == form else (1.5 if telling else 1.0)
        elif profile.styles[own.style, own.digits, own.signs] == 0:
            points += 1.0
        elif profile.like(text):
            points -= 0.5
        # A value that few others share would be the odd one out among values that come again and again.
        distinct = len(profile.texts)
        if distinct * 2 <= count:
            points += min(2.0, 0.5 * (count / distinct - 1.0))
    if profile.length > LONG * own.length and own.words <= FEW:
        points += 1.0
    return points
