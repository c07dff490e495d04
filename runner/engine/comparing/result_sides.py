"""A finished result as a side of a comparison: its facts, and its rows as texts, one after the other.

A result is normalized.xlsx with its artifact.json, or the expected.csv with its expected.json that a test has. Both
sides have the same form, so that a test and the comparison of two results are one thing.
"""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

from runner.engine.common import a1
from runner.engine.comparing.cell_texts import cell_text
from runner.engine.comparing.row_origins import row_origins, source_text
from runner.engine.contract import Json, OutputName, ResultFiles
from runner.engine.document_types import ArtifactDocument, FindingPart, OutputColumnPart, SheetFacts, TablePart
from runner.engine.protocol import BadOutput
from runner.engine.reading import Book, InputUnreadable, Sheet, open_book
from runner.engine.verifying.document import MAX_BYTES, read_artifact

EXPECTED_VERSION: Final = 1
SOURCE: Final = "source"  # heads the column of expected.csv that says where a row comes from
_PROVENANCE: Final = ("source_file", "source_sheet", "source_row")
_LONGEST_CELL: Final = 1024 * 1024  # characters of one cell of expected.csv
_PLACE_MARK: Final = " at "  # between the words of a finding and its place; neither codes nor fields have spaces
_DIGEST_DIGITS: Final = 12  # digits of a digest that people see


class SideRow(NamedTuple):
    """One row of a result: its place in the output, where it comes from (empty: unknown), its cells as texts."""

    place: str
    source: str
    cells: list[str]


@dataclass(frozen=True, kw_only=True)
class ResultFacts:
    """What a result says beside its rows, in the form of expected.json."""

    status: str
    columns: dict[str, str]  # the columns of the output in their order, each with its type
    unique: tuple[str, ...] = ()  # columns whose values identify a row
    tables: dict[str, dict[str, str]] = field(default_factory=dict)  # table -> source column -> field, or empty
    left_out: dict[str, int] = field(default_factory=dict)  # kind -> rows
    findings: list[str] = field(default_factory=list)  # severity, code, field, place
    counts: dict[str, int] = field(default_factory=dict)  # severity, code, field -> all of them, listed or not
    sheets: dict[str, str] = field(default_factory=dict)  # further sheets, each with its size and digest

    def encode(self) -> Json:
        """Return the facts as expected.json has them; what is empty is left out."""
        listed = _count_findings(self.findings)
        more = {name: count for name, count in self.counts.items() if count != listed.get(name)}
        parts: dict[str, object] = {
            "left_out": self.left_out,
            "findings": self.findings,
            "finding_counts": more,
            "sheets": self.sheets,
        }
        return {
            "expected": EXPECTED_VERSION,
            "status": self.status,
            "columns": self.columns,
            **({"unique": list(self.unique)} if self.unique else {}),
            "tables": self.tables,
            **{name: part for name, part in parts.items() if part},
        }

    @property
    def only_sheet(self) -> str | None:
        """Return the name of the sheet that all tables are on; None if there are several, or none."""
        names = {name.rpartition("!")[0] for name in self.tables}
        return names.pop() if len(names) == 1 else None

    def with_sheet_of(self, other: "ResultFacts") -> "ResultFacts":
        """Copy the facts with the other result's name of the sheet, if both have one sheet: two files have two
        names."""
        mine, theirs = self.only_sheet, other.only_sheet
        if mine is None or theirs is None or mine == theirs:
            return self
        place, other_place = f"{_PLACE_MARK}{mine}!", f"{_PLACE_MARK}{theirs}!"
        return replace(
            self,
            tables={name.replace(f"{mine}!", f"{theirs}!", 1): columns for name, columns in self.tables.items()},
            findings=[line.replace(place, other_place, 1) for line in self.findings],
        )

    @classmethod
    def decode(cls, raw: bytes) -> "ResultFacts":
        """Parse the facts of an expected.json; raises BadOutput if it does not have that form."""
        if len(raw) > MAX_BYTES:
            raise BadOutput(f"expected.json is over {MAX_BYTES} bytes")
        try:
            body = json.loads(raw)
            if body["expected"] != EXPECTED_VERSION:
                raise BadOutput("expected.json is of another version; update ade, or run `ade test --update`")
            findings = [str(line) for line in body.get("findings", ())]
            return cls(
                status=str(body["status"]),
                columns={str(name): str(kind) for name, kind in body["columns"].items()},
                unique=tuple(map(str, body.get("unique", ()))),
                tables={
                    str(table): {str(column): str(target) for column, target in columns.items()}
                    for table, columns in body["tables"].items()
                },
                left_out={str(kind): int(rows) for kind, rows in body.get("left_out", {}).items()},
                findings=findings,
                counts=_count_findings(findings) | {str(k): int(n) for k, n in body.get("finding_counts", {}).items()},
                sheets={str(name): str(facts) for name, facts in body.get("sheets", {}).items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BadOutput("expected.json does not have the form that `ade test --update` writes") from None


def _count_findings(findings: Sequence[str]) -> dict[str, int]:
    """Count the findings by severity, code and field: the words of a line before its place."""
    return dict(Counter(line.partition(_PLACE_MARK)[0] for line in findings))


class ResultSide:
    """One of two results; `rows` streams, and may be called again."""

    def __init__(self, files: ResultFiles) -> None:
        """Read the facts: artifact.json, expected.json, or of a job that ended without either its status alone."""
        self._files = files
        self._artifact: ArtifactDocument | None = None
        if files.facts is None:
            self.facts = ResultFacts(status=files.status, columns={})
            return
        with files.facts.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if files.facts.name == OutputName.ARTIFACT:
            self._artifact = artifact = read_artifact(raw)
            extra = self._extra_sheets(artifact)
            self.facts = facts_of(artifact, files.status, extra)
        else:
            self.facts = ResultFacts.decode(raw)

    @property
    def artifact(self) -> ArtifactDocument:
        """The artifact; raises BadOutput if the result has none."""
        if self._artifact is None:
            raise BadOutput("the result has no artifact.json")
        return self._artifact

    @property
    def knows_sources(self) -> bool | None:
        """Whether the artifact says of every row where it comes from; None for expected files, whose rows may."""
        if self._artifact is None:
            return None
        added = {column.get("added") for column in self._artifact["output"]["columns"]}
        if added.issuperset(_PROVENANCE):
            return True
        origins = row_origins(self._artifact)
        return origins is not None and all(origin.row is not None for origin in origins)

    def rows(self) -> Iterator[SideRow]:
        """Stream the rows of the output from top to bottom; none if the job ended without an output.

        Raises BadOutput for rows that only files of another format have.
        """
        if self._files.rows is None:
            if self._artifact is not None and self._artifact["output"]["rows"]:
                raise BadOutput("the result has rows and no normalized.xlsx; add xlsx to output.formats to read them")
            return iter(())
        if self._artifact is None:
            return _expected_rows(self._files.rows, list(self.facts.columns))
        return self._written_rows(self._files.rows, self._artifact)

    def _written_rows(self, path: Path, artifact: ArtifactDocument) -> Iterator[SideRow]:
        """Stream the rows of normalized.xlsx, each with its place in the input as far as it is known."""
        output, several = artifact["output"], _count_inputs(artifact) > 1
        added_at = {column.get("added"): n for n, column in enumerate(output["columns"]) if column.get("added")}
        provenance = [added_at[name] for name in _PROVENANCE] if all(name in added_at for name in _PROVENANCE) else []
        data_columns = [n for n in range(len(output["columns"])) if n not in provenance]
        origins = None if provenance else row_origins(artifact)
        sources = repeat("") if origins is None else (origin.address(several=several) for origin in origins)
        with closing(_open_workbook(path)) as book:
            for name, count in zip(output["sheets"], output["sheet_rows"], strict=True):
                prefix = f"{name}!" if len(output["sheets"]) > 1 else ""
                for number, values in _all_rows(_sheet_named(book, name), count):
                    cells = [values[n] if n < len(values) else None for n in range(len(output["columns"]))]
                    source = next(sources, "")
                    if provenance:
                        file, sheet, row = (cells[n] for n in provenance)
                        whole = int(row) if isinstance(row, int | float) else 0
                        source = source_text(str(file) if several else "", str(sheet), whole)
                    yield SideRow(f"{prefix}{number}", source, [cell_text(cells[n]) for n in data_columns])

    def _extra_sheets(self, artifact: ArtifactDocument) -> dict[str, str]:
        """Describe the sheets that hooks added, by name: how many rows each has, and a digest of what is in it."""
        extra, path = artifact["output"]["extra_sheets"], self._files.rows
        if not extra or path is None:
            return {}
        digests: dict[str, str] = {}
        with closing(_open_workbook(path)) as book:
            for extra_sheet in extra:
                digest = hashlib.sha256()
                for number, values in _sheet_named(book, extra_sheet["name"]).rows():
                    digest.update(json.dumps([number, *map(cell_text, values)]).encode())
                digests[extra_sheet["name"]] = (
                    f"{extra_sheet['rows']} rows, sha256 {digest.hexdigest()[:_DIGEST_DIGITS]}"
                )
        return digests


def _count_inputs(artifact: ArtifactDocument) -> int:
    """Count the primary inputs of the job."""
    return sum(file["role"] == "primary" for file in artifact["inputs"])


def _open_workbook(path: Path) -> Book:
    """Open normalized.xlsx; raises BadOutput if it cannot be read."""
    try:
        return open_book(path, name=OutputName.WORKBOOK)
    except InputUnreadable as error:
        raise BadOutput(f"normalized.xlsx cannot be read: {error.code}") from None


def _sheet_named(book: Book, name: str) -> Sheet:
    """Return the sheet of this name; raises BadOutput if there is none."""
    for sheet in book.sheets:
        if sheet.name == name:
            return sheet
    raise BadOutput("normalized.xlsx lacks a sheet that artifact.json names")


def _all_rows(sheet: Sheet, count: int) -> Iterator[tuple[int, Sequence[object]]]:
    """Yield the rows below the header of a sheet with their numbers, `count` at least: those without any value, which
    the file may lack, too."""
    last_number = 1
    for number, values in sheet.rows():
        if number == 1:
            continue
        yield from ((blank_row, ()) for blank_row in range(last_number + 1, number))
        yield number, values
        last_number = number
    yield from ((blank_row, ()) for blank_row in range(last_number + 1, count + 2))


def _expected_rows(path: Path, columns: list[str]) -> Iterator[SideRow]:
    """Stream the rows of an expected.csv; raises BadOutput if it is not one."""
    csv.field_size_limit(_LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if header != [SOURCE, *columns]:
                raise BadOutput("the header of expected.csv does not match the columns of expected.json")
            for number, row in enumerate(reader, 2):
                if len(row) != len(header):
                    raise BadOutput(f"row {number} of expected.csv has {len(row)} cells, its header {len(header)}")
                yield SideRow(str(number), row[0], row[1:])
    except (csv.Error, UnicodeDecodeError):
        raise BadOutput("expected.csv is not a CSV file in UTF-8") from None


def facts_of(artifact: ArtifactDocument, status: str, sheets: Mapping[str, str]) -> ResultFacts:
    """Collect the facts of an artifact; probabilities and times, which differ from run to run, are left out.

    `sheets`: the further sheets of the output, each with its size and digest.
    """
    several = _count_inputs(artifact) > 1
    output = artifact["output"]
    columns = [column for column in output["columns"] if column.get("added") not in _PROVENANCE]
    counts: dict[str, int] = {}
    for total in artifact["validation"]["totals"]:
        name = " ".join(part for part in (total["severity"], total["code"], total["field"]) if part)
        counts[name] = counts.get(name, 0) + total["count"]
    return ResultFacts(
        status=status,
        columns=_name_columns(columns),
        unique=tuple(
            name for column, name in zip(columns, _name_columns(columns), strict=True) if column.get("unique")
        ),
        tables={
            _table_name(sheet, table, several=several): _fields_of_table(artifact, table)
            for sheet in artifact["sheets"]
            for table in sheet["tables"]
        },
        left_out=dict(sorted(artifact["summary"]["left_out"].items())),
        findings=sorted(_finding_line(finding, several=several) for finding in artifact["validation"]["findings"]),
        counts=counts,
        sheets=dict(sheets),
    )


def _name_columns(columns: Sequence[OutputColumnPart]) -> dict[str, str]:
    """Map the name of each column to its type; one whose header is hidden, or repeats an earlier one, is named by its
    letters."""
    types: dict[str, str] = {}
    for column in columns:
        name = column["header"] or f"column {column['column']}"
        types[name if name not in types else f"{name} ({column['column']})"] = column["type"] or "any"
    return types


def _table_name(sheet: SheetFacts, table: TablePart, *, several: bool) -> str:
    """Name a table by its place; `several`: there are several files, so the file's name is part of it."""
    place = f"{sheet['name']}!{table['range']}"
    name = f"{sheet['input']}/{place}" if several else place
    return f"{name} (left out)" if table.get("skipped") else name


def _fields_of_table(artifact: ArtifactDocument, table: TablePart) -> dict[str, str]:
    """Map each column of a table, named by letters and header, to its field; empty for unmapped ones."""
    return {
        f"{part['column']} {part['header']}" if part["header"] else part["column"]: part["target"] or ""
        for part in artifact["mapping"]
        if part["table"] == table["id"]
    }


def _finding_line(finding: FindingPart, *, several: bool) -> str:
    """Write a finding as one line: severity, code, field and place; `several`: there are several files, so the place
    names one."""
    words = " ".join(part for part in (finding["severity"], finding["code"], finding.get("field")) if part)
    sheet = finding.get("sheet")
    if not sheet:
        return words
    cell = finding.get("cell") or (str(finding["row"]) if "row" in finding else "")
    file = f"{finding.get('input', '')}/" if several else ""
    return f"{words}{_PLACE_MARK}{file}{sheet}!{cell}" if cell else f"{words}{_PLACE_MARK}{file}{sheet}"


def output_cell(column: int, place: str) -> str:
    """Return the address of a cell in the output, from its column (0-based) and the place of its row."""
    sheet, mark, row = place.rpartition("!")
    return f"{sheet}{mark}{a1.letters(column + 1)}{row}"
