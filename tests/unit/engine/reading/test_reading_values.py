"""What stored cells of an .xlsx come out as."""

from datetime import date, datetime, time, timedelta

import pytest

from runner.engine.reading import NO_CACHED_VALUE, CellError, open_book
from tests.support.workbook_makers import sheet, strings, styles, xlsx


def first_row(path):
    with open_book(path, name=path.name) as book:
        rows = list(book.sheets[0].rows())
    return rows[0][1] if rows else None


def cell(tmp_path, stored, **options):
    """The value of A1, stored as given."""
    row = first_row(xlsx(tmp_path, sheet(f'<row r="1">{stored}</row>'), **options))
    return row[0] if row else None


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ('<c r="A1"><v>42</v></c>', 42),
        ('<c r="A1"><v>-7</v></c>', -7),
        ('<c r="A1" t="n"><v>2.5</v></c>', 2.5),
        ('<c r="A1"><v>1E3</v></c>', 1000),
        ('<c r="A1"><v>100.0</v></c>', 100),
        ('<c r="A1"><v>12345678901234567890</v></c>', 12345678901234567890),
        ('<c r="A1"><v>-12345678901234567</v></c>', -12345678901234567),
        ('<c r="A1"><v>1.2345678901234568E+19</v></c>', 1.2345678901234568e19),
        ('<c r="A1" t="b"><v>1</v></c>', True),
        ('<c r="A1" t="b"><v>0</v></c>', False),
        ('<c r="A1" t="str"><f>A2</f><v>007</v></c>', "007"),
        ('<c r="A1" t="inlineStr"><is><t>00123</t></is></c>', "00123"),
        (
            '<c r="A1" t="inlineStr"><is><r><t>Rich</t></r><r><t xml:space="preserve"> text</t></r></is></c>',
            "Rich text",
        ),
        ('<c r="A1" t="inlineStr"><is><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></is></c>', "東京"),
        ('<c r="A1" t="str"><v>a&amp;b &lt;c&gt; &#65;&#x42;</v></c>', "a&b <c> AB"),
        ('<c r="A1" t="str"><v>line_x000D_end</v></c>', "line\rend"),
        ('<c r="A1" t="str"><v>_x005F_x000D_</v></c>', "_x000D_"),
        ('<c r="A1" t="str"><v>_xD83D__xDE00_</v></c>', "\U0001f600"),
        ('<c r="A1" t="str"><v>_xD83D_</v></c>', "\ufffd"),
        ('<c r="A1" t="inlineStr"><is><t> kept not </t></is></c>', "kept not"),
        ('<c r="A1" t="inlineStr"><is><t xml:space="preserve"> kept </t></is></c>', " kept "),
        ('<c r="A1" t="d"><v>2024-02-29</v></c>', date(2024, 2, 29)),
        ('<c r="A1" t="d"><v>2024-02-29T13:30:00.250Z</v></c>', datetime(2024, 2, 29, 13, 30, 0, 250_000)),
        ('<c r="A1" t="d"><v>13:30:00</v></c>', time(13, 30)),
        ('<c r="A1"><v>not a number</v></c>', "not a number"),
    ],
)
def test_a_stored_cell_has_one_meaning(tmp_path, stored, value):
    read = cell(tmp_path, stored)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("code", ["#N/A", "#DIV/0!", "#REF!", "#SPILL!"])
def test_an_error_cell_is_an_error_and_not_text(tmp_path, code):
    read = cell(tmp_path, f'<c r="A1" t="e"><f>1/0</f><v>{code}</v></c>')
    assert isinstance(read, CellError)
    assert read == code


@pytest.mark.parametrize("text", ["NaN", "INF", "-inf", "1e999"])
def test_a_number_that_is_none_is_an_error(tmp_path, text):
    assert cell(tmp_path, f'<c r="A1"><v>{text}</v></c>') == CellError("#NUM!")


@pytest.mark.parametrize(
    "stored",
    [
        '<c r="A1"><f>SUM(B1:C1)</f></c>',
        '<c r="A1"><f>SUM(B1:C1)</f><v/></c>',
        '<c r="A1"><f>SUM(B1:C1)</f><v></v></c>',
        '<c r="A1" t="str"><f>B1&amp;C1</f></c>',
        '<c r="A1"><f t="shared" si="0"/></c>',
    ],
)
def test_a_formula_without_a_stored_result_says_so(tmp_path, stored):
    assert cell(tmp_path, stored) is NO_CACHED_VALUE


@pytest.mark.parametrize(
    "stored",
    [
        '<c r="A1" s="1"/>',
        '<c r="A1" t="str"><f>""</f><v></v></c>',
        '<c r="A1"><v></v></c>',
        '<c r="A1" t="s"><v></v></c>',
    ],
)
def test_a_cell_that_shows_nothing_is_blank(tmp_path, stored):
    assert cell(tmp_path, stored, shared=strings()) is None


@pytest.mark.parametrize(
    ("code", "serial", "value"),
    [
        (14, "45351", date(2024, 2, 29)),
        (14, "45351.5", datetime(2024, 2, 29, 12)),
        (22, "45351.75", datetime(2024, 2, 29, 18)),
        (20, "0.5", time(12)),
        (21, "0.999988425925926", time(23, 59, 59)),
        (46, "1.5", timedelta(hours=36)),
        ("[h]:mm:ss", "2.25", timedelta(hours=54)),
        ("yyyy\\-mm\\-dd", "1", date(1900, 1, 1)),
        ("d.m.yy", "59", date(1900, 2, 28)),
        ("d.m.yy", "61", date(1900, 3, 1)),
        ("[$-409]d\\-mmm\\-yy;@", "45351", date(2024, 2, 29)),
        ("[$-F400]h:mm:ss\\ AM/PM", "0.25", time(6)),
        ("yyyy&quot;年&quot;m&quot;月&quot;", "45351", date(2024, 2, 29)),
        (27, "45351", date(2024, 2, 29)),
        (31, "45351", date(2024, 2, 29)),
        (57, "45351", date(2024, 2, 29)),
        (33, "0.5", time(12)),
        (14, "0", 0),
        (14, "-3", -3),
        (14, "9999999", 9999999),
    ],
)
def test_a_date_format_makes_a_number_a_date(tmp_path, code, serial, value):
    read = cell(tmp_path, f'<c r="A1" s="1"><v>{serial}</v></c>', style=styles(code))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "code", ["General", "0.00", "#,##0", "0.00E+00", "&quot;day&quot; 0", "[Red]0", "[$€-407] #,##0.00", "0.0\\d", "@"]
)
def test_other_formats_leave_a_number_alone(tmp_path, code):
    assert cell(tmp_path, '<c r="A1" s="1"><v>45351</v></c>', style=styles(code)) == 45351


def test_the_1904_epoch_moves_dates_by_four_years(tmp_path):
    read = cell(tmp_path, '<c r="A1" s="1"><v>0</v></c>', style=styles(14), workbook='<workbookPr date1904="1"/>')
    assert read == date(1904, 1, 1)


def test_an_extension_of_the_workbook_s_properties_does_not_reset_the_epoch(tmp_path):
    workbook = '<workbookPr date1904="1"/><extLst><ext><x15:workbookPr xmlns:x15="x"/></ext></extLst>'
    read = cell(tmp_path, '<c r="A1" s="1"><v>1462</v></c>', style=styles(14), workbook=workbook)
    assert read == date(1908, 1, 2)


def test_shared_strings_are_joined_and_unescaped(tmp_path):
    shared = strings(
        "<t>plain</t>",
        '<t xml:space="preserve"> a &amp; b </t>',
        "<r><rPr><b/></rPr><t>bold</t></r><r><t>er</t></r>",
        '<t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/>',
        "<t/>",
        "<t>last_x000A_line</t>",
    )
    row = "".join(f'<c r="{"ABCDEF"[n]}1" t="s"><v>{n}</v></c>' for n in range(6))
    read = first_row(xlsx(tmp_path, sheet(f'<row r="1">{row}</row>'), shared=shared))
    assert read == ["plain", " a & b ", "bolder", "東京", None, "last\nline"]


def test_a_string_index_past_the_end_is_an_error_cell(tmp_path):
    assert cell(tmp_path, '<c r="A1" t="s"><v>99</v></c>', shared=strings("<t>a</t>")) == CellError("#VALUE!")


def test_a_negative_string_index_is_an_error_cell(tmp_path):
    assert cell(tmp_path, '<c r="A1" t="s"><v>-1</v></c>', shared=strings("<t>a</t>")) == CellError("#VALUE!")


@pytest.mark.parametrize("style", ["9999", "", "-1", "x"])
def test_a_style_index_that_leads_nowhere_leaves_a_plain_number(tmp_path, style):
    assert cell(tmp_path, f'<c r="A1" s="{style}"><v>45351</v></c>', style=styles(14)) == 45351


def test_many_strings_past_the_listed_ones_are_read_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("runner.engine.reading.books._MOST_LISTED_STRINGS", 0)
    shared = strings(*(f"<t>värde {n}</t>" for n in range(9)))
    row = "".join(f'<c r="{"ABCDEFGHI"[n]}1" t="s"><v>{n}</v></c>' for n in range(9))
    assert first_row(xlsx(tmp_path, sheet(f'<row r="1">{row}</row>'), shared=shared)) == [
        f"värde {n}" for n in range(9)
    ]


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ("2014-01-02T15:59:59.99999979045242400", datetime(2014, 1, 2, 16)),
        ("2014-12-31T23:59:59.9999999", datetime(2015, 1, 1)),
        ("2014-01-02T15:59:59.1230000001", datetime(2014, 1, 2, 15, 59, 59, 123_000)),
        ("2014-01-02T15:59:59.123456789", datetime(2014, 1, 2, 15, 59, 59, 123_457)),
        ("2014-01-02T15:59:59.999999", datetime(2014, 1, 2, 15, 59, 59, 999_999)),
        ("2014-01-02T15:59:59,5", datetime(2014, 1, 2, 15, 59, 59, 500_000)),
        ("9999-12-31T23:59:59.99999999", "9999-12-31T23:59:59.99999999"),
        ("15:59:59.99999979045242400", time(16)),
        ("2014-13-01", "2014-13-01"),
        ("2014-01-02T15:59:59." + "9" * 41, "2014-01-02T15:59:59." + "9" * 41),
    ],
)
def test_fractions_of_iso_seconds_are_rounded_and_never_dropped(tmp_path, stored, value):
    assert cell(tmp_path, f'<c r="A1" t="d"><v>{stored}</v></c>') == value


@pytest.mark.parametrize("text", ["A&amp;B", "&lt;c r='B1'&gt;", "#NV", "#ИМЯ?", "0", "x" * 99])
def test_an_error_of_unknown_text_is_a_value_error(tmp_path, text):
    read = cell(tmp_path, f'<c r="A1" t="e"><v>{text}</v></c>')
    assert (type(read), read) == (CellError, "#VALUE!")
