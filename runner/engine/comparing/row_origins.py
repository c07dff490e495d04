"""Where the rows of an output come from, worked out from the artifact's books alone.

The books list every row of every sheet as runs, and tables are written sheet by sheet, from top to bottom, those that
share rows one after the other. A run that contains blank rows does not say which rows they are: its rows get no number.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runner.engine.common.a1 import column_number
from runner.engine.document_types import ArtifactDocument, SheetFacts, TablePart


class RowOrigin(NamedTuple):
    """The source of one row of the output."""

    input: str
    sheet: str
    table: str
    row: int | None  # None: only the run of rows is known, from `first` to `last`
    first: int
    last: int

    def address(self, *, several: bool) -> str:
        """Write the row as people do, `Sheet1!7`; `several`: with the file. Empty if the row is not known."""
        if self.row is None:
            return ""
        return source_text(self.input if several else "", self.sheet, self.row)


def source_text(file: str, sheet: str, row: int) -> str:
    """Write a row of an input as people do; `file`: empty where there is only one."""
    return f"{file}/{sheet}!{row}" if file else f"{sheet}!{row}"


def row_origins(artifact: ArtifactDocument) -> Iterator[RowOrigin] | None:
    """Work out the source of each row of the output, in its order; None if the books do not say it, because rows were
    sorted, left out or made of columns."""
    if artifact["output"].get("sorted") or "rows_used" in artifact["summary"]:
        return None  # in another order, or several of one row
    groups = [(sheet, tables) for sheet in artifact["sheets"] for tables in _group_by_reading(sheet)]
    rows = sum(_count_data_rows(sheet, table) for sheet, tables in groups for table in tables)
    if rows != artifact["output"]["rows"]:
        return None
    return (origin for sheet, tables in groups for table in tables for origin in _list_origins(sheet, table))


def _group_by_reading(sheet: SheetFacts) -> list[list[TablePart]]:
    """Return the tables of a sheet in the order they are written: groups of tables that share no row.

    Groups as `group_by_reading` in tables/sources.py does, which decided the order of the output.
    """
    spans = [_data_span(sheet, table) for table in sheet["tables"]]
    groups: list[list[_DataSpan]] = []
    for span in sorted(spans, key=lambda span: (span.top, _first_column(span.table))):
        if span.bottom < span.top:
            continue
        group = next((other for other in groups if other[-1].bottom < span.top), None)
        if group is None:
            groups.append([span])
        else:
            group.append(span)
    return [[span.table for span in group] for group in groups]


class _DataSpan(NamedTuple):
    """The rows of a table's data."""

    top: int
    bottom: int  # above the top if the table has no data
    table: TablePart


def _data_span(sheet: SheetFacts, table: TablePart) -> _DataSpan:
    """Return the first and last row of a table's data, captions and totals that were written included."""
    runs = [run for run in sheet["rows"] if run.get("table") == table["ref"] and run["as"] in _STREAMED]
    ends = [end for run in runs for end in (run["from"], run["to"])]
    if table["data_range"]:
        first, _, last = table["data_range"].partition(":")
        ends += [_row_of(first), _row_of(last or first)]
    return _DataSpan(min(ends, default=0), max(ends, default=-1), table)


_STREAMED = ("data", "rejected", "skipped_table")  # kinds of runs whose rows were read as data


def _row_of(cell: str) -> int:
    """Return the row of a cell's address; 0 if it has none."""
    return int("".join(c for c in cell if c.isdigit()) or 0)


def _first_column(table: TablePart) -> int:
    """Return the number of a table's leftmost column, from 1."""
    top_left = table["range"].partition(":")[0]
    return column_number("".join(filter(str.isalpha, top_left)))


def _count_data_rows(sheet: SheetFacts, table: TablePart) -> int:
    """Count the rows of a table that are in the output."""
    return sum(run["rows"] for run in sheet["rows"] if run["as"] == "data" and run.get("table") == table["ref"])


def _list_origins(sheet: SheetFacts, table: TablePart) -> Iterator[RowOrigin]:
    """Yield the origin of each data row of a table, from top to bottom."""
    for run in sheet["rows"]:
        if run["as"] != "data" or run.get("table") != table["ref"]:
            continue
        first, last = run["from"], run["to"]
        rows: Sequence[int | None] = range(first, last + 1)
        if last - first + 1 != run["rows"]:
            rows = [None] * run["rows"]
        for row in rows:
            yield RowOrigin(sheet["input"], sheet["name"], table["id"], row, first, last)
