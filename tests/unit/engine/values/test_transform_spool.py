"""Rows set aside come back as they were, and a sheet too large is read again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.common.findings import FindingPlace
from runner.engine.reading import NO_CACHED_VALUE, CellError, Layout
from runner.engine.reading.books import turned
from runner.engine.reading.spool import LONG_PART_BYTES, Room, SpooledSheet
from runner.engine.structure import CellRange, Column, Table
from runner.engine.structure.tables import LeftRow, Proof, RowKind
from runner.engine.tables.sources import SourceTable, chunks, group_by_reading


class Rows:
    """A sheet of given rows that counts its readings."""

    name, index, visibility = "s", 0, "visible"

    def __init__(self, rows):
        self._rows = rows
        self.readings = 0

    def rows(self):
        self.readings += 1
        return iter([(n, list(r)) for n, r in self._rows])

    def layout(self):
        return Layout()


values = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.just("a\x1fb"),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.just(CellError("#N/A")),
    st.just(NO_CACHED_VALUE),
)
rows = st.lists(st.lists(values, min_size=1, max_size=5).filter(any), max_size=30).map(
    lambda found: list(enumerate(found, 3))
)


@settings(deadline=None)
@given(rows, st.sampled_from([0, 40, 10**6]))
def test_rows_come_back_as_they_were(found, loose):
    sheet = SpooledSheet(Rows(found), Room(loose=loose))
    assert by_rows(sheet.blocks()) == by_rows(sheet.blocks()) == by_rows(turned(found))
    assert list(sheet.rows()) == [(n, without_blanks(r)) for n, r in found]
    assert [type(v) for _, r in sheet.rows() for v in r] == [type(v) for _, r in found for v in without_blanks(r)]


def by_rows(blocks):
    return [(n, row) for numbers, columns in blocks for n, row in zip(numbers, zip(*columns, strict=True), strict=True)]


def without_blanks(row):
    """The row as sheets give it: nothing blank at its end."""
    while row and row[-1] is None:
        row = row[:-1]
    return row


def read(sheet):
    return sum(len(block.numbers) for block in sheet.blocks())


def test_a_sheet_is_parsed_once():
    plain = Rows([(n, [n, str(n)]) for n in range(1, 5000)])
    sheet = SpooledSheet(plain, Room())
    for _ in range(3):
        assert read(sheet) == 4999
    assert plain.readings == 1


def test_a_sheet_too_large_for_its_room_is_read_again_and_gives_the_room_back():
    plain = Rows([(n, [n, str(n)]) for n in range(1, 5000)])
    room = Room(1000, loose=0)
    sheet = SpooledSheet(plain, room)
    assert read(sheet) == read(sheet) == 4999
    assert (sheet.complete, plain.readings, room.left) == (False, 2, 1000)


def table(sheet, top, bottom, left, right, without=()):
    columns = tuple(Column(n, f"c{n}") for n in range(left, right + 1))
    box = CellRange(top, left, bottom, right)
    left_out = dict.fromkeys(without, LeftRow(RowKind.TOTAL, Proof.ADDS_UP))
    found = Table(range=box, header_rows=(), data_range=box, columns=columns, confidence=1.0, left_out=left_out)
    return SourceTable(FindingPlace("i", "s", f"{top}-{left}"), sheet, found)


@pytest.mark.parametrize("room", [0, 10**6])
def test_tables_below_each_other_take_one_reading_and_keep_apart(room):
    plain = Rows([(n, [n, n * 10, None if n % 2 else "x"]) for n in range(1, 21)])
    sheet = SpooledSheet(plain, Room(room, loose=0))
    read(sheet)
    tables = [table(sheet, 2, 5, 1, 2), table(sheet, 8, 12, 2, 3, without=[10])]
    found = {t.id: r for t, r in chunks(tables)}
    assert found["2-1"].numbers == [2, 3, 4, 5]
    assert found["2-1"].columns == [[2, 3, 4, 5], [20, 30, 40, 50]]
    assert found["8-2"].numbers == [8, 9, 11, 12]
    assert found["8-2"].columns[1] == ["x", None, None, "x"]


def test_tables_beside_each_other_are_separate_strands():
    sheet = Rows([])
    left, right, below = table(sheet, 2, 9, 1, 2), table(sheet, 2, 5, 4, 5), table(sheet, 7, 9, 4, 5)
    assert group_by_reading([below, right, left]) == [[left], [right, below]]


def test_rows_blank_in_a_tables_columns_are_no_rows_of_it():
    sheet = Rows([(1, ["a", None, 1]), (2, [None, None, 2]), (3, ["b", None, 3]), (4, [None, None, None, 9])])
    ((_, found),) = chunks([table(sheet, 1, 4, 1, 2)])
    assert (found.numbers, found.columns) == ([1, 3], [["a", "b"], [None, None]])


class LongSheet(Rows):
    """A sheet of which the file stores many bytes."""

    def stored_bytes(self):
        return LONG_PART_BYTES + 1


def test_a_sheet_known_to_be_long_is_packed_from_its_first_row_on():
    room = Room()
    sheet = SpooledSheet(LongSheet([(n, [n, str(n)]) for n in range(1, 5000)]), room)
    assert read(sheet) == read(sheet) == 4999
    assert room.loose == Room().loose
    assert room.left < Room().left


@pytest.mark.parametrize("odd", ["a\x1fb", "", None, 7, "\ud800"])
def test_texts_that_hardly_repeat_come_back_as_they_were(odd):
    found = [(n, [f"text {n}", "same"]) for n in range(1, 200)] + [(200, [odd, "same"])]
    sheet = SpooledSheet(Rows(found), Room())
    assert by_rows(sheet.blocks()) == by_rows(sheet.blocks()) == by_rows(turned(found))
    assert [block.columns[1][0] for block in sheet.columns({1})] == ["same"]


def test_rows_with_gaps_between_them_keep_their_numbers():
    found = [(n, [f"text {n}"]) for n in range(1, 300, 3)]
    sheet = SpooledSheet(Rows(found), Room())
    assert [n for n, _ in by_rows(sheet.blocks())] == [n for n, _ in by_rows(sheet.blocks())] == list(range(1, 300, 3))
