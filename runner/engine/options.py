"""What the engine uses of a manifest: parsed once, at its door. The manifest was validated, so defaults are the only
thing to fill in: an order that people write by hand may lack parts."""

from collections.abc import Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, Self

from runner.engine.common.fields import Field
from runner.engine.contract import DataTypes, OutputName, SplitBy, data_files

THRESHOLD: Final = 0.7  # confidence from which a column is mapped
UNSURE: Final = (0.3, 0.85)  # confidences between which a person is asked
GROUP: Final = "group"  # the column that receives group captions
SHEET: Final = "Normalized"
TOTAL_ROW: Final = "total_row"  # what a sum is compared with, if not with a field
FILTERED, DUPLICATE = "filtered", "duplicate"  # what the books call rows that `rows` leaves out


class TableCut(NamedTuple):
    """How somebody said that a sheet is cut into tables."""

    how: str  # "ranges", "one", or between blank "columns", "rows" or "both"
    ranges: tuple[str, ...] = ()  # A3:C94


class ShapedSheet(NamedTuple):
    """The sheets of a pattern, and how they are cut into tables."""

    sheet: str
    cut: TableCut

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse an object of `reading.tables`: a sheet with `ranges`, with `split`, or neither for one table."""
        ranges = tuple(raw.get("ranges") or ())
        how = "ranges" if ranges else raw.get("split") or "one"
        return cls(raw.get("sheet") or "*", TableCut(how, ranges))


def names_sheet(pattern: str, input_name: str, sheet: str) -> bool:
    """Whether a pattern of `reading.tables` is about a sheet: by its name, or by its file's and its own."""
    return any(label == pattern or fnmatchcase(label, pattern) for label in (sheet, f"{input_name}/{sheet}"))


class ReadingOptions(NamedTuple):
    """How inputs are read; fields whose values are words take those of the manifest's `reading`."""

    sheets: tuple[str, ...] = ("*",)  # names and patterns
    tables: tuple[str, ...] = ()  # those that hold the records; none: found out
    shaped: tuple[ShapedSheet, ...] = ()  # the same, with how their sheets are cut
    cut: TableCut | None = None  # how the sheet at hand is cut
    hidden_sheets: str = "skip"  # or read; so too for rows and columns
    hidden_rows: str = "read"
    hidden_columns: str = "read"
    encoding: str | None = None  # None: found out; so too below
    delimiter: str | None = None
    quote: str | None = None
    header: str = "auto"  # or none
    header_rows: tuple[int, ...] = ()  # empty: found out
    group_rows: str = "drop"  # or keep, fill
    group_column: str = GROUP  # empty: only fields that ask for captions take them
    heads_count: bool = False  # a caption above a table is one of its rows
    total_rows: str = "auto"  # or drop, keep
    note_rows: str = "auto"

    @property
    def headless(self) -> bool:
        """Whether the inputs have no header row."""
        return self.header == "none"

    @property
    def fills_groups(self) -> bool:
        """Whether group captions are repeated in the rows below them."""
        return self.group_rows == "fill"

    @property
    def named(self) -> tuple[str, ...]:
        """The tables that hold the records, by the names that `reading.tables` gives them."""
        return (*self.tables, *dict.fromkeys(shaped_sheet.sheet for shaped_sheet in self.shaped))

    def for_sheet(self, input_name: str, sheet: str) -> Self:
        """Return the options for one sheet: with `cut`, if `reading.tables` says how it is cut."""
        cut = next(
            (shaped_sheet.cut for shaped_sheet in self.shaped if names_sheet(shaped_sheet.sheet, input_name, sheet)),
            None,
        )
        return self if cut is None else self._replace(cut=cut)

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the `reading` of a validated manifest; defaults for what it lacks, and for empty lists.

        Its keys are our fields, but for `tables`, whose items are names of tables or objects that say how a sheet is
        cut (`ShapedSheet`), and `captions`, which asks for group captions in a column.
        """
        options = {name: value for name in cls._fields if (value := raw.get(name)) is not None}
        for name in ("sheets", "header_rows"):
            if name in options:
                options[name] = tuple(options[name]) or cls._field_defaults[name]
        options["tables"], options["shaped"] = _split_tables(raw.get("tables") or ())
        if captions := raw.get("captions"):
            options |= {"group_rows": "fill", "group_column": captions["to"], "heads_count": True}
        return cls(**options)

    def with_captions(self) -> Self:
        """Return the same options for a job with a field that takes captions."""
        column = self.group_column if self.fills_groups else ""
        return self._replace(group_rows="fill", group_column=column, heads_count=True)


def _split_tables(items: Sequence[str | Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[ShapedSheet, ...]]:
    """Return the names among the items of `reading.tables`, and the objects among them."""
    names = tuple(item for item in items if isinstance(item, str))
    return names, tuple(ShapedSheet.parse(item) for item in items if isinstance(item, Mapping))


AS_FOUND: Final = ReadingOptions()  # of a manifest that says nothing


class UnpivotOptions(NamedTuple):
    """Columns that become rows, each with its header and its value."""

    columns: tuple[str, ...]  # names and patterns
    name_to: str
    value_to: str
    drops_blanks: bool = True

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Return the `rows.unpivot` of a validated manifest."""
        return cls(tuple(raw["columns"]), raw["name_to"], raw["value_to"], raw.get("blanks") != "keep")


class MappingOptions(NamedTuple):
    """How columns become fields."""

    threshold: float = THRESHOLD
    unmapped: str = "keep"  # what becomes of columns without a field
    review: str = "never"  # when a person is asked
    unsure: tuple[float, float] = UNSURE

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the `mapping` of a validated manifest; defaults for what it lacks."""
        low, high = raw.get("unsure") or UNSURE
        threshold = raw.get("threshold")
        return cls(
            threshold=THRESHOLD if threshold is None else float(threshold),
            unmapped=raw.get("unmapped") or "keep",
            review=raw.get("review") or "never",
            unsure=(float(low), float(high)),
        )


class DataOptions(NamedTuple):
    """How the files beside the workbook are written: normalized.csv, .jsonl and .parquet."""

    formats: tuple[str, ...] = ("xlsx",)
    rescued: bool = False  # a column for the values that do not fit their columns
    delimiter: str = ","
    decimal: str = "."
    bom: bool = False  # a byte-order mark at the start of the CSV file

    @property
    def names(self) -> tuple[OutputName, ...]:
        """The files that hold data."""
        return data_files(self.formats)

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse what the `output` of a validated manifest says about data files; defaults for what it lacks."""
        csv = raw.get("csv") or {}
        return cls(
            formats=tuple(raw.get("formats") or cls._field_defaults["formats"]),
            rescued=bool(raw.get("rescued")),
            delimiter=csv.get("delimiter") or ",",
            decimal=csv.get("decimal") or ".",
            bom=bool(csv.get("bom")),
        )


class SplitOff(Enum):
    """Which rows with errors are not written; rejects.xlsx has them."""

    NONE = "none"
    UNTYPED = "untyped"  # those with a cell that is not of its column's type
    ALL = "all"


class OutputOptions(NamedTuple):
    """What the outputs look like."""

    sheet: str = SHEET
    findings_sheet: bool = False
    use_labels: bool = False  # as headers, instead of names
    provenance: bool = False
    blanks_errors: bool = False  # a value that does not fit its column's type is left blank in the workbook too
    splits_off: SplitOff = SplitOff.NONE
    data: DataOptions = DataOptions()
    split: SplitBy | None = None  # the same rows once more, in files by the value of a field

    @classmethod
    def parse(cls, raw: Mapping[str, Any], fields: Sequence[Mapping[str, Any]] = ()) -> Self:
        """Parse the `output` of a validated manifest, which has these fields; defaults for what it lacks."""
        return cls(
            split=_parse_split(raw, fields),
            blanks_errors=raw.get("on_type_error") == "null",
            splits_off=SplitOff.UNTYPED if raw.get("on_type_error") == "reject" else SplitOff.NONE,
            data=DataOptions.parse(raw),
            sheet=raw.get("sheet") or SHEET,
            findings_sheet=bool(raw.get("findings_sheet")),
            use_labels=raw.get("header") == "label",
            provenance=bool(raw.get("provenance") or raw.get("load")),  # loaded rows name their source
        )


def _parse_split(raw: Mapping[str, Any], fields: Sequence[Mapping[str, Any]]) -> SplitBy | None:
    """Parse into which files the manifest's `output` splits the rows; None if it does not."""
    name = raw.get("split_by")
    if not name:
        return None
    return SplitBy(field=name, values=next(tuple(field["allowed"]) for field in fields if field["name"] == name))


class RowComparison(NamedTuple):
    """A field, an operator, and a constant or another field."""

    field: str
    op: str
    value: Any = None
    other: str | None = None

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Return the `when` or `then` of a rule of a validated manifest."""
        return cls(raw["field"], raw["op"], raw.get("value"), raw.get("other"))


class SumRule(NamedTuple):
    """The sum of a field equals a total."""

    field: str
    equals: str  # a field that has the total, or TOTAL_ROW
    tolerance: float = 0.0


class DeclaredRule(NamedTuple):
    """A rule over fields of one row (`then`, checked where `when` holds, or `check`) or over all rows."""

    name: str
    then: RowComparison | None = None
    when: RowComparison | None = None
    check: str | None = None  # an expression
    unique: tuple[str, ...] = ()
    total: SumRule | None = None
    rows: tuple[int | None, int | None] | None = None  # the least and the most
    message: str | None = None
    severity: str = "error"

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one of the `rules` of a validated manifest."""
        when, then, summed, rows = raw.get("when"), raw.get("then"), raw.get("sum"), raw.get("rows")
        return cls(
            name=raw["name"],
            then=RowComparison.parse(then) if then else None,
            when=RowComparison.parse(when) if when else None,
            check=raw.get("check"),
            unique=tuple(raw.get("unique") or ()),
            total=SumRule(summed, raw["equals"], raw.get("tolerance") or 0.0) if summed else None,
            rows=(rows.get("min"), rows.get("max")) if rows else None,
            message=raw.get("message"),
            severity=raw.get("severity") or "error",
        )


class DedupeOptions(NamedTuple):
    """Which of several rows with one key stays."""

    key: tuple[str, ...]  # fields
    keep: str = "first"  # or last, newest
    by: str | None = None  # the field that says which row is newer


class RowsOptions(NamedTuple):
    """Which rows the output has, and in which order."""

    filter: str | None = None  # an expression
    dedupe: DedupeOptions | None = None
    sort: tuple[tuple[str, bool], ...] = ()  # fields, and whether the largest comes first

    @property
    def removes(self) -> tuple[str, ...]:
        """The kinds under which the ledger may list rows that these options leave out."""
        filtered = (FILTERED,) if self.filter is not None else ()
        return (*filtered, DUPLICATE) if self.dedupe is not None else filtered

    @classmethod
    def parse(cls, raw: Mapping[str, Any], fields: Sequence[Mapping[str, Any]]) -> Self:
        """Parse the `rows` of a validated manifest; a sort name with a minus is descending unless a field has that
        name."""
        names = {field["name"] for field in fields}
        dedupe = raw.get("dedupe")
        return cls(
            filter=raw.get("filter"),
            dedupe=DedupeOptions(tuple(dedupe["key"]), dedupe.get("keep") or "first", dedupe.get("by"))
            if dedupe
            else None,
            sort=tuple(
                (name, False) if name in names else (name.removeprefix("-"), name.startswith("-"))
                for name in raw.get("sort") or ()
            ),
        )


class JobOptions(NamedTuple):
    """All that the engine uses of a manifest."""

    name: str = ""
    fields: tuple[Field, ...] = ()
    rules: tuple[DeclaredRule, ...] = ()
    reading: ReadingOptions = ReadingOptions()
    unpivot: UnpivotOptions | None = None
    mapping: MappingOptions = MappingOptions()
    rows: RowsOptions = RowsOptions()
    output: OutputOptions = OutputOptions()
    stops_on_rule_error: bool = False
    on_error: str = "keep"  # or split: rows with errors are not written
    min_rows: int = 1
    max_error_rate: float | None = None
    max_rejected_rows: int | None = None
    on_drift: str = "accept"  # if the columns differ from those of the sender's last drop
    redact_headers: bool = False

    @property
    def splits_off(self) -> SplitOff:
        """Which rows with errors are not written."""
        return SplitOff.ALL if self.on_error == "split" else self.output.splits_off

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse all options of a validated manifest that a job uses."""
        min_rows = raw.get("min_rows")
        fields = tuple(map(Field, raw.get("fields") or ()))
        unpivot = (raw.get("rows") or {}).get("unpivot")
        return cls(
            name=str(raw.get("name") or ""),
            fields=fields,
            rules=tuple(map(DeclaredRule.parse, raw.get("rules") or ())),
            reading=_parse_reading(raw, fields),
            unpivot=UnpivotOptions.parse(unpivot) if unpivot else None,
            mapping=MappingOptions.parse(raw.get("mapping") or {}),
            rows=RowsOptions.parse(raw.get("rows") or {}, raw.get("fields") or ()),
            output=OutputOptions.parse(raw.get("output") or {}, raw.get("fields") or ()),
            stops_on_rule_error=raw.get("on_rule_error") == "fail",
            on_error=raw.get("on_error") or "keep",
            min_rows=1 if min_rows is None else int(min_rows),
            max_error_rate=raw.get("max_error_rate"),
            max_rejected_rows=raw.get("max_rejected_rows"),
            on_drift=_parse_drift(raw),
            redact_headers=bool(raw.get("redact_headers")),
        )


class VerifiedOptions(NamedTuple):
    """What the outputs of a job are verified against; the runner reads it, so no pattern is compiled here."""

    title: str
    formats: tuple[str, ...]  # number formats
    why: str  # why the job may ask a person; "never": it may not
    data: DataTypes | None = None  # of the files beside the workbook; None: there are none
    split: SplitBy | None = None
    removes: tuple[str, ...] = ()  # as what the manifest's `rows` may leave rows out
    language: str = "en"  # of the report
    shows_values: bool = False  # in the report

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse what the verification of outputs has to know of a validated manifest."""
        fields: Sequence[Mapping[str, Any]] = raw.get("fields") or ()
        formats = {field.get("number_format") for field in fields}
        review = MappingOptions.parse(raw.get("mapping") or {}).review
        data = DataOptions.parse(raw.get("output") or {})
        types = {field["name"]: (field.get("type") or "text", field.get("scale")) for field in fields}
        return cls(
            data=None if data.formats == ("xlsx",) else DataTypes(output=raw["output"], types=types),
            split=_parse_split(raw.get("output") or {}, fields),
            title=str(raw.get("name") or ""),
            formats=tuple(sorted(f for f in formats if f)),
            why=why_asked(review, _parse_drift(raw)),
            removes=RowsOptions.parse(raw.get("rows") or {}, fields).removes,
            language=raw.get("language") or "en",
            shows_values=shows_values(raw),
        )


def shows_values(raw: Mapping[str, Any]) -> bool:
    """Whether the report shows the values that its findings are about."""
    return (raw.get("report") or {}).get("values") == "shown"


def _parse_reading(raw: Mapping[str, Any], fields: Sequence[Field]) -> ReadingOptions:
    """Parse the reading options of a manifest, with captions if one of its fields takes them."""
    reading = ReadingOptions.parse(raw.get("reading") or {})
    asks_for_captions = any(f.source is not None and f.source.kind == "caption" for f in fields)
    return reading.with_captions() if asks_for_captions else reading


def why_asked(review: str, on_drift: str) -> str:
    """Why a job may ask a person, as review.json says it."""
    return "drift" if review == "never" and on_drift == "review" else review


def _parse_drift(raw: Mapping[str, Any]) -> str:
    """Return what a manifest asks for if columns differ from the sender's last drop: accept unless it says."""
    return (raw.get("drift") or {}).get("columns") or "accept"
