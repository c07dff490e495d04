"""Pass 5: writes the workbook as a stream."""

from runner.engine.writing.book import BookWriter, NormalizedBook, OutputColumn, SheetWriter

__all__ = ["BookWriter", "NormalizedBook", "OutputColumn", "SheetWriter"]
