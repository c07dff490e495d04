"""What all tables of a job share in passes 3 to 5, and how rows are written into all files of the output."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from runner.engine.common.findings import Findings
from runner.engine.expressions.signatures import Expression
from runner.engine.mapping.output_layout import OutColumn
from runner.engine.options import SplitOff
from runner.engine.rejects.set_aside import RowErrors
from runner.engine.rules.hooks import Hooks
from runner.engine.rules.load import RulePackage
from runner.engine.transforming.computing import Computations
from runner.engine.transforming.holding import HeldChunks, SortedRows
from runner.engine.transforming.row_rules import ExpressionCheck, UniqueRows
from runner.engine.transforming.shown_values import FoundValues
from runner.engine.values.checking import FieldChecks, RowCheck
from runner.engine.writing import SheetWriter
from runner.engine.writing.parts import MAX_TEXT, holdable, too_long

if TYPE_CHECKING:
    from runner.engine.writing.data_files import DataFiles
    from runner.engine.writing.splitting import RowSplit

_NOT_SPLIT: Final[Sequence[Sequence[int]]] = ()
_NOTHING_UNFIT: Final[Mapping[int, Sequence[int]]] = {}  # of a job without data files


class Times(dict[str, float]):
    """Seconds spent in each pass."""

    def spend(self, name: str, since: float) -> float:
        """Add the seconds since a moment to a pass; returns the moment now."""
        now = perf_counter()
        self[name] = self.get(name, 0.0) + now - since
        return now


@dataclass(kw_only=True, slots=True)
class Pipeline:
    """What all tables of a job share in passes 3 to 5; checks, errors and waiting rows gather over all of them."""

    columns: Sequence[OutColumn]  # of the output
    checks: Mapping[str, FieldChecks]  # by field
    row_rules: Sequence[RowCheck]
    package: RulePackage
    hooks: Hooks
    findings: Findings
    sheet: SheetWriter | None  # of the workbook; None: nobody asked for it
    data: "DataFiles | None"  # the files beside the workbook
    split: "RowSplit | None"  # into further files
    blanks_errors: bool  # the workbook holds no value that does not fit its column
    strict: bool  # a rule that fails ends the job
    errors: RowErrors
    splits_off: SplitOff
    spellings: Mapping[str, Mapping[str, Any]]  # field -> folded text -> the allowed value that it means
    computations: Computations
    checks_by_expression: Sequence[ExpressionCheck] = ()
    unique_rows: Sequence[UniqueRows] = ()
    filter: Expression | None = None
    held: HeldChunks | None = None  # rows wait here until it is known which of them stay
    ordered: SortedRows | None = None  # rows wait here to be written in order
    values: FoundValues | None = None  # that the report shows
    times: Times = field(default_factory=Times)


class FlagCells(Protocol):
    """Reports cells that a file of the output cannot hold as they are."""

    def __call__(self, n: int, indexes: list[int], code: str, *, severity: str, what: str) -> None:
        """Add a finding for the cells of output column `n` in the rows at these indexes; `what` is its text."""


def write_rows(pipeline: Pipeline, output: list[list[Any]], count: int, flag: FlagCells) -> None:
    """Write rows into all files of the output; calls `flag` for cells of a column that a file cannot hold as they are.

    `output`: by output column, the values of the rows.
    """
    split, places = pipeline.split, _NOT_SPLIT
    if split is not None:
        output = split.with_texts(output)
        places = split.places(output)
    unfit = _NOTHING_UNFIT
    if pipeline.data is not None:
        unfit = pipeline.data.write(output, count, places)
        for n, cells in unfit.items():
            # A value of another type is reported as such already.
            large = [i for i in cells if pipeline.data.is_of_type(n, output[n][i])]
            what = "has more digits than the type of its column holds, and is left blank in files of typed columns"
            flag(n, large, "value_unfit", severity="warning", what=what)
    if pipeline.sheet is not None:
        if pipeline.blanks_errors:
            output = [_blank_cells(values, unfit.get(n, ())) for n, values in enumerate(output)]
        altered_before = pipeline.sheet.altered_cells()
        pipeline.sheet.write(output, count)
        if split is not None:  # its workbooks are there if the main one is
            split.write(output, places)
        _flag_altered(pipeline.sheet, altered_before, output, flag)


def _flag_altered(
    sheet: SheetWriter, altered_before: Sequence[int], output: list[list[Any]], flag: FlagCells
) -> None:  # fmt: skip
    """Flag the cells of the rows just written that the sheet has as a cut text or as a text instead of a number.

    `altered_before`: by output column, how many cells the sheet had altered before these rows.
    """
    for n, altered in enumerate(sheet.altered_cells()):
        if altered != altered_before[n]:
            cut = [i for i, v in enumerate(output[n]) if type(v) is str and too_long(v)]
            what = f"is longer than {MAX_TEXT} characters and was truncated"
            flag(n, cut, "text_cut", severity="warning", what=what)
            inexact = [i for i, v in enumerate(output[n]) if v is not None and not holdable(v)]
            what = "cannot be stored exactly in a spreadsheet and was written as text"
            flag(n, inexact, "kept_as_text", severity="info", what=what)


def _blank_cells(values: list[Any], blanked: Collection[int]) -> list[Any]:
    """Copy the values of a column, with blanks at these indexes; the same list if there are none."""
    return [None if i in blanked else v for i, v in enumerate(values)] if blanked else values
