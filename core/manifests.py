"""Manifest v1: which spreadsheets to process, and how."""

import codecs
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Discriminator, Field, Tag, field_validator, model_validator
from pydantic_core import to_json

from core.budget import Budget, read
from core.errors import ManifestInvalid, Problem
from core.expressions import KINDS, MAX_CHARACTERS, check_field, check_order, kind_of, typed
from core.fields import (
    FIELD_NAME,
    NUMERIC,
    ExpressionText,
    FieldNameText,
    FieldSpec,
    FieldType,
    FromColumns,
    FromExpression,
    FromLookup,
    Lookup,
    PlainValue,
    RowRule,
    Strict,
    VersionOne,
    fits,
)
from core.loads import IDENTIFIER, LOCAL, LoadRule
from core.patterns import MAX_STARS, count_stars
from core.wording import KIND_OF, shown, wrong

MAX_MANIFEST_BYTES = 1024 * 1024
MAX_NOTIFY = 10
MAX_SWEEP = 1000
MAX_PARAM_BYTES = 64 * 1024  # of one job's parameters
MAX_SWEEP_BYTES = 1024 * 1024  # of the parameters of all jobs that one input makes
# Manifests are parsed in a process that serves all tenants: these limits bound the cost of parsing one.
MAX_FIELDS = 2000
MAX_RULES = 2000
MAX_PATTERNS = 100
MAX_AUXILIARY = 100
MAX_TENANTS = 2000
MAX_RANGES = 200  # of one sheet
MAX_UNPIVOTED = 500  # names and patterns of columns that become rows
MAX_SPLIT_FILES = 100  # that output.split_by makes, of all formats
MAX_SPLIT_VALUE = 64  # characters of a value that files are named after
MAX_PATTERN_CHARACTERS = 20_000  # of all fields together
MAX_VALUES = 200_000  # of everything that a manifest holds
BUDGET = Budget(bytes=MAX_MANIFEST_BYTES, values=MAX_VALUES)
SHARED_PREFIX = "configs/_shared/"
DURATION = r"^[1-9][0-9]{0,4}[smhd]$"
RANGE = r"^[A-Z]{1,3}[1-9][0-9]{0,6}:[A-Z]{1,3}[1-9][0-9]{0,6}$"

Scalar = PlainValue | None
Pattern = Annotated[str, Field(min_length=1, max_length=500)]


def _inside(path: str, *at: int) -> str:
    """Keep a path below the folder it is relative to; `at` is its place in a list."""
    parts = path.split("/")
    if count_stars(path) > MAX_STARS:
        raise wrong(f"has {count_stars(path)} stars", f"at most {MAX_STARS} in one pattern", *at)
    if path.startswith("/") or "\\" in path or ".." in parts or "\0" in path:
        raise wrong(f"is {shown(path)}", "a path below its own folder: no leading '/', no '..', no backslash", *at)
    return path


class Auxiliary(Strict):
    """A lookup table: pinned when the job is created, never a trigger.

    `path` is relative to the manifest's folder, or a whole key: `inbox/<own tenant>/…`, `configs/<own tenant>/…`
    or `configs/_shared/…`.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
    path: Pattern
    required: bool = True

    @field_validator("path")
    @classmethod
    def _path_inside(cls, path: str) -> str:
        return _inside(path)


class Inputs(Strict):
    primary: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=MAX_PATTERNS)] = ("*.xlsx", "*.csv")
    auxiliary: Annotated[tuple[Auxiliary, ...], Field(max_length=MAX_AUXILIARY)] = ()
    per: Literal["file", "drop"] = "file"

    @field_validator("primary")
    @classmethod
    def _all_inside(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if pattern.split("/")[0] in ("inbox", "outputs", "configs", "work"):
                raise ValueError("patterns are relative to the manifest's own folder, not keys of the bucket")
        return tuple(_inside(pattern, n) for n, pattern in enumerate(patterns))

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        names = [a.name for a in self.auxiliary]
        if len(set(names)) != len(names):  # a hundred of them at most
            twice = next(n for n, name in enumerate(names) if name in names[:n])
            raise wrong(f"is {names[twice]} again", "names that differ from each other", "auxiliary", twice, "name")
        return self


class Mapping(Strict):
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.7
    unmapped: Literal["keep", "prefix", "drop"] = "keep"
    review: Literal["never", "unsure", "always"] = "never"
    memory: Annotated[tuple[Pattern, ...], Field(max_length=10)] = ()
    unsure: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] = (0.3, 0.85)

    @field_validator("memory")
    @classmethod
    def _shared_memories(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for n, key in enumerate(keys):
            if not (key.startswith(SHARED_PREFIX) and key.endswith(".memory.json")):
                raise wrong(f"is {shown(key)}", "a shared memory: configs/_shared/<name>.memory.json", n)
            _inside(key, n)
        return keys

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.unsure[0] > self.unsure[1]:
            raise wrong(f"is {shown(list(self.unsure))}", "two probabilities, the smaller one first", "unsure")
        return self


class TableShape(Strict):
    """How a sheet is cut into tables: exactly these ranges, one table, or one between any two blank columns or rows."""

    sheet: Pattern = "*"
    ranges: Annotated[tuple[Annotated[str, Field(pattern=RANGE)], ...], Field(max_length=MAX_RANGES)] = ()
    one: Literal[True] | None = None
    split: Literal["columns", "rows", "both"] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.ranges) + bool(self.one) + bool(self.split) != 1:
            raise wrong("does not say how the sheet is cut", 'one of "ranges", "one" and "split" beside "sheet"')
        boxes = [box_of(area) for area in self.ranges]
        for n, (left, top, right, bottom) in enumerate(boxes):
            if left > right or top > bottom:
                raise wrong(f"is {self.ranges[n]}", "a range from its upper left to its lower right cell", "ranges", n)
            for other in range(n):
                a, b, c, d = boxes[other]
                if left <= c and a <= right and top <= d and b <= bottom:
                    raise wrong(f"is {self.ranges[n]}, which meets {self.ranges[other]}", "ranges apart", "ranges", n)
        return self


def box_of(area: str) -> tuple[int, int, int, int]:
    """The first column and row and the last column and row of a range such as A3:C94, 1-based."""
    first, _, last = area.partition(":")
    return (*_place_of(first), *_place_of(last))


def _place_of(cell: str) -> tuple[int, int]:
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column, int(cell[len(letters) :])


_Named = Annotated[Pattern, Tag(f"{KIND_OF}name")]
_Shaped = Annotated[TableShape, Tag(f"{KIND_OF}shape")]


def _table_kind(table: Any) -> str:
    return KIND_OF + ("name" if isinstance(table, str) else "shape")


class CaptionTarget(Strict):
    """Where the captions above blocks of rows go: a field of that name, else a column at the end."""

    to: Annotated[str, Field(pattern=FIELD_NAME)]


class Unpivot(Strict):
    """Columns that become rows: one row for each of their cells, with the column's header and the cell's value."""

    columns: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=MAX_UNPIVOTED)]
    name_to: Annotated[str, Field(pattern=FIELD_NAME)]
    value_to: Annotated[str, Field(pattern=FIELD_NAME)]
    blanks: Literal["drop", "keep"] = "drop"

    @field_validator("columns")
    @classmethod
    def _bounded_stars(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for n, pattern in enumerate(patterns):
            if count_stars(pattern) > MAX_STARS:
                raise wrong(f"has {count_stars(pattern)} stars", f"at most {MAX_STARS} in one pattern", n)
        return patterns

    @model_validator(mode="after")
    def _two_targets(self) -> Self:
        if self.name_to.casefold() == self.value_to.casefold():
            raise wrong(f"is {shown(self.value_to)}, as name_to", "two different fields", "value_to")
        return self


class Dedupe(Strict):
    """Which of several rows with one key stays."""

    key: Annotated[tuple[FieldNameText, ...], Field(min_length=1, max_length=20)]
    keep: Literal["first", "last", "newest"] = "first"
    by: FieldNameText | None = None

    @model_validator(mode="after")
    def _has_a_date(self) -> Self:
        if (self.keep == "newest") != (self.by is not None):
            problem, at = ("is missing", "by") if self.by is None else (f"does not go with keep {self.keep}", "by")
            raise wrong(problem, 'the field that says which row is the newest, with "keep": "newest"', at)
        return self


class RowShape(Strict):
    """What becomes of the rows of a table before they are checked: which there are, which stay, in which order."""

    unpivot: Unpivot | None = None
    filter: ExpressionText | None = None
    dedupe: Dedupe | None = None
    sort: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=101)], ...], Field(max_length=20)] = ()


class Reading(Strict):
    """How an input is read: which parts count, and what the sender knows better than detection does."""

    sheets: tuple[Pattern, ...] = ("*",)
    # Those that hold the records: "Orders", "Orders!A1:F20", or how a sheet is cut into them; none: found out.
    tables: tuple[Annotated[_Named | _Shaped, Discriminator(_table_kind)], ...] = ()
    hidden_sheets: Literal["skip", "read"] = "skip"
    hidden_rows: Literal["skip", "read"] = "read"
    hidden_columns: Literal["skip", "read"] = "read"
    encoding: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    quote: Annotated[str, Field(max_length=1)] | None = None
    header: Literal["auto", "none"] = "auto"
    header_rows: tuple[Annotated[int, Field(ge=1, le=1_048_576)], ...] = ()
    group_rows: Literal["drop", "keep", "fill"] = "drop"
    group_column: Annotated[str, Field(pattern=FIELD_NAME)] = "group"
    captions: CaptionTarget | None = None
    total_rows: Literal["auto", "drop", "keep"] = "auto"
    note_rows: Literal["auto", "drop", "keep"] = "auto"

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str | None) -> str | None:
        if encoding is None:
            return None
        try:
            known = codecs.lookup(encoding)
            b"".decode(known.name)
        except (LookupError, ValueError):
            raise wrong(f"is {shown(encoding)}", "a text encoding such as utf-8, cp1252 or shift_jis") from None
        return known.name

    @field_validator("delimiter", "quote")
    @classmethod
    def _one_sign(cls, sign: str | None) -> str | None:
        if sign and sign in "\r\n\0":
            raise wrong(f"is {shown(sign)}", "one character that does not end a line")
        return sign

    @field_validator("tables", mode="before")
    @classmethod
    def _names_or_shapes(cls, tables: Any) -> Any:
        listed = tables if isinstance(tables, list | tuple) else ()
        if sum(isinstance(one, dict) for one in listed) > MAX_PATTERNS:
            raise wrong(f"is a list of {len(listed)}", f"at most {MAX_PATTERNS} sheets with their ranges")
        for n, one in enumerate(listed):
            if not isinstance(one, str | dict | TableShape):
                what = 'a sheet or its range, "Orders" or "Orders!A1:F20", or {"sheet": "Orders", "ranges": ["A1:F20"]}'
                raise wrong(f"is {shown(one)}", what, n)
        return tables

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.captions is not None and (self.group_rows, self.group_column) != ("drop", "group"):
            raise wrong("is set together with group_rows", "captions, or group_rows and group_column", "captions")
        if self.header == "none" and self.header_rows:
            raise wrong("names rows, but reading.header is none", "header_rows, or header: none", "header_rows")
        if list(self.header_rows) != sorted(set(self.header_rows)):
            raise wrong("is not in ascending order", "row numbers from top to bottom, each once", "header_rows")
        if self.delimiter is not None and self.delimiter == self.quote:
            raise wrong(f"is {shown(self.quote)}, the delimiter", "two different characters", "quote")
        return self


class CsvOutput(Strict):
    """How normalized.csv is written."""

    delimiter: Literal[",", ";", "\t", "|"] = ","
    decimal: Literal[".", ","] = "."
    bom: bool = False  # a byte-order mark, by which Excel recognizes UTF-8

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.delimiter == self.decimal:
            raise wrong("is the delimiter too", 'another one, such as "delimiter": ";"', "decimal")
        return self


class LoadOutput(Strict):
    """Into which table the rows go, besides the files."""

    connection: Annotated[str, Field(pattern=IDENTIFIER)] = LOCAL
    table: Annotated[str, Field(pattern=IDENTIFIER)]
    mode: Literal["append", "upsert", "replace"] = "append"
    key: Annotated[tuple[Annotated[str, Field(pattern=FIELD_NAME)], ...], Field(max_length=8)] = ()
    partition: Annotated[tuple[Annotated[str, Field(pattern=FIELD_NAME)], ...], Field(max_length=8)] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.table.startswith("ade_") or "_ade_" in self.table:
            raise wrong("is a name that loads use themselves", "a name without ade_", "table")
        if (self.mode == "upsert") != bool(self.key):
            raise wrong("goes with mode upsert, which needs it", 'such as "mode": "upsert", "key": ["id"]', "key")
        if (self.mode == "replace") != bool(self.partition):
            remedy = 'such as "mode": "replace", "partition": ["month"]'
            raise wrong("goes with mode replace, which needs it", remedy, "partition")
        return self

    @property
    def rule(self) -> LoadRule:
        columns = (*self.key, *self.partition)
        return LoadRule(connection=self.connection, table=self.table, mode=self.mode, columns=columns)


class Output(Strict):
    sheet: Annotated[str, Field(min_length=1, max_length=31, pattern=r"^[^\[\]:*?/\\]+$")] = "Normalized"
    findings_sheet: bool = False
    header: Literal["name", "label"] = "name"
    provenance: bool = False
    rejects: bool = False  # write rejects.xlsx, the sender's own rows with errors
    formats: Annotated[tuple[Literal["xlsx", "csv", "jsonl", "parquet"], ...], Field(min_length=1, max_length=4)] = (
        "xlsx",
    )
    csv: CsvOutput = CsvOutput()
    on_type_error: Literal["keep", "null", "reject"] = "keep"  # in the workbook; other formats hold typed values only
    rescued: bool = False  # a column with the values that the other formats left blank
    load: LoadOutput | None = None
    split_by: Annotated[str, Field(pattern=FIELD_NAME)] | None = None  # a field: its values get files of their own

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if len(set(self.formats)) != len(self.formats):
            raise wrong("names a format twice", "each of xlsx, csv, jsonl and parquet at most once", "formats")
        if self.load is not None and ("csv" not in self.formats or self.csv.decimal != "."):
            remedy = '"formats": ["xlsx", "csv"] with a decimal point: a load reads normalized.csv'
            raise wrong("needs normalized.csv", remedy, "load")
        if self.on_type_error == "reject" and not self.rejects:
            remedy = '"rejects": true, so that the rows are written somewhere'
            raise wrong("is reject, but rejects is false", remedy, "on_type_error")
        if self.rescued and self.formats == ("xlsx",):
            remedy = 'another format too, such as "formats": ["xlsx", "parquet"]; the workbook holds all values'
            raise wrong("is true, but formats has only xlsx", remedy, "rescued")
        return self


class DriftPolicy(Strict):
    """What happens if a drop's columns differ from those of the sender's last one."""

    columns: Literal["accept", "review", "fail"] = "accept"


class Schedule(Strict):
    """Selects by the data's own time, so that history can be replayed with the right meaning."""

    start_time: datetime | None = None
    end_time: datetime | None = None

    @field_validator("start_time", "end_time")
    @classmethod
    def _zoned(cls, at: datetime | None) -> datetime | None:
        return zoned(at)

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.start_time and self.end_time and self.start_time >= self.end_time:
            raise wrong("is not before end_time", "a time before end_time", "start_time")
        return self

    def holds(self, at: float) -> bool:
        after = self.start_time is None or at >= self.start_time.timestamp()
        return after and (self.end_time is None or at < self.end_time.timestamp())


class ReviewTerms(Strict):
    """How long a job waits for a person's decision, and what happens if none comes."""

    expires: Annotated[str, Field(pattern=DURATION)] = "7d"
    on_expiry: Literal["fail", "accept"] = "fail"

    @property
    def seconds(self) -> float:
        return int(self.expires[:-1]) * {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}[self.expires[-1]]


class Notify(Strict):
    """A receiver of notices; the operator has to allow it."""

    to: Annotated[str, Field(max_length=500, pattern=r"^(https?://|arn:[a-z-]+:(sns|events):|mailto:)[!-~]+$")]
    on: Annotated[
        tuple[Literal["succeeded", "errors", "failed", "review", "missing"], ...], Field(min_length=1, max_length=5)
    ] = ("succeeded", "failed", "review", "missing")


class Expect(Strict):
    """By when a drop is expected; if none has come, `notify` reports it as missing."""

    by: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    tz: Annotated[str, Field(max_length=64)] = "UTC"
    days: Annotated[
        tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...], Field(min_length=1, max_length=7)
    ] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

    @field_validator("tz")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ValueError, OSError, KeyError):
            raise wrong(f"is {shown(name)}", "a time zone such as Europe/Berlin") from None
        return name


class Limits(Strict):
    """What a job may use; the settings cap it. None: the setting itself."""

    timeout_seconds: Annotated[int, Field(ge=1)] | None = None
    cpu_seconds: Annotated[int, Field(ge=1)] | None = None
    memory_mb: Annotated[int, Field(ge=64)] | None = None
    file_mb: Annotated[int, Field(ge=1)] | None = None


Language = Literal["en", "de", "fr", "es"]  # runner/engine/pages/messages.py has the sentences


class ReportOptions(Strict):
    """What report.html shows."""

    values: Literal["hidden", "shown"] = "hidden"  # of the cells that findings are about


class Manifest(Strict):
    """One workflow. Only `manifest`, `name` and one of `fields` or `config` are required."""

    manifest: VersionOne
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    inputs: Inputs = Inputs()
    subscribe: Annotated[tuple[Pattern, ...], Field(max_length=MAX_PATTERNS)] = ()
    tenants: Annotated[tuple[Pattern, ...], Field(max_length=MAX_TENANTS)] = ()  # of a shared workflow
    config: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    fields: Annotated[tuple[FieldSpec, ...], Field(max_length=MAX_FIELDS)] = ()
    rules: Annotated[tuple[RowRule, ...], Field(max_length=MAX_RULES)] = ()
    rows: RowShape = RowShape()
    mapping: Mapping = Mapping()
    review: ReviewTerms = ReviewTerms()
    reading: Reading = Reading()
    output: Output = Output()
    language: Language = "en"  # of report.html
    report: ReportOptions = ReportOptions()
    notify: Annotated[tuple[Notify, ...], Field(max_length=MAX_NOTIFY)] = ()
    expect: Expect | None = None
    on_rule_error: Literal["finding", "fail"] = "finding"
    on_error: Literal["keep", "split", "reject"] = "keep"
    latest: Literal["succeeded", "any"] = "succeeded"
    keep_days: Annotated[float, Field(gt=0, le=3650, strict=True)] | None = None
    min_rows: Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)] = 1
    max_error_rate: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None
    max_rejected_rows: Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)] | None = None
    drift: DriftPolicy = DriftPolicy()
    redact_headers: bool = False
    params: dict[str, Scalar] = Field(default_factory=dict)
    sweep: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = Field(default_factory=dict)
    schedule: Schedule = Schedule()
    data_time: datetime | None = None
    not_before: datetime | None = None
    limits: Limits = Limits()
    runtime_network_access: bool = False
    priority: Annotated[int, Field(ge=-10, le=10)] = 0
    description: Annotated[str, Field(max_length=2000)] | None = None
    schema_uri: Annotated[str | None, Field(alias="$schema", max_length=500)] = None  # for editors

    @field_validator("data_time", "not_before")
    @classmethod
    def _zoned(cls, at: datetime | None) -> datetime | None:
        return zoned(at)

    @field_validator("subscribe")
    @classmethod
    def _subscribe_inside(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_inside(pattern, n) for n, pattern in enumerate(patterns))

    @field_validator("tenants")
    @classmethod
    def _tenant_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for n, pattern in enumerate(patterns):
            if not re.fullmatch(r"[A-Za-z0-9._ *?-]{1,63}", pattern) or count_stars(pattern) > MAX_STARS:
                raise wrong(f"is {shown(pattern)}", "names of tenants, such as acme, north-* or *", n)
        return patterns

    @field_validator("config")
    @classmethod
    def _config_place(cls, place: str | None) -> str | None:
        if place is None or place == ".":
            return place
        place = _inside(place.removeprefix("./"))
        if place.startswith("configs/") and not place.startswith(SHARED_PREFIX):
            raise wrong(f"is {shown(place)}", "a folder or zip beside the manifest, '.', or configs/_shared/<name>")
        return place

    @field_validator("params", mode="before")
    @classmethod
    def _plain_params(cls, params: Any) -> Any:
        for name, value in params.items() if isinstance(params, dict) else ():
            if not isinstance(value, str | int | float | bool | None):
                raise wrong(f"is {shown(value)}", "a text, a number, true, false or null", name)
        return params

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.fields and self.config is None:
            raise wrong("has neither fields nor config", "at least one of them")
        names = set[str]()
        for n, name in enumerate(f.name.casefold() for f in self.fields):
            if name in names:
                raise wrong(f"is {name} again", "names that differ, upper and lower case alike", "fields", n, "name")
            names.add(name)
        if self.on_error == "split" and not self.output.rejects:
            remedy = '"output": {"rejects": true}, so that the rows are written somewhere'
            raise wrong("is split, but output.rejects is false", remedy, "on_error")
        types = {f.name: str(f.type) for f in self.fields}
        self._check_load()
        self._check_split()
        self._check_labels()
        self._check_lookups()
        self._check_sources(types)
        self._check_rows(types)
        self._check_rules(types)
        self._check_targets()
        if both := sorted(set(self.params) & set(self.sweep)):
            raise wrong("is in params too", "a parameter in params or in sweep, not in both", "sweep", both[0])
        self._check_params()
        return self

    def _check_labels(self) -> None:
        """Refuse two fields of one label where a label names the columns of data files: readers would lose one."""
        if self.output.header != "label" or self.output.formats == ("xlsx",):
            return
        seen = set[str]()
        for n, label in enumerate((field.label or field.name).casefold() for field in self.fields):
            if label in seen:
                raise wrong("is another field's too", 'labels that differ, or "header": "name"', "fields", n, "label")
            seen.add(label)

    def _check_load(self) -> None:
        load, names = self.output.load, {field.name for field in self.fields}
        for what in ("key", "partition") if load is not None and self.fields else ():
            for n, name in enumerate(getattr(load, what)):
                if name not in names:
                    raise wrong(f"is {shown(name)}", "the name of a field", "output", "load", what, n)

    def _check_split(self) -> None:
        """The files of a split are named after values that the manifest declares, and all of them are open at once."""
        name, at = self.output.split_by, ("output", "split_by")
        if name is None:
            return
        n, field = next(((n, f) for n, f in enumerate(self.fields) if f.name == name), (0, None))
        if field is None:
            raise wrong(f"is {shown(name)}", f"a field: {', '.join(f.name for f in self.fields)}", *at)
        if field.type not in (FieldType.TEXT, FieldType.ENUM) or not isinstance(field.allowed, tuple):
            remedy = 'a field of type text or enum with a list of allowed values, such as "allowed": ["North", "South"]'
            raise wrong(f"is {name}, whose values are not listed", remedy, *at)
        values, formats = len(field.allowed), len(self.output.formats)
        if (files := (values + 1) * formats) > MAX_SPLIT_FILES:
            what = f"makes {files} files: of {values} values and of all others, in {formats} formats"
            raise wrong(what, f"at most {MAX_SPLIT_FILES} files; fewer formats, or a field with fewer values", *at)
        for i, value in enumerate(field.allowed):
            if not isinstance(value, str) or not _names_files(value) or value in field.allowed[:i]:
                what = f"is {shown(value)}, but output.split_by names files after the values of this field"
                remedy = f"texts of 1 to {MAX_SPLIT_VALUE} printable characters, each once, no blanks around them"
                raise wrong(what, remedy, "fields", n, "allowed", i)

    @property
    def split_values(self) -> tuple[str, ...]:
        """The values of the field that `output.split_by` names."""
        listed = next((f.allowed for f in self.fields if f.name == self.output.split_by), None)
        return tuple(str(value) for value in listed) if isinstance(listed, tuple) else ()

    def _check_params(self) -> None:
        """Each combination's row holds all its parameters, so they are counted before they are multiplied."""
        if self.combinations > MAX_SWEEP:
            raise wrong(f"makes {self.combinations} jobs per input", f"at most {MAX_SWEEP} combinations", "sweep")
        swept = sum(
            len(_written(name)) + max(len(_written(value)) for value in self.sweep[name]) for name in self.sweep
        )
        one = len(_written(self.params)) + swept
        if one > MAX_PARAM_BYTES:
            raise wrong(f"has {one} bytes", f"at most {MAX_PARAM_BYTES} for one job; put tables in files", "params")
        if one * self.combinations > MAX_SWEEP_BYTES:
            problem = f"makes {self.combinations} jobs per input with {one} bytes of parameters each"
            raise wrong(problem, f"at most {MAX_SWEEP_BYTES} bytes for all of them", "sweep")

    def _check_lookups(self) -> None:
        aux = [a.name for a in self.inputs.auxiliary]
        known = f"an auxiliary input: {', '.join(aux) or 'none is declared in inputs.auxiliary'}"
        for n, f in enumerate(self.fields):
            for at, lookup in (("allowed", f.allowed), ("from", f.source)):
                if isinstance(lookup, Lookup | FromLookup) and lookup.lookup not in aux:
                    raise wrong(f"is {lookup.lookup}", known, "fields", n, at, "lookup")

    def _check_sources(self, types: dict[str, str]) -> None:
        """Check what fields are computed from, and that none is computed from itself."""
        uses: dict[str, tuple[str, ...]] = {}
        for n, f in enumerate(self.fields):
            match f.source:
                case FromExpression(expression=text):
                    uses[f.name] = typed(text, types, _kinds_for(f), "fields", n, "from", "expression").fields
                case FromLookup(key=key):
                    check_field(key, types, "fields", n, "from", "key")
                    uses[f.name] = (key,)
                case FromColumns(combine="join") if kind_of(f.type) != "text":
                    raise wrong(f"joins texts, but {f.name} is {f.type}", "type text", "fields", n, "from", "combine")
        check_order(uses, {f.name: n for n, f in enumerate(self.fields)})

    def _check_rows(self, types: dict[str, str]) -> None:
        rows = self.rows
        if rows.filter is not None:
            typed(rows.filter, types, ("boolean",), "rows", "filter")
        for n, name in enumerate(rows.sort):
            check_field(name if name in types else name.removeprefix("-"), types, "rows", "sort", n)
        if rows.dedupe is not None:
            for n, name in enumerate(rows.dedupe.key):
                check_field(name, types, "rows", "dedupe", "key", n)
            if rows.dedupe.by is not None:
                check_field(rows.dedupe.by, types, "rows", "dedupe", "by")

    def _check_rules(self, types: dict[str, str]) -> None:
        known = {f.name: f.type for f in self.fields}
        for n, rule in enumerate(self.rules):
            if rule.check is not None:
                typed(rule.check, types, ("boolean",), "rules", n, "check")
            for at, name in enumerate(rule.unique or ()):
                check_field(name, types, "rules", n, "unique", at)
            for key, summed in (("sum", rule.sum), ("equals", rule.equals)):
                if summed is None or (key == "equals" and summed == "total_row"):
                    continue
                check_field(summed, types, "rules", n, key)
                if known[summed] not in NUMERIC:
                    raise wrong(f"is {summed}, which is {known[summed]}", "a field with numbers", "rules", n, key)
            for word, side in (("when", rule.when), ("then", rule.then)):
                if side is None:
                    continue
                for key, other in (("field", side.field), ("other", side.other)):
                    if other is not None and other not in known:
                        raise wrong(f"is {other}", f"a declared field: {', '.join(known)}", "rules", n, word, key)
                constants = side.value if isinstance(side.value, list) else [side.value]
                for constant in constants:
                    wanted = None if constant is None else fits(known[side.field], constant)
                    if wanted:
                        what = f"is {shown(constant)}, but {side.field} is {known[side.field]}"
                        raise wrong(what, wanted, "rules", n, word, "value")

    def serves(self, tenant: str) -> bool:
        """Whether a shared workflow is one for a tenant; names of tenants differ by case."""
        wild = (p for p in self.tenants if "*" in p or "?" in p)
        return tenant in self.tenants or any(fnmatchcase(tenant, p) for p in wild)

    def _check_targets(self) -> None:
        """A field takes captions, names or values of unpivoted columns only if nothing else fills it."""
        fields = [f for f in self.fields if f.constant is not None or f.source is not None or f.fill_down]
        filled = {f.name for f in fields}
        unpivot, captions = self.rows.unpivot, self.reading.captions
        targets = [] if captions is None else [(captions.to, ("reading", "captions", "to"))]
        if unpivot is not None:
            targets += [(unpivot.name_to, ("rows", "unpivot", "name_to"))]
            targets += [(unpivot.value_to, ("rows", "unpivot", "value_to"))]
        for at, (name, place) in enumerate(targets):
            if name in filled:
                remedy = "a field without constant, from and fill_down"
                raise wrong(f"is {name}, which is filled otherwise", remedy, *place)
            if name in [other for other, _ in targets[:at]]:
                raise wrong(f"is {name} again", "a field that takes nothing else", *place)

    @property
    def combinations(self) -> int:
        """How many jobs each input set makes."""
        return prod(map(len, self.sweep.values()))

    def param_sets(self) -> Iterator[dict[str, Scalar]]:
        """Every combination of the sweep, over the fixed parameters; one set where there is no sweep."""
        names = sorted(self.sweep)
        for values in product(*(self.sweep[n] for n in names)):
            yield {**self.params, **dict(zip(names, values, strict=True))}


def _kinds_for(field: FieldSpec) -> tuple[str, ...]:
    """The kinds of expressions that a field may take its values from."""
    kind = kind_of(field.type)
    if field.map is not None:
        return KINDS  # the map makes them the field's
    return ("datetime", "date") if kind == "datetime" else (kind,)


def _names_files(value: str) -> bool:
    """Whether files can be named after a value: every format holds it as it is, and it differs from a blank."""
    return 0 < len(value) <= MAX_SPLIT_VALUE and value.isprintable() and value.strip() == value


def _written(value: object) -> bytes:
    """A value as a row holds it."""
    return to_json(value, inf_nan_mode="null")


def zoned(at: datetime | None) -> datetime | None:
    """A time without a zone means UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def parse_manifest(body: bytes) -> Manifest:
    """Validate a manifest's bytes; raise ManifestInvalid with one problem per mistake, the first ones."""
    found = read(body, Manifest, BUDGET, check=_bounded)
    if isinstance(found, list):
        raise ManifestInvalid(found)
    return found


def _bounded(raw: dict[str, object]) -> list[Problem]:
    """What would take long to validate, before it is validated."""
    for name, most in (("fields", MAX_FIELDS), ("rules", MAX_RULES)):
        if isinstance(listed := raw.get(name), list) and len(listed) > most:
            return [Problem(f"$.{name}", f"is a list of {len(listed)}", f"at most {most} items")]
    fields = listed if isinstance(listed := raw.get("fields"), list) else []
    patterns = (one.get("pattern") for one in fields if isinstance(one, dict))
    if sum(len(pattern) for pattern in patterns if isinstance(pattern, str)) > MAX_PATTERN_CHARACTERS:
        allowed = f"{MAX_PATTERN_CHARACTERS} characters"
        return [Problem("$.fields", "have patterns that are too long together", allowed)]
    rules = listed if isinstance(listed := raw.get("rules"), list) else []
    sources = (one.get("from") for one in fields if isinstance(one, dict))
    texts = [source.get("expression") for source in sources if isinstance(source, dict)]
    texts += [one.get("check") for one in rules if isinstance(one, dict)]
    if sum(len(text) for text in texts if isinstance(text, str)) > MAX_CHARACTERS:
        return [Problem("$", "has expressions that are too long together", f"{MAX_CHARACTERS} characters")]
    return []


def manifest_schema() -> dict[str, object]:
    """The JSON Schema of manifest v1, with a description of every key, for editors; exported to docs/."""
    from core.manifest_keys import described  # noqa: PLC0415  # only for whoever asks for the schema

    schema = described(Manifest.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "ade-drop manifest v1",
    }
