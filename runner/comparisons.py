"""Reads finished results in a box: compares two, describes one as the expected files of a test, explains a cell.

A result's files were written where rules ran, so nothing here opens them: the engine does, in a box without rules, and
its answer is small and bounded. `ade diff`, `ade test`, `ade explain` and the report of a replay use these functions.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.budget import Budget, plain
from core.errors import AdeError
from core.verdicts import Verdict
from runner.boxes import BoxLimits, BoxOrder, Killed, Sandbox
from runner.engine.contract import COMPARE, DESCRIBE, EXPLAIN, SHOW, InspectName, InspectOrder, Json, ResultFiles

TENANT: Final = "_inspect"  # whose zygote reads results: nobody's rules are in it
_ANSWER: Final = Budget(bytes=16 * 1024 * 1024, values=200_000)
_SPOOL_MB: Final = 4096  # both results uncompressed, if their rows are in different orders


class ResultUnreadable(AdeError):
    """A result cannot be compared or explained."""


def _never() -> Verdict | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedResult:
    """The files of a result on this machine: normalized.xlsx and artifact.json, or expected.csv and expected.json."""

    rows: Path | None  # None: it ended without an output
    facts: Path | None
    status: str

    @classmethod
    def in_folder(cls, folder: Path, status: str) -> "FinishedResult":
        """The result that is in a folder such as `ade try --out` writes."""
        return cls(rows=_there(folder / "normalized.xlsx"), facts=_there(folder / "artifact.json"), status=status)


def _there(path: Path) -> Path | None:
    return path if path.is_file() else None


class Inspections:
    """Runs inspections one after the other, each in a box of its own."""

    def __init__(
        self, sandbox: Sandbox, limits: BoxLimits, scratch: Path, *, killed: Killed = _never, tenant: str = TENANT
    ) -> None:
        """`scratch`: a folder for copies of results; nothing is left in it. `tenant`: whose warm process is used."""
        self._tenant = tenant
        self._sandbox = sandbox
        self._limits = limits
        self._scratch = scratch
        self._killed = killed

    def compare(self, left: FinishedResult, right: FinishedResult, *, by: str = "", values: bool = False) -> Json:
        """The differences as docs/reference/commands.md has them under `ade diff --json`. Raises ResultUnreadable.

        `by`: "key" or "source" pairs rows so; empty pairs them by the first unique field, else by source. `values`:
        whether they are shown; what is stored or sent must not show them.
        """
        outputs = (InspectName.COMPARISON, InspectName.SPOOL)
        answer = self._run(
            lambda staged: InspectOrder(what=COMPARE, results=staged, by=by, values=values), (left, right), outputs
        )
        return _document(answer[InspectName.COMPARISON])

    def describe(self, result: FinishedResult) -> tuple[bytes, bytes]:
        """The result as expected.json and expected.csv. Raises ResultUnreadable."""
        outputs = (InspectName.EXPECTED, InspectName.EXPECTED_ROWS)
        answer = self._run(lambda staged: InspectOrder(what=DESCRIBE, results=staged), (result,), outputs)
        return answer[InspectName.EXPECTED], answer[InspectName.EXPECTED_ROWS]

    def explain(self, result: FinishedResult, cell: str) -> Json:
        """Why a cell of the output is what it is, as `ade explain --json` has it. Raises ResultUnreadable."""
        outputs = (InspectName.EXPLANATION,)
        answer = self._run(lambda staged: InspectOrder(what=EXPLAIN, results=staged, cell=cell), (result,), outputs)
        return _document(answer[InspectName.EXPLANATION])

    def show(self, file: Path, wanted: Json) -> Json:
        """Cells of a spreadsheet as texts, for people who may see them: nothing of it is kept. Raises ResultUnreadable.

        `wanted` and the answer are as `runner/engine/comparing/shown_cells.py` has them.
        """
        result = FinishedResult(rows=file, facts=None, status="")
        text = json.dumps(wanted)
        answer = self._run(
            lambda staged: InspectOrder(what=SHOW, results=staged, request=text), (result,), (InspectName.CELLS,)
        )
        return _document(answer[InspectName.CELLS])

    def _run(
        self,
        order: Callable[[tuple[ResultFiles, ...]], InspectOrder],
        results: Sequence[FinishedResult],
        outputs: tuple[InspectName, ...],
    ) -> dict[InspectName, bytes]:
        """`order`: makes the order of the staged results."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="inspect-", dir=self._scratch))
        try:
            staged = tuple(_staged(one, folder, n) for n, one in enumerate(results))
            spools = InspectName.SPOOL in outputs
            box = BoxOrder(
                label=folder.name,
                tenant=self._tenant,
                scratch=folder,
                job=order(staged),
                outputs=outputs,
                limits=replace(self._limits, file_mb=_SPOOL_MB if spools else self._limits.file_mb),
                trusted=True,
                grouped=False,
            )
            report = self._sandbox.run(box, killed=self._killed)
            if report.verdict is not Verdict.OK:
                raise ResultUnreadable(report.message or f"reading the results ended with verdict {report.verdict}")
            return {name: report.outputs[name].read_bytes() for name in outputs if name is not InspectName.SPOOL}
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _staged(result: FinishedResult, folder: Path, number: int) -> ResultFiles:
    """Copy a result to where a box sees it; the names of its files say which kind it is."""
    place = Path("in", str(number))
    (folder / place).mkdir(parents=True)
    for path in (result.rows, result.facts):
        if path is not None:
            shutil.copyfile(path, folder / place / path.name)
    return ResultFiles(
        rows=None if result.rows is None else place / result.rows.name,
        facts=None if result.facts is None else place / result.facts.name,
        status=result.status,
    )


def _document(raw: bytes) -> Json:
    try:
        found = plain(raw, _ANSWER)
    except ValueError as error:
        raise ResultUnreadable(f"the box that read the results gave an answer of no use: {error}") from None
    if not isinstance(found, dict):
        raise ResultUnreadable("the box that read the results gave an answer of no use")
    return found
