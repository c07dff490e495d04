"""`ade init DIR`: create a config package: a commented one that works, or one drafted from samples."""

import argparse
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.scaffold import FILES
from core.errors import AdeError, UsageError

if TYPE_CHECKING:
    from console.desk.drafts import DraftDocument, Drafting, OpenQuestion, Spec
    from core.settings import Settings

_SHOWN = 5  # examples of a question
_CASE_BYTES = 1024 * 1024  # of the sample that becomes the first test


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s DIR [--from SAMPLE ...] [--target TEMPLATE | --contract FILE] [--shared] [--json]"
    # Optional only so that a DIR behind the samples, which argparse takes for one of them, gets a message of its own.
    parser.add_argument(
        "dir", metavar="DIR", nargs="?", type=Path, help="a new or empty folder; its name is the workflow's"
    )
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
    parser.add_argument(
        "--shared", action="store_true", help="for all tenants: it processes what they drop in a folder of its name"
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    if args.dir is None:
        raise UsageError(_without_folder(args.samples))
    folder: Path = args.dir
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; choose a new folder")
    if args.target is not None and args.contract is not None:
        raise UsageError("--target and --contract both name the fields; give one of them")
    if not (args.samples or args.target or args.contract):
        if args.shared:
            raise UsageError("--shared is for a draft; give --from, --target or --contract as well")
        return _scaffold(folder, out)
    return _draft(args, folder, out)


def _without_folder(samples: Sequence[Path]) -> str:
    """What to write instead where no folder was named, or behind the samples."""
    folder = samples[-1] if len(samples) > 1 and not samples[-1].is_file() else None
    files = " ".join(_as_word(path) for path in samples if path is not folder)
    command = f"ade init {_as_word(folder or Path('members'))}{f' --from {files}' if files else ''}"
    return f"name the new folder first: {command}"


def _scaffold(folder: Path, out: Printer) -> int:
    """Write the commented package that works."""
    with filled_at_once(folder) as place:
        for name, text in FILES.items():
            path = place / name
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


@contextlib.contextmanager
def filled_at_once(folder: Path) -> Iterator[Path]:
    """A place for what a new folder will hold: it is there once all of it is written, and nothing of it otherwise."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".ade-init-") as place:
            yield Path(place)
            for path in Path(place).iterdir():
                path.rename(folder / path.name)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # somebody else has put a file into it
                folder.rmdir()
        raise


def _try_command(folder: Path, sample: Path) -> str:
    paths = (sample, folder / "manifest.json", folder / "result")
    return "ade try {} --manifest {} --out {}".format(*map(_as_word, paths))


def _as_word(path: Path) -> str:
    """A path as a word of a shell command; one that begins with a dash is no option."""
    text = str(path)
    return quote(f"./{text}" if text.startswith("-") else text)


class _Decision(NamedTuple):
    """A question of the draft, and what was decided."""

    question: "OpenQuestion"
    yes: bool
    by_person: bool
    no: bool = False  # a person said so, which is more than no answer

    @property
    def change(self) -> "Spec":
        """What the answer changes in the field."""
        return self.question.change if self.yes else self.question.refusal if self.no else {}

    def as_json(self) -> dict[str, object]:
        answer = "yes" if self.yes else "no"
        facts = {"kind": self.question.kind, "field": self.question.field, "question": self.question.text}
        return {**facts, "answer": answer, "by": "a person" if self.by_person else "the safe choice"}


def _draft(args: argparse.Namespace, folder: Path, out: Printer) -> int:
    """Draft a manifest from samples, a target or a contract."""
    from console.cli.signals import Signals  # noqa: PLC0415  # the scaffold needs no sandbox
    from console.desk.boxes import boxes  # noqa: PLC0415
    from console.desk.drafts import Drafting, for_all_tenants, manifest_of, manifest_text, validate  # noqa: PLC0415
    from core.settings import Settings  # noqa: PLC0415
    from core.verdicts import Verdict  # noqa: PLC0415

    samples: list[Path] = list(args.samples)
    for path in (*samples, *(path for path in (args.target, args.contract) if path is not None)):
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name the files in it")
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
    settings = Settings.from_env(os.environ)
    with tempfile.TemporaryDirectory(prefix="ade-init-") as scratch, Signals() as signals:
        place = Path(scratch)
        with boxes(settings, place / "run", rehearses=False) as sandbox:
            drafting = Drafting(settings, sandbox, place, samples, lambda: Verdict.CANCELLED if signals.asked else None)
            fields = _fields_of(args, drafting)
            document, decisions = _draft_and_ask(drafting, fields, args, out)
            manifest = manifest_of(_name(folder), document, samples, drop_others=args.target is not None)
            if args.shared:
                manifest = for_all_tenants(manifest)
            manifest = {**manifest, "fields": [_with_answers(spec, decisions) for spec in manifest["fields"]]}
            validate(manifest)
            outcome = drafting.without_broken_rules(manifest, bound=args.contract is not None)
    validate(outcome.manifest)
    with filled_at_once(folder) as place:
        path = place / "manifest.json"
        path.write_text(manifest_text(outcome.manifest), encoding="utf-8")
        case = [note.replace(str(place), str(folder)) for note in _first_case(path, outcome.tried, settings)]
    notes = [*document.notes, *outcome.notes, *case]
    _report(folder, samples, decisions, notes, out, fields=len(document.fields))
    return Exit.OK


def _first_case(manifest: Path, samples: Sequence[Path], settings: "Settings") -> list[str]:
    """Make a test of the smallest sample, and expect what comes out now; notes for a person, who should read it."""
    from console.desk.cases import write_case  # noqa: PLC0415  # the scaffold needs no sandbox

    fitting = [path for path in samples if path.stat().st_size <= _CASE_BYTES]
    if not fitting:
        return [f"no sample has at most {_CASE_BYTES // 1024} KiB, so there is no first test"] if samples else []
    sample = min(fitting, key=lambda path: path.stat().st_size)
    try:
        files = write_case(manifest, sample, settings=settings, name=_name(Path(sample.stem)))
    except AdeError as error:  # the manifest is written, and good without it
        return [f"there is no first test: {error}"]
    return [f"{files[0].parent}: the first test; read what it expects"]


def _name(folder: Path) -> str:
    """A workflow's name from a folder's."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.absolute().name).strip("-._")[:64]
    return name or "workflow"


def _fields_of(args: argparse.Namespace, drafting: "Drafting") -> "list[Spec]":
    """The fields that a target or a contract gives."""
    from runner.engine.contract import DraftRequest  # noqa: PLC0415

    if args.contract is not None:
        from console.contracts import read_contract  # noqa: PLC0415

        return read_contract(args.contract)
    if args.target is None:
        return []
    document = drafting.document([args.target], [], DraftRequest())
    return [_of_target(one.spec, with_samples=args.samples != []) for one in document.fields]


def _of_target(spec: "Spec", *, with_samples: bool) -> "Spec":
    """What a target says about a field; of one without values only its name, if samples say the rest."""
    names: Spec = {key: value for key, value in spec.items() if key in ("name", "label")}
    kind = spec.get("type", "text")
    return names if with_samples and kind == "text" else {**names, "type": "text" if kind == "enum" else kind}


def _draft_and_ask(
    drafting: "Drafting", fields: "list[Spec]", args: argparse.Namespace, out: Printer
) -> "tuple[DraftDocument, list[_Decision]]":
    """The draft, and what was decided about its questions; columns that a person joins are drafted again."""
    from runner.engine.contract import DraftRequest  # noqa: PLC0415

    if not drafting.samples:
        return _without_samples(fields), []
    request = DraftRequest(known_only=bool(fields), rules=args.contract is None)
    document = drafting.document(drafting.samples, fields, request)
    joins = [_ask(q, out) for q in document.questions if q.kind == "same_column"]
    same = {header: label for one in joins if one.yes for header, label in one.question.change["same"].items()}
    if same:
        request = DraftRequest(known_only=bool(fields), rules=args.contract is None, same=same)
        document = drafting.document(drafting.samples, fields, request)
    return document, [*joins, *(_ask(q, out) for q in document.questions if q.kind != "same_column")]


def _without_samples(fields: "list[Spec]") -> "DraftDocument":
    from console.desk.drafts import DraftDocument, FieldEvidence  # noqa: PLC0415

    drafts = tuple(FieldEvidence(spec=spec, evidence="", personal=False) for spec in fields)
    return DraftDocument(draft=1, samples=0, rows=0, headless=False, fields=drafts, questions=(), notes=())


def _ask(question: "OpenQuestion", out: Printer) -> _Decision:
    """Ask a person, if one is there; otherwise nothing is changed."""
    if not (out.terminal and sys.stdin.isatty()):
        return _Decision(question, yes=False, by_person=False)
    examples = f"  (such as {', '.join(question.examples[:_SHOWN])})" if question.examples else ""
    out.line(f"{question.field}: {question.text}{examples}")
    try:
        answer = input("  y/N: ").strip().casefold()
    except EOFError:
        answer = ""
    return _Decision(question, yes=answer in ("y", "yes"), by_person=True, no=answer in ("n", "no"))


def _with_answers(spec: "Spec", decisions: "Sequence[_Decision]") -> "Spec":
    """A field with what a person decided about it."""
    for one in decisions:
        if one.question.field == spec["name"] and one.question.kind != "same_column":
            spec = {**spec, **one.change}
    return spec


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _report(
    folder: Path, samples: list[Path], decisions: list[_Decision], notes: list[str], out: Printer, *, fields: int
) -> None:
    manifest = folder / "manifest.json"
    command = _try_command(folder, samples[0]) if samples else None
    if out.as_json:
        facts: dict[str, object] = {"dir": str(folder), "files": _files(folder), "fields": fields}
        out.emit({**facts, "decisions": [one.as_json() for one in decisions], "notes": notes, "try": command})
        return
    based = "; each has a description that says what it is based on" if samples else ""
    out.line(f"{manifest}: {fields} fields{based}")
    for one in decisions:
        if not one.by_person:
            out.line(f"  not assumed: {one.question.field}: {one.question.text}")
    for note in notes:
        out.line(f"  {note}")
    if command:
        out.note(f"\nnow read it, then run: {command}\nand after each change: ade test {_as_word(folder)}")
