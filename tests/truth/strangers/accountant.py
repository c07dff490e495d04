"""Sums of all kinds, as accountants, shops and towns put them into lists; and records that only look like sums."""

import io
from random import Random
from typing import Any

import xlsxwriter

from tests.truth.cases import Formula, Sheet, Shown
from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import COLS, GOODS, Draft, any_of, col, draft, person, size, stranger

SUMMED = {"quantity", "amount", "score", "consumption", "result", "weight_kg"}


def sums(d: Draft, rows: list[list[Any]], label: Any = None, at: int = 0) -> list[Any]:
    """A row with a label and the sums of the numeric columns."""
    made: list[Any] = [round(sum(r[n] for r in rows), 2) if c.field in SUMMED else None for n, c in enumerate(d.cols)]
    if label is not None:
        made[at] = label
    return made


@stranger("total_with_word")
def total_with_word(rng: Random) -> Stranger:
    d = draft(rng, "order_no date product quantity amount")
    d.header()
    made = d.records(size(rng))
    if rng.random() < 0.3:
        d.line()
    d.line(*sums(d, made, d.loc.total, rng.choice((0, 2))), why="total")
    return d.any()


@stranger("total_without_word")
def total_without_word(rng: Random) -> Stranger:
    d = draft(rng, rng.choice(("order_no date product amount", "date quantity amount", "name city amount")))
    d.header()
    made = d.records(size(rng))
    if rng.random() < 0.3:
        d.line()
    d.line(*sums(d, made), why="total")
    return d.any()


@stranger("total_under_dates")
def total_under_dates(rng: Random) -> Stranger:
    d = draft(rng, "date amount")
    d.header()
    made = d.records(size(rng))
    d.line(*sums(d, made), why="total")
    return d.any()


@stranger("last_record_without_key_is_no_total", plain=True)
def last_record_without_key_is_no_total(rng: Random) -> Stranger:
    """The last line has an amount only, and it is not the sum of the others: an anonymous gift."""
    d = draft(rng, "name city amount")
    d.header()
    made = d.records(size(rng, least=4))
    d.record(["Anonymous", None, made[0][2] / 2 if made[0][2] * 50 == int(made[0][2] * 50) else 12.5])
    return d.any("book csv")


@stranger("subtotals_below_groups")
def subtotals_below_groups(rng: Random) -> Stranger:
    d = draft(rng, "department product quantity amount")
    d.header()
    everything: list[list[Any]] = []
    for dep in rng.sample(["Sales", "Finance", "IT", "Legal"], rng.randint(2, 4)):
        made = []
        for _ in range(rng.randint(2, 9)):
            row = d.values(0)
            row[0] = dep
            d.record(row)
            made.append(row)
        label = rng.choice((f"{d.loc.total} {dep}", d.loc.total))
        d.line(*sums(d, made, label), why="subtotal")
        everything += made
    d.line(
        *sums(d, everything, f"{d.loc.total} {d.loc.total.lower()}" if rng.random() < 0.2 else d.loc.total), why="total"
    )
    return d.any()


@stranger("subtotals_above_groups")
def subtotals_above_groups(rng: Random) -> Stranger:
    """Outline with the sum above its parts: the group's name, then its rows."""
    d = draft(rng, "department product quantity amount")
    d.header()
    for dep in rng.sample(["Sales", "Finance", "IT", "Legal"], rng.randint(2, 4)):
        made = [[dep, *d.values(0)[1:]] for _ in range(rng.randint(2, 9))]
        d.line(*sums(d, made, dep), why="sum above")
        for row in made:
            d.record(row)
    return d.any()


@stranger("grand_total_on_top")
def grand_total_on_top(rng: Random) -> Stranger:
    """A town's list begins with the whole town."""
    d = draft(rng, "city quantity amount", "en de fr")
    d.header()
    made = [d.values(n) for n in range(size(rng))]
    d.line(
        *sums(d, made, {"en": "Whole county", "de": "Landkreis gesamt", "fr": "Ensemble"}[d.loc.lang]), why="sum above"
    )
    for row in made:
        d.record(row)
    return d.any()


@stranger("star_totals")
def star_totals(rng: Random) -> Stranger:
    d = draft(rng, "account date description amount")
    d.header()
    everything = []
    for n in range(rng.randint(2, 4)):
        made = []
        for _ in range(rng.randint(1, 6)):
            row = d.values(n)
            d.record(row)
            made.append(row)
        d.line(*sums(d, made, "*"), why="star total")
        everything += made
    d.line(*sums(d, everything, "**"), why="star total")
    return d.any("book csv")


@stranger("starred_records", plain=True)
def starred_records(rng: Random) -> Stranger:
    """Stars that mark favourites, not sums."""
    d = draft(rng, "remark product quantity amount")
    d.header()
    for n in range(size(rng)):
        d.record([rng.choice(("*", "**", "***")), *d.values(n)[1:]])
    return d.any("book csv")


@stranger("invoice_footer")
def invoice_footer(rng: Random) -> Stranger:
    d = draft(rng, "sku product quantity amount", "en uk de fr")
    words = {
        "en": ("Subtotal", "Shipping", "VAT 20%", "Grand total"),
        "de": ("Zwischensumme", "Versand", "MwSt. 19%", "Gesamtbetrag"),
        "fr": ("Sous-total", "Frais de port", "TVA 20%", "Total TTC"),
    }
    d.header()
    made = d.records(size(rng, most=35))
    net = round(sum(r[3] for r in made), 2)
    ship, vat = 9.9, round((net + 9.9) * 0.2, 2)
    at = rng.choice((1, 0, 2))
    if rng.random() < 0.3:
        d.line()
    for word, value in zip(words[d.loc.lang], (net, ship, vat, round(net + ship + vat, 2)), strict=True):
        row: list[Any] = [None] * 4
        row[at], row[3] = word, value
        d.line(*row, why="footer")
    return d.any("book csv")


@stranger("shipping_is_a_product", plain=True)
def shipping_is_a_product(rng: Random) -> Stranger:
    """Services sold by the piece: they have a SKU and a quantity like everything else."""
    d = draft(rng, "sku product quantity amount")
    d.header()
    for n in range(size(rng)):
        row = d.values(n)
        row[1] = rng.choice(
            (
                "Shipping",
                "Discount card",
                "Total Care polish",
                "VAT guide",
                "Sum of all fears (DVD)",
                "Balance board",
                *GOODS[:6],
            )
        )
        d.record(row)
    return d.any("book csv")


@stranger("supplier_called_total", plain=True)
def supplier_called_total(rng: Random) -> Stranger:
    d = draft(rng, "date name city amount")
    d.header()
    n = size(rng, least=4)
    for i in range(n):
        row = d.values(i)
        if i in (n // 2, n - 1):
            row[1] = rng.choice(("Total", "Summa", "Gesamt", "Totaal", "Sum"))
        d.record(row)
    return d.any("book csv")


@stranger("person_called_sum", plain=True)
def person_called_sum(rng: Random) -> Stranger:
    """Family name Sum, given name Total: the first column of a real member."""
    d = draft(rng, "last_name first_name city score")
    d.header()
    n = size(rng, least=4)
    for i in range(n):
        row = d.values(i)
        if i == rng.randrange(n) or i == n - 1:
            row[0] = "Sum"
        d.record(row)
    return d.any("book csv")


@stranger("carried_forward")
def carried_forward(rng: Random) -> Stranger:
    """Pages of a cash book: carried forward at the foot, brought forward at the head."""
    d = draft(rng, "date description amount", "en uk de fr")
    words = {
        "en": ("Carried forward", "Brought forward"),
        "de": ("Übertrag", "Übertrag"),
        "fr": ("À reporter", "Report"),
    }[d.loc.lang]
    d.header()
    run = 0.0
    pages = rng.randint(2, 4)
    for page in range(pages):
        if page:
            d.line(None, words[1], run, why="brought forward")
        made = d.records(rng.randint(4, 12))
        run = round(run + sum(r[2] for r in made), 2)
        d.line(None, words[0] if page < pages - 1 else d.loc.total, run, why="carried forward")
    return d.any("book csv")


@stranger("statistics_rows_below")
def statistics_rows_below(rng: Random) -> Stranger:
    d = draft(rng, "name class score", "en de")
    d.header()
    made = d.records(size(rng, least=4))
    scores = [r[2] for r in made]
    if rng.random() < 0.5:
        d.line()
    mean = round(sum(scores) / len(scores), 2)
    for word, value in ((rng.choice(("Ø", "Average", "Mittelwert")), mean), ("Min", min(scores)), ("Max", max(scores))):
        d.line(word, None, value, why="statistics")
    return d.any("book csv")


@stranger("percent_row_under_total")
def percent_row_under_total(rng: Random) -> Stranger:
    d = draft(rng, "city quantity score", "en de fr")
    d.header()
    made = d.records(size(rng, least=4))
    total = sums(d, made, d.loc.total)
    d.line(*total, why="total")
    whole = total[1] + total[2]
    d.line("%", *[Shown(round(v / whole, 3), "0.0%", f"{v / whole:.1%}") for v in total[1:]], why="percent of total")
    return d.any("book csv")


@stranger("year_row_under_months")
def year_row_under_months(rng: Random) -> Stranger:
    """Twelve months, then the year: its label is a year, not a word for a sum."""
    d = draft(rng, "remark consumption amount")
    d.cols = [COLS["remark"].called("Month"), *d.cols[1:]]
    d.header()
    made = []
    for month in [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]:
        row = [month, *d.values(0)[1:]]
        d.record(row)
        made.append(row)
    d.line(*sums(d, made, rng.choice(("2024", "Year", "Jan-Dec", "YTD"))), why="year")
    return d.any("book csv")


@stranger("formula_total_row")
def formula_total_row(rng: Random) -> Stranger:
    """=SUM() below the list, with its stored result, with and without a word."""
    d = draft(rng, "product quantity amount")
    d.header()
    made = d.records(size(rng))
    last = len(d.page.rows)
    row = sums(d, made, rng.choice((None, d.loc.total)))
    d.line(row[0], Formula(f"=SUM(B2:B{last})", row[1]), Formula(f"=SUM(C2:C{last})", row[2]), why="total")
    return d.book("xlsxwriter raw_xml")


@stranger("declared_table_with_total_row")
def declared_table_with_total_row(rng: Random) -> Stranger:
    """Insert, Table with a total row, as Excel writes it."""
    d = draft(rng, "product quantity amount", "en de fr nl")
    d.header()
    made = d.records(size(rng))
    total = sums(d, made, d.loc.total)
    d.line(*total, why="total")
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    sheet = book.add_worksheet("Sheet1")
    sheet.add_table(0, 0, len(made) + 1, 2, {
        "data": made, "total_row": True,
        "columns": [{"header": d.heads[0], "total_string": d.loc.total}, {"header": d.heads[1], "total_function": "sum", "total_value": total[1]}, {"header": d.heads[2], "total_function": "sum", "total_value": total[2]}],
    })  # fmt: skip
    book.close()
    case = d.book("openpyxl")
    case.body, case.note = out.getvalue(), "declared table"
    return case


@stranger("trial_balance_difference")
def trial_balance_difference(rng: Random) -> Stranger:
    d = draft(rng, "account description amount result", "en de")
    d.cols = [d.cols[0], d.cols[1], COLS["amount"].called("Debit"), COLS["result"].called("Credit")]
    d.header()
    made = d.records(size(rng))
    debit, credit = (round(sum(r[n] for r in made), 2) for n in (2, 3))
    d.line(None, d.loc.total, debit, credit, why="total")
    d.line(None, rng.choice(("Difference", "Balance", "Saldo")), round(debit - credit, 2), None, why="difference")
    return d.any("book csv")


@stranger("chart_of_accounts_sums", right=False)
def chart_of_accounts_sums(rng: Random) -> Stranger:
    """Accounts 4, 40, 4001 …: the short ones are the sums of the long ones and no word says so."""
    d = draft(rng, "account description amount")
    d.header()
    for top in range(4, 4 + rng.randint(2, 3)):
        made = [
            [f"{top}{n:03}", rng.choice(("wages", "rent", "post", "travel", "books")), d.values(0)[2]]
            for n in range(1, rng.randint(3, 7))
        ]
        number = d.record([f"{top}", rng.choice(("Staff", "Premises", "Office")), round(sum(r[2] for r in made), 2)])
        d.tell(None, number)
        for row in made:
            d.record(row)
    return d.any("book csv")


@stranger("of_which_rows", right=False)
def of_which_rows(rng: Random) -> Stranger:
    """`of which women`: a part of the row above, which counts twice if taken as a record."""
    d = draft(rng, "city quantity", "en de fr")
    word = {"en": "of which women", "de": "davon Frauen", "fr": "dont femmes"}[d.loc.lang]
    d.header()
    for n in range(size(rng, most=35)):
        row = d.values(n)
        row[1] += 20
        d.record(row)
        d.line(f"  {word}", row[1] // 2, why="part of the row above")
    return d.any("book csv")


@stranger("balance_lines_in_statement", right=False)
def balance_lines_in_statement(rng: Random) -> Stranger:
    """Opening and closing balance among the transactions of a bank."""
    d = draft(rng, "date description amount", "en uk de nl")
    words = {
        "en": ("Opening balance", "Closing balance"),
        "de": ("Anfangssaldo", "Endsaldo"),
        "nl": ("Beginsaldo", "Eindsaldo"),
    }[d.loc.lang]
    d.header()
    made = [d.values(n) for n in range(size(rng))]
    opening = 1500.0
    d.line(made[0][0], words[0], opening, why="balance")
    for row in made:
        d.record(row)
    d.line(made[-1][0], words[1], round(opening + sum(r[2] for r in made), 2), why="balance")
    return d.any("book csv")


@stranger("summary_sheet_by_group")
def summary_sheet_by_group(rng: Random) -> Stranger:
    d = draft(rng, "order_no department product amount", "en de fr")
    d.sheet(rng.choice(("Orders", "Data", "Sheet1")))
    d.header()
    made = d.records(size(rng, least=8))
    rows: list[list[Any]] = [[d.heads[1], d.heads[3]]]
    rows += [[g, round(sum(r[3] for r in made if r[1] == g), 2)] for g in sorted({r[1] for r in made})]
    if rng.random() < 0.5:
        rows.append([d.loc.total, round(sum(r[3] for r in made), 2)])
    d.sheets.append(Sheet(rng.choice(("Summary", "Sheet2", "Auswertung", "by department")), rows))
    if rng.random() < 0.4:
        d.sheets.reverse()
    return d.book()


@stranger("pivot_sheet")
def pivot_sheet(rng: Random) -> Stranger:
    d = draft(rng, "order_no department city quantity", "en")
    d.sheet("Data")
    d.header()
    made = d.records(size(rng, least=12))
    towns = sorted({r[2] for r in made})[:5]
    rows: list[list[Any]] = [["Sum of Quantity", "Column labels"], ["Row labels", *towns, "Grand total"]]
    for g in sorted({r[1] for r in made}):
        cells = [sum(r[3] for r in made if r[1] == g and r[2] == t) or None for t in towns]
        rows.append([g, *cells, sum(c or 0 for c in cells)])
    rows.append(
        [
            "Grand total",
            *[sum(r[3] for r in made if r[2] == t) for t in towns],
            sum(r[3] for r in made if r[2] in towns),
        ]
    )
    d.sheets.append(Sheet("Pivot", rows))
    if rng.random() < 0.5:
        d.sheets.reverse()
    return d.book()


@stranger("months_and_year_sheet")
def months_and_year_sheet(rng: Random) -> Stranger:
    """A sheet per month, and a sheet with the sum of each month."""
    d = draft(rng, "order_no date product amount", "en")
    rows: list[list[Any]] = [["Month", "Amount"]]
    n = 0
    for month in ("January", "February", "March"):
        d.sheet(month)
        d.header()
        more = rng.randint(3, 20)
        made = d.records(more, start=n)
        n += more
        rows.append([month, round(sum(r[3] for r in made), 2)])
    d.sheets.append(Sheet(rng.choice(("Year", "Overview", "2024")), rows))
    return d.book()


@stranger("months_in_sheets", plain=True)
def months_in_sheets(rng: Random) -> Stranger:
    d = draft(rng, "order_no date product amount")
    n = 0
    for month in ("Jan", "Feb", "Mar", "Apr")[: rng.randint(2, 4)]:
        d.sheet(month)
        d.header()
        more = rng.randint(3, 30)
        d.records(more, start=n)
        n += more
    return d.book()


@stranger("all_beside_its_parts")
def all_beside_its_parts(rng: Random) -> Stranger:
    d = draft(rng, "order_no department product amount")
    d.sheet(rng.choice(("All", "Alle", "Total", "Sheet1")))
    d.header()
    made = d.records(size(rng, least=8))
    for g in sorted({r[1] for r in made}):
        d.sheets.append(Sheet(g, [d.heads, *[r for r in made if r[1] == g]]))
    if rng.random() < 0.4:
        d.sheets.append(d.sheets.pop(0))
    return d.book()


@stranger("sorted_copy_sheet")
def sorted_copy_sheet(rng: Random) -> Stranger:
    d = draft(rng, "order_no name city amount")
    d.sheet("Orders")
    d.header()
    made = d.records(size(rng, least=5))
    d.sheets.append(Sheet(rng.choice(("by amount", "sorted", "Sheet2")), [d.heads, *sorted(made, key=lambda r: -r[3])]))
    return d.book()


@stranger("top_ten_sheet")
def top_ten_sheet(rng: Random) -> Stranger:
    """The largest orders once more, on a sheet for the boss."""
    d = draft(rng, "order_no name city amount")
    d.sheet("Orders")
    d.header()
    made = d.records(size(rng, least=12))
    d.sheets.append(Sheet("Top", [d.heads, *sorted(made, key=lambda r: -r[3])[:5]]))
    if rng.random() < 0.5:
        d.sheets.reverse()
    return d.book()


@stranger("columns_moved_copy")
def columns_moved_copy(rng: Random) -> Stranger:
    """The same records on a second sheet with other columns first and one column less."""
    d = draft(rng, "order_no name city amount")
    d.sheet("Orders")
    d.header()
    made = d.records(size(rng, least=5))
    d.sheets.append(
        Sheet("for the driver", [[d.heads[2], d.heads[1], d.heads[0]], *[[r[2], r[1], r[0]] for r in made]])
    )
    return d.book()


@stranger("journal_debit_credit_lines", plain=True)
def journal_debit_credit_lines(rng: Random) -> Stranger:
    """Two lines per booking, of opposite sign; together they are nil."""
    d = draft(rng, "invoice_no account description amount")
    d.header()
    for n in range(size(rng, most=120)):
        row = d.values(n)
        d.record([row[0], "1200", row[2], row[3]])
        d.record([row[0], "8400", row[2], -row[3]])
    return d.any("book csv")


@stranger("equal_halves_are_no_sum", plain=True)
def equal_halves_are_no_sum(rng: Random) -> Stranger:
    """Three records of which the last happens to be as much as the two others."""
    d = draft(rng, "order_no date name amount")
    d.header()
    rows = [d.values(n) for n in range(3)]
    rows[2][3] = round(rows[0][3] + rows[1][3], 2)
    for row in rows:
        d.record(row)
    d.told = {"total_assumed"}
    return d.any("book csv")


@stranger("running_balance_column", plain=True)
def running_balance_column(rng: Random) -> Stranger:
    """A balance after each line is the sum of all above, and still a record."""
    d = draft(rng, "date description amount result")
    d.cols = [*d.cols[:3], COLS["result"].called("Balance")]
    d.header()
    run = 0.0
    for n in range(size(rng)):
        row = d.values(n)
        run = round(run + row[2], 2)
        d.record([*row[:3], run])
    return d.any("book csv")


@stranger("depreciation_years_across", plain=True)
def depreciation_years_across(rng: Random) -> Stranger:
    """Years as headers: numbers over numbers."""
    d = draft(rng, "product amount result consumption")
    d.cols = [
        d.cols[0],
        *[col(f"y{y}", "money", f"en={y}", c.make) for y, c in zip((2023, 2024, 2025), d.cols[1:], strict=True)],
    ]
    d.line(d.heads[0], 2023, 2024, 2025)
    d.records(size(rng, least=4))
    return d.any("book csv")


@stranger("merged_group_cells", right=False)
def merged_group_cells(rng: Random) -> Stranger:
    """The department is merged over its rows; a reader fills it down."""
    d = draft(rng, "department product amount")
    d.header()
    for dep in ("Sales", "Finance", "IT"):
        first = len(d.page.rows) + 1
        more = rng.randint(2, 6)
        for n in range(more):
            row = [dep, *d.values(0)[1:]]
            d.record(row, cells=[dep if n == 0 else None, *row[1:]])
        d.page.merges.append((first, 1, first + more - 1, 1))
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("sparse_group_cells", plain=True)
def sparse_group_cells(rng: Random) -> Stranger:
    """The order number only on its first line: the other lines are records too."""
    d = draft(rng, "order_no name product quantity")
    d.header()
    for n in range(size(rng, most=60)):
        row = d.values(n)
        d.record(row)
        for _ in range(rng.randrange(3)):
            more = d.values(n)
            d.record([None, None, *more[2:]], {"order_no": any_of(None, row[0]), "name": any_of(None, row[1])})
    return d.any("book csv")


@stranger("vat_lines_are_records", plain=True)
def vat_lines_are_records(rng: Random) -> Stranger:
    """A tax report: each line is a rate, with turnover and tax."""
    d = draft(rng, "description amount result")
    d.cols = [COLS["description"].called("Tax code"), COLS["amount"].called("Net"), COLS["result"].called("Tax")]
    d.header()
    for rate in rng.sample(
        ("VAT 7%", "VAT 19%", "VAT 0%", "VAT exempt", "Reverse charge", "Margin scheme"), rng.randint(3, 6)
    ):
        d.record([rate, *d.values(0)[1:]])
    return d.any("book csv")


@stranger("checked_by_line", right=False)
def checked_by_line(rng: Random) -> Stranger:
    d = draft(rng, "invoice_no date name amount", "en de")
    d.header()
    made = d.records(size(rng))
    d.line(None, None, d.loc.total, round(sum(r[3] for r in made), 2), why="total")
    d.line({"en": "checked: ", "de": "geprüft: "}[d.loc.lang] + person(rng), why="signature")
    return d.any("book csv")
