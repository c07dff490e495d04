"""Text files: encoding and dialect are found out and told; values stay text."""

import csv
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.reading import InputUnreadable, TextOptions, open_book
from tests.support.effort import examples

TABLE = "id,name,amount\n1,Ann,2.50\n2,Bob,3.75\n3,Cy,4.00\n"


def opened(tmp_path, content, name="file.csv"):
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_book(path, name=name)


def read(tmp_path, content, name="file.csv"):
    with opened(tmp_path, content, name) as book:
        return list(book.sheets[0].rows()), book.notes


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    rows, notes = read(tmp_path, TABLE.replace(",", delimiter))
    assert notes["delimiter"] == delimiter
    assert rows[1] == (2, ["1", "Ann", "2.50"])


def test_decimal_commas_do_not_hide_semicolons(tmp_path):
    rows, notes = read(tmp_path, "id;name;amount\n1;Ann;2,50\n2;Bob;3,75\n3;Cy;4,00\n")
    assert notes["delimiter"] == ";"
    assert rows[1] == (2, ["1", "Ann", "2,50"])


def test_commas_in_titles_do_not_hide_tabs(tmp_path):
    text = "Report for Smith, Jones, and others\n\nid\tname\tnote\n" + "".join(
        f"{n}\tname {n}\ta, b\n" for n in range(20)
    )
    rows, notes = read(tmp_path, text)
    assert notes["delimiter"] == "\t"
    assert rows[1] == (3, ["id", "name", "note"])


def test_prose_is_one_column(tmp_path):
    text = "These are notes about the tables.\nThey hold no data at all, of course.\nNobody should split them.\nReally.\nNo.\n"
    rows, _ = read(tmp_path, text.replace(",", ""))
    assert all(len(values) == 1 for _, values in rows)


def test_a_sep_line_names_the_delimiter_and_is_no_row(tmp_path):
    rows, notes = read(tmp_path, "sep=|\na|b\n1,5|2\n")
    assert (notes["delimiter"], notes["sep_line"]) == ("|", True)
    assert rows == [(1, ["a", "b"]), (2, ["1,5", "2"])]


def test_tabs_make_it_a_tsv(tmp_path):
    with opened(tmp_path, TABLE.replace(",", "\t"), "file.csv") as book:
        assert book.format == "tsv"


def test_the_name_decides_between_equals(tmp_path):
    with opened(tmp_path, "only\none\n", "file.tsv") as book:
        assert book.format == "tsv"


@pytest.mark.parametrize(
    ("encoding", "text", "told"),
    [
        ("utf-8", "id,name\n1,Zoë\n", "utf-8"),
        ("utf-8-sig", "id,name\n1,Zoë\n", "utf-8-sig"),
        ("utf-16", "id,name\n1,Zoë\n", "utf-16"),
        ("utf-16-le", "id,name\n1,Zoë and more plain text\n", "utf-16-le"),
        ("utf-16-be", "id,name\n1,Zoë and more plain text\n", "utf-16-be"),
        ("utf-32", "id,name\n1,Zoë\n", "utf-32"),
        ("cp1252", "id,name,price\n1,Zoë,5 €\n2,François,“7”\n", "cp1252"),
        ("latin-1", "id,name\n1,Müller\n2,Señor García\n3,Ibáñez\n", "cp1252"),
        ("cp1250", "id,name\n1,Łódź święto żółć\n2,Příliš žluťoučký kůň\n", "cp1250"),
        ("cp1251", "код,имя\n1,Иванов Пётр\n2,Сидорова Анна\n", "cp1251"),
        ("koi8-r", "код,имя\n1,Иванов Пётр\n2,Сидорова Анна\n", "koi8-r"),
        ("cp1253", "κωδικός,όνομα\n1,Γιώργος\n2,Μαρία\n", "cp1253"),
        ("shift_jis", "番号,なまえ\n1,たなか さくら\n2,すずき いちろう\n", "cp932"),
        ("gb18030", "编号,姓名,城市\n1,王小明,北京\n2,李红,上海\n", "gb18030"),
        ("big5", "編號,姓名,城市\n1,王小明,臺北\n2,陳怡君,高雄\n", "cp950"),
        ("cp949", "번호,이름,도시\n1,김철수,서울\n2,이영희,부산\n", "cp949"),
    ],
)
def test_the_encoding_is_found_and_reported(tmp_path, encoding, text, told):
    rows, notes = read(tmp_path, text.encode(encoding))
    assert notes["encoding"] == told
    assert rows == [(n, line.split(",")) for n, line in enumerate(text.splitlines(), 1)]


def test_bytes_past_ascii_far_into_a_file_still_decide(tmp_path):
    content = b"id,name\n" + b"1,Ann\n" * 400_000 + "2,Zoë\n".encode("cp1252")
    with opened(tmp_path, content) as book:
        assert book.notes["encoding"] == "cp1252"
        *_, last = book.sheets[0].rows()
    assert last == (400_002, ["2", "Zoë"])


def test_utf8_with_a_spoiled_byte_stays_utf8(tmp_path):
    rows, notes = read(tmp_path, b"id,name\n" + "1,Zoë Müller é à ö ü ß ñ ç\n".encode() * 5 + b"2,\xff\n")
    assert notes["encoding"] == "utf-8"
    assert rows[-1] == (7, ["2", "ÿ"])


def test_blank_lines_count_as_rows_and_are_left_out(tmp_path):
    rows, _ = read(tmp_path, "\n\na,b\n\n,,\n1,2\n")
    assert rows == [(3, ["a", "b"]), (6, ["1", "2"])]


def test_line_ends_of_every_kind(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        rows, _ = read(tmp_path, TABLE.replace("\n", end))
        assert [n for n, _ in rows] == [1, 2, 3, 4], repr(end)


def test_a_quoted_field_may_hold_lines_quotes_and_delimiters(tmp_path):
    rows, _ = read(tmp_path, 'a,b\n"one\ntwo","say ""hi"", he"\n3,4\n')
    assert rows == [(1, ["a", "b"]), (2, ["one\ntwo", 'say "hi", he']), (3, ["3", "4"])]


def test_backslashes_before_quotes_are_escapes_where_quotes_are_not_doubled(tmp_path):
    rows, notes = read(tmp_path, 'a,b\n1,"say \\"hi\\", he"\n2,"x"\n')
    assert notes["escape"] == "\\"
    assert rows[1] == (2, ["1", 'say "hi", he'])


def test_single_quotes_around_fields_are_found(tmp_path):
    rows, notes = read(tmp_path, "'a','b'\n'1','x, y'\n'2','z'\n")
    assert notes["quote"] == "'"
    assert rows[1] == (2, ["1", "x, y"])


def test_a_quote_that_never_closes_costs_only_its_own_line(tmp_path):
    text = "a,b\n" + '1,"open\n' + "".join(f"{n},x\n" for n in range(2, 2_000))
    rows, _ = read(tmp_path, text)
    assert rows[1] == (2, ["1", '"open'])
    assert len(rows) == 2_000
    assert rows[-1] == (2_000, ["1999", "x"])


def test_numbers_and_leading_zeros_stay_text(tmp_path):
    rows, _ = read(tmp_path, "a,b\n007,12345678901234567890\n")
    assert rows[1] == (2, ["007", "12345678901234567890"])


def test_ragged_rows_keep_their_own_width(tmp_path):
    rows, _ = read(tmp_path, "a,b,c\n1\n1,2,3,4\n")
    assert [len(values) for _, values in rows] == [3, 1, 4]


def test_an_empty_text_file_is_a_table_without_rows(tmp_path):
    assert read(tmp_path, b"")[0] == []


def test_a_nul_in_a_cell_is_no_reason_to_refuse(tmp_path):
    rows, _ = read(tmp_path, b"a,b,c\n\x00,2,3\n")
    assert rows[1] == (2, ["\x00", "2", "3"])


def test_rows_can_be_read_twice(tmp_path):
    with opened(tmp_path, TABLE) as book:
        assert list(book.sheets[0].rows()) == list(book.sheets[0].rows())


def said(tmp_path, content, **options):
    """The rows, then what is told: choices that are guesses, and rows with two readings."""
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_book(path, name="file.csv", options=TextOptions(**options)) as book:
        rows = [values for _, values in book.sheets[0].rows()]
        guesses = [choice.kind for choice in book.choices if not choice.sure]
        remarks = {remark.code: remark.rows for remark in book.sheets[0].remarks()}
    return rows, guesses, remarks


@pytest.mark.parametrize("blank", [" ", "   ", "\t", " \t "])
def test_blanks_between_a_comma_and_a_quote_belong_to_the_comma(tmp_path, blank):
    rows, *told = said(
        tmp_path, f'id,{blank}name,{blank}note\n1,{blank}"Lee, Ann",{blank}"x"\n2,"Poe, Bo",{blank}"y ""z"""\n'
    )
    assert [row[1:] for row in rows[1:]] == [["Lee, Ann", "x"], ["Poe, Bo", 'y "z"']]
    assert told == [[], {}]


def test_a_blank_before_a_quote_far_below_is_read_alike(tmp_path):
    rows, *told = said(tmp_path, "id,name,n\n" + "1,Ann,5\n" * 60_000 + '2, "Lee, Bo" ,6\n3,"Poe, Cy",7\n')
    assert rows[-2:] == [["2", "Lee, Bo", "6"], ["3", "Poe, Cy", "7"]]
    assert told == [[], {}]


@pytest.mark.parametrize("at", [1, 2, 300, 1_700, 1_998])
def test_a_quote_that_never_closes_swallows_no_row_and_is_reported(tmp_path, at):
    text = "id,note,n\n" + "".join(f"{i},{chr(34) * (i == at)}ok,{i}\n" for i in range(1, 2_000))
    rows, guesses, remarks = said(tmp_path, text)
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(1, 2_000)]
    assert rows[at] == [str(at), '"ok', str(at)]
    assert (guesses, remarks) == ([], {"open_quote": (at + 1,)})


def test_a_quote_that_never_closes_before_a_field_that_is_well_quoted(tmp_path):
    text = 'id,note,n\n1,a,1\n2,"oops,2\n' + "3,b,3\n" * 50 + '4,"fine, thanks",4\n5,c,5\n'
    rows, _, remarks = said(tmp_path, text)
    assert len(rows) == 55
    assert rows[-2] == ["4", "fine, thanks", "4"]
    assert remarks == {"open_quote": (3,)}


def test_a_stray_quote_and_an_inch_far_below_do_not_make_one_field(tmp_path):
    text = 'id,note,n\n1,"oops,1\n' + "2,plain,2\n" * 40 + '3,pipe 5",3\n4,d,4\n'
    rows, _, remarks = said(tmp_path, text)
    assert len(rows) == 44
    assert remarks == {"open_quote": (2,)}


def test_backslashes_at_the_end_of_quoted_paths_are_plain_characters(tmp_path):
    rows, *told = said(tmp_path, 'id,path,n\n1,"C:\\tmp\\",5\n2,"D:\\x\\",6\n3,"E:\\y",7\n4,F:\\z,8\n')
    assert [row[1] for row in rows[1:]] == ["C:\\tmp\\", "D:\\x\\", "E:\\y", "F:\\z"]
    assert told == [[], {}]


@pytest.mark.parametrize("lines", [2, 600, 3_000])
def test_a_quoted_field_may_run_on_for_any_number_of_lines(tmp_path, lines):
    field = "line, one\n" * lines
    rows, *told = said(tmp_path, f'id,note,n\n1,"a,b",5\n2,"{field}",6\n3,"c,d",7\n')
    assert rows[1:] == [["1", "a,b", "5"], ["2", field, "6"], ["3", "c,d", "7"]]
    assert told == [[], {}]


def test_a_field_may_be_as_long_as_it_likes(tmp_path):
    field = "x" * 700_000 + ", " + "y" * 700_000
    rows, *told = said(tmp_path, f'id,note,n\n1,"a,b",5\n2,"{field}",6\n3,"c,d",7\n')
    assert rows[2] == ["2", field, "6"]
    assert told == [[], {}]


def test_apostrophes_inside_single_quotes(tmp_path):
    rows, *told = said(tmp_path, "'id','name'\n'1','O'Brien, Pat'\n'2','the dogs' bowl'\n'3','it''s'\n")
    assert rows[1:] == [["1", "O'Brien, Pat"], ["2", "the dogs' bowl"], ["3", "it's"]]
    assert told == [[], {}]


def test_an_apostrophe_before_a_number_is_part_of_it(tmp_path):
    rows, *_ = said(tmp_path, "id,code\n1,'00123\n2,'00456\n3,'tis\n")
    assert rows[1:] == [["1", "'00123"], ["2", "'00456"], ["3", "'tis"]]


@pytest.mark.parametrize("delimiter", list("#^~\x1f"))
def test_a_rare_delimiter_that_every_line_agrees_on(tmp_path, delimiter):
    rows, *told = said(tmp_path, TABLE.replace(",", delimiter))
    assert rows[1] == ["1", "Ann", "2.50"]
    assert told == [[], {}]


@pytest.mark.parametrize(
    "values",
    [["Item #1", "Item #2", "Item #3"], ["10:30:15", "11:00:00"], ["a/b/c", "d/e/f"], ["A#1", "B#2"], ["x^2", "y^2"]],
)
def test_signs_in_the_values_of_a_lone_column_separate_nothing(tmp_path, values):
    rows, *_ = said(tmp_path, "\n".join(["column", *values]) + "\n")
    assert rows == [["column"], *([value] for value in values)]


@pytest.mark.parametrize("header", ["name", "full name"])
def test_names_in_a_lone_column_are_not_split_at_their_blanks(tmp_path, header):
    names = [f"{first} {last}" for first in ("Ann", "Bo", "Cy", "Di") for last in ("Lee", "Poe", "Fox", "Hay", "Oz")]
    rows, *_ = said(tmp_path, "\n".join([header, *names]) + "\n")
    assert rows == [[header], *([name] for name in names)]


def test_dates_with_times_in_a_lone_column_are_not_split(tmp_path):
    rows, *_ = said(tmp_path, "time\n" + "2012-11-11 23:59:59\n" * 20)
    assert rows[1] == ["2012-11-11 23:59:59"]


def test_two_delimiters_that_do_as_well_are_reported(tmp_path):
    rows, guesses, _ = said(tmp_path, "a;b,c\nx;y,z\nu;v,w\np;q,r\n")
    assert guesses == ["delimiter"]
    assert all(len(row) > 1 for row in rows)


def test_a_row_wider_than_the_header_loses_nothing(tmp_path):
    rows, *_ = said(tmp_path, "a,b,c\n" + "1,2,3\n" * 3_000 + "1,2,3,4,5\n")
    assert rows[-1] == ["1", "2", "3", "4", "5"]


def test_quotes_inside_plain_fields_are_plain_characters(tmp_path):
    rows, *told = said(tmp_path, 'id,size,n\n1,5" by 7",2\n2,the "best" one,3\n')
    assert rows[1:] == [["1", '5" by 7"', "2"], ["2", 'the "best" one', "3"]]
    assert told == [[], {}]


def test_quotes_that_are_not_doubled_stay_in_their_value_and_are_reported(tmp_path):
    rows, _, remarks = said(tmp_path, 'id,note,n\n1,"say "hi", he",2\n2,"a 5" pipe",3\n3,""1,069.5"",4\n')
    assert rows[1:] == [["1", 'say "hi", he', "2"], ["2", 'a 5" pipe', "3"], ["3", "1,069.5", "4"]]
    assert remarks == {"stray_quote": (2, 3, 4)}


def test_a_delimiter_at_the_end_of_each_line_is_no_column(tmp_path):
    rows, *told = said(tmp_path, TABLE.replace("\n", ",\n"))
    assert rows[1] == ["1", "Ann", "2.50"]
    assert told == [[], {}]


@pytest.mark.parametrize("content", ["x", "x\n", '"x"', "a,b", "a;b\r\n", "\ufeffa,b\n"])
def test_the_shortest_files(tmp_path, content):
    rows, *told = said(tmp_path, content)
    assert rows == [[c for c in "xab" if c in content]]
    assert told == [[], {}]


def test_bytes_that_are_not_utf8_are_read_as_windows_has_them_and_reported(tmp_path):
    good = "".join(f"{n},Zoë,München\n" for n in range(30)).encode()
    rows, guesses, remarks = said(tmp_path, b"id,name,city\n" + good + "30,Señor,Köln\n".encode("cp1252"))
    assert rows[-1] == ["30", "Señor", "Köln"]
    assert (guesses, remarks) == ([], {"undecodable": (32,)})


def test_a_declared_encoding_is_taken(tmp_path):
    content = "id,név\n1,Győr\n".encode("cp852")
    assert said(tmp_path, content, encoding="cp852") == ([["id", "név"], ["1", "Győr"]], [], {})


def test_a_byte_order_mark_outweighs_a_declared_encoding(tmp_path):
    assert said(tmp_path, "id,név\n".encode("utf-8-sig"), encoding="cp1250")[0] == [["id", "név"]]


def test_what_a_declared_encoding_cannot_read_is_reported(tmp_path):
    rows, _, remarks = said(tmp_path, b"id,name\n1,ok\n2,\x81\n", encoding="cp1252")
    assert rows[-1] == ["2", "\ufffd"]
    assert remarks == {"undecodable": (3,)}


def test_a_declared_delimiter_and_quote_are_taken(tmp_path):
    assert said(tmp_path, "a=b=c\n1='2=3'=4\n", delimiter="=", quote="'")[0] == [["a", "b", "c"], ["1", "2=3", "4"]]


def test_with_no_quote_every_character_is_itself(tmp_path):
    rows, *told = said(tmp_path, 'a,b\n"1,"x"\n2,"y\n', quote="")
    assert rows == [["a", "b"], ['"1', '"x"'], ["2", '"y']]
    assert told == [[], {}]


def test_more_columns_than_a_sheet_has_are_refused_with_the_limit(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text(",".join(f"c{n}" for n in range(16_385)) + "\n")
    with open_book(path, name="file.csv") as book, pytest.raises(InputUnreadable) as refused:
        list(book.sheets[0].rows())
    assert refused.value.code == "too_large"
    assert refused.value.message == "The file is too wide: row 1 has 16,385 columns; the limit is 16,384."


def test_a_plain_file_of_the_size_of_a_lock_file_is_read(tmp_path):
    text = '"' + "a" * 20 + '","' + "b" * 30 + '"\n'
    rows, *_ = said(tmp_path, (text * 3)[:165])
    assert rows[0] == ["a" * 20, "b" * 30]


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(words.filter(lambda w: w.strip() == w), min_size=3, max_size=3), min_size=6, max_size=12),
    st.sampled_from(",;\t|"),
)
def test_what_csv_writes_comes_back(tmp_path_factory, rows, delimiter):
    """Any words, quoted as needed after a plain header, come back as they were, in their places."""
    out = StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["alpha", "beta", "gamma"])
    writer.writerows([["1", "2", "3"]] * 20)
    writer.writerows(rows)
    read_rows, notes = read(tmp_path_factory.mktemp("csv"), out.getvalue().encode())
    assert notes["delimiter"] == delimiter
    assert [values for _, values in read_rows[21:]] == rows
