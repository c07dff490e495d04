"""`ade learn SOURCE… --manifest M`: put confirmed columns into a memory."""

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from console.cli.commands.map_ import order_of
from console.cli.commands.scan import scanned
from console.cli.desk import read_manifest
from console.cli.guard import Exit
from console.cli.memory_place import add_arguments, place_of
from console.cli.output import Printer
from core.errors import UsageError
from core.keys import SPREADSHEETS
from core.manifests import Manifest
from core.memories import Fact, HeaderFact, MemoryInvalid, ShapeFact, SpellingFact, learn, shapes_in

EPILOG = """\
examples:
  ade learn confirmed.jsonl --manifest manifest.json --memory members.memory.json
  ade learn artifact.json --manifest manifest.json --tenant acme --by ann
  ade learn normalized.xlsx --manifest manifest.json --tenant acme --by ann

A source is a file of JSON lines ({"header": "CALLE", "field": "street"}; field null: no field), an artifact.json (the
columns that became fields), or a normalized.xlsx in which headers were corrected, with its artifact.json beside it.
"""
_LARGEST: Final = 64 * 1024 * 1024
_MOST: Final = 200_000  # facts of one call
_KEYS: Final = {"header", "field", "by", "sender", "count", "value", "means"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", metavar="SOURCE", nargs="+", type=Path)
    parser.add_argument("--manifest", metavar="M", required=True, type=Path)
    parser.add_argument("--by", metavar="NAME", default="", help="the person who says so: beats every count")
    parser.add_argument(
        "--sender",
        metavar="FOLDER",
        help="whose files these are: the folder in the inbox; an artifact says it by itself",
    )
    add_arguments(parser, workflow=False)
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    manifest = read_manifest(args.manifest)
    place = place_of(args, manifest.name)
    facts: list[Fact] = []
    skipped = 0
    for source in args.sources:
        for fact in _facts(source, args, manifest):
            if fact is None:
                skipped += 1
            else:
                facts.append(fact)
            if len(facts) > _MOST:
                raise UsageError(f"{source}: more than {_MOST} facts; learn them in parts")
    tables = sum(isinstance(fact, ShapeFact) for fact in facts)
    now = datetime.now(UTC)
    try:
        memory = place.change(lambda memory: learn(memory, facts, at=now))
    except MemoryInvalid as error:
        raise UsageError(f"memory {place.name}: {error}") from None
    if out.as_json:
        learnt = {"learnt": len(facts) - tables, "tables": tables, "skipped": skipped}
        out.emit({"memory": place.name, **learnt, "headers": len(memory.headers)})
    else:
        more = f", {skipped} without a header left out" if skipped else ""
        more += f", and the shape of {tables} table{'' if tables == 1 else 's'}" if tables else ""
        out.line(f"{place.name}: {len(facts) - tables} learnt{more}; {len(memory.headers)} headers known")
    return Exit.OK


def _facts(source: Path, args: argparse.Namespace, manifest: Manifest) -> Iterator[Fact | None]:
    known = {f.name for f in manifest.fields}
    if source.name.lower().endswith(SPREADSHEETS):
        yield from _corrected(source, args, known)
        return
    text = _text(source)
    document = _artifact(text)
    if document is None:
        yield from _lines(source, text, args, manifest)
        return
    sender = _sender(document, args)
    for header, field in _mapping(source, document):
        if field in known:
            yield HeaderFact(header, field, args.by, sender)
    yield from shapes_in(document.get("profile"), sender=sender, by=args.by, decided=False)


def _sender(document: dict[str, Any], args: argparse.Namespace) -> str:
    """Who dropped the file of an artifact, unless the command says so."""
    profile = document.get("profile")
    known = profile.get("sender") if isinstance(profile, dict) else None
    if args.sender is not None or not isinstance(known, str):
        return (args.sender or "").rstrip("/")
    return known


def _text(source: Path) -> str:
    try:
        with source.open("rb") as file:
            body = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror}") from None
    if len(body) > _LARGEST:
        raise UsageError(f"{source} has more than {_LARGEST} bytes; learn it in parts")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 (byte {error.start})") from None


def _artifact(text: str) -> dict[str, Any] | None:
    if "artifact_version" not in text[:200]:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "mapping" in document else None


def _lines(source: Path, text: str, args: argparse.Namespace, manifest: Manifest) -> Iterator[Fact | None]:
    for n, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        at = f"{source}, line {n}"
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageError(f'{at} is not JSON; write {{"header": "CALLE", "field": "street"}}') from None
        if (
            not isinstance(given, dict)
            or not given.keys() <= _KEYS
            or not ({"header", "field"} <= given.keys() or {"value", "means"} <= given.keys())
        ):
            raise UsageError(
                f'{at}: write {{"header": "CALLE", "field": "street"}}, with by, sender and count if you like'
            )
        yield _fact(at, given, args, manifest)


def _fact(at: str, given: dict[str, Any], args: argparse.Namespace, manifest: Manifest) -> Fact | None:
    field, known = given.get("field"), {f.name for f in manifest.fields}
    if field is not None and field not in known:
        raise UsageError(f"{at}: {field!r} is no field of the manifest; known: {', '.join(sorted(known))}")
    by, sender, count = given.get("by", args.by), given.get("sender", args.sender or ""), given.get("count", 1)
    if not isinstance(by, str) or not isinstance(sender, str) or type(count) is not int or count < 1:
        raise UsageError(f"{at}: by and sender are texts, count is a whole number from 1")
    if "value" in given:
        if field is None or not isinstance(given["value"], str) or not isinstance(given.get("means"), str):
            raise UsageError(f'{at}: write {{"field": "plan", "value": "gld", "means": "gold"}}')
        _check_allowed(at, field, given["means"], manifest)
        return SpellingFact(field, given["value"], given["means"], by, sender, count)
    if not isinstance(given["header"], str):
        raise UsageError(f"{at}: the header is a text")
    return HeaderFact(given["header"], field, by, sender, count) if given["header"].strip() else None


def _check_allowed(at: str, field: str, means: str, manifest: Manifest) -> None:
    """Spellings are learnt only for fields with allowed values; other cell values are nobody's business."""
    allowed = next(f.allowed for f in manifest.fields if f.name == field)
    if allowed is None:
        raise UsageError(f"{at}: field {field} has no allowed values, so a spelling of one cannot be learnt")
    if isinstance(allowed, (list, tuple)) and means not in map(str, allowed):
        raise UsageError(f"{at}: {means!r} is not one of the allowed values of {field}")


def _mapping(source: Path, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    try:
        for column in document["mapping"]:
            if column["target"] is not None and column["header"]:
                yield str(column["header"]), str(column["target"])
    except (KeyError, TypeError):
        raise UsageError(f"{source} is no artifact that this program can read") from None


def _corrected(source: Path, args: argparse.Namespace, known: set[str]) -> Iterator[Fact]:
    """What a person changed in the header row of a normalized.xlsx, told by the artifact of the same job."""
    beside = source.parent / "artifact.json"
    document = _artifact(_text(beside)) if beside.is_file() else None
    if document is None:
        raise UsageError(f"{source}: its artifact.json is not beside it; download both (`ade outputs JOB --to DIR`)")
    found = next(iter(scanned([str(source)], order_of(args.manifest))))
    if "error" in found or not found["tables"]:
        raise UsageError(f"{source}: {found.get('error', 'no table was found')}")
    now = {c["column"]: c["header"] for c in found["tables"][0]["columns"]}
    headers = {field: header for header, field in _mapping(source, document)}
    sender = _sender(document, args)
    yield from shapes_in(document.get("profile"), sender=sender, by=args.by, decided=False)
    try:
        for column in document["output"]["columns"]:
            was, text = column["field"], now.get(column["column"])
            header = headers.get(was) if was is not None else column["header"]
            if header and text in known:
                yield HeaderFact(header, text, args.by, sender)
            elif header and was is not None and text is not None:
                yield HeaderFact(header, None, args.by, sender)
    except (KeyError, TypeError):
        raise UsageError(f"{beside} is no artifact that this program can read") from None
