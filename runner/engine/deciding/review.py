"""Asks a person where the engine is unsure.

The questions come after structure, mapping and the reading decisions, and before anything is written.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from runner.engine.common.fields import Field
from runner.engine.common.findings import ChosenReading
from runner.engine.contract import EndCode, Json, Order, OutputName
from runner.engine.deciding.answers import Answers
from runner.engine.deciding.questions import (
    AS_FOUND,
    READING_OF_CHOICE,
    SKIP,
    USE,
    Candidate,
    Question,
    label_of,
    partition_id,
    question_id,
)
from runner.engine.deciding.selection import TableDoubt
from runner.engine.mapping.evidence import listed
from runner.engine.mapping.score import MappingChoice, RunnerUp
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.options import JobOptions, why_asked
from runner.engine.protocol import EngineStop, open_output
from runner.engine.surveying.partitions import PartitionDoubt, name_ranges

VERSION: Final = 1
MOST_QUESTIONS: Final = 200
_MOST_CANDIDATES: Final = 12
_RANGES: Final = 20  # listed in an answer
_ROWS_ABOVE: Final = 3  # rows that are offered as the header, beside the one in doubt
_ROWS_BELOW: Final = 5
_CERTAIN_TIERS: Final = frozenset({"confirmed", "decision", "hook"})  # somebody said so before
_READING_LABELS: Final = {
    "day_first": "day first: 31/12/2025", "month_first": "month first: 12/31/2025",
    "year_first": "year first: 25/12/31",
    "point": "a decimal point: 1.5", "comma": "a decimal comma: 1,5", "percent": "percent: 45 is 45 %",
    "share": "shares: 0.45 is 45 %",
}  # fmt: skip
_READINGS_OF_KIND: Final = {
    "date_order": ("day_first", "month_first"), "decimal": ("point", "comma"), "unit": ("percent", "share"),
}  # fmt: skip


class Asking:
    """Makes the questions of a job, and ends a job that has some.

    Each method makes the questions about one thing; what was answered before is not asked again.
    """

    def __init__(
        self,
        order: Order,
        options: JobOptions,
        answers: Answers,
        fields: Sequence[Field],
        *,
        fields_with_values: Collection[str],
    ) -> None:
        """Prepare to ask about the tables of a job; `fields_with_values`: names of fields that need no column."""
        self.mode = options.mapping.review
        self._least_probability, self._sure_probability = options.mapping.unsure
        self._redact = options.redact_headers
        self._why = why_asked(self.mode, options.on_drift)
        self._answers = answers
        self._fields = {f.name: f for f in fields}
        self._fields_with_values = fields_with_values
        self._has_no_header = options.reading.headless
        self._sheets: set[tuple[str, str]] = set()  # that have tables
        self._order = order

    @property
    def is_wanted(self) -> bool:
        """Whether the manifest asks for a review and nobody has accepted all."""
        return self.mode != "never" and not self._answers.accept

    def questions(self, tables: Sequence[MappedTable], readings: Sequence[ChosenReading]) -> list[Question]:
        """Make the questions about everything that is unsure about these tables, each once, but for those about headers
        that somebody answered."""
        self._sheets = {(t.source.place.input, t.source.place.sheet) for t in tables}
        questions = [question for table in tables for question in self._ask_headers(table)]
        for table in tables:
            about_required = list(self._ask_required_fields(table))
            questions += about_required
            questions += self._ask_columns(table, {question.field for question in about_required})
        questions += self._ask_readings(tables, readings)
        unique = {question.id: question for question in questions}
        return [
            question
            for question in unique.values()
            if question.kind not in ("header", "drift") or not self._answers.accepts(question)
        ]

    def ask_partitions(self, doubts: Sequence[PartitionDoubt]) -> Iterator[Question]:
        """Ask how parts of sheets are cut into tables that could be cut in two ways."""
        for doubt in doubts:
            partitions = zip(doubt.values, (doubt.chosen, doubt.other), (None, doubt.probability), strict=True)
            options = tuple(
                Candidate(
                    value,
                    f"{'one table' if len(ranges) == 1 else f'{len(ranges)} tables'}: {name_ranges(ranges, _RANGES)}",
                    probability,
                )
                for value, ranges, probability in partitions
            )
            yield Question(
                partition_id(doubt),
                "tables",
                f"Is {doubt.area.a1} of sheet “{doubt.sheet}” {doubt.question}?",
                options,
                doubt.values[0],
                input=doubt.input,
                sheet=doubt.sheet,
            )

    def ask_tables(self, doubts: Sequence[TableDoubt]) -> Iterator[Question]:
        """Ask whether tables hold records that may hold something else."""
        labels = {USE: "yes: use it", SKIP: "no: leave it out"}
        for table, is_used, message in doubts:
            place, area = table.source.place, table.source.table.range.a1
            chosen = USE if is_used else SKIP
            yield Question(
                question_id("table", place.table),
                "table",
                f"Does {area} of sheet “{place.sheet}” hold records? {message[:1].upper()}{message[1:]}.",
                tuple(Candidate(o, labels[o]) for o in dict.fromkeys([chosen, *labels])),
                chosen,
                **self._place_keys(table),
            )

    def suppose_likeliest(self, questions: Sequence[Question], tables: Sequence[MappedTable]) -> list[MappedTable]:
        """Copy the tables with the likeliest answer to each question about a column that is not a field yet.

        What would have to be asked then is asked at once: another round would cost days.
        """
        likely: dict[str, dict[str, str]] = {}  # table -> letters of a column -> field
        for question in questions:
            table, first = question.table or "", question.candidates[0]
            if (
                question.kind == "column"
                and question.chosen is None
                and (first.probability or 0.0) >= self._least_probability
            ):
                likely.setdefault(table, {})[question.column or ""] = first.value or ""
            elif question.kind == "required" and first.probability is not None:
                likely.setdefault(table, {})[first.value or ""] = question.field or ""
        return [
            MappedTable(
                table.source,
                [
                    choice if choice.field else choice._replace(field=by_letters.get(table.letters(choice.position)))
                    for choice in table.choices
                ],
                table.samples,
                table.supplied,
            )
            for table in tables
            if (by_letters := likely.get(table.source.id))
        ]

    def ask_ahead(
        self, supposed: Sequence[MappedTable], tables: Sequence[MappedTable], readings: Sequence[ChosenReading]
    ) -> list[Question]:
        """Ask how values are written in columns that may become fields; `supposed`: the tables as if they were
        fields."""
        fields = {(t.source.id, t.letters(c.position)): c.field for t in tables for c in t.choices}
        asked = self._ask_readings(supposed, readings, ahead=True)
        return [question for question in asked if fields[question.table or "", question.column or ""] is None]

    def ask_drift(self, changes: str) -> list[Question]:
        """Ask whether columns that differ from the sender's last drop are meant; nothing once it is answered."""
        question = Question(
            question_id("drift", changes),
            "drift",
            f"The columns differ from those of the sender's last drop: {changes}. Is that meant?",
            (Candidate("accept", "yes: go on with these columns"),),
            "accept",
            input=self._order.primary[0].name if self._order.primary else None,
        )
        return [] if self._answers.accept or self._answers.accepts(question) else [question]

    def _ask_headers(self, table: MappedTable) -> Iterator[Question]:
        """Ask which rows are the header of a table, if that is in doubt, or there is none though the manifest does not
        say so; nothing if somebody decided it before."""
        source = table.source
        if source.table.shape is not None:
            return  # confirmed before
        doubt = next((c for c in source.table.choices if c.kind == "header" and not c.sure), None)
        lacks_header = source.table.generated_header and not self._has_no_header
        rows = source.table.header_rows
        if doubt is None and not lacks_header:
            return
        if self._answers.has_header(source.place.input, source.place.sheet, found=bool(rows)):
            return
        first = doubt.row if doubt is not None and doubt.row else source.table.range.top
        why = doubt.message if doubt is not None and doubt.message else "no header row was found"
        yield Question(
            question_id("header", source.place.input, source.place.sheet),
            "header",
            f"Which row of sheet “{source.place.sheet}” is the header? {why[:1].upper()}{why[1:]}.",
            self._header_candidates(table, first),
            AS_FOUND if rows else "none",
            input=source.place.input,
            sheet=source.place.sheet,
            table=source.id,
        )

    def _header_candidates(self, table: MappedTable, first: int) -> tuple[Candidate, ...]:
        """Offer what may be a table's header: what was found, the rows near row `first`, none; unless it is the only
        sheet, also to leave the sheet out."""
        rows, bottom = table.source.table.header_rows, table.source.table.range.bottom
        near = range(max(1, first - _ROWS_ABOVE), min(first + _ROWS_BELOW, bottom) + 1)
        options = [AS_FOUND if rows else "none", *(str(row) for row in near if [row] != list(rows)), "none"]
        labels = {AS_FOUND: f"yes: row {' and '.join(map(str, rows))}", "none": "there is no header row"}
        if not self._is_alone(table):
            options.append(SKIP)
            labels[SKIP] = "this is no table: leave the sheet out"
        return tuple(Candidate(option, labels.get(option, f"row {option}")) for option in dict.fromkeys(options))

    def _is_alone(self, table: MappedTable) -> bool:
        """Whether no other sheet has a table."""
        return self._sheets <= {(table.source.place.input, table.source.place.sheet)}

    def _ask_required_fields(self, table: MappedTable) -> Iterator[Question]:
        """Ask, for each required field that no column is mapped to, which column it is; columns that may be it come
        first."""
        mapped = {choice.field for choice in table.choices if choice.field is not None} | set(table.fields)
        free = [
            choice
            for choice in table.choices
            if choice.field is None and not self._answers.is_decided(table, choice.position)
        ]
        for field in self._fields.values():
            if not field.required or field.name in mapped or field.name in self._fields_with_values:
                continue
            if self._answers.is_without(table, field.name):
                continue
            likely = {
                choice.position: runner_up
                for choice in free
                for runner_up in choice.runners_up
                if runner_up.field == field.name
            }
            likeliest_first = sorted(
                free, key=lambda choice: -likely[choice.position].probability if choice.position in likely else 1.0
            )
            columns = [
                self._column_candidate(table, choice, likely.get(choice.position))
                for choice in likeliest_first[:_MOST_CANDIDATES]
            ]
            yield Question(
                question_id("required", table.source.id, field.name),
                "required",
                f"Which column is “{field.label or field.name}”? It is required, and no column was found for it.",
                (*columns, Candidate(None, "no column: leave it empty")),
                None,
                field=field.name,
                **self._place_keys(table),
            )

    def _column_candidate(self, table: MappedTable, choice: MappingChoice, runner_up: RunnerUp | None) -> Candidate:
        """Offer a column as a required field; `runner_up`: how likely it is that field, if that is known."""
        header = self._shown_header(table, choice.position)
        letters = table.letters(choice.position)
        label = f"column {letters}" if header is None else f"column {letters}: {header}"
        if runner_up is None:
            return Candidate(letters, label, header=header)
        reasons = listed(runner_up.contributors, redact=self._redact)
        return Candidate(letters, label, runner_up.probability, reasons, header)

    def _ask_columns(self, table: MappedTable, asked_fields: Collection[str | None]) -> Iterator[Question]:
        """Ask which field each column is whose mapping is unsure; `asked_fields`: are asked about by themselves."""
        sure = {
            choice.field
            for choice in table.choices
            if choice.field is not None and choice.probability >= self._sure_probability
        }
        for choice in table.choices:
            if self._answers.is_decided(table, choice.position) or not self._is_unsure(choice, sure, asked_fields):
                continue
            letters, header = table.letters(choice.position), self._shown_header(table, choice.position)
            alternatives = [
                alternative
                for alternative in choice.runners_up
                if alternative.field != choice.field and alternative.field not in sure
            ]
            if choice.field is not None:
                alternatives.insert(0, RunnerUp(choice.field, choice.probability, choice.contributors))
            options = [
                Candidate(
                    alternative.field,
                    self._field_label(alternative.field),
                    alternative.probability,
                    listed(alternative.contributors, redact=self._redact),
                )
                for alternative in alternatives
            ]
            column_name = f"Column {letters}" + (f" (“{header}”)" if header is not None else "")
            yield Question(
                question_id("column", table.source.id, letters),
                "column",
                f"Which field is {column_name[0].lower()}{column_name[1:]}?",
                (*options[:_MOST_CANDIDATES], Candidate(None, "no field")),
                choice.field,
                column=letters,
                header=header,
                **self._place_keys(table),
            )

    def _is_unsure(
        self, choice: MappingChoice, sure: Collection[str | None], asked_fields: Collection[str | None]
    ) -> bool:  # fmt: skip
        """Whether a person should say what a column is; any column, if the manifest says `always`.

        `sure`: fields that other columns surely are. `asked_fields`: are asked about by themselves.
        """
        is_first_drop = not self._order.corrections  # what is corrected was asked about with the first drop
        if self.mode == "always" and is_first_drop:
            return True
        if choice.field is not None:
            enough = self._least_probability if choice.tier in _CERTAIN_TIERS else self._sure_probability
            has_remedy = choice.doubt is not None and bool(choice.doubt.remedy)
            return choice.probability < enough or has_remedy
        others = [other for other in choice.runners_up if other.field not in sure and other.field not in asked_fields]
        return any(other.probability >= self._least_probability for other in others)

    def _ask_readings(
        self, tables: Sequence[MappedTable], readings: Sequence[ChosenReading], *, ahead: bool = False
    ) -> Iterator[Question]:
        """Ask how the values of columns are written, where two readings fit; `ahead`: the columns are no fields yet,
        but may become some."""
        by_id = {t.source.id: t for t in tables}
        for reading in readings:
            table = by_id.get(reading.place.table) if reading.place else None
            if (
                table is not None
                and not reading.sure
                and reading.kind in _READINGS_OF_KIND
                and reading.column is not None
            ):
                yield from self._ask_reading(table, reading, ahead=ahead)

    def _ask_reading(self, table: MappedTable, reading: ChosenReading, *, ahead: bool) -> Iterator[Question]:
        """Ask how the values of one column are written; nothing if a person could not decide it."""
        position = next((n for n, column in enumerate(table.source.columns) if column.index == reading.column), None)
        if position is None:
            return
        chosen = READING_OF_CHOICE.get(reading.chosen)
        if chosen is None:
            return
        letters, header = table.letters(position), self._shown_header(table, position)
        options = dict.fromkeys([chosen, *_READINGS_OF_KIND[reading.kind]])
        evidence = [{"rule": f"{name}: {count}", "weight": 0.0} for name, count in reading.evidence.items()]
        column_name = f"column {letters}" + (f" (“{header}”)" if header is not None else "")
        yield Question(
            question_id("reading", table.source.id, letters),
            "reading",
            f"If {column_name} is {reading.field}: how are its values written? Two readings fit."
            if ahead
            else f"How are the values of {column_name} written? Two readings fit.",
            tuple(
                Candidate(reading_name, _READING_LABELS[reading_name], None, evidence if reading_name == chosen else ())
                for reading_name in options
            ),
            chosen,
            column=letters,
            header=header,
            field=reading.field,
            **self._place_keys(table),
        )

    def _place_keys(self, table: MappedTable) -> dict[str, str]:
        """Return where a table is, as keyword arguments of a question."""
        place = table.source.place
        return {"input": place.input, "sheet": place.sheet, "table": place.table}

    def _field_label(self, name: str) -> str:
        """Return a field's name, with its label in brackets if it has one."""
        field = self._fields.get(name)
        return name if field is None or not field.label else f"{name} ({field.label})"

    def _shown_header(self, table: MappedTable, position: int) -> str | None:
        """Return a column's header where it may be shown: it is a label for all we know, and the manifest does not hide
        it."""
        label = None if self._redact else label_of(table, position)
        return None if label is None else label.encode(errors="replace").decode()

    def stop(self, questions: Sequence[Question]) -> EngineStop:
        """Write review.json, if the order asks for it, and return the end of a job that asks; questions beyond
        `MOST_QUESTIONS` are only counted."""
        shown = questions[:MOST_QUESTIONS]
        if file := open_output(self._order, OutputName.REVIEW):
            body = json.dumps(self._document(shown, len(questions) - len(shown)), ensure_ascii=False, indent=1)
            file.write(body.encode(errors="replace") + b"\n")
            file.close()
        many = f"{len(questions)} question{'' if len(questions) == 1 else 's'}"
        return EngineStop(EndCode.NEEDS_REVIEW, f"{many} for a person", remedy="answer them: see review.html")

    def _document(self, questions: Sequence[Question], left_out: int) -> Json:
        """Make the content of review.json."""
        order = self._order
        return {
            "review_version": VERSION,
            "job": order.job.encode() | {"params": order.params},
            "inputs": [i.facts.encode() for i in (*order.primary, *order.auxiliary, *order.corrections)],
            "answer_to": order.answer_to,
            "why": self._why,
            "decision": None if order.decision is None else order.decision.facts(),
            **({"unused": unused} if (unused := self._answers.unused()) else {}),
            "questions": [q.as_dict() for q in questions],
            "left_out": left_out,
        }
