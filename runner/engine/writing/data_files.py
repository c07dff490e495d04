"""The data files beside the workbook: normalized.csv, .jsonl and .parquet, and schema.json that describes them.

All of them are written in the same pass as the workbook, from the same chunks, and hold the same cells.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import IO, Any, Final, Protocol

from runner.engine.contract import Json, OutputName
from runner.engine.mapping.output_layout import OutColumn
from runner.engine.options import DataOptions
from runner.engine.writing.delimited_file import CsvDialect, DelimitedFile
from runner.engine.writing.json_lines import JsonLines
from runner.engine.writing.parquet import ParquetFile
from runner.engine.writing.splitting import Places, picked_rows
from runner.engine.writing.typed import ColumnType, TypedColumn, fit, is_of_type, rescued_texts, typed_columns

SCHEMA_VERSION: Final = 1


class DataFile(Protocol):
    """A file that grows by chunks of fitted columns."""

    def write(self, columns: Sequence[list[Any]]) -> None:
        """Append rows, given as one list of fitted values per column."""

    def close(self) -> None:
        """Write what is left; the file itself stays open."""


Unfit = Mapping[int, Sequence[int]]  # the cells of a chunk that do not fit their columns: indexes of rows, by column


class DataFiles:
    """Writes every data file that a job is asked for."""

    def __init__(
        self,
        files: Mapping[OutputName, IO[bytes]],
        columns: Sequence[OutColumn],
        options: DataOptions,
        split_files: Sequence[Mapping[OutputName, IO[bytes]]] = (),
    ) -> None:
        """`split_files`: for each label of a split, the files of each format."""
        self._columns = typed_columns(columns, rescued=options.rescued)
        self._has_rescued = options.rescued
        self._schema_file = files.get(OutputName.SCHEMA)
        self._options = options
        self._writers = [
            _open_writer(name, file, self._columns, options) for name, file in files.items() if name in _WRITERS
        ]
        self._split_writers = [
            [_open_writer(name, file, self._columns, options, among=len(split_files)) for name, file in group.items()]
            for group in split_files
        ]

    def write(self, columns: list[list[Any]], count: int, places: Places = ()) -> Unfit:
        """Append `count` rows, given as one list per output column; returns the cells that do not fit and are blank.

        `places`: which of the rows belong to each label of the split.
        """
        fitted = [fit(column, values) for column, values in zip(self._columns, columns, strict=False)]
        values, unfit = [f.values for f in fitted], [f.unfit for f in fitted]
        if self._has_rescued:
            values.append(rescued_texts(self._columns, columns, unfit, count))
        for writer in self._writers:
            writer.write(values)
        for writers, rows in zip(self._split_writers, places, strict=bool(self._split_writers)):
            part = picked_rows(values, rows) if rows and writers else []
            for writer in writers if rows else ():
                writer.write(part)
        return {n: cells for n, cells in enumerate(unfit) if cells}

    def is_of_type(self, n: int, value: Any) -> bool:
        """Whether a value that does not fit an output column is of its type all the same."""
        return is_of_type(self._columns[n], value)

    def close(self) -> None:
        """Complete all files, and write schema.json."""
        for writer in chain(self._writers, *self._split_writers):
            writer.close()
        if self._schema_file is not None:
            self._schema_file.write(schema_text(self._columns, self._options))
            self._schema_file.flush()


_WRITERS: Final = (OutputName.CSV, OutputName.JSONL, OutputName.PARQUET)


def _open_writer(
    name: OutputName, file: IO[bytes], columns: Sequence[TypedColumn], options: DataOptions, among: int = 1
) -> DataFile:
    """Open a writer of CSV, JSON Lines or Parquet by the name of the whole output's file; `among`: so many files of it
    share the memory of one."""
    if name is OutputName.CSV:
        return DelimitedFile(file, columns, dialect_of(options))
    return JsonLines(file, columns) if name is OutputName.JSONL else ParquetFile(file, columns, among)


def dialect_of(options: DataOptions) -> CsvDialect:
    """Return how CSV files are written by these options."""
    return CsvDialect(options.delimiter, options.decimal, options.bom)


def schema_text(columns: Sequence[TypedColumn], options: DataOptions) -> bytes:
    """Write schema.json: a Frictionless Table Schema, with what it has no words for under `ade`."""
    csv: Json = {
        "delimiter": options.delimiter,
        "decimal": options.decimal,
        "bom": options.bom,
        "formulas": "apostrophe",
    }
    schema: Json = {
        "fields": [_describe_column(column, options) for column in columns],
        "missingValues": [""],
        "ade": {"schema_version": SCHEMA_VERSION, "csv": csv},
    }
    return json.dumps(schema, ensure_ascii=False, indent=1).encode(errors="replace") + b"\n"


def _describe_column(column: TypedColumn, options: DataOptions) -> Json:
    """Describe a column as schema.json has it."""
    numeric = column.type in (ColumnType.NUMBER, ColumnType.DECIMAL)
    return {
        "name": column.name,
        "type": "number" if column.type is ColumnType.DECIMAL else str(column.type),
        **({"scale": column.scale} if column.type is ColumnType.DECIMAL else {}),
        **({"decimalChar": options.decimal} if numeric and options.decimal != "." else {}),
    }
