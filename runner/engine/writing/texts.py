"""Text on its way into XML: what must be escaped, cut or spelled differently."""

import re
from collections.abc import Sequence
from typing import Final

MAX_TEXT: Final = 32_767  # UTF-16 units: a character beyond U+FFFF counts twice
_FORBIDDEN: Final = "\x00-\x08\x0b-\x1f\ufffe\uffff"  # XML cannot hold these
_ESCAPE_LIKE = re.compile(f"_(?=x[0-9A-Fa-f]{{4}}[_{_FORBIDDEN}])")  # a forbidden one will begin with "_", too
_UNSPEAKABLE = re.compile(f"[{_FORBIDDEN}]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECTS: Final = ("&", "<", ">")


def escaped(text: str) -> str:
    """`text` as XML content. Characters XML cannot hold are spelled `_xHHHH_`, as spreadsheets do."""
    if "_x" in text:
        text = _ESCAPE_LIKE.sub("_x005F_", text)
    if not text.isprintable():
        text = _UNSPEAKABLE.sub(lambda c: f"_x{ord(c[0]):04X}_", text)
        text = _SURROGATE.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attribute(text: str) -> str:
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def cell_text(text: str) -> str:
    """A cell's text with the element around it."""
    if too_long(text):
        text = cut(text, MAX_TEXT)
    keep = ' xml:space="preserve"' if text[:1].isspace() or text[-1:].isspace() or "\n" in text else ""
    return f"<is><t{keep}>{escaped(text)}</t></is>"


def too_long(text: str) -> bool:
    """Whether a text is more than a cell can hold."""
    if 2 * len(text) <= MAX_TEXT or text.isascii():
        return len(text) > MAX_TEXT
    return len(text) + len(_BEYOND.findall(text)) > MAX_TEXT


def cut(text: str, units: int) -> str:
    """The start of a text, no more than so many UTF-16 units; no character is cut in two."""
    raw = text[:units].encode("utf-16-le", "surrogatepass")[: 2 * units]
    return raw.decode("utf-16-le", "ignore")


def harmless(texts: Sequence[str]) -> bool:
    """True where none of the texts needs escaping, cutting or blanks kept: one look for a whole chunk."""
    joined = "|".join(texts)
    if not joined.isprintable() or joined[:1] == " " or joined[-1:] == " ":
        return False
    if any(suspect in joined for suspect in _SUSPECTS):
        return False
    if "_" in joined and "_x" in joined:  # one character is found many times as fast as two
        return False
    if " " in joined and (" |" in joined or "| " in joined):
        return False
    if 2 * len(joined) <= MAX_TEXT:
        return True
    longest = max(map(len, texts))
    if joined.isascii() or 2 * longest <= MAX_TEXT:
        return longest <= MAX_TEXT
    return not any(map(too_long, texts))
