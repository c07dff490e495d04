"""The workbook writer: what it writes, other readers read."""

import io
import re
import zipfile
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from xml.etree import ElementTree as ET

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from runner.engine.reading import CellError
from runner.engine.writing import BookWriter, OutputColumn
from runner.engine.writing import book as book_module
from tests.support.effort import examples

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def write(columns, rows, *, name="Normalized", chunk=2048):
    file = io.BytesIO()
    book = BookWriter(file, title="test")
    sheet = book.sheet(name, columns)
    for at in range(0, len(rows), chunk):
        part = rows[at : at + chunk]
        sheet.write([list(c) for c in zip(*part, strict=True)], len(part))
    sheet.close()
    book.close()
    file.seek(0)
    return file


def by_openpyxl(file):
    return [list(r) for r in openpyxl.load_workbook(file).worksheets[0].iter_rows(min_row=2, values_only=True)]


def by_calamine(file):
    return CalamineWorkbook.from_filelike(file).get_sheet_by_index(0).to_python()[1:]


CELLS = [
    "text", "<&>\"'", " outer blanks ", "two\nlines", "tab\t", "=1+1", "_x0041_", "ünï€😀", 7, -7, 2.5, 1e-9, 1e300, True, False,
    date(2026, 1, 31), datetime(2026, 1, 31, 10, 20, 30), time(9, 30),
]  # fmt: skip


@pytest.mark.parametrize("value", CELLS, ids=repr)
def test_openpyxl_reads_back_what_was_written(value):
    expected = datetime(2026, 1, 31) if type(value) is date else value
    if value == "_x0041_":
        expected = "_x005F_x0041_"  # openpyxl leaves escapes as they stand
    assert by_openpyxl(write([OutputColumn("a"), OutputColumn("b")], [[value, 1]])) == [[expected, 1]]


@pytest.mark.parametrize("value", CELLS, ids=repr)
def test_calamine_reads_back_what_was_written(value):
    assert by_calamine(write([OutputColumn("a"), OutputColumn("b")], [[value, 1]])) == [[value, 1]]


def test_a_duration_is_written_as_hours():
    assert by_calamine(write([OutputColumn("a")], [[timedelta(hours=30)]])) == [[timedelta(hours=30)]]


def test_control_characters_are_spelled_the_way_spreadsheets_do():
    assert by_calamine(write([OutputColumn("a")], [["a\x00b\x1fc\rd"]])) == [["a\x00b\x1fc\rd"]]


def test_lone_surrogates_and_noncharacters_do_not_break_the_file():
    assert len(by_openpyxl(write([OutputColumn("a")], [["a\ud800b\uffffc"]]))) == 1


def test_a_text_longer_than_a_cell_is_cut():
    assert len(by_openpyxl(write([OutputColumn("a")], [["x" * 40_000]]))[0][0]) == 32_767


def test_an_error_stays_an_error():
    sheet = openpyxl.load_workbook(write([OutputColumn("a")], [[CellError("#DIV/0!")]])).active
    assert (sheet["A2"].data_type, sheet["A2"].value) == ("e", "#DIV/0!")


def test_numbers_no_cell_can_hold_become_text_or_an_error():
    rows = [[10**15], [float("inf")], [float("nan")], [date(1850, 1, 1)]]
    assert [r[0] for r in by_openpyxl(write([OutputColumn("a")], rows))] == [
        "1000000000000000",
        "#NUM!",
        "#NUM!",
        "1850-01-01",
    ]


def test_blank_cells_are_not_written():
    file = write([OutputColumn("a"), OutputColumn("b")], [[None, 1], ["x", None]])
    assert by_openpyxl(file) == [[None, 1], ["x", None]]
    assert b'<c r="A2"' not in zipfile.ZipFile(file).read("xl/worksheets/sheet1.xml")


def test_the_header_is_styled_frozen_and_filtered():
    sheet = openpyxl.load_workbook(write([OutputColumn("a"), OutputColumn("b")], [["x", 1]])).active
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:B2"
    assert sheet["A1"].font.b is True
    assert sheet["A1"].fill.fgColor.rgb == "FF1F3864"


def test_formats_are_real_number_formats():
    columns = [
        OutputColumn.typed("d", "date", "yyyy-mm-dd"),
        OutputColumn.typed("m", "money", "#,##0.00"),
        OutputColumn.typed("t", "text", "@"),
    ]
    sheet = openpyxl.load_workbook(write(columns, [[date(2026, 1, 31), 5, "007"]])).active
    assert [c.number_format for c in sheet[2]] == ["yyyy-mm-dd", "#,##0.00", "@"]
    assert sheet["A2"].is_date


def test_a_text_in_a_date_column_keeps_the_default_format():
    sheet = openpyxl.load_workbook(write([OutputColumn.typed("d", "date", "yyyy-mm-dd")], [["soon"]])).active
    assert sheet["A2"].number_format == "General"


def test_the_dimension_and_widths_are_those_of_all_rows():
    file = write([OutputColumn("a"), OutputColumn("b")], [["x" * 30, 1]] * 5000)
    sheet = ET.fromstring(zipfile.ZipFile(file).read("xl/worksheets/sheet1.xml"))
    assert sheet.find(f"{MAIN}dimension").get("ref") == "A1:B5001"
    assert [c.get("width") for c in sheet.iter(f"{MAIN}col")] == ["32", "8"]


def test_widths_stay_between_eight_and_sixty():
    file = write([OutputColumn("a"), OutputColumn("h" * 200)], [["x" * 500, 1]])
    sheet = ET.fromstring(zipfile.ZipFile(file).read("xl/worksheets/sheet1.xml"))
    assert [c.get("width") for c in sheet.iter(f"{MAIN}col")] == ["60", "60"]


def test_rows_beyond_the_limit_go_on_on_a_next_sheet(monkeypatch):
    monkeypatch.setattr(book_module, "MAX_ROWS", 1000)
    file = write([OutputColumn("a")], [[n] for n in range(2500)], chunk=300)
    book = openpyxl.load_workbook(file)
    assert book.sheetnames == ["Normalized", "Normalized (2)", "Normalized (3)"]
    assert [s.max_row for s in book] == [1000, 1000, 503]
    assert [s["A1"].value for s in book] == ["a"] * 3
    assert [s["A2"].value for s in book] == [0, 999, 1998]


def test_an_empty_table_is_a_header_alone():
    assert by_openpyxl(write([OutputColumn("a")], [])) == []


def test_a_sheet_without_columns_opens():
    assert openpyxl.load_workbook(write([], [])).sheetnames == ["Normalized"]


def test_names_that_no_sheet_may_bear_are_replaced():
    assert openpyxl.load_workbook(write([OutputColumn("a")], [], name="a/b:[c]*?\\" + "x" * 40)).sheetnames == [
        "a_b__c____" + "x" * 21
    ]


def test_the_same_rows_give_the_same_bytes():
    rows = [[n, f"t{n}"] for n in range(100)]
    assert (
        write([OutputColumn("a"), OutputColumn("b")], rows).getvalue()
        == write([OutputColumn("a"), OutputColumn("b")], rows).getvalue()
    )


def test_every_part_is_sound_xml_and_the_archive_is_whole():
    archive = zipfile.ZipFile(write([OutputColumn("a & <b>")], [["x"]], name="A&B"))
    assert archive.testzip() is None
    for name in archive.namelist():
        ET.fromstring(archive.read(name))


values = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.integers(-(10**14), 10**14),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.dates(min_value=date(1900, 3, 1), max_value=date(9999, 12, 31)),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=12))
def test_any_mix_of_values_reads_back(rows):
    file = write([OutputColumn("a"), OutputColumn("b"), OutputColumn("end")], [[*r[:2], "."] for r in rows])
    seen = by_calamine(file)
    wanted = [["" if v is None else v for v in r[:2]] + ["."] for r in rows]
    assert seen == wanted


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), min_size=1, max_size=12
    )
)
def test_any_text_reads_back(texts):
    seen = by_calamine(write([OutputColumn("a"), OutputColumn("b")], [[t, "."] for t in texts]))
    assert [r[0] for r in seen] == texts


def test_days_of_early_1900_are_written_as_spreadsheets_count_them():
    """Excel counts a 29 February 1900: the days before it have serials 1 to 59."""
    days = [date(1900, 1, 1), date(1900, 2, 27), date(1900, 2, 28), date(1900, 3, 1)]
    file = write([OutputColumn("a"), OutputColumn("b")], [[d, datetime(d.year, d.month, d.day, 12)] for d in days])
    cells = ET.fromstring(zipfile.ZipFile(file).read("xl/worksheets/sheet1.xml")).iter(f"{MAIN}v")
    assert [float(c.text) for c in cells] == [1, 1.5, 58, 58.5, 59, 59.5, 61, 61.5]
    assert [r[0].date() for r in by_openpyxl(file)] == days


class Unspellable:
    def __str__(self):
        raise RuntimeError

    __repr__ = __str__


class Liar(str):
    """A text that gives itself out as markup."""

    __slots__ = ()

    def __str__(self):
        return "</v></c><c><v>1</v>"


class Late(datetime):
    def __str__(self):
        return "<&>"


class Sum(int):
    def __repr__(self):
        return "1</v></c>"

    __str__ = __repr__


class Part(float):
    def __repr__(self):
        return "1</v></c>"

    __str__ = __repr__


FORGED = "1</v></c><c r='C8'><v>999999"
HOSTILE = [
    str.__new__(CellError, FORGED),
    str.__new__(CellError, "A&B"),
    CellError(FORGED),
    FORGED,
    "</t></is></c></row></sheetData><evil/>",
    "]]>",
    "<![CDATA[x]]>",
    "<!-- x -->",
    "<?x y?>",
    "&#0;",
    "&amp;",
    "\"'<>&",
    "\x00\x01\x08\x0b\x0c\x0e\x1f\r",
    "\ufffe\uffff",
    "\ud800",
    "\udc00\ud800 lone halves",
    "_x000D_",
    "_x000D_x000D_",
    "_x000D\x01",
    "=cmd|' /C calc'!A0",
    Liar("plain"),
    Sum(7),
    Part(2.5),
    Late(2026, 1, 1),
    Unspellable(),
    b"<bytes>",
    Decimal("1E+400"),
    Fraction(1, 3),
    complex(1, 2),
    ["<list>"],
    {"<": ">"},
    10**5000,
    float("nan"),
    float("-inf"),
    datetime.max,
    datetime(1, 1, 1, tzinfo=UTC),
    date.min,
    time(23, 59, 59, 999_999, tzinfo=UTC),
    timedelta.max,
    timedelta.min,
    True,
    None,
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: type(v).__name__)
def test_no_value_gets_out_of_its_cell(value):
    """Alone and among others; every cell beside it stays what it is and no part of the workbook breaks."""
    for rows in ([[value, "."]], [[value, "."], ["text", 5], [1, value], [None, "&"]]):
        archive = zipfile.ZipFile(write([OutputColumn("a"), OutputColumn("b")], rows))
        for name in archive.namelist():
            ET.fromstring(archive.read(name))
        sheet = ET.fromstring(archive.read("xl/worksheets/sheet1.xml"))
        places = [c.get("r") for c in sheet.iter(f"{MAIN}c")]
        blank = value is None or value == ""
        wanted = [
            f"{letter}{n}"
            for n, row in enumerate(rows, 2)
            for letter, held in zip("AB", row, strict=True)
            if held is not None and not (held is value and blank)
        ]
        assert places == ["A1", "B1", *wanted]
        assert {c.tag.removeprefix(MAIN) for c in sheet.iter(f"{MAIN}c")} == {"c"}
        assert {e.tag.removeprefix(MAIN) for c in sheet.iter(f"{MAIN}c") for e in c.iter()} <= {"c", "v", "is", "t"}
        errors = {c.find(f"{MAIN}v").text for c in sheet.iter(f"{MAIN}c") if c.get("t") == "e"}
        assert errors <= {"#NUM!", "#VALUE!", FORGED, "A&B"}


@pytest.mark.parametrize("text", [v for v in HOSTILE if type(v) is str and v], ids=repr)
def test_names_headers_titles_and_formats_are_escaped_too(text):
    file = io.BytesIO()
    book = BookWriter(file, title=text)
    for _ in range(2):
        sheet = book.sheet(text, [OutputColumn(text), OutputColumn.typed(text, "money", text)])
        sheet.write([["x"], [1.5]], 1)
        sheet.close()
    book.close()
    archive = zipfile.ZipFile(file)
    for name in archive.namelist():
        ET.fromstring(archive.read(name))
    listed = [s.get("name") for s in ET.fromstring(archive.read("xl/workbook.xml")).iter(f"{MAIN}sheet")]
    assert len({n.casefold() for n in listed}) == 2
    assert all(0 < len(n.encode("utf-16-le")) // 2 <= 31 and not set(n) & set("[]:*?/\\") for n in listed)


@pytest.mark.parametrize("name", ["History", "'quoted'", "😀" * 31, "x" * 30 + "'y", "'", "a" * 40])
def test_a_sheet_name_is_one_that_excel_opens(name):
    (found,) = openpyxl.load_workbook(write([OutputColumn("a")], [], name=name)).sheetnames
    assert len(found.encode("utf-16-le")) <= 62
    assert found.casefold() != "history"
    assert found == found.strip("' ")


def decoded(xml_text):
    """What a spreadsheet makes of a stored text: escapes undone from left to right."""
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m[1], 16)), xml_text)


@settings(max_examples=examples(400), deadline=None)
@given(st.text(alphabet="_x0D5F\x01\r\uffffé😀 ", min_size=1, max_size=24))
def test_texts_that_look_like_escapes_come_back(text):
    archive = zipfile.ZipFile(write([OutputColumn("a"), OutputColumn("b")], [[text, "."]]))
    cell = next(
        c for c in ET.fromstring(archive.read("xl/worksheets/sheet1.xml")).iter(f"{MAIN}c") if c.get("r") == "A2"
    )
    assert decoded(cell.find(f"{MAIN}is/{MAIN}t").text) == text


@pytest.mark.parametrize(
    ("text", "units"), [("😀" * 20_000, 32_766), ("é" * 40_000, 32_767), ("a" + "😀" * 16_383, 32_767)]
)
def test_a_cell_holds_32767_utf16_units(text, units):
    file = write([OutputColumn("a"), OutputColumn("b")], [[text, "x"], ["short", "y"]])
    (written,) = [r[0] for r in by_openpyxl(file)][:1]
    assert len(written.encode("utf-16-le")) // 2 == units
    assert text.startswith(written)
