"""A third stranger: lists as accountants, labs and shops export them, where one mark or word changes what a number means."""

from datetime import datetime
from random import Random
from typing import Any

from tests.truth.cases import Case
from tests.truth.strangers.kit import FIRST, Draft, Raw, col, draft, each, size, stranger

HOURS = col("hours", "decimal", "en=Hours|de=Stunden", lambda r, n: r.randrange(500, 5000) / 100)

# Excel's Subtotal command and SAP's reports name the sum of each group so, and the sum of all.
SUBTOTALS = {
    "de": "{} Ergebnis|Gesamtergebnis", "en": "{} Total|Grand Total", "sap": "{} Result|Overall Result",
    "da": "{} I alt|Hovedtotal", "sv": "Totalt {}|Totalsumma", "ja": "{} 集計|総計", "zh": "{} 汇总|总计",
    "ko": "{} 요약|총합계", "ru": "{} Итог|Общий итог", "fi": "{} Summa|Loppusumma",
}  # fmt: skip


def _groups(d: Draft, groups: int, rows: int, label: str, *, lacks: int = 1) -> float:
    """Records by department, below each group a row with its sum; `lacks`: columns of names that are blank there."""
    whole = 0.0
    for group in range(groups):
        name = f"{d.rng.choice(('Sales', 'Lager', 'Einkauf', 'Depot'))} {group + 1}"
        made: list[list[Any]] = []
        for n in range(rows):
            made.append([name, *d.values(group * rows + n)[1:]])
            d.record(made[-1])
        cells = [None] * len(d.cols)
        cells[-1] = round(sum(row[-1] for row in made), 2)
        if lacks < len(d.cols) - 1:
            cells[0] = label.format(name)
        d.line(*cells, why="subtotal")
        whole += cells[-1]
    return whole


def _staff(rng: Random) -> Draft:
    d = draft(rng, "department name", "en de")
    d.cols.append(HOURS)
    d.header()
    return d


@stranger("third_subtotals_by_excel")
def _(rng: Random) -> Case:
    """Subtotals in the words that Excel and SAP write, of numbers as small as hours."""
    d = _staff(rng)
    d.note = rng.choice(sorted(SUBTOTALS))
    label, grand = each(SUBTOTALS[d.note])
    whole = _groups(d, rng.randrange(2, 5), rng.randrange(3, 7), label)
    d.line(grand, None, round(whole, 2), why="grand total")
    return d.any("book book csv")


@stranger("third_subtotals_with_the_groups_name", right=False)
def _(rng: Random) -> Case:
    """Subtotals that have only the name of their group, or no name at all."""
    d = _staff(rng)
    _groups(d, rng.randrange(2, 5), rng.randrange(3, 7), "{}", lacks=rng.choice((1, 2)))
    return d.any("book book csv")


@stranger("third_subtotals_of_a_long_list")
def _(rng: Random) -> Case:
    """A subtotal every few hundred rows, below the rows that are looked at one by one."""
    d = _staff(rng)
    _groups(d, 5, rng.choice((300, 500)), rng.choice(("{} Total", "{} Ergebnis", "{} Summe:")))
    return d.any("book csv")


@stranger("third_so_many_subtotals")
def _(rng: Random) -> Case:
    """More subtotals than rows are remembered."""
    d = _staff(rng)
    _groups(d, 1_100, 4, rng.choice(("{} Total", "{} Ergebnis")), lacks=rng.choice((1, 2)))
    return d.csv()


@stranger("third_balances_carried_down", right=False)
def _(rng: Random) -> Case:
    """A treasurer's page: the balance brought down first and carried down last, in the words of bookkeeping."""
    d = draft(rng, "date description amount", "en")
    first, last = rng.choice(
        (("Balance b/f", "Balance c/f"), ("Bal. b/d", "Bal. c/d"), ("Brought forward", "Carried forward"))
    )
    d.header()
    d.line(None, first, 1200.5, why="balance")
    d.records(size(rng, 5, 20))
    d.line(None, last, 1920.25, why="balance")
    return d.any("book csv")


GENES = each("TP53|BRCA1|EGFR|MYC|KRAS|PTEN|RB1|CDK4|AKT1|SOX2|NOTCH1|ALK|HOXA9|GATA3|FGFR2|STAT3")
SIZES = each("5-7|8-10|12-14|S|M|16-18|20-22")


@stranger("third_codes_that_became_dates", right=False)
def _(rng: Random) -> Case:
    """Genes, sizes and parts among which a spreadsheet program saw days: MARCH1, 11-13."""
    names, what = rng.choice(((GENES, "gene"), (SIZES, "size")))
    d = draft(rng, "sample_id quantity", "en")
    d.cols.insert(1, col(what, "text", f"en={what.title()}", lambda r, n: r.choice(names)))
    d.header()
    for n in range(rng.randrange(10, 40)):
        values = d.values(n)
        if n and rng.random() < 0.12:
            d.record(
                values,
                {what: rng.choice(("MARCH1", "11-13"))},
                cells=[values[0], datetime(2024, 3, n % 28 + 1), values[2]],
            )
        else:
            d.record(values)
    return d.book("openpyxl xlsxwriter")


@stranger("third_one_cell_for_two_columns", right=False)
def _(rng: Random) -> Case:
    """A rota: who stays for two days stands in one cell that is merged over both."""
    d = draft(rng, "product", "en")
    d.cols += [col(day, "text", f"en={day.title()}", lambda r, n: r.choice(FIRST)) for day in ("mon", "tue", "wed")]
    d.header()
    for n in range(rng.randrange(5, 30)):
        values = d.values(n)
        at = rng.randrange(1, 3)
        if rng.random() < 0.3:
            values[at + 1] = values[at]
            cells = [None if column == at + 1 else value for column, value in enumerate(values)]
            number = d.record(values, cells=cells)
            d.page.merges.append((number, at + 1, number, at + 2))
        else:
            d.record(values)
    if rng.random() < 0.5:
        d.fields = [{"name": c.field, "merged": "fill"} for c in d.cols]
        d.fields[0]["synonyms"] = ["Product"]
    return d.book("openpyxl xlsxwriter")


@stranger("third_scale_in_the_row_of_units", right=False)
def _(rng: Random) -> Case:
    """A row of units below the names says thousands, cents, or another unit than the field's."""
    d = draft(rng, "department", "en")
    heads, units, specs = rng.choice((
        (("Revenue", "Costs"), each("Mio. €|TEUR|k€|in 1000|Tsd. EUR"), ({}, {})),
        (("Revenue", "Costs"), each("cents|pence"), ({}, {})),
        (("Weight", "Price"), ["lb"], ({"name": "weight_kg", "type": "decimal"}, {"name": "price_eur"})),
    ))  # fmt: skip
    unit = rng.choice(units)
    under = [unit, "USD" if unit == "lb" else unit]
    d.cols += [col(head.lower(), "money", f"en={head}", lambda r, n: r.randrange(100, 9999) / 100) for head in heads]
    d.fields = [{"name": "department"}] + [
        {"name": head.lower(), "type": "money", "synonyms": [head], **spec}
        for head, spec in zip(heads, specs, strict=True)
    ]
    d.header()
    d.line(None, *under, why="units")
    d.records(size(rng, 4, 30))
    renamed = {head.lower(): field["name"] for head, field in zip(heads, d.fields[1:], strict=True)}
    for table in d.tables:
        table.columns = {renamed.get(name, name): at for name, at in table.columns.items()}
        table.rows = [r._replace(wants={renamed.get(k, k): v for k, v in r.wants.items()}) for r in table.rows]
    for spec in d.fields[1:]:
        d.tell(str(spec["name"]), None, "scale_ignored", "unit_mixed", "currency_mixed")
    return d.any("book csv")


@stranger("third_sign_in_a_column_of_its_own", right=False)
def _(rng: Random) -> Case:
    """Amounts without a sign; debit or credit stands beside them, in a column that nobody declared."""
    plus, minus = rng.choice(
        [each(pair) for pair in ("C|D", "CR|DR", "H|S", "Haben|Soll", "+|-", "CREDIT|DEBIT", "Bij|Af")]
    )
    d = draft(rng, "date description amount", "en")
    head = rng.choice(("D/C", "Type", "S/H", "Kz", "Dir"))
    d.line(*d.heads, head)
    for n in range(size(rng, 4, 60)):
        values = d.values(n)
        is_debit = n % 2 == 0 if n < 2 else rng.random() < 0.6
        wants = {"amount": -values[2]} if is_debit else None
        d.record(values, wants, cells=[*values, Raw(minus if is_debit else plus)])
    d.tell("amount", None, "sign_ignored")
    return d.any("book csv")


@stranger("third_plan_and_actual_of_two_columns", right=False)
def _(rng: Random) -> Case:
    """Two sheets of the same departments, one with what was planned and one with what came."""
    d = draft(rng, "account amount", "en")
    names = rng.choice((("Plan", "Actual"), ("Budget 2024", "Ist 2024"), ("old", "new"), ("Soll", "Ist")))
    rows = size(rng, 4, 30)
    for name in names:
        d.sheet(name)
        d.header()
        d.records(rows)
    d.tell(None, None, "table_assumed")
    return d.book("openpyxl xlsxwriter")


@stranger("third_card_numbers_in_number_cells", right=False)
def _(rng: Random) -> Case:
    """Numbers of cards typed into a spreadsheet, which keeps fifteen digits and puts zeros for the rest."""
    d = draft(rng, "account name", "en")
    d.cols[0] = col(
        "card", "text", "en=Card", lambda r, n: str(r.randrange(10**15, 10**16) // 10 * 10 + r.randrange(1, 10))
    )
    d.header()
    for n in range(size(rng, 4, 40)):
        values = d.values(n)
        d.record(values, cells=[int(values[0]) // 10 * 10, values[1]])
    return d.book("openpyxl xlsxwriter raw_xml")


@stranger("third_wrapped_descriptions", right=False)
def _(rng: Random) -> Case:
    """Parts whose description, with a number in it, goes on in the row below, alone there."""
    d = draft(rng, "order_no quantity unit_price", "en")
    d.cols.insert(1, col("part", "text", "en=Part", lambda r, n: f"Pump model {n + 10}"))
    d.header()
    for n in range(rng.randrange(6, 30)):
        d.records(1, start=n)
        if rng.random() < 0.4:
            d.line(
                None, rng.choice(("with long hose", "stainless steel", "incl. seal")), why="the rest of a description"
            )
    return d.any("book csv")


@stranger("third_rows_of_one_unit_or_of_the_most", right=False)
def _(rng: Random) -> Case:
    """The first row below the names: only the unit of one column, or the most points that one can have."""
    d = draft(rng, "name", "en")
    d.cols += [
        col(test, "decimal", f"en={test.title()}", lambda r, n: r.randrange(10, 90)) for test in ("weight", "score")
    ]
    d.header()
    d.line(
        *rng.choice(((None, "lb", None), (None, None, "pts"), ("max", 100, 100), ("Max.", 90, 120))), why="no record"
    )
    d.records(size(rng, 5, 30))
    return d.any("book csv")
