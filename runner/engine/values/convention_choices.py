"""What the decisions about a column are made of: its convention, what is around it, and the choices to record."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from runner.engine.values.dates import PIVOT, NumberMeaning

_OUTNUMBERED: Final = 10  # how many times more often one reading must occur to count for the column
_SLIPS: Final = 2  # values of a column that may be written otherwise by mistake
PROOF: Final = 3  # hints of this weight, with none against them, need no finding


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


class ColumnDecision(NamedTuple):
    """How a column is read, and the choices behind it, which the caller records."""

    convention: Convention
    choices: list[ConventionChoice]


class ColumnSurroundings(NamedTuple):
    """The evidence about one column from the rest of the sheet and the file."""

    decimal_point: int = 0  # hints that other columns use it
    decimal_comma: int = 0
    day_first: int = 0  # hints that dates of other columns have it so
    month_first: int = 0
    delimiter: str | None = None
    dotted_dates: bool = False  # other columns have dates such as 31.12.2025
    percent_header: bool = False
    births: bool = False  # the column's names speak of births
    # What the number formats of the column's cells show beside the number.
    units: Mapping[str, int] = MappingProxyType({})


NOTHING_AROUND: Final = ColumnSurroundings()


def outnumbers(count: int, other: int) -> bool:
    """Whether the larger of two counts is at least ten times the other, so that its values speak for the column; False
    if both are zero."""
    return max(count, other) >= max(1, _OUTNUMBERED * min(count, other))


def are_slips(contradicting: int, agreeing: int) -> bool:
    """Whether values that contradict their column are slips of the pen: at most two, and a tenth of those that agree;
    more may be rows that somebody else wrote."""
    return contradicting <= _SLIPS and agreeing >= _OUTNUMBERED * contradicting


def count_noun(count: int, noun: str) -> str:
    """Write a count and its noun: `1 date`, `1,200 dates`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
