"""Why a cell of the output is what it is: its source, mapping, readings, transform, rules and findings.

Everything comes from the artifact and the output. The source row comes from the output's own columns where the manifest
asks for `output.provenance`, and otherwise from the artifact's books.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from runner.engine.common.a1 import column_number
from runner.engine.comparing.result_sides import ResultSide, SideRow
from runner.engine.comparing.row_origins import RowOrigin, row_origins
from runner.engine.contract import Json
from runner.engine.document_types import (
    ArtifactDocument,
    FindingPart,
    MappingPart,
    OutputColumnPart,
    ReadingPart,
    TransformPart,
)
from runner.engine.pages.explain import column_words, reading, transform_words
from runner.engine.protocol import BadOutput

_CELL: Final = re.compile(r"\$?(?P<letters>[A-Za-z]{1,3})\$?(?P<row>[1-9][0-9]{0,6})")
_PROVENANCE: Final = 3  # columns that `output.provenance` adds: file, sheet and row of the source
_MOST_SHEETS: Final = 5  # named in a message
_MOST_FINDINGS: Final = 50
_HOOKS_ON_VALUES: Final = ("after_transform", "after_validate")  # hooks that see the values of every field


class _Place(NamedTuple):
    """Where a cell of the output comes from, as far as that is known."""

    input: str
    sheet: str
    table: str
    row: int | None
    rows: tuple[int, int] | None  # one of these rows, where `row` is not known


def explain_cell(side: ResultSide, cell: str) -> Json:
    """Collect the facts about a cell such as `D3` or `Normalized!D3`, and under `why` the same in sentences.

    Raises BadOutput for a cell that the output does not have, and for outputs that contradict each other.
    """
    artifact = side.artifact
    index, sheet, row = _parse_cell(cell, artifact)
    column = artifact["output"]["columns"][index]
    row_of_output, rows_before = _find_row(side, artifact, sheet, row)
    value = _cell_value(row_of_output, artifact, index)
    place = _find_source(artifact, row_of_output, rows_before)
    mappings = _find_mappings(artifact, column, place)
    mapping = mappings[0] if len(mappings) == 1 else None  # of several columns any may have given the value
    source_cell = f"{mapping['column']}{place.row}" if mapping and place and place.row else None
    field = column["field"]
    transform = next(
        (t for t in artifact["transforms"] if place and t["table"] == place.table and t["field"] == field), None
    )
    readings = [part for part in artifact["readings"] if place and _is_reading_of(part, place, field, mapping)]
    findings = [
        part for part in artifact["validation"]["findings"] if place and _is_finding_of(part, place, field, source_cell)
    ]
    rules = _list_rules(artifact, field)
    return {
        "cell": f"{sheet}!{cell.rpartition('!')[2].replace('$', '').upper()}",
        "column": column["header"],
        "field": field,
        "type": column["type"],
        "value": value,
        "source": None if place is None else {**place._asdict(), "cell": source_cell},
        "mapping": mapping,
        "mappings": mappings,
        "readings": readings,
        "transform": transform,
        "rules": rules,
        "findings": findings[:_MOST_FINDINGS],
        "why": [
            *_explain_source(place, source_cell),
            *_explain_mapping(column, mappings, transform),
            *(f"Reading: {reading(part)}" for part in readings),
            *([transform_words(transform)] if transform else []),
            *(f"Rules of this field: {', '.join(rules)}." for _ in rules[:1]),
            *_explain_findings(findings),
        ],
    }


class _CellAddress(NamedTuple):
    """A cell of the output."""

    column: int  # from 0
    sheet: str
    row: int


def _parse_cell(cell: str, artifact: ArtifactDocument) -> _CellAddress:
    """Parse the address of a cell of the output; raises BadOutput if the output has no such cell."""
    output = artifact["output"]
    name, _, address = cell.rpartition("!")
    match = _CELL.fullmatch(address)
    if match is None:
        raise BadOutput("the cell is not an address such as D3 or Normalized!D3")
    if not output["sheets"]:
        why = "the job ended without an output, or output.formats leaves xlsx out"
        raise BadOutput(f"the result has no normalized.xlsx, so it has no cells: {why}")
    sheet = name.strip("'") or output["sheets"][0]
    if sheet not in output["sheets"]:
        named = ", ".join(output["sheets"][:_MOST_SHEETS])
        raise BadOutput(f"the output has no sheet of this name; its rows are on: {named}")
    letters, row = match["letters"].upper(), int(match["row"])
    column, rows = column_number(letters), output["sheet_rows"][output["sheets"].index(sheet)]
    if column > len(output["columns"]):
        last_letters = output["columns"][-1]["column"] if output["columns"] else "none"
        raise BadOutput(f"the output has no column {letters}; the last one is {last_letters}")
    if row == 1:
        raise BadOutput("row 1 of the output is its header; name a cell of a data row, such as A2")
    if row > rows + 1:
        raise BadOutput(f"the output has no row {row}; the last one is {rows + 1}")
    return _CellAddress(column - 1, sheet, row)


def _find_row(side: ResultSide, artifact: ArtifactDocument, sheet: str, row: int) -> tuple[SideRow, int]:
    """Read the output up to a row of a sheet; return the row, and how many data rows of the output are before it."""
    output = artifact["output"]
    rows_before = sum(output["sheet_rows"][: output["sheets"].index(sheet)]) + row - 2
    row_of_output = next(islice(side.rows(), rows_before, None), None)
    if row_of_output is None:
        raise BadOutput("normalized.xlsx has fewer rows than artifact.json says")
    return row_of_output, rows_before


def _cell_value(row: SideRow, artifact: ArtifactDocument, column: int) -> str | None:
    """Return the text of a row's cell in an output column (0-based).

    `row.cells` lacks the columns of the provenance, if the output has all three of them: None for one of these.
    """
    columns = artifact["output"]["columns"]
    provenance = [n for n, part in enumerate(columns) if str(part.get("added", "")).startswith("source_")]
    if len(provenance) < _PROVENANCE:
        return row.cells[column]
    return None if column in provenance else row.cells[column - sum(n < column for n in provenance)]


def _find_source(artifact: ArtifactDocument, row: SideRow, rows_before: int) -> _Place | None:
    """Find the place in the inputs that a row of the output comes from; None if nothing says it.

    The books say it by the order of the output's rows; the row's own source overrules them.
    """
    origins = row_origins(artifact)
    origin = None if origins is None else next(islice(origins, rows_before, None), None)
    if origin is not None and origin.address(several=False) in ("", _without_file(row.source)):
        exact_row = int(row.source.rpartition("!")[2]) if row.source else origin.row
        return _place_of_origin(origin, exact_row)
    return next(_places_at_address(artifact, row.source), None) if row.source else None


def _without_file(source: str) -> str:
    """Strip the file from an address: `in.xlsx/Sheet1!7` becomes `Sheet1!7`."""
    return source.rpartition("/")[2]


def _place_of_origin(origin: RowOrigin, row: int | None) -> _Place:
    """Make the place of an origin, with its run of rows where `row`, its exact row, is not known."""
    rows = None if row is not None else (origin.first, origin.last)
    return _Place(origin.input, origin.sheet, origin.table, row, rows)


def _places_at_address(artifact: ArtifactDocument, source: str) -> Iterator[_Place]:
    """Yield the places that an address such as `Sheet1!7` or `in.xlsx/Sheet1!7` may mean: one for each table with that
    row."""
    for sheet in artifact["sheets"]:
        for prefix in (f"{sheet['name']}!", f"{sheet['input']}/{sheet['name']}!"):
            row = source.removeprefix(prefix)
            if row == source or not row.isdecimal():
                continue
            names = {table["ref"]: table["id"] for table in sheet["tables"]}
            for run in sheet["rows"]:
                if run["as"] == "data" and run["from"] <= int(row) <= run["to"] and run.get("table") in names:
                    yield _Place(sheet["input"], sheet["name"], names[run.get("table", "")], int(row), None)


def _find_mappings(artifact: ArtifactDocument, column: OutputColumnPart, place: _Place | None) -> list[MappingPart]:
    """Find the columns of the row's table that an output column may have its values from: mostly one, none if the place
    is not known.

    An unmapped column is found by its header. Where the artifact hides headers, all unmapped columns without one may be
    meant.
    """
    if place is None:
        return []
    of_table = [part for part in artifact["mapping"] if part["table"] == place.table]
    if column["field"]:
        return [part for part in of_table if part["target"] == column["field"]]
    return [part for part in of_table if part["target"] is None and part["header"] == column["header"]]


def _is_reading_of(part: ReadingPart, place: _Place, field: str | None, mapping: MappingPart | None) -> bool:
    """Whether a choice between readings is about the cell: it names the cell's column, or its table, sheet or file as a
    whole."""
    if not _is_of_place(part, place) or part.get("row", place.row) != place.row:
        return False
    if "field" in part and part["field"] != field:
        return False
    return "column" not in part or (mapping is not None and part["column"] == mapping["column"])


def _is_of_place(part: ReadingPart | FindingPart, place: _Place) -> bool:
    """Whether a reading or a finding is about a place; it may leave out the input, the sheet or the table."""
    named = part.get("input", place.input), part.get("sheet", place.sheet), part.get("table", place.table)
    return named == (place.input, place.sheet, place.table)


def _is_finding_of(finding: FindingPart, place: _Place, field: str | None, cell: str | None) -> bool:
    """Whether a finding is about the cell, its row as a whole, or its whole field; not about the whole table.

    `field`: None for an unmapped column; `cell`: the source of the value, None if it is not known.
    """
    if not _is_of_place(finding, place):
        return False
    if "cell" in finding:
        return finding["cell"] == cell
    if "row" in finding:
        return finding["row"] == place.row and finding.get("field", field) == field
    return field is not None and finding.get("field") == field


def _list_rules(artifact: ArtifactDocument, field: str | None) -> list[str]:
    """List the functions of the config that a field's values pass through: file and name of each."""
    listed: list[str] = []
    for file in artifact["config"]["rules"]:
        functions, path = file.get("rules"), str(file.get("path", ""))
        is_own_file = path == f"columns/{field}.py"
        names = functions if isinstance(functions, list) else []
        listed += [f"{path} {name}" for name in names if is_own_file or name in _HOOKS_ON_VALUES]
    return listed


def _explain_source(place: _Place | None, cell: str | None) -> list[str]:
    """Explain in sentences where the value comes from."""
    if place is None:
        return ['Source: unknown; "output": {"provenance": true} in the manifest makes the output name it.']
    where = f"{place.input}, sheet {place.sheet}"
    if cell:
        return [f"Source: {where}, cell {cell}."]
    if place.row is not None:
        return [f"Source: {where}, row {place.row}."]
    first, last = place.rows or (0, 0)
    more = 'blank rows are among them; "output": {"provenance": true} in the manifest makes the output name the row'
    return [f"Source: {where}, one of rows {first} to {last}: {more}."]


def _explain_mapping(
    column: OutputColumnPart, mappings: list[MappingPart], transform: TransformPart | None
) -> list[str]:
    """Explain in sentences how the column of the value was mapped, or what made it."""
    if mappings:
        words = [column_words(part).strip() for part in mappings]
        return [line[:1].upper() + line[1:] for line in words]
    if column.get("added"):
        return [f"No source column: {column['header']} is added to every row."]
    name = column["field"] or "this column"
    if transform and transform["rule"]:
        return [f"No column of the table became {name}; {transform['rule']} makes it."]
    return [
        f"No column of the table became {name}; its constant, its default or an expression fills it, or it is blank."
    ]


def _explain_findings(findings: list[FindingPart]) -> list[str]:
    """Write the findings of the cell as sentences, the first fifty; one sentence if there are none."""
    if not findings:
        return ["No findings."]
    return [
        f"Finding: {finding['severity']} {finding['code']}: {finding['message']}."
        for finding in findings[:_MOST_FINDINGS]
    ]
