"""Text on its way into XML: what must be escaped, cut or spelled differently."""

import re
from collections.abc import Sequence
from typing import Final

MAX_TEXT: Final = 32_767
_ESCAPE_LIKE = re.compile(r"_(x[0-9A-Fa-f]{4}_)")
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECTS: Final = ("&", "<", ">")


def escaped(text: str) -> str:
    """`text` as XML content. Characters XML cannot hold are spelled `_xHHHH_`, as spreadsheets do."""
    if "_x" in text:
        text = _ESCAPE_LIKE.sub(r"_x005F_\1", text)
    if not text.isprintable():
        text = _UNSPEAKABLE.sub(lambda c: f"_x{ord(c[0]):04X}_", text)
        text = _SURROGATE.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attribute(text: str) -> str:
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def cell_text(text: str) -> str:
    """A cell's text with the element around it."""
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT]
    keep = ' xml:space="preserve"' if text[:1].isspace() or text[-1:].isspace() or "\n" in text else ""
    return f"<is><t{keep}>{escaped(text)}</t></is>"


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
    return len(joined) <= MAX_TEXT or max(map(len, texts)) <= MAX_TEXT
