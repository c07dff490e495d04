"""A cell is what a person sees: raised, small, lowered and struck-out parts, hidden parts and form controls."""

import struct
import zipfile

import openpyxl
import pytest
import xlsxwriter
import xlwt

from runner.engine.reading import open_book
from runner.engine.reading.runs import Noted, Run, may_be_twice, shown
from tests.support.engine_jobs import run_job
from tests.support.workbook_makers import brt, ods, wide, xlsb


def seen(*parts):
    """The text, and what is noted about it."""
    text = shown([Run(*part) if isinstance(part, tuple) else Run(part) for part in parts])
    return str(text), text.note if isinstance(text, Noted) else None


@pytest.mark.parametrize(
    ("parts", "value"),
    [
        (("1253", ("2", "raised")), "1253"),
        (("1,253.50", ("1)", "raised")), "1,253.50"),
        (("12 %", ("a", "struck"), ("b", "raised")), "12 %"),
        (("912", ("*", "raised")), "912"),
        (("912 ", ("1, 3", "raised")), "912"),
        (("Serbia", ("4", "raised")), "Serbia"),
        (("Côte d'Ivoire", ("†", "raised")), "Côte d'Ivoire"),
        ((("1", "raised"), "Serbia"), "Serbia"),
        (("Total (net)", ("2", "raised")), "Total (net)"),
    ],
)
def test_a_raised_mark_is_a_footnote_and_no_part_of_the_value(parts, value):
    text, note = seen(*parts)
    assert text == value
    assert note in ("footnote", "struck_part")


@pytest.mark.parametrize(
    "parts",
    [
        ("Area (m", ("2", "raised"), ")"),
        ("12 km", ("2", "raised")),
        ("R", ("2", "raised")),
        ("CO", ("2", "lowered")),
        ("1", ("st", "raised"), " of May"),
        ("5", ("e", "raised")),
        ("Acme", ("TM", "raised")),
        ("H", ("2", "lowered"), "SO", ("4", "lowered")),
        (("1", "raised"), "/", ("2", "lowered")),
        ("Lamp ", ("incl. VAT", "small")),
        ("5,", ("99", "small")),
        ("Room 5 ", ("12", "small")),
    ],
)
def test_units_formulas_and_small_print_belong_to_the_text(parts):
    whole = "".join(part if isinstance(part, str) else part[0] for part in parts)
    assert seen(*parts) == (whole, None)


@pytest.mark.parametrize(
    ("parts", "value", "note"),
    [
        (("10", ("6", "raised")), "10^6", "power"),
        (("1.5 \u00d7 10", ("-3", "raised")), "1.5 \u00d7 10^-3", "power"),
        (("1", ("1", "raised"), "/2"), "1 1/2", "power"),
        (("5", ("99", "small")), "5.99", "cents"),
        (("$5", ("99", "raised")), "$5.99", "cents"),
        (("52", ("07", "raised")), "52.07", "cents"),
        (("1", ("234", "small")), "1 234", "power"),
        ((("12", "struck"), "15"), "15", "struck_part"),
        (("15 ", ("12", "struck"), " kg"), "15 kg", "struck_part"),
        ((("12", "struck"),), "12", "struck"),
    ],
)
def test_what_is_not_one_value_is_never_just_joined(parts, value, note):
    assert seen(*parts) == (value, note)


FIELDS = [{"name": "item", "type": "text"}, {"name": "price", "type": "decimal"}]
ITEMS = ("Lamp", "Desk", "Sofa", "Bed")


def expect(out):
    """The same book in each format: a footnote, a struck-out part and two plain prices."""
    assert out.rows()[1:] == [["Lamp", 1253], ["Desk", 15], ["Sofa", 8], ["Bed", 9]]
    assert out.cells("raised_text") == ["B2"]
    assert out.cells("struck_text") == ["B3"]


def test_runs_of_an_xlsx(tmp_path):
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx")
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ("item", "price"))
    sheet.write_column(1, 0, ITEMS)
    raised, struck = book.add_format({"font_script": 1}), book.add_format({"font_strikeout": True})
    sheet.write_rich_string(1, 1, "1253", raised, "2")
    sheet.write_rich_string(2, 1, struck, "12", "15")
    sheet.write_column(3, 1, (8, 9))
    book.close()
    expect(run_job(tmp_path, fields=FIELDS))


def test_runs_in_the_cells_of_an_xlsx(tmp_path):
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx", {"constant_memory": True})  # writes texts into the cells
    sheet = book.add_worksheet()
    raised, struck = book.add_format({"font_script": 1}), book.add_format({"font_strikeout": True})
    sheet.write_row(0, 0, ("item", "price"))
    for row, (item, price) in enumerate(
        zip(ITEMS, (("1253", raised, "2"), (struck, "12", "15"), 8, 9), strict=True), 1
    ):
        sheet.write(row, 0, item)
        if isinstance(price, tuple):
            sheet.write_rich_string(row, 1, *price)
        else:
            sheet.write(row, 1, price)
    book.close()
    expect(run_job(tmp_path, fields=FIELDS))


def test_runs_of_an_xls(tmp_path):
    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    raised, struck = xlwt.easyfont("escapement superscript"), xlwt.easyfont("struck_out true")
    for at, name in enumerate(("item", "price")):
        sheet.write(0, at, name)
    for row, item in enumerate(ITEMS, 1):
        sheet.write(row, 0, item)
    sheet.write_rich_text(1, 1, ["1253", ("2", raised)])
    sheet.write_rich_text(2, 1, [("12", struck), ("15", xlwt.easyfont(""))])
    sheet.write(3, 1, 8)
    sheet.write(4, 1, 9)
    book.save(str(tmp_path / "in.xls"))
    expect(job(tmp_path, tmp_path / "in.xls"))


def job(folder, path, fields=FIELDS):
    """A job over a file that is there already; its content decides the format."""
    (folder / "in.xlsx").write_bytes(path.read_bytes())
    return run_job(folder, fields=fields)


def test_runs_of_an_xlsb(tmp_path):
    def string(text, *runs):
        body = b"".join(struct.pack("<HH", at, font) for at, font in runs)
        return brt(19, bytes([bool(runs)]) + wide(text) + (struct.pack("<I", len(runs)) + body if runs else b""))

    texts = ["item", "price", *ITEMS]
    strings = b"".join(map(string, texts)) + string("12532", (4, 1)) + string("1215", (0, 2), (2, 0))
    styles = b"".join(
        brt(43, struct.pack("<HHHH", 220, flags, 400, script)) for flags, script in ((0, 0), (0, 1), (8, 0))
    )

    def row(number, *cells):
        return brt(0, struct.pack("<IIHBB", number, 0, 300, 0, 0)) + b"".join(
            brt(kind, struct.pack("<II", column, 0) + struct.pack("<I", value))
            for column, (kind, value) in enumerate(cells)
        )

    cells = row(0, (7, 0), (7, 1)) + row(1, (7, 2), (7, 6)) + row(2, (7, 3), (7, 7))
    cells += row(3, (7, 4), (2, 8 << 2 | 2)) + row(4, (7, 5), (2, 9 << 2 | 2))
    expect(job(tmp_path, xlsb(tmp_path, cells, shared=strings, style=styles)))


def test_runs_of_an_ods(tmp_path):
    styles = (
        '<style:style style:name="up" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>'
        '<style:style style:name="gone" style:family="text">'
        '<style:text-properties style:text-line-through-style="solid"/></style:style>'
    )

    def cell(markup):
        return f'<table:table-cell office:value-type="string"><text:p>{markup}</text:p></table:table-cell>'

    prices = [
        '1253<text:span text:style-name="up">2</text:span>',
        '<text:span text:style-name="gone">12</text:span>15',
        "8",
        "9",
    ]
    rows = "".join(
        f"<table:table-row>{cell(a)}{cell(b)}</table:table-row>"
        for a, b in [("item", "price"), *zip(ITEMS, prices, strict=True)]
    )
    expect(job(tmp_path, ods(tmp_path, f'<table:table table:name="S">{rows}</table:table>', styles=styles)))


def page(tmp_path, *rows, head=""):
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    text = f"<html><head>{head}</head><body><table><tr><th>item</th><th>price</th></tr>{body}</table></body></html>"
    (tmp_path / "in.html").write_text(text)
    return job(tmp_path, tmp_path / "in.html")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1253<sup>2</sup>", "<s>12</s>15"),
        ("1253 <sup><a href='#n'>2</a></sup>", "<del>12</del> 15"),
        ('1253<span style="vertical-align: super">2</span>', '<span style="text-decoration:line-through">12</span> 15'),
        ('1253<font class="f5">2</font>', '<strike>12</strike><font class="f6">15</font>'),
    ],
)
def test_runs_of_a_page(tmp_path, first, second):
    head = "<style><!-- .f5 {vertical-align:super;} .f6 {color:red} @media print {.f6 {display:none}} --></style>"
    expect(page(tmp_path, ("Lamp", first), ("Desk", second), ("Sofa", 8), ("Bed", 9), head=head))


@pytest.mark.parametrize(
    "cell",
    [
        '<span style="display:none">0007</span>7',
        "<span hidden>0007</span>7",
        '<span style="visibility: hidden">9</span>7',
        '<span class="key">0007</span>7',
        '<div style="display: none"><span>1</span><p>2</p></div>7',
        '<input type="text" value="7">',
        "<input type=hidden value=99><input value=7>",
        "<select><option>5<option selected>7<option>9</select>",
        "<select><option>7</option><option>9</option></select>",
        "<textarea>7</textarea>",
        "<ruby>7<rt>seven</rt></ruby>",
    ],
)
def test_a_page_is_read_as_a_browser_shows_it(tmp_path, cell):
    head = "<style>.key, td.other { display: none }</style>"
    out = page(tmp_path, ("Lamp", cell), ("Desk", 8), ("Sofa", 9), head=head)
    assert out.column("price") == [7, 8, 9]
    assert [f["code"] for f in out.findings if f["severity"] != "info"] == []


def test_ticks_of_a_page_are_truth_values(tmp_path):
    (tmp_path / "in.html").write_text(
        "<table><tr><th>item<th>active<tr><td>Lamp<td><input type=checkbox checked>"
        "<tr><td>Desk<td><input type=checkbox><tr><td>Sofa<td><input type='checkbox' checked='checked'></table>"
    )
    out = job(tmp_path, tmp_path / "in.html", [{"name": "item", "type": "text"}, {"name": "active", "type": "boolean"}])
    assert out.column("active") == [True, False, True]


def test_a_picture_is_read_as_its_alternative_text_and_reported(tmp_path):
    out = page(tmp_path, ("Lamp", '<img src="seven.png" alt="7">'), ("Desk", 8), ("Sofa", '<img alt="new">9'))
    assert out.column("price") == [7, 8, 9]
    assert out.cells("image_text") == ["B2"]


def test_several_controls_in_a_cell_are_reported(tmp_path):
    out = page(tmp_path, ("Lamp", "<input value=7> <input value=8>"), ("Desk", 8), ("Sofa", 9))
    assert out.cells("form_input") == ["B2"]


def test_a_hidden_column_of_a_page_is_a_hidden_column(tmp_path):
    path = tmp_path / "in.html"
    path.write_text("<table><tr><th>a<th style='display:none'>b<tr><td>1<td style='display:none'>2</table>")
    with open_book(path, name="in.html") as book:
        assert book.sheets[0].layout().hidden_columns == {2}


def test_whole_cells_that_are_struck_out_are_kept_and_reported(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["item", "price"])
    for row in (["Lamp", 7], ["Desk", 8], ["Sofa", 9]):
        sheet.append(row)
    for cell in sheet[3]:
        cell.font = openpyxl.styles.Font(strike=True)
    book.save(tmp_path / "in.xlsx")
    out = run_job(tmp_path, fields=FIELDS)
    assert out.column("price") == [7, 8, 9]
    assert out.cells("struck_text") == ["A3"]


@pytest.mark.parametrize("code", ["-0.00", '"-"#,##0.00', "-0.00;0.00", "(0.00)", "-€ 0.00"])
def test_a_minus_that_only_the_number_format_shows_is_reported(tmp_path, code):
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx")
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ("item", "price"))
    for row, item in enumerate(ITEMS, 1):
        sheet.write(row, 0, item)
        sheet.write(row, 1, row + 0.5, book.add_format({"num_format": code}))
    book.close()
    out = run_job(tmp_path, fields=FIELDS)
    assert out.column("price") == [1.5, 2.5, 3.5, 4.5]
    assert out.cells("sign_ignored") == ["B2", "B3", "B4", "B5"]


@pytest.mark.parametrize(
    "code", ["0.00", "0.00;-0.00", "_(* #,##0.00_);_(* (#,##0.00);_(* -??_)", "(000) 000-0000", "0-00", "General"]
)
def test_formats_that_show_a_minus_only_for_negative_numbers_are_fine(tmp_path, code):
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx")
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ("item", "price"))
    for row, item in enumerate(ITEMS, 1):
        sheet.write(row, 0, item)
        sheet.write(row, 1, row, book.add_format({"num_format": code}))
    book.close()
    assert run_job(tmp_path, fields=FIELDS).cells("sign_ignored") == []


def test_words_that_a_number_format_shows_are_the_text(tmp_path):
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx")
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ("item", "price"))
    form = book.add_format({"num_format": '[=1]"male";[=2]"female"'})
    for row, number in enumerate((1, 2, 1), 1):
        sheet.write(row, 0, number, form)
        sheet.write(row, 1, row)
    book.close()
    assert run_job(tmp_path, fields=FIELDS).column("item") == ["male", "female", "male"]


def test_letters_encoded_twice_inside_a_workbook_are_reported_at_their_cells(tmp_path):
    rows = [["item", "price"], ["Müller", 7], ["MÃ¼ller", 8], ["Sofa", 9]]
    assert run_job(tmp_path / "a", rows, fields=FIELDS).cells("encoded_twice") == ["A3"]
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx", {"constant_memory": True})
    sheet = book.add_worksheet()
    for at, row in enumerate(rows):
        sheet.write_row(at, 0, row)
    book.close()
    assert run_job(tmp_path, fields=FIELDS).cells("encoded_twice") == ["A3"]


@pytest.mark.parametrize("text", ["Müller", "Łukasz", "Žižková", "Ąćęł", "Иван", "Ελλάδα", "“so”", "Åström"])
def test_letters_of_any_alphabet_encoded_twice_are_reported_and_the_right_ones_are_not(text):
    assert may_be_twice(f"a {text.encode().decode('cp1252', 'replace')} b")
    assert not may_be_twice(f"a {text} b")


@pytest.mark.parametrize("text", ["Å\u2013Ö", "»Å«", "«Ä»", "“Ä”", "Ñandú", "ÐÑ", "ÅÄÖ £ 5"])
def test_signs_beside_letters_are_not_taken_for_letters_encoded_twice(text):
    assert not may_be_twice(text)


def test_two_cells_at_one_address_are_reported(tmp_path):
    plain = tmp_path / "plain.xlsx"
    book = xlsxwriter.Workbook(plain)
    sheet = book.add_worksheet()
    for at, row in enumerate([["item", "price"], ["Lamp", 7], ["Desk", 8], ["Sofa", 9]]):
        sheet.write_row(at, 0, row)
    book.close()
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(tmp_path / "in.xlsx", "w") as new:
        for name in old.namelist():
            body = old.read(name)
            if name.endswith("sheet1.xml"):
                body = body.replace(b'<c r="B3"><v>8</v></c>', b'<c r="B3"><v>8</v></c><c r="B3"><v>80</v></c>')
            new.writestr(name, body)
    out = run_job(tmp_path, fields=FIELDS)
    assert out.column("price") == [7, 80, 9]
    assert out.cells("cell_twice") == ["B3"]
