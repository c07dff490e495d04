"""What a stored number means: dates in both epochs, cell styles, and the text that a number format shows.

A number shown as ``00501``, ``000-00-0000`` or ``INV-0042`` is often an identifier, and a text field needs what people
see. Only whole numbers are rendered here, and only by formats of digits and fixed characters: formats with grouping,
decimals, scaling or a currency belong to amounts, of which the number itself counts.
"""

import math
import re
import struct
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from enum import IntEnum
from typing import Final, NamedTuple

from runner.engine.reading.books import MINUS, Area, CellError, Design, Layout, ReadLimits, Shown, Value
from runner.engine.reading.runs import RunStyle

_DAY_MS = 86_400_000
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001  # a sheet's times have no zone
_EPOCH_1904 = datetime(1904, 1, 1)  # noqa: DTZ001
_EPOCH_DAY = _EPOCH.toordinal()
_MARCH_1900 = 61  # the first serial after 29 February 1900, which exists only in Excel
_END_OF_CALENDAR = 2_958_466  # the first serial after 9999-12-31
_EXACT_WHOLE = 2**53  # below this every whole number is exact in a double


def number_from_text(text: str) -> Value:
    """Parse a number stored as text: whole numbers as exact ints of any length; text that is not a number as it is."""
    if text.isdecimal():
        return int(text) if len(text) < 400 else text
    try:
        value = float(text)
    except ValueError:
        return text.strip() or None
    if value.is_integer() and -_EXACT_WHOLE < value < _EXACT_WHOLE:
        return int(value)
    if not math.isfinite(value):
        return CellError("#NUM!")
    bare = text.strip()
    if bare[:1] in "+-" and bare[1:].isdecimal() and len(bare) < 400:
        return int(bare)
    return value


def moment(serial: float, *, epoch_1904: bool) -> datetime | None:
    """Convert a serial to its date and time, to the millisecond; None outside the calendar."""
    if epoch_1904:
        start = _EPOCH_1904
        if not -1 < serial < _END_OF_CALENDAR - 1462:
            return None
    else:
        start = _EPOCH
        if not 0 <= serial < _END_OF_CALENDAR:
            return None
        if serial < 60:  # Excel counts a 29 February 1900, so earlier days are off by one
            serial += 1
    try:
        return start + timedelta(milliseconds=round(serial * _DAY_MS))
    except OverflowError:
        return None


def date_value(serial: float, *, epoch_1904: bool) -> Value:
    """Convert a number in a date format: a date for whole days, a time below one day, else a datetime."""
    if (
        type(serial) is int and not epoch_1904 and _MARCH_1900 <= serial < _END_OF_CALENDAR
    ):  # fast path for nearly all dates
        return date.fromordinal(_EPOCH_DAY + serial)
    is_whole = float(serial).is_integer()
    if not epoch_1904 and serial < 1:
        return serial if is_whole else time_value(serial, epoch_1904=epoch_1904)
    day_and_time = moment(serial, epoch_1904=epoch_1904)
    if day_and_time is None:
        return serial
    return day_and_time.date() if is_whole else day_and_time


def datetime_value(serial: float, *, epoch_1904: bool) -> Value:
    """Convert a number in a format with date and time: a datetime, or a time of day below one day."""
    if not epoch_1904 and 0 <= serial < 1:
        return time_value(serial, epoch_1904=epoch_1904)
    day_and_time = moment(serial, epoch_1904=epoch_1904)
    return serial if day_and_time is None else day_and_time


def time_value(serial: float, *, epoch_1904: bool) -> Value:
    """Convert a number in a time format: a time of day below one day, else a datetime."""
    if not 0 <= serial < 1:
        day_and_time = moment(serial, epoch_1904=epoch_1904)
        return serial if day_and_time is None else day_and_time
    milliseconds = round(serial * _DAY_MS) % _DAY_MS
    return (_EPOCH + timedelta(milliseconds=milliseconds)).time()


def duration_value(serial: float) -> Value:
    """Convert a number in a format of elapsed time to a duration; the number itself if that is too long."""
    try:
        return timedelta(milliseconds=round(serial * _DAY_MS))
    except (OverflowError, ValueError):
        return serial


_ISO_MOMENT = re.compile(
    r"(?:(\d{4})-(\d{2})-(\d{2}))?T?(?:(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,40}))?)?)?(?:Z|[+-]00:?00)?"
)
_NEAR_MICROSECONDS = 2  # microseconds: the precision of a day number in a double


def fraction_of(digits: str | None) -> timedelta:
    """Convert the digits of a fraction of a second; more than six come from a day number and are rounded to a near
    millisecond."""
    if not digits:
        return timedelta()
    if len(digits) <= 6:
        return timedelta(microseconds=int(digits.ljust(6, "0")))
    exact = round(int(digits) / 10 ** (len(digits) - 6))
    whole = round(exact, -3)
    return timedelta(microseconds=whole if abs(exact - whole) <= _NEAR_MICROSECONDS else exact)


def iso_value(text: str) -> Value:
    """Parse an ISO 8601 date cell (strict OOXML and ODS); others, and those with a zone, stay text."""
    match = _ISO_MOMENT.fullmatch(text.strip())
    if match is None:
        return text or None
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        day_of = date(int(year), int(month), int(day)) if year else None
        if not hour:
            return day_of or text or None
        clock = datetime.combine(day_of or _EPOCH, time(int(hour), int(minute), int(second or 0)))
        clock += fraction_of(fraction)
        return clock if day_of else clock.time()
    except (ValueError, OverflowError):
        return text


Shower = Callable[[int], str | None]

MOST_CHARACTERS: Final = 255  # characters of a format, Excel's limit
_TOKEN = re.compile(
    r"""(?P<section>;)|"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_(?P<width>.)|\*.|\[(?P<bracket>[^\]]*)\]"""
    r"""|(?P<general>general)|(?P<digit>[0#?])|(?P<amount>[.,%/@]|e[+-])|(?P<other>.)""",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(?P<comparison><=|>=|<>|<|>|=)\s*(?P<bound>-?[0-9]{1,15}(?:\.0*)?)")
_PROBE_NUMBERS: Final = (7, 12_345, 123_456_789, -7)
_COMPARE: Final[dict[str, Callable[[int, float], bool]]] = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=": lambda a, b: a == b,
}


class _Digit(NamedTuple):
    """A digit placeholder: what it shows if the number has no digit left."""

    fill: str


class _Section:
    """One section of a number format: what it shows for positive, negative or zero numbers, or by a condition."""

    def __init__(self) -> None:
        """Begin with a section that shows nothing, for any number."""
        self.parts: list[str | _Digit | None] = []  # literal text, a digit placeholder, or all digits
        self.condition: Callable[[int], bool] | None = None
        self.bound = 0  # of the condition

    def show(self, number: int) -> str:
        """Fill the digits of a non-negative number into the placeholders, from the right."""
        digits = str(number) if number else ""
        places = sum(isinstance(part, _Digit) for part in self.parts)
        digits, extra = digits[max(len(digits) - places, 0) :], digits[: max(len(digits) - places, 0)]
        missing = places - len(digits)
        pieces: list[str] = []
        place = 0
        for part in self.parts:
            if part is None:
                pieces.append(str(number))
            elif isinstance(part, str):
                pieces.append(part)
            else:
                pieces.append(extra if place == 0 else "")
                pieces.append(part.fill if place < missing else digits[place - missing])
                place += 1
        return "".join(pieces).strip()


def shower_of(code: str) -> Shower | None:
    """Return a function that renders whole numbers in this format; None if it shows only the digits, or an amount."""
    if len(code) > MOST_CHARACTERS or (sections := _parse_sections(code)) is None:
        return None

    def show(number: int) -> str | None:
        """Render a whole number; None if that is unknown or nothing."""
        return _show_by_sections(sections, number)

    probes = {*_PROBE_NUMBERS, *(section.bound for section in sections if section.condition)}
    return show if any(show(probe) not in (None, str(probe)) for probe in probes) else None


def shown(show: Shower, number: Value) -> Value:
    """Return the number together with its rendered text."""
    if type(number) is not int:
        return number
    text = show(number)
    return number if text is None else Shown(number, text)


def _parse_sections(code: str) -> list[_Section] | None:
    """Parse the sections of a number format; None for one of amounts, whose number itself counts."""
    sections = [_Section()]
    for token in _TOKEN.finditer(code):
        kind, text = token.lastgroup, token[0]
        if kind == "section":
            sections.append(_Section())
            continue
        if len(sections) > 3:
            continue  # the fourth section is for text
        if kind == "amount" or (kind == "bracket" and not _read_bracket(sections[-1], token["bracket"])):
            return None
        if kind == "digit":
            sections[-1].parts.append(_Digit({"0": "0", "#": "", "?": " "}[text]))
        elif kind == "general":
            sections[-1].parts.append(None)
        elif kind in ("quoted", "escaped", "width", "other"):
            literal = " " if kind == "width" else token[kind]
            if any(unicodedata.category(character) == "Sc" for character in literal):
                return None
            sections[-1].parts.append(literal)
    return sections[:3]


def _read_bracket(section: _Section, inside: str) -> bool:
    """Set the condition of a section, if what is `inside` a bracket is one; False if it is a currency."""
    if condition := _CONDITION.fullmatch(inside.strip()):
        compare, bound = _COMPARE[condition["comparison"]], float(condition["bound"])
        section.condition = lambda number: compare(number, bound)
        section.bound = int(bound)
    return not inside.startswith("$") or inside.startswith("$-")


def _show_by_sections(sections: list[_Section], number: int) -> str | None:
    """Render a whole number by the sections of a format; None if that is unknown or nothing."""
    sign = ""
    if any(section.condition for section in sections):
        if number < 0:
            return None
        section = next(
            (candidate for candidate in sections if candidate.condition is None or candidate.condition(number)), None
        )
    elif number < 0:
        section = sections[min(1, len(sections) - 1)]
        sign = "-" if len(sections) == 1 else ""
    else:
        section = sections[2 if number == 0 and len(sections) > 2 else 0]
    if section is None:
        return None
    text = section.show(abs(number))
    return sign + text if text else None  # a number hidden by its format is still a number


class NumberKind(IntEnum):
    """The meaning of a number."""

    NUMBER = 0
    DATE = 1
    DATETIME = 2
    TIME = 3
    DURATION = 4
    SHOWN = 6  # its format shows more than its digits
    ANY = 5  # built-in formats whose meaning depends on the locale: the value decides


BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17), NumberKind.DATE),
    **dict.fromkeys((18, 19, 20, 21), NumberKind.TIME),
    22: NumberKind.DATETIME,
    45: NumberKind.TIME,
    46: NumberKind.DURATION,
    47: NumberKind.TIME,
    **dict.fromkeys((*range(27, 37), *range(50, 59)), NumberKind.ANY),  # East Asian
}
_PERCENTS: Final = frozenset({9, 10})
_LITERAL = re.compile(r'"[^"]*"?|\\.|_.|\*.')
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_BRACKET = re.compile(r"\[[^\]]*\]")


def kind_of_format(code: str) -> NumberKind:
    """Return the meaning of a number format code; only its first section counts, without quoted text."""
    bare = _LITERAL.sub("", code[:1024]).split(";")[0]
    if _ELAPSED.search(bare):
        return NumberKind.DURATION
    bare = _BRACKET.sub("", bare).lower()
    if "general" in bare or "#" in bare or "?" in bare or "@" in bare:
        return NumberKind.NUMBER
    bare = bare.replace("am/pm", "h").replace("a/p", "h")
    has_time = "h" in bare or "s" in bare
    has_date = "y" in bare or "d" in bare or "g" in bare or "e" in bare.replace("e+", "").replace("e-", "")
    if has_date or ("m" in bare and not has_time) or "b" in bare:
        return NumberKind.DATETIME if has_time else NumberKind.DATE
    return NumberKind.TIME if has_time else NumberKind.NUMBER


class NumberFormat(NamedTuple):
    """A parsed number format."""

    kind: NumberKind
    shows: Shower | None = None
    unit: str = ""  # what it shows beside the number: "%", "€", "kg"


_SHOWN_LITERAL = re.compile(r'\[\$([^\]-]*)[^\]]*\]|"([^"]*)"?|\\(.)|([$\u00a2-\u00a5\u20a0-\u20cf])')
_SKIPPED = re.compile(r"\[[^$\]][^\]]*\]|_.|\*.")
UNIT = re.compile(r"[^\W\d_]+\.?|[$%\u00a2-\u00a5\u20a0-\u20cf]+")


_NEGATIVE_FORM = re.compile(r"[-\u2212]\s*[^\w\s]*\s*[0#?].*|\(\s*[^\w\s]*\s*[0#?][^()]*\)", re.DOTALL)


_DIVIDING_COMMAS = re.compile(r"[0#?](?P<commas>,+)(?=[^0#?,]|$)")
_MOST_COMMAS: Final = 4  # of a unit: a trillion
_LONGEST_UNIT: Final = 20  # characters


def unit_of_format(code: str) -> str:
    """Return the sign or word that a format adds to a number, from its first section; empty if it adds none.

    A comma at its start for each time that the number is shown divided by a thousand: `#,##0,"K"` has the unit `,K`.
    """
    code = _SKIPPED.sub("", code[:MOST_CHARACTERS])
    literals: list[str] = []

    def note_literal(literal: re.Match[str]) -> str:
        """Add the literal to `literals`; returns what replaces it."""
        literals.extend(filter(None, literal.groups()))
        return "\0"  # keeps a ; or % inside a literal from counting

    first, _, rest = _SHOWN_LITERAL.sub(note_literal, code).partition(";")
    del literals[first.count("\0") :]
    noted = iter(literals)
    if _NEGATIVE_FORM.fullmatch(re.sub("\0", lambda _: next(noted, ""), first).strip()):
        return MINUS
    if "%" in first:
        return "%"
    match = _DIVIDING_COMMAS.search(first)
    commas = match["commas"][:_MOST_COMMAS] if match else ""
    return commas + (" ".join(UNIT.findall(" ".join(literals)))[:_LONGEST_UNIT] if rest or literals else "")


def format_of(code: str) -> NumberFormat:
    """Parse a number format code."""
    kind = kind_of_format(code)
    shows = shower_of(code) if kind is NumberKind.NUMBER else None
    unit = unit_of_format(code) if kind is NumberKind.NUMBER else ""
    return NumberFormat(NumberKind.SHOWN if shows else kind, shows, unit)


BOLD = 600  # weight from which a font is bold


@dataclass(kw_only=True, slots=True)
class CellStyle:
    """The style of a cell, as hints for the structure pass."""

    bold: bool = False
    filled: bool = False
    lined: bool = False
    struck: bool = False

    @property
    def plain(self) -> bool:
        """Whether it has no hint."""
        return self == _PLAIN


_PLAIN = CellStyle()
_STYLE_HINTS: Final = tuple(name for name in CellStyle.__slots__ if name != "struck")


@dataclass(kw_only=True)
class Styles:
    """Styles by the style index of a cell; an index out of range is a plain number."""

    kinds: list[NumberKind] = field(default_factory=list)
    cell_styles: list[CellStyle] = field(default_factory=list)
    shows: dict[int, Shower] = field(default_factory=dict)  # for styles of kind SHOWN
    units: dict[int, str] = field(default_factory=dict)  # for styles whose format shows one
    designs: list[Design] = field(default_factory=list)  # by style index (.xls only)
    fonts: list[RunStyle] = field(default_factory=list)  # how each font makes a run of a text look (.xls and .xlsb)

    def add(self, number: int, formats: dict[int, NumberFormat], cell_style: CellStyle) -> None:
        """Add the next style; `number` is that of a format of the file or of a built-in one."""
        kind, shows, unit = formats.get(number) or NumberFormat(
            BUILT_IN.get(number, NumberKind.NUMBER), unit="%" if number in _PERCENTS else ""
        )
        if shows:
            self.shows[len(self.kinds)] = shows
        if unit:
            self.units[len(self.kinds)] = unit
        self.kinds.append(kind)
        self.cell_styles.append(cell_style)

    def kind(self, index: int) -> NumberKind:
        """Return the meaning of a number in a style."""
        return self.kinds[index] if 0 <= index < len(self.kinds) else NumberKind.NUMBER


_EXACT_INTEGERS = 2**53  # below this every whole number is exact in a double
_MAX_REMEMBERED = 50_000
_DOUBLE = struct.Struct("<d")
_LARGEST_SERIAL: Final = 1e9  # days, far beyond every calendar
_NOT_A_NUMBER = CellError("#NUM!")
# Errors by their codes in .xls and .xlsb.
ERRORS = {
    0x00: CellError("#NULL!"),
    0x07: CellError("#DIV/0!"),
    0x0F: CellError("#VALUE!"),
    0x17: CellError("#REF!"),
    0x1D: CellError("#NAME?"),
    0x24: _NOT_A_NUMBER,
    0x2A: CellError("#N/A"),
    0x2B: CellError("#GETTING_DATA"),
}
UNKNOWN_ERROR = CellError("#UNKNOWN!")


def rk(raw: int) -> float:
    """Decode a number packed into 32 bits: the top of a double or a whole number, possibly in hundredths."""
    if raw & 2:
        value: float = (raw >> 2) - (1 << 30 if raw & 0x80000000 else 0)
    else:
        (value,) = _DOUBLE.unpack(b"\0\0\0\0" + struct.pack("<I", raw & 0xFFFFFFFC))
    return value / 100 if raw & 1 else value


def value_by_kind(kind: NumberKind, serial: float, *, epoch_1904: bool) -> Value:
    """Convert a serial number in a date, time or duration format; one that is too large stays a number."""
    if abs(serial) > _LARGEST_SERIAL:
        return serial
    if kind is NumberKind.DURATION:
        return duration_value(serial)
    if kind is NumberKind.TIME:
        return time_value(serial, epoch_1904=epoch_1904)
    if kind is NumberKind.DATETIME:
        return datetime_value(serial, epoch_1904=epoch_1904)
    return date_value(serial, epoch_1904=epoch_1904)


def font_style(flags: int, script: int) -> RunStyle:
    """Return how a font makes a run of a text look, from its flags and its script as .xls and .xlsb store them."""
    return "struck" if flags & 8 else "raised" if script == 1 else "lowered" if script == 2 else ""


class NumberReader:
    """Converts stored numbers to values by their styles, each number of a kind once."""

    def __init__(self, styles: Styles, *, epoch_1904: bool) -> None:
        """Remember no number yet; `styles` and the epoch are those of the workbook."""
        self._styles = styles
        self._epoch_1904 = epoch_1904
        self._values: dict[tuple[NumberKind, float], Value] = {}

    def value(self, style: int, number: float) -> Value:
        """Convert a number in a style, by its index: to a date, a time, what its format shows, or the number itself;
        the error #NUM! for one that is not finite."""
        kind = self._styles.kind(style)
        if not math.isfinite(number):
            return _NOT_A_NUMBER
        plain: float = int(number) if -_EXACT_INTEGERS < number < _EXACT_INTEGERS and number == int(number) else number
        if kind is NumberKind.NUMBER:
            return plain
        if kind is NumberKind.SHOWN:
            return shown(self._styles.shows[style], plain)
        key = (kind, plain)
        if key not in self._values:
            if len(self._values) >= _MAX_REMEMBERED:
                self._values.clear()
            self._values[key] = value_by_kind(kind, plain, epoch_1904=self._epoch_1904)
        return self._values[key]


class Marker:
    """Collects the layout of a sheet, within the limits."""

    def __init__(self, styles: Styles, limits: ReadLimits) -> None:
        """Begin with an empty layout; `styles` are those of the workbook's cells."""
        self.layout = Layout(designs=styles.designs)
        self._limits = limits
        self.units = styles.units
        self.marked_styles = {
            number: cell_style for number, cell_style in enumerate(styles.cell_styles) if not cell_style.plain
        }
        self.is_any_struck = any(cell_style.struck for cell_style in self.marked_styles.values())

    def row(self, number: int, *, hidden: bool) -> None:
        """Remember of a row that it is hidden, and how far down styles are known."""
        if hidden and number <= self._limits.max_rows:
            self.layout.hidden_rows.add(number)
        self.layout.styled_rows = max(self.layout.styled_rows, min(number, self._limits.layout_rows))

    def mark(self, row: int, column: int, style: int, *, unit: bool = True) -> None:
        """Remember what a cell's style shows: a unit, bold, a fill, struck-out text."""
        if column > self._limits.max_columns:
            return
        if unit and style in self.units:
            self.mark_units(column, style, row, row)
        if self.layout.designs and row <= self._limits.layout_rows:
            self.layout.cell_designs.setdefault(row, {})[column] = style
        cell_style = self.marked_styles.get(style)
        if cell_style is None:
            return
        if cell_style.struck:  # however far down: what is struck out may no longer count
            self.layout.struck.setdefault(row, set()).add(column)
        if row > self._limits.layout_rows:
            return
        for name in _STYLE_HINTS:
            if getattr(cell_style, name):
                getattr(self.layout, name).setdefault(row, set()).add(column)

    def mark_units(self, column: int, style: int, first: int, last: int) -> None:
        """Mark the unit of a column's cells in these rows, however far down: a file may change it anywhere."""
        self.layout.add_unit(column, self.units[style], first, last)

    def merge(self, area: Area) -> None:
        """Note a merged area, up to the limit; further ones are ignored."""
        if len(self.layout.merged) < self._limits.max_merged:  # merges are hints, not worth more memory
            self.layout.merged.append(area)

    def widen_columns(self, first: int, last: int, width: float) -> None:
        """Note the width of some columns, in usual widths."""
        columns = range(max(first, 1), min(last, self._limits.max_columns) + 1)
        self.layout.column_widths.update(dict.fromkeys(columns, width))

    def hide_columns(self, first: int, last: int) -> None:
        """Note that the columns from `first` to `last`, from 1, are hidden."""
        self.layout.hidden_columns.update(range(max(first, 1), min(last, self._limits.max_columns) + 1))
