"""Asks a person where the engine is unsure, and applies what a person decided.

The questions come after structure, mapping and the reading decisions, and before anything is written. A decision is
matched to columns by header, by letters or by a question's id; ids depend only on the kind and the place, so they are
the same in every attempt on the same input. Nothing here holds a cell's value: headers that may be data are not shown.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from unicodedata import normalize

from runner.engine.common.fields import Field
from runner.engine.common.findings import ChosenReading, Findings
from runner.engine.contract import EndCode, Json, Order, OutputName
from runner.engine.deciding.selection import TableDoubt
from runner.engine.mapping.evidence import listed
from runner.engine.mapping.score import MappingChoice, RunnerUp
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.options import JobOptions, ReadingOptions, why_asked
from runner.engine.protocol import EngineStop, open_output
from runner.engine.surveying.partitions import FOUND, OTHER, PartitionDoubt, named
from runner.engine.tables.sources import SourceTable
from runner.engine.values.decisions import Convention, ConventionChoice

VERSION: Final = 1
MOST_QUESTIONS: Final = 200
_CANDIDATES: Final = 12
_ROWS_ABOVE: Final = 3  # rows that are offered as the header, beside the one in doubt
_ROWS_BELOW: Final = 5
AS_FOUND: Final = "yes"  # the header rows that were found are the header
SKIP: Final = "skip"  # the sheet or table is left out
USE: Final = "use"  # the table holds records
_LAST_ROW: Final = 1_048_576
_CERTAIN: Final = frozenset({"confirmed", "decision", "hook"})  # somebody said so before
_LONGEST: Final = 300
_REMEMBERED: Final = 2_000  # answers of a decision that a memory gets to know
# What a reading is of, and what it makes of a column's convention.
_KIND: Final = {
    "day_first": "date_order", "month_first": "date_order", "year_first": "date_order",
    "point": "decimal", "comma": "decimal", "percent": "unit", "share": "unit",
}  # fmt: skip
_CHANGES: Final[dict[str, dict[str, Any]]] = {
    "day_first": {"day_first": True, "dots_day_first": True, "year_first": False},
    "month_first": {"day_first": False, "dots_day_first": False, "year_first": False},
    "year_first": {"year_first": True, "short_years": True},
    "point": {"decimal": "."},
    "comma": {"decimal": ","},
    "percent": {"in_percent": True},
    "share": {"in_percent": False},
}
_LABELS: Final = {
    "day_first": "day first: 31/12/2025", "month_first": "month first: 12/31/2025",
    "year_first": "year first: 25/12/31",
    "point": "a decimal point: 1.5", "comma": "a decimal comma: 1,5", "percent": "percent: 45 is 45 %",
    "share": "shares: 0.45 is 45 %",
}  # fmt: skip
_WORD: Final = {
    "day first": "day_first", "month first": "month_first", "year first": "year_first", ".": "point", ",": "comma",
    "percent": "percent", "share": "share",
}  # fmt: skip
_READINGS: Final = {
    "date_order": ("day_first", "month_first"), "decimal": ("point", "comma"), "unit": ("percent", "share"),
}  # fmt: skip


class Candidate(NamedTuple):
    value: str | None
    label: str
    probability: float | None = None
    reasons: Sequence[Mapping[str, Any]] = ()
    header: str | None = None  # of the column that it is

    def as_dict(self) -> Json:
        """Its JSON form in review.json."""
        sure = None if self.probability is None else round(min(1.0, max(0.0, self.probability)), 4)
        reasons = [{"rule": r["rule"][:200], "weight": r["weight"]} for r in self.reasons[:20]]
        made: Json = {"value": self.value, "label": _short(self.label), "probability": sure, "reasons": reasons}
        return made | ({"header": self.header[:500]} if self.header is not None else {})


class Question(NamedTuple):
    id: str
    kind: str
    text: str
    candidates: tuple[Candidate, ...]
    chosen: str | None
    input: str | None = None
    sheet: str | None = None
    table: str | None = None
    column: str | None = None
    header: str | None = None
    field: str | None = None

    def as_dict(self) -> Json:
        """The question as review.json has it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "input": self.input,
            "sheet": self.sheet,
            "table": self.table,
            "column": self.column,
            "header": None if self.header is None else self.header[:500],
            "field": self.field,
            "text": self.text[:1000],
            "chosen": self.chosen,
            "candidates": [c.as_dict() for c in self.candidates],
        }


def question_id(kind: str, *place: str) -> str:
    """The id of a question of a kind about a place: the same in every attempt on the same input."""
    from hashlib import sha256  # noqa: PLC0415  # few jobs ask, and it takes milliseconds to load

    return f"{kind}-{sha256(json.dumps(place).encode(errors='backslashreplace')).hexdigest()[:10]}"


def partition_id(doubt: PartitionDoubt) -> str:
    """The id of the question how a part of a sheet is cut into tables."""
    return question_id("tables", doubt.input, doubt.sheet, doubt.area.a1)


def folded(text: str) -> str:
    """One spelling for upper and lower case, runs of blanks and the two ways to write an accent."""
    return normalize("NFC", " ".join(text.split()).casefold())


class _ColumnPlaces(NamedTuple):
    """A table's columns by letters, by the id of the question what they are, and by header; and how answers say that
    each column's values are written."""

    letters: dict[str, int]
    asked: dict[str, int]
    headers: dict[str, list[int]]
    ways: dict[int, list[tuple[int, str]]]


class Answers:
    """A person's decision, matched to the tables at hand."""

    def __init__(
        self, decision: Mapping[str, Any] | None, *, accept: bool = False, readings: Sequence[tuple[str, str]] = ()
    ) -> None:
        """`decision`: what a person wrote. `readings`: what the memory says about this sender's columns, which counts
        for less."""
        body = decision or {}
        self._answers: list[dict[str, Any]] = list(body.get("answers") or ())
        self.accept = accept or body.get("accept") is True
        self._remembered = {
            (folded(header), _KIND[reading]): reading for header, reading in readings if reading in _KIND
        }
        self._used: set[int] = set()
        self._places: dict[str, _ColumnPlaces] = {}  # by table
        self._asked_readings = False  # whether anything was asked about how values are written
        self._decided: set[tuple[str, int]] = set()  # table and column
        self._cuts: dict[tuple[str, str], str] = {}  # input and sheet -> how it is cut into tables
        self._without: set[tuple[str, str]] = set()  # table and required field that has no column there
        # What was applied: table, column and what it is of -> the header as the answer spells it, and what it says.
        self._applied: dict[tuple[str, int, str], tuple[str | None, dict[str, str | None]]] = {}
        self._touched: set[str | tuple[str, str]] = (
            set()
        )  # tables, and sheets of inputs, of which something was decided

    def reading(self, reading: ReadingOptions, input_name: str, sheet: str) -> ReadingOptions:
        """What the manifest says about reading, with the header rows that were decided for a sheet."""
        rows = self._header_rows(input_name, sheet)
        if rows is None or isinstance(rows, str):
            return reading
        return reading._replace(header="auto" if rows else "none", header_rows=tuple(rows))

    def has_header(self, input_name: str, sheet: str, *, found: bool) -> bool:
        """Whether a person settled the header of a sheet. `found`: there is one to say yes to."""
        rows = self._header_rows(input_name, sheet)
        return rows is not None and (found or rows != AS_FOUND)

    def names_header(self, input_name: str, sheet: str, rows: Sequence[int]) -> bool:
        """Whether a person named these header rows of a sheet, or said that there are none."""
        return self._header_rows(input_name, sheet) == list(rows)

    def skips(self, input_name: str, sheet: str) -> bool | None:
        """Whether a person left a sheet out; None if nobody said anything about that."""
        for n, answer in enumerate(self._answers):
            if answer.get("skip") is not None and _is_about(answer, sheet):
                self._used.add(n)
                self._touched.add((input_name, sheet))
                return bool(answer["skip"])
        return True if self._header_rows(input_name, sheet) == SKIP else None

    def partition(self, doubt: PartitionDoubt) -> str | None:
        """How a person said that a part of a sheet is cut into tables; None if nobody did."""
        wanted = partition_id(doubt)
        for n, answer in enumerate(self._answers):
            if answer.get("id") == wanted and answer.get("value") in doubt.values:
                self._used.add(n)
                self._touched.add((doubt.input, doubt.sheet))
                if answer["value"] not in (FOUND, OTHER):
                    self._cuts[doubt.input, doubt.sheet] = answer["value"]
                return str(answer["value"])
        return None

    def cut(self, input_name: str, sheet: str) -> str | None:
        """How a person said that a sheet is cut into tables, for a memory to keep; None if nobody did."""
        return self._cuts.get((input_name, sheet))

    def uses(self, table: str) -> bool | None:
        """Whether a person said that a table holds records; None if nobody said anything about that."""
        for n, answer in enumerate(self._answers):
            if answer.get("id") == question_id("table", table) and answer.get("value") in (USE, SKIP):
                self._used.add(n)
                self._touched.add(table)
                return bool(answer["value"] == USE)
        return None

    def is_touched(self, table: SourceTable) -> bool:
        """Whether a person has decided something about a table or its sheet, and it was found as they say."""
        place = table.place
        rows = self._header_rows(place.input, place.sheet)
        if isinstance(rows, list) and rows != list(table.table.header_rows):
            return False
        return place.table in self._touched or (place.input, place.sheet) in self._touched

    def _header_rows(self, input_name: str, sheet: str) -> list[int] | str | None:
        """The rows that were decided, `yes` for those that were found; None where no answer says anything usable."""
        wanted = question_id("header", input_name, sheet)
        for n, answer in enumerate(self._answers):
            asked = answer.get("id")
            if asked not in (None, wanted) or not _is_about(answer, sheet):
                continue
            rows: list[int] | str | None = None
            if answer.get("header_rows") is not None:
                rows = [int(row) for row in answer["header_rows"]]
            elif asked == wanted and "value" in answer:
                rows = _header_answer(answer["value"])
            if rows is not None:
                self._used.add(n)
                self._touched.add((input_name, sheet))
                return rows
        return None

    def apply(self, table: MappedTable, fields: Sequence[Field]) -> None:
        """Give a table's columns the fields that were decided."""
        wanted = self._wanted(table, {f.name for f in fields if f.needs_column})
        if wanted:
            fields_decided = {field for field in wanted.values() if field is not None}
            self._decided |= {(table.source.id, position) for position in wanted}
            self._touched.add(table.source.id)
            table.choices = [_decided(choice, wanted, fields_decided) for choice in table.choices]
        for choice in table.choices if self._answers else ():
            if choice.field is None:  # how it is written was asked ahead, and does not matter now
                self._used.update(n for n, _ in self._places_of(table).ways.get(choice.position, ()))

    def _wanted(self, table: MappedTable, names: set[str]) -> dict[int, str | None]:
        """The fields that answers give to a table's columns, by position; None for a column that is no field."""
        wanted: dict[int, str | None] = {}
        fields_decided: set[str] = set()
        likely = {choice.position for choice in table.choices if choice.field is not None}
        for n, answer in enumerate(self._answers):
            pairs = [pair for pair in self._pairs(table, answer, names) if pair[0] not in wanted]
            shared = len(pairs) > 1 and answer.get("id") is None  # columns with one header, of which one is the field
            for position, field in sorted(pairs, key=lambda pair: pair[0] not in likely) if shared else pairs:
                is_used_already = field is not None and field in fields_decided
                if (field is not None and field not in names) or (is_used_already and not shared):
                    continue
                wanted[position] = None if is_used_already else field
                self._used.add(n)
                self._note(answer, table, position, {"field": wanted[position]})
                if field is not None:
                    fields_decided.add(field)
        return wanted

    def _pairs(self, table: MappedTable, answer: dict[str, Any], names: set[str]) -> Iterator[tuple[int, str | None]]:
        """The columns that an answer is about, each with the field that it gives."""
        known, asked = self._places_of(table), answer.get("id")
        part = "field" if "field" in answer else "value"
        if part not in answer:
            return
        if asked in known.asked:
            yield known.asked[asked], answer[part]
        for name in names if asked is not None and asked.startswith("required-") else ():
            if asked == question_id("required", table.source.id, name):
                letters = answer[part] if part == "value" else answer.get("column")
                if letters is None and answer.get("header") is None:
                    self._without.add((table.source.id, name))
                    self._used.update(n for n, other in enumerate(self._answers) if other is answer)
                if letters in known.letters:
                    yield known.letters[letters], name
        if part == "field":
            for position in self._named(answer, table):
                yield position, answer["field"]

    def _named(self, answer: Mapping[str, Any], table: MappedTable) -> list[int]:
        """The columns that an answer names by header or letters."""
        header, letters, known = answer.get("header"), answer.get("column"), self._places_of(table)
        if not _is_about(answer, table.source.place.sheet) or (header is None and letters is None):
            return []
        by_letters = known.letters.get(letters or "")
        if header is None:
            return [] if by_letters is None else [by_letters]
        return [at for at in known.headers.get(folded(header), ()) if letters is None or at == by_letters]

    def _places_of(self, table: MappedTable) -> "_ColumnPlaces":
        """Where the columns of a table are found by what answers call them; made once for each table."""
        places = self._places.get(table.source.id)
        if places is None:
            places = self._places[table.source.id] = _ColumnPlaces({}, {}, {}, {})
            for position, column in enumerate(table.source.columns if self._answers else ()):
                letters = table.letters(position)
                places.letters[letters] = position
                places.asked[question_id("column", table.source.id, letters)] = position
                for text in {folded(column.name), *map(folded, column.parts[-1:])} if not column.generated else ():
                    places.headers.setdefault(text, []).append(position)
            asked = {question_id("reading", table.source.id, letters): at for letters, at in places.letters.items()}
            for n, answer in enumerate(self._answers):
                at, reading = asked.get(answer.get("id") or ""), answer.get("reading")
                named = self._named(answer, table) if reading in _KIND else []
                if at is not None and (reading or answer.get("value")) in _KIND:
                    named, reading = sorted({at, *named}), reading or answer["value"]
                for position in named:
                    places.ways.setdefault(position, []).append((n, str(reading)))
        return places

    def override(
        self, table: MappedTable, position: int, convention: Convention, choices: list[ConventionChoice]
    ) -> tuple[Convention, list[ConventionChoice]]:
        """A column's convention with the readings that were decided for it, now or before."""
        self._asked_readings = True
        column = table.source.columns[position]
        for choice in choices if not column.generated else ():
            known = self._remembered.get((folded(column.name), choice.kind))
            if known is not None and not choice.sure:
                convention = convention._replace(**_CHANGES[known])
                choices = [_overridden(c, known, "memory") if c is choice else c for c in choices]
        decided_kinds: set[str] = set()
        for n, reading in self._places_of(table).ways.get(position, ()):
            self._used.add(n)
            self._touched.add(table.source.id)
            if _KIND[reading] in decided_kinds:
                continue
            decided_kinds.add(_KIND[reading])
            self._note(self._answers[n], table, position, {"reading": reading})
            convention = convention._replace(**_CHANGES[reading])
            choices = [_overridden(c, reading, "decision") if c.kind == _KIND[reading] else c for c in choices]
        return convention, choices

    def _note(
        self, answer: Mapping[str, Any], table: MappedTable, position: int, decided: dict[str, str | None]
    ) -> None:
        """Remember what an answer decided about a column, for a memory to keep."""
        header = answer.get("header") if position in self._named(answer, table) else None
        kind = _KIND.get(decided.get("reading") or "", "field")
        self._applied[table.source.id, position, kind] = (header, decided)

    def applied(self, tables: Mapping[str, MappedTable]) -> list[dict[str, str | None]]:
        """What was decided about columns with a header, for a memory to keep.

        A header is named if the person did, or if it is a label for all we know.
        """
        answers_by_content: dict[tuple[str | None, ...], dict[str, str | None]] = {}
        for (name, position, _), (header_in_answer, decided) in self._applied.items():
            header = (
                header_in_answer
                if header_in_answer is not None or name not in tables
                else _label_of(tables[name], position)
            )
            if header is not None and header.strip() and len(answers_by_content) < _REMEMBERED:
                answers_by_content[header, *decided.values()] = {"header": header, **decided}
        return list(answers_by_content.values())

    def is_decided(self, table: MappedTable, position: int) -> bool:
        """Whether a person decided what a column is."""
        return (table.source.id, position) in self._decided

    def is_without(self, table: MappedTable, field: str) -> bool:
        """Whether a person said that a table has no column for a required field."""
        return (table.source.id, field) in self._without

    def accepts(self, question: Question) -> bool:
        """Whether an answer says yes to a question that has nothing else to be applied."""
        for n, answer in enumerate(self._answers):
            if answer.get("id") == question.id and answer.get("value") in [c.value for c in question.candidates]:
                self._used.add(n)
                return True
        return False

    def unused(self) -> list[int]:
        """The answers that fit nothing in this file, counted from 1."""
        left = [(n, answer) for n, answer in enumerate(self._answers, 1) if n - 1 not in self._used]
        if not self._asked_readings:
            left = [(n, answer) for n, answer in left if (answer.get("reading") or answer.get("value")) not in _KIND]
        return [n for n, _ in left]

    def report(self, findings: Findings) -> None:
        """Report answers that fit nothing in this file."""
        for n in self.unused():
            message = f"answer {n} of the decision fits no column and no question of this file"
            findings.add("decision_unused", "warning", message, rule="decision")


def _is_about(answer: Mapping[str, Any], sheet: str) -> bool:
    """Whether an answer names this sheet, or none."""
    named = answer.get("sheet")
    return named is None or folded(named) == folded(sheet)


def _label_of(table: MappedTable, position: int) -> str | None:
    """A column's header where it is a label for all we know."""
    return table.source.columns[position].name if table.shows_header(position) else None


def _header_answer(value: object) -> list[int] | str | None:
    """What a value says about the header rows; None if it says nothing."""
    text = str(value or "none")
    if text == "none":
        return []
    if text in (AS_FOUND, SKIP):
        return text
    row = int(text) if text.isdecimal() and len(text) <= len(str(_LAST_ROW)) else 0
    return [row] if 1 <= row <= _LAST_ROW else None


def _decided(choice: MappingChoice, wanted: Mapping[int, str | None], fields_decided: Collection[str]) -> MappingChoice:
    """A column's choice with what a person decided: its field, or that its field is another column's."""
    if choice.position in wanted:
        return choice.decided(wanted[choice.position], "decision", "decided by a person", "decision")
    if choice.field in fields_decided:
        note = "a person gave its field to another column"
        return choice._replace(field=None, contributors=(), note=note, doubt=None)
    return choice


def _overridden(choice: ConventionChoice, reading: str, by: str) -> ConventionChoice:
    """A choice between readings as a person or a memory decided it."""
    word = next(word for word, name in _WORD.items() if name == reading)
    return choice._replace(chosen=word, evidence={by: 1}, sure=True, message="", settle=None, code="")


class Asking:
    """Collects the questions of a job."""

    def __init__(
        self,
        order: Order,
        options: JobOptions,
        answers: Answers,
        fields: Sequence[Field],
        *,
        valued: Collection[str],
    ) -> None:
        """`valued`: fields that need no column."""
        self.mode = options.mapping.review
        self._low, self._high = options.mapping.unsure
        self._redact = options.redact_headers
        self._why = why_asked(self.mode, options.on_drift)
        self._answers = answers
        self._fields = {f.name: f for f in fields}
        self._valued = valued
        self._headless = options.reading.headless
        self._sheets: set[tuple[str, str]] = set()  # that have tables
        self._order = order

    @property
    def is_wanted(self) -> bool:
        return self.mode != "never" and not self._answers.accept

    def questions(self, tables: Sequence[MappedTable], readings: Sequence[ChosenReading]) -> list[Question]:
        """All that is unsure about these tables, each question once."""
        self._sheets = {(t.source.place.input, t.source.place.sheet) for t in tables}
        questions = [question for table in tables for question in self._headers(table)]
        for table in tables:
            missing = list(self._required(table))
            near = {question.field for question in missing}
            questions += missing
            questions += self._columns(table, near)
        questions += self._readings(tables, readings)
        unique = {question.id: question for question in questions}
        return [
            question
            for question in unique.values()
            if question.kind not in ("header", "drift") or not self._answers.accepts(question)
        ]

    def partitions(self, doubts: Sequence[PartitionDoubt]) -> Iterator[Question]:
        """How parts of sheets are cut into tables that could be cut in two ways."""
        for doubt in doubts:
            ways = zip(doubt.values, (doubt.chosen, doubt.other), (None, doubt.probability), strict=True)
            options = tuple(
                Candidate(
                    value, f"{'one table' if len(ranges) == 1 else f'{len(ranges)} tables'}: {named(ranges, 20)}", p
                )
                for value, ranges, p in ways
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

    def tables(self, doubts: Sequence[TableDoubt]) -> Iterator[Question]:
        """Whether tables hold records that may hold something else."""
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
                **self._place(table),
            )

    def supposed(self, questions: Sequence[Question], tables: Sequence[MappedTable]) -> list[MappedTable]:
        """The tables with the likeliest answer to each question about a column that is no field yet.

        What would have to be asked then is asked at once: another round would cost days."""
        likely: dict[str, dict[str, str]] = {}
        for question in questions:
            table, first = question.table or "", question.candidates[0]
            if question.kind == "column" and question.chosen is None and (first.probability or 0.0) >= self._low:
                likely.setdefault(table, {})[question.column or ""] = first.value or ""
            elif question.kind == "required" and first.probability is not None:
                likely.setdefault(table, {})[first.value or ""] = question.field or ""
        return [
            MappedTable(
                table.source,
                [
                    choice if choice.field else choice._replace(field=mine.get(table.letters(choice.position)))
                    for choice in table.choices
                ],
                table.samples,
                table.supplied,
            )
            for table in tables
            if (mine := likely.get(table.source.id))
        ]

    def ahead(
        self, supposed: Sequence[MappedTable], tables: Sequence[MappedTable], readings: Sequence[ChosenReading]
    ) -> list[Question]:
        """How values are written of columns that may become fields."""
        fields = {(t.source.id, t.letters(c.position)): c.field for t in tables for c in t.choices}
        asked = self._readings(supposed, readings, ahead=True)
        return [question for question in asked if fields[question.table or "", question.column or ""] is None]

    def drift(self, changes: str) -> list[Question]:
        """The question whether columns that differ from the sender's last drop are meant; none once it is answered."""
        question = Question(
            question_id("drift", changes),
            "drift",
            f"The columns differ from those of the sender's last drop: {changes}. Is that meant?",
            (Candidate("accept", "yes: go on with these columns"),),
            "accept",
            input=self._order.primary[0].name if self._order.primary else None,
        )
        return [] if self._answers.accept or self._answers.accepts(question) else [question]

    def _headers(self, table: MappedTable) -> Iterator[Question]:
        """Whether the header rows of a table are right, if nobody said so before."""
        source = table.source
        if source.table.shape is not None:
            return  # confirmed before
        doubt = next((c for c in source.table.choices if c.kind == "header" and not c.sure), None)
        unnamed = source.table.generated_header and not self._headless
        rows = source.table.header_rows
        if doubt is None and not unnamed:
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
        """The rows near the `first` one that may be a table's header; as found, none, or no table at all."""
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

    def _required(self, table: MappedTable) -> Iterator[Question]:
        """Which column is a required field that has none."""
        mapped = {choice.field for choice in table.choices if choice.field is not None} | set(table.fields)
        free = [
            choice
            for choice in table.choices
            if choice.field is None and not self._answers.is_decided(table, choice.position)
        ]
        for field in self._fields.values():
            if not field.required or field.name in mapped or field.name in self._valued:
                continue
            if self._answers.is_without(table, field.name):
                continue
            runner_up = {
                choice.position: candidate
                for choice in free
                for candidate in choice.runners_up
                if candidate.field == field.name
            }
            near = sorted(
                free,
                key=lambda choice: -runner_up[choice.position].probability if choice.position in runner_up else 1.0,
            )
            columns = [self._column(table, choice, runner_up.get(choice.position)) for choice in near[:_CANDIDATES]]
            yield Question(
                question_id("required", table.source.id, field.name),
                "required",
                f"Which column is “{field.label or field.name}”? It is required, and no column was found for it.",
                (*columns, Candidate(None, "no column: leave it empty")),
                None,
                field=field.name,
                **self._place(table),
            )

    def _column(self, table: MappedTable, choice: MappingChoice, near: RunnerUp | None) -> Candidate:
        """A column as a candidate for a required field."""
        header = self._header(table, choice.position)
        letters = table.letters(choice.position)
        label = f"column {letters}" if header is None else f"column {letters}: {header}"
        if near is None:
            return Candidate(letters, label, header=header)
        return Candidate(letters, label, near.probability, listed(near.contributors, redact=self._redact), header)

    def _columns(self, table: MappedTable, asked_fields: Collection[str | None]) -> Iterator[Question]:
        """Which field is a column whose mapping is unsure."""
        sure = {
            choice.field for choice in table.choices if choice.field is not None and choice.probability >= self._high
        }
        for choice in table.choices:
            if self._answers.is_decided(table, choice.position) or not self._is_unsure(choice, sure, asked_fields):
                continue
            letters, header = table.letters(choice.position), self._header(table, choice.position)
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
                    self._label(alternative.field),
                    alternative.probability,
                    listed(alternative.contributors, redact=self._redact),
                )
                for alternative in alternatives
            ]
            named = f"Column {letters}" + (f" (“{header}”)" if header is not None else "")
            yield Question(
                question_id("column", table.source.id, letters),
                "column",
                f"Which field is {named[0].lower()}{named[1:]}?",
                (*options[:_CANDIDATES], Candidate(None, "no field")),
                choice.field,
                column=letters,
                header=header,
                **self._place(table),
            )

    def _is_unsure(self, choice: MappingChoice, sure: Collection[str | None], near: Collection[str | None]) -> bool:
        """Whether a person should say what a column is. `near`: fields that are asked about by themselves."""
        if (
            self.mode == "always" and not self._order.corrections
        ):  # what is corrected was asked about with the first drop
            return True
        if choice.field is not None:
            likely = choice.probability >= (self._low if choice.tier in _CERTAIN else self._high)
            return not likely or (choice.doubt is not None and bool(choice.doubt.remedy))
        others = [other for other in choice.runners_up if other.field not in sure and other.field not in near]
        return any(other.probability >= self._low for other in others)

    def _readings(
        self, tables: Sequence[MappedTable], readings: Sequence[ChosenReading], *, ahead: bool = False
    ) -> Iterator[Question]:
        """How the values of columns are written, where two readings fit."""
        by_id = {t.source.id: t for t in tables}
        for reading in readings:
            table = by_id.get(reading.place.table) if reading.place else None
            if table is not None and not reading.sure and reading.kind in _READINGS and reading.column is not None:
                yield from self._reading(table, reading, ahead=ahead)

    def _reading(self, table: MappedTable, reading: ChosenReading, *, ahead: bool) -> Iterator[Question]:
        """How the values of one column are written; nothing if a person could not decide it."""
        position = next((n for n, column in enumerate(table.source.columns) if column.index == reading.column), None)
        if position is None:
            return
        chosen = _WORD.get(reading.chosen)
        if chosen is None:
            return
        letters, header = table.letters(position), self._header(table, position)
        options = dict.fromkeys([chosen, *_READINGS[reading.kind]])
        evidence = [{"rule": f"{name}: {count}", "weight": 0.0} for name, count in reading.evidence.items()]
        named = f"column {letters}" + (f" (“{header}”)" if header is not None else "")
        yield Question(
            question_id("reading", table.source.id, letters),
            "reading",
            f"If {named} is {reading.field}: how are its values written? Two readings fit."
            if ahead
            else f"How are the values of {named} written? Two readings fit.",
            tuple(
                Candidate(reading_name, _LABELS[reading_name], None, evidence if reading_name == chosen else ())
                for reading_name in options
            ),
            chosen,
            column=letters,
            header=header,
            field=reading.field,
            **self._place(table),
        )

    def _place(self, table: MappedTable) -> dict[str, str]:
        """Where a table is, as a question names it."""
        place = table.source.place
        return {"input": place.input, "sheet": place.sheet, "table": place.table}

    def _label(self, name: str) -> str:
        """A field's name and label."""
        field = self._fields.get(name)
        return name if field is None or not field.label else f"{name} ({field.label})"

    def _header(self, table: MappedTable, position: int) -> str | None:
        """A column's header where it may be shown: it is a label for all we know, and the manifest does not hide it."""
        label = None if self._redact else _label_of(table, position)
        return None if label is None else label.encode(errors="replace").decode()

    def stop(self, questions: Sequence[Question]) -> EngineStop:
        """Write review.json; the end of a job that asks."""
        shown = questions[:MOST_QUESTIONS]
        if file := open_output(self._order, OutputName.REVIEW):
            body = json.dumps(self._document(shown, len(questions) - len(shown)), ensure_ascii=False, indent=1)
            file.write(body.encode(errors="replace") + b"\n")
            file.close()
        many = f"{len(questions)} question{'' if len(questions) == 1 else 's'}"
        return EngineStop(EndCode.NEEDS_REVIEW, f"{many} for a person", remedy="answer them: see review.html")

    def _document(self, questions: Sequence[Question], left_out: int) -> Json:
        """The content of review.json."""
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


def _short(text: str) -> str:
    """A text cut to what a question may show."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
