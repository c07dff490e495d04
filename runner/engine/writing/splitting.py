"""Splits the rows of the output by the value of one field, and writes the workbooks of the split files."""

from collections.abc import Sequence
from typing import Any, Final

from runner.engine.common.findings import Findings
from runner.engine.contract import OTHER, SplitBy
from runner.engine.mapping.output_layout import OutColumn
from runner.engine.writing.book import NormalizedBook
from runner.engine.writing.typed import ColumnType, TypedColumn, fit

_TEXT: Final = TypedColumn("", ColumnType.TEXT)
Places = Sequence[Sequence[int]]  # the indexes of a chunk's rows, for each label of a split


class RowSplit:
    """Decides to which files the rows of a chunk belong, and counts them."""

    def __init__(self, split: SplitBy, columns: Sequence[OutColumn], books: Sequence[NormalizedBook]) -> None:
        """`books`: one for each label, or none if no workbook is asked for."""
        self._field = split.field
        self._field_column = next(
            n for n, c in enumerate(columns) if c.field is not None and c.field.name == split.field
        )
        self._numbers = {value: number for number, value in enumerate(split.values)}
        self._books = books
        self.labels = split.labels
        self.rows = [0] * len(self.labels)

    def with_texts(self, output: list[list[Any]]) -> list[list[Any]]:
        """Return the same columns with texts in that of the field: a number that a rule made is a value like its
        digits."""
        values = output[self._field_column]
        if all(value is None or type(value) is str for value in values):
            return output
        texts = [value if text is None else text for value, text in zip(values, fit(_TEXT, values).values, strict=True)]
        return [texts if n == self._field_column else column for n, column in enumerate(output)]

    def places(self, output: list[list[Any]]) -> Places:
        """Sort the rows of a chunk by label: returns which belong to each, and counts them."""
        places: list[list[int]] = [[] for _ in self.labels]
        number, other = self._numbers.get, len(self._numbers)
        for row, value in enumerate(output[self._field_column]):
            places[number(value, other) if type(value) is str else other].append(row)
        for label, rows in enumerate(places):
            self.rows[label] += len(rows)
        return places

    def write(self, output: list[list[Any]], places: Places) -> None:
        """Append the rows of a chunk to the workbooks of their labels, if there are any; `places`: as `places` returned
        them."""
        for book, rows in zip(self._books, places, strict=bool(self._books)):
            if rows and book.main is not None:
                book.main.write(picked_rows(output, rows), len(rows))

    def close(self, findings: Findings) -> None:
        """Complete the workbooks, and report the rows whose value is not declared."""
        for book in self._books:
            book.finish((), None)
        if self.rows[-1]:
            findings.add(
                "split_other", "warning",
                f"the value of {self._field} is blank or not one of allowed in {self.rows[-1]} rows: "
                f"they are in normalized-{OTHER}",
                field=self._field, rule="output.split_by",
            )  # fmt: skip


def picked_rows(columns: Sequence[list[Any]], rows: Sequence[int]) -> list[list[Any]]:
    """Return some rows of a chunk, by their indexes, as one list per column."""
    return [[values[row] for row in rows] for values in columns]
