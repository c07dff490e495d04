"""Counts what all values of a column show about its conventions.

A tally sees every text of a column, so it must be cheaper than parsing. Most texts differ only in digits: with all
digits mapped to one, a column of a million amounts has a few dozen shapes, and only the shapes are parsed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Final

from runner.engine.values.calendar_names import folded
from runner.engine.values.dates import (
    COMPACT_DATES,
    FIRST_SERIAL,
    PLAUSIBLE_SERIALS,
    NumberMeaning,
    NumericDate,
    first_date,
    is_unix,
    names_zone,
    numeric_date,
)
from runner.engine.values.numbers import MAX_TEXT, PercentText, number_parts, strip_percent
from runner.engine.values.words import BOOLEANS, HOLLOW, NOTHING

_SEPARATOR: Final = "\x1f"
_DIGITS_LEVELLED: Final = str.maketrans("23456789", "11111111")
_MAX_PENDING: Final = 20_000  # distinct shapes kept before they are counted
# Day numbers, dates without separators and Unix times: the whole text, as 12345.6 kg counts nothing.
_COUNTING_NUMBER = re.compile(r"[1-9](?:[0-9]{4,6}|[0-9]{9}|[0-9]{12})(?:\.[0-9]+)?")


Clean = Callable[[str], str]
Signature = tuple[bool, ...]  # which kinds of texts a column has
_ENOUGH_ALIKE: Final = 500  # texts that all show the same


class NumberTally:
    """How often a column's texts prove a decimal point, a decimal comma, or neither.

    `add` only gathers texts; the counts are complete after `count_pending`.
    """

    def __init__(
        self, clean: Clean = str.strip, *, percents: bool = True, sizes: bool = False, every: bool = False
    ) -> None:
        """Start with nothing counted.

        `percents`: a number may have a percent sign; only fields of that type take such numbers. `sizes`: numbers are
        also counted by size, for percentages. `every`: one rare value matters, such as a currency, so that the column
        is never sampled.
        """
        self._clean = clean
        self._percents = percents
        self._counts_every_value = every or sizes
        self.sizes = sizes
        self.point = 0  # texts that only fit a decimal point
        self.comma = 0  # texts that only fit a decimal comma
        self.unclear_points = 0  # 1.234: a decimal point or a grouping one
        self.unclear_commas = 0  # 1,234
        self.unclear_round = 0  # of the unclear ones, those that end in 0: no trimmed decimals
        self.unclear_thousands = 0  # of the unclear ones, those that end in 000: whole either way
        self.short_whole = 0  # up to three digits and no sign
        self.long_ungrouped = 0  # four digits and more, and nothing to group them
        self.numbers = 0  # texts that are numbers
        self.texts = 0  # all that are not blank
        self.with_percent_sign = 0
        self.shares = 0  # without one, between -1 and 1 and not whole
        self.beyond_one = 0  # without one, beyond -1 and 1
        self.exactly_one = 0  # without one, exactly 1 or -1
        self.currencies: Counter[str] = Counter()  # "" for numbers without one
        self._pending_shapes: Counter[str] = Counter()  # not counted yet

    @property
    def unclear(self) -> int:
        """Count the texts that fit both decimal signs with different values, such as 1.234."""
        return self.unclear_points + self.unclear_commas

    def add(self, texts: Sequence[str]) -> None:
        """Gather texts by their shape until `count_pending` counts them; with `sizes` as they are, because each size
        matters."""
        if self.sizes:
            self._pending_shapes.update(texts)
        else:
            shapes = _SEPARATOR.join(texts).translate(_DIGITS_LEVELLED).split(_SEPARATOR)
            if len(shapes) != len(texts):  # a text with the separator in it
                shapes = [text.translate(_DIGITS_LEVELLED) for text in texts]
            self._pending_shapes.update(shapes)
        if len(self._pending_shapes) > _MAX_PENDING:
            self.count_pending()

    def signature(self) -> Signature:
        """Return which decimal signs and currencies were met; a column whose samples change it is not uniform."""
        return self.point > 0, self.comma > 0, self.unclear_points > 0, self.unclear_commas > 0, self.has_currency

    @property
    def has_currency(self) -> bool:
        return not self.currencies.keys() <= {""}

    def is_uniform(self) -> bool:
        """Whether enough texts agree on one decimal sign, or on none, that counting a sample of the rest suffices."""
        if self._counts_every_value or self.has_currency:
            return False
        proofs_for, proofs_against = max(self.point, self.comma), min(self.point, self.comma)
        without_sign = not (proofs_for or self.unclear) and self.numbers >= _ENOUGH_ALIKE
        return not proofs_against and (proofs_for >= _ENOUGH_ALIKE or without_sign)

    def add_numbers(self, values: Iterable[float]) -> None:
        """Count cells that are already numbers, by whether they may be shares of 1."""
        for value in values:
            self._count_size(abs(value), 1)

    def count_pending(self) -> "NumberTally":
        """Count the shapes gathered so far, forget them, and return the tally itself."""
        for shape, count in self._pending_shapes.items():
            self._count_shape(shape, count)
        self._pending_shapes.clear()
        return self

    def _count_shape(self, shape: str, count: int) -> None:
        """Add the texts of one shape to the counters: as numbers, and by the decimal sign that they prove."""
        bare = self._clean(shape).strip()
        if not bare:
            return
        self.texts += count
        text = strip_percent(bare) if self._percents else PercentText(bare)
        parts = number_parts(text.number) if len(bare) <= MAX_TEXT else None
        if parts is None:
            return
        self.numbers += count
        self.currencies[parts.currency] += count
        sign, body = parts.decimal_sign, parts.body
        if sign == ".":
            self.point += count
        elif sign == ",":
            self.comma += count
        elif sign == "?":
            if "." in body:
                self.unclear_points += count
            else:
                self.unclear_commas += count
            self.unclear_round += count if body[-1] == "0" else 0
            self.unclear_thousands += count if body[-3:] == "000" else 0
        elif body.isdigit():
            self.short_whole += count if len(body) <= 3 else 0
            self.long_ungrouped += count if len(body) > 3 else 0
        if text.has_sign:
            self.with_percent_sign += count
        elif self.sizes:
            numeral = (parts.comma if sign == "," else parts.point) or "0"
            self._count_size(abs(float(numeral)), count)

    def _count_size(self, size: float, cells: int) -> None:
        """Add numbers without a percent sign to the counter of their size: between 0 and 1, exactly 1, or beyond."""
        if size > 1:
            self.beyond_one += cells
        elif size == 1:
            self.exactly_one += cells
        elif size:
            self.shares += cells


_ENOUGH_STORED: Final = 3  # dates whose days are all up to the twelfth
_LIKELY_SERIALS: Final = range(21_916, 49_310)  # 1960 to 2034
_FEW_SERIALS: Final = 3  # that differ in their first digits by chance
_MONTHS: Final = frozenset(range(1, 13))
_DAYS: Final = frozenset(range(1, 32))


class OrderCount:
    """How often dates of one kind prove the day first, the month first, or neither."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.day_first = 0  # 31/12/2025, Mon 05/01/2026
        self.month_first = 0  # 12/31/2025, Mon 01/05/2026
        self.unclear = 0  # 01/02/2025
        self.unclear_dashed = 0  # 01-02-2025
        self.first_numbers: Counter[int] = Counter()  # how often each number comes first
        self.second_numbers: Counter[int] = Counter()

    def add(self, numeric: NumericDate, cells: int) -> None:
        """Add a date that `cells` cells have to the counters of the order of day and month that it proves."""
        self.first_numbers[numeric.first] += cells
        self.second_numbers[numeric.second] += cells
        order = numeric.comes_first
        if order == "day":
            self.day_first += cells
        elif order == "month":
            self.month_first += cells
        elif order == "either":
            self.unclear += cells
            self.unclear_dashed += cells if numeric.sign == "-" else 0


class DateTally:
    """What a column's dates show about their order; dates with points are counted separately.

    `add` only gathers texts; the counts are complete after `count_pending`.
    """

    def __init__(self, clean: Clean = str.strip) -> None:
        """Start with nothing counted."""
        self._clean = clean
        self.slashed = OrderCount()  # 01/02/2025 and 01-02-2025
        self.dotted = OrderCount()  # 01.02.2025
        self.short_years: Counter[int] = Counter()  # two-digit years
        self.year_first = True  # no text with a two-digit year rules out the year first
        self.short_first: Counter[int] = Counter()  # the first numbers of dates with such a year
        self.zoned = 0  # times with a zone
        self.unzoned = 0
        self.year_then_day = 0  # 2026-31-01
        self.year_unclear = 0  # 2026-02-01
        self.stored = 0  # cells that are dates already, while none has a day after the twelfth
        self.stored_late = False  # one has
        self.past_serials = 0  # numbers such as 260131: too large for day numbers
        self.serials = 0  # numbers that may count days
        self._serials: set[float] = set()  # the different ones of these
        self.unix = 0  # numbers that may be seconds or milliseconds since 1970
        self._unix: set[int] = set()  # the different ones of these, up to a limit
        self._pending_texts: Counter[str] = Counter()  # not counted yet
        self._texts_counted = 0  # texts counted

    def add_dates(self, values: Sequence[date]) -> None:
        """Count cells that are stored as dates, until one is after the twelfth: then no program swapped their days and
        months."""
        if not self.stored_late:
            self.stored += len(values)
            self.stored_late = any(value.day > 12 for value in values)

    def seems_swapped(self) -> bool:
        """Whether a program seems to have swapped days and months: it stored each date that it could read in its own
        order, and left as texts those that it could not."""
        day_first = self.slashed.day_first + self.dotted.day_first
        month_first = self.slashed.month_first + self.dotted.month_first
        unclear = self.slashed.unclear + self.dotted.unclear
        texts_have_one_order = bool(day_first) != bool(month_first) and not unclear
        return texts_have_one_order and self.stored >= _ENOUGH_STORED and not self.stored_late

    def add_numbers(self, values: Iterable[float]) -> None:
        """Count cells that are already numbers, by the kind of date that they may be."""
        for value in values:
            self._count_number(value, 1)

    def _count_number(self, value: float, count: int) -> None:
        """Add a number to the counter of the kind of date that it may be: a day number, digits of a date (260131), a
        Unix time."""
        if FIRST_SERIAL <= value < PLAUSIBLE_SERIALS:
            self.serials += count
            self._serials.add(value)
        elif PLAUSIBLE_SERIALS <= value < COMPACT_DATES:
            self.past_serials += count
        elif is_unix(value):
            self.unix += count
            if len(self._unix) < _MAX_PENDING:
                self._unix.add(int(value))

    def numbers(self) -> NumberMeaning:
        """Tell what the numbers of the column are: counts of days, digits of dates, or Unix times."""
        if self.past_serials:
            return "digits"
        return "seconds" if not self.serials and not all(map(_is_minute, self._unix)) else "days"

    def run_on_form(self) -> str:
        """Return the format of dates without separators (%d%m%y) that all numbers which may count days fit; empty if
        there is none.

        Day numbers fit by chance. So they must also be far apart, end in one year, or be unlikely days. The first zero
        of a date may be lost.
        """
        if not self._serials or any(value != int(value) for value in self._serials):
            return ""
        serials = set(map(int, self._serials))
        middles, ends = {serial // 100 % 100 for serial in serials}, {serial % 100 for serial in serials}
        if not middles <= _DAYS:
            return ""
        if middles <= _MONTHS and ends <= _DAYS:
            return "%y%m%d" if len(serials) > 1 or not serials <= set(_LIKELY_SERIALS) else ""
        are_far_apart = len(serials) >= _FEW_SERIALS and len({serial // 10_000 for serial in serials}) > 1
        are_of_one_year = len(serials) > 1 and len(ends) == 1
        if not (are_far_apart or are_of_one_year):
            return ""
        return "%d%m%y" if middles <= _MONTHS else "%m%d%y"

    def add(self, texts: Iterable[str]) -> None:
        """Gather texts until `count_pending` counts them."""
        self._pending_texts.update(texts)
        if len(self._pending_texts) > _MAX_PENDING:
            self.count_pending()

    def count_pending(self) -> "DateTally":
        """Count the texts gathered so far, dates apart from the times of day behind them, forget them, and return the
        tally itself."""
        days: dict[str, int] = {}
        clocks: Counter[str] = Counter()
        clean = self._clean
        for raw, count in self._pending_texts.items():
            self._texts_counted += count
            text = clean(raw).strip()
            if len(text) > MAX_TEXT:
                continue
            if _COUNTING_NUMBER.fullmatch(text):
                self._count_number(float(text), count)
                continue
            if not text.isascii():
                text = folded(text)
            if (colon := text.find(":")) >= 0:
                day = text[:colon].rstrip("0123456789")
                clock = text[len(day) :]
                is_plain = "-" not in clock and "+" not in clock  # the digits of an offset matter
                clocks[clock.translate(_DIGITS_LEVELLED) if is_plain else clock] += count
                text = day
            if text[-4:].isdecimal() and text[:1].isdecimal():  # without a weekday any year shows the same
                text = text[:-4] + "2000"
            days[text] = days.get(text, 0) + count
        self._pending_texts.clear()
        for text, count in days.items():
            self._count_date(text.lower(), count)
        for clock, count in clocks.items():
            zoned = names_zone(clock.lower())
            self.zoned += count if zoned else 0
            self.unzoned += count if zoned is False else 0
        return self

    def _count_date(self, text: str, count: int) -> None:
        """Add a text without a time of day to the counters: by the order of its numbers, and by the length of its
        year."""
        if (written := first_date(text)) is None:
            return
        if (numeric := numeric_date(written)) is not None:
            self._count_order(numeric, count)
        elif year := written["year_dmy"] or written["year_mdy"]:
            if len(year := year.lstrip("'")) == 2:
                self.short_years[int(year)] += count
        elif written["year_iso"]:
            month, day = int(written["month_iso"]), int(written["day_iso"])
            self.year_then_day += count if month > 12 >= day else 0
            self.year_unclear += count if month <= 12 >= day and month != day else 0

    def signature(self) -> Signature:
        """Tell which orders, short years and zones the column has; one whose samples change this is not uniform."""
        orders = (self.slashed, self.dotted)
        return (
            *(count > 0 for order in orders for count in (order.day_first, order.month_first, order.unclear)),
            bool(self.short_years),
            self.year_then_day > 0,
            self.zoned > 0,
            self.unzoned > 0,
        )

    def is_uniform(self) -> bool:
        """Whether enough texts agree on one order, or need none, that counting a sample of the rest suffices."""
        orders = (self.slashed, self.dotted)
        proofs = [count for order in orders for count in (order.day_first, order.month_first) if count]
        unclear = self.slashed.unclear + self.dotted.unclear + len(self.short_years)
        without_order = not (proofs or unclear) and self._texts_counted >= _ENOUGH_ALIKE
        return without_order or (len(proofs) == 1 and proofs[0] >= _ENOUGH_ALIKE and not self.short_years)

    def _count_order(self, numeric: NumericDate, count: int) -> None:
        """Add a date such as 01/02/2025 to the counters of what it proves about the order of day, month and year."""
        order = self.dotted if numeric.sign[0] == "." else self.slashed
        order.add(numeric, count)
        if len(numeric.year) == 2:
            self.short_years[int(numeric.year)] += count
            self.short_first[numeric.first] += count
            self.year_first = self.year_first and 1 <= int(numeric.year) <= 31 and 1 <= numeric.second <= 12


def _is_minute(number: int) -> bool:
    """Whether a number may be the digits of a date and a minute: 2601311015."""
    month, day, hour, minute = (number // 10**at % 100 for at in (6, 4, 2, 0))
    return number < 10**10 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60


class TruthTally:
    """Which words for true and false a column has; never uniform, for one word may change what others mean."""

    def __init__(self, clean: Clean = str.strip) -> None:
        """Start with no text; `clean` is applied to each."""
        self._clean = clean
        self._pending_texts: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Gather texts, until there are more than any column of marks has."""
        if len(self._pending_texts) < _MAX_PENDING:
            self._pending_texts.update(texts)

    def count_pending(self) -> "TruthTally":
        """Return the tally itself; nothing is pending."""
        return self

    def signature(self) -> Signature:
        """Always the same; a column of marks is never sampled."""
        return ()

    def is_uniform(self) -> bool:
        """Never, see above."""
        return False

    def marks(self) -> dict[str, bool | None]:
        """Return the marks for yes and no that mean something else in this column than by themselves, each with its
        meaning; None: nobody can tell. Empty if all mean the usual.

        An x means true; beside other words for true, and none for false, it may mean false. A hollow sign beside a full
        one is false. A letter beside another one that is not understood, or means the same, is of a language that
        nobody here knows: V and Y are Turkish for yes and no.
        """
        words = {self._clean(text).strip().casefold() for text in self._pending_texts}
        marks: dict[str, bool | None] = {}
        hollow = {sign: full for sign, full in HOLLOW.items() if sign in words and not words.isdisjoint(full)}
        if hollow:
            marks |= {sign: True for full in hollow.values() for sign in full}
            marks |= dict.fromkeys(hollow, False)
            return marks | ({"☒": None} if "☑" in words else {})
        truths = {BOOLEANS[word] for word in words - {"x"} if word in BOOLEANS}
        if len(truths) != 1:
            return {}
        if "x" in words and truths == {True}:
            marks["x"] = None
        letters = {word for word in words - {"x"} if len(word) == 1 and word.isalpha()}
        if len(letters) > 1 and words - letters <= NOTHING:
            marks |= dict.fromkeys(letters)
        return marks
