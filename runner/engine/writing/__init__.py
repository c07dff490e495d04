"""Pass 5: the workbook, written as a stream."""

from runner.engine.writing.book import BookWriter, OutputColumn, SheetWriter

__all__ = ["BookWriter", "OutputColumn", "SheetWriter"]
