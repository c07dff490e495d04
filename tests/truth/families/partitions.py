"""Sheets with several tables on them: side by side, stacked, under captions, with notes, totals and forms around."""

from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Sheet, Table, family
from tests.truth.families.sheets import LEFT_OUT, orders
from tests.truth.tables import Content, book_case, content, place, some_columns

APART = frozenset({"tables_assumed", *LEFT_OUT})


def blocks(rng: Random, count: int, rows: tuple[int, ...], *, equal: bool = False) -> list[Content]:
    """Contents with the same columns and keys of their own."""
    columns = orders(rng, start=0)
    first = rng.randrange(1000, 5000)
    height = rng.choice(rows)
    out: list[Content] = []
    for n in range(count):
        columns[0].value = lambda r, k, start=first + n * 200: f"SO-{start + k}"
        out.append(content(rng, columns, height if equal else rng.choice(rows)))
    return out


def side_by_side(rng: Random, made: list[Content], blank: int) -> tuple[Sheet, list[Table]]:
    """One sheet with the contents beside each other."""
    sheet = Sheet("Data")
    tables: list[Table] = []
    left = 0
    for one in made:
        alone = Sheet("Data")
        table = place(alone, one)
        for n, row in enumerate(alone.rows):
            while len(sheet.rows) <= n:
                sheet.add([])
            sheet.rows[n] += [None] * (left - len(sheet.rows[n])) + row
        table.columns = {name: at + left for name, at in table.columns.items()}
        tables.append(table)
        left += len(one.columns) + blank
    return sheet, tables


@family("side_by_side_equal")
def side_by_side_equal(rng: Random) -> Case:
    """Two or three tables with the same header and as many rows, one to three blank columns between."""
    made = blocks(rng, rng.choice((2, 2, 3)), (8, 20, 60), equal=True)
    sheet, tables = side_by_side(rng, made, rng.choice((1, 2, 3)))
    case = book_case(rng, [sheet], tables, made[0].fields)
    case.told = APART
    return case


@family("side_by_side_unequal")
def side_by_side_unequal(rng: Random) -> Case:
    """The same of unequal length."""
    made = blocks(rng, rng.choice((2, 2, 3)), (5, 12, 30, 70))
    sheet, tables = side_by_side(rng, made, rng.choice((1, 2, 3)))
    case = book_case(rng, [sheet], tables, made[0].fields)
    case.told = APART
    return case


def stacked(rng: Random, made: list[Content], blank: int, captions: list[str] | None = None) -> Case:
    sheet = Sheet("Data")
    tables: list[Table] = []
    left: dict[tuple[str, int], str] = {}
    for n, one in enumerate(made):
        if n:
            for _ in range(blank):
                sheet.add([])
        if captions:
            left["Data", sheet.add([captions[n]])] = "caption"
        tables.append(place(sheet, one))
    case = book_case(rng, [sheet], tables, made[0].fields)
    case.left, case.told = left, APART
    return case


@family("stacked_blocks")
def stacked_blocks(rng: Random) -> Case:
    """Tables with the same header below each other, one to three blank rows between."""
    return stacked(rng, blocks(rng, rng.choice((2, 3)), (5, 12, 30)), rng.choice((1, 2, 3)))


@family("stacked_under_captions")
def stacked_under_captions(rng: Random) -> Case:
    """The same under the names of regions."""
    made = blocks(rng, rng.choice((2, 3, 4)), (5, 12, 30))
    names = rng.sample(["North region", "South region", "East region", "West region"], len(made))
    return stacked(rng, made, rng.choice((1, 2, 3)), names)


@family("many_blocks")
def many_blocks(rng: Random) -> Case:
    """Five to fourteen short blocks, each with the header of the others."""
    return stacked(rng, blocks(rng, rng.choice((5, 8, 14)), (4, 6, 9)), rng.choice((1, 2)))


@family("totals_beside")
def totals_beside(rng: Random) -> Case:
    """A small table of sums beside a long one."""
    (made,) = blocks(rng, 1, (20, 40, 80))
    sheet = Sheet("Data")
    table = place(sheet, made)
    names = [c.name for c in made.columns]
    sums: dict[str, float] = {}
    for row in made.values:
        region = row[names.index("region")]
        sums[region] = sums.get(region, 0.0) + row[names.index("amount")]
    width = len(made.columns) + rng.choice((1, 2, 3))
    rows: list[list[Any]] = [["Region", "Sum"], *([k, round(v, 2)] for k, v in sorted(sums.items()))]
    for n, row in enumerate(rows):
        sheet.rows[n] += [None] * (width - len(sheet.rows[n])) + row
    case = book_case(rng, [sheet], [table], made.fields)
    case.told = APART
    return case


@family("notes_between_tables")
def notes_between_tables(rng: Random) -> Case:
    """Two tables with a remark and blank rows between."""
    made = blocks(rng, 2, (6, 15, 40))
    sheet = Sheet("Data")
    first = place(sheet, made[0])
    sheet.add([])
    note = sheet.add([rng.choice(("Source: the books of the branch.", "Note: orders of the new branch follow below."))])
    sheet.add([])
    case = book_case(rng, [sheet], [first, place(sheet, made[1])], made[0].fields)
    case.left, case.told = {("Data", note): "note"}, APART
    return case


@family("form_above_a_table")
def form_above_a_table(rng: Random) -> Case:
    """Labels and values of a delivery above its records."""
    made = content(rng, some_columns(rng, 3, 6), rng.choice((6, 20, 50)))
    sheet = Sheet("Data")
    form: list[list[Any]] = [
        ["Customer:", f"{rng.choice(words.FIRST)} {rng.choice(words.LAST)} Ltd"],
        ["Account:", rng.randrange(10**6, 10**7)],
        ["Period:", rng.choice(("May 2024", "Q2 2024"))],
    ][: rng.choice((2, 3))]
    left = {("Data", sheet.add(row)): "form" for row in form}
    for _ in range(rng.choice((1, 2))):
        sheet.add([])
    case = book_case(rng, [sheet], [place(sheet, made)], made.fields)
    case.left, case.told = left, APART
    return case
