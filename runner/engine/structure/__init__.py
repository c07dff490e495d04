"""Stand-in for the structure pass: one table per sheet, the first dense row is its header."""

from runner.engine.reading import Sheet, Value
from runner.engine.structure.tables import Box, Column, Table, letters

__all__ = ["Box", "Column", "Table", "find_tables"]


def find_tables(sheet: Sheet, *, row_scores: object = None) -> list[Table]:
    del row_scores
    widest = 0
    rows: list[tuple[int, list[Value]]] = []
    last = 0
    for number, values in sheet.rows():
        last = number
        if len(rows) < 50:
            rows.append((number, list(values)))
            widest = max(widest, sum(v is not None for v in values))
    for number, values in rows:
        if sum(v is not None for v in values) * 2 >= widest and last > number:
            return [_table(number, values, last)]
    return []


def _table(top: int, header: list[Value], bottom: int) -> Table:
    left = next(i for i, v in enumerate(header, 1) if v is not None)
    columns = tuple(
        Column(n, str(v) if v is not None else letters(n), (str(v),) if v is not None else (), v is None)
        for n, v in enumerate(header[left - 1 :], left)
    )
    return Table(
        range=Box(top, left, bottom, len(header)),
        header_rows=(top,),
        data_range=Box(top + 1, left, bottom, len(header)),
        columns=columns,
        confidence=0.5,
        why=("first dense row",),
    )
