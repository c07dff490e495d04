"""CSV and TSV."""

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from runner.engine.reading.books import Book, Layout
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.values import Row, Value


class DelimitedSheet:
    name = "Sheet1"
    index = 0
    visibility = "visible"

    def __init__(self, file: BinaryIO, encoding: str, delimiter: str) -> None:
        self._file = file
        self._encoding = encoding
        self._delimiter = delimiter

    def rows(self) -> Iterator[Row]:
        self._file.seek(0)
        text = io.TextIOWrapper(self._file, encoding=self._encoding, errors="replace", newline="")
        try:
            for number, fields in enumerate(csv.reader(text, delimiter=self._delimiter), 1):
                values: list[Value] = [one or None for one in fields]
                while values and values[-1] is None:
                    values.pop()
                if values:
                    yield number, values
        finally:
            text.detach()

    def layout(self) -> Layout:
        return Layout()


def open_delimited(file: BinaryIO, *, name: str, limits: ReadLimits) -> Book:
    del name, limits
    file.seek(0)
    head = file.read(65536)
    encoding = "utf-8-sig"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    else:
        try:
            head.decode()
        except UnicodeDecodeError as error:
            if error.start < len(head) - 4:
                encoding = "cp1252"
    text = head.decode(encoding, "replace")
    delimiter = max(
        ",;\t|", key=lambda one: min((line.count(one) for line in text.splitlines()[:50] if line), default=0)
    )
    sheet = DelimitedSheet(file, encoding, delimiter)
    return Book(
        file_format="tsv" if delimiter == "\t" else "csv",
        reader="csv",
        sheets=[sheet],  # type: ignore[list-item]
        notes={"encoding": encoding, "delimiter": delimiter, "quote": '"'},
        source=file,
    )
