"""Decides the order of day, month and year in a column of dates, and the century of two-digit years."""

from itertools import pairwise
from typing import Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.values.convention_choices import (
    NOTHING_AROUND,
    PROOF,
    ColumnSurroundings,
    ConventionChoice,
    are_slips,
    count_noun,
    outnumbers,
)
from runner.engine.values.dates import BIRTH_YEARS, PIVOT, SHORT_YEARS
from runner.engine.values.tallies import DateTally, OrderCount

_SHORT_FORMATS: Final = {"year": "%y/%m/%d", "day": "%d/%m/%y"}


def proves_day_first(tally: DateTally) -> bool | None:
    """Whether the column's own values prove the day first; None if they prove no order, or too many contradict it."""
    day_first = tally.slashed.day_first + tally.dotted.day_first
    month_first = tally.slashed.month_first + tally.dotted.month_first
    return day_first > month_first if outnumbers(day_first, month_first) else None


class OrderDecision(NamedTuple):
    """Whether dates of a column have the day first."""

    day_first: bool | None  # None: no value needs it
    choice: ConventionChoice | None  # to record; None: there was none


def decide_order(
    count: OrderCount, name: str, around: ColumnSurroundings = NOTHING_AROUND, *, dotted: bool = False
) -> OrderDecision:
    """Decide whether a column's dates have the day first, by its own values if they prove it, else by hints.

    `count`: of the dates with points, if `dotted`, or of all others.
    """
    proofs_of_day, proofs_of_month, unclear = count.day_first, count.month_first, count.unclear
    if not (proofs_of_day or proofs_of_month or unclear):
        return OrderDecision(None, None)
    hints_of_day, hints_of_month = _weigh_order_hints(around, dotted=dotted)
    if proofs_of_day or proofs_of_month:
        day_first = (proofs_of_day, hints_of_day) > (proofs_of_month, hints_of_month)
        proofs_for, proofs_against = max(proofs_of_day, proofs_of_month), min(proofs_of_day, proofs_of_month)
        sure = not unclear or are_slips(proofs_against, proofs_for)
        if not unclear and not proofs_against:
            return OrderDecision(day_first, None)
    else:
        day_first = hints_of_day + _slightly_for_day(count, around) > hints_of_month
        sure = max(hints_of_day, hints_of_month) >= PROOF and not min(hints_of_day, hints_of_month)
    evidence = {"day first": proofs_of_day, "month first": proofs_of_month, "either": unclear}
    if around.day_first or around.month_first:
        evidence |= {"other columns: day first": around.day_first, "other columns: month first": around.month_first}
    if around.decimal_comma and not around.decimal_point:
        evidence |= {"other columns: decimal comma": around.decimal_comma}
    word = "day" if day_first else "month"
    return OrderDecision(
        day_first,
        ConventionChoice(
            kind="date_order",
            chosen=f"{word} first",
            evidence=evidence,
            sure=sure,
            message=f"{count_noun(unclear, 'date')} could be day first or month first; read {word} first",
            settle=(
                f'"day_first": {"true" if day_first else "false"} (or {"false" if day_first else "true"}) '
                f"on field {name}"
            ),
            values=max(1, unclear),
        ),
    )


class _OrderWeights(NamedTuple):
    """How much speaks for each order of day and month."""

    day_first: int
    month_first: int


def _weigh_order_hints(around: ColumnSurroundings, *, dotted: bool) -> _OrderWeights:
    """Add up what the other columns and the file suggest about the order of day and month: at most 4 for each, for two
    columns that prove it; 3 and more for one and none for the other make the choice sure."""
    for_day, for_month = min(around.day_first, 2) * 2, min(around.month_first, 2) * 2
    if around.decimal_comma and not around.decimal_point:  # a decimal comma rules out the month first
        for_day += PROOF
    for_day += 4 if dotted else 0  # the month first is very rare with points
    return _OrderWeights(for_day, for_month)


def _slightly_for_day(count: OrderCount, around: ColumnSurroundings) -> int:
    """Add up the weak signs for the day first, which break a tie; the sum is negative if they are for the month
    first."""
    signs = (count.unclear_dashed == count.unclear) + (around.delimiter == ";")
    # Days vary more than months; dates that are all the first of a month are the exception.
    first_numbers, second_numbers = len(count.first_numbers), len(count.second_numbers)
    if first_numbers == 1 and second_numbers > 2 and 1 in count.first_numbers:
        return signs + 1
    if second_numbers == 1 and first_numbers > 2 and 1 in count.second_numbers:
        return signs - 1
    return signs + (first_numbers > second_numbers) - (second_numbers > first_numbers)


def make_swapped_choice(tally: DateTally) -> ConventionChoice | None:
    """Make the unsure choice to read dates as stored although a program may have swapped day and month; None if none is
    in doubt."""
    if not tally.seems_swapped():
        return None
    return ConventionChoice(
        kind="date_order",
        chosen="as stored",
        evidence={"stored as dates, none after the twelfth": tally.stored},
        sure=False,
        message=f"{count_noun(tally.stored, 'date')} of the file, none after the twelfth of a month, beside texts "
        "that all are: the program that saved the file may have swapped days and months; read as they are stored",
        settle="send the file as it was before that program opened it",
        values=tally.stored,
    )


def make_year_day_choice(tally: DateTally, field: Field) -> ConventionChoice | None:
    """Make the unsure choice to read 2026-02-01 as year, month, day beside dates such as 2026-31-01; None without dates
    of both kinds, or if the field declares formats."""
    if not (tally.year_then_day and tally.year_unclear) or field.formats:
        return None
    return ConventionChoice(
        kind="date_order",
        chosen="year, month, day",
        evidence={"year, day, month": tally.year_then_day, "either": tally.year_unclear},
        sure=False,
        message=f"{count_noun(tally.year_unclear, 'date')} could have the day before the month, as others of the "
        "column do; read year, month, day",
        settle=f'"formats": ["%Y-%d-%m"] on field {field.name}',
        values=tally.year_unclear,
    )


def make_digits_choice(tally: DateTally, field: Field) -> ConventionChoice | None:
    """Make the sure choice to read numbers as Unix times, or the unsure one to read as day numbers what may be digits
    of dates (10203 for 2001-02-03); None if the column has neither, or if the field declares formats for the latter."""
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
        message=f"{count_noun(tally.serials, 'number')} could be day numbers or the digits of dates without "
        "separators; read as day numbers",
        settle=f'"formats": ["{form}"] on field {field.name}',
        values=tally.serials,
    )


def make_mixed_zones_choice(tally: DateTally, field: Field) -> ConventionChoice | None:
    """Make the unsure choice to convert times with a zone to UTC and leave those without as they are; None if all times
    of the column are of one kind, or if the field is not of the type datetime."""
    is_mixed = tally.zoned > 0 and tally.unzoned > 0
    if field.type != "datetime" or not is_mixed:
        return None
    return ConventionChoice(
        kind="zone",
        chosen="UTC where a zone is written",
        evidence={"with a zone": tally.zoned, "without": tally.unzoned},
        sure=False,
        code="zone_mixed",
        message=f"{count_noun(tally.unzoned, 'time')} without a zone beside {tally.zoned:,} with one; those with a "
        "zone are written in UTC, the others as they are",
        settle="write all times with a zone, or none",
        values=min(tally.zoned, tally.unzoned),
    )


class ShortYears(NamedTuple):
    """How the two-digit years of a column are read."""

    year_first: bool
    pivot: int  # the first one of the last century
    choices: list[ConventionChoice]  # to record


def _decide_year_place(tally: DateTally, name: str) -> ShortYears:
    """Decide whether the year or the day is first in dates of three short numbers (25/12/31), the other one being last;
    the choice is never sure."""
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
        message=f"{count_noun(total, 'date')} of short numbers could be {word} first or {other} first; "
        f"read {word} first",
        settle=f'"formats": ["{_SHORT_FORMATS[word]}"] (or ["{_SHORT_FORMATS[other]}"]) on field {name}',
        values=total,
    )
    return ShortYears(year_first, PIVOT, [choice])


def decide_years(tally: DateTally, name: str, *, births: bool = False) -> ShortYears:
    """Decide whether two-digit years come first in a column's dates, and to which century they belong; without such
    years there is no choice. `births`: the dates are of births, which are not in the future."""
    years, unclear_years = tally.short_years, BIRTH_YEARS if births else SHORT_YEARS
    latest_pivot = SHORT_YEARS[0] if births else PIVOT  # births are not decades ahead
    if not years:
        return ShortYears(year_first=False, pivot=latest_pivot, choices=[])
    first_numbers = tally.short_first
    if tally.year_first and any(first > 12 for first in first_numbers) and len(first_numbers) <= len(years):
        return _decide_year_place(tally, name)
    pivot = min(_find_pivot(set(years), unclear_years), latest_pivot)
    unclear = sum(count for year, count in years.items() if year in unclear_years)
    if not unclear:
        return ShortYears(year_first=False, pivot=pivot, choices=[])
    choice = ConventionChoice(
        kind="century",
        chosen=f"from 19{pivot:02} on" if pivot < 100 else "from 2000 on",
        evidence={"19xx": sum(count for year, count in years.items() if year >= pivot), "either": unclear},
        sure=False,
        message=f"{count_noun(unclear, 'date')} with a two-digit year could belong to either century",
        settle=f"write years with four digits in field {name}",
        values=unclear,
    )
    return ShortYears(year_first=False, pivot=pivot, choices=[choice])


def _find_pivot(years: set[int], unclear_years: range) -> int:
    """Return the two-digit year from which on years belong to the last century: years of a column stay together, so the
    cut is at their widest gap. `unclear_years`: those that may belong to either."""
    unclear = sorted(year for year in years if year in unclear_years)
    later = [year for year in years if year >= PIVOT]
    if not unclear or not later:
        return 50 if unclear and unclear[0] >= 50 else PIVOT
    ring = [max(later) - 100, *sorted(year for year in years if year < PIVOT), min(later)]
    gaps = [(year - before, year) for before, year in pairwise(ring) if year >= unclear_years[0]]
    return max(gaps)[1]
