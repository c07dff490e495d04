"""Web pages: tables exported as HTML and called .xls are read as sheets of texts."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.reading import InputUnreadable, ReadLimits, open_book
from tests.support.effort import examples
from tests.support.engine_jobs import run_job


def opened(tmp_path, page, name="export.xls", **limits):
    path = tmp_path / name
    path.write_bytes(page if isinstance(page, bytes) else page.encode())
    return open_book(path, name=name, limits=ReadLimits(**limits))


def read(tmp_path, page, **options):
    with opened(tmp_path, page, **options) as book:
        return {sheet.name: list(sheet.rows()) for sheet in book.sheets}


def test_a_table_of_a_page_is_a_sheet(tmp_path):
    page = "<html><body><h1>Title</h1><table><tr><th>id</th><th>name</th></tr><tr><td>1</td><td>Ann</td></tr></table>"
    assert read(tmp_path, page) == {"Table 1": [(1, ["id", "name"]), (2, ["1", "Ann"])]}


@pytest.mark.parametrize(
    "body",
    [
        "<tr><td>a<td>b<tr><td>c<td>d",
        "<TR><TD>a</TD><TD>b</TD></TR><TR><TD>c</TD><TD>d</TD></TR>",
        "<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>c</td><td>d</td></tr></tbody>",
        "<tr><td title='>'>a</td><td title=x\">b</td></tr>\n<tr ><td\n>c</td ><td>d</td></tr>",
        "<tr><td> a\n</td><td><b>b</b></td></tr><!-- <tr><td>no</td></tr> --><tr><td>c<td>d</tr>",
        "<tr><td><script>if (a<b) '</td>'</script>a<td>b<style>td>{}</style><tr><td>c<td>d",
        "<td>a</td><td>b</td><tr><td>c</td><td>d</td>",
        "<tr><td>a&nbsp;</td><td>&#98;</td></tr><tr><td>&nbsp;c</td><td>&#x64;</td></tr>",
        "<![if gte mso 9]><tr><td>a<td>b<![endif]><?xml:namespace prefix = o?><tr><td>c<td>d",
    ],
)
def test_pages_are_read_as_browsers_read_them(tmp_path, body):
    assert read(tmp_path, f"<table border=1>{body}</table>") == {"Table 1": [(1, ["a", "b"]), (2, ["c", "d"])]}


def test_spans_leave_blanks_and_are_merged_areas(tmp_path):
    page = (
        "<table><tr><td rowspan=2>a</td><td colspan=2>b</td></tr><tr><td>c</td><td>d</td></tr>"
        "<tr><td>e</td><td colspan=0>f</td><td rowspan=x>g</td></tr></table>"
    )
    with opened(tmp_path, page) as book:
        (sheet,) = book.sheets
        assert list(sheet.rows()) == [(1, ["a", "b"]), (2, [None, "c", "d"]), (3, ["e", "f", "g"])]
        assert sheet.layout().merged == [(1, 1, 2, 1), (1, 2, 1, 3)]


def test_a_table_inside_another_is_a_sheet_of_its_own(tmp_path):
    inner = "<table><caption>Inner</caption><tr><td>x</td></tr></table>"
    page = f"<table><tr><td>left {inner} right</td><td>b</td></tr><tr><td>c</td></tr></table>"
    assert read(tmp_path, page) == {"Table 1": [(1, ["left right", "b"]), (2, ["c"])], "Inner": [(1, ["x"])]}


def test_a_table_that_only_lays_out_the_page_is_left_out(tmp_path):
    inner = "<table><tr><td>x</td></tr></table>"
    assert list(read(tmp_path, f"<table><tr><td>{inner}</td><td> </td></tr></table>").values()) == [[(1, ["x"])]]


def test_line_breaks_are_kept_and_blanks_are_not(tmp_path):
    page = "<table><tr><td>one<br>two <p>three</p></td><td>  much\n   room </td></tr></table>"
    assert read(tmp_path, page) == {"Table 1": [(1, ["one\ntwo\nthree", "much room"])]}


@pytest.mark.parametrize(
    ("charset", "head"),
    [
        ("cp1251", '<meta charset="windows-1251">'),
        ("cp1252", '<meta http-equiv=Content-Type content="text/html; charset=iso-8859-1">'),
        ("shift_jis", "<META CHARSET=shift_jis>"),
        ("utf-8", ""),
        ("utf-8-sig", '<meta charset="cp1252">'),
        ("utf-16", ""),
    ],
)
def test_the_page_names_its_encoding(tmp_path, charset, head):
    text = {"cp1251": "Привет мир", "shift_jis": "株式会社"}.get(charset, "Zoë €" if charset != "utf-16" else "Zoë")
    page = f"<html><head>{head}</head><table><tr><td>{text}</td></tr></table></html>".encode(charset)
    assert read(tmp_path, page) == {"Table 1": [(1, [text])]}


@pytest.mark.parametrize(
    ("layout", "reason"),
    [("", "without a table"), ("<table><tr><td> </td><td></td></tr></table>", "whose tables hold no text")],
)
def test_a_page_without_text_in_a_table_is_refused(tmp_path, layout, reason):
    with pytest.raises(InputUnreadable, match=reason) as refused:
        opened(tmp_path, f"<html><body>{layout}Your session has expired</body></html>")
    assert refused.value.code == "not_a_spreadsheet"


def test_hidden_rows_and_headings_are_reported(tmp_path):
    page = "<table><tr><th>a</th></tr><tr style='display: none'><td>b</td></tr></table>"
    with opened(tmp_path, page) as book:
        layout = book.sheets[0].layout()
    assert (layout.hidden_rows, layout.bold) == ({2}, {1: {1}})


@pytest.mark.parametrize(
    "page",
    [
        "<table>" * 5_000,
        "<table>" + "<tr><td rowspan=65534 colspan=1000>x" * 100,
        "<table>" + "<!--" * 200_000,
        "<table>" + '<td a="' * 200_000,
        "<table>" + "<td a=' " * 200_000,
        "<table>" + "<" * 500_000,
        "<table>" + "</" * 500_000,
        "<table><tr>" + "<td>x" * 20_000,
        "<table><tr><td>" + "<script>" * 100_000,
        "<table><tr><td>" + "&" * 500_000,
        "<table><tr><td>" + "&#" + "9" * 500_000,
        "<table><tr><td" + " a" * 300_000,
    ],
)
def test_hostile_pages_are_read_or_refused_at_once(tmp_path, page):
    """Each is near a megabyte: what took the square of its length would run into the time limit of a test."""
    with contextlib.suppress(InputUnreadable):
        read(tmp_path, page)


def test_pages_over_a_limit_are_refused(tmp_path):
    page = "<table>" + "<tr><td>1<td>2" * 100 + "</table>"
    for limit in ({"max_page_bytes": 100}, {"max_page_cells": 50}, {"max_rows": 10}, {"max_columns": 1}):
        with pytest.raises(InputUnreadable):
            read(tmp_path, page, **limit)


texts = st.text(st.sampled_from("ab <>&\"'=é-!;#x"), min_size=1, max_size=8).map(lambda t: " ".join(t.split()))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_any_text_comes_back_however_the_table_is_written(tmp_path_factory, rows, rng):
    def escaped(text):
        return "".join(rng.choice([c, f"&#{ord(c)};"]) if c not in "<&" else f"&#x{ord(c):x};" for c in text)

    def tag(name, closes=False):
        name = rng.choice([name, name.upper()])
        if closes:
            return rng.choice([f"</{name}>", f"</{name} >", ""]) if name.lower() != "table" else f"</{name}>"
        return rng.choice([f"<{name}>", f"<{name} class='x>y'>", f'<{name}\nid="<td>" nowrap>'])

    body = ""
    for row in rows:
        body += tag("tr") + "".join(tag(rng.choice(["td", "th"])) + escaped(t) + tag("td", True) for t in row)
        body += rng.choice(["", "\n", "<!-- > -->"]) + tag("tr", True)
    page = f"<html>{tag('table')}{body}{tag('table', True)}</html>"
    folder, wanted = tmp_path_factory.mktemp("page"), []
    for number, row in enumerate(rows, 1):
        values = [t or None for t in row]
        while values and values[-1] is None:
            values.pop()
        if values:
            wanted.append((number, values))
    if not wanted:
        with pytest.raises(InputUnreadable):
            read(folder, page)
    else:
        assert read(folder, page) == {"Table 1": wanted}


def test_an_exported_page_goes_through_a_whole_job(tmp_path):
    rows = "".join(f"<tr><td>M{n:03}</td><td>{n}.50</td></tr>" for n in range(1, 30))
    page = f"<html><body><table><tr><th>member_id</th><th>pay</th></tr>{rows}</table></body></html>"
    (tmp_path / "in.xlsx").write_text(page)
    done = run_job(tmp_path, fields=[{"name": "member_id"}, {"name": "pay", "type": "money"}])
    assert done.rows()[1:3] == [["M001", 1.5], ["M002", 2.5]]
    assert done.artifact["summary"]["rows_out"] == 29
