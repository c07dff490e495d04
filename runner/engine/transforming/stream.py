"""Passes 3 to 5 over the chunks of a table: transform, validate, write.

A job whose manifest has `rows` leaves rows out between the passes 3 and 4: by its filter at once, by their key when all
rows have been seen. What is computed from several values (`transforming/computing.py`) belongs to pass 3.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import ne
from time import perf_counter
from typing import Any, Final, NamedTuple

from runner.engine.common import a1
from runner.engine.common.blanks import blank_count
from runner.engine.common.fields import Field
from runner.engine.expressions.evaluation import Columns, evaluate_expression
from runner.engine.expressions.signatures import Expression
from runner.engine.mapping.output_layout import TablePlan
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.memory.drift import Shares
from runner.engine.options import DUPLICATE, FILTERED, SplitOff
from runner.engine.reading import CellError, NoCachedValue
from runner.engine.rules.call import Rule
from runner.engine.rules.columns import Cells
from runner.engine.tables import filling
from runner.engine.tables.filling import FilledDown
from runner.engine.tables.sources import Rows
from runner.engine.tables.supplied import NAME, VALUE
from runner.engine.transforming.computing import MappedValues, RowRemark
from runner.engine.transforming.holding import Chunk
from runner.engine.transforming.pipeline import Pipeline, write_rows
from runner.engine.transforming.row_rules import ColumnSum
from runner.engine.values.checking import SPREAD, CellColumn, CellProblem, ChunkReporter
from runner.engine.values.convert import REMARKS, Converted, Converter, text_of

_NAMED: Final = 20  # columns listed in a finding


class _BlankedValues(NamedTuple):
    """Values that a rule replaced by blanks."""

    first_row: int  # of the sheet
    values: int


class TableStream:
    """Runs the chunks of one table through the passes, counts over them, and reports the counts at the end.

    `feed` takes the chunks in the order of the sheet; the `report_` methods follow, once, after the last one.
    In all methods `n` is a column of the output, `index` or `at` the position of a column in the table's chunks, and
    `column` a column of the sheet (1-based). `output` and `bad_cells` are aligned with the output's columns: the values
    of each for the rows of a chunk, and the indexes of rows whose value is not of its type.
    """

    def __init__(self, pipeline: Pipeline, table: MappedTable, plan: TablePlan, allowed: Mapping[str, Any]) -> None:
        """Plan how each output column gets its values from this table; no row is read yet.

        `allowed`: the values of lookup tables, by field, for fields that allow only these.
        """
        self._pipeline = pipeline
        self._table = table
        self.table_id = table.source.id
        self.sources = plan.sources  # by output column: its position in the chunks; None without a column of its own
        self._sheet_columns = len(table.source.columns)  # positions from here on are of added columns
        self._late_columns: list[int] = []  # output columns whose rule runs after all others have their values
        self._points_at: dict[int, int] = {}  # output column without a source -> the column of the sheet to point at
        self._combined = self._converters_of_combined()
        fields = [column.field for column in pipeline.columns]
        maps = ((n, field.value_map) for n, field in enumerate(fields) if field is not None)
        self._value_maps = {n: MappedValues(value_map) for n, value_map in maps if value_map is not None}
        self._column_by_field = {field.name: n for n, field in enumerate(fields) if field is not None}
        self.converters = [
            self._choose_converter(n, column.field, index, allowed)
            for n, (column, index) in enumerate(zip(pipeline.columns, plan.sources, strict=True))
        ]
        columns = [self._column_of_sheet(n) for n in range(len(pipeline.columns))]
        # By output column: the merged cells in its column of the sheet.
        self._merged_cells = [[] if at is None else filling.of_column(table.source.merged, at) for at in columns]
        self._position_of = {column.index: at for at, column in enumerate(table.source.columns)}
        self.filled_down: dict[int, FilledDown] = {}  # by output column: blank cells that took the value above
        labelled = table.source.labelled
        self._cells_outside_table = {
            name: (cell.row, cell.column) for name, what in table.supplied.items() if (cell := labelled.get(what))
        }
        late = {name for name, n in self._column_by_field.items() if n in self._late_columns}
        # Names of computed fields: before and after those whose rule is late.
        self._computed_first, self._computed_last = pipeline.computations.split_around(late)
        self._choose_columns_to_point_at()
        self._remarks: list[RowRemark] = []  # of the chunk that is being transformed
        self.sums: list[ColumnSum] = []  # set by the caller, for rules that compare sums
        self._reported: set[tuple[int, str]] = set()  # output columns and codes of findings that are reported once
        self.changed = [0] * len(pipeline.columns)  # by output column: values that differ from the source
        self.total = [0] * len(pipeline.columns)  # and values that there were
        self.rows = 0  # of the output
        self.source_rows = 0  # of the sheet that these come from
        self.partly = 0  # rows that columns of these became, and that the manifest's `rows` leaves out
        self.shares = Shares(self._sheet_columns)
        self.filled = table.is_mapped  # whether any field has got a value
        self._blanked_by_rules: dict[tuple[int, Rule], _BlankedValues] = {}  # by output column and rule
        self.present = [0] * len(pipeline.columns)  # values after all rules, if there are any
        self.records = 0  # rows that stay, with errors or without
        columns_of_fields = [(n, column.field) for n, column in enumerate(pipeline.columns) if column.field is not None]
        # Columns in which no row has a value so far.
        self._valueless = [n for n, field in columns_of_fields if field.declared]
        self._limited_blanks = {n: 0 for n, field in columns_of_fields if field.max_blank_share is not None}
        used = {*plan.sources, *(at for parts in self._combined.values() for at, _ in parts)}
        # Column that is not in the output -> its non-blank cells.
        self.cells_left_out = {n: 0 for n in range(len(table.source.columns)) if n not in used}

    def _choose_converter(
        self, n: int, field: Field | None, index: int | None, allowed: Mapping[str, Sequence[Any]]
    ) -> Converter | None:
        """Choose what converts an output column, None if it gets no values; `index`: None without a column of its own.

        Adds the column to `_late_columns` if its rule has to wait for the values of the others.
        """
        if field is None:
            return None
        rule = self._pipeline.package.transforms.get(field.name)
        combined = self._combined.get(n)
        has_column = index is not None or combined is not None
        if rule is not None and not field.is_computed and (rule.sees_others or not has_column):
            self._late_columns.append(n)
        if rule is None and not has_column and not field.is_computed:
            return None
        if combined is not None:
            return combined[0][1]
        converter = Converter(field) if index is None else self._table.converter(field, index)
        if field.name in allowed:
            converter.use_allowed(allowed[field.name])
        if learnt := self._pipeline.spellings.get(field.name):
            converter.use_spellings(learnt)
        return converter

    def _converters_of_combined(self) -> dict[int, list[tuple[int, Converter]]]:
        """For output columns that several columns fill: the position and the converter of each."""
        combinations = {}
        for n, column in enumerate(self._pipeline.columns):
            if column.field is not None and (positions := self._table.combined.get(column.field.name)):
                combinations[n] = [(at, self._table.converter(column.field, at)) for at in positions]
        return combinations

    def _choose_columns_to_point_at(self) -> None:
        """Set which column a finding names on a field that has no column of its own: the first that it is made of."""
        columns = self._table.source.columns
        for n, combined in self._combined.items():
            first_position, _ = combined[0]
            self._points_at[n] = columns[first_position].index
        for name in self._pipeline.computations.order:
            uses = (
                self._column_of_sheet(self._column_by_field[used]) for used in self._pipeline.computations.uses(name)
            )
            at = next((column for column in uses if column is not None), None)
            if at is not None:
                self._points_at[self._column_by_field[name]] = at

    def _point_at_used_cells(self, name: str, reporter: ChunkReporter) -> None:
        """Have findings on a computed field name the cells of the field that it points at, if these differ by row."""
        used = (self._column_by_field[used] for used in self._pipeline.computations.uses(name))
        first_used = next((n for n in used if self._column_of_sheet(n) is not None), None)
        if first_used is not None and first_used in reporter.chosen:
            reporter.chosen[self._column_by_field[name]] = reporter.chosen[first_used]

    def feed(self, rows: Rows) -> None:
        """Transform a chunk and count over it; validate and write it too, unless its rows have to wait for others."""
        pipeline, count = self._pipeline, len(rows.numbers)
        reporter = self.reporter(rows.numbers, rows.value_columns)
        if rows.filled:
            self._count_filled_down(rows.filled)
        clock = perf_counter()
        output, bad_cells = self._transform_chunk(rows, reporter, count)
        self.shares.add(rows.columns, count)
        for n, wrong in enumerate(bad_cells):
            if wrong and (at := self.sources[n]) is not None and at < self._sheet_columns:
                self.shares.wrong[at] += len(wrong)
        pipeline.times.spend("transform", clock)
        for n in self.cells_left_out:
            self.cells_left_out[n] += count - blank_count(rows.columns[n])
        if not self.filled:
            self.filled = any(values.count(None) < count for values in self._by_field(output).values())
        if self.sums:
            totals = {n for n, row in enumerate(rows.numbers) if row in self._table.source.table.totals}
            for column_sum in self.sums:
                column_sum.add(self._by_field(output), self._bad_cells_by_field(bad_cells), totals)
        chunk = Chunk(
            rows.numbers, output, bad_cells, self._remarks, reporter.errors, rows.value_columns, chosen=reporter.chosen
        )
        self._remarks = []
        if pipeline.filter is not None:
            chunk = self._filter_rows(pipeline.filter, chunk, reporter)
        if pipeline.held is not None:
            pipeline.held.add(self.table_id, chunk)
        else:
            self.finish(chunk)
        if pipeline.values is not None:
            source = self._table.source
            values_by_column = {column.index: rows.columns[at] for at, column in enumerate(source.columns)}
            at = source.place_of_values
            spread = [] if at is None else list(zip(rows.value_columns, rows.columns[at], strict=True))
            pipeline.values.collect_cells(source.place.table, rows.numbers, values_by_column, spread)

    def _filter_rows(self, expression: Expression, chunk: Chunk, reporter: ChunkReporter) -> Chunk:
        """Leave out the rows for which the filter is false, and flag those that it cannot judge, which stay."""
        columns = Columns(
            self._by_field(chunk.columns), self._bad_cells_by_field(chunk.wrong), len(chunk.numbers)
        )  # fmt: skip
        judged = evaluate_expression(expression, columns)
        unsure = [n for n, holds in enumerate(judged.values) if holds is None]
        if unsure:
            used = (self._column_by_field[name] for name in expression.fields)
            first = next((at for n in used if (at := self._cell_column(n, reporter))), None)
            what = "rows.filter is neither true nor false for this row, which is kept; to settle it: coalesce(…) in it"
            reporter.flag(unsure, "filter_unsure", "warning", what, column=first, field=None, rule="rows.filter")
        if False not in judged.values:
            return chunk
        return self._reduce_to_rows(chunk, [n for n, v in enumerate(judged.values) if v is not False], FILTERED)

    def _reduce_to_rows(self, chunk: Chunk, indexes: Sequence[int], kind: str) -> Chunk:
        """Return a chunk of only the rows with these indexes; notes in the table's ledger the rows of the sheet
        of which none stays.

        `kind`: why the others are removed.
        """
        stay = chunk.only(indexes)
        gone = set(chunk.numbers).difference(stay.numbers)
        self._table.source.removed[kind].add(sorted(gone))
        return stay

    def without_duplicates(self, chunk: Chunk, gone: bytearray) -> Chunk:
        """Return the chunk without the rows that are 1 in `gone`, of which another one with the same key stays; notes
        them in the table's ledger."""
        if 1 not in gone:
            return chunk
        return self._reduce_to_rows(chunk, [i for i, is_gone in enumerate(gone) if not is_gone], DUPLICATE)

    def flag_tied(self, chunk: Chunk, indexes: Sequence[int], by: str) -> None:
        """Flag rows that stay though another row with their key is as new by the field `by`."""
        reporter = self.reporter(chunk.numbers, chunk.value_columns, chunk.chosen)
        what = f"is as new as another row with its key; the last of them stays; to settle it: a {by} that differs"
        at = self._cell_column(self._column_by_field[by], reporter)
        reporter.flag(indexes, "dedupe_tied", "warning", what, column=at, field=by, rule="rows.dedupe")

    def finish(self, chunk: Chunk) -> None:
        """Validate the rows of a chunk, set aside those that have errors as the manifest asks, and write the others.

        Adds to the stream's counts of rows. A chunk without rows changes nothing.
        """
        pipeline, count, output = self._pipeline, len(chunk.numbers), chunk.columns
        if not count:
            return
        clock = perf_counter()
        self._count_blanks(output, count)
        reporter = self.reporter(chunk.numbers, chunk.value_columns, chunk.chosen)
        reporter.errors = chunk.errors
        self._flag_remarks(chunk.remarks, reporter)
        self._validate(output, chunk.wrong, reporter, count)
        if reporter.errors:
            pipeline.errors.add(self._table.source, _errors_by_row(reporter))
            if rejected := _rows_to_split_off(reporter, pipeline.splits_off):
                self._table.source.split_off.add(sorted(rejected))
                stay = [i for i in range(count) if reporter.rows[i] not in rejected]
                output, count = [[values[i] for i in stay] for values in output], len(stay)
                value_columns = [chunk.value_columns[i] for i in stay] if chunk.value_columns else ()
                chosen = {n: [columns[i] for i in stay] for n, columns in chunk.chosen.items()}
                reporter = self.reporter([reporter.rows[i] for i in stay], value_columns, chosen)
        clock = pipeline.times.spend("validate", clock)
        if count:
            self._write(output, reporter, count)
            pipeline.times.spend("write", clock)
        self.rows += count
        source_rows = set(reporter.rows) if chunk.value_columns else ()
        self.source_rows += len(source_rows) if chunk.value_columns else count
        self.partly += sum(left for row, left in chunk.partly.items() if row in source_rows)
        # The rows themselves are gone; these are their values.
        if pipeline.values is not None and pipeline.held is not None:
            computed = {self._column_by_field[name] for name in pipeline.computations.order}
            values_by_column = {
                at: values
                for n, values in enumerate(chunk.columns)
                if n not in computed and (at := self._column_of_sheet(n))
            }
            for n in self._combined.keys() & chunk.chosen.keys():
                values_by_column |= dict.fromkeys(chunk.chosen[n], chunk.columns[n])
            pipeline.values.collect_cells(self._table.source.place.table, chunk.numbers, values_by_column)

    def _flag_remarks(self, remarks: Sequence[RowRemark], reporter: ChunkReporter) -> None:
        """Flag what was remarked on while the rows were transformed, except on columns without a field."""
        for remark in remarks:
            field = self._pipeline.columns[remark.column].field
            if field is not None:
                about = remark.column if remark.points_at is None else remark.points_at
                at = self._cell_column(about, reporter)
                reporter.flag(
                    remark.indexes, remark.code, field.severity, remark.what, column=at, field=field.name,
                    rule=remark.rule,
                )  # fmt: skip

    def reporter(
        self, rows: list[int], value_columns: Sequence[int], chosen: Mapping[int, Sequence[int]] | None = None
    ) -> ChunkReporter:
        """Make what reports findings about these rows; the other arguments are as in a Chunk."""
        return ChunkReporter(
            self._pipeline.findings, self._table.source.place, rows, value_columns=value_columns, chosen=chosen,
            cells_outside_table=self._cells_outside_table,
        )  # fmt: skip

    def report_filled_down(self) -> None:
        """Report how many blank cells took the value above, by column."""
        for n, (row, count) in self.filled_down.items():
            field = self._pipeline.columns[n].field
            cells = "blank cell" if count == 1 else "blank cells"
            self._pipeline.findings.add(
                "filled_down", "info", f"{count:,} {cells} took the value above, as fill_down asks",
                place=self._table.source.place, row=row, column=self._column_of_sheet(n),
                field=field.name if field else None, rule="fill_down", count=count,
            )  # fmt: skip

    def _count_filled_down(self, filled: Mapping[int, FilledDown]) -> None:
        """Count the blank cells that took the value above, by output column."""
        for n, index in enumerate(self.sources):
            if index is not None and index in filled and self._pipeline.columns[n].field is not None:
                first, count = self.filled_down.get(n, FilledDown(filled[index].first, 0))
                self.filled_down[n] = FilledDown(first, count + filled[index].cells)

    def _count_blanks(self, output: list[list[Any]], count: int) -> None:
        """Update which fields have no value so far, and count the blanks of those with a limit on them."""
        self.records += count
        if self._valueless:
            self._valueless = [n for n in self._valueless if output[n].count(None) == count]
        for n in self._limited_blanks:
            self._limited_blanks[n] += blank_count(output[n])

    @property
    def valueless(self) -> list[str]:
        """List the declared fields that have no value in any row."""
        return [column.field.name for n in self._valueless if (column := self._pipeline.columns[n]).field is not None]

    @property
    def blanks_by_limited_field(self) -> dict[str, int]:
        """Count the blanks of the fields that `max_blank_share` limits."""
        columns = self._pipeline.columns
        return {
            field.name: blanks for n, blanks in self._limited_blanks.items() if (field := columns[n].field) is not None
        }

    def _write(self, output: list[list[Any]], reporter: ChunkReporter, count: int) -> None:
        """Write rows at once, or hold them back to be sorted."""
        pipeline = self._pipeline
        if pipeline.ordered is None:
            write_rows(pipeline, output, count, partial(self.flag_written, reporter))
        elif pipeline.sheet is not None or pipeline.data is not None:
            value_columns = reporter.value_columns or [0] * count
            # `write_sorted` takes the last three columns off again.
            pipeline.ordered.add([*output, reporter.rows, [self.table_id] * count, [*value_columns]], count)

    def flag_written(
        self, reporter: ChunkReporter, n: int, indexes: list[int], code: str, *, severity: str, what: str
    ) -> None:  # fmt: skip
        """Flag cells of an output column that were not written as they are."""
        self._flag_cells(n, reporter, indexes, code, severity=severity, what=what, rule="write")

    def report_left_out(self) -> None:
        """Report columns of the table that have values and are not in the output, all in one finding."""
        source = self._table.source
        lost = [at for at, cells in self.cells_left_out.items() if cells]
        if not lost:
            return
        letters = [a1.letters(source.columns[at].index) for at in lost[:_NAMED]]
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        cells = sum(self.cells_left_out.values())
        self._pipeline.findings.add(
            "columns_dropped", "info",
            f"unmapped columns are left out, as mapping.unmapped asks: {', '.join(letters)}{more}; "
            f"non-blank cells in them: {cells}",
            place=source.place, rule="mapping", count=len(lost),
        )  # fmt: skip

    def report_unmapped(self, elsewhere: Collection[str]) -> None:
        """Report fields that got no column here, nor values from anywhere else; missing_field reports required ones.

        `elsewhere`: fields that have a column in some table.
        """
        fields = ((n, column.field) for n, column in enumerate(self._pipeline.columns))
        lacking = [field for n, field in fields if field is not None and self._lacks_values(n, field)]
        if lacking and self._table.is_mapped:
            self._table.report_unmapped(lacking, self._pipeline.findings, elsewhere)

    def _lacks_values(self, n: int, field: Field) -> bool:
        """Whether a field that should have a column has none, and no values from anywhere else."""
        has_column = self.sources[n] is not None or self.converters[n] is not None
        has_values = self.present[n] > 0 or _value_without_column(field) is not None
        should_have_one = field.declared and field.needs_some_column and not field.required and not field.optional
        return should_have_one and not has_column and not has_values

    def report_blank(self) -> None:
        """Report fields whose column has no value in any row; not required ones, of which each row is reported
        already."""
        shares = self.shares
        if not shares.rows:
            return
        # Columns whose values the field may have been meant for: mostly full, and mostly of another type.
        full = [at for at, blank in enumerate(shares.blank) if blank * 2 <= shares.rows]
        wrong = [at for at in full if shares.wrong[at] * 2 > shares.rows - shares.blank[at]]
        for n, column in enumerate(self._pipeline.columns):
            field, at = column.field, self.sources[n]
            if field is None or at is None or at >= self._sheet_columns:
                continue
            is_blank = shares.blank[at] >= shares.rows and not self.present[n]
            may_be_blank = not field.declared or field.required or field.optional
            if is_blank and not may_be_blank and _value_without_column(field) is None:
                self._table.report_blank(field, at, self._pipeline.findings, full, wrong)

    def report_blanked(self) -> None:
        """Report columns in which rules replaced values by blanks: a warning if no value is left, or none may be meant.

        A function that ends without a `return` yields None just as one that means a blank.
        """
        for (n, rule), (row, count) in self._blanked_by_rules.items():
            field, may_lack_return = self._pipeline.columns[n].field, rule.returns == "sometimes"
            what = f"{rule.name} blanked {count:,} {'value' if count == 1 else 'values'}"
            what += "" if self.present[n] else "; no value of the column is left"
            if may_lack_return:
                what += "; it can end without a return; to settle it: return the value, or None for a blank"
            self._pipeline.findings.add(
                "transform_blanked", "info" if self.present[n] and not may_lack_return else "warning", what,
                place=self._table.source.place, row=row, column=self._column_of_sheet(n) or None,
                field=field.name if field else None,
                rule=rule.name, file=rule.file, line=rule.line, count=count,
            )  # fmt: skip

    def _count_blanked(self, n: int, rule: Rule, before: list[Any], after: list[Any], reporter: ChunkReporter) -> None:
        """Count values that a rule replaced by blanks, with the first row in which it did."""
        blanked = [i for i, v in enumerate(after) if v is None and before[i] is not None]
        if blanked:
            first_row, earlier = self._blanked_by_rules.get((n, rule), (reporter.rows[blanked[0]], 0))
            self._blanked_by_rules[n, rule] = _BlankedValues(first_row, earlier + len(blanked))

    def _flag_cells(
        self, n: int, reporter: ChunkReporter, indexes: list[int], code: str, *, severity: str, what: str,
        rule: str | None, at: int | None = None,
    ) -> None:  # fmt: skip
        """Flag cells of an output column where they are in the sheet.

        `at`: the position of the column in the chunks, where they are from one of several.
        """
        field = self._pipeline.columns[n].field
        name = field.name if field else None
        column = self._cell_column(n, reporter) if at is None else self._table.source.columns[at].index
        reporter.flag(indexes, code, severity, what, column=column, field=name, rule=rule)

    def _column_of_sheet(self, n: int) -> int | None:
        """Return the column of the sheet that findings about an output column name; SPREAD: each row's own; None:
        none."""
        index, source = self.sources[n], self._table.source
        if index is None or index >= self._sheet_columns:
            is_spread = (
                index is not None and source.added[index - self._sheet_columns] in (NAME, VALUE) and source.spread
            )
            return SPREAD if is_spread else self._points_at.get(n)
        return source.columns[index].index

    def _cell_column(self, n: int, reporter: ChunkReporter) -> CellColumn:
        """Return where findings about the rows of a chunk are: one column for all rows, or one for each."""
        return reporter.chosen.get(n) or self._column_of_sheet(n)

    def _transform_chunk(
        self, rows: Rows, reporter: ChunkReporter, count: int
    ) -> tuple[list[list[Any]], list[list[int]]]:
        """Compute the values of each output column for a chunk, and the indexes of cells in it that are not of their
        type; fields that need others come after these."""
        converted = [self._convert_column(n, rows, reporter, count) for n in range(len(self._pipeline.columns))]
        output, bad_cells = [values for values, _ in converted], [wrong for _, wrong in converted]
        if self._computed_first:
            self._compute_declared(self._computed_first, output, bad_cells, reporter)
        for n in self._late_columns:
            self._run_late_rule(n, rows, output, bad_cells, reporter)
        if self._computed_last:
            self._compute_declared(self._computed_last, output, bad_cells, reporter)
        if self._pipeline.hooks.has("after_transform"):
            self._run_after_transform(output, bad_cells, reporter, count)
        if self._pipeline.package.files:
            for n, values in enumerate(output):
                self.present[n] += count - values.count(None)
        return output, bad_cells

    def _convert_column(self, n: int, rows: Rows, reporter: ChunkReporter, count: int) -> Converted:
        """Compute the values and bad cells of an output column: from its source column, from several, or its default.

        Counts its values and reports what is wrong with the cells.
        """
        field, index = self._pipeline.columns[n].field, self.sources[n]
        if index is None:
            if n in self._combined:
                return self._combine_columns(n, rows, reporter)
            return [_value_without_column(field)] * count, []
        raw = self._fill_merged(n, rows.columns, index, reporter)
        self._report_broken(raw, reporter, n)
        values, wrong = self._convert_to_type(n, raw, reporter) if field else (raw, [])
        self.total[n] += count - blank_count(raw)
        if (
            values is not raw and n not in self._late_columns and values != raw
        ):  # most chunks of a clean column are equal
            self.changed[n] += sum(map(ne, raw, values))
        return values, wrong

    def _fill_merged(self, n: int, columns: list[list[Any]], index: int, reporter: ChunkReporter) -> list[Any]:
        """Return the column at `index` with the values of merged cells repeated, if the field asks for it; else flag
        the blanks there, and return it as it is."""
        raw, field = columns[index], self._pipeline.columns[n].field
        covered: dict[int, Any] = {}
        for merges in self._merged_cells[n]:
            position = self._position_of.get(merges.left)
            if position is not None and (position == index or field is not None):
                covered |= merges.covered(reporter.rows, raw, columns[position])
        if not covered:
            return raw
        if field is not None and field.merged == "fill":
            return filling.fill_merged(raw, covered)
        self._flag_cells(
            n, reporter, sorted(covered), filling.CODE, severity="warning", what=filling.MESSAGE, rule="reading"
        )
        return raw

    def _combine_columns(self, n: int, rows: Rows, reporter: ChunkReporter) -> tuple[list[Any], list[int]]:
        """Compute the values and bad cells of a field that several columns fill: the first value that is there, or all
        of them as one text. Notes in `reporter.chosen` which column a first value is from."""
        field = self._pipeline.columns[n].field
        if field is None or field.source is None:
            return [], []
        converted: list[Converted] = []  # of each column
        remarks: list[list[RowRemark]] = []
        joins = field.source.options["combine"] == "join"
        for at, converter in self._combined[n]:
            raw = rows.columns[at]
            self._report_broken(raw, reporter, n, at)
            self.total[n] += len(raw) - blank_count(raw)
            read = self._convert_values if joins else self._map_and_convert
            earlier = len(self._remarks)
            converted.append(read(n, raw, converter, reporter, at))
            remarks.append(self._remarks[earlier:])
            del self._remarks[earlier:]
        if joins:
            separator = field.source.options["separator"]
            texts = ([text_of(v) for v in row if v is not None] for row in zip(*(c for c, _ in converted), strict=True))
            values: list[Any] = [separator.join(row) or None for row in texts]
            wrong: list[int] = []
            if n in self._value_maps:
                values, wrong = self._map_and_convert(n, values, self._combined[n][0][1], reporter)
        else:
            values, wrong, chosen = coalesce(converted)
            for i, of_column in enumerate(remarks):
                self._remarks += [one._replace(indexes=[r for r in one.indexes if chosen[r] == i]) for one in of_column]
            sheet_columns = [self._table.source.columns[at].index for at, _ in self._combined[n]]
            reporter.chosen[n] = [sheet_columns[i] for i in chosen]
        return self._apply_rule(n, values, wrong, self._combined[n][0][1], reporter)

    def _compute_declared(
        self, names: Sequence[str], output: list[list[Any]], bad_cells: list[list[int]], reporter: ChunkReporter
    ) -> None:  # fmt: skip
        """Compute fields from other fields of their rows, in this order, and set their columns in `output` and
        `bad_cells`; what cannot be computed becomes a remark about the rows that stay."""
        values_by_field = self._by_field(output)
        columns = Columns(values_by_field, self._bad_cells_by_field(bad_cells), len(reporter.rows))
        for name in names:
            n = self._column_by_field[name]
            field, converter = self._pipeline.columns[n].field, self.converters[n]
            if field is None or converter is None:
                continue
            made = self._pipeline.computations.compute(name, columns, values_by_field)
            self._point_at_used_cells(name, reporter)
            for failed_rows in made.failed:
                if failed_rows.indexes:
                    at = None if failed_rows.field is None else self._column_by_field[failed_rows.field]
                    self._remarks.append(
                        RowRemark(n, failed_rows.indexes, failed_rows.code, failed_rows.what, failed_rows.rule, at)
                    )
            values, wrong = self._map_and_convert(n, made.values, converter, reporter, is_typed=made.is_typed)
            rule = self._pipeline.package.transforms.get(name)
            if rule is not None:
                values = self._calls_of_rules(n, reporter, values_by_field).transform(rule, values)
                values, wrong = self._convert_result(n, values, converter, reporter)
            output[n] = values_by_field[name] = _fill_default(field, values)
            bad_cells[n] = sorted({*wrong, *made.wrong})
            columns.add(name, output[n], bad_cells[n])
            self.total[n] += len(reporter.rows)

    def _report_broken(self, raw: list[Any], reporter: ChunkReporter, n: int, column: int | None = None) -> None:
        """Flag cells with a spreadsheet error, or with a formula that has no stored result; `column`: its position."""
        kinds = set(map(type, raw))
        if CellError in kinds:
            indexes = [i for i, v in enumerate(raw) if type(v) is CellError]
            what = "contains a spreadsheet error such as #N/A"
            self._flag_cells(n, reporter, indexes, "cell_error", severity="warning", what=what, rule=None, at=column)
        if NoCachedValue in kinds:
            indexes = [i for i, v in enumerate(raw) if type(v) is NoCachedValue]
            what = "contains a formula without a stored result and was read as blank; open and save the file in Excel"
            self._flag_cells(
                n, reporter, indexes, "no_cached_value", severity="warning", what=what, rule=None, at=column
            )

    def _convert_to_type(self, n: int, raw: list[Any], reporter: ChunkReporter) -> tuple[list[Any], list[int]]:
        """Convert a column to its type, by its rule too unless that runs late; return also the indexes of bad cells,
        none for a column without a field."""
        field, converter = self._pipeline.columns[n].field, self.converters[n]
        if field is None or converter is None:
            return raw, []
        values, wrong = (
            self._map_and_convert(n, raw, converter, reporter)
            if self._value_maps
            else self._convert_values(n, raw, converter, reporter)
        )
        return self._apply_rule(n, values, wrong, converter, reporter)

    def _apply_rule(
        self, n: int, values: list[Any], wrong: list[int], converter: Converter, reporter: ChunkReporter
    ) -> tuple[list[Any], list[int]]:
        """Apply a column's Python rule, if it has one that needs no other field, and its default; return the values and
        the bad cells."""
        field = self._pipeline.columns[n].field
        if field is None:
            return values, wrong
        rule = self._pipeline.package.transforms.get(field.name)
        if rule is not None and n not in self._late_columns:
            computed = self._calls_of_rules(n, reporter, {}).transform(rule, values)
            computed, wrong = self._convert_result(n, computed, converter, reporter)
            self._count_blanked(n, rule, values, computed, reporter)
            values = computed
        return _fill_default(field, values), wrong

    def _run_late_rule(
        self, n: int, rows: Rows, output: list[list[Any]], bad_cells: list[list[int]], reporter: ChunkReporter
    ) -> None:
        """Run a late rule: one that reads other fields of its rows, or has no source column.

        Sets the field's column in `output` and `bad_cells`.
        """
        field, converter, index = self._pipeline.columns[n].field, self.converters[n], self.sources[n]
        if field is None or converter is None:
            return
        count = len(rows.numbers)
        has_values = index is not None or n in self._combined
        if index is not None:
            before = rows.columns[index]
        elif has_values:
            before = output[n]
        else:
            before = [field.constant] * count
        rule, cells = (
            self._pipeline.package.transforms[field.name],
            self._calls_of_rules(n, reporter, self._by_field(output)),
        )
        values = cells.transform(rule, output[n] if has_values else before)
        values, bad_cells[n] = self._convert_result(n, values, converter, reporter)
        if has_values:
            self._count_blanked(n, rule, output[n], values, reporter)
        output[n] = _fill_default(field, values)
        self.changed[n] += sum(map(ne, before, output[n]))
        self.total[n] += 0 if has_values else count

    def _map_and_convert(
        self,
        n: int,
        raw: list[Any],
        converter: Converter,
        reporter: ChunkReporter,
        at: int | None = None,
        *,
        is_typed: bool = False,
    ) -> Converted:
        """Convert a column to its type; cells that the field's `map` names become what it says.

        `at`: the position of the column, if it is one of several. `is_typed`: a lookup has converted what it could.
        Cells that the map lacks and must not lack become a remark about the rows that stay.
        """
        convert = self._convert_result if is_typed else self._convert_values
        value_map = self._value_maps.get(n)
        if value_map is None:
            return convert(n, raw, converter, reporter, at)
        cells = value_map.apply(raw)
        if cells.unknown:
            self._remarks.append(RowRemark(n, cells.unknown, "not_mapped", "is not in the field's map", "map"))
        values, wrong = convert(n, cells.unmapped, converter, reporter, at)
        return [cells.mapped.get(i, v) for i, v in enumerate(values)], wrong

    def _convert_values(
        self, n: int, values: list[Any], converter: Converter, reporter: ChunkReporter, at: int | None = None
    ) -> Converted:  # fmt: skip
        """Convert the cells of a column to its type, and report readings that may surprise."""
        converted = converter.convert(values)
        if converter.remarks:
            self._report_readings(n, values, converter, reporter, at)
        return converted

    def _convert_result(
        self, n: int, values: list[Any], converter: Converter, reporter: ChunkReporter, at: int | None = None
    ) -> Converted:  # fmt: skip
        """Convert what a rule or a lookup made for a column to its type, and report readings that may surprise."""
        converted = converter.convert_result(values)
        if converter.remarks:
            self._report_readings(n, values, converter, reporter, at)
        return converted

    def _report_readings(
        self, n: int, raw: list[Any], converter: Converter, reporter: ChunkReporter, column: int | None = None
    ) -> None:  # fmt: skip
        """Flag cells that another reader might have read differently; those of the kind `info` once per table and
        column, but for learnt spellings. `column`: its position, if it is one of several."""
        remarks = converter.remarks
        indexes_by_code: dict[str, list[int]] = {}
        for i, value in enumerate(raw):
            if value in remarks:
                for code in remarks[value]:
                    indexes_by_code.setdefault(code, []).append(i)
        for code, indexes in indexes_by_code.items():
            severity, what = REMARKS[code]
            once = severity == "info" and code != "spelling_learnt"  # of those each cell counts
            if not (once and (n, code) in self._reported):
                self._flag_cells(
                    n, reporter, indexes[:1] if once else indexes, code, severity=severity, what=what, rule="reading",
                    at=column,
                )  # fmt: skip
            self._reported.add((n, code))

    def _calls_of_rules(self, n: int, reporter: ChunkReporter, others: Mapping[str, list[Any]]) -> Cells:
        """Make what calls a rule with the values of an output column, and with what rules may ask about it."""
        field, index, source = self._pipeline.columns[n].field, self.sources[n], self._table.source
        name = field.name if field else ""
        column, cells_in = self._column_of_sheet(n), self._cell_column(n, reporter)
        arguments = {
            **self._pipeline.hooks.shared,
            "input": source.place.input,
            "sheet": source.place.sheet,
            "table": source.id,
            "field": name,
            "header": source.columns[index].name if index is not None and index < self._sheet_columns else None,
            "column": a1.letters(column) if column else None,
            "column_index": column or None,
        }
        return Cells(reporter, cells_in, name, arguments, others=others, strict=self._pipeline.strict)

    def _by_field(self, output: list[list[Any]]) -> dict[str, list[Any]]:
        """Return the values of the fields, by name."""
        return {c.field.name: output[n] for n, c in enumerate(self._pipeline.columns) if c.field is not None}

    def _bad_cells_by_field(self, bad_cells: list[list[int]]) -> dict[str, list[int]]:
        """Return the indexes of cells that are not of their type, by field."""
        return {name: bad_cells[n] for name, n in self._column_by_field.items() if bad_cells[n]}

    def _hook_arguments(self, reporter: ChunkReporter) -> dict[str, object]:
        """Return the arguments of hooks that say where a chunk is."""
        place = reporter.place
        return {"input": place.input, "sheet": place.sheet, "table": place.table, "rows": reporter.rows}

    def _run_after_transform(
        self, output: list[list[Any]], bad_cells: list[list[int]], reporter: ChunkReporter, count: int
    ) -> None:
        """Replace values by those of the hook, in place, and convert them."""
        changes = self._pipeline.hooks.replaced_columns(self._by_field(output), count, **self._hook_arguments(reporter))
        for n, column in enumerate(self._pipeline.columns):
            if column.field is not None and column.field.name in changes:
                converter = self.converters[n] or Converter(column.field)
                before = output[n]
                output[n], bad_cells[n] = self._convert_result(n, changes[column.field.name], converter, reporter)
                self._count_blanked(n, self._pipeline.package.hooks["after_transform"][0], before, output[n], reporter)

    def _validate(
        self, output: list[list[Any]], bad_cells: list[list[int]], reporter: ChunkReporter, count: int
    ) -> None:
        """Flag what is wrong in a chunk: by its fields, their validators, the manifest's row rules, then the hooks."""
        pipeline = self._pipeline
        for n, column in enumerate(pipeline.columns):
            field = column.field
            if field is None or (self.converters[n] is None and output[n].count(None) == count):
                continue  # no column and no other source of values: missing_field reports it if it matters
            pipeline.checks[field.name].check(output[n], bad_cells[n], reporter, self._cell_column(n, reporter))
            rule = pipeline.package.validators.get(field.name)
            if rule is not None:
                self._calls_of_rules(n, reporter, self._by_field(output) if rule.sees_others else {}).validate(
                    rule, output[n]
                )
        hooked = pipeline.hooks.has("after_validate") or pipeline.hooks.has("accumulate")
        if not (pipeline.row_rules or pipeline.checks_by_expression or pipeline.unique_rows or hooked):
            return
        columns = self._by_field(output)
        column_of = {
            c.field.name: self._cell_column(n, reporter) for n, c in enumerate(pipeline.columns) if c.field is not None
        }
        self._check_rows(columns, column_of, bad_cells, reporter, count)
        if hooked:
            self._run_hooks(columns, column_of, reporter, count)

    def _check_rows(
        self,
        columns: Mapping[str, list[Any]],
        column_of: Mapping[str, CellColumn],
        bad_cells: list[list[int]],
        reporter: ChunkReporter,
        count: int,
    ) -> None:
        """Flag rows that break the manifest's rules over several fields; `columns` and `column_of`: by field, values
        and columns of the sheet."""
        pipeline = self._pipeline
        for row_rule in pipeline.row_rules:
            row_rule.check(columns, count, reporter, column_of.get(row_rule.then.field))
        loaded = Columns(columns, self._bad_cells_by_field(bad_cells), count)
        for check in pipeline.checks_by_expression:
            check.check(columns, loaded, reporter, column_of)
        for unique in pipeline.unique_rows:
            unique.check(columns, reporter, column_of.get(unique.fields[0]))

    def _run_hooks(
        self, columns: Mapping[str, list[Any]], column_of: Mapping[str, CellColumn], reporter: ChunkReporter, count: int
    ) -> None:
        """Flag what the hooks find, and let them gather what they want of the rows that are written."""
        pipeline = self._pipeline
        arguments: dict[str, object] = {"columns": columns, **self._hook_arguments(reporter)}
        for rule, index, name, code, severity, message in pipeline.hooks.row_issues(count, set(columns), **arguments):
            reporter.flag(
                [index], code, severity, message, column=column_of.get(name or ""), field=name, rule=rule.name,
                file=rule.file, line=rule.line,
            )  # fmt: skip
        if rejected := _rows_to_split_off(reporter, pipeline.splits_off):
            good = [i for i in range(count) if reporter.rows[i] not in rejected]
            columns = {name: [values[i] for i in good] for name, values in columns.items()}
            arguments |= {"columns": columns, "rows": [reporter.rows[i] for i in good]}
        pipeline.hooks.notify("accumulate", **arguments)


def write_sorted(pipeline: Pipeline, streams: Mapping[str, TableStream]) -> None:
    """Write the rows that waited to be sorted, in their order; nothing if none had to. `streams`: by table, to flag
    cells where they are."""
    if pipeline.ordered is None:
        return
    for columns in pipeline.ordered.drain():
        *output, rows, tables, value_columns = columns  # as TableStream._write adds them

        def flag(
            n: int, indexes: list[int], code: str, *, severity: str, what: str,
            rows: list[int] = rows, tables: list[str] = tables, value_columns: list[int] = value_columns,
        ) -> None:  # fmt: skip
            """Flag cells of a column in the tables that they come from."""
            for table in dict.fromkeys(tables[i] for i in indexes):
                indexes_of_table = [i for i in indexes if tables[i] == table]
                stream = streams[table]
                stream.flag_written(
                    stream.reporter(rows, value_columns), n, indexes_of_table, code, severity=severity, what=what
                )

        write_rows(pipeline, output, len(rows), flag)


def coalesce(columns: Sequence[Converted]) -> tuple[list[Any], list[int], list[int]]:
    """Return the first value of each row that is not blank, the indexes of rows whose value is not of its type, and for
    each row which of the columns has its value."""
    first_values, first_wrong = columns[0]
    values, wrong = list(first_values), set(first_wrong)
    chosen = [0] * len(values)
    for number, (others, other_wrong) in enumerate(columns[1:], 1):
        other_wrong_set = set(other_wrong)
        for n, value in enumerate(values):
            if value is None and others[n] is not None:
                values[n], chosen[n] = others[n], number
                if n in other_wrong_set:
                    wrong.add(n)
    return values, sorted(wrong), chosen


def _rows_to_split_off(reporter: ChunkReporter, which: SplitOff) -> set[int]:
    """Return the numbers in the sheet of rows that have errors and are not written.

    Of rows that columns became, all of one sheet row go together.
    """
    if which is SplitOff.NONE or not reporter.errors:
        return set()
    if which is SplitOff.ALL:
        return {reporter.rows[i] for i in reporter.errors}
    return {
        reporter.rows[i] for i, errors in reporter.errors.items() if any(error.code == "type_error" for error in errors)
    }


def _errors_by_row(reporter: ChunkReporter) -> dict[int, list[CellProblem]]:
    """Return the errors of a chunk, by the number of the row in the sheet."""
    problems: dict[int, list[CellProblem]] = {}
    for i, errors in reporter.errors.items():
        problems.setdefault(reporter.rows[i], []).extend(errors)
    return problems


def _value_without_column(field: Field | None) -> Any:
    """Return the value of every row if no column was found for the field: its constant, else its default; None without
    both."""
    if field is None:
        return None
    return field.default if field.constant is None else field.constant


def _fill_default(field: Field, values: list[Any]) -> list[Any]:
    """Return the values with the field's default for each blank, or the same list if there is nothing to replace."""
    if field.default is None or None not in values:
        return values
    return [field.default if v is None else v for v in values]
