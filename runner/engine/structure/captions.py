"""Decides which rows are captions: single texts that head the rows below them.

A row with a single text may also be a record of which only the key is known. Such a row is data unless there is
evidence for a caption: its style, a merge, a column that otherwise has no values or only numbers, a text unlike the
others, and a pattern of captions and rows from the table's first row on.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from runner.engine.structure.bands import Draft
from runner.engine.structure.facts import CellKind, Mark, Profile, Row
from runner.engine.structure.tables import Choice, Clarity, Label
from runner.engine.structure.totals import row_clarity

SURE = 3.0  # points from which a row is a caption
DOUBT = 1.0  # points from which it may be one
NAMED = 200  # doubtful rows reported one by one
PURE = 0.9  # share of a column's cells that are blank, or values
_TEXT = int(CellKind.TEXT)
# What printed pages and programs put between records: "# page 2", "-- end of section --", "Continued on next page".
_REMARK = re.compile(
    r"\s*(?:#|//|--|==|\*\*|(?:page|seite|pagina|página)\s+\d|continued|fortsetzung|suite\b|end of |carried forward)",
    re.IGNORECASE,
).match


class Captions(NamedTuple):
    """Row numbers."""

    sure: frozenset[int]
    doubtful: tuple[int, ...]  # kept as data


def lone(row: Row) -> bool:
    """Whether the row has one text, or the same text in several cells, as a merged caption may be stored."""
    return len({str(row.values[one]) for one in row.filled}) == 1 and row.kinds[row.filled[0]] == _TEXT


def captions(draft: Draft, ruled: frozenset[int], keys: frozenset[int]) -> Captions:
    """The captions of a draft; `keys`: columns of required or unique fields."""
    body = draft.band.body
    spoken = {draft.rows[at].number for at in body if _spoken(draft, at, ruled)}
    if draft.declared or draft.left == draft.right:
        return Captions(frozenset(spoken), ())
    places = [n for n, at in enumerate(body) if draft.rows[at].number not in ruled and lone(draft.rows[at])]
    texts = _text_columns([draft.rows[at] for at in body])
    places = [n for n in places if not _is_record(draft.rows[body[n]], texts)]
    columns = {draft.rows[body[n]].filled[0] for n in places}
    points: dict[int, float] = {}
    for column in columns:
        own = [n for n in places if draft.rows[body[n]].filled[0] == column]
        points |= _Column(draft, column, own, key=column in keys).points()
    sure = {n for n, value in points.items() if value >= SURE}
    doubt = [n for n, value in points.items() if DOUBT <= value < SURE]
    numbers = frozenset(draft.rows[body[n]].number for n in sure)
    return Captions(numbers | spoken, tuple(sorted(draft.rows[body[n]].number for n in doubt)))


def _spoken(draft: Draft, at: int, ruled: frozenset[int]) -> bool:
    """Whether a rule, or the file itself, labels the row as a caption."""
    return (draft.rows[at].number in ruled or draft.declared) and draft.labels[at] is Label.GROUP


def _text_columns(rows: Sequence[Row]) -> frozenset[int]:
    """Columns with texts in most rows other than single-text rows; all columns if there are few such rows."""
    full = [row for row in rows if not lone(row)]
    if len(full) * 2 <= len(rows):
        return frozenset(at for row in rows for at in row.filled)
    texts = Counter(at for row in full for at in row.filled if row.kinds[at] == _TEXT)
    return frozenset(at for at, count in texts.items() if count * 2 > len(full))


def _is_record(row: Row, texts: frozenset[int]) -> bool:
    """Whether the same text in several cells is a record: New York in New York.

    A caption that is stored in several cells also fills columns where other rows have numbers, dates or blanks.
    """
    return len(row.filled) > 1 and not row.merged and texts.issuperset(row.filled)


class _Column:
    """The single texts of one column, and its other cells."""

    def __init__(self, draft: Draft, column: int, places: Sequence[int], *, key: bool) -> None:
        self.rows = [draft.rows[at] for at in draft.band.body]
        self.chances = [draft.chances[at][Label.GROUP] for at in draft.band.body]
        self.column = column
        self.places = places
        self.key = key
        alone = set(places)
        self.full = [row for n, row in enumerate(self.rows) if n not in alone]
        self.held = [row for row in self.full if column < len(row.kinds) and row.kinds[column]]
        self.values = sum(1 for row in self.held if row.kinds[column] != _TEXT)
        self.profile = Profile(str(row.values[column]) for row in self.held if row.kinds[column] == _TEXT)
        # If records repeat a text across cells, a text in several cells is not a merged caption.
        self.echoes = any(len(r.filled) > 1 and len({str(r.values[at]) for at in r.filled}) == 1 for r in self.full)
        styled = [row.bold for row in self.full if row.bold >= 0]
        self.bold = sum(styled) / len(styled) if styled else 1.0

    def points(self) -> dict[int, float]:
        if not self.full:
            return {}
        pattern = self._pattern()
        texts = Counter(self._text(n) for n in self.places)
        like = sum(1 for n in self.places if self.held and self.profile.like(self._text(n)))
        mixed = 2.0 if like < len(self.places) <= 2 * like else 0.0  # there are records with only a key among them
        out = {n: self._own(n) + pattern - mixed - 1.0 * (texts[self._text(n)] > 2) for n in self.places}
        if any(value >= SURE for value in out.values()):  # if one is sure, others need less evidence
            out = {n: value + 0.5 for n, value in out.items()}
        remarks = {n for n in self.places if self._is_blank() or _REMARK(self._text(n))}
        out = {n: max(value, DOUBT) if n in remarks and not self.key else value for n, value in out.items()}
        if any(value >= DOUBT for value in out.values()):  # and the others that are not values may be captions
            out = {n: value if self.profile.has(self._text(n)) else max(value, DOUBT) for n, value in out.items()}
        return out

    def _text(self, n: int) -> str:
        return str(self.rows[n].values[self.column])

    def _own(self, n: int) -> float:
        """The points of one row."""
        row, text = self.rows[n], self._text(n)
        below = self.rows[n + 1] if n + 1 < len(self.rows) else None
        points = 4.0 if row.merged else 3.0 if len(row.filled) > 1 and not self.echoes else 0.0
        if self.key and not points:
            return -9.0
        points += 2.5 if row.bold > 0.9 and self.bold < 0.3 else 0.0
        points += self._column_says(text)
        points += 1.0 if row.marks[self.column] & Mark.COLON else 0.0
        points += 1.0 if row.gap and n else 0.0
        if below is None or lone(below) or below.gap > 1:
            points -= 2.0
        elif self.column < len(below.marks) and below.marks[self.column] & ~row.marks[self.column] & Mark.INDENT:
            points += 2.0
        chance = self.chances[n]
        return points + (1.0 if chance >= 0.5 else -0.5 if chance < 0.1 else 0.0)

    def _is_blank(self) -> bool:
        """Whether nearly all other rows are blank in this column."""
        return len(self.held) <= (1 - PURE) * len(self.full)

    def _column_says(self, text: str) -> float:
        """Points for a text that does not fit among the column's other cells."""
        if self._is_blank():
            return 3.0
        if self.values >= PURE * len(self.held):
            return 2.5
        if self.profile.has(text):
            return -4.0
        return -2.0 if self.profile.like(text) else 1.5

    def _pattern(self) -> float:
        """Points for the pattern: captions start at the first row and have rows below; records may not."""
        first = self.places[0] == 0 or (self.rows[self.places[0]].gap > 0)
        broken = self.places[-1] == len(self.rows) - 1 or any(b == a + 1 for a, b in pairwise(self.places))
        points = (1.0 if first else -1.5) - (1.0 if broken else 0.0)
        if len(self.places) > 1:
            points += 0.5 if first and not broken else 0.0
            points += 1.0 if self._shared_word() else 0.0
            after = [n for n in self.places if n and _speaks_of_total(self.rows[n - 1])]
            points += 2.5 if after and len(after) >= len([n for n in self.places if n]) else 0.0
        return points

    def _shared_word(self) -> bool:
        """Whether most of them share a word that no other text of the column has: North region, South region."""
        words = Counter(word for n in self.places for word in set(self._text(n).lower().split()))
        word, count = words.most_common(1)[0]
        others = {one for text in self.profile.texts for one in text.lower().split()}
        return count * 2 > len(self.places) and count > 1 and word not in others


def _speaks_of_total(row: Row) -> bool:
    return row_clarity([row.values[at] for at in row.filled[:2]])[0] >= Clarity.NAMED


def choices(found: Captions) -> list[Choice]:
    """The findings: none for sure captions, which are listed anyway; doubtful ones were kept as data."""
    evidence = {"data": len(found.doubtful), "group": len(found.sure)}
    message = "row {} has a single text; kept as data, but it could be a caption of the rows below"
    settle = '"reading": {"group_rows": "fill"}'
    named = found.doubtful[:NAMED]
    out = [Choice("group", "data", evidence, False, message.format(row), row, settle) for row in named]
    if (more := len(found.doubtful) - NAMED) > 0:
        rest = f"{more} more rows from row {found.doubtful[NAMED]} on have a single text; kept as data"
        out.append(Choice("group", "data", evidence, False, rest, found.doubtful[NAMED], settle))
    return out
