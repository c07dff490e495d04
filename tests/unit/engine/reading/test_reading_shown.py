"""A text takes what a cell shows: zeros in front and fixed characters are part of an identifier."""

import pickle
import struct

import openpyxl
import pytest

from runner.engine.reading import Shown, open_book
from runner.engine.reading.number_formats import shower_of
from runner.engine.values.convert import text_of
from tests.support.engine_jobs import run_job
from tests.support.workbook_makers import biff, brt, container, ods, sheet, styles, wide, xls_stream, xlsb, xlsx


@pytest.mark.parametrize(
    ("code", "number", "shows"),
    [
        ("00000", 501, "00501"),
        ("00000", 0, "00000"),
        ("00000", 1234567, "1234567"),
        ("00000", -501, "-00501"),
        ("000-00-0000", 12345678, "012-34-5678"),
        ("00000-0000", 21110000, "02111-0000"),
        ("(000) 000-0000", 5551234567, "(555) 123-4567"),
        ("[<=9999999]###-####;(###) ###-####", 5551234, "555-1234"),
        ("[<=9999999]###-####;(###) ###-####", 5551234567, "(555) 123-4567"),
        ('"INV-"0000', 42, "INV-0042"),
        ("\\I\\N\\V\\-0000", 42, "INV-0042"),
        ('0" kg"', 5, "5 kg"),
        ('"ID "General', 17, "ID 17"),
        ("[Red]000;[Blue]-000", -7, "-007"),
        ('"yes";;"no"', 1, "yes"),
        ('"yes";;"no"', 0, "no"),
        ("[$-409]0000", 7, "0007"),
        ("0000_)", 7, "0007"),
        ("* 0000", 7, "0007"),
        ("000;;", 0, None),
    ],
)
def test_a_format_shows_a_number_as_a_person_sees_it(code, number, shows):
    assert shower_of(code)(number) == shows


@pytest.mark.parametrize(
    "code",
    [
        "General", "0", "#", "##0", "0;-0", "0_);(0.0)", "#,##0", "#,##0;-#,##0", "0.00", "0%", "0.00%", "0.00E+00", "# ?/?", "@",
        '"$"0000', "$0", "[$€-407] 0", '0 "€"', "0,", "", "x" * 300, '_(* #,##0_);_(* \\(#,##0\\);_(* "-"_);_(@_)', ";;;", "[Red]0",
    ],
)  # fmt: skip
def test_amounts_and_plain_numbers_stay_numbers(code):
    """An accountant's format, a currency or a percent sign names the kind of number, not its text."""
    assert shower_of(code) is None


def value_of(path):
    with open_book(path, name=path.name) as book:
        ((_, (value,)),) = book.sheets[0].rows()
    return value


def padded(tmp_path, kind):
    if kind == "xlsx":
        return xlsx(tmp_path, sheet('<row r="1"><c r="A1" s="1"><v>501</v></c></row>'), style=styles("00000"))
    if kind == "xls":
        number_format = biff(0x041E, struct.pack("<HHB", 164, 5, 0) + b"00000")
        xfs = biff(0x00E0, struct.pack("<HH16x", 0, 0)) + biff(0x00E0, struct.pack("<HH16x", 0, 164))
        cells = biff(0x0203, struct.pack("<HHHd", 0, 0, 1, 501))
        return container(tmp_path / "book.xls", {"Workbook": xls_stream(cells, shared=number_format + xfs)})
    if kind == "xlsb":
        look = brt(44, struct.pack("<H", 164) + wide("00000")) + brt(617) + brt(47, struct.pack("<HH12x", 0, 0))
        look += brt(47, struct.pack("<HH12x", 0, 164)) + brt(618)
        cells = brt(0, struct.pack("<IIHBB", 0, 0, 300, 0, 0)) + brt(5, struct.pack("<IId", 0, 1, 501))
        return xlsb(tmp_path, cells, style=look)
    cell = '<table:table-cell office:value-type="float" office:value="501"><text:p>00501</text:p></table:table-cell>'
    return ods(tmp_path, f'<table:table table:name="A"><table:table-row>{cell}</table:table-row></table:table>')


@pytest.mark.parametrize("kind", ["xlsx", "xls", "xlsb", "ods"])
def test_every_format_says_what_a_padded_number_shows(tmp_path, kind):
    value = value_of(padded(tmp_path, kind))
    assert (value, text_of(value), type(value)) == (501, "00501", Shown)


@pytest.mark.parametrize(
    ("value", "text", "shows"),
    [
        ("1234", "1,234", None), ("1234", "1.234", None), ("1234", "1 234", None), ("12345678", "12 345 678", None),
        ("5", "5.00", None), ("5", "€5", None), ("5", "5", None), ("5", "", None), ("5", "6", None), ("1000", "1E+03", None),
        ("501", "00501", "00501"), ("12345678", "012-34-5678", "012-34-5678"), ("5551234567", "(555) 123-4567", "(555) 123-4567"),
        ("42", "INV-0042", "INV-0042"), ("1", "yes", "yes"), ("-7", "-007", "-007"),
    ],
)  # fmt: skip
def test_an_ods_cell_is_shown_by_its_own_text(tmp_path, value, text, shows):
    cell = (
        f'<table:table-cell office:value-type="float" office:value="{value}"><text:p>{text}</text:p></table:table-cell>'
    )
    read = value_of(
        ods(tmp_path, f'<table:table table:name="A"><table:table-row>{cell}</table:table-row></table:table>')
    )
    assert (read, getattr(read, "shown", None)) == (int(value), shows)


def test_a_shown_number_is_a_number_to_everything_else():
    value = Shown(501, "00501")
    again = pickle.loads(pickle.dumps([value, value], 5))
    assert again == [501, 501]
    assert again[0].shown == "00501"
    assert value + 1 == 502


def book_of(path, rows, code, *, column=2):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for row in book.active.iter_rows(min_row=2):
        row[column - 1].number_format = code
    book.save(path)


def test_a_text_field_takes_what_the_cell_shows(tmp_path):
    book_of(tmp_path / "in.xlsx", [["name", "zip", "n"], *([f"p{n}", 500 + n, n] for n in range(1, 40))], "00000")
    done = run_job(tmp_path, fields=[{"name": "name"}, {"name": "zip"}, {"name": "n", "type": "integer"}])
    assert done.column("zip") == [f"{500 + n:05}" for n in range(1, 40)]
    assert done.findings == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "integer"}, 501),
        ({"type": "decimal"}, 501),
        ({"type": "enum", "allowed": ["00501"]}, "00501"),
        ({"type": "enum", "allowed": ["501"]}, "501"),
        ({"type": "text", "pattern": "[0-9]{5}"}, "00501"),
    ],
)
def test_every_other_type_takes_the_number(tmp_path, field, value):
    book_of(tmp_path / "in.xlsx", [["name", "zip"], ["a", 501], ["b", 501], ["c", 501]], "00000")
    done = run_job(tmp_path, fields=[{"name": "name"}, {"name": "zip", **field}])
    assert done.column("zip") == [value] * 3
    assert done.findings == []


def test_an_unmapped_column_keeps_what_it_shows(tmp_path):
    book_of(tmp_path / "in.xlsx", [["name", "zip"], ["a", 501], ["b", 10_001], ["c", 501]], "00000")
    done = run_job(tmp_path, fields=[{"name": "name"}])
    assert done.column("zip") == ["00501", "10001", "00501"]
