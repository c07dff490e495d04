"""Step 1: decides which rows of a long sheet to keep for classification, at a few microseconds per row.

Rows after the limit are data unless they are clearly something else: labelled totals, repeated headers with the
declared names, rows with points from a rule, and captions in a table that already has some. None of that needs the
classifier, so it stays cheap up to the last row.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import compress, islice
from typing import Any, Final, NamedTuple, Protocol

from runner.engine.reading import Shown
from runner.engine.structure.facts import LONE_NAMES
from runner.engine.structure.tables import Choice, Clarity, LeftRow, Proof, RowKind, RowScores, Suspicion, Table
from runner.engine.structure.total_words import (
    ENDS,
    SHORT,
    SHORT_ENDS,
    STARTS,
    closes,
    in_column,
    opens,
    row_clarity,
)

FIRST = 100  # rows that are always kept
SHARE = 0.1  # share of a column's filled cells from which a code is usual
KNOWN = 2_000  # signatures remembered; a sheet with more has no usual rows
WIDE = 200  # columns by which rows are compared
EARLY = 40  # rows that may contain a header that is repeated later

Signature = tuple[Any, ...]  # the cells' types, or codes of what texts look like
Codes = tuple[int, ...]

_TEXT, _NUMBER = 1, 2
_CODES: Mapping[type, int] = {
    type(None): 0, str: 1, int: 2, Shown: 2, float: 2, bool: 3, datetime: 4, date: 4, time: 4, timedelta: 4,
}  # fmt: skip
_NUMERIC = frozenset("0123456789+-.($£€")


def codes_of(values: Sequence[Any]) -> Codes:
    """Return a code for each cell, from its type and a text's first character only."""
    codes = _CODES
    numeric = _NUMERIC
    return tuple(
        [
            (2 if value[:1] in numeric else 1) if value.__class__ is str else codes.get(value.__class__, 5)
            for value in values
        ]
    )


@dataclass(slots=True)
class SeenRow:
    """One form of the sheet's rows."""

    codes: Codes
    first_text: int  # index of the first text; -1: none
    count: int = 0
    plain: bool | None = None  # not judged yet


class Usual:
    """Learns the usual rows of a sheet and checks each next row."""

    def __init__(self) -> None:
        self._forms: dict[Signature, SeenRow] = {}
        self._typed = False  # cells are typed: no need to inspect texts
        self._allowed: list[set[int]] = []
        self._least = 0.0
        self._least_values = 0.0
        self._types: list[tuple[type, ...]] = []  # of the first rows
        self._early: dict[object, set[tuple[object, ...]]] = {}
        self._seen = 0
        self._learn_at = FIRST

    def is_unusual(self, values: Sequence[Any]) -> bool:
        """Whether the row must be kept; also learns from it."""
        self._seen += 1
        if len(values) > WIDE:
            values = values[:WIDE]
        if self._seen > self._learn_at:
            self._learn()
        signature = tuple(map(type, values)) if self._typed else codes_of(values)
        form = self._forms.get(signature)
        if form is None:
            form = self._add(signature)
        form.count += 1
        if form.plain is None:
            if self._seen <= FIRST:
                self._remember(values, form)
                return True
            form.plain = self._is_usual(form.codes)
        if not form.plain:
            return True
        if form.first_text < 0:
            return False
        text = values[form.first_text]
        if text in LONE_NAMES or _names_total(text):
            return True
        rows = self._early.get(text)
        return rows is not None and tuple(values) in rows

    def is_plain(self, values: Sequence[Any]) -> bool:
        """Fast check whether a row is certainly plain. If so it is learned; if not, call `is_unusual`."""
        if not self._typed or self._seen >= self._learn_at or len(values) > WIDE:
            return False
        form = self._forms.get(tuple(map(type, values)))
        if form is None or not form.plain:
            return False
        if form.first_text >= 0:
            text = values[form.first_text]
            if text in self._early or text in LONE_NAMES or _names_total(text):
                return False
        self._seen += 1
        form.count += 1
        return True

    def _add(self, signature: Signature) -> SeenRow:
        """Add a form of rows, and remember it as long as there are not too many; returns it."""
        codes = tuple([_CODES.get(cell_type, 5) for cell_type in signature]) if self._typed else signature
        form = SeenRow(codes, codes.index(_TEXT) if _TEXT in codes else -1)
        if len(self._forms) < KNOWN:
            self._forms[signature] = form
        return form

    def _remember(self, values: Sequence[Any], form: SeenRow) -> None:
        """Remember one of the first rows: its types, and its values if it may be a header."""
        self._types.append(tuple(map(type, values)))
        if self._seen <= EARLY and form.first_text >= 0:
            self._early.setdefault(values[form.first_text], set()).add(tuple(values))

    def _learn(self) -> None:
        """Recompute the usual forms whenever the sheet has doubled."""
        if self._types:
            self._choose_comparison()
        self._learn_at = self._seen * 2
        columns: list[dict[int, int]] = []
        rows = cells = values = 0
        for form in self._forms.values():
            form.plain = None
            rows += form.count
            while len(columns) < len(form.codes):
                columns.append({})
            for column, code in enumerate(form.codes):
                if code:
                    columns[column][code] = columns[column].get(code, 0) + form.count
                    cells += form.count
                    values += form.count * (code != _TEXT)
        self._allowed = [
            {code for code, count in codes.items() if count >= SHARE * sum(codes.values())} for codes in columns
        ]
        self._least = cells / rows / 2
        self._least_values = values / rows / 2

    def _choose_comparison(self) -> None:
        """If cells are typed, compare rows by types only, at a third of the cost."""
        texts = sum(types.count(str) for types in self._types)
        cells = sum(len(types) - types.count(type(None)) for types in self._types)
        if texts * 4 <= cells * 3:
            self._typed = True
            self._forms.clear()
            for types in self._types:
                form = self._forms.get(types) or self._add(types)
                form.count += 1
        self._types = []

    def _is_usual(self, codes: Codes) -> bool:
        """Whether rows of this form have what is usual in each column, and no less cells and values than half a row."""
        if len(codes) > len(self._allowed):
            return False
        filled = values = 0
        for code, allowed in zip(codes, self._allowed, strict=False):
            if code:
                if code not in allowed:
                    return False
                filled += 1
                values += code != _TEXT
        return filled >= self._least and values >= self._least_values


def _names_total(text: str) -> bool:
    """Whether a text starts or ends like a total; cheap for nearly every other text."""
    return ((text[:3] in STARTS or text[:1] in SHORT) and opens(text)) or (
        (text[-3:] in ENDS or text[-2:] in SHORT_ENDS) and closes(text)
    )


_FIRST: Final = 3  # filled cells that may have the label of a total
_LABELS: Final = 6  # columns that may have it
_GAPS: Final = 0.25  # the most blanks of a column in which a blank means something: a total for every three records
_GAP_KINDS: Final = 1_000  # ways to lack something: limits memory
_SURE: Final = 4.0  # points from which a label is sure, as many as declared names have
_CAPTIONS: Final = 3  # captions from which a table is taken to have more
_NAMED_ROWS: Final = 20  # rows of names that are reported
_MOST: Final = 500_000  # rows left out: limits memory, far above real sheets


class Headings(Protocol):
    """Recognizes rows with declared names."""

    def __call__(self, number: int, values: Sequence[object], /) -> Mapping[str, float]: ...

    def spelled(self, values: Sequence[object], /) -> int:
        """Return how many of these values are declared names."""
        ...

    def key(self, name: str, /) -> bool:
        """Whether this is the name of a required or unique field."""
        ...

    def absent(self, columns: Sequence[Sequence[object]]) -> bool:
        """Fast check whether no row of these columns has declared names."""
        ...


class Gap(NamedTuple):
    """How a row lacks what nearly all rows around it have."""

    filled: tuple[bool, ...]  # for each column, whether it has a value
    clarity: Clarity  # how clearly it is called a total


class Late:
    """Checks the rows that are only counted, and finds those that are not data."""

    def __init__(self, headings: Headings | None, ask: RowScores | None) -> None:
        self._headings = headings
        self._ask = ask  # rules, which see every row
        self._totals: set[int] = set()
        self._suspected: dict[int, tuple[int, int]] = {}  # labelled as totals: cells, and those that are no numbers
        self._asides: set[int] = set()
        self._repeated: dict[int, Sequence[object]] = {}  # rows of declared names
        self._lone: dict[int, int] = {}  # rows with a single text -> its column
        self._gaps: dict[Gap, array[int]] = {}  # rows that lack what nearly all rows around them have

    def scan(self, numbers: Sequence[int], columns: Sequence[Sequence[object]]) -> None:
        """Check rows by column, and row by row only if a column has something to check."""
        self._scan_lone(numbers, columns)
        self._scan_gaps(numbers, columns)
        spelled = self._headings is not None and not self._headings.absent(columns)
        if self._ask is None and not spelled and not any(map(in_column, columns[:_LABELS])):
            return
        for number, values in zip(numbers, zip(*columns, strict=True), strict=True):
            scores = self._ask(number, values) if self._ask is not None else {}
            if spelled and self._headings is not None and not scores:
                scores = self._headings(number, values)
            self.row(number, values, scores)

    def row(self, number: int, values: Sequence[object], scores: Mapping[str, float]) -> None:
        """Check one row with its points from rules and declared names."""
        best = max(scores, key=scores.__getitem__, default="data")
        if len(self._totals) + len(self._suspected) + len(self._asides) + len(self._repeated) > _MOST:
            return
        if best != "data" and scores[best] - scores.get("data", 0.0) >= _SURE:
            if best == "header":
                self._repeated[number] = values
            else:
                (self._totals if best == "total" else self._asides).add(number)
        elif not scores and row_clarity(values, _FIRST)[0] is Clarity.PLAINLY:
            filled = [value for value in values if value is not None]
            self._suspected[number] = len(filled), sum(1 for value in filled if codes_of([value]) != (_NUMBER,))

    def _scan_lone(self, numbers: Sequence[int], columns: Sequence[Sequence[object]]) -> None:
        """Note rows with a single text; two columns without blanks rule them out."""
        if len(self._lone) > _MOST or sum(1 for _ in islice((c for c in columns if None not in c), 2)) > 1:
            return
        for number, values in zip(numbers, zip(*columns, strict=True), strict=True):
            self.note_lone(number, values)

    def _scan_gaps(self, numbers: Sequence[int], columns: Sequence[Sequence[object]]) -> None:
        """Note rows with a blank in one of the first columns, where few rows have one."""
        places: set[int] = set()
        for column in columns[:_LABELS]:
            if 0 < column.count(None) <= _GAPS * len(column):
                places.update([at for at, value in enumerate(column) if value is None])
        if not places:
            return
        filled = list(zip(*([value is not None for value in column] for column in columns), strict=True))
        for at in places:
            self._note_gap(numbers[at], filled[at], [column[at] for column in columns[:_LABELS]])

    def note_gap(self, number: int, values: Sequence[object]) -> None:
        """Note which columns a row fills, and how clearly it is called a total."""
        self._note_gap(number, tuple([value is not None for value in values]), values)

    def _note_gap(self, number: int, filled: tuple[bool, ...], labels: Sequence[object]) -> None:
        """Note a row; `labels`: its first values."""
        is_named = any(isinstance(value, str) and _names_total(value) for value in labels)
        gap = Gap(filled, row_clarity(labels, _FIRST)[0] if is_named else Clarity.NOTHING)
        if gap in self._gaps or len(self._gaps) < _GAP_KINDS:
            self._gaps.setdefault(gap, array("q")).append(number)

    def note_lone(self, number: int, values: Sequence[object]) -> None:
        """Note the row if its only value is a text."""
        if values.count(None) == len(values) - 1:
            at = next(n for n, value in enumerate(values) if value is not None)
            if isinstance(values[at], str):
                self._lone[number] = at

    def leave_out(self, table: Table, captions: Collection[int], totals: Mapping[tuple[int, ...], Suspicion]) -> Table:
        """Return a table without the rows found here, and with those suspected that may be totals.

        `captions`: the columns of its known captions, `totals`: why rows that may be totals are suspected, by the
        columns that they fill.
        """
        data = table.data_range
        if data is None:
            return table
        inside = range(data.top, data.bottom + 1)
        away: dict[int, LeftRow] = {}
        if len(table.groups) >= _CAPTIONS and captions:  # a table divided by captions has more of them
            away = {n: LeftRow(RowKind.GROUP, Proof.HEADS) for n, at in self._lone.items() if at in captions}
        away |= dict.fromkeys(self._asides, LeftRow(RowKind.NOTE, Proof.ASKED))
        named = {n: values for n, values in self._repeated.items() if n in inside and n not in self._totals}
        other = [n for n, values in named.items() if not _is_header_of(table, values)]
        away |= dict.fromkeys(named, LeftRow(RowKind.REPEATED_HEADER, Proof.REPEATS))
        away |= dict.fromkeys(other, LeftRow(RowKind.REPEATED_HEADER, Proof.REPORTED))
        away |= dict.fromkeys(self._totals, LeftRow(RowKind.TOTAL, Proof.ASKED))
        suspected = {
            n: Suspicion(Clarity.PLAINLY, full=others > 1 and cells >= len(table.columns))
            for n, (cells, others) in self._suspected.items()
            if n in inside
        }
        alike = {
            n: Suspicion(clarity, totals[filled].full, totals[filled].lacks, named=clarity > Clarity.NOTHING)
            for (has_value, clarity), numbers in self._gaps.items()
            if (filled := tuple(compress(range(len(has_value)), has_value))) in totals
            for n in numbers
            if n in inside
        }
        return replace(
            table,
            left_out={**table.left_out, **{n: row for n, row in away.items() if n in inside}},
            suspected=alike | suspected | dict(table.suspected),
            choices=(*table.choices, *other_names(other)),
        )


def _is_header_of(table: Table, values: Sequence[object]) -> bool:
    """Whether the values name the same columns as the table's header."""
    texts = {at: " ".join(value.split()) for at, value in enumerate(values, 1) if isinstance(value, str)}
    return all(texts.get(column.index, part) == part for column in table.columns for part in column.parts[-1:])


def other_names(rows: Sequence[int]) -> list[Choice]:
    """Report rows inside a table that name columns: those below may have other columns than the table."""
    message = "row {} looks like a header of other columns than the table's: the rows below it may be in the wrong ones"
    remedy = "leave a blank row between two tables, or put them on two sheets"
    return [
        Choice("record", "one table", {"rows": len(rows)}, False, message.format(row), row, remedy)
        for row in rows[:_NAMED_ROWS]
    ]
