"""artifact.json: every decision, with its place and reasons. Never a cell's value."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from runner.engine.common import a1
from runner.engine.common.fields import NUMERIC, Field
from runner.engine.common.findings import Findings
from runner.engine.contract import TIMED_PASSES, Json, Order, OutputName
from runner.engine.corrections.corrected import Corrections
from runner.engine.deciding.answers import Answers
from runner.engine.document_types import DriftPart, ExtraSheet, SheetHead
from runner.engine.mapping.evidence import listed
from runner.engine.mapping.output_layout import OutColumn
from runner.engine.mapping.supplying import list_supplied_cells
from runner.engine.mapping.table_mapping import MappedTable, header_is_certain
from runner.engine.memory.drift import MAX_COLUMNS, Shares
from runner.engine.options import JobOptions
from runner.engine.protocol import open_output
from runner.engine.rejects.set_aside import rows_with_errors
from runner.engine.rules.load import RulePackage
from runner.engine.surveying.ledger import OUTSIDE, SheetBooks, TableBooks
from runner.engine.surveying.surveyed_input import SurveyedInput
from runner.engine.tables.sources import SourceTable
from runner.engine.transforming.stream import TableStream
from runner.engine.writing import NormalizedBook

VERSION: Final = 1
ENGINE_VERSION: Final = "0.1.0"
_LONG_LISTS: Final = ("rows", "shared", "beside")  # lists of a sheet that may be long: one line for each item
_MOST_EMPTY_FIELDS: Final = 50  # that the summary names
_MOST_SHAPES: Final = 50  # tables whose headers are kept for the sender's next drop


class Artifact:
    """Collects the decisions of the passes and writes them at the end.

    It is made after pass 2; `streamed` adds what passes 3 to 5 made of the rows, and until then counts are 0.
    """

    def __init__(
        self,
        order: Order,
        options: JobOptions,
        *,
        package: RulePackage,
        sources: list[SurveyedInput],
        tables: list[MappedTable],
        columns: list[OutColumn],
        findings: Findings,
        corrections: Corrections | None = None,
    ) -> None:
        """Collect what a job decided; `streamed` adds what became of the rows."""
        self._order = order
        self._corrections = corrections
        self._package = package
        self._sources = sources
        self._tables = {t.source.id: t for t in tables}
        self.columns = columns
        self._findings = findings
        self._streams: list[TableStream] = []
        self._sheets: list[tuple[str, int]] = []  # of the output: name, rows
        self._rows = 0  # of the output
        self._split_by = options.output.split
        self._split_rows: list[int] | None = None  # rows of each label of the split
        self._rejects: int | None = None  # rows of rejects.xlsx; None: nobody asked for it
        self.profile: Mapping[str, object] | None = None  # the shape of this drop, for drift; set by the job
        self.drift: DriftPart | None = None  # how it differs from the last one; set by the job
        self._withheld = ""  # why there is no output though rows were read
        self._extra: list[ExtraSheet] = []  # of the output: sheets beside the data
        self._redact = options.redact_headers
        self._is_sorted = bool(options.rows.sort)

    @property
    def shares(self) -> dict[str, Shares]:
        """How full and how well typed the columns of each table are, by the table's id."""
        return {stream.table_id: stream.shares for stream in self._streams}

    @property
    def rows(self) -> int:
        """How many rows of the inputs are in the output."""
        return sum(s.source_rows for s in self._streams)

    @property
    def rows_written(self) -> int:
        """How many rows the output has; a row of the inputs may have become several."""
        return self._rows

    def shapes(self, answers: Answers) -> Json:
        """Return each table's headers and what was decided about them; a decision or `ade learn` puts them into a
        memory."""
        tables: list[Json] = []
        columns_left = MAX_COLUMNS
        for source in self._sources:
            for table in (*source.tables, *source.skipped):
                columns_left -= len(table.table.columns)
                if columns_left >= 0:
                    tables += [shape for shape in self._shapes(table, source, answers) if shape not in tables]
        sender = {} if self._order.sender is None else {"sender": self._order.sender}
        decided = [] if self._redact else answers.applied(self._tables)
        return {**sender, "tables": tables[:_MOST_SHAPES], **({"answers": decided} if decided else {})}

    def _shapes(self, table: SourceTable, source: SurveyedInput, answers: Answers) -> Iterator[Json]:
        """Yield what a memory stores about a table: up to one entry about its sheet, and one about its header."""
        place, rows = table.place, table.table.header_rows
        decided: Json = {"decided": True} if answers.is_touched(table) else {}
        sheet: Json = {"sheet": source.label(place.sheet), "header_rows": list(rows)}
        left_out = table in source.skipped and bool(table.skipped)
        cut = answers.cut(place.input, place.sheet)
        has_decided_use = left_out or answers.skips(place.input, place.sheet) is not None
        if (has_decided_use and not source.is_single) or cut is not None:
            about_sheet: Json = {"left_out": left_out, **({"cut": cut} if cut is not None else {})}
            yield {**sheet, "header_rows": [], "headers": [], **about_sheet, **decided}
        if left_out or self._redact:
            return
        named: Json = {"named": True} if answers.names_header(place.input, place.sheet, rows) else {}
        headers = self._headers(table) if rows else self._headless(table, source, named=bool(named))
        if headers:
            yield {**sheet, **headers, **named, **decided}

    def _headless(self, table: SourceTable, source: SurveyedInput, *, named: bool) -> Json:
        """Return the fields of a table that is known to have no header; empty if it is only supposed to have none.

        `named`: a person has said so; the shape of an earlier drop says it too.
        """
        mapped = self._tables.get(table.id)
        is_known = named or table.table.shape is not None
        if mapped is None or not is_known:
            return {}
        fields = {mapped.source.columns[c.position].index: c.field for c in mapped.choices}
        columns = table.table.columns
        return {
            "headers": [""] * len(columns),
            "file": source.letters,
            "fields": [fields.get(c.index) for c in columns],
        }

    def _headers(self, table: SourceTable) -> Json:
        """Return the headers of a table; empty if they may be something else, such as a record."""
        mapped = self._tables.get(table.id)
        is_certain = header_is_certain(table) if mapped is None else mapped.header_is_certain
        if not is_certain:
            return {}
        altered = {table.columns[n].index for n in table.altered}
        return {"headers": ["" if c.generated or c.index in altered else c.name for c in table.table.columns]}

    def withhold(self, why: str) -> None:
        """Describe a job that ends without an output after all: why, and no sheets and rows."""
        self._withheld, self._rows, self._sheets, self._extra, self._split_rows = why, 0, [], [], None

    def streamed(
        self, streams: list[TableStream], workbook: NormalizedBook, rejects: int | None, split_rows: list[int] | None
    ) -> None:
        """Add what passes 3 to 5 made of the rows; `rejects`: rows of rejects.xlsx, None if nobody asked for it.

        `split_rows`: rows of each label of the split, None if there is none.
        """
        self._split_rows = split_rows
        self._streams = streams
        self._rejects = rejects
        self._sheets = workbook.sheets()
        self._extra = workbook.extra
        self._rows = sum(stream.rows for stream in streams)

    def summary(self) -> Json:
        """Count what the job did, as artifact.json and result.json have it."""
        mapped = {name for table in self._tables.values() for name, _ in table.read_as()}
        unmapped = sum(table.is_unused(choice) for table in self._tables.values() for choice in table.choices)
        books = [sheet_books for source in self._sources for sheet_books in source.books.values()]
        left_out = _left_out_rows(books)
        rows_used = sum(table.rows_out for sheet_books in books for table in sheet_books.tables)
        is_unpivoted = any(table.source.spread for table in self._tables.values())
        return {
            "tables": len(self._tables),
            "rows_in": rows_used + sum(left_out.values()),
            **({"rows_used": rows_used} if is_unpivoted else {}),
            "rows_out": self._rows,
            "left_out": left_out,
            "sheets_out": len(self._sheets),
            "columns_mapped": len(mapped),
            "columns_unmapped": unmapped,
            "findings": self._findings.by_severity(),
            "rows_with_errors": rows_with_errors(self._sources),
            **({"empty_fields": empty} if (empty := self._empty_fields()) else {}),
        }

    def _empty_fields(self) -> list[str]:
        """Return the first declared fields that have no value in any row of any table."""
        valueless_by_table = [stream.valueless for stream in self._streams if stream.records]
        if not valueless_by_table:
            return []
        first, *others = valueless_by_table
        return [name for name in first if all(name in valueless for valueless in others)][:_MOST_EMPTY_FIELDS]

    def blanks_by_limited_field(self) -> dict[str, int]:
        """Return how many blanks all tables have in the fields whose `max_blank_share` limits them; `too_blank` judges
        it."""
        counts: dict[str, int] = {}
        for stream in self._streams:
            for name, count in stream.blanks_by_limited_field.items():
                counts[name] = counts.get(name, 0) + count
        return counts

    @property
    def records(self) -> int:
        """How many rows of data no filter left out, with errors or without."""
        return sum(stream.records for stream in self._streams)

    def write(self, times: dict[str, float], summary: Json) -> None:
        """Write artifact.json if the order asks for it."""
        if file := open_output(self._order, OutputName.ARTIFACT):
            sheets = [self._sheet(source, head) for source in self._sources for head in source.sheets]
            file.write(_as_json(self.document(times, summary), sheets).encode(errors="replace"))
            file.close()

    def document(self, times: dict[str, float], summary: Json) -> Json:
        """Make the artifact without its sheets, which are written in another form; `times`: seconds of each pass."""
        order = self._order
        return {
            "artifact_version": VERSION,
            "job": order.job.encode() | {"params": order.params},
            "engine": {
                "name": "ade-drop",
                "version": ENGINE_VERSION,
                "readers": sorted({s.reader for s in self._sources}),
                "sandbox": order.sandbox.encode(),
            },
            "config": {
                "digest": order.config_digest,
                "rules": self._package.files,
                **({"overlays": [overlay.encode() for overlay in order.overlays]} if order.overlays else {}),
            },
            **({"decision": order.decision.facts()} if order.decision is not None else {}),
            "inputs": [self._input(s) for s in self._sources]
            + [i.facts.encode() for i in (*order.auxiliary, *order.corrections)],
            "memories": [m.facts() for m in order.memories],
            "sheets": [],
            "readings": [r.as_dict() for r in self._findings.readings],
            "mapping": [m for t in self._tables.values() for m in self._mapping(t)],
            "transforms": [t for s in self._streams for t in self._transforms(s)],
            "validation": self._validation(),
            "output": self._output(),
            "pass_history": self._passes(times),
            "summary": summary,
            **({"mends": self._corrections.as_dict()} if self._corrections else {}),
            **({"profile": self.profile} if self.profile else {}),
            **({"drift": self.drift} if self.drift else {}),
        }

    def _input(self, source: SurveyedInput) -> Json:
        """Return a primary input as artifact.json has it."""
        file = source.file
        return {
            "role": "primary",
            "name": file.name,
            "sha256": file.sha256,
            "size": file.size,
            "format": source.format,
            "reader": source.reader,
            "notes": source.notes,
        }

    def _sheet(self, source: SurveyedInput, head: SheetHead) -> Json:
        """Return a sheet as artifact.json has it: its tables, and every row that was read."""
        books = source.books.get(head["index"])
        if books is None:
            return {
                "input": source.file.name,
                **head,
                "tables": [],
                "rows_read": 0,
                "rows": [],
                "shared": [],
                "beside": [],
            }
        return {
            "input": source.file.name,
            **head,
            "tables": [self._table(table, source) for table in books.tables],
            "rows_read": books.rows_read,
            "rows": [entry.as_dict() for entry in books.entries()],
            "shared": [
                {"from": entry.first, "to": entry.last, "tables": int(entry.kind), "rows": entry.rows}
                for entry in books.shared
            ],
            "beside": [{"range": stray.area, "cells": stray.cells} for stray in books.beside],
        }

    def _table(self, books: TableBooks, source: SurveyedInput) -> Json:
        """Return a table as artifact.json has it, and why it is not used if it is not."""
        table = books.source
        skipped = self._why_skipped(books, source)
        return {
            "id": table.id,
            "ref": books.ref,
            **table.table.as_dict(),
            "rows_in": books.rows_in,
            "rows_out": books.rows_out,
            **self._rows_and_sources(table, books),
            "left_out": books.left_out,
            "left_out_columns": self._left_out_columns(table),
            **({"skipped": skipped} if skipped else {}),
        }

    def _why_skipped(self, books: TableBooks, source: SurveyedInput) -> str:
        """Return why a table is not in the output; empty if it is."""
        table = books.source
        if table in source.skipped:
            return table.skipped or "a hook skipped it"
        if table.id not in self._tables:
            without_reason = "no column matches a declared field" if table.has_data else "it has no data rows"
            return table.skipped or without_reason
        if self._withheld:
            return self._withheld
        return "no column of any table matches a declared field" if books.skipped else ""

    def _stream_of(self, table: SourceTable) -> TableStream | None:
        """Return what ran a table's rows through the passes; None if it is not in use."""
        return next((stream for stream in self._streams if stream.table_id == table.id), None)

    def _rows_and_sources(self, table: SourceTable, books: TableBooks) -> Json:
        """Return how many rows a table's columns became, and which cells outside of it are values of its fields."""
        mapped, out = self._tables.get(table.id), Json()
        if mapped is None:
            return out
        if table.spread and not books.skipped:
            stream = self._stream_of(table)
            rows, partly = (0, 0) if stream is None else (stream.rows, stream.partly)
            left = {"left_out": partly} if partly else {}
            letters = [a1.letters(spread_column.index) for spread_column in table.spread]
            out["unpivot"] = {
                "columns": len(letters), "letters": letters, "rows": rows, "blanks": table.blanks, **left,
            }  # fmt: skip
        if cells := list_supplied_cells(mapped):
            out["sources"] = cells
        return out

    def _left_out_columns(self, table: SourceTable) -> list[dict[str, str]]:
        """List the columns with values that are not in the output, by letters, and why: hidden or unmapped."""
        left_out = [(column.index, "hidden") for column in table.hidden_columns]
        stream = self._stream_of(table)
        if stream is not None:
            left_out += [
                (table.columns[position].index, "unmapped")
                for position, cells in stream.cells_left_out.items()
                if cells
            ]
        return [{"column": a1.letters(index), "why": why} for index, why in sorted(left_out)]

    def _mapping(self, table: MappedTable) -> list[Json]:
        """Return what each column of a table became, and why; a header that may be a value or must not be shown is
        None."""
        rows = table.source.table.header_rows
        stream = self._stream_of(table.source)
        dropped = {} if stream is None else stream.cells_left_out
        shown = frozenset() if self._redact else table.shown_headers()
        columns: list[Json] = []
        for choice in table.choices:
            column = table.source.columns[choice.position]
            header = column.name if choice.position in shown else None
            columns.append(
                {
                    "table": table.source.id,
                    "column": a1.letters(column.index),
                    "header": header,
                    "header_cell": a1.cell(rows[-1], column.index) if rows else None,
                    "target": choice.field,
                    "probability": choice.probability,
                    "contributors": listed(choice.contributors, redact=self._redact),
                    "runners_up": [
                        {
                            "field": other.field,
                            "probability": other.probability,
                            "contributors": listed(other.contributors, redact=self._redact),
                        }
                        for other in choice.runners_up
                    ],
                    "note": choice.note,
                    **({"dropped_cells": dropped[choice.position]} if choice.position in dropped else {}),
                }
            )
        return columns

    def _transforms(self, stream: TableStream) -> list[Json]:
        """Return how the values of each field of a table were converted; fields without values are left out.

        `changed`, `total` and the like of the stream are aligned with the columns of the output.
        """
        transforms: list[Json] = []
        for index, column in enumerate(self.columns):
            field, converter = column.field, stream.converters[index]
            if field is None or converter is None:
                continue
            transform: Json = {
                "table": stream.table_id,
                "field": field.name,
                "type": field.type,
                "changed": stream.changed[index],
                "total": stream.total[index],
                "rule": self._rule_of(field),
                "decimal": converter.decimal if field.type in NUMERIC else None,
                "day_first": converter.day_first if field.type in ("date", "datetime") else None,
            }
            if index in stream.filled_down:
                transform["filled_down"] = stream.filled_down[index].cells
            if converter.dots_day_first not in (None, converter.day_first):
                transform["dots_day_first"] = converter.dots_day_first
            transforms.append(transform)
        return transforms

    def _rule_of(self, field: Field) -> str | None:
        """Name what made a field's values: a Python rule, or its source in the manifest; None: its column alone."""
        rule = self._package.transforms.get(field.name)
        if rule is not None:
            return rule.name
        return None if field.source is None else f"from:{field.source.kind}"

    def _validation(self) -> Json:
        """Return the findings and their counts."""
        findings = self._findings
        return {
            "findings": [finding.as_dict() for finding in findings.listed],
            "kept": len(findings.listed),
            "total": sum(findings.totals.values()),
            "by_severity": findings.by_severity(),
            "by_code": findings.by_code(),
            "totals": [
                {"code": code, "severity": severity, "field": field, "count": count}
                for (code, severity, field), count in sorted(
                    findings.totals.items(), key=lambda total: (total[0][0], total[0][1], total[0][2] or "")
                )
            ],
        }

    def _split(self) -> Json:
        """Return the rows in the files of each label; nothing if the output is not split."""
        split = self._split_by
        if split is None or self._split_rows is None:
            return {}
        return {"split": {"field": split.field, "rows": dict(zip(split.labels, self._split_rows, strict=True))}}

    def _output(self) -> Json:
        """Return the sheets and columns of the output."""
        columns = [
            {
                "column": a1.letters(number),
                "header": column.header if column.field is not None or (column.certain and not self._redact) else None,
                "field": column.field.name if column.field else None,
                "type": column.field.type if column.field else None,
                **({"added": column.added} if column.added else {}),
                **({"unique": True} if column.field is not None and column.field.unique else {}),
                **({"label": column.field.label} if column.field is not None and column.field.label else {}),
            }
            for number, column in enumerate(self.columns, 1)
        ]
        return {
            "sheets": [name for name, _ in self._sheets],
            "sheet_rows": [rows for _, rows in self._sheets],
            "rows": self._rows,
            "columns": columns,
            "extra_sheets": self._extra,
            **({"sorted": True} if self._is_sorted else {}),
            **({} if self._rejects is None else {"rejects": {"rows": self._rejects}}),
            **self._split(),
        }

    def _passes(self, times: dict[str, float]) -> list[Json]:
        """Return how long each pass took, and the rows of those that write some."""
        return [
            {"pass": name, "seconds": round(times.get(name, 0.0), 6), "rows": self._rows if index > 1 else None}
            for index, name in enumerate(TIMED_PASSES)
        ]


def _left_out_rows(books: Iterable[SheetBooks]) -> dict[str, int]:
    """Count the rows of all sheets that are not in the output, by kind."""
    left_out: dict[str, int] = {}
    for sheet in books:
        for table in sheet.tables:
            for kind, count in table.left_out.items():
                left_out[kind] = left_out.get(kind, 0) + count
        if sheet.outside:
            left_out[OUTSIDE] = left_out.get(OUTSIDE, 0) + sum(entry.rows for entry in sheet.outside)
    return left_out


def _as_json(document: Json, sheets: list[Json]) -> str:
    """Write the artifact as readable JSON, with `sheets` in place of the document's own.

    Each run of rows of a sheet is on one line, because there may be many.
    """
    sheet_texts = [
        _write_object(
            {key: _write_lines(value) if key in _LONG_LISTS else _write_indented(value) for key, value in sheet.items()}
        )
        for sheet in sheets
    ]
    texts = {key: _write_indented(value) for key, value in document.items() if key != "sheets"}
    all_sheets = f"[{', '.join(sheet_texts)}]"
    return _write_object({key: all_sheets if key == "sheets" else texts[key] for key in document}) + "\n"


def _write_indented(value: object) -> str:
    """Return a value as indented JSON: what json.dumps writes with indent=1, whose encoder for that is three times as
    slow."""
    return _indented(value, "\n")


def _indented(value: object, margin: str) -> str:
    """Write a value as JSON, each line one blank further in than what it is part of."""
    if isinstance(value, dict) and value:
        inner = margin + " "
        pairs = [f"{_TEXT(str(key))}: {_indented(item, inner)}" for key, item in value.items()]
        return "{" + inner + ("," + inner).join(pairs) + margin + "}"
    if isinstance(value, (list, tuple)) and value:
        inner = margin + " "
        return "[" + inner + ("," + inner).join([_indented(item, inner) for item in value]) + margin + "]"
    if isinstance(value, str):
        return _TEXT(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return repr(value) if type(value) is int else _SCALAR(value)


_SCALAR: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_TEXT: Final = json.encoder.encode_basestring
_WORDS: Final[Mapping[Any, str]] = {True: "true", False: "false", None: "null"}


def _write_lines(values: Any) -> str:
    """Return a list as JSON with one line for each item."""
    return "[" + ",".join("\n" + json.dumps(value, separators=(",", ":")) for value in values) + "]"


def _write_object(texts: dict[str, str]) -> str:
    """Return an object as JSON, of keys and texts that are JSON already."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in texts.items()) + "\n}"
