"""Checks the data files: the columns that the manifest asks for, the artifact's rows, and values of their types only.

As with the workbook, nothing lists what is dangerous: each type is a small language (`_language`), and a file is
accepted only if all of it is in the language of its columns.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from typing import IO, Final, NamedTuple, Protocol

from runner.engine.contract import DataTypes, OutputName, Place
from runner.engine.document_types import OutputColumnPart, OutputPart
from runner.engine.options import DataOptions
from runner.engine.protocol import BadOutput
from runner.engine.verifying.parquet_check import count_parquet_rows
from runner.engine.verifying.split_column import WRONG_FILE, SplitColumn
from runner.engine.writing.data_files import schema_text
from runner.engine.writing.delimited_file import BOM, FORMULA_STARTS, LINE_END, csv_text, guarded, is_formula
from runner.engine.writing.typed import PRECISION, RESCUED, ColumnType, TypedColumn, column_type

MAX_SCHEMA: Final = 16 * 1024 * 1024
MAX_LINE: Final = 64 * 1024 * 1024  # characters of one row: 16,384 cells rarely have as many
_OTHER_LINE: Final = "normalized.csv has a line that the engine does not write"
_ROWS_AT_ONCE: Final = 2048
_BYTES_AT_ONCE: Final = 1024 * 1024

_LEAP_YEAR: Final = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY: Final = (
    r"(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))|" + _LEAP_YEAR + r"-02-29)"
)
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{6})?"
_JSON_TEXT: Final = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\bfnrt]|u00[01][0-9a-f])[^"\\\x00-\x1f]*+)*+"'


def _at_most(limit: str) -> str:
    """Return an expression of the digits that are as many as the limit's and at most as much; the first is no zero."""
    below = (
        limit[:n] + f"[{int(n == 0)}-{int(digit) - 1}][0-9]{{{len(limit) - n - 1}}}"
        for n, digit in enumerate(limit)
        if int(digit) > (n == 0)
    )
    return "|".join([*below, limit])


def _fraction_at_most(limit: str) -> str:
    """Return an expression of the digits behind a point that are no more, and no greater, than the limit's."""
    below = (
        limit[:n] + f"[0-{int(digit) - 1}][0-9]{{0,{len(limit) - n - 1}}}"
        for n, digit in enumerate(limit)
        if digit > "0"
    )
    return "|".join([*below, *(limit[:n] for n in range(len(limit), 0, -1))])


# What Python writes for numbers that a 64-bit integer, or a double that is finite, holds.
_INTEGER: Final = rf"(?:0|-?(?:[1-9][0-9]{{0,17}}|{_at_most(str(2**63 - 1))}))"
_LARGEST_DOUBLE: Final = "7976931348623157"  # behind the point, times ten to the power of 308
_NUMBER: Final = (
    r"-?(?:(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,21})?"
    r"|[1-9](?:\.[0-9]{1,16})?e(?:-[0-9]{2}|-[12][0-9]{2}|-3[0-2][0-9]|\+[0-9]{2}|\+[12][0-9]{2}|\+30[0-7])"
    rf"|1(?:\.(?:{_fraction_at_most(_LARGEST_DOUBLE)}))?e\+308)"
)


class SplitFile(NamedTuple):
    """A file of a split, and what it must hold."""

    name: str
    kind: OutputName  # the file of the whole output that has its format
    rows: int
    column: SplitColumn


def check_data_files(
    written: Mapping[str, Place], known: DataTypes, output: OutputPart, split_files: Iterable[SplitFile] = ()
) -> None:
    """Check schema.json, and every CSV, JSON Lines and Parquet file; raises BadOutput."""
    options = DataOptions.parse(known.output)
    columns = _check_schema(_read_schema(written), known, output, options)
    for name in options.names:
        if name in _COUNT_ROWS and not _is_empty(written, name, name, output["rows"]):
            with open_written(written, name) as file:
                rows = _COUNT_ROWS[name](file, columns, options, None)
            if rows != output["rows"]:
                raise BadOutput(f"artifact.json counts {output['rows']} rows, {name} has {rows}")
    for part in split_files:
        if part.kind in _COUNT_ROWS and not _is_empty(written, part.name, part.kind, part.rows):
            with open_written(written, part.name) as file, named_as(part):
                rows = _COUNT_ROWS[part.kind](file, columns, options, part.column)
            if rows != part.rows:
                raise BadOutput(f"artifact.json counts {part.rows} rows, {part.name} has {rows}")


def _is_empty(written: Mapping[str, Place], name: str, kind: OutputName, rows: int) -> bool:
    """Whether a file has no byte because it has no row, so that nothing was collected."""
    return kind is OutputName.JSONL and not rows and name not in written


@contextmanager
def named_as(part: SplitFile) -> Iterator[None]:
    """Name a split file in what is wrong with it, instead of the file of the whole output."""
    try:
        yield
    except BadOutput as refused:
        text = str(refused).removeprefix(part.kind).removeprefix("normalized")
        raise BadOutput(f"{part.name}{text}") from None


def open_written(written: Mapping[str, Place], name: str) -> IO[bytes]:
    """Open an output for reading; raises BadOutput if the box did not write it."""
    if name not in written:
        raise BadOutput(f"the box did not write {name}")
    place = written[name]
    file = open(place, "rb", closefd=not isinstance(place, int))  # noqa: SIM115 - by a path or by a descriptor
    file.seek(0)
    return file


def _read_schema(written: Mapping[str, Place]) -> bytes:
    """Read schema.json, or one byte more than it may have; raises BadOutput if the box did not write it."""
    with open_written(written, OutputName.SCHEMA) as file:
        return file.read(MAX_SCHEMA + 1)


def _check_schema(raw: bytes, known: DataTypes, output: OutputPart, options: DataOptions) -> list[TypedColumn]:
    """Check that schema.json has the columns of the artifact with the manifest's types, and nothing else; return its
    columns."""
    names = _column_names(raw)
    if len(names) != len(output["columns"]) + options.rescued:
        raise BadOutput("artifact.json and schema.json have different columns")
    columns = [
        _expected_column(name, described, known) for name, described in zip(names, output["columns"], strict=False)
    ]
    if options.rescued:
        columns.append(TypedColumn(names[-1], ColumnType.TEXT))
    if schema_text(columns, options) != raw or (options.rescued and not names[-1].endswith(RESCUED)):
        raise BadOutput("schema.json is not the schema that the manifest asks for")
    if any(described["header"] not in (None, name) for described, name in zip(output["columns"], names, strict=False)):
        raise BadOutput("artifact.json and schema.json name a column differently")
    return columns


def _expected_column(name: str, described: OutputColumnPart, known: DataTypes) -> TypedColumn:
    """Return a column as the manifest and the artifact describe it."""
    field_type, scale = known.types.get(described["field"] or "", (None, None))
    return TypedColumn(name, *column_type(field_type, scale, described.get("added")))


def _column_names(raw: bytes) -> list[str]:
    """Return the names of the columns in schema.json; raises BadOutput if it is not a schema."""
    try:
        names = [field["name"] for field in json.loads(raw)["fields"]] if len(raw) <= MAX_SCHEMA else []
    except (ValueError, RecursionError, LookupError, TypeError):
        names = []
    if not names or not all(isinstance(name, str) for name in names):
        raise BadOutput("schema.json is not a schema")
    return names


def _value_expression(column: TypedColumn) -> str:
    """Return a regular expression of the values of a column that does not hold texts."""
    match column.type:
        case ColumnType.INTEGER:
            return _INTEGER
        case ColumnType.DECIMAL:
            further_digits = PRECISION - column.scale - 1  # before the point, behind the first digit
            whole = rf"(?:0|[1-9][0-9]{{0,{further_digits}}})" if further_digits >= 0 else "0"
            return "-?" + whole + (rf"(?:\.[0-9]{{1,{column.scale}}})?" if column.scale else "")
        case ColumnType.NUMBER:
            return _NUMBER
        case ColumnType.BOOLEAN:
            return "(?:true|false)"
        case ColumnType.DATE:
            return _DAY
        case ColumnType.DATETIME:
            return _DAY + "T" + _CLOCK
        case _:
            return _CLOCK


def _count_csv_rows(
    file: IO[bytes], columns: list[TypedColumn], options: DataOptions, split: SplitColumn | None
) -> int:
    """Count the rows of a CSV file; raises BadOutput unless every cell has its column's type and none is a formula.

    The rows have to be spelled as the engine spells them: no other reader finds other cells.
    """
    if (file.read(len(BOM)) == BOM) != options.bom:
        raise BadOutput("normalized.csv has not the byte-order mark that the manifest asks for, or one too many")
    file.seek(len(BOM) if options.bom else 0)
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    lines: list[str] = []  # of the rows that were read and not compared yet
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))  # of the process: a cell is bounded by its line
    records = csv.reader(_bound_lines(text, lines), delimiter=options.delimiter, strict=True)
    checks = [_make_csv_check(column, options.decimal) for column in columns]
    guarded_split = None if split is None else _guarded_split(split)
    rows = 0
    try:
        header = next(records, None)
        if header != [guarded(column.name) for column in columns]:
            raise BadOutput("normalized.csv and schema.json have different columns")
        _check_spelling([header], lines, options)
        while batch := list(islice(records, _ROWS_AT_ONCE)):
            rows += len(batch)
            if any(len(record) != len(columns) for record in batch):
                raise BadOutput("normalized.csv has a row with more or fewer cells than columns")
            if not all(check(cells) for check, cells in zip(checks, zip(*batch, strict=True), strict=True)):
                raise BadOutput("normalized.csv has a cell that is not of its column's type, or a formula")
            _check_spelling(batch, lines, options)
            if guarded_split is not None and not guarded_split.holds([record[guarded_split.at] for record in batch]):
                raise BadOutput(WRONG_FILE)
    except (csv.Error, UnicodeDecodeError):
        raise BadOutput("normalized.csv is not a CSV file in UTF-8") from None
    finally:
        text.detach()
    return rows


def _guarded_split(split: SplitColumn) -> SplitColumn:
    """Return what a column of a split must hold, as CSV files have it."""
    value = None if split.value is None else guarded(split.value)
    return SplitColumn(split.at, frozenset(map(guarded, split.values)), value)


def _bound_lines(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    """Yield the lines, as long as none is too long, and append each to `lines`; raises BadOutput."""
    for line in text:
        if len(line) > MAX_LINE:
            raise BadOutput(_OTHER_LINE)
        lines.append(line)
        yield line


def _check_spelling(records: list[list[str]], lines: list[str], options: DataOptions) -> None:
    """Check that lines are these records as the engine writes them, and empty the list; raises BadOutput."""
    text = "".join(lines)
    if '"' in text:
        is_ours = text == csv_text(records, options.delimiter)
    else:  # only the line ends can differ
        is_ours = text.count(LINE_END) == text.count("\r") == text.count("\n") == len(records)
    if not is_ours:
        raise BadOutput(_OTHER_LINE)
    lines.clear()


def _make_csv_check(column: TypedColumn, point: str) -> Callable[[tuple[str, ...]], bool]:
    """Return a function that says whether all cells of a batch have a column's type."""
    if column.type is ColumnType.TEXT:
        return lambda cells: not any(cell and cell[0] in FORMULA_STARTS and is_formula(cell) for cell in cells)
    value = _value_expression(column)
    if _is_fraction(column):
        value = value.replace(r"\.", re.escape(point))
    batch = re.compile(rf"(?:(?:{value})?\n)*+")
    return lambda cells: batch.fullmatch("\n".join(cells) + "\n") is not None


def _is_fraction(column: TypedColumn) -> bool:
    """Whether the numbers of a column may have a decimal point."""
    return column.type in (ColumnType.NUMBER, ColumnType.DECIMAL)


def _count_json_rows(file: IO[bytes], columns: list[TypedColumn], _: DataOptions, split: SplitColumn | None) -> int:
    """Count the lines; raises BadOutput unless each is an object of the columns in their order, with values of their
    types."""
    languages = ["(?:null|" + _json_expression(column) + ")" for column in columns]
    if split is not None:
        languages[split.at] = _split_expression(split)
    members = [
        _quoted_expression(column.name) + ": " + language for column, language in zip(columns, languages, strict=True)
    ]
    lines = re.compile(r"(?:\{" + ", ".join(members) + r"\}\n)*+")
    rows = 0
    for block in _blocks_of_lines(file):
        try:
            text = block.decode()
        except UnicodeDecodeError:
            raise BadOutput("normalized.jsonl is not UTF-8") from None
        if lines.fullmatch(text) is None:
            raise BadOutput(
                "normalized.jsonl has a line that is not an object of the columns with values of their types"
                + ("" if split is None else ", or that belongs to another file of the split")
            )
        rows += block.count(b"\n")
    return rows


def _split_expression(split: SplitColumn) -> str:
    """Return the expression of the values that the column of a split holds in one file, in their only spelling."""
    if split.value is not None:
        return _quoted_expression(split.value)
    declared = "|".join(map(_quoted_expression, sorted(split.values)))
    return f"(?!(?:{declared})(?:, |\\}}))(?:null|{_JSON_TEXT})"


def _quoted_expression(text: str) -> str:
    """Return the expression of one text as normalized.jsonl has it, in quotes."""
    return re.escape(json.dumps(text, ensure_ascii=False))


def _json_expression(column: TypedColumn) -> str:
    """Return the expression that every value of a column in normalized.jsonl matches."""
    if column.type is ColumnType.TEXT:
        return _JSON_TEXT
    quoted = column.type in (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIME)
    return f'"{_value_expression(column)}"' if quoted else _value_expression(column)


def _blocks_of_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines; one that is too long is cut."""
    while block := file.read(_BYTES_AT_ONCE):
        rest = b"" if block.endswith(b"\n") else file.readline(MAX_LINE)
        yield block + rest


class _RowCounter(Protocol):
    """Checks a data file and counts its rows; raises BadOutput."""

    def __call__(
        self, file: IO[bytes], columns: list[TypedColumn], options: DataOptions, split: SplitColumn | None, /
    ) -> int: ...


_COUNT_ROWS: Final[dict[OutputName, _RowCounter]] = {
    OutputName.CSV: _count_csv_rows,
    OutputName.JSONL: _count_json_rows,
    OutputName.PARQUET: count_parquet_rows,
}
