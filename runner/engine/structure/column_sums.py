"""Sums up columns of numbers, typed or written as text, read with a point and with a comma as decimal sign."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any

from runner.engine.reading import Shown

EXACT = 1e-9  # relative error of sums of binary fractions
_MOST_DECIMALS = 6  # beyond them a fraction's digits are noise
_GROUP_DIGITS = 3  # digits between two separators of thousands
_TYPED_SAMPLE = 50  # typed numbers whose decimals are counted
_TEXT_SAMPLE, _LARGE_TEXT_SAMPLE = 20, 200  # texts of which one has to be a number
_NUMBERS: frozenset[type] = frozenset({int, float, Shown})
# Digits with grouping and decimal signs, and a currency or a unit before or after, but no code such as A1.
_WRITTEN = re.compile(
    r"\s*(?:[A-Za-z]{1,3}[.$]?\s+|[A-Z]{0,2}[$£€¥₹₽₺₴%]\s*)?"
    r"([(+\u2212-]?\s*(?:[$£€¥₹]\s*)?\d[\d.,'\u2019\s]*\)?-?|[+\u2212-]?[.,]\d+)"
    r"\s*(?:[$£€¥₹₽₺₴%]|(?<=\s)[^\W\d_]{1,4}\.?)?\s*"
)
_SPACES = re.compile(r"[\s'\u2019$£€¥₹]")
_PLAIN = re.compile(r"[+-]?\d*\.?\d+")
_TAIL = re.compile(r"[.,](\d+)\D*$")


@dataclass(slots=True)
class ColumnTotal:
    """The sum of a column so far, with numbers read with a point and with a comma as decimal sign."""

    count: int = 0
    point: float = 0.0
    comma: float = 0.0
    decimals: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, other: "ColumnTotal") -> None:
        """Add the numbers of another sum."""
        self.count += other.count
        self.point += other.point
        self.comma += other.comma
        self.decimals = max(self.decimals, other.decimals)
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)

    def negative(self) -> "ColumnTotal":
        """Return the sum of the same numbers with the opposite sign."""
        return ColumnTotal(self.count, -self.point, -self.comma, self.decimals, -self.high, -self.low)


class RunningSums:
    """Sums of all columns, and the number of rows in them."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[int, ColumnTotal] = {}

    def add(self, rows: int, columns: Mapping[int, ColumnTotal]) -> None:
        """Add the sums of so many rows, by column (0-based)."""
        self.rows += rows
        for column, total in columns.items():
            self.columns.setdefault(column, ColumnTotal()).add(total)

    def joined(self, other: "RunningSums", sign: int = 1) -> "RunningSums":
        """Return a copy with another one added, or subtracted if `sign` is -1."""
        joined = RunningSums()
        joined.add(self.rows, self.columns)
        joined.add(
            other.rows, {column: total if sign > 0 else total.negative() for column, total in other.columns.items()}
        )
        return joined


def sum_column(column: Sequence[Any]) -> ColumnTotal | None:
    """Sum up a column's numbers, typed or written as text; None if it has none, or their sum overflows."""
    typed: list[Any] = [value for value in column if value.__class__ in _NUMBERS]
    texts = [value for value in column if value.__class__ is str]
    total = ColumnTotal()
    if typed:
        whole = _finite_sum(typed)
        if whole is None:
            return None
        decimals = max(_count_decimals(str(value)) for value in typed[:_TYPED_SAMPLE])
        total = ColumnTotal(len(typed), whole, whole, decimals, min(typed), max(typed))
    if texts:
        total.add(_sum_texts(texts))
    return total if total.count else None


def _finite_sum(numbers: Sequence[float]) -> float | None:
    """Add up numbers exactly; None if the sum overflows a float."""
    try:
        whole = fsum(numbers)
    except OverflowError:
        return None
    return whole if isfinite(whole) else None


def _sum_texts(texts: Sequence[str]) -> ColumnTotal:
    """Sum up the texts that are numbers; an empty sum if none of the first is one, or the sum overflows."""
    first = texts[:_TEXT_SAMPLE]
    if not any(map(read_number, first)) and not any(map(read_number, texts[_TEXT_SAMPLE:_LARGE_TEXT_SAMPLE])):
        return ColumnTotal()
    if all(map(_PLAIN.fullmatch, texts)):
        numbers = list(map(float, texts))
        whole = _finite_sum(numbers)
        if whole is None:
            return ColumnTotal()
        return ColumnTotal(len(numbers), whole, whole, max(map(_count_decimals, first)), min(numbers), max(numbers))
    total = ColumnTotal()
    for text in texts:
        if (pair := read_number(text)) is not None:
            point, comma = pair
            total.add(ColumnTotal(1, point, comma, _count_decimals(text) if point != comma else 0, point, point))
    return total


def read_number(text: str) -> tuple[float, float] | None:
    """Read a number with a point and with a comma as decimal sign; None for a code or other text."""
    if (match := _WRITTEN.fullmatch(text)) is None:
        return None
    bare = _SPACES.sub("", match[1]).replace("\u2212", "-")
    negative = bare.startswith(("-", "(")) or bare.endswith("-")
    digits = bare.strip("()+-")
    point, comma = _parse_digits(digits, ".", ","), _parse_digits(digits, ",", ".")
    if point is None and comma is None:
        return None
    sign = -1.0 if negative else 1.0
    return sign * (point if point is not None else comma or 0.0), sign * (comma if comma is not None else point or 0.0)


def _parse_digits(digits: str, decimal: str, group: str) -> float | None:
    """Parse digits with these decimal and grouping signs; None if they cannot be meant."""
    bare = digits.replace(group, "")
    if bare.count(decimal) > 1 or group in digits.partition(decimal)[2]:
        return None
    try:
        return float(bare.replace(decimal, "."))
    except ValueError:
        return None


def _count_decimals(text: str) -> int:
    """Count the digits after the last separator; three after a comma may be thousands, and count as none."""
    tail = _TAIL.search(text)
    count = len(tail[1]) if tail else 0
    return min(count, _MOST_DECIMALS) if count != _GROUP_DIGITS or "." in text else 0
