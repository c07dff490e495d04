"""Texts that must come out as they went in, and words with a meaning."""

from datetime import date
from random import Random

from tests.truth import words
from tests.truth.cases import Case, Sheet, family
from tests.truth.families.numbers import member, texts_case
from tests.truth.families.rows import written
from tests.truth.tables import Column, content, hours, place, tell

ODD = (
    "👨‍👩‍👧 family", "می‌خواهم", "क्‍ष", "e\u0301te\u0301", "שלום עולם", "مرحبا بالعالم", "a\u00a0b", "🇳🇴🇮🇹", "日本語テキスト",
    "Ω≈ç√", "naïve café", "Zażółć gęślą", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "a & b < c > d", "'quoted'", '"double"', "back\\slash", "_x000D_ kept", "tab\tinside",
    "per cent %20", "1 < 2", "]]>", "&amp;", "ﬁ ligature", "Ⅷ", "ｆｕｌｌ", "ß ẞ", "ı İ", "😀😀", "\u202bרtl\u202c x",
)  # fmt: skip


@family("unicode", plain=True)
def unicode(rng: Random) -> Case:
    """Scripts, emoji, joiners and markup inside texts."""
    as_text = rng.random() < 0.5
    # An entity in a text file is reported: the file may have been exported from a web page.
    odd = [t for t in ODD if not t.startswith("\u202b") and not (as_text and t == "&amp;")]
    columns = [
        member(rng),
        Column("note", "text", lambda r, n: r.choice(odd)),
        Column("own words", "text", lambda r, n: r.choice(odd), declared=False),
    ]
    made = content(rng, columns, rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    if not as_text:  # Excel's own escape: a workbook has to escape it, and only some writers do
        for row in made.values:
            row[1:] = [v.replace("_x000D_", "x000D") for v in row[1:]]
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=as_text)


@family("long_texts", plain=True)
def long_texts(rng: Random) -> Case:
    """A few thousand characters, with line breaks."""

    def story(r: Random, n: int) -> str:
        return "\n".join(". ".join(r.choices(words.SENTENCES, k=8)) for _ in range(r.randrange(1, 30)))

    columns = [member(rng), Column("story", "text", story), Column("score", "integer", lambda r, n: r.randrange(100))]
    made = content(rng, columns, rng.choice((3, 8, 20)))
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made)], made.fields, texts=rng.random() < 0.5)


@family("texts_too_long", mostly_right=False)
def texts_too_long(rng: Random) -> Case:
    """More than a cell can hold: cut, and said."""
    columns = [
        member(rng),
        Column("story", "text", lambda r, n: "x" * r.choice((10, 32_767, 32_768, 40_000, 140_000))),
        Column("score", "integer", lambda r, n: n),
    ]
    made = content(rng, columns, 5)
    sheet = Sheet("Data")
    return written(rng, [sheet], [place(sheet, made, texts=True)], made.fields, texts=True)


@family("booleans")
def booleans(rng: Random) -> Case:
    """Yes and no in several languages."""
    language = rng.choice(list(words.BOOLEANS))
    yes, no = words.BOOLEANS[language]
    column = Column("active", "boolean", lambda r, n: r.random() < 0.5, lambda v: yes if v else no)
    case = texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))
    case.note += f" {language}"
    return case


@family("enums", plain=True)
def enums(rng: Random) -> Case:
    """Allowed values in any case, with blanks around them."""
    allowed = ["Gold", "Silver", "Tin", "Not yet"]
    ways = (str, str.upper, str.lower, lambda t: f" {t}", lambda t: f"{t} ")
    column = Column("plan", "enum", lambda r, n: r.choice(allowed), rng.choice(ways), spec={"allowed": allowed})
    return texts_case(rng, [member(rng), column], rng.choice((3, 10, 40)))


@family("not_of_the_type")
def not_of_the_type(rng: Random) -> Case:
    """A few cells that are no number or no date stay as they are, each with a finding; the rest is right."""
    columns = [
        member(rng),
        hours(lambda v: f"{v:.2f}" if isinstance(v, float) else v),
        Column("due", "date", lambda r, n: None, lambda v: v),
    ]
    made = content(rng, columns, rng.choice((10, 30, 80)))
    for row in made.values:
        row[2] = f"2025-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    columns[2].want = lambda v: date.fromisoformat(v) if v[:2] == "20" else v
    wrong: list[tuple[int, str]] = []
    for n in rng.sample(range(len(made.values)), 3):
        at = rng.choice((1, 2))
        made.values[n][at] = rng.choice(("soon", "n/a", "tbd", "?", "see note", "x"))
        wrong.append((n + 2, columns[at].name))
    case = texts_case(rng, [], 0, made)
    case.tells = [tell("type_error", field=f, row=r) for r, f in wrong]
    return case


@family("emails_and_phones", plain=True)
def emails_and_phones(rng: Random) -> Case:
    """Wrapped addresses, written-out phone numbers."""

    def wrapped(v: str) -> str:
        return rng.choice((v, f"Ada <{v}>", f"mailto:{v}", v.replace("@example.com", "@Example.COM")))

    columns = [
        member(rng),
        Column("email", "email", lambda r, n: f"{r.choice(words.FIRST)}.{n}@example.com", wrapped),
        Column(
            "phone", "phone", lambda r, n: f"555{r.randrange(10**6, 10**7)}",
            lambda v: rng.choice((v, f"({v[:3]}) {v[3:6]}-{v[6:]}", f"{v[:3]}-{v[3:6]}-{v[6:]}", f"{v[:3]}.{v[3:6]}.{v[6:]}")),
        ),
    ]  # fmt: skip
    return texts_case(rng, columns, rng.choice((3, 10, 40)))


@family("phones_as_numbers", plain=True)
def phones_as_numbers(rng: Random) -> Case:
    """Phone numbers and codes that a tool once took for numbers: 5551234567.0"""
    columns = [
        member(rng),
        Column(
            "phone",
            "phone",
            lambda r, n: f"{r.randrange(2, 9)}{r.randrange(10**8, 10**9)}",
            lambda v: f"{v}.0",
            cell=float,
        ),
    ]
    made = content(rng, columns, rng.choice((3, 10, 40)))
    sheet = Sheet("Data")
    as_text = rng.random() < 0.5
    return written(rng, [sheet], [place(sheet, made, texts=as_text)], made.fields, texts=as_text)
