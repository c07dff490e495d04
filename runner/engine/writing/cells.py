"""Cells as XML, a column chunk at a time.

A chunk is assembled as one join over an endless-looking zip of pieces: constants, row numbers and values, so that
a column of one type costs no Python code per cell. Mixed columns are formatted cell by cell.
"""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import repeat
from math import isfinite
from typing import Any, Final

from runner.engine.reading import CellError, NoCachedValue, Shown
from runner.engine.writing.texts import cell_text, escaped, harmless, too_long

_DAY_ZERO: Final = 693_594  # 1899-12-30
_MIDNIGHT_ZERO: Final = datetime(1899, 12, 30)  # noqa: DTZ001
_LEAP_DAY: Final = 60  # Excel counts a 29 February 1900, so the days before it have a number less
_ONE_DAY: Final = timedelta(days=1)
MAX_EXACT: Final = 10**15
_INLINE: Final = '" t="inlineStr'
_NUMBERS: Final = {int, float}
_TRUTH: Final = {True: "1", False: "0"}
Pieces = list[Iterable[str]]


def serial(value: Any) -> str:
    """A date, time or duration as the number a spreadsheet stores."""
    kind = type(value)
    if kind is date:
        day = value.toordinal() - _DAY_ZERO
        return str(day if day > _LEAP_DAY else day - 1)
    if kind is datetime:
        gap = value.replace(tzinfo=None) - _MIDNIGHT_ZERO
        if gap.days <= _LEAP_DAY:
            gap -= _ONE_DAY
    elif kind is time:
        gap = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    else:
        gap = value
    return repr(gap.days + (gap.seconds + gap.microseconds / 1e6) / 86_400)


def holdable(value: Any) -> bool:
    """Whether a cell can hold the value: no more than 15 digits, nothing before 1900, no negative time."""
    if type(value) in (date, datetime):
        return bool(value.year >= 1900)
    if type(value) is int:
        return -MAX_EXACT < value < MAX_EXACT
    if type(value) is Decimal:  # only what no float stands for is one
        return False
    return type(value) is not timedelta or value >= timedelta()


def spelled(value: Any) -> str:
    """A value of any other kind as text."""
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # a rule's own kind of value, or more digits than Python spells
        return f"({type(value).__name__})"


class Serials(dict[Any, str]):
    """Each different date formatted once."""

    def __missing__(self, value: Any) -> str:
        if len(self) > 50_000:
            self.clear()
        text = self[value] = serial(value)
        return text


class CellFormatter:
    """Formats the chunks of one column; `style_of` tells the style of a value's kind."""

    def __init__(self, letters: str, style: int, kind: type | None, styles: dict[type, int]) -> None:
        self._letters = letters
        self._styles = dict(styles)
        if kind is not None:
            self._styles[kind] = style
            if kind is float:
                self._styles[int] = style
        self._serials = Serials()
        self.odd = 0  # cells that could not be written as they were

    def pieces(self, values: list[Any], rows: list[str]) -> Pieces:
        """Iterables that, zipped with those of the other columns and joined, give the rows."""
        kinds = set(map(type, values))
        gaps = type(None) in kinds
        kinds.discard(type(None))
        if not kinds:
            return []
        kind = float if kinds == _NUMBERS else next(iter(kinds))
        if len(kinds) == 1 or kinds == _NUMBERS:
            uniform = self._uniform(kind, [v for v in values if v is not None] if gaps else values)
            if uniform is not None:
                head = f'<c r="{self._letters}'
                opening, text, closing = uniform
                if self._styles.get(kind):
                    opening = f'" s="{self._styles[kind]}{opening}'
                if not gaps:
                    return [repeat(head), rows, repeat(opening), text, repeat(closing)]
                fill = iter(text)
                return [
                    [
                        "" if v is None else f"{head}{r}{opening}{next(fill)}{closing}"
                        for v, r in zip(values, rows, strict=True)
                    ]
                ]
        return [[self._cell(v, r) for v, r in zip(values, rows, strict=True)]]

    def _uniform(self, kind: type, values: list[Any]) -> tuple[str, Iterable[str], str] | None:
        """What stands before, in and after each cell of a column of one kind; None where cells differ too much."""
        if kind is str:
            if harmless(values):
                return _INLINE + '"><is><t>', values, "</t></is></c>"
        elif kind is float or kind is int:
            if min(values) > -MAX_EXACT and max(values) < MAX_EXACT and isfinite(sum(values)):
                return '"><v>', map(repr, values), "</v></c>"
        elif kind is bool:
            return '" t="b"><v>', map(_TRUTH.__getitem__, values), "</v></c>"
        elif kind is date and min(values).year >= 1900:
            return '"><v>', map(self._serials.__getitem__, values), "</v></c>"
        return None

    def _cell(self, value: Any, row: str) -> str:
        if value is None:
            return ""
        kind = type(value)
        style = f' s="{self._styles[kind]}"' if self._styles.get(kind) else ""
        opening = f'<c r="{self._letters}{row}"{style}'
        if kind is str:
            self.odd += too_long(value)
            return f'{opening} t="inlineStr">{cell_text(value)}</c>' if value else ""
        if kind is Shown:
            return f'<c r="{self._letters}{row}" t="inlineStr">{cell_text(value.shown)}</c>'
        if kind is float:
            return f"{opening}><v>{value!r}</v></c>" if isfinite(value) else f'{opening} t="e"><v>#NUM!</v></c>'
        if kind is int and holdable(value):
            return f"{opening}><v>{value}</v></c>"
        if kind is bool:
            return f'{opening} t="b"><v>{int(value)}</v></c>'
        if kind in (date, datetime, time, timedelta) and holdable(value):
            return f"{opening}><v>{serial(value)}</v></c>"
        if kind is CellError:
            return f'{opening} t="e"><v>{escaped(value)}</v></c>'
        if kind is NoCachedValue:
            return ""
        self.odd += 1
        # What a spreadsheet cannot hold as such is kept as text: digits beyond 15, days before 1900.
        return f'<c r="{self._letters}{row}" t="inlineStr">{cell_text(spelled(value))}</c>'
