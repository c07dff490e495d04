"""Rows with errors, set aside for their sender.

The box describes them line by line (`rejects.jsonl`): the sender's own rows with their values and looks, the cells that
are wrong, and what is wrong with them. `rejects.xlsx` is made from that description where outputs are verified
(`verifying/rejects_book.py`), so nothing that ran beside rules ever writes a workbook that people open.
"""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from math import isfinite
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.findings import FindingText
from runner.engine.common.rowsets import RowSet
from runner.engine.contract import EndCode, Json
from runner.engine.options import JobOptions
from runner.engine.protocol import EngineStop
from runner.engine.reading import CellError, NoCachedValue, Shown
from runner.engine.reading.spool import SpooledSheet
from runner.engine.surveying.surveyed_input import SurveyedInput
from runner.engine.tables.sources import SourceTable
from runner.engine.tables.supplied import VALUE
from runner.engine.values.checking import CellProblem
from runner.engine.writing.parts import FORMATS, MAX_TEXT, cut, holdable, spelled, too_long

if TYPE_CHECKING:
    from runner.engine.rejects.appearance import Appearance, SheetAppearance

MAX_RUNS: Final = 300_000  # runs of rows to split off; an artifact has room for about twice as many
MARKED_ROWS: Final = 20_000  # rows whose cells are marked one by one; those beyond say to see the report
MAX_SHEET_ROWS: Final = 1_000_000  # of rejects.xlsx; further rows are on another sheet
MAX_STYLES: Final = 4_000  # cells with further looks are plain
MAX_COLUMNS: Final = 16_384 - 2  # two columns are added
_MOST_FROZEN: Final = 12  # rows of titles and headers that stay in sight
_MOST_MERGED: Final = 1000  # merged areas of the header that are kept
_ROWS_MEASURED: Final = 200  # rows by which the widths of columns are set where the sender set none
_NARROWEST, _WIDEST = 8, 46  # characters
_SEEN_WIDTH: Final = 2.0  # a column that is narrower is as good as hidden
_MOST_ALLOWED: Final = 12  # allowed values that a comment lists
_LONGEST_TODO: Final = 1_000  # characters of what to do
_LONGEST_MARK: Final = 400
_SEEN_ON_BLANKS: Final = frozenset(["fill", "border", "format", "align"])  # parts of a look that a blank cell has, too
_TEXT_FORMATS: Final = frozenset({"csv", "tsv", "html"})
_TEXT_STYLE: Final["Appearance"] = {"format": "@"}
_UNMARKED: Final = "see artifact.json or report.html for what is wrong with this row"


class RowMarks(NamedTuple):
    """What is wrong with a row."""

    cells: list[tuple[int, str]]  # its columns that are wrong, each with a comment
    todo: str  # what to do about the row


class ErrorColumns(NamedTuple):
    """Where a sheet has errors."""

    columns: set[int]
    choices: dict[int, tuple[str, ...]]  # what is allowed in the columns that hold something else


class RowErrors:
    """Remembers what is wrong with the rows of a job, up to a limit, and counts them on their tables."""

    def __init__(self, fields: Iterable[Field], *, with_messages: bool) -> None:
        """Remember nothing yet. `with_messages`: somebody will read what is wrong; else rows are only counted."""
        self._fields = {field.name: field for field in fields}
        self._with_messages = with_messages
        self._rows_remembered = 0  # rows that are remembered
        self._errors: dict[str, dict[int, list[CellProblem]]] = {}  # by table and row

    def add(self, table: SourceTable, errors: Mapping[int, list[CellProblem]]) -> None:
        """Count and remember the rows of a chunk that have errors, by number; chunks of a table come from top to
        bottom."""
        table.rejected.add(sorted(errors))
        if self._with_messages and self._rows_remembered < MARKED_ROWS:
            self._errors.setdefault(table.id, {}).update(errors)
            self._rows_remembered += len(errors)

    def marks(self, tables: Sequence[SourceTable], row: int) -> RowMarks:
        """Say which cells of a row are wrong, and what to do about the row; of a row that is not remembered, to see the
        report. `tables`: all of its sheet."""
        cells: dict[int, list[str]] = {}
        todo: list[str] = []
        for table in tables:
            headers = {c.index: c.name for c in table.columns} | {c.index: c.name for c in table.spread}
            for column, field, code, problem_text in self._errors.get(table.id, {}).get(row, ()):
                place_name = headers.get(column or 0) or field
                message = problem_text + self._hint_at_remedy(field, code)
                todo_line = f"{place_name}: {message}" if place_name else message
                if todo_line not in todo:
                    todo.append(todo_line)
                if column is not None:
                    cells.setdefault(column, []).append(message)
        marks = [(column, _cut_text("\n".join(texts), _LONGEST_MARK)) for column, texts in sorted(cells.items())]
        return RowMarks(marks, _cut_text("\n".join(todo), _LONGEST_TODO) or _UNMARKED)

    def places(self, tables: Iterable[SourceTable]) -> ErrorColumns | None:
        """Return the columns of a sheet that have errors, and what is allowed in those that hold something else.

        None where not all rows with errors were remembered.
        """
        columns_with_errors: set[int] = set()
        choices: dict[int, tuple[str, ...]] = {}
        for table in tables:
            problems_by_row = self._errors.get(table.id, {})
            if len(problems_by_row) < table.rejected.count:
                return None
            for column, name, code, _ in chain.from_iterable(problems_by_row.values()):
                if column is not None:
                    columns_with_errors.add(column)
                    field = self._fields.get(name or "")
                    if code == "not_allowed" and field is not None and field.allowed:
                        allowed = tuple(map(str, field.allowed))
                        # Two tables may want different things of a column.
                        choices[column] = allowed if choices.get(column, allowed) == allowed else ()
        return ErrorColumns(columns_with_errors, choices)

    def typed_columns(self, table: SourceTable, mapped: Mapping[str, int]) -> set[int]:
        """Return the columns of a table's sheet whose fields are numbers, dates or the like; `mapped`: field -> the
        position of its column in the table."""
        indexes = {at: [column.index] for at, column in enumerate(table.columns)}
        if table.spread:
            indexes[table.place_of(VALUE)] = [spread_column.index for spread_column in table.spread]
        fields = [(self._fields.get(name), indexes[at]) for name, at in mapped.items() if at in indexes]
        typed = [columns for field, columns in fields if field and FORMATS.get(field.type) != _TEXT_STYLE["format"]]
        return set(chain.from_iterable(typed))

    def _hint_at_remedy(self, name: str | None, code: str) -> str:
        """Say what would be right in a cell, as far as the manifest says it; empty if it does not."""
        field = self._fields.get(name or "")
        if field is None:
            return ""
        if code == "not_allowed" and field.allowed:
            more = ", …" if len(field.allowed) > _MOST_ALLOWED else ""
            return f"; allowed: {', '.join(map(str, field.allowed[:_MOST_ALLOWED]))}{more}"
        if code == "type_error" and field.formats:
            return f"; formats: {', '.join(field.formats[:_MOST_ALLOWED])}"
        return ""


class RejectsDescription:
    """Writes the description of rejected rows (`rejects.jsonl`), input by input. Without a file it writes nothing."""

    def __init__(
        self, file: IO[bytes] | None, errors: RowErrors, mapped: Mapping[str, Mapping[str, int]] | None = None
    ) -> None:
        """Write to `file`, or nowhere. `mapped`: for each table by its id, the fields and the places of their columns
        in it."""
        self._file = file
        self._errors = errors
        self._mapped = mapped or {}
        self.rows = 0  # described so far
        self._style_numbers: dict[str, int] = {}  # a look as JSON -> its number
        self._numbered_styles: dict[int, tuple[Appearance, int | None]] = {}  # looks by identity, with their numbers

    def add(self, number: int, source: SurveyedInput) -> None:
        """Describe the rejected rows of an input, the `number`th of its job; it is open for reading again."""
        if self._file is None:
            return
        for index in source.spools:
            tables = [t for t in source.tables if t.sheet.index == index and t.rejected]
            if tables:
                self._describe_sheet(number, index, source, tables)

    def close(self) -> None:
        """End the description, if it has any rows."""
        if self._file is not None and self.rows:
            self._write_line({"end": True, "rows": self.rows})

    def _describe_sheet(self, number: int, index: int, source: SurveyedInput, tables: list[SourceTable]) -> None:
        """Describe the rejected rows of one sheet, with the header and titles of its tables."""
        spool = source.spools[index]
        rejected = RowSet()
        for table in tables:
            rejected = rejected | table.rejected
        heads = {row: "top" for t in tables for row in (*t.table.titles, *t.table.header_rows)}
        heads |= {t.table.header_rows[-1]: "key" for t in tables if t.table.header_rows}
        columns = _count_columns(spool, source)
        appearances = self._sheet_appearance(source, index, rejected, heads)
        layout, places = spool.layout(), self._errors.places(tables)
        known_widths = appearances.widths or _measure_widths(spool, rejected | RowSet.of(heads), rejected)
        columns_with_errors = places.columns if places else range(columns + 1)
        widths = [
            [column, width]
            for column, width in sorted(known_widths.items())
            if column <= columns and (width >= _SEEN_WIDTH or column not in columns_with_errors)
        ]
        hidden = [c for c in sorted(layout.hidden_columns) if c <= columns and c not in columns_with_errors]
        sheet = {
            "sheet": spool.name, "input": number, "index": index, "columns": columns, "widths": widths,
            **_freeze_head(heads, rejected), "across": min(layout.frozen_columns, columns, _MOST_FROZEN),
            "hidden": hidden, "view": appearances.view,
        }  # fmt: skip
        texts = self._columns_as_text(source, tables, columns)
        merged = [list(area) for area in layout.merged if all(row in heads for row in range(area[0], area[2] + 1))]
        for part in _split_by_sheet_size(rejected):
            self._write_line(sheet)
            for row, values in _read_rows(spool, part | RowSet.of(heads)):
                blanks = [None] * (columns - len(values) if appearances.rows or texts else 0)  # a table's grid goes on
                self._describe_row(row, heads.get(row, "row"), values + blanks, appearances, tables, texts=texts)
            choices = sorted(places.choices.items()) if places else []
            self._write_line({"merged": merged[:_MOST_MERGED], "choices": choices})

    def _columns_as_text(self, source: SurveyedInput, tables: list[SourceTable], columns: int) -> set[int]:
        """Return the columns of a text file to write as texts: a program that takes an id for a number drops its
        zeros."""
        if source.format not in _TEXT_FORMATS:
            return set()
        typed = (self._errors.typed_columns(t, self._mapped.get(t.id, {})) for t in tables)
        return {*range(1, columns + 1)}.difference(*typed)

    def _sheet_appearance(
        self, source: SurveyedInput, index: int, rejected: RowSet, heads: Mapping[int, str]
    ) -> "SheetAppearance":
        """Read how the cells of the rejected rows look; empty for formats without looks."""
        from runner.engine.rejects.appearance import SheetAppearance, sheet_appearance  # noqa: PLC0415  # few jobs need it

        if source.format not in ("xlsx", "xlsm"):
            return SheetAppearance()
        first = next(iter(rejected))[0]
        rows = {*heads}
        for count, row in enumerate(rejected.numbers()):
            if count >= MARKED_ROWS:
                break
            rows.add(row)
        with source.book() as book:
            return sheet_appearance(book.sheets[index], rows, first)

    def _describe_row(
        self,
        row: int,
        kind: str,
        values: Sequence[Any],
        appearances: "SheetAppearance",
        tables: Sequence[SourceTable],
        *,
        texts: Collection[int],
    ) -> None:
        """Describe one row: its cells with their looks, and for a record what is wrong with it."""
        cells = []
        for column, value in enumerate(values, 1):
            appearance = appearances.of(row, column)
            encoded = _as_json(value, styled=appearance is not None)
            if appearance is None and encoded is not None:
                appearance = appearances.of_unsearched(row, column)
            if kind == "row" and column in texts:
                appearance = _TEXT_STYLE
            if encoded is not None or (
                appearance is not None and (kind != "row" or not _SEEN_ON_BLANKS.isdisjoint(appearance))
            ):
                style = None if appearance is None else self._number_style(appearance)
                cells.append([column, encoded] if style is None else [column, encoded, style])
        line: Json = {"row": row, "kind": kind, "cells": cells}
        if row in appearances.heights:
            line["height"] = appearances.heights[row]
        if kind == "row":
            self.rows += 1
            marks, todo = self._errors.marks(tables, row)
            line |= {"marks": marks, "do": todo}
        self._write_line(line)

    def _number_style(self, appearance: "Appearance") -> int | None:
        """Return the number of a look, which is described when it is first used; None once there are too many."""
        if id(appearance) not in self._numbered_styles:
            text = json.dumps(appearance, sort_keys=True)
            if text not in self._style_numbers and len(self._style_numbers) < MAX_STYLES:
                self._style_numbers[text] = len(self._style_numbers)
                self._write_line({"style": appearance})
            self._numbered_styles[id(appearance)] = appearance, self._style_numbers.get(text)
        return self._numbered_styles[id(appearance)][1]

    def _write_line(self, line: Mapping[str, object]) -> None:
        """Write one line of the description, if there is a file."""
        if self._file is not None:
            text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            self._file.write(text.encode(errors="replace") + b"\n")


def rows_with_errors(sources: Iterable[SurveyedInput]) -> int:
    """Count the rows of data that have errors; a row that tables share counts for each of them."""
    return sum(table.rows_with_errors for source in sources for table in source.tables)


def split_off_rows(sources: Iterable[SurveyedInput]) -> int:
    """Count the rows of data that are not written because they have errors, counted as above."""
    return sum(table.split_off.count for source in sources for table in source.tables)


def split_off_runs(sources: Iterable[SurveyedInput]) -> int:
    """Count the runs of such rows."""
    return sum(len(table.split_off) for source in sources for table in source.tables)


def refusal(options: JobOptions, bad: int, rows: int, runs: int = 0) -> EngineStop | None:
    """Decide whether a job has more rows with errors than its manifest accepts: returns its end, None where it accepts
    them.

    `bad`: rows with errors, among `rows`; `runs`: of rows that are split off, because the artifact lists every one.
    """
    if not bad:
        return None
    share = bad / rows if rows else 1.0
    bad_share = f"{bad:,} of {rows:,} rows have errors ({share:.2%})"
    where: dict[str, str] = {"remedy": "correct the rows, which rejects.xlsx lists if output.rejects is true"}
    if options.on_error == "reject":
        what = FindingText(f"{bad_share}; on_error is reject", "limit", count=bad, rows=rows, limit=0)
        return EngineStop(EndCode.ROWS_REJECTED, what, rule="on_error", **where)
    if runs > MAX_RUNS:
        places = f"{bad_share}, in more than {MAX_RUNS:,} places; that is too many to split off"
        return EngineStop(EndCode.ROWS_REJECTED, places, rule="on_error", **where)
    max_rate, max_rows = options.max_error_rate, options.max_rejected_rows
    if max_rate is not None and share > max_rate:
        most = most_within(max_rate, rows)
        what = FindingText(f"{bad_share}; max_error_rate is {max_rate}", "limit", count=bad, rows=rows, limit=most)
        return EngineStop(EndCode.ROWS_REJECTED, what, rule="max_error_rate", **where)
    if max_rows is not None and bad > max_rows:
        counts = {"count": bad, "rows": rows, "limit": max_rows}
        what = FindingText(f"{bad_share}; max_rejected_rows is {max_rows:,}", "limit", **counts)
        return EngineStop(EndCode.ROWS_REJECTED, what, rule="max_rejected_rows", **where)
    return None


def most_within(share: float, rows: int) -> int:
    """Return the largest number of `rows` that is at most a share of them; `rows` is not 0."""
    most = int(share * rows) + 1  # a product may be a little too small
    return most if most / rows <= share else most - 1


def too_blank(fields: Iterable[Field], blanks: Mapping[str, int], rows: int) -> EngineStop | None:
    """Decide whether a field has more blanks than its `max_blank_share`: returns the job's end, None if no field has.

    `blanks`: by field, as `Artifact.blanks_by_limited_field` counts them; `rows`: among how many.
    """
    for field in fields:
        blank, most = blanks.get(field.name, 0), field.max_blank_share
        if most is not None and rows and blank / rows > most:
            what = FindingText(
                f"{field.name} is blank in {blank:,} of {rows:,} rows ({blank / rows:.2%}); max_blank_share is {most}",
                "blank", count=blank, rows=rows, limit=most_within(most, rows),
            )  # fmt: skip
            remedy = "send the file with these values, or raise max_blank_share of the field"
            return EngineStop(EndCode.ROWS_REJECTED, what, rule="max_blank_share", field=field.name, remedy=remedy)
    return None


def _count_columns(spool: SpooledSheet, source: SurveyedInput) -> int:
    """Count the columns of a sheet; raises EngineStop if they are too many for rejects.xlsx."""
    columns = max((e.columns.bit_length() - 1 for e in spool.extents), default=1)
    if columns > MAX_COLUMNS:
        raise EngineStop(
            EndCode.INPUT_UNREADABLE,
            f"a sheet with rows to reject has {columns:,} columns; rejects.xlsx has room for {MAX_COLUMNS:,}",
            input=source.file.name, sheet=spool.name, reason="too_large",
            remedy='leave out "output": {"rejects": true}, or split the input by columns',
        )  # fmt: skip
    return columns


def _freeze_head(heads: Mapping[int, str], rejected: RowSet) -> Json:
    """Return as a part of the description whether a sheet has no header, and how many rows above its records stay in
    view. `heads`: its rows of titles and headers, by number."""
    headless = "key" not in heads.values()
    is_above = all(row < next(iter(rejected))[0] for row in heads) and len(heads) <= _MOST_FROZEN
    rows_above = 1 if headless else len(heads)
    return {"headless": headless, "frozen": rows_above if is_above else 0}


def _measure_widths(spool: SpooledSheet, rows: RowSet, rejected: RowSet) -> dict[int, float]:
    """Choose widths, in characters, for the columns of a sheet that has none of its own, by the texts of its first
    rows."""
    longest: dict[int, int] = {}
    for row, values in islice(_read_rows(spool, rows), _ROWS_MEASURED):
        if row not in rejected and sum(value is not None for value in values) == 1:
            continue  # a title may run across the columns
        for number, value in enumerate(values, 1):
            if value is not None:
                text = str(value)
                longest[number] = max(longest.get(number, 0), *map(len, text[:_WIDEST].split("\n")))
    return {number: float(max(_NARROWEST, characters + 2)) for number, characters in longest.items()}


def _split_by_sheet_size(rows: RowSet) -> Iterator[RowSet]:
    """Split rows into parts of at most `MAX_SHEET_ROWS`, one for each sheet that they take."""
    part = RowSet()
    for first_row, last_row in rows:
        start = first_row
        while start <= last_row:
            end = min(last_row, start + MAX_SHEET_ROWS - part.count - 1)
            part.add(range(start, end + 1))
            start = end + 1
            if part.count >= MAX_SHEET_ROWS:
                yield part
                part = RowSet()
    if part:
        yield part


def _read_rows(spool: SpooledSheet, rows: RowSet) -> Iterator[tuple[int, list[Any]]]:
    """Yield some rows of a sheet, each with its number."""
    for block in spool.some_blocks(lambda extent: rows.meets(extent.first, extent.last)):
        for row in rows.within(block.numbers[0], block.numbers[-1]).numbers():
            index = _index_of(block.numbers, row)
            if index is not None:
                yield row, [column[index] for column in block.columns]


def _index_of(numbers: Sequence[int], row: int) -> int | None:
    """Return the index of a row in ascending numbers; None if it is not among them."""
    index = bisect_left(numbers, row)
    return index if index < len(numbers) and numbers[index] == row else None


def _as_json(value: Any, *, styled: bool) -> Any:
    """Encode a cell's value: a text, a number, true or false, or an object for any other kind; None: blank."""
    kind = type(value)
    if value is None or kind is NoCachedValue:
        return None
    if kind is str:
        return (cut(value, MAX_TEXT) if too_long(value) else value) or None
    if kind is bool or (kind is int and holdable(value)):
        return value
    if kind is float:
        return value if isfinite(value) else {"error": "#NUM!"}
    if kind is Shown:
        return int(value) if styled and holdable(int(value)) else value.shown
    if kind is CellError:
        return {"error": str.__str__(value)}
    return _as_time(value) or _cut_text(spelled(value), MAX_TEXT // 2)


def _as_time(value: Any) -> Json | None:
    """Encode a date, a time or a duration; None for anything else, and for what a spreadsheet cannot hold."""
    kind = type(value)
    if kind is time:
        return {"time": value.replace(tzinfo=None).isoformat()}
    if kind not in (date, datetime, timedelta) or not holdable(value):
        return None
    if kind is timedelta:
        return {"seconds": value.total_seconds()}
    return {kind.__name__: value.replace(tzinfo=None).isoformat() if kind is datetime else value.isoformat()}


def _cut_text(text: str, most: int) -> str:
    """Cut a text to so many characters, with … at its end."""
    return text if len(text) <= most else text[: most - 1] + "…"
