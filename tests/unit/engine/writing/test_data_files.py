"""normalized.csv, .jsonl and .parquet: what they hold, and what of theirs is refused."""

import csv
import io
import json
import random
import re
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ManifestInvalid
from core.loads import GUARDED_TEXT
from core.manifests import parse_manifest
from runner.engine.common.fields import Field
from runner.engine.contract import DataTypes, OutputName, check_published, data_files
from runner.engine.mapping.output_layout import OutColumn
from runner.engine.options import DataOptions
from runner.engine.protocol import BadOutput
from runner.engine.verifying.data_check import _value_expression, check_data_files
from runner.engine.writing import parquet
from runner.engine.writing.data_files import DataFiles
from runner.engine.writing.delimited_file import guarded, is_formula
from runner.engine.writing.typed import ColumnType, TypedColumn, decimal_text, fit, unscaled
from tests.support.effort import examples
from tests.support.engine_jobs import run_job

FIELDS = [
    {"name": "text"},
    {"name": "count", "type": "integer"},
    {"name": "share", "type": "decimal"},
    {"name": "pay", "type": "money"},
    {"name": "rate", "type": "decimal", "scale": 2},
    {"name": "paid", "type": "boolean"},
    {"name": "day", "type": "date"},
    {"name": "at", "type": "datetime"},
    {"name": "clock", "type": "time"},
]
TYPES = {one["name"]: (one.get("type", "text"), one.get("scale")) for one in FIELDS}
COLUMNS = [OutColumn(one["name"], Field(one)) for one in FIELDS] + [OutColumn("Left over", None)]
ALL = ["csv", "jsonl", "parquet"]

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from(
    ["=1+1", "+49 30 1234", "-x", "@a", "'=x", "a,b", 'q"q', "a\nb", "a\r\nb", "\t1", "ß;|", " "]
)
VALUES = [
    TEXTS,
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**13), 10**13, places=4, allow_nan=False).map(float),
    st.integers(-(10**15), 10**15).map(lambda n: n / 100),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
    TEXTS,
]
ROWS = st.lists(st.tuples(*(st.none() | one for one in VALUES)), min_size=1, max_size=30)


def written(rows, **output):
    """The data files of some rows, by name."""
    options = DataOptions.parse({"formats": ALL, **output})
    files = {name: io.BytesIO() for name in options.names if name is not OutputName.WORKBOOK}
    made = DataFiles(files, COLUMNS, options)
    for at in range(0, len(rows), 7):
        made.write([list(column) for column in zip(*rows[at : at + 7], strict=True)], len(rows[at : at + 7]))
    made.close()
    return {name: file.getvalue() for name, file in files.items()}


def checked(tmp_path, bodies, rows, **output):
    """Have bodies verified as the outputs of a job with so many rows."""
    places = {}
    for name, body in bodies.items():
        places[name] = tmp_path / name
        places[name].write_bytes(body)
    columns = [{"field": c.field.name if c.field else None, "header": c.header} for c in COLUMNS]
    known = DataTypes(output={"formats": ALL, **output}, types=TYPES)
    check_data_files(places, known, {"rows": rows, "columns": columns})


def shown(values):
    """A row as JSON has it."""
    return [v.isoformat() if isinstance(v, date | datetime | time) else v for v in values]


@settings(max_examples=examples(60), deadline=None)
@given(rows=ROWS)
def test_each_format_holds_the_same_values_and_is_accepted(tmp_path_factory, rows):
    bodies = written(rows)
    checked(tmp_path_factory.mktemp("files"), bodies, len(rows))
    fitted = [fit(TypedColumn("pay", ColumnType.DECIMAL, 4), [row[3]]).values[0] for row in rows]
    as_json = [list(json.loads(line).values()) for line in bodies[OutputName.JSONL].decode().split("\n")[:-1]]
    for row, got, pay in zip(rows, as_json, fitted, strict=True):
        want = shown(row)
        want[3] = None if pay is None else pay / 10**4
        assert got == want
    text = io.StringIO(bodies[OutputName.CSV].decode(), newline="")
    cells = list(csv.reader(text))[1:]
    for row, got in zip(rows, cells, strict=True):
        assert got[0] == ("" if row[0] is None else guarded(row[0]))
        assert got[1] == ("" if row[1] is None else str(row[1]))
        assert got[6] == ("" if row[6] is None else row[6].isoformat())


def test_a_value_of_another_type_is_blank_and_rescued():
    row = [None] * len(COLUMNS)
    row[1], row[3], row[6] = "many", Decimal("1.00001"), "soon"
    bodies = written([tuple(row)], rescued=True)
    line = json.loads(bodies[OutputName.JSONL])
    assert (line["count"], line["pay"], line["day"]) == (None, None, None)
    assert json.loads(line["_rescued"]) == {"count": "many", "pay": "1.00001", "day": "soon"}


def test_a_cell_of_another_type_is_reported_once_and_rescued_as_a_person_writes_it(tmp_path):
    fields = [{"name": "id"}, {"name": "count", "type": "integer"}, {"name": "pay", "type": "money"}]
    fields.append({"name": "clock", "type": "time"})
    rows = [["id", "count", "pay", "clock"], ["a", True, date(2026, 1, 2), timedelta(hours=26)], ["b", 2.5, 1.23456, 7]]
    done = run_job(tmp_path, rows, fields=fields, output={"formats": ["jsonl"], "rescued": True})
    assert sorted(done.cells("type_error")) == ["B2", "B3", "C2", "D2", "D3"]
    assert done.cells("value_unfit") == ["C3"]
    lines = [json.loads(line) for line in (tmp_path / "normalized.jsonl").read_text().splitlines()]
    assert [json.loads(line["_rescued"]) for line in lines] == [
        {"count": "TRUE", "pay": "2026-01-02", "clock": "26:00:00"},
        {"count": "2.5", "pay": "1.23456", "clock": "7"},
    ]


def test_a_text_with_a_nul_is_accepted(tmp_path):
    checked(tmp_path, written([("a\0b", *ROW[1:])]), 1)


def test_the_column_of_rescued_values_gives_way_to_a_column_of_that_name():
    options = DataOptions.parse({"formats": ["jsonl"], "rescued": True})
    files = {OutputName.JSONL: io.BytesIO()}
    DataFiles(files, [OutColumn("_rescued", None)], options).write([["x"]], 1)
    assert json.loads(files[OutputName.JSONL].getvalue()) == {"_rescued": "x", "__rescued": None}


def test_moments_with_a_zone_that_a_rule_made_are_in_utc_and_clocks_with_one_are_rescued(tmp_path):
    row = list(ROW)
    zone = timezone(timedelta(hours=2))
    row[7], row[8] = datetime(2024, 1, 2, 3, tzinfo=zone), time(4, 5, tzinfo=zone)
    bodies = written([tuple(row)], rescued=True)
    checked(tmp_path, bodies, 1, rescued=True)
    line = json.loads(bodies[OutputName.JSONL])
    assert (line["at"], line["clock"]) == ("2024-01-02T01:00:00", None)
    assert "clock" in json.loads(line["_rescued"])


@pytest.mark.parametrize(
    ("value", "scale", "number"),
    [
        (19.9, 2, 1990), (0.1 + 0.2, 4, None), (1, 0, 1), (-0.05, 2, -5), (Decimal("12.345"), 2, None), (1e300, 4, None),
        (Decimal("12345678901234.5678"), 4, 123456789012345678), (10**18, 0, None), (float("inf"), 2, None),
        (1.7e308, 4, None), (-1.7e308, 1, None), (12345678901234.57, 4, 123456789012345700), (2e15 + 0.5, 1, 2 * 10**16 + 5),
        (Decimal(f"1.{'0' * 30}1"), 4, None), (Decimal("0E+30"), 2, 0), (Decimal("1E+17"), 0, 10**17), (-0.0, 2, 0),
    ],
)  # fmt: skip
def test_a_decimal_fits_its_scale_exactly_or_not_at_all(value, scale, number):
    assert unscaled(value, scale) == number


@given(st.floats() | st.integers(10**14, 10**16).map(lambda n: n / 100), st.integers(2, 4))
def test_the_digits_of_a_double_are_written_as_they_are_or_not_at_all(value, scale):
    number = unscaled(value, scale)
    assert number is None or Decimal(number).scaleb(-scale) == Decimal(repr(value))


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 9))
def test_the_digits_of_a_decimal_are_its_value(number, scale):
    assert Decimal(decimal_text(number, scale)) == Decimal(number).scaleb(-scale)


@pytest.mark.parametrize(
    "text",
    ["=1", "+a1", "-2+cmd", "@sum", "\t=1", "'=1", "''@x", "-e5", "\uff1d1", "'\uff20a", "\uff0bx", "\n=1", "\0=1"],
)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert is_formula(text)
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["+49 (30) 12-34", "-12.5", "a=1", "'quoted'", "", "--", "\uff0b81 3"])
def test_numbers_phones_and_other_texts_stay_as_they_are(text):
    assert guarded(text) == text


@given(st.text("'=@+-\uff1d\uff20\uff0b\uff0d\t\r\n\0\ufffd 1a.", max_size=6))
def test_loads_remove_just_the_apostrophe_that_the_writer_added(text):
    written = guarded(text).replace("\0", "\ufffd")  # as a load replaces it
    assert (written[1:] if re.match(GUARDED_TEXT, written) else written) == text.replace("\0", "\ufffd")


ROW = ("a", 1, 0.5, 12.5, 1.25, True, date(2024, 2, 29), datetime(2024, 1, 2, 3), time(4, 5), "x")


def forged(name, old, new):
    def forge(bodies):
        assert old in bodies[name]
        return {**bodies, name: bodies[name].replace(old, new, 1)}

    return forge


def packed_again(bodies, change):
    """The Parquet file with another body of its first page, under a header that fits."""
    body = bodies[OutputName.PARQUET]
    head = len(parquet.MAGIC)
    page = change(parquet.page_body(TypedColumn("text", ColumnType.TEXT), ["a"]))
    packed = parquet.gzipped(page)
    old = body.index(b"\x1f\x8b")
    end = body.index(parquet.PAGE_HEADER_PARTS[0], old)
    return {
        **bodies,
        OutputName.PARQUET: body[:head] + parquet.page_header(len(page), len(packed), 1) + packed + body[end:],
    }


def parquet_of(index, value):
    """The Parquet file with another value in one column, whatever its type holds."""

    def forge(bodies):
        raw = list(ROW)
        raw[3], raw[4] = 125000, 125
        raw[index] = value
        file = io.BytesIO()
        made = parquet.ParquetFile(file, [TypedColumn(c.header, *TYPED[n]) for n, c in enumerate(COLUMNS)])
        made.write([[one] for one in raw])
        made.close()
        return {**bodies, OutputName.PARQUET: file.getvalue()}

    return forge


def page_of(column, make):
    """The Parquet file with another page of one column, and metadata that fits. `make` returns header, packed bytes and
    the size of what they unpack to, of the page's body."""

    def forge(bodies):
        raw = [*ROW[:3], 125000, 125, *ROW[5:]]
        columns = [TypedColumn(c.header, *TYPED[n]) for n, c in enumerate(COLUMNS)]
        file, group = bytearray(parquet.MAGIC), []
        for n, (typed, value) in enumerate(zip(columns, raw, strict=True)):
            head, packed, size = (make if n == column else page)(parquet.page_body(typed, [value]))
            group.append(parquet.PageFacts(len(file), 1, len(head) + size, len(head) + len(packed)))
            file += head + packed
        described = parquet.metadata(columns, [group])
        whole = bytes(file) + described + struct.pack("<I", len(described)) + parquet.MAGIC
        return {**bodies, OutputName.PARQUET: whole}

    return forge


def page(body, packed=None):
    packed = packed or parquet.gzipped(body)
    return parquet.page_header(len(body), len(packed), 1), packed, len(body)


def longer_header(body):
    head, packed, size = page(body)
    at = len(parquet.PAGE_HEADER_PARTS[0]) + len(parquet.zigzag(size))
    return head[: at - 1] + bytes([head[at - 1] | 0x80, 0]) + head[at:], packed, size


def named_member(body):
    """A gzip member with the name of a file."""
    packed = parquet.gzipped(body)
    return page(body, packed[:3] + b"\x08" + packed[4:10] + b"name\0" + packed[10:])


TYPED = [
    (ColumnType.TEXT,), (ColumnType.INTEGER,), (ColumnType.NUMBER,), (ColumnType.DECIMAL, 4), (ColumnType.DECIMAL, 2),
    (ColumnType.BOOLEAN,), (ColumnType.DATE,), (ColumnType.DATETIME,), (ColumnType.TIME,), (ColumnType.TEXT,),
]  # fmt: skip


class Later(date):
    """A day of the year 12000."""

    def toordinal(self):
        return 4_382_910


class Longer(datetime):
    """A moment of the year 200000."""

    def __sub__(self, other):
        return 200_000 * timedelta(days=365)


FORGERIES = {
    "lines that end with a carriage return": lambda b: {
        **b,
        OutputName.CSV: b[OutputName.CSV].replace(b"\r\n", b"\r"),
    },
    "lines that end with a line feed": lambda b: {**b, OutputName.CSV: b[OutputName.CSV].replace(b"\r\n", b"\n")},
    "a last line without an end": lambda b: {**b, OutputName.CSV: b[OutputName.CSV][:-2]},
    "a text in quotes that needs none": forged(OutputName.CSV, b"\r\na,", b'\r\n"a",'),
    "a number in quotes": forged(OutputName.CSV, b",0.5,", b',"0.5",'),
    "a blank in quotes": forged(OutputName.CSV, b",0.5,", b',"",'),
    "a quote in the middle": forged(OutputName.CSV, b"\r\na,", b'\r\na"",'),
    "a carriage return outside of quotes": forged(OutputName.CSV, b",x\r\n", b",x\r"),
    "a second mark of the byte order": lambda b: {**b, OutputName.CSV: b"\xef\xbb\xbf" + b[OutputName.CSV]},
    "an integer beyond 64 bits in the csv": forged(OutputName.CSV, b"a,1,", b"a,9223372036854775808,"),
    "an integer beyond 64 bits in the jsonl": forged(OutputName.JSONL, b'"count": 1', b'"count": -9223372036854775808'),
    "an infinite number in the csv": forged(OutputName.CSV, b",0.5,", b",1e+309,"),
    "an infinite number in the jsonl": forged(OutputName.JSONL, b'"share": 0.5', b'"share": 1.8e+308'),
    "an infinite number of many digits": forged(OutputName.JSONL, b'"share": 0.5', b'"share": ' + b"9" * 320),
    "a decimal of too many digits": forged(OutputName.CSV, b",12.5,", b",999999999999999.5,"),
    "half a surrogate": forged(OutputName.JSONL, b'"text": "a"', rb'"text": "\ud800"'),
    "a letter as an escape": forged(OutputName.JSONL, b'"text": "a"', rb'"text": "\u0061"'),
    "a byte-order mark in the jsonl": lambda b: {**b, OutputName.JSONL: b"\xef\xbb\xbf" + b[OutputName.JSONL]},
    "no number in the parquet": parquet_of(2, float("nan")),
    "an infinite number in the parquet": parquet_of(2, float("-inf")),
    "a decimal of too many digits in the parquet": parquet_of(3, 10**18),
    "a day of no year in the parquet": parquet_of(6, Later(2024, 1, 1)),
    "a clock of thirty hours in the parquet": parquet_of(
        8, SimpleNamespace(hour=30, minute=0, second=0, microsecond=0)
    ),
    "a moment of no year in the parquet": parquet_of(7, Longer(2024, 1, 1)),
    "a formula in the csv": forged(OutputName.CSV, b"\r\na,", b"\r\n=a,"),
    "a text in a column of numbers": forged(OutputName.CSV, b",0.5,", b",half,"),
    "a day that is none": forged(OutputName.CSV, b"2024-02-29", b"2023-02-29"),
    "a cell too many": forged(OutputName.CSV, b"\r\na,", b"\r\na,a,"),
    "another header": forged(OutputName.CSV, b"text,", b"test,"),
    "another key": forged(OutputName.JSONL, b'"text": "a"', b'"test": "a"'),
    "a key twice": forged(OutputName.JSONL, b'"text": "a"', b'"text": "b", "text": "a"'),
    "a text for a number": forged(OutputName.JSONL, b'"count": 1', b'"count": "1"'),
    "not a number": forged(OutputName.JSONL, b'"share": 0.5', b'"share": NaN'),
    "more decimals than the scale": forged(OutputName.JSONL, b'"rate": 1.25', b'"rate": 1.255'),
    "half a line": lambda bodies: {**bodies, OutputName.JSONL: bodies[OutputName.JSONL][:-3]},
    "another schema": forged(OutputName.SCHEMA, b'"integer"', b'"string"'),
    "no schema": lambda bodies: {**bodies, OutputName.SCHEMA: b"[]"},
    "an empty parquet": lambda bodies: {**bodies, OutputName.PARQUET: b""},
    "bytes after the parquet": lambda bodies: {**bodies, OutputName.PARQUET: bodies[OutputName.PARQUET] + b"PAR1"},
    "another parquet column": forged(OutputName.PARQUET, b"count", b"kount"),
    "a parquet text that is not utf-8": lambda b: packed_again(b, lambda body: body[:-1] + b"\xff"),
    "a parquet text beyond its page": lambda b: packed_again(b, lambda body: body[:-5] + struct.pack("<I", 99) + b"a"),
    "a parquet header in more bytes than it needs": page_of(0, longer_header),
    "parquet levels in more bytes than they need": page_of(
        0, lambda body: page(struct.pack("<I", 3) + b"\x82\x00\x01" + body[6:])
    ),
    "parquet levels beyond their page": page_of(1, lambda body: page(struct.pack("<I", 2**31) + body[4:])),
    "a blank with a value in the parquet": page_of(1, lambda body: page(body[:4] + b"\x03\x00" + body[6:])),
    "more booleans than rows in the parquet": page_of(5, lambda body: page(body[:-1] + b"\x03")),
    "the least number of 64 bits in the parquet": page_of(
        1, lambda body: page(body[:-8] + struct.pack("<q", -(2**63)))
    ),
    "a second member in a page": page_of(0, lambda body: page(body, parquet.gzipped(body) + parquet.gzipped(b""))),
    "a page with the name of a file": page_of(0, named_member),
    "a page with another checksum": page_of(0, lambda body: page(body, parquet.gzipped(body)[:-5] + b"\0" * 5)),
    "a formula behind a line end in the csv": forged(OutputName.CSV, b"\r\na,", b'\r\n"\n=1",'),
    "a formula as the name of a csv column": forged(OutputName.CSV, b"text,", b"=text,"),
    "a blank line in the csv": forged(OutputName.CSV, b"\r\na,", b"\r\n\r\na,"),
    "a digit of another script": forged(OutputName.CSV, b"a,1,", "a,\u0661,".encode()),
    "utf-8 in more bytes than it needs": forged(OutputName.CSV, b"\r\na,", b"\r\n\xc0\xbd,"),
    "a leap day of 1900": forged(OutputName.CSV, b"2024-02-29", b"1900-02-29"),
    "a blank line in the jsonl": lambda b: {**b, OutputName.JSONL: b[OutputName.JSONL] + b"\n"},
    "lines of the jsonl that end as in csv": forged(OutputName.JSONL, b"}\n", b"}\r\n"),
    "one more key in the jsonl": forged(OutputName.JSONL, b"}\n", b', "__proto__": {}}\n'),
    "a key of its own in the schema": forged(OutputName.SCHEMA, b'"missingValues"', b'"$ref": "x",\n "missingValues"'),
    "parquet levels of more rows": lambda b: packed_again(b, lambda body: body[:4] + b"\x04" + body[5:]),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_what_our_writers_do_not_write_is_refused(tmp_path, forge):
    bodies = written([ROW])
    checked(tmp_path, bodies, 1)
    with pytest.raises(BadOutput):
        checked(tmp_path, forge(bodies), 1)


def test_a_parquet_file_put_together_by_the_forger_is_accepted_as_long_as_it_is_ours(tmp_path):
    bodies = written([ROW])
    assert page_of(0, page)(bodies)[OutputName.PARQUET] == bodies[OutputName.PARQUET]


def test_a_parquet_file_with_any_other_byte_is_refused(tmp_path):
    bodies = written([ROW] * 5)
    good, draw = bodies[OutputName.PARQUET], random.Random(3)
    for at in draw.sample(range(len(good)), 60):
        body = bytearray(good)
        body[at] ^= 1 << draw.randrange(8)
        with pytest.raises(BadOutput):
            checked(tmp_path, {**bodies, OutputName.PARQUET: bytes(body)}, 5)


def test_rows_are_counted_in_each_format(tmp_path):
    bodies = written([ROW] * 3)
    for name in (OutputName.CSV, OutputName.JSONL, OutputName.PARQUET):
        with pytest.raises(BadOutput, match=name):
            checked(tmp_path, {**bodies, name: written([ROW] * 2)[name]}, 3)


def test_a_german_spreadsheet_reads_the_csv(tmp_path):
    bodies = written([ROW], csv={"delimiter": ";", "decimal": ",", "bom": True})
    assert bodies[OutputName.CSV].startswith(b"\xef\xbb\xbftext;count;")
    assert b";0,5;12,5;1,25;" in bodies[OutputName.CSV]
    checked(tmp_path, bodies, 1, csv={"delimiter": ";", "decimal": ",", "bom": True})


def test_only_a_success_publishes_data():
    for name in data_files(["xlsx", "csv", "jsonl", "parquet"]):
        check_published([name], succeeded=True)
        with pytest.raises(Exception, match="did not succeed"):
            check_published([name], succeeded=False)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"formats": ["pdf"]}, "formats"),
        ({"formats": ["csv", "csv"]}, "twice"),
        ({"formats": []}, "formats"),
        ({"rescued": True}, "only xlsx"),
        ({"csv": {"decimal": ","}}, "delimiter"),
        ({"formats": ["csv"], "load": {"table": "ade_loads"}}, "loads use themselves"),
        ({"formats": ["csv"], "load": {"table": "members_ade_job"}}, "loads use themselves"),
    ],
)
def test_wrong_options_are_named(output, said):
    raw = {"manifest": 1, "name": "m", "fields": [{"name": "a"}], "output": output}
    with pytest.raises(ManifestInvalid) as refused:
        parse_manifest(json.dumps(raw).encode())
    assert said in str(refused.value.problems)


def test_two_fields_of_one_label_do_not_become_two_columns_of_one_name():
    fields = [{"name": "a", "label": "Name"}, {"name": "b", "label": "NAME"}]
    raw = {"manifest": 1, "name": "m", "fields": fields, "output": {"header": "label", "formats": ["jsonl"]}}
    with pytest.raises(ManifestInvalid) as refused:
        parse_manifest(json.dumps(raw).encode())
    assert "fields[1].label" in str(refused.value)


@settings(max_examples=examples(200), deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1.7976931348623157e308, 5e-324, -0.0, 1e16]))
def test_every_double_is_in_the_language_of_numbers(value):
    cell = _value_expression(TypedColumn("share", ColumnType.NUMBER))
    assert re.fullmatch(cell, repr(value))
    assert re.fullmatch(cell, repr(value).removesuffix(".0"))


@given(st.integers(-(2**66), 2**66))
def test_just_the_integers_of_64_bits_are_in_the_language_of_integers(value):
    cell = _value_expression(TypedColumn("count", ColumnType.INTEGER))
    assert bool(re.fullmatch(cell, str(value))) is (abs(value) < 2**63)


@given(st.integers(-(10**19), 10**19), st.integers(0, 18))
def test_just_the_decimals_that_fit_are_in_the_language_of_decimals(number, scale):
    cell = _value_expression(TypedColumn("pay", ColumnType.DECIMAL, scale))
    assert bool(re.fullmatch(cell, decimal_text(number, scale))) is (abs(number) < 10**18)


def test_a_long_text_of_rescued_values_is_accepted(tmp_path):
    row = list(ROW)
    for n in (1, 2, 3, 5, 6, 7):
        row[n] = "x" * 32_767
    before = csv.field_size_limit(131_072)  # as in a process that has read no CSV
    try:
        checked(tmp_path, written([tuple(row)], rescued=True), 1, rescued=True)
    finally:
        csv.field_size_limit(before)
