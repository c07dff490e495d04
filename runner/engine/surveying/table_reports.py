"""Reports what is irregular in a table that was found: hidden rows, rows beyond the header, a table that is turned."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.common.rowsets import RowSet
from runner.engine.reading import Remarking
from runner.engine.reading.spool import SpooledSheet
from runner.engine.surveying.declared_names import DeclaredNames
from runner.engine.tables.sources import SourceTable

_MOST_RUNS_NAMED: Final = 5  # runs of rows that a message names
_FEW_WIDE_ROWS: Final = (
    20  # rows with more cells than the header: so many, or fewer than half of all, are reported one by one
)
_ROWS_CHECKED: Final = 200  # rows that are checked for names of fields


def report_remarks(sheet: Remarking, findings: Findings, place: FindingPlace) -> None:
    """Report the rows that a reader remarked on, because they could be read in two ways."""
    for remark in sheet.remarks():
        message = f"{remark.message}; to settle it: {remark.settle}" if remark.settle else remark.message
        rest = remark.count - len(remark.rows) + 1
        last = len(remark.rows) - 1
        for at, (row, column) in enumerate(zip_longest(remark.rows, remark.columns)):
            findings.add(
                remark.code, "warning", message, place=place, row=row, column=column, rule="reading",
                count=rest if at == last else 1,
            )  # fmt: skip


def report_wide_rows(table: SourceTable, tables: Sequence[SourceTable], findings: Findings) -> None:
    """Report rows of a text file with more cells than the header names: their values may have moved.

    Few are reported one by one, many as one finding at the first; `tables`: all of the sheet. Tables without a header,
    and of sheets too long to remember, are not checked.
    """
    if not (table.table.header_rows and isinstance(table.sheet, SpooledSheet)):
        return
    wide = _rows_beyond_header(table, table.sheet, _columns_beyond_header(table, table.sheet, tables))
    if not wide:
        return
    are_few = len(wide) <= max(_FEW_WIDE_ROWS, (table.bottom - table.top + 1) // 2)
    if are_few:
        subject, reported, rest = "the row has", wide, 0
    else:
        runs = [str(a) if a == b else f"{a} to {b}" for a, b in RowSet.of(wide)]
        more = f" and others, {len(wide):,} in all," if len(runs) > _MOST_RUNS_NAMED else ""
        subject, reported, rest = f"rows {', '.join(runs[:_MOST_RUNS_NAMED])}{more} have", wide[:1], len(wide) - 1
    why = "a value that contains the delimiter and is not quoted, or a column without a name, moves what follows"
    message = f"{subject} more cells than the header: {why}"
    for number in reported:
        findings.add("wide_row", "warning", message, place=table.place, row=number, rule="reading", count=1 + rest)


def _columns_beyond_header(table: SourceTable, sheet: SpooledSheet, tables: Sequence[SourceTable]) -> list[int]:
    """Return the numbers of filled columns to the right of the last named one that belong to no other table."""
    named = max((c.index for c in table.columns if not c.generated), default=0)
    if not named:
        return []
    filled = 0
    for extent in sheet.extents:
        filled |= extent.columns
    elsewhere = {c.index for t in tables if t is not table for c in t.columns}
    return [at for at in range(named + 1, filled.bit_length()) if filled >> at & 1 and at not in elsewhere]


def _rows_beyond_header(table: SourceTable, sheet: SpooledSheet, beyond: Sequence[int]) -> list[int]:
    """Return the numbers of a table's rows that fill one of the columns beyond its header."""
    bits = sum(1 << column for column in beyond)
    if not bits:
        return []
    rows: list[int] = []
    for block in sheet.some_blocks(lambda e: e.columns & bits and e.first <= table.bottom and table.top <= e.last):
        cut = block.within(table.top, table.bottom)
        cells = [cut.columns[column - 1] for column in beyond if column <= len(cut.columns)]
        rows += [
            row for row, beyond_cells in zip(cut.numbers, zip(*cells, strict=True), strict=True) if any(beyond_cells)
        ]
    return [row for row in rows if row not in table.rows_left_out]


def report_hidden(table: SourceTable, sheet: SpooledSheet, findings: Findings) -> None:
    """Report hidden rows and columns that are read like the others."""
    layout = sheet.layout()
    columns = [c for c in table.columns if c.index in layout.hidden_columns]
    rows = sum(1 for row in layout.hidden_rows if table.top <= row <= table.bottom and row not in table.rows_left_out)
    for what, count, option in (("row", rows, "hidden_rows"), ("column", len(columns), "hidden_columns")):
        if count:
            message = f"{count:,} hidden {what}{'s' * (count > 1)} read; to leave out: "
            message += f'"reading": {{"{option}": "skip"}}'
            findings.add("hidden_read", "info", message, place=table.place, rule="reading", count=count)


def report_turned(table: SourceTable, names: DeclaredNames, findings: Findings) -> None:
    """Report a table whose first column, and not its header, has the names of the fields; sets its `is_turned`. Only
    the first rows are checked, and only of a sheet that is remembered."""
    if not table.has_data or len(table.columns) < 2 or not isinstance(table.sheet, SpooledSheet):
        return
    first_row, last_row = table.top, min(table.bottom, table.top + _ROWS_CHECKED)
    first_cells: list[object] = [*table.columns[0].parts]
    for block in table.sheet.some_blocks(lambda extent: extent.first <= last_row and first_row <= extent.last):
        cut = block.within(first_row, last_row)
        column = table.columns[0].index
        first_cells += cut.columns[column - 1] if column <= len(cut.columns) else []
    first_cells = list(dict.fromkeys(v for v in first_cells if v is not None))  # stacked blocks repeat the names
    in_column = names.spelled(first_cells)
    in_header = names.spelled([part for c in table.columns[1:] for part in c.parts])
    is_turned = in_column >= 2 and in_column > 2 * in_header and in_column * 2 >= len(first_cells)
    if is_turned:
        table.is_turned = True
        findings.add(
            "header_assumed",
            "warning",
            f"the first column has the names of {in_column} fields, the other headers of {in_header}: the table "
            "may be turned, with a record in each column; to settle it: swap its rows and columns",
            place=table.place,
            row=(*table.table.header_rows, table.top)[0],
            rule="reading",
        )
