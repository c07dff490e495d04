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
from runner.engine.values.convention_choices import Convention
from runner.engine.values.decisions import decide_convention, tally_values
from runner.engine.values.words import BAD, MAX_MEMO, Bad, ParsingMemo, cleaner, column_cleaner

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
        "is a long number as spreadsheet programs shorten them, with an exponent or zeros at its end; digits are lost",
    ),
    "weekday_contradicts": ("warning", "names a weekday that its date does not fall on; the date is kept"),
    "date_dropped": ("warning", "has a date, which a time field drops"),
    "zone_converted": ("info", "has a time zone; the times of this column are written in UTC"),
    "spelling_learnt": ("info", "is a learnt spelling of an allowed value, which was written"),
    "zone_dropped": ("info", "has a time zone, which a time field drops"),
}
Converted = tuple[list[Any], list[int]]  # the values of a chunk, and the indexes of those that are not of the type


class Converter:
    """Converts chunks of one column under one field's declaration and the column's own conventions.

    It remembers over chunks what each text was converted to, and in `remarks` how texts were read.
    """

    def __init__(
        self,
        field: Field,
        values: Sequence[Any] = (),
        convention: Convention | None = None,
        *,
        epoch_1904: bool = False,
    ) -> None:
        """Prepare to convert a column of `field` by its convention, which was decided from all its values; without one,
        `values` decide."""
        if convention is None:
            convention = _decide_from_values(field, values)
        self.field_type = field.type
        self.decimal = convention.decimal
        self._declared_decimal = field.decimal
        self._in_percent = convention.in_percent  # numbers without a percent sign are percent, not shares
        self._truth_marks = convention.marks  # signs for true and false that do not have their usual meaning here
        self.day_first = convention.dots_day_first if convention.day_first is None else convention.day_first
        self.dots_day_first = convention.dots_day_first
        self.remarks: dict[Any, tuple[str, ...]] = {}  # a cell's value -> codes of REMARKS about how it was read
        self._clean = cleaner(field.clean)
        self._clean_all = column_cleaner(field.clean)
        self._plain_strip = field.clean == ("strip",)
        self._dates = _make_date_reader(field, convention, epoch_1904=epoch_1904)
        self._is_final = words.COMMON_EMAIL.fullmatch if field.type == "email" else None  # a text that stays as it is
        self._native_types = NATIVE.get(field.type, NATIVE["text"])  # types of values that stay as they are
        self._allowed: dict[str, Any] = {}  # folded text -> the allowed value
        self._spellings: frozenset[str] = frozenset()  # texts that are allowed exactly as they are
        self._learnt: Mapping[str, Any] = {}  # folded text -> the allowed value that a person said it means
        self.use_allowed(field.allowed or ())
        # Last: they bind what is set above.
        self._parsed_texts = ParsingMemo(self._make_text_parser())
        self._convert_typed = self._choose_cell_converter()

    def use_allowed(self, values: Iterable[Any]) -> None:
        """Set the allowed values of an enum field, in place of earlier ones: its cells are written as these are
        spelled. If several of them differ only in case, a cell keeps the one it has.
        """
        spellings = list(values)
        self._allowed = {fold(v): v for v in reversed(spellings)}
        self._spellings = frozenset(v for v in spellings if type(v) is str)

    def use_spellings(self, learnt: Mapping[str, Any]) -> None:
        """Set the folded texts that a person said mean an allowed value; each cell converted by one is remarked on.
        Forgets what was parsed before."""
        self._learnt = learnt
        self._parsed_texts.forget()

    def convert(self, values: list[Any]) -> Converted:
        """Convert a chunk of the sender's cells, numbers in percent divided by 100; return the typed values and the
        indexes of cells that are not of the type and stay as they are.

        Adds to `remarks` how texts were read that another reader might have read differently, such as 1.234.
        """
        if not self._in_percent:
            return self.convert_result(values)
        # Of the sender's numbers only: what a rule makes of them is a share already.
        return self.convert_result([v if type(v) in TEXT_KINDS else share_of(v) for v in values])

    def convert_result(self, values: list[Any]) -> Converted:
        """Convert a chunk of values that the sender, a rule or a lookup made; those that are typed already stay as they
        are.

        Texts are read as in the column's cells. Returns and remarks as `convert`.
        """
        if self.field_type == ANY:
            return values, []
        kinds = set(map(type, values))
        if kinds <= self._native_types:
            return values, []
        if Shown in kinds:  # text takes what the cell shows, any other type the number
            content: Callable[[Shown], Any] = self._displayed_text if self.field_type in AS_SHOWN else int
            values = [content(v) if type(v) is Shown else v for v in values]
            kinds = set(map(type, values))
        if len(self.remarks) > MAX_MEMO:
            self.remarks.clear()
            self._parsed_texts.forget()
        if kinds <= TEXT_KINDS:
            if self.field_type == "text" and not self._learnt:
                return self._clean_texts(values, kinds), []
            converted = self._parse_texts(values)
            if not self._parsed_texts.bad:
                return converted, []
        else:
            if self.field_type == "text" and int in kinds:
                self._note_lost_digits(values)
            converted = self._convert_mixed(values)
        bad = [i for i, v in enumerate(converted) if v is BAD]
        for i in bad:
            converted[i] = values[i]
        return converted, bad

    def _parse_texts(self, values: list[Any]) -> list[Any]:
        """Parse a chunk that has only texts and blanks, each different text once; BAD for a text that is not of the
        type."""
        memo, is_final = self._parsed_texts, self._is_final
        if is_final is not None and self._plain_strip:
            return [v if v is None or is_final(v) else memo[v] for v in values]
        return list(map(memo.__getitem__, values))

    def _convert_mixed(self, values: list[Any]) -> list[Any]:
        """Convert a chunk with cells of several types, such as dates beside texts; BAD for each cell that is not of the
        type."""
        memo, convert_typed, native = self._parsed_texts, self._convert_typed, self._native_types
        return [v if type(v) in native else memo[v] if type(v) is str else convert_typed(v) for v in values]

    def _note_lost_digits(self, values: list[Any]) -> None:
        """Remark on the whole numbers of a chunk that are longer than a spreadsheet program keeps, if all of them end
        as it cuts them."""
        long_numbers = [v for v in values if type(v) is int and abs(v) >= 10**numbers.EXACT_DIGITS]
        if all(v % 10 ** (len(str(abs(v))) - numbers.EXACT_DIGITS) == 0 for v in long_numbers):
            self.remarks |= dict.fromkeys(long_numbers, ("digits_lost",))

    def _displayed_text(self, value: Shown) -> str:
        """Return what a number cell displays (007 for 7) for a text field; only its digits if just those are an allowed
        value."""
        digits = str(int(value))
        return digits if fold(digits) in self._allowed and fold(value) not in self._allowed else value.shown

    def _clean_texts(self, values: list[Any], kinds: set[type]) -> list[Any]:
        """Clean a chunk of a text field, None for texts that are then empty; remarks on long numbers that a program
        shortened."""
        has_no_blank = type(None) not in kinds
        whole_chunk = "\n".join(values if has_no_blank else filter(None, values))  # searched once
        if not self._plain_strip:
            cleaned = self._clean_all(values)
        elif not whole_chunk.isascii():
            cleaned = [v and self._clean(v) for v in values]
        else:
            cleaned = list(map(str.strip, values)) if has_no_blank else [v and v.strip() for v in values]
        if "E+" in whole_chunk:
            self.remarks |= {v: ("digits_lost",) for v in values if v and numbers.is_shortened(v)}
        return [v or None for v in cleaned] if "" in cleaned else cleaned

    def _make_text_parser(self) -> Callable[[str], Any]:
        """Make the function that the memo calls for each new text: it cleans the text and parses it to the declared
        type.

        That function returns None for a blank and BAD for a text that is not of the type, and adds to `remarks`.
        """
        clean = self._clean
        parse: Callable[[str], Any] = {
            "integer": self._parse_whole_number,
            "decimal": self._parse_number,
            "money": self._parse_number,
            "percent": self._parse_percent,
            "date": self._dates.day,
            "datetime": self._dates.moment,
            "time": self._dates.clock,
            "boolean": self._parse_truth,
            "email": words.parse_email,
            "phone": words.parse_phone,
            "url": words.parse_url,
            "enum": lambda text: (text if text in self._spellings else self._allowed.get(fold(text), text)) or None,
        }.get(self.field_type, lambda text: text or None)
        remarks = self._dates.remarks  # about the text that was parsed last

        def parse_and_remark(text: str) -> Any:
            """Parse a text, and move the date reader's remarks about it to the converter's `remarks`."""
            value = parse(clean(text))
            if self._learnt and type(value) is str and (meaning := self._learnt.get(fold(value))) is not None:
                self.remarks[text] = ("spelling_learnt",)
                return meaning
            if remarks:
                if value is not BAD:  # a text that cannot be read is only a type error
                    self.remarks[text] = tuple(remarks)
                remarks.clear()
            return value

        return parse_and_remark

    def _parse_numeral(self, text: str) -> str | Bad | None:
        """Parse a number to its plain form (`-1234.5`), None for a blank, BAD for another text; remarks on a number
        that contradicts its column or could be read in two ways."""
        plain = numbers.plain_number(text, self._declared_decimal, self.decimal)
        if not isinstance(plain, numbers.PlainNumber):
            return plain
        if plain.is_doubtful:
            self._dates.remarks.append("decimal_mixed" if self.decimal else "decimal_assumed")
        return plain.numeral

    def _parse_number(self, text: str) -> numbers.Number | Bad | None:
        """Parse a number by the column's decimal sign, common forms first; None for a blank, BAD for another text."""
        # A decimal sign in a column that seemed to have none needs a full parse.
        number = numbers.quick_number(text, self.decimal) if self.decimal else numbers.number_of_digits(text)
        if number is not None:
            return number
        numeral = self._parse_numeral(text)
        return numbers.to_number(numeral) if isinstance(numeral, str) else numeral

    def _parse_whole_number(self, text: str) -> int | Bad | None:
        """Parse a whole number, None for a blank, BAD for another text; remarks on one that a program shortened to
        1.2E+15."""
        if text.isdecimal() and text.isascii() and len(text) <= numbers.MAX_TEXT:
            return int(text)
        numeral = self._parse_numeral(text)
        if numbers.is_shortened(text):
            self._dates.remarks.append("digits_lost")
        return numbers.to_whole(numeral) if isinstance(numeral, str) else numeral

    def _parse_truth(self, text: str) -> bool | Bad | None:
        """Parse a yes or no by what the mark means in this column, else by the word; None for a blank, BAD if neither
        is known."""
        if self._truth_marks and (mark := text.strip().casefold()) in self._truth_marks:
            meaning = self._truth_marks[mark]
            return BAD if meaning is None else meaning
        return words.parse_boolean(text)

    def _parse_percent(self, text: str) -> numbers.Number | Bad | None:
        """Parse a percentage to a share: 45 % is exactly 0.45. None for a blank, BAD for another text."""
        bare = numbers.strip_percent(text)
        numeral = self._parse_numeral(bare.number)
        if not isinstance(numeral, str):
            return BAD if bare.has_sign and numeral is None else numeral
        if bare.is_negative:
            if numeral[0] == "-":  # (-5 %) says it twice
                return BAD
            numeral = f"-{numeral}"
        if not (bare.has_sign or self._in_percent):
            return numbers.to_number(numeral)
        digits, _, exponent = numeral.lower().partition("e")
        return numbers.to_number(f"{digits}e{int(exponent or 0) - 2}")

    def _choose_cell_converter(self) -> Callable[[Any], Any]:
        """Return the function that converts a cell that is neither a text nor blank to the declared type; types without
        one of their own take the cell's text.

        That function returns None for a formula without a stored result, and BAD for a cell that is not of the type.
        """
        converters: dict[str, Callable[[Any], Any]] = {
            "integer": whole_of,
            "decimal": number_of,
            "money": number_of,
            "percent": number_of,
            "date": self._convert_date_cell,
            "datetime": partial(moment_of, date_of_number=self._dates.number),
            "time": self._convert_time_cell,
            "boolean": truth_of,
        }
        if self.field_type in converters:
            return converters[self.field_type]
        memo = self._parsed_texts
        refused = _NO_ADDRESS if self.field_type in ("phone", "email", "url") else frozenset({CellError})

        def convert_as_text(value: Any) -> Any:
            """Convert the text that a person would type for the cell; remarks about that text become remarks about the
            cell."""
            if type(value) in refused:
                return BAD
            text = text_of(value)
            converted = memo[text]
            if text in self.remarks:
                self.remarks[value] = self.remarks[text]
            return converted

        return convert_as_text

    def _convert_time_cell(self, value: Any) -> Any:
        """Convert a cell to its time of day, or None or BAD as `time_of` does; remarks on a date that is dropped."""
        if type(value) is datetime:
            self.remarks[value] = ("date_dropped",)
        return time_of(value)

    def _convert_date_cell(self, value: Any) -> Any:
        """Convert a cell to its date, or None or BAD as `moment_of` does; remarks on a time of day that is dropped."""
        moment = moment_of(value, self._dates.number)
        if type(moment) is not datetime:
            return moment
        if moment.time() != time():
            self.remarks[value] = ("time_dropped",)
        return moment.date()


def _decide_from_values(field: Field, values: Sequence[Any]) -> Convention:
    """Decide the convention of a column from some of its values alone; nothing is reported."""
    tally = tally_values(field, values)
    return Convention() if tally is None else decide_convention(field, tally)[0]


def _make_date_reader(field: Field, convention: Convention, *, epoch_1904: bool) -> dates.DateReader:
    """Make the reader of a column's dates and times from the field's formats and the column's convention."""
    return dates.DateReader(
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


def fold(value: Any) -> Any:
    """Return a value's text without case and outer blanks, to compare it with allowed values; the number 1 equals
    "1"."""
    return text_of(value).strip().casefold()


def text_of(value: Any) -> Any:
    """Return a cell as the text that a person would type for it; empty for a blank or a formula without a result."""
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
    """Write a float in plain digits without `.0`, as a person types it; a very large or very small one with an
    exponent."""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    text = repr(value)
    if "e" in text and 1e-7 <= abs(value) < 1e21:
        text = f"{Decimal(text):f}"
    return text.removesuffix(".0")


def _duration_text(value: timedelta) -> str:
    """Write a duration as a cell of the format [h]:mm:ss displays it: 26:30:00."""
    seconds = abs(value) // timedelta(seconds=1)
    milliseconds = abs(value) % timedelta(seconds=1) // timedelta(milliseconds=1)
    sign = "-" if value < timedelta() else ""
    clock = f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{milliseconds:03}" if milliseconds else clock


def number_of(value: Any) -> Any:
    """Return a number cell as it is, None for a formula without a result, BAD for any other cell that is neither text
    nor blank."""
    kind = type(value)
    if kind is float or kind is int or kind is Decimal:
        return value
    if kind is NoCachedValue:
        return None
    return BAD


def share_of(value: Any) -> Any:
    """Return the share that a number in percent is, exactly 0.45 for 45; a cell that is not a number stays as it is."""
    if isinstance(value, float):
        # Moving the decimal point gives exactly 0.45 for 45; multiplying by 0.01 does not.
        return float(Decimal(repr(value)).scaleb(-2)) if isfinite(value) else value
    is_number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    return float(Decimal(value).scaleb(-2)) if is_number else value


def whole_of(value: Any) -> Any:
    """Return the whole number of a cell that is neither text nor blank; None for a formula without a result, BAD for
    others."""
    kind = type(value)
    if kind is int:
        return value
    if kind is float:
        return int(value) if value.is_integer() else BAD
    return None if kind is NoCachedValue else BAD


def moment_of(value: Any, date_of_number: Callable[[float], Any]) -> Any:
    """Return the date and time of a cell that is neither text nor blank; None for a formula without a result, BAD for
    others.

    `date_of_number` converts a number as this column counts days.
    """
    kind = type(value)
    if kind is datetime:
        return dates.naive(value)
    if kind is date:
        return datetime.combine(value, time())
    if kind is int or kind is float:
        return date_of_number(value)
    return None if kind is NoCachedValue else BAD


def time_of(value: Any) -> Any:
    """Return the time of day of a cell that is neither text nor blank; None for a formula without a result, BAD for
    others."""
    kind = type(value)
    if kind is time:
        return value.replace(tzinfo=None)
    if kind is datetime:
        return value.time()
    if kind is timedelta and timedelta() <= value < timedelta(days=1):
        return (_MIDNIGHT + value).time()
    if kind is float and 0 <= value < 1:  # a part of a day
        return (_MIDNIGHT + timedelta(seconds=round(value * 86_400, 3))).time()
    return None if kind is NoCachedValue else BAD


def truth_of(value: Any) -> Any:
    """Return the yes or no of a cell that is neither text nor blank; None for a formula without a result, BAD for
    others."""
    if type(value) is bool:
        return value
    if type(value) in (int, float) and value in (0, 1):
        return bool(value)
    return None if type(value) is NoCachedValue else BAD
