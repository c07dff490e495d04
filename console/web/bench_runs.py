"""What a bench runs, each time in a box: the draft of its samples, and the preview of its manifest on one of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from console.api.access import Permission
from console.api.operations import Call
from console.api.problems import ProblemError
from console.api.values import ShownCells, harmless
from console.benches import Bench, Benches, BenchSample, Suggestion
from console.desk.drafts import DraftFailed, Drafting
from console.desk.files import inbox_folder
from console.desk.trials import TENANT
from console.library import Library
from console.web.explanations import Explanation, FindingFilter, explanation
from console.web.rehearsals import LINE, Rehearsal, asker, at_work, preview_boxes, preview_settings, rehearse_beside
from core.errors import UsageError
from core.jobs import Job
from core.keys import SHARED_TENANT, refusal
from infra.parsing import read_manifest
from runner.comparisons import Inspections, ResultUnreadable
from runner.engine.common import a1
from runner.engine.contract import OutputName

_ROWS: Final = 20  # that are drawn of a sheet
_COLUMNS: Final = 40
_SHEETS: Final = 3
_OUT_ROWS: Final = 15
_OUT_COLUMNS: Final = 60
_FINDINGS: Final = 50
_MISSHAPEN = (ValueError, TypeError, KeyError, AttributeError, IndexError)


@dataclass(frozen=True, slots=True)
class BenchDraft:
    manifest: dict[str, Any]
    notes: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]


def draft(call: Call, name: str, samples: Mapping[str, Path]) -> BenchDraft:
    """Draft a manifest from samples, as `ade init --from` does. Raises ProblemError."""
    with LINE.turn(at_work(call)), call.context.spool.scratch() as scratch:
        folder = scratch / "samples"
        folder.mkdir()
        files = [(folder / one) for one in samples]
        for path, source in zip(files, samples.values(), strict=True):
            path.write_bytes(source.read_bytes())
        settings = preview_settings(call.context)
        try:
            with preview_boxes(settings, scratch) as sandbox:
                document, tried = Drafting(settings, sandbox, scratch, files, lambda: None).draft(name)
        except DraftFailed as error:
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"no manifest can be drafted: {error}") from None
    suggestions = tuple(
        Suggestion(field=one.field[:200], text=one.text, change=one.change)
        for one in document.questions
        if one.kind != "same_column"
    )
    notes = (*document.notes, *(one.text for one in document.questions if one.kind == "same_column"), *tried.notes)
    return BenchDraft(tried.manifest, tuple(note[:500] for note in notes)[:200], suggestions[:200])


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    letters: str
    header: str  # as the file has it; empty: none
    target: str  # the field it became; empty: none


@dataclass(frozen=True, slots=True)
class DrawnRow:
    number: int
    kind: str  # header, data, total …: as the artifact says
    cells: list[str]


@dataclass(frozen=True, slots=True)
class DrawnSheet:
    name: str
    columns: list[DrawnColumn]
    rows: list[DrawnRow]
    more: bool  # whether it has rows below those that are drawn
    ranges: list[str]


@dataclass(frozen=True, slots=True)
class BenchPreview:
    """How the manifest reads a sample, and what comes out."""

    sample: BenchSample
    job: Job
    questions: int
    explained: Explanation | None
    sheets: list[DrawnSheet] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    findings: list[tuple[Mapping[str, Any], str]] = field(default_factory=list)  # and the value, for who may see it
    values: bool = False


def preview(call: Call, bench: Bench, number: int) -> BenchPreview:
    """Run the manifest on a sample. Raises ManifestInvalid, UsageError or ProblemError."""
    if not bench.facts.samples:
        raise UsageError("there is no sample to run it on; add one")
    sample = bench.facts.samples[min(max(number, 0), len(bench.facts.samples) - 1)]
    sees = call.principal.may(Permission.VALUES)
    if sees:
        call.context.actions.note(call.principal, "see_values", **_of(bench), key=sample.key, on="workbench")
    cells, out = list[ShownCells](), list[ShownCells]()
    with LINE.turn(asker(call)), laid_out(call, bench) as beside:
        scratch = beside.parent
        (scratch / "samples").mkdir()
        file = Benches(call.context.stack.store, call.context.stack.clock).fetch(
            sample, scratch / "samples" / sample.name
        )

        def read_cells(inspections: Inspections, done: Rehearsal) -> None:
            if not sees:
                return
            names = [sheet["name"] for sheet in _sheets(done.artifact)]
            wanted = {"rows": {name: list(range(1, _ROWS + 2)) for name in names or [""]}}
            cells.append(_seen(inspections, file, {**wanted, "rows": wanted["rows"] | _found(done.artifact)}))
            workbook = scratch / "out" / OutputName.WORKBOOK
            if workbook.is_file():
                out.append(_seen(inspections, workbook, {"rows": {"": list(range(1, _OUT_ROWS + 2))}}))

        done = rehearse_beside(call.context, beside, [file], inbox_of(bench), scratch, then=read_cells)
    return _shown(sample, done, cells[0] if cells else ShownCells({}, {}), out, values=sees)


def _of(bench: Bench) -> dict[str, str]:
    return {} if bench.owner == SHARED_TENANT else {"tenant": bench.owner}


def inbox_of(bench: Bench) -> str:
    """The folder of the inbox that a bench's files are tried in, as those of its tenant."""
    return inbox_folder(TENANT if bench.owner == SHARED_TENANT else bench.owner, "")


@contextmanager
def laid_out(call: Call, bench: Bench) -> Iterator[Path]:
    """The manifest in a folder, with the config and the lookups of the workflow that it changes."""
    store = call.context.stack.store
    with call.context.spool.scratch() as scratch:
        beside = scratch / "bench"
        beside.mkdir()
        (beside / "manifest.json").write_bytes(bench.body)
        manifest = read_manifest(bench.body)
        if bench.facts.origin is not None:
            library, place = Library(store), bench.facts.origin.key.rpartition("/")[0] + "/"
            standing = library.at(bench.facts.origin.key)
            files = {} if standing is None else library.config_files(standing)
            paths = [one.path for one in manifest.inputs.auxiliary if not one.path.startswith(("inbox/", "configs/"))]
            for path in paths:
                if (info := store.head(place + path)) is not None:
                    files[path] = store.read(info.key, version=info.version, limit=16 * 1024 * 1024)
            for name, body in files.items():
                if refusal(name) is None:
                    target = beside / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(body)
        yield beside


def _seen(inspections: Inspections, file: Path, wanted: dict[str, Any]) -> ShownCells:
    try:
        return harmless(inspections.show(file, wanted))
    except ResultUnreadable:
        return ShownCells({}, {})  # the preview says what is wrong with the file


def _sheets(artifact: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    try:
        listed = [one for one in (artifact or {})["sheets"] if isinstance(one["name"], str) and not one.get("skipped")]
    except _MISSHAPEN:
        return []
    return listed[:_SHEETS]


def _found(artifact: Mapping[str, Any] | None) -> dict[str, list[int]]:
    """The rows that are read of each sheet: the first, and those with findings that are listed."""
    rows = {str(sheet["name"]): set(range(1, _ROWS + 2)) for sheet in _sheets(artifact)}
    for one in _listed(artifact):
        if (numbers := rows.get(str(one.get("sheet") or ""))) is not None:
            numbers.add(_place(one)[0])
    return {name: sorted(numbers - {0}) for name, numbers in rows.items()}


def _listed(artifact: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]]
    try:
        found = [one for one in (artifact or {})["validation"]["findings"] if isinstance(one, dict)]
    except _MISSHAPEN:
        return []
    order = {"error": 0, "warning": 1}
    return sorted(found, key=lambda one: order.get(str(one.get("severity")), 2))[:_FINDINGS]


def _place(finding: Mapping[str, Any]) -> tuple[int, int]:
    cell = str(finding.get("cell") or "")
    letters = cell.rstrip("0123456789")
    digits = cell[len(letters) :]
    is_cell = letters.isascii() and letters.isalpha() and len(letters) <= 3 and 0 < len(digits) <= 7
    return (int(digits), a1.column_number(letters)) if is_cell else (0, 0)


def _shown(
    sample: BenchSample, done: Rehearsal, cells: ShownCells, out: list[ShownCells], *, values: bool
) -> BenchPreview:
    questions = (done.review or {}).get("questions")
    rows = [row for _, row in sorted(out[0].rows.get("", {}).items())] if out else []
    rows = [row[:_OUT_COLUMNS] for row in rows]
    return BenchPreview(
        sample=sample,
        job=done.job,
        questions=len(questions) if isinstance(questions, list) else 0,
        explained=explanation(done.artifact, FindingFilter()),
        sheets=drawn_sheets(done.artifact, cells),
        header=rows[0] if rows else _columns_out(done.artifact),
        rows=rows[1:],
        findings=[(one, cells.cell(str(one.get("sheet") or ""), *_place(one))) for one in _listed(done.artifact)],
        values=values,
    )


def _columns_out(artifact: Mapping[str, Any] | None) -> list[str]:
    try:
        return [str(one["header"]) for one in (artifact or {})["output"]["columns"]]
    except _MISSHAPEN:
        return []


def drawn_sheets(artifact: Mapping[str, Any] | None, cells: ShownCells) -> list[DrawnSheet]:
    """The first rows of each sheet as they are drawn; an artifact that cannot be understood draws nothing."""
    try:
        return [_drawn(artifact or {}, sheet, cells.rows.get(str(sheet["name"]), {})) for sheet in _sheets(artifact)]
    except _MISSHAPEN:
        return []


def _drawn(artifact: Mapping[str, Any], sheet: Mapping[str, Any], cells: Mapping[int, list[str]]) -> DrawnSheet:
    ids = {str(table["id"]) for table in sheet["tables"]}
    columns = {str(one["column"]): one for one in artifact["mapping"] if str(one["table"]) in ids}
    spans = [(int(one["from"]), int(one["to"]), str(one["as"])) for one in sheet["rows"]]
    last = max((to for _, to, _ in spans), default=0)
    near = {n: row for n, row in cells.items() if n <= _ROWS}
    wide = max([a1.column_number(name) for name in columns] + [len(row) for row in near.values()] + [1])
    drawn = [DrawnColumn(a1.letters(n), *_named(columns.get(a1.letters(n)))) for n in range(1, min(wide, _COLUMNS) + 1)]
    headers = {int(row) for table in sheet["tables"] for row in table["header_rows"][-1:]}
    rows = [
        DrawnRow(
            number=n,
            kind=next((kind for begin, end, kind in spans if begin <= n <= end), "blank"),
            cells=[_cell(near, n, at, one.header if n in headers else "") for at, one in enumerate(drawn)],
        )
        for n in range(1, min(max(last, *near, 1), _ROWS) + 1)
    ]
    return DrawnSheet(str(sheet["name"]), drawn, rows, last > _ROWS, [str(table["range"]) for table in sheet["tables"]])


def _named(column: Mapping[str, Any] | None) -> tuple[str, str]:
    return ("", "") if column is None else (str(column["header"] or ""), str(column["target"] or ""))


def _cell(cells: Mapping[int, list[str]], row: int, at: int, otherwise: str) -> str:
    texts = cells.get(row)
    return otherwise if texts is None else texts[at] if at < len(texts) else ""
