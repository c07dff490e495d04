"""What the structure pass finds in sheets that people make."""

from datetime import date

import pytest

from runner.engine.reading import Layout
from runner.engine.structure import TableDetector, find_tables


class Grid:
    """A sheet made of lists; None and missing cells are blank."""

    name = "Sheet1"
    index = 0
    visibility = "visible"

    def __init__(self, lines, layout=None):
        self.lines = lines
        self._layout = layout or Layout()

    def rows(self):
        for number, line in enumerate(self.lines, 1):
            values = list(line)
            while values and values[-1] is None:
                values.pop()
            if values:
                yield number, values

    def layout(self):
        return self._layout


PEOPLE = ["Ann Lee", "Bob Ray", "Cid Fox", "Dora May", "Eve Sun", "Finn Oak", "Gus Elm", "Hana Ito"]
HEADER = ["Name", "Start date", "Gross pay", "City"]


def members(count=8):
    towns = ["Oslo", "Rome", "Lima", "Bonn"]
    return [[PEOPLE[at % 8], date(2024, 1 + at % 12, 3), 1000.5 + at * 10, towns[at % 4]] for at in range(count)]


def shifted(lines, columns):
    return [[None] * columns + line for line in lines]


def only_table(lines, layout=None):
    tables = find_tables(Grid(lines, layout))
    assert len(tables) == 1, [table.as_dict() for table in tables]
    return tables[0]


def test_plain_table_at_a1():
    table = only_table([HEADER, *members()])
    assert (table.range.a1, table.header_rows, table.data_range.a1) == ("A1:D9", (1,), "A2:D9")


def test_names_come_from_the_header():
    assert [one.name for one in only_table([HEADER, *members()]).columns] == HEADER


def test_offset_table_below_titles():
    lines = [["Members of the club"], ["As of January 2024"], [], *shifted([HEADER, *members()], 2)]
    table = only_table(lines)
    assert (table.range.a1, table.header_rows) == ("C4:F12", (4,))


def test_title_rows_are_named():
    lines = [["Members of the club"], ["As of January 2024"], [], HEADER, *members()]
    assert only_table(lines).titles == (1, 2)


def test_trailing_notes_stay_out():
    lines = [
        HEADER,
        *members(),
        [],
        ["Source: the club's own list, reviewed each year."],
        ["Note: pay before tax."],
    ]
    assert only_table(lines).range.a1 == "A1:D9"


def test_totals_row_stays_out_of_the_data():
    table = only_table([HEADER, *members(), ["Total", None, 8284.0, None]])
    assert (table.data_range.a1, table.totals) == ("A2:D9", {10})


def test_group_rows_stay_out_of_the_data():
    lines = [HEADER, ["North region"], *members(4), ["South region"], *members(4)]
    table = only_table(lines)
    assert table.groups == {2, 7}


def test_blank_rows_inside_do_not_end_the_table():
    lines = [HEADER, *members(4), [], *members(4), [], *members(3)]
    assert only_table(lines).data_range.a1 == "A2:D14"


def test_blank_column_inside_does_not_part_the_table():
    lines = [[*line[:2], None, *line[2:]] for line in [HEADER, *members()]]
    assert only_table(lines).range.a1 == "A1:E9"


def test_blank_column_gets_a_generated_name():
    lines = [[*line[:2], None, *line[2:]] for line in [HEADER, *members()]]
    column = only_table(lines).columns[2]
    assert (column.name, column.generated) == ("Column C", True)


def test_tables_side_by_side():
    left = [HEADER, *members(8)]
    right = [["Plan", "Price"], ["Gold", 10.5], ["Silver", 8.25], ["Bronze", 5.0]]
    lines = [a + [None] + (right[at] if at < len(right) else []) for at, a in enumerate(left)]
    assert [one.range.a1 for one in find_tables(Grid(lines))] == ["A1:D9", "F1:G4"]


def test_tables_side_by_side_of_one_height():
    right = [["Plan", "Price"], *[[f"Plan {at}", at * 1.5] for at in "abcdefgh" for at in [ord(at)]]]
    lines = [[*a, None, *b] for a, b in zip([HEADER, *members()], right, strict=True)]
    assert [one.range.a1 for one in find_tables(Grid(lines))] == ["A1:D9", "F1:G9"]


def test_stacked_tables_with_their_own_headers():
    lines = [HEADER, *members(), [], ["Plan", "Price"], ["Gold", 10.5], ["Silver", 8.25], ["Bronze", 5.0]]
    assert [one.range.a1 for one in find_tables(Grid(lines))] == ["A1:D9", "A11:B14"]


def test_stacked_header_is_joined():
    top = ["Name", "2023", None, "2024", None]
    leaf = [None, "Hours", "Pay", "Hours", "Pay"]
    lines = [top, leaf, *[[name, 10 + at, 100.5 + at, 12 + at, 130.5 + at] for at, name in enumerate(PEOPLE)]]
    table = only_table(lines)
    assert table.header_rows == (1, 2)
    assert [one.name for one in table.columns] == [
        "Name",
        "2023 / Hours",
        "2023 / Pay",
        "2024 / Hours",
        "2024 / Pay",
    ]


def test_no_header_gives_generated_names():
    lines = [[at, 3.5 * at, date(2024, 1, 1 + at), 100 - at] for at in range(1, 12)]
    table = only_table(lines)
    assert table.generated_header
    assert [one.name for one in table.columns] == ["Column A", "Column B", "Column C", "Column D"]
    assert table.data_range.a1 == "A1:D11"


def test_header_only():
    table = only_table([HEADER])
    assert (table.header_rows, table.data_range) == ((1,), None)


def test_one_column_list():
    table = only_table([["Email"], *[[f"user{at}@example.com"] for at in range(12)]])
    assert (table.header_rows, table.data_range.a1) == ((1,), "A2:A13")


def test_all_text_table():
    lines = [["First name", "Last name", "City", "Status"]]
    lines += [[*name.split(), town, "active"] for name, town in zip(PEOPLE, ["Oslo", "Rome"] * 4, strict=True)]
    table = only_table(lines)
    assert (table.header_rows, table.range.a1) == ((1,), "A1:D9")


def test_year_columns_are_a_header():
    lines = [["Region", 2019, 2020, 2021, 2022], *[[name, 1.5, 2.25, 3.5, 4.75] for name in PEOPLE]]
    assert only_table(lines).header_rows == (1,)


def test_empty_sheet_has_no_table():
    assert find_tables(Grid([])) == []


def test_blank_texts_are_blank():
    assert find_tables(Grid([[" ", "\t"], ["  "]])) == []


def test_sparse_far_cell_does_not_widen_the_table():
    lines = [HEADER, *members(), *[[] for _ in range(40)], [None] * 30 + ["x"]]
    assert find_tables(Grid(lines))[0].range.a1 == "A1:D9"


def test_huge_homogeneous_sheet_keeps_few_rows():
    detector = TableDetector()
    detector.add(1, HEADER)
    for number, line in enumerate(members(20_000), 2):
        detector.add(number, line)
    (table,) = detector.tables()
    assert table.range.a1 == "A1:D20001"
    assert len(detector.rows(Layout())) < 200


def test_total_deep_in_a_huge_sheet_is_left_out():
    lines = [HEADER, *members(6_000)]
    table = only_table([*lines, ["Total", None, sum(line[2] for line in lines[1:]), None]])
    assert table.totals == {6_002}
    assert table.data_range.bottom == 6_001


def test_second_table_deep_in_a_huge_sheet_is_found():
    detector = TableDetector()
    detector.add(1, HEADER)
    for number, line in enumerate(members(3_000), 2):
        detector.add(number, line)
    for number, line in enumerate(
        [["Plan", "Price", "Since"], *[[f"P{at}", at, 2000 + at] for at in range(20)]], 3_004
    ):
        detector.add(number, line)
    assert [one.range.a1 for one in detector.tables()] == ["A1:D3001", "A3004:C3024"]


def test_csv_texts_read_like_values():
    lines = [[str(value) for value in line] for line in [HEADER, *members(), ["Total", "", "8284.0"]]]
    table = only_table([[one or None for one in line] for line in lines])
    assert (table.header_rows, table.totals) == ((1,), {10})


def test_rules_turn_a_row_into_what_they_say():
    lines = [HEADER, *members(4), ["void", date(2024, 1, 1), 1.0, "void"], *members(4)]

    def scores(number, values):
        return {"total": 20.0} if values[0] == "void" else {}

    (table,) = find_tables(Grid(lines), row_scores=scores)
    assert 6 in table.left_out


def test_rules_reach_rows_deep_in_a_huge_sheet():
    detector = TableDetector(row_scores=lambda number, values: {"group": 20.0} if values[0] == "-- page --" else {})
    detector.add(1, HEADER)
    for number, line in enumerate(members(3_000), 2):
        detector.add(number, ["-- page --"] if number == 2_000 else line)
    (table,) = detector.tables()
    assert table.groups == {2_000}


def test_reasons_hold_no_cell_value():
    lines = [["Members of the club"], HEADER, *members(), ["Total", None, 8284.0]]
    why = " ".join(only_table(lines).why)
    assert why
    assert not [text for text in [*PEOPLE, *HEADER, "Members of the club"] if text in why]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_data_rows_are_enough(count):
    table = only_table([HEADER, *members(count)])
    assert (table.header_rows, table.data_range.a1) == ((1,), f"A2:D{1 + count}")


def test_single_cells_right_of_the_header_are_no_columns():
    lines = [HEADER, *members(40)]
    lines[12] = [*lines[12], None, "?"]
    assert only_table(lines).range.a1 == "A1:D41"


def test_cells_far_to_the_right_alone_are_no_table():
    assert find_tables(Grid([[None] * 600 + ["x"], [None] * 700 + [1]])) == []


def test_very_wide_table_keeps_all_its_columns():
    lines = [[f"Field {at}" for at in range(700)], *[[at * n for at in range(700)] for n in range(1, 6)]]
    table = only_table(lines)
    assert table.range.right == 700
    assert [one.name for one in table.columns] == lines[0]


YEARS = ["Reoffending by previous offences"], [None, None, *range(2006, 2011), None, "Change"]
BLOCKS = [
    [[caption], ["Some", None, 12 + at, 13, 11.5, 14, 15, None, -2.5 - at], ["All", None, 19, 18 + at, 21, 22, 17, None, 4]]
    for at, caption in enumerate(("No offences", "One or two offences", "Three to six offences"))
]  # fmt: skip


def captioned(*above):
    return [*(list(line) for line in YEARS), *above, *(line for block in BLOCKS for line in block)]


def test_a_name_of_the_labels_below_the_header_row_is_a_header_if_a_caption_follows():
    table = only_table(captioned(["Previous offence"]))
    assert (table.header_rows, table.columns[0].name) == ((2, 3), "Previous offence")
    assert table.groups == {4, 7, 10}


def test_a_single_caption_below_a_header_row_stays_one():
    table = only_table(captioned())
    assert (table.header_rows, table.groups) == ((2,), {3, 6, 9})


def test_below_a_named_column_the_first_of_two_captions_is_no_header():
    lines = captioned(["Offenders of all ages"])
    lines[1][0] = "Offence"
    assert only_table(lines).header_rows == (2,)
