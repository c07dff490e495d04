"""Decision v1: a person's answers to a review, `<file>.decision.json` beside the input.

It is written by hand, by `ade review` and by the API, and comes from outside like a manifest: bounded, validated, and
refused with one line per mistake. What it says is applied by the engine (runner/engine/deciding/answers.py).
"""

from collections.abc import Iterable
from posixpath import basename
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from core.budget import MAX_MISTAKES, Budget, read
from core.errors import AdeError, Problem
from core.fields import FIELD_NAME, Strict, VersionOne
from core.jobs import Job
from core.manifests import Manifest
from core.wording import shown, wrong

MAX_DECISION_BYTES = 256 * 1024
MAX_ANSWERS = 2000
BUDGET = Budget(bytes=MAX_DECISION_BYTES, values=20_000)
_KINDS = ("field", "reading", "header_rows", "value", "skip")

Label = Annotated[str, Field(min_length=1, max_length=500)]


class DecisionInvalid(AdeError):
    """A decision does not validate or does not fit its job; `problems` says where and what is allowed."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.path}: {p.problem}" for p in problems))


class Answer(Strict):
    """One answer: what it is about (a question's id, a header, a column's letters) and one thing that it says."""

    id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    header: Label | None = None
    column: Annotated[str, Field(pattern=r"^[A-Z]{1,3}$")] | None = None
    sheet: Label | None = None
    field: Annotated[str, Field(pattern=FIELD_NAME)] | None = None  # null, but given: the column is no field
    reading: Literal["day_first", "month_first", "year_first", "point", "comma", "percent", "share"] | None = None
    header_rows: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=1_048_576, strict=True)], ...], Field(max_length=20)] | None
    ) = None
    value: Label | None = None  # one of the question's candidates; null, but given: none of them
    skip: Annotated[bool, Field(strict=True)] | None = None  # whether the sheet is left out

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        stated = [name for name in _KINDS if name in self.model_fields_set]
        if len(stated) != 1:
            problem = f"says {', '.join(stated)}" if stated else "says nothing"
            raise wrong(problem, f"one of {', '.join(_KINDS)} in each answer")
        kind = stated[0]
        if kind == "value" and self.id is None:
            raise wrong("has a value and no id", "the id of a question in review.json, with the value chosen", "value")
        if kind == "skip" and (self.sheet is None or self.skip is None):
            raise wrong("leaves out no sheet", '{"sheet": "Notes", "skip": true}', "skip")
        if kind in ("field", "reading") and self.id is None and self.header is None and self.column is None:
            raise wrong("names no column", "a header, a column's letters, or a question's id")
        return self


class Decision(Strict):
    decision: VersionOne
    workflow: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    job: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    by: Annotated[str, Field(min_length=1, max_length=200)]
    answers: Annotated[tuple[Answer, ...], Field(max_length=MAX_ANSWERS)] = ()
    accept: Annotated[bool, Field(strict=True)] = False  # take the likeliest answer to whatever is not answered here
    remember: Annotated[bool, Field(strict=True)] = True

    @field_validator("by")
    @classmethod
    def _is_name(cls, by: str) -> str:
        if not by.strip() or not by.isprintable():
            raise wrong(f"is {shown(by)}", "a person's name")
        return by.strip()

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if not self.answers and not self.accept:
            raise wrong("is empty", 'at least one answer, or "accept": true', "answers")
        return self


def parse_decision(body: bytes) -> Decision:
    """Validate a decision's bytes; raise DecisionInvalid with one problem per mistake, the first ones."""
    found = read(body, Decision, BUDGET, check=_bounded)
    if isinstance(found, list):
        raise DecisionInvalid(found)
    return found


def _bounded(raw: dict[str, object]) -> list[Problem]:
    answers = raw.get("answers")
    if isinstance(answers, list) and len(answers) > MAX_ANSWERS:
        return [Problem("$.answers", f"is a list of {len(answers)}", f"at most {MAX_ANSWERS} items")]
    return []


def is_for(decision: Decision, job: Job, *, is_planned: bool = False) -> bool:
    """Whether a decision is for this job and not for another one of its file.

    `is_planned`: the job is not in the table yet, and gets a longer id if another job has its own.
    """
    if decision.workflow not in (None, job.workflow):
        return False
    return decision.job in (None, job.job_id) or (is_planned and decision.job.startswith(job.job_id))


def misfits(decision: Decision, *, workflows: dict[str, frozenset[str] | None]) -> list[Problem]:
    """What a decision names that the workflows of its file do not have.

    `workflows`: by name, the fields that each may map to; None where only the engine knows them.
    """
    if decision.workflow is not None and decision.workflow not in workflows:
        known = ", ".join(sorted(workflows)) or "none yet"
        return [Problem("$.workflow", f"is {shown(decision.workflow)}", f"a workflow that selects this file: {known}")]
    chosen = [fields for name, fields in workflows.items() if decision.workflow in (None, name)]
    if not chosen or any(fields is None for fields in chosen):
        return []
    known_fields = frozenset[str]().union(*(fields or frozenset() for fields in chosen))
    declared = f"a declared field: {', '.join(sorted(known_fields)[:100])}"
    return [
        Problem(f"$.answers[{n}].field", f"is {shown(answer.field)}", declared)
        for n, answer in enumerate(decision.answers)
        if answer.field is not None and answer.field not in known_fields
    ][:MAX_MISTAKES]


def fields_of(manifest: Manifest, config: Iterable[str]) -> frozenset[str] | None:
    """The fields of a workflow, those that only a file in columns/ of its config defines among them; None: they are in
    a zip. `config`: the keys of its config."""
    keys = list(config)
    if any(key.endswith(".zip") for key in keys):
        return None
    rules = [key for key in keys if "/columns/" in key and key.endswith(".py")]
    return frozenset(f.name for f in manifest.fields) | {basename(key).removesuffix(".py") for key in rules}


def decision_schema() -> dict[str, object]:
    """The JSON Schema of decision v1, for editors; exported to docs/."""
    schema = Decision.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "ade-drop decision v1"}
