"""Tells plain rows from rows that stand out, at a few microseconds a row."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from runner.engine.structure.patterns import SPEAKS_OF_TOTAL

FIRST = 100  # rows before anything can be called usual
SHARE = 0.1  # of a column's filled cells that a code needs to be usual there
KNOWN = 5_000  # signatures remembered; a sheet with more has no usual rows to speak of
EARLY = 40  # rows in which a header may stand that comes again later

Signature = tuple[int, ...]

_TEXT = 1
_CODES: Mapping[type, int] = {
    type(None): 0, int: 2, float: 2, bool: 3, datetime: 4, date: 4, time: 4, timedelta: 4,
}  # fmt: skip
_NUMERIC = frozenset("0123456789+-.($£€")


def signature_of(values: Sequence[Any]) -> Signature:
    """A code for each cell's kind, told from its type and a text's first character only."""
    codes = _CODES
    numeric = _NUMERIC
    return tuple(
        [
            (2 if value[:1] in numeric else 1) if value.__class__ is str else codes.get(value.__class__, 5)
            for value in values
        ]
    )


class Usual:
    """Learns what the rows of a sheet look like and judges each next one."""

    def __init__(self) -> None:
        self._counts: dict[Signature, int] = {}
        self._plain: dict[Signature, bool] = {}
        self._first_text: dict[Signature, int] = {}
        self._allowed: list[set[int]] = []
        self._least = 0.0
        self._least_values = 0.0
        self._early: dict[object, set[tuple[object, ...]]] = {}
        self._seen = 0
        self._learn_at = FIRST

    def stands_out(self, values: Sequence[Any]) -> bool:
        """Whether the row deserves a close look; also learns from it."""
        self._seen += 1
        signature = signature_of(values)
        counts = self._counts
        if signature in counts:
            counts[signature] += 1
        elif len(counts) < KNOWN:
            counts[signature] = 1
            self._first_text[signature] = signature.index(_TEXT) if _TEXT in signature else -1
        if self._seen <= FIRST:
            if self._seen <= EARLY:
                first = self._first_text[signature]
                if first >= 0:
                    self._early.setdefault(values[first], set()).add(tuple(values))
            return True
        if self._seen > self._learn_at:
            self._learn()
        plain = self._plain.get(signature)
        if plain is None:
            plain = self._judge(signature)
            if len(self._plain) < KNOWN:
                self._plain[signature] = plain
        if not plain:
            return True
        at = self._first_text.get(signature, -1)
        if at < 0:
            return False
        text = values[at]
        if SPEAKS_OF_TOTAL(text) is not None:
            return True
        rows = self._early.get(text)
        return rows is not None and tuple(values) in rows

    def _learn(self) -> None:
        """Look again at what is usual whenever the sheet has doubled."""
        self._learn_at = self._seen * 2
        columns: list[dict[int, int]] = []
        width = valued = 0
        for signature, count in self._counts.items():
            while len(columns) < len(signature):
                columns.append({})
            for column, code in enumerate(signature):
                if code:
                    columns[column][code] = columns[column].get(code, 0) + count
                    width += count
                    valued += count * (code != _TEXT)
        known = sum(self._counts.values())
        self._allowed = [
            {code for code, count in codes.items() if count >= SHARE * sum(codes.values())} for codes in columns
        ]
        self._least = width / known / 2
        self._least_values = valued / known / 2
        self._plain.clear()

    def _judge(self, signature: Signature) -> bool:
        if len(signature) > len(self._allowed):
            return False
        filled = valued = 0
        for code, allowed in zip(signature, self._allowed, strict=False):
            if code:
                if code not in allowed:
                    return False
                filled += 1
                valued += code != _TEXT
        return filled >= self._least and valued >= self._least_values
