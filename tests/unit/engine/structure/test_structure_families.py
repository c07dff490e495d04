"""Families of made-up tables: every row that was written is in the table, or is named as what it is."""

import pytest

from runner.engine.common.fields import Field
from runner.engine.options import AS_FOUND, ReadingOptions
from runner.engine.reading import Layout, open_book
from runner.engine.structure import find_tables
from runner.engine.surveying.declared_names import DeclaredNames, HeadingSpellings
from tests.support.effort import examples
from tests.support.engine_jobs import run_job
from tests.support.table_makers import COLUMNS, FIRST, NUMBERS, TEXTS, dice_of, rows_of, written
from tests.unit.engine.structure.test_structure_finding import Grid, members

SIZES = [1, 2, 3, 5, 8, 12, 40, 150]
SEEDS = range(examples(30))
WORDS = [
    "Total",
    "Zwischensumme",
    "Gesamtsumme",
    "Итого",
    "合計",
    "Suma",
    "Totaal",
    "Grand total:",
    "Összesen",
    "Toplam",
]


def looked_at(folder, lines, kind, names=None, reading=AS_FOUND):
    fields = [Field({"name": name, "type": "text"}) for name in names or ()]
    headings = DeclaredNames(HeadingSpellings(fields)) if fields else None
    path = written(folder, lines, kind)
    with open_book(path, name=path.name) as book:
        return find_tables(book.sheets[0], headings=headings, reading=reading)


def rows_in(table, lines):
    """Numbers of the rows that the table gives as data."""
    if table.data_range is None:
        return []
    left, right = table.range.left - 1, table.range.right
    inside = range(table.data_range.top, table.data_range.bottom + 1)
    held = [n for n in inside if n <= len(lines) and any(value is not None for value in lines[n - 1][left:right])]
    return [n for n in held if n not in table.left_out]


def check_plain(looked, lines, header=1):
    """All rows are data of one table, all columns are its own, and nothing needed to be assumed."""
    (table,) = looked
    assert table.header_rows == tuple(range(1, header + 1))
    assert rows_in(table, lines) == list(range(header + 1, len(lines) + 1))
    assert (table.range.left, table.range.right) == (1, max(map(len, lines)))
    assert not [one.message for one in table.choices if not one.sure]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("count", [3, 4, 7, 50, 333, 5_000])
@pytest.mark.parametrize("name", ["email", "city", "name", "sku", "qty", "date", "price", "product"])
def test_one_column_lists_keep_every_row(tmp_path, name, count, kind):
    lines = [[name], *rows_of(dice_of(name, count), [name], count)]
    check_plain(looked_at(tmp_path, lines, kind), lines)


@pytest.mark.parametrize("seed", range(10))
def test_one_column_lists_may_repeat_and_differ_in_length(tmp_path, seed):
    dice = dice_of("mixed", seed)
    some = [dice.choice(["Oslo", "Rio de Janeiro", "A1", "x", "The Hague (NL)", "12", "Bonn"]) for _ in range(60)]
    lines = [["place"], *[[value] for value in some]]
    check_plain(looked_at(tmp_path, lines, "csv", names=["place"]), lines)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_plain_tables_lose_nothing(tmp_path, seed, kind):
    dice = dice_of("plain", seed)
    columns = dice.sample(sorted(COLUMNS), dice.randint(2, 8))
    lines = [columns, *rows_of(dice, columns, dice.choice(SIZES), blank=dice.choice([0, 0.05]))]
    names = columns if dice.random() < 0.7 else None
    check_plain(looked_at(tmp_path, lines, kind, names=names), lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_beside_long_texts_keep_their_header_and_rows(tmp_path, seed):
    dice = dice_of("long", seed)
    columns = [dice.choice(["id", "sku"]), *dice.sample(["comment", "review", "city", "name"], dice.randint(1, 3))]
    lines = [columns, *rows_of(dice, columns, dice.choice(SIZES))]
    check_plain(looked_at(tmp_path, lines, "csv"), lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_with_nothing_but_its_key_is_a_row(tmp_path, seed):
    dice = dice_of("lone", seed)
    columns = [
        dice.choice(TEXTS[:7]),
        *dice.sample(["qty", "price", "date", "phone", "status", "id"], dice.randint(2, 5)),
    ]
    lines = [columns, *rows_of(dice, columns, dice.choice([11, 40, 150, 400]), lone=dice.choice([0.05, 0.1, 0.2]))]
    (table,) = looked_at(tmp_path, lines, dice.choice(["csv", "xlsx"]), names=columns)
    assert rows_in(table, lines) == list(range(2, len(lines) + 1))


@pytest.mark.parametrize("place", [0, 3, 10])
def test_a_value_of_a_required_field_is_never_a_caption(tmp_path, place):
    rows = [[f"{FIRST[n]} Jones", f"2024-01-{n + 1:02}", 1000.5 + n] for n in range(11)]
    rows[place] = ["North region", None, None]
    fields = [{"name": "employee", "type": "text", "required": True}, {"name": "hired", "type": "date"}]
    done = run_job(tmp_path, [["employee", "hired", "salary"], *rows], fields=fields)
    assert len(done.rows()) == 12


def test_required_is_checked_in_rows_with_nothing_but_a_key(tmp_path):
    rows = [[f"{FIRST[n]} Jones", f"2024-01-{n + 1:02}", 1000.5 + n] for n in range(11)]
    rows[3][1:] = rows[8][1:] = [None, None]
    fields = [{"name": n, "type": t, "required": True} for n, t in (("employee", "text"), ("hired", "date"))]
    done = run_job(tmp_path, [["employee", "hired", "salary"], *rows], fields=fields)
    assert (len(done.column("employee")), done.cells("required")) == (11, ["B5", "B10"])


@pytest.mark.parametrize("seed", SEEDS)
def test_captions_over_groups_with_subtotals_are_named(tmp_path, seed):
    dice = dice_of("captions", seed)
    columns = ["name", *dice.sample(["qty", "price"], dice.randint(1, 2))]
    lines, captions, totals = [columns], set(), set()
    for at in range(dice.randint(2, 4)):
        group = rows_of(dice, columns, dice.randint(2, 30))
        lines.append([f"Region {at + 1}", *[None] * (len(columns) - 1)])
        captions.add(len(lines))
        lines += [
            *group,
            [dice.choice(WORDS), *[round(sum(column), 2) for column in list(zip(*group, strict=True))[1:]]],
        ]
        totals.add(len(lines))
    (table,) = looked_at(tmp_path, lines, dice.choice(["csv", "xlsx"]), names=columns)
    assert (table.groups, table.totals) == (captions, totals)
    assert len(rows_in(table, lines)) == len(lines) - 1 - len(captions) - len(totals)


def test_bold_captions_are_captions():
    lines = [["Name", "Pay"], ["Tom Smith"], *[[f"{n} Lee", 10.5] for n in FIRST[:5]], ["Uma Smith"], ["Vic Lee", 3.5]]
    lines.append(["Wim Lee", 4.5])
    layout = Layout(bold={1: {1, 2}, 2: {1}, 8: {1}}, styled_rows=20)
    (table,) = find_tables(Grid(lines, layout))
    assert table.groups == {2, 8}


DOUBTFUL = [["Name", "Pay"], ["Warehouse"], *[[f"{name} Lee", 1.5 + at] for at, name in enumerate(FIRST[:5])]]


def test_what_may_be_a_caption_stays_data_and_is_named():
    (table,) = find_tables(Grid(DOUBTFUL))
    assert (table.groups, [(one.kind, one.row) for one in table.choices]) == (frozenset(), [("group", 2)])


def test_what_may_be_a_caption_is_one_where_captions_are_wanted():
    (table,) = find_tables(Grid(DOUBTFUL), reading=ReadingOptions(group_rows="fill"))
    assert (table.groups, table.choices) == ({2}, ())


@pytest.mark.parametrize("text", ["Sales team", "Warehouse", "Tom Smith", "north"])
def test_a_lone_text_under_the_header_is_no_second_header(text):
    lines = [["Name", "Pay"], [text], *DOUBTFUL[2:]]
    (table,) = find_tables(Grid(lines))
    assert (table.header_rows, rows_in(table, lines)[0]) == ((1,), 2)


def local(value, style):
    """A number as people of a country write it."""
    if not isinstance(value, float):
        return value
    text = f"{value:,.2f}"
    swapped = text.translate(str.maketrans(",.", ".,"))
    return {"typed": value, "en": text, "de": swapped, "fr": swapped.replace(".", "\u202f"), "bare": f"{value:.2f}"}[
        style
    ]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("style", ["typed", "en", "de", "fr", "bare"])
def test_a_total_that_says_so_and_adds_up_is_left_out(tmp_path, word, style):
    dice = dice_of(word, style)
    columns = [dice.choice(["name", "city", "product"]), "price", "qty", "status"]
    rows = rows_of(dice, columns, dice.choice([2, 5, 40, 300]))
    rows.append([word, round(sum(row[1] for row in rows), 2), sum(row[2] for row in rows), None])
    lines = [columns, *[[local(value, style) for value in row] for row in rows]]
    (table,) = find_tables(Grid(lines))
    assert (table.totals, table.data_range.bottom) == ({len(lines)}, len(lines) - 1)
    assert all(one.sure for one in table.choices)


@pytest.mark.parametrize("count", [3, 90, 9_000])
def test_subtotals_and_the_total_of_all_are_left_out(count):
    dice = dice_of("subtotals", count)
    columns = ["product", "qty", "price"]
    lines, totals, every = [columns], set(), []
    for _ in range(3):
        rows = rows_of(dice, columns, count)
        every += rows
        lines += [*rows, ["Subtotal", sum(row[1] for row in rows), round(sum(row[2] for row in rows), 2)]]
        totals.add(len(lines))
    lines.append(["Total", sum(row[1] for row in every), round(sum(row[2] for row in every), 2)])
    (table,) = find_tables(Grid(lines))
    assert table.totals == {*totals, len(lines)}


def test_a_total_above_its_rows_is_left_out():
    rows = [["Ann", 120.5], ["Bob", 200.25], ["Cid", 30.0]]
    (table,) = find_tables(Grid([["Name", "Pay"], ["All in all: total", 350.75], *rows]))
    assert (table.totals, table.data_range.a1) == ({2}, "A3:B5")


@pytest.mark.parametrize("word", ["Average", "Mean", "Durchschnitt", "Moyenne"])
def test_a_mean_is_left_out_if_it_is_one(word):
    rows = members(8)
    mean = sum(row[2] for row in rows) / 8
    header = ["Name", "Start date", "Gross pay", "City"]
    kept = [find_tables(Grid([header, *rows, [word, None, value]]))[0].totals for value in (mean, mean + 7)]
    assert kept == [{10}, frozenset()]


@pytest.mark.parametrize("name", ["Mean Well PSU", "Balance bike", "Net curtain", "Sumo suit", "All Stars Shoes"])
@pytest.mark.parametrize("count", [3, 30])
def test_goods_that_are_called_like_totals_are_data(name, count):
    columns = ["product", "qty", "price"]
    lines = [columns, *rows_of(dice_of(name), columns, count), [name, 12, 99.5]]
    (table,) = find_tables(Grid(lines))
    assert rows_in(table, lines) == list(range(2, len(lines) + 1))
    assert not [one.message for one in table.choices if not one.sure]


@pytest.mark.parametrize("word", WORDS)
def test_what_is_called_a_total_and_is_none_stays_and_is_named(tmp_path, word):
    rows = [["Bolt", 10.5], ["Nut", 20.25], ["Hammer", 30.5], [word, 99.0]]
    done = run_job(tmp_path, [["item", "price"], *rows], fields=[{"name": "item"}, {"name": "price", "type": "money"}])
    assert len(done.column("item")) == 4
    assert [(f["code"], f["row"]) for f in done.findings] == [("total_assumed", 5)]


def test_a_sum_that_does_not_say_so_stays_and_is_named(tmp_path):
    rows = [["Bolt", 100], ["Nut", 200], ["Hammer", 300], [None, 600]]
    done = run_job(tmp_path, [["item", "price"], *rows], fields=[{"name": "item"}, {"name": "price", "type": "money"}])
    assert len(done.column("item")) == 4
    assert [(f["code"], f["row"]) for f in done.findings] == [("total_assumed", 5)]


def test_totals_that_are_wanted_need_no_word(tmp_path):
    rows = [["Bolt", 10.5], ["Nut", 20.25], ["Hammer", 30.5], ["Total", 99.0]]
    fields = [{"name": "item"}, {"name": "price", "type": "money"}]
    done = run_job(tmp_path, [["item", "price"], *rows], fields=fields, reading={"total_rows": "keep"})
    assert (len(done.column("item")), done.findings) == (4, [])


def test_a_line_drawn_between_rows_is_no_data():
    lines = [["Item", "Price"], ["Bolt", "10.50"], ["Nut", "20.25"], ["-----", "------"], ["Total", "30.75"]]
    (table,) = find_tables(Grid(lines))
    assert (table.asides, table.totals) == ({4}, {5})


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_without_a_header_keep_their_first_row(tmp_path, seed):
    dice = dice_of("headless", seed)
    columns = dice.sample(sorted(COLUMNS), dice.randint(2, 6))
    lines = rows_of(dice, columns, dice.choice([8, 20, 60]))
    (table,) = looked_at(tmp_path, lines, dice.choice(["csv", "xlsx"]), names=["foo", "bar"])
    right = table.header_rows == () and rows_in(table, lines) == list(range(1, len(lines) + 1))
    assert right or [one for one in table.choices if one.kind == "header" and not one.sure]


def test_a_first_record_is_no_header_in_silence(tmp_path):
    lines = [["Ann", "Oslo", "Norway"], ["Bob", "Rome", "Italy"], ["Cid", "Lima", "Peru"], ["Dora", "Bonn", "Germany"]]
    done = run_job(tmp_path, lines, fields=[{"name": n} for n in ("name", "city", "country")])
    assert "header_assumed" in (done.folder / "artifact.json").read_text()


def test_a_header_can_be_named(tmp_path):
    lines = [["Ann", "Oslo"], ["name", "city"], ["Bob", "Rome"], ["Cid", "Lima"], [], ["Dora", "Bonn"]]
    done = run_job(tmp_path, lines, fields=[{"name": n} for n in ("name", "city")], reading={"header_rows": [2]})
    assert done.column("name") == ["Bob", "Cid", "Dora"]


def test_stacked_headers_can_be_named():
    lines = [["Plan"], ["Gold", None, "Silver", None], ["low", "high", "low", "high"], [1, 2, 3, 4], [5, 6, 7, 8]]
    (table,) = find_tables(Grid(lines), reading=ReadingOptions(header_rows=(2, 3)))
    assert [one.name for one in table.columns] == ["Gold / low", "Gold / high", "Silver / low", "Silver / high"]
    assert (table.titles, table.data_range.a1) == ((1,), "A4:D5")


def test_a_named_header_row_that_is_blank_is_reported():
    (table,) = find_tables(
        Grid([["name", "pay"], ["Ann", 1.5], [], ["Bob", 2.5]]), reading=ReadingOptions(header_rows=(3,))
    )
    assert [(one.kind, one.sure) for one in table.choices] == [("header", False)]


def test_no_header_at_all_makes_every_row_data():
    (table,) = find_tables(Grid([["name", "pay"], ["Ann", 1.5], ["Bob", 2.5]]), reading=ReadingOptions(header="none"))
    assert (table.header_rows, table.data_range.a1) == ((), "A1:B3")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_of_a_table_is_exactly_one_thing(tmp_path, seed):
    """Titles, header, data with gaps, page headers and notes: each row of a table is one thing and no other."""
    dice = dice_of("everything", seed)
    columns = dice.sample(TEXTS, 2) + dice.sample(NUMBERS, dice.randint(1, 2)) + ["date"]
    lines = [[f"Report {seed}"], ["As of January"], []][: dice.choice([0, 1, 3])]
    lines.append(columns)
    for page in range(dice.randint(1, 3)):
        lines += [columns] * (page > 0 and dice.random() < 0.7)
        lines += rows_of(dice, columns, dice.randint(2, 30), blank=0.1)
        lines += [[]] * (dice.random() < 0.3)
    lines += [[None, None, 5, None, None, None, "stray"]] * (dice.random() < 0.3)
    lines += [[], ["Source: the books of the club, as they were kept."]] * (dice.random() < 0.5)
    for table in looked_at(tmp_path, lines, dice.choice(["csv", "xlsx"]), names=columns):
        kinds = [table.header_rows, rows_in(table, lines), table.totals, table.groups, table.asides, table.repeated]
        box = table.range
        inside = [n for n in range(box.top, box.bottom + 1) if any(lines[n - 1][box.left - 1 : box.right])]
        assert sorted(n for kind in kinds for n in kind) == inside
        assert not {*table.titles, *table.notes}.intersection(inside)


def test_a_header_written_again_is_called_so():
    columns = ["name", "qty", "price"]
    rows = rows_of(dice_of("pages"), columns, 30)
    (table,) = find_tables(Grid([columns, *rows[:15], columns, *rows[15:]]))
    assert (table.repeated, table.data_range.a1) == ({17}, "A2:C32")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("text", ["New York", "Unknown (see note)", "x", "No answer", "C3", "-"])
def test_records_whose_cells_all_hold_one_text_are_no_captions(tmp_path, text, seed):
    dice = dice_of("same", text, seed)
    pools = [["Boston", "Austin", "Denver", "Miami"], ["agree", "neutral", "disagree"], ["A-12", "B-77", "C-31"]]
    chosen = [dice.choice(pools) for _ in range(dice.choice([2, 2, 3, 4]))]
    lines = [[dice.choice(pool) for pool in chosen] for _ in range(dice.randint(4, 30))]
    for _ in range(dice.randint(1, 3)):
        lines.insert(dice.randint(0, len(lines) - 1), [text] * len(chosen))
    lines = [["alpha", "bravo", "gamma", "delta"][: len(chosen)], *lines]
    (table,) = looked_at(tmp_path, lines, "csv", lines[0])
    assert rows_in(table, lines) == list(range(2, len(lines) + 1))


@pytest.mark.parametrize("asked", ["drop", "keep", "fill"])
def test_the_manifest_line_that_settles_captions_does_settle_them(tmp_path, asked):
    lines = [
        ["name", "qty", "remark", "amount"],
        ["North", None, None, None],
        ["a", 1, "w1", 10],
        ["b", 2, "w2", 20],
        ["Total", 3, None, 30],
        ["South", None, None, None],
        ["c", 3, "w3", 5],
        ["d", 4, "w4", 7],
        ["Total", 7, None, 12],
        ["Grand total", 10, None, 42],
        ["Note: all in EUR", None, None, None],
    ]
    (table,) = looked_at(tmp_path, lines, "xlsx", lines[0], reading=ReadingOptions(group_rows=asked))
    told = [one.kind for one in table.choices if not one.sure]
    assert (sorted(table.groups), told) == {
        "drop": ([6], ["group"]),
        "keep": ([6], []),  # known as a caption, and kept all the same
        "fill": ([2, 6], []),
    }[asked]


def test_numbers_whose_sum_is_too_large_are_no_trouble(tmp_path):
    lines = [["name", "n"], *([f"item {n}", 1.7e308] for n in range(6)), ["all", 1.79e308]]
    done = run_job(tmp_path, lines, fields=[{"name": "name"}, {"name": "n", "type": "decimal"}])
    assert len(done.column("name")) == 7


def test_a_narrower_list_after_two_blank_rows_is_a_table_of_its_own(tmp_path):
    people = [[f"B-{n}", f"p{n}@acme.test", "white"] for n in range(8)]
    codes = [["Code", "Meaning"], ["A", "active since birth"], ["B", "broken"], ["C", "closed"]]
    tables = looked_at(tmp_path, [["member_id", "email", "colour"], *people, [], [], *codes], "xlsx")
    assert [table.range.a1 for table in tables] == ["A1:C9", "A12:B15"]


@pytest.mark.parametrize(("learnt", "header"), [((), []), (("Qzx",), [1])])
def test_a_short_table_of_texts_has_a_header_where_one_of_its_cells_was_confirmed_as_one(tmp_path, learnt, header):
    path = tmp_path / "g.csv"
    path.write_text("QZX,Calle\nM3,Main St\nM4,Oak Ave\n")
    names = DeclaredNames(HeadingSpellings([Field({"name": "member_id"}), Field({"name": "street"})], learnt))
    with open_book(path, name=path.name) as book:
        (table,) = find_tables(book.sheets[0], headings=names)
    assert list(table.header_rows) == header
