"""xls, xlsb and ods: the same values, places and layout as from an .xlsx."""

import struct
from datetime import date, time, timedelta

import pytest

from runner.engine.reading import NO_CACHED_VALUE, CellError, InputUnreadable, open_book
from runner.engine.reading.books import TextOptions
from tests.support.workbook_makers import biff, brt, container, ods, wide, xls_stream, xlsb


def read(path):
    with open_book(path, name=path.name) as book:
        return book, [list(sheet.rows()) for sheet in book.sheets]


def layout(path):
    with open_book(path, name=path.name) as book:
        return book.sheets[0].layout()


def xlsb_row(number, hidden=False):
    return brt(0, struct.pack("<IIHBB", number, 0, 300, 0, 0x10 if hidden else 0))


def xlsb_cell(kind, column, body=b"", style=0):
    return brt(kind, struct.pack("<II", column, style) + body)


XLSB_STYLES = (
    brt(44, struct.pack("<H", 164) + wide("yyyy-mm-dd"))
    + brt(43, struct.pack("<HHH", 220, 0, 400))
    + brt(43, struct.pack("<HHH", 220, 2, 700))
    + brt(617)
    + brt(47, struct.pack("<HHHHHBBB", 0, 0, 0, 0, 0, 0, 0, 0))
    + brt(47, struct.pack("<HHHHHBBB", 0, 164, 1, 0, 0, 0, 1, 2))
    + brt(618)
)


def test_xlsb_cells_have_their_types(tmp_path):
    cells = xlsb_row(4) + b"".join(
        [
            xlsb_cell(1, 0),
            xlsb_cell(2, 1, struct.pack("<I", 42 << 2 | 2)),
            xlsb_cell(2, 2, struct.pack("<I", 1250 << 2 | 3)),
            xlsb_cell(3, 3, b"\x2a"),
            xlsb_cell(4, 4, b"\x01"),
            xlsb_cell(5, 5, struct.pack("<d", 45351.0), style=1),
            xlsb_cell(6, 6, wide("007")),
            xlsb_cell(7, 7, struct.pack("<I", 1)),
            xlsb_cell(8, 8, wide("made") + bytes(4)),
            xlsb_cell(9, 9, struct.pack("<d", 0.5) + bytes(4)),
            xlsb_cell(10, 10, b"\x00" + bytes(4)),
            xlsb_cell(11, 11, b"\x07" + bytes(4)),
            xlsb_cell(7, 12, struct.pack("<I", 99)),
            xlsb_cell(5, 13, struct.pack("<d", float("nan"))),
        ]
    )
    shared = brt(19, b"\0" + wide("zero")) + brt(19, b"\0" + wide("one"))
    book, (rows,) = read(xlsb(tmp_path, cells, shared=shared, style=XLSB_STYLES))
    assert book.format == "xlsb"
    assert rows == [
        (
            5,
            [
                None,
                42,
                12.5,
                "#N/A",
                True,
                date(2024, 2, 29),
                "007",
                "one",
                "made",
                0.5,
                False,
                "#DIV/0!",
                "#VALUE!",
                "#NUM!",
            ],
        )
    ]
    assert [type(rows[0][1][at]) for at in (3, 11, 12, 13)] == [CellError] * 4


def test_xlsb_says_layout_epoch_and_visibility(tmp_path):
    cells = (
        brt(60, struct.pack("<IIIIH", 1, 2, 0, 0, 1))
        + xlsb_row(0)
        + xlsb_cell(5, 0, struct.pack("<d", 0.0), style=1)
        + xlsb_row(1, hidden=True)
        + brt(176, struct.pack("<IIII", 0, 1, 0, 3))
        + brt(151, struct.pack("<ddIII", 0, 2, 0, 0, 0) + b"\x01")
    )
    path = xlsb(tmp_path, cells, style=XLSB_STYLES, epoch=1, state=2)
    book, (rows,) = read(path)
    told = layout(path)
    assert book.notes["epoch"] == 1904
    assert book.sheets[0].visibility == "very_hidden"
    assert rows == [(1, [date(1904, 1, 1)])]
    assert told.merged == [(1, 1, 2, 4)]
    assert (told.hidden_rows, told.hidden_columns, told.frozen_rows) == ({2}, {2, 3}, 2)
    assert told.bold == {1: {1}}


def test_xlsb_rows_out_of_order_are_sorted(tmp_path):
    cells = b"".join(xlsb_row(r) + xlsb_cell(2, 0, struct.pack("<I", r << 2 | 2)) for r in (7, 1, 3))
    _, (rows,) = read(xlsb(tmp_path, cells))
    assert rows == [(2, [1]), (4, [3]), (8, [7])]


@pytest.mark.parametrize("body", [b"", b"\0\0", struct.pack("<II", 0, 0), struct.pack("<III", 0, 0, 9_000_000)])
def test_an_xlsb_record_that_is_too_short_is_damage(tmp_path, body):
    with pytest.raises(InputUnreadable) as caught:
        read(xlsb(tmp_path, xlsb_row(0) + brt(6, body)))
    assert caught.value.code == "damaged"


def xls_cell(kind, row, column, body, style=0):
    return biff(kind, struct.pack("<HHH", row, column, style) + body)


def shared_texts(*texts, cut=None):
    body = struct.pack("<II", len(texts), len(texts))
    for text in texts:
        body += struct.pack("<HB", len(text), 1) + text.encode("utf-16-le")
    if cut is None:
        return biff(0xFC, body)
    between_texts = cut == 19
    return biff(0xFC, body[:cut]) + biff(0x3C, (b"" if between_texts else b"\x01") + body[cut:])


XLS_STYLES = (
    biff(0x41E, struct.pack("<HHB", 164, 10, 0) + b"yyyy-mm-dd")
    + biff(0xE0, struct.pack("<HH", 0, 0) + bytes(16))
    + biff(0xE0, struct.pack("<HH", 0, 164) + bytes(16))
)


def test_xls_cells_have_their_types(tmp_path):
    cells = b"".join(
        [
            xls_cell(0x203, 2, 1, struct.pack("<d", 2.5)),
            xls_cell(0x27E, 2, 2, struct.pack("<I", 42 << 2 | 2)),
            xls_cell(0x203, 2, 3, struct.pack("<d", 45351.25), style=1),
            xls_cell(0xFD, 2, 4, struct.pack("<I", 1)),
            xls_cell(0x205, 2, 5, b"\x2a\x01"),
            xls_cell(0x205, 2, 6, b"\x01\x00"),
            xls_cell(0x204, 2, 7, struct.pack("<HB", 3, 0) + b"007"),
            xls_cell(0x06, 2, 8, struct.pack("<d", 6.0) + bytes(6)),
            xls_cell(0x06, 2, 9, b"\0\0\0\0\0\0\xff\xff" + bytes(6)),
            biff(0x207, struct.pack("<HB", 2, 0) + b"ok"),
            xls_cell(0x06, 2, 10, b"\2\0\x07\0\0\0\xff\xff" + bytes(6)),
            biff(0xBD, struct.pack("<HHHIHIH", 2, 11, 0, 1 << 2 | 2, 0, 2 << 2 | 2, 12)),
        ]
    )
    stream = xls_stream(cells, shared=XLS_STYLES + shared_texts("zero", "één"))
    book, (rows,) = read(container(tmp_path / "a.xls", {"Workbook": stream}))
    assert book.format == "xls"
    ((number, values),) = rows
    assert number == 3
    assert [str(values[3]), *values[4:]] == [
        "2024-02-29 06:00:00",
        "één",
        "#N/A",
        True,
        "007",
        6,
        "ok",
        "#DIV/0!",
        1,
        2,
    ]
    assert values[:3] == [None, 2.5, 42]


@pytest.mark.parametrize("cut", [11, 13, 15, 17, 19, 22, 24, 26, 28])
def test_an_xls_text_may_be_cut_between_records_anywhere(tmp_path, cut):
    """A continuation begins with a new flag where characters are cut, and with none between two texts."""
    cells = xls_cell(0xFD, 0, 0, struct.pack("<I", 0)) + xls_cell(0xFD, 0, 1, struct.pack("<I", 1))
    stream = xls_stream(cells, shared=shared_texts("abcd", "efgh", cut=cut))
    _, (rows,) = read(container(tmp_path / "a.xls", {"Workbook": stream}))
    assert rows == [(1, ["abcd", "efgh"])]


def test_xls_says_its_layout(tmp_path):
    cells = (
        biff(0x7D, struct.pack("<HHHHHH", 1, 1, 0, 0, 1, 0))
        + biff(0x208, struct.pack("<HHHHHHI", 3, 0, 1, 0, 0, 0, 0x20))
        + xls_cell(0x203, 3, 0, struct.pack("<d", 1.0))
        + biff(0xE5, struct.pack("<HHHHH", 1, 0, 0, 0, 2))
        + biff(0x23E, struct.pack("<HHHI", 8, 0, 0, 0))
        + biff(0x41, struct.pack("<HHHHB", 0, 1, 0, 0, 0))
    )
    path = container(tmp_path / "a.xls", {"Workbook": xls_stream(cells, state=1)})
    book, _ = read(path)
    told = layout(path)
    assert book.sheets[0].visibility == "hidden"
    assert (told.merged, told.hidden_rows, told.hidden_columns, told.frozen_rows) == ([(1, 1, 1, 3)], {4}, {2}, 1)


def test_an_xls_sheet_that_is_elsewhere_is_damage(tmp_path):
    stream = xls_stream(b"")
    at = stream.find(struct.pack("<H", 0x85)) + 4
    broken = stream[:at] + struct.pack("<I", 3) + stream[at + 4 :]
    with pytest.raises(InputUnreadable):
        read(container(tmp_path / "a.xls", {"Workbook": broken}))


def ods_cell(attributes="", text=""):
    shown = f"<text:p>{text}</text:p>" if text else ""
    return f"<table:table-cell {attributes}>{shown}</table:table-cell>"


TWICE = ods_cell('table:number-columns-repeated="2" office:value-type="float" office:value="1"')
EVERYWHERE = TWICE.replace('"2"', '"16384"')


def test_ods_cells_have_their_types(tmp_path):
    cells = "".join(
        [
            ods_cell('office:value-type="float" office:value="2.5"', "2,50"),
            ods_cell('office:value-type="currency" office:value="1000"', "1.000 €"),
            ods_cell('office:value-type="date" office:date-value="2024-02-29"', "29.02.24"),
            ods_cell('office:value-type="time" office:time-value="PT13H30M00S"', "13:30"),
            ods_cell('office:value-type="time" office:time-value="PT36H00M00S"', "36:00"),
            ods_cell('office:value-type="boolean" office:boolean-value="true"', "WAHR"),
            ods_cell('office:value-type="string"', "007"),
            ods_cell('office:value-type="string" calcext:value-type="error" table:formula="of:=1/0"', "#DIV/0!"),
            ods_cell('table:formula="of:=1/0"'),
            (
                "<table:table-cell office:value-type='string'><office:annotation><text:p>note</text:p></office:annotation><draw:frame><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame>"
                "<text:p>one<text:s text:c='2'/>two</text:p><text:p>three</text:p></table:table-cell>"
            ),
        ]
    )
    path = ods(tmp_path, f'<table:table table:name="Data"><table:table-row>{cells}</table:table-row></table:table>')
    book, (rows,) = read(path)
    assert book.format == "ods"
    ((number, values),) = rows
    assert number == 1
    assert values == [
        2.5,
        1000,
        date(2024, 2, 29),
        time(13, 30),
        timedelta(hours=36),
        True,
        "007",
        "#DIV/0!",
        NO_CACHED_VALUE,
        "one  two\nthree",
    ]
    assert isinstance(values[7], CellError)


def test_ods_repeats_count_and_cost_nothing(tmp_path):
    blank = "<table:table-row table:number-rows-repeated='{}'><table:table-cell table:number-columns-repeated='16384'/></table:table-row>"
    row = f"<table:table-row table:number-rows-repeated='2'><table:table-cell/>{TWICE}</table:table-row>"
    path = ods(tmp_path, f'<table:table table:name="D">{blank.format(3)}{row}{blank.format(1048571)}</table:table>')
    _, (rows,) = read(path)
    assert rows == [(4, [None, 1, 1]), (5, [None, 1, 1])]


def test_ods_sheets_are_read_alone_and_tell_their_layout(tmp_path):
    hidden = '<style:style style:name="ta2" style:family="table"><style:table-properties table:display="false"/></style:style>'
    one = ods_cell('office:value-type="float" office:value="1"')
    spanned = ods_cell(
        'office:value-type="string" table:number-columns-spanned="2" table:number-rows-spanned="1"', "title"
    )
    tables = (
        f'<table:table table:name="A"><table:table-column/><table:table-column table:visibility="collapse"/>'
        f"<table:table-row>{spanned}<table:covered-table-cell/></table:table-row>"
        f'<table:table-row table:visibility="filter">{one}</table:table-row></table:table>'
        f'<table:table table:name="B" table:style-name="ta2"><table:table-row>{one}{one}</table:table-row></table:table>'
    )
    path = ods(tmp_path, tables, styles=hidden)
    book, (first, second) = read(path)
    told = layout(path)
    assert [(s.name, s.visibility) for s in book.sheets] == [("A", "visible"), ("B", "hidden")]
    assert first == [(1, ["title"]), (2, [1])]
    assert second == [(1, [1, 1])]
    assert (told.merged, told.hidden_rows, told.hidden_columns) == ([(1, 1, 1, 2)], {2}, {2})


def test_ods_rows_repeated_into_millions_of_cells_are_refused(tmp_path):
    row = f"<table:table-row table:number-rows-repeated='1048576'>{EVERYWHERE}</table:table-row>"
    with pytest.raises(InputUnreadable):
        read(ods(tmp_path, f'<table:table table:name="D">{row}</table:table>'))


@pytest.mark.parametrize("number", [4_111_111_111_111_111, -(2**53) + 1, 999_999_999_999_999, 0, -7])
def test_whole_numbers_of_an_xls_keep_every_digit_that_a_double_holds(tmp_path, number):
    cells = biff(0x0203, struct.pack("<HHHd", 0, 0, 0, number))
    path = container(tmp_path / "book.xls", {"Workbook": xls_stream(cells)})
    with open_book(path, name="book.xls") as book:
        ((_, (value,)),) = book.sheets[0].rows()
    assert (type(value), value) == (int, number)


def formula_text(row, column):
    return biff(0x0006, struct.pack("<HHH", row, column, 0) + b"\0\0\0\0\0\0\xff\xff" + bytes(8))


@pytest.mark.parametrize("cuts", [[], [3], [1, 2, 3], [20_000], [8_000, 16_000, 24_000]])
@pytest.mark.parametrize("wide_parts", [(False, False), (True, True), (False, True)])
def test_a_formula_s_text_goes_on_in_the_records_after_it(tmp_path, cuts, wide_parts):
    text = ("Ünit " * 6_000)[:24_732] if len(cuts) != 1 or cuts[0] > 99 else "Über"
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    bodies = []
    for number, part in enumerate(parts):
        is_wide = wide_parts[number % 2]
        count = struct.pack("<H", len(text)) if number == 0 else b""
        bodies.append(count + bytes([is_wide]) + part.encode("utf-16-le" if is_wide else "latin-1"))
    cells = formula_text(0, 0) + biff(0x0207, bodies[0]) + b"".join(biff(0x003C, one) for one in bodies[1:])
    cells += biff(0x0203, struct.pack("<HHHd", 0, 1, 0, 5)) + formula_text(1, 0) + biff(0x0207, b"\1\0\0x")
    path = container(tmp_path / "book.xls", {"Workbook": xls_stream(cells)})
    assert read(path)[1] == [[(1, [text, 5]), (2, ["x"])]]


def test_a_stream_s_name_has_no_case(tmp_path):
    cells = biff(0x0203, struct.pack("<HHHd", 0, 0, 0, 5))
    path = container(tmp_path / "book.xls", {"WORKBOOK": xls_stream(cells)})
    assert read(path)[1] == [[(1, [5])]]


def test_the_book_at_the_root_is_read_and_not_an_embedded_one(tmp_path):
    """The directory lists the embedded workbook first; the tree of siblings says what stands at the root."""
    own, other = (xls_stream(biff(0x0203, struct.pack("<HHHd", 0, 0, 0, n))) for n in (1, 2))
    path = container(tmp_path / "book.xls", {"Workbook": other, "MBD0001": b"", "Book": own})
    raw = bytearray(path.read_bytes())
    at = raw.find("Root Entry".encode("utf-16-le"))
    none = b"\xff" * 4
    raw[at + 76 : at + 80] = struct.pack("<I", 3)  # root -> Book
    book = at + 3 * 128
    raw[book + 68 : book + 80] = struct.pack("<I", 2) + none + none  # its left sibling: the storage
    storage = at + 2 * 128
    raw[storage + 66] = 1
    raw[storage + 68 : storage + 80] = none + none + struct.pack("<I", 1)  # which holds the other workbook
    path.write_bytes(raw)
    assert read(path)[1] == [[(1, [1])]]


@pytest.mark.parametrize(
    ("page", "codec"), [(10029, "mac-latin2"), (10007, "mac-cyrillic"), (1250, "cp1250"), (4711, "cp1252")]
)
def test_texts_of_an_old_book_are_in_its_code_page(tmp_path, page, codec):
    text = {"mac-cyrillic": "Привет", "cp1252": "Zoë"}.get(codec, "Zażółć")
    raw = text.encode(codec)
    start = biff(0x0809, struct.pack("<HHHH", 0x0500, 5, 0, 0)) + biff(0x0042, struct.pack("<H", page))
    title = bytes([4]) + b"Data"
    listed_size = 4 + 6 + len(title)
    listed = biff(0x0085, struct.pack("<IBB", len(start) + listed_size + 4, 0, 0) + title)
    cells = biff(0x0204, struct.pack("<HHHH", 0, 0, 0, len(raw)) + raw)
    stream = (
        start + listed + biff(0x000A) + biff(0x0809, struct.pack("<HHHH", 0x0500, 0x10, 0, 0)) + cells + biff(0x000A)
    )
    assert read(container(tmp_path / "book.xls", {"Book": stream}))[1] == [[(1, [text])]]


def old_book(tmp_path, raw, *records):
    """A book of Excel 5 with one text."""
    start = biff(0x0809, struct.pack("<HHHH", 0x0500, 5, 0, 0)) + b"".join(records)
    listed = biff(0x0085, struct.pack("<IBB", len(start) + 15 + 4, 0, 0) + b"\4Data")
    cells = biff(0x0204, struct.pack("<HHHH", 0, 0, 0, len(raw)) + raw)
    sheet = biff(0x0809, struct.pack("<HHHH", 0x0500, 0x10, 0, 0)) + cells + biff(0x000A)
    return container(tmp_path / "book.xls", {"Book": start + listed + biff(0x000A) + sheet})


def test_an_old_book_without_a_code_page_is_read_as_its_fonts_are_made(tmp_path):
    font = biff(0x0031, struct.pack("<HHHHHBBBB", 200, 0, 0, 400, 0, 0, 0, 204, 0) + b"\5Arial")
    book, rows = read(old_book(tmp_path, "Наименование".encode("cp1251"), font))
    assert rows == [[(1, ["Наименование"])]]
    assert [(c.kind, c.chosen, c.sure) for c in book.choices] == [("encoding", "cp1251", True)]


def test_an_old_book_that_says_nothing_of_its_texts_is_a_guess(tmp_path):
    path = old_book(tmp_path, "Zażółć".encode("cp1250"))
    assert [(c.chosen, c.sure) for c in read(path)[0].choices] == [("cp1252", False)]
    with open_book(path, name="book.xls", options=TextOptions(encoding="cp1250")) as book:
        assert (list(book.sheets[0].rows()), book.choices) == ([(1, ["Zażółć"])], [])
    assert read(old_book(tmp_path, b"plain"))[0].choices == []


def test_what_an_ods_remembers_of_other_files_is_no_sheet(tmp_path):
    def table(name, value):
        cell = f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        return f'<table:table table:name="{name}"><table:table-row>{cell}</table:table-row></table:table>'

    links = f"<table:dde-links><table:dde-link>{table('cache', 9)}</table:dde-link></table:dde-links>"
    changes = f"<table:tracked-changes><table:cell-content-change>{table('old', 8)}</table:cell-content-change></table:tracked-changes>"
    book, rows = read(ods(tmp_path, changes + table("Data", 1) + links))
    assert [s.name for s in book.sheets] == ["Data"]
    assert rows == [[(1, [1])]]


@pytest.mark.parametrize(("setting", "epoch"), [("", 1900), ("1899-12-30", 1900), ("1904-01-01", 1904)])
def test_an_ods_says_what_its_days_count_from(tmp_path, setting, epoch):
    settings = (
        f'<table:calculation-settings><table:null-date table:date-value="{setting}"/></table:calculation-settings>'
    )
    cell = '<table:table-cell office:value-type="float" office:value="1"/>'
    table = f'<table:table table:name="A"><table:table-row>{cell}</table:table-row></table:table>'
    book, _ = read(ods(tmp_path, (settings if setting else "") + table))
    assert book.notes["epoch"] == epoch
