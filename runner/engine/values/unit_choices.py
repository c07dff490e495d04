"""Decides between percent and shares, and reports units and currencies that the output drops."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.values.convention_choices import NOTHING_AROUND, ColumnSurroundings, ConventionChoice, count_noun
from runner.engine.values.tallies import NumberTally

_PERCENTAGE: Final = re.compile(r"%|percent|pct|pro[cz]ent|pourcent|porcent|per_?cent", re.IGNORECASE)


class UnitDecision(NamedTuple):
    """Whether numbers of a column without a percent sign are percent."""

    in_percent: bool
    choice: ConventionChoice | None  # to record; None: there was none


def decide_unit(tally: NumberTally, name: str, around: ColumnSurroundings = NOTHING_AROUND) -> UnitDecision:
    """Decide whether a column's numbers without a percent sign are percent (45 is 45 %) or shares (0.45 is 45 %)."""
    shares, beyond_one, exactly_one = tally.shares, tally.beyond_one, tally.exactly_one
    plain = shares + beyond_one + exactly_one
    with_sign, with_format = tally.with_percent_sign, around.units.get("%", 0)
    if with_format >= plain:  # a cell with a percent format stores a share
        return UnitDecision(in_percent=False, choice=None)
    is_doubtful = beyond_one or (exactly_one and with_sign) or (shares and around.percent_header and not with_format)
    if not is_doubtful:
        return UnitDecision(in_percent=False, choice=None)
    in_percent = beyond_one > shares and not with_format
    return UnitDecision(
        in_percent,
        ConventionChoice(
            kind="unit",
            chosen="percent" if in_percent else "share",
            evidence={
                "with a percent sign": with_sign + with_format,
                "up to 1": shares,
                "exactly 1": exactly_one,
                "beyond 1": beyond_one,
            },
            sure=in_percent and not shares and around.percent_header,
            message=(
                f"{count_noun(plain, 'number')} without a percent sign could be percent or shares of 1; read as "
                + ("percent: 45 is 45 %" if in_percent else "shares: 0.45 is 45 %")
            ),
            settle=f'"unit": "{"percent" if in_percent else "share"}" on field {name}',
            values=plain,
        ),
    )


def make_mixed_units_choice(units: Mapping[str, int], name: str) -> ConventionChoice | None:
    """Make the unsure choice to drop the units that number formats show; None if they show only one.

    Percents beside plain numbers are two units.
    """
    counts: Counter[str] = Counter()
    for unit, count in units.items():
        counts[unit.casefold().rstrip(".")] += count
    return _make_mixed_choice("unit", "numbers only", counts, f"the number formats show {len(counts)} units", name)


def make_shares_choice(field: Field, around: ColumnSurroundings) -> ConventionChoice | None:
    """Make the unsure choice to write shares where cells show percents, under a field of plain numbers that is called a
    percentage; None if there are no such cells, the field has another name, or it declares a unit."""
    with_format = around.units.get("%", 0)
    if not with_format or field.unit is not None or not _PERCENTAGE.search(field.name):
        return None
    return ConventionChoice(
        kind="unit",
        chosen="share",
        evidence={"with a percent format": with_format},
        sure=False,
        message=f"{count_noun(with_format, 'number')} shown as percent came out as shares of 1: 0.15 for 15 %",
        settle=f'"type": "percent" on field {field.name}',
        values=with_format,
    )


def make_mixed_currencies_choice(
    tally: NumberTally, name: str, units: Mapping[str, int] = MappingProxyType({})
) -> ConventionChoice | None:
    """Make the unsure choice to drop the currencies that texts or number formats show; None if the column has only
    one."""
    signs = Counter(tally.currencies)
    for unit, count in units.items():
        signs[unit.upper()] += count
    counts = {name: count for name, count in _count_currencies(signs).items() if name}
    return _make_mixed_choice("currency", "amounts only", counts, f"the amounts are in {len(counts)} currencies", name)


def _make_mixed_choice(
    kind: str, chosen: str, counts: Mapping[str, int], problem: str, name: str
) -> ConventionChoice | None:
    """Make the unsure choice to drop units or currencies, with counts per unit but not their names; None if the column
    has only one.

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
        message=f"{problem}, which the output drops",
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


def _count_currencies(sign_counts: Mapping[str, int]) -> Counter[str]:
    """Count the values in each currency, whatever sign they have; a sign that several currencies share stays a sign."""
    counts: Counter[str] = Counter()
    for written, count in sign_counts.items():
        sign = unicodedata.normalize("NFKC", written)
        counts[_SAME_MONEY.get(sign, sign)] += count
    for sign, codes in _SHARED_SIGNS.items():
        used = [code for code in codes if code in counts]
        if sign in counts and len(used) == 1:  # $5 and 5 USD are the same currency
            counts[used[0]] += counts.pop(sign)
    return counts
