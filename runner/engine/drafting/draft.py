"""From samples to `draft.json`: their tables, columns that mean the same, and a field for each with its evidence."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.common.spelling import normalized
from runner.engine.contract import DraftRequest, EndCode, Json, Order, OutputName
from runner.engine.deciding.review import Answers
from runner.engine.drafting.field_facts import FieldFacts
from runner.engine.drafting.inference import NEVER_TWICE, DraftQuestion, Inference, Spec
from runner.engine.drafting.sample_columns import ColumnFacts, facts_of
from runner.engine.mapping.column_evidence import ColumnIn
from runner.engine.mapping.knowledge import concepts_of
from runner.engine.mapping.score import MappingChoice, choose
from runner.engine.options import ReadingOptions
from runner.engine.protocol import EngineStop, open_output
from runner.engine.reading.spool import Room
from runner.engine.surveying.survey import DeclaredNames, NamedHeadings, SurveyedInput, survey
from runner.engine.tables.sources import SourceTable

_SURE: Final = 0.85  # probability from which columns of different headers are one field
_ASKED: Final = 0.5  # from which a person is asked
_ALIKE: Final = 0.6  # share of headers that a second table of a sample has in common with the first
_MOST_FIELDS: Final = 500
_ROOM: Final = 400_000  # different values that are counted, over all columns
_LEAST_ROOM: Final = 1000  # of one column
_MOST_NOTES: Final = 100
_LONGEST_NAME: Final = 60
_MOST_HEADER: Final = 200
# What samples add to the rules of a contract.
_OF_SAMPLES: Final = ("synonyms", "formats", "day_first", "clean", "label")


class SampleTable(NamedTuple):
    """A table of a sample that holds records."""

    file: int
    source: SourceTable
    columns: Mapping[int, ColumnFacts]


def draft(order: Order, request: DraftRequest) -> Json:
    """Write the draft that an order asks for; returns the summary for the end event."""
    notes: list[str] = []
    declared = [FieldFacts(spec["name"], declared=spec) for spec in _declared_fields(order)]
    tables = _read_samples(order, declared, notes)
    if not any(table.columns for table in tables):
        raise EngineStop(
            EndCode.EMPTY_INPUT, "no table was found in the samples", remedy="check that these are the right files"
        )
    joiner = _FieldJoiner(declared, request, notes)
    for table in tables:
        joiner.add(table)
    files = len({table.file for table in tables})
    drafts = _with_one_key([(facts, _draft_field(facts, files, request)) for facts in joiner.fields])
    document: Json = {
        "draft": 1,
        "samples": len(order.primary),
        "rows": sum(max((c.rows for c in table.columns.values()), default=0) for table in tables),
        "headless": bool(tables) and all(table.source.table.generated_header for table in tables),
        "fields": [_field_part(facts, field_draft) for facts, field_draft in drafts],
        "questions": [
            _question_part(q)
            for q in (*joiner.questions, *(q for _, field_draft in drafts for q in field_draft.questions))
        ],
        "notes": notes[:_MOST_NOTES]
        + ([f"{len(notes) - _MOST_NOTES:,} more notes"] if len(notes) > _MOST_NOTES else []),
    }
    target = open_output(order, OutputName.DRAFT)
    if target is not None:
        with target:
            target.write(json.dumps(document, ensure_ascii=True, allow_nan=False).encode())
    return {"fields": len(drafts)}


def _declared_fields(order: Order) -> list[Spec]:
    """The fields that a target or a contract gives, as the manifest of the order has them."""
    fields = order.manifest.get("fields")
    return [dict(spec) for spec in fields if isinstance(spec, Mapping)] if isinstance(fields, list | tuple) else []


class FieldDraft(NamedTuple):
    """A field of the draft, what it is based on, and what a person may be asked about it."""

    spec: Spec
    evidence: list[str]
    questions: list[DraftQuestion]


def _draft_field(facts: FieldFacts, files: int, request: DraftRequest) -> FieldDraft:
    """What the samples show of a field; what is declared wins."""
    if not facts.columns:
        optional = {} if facts.declared.get("required") else {"optional": True}
        return FieldDraft({**facts.declared, **optional}, ["no sample has such a column"], [])
    inference = Inference(facts, files)
    spec, questions = inference.spec, inference.questions
    if not request.rules:
        spec, questions = {key: value for key, value in spec.items() if key in _OF_SAMPLES}, []
    return FieldDraft({**spec, **facts.declared, **_synonyms(spec, facts.declared)}, inference.evidence, questions)


def _with_one_key(drafts: Sequence[tuple[FieldFacts, FieldDraft]]) -> list[tuple[FieldFacts, FieldDraft]]:
    """The draft with a unique field in the first column only: numbers of other things may repeat in a later file."""
    later = [
        (
            facts,
            _without_key(field_draft)
            if field_draft.spec.get("unique") and "unique" not in facts.declared
            else field_draft,
        )
        for facts, field_draft in drafts[1:]
    ]
    return [*drafts[:1], *later]


def _without_key(field_draft: FieldDraft) -> FieldDraft:
    """The draft of a field that asks whether it is unique instead of demanding it."""
    spec = {key: value for key, value in field_draft.spec.items() if key != "unique"}
    evidence = [words for words in field_draft.evidence if words != NEVER_TWICE]
    question = DraftQuestion(
        "unique", spec["name"], "no value occurs twice: is it unique in every file?", {"unique": True}
    )
    return FieldDraft(spec, evidence, [*field_draft.questions, question])


def _synonyms(inferred: Spec, declared: Spec) -> Spec:
    """The declared synonyms, then those of the samples; nothing if there are none."""
    synonyms = list(dict.fromkeys([*declared.get("synonyms", ()), *inferred.get("synonyms", ())]))
    return {"synonyms": synonyms} if synonyms else {}


def _evidence(facts: FieldFacts, drafts: FieldDraft) -> str:
    """What a field's rules are based on, in one sentence without a value."""
    samples = len(facts.files)
    seen = f"{samples} sample{'' if samples == 1 else 's'}, {facts.values:,} value{'' if facts.values == 1 else 's'}"
    return "; ".join([f"{seen}: {drafts.evidence[0]}" if drafts.evidence else seen, *drafts.evidence[1:]])


def _field_part(facts: FieldFacts, field_draft: FieldDraft) -> Json:
    return {"spec": field_draft.spec, "evidence": _evidence(facts, field_draft), "personal": facts.is_personal}


def _question_part(question: DraftQuestion) -> Json:
    """A question as draft.json has it."""
    return {
        "kind": question.kind,
        "field": question.field,
        "text": question.text,
        "change": question.change,
        "examples": list(question.examples),
    }


def _read_samples(order: Order, declared: Sequence[FieldFacts], notes: list[str]) -> list[SampleTable]:
    """Read all rows of all samples; adds a note about what is not used to `notes`."""
    fields = [Field(facts.declared) for facts in declared]
    headings = partial(DeclaredNames, NamedHeadings(fields))
    reading, room, sample_tables = ReadingOptions(), Room(), []
    for number, file in enumerate(order.primary):
        source = SurveyedInput(file, reading)
        survey(
            source, reading, Findings(), room=room, headings=headings, scores=lambda **_: None,
            decided=Answers(None),
        )  # fmt: skip
        tables = _record_tables(source, notes)
        if not tables:
            notes.append(f"{file.name}: no table was found, so it was not used")
        with source.streaming():
            columns = sum(len(table.columns) for table in tables) * len(order.primary)
            room_per_column = max(_LEAST_ROOM, _ROOM // max(1, columns))
            sample_tables += [
                SampleTable(number, table, facts_of(table, number, room=room_per_column)) for table in tables
            ]
    return sample_tables


def _record_tables(source: SurveyedInput, notes: list[str]) -> list[SourceTable]:
    """The tables of a sample that hold its records: the largest, and others with the same columns."""
    filled = sorted(
        source.tables, key=lambda t: (t.has_data, max(1, t.bottom - t.top + 1) * len(t.columns)), reverse=True
    )
    if not filled:
        return []
    main = _headers(filled[0])
    alike = [filled[0]]
    for other in filled[1:]:
        shared = len(_headers(other) & main)
        if other.has_data and shared > 1 and shared >= _ALIKE * max(len(main), len(_headers(other))):
            alike.append(other)
        else:
            place = f"{source.file.name}, {other.place.sheet}!{other.table.range.a1}"
            notes.append(f"{place}: has other columns than the largest table, so it was not used")
    return alike


def _headers(table: SourceTable) -> set[str]:
    return {normalized(column.name) for column in table.columns if not column.generated}


class _FieldJoiner:
    """The fields of the draft, sample by sample."""

    def __init__(self, declared: Sequence[FieldFacts], request: DraftRequest, notes: list[str]) -> None:
        self.fields = list(declared)
        self.questions: list[DraftQuestion] = []
        self._request = request
        self._notes = notes
        self._same = {normalized(header): normalized(other) for header, other in request.same.items()}

    def add(self, table: SampleTable) -> None:
        """Add the columns of a table to the fields that they are, or as new ones."""
        columns = dict(self._usable(table))
        choices, beyond = self._choices(columns), list[str]()
        for position, column in columns.items():
            choice = choices.get(position)
            if choice is not None and choice.field is not None and self._is_same(choice):
                self._field(choice.field).columns.append(column)
                continue
            if choice is not None and choice.field is not None:
                self._ask(column, self._field(choice.field))
            if self._request.known_only:
                self._notes.append(
                    f"column {column.letters} “{column.header}” is none of the fields, so it was left out"
                )
            elif len(self.fields) < _MOST_FIELDS:
                self.fields.append(FieldFacts(self._free_name(column), [column]))
            else:
                beyond.append(column.letters)
        if beyond:
            what = f"column{'' if len(beyond) == 1 else 's'} {beyond[0]}" + (f" to {beyond[-1]}" if beyond[1:] else "")
            self._notes.append(f"{what}: beyond {_MOST_FIELDS} fields, left out")

    def _usable(self, table: SampleTable) -> Iterable[tuple[int, ColumnFacts]]:
        """The columns that their headers tell apart."""
        seen: set[str] = set()
        headless = table.source.table.generated_header
        for position, column in table.columns.items():
            generated = table.source.columns[position].generated
            header = normalized(column.header)
            if generated and not headless:
                self._notes.append(f"column {column.letters} has no header, so it was left out")
            elif header in seen:
                self._notes.append(f"column {column.letters} has the header of another column, so it was left out")
            elif len(column.header) > _MOST_HEADER:
                self._notes.append(
                    f"column {column.letters} has a header of over {_MOST_HEADER} characters and was left out"
                )
            else:
                seen.add(header)
                if headless:
                    column.header, column.has_header = column.letters, False
                yield position, column

    def _choices(self, columns: Mapping[int, ColumnFacts]) -> dict[int, MappingChoice]:
        """Which field each column is, as a job would map it."""
        if not self.fields:
            return {}
        fields = [Field(_as_field(facts)) for facts in self.fields]
        headers = {n: self._same.get(normalized(c.header), c.header) for n, c in columns.items()}
        inside = [ColumnIn(n, (headers[n],), column.sample, column.letters) for n, column in columns.items()]
        choices = choose(inside, fields, threshold=_ASKED, detected={}, allowed=lambda _: None)
        return {choice.position: choice for choice in choices}

    def _is_same(self, choice: MappingChoice) -> bool:
        return choice.tier in ("name", "words", "rule") or choice.probability >= _SURE

    def _field(self, name: str) -> FieldFacts:
        return next(facts for facts in self.fields if facts.name == name)

    def _ask(self, column: ColumnFacts, facts: FieldFacts) -> None:
        """Ask whether a column is the same as a field of other samples."""
        text = f"is the column “{column.header}” of another sample the same as “{facts.label}”?"
        examples = tuple(text[:40] for text, _ in column.counts.most_common(3))
        change = {"same": {column.header: facts.label}}
        self.questions.append(DraftQuestion("same_column", facts.name, text, change, examples))

    def _free_name(self, column: ColumnFacts) -> str:
        """A name for a column's field that no other field has."""
        name = field_name(column.header, column.letters) if column.has_header else f"column_{column.letters.lower()}"
        names, free, n = {facts.name for facts in self.fields}, name, 1
        while free in names:
            n += 1
            free = f"{name}_{n}"
        return free


def _as_field(facts: FieldFacts) -> Spec:
    """A field as a manifest would declare it, for matching further columns with it."""
    if not facts.columns:
        return facts.declared
    spec: dict[str, Any] = {"name": facts.name, "synonyms": [*facts.headers, *facts.declared.get("synonyms", ())]}
    so_far = FieldFacts(facts.name, facts.columns)  # what is worked out about it is of these columns only
    kind = facts.declared.get("type") or Inference(so_far, 1).spec["type"]
    return {**spec, "type": "text" if kind == "enum" else kind}


def field_name(header: str, letters: str) -> str:
    """A name for the output: the header's words with _ between them, in Latin letters."""
    words = re.sub(r"[^a-z0-9]+", "_", normalized(header)).strip("_")
    if len(words) * 2 < len(normalized(header).replace(" ", "")):  # another script: what it means, if that is known
        meant = concepts_of(header)
        words = meant[0][0].partition(":")[0] if meant and meant[0][1] >= _SURE else f"column_{letters.lower()}"
    if not words or not words[0].isalpha():
        words = f"column_{words or letters.lower()}"
    return words[:_LONGEST_NAME].rstrip("_")
