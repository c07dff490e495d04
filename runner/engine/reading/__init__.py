"""Reading: any spreadsheet as a book of sheets that stream rows, or one typed refusal."""

from runner.engine.reading.books import (
    NO_CACHED_VALUE,
    Area,
    Block,
    Book,
    CellError,
    DeclaredTable,
    Layout,
    NoCachedValue,
    ReadLimits,
    Remarking,
    Row,
    Sheet,
    Shown,
    TextOptions,
    Value,
)
from runner.engine.reading.errors import InputUnreadable
from runner.engine.reading.opening import open_book
from runner.engine.reading.row_order import OutOfOrder, blocks_of, rows_of, trimmed

__all__ = [
    "NO_CACHED_VALUE",
    "Area",
    "Block",
    "Book",
    "CellError",
    "DeclaredTable",
    "InputUnreadable",
    "Layout",
    "NoCachedValue",
    "OutOfOrder",
    "ReadLimits",
    "Remarking",
    "Row",
    "Sheet",
    "Shown",
    "TextOptions",
    "Value",
    "blocks_of",
    "open_book",
    "rows_of",
    "trimmed",
]
