"""Settles which rows are totals: a total is one because it adds up; that it says so is a hint.

Rows that may be totals are known by their words or their place. A second look over the table's rows keeps running
sums by column, from the table's start, from the last total, from the last caption or blank row, and of the totals
themselves, and holds each such row against them. Where words and sums agree the row is a total; where only one of them
speaks it stays data, and that is said. Without such rows there is no second look.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, isfinite
from typing import Any, NamedTuple

from runner.engine.reading import Block, Shown, Value
from runner.engine.structure.tables import CellRange, Choice, Table
from runner.engine.structure.totals import Says, Sort, row_says

PLACES = 5  # rows that a message names
PENDING = 200  # totals above their rows that are held open at a time
MOST, THOUSANDS = 6, 3  # digits: of a fraction that count, and between two signs
EXACT = 1e-9  # relative error of sums of binary fractions
DIGITS = 100.0  # a sum this large does not come out by chance

_NUMBERS: frozenset[type] = frozenset({int, float, Shown})
# Digits with signs that group and part them, and a currency or a unit before or after, but no code such as A1.
_WRITTEN = re.compile(
    r"\s*(?:[A-Za-z]{1,3}[.$]?\s+|[A-Z]{0,2}[$£€¥₹₽₺₴%]\s*)?"
    r"([(+\u2212-]?\s*(?:[$£€¥₹]\s*)?\d[\d.,'\u2019\s]*\)?-?|[+\u2212-]?[.,]\d+)"
    r"\s*(?:[$£€¥₹₽₺₴%]|(?<=\s)[^\W\d_]{1,4}\.?)?\s*"
)
_SPACES = re.compile(r"[\s'\u2019$£€¥₹]")
_PLAIN = re.compile(r"[+-]?\d*\.?\d+")
_TAIL = re.compile(r"[.,](\d+)\D*$")


@dataclass(slots=True)
class Sum:
    """What a column held so far: numbers read with a point and with a comma as decimal sign."""

    count: int = 0
    point: float = 0.0
    comma: float = 0.0
    decimals: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, other: "Sum") -> None:
        self.count += other.count
        self.point += other.point
        self.comma += other.comma
        self.decimals = max(self.decimals, other.decimals)
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)


class Running:
    """Sums of all columns, and how many rows they are of."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[int, Sum] = {}

    def add(self, rows: int, columns: Mapping[int, Sum]) -> None:
        self.rows += rows
        for at, one in columns.items():
            self.columns.setdefault(at, Sum()).add(one)

    def joined(self, other: "Running") -> "Running":
        out = Running()
        out.add(self.rows, self.columns)
        out.add(other.rows, other.columns)
        return out


class Match(NamedTuple):
    """How many of a row's numbers are what a total's would be."""

    hits: int = 0
    misses: int = 0
    large: bool = False  # one of them is too large to be so by chance


NOTHING = Match()


@dataclass(slots=True)
class Suspect:
    """A row that may be a total."""

    number: int
    says: Says
    sort: Sort
    sums: dict[int, Sum]
    match: Match = NOTHING
    below: list[Running] = field(default_factory=list)  # sums of what comes after it, while it may stand above its rows

    @property
    def adds_up(self) -> bool:
        hits, misses, large = self.match
        if self.says >= Says.NAMED:
            return hits > 0 and (large or hits > 1 or not misses)
        return hits > 0 and hits >= 2 * misses and (large or hits > 1) and (self.says > Says.NOTHING or not misses)

    @property
    def is_total(self) -> bool:
        return self.says > Says.NOTHING and self.adds_up


class TotalsCheck:
    """Goes over the rows of one table and judges those that may be totals."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._suspected = set(table.suspected)
        self._without = table.left_out
        self._whole, self._since, self._block, self._totals, self._tail = (Running() for _ in range(5))
        self._above: Running | None = None  # the last total, as one more addend
        self._judged: list[Suspect] = []
        self._open: list[Suspect] = []
        self._numeric: dict[int, bool] = {}
        self._last = 0
        self.first_data = self.last_data = 0

    def take(self, block: Block) -> None:
        box = self._table.data_range
        if box is None:
            return
        low, high = bisect_left(block.numbers, box.top), bisect_right(block.numbers, box.bottom)
        numbers = block.numbers[low:high]
        columns = [(at, block.columns[at][low:high]) for at in range(box.left - 1, min(box.right, len(block.columns)))]
        for start, end in self._segments(numbers):
            self._segment(numbers[start], numbers[end - 1], [(at, column[start:end]) for at, column in columns])

    def _segments(self, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Runs of rows between rows that stand out and blank rows; a row that stands out is a run of its own."""
        start = 0
        dense = not numbers or numbers[-1] - numbers[0] + 1 == len(numbers)
        alone = self._suspected | self._without
        for at, number in enumerate(numbers if not dense or not alone.isdisjoint(numbers) else ()):
            odd = number in alone
            if at > start and (odd or number != numbers[at - 1] + 1):
                yield start, at
                start = at
            if odd:
                yield at, at + 1
                start = at + 1
        if start < len(numbers):
            yield start, len(numbers)

    def _segment(self, first: int, last: int, columns: Sequence[tuple[int, list[Value]]]) -> None:
        if first in self._without:
            self._block = Running()
            self._last = last
            return
        if self._last and first > self._last + 1:
            self._block = Running()
        self._last = last
        count = len(columns[0][1]) if columns else 0
        sums = {at: one for at, column in columns if (one := self._sum(at, column, single=count == 1)) is not None}
        if first not in self._suspected:
            self._add(count, sums)
            self.first_data = self.first_data or first
            self.last_data = last
            return
        says, sort = row_says([column[0] for _, column in columns])
        suspect = Suspect(first, self._table.suspected[first] and max(says, self._table.suspected[first]), sort, sums)
        self._judge(suspect)

    def _sum(self, at: int, column: list[Value], *, single: bool) -> Sum | None:
        if not single and self._numeric.get(at) is False:
            return None
        found = summed(column)
        if not single and at not in self._numeric and len(column) > PLACES:
            self._numeric[at] = found is not None
        return found

    def _add(self, count: int, sums: Mapping[int, Sum]) -> None:
        for running in (self._whole, self._since, self._block, self._tail):
            running.add(count, sums)
        for suspect in self._open:
            for running in suspect.below:
                running.add(count, sums)

    def _judge(self, suspect: Suspect) -> None:
        tries = [self._since, self._block, self._whole, self._totals]
        if self._above is not None:
            tries.append(self._above.joined(self._tail))
        suspect.match = max((compared(suspect, one) for one in tries), key=_worth, default=NOTHING)
        self._close(last=False)
        self._judged.append(suspect)
        if suspect.is_total:
            self._totals.add(1, suspect.sums)
            self._above = Running()
            self._above.add(1, suspect.sums)
            self._tail = Running()
        else:
            self._add(1, suspect.sums)
            if suspect.says >= Says.NAMED and len(self._open) < PENDING:
                suspect.below = [Running(), Running()]
                self._open.append(suspect)
        if suspect.is_total or suspect.says >= Says.NAMED:
            self._since, self._block = Running(), Running()

    def _close(self, *, last: bool) -> None:
        """The sums of rows below a total end at the next one; those of all rows below it at the table's end."""
        for suspect in self._open:
            tries = suspect.below if last else suspect.below[:1]
            suspect.match = max((suspect.match, *(compared(suspect, one) for one in tries)), key=_worth)
            suspect.below = suspect.below[-1:]

    def settled(self) -> Table:
        """The table with its totals left out, and what could have been read otherwise."""
        self._close(last=True)
        table = self._table
        totals = [one.number for one in self._judged if one.is_total]
        words = [one.number for one in self._judged if one.says is Says.PLAINLY and not one.is_total]
        words += [n for n in table.doubted if n not in totals and n not in words]
        sums = [one.number for one in self._judged if one.says is Says.NOTHING and one.adds_up]
        kept = [one.number for one in self._judged if not one.is_total]
        edges = [n for n in (self.first_data, self.last_data, *kept) if n]
        box = table.data_range
        if box is not None:
            box = CellRange(min(edges), box.left, max(edges), box.right) if edges else None
        why = table.why
        if totals:
            why = (*why, f"{len(totals)} total row{'s' * (len(totals) > 1)} left out of the data")
        return replace(
            table,
            data_range=box,
            totals=table.totals | frozenset(totals),
            why=why,
            choices=(*table.choices, *_choices(totals, sorted(words), sums)),
            suspected={},
            doubted=(),
        )


def _choices(totals: list[int], words: list[int], sums: list[int]) -> list[Choice]:
    out: list[Choice] = []
    keep = '"reading": {"total_rows": "keep"}'
    if totals:
        out.append(
            Choice("total", "total", {"word": len(totals), "sum": len(totals)}, True, row=totals[0], settle=keep)
        )
    if words:
        message = f"{_named(words)} a total that does not add up; kept as data"
        out.append(Choice("total", "data", {"word": len(words), "sum": 0}, False, message, words[0], keep))
    if sums:
        message = f"{_named(sums, 'adds up like', 'add up like')} a total but does not say so; kept as data"
        out.append(Choice("total", "data", {"word": 0, "sum": len(sums)}, False, message, sums[0], keep))
    return out


def _named(rows: list[int], one: str = "is called", many: str = "are called") -> str:
    if len(rows) == 1:
        return f"row {rows[0]} {one}"
    more = f" and {len(rows) - PLACES} more" if len(rows) > PLACES else ""
    return f"rows {', '.join(map(str, rows[:PLACES]))}{more} {many}"


def _worth(match: Match) -> tuple[bool, int, int]:
    return match.large, match.hits, -match.misses


def compared(suspect: Suspect, running: Running) -> Match:
    """Hold a row's numbers against the sums, means, counts or bounds of others."""
    hits = misses = 0
    large = False
    for at, own in suspect.sums.items():
        other = running.columns.get(at)
        if other is None or not other.count:
            counted = own.point == running.rows and running.rows > 1 and suspect.says >= Says.NAMED
            hits += counted
            continue
        if other.count < 2 and suspect.says < Says.NAMED:
            continue
        if not own.point and not own.comma:
            continue
        if _fits(own, other, suspect.sort, strict=suspect.says is Says.NOTHING):
            hits += 1
            large = large or (other.count > 1 and max(abs(own.point), abs(own.comma)) >= DIGITS)
        else:
            misses += 1
    return Match(hits, misses, large)


def _fits(own: Sum, other: Sum, sort: Sort, *, strict: bool) -> bool:
    if sort is Sort.COUNT:
        return own.point == other.count
    if sort is Sort.BOUND:
        return own.point in (other.low, other.high)
    unit = 10.0 ** -max(own.decimals, 0 if sort is Sort.MEAN else other.decimals)
    slack = unit * 0.51 if strict or sort is Sort.MEAN else unit * (0.51 + other.count**0.5 / 2)
    pairs = [(own.point, other.point), (own.comma, other.comma)]
    if sort is Sort.MEAN:
        pairs = [(a, b / other.count) for a, b in pairs]
    if strict:
        slack = min(slack, 0.02)
    return any(a and abs(a - b) <= max(EXACT * abs(b), min(slack, 0.005 * abs(b))) for a, b in pairs)


def summed(column: Sequence[Any]) -> Sum | None:
    """The sums of a column's numbers, typed or written as text; None where it holds none."""
    typed: list[Any] = [v for v in column if v.__class__ in _NUMBERS]
    texts = [v for v in column if v.__class__ is str]
    out = Sum()
    if typed:
        whole = _whole(typed)
        if whole is None:
            return None
        some = typed[:50]
        out = Sum(len(typed), whole, whole, max(_decimals(str(v)) for v in some), min(typed), max(typed))
    if texts:
        out.add(_of_texts(texts))
    return out if out.count else None


def _whole(numbers: Sequence[float]) -> float | None:
    """The sum; None where it is more than a float holds."""
    try:
        whole = fsum(numbers)
    except OverflowError:
        return None
    return whole if isfinite(whole) else None


def _of_texts(texts: Sequence[str]) -> Sum:
    some = texts[:20]
    if not any(read(text) for text in some) and not any(read(text) for text in texts[20:200]):
        return Sum()
    if all(map(_PLAIN.fullmatch, texts)):
        numbers = list(map(float, texts))
        whole = _whole(numbers)
        if whole is None:
            return Sum()
        decimals = max(map(_decimals, some))
        return Sum(len(numbers), whole, whole, decimals, min(numbers), max(numbers))
    out = Sum()
    for text in texts:
        if (pair := read(text)) is not None:
            point, comma = pair
            out.add(Sum(1, point, comma, _decimals(text) if point != comma else 0, point, point))
    return out


def read(text: str) -> tuple[float, float] | None:
    """A number as it is with a point and with a comma as decimal sign; None where a text is none, or a code."""
    if (found := _WRITTEN.fullmatch(text)) is None:
        return None
    bare = _SPACES.sub("", found[1]).replace("\u2212", "-")
    negative = bare.startswith(("-", "(")) or bare.endswith("-")
    digits = bare.strip("()+-")
    point, comma = _with(digits, ".", ","), _with(digits, ",", ".")
    if point is None and comma is None:
        return None
    sign = -1.0 if negative else 1.0
    return sign * (point if point is not None else comma or 0.0), sign * (comma if comma is not None else point or 0.0)


def _with(digits: str, decimal: str, group: str) -> float | None:
    bare = digits.replace(group, "")
    if bare.count(decimal) > 1 or group in digits.partition(decimal)[2]:
        return None
    try:
        return float(bare.replace(decimal, "."))
    except ValueError:
        return None


def _decimals(text: str) -> int:
    """Digits after the last sign that may part them; three are thousands as likely."""
    tail = _TAIL.search(text)
    count = len(tail[1]) if tail else 0
    return min(count, MOST) if count != THOUSANDS or "." in text else 0


def settle(tables: Sequence[Table], blocks: Iterable[Block]) -> list[Table]:
    """The tables with their totals settled by a second look over the sheet's rows, where there are any to settle."""
    looks = {at: TotalsCheck(table) for at, table in enumerate(tables) if table.suspected and table.data_range}
    if looks:
        bottom = max(table.data_range.bottom for at, table in enumerate(tables) if at in looks and table.data_range)
        for block in blocks:
            for look in looks.values():
                look.take(block)
            if block.numbers[-1] >= bottom:
                break
    return [looks[at].settled() if at in looks else table for at, table in enumerate(tables)]
