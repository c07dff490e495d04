"""Numbers as people of many places write them, and texts that only look like numbers."""

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

from tests.truth import words
from tests.truth.cases import AnyOf, Case, Sheet, Shown, family
from tests.truth.families.rows import written
from tests.truth.tables import Column, Content, any_of, content, either, place, tell


class Style(NamedTuple):
    decimal: str
    group: str
    indian: bool = False


STYLES = {
    "point": Style(".", ","), "comma": Style(",", "."), "apostrophe": Style(".", "'"), "curly": Style(".", "’"),
    "blank": Style(",", " "), "thin": Style(",", "\u2009"), "narrow": Style(",", "\u202f"), "hard": Style(",", "\u00a0"),
    "indian": Style(".", ",", True), "bare_point": Style(".", ""), "bare_comma": Style(",", ""),
}  # fmt: skip


def grouped(whole: int, style: Style) -> str:
    digits = str(whole)
    if not style.group:
        return digits
    parts = [digits[-3:]]
    digits = digits[:-3]
    step = 2 if style.indian else 3
    while digits:
        parts.insert(0, digits[-step:])
        digits = digits[:-step]
    return style.group.join(parts)


def say(value: float, style: Style, places: int = 2) -> str:
    """A number in a style; the sign in front."""
    units = round(abs(value) * 10**places)
    whole, part = divmod(units, 10**places)
    text = grouped(whole, style) + (f"{style.decimal}{part:0{places}}" if places else "")
    return f"-{text}" if value < 0 else text


def texts_case(
    rng: Random, columns: list[Column], rows: int, made: Content | None = None, *, book: bool | None = None
) -> Case:
    """The columns written as texts, in a text file or in a workbook."""
    made = made or content(rng, columns, rows)
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    as_text = rng.random() < 0.6 if book is None else not book
    return written(rng, [sheet], [table], made.fields, texts=as_text, writers="openpyxl xlsxwriter raw_xml xlwt ods")


def member(rng: Random) -> Column:
    start = rng.randrange(1000)
    return Column("member", "text", lambda r, n: f"M-{start + n}")


def amount(rng: Random, least: int = 10**5, most: int = 10**9) -> Callable[[Random, int], float]:
    """Cents that show their decimal sign: large enough to be grouped, never a whole thousand."""
    return lambda r, n: (r.randrange(least, most) // 100 * 100 + r.randrange(1, 100)) / 100


@family("number_locales", plain=True)
def number_locales(rng: Random) -> Case:
    """Grouped amounts with two decimals: nothing is open in any style."""
    style = STYLES[rng.choice(list(STYLES))]
    kind = rng.choice(("money", "decimal"))
    columns = [member(rng), Column("amount", kind, amount(rng), lambda v: say(v, style))]
    if rng.random() < 0.4:
        columns.append(Column("tax", kind, amount(rng, 100, 10**6), lambda v: say(v, style)))
    return texts_case(rng, columns, rng.choice((2, 3, 8, 30, 120)))


@family("currency_signs", plain=True)
def currency_signs(rng: Random) -> Case:
    """Signs and codes before and after the amount, with and without a blank."""
    style = STYLES[rng.choice(("point", "comma", "apostrophe", "hard", "bare_point"))]
    sign = rng.choice(("$", "€", "£", "¥", "CHF", "EUR", "USD", "kr", "zł", "R$", "₹", "Kč", "US$"))
    gap = rng.choice(("", " ", "\u00a0")) if not sign.isalpha() else " "
    before = rng.random() < 0.5
    columns = [
        member(rng),
        Column(
            "price",
            "money",
            amount(rng),
            lambda v: f"{sign}{gap}{say(v, style)}" if before else f"{say(v, style)}{gap}{sign}",
        ),
    ]
    case = texts_case(rng, columns, rng.choice((2, 5, 20, 80)))
    case.note += f" {sign}"
    return case


@family("whole_amounts")
def whole_amounts(rng: Random) -> Case:
    """`100,-` is a hundred, not minus a hundred; `100-` is minus a hundred."""
    style = STYLES[rng.choice(("comma", "apostrophe"))]
    end = rng.choice((f"{style.decimal}-", f"{style.decimal}–", f"{style.decimal}--"))
    everything = rng.random() < 0.5

    def value(r: Random, n: int) -> float:
        whole = float(r.randrange(1, 10 ** r.randrange(2, 6)))
        return whole if everything or r.random() < 0.6 else round(whole + r.randrange(1, 99) / 100, 2)

    sign = rng.choice(("", "", "€ ", "CHF ", "Fr. "))
    text = lambda v: sign + (f"{grouped(int(v), style)}{end}" if v == int(v) else say(v, style))  # noqa: E731
    return texts_case(rng, [member(rng), Column("price", "money", value, text)], rng.choice((2, 5, 20, 60)))


@family("negatives", plain=True)
def negatives(rng: Random) -> Case:
    """Minus before or after, brackets, the true minus sign."""
    style = STYLES[rng.choice(("point", "comma", "apostrophe"))]
    ways: tuple[Callable[[str], str], ...] = (
        lambda t: f"-{t}", lambda t: f"{t}-", lambda t: f"({t})", lambda t: f"\u2212{t}", lambda t: f"- {t}",
    )  # fmt: skip
    way = rng.choice(ways)
    one = amount(rng)
    column = Column(
        "balance",
        "money",
        lambda r, n: one(r, n) * r.choice((1, -1)),
        lambda v: way(say(-v, style)) if v < 0 else say(v, style),
    )
    return texts_case(rng, [member(rng), column], rng.choice((3, 8, 40)))


@family("percent_texts", plain=True)
def percent_texts(rng: Random) -> Case:
    style = STYLES[rng.choice(("point", "comma"))]
    gap = rng.choice(("", " ", "\u00a0"))
    column = Column(
        "share", "percent", lambda r, n: r.randrange(1, 10_000) / 10_000,
        lambda v: f"{say(v * 100, style)}{gap}%", want=lambda v: AnyOf((v, round(v * 100, 2) / 100)),
    )  # fmt: skip
    return texts_case(rng, [member(rng), column], rng.choice((3, 8, 40)))


@family("grouped_integers", plain=True)
def grouped_integers(rng: Random) -> Case:
    """`1.234` in an integer column can only be a thousand and more: a fraction would be no integer."""
    style = STYLES[rng.choice(("point", "comma", "apostrophe", "hard", "indian"))]
    column = Column("people", "integer", lambda r, n: r.randrange(1, 4_000_000), lambda v: grouped(v, style))
    made = content(rng, [member(rng), column], rng.choice((3, 8, 40, 150)))
    made.values[0][1], made.values[1][1] = 1_234_567, 1_234
    return texts_case(rng, [], 0, made)


@family("decimal_ambiguous", mostly_right=False)
def decimal_ambiguous(rng: Random) -> Case:
    """Every value reads both ways and nothing else in the file helps: one reading, and a finding."""
    style = STYLES[rng.choice(("point", "comma"))]
    if rng.random() < 0.5:
        column = Column(
            "weight",
            "money",
            lambda r, n: float(r.randrange(1, 900) * 1000 + r.randrange(1000)),
            lambda v: grouped(int(v), style),
        )
    else:
        column = Column("weight", "decimal", lambda r, n: r.randrange(1000, 999_000) / 1000, lambda v: say(v, style, 3))
    made = content(rng, [member(rng), column], rng.choice((2, 3, 8, 40)))
    case = texts_case(rng, [], 0, made, book=True)
    case.tells = [tell("decimal_assumed", field="weight")]
    return case


@family("decimal_thousands_integer", mostly_right=False)
def decimal_thousands_integer(rng: Random) -> Case:
    """`2.000`, `12.000` in an integer column: two and twelve, or thousands."""
    style = STYLES[rng.choice(("point", "comma"))]
    column = Column("pieces", "integer", lambda r, n: r.randrange(1, 900) * 1000, lambda v: grouped(v, style))
    made = content(rng, [member(rng), column], rng.choice((2, 3, 8, 40)))
    case = texts_case(rng, [], 0, made, book=True)
    case.tells = [tell("decimal_assumed", field="pieces")]
    return case


@family("decimal_proved_late")
def decimal_proved_late(rng: Random) -> Case:
    """Hundreds of values that read both ways, and a proof only near the end, perhaps only once."""
    style = STYLES[rng.choice(("point", "comma"))]
    rows = rng.choice((60, 250, 500, 1200))
    proofs = set(rng.sample(range(rows - rows // 8, rows), rng.choice((1, 3))))
    column = Column(
        "amount", rng.choice(("money", "decimal")),
        lambda r, n: r.randrange(1000, 900_000) + (r.randrange(1, 99) / 100 if n in proofs else 0.0),
        lambda v: grouped(int(v), style) if v == int(v) else say(v, style),
    )  # fmt: skip
    return texts_case(rng, [member(rng), column], rows)


@family("decimal_shown_by_a_neighbour")
def decimal_shown_by_a_neighbour(rng: Random) -> Case:
    """One column proves the style of the sheet, the other alone would read both ways."""
    style = STYLES[rng.choice(("point", "comma"))]
    columns = [
        member(rng),
        Column("price", "money", amount(rng), lambda v: say(v, style)),
        Column(
            "volume",
            rng.choice(("money", "decimal", "integer")),
            lambda r, n: r.randrange(1, 900) * 1000 + r.randrange(1000),
            lambda v: grouped(v, style),
        ),
    ]
    return texts_case(rng, columns, rng.choice((3, 8, 40, 150)))


@family("decimal_mixed", mostly_right=False)
def decimal_mixed(rng: Random) -> Case:
    """Two styles in one column; each value proves its own."""
    one = amount(rng)
    flip = {n for n in range(60) if rng.random() < 0.3} | {1}
    made = content(rng, [member(rng), Column("amount", "money", one)], rng.choice((4, 10, 40)))
    sheet = Sheet("data")
    for row in made.values:
        row[1] = max(row[1], 1000.5)
    counter = iter(range(10**6))
    made.columns[1].text = lambda v: say(v, STYLES["comma" if next(counter) in flip else "point"])
    table = place(sheet, made, texts=True)
    return written(rng, [sheet], [table], made.fields, texts=rng.random() < 0.6)


@family("numbers_at_limits")
def numbers_at_limits(rng: Random) -> Case:
    """Very large, very small, and as many digits as a spreadsheet can hold."""
    pool = [
        1e308,
        1e-300,
        123456789012345.0,
        0.1,
        1 / 3,
        1e15,
        2.5e-8,
        1.797e308,
        99999999999999.9,
        1e22,
        12345678.875,
    ]
    column = Column(
        "value",
        "decimal",
        lambda r, n: r.choice(pool) * r.choice((1, -1)),
        want=lambda v: AnyOf((v, repr(v), *((str(int(v)),) if v == int(v) else ()))),
    )
    case = either(
        rng,
        content(rng, [member(rng), column], rng.choice((4, 12, 30))),
        writers="openpyxl xlsxwriter raw_xml xlwt ods",
    )
    case.told = frozenset({"kept_as_text"})
    return case


@family("many_digits")
def many_digits(rng: Random) -> Case:
    """Numbers of sixteen digits and more keep every digit, as texts."""
    kind = rng.choice(("integer", "decimal", "text"))
    if kind == "decimal" and rng.random() < 0.5:
        make = lambda r, n: f"{r.randrange(10**9, 10**10)}.{r.randrange(10**8, 10**9)}"  # noqa: E731
    else:
        make = lambda r, n: str(r.randrange(10**15, 10 ** r.randrange(17, 24)))  # noqa: E731

    def exact(text: str) -> Any:
        """A number whose shortest spelling has the same digits lost none of them."""
        value = float(text)
        return AnyOf((text, value)) if kind != "text" and Decimal(repr(value)) == Decimal(text) else text

    column = Column("number", kind, make, want=exact)
    case = texts_case(rng, [member(rng), column], rng.choice((2, 4, 12, 30)))
    case.told = frozenset({"kept_as_text"})
    return case


LOOKALIKES = (
    "00501", "007", "0123456789", "4111111111111111", "12345678901234567890", "1E5", "12E3", "3-4", "1/2", "10-12",
    "TRUE", "false", "NULL", "None", "nan", "inf", "-", "=1+1", "@x", "+49 30 1234567", "(555) 123-4567", "1,5", "1.50",
    "0x1F", "1e-7", "2026-13-45", "10:30", "1.2.3", "$5", "50%", "-5", "--", "~", "1_000", "٣", "½", "²", "12 34",
)  # fmt: skip


@family("texts_like_numbers", plain=True)
def texts_like_numbers(rng: Random) -> Case:
    """A text field keeps what was typed, whatever it looks like."""
    columns = [
        Column("name", "text", lambda r, n: f"{r.choice(words.FIRST)} {n}"),
        Column("code", "text", lambda r, n: r.choice(LOOKALIKES)),
        Column("other code", "text", lambda r, n: r.choice(LOOKALIKES), declared=False),
    ]
    return texts_case(rng, columns, rng.choice((4, 10, 40)))


@family("padded_codes", plain=True)
def padded_codes(rng: Random) -> Case:
    """Numbers that a format shows with zeros in front: a text field takes what the cell shows."""
    width = rng.choice((5, 6, 8))
    columns = [
        Column("name", "text", lambda r, n: f"{r.choice(words.FIRST)} {n}"),
        Column(
            "zip", "text", lambda r, n: r.randrange(1, 10 ** (width - 1)), cell=lambda v: Shown(v, "0" * width, f"{v:0{width}}"),
            want=lambda v: f"{v:0{width}}",
        ),
    ]  # fmt: skip
    made = content(rng, columns, rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    return written(
        rng, [sheet], [place(sheet, made)], made.fields, texts=False, writers="openpyxl xlsxwriter raw_xml xlwt"
    )


@family("amounts_that_say_more", mostly_right=False)
def amounts_that_say_more(rng: Random) -> Case:
    """CR and DR mean plus to a bank and minus to a ledger; 5+, <5 and 3k are no plain numbers: never read in silence."""
    end = rng.choice((("{} CR", "{} DR"), ("{}Cr", "{}Dr"), ("{}+",), ("<{}",), ("{}k",), ("{} approx",)))
    column = Column("amount", "money", lambda r, n: r.randrange(1, 900), lambda v: end[v % len(end)].format(v))
    made = content(rng, [member(rng), column], rng.choice((2, 6)))
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("type_error", field="amount")]
    return case


@family("shortened_numbers", mostly_right=False)
def shortened_numbers(rng: Random) -> Case:
    """A spreadsheet program has saved what it showed: 1.23457E+15 is what is left of an identifier."""
    column = Column("number", "integer", lambda r, n: r.randrange(10**12, 10**17), lambda v: f"{v:.5E}")
    column.want = lambda v: any_of(int(Decimal(f"{v:.5E}")), str(int(Decimal(f"{v:.5E}"))))
    made = content(rng, [member(rng), column], rng.choice((3, 9)))
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("digits_lost", field="number")]
    return case
