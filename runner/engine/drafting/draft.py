"""From samples to `draft.json`: their tables, columns that mean the same, and a field for each with its evidence."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.common.spelling import normalized
from runner.engine.contract import DraftRequest, EndCode, InputFile, Json, Order, OutputName
from runner.engine.deciding.answers import Answers
from runner.engine.drafting.field_facts import FieldFacts
from runner.engine.drafting.inference import NEVER_TWICE, DraftQuestion, Inference, Spec
from runner.engine.drafting.sample_columns import FEWEST_WORDS, ColumnFacts, facts_of
from runner.engine.mapping.column_evidence import ColumnIn
from runner.engine.mapping.knowledge import concepts_of
from runner.engine.mapping.score import MappingChoice, choose
from runner.engine.options import ReadingOptions
from runner.engine.protocol import EngineStop, open_output
from runner.engine.reading.spool import Room
from runner.engine.surveying.declared_names import DeclaredNames, HeadingSpellings
from runner.engine.surveying.survey import survey
from runner.engine.surveying.surveyed_input import SurveyedInput
from runner.engine.tables.sources import SourceTable

_SURE_PROBABILITY: Final = 0.85  # probability from which columns of different headers are one field
_LEAST_PLAINNESS: Final = 0.85  # how plainly a header of another script must say what it means to be named by it
_ASKED_PROBABILITY: Final = 0.5  # from which a person is asked
_LEAST_SHARED_HEADERS: Final = 0.6  # share of headers that a second table of a sample has in common with the first
_MOST_FIELDS: Final = 500
_MOST_COLUMNS: Final = 2 * _MOST_FIELDS  # of one table
_VALUES_COUNTED: Final = 400_000  # different values that are counted, over all columns
_LEAST_VALUES_COUNTED: Final = 1000  # of one column
_EXAMPLES, _LONGEST_EXAMPLE = 3, 40  # values in a question, and characters of each
_MOST_NOTES: Final = 100
_LONGEST_NAME: Final = 60
_LONGEST_HEADER: Final = 200
# What samples add to the rules of a contract.
_KEYS_OF_SAMPLES: Final = ("synonyms", "formats", "day_first", "clean", "label")


class SampleTable(NamedTuple):
    """A table of a sample that holds records."""

    file: int  # which sample, by number
    source: SourceTable
    columns: Mapping[int, ColumnFacts]  # by position


def draft(order: Order, request: DraftRequest) -> Json:
    """Read the samples and write draft.json; returns the summary for the end event.

    Raises EngineStop if no sample has a table.
    """
    notes: list[str] = []
    declared = [FieldFacts(spec["name"], declared=spec) for spec in _list_declared_fields(order)]
    samples = _leave_out_copies(order.primary, notes)
    tables = _read_samples(samples, declared, notes)
    if not any(table.columns for table in tables):
        raise EngineStop(
            EndCode.EMPTY_INPUT, "no table was found in the samples", remedy="check that these are the right files"
        )
    tables = _leave_out_blank_ones(tables, notes)
    joiner = _FieldJoiner(declared, request, notes)
    for table in tables:
        joiner.add(table)
    files = len({table.file for table in tables})
    drafts = _leave_one_key([(facts, _draft_field(facts, files, request)) for facts in joiner.fields])
    document: Json = {
        "draft": 1,
        "samples": files,
        "rows": sum(max((c.rows for c in table.columns.values()), default=0) for table in tables),
        "headless": bool(tables) and all(table.source.table.generated_header for table in tables),
        "fields": [_encode_field(facts, field_draft) for facts, field_draft in drafts],
        "questions": [
            _encode_question(q)
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


def _list_declared_fields(order: Order) -> list[Spec]:
    """List the fields that a target or a contract gives, as the manifest of the order has them."""
    fields = order.manifest.get("fields")
    return [dict(spec) for spec in fields if isinstance(spec, Mapping)] if isinstance(fields, list | tuple) else []


class FieldDraft(NamedTuple):
    """A field of the draft, what it is based on, and what a person may be asked about it."""

    spec: Spec
    evidence: list[str]
    questions: list[DraftQuestion]


def _draft_field(facts: FieldFacts, files: int, request: DraftRequest) -> FieldDraft:
    """Draft a field from what the samples show; what is declared wins. `files`: how many samples there are."""
    if not facts.columns:
        optional = {} if facts.declared.get("required") else {"optional": True}
        return FieldDraft({**facts.declared, **optional}, ["no sample has such a column"], [])
    inference = Inference(facts, files)
    spec, questions = inference.spec, inference.questions
    if not request.rules:
        spec, questions = {key: value for key, value in spec.items() if key in _KEYS_OF_SAMPLES}, []
    return FieldDraft(
        {**spec, **facts.declared, **_merge_synonyms(spec, facts.declared)}, inference.evidence, questions
    )


def _leave_one_key(drafts: Sequence[tuple[FieldFacts, FieldDraft]]) -> list[tuple[FieldFacts, FieldDraft]]:
    """Keep `unique` only on a field in the first column: numbers of other things may repeat in a later file."""
    with_one_key = list(drafts[:1])
    for facts, field_draft in drafts[1:]:
        is_inferred_key = field_draft.spec.get("unique") and "unique" not in facts.declared
        with_one_key.append((facts, _without_key(field_draft) if is_inferred_key else field_draft))
    return with_one_key


def _without_key(field_draft: FieldDraft) -> FieldDraft:
    """Copy the draft of a field so that it asks whether the field is unique instead of demanding it."""
    spec = {key: value for key, value in field_draft.spec.items() if key != "unique"}
    evidence = [words for words in field_draft.evidence if words != NEVER_TWICE]
    question = DraftQuestion(
        "unique", spec["name"], "no value occurs twice: is it unique in every file?", {"unique": True}
    )
    return FieldDraft(spec, evidence, [*field_draft.questions, question])


def _merge_synonyms(inferred: Spec, declared: Spec) -> Spec:
    """Return the part of a spec with all synonyms, the declared ones first; empty if there are none."""
    synonyms = list(dict.fromkeys([*declared.get("synonyms", ()), *inferred.get("synonyms", ())]))
    return {"synonyms": synonyms} if synonyms else {}


def _describe_evidence(facts: FieldFacts, field_draft: FieldDraft) -> str:
    """Describe in one sentence, without a value, what a field's rules are based on."""
    samples, evidence = len(facts.files), field_draft.evidence
    seen = f"{samples} sample{'' if samples == 1 else 's'}, {facts.values:,} value{'' if facts.values == 1 else 's'}"
    return "; ".join([f"{seen}: {evidence[0]}" if evidence else seen, *evidence[1:]])


def _encode_field(facts: FieldFacts, field_draft: FieldDraft) -> Json:
    """Return a field as draft.json has it."""
    return {"spec": field_draft.spec, "evidence": _describe_evidence(facts, field_draft), "personal": facts.is_personal}


def _encode_question(question: DraftQuestion) -> Json:
    """Return a question as draft.json has it."""
    return {
        "kind": question.kind,
        "field": question.field,
        "text": question.text,
        "change": question.change,
        "examples": list(question.examples),
        "refusal": dict(question.refusal),
    }


def _leave_out_copies(files: Sequence[InputFile], notes: list[str]) -> list[InputFile]:
    """Return the samples without copies of others, which prove nothing more; adds a note about each copy."""
    distinct: dict[str, InputFile] = {}
    for file in files:
        first = distinct.setdefault(file.sha256 or file.name, file)
        if first is not file:
            notes.append(f"{file.name}: has the same content as {first.name}, so it counts once")
    return list(distinct.values())


def _read_samples(samples: Sequence[InputFile], declared: Sequence[FieldFacts], notes: list[str]) -> list[SampleTable]:
    """Read all rows of all samples; adds a note about what is not used to `notes`."""
    fields = [Field(facts.declared) for facts in declared]
    headings = partial(DeclaredNames, HeadingSpellings(fields))
    reading, room, sample_tables = ReadingOptions(), Room(), list[SampleTable]()
    for number, file in enumerate(samples):
        source = SurveyedInput(file, reading)
        survey(
            source, reading, Findings(), room=room, headings=headings, scores=lambda **_: None,
            decided=Answers(None),
        )  # fmt: skip
        tables = _choose_record_tables(source, notes)
        if not tables:
            notes.append(f"{file.name}: no table was found, so it was not used")
        with source.streaming():
            for table in tables:
                if len(table.columns) > _MOST_COLUMNS:
                    what = f"of {len(table.columns):,} columns only the first {_MOST_COLUMNS:,} were used"
                    notes.append(f"{file.name}, {table.place.sheet}!{table.table.range.a1}: {what}")
            columns = sum(len(table.columns) for table in tables) * len(samples)
            room_per_column = max(_LEAST_VALUES_COUNTED, _VALUES_COUNTED // max(1, columns))
            sample_tables += [
                SampleTable(number, table, facts_of(table, number, room=room_per_column, most=_MOST_COLUMNS))
                for table in tables
            ]
    return sample_tables


def _choose_record_tables(source: SurveyedInput, notes: list[str]) -> list[SourceTable]:
    """Choose the tables of a sample that hold its records: the largest, and others with mostly the same columns.

    Adds a note about each other table to `notes`.
    """
    largest_first = sorted(
        source.tables, key=lambda t: (t.has_data, max(1, t.bottom - t.top + 1) * len(t.columns)), reverse=True
    )
    if not largest_first:
        return []
    main_headers = _named_headers(largest_first[0])
    alike = [largest_first[0]]
    for other in largest_first[1:]:
        headers = _named_headers(other)
        shared = len(headers & main_headers)
        has_same_columns = shared > 1 and shared >= _LEAST_SHARED_HEADERS * max(len(main_headers), len(headers))
        if other.has_data and has_same_columns:
            alike.append(other)
        else:
            place = f"{source.file.name}, {other.place.sheet}!{other.table.range.a1}"
            notes.append(f"{place}: has other columns than the largest table, so it was not used")
    return alike


def _leave_out_blank_ones(tables: Sequence[SampleTable], notes: list[str]) -> list[SampleTable]:
    """Return the tables without those that have headers and no rows, unless all are so, as in an empty template.

    Adds a note about each table that is left out.
    """
    filled = [table for table in tables if table.source.has_data]
    if not filled:
        return list(tables)
    blank = [table for table in tables if not table.source.has_data]
    notes += [f"{table.source.place.input}: has a header and no rows, so it was not used" for table in blank]
    return filled


def _named_headers(table: SourceTable) -> set[str]:
    """Return the normalized headers that the sheet has for a table's columns."""
    return {normalized(column.name) for column in table.columns if not column.generated}


class _FieldJoiner:
    """Joins the columns of all samples to fields: `fields`, `questions` and `notes` grow with each table."""

    def __init__(self, declared: Sequence[FieldFacts], request: DraftRequest, notes: list[str]) -> None:
        """Start with the fields that a target or a contract gives. `notes` receives what is left out."""
        self.fields = list(declared)
        self.questions: list[DraftQuestion] = []
        self._request = request
        self._notes = notes
        # Header -> the header of another sample that a person called the same, both normalized.
        self._same = {normalized(header): normalized(other) for header, other in request.same.items()}

    def add(self, table: SampleTable) -> None:
        """Join each column of a table to the field that it is, or make a new field of it.

        Adds questions where a person could say better, and notes about columns that are left out.
        """
        columns, name = dict(self._usable_columns(table)), table.source.place.input
        choices, beyond = self._match_columns(columns), list[str]()
        for position, column in columns.items():
            choice = choices.get(position)
            if choice is not None and choice.field is not None and self._is_same(choice):
                self._field_named(choice.field).columns.append(column)
                continue
            likely = None if choice is None else choice.field
            doubtful = self._field_of_same_words(column) if likely is None else self._field_named(likely)
            if doubtful is not None:
                self._ask_whether_same(column, doubtful)
            if self._request.known_only:
                what = f"column {column.letters} “{column.header}” is none of the fields, so it was left out"
                self._notes.append(f"{name}: {what}")
            elif len(self.fields) < _MOST_FIELDS:
                self.fields.append(FieldFacts(self._free_name(column), [column]))
            else:
                beyond.append(column.letters)
        if beyond:
            what = f"column{'' if len(beyond) == 1 else 's'} {beyond[0]}" + (f" to {beyond[-1]}" if beyond[1:] else "")
            self._notes.append(f"{name}: {what}: beyond {_MOST_FIELDS} fields, left out")

    def _usable_columns(self, table: SampleTable) -> Iterable[tuple[int, ColumnFacts]]:
        """Yield the columns that their headers tell apart, by position; adds a note about each other one.

        In a table without headers all are usable, under their letters.
        """
        seen: dict[str, str] = {}  # header -> the letters of its column
        headless = table.source.table.generated_header
        for position, column in table.columns.items():
            generated = table.source.columns[position].generated
            header, name = normalized(column.header), f"{table.source.place.input}: column {column.letters}"
            if generated and not headless:
                self._notes.append(f"{name} has no header, so it was left out")
            elif header in seen:
                self._notes.append(f"{name} has the same header as column {seen[header]}, so it was left out")
            elif len(column.header) > _LONGEST_HEADER:
                self._notes.append(f"{name} has a header of over {_LONGEST_HEADER} characters and was left out")
            else:
                seen[header] = column.letters
                if headless:
                    column.header, column.has_header = column.letters, False
                yield position, column

    def _match_columns(self, columns: Mapping[int, ColumnFacts]) -> dict[int, MappingChoice]:
        """Match columns with the fields so far, as a job would map them; by position."""
        if not self.fields:
            return {}
        fields = [Field(_as_declaration(facts)) for facts in self.fields]
        headers = {n: self._same.get(normalized(c.header), c.header) for n, c in columns.items()}
        inside = [ColumnIn(n, (headers[n],), column.sample, column.letters) for n, column in columns.items()]
        choices = choose(inside, fields, threshold=_ASKED_PROBABILITY, detected={}, allowed=lambda _: None)
        return {choice.position: choice for choice in choices}

    def _is_same(self, choice: MappingChoice) -> bool:
        """Whether a column is a field without asking a person: by its name, or by a high probability."""
        return choice.tier in ("name", "words", "rule") or choice.probability >= _SURE_PROBABILITY

    def _field_named(self, name: str) -> FieldFacts:
        """Return the field of this name, which is one of those so far."""
        return next(facts for facts in self.fields if facts.name == name)

    def _field_of_same_words(self, column: ColumnFacts) -> FieldFacts | None:
        """Return the field of other samples that has the same few words as values under a header that means something
        else, such as “State” and “Status”; None if no field has, or several."""
        words = column.few_words
        found = [
            facts
            for facts in self.fields
            if words and facts.files and column.file not in facts.files and _is_same_list(words, facts)
        ]
        return found[0] if len(found) == 1 else None

    def _ask_whether_same(self, column: ColumnFacts, facts: FieldFacts) -> None:
        """Add the question whether a column is the same as a field of other samples."""
        text = f"is the column “{column.header}” of another sample the same as “{facts.label}”?"
        examples = tuple(value[:_LONGEST_EXAMPLE] for value, _ in column.counts.most_common(_EXAMPLES))
        change = {"same": {column.header: facts.label}}
        self.questions.append(DraftQuestion("same_column", facts.name, text, change, examples))

    def _free_name(self, column: ColumnFacts) -> str:
        """Choose a name for a column's field that no other field has."""
        name = field_name(column.header, column.letters) if column.has_header else f"column_{column.letters.lower()}"
        names, free, n = {facts.name for facts in self.fields}, name, 1
        while free in names:
            n += 1
            free = f"{name}_{n}"
        return free


def _is_same_list(words: frozenset[str], facts: FieldFacts) -> bool:
    """Whether a field's values are these words, or one of the two lists has only words of the other."""
    others = frozenset[str]().union(*(column.few_words for column in facts.columns))
    return len(words & others) >= FEWEST_WORDS and (words <= others or others <= words)


def _as_declaration(facts: FieldFacts) -> Spec:
    """Declare a field as a manifest would, to match further columns with it."""
    if not facts.columns:
        return facts.declared
    spec: dict[str, Any] = {"name": facts.name, "synonyms": [*facts.headers, *facts.declared.get("synonyms", ())]}
    so_far = FieldFacts(facts.name, facts.columns)  # what is worked out about it is of these columns only
    kind = facts.declared.get("type") or Inference(so_far, 1).spec["type"]
    return {**spec, "type": "text" if kind == "enum" else kind}


def field_name(header: str, letters: str) -> str:
    """Make a name for a column's field: the header's words in Latin letters with _ between them.

    A header in another script gets the name of what it plainly means; failing that, the column's letters name it
    (`column_c`). A name that would not begin with a letter begins with `column_`.
    """
    spelled = normalized(header)
    name = re.sub(r"[^a-z0-9]+", "_", spelled).strip("_")
    is_other_script = len(name) * 2 < len(spelled.replace(" ", ""))
    if is_other_script:
        name = _name_by_meaning(header) or f"column_{letters.lower()}"
    if not name or not name[0].isalpha():
        name = f"column_{name or letters.lower()}"
    return name[:_LONGEST_NAME].rstrip("_")


def _name_by_meaning(header: str) -> str:
    """Return the English name of what a header of any language plainly means; empty if that is not known."""
    meanings = concepts_of(header)
    if not meanings:
        return ""
    concept, plainness = meanings[0]
    return concept.partition(":")[0] if plainness >= _LEAST_PLAINNESS else ""
