"""A row is data until proven otherwise: which rows of a table are records, remarks and totals, and what is reported."""

import pytest

from runner.engine.options import ReadingOptions
from runner.engine.structure import find_tables
from runner.engine.structure.tables import Proof
from tests.support.engine_jobs import run_job
from tests.unit.engine.structure.test_structure_families import rows_in
from tests.unit.engine.structure.test_structure_finding import Grid

COMPANIES = [
    ["Alpha Trading Ltd", "Cid", "2024-05-28"],
    ["Zeta Media Group", "Ann", "2024-05-10"],
    ["Theta Labs", "Bob", "2024-05-18"],
    ["Gamma Foods SA", "Cid", "2024-05-17"],
    ["Eta Logistics B.V.", "Cid", "2024-05-27"],
]
HEADER = ["company", "owner", "due"]


def table_of(lines, **options):
    (table,) = find_tables(Grid(lines), **options)
    return table


def doubts(table):
    return [(one.kind, one.row) for one in table.choices if not one.sure]


@pytest.mark.parametrize("text", ["Delta Air Freight Inc.", "Epsilon Bank AG", "This row has blanks", "Kappa"])
def test_a_last_row_with_one_cell_that_fits_its_column_is_a_record(text):
    table = table_of([HEADER, *COMPANIES, [text, None, None]])
    assert (table.data_range.bottom, table.left_out) == (7, {})


def test_entries_below_a_blank_row_are_records():
    lines = [HEADER, *COMPANIES, [None], ["Beta Systems GmbH", None, None], ["Epsilon Bank AG", None, None]]
    table = table_of(lines)
    assert rows_in(table, lines) == [*range(2, 7), 8, 9]


def test_tasks_without_owner_and_date_at_the_end_are_records():
    tasks = ["Order new chairs for the room", "Call the landlord about the heating", "Book the flights to Oslo"]
    lines = [["task", "owner", "due"], *([t, "Ann", "2024-05-01"] for t in tasks)]
    lines += [
        ["Clean the storage room", None, None],
        ["Ask the caretaker whether room 12 can be heated earlier", None, None],
    ]
    assert rows_in(table_of(lines), lines) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "text", ["Source: own data", "Prepared by Ann Lee", "* estimated", "Page 3 of 7", "1 Does not include branches."]
)
def test_a_remark_below_is_left_out_with_its_proof(tmp_path, text):
    lines = [HEADER, *COMPANIES, [None], [text]]
    done = run_job(tmp_path, lines, fields=[{"name": n} for n in HEADER])
    assert len(done.column("company")) == 5
    assert [(f["code"], f["severity"], f["row"]) for f in done.findings] == [("rows_note", "info", 8)]


def test_what_may_be_a_record_is_left_out_with_a_warning_that_a_setting_settles(tmp_path):
    lines = [["id", "city", "amount"], *([f"k-{n}", "Oslo", n + 0.5] for n in range(8)), ["k9,Rome,4.50", None, None]]
    fields = [{"name": "id", "required": True}, {"name": "city"}, {"name": "amount", "type": "decimal"}]
    told = {
        setting: run_job(tmp_path / setting, lines, fields=fields, reading={"note_rows": setting})
        for setting in ("auto", "drop", "keep")
    }
    assert [len(done.column("id")) for done in told.values()] == [8, 8, 9]
    assert [(f["code"], f["row"]) for f in told["auto"].findings] == [("rows_doubtful", 10)]
    assert '"note_rows": "keep"' in told["auto"].findings[0]["message"]
    assert [f["severity"] for f in told["drop"].findings] == ["info"]


def test_comments_between_records_are_no_records():
    lines = [["sample", "result"], *([f"S-{n:03}", n + 0.25] for n in range(12))]
    for at in (4, 8):
        lines.insert(at, ["// probe cleaned", None])
    table = table_of(lines)
    assert (table.asides, doubts(table)) == ({5, 9}, [])


def test_a_title_above_the_next_block_is_its_title():
    block = [["Name", "Member no", "Score"], ["Ann Lee", "M1", 5], ["Bob Ray", "M2", 7], ["Cid Fox", "M3", 9]]
    first, second = find_tables(Grid([*block, [None], ["Seniors"], *block]))
    assert (first.data_range.bottom, second.titles) == (4, (6,))


def test_a_bare_sum_under_dates_is_reported():
    days = [[f"2024-05-{n:02}", n * 10.5] for n in range(1, 9)]
    table = table_of([["day", "amount"], *days, [None, 378]])
    assert (doubts(table), table.data_range.bottom) == ([("total", 10)], 10)


def test_a_bare_sum_of_many_precise_numbers_is_left_out():
    rows = [["Bolt", 110.53], ["Nut", 220.25], ["Hammer", 330.5]]
    assert table_of([["item", "price"], *rows, [None, 661.28]]).totals == {5}


def test_the_manifest_drops_what_may_be_a_total():
    days = [[f"2024-05-{n:02}", n * 10.5] for n in range(1, 9)]
    table = table_of([["day", "amount"], *days, [None, 378]], reading=ReadingOptions(total_rows="drop"))
    assert (table.totals, doubts(table)) == ({10}, [])


@pytest.mark.parametrize("above", [True, False])
def test_sums_of_an_outline_are_reported_wherever_they_are(above):
    groups = [["North", 300, [("Apples", 100), ("Pears", 200)]], ["South", 500, [("Apples", 150), ("Pears", 350)]]]
    lines, sums = [["product", "amount"]], []
    for name, whole, parts in groups:
        block = [[name, whole], *map(list, parts)] if above else [*map(list, parts), [name, whole]]
        sums.append(len(lines) + (1 if above else len(block)))
        lines += block
    assert doubts(table_of(lines)) == [("total", row) for row in sums]


def test_stars_mark_totals_of_groups_of_any_size():
    lines = [
        [None, "cocd", "vendor", "amount"], [None, "1000", "100045", "1250.00"], [None, "1000", "100045", "-750.50"],
        ["*", None, "100045", "499.50"], [None, "1000", "100077", "800.10"], ["*", None, "100077", "800.10"],
        ["**", None, None, "1299.60"],
    ]  # fmt: skip
    assert table_of(lines).totals == {4, 6, 7}


def test_the_footer_of_an_invoice_is_no_item():
    items = [["1", "Desk", 2, 200], ["2", "Lamp", 1, 50], ["3", "Chair", 4, 100]]
    footer = [[None, "Subtotal", None, 350], [None, "Shipping", None, 9.9], [None, "VAT 19%", None, 68.38]]
    table = table_of([["pos", "description", "qty", "amount"], *items, *footer, [None, "Total", None, 428.28]])
    assert (table.totals, doubts(table)) == ({5, 6, 7, 8}, [])


def test_totals_of_several_levels_are_left_out():
    lines, number = [["place", "amount"]], 0
    sums = {"region": 0.0, "all": 0.0}
    for region in ("North", "South"):
        sums["region"] = 0.0
        for town in ("Oslo", "Rome"):
            amounts = [100.5 + (number := number + 1) * 7 for _ in range(3)]
            lines += [*([f"{town} {n}", a] for n, a in enumerate(amounts)), [f"Total {town}", sum(amounts)]]
            sums["region"] += sum(amounts)
        lines.append([f"Total {region}", sums["region"]])
        sums["all"] += sums["region"]
    lines.append(["Grand total", sums["all"]])
    table = table_of(lines)
    assert len(rows_in(table, lines)) == 12
    assert not doubts(table)


@pytest.mark.parametrize("amount", [50.0, 51.5])
def test_a_record_called_total_is_a_record(amount):
    rows = [
        ["2024-01-02", "C1", "Shell", 50.0],
        ["2024-01-05", "C1", "Total", amount],
        ["2024-01-09", "C2", "Aral", 61.2],
    ]
    table = table_of([["date", "card", "station", "amount"], *rows, ["2024-01-12", "C1", "BP", 44.1]])
    assert (table.totals, doubts(table)) == (frozenset(), [])


def test_statistics_below_a_list_are_left_out():
    scores = [13, 14, 51, 96, 54, 28]
    lines = [["Name", "Class", "Score"], *([f"Pupil {n}", "5a", s] for n, s in enumerate(scores))]
    lines += [["Mean", None, sum(scores) / 6], ["Min", None, 13], ["Max", None, 96]]
    assert table_of(lines).totals == {8, 9, 10}


def test_a_pupil_called_max_with_the_best_score_is_a_record():
    lines = [["Name", "Class", "Score"], ["Ann", "5a", 13], ["Bob", "5b", 14], ["Cid", "5a", 20], ["Max", "5b", 96]]
    table = table_of(lines)
    assert (table.data_range.bottom, doubts(table)) == (5, [])


def test_page_headings_between_records_are_no_records(tmp_path):
    head = ["id", "item", "city", "note"]

    def page(n):
        return [["Acme Ltd", None, None, "Printed 14.05.2024"], ["Stock list", None, None, f"Page {n} of 2"], head]

    records = [[f"k{n}", item, "Oslo", "ok"] for n, item in enumerate(["Desk", "Lamp", "Sofa", "Desk", "Lamp", "Bed"])]
    lines = [*page(1), *records[:4], *page(2), *records[4:]]
    done = run_job(tmp_path, lines, fields=[{"name": name} for name in head])
    assert done.column("id") == [f"k{n}" for n in range(6)]
    assert [(f["code"], f["row"]) for f in done.findings] == [("rows_repeated_header", 8), ("rows_outside", 1)]
    assert {f["severity"] for f in done.findings} == {"info"}


def test_sums_that_end_each_block_are_totals_whatever_they_are_called():
    lines = [["day", "driver", "km", "charge"]]
    for week in range(3):
        rows = [[f"2025-03-{7 * week + n:02}", f"Ann {n}", 1013 * n + week, 58.57 * n + week] for n in range(1, 4)]
        lines += [*rows, [f"Week {week}", None, sum(r[2] for r in rows), round(sum(r[3] for r in rows), 2)]]
    table = table_of(lines)
    assert (table.totals, doubts(table)) == ({5, 9, 13}, [])


ITEMS = [["Air filter", 36, 283.73], ["Bulb", 24, 66.88], ["Wiper", 11, 402.27], ["Plug", 23, 386.61]]


def test_rows_that_bridge_two_totals_are_its_footer_in_any_language():
    footer = [["Subtotal", None, 1139.49], ["Alennus", None, -56.97], ["ALV 25,5 %", None, 216.50]]
    table = table_of([["osa", "kpl", "summa"], *ITEMS, *footer, ["Maksettava", None, 1299.02]])
    assert (table.totals, doubts(table)) == ({6, 7, 8, 9}, [])


def test_rows_below_a_total_that_lack_what_it_lacks_are_reported():
    below = [["Total", None, 1139.49], ["Previous year", None, 1025.54], ["Change", None, 0.11]]
    table = table_of([["part", "pieces", "charge"], *ITEMS, *below])
    assert (table.totals, {row for _, row in doubts(table)}) == ({6}, {7})
    assert "rows 7 to 8" in next(one.message for one in table.choices if not one.sure)


def test_statistics_are_found_whatever_they_are_called():
    days = [["Dam", f"2025-03-{n:02}", 4.5 + n * 3 % 7, 81.4 - n * 5 % 11] for n in range(1, 9)]
    rain, wind = [row[2] for row in days], [row[3] for row in days]
    ends = [["en yüksek", None, max(rain), max(wind)], ["en düşük", None, min(rain), min(wind)]]
    table = table_of([["station", "day", "rain", "wind"], *days, *ends])
    assert (table.totals, doubts(table)) == ({10, 11}, [])


def test_numbers_below_marks_that_count_them_are_no_record():
    lines = [["Ann", "x", None], ["Bob", "x", "x"], ["Cid", "x", "x"], ["Dan", None, "x"], ["Eve", "x", None]]
    table = table_of([["guest", "day 1", "day 2"], *lines, ["Attended", "4", "3"]])
    assert table.totals == {7}


@pytest.mark.parametrize("name", ["Max", "Min", "Sum"])
def test_an_animal_called_max_whose_keeper_is_unknown_is_a_record(name):
    visits = [["Yusuf Nowak", "Toby", "2026-03-30", 639.77], [None, "Kira", "2026-03-30", 313.36],
              ["Jonas O'Neill", "Toby", "2025-08-08", 67.09], ["Jonas Ferrari", "Rex", "2025-01-03", 649.72],
              [None, name, "2025-10-01", 87.88], ["Daan Nowak", "Nala", "2026-03-11", 301.58]]  # fmt: skip
    table = table_of([["keeper", "animal", "visit", "charge"], *visits])
    assert (table.data_range.bottom, doubts(table)) == (7, [])


GUESTS = [[f"{a} {b}", f"Suite {n}", f"2025-11-{n:02}", n * 11.5]
          for n, (a, b) in enumerate(zip(("Nils", "Greta", "Daan", "Bruno", "Hugo", "Tessa", "Olga", "Sven"),
                                         ("Petit", "Garcia", "Berger", "Keller", "Abbott", "Quist", "Urban", "Tanner"),
                                         strict=True), 1)]  # fmt: skip
STAY = ["guest", "room", "arrival", "charge"]


@pytest.mark.parametrize("text", ["Day guests", "from here on entered by the night shift"])
def test_a_single_text_between_full_records_is_reported(text):
    table = table_of([STAY, *GUESTS[:4], [text, None, None, None], *GUESTS[4:]])
    assert 6 in table.left_out or 6 in {row for _, row in doubts(table)}


@pytest.mark.parametrize("row", [["Thanks, Maria"], [None, None, None, "05.05.2025"], ["v2.1 final"], ["1/1"]])
def test_a_single_cell_below_a_blank_row_is_reported(row):
    table = table_of([STAY, *GUESTS, [None], row])
    assert 11 in table.left_out or 11 in {row for _, row in doubts(table)}


def test_a_long_name_is_no_remark():
    long = "Association of Retired Railway Workers, Upper Valley Branch (12 persons)"
    table = table_of([STAY, *GUESTS, [long, None, None, None], ["n.n.", None, None, None]])
    assert all(row.proof is None for row in table.left_out.values())


ANSWERS = [["ok", "Faro", "33"], ["none", "Hasselt", "83"], ["Total chaos", "York", "18"], ["ok", "Bilbao", "44"],
           ["none", "Trier", "46"], ["Total chaos", "Sion", "46"], ["none", "Lyon", "61"]]  # fmt: skip


def test_a_text_that_records_have_too_is_a_record_where_it_is_alone_and_so_are_others_of_its_column():
    lines = [["answer", "city", "score"], ["More seats please!", None, None], *ANSWERS[:3], ["Total chaos", None, None]]
    lines += [*ANSWERS[3:], ["Never again.", None, None], ANSWERS[0]]
    assert rows_in(table_of(lines), lines) == list(range(2, len(lines) + 1))


def test_an_answer_that_begins_like_a_total_is_a_record_where_others_leave_all_but_the_answer_blank():
    lines = [["answer", "city", "score"]]
    for n, answer in enumerate(ANSWERS * 3):
        lines += [answer] if n % 2 else [answer, [answer[0], None, None]]
    table = table_of(lines)
    assert (rows_in(table, lines), doubts(table)) == (list(range(2, len(lines) + 1)), [])


def test_captions_that_only_words_speak_for_are_left_out_with_a_warning(tmp_path):
    lines = [["item", "price"], ["from the garden", None], *([f"A{n}", n * 3] for n in range(4))]
    lines += [["from the shop", None], *([f"B{n}", n * 7] for n in range(4))]
    done = run_job(tmp_path, lines, fields=[{"name": "item"}, {"name": "price", "type": "integer"}])
    left = [f for f in done.findings if f["code"] in ("rows_group", "rows_doubtful")]
    assert [f["row"] for f in left] == [2, 7]


def test_a_caption_in_bold_or_of_a_place_of_its_own_needs_no_warning():
    lines = [["item", "price"], ["Garden:", None], *([f"A{n}", n * 3] for n in range(4))]
    lines += [["Shop:", None], *([f"B{n}", n * 7] for n in range(4))]
    table = table_of(lines)
    assert {row.proof for row in table.left_out.values()} == {Proof.HEADS}


def test_a_sentence_below_is_not_left_out_silently_where_other_records_have_a_single_cell():
    lines = [["answer", "city", "score"], ["none", None, None], *ANSWERS[:2]]
    lines.append(["It took far too long until somebody answered the phone, and then I was cut off.", None, None])
    table = table_of(lines)
    assert 5 not in table.left_out or table.left_out[5].proof is None


def test_a_title_that_is_but_a_word_such_as_legend_is_not_left_out_silently():
    books = [["Source Code", "Pablo Abbott", "1968", "B32"], ["Notes on a Scandal", "Tessa Marchetti", "1997", "A53"],
             ["The Sum of All Fears", "Edda Marchetti", "1990", "F56"], ["Page Eight", "Pablo Tanner", "1958", "C45"]]  # fmt: skip
    lines = [
        ["title", "author", "year", "shelf"],
        *books,
        ["A Note of Hope", None, None, None],
        ["Legend", None, None, None],
    ]
    table = table_of(lines)
    assert 7 not in table.left_out or table.left_out[7].proof is None
