"""Passes 3 to 5 over the chunks of a table: transform, validate, write.

A job whose manifest has `rows` leaves rows out between the passes 3 and 4: by its filter at once, by their key when all
rows have been seen. What is computed from several values (`transforming/computing.py`) belongs to pass 3.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import ne
from time import perf_counter
from typing import Any, Final

from runner.engine.common import a1
from runner.engine.common.fields import Field
from runner.engine.expressions.evaluation import Columns, computed
from runner.engine.expressions.signatures import Expression
from runner.engine.mapping.table_mapping import MappedTable, TablePlan
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
from runner.engine.values.checking import SPREAD, CellProblem, Origin
from runner.engine.values.convert import REMARKS, Converted, Converter, text_of

_NAMED: Final = 20  # columns listed in a finding


class TableStream:
    """Runs the chunks of one table through the passes."""

    def __init__(self, pipeline: Pipeline, table: MappedTable, plan: TablePlan, allowed: Mapping[str, Any]) -> None:
        self._line = pipeline
        self._table = table
        self.table_id = table.source.id
        self.sources = plan.sources
        self._own = len(table.source.columns)  # columns beyond these are added, not from the source
        self._late: list[int] = []  # columns whose rule runs after all others have their values
        self._points_at: dict[int, int] = {}  # output column without a source -> the column of the sheet to point at
        self._combined = self._combinations()
        fields = [column.field for column in pipeline.columns]
        maps = ((n, field.value_map) for n, field in enumerate(fields) if field is not None)
        self._value_maps = {n: MappedValues(value_map) for n, value_map in maps if value_map is not None}
        self._by_name = {field.name: n for n, field in enumerate(fields) if field is not None}
        self.converters = [
            self._converter(n, column.field, index, allowed)
            for n, (column, index) in enumerate(zip(pipeline.columns, plan.sources, strict=True))
        ]
        columns = [self._column(n) for n in range(len(pipeline.columns))]
        self._merges = [None if at is None else filling.of_column(table.source.merged, at) for at in columns]
        self.filled_down: dict[int, FilledDown] = {}  # by output column: blank cells that took the value above
        labelled = table.source.labelled
        self._outside = {
            name: (cell.row, cell.column) for name, what in table.supplied.items() if (cell := labelled.get(what))
        }
        late = {name for name, n in self._by_name.items() if n in self._late}
        self._before, self._after = pipeline.computations.in_turns(late)
        self._choose_cells_to_point_at()
        self._remarks: list[RowRemark] = []  # of the chunk that is being transformed
        self.sums: list[ColumnSum] = []
        self._reported: set[tuple[int, str]] = set()
        self.changed = [0] * len(pipeline.columns)
        self.total = [0] * len(pipeline.columns)
        self.rows = 0  # of the output
        self.source_rows = 0  # of the sheet that these come from
        self.partly = 0  # rows that columns of these became, and that the manifest's `rows` leaves out
        self.shares = Shares(self._own)
        self.filled = table.is_mapped  # whether any field has got a value
        self._blanked: dict[tuple[int, Rule], list[int]] = {}  # column, rule -> the first row, how many values
        self.present = [0] * len(pipeline.columns)  # values after all rules, if there are any
        self.records = 0  # rows that stay, with errors or without
        columns_of_fields = [(n, column.field) for n, column in enumerate(pipeline.columns) if column.field is not None]
        # Columns in which no row has a value so far.
        self._valueless = [n for n, field in columns_of_fields if field.declared]
        self._blanks = {n: 0 for n, field in columns_of_fields if field.max_blank_share is not None}
        used = {*plan.sources, *(at for parts in self._combined.values() for at, _ in parts)}
        self.left_out = {n: 0 for n in range(len(table.source.columns)) if n not in used}  # column -> non-blank cells

    def _converter(
        self, n: int, field: Field | None, index: int | None, allowed: Mapping[str, Sequence[Any]]
    ) -> Converter | None:
        """What converts an output column; notes whether its rule has to wait for the others."""
        if field is None:
            return None
        rule = self._line.package.transforms.get(field.name)
        parts = self._combined.get(n)
        if rule is not None and not field.is_computed and ((index is None and parts is None) or rule.sees_others):
            self._late.append(n)
        if index is None and rule is None and parts is None and not field.is_computed:
            return None
        if parts is not None:
            return parts[0][1]
        converter = Converter(field) if index is None else self._table.converter(field, index)
        if field.name in allowed:
            converter.use_allowed(allowed[field.name])
        if learnt := self._line.spellings.get(field.name):
            converter.use_spellings(learnt)
        return converter

    def _combinations(self) -> dict[int, list[tuple[int, Converter]]]:
        """The output columns of fields that take several columns: each column's position and converter."""
        combinations = {}
        for n, column in enumerate(self._line.columns):
            if column.field is not None and (positions := self._table.combined.get(column.field.name)):
                combinations[n] = [(at, self._table.converter(column.field, at)) for at in positions]
        return combinations

    def _choose_cells_to_point_at(self) -> None:
        """Decide which cell a finding names on a field that has no column of its own."""
        columns = self._table.source.columns
        for n, parts in self._combined.items():
            self._points_at[n] = columns[parts[0][0]].index
        for name in self._line.computations.order:
            uses = (self._column(self._by_name[used]) for used in self._line.computations.uses(name))
            at = next((column for column in uses if column is not None), None)
            if at is not None:
                self._points_at[self._by_name[name]] = at

    def feed(self, rows: Rows) -> None:
        """Transform some rows; they are validated and written at once, unless they have to wait for the others."""
        line, count = self._line, len(rows.numbers)
        origin = self.origin(rows.numbers, rows.cells)
        if rows.filled:
            self._count_filled(rows.filled)
        clock = perf_counter()
        output, bad_cells = self._transform(rows, origin, count)
        self.shares.add(rows.columns, count)
        for n, wrong in enumerate(bad_cells):
            if wrong and (at := self.sources[n]) is not None and at < self._own:
                self.shares.wrong[at] += len(wrong)
        line.times.spend("transform", clock)
        for n in self.left_out:
            self.left_out[n] += count - rows.columns[n].count(None)
        if not self.filled:
            self.filled = any(values.count(None) < count for values in self._by_field(output).values())
        if self.sums:
            totals = {n for n, row in enumerate(rows.numbers) if row in self._table.source.table.totals}
            for column_sum in self.sums:
                column_sum.add(self._by_field(output), self._wrong_by_field(bad_cells), totals)
        chunk = Chunk(rows.numbers, output, bad_cells, self._remarks, origin.errors, rows.cells)
        self._remarks = []
        if line.filter is not None:
            chunk = self._filter(line.filter, chunk, origin)
        if line.held is not None:
            line.held.add(self.table_id, chunk)
        else:
            self.finish(chunk)
        if line.values is not None:
            source = self._table.source
            values_by_column = {column.index: rows.columns[n] for n, column in enumerate(source.columns)}
            at = source.place_of_values
            spread = [] if at is None else list(zip(rows.cells, rows.columns[at], strict=True))
            line.values.note_cells(source.place.table, rows.numbers, values_by_column, spread)

    def _filter(self, expression: Expression, chunk: Chunk, origin: Origin) -> Chunk:
        """The rows that the filter keeps: all but those for which it is false."""
        columns = Columns(
            self._by_field(chunk.columns), self._wrong_by_field(chunk.wrong), len(chunk.numbers)
        )  # fmt: skip
        judged = computed(expression, columns)
        unsure = [n for n, holds in enumerate(judged.values) if holds is None]
        if unsure:
            first = next((at for name in expression.fields if (at := self._column(self._by_name[name]))), None)
            what = "rows.filter is neither true nor false for this row, which is kept; to settle it: coalesce(…) in it"
            origin.flag(unsure, "filter_unsure", "warning", what, column=first, field=None, rule="rows.filter")
        if False not in judged.values:
            return chunk
        return self._without_rows(chunk, [n for n, v in enumerate(judged.values) if v is not False], FILTERED)

    def _without_rows(self, chunk: Chunk, indexes: Sequence[int], kind: str) -> Chunk:
        """The rows of a chunk with these indexes; rows of the sheet of which none is left are noted as of a kind."""
        stay = chunk.only(indexes)
        gone = set(chunk.numbers).difference(stay.numbers)
        self._table.source.removed[kind].add(sorted(gone))
        return stay

    def without(self, chunk: Chunk, gone: bytearray) -> Chunk:
        """The chunk without rows (1 in `gone`) of which another one stays."""
        if 1 not in gone:
            return chunk
        return self._without_rows(chunk, [n for n, is_gone in enumerate(gone) if not is_gone], DUPLICATE)

    def flag_tied(self, chunk: Chunk, indexes: Sequence[int], by: str) -> None:
        """Report rows that stay though another row with their key is as new."""
        origin = self.origin(chunk.numbers, chunk.cells)
        what = f"is as new as another row with its key; the last of them stays; to settle it: a {by} that differs"
        at = self._column(self._by_name[by])
        origin.flag(indexes, "dedupe_tied", "warning", what, column=at, field=by, rule="rows.dedupe")

    def finish(self, chunk: Chunk) -> None:
        """Validate the rows that stay, and write them."""
        line, count, output = self._line, len(chunk.numbers), chunk.columns
        if not count:
            return
        clock = perf_counter()
        self._count_blanks(output, count)
        origin = self.origin(chunk.numbers, chunk.cells)
        origin.errors = chunk.errors
        self._flag_remarks(chunk.remarks, origin)
        self._validate(output, chunk.wrong, origin, count)
        if origin.errors:
            line.errors.add(self._table.source, _by_row(origin))
            if rejected := _split_off(origin, line.splits_off):
                self._table.source.split_off.add(sorted(rejected))
                stay = [i for i in range(count) if origin.rows[i] not in rejected]
                output, count = [[values[i] for i in stay] for values in output], len(stay)
                cells = [chunk.cells[i] for i in stay] if chunk.cells else ()
                origin = self.origin([origin.rows[i] for i in stay], cells)
        clock = line.times.spend("validate", clock)
        if count:
            self._write(output, origin, count)
            line.times.spend("write", clock)
        self.rows += count
        source_rows = set(origin.rows) if chunk.cells else ()
        self.source_rows += len(source_rows) if chunk.cells else count
        self.partly += sum(left for row, left in chunk.partly.items() if row in source_rows)
        if line.values is not None and line.held is not None:  # the rows themselves are gone; these are their values
            values_by_column = {at: values for n, values in enumerate(chunk.columns) if (at := self._column(n))}
            line.values.note_cells(self._table.source.place.table, chunk.numbers, values_by_column)

    def _flag_remarks(self, remarks: Sequence[RowRemark], origin: Origin) -> None:
        """Flag what was remarked on while the rows were transformed."""
        for remark in remarks:
            field = self._line.columns[remark.column].field
            if field is not None:
                at = self._column(remark.column) if remark.points_at is None else remark.points_at
                origin.flag(
                    remark.indexes, remark.code, field.severity, remark.what, column=at, field=field.name,
                    rule=remark.rule,
                )  # fmt: skip

    def origin(self, rows: list[int], cells: Sequence[int]) -> Origin:
        """Where these rows come from, for findings about them; `cells`: of rows that columns became."""
        return Origin(self._line.findings, self._table.source.place, rows, cells=cells, outside=self._outside)

    def report_filled_down(self) -> None:
        """Report how many blank cells took the value above, by column."""
        for n, (row, count) in self.filled_down.items():
            field = self._line.columns[n].field
            cells = "blank cell" if count == 1 else "blank cells"
            self._line.findings.add(
                "filled_down", "info", f"{count:,} {cells} took the value above, as fill_down asks",
                place=self._table.source.place, row=row, column=self._column(n),
                field=field.name if field else None, rule="fill_down", count=count,
            )  # fmt: skip

    def _count_filled(self, filled: Mapping[int, FilledDown]) -> None:
        """Count the blank cells that took the value above, by output column."""
        for n, index in enumerate(self.sources):
            if index is not None and index in filled and self._line.columns[n].field is not None:
                first, count = self.filled_down.get(n, FilledDown(filled[index].first, 0))
                self.filled_down[n] = FilledDown(first, count + filled[index].cells)

    def _count_blanks(self, output: list[list[Any]], count: int) -> None:
        """Note fields without any value, and count the blanks of those that may have few."""
        self.records += count
        if self._valueless:
            self._valueless = [n for n in self._valueless if output[n].count(None) == count]
        for n in self._blanks:
            self._blanks[n] += output[n].count(None)

    @property
    def valueless(self) -> list[str]:
        """Declared fields that have no value in any row."""
        return [column.field.name for n in self._valueless if (column := self._line.columns[n]).field is not None]

    @property
    def blanks(self) -> dict[str, int]:
        """How many blanks the fields have that may have few."""
        columns = self._line.columns
        return {field.name: n for at, n in self._blanks.items() if (field := columns[at].field) is not None}

    def _write(self, output: list[list[Any]], origin: Origin, count: int) -> None:
        """Write rows at once, or hold them back to be sorted."""
        line = self._line
        if line.ordered is None:
            write_rows(line, output, count, partial(self.flag_written, origin))
        elif line.sheet is not None or line.data is not None:
            cells = origin.cells or [0] * count
            line.ordered.add([*output, origin.rows, [self.table_id] * count, [*cells]], count)

    def flag_written(
        self, origin: Origin, n: int, indexes: list[int], code: str, *, severity: str, what: str
    ) -> None:  # fmt: skip
        """Flag cells of an output column that were not written as they are."""
        self._flag(n, origin, indexes, code, severity=severity, what=what, rule="write")

    def report_left_out(self) -> None:
        """Report columns with values that are not in the output."""
        source = self._table.source
        lost = [n for n, cells in self.left_out.items() if cells]
        if not lost:
            return
        letters = [a1.letters(source.columns[n].index) for n in lost[:_NAMED]]
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        cells = sum(self.left_out.values())
        self._line.findings.add(
            "columns_dropped", "info",
            f"unmapped columns are left out, as mapping.unmapped asks: {', '.join(letters)}{more}; "
            f"non-blank cells in them: {cells}",
            place=source.place, rule="mapping", count=len(lost),
        )  # fmt: skip

    def report_unmapped(self, elsewhere: Collection[str]) -> None:
        """Report fields that got no column here, nor values from anywhere else; missing_field reports required ones.

        `elsewhere`: fields that have a column in some table.
        """
        lacking = [
            column.field
            for n, column in enumerate(self._line.columns)
            if column.field is not None and column.field.declared and self.sources[n] is None and not self.present[n]
            and self.converters[n] is None and _default_of(column.field) is None and column.field.needs_some_column
            and not (column.field.required or column.field.optional)
        ]  # fmt: skip
        if lacking and self._table.is_mapped:
            self._table.report_unmapped(lacking, self._line.findings, elsewhere)

    def report_blank(self) -> None:
        """Report fields whose column has no value in any row; each row without a required one is reported already."""
        shares = self.shares
        if not shares.rows:
            return
        full = [n for n, blank in enumerate(shares.blank) if blank * 2 <= shares.rows]
        wrong = [n for n in full if shares.wrong[n] * 2 > shares.rows - shares.blank[n]]
        for n, column in enumerate(self._line.columns):
            field, at = column.field, self.sources[n]
            if field is None or at is None or at >= self._own or shares.blank[at] < shares.rows or self.present[n]:
                continue
            if field.declared and not field.required and not field.optional and _default_of(field) is None:
                self._table.report_blank(field, at, self._line.findings, full, wrong)

    def report_blanked(self) -> None:
        """Report columns in which rules replaced values by blanks: a warning if no value is left, or none may be meant.

        A function that ends without a `return` yields None just as one that means a blank.
        """
        for (n, rule), (row, count) in self._blanked.items():
            field, loose = self._line.columns[n].field, rule.returns == "sometimes"
            what = f"{rule.name} blanked {count:,} {'value' if count == 1 else 'values'}"
            what += "" if self.present[n] else "; no value of the column is left"
            what += "; it can end without a return; to settle it: return the value, or None for a blank" * loose
            self._line.findings.add(
                "transform_blanked", "info" if self.present[n] and not loose else "warning", what,
                place=self._table.source.place, row=row, column=self._column(n) or None,
                field=field.name if field else None,
                rule=rule.name, file=rule.file, line=rule.line, count=count,
            )  # fmt: skip

    def _count_blanked(self, n: int, rule: Rule, before: list[Any], after: list[Any], origin: Origin) -> None:
        """Count values that a rule replaced by blanks, with the first row in which it did."""
        blanked = [i for i, v in enumerate(after) if v is None and before[i] is not None]
        if blanked:
            row_and_count = self._blanked.setdefault((n, rule), [origin.rows[blanked[0]], 0])
            row_and_count[1] += len(blanked)

    def _flag(
        self, n: int, origin: Origin, cells: list[int], code: str, *, severity: str, what: str, rule: str | None,
        at: int | None = None,
    ) -> None:  # fmt: skip
        """Flag cells of an output column where they are in the source; `at`: the position of their column there."""
        field = self._line.columns[n].field
        name = field.name if field else None
        column = self._column(n) if at is None else self._table.source.columns[at].index
        origin.flag(cells, code, severity, what, column=column, field=name, rule=rule)

    def _column(self, n: int) -> int | None:
        """The column of the sheet (1-based) that an output column comes from; SPREAD: each row's own."""
        index, source = self.sources[n], self._table.source
        if index is None or index >= self._own:
            is_spread = index is not None and source.added[index - self._own] in (NAME, VALUE) and source.spread
            return SPREAD if is_spread else self._points_at.get(n)
        return source.columns[index].index

    def _transform(self, rows: Rows, origin: Origin, count: int) -> tuple[list[list[Any]], list[list[int]]]:
        """The values of each output column for a chunk, and the indexes of cells in it that are not of their type."""
        converted = [self._convert_column(n, rows, origin, count) for n in range(len(self._line.columns))]
        output, bad_cells = [values for values, _ in converted], [wrong for _, wrong in converted]
        if self._before:
            self._compute_declared(self._before, output, bad_cells, origin)
        for n in self._late:
            self._compute(n, rows, output, bad_cells, origin)
        if self._after:
            self._compute_declared(self._after, output, bad_cells, origin)
        if self._line.hooks.has("after_transform"):
            self._after_transform(output, bad_cells, origin, count)
        if self._line.package.files:
            for n, values in enumerate(output):
                self.present[n] += count - values.count(None)
        return output, bad_cells

    def _convert_column(self, n: int, rows: Rows, origin: Origin, count: int) -> Converted:
        """An output column from its source column, from several, or with its default where it has none."""
        field, index = self._line.columns[n].field, self.sources[n]
        if index is None:
            return self._combine(n, rows, origin) if n in self._combined else ([_default_of(field)] * count, [])
        raw = self._fill_merged(n, rows.columns[index], origin)
        self._report_broken(raw, origin, n)
        values, wrong = self._convert_to_type(n, raw, origin) if field else (raw, [])
        self.total[n] += count - raw.count(None)
        if values is not raw and n not in self._late:
            self.changed[n] += sum(map(ne, raw, values))
        return values, wrong

    def _fill_merged(self, n: int, raw: list[Any], origin: Origin) -> list[Any]:
        """Repeat the values of merged cells if the field asks for it; otherwise report the blanks under them."""
        merges = self._merges[n]
        if merges is None or not (covered := merges.covered(origin.rows, raw)):
            return raw
        field = self._line.columns[n].field
        if field is not None and field.merged == "fill":
            return filling.filled(raw, covered)
        self._flag(n, origin, list(covered), filling.CODE, severity="warning", what=filling.MESSAGE, rule="reading")
        return raw

    def _combine(self, n: int, rows: Rows, origin: Origin) -> tuple[list[Any], list[int]]:
        """The values of a field that takes several columns: the first that is there, or all of them as one text."""
        field = self._line.columns[n].field
        if field is None or field.source is None:
            return [], []
        parts: list[tuple[list[Any], list[int]]] = []
        joins = field.source.options["combine"] == "join"
        for at, converter in self._combined[n]:
            raw = rows.columns[at]
            self._report_broken(raw, origin, n, at)
            self.total[n] += len(raw) - raw.count(None)
            read = self._convert if joins else self._read_mapped
            parts.append(read(n, raw, converter, origin, at))
        if joins:
            separator = field.source.options["separator"]
            texts = (
                [text_of(v) for v in row if v is not None] for row in zip(*(part for part, _ in parts), strict=True)
            )
            values: list[Any] = [separator.join(row) or None for row in texts]
            wrong: list[int] = []
            if n in self._value_maps:
                values, wrong = self._read_mapped(n, values, self._combined[n][0][1], origin)
        else:
            values, wrong = coalesced(parts)
        return self._apply_rule(n, values, wrong, self._combined[n][0][1], origin)

    def _compute_declared(
        self, names: Sequence[str], output: list[list[Any]], bad_cells: list[list[int]], origin: Origin
    ) -> None:  # fmt: skip
        """Compute fields from other fields of their rows, as the manifest declares them, in this order."""
        values_by_field = self._by_field(output)
        columns = Columns(values_by_field, self._wrong_by_field(bad_cells), len(origin.rows))
        for name in names:
            n = self._by_name[name]
            field, converter = self._line.columns[n].field, self.converters[n]
            if field is None or converter is None:
                continue
            made = self._line.computations.compute(name, columns, values_by_field)
            for failed_rows in made.failed:
                if failed_rows.indexes:
                    at = None if failed_rows.field is None else self._column(self._by_name[failed_rows.field])
                    self._remarks.append(
                        RowRemark(n, failed_rows.indexes, failed_rows.code, failed_rows.what, failed_rows.rule, at)
                    )
            values, wrong = self._read_mapped(n, made.values, converter, origin)
            rule = self._line.package.transforms.get(name)
            if rule is not None:
                values = self._cells(n, origin, values_by_field).transform(rule, values)
                values, wrong = self._convert(n, values, converter, origin)
            output[n] = values_by_field[name] = _with_default(field, values)
            bad_cells[n] = sorted({*wrong, *made.wrong})
            columns.add(name, output[n], bad_cells[n])
            self.total[n] += len(origin.rows)

    def _report_broken(self, raw: list[Any], origin: Origin, n: int, column: int | None = None) -> None:
        """Report cells with a spreadsheet error, or with a formula that has no stored result."""
        kinds = set(map(type, raw))
        if CellError in kinds:
            indexes = [i for i, v in enumerate(raw) if type(v) is CellError]
            what = "contains a spreadsheet error such as #N/A"
            self._flag(n, origin, indexes, "cell_error", severity="warning", what=what, rule=None, at=column)
        if NoCachedValue in kinds:
            indexes = [i for i, v in enumerate(raw) if type(v) is NoCachedValue]
            what = "contains a formula without a stored result and was read as blank; open and save the file in Excel"
            self._flag(n, origin, indexes, "no_cached_value", severity="warning", what=what, rule=None, at=column)

    def _convert_to_type(self, n: int, raw: list[Any], origin: Origin) -> tuple[list[Any], list[int]]:
        """A column converted to its type, by its rule too unless that runs late; and the indexes of bad cells."""
        field, converter = self._line.columns[n].field, self.converters[n]
        if field is None or converter is None:
            return raw, []
        values, wrong = (
            self._read_mapped(n, raw, converter, origin)
            if self._value_maps
            else self._convert(n, raw, converter, origin)
        )
        return self._apply_rule(n, values, wrong, converter, origin)

    def _apply_rule(
        self, n: int, values: list[Any], wrong: list[int], converter: Converter, origin: Origin
    ) -> tuple[list[Any], list[int]]:
        """A column after its Python rule, if it has one that needs no other field, and with its default."""
        field = self._line.columns[n].field
        if field is None:
            return values, wrong
        rule = self._line.package.transforms.get(field.name)
        if rule is not None and n not in self._late:
            computed = self._cells(n, origin, {}).transform(rule, values)
            computed, wrong = self._convert(n, computed, converter, origin)
            self._count_blanked(n, rule, values, computed, origin)
            values = computed
        return _with_default(field, values), wrong

    def _compute(self, n: int, rows: Rows, output: list[list[Any]], bad_cells: list[list[int]], origin: Origin) -> None:
        """Run a rule that reads other fields of its rows, or that has no source column."""
        field, converter, index = self._line.columns[n].field, self.converters[n], self.sources[n]
        if field is None or converter is None:
            return
        count = len(rows.numbers)
        has_values = index is not None or n in self._combined
        before = rows.columns[index] if index is not None else output[n] if has_values else [field.constant] * count
        rule, cells = self._line.package.transforms[field.name], self._cells(n, origin, self._by_field(output))
        values = cells.transform(rule, output[n] if has_values else before)
        values, bad_cells[n] = self._convert(n, values, converter, origin)
        if has_values:
            self._count_blanked(n, rule, output[n], values, origin)
        output[n] = _with_default(field, values)
        self.changed[n] += sum(map(ne, before, output[n]))
        self.total[n] += 0 if has_values else count

    def _read_mapped(
        self, n: int, raw: list[Any], converter: Converter, origin: Origin, at: int | None = None
    ) -> Converted:  # fmt: skip
        """Convert a column to its type; cells that the field's `map` names become what it says."""
        mapping = self._value_maps.get(n)
        if mapping is None:
            return self._convert(n, raw, converter, origin, at)
        mapped, left, unknown = mapping.applied(raw)
        if unknown:
            self._remarks.append(RowRemark(n, unknown, "not_mapped", "is not in the field's map", "map"))
        values, wrong = self._convert(n, left, converter, origin, at)
        return [mapped.get(i, v) for i, v in enumerate(values)], wrong

    def _convert(
        self, n: int, values: list[Any], converter: Converter, origin: Origin, at: int | None = None
    ) -> Converted:  # fmt: skip
        """Convert a column, or a rule's result, to its type, and report readings that may surprise."""
        converted = converter.convert(values)
        if converter.remarks:
            self._report_readings(n, values, converter, origin, at)
        return converted

    def _report_readings(
        self, n: int, raw: list[Any], converter: Converter, origin: Origin, column: int | None = None
    ) -> None:  # fmt: skip
        """Report cells that another reader might have read differently."""
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
                self._flag(
                    n, origin, indexes[:1] if once else indexes, code, severity=severity, what=what, rule="reading",
                    at=column,
                )  # fmt: skip
            self._reported.add((n, code))

    def _cells(self, n: int, origin: Origin, others: Mapping[str, list[Any]]) -> Cells:
        """What calls a rule with the values of an output column, and with what rules may ask about it."""
        field, index, source = self._line.columns[n].field, self.sources[n], self._table.source
        name = field.name if field else ""
        column = self._column(n)
        arguments = {
            **self._line.hooks.shared,
            "input": source.place.input,
            "sheet": source.place.sheet,
            "table": source.id,
            "field": name,
            "header": source.columns[index].name if index is not None and index < self._own else None,
            "column": a1.letters(column) if column else None,
            "column_index": column or None,
        }
        return Cells(origin, column, name, arguments, others=others, strict=self._line.strict)

    def _by_field(self, output: list[list[Any]]) -> dict[str, list[Any]]:
        """The values of the fields, by name."""
        return {c.field.name: output[n] for n, c in enumerate(self._line.columns) if c.field is not None}

    def _wrong_by_field(self, bad_cells: list[list[int]]) -> dict[str, list[int]]:
        """The indexes of cells that are not of their type, by field."""
        return {name: bad_cells[n] for name, n in self._by_name.items() if bad_cells[n]}

    def _place_of(self, origin: Origin) -> dict[str, object]:
        """Where a chunk is, as hooks get it."""
        place = origin.place
        return {"input": place.input, "sheet": place.sheet, "table": place.table, "rows": origin.rows}

    def _after_transform(self, output: list[list[Any]], bad_cells: list[list[int]], origin: Origin, count: int) -> None:
        """Replace values by those of the hook, in place, and convert them."""
        changes = self._line.hooks.replaced(self._by_field(output), count, **self._place_of(origin))
        for n, column in enumerate(self._line.columns):
            if column.field is not None and column.field.name in changes:
                converter = self.converters[n] or Converter(column.field)
                before = output[n]
                output[n], bad_cells[n] = self._convert(n, changes[column.field.name], converter, origin)
                self._count_blanked(n, self._line.package.hooks["after_transform"][0], before, output[n], origin)

    def _validate(self, output: list[list[Any]], bad_cells: list[list[int]], origin: Origin, count: int) -> None:
        """Check a chunk: fields, their validators, the manifest's row rules, then the hooks."""
        line = self._line
        for n, column in enumerate(line.columns):
            field = column.field
            if field is None or (self.converters[n] is None and output[n].count(None) == count):
                continue  # no column and no other source of values: missing_field reports it if it matters
            line.checks[field.name].check(output[n], bad_cells[n], origin, self._column(n))
            rule = line.package.validators.get(field.name)
            if rule is not None:
                self._cells(n, origin, self._by_field(output) if rule.sees_others else {}).validate(rule, output[n])
        hooked = line.hooks.has("after_validate") or line.hooks.has("accumulate")
        if not (line.row_rules or line.checks_by_expression or line.unique_rows or hooked):
            return
        columns = self._by_field(output)
        column_of = {c.field.name: self._column(n) for n, c in enumerate(line.columns) if c.field is not None}
        self._check_rows(columns, column_of, bad_cells, origin, count)
        if hooked:
            self._run_hooks(columns, column_of, origin, count)

    def _check_rows(
        self,
        columns: Mapping[str, list[Any]],
        column_of: Mapping[str, int | None],
        bad_cells: list[list[int]],
        origin: Origin,
        count: int,
    ) -> None:
        """Check the manifest's rules over several fields of a row."""
        line = self._line
        for row_rule in line.row_rules:
            row_rule.check(columns, count, origin, column_of.get(row_rule.then.field))
        loaded = Columns(columns, self._wrong_by_field(bad_cells), count)
        for check in line.checks_by_expression:
            check.check(columns, loaded, origin, column_of)
        for unique in line.unique_rows:
            unique.check(columns, origin, column_of.get(unique.fields[0]))

    def _run_hooks(
        self, columns: Mapping[str, list[Any]], column_of: Mapping[str, int | None], origin: Origin, count: int
    ) -> None:
        """Report what the hooks find, and let them gather what they want of the rows of the output."""
        line = self._line
        arguments: dict[str, object] = {"columns": columns, **self._place_of(origin)}
        for rule, index, name, code, severity, message in line.hooks.issues(count, set(columns), **arguments):
            origin.flag(
                [index], code, severity, message, column=column_of.get(name or ""), field=name, rule=rule.name,
                file=rule.file, line=rule.line,
            )  # fmt: skip
        if bad_cells := _split_off(origin, line.splits_off):
            good = [i for i in range(count) if origin.rows[i] not in bad_cells]
            columns = {name: [values[i] for i in good] for name, values in columns.items()}
            arguments |= {"columns": columns, "rows": [origin.rows[i] for i in good]}
        line.hooks.notify("accumulate", **arguments)


def write_sorted(line: Pipeline, streams: Mapping[str, TableStream]) -> None:
    """Write the rows of all tables in their order."""
    for columns in line.ordered.drain() if line.ordered is not None else ():
        *output, rows, tables, cells = columns

        def flag(
            n: int, indexes: list[int], code: str, *, severity: str, what: str,
            rows: list[int] = rows, tables: list[str] = tables, cells: list[int] = cells,
        ) -> None:  # fmt: skip
            """Flag cells of a column in the tables that they come from."""
            for table in dict.fromkeys(tables[i] for i in indexes):
                indexes_of_table = [i for i in indexes if tables[i] == table]
                stream = streams[table]
                stream.flag_written(stream.origin(rows, cells), n, indexes_of_table, code, severity=severity, what=what)

        write_rows(line, output, len(rows), flag)


def coalesced(parts: Sequence[tuple[list[Any], list[int]]]) -> tuple[list[Any], list[int]]:
    """The first value of each row that is there, and the rows whose value is not of its type."""
    values, wrong = list(parts[0][0]), set(parts[0][1])
    for others, other_wrong in parts[1:]:
        other_wrong_set = set(other_wrong)
        for n, value in enumerate(values):
            if value is None and others[n] is not None:
                values[n] = others[n]
                if n in other_wrong_set:
                    wrong.add(n)
    return values, sorted(wrong)


def _split_off(origin: Origin, which: SplitOff) -> set[int]:
    """The numbers of the source rows that are not written; all rows that columns of them became go with them."""
    if which is SplitOff.NONE or not origin.errors:
        return set()
    if which is SplitOff.ALL:
        return {origin.rows[i] for i in origin.errors}
    return {
        origin.rows[i] for i, errors in origin.errors.items() if any(error.code == "type_error" for error in errors)
    }


def _by_row(origin: Origin) -> dict[int, list[CellProblem]]:
    """What is wrong, by the number of the source row."""
    problems: dict[int, list[CellProblem]] = {}
    for i, errors in origin.errors.items():
        problems.setdefault(origin.rows[i], []).extend(errors)
    return problems


def _default_of(field: Field | None) -> Any:
    """The value of every row if no column was found for the field."""
    if field is None:
        return None
    return field.default if field.constant is None else field.constant


def _with_default(field: Field, values: list[Any]) -> list[Any]:
    """The values with the field's default for each blank."""
    if field.default is None or None not in values:
        return values
    return [field.default if v is None else v for v in values]
