"""Reports rows and cells of a table that do not keep its shape: values that moved, lines that continue a record.

Theory of operation. The first rows of a table show what kinds of values its columns hold. A row that lacks its last
cells is everyday; it is suspect only if its values contradict their columns and fit those to the right. A row that
lacks its first cell is suspect if it also lacks every value that identifies a record. All of that is looked up only in
rows with a blank first or last cell, so a table that keeps its shape costs one search per column and block.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final, Protocol

from runner.engine.common.findings import Findings
from runner.engine.reading.books import MINUS
from runner.engine.reading.kinds import LEAST_ALIKE, LEAST_VALUES, MONTH, Class, Kinds, class_of, contradicts
from runner.engine.reading.spool import SpooledSheet
from runner.engine.tables.filling import DITTO, JOIN, QUOTES
from runner.engine.tables.sources import SourceTable
from runner.engine.values.words import NOTHING

_SAMPLE_ROWS: Final = 400  # rows that show what kinds of values the columns hold
_MOST_LINES: Final = 0.8  # share of the lines below records that one line must have to name columns
_MOST_REPORTED: Final = 1_000  # rows reported one by one
_MOST_EXAMINED: Final = 20_000  # rows with a blank last cell that are examined
_COMPARED_ROWS: Final = 50  # rows that a first row is compared with
_COMMENT = re.compile(r"\s*(#(?=\s|[^\W\d_]{3})|%(?=\s|[^\W\d_])|//|--(?=\s)|;+|!(?=\s)|REM\b)\s*\S")
_PROSE_CHARACTERS: Final = 60  # characters from which a text is prose
_SIGN_IN_PROSE = re.compile(r"[\"'\t\n;|\\]")
_MOST_RECORD_TYPES: Final = 4  # kinds of rows that one file may mix
# Classes of one column that only rows of different kinds have.
_UNLIKE_CLASSES: Final = ({"number", "word"}, {"code", "word"}, {"date", "word"}, {"number", "date"})
_MOST_SHIFTS: Final = 3  # cells that may be missing
_MAX_LINES: Final = 50_000
# What a spreadsheet makes of the codes 1-2, 10/12 and MAR-1 before it saves them as text.
_MADE_DATE = re.compile(rf"\d{{1,2}}-{MONTH}|{MONTH}-\d{{1,2}}", re.IGNORECASE)
_MAY_BE_MADE_DATE = re.compile(r"-(?:[a-zA-Zä]{3}|(?<=[a-zA-Zä]-)\d)")  # starts with a literal, so the search is quick
_SCORE = re.compile(r"(\d{1,3}):(\d{1,3})")
# Share of codes from which a column has codes: among phrases, and among single words, which may be codes, too.
_CODES_IN_PHRASES: Final = 0.5
_CODES_IN_WORDS: Final = 0.25
_TYPED_ROWS: Final = 10_000  # rows of a table that somebody may have typed, with ditto marks


class DeclaredHeadings(Protocol):
    """The names of the manifest's fields, as `DeclaredNames` knows them."""

    def spelled(self, values: Sequence[object]) -> int:
        """Return how many of these values are declared names."""
        ...


def report_irregular(
    table: SourceTable, sheet: SpooledSheet, names: DeclaredHeadings, findings: Findings, *, is_text: bool
) -> None:
    """Report rows, cells and headers that do not keep the shape of their table; `is_text`: the file has only texts.

    Proven ditto marks are also noted on the table.
    """
    if not table.has_data:
        return
    _report_struck_text(table, sheet, findings)
    _report_shared_headers(table, sheet, findings)
    _report_signs_ignored(table, sheet, findings)
    _report_cut_headers(table, findings)
    sample = _sample_rows(table, sheet)
    if len(sample) >= LEAST_VALUES:
        search = _IrregularRows(table, sample, names, is_text=is_text)
        for numbers, columns in _chunks_with_left_out(table, sheet):
            search.add(numbers, columns)
        search.report(findings)


def _is_nothing(value: object) -> bool:
    """Whether a cell has a text that means "no value": n/a, -."""
    return value.__class__ is str and str(value).strip().casefold() in NOTHING


def _chunks_with_left_out(table: SourceTable, sheet: SpooledSheet) -> Iterator[tuple[list[int], list[list[Any]]]]:
    """Yield the rows of a table in chunks, those that are left out included: their numbers, and their values by column.

    Of a sheet that is too long to spool, only the first rows.
    """
    bottom = table.bottom if sheet.complete else min(table.bottom, table.top + _TYPED_ROWS)
    for block in sheet.some_blocks(lambda e: e.first <= bottom and table.top <= e.last):
        cut = block.within(table.top, bottom)
        width = len(cut.columns)
        blank = [None] * len(cut.numbers)
        yield cut.numbers, [cut.columns[c.index - 1] if c.index <= width else blank for c in table.columns]


def _sample_rows(table: SourceTable, sheet: SpooledSheet) -> list[tuple[Any, ...]]:
    """Return the values of the first data rows, one tuple for each row."""
    rows: list[tuple[Any, ...]] = []
    for numbers, columns in _chunks_with_left_out(table, sheet):
        for number, values in zip(numbers, zip(*columns, strict=True), strict=True):
            if number not in table.rows_left_out and any(value is not None for value in values):
                rows.append(values)
                if len(rows) >= _SAMPLE_ROWS:
                    return rows
    return rows


class _IrregularRows:
    """Searches the rows of one table: `add` collects suspects chunk by chunk, `report` then reports them all.

    The sample decides what is searched for: attributes up to `_above_headers` are set once, by the steps of the set-up,
    each of which may need those before it. Columns are named by their position in the table.
    """

    def __init__(
        self, table: SourceTable, sample: Sequence[tuple[Any, ...]], names: DeclaredHeadings, *, is_text: bool
    ) -> None:
        """Learn from the first data rows, `sample`, what the table's columns hold. `is_text`: all values of the file
        are texts."""
        self._table, self._names, self._is_text = table, names, is_text
        self._kinds = Kinds()
        self._width = len(table.columns)
        self._first_row, self._sample = sample[0], sample
        columns = list(zip(*sample, strict=True))
        whole = [row for row in sample if row[-1] is not None and row[0] is not None]
        # A last column without a name that few rows reach: those rows have moved, not the others.
        ends_nameless = table.columns[-1].generated and bool(table.table.header_rows)
        self._reaches_beyond_header = ends_nameless and len(whole) * 2 < len(sample)
        if self._reaches_beyond_header:
            whole = [row for row in sample if row[-1] is None and row[0] is not None]
        self._classes = self._classify_columns(whole)  # of each column, in rows that keep the table's shape
        self._always_filled, self._usually_filled = self._find_usual_columns()
        # Columns that identify a record.
        self._key_columns = [
            at for at in self._always_filled if at == 0 or self._classes[at] in ("number", "date", "code")
        ]
        is_regular = len(whole) == len(sample)  # then the class of a column says whether it may hold codes
        self._code_columns = [
            at
            for at, column in enumerate(columns)
            if not (is_regular and self._classes[at] in ("number", "date", "word")) and self._is_coded(column)
        ]
        self._score_columns = [] if is_text else [at for at, column in enumerate(columns) if _is_scored(column)]
        self._ditto_columns = self._columns_for_dittos(columns)
        self._record_types = self._find_record_types(sample)
        firsts = [row[0] for row in sample if row[-1] is not None and row[0].__class__ is str]
        self._record_signs = {
            mark[1] for mark in map(_COMMENT.match, firsts) if mark
        }  # of comments, which records have too
        above = {number - step for number in table.table.repeated for step in range(1, LEAST_VALUES + 1)}
        self._above_headers = above - table.rows_left_out  # rows right above a repeated header
        self._rows_examined = 0  # rows with a blank last cell so far
        self._rows_seen = 0
        # The numbers of suspect rows, by what is wrong with them.
        self._remark_rows: list[int] = []
        self._other_type_rows: list[int] = []  # another kind of row than the first
        self._short_rows: list[int] = []
        self._wide_rows: list[int] = []
        self._continued_rows: list[int] = []
        self._rows_by_line: dict[tuple[Any, ...], list[int]] = {}  # texts below a blank first cell -> rows
        self._date_rows: dict[int, list[int]] = {}  # column -> rows
        self._ditto_rows: dict[int, list[int]] = {}  # column -> rows
        self._quote_columns: set[int] = set()  # columns with ditto marks that may also be quotes

    def _classify_columns(self, rows: Sequence[tuple[Any, ...]]) -> list[Class]:
        """Return the class of each column's values in some rows; for all columns the class of nothing if the rows are
        too few."""
        if len(rows) < LEAST_VALUES:
            return [class_of(())] * self._width
        of = self._kinds.of
        return [class_of([of(v) for v in column if v is not None]) for column in zip(*rows, strict=True)]

    def _find_usual_columns(self) -> tuple[list[int], list[int]]:
        """Return the columns that nearly all sampled rows with a first cell fill, none if there is only one such row,
        and those that most of them fill."""
        headed = [row for row in self._sample if row[0] is not None]
        columns = list(zip(*headed, strict=True)) or [()] * self._width
        filled = [len(headed) - column.count(None) for column in columns]
        always = [at for at, n in enumerate(filled) if n >= LEAST_ALIKE * len(headed)] if len(headed) > 1 else []
        return always, [at for at, n in enumerate(filled) if n * 2 > len(headed)]

    def _columns_for_dittos(self, columns: Sequence[tuple[Any, ...]]) -> list[int]:
        """Return the columns to search for ditto marks: those with texts; in a long table only those with marks in the
        sample."""
        texts = [at for at, column in enumerate(columns) if str in map(type, column)]
        is_long = self._table.bottom - self._table.top >= _TYPED_ROWS
        return [at for at in texts if not DITTO.isdisjoint(columns[at])] if is_long else texts

    def _find_record_types(self, sample: Sequence[tuple[Any, ...]]) -> frozenset[Any]:
        """Return the first cells of rows that hold other kinds of values than the first row: H for orders, D for their
        lines."""
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for row in sample:
            groups.setdefault(row[0], []).append(row)
        if not 1 < len(groups) <= _MOST_RECORD_TYPES or self._width < LEAST_VALUES or None in groups:
            return frozenset()
        classes = {
            first: [
                class_of([self._kinds.of(v) for v in column if v is not None]) for column in zip(*rows, strict=True)
            ]
            for first, rows in groups.items()
        }
        first_classes = classes.pop(sample[0][0])
        unlike_columns = {
            first: sum(
                {class_here, class_there} in _UNLIKE_CLASSES
                for class_here, class_there in zip(first_classes[1:], other_classes[1:], strict=True)
            )
            for first, other_classes in classes.items()
        }
        return frozenset(first for first, count in unlike_columns.items() if count * 2 >= self._width - 1)

    def _is_coded(self, values: Iterable[Any]) -> bool:
        """Whether many values of a column are codes: texts with digits that are neither numbers nor dates.

        Dates among them do not count, as long as they are not more than the codes: they may have been codes.
        """
        filled = [value for value in values if value is not None]
        texts = [value for value in filled if value.__class__ is str and len(value) < 40]
        made = {text for text in texts if _MADE_DATE.fullmatch(text)}
        dates = sum(isinstance(value, date) or value in made for value in filled)
        codes = sum(self._kinds[text] == "code" and text not in made for text in texts)
        least = _CODES_IN_PHRASES if any(" " in text for text in texts) else _CODES_IN_WORDS
        return codes >= max(2, dates) and codes > least * (len(filled) - dates)

    def add(self, numbers: list[int], columns: list[list[Any]]) -> None:
        """Search a chunk of rows, passed by column, and remember the suspects among them for `report`."""
        if self._reaches_beyond_header:
            self._find_wide(numbers, columns)
        elif self._width > 1 and None in columns[-1] and self._rows_examined < _MOST_EXAMINED:
            self._find_short(numbers, columns)
        if not self._above_headers.isdisjoint(numbers):
            self._find_remarks(numbers, columns)
        if self._width > 1 and None in columns[0]:
            self._find_lines(numbers, columns)
        for at in self._code_columns:
            self._find_dates(at, numbers, columns[at])
        if self._record_types:
            self._other_type_rows += [n for n, v in zip(numbers, columns[0], strict=True) if v in self._record_types]
        for at in self._score_columns:
            self._find_clocks(at, numbers, columns[at])
        self._rows_seen += len(numbers)
        for at in self._ditto_columns:
            if not DITTO.isdisjoint(columns[at]):
                self._find_dittos(at, numbers, columns[at])

    def _find_remarks(self, numbers: list[int], columns: list[list[Any]]) -> None:
        """Collect rows right above a repeated header that read as remarks."""
        for number, values in zip(numbers, zip(*columns, strict=True), strict=True):
            if number in self._above_headers and values[-1] is not None and self._is_remark(number, values):
                self._remark_rows.append(number)

    def _find_clocks(self, at: int, numbers: list[int], column: list[Any]) -> None:
        """Collect times of day in a column of scores."""
        clocks = [n for n, v in zip(numbers, column, strict=True) if isinstance(v, time | timedelta | datetime)]
        self._date_rows.setdefault(at, []).extend(n for n in clocks if n not in self._table.rows_left_out)

    def _find_dittos(self, at: int, numbers: list[int], column: list[Any]) -> None:
        """Collect ditto marks in a column."""
        if not QUOTES.isdisjoint(column):
            self._quote_columns.add(at)
        rows = [n for n, value in zip(numbers, column, strict=True) if value in DITTO]
        self._ditto_rows.setdefault(at, []).extend(n for n in rows if n not in self._table.rows_left_out)

    def _find_wide(self, numbers: list[int], columns: list[list[Any]]) -> None:
        """Collect rows that fill the last column, which is beyond the header here, and whose other values contradict
        their columns."""
        *named_columns, nameless_column = columns
        for index, value_beyond in enumerate(nameless_column):
            if value_beyond is None or numbers[index] in self._table.rows_left_out:
                continue
            kinds = [None if column[index] is None else self._kinds.of(column[index]) for column in named_columns]
            if any(contradicts(kind, column_class) for kind, column_class in zip(kinds, self._classes, strict=False)):
                self._wide_rows.append(numbers[index])

    def _find_short(self, numbers: list[int], columns: list[list[Any]]) -> None:
        """Collect rows that lack their last cell and whose values seem to have moved, or that are remarks."""
        for at, last_value in enumerate(columns[-1]):
            if last_value is not None or numbers[at] in self._table.rows_left_out:
                continue
            self._rows_examined += 1
            values = [column[at] for column in columns]
            if self._is_remark(numbers[at], values):
                self._remark_rows.append(numbers[at])
            elif self._has_moved(values):
                self._short_rows.append(numbers[at])

    def _is_remark(self, number: int, values: Sequence[Any]) -> bool:
        """Whether a row that lacks usual cells opens with the sign of a comment, as no record does, or is right above a
        repeated header."""
        if not any(values[position] is None for position in self._usually_filled):
            return False
        first = next((value for value in values if value is not None), None)
        mark = _COMMENT.match(first) if first.__class__ is str else None
        return number in self._above_headers or (mark is not None and mark[1] not in self._record_signs)

    def _has_moved(self, values: list[Any]) -> bool:
        """Whether values of a row contradict their columns and fit those to the right of them.

        Removes the blanks at the end of `values`.
        """
        width = self._width
        while values and values[-1] is None:
            values.pop()
        kinds = [None if value is None or _is_nothing(value) else self._kinds.of(value) for value in values]
        first_wrong = next(
            (position for position, kind in enumerate(kinds) if contradicts(kind, self._classes[position])), None
        )
        if first_wrong is None or len(values) < 2:
            return False
        for shift in range(1, min(_MOST_SHIFTS, width - len(values)) + 1):
            moved = zip(kinds[first_wrong:], self._classes[first_wrong + shift :], strict=False)
            if not any(contradicts(kind, column_class) for kind, column_class in moved):
                return True
        return False

    def _find_lines(self, numbers: list[int], columns: list[list[Any]]) -> None:
        """Collect rows without a first cell: lines that continue the record above, or that name other columns."""
        for at, first in enumerate(columns[0]):
            if first is not None or numbers[at] in self._table.rows_left_out:
                continue
            values = [column[at] for column in columns]
            if all(value is None for value in values):
                continue
            blank = [position for position in self._always_filled if values[position] is None]
            is_lone = len(blank) == len(self._always_filled) - 1  # one cell, whatever its column identifies
            if len(blank) > 1 and (is_lone or all(values[position] is None for position in self._key_columns)):
                self._continued_rows.append(numbers[at])
            line = tuple(values)
            is_below = columns[0][at - 1] is not None if at else True
            if (
                is_below
                and all(value is None or value.__class__ is str for value in line)
                and len(self._rows_by_line) < _MAX_LINES
            ):
                self._rows_by_line.setdefault(line, []).append(numbers[at])

    def _find_dates(self, at: int, numbers: list[int], column: list[Any]) -> None:
        """Collect dates in a column of codes: cells that are dates, and texts that a program made of a date; texts only
        in the first rows, until one is found there."""
        rows: list[int] = []
        if not self._is_text and not {date, datetime}.isdisjoint(map(type, column)):
            rows = [n for n, value in zip(numbers, column, strict=True) if isinstance(value, date)]
        texts: list[Any] = []
        if self._rows_seen <= _TYPED_ROWS or at in self._date_rows:
            texts = column if self._is_text else [value for value in column if value.__class__ is str]
        if texts and _MAY_BE_MADE_DATE.search("\n".join(filter(None, texts))):
            rows += [n for n, v in zip(numbers, column, strict=True) if v.__class__ is str and _MADE_DATE.fullmatch(v)]
        if rows:
            self._date_rows.setdefault(at, []).extend(n for n in sorted(rows) if n not in self._table.rows_left_out)

    def report(self, findings: Findings) -> None:
        """Report the suspects of all chunks, kind by kind; columns with proven ditto marks are noted on the table.

        Call it once, after the last chunk.
        """
        other_headers = self._find_other_headers()
        self._report_rows(
            findings, "short_row", self._short_rows,
            "values of the row contradict their columns and fit those to the right: a cell seems to be missing",
            remedy="add the missing cell",
        )  # fmt: skip
        if not self._is_text:  # those of text files are reported by their widths
            self._report_rows(
                findings, "wide_row", self._wide_rows,
                "the row has more cells than the header, and values that contradict their columns: a cell too many "
                "seems to have moved them",
                remedy="delete the cell that is too many",
            )  # fmt: skip
        self._report_rows(
            findings, "record_assumed", sorted(self._remark_rows),
            "the row reads as a comment or a page heading between the records; kept as a record",
            remedy="leave it out of the file",
        )  # fmt: skip
        if self._is_second_header():
            self._report_rows(
                findings, "record_assumed", [self._table.top],
                "the first row has words where the others have values: it may be a second row of headers",
                remedy='"reading": {"header_rows": [1, 2]}',
            )  # fmt: skip
        self._report_rows(
            findings, "record_assumed", other_headers,
            "the row looks like a header of other columns than the table's: the rows below it may be in the wrong ones",
            remedy="put the two kinds of rows on two sheets",
        )  # fmt: skip
        self._report_rows(
            findings, "record_assumed", [n for n in self._continued_rows if n not in set(other_headers)],
            "the row lacks what all other records have and may continue the one above it; kept as a record",
            remedy="write each record in one row",
        )  # fmt: skip
        self._report_rows(
            findings, "record_assumed", [n for n in self._other_type_rows if n not in self._table.rows_left_out],
            "the row has another first cell and other kinds of values than the first record: it may be no record",
            remedy="put the two kinds of rows on two sheets",
        )  # fmt: skip
        for at, rows in self._date_rows.items():
            self._report_rows(
                findings, "date_among_codes", rows,
                "a date or time stands among codes; a spreadsheet program may have made it of a code such as 1-2",
                remedy="format the column as text before the codes are entered", at=at,
            )  # fmt: skip
        self._report_dittos(findings)

    def _report_dittos(self, findings: Findings) -> None:
        """Report ditto marks; a column where they surely mean the value above is added to the table's `dittos`, to be
        filled."""
        marks = Counter(row for rows in self._ditto_rows.values() for row in rows)
        for at, rows in self._ditto_rows.items():
            is_clear = at not in self._quote_columns or any(marks[row] > 1 for row in rows)
            if not is_clear and self._is_prose(at):
                continue
            is_proven = is_clear and self._first_row[at] is not None and self._first_row[at] not in DITTO
            if is_proven:
                self._table.dittos |= {at}
            what = "is read as the value above it" if is_proven else "may stand for the value above it; kept as it is"
            self._report_rows(
                findings, "ditto_mark", rows, f"a ditto mark {what}",
                remedy="repeat the value", at=at, severity="info" if is_proven else "warning",
            )  # fmt: skip

    def _is_prose(self, at: int) -> bool:
        """Whether sampled values of a column are long texts, or have quotes and signs in them: then `"` is probably a
        quote."""
        texts = [row[at] for row in self._sample if row[at].__class__ is str and row[at] not in DITTO]
        return any(len(text) > _PROSE_CHARACTERS or _SIGN_IN_PROSE.search(text) for text in texts)

    def _is_second_header(self) -> bool:
        """Whether the first row has only words, and at least two of them in columns of numbers, dates or codes."""
        first, rest = self._sample[0], self._sample[1:_COMPARED_ROWS]
        if len(rest) < LEAST_VALUES or any(
            value.__class__ is not str or self._kinds[value] != "word" for value in first
        ):
            return False
        classes = [class_of([self._kinds.of(v) for v in column if v is not None]) for column in zip(*rest, strict=True)]
        typed = [value_class for value_class in classes if value_class in ("number", "date", "code")]
        return len(typed) > 1 and self._table.top not in self._table.rows_left_out

    def _find_other_headers(self) -> list[int]:
        """Return the numbers of collected rows that name other columns below each record, as orders have headers for
        their lines, in ascending order."""
        rows_below_records = sum(map(len, self._rows_by_line.values()))
        subheads: list[int] = []
        for line, rows in self._rows_by_line.items():
            texts = [value for value in line if value is not None]
            declared_names = self._names.spelled(texts)
            is_repeated = len(rows) > 1 and (declared_names > 0 or len(rows) >= _MOST_LINES * rows_below_records)
            if len(texts) > 1 and (is_repeated or declared_names == len(texts)):
                subheads += rows
        return sorted(subheads)

    def _report_rows(
        self,
        findings: Findings,
        code: str,
        rows: Sequence[int],
        message_start: str,
        *,
        remedy: str,
        at: int | None = None,
        severity: str = "warning",
    ) -> None:
        """Report rows by their numbers, or cells of the column at position `at`: the first thousand each, the rest as
        the count of the last one."""
        column = None if at is None else self._table.columns[at].index
        for n, row in enumerate(rows[:_MOST_REPORTED]):
            rest = len(rows) - _MOST_REPORTED if n == _MOST_REPORTED - 1 else 0
            message = f"{message_start}; {rest:,} more like it below" if rest > 0 else message_start
            findings.add(
                code, severity, f"{message}; to settle it: {remedy}", place=self._table.place, row=row, column=column,
                rule="reading", count=1 + max(rest, 0),
            )  # fmt: skip


def _is_scored(values: Sequence[Any]) -> bool:
    """Whether a column holds times of day beside texts such as 3:1 and 25:30, which are scores and not times."""
    texts = [value for value in values if value.__class__ is str]
    scores = [score for score in map(_SCORE.fullmatch, texts) if score and (int(score[1]) > 23 or len(score[2]) < 2)]
    return bool(scores) and any(isinstance(value, time | timedelta | datetime) for value in values)


def _report_cut_headers(table: SourceTable, findings: Findings) -> None:
    """Report headers that were cut, because they are longer than the name of a column may be."""
    for column in table.columns:
        if not column.generated and len(column.name) < len(JOIN.join(column.parts)):
            message = f"the header is longer than {len(column.name)} characters and is cut; to settle it: shorten it"
            row = (*table.table.header_rows, table.top)[0]
            findings.add(
                "header_cut", "warning", message, place=table.place, row=row, column=column.index, rule="reading"
            )  # fmt: skip


def _report_struck_text(table: SourceTable, sheet: SpooledSheet, findings: Findings) -> None:
    """Report rows of which cells are struck out, at the first such cell."""
    struck = sheet.layout().struck
    if not struck:
        return
    inside = {c.index for c in table.columns}
    rows = [
        (n, min(struck[n] & inside)) for n in sorted(struck) if table.top <= n <= table.bottom and struck[n] & inside
    ]
    rows = [(n, at) for n, at in rows if n not in table.rows_left_out and n in sheet.read]
    message = "cells of the row are struck out and read like the others; to settle it: delete what no longer counts"
    for row, column in rows:
        findings.add("struck_text", "warning", message, place=table.place, row=row, column=column, rule="reading")


def _report_signs_ignored(table: SourceTable, sheet: SpooledSheet, findings: Findings) -> None:
    """Report columns whose number format shows a minus sign that the stored numbers do not have."""
    for column in table.columns:
        runs = sheet.layout().units.get(column.index, {}).get(MINUS, ())
        rows = [
            row
            for first, last in zip(runs[::2], runs[1::2], strict=True)
            for row in range(max(first, table.top), min(last, table.bottom) + 1)
            if row not in table.rows_left_out
        ]
        message = (
            "the number format shows a positive number as a negative one; it is kept as it is stored; to settle it: "
        )
        for n, row in enumerate(rows[:_MOST_REPORTED]):
            rest = len(rows) - _MOST_REPORTED if n == _MOST_REPORTED - 1 else 0
            findings.add(
                "sign_ignored", "warning", f"{message}store it with its sign", place=table.place, row=row,
                column=column.index, rule="reading", count=1 + max(rest, 0),
            )  # fmt: skip


def _report_shared_headers(table: SourceTable, sheet: SpooledSheet, findings: Findings) -> None:
    """Report a header cell that covers columns of which only the first gets its name."""
    if not table.table.header_rows:
        return
    nameless = {c.index for c in table.columns if c.generated and table.holds(c.index)}
    if not nameless:
        return
    for top, left, bottom, right in sheet.layout().merged:
        covered = nameless.intersection(range(left + 1, right + 1))
        if covered and top <= table.table.header_rows[-1] <= bottom:
            message = (
                f"the header covers {right - left + 1} columns, and only the first one has its name; "
                "to settle it: name each column"
            )
            findings.add("header_shared", "warning", message, place=table.place, row=top, column=left, rule="reading")
