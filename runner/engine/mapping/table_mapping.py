"""Pass 2 for one table: samples its columns, asks the rules, and chooses their fields.

Also reports jobs that found none of their fields, or no column for a file of rules.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from runner.engine.common import a1
from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.common.spelling import joined, normalized
from runner.engine.contract import EndCode, Json
from runner.engine.mapping.column_evidence import ColumnIn
from runner.engine.mapping.evidence import EMPTY, Contribution, listed
from runner.engine.mapping.headers import likeness
from runner.engine.mapping.measures import is_unit
from runner.engine.mapping.output_layout import UnmappedColumn
from runner.engine.mapping.sample import Sample
from runner.engine.mapping.score import IN_SHORT, Doubt, ListedFields, MappingChoice, choose
from runner.engine.memory.recall import Recall
from runner.engine.options import GROUP
from runner.engine.protocol import EngineStop
from runner.engine.rules.call import Rule, RuleFailed
from runner.engine.rules.hooks import Hooks
from runner.engine.structure import Column
from runner.engine.tables.lookups import Lookups
from runner.engine.tables.sources import SourceTable
from runner.engine.tables.supplied import NAME, VALUE
from runner.engine.values.convention_choices import Convention
from runner.engine.values.convert import Converter

_VALUES_FOR_DETECTORS: Final = 50  # values that detect_* functions are shown
_DOUBTS_RECORDED: Final = 100  # columns of a table whose choice is recorded with what spoke for each reading
_LEAST_CONFIDENCE: Final = 0.75  # least confidence in a table of which no header is known


class MappedTable:
    """A source table with every column's field decided.

    Columns are named by their position in the table. Decisions, hooks and memories may still change `choices`;
    `conventions`, `beside` and `units` are set before pass 3 (transforming/conventions.py).
    """

    def __init__(
        self,
        source: SourceTable,
        choices: list[MappingChoice],
        samples: list[list[Any]],
        supplied: Mapping[str, str] | None = None,
    ) -> None:
        """Hold the choices of mapping for a table's columns; all that later steps decide (conventions, units, texts
        beside it) starts empty."""
        self.source = source
        self.supplied = dict(supplied or {})  # fields that take an added column, and what that says
        self.choices = choices  # one for each column
        self.combined: dict[str, tuple[int, ...]] = {}  # field -> the columns that it is made of, by `from.columns`
        self.samples = samples  # the first values of each column, those of added columns last
        self.left_out = False
        self.conventions: dict[int, Convention] = {}  # by column: decided from all its values
        self.beside: list[tuple[int, int, str]] = []  # texts above and below: row, column, text
        self.units: dict[int, Counter[str]] = {}  # by column: what number formats and texts show beside its numbers

    @property
    def fields(self) -> dict[str, int]:
        """Field -> the position of its column in the table's chunks, added columns included."""
        chosen = {c.field: c.position for c in self.choices if c.field is not None}
        return chosen | {name: self.source.place_of(what) for name, what in self.supplied.items()}

    @property
    def own_fields(self) -> frozenset[str]:
        """The fields whose values are in its rows: of its columns, of captions, and of columns that became rows."""
        from_around = (name for name, what in self.supplied.items() if what in (GROUP, NAME, VALUE))
        return frozenset((*(c.field for c in self.choices if c.field is not None), *from_around, *self.combined))

    def headings(self, *, redact: bool) -> list[tuple[str, str | None]]:
        """Return (header, field) of each column for reports; a header that may not be shown is replaced by the field or
        the letters. `redact`: none may be shown."""
        fields = {c.position: c.field for c in self.choices}
        shown = frozenset() if redact else self.shown_headers()
        return [
            (
                column.name if n in shown else fields.get(n) or f"column {self.letters(n)}",
                fields.get(n),
            )
            for n, column in enumerate(self.source.columns)
        ]

    @property
    def is_mapped(self) -> bool:
        """Whether any of its columns is a field, a part of one, or becomes rows."""
        return bool(self.combined or self.source.spread) or any(c.field is not None for c in self.choices)

    def read_as(self) -> list[tuple[str, int]]:
        """Return (field, position of its column) of every mapped column; a field joined from several columns comes once
        for each."""
        parts = [(name, at) for name, positions in self.combined.items() for at in positions]
        return [*self.fields.items(), *parts] if parts else [*self.fields.items()]

    def is_unused(self, choice: MappingChoice) -> bool:
        """Whether a column is no field, nor a part of one."""
        parts = (at for positions in self.combined.values() for at in positions)
        return choice.field is None and choice.position not in parts

    def combine(self, fields: Sequence[Field]) -> None:
        """Find by their headers the columns of fields that are made of several, and store them in `combined` and in the
        notes of `choices`; fields of which no column is there are left out."""
        headers: dict[str, int] = {}
        for n, column in enumerate(self.source.columns):
            for name in () if column.generated else (column.name, *column.parts[-1:]):
                headers.setdefault(normalized(name), n)
        for field in fields:
            if field.source is not None and field.source.kind == "columns":
                candidates = (headers.get(normalized(name)) for name in field.source.options["columns"])
                positions = tuple(dict.fromkeys(at for at in candidates if at is not None))
                if positions:
                    self.combined[field.name] = positions
                    self._note_combined(field.name, positions)

    def _note_combined(self, name: str, positions: Sequence[int]) -> None:
        """Set the note of unmapped columns at these positions: they are a part of a field."""
        for n, choice in enumerate(self.choices):
            if choice.position in positions and choice.field is None:
                self.choices[n] = choice._replace(note=f"a part of the field {name}", doubt=None)

    @property
    def header_is_certain(self) -> bool:
        """Whether reports may show the header: a row of data that was taken for headers would show cell values."""
        if any(
            c.field is not None and any(_speaks_for_header(part.rule) for part in c.contributors) for c in self.choices
        ):
            return self.source.is_confirmed or not _may_be_data(self.source)
        return header_is_certain(self.source)

    def shown_headers(self) -> frozenset[int]:
        """Return the positions of the columns whose headers reports may show, since they are labels for all we know and
        no cell values."""
        if not self.header_is_certain:
            return frozenset()
        named_fields = {
            c.position
            for c in self.choices
            if c.field and any(_speaks_for_header(contributor.rule) for contributor in c.contributors)
        }
        doubtful = set() if self.source.is_confirmed else set(self.source.altered) - named_fields
        with_header = (n for n, column in enumerate(self.source.columns) if not column.generated)
        return frozenset(n for n in with_header if n not in doubtful)

    def shows_header(self, position: int) -> bool:
        """Whether the header of a column may be shown."""
        return position in self.shown_headers()

    def recall_fields(self, fields: Sequence[Field]) -> None:
        """Overwrite the choices of a table without a header row by the fields that people or earlier files confirmed
        for its columns."""
        shape = self.source.table.shape
        if shape is None or not shape.fields or not self.source.table.generated_header:
            return
        names = {f.name for f in fields if f.needs_column}
        known = {c.index: name for c, name in zip(self.source.table.columns, shape.fields, strict=False)}
        wanted = {n: known.get(c.index) for n, c in enumerate(self.source.columns)}
        assigned = [name for name in wanted.values() if name in names]
        note = f"confirmed by {shape.by}" if shape.by else "confirmed"
        for at, choice in enumerate(self.choices):
            field = wanted[choice.position]
            if field in names and assigned.count(field) == 1:
                self.choices[at] = choice.decided(field, "memory:shape", note, "confirmed")
            elif choice.field in assigned:
                lost = "its field was confirmed for another column"
                self.choices[at] = choice._replace(field=None, contributors=(), note=lost, doubt=None, tier="none")

    def letters(self, position: int) -> str:
        """Return the letters of a column in the sheet."""
        return a1.letters(self.source.columns[position].index)

    def column_facts(self, choice: MappingChoice) -> Json:
        """Return what `ade map` prints as JSON about one column: letters, header, field and reasons."""
        column = self.source.columns[choice.position]
        return {
            "column": a1.letters(column.index),
            "header": None if column.generated else column.name,
            "field": choice.field,
            "probability": choice.probability,
            "reasons": listed(choice.contributors),
            "runners_up": [
                {"field": r.field, "probability": r.probability, "reasons": listed(r.contributors)}
                for r in choice.runners_up
            ],
            "note": choice.note,
        }

    def unmapped_columns(self) -> list[UnmappedColumn]:
        """Return the unmapped columns with a header or a value, for the layout of the output; each with the field
        before it."""
        unmapped: list[UnmappedColumn] = []
        field_before: str | None = None
        shown = self.shown_headers()
        for choice in self.choices:
            if choice.field is not None:
                field_before = choice.field
            if not self.is_unused(choice):
                continue
            column = self.source.columns[choice.position]
            if column.generated and not self.source.holds(column.index):
                continue
            is_certain = column.generated or choice.position in shown
            unmapped.append(UnmappedColumn(choice.position, column.name, field_before, is_certain))
        return unmapped

    def report(self, fields: Sequence[Field], findings: Findings, *, computed: Collection[str], headless: bool) -> None:
        """Add the findings of mapping for this table: no header row, doubtful choices, joined fields that lack parts,
        required fields without a column, which make an error of each row.

        `computed` fields need no column; `headless`: the manifest says that there is no header row.
        """
        if self.source.table.generated_header and not headless:
            findings.add(
                "no_header",
                "warning",
                "the table has no header row; its columns are named by their letters",
                place=self.source.place,
                rule="structure",
            )
        doubts = [(choice, choice.doubt) for choice in self.choices if choice.doubt is not None]
        for choice, doubt in doubts[:_DOUBTS_RECORDED]:
            self._report_doubt(choice, doubt, findings)
        for _, doubt in doubts[_DOUBTS_RECORDED:]:
            findings.add(
                doubt.code, "warning", doubt.message, place=self.source.place, field=doubt.field, rule="mapping"
            )
        for field in fields:
            self._report_parts(field, findings)
            has_column = field.name in self.fields or field.name in self.combined
            if field.required and not has_column and not _has_values(field, computed):
                self.source.lacks_required |= field.severity == "error"
                findings.add(
                    "missing_field", field.severity, f"no column was found for the required field {field.name}",
                    place=self.source.place, field=field.name, rule="required",
                )  # fmt: skip

    def _report_parts(self, field: Field, findings: Findings) -> None:
        """Add a finding if a field that is joined from several columns lacks some of them in this table."""
        if field.source is None or field.source.options.get("combine") != "join" or field.optional:
            return
        known = {normalized(n) for c in self.source.columns for n in (c.name, *c.parts[-1:])}
        lacking = [name for name in field.source.options["columns"] if normalized(name) not in known]
        if lacking and field.name in self.combined:
            what = f"the field {field.name} is joined without {', '.join(lacking)}: no column has that header"
            findings.add(
                "part_missing", "warning",
                f'{what}; to settle it: the header in "from" of the field, or "optional": true',
                place=self.source.place, field=field.name, rule="mapping",
            )  # fmt: skip

    def report_unmapped(self, fields: Sequence[Field], findings: Findings, elsewhere: Collection[str]) -> None:
        """Add a finding for each of these fields, which have no column here, with the unused header that is most like
        it.

        `elsewhere`: fields that other tables have. Tables often differ by a column, but here it may have another name.
        """
        rows = self.source.table.header_rows
        unmapped = [
            c.position for c in self.choices if c.field is None and not self.source.columns[c.position].generated
        ]
        for field in fields:
            likeliest = _most_like_header(field, [(n, self.source.columns[n].name) for n in unmapped[:_MOST_COMPARED]])
            only_here = " in this table" if field.name in elsewhere else ""
            message = f"no column was found for the field {field.name}, which comes out empty{only_here}"
            if unmapped:
                listed = [likeliest] if likeliest is not None else unmapped[:_MOST_NAMED]
                message += f"; columns without a field: {', '.join(map(self.letters, listed))}"
                message += f" and {len(unmapped) - len(listed)} more" if len(listed) < len(unmapped) else ""
                message += f'; to settle it: "synonyms": [the header of its column] on field {field.name}, or'
            else:
                message += "; to settle it:"
            message += f' "optional": true on field {field.name}'
            severity = "info" if only_here and not unmapped else "warning"
            findings.add(
                "field_unmapped", severity, message, place=self.source.place, field=field.name, rule="mapping",
                row=rows[-1] if rows and likeliest is not None else None,
                column=None if likeliest is None else self.source.columns[likeliest].index,
            )  # fmt: skip

    def report_blank(
        self, field: Field, at: int, findings: Findings, full: Sequence[int], wrong: Sequence[int]
    ) -> None:
        """Add a finding for a field whose column has no value in any row: a warning if its values may be in another
        column.

        `full`: columns with values in most rows; `wrong`: those of them that mostly contradict their field's type.
        """
        unmapped = {c.position for c in self.choices if c.field is None}
        columns = self.source.columns
        likely_columns = [
            n
            for n in full
            if n in unmapped and (columns[n].generated or _name_likeness(columns[n].name, field) >= _LEAST_AKIN)
        ]
        message = f"the column of the field {field.name} has no value in any row"
        if likely_columns:
            message += f"; its values may be in column {', '.join(map(self.letters, likely_columns[:_MOST_NAMED]))}"
        elif wrong:
            message += (
                f", and values contradict their fields in column {', '.join(map(self.letters, wrong[:_MOST_NAMED]))}"
            )
            message += ": the values may be shifted against the header"
        rows = self.source.table.header_rows
        findings.add(
            "column_blank", "warning" if likely_columns or wrong else "info",
            f'{message}; to settle it: mend the header, or "optional": true on field {field.name}',
            place=self.source.place, field=field.name, rule="mapping",
            row=rows[-1] if rows else None, column=columns[at].index,
        )  # fmt: skip

    def _report_doubt(self, choice: MappingChoice, doubt: Doubt, findings: Findings) -> None:
        """Add a finding about a doubtful choice of mapping: a choice with a remedy if there is one, else plain
        information."""
        column = self.source.columns[choice.position].index
        rows = self.source.table.header_rows
        place: dict[str, Any] = {
            "place": self.source.place,
            "row": rows[-1] if rows else None,
            "column": column,
            "field": doubt.field,
        }
        if not doubt.remedy:
            findings.add(doubt.code, "info", doubt.message, rule="mapping", **place)
            return
        findings.chose(
            "mapping", choice.field or "unmapped", evidence=doubt.evidence, sure=False, code=doubt.code,
            message=doubt.message, settle=doubt.remedy, **place,
        )  # fmt: skip

    def converter(self, field: Field, index: int) -> Converter:
        """Return what converts the column at a position to a field's type, by the column's conventions."""
        return Converter(field, self.samples[index], self.conventions.get(index), epoch_1904=self.source.epoch_1904)


def header_is_certain(source: SourceTable) -> bool:
    """Whether the rows taken for a table's header are one beyond doubt: confirmed by a person, or plain from the
    sheet."""
    table = source.table
    if table.shape is not None or source.is_confirmed:
        return True
    doubted = any(choice.kind == "header" and not choice.sure for choice in table.choices)
    return table.confidence >= _LEAST_CONFIDENCE and not doubted and not _may_be_data(source)


def _may_be_data(source: SourceTable) -> bool:
    """Whether the header row may be a record: the table may be turned, or a header is an email address or a number."""
    return source.is_turned or _MAY_BE_VALUE.search("\n".join(p for c in source.columns for p in c.parts)) is not None


def _has_values(field: Field, computed: Collection[str]) -> bool:
    """Whether a field has values without a column; `computed`: names of those that rules or hooks compute."""
    return field.is_computed or field.default is not None or field.constant is not None or field.name in computed


def map_table(
    source: SourceTable,
    fields: Sequence[Field],
    *,
    threshold: float,
    detectors: Sequence[Rule],
    hooks: Hooks,
    lookups: Lookups,
    recall: Recall = EMPTY,
    supplied: Mapping[str, str] | None = None,
    samples: list[list[Any]] | None = None,
    evidence: list[list[Any]] | None = None,
    shown: ListedFields = IN_SHORT,
) -> MappedTable:
    """Map one table: decide the field of each column by its header, its values, what was learnt, Python detectors and
    the hook `after_mapping`.

    `supplied`: fields that take an added column. `samples`: the first values of each column, if they are known;
    `evidence`: the values that decide, of all tables with this header. `shown`: which other fields are listed.
    """
    fields = [f for f in fields if f.source is not None or f.name not in (supplied or ())]
    samples = source.samples() if samples is None else samples
    deciding_samples = samples if evidence is None else evidence
    naming_letters = _letters_named(fields) if source.table.generated_header else frozenset()
    stacked = [c.parts for c in source.columns if len(c.parts) > 1 and not c.generated]
    has_unit_row = bool(stacked) and all(is_unit(parts[-1]) for parts in stacked)
    columns = [
        ColumnIn(
            n,
            _names_to_match(c, naming_letters, units=has_unit_row),
            Sample(deciding_samples[n]),
            a1.letters(c.index),
        )
        for n, c in enumerate(source.columns)
    ]
    names = {f.name for f in fields}
    detected = _call_detectors(source, columns, detectors, hooks, names)
    columns = _without_hash(columns)
    choices = choose(
        columns,
        [f.as_sent for f in fields],
        threshold=threshold,
        detected=detected,
        allowed=lookups.allowed,
        recall=recall,
        shown=shown,
    )
    if hooks.has("after_mapping"):
        choices = _apply_hook(source, choices, hooks, {f.name for f in fields if f.needs_column})
    table = MappedTable(source, choices, samples, supplied)
    table.combine(fields)
    return table


def _without_hash(columns: Sequence[ColumnIn]) -> list[ColumnIn]:
    """Return the columns without the # that some programs put before a header row; `# orders` and `#1`, `#2` have their
    own.

    The first header as it is stays the second choice: an `#Invoice` may be an invoice's number.
    """
    marked = [c.position for c in columns if c.headers and c.headers[0].startswith("#")]
    if marked != [0] or not columns[0].headers[0][1:2].isalpha():
        return list(columns)
    first, *others = columns
    return [first._replace(headers=(first.headers[0][1:], *first.headers)), *others]


def _letters_named(fields: Sequence[Field]) -> frozenset[str]:
    """Return the letters of columns that synonyms name, as they may where there is no header row: `B` or `Column B`."""
    spelled = (s.casefold().removeprefix("column").strip().upper() for f in fields for s in f.synonyms)
    return frozenset(spelled)


def _names_to_match(column: Column, named: frozenset[str], *, units: bool) -> tuple[str, ...]:
    """List the texts under which a column is matched with fields: its whole header, then the last part of a stacked
    one; empty if it has none.

    `named`: letters that name a column without a header. `units`: the last part of a header is a unit.
    """
    if column.generated:
        letters = a1.letters(column.index)
        return (letters, column.name) if letters in named else ()
    parts = column.parts
    leaf = parts[-1] if parts else column.name
    if units and len(parts) > 1:
        return f"{' '.join(parts[:-1])} ({leaf})", parts[-2]
    return (column.name,) if leaf == column.name else (column.name, leaf)


def _call_detectors(
    source: SourceTable, columns: Sequence[ColumnIn], detectors: Sequence[Rule], hooks: Hooks, names: set[str]
) -> dict[int, dict[str, list[Contribution]]]:
    """Run the config's detectors on every column and collect their scores: position of a column -> field ->
    contributions.

    A detector that fails is reported through `hooks`, or ends the job if the manifest asks for it.
    """
    detected: dict[int, dict[str, list[Contribution]]] = {}
    for rule in detectors:
        for column in columns:
            index = source.columns[column.position].index
            try:
                answer = rule.call(
                    **hooks.shared,
                    input=source.place.input,
                    sheet=source.place.sheet,
                    table=source.id,
                    field=rule.file.rpartition("/")[2].removesuffix(".py"),
                    header=None if source.columns[column.position].generated else column.headers[0],
                    column=a1.letters(index),
                    column_index=index,
                    values_sample=column.sample.values[:_VALUES_FOR_DETECTORS],
                )
                for name, delta in _scores(rule, answer, names).items():
                    detected.setdefault(column.position, {}).setdefault(name, []).append(
                        Contribution(rule.name, round(float(delta), 4))
                    )
            except RuleFailed as failure:
                hooks.report_failure(failure)
    return detected


def _scores(rule: Rule, answer: Any, names: set[str]) -> dict[str, float]:
    """Check what a detector returned and convert it to scores by field; raises RuleFailed for an invalid answer."""
    remedy = 'return {"scores": {field: number}} or None'
    if answer is None:
        return {}
    scores = answer.get("scores") if isinstance(answer, dict) else answer
    if isinstance(scores, (int, float)):
        scores = {rule.file.rpartition("/")[2].removesuffix(".py"): scores}
    if not isinstance(scores, dict):
        raise RuleFailed(rule, f"returned {rule.class_of(answer)}", None, remedy)
    for name, delta in scores.items():
        if name not in names:
            raise RuleFailed(
                rule, "scored a field that is not declared", None, f"fields are {', '.join(sorted(names))}"
            )
        if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not -100 <= delta <= 100:
            raise RuleFailed(rule, "returned a score that is not a number between -100 and 100", None, remedy)
    return scores


def _apply_hook(
    source: SourceTable, choices: list[MappingChoice], hooks: Hooks, names: set[str]
) -> list[MappingChoice]:
    """Call the hook `after_mapping` and return the choices as it changed them; a column loses its field where the hook
    gives that to another one."""
    letters = [a1.letters(c.index) for c in source.columns]
    changes = hooks.remapped_columns(
        names,
        set(letters),
        input=source.place.input,
        sheet=source.place.sheet,
        table=source.id,
        mapping={letters[c.position]: c.field for c in choices},
        headers={letters[n]: c.name for n, c in enumerate(source.columns)},
    )
    assigned = {f for f in changes.values() if f is not None}
    remapped = []
    for choice in choices:
        letter = letters[choice.position]
        if letter in changes and changes[letter] != choice.field:
            remapped.append(choice.decided(changes[letter], "hooks.after_mapping", "decided by a hook", "hook"))
        elif choice.field in assigned and letter not in changes:
            remapped.append(
                choice._replace(
                    field=None, contributors=(), note="a hook gave its field to another column", tier="none"
                )
            )
        else:
            remapped.append(choice)
    return remapped


def _speaks_for_header(rule: str) -> bool:
    """Whether a contribution by this rule says that a header is a field's name in the same words or others, not merely
    like one."""
    return rule.startswith("header:") and not rule.endswith("~")


_MAY_BE_VALUE: Final = re.compile(r"^(?:[^@\s]+@[^@\s]+\.[^@\s]+|\+?(?:\d[ ()./-]{0,2}){9,})$", re.MULTILINE)
_MOST_NAMED: Final = 20  # columns that the message names
_LETTERS_COMPARED: Final = 60
_MOST_COMPARED: Final = 200
_LEAST_BY_LETTERS: Final = 0.6
_LEAST_AKIN: Final = 0.5  # likeness of a header that may have a field's values
_REMEDY: Final = (
    "check that this is the right file; add its headers as synonyms of the fields, "
    'or name the header row: "reading": {"header_rows": [3]}'
)
_REMEDY_WITHOUT_HEADER: Final = (
    'no header row was found; name it: "reading": {"header_rows": [3]}, '
    'or name the columns by their letters: {"name": "city", "synonyms": ["B"]}'
)


def expects_columns(fields: Sequence[Field], computed: Collection[str | None]) -> bool:
    """Whether any field can get its values from nowhere but a column; `computed`: names of fields that rules make."""
    return any(f.needs_column and f.name not in computed for f in fields)


def unused_rules(tables: Sequence[MappedTable], fields: Sequence[Field], computed: Collection[str]) -> list[str]:
    """Return the names of fields that only a file in columns/ speaks of and that no table has."""
    mapped = {name for table in tables for name in table.fields}
    return [f.name for f in fields if not f.declared and f.name not in mapped and f.name not in computed and tables]


def nothing_mapped(tables: Sequence[MappedTable], fields: Sequence[Field], *, redact: bool) -> EngineStop:
    """Create the error that ends a job in which no column is a declared field; it names the headers, each with the
    field it is most like."""
    seen = [(table, n) for table in tables for n in range(len(table.choices))]
    named = [_column_words(table, n, fields, redact=redact) for table, n in seen[:_MOST_NAMED]]
    more = f" and {len(seen) - _MOST_NAMED} more" if len(seen) > _MOST_NAMED else ""
    inputs = {t.source.place.input for t in tables}
    place = tables[0].source.place
    headless = all(t.source.table.generated_header for t in tables)
    is_only = len(tables) == 1
    return EngineStop(
        EndCode.NOTHING_MAPPED,
        f"no column is one of the declared fields; columns seen: {', '.join(named)}{more}",
        input=place.input if len(inputs) == 1 else None,
        sheet=place.sheet if is_only else None,
        table=place.table if is_only else None,
        remedy=_REMEDY_WITHOUT_HEADER if headless else _REMEDY,
    )


def _column_words(table: MappedTable, n: int, fields: Sequence[Field], *, redact: bool) -> str:
    """Describe a column in the words of that error: its letters, its header unless hidden, and the field it is most
    like."""
    column, name = table.source.columns[n], table.letters(n)
    if column.generated:
        return name
    if not redact and table.shows_header(n):
        text = " ".join(column.name.encode(errors="replace").decode().split())
        name += f" “{text if len(text) <= _LETTERS_COMPARED else text[:_LETTERS_COMPARED] + '…'}”"
    near = _nearest_field(column.name, fields)
    return name + (f" (nearest: {near})" if near else "")


def _nearest_field(header: str, fields: Sequence[Field]) -> str | None:
    """Return the field whose names share the most words or letters with a header; None if none shares any."""
    scored = ((_name_likeness(header, field), field.name) for field in fields[:_MOST_COMPARED])
    likeness_of_nearest, nearest = max(scored, key=itemgetter(0), default=(0.0, None))
    return nearest if likeness_of_nearest else None


def _most_like_header(field: Field, headers: Sequence[tuple[int, str]]) -> int | None:
    """Return the position of the header that shares the most words or letters with a field's names; None if none does.
    `headers`: (position, header)."""
    scored = ((_name_likeness(header, field), n) for n, header in headers)
    likeness_of_nearest, nearest = max(scored, key=itemgetter(0), default=(0.0, None))
    return nearest if likeness_of_nearest else None


def _name_likeness(header: str, field: Field) -> float:
    """Measure by words or by letters, from 0 to 1, how alike a header and a field's names are."""
    from difflib import SequenceMatcher  # noqa: PLC0415  # only for what has no column

    best = 0.0
    for name, _ in field.names:
        letters = SequenceMatcher(None, joined(header)[:_LETTERS_COMPARED], joined(name)[:_LETTERS_COMPARED]).ratio()
        best = max(best, likeness(header, name), letters if letters >= _LEAST_BY_LETTERS else 0.0)
    return best
