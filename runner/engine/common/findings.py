"""Findings: the first ones of each code with their cells, all of them counted; and every choice between readings."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from runner.engine.common import a1
from runner.engine.contract import Json

LISTED_PER_CODE: Final = 1000
LONGEST_PARAM: Final = 300  # characters of a text among the parameters of a message
SEVERITIES: Final = ("error", "warning", "info")
_WORD = re.compile("[a-z]+")
_KINDS_BY_CHOICE: Final = frozenset({"date_order", "table"})  # kinds of readings whose report says what was chosen


class FindingText(str):
    """English text, with the entry of the report's catalogue that says the same and the parameters of that.

    Never a cell's value. `entry`: what follows the finding's code in the catalogue's key, if it has several sentences.
    """

    __slots__ = ("entry", "params")
    entry: str
    params: Mapping[str, str | int]

    def __new__(cls, text: str, entry: str = "", **params: str | int) -> Self:
        """Make a text with its entry, and the parameters that the entry names."""
        finding_text = super().__new__(cls, text)
        finding_text.entry, finding_text.params = entry, params
        return finding_text


AUTHOR_ENTRY: Final = "stated"  # the entry of a message that the author of a manifest wrote


def author_text(message: str | None, otherwise: str) -> str:
    """Return what the author of a rule says about rows that break it; `otherwise` if the author says nothing."""
    return FindingText(message, AUTHOR_ENTRY) if message else otherwise


class FindingPlace(NamedTuple):
    """The table a finding belongs to."""

    input: str
    sheet: str
    table: str


class Finding(NamedTuple):
    """One thing that was noticed in the data."""

    code: str
    severity: str
    place: FindingPlace | None
    row: int | None
    column: int | None
    field: str | None
    rule: str | None
    message: str
    file: str | None = None
    line: int | None = None

    @property
    def cell(self) -> str | None:
        """The address of its cell; None if it is about a row, a column or more."""
        if self.row is None or self.column is None:
            return None
        return a1.cell(self.row, self.column)

    def as_dict(self) -> Json:
        """Return the finding as artifact.json has it."""
        place = self.place
        parts: Json = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "input": place and place.input,
            "sheet": place and place.sheet,
            "table": place and place.table,
            "cell": self.cell,
            "row": self.row,
            "field": self.field,
            "rule": self.rule,
            "file": self.file,
            "line": self.line,
        }
        if isinstance(self.message, FindingText):
            parts |= {"message": str(self.message), "entry": self.message.entry or None}
            parts["params"] = {key: _cut_param(value) for key, value in self.message.params.items()} or None
        return {key: value for key, value in parts.items() if value is not None}


def _cut_param(value: str | int) -> str | int:
    """Cut a parameter to what artifact.json has room for."""
    return value if isinstance(value, int) or len(value) <= LONGEST_PARAM else value[: LONGEST_PARAM - 1] + "…"


class ChosenReading(NamedTuple):
    """A choice between readings: the one chosen, the evidence for each, and the manifest line that settles it."""

    kind: str  # header, decimal, date_order, encoding, delimiter, quote, total, group, unit, …
    chosen: str
    evidence: Mapping[str, int]  # reading -> how many values, rows or cells support it
    sure: bool
    place: FindingPlace | None
    row: int | None
    column: int | None
    field: str | None
    settle: str | None  # a line of the manifest

    def as_dict(self) -> Json:
        """Return the choice as artifact.json has it."""
        place = self.place
        parts = {
            "kind": self.kind,
            "chosen": self.chosen,
            "evidence": dict(self.evidence),
            "sure": self.sure,
            "input": place and place.input,
            "sheet": place and (place.sheet or None),
            "table": place and (place.table or None),
            "row": self.row,
            "column": None if self.column is None else a1.letters(self.column),
            "field": self.field,
            "settle": self.settle,
        }
        return {key: value for key, value in parts.items() if value is not None}


class Findings:
    """Collects the findings of a job: lists the first ones of each code, and counts them all."""

    def __init__(self, listed_per_code: int = LISTED_PER_CODE) -> None:
        """Begin without findings; of each code at most so many are listed."""
        self.listed: list[Finding] = []
        self.totals: dict[tuple[str, str, str | None], int] = {}  # by code, severity and field
        self._listed_by_code: dict[str, int] = {}  # how many are listed
        self._most_listed = listed_per_code
        self.readings: list[ChosenReading] = []

    def add(
        self,
        code: str,
        severity: str,
        message: str,
        *,
        place: FindingPlace | None = None,
        row: int | None = None,
        column: int | None = None,
        field: str | None = None,
        rule: str | None = None,
        file: str | None = None,
        line: int | None = None,
        count: int = 1,
    ) -> None:
        """Count a finding (`count` times), and list it if few of its code are listed so far."""
        key = (code, severity, field)
        self.totals[key] = self.totals.get(key, 0) + count
        listed = self._listed_by_code.get(code, 0)
        if listed < self._most_listed:
            self._listed_by_code[code] = listed + 1
            self.listed.append(Finding(code, severity, place, row, column, field, rule, message, file, line))

    def chose(
        self,
        kind: str,
        chosen: str,
        *,
        evidence: Mapping[str, int],
        sure: bool,
        code: str = "",
        message: str = "",
        settle: str | None = None,
        severity: str = "warning",
        place: FindingPlace | None = None,
        row: int | None = None,
        column: int | None = None,
        field: str | None = None,
        count: int = 1,
    ) -> None:
        """Record a choice between readings; an unsure one is also a finding, with its remedy."""
        self.readings.append(ChosenReading(kind, chosen, evidence, sure, place, row, column, field, settle))
        if not sure:
            remedy = f"; to settle it: {settle}" if settle else ""
            entry = (
                message.entry
                if isinstance(message, FindingText)
                else "_".join(_WORD.findall(chosen)) * (kind in _KINDS_BY_CHOICE)
            )
            text = FindingText(message + remedy, entry, **({"settle": settle} if settle else {}))
            self.add(
                code or f"{kind}_assumed", severity, text, place=place, row=row, column=column, field=field,
                rule="reading", count=count,
            )  # fmt: skip

    def room(self, code: str) -> int:
        """Return how many more findings of this code will be listed."""
        return self._most_listed - self._listed_by_code.get(code, 0)

    def by_severity(self) -> dict[str, int]:
        """Count the findings of each severity."""
        counts = dict.fromkeys(SEVERITIES, 0)
        for (_, severity, _), count in self.totals.items():
            counts[severity] += count
        return counts

    def by_code(self) -> dict[str, int]:
        """Count the findings of each code, sorted by code."""
        counts: dict[str, int] = {}
        for (code, _, _), count in self.totals.items():
            counts[code] = counts.get(code, 0) + count
        return dict(sorted(counts.items()))
