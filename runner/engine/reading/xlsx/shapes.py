"""Rows of one shape have the same cells, styles and types: worked out once, then read by column.

A row is cut at its values. What stands between them, with the row's number taken out of the references, is
its shape: ``<c r="A" t="s"><v></c><c r="B" s="2"><v></c>``. Nearly all rows of a sheet share a few shapes.
"""

import re
from dataclasses import dataclass, field

from runner.engine.reading.values import NO_CACHED_VALUE, Value
from runner.engine.reading.xlsx.coordinates import column_number

_CELL = re.compile(
    r"""\s*<c((?:\s+[\w:.]+="[^"<>]*")*)\s*
        (?:/>|>\s*(<f/>)?\s*(?:(<v>)|(<v\s*/>))?\s*</c>)\s*""",
    re.VERBOSE,
)
_ROW_HEAD = re.compile(r'(?:\s+[\w:.]+="[^"<>]*")*\s*(/)?>\s*')
_NUMBERED = re.compile(r"\sr=")  # the row's number, not where it was looked for
_ATTRIBUTE = re.compile(r'([\w:.]+)="([^"]*)"')


@dataclass(slots=True)
class Slot:
    """Where a value of a row goes and how it is stored."""

    column: int  # 0-based
    kind: str
    style: int
    formula: bool


@dataclass(slots=True)
class Shape:
    """What all rows of one shape have in common: one value per slot."""

    referenced: int = 0  # cells that carry a reference: as many row numbers were taken out
    parts: int = -1  # pieces that cutting at the values gives; never equal for rows that only a parser can read
    width: int = 0
    slots: list[Slot] = field(default_factory=list)
    fixed: dict[int, Value] = field(default_factory=dict)  # columns with no stored text


def shape_of(text: str, max_columns: int) -> Shape:
    """Work out a shape from the rest of the row's own tag to its end."""
    shape = Shape()
    head = _ROW_HEAD.match(text)
    if head is None or _NUMBERED.search(head[0]):
        return shape
    column = 0
    at = head.end()
    end = text.find("</row>", at) if not head[1] else at
    while at < end:
        match = _CELL.match(text, at)
        if match is None:
            return shape
        at = match.end()
        attributes = dict(_ATTRIBUTE.findall(match[1]))
        reference = attributes.get("r")
        if reference is not None:
            shape.referenced += 1
            column = column_number(reference)
        else:
            column += 1
        style = attributes.get("s", "")
        if not 0 < column <= max_columns or (style and not (style.isdecimal() and len(style) < 9)):
            return shape
        _place(shape, column - 1, attributes.get("t", ""), int(style or 0), match)
    if at == end and len({slot.column for slot in shape.slots}) == len(shape.slots):
        shape.parts = 2 * len(shape.slots) + 1
    return shape


def _place(shape: Shape, column: int, kind: str, style: int, match: re.Match[str]) -> None:
    formula, value = match[2] is not None, match[3] is not None
    if value:
        shape.slots.append(Slot(column, kind, style, formula))
    elif formula and not (kind == "str" and match[4]):
        shape.fixed[column] = NO_CACHED_VALUE
    else:
        return
    shape.width = max(shape.width, column + 1)
