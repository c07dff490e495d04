"""Applies what a person decided: matches the answers of a decision to the tables at hand.

An answer is matched to columns by header, by letters or by a question's id. What the memory says about this sender's
columns counts for less.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.deciding.questions import (
    AS_FOUND,
    KIND_OF_READING,
    READING_OF_CHOICE,
    SKIP,
    USE,
    Question,
    folded,
    label_of,
    partition_id,
    question_id,
)
from runner.engine.mapping.score import MappingChoice
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.options import ReadingOptions
from runner.engine.surveying.partitions import FOUND, OTHER, PartitionDoubt
from runner.engine.tables.sources import SourceTable
from runner.engine.values.convention_choices import ColumnDecision, Convention, ConventionChoice

_LAST_SHEET_ROW: Final = 1_048_576
_MAX_REMEMBERED: Final = 2_000  # answers of a decision that a memory gets to know
# What a reading makes of a column's convention.
_CONVENTION_CHANGES: Final[dict[str, dict[str, Any]]] = {
    "day_first": {"day_first": True, "dots_day_first": True, "year_first": False},
    "month_first": {"day_first": False, "dots_day_first": False, "year_first": False},
    "year_first": {"year_first": True, "short_years": True},
    "point": {"decimal": "."},
    "comma": {"decimal": ","},
    "percent": {"in_percent": True},
    "share": {"in_percent": False},
}


class _ColumnPlaces(NamedTuple):
    """The positions of a table's columns, by what answers call them."""

    letters: dict[str, int]
    question_ids: dict[str, int]  # ids of the questions which field a column is
    headers: dict[str, list[int]]  # folded
    decided_readings: dict[int, list["_DecidedReading"]]  # by position


class _DecidedReading(NamedTuple):
    """How an answer says that the values of a column are written."""

    answer: int  # its number, from 0
    reading: str


class _AppliedAnswer(NamedTuple):
    """What an answer decided about a column."""

    header: str | None  # as the answer spells it; None: it does not name the column by header
    decided: dict[str, str | None]


class Answers:
    """A person's decision, matched to the tables at hand.

    Asking for what was decided marks the answers that say it as used; `unused` then lists those that fit nothing. What
    was applied is remembered, for the memory of the next drops.
    """

    def __init__(
        self, decision: Mapping[str, Any] | None, *, accept: bool = False, readings: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Prepare to apply what a person wrote, `decision`; with `accept` the job goes on with what it would do.

        `readings`: headers, and how the memory says that values of this sender's columns are written, which counts for
        less.
        """
        body = decision or {}
        self._answers: list[dict[str, Any]] = list(body.get("answers") or ())
        self.accept = accept or body.get("accept") is True
        self._remembered = {
            (folded(header), KIND_OF_READING[reading]): reading
            for header, reading in readings
            if reading in KIND_OF_READING
        }
        self._used: set[int] = set()  # answers that fit something
        self._places: dict[str, _ColumnPlaces] = {}  # by table
        self._asked_readings = False  # whether anything was asked about how values are written
        self._decided: set[tuple[str, int]] = set()  # table and column
        self._cuts: dict[tuple[str, str], str] = {}  # input and sheet -> how it is cut into tables
        self._fields_without_column: set[tuple[str, str]] = set()  # table and required field that has no column there
        # What was applied, by table, position of the column, and `field` or the kind of reading that it decides.
        self._applied: dict[tuple[str, int, str], _AppliedAnswer] = {}
        # Tables, and inputs with sheets, of which something was decided.
        self._places_decided: set[str | tuple[str, str]] = set()

    def reading(self, reading: ReadingOptions, input_name: str, sheet: str) -> ReadingOptions:
        """Return the options for reading a sheet, with the header rows that a person decided for it; unchanged if
        nobody named rows."""
        rows = self._header_rows(input_name, sheet)
        if rows is None or isinstance(rows, str):
            return reading
        return reading._replace(header="auto" if rows else "none", header_rows=tuple(rows))

    def has_header(self, input_name: str, sheet: str, *, found: bool) -> bool:
        """Whether a person decided which rows are the header of a sheet; `found`: detection has found one, to which
        "yes" is an answer."""
        rows = self._header_rows(input_name, sheet)
        return rows is not None and (found or rows != AS_FOUND)

    def names_header(self, input_name: str, sheet: str, rows: Sequence[int]) -> bool:
        """Whether a person named these header rows of a sheet, or said that there are none."""
        return self._header_rows(input_name, sheet) == list(rows)

    def skips(self, input_name: str, sheet: str) -> bool | None:
        """Whether a person left a sheet out, by an answer about it or about its header; None if nobody said so.

        Notes the answer as used, and the sheet as decided.
        """
        for n, answer in enumerate(self._answers):
            if answer.get("skip") is not None and _is_about(answer, sheet):
                self._used.add(n)
                self._places_decided.add((input_name, sheet))
                return bool(answer["skip"])
        return True if self._header_rows(input_name, sheet) == SKIP else None

    def partition(self, doubt: PartitionDoubt) -> str | None:
        """Return how a person said that a part of a sheet is cut into tables; None if nobody did. Marks the answer as
        used."""
        wanted = partition_id(doubt)
        for n, answer in enumerate(self._answers):
            if answer.get("id") == wanted and answer.get("value") in doubt.values:
                self._used.add(n)
                self._places_decided.add((doubt.input, doubt.sheet))
                if answer["value"] not in (FOUND, OTHER):
                    self._cuts[doubt.input, doubt.sheet] = answer["value"]
                return str(answer["value"])
        return None

    def cut(self, input_name: str, sheet: str) -> str | None:
        """Return how a person said that a sheet is cut into tables, for a memory to keep; None if nobody did."""
        return self._cuts.get((input_name, sheet))

    def uses(self, table: str) -> bool | None:
        """Whether a person said that a table holds records; None if nobody said anything about that. Marks the answer
        as used."""
        for n, answer in enumerate(self._answers):
            if answer.get("id") == question_id("table", table) and answer.get("value") in (USE, SKIP):
                self._used.add(n)
                self._places_decided.add(table)
                return bool(answer["value"] == USE)
        return None

    def is_touched(self, table: SourceTable) -> bool:
        """Whether a person has decided something about a table or its sheet, and it was found as they say."""
        place = table.place
        rows = self._header_rows(place.input, place.sheet)
        if isinstance(rows, list) and rows != list(table.table.header_rows):
            return False
        return place.table in self._places_decided or (place.input, place.sheet) in self._places_decided

    def _header_rows(self, input_name: str, sheet: str) -> list[int] | str | None:
        """Return the header rows that were decided for a sheet: their numbers, AS_FOUND or SKIP; None if no answer
        decides them.

        Marks the answer as used.
        """
        wanted = question_id("header", input_name, sheet)
        for n, answer in enumerate(self._answers):
            asked = answer.get("id")
            if asked not in (None, wanted) or not _is_about(answer, sheet):
                continue
            rows: list[int] | str | None = None
            if answer.get("header_rows") is not None:
                rows = [int(row) for row in answer["header_rows"]]
            elif asked == wanted and "value" in answer:
                rows = _parse_header_answer(answer["value"])
            if rows is not None:
                self._used.add(n)
                self._places_decided.add((input_name, sheet))
                return rows
        return None

    def apply(self, table: MappedTable, fields: Sequence[Field]) -> None:
        """Change `choices` of a table to the fields that a person decided for its columns; marks the answers as
        used."""
        wanted = self._collect_wanted_fields(table, {f.name for f in fields if f.needs_column})
        if wanted:
            fields_decided = {field for field in wanted.values() if field is not None}
            self._decided |= {(table.source.id, position) for position in wanted}
            self._places_decided.add(table.source.id)
            table.choices = [_apply_to_choice(choice, wanted, fields_decided) for choice in table.choices]
        for choice in table.choices if self._answers else ():
            if choice.field is None:  # how it is written was asked ahead, and does not matter now
                decided_readings = self._places_in(table).decided_readings.get(choice.position, ())
                self._used.update(decided.answer for decided in decided_readings)

    def _collect_wanted_fields(self, table: MappedTable, names: set[str]) -> dict[int, str | None]:
        """Map columns, by position, to the field that answers decide; None for a column that is not a field.

        Marks the answers as used, and remembers what they decide.
        """
        wanted: dict[int, str | None] = {}
        fields_decided: set[str] = set()
        likely = {choice.position for choice in table.choices if choice.field is not None}
        for n, answer in enumerate(self._answers):
            pairs = [pair for pair in self._pair_columns_with_fields(table, answer, names) if pair[0] not in wanted]
            shared = len(pairs) > 1 and answer.get("id") is None  # columns with one header, of which one is the field
            for position, field in sorted(pairs, key=lambda pair: pair[0] not in likely) if shared else pairs:
                is_used_already = field is not None and field in fields_decided
                if (field is not None and field not in names) or (is_used_already and not shared):
                    continue
                wanted[position] = None if is_used_already else field
                self._used.add(n)
                self._remember_applied(answer, table, position, {"field": wanted[position]})
                if field is not None:
                    fields_decided.add(field)
        return wanted

    def _pair_columns_with_fields(
        self, table: MappedTable, answer: dict[str, Any], names: set[str]
    ) -> Iterator[tuple[int, str | None]]:
        """Yield the position of each column that an answer is about, and the field that it names; None: the column is
        not a field.

        An answer that a required field has no column is noted in `_fields_without_column`, and yields nothing.
        """
        places, asked_id = self._places_in(table), answer.get("id")
        key = "field" if "field" in answer else "value"
        if key not in answer:
            return
        if asked_id in places.question_ids:
            yield places.question_ids[asked_id], answer[key]
        for name in names if asked_id is not None and asked_id.startswith("required-") else ():
            if asked_id == question_id("required", table.source.id, name):
                letters = answer[key] if key == "value" else answer.get("column")
                if letters is None and answer.get("header") is None:
                    self._fields_without_column.add((table.source.id, name))
                    self._used.update(n for n, other in enumerate(self._answers) if other is answer)
                if letters in places.letters:
                    yield places.letters[letters], name
        if key == "field":
            for position in self._columns_named_by(answer, table):
                yield position, answer["field"]

    def _columns_named_by(self, answer: Mapping[str, Any], table: MappedTable) -> list[int]:
        """Return the positions of columns that an answer names by header or letters: by both, if it has both; empty if
        it is about another sheet."""
        header, letters, places = answer.get("header"), answer.get("column"), self._places_in(table)
        if not _is_about(answer, table.source.place.sheet) or (header is None and letters is None):
            return []
        by_letters = places.letters.get(letters or "")
        if header is None:
            return [] if by_letters is None else [by_letters]
        return [at for at in places.headers.get(folded(header), ()) if letters is None or at == by_letters]

    def _places_in(self, table: MappedTable) -> "_ColumnPlaces":
        """Return the positions of a table's columns by what answers call them; made once for each table, and empty if
        nobody answered anything."""
        places = self._places.get(table.source.id)
        if places is None:
            places = self._places[table.source.id] = _ColumnPlaces({}, {}, {}, {})
            for position, column in enumerate(table.source.columns if self._answers else ()):
                letters = table.letters(position)
                places.letters[letters] = position
                places.question_ids[question_id("column", table.source.id, letters)] = position
                for text in {folded(column.name), *map(folded, column.parts[-1:])} if not column.generated else ():
                    places.headers.setdefault(text, []).append(position)
            by_question = {
                question_id("reading", table.source.id, letters): position
                for letters, position in places.letters.items()
            }
            for n, answer in enumerate(self._answers):
                asked_position, reading = by_question.get(answer.get("id") or ""), answer.get("reading")
                positions = self._columns_named_by(answer, table) if reading in KIND_OF_READING else []
                if asked_position is not None and (reading or answer.get("value")) in KIND_OF_READING:
                    positions, reading = sorted({asked_position, *positions}), reading or answer["value"]
                for position in positions:
                    places.decided_readings.setdefault(position, []).append(_DecidedReading(n, str(reading)))
        return places

    def override(
        self, table: MappedTable, position: int, convention: Convention, choices: list[ConventionChoice]
    ) -> ColumnDecision:
        """Replace a column's convention by the readings that were decided for it, now or before, and its choices
        likewise.

        Marks the answers as used, and remembers them for a memory.
        """
        self._asked_readings = True
        column = table.source.columns[position]
        for choice in choices if not column.generated else ():
            known = self._remembered.get((folded(column.name), choice.kind))
            if known is not None and not choice.sure:
                convention = convention._replace(**_CONVENTION_CHANGES[known])
                choices = [_as_decided(c, known, "memory") if c is choice else c for c in choices]
        decided_kinds: set[str] = set()
        for n, reading in self._places_in(table).decided_readings.get(position, ()):
            self._used.add(n)
            self._places_decided.add(table.source.id)
            if KIND_OF_READING[reading] in decided_kinds:
                continue
            decided_kinds.add(KIND_OF_READING[reading])
            self._remember_applied(self._answers[n], table, position, {"reading": reading})
            convention = convention._replace(**_CONVENTION_CHANGES[reading])
            choices = [
                _as_decided(c, reading, "decision") if c.kind == KIND_OF_READING[reading] else c for c in choices
            ]
        return ColumnDecision(convention, choices)

    def _remember_applied(
        self, answer: Mapping[str, Any], table: MappedTable, position: int, decided: dict[str, str | None]
    ) -> None:
        """Remember what an answer decided about a column, for a memory to keep."""
        header = answer.get("header") if position in self._columns_named_by(answer, table) else None
        kind = KIND_OF_READING.get(decided.get("reading") or "", "field")
        self._applied[table.source.id, position, kind] = _AppliedAnswer(header, decided)

    def applied(self, tables: Mapping[str, MappedTable]) -> list[dict[str, str | None]]:
        """List what was decided about columns with a header, for a memory to keep: a field (None: no field) or a
        reading.

        A header is named if the person named it, or if it is a label for all we know. `tables`: by id.
        """
        answers_by_content: dict[tuple[str | None, ...], dict[str, str | None]] = {}
        for (table_id, position, _), answer in self._applied.items():
            header = answer.header
            if header is None and table_id in tables:
                header = label_of(tables[table_id], position)
            if header is not None and header.strip() and len(answers_by_content) < _MAX_REMEMBERED:
                answers_by_content[header, *answer.decided.values()] = {"header": header, **answer.decided}
        return list(answers_by_content.values())

    def is_decided(self, table: MappedTable, position: int) -> bool:
        """Whether a person decided what a column is."""
        return (table.source.id, position) in self._decided

    def is_without(self, table: MappedTable, field: str) -> bool:
        """Whether a person said that a table has no column for a required field."""
        return (table.source.id, field) in self._fields_without_column

    def accepts(self, question: Question) -> bool:
        """Whether an answer gives one of the answers that a question offers; marks the first such answer as used."""
        for n, answer in enumerate(self._answers):
            if answer.get("id") == question.id and answer.get("value") in [c.value for c in question.candidates]:
                self._used.add(n)
                return True
        return False

    def unused(self) -> list[int]:
        """Return the numbers of the answers that fit nothing in this file, counted from 1; before readings are decided,
        those about readings are not counted."""
        return [
            n + 1
            for n, answer in enumerate(self._answers)
            if n not in self._used
            and (self._asked_readings or (answer.get("reading") or answer.get("value")) not in KIND_OF_READING)
        ]

    def report(self, findings: Findings) -> None:
        """Report answers that fit nothing in this file."""
        for n in self.unused():
            message = f"answer {n} of the decision fits no column and no question of this file"
            findings.add("decision_unused", "warning", message, rule="decision")


def _is_about(answer: Mapping[str, Any], sheet: str) -> bool:
    """Whether an answer names this sheet, or none."""
    named = answer.get("sheet")
    return named is None or folded(named) == folded(sheet)


def _parse_header_answer(value: object) -> list[int] | str | None:
    """Parse what a value says about the header rows: a list, empty for no header, AS_FOUND or SKIP; None if it is not
    an answer to that."""
    text = str(value or "none")
    if text == "none":
        return []
    if text in (AS_FOUND, SKIP):
        return text
    row = int(text) if text.isdecimal() and len(text) <= len(str(_LAST_SHEET_ROW)) else 0
    return [row] if 1 <= row <= _LAST_SHEET_ROW else None


def _apply_to_choice(
    choice: MappingChoice, wanted: Mapping[int, str | None], fields_decided: Collection[str]
) -> MappingChoice:
    """Return a column's choice with what a person decided: its field, or that its field is another column's."""
    if choice.position in wanted:
        return choice.decided(wanted[choice.position], "decision", "decided by a person", "decision")
    if choice.field in fields_decided:
        note = "a person gave its field to another column"
        return choice._replace(field=None, contributors=(), note=note, doubt=None)
    return choice


def _as_decided(choice: ConventionChoice, reading: str, decided_by: str) -> ConventionChoice:
    """Return a choice between readings as a person or a memory decided it, without the finding that it would be."""
    word = next(word for word, name in READING_OF_CHOICE.items() if name == reading)
    return choice._replace(chosen=word, evidence={decided_by: 1}, sure=True, message="", settle=None, code="")
