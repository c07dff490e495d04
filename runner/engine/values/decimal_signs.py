"""Decides the decimal sign of a column: whether 1.234 is a thousand or a decimal."""

from typing import Final, NamedTuple

from runner.engine.values.convention_choices import (
    NOTHING_AROUND,
    PROOF,
    ColumnSurroundings,
    ConventionChoice,
    are_slips,
    count_noun,
    outnumbers,
)
from runner.engine.values.tallies import NumberTally

_DELIMITER_WEIGHT: Final = 2  # the weight of a file's delimiter
_FEW_EXCEPTIONS: Final = 50  # one in so many decimals may have another length than the others
_MANY_UNCLEAR: Final = 8  # numbers that would all have three decimals by chance
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


def proven_decimal(tally: NumberTally) -> str | None:
    """Return the decimal sign that a column's own values prove, for the hints of other columns; None if none does, or
    too many contradict it."""
    if not outnumbers(tally.point, tally.comma):
        return None
    return "," if tally.comma > tally.point else "."


class _DecimalHints(NamedTuple):
    """The evidence for each decimal sign, apart from the column's own proofs: sign -> weight."""

    strong: dict[str, int]
    weak: dict[str, int]

    def sum(self, sign: str) -> int:
        """Add up all evidence for a decimal sign."""
        return self.strong[sign] + self.weak[sign]


class DecimalDecision(NamedTuple):
    """The decimal sign of a column."""

    sign: str | None  # None: no value has one
    choice: ConventionChoice | None  # to record; None: there was none


def decide_decimal(
    tally: NumberTally, field_type: str, name: str, around: ColumnSurroundings = NOTHING_AROUND
) -> DecimalDecision:
    """Decide a column's decimal sign, by its own values if they prove one, else by hints.

    1.234 beside 12,50 is a thousand; alone it is decided by other columns, the delimiter, and the field's type.
    """
    point, comma, unclear = tally.point, tally.comma, tally.unclear
    if not (point or comma or unclear):
        return DecimalDecision(None, None)
    hints = _collect_decimal_hints(tally, field_type, around)
    if point or comma:
        chosen = "," if (comma, hints.sum(",")) > (point, hints.sum(".")) else "."
        proofs_for, proofs_against = max(point, comma), min(point, comma)
        if not unclear and not proofs_against:
            return DecimalDecision(chosen, None)
        # 1.234 beside 12,50 is grouping. Beside a few 12.5 it may not be: decimals seldom have one length with few
        # exceptions, so there must be more than a few, or other columns must agree.
        grouping = tally.unclear_commas if chosen == "." else tally.unclear_points
        others_agree = not hints.strong[_OTHER_SIGN[chosen]] and hints.sum(chosen) > hints.sum(_OTHER_SIGN[chosen])
        sure = not unclear or (
            are_slips(proofs_against, proofs_for)
            and (grouping == unclear or proofs_for * _FEW_EXCEPTIONS >= unclear or others_agree)
        )
    else:
        chosen, sure = _weigh_decimal_signs(tally, field_type, hints, around)
    evidence = {"decimal point": point, "decimal comma": comma, "either": unclear}
    if around.decimal_point or around.decimal_comma:
        evidence |= {"other columns: point": around.decimal_point, "other columns: comma": around.decimal_comma}
    return DecimalDecision(
        chosen,
        ConventionChoice(
            kind="decimal",
            chosen=chosen,
            evidence=evidence,
            sure=sure,
            message=(
                f"{count_noun(unclear, 'number')} with one separator and three digits after it could be thousands or "
                f"decimals; read {_describe_reading(tally, chosen)}"
            ),
            settle=f'"decimal": "{chosen}" (or "{_OTHER_SIGN[chosen]}") on field {name}',
            values=max(1, unclear),
        ),
    )


def _describe_reading(tally: NumberTally, decimal: str) -> str:
    """Describe, for the choice's message, how the unclear numbers of a column (1.234) are read by a decimal sign."""
    grouped = tally.unclear_points if decimal == "," else tally.unclear_commas
    if grouped == tally.unclear:
        return "as whole thousands"
    return "by the decimal sign chosen" if grouped else "as decimals"


class _LikelySign(NamedTuple):
    """The decimal sign with the most evidence."""

    sign: str
    is_sure: bool


def _weigh_decimal_signs(
    tally: NumberTally, field_type: str, hints: _DecimalHints, around: ColumnSurroundings
) -> _LikelySign:
    """Return the decimal sign with the most hints, for a column without proofs, and whether they suffice to be sure."""
    point, comma = hints.sum("."), hints.sum(",")
    chosen = "," if comma > point else "."
    if comma == point:
        grouping = field_type in _WHOLE_KINDS and tally.unclear_points > tally.unclear_commas
        chosen = "," if grouping or (around.delimiter == ";" and field_type not in _WHOLE_KINDS) else "."
    if hints.strong[chosen] >= PROOF and not hints.strong[_OTHER_SIGN[chosen]]:
        return _LikelySign(chosen, is_sure=True)
    if hints.sum(_OTHER_SIGN[chosen]):
        return _LikelySign(chosen, is_sure=False)
    # A file's delimiter and a field's type are enough if they agree, except for grouping points: many files with
    # semicolons use decimal points.
    as_delimiter_suggests = {",": ".", ";": ","}.get(around.delimiter or "") == chosen and hints.weak[
        chosen
    ] > _DELIMITER_WEIGHT
    return _LikelySign(chosen, is_sure=as_delimiter_suggests and not (chosen == "," and tally.unclear_points > 0))


def _collect_decimal_hints(tally: NumberTally, field_type: str, around: ColumnSurroundings) -> _DecimalHints:
    """Add up the hints for each decimal sign: the form of unclear numbers, the field's type, other columns, the
    delimiter and currencies."""
    strong = {".": min(around.decimal_point, 2) * 2, ",": min(around.decimal_comma, 2) * 2}
    weak = {".": 0, ",": 0}
    for sign, count in ((".", tally.unclear_points), (",", tally.unclear_commas)):
        if not count:
            continue
        other = _OTHER_SIGN[sign]
        # Short numbers without decimals beside thousands that end in zeros: only grouping looks like that.
        if tally.short_whole and not tally.long_ungrouped and (tally.unclear_round or count >= _MANY_UNCLEAR):
            strong[other] += 4
        if field_type == "integer" and tally.unclear_thousands < tally.unclear:  # as decimals they would not be whole
            strong[other] += 4
        elif field_type in _WHOLE_KINDS:  # amounts with three decimals are rare
            weak[other] += 2
        else:  # a field of decimals expects some
            weak[sign] += 1
        weak[sign] += bool(tally.long_ungrouped)
    if around.delimiter in (",", ";"):
        weak["." if around.delimiter == "," else ","] += _DELIMITER_WEIGHT
    weak[","] += around.dotted_dates
    if around.month_first and not around.day_first:
        weak["."] += 2
    currencies = {name for name in tally.currencies if name}
    weak["."] += bool(currencies) and currencies <= _POINT_MONEY
    weak[","] += bool(currencies) and currencies <= _COMMA_MONEY
    return _DecimalHints(strong, weak)
