"""A web page cut into tags and texts, in one pass whatever it holds.

The standard library's parser searches again from every mark that is never closed, so that a page made of such marks
takes the square of its length. Here whatever is not closed ends with the page.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_STOP = re.compile(r"""=\s*(["'])|>""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_HUGE = re.compile("&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_RAW: Final = {
    name: re.compile(rf"</{name}(?![\w-])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "template")
}


def plain(text: str) -> str:
    """A text with its entities undone; numbers that no character has are not worked out."""
    if "&" not in text:
        return text
    return unescape(_HUGE.sub("\ufffd", text))


class Tag(NamedTuple):
    name: str  # lower case
    closes: bool
    attributes: str  # as they are written

    def get(self, name: str) -> str | None:
        """The value of an attribute, the first if it is given twice; None where it is absent."""
        for key, double, single, bare in _ATTRIBUTE.findall(self.attributes):
            if key.lower() == name:
                return plain(double or single or bare)
        return None


def tokens(page: str) -> Iterator[Tag | str]:
    """Tags and the texts between them, entities undone; comments, scripts and styles are left out."""
    at = 0
    while at < len(page):
        opened = page.find("<", at)
        if opened < 0:
            opened = len(page)
        if opened > at:
            yield plain(page[at:opened])
        if opened == len(page):
            return
        at = opened
        if page.startswith("<!--", at):
            at = _after(page, "-->", at + 2)
        elif page.startswith(("<!", "<?"), at):
            at = _after(page, ">", at)
        elif (found := _NAME.match(page, at)) is None:
            yield "<"  # a sign like any other
            at += 1
        else:
            end = _end(page, found.end())
            name, closes = found[1].lower(), page[at + 1] == "/"
            yield Tag(name, closes, page[found.end() : end])
            at = min(end + 1, len(page))
            if not closes and name in _RAW:
                close = _RAW[name].search(page, at)
                at = close.start() if close else len(page)


def _after(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def _end(page: str, at: int) -> int:
    """Where a tag's closing bracket stands; one inside a quoted value is none."""
    while (stop := _STOP.search(page, at)) is not None:
        if stop[0] == ">":
            return stop.start()
        closed = page.find(stop[1], stop.end())
        if closed < 0:
            break
        at = closed + 1
    return len(page)
