"""Text as OOXML writes it: entities and escapes undone, blanks at its ends as Excel takes them."""

import re

XML_BLANKS = " \t\r\n"
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_ENTITY = re.compile("&(?:#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def unescaped(text: str) -> str:
    """Undo ``_x000D_`` escapes; halves of surrogate pairs are joined, lone ones replaced."""
    if "_x" not in text:
        return text
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        plain = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def without_entities(text: str) -> str:
    """Undo the five named entities and numbered characters; anything else stays as it is."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
