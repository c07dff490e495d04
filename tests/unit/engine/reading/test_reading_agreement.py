"""The quick way of reading a sheet and the careful one must never disagree."""

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.reading import InputUnreadable, ReadLimits, open_book
from runner.engine.reading.books import OutOfOrder, ascending, rows_of
from runner.engine.reading.number_formats import NumberKind, Styles
from runner.engine.reading.xlsx import markup, quick
from runner.engine.reading.xlsx.careful import CellReader, careful_rows
from runner.engine.reading.xlsx.markup import Opened
from runner.engine.reading.xlsx.quick import quick_blocks
from runner.engine.reading.xlsx.workbooks import read_strings
from tests.support.effort import examples
from tests.support.workbook_makers import sheet, strings, xlsx

LIMITS = ReadLimits()
STYLES = Styles(
    kinds=[
        NumberKind.NUMBER,
        NumberKind.DATE,
        NumberKind.DATETIME,
        NumberKind.TIME,
        NumberKind.DURATION,
        NumberKind.ANY,
        NumberKind.NUMBER,
    ]
)
SHARED = strings("<t>zero</t>", "<t>one &amp; a</t>", "<t/>", "<r><t>three</t></r>")

texts = st.text(st.sampled_from("abZ 019.,&<>\"'_x000D_\n\té東😀#-"), max_size=8)
numbers = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.sampled_from(["0", "1", "45351", "0.5", "60", "-1", "1E3", " 7 ", "", "x", "NaN", "٣", "1_0", "007", "1e400"]),
)
columns = st.lists(st.integers(1, 30), min_size=1, max_size=6)


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@st.composite
def stored_cell(draw):
    """The inside of a cell's tag and body."""
    style = draw(st.sampled_from(["", ' s="0"', ' s="1"', ' s="2"', ' s="3"', ' s="4"', ' s="5"', ' s="77"', ' s=""']))
    formula = draw(st.sampled_from(["", "<f>A1+1</f>", '<f t="shared" si="0"/>', "<f>IF(A1&gt;1,2,3)</f>"]))
    kind = draw(st.sampled_from(["n", "plain", "s", "str", "b", "e", "d", "inline", "rich", "none"]))
    if kind == "none":
        return style, draw(st.sampled_from(["/>", "></c>", f">{formula}</c>", f">{formula}<v/></c>"]))
    if kind in ("inline", "rich"):
        space = draw(st.sampled_from(["", ' xml:space="preserve"']))
        text = f"<t{space}>{escaped(draw(texts))}</t>"
        body = f"<is>{text}</is>" if kind == "inline" else f"<is><r>{text}</r><r>{text}</r></is>"
        return f'{style} t="inlineStr"', f">{body}</c>"
    if kind == "s":
        value = draw(st.sampled_from(["0", "1", "2", "3", "4", "-1", "x", ""]))
    elif kind in ("n", "plain"):
        value = escaped(draw(numbers))
    else:
        value = escaped(draw(texts))
    typed = "" if kind == "plain" else f' t="{kind}"'
    return f"{style}{typed}", f">{formula}<v>{value}</v></c>"


def letters(column):
    return chr(64 + column) if column <= 26 else f"A{chr(64 + column - 26)}"


references = st.sampled_from(["first"] * 8 + ["last", "none"])


def placed(tag, reference, where):
    """A cell's tag with its reference first, last or left out, as programs differ."""
    own = f' r="{reference}"'
    return {"first": f"<c{own}{tag}", "last": f"<c{tag}{own}", "none": f"<c{tag}"}[where]


@st.composite
def sheets(draw):
    """Rows that mostly look alike, as in real sheets, with odd ones between."""
    templates = draw(
        st.lists(st.tuples(columns, st.lists(stored_cell(), min_size=6, max_size=6)), min_size=1, max_size=3)
    )
    rows, number = [], 0
    for _ in range(draw(st.integers(0, 25))):
        number += draw(st.sampled_from([1, 1, 1, 1, 2, 9, 90]))
        where, cells = draw(st.sampled_from(templates))
        numbered = draw(st.sampled_from([True] * 9 + [False]))
        body = "".join(
            placed(tag, letters(at) + str(number), draw(references) if numbered else "none") + rest
            for at, (tag, rest) in zip(where, cells, strict=False)
        )
        spans = draw(st.sampled_from(["", ' spans="1:9"', f' ht="{number}"']))
        own = f' r="{number}"' if numbered or draw(st.booleans()) else ""
        rows.append(f"<row{own}{spans}>{body}</row>" if draw(st.booleans()) else f"<row{spans}{own}>{body}</row>")
        rows.append(draw(st.sampled_from(["", "", "", "\n ", "<!-- -->", f'<row r="{number + 1}"/>'])))
    return sheet("".join(rows))


def cells():
    return CellReader(lambda: read_strings([SHARED.encode()], LIMITS), STYLES, epoch_1904=False)


@pytest.mark.slow
@settings(max_examples=examples(600), deadline=None)
@given(sheets())
def test_quick_and_careful_reading_agree(xml):
    raw = xml.encode()
    careful = list(ascending(careful_rows([raw], cells(), LIMITS), LIMITS))
    quick = list(ascending(rows_of(quick_blocks(Opened([raw], b"sheetData"), cells(), LIMITS)), LIMITS))
    assert repr(quick) == repr(careful)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(sheets(), st.integers(1, 1500))
def test_what_was_learnt_of_earlier_rows_never_misreads_later_ones(xml, size):
    raw = xml.encode()
    careful = list(ascending(careful_rows([raw], cells(), LIMITS), LIMITS))
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    with mock.patch.object(markup, "_AT_LEAST", size), mock.patch.object(quick, "_CHARACTERS_TO_LEARN", size // 2):
        found = list(ascending(rows_of(quick_blocks(Opened(pieces, b"sheetData"), cells(), LIMITS)), LIMITS))
    assert repr(found) == repr(careful)


@settings(max_examples=examples(40), deadline=None)
@given(sheets(), st.integers(1, 2000))
def test_where_the_pieces_are_cut_changes_nothing(xml, size):
    raw = xml.encode()
    whole = list(rows_of(quick_blocks(Opened([raw], b"sheetData"), cells(), LIMITS)))
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert repr(list(rows_of(quick_blocks(Opened(pieces, b"sheetData"), cells(), LIMITS)))) == repr(whole)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            texts, st.sampled_from(["<t>{}</t>", '<t xml:space="preserve">{}</t>', "<r><t>{}</t></r><r><t/></r>"])
        )
    )
)
def test_strings_cut_as_text_equal_strings_parsed(items):
    body = strings(*(form.format(escaped(text)) for text, form in items))
    quick = read_strings([body.encode()], LIMITS)
    parsed = read_strings([body.replace("<sst", "<!-- --><sst").encode()], LIMITS)
    assert [quick[n] for n in range(len(quick))] == [parsed[n] for n in range(len(parsed))]
    assert len(quick) == len(items)


def test_long_sheets_are_read_in_many_chunks(tmp_path):
    rows = "".join(
        f'<row r="{r}"><c r="A{r}"><v>{r}</v></c><c r="B{r}" t="str"><v>text {r} é</v></c></row>'
        for r in range(1, 20_001)
    )
    with open_book(xlsx(tmp_path, sheet(rows)), name="x") as book:
        read = list(book.sheets[0].rows())
    assert read == [(r, [r, f"text {r} é"]) for r in range(1, 20_001)]


def test_a_sheet_of_many_styles_is_read_without_the_parser(monkeypatch):
    styled = [f'<c r="A{r}" s="{r % 6}"><f>B{r}</f><v>{r}.5</v></c>' for r in range(1, 3000)]
    rows = "".join(f'<row r="{r}">{one}<c r="B{r}" s="{r % 7}"/></row>' for r, one in enumerate(styled, 1))
    raw = sheet(rows).encode()
    careful = list(careful_rows([raw], cells(), LIMITS))
    monkeypatch.setattr(quick, "SheetData", None)
    assert repr(list(rows_of(quick_blocks(Opened([raw], b"sheetData"), cells(), LIMITS)))) == repr(careful)


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_how_many_ways_are_listed_changes_nothing(monkeypatch, most):
    ways = ["<v>{}</v>", "<f>A1</f><v>{}</v>", "<v>{}.25</v>", "<v>{}E2</v>", "", "<f>A1</f>"]
    rows = "".join(
        f'<row r="{r}"><c r="A{r}" s="{r % 4}">{ways[r % 6].format(r)}</c><c r="B{r}"><v>{r}</v></c></row>'
        for r in range(1, 500)
    )
    raw = sheet(rows).encode()
    monkeypatch.setattr(quick, "MOST_FORMS", most)
    found = list(rows_of(quick_blocks(Opened([raw], b"sheetData"), cells(), LIMITS)))
    assert repr(found) == repr(list(careful_rows([raw], cells(), LIMITS)))


def test_sheets_of_too_many_ways_are_read_by_the_parser(monkeypatch):
    monkeypatch.setattr(quick, "MOST_FORMS_IN_ALL", 0)
    raw = sheet('<row r="1"><c r="A1"><v>1</v></c></row>').encode()
    assert list(rows_of(quick_blocks(Opened([raw], b"sheetData"), cells(), LIMITS))) == [(1, [1])]


@pytest.mark.parametrize("late", ["", "<!-- -->"])
def test_rows_out_of_order_far_down_are_sorted_when_the_sheet_is_asked_again(tmp_path, late):
    order = [*range(1, 9000), *range(9100, 9050, -1)]
    rows = "".join(f'<row r="{r}"><c r="A{r}"><v>{r}</v></c></row>{late if r == 9060 else ""}' for r in order)
    with open_book(xlsx(tmp_path, sheet(rows)), name="x") as book:
        one = book.sheets[0]
        with pytest.raises(OutOfOrder):
            list(one.blocks())
        assert [n for block in one.blocks() for n in block.numbers] == sorted(order)
        assert [n for n, _ in one.rows()] == sorted(order)


@pytest.mark.parametrize(
    "row",
    [
        '<row><c t="s"><v>0</v></c><c><v>{r}</v></c><c r="E{r}"><v>5</v></c><c><v>6</v></c></row>',
        '<row spans="1:3" r="{r}"><c s="1" r="B{r}"><v>{r}</v></c></row>',
        '<row r="{r}"><c r="A{r}" s="2" /><c s="1" /><c><v>7</v></c></row>',
    ],
)
def test_rows_that_leave_references_out_are_read_without_the_parser(monkeypatch, row):
    raw = sheet("".join(row.format(r=r) for r in range(1, 400))).encode()
    careful = list(careful_rows([raw], cells(), LIMITS))
    monkeypatch.setattr(quick, "SheetData", None)
    assert repr(list(rows_of(quick_blocks(Opened([raw], b"sheetData"), cells(), LIMITS)))) == repr(careful)


def test_rows_that_never_end_cost_one_look(tmp_path):
    whole = '<row r="1"><c r="A1"><v>1</v></c></row>'
    with open_book(xlsx(tmp_path, sheet(whole + "<row>" * 60_000)), name="x") as book, pytest.raises(InputUnreadable):
        list(book.sheets[0].blocks())
