"""The values that findings are about, for a report that shows them; collected only if the manifest asks for it.

They leave the box in a file of their own, for the process that writes the report, and nowhere else.
"""

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

from runner.engine.common.findings import Findings
from runner.engine.reading import NoCachedValue
from runner.engine.values.convert import text_of

LONGEST: Final = 80  # characters; runner/engine/pages/fixes.py cuts longer ones, too


class FoundValues:
    """Remembers the values of cells that findings are about, while their rows are at hand.

    A finding waits from when it is added until `collect_cells` gets its row; it may be added before or after that row
    is transformed, but not after the row was passed on.
    """

    def __init__(self, findings: Findings) -> None:
        """Wait for the findings of `findings`, those that are added later included."""
        self._findings = findings
        self._seen = 0  # findings that wait or have their value
        self._waiting: dict[str, dict[int, list[int]]] = {}  # table -> row -> numbers of findings without a value yet
        self._texts: dict[int, str] = {}  # by the number of the finding

    def collect_cells(
        self,
        table: str,
        rows: Sequence[int],
        columns: Mapping[int, Sequence[Any]],
        spread: Sequence[tuple[int, Any]] = (),
    ) -> None:
        """Remember the values of findings about these rows of a table; the rows do not come again.

        `columns`: by their number in the sheet. `spread`: where columns became rows, each row's own column and value.
        """
        self._await_new_findings()
        waiting = self._waiting.get(table)
        if not waiting:
            return
        for index, row in enumerate(rows):
            spread_column, value = spread[index] if spread else (0, None)
            for number in waiting.get(row, ()):
                column = self._findings.listed[number].column or 0
                if column == spread_column:
                    self._remember_value(number, value)
                elif column in columns:
                    self._remember_value(number, columns[column][index])
        for row in set(rows):
            waiting.pop(row, None)

    def _await_new_findings(self) -> None:
        """Let the findings wait that were added since the last call."""
        for number in range(self._seen, len(self._findings.listed)):
            finding = self._findings.listed[number]
            if finding.place is not None and finding.row is not None and finding.column is not None:
                self._waiting.setdefault(finding.place.table, {}).setdefault(finding.row, []).append(number)
        self._seen = len(self._findings.listed)

    def _remember_value(self, number: int, value: object) -> None:
        """Remember the start of a value as text, by the number of its finding; blanks have none."""
        if value is not None and type(value) is not NoCachedValue:
            text = str(text_of(value))
            self._texts[number] = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

    def write(self, file: IO[bytes]) -> None:
        """Write the values as JSON, by the number of the finding."""
        file.write(json.dumps({str(number): text for number, text in self._texts.items()}).encode())
