"""One job from its order to its outputs: the five passes in their order."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import perf_counter
from typing import IO, Any, Final, NoReturn

from runner.engine import conventions
from runner.engine.artifact import Artifact
from runner.engine.checking import FieldChecks, RowCheck
from runner.engine.fields import ANY, Field
from runner.engine.findings import Findings
from runner.engine.lookups import Lookups
from runner.engine.mapping.recall import Recall, read_memories
from runner.engine.mapping.score import THRESHOLD
from runner.engine.mapping.table_mapping import (
    MappedTable,
    OutColumn,
    TablePlan,
    expects_columns,
    lay_out,
    map_table,
    nothing_mapped,
    unused_rules,
)
from runner.engine.protocol import EngineStop, EventWriter, Order
from runner.engine.rules.hooks import Hooks, row_scores
from runner.engine.rules.load import RulePackage, load
from runner.engine.sources import GROUP, PROVENANCE, SourceTable, chunks, strands
from runner.engine.spool import Room
from runner.engine.stream import Pipeline, TableStream, Times
from runner.engine.survey import DeclaredNames, SurveyedInput, survey
from runner.engine.workbook import NormalizedBook
from runner.engine.writing import SheetWriter

_SAY_EVERY: Final = 65_536  # rows between two words of progress
_SHEETS: Final = 10  # sheets that a finding names


class EngineJob:
    """Carries one order out."""

    def __init__(self, order: Order, channel: EventWriter) -> None:
        self.order = order
        self.channel = channel
        self.findings = Findings()
        self.times = Times()
        self.lookups = Lookups(order.auxiliary, self.findings)
        manifest = order.manifest
        self.strict = manifest.get("on_rule_error") == "fail"
        self.mapping: dict[str, Any] = manifest.get("mapping") or {}
        self.output: dict[str, Any] = manifest.get("output") or {}
        self.reading: dict[str, Any] = manifest.get("reading") or {}

    def run(self) -> dict[str, Any]:
        """Do the job; the summary of the end event."""
        package = load(self.order.config, [f.name for f in self.order.fields])
        try:
            return self._run(package)
        finally:
            package.log_failures()

    def map_only(self) -> list[MappedTable]:
        """Structure and mapping, and nothing of the config's Python: every table with data, mapped or not."""
        package = load(None)
        fields = self._fields(package)
        hooks = Hooks(package, self.findings, {}, strict=self.strict)
        return self._mapped(self._structure(fields, package, hooks), fields, package, hooks)

    def _run(self, package: RulePackage) -> dict[str, Any]:
        fields = self._fields(package)
        shared = {
            "params": self.order.params,
            "state": {},
            "lookups": self.lookups,
            "log": _log,
            "job": self.order.job,
        }
        hooks = Hooks(package, self.findings, shared, strict=self.strict)
        inputs = [{"name": i.name, "role": i.role} for i in (*self.order.primary, *self.order.auxiliary)]
        hooks.tell("on_job_start", inputs=inputs, fields=[f.name for f in fields])
        sources = self._structure(fields, package, hooks)
        tables = self._map(sources, fields, package, hooks)
        empty = bool(tables) and not any(t.is_mapped for t in tables)
        if empty and expects_columns(fields, {*package.transforms, tables[0].filled}):
            self._stop_unmapped(package, sources, tables, fields)
        self._settle(sources, tables, fields)
        columns, plans = lay_out(
            fields,
            [(t.fields, t.kept()) for t in tables],
            policy=self.mapping.get("unmapped", "keep"),
            use_labels=self.output.get("header") == "label",
            added=self._added(tables),
        )
        self._note_renamed(columns)
        artifact = Artifact(
            self.order,
            package=package,
            sources=sources,
            tables=tables,
            columns=columns,
            findings=self.findings,
        )
        filled = self._stream(artifact, sources=sources, tables=tables, plans=plans, package=package, hooks=hooks)
        if empty and fields and not filled:
            self._stop_unmapped(package, sources, tables, fields)
        summary = artifact.summary()
        hooks.tell("on_job_end", summary=summary)
        summary["findings"] = self.findings.by_severity()
        artifact.write(self.times, summary)
        return summary

    def _fields(self, package: RulePackage) -> list[Field]:
        """The declared fields, then those that only a file in columns/ speaks of."""
        known = {f.name for f in self.order.fields}
        implied = [Field({"name": n, "type": ANY}, declared=False) for n in package.field_names if n not in known]
        return [*self.order.fields, *implied]

    def _structure(self, fields: list[Field], package: RulePackage, hooks: Hooks) -> list[SurveyedInput]:
        clock = perf_counter()
        files = self.order.primary
        if not files:
            raise EngineStop("engine_error", "the order has no primary input", remedy="see docs/engine-order.md")
        reading = self.order.manifest.get("reading") or {}
        sources = [SurveyedInput(f, reading) for f in files]
        room = Room()
        for n, source in enumerate(sources):
            survey(
                source, self.reading, self.findings, room=room, headings=partial(DeclaredNames, fields),
                provenance=bool(self.output.get("provenance")),
                scores=partial(row_scores, package, hooks, input=source.file.name),
            )  # fmt: skip
            self.channel.progress("structure", done=n + 1, total=len(sources), table=source.file.name)
            if not source.tables:
                self.findings.add("no_table", "error", f"no table was found in {source.file.name}", rule="structure")
        if hooks.has("after_structure"):
            leave_out(sources, hooks, self.findings)
        self.times.spend("structure", clock)
        return sources

    def _map(
        self, sources: list[SurveyedInput], fields: list[Field], package: RulePackage, hooks: Hooks
    ) -> list[MappedTable]:
        clock = perf_counter()
        mapped = self._mapped(sources, fields, package, hooks)
        wanted = [t for t in mapped if t.is_mapped] or mapped
        for one in mapped:
            if one not in wanted:
                one.left_out = True
                self.findings.add(
                    "table_unmapped", "warning", "no column of this table is a declared field; it was left out",
                    place=one.source.place, rule="mapping",
                )  # fmt: skip
        for one in wanted:
            one.report(
                fields, self.findings, computed=package.transforms, headless=self.reading.get("header") == "none"
            )
        for name in unused_rules(wanted, fields, package.transforms):
            what = f"the manifest does not declare {name} and no column was found for it; its rules did nothing"
            file = f"columns/{name}.py"
            self.findings.add("rules_unused", "warning", what, field=name, rule="mapping", file=file, line=1)
        self.channel.progress("mapping", done=len(mapped), total=len(mapped))
        self.times.spend("mapping", clock)
        return wanted

    def _mapped(
        self, sources: list[SurveyedInput], fields: list[Field], package: RulePackage, hooks: Hooks
    ) -> list[MappedTable]:
        mapped: list[MappedTable] = []
        recall = Recall(read_memories([(m.path, m.key) for m in self.order.memories]))
        for source in sources:
            with source.streaming():
                mapped += [
                    map_table(
                        table,
                        fields,
                        threshold=float(self.mapping.get("threshold", THRESHOLD)),
                        detectors=package.detectors,
                        hooks=hooks,
                        lookups=self.lookups,
                        recall=recall,
                        filled=self._filled(fields),
                    )
                    for table in source.tables
                    if table.has_data
                ]
        return mapped

    def _filled(self, fields: list[Field]) -> str | None:
        """The declared field that takes the captions of groups."""
        name = self.reading.get("group_column", GROUP)
        filling = self.reading.get("group_rows") == "fill"
        return name if filling and any(f.name == name for f in fields) else None

    def _added(self, tables: list[MappedTable]) -> dict[str, tuple[str, list[int]]]:
        """Columns at the end that no source has: what each says, its header, and its place in each table's chunks."""
        names: dict[str, str] = {}
        if self.reading.get("group_rows") == "fill" and not any(t.filled for t in tables):
            names[GROUP] = self.reading.get("group_column", GROUP)
        if self.output.get("provenance"):
            names |= {name: name for name in PROVENANCE}
        return {what: (name, [t.source.place_of(what) for t in tables]) for what, name in names.items()}

    def _stop_unmapped(
        self, package: RulePackage, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]
    ) -> NoReturn:
        """End the job with its artifact: no field was found, so there is nothing to write."""
        stop = nothing_mapped(tables, fields, redact=bool(self.order.manifest.get("redact_headers")))
        self.findings.add("nothing_mapped", "error", "no column of any table is one of the fields", rule="mapping")
        self._leave_all_out(sources)
        columns, _ = lay_out(fields, [], policy="drop")
        artifact = Artifact(
            self.order, package=package, sources=sources, tables=tables, columns=columns, findings=self.findings
        )
        artifact.write(self.times, artifact.summary())
        raise stop

    def _leave_all_out(self, sources: list[SurveyedInput]) -> None:
        """The books of a job that writes nothing."""
        refs = _refs()
        for source in sources:
            known = bool(source.books)
            with source.streaming():
                if not known:
                    self._pour(source, {})
                source.close_books((), refs)
            for books in () if known else source.books.values():
                books.report(self.findings)

    def _settle(self, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]) -> None:
        """Decide how each column is written before any of them is transformed."""
        clock = perf_counter()
        for source in sources:
            mine = [t for t in tables if t.source in source.tables]
            with source.streaming():
                conventions.decide(source, mine, fields, self.findings)
        self.times.spend("mapping", clock)

    def _note_renamed(self, columns: list[OutColumn]) -> None:
        for column in columns:
            if column.renamed:
                self.findings.add(
                    "column_renamed",
                    "info",
                    "an unmapped column's header was taken; it got a number",
                    rule="mapping",
                )

    def _stream(
        self,
        artifact: Artifact,
        *,
        sources: list[SurveyedInput],
        tables: list[MappedTable],
        plans: list[TablePlan],
        package: RulePackage,
        hooks: Hooks,
    ) -> bool:
        """Passes 3 to 5; whether any field got a value."""
        title, name = str(self.order.manifest.get("name", "")), self.output.get("sheet") or "Normalized"
        with self._opened("normalized.xlsx") as file:
            workbook = NormalizedBook(file, artifact.columns, title=title, sheet=name)
            line = self._pipeline(artifact.columns, package, hooks, workbook.main)
            spelled = {
                name: values
                for name, check in line.checks.items()
                if check.field.lookup and (values := self.lookups.column(check.field)) is not None
            }
            streams = {t.source.id: TableStream(line, t, p, spelled) for t, p in zip(tables, plans, strict=True)}
            clock = perf_counter()
            refs = _refs()
            for source in sources:
                with source.streaming():
                    self._pour(source, streams)
                    source.close_books(streams, refs)
                for books in source.books.values():
                    books.report(self.findings)
            reading = perf_counter() - clock - sum(line.times.values())
            for stream in streams.values():
                stream.report_left_out()
            self._note_split(workbook)
            workbook.finish(hooks.sheets(), self.findings if self.output.get("findings_sheet") else None)
        artifact.streamed(list(streams.values()), workbook)
        self.times |= line.times
        self.times["read"] = reading
        return any(s.filled for s in streams.values())

    def _note_split(self, workbook: NormalizedBook) -> None:
        if workbook.main is not None and len(workbook.main.names) > 1:
            shown = ", ".join(f"{name} ({rows} rows)" for name, rows in workbook.sheets()[:_SHEETS])
            more = len(workbook.main.names) - _SHEETS
            shown += f" and {more} more sheets" if more > 0 else ""
            self.findings.add(
                "output_split", "warning",
                f"the output is more than one sheet holds and goes on in a next one: {shown}",
                rule="write",
            )  # fmt: skip

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes] | None]:
        file = self.order.open_output(name)
        try:
            yield file
        finally:
            if file is not None:
                file.close()

    def _pipeline(
        self, columns: list[OutColumn], package: RulePackage, hooks: Hooks, sheet: SheetWriter | None
    ) -> Pipeline:
        fields = {c.field.name: c.field for c in columns if c.field is not None}
        return Pipeline(
            columns=columns,
            checks={name: FieldChecks(f, self.lookups.allowed(f)) for name, f in fields.items()},
            row_rules=[RowCheck(r, fields) for r in self.order.manifest.get("rules") or ()],
            package=package,
            hooks=hooks,
            findings=self.findings,
            sheet=sheet,
            strict=self.strict,
        )

    def _pour(self, source: SurveyedInput, streams: Mapping[str, TableStream]) -> None:
        """Every table's rows are counted; those of tables that are used go on into the output."""
        by_sheet: dict[int, list[SourceTable]] = {}
        for table in (*source.tables, *source.skipped):
            by_sheet.setdefault(table.sheet.index, []).append(table)
        done = said = 0
        for tables in by_sheet.values():
            for group in strands(tables):
                for table, rows in chunks(group):
                    table.hidden.add(rows.hidden)
                    table.taken.add(rows.numbers)
                    if table.id not in streams or not rows.numbers:
                        continue
                    streams[table.id].feed(rows)
                    done += len(rows.numbers)
                    if done - said >= _SAY_EVERY:
                        said = done
                        self.channel.progress("transform", done=done, table=table.id)
        self.channel.progress("write", done=done, total=done, table=source.file.name)


def _refs() -> Iterator[str]:
    """Short names for the tables of a job."""
    return (f"t{n}" for n in count(1))


def leave_out(sources: list[SurveyedInput], hooks: Hooks, findings: Findings) -> None:
    """Let hooks leave tables out."""
    seen = [
        {
            "id": t.id,
            "input": t.place.input,
            "sheet": t.place.sheet,
            "range": t.table.range.a1,
            "headers": [c.name for c in t.columns],
            "confidence": t.table.confidence,
        }
        for source in sources
        for t in source.tables
    ]
    skip = hooks.skipped_tables(seen)
    for source in sources:
        source.skipped += [t for t in source.tables if t.id in skip]
        source.tables = [t for t in source.tables if t.id not in skip]
        for table in source.skipped:
            findings.add("table_skipped", "info", "a hook left this table out", place=table.place, rule="structure")


def _log(*words: object) -> None:
    """What rules call as `log`: a line in the job's log, which only its owner reads."""
    print(*words, flush=True)  # noqa: T201
