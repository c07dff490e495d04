"""Compares a row that may be a total with the sums of the rows around it, and judges whether it adds up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runner.engine.reading import Value
from runner.engine.structure.column_sums import EXACT, ColumnTotal, RunningSums
from runner.engine.structure.tables import Clarity, Suspicion
from runner.engine.structure.total_words import Sort, is_carried_over, is_total_mark, row_clarity

ADDENDS = 3  # so many numbers do not add up by chance
_PRECISE = 4  # significant digits of a sum that is no round number
_CENTS = 2  # decimals that make a small sum as telling as a large one
_DIGITS = 100.0  # a sum this large does not match by chance
_FEW_ROWS = 2  # rows whose number occurs by chance
# How far a sum may be off: half of its last digit and, where words say that it is one, what rounded addends add to it.
_ROUNDED, _ROUNDED_ADDENDS = 0.51, 0.5
_MOST_UNPROVEN = 0.02  # where no word says that it is a sum
_MOST_OF_SUM = 0.005  # never more than this share


class Match(NamedTuple):
    """How many of a row's numbers match those of a total."""

    hits: int = 0
    misses: int = 0
    large: bool = False  # one is too large to match by chance
    parts: int = 0  # addends of the sum with the most

    @property
    def worth(self) -> tuple[bool, int, int]:
        """What the best of several matches is chosen by."""
        return self.large, self.hits, -self.misses


NO_MATCH = Match()


def best_match(*matches: Match) -> Match:
    """Return the match that speaks most for a total, the first of equal ones."""
    return max(matches, key=lambda match: match.worth)


@dataclass(slots=True)
class Suspect:
    """A row that may be a total."""

    number: int
    why: Suspicion
    sort: Sort
    sums: dict[int, ColumnTotal]  # its numbers, by column (0-based)
    only_numbers: bool = False  # no text, no date
    is_carried: bool = False  # its label says that records follow
    match: Match = NO_MATCH
    is_part: bool = False  # it is proven another way: between two totals (shipping, taxes), or a statistic
    below: list[RunningSums] = field(default_factory=list)  # sums of the rows below, while it may be above its rows

    @property
    def clarity(self) -> Clarity:
        return self.why.clarity

    @property
    def adds_up(self) -> bool:
        """Whether enough of its numbers match, for what its words and its gaps say."""
        hits, misses, large, parts = self.match
        if self.why.full:
            return hits > 0 and not misses and large and parts > 1
        if self.clarity >= Clarity.NAMED:
            return hits > 0 and (large or hits > 1 or not misses)
        if self.clarity is Clarity.NOTHING and misses:
            return self.why.lacks > 0 and large and hits >= misses
        return hits > 0 and hits >= 2 * misses and (large or hits > 1)

    @property
    def is_total(self) -> bool:
        return self.is_part or (self.adds_up and (self.clarity > Clarity.NOTHING or self._is_beyond_chance))

    @property
    def is_bare_sum(self) -> bool:
        """Whether it adds up, and no word says that it is a total."""
        return self.clarity is Clarity.NOTHING and self.adds_up

    @property
    def may_be_record(self) -> bool:
        """Whether it lacks nothing and one of its numbers is the sum of two others, as in some of many records."""
        return not self.why.lacks and self.match.hits < 2 and self.match.parts < ADDENDS

    @property
    def is_only_labelled(self) -> bool:
        """Whether it is called a total and lacks something that records have; asked if it does not add up."""
        return not self.why.full and (self.clarity is Clarity.PLAINLY or self.why.named)

    @property
    def _is_beyond_chance(self) -> bool:
        """Whether a row that lacks what all records have is the sum of so many that it is nothing else."""
        hits, misses, _, parts = self.match
        is_bare = self.why.lacks > 0 and self.why.is_last
        return is_bare and not misses and parts >= ADDENDS and (hits > 1 or any(map(_is_precise, self.sums.values())))

    @property
    def ends_block(self) -> bool:
        """Whether all its numbers are sums of several others, and it has two of them or lacks what records have."""
        hits, misses, large, parts = self.match
        is_odd = self.why.lacks > 0 or hits > 1
        return self.clarity is Clarity.NOTHING and is_odd and large and not misses and parts > 1 and not self.why.heads

    @property
    def may_be_part(self) -> bool:
        """Whether it may be in the footer of a table, and be no record: shipping, taxes, what was paid."""
        return self.clarity < Clarity.NAMED and (self.why.charge or self.why.lacks > 0)

    @property
    def is_doubtful_above_total(self) -> bool:
        """Whether it may be part of the total right below it."""
        return self.why.lacks > (0 if self.why.charge else 1)

    @property
    def is_doubtful_below_total(self) -> bool:
        """Whether it may be part of the footer that the total right above it begins."""
        return self.why.charge or self.why.lacks > 1


def suspect_row(number: int, why: Suspicion, values: Sequence[Value], sums: dict[int, ColumnTotal]) -> Suspect:
    """Return the suspect of a row's number with these values and sums, and with what its words say about it."""
    clarity, sort = row_clarity(values)
    texts = [value for value in values if isinstance(value, str)]
    filled = sum(1 for value in values if value is not None and value != "")
    if why.clarity:
        why = why._replace(clarity=max(clarity, why.clarity))
    if sort in (Sort.BOUND, Sort.SPREAD) and why.lacks and why.clarity and filled <= len(sums) + 1:
        why = why._replace(clarity=Clarity.PLAINLY, full=False)  # Max, and no name
    if why.lacks and any(map(is_total_mark, texts)):
        why = why._replace(clarity=Clarity.NAMED)  # stars mark a total here, not a record
    is_carried = any(map(is_carried_over, texts))
    return Suspect(number, why, sort, sums, only_numbers=filled == len(sums), is_carried=is_carried)


def compare(suspect: Suspect, running: RunningSums) -> Match:
    """Compare a row's numbers with the sums, means, counts or bounds of other rows."""
    hits = misses = parts = 0
    large = False
    for column, number in suspect.sums.items():
        other = running.columns.get(column)
        if other is None or not other.count:
            is_count = number.point == running.rows > 1
            if suspect.clarity >= Clarity.NAMED:
                hits += is_count
            elif is_count and running.rows > _FEW_ROWS:  # the number of records in a column of texts: T,250,1234.50
                hits, large = hits + 1, True
            continue
        if _is_no_evidence(suspect, number, other):
            continue
        if _fits(number, other, suspect.sort, strict=suspect.clarity is Clarity.NOTHING):
            hits += 1
            parts = max(parts, other.count)
            large = large or (other.count > 1 and not _may_be_chance(suspect, number, other))
        else:
            misses += 1
    return Match(hits, misses, large, parts)


def is_statistic(suspect: Suspect, records: RunningSums) -> bool:
    """Whether a row lacks what all records have, and its numbers are all maxima and minima, or means, or counts.

    One number may be so by chance; a mean with its decimals not.
    """
    if not suspect.why.lacks or records.rows < ADDENDS:
        return False
    pairs = [(number, records.columns.get(column)) for column, number in suspect.sums.items()]
    known = [(number, other) for number, other in pairs if other is not None and other.count >= ADDENDS]
    if len(known) < len(pairs) or any(other.low == other.high for _, other in known):
        return False
    for sort in (Sort.BOUND, Sort.MEAN, Sort.COUNT):
        is_no_chance = len(known) > 1 or (sort is Sort.MEAN and any(_is_precise(number) for number, _ in known))
        if is_no_chance and all(_fits(number, other, sort, strict=False) for number, other in known):
            return True
    return False


def _may_be_chance(suspect: Suspect, number: ColumnTotal, other: ColumnTotal) -> bool:
    """Whether a number is so small that it equals the sum of others by chance."""
    if max(abs(number.point), abs(number.comma)) * 10 ** min(number.decimals, _CENTS) >= _DIGITS:
        return False
    if suspect.only_numbers and (suspect.why.is_last or suspect.why.lacks > 1):
        return number.point in (other.low, other.high)  # one value, beside zeros
    return True


def _is_no_evidence(suspect: Suspect, number: ColumnTotal, other: ColumnTotal) -> bool:
    """Whether a number is neither evidence for nor against a sum."""
    if other.count < 2 and suspect.clarity < Clarity.NAMED:
        return True
    if not number.point and not number.comma:
        return True
    if number.point == other.low == other.high and other.count > 1:
        return True  # the key of the group: an account, a year
    return suspect.clarity is Clarity.NOTHING and number.point in (other.low, other.high)  # one value again


def _fits(number: ColumnTotal, other: ColumnTotal, sort: Sort, *, strict: bool) -> bool:
    """Whether a number is the sum, the mean, the count or a bound of others, but for rounding.

    `strict`: no word says that it is one, so rounded addends do not count.
    """
    if sort is Sort.SPREAD:
        return False
    if sort is Sort.COUNT:
        return number.point == other.count
    if sort is Sort.BOUND:
        return number.point in (other.low, other.high)
    unit = 10.0 ** -max(number.decimals, 0 if sort is Sort.MEAN else other.decimals)
    if strict or sort is Sort.MEAN:
        slack = unit * _ROUNDED
    else:
        slack = unit * (_ROUNDED + other.count**0.5 * _ROUNDED_ADDENDS)
    pairs = [(number.point, other.point), (number.comma, other.comma)]
    if sort is Sort.MEAN:
        pairs = [(mean, whole / other.count) for mean, whole in pairs]
    if strict:
        slack = min(slack, _MOST_UNPROVEN)
    return any(a and abs(a - b) <= max(EXACT * abs(b), min(slack, _MOST_OF_SUM * abs(b))) for a, b in pairs)


def _is_precise(total: ColumnTotal) -> bool:
    """Whether a number has so many significant digits, zeros at its end not counted, that it is no round number."""
    return len(f"{abs(total.point):.6f}".replace(".", "").strip("0")) >= _PRECISE
