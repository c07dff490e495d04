"""Reading: any spreadsheet as a book of sheets that stream rows, or one typed refusal."""

from runner.engine.reading.books import Area, Book, DeclaredTable, Layout, Remarking, Sheet, TextOptions
from runner.engine.reading.errors import InputUnreadable
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.opening import open_book
from runner.engine.reading.rows import OutOfOrder, blocks_of, rows_of, trimmed
from runner.engine.reading.values import NO_CACHED_VALUE, Block, CellError, NoCachedValue, Row, Shown, Value

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
