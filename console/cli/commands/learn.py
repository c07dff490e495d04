"""`ade learn SOURCE… --manifest M`: put confirmed columns into a memory."""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard

from console.cli.commands.scan import scanned
from console.cli.guard import Exit
from console.cli.memory_place import add_arguments, place_of
from console.cli.output import Printer
from console.desk.files import find_manifest, read_manifest
from console.desk.trials import TENANT
from core.errors import UsageError
from core.keys import SPREADSHEETS
from core.manifests import Manifest
from core.memories import (
    Fact,
    HeaderFact,
    Memory,
    MemoryInvalid,
    ShapeFact,
    SpellingFact,
    folded,
    learn,
    left_out,
    shapes_in,
)

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
    manifest = read_manifest(find_manifest(args.manifest))
    place = place_of(args, manifest.name)
    facts: list[Fact] = []
    skipped = 0
    for source in args.sources:
        for fact in _facts(source, args, manifest, out):
            if fact is None:
                skipped += 1
            else:
                facts.append(fact)
            if len(facts) > _MOST:
                raise UsageError(f"{source}: more than {_MOST} facts; learn them in parts")
    tables = sum(isinstance(fact, ShapeFact) for fact in facts)
    now = datetime.now(UTC)
    full = 0

    def taught(memory: Memory) -> Memory:
        nonlocal full
        new = learn(memory, facts, at=now)
        full = left_out(memory, facts, new)
        return new

    try:
        memory = place.change(taught)
    except MemoryInvalid as error:
        raise UsageError(f"memory {place.name}: {error}") from None
    if out.as_json:
        learnt = {"learnt": len(facts) - tables, "tables": tables, "skipped": skipped, "left_out": full}
        out.emit({"memory": place.name, **learnt, "headers": len(memory.headers)})
    else:
        more = f", {skipped} without a header left out" if skipped else ""
        more += f", and the shape of {tables} table{'' if tables == 1 else 's'}" if tables else ""
        out.line(f"{place.name}: {len(facts) - tables} learnt{more}; {len(memory.headers)} headers known")
        if full:
            many = f"{full} entr{'y' if full == 1 else 'ies'}"
            out.note(f"the memory is full: {many}, said least often and longest ago, had no room")
    return Exit.OK


def _facts(source: Path, args: argparse.Namespace, manifest: Manifest, out: Printer) -> Iterator[Fact | None]:
    known = {f.name for f in manifest.fields}
    if source.name.lower().endswith(SPREADSHEETS):
        yield from _corrected(source, args, manifest, out)
        return
    text = _text(source)
    document = _artifact(text)
    if document is None:
        yield from _lines(source, text, args, manifest)
        return
    _check_tenant(source, document, args)
    sender = _sender(document, args)
    for header, field in _mapping(source, document):
        if field in known:
            yield HeaderFact(header, field, args.by, sender)
    yield from shapes_in(document.get("profile"), sender=sender, by=args.by, decided=False)


def _sender(document: Mapping[str, object], args: argparse.Namespace) -> str:
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


def _artifact(text: str) -> Mapping[str, object] | None:
    if "artifact_version" not in text[:200]:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "mapping" in document else None


def _lines(source: Path, text: str, args: argparse.Namespace, manifest: Manifest) -> Iterator[Fact | None]:
    for n, line in enumerate(text.split("\n"), 1):  # a header may hold other signs that end lines
        if not line.strip():
            continue
        at = f"{source}, line {n}"
        try:
            fact = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageError(f'{at} is not JSON; write {{"header": "CALLE", "field": "street"}}') from None
        if (
            not isinstance(fact, dict)
            or not fact.keys() <= _KEYS
            or ({"header", "field"} <= fact.keys()) == ({"value", "means"} <= fact.keys())
        ):
            raise UsageError(
                f'{at}: write {{"header": "CALLE", "field": "street"}}, with by, sender and count if you like'
            )
        yield _fact(at, fact, args, manifest)


def _fact(at: str, fact: Mapping[str, object], args: argparse.Namespace, manifest: Manifest) -> Fact | None:
    field, known = fact.get("field"), {f.name for f in manifest.fields}
    if field is not None and (not isinstance(field, str) or field not in known):
        raise UsageError(f"{at}: {field!r} is no field of the manifest; known: {', '.join(sorted(known))}")
    by, sender, count = fact.get("by", args.by), fact.get("sender", args.sender or ""), fact.get("count", 1)
    if not isinstance(by, str) or not isinstance(sender, str) or type(count) is not int or count < 1:
        raise UsageError(f"{at}: by and sender are texts, count is a whole number from 1")
    if "value" in fact:
        value, means = fact["value"], fact.get("means")
        if field is None or not _is_text(value) or not _is_text(means):
            raise UsageError(f'{at}: write {{"field": "plan", "value": "gld", "means": "gold"}}')
        _check_allowed(at, field, value, means, manifest)
        return SpellingFact(field, value, means, by, sender, count)
    header = fact["header"]
    if not isinstance(header, str):
        raise UsageError(f"{at}: the header is a text")
    return HeaderFact(header, field, by, sender, count) if header.strip() else None


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _check_allowed(at: str, field: str, value: str, means: str, manifest: Manifest) -> None:
    """Spellings are learnt only for fields with allowed values; other cell values are nobody's business."""
    allowed = next(f.allowed for f in manifest.fields if f.name == field)
    if allowed is None:
        raise UsageError(f"{at}: field {field} has no allowed values, so a spelling of one cannot be learnt")
    if isinstance(allowed, (list, tuple)) and means not in map(str, allowed):
        raise UsageError(f"{at}: {means!r} is not one of the allowed values of {field}")
    if isinstance(allowed, (list, tuple)) and value.strip().casefold() in (str(one).casefold() for one in allowed):
        raise UsageError(f"{at}: {value!r} is an allowed value of {field} and means itself")


def _list(document: object, name: str) -> list[Any]:
    """A list of an artifact; raises TypeError or KeyError if it has none of that name."""
    found = document[name] if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise TypeError(name)
    return found


def _mapping(source: Path, document: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    try:
        for column in _list(document, "mapping"):
            if column["target"] is not None and column["header"]:
                yield str(column["header"]), str(column["target"])
    except (KeyError, TypeError):
        raise UsageError(f"{source} is no artifact that this program can read") from None


def _corrected(source: Path, args: argparse.Namespace, manifest: Manifest, out: Printer) -> Iterator[Fact]:
    """What a person changed in the header row of a normalized.xlsx, found by the artifact of the same job."""
    beside = source.parent / "artifact.json"
    document = _artifact(_text(beside)) if beside.is_file() else None
    if document is None:
        raise UsageError(f"{source}: its artifact.json is not beside it; download both (`ade outputs JOB --to DIR`)")
    _check_tenant(beside, document, args)
    result = _result_of(beside, document)
    now = _header_row(source, manifest, result.sheets)
    _check_places(source, result.columns, now)
    sender = _sender(document, args)
    yield from shapes_in(document.get("profile"), sender=sender, by=args.by, decided=False)
    for column, field in _renamed(source, manifest, result.columns, now):
        headers = result.headers_of(column)
        if field == column.field:
            yield from [HeaderFact(header, field, args.by, sender) for header in headers if field is not None]
        elif len(set(map(folded, headers))) > 1:
            raise UsageError(
                f"{source}, column {column.letters} comes from {_listed(headers)}; say which as JSON lines"
            )
        elif headers:
            out.note(f"{headers[0]} is {field or 'no field'}, not {column.field or 'a column without a field'}")
            yield HeaderFact(headers[0], field, args.by, sender)


class ResultColumn(NamedTuple):
    """A column of a result, as its artifact has it."""

    letters: str
    header: str
    field: str | None


class LearntResult(NamedTuple):
    """A result as its artifact describes it."""

    columns: list[ResultColumn]
    sheets: set[str]
    by_field: dict[str, list[str]]  # the headers of the sender's files by the field that each became
    headers: set[str]  # of all columns of the sender's files

    def headers_of(self, column: ResultColumn) -> list[str]:
        """The headers of the sender's files that a column of the result comes from."""
        if column.field is not None:
            return self.by_field.get(column.field, [])
        return list(self.headers & {column.header})


def _result_of(path: Path, artifact: Mapping[str, object]) -> LearntResult:
    by_field: dict[str, list[str]] = {}
    for header, field in _mapping(path, artifact):
        by_field.setdefault(field, []).append(header)
    try:
        columns = [
            ResultColumn(str(c["column"]), str(c["header"]), None if c["field"] is None else str(c["field"]))
            for c in _list(artifact["output"], "columns")
        ]
        sheets = set(map(str, _list(artifact["output"], "sheets")))
        headers = {str(c["header"]) for c in _list(artifact, "mapping")}
    except (KeyError, TypeError):
        raise UsageError(f"{path} is no artifact that this program can read") from None
    return LearntResult(columns, sheets, by_field, headers)


def _renamed(
    source: Path, manifest: Manifest, columns: Sequence[ResultColumn], now: Mapping[str, str]
) -> Iterator[tuple[ResultColumn, str | None]]:
    """The columns that still have a header, each with the field that its header names now."""
    names = {folded(text): f.name for f in manifest.fields for text in (f.label or f.name, f.name)}
    named: dict[str, str] = {}
    for column in columns:
        text = now.get(column.letters)
        if text is None:
            continue
        field = column.field if text == column.header else names.get(folded(text))
        if field is not None and named.setdefault(field, column.letters) != column.letters:
            raise UsageError(f"{source}: columns {named[field]} and {column.letters} are both called {text}; name one")
        yield column, field


def _header_row(source: Path, manifest: Manifest, sheets: set[str]) -> dict[str, str]:
    """The headers of the corrected table by their letters. What the manifest says about reading is for senders."""
    plain = Manifest(manifest=1, name=manifest.name, fields=manifest.fields).model_dump(mode="json")
    found = next(iter(scanned([str(source)], {"manifest": plain, "inputs": [], "memories": []})))
    if "error" in found or not found["tables"]:
        raise UsageError(f"{source}: {found.get('error', 'no table was found')}")
    tables = [t for t in found["tables"] if t["sheet"] in sheets] or found["tables"]
    return {c["column"]: c["header"] for c in tables[0]["columns"] if c["header"] is not None}


def _check_places(source: Path, columns: Sequence[ResultColumn], now: Mapping[str, str]) -> None:
    """Refuse a table whose columns were moved: its header texts no longer tell which column is which.

    A field's name above another column is a correction, unless several went the same way or its own column is gone.
    """
    places = sorted({*now, *(c.letters for c in columns)}, key=lambda letters: (len(letters), letters))
    was = {c.letters: c for c in columns}
    home = {c.header: c.letters for c in columns}
    moved = {at: home[text] for at, text in now.items() if text in home and (at not in was or was[at].header != text)}
    steps = [places.index(to) - places.index(of) for to, of in moved.items()]
    if len(set(steps)) < len(steps) or any(
        to not in was or was[of].field is None or (of not in now and was[to].field is not None)
        for to, of in moved.items()
    ):
        what = _listed(now[at] for at in moved)
        raise UsageError(
            f"{source}: columns were moved, added or removed ({what}); change only texts of the header row"
        )


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))[:200]


def _check_tenant(source: Path, document: Mapping[str, object], args: argparse.Namespace) -> None:
    """What one tenant's files taught is no other tenant's business, unless the memory is a shared one."""
    job = document.get("job")
    whose = job.get("tenant") if isinstance(job, dict) else None
    if args.tenant is not None and whose not in (None, args.tenant, TENANT):
        raise UsageError(
            f"{source} is of tenant {whose}, the memory of {args.tenant}; learn it into a shared one with --key"
        )
