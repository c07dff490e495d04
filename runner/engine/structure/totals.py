"""Decides which rows are totals: a row is a total if it adds up; its label is only a hint.

Rows that may be totals are known by their words, in many languages, or by their place (suspects.py). A second pass over
the table's rows keeps running sums by column (from the table's start, from the last total, from the last caption or
blank row, and of the totals themselves) and compares each such row with them (adding_up.py). If words and sums agree,
the row is a total; if only one of them does, it stays data and is reported. Without such rows there is no second pass.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from runner.engine.common.a1 import CellRange
from runner.engine.reading import Block, Value
from runner.engine.structure.adding_up import (
    ADDENDS,
    NO_MATCH,
    Match,
    Suspect,
    best_match,
    compare,
    is_statistic,
    suspect_row,
)
from runner.engine.structure.column_sums import ColumnTotal, RunningSums, sum_column
from runner.engine.structure.tables import Choice, Clarity, LeftRow, Proof, RowKind, Table
from runner.engine.structure.total_words import Sort

_MOST_REPORTED = 200  # runs of doubtful rows reported one by one
_COLUMN_SAMPLE = 5  # cells from which a column is known to have numbers or not
_AS_DATA, _LEFT_OUT = '"reading": {"total_rows": "keep"}', '"reading": {"total_rows": "drop"}'
_LEVELS = 4  # of totals: of records, of groups, of groups of those, of all
_FOOTER = 3  # the most rows between two totals, or below the last one, that may be no records
_PENDING = 200  # the most totals above their rows that are checked at a time


def check_totals(tables: Sequence[Table], blocks: Iterable[Block], *, drop: bool = False) -> list[Table]:
    """Return the tables without their totals, by a second pass over the sheet's rows if there are any suspects.

    `drop`: the manifest leaves out what may be a total, too.
    """
    checks = {
        number: TotalsCheck(table, drop=drop)
        for number, table in enumerate(tables)
        if table.suspected and table.data_range
    }
    if checks:
        bottom = max(check.bottom for check in checks.values())
        for block in blocks:
            for check in checks.values():
                check.read_block(block)
            if block.numbers[-1] >= bottom:
                break
    return [checks[number].without_totals() if number in checks else table for number, table in enumerate(tables)]


class TotalsCheck:
    """Reads the rows of one table, block by block, and checks those that may be totals."""

    def __init__(self, table: Table, *, drop: bool = False) -> None:
        """Begin above the table's first row; `drop`: the manifest leaves out what may be a total, too."""
        self._table = table
        self._drop = drop
        self._left_out_rows = set(table.left_out)
        # Sums of all records, of those since a caption or a blank row, and of those since the last total.
        self._whole, self._block, self._tail = (RunningSums() for _ in range(3))
        # Sums of what the next total of each level adds up: the records, their totals, the totals of those, and so on.
        self._levels = [RunningSums() for _ in range(_LEVELS)]
        self._last_total: RunningSums | None = None  # as another addend
        self._parts: list[Suspect] = []  # rows right above that may be part of a footer
        self._beside: dict[int, bool] = {}  # rows next to totals that may be part of a footer, and whether they say so
        self._loose: list[int] = []  # the first rows since the last total that nothing speaks against
        self._is_grand = False  # the last total was the sum of all rows
        self._judged: list[Suspect] = []
        self._pending: list[Suspect] = []  # which may be totals of the rows below them
        self._has_numbers: dict[int, bool] = {}  # by column, once enough cells were read
        self._last_row = 0
        self._first_record = self._last_record = 0  # the rows that nobody suspects; 0: none yet

    @property
    def bottom(self) -> int:
        """The last row of the table's data."""
        return self._table.data_range.bottom if self._table.data_range else 0

    def read_block(self, block: Block) -> None:
        """Add up the rows of a block that are in the table, and judge the suspects among them."""
        box = self._table.data_range
        if box is None:
            return
        low, high = bisect_left(block.numbers, box.top), bisect_right(block.numbers, box.bottom)
        numbers = block.numbers[low:high]
        indexes = range(box.left - 1, min(box.right, len(block.columns)))
        columns = [(index, block.columns[index][low:high]) for index in indexes]
        for start, end in self._segments(numbers):
            self._read_segment(
                numbers[start], numbers[end - 1], [(index, column[start:end]) for index, column in columns]
            )

    def without_totals(self) -> Table:
        """Return the table without its totals, and with the choices that were close; after the last block."""
        self._close_pending(is_end=True)
        proofs: dict[int, Proof | None] = {row.number: Proof.ADDS_UP for row in self._judged if row.is_total}
        proofs |= dict.fromkeys(self._ends_of_blocks(), Proof.ADDS_UP)
        rest = [row for row in self._judged if row.number not in proofs]
        labelled = [row.number for row in rest if row.is_only_labelled]
        parts = [row.number for row in rest if row.why.is_part]
        sums = [row.number for row in rest if row.why.heads or row.is_bare_sum]
        decided = {*proofs, *labelled, *sums}
        beside = {number: is_stated for number, is_stated in self._beside_totals(rest).items() if number not in decided}
        data_beside = [number for number, is_stated in beside.items() if not is_stated]
        choices = _choices(list(proofs), labelled, sums, data_beside, parts)
        proofs |= dict.fromkeys((number for number, is_stated in beside.items() if is_stated), None)
        if self._drop:
            proofs |= dict.fromkeys((*labelled, *sums, *beside, *parts), Proof.ASKED)
            choices = [choice for choice in choices if choice.sure]
        table, plural = self._table, "s" * (len(proofs) > 1)
        return replace(
            table,
            data_range=self._range_of_records([row.number for row in rest if row.number not in proofs]),
            left_out={**table.left_out, **{number: LeftRow(RowKind.TOTAL, proof) for number, proof in proofs.items()}},
            why=(*table.why, f"{len(proofs)} total row{plural} found") if proofs else table.why,
            choices=(*table.choices, *choices),
            suspected={},
        )

    def _segments(self, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield runs of rows between suspects, left-out rows and blank rows; each of the former is a run of its own."""
        start = 0
        is_dense = not numbers or numbers[-1] - numbers[0] + 1 == len(numbers)
        alone = self._table.suspected.keys() | self._left_out_rows
        for at, number in enumerate(numbers if not is_dense or not alone.isdisjoint(numbers) else ()):
            is_alone = number in alone
            if at > start and (is_alone or number != numbers[at - 1] + 1):
                yield start, at
                start = at
            if is_alone:
                yield at, at + 1
                start = at + 1
        if start < len(numbers):
            yield start, len(numbers)

    def _read_segment(self, first: int, last: int, columns: Sequence[tuple[int, list[Value]]]) -> None:
        """Add up a run of rows, or judge the one that may be a total; `columns`: index and values of each."""
        is_apart = bool(self._last_row) and first > self._last_row + 1
        self._last_row = last
        if is_apart or first in self._left_out_rows:
            self._block = RunningSums()
        if first in self._left_out_rows:
            return
        count = len(columns[0][1]) if columns else 0
        sums = {}
        for index, column in columns:
            if (total := self._sum(index, column, single=count == 1)) is not None:
                sums[index] = total
        why = self._table.suspected.get(first)
        if why is None:
            self._add_records(first, last, count, sums)
        else:
            self._judge(suspect_row(first, why, [column[0] for _, column in columns], sums))

    def _add_records(self, first: int, last: int, count: int, sums: Mapping[int, ColumnTotal]) -> None:
        """Count a run of rows that nobody suspects."""
        self._add(count, sums)
        self._parts = []
        too_many = _FOOTER + 1
        self._loose = [*self._loose, *range(first, last + 1)][:too_many] if count <= _FOOTER else [0] * too_many
        self._first_record = self._first_record or first
        self._last_record = last

    def _sum(self, index: int, column: list[Value], *, single: bool) -> ColumnTotal | None:
        """Sum up cells of a column; None if they are no numbers. A column without numbers is not read again.

        `single`: the cell of one row, from which nothing is learnt about its column.
        """
        if not single and self._has_numbers.get(index) is False:
            return None
        total = sum_column(column)
        if not single and index not in self._has_numbers and len(column) > _COLUMN_SAMPLE:
            self._has_numbers[index] = total is not None
        return total

    def _add(self, count: int, sums: Mapping[int, ColumnTotal]) -> None:
        """Add rows to all sums that go on."""
        for running in (self._whole, self._levels[0], self._block, self._tail):
            running.add(count, sums)
        for suspect in self._pending:
            for running in suspect.below:
                running.add(count, sums)

    def _judge(self, suspect: Suspect) -> None:
        """Compare a suspect with the sums so far; it ends those that it adds up, or is added to them."""
        self._judged.append(suspect)
        if suspect.why.heads or suspect.why.is_part:  # others count it already
            return
        if suspect.why.counts or is_statistic(suspect, self._whole):
            suspect.is_part = True
            return
        matches = [compare(suspect, running) for running in (*self._levels, self._block, self._whole)]
        footer = self._match_footer(suspect)
        level = max(range(len(matches)), key=lambda n: matches[n].worth)
        suspect.match = best_match(matches[level], footer)
        self._close_pending(is_end=False)
        if suspect.is_total or (suspect.is_bare_sum and not suspect.may_be_record):
            self._end_sums(suspect, matches, footer, level)
        else:
            self._add_suspect(suspect)

    def _end_sums(self, suspect: Suspect, matches: Sequence[Match], footer: Match, level: int) -> None:
        """End the sums that a row adds up; `matches`: with the levels, the block and all rows, `level`: the best."""
        if footer.hits and not any(match.hits for match in matches[:_LEVELS]):
            self._beside |= dict.fromkeys(self._few_loose_rows(), False)
        self._end_parts(is_footer=footer.hits > 0 and len(self._parts) == self._tail.rows)
        self._is_grand = matches[-1].hits > 0 and self._whole.rows >= ADDENDS and not suspect.is_carried
        self._start_below(suspect, level if suspect.is_total and level < _LEVELS - 1 else 0)

    def _match_footer(self, suspect: Suspect) -> Match:
        """Compare a row with the last total with the rows since added to it, or subtracted from it."""
        if self._last_total is None:
            return NO_MATCH
        return best_match(*(compare(suspect, self._last_total.joined(self._tail, sign)) for sign in (1, -1)))

    def _add_suspect(self, suspect: Suspect) -> None:
        """Count a row that is no sum of those above among the records; it may be the sum of those below."""
        self._parts = [*self._parts, suspect] if suspect.may_be_part else []
        if suspect.sort is Sort.SPREAD:
            return
        self._add(1, suspect.sums)
        is_named = suspect.clarity >= Clarity.NAMED and not suspect.why.full
        if (is_named or suspect.why.tops) and len(self._pending) < _PENDING:
            suspect.below = [RunningSums(), RunningSums()]
            self._pending.append(suspect)
        if is_named:
            self._levels[0], self._block = RunningSums(), RunningSums()

    def _few_loose_rows(self) -> list[int]:
        """Return the rows since the last total that nothing speaks against, if they are as few as a footer has."""
        return self._loose if len(self._loose) <= _FOOTER else []

    def _end_parts(self, *, is_footer: bool) -> None:
        """Decide about the rows right above a total: those of a footer are no records; others may be none."""
        for part in self._parts:
            part.is_part = is_footer
        if not is_footer:
            self._beside |= {part.number: part.why.charge for part in self._parts if part.is_doubtful_above_total}
        self._parts, self._loose = [], []

    def _start_below(self, total: Suspect, level: int) -> None:
        """Start new sums below a total of this level: it is one of the addends of the next higher one."""
        for n in range(level + 1):
            self._levels[n] = RunningSums()
        self._levels[level + 1].add(1, total.sums)
        self._last_total = RunningSums()
        self._last_total.add(1, total.sums)
        self._block, self._tail = RunningSums(), RunningSums()

    def _close_pending(self, *, is_end: bool) -> None:
        """End the sums of rows below a total at the next one; those of all rows below it at the table's end."""
        for suspect in self._pending:
            sums = suspect.below if is_end else suspect.below[:1]
            suspect.match = best_match(suspect.match, *(compare(suspect, running) for running in sums))
            suspect.below = suspect.below[-1:]

    def _beside_totals(self, rest: Sequence[Suspect]) -> dict[int, bool]:
        """Return the rows next to totals that may be part of a footer, and whether they say so.

        `rest`: the suspects that are no totals.
        """
        beside = dict(self._beside)
        if self._last_total is not None and len(self._parts) == self._tail.rows:  # the footer goes on below it
            beside |= {part.number: part.why.charge for part in self._parts if part.is_doubtful_below_total}
        beside |= {row.number: False for row in rest if row.why.under and row.number not in beside}
        if self._is_grand:
            beside |= dict.fromkeys(self._few_loose_rows(), False)
        return beside

    def _range_of_records(self, suspects: Sequence[int]) -> CellRange | None:
        """Return the range from the first to the last record, in all columns of the table; None without any.

        `suspects`: the rows that may have been totals and are records.
        """
        table_range = self._table.data_range
        rows = [number for number in (self._first_record, self._last_record, *suspects) if number]
        if table_range is None or not rows:
            return None
        return CellRange(min(rows), table_range.left, max(rows), table_range.right)

    def _ends_of_blocks(self) -> list[int]:
        """Return unlabelled sums that end each block of the table: one may be so by chance, but not all of them."""
        sums = [row for row in self._judged if row.ends_block and not row.is_total]
        totals = [row for row in self._judged if row.adds_up]
        if not sums or len(totals) < 2 or totals[-1].number < self._last_record:
            return []
        return [row.number for row in sums if row.why.lacks or len(sums) > 1]


def _choices(
    totals: list[int], labelled: list[int], sums: list[int], beside: list[int], parts: list[int]
) -> list[Choice]:
    """Return what was decided about rows that may be totals: one sure choice for those that are, one for each run of
    the others."""
    choices: list[Choice] = []
    if totals:
        evidence = {"word": len(totals), "sum": len(totals)}
        choices.append(Choice("total", "total", evidence, True, row=totals[0], settle=_AS_DATA))
    remedy = f"{_LEFT_OUT} or {_AS_DATA}"
    for rows, single, many, has_word in (
        (labelled, "is labelled as a total but does not add up", "are labelled as totals but do not add up", True),
        (sums, "adds up but is not labelled as a total", "add up but are not labelled as totals", False),
        (beside, "is next to a total and may be part of it", "are next to a total and may be part of it", False),
        (parts, "is called a part of the row above", "are called parts of the row above", False),
    ):
        evidence = {"word": len(rows) * has_word, "sum": len(rows) if rows is sums else 0}
        runs = _runs(sorted(rows))
        for first, last in runs[:_MOST_REPORTED]:
            message = f"row {first} {single}" if first == last else f"rows {first} to {last} {many}"
            choices.append(Choice("total", "data", evidence, False, f"{message}; kept as data", first, remedy))
        if more := sum(last - first + 1 for first, last in runs[_MOST_REPORTED:]):
            first = runs[_MOST_REPORTED][0]
            message = f"{more} more rows from row {first} on {many}; kept as data"
            choices.append(Choice("total", "data", evidence, False, message, first, remedy))
    return choices


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive rows."""
    runs: list[tuple[int, int]] = []
    for row in rows:
        if runs and runs[-1][1] + 1 == row:
            runs[-1] = runs[-1][0], row
        else:
            runs.append((row, row))
    return runs
