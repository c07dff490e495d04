"""Where the values of a chunk came from, so that a finding can name its cell."""

from collections.abc import Iterable

from runner.engine.findings import Findings, Place


class Origin:
    """The source rows of a chunk and the table they stand in."""

    __slots__ = ("findings", "place", "rows")

    def __init__(self, findings: Findings, place: Place, rows: list[int]) -> None:
        self.findings = findings
        self.place = place
        self.rows = rows

    def flag(
        self,
        indexes: Iterable[int],
        code: str,
        severity: str,
        message: str,
        *,
        column: int | None,
        field: str | None,
        rule: str | None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        """One finding per index, at the cell of `column` (1-based, in the sheet)."""
        for i in indexes:
            self.findings.add(
                code, severity, message, place=self.place, row=self.rows[i], column=column, field=field,
                rule=rule, file=file, line=line,
            )  # fmt: skip
