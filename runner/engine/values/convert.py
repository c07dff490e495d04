"""Converts the cells of a column to the field's declared type, a chunk at a time.

For speed, the set of types in a chunk is checked first: a chunk of one type takes one comprehension, texts go through a
memo, and only mixed chunks are converted cell by cell. A cell that is not of the type keeps its value and its index is
reported; bad cells never raise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any, Final

from runner.engine.common.fields import ANY, Field
from runner.engine.reading import CellError, NoCachedValue, Shown
from runner.engine.values import dates, numbers, words
from runner.engine.values.decisions import Convention, settle, tally_of
from runner.engine.values.words import BAD, KEPT, Bad, ParsingMemo, cleaner, column_cleaner

TEXT_KINDS: Final = frozenset({str, type(None)})
NATIVE: Final[dict[str, frozenset[type]]] = {
    "text": frozenset({type(None)}),
    "integer": frozenset({int, type(None)}),
    "decimal": frozenset({float, int, type(None)}),
    "money": frozenset({float, int, type(None)}),
    "percent": frozenset({float, int, type(None)}),
    "date": frozenset({date, type(None)}),
    "datetime": frozenset({datetime, type(None)}),
    "time": frozenset({time, type(None)}),
    "boolean": frozenset({bool, type(None)}),
}
AS_SHOWN: Final = frozenset({"text", "enum", "email", "phone", "url"})
_MIDNIGHT: Final = datetime(2000, 1, 1)  # noqa: DTZ001  # only its time of day is used
_NO_ADDRESS: Final = frozenset({CellError, bool, date, datetime, time, timedelta})
# Findings about cells that were read, by code: severity and message.
REMARKS: Final[dict[str, tuple[str, str]]] = {
    "decimal_mixed": ("warning", "has another decimal sign than its column and was read by its own"),
    "date_order_mixed": ("warning", "has day and month in another order than its column and was read by its own"),
    "century_assumed": ("warning", "has a two-digit year that could belong to either century"),
    "calendar_assumed": ("warning", "has a year that may be of the Buddhist calendar, 543 too high; kept as it is"),
    "time_dropped": ("warning", "has a time of day, which a date field drops"),
    # Usually reported for a column; for a cell only if no other value of its column needed the convention.
    "decimal_assumed": ("warning", "can be read as thousands or as decimals; the point was read as the decimal sign"),
    "date_order_assumed": ("warning", "can be read day first or month first; read month first"),
    "digits_lost": (
        "warning",
        "is written with an exponent, as spreadsheet programs shorten long numbers; digits are lost",
    ),
    "weekday_contradicts": ("warning", "names a weekday that its date does not fall on; the date is kept"),
    "date_dropped": ("warning", "has a date, which a time field drops"),
    "zone_converted": ("info", "has a time zone; the times of this column are written in UTC"),
    "spelling_learnt": ("info", "is a learnt spelling of an allowed value, which was written"),
    "zone_dropped": ("info", "has a time zone, which a time field drops"),
}
Converted = tuple[list[Any], list[int]]


class Converter:
    """Converts chunks of one column under one field's declaration and the column's own conventions."""

    def __init__(
        self,
        field: Field,
        values: Sequence[Any] = (),
        convention: Convention | None = None,
        *,
        epoch_1904: bool = False,
    ) -> None:
        """`convention`: decided from all values of the column; without it, `values` decide."""
        if convention is None:
            tally = tally_of(field, values)
            convention = settle(field, tally)[0] if tally is not None else Convention()
        self.kind = field.type
        self.decimal = convention.decimal
        self._strict_decimal = field.decimal
        self._in_percent = convention.in_percent
        self._marks = convention.marks
        self.day_first = convention.dots_day_first if convention.day_first is None else convention.day_first
        self.dots_day_first = convention.dots_day_first
        self.odd: dict[Any, tuple[str, ...]] = {}  # cell -> codes of the findings about how it was read
        self._clean = cleaner(field.clean)
        self._clean_all = column_cleaner(field.clean)
        self._plain_strip = field.clean == ("strip",)
        self._read = dates.DateReader(
            field.formats,
            day_first=convention.day_first,
            dots_day_first=convention.dots_day_first,
            year_first=convention.year_first,
            pivot=convention.pivot,
            short_years=convention.short_years,
            births=convention.births,
            epoch_1904=epoch_1904,
            numbers=convention.numbers,
        )
        self._fine = words.COMMON_EMAIL.fullmatch if field.type == "email" else None
        self._native = NATIVE["text"] if self._in_percent else NATIVE.get(field.type, NATIVE["text"])
        self._allowed: dict[str, Any] = {}
        self._spelled: frozenset[str] = frozenset()
        self._learnt: Mapping[str, Any] = {}
        self.use_allowed(field.allowed or ())
        self._memo = ParsingMemo(self._parser())
        self._other = self._others()

    def use_allowed(self, values: Iterable[Any]) -> None:
        """Use these spellings for an enum; of several spellings, a cell keeps its own or gets the first."""
        listed = list(values)
        self._allowed = {fold(v): v for v in reversed(listed)}
        self._spelled = frozenset(v for v in listed if type(v) is str)

    def use_spellings(self, learnt: Mapping[str, Any]) -> None:
        """Read these texts (folded) as the allowed values that they mean; each such cell is reported."""
        self._learnt = learnt
        self._memo.forget()

    def convert(self, values: list[Any]) -> Converted:
        """The typed values, and the indexes of cells that are not of the type and stay unchanged."""
        if self.kind == ANY:
            return values, []
        kinds = set(map(type, values))
        if kinds <= self._native:
            return values, []
        if Shown in kinds:  # text takes what the cell shows, any other type the number
            takes: Callable[[Shown], Any] = self._shown if self.kind in AS_SHOWN else int
            values = [takes(v) if type(v) is Shown else v for v in values]
            kinds = set(map(type, values))
        if len(self.odd) > KEPT:
            self.odd.clear()
            self._memo.forget()
        if kinds <= TEXT_KINDS:
            if self.kind == "text" and not self._learnt:
                return self._texts(values, kinds), []
            out = self._parsed(values)
            if not self._memo.bad:
                return out, []
        else:
            out = self._mixed(values)
        bad = [i for i, v in enumerate(out) if v is BAD]
        for i in bad:
            out[i] = values[i]
        return out, bad

    def _parsed(self, values: list[Any]) -> list[Any]:
        memo, fine = self._memo, self._fine
        if fine is not None and self._plain_strip:
            return [v if v is None or fine(v) else memo[v] for v in values]
        return list(map(memo.__getitem__, values))

    def _mixed(self, values: list[Any]) -> list[Any]:
        memo, other, native = self._memo, self._other, self._native
        return [v if type(v) in native else memo[v] if type(v) is str else other(v) for v in values]

    def _shown(self, value: Shown) -> str:
        """The text that the cell shows; only its digits if those are the allowed value."""
        digits = str(int(value))
        return digits if fold(digits) in self._allowed and fold(value) not in self._allowed else value.shown

    def _texts(self, values: list[Any], kinds: set[type]) -> list[Any]:
        is_full = type(None) not in kinds
        joined = "\n".join(values if is_full else filter(None, values))  # searched once for the whole chunk
        if not self._plain_strip:
            out = self._clean_all(values)
        elif not joined.isascii():
            out = [v and self._clean(v) for v in values]
        else:
            out = list(map(str.strip, values)) if is_full else [v and v.strip() for v in values]
        if "E+" in joined:
            self.odd |= {v: ("digits_lost",) for v in values if v and numbers.is_shortened(v)}
        return [v or None for v in out] if "" in out else out

    def _parser(self) -> Callable[[str], Any]:
        clean = self._clean
        parse: Callable[[str], Any] = {
            "integer": self._integer,
            "decimal": self._number,
            "money": self._number,
            "percent": self._percent,
            "date": self._read.day,
            "datetime": self._read.moment,
            "time": self._read.clock,
            "boolean": self._truth,
            "email": words.parse_email,
            "phone": words.parse_phone,
            "url": words.parse_url,
            "enum": lambda text: (text if text in self._spelled else self._allowed.get(fold(text), text)) or None,
        }.get(self.kind, lambda text: text or None)
        told = self._read.told

        def read(text: str) -> Any:
            value = parse(clean(text))
            if self._learnt and type(value) is str and (means := self._learnt.get(fold(value))) is not None:
                self.odd[text] = ("spelling_learnt",)
                return means
            if told:
                if value is not BAD:  # a text that cannot be read is only a type error
                    self.odd[text] = tuple(told)
                told.clear()
            return value

        return read

    def _plain(self, text: str) -> str | Bad | None:
        """The plain form of a number; one that contradicts its column is reported."""
        found = numbers.read(text, self._strict_decimal, self.decimal)
        if not isinstance(found, tuple):
            return found
        if found[1]:
            self._read.told.append("decimal_mixed" if self.decimal else "decimal_assumed")
        return found[0]

    def _number(self, text: str) -> numbers.Number | Bad | None:
        # A decimal sign in a column that seemed to have none needs a full parse.
        number = numbers.quick(text, self.decimal) if self.decimal else numbers.bare(text)
        if number is not None:
            return number
        plain = self._plain(text)
        return numbers.to_number(plain) if isinstance(plain, str) else plain

    def _integer(self, text: str) -> int | Bad | None:
        if text.isdecimal() and text.isascii() and len(text) <= numbers.MAX_TEXT:
            return int(text)
        plain = self._plain(text)
        if numbers.is_shortened(text):
            self._read.told.append("digits_lost")
        return numbers.to_whole(plain) if isinstance(plain, str) else plain

    def _truth(self, text: str) -> bool | Bad | None:
        if self._marks and (mark := text.strip().casefold()) in self._marks:
            means = self._marks[mark]
            return BAD if means is None else means
        return words.parse_boolean(text)

    def _percent(self, text: str) -> numbers.Number | Bad | None:
        """The share of a percentage; the decimal point is moved, so that 45 % is exactly 0.45."""
        bare, signed, negative = numbers.without_percent(text)
        plain = self._plain(bare)
        if not isinstance(plain, str):
            return BAD if signed and plain is None else plain
        if negative:
            plain = BAD if plain[0] == "-" else f"-{plain}"
            if isinstance(plain, Bad):
                return BAD
        if not (signed or self._in_percent):
            return numbers.to_number(plain)
        head, _, exponent = plain.lower().partition("e")
        return numbers.to_number(f"{head}e{int(exponent or 0) - 2}")

    def _others(self) -> Callable[[Any], Any]:
        """The conversion of cells that are not plain text."""
        turns: dict[str, Callable[[Any], Any]] = {
            "integer": whole,
            "decimal": number_of,
            "money": number_of,
            "percent": self._share if self._in_percent else number_of,
            "date": self._day,
            "datetime": partial(moment_of, number=self._read.number),
            "time": self._clock,
            "boolean": truth_of,
        }
        if self.kind in turns:
            return turns[self.kind]
        memo = self._memo

        alien = _NO_ADDRESS if self.kind in ("phone", "email", "url") else frozenset({CellError})

        def through_text(value: Any) -> Any:
            if type(value) in alien:
                return BAD
            text = text_of(value)
            found = memo[text]
            if text in self.odd:
                self.odd[value] = self.odd[text]
            return found

        return through_text

    def _share(self, value: Any) -> Any:
        number = number_of(value)
        if not isinstance(number, (int, float)):
            return number
        # Moving the decimal point gives exactly 0.45 for 45; multiplying by 0.01 does not.
        return number if isinstance(number, float) and not isfinite(number) else float(Decimal(repr(number)).scaleb(-2))

    def _clock(self, value: Any) -> Any:
        if type(value) is datetime:
            self.odd[value] = ("date_dropped",)
        return time_of(value)

    def _day(self, value: Any) -> Any:
        """The date of a cell with a datetime or a serial; a dropped time of day is reported."""
        moment = moment_of(value, self._read.number)
        if type(moment) is not datetime:
            return moment
        if moment.time() != time():
            self.odd[value] = ("time_dropped",)
        return moment.date()


def fold(value: Any) -> Any:
    """Normalize a value for comparison with allowed values: ignores case and outer blanks; 1 equals "1"."""
    return text_of(value).strip().casefold()


def text_of(value: Any) -> Any:
    """A cell as text, as a person would type it."""
    kind = type(value)
    if kind is str:
        return value
    if kind is Shown:
        return value.shown
    if kind is float:
        return _float_text(value)
    if kind is timedelta:
        return _duration_text(value)
    if kind is bool:
        return "TRUE" if value else "FALSE"
    if kind is datetime:
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    if value is None or kind is NoCachedValue:
        return ""
    return value.isoformat() if kind in (date, time) else str(value)


def _float_text(value: float) -> str:
    """A number in plain digits; very large and very small ones with an exponent."""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    text = repr(value)
    return (
        f"{Decimal(text):f}".removesuffix(".0")
        if "e" in text and 1e-7 <= abs(value) < 1e21
        else text.removesuffix(".0")
    )


def _duration_text(value: timedelta) -> str:
    """Hours, minutes and seconds, as a cell of the format [h]:mm:ss shows them."""
    seconds = abs(value) // timedelta(seconds=1)
    fraction = abs(value) % timedelta(seconds=1) // timedelta(milliseconds=1)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (
        f".{fraction:03}" if fraction else ""
    )


def number_of(value: Any) -> Any:
    kind = type(value)
    if kind is float or kind is int or kind is Decimal:
        return value
    if kind is NoCachedValue:
        return None
    return BAD


def whole(value: Any) -> Any:
    kind = type(value)
    if kind is int or value is None:
        return value
    if kind is float:
        return int(value) if value.is_integer() else BAD
    return None if kind is NoCachedValue else BAD


def moment_of(value: Any, number: Callable[[float], Any]) -> Any:
    kind = type(value)
    if kind is datetime:
        return dates.naive(value)
    if kind is date:
        return datetime.combine(value, time())
    if kind is int or kind is float:
        return number(value)
    return None if kind is NoCachedValue else BAD


def time_of(value: Any) -> Any:
    kind = type(value)
    if kind is time:
        return value.replace(tzinfo=None)
    if kind is datetime:
        return value.time()
    if kind is timedelta and timedelta() <= value < timedelta(days=1):
        return (_MIDNIGHT + value).time()
    if kind is float and 0 <= value < 1:
        return (_MIDNIGHT + timedelta(seconds=round(value * 86_400, 3))).time()
    return None if kind is NoCachedValue else BAD


def truth_of(value: Any) -> Any:
    if type(value) is bool:
        return value
    if type(value) in (int, float) and value in (0, 1):
        return bool(value)
    return None if type(value) is NoCachedValue else BAD
