"""Pass 5: writes the workbook as a stream."""

from runner.engine.writing.book import BookWriter, OutputColumn, SheetWriter

__all__ = ["BookWriter", "OutputColumn", "SheetWriter"]
