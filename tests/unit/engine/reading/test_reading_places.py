"""Where values stand, whatever the file says about itself."""

import pytest

from runner.engine.reading import InputUnreadable, ReadLimits, open_book
from tests.support.workbook_makers import MAIN, XML, relations, sheet, strings, styles, xlsx, xlsx_parts, zipped


def rows_of(path, at=0):
    with open_book(path, name=path.name) as book:
        return list(book.sheets[at].rows())


def layout_of(path):
    with open_book(path, name=path.name) as book:
        return book.sheets[0].layout()


def number(reference, value=1, style=""):
    return f'<c r="{reference}"{style}><v>{value}</v></c>'


def test_leading_empty_rows_and_columns_count(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="5">{number("C5", 7)}</row>'))
    assert rows_of(path) == [(5, [None, None, 7])]


def test_a_dimension_that_lies_changes_nothing(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="2">{number("B2")}</row>', before='<dimension ref="A1:XFD1048576"/>'))
    assert rows_of(path) == [(2, [None, 1])]


def test_rows_without_values_are_left_out(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1"><c r="A1" s="0"/></row><row r="2"/><row r="3">{number("A3")}</row>'))
    assert rows_of(path) == [(3, [1])]


def test_trailing_blanks_are_trimmed(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1">{number("A1")}<c r="B1" s="0"/><c r="C1" t="str"><v></v></c></row>'))
    assert rows_of(path) == [(1, [1])]


def test_rows_out_of_order_come_out_in_order(tmp_path):
    path = xlsx(tmp_path, sheet("".join(f'<row r="{r}">{number(f"A{r}", r)}</row>' for r in (9, 2, 30, 4))))
    assert rows_of(path) == [(2, [2]), (4, [4]), (9, [9]), (30, [30])]


def test_a_row_written_twice_is_one_row(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1">{number("A1", 1)}</row><row r="1">{number("B1", 2)}</row>'))
    assert rows_of(path) == [(1, [1, 2])]


def test_cells_out_of_order_stand_where_they_say(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1">{number("C1", 3)}{number("A1", 1)}</row>'))
    assert rows_of(path) == [(1, [1, None, 3])]


def test_rows_and_cells_without_numbers_count_on(tmp_path):
    path = xlsx(tmp_path, sheet("<row><c><v>1</v></c><c><v>2</v></c></row><row/><row><c><v>3</v></c></row>"))
    assert rows_of(path) == [(1, [1, 2]), (3, [3])]


def test_cells_may_be_referenced_in_rows_without_numbers(tmp_path):
    path = xlsx(tmp_path, sheet('<row><c><v>1</v></c></row><row><c r="C2"><v>2</v></c><c><v>3</v></c></row>'))
    assert rows_of(path) == [(1, [1]), (2, [None, None, 2, 3])]


def test_a_row_number_anywhere_in_its_tag_counts(tmp_path):
    path = xlsx(tmp_path, sheet('<row spans="1:1" r="8"><c><v>1</v></c></row><row><c><v>2</v></c></row>'))
    assert rows_of(path) == [(8, [1]), (9, [2])]


@pytest.mark.parametrize("wrong", ["", "x", "-2", "1.5"])
def test_a_row_number_that_is_none_counts_on(tmp_path, wrong):
    path = xlsx(tmp_path, sheet(f'<row r="3">{number("A3")}</row><row r="{wrong}"><c><v>2</v></c></row>'))
    assert rows_of(path) == [(3, [1]), (4, [2])]


def test_attributes_in_any_order_and_quotes_are_understood(tmp_path):
    path = xlsx(tmp_path, sheet("<row r='2'><c t='str' s='0' r='B2'><v>x</v></c></row>"))
    assert rows_of(path) == [(2, [None, "x"])]


def test_a_style_that_ends_like_the_row_s_number_is_no_reference(tmp_path):
    """Row 5 with style 5 and row 15 with style 15: the digits must not be taken for each other."""

    def row(at):
        own, dated = number(f"A{at}", at, f' s="{at}"'), number(f"B{at}", 45351, ' s="1"')
        return f'<row r="{at}">{own}{dated}</row>'

    numbers = (1, 5, 11, 15, 51)
    path = xlsx(tmp_path, sheet("".join(map(row, numbers))), style=styles(14, *[2] * 60))
    read = rows_of(path)
    assert [at for at, _ in read] == list(numbers)
    assert [values[0] for _, values in read[1:]] == [5, 11, 15, 51]
    assert {str(values[1]) for _, values in read} == {"2024-02-29"}


def test_a_cell_in_the_last_corner_is_harmless(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1">{number("A1")}</row><row r="1048576">{number("XFD1048576", 2)}</row>'))
    (first, last) = rows_of(path)
    assert first == (1, [1])
    assert (last[0], len(last[1]), last[1][-1]) == (1_048_576, 16_384, 2)


@pytest.mark.parametrize("reference", ["A1048577", "XFE1"])
def test_a_cell_past_the_last_corner_is_damage(tmp_path, reference):
    digits = reference.lstrip("AXFE")
    path = xlsx(tmp_path, sheet(f'<row r="{digits}">{number(reference)}</row>'))
    with pytest.raises(InputUnreadable, match="the limit of a sheet"):
        rows_of(path)


def test_values_far_to_the_right_in_every_row_are_refused_not_padded_for_ever(tmp_path):
    rows = "".join(f'<row r="{r}">{number(f"XFD{r}")}</row>' for r in range(1, 200))
    path = xlsx(tmp_path, sheet(rows))
    with (
        pytest.raises(InputUnreadable, match="including blanks"),
        open_book(path, name="x", limits=ReadLimits(max_cells=1_000_000)) as book,
    ):
        list(book.sheets[0].rows())


def test_rows_can_be_read_twice(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1">{number("A1")}</row>'))
    with open_book(path, name="x") as book:
        first, second = list(book.sheets[0].rows()), list(book.sheets[0].rows())
    assert first == second == [(1, [1])]


def test_a_namespace_prefix_changes_nothing(tmp_path):
    prefixed = (
        f'{XML}<x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row r="2"><x:c r="B2" t="inlineStr"><x:is><x:t>hi</x:t></x:is></x:c>'
        f'</x:row></x:sheetData><x:mergeCells><x:mergeCell ref="A1:B1"/></x:mergeCells></x:worksheet>'
    )
    path = xlsx(tmp_path, prefixed)
    assert rows_of(path) == [(2, [None, "hi"])]
    assert layout_of(path).merged == [(1, 1, 1, 2)]


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_a_part_in_another_encoding_is_read(tmp_path, encoding):
    text = sheet('<row r="1"><c r="A1" t="str"><v>é</v></c></row>').replace("UTF-8", encoding)
    path = zipped(tmp_path / "book.xlsx", {**xlsx_parts(""), "xl/worksheets/sheet1.xml": text.encode(encoding)})
    assert rows_of(path) == [(1, ["é"])]


def test_comments_and_cdata_among_the_rows_hide_nothing(tmp_path):
    path = xlsx(
        tmp_path,
        sheet(
            f'<row r="1">{number("A1", 1)}</row><!-- <row r="7"><c r="A7"><v>9</v></c></row> </sheetData> -->'
            '<row r="2"><c r="A2" t="str"><v><![CDATA[<b>&]]></v></c></row>'
        ),
    )
    assert rows_of(path) == [(1, [1]), (2, ["<b>&"])]


def test_strict_ooxml_is_read(tmp_path):
    parts = xlsx_parts(sheet(f'<row r="1">{number("A1")}</row>'))
    strict = "http://purl.oclc.org/ooxml/officeDocument/relationships"
    loose = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    path = zipped(tmp_path / "book.xlsx", {k: v.replace(loose, strict) for k, v in parts.items()})
    assert rows_of(path) == [(1, [1])]


def test_backslashes_and_other_letter_cases_in_part_names_are_forgiven(tmp_path):
    parts = xlsx_parts(sheet(f'<row r="1">{number("A1")}</row>'))
    path = zipped(
        tmp_path / "book.xlsx",
        {k.replace("xl/worksheets/sheet1", "XL\\Worksheets\\Sheet1"): v for k, v in parts.items()},
    )
    assert rows_of(path) == [(1, [1])]


def test_sheets_say_their_names_and_whether_they_are_hidden(tmp_path):
    empty = sheet("")
    path = xlsx(tmp_path, empty, empty, empty, names=("One", "Two", "Three"), states=("", "hidden", "veryHidden"))
    with open_book(path, name="x") as book:
        assert [(s.name, s.index, s.visibility) for s in book.sheets] == [
            ("One", 0, "visible"),
            ("Two", 1, "hidden"),
            ("Three", 2, "very_hidden"),
        ]


def test_a_sheet_listed_without_a_part_is_passed_over(tmp_path):
    parts = xlsx_parts(sheet(f'<row r="1">{number("A1")}</row>'))
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(
        "</sheets>", '<sheet name="Module1" sheetId="9" r:id=""/></sheets>'
    )
    with open_book(zipped(tmp_path / "book.xlsx", parts), name="x") as book:
        assert [s.name for s in book.sheets] == ["Sheet1"]


def test_merges_hidden_rows_and_columns_and_frozen_panes_are_reported(tmp_path):
    path = xlsx(
        tmp_path,
        sheet(
            f'<row r="1">{number("A1")}</row><row r="2" hidden="1">{number("A2")}</row><row r="3" ht="0" hidden="true"/>',
            before='<sheetViews><sheetView><pane ySplit="1" xSplit="2" state="frozen"/></sheetView></sheetViews>'
            '<cols><col min="2" max="3" hidden="1"/><col min="5" max="5"/></cols>',
            after='<autoFilter ref="A1:C9"/><mergeCells count="1"><mergeCell ref="A1:C1"/></mergeCells>',
        ),
    )
    layout = layout_of(path)
    assert layout.merged == [(1, 1, 1, 3)]
    assert layout.hidden_rows == {2, 3}
    assert layout.hidden_columns == {2, 3}
    assert (layout.frozen_rows, layout.frozen_columns) == (1, 2)
    assert layout.autofilter == (1, 1, 9, 3)


def test_bold_filled_and_struck_cells_are_marked(tmp_path):
    look = (
        '<fonts><font/><font><b/></font><font><b val="0"/><i/><strike/></font></fonts>'
        '<fills><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="solid"/></fill></fills>'
        '<borders><border/><border><top style="thin"/><bottom style="medium"/></border></borders>'
    )
    cells = (
        '<xf/><xf fontId="1"/><xf fillId="1" borderId="1"/>'
        '<xf fontId="2"><alignment horizontal="center" indent="1"/></xf>'
    )
    row = "".join(number(f"{'ABCD'[n]}1", n, f' s="{n}"') for n in range(4))
    layout = layout_of(xlsx(tmp_path, sheet(f'<row r="1">{row}</row>'), style=styles(cells=cells, extra=look)))
    assert layout.bold == {1: {2}}
    assert layout.filled == {1: {3}}
    assert layout.struck == {1: {4}}
    assert layout.styled_rows == 1


def test_declared_tables_and_print_titles_are_reported(tmp_path):
    table = f'{XML}<table xmlns="{MAIN}" name="T" displayName="Members" ref="B2:D9" totalsRowCount="1"/>'
    path = xlsx(
        tmp_path,
        sheet("", after='<tableParts><tablePart r:id="rId7"/></tableParts>'),
        workbook='<definedNames><definedName name="_xlnm.Print_Titles" localSheetId="0">Sheet1!$A:$A,Sheet1!$2:$3</definedName></definedNames>',
        extra={
            "xl/worksheets/_rels/sheet1.xml.rels": relations(("rId7", "table", "../tables/table1.xml")),
            "xl/tables/table1.xml": table,
        },
    )
    layout = layout_of(path)
    (told,) = layout.declared_tables
    assert (told.name, told.area, told.header_rows, told.totals_rows) == ("Members", (2, 2, 9, 4), 1, 1)
    assert layout.print_title_rows == (2, 3)


def test_a_broken_tail_costs_only_the_hints(tmp_path):
    path = xlsx(tmp_path, sheet(f'<row r="1">{number("A1")}</row>', after="<mergeCells><oops></mergeCells>"))
    assert rows_of(path) == [(1, [1])]


def test_an_empty_sheet_has_no_rows(tmp_path):
    path = xlsx(tmp_path, sheet("").replace("<sheetData></sheetData>", "<sheetData/>"), shared=strings())
    assert rows_of(path) == []


def test_numbers_of_thousands_of_digits_are_no_numbers(tmp_path):
    many = "9" * 5_000
    path = xlsx(
        tmp_path,
        sheet(f'<row r="{many}"><c r="A{many}" s="{many}"><v>{many}</v></c></row>'),
        workbook=f'<definedNames><definedName name="_xlnm.Print_Titles" localSheetId="{many}">S!${many}:${many}</definedName></definedNames>',
    )
    assert rows_of(path) == [(1, [many])]
    assert layout_of(path).print_title_rows is None
