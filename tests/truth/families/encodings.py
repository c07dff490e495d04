"""Text files in the encodings of the world, at sizes from two rows to thousands."""

from random import Random

from tests.truth import words
from tests.truth.cases import Case, Sheet, family
from tests.truth.tables import Column, content, place, tell
from tests.truth.writers import as_csv

BOMS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-8": b"\xef\xbb\xbf"}


def encoded(rng: Random, encoding: str, script: str, rows: int, *, bom: bool = False) -> Case:
    pool = [w for w in words.SCRIPTS[script] if _fits(w, encoding)]
    columns = [
        Column("id", "integer", lambda r, n: n + 1),
        Column("name", "text", lambda r, n: " ".join(r.choices(pool, k=r.choice((1, 2))))),
        Column("place", "text", lambda r, n: r.choice(pool)),
        Column("score", "integer", lambda r, n: r.randrange(1000)),
    ][: rng.choice((3, 4))]
    if rng.random() < 0.3:  # a header in the same letters
        columns[-1 if columns[-1].name == "place" else 2] = Column(
            header := f"{pool[0]} {pool[1]}", "text", lambda r, n: r.choice(pool), header=header, declared=False
        )
    made = content(rng, columns, rows)
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    body = as_csv(sheet.rows, delimiter=rng.choice(",;\t"), encoding=encoding, bom=BOMS[encoding] if bom else b"")
    return Case("", 0, "data.csv", body, made.fields, [table], encoding=encoding, note=f"{encoding} {rows} rows")


def _fits(word: str, encoding: str) -> bool:
    try:
        word.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


@family("encodings_large")
def encodings_large(rng: Random) -> Case:
    encoding = rng.choice(list(words.ENCODINGS))
    return encoded(rng, encoding, words.ENCODINGS[encoding], rng.choice((40, 80, 200, 1000)))


@family("encodings_small", mostly_right=False)
def encodings_small(rng: Random) -> Case:
    """A few rows: a guess, and it has to say so."""
    encoding = rng.choice(list(words.ENCODINGS))
    return encoded(rng, encoding, words.ENCODINGS[encoding], rng.choice((2, 3, 5, 10)))


@family("encodings_hungarian")
def encodings_hungarian(rng: Random) -> Case:
    return encoded(rng, rng.choice(("cp1250", "iso8859-2")), "hungarian", rng.choice((30, 100, 400)))


@family("encodings_baltic", plain=True)
def encodings_baltic(rng: Random) -> Case:
    """Names of all three Baltic states in one file."""
    return encoded(rng, rng.choice(("cp1257", "iso8859-13")), "baltic", rng.choice((40, 100, 400)))


@family("encoded_twice", mostly_right=False)
def encoded_twice(rng: Random) -> Case:
    """A program took UTF-8 for Windows-1252 and saved what it saw: M\u00c3\u00bcller. Kept, and told."""
    pool = [
        w.encode().decode("cp1252")
        for w in ("M\u00fcller", "Gr\u00f6\u00dfe", "caf\u00e9", "na\u00efve", "\u2018so\u2019", "\u00d8rsted")
    ]
    columns = [
        Column("id", "integer", lambda r, n: n + 1),
        Column("name", "text", lambda r, n: r.choice(pool) if n % 3 else "Lee"),
    ]
    made = content(rng, columns, rng.choice((3, 40)))
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    body = as_csv(sheet.rows, bom=BOMS["utf-8"] if rng.random() < 0.5 else b"")
    return Case("", 0, "data.csv", body, made.fields, [table], tells=[tell("encoded_twice", row=3)])


@family("unicode_encodings", plain=True)
def unicode_encodings(rng: Random) -> Case:
    """UTF-8 and UTF-16, with a byte-order mark where it is usual."""
    encoding = rng.choice(("utf-8", "utf-8", "utf-16-le", "utf-16-be"))
    case = encoded(
        rng,
        encoding,
        rng.choice(list(words.SCRIPTS)),
        rng.choice((2, 5, 30, 300)),
        bom=encoding != "utf-8" or rng.random() < 0.5,
    )
    case.encoding = None
    return case


@family("encodings_cut_samples")
def encodings_cut_samples(rng: Random) -> Case:
    """Larger than any sample: a sample's end falls inside a character, or the first accent comes late."""
    if rng.random() < 0.5:
        encoding = rng.choice(("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"))
        return encoded(rng, encoding, words.ENCODINGS[encoding], 3000)
    columns = [
        Column("id", "integer", lambda r, n: n + 1),
        Column("name", "text", lambda r, n: f"{r.choice(words.LAST)} {r.choice(words.CITIES)} {n}"),
    ]
    made = content(rng, columns, 6000)
    for row in made.values[-rng.randrange(1, 40) :]:
        row[1] = rng.choice(("Müller", "Zoë Größe", "Straße", "Ødegård café", "über naïve"))
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    return Case(
        "",
        0,
        "data.csv",
        as_csv(sheet.rows, encoding="cp1252"),
        made.fields,
        [table],
        encoding="cp1252",
        note="late accents",
    )
