"""Questions to a person: what is asked about which place, which answers are offered, and what identifies them.

Ids depend only on the kind and the place, so they are the same in every attempt on the same input. Nothing here holds a
cell's value: headers that may be data are not shown.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from unicodedata import normalize

from runner.engine.contract import Json
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.surveying.partitions import PartitionDoubt

AS_FOUND: Final = "yes"  # the header rows that were found are the header
SKIP: Final = "skip"  # the sheet or table is left out
USE: Final = "use"  # the table holds records
# Characters that review.json may have of each text; the rest is cut.
_LONGEST_LABEL: Final = 300
_LONGEST_RULE: Final = 200
_LONGEST_HEADER: Final = 500
_LONGEST_QUESTION: Final = 1000
_MOST_REASONS: Final = 20
# What each reading that a person may choose is a reading of.
KIND_OF_READING: Final = {
    "day_first": "date_order", "month_first": "date_order", "year_first": "date_order",
    "point": "decimal", "comma": "decimal", "percent": "unit", "share": "unit",
}  # fmt: skip
# A choice of the engine, in its words -> the reading that a person would choose.
READING_OF_CHOICE: Final = {
    "day first": "day_first", "month first": "month_first", "year first": "year_first", ".": "point", ",": "comma",
    "percent": "percent", "share": "share",
}  # fmt: skip


class Candidate(NamedTuple):
    """An answer that is offered."""

    value: str | None
    label: str
    probability: float | None = None
    reasons: Sequence[Mapping[str, Any]] = ()
    header: str | None = None  # of the column that it is

    def as_dict(self) -> Json:
        """Return the candidate as review.json has it."""
        probability = None if self.probability is None else round(min(1.0, max(0.0, self.probability)), 4)
        reasons = [{"rule": r["rule"][:_LONGEST_RULE], "weight": r["weight"]} for r in self.reasons[:_MOST_REASONS]]
        candidate: Json = {
            "value": self.value, "label": _cut_text(self.label), "probability": probability, "reasons": reasons,
        }  # fmt: skip
        return candidate | ({"header": self.header[:_LONGEST_HEADER]} if self.header is not None else {})


class Question(NamedTuple):
    """Something that a person is asked, with the answers that are offered and the one that the job would choose."""

    id: str
    kind: str  # header, required, column, reading, table, tables or drift
    text: str
    candidates: tuple[Candidate, ...]
    chosen: str | None  # the value of the candidate that the job would choose
    input: str | None = None
    sheet: str | None = None
    table: str | None = None
    column: str | None = None
    header: str | None = None
    field: str | None = None

    def as_dict(self) -> Json:
        """Return the question as review.json has it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "input": self.input,
            "sheet": self.sheet,
            "table": self.table,
            "column": self.column,
            "header": None if self.header is None else self.header[:_LONGEST_HEADER],
            "field": self.field,
            "text": self.text[:_LONGEST_QUESTION],
            "chosen": self.chosen,
            "candidates": [c.as_dict() for c in self.candidates],
        }


def question_id(kind: str, *place: str) -> str:
    """Make the id of a question of a kind about a place: the same in every attempt on the same input."""
    from hashlib import sha256  # noqa: PLC0415  # few jobs ask, and it takes milliseconds to load

    return f"{kind}-{sha256(json.dumps(place).encode(errors='backslashreplace')).hexdigest()[:10]}"


def partition_id(doubt: PartitionDoubt) -> str:
    """Make the id of the question how a part of a sheet is cut into tables."""
    return question_id("tables", doubt.input, doubt.sheet, doubt.area.a1)


def folded(text: str) -> str:
    """Fold upper and lower case, runs of blanks and the two ways to write an accent into one spelling."""
    return normalize("NFC", " ".join(text.split()).casefold())


def label_of(table: MappedTable, position: int) -> str | None:
    """Return a column's header where it is a label for all we know; None where it may be a cell's value."""
    return table.source.columns[position].name if table.shows_header(position) else None


def _cut_text(text: str) -> str:
    """Cut a text to what the label of an answer may show, with … at its end."""
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"
