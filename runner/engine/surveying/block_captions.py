"""Captions right above a block that were read as the last record of the block above it.

Without a blank row between, `North` over the header of its block looks like a record of which only the key is known.
Where the manifest asks for captions above tables, a single text between the records of one block and the header of the
next is one.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from runner.engine.common.a1 import CellRange
from runner.engine.reading.spool import SpooledSheet
from runner.engine.structure import Table


def without_next_captions(tables: Sequence[Table], sheet: SpooledSheet) -> list[Table]:
    """Copy the list of a sheet's tables, each without its last row if that row is the caption of the table right
    below."""
    out = list(tables)
    for number, (table, below) in enumerate(pairwise(tables)):
        data = table.data_range
        if data is None or not below.header_rows or below.header_rows[0] != data.bottom + 1:
            continue
        share_columns = below.range.left <= table.range.right and table.range.left <= below.range.right
        if share_columns and data.bottom > data.top and _is_lone_text(sheet, data):
            out[number] = replace(table, range=_shorter(table.range), data_range=_shorter(data))
    return out


def _is_lone_text(sheet: SpooledSheet, area: CellRange) -> bool:
    """Whether the last row of an area has one text and nothing else; False if the sheet does not remember the row."""
    last_row = area.bottom
    for block in sheet.some_blocks(lambda extent: extent.first <= last_row <= extent.last):
        row = block.within(last_row, last_row)
        values = [column[0] for column in row.columns[area.left - 1 : area.right] if column]
        cells = [value for value in values if value is not None]
        return len(cells) == 1 and isinstance(cells[0], str) and bool(cells[0].strip())
    return False


def _shorter(area: CellRange) -> CellRange:
    """Copy an area without its last row."""
    return replace(area, bottom=area.bottom - 1)
