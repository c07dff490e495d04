"""However a sheet's XML is written, the same cells come out: every legal spelling against plain lists."""

from random import Random
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.reading import OutOfOrder, blocks_of, open_book, rows_of
from runner.engine.reading.xlsx import markup, quick
from tests.support.effort import examples
from tests.support.workbook_makers import MAIN, sheet, strings, xlsx, xlsx_parts, zipped

TEXTS = [
    "plain",
    "Ann O'Hara",
    'say "hi"',
    "a & b < c > d",
    "é東😀",
    "x = 'y'",
    '<row r="9">',
    "-- ? ]]",
    "1",
    "tab\there",
]


def letters(column):
    return chr(64 + column)


class Spelling:
    """One way of writing XML, or a new one for every tag."""

    def __init__(self, rng, *, mixed):
        self._rng = rng
        self._mixed = mixed
        self._fixed = {}
        self.names = {}  # the name an open element was given

    def pick(self, what, options):
        """A choice; the same one all through the document unless it is mixed."""
        if self._mixed:
            return self._rng.choice(options)
        return self._fixed.setdefault(what, self._rng.choice(options))

    def value(self, text):
        """An attribute's value."""
        if self.pick("refs", [False] * 4 + [True]) and text:
            text = f"&#{ord(text[0])};" + text[1:]
        return text

    def tag(self, name, attributes=(), *, close=False, empty=False):
        space = self.pick("space", ["", "", " ", "\n", "\t "])
        if close:
            return f"</{self.names[name].pop()}{space}>"
        full = self.pick("prefix", ["", "", "x:", "m:"]) + name
        if not empty:
            self.names.setdefault(name, []).append(full)
        given = list(attributes)
        if self.pick("shuffle", [False, True]):
            self._rng.shuffle(given)
        between = self.pick("between", [" ", " ", "\n", "  \t"])
        equals = self.pick("equals", ["=", "=", " = ", "= ", "\n="])
        written = ""
        for key, text in given:
            quote = self.pick("quote", ['"', '"', "'"])
            written += f"{between}{key}{equals}{quote}{self.value(text)}{quote}"
        return f"<{full}{written}{space}{'/' if empty else ''}>"

    def text(self, text):
        """Text content."""
        way = self.pick("text", ["entities", "entities", "references", "cdata", "comment"])
        if way == "cdata" and "]]>" not in text and text:
            return f"<![CDATA[{text}]]>"
        plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        if way == "references" and text:
            return "".join(f"&#x{ord(c):X};" if n % 2 else f"&#{ord(c)};" for n, c in enumerate(text))
        if way == "comment" and text:
            return plain + "<!-- " + "<row r='1'></row>" + " -->"
        return plain

    def gap(self):
        """What may stand between two elements."""
        return self.pick("gap", ["", "", "", "\n  ", "<!-- </row><row r='3'> -->", "<?go <row r='4'>?>"])


def stored(cell, spelling, shared):
    """Attributes and content of a cell that holds the value."""
    tag, text = spelling.tag, spelling.text
    if cell is None:
        return [], None
    if isinstance(cell, bool):
        return [("t", "b")], tag("v") + text(str(int(cell))) + tag("v", close=True)
    if isinstance(cell, int | float):
        kind = spelling.pick("number", [[], [("t", "n")]])
        return list(kind), tag("v") + text(repr(cell)) + tag("v", close=True)
    way = spelling.pick("string", ["s", "str", "inlineStr"])
    if way == "s":
        shared.append(cell)
        return [("t", "s")], tag("v") + text(str(len(shared) - 1)) + tag("v", close=True)
    if way == "str":
        return [("t", "str")], tag("v") + text(cell) + tag("v", close=True)
    kept = [("xml:space", "preserve")]
    inside = tag("is") + tag("t", kept) + text(cell) + tag("t", close=True) + tag("is", close=True)
    return [("t", "inlineStr")], inside


def row_xml(number, cells, spelling, shared, *, last, hidden):
    """A row; its number and its cells' references may be left out where counting on gives them."""
    own = [("r", str(number))]
    if number == last + 1 and spelling.pick("unnumbered", [False, False, True]):
        own = []
    attributes = own + spelling.pick("extra", [[], [("spans", "1:9")], [("ht", "15"), ("customHeight", "1")]])
    if hidden:
        attributes.append(("hidden", spelling.pick("hidden", ["1", "true"])))
    if not cells and spelling.pick("empty", [True, False]):
        return spelling.tag("row", attributes, empty=True)
    out = spelling.tag("row", attributes)
    before = 0
    for column, value in cells:
        inside_tags, content = stored(value, spelling, shared)
        reference = [("r", f"{letters(column)}{number}")]
        bare = column == before + 1 and spelling.pick("bare", [False, False, True])
        if not own and before == 0 and bare:
            reference = []  # nothing tells the row but the count
        elif bare:
            reference = []
        before = column
        out += spelling.gap()
        if content is None and spelling.pick("blank", [True, False]):
            out += spelling.tag("c", reference + inside_tags, empty=True)
            continue
        out += spelling.tag("c", reference + inside_tags) + (content or "") + spelling.tag("c", close=True)
    return out + spelling.gap() + spelling.tag("row", close=True)


def document(grid, hidden, merged, rng, *, mixed, ordered):
    """(bytes of the worksheet part, the shared strings)."""
    spelling = Spelling(rng, mixed=mixed)
    shared = []
    rows = []
    for number, cells in grid.items():
        listed = sorted(cells.items())
        if not ordered and rng.random() < 0.3:
            rng.shuffle(listed)
        if not ordered and len(listed) > 1 and rng.random() < 0.3:
            cut = rng.randrange(1, len(listed))
            rows += [(number, listed[:cut]), (number, listed[cut:])]
        else:
            if listed and rng.random() < 0.2:
                listed.append((listed[-1][0], None))  # a blank cell in the place of the last one
            rows.append((number, listed))
    if not ordered:
        rng.shuffle(rows)
    body, last = "", 0
    for number, cells in rows:
        body += spelling.gap() + row_xml(number, cells, spelling, shared, last=last, hidden=number in hidden)
        last = number
    body += spelling.gap()
    spaces = "".join(f' xmlns{p}="{MAIN}"' for p in ("", ":x", ":m"))
    root = spelling.pick("root", ["worksheet", "x:worksheet"])
    tail = spelling.gap()
    if merged:
        tail += spelling.tag("mergeCells", [("count", str(len(merged)))])
        tail += "".join(spelling.gap() + spelling.tag("mergeCell", [("ref", one)], empty=True) for one in merged)
        tail += spelling.tag("mergeCells", close=True)
    head = spelling.pick(
        "head", ["", "", '<cols><col min="2" max="2" hidden="1"/></cols>', "<?note?>", "<!-- <sheetData> -->"]
    )
    data = (
        spelling.tag("sheetData", empty=True)
        if not body
        else spelling.tag("sheetData") + body + spelling.tag("sheetData", close=True)
    )
    encoding = spelling.pick("encoding", ["UTF-8"] * 6 + ["UTF-16", "ISO-8859-1", "none", "bom"])
    declared = {"none": "", "bom": ""}.get(
        encoding,
        f'<?xml version="1.0" encoding="{encoding}"{rng.choice(["", " standalone=" + chr(39) + "yes" + chr(39)])} ?>\n',
    )
    xml = f"{declared}<{root}{spaces}>{head}{data}{tail}</{root}>"
    codec = {"none": "utf-8", "bom": "utf-8-sig"}.get(encoding, encoding)
    raw = xml.encode(codec, "xmlcharrefreplace" if "<![CDATA[" not in xml or codec != "ISO-8859-1" else "replace")
    return raw, shared, '<col min="2"' in head, codec == "ISO-8859-1" and "<![CDATA[" in xml


def read_all(path):
    """(rows, rows by block, hidden rows, merged areas, hidden columns), each from a book opened anew."""
    with open_book(path, name="x") as book:
        layout = book.sheets[0].layout()
        one = list(book.sheets[0].rows())
    with open_book(path, name="x") as book:
        try:
            two = list(rows_of(blocks_of(book.sheets[0])))
        except OutOfOrder:
            two = list(rows_of(blocks_of(book.sheets[0])))
        after = book.sheets[0].layout()
    assert (after.hidden_rows, after.merged) == (layout.hidden_rows, layout.merged)
    return one, two, layout


values = st.one_of(
    st.none(), st.sampled_from(TEXTS), st.integers(-99, 10**12), st.booleans(), st.sampled_from([0.5, -1.25, 1e20])
)
rows = st.dictionaries(st.integers(1, 9), values, max_size=5)
grids = st.dictionaries(st.integers(1, 60), rows, max_size=14).map(lambda g: dict(sorted(g.items())))


@settings(max_examples=examples(400), deadline=None)
@given(
    grids,
    st.sets(st.integers(1, 60), max_size=4),
    st.lists(st.sampled_from(["A2:A5", "B1:D1", "C7:D9"]), unique=True, max_size=2),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
    st.sampled_from([60, 400, 256 * 1024]),
)
def test_every_legal_spelling_gives_the_same_cells(tmp_path_factory, grid, hidden, merged, seed, mixed, ordered, size):
    raw, shared, hides_column, lossy = document(grid, hidden, merged, Random(seed), mixed=mixed, ordered=ordered)
    if lossy:
        return  # CDATA in an encoding that cannot hold its characters is no legal spelling
    escaped = [f"<t xml:space='preserve'>{t.replace('&', '&amp;').replace('<', '&lt;')}</t>" for t in shared]
    path = zipped(tmp_path_factory.mktemp("markup") / "book.xlsx", xlsx_parts(raw, shared=strings(*escaped)), method=0)
    with mock.patch.object(markup, "_AT_LEAST", size), mock.patch.object(quick, "_CHARACTERS_TO_LEARN", size):
        one, two, layout = read_all(path)
    wanted = []
    for number, cells in grid.items():
        width = max((c for c, v in cells.items() if v is not None), default=0)
        if width:
            wanted.append((number, [cells.get(c) for c in range(1, width + 1)]))
    assert repr(one) == repr(wanted)
    assert repr(two) == repr(wanted)
    assert layout.hidden_rows == hidden & set(grid)
    assert len(layout.merged) == len(merged)
    assert layout.hidden_columns == ({2} if hides_column else set())


def cells(path):
    with open_book(path, name="x") as book:
        return list(book.sheets[0].rows())


@pytest.mark.parametrize(
    "rows",
    [
        '<row r = "5"><c r="A5"><v>1</v></c></row>',
        "<row r='5'><c r='A5'><v>1</v></c></row >",
        '<row r="5"><c r="A5"><v>1</v></c></row\n>',
        '<row\tr="+5"><c r="$A$5"><v>1</v></c></row>',
        '<row r=" 5 "><c r="A5"><v>1</v></c></row>',
        '<row><c r="A5"><v>1</v></c></row>',
        '<row ht=" r=9" r="5"><c r="A5"><v>1</v></c></row>',
        '<row ht=\' r="9"\' r="5"><c r="A5"><v>1</v></c></row>',
        '<row ht="a>b" r="5"><c r="A5" ht=">"><v>1</v></c></row>',
        '<x:row xmlns:x="u" r="5"><x:c r="A5"><x:v>1</x:v></x:c></x:row>',
        '<row r="1"/><row r="2"/><x:row xmlns:x="u" r="5"><x:c r="A5"><x:v>1</x:v></x:c></x:row><row r="9"></row>',
        '<row r="1"></row> <x:row xmlns:x="u" r="5"><x:c r="A5"><x:v>1</x:v></x:c></x:row><row r="9"/><row r="10"/>',
        '<row r="5"><c r="A5"><v>1</v></c><c r="A5"/></row>',
        '<row r="5"><c r="A5"><v>1</v></c><c r="A5"><f>B5</f></c></row>',
        '<row r="5"><c r="A5"><v>1</v></c></row><row r="5"><c r="A5" s="3"/></row>',
        '<row r="5"><c r="A5"><v>1</v></c></row><row r="5"><c r="A5"><f>B5</f></c></row>',
        '<row r="9"/><row r="5"><c r="A5"><v>1</v></c></row>',
    ],
)
@pytest.mark.parametrize("end", ["</sheetData>", "</sheetData >", "</sheetData\n>"])
def test_a_row_stands_where_it_says(tmp_path, rows, end):
    xml = sheet(rows, after='<mergeCells><mergeCell ref="A1:A2"/></mergeCells>').replace("</sheetData>", end)
    path = xlsx(tmp_path, xml)
    assert cells(path) == [(5, [1])]
    with open_book(path, name="x") as book:
        assert book.sheets[0].layout().merged == [(1, 1, 2, 1)]


@pytest.mark.parametrize(
    "shared",
    [
        '<sst xmlns="{0}"><si><t>a</t></si><si ><t>b</t></si ></sst >',
        '<x:sst xmlns:x="{0}" xmlns:y="{0}"><y:si><y:t>a</y:t></y:si><y:si><y:t>b</y:t></y:si></x:sst>',
        '<sst xmlns="{0}" xmlns:y="{0}"><si><t>a</t></si><y:si><y:t>b</y:t></y:si></sst>',
        '<sst xmlns="{0}"><!-- <si><t>no</t></si> --><si><t>a</t></si><?x <si/>?><si><t><![CDATA[b]]></t></si></sst>',
        '<sst xmlns="{0}"><si><t>&#97;</t></si>\n<si>\n<t>b</t>\n</si>\n</sst>',
        "<sst xmlns='{0}'><si><r><t xml:space='preserve'>a</t></r></si><si><t xml:space = 'default'>b</t></si></sst>",
    ],
)
def test_shared_strings_are_read_however_they_are_spelled(tmp_path, shared):
    row = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
    assert cells(xlsx(tmp_path, sheet(row), shared=shared.format(MAIN))) == [(1, ["a", "b"])]
