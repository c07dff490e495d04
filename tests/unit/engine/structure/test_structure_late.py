"""Long sheets: what plainly is no data is left out to the last row, though only the first odd rows are looked at closely."""

from datetime import date

import pytest

from runner.engine.common.fields import Field
from runner.engine.reading import Layout
from runner.engine.reading.books import turned
from runner.engine.structure import TableDetector, find_tables
from runner.engine.surveying.declared_names import DeclaredNames, HeadingSpellings

pytestmark = pytest.mark.slow
HEADER = ["Id", "Name", "Start", "Pay"]
EVERY = 20
LONG = 60_000


def line(n):
    return [n, f"Name {n}", date(2024, 1, 1 + n % 28), 10.5 * n]


def sheet(odd):
    """A long table with an odd row every now and then."""
    return [(1, HEADER), *((n, odd(n) if n % EVERY == 0 else line(n)) for n in range(2, LONG))]


class Rows:
    """A sheet of numbered rows."""

    name, index, visibility = "Sheet1", 0, "visible"

    def __init__(self, numbered):
        self._numbered = numbered

    def rows(self):
        return iter(self._numbered)

    def layout(self):
        return Layout()


def tables(rows, **judges):
    detector = TableDetector(**judges)
    detector.add_blocks(turned(rows))
    found = detector.tables(Layout())
    assert len(detector.rows(Layout())) < LONG / 10
    return found


def only_table(rows, **judges):
    (table,) = tables(rows, **judges)
    return table


ODD = set(range(EVERY, LONG, EVERY))


@pytest.mark.parametrize("words", [["Total"], [None, "Subtotal:"], ["", "", "grand total"]])
def test_every_total_of_a_long_sheet_is_left_out(words):
    def total(n):
        return [*words, *[None] * (3 - len(words)), 10.5 * sum(range(max(2, n - EVERY + 1), n))]

    (table,) = find_tables(Rows(sheet(total)))
    assert set(table.left_out) == ODD


@pytest.mark.long
def test_what_is_called_a_total_and_does_not_add_up_stays_data_and_is_named():
    (table,) = find_tables(Rows(sheet(lambda n: ["Total", None, None, 10.5 * n + 1])))
    assert not table.left_out
    assert [(one.kind, one.sure) for one in table.choices] == [("total", False)]


def test_a_row_that_only_mentions_totals_stays_data():
    table = only_table([(1, HEADER), *((n, [n, "Total Energies SE", date(2024, 1, 1), 1.5]) for n in range(2, LONG))])
    assert not table.left_out


def test_a_header_written_again_on_every_page_is_no_data():
    fields = [Field({"name": name, "type": "string"}) for name in ("id", "name", "start", "pay")]
    found = tables(sheet(lambda n: HEADER), headings=DeclaredNames(HeadingSpellings(fields)))
    headers = {n for table in found for n in table.header_rows}
    assert headers | set(found[-1].left_out) == {1, *ODD}
    assert all(table.data_range.top == table.header_rows[-1] + 1 for table in found)


def test_rules_count_to_the_last_row():
    def scores(number, values):
        return {"note": 20.0} if values[0] == "void" else {}

    table = only_table(sheet(lambda n: ["void", "x", date(2024, 1, 1), 0.5]), row_scores=scores)
    assert set(table.left_out) == ODD


def test_rules_can_keep_what_looks_like_a_total():
    def scores(number, values):
        return {"data": 9.0} if values[0] == "Total" else {}

    table = only_table(sheet(lambda n: ["Total", "x", date(2024, 1, 1), 0.5]), row_scores=scores)
    assert not table.left_out


@pytest.mark.parametrize("totals", [False, True])
def test_captions_go_on_to_the_last_row(totals):
    rows = [["item", "qty", "amount"]]
    captions = set()
    for group in range(3_000):
        rows.append([f"Group {group}:", None, None])
        captions.add(len(rows))
        parts = [[f"item {group}-{n}", group % 9 + n, group % 7 + 3 * n + 1] for n in range(4)]
        rows += parts
        rows += [["Subtotal", *(sum(part[at] for part in parts) for at in (1, 2))]] if totals else []
    (table,) = find_tables(Rows(list(enumerate(rows, 1))))
    assert table.groups == captions
    assert len(table.totals) == (3_000 if totals else 0)
