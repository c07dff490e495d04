"""Names for a table's columns: stacked header rows joined, captions carried over the columns they span."""

from collections.abc import Sequence

from runner.engine.structure.rows import Row
from runner.engine.structure.tables import Column, letters

JOIN = " / "
MAX_NAME = 200
Area = tuple[int, int, int, int]


def columns(head: Sequence[Row], left: int, right: int, merged: Sequence[Area] = ()) -> tuple[Column, ...]:
    """The columns from `left` to `right` (0-based, both included) under these header rows."""
    lines = [_texts(row, left, right) for row in head]
    for at, row in enumerate(head[:-1]):
        _carry(lines[at], lines[at + 1 :], [m for m in merged if m[0] <= row.number <= m[2]], left)
    out: list[Column] = []
    for offset in range(right - left + 1):
        parts: list[str] = []
        for line in lines:
            text = line[offset]
            if text and (not parts or parts[-1] != text):
                parts.append(text)
        index = left + offset + 1
        name = JOIN.join(parts)[:MAX_NAME] or f"Column {letters(index)}"
        out.append(Column(index, name, tuple(parts), generated=not parts))
    return tuple(out)


def _texts(row: Row, left: int, right: int) -> list[str]:
    return [_text(row.values[at]) if at < len(row.values) else "" for at in range(left, right + 1)]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())


def _carry(line: list[str], below: Sequence[list[str]], merged: Sequence[Area], left: int) -> None:
    """A caption reaches to the right: as its merge says, else until another cell with a leaf below."""
    spans = {m[1] - left - 1: m[3] - left - 1 for m in merged if m[3] > m[1]}
    if spans:
        for start, end in spans.items():
            if 0 <= start < len(line):
                for at in range(start, min(end, len(line) - 1) + 1):
                    line[at] = line[at] or line[start]
        return
    caption = ""
    for at, text in enumerate(line):
        leaf = any(other[at] for other in below)
        if text:
            # A cell with nothing under it is a leaf itself and spans nothing.
            caption = text if leaf else ""
        elif not leaf:
            caption = ""
        else:
            line[at] = caption
