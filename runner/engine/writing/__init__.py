"""Pass 5: the workbook, written as a stream."""

from runner.engine.writing.book import BookWriter, Column, SheetWriter

__all__ = ["BookWriter", "Column", "SheetWriter"]
