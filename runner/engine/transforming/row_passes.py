"""Passes 3 to 5 of a job: every row of every input is transformed, validated and written."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.contract import DATA_FORMATS, Order, OutputName, PassProgress, split_name
from runner.engine.mapping.output_layout import OutColumn, TablePlan
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.options import JobOptions, OutputOptions
from runner.engine.protocol import EventWriter, open_output
from runner.engine.rejects.set_aside import RejectsDescription, RowErrors
from runner.engine.rules.hooks import Hooks
from runner.engine.rules.load import RulePackage
from runner.engine.surveying.surveyed_input import SurveyedInput
from runner.engine.tables.lookups import Lookups
from runner.engine.tables.sources import SourceTable, chunks, group_by_reading
from runner.engine.transforming.computing import Computations, compile_declared
from runner.engine.transforming.holding import HeldChunks, SortedRows
from runner.engine.transforming.pipeline import Pipeline
from runner.engine.transforming.row_rules import ColumnSum, ExpressionCheck, UniqueRows
from runner.engine.transforming.shown_values import FoundValues
from runner.engine.transforming.stream import TableStream, write_sorted
from runner.engine.values.checking import FieldChecks, RowCheck
from runner.engine.writing import NormalizedBook, SheetWriter

if TYPE_CHECKING:
    from runner.engine.writing.data_files import DataFiles
    from runner.engine.writing.splitting import RowSplit

_PROGRESS_EVERY: Final = 65_536  # rows between two progress events
_SHEETS: Final = 10  # sheets listed in a finding


class StreamedRows(NamedTuple):
    """What the passes did with the rows of a job."""

    streams: list[TableStream]  # of the tables in use
    workbook: NormalizedBook
    rejected: int | None  # rows that rejects.xlsx will have; None: nobody asked for it
    times: Mapping[str, float]  # seconds spent in each pass
    split_rows: list[int] | None = None  # rows of each label of the split; None: there is no split

    @property
    def any_value(self) -> bool:
        """Whether any field got a value."""
        return any(stream.filled for stream in self.streams)


@dataclass(frozen=True, kw_only=True)
class RowPasses:
    """Runs passes 3 to 5 over all rows of a job; the attributes are what the passes need to know of it."""

    order: Order
    options: JobOptions
    lookups: Lookups
    findings: Findings
    channel: EventWriter
    package: RulePackage
    hooks: Hooks
    spellings: Mapping[str, Mapping[str, Any]]  # field -> folded text -> the allowed value that it means

    @property
    def output(self) -> OutputOptions:
        """The manifest's options for the output."""
        return self.options.output

    def run(
        self, columns: list[OutColumn], sources: list[SurveyedInput], tables: list[MappedTable], plans: list[TablePlan]
    ) -> StreamedRows:
        """Run all rows of all inputs through the passes, write and close the outputs, and report what was counted.

        `plans`: one for each of `tables`, in their order.
        """
        errors = RowErrors(
            (c.field for c in columns if c.field), with_messages=OutputName.REJECTED_ROWS in self.order.outputs
        )
        with ExitStack() as files:
            workbook_file = self._open_output(OutputName.WORKBOOK, files)
            rejects_file = self._open_output(OutputName.REJECTED_ROWS, files)
            rejects = RejectsDescription(rejects_file, errors, {t.source.id: t.fields for t in tables})
            workbook = NormalizedBook(workbook_file, columns, title=self.options.name, sheet=self.output.sheet)
            split = self._open_row_split(columns, files)
            data = self._open_data_files(columns, files)
            pipeline = self._make_pipeline(columns, sheet=workbook.main, data=data, split=split, errors=errors)
            values = self._open_output(OutputName.SHOWN_VALUES, files)
            streams = self._make_streams(pipeline, tables, plans)
            clock = perf_counter()
            self._stream_inputs(pipeline, sources, tables, streams, rejects)
            rejects.close()
            reading = perf_counter() - clock - sum(pipeline.times.values())
            if pipeline.ordered is not None:
                for spool in (spool for source in sources for spool in source.spools.values()):
                    spool.release()  # sorting needs the room, and every row of the sheets was read
                write_sorted(pipeline, streams)
            for stream in streams.values():
                stream.report_left_out()
                stream.report_filled_down()
                stream.report_blank()
                stream.report_blanked()
                stream.report_unmapped({name for table in tables for name in table.fields})
            self._report_split(workbook)
            if split is not None:
                split.close(self.findings)
            workbook.finish(self.hooks.extra_sheets(), self.findings if self.output.findings_sheet else None)
            if data is not None:
                data.close()
            if values is not None and pipeline.values is not None:
                pipeline.values.write(values)
        times = pipeline.times | {"read": reading}
        rejected_rows, split_rows = rejects.rows if rejects_file else None, None if split is None else split.rows
        return StreamedRows(list(streams.values()), workbook, rejected_rows, times, split_rows)

    def _make_streams(
        self, pipeline: Pipeline, tables: list[MappedTable], plans: list[TablePlan]
    ) -> dict[str, TableStream]:
        """Make a stream for each table, by the table's id; `plans`: one for each of `tables`, in their order."""
        allowed = {
            name: values
            for name, check in pipeline.checks.items()
            if check.field.lookup and (values := self.lookups.column(check.field)) is not None
        }
        streams = {t.source.id: TableStream(pipeline, t, p, allowed) for t, p in zip(tables, plans, strict=True)}
        for stream in streams.values():
            stream.sums = [ColumnSum(rule, rule.total) for rule in self.options.rules if rule.total]
        return streams

    def _stream_inputs(
        self,
        pipeline: Pipeline,
        sources: list[SurveyedInput],
        tables: list[MappedTable],
        streams: Mapping[str, TableStream],
        rejects: RejectsDescription,
    ) -> None:
        """Run all rows of all inputs through the passes, and close the books of each input.

        Rows that wait for others with their key are all read before any of them is written.
        """
        fields = {c.field.name: c.field for c in pipeline.columns if c.field is not None}
        refs = table_refs()
        if pipeline.held is not None:
            for source in sources:
                with source.streaming():
                    stream_input(source, streams, self.channel)
            self._drain(pipeline.held, streams)
        for number, source in enumerate(sources):
            with source.streaming():
                if pipeline.held is None:
                    stream_input(source, streams, self.channel)
                self._compare_sums(source, tables, streams, fields)
                rejects.add(number, source)
                source.close_books(streams, refs)
            for books in source.books.values():
                books.report(self.findings)

    def _drain(self, held: HeldChunks, streams: Mapping[str, TableStream]) -> None:
        """Leave out rows of which another one with the same key stays; validate and write the others."""
        by = self.options.rows.dedupe.by if self.options.rows.dedupe is not None else None
        for table, chunk, gone, tied in held.drain():
            if tied and by is not None:
                streams[table].flag_tied(chunk, tied, by)
            streams[table].finish(streams[table].without_duplicates(chunk, gone))

    def _compare_sums(
        self,
        source: SurveyedInput,
        tables: list[MappedTable],
        streams: Mapping[str, TableStream],
        fields: Mapping[str, Field],
    ) -> None:
        """Report sums of an input's tables that differ from their totals."""
        for table in tables:
            if table.source in source.tables:
                for column_sum in streams[table.source.id].sums:
                    column_sum.report(table, fields, self.findings)

    def _report_split(self, workbook: NormalizedBook) -> None:
        """Report how an output continues on further sheets, if it takes more than one."""
        if workbook.main is not None and len(workbook.main.names) > 1:
            shown = ", ".join(f"{name} ({rows} rows)" for name, rows in workbook.sheets()[:_SHEETS])
            more = len(workbook.main.names) - _SHEETS
            shown += f" and {more} more sheets" if more > 0 else ""
            self.findings.add(
                "output_split", "warning",
                f"the output exceeds the row limit of a sheet and continues on further sheets: {shown}",
                rule="write",
            )  # fmt: skip

    def _open_output(self, name: str, files: ExitStack) -> IO[bytes] | None:
        """Open an output until `files` is closed; None if the order does not ask for it."""
        file = open_output(self.order, name)
        return None if file is None else files.enter_context(file)

    def _open_data_files(self, columns: list[OutColumn], files: ExitStack) -> "DataFiles | None":
        """Open the data files beside the workbook until `files` is closed, split ones included; None if nobody asks for
        typed columns."""
        options = self.output.data
        wanted = [name for name in options.names if name is not OutputName.WORKBOOK]
        opened: dict[OutputName, IO[bytes]] = {}
        for name in wanted:
            if (file := self._open_output(name, files)) is not None:
                opened[name] = file
        if not (opened or self.output.blanks_errors):
            return None
        from runner.engine.writing.data_files import DataFiles  # noqa: PLC0415  # few jobs that start cold need it

        kinds = {name: kind for kind, name in DATA_FORMATS.items() if name in opened}
        labels = () if self.output.split is None else self.output.split.labels
        split_files = [
            {name: file for name, kind in kinds.items() if (file := self._open_output(split_name(label, kind), files))}
            for label in labels
        ]
        return DataFiles(opened, columns, options, split_files)

    def _open_row_split(self, columns: list[OutColumn], files: ExitStack) -> "RowSplit | None":
        """Open the further workbooks that the rows are split into, until `files` is closed; None without a split, which
        may have data files alone."""
        split = self.output.split
        if split is None:
            return None
        from runner.engine.writing.splitting import RowSplit  # noqa: PLC0415  # as above

        opened = (self._open_output(split_name(label, "xlsx"), files) for label in split.labels)
        books = [
            NormalizedBook(file, columns, title=self.options.name, sheet=self.output.sheet)
            for file in opened
            if file is not None
        ]
        return RowSplit(split, columns, books)

    def _make_pipeline(
        self,
        columns: list[OutColumn],
        *,
        sheet: SheetWriter | None,
        data: "DataFiles | None",
        split: "RowSplit | None",
        errors: RowErrors,
    ) -> Pipeline:
        """Make what all tables of the job share in passes 3 to 5."""
        fields = {c.field.name: c.field for c in columns if c.field is not None}
        rules, rows = self.options.rules, self.options.rows
        computations = Computations([*fields.values()], self.lookups, self.findings)
        places = {c.field.name: n for n, c in enumerate(columns) if c.field is not None}
        return Pipeline(
            columns=columns,
            checks={name: FieldChecks(f, self.lookups.allowed(f)) for name, f in fields.items()},
            row_rules=[RowCheck(r, r.then, fields) for r in rules if r.then is not None],
            checks_by_expression=[ExpressionCheck(r, r.check, fields) for r in rules if r.check is not None],
            unique_rows=[UniqueRows(r) for r in rules if r.unique],
            computations=computations,
            filter=None if rows.filter is None else compile_declared(rows.filter, computations.types, "rows.filter"),
            held=None if rows.dedupe is None else HeldChunks(rows.dedupe, places),
            ordered=SortedRows([(places[name], down) for name, down in rows.sort]) if rows.sort else None,
            package=self.package,
            hooks=self.hooks,
            findings=self.findings,
            sheet=sheet,
            data=data,
            split=split,
            blanks_errors=self.output.blanks_errors,
            strict=self.options.stops_on_rule_error,
            errors=errors,
            splits_off=self.options.splits_off,
            spellings=self.spellings,
            values=FoundValues(self.findings) if OutputName.SHOWN_VALUES in self.order.outputs else None,
        )


def stream_input(source: SurveyedInput, streams: Mapping[str, TableStream], channel: EventWriter) -> None:
    """Stream the rows of an input's tables in use to the output, and book the rows of all its tables for the ledger."""
    by_sheet: dict[int, list[SourceTable]] = {}
    for table in (*source.tables, *source.skipped):
        by_sheet.setdefault(table.sheet.index, []).append(table)
    done = reported = 0
    for tables in by_sheet.values():
        for group in group_by_reading(tables):
            for table, rows in chunks(group):
                table.hidden.add(rows.hidden)
                table.unmade.add(rows.unmade)
                table.data_rows.add([*dict.fromkeys(rows.numbers)] if rows.value_columns else rows.numbers)
                if table.id not in streams or not rows.numbers:
                    continue
                streams[table.id].feed(rows)
                done += len(rows.numbers)
                if done - reported >= _PROGRESS_EVERY:
                    reported = done
                    channel.write(PassProgress("transform", done, table=table.id))
    channel.write(PassProgress("write", done, done, source.file.name))


def table_refs() -> Iterator[str]:
    """Yield short names for the tables of a job, one after the other: t1, t2, …"""
    return (f"t{n}" for n in count(1))
