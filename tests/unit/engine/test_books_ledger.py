"""The books of a sheet against plain sets: any tables, any rows, any cells."""

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.common.rowsets import RowSet
from runner.engine.reading import Layout
from runner.engine.reading.spool import Room, SpooledSheet
from runner.engine.structure import CellRange, Column, Table
from runner.engine.structure.tables import LeftRow, Proof, RowKind
from runner.engine.surveying.ledger import SheetBooks
from runner.engine.tables.sources import Leaving, SourceTable, chunks, group_by_reading
from tests.support.effort import examples

WIDTH, HEIGHT = 9, 30
numbers = st.sets(st.integers(1, 60))


@given(numbers, numbers, st.integers(1, 60), st.integers(1, 60))
def test_row_sets_are_sets(one, other, first, last):
    a, b = RowSet.of(one), RowSet.of(other)
    assert set((a | b).numbers()) == one | other
    assert set((a & b).numbers()) == one & other
    assert set((a - b).numbers()) == one - other
    assert set(a.within(first, last).numbers()) == {n for n in one if first <= n <= last}
    assert a.meets(first, last) == any(first <= n <= last for n in one)
    assert a.count == len(one)
    assert all((n in a) == (n in one) for n in range(62))


@given(st.lists(numbers, max_size=5))
def test_rows_added_in_pieces_are_the_same_rows(pieces):
    rows = RowSet()
    shifted = [sorted(n + 60 * at for n in piece) for at, piece in enumerate(pieces)]
    for piece in shifted:
        rows.add(piece)
    assert list(rows.numbers()) == [n for piece in shifted for n in piece]


def test_a_row_that_comes_twice_is_counted_twice():
    rows = RowSet()
    rows.add([1, 2, 3])
    rows.add([3, 4])
    assert rows.count == 5


class Given:
    name, index, visibility = "s", 0, "visible"

    def __init__(self, cells):
        self.cells = cells

    def rows(self):
        for row in sorted({row for row, _ in self.cells}):
            values = [self.cells.get((row, column)) for column in range(1, WIDTH + 1)]
            while values[-1] is None:
                values.pop()
            yield row, values

    def layout(self):
        return Layout()


KINDS = {"g": RowKind.GROUP, "t": RowKind.TOTAL, "n": RowKind.NOTE, "r": RowKind.REPEATED_HEADER}


@st.composite
def tables(draw):
    """Boxes that share no cell: beside and below each other."""
    made = []
    for left, right in draw(st.sampled_from([[(1, 3)], [(2, 5)], [(1, 3), (5, 7)], [(1, 2), (3, 4), (6, 9)]])):
        row = 1
        for _ in range(draw(st.integers(0, 2))):
            top = row + draw(st.integers(0, 6))
            bottom = top + draw(st.integers(0, 12))
            if bottom > HEIGHT:
                break
            row = bottom + 1
            body = draw(st.lists(st.sampled_from("dddddgtnr"), min_size=bottom - top, max_size=bottom - top))
            rows = dict(zip(range(top + 1, bottom + 1), body, strict=True))
            inside = [n for n, kind in rows.items() if kind == "d"]
            data = CellRange(min(inside), left, max(inside), right) if inside else None
            proofs = st.sampled_from([None, Proof.ADDS_UP])
            left_out = {n: LeftRow(KINDS[kind], draw(proofs)) for n, kind in rows.items() if kind != "d"}
            around = draw(st.sampled_from([((), ()), ((top - 1,), ()), ((), (bottom + 1, bottom + 2))]))
            made.append(
                Table(
                    range=CellRange(top, left, bottom, right), header_rows=(top,), data_range=data, confidence=1.0,
                    columns=tuple(Column(n, f"c{n}") for n in range(left, right + 1)),
                    left_out=left_out
                    | {n: LeftRow(RowKind.TITLE, Proof.ABOVE) for n in around[0] if n > 0}
                    | {n: LeftRow(RowKind.NOTE, None) for n in around[1]},
                )
            )  # fmt: skip
    return made


cells = st.dictionaries(
    st.tuples(st.integers(1, HEIGHT + 3), st.integers(1, WIDTH)), st.sampled_from(["x", 0, " ", 1.5]), max_size=150
)
hidden = st.sets(st.integers(1, HEIGHT))


@settings(deadline=None, max_examples=examples(300))
@given(tables(), cells, hidden, hidden, st.sets(st.integers(1, WIDTH), max_size=2), st.sampled_from([0, 10**6]))
def test_every_row_and_cell_is_where_plain_sets_say(found, held, gone_rows, skipped, gone_columns, loose):
    found = [t for t in found if any((t.range.top, c.index) in held for c in t.columns)]
    sheet = SpooledSheet(Given(held), Room(loose=loose))
    list(sheet.blocks())
    leaving = Leaving(hidden_rows=frozenset(gone_rows), hidden_columns=frozenset(gone_columns))
    sources = [SourceTable(FindingPlace("i", "s", f"x{n}"), sheet, table, leaving) for n, table in enumerate(found)]
    for strand in group_by_reading(sources):
        for table, rows in chunks(strand):
            table.data_rows.add(rows.numbers)
            table.hidden.add(rows.hidden)
    mine = [(source, f"t{n}", n in skipped) for n, source in enumerate(sources)]
    books = SheetBooks(sheet, mine, FindingPlace("i", "s", ""))
    findings = Findings()
    books.report(findings)

    rows = {row for row, _ in held}
    claimed = {row: {} for row in rows}
    for n, table in enumerate(found):
        columns = [c.index for c in table.columns]
        shown = [c for c in columns if c not in gone_columns]
        for kind, numbers in (
            ("header", table.header_rows), ("repeated_header", table.repeated), ("group", table.groups),
            ("total", table.totals), ("note", table.asides),
        ):  # fmt: skip
            for row in numbers:
                if row in rows:
                    claimed[row].setdefault(f"t{n}", kind)
        data = table.data_range
        for row in range(data.top, data.bottom + 1) if data and shown else ():
            if any(held.get((row, c), " ") != " " for c in shown) and f"t{n}" not in claimed[row]:
                kind = "hidden" if row in gone_rows else "skipped_table" if n in skipped else "data"
                claimed[row][f"t{n}"] = kind
    for n, table in enumerate(found):
        for kind, numbers in (("title", table.titles), ("note", table.notes)):
            for row in numbers:
                if row in rows and not claimed[row]:
                    claimed[row][f"t{n}"] = kind
    listed = {row: {} for row in rows}
    for entry in books.entries():
        inside = [row for row in rows if entry.first <= row <= entry.last]
        if entry.table is None:  # rows of nothing but spaces are blank rows
            inside = [row for row in inside if any(held.get((row, c), " ") != " " for c in range(1, WIDTH + 1))]
        owned = [row for row in inside if entry.table is None or claimed[row].get(entry.table) == entry.kind]
        if entry.kind == "hidden":  # with rows that only hidden columns fill
            owned = [row for row in inside if entry.kind in (claimed[row].get(entry.table), "hidden")]
            owned = [row for row in owned if claimed[row].get(entry.table) == "hidden" or not claimed[row]]
        assert entry.rows == len(owned), entry
        for row in owned:
            assert entry.table not in listed[row]
            listed[row][entry.table] = entry.kind
    for row, claims in listed.items():
        filled = {column for r, column in held if r == row and held[r, column] != " "}
        expected = claimed[row]
        if not expected:
            inside = [n for n, t in enumerate(found) if t.range.top <= row <= t.range.bottom]
            near = [n for n in inside if filled & gone_columns & {c.index for c in found[n].columns}]
            expected = {f"t{near[0]}": "hidden"} if near else {None: "outside"} if filled else {}
        assert claims == expected, row

    assert books.rows_read == sum(bool(claims) for claims in listed.values())
    extra = sum((int(one.kind) - 1) * one.rows for one in books.shared)
    assert extra == sum(max(0, len(claims) - 1) for claims in listed.values())
    beside = {
        (row, column)
        for (row, column), value in held.items()
        if value != " "
        and None not in listed[row]
        and any(t.range.top <= row <= t.range.bottom for t in found)
        and not any(t.range.top <= row <= t.range.bottom and t.range.left <= column <= t.range.right for t in found)
    }
    assert sum(one.cells for one in books.beside) == len(beside)
    for row, column in beside:
        assert any(b.top <= row <= b.bottom and b.left <= column <= b.right for b in books.beside)

    unproven = {
        (row, ref)
        for n, (table, ref) in enumerate((table, f"t{n}") for n, table in enumerate(found))
        for row, left in table.left_out.items()
        if left.proof is None and n not in skipped and listed.get(row, {}).get(ref) == str(left.kind)
    }
    assert findings.by_code().get("rows_doubtful", 0) == len(unproven), "a row left out without a proof is a warning"
