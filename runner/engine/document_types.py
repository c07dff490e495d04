"""What artifact.json and review.json hold, for those who read them.

Their writers write plain JSON; the schemas beside this module say what a document must be, and a document is checked
against its schema before anybody reads it as one of these types. A test compares both.
"""

from typing import NotRequired, TypedDict

Counts = dict[str, int]

RowRun = TypedDict(
    "RowRun", {"from": int, "to": int, "as": str, "table": NotRequired[str], "rows": int}
)  # rows of a sheet, and what they are
SharedRows = TypedDict("SharedRows", {"from": int, "to": int, "tables": int, "rows": int})  # rows of several tables
PassTime = TypedDict("PassTime", {"pass": str, "seconds": float, "rows": int | None})
DriftedColumn = TypedDict(
    "DriftedColumn",
    {
        "header": NotRequired[str],
        "field": NotRequired[str | None],
        "from": NotRequired[str | int | None],
        "to": NotRequired[str | int | None],
    },
)


ColumnChanges = dict[str, list[DriftedColumn]]  # new, gone, renamed, moved and remapped columns


class JobPart(TypedDict):
    job_id: str | None
    tenant: str | None
    workflow: str | None
    attempt: int | None
    params: dict[str, object]


class BoxPart(TypedDict, total=False):
    driver: str
    level: str
    rungs: dict[str, bool]
    gaps: list[str]


class EnginePart(TypedDict):
    name: str
    version: str
    readers: list[str]
    sandbox: BoxPart


class ConfigPart(TypedDict):
    digest: str
    rules: list[dict[str, object]]
    overlays: NotRequired[list[dict[str, object]]]


class InputPart(TypedDict):
    role: str
    name: str
    sha256: str
    size: int


class ReadInputPart(InputPart):
    format: NotRequired[str]
    reader: NotRequired[str]
    notes: NotRequired[dict[str, object]]


class LeftOutColumn(TypedDict):
    column: str
    why: str


class UnpivotPart(TypedDict):
    """Columns of a table that became rows."""

    columns: int
    letters: NotRequired[list[str]]
    rows: int
    blanks: str
    left_out: NotRequired[int]


SourcePart = TypedDict("SourcePart", {"field": str, "from": str, "cell": str})  # a cell that is the value of a field


class AlternativePart(TypedDict):
    """Another partition of a table's part of the sheet."""

    ranges: list[str]
    probability: float


class TablePart(TypedDict):
    id: str
    ref: str
    range: str
    header_rows: list[int]
    data_range: str | None
    confidence: float
    why: list[str]
    shape: NotRequired[dict[str, object]]
    alternative: NotRequired[AlternativePart]
    rows_in: int
    rows_out: int
    unpivot: NotRequired[UnpivotPart]
    sources: NotRequired[list[SourcePart]]
    left_out: Counts
    left_out_columns: list[LeftOutColumn]
    skipped: NotRequired[str]


class BesidePart(TypedDict):
    """Cells beside the tables of a sheet."""

    range: str
    cells: int


class SheetHead(TypedDict):
    """Which sheet of an input, and why it was not read."""

    name: str
    index: int
    visibility: str
    skipped: NotRequired[str]


class SheetFacts(SheetHead):
    input: str
    tables: list[TablePart]
    rows_read: int
    rows: list[RowRun]
    shared: list[SharedRows]
    beside: list[BesidePart]


class ReadingPart(TypedDict):
    """A choice between readings."""

    kind: str
    chosen: str
    evidence: Counts
    sure: bool
    input: NotRequired[str]
    sheet: NotRequired[str]
    table: NotRequired[str]
    row: NotRequired[int]
    column: NotRequired[str]
    field: NotRequired[str]
    settle: NotRequired[str]


class Contributor(TypedDict):
    rule: str
    weight: float


class RunnerUpPart(TypedDict):
    field: str
    probability: float
    contributors: NotRequired[list[Contributor]]


class MappingPart(TypedDict):
    """What a column became."""

    table: str
    column: str
    header: str | None
    header_cell: str | None
    target: str | None
    probability: float
    contributors: list[Contributor]
    runners_up: list[RunnerUpPart]
    note: str | None
    dropped_cells: NotRequired[int]


class TransformPart(TypedDict):
    table: str
    field: str
    type: str
    changed: int
    total: int
    rule: str | None
    decimal: str | None
    day_first: bool | None
    filled_down: NotRequired[int]
    dots_day_first: NotRequired[bool]


class FindingPart(TypedDict):
    code: str
    severity: str
    message: str
    entry: NotRequired[str]
    params: NotRequired[dict[str, str | int]]
    input: NotRequired[str]
    sheet: NotRequired[str]
    table: NotRequired[str]
    cell: NotRequired[str]
    row: NotRequired[int]
    field: NotRequired[str]
    rule: NotRequired[str]
    file: NotRequired[str]
    line: NotRequired[int]


class FindingTotal(TypedDict):
    code: str
    severity: str
    field: str | None
    count: int


class ValidationPart(TypedDict):
    findings: list[FindingPart]
    kept: int
    total: int
    by_severity: Counts
    by_code: Counts
    totals: list[FindingTotal]


class OutputColumnPart(TypedDict):
    column: str
    header: str | None
    field: str | None
    type: str | None
    added: NotRequired[str]
    unique: NotRequired[bool]
    label: NotRequired[str]


class ExtraSheet(TypedDict):
    """A sheet that a hook added."""

    name: str
    rows: int


class RejectsPart(TypedDict):
    rows: int


class SplitRowsPart(TypedDict):
    field: str
    rows: dict[str, int]


class OutputPart(TypedDict):
    sheets: list[str]
    sheet_rows: list[int]
    rows: int
    columns: list[OutputColumnPart]
    extra_sheets: list[ExtraSheet]
    sorted: NotRequired[bool]
    rejects: NotRequired[RejectsPart]
    split: NotRequired[SplitRowsPart]


class SummaryPart(TypedDict):
    tables: int
    rows_in: int
    rows_used: NotRequired[int]
    rows_out: int
    left_out: Counts
    sheets_out: int
    columns_mapped: int
    columns_unmapped: int
    findings: Counts
    rows_with_errors: NotRequired[int]
    empty_fields: NotRequired[list[str]]


class ProfileColumn(TypedDict):
    header: str
    field: str | None
    at: int
    types: list[str]
    blank: float
    wrong: float


class ProfileDocument(TypedDict):
    """What a drop looked like, for the sender's next one to be compared with."""

    profile: int
    rows: int
    sender: NotRequired[str]
    tables: NotRequired[list[dict[str, object]]]
    answers: NotRequired[list[dict[str, object]]]
    columns: list[ProfileColumn]


class PreviousPart(TypedDict, total=False):
    key: str
    sha256: str
    job_id: str | None
    same_kind: bool


class ValuesChange(TypedDict):
    header: str
    field: str | None
    what: str
    before: float | list[str]
    now: float | list[str]


class RowsChange(TypedDict):
    before: int
    now: int
    out_of_range: bool


class DriftPart(TypedDict):
    previous: PreviousPart
    columns: ColumnChanges
    values: list[ValuesChange]
    rows: NotRequired[RowsChange]


class CorrectionsPart(TypedDict):
    jobs: list[str]
    rows: int
    left_out: int


class ArtifactDocument(TypedDict):
    artifact_version: int
    job: JobPart
    engine: EnginePart
    config: ConfigPart
    decision: NotRequired[dict[str, str]]
    inputs: list[ReadInputPart]
    memories: NotRequired[list[dict[str, str]]]
    sheets: list[SheetFacts]
    readings: list[ReadingPart]
    mapping: list[MappingPart]
    transforms: list[TransformPart]
    validation: ValidationPart
    output: OutputPart
    pass_history: list[PassTime]
    summary: SummaryPart
    mends: NotRequired[CorrectionsPart]
    profile: NotRequired[ProfileDocument]
    drift: NotRequired[DriftPart]


class ReasonPart(TypedDict):
    rule: str
    weight: float | None


class CandidatePart(TypedDict):
    value: str | None
    label: str
    header: NotRequired[str]
    probability: float | None
    reasons: list[ReasonPart]


class QuestionPart(TypedDict):
    id: str
    kind: str
    input: str | None
    sheet: str | None
    table: str | None
    column: str | None
    header: str | None
    field: str | None
    text: str
    chosen: str | None
    candidates: list[CandidatePart]


class ReviewDocument(TypedDict):
    review_version: int
    job: JobPart
    inputs: list[InputPart]
    answer_to: str | None
    why: str
    decision: dict[str, str] | None
    unused: NotRequired[list[int]]
    questions: list[QuestionPart]
    left_out: int
