"""Decides what the rows between and below a table's records are: more records, remarks, or in doubt.

A row is a record until it is proven to be none. The proof of a remark is a text that opens as remarks do, or reads as
prose, *and* does not fit its column: a sentence among codes, numbers or dates. A row that fits its columns is a record,
whatever the classifier says. A row that is neither stays out without a proof, which the ledger reports as a warning.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from runner.engine.structure.bands import Draft
from runner.engine.structure.facts import CellKind, Mark, Profile, Row, text_shape
from runner.engine.structure.header_rows import Hints, columns
from runner.engine.structure.tables import Choice, Label, LeftRow, Proof, RowKind
from runner.engine.structure.total_words import row_clarity

SAMPLE = 100  # records that a row is compared with
BELOW = 50  # rows below the last record that are judged
NEAR = 6  # title rows further away do not belong to the table
ENDS = 3  # so many rows that are no records end a table
CLOSE = 1  # blank rows that a list may have before its last entries
USUAL = 0.2  # share of a column's cells from which a kind is usual in it
PROSE = 5  # words from which a text can be prose
LONG = 2.0  # prose is longer than a column's longest text by this factor
SELDOM = 4  # full records for each of a single cell, if these are unusual
ALWAYS, FULL = 0.9, 3  # share of the records that fill a column, and columns that full records fill
SMALL = 3  # letters of words that names have in small letters, too
_TEXT, _FILLER, _DATE = int(CellKind.TEXT), int(CellKind.FILLER), int(CellKind.DATE)
_PROSE = int(Mark.NOTE | Mark.FOOTNOTE | Mark.SENTENCE | Mark.COLON)
_ENDING = int(Mark.FOOTNOTE | Mark.COLON)

# How remarks open, in the languages of most senders: sources, signatures, pages, ends of reports, footnotes.
_OPENS = re.compile(
    r"\s*(?:[\W_]*$|#|//|--|==|%+\s|;|!\s|\(\d+ \w+\)\s*$|[*†‡¹²³]+\s*\w|\(?\d\)\s|"
    r"(?:(?:foot)?notes?|sources?|remarks?|comments?|legend|disclaimer|n\.?b\.?|p\.?s\.?|quellen?|anmerkung(?:en)?|hinweise?|"
    r"bemerkung(?:en)?|legende|stand|remarques?|nota|notas|fuentes?|note|fonte|bron|opmerking(?:en)?|uwag[ai]|"
    r"źródło|pozn(?:ámk[ay])?|источник|примечани[ея])\s*(?:[:.]|$)|"
    r"(?:prepared|printed|created|generated|exported|compiled|approved|signed|checked|reviewed|verified|authorised|"
    r"authorized|issued|reported|submitted|updated)\s(?:by|on|at|from|:)|"
    r"(?:erstellt|gedruckt|geprüft|freigegeben|exportiert|unterschrift|imprimé|établi|généré|creado|impreso|elaborado|"
    r"stampato|creato|gegenereerd|afgedrukt|wydrukowano|sporządził\w*|vytvořil\w*|vytištěno)\b|"
    r"(?:page|seite|pagina|página|strona|strana|sida|side|sivu|стр\.?|страница|p\.)\s*\d+\b|"
    r"(?:continued|fortsetzung|suite)\b|end of (?:report|list|file|document|data|table|section)\b|"
    r"(?:eof|end|ende|fin|trailer)\W*$|(?:records?|rows|count|datensätze|zeilen|anzahl|lignes|filas|righe)\s*[:=]\s*\d+\s*$|"
    r"(?:all|alle|tous|todos|tutti)\s\w+\s(?:in|are|sind|en|sont|son|ohne|excl)\b|"
    r"(?:as of|per|stand)\s+\d|(?:copyright|confidential|vertraulich|signature)\b|©|https?://|www\.)",
    re.IGNORECASE,
).match
_LETTERS = re.compile(r"[^\W\d_]+")
_DAY = re.compile(r"\s*\d{1,4}([./-])\d{1,2}\1\d{2,4}\s*").fullmatch
_DIGITS = re.compile(r"\d+")


class RowVerdict(Enum):
    """What a row between or below the records is."""

    RECORD = 1
    REMARK = 2
    DOUBT = 3


class Fit(IntEnum):
    """How well a cell fits among the others of its column."""

    NOT = 0
    UNKNOWN = 1  # nothing to compare with
    LOOSELY = 2
    WELL = 3


@dataclass(slots=True)
class _RecordColumn:
    """The cells of one column of the records."""

    kinds: Counter[int]
    profile: Profile

    def fit(self, row: Row, at: int) -> Fit:
        """Judge how well a row's cell fits into this column, the sheet's `at` (0-based)."""
        kind, count = row.kinds[at], self.kinds.total()
        if not count:
            return Fit.UNKNOWN
        if kind == _FILLER:
            return Fit.WELL
        usual = self.kinds[kind] >= USUAL * count
        if kind != _TEXT:
            return Fit.WELL if usual else Fit.LOOSELY if self.kinds[_TEXT] else Fit.NOT
        if not self.kinds[_TEXT]:
            return Fit.NOT
        text = " ".join(str(row.values[at]).split())
        if self.profile.like(text):
            return Fit.WELL if usual else Fit.LOOSELY
        if self.profile.words[1] >= PROSE:
            return Fit.LOOSELY if usual else Fit.NOT
        is_short = len(text) <= 1.5 * self.profile.lengths[1] + 4 and row.words[at] <= self.profile.words[1] + 2
        return Fit.LOOSELY if usual and is_short else Fit.NOT

    def is_of_one_form(self, text: str) -> bool:
        """Whether all texts have as many words, written alike, and so has this one: a first and a last name, say."""
        shape, (fewest, most) = text_shape(text), self.profile.words
        return fewest == most == shape.words > 1 and {style for style, _, _ in self.profile.styles} == {shape.style}

    def is_sentence(self, row: Row, at: int) -> bool:
        """Whether a text ends as a sentence does, and its words are written unlike the others of its column."""
        styles = {style for style, _, _ in self.profile.styles}
        return bool(row.marks[at] & Mark.SENTENCE) and text_shape(str(row.values[at])).style not in styles

    def is_beyond(self, row: Row, at: int) -> bool:
        """Whether a text reads as prose among short texts or values."""
        if not self.kinds[_TEXT] or self.kinds[_TEXT] < USUAL * self.kinds.total():
            return row.words[at] > 2
        is_long = row.lengths[at] > LONG * self.profile.lengths[1]
        return is_long and row.words[at] >= PROSE and row.words[at] > self.profile.words[1]


class RecordRows:
    """The records of a draft, as rows are compared with them."""

    def __init__(self, draft: Draft, hints: Hints) -> None:
        body = draft.band.body
        sample = body if len(body) <= SAMPLE else [*body[: SAMPLE // 2], *body[-SAMPLE // 2 :]]
        wide = [draft.rows[at] for at in sample if draft.rows[at].width > 1]
        self._rows = wide if len(wide) * 2 >= len(sample) else [draft.rows[at] for at in sample]
        self._single_cells = {row.filled[0] for row in (draft.rows[at] for at in sample) if row.width == 1}
        self._left, self._right = draft.left, draft.right
        head = [draft.rows[at] for at in draft.band.head]
        self._keys = hints.keys(columns(head, draft.left, draft.right)) if head else frozenset()
        self._columns: dict[int, _RecordColumn] = {}

    def _column(self, at: int) -> _RecordColumn:
        """Return a column of the records, which is described when it is first used."""
        if (column := self._columns.get(at)) is None:
            filled = [row for row in self._rows if at < len(row.kinds) and row.kinds[at]]
            kinds = Counter(row.kinds[at] for row in filled if row.kinds[at] != _FILLER)
            profile = Profile(str(row.values[at]) for row in filled if row.kinds[at] == _TEXT)
            column = self._columns[at] = _RecordColumn(kinds, profile)
        return column

    def verdict(self, row: Row, above: RowVerdict | None = None) -> RowVerdict:
        """Judge a row between or below the records; `above`: what the row right above it is, if it is no record."""
        inside = [at for at in row.filled if self._left <= at <= self._right]
        if not inside:
            return RowVerdict.REMARK if row.width == 1 else RowVerdict.DOUBT
        fits = {at: self._column(at).fit(row, at) for at in inside}
        if row.width == 1:
            return self._judge_single_cell(row, inside[0], fits[inside[0]], above)
        return self._judge_cells(row, list(fits.values()), above)

    def fits(self, row: Row) -> bool:
        """Whether the row fills half of the columns, and all of its cells fit well."""
        inside = [at for at in row.filled if self._left <= at <= self._right]
        is_wide = len(inside) == row.width > 1 and row.width * 2 >= self._right - self._left + 1
        return is_wide and all(self._column(at).fit(row, at) is Fit.WELL for at in inside)

    def is_comment(self, row: Row) -> bool:
        """Whether a row among the records is a single text that opens as remarks do and does not fit well."""
        at = row.filled[0]
        is_single_text = row.width == 1 and self._left <= at <= self._right and row.kinds[at] == _TEXT
        return is_single_text and _OPENS(str(row.values[at])) is not None and self._column(at).fit(row, at) < Fit.WELL

    def is_odd(self, row: Row, *, between: bool) -> bool:
        """Whether the only cell of a row does not fit well, or could as well be a caption or a closing word."""
        at = row.filled[0]
        if not self._left <= at <= self._right:
            return True
        column, text = self._column(at), str(row.values[at])
        fit, has_digits = column.fit(row, at), _DIGITS.search(text) is not None
        if row.kinds[at] != _TEXT:
            return fit < Fit.WELL or (_DAY(text) is not None and not column.kinds[_DATE])
        is_name = not has_digits and _is_capitalised(text) and not _OPENS(text)
        if fit < Fit.WELL and (fit is Fit.NOT or not is_name):
            return True
        is_like_others = has_digits or column.profile.has(text) or (not row.gap and column.is_of_one_form(text))
        return not is_like_others and (between or row.gap > 0)

    def _judge_single_cell(self, row: Row, at: int, fit: Fit, above: RowVerdict | None) -> RowVerdict:
        """Judge a row whose only cell is in column `at`; `above`: what the row right above is, if it is no record."""
        text = str(row.values[at])
        opens = row.kinds[at] == _TEXT and _OPENS(text) is not None
        is_far = row.gap > CLOSE or above is RowVerdict.REMARK
        if fit is Fit.WELL:
            return RowVerdict.DOUBT if opens or is_far or above is not None else RowVerdict.RECORD
        is_title = fit is Fit.LOOSELY and _is_word(text) and not row.gap
        if is_far or (opens and not is_title):
            return RowVerdict.REMARK
        if fit is Fit.LOOSELY:
            return self._judge_loosely_fitting_cell(row, at, above, opens=opens)
        return self._judge_cell_unlike_others(row, at)

    def _judge_loosely_fitting_cell(self, row: Row, at: int, above: RowVerdict | None, *, opens: bool) -> RowVerdict:
        """Judge a single cell that could be of its column: two signs make it a remark, one leaves it in doubt.

        `opens`: it opens as remarks do.
        """
        signs = opens or bool(row.marks[at] & _ENDING) + self._column(at).is_sentence(row, at)
        if signs > 1:
            return RowVerdict.REMARK
        return RowVerdict.DOUBT if signs or row.gap or above is not None else RowVerdict.RECORD

    def _judge_cell_unlike_others(self, row: Row, at: int) -> RowVerdict:
        """Judge a single cell that is unlike the others of its column: prose is a remark, all else is in doubt."""
        column = self._column(at)
        may_be_name = column.kinds[_TEXT] and not row.gap and _is_capitalised(str(row.values[at]))
        if row.kinds[at] != _TEXT or may_be_name or at in self._single_cells:
            return RowVerdict.DOUBT
        is_prose = column.is_beyond(row, at) or (row.marks[at] & _PROSE and at not in self._keys)
        return RowVerdict.REMARK if is_prose else RowVerdict.DOUBT

    def _judge_cells(self, row: Row, fits: Sequence[Fit], above: RowVerdict | None) -> RowVerdict:
        """Judge a row of several cells by how well each fits; `above`: what the row right above is, if no record."""
        first = row.filled[0]
        opens = row.kinds[first] == _TEXT and _OPENS(str(row.values[first])) is not None
        if Fit.NOT not in fits and Fit.WELL in fits and not opens:
            is_good = all(fit is Fit.WELL for fit in fits) or (not row.gap and above is None)
            return RowVerdict.RECORD if is_good else RowVerdict.DOUBT
        if opens and max(fits) < Fit.WELL:
            return RowVerdict.REMARK
        fitting = sum(fit >= Fit.LOOSELY for fit in fits)
        is_close = not row.gap and not opens and above is None
        return RowVerdict.RECORD if is_close and fitting * 2 >= row.width else RowVerdict.DOUBT


def _is_word(text: str) -> bool:
    """Whether a text is but a word: Legend and Notes are titles of books, too."""
    return text.strip().isalpha()


def _is_capitalised(text: str) -> bool:
    """Whether most of the longer words are written as those of names are."""
    words = [word for word in _LETTERS.findall(text) if len(word) > SMALL]
    capitals = sum(1 for word in words if word[0].isupper())
    return capitals * 2 > len(words)


def decide_remarks(draft: Draft, others: Sequence[Draft], hints: Hints) -> None:
    """Decide which rows around and between a draft's records are records, too.

    Changes the draft's labels, body and `left_out`, and gives titles to the drafts below it. `others`: the other drafts
    of the sheet.
    """
    if draft.declared or not draft.band.body:
        return
    _move_titles_below(draft, others)
    _leave_out_repeated_titles(draft)
    if hints.notes != "keep":
        _judge_last_block(draft, hints)
    records = RecordRows(draft, hints)
    _leave_out_titles(draft, records)
    comments = _find_comments(draft, records, hints)
    if len(comments) < len(draft.band.body):
        draft.band.body = [at for at in draft.band.body if at not in comments]
    verdicts_above: list[RowVerdict] = []  # on the rows right above that are no records
    for at in (*_rows_between(draft), *_rows_below(draft, others)):
        row = draft.rows[at]
        verdicts_above = verdicts_above if draft.rows[at - 1].number in draft.left_out else []
        above = verdicts_above[-1] if verdicts_above and not row.gap else None
        verdict = RowVerdict.REMARK if at in comments else records.verdict(row, above)
        is_record = hints.notes == "keep" or (verdict is RowVerdict.RECORD and len(verdicts_above) < ENDS)
        if is_record and row.number not in hints.ruled:
            draft.labels[at] = Label.DATA
            draft.band.body.append(at)
        else:
            draft.left_out[row.number] = LeftRow(RowKind.NOTE, _proof(verdict, row, hints))
            verdicts_above.append(verdict)
    draft.band.body.sort()


def _leave_out_titles(draft: Draft, records: RecordRows) -> None:
    """Leave out the rows above the header; those that are like records lack the proof."""
    for at in _rows_above(draft):
        proof = None if records.fits(draft.rows[at]) else Proof.ABOVE
        draft.left_out[draft.rows[at].number] = LeftRow(RowKind.TITLE, proof)


def _find_comments(draft: Draft, records: RecordRows, hints: Hints) -> set[int]:
    """Return the rows of the body that are remarks among the records."""
    if hints.notes == "keep":
        return set()
    comments = [at for at in draft.band.body if records.is_comment(draft.rows[at])]
    return {at for at in comments if draft.rows[at].number not in hints.ruled and not _goes_on(draft, at)}


def _proof(verdict: RowVerdict, row: Row, hints: Hints) -> Proof | None:
    """Return why a row that is no record is left out; None if nothing proves it."""
    if verdict is RowVerdict.REMARK:
        return Proof.REMARK
    return Proof.ASKED if row.number in hints.ruled or hints.notes == "drop" else None


def _goes_on(draft: Draft, at: int) -> bool:
    """Whether a row of a single cell is right below another of the same column, among several columns."""
    above, row = draft.rows[at - 1], draft.rows[at]
    is_listed = at - 1 in draft.band.body and above.filled == row.filled and above.kinds == row.kinds
    return bool(is_listed and not row.gap and draft.left < draft.right and not _OPENS(str(above.values[row.filled[0]])))


def single_cell_records(draft: Draft, hints: Hints, known: frozenset[int]) -> list[Choice]:
    """Report records of a single cell among full ones that may be none; `known`: rows of which more is known."""
    body = [at for at in draft.band.body if draft.rows[at].number not in known]
    single = [n for n, at in enumerate(body) if draft.rows[at].width == 1]
    asked = hints.captions == "fill"  # a caption that is missed would be wrong for all rows below it
    if draft.declared or hints.notes == "keep" or not single:
        return []
    if not asked and len(single) * SELDOM > len(body) - len(single):
        return []
    full = [draft.rows[at] for at in body if draft.rows[at].width > 1][:SAMPLE]
    filled_by_column = Counter(at for row in full for at in row.filled)
    if sum(count >= ALWAYS * len(full) for count in filled_by_column.values()) < (2 if asked else FULL):
        return []
    records = RecordRows(draft, hints)
    last = max(n for n, at in enumerate(body) if draft.rows[at].width > 1)
    rows = [draft.rows[body[n]] for n in single if n and records.is_odd(draft.rows[body[n]], between=n < last)]
    message = "row {} has a single cell among full records and may be none; kept as data"
    remedy = 'delete it if it is no record; if it is one, "reading": {"note_rows": "keep"}'
    return [Choice("record", "data", {"rows": 1}, False, message.format(r.number), r.number, remedy) for r in rows]


def _leave_out_repeated_titles(draft: Draft) -> None:
    """Leave out rows that repeat what is above the header on each page; only their digits may differ."""
    titles = {_without_digits(draft.rows[at]) for at in _rows_above(draft) if draft.rows[at].width > 1}
    again = [at for at in draft.band.body if titles and _without_digits(draft.rows[at]) in titles]
    if again and len(again) < len(draft.band.body):
        draft.band.body = [at for at in draft.band.body if at not in again]
        draft.band.repeated_headers += again


def _without_digits(row: Row) -> tuple[tuple[int, str], ...]:
    return tuple((at, _DIGITS.sub("0", str(row.values[at]))) for at in row.filled)


def _move_titles_below(draft: Draft, others: Sequence[Draft]) -> None:
    """Move single texts right above the next table, below a blank row, from the body to that table's titles."""
    tops = {other.rows[other.band.all[0]].number: other for other in others if other.band.head}
    last = draft.band.body[-1]
    if last + 1 == len(draft.rows) or (below := tops.get(draft.rows[last + 1].number)) is None:
        return
    start = _block_start(draft)
    block = draft.band.body[start:]
    if start and not draft.rows[last + 1].gap and all(draft.rows[at].width == 1 for at in block):
        draft.band.body = draft.band.body[:start]
        below.left_out |= {draft.rows[at].number: LeftRow(RowKind.TITLE, Proof.ABOVE) for at in block}


def _block_start(draft: Draft) -> int:
    """Return the place in the body of the first row below its last blank row; 0 if it has none."""
    body = draft.band.body
    return next((n for n in range(len(body) - 1, 0, -1) if draft.rows[body[n]].gap), 0)


def _judge_last_block(draft: Draft, hints: Hints) -> None:
    """Judge the rows below the last blank row of the body, if there are many above: all of them may be no records."""
    start = _block_start(draft)
    block = draft.band.body[start:]
    if not start or len(block) > 2 * start or draft.is_fixed:
        return
    records = RecordRows(replace(draft, band=replace(draft.band, body=draft.band.body[:start])), hints)
    verdicts: list[RowVerdict] = []
    for at in block:
        row = draft.rows[at]
        if row.number in hints.ruled or row_clarity(row.values)[0] or _has_only_numbers(row):
            return  # totals.py decides
        verdicts.append(records.verdict(row, verdicts[-1] if verdicts else None))
    if RowVerdict.RECORD in verdicts:
        return
    if RowVerdict.DOUBT not in verdicts:
        draft.left_out |= {draft.rows[at].number: LeftRow(RowKind.NOTE, Proof.REMARK) for at in block}
        return
    first, last = draft.rows[block[0]].number, draft.rows[block[-1]].number
    rows = f"row {first} is" if first == last else f"rows {first} to {last} are"
    message = f"{rows} below a blank row and unlike the rows above; kept as data"
    remedy = "delete what is no record, or put it on another sheet"
    draft.choices.append(Choice("record", "data", {"rows": len(block)}, False, message, first, remedy))


def _has_only_numbers(row: Row) -> bool:
    return all(row.kinds[at] == CellKind.NUMBER for at in row.filled)


def _rows_above(draft: Draft) -> Iterator[int]:
    """Yield the rows right above that name the table, from the nearest one up."""
    top = draft.band.all[0]
    for at in range(top - 1, -1 if draft.is_fixed else max(-1, top - 1 - NEAR), -1):
        if draft.labels[at] is not Label.TITLE:
            return
        yield at


def _rows_between(draft: Draft) -> list[int]:
    """Return the rows inside the table that are not part of it."""
    band = draft.band
    return sorted(set(range(band.all[0], band.all[-1] + 1)).difference(band.all, band.repeated_headers))


def _rows_below(draft: Draft, others: Sequence[Draft]) -> Iterator[int]:
    """Yield the rows below the last record down to the next table with its titles."""
    last = draft.band.all[-1]
    overlapping = [other for other in others if other.left <= draft.right and draft.left <= other.right]
    numbers = {other.rows[at].number for other in overlapping for at in (*other.band.all, *other.band.repeated_headers)}
    stop = next((at for at in range(last + 1, len(draft.rows)) if draft.rows[at].number in numbers), len(draft.rows))
    if stop < len(draft.rows):
        stop = _first_title(draft, stop, last)
    for at in range(last + 1, min(stop, last + 1 + BELOW)):
        row = draft.rows[at]
        if draft.labels[at] is Label.HEADER or (row.gap > CLOSE and row.width > 1):
            return
        yield at


def _first_title(draft: Draft, head: int, last: int) -> int:
    """Return the first of the rows above the next table that name it: those right above it, and titles."""
    at = head
    while at - 1 > last and (not draft.rows[at].gap or draft.labels[at - 1] is Label.TITLE):
        at -= 1
    return at
