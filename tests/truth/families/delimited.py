"""Text files: delimiters, quotes, line endings, rows that are too short or too long."""

import csv
from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Row, Sheet, Table, family
from tests.truth.tables import Column, Content, any_of, content, place, size, some_columns
from tests.truth.writers import as_csv


def text_case(made: Content, body: bytes | str, table: Table, name: str = "data.csv") -> Case:
    return Case("", 0, name, body.encode() if isinstance(body, str) else body, made.fields, [table])


def placed(made: Content) -> tuple[Sheet, Table]:
    sheet = Sheet("data")
    return sheet, place(sheet, made, texts=True)


def joined(sheet: Sheet, delimiter: str, quote: Any, ending: str = "\n") -> str:
    return "".join(delimiter.join(quote(c) for c in row) + ending for row in sheet.rows)


@family("dialects")
def dialects(rng: Random) -> Case:
    """Every delimiter, quote style and line ending that is met."""
    made = content(rng, some_columns(rng, 3, 7), size(rng) + 1)
    sheet, table = placed(made)
    delimiter = rng.choice(",;\t|:#^")
    how = {
        "ending": rng.choice(("\n", "\r\n", "\r")),
        "quoting": rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)),
        "bom": rng.choice((b"", b"", b"\xef\xbb\xbf")),
    }
    case = text_case(
        made,
        as_csv(sheet.rows, delimiter=delimiter, **how),
        table,
        rng.choice(("data.csv", "data.txt", "data.tsv") if delimiter == "\t" else ("data.csv",)),
    )
    case.note = repr(delimiter)
    return case


@family("plain_delimiters", plain=True)
def plain_delimiters(rng: Random) -> Case:
    made = content(rng, some_columns(rng, 4, 8), size(rng) + 2)
    sheet, table = placed(made)
    return text_case(
        made, as_csv(sheet.rows, delimiter=rng.choice(",;\t|"), bom=rng.choice((b"", b"\xef\xbb\xbf"))), table
    )


def talky(rng: Random, hard: tuple[str, ...], *, bare: bool = False) -> Content:
    """An id, a note, a city and a score; `bare`: no note that needs quotes."""
    easy = [s for s in words.SENTENCES if "," not in s] if bare else words.SENTENCES
    columns = [
        Column("id", "integer", lambda r, n: n + 1),
        Column("note", "text", lambda r, n: r.choice(hard) if r.random() < 0.6 else r.choice(easy)),
        Column("city", "text", lambda r, n: r.choice(words.CITIES)),
        Column("score", "integer", lambda r, n: r.randrange(100)),
    ]
    return content(rng, columns, rng.choice((3, 8, 25, 80, 300)))


@family("embedded_signs", plain=True)
def embedded_signs(rng: Random) -> Case:
    """Delimiters, quotes and line breaks inside quoted cells."""
    made = talky(
        rng,
        (
            "Lee, Ann",
            'the "big" one',
            "two\nlines",
            "a; b; c",
            "tab\there",
            'ends with "',
            "x,y,z",
            "C:\\tmp\\",
            '"',
            "a|b",
        ),
    )
    made.values[0][1] = "Lee, Ann"
    sheet, table = placed(made)
    delimiter = rng.choice(",;\t|")
    case = text_case(made, as_csv(sheet.rows, delimiter=delimiter, ending=rng.choice(("\n", "\r\n"))), table)
    case.note = repr(delimiter)
    return case


@family("blanks_after_commas")
def blanks_after_commas(rng: Random) -> Case:
    """`1, "Lee, Ann", x`"""
    made = talky(rng, ("Lee, Ann", "Ray, Bob", "x, y, z"))
    sheet, table = placed(made)
    always = rng.random() < 0.5

    def quote(cell: str) -> str:
        return f'"{cell}"' if "," in cell or (always and not cell.isdigit()) else cell

    return text_case(made, "".join(", ".join(quote(c) for c in row) + "\n" for row in sheet.rows), table)


@family("single_quotes")
def single_quotes(rng: Random) -> Case:
    """' as the quote, with apostrophes inside, doubled."""
    made = talky(rng, ("Lee, Ann", "it's here, now", "O'Neill", "the cat's"))
    made.values[0][1] = "Lee, Ann"
    sheet, table = placed(made)
    return text_case(
        made,
        as_csv(sheet.rows, quote="'", quoting=csv.QUOTE_ALL if rng.random() < 0.6 else csv.QUOTE_NONNUMERIC),
        table,
    )


@family("apostrophes_in_words", plain=True)
def apostrophes_in_words(rng: Random) -> Case:
    made = talky(rng, ("it's here", "O'Neill", "'tis", "the cats'", "rock 'n' roll", "5' 10\" tall"))
    sheet, table = placed(made)
    return text_case(made, as_csv(sheet.rows), table)


@family("backslashes")
def backslashes(rng: Random) -> Case:
    r"""Paths that end in a backslash inside quotes; or a real escape: \" for a quote."""
    made = talky(rng, ("C:\\tmp\\", "D:\\x\\", "E:\\y", "\\\\server\\share\\"))
    sheet, table = placed(made)
    return text_case(
        made, as_csv(sheet.rows, quoting=rng.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC))), table
    )


@family("escaped_quotes")
def escaped_quotes(rng: Random) -> Case:
    r"""\" inside a quoted cell, as some databases write it."""
    made = talky(rng, ('the "big" one', 'say "hi", Bob', "Lee, Ann"))
    made.values[0][1] = 'say "hi", Bob'
    sheet, table = placed(made)
    return text_case(
        made,
        joined(sheet, ",", lambda c: '"' + c.replace("\\", "\\\\").replace('"', '\\"') + '"' if not c.isdigit() else c),
        table,
    )


@family("unclosed_quotes", mostly_right=False)
def unclosed_quotes(rng: Random) -> Case:
    """A quote that is opened and never closed costs its own cell at most."""
    made = talky(rng, ("ok",), bare=True)
    at = rng.randrange(len(made.values))
    made.values[at][1] = rng.choice(('"oops', '"5 inch pipe'))
    sheet, table = placed(made)
    case = text_case(made, joined(sheet, ",", str), table)
    row = table.rows[at]
    row.wants["note"] = any_of(made.values[at][1], made.values[at][1][1:])
    case.told = frozenset({"unclosed_quote"})
    return case


@family("ragged_rows")
def ragged_rows(rng: Random) -> Case:
    """Rows that stop before their last cells, and rows with empty cells past the last column."""
    made = talky(rng, ("ok then",), bare=True)
    sheet, table = placed(made)
    lines = []
    for n, row in enumerate(sheet.rows):
        cells = [str(c) for c in row]
        if n and rng.random() < 0.2:
            cells = cells[:3]
            table.rows[n - 1].wants["score"] = None
        elif n and rng.random() < 0.2:
            cells += ["", ""]
        lines.append(",".join(cells) + "\n")
    return text_case(made, "".join(lines), table)


@family("cells_past_the_header")
def cells_past_the_header(rng: Random) -> Case:
    """A row with more cells than the header has: none is lost."""
    made = talky(rng, ("ok then",), bare=True)
    made.columns.append(Column("?past", "text", declared=False))
    for row in made.values:
        row.append(None)
    for n in rng.sample(range(len(made.values)), 2):
        made.values[n][-1] = rng.choice(("extra", "one more", "99"))
    sheet, table = placed(made)
    lines = [
        ",".join("" if c is None else str(c) for c in row[: 5 if n and row[4] else 4]) + "\n"
        for n, row in enumerate(sheet.rows)
    ]
    return text_case(made, "".join(lines), table)


@family("trailing_delimiters", plain=True)
def trailing_delimiters(rng: Random) -> Case:
    made = content(rng, some_columns(rng, 3, 6), size(rng) + 1)
    sheet, table = placed(made)
    delimiter = rng.choice(",;\t|")
    return text_case(made, as_csv([[*row, None] for row in sheet.rows], delimiter=delimiter), table)


@family("sep_line", plain=True)
def sep_line(rng: Random) -> Case:
    """`sep=;` in the first line, as Excel takes it."""
    made = content(rng, some_columns(rng, 3, 6), size(rng))
    delimiter = rng.choice(";,|\t")
    sheet = Sheet("data")
    table = place(sheet, made, texts=True)
    body = f"sep={delimiter}\r\n".encode() + as_csv(sheet.rows, delimiter=delimiter)
    table.rows = [Row(r.number + 1, r.wants) for r in table.rows]
    table.sources = {(n + 1, c): v for (n, c), v in table.sources.items()}
    return text_case(made, body, table)


@family("large_fields")
def large_fields(rng: Random) -> Case:
    """A cell of many lines or very many characters."""
    made = talky(rng, ("Lee, Ann",))
    at = rng.randrange(len(made.values))
    made.values[at][1] = rng.choice(
        ("line, one\n" * 600 + "end", "x" * 15_000 + ", " + "y" * 15_000, 'many "quotes", ' * 400 + "end")
    )
    sheet, table = placed(made)
    return text_case(made, as_csv(sheet.rows), table)


@family("tiny_files")
def tiny_files(rng: Random) -> Case:
    """One or two rows, two or three columns, any usual delimiter."""
    columns = some_columns(rng, 2, 3)
    made = content(rng, columns, rng.choice((1, 2)))
    sheet, table = placed(made)
    delimiter = rng.choice(",;\t|")
    body = as_csv(sheet.rows, delimiter=delimiter, ending=rng.choice(("\n", "\r\n")))
    if rng.random() < 0.4:
        body = body.rstrip(b"\r\n")
    return text_case(made, body, table)


@family("comma_decimals_semicolons", plain=True)
def comma_decimals(rng: Random) -> Case:
    """What a German, French or Polish Excel saves as CSV."""
    columns = some_columns(rng, 3, 7)
    for column in columns:
        if column.type in ("money", "decimal"):
            column.text = lambda v: f"{v:.2f}".replace(".", ",")
        if column.type == "date":
            column.text = lambda v: v.strftime("%d.%m.%Y")
    made = content(rng, columns, size(rng) + 1)
    sheet, table = placed(made)
    return text_case(
        made, as_csv(sheet.rows, delimiter=";", encoding="utf-8", bom=rng.choice((b"", b"\xef\xbb\xbf"))), table
    )


@family("settled_dialects", plain=True)
def settled_dialects(rng: Random) -> Case:
    """The manifest says delimiter, quote and encoding: they are taken, and nothing is guessed."""
    made = talky(rng, ("Lee; Ann", "a,b", "it's", "x|y", "1:2"))
    sheet, table = placed(made)
    delimiter, quote = rng.choice(",;|:#^~"), rng.choice("\"'")
    encoding = rng.choice(("utf-8", "cp1252", "cp1250", "shift_jis", "utf-16-le"))
    case = text_case(made, as_csv(sheet.rows, delimiter=delimiter, quote=quote, encoding=encoding), table)
    case.manifest = {"reading": {"delimiter": delimiter, "quote": quote, "encoding": encoding}}
    case.note = f"{delimiter!r} {quote!r} {encoding}"
    return case


@family("regular_signs", plain=True)
def regular_signs(rng: Random) -> Case:
    """Values that hold other delimiters just as regularly: times, tags, two words, lists."""
    pool = (
        Column("opens", "text", lambda r, n: f"{r.randrange(24):02}:{r.randrange(60):02}:{r.randrange(60):02}"),
        Column("tag", "text", lambda r, n: f"#{r.choice(words.COLOURS)}#{n}"),
        Column("product", "text", lambda r, n: f"{r.choice(words.COLOURS)} {r.choice(words.GOODS)}"),
        Column("person", "text", lambda r, n: f"{r.choice(words.FIRST)} {r.choice(words.LAST)}"),
        Column("path", "text", lambda r, n: f"{r.choice(words.GOODS)}|{r.choice(words.COLOURS)}"),
        Column("pair", "text", lambda r, n: f"{r.choice(words.GOODS)};{n}"),
        Column("link", "text", lambda r, n: f"https://example.com/{r.choice(words.GOODS)}?a={n}&b=2"),
        Column("ip", "text", lambda r, n: f"10.0.{r.randrange(256)}.{r.randrange(256)}"),
        Column("day", "text", lambda r, n: f"{r.randrange(1, 29):02}-{r.randrange(1, 13):02}-2025"),
        Column("power", "text", lambda r, n: f"{r.randrange(9)}^{r.randrange(9)}"),
    )
    columns = rng.sample(pool, rng.randrange(1, 5))
    made = content(rng, columns, rng.choice((3, 8, 25, 120)))
    sheet, table = placed(made)
    delimiter = rng.choice(",,;\t")
    case = text_case(made, as_csv(sheet.rows, delimiter=delimiter, ending=rng.choice(("\n", "\r\n"))), table)
    case.note = f"{delimiter!r} {[c.name for c in columns]}"
    return case
