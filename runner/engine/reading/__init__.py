"""Reading: opens any spreadsheet as a book of sheets that stream rows, or refuses it with one typed error."""

from runner.engine.reading.books import (
    NO_CACHED_VALUE,
    Area,
    Block,
    Book,
    CellError,
    DeclaredTable,
    Layout,
    NoCachedValue,
    OutOfOrder,
    ReadLimits,
    Remarking,
    Row,
    Sheet,
    Shown,
    TextOptions,
    Value,
    blocks_of,
    rows_of,
    trimmed,
)
from runner.engine.reading.errors import InputUnreadable
from runner.engine.reading.opening import open_book

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
