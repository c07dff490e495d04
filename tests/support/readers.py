"""Reads the data files of jobs with other people's readers, and compares them with the workbook of the same job.

    python readers.py FOLDER...

It runs in an environment of its own (`tests.support.clients.installed`) and imports nothing of ours.
"""

import contextlib
import datetime as dt
import decimal
import json
import math
import pathlib
import re
import sys

import duckdb
import openpyxl
import pandas as pd
import polars as pl
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

LONGEST = 32_000  # characters of a cell, more or less: longer texts are cut in the workbook only
GUARDED = re.compile(r"'+([=@\t\r\n\0\ufffd]|[+-](?![0-9 .,()/-]*\Z))")


def workbook(folder, fields):
    """The rows of normalized.xlsx as the schema types them; what does not fit is None."""
    sheet = openpyxl.load_workbook(folder / "normalized.xlsx").worksheets[0]
    rows = [list(row) for row in sheet.iter_rows(min_row=2)]
    return [[typed(cell, field) for cell, field in zip(row, fields, strict=False)] for row in rows]


def typed(cell, field):
    value = cell.value
    if isinstance(value, str):
        value = re.sub(r"_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m[1], 16)), value)
    kind = field["type"]
    if value is None or cell.data_type == "e":
        return None
    if kind == "string":
        return text(value)
    if isinstance(value, str):
        return beyond_a_spreadsheet(value, kind)
    if kind == "date":
        return value.date() if isinstance(value, dt.datetime) else None
    if kind == "datetime":
        return value if isinstance(value, dt.datetime) else None
    if kind == "time":
        return value if isinstance(value, dt.time) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kind == "integer":
        return int(value) if value == int(value) else None
    if "scale" in field:
        exact = decimal.Decimal(repr(value))
        return exact if exact == round(exact, field["scale"]) else None
    return float(value)


def beyond_a_spreadsheet(value, kind):
    """What a workbook can only hold as text, and typed columns as a value: long numbers, days before 1900."""
    if kind == "integer" and re.fullmatch(r"-?[0-9]{16,19}", value) and abs(int(value)) < 2**63:
        return int(value)
    if kind == "number" and re.fullmatch(r"-?[0-9]{16}", value) and abs(int(value)) <= 2**53:
        return float(value)
    if kind in ("date", "datetime") and re.match(r"(0[0-9]|1[0-8])[0-9]{2}-", value):
        with contextlib.suppress(ValueError):
            return (dt.date if kind == "date" else dt.datetime).fromisoformat(value)
    return None


def text(value):
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(sep=" ")
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def same(want, got, field):
    if got is None or got is pd.NaT or got is pd.NA or (isinstance(got, float) and math.isnan(got)):
        return want is None
    if want is None:
        return False
    kind = field["type"]
    if kind == "string":
        # openpyxl makes one line break of a carriage return and a line feed, as XML asks for
        whole, shown = " ".join(str(got).split()), " ".join(str(want).split())
        return whole == shown or (len(want) >= LONGEST and whole.startswith(shown))
    if kind == "number":
        return decimal.Decimal(str(want)) == decimal.Decimal(str(got)) or float(want) == float(got)
    if kind in ("date", "datetime", "time") and isinstance(got, str):
        parse = {"date": dt.date, "datetime": dt.datetime, "time": dt.time}[kind].fromisoformat
        return abs_close(parse(got), want)
    if kind == "datetime":
        return abs_close(got, want)
    if kind == "date" and isinstance(got, dt.datetime):
        got = got.date()
    return abs_close(got, want)


def abs_close(got, want):
    """A spreadsheet stores moments as fractions of a day: microseconds are lost."""
    if isinstance(want, dt.datetime):
        return abs(got - want) < dt.timedelta(milliseconds=1)
    if isinstance(want, dt.time):
        seconds = [((t.hour * 60 + t.minute) * 60 + t.second) + t.microsecond / 1e6 for t in (got, want)]
        return abs(seconds[0] - seconds[1]) < 0.001
    return got == want


def unguarded(value):
    return value[1:] if isinstance(value, str) and GUARDED.match(value) else value


def csv_tables(path, names):
    """The rows of normalized.csv by each reader, as texts: their types are compared in Parquet."""
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=True, null_values=[""]
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    read = pyarrow.csv.read_csv(path, convert_options=options, parse_options=parse)
    yield "pyarrow", zip(*(c.to_pylist() for c in read.columns), strict=False)
    yield "polars", pl.read_csv(path, infer_schema=False).rows()
    dialect = {"sep": ",", "quotechar": '"', "escapechar": '"', "na_values": "", "header": True}
    yield "duckdb", duckdb.read_csv(path, all_varchar=True, **dialect).fetchall()
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""], skip_blank_lines=False)
    yield "pandas", frame.astype(object).itertuples(index=False, name=None)


def json_tables(path, fields):
    """The rows of normalized.jsonl by each reader; dates and times are texts there."""
    kinds = {field["name"]: "decimal" if "scale" in field else field["type"] for field in fields}
    arrow = {
        "integer": pyarrow.int64(), "number": pyarrow.float64(), "decimal": pyarrow.float64(), "boolean": pyarrow.bool_(),
    }  # fmt: skip
    schema = pyarrow.schema([(name, arrow.get(kind, pyarrow.string())) for name, kind in kinds.items()])
    whole = pyarrow.json.ReadOptions(block_size=1 << 26)
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    read = pyarrow.json.read_json(path, read_options=whole, parse_options=options)
    yield "pyarrow", zip(*(c.to_pylist() for c in read.columns), strict=False)
    polars = {"integer": pl.Int64, "number": pl.Float64, "decimal": pl.Float64, "boolean": pl.Boolean}
    yield "polars", pl.read_ndjson(path, schema={n: polars.get(kind, pl.String) for n, kind in kinds.items()}).rows()
    types = {"integer": "BIGINT", "number": "DOUBLE", "decimal": "DECIMAL(18, 9)", "boolean": "BOOLEAN"}
    columns = {name: types.get(kind, "VARCHAR") for name, kind in kinds.items()}
    columns |= {field["name"]: f"DECIMAL(18, {field['scale']})" for field in fields if "scale" in field}
    yield "duckdb", duckdb.read_json(path, format="newline_delimited", columns=columns).fetchall()
    frame = pd.read_json(path, lines=True, dtype=False, precise_float=True)
    yield "pandas", frame.astype(object).itertuples(index=False, name=None)
    lines = pathlib.Path(path).read_text("utf-8").split("\n")[:-1]
    yield "Python", (tuple(json.loads(line, parse_float=decimal.Decimal).values()) for line in lines)


def parsed(value, field):
    if value is None or value is pd.NA or value != value:  # pandas' blank is no number
        return None
    if field["type"] == "string":
        return unguarded(value)
    if field["type"] == "integer":
        return int(value)
    if field["type"] == "number":
        return decimal.Decimal(value)
    return value == "true" if field["type"] == "boolean" else value


def readings(folder, fields):
    """The rows of each data file by each reader."""
    path = str(folder / "normalized.parquet")
    table = pyarrow.parquet.read_table(path)
    yield "pyarrow", list(zip(*(c.to_pylist() for c in table.columns), strict=False))
    yield "polars", pl.read_parquet(path).rows()
    yield "duckdb", duckdb.sql(f"select * from '{path}'").fetchall()
    frame = pd.read_parquet(path, dtype_backend="pyarrow")  # without it, integers beside blanks are floats
    yield "pandas", [tuple(row) for row in frame.astype(object).itertuples(index=False, name=None)]
    for reader, rows in csv_tables(str(folder / "normalized.csv"), [field["name"] for field in fields]):
        yield f"{reader}, csv", [[parsed(v, field) for v, field in zip(row, fields, strict=True)] for row in rows]
    for reader, rows in json_tables(str(folder / "normalized.jsonl"), fields):
        yield f"{reader}, jsonl", list(rows)


def main(folders):
    cells = wrong = 0
    for folder in map(pathlib.Path, folders):
        fields = json.loads((folder / "schema.json").read_text("utf-8"))["fields"]
        want = workbook(folder, fields)
        for reader, got in readings(folder, fields):
            if len(got) != len(want):
                wrong += 1
                print(f"{folder}: {reader} has {len(got)} rows, the workbook {len(want)}")
                continue
            for number, (ours, theirs) in enumerate(zip(want, got, strict=False), 1):
                for field, one, other in zip(fields, ours, theirs, strict=False):
                    cells += 1
                    if not same(one, other, field):
                        wrong += 1
                        print(
                            f"{folder}: {reader}, row {number}, {field['name']}: {str(one)[:80]!r} is {str(other)[:80]!r}"
                        )
    print(f"{len(folders)} files, {cells} cells compared, {wrong} differ")
    return 1 if wrong or not cells else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
