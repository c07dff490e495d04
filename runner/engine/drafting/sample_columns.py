"""What all rows of a sample say about one of its columns: values, types that fit them, blanks, repeats."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import cached_property
from typing import Any, Final

from runner.engine.common import a1
from runner.engine.common.fields import Field
from runner.engine.mapping.sample import Sample
from runner.engine.reading import CellError, NoCachedValue, Shown
from runner.engine.tables.sources import SourceTable, chunks
from runner.engine.values.checking import SeenValues
from runner.engine.values.convention_choices import Convention
from runner.engine.values.convert import Converter, text_of
from runner.engine.values.decisions import Tally, add_cells, decide_convention, make_tally
from runner.engine.values.words import NOTHING

TRIED_TYPES: Final = ("integer", "decimal", "percent", "date", "datetime", "time", "boolean", "email", "phone", "url")
FEWEST_WORDS: Final = 3  # different values by which another column of the same words is recognized
_MOST_WORDS: Final = 60
_LEAST_REPEATS: Final = 5  # how often each of these words occurs on average
CLEANING_STEPS: Final = ("strip", "nullify")
_LEAST_FIT: Final = 0.5  # share of the first values that a type must fit to be tried on all
_LONGEST_COUNTED: Final = 200  # characters of a value that is counted by itself
_MANY_DIGITS: Final = 16  # more than a number keeps
_KIND_OF_TYPE: Final[Mapping[type, str]] = {
    str: "text",
    int: "number",
    float: "number",
    Shown: "number",
    bool: "boolean",
    date: "date",
    datetime: "date",
    time: "time",
    CellError: "error",
}


class TypeFit:
    """How many values of a column are not of one type, and the extremes of those that are; counted chunk by chunk."""

    __slots__ = ("bad", "filled", "fractions", "high", "low", "timed")

    def __init__(self) -> None:
        """Count nothing yet."""
        self.bad = 0  # values that are not of the type
        self.filled = 0  # values that are not blank, once cleaned
        self.low: Any = None  # of numbers and dates; None for others
        self.high: Any = None
        self.fractions = False  # numbers that are not whole
        self.timed = False  # dates with a time of day

    def add(self, values: Sequence[Any], bad: Sequence[int]) -> None:
        """Count cells that were converted to this type; `bad`: the positions of those that are not of it. Extremes are
        only of types other than texts, yes and no."""
        self.bad += len(bad)
        wrong = frozenset(bad)
        good = [v for n, v in enumerate(values) if v is not None and n not in wrong]
        self.filled += len(good) + len(bad)
        if not good:
            return
        if isinstance(good[0], str | bool):
            return
        low, high = min(good), max(good)
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        self.fractions = self.fractions or any(isinstance(v, float) and not v.is_integer() for v in good)
        self.timed = self.timed or any(isinstance(v, datetime) and v.time() != time() for v in good)


class ColumnFacts:
    """What all rows show of one column of one sample; `add` counts them chunk by chunk."""

    def __init__(self, header: str, letters: str, file: int, sample: Sample, *, room: int) -> None:
        """Know a column of which nothing is counted yet; `room`: how many different values are counted. `file`: which
        sample, by number. `sample`: its first values."""
        self.header = header
        self.has_header = True  # false: it is called by its letters, which mean nothing
        self.letters = letters
        self.file = file  # which sample, by number
        self.sample = sample
        self.rows = 0
        self.filled = 0  # cells with a value, also one such as n/a
        self.nothings: Counter[str] = Counter()  # values such as n/a
        self.counts: Counter[str] = Counter()  # values as texts, without outer blanks
        self.overflow = False  # there are more different values than are counted
        self.kinds: Counter[str] = Counter()  # how many cells are texts, numbers, dates, …
        self.zeros = False  # digits with a zero in front
        self.digits = False  # digits beyond what a number keeps
        self.inner_blanks = False  # two blanks in a row
        self.units: frozenset[str] = frozenset()  # what number formats show beside numbers
        self.currencies: frozenset[str] = frozenset()  # that texts name
        self.percents = False  # texts with a percent sign
        self.repeats = False  # a value occurs twice
        self.fits: dict[str, TypeFit] = {}  # of the types that were tried
        self._seen = SeenValues()
        self._most_counted = room

    def add(self, values: Sequence[Any]) -> None:
        """Count the values of some rows."""
        texts: list[str | None] = []
        for value in values:
            texts.append(text := self._count_cell(value))
            if text is not None:
                self._count_text(text)
        self.rows += len(values)
        self.repeats = self.repeats or bool(self._seen.repeats(texts))

    def _count_cell(self, value: Any) -> str | None:
        """Count a cell by its kind and form, and return its text; None for a blank or a word such as n/a."""
        if value is None or type(value) is NoCachedValue:
            return None
        text: str = text_of(value).strip()
        if not text:
            return None
        self.filled += 1
        self.kinds[_KIND_OF_TYPE.get(type(value), "text")] += 1
        if type(value) is str or type(value) is Shown:
            self._remember_form(text, " ".join(value.split(" ")) if type(value) is str else text)
        if text.casefold() in NOTHING:
            self.nothings[text] += 1
            return None
        return text

    def _remember_form(self, text: str, raw: str) -> None:
        """Remember what a text's form shows: leading zeros, long numbers, percent signs, doubled blanks (in `raw`)."""
        if text.isdecimal():
            self.zeros = self.zeros or (len(text) > 1 and text[0] == "0")
            self.digits = self.digits or len(text) >= _MANY_DIGITS
        else:
            self.percents = self.percents or text.endswith("%")
            self.inner_blanks = self.inner_blanks or "  " in raw.strip()

    def _count_text(self, text: str) -> None:
        """Count a text while there is room; sets `overflow` if there is none."""
        if len(text) > _LONGEST_COUNTED or (len(self.counts) >= self._most_counted and text not in self.counts):
            self.overflow = True
            return
        self.counts[text] += 1

    @cached_property
    def few_words(self) -> frozenset[str]:
        """Return the values of a column that holds a few words again and again, without case; none of another column.

        All rows must have been counted.
        """
        different = len(self.counts)
        if self.overflow or not FEWEST_WORDS <= different <= _MOST_WORDS or self.values < _LEAST_REPEATS * different:
            return frozenset()
        words = frozenset(value.casefold() for value in self.counts)
        return words if all(any(map(str.isalpha, word)) for word in words) else frozenset()

    @property
    def values(self) -> int:
        """Count the cells with a value that says something."""
        return self.filled - self.nothings.total()


def facts_of(table: SourceTable, file: int, *, room: int, most: int) -> dict[int, ColumnFacts]:
    """Read all rows of a table, twice, and return the facts of its first columns that have a header, by position.

    `file`: which sample, by number. `room`: how many different values of a column are counted. `most`: columns.
    """
    samples = [Sample(values) for values in table.samples()]
    positions = [n for n, column in enumerate(table.columns[:most]) if column.name.strip()]
    facts = {
        n: ColumnFacts(table.columns[n].name, a1.letters(table.columns[n].index), file, samples[n], room=room)
        for n in positions
    }
    types_by_column = {n: [kind for kind in TRIED_TYPES if _is_plausible(samples[n], kind)] for n in positions}
    pairs = [(n, kind) for n in positions for kind in types_by_column[n]]
    tallies = {pair: tally for pair in pairs if (tally := make_tally(_field_of_type(pair[1]))) is not None}
    for columns in _chunks_of_columns(table):
        for n in positions:
            facts[n].add(columns[n])
        for (n, _), tally in tallies.items():
            add_cells(tally, columns[n])
    _try_types(table, facts, types_by_column, tallies)
    marks = table.sheet.layout().units
    for n in positions:
        facts[n].units = frozenset(marks.get(table.columns[n].index, ()))
        number = tallies.get((n, "decimal"))
        facts[n].currencies = frozenset(getattr(number, "currencies", ())) - {""}
    return facts


def _try_types(
    table: SourceTable,
    facts: Mapping[int, ColumnFacts],
    types_by_column: Mapping[int, Sequence[str]],
    tallies: Mapping[tuple[int, str], Tally],
) -> None:
    """Set `fits` of each column: how well each type that is tried fits all values. Reads all rows."""
    converters: dict[tuple[int, str], Converter] = {}
    for n, kinds in types_by_column.items():
        for kind in kinds:
            field, tally = _field_of_type(kind), tallies.get((n, kind))
            convention = Convention() if tally is None else decide_convention(field, tally.count_pending())[0]
            converters[n, kind] = Converter(field, (), convention, epoch_1904=table.epoch_1904)
            facts[n].fits[kind] = TypeFit()
    for columns in _chunks_of_columns(table):
        for (n, kind), converter in converters.items():
            facts[n].fits[kind].add(*converter.convert(columns[n]))


def _chunks_of_columns(table: SourceTable) -> Iterator[list[list[Any]]]:
    """Yield the columns of a table's data rows, chunk by chunk."""
    return (rows.columns for _, rows in chunks([table]) if rows.numbers)


def _field_of_type(kind: str) -> Field:
    """Make a field with which a type is tried."""
    return Field({"name": "sample", "type": kind, "clean": CLEANING_STEPS})


def _is_plausible(sample: Sample, kind: str) -> bool:
    """Whether enough of the first values fit a type to try it on all."""
    share = sample.fit(_field_of_type(kind))
    return share is not None and share >= _LEAST_FIT
