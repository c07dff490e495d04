"""Text files as programs and people leave them: ERP exports, database dumps, pasted and broken lines."""

import csv
import io
from random import Random

from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import COLS, REASONS, Draft, any_of, draft, say, size, stranger


def body_of(
    d: Draft, rows: list[list[str]], delimiter: str, ending: str = "\n", quoting: int = csv.QUOTE_MINIMAL
) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=ending, quoting=quoting).writerows(rows)
    return out.getvalue().encode()


@stranger("a_cell_too_few", right=False)
def a_cell_too_few(rng: Random) -> Stranger:
    """One line lacks a cell in the middle: what follows moved left."""
    d = draft(rng, "member_no name city amount")
    d.header()
    n = size(rng, least=5)
    bad = rng.randrange(1, n)
    for i in range(n):
        row = d.values(i)
        if i == bad:
            d.record([row[0], None, row[2], row[3]], cells=[row[0], row[2], row[3]])
        else:
            d.record(row)
    return d.csv(pad=False)


@stranger("blank_last_cells_cut", plain=True)
def blank_last_cells_cut(rng: Random) -> Stranger:
    """Short lines that are simply blank at the end."""
    d = draft(rng, "member_no name amount remark")
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        d.record(row if i % 2 else row[:3])
    return d.csv(pad=False)


@stranger("broken_line", right=False)
def broken_line(rng: Random) -> Stranger:
    """A line break inside an unquoted value."""
    d = draft(rng, "member_no name street city amount")
    d.header()
    n = size(rng, least=6)
    bad = rng.randrange(1, n)
    for i in range(n):
        row = d.values(i)
        if i == bad:
            whole = f"{row[2]} back yard"
            first = d.page.add([row[0], row[1], row[2]])
            second = d.page.add(["back yard", row[3], row[4]])
            d.want(
                first,
                {
                    **{c.field: v for c, v in zip(d.cols, row, strict=True)},
                    "street": any_of(whole, f"{row[2]}\nback yard"),
                },
            )
            d.lines["Sheet1", first] = (second,)
        else:
            d.record(row)
    return d.csv(pad=False)


@stranger("whole_lines_quoted")
def whole_lines_quoted(rng: Random) -> Stranger:
    d = draft(rng, "member_no name city score")
    d.header()
    d.records(size(rng))
    delimiter = rng.choice((",", ";"))
    lines = [delimiter.join(r) for r in d.texts()]
    quote = [f'"{line}"' for line in lines]
    if rng.random() < 0.4:
        quote[0] = lines[0]
    return d.text_file("\r\n".join(quote).encode() + b"\r\n")


@stranger("two_delimiters")
def two_delimiters(rng: Random) -> Stranger:
    """Two exports pasted into one file."""
    d = draft(rng, "member_no name city score")
    d.header()
    n = size(rng, least=6)
    d.records(n)
    first, second = rng.choice(((",", ";"), (";", "\t"), (";", ","), ("\t", ",")))
    rows = d.texts()
    cut = rng.randint(len(rows) // 2, len(rows) - 2)
    return d.text_file(body_of(d, rows[:cut], first) + body_of(d, rows[cut:], second))


@stranger("comment_lines")
def comment_lines(rng: Random) -> Stranger:
    d = draft(rng, "sample_id date analyte result", "en de fr")
    sign = rng.choice(("#", "//", ";;", "%", "--", "!"))
    for text in rng.sample(
        (" exported by LabSoft 4.2", " station 12", " calibrated 2024-11-02", " do not edit"), rng.randint(1, 3)
    ):
        d.line(f"{sign}{text}", why="comment")
    d.header()
    n = size(rng, least=4)
    for i in range(n):
        if i and rng.random() < 0.1:
            d.line(f"{sign} pause, probe cleaned", why="comment")
        d.record(d.values(i))
    return d.csv(pad=False, delimiter=rng.choice((",", "\t")) if d.loc.decimal == "." else "\t")


@stranger("hash_is_a_value", plain=True)
def hash_is_a_value(rng: Random) -> Stranger:
    """Channel names and colours that begin with #."""
    d = draft(rng, "remark name quantity")
    d.header()
    for i in range(size(rng, least=4)):
        row = d.values(i)
        d.record([f"#{rng.choice(('news', 'it-help', 'sales', 'ff0033'))}{i}", *row[1:]])
    return d.csv()


@stranger("two_line_records", right=False)
def two_line_records(rng: Random) -> Stranger:
    """Name and amount on the first line, the address on the second."""
    d = draft(rng, "member_no name amount")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        at = d.record(row)
        d.line(None, f"{COLS['street'].make(rng, i)}, {COLS['city'].make(rng, i)}", None, why="second line of a record")
        d.lines["Sheet1", at] = (at + 1,)
    return d.any("book csv")


@stranger("orders_with_lines", right=False)
def orders_with_lines(rng: Random) -> Stranger:
    """Header and detail lines of an ERP in one file, marked H and D."""
    d = draft(rng, "order_no name city", "en")
    d.line("Type", *d.heads)
    for i in range(size(rng, most=60)):
        row = d.values(i)
        d.record(row, cells=["H", *row])
        for _ in range(rng.randint(1, 3)):
            d.line(
                "D",
                rng.choice(("Desk", "Lamp", "Chair")),
                str(rng.randrange(1, 9)),
                f"{rng.randrange(100, 9999) / 100:.2f}",
                why="detail line",
            )
    for t in d.tables:
        t.columns = {c.field: 2 + n for n, c in enumerate(d.cols)}
    return d.csv()


@stranger("page_headings_between")
def page_headings_between(rng: Random) -> Stranger:
    """A print to file: company, page number and header again every few records."""
    d = draft(rng, "account date description amount", "en de")
    n = rng.choice((12, 24, 40))
    word = {"en": "Page", "de": "Seite"}[d.loc.lang]
    for start in range(0, n, 8):
        if start:
            d.line()
        d.line("ACME Trading Ltd", None, None, f"{word} {start // 8 + 1}", why="page heading")
        d.line("Journal 2024", why="page heading")
        d.header()
        d.records(min(8, n - start), start=start)
    return d.any("book csv")


@stranger("report_with_rules")
def report_with_rules(rng: Random) -> Stranger:
    """psql and SAP print tables with bars, a ruled line and a count of rows."""
    d = draft(rng, "order_no date name amount", "en")
    d.header()
    d.records(size(rng, most=120))
    rows = d.texts()
    widths = [max(len(r[n]) for r in rows) for n in range(4)]
    kind = rng.choice(("psql", "mysql", "sap", "markdown"))
    rule = {"psql": "-+-", "mysql": "-+-", "sap": "-|-", "markdown": " | "}[kind].join("-" * w for w in widths)
    lines = [" | ".join(v.ljust(w) for v, w in zip(r, widths, strict=True)) for r in rows]
    if kind == "psql":
        lines = [f" {lines[0]}", f"-{rule}-", *[f" {x}" for x in lines[1:]], f"({len(rows) - 1} rows)"]
        shift = 1
    elif kind == "markdown":
        lines = [f"| {lines[0]} |", f"| {rule} |", *[f"| {x} |" for x in lines[1:]]]
        shift = 1
    else:
        edge = "+" if kind == "mysql" else "-"
        lines = [
            f"{edge}-{rule}-{edge}",
            f"| {lines[0]} |",
            f"{edge}-{rule}-{edge}",
            *[f"| {x} |" for x in lines[1:]],
            f"{edge}-{rule}-{edge}",
        ]
        shift = 2
    for t in d.tables:
        t.rows = [r._replace(number=r.number + shift) for r in t.rows]
    d.note = kind
    return d.text_file("\n".join(lines).encode() + b"\n", rng.choice(("data.csv", "data.txt")))


@stranger("rows_affected_footer")
def rows_affected_footer(rng: Random) -> Stranger:
    d = draft(rng, "order_no name city amount", "en uk de")
    d.header()
    n = size(rng)
    d.records(n)
    if rng.random() < 0.5:
        d.line()
    d.line(
        rng.choice(
            (
                f"({n} rows affected)",
                "-- End of report --",
                "EOF",
                f"Records: {n}",
                "*** END ***",
                f"{n} records exported on 2024-11-05 10:22",
            )
        ),
        why="end mark",
    )
    return d.csv(pad=rng.random() < 0.5)


@stranger("fixed_width", right=False)
def fixed_width(rng: Random) -> Stranger:
    """Columns by position, with blanks inside values."""
    d = draft(rng, "order_no name city amount", "en")
    d.header()
    d.records(size(rng, most=120))
    rows = d.texts()
    widths = [max(len(r[n]) for r in rows) + 2 for n in range(4)]
    return d.text_file(
        "\r\n".join("".join(v.ljust(w) for v, w in zip(r, widths, strict=True)) for r in rows).encode() + b"\r\n",
        "data.txt",
    )


@stranger("delimiter_at_line_end", plain=True)
def delimiter_at_line_end(rng: Random) -> Stranger:
    d = draft(rng, "order_no date name amount")
    d.line(*d.heads, "")
    for i in range(size(rng)):
        row = d.values(i)
        d.record(row, cells=[*row, ""])
    return d.csv()


@stranger("files_joined")
def files_joined(rng: Random) -> Stranger:
    """`cat a.csv b.csv`: the header again in the middle, with a byte-order mark."""
    d = draft(rng, "order_no date name amount")
    first, second = size(rng, most=120), size(rng, most=60)
    d.header()
    d.records(first)
    d.header()
    d.records(second, start=first)
    rows = d.texts()
    delimiter = d.loc.delimiter
    body = (
        b"\xef\xbb\xbf"
        + body_of(d, rows[: first + 1], delimiter)
        + b"\xef\xbb\xbf"
        + body_of(d, rows[first + 1 :], delimiter)
    )
    return d.text_file(body)


@stranger("files_joined_other_order")
def files_joined_other_order(rng: Random) -> Stranger:
    """The second file has the same columns in another order."""
    d = draft(rng, "order_no date name amount")
    d.header()
    n = size(rng, most=120)
    d.records(n)
    order = [0, 3, 2, 1]
    d.line(*[d.heads[i] for i in order])
    for i in range(size(rng, most=60)):
        row = d.values(n + i)
        d.record(row, cells=[row[j] for j in order])
    return d.csv()


@stranger("column_added_midway", right=False)
def column_added_midway(rng: Random) -> Stranger:
    """From some day on the export has one more column in the middle; the header is the old one."""
    d = draft(rng, "order_no name city amount")
    d.header()
    n = size(rng, least=6)
    d.records(n)
    for i in range(rng.randint(2, 6)):
        row = d.values(n + i)
        d.record(row, cells=[row[0], row[1], "EU", row[2], row[3]])
    return d.csv(pad=False)


@stranger("unquoted_delimiter", right=False)
def unquoted_delimiter(rng: Random) -> Stranger:
    """A company called `Berger, Söhne` in a file that quotes nothing."""
    d = draft(rng, "order_no name city amount", "en")
    d.header()
    n = size(rng, least=5)
    bad = rng.randrange(n)
    for i in range(n):
        row = d.values(i)
        if i == bad:
            d.record(
                [row[0], "Berger, Sons", *row[2:]],
                {"name": any_of("Berger, Sons", "Berger,Sons")},
                cells=[row[0], "Berger", " Sons", *row[2:]],
            )
        else:
            d.record(row)
    return d.csv(pad=False, delimiter=",")


@stranger("null_words", right=False)
def null_words(rng: Random) -> Stranger:
    r"""A database dump with \N or NULL for nothing, in typed columns."""
    d = draft(rng, "order_no date name amount", "en")
    d.header()
    word = rng.choice(("\\N", "NULL", "(null)", "<NA>"))
    for i in range(size(rng, least=5)):
        row = d.values(i)
        if i % 3 == 1:
            at = rng.choice((1, 3))
            d.record(
                [None if n == at else v for n, v in enumerate(row)],
                cells=[word if n == at else v for n, v in enumerate(row)],
            )
        else:
            d.record(row)
    return d.csv()


@stranger("key_value_blocks", right=False)
def key_value_blocks(rng: Random) -> Stranger:
    """One field per line, a blank line between records."""
    d = draft(rng, "name street city", "en")
    for i in range(size(rng, most=20)):
        row = d.values(i)
        first = len(d.page.rows) + 1
        for head, value in zip(d.heads, row, strict=True):
            d.line(head, value)
        d.want(first, {c.field: v for c, v in zip(d.cols, row, strict=True)})
        d.lines["Sheet1", first] = (first + 1, first + 2)
        d.line()
    return d.any("book csv")


@stranger("transposed_list", right=False)
def transposed_list(rng: Random) -> Stranger:
    """Fields down, records across."""
    d = draft(rng, "name street city email", "en")
    rows = [d.values(i) for i in range(rng.randint(3, 8))]
    for n, c in enumerate(d.cols):
        d.line(c.heads["en"], *[r[n] for r in rows])
    for row in rows:
        d.want(1, {c.field: v for c, v in zip(d.cols, row, strict=True)})
    d.lines["Sheet1", 1] = (2, 3, 4)
    return d.any("book csv")


@stranger("trailing_minus")
def trailing_minus(rng: Random) -> Stranger:
    d = draft(rng, "account date description amount")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        if i % 3 == 1:
            d.record([*row[:3], -row[3]], cells=[*row[:3], say(row[3], d.loc) + "-"])
        else:
            d.record(row)
    return d.csv()


@stranger("debit_credit_letters", right=False)
def debit_credit_letters(rng: Random) -> Stranger:
    """`120.00 CR` and `80.00 DR`: the sign is a word."""
    d = draft(rng, "date description amount", "en")
    letters = rng.choice((("CR", "DR"), ("C", "D"), ("H", "S")))
    d.header()
    for i in range(size(rng, least=4)):
        row = d.values(i)
        text = f"{row[2]:.2f} {letters[i % 2]}"
        d.record(row, {"amount": any_of(row[2], -row[2], text)}, cells=[*row[:2], text])
    d.tell("amount")
    return d.any("book csv")


@stranger("debit_credit_columns", right=False)
def debit_credit_columns(rng: Random) -> Stranger:
    d = draft(rng, "date description amount", "en")
    d.line(*d.heads[:2], *rng.choice((("Debit", "Credit"), ("Withdrawals", "Deposits"), ("Money out", "Money in"))))
    for i in range(size(rng, least=4)):
        row = d.values(i)
        cells = [*row[:2], row[2], None] if i % 2 else [*row[:2], None, row[2]]
        d.record(row, {"amount": any_of(row[2], -row[2], None)}, cells=cells)
    d.tell("amount")
    return d.any("book csv")


@stranger("swiss_and_indian_grouping")
def swiss_and_indian_grouping(rng: Random) -> Stranger:
    d = draft(rng, "invoice_no name amount", "en")
    d.header()
    kind = rng.choice(("swiss", "indian", "thin"))
    for i in range(size(rng)):
        row = d.values(i)
        row[2] = rng.randrange(10**7, 10**10) / 100
        text = f"{row[2]:,.2f}"
        if kind == "swiss":
            text = text.replace(",", rng.choice("'’"))
        elif kind == "thin":
            text = text.replace(",", "\u202f")
        else:
            whole, cents = f"{row[2]:.2f}".split(".")
            head, tail = whole[:-3], whole[-3:]
            groups = []
            while head:
                groups.insert(0, head[-2:])
                head = head[:-2]
            text = f"{','.join([*groups, tail])}.{cents}"
        d.record(row, cells=[*row[:2], text])
    d.note = kind
    return d.any("book csv")


@stranger("other_digits")
def other_digits(rng: Random) -> Stranger:
    """Full-width, Arabic or Devanagari digits."""
    d = draft(rng, "invoice_no name quantity", "en")
    zero = rng.choice((0xFF10, 0x0660, 0x06F0, 0x0966))
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record(row, cells=[*row[:2], "".join(chr(zero + int(c)) for c in str(row[2]))])
    return d.any("book csv")


@stranger("bank_account_block")
def bank_account_block(rng: Random) -> Stranger:
    """A bank's own export: account block above, then the transactions, `;` and quoted everything."""
    d = draft(rng, "date description amount", "de")
    d.line("Kontonummer", "DE02 1203 0000 0000 2020 51")
    d.line("Zeitraum", "01.01.2024 - 31.12.2024")
    d.line()
    d.header()
    for i in range(size(rng, least=5)):
        row = d.values(i)
        row[1] = f"{rng.choice(REASONS)} {rng.randrange(1000, 9999)}"
        row[2] = row[2] if rng.random() < 0.4 else -row[2]
        d.record(row)
    return d.csv(delimiter=";", quoting=csv.QUOTE_ALL)


@stranger("long_ids_shortened", right=False)
def long_ids_shortened(rng: Random) -> Stranger:
    """A spreadsheet saved the order numbers as 1.2E+15: digits are gone for good."""
    d = draft(rng, "order_no name amount", "en")
    d.header()
    for i in range(size(rng, least=4)):
        row = d.values(i)
        text = f"{rng.randrange(10**15, 9 * 10**15):.5E}"
        d.record([text, *row[1:]])
    d.tell("order_no")
    return d.csv()


@stranger("catalogue_numbers_with_e", plain=True)
def catalogue_numbers_with_e(rng: Random) -> Stranger:
    """1E5, 12E3 and 1.10 as texts in a text field."""
    d = draft(rng, "sku product quantity", "en")
    d.header()
    for i in range(size(rng, least=4)):
        row = d.values(i)
        d.record([rng.choice((f"{i}E5", f"{i + 1}.10", f"0{i}7", f"{i}-1", f"A.{i}", f"{i}D4")), *row[1:]])
    return d.any("book csv")


@stranger("mojibake_inside", right=False)
def mojibake_inside(rng: Random) -> Stranger:
    """UTF-8 once read as Windows-1252, then saved: MÃ¼ller."""
    d = draft(rng, "member_no name city", "en")
    d.header()
    for i in range(size(rng, least=4)):
        row = d.values(i)
        name = rng.choice(("Müller", "Größe", "José Peña", "Zoë Åström", "Łukasz"))
        broken = name.encode().decode("cp1252", "replace")
        at = d.record([row[0], name, row[2]], {"name": any_of(name, broken)}, cells=[row[0], broken, row[2]])
        if i == 0:
            d.tell(None, at)
    return d.any("book csv")


@stranger("tabs_pasted_into_csv", right=False)
def tabs_pasted_into_csv(rng: Random) -> Stranger:
    """A few lines pasted from a spreadsheet at the end of a comma file: tabs."""
    d = draft(rng, "member_no name city score", "en")
    d.header()
    n = size(rng, least=8)
    d.records(n)
    rows = d.texts()
    cut = len(rows) - rng.randint(1, 2)
    return d.text_file(body_of(d, rows[:cut], ",") + body_of(d, rows[cut:], "\t"))


@stranger("json_in_a_column", plain=True)
def json_in_a_column(rng: Random) -> Stranger:
    d = draft(rng, "order_no remark amount", "en")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record([row[0], f'{{"size": "{rng.choice("SML")}", "gift": {rng.choice(("true", "false"))}}}', row[2]])
    return d.csv()


@stranger("log_brackets_and_times", plain=True)
def log_brackets_and_times(rng: Random) -> Stranger:
    d = draft(rng, "remark name quantity", "en")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record([f"[{i:05}] {rng.randrange(24):02}:{rng.randrange(60):02}", *row[1:]])
    return d.csv()


@stranger("semicolon_lists_inside", plain=True)
def semicolon_lists_inside(rng: Random) -> Stranger:
    """Several answers in one cell, separated by the other delimiter."""
    d = draft(rng, "member_no remark score", "en")
    d.header()
    for i in range(size(rng)):
        row = d.values(i)
        d.record([row[0], "; ".join(rng.sample(("price", "taste", "look", "smell"), rng.randint(1, 3))), row[2]])
    return d.csv(delimiter=",")
