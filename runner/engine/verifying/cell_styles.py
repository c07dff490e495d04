"""The looks of the cells of rejects.xlsx: what a box described of them, checked, and the styles part made of it."""

import json
import re
from typing import Any, Final

from runner.engine.protocol import BadOutput
from runner.engine.writing.parts import attribute

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_BORDERS: Final = frozenset({
    "thin", "medium", "dashed", "dotted", "thick", "double", "hair", "mediumDashed", "dashDot", "mediumDashDot",
    "dashDotDot", "mediumDashDotDot", "slantDashDot",
})  # fmt: skip
_HORIZONTAL: Final = frozenset(["left", "center", "right", "fill", "justify", "centerContinuous", "distributed"])
_VERTICAL: Final = frozenset(["top", "center", "bottom", "justify", "distributed"])
_ALIGNMENTS: Final = {"h": "horizontal", "v": "vertical", "indent": "indent", "turn": "textRotation"}
_STACKED: Final = 255  # in place of degrees: a text whose letters stand one below the other
_FIRST_OWN_FORMAT: Final = 164  # the number of the first format that is not built in
_RGB = re.compile(r"[0-9A-F]{6}")
_FONT_MARKS: Final = {"bold": "b", "italic": "i", "struck": "strike", "underline": "u"}
_SIDES: Final = ("left", "right", "top", "bottom")


class CellStyles:
    """Hands out style numbers for looks that `checked_appearance` returned, and writes the styles part."""

    def __init__(self) -> None:
        """Begin with the usual look, whose number is 0."""
        # Each element of the styles part as XML (of formats: the format itself), with its number.
        self._fonts = {_font_xml({}): 0}
        self._fills = {'<patternFill patternType="none"/>': 0, '<patternFill patternType="gray125"/>': 1}
        self._borders = {_border_xml({}): 0}
        self._formats: dict[str, int] = {}
        self._xfs = {'<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>': 0}
        self._number_by_appearance: dict[str, int] = {}  # by the look as JSON

    def of(self, appearance: dict[str, Any]) -> int:
        """Return the style number of a look; equal looks share it."""
        text = json.dumps(appearance, sort_keys=True)
        if text not in self._number_by_appearance:
            self._number_by_appearance[text] = self._add_style(appearance)
        return self._number_by_appearance[text]

    def _add_style(self, appearance: dict[str, Any]) -> int:
        """Add a look to the styles part, and return its style number."""
        font = _number_of(self._fonts, _font_xml(appearance.get("font", {})))
        fill = 0
        if appearance.get("fill"):
            solid = f'<fgColor rgb="FF{appearance["fill"]}"/><bgColor indexed="64"/>'
            fill = _number_of(self._fills, f'<patternFill patternType="solid">{solid}</patternFill>')
        border = _number_of(self._borders, _border_xml(appearance.get("border", {})))
        number = _FIRST_OWN_FORMAT + _number_of(self._formats, code) if (code := appearance.get("format")) else 0
        align = appearance.get("align", {})
        alignment = "".join(f' {name}="{align[key]}"' for key, name in _ALIGNMENTS.items() if key in align)
        alignment += ' wrapText="1"' if align.get("wrap") else ""
        inside = f"<alignment{alignment}/>" if alignment else ""
        applied = 'applyNumberFormat="1" ' if number else ""
        applied += 'quotePrefix="1" ' if appearance.get("quoted") else ""
        applied += 'applyFont="1" applyFill="1" applyBorder="1" applyAlignment="1"'
        parts_used = f'numFmtId="{number}" fontId="{font}" fillId="{fill}" borderId="{border}" xfId="0"'
        return _number_of(self._xfs, f"<xf {parts_used} {applied}>{inside}</xf>")

    def xml(self) -> str:
        """Write the styles part with all looks that were added, as XML."""
        formats = "".join(
            f'<numFmt numFmtId="{_FIRST_OWN_FORMAT + number}" formatCode="{attribute(content)}"/>'
            for number, content in enumerate(self._formats)
        )
        fills = "".join(f"<fill>{content}</fill>" for content in self._fills)
        return (
            f'{_XML}<styleSheet xmlns="{_MAIN}">'
            + (f'<numFmts count="{len(self._formats)}">{formats}</numFmts>' if formats else "")
            + f'<fonts count="{len(self._fonts)}">{"".join(self._fonts)}</fonts>'
            f'<fills count="{len(self._fills)}">{fills}</fills>'
            f'<borders count="{len(self._borders)}">{"".join(self._borders)}</borders>'
            '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
            f'<cellXfs count="{len(self._xfs)}">{"".join(self._xfs)}</cellXfs>'
            '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
        )


def _number_of(numbers: dict[str, int], text: str) -> int:
    """Return the number of a text; a new text is added to `numbers` with the next number."""
    return numbers.setdefault(text, len(numbers))


def _font_xml(font: dict[str, Any]) -> str:
    """Write the XML element of a described font; without a name or size it is Calibri 11."""
    marks = "".join(f"<{tag}/>" for name, tag in _FONT_MARKS.items() if font.get(name))
    colour = f'<color rgb="FF{font["color"]}"/>' if font.get("color") else ""
    name = attribute(font.get("name", "Calibri"))
    return f'<font>{marks}<sz val="{font.get("size", 11):g}"/>{colour}<name val="{name}"/></font>'


def _border_xml(border: dict[str, Any]) -> str:
    """Write the XML element of a border: by side, a line's style and colour."""
    sides = ""
    for side in _SIDES:
        if side in border:
            style, colour = border[side]
            sides += f'<{side} style="{style}"><color rgb="FF{colour or "000000"}"/></{side}>'
        else:
            sides += f"<{side}/>"
    return f"<border>{sides}<diagonal/></border>"


def checked_appearance(value: object) -> dict[str, Any]:
    """Copy the known and valid parts of a look; the others are left out, for a look is not data. Raises BadOutput
    unless it is an object."""
    if not isinstance(value, dict):
        raise BadOutput("rejects.jsonl has an invalid style")
    appearance: dict[str, Any] = {}
    font = value.get("font")
    if isinstance(font, dict):
        appearance["font"] = _plain_font(font)
    if _is_colour(value.get("fill")):
        appearance["fill"] = value["fill"]
    border = value.get("border")
    if isinstance(border, dict):
        appearance["border"] = {
            side: [style[0], style[1] if _is_colour(style[1]) else None]
            for side in _SIDES
            if isinstance(style := border.get(side), list) and len(style) == 2 and style[0] in _BORDERS
        }
    align = value.get("align")
    if isinstance(align, dict):
        appearance["align"] = (
            ({"h": align["h"]} if align.get("h") in _HORIZONTAL else {})
            | ({"v": align["v"]} if align.get("v") in _VERTICAL else {})
            | ({"wrap": True} if align.get("wrap") is True else {})
            | ({"indent": align["indent"]} if _is_whole(align.get("indent"), 250) else {})
            | ({"turn": align["turn"]} if align.get("turn") == _STACKED or _is_whole(align.get("turn"), 180) else {})
        )
    code = value.get("format")
    if isinstance(code, str) and 0 < len(code) <= 255 and code.isprintable():
        appearance["format"] = code
    return appearance


def _plain_font(font: dict[str, Any]) -> dict[str, Any]:
    """Copy the known properties of a font that have valid values."""
    plain: dict[str, Any] = {name: True for name in _FONT_MARKS if font.get(name) is True}
    if isinstance(font.get("name"), str) and font["name"].isprintable() and 0 < len(font["name"]) <= 60:
        plain["name"] = font["name"]
    if isinstance(font.get("size"), int | float) and 1 <= font["size"] <= 100:
        plain["size"] = float(font["size"])
    if _is_colour(font.get("color")):
        plain["color"] = font["color"]
    return plain


def _is_whole(value: object, most: int) -> bool:
    """Whether a value is a whole number from 1 to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def _is_colour(value: object) -> bool:
    """Whether a value is a colour such as FFC7CE."""
    return isinstance(value, str) and _RGB.fullmatch(value) is not None
