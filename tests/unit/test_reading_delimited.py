"""Text files: encoding and dialect are found out and told; values stay text."""

import csv
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.reading import open_book

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
def test_the_encoding_is_found_and_told(tmp_path, encoding, text, told):
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


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
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
