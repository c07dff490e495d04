"""Decides the convention of a column once, from all its values and its surroundings.

A value with only one possible reading proves it. Without such a value, weaker hints are added up: the other columns,
the field's type, the delimiter. Hints short of a proof still decide, but the choice is reported.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import NUMERIC, Field
from runner.engine.values.date_formats import day_first_of
from runner.engine.values.dates import BIRTH_YEARS, PIVOT, SHORT_YEARS, NumberMeaning
from runner.engine.values.tallies import DateTally, NumberTally, OrderCount, TruthTally
from runner.engine.values.words import cleaner

Tally = NumberTally | DateTally | TruthTally
_DATES: Final = frozenset({"date", "datetime"})
_OUTNUMBERED: Final = 10  # how many times more often one reading must occur to count for the column
_SLIPS: Final = 2  # values of a column that may be written otherwise by mistake
_PROOF: Final = 3  # hints of this weight, with none against them, need no finding
_DELIMITER: Final = 2  # the weight of a file's delimiter
_OTHER_SIGN: Final = {".": ",", ",": "."}
_WHOLE_KINDS: Final = frozenset({"integer", "money"})  # three digits after a separator are rather thousands
_POINT_MONEY: Final = frozenset(
    {"$", "£", "¥", "₹", "US$", "C$", "CA$", "A$", "AU$", "NZ$", "HK$", "S$", "USD", "GBP", "JPY", "CNY", "INR", "AUD",
     "CAD", "NZD", "SGD", "HKD"}
)  # fmt: skip
_COMMA_MONEY: Final = frozenset(
    {"€", "EUR", "KR", "KR.", "SEK", "NOK", "DKK", "ZŁ", "ZL", "PLN", "KČ", "CZK", "FT", "HUF", "RON", "BGN", "R$",
     "BRL", "TRY", "₺", "RUB", "₽"}
)  # fmt: skip
_PERCENTAGE: Final = re.compile(r"%|percent|pct|pro[cz]ent|pourcent|porcent|per_?cent", re.IGNORECASE)
_SHORT_FORMATS: Final = {"year": "%y/%m/%d", "day": "%d/%m/%y"}


class Convention(NamedTuple):
    """The conventions of one column, by which its texts are read."""

    decimal: str | None = None  # the decimal sign; None: no value has one
    day_first: bool | None = None  # None: no value needs it
    dots_day_first: bool | None = None  # the same for dates written with points
    year_first: bool = False  # 25/12/31
    pivot: int = PIVOT  # the first two-digit year of the last century
    short_years: bool = False  # it has two-digit years, and the pivot applies to them
    births: bool = False  # its dates are of births
    in_percent: bool = False  # numbers without a percent sign are percent
    numbers: NumberMeaning = "days"  # what the numbers in a date column are
    # Words for true and false that do not mean here what they mean by themselves; None: nobody can tell.
    marks: Mapping[str, bool | None] = MappingProxyType({})


class ConventionChoice(NamedTuple):
    """A choice between readings, to be recorded by `Findings.chose`; one that is not sure becomes a finding."""

    kind: str  # decimal, date_order, unit, …
    chosen: str
    evidence: Mapping[str, int]  # reading -> how many values support it
    sure: bool
    message: str = ""  # of the finding
    settle: str | None = None  # what a person does to make it sure
    values: int = 1  # how many values it concerns
    code: str = ""  # of the finding; empty: made of the kind


class ColumnSurroundings(NamedTuple):
    """The evidence about one column from the rest of the sheet and the file."""

    point: int = 0  # hints that other columns use a decimal point
    comma: int = 0
    day: int = 0  # hints that other columns have the day first
    month: int = 0
    delimiter: str | None = None
    dotted: bool = False  # other columns have dates such as 31.12.2025
    percent_header: bool = False
    births: bool = False  # the column's names speak of births
    # What the number formats of the column's cells show beside the number.
    units: Mapping[str, int] = MappingProxyType({})


_NOTHING_AROUND: Final = ColumnSurroundings()


def decide_convention(
    field: Field, tally: Tally, around: ColumnSurroundings = _NOTHING_AROUND
) -> tuple[Convention, list[ConventionChoice]]:
    """The convention of one column, and the choices that the caller records."""
    if isinstance(tally, TruthTally):
        return Convention(marks=tally.marks()), []
    if isinstance(tally, DateTally):
        convention, order_choices = _decide_dates(field, tally, around)
        choices = [
            *order_choices,
            _year_day_choice(tally, field),
            _swapped_choice(tally),
            _digits_choice(tally, field),
            _zones_choice(tally, field),
        ]
        convention = convention._replace(numbers=tally.numbers(), births=around.births)
    else:
        convention, choices = _decide_numbers(field, tally, around)
    return convention, [choice for choice in choices if choice is not None]


def _decide_dates(
    field: Field, tally: DateTally, around: ColumnSurroundings
) -> tuple[Convention, list[ConventionChoice | None]]:
    """The convention of a column of dates, and what was chosen: None where there was no choice."""
    years = decide_years(tally, field.name, births=around.births)
    has_short_years = bool(tally.short_years)
    declared = field.day_first if field.day_first is not None else day_first_of(field.formats)
    if declared is not None:
        order = Convention(day_first=declared, dots_day_first=declared, pivot=years.pivot, short_years=has_short_years)
        return order, [*years.choices]
    if years.year_first:
        return Convention(year_first=True, short_years=True), [*years.choices]
    day_first, choice = decide_order(tally.slashed, field.name, around)
    beside = around._replace(month=around.month + (day_first is False))
    dots_day_first, dotted_choice = decide_order(tally.dotted, field.name, beside, dotted=True)
    order = Convention(
        day_first=day_first, dots_day_first=dots_day_first, pivot=years.pivot, short_years=has_short_years
    )
    return order, [choice, dotted_choice, *years.choices]


def _decide_numbers(
    field: Field, tally: NumberTally, around: ColumnSurroundings
) -> tuple[Convention, list[ConventionChoice | None]]:
    """The convention of a column of numbers, and what was chosen: None where there was no choice."""
    decimal, choice = field.decimal, None
    if decimal is None:
        decimal, choice = decide_decimal(tally, field.type, field.name, around)
    choices = [choice]
    in_percent = field.unit == "percent"
    if field.type == "percent" and field.unit is None:
        in_percent, choice = decide_unit(tally, field.name, around)
        choices.append(choice)
    if field.type != "percent":
        choices.append(_currencies_choice(tally, field.name, around.units if field.type == "money" else {}))
    if field.type not in ("money", "percent"):
        choices.append(_units_choice(around.units, field.name) or _shares_choice(field, around))
    return Convention(decimal=decimal, in_percent=in_percent), choices


def tally_of(field: Field, values: Sequence[Any]) -> Tally | None:
    """The tally of some values; None for a field without conventions."""
    tally = fresh_tally(field)
    if tally is not None:
        add_values(tally, values)
        tally.count_pending()
    return tally


def fresh_tally(field: Field) -> Tally | None:
    """A tally for the values of a field's column, with nothing counted; None for a field without conventions."""
    if field.type in _DATES:
        return DateTally(cleaner(field.clean))
    if field.type == "boolean":
        return TruthTally(cleaner(field.clean))
    if field.type not in NUMERIC:
        return None
    is_percent = field.type == "percent"
    return NumberTally(cleaner(field.clean), percents=is_percent, sizes=is_percent, every=field.type == "money")


def add_values(tally: Tally, column: Sequence[Any]) -> None:
    """Add the cells of a column, or a part of it, to its tally: texts, and typed cells that show something."""
    kinds = set(map(type, column))
    if str in kinds:
        texts = column if len(kinds) == 1 else [v for v in column if type(v) is str]
        tally.add(texts)
    if isinstance(tally, DateTally) and not kinds.isdisjoint((date, datetime)):
        tally.add_dates([v for v in column if type(v) in (date, datetime)])
    counts_numbers = isinstance(tally, DateTally) or (isinstance(tally, NumberTally) and tally.sizes)
    if counts_numbers and not isinstance(tally, TruthTally) and not kinds.isdisjoint((int, float)):
        tally.add_numbers([v for v in column if type(v) in (int, float)])


def proven_decimal(tally: NumberTally) -> str | None:
    """The decimal sign that the column's own values prove; None if none does, or too many contradict it."""
    if not _outnumbers(tally.point, tally.comma):
        return None
    return "," if tally.comma > tally.point else "."


def proves_day_first(tally: DateTally) -> bool | None:
    """Whether the column's own values prove the day first; None if they prove no order, or too many contradict it."""
    day, month = tally.slashed.day + tally.dotted.day, tally.slashed.month + tally.dotted.month
    return day > month if _outnumbers(day, month) else None


def _outnumbers(count: int, other: int) -> bool:
    """Whether the larger of two counts of contradicting values is so much larger that it stands for the column."""
    return max(count, other) >= max(1, _OUTNUMBERED * min(count, other))


def _are_slips(contradicting: int, agreeing: int) -> bool:
    """Whether values that contradict their column are slips; many may be rows that were written by somebody else."""
    return contradicting <= _SLIPS and agreeing >= _OUTNUMBERED * contradicting


class _Hints(NamedTuple):
    """The evidence for each decimal sign, apart from the column's own proofs: sign -> weight."""

    strong: dict[str, int]
    weak: dict[str, int]

    def sum(self, sign: str) -> int:
        """All that speaks for a decimal sign."""
        return self.strong[sign] + self.weak[sign]


def decide_decimal(
    tally: NumberTally, kind: str, name: str, around: ColumnSurroundings = _NOTHING_AROUND
) -> tuple[str | None, ConventionChoice | None]:
    """A column's decimal sign (None if no value has one), and the choice to record (None if there was none)."""
    point, comma, unclear = tally.point, tally.comma, tally.open
    if not (point or comma or unclear):
        return None, None
    hints = _decimal_hints(tally, kind, around)
    if point or comma:
        chosen = "," if (comma, hints.sum(",")) > (point, hints.sum(".")) else "."
        most, least = max(point, comma), min(point, comma)
        if not unclear and not least:
            return chosen, None
        # 1.234 beside 12,50 is grouping. Beside a few 12.5 it may not be: decimals seldom have one length with few
        # exceptions, so there must be more than a few, or other columns must agree.
        grouping = tally.open_comma if chosen == "." else tally.open_dot
        agreed = not hints.strong[_OTHER_SIGN[chosen]] and hints.sum(chosen) > hints.sum(_OTHER_SIGN[chosen])
        sure = not unclear or (_are_slips(least, most) and (grouping == unclear or most * 50 >= unclear or agreed))
    else:
        chosen, sure = _likelier_decimal(tally, kind, hints, around)
    evidence = {"decimal point": point, "decimal comma": comma, "either": unclear}
    if around.point or around.comma:
        evidence |= {"other columns: point": around.point, "other columns: comma": around.comma}
    return chosen, ConventionChoice(
        kind="decimal",
        chosen=chosen,
        evidence=evidence,
        sure=sure,
        message=(
            f"{_many(unclear, 'number')} with one separator and three digits after it could be thousands or "
            f"decimals; read {_read_as(tally, chosen)}"
        ),
        settle=f'"decimal": "{chosen}" (or "{_OTHER_SIGN[chosen]}") on field {name}',
        values=max(1, unclear),
    )


def _read_as(tally: NumberTally, decimal: str) -> str:
    """How the unclear numbers of a column are read with a decimal sign, in words."""
    grouped = tally.open_dot if decimal == "," else tally.open_comma
    if grouped == tally.open:
        return "as whole thousands"
    return "by the decimal sign chosen" if grouped else "as decimals"


def _likelier_decimal(tally: NumberTally, kind: str, hints: _Hints, around: ColumnSurroundings) -> tuple[str, bool]:
    """The decimal sign with the most evidence where no value proves one, and whether that is enough."""
    point, comma = hints.sum("."), hints.sum(",")
    chosen = "," if comma > point else "."
    if comma == point:
        grouping = kind in _WHOLE_KINDS and tally.open_dot > tally.open_comma
        chosen = "," if grouping or (around.delimiter == ";" and kind not in _WHOLE_KINDS) else "."
    if hints.strong[chosen] >= _PROOF and not hints.strong[_OTHER_SIGN[chosen]]:
        return chosen, True
    if hints.sum(_OTHER_SIGN[chosen]):
        return chosen, False
    # A file's delimiter and a field's type are enough if they agree, except for grouping points: many files with
    # semicolons use decimal points.
    expected = {",": ".", ";": ","}.get(around.delimiter or "") == chosen and hints.weak[chosen] > _DELIMITER
    return chosen, expected and not (chosen == "," and tally.open_dot > 0)


def _decimal_hints(tally: NumberTally, kind: str, around: ColumnSurroundings) -> _Hints:
    """What speaks for each decimal sign: the form of unclear numbers, the field's type, and what is around."""
    strong = {".": min(around.point, 2) * 2, ",": min(around.comma, 2) * 2}
    weak = {".": 0, ",": 0}
    for sign, count in ((".", tally.open_dot), (",", tally.open_comma)):
        if not count:
            continue
        other = _OTHER_SIGN[sign]
        # Short numbers without decimals beside thousands that end in zeros: only grouping looks like that.
        if tally.short and not tally.long and (tally.open_round or count >= 8):
            strong[other] += 4
        if kind == "integer" and tally.open_whole < tally.open:  # as decimals they would not be whole
            strong[other] += 4
        elif kind in _WHOLE_KINDS:  # amounts with three decimals are rare
            weak[other] += 2
        else:  # a field of decimals expects some
            weak[sign] += 1
        weak[sign] += bool(tally.long)
    if around.delimiter in (",", ";"):
        weak["." if around.delimiter == "," else ","] += _DELIMITER
    weak[","] += around.dotted
    if around.month and not around.day:
        weak["."] += 2
    currencies = {name for name in tally.currencies if name}
    weak["."] += bool(currencies) and currencies <= _POINT_MONEY
    weak[","] += bool(currencies) and currencies <= _COMMA_MONEY
    return _Hints(strong, weak)


def decide_order(
    count: OrderCount, name: str, around: ColumnSurroundings = _NOTHING_AROUND, *, dotted: bool = False
) -> tuple[bool | None, ConventionChoice | None]:
    """Whether the day comes first (None if no value needs it), and the choice to record (None if there was none).

    `count`: of the dates with points, if `dotted`, or of all others.
    """
    day, month, unclear = count.day, count.month, count.open
    if not (day or month or unclear):
        return None, None
    for_day, for_month = _order_hints(around, dotted=dotted)
    if day or month:
        chosen = (day, for_day) > (month, for_month)
        most, least = max(day, month), min(day, month)
        sure = not unclear or _are_slips(least, most)
        if not unclear and not least:
            return chosen, None
    else:
        chosen = for_day + _slightly_for_day(count, around) > for_month
        sure = max(for_day, for_month) >= _PROOF and not min(for_day, for_month)
    evidence = {"day first": day, "month first": month, "either": unclear}
    if around.day or around.month:
        evidence |= {"other columns: day first": around.day, "other columns: month first": around.month}
    if around.comma and not around.point:
        evidence |= {"other columns: decimal comma": around.comma}
    word = "day" if chosen else "month"
    return chosen, ConventionChoice(
        kind="date_order",
        chosen=f"{word} first",
        evidence=evidence,
        sure=sure,
        message=f"{_many(unclear, 'date')} could be day first or month first; read {word} first",
        settle=f'"day_first": {"true" if chosen else "false"} (or {"false" if chosen else "true"}) on field {name}',
        values=max(1, unclear),
    )


def _order_hints(around: ColumnSurroundings, *, dotted: bool) -> tuple[int, int]:
    """The weight of evidence for the day first and for the month first, apart from the column's own proofs."""
    day, month = min(around.day, 2) * 2, min(around.month, 2) * 2
    if around.comma and not around.point:  # a decimal comma rules out the month first
        day += 3
    day += 4 if dotted else 0  # the month first is very rare with points
    return day, month


def _slightly_for_day(count: OrderCount, around: ColumnSurroundings) -> int:
    """The weight of weak signs for the day first, which break a tie; below 0 for the month first."""
    signs = (count.dashed == count.open) + (around.delimiter == ";")
    # Days vary more than months; dates that are all the first of a month are the exception.
    first_numbers, second_numbers = len(count.first), len(count.second)
    if first_numbers == 1 and second_numbers > 2 and 1 in count.first:
        return signs + 1
    if second_numbers == 1 and first_numbers > 2 and 1 in count.second:
        return signs - 1
    return signs + (first_numbers > second_numbers) - (second_numbers > first_numbers)


def _swapped_choice(tally: DateTally) -> ConventionChoice | None:
    """The finding about dates that a program may have stored with day and month swapped; None if none is in doubt."""
    if not tally.swapped():
        return None
    return ConventionChoice(
        kind="date_order",
        chosen="as stored",
        evidence={"stored as dates, none after the twelfth": tally.stored},
        sure=False,
        message=f"{_many(tally.stored, 'date')} of the file, none after the twelfth of a month, beside texts that all "
        "are: the program that saved the file may have swapped days and months; read as they are stored",
        settle="send the file as it was before that program opened it",
        values=tally.stored,
    )


def _year_day_choice(tally: DateTally, field: Field) -> ConventionChoice | None:
    """The finding about dates such as 2026-02-01 beside 2026-31-01, which has the day before the month; None without
    such dates."""
    if not (tally.year_day and tally.year_open) or field.formats:
        return None
    return ConventionChoice(
        kind="date_order",
        chosen="year, month, day",
        evidence={"year, day, month": tally.year_day, "either": tally.year_open},
        sure=False,
        message=f"{_many(tally.year_open, 'date')} could have the day before the month, as others of the column do; "
        "read year, month, day",
        settle=f'"formats": ["%Y-%d-%m"] on field {field.name}',
        values=tally.year_open,
    )


def _digits_choice(tally: DateTally, field: Field) -> ConventionChoice | None:
    """The choice to read numbers as Unix times, or as day numbers where dates without separators are as likely (10203
    for 2001-02-03); None if there is no such choice."""
    if tally.numbers() == "seconds":
        return ConventionChoice(
            "date_form", "Unix times, in UTC", {"seconds or milliseconds since 1970": tally.unix}, sure=True
        )
    if field.formats or not (form := tally.run_on_form()):
        return None
    return ConventionChoice(
        kind="date_form",
        chosen="day numbers",
        evidence={"day numbers": tally.serials, "digits of dates": tally.serials},
        sure=False,
        message=f"{_many(tally.serials, 'number')} could be day numbers or the digits of dates without separators; "
        "read as day numbers",
        settle=f'"formats": ["{form}"] on field {field.name}',
        values=tally.serials,
    )


def _zones_choice(tally: DateTally, field: Field) -> ConventionChoice | None:
    """The finding about times with a zone beside times without, which cannot be compared; None if all are alike."""
    is_mixed = tally.zoned > 0 and tally.unzoned > 0
    if field.type != "datetime" or not is_mixed:
        return None
    return ConventionChoice(
        kind="zone",
        chosen="UTC where a zone is written",
        evidence={"with a zone": tally.zoned, "without": tally.unzoned},
        sure=False,
        code="zone_mixed",
        message=f"{_many(tally.unzoned, 'time')} without a zone beside {tally.zoned:,} with one; those with a zone are "
        "written in UTC, the others as they are",
        settle="write all times with a zone, or none",
        values=min(tally.zoned, tally.unzoned),
    )


class ShortYears(NamedTuple):
    """How the two-digit years of a column are read."""

    year_first: bool
    pivot: int  # the first one of the last century
    choices: list[ConventionChoice]  # to record


def _decide_year_place(tally: DateTally, name: str) -> ShortYears:
    """Whether the year comes first in dates of three short numbers, any of which may be the year; never a sure
    choice."""
    first_numbers, last_numbers = len(tally.short_first), len(tally.short_years)
    # Years vary less than days: if the last numbers vary more, they are the days.
    year_first = first_numbers * 2 <= last_numbers > 3
    word, other = ("year", "day") if year_first else ("day", "year")
    total = sum(tally.short_years.values())
    choice = ConventionChoice(
        kind="date_order",
        chosen=f"{word} first",
        evidence={"different first numbers": first_numbers, "different last numbers": last_numbers},
        sure=False,
        message=f"{_many(total, 'date')} of short numbers could be {word} first or {other} first; read {word} first",
        settle=f'"formats": ["{_SHORT_FORMATS[word]}"] (or ["{_SHORT_FORMATS[other]}"]) on field {name}',
        values=total,
    )
    return ShortYears(year_first, PIVOT, [choice])


def decide_years(tally: DateTally, name: str, *, births: bool = False) -> ShortYears:
    """Whether two-digit years come first, and to which century they belong; `births`: the dates are of births."""
    years, either = tally.short_years, BIRTH_YEARS if births else SHORT_YEARS
    latest = SHORT_YEARS[0] if births else PIVOT  # births are not decades ahead
    if not years:
        return ShortYears(year_first=False, pivot=latest, choices=[])
    leading = tally.short_first
    if tally.year_first and any(first > 12 for first in leading) and len(leading) <= len(years):
        return _decide_year_place(tally, name)
    pivot = min(_pivot(set(years), either), latest)
    unclear = sum(count for year, count in years.items() if year in either)
    if not unclear:
        return ShortYears(year_first=False, pivot=pivot, choices=[])
    choice = ConventionChoice(
        kind="century",
        chosen=f"from 19{pivot:02} on" if pivot < 100 else "from 2000 on",
        evidence={"19xx": sum(count for year, count in years.items() if year >= pivot), "either": unclear},
        sure=False,
        message=f"{_many(unclear, 'date')} with a two-digit year could belong to either century",
        settle=f"write years with four digits in field {name}",
        values=unclear,
    )
    return ShortYears(year_first=False, pivot=pivot, choices=[choice])


def _pivot(years: set[int], either: range) -> int:
    """The first two-digit year of the last century: years stay together, and the widest gap is at the cut."""
    unclear = sorted(year for year in years if year in either)
    later = [year for year in years if year >= PIVOT]
    if not unclear or not later:
        return 50 if unclear and unclear[0] >= 50 else PIVOT
    ring = [max(later) - 100, *sorted(year for year in years if year < PIVOT), min(later)]
    gaps = [(year - before, year) for before, year in pairwise(ring) if year >= either[0]]
    return max(gaps)[1]


def decide_unit(
    tally: NumberTally, name: str, around: ColumnSurroundings = _NOTHING_AROUND
) -> tuple[bool, ConventionChoice | None]:
    """Whether numbers without a percent sign are percent, and the choice to record (None if there was none)."""
    shares, beyond, ones, with_sign = tally.shares, tally.beyond, tally.ones, tally.signed
    plain = shares + beyond + ones
    with_format = around.units.get("%", 0)
    if with_format >= plain:  # a cell with a percent format stores a share
        return False, None
    if not beyond and not (ones and with_sign) and not (shares and around.percent_header and not with_format):
        return False, None
    in_percent = beyond > shares and not with_format
    return in_percent, ConventionChoice(
        kind="unit",
        chosen="percent" if in_percent else "share",
        evidence={
            "with a percent sign": with_sign + with_format,
            "up to 1": shares,
            "exactly 1": ones,
            "beyond 1": beyond,
        },
        sure=in_percent and not shares and around.percent_header,
        message=(
            f"{_many(plain, 'number')} without a percent sign could be percent or shares of 1; read as "
            + ("percent: 45 is 45 %" if in_percent else "shares: 0.45 is 45 %")
        ),
        settle=f'"unit": "{"percent" if in_percent else "share"}" on field {name}',
        values=plain,
    )


def _units_choice(units: Mapping[str, int], name: str) -> ConventionChoice | None:
    """The finding about a column whose number formats show several units, which the output drops; None if they show
    one.

    Percents beside plain numbers are two units.
    """
    counts: Counter[str] = Counter()
    for unit, count in units.items():
        counts[unit.casefold().rstrip(".")] += count
    return _mixed_choice("unit", "numbers only", counts, f"the number formats show {len(counts)} units", name)


def _shares_choice(field: Field, around: ColumnSurroundings) -> ConventionChoice | None:
    """The finding about cells that show percents and store shares, under a field of plain numbers that is called a
    percentage; None if there are none."""
    with_format = around.units.get("%", 0)
    if not with_format or field.unit is not None or not _PERCENTAGE.search(field.name):
        return None
    return ConventionChoice(
        kind="unit",
        chosen="share",
        evidence={"with a percent format": with_format},
        sure=False,
        message=f"{_many(with_format, 'number')} shown as percent came out as shares of 1: 0.15 for 15 %",
        settle=f'"type": "percent" on field {field.name}',
        values=with_format,
    )


def _currencies_choice(
    tally: NumberTally, name: str, units: Mapping[str, int] = MappingProxyType({})
) -> ConventionChoice | None:
    """The finding about a column of several currencies, in its texts or in number formats, which the output drops; None
    if it has one."""
    signs = Counter(tally.currencies)
    for unit, count in units.items():
        signs[unit.upper()] += count
    counts = {name: count for name, count in _currency_counts(signs).items() if name}
    return _mixed_choice("currency", "amounts only", counts, f"the amounts are in {len(counts)} currencies", name)


def _mixed_choice(kind: str, chosen: str, counts: Mapping[str, int], what: str, name: str) -> ConventionChoice | None:
    """The unsure choice to drop units or currencies of which a column has several; None if it has one.

    `counts`: how many values each unit has.
    """
    if len(counts) < 2:
        return None
    return ConventionChoice(
        kind=kind,
        chosen=chosen,
        evidence={f"{kind} {n}": count for n, count in enumerate(sorted(counts.values(), reverse=True), 1)},
        sure=False,
        code=f"{kind}_mixed",
        message=f"{what}, which the output drops",
        settle=f'"type": "text" on field {name}',
        values=sum(counts.values()),
    )


_SAME_MONEY: Final = {
    "€": "EUR", "£": "GBP", "US$": "USD", "C$": "CAD", "CA$": "CAD", "A$": "AUD", "AU$": "AUD", "NZ$": "NZD",
    "HK$": "HKD", "R$": "BRL", "S$": "SGD", "₹": "INR", "RS": "INR", "RS.": "INR", "₽": "RUB", "₩": "KRW", "₪": "ILS",
    "KR.": "KR", "ZŁ": "PLN", "ZL": "PLN", "KČ": "CZK", "FT": "HUF", "FR.": "CHF", "SFR.": "CHF", "SFR": "CHF",
    "RMB": "CNY", "円": "JPY", "元": "CNY", "원": "KRW", "฿": "THB", "₺": "TRY", "₫": "VND", "₱": "PHP",
}  # fmt: skip


_SHARED_SIGNS: Final = {  # sign -> the currencies that use it
    "$": ("USD", "CAD", "AUD", "NZD", "HKD", "SGD"),
    "¥": ("JPY", "CNY"),
    "KR": ("SEK", "NOK", "DKK"),
}


def _currency_counts(sign_counts: Mapping[str, int]) -> Counter[str]:
    """How often each currency occurs, whatever its signs; a sign that several currencies share stays a sign."""
    counts: Counter[str] = Counter()
    for written, count in sign_counts.items():
        sign = unicodedata.normalize("NFKC", written)
        counts[_SAME_MONEY.get(sign, sign)] += count
    for sign, codes in _SHARED_SIGNS.items():
        used = [code for code in codes if code in counts]
        if sign in counts and len(used) == 1:  # $5 and 5 USD are the same currency
            counts[used[0]] += counts.pop(sign)
    return counts


def _many(count: int, noun: str) -> str:
    """A count and its noun: `1 date`, `1,200 dates`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
