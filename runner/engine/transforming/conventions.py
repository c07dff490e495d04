"""Decides each column's conventions (decimal sign, date order, unit) from all its values, before any is transformed.

A decimal sign or a date order decided from the first rows would silently misread later ones. The rows are spooled
anyway, so each table's numeric and date columns are scanned once more, by column. What one column proves also counts as
evidence for the others of its table.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.mapping.headers import words
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.reading import Block, Shown, blocks_of
from runner.engine.reading.spool import SpooledSheet
from runner.engine.surveying.surveyed_input import SurveyedInput
from runner.engine.tables.sources import SourceTable, chunks
from runner.engine.tables.supplied import VALUE
from runner.engine.values import date_orders, decimal_signs
from runner.engine.values.convention_choices import ColumnSurroundings, Convention, ConventionChoice
from runner.engine.values.decisions import Tally, add_cells, decide_convention, make_tally
from runner.engine.values.tallies import DateTally, NumberTally, Signature

_PERCENT_WORD = re.compile(r"%|\bpercent|\bpct\b|\bprozent", re.IGNORECASE)
_BIRTH_WORDS: Final = frozenset({"birth", "born", "geb"})
_NUMBERS: Final = frozenset({int, float, Shown})
_TRIAL_BLOCKS: Final = 2  # first blocks in which a column may prove uniform
_STRIDES: Final = (7, 11, 5, 13)
_LEAST_SHARE_OF_NUMBERS: Final = (
    0.8  # share of a column's texts that must be numbers for it to count as evidence for others
)
# Takes a table, the position of a column, and what was decided about it; returns what a person or the memory says
# instead, or the same.
Override = Callable[[MappedTable, int, Convention, list[ConventionChoice]], tuple[Convention, list[ConventionChoice]]]
Tallies = dict[int, Tally]  # by the position of the column in the table's chunks


def _surround_column(
    field: Field,
    votes: ColumnSurroundings,
    columns: Sequence[tuple[int, str]],
    shown_units: Counter[str],
    delimiter: object,
) -> ColumnSurroundings:
    """Collect what is known about a column beside its values: `votes` of other columns, and what headers, number
    formats and the file's delimiter say.

    `columns`: those of the sheet that it has its values from, with their headers.
    """
    header = ", ".join(name for _, name in columns)
    return votes._replace(
        delimiter=delimiter if isinstance(delimiter, str) else None,
        percent_header=_PERCENT_WORD.search(header) is not None,
        units=_without_commas(shown_units),
        births=field.type in ("date", "datetime") and _is_about_births(header, field),
    )


def decide(
    source: SurveyedInput,
    tables: Sequence[MappedTable],
    fields: Sequence[Field],
    findings: Findings,
    *,
    override: Override = lambda _table, _index, convention, choices: (convention, choices),
) -> None:
    """Set `conventions`, `units` and `beside` of every table, and record each choice in `findings`.

    `override` has the last word on each column.
    """
    by_name = {f.name: f for f in fields}
    tallied = [(table, _tally_columns(table, by_name)) for table in tables]
    witnesses = [_collect_witnesses(table, tallies) for table, tallies in tallied]
    for at, (table, tallies) in enumerate(tallied):
        if any(isinstance(tally, NumberTally) for tally in tallies.values()):
            table.beside = _texts_about(table.source)
        elsewhere = _add_up_votes([v for n, others in enumerate(witnesses) if n != at for v in others.values()])
        decided = set[int]()
        for field_name, index in table.read_as():
            field = by_name[field_name]
            if index not in tallies or index in decided:
                continue
            decided.add(index)
            columns = _columns_of_sheet(table.source, index)
            shown_units = _count_units(table.source, columns)
            table.units[index] = shown_units + Counter(getattr(tallies[index], "currencies", ()))
            votes = _outweigh(_add_up_votes([v for n, v in witnesses[at].items() if n != index]), elsewhere)
            around = _surround_column(field, votes, columns, shown_units, source.notes.get("delimiter"))
            convention, choices = decide_convention(field, tallies[index], around)
            if index < len(table.source.columns):
                convention, choices = override(table, index, convention, choices)
            table.conventions[index] = convention
            for choice in choices:
                _record_choice(choice, table.source, index, field, findings)


def _texts_about(source: SourceTable) -> list[tuple[int, int, str]]:
    """Return the texts around a table that may be about it, with row and column; not the values of labels, which are
    names."""
    values = {(cell.row, cell.column) for cell in source.labelled.values()}
    return [text for text in source.texts_beside() if text[:2] not in values]


def _is_about_births(header: str, field: Field) -> bool:
    """Whether a column's header or one of its field's names speaks of births."""
    return any(not _BIRTH_WORDS.isdisjoint(words(name)) for name in (header, *(name for name, _ in field.names)))


def _tally_columns(table: MappedTable, fields: dict[str, Field]) -> Tallies:
    """Count every value of the columns whose fields have conventions."""
    tallies: Tallies = {}
    field_at: dict[int, Field] = {}
    for name, index in table.read_as():
        tally = make_tally(fields[name])
        if tally is not None and index not in tallies and index < len(table.source.columns):
            tallies[index] = tally
            field_at[index] = fields[name]
    source = table.source
    if tallies:
        thinned = _count_all(source, tallies, thin=True)
        whole = {
            index: fresh
            for index, signature in thinned.items()
            if tallies[index].signature() != signature and (fresh := make_tally(field_at[index]))
        }
        if whole:  # a column that seemed uniform is not
            _count_all(source, whole, thin=False)
            tallies |= whole
    return tallies | _tally_added(table, fields)


def _tally_added(table: MappedTable, fields: dict[str, Field]) -> Tallies:
    """Count every value of fields that are not a column of the sheet; captions are texts without conventions."""
    source = table.source
    sheet_columns = len(source.columns)
    places = {what: name for name, what in table.supplied.items() if what == VALUE or what in source.labelled}
    fresh = {source.place_of(what): make_tally(fields[name]) for what, name in places.items()}
    tallies = {at: tally for at, tally in fresh.items() if tally is not None and at >= sheet_columns}
    for _, rows in chunks([source]) if tallies else ():
        for at, tally in tallies.items():
            add_cells(tally, rows.columns[at] if at == source.place_of_values else rows.columns[at][:1])
    for tally in tallies.values():
        tally.count_pending()
    return tallies


def _columns_of_sheet(source: SourceTable, index: int) -> list[tuple[int, str]]:
    """Return the columns of the sheet, and their headers, that a column of the chunks has its values from."""
    if index < len(source.columns):
        return [(source.columns[index].index, source.columns[index].name)]
    return (
        [(spread_column.index, spread_column.name) for spread_column in source.spread]
        if index == source.place_of_values
        else []
    )


def _count_all(source: SourceTable, tallies: Tallies, *, thin: bool) -> dict[int, Signature]:
    """Add all values of a table's columns to their tallies.

    With `thin`, a column that proves uniform in its first blocks is only sampled from there on. Returns the signature
    of each such column at that point: if the samples change it, the whole column must be tallied.
    """
    sheet_columns = {index: source.columns[index].index - 1 for index in tallies}
    thinned: dict[int, Signature] = {}
    start = None
    for number, block in enumerate(_blocks_with(source, set(sheet_columns.values()))):
        first, last = bisect_left(block.numbers, source.top), bisect_right(block.numbers, source.bottom)
        if first >= last:
            if block.numbers[0] > source.bottom:
                break
            continue
        start = number if start is None else start
        stride = _STRIDES[number % len(_STRIDES)]  # varying strides catch periodic values
        for index, tally in tallies.items():
            if sheet_columns[index] >= len(block.columns):
                continue
            column = block.columns[sheet_columns[index]]
            if index in thinned:
                add_cells(tally, column[first + number % stride : last : stride])
                continue
            add_cells(tally, column if last - first == len(column) else column[first:last])
            if thin and number - start < _TRIAL_BLOCKS and tally.count_pending().is_uniform():
                thinned[index] = tally.signature()
    for tally in tallies.values():
        tally.count_pending()
    return thinned


def _count_units(source: SourceTable, columns: Sequence[tuple[int, str]]) -> Counter[str]:
    """Count the numbers of these columns whose format shows a unit, by unit."""
    return sum((_count_units_of(source, column) for column, _ in columns), Counter())


def _count_units_of(source: SourceTable, column: int) -> Counter[str]:
    """Count the numbers of a column of the sheet whose format shows a unit, by unit.

    Beside percents it also counts, as "", those that show none.
    """
    runs_by_unit = source.sheet.layout().units.get(column)
    units: Counter[str] = Counter()
    if not runs_by_unit:
        return units
    pending = {unit: deque(zip(runs[::2], runs[1::2], strict=True)) for unit, runs in runs_by_unit.items()}
    numbers = 0
    for block in _blocks_with(source, {column - 1}):
        if block.numbers[0] > source.bottom:
            break
        cut = block.within(source.top, source.bottom)
        if not cut.numbers or column > len(cut.columns):
            continue
        numbers += _count_numbers(cut.columns[column - 1]) if "%" in pending else 0
        for unit, runs in pending.items():
            while runs and runs[0][0] <= cut.numbers[-1]:
                first, last = runs[0]
                (values,) = Block(cut.numbers, [cut.columns[column - 1]]).within(first, last).columns
                units[unit] += _count_numbers(values)
                if last > cut.numbers[-1]:
                    break
                runs.popleft()
    if units["%"]:
        units[""] = max(0, numbers - units.total())
    return +units


def _without_commas(units: Counter[str]) -> Counter[str]:
    """Return the same counts by the names of units, without the commas that divide by a thousand."""
    counts: Counter[str] = Counter()
    for unit, count in units.items():
        if (name := unit.lstrip(",")) or not unit:
            counts[name] += count
    return counts


def _count_numbers(values: Sequence[object]) -> int:
    """Count the values that are numbers other than zero, which is the same in every unit."""
    return sum(map(_NUMBERS.__contains__, map(type, filter(None, values))))


def _blocks_with(source: SourceTable, columns: Collection[int]) -> Iterator[Block]:
    """Yield the blocks of a sheet with at least the wanted columns (0-based), only those if it is spooled."""
    sheet = source.sheet
    if isinstance(sheet, SpooledSheet) and sheet.complete:
        return sheet.columns(columns)
    return blocks_of(sheet)


def _collect_witnesses(table: MappedTable, tallies: Tallies) -> dict[int, ColumnSurroundings]:
    """Return, by position, what each column by itself proves: from all values if it is tallied, else from its
    sample."""
    witnesses: dict[int, ColumnSurroundings] = {}
    for index, sample in enumerate(table.samples):
        tally = tallies.get(index)
        numbers = tally if isinstance(tally, NumberTally) else None
        dates = tally if isinstance(tally, DateTally) else None
        if tally is None:
            numbers, dates = NumberTally(), DateTally()
            add_cells(numbers, sample)
            add_cells(dates, sample)
            numbers.count_pending()
            dates.count_pending()
            if numbers.numbers < _LEAST_SHARE_OF_NUMBERS * numbers.texts:
                numbers = None
        decimal = decimal_signs.proven_decimal(numbers) if numbers else None
        order = date_orders.proves_day_first(dates) if dates else None
        witnesses[index] = ColumnSurroundings(
            decimal_point=decimal == ".",
            decimal_comma=decimal == ",",
            day_first=order is True,
            month_first=order is False,
            dotted_dates=dates is not None and bool(dates.dotted.first_numbers),
        )
    return witnesses


def _outweigh(here: ColumnSurroundings, elsewhere: ColumnSurroundings) -> ColumnSurroundings:
    """Weigh the evidence of a table's other columns double, over that of the other tables, which counts where it has
    none."""
    return ColumnSurroundings(
        decimal_point=2 * here.decimal_point or elsewhere.decimal_point,
        decimal_comma=2 * here.decimal_comma or elsewhere.decimal_comma,
        day_first=2 * here.day_first or elsewhere.day_first,
        month_first=2 * here.month_first or elsewhere.month_first,
        dotted_dates=here.dotted_dates or elsewhere.dotted_dates,
    )


def _add_up_votes(witnesses: Sequence[ColumnSurroundings]) -> ColumnSurroundings:
    """Count how many of the columns prove each convention."""
    return ColumnSurroundings(
        decimal_point=sum(witness.decimal_point for witness in witnesses),
        decimal_comma=sum(witness.decimal_comma for witness in witnesses),
        day_first=sum(witness.day_first for witness in witnesses),
        month_first=sum(witness.month_first for witness in witnesses),
        dotted_dates=any(witness.dotted_dates for witness in witnesses),
    )


def _record_choice(choice: ConventionChoice, source: SourceTable, index: int, field: Field, findings: Findings) -> None:
    """Record how a column is read, and report it unless it is sure."""
    findings.chose(
        choice.kind,
        choice.chosen,
        evidence=choice.evidence,
        sure=choice.sure,
        code=choice.code,
        message=choice.message,
        settle=choice.settle,
        place=source.place,
        column=columns[0][0] if (columns := _columns_of_sheet(source, index)) else None,
        field=field.name,
        count=choice.values,
    )
