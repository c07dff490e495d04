"""A file that does not keep its own shape is read right where only one reading fits, else its rows are reported."""

from datetime import date, time

import openpyxl
import pytest

from tests.support.engine_jobs import run_job, workbook

FIELDS = [
    {"name": "id", "type": "text"},
    {"name": "name", "type": "text"},
    {"name": "city", "type": "text"},
    {"name": "amount", "type": "decimal"},
]
PEOPLE = [
    ["k1", "Ann Lee", "Oslo", 1.5],
    ["k2", "Bob Ray", "Rome", 2.5],
    ["k3", "Cid Fox", "Lima", 3.5],
    ["k4", "Dora May", "Bonn", 4.5],
    ["k5", "Eve Orr", "Cork", 5.5],
    ["k6", "Finn Poe", "Gent", 6.5],
]
HEAD = "id,name,city,amount"
LINES = [",".join(map(str, row)) for row in PEOPLE]


def job(folder, lines, fields=FIELDS, **manifest):
    """A job over a text file; its content decides the format."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "in.xlsx").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run_job(folder, fields=fields, **manifest)


def warnings(out):
    return [(f["code"], f.get("row")) for f in out.findings if f["severity"] != "info"]


def changed(at, *lines):
    """The file with other lines instead of its n-th record."""
    return [HEAD, *LINES[: at - 1], *lines, *LINES[at:]]


def test_whole_lines_in_quotes_are_read_as_lines(tmp_path):
    quoted = [f'"{line}"' for line in LINES]
    assert job(tmp_path / "a", [HEAD, *quoted]).rows()[1:] == PEOPLE
    assert job(tmp_path / "b", [f'"{HEAD}"', *quoted]).rows()[1:] == PEOPLE
    inner = ['"' + line.replace("Dora May", '""May, Dora""') + '"' for line in LINES]
    out = job(tmp_path / "c", [HEAD, *inner])
    assert out.column("name")[3] == "May, Dora"
    assert warnings(out) == []


def test_one_line_in_quotes_is_read_and_reported(tmp_path):
    out = job(tmp_path, changed(4, f'"{LINES[3]}"'))
    assert out.rows()[1:] == PEOPLE
    assert warnings(out) == [("line_quoted", 5)]


def test_a_single_column_of_quoted_names_stays_one_column(tmp_path):
    lines = ["name", *(f'"{last}, {first}"' for first, last in (row[1].split() for row in PEOPLE))]
    out = job(tmp_path, lines, [{"name": "name", "type": "text"}])
    assert out.column("name")[0] == "Lee, Ann"


@pytest.mark.parametrize("other", [";", "\t", "|"])
def test_rows_with_another_delimiter_are_read_and_reported(tmp_path, other):
    out = job(tmp_path, [HEAD, *LINES[:3], *(line.replace(",", other) for line in LINES[3:])])
    assert out.rows()[1:] == PEOPLE
    assert warnings(out) == [("delimiter_mixed", 5), ("delimiter_mixed", 6), ("delimiter_mixed", 7)]


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("k4,Dora", "May,Bonn,4.5"), "Dora\nMay"),
        (("k4,", "Dora May,Bonn,4.5"), "Dora May"),
        (("k4,Dora", "M", "ay,Bonn,4.5"), "Dora\nM\nay"),
    ],
)
def test_a_record_that_a_line_break_cuts_is_joined_and_reported(tmp_path, lines, name):
    out = job(tmp_path, changed(4, *lines))
    assert out.rows()[1:] == [[row[0], name if row[0] == "k4" else row[1], *row[2:]] for row in PEOPLE]
    assert warnings(out) == [("line_joined", 5)]


def test_rows_below_a_joined_record_keep_their_numbers(tmp_path):
    out = job(tmp_path, [*changed(4, "k4,Dora", "May,Bonn,4.5"), "k7,Gil Roe,Kiel,none"])
    assert out.cells("type_error") == ["D9"]


@pytest.mark.parametrize("short", ["k4,Bonn,4.5", "k4,Dora May,4.5", "Dora May,Bonn,4.5", "k4,4.5"])
def test_a_row_with_a_cell_too_few_is_reported(tmp_path, short):
    assert warnings(job(tmp_path, changed(4, short))) == [("short_row", 5)]


def test_a_row_that_moved_left_in_a_workbook_is_reported(tmp_path):
    rows = [["id", "name", "city", "amount"], *PEOPLE]
    rows[4] = ["k4", "Bonn", 4.5]
    assert warnings(run_job(tmp_path, rows, fields=FIELDS)) == [("short_row", 5)]


@pytest.mark.parametrize("short", ["k4,Dora May,Bonn", "k4,Dora May", "k4", "k4,Dora May,Bonn,", "k4,,Bonn"])
def test_rows_that_lack_only_their_last_values_are_everyday(tmp_path, short):
    assert warnings(job(tmp_path, changed(4, short))) == []


def test_neighbours_that_both_lack_their_last_values_are_not_joined(tmp_path):
    out = job(tmp_path, [HEAD, *LINES[:2], "k3,Cid Fox", "k4,Dora May,Bonn", *LINES[4:]])
    assert [row[0] for row in out.rows()[1:]] == ["k1", "k2", "k3", "k4", "k5", "k6"]
    assert warnings(out) == []


def test_second_lines_of_records_are_reported(tmp_path):
    lines = ["id,name,amount"]
    for number, (name, place) in enumerate((("Ann", "Main St 5"), ("Bob", "Via Roma 7"), ("Cid", "Av 9")), 1):
        lines += [f"{number},{name},{number}.5", f",{place},"]
    fields = [FIELDS[0], FIELDS[1], FIELDS[3]]
    assert warnings(job(tmp_path, lines, fields)) == [
        ("record_assumed", 3),
        ("record_assumed", 5),
        ("record_assumed", 7),
    ]


def test_lines_of_orders_under_names_of_their_own_are_reported(tmp_path):
    lines = ["order,customer,city", "SO-1,Ann Lee,Oslo", ",item,colour", ",Lamp,red", ",Desk,blue"]
    lines += ["SO-2,Bob Ray,Rome", ",item,colour", ",Sofa,grey"]
    fields = [{"name": name, "type": "text"} for name in ("order", "customer", "city")]
    assert warnings(job(tmp_path / "a", lines, fields)) == [("record_assumed", 3), ("record_assumed", 7)]
    fields += [{"name": name, "type": "text"} for name in ("item", "colour")]
    assert ("record_assumed", 3) in warnings(job(tmp_path / "b", lines, fields))


def test_rows_of_a_group_that_name_it_once_are_not_reported(tmp_path):
    lines = [
        "order,item,colour",
        "SO-1,Lamp,red",
        ",Desk,blue",
        ",Bed,red",
        "SO-2,Sofa,grey",
        ",Desk,red",
        "SO-3,Bed,blue",
    ]
    fields = [{"name": name, "type": "text"} for name in ("order", "item", "colour")]
    assert warnings(job(tmp_path, lines, fields)) == []


def test_a_header_over_two_columns_is_reported(tmp_path):
    rows = [
        ["id", "name", None, "city"],
        ["k1", "Ann", "Lee", "Oslo"],
        ["k2", "Bob", "Ray", "Rome"],
        ["k3", "Cid", "Fox", "Lima"],
    ]
    path = workbook(tmp_path / "in.xlsx", {"S": rows})
    book = openpyxl.load_workbook(path)
    book.active.merge_cells("B1:C1")
    book.save(path)
    assert run_job(tmp_path, fields=FIELDS[:3]).cells("header_shared") == ["B1"]


CODES = ["10-25A", "77-88", "12-40", "33-99", "10-12B", "4-71"]


@pytest.mark.parametrize("made", ["1-Feb", "Mar-01", "12-Dec", "02-Okt"])
def test_dates_among_codes_of_a_text_file_are_reported(tmp_path, made):
    lines = ["part,qty", *(f"{code},{n}" for n, code in enumerate(CODES)), f"{made},7"]
    fields = [{"name": "part", "type": "text"}, {"name": "qty", "type": "integer"}]
    assert job(tmp_path, lines, fields).cells("date_among_codes") == ["A8"]


def test_dates_among_codes_of_a_workbook_are_reported(tmp_path):
    rows = [["part", "qty"], *([code, n] for n, code in enumerate(CODES)), [date(2024, 2, 1), 7]]
    fields = [{"name": "part", "type": "text"}, {"name": "qty", "type": "integer"}]
    assert run_job(tmp_path, rows, fields=fields).cells("date_among_codes") == ["A8"]


def test_dates_written_as_text_among_dates_are_no_codes(tmp_path):
    rows = [["day", "qty"], ["1 May 2024", 1], ["02.05.2024", 2], ["03.05.2024", 3], [date(2024, 5, 4), 7], ["n/a", 3]]
    fields = [{"name": "day", "type": "text"}, {"name": "qty", "type": "integer"}]
    assert run_job(tmp_path, rows, fields=fields).cells("date_among_codes") == []


def test_shortened_numbers_in_a_text_field_are_reported(tmp_path):
    lines = ["id,amount", "4006381333931,1", "4.00638E+12,2", "4006381333955,3"]
    assert job(tmp_path, lines, [FIELDS[0], FIELDS[3]]).cells("digits_lost") == ["A3"]


def test_entities_in_a_text_file_are_reported(tmp_path):
    out = job(tmp_path, changed(4, "k4,M&uuml;ller &amp; Co,Bonn,4.5"))
    assert out.column("name")[3] == "M&uuml;ller &amp; Co"
    assert warnings(out) == [("entities", 5)]


def test_a_file_of_which_most_lines_have_a_second_delimiter_is_read(tmp_path):
    out = job(tmp_path, [HEAD, *LINES[:3], *(line.replace(",", "\t") for line in [*LINES[3:], *LINES[3:]])])
    assert out.column("id") == ["k1", "k2", "k3", "k4", "k5", "k6", "k4", "k5", "k6"]


@pytest.mark.parametrize("sign", ["# ", "% ", "// ", "-- ", ";; ", "REM "])
def test_comments_between_records_are_left_out_or_reported(tmp_path, sign):
    out = job(tmp_path, [HEAD, *LINES[:3], f"{sign}probe cleaned", *LINES[3:]])
    assert out.rows()[1:] == PEOPLE or 5 in [row for _, row in warnings(out)]


def test_page_headings_above_a_repeated_header_are_left_out_or_reported(tmp_path):
    heading = ["Acme Ltd,,,Printed 14.05.2024", "Stock list,,,Page {} of 2"]
    page = [line.format(2) for line in heading]
    out = job(tmp_path, [*(line.format(1) for line in heading), HEAD, *LINES[:3], *page, HEAD, *LINES[3:]])
    assert out.rows()[1:] == PEOPLE or {7, 8} <= {row for _, row in warnings(out)}


def test_a_second_row_of_headers_is_reported(tmp_path):
    assert ("record_assumed", 2) in warnings(job(tmp_path, [HEAD, "Nr,Naam,Plaats,Bedrag", *LINES]))


def test_a_header_that_is_cut_is_reported(tmp_path):
    out = job(tmp_path, [f"{HEAD},{'x' * 300}", *(f"{line},y" for line in LINES)])
    assert out.cells("header_cut") == ["E1"]


def test_a_sign_that_records_start_with_is_no_comment(tmp_path):
    lines = ["name,city,amount", "# 1 Desk,Oslo,1", "# 2 Lamp,Rome,2", "# 3 Sofa", "# 4 Bed,Lima,4"]
    assert len(job(tmp_path, lines, FIELDS[1:]).rows()) == 5


@pytest.mark.parametrize("mark", ['"', "\u3003", "''", "ditto", '-"-'])
def test_ditto_marks_are_read_as_the_value_above(tmp_path, mark):
    rows = [["id", "name", "city", "amount"], *map(list, PEOPLE)]
    rows[3][1] = rows[4][1] = rows[4][2] = rows[6][2] = mark
    out = run_job(tmp_path, rows, fields=FIELDS)
    assert out.column("name")[1:4] == ["Bob Ray", "Bob Ray", "Bob Ray"]
    assert out.column("city")[2:] == ["Lima", "Lima", "Cork", "Cork"]
    assert warnings(out) == []
    assert out.cells("ditto_mark") == ["B4", "B5", "C5", "C7"]


def test_a_quote_that_is_no_more_than_a_value_is_kept_and_reported(tmp_path):
    rows = [["id", "name", "city", "amount"], *map(list, PEOPLE)]
    rows[3][1] = '"'
    out = run_job(tmp_path, rows, fields=FIELDS)
    assert out.column("name")[2] == '"'
    assert warnings(out) == [("ditto_mark", 4)]


def test_a_ditto_mark_in_the_first_record_is_kept_and_reported(tmp_path):
    rows = [["id", "name", "city", "amount"], *map(list, PEOPLE)]
    rows[1][1] = "ditto"
    out = run_job(tmp_path, rows, fields=FIELDS)
    assert out.column("name")[0] == "ditto"
    assert warnings(out) == [("ditto_mark", 2)]


def test_rows_of_another_kind_are_reported(tmp_path):
    lines = ["type,order,name,city"]
    for n in range(4):
        lines += [f"H,B{n},Ann Lee,Oslo", f"D,Lamp,{n},7.{n}"]
    fields = [{"name": name, "type": "text"} for name in ("order", "name", "city")]
    assert warnings(job(tmp_path, lines, fields)) == [("record_assumed", n) for n in (3, 5, 7, 9)]


def test_times_among_scores_are_reported(tmp_path):
    rows = [["team", "result"], ["Oslo", time(3, 1)], ["Rome", "25:30"], ["Lima", time(2, 2)], ["Bonn", "3:1"]]
    fields = [{"name": "team", "type": "text"}, {"name": "result", "type": "text"}]
    assert run_job(tmp_path, rows, fields=fields).cells("date_among_codes") == ["B2", "B4"]


@pytest.mark.parametrize(
    ("text", "is_told"),
    [("Tuesday, 18 March 2024", True), ("Monday, 18 March 2024", False), ("Mo. 18.03.2024", False), ("Di 18.03.2024", True),
     ("18 mar 2024", False), ("lundi 18 mars 2024", False)],
)  # fmt: skip
def test_a_weekday_that_contradicts_its_date_is_reported(tmp_path, text, is_told):
    lines = ["name;day", f"Ann;{text}", "Bob;19.03.2024", "Cid;20.03.2024"]
    out = job(tmp_path, lines, [FIELDS[1], {"name": "day", "type": "date"}])
    assert out.cells("weekday_contradicts") == (["B2"] if is_told else [])


def test_fields_listed_one_below_the_other_are_reported(tmp_path):
    lines = []
    for row in PEOPLE[:4]:
        lines += [f"name,{row[1]}", f"city,{row[2]}", f"amount,{row[3]}", ""]
    assert ("header_assumed", 1) in warnings(job(tmp_path, lines))


def test_rows_that_are_all_one_cell_shorter_than_the_header_are_reported_at_the_header(tmp_path):
    out = job(tmp_path, ["id,name,reserved,city,amount", *LINES])
    assert ("short_row", 1) in warnings(out)


def test_a_few_rows_that_moved_right_in_a_workbook_are_reported_and_not_the_others(tmp_path):
    rows = [
        ["id", "name", "city", "amount"],
        *PEOPLE,
        ["k7", None, "Gil Roe", "Kiel", 7.5],
        ["k8", None, "H", "Ulm", 8.5],
    ]
    out = run_job(tmp_path, rows, fields=FIELDS)
    assert [w for w in warnings(out) if w[0].endswith("_row")] == [("wide_row", 8), ("wide_row", 9)]


@pytest.mark.parametrize("nothing", ["n/a", "-", "N/A"])
def test_a_cell_that_says_there_is_no_value_has_not_moved(tmp_path, nothing):
    rows = [["name", "pay", "remarks"], *([f"Ann {'xyz'[n % 3]}", str(n * 7), "late"] for n in range(8))]
    rows[5] = ["Bob y", nothing, None]
    fields = [{"name": "name"}, {"name": "pay", "clean": ["nullify"]}, {"name": "remarks"}]
    assert warnings(run_job(tmp_path, rows, fields=fields)) == []
