"""A part cut into texts that end where an element ends, so that each can be taken apart alone."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits

_AT_LEAST = 256 * 1024  # enough rows at once to work by column, few enough to stay in the processor's cache
_MAX_HEAD = 1024 * 1024
_TAG_BLANKS = 1024  # bytes at a part's end that a closing tag may reach over
_ENCODING = re.compile(rb"""^<\?xml[^>]*encoding\s*=\s*["']([^"']*)["']""")
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")


class Opened:
    """A part read up to its first tag of a name, with or without a prefix.

    ``plain`` tells whether it may be cut as text from there: UTF-8, no DTD, no comment and no instruction before it.
    ``root`` is the part's root element, without its attributes.
    """

    def __init__(self, pieces: Iterable[bytes], tag: bytes, *, closing: bytes = b"") -> None:
        source = iter(pieces)
        wanted = re.compile(rb"<(?:([A-Za-z_][\w.-]*):)?" + tag + rb"[\s/>]")
        raw = b""
        match = None
        while match is None and len(raw) < _MAX_HEAD and (piece := next(source, None)) is not None:
            raw += piece
            match = wanted.search(raw)
        at = match.start() if match else 0
        self.head = raw[:at]
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
        self.rest: Iterator[bytes] = chain([raw[at:]], source)

    def whole(self) -> Iterator[bytes]:
        return chain([self.head], self.rest)

    def is_empty_element(self) -> bool:
        """Whether the tag that was looked for is closed at once, as ``<sheetData/>``."""
        first = next(self.rest, b"")
        self.rest = chain([first], self.rest)
        return first[: first.find(b">") + 1].endswith(b"/>")


class Chunks:
    """Texts that each end with an ``ending`` tag, the last one with the closing tag; prefixes taken out."""

    def __init__(self, opened: Opened, *, ending: bytes, what: str, limits: ReadLimits) -> None:
        self._pieces = opened.rest
        self._ending = b"</" + opened.prefix + ending + b">"
        self._loose_ending = re.compile(rb"</(?:[\w.-]+:)?" + ending + rb"\s*>")
        self._name = opened.closing
        self._closing = re.compile(rb"</(?:[\w.-]+:)?" + opened.closing + rb"\s*>")
        self._before = 64 + len(opened.prefix)  # bytes before the closing tag's name that it may begin in
        self._searched = 0
        self._prefix = opened.prefix.decode("ascii", "replace")
        self._what = what
        self._max_element = limits.max_token_bytes * 4
        self._held = b""
        self._given = b""

    def __iter__(self) -> Iterator[str]:
        for piece in self._pieces:
            raw = self._held = self._held + piece
            if len(raw) < _AT_LEAST:
                continue
            if self._closed():
                break
            cut = raw.rfind(self._ending) + len(self._ending)
            if cut < len(self._ending) and (cut := self._loose_cut(raw)) < 0:
                if len(raw) > self._max_element:
                    raise errors.hostile(f"one element of over {len(raw)} bytes in {self._what}")
                continue
            yield self._text(cut)
        closed = self._closed()
        if closed is None:
            raise errors.truncated("a workbook")
        yield self._text(closed.end())

    def _closed(self) -> re.Match[bytes] | None:
        """The closing tag, however it is written: its name is rare, so that finding it first costs nothing."""
        at = self._held.find(self._name, self._searched)
        while at >= 0:
            tag = self._held.rfind(b"</", max(at - self._before, 0), at)
            if tag >= 0 and (found := self._closing.match(self._held, tag)):
                return found
            at = self._held.find(self._name, at + 1)
        self._searched = max(len(self._held) - self._before - _TAG_BLANKS, 0)
        return None

    def _loose_cut(self, raw: bytes) -> int:
        """Where the last element ends whose tag holds blanks or another prefix; negative where none does."""
        return max((found.end() for found in self._loose_ending.finditer(raw)), default=-1)

    def rest(self) -> Iterator[bytes]:
        """What follows the text that was given last."""
        return chain([self._held], self._pieces)

    def again(self) -> Iterator[bytes]:
        """The text that was given last and what follows it, as it stands in the part, for a parser."""
        return chain([self._given], self.rest())

    def _text(self, cut: int) -> str:
        self._given, self._held = self._held[:cut], self._held[cut:]
        self._searched = 0
        try:
            text = self._given.decode()
        except UnicodeDecodeError as error:
            raise errors.damaged(f"{self._what} is not UTF-8 text") from error
        if "\r" in text:  # XML reads every line end as one newline
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self._prefix:
            text = text.replace(f"<{self._prefix}", "<").replace(f"</{self._prefix}", "</")
        return text


def is_odd(chunk: str, prefixed: str) -> bool:
    """Comments, CDATA and processing instructions may hide tags, a second prefix does: only a parser can tell."""
    return (
        ("!" in chunk and "<!" in chunk)  # one letter is found faster than two
        or ("?" in chunk and "<?" in chunk)
        or (":" in chunk and prefixed in chunk)
    )


def _is_utf8(head: bytes) -> bool:
    if head[:3] == b"\xef\xbb\xbf":
        return True
    match = _ENCODING.match(head)
    return head[:1] == b"<" and (match is None or match[1].lower() in (b"utf-8", b"utf8", b"us-ascii"))


def drain(pieces: Iterator[bytes]) -> None:
    """Read to the end for the checksum alone."""
    for _ in pieces:
        pass
