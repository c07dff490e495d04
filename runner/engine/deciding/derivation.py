"""Compares the contents of tables: does one repeat rows of others, sum them up, or list the values of their columns?

Rows are compared as sets of hashes over the columns that both tables have, sums by totals first and by group only where
those match, so tables that have nothing to do with each other cost one pass over their rows. Only sheets that fit the
spool are compared: reading a larger one again would cost more than the job.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import chain, pairwise
from math import fsum
from typing import Any, Final, NamedTuple

from runner.engine.common.spelling import normalized
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.reading.spool import SpooledSheet
from runner.engine.structure.column_sums import read_number, sum_column
from runner.engine.tables.sources import SAMPLED, chunks
from runner.engine.tables.supplied import NAME, VALUE

MOST_ROWS: Final = 600_000  # rows of a job that are compared: their hashes take some 40 MB
_MAX_GROUPS: Final = 20_000  # groups of one column; more are no groups
_MAX_LABELLED_ROWS: Final = 1000  # rows of a table that is compared with groups though it does not add up to all rows
_KIND_SAMPLE: Final = 20  # values that show what kind a column is of
_HUGE: Final = 1e290  # such numbers add up to infinity
_LONG_TEXT: Final = 40  # characters of a text that is not a number
_RELATIVE_ERROR: Final = 1e-9  # relative error of sums of binary fractions
_LARGE_SUM: Final = 100.0  # a sum that large, or one with decimals, is not met by chance
_FEW_BY_CHANCE: Final = 3  # groups of which the sums may be met by chance
_SEVERAL: Final = 2
Numbers = list[float | None]


class TableContents:
    """A mapped table's columns by what they are: a field, or `~` and the header of an unmapped column.

    What it says about values comes from the first ones (`sample`) or from all rows, which are then read again.
    """

    def __init__(self, table: MappedTable) -> None:
        """Name the columns of a mapped table; nothing is read yet."""
        self.table = table
        self.id = table.source.id
        self.fields = table.own_fields
        others = {
            f"~{normalized(column.name)}": at
            for at, column in reversed(list(enumerate(table.source.columns)))
            if not column.generated and table.samples[at]
        }
        named = {c.field: c.position for c in table.choices if c.field is not None}
        named |= {f"~{what}": table.source.place_of(what) for what in (NAME, VALUE) if table.source.spread}
        named_columns = set(named.values())
        self._sampled: dict[str, set[Any]] = {}  # what `sampled` returned, by column
        # What a column is -> its position in the table's chunks.
        self.columns: dict[str, int] = {**{k: at for k, at in others.items() if at not in named_columns}, **named}

    @cached_property
    def rows(self) -> int:
        """Count the table's rows of data; of a sheet that is not spooled blank rows count too."""
        source = self.table.source
        if source.spread:
            return sum(len(rows.numbers) for _, rows in chunks([source]))
        if not isinstance(source.sheet, SpooledSheet):
            return max(0, source.bottom - source.top + 1)
        with_values = source.sheet.read.within(source.top, source.bottom).count
        return max(0, with_values - sum(source.top <= row <= source.bottom for row in source.rows_left_out))

    @property
    def is_comparable(self) -> bool:
        """Whether its rows can be read again at little cost."""
        sheet = self.table.source.sheet
        return isinstance(sheet, SpooledSheet) and sheet.complete

    def sample(self, key: str) -> list[Any]:
        """Return the first values of a column, without blanks."""
        return self.table.samples[self.columns[key]]

    def shared_values(self, other: "TableContents", keys: Collection[str]) -> int:
        """Count the first values of these columns that are among the other table's first ones."""
        both = [key for key in keys if key in self.columns and key in other.columns]
        return sum(len(self.sampled(key) & other.sampled(key)) for key in both)

    def sampled(self, key: str) -> set[Any]:
        """Return the first values of a column, each once, without case and outer blanks."""
        if key not in self._sampled:
            self._sampled[key] = set(map(_comparable, self.sample(key)))
        return self._sampled[key]

    def distinguishes_rows(self, key: str) -> bool:
        """Whether (nearly) every row has a value of its own in this column."""
        values = self.sample(key)
        return len(values) >= _FEW_BY_CHANCE and len(set(map(_comparable, values))) * 10 >= 9 * min(
            len(values), self.rows
        )

    def distinguish_rows(self, keys: Collection[str]) -> bool:
        """Whether (nearly) every row has values of its own in these columns together."""
        rows: list[tuple[Any, ...]] = []
        for _, chunk in chunks([self.table.source]):
            rows += zip(*(chunk.columns[self.columns[key]] for key in keys), strict=True)
            if len(rows) >= SAMPLED:
                break
        return len(rows) >= _FEW_BY_CHANCE and len(set(rows)) * 10 >= 9 * len(rows)

    def counts_up(self, key: str) -> bool:
        """Whether a column's numbers only grow, as numbers of records do, or are in the table's first column."""
        numbers = [n for n in map(_number, self.sample(key)) if n is not None]
        return self.columns[key] == 0 or all(a < b for a, b in pairwise(numbers))

    def repeats_values(self, key: str) -> bool:
        """Whether most values of a column occur several times."""
        values = list(map(_comparable, self.sample(key)))
        return len(set(values)) * _SEVERAL <= len(values)

    def hashes(self, keys: Sequence[str]) -> Iterator[list[int]]:
        """Yield a hash of each row's values in these columns, chunk by chunk."""
        at = [self.columns[key] for key in keys]
        for _, rows in chunks([self.table.source]):
            yield list(map(hash, zip(*(rows.columns[n] for n in at), strict=True)))

    def values(self, key: str) -> Iterator[list[Any]]:
        """Yield all values of a column, chunk by chunk."""
        at = self.columns[key]
        for _, rows in chunks([self.table.source]):
            yield rows.columns[at]

    def has_keys_of(self, other: "TableContents", key: str) -> bool:
        """Whether (nearly) all values of a column are in that column of another table."""
        other_values = {_comparable(v) for chunk in other.values(key) for v in chunk}
        own_values = [_comparable(v) for chunk in self.values(key) for v in chunk if v is not None]
        return sum(map(other_values.__contains__, own_values)) * 10 >= 9 * max(1, len(own_values))

    @cached_property
    def has_dates(self) -> bool:
        """Whether any column begins with a date."""
        return any(map(self.has_dates_in, self.columns))

    def has_dates_in(self, key: str) -> bool:
        """Whether a column begins with a date."""
        return key in self.columns and any(isinstance(value, date) for value in self.sample(key)[:1])

    def untidiness(self, dated: Collection[str]) -> int:
        """Count what is untidy in the first values: numbers or dates as texts, texts in one case or with needless
        blanks."""
        typed = {*self.numeric, *dated}
        texts = [(key in typed, v) for key in self.columns for v in self.sample(key) if isinstance(v, str)]
        return sum(is_typed + (" ".join(v.split()) != v) + (v in (v.upper(), v.lower())) for is_typed, v in texts)

    @cached_property
    def numeric(self) -> list[str]:
        """List the columns that hold mostly numbers, typed or written."""
        return [key for key in self.columns if _are_numbers(self.sample(key)[:_KIND_SAMPLE])]

    def numbers(self, key: str) -> Numbers:
        """Return the numbers of a column, None for each cell that holds no number."""
        return [_number(value) for chunk in self.values(key) for value in chunk]

    @cached_property
    def totals(self) -> dict[str, float]:
        """Add up each column of numbers."""
        sums: dict[str, list[float]] = {key: [] for key in self.numeric}  # of each chunk
        for _, rows in chunks([self.table.source]):
            for key, chunk_sums in sums.items():
                if (chunk_sum := sum_column(rows.columns[self.columns[key]])) is not None:
                    chunk_sums.append(chunk_sum.point)
        return {key: fsum(chunk_sums) for key, chunk_sums in sums.items()}


class RepeatedRows(NamedTuple):
    """How many rows of a table are in other tables."""

    others: list[TableContents]  # those with all fields of the table; empty: nothing was compared
    rows: int


class _HashedRows(NamedTuple):
    """The rows of some tables in the same columns."""

    hashes: set[int]
    tables: set[str]  # ids of those whose rows are in it


class SeenRows:
    """Remembers the rows of tables as sets of hashes, up to what a job may compare."""

    def __init__(self) -> None:
        """Remember no rows yet."""
        # By columns, and by the captions and labels around the compared tables, which set them apart from others.
        self._sets: dict[tuple[tuple[str, ...], tuple[str | None, ...]], _HashedRows] = {}
        self._rows_left = MOST_ROWS  # rows that may still be compared

    def count_repeated_rows(self, table: TableContents, others: Sequence[TableContents]) -> RepeatedRows:
        """Count the rows of a table that are among the rows of the others that have all of its fields.

        Remembers the rows of those others; nothing is counted once the job has compared too many rows.
        """
        with_all_fields = [t for t in others if t.is_comparable and table.fields <= t.fields]
        if not with_all_fields or not table.is_comparable:
            return RepeatedRows([], 0)
        keys = tuple(sorted(table.columns.keys() & with_all_fields[0].columns.keys()))
        compared = [t for t in with_all_fields if t.columns.keys() >= set(keys)]
        if not keys or not self._spend(table.rows):
            return RepeatedRows([], 0)
        known = self._remember_rows(keys, table.table.source.surroundings, compared)
        return RepeatedRows(compared, sum(sum(map(known.__contains__, chunk)) for chunk in table.hashes(keys)))

    def _remember_rows(
        self, keys: tuple[str, ...], surroundings: tuple[str | None, ...], tables: Sequence[TableContents]
    ) -> set[int]:
        """Return the hashes of the rows of some tables in these columns; each table is hashed once, and only if the job
        may compare its rows."""
        remembered = self._sets.setdefault((keys, surroundings), _HashedRows(set(), set()))
        for table in tables:
            if table.id not in remembered.tables and self._spend(table.rows):
                remembered.tables.add(table.id)
                for chunk in table.hashes(keys):
                    remembered.hashes.update(chunk)
        return remembered.hashes

    def _spend(self, rows: int) -> bool:
        """Count rows against what a job may compare; returns False once that is used up."""
        self._rows_left -= rows
        return self._rows_left >= 0


class GroupSums:
    """Sums, means and counts of the rows of some tables: by a column's values, by month, by year and by table."""

    def __init__(self, tables: Sequence[TableContents]) -> None:
        """Prepare to add up the rows of tables; sums are made when they are asked for, and only of tables that can be
        read again at little cost."""
        self._tables = [t for t in tables if t.is_comparable]
        self._rows = sum(t.rows for t in self._tables)
        self._made: dict[str, list[_GroupFigures]] = {}  # by column

    def are_in(self, table: TableContents) -> bool:
        """Whether a column of a table has sums, means or counts of groups of these rows, and not by chance; False
        if the rows are too many to compare."""
        if not table.is_comparable or not 0 < table.rows < self._rows <= MOST_ROWS or not table.numeric:
            return False
        totals = [*self._totals, float(self._rows)]
        full_sums = {key for key in table.numeric if _is_total(table.totals[key], totals)}
        may_name_groups = table.rows <= _MAX_LABELLED_ROWS and table.fields < self._tables[0].fields
        label_columns = set(table.columns) if may_name_groups else set()
        keys = [key for key in self._shared if full_sums or key in label_columns]
        numbers_of = {key: table.numbers(key) for key in (table.numeric if keys else ())}
        for key in keys:
            columns = {name: numbers for name, numbers in numbers_of.items() if name != key}
            labels = list(_column_values(table, key)) if key in label_columns else []
            if self._are_grouped_in(columns, full_sums, key, labels):
                return True
        return False

    def _are_grouped_in(
        self, columns: Mapping[str, Numbers], total_names: set[str], key: str, labels: Sequence[Any]
    ) -> bool:
        """Whether columns have the figures of these rows grouped by `key`.

        `total_names`: columns that add up to the total of all. `labels`: which group each row names; empty if unknown.
        """
        total_columns = [numbers for name, numbers in columns.items() if name in total_names]
        return any(
            groups.are_all_in(total_columns) or groups.are_named_in(labels, columns.values())
            for groups in self._groups_by(key)
        )

    @cached_property
    def _shared(self) -> list[str]:
        """List the columns that all tables have."""
        return [key for key in self._tables[0].columns if all(key in t.columns for t in self._tables)]

    @cached_property
    def _totals(self) -> list[float]:
        """Add up each column of numbers over all tables."""
        return [
            sum(t.totals.get(key, 0.0) for t in self._tables) for key in {k for t in self._tables for k in t.numeric}
        ]

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        """Return the columns of numbers that all tables have, with the rows of all of them."""
        keys = [key for key in self._tables[0].numeric if key in self._shared]
        return {key: [n for t in self._tables for n in t.numbers(key)] for key in keys}

    def _groups_by(self, key: str) -> list["_GroupFigures"]:
        """Return the figures of these rows grouped by a column, as far as they are worth comparing; made once."""
        if key not in self._made:
            self._made[key] = [groups for groups in self._make_groups(key) if groups.are_groups]
        return self._made[key]

    def _make_groups(self, key: str) -> Iterator["_GroupFigures"]:
        """Yield the figures of the rows by month and by year for dates, by value if most occur several times, and by
        table for the first column."""
        first = self._tables[0]
        has_dates = any(isinstance(value, date) for value in first.sample(key)[:_KIND_SAMPLE])
        values = [v for t in self._tables for chunk in t.values(key) for v in chunk]
        numbers = [column for name, column in self._numbers.items() if name != key]
        if has_dates:
            yield _GroupFigures(values, _month_of, numbers)
            yield _GroupFigures(values, _year_of, numbers)
        if first.repeats_values(key):
            yield _GroupFigures(values, _comparable, numbers)
        if key == self._shared[0] and len(self._tables) > 1:
            by_table = [t.id for t in self._tables for chunk in t.values(key) for _ in chunk]
            yield _GroupFigures(by_table, _comparable, list(self._numbers.values()))


class ListedValues(NamedTuple):
    """Whether a table lists values of other tables, as a list of allowed values does."""

    lists_all: bool  # each of its columns has values of the others' column of that name, each once
    lists_one: bool  # one of its columns has all values that the others have there


def lists_values(table: TableContents, others: Sequence[TableContents]) -> ListedValues:
    """Compare each column of a table with the others' column of that name: does it list their values? `others`: at
    least one, all with the same columns as the first."""
    keys = [key for key in table.fields if key in others[0].columns and key in table.columns]
    if not keys or not table.is_comparable or not others[0].is_comparable:
        return ListedValues(lists_all=False, lists_one=False)
    is_short = table.rows > 1 and table.rows * 2 <= sum(t.rows for t in others)
    is_like = is_short and len(keys) == len(table.columns) and not set(keys) <= set(table.numeric)
    compared = [_compare_values(table, others, key) for key in keys]
    every = is_like and all(is_nested for is_nested, _ in compared)
    return ListedValues(
        lists_all=every and any(others[0].repeats_values(key) for key in keys),
        lists_one=any(lists_all for _, lists_all in compared),
    )


class _ValueComparison(NamedTuple):
    """How the values of a column are to those of other tables."""

    is_nested: bool  # one set of values is a part of the other
    lists_all: bool  # it lists each of their values once, where they repeat them


def _compare_values(table: TableContents, others: Sequence[TableContents], key: str) -> _ValueComparison:
    """Compare the values of a column with those that other tables have in it."""
    values = [_comparable(v) for v in _column_values(table, key) if v is not None]
    own_values = set(values)
    other_values = {_comparable(v) for t in others if key in t.columns for v in _column_values(t, key)} - {None}
    is_nested = other_values >= own_values or other_values <= own_values
    is_once = len(own_values) == len(values) and others[0].repeats_values(key)
    lists_all = is_once and len(other_values) >= _FEW_BY_CHANCE and other_values <= own_values
    return _ValueComparison(is_nested, lists_all)


def _column_values(table: TableContents, key: str) -> Iterator[Any]:
    """Yield the values of a column one by one."""
    return chain.from_iterable(table.values(key))


def explains_columns(table: TableContents, names: set[str]) -> bool:
    """Whether a column of this table lists names of columns beside texts about them, as a glossary does."""
    for key in table.columns if not table.numeric else ():
        texts = [normalized(v) for v in table.sample(key) if isinstance(v, str)]
        if len(texts) >= _FEW_BY_CHANCE and sum(text in names for text in texts) * 3 >= 2 * len(texts):
            return True
    return False


def _comparable(value: Any) -> Any:
    """Return a value for comparison: texts without case and outer blanks."""
    return value.strip().casefold() if value.__class__ is str else value


def _number(value: Any) -> float | None:
    """Return the number of a cell, or of a text that is one; None for others and for huge ones."""
    if isinstance(value, int | float):
        return float(value) if -_HUGE < value < _HUGE else None
    if isinstance(value, str) and len(value) < _LONG_TEXT and (pair := read_number(value)) is not None:
        number, _ = pair  # with a decimal point, with a comma
        return number if -_HUGE < number < _HUGE else None
    return None


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether most of these values are numbers."""
    return bool(values) and sum(_number(value) is not None for value in values) * 10 >= 8 * len(values)


def _is_total(column_sum: float, totals: Iterable[float]) -> bool:
    """Whether a column adds up to one of these totals, with or without a last row that has the total itself."""
    return any(
        total and (_equal_when_rounded(column_sum, total) or _equal_when_rounded(column_sum, 2 * total))
        for total in totals
    )


def _equal_when_rounded(rounded: float, exact: float) -> bool:
    """Whether two numbers are equal, once the exact one is rounded to the digits that the other has."""
    if abs(rounded - exact) <= max(_RELATIVE_ERROR * abs(exact), 1e-9):
        return True
    return abs(rounded - exact) <= min(0.51 * _last_digit(rounded), 0.005 * abs(exact))


def _last_digit(number: float) -> float:
    """Return the value of a one in the last digit of a number: 1, a hundredth or less."""
    if number == round(number):
        return 1.0
    cents = number * 100
    return 0.01 if abs(cents - round(cents)) < 1e-6 else 1e-4


class _GroupFigures:
    """Counts, sums and means of rows by group."""

    def __init__(self, values: Sequence[Any], group_of: Callable[[Any], Any], columns: Sequence[Numbers]) -> None:
        """Group rows by a value of each, and figure out counts, sums and means of the groups.

        `values`: of the column that groups the rows; `columns`: of numbers, with one for each row.
        """
        groups = list(map(group_of, values))
        self._group_of = group_of
        self._counts = Counter(groups)
        self.are_groups = 1 < len(self._counts) <= _MAX_GROUPS and max(self._counts.values()) >= _SEVERAL
        # Group -> figure, for the counts first, then for the sums and means of each column.
        self._figures: list[dict[Any, float]] = [{group: float(count) for group, count in self._counts.items()}]
        for numbers in columns if self.are_groups else ():
            by_group: dict[Any, list[float]] = {group: [] for group in self._counts}
            for group, number in zip(groups, numbers, strict=True):
                if number is not None:
                    by_group[group].append(number)
            self._figures.append({group: fsum(group_numbers) for group, group_numbers in by_group.items()})
            # The mean of equal numbers is just such a number: a price, not a figure about several rows.
            self._figures.append(
                {
                    group: fsum(group_numbers) / len(group_numbers)
                    for group, group_numbers in by_group.items()
                    if len(set(group_numbers)) > 1
                }
            )

    def are_all_in(self, columns: Iterable[Numbers]) -> bool:
        """Whether a column has nothing but one kind of these figures.

        It adds up to all rows, so it need not say which figure is of which group.
        """
        sorted_figures = [sorted(figures.values()) for figures in self._figures]
        return any(
            _are_sums([n for n in column if n is not None], figures) for column in columns for figures in sorted_figures
        )

    def are_named_in(self, names: Sequence[Any], columns: Iterable[Numbers]) -> bool:
        """Whether each row has the figure of the group that it names, and groups of several rows are among them."""
        labels = list(map(self._group_of, names))
        return bool(labels) and any(self._are_named(labels, column, f) for column in columns for f in self._figures)

    def _are_named(self, labels: Sequence[Any], numbers: Numbers, sums: Mapping[Any, float]) -> bool:
        """Whether labelled numbers are the figures of the groups of those labels: at most one row may be of no group,
        no label or figure may be all there is, and at least half of the groups must have several rows."""
        labelled = [(label, n) for label, n in zip(labels, numbers, strict=True) if n is not None and label in sums]
        of_several_rows = sum(self._counts[label] >= _SEVERAL for label, _ in labelled)
        if of_several_rows < _SEVERAL or of_several_rows * 2 < len(labelled) or len(labelled) + 1 < len(labels):
            return False
        if len({label for label, _ in labelled}) < len(labelled) or len({n for _, n in labelled}) < _SEVERAL:
            return False
        return all(_equal_when_rounded(number, sums[label]) for label, number in labelled)


def _month_of(value: Any) -> tuple[int, int] | None:
    """Return the year and month of a date; None for other values."""
    return (value.year, value.month) if isinstance(value, date) else None


def _year_of(value: Any) -> int | None:
    """Return the year of a date; None for other values."""
    return value.year if isinstance(value, date) else None


def _are_sums(numbers: list[float], sums: list[float]) -> bool:
    """Whether these numbers are all among the sums, but for their own total at the end, and not by chance."""
    if len(numbers) > _SEVERAL and _equal_when_rounded(numbers[-1], fsum(numbers[:-1])):
        numbers = numbers[:-1]
    distinct = set(numbers)
    precise = sum(abs(n) >= _LARGE_SUM or n != round(n) for n in distinct)
    if len(distinct) < _SEVERAL or (
        precise < _SEVERAL and (len(distinct) < _FEW_BY_CHANCE or len(numbers) != len(sums))
    ):
        return False
    return len(numbers) <= len(sums) and all(_is_among(number, sums) for number in numbers)


def _is_among(number: float, sums: Sequence[float]) -> bool:
    """Whether a number is one of these sums, which are sorted, as far as rounding allows."""
    position = bisect_left(sums, number)
    return any(_equal_when_rounded(number, other) for other in sums[max(0, position - 1) : position + 1])
