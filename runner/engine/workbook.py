"""Pass 5 for a job: the normalized workbook with its main sheet and the extra sheets."""

from collections.abc import Iterable, Sequence
from typing import IO, Any, Final

from runner.engine.fields import ANY
from runner.engine.findings import Findings
from runner.engine.mapping.table_mapping import OutColumn
from runner.engine.protocol import EngineStop
from runner.engine.writing import BookWriter, OutputColumn, SheetWriter
from runner.engine.writing.parts import FORMATS

_MAX_COLUMNS: Final = 16_384  # of a sheet, in every spreadsheet program
_FINDING: Final = ("severity", "code", "cell", "field", "message", "rule", "sheet", "input", "table", "file", "line")


class NormalizedBook:
    """The output workbook. Without a file it counts rows and writes nothing."""

    def __init__(self, file: IO[bytes] | None, columns: Sequence[OutColumn], *, title: str, sheet: str) -> None:
        if len(columns) > _MAX_COLUMNS:
            fields = sum(c.field is not None for c in columns)
            raise EngineStop(
                "input_unreadable",
                f"the result would have {len(columns):,} columns ({fields:,} fields and {len(columns) - fields:,} "
                f"unmapped columns); the limit of a sheet is {_MAX_COLUMNS:,}",
                reason="too_large",
                remedy='leave unmapped columns out with "mapping": {"unmapped": "drop"}, or split the input by columns',
            )
        self._book = BookWriter(file, title=title) if file else None
        self.main: SheetWriter | None = self._book.sheet(sheet, [_column(c) for c in columns]) if self._book else None
        self.extra: list[dict[str, Any]] = []

    def sheets(self) -> list[tuple[str, int]]:
        """The data sheets, each with its number of rows."""
        return list(zip(self.main.names, self.main.parts(), strict=True)) if self.main else []

    def finish(self, beside: Iterable[tuple[str, list[list[Any]]]], findings: Findings | None) -> None:
        """Close the main sheet, then write the extra sheets and, if given, the findings."""
        if self._book is None or self.main is None:
            return
        self.main.close()
        for name, (header, *rows) in beside:
            self._add(name, [str(h) for h in header], rows)
        if findings is not None:
            told = [f.as_dict() for f in findings.kept]
            self._add("Findings", _FINDING, [[f.get(h) for h in _FINDING] for f in told])
        self._book.close()

    def _add(self, name: str, header: Sequence[str], rows: list[list[Any]]) -> None:
        if self._book is None:
            return
        sheet = self._book.sheet(name, [OutputColumn(h) for h in header])
        width = len(header)
        body = [row[:width] + [None] * (width - len(row)) for row in rows]
        if body:
            sheet.write([list(c) for c in zip(*body, strict=True)], len(body))
        sheet.close()
        self.extra.append({"name": sheet.names[0], "rows": len(body)})


def _column(column: OutColumn) -> OutputColumn:
    field = column.field
    if field is None or field.type == ANY:
        return OutputColumn(column.header)
    return OutputColumn.typed(column.header, field.type, field.number_format or FORMATS.get(field.type))
