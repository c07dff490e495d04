"""Runs one job from its order to its outputs: the five passes, in order. `run` is the entry point inside the box."""

import gc
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NoReturn, TextIO

from runner.engine.artifact import Artifact
from runner.engine.common.fields import ANY, Field
from runner.engine.common.findings import Findings, FindingText
from runner.engine.contract import (
    EXPLAINED,
    EndCode,
    EndError,
    FinalEvent,
    InspectOrder,
    Json,
    Order,
    PassProgress,
    VerifyOrder,
)
from runner.engine.corrections.corrected import Corrections
from runner.engine.deciding.answers import Answers
from runner.engine.deciding.last_drop import LastDrop
from runner.engine.deciding.review import Asking
from runner.engine.deciding.selection import TableDoubt, select, skip_unnamed
from runner.engine.mapping.output_layout import OutColumn, lay_out
from runner.engine.mapping.score import IN_FULL, IN_SHORT, ListedFields
from runner.engine.mapping.supplying import note_surroundings, report_spread, report_unmapped, supply
from runner.engine.mapping.table_mapping import (
    MappedTable,
    expects_columns,
    map_table,
    nothing_mapped,
    unused_rules,
)
from runner.engine.mapping.twins import pool_samples
from runner.engine.memory.learnt import read_memories
from runner.engine.memory.recall import Recall
from runner.engine.memory.remembered import SenderShapes
from runner.engine.options import DUPLICATE, FILTERED, JobOptions
from runner.engine.protocol import (
    EngineStop,
    EventWriter,
    place_of,
    read_inspect_order,
    read_order,
    read_verify_order,
)
from runner.engine.reading.opening import load_readers
from runner.engine.reading.spool import Room
from runner.engine.rejects.set_aside import (
    MAX_RUNS,
    refusal,
    rows_with_errors,
    split_off_rows,
    split_off_runs,
    too_blank,
)
from runner.engine.rules.hooks import Hooks, row_scores
from runner.engine.rules.load import RulePackage, load
from runner.engine.surveying.declared_names import DeclaredNames, HeadingSpellings
from runner.engine.surveying.survey import compare_shapes, leave_out_by_hooks, survey
from runner.engine.surveying.surveyed_input import SurveyedInput
from runner.engine.tables.lookups import Lookups
from runner.engine.tables.sources import unpivot
from runner.engine.tables.supplied import NONE, plan_added_columns
from runner.engine.transforming import conventions, scales, signs
from runner.engine.transforming.pipeline import Times
from runner.engine.transforming.row_passes import RowPasses, stream_input, table_refs
from runner.engine.transforming.row_rules import check_row_count

REPORTED: Final = 0  # the final event was written, whatever it says
UNREPORTED: Final = 70
_PROGRESS_EVERY: Final = 65_536  # rows between two progress events
_MANY_ROWS: Final = 10_000  # that leave megabytes of freed memory behind
_MOST_SHEETS: Final = 10  # sheets listed in a finding
_SETTING_OF_REMOVED: Final = {FILTERED: "rows.filter", DUPLICATE: "rows.dedupe"}
_MOST_FILES: Final = 10  # inputs without rows that a message names


def run(order: Json, channel: TextIO | None, *, folder: Path | None = None) -> int:
    """Carry out an order and write its final event to `channel`; return the exit code, REPORTED or UNREPORTED. Relative
    paths are below `folder` (default: here)."""
    # A box lives for one job and rows form no cycles; garbage collection would take a tenth of the time.
    gc.set_threshold(100_000, 50, 100)
    try:
        return _run(order, channel, folder or Path.cwd())
    except Exception:  # noqa: BLE001  # the channel itself is gone; the exit code is all that is left
        return UNREPORTED


def _run(raw: Json, channel: TextIO | None, folder: Path) -> int:
    """Carry out an order of any kind, verify its outputs if it asks for that, and write the final event."""
    events = EventWriter(channel)
    if "verify" in raw:
        events.write(_guarded(lambda: _verify(read_verify_order(raw, folder))))
        return REPORTED
    if "inspect" in raw:
        events.write(_guarded(lambda: _inspect(read_inspect_order(raw, folder))))
        return REPORTED
    verify_orders: list[VerifyOrder] = []
    end = _guarded(lambda: _work(raw, events, folder, verify_orders))
    code = None if end.error is None else end.error.code
    rows = end.summary.get("rows_in")
    if isinstance(rows, int) and rows >= _MANY_ROWS:
        _return_freed_memory()
    for order in verify_orders if code is None or code in EXPLAINED else ():
        events.write(replace(_verify(order.ended(code)), verified=True))
    events.write(end)
    sys.stdout.flush()
    sys.stderr.flush()
    return REPORTED


def _return_freed_memory() -> None:
    """Return the memory that the passes have freed to the system, as far as its C library can: verification needs its
    own, and the box's peak is that of both."""
    import ctypes  # noqa: PLC0415  # a small job does without

    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def load_everything() -> None:
    """Load the parts that only some jobs need: a warm process does it once for all of its boxes."""
    load_readers()
    import runner.engine.writing.data_files  # noqa: F401, PLC0415


def _guarded(action: Callable[[], FinalEvent]) -> FinalEvent:
    """Call an action, and return its event or the end that stands for what it raised; never raises."""
    try:
        return action()
    except EngineStop as stop:
        return stop.end
    except MemoryError:
        remedy = "raise limits.memory_mb in the manifest, or split the file"
        problem = EndError(EndCode.OUT_OF_MEMORY, "the job exceeded its memory limit", {"remedy": remedy})
    except Exception as error:  # noqa: BLE001  # the last line: say what broke, never on which value
        problem = EndError(EndCode.ENGINE_ERROR, f"the engine failed: {type(error).__name__}", place_of(error))
    return FinalEvent(error=problem)


def _work(raw: Json, events: EventWriter, folder: Path, verify_orders: list[VerifyOrder]) -> FinalEvent:
    """Write the outputs; `verify_orders` receives the order to verify them, if the job's order has one."""
    order = read_order(raw, folder)
    if order.verification is not None:
        verify_orders.append(order.verification)
    if order.draft is not None:
        from runner.engine.drafting import draft  # noqa: PLC0415  # no job needs it

        return FinalEvent(draft(order, order.draft))
    return FinalEvent(EngineJob(order, events).run())


def _verify(order: VerifyOrder) -> FinalEvent:
    """Verify the outputs of a job; whatever they hold, it returns an event."""
    from runner.engine.verifying import carry_out  # noqa: PLC0415  # a box that starts cold may do without

    return carry_out(order)


def _inspect(order: InspectOrder) -> FinalEvent:
    """Inspect results of jobs (compare, describe, explain); whatever they hold, it returns an event."""
    from runner.engine.comparing import carry_out  # noqa: PLC0415  # few boxes need it

    return carry_out(order)


def _read_decision(order: Order) -> Json | None:
    """Return what a person decided; None if nobody did. It was validated before it was staged."""
    if order.decision is None:
        return None
    body: Json = json.loads(order.decision.path.read_bytes())
    return body


class EngineJob:
    """Carries out one order; its attributes are what the passes share and add to."""

    def __init__(self, order: Order, channel: EventWriter) -> None:
        """Prepare the job of an order; nothing is read yet. Events go to `channel`."""
        self.order = order
        self.channel = channel
        self.findings = Findings()
        self.times = Times()
        self.lookups = Lookups(order.auxiliary, self.findings)
        self.options = JobOptions.parse(order.manifest)
        self.doubts: list[TableDoubt] = []  # tables that may or may not hold records
        self.corrections = Corrections(self.findings)
        self.last_drop = LastDrop(order, self.options, self.findings)
        self.reading, self.mapping, self.output = self.options.reading, self.options.mapping, self.options.output
        memories = order.memories
        self.learnt = read_memories([(m.path, m.key) for m in memories], [m.version for m in memories], order.headers)
        self.shapes = SenderShapes(self.learnt.shapes, order.sender)
        self.unmapped: list[MappedTable] = []  # tables in which no column matches a field
        self.supplied = NONE  # columns that are added to those of every table
        self.spellings_by_field: dict[
            str, dict[str, Any]
        ] = {}  # field -> folded text -> the allowed value that it means
        self.answers = Answers(
            _read_decision(order), accept=order.accept, readings=self.learnt.readings_of(order.sender)
        )

    def run(self) -> Json:
        """Run the job and return the summary for the end event."""
        package = load(self.order.config, [f.name for f in self.options.fields])
        try:
            return self._run(package)
        finally:
            package.log_failures()

    def map_only(self, shown: ListedFields = IN_FULL) -> list[MappedTable]:
        """Run structure and mapping without the config's Python; returns every table with data, mapped or not."""
        package = load(None)
        fields = self._fields(package)
        hooks = Hooks(package, self.findings, {}, strict=self.options.stops_on_rule_error)
        return self._map_all(self._structure(fields, package, hooks), fields, package, hooks, listed=shown)

    def _run(self, package: RulePackage) -> Json:
        """Run the five passes in their order, with every way to end before; returns the summary."""
        fields = self._fields(package)
        shared = {
            "params": dict(self.order.params),
            "state": {},
            "lookups": self.lookups,
            "log": _log,
            "job": self.order.job.encode(),
        }
        hooks = Hooks(package, self.findings, shared, strict=self.options.stops_on_rule_error)
        inputs = [{"name": i.name, "role": i.role} for i in (*self.order.primary, *self.order.auxiliary)]
        hooks.notify("on_job_start", inputs=inputs, fields=[f.name for f in fields])
        sources = self._structure(fields, package, hooks)
        tables = self._map(sources, fields, package, hooks)
        self._supply(sources, tables, fields)
        if not tables:
            self._stop_empty(package, sources, fields)
        empty = bool(tables) and not any(t.is_mapped for t in tables)
        asking = self._asking(fields, package)
        if empty and expects_columns(fields, {*package.transforms, *self.supplied.fields}):
            self._ask(asking, sources, tables, fields)
            self._stop_unmapped(package, sources, tables, fields)
        if stop := self.last_drop.compare_columns(tables):
            self._stop_drifted(stop, package, sources, tables, fields)
        self._decide_conventions(sources, tables, fields)
        self._ask(asking, sources, tables, fields)
        self.answers.report(self.findings)
        columns, plans = lay_out(
            fields,
            [(t.fields, t.unmapped_columns()) for t in tables],
            policy=self.mapping.unmapped,
            use_labels=self.output.use_labels,
            added=self._added_columns(tables),
        )
        self._report_renamed(columns)
        artifact = Artifact(
            self.order,
            self.options,
            package=package,
            sources=sources,
            tables=tables,
            columns=columns,
            findings=self.findings,
            corrections=self.corrections,
        )
        streamed = self._row_passes(package, hooks, columns).run(columns, sources, tables, plans)
        artifact.streamed(streamed.streams, streamed.workbook, streamed.rejected, streamed.split_rows)
        self.times |= streamed.times
        if empty and fields and not streamed.any_value:
            self._stop_unmapped(package, sources, tables, fields)
        self._stop_short(artifact, sources)
        self._check_rows(artifact, sources)
        artifact.profile = self.last_drop.profile(tables, artifact.shares) | artifact.shapes(self.answers)
        artifact.drift = self.last_drop.compare_values(tables, artifact.shares)
        self._stop_rejected(artifact, sources)
        summary = artifact.summary()
        hooks.notify("on_job_end", summary=summary)
        summary["findings"] = self.findings.by_severity()
        artifact.write(self.times, summary)
        return summary

    def _fields(self, package: RulePackage) -> list[Field]:
        """Return the declared fields, then those that only a file in columns/ defines; sets `supplied`."""
        declared = {f.name for f in self.options.fields}
        implied = [Field({"name": n, "type": ANY}, declared=False) for n in package.field_names if n not in declared]
        fields = [*self.options.fields, *implied]
        self.supplied = plan_added_columns(self.options, fields)
        return fields

    def _structure(self, fields: list[Field], package: RulePackage, hooks: Hooks) -> list[SurveyedInput]:
        """Run pass 1: read the inputs and find their tables. Raises EngineStop for an order without an input."""
        clock = perf_counter()
        files = self.order.primary
        if not files:
            raise EngineStop(
                EndCode.ENGINE_ERROR, "the order has no primary input", remedy="see docs/reference/engine-order.md"
            )
        self._read_beside()
        sources = [
            SurveyedInput(file, self.reading, self.corrections if self.order.corrections else None) for file in files
        ]
        room = Room()
        names = HeadingSpellings(fields, self.learnt.headers.names())
        for index, source in enumerate(sources):
            survey(
                source, self.reading, self.findings, room=room, headings=partial(DeclaredNames, names),
                added=self.supplied.columns,
                scores=partial(row_scores, package, hooks, input=source.file.name), decided=self.answers,
                shapes=self.shapes,
            )  # fmt: skip
            self.channel.write(PassProgress("structure", index + 1, len(sources), source.file.name))
        if self.shapes:
            compare_shapes(sources, self.shapes, self.findings)
        self._report_empty(sources)
        if self.order.corrections:
            self.corrections.report()
        if hooks.has("after_structure"):
            leave_out_by_hooks(sources, hooks, self.findings)
        tables = [table for source in sources for table in source.tables]
        if self.reading.named:
            skip_unnamed(tables, self.reading.named, self.findings)
        if self.options.unpivot is not None:
            unpivot(tables, self.options.unpivot)
        self.times.spend("structure", clock)
        return sources

    def _read_beside(self) -> None:
        """Read what was staged beside the inputs: corrections; and report what could not be."""
        for file in self.order.corrections:
            self.corrections.read(file)
        for name in self.order.lost:
            self.corrections.report_lost(name)
        for key, why in self.order.refused.items():
            self.findings.add("memory_refused", "warning", f"the memory {key} was not used: {why}", rule="memory")

    def _report_empty(self, sources: list[SurveyedInput]) -> None:
        """Report inputs without a table; if none has one, empty_input says so."""
        if self.options.min_rows and not any(source.tables for source in sources):
            return
        for source in (source for source in sources if not source.tables):
            what = f"{source.file.name}: {source.why_empty()}"
            self.findings.add("no_table", "error" if self.options.min_rows else "info", what, rule="structure")

    def _map(
        self, sources: list[SurveyedInput], fields: list[Field], package: RulePackage, hooks: Hooks
    ) -> list[MappedTable]:
        """Run pass 2: map the columns of every table, and return the tables whose rows are used: those with a field, or
        all if none has one, without those that hold no records."""
        clock = perf_counter()
        mapped = self._map_all(sources, fields, package, hooks)
        tables_in_use = [t for t in mapped if t.is_mapped] or mapped
        self.unmapped = [table for table in mapped if table not in tables_in_use]
        for table in self.unmapped:
            table.left_out = True
        if not self.reading.named:
            self._note_surroundings(sources, tables_in_use)
            tables_in_use, self.doubts = select(tables_in_use, fields, self._asked_for, self.findings)
        for table in tables_in_use:
            table.report(fields, self.findings, computed=package.transforms, headless=self.reading.headless)
        for name in unused_rules(tables_in_use, fields, package.transforms):
            what = f"the manifest does not declare {name} and no column matches it, so its rules did not run"
            file = f"columns/{name}.py"
            self.findings.add("rules_unused", "warning", what, field=name, rule="mapping", file=file, line=1)
        self.channel.write(PassProgress("mapping", len(mapped), len(mapped)))
        self.times.spend("mapping", clock)
        return tables_in_use

    def _map_all(
        self,
        sources: list[SurveyedInput],
        fields: list[Field],
        package: RulePackage,
        hooks: Hooks,
        *,
        listed: ListedFields = IN_SHORT,
    ) -> list[MappedTable]:
        """Map every table with data that is not skipped; `listed`: how many other fields are named for each column."""
        mapped: list[MappedTable] = []
        recall = Recall(self.learnt.headers, self._spellings(fields))
        used = [[t for t in source.tables if t.has_data and not t.skipped] for source in sources]
        samples: dict[str, list[list[Any]]] = {}
        for source, tables in zip(sources, used, strict=True):
            with source.streaming():
                samples |= {table.id: table.samples() for table in tables}
        evidence = pool_samples([table for tables in used for table in tables], samples)
        for source, tables in zip(sources, used, strict=True):
            with source.streaming():
                mapped += [
                    map_table(
                        table,
                        fields,
                        threshold=self.mapping.threshold,
                        detectors=package.detectors,
                        hooks=hooks,
                        lookups=self.lookups,
                        recall=recall,
                        supplied=self.supplied.fields,
                        samples=samples[table.id],
                        evidence=evidence.get(table.id),
                        shown=listed,
                    )
                    for table in tables
                ]
        for table in mapped:
            table.recall_fields(fields)
            self.answers.apply(table, fields)
        return mapped

    def _asked_for(self, table: MappedTable) -> bool | None:
        """Return what somebody said about whether a table is to be used; None if nobody did."""
        place = table.source.place
        answer = self.answers.uses(place.table)
        if answer is None and self.answers.skips(place.input, place.sheet) is False:
            answer = True
        if answer is not None:
            return answer
        is_known = table.source.table.shape is not None or any(c.tier in ("hook", "decision") for c in table.choices)
        return True if is_known or place.sheet in self.reading.sheets else None

    def _asking(self, fields: list[Field], package: RulePackage) -> Asking:
        """Make what asks a person, if the manifest lets it; fields with values from elsewhere need no column."""
        valued = {f.name for f in fields if f.default is not None or f.constant is not None}
        valued |= {*package.transforms, *self.supplied.fields, *(f.name for f in fields if f.is_computed)}
        return Asking(self.order, self.options, self.answers, fields, fields_with_values=valued)

    def _ask(
        self, asking: Asking, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]
    ) -> None:
        """End the job with its questions, by raising, if a person must decide."""
        questions = asking.questions(tables, self.findings.readings) if asking.is_wanted else []
        if asking.is_wanted:
            doubts = [doubt for source in sources for doubt in source.partitions]
            questions = [*asking.ask_partitions(doubts), *asking.ask_tables(self.doubts), *questions]
        if supposed := asking.suppose_likeliest(questions, tables):
            guessed = Findings()
            self._decide_each(sources, supposed, fields, guessed)
            questions += asking.ask_ahead(supposed, tables, guessed.readings)
        if self.options.on_drift == "review" and not self.order.corrections and self.last_drop.has_other_columns:
            questions += asking.ask_drift(self.last_drop.changes_in_words)
        if questions:
            raise asking.stop(questions)

    def _note_surroundings(self, sources: list[SurveyedInput], tables: list[MappedTable]) -> None:
        """Set what around tables tells their rows from those of others, before they are compared."""
        heads = self.reading.heads_count
        for source in sources if len(tables) > 1 and (heads or self.supplied.labels) else ():
            tables_of_source = [t for t in tables if t.source in source.tables]
            with source.streaming():
                note_surroundings(tables_of_source, self.supplied, heads=heads)

    def _supply(self, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]) -> None:
        """Find the labelled values and captions around the tables in use, and report what is missing or doubtful."""
        if self.options.unpivot is not None:
            report_spread(tables, self.options.unpivot, self.findings)
        down = {f.name for f in fields if f.fill_down}
        for table in tables if down else ():
            table.source.fill_down = frozenset(c.position for c in table.choices if c.field in down)
        heads = self.reading.heads_count
        for source in sources if heads or self.supplied.labels else ():
            tables_of_source = [t for t in tables if t.source in source.tables]
            with source.streaming():
                supply(tables_of_source, fields, self.supplied, self.findings, heads=heads)
        report_unmapped(self.unmapped, tables, self.findings)

    def _added_columns(self, tables: list[MappedTable]) -> dict[str, tuple[str, list[int]]]:
        """Return the columns appended to the output: for each its header and its position in each table's chunks."""
        headers = self.supplied.headers
        return {what: (name, [t.source.place_of(what) for t in tables]) for what, name in headers.items()}

    def _stop_unmapped(
        self, package: RulePackage, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]
    ) -> NoReturn:
        """Write the artifact and end the job, by raising EngineStop: no column matches a field, so there is nothing to
        normalize."""
        stop = nothing_mapped(tables, fields, redact=self.options.redact_headers)
        self.findings.add("nothing_mapped", "error", "no column of any table matches a declared field", rule="mapping")
        self._leave_all_out(sources)
        artifact = self._audit(package, sources, tables, fields)
        artifact.write(self.times, artifact.summary())
        raise stop

    def _stop_drifted(
        self,
        stop: EngineStop,
        package: RulePackage,
        sources: list[SurveyedInput],
        tables: list[MappedTable],
        fields: list[Field],
    ) -> NoReturn:
        """Write the artifact and end the job, by raising `stop`: its columns are not those of the sender's last
        drop."""
        self._leave_all_out(sources)
        artifact = self._audit(package, sources, tables, fields)
        artifact.withhold("the columns differ from those of the sender's last drop")
        artifact.drift = self.last_drop.drift([])
        artifact.write(self.times, artifact.summary())
        raise stop

    def _audit(
        self, package: RulePackage, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]
    ) -> Artifact:
        """Make the artifact of a job that ends before it writes rows."""
        columns, _ = lay_out(fields, [], policy="drop")
        return Artifact(
            self.order,
            self.options,
            package=package,
            sources=sources,
            tables=tables,
            columns=columns,
            findings=self.findings,
        )

    def _stop_empty(self, package: RulePackage, sources: list[SurveyedInput], fields: list[Field]) -> None:
        """Write the artifact and end the job, by raising EngineStop: no table has rows, and the manifest expects some;
        nothing if it does not."""
        if not self.options.min_rows:
            return
        stop = self._too_few(0, sources)
        self._leave_all_out(sources)
        artifact = self._audit(package, sources, [], fields)
        artifact.write(self.times, artifact.summary())
        raise stop

    def _stop_short(self, artifact: Artifact, sources: list[SurveyedInput]) -> None:
        """End the job with its artifact, by raising EngineStop, if there are fewer rows than the manifest expects."""
        rows = artifact.rows + split_off_rows(sources)
        if rows < self.options.min_rows:
            stop = self._too_few(rows, sources)
            self._withhold(artifact, sources, "the file has too few rows")
            raise stop

    def _too_few(self, rows: int, sources: list[SurveyedInput]) -> EngineStop:
        """Report that the job has fewer rows than the manifest expects, and return its end."""
        why = "; ".join(f"{source.file.name}: {source.why_empty()}" for source in sources[:_MOST_FILES] if not rows)
        what = f"{rows:,} row{'s' * (rows != 1)} of data, and min_rows is {self.options.min_rows:,}"
        what += f" ({why})" if why else ""
        removed = {
            kind: sum(t.removed[kind].count for s in sources for t in s.tables) for kind in (FILTERED, DUPLICATE)
        }
        what += "".join(
            f"; {count:,} left out by {_SETTING_OF_REMOVED[kind]}" for kind, count in removed.items() if count
        )
        text = FindingText(what, rows=rows, limit=self.options.min_rows)
        self.findings.add("empty_input", "error", text, rule="min_rows")
        remedy = f'send the file with all its rows, or accept it with "min_rows": {rows} in the manifest'
        return EngineStop(EndCode.EMPTY_INPUT, what, rule="min_rows", remedy=remedy)

    def _withhold(self, artifact: Artifact, sources: list[SurveyedInput], why: str) -> None:
        """Write the artifact of a job that ends without an output though its rows were read."""
        for source in sources:
            for books in source.books.values():
                for table in books.tables:
                    table.withhold()
        artifact.withhold(why)
        artifact.write(self.times, artifact.summary())

    def _stop_rejected(self, artifact: Artifact, sources: list[SurveyedInput]) -> None:
        """End the job with its artifact and rejects, by raising EngineStop, if more rows have errors, or lack a value,
        than the manifest accepts."""
        bad = rows_with_errors(sources)
        rows = artifact.rows + split_off_rows(sources)
        why = "too many rows have errors"
        stop = refusal(self.options, bad, rows, split_off_runs(sources))
        if stop is None:
            why = "too many rows lack a value"
            stop = too_blank(self.options.fields, artifact.blanks_by_limited_field(), artifact.records)
        if stop is None:
            return
        field = stop.where.get("field")
        rule = str(stop.where["rule"])
        self.findings.add("rows_rejected", "error", stop.message, field=str(field) if field else None, rule=rule)
        self._withhold(artifact, sources, why)
        raise stop

    def _leave_all_out(self, sources: list[SurveyedInput]) -> None:
        """Close the books of a job that writes nothing: all its rows are left out, and reported unless they were."""
        refs = table_refs()
        for source in sources:
            known = bool(source.books)
            with source.streaming():
                if not known:
                    stream_input(source, {}, self.channel)
                source.close_books((), refs)
            for books in () if known else source.books.values():
                books.report(self.findings)

    def _decide_conventions(self, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field]) -> None:
        """Decide the conventions of each column (decimal sign, date order) before any is transformed."""
        clock = perf_counter()
        self._decide_each(sources, tables, fields, self.findings)
        scales.report_scales(tables, fields, self.findings)
        signs.report_signs(tables, fields, self.findings)
        self.times.spend("mapping", clock)

    def _decide_each(
        self, sources: list[SurveyedInput], tables: list[MappedTable], fields: list[Field], findings: Findings
    ) -> None:
        """Decide the conventions of each input's tables."""
        for source in sources:
            tables_of_source = [table for table in tables if table.source in source.tables]
            with source.streaming():
                conventions.decide(source, tables_of_source, fields, findings, override=self.answers.override)

    def _report_renamed(self, columns: list[OutColumn]) -> None:
        """Report unmapped columns that were renamed because another column has their header."""
        for column in columns:
            if column.renamed:
                self.findings.add(
                    "column_renamed",
                    "info",
                    "another column already has this unmapped column's header; a number was added to it",
                    rule="mapping",
                )

    def _row_passes(self, package: RulePackage, hooks: Hooks, columns: list[OutColumn]) -> RowPasses:
        """Make the passes over the rows, with what they need to know of this job."""
        return RowPasses(
            order=self.order,
            options=self.options,
            lookups=self.lookups,
            findings=self.findings,
            channel=self.channel,
            package=package,
            hooks=hooks,
            spellings=self._spellings(column.field for column in columns if column.field is not None),
        )

    def _check_rows(self, artifact: Artifact, sources: list[SurveyedInput]) -> None:
        """Report a number of rows that a rule does not accept; raises EngineStop if the rows left out are too scattered
        to be listed."""
        for rule in self.options.rules:
            if rule.rows is not None:
                check_row_count(rule, artifact.rows_written, self.findings)
        runs = sum(len(rows) for source in sources for t in source.tables for rows in t.removed.values())
        runs += split_off_runs(sources) if runs else 0
        if runs > MAX_RUNS:
            what = f"rows.filter and rows.dedupe leave out rows in {runs:,} places; at most {MAX_RUNS:,} can be listed"
            remedy = "split the input, or sort it before it is sent, so that rows to leave out are side by side"
            raise EngineStop(EndCode.INPUT_UNREADABLE, what, rule="rows", reason="too_large", remedy=remedy)

    def _spellings(self, fields: Iterable[Field]) -> dict[str, dict[str, Any]]:
        """Map folded texts of each field to the allowed value that memories say they mean; worked out once for each
        field."""
        for field in fields if self.learnt.values else ():
            allowed = self.lookups.column(field) if field.lookup else field.allowed
            if allowed and field.name not in self.spellings_by_field:
                self.spellings_by_field[field.name] = self.learnt.spellings(field.name, allowed)
        return self.spellings_by_field


def _log(*words: object) -> None:
    """The `log` of rules: prints a line to the job's log, which only its owner reads."""
    print(*words, flush=True)  # noqa: T201
