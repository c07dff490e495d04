"""Turn the cells of a column into values of the field's declared type, a chunk at a time.

Speed comes from looking at the set of types in a chunk first: a chunk of one type takes one comprehension, texts
go through a memo, and only mixed chunks are looked at cell by cell. A cell that is not of the type keeps what it
held and its index is reported; nothing raises for expected dirt.
"""

from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, Final

from runner.engine.fields import ANY, Field
from runner.engine.reading import CellError, NoCachedValue, Shown
from runner.engine.values import dates, numbers, words
from runner.engine.values.clean import cleaner, column_cleaner
from runner.engine.values.memo import BAD, Bad, Memo

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
Converted = tuple[list[Any], list[int]]


class Converter:
    """Converts chunks of one column under one field's declaration and the column's own conventions."""

    def __init__(self, field: Field, texts: Iterable[str] = (), *, epoch_1904: bool = False) -> None:
        texts = list(texts)
        self.kind = field.type
        self.decimal = field.decimal or numbers.decimal_of(texts)
        self._strict_decimal = field.decimal
        self.day_first = field.day_first if field.day_first is not None else dates.day_first_of(texts)
        undecided = field.type in ("date", "datetime") and self.day_first is None
        self.assumes_order = undecided and not field.formats and dates.ambiguous(texts)
        self._clean = cleaner(field.clean)
        self._clean_all = column_cleaner(field.clean)
        self._plain_strip = field.clean == ("strip",)
        self._read = dates.DateReader(field.formats, day_first=self.day_first, epoch_1904=epoch_1904)
        self._fine = words.COMMON_EMAIL.fullmatch if field.type == "email" else None
        self._native = NATIVE.get(field.type, NATIVE["text"])
        self._allowed = {fold(v): v for v in reversed(field.allowed or ())}
        self._memo = Memo(self._parser())
        self._other = self._others()

    def use_allowed(self, values: Iterable[Any]) -> None:
        """Spell an enum's values the way the look-up table does."""
        self._allowed = {fold(v): v for v in values}

    def convert(self, values: list[Any]) -> Converted:
        """The typed values, and the indexes of the cells that are not of the type and stay what they were."""
        if self.kind == ANY:
            return values, []
        kinds = set(map(type, values))
        if kinds <= self._native:
            return values, []
        if Shown in kinds:  # a text takes what the cell shows, any other type the number
            takes: Callable[[Shown], Any] = self._shown if self.kind in AS_SHOWN else int
            values = [takes(v) if type(v) is Shown else v for v in values]
            kinds = set(map(type, values))
        memo = self._memo
        if kinds <= TEXT_KINDS:
            if self.kind == "text":
                return self._texts(values, kinds), []
            if self._fine is not None and self._plain_strip:
                fine = self._fine
                out = [v if v is None or fine(v) else memo[v] for v in values]
            else:
                out = list(map(memo.__getitem__, values))
            if not memo.bad:
                return out, []
        else:
            other, native = self._other, self._native
            out = [v if type(v) in native else memo[v] if type(v) is str else other(v) for v in values]
        bad = [i for i, v in enumerate(out) if v is BAD]
        for i in bad:
            out[i] = values[i]
        return out, bad

    def _shown(self, value: Shown) -> str:
        """What the cell shows; its digits where only they are among the allowed values."""
        digits = str(int(value))
        return digits if fold(digits) in self._allowed and fold(value) not in self._allowed else value.shown

    def _texts(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if self._plain_strip:
            if type(None) not in kinds:
                out: list[Any] = list(map(str.strip, values))
            else:
                out = [v and v.strip() for v in values]
            if not all(map(str.isascii, filter(None, out))):
                out = [v and self._clean(v) for v in out]
        else:
            out = self._clean_all(values)
        return [v or None for v in out] if "" in out else out

    def _parser(self) -> Callable[[str], Any]:
        clean = self._clean
        parse: Callable[[str], Any] = {
            "integer": lambda text: numbers.parse_integer(text, self._strict_decimal, self.decimal),
            "decimal": lambda text: numbers.parse_number(text, self._strict_decimal, self.decimal),
            "money": lambda text: numbers.parse_number(text, self._strict_decimal, self.decimal),
            "percent": self._percent,
            "date": self._read.day,
            "datetime": self._read.moment,
            "time": self._read.clock,
            "boolean": words.parse_boolean,
            "email": words.parse_email,
            "phone": words.parse_phone,
            "url": words.parse_url,
            "enum": lambda text: self._allowed.get(fold(text), text) or None,
        }.get(self.kind, lambda text: text or None)
        return lambda text: parse(clean(text))

    def _percent(self, text: str) -> float | Bad | None:
        body = text.rstrip().removesuffix("%") if text.rstrip().endswith("%") else None
        number = numbers.parse_number(text if body is None else body, self._strict_decimal, self.decimal)
        # Dividing the digits keeps 45 % at 0.45 where a product with 0.01 would not.
        return number / 100 if body is not None and isinstance(number, float) else number

    def _others(self) -> Callable[[Any], Any]:
        """What becomes of a cell that holds no plain text."""
        turns: dict[str, Callable[[Any], Any]] = {
            "integer": whole,
            "decimal": number_of,
            "money": number_of,
            "percent": number_of,
            "date": partial(date_of, epoch_1904=self._read.epoch_1904),
            "datetime": partial(moment_of, epoch_1904=self._read.epoch_1904),
            "time": time_of,
            "boolean": truth_of,
        }
        if (turn := turns.get(self.kind)) is not None:
            return turn
        memo = self._memo

        def through_text(value: Any) -> Any:
            return BAD if type(value) is CellError else memo[text_of(value)]

        return through_text


def fold(value: Any) -> Any:
    """How allowed values are compared: case and outer blanks do not count, 1 and "1" are the same."""
    return text_of(value).strip().casefold()


def text_of(value: Any) -> Any:
    """A cell as text, the way a person would type it."""
    kind = type(value)
    if kind is str:
        return value
    if kind is Shown:
        return value.shown
    if kind is float:
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if kind is bool:
        return "TRUE" if value else "FALSE"
    if kind is datetime:
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    if value is None or kind is NoCachedValue:
        return ""
    return value.isoformat() if kind in (date, time) else str(value)


def number_of(value: Any) -> Any:
    kind = type(value)
    if kind is float or kind is int:
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


def moment_of(value: Any, *, epoch_1904: bool = False) -> Any:
    kind = type(value)
    if kind is datetime:
        return dates.naive(value)
    if kind is date:
        return datetime.combine(value, time())
    if kind is int or kind is float:
        return dates.from_serial(value, epoch_1904=epoch_1904)
    return None if kind is NoCachedValue else BAD


def date_of(value: Any, *, epoch_1904: bool = False) -> Any:
    moment = moment_of(value, epoch_1904=epoch_1904)
    return moment.date() if type(moment) is datetime else moment


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
