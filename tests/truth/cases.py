"""A case: a file whose contents are known, and what every cell of the output has to be.

The oracle is plain data. A generator makes rows of Python values first, then writes them down as a person or a program
would; what it made is what has to come out. Nothing here knows how the engine reads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time
from random import Random
from typing import Any, NamedTuple


class AnyOf(NamedTuple):
    """Several values that mean the same and are all right."""

    values: tuple[Any, ...]


class Shown(NamedTuple):
    """A number with a number format, and the text that a spreadsheet shows for it."""

    value: Any
    format: str
    text: str


class Formula(NamedTuple):
    """A formula and its stored result; None where nothing was stored."""

    text: str
    cached: Any


class Error(NamedTuple):
    """An error cell such as #N/A."""

    code: str


@dataclass
class Sheet:
    """What is written into a sheet; row 1 and column 1 come first."""

    name: str
    rows: list[list[Any]] = field(default_factory=list)
    merges: list[tuple[int, int, int, int]] = field(default_factory=list)  # row, column, last row, last column
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    hidden: bool = False

    def add(self, row: list[Any]) -> int:
        """Append a row and return its number."""
        self.rows.append(row)
        return len(self.rows)


class Row(NamedTuple):
    """A row of data: where it was written and what has to come out, by output column."""

    number: int
    wants: dict[str, Any]


@dataclass
class Table:
    sheet: str
    columns: dict[str, int]  # output column -> source column, 1 is A
    rows: list[Row]
    sources: dict[tuple[int, str], Any] = field(default_factory=dict)  # (row number, output column) -> what was written


class Tell(NamedTuple):
    """A finding that has to be there even where the reading came out right: the file leaves a choice open."""

    codes: frozenset[str]
    field: str | None = None
    row: int | None = None


@dataclass
class Case:
    family: str
    seed: int
    name: str
    body: bytes
    fields: list[dict[str, Any]]
    tables: list[Table]
    left: dict[tuple[str, int], str] = field(default_factory=dict)  # (sheet, row) -> why it is no data
    tells: list[Tell] = field(default_factory=list)
    manifest: dict[str, Any] = field(default_factory=dict)
    plain: bool = False
    encoding: str | None = None  # a text file's, where it is not UTF-8
    fails: frozenset[str] = frozenset()  # the codes a job may fail with, where failing is right
    told: frozenset[str] = frozenset()  # findings of this case that are right to be warnings
    note: str = ""
    auxiliary: dict[str, bytes] = field(default_factory=dict)  # lookup tables as CSV, by name
    sheets: list[Sheet] = field(default_factory=list)  # what was written, where it can be compared with the books

    @property
    def title(self) -> str:
        return f"{self.family}:{self.seed}"


Maker = Callable[[Random], Case]


class Family(NamedTuple):
    name: str
    plain: bool
    make: Maker
    mostly_right: bool  # False: what the family asks for cannot be known, only told
    by_hand: bool  # too long for every run of the tests
    stranger: bool = False  # written without a look at the engine or the other families

    def case(self, seed: int) -> Case:
        made = self.make(Random(f"{self.name}:{seed}"))
        made.family, made.seed, made.plain = self.name, seed, self.plain
        return made


FAMILIES: dict[str, Family] = {}


def family(
    name: str, *, plain: bool = False, mostly_right: bool = True, by_hand: bool = False, stranger: bool = False
) -> Callable[[Maker], Maker]:
    """Register a generator. `plain`: unambiguous, has to come out right without a warning."""

    def register(make: Maker) -> Maker:
        assert name not in FAMILIES, name
        FAMILIES[name] = Family(name, plain, make, mostly_right, by_hand, stranger)
        return make

    return register


def same(want: Any, got: Any) -> bool:
    """Equal in value and kind; a whole number may be written as a float."""
    if isinstance(want, AnyOf):
        return any(same(w, got) for w in want.values)
    if want is None or want == "":
        return got is None or got == ""
    if isinstance(want, Error):
        return got == want.code
    if isinstance(want, bool) or isinstance(got, bool):
        return want is got
    if isinstance(want, int | float) and isinstance(got, int | float):
        return want == got
    if isinstance(want, datetime):
        return isinstance(got, datetime) and abs((want - got).total_seconds()) < 0.0006
    if isinstance(want, date):
        return isinstance(got, datetime) and got.date() == want and got.time() == time()
    if isinstance(want, time):
        return isinstance(got, time) and got == want
    return type(want) is type(got) and want == got
