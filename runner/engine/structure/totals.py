# ruff: noqa: RUF001  # words as people type them
"""Decides which rows are totals: a row is a total if it adds up; its label is only a hint.

Rows that may be totals are known by their words, in many languages, or by their place. A second pass over the table's
rows keeps running sums by column (from the table's start, from the last total, from the last caption or blank row, and
of the totals themselves) and compares each such row with them. If words and sums agree, the row is a total; if only one
of them does, it stays data and is reported. Without such rows there is no second pass.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from math import fsum, isfinite
from typing import Any, Final, NamedTuple

from runner.engine.common.a1 import CellRange
from runner.engine.reading import Block, Shown, Value
from runner.engine.structure.tables import Choice, Clarity, LeftRow, Proof, RowKind, Suspicion, Table

# What printed pages carry over.
CARRIED: Final = (
    "carried forward", "carry forward", "brought forward", "c/f", "b/f", "übertrag", "uebertrag", "à reporter",
    "a reporter", "suma y sigue", "suma anterior", "riporto", "a riportare", "a transportar", "do przeniesienia",
    "z przeniesienia",
)  # fmt: skip
TOTALS: Final = (
    *CARRIED,
    # English, German, Dutch, the North
    "total", "totals", "sum", "sum total", "σ", "∑", "summe", "gesamt", "gesamtsumme", "gesamtbetrag", "gesamtergebnis",
    "insgesamt", "zwischensumme", "teilsumme", "endsumme", "totaal", "subtotaal", "eindtotaal", "som", "summa",
    "totalt", "delsumma", "delsum", "i alt", "ialt", "yhteensä", "välisumma", "kokonaissumma", "samtals", "kokku",
    "kopā", "iš viso",
    # French, Spanish, Portuguese, Italian, Romanian
    "totaux", "somme", "suma", "soma", "totale", "totali", "subtotale", "somma", "subtotales", "totales", "totais",
    "sumă",
    # Polish, Czech, Slovak, Hungarian, South Slavic, Turkish, Greek
    "razem", "ogółem", "łącznie", "podsuma", "celkem", "součet", "mezisoučet", "spolu", "súčet", "medzisúčet",
    "összesen", "részösszeg", "végösszeg", "mindösszesen", "ukupno", "skupaj", "zbroj", "zbir", "toplam",
    "ara toplam", "genel toplam", "σύνολο", "άθροισμα", "γενικό σύνολο", "μερικό σύνολο",
    # Cyrillic
    "итого", "всего", "итог", "сумма", "подытог", "подитог", "промежуточный итог", "общий итог", "всього", "разом",
    "підсумок", "усього", "общо", "сума", "укупно",
    # Asia and the Middle East
    "合計", "小計", "総計", "総合計", "累計", "合计", "小计", "总计", "总和", "总数", "共计", "總計", "總和", "計",
    "합계", "소계", "총계", "총합계", "총합", "المجموع", "الإجمالي", "مجموع", "إجمالي", 'סה"כ', "סך הכל", "סהכ",
    "कुल", "योग", "รวม", "ผลรวม", "ยอดรวม", "tổng", "tổng cộng", "cộng", "jumlah", "jumlah total",
)  # fmt: skip
MEANS: Final = (
    "average", "averages", "avg", "mean", "durchschnitt", "mittelwert", "mittel", "moyenne", "promedio", "média",
    "gemiddelde", "średnia", "průměr", "priemer", "átlag", "среднее", "средно", "середнє", "genomsnitt", "gennemsnit",
    "gjennomsnitt", "keskiarvo", "ortalama", "μέσος όρος", "平均", "平均値", "平均值", "평균", "prosek", "prosjek",
    "ø", "∅",
)  # fmt: skip
COUNTS: Final = ("count", "anzahl", "件数", "number of rows", "number of records", "records")
BOUNDS: Final = ("min", "minimum", "max", "maximum", "min.", "max.")
SPREADS: Final = (
    "sd",
    "std",
    "stdev",
    "std dev",
    "standard deviation",
    "standardabweichung",
    "median",
    "variance",
    "rsd",
    "cv",
)
BEFORE: Final = ("sub", "sub-", "grand", "overall", "net", "sous-", "sous", "final", "running", "page", "group")
AFTER: Final = (
    "general", "général", "geral", "generale", "complessivo", "amount", "sum", "all", "overall", "częściowa", "końcowa",
    "ogólna", "parziale", "partiel", "partielle", "parcial", "parciales", "intermédiaire", "intermedio", "intermedia",
)  # fmt: skip
_ENDINGS: Final = tuple(f" {word}" for word in AFTER)

_EDGES: Final = " \t\u00a0:.;-–—=*()[]>"
_WORDS: Final = frozenset((*TOTALS, *MEANS, *COUNTS, *BOUNDS, *SPREADS))
_STRONG: Final = frozenset((*TOTALS, *MEANS))


class Sort(IntEnum):
    SUM = 0
    MEAN = 1
    COUNT = 2
    BOUND = 3
    SPREAD = 4  # not computed, so it never adds up


@lru_cache(maxsize=4096)
def label_clarity(text: str) -> tuple[Clarity, Sort]:
    """How clearly a text labels a total, and of which sort."""
    bare = " ".join(text[:80].casefold().strip(_EDGES).split())
    if not bare:
        return (Clarity.HINT if _MARKS.fullmatch(text.strip()) else Clarity.NOTHING), Sort.SUM
    core = _core(bare)
    if core in _WORDS:
        sort = _sort(core)
        return (Clarity.HINT if sort in (Sort.BOUND, Sort.SPREAD) else Clarity.PLAINLY), sort  # Max is also a name
    words = bare.split(" ")
    for word in (words[0].strip(_EDGES), words[-1].strip(_EDGES), " ".join(words[:2])):
        if _core(word) in _STRONG and len(words) <= _MOST:
            sort = _sort(_core(word))
            return (Clarity.NAMED if sort is Sort.SUM else Clarity.HINT), sort
    if any(bare.startswith(word) or bare.endswith(word) for word in _UNSPACED):
        return Clarity.NAMED, Sort.SUM
    return (Clarity.HINT if _HINT.search(bare) else Clarity.NOTHING), Sort.MEAN if _MEAN.search(bare) else Sort.SUM


_MOST: Final = 8  # words of a label
_UNSPACED: Final = ("合計", "小計", "総計", "合计", "小计", "总计", "總計", "합계", "소계", "총계")
_MARKS: Final = re.compile(r"\*{1,4}")  # how SAP marks totals of several levels
_HINT: Final = re.compile(
    r"\b(?:median|overall|net change|balance|net|media|all (?:persons|ages|races|items|industries|regions|states))\b"
)
_MEAN: Final = re.compile(r"\b(?:media|median|mean)\b")


def _core(bare: str) -> str:
    """The text without words that only qualify the total."""
    if bare.startswith(BEFORE):  # one check for all: hardly any text does
        for word in BEFORE:
            rest = bare.removeprefix(word)
            if rest != bare and rest.strip(" -") in _WORDS:
                return rest.strip(" -")
    if bare.endswith(_ENDINGS):
        for ending in _ENDINGS:
            rest = bare.removesuffix(ending)
            if rest != bare and rest in _WORDS:
                return rest
    return bare


def _sort(word: str) -> Sort:
    if word in MEANS:
        return Sort.MEAN
    if word in SPREADS:
        return Sort.SPREAD
    return Sort.COUNT if word in COUNTS else Sort.BOUND if word in BOUNDS else Sort.SUM


def row_clarity(values: Sequence[object], first: int = 3) -> tuple[Clarity, Sort]:
    """How clearly one of a row's first cells labels it as a total."""
    best = Clarity.NOTHING, Sort.SUM
    seen = 0
    for value in values:
        if value is None or value == "":
            continue
        if isinstance(value, str):
            best = max(best, label_clarity(value), key=lambda one: one[0])
        seen += 1
        if seen == first:
            break
    return best


# Cheap checks for every row of a long sheet: does its first text start like a total? Is the word in a column?
_OPENINGS: Final = sorted({*TOTALS, *MEANS, "sub-total", "sub total", "subtotal", "sous-total", "grand total"}, key=len)
_OPEN: Final = re.compile(
    rf"\s*[(\[*]?(?:{'|'.join(re.escape(word) for word in reversed(_OPENINGS))})", re.IGNORECASE
).match
STARTS: Final = frozenset(
    before + start
    for word in _OPENINGS
    for form in (word, word.upper(), word.capitalize())
    for before, start in (("", form[:3]), *((mark, form[:2]) for mark in " \u00a0([*"))
)  # the beginnings of texts that start like a total
SHORT: Final = frozenset(word[0] for word in _OPENINGS if len(word) < 3)  # the same for words of one or two characters
_SPELLINGS: Final = frozenset(
    form + end
    for word in _OPENINGS
    for form in (word, word.upper(), word.title(), word.capitalize())
    for end in ("", ":")
)


def opens(text: str) -> bool:
    """Whether a text starts like a total; not cheap: first check that its beginning is in STARTS or SHORT."""
    return _OPEN(text) is not None


def in_column(column: Sequence[object]) -> bool:
    """Whether a cell of a column is just a word for a total: one check for thousands of cells."""
    return not _SPELLINGS.isdisjoint(column)


NAMED = 200  # runs of doubtful rows reported one by one
SOME = 5  # cells from which a column is known to have numbers or not
KEEP, DROP = '"reading": {"total_rows": "keep"}', '"reading": {"total_rows": "drop"}'
LEVELS = 4  # of totals: of records, of groups, of groups of those, of all
FOOTER = 3  # the most rows between two totals, or below the last one, that may be no records
ADDENDS = 3  # so many numbers do not add up by chance
PRECISE = 4  # digits of a sum that is no round number
PENDING = 200  # the most totals above their rows that are checked at a time
MOST, THOUSANDS = 6, 3  # digits: significant ones of a fraction, and between two separators
EXACT = 1e-9  # relative error of sums of binary fractions
CENTS = 2  # decimals that make a small sum as telling as a large one
FEW_ROWS = 2  # rows whose number occurs by chance
DIGITS = 100.0  # a sum this large does not match by chance

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
class Sum:
    """The sum of a column so far, with numbers read with a point and with a comma as decimal sign."""

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

    def negative(self) -> "Sum":
        return Sum(self.count, -self.point, -self.comma, self.decimals, -self.high, -self.low)


class Running:
    """Sums of all columns, and the number of rows in them."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[int, Sum] = {}

    def add(self, rows: int, columns: Mapping[int, Sum]) -> None:
        self.rows += rows
        for at, one in columns.items():
            self.columns.setdefault(at, Sum()).add(one)

    def joined(self, other: "Running", sign: int = 1) -> "Running":
        """This with another one added, or with sign -1 taken off."""
        out = Running()
        out.add(self.rows, self.columns)
        out.add(other.rows, {at: one if sign > 0 else one.negative() for at, one in other.columns.items()})
        return out


class Match(NamedTuple):
    """How many of a row's numbers match those of a total."""

    hits: int = 0
    misses: int = 0
    large: bool = False  # one is too large to match by chance
    parts: int = 0  # addends of the sum with the most


NOTHING = Match()


@dataclass(slots=True)
class Suspect:
    """A row that may be a total."""

    number: int
    why: Suspicion
    sort: Sort
    sums: dict[int, Sum]
    only_numbers: bool = False  # no text, no date
    is_carried: bool = False  # its label says that records follow
    match: Match = NOTHING
    is_part: bool = False  # it is proven another way: between two totals (shipping, taxes), or a statistic
    below: list[Running] = field(default_factory=list)  # sums of the rows below, while it may be above its rows

    @property
    def clarity(self) -> Clarity:
        return self.why.clarity

    @property
    def adds_up(self) -> bool:
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
    def _is_beyond_chance(self) -> bool:
        """Whether a row that lacks what all records have is the sum of so many that it is nothing else."""
        hits, misses, _, parts = self.match
        precise = any(_digits(one.point) >= PRECISE for one in self.sums.values())
        is_bare = self.why.lacks > 0 and self.why.is_last
        return is_bare and not misses and parts >= ADDENDS and (hits > 1 or precise)

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
        return self.why.lacks > (0 if self.why.charge else 1)

    @property
    def is_doubtful_below_total(self) -> bool:
        return self.why.charge or self.why.lacks > 1


def _suspect(number: int, why: Suspicion, values: Sequence[Value], sums: dict[int, Sum]) -> Suspect:
    """The row of this number with these values, and with what its words say about it."""
    clarity, sort = row_clarity(values)
    texts = [value for value in values if isinstance(value, str)]
    filled = sum(1 for value in values if value is not None and value != "")
    if why.clarity:
        why = why._replace(clarity=max(clarity, why.clarity))
    if sort in (Sort.BOUND, Sort.SPREAD) and why.lacks and why.clarity and filled <= len(sums) + 1:
        why = why._replace(clarity=Clarity.PLAINLY, full=False)  # Max, and no name
    if why.lacks and any(_MARKS.fullmatch(text.strip()) for text in texts):
        why = why._replace(clarity=Clarity.NAMED)  # stars mark a total here, not a record
    is_carried = any(text.casefold().strip(_EDGES) in CARRIED for text in texts)
    return Suspect(number, why, sort, sums, only_numbers=filled == len(sums), is_carried=is_carried)


class TotalsCheck:
    """Reads the rows of one table and checks those that may be totals."""

    def __init__(self, table: Table, *, drop: bool = False) -> None:
        """`drop`: the manifest leaves out what may be a total, too."""
        self._table = table
        self._drop = drop
        self._without = set(table.left_out)
        self._whole, self._block, self._tail = (Running() for _ in range(3))
        # Sums of what the next total of each level adds up: the records, their totals, the totals of those, and so on.
        self._levels = [Running() for _ in range(LEVELS)]
        self._above: Running | None = None  # the last total, as another addend
        self._parts: list[Suspect] = []  # rows right above that may be part of a footer
        self._beside: dict[int, bool] = {}  # rows next to totals that may be part of a footer, and whether they say so
        self._loose: list[int] = []  # the first rows since the last total that nothing speaks against
        self._is_grand = False  # the last total was the sum of all rows
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
        """Runs of rows between suspects, left-out rows and blank rows; each of the former is a run of its own."""
        start = 0
        dense = not numbers or numbers[-1] - numbers[0] + 1 == len(numbers)
        alone = self._table.suspected.keys() | self._without
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
        is_apart = bool(self._last) and first > self._last + 1
        self._last = last
        if first in self._without:
            self._block = Running()
            return
        if is_apart:
            self._block = Running()
        count = len(columns[0][1]) if columns else 0
        sums = {at: one for at, column in columns if (one := self._sum(at, column, single=count == 1)) is not None}
        why = self._table.suspected.get(first)
        if why is None:
            self._add_records(first, last, count, sums)
        else:
            self._judge(_suspect(first, why, [column[0] for _, column in columns], sums))

    def _add_records(self, first: int, last: int, count: int, sums: Mapping[int, Sum]) -> None:
        self._add(count, sums)
        self._parts = []
        self._loose = [*self._loose, *range(first, last + 1)][: FOOTER + 1] if count <= FOOTER else [0] * (FOOTER + 1)
        self.first_data = self.first_data or first
        self.last_data = last

    def _sum(self, at: int, column: list[Value], *, single: bool) -> Sum | None:
        if not single and self._numeric.get(at) is False:
            return None
        found = summed(column)
        if not single and at not in self._numeric and len(column) > SOME:
            self._numeric[at] = found is not None
        return found

    def _add(self, count: int, sums: Mapping[int, Sum]) -> None:
        for running in (self._whole, self._levels[0], self._block, self._tail):
            running.add(count, sums)
        for suspect in self._open:
            for running in suspect.below:
                running.add(count, sums)

    def _judge(self, suspect: Suspect) -> None:
        self._judged.append(suspect)
        if suspect.why.heads or suspect.why.is_part:  # others count it already
            return
        if suspect.why.counts or _is_statistic(suspect, self._whole):
            suspect.is_part = True
            return
        matches = [compared(suspect, one) for one in (*self._levels, self._block, self._whole)]
        footer = self._footer_match(suspect)
        level = max(range(len(matches)), key=lambda n: _worth(matches[n]))
        suspect.match = max(matches[level], footer, key=_worth)
        self._close(last=False)
        if suspect.is_total or suspect.is_bare_sum:
            self._end_sums(suspect, matches, footer, level)
        else:
            self._add_suspect(suspect)

    def _end_sums(self, suspect: Suspect, matches: Sequence[Match], footer: Match, level: int) -> None:
        """End the sums that a row adds up; `matches`: with the levels, the block and all rows, `level`: the best."""
        if footer.hits and not any(one.hits for one in matches[:LEVELS]):
            self._beside |= dict.fromkeys(self._few_loose(), False)
        self._settle_parts(is_footer=footer.hits > 0 and len(self._parts) == self._tail.rows)
        self._is_grand = matches[-1].hits > 0 and self._whole.rows >= ADDENDS and not suspect.is_carried
        self._pass(suspect, level if suspect.is_total and level < LEVELS - 1 else 0)

    def _footer_match(self, suspect: Suspect) -> Match:
        """How a row matches the last total with the rows since added to it, or subtracted from it."""
        above = self._above
        if above is None:
            return NOTHING
        return max((compared(suspect, above.joined(self._tail, sign)) for sign in (1, -1)), key=_worth)

    def _add_suspect(self, suspect: Suspect) -> None:
        """Count a row that is no sum of those above among the records; it may be the sum of those below."""
        self._parts = [*self._parts, suspect] if suspect.may_be_part else []
        if suspect.sort is Sort.SPREAD:
            return
        self._add(1, suspect.sums)
        is_named = suspect.clarity >= Clarity.NAMED and not suspect.why.full
        if (is_named or suspect.why.tops) and len(self._open) < PENDING:
            suspect.below = [Running(), Running()]
            self._open.append(suspect)
        if is_named:
            self._levels[0], self._block = Running(), Running()

    def _few_loose(self) -> list[int]:
        return self._loose if len(self._loose) <= FOOTER else []

    def _settle_parts(self, *, is_footer: bool) -> None:
        """Settle the rows right above a total: those of a footer are no records; others may be none."""
        for part in self._parts:
            part.is_part = is_footer
        if not is_footer:
            self._beside |= {one.number: one.why.charge for one in self._parts if one.is_doubtful_above_total}
        self._parts, self._loose = [], []

    def _pass(self, total: Suspect, level: int) -> None:
        """Go on below a total of this level: it is one of the addends of the next higher one."""
        for n in range(level + 1):
            self._levels[n] = Running()
        self._levels[level + 1].add(1, total.sums)
        self._above = Running()
        self._above.add(1, total.sums)
        self._block, self._tail = Running(), Running()

    def _close(self, *, last: bool) -> None:
        """End the sums of rows below a total at the next one; those of all rows below it at the table's end."""
        for suspect in self._open:
            tries = suspect.below if last else suspect.below[:1]
            suspect.match = max((suspect.match, *(compared(suspect, one) for one in tries)), key=_worth)
            suspect.below = suspect.below[-1:]

    def settled(self) -> Table:
        """The table without its totals, and with the choices that were close."""
        self._close(last=True)
        found: dict[int, Proof | None] = {one.number: Proof.ADDS_UP for one in self._judged if one.is_total}
        found |= dict.fromkeys(self._series(), Proof.ADDS_UP)
        rest = [one for one in self._judged if one.number not in found]
        words = [one.number for one in rest if _is_only_labelled(one)]
        parts = [one.number for one in rest if one.why.is_part]
        sums = [one.number for one in rest if one.why.heads or one.is_bare_sum]
        decided = {*found, *words, *sums}
        beside = {number: says for number, says in self._beside_totals(rest).items() if number not in decided}
        choices = _choices(list(found), words, sums, [n for n, says in beside.items() if not says], parts)
        found |= dict.fromkeys((n for n, says in beside.items() if says), None)
        if self._drop:
            found |= dict.fromkeys((*words, *sums, *beside, *parts), Proof.ASKED)
            choices = [one for one in choices if one.sure]
        table, several = self._table, "s" * (len(found) > 1)
        return replace(
            table,
            data_range=self._data_range([one.number for one in rest if one.number not in found]),
            left_out={**table.left_out, **{n: LeftRow(RowKind.TOTAL, proof) for n, proof in found.items()}},
            why=(*table.why, f"{len(found)} total row{several} left out") if found else table.why,
            choices=(*table.choices, *choices),
            suspected={},
        )

    def _beside_totals(self, rest: Sequence[Suspect]) -> dict[int, bool]:
        """Rows next to totals that may be part of a footer, and whether they say so; `rest`: what is no total."""
        beside = dict(self._beside)
        if self._above is not None and len(self._parts) == self._tail.rows:  # the footer goes on below the last total
            beside |= {one.number: one.why.charge for one in self._parts if one.is_doubtful_below_total}
        beside |= {one.number: False for one in rest if one.why.under and one.number not in beside}
        if self._is_grand:
            beside |= dict.fromkeys(self._few_loose(), False)
        return beside

    def _data_range(self, records: Sequence[int]) -> CellRange | None:
        """The range from the first to the last record; `records`: those that could have been totals."""
        box = self._table.data_range
        edges = [n for n in (self.first_data, self.last_data, *records) if n]
        if box is None or not edges:
            return None
        return CellRange(min(edges), box.left, max(edges), box.right)

    def _series(self) -> list[int]:
        """Unlabelled sums that end each block of the table: one may be so by chance, but not all of them."""
        sums = [one for one in self._judged if one.ends_block and not one.is_total]
        totals = [one for one in self._judged if one.adds_up]
        if not sums or len(totals) < 2 or totals[-1].number < self.last_data:
            return []
        return [one.number for one in sums if one.why.lacks or len(sums) > 1]


def _is_only_labelled(suspect: Suspect) -> bool:
    """Whether a row that does not add up is called a total, and has not all that a record has."""
    return not suspect.why.full and (suspect.clarity is Clarity.PLAINLY or suspect.why.named)


def _choices(totals: list[int], words: list[int], sums: list[int], beside: list[int], parts: list[int]) -> list[Choice]:
    out: list[Choice] = []
    if totals:
        evidence = {"word": len(totals), "sum": len(totals)}
        out.append(Choice("total", "total", evidence, True, row=totals[0], settle=KEEP))
    settle = f"{DROP} or {KEEP}"
    for rows, one, many, word in (
        (words, "is labelled as a total but does not add up", "are labelled as totals but do not add up", 1),
        (sums, "adds up but is not labelled as a total", "add up but are not labelled as totals", 0),
        (beside, "is next to a total and may be part of it", "are next to a total and may be part of it", 0),
        (parts, "is called a part of the row above", "are called parts of the row above", 0),
    ):
        evidence = {"word": word * len(rows), "sum": len(rows) if rows is sums else 0}
        runs = _runs(sorted(rows))
        for first, last in runs[:NAMED]:
            said = f"row {first} {one}" if first == last else f"rows {first} to {last} {many}"
            out.append(Choice("total", "data", evidence, False, f"{said}; kept as data", first, settle))
        if more := sum(last - first + 1 for first, last in runs[NAMED:]):
            said = f"{more} more rows from row {runs[NAMED][0]} on {many}; kept as data"
            out.append(Choice("total", "data", evidence, False, said, runs[NAMED][0], settle))
    return out


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive rows."""
    out: list[tuple[int, int]] = []
    for row in rows:
        if out and out[-1][1] + 1 == row:
            out[-1] = out[-1][0], row
        else:
            out.append((row, row))
    return out


def _worth(match: Match) -> tuple[bool, int, int]:
    return match.large, match.hits, -match.misses


def _digits(number: float) -> int:
    """The significant digits of a number, zeros at its end not counted."""
    return len(f"{abs(number):.6f}".replace(".", "").strip("0"))


def compared(suspect: Suspect, running: Running) -> Match:
    """Compare a row's numbers with the sums, means, counts or bounds of others."""
    hits = misses = parts = 0
    large = False
    for at, own in suspect.sums.items():
        other = running.columns.get(at)
        if other is None or not other.count:
            counted = own.point == running.rows > 1
            if suspect.clarity >= Clarity.NAMED:
                hits += counted
            elif counted and running.rows > FEW_ROWS:  # the number of records in a column of texts: T,250,1234.50
                hits, large = hits + 1, True
            continue
        if _says_nothing(suspect, own, other):
            continue
        if _fits(own, other, suspect.sort, strict=suspect.clarity is Clarity.NOTHING):
            hits += 1
            parts = max(parts, other.count)
            by_chance = max(abs(own.point), abs(own.comma)) * 10 ** min(own.decimals, CENTS) < DIGITS
            if by_chance and suspect.only_numbers and suspect.why.is_last:
                by_chance = own.point in (other.low, other.high)  # one value, beside zeros
            large = large or (other.count > 1 and not by_chance)
        else:
            misses += 1
    return Match(hits, misses, large, parts)


def _is_statistic(suspect: Suspect, records: Running) -> bool:
    """Whether a row lacks what all records have, and its numbers are all maxima and minima, or means, or counts.

    One number may be so by chance; a mean with its decimals not.
    """
    if not suspect.why.lacks or records.rows < ADDENDS:
        return False
    pairs = [(own, records.columns.get(at)) for at, own in suspect.sums.items()]
    known = [(own, other) for own, other in pairs if other is not None and other.count >= ADDENDS]
    if len(known) < len(pairs) or any(other.low == other.high for _, other in known):
        return False
    for sort in (Sort.BOUND, Sort.MEAN, Sort.COUNT):
        precise = sort is Sort.MEAN and any(_digits(own.point) >= PRECISE for own, _ in known)
        if (len(known) > 1 or precise) and all(_fits(own, other, sort, strict=False) for own, other in known):
            return True
    return False


def _says_nothing(suspect: Suspect, own: Sum, other: Sum) -> bool:
    """Whether a number is neither evidence for nor against a sum."""
    if other.count < 2 and suspect.clarity < Clarity.NAMED:
        return True
    if not own.point and not own.comma:
        return True
    if own.point == other.low == other.high and other.count > 1:
        return True  # the key of the group: an account, a year
    return suspect.clarity is Clarity.NOTHING and own.point in (other.low, other.high)  # one value again


def _fits(own: Sum, other: Sum, sort: Sort, *, strict: bool) -> bool:
    if sort is Sort.SPREAD:
        return False
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
    """The sum of a column's numbers, typed or written as text; None if it has none."""
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
    """The sum; None if it overflows a float."""
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
    """A number read with a point and with a comma as decimal sign; None for a code or other text."""
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
    """Digits after the last separator; three may be thousands as well."""
    tail = _TAIL.search(text)
    count = len(tail[1]) if tail else 0
    return min(count, MOST) if count != THOUSANDS or "." in text else 0


def settle(tables: Sequence[Table], blocks: Iterable[Block], *, drop: bool = False) -> list[Table]:
    """Decide the tables' totals by a second pass over the sheet's rows, if there are any suspects."""
    suspicious = [at for at, table in enumerate(tables) if table.suspected and table.data_range]
    looks = {at: TotalsCheck(tables[at], drop=drop) for at in suspicious}
    if looks:
        bottom = max(table.data_range.bottom for at, table in enumerate(tables) if at in looks and table.data_range)
        for block in blocks:
            for look in looks.values():
                look.take(block)
            if block.numbers[-1] >= bottom:
                break
    return [looks[at].settled() if at in looks else table for at, table in enumerate(tables)]
