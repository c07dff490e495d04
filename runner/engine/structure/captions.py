"""Decides which rows of a table are no records: captions, and rows that number, explain or name columns.

A caption is a single text that heads the rows below it. A row with a single text may also be a record of which only the
key is known. Such a row is data unless there is evidence for a caption: its style, a merge, a column that otherwise has
no values or only numbers, a text unlike the others, and a pattern of captions and rows from the table's first row on.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from runner.engine.structure.bands import Draft
from runner.engine.structure.facts import LONE_NAMES, CellKind, Mark, Profile, Row
from runner.engine.structure.header_rows import COMMON_NAMES, Hints, cell_text
from runner.engine.structure.keeping import other_names
from runner.engine.structure.tables import Choice, Clarity, Label
from runner.engine.structure.total_words import row_clarity

SURE = 3.0  # points from which a row is a caption
DOUBT = 1.0  # points from which it may be one
_MOST_REPORTED = 200  # doubtful rows reported one by one
PURE = 0.9  # share of a column's cells that are blank, or values
_TEXT = int(CellKind.TEXT)
# Plain integers: members of an enum are several times slower. A code with digits is rather a value.
_NAME, _CODE = int(Mark.NAME), int(Mark.CODE)
_NAME_MARKS = int(Mark.NAME | Mark.CODE | Mark.DIGITS)
# What printed pages and programs put between records: "# page 2", "-- end of section --", "Continued on next page".
_REMARK = re.compile(
    r"\s*(?:#|//|--|==|\*\*|(?:page|seite|pagina|página)\s+\d|continued|fortsetzung|suite\b|end of |carried forward"
    r"|(?:eof|end|ende|fin|trailer)\W*$|[*†‡¹²³]\s*\w)",
    re.IGNORECASE,
).match


_SENTENCE = re.compile(r".*\w{2}[.!?]\s*$", re.DOTALL).match


class Captions(NamedTuple):
    """The captions of a draft, by row number."""

    sure: frozenset[int]
    likely: frozenset[int]  # only words speak for them: left out, but nothing proves it
    doubtful: tuple[int, ...]  # kept as data


def is_single_text(row: Row) -> bool:
    """Whether the row has one text, or the same text in several cells, as a merged caption may be stored."""
    return len({str(row.values[one]) for one in row.filled}) == 1 and row.kinds[row.filled[0]] == _TEXT


def captions(draft: Draft, ruled: frozenset[int], keys: frozenset[int]) -> Captions:
    """Find the captions of a draft; `ruled`: rows that rules label, `keys`: columns of required or unique fields."""
    body = draft.band.body
    labelled = {draft.rows[at].number for at in body if _is_labelled_caption(draft, at, ruled)}
    if draft.declared or draft.left == draft.right:
        return Captions(frozenset(labelled), frozenset(), ())
    places = [n for n, at in enumerate(body) if draft.rows[at].number not in ruled and is_single_text(draft.rows[at])]
    texts = _text_columns([draft.rows[at] for at in body])
    places = [n for n in places if not _is_record(draft.rows[body[n]], texts)]
    columns = {draft.rows[body[n]].filled[0] for n in places}
    points: dict[int, float] = {}
    likely = set(places)
    for column in columns:
        places_here = [n for n in places if draft.rows[body[n]].filled[0] == column]
        texts_here = _SingleTexts(draft, column, places_here, key=column in keys)
        points |= texts_here.points()
        likely -= texts_here.with_signs()
    sure = {draft.rows[body[n]].number for n, value in points.items() if value >= SURE}
    only_words = {draft.rows[body[n]].number for n in likely} & sure
    if body and sure == {draft.rows[body[0]].number} and columns.isdisjoint({draft.left, *texts}):
        only_words = sure  # the only one, below the name of a column of values: it may be the unit
    doubtful = [draft.rows[body[n]].number for n, value in points.items() if DOUBT <= value < SURE]
    return Captions(frozenset((sure - only_words) | labelled), frozenset(only_words), tuple(sorted(doubtful)))


def _is_labelled_caption(draft: Draft, at: int, ruled: frozenset[int]) -> bool:
    """Whether a rule, or the file itself, labels the row as a caption."""
    return (draft.rows[at].number in ruled or draft.declared) and draft.labels[at] is Label.GROUP


def _text_columns(rows: Sequence[Row]) -> frozenset[int]:
    """Return the columns with texts in most rows of several texts; all columns if there are few such rows."""
    full = [row for row in rows if not is_single_text(row)]
    if len(full) * 2 <= len(rows):
        return frozenset(at for row in rows for at in row.filled)
    texts = Counter(at for row in full for at in row.filled if row.kinds[at] == _TEXT)
    return frozenset(at for at, count in texts.items() if count * 2 > len(full))


def _is_record(row: Row, texts: frozenset[int]) -> bool:
    """Whether the same text in several cells is a record: New York in New York.

    A caption that is stored in several cells also fills columns where other rows have numbers, dates or blanks.
    """
    return len(row.filled) > 1 and not row.merged and texts.issuperset(row.filled)


class _SingleTexts:
    """The rows whose only text is in one column, judged by that column's other cells."""

    def __init__(self, draft: Draft, column: int, places: Sequence[int], *, key: bool) -> None:
        self.rows = [draft.rows[at] for at in draft.band.body]
        self.chances = [draft.chances[at][Label.GROUP] for at in draft.band.body]
        self.column = column
        self.places = places
        self.key = key
        single = set(places)
        self.full = [row for n, row in enumerate(self.rows) if n not in single]
        self.filled = [row for row in self.full if column < len(row.kinds) and row.kinds[column]]
        self.values = sum(1 for row in self.filled if row.kinds[column] != _TEXT)
        self.profile = Profile(str(row.values[column]) for row in self.filled if row.kinds[column] == _TEXT)
        # If records repeat a text across cells, a text in several cells is not a merged caption.
        self.echoes = any(len(r.filled) > 1 and len({str(r.values[at]) for at in r.filled}) == 1 for r in self.full)
        styled = [row.bold for row in self.full if row.bold >= 0]
        self.bold = sum(styled) / len(styled) if styled else 1.0

    def points(self) -> dict[int, float]:
        """Return the points of each place: from SURE on it is a caption, from DOUBT on it may be one."""
        if not self.full:
            return {}
        texts = {n: self._text(n) for n in self.places}
        times = Counter(texts.values())
        values = {n for n, text in texts.items() if self.profile.has(text)}
        pattern = self._pattern_points()
        mixed = 2.0 * (bool(values) or self._has_lone_keys(texts.values()))
        points = {n: self._row_points(n) + pattern - mixed - 2.0 * (times[text] > 1) for n, text in texts.items()}
        if any(value >= SURE for value in points.values()):  # if one is sure, others need less evidence
            points = {n: value + 0.5 for n, value in points.items()}
        points = {n: max(value, DOUBT) if self._may_be_remark(texts[n]) else value for n, value in points.items()}
        if any(value >= DOUBT for value in points.values()):  # and the others that are not values may be captions
            points = {n: value if n in values else max(value, DOUBT) for n, value in points.items()}
        return points

    def _has_lone_keys(self, texts: Collection[str]) -> bool:
        """Whether most single texts, but not all, are like the column's values: there are records with only a key."""
        like = sum(1 for text in texts if self.filled and self.profile.like(text))
        return like < len(texts) <= 2 * like

    def _may_be_remark(self, text: str) -> bool:
        return not self.key and (self._is_blank() or _REMARK(text) is not None)

    def _text(self, n: int) -> str:
        return str(self.rows[n].values[self.column])

    def _row_points(self, n: int) -> float:
        """Return the points of one row by itself: its signs, its text among those of its column, the row below it."""
        row, text = self.rows[n], self._text(n)
        if self.key and not self._span_points(row):
            return -9.0
        points = self._sign_points(n) + self._text_points(text)
        points -= 2.0 if _SENTENCE(text) else 0.0
        if (below := self._below(n)) is None or is_single_text(below) or below.gap > 1:
            points -= 2.0
        chance = self.chances[n]
        return points + (1.0 if chance >= 0.5 else -0.5 if chance < 0.1 else 0.0)

    def _below(self, n: int) -> Row | None:
        return self.rows[n + 1] if n + 1 < len(self.rows) else None

    def _span_points(self, row: Row) -> float:
        return 4.0 if row.merged else 3.0 if len(row.filled) > 1 and not self.echoes else 0.0

    def _sign_points(self, n: int) -> float:
        """Return the points for what people give to captions: a place of their own and a style."""
        row, below = self.rows[n], self._below(n)
        points = self._span_points(row)
        points += 2.5 if row.bold > 0.9 and self.bold < 0.3 else 0.0
        points += 1.0 if row.marks[self.column] & Mark.COLON else 0.0
        points += 1.0 if row.gap and n else 0.0
        if below is not None and self.column < len(below.marks) and not (is_single_text(below) or below.gap > 1):
            points += 2.0 if below.marks[self.column] & ~row.marks[self.column] & Mark.INDENT else 0.0
        return points

    def with_signs(self) -> set[int]:
        """Return the places that more than their words shows to be captions, if they are any."""
        is_unlike_column = self._is_blank() or self.values >= PURE * len(self.filled)
        if is_unlike_column or (len(self.places) > 1 and (self._shared_word() or self._follow_totals())):
            return set(self.places)
        return {n for n in self.places if self._sign_points(n)}

    def _is_blank(self) -> bool:
        """Whether nearly all other rows are blank in this column."""
        return len(self.filled) <= (1 - PURE) * len(self.full)

    def _text_points(self, text: str) -> float:
        """Return the points for a text that does not fit among the column's other cells; negative if it does."""
        if self._is_blank():
            return 3.0
        if self.values >= PURE * len(self.filled):
            return 2.5
        if self.profile.has(text):
            return -4.0
        return -2.0 if self.profile.like(text) else 1.5

    def _pattern_points(self) -> float:
        """Return the points for the pattern: captions start at the first row and have rows below; records may not."""
        starts_first = self.places[0] == 0 or (self.rows[self.places[0]].gap > 0)
        is_broken = self.places[-1] == len(self.rows) - 1 or any(b == a + 1 for a, b in pairwise(self.places))
        points = (1.0 if starts_first else -1.5) - (1.0 if is_broken else 0.0)
        if len(self.places) > 1:
            points += 0.5 if starts_first and not is_broken else 0.0
            points += 1.0 if self._shared_word() else 0.0
            points += 2.5 if self._follow_totals() else 0.0
        return points

    def _follow_totals(self) -> bool:
        """Whether a total is above each of them but the first row."""
        later = [n for n in self.places if n]
        return bool(later) and all(_is_called_total(self.rows[n - 1]) for n in later)

    def _shared_word(self) -> bool:
        """Whether most of them share a word that no other text of the column has: North region, South region."""
        texts = {self._text(n).lower() for n in self.places}
        words = Counter(word for text in texts for word in set(text.split()))
        word, count = words.most_common(1)[0]
        others = {other for text in self.profile.texts for other in text.lower().split()}
        return count * 2 > len(texts) and count > 1 and word not in others


def _is_called_total(row: Row) -> bool:
    """Whether a row is called a total, and has no other text."""
    return row.kinds.count(_TEXT) == 1 and row_clarity([row.values[at] for at in row.filled[:2]])[0] >= Clarity.NAMED


def caption_choices(found_captions: Captions) -> list[Choice]:
    """Report the doubtful captions, which were kept as data; sure ones are in the artifact anyway."""
    doubtful = found_captions.doubtful
    evidence = {"data": len(doubtful), "group": len(found_captions.sure)}
    message = "row {} has a single text; kept as data, but it could be a caption of the rows below"
    remedy = '"reading": {"group_rows": "fill"}'
    reported = [
        Choice("group", "data", evidence, False, message.format(row), row, remedy) for row in doubtful[:_MOST_REPORTED]
    ]
    if (more := len(doubtful) - _MOST_REPORTED) > 0:
        first = doubtful[_MOST_REPORTED]
        rest = f"{more} more rows from row {first} on have a single text; kept as data"
        reported.append(Choice("group", "data", evidence, False, rest, first, remedy))
    return reported


NUMBERED = 3  # columns
_SAMPLE = 50  # rows that are compared
_FEW = 3  # rows of names in a table; with more, names are its values
_BRACKETED = re.compile(r"\s*[(\[]([0-9]{1,2}|[A-Za-z])[)\]]\s*")
_TYPE = re.compile(
    r"(?:n?(?:var)?char2?|string|str|text|u?int(?:eger|8|16|32|64)?|(?:big|small|tiny)int|float(?:32|64)?|double|real|"
    r"decimal|numeric|number|bool(?:ean)?|date|datetime|timestamp(?:tz)?|time|uuid|guid|money|object)"
    r"(?:\s?\([0-9, ]+\))?",
    re.IGNORECASE,
)
_IMPORT = re.compile(r'\{"ImportId":.*')  # below the questions in what Qualtrics exports
_EXPLAINED = re.compile(
    r".*\?|(?:e\.g\.|eg\.|example|z\.\s?b\.|beispiel|ex\.|ej\.|por ej).*|required|optional|mandatory",
    re.IGNORECASE | re.DOTALL,
)


def rows_about_columns(draft: Draft, hints: Hints, known: frozenset[int]) -> tuple[frozenset[int], list[Choice]]:
    """Find the rows that certainly number or describe the columns, and report those that may.

    `known`: numbers of rows about which more is known.
    """
    body = [at for at in draft.band.body if draft.rows[at].number not in known]
    if draft.declared or not draft.band.head or len(body) < 2:
        return frozenset(), []
    first, *rest = [draft.rows[at] for at in body]
    sample = rest[:_SAMPLE]
    if len(sample) > 1 and _all_like(sample[0], _IMPORT) and not _all_like(sample[1], _IMPORT):
        return frozenset({first.number, sample[0].number}), []
    if _all_like(first, _TYPE) and not any(_all_like(row, _TYPE) for row in sample):
        return frozenset({first.number}), []
    counts, is_sure = _numbers_columns(first, sample)
    if counts and is_sure:
        return frozenset({first.number}), []
    choices: list[Choice] = []
    if counts or (_all_like(first, _EXPLAINED) and not any(_all_like(row, _EXPLAINED) for row in sample)):
        what = "numbers" if counts else "explains"
        message = f"row {first.number} looks like one that {what} the columns; kept as data"
        evidence = {"cells": first.width}
        choices.append(Choice("record", "data", evidence, False, message, first.number, "delete the row"))
    return frozenset(), choices + other_names(_other_headers([draft.rows[at] for at in body], hints))


def _all_like(row: Row, form: re.Pattern[str]) -> bool:
    """Whether all cells, at least two, are texts of this form."""
    return len(row.filled) > 1 and all(
        isinstance(row.values[at], str) and form.fullmatch(str(row.values[at]).strip()) for at in row.filled
    )


_ALPHABETS = ("a", "ab", "abc", "а", "аб", "абв")  # noqa: RUF001


def _numbers_columns(row: Row, below: Sequence[Row]) -> tuple[bool, bool]:
    """Whether a row counts the columns, (1) (2) (3), 1 2 3 or A B 1 2, and whether that is sure.

    Without brackets it may be a record. It is none where the other rows have no number in such a column.
    """
    texts = [cell_text(row.values[at]) for at in row.filled]
    if len(texts) < NUMBERED:
        return False, False
    marks = [match[1].lower() for text in texts if (match := _BRACKETED.fullmatch(text)) is not None]
    if len(marks) == len(texts):
        is_numbering = marks in (_numbers(len(marks)), [chr(96 + n) for n in range(1, len(marks) + 1)])
        return is_numbering, is_numbering
    letters = next((n for n, text in enumerate(texts) if text.isdecimal()), len(texts))
    if not _counts_from(texts, letters):
        return False, False
    if any(_has_no_numbers(below, at) for at in row.filled[letters:]):
        return True, True
    counted_on = bool(below) and cell_text(below[0].values[below[0].filled[0]]) == str(len(texts) + 1)
    is_repeated = any(other.values == row.values for other in below)
    return len(texts) > NUMBERED and not counted_on and not is_repeated, False


def _numbers(count: int) -> list[str]:
    return [str(n) for n in range(1, count + 1)]


def _counts_from(texts: Sequence[str], letters: int) -> bool:
    """Whether the texts are so many letters of the alphabet, then at least two numbers from 1 on."""
    count = len(texts) - letters
    if count < 2 or texts[letters:] != _numbers(count):
        return False
    return not letters or "".join(texts[:letters]).casefold() in _ALPHABETS


def _has_no_numbers(rows: Sequence[Row], column: int) -> bool:
    """Whether several rows fill a column, and none with a number."""
    kinds = [row.kinds[column] for row in rows if column < len(row.kinds) and row.kinds[column]]
    return len(kinds) > 1 and CellKind.NUMBER not in kinds


def _other_headers(body: Sequence[Row], hints: Hints) -> list[int]:
    """Find rows below the first that name columns: Product, Supplier, Brand, unlike the rest of the body."""
    places = [n for n, row in enumerate(body[1:-1], 1) if _names_columns(row, body, hints)]
    places = [n for n in places if _is_unlike(body[n], [row for m, row in enumerate(body) if m != n])]
    return [body[n].number for n in places] if len(places) <= _FEW else []


def _names_columns(row: Row, body: Sequence[Row], hints: Hints) -> bool:
    """Whether all cells are texts, at least two, and name columns; of texts over values, half is enough."""
    cells = len(row.filled)
    if row.kinds.count(_TEXT) != cells or cells < 2:
        return False
    spelled = hints.spelled if hints.header(row.number) > 0 else None
    unnamed: list[int] = []
    for at in row.filled:
        if not _is_name(row, at) and not (spelled and spelled([row.values[at]])):
            unnamed.append(at)
            if len(unnamed) * 2 > cells:
                return False
    if not unnamed:
        return True
    over = {at for at in row.filled if _values_in(body, at)}
    return bool(over) and over.isdisjoint(unnamed)


def _is_name(row: Row, at: int) -> bool:
    marks = row.marks[at] & _NAME_MARKS
    return marks >= _NAME or marks == _CODE or row.values[at] in LONE_NAMES


def _values_in(body: Sequence[Row], at: int) -> bool:
    """Whether a column mostly has values other than texts."""
    kinds = [row.kinds[at] for row in body[:_SAMPLE] if at < len(row.kinds) and row.kinds[at]]
    return kinds.count(_TEXT) * 5 <= len(kinds)


def _is_unlike(row: Row, others: Sequence[Row]) -> bool:
    """Whether its texts differ from each other, occur nowhere else in their columns, and names are rare there."""
    texts = [str(row.values[at]).strip().casefold() for at in row.filled]
    if len(set(texts)) < len(texts):
        return False
    for at, text in zip(row.filled, texts, strict=True):
        with_text = [other for other in others if at < len(other.kinds) and other.kinds[at] == _TEXT]
        if any(str(other.values[at]).strip().casefold() == text for other in with_text):
            return False
        if sum(_is_name(other, at) for other in with_text) > COMMON_NAMES * len(with_text):
            return False
    return True
