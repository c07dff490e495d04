"""Test cases on the workbench: run, read, and expected from then on, as `ade test` does at a desk.

Whoever makes a case has to be able to read what it expects, so that takes the scope `values`; others see how many
things differ. Nothing of a run is kept: what is accepted is run again, and written if it is what was read.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final

from console.api.access import Permission
from console.api.operations import Call
from console.api.problems import ProblemError
from console.api.values import shown_text
from console.benches import Bench, each_case
from console.desk.cases import INPUT, Case, CaseRun, CaseRunner, CaseVerdict, find_cases
from console.desk.differences import Sides, lines, summary
from console.desk.files import lay_out
from console.web.bench_access import benches_of, note
from console.web.bench_runs import inbox_of, laid_out
from console.web.rehearsals import LINE, at_work, fetch_named, preview_boxes, preview_settings
from core.drops import TESTS
from core.errors import UsageError
from core.keys import refusal
from core.versions import MANIFEST
from infra.parsing import read_manifest

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_ROWS: Final = 30
_LINES: Final = 20
_SIDES: Final = Sides("expected", "got")


@dataclass(frozen=True, slots=True)
class ShownRun:
    """One run of a case, as the viewer may see it."""

    case: str
    title: str
    verdict: str
    status: str
    message: str
    differences: list[str]
    rows: list[list[str]]  # of a new case: what it would expect
    more: int  # rows that are not shown
    digest: str  # of what would be expected

    @property
    def is_changed(self) -> bool:
        return self.verdict in (CaseVerdict.FAILED, CaseVerdict.NEW)


def facts(call: Call, bench: Bench) -> dict[str, Any]:
    return {"cases": list(each_case(benches_of(call).cases(bench))), "runs": None}


def run(call: Call, bench: Bench, form: Mapping[str, str]) -> list[ShownRun]:
    """Run the cases, or the one that a form names: one of the bench, or a new one of a sample."""
    sees = call.principal.may(Permission.VALUES)
    if sees:
        note(call, bench, "see_values", on="workbench tests")
    with _runner(call, bench, _new_case(call, bench, form)) as (runner, cases):
        runs = [one for case in cases for one in runner.run(case)]
    return [_shown(one, sees=sees) for one in runs]


def accept(call: Call, bench: Bench, form: Mapping[str, str]) -> None:
    """Expect what a case gave, if it still gives what the viewer read."""
    if not call.principal.may(Permission.VALUES):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "a case is made by somebody who can read what it expects: the scope `values`"
        )
    with _runner(call, bench, _new_case(call, bench, form)) as (runner, cases):
        runs = [one for case in cases for one in runner.run(case)]
        if _digest(runs) != form.get("digest") or any(one.verdict is CaseVerdict.BROKEN for one in runs):
            raise UsageError("what comes out has changed since you read it; run the case again")
        paths = [path for one in runs for path in one.write()]
        place = cases[0].folder.parent
        files = {path.relative_to(place).as_posix(): path.read_bytes() for path in (*cases[0].inputs, *paths)}
    benches_of(call).put_case(bench, files)
    note(call, bench, "bench_case", case=cases[0].name)


def remove(call: Call, bench: Bench, form: Mapping[str, str]) -> None:
    benches_of(call).remove_case(bench, _case_name(form))


def _case_name(form: Mapping[str, str]) -> str:
    name = form.get("case", "").strip()
    if not _NAME.fullmatch(name):
        raise UsageError("a case has a name of letters, digits, - and _")
    return name


def _new_case(call: Call, bench: Bench, form: Mapping[str, str]) -> tuple[str, dict[str, bytes]]:
    """Which case is run, and the files of one that is made of a sample; an empty name: all."""
    if "case" not in form:
        return "", {}
    name, number = _case_name(form), form.get("sample", "")
    known = set(each_case(benches_of(call).cases(bench)))
    if not number or name in known:
        return name, {}
    if not number.isdecimal() or int(number) >= len(bench.facts.samples):
        raise UsageError("there is no such sample")
    sample = bench.facts.samples[int(number)]
    body = call.context.stack.store.read(sample.key, limit=sample.size)
    return name, {f"{name}/{INPUT}{PurePosixPath(sample.name).suffix.lower()}": body}


@contextmanager
def _runner(call: Call, bench: Bench, chosen: tuple[str, dict[str, bytes]]) -> Iterator[tuple[CaseRunner, list[Case]]]:
    """The cases in a folder beside the manifest, and boxes as jobs have them: the rules may be another author's."""
    name, more = chosen
    with LINE.turn(at_work(call)), laid_out(call, bench) as beside:
        for path, body in {**benches_of(call).cases(bench), **more}.items():
            if refusal(path) is None:
                target = beside / TESTS / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(body)
        cases = find_cases(beside / MANIFEST, [name] if name else [])
        settings, scratch = preview_settings(call.context), beside.parent
        folder, manifest = inbox_of(bench), read_manifest(bench.body)
        fetch_named(call.context.stack.store, manifest, f"{folder}{MANIFEST}", scratch / "bucket")
        standalone = manifest.model_copy(update={"subscribe": (), "tenants": ()})
        desk = lay_out(beside / MANIFEST, standalone, folder=folder, bucket=scratch / "bucket")
        with preview_boxes(settings, scratch) as sandbox:
            yield CaseRunner(desk, settings, sandbox, scratch / "cases", lambda: None), cases


def _digest(runs: list[CaseRun]) -> str:
    return hashlib.sha256(b"\0".join(part for one in runs for part in (one.expected, one.expected_rows))).hexdigest()


def _shown(one: CaseRun, *, sees: bool) -> ShownRun:
    comparison, rows = one.comparison, list[list[str]]()
    different = list[str]()
    if one.verdict is CaseVerdict.FAILED and comparison is not None:
        different = (
            lines(comparison, _SIDES, _LINES)
            if sees
            else [f"{words}{' (breaking)' if breaking else ''}" for words, breaking in summary(comparison)]
        )
    if sees and one.is_changed:
        rows = list(csv.reader(io.StringIO(one.expected_rows.decode("utf-8", "replace"))))
    return ShownRun(
        case=one.case.name,
        title=one.name,
        verdict=str(one.verdict),
        status=one.status,
        message=_message(one),
        differences=[shown_text(line) if sees else line for line in different],
        rows=[[shown_text(text) for text in row] for row in rows[: _ROWS + 1]],
        more=max(0, len(rows) - _ROWS - 1),
        digest=_digest([one]),
    )


def _message(one: CaseRun) -> str:
    """Without the paths of this machine."""
    return one.message.replace(f"{one.case.folder.parent}/", "")[:500]


def stem(name: str) -> str:
    """A name for a case of a sample."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem).strip("-_")[:60] or "sample"
