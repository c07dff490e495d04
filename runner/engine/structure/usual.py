"""Tells plain rows from rows that stand out, at a few microseconds a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from runner.engine.reading import Shown
from runner.engine.structure.totals import SHORT, STARTS, opens

FIRST = 100  # rows before anything can be called usual
SHARE = 0.1  # of a column's filled cells that a code needs to be usual there
KNOWN = 2_000  # signatures remembered; a sheet with more has no usual rows to speak of
WIDE = 200  # columns by which rows are told apart
EARLY = 40  # rows in which a header may stand that comes again later

Signature = tuple[Any, ...]  # the cells' types, or codes of what texts look like
Codes = tuple[int, ...]

_TEXT = 1
_CODES: Mapping[type, int] = {
    type(None): 0, str: 1, int: 2, Shown: 2, float: 2, bool: 3, datetime: 4, date: 4, time: 4, timedelta: 4,
}  # fmt: skip
_NUMERIC = frozenset("0123456789+-.($£€")


def codes_of(values: Sequence[Any]) -> Codes:
    """A code for each cell's kind, told from its type and a text's first character only."""
    codes = _CODES
    numeric = _NUMERIC
    return tuple(
        [
            (2 if value[:1] in numeric else 1) if value.__class__ is str else codes.get(value.__class__, 5)
            for value in values
        ]
    )


@dataclass(slots=True)
class Look:
    """One way that rows of the sheet look."""

    codes: Codes
    first_text: int  # where the first text stands; -1: none
    count: int = 0
    plain: bool | None = None  # not judged yet


class Usual:
    """Learns what the rows of a sheet look like and judges each next one."""

    def __init__(self) -> None:
        self._looks: dict[Signature, Look] = {}
        self._typed = False  # cells have types of their own: no need to look into texts
        self._allowed: list[set[int]] = []
        self._least = 0.0
        self._least_values = 0.0
        self._types: list[tuple[type, ...]] = []  # of the first rows
        self._early: dict[object, set[tuple[object, ...]]] = {}
        self._seen = 0
        self._learn_at = FIRST

    def stands_out(self, values: Sequence[Any]) -> bool:
        """Whether the row deserves a close look; also learns from it."""
        self._seen += 1
        if len(values) > WIDE:
            values = values[:WIDE]
        if self._seen > self._learn_at:
            self._learn()
        signature = tuple(map(type, values)) if self._typed else codes_of(values)
        look = self._looks.get(signature)
        if look is None:
            look = self._add(signature)
        look.count += 1
        if look.plain is None:
            if self._seen <= FIRST:
                self._remember(values, look)
                return True
            look.plain = self._judge(look.codes)
        if not look.plain:
            return True
        if look.first_text < 0:
            return False
        text = values[look.first_text]
        if (text[:3] in STARTS or text[:1] in SHORT) and opens(text):
            return True
        rows = self._early.get(text)
        return rows is not None and tuple(values) in rows

    def plainly(self, values: Sequence[Any]) -> bool:
        """Whether a row is surely plain, at a glance; if so it is learnt, if not nothing is: ask `stands_out`."""
        if not self._typed or self._seen >= self._learn_at or len(values) > WIDE:
            return False
        look = self._looks.get(tuple(map(type, values)))
        if look is None or not look.plain:
            return False
        if look.first_text >= 0:
            text = values[look.first_text]
            if text in self._early or ((text[:3] in STARTS or text[:1] in SHORT) and opens(text)):
                return False
        self._seen += 1
        look.count += 1
        return True

    def _add(self, signature: Signature) -> Look:
        codes = tuple([_CODES.get(one, 5) for one in signature]) if self._typed else signature
        look = Look(codes, codes.index(_TEXT) if _TEXT in codes else -1)
        if len(self._looks) < KNOWN:
            self._looks[signature] = look
        return look

    def _remember(self, values: Sequence[Any], look: Look) -> None:
        self._types.append(tuple(map(type, values)))
        if self._seen <= EARLY and look.first_text >= 0:
            self._early.setdefault(values[look.first_text], set()).add(tuple(values))

    def _learn(self) -> None:
        """Look again at what is usual whenever the sheet has doubled."""
        if self._types:
            self._choose()
        self._learn_at = self._seen * 2
        columns: list[dict[int, int]] = []
        known = width = valued = 0
        for look in self._looks.values():
            look.plain = None
            known += look.count
            while len(columns) < len(look.codes):
                columns.append({})
            for column, code in enumerate(look.codes):
                if code:
                    columns[column][code] = columns[column].get(code, 0) + look.count
                    width += look.count
                    valued += look.count * (code != _TEXT)
        self._allowed = [
            {code for code, count in codes.items() if count >= SHARE * sum(codes.values())} for codes in columns
        ]
        self._least = width / known / 2
        self._least_values = valued / known / 2

    def _choose(self) -> None:
        """Where cells carry types, those alone tell rows apart, at a third of the cost."""
        texts = sum(one.count(str) for one in self._types)
        cells = sum(len(one) - one.count(type(None)) for one in self._types)
        if texts * 4 <= cells * 3:
            self._typed = True
            self._looks.clear()
            for one in self._types:
                look = self._looks.get(one) or self._add(one)
                look.count += 1
        self._types = []

    def _judge(self, codes: Codes) -> bool:
        if len(codes) > len(self._allowed):
            return False
        filled = valued = 0
        for code, allowed in zip(codes, self._allowed, strict=False):
            if code:
                if code not in allowed:
                    return False
                filled += 1
                valued += code != _TEXT
        return filled >= self._least and valued >= self._least_values
