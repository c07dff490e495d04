"""The parts of the structure pass, each on its own."""

import json
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine import scan
from runner.engine.common.a1 import letters
from runner.engine.reading import NO_CACHED_VALUE, CellError, DeclaredTable, Layout
from runner.engine.structure import TableDetector, find_tables
from runner.engine.structure.facts import CellKind, Mark, cell_facts, row_of
from runner.engine.structure.header_rows import columns
from runner.engine.structure.keeping import Usual
from tests.support.effort import examples


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, CellKind.BLANK),
        ("  ", CellKind.BLANK),
        ("Name", CellKind.TEXT),
        (3, CellKind.NUMBER),
        ("1,234.50", CellKind.NUMBER),
        ("(12.5%)", CellKind.NUMBER),
        ("£31.00", CellKind.NUMBER),
        ("2019/20", CellKind.NUMBER),
        (True, CellKind.BOOL),
        (date(2024, 1, 2), CellKind.DATE),
        ("2024-01-02", CellKind.DATE),
        ("3 Jan 2024", CellKind.DATE),
        ("n/a", CellKind.FILLER),
        ("..", CellKind.FILLER),
        (CellError("#N/A"), CellKind.ERROR),
        (float("nan"), CellKind.NUMBER),
        (float("inf"), CellKind.NUMBER),
    ],
)
def test_kind_of_a_cell(value, kind):
    assert cell_facts(value)[0] == kind


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Total revenue", Mark.TOTAL),
        ("Source: the office", Mark.NOTE),
        ("Table 3. Something", Mark.TITLE),
        ("Beef:", Mark.COLON),
        ("1 Includes others", Mark.FOOTNOTE),
        ("January", Mark.PERIOD),
        ("member_id", Mark.CODE),
        ("----------", Mark.RULE),
    ],
)
def test_mark_of_a_text(text, mark):
    assert cell_facts(text)[2] & mark


def test_column_letters():
    assert [letters(one) for one in (1, 26, 27, 702, 703, 16384)] == ["A", "Z", "AA", "ZZ", "AAA", "XFD"]


def head(*lines):
    return [row_of(number, line, ordinal=number - 1, gap=0) for number, line in enumerate(lines, 1)]


def test_merged_caption_spans_what_it_is_merged_over():
    lines = head(["Name", "Address", None, "Phone"], [None, "Street", "City", None])
    found = columns(lines, 0, 3, [(1, 2, 1, 3)])
    assert [one.name for one in found] == ["Name", "Address / Street", "Address / City", "Phone"]


def test_caption_without_merges_stops_at_a_leaf_of_its_own():
    lines = head(["Name", "Address", None, "Phone"], [None, "Street", "City", None])
    assert [one.name for one in columns(lines, 0, 3)] == ["Name", "Address / Street", "Address / City", "Phone"]


def test_repeated_caption_stands_once():
    lines = head(["Name", "Name"], ["Name", "Age"])
    assert [one.name for one in columns(lines, 0, 1)] == ["Name", "Name / Age"]


def test_whole_numbers_in_a_header_lose_their_point():
    assert [one.name for one in columns(head([2019.0, 2020.0]), 0, 1)] == ["2019", "2020"]


def test_a_formula_without_a_stored_result_is_no_name():
    assert [one.name for one in columns(head([NO_CACHED_VALUE, "Name"]), 0, 1)] == ["Column A", "Name"]


def test_rows_like_the_others_are_plain():
    usual = Usual()
    judged = [usual.is_unusual([f"name {at}", at, 1.5, None if at % 3 else "x"]) for at in range(1_000)]
    assert sum(judged) == 100


def test_text_over_a_column_of_numbers_stands_out():
    usual = Usual()
    for at in range(500):
        usual.is_unusual([f"name {at}", at, 1.5])
    assert usual.is_unusual(["Name", "Number", "Rate"])


def test_repeated_early_row_stands_out_among_texts():
    usual = Usual()
    for at in range(500):
        usual.is_unusual(["Name", "Town"] if at == 0 else [f"name {at}", "Oslo"])
    assert usual.is_unusual(["Name", "Town"])


def test_declared_table_is_taken_as_declared():
    detector = TableDetector()
    lines = [["loose", "words"], [1, 2], [3, 4], [5, 6], [9, 12]]
    for number, line in enumerate(lines, 3):
        detector.add(number, [None, *line])
    layout = Layout(declared_tables=[DeclaredTable(name="T", area=(3, 2, 7, 3), header_rows=1, totals_rows=1)])
    (table,) = detector.tables(layout)
    assert (table.range.a1, table.header_rows, table.data_range.a1) == ("B3:C7", (3,), "B4:C6")
    assert table.totals == {7}


def test_what_is_there_beside_a_declared_table_is_still_found():
    detector = TableDetector()
    left = [["A", "B"], *[[at, at] for at in range(8)]]
    right = [["Name", "Price"], *[[f"name {at}", at * 1.5] for at in range(8)]]
    for number, (a, b) in enumerate(zip(left, right, strict=True), 1):
        detector.add(number, [*a, None, *b])
    layout = Layout(declared_tables=[DeclaredTable(name="T", area=(1, 1, 9, 2))])
    assert [one.range.a1 for one in detector.tables(layout)] == ["A1:B9", "D1:E9"]


def test_frozen_header_helps_where_rows_look_alike():
    detector = TableDetector()
    for number, line in enumerate([["ab", "cd"], ["ef", "gh"], ["ij", "kl"], ["mn", "op"], ["qr", "st"]], 1):
        detector.add(number, line)
    (table,) = detector.tables(Layout(frozen_rows=1, autofilter=(1, 1, 5, 2)))
    assert table.header_rows == (1,)


class Grid:
    name, index, visibility = "s", 0, "visible"

    def __init__(self, lines):
        self.lines = lines

    def rows(self):
        return ((number, line) for number, line in self.lines if line and line[-1] is not None)

    def layout(self):
        return Layout()


CELLS = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.datetimes(min_value=datetime(1900, 1, 1)),
    st.sampled_from(["Total", "Name", "Note: x", " ", "2001", "1,5", "-"]),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.lists(CELLS, max_size=9)), max_size=25))
def test_any_grid_gives_sound_tables(steps):
    """No exception, tables inside the used range, data inside tables, header above data."""
    number, lines = 0, []
    for step, line in steps:
        number += step
        lines.append((number, line))
    for table in find_tables(Grid(lines)):
        assert 1 <= table.range.top <= table.range.bottom <= number
        assert 1 <= table.range.left <= table.range.right <= 9
        assert len(table.columns) == table.range.right - table.range.left + 1
        assert 0 < table.confidence < 1
        if table.data_range:
            assert table.range.top <= table.data_range.top <= table.data_range.bottom <= table.range.bottom
            assert all(row < table.data_range.top for row in table.header_rows)


def test_scan_says_tables_of_each_sheet(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("Name,Age\nAnn,31\nBob,42\nCid,53\n")
    result = scan.scan_file(file)
    assert result["sheets"][0]["tables"][0]["range"] == "A1:B4"
    assert result["sheets"][0]["tables"][0]["header_rows"] == [1]


def test_scan_says_why_a_file_cannot_be_read(tmp_path):
    empty = tmp_path / "empty.xlsx"
    empty.touch()
    assert scan.scan_file(empty)["code"] == "empty"
    assert "error" in scan.scan_file(tmp_path / "absent.xlsx")


def test_one_bad_file_does_not_stop_the_others(tmp_path, capsys):
    bad, good = tmp_path / "bad.xlsx", tmp_path / "good.csv"
    bad.write_bytes(b"PK\x03\x04 no zip at all")
    good.write_text("Name,Age\nAnn,31\nBob,42\n")
    scan.main([str(bad), str(good)])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["error" in one for one in lines] == [True, False]


def test_a_fault_of_the_engine_is_reported_without_a_value(tmp_path, monkeypatch):
    file = tmp_path / "a.csv"
    file.write_text("Name,Age\nAnn,31\n")

    def broken(_sheet):
        raise ZeroDivisionError("secret cell")

    monkeypatch.setattr(scan, "find_tables", broken)
    result = scan.scan_file(file)
    assert result["code"] == "engine_error"
    assert "secret" not in json.dumps(result)


def test_far_cells_in_every_row_do_not_fill_the_memory():
    detector = TableDetector()
    for number in range(1, 400):
        detector.add(number, [number, "x", *[None] * 16_000, "y"])
    kept = detector.rows(Layout())
    assert sum(len(row.values) for row in kept) < 500_000
