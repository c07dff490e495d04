"""The styles part of an .xlsx."""

from collections.abc import Iterable
from typing import TypeVar

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.styles import Format, Look, Styles, format_of
from runner.engine.reading.xlsx.markup import Attributes, Event

_T = TypeVar("_T")


class StylesReader:
    """Fed with the events of a styles part."""

    def __init__(self) -> None:
        self._formats: dict[int, Format] = {}
        self._fonts: list[tuple[bool, bool]] = []
        self._fills: list[bool] = []
        self._borders: list[tuple[bool, bool]] = []
        self._section = ""
        self._path: list[str] = []
        self.styles = Styles()

    def read(self, events: Iterable[Event], limits: ReadLimits) -> Styles:
        for event in events:
            if len(self.styles.kinds) > limits.max_styles:
                raise errors.hostile(f"over {limits.max_styles} cell styles")
            if event[0] == "start":
                self._path.append(event[1])
                self._start(event[1], event[2])
            else:
                self._path.pop()
                if len(self._path) == 1:
                    self._section = ""
        return self.styles

    def _start(self, name: str, attributes: Attributes) -> None:
        depth = len(self._path)
        if depth == 2:
            self._section = name
        elif self._section == "numFmts" and name == "numFmt":
            self._formats[number(attributes, "numFmtId")] = format_of(attributes.get("formatCode", ""))
        elif self._section == "fonts":
            self._font(name, attributes, depth)
        elif self._section == "fills":
            self._fill(name, attributes, depth)
        elif self._section == "borders":
            self._border(name, attributes, depth)
        elif self._section == "cellXfs":
            self._format(name, attributes)

    def _font(self, name: str, attributes: Attributes, depth: int) -> None:
        if depth == 3:
            self._fonts.append((False, False))
        elif name in ("b", "i") and self._fonts and attributes.get("val", "1") not in ("0", "false"):
            bold, italic = self._fonts[-1]
            self._fonts[-1] = (bold or name == "b", italic or name == "i")

    def _fill(self, name: str, attributes: Attributes, depth: int) -> None:
        if depth == 3:
            self._fills.append(False)
        elif name == "patternFill" and self._fills:
            self._fills[-1] = attributes.get("patternType", "none") not in ("none", "gray125")
        elif name == "gradientFill" and self._fills:
            self._fills[-1] = True

    def _border(self, name: str, attributes: Attributes, depth: int) -> None:
        if depth == 3:
            self._borders.append((False, False))
        elif self._borders and attributes.get("style", "none") != "none":
            top, bottom = self._borders[-1]
            self._borders[-1] = (top or name == "top", bottom or name == "bottom")

    def _format(self, name: str, attributes: Attributes) -> None:
        if name == "xf":
            identity = number(attributes, "numFmtId")
            bold, italic = _at(self._fonts, number(attributes, "fontId"), (False, False))
            top, bottom = _at(self._borders, number(attributes, "borderId"), (False, False))
            look = Look(
                bold=bold,
                italic=italic,
                filled=_at(self._fills, number(attributes, "fillId"), False),
                border_top=top,
                border_bottom=bottom,
            )
            self.styles.add(identity, self._formats, look)
        elif name == "alignment" and self.styles.looks:
            look = self.styles.looks[-1]
            look.centred = attributes.get("horizontal") in ("center", "centerContinuous")
            look.indented = number(attributes, "indent") > 0


def number(attributes: Attributes, name: str) -> int:
    """A whole number in an attribute; 0 where it is absent or is none."""
    text = attributes.get(name, "").strip().removeprefix("+")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _at(items: list[_T], index: int, otherwise: _T) -> _T:
    return items[index] if index < len(items) else otherwise
