"""`ade init DIR`: create a config package: a commented one that works, or one drafted from samples."""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.scaffold import FILES
from core.errors import UsageError

if TYPE_CHECKING:
    from console.desk.drafts import DraftDocument, Drafting, DraftQuestion, Spec

_SHOWN = 5  # examples of a question


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", type=Path, help="a new or empty folder; its name is the workflow's")
    parser.add_argument(
        "--from", metavar="SAMPLE", dest="samples", nargs="+", type=Path, default=[], help="draft it from these files"
    )
    parser.add_argument(
        "--target",
        metavar="TEMPLATE",
        type=Path,
        help="an empty template or a finished workbook: names, order and types",
    )
    parser.add_argument(
        "--contract", metavar="FILE", type=Path, help="JSON Schema, ODCS, Frictionless Table Schema or CREATE TABLE"
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    folder: Path = args.dir
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; choose a new folder")
    if args.target is not None and args.contract is not None:
        raise UsageError("--target and --contract both name the fields; give one of them")
    if not (args.samples or args.target or args.contract):
        return _scaffold(folder, out)
    return _draft(args, folder, out)


def _scaffold(folder: Path, out: Printer) -> int:
    """Write the commented package that works."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = _try_command(folder, folder / "sample.csv")
    if out.as_json:
        out.emit({"dir": str(folder), "files": list(FILES), "try": command})
    else:
        for name in FILES:
            out.line(str(folder / name))
        out.note(f"\nnow run: {command}")
    return Exit.OK


def _try_command(folder: Path, sample: Path) -> str:
    paths = (sample, folder / "manifest.json", folder / "result")
    return "ade try {} --manifest {} --out {}".format(*(quote(str(path)) for path in paths))


class _Decision(NamedTuple):
    """A question of the draft, and what was decided."""

    question: "DraftQuestion"
    yes: bool
    asked: bool

    def as_json(self) -> dict[str, object]:
        answer = "yes" if self.yes else "no"
        facts = {"kind": self.question.kind, "field": self.question.field, "question": self.question.text}
        return {**facts, "answer": answer, "by": "a person" if self.asked else "the safe choice"}


def _draft(args: argparse.Namespace, folder: Path, out: Printer) -> int:
    """Draft a manifest from samples, a target or a contract."""
    from console.cli.service import Signals  # noqa: PLC0415  # the scaffold needs no sandbox
    from console.desk.boxes import boxes  # noqa: PLC0415
    from console.desk.drafts import Drafting, checked, manifest_of, written  # noqa: PLC0415
    from core.settings import Settings  # noqa: PLC0415
    from core.verdicts import Verdict  # noqa: PLC0415

    samples: list[Path] = list(args.samples)
    for path in (*samples, *(path for path in (args.target, args.contract) if path is not None)):
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
    settings = Settings.from_env(os.environ)
    with tempfile.TemporaryDirectory(prefix="ade-init-") as scratch, Signals() as signals:
        place = Path(scratch)
        with boxes(settings, place / "run") as sandbox:
            drafting = Drafting(settings, sandbox, place, samples, lambda: Verdict.CANCELLED if signals.asked else None)
            known = _known(args, drafting)
            document, decisions = _decided(drafting, known, args, out)
            manifest = manifest_of(_name(folder), document, samples, drop_others=args.target is not None)
            manifest = {**manifest, "fields": [_answered(spec, decisions) for spec in manifest["fields"]]}
            checked(manifest)
            settled = drafting.settled(manifest)
    checked(settled.manifest)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(written(settled.manifest), encoding="utf-8")
    notes = [*document.notes, *settled.taken]
    _report(folder, samples, decisions, notes, out, fields=len(document.fields))
    return Exit.OK


def _name(folder: Path) -> str:
    """A workflow's name from a folder's."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.absolute().name).strip("-._")[:64]
    return name or "workflow"


def _known(args: argparse.Namespace, drafting: "Drafting") -> "list[Spec]":
    """The fields that a target or a contract gives."""
    from runner.engine.contract import DraftRequest  # noqa: PLC0415

    if args.contract is not None:
        from console.contracts import read_contract  # noqa: PLC0415

        return read_contract(args.contract)
    if args.target is None:
        return []
    found = drafting.document([args.target], [], DraftRequest())
    return [_of_target(one.spec, named=args.samples != []) for one in found.fields]


def _of_target(spec: "Spec", *, named: bool) -> "Spec":
    """What a target says about a field; of one without values only its name, if samples say the rest."""
    kept: Spec = {key: value for key, value in spec.items() if key in ("name", "label")}
    kind = spec.get("type", "text")
    return kept if named and kind == "text" else {**kept, "type": "text" if kind == "enum" else kind}


def _decided(
    drafting: "Drafting", known: "list[Spec]", args: argparse.Namespace, out: Printer
) -> "tuple[DraftDocument, list[_Decision]]":
    """The draft, and what was decided about its questions; columns that a person joins are drafted again."""
    from runner.engine.contract import DraftRequest  # noqa: PLC0415

    if not drafting.samples:
        return _without_samples(known), []
    request = DraftRequest(known_only=bool(known), rules=args.contract is None)
    document = drafting.document(drafting.samples, known, request)
    joins = [_ask(q, out) for q in document.questions if q.kind == "same_column"]
    same = {header: label for one in joins if one.yes for header, label in one.question.change["same"].items()}
    if same:
        request = DraftRequest(known_only=bool(known), rules=args.contract is None, same=same)
        document = drafting.document(drafting.samples, known, request)
    return document, [*joins, *(_ask(q, out) for q in document.questions if q.kind != "same_column")]


def _without_samples(known: "list[Spec]") -> "DraftDocument":
    from console.desk.drafts import DraftDocument, DraftedField  # noqa: PLC0415

    fields = tuple(DraftedField(spec=spec, evidence="no samples", personal=False) for spec in known)
    return DraftDocument(draft=1, samples=0, rows=0, headless=False, fields=fields, questions=(), notes=())


def _ask(question: "DraftQuestion", out: Printer) -> _Decision:
    """Ask a person, if one is there; otherwise nothing is changed."""
    if not (out.terminal and sys.stdin.isatty()):
        return _Decision(question, yes=False, asked=False)
    shown = f"  (such as {', '.join(question.examples[:_SHOWN])})" if question.examples else ""
    out.line(f"{question.field}: {question.text}{shown}")
    try:
        answer = input("  y/N: ").strip().casefold()
    except EOFError:
        answer = ""
    return _Decision(question, yes=answer in ("y", "yes"), asked=True)


def _answered(spec: "Spec", decisions: "Sequence[_Decision]") -> "Spec":
    """A field with what a person decided about it."""
    for one in decisions:
        if one.yes and one.question.field == spec["name"] and one.question.kind != "same_column":
            spec = {**spec, **one.question.change}
    return spec


def _report(
    folder: Path, samples: list[Path], decisions: list[_Decision], notes: list[str], out: Printer, *, fields: int
) -> None:
    manifest = folder / "manifest.json"
    command = _try_command(folder, samples[0]) if samples else None
    if out.as_json:
        made: dict[str, object] = {"dir": str(folder), "files": ["manifest.json"], "fields": fields}
        out.emit({**made, "decisions": [one.as_json() for one in decisions], "notes": notes, "try": command})
        return
    out.line(f"{manifest}: {fields} fields; each has a description that says what it is based on")
    for one in decisions:
        if not one.asked:
            out.line(f"  not assumed: {one.question.field}: {one.question.text}")
    for note in notes:
        out.line(f"  {note}")
    if command:
        out.note(f"\nnow read it, then run: {command}")
