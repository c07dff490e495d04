"""Decides the convention of a column once, from all its values and its surroundings.

A value with only one possible reading proves it. Without such a value, weaker hints are added up: the other columns,
the field's type, the delimiter. Hints short of a proof still decide, but the choice is reported.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import NUMERIC, Field
from runner.engine.values.convention_choices import (
    NOTHING_AROUND,
    ColumnDecision,
    ColumnSurroundings,
    Convention,
    ConventionChoice,
)
from runner.engine.values.date_formats import day_first_in_formats
from runner.engine.values.date_orders import (
    decide_order,
    decide_years,
    make_digits_choice,
    make_mixed_zones_choice,
    make_swapped_choice,
    make_year_day_choice,
)
from runner.engine.values.decimal_signs import decide_decimal
from runner.engine.values.tallies import DateTally, NumberTally, TruthTally
from runner.engine.values.unit_choices import (
    decide_unit,
    make_mixed_currencies_choice,
    make_mixed_units_choice,
    make_shares_choice,
)
from runner.engine.values.words import cleaner

Tally = NumberTally | DateTally | TruthTally
_DATES: Final = frozenset({"date", "datetime"})


class _DraftDecision(NamedTuple):
    """The decision about a column, with None for each choice that did not come up."""

    convention: Convention
    choices: list[ConventionChoice | None]


def decide_convention(field: Field, tally: Tally, around: ColumnSurroundings = NOTHING_AROUND) -> ColumnDecision:
    """Decide by which convention a column's texts are read, from the tally of its values, its field and what is around
    it; the caller records the choices."""
    if isinstance(tally, TruthTally):
        return ColumnDecision(Convention(marks=tally.marks()), [])
    if isinstance(tally, DateTally):
        convention, order_choices = _decide_date_column(field, tally, around)
        choices = [
            *order_choices,
            make_year_day_choice(tally, field),
            make_swapped_choice(tally),
            make_digits_choice(tally, field),
            make_mixed_zones_choice(tally, field),
        ]
        convention = convention._replace(numbers=tally.numbers(), births=around.births)
    else:
        convention, choices = _decide_number_column(field, tally, around)
    return ColumnDecision(convention, [choice for choice in choices if choice is not None])


def _decide_date_column(field: Field, tally: DateTally, around: ColumnSurroundings) -> _DraftDecision:
    """Decide order and century of a column of dates: the order by the field's declaration, else by the values;
    `decide_convention` adds what holds for every such column."""
    short_years = decide_years(tally, field.name, births=around.births)
    has_short_years = bool(tally.short_years)
    declared_order = field.day_first if field.day_first is not None else day_first_in_formats(field.formats)
    if declared_order is not None:
        convention = Convention(
            day_first=declared_order,
            dots_day_first=declared_order,
            pivot=short_years.pivot,
            short_years=has_short_years,
        )
        return _DraftDecision(convention, [*short_years.choices])
    if short_years.year_first:
        return _DraftDecision(Convention(year_first=True, short_years=True), [*short_years.choices])
    day_first, choice = decide_order(tally.slashed, field.name, around)
    around_dotted = around._replace(month_first=around.month_first + (day_first is False))
    dots_day_first, dotted_choice = decide_order(tally.dotted, field.name, around_dotted, dotted=True)
    convention = Convention(
        day_first=day_first, dots_day_first=dots_day_first, pivot=short_years.pivot, short_years=has_short_years
    )
    return _DraftDecision(convention, [choice, dotted_choice, *short_years.choices])


def _decide_number_column(field: Field, tally: NumberTally, around: ColumnSurroundings) -> _DraftDecision:
    """Decide how a column of numbers is read (decimal sign, percent or shares) and make the choices about units that
    the output drops."""
    decimal, choice = field.decimal, None
    if decimal is None:
        decimal, choice = decide_decimal(tally, field.type, field.name, around)
    choices = [choice]
    in_percent = field.unit == "percent"
    if field.type == "percent" and field.unit is None:
        in_percent, choice = decide_unit(tally, field.name, around)
        choices.append(choice)
    if field.type != "percent":
        choices.append(make_mixed_currencies_choice(tally, field.name, around.units if field.type == "money" else {}))
    if field.type not in ("money", "percent"):
        choices.append(make_mixed_units_choice(around.units, field.name) or make_shares_choice(field, around))
    return _DraftDecision(Convention(decimal=decimal, in_percent=in_percent), choices)


def tally_values(field: Field, values: Sequence[Any]) -> Tally | None:
    """Count some values of a field's column into a new tally; None for a field whose type needs no convention."""
    tally = make_tally(field)
    if tally is not None:
        add_cells(tally, values)
        tally.count_pending()
    return tally


def make_tally(field: Field) -> Tally | None:
    """Create an empty tally for a field's column; None for a field whose type needs no convention."""
    if field.type in _DATES:
        return DateTally(cleaner(field.clean))
    if field.type == "boolean":
        return TruthTally(cleaner(field.clean))
    if field.type not in NUMERIC:
        return None
    is_percent = field.type == "percent"
    return NumberTally(cleaner(field.clean), percents=is_percent, sizes=is_percent, every=field.type == "money")


def add_cells(tally: Tally, column: Sequence[Any]) -> None:
    """Add a chunk of a column's cells to its tally: texts, dates and numbers, as far as that kind of tally counts
    them. The tally is complete after its `count_pending`."""
    kinds = set(map(type, column))
    if str in kinds:
        texts = column if len(kinds) == 1 else [v for v in column if type(v) is str]
        tally.add(texts)
    if isinstance(tally, DateTally) and not kinds.isdisjoint((date, datetime)):
        tally.add_dates([v for v in column if type(v) in (date, datetime)])
    counts_numbers = isinstance(tally, DateTally) or (isinstance(tally, NumberTally) and tally.sizes)
    if counts_numbers and not isinstance(tally, TruthTally) and not kinds.isdisjoint((int, float)):
        tally.add_numbers([v for v in column if type(v) in (int, float)])
