"""Columns of known values, and how a person or a program writes them down."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import AnyOf, Case, Row, Sheet, Shown, Table, Tell
from tests.truth.writers import BOOKS, as_csv


@dataclass
class Column:
    """A field: what it is called, how its values come about and what is written for each."""

    name: str
    type: str = "text"
    value: Callable[[Random, int], Any] = lambda rng, n: f"x{n}"
    text: Callable[[Any], str] | None = None  # how a text file says it
    spec: dict[str, Any] = field(default_factory=dict)
    header: str | None = None
    want: Callable[[Any], Any] | None = None
    cell: Callable[[Any], Any] | None = None  # how a workbook holds it
    declared: bool = True

    @property
    def head(self) -> str:
        return self.name if self.header is None else self.header

    def as_field(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, **self.spec}


def hours(text: Callable[[Any], Any]) -> Column:
    return Column("hours", "decimal", lambda r, n: r.randrange(100, 4000) / 100, text)


def person(rng: Random, _n: int = 0) -> str:
    return f"{rng.choice(words.FIRST)} {rng.choice(words.LAST)}"


def some_date(rng: Random, _n: int = 0) -> date:
    return date(1995, 1, 1) + timedelta(days=rng.randrange(12_000))


def some_moment(rng: Random, n: int = 0) -> datetime:
    return datetime.combine(some_date(rng), time(rng.randrange(24), rng.randrange(60), rng.randrange(1, 60)))


def cents(rng: Random, _n: int = 0) -> float:
    return rng.choice((1, 1, 1, -1)) * rng.randrange(1, 10 ** rng.randrange(3, 8)) / 100


def address(rng: Random, n: int) -> str:
    return f"{rng.choice(words.FIRST).lower()}.{rng.choice(words.LAST).lower()}{n}@{rng.choice(('example.com', 'mail.example.org', 'acme.test'))}"


def plain_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


PLAIN: tuple[Callable[[], Column], ...] = (
    lambda: Column("name", "text", person),
    lambda: Column("city", "text", lambda rng, n: rng.choice(words.CITIES)),
    lambda: Column("country", "text", lambda rng, n: rng.choice(words.COUNTRIES)),
    lambda: Column("email", "email", address),
    lambda: Column("amount", "money", cents, lambda v: f"{v:.2f}"),
    lambda: Column("hours", "decimal", lambda rng, n: rng.randrange(1, 4000) / 100, lambda v: f"{v:.2f}"),
    lambda: Column("quantity", "integer", lambda rng, n: rng.randrange(0, 900)),
    lambda: Column("start_date", "date", some_date),
    lambda: Column("seen_at", "datetime", some_moment),
    lambda: Column("active", "boolean", lambda rng, n: rng.random() < 0.6),
    lambda: Column("plan", "enum", lambda rng, n: rng.choice(("Gold", "Silver", "Tin")), spec={"allowed": ["Gold", "Silver", "Tin"]}),
    lambda: Column("colour", "text", lambda rng, n: rng.choice(words.COLOURS)),
    lambda: Column("remark", "text", lambda rng, n: rng.choice(words.SENTENCES)),
    lambda: Column(
        "phone", "phone", lambda rng, n: f"+{rng.randrange(1, 90)}{rng.randrange(10**8, 10**9)}",
        lambda v: f"{v[:3]} {v[3:6]} {v[6:]}", cell=lambda v: f"{v[:3]} {v[3:6]} {v[6:]}",
    ),
    lambda: Column(
        "rate", "percent", lambda rng, n: rng.randrange(0, 101) / 100, lambda v: f"{v * 100:.0f}%",
        cell=lambda v: Shown(v, "0%", f"{v * 100:.0f}%"),
    ),
)  # fmt: skip


def key(rng: Random) -> Column:
    kind = rng.choice(("code", "number", "mixed"))
    start = rng.randrange(1, 9000)
    if kind == "number":
        return Column("member_id", "integer", lambda r, n: start + n)
    if kind == "code":
        return Column("member_id", "text", lambda r, n: f"M{start + n:06}")
    return Column("member_id", "text", lambda r, n: f"{'ABCDEFGH'[n % 8]}-{start + n}")


def some_columns(rng: Random, least: int = 2, most: int = 8, *, keyed: bool = True) -> list[Column]:
    picked = [make() for make in rng.sample(PLAIN, rng.randint(least - keyed, most - keyed))]
    return [key(rng), *picked] if keyed else picked


@dataclass
class Content:
    """Rows of known values, before they are written anywhere."""

    columns: list[Column]
    values: list[list[Any]]

    def texts(self) -> list[list[Any]]:
        return [[self._text(c, v) for c, v in zip(self.columns, row, strict=True)] for row in self.values]

    def cells(self) -> list[list[Any]]:
        return [[self._cell(c, v) for c, v in zip(self.columns, row, strict=True)] for row in self.values]

    @staticmethod
    def _text(column: Column, value: Any) -> Any:
        return None if value is None else (column.text or plain_text)(value)

    @staticmethod
    def _cell(column: Column, value: Any) -> Any:
        return value if value is None or column.cell is None else column.cell(value)

    def wants(self) -> list[dict[str, Any]]:
        return [
            {c.name: v if v is None or c.want is None else c.want(v) for c, v in zip(self.columns, row, strict=True)}
            for row in self.values
        ]

    @property
    def fields(self) -> list[dict[str, Any]]:
        return [c.as_field() for c in self.columns if c.declared]

    @property
    def head(self) -> list[Any]:
        return [c.head for c in self.columns]


def content(rng: Random, columns: list[Column], rows: int, *, blanks: float = 0.0) -> Content:
    """Fill the columns; the first is never blank."""
    made = []
    for n in range(rows):
        row = [c.value(rng, n) for c in columns]
        if blanks:
            row = [row[0]] + [None if rng.random() < blanks else v for v in row[1:]]
        made.append(row)
    return Content(columns, made)


def place(
    sheet: Sheet, made: Content, *, texts: bool = False, left: int = 1, header: bool = True, rows: Iterable[int] = ()
) -> Table:
    """Write the content below what the sheet holds and say where it is; `rows` before which a blank row stands."""
    pad: list[Any] = [None] * (left - 1)
    if header:
        sheet.add(pad + made.head)
    gaps = set(rows)
    table = Table(sheet.name, {c.name: left + n for n, c in enumerate(made.columns)}, [])
    for n, (cells, wants) in enumerate(zip(made.texts() if texts else made.cells(), made.wants(), strict=True)):
        if n in gaps:
            sheet.add([])
        number = sheet.add(pad + cells)
        table.rows.append(Row(number, wants))
        for column, cell in zip(made.columns, cells, strict=True):
            table.sources[number, column.name] = cell
    return table


def size(rng: Random) -> int:
    """Mostly small, sometimes a few hundred."""
    return rng.choice((2, 3, 4, 5, 7, 10, 15, 25, 40, 80, 150, 400))


def csv_case(made: Content, **how: Any) -> Case:
    """A text file with nothing but the table."""
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    return Case("", 0, "data.csv", as_csv(sheet.rows, **how), made.fields, [table], sheets=[sheet])


def book_case(
    rng: Random, sheets: list[Sheet], tables: list[Table], fields: list[dict[str, Any]], writers: str = ""
) -> Case:
    """A workbook by one of the writers."""
    name = rng.choice(writers.split() or list(BOOKS))
    ending, write = BOOKS[name]
    return Case("", 0, f"data.{ending}", write(sheets), fields, tables, note=name, sheets=sheets)


def either(rng: Random, made: Content, *, writers: str = "") -> Case:
    """The table alone, as a text file or as a workbook."""
    if rng.random() < 0.4:
        return csv_case(made, delimiter=rng.choice(",;\t"), ending=rng.choice(("\n", "\r\n")))
    sheet = Sheet(rng.choice(("Sheet1", "Data", "Members 2026")))
    return book_case(rng, [sheet], [place(sheet, made)], made.fields, writers)


def tell(*codes: str, field: str | None = None, row: int | None = None) -> Tell:
    return Tell(frozenset(codes), field, row)


def any_of(*values: Any) -> AnyOf:
    return AnyOf(values)
