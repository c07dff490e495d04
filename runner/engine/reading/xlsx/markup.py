"""The package of an .xlsx and its XML: parts, relations, A1 references, events, and chunks of a part.

XML is parsed into events; DTDs, entity declarations and endless tags are refused, and prefixes are dropped. A large
part is cut into chunks at the ends of elements, so that each chunk can be read separately.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, Literal, NamedTuple
from xml.parsers import expat

from runner.engine.common.a1 import column_number
from runner.engine.reading import errors
from runner.engine.reading.books import Area, ReadLimits
from runner.engine.reading.containers import Entry, ZipArchive


def cell(reference: str) -> tuple[int, int]:
    """Return (row, column) of a reference such as ``$B$7``; 0 for a missing or invalid half."""
    reference = reference.replace("$", "").strip()
    letters = reference.rstrip("0123456789")
    digits = reference[len(letters) :]
    row = int(digits) if digits and len(digits) < 10 else 0
    return row, column_number(letters)


def area(reference: str) -> Area | None:
    """Return the area of ``A1:C5`` or ``A1``; None if it is not an area."""
    first, _, last = reference.partition(":")
    row, column = cell(first)
    last_row, last_column = cell(last or first)
    if min(row, column, last_row, last_column) < 1:
        return None
    return min(row, last_row), min(column, last_column), max(row, last_row), max(column, last_column)


XML_BLANKS = " \t\r\n"
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_ENTITY = re.compile("&(?:#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def unescaped(text: str) -> str:
    """Decode ``_x000D_`` escapes; surrogate pairs are joined, unpaired surrogates replaced."""
    if "_x" not in text:
        return text
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        plain = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def without_entities(text: str) -> str:
    """Decode the five named entities and numeric references; anything else stays as it is."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    """Return the character of an entity; U+FFFD for an invalid code."""
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


Attributes = dict[str, str]
Event = tuple[Literal["start"], str, Attributes] | tuple[Literal["end"], str, str]


class Markup:
    """An expat parser with limits against hostile parts."""

    def __init__(self, what: str, limits: ReadLimits) -> None:
        self._what = what
        self._max_token = limits.max_token_bytes
        self._fed = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.ordered_attributes = False
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.EntityDeclHandler = self._refuse_doctype
        self.parser = parser

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Parse the next bytes; raises InputUnreadable for what is not well-formed or hostile."""
        try:
            self.parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise errors.damaged(f"its part {self._what} is not well-formed XML") from error
        except (ValueError, LookupError) as error:  # an unknown encoding
            raise errors.damaged(f"its part {self._what} declares an unknown encoding") from error
        self._fed += len(piece)
        if self._fed - self.parser.CurrentByteIndex > self._max_token:
            raise errors.hostile(f"a tag or text longer than {self._max_token} bytes in {self._what}")

    def _refuse_doctype(self, *_: object) -> None:
        raise errors.hostile(f"its part {self._what} declares a document type or entities")


def local(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]


def events(pieces: Iterable[bytes], *, what: str, limits: ReadLimits, whole: bool = True) -> Iterator[Event]:
    """Yield start events with attributes, and end events with the text before them.

    Unless the part is ``whole``, it may end with open elements.
    """
    parsed: list[Event] = []
    text: list[str] = []
    depth = 0
    markup = Markup(what, limits)

    def start(name: str, attributes: Attributes) -> None:
        """Note the start of an element."""
        nonlocal depth
        depth += 1
        if depth > limits.max_depth:
            raise errors.hostile(f"elements nested more than {limits.max_depth} deep in {what}")
        text.clear()
        parsed.append(("start", local(name), attributes))

    def end(name: str) -> None:
        """Note the end of an element and the text since the last tag."""
        nonlocal depth
        depth -= 1
        parsed.append(("end", local(name), "".join(text)))
        text.clear()

    markup.parser.StartElementHandler = start
    markup.parser.EndElementHandler = end
    append: Callable[[str], None] = text.append
    markup.parser.CharacterDataHandler = append
    for piece in pieces:
        try:
            markup.feed(piece)
        except errors.InputUnreadable:
            yield from parsed  # the caller may need no more than what is well-formed
            raise
        yield from parsed
        parsed.clear()
    if whole:
        markup.feed(b"", last=True)
        yield from parsed


def attribute(attributes: Attributes, name: str) -> str | None:
    """Return the attribute with this local name, whatever its prefix."""
    value = attributes.get(name)
    if value is None:
        for key, held_value in attributes.items():
            if local(key) == name:
                return held_value
    return value


class Relation(NamedTuple):
    """Another part that a part refers to."""

    kind: str  # the last segment of its type: worksheet, styles, sharedStrings …
    part: str  # name of the target part


class OoxmlPackage:
    """The parts of an .xlsx or .xlsb and their relations."""

    def __init__(self, archive: ZipArchive, limits: ReadLimits) -> None:
        self.archive = archive
        self.limits = limits

    def relations(self, part: str) -> dict[str, Relation]:
        """Return the relations of a part by id; empty if it has none."""
        folder, name = posixpath.split(part)
        entry = self.archive.find(posixpath.join(folder, "_rels", f"{name}.rels"))
        if entry is None:
            return {}
        relations = {}
        for event in self.events(entry):
            if event[0] == "start" and event[1] == "Relationship" and event[2].get("TargetMode") != "External":
                relation = _parse_relation(folder, event[2])
                relations[event[2].get("Id", "")] = relation
        return relations

    def events(self, entry: Entry) -> Iterator[Event]:
        """Yield the events of a part other than sheets and strings."""
        if entry.size > self.limits.max_part_bytes:
            raise errors.too_large(f"its part {entry.name[-60:]!r} has {entry.size} bytes")
        return events(self.archive.stream(entry), what=entry.name, limits=self.limits)

    def related(self, relations: dict[str, Relation], kind: str) -> Entry | None:
        """Return the first part that exists among the relations of a kind."""
        for relation in relations.values():
            if relation.kind == kind and (entry := self.archive.find(relation.part)):
                return entry
        return None

    def workbook_part(self) -> str:
        """Return the name of the workbook part, wherever it is in the package."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument":
                if self.archive.find(relation.part) is None:
                    raise errors.damaged("its workbook part is missing")
                return relation.part
        for name in ("xl/workbook.xml", "xl/workbook.bin", "workbook.xml"):
            if self.archive.find(name) is not None:
                return name
        raise errors.not_a_spreadsheet(_kind_of_zip(self.archive))


def _parse_relation(folder: str, attributes: Attributes) -> Relation:
    """Make the relation that a Relationship element declares."""
    target = (attributes.get("Target") or "").replace("\\", "/")
    part = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
    return Relation(kind=(attribute(attributes, "Type") or "").rpartition("/")[2], part=part)


def _kind_of_zip(archive: ZipArchive) -> str:
    """Name what a zip without a workbook is, for a message."""
    names = archive.entries
    if any(name.startswith("word/") for name in names):
        return "a Word document (.docx)"
    if any(name.startswith("ppt/") for name in names):
        return "a PowerPoint presentation (.pptx)"
    if "META-INF/MANIFEST.MF" in names:
        return "a Java archive (.jar)"
    if any(name.startswith("Index/") and name.endswith(".iwa") for name in names):
        return "an Apple Numbers, Pages or Keynote document"
    inside = [name for name in names if name.lower().endswith((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".csv"))]
    if inside:
        return f"a zip that contains {len(inside)} spreadsheet(s)"
    return f"a zip with {len(names)} other file(s)"


_AT_LEAST = 256 * 1024  # bytes: enough rows to work by column, few enough to stay in the CPU cache
_MAX_HEAD = 1024 * 1024
_TAG_BLANKS = 1024  # bytes at a part's end within which the closing tag is
_ENCODING = re.compile(rb"""^<\?xml[^>]*encoding\s*=\s*["']([^"']*)["']""")
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")
# Of the elements that are searched for, compiled before any job.
_OPENINGS: Final = {tag: re.compile(rb"<(?:([A-Za-z_][\w.-]*):)?" + tag + rb"[\s/>]") for tag in (b"sheetData", b"si")}
_ENDINGS: Final = {
    tag: re.compile(rb"</(?:[\w.-]+:)?" + tag + rb"\s*>") for tag in (b"sheetData", b"row", b"sst", b"si")
}
_RARE_LETTERS: Final = {b"sheetData": b"h", b"sst": b"sst"}  # few programs write an h in the tags of rows and cells


class Opened:
    """A part read up to the first tag with a name, with or without a prefix.

    ``plain``: it can be processed as text from there on: UTF-8, with no DTD, comment or instruction before.
    ``root`` is the part's root element, without its attributes.
    """

    def __init__(self, pieces: Iterable[bytes], tag: bytes, *, closing: bytes = b"") -> None:
        source = iter(pieces)
        wanted = _OPENINGS[tag]
        raw = b""
        match = None
        while match is None and len(raw) < _MAX_HEAD and (piece := next(source, None)) is not None:
            raw += piece
            match = wanted.search(raw)
        start = match.start() if match else 0
        self.head = raw[:start]
        self.prefix = match[1] + b":" if match and match[1] else b""
        self.closing = closing or tag
        root = _ROOT.search(self.head)
        self.root = b"<" + root[1] + b">" if root else b""
        self.plain = (
            root is not None
            and match is not None
            and b"<!" not in self.head
            and self.head.count(b"<?") < 2
            and _is_utf8(self.head)
        )
        self.rest: Iterator[bytes] = chain([raw[start:]], source)

    def whole(self) -> Iterator[bytes]:
        """Return the part from its start."""
        return chain([self.head], self.rest)

    def is_empty_element(self) -> bool:
        """Whether the tag is an empty element such as ``<sheetData/>``."""
        first = next(self.rest, b"")
        self.rest = chain([first], self.rest)
        return first[: first.find(b">") + 1].endswith(b"/>")


class Chunks:
    """Texts that each end with an ``ending`` tag, the last one with the closing tag; prefixes are removed."""

    def __init__(self, opened: Opened, *, ending: bytes, what: str, limits: ReadLimits) -> None:
        self._pieces = opened.rest
        self._ending = b"</" + opened.prefix + ending + b">"
        self._loose_ending = _ENDINGS[ending]
        self._name = opened.closing
        self._rare_letter = _RARE_LETTERS[opened.closing]
        self._closing = _ENDINGS[opened.closing]
        self._before = 64 + len(opened.prefix)  # the closing tag begins at most this many bytes before its name
        self._searched = 0
        self._prefix = opened.prefix.decode("ascii", "replace")
        self._what = what
        self._max_element = limits.max_token_bytes * 4
        self._pending = b""
        self._last_chunk = b""

    def __iter__(self) -> Iterator[str]:
        """Yield the markup as texts that each end with a whole element; raises InputUnreadable if it is cut off."""
        for piece in self._pieces:
            raw = self._pending = self._pending + piece
            if len(raw) < _AT_LEAST:
                continue
            if self._find_closing_tag():
                break
            cut = raw.rfind(self._ending) + len(self._ending)
            if cut < len(self._ending) and (cut := self._loose_cut(raw)) < 0:
                if len(raw) > self._max_element:
                    raise errors.hostile(f"an element longer than {len(raw)} bytes in {self._what}")
                continue
            yield self._next_text(cut)
        closed = self._find_closing_tag()
        if closed is None:
            raise errors.truncated("a workbook")
        yield self._next_text(closed.end())

    def _find_closing_tag(self) -> re.Match[bytes] | None:
        """Find the closing tag, however it is written; its name is rare, so searching for it first is cheap, and for
        one rare letter of it cheaper still."""
        is_possible = self._pending.find(self._rare_letter, self._searched) >= 0
        position = self._pending.find(self._name, self._searched) if is_possible else -1
        while position >= 0:
            tag = self._pending.rfind(b"</", max(position - self._before, 0), position)
            if tag >= 0 and (closing := self._closing.match(self._pending, tag)):
                return closing
            position = self._pending.find(self._name, position + 1)
        self._searched = max(len(self._pending) - self._before - _TAG_BLANKS, 0)
        return None

    def _loose_cut(self, raw: bytes) -> int:
        """Return the end of the last element whose tag has blanks or another prefix; negative if there is none."""
        return max((ending.end() for ending in self._loose_ending.finditer(raw)), default=-1)

    def rest(self) -> Iterator[bytes]:
        """Return what follows the last chunk."""
        return chain([self._pending], self._pieces)

    def again(self) -> Iterator[bytes]:
        """Return the last chunk and what follows it, as in the part, for a parser."""
        return chain([self._last_chunk], self.rest())

    def _next_text(self, cut: int) -> str:
        """Return the next chunk up to a cut, decoded and without prefixes."""
        self._last_chunk, self._pending = self._pending[:cut], self._pending[cut:]
        self._searched = 0
        try:
            text = self._last_chunk.decode()
        except UnicodeDecodeError as error:
            raise errors.damaged(f"{self._what} is not UTF-8 text") from error
        if "\r" in text:  # XML normalizes line ends
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self._prefix:
            text = text.replace(f"<{self._prefix}", "<").replace(f"</{self._prefix}", "</")
        return text


def is_odd(chunk: str, prefixed: str) -> bool:
    """Whether only a parser can read a chunk: comments, CDATA, instructions and other prefixes may hide tags."""
    return hides_tags(chunk) or (":" in chunk and prefixed in chunk)


def hides_tags(chunk: str) -> bool:
    """Whether comments, CDATA or instructions may hide the tags of a chunk."""
    return ("!" in chunk and "<!" in chunk) or ("?" in chunk and "<?" in chunk)  # one character first is faster


def _is_utf8(head: bytes) -> bool:
    """Whether a part's head says, or leaves unsaid, that it is UTF-8."""
    if head[:3] == b"\xef\xbb\xbf":
        return True
    match = _ENCODING.match(head)
    return head[:1] == b"<" and (match is None or match[1].lower() in (b"utf-8", b"utf8", b"us-ascii"))


def drain(pieces: Iterator[bytes]) -> None:
    """Read to the end, for the checksum only."""
    for _ in pieces:
        pass


def number(attributes: Attributes, name: str) -> int:
    """Return a whole number in an attribute; 0 if absent or invalid."""
    text = attributes.get(name, "").strip().removeprefix("+")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
