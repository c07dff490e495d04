"""Text as OOXML writes it: escapes undone."""

import re

_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


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
