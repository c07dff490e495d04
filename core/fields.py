"""The declared part of a workflow: fields, their types and the rules on them."""

import re
from collections.abc import Callable
from datetime import date, datetime, time
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from core.expressions import MAX_LENGTH, check_syntax
from core.wording import KIND_OF, keys_of, nearest, shown, wrong

# The parser behind re.compile, which has no public name.
_parser, _constants = import_module("re._parser"), import_module("re._constants")

MAX_EXPRESSION = 1000  # characters
FIELD_NAME = r"^[A-Za-z_][A-Za-z0-9_ .-]{0,99}$"


class Strict(BaseModel):
    """Unknown keys are refused: a typo must not silently do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _true_as_text(value: object) -> object:
    """In Python true equals 1, so as a version it would pass."""
    return str(value).lower() if isinstance(value, bool) else value


VersionOne = Annotated[Literal[1], BeforeValidator(_true_as_text)]


class FieldType(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    MONEY = "money"
    PERCENT = "percent"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    BOOLEAN = "boolean"
    EMAIL = "email"
    PHONE = "phone"
    URL = "url"
    ENUM = "enum"


class Clean(StrEnum):
    STRIP = "strip"
    COLLAPSE = "collapse"
    UPPER = "upper"
    LOWER = "lower"
    TITLE = "title"
    DIGITS = "digits"
    UNACCENT = "unaccent"
    NULLIFY = "nullify"


NUMERIC = {FieldType.INTEGER, FieldType.DECIMAL, FieldType.MONEY, FieldType.PERCENT}
TEMPORAL = {FieldType.DATE, FieldType.DATETIME, FieldType.TIME}
_ISO: dict[FieldType, tuple[Callable[[str], object], str]] = {
    FieldType.DATE: (date.fromisoformat, "2026-01-31"),
    FieldType.DATETIME: (datetime.fromisoformat, "2026-01-31T12:00:00"),
    FieldType.TIME: (time.fromisoformat, "12:00:00"),
}


def fits(kind: FieldType, value: object) -> str | None:
    """None if a constant is comparable with values of this type; else what would be."""
    if kind in NUMERIC:
        return None if isinstance(value, int | float) and not isinstance(value, bool) else "a number"
    if kind is FieldType.BOOLEAN:
        return None if isinstance(value, bool) else "true or false"
    if kind not in TEMPORAL:
        return None
    parse, example = _ISO[kind]
    try:
        parse(value if isinstance(value, str) else "")
    except ValueError:
        return f"an ISO 8601 text such as {shown(example)}"
    return None


class Lookup(Strict):
    """Allowed values from a column of an auxiliary input."""

    lookup: Annotated[str, Field(min_length=1)]
    column: Annotated[str, Field(min_length=1)]


# The end of a range: of numbers, or of days and times as texts.
Bound = (
    Annotated[int, Tag(f"{KIND_OF}integer")]
    | Annotated[float, Tag(f"{KIND_OF}number")]
    | Annotated[str, Tag(f"{KIND_OF}text")]
)
# A plain value of JSON.
PlainValue = (
    Annotated[str, Tag(f"{KIND_OF}text")]
    | Annotated[int, Tag(f"{KIND_OF}integer")]
    | Annotated[float, Tag(f"{KIND_OF}number")]
    | Annotated[bool, Tag(f"{KIND_OF}flag")]
)
# An expression of docs/reference/expressions.md; the manifest as a whole checks the fields that it names.
ExpressionText = Annotated[str, Field(min_length=1, max_length=MAX_LENGTH), AfterValidator(check_syntax)]
Header = Annotated[str, Field(min_length=1, max_length=200)]
FieldNameText = Annotated[str, Field(min_length=1, max_length=100)]


class FromExpression(Strict):
    """Computed from other fields of the row."""

    expression: ExpressionText


class FromColumns(Strict):
    """Several columns of the source, by their headers: the first value that is there, or all of them as one text."""

    columns: Annotated[tuple[Header, ...], Field(min_length=2, max_length=20)]
    combine: Literal["coalesce", "join"] = "coalesce"
    separator: Annotated[str, Field(max_length=20)] = " "

    @model_validator(mode="after")
    def _separates(self) -> Self:
        if "separator" in self.model_fields_set and self.combine != "join":
            raise wrong("does not go with combine coalesce", '"combine": "join"', "separator")
        return self


class FromLookup(Strict):
    """A column of an auxiliary input, in the row whose `match` column has the value of the field `key`."""

    lookup: Annotated[str, Field(min_length=1, max_length=64)]
    key: FieldNameText
    match: Header
    column: Header


class FromLabel(Strict):
    """The value right of a label, or below it, above or below the table."""

    label: Annotated[str, Field(min_length=1, max_length=200)]
    side: Literal["right", "below"] | None = None  # None: found out

    @field_validator("label")
    @classmethod
    def _has_words(cls, label: str) -> str:
        if not any(map(str.isalnum, label)):
            raise wrong(f"is {shown(label)}", "the words of a label; signs and blanks do not count")
        return label


class FromCaption(Strict):
    """The caption above the rows."""

    caption: Literal[True]


class FromFile(Strict):
    """The name of the input."""

    file: Literal[True]


class FromSheet(Strict):
    """The name of the sheet."""

    sheet: Literal[True]


class FromRow(Strict):
    """The number of the row in its sheet."""

    row: Literal[True]


# Where a field's values come from instead of a column of its own. A kind of source is a class in this union, known by
# its first key.
Source = (
    Annotated[FromLabel, Tag(f"{KIND_OF}label")]
    | Annotated[FromCaption, Tag(f"{KIND_OF}caption")]
    | Annotated[FromFile, Tag(f"{KIND_OF}file")]
    | Annotated[FromSheet, Tag(f"{KIND_OF}sheet")]
    | Annotated[FromRow, Tag(f"{KIND_OF}row")]
    | Annotated[FromExpression, Tag(f"{KIND_OF}expression")]
    | Annotated[FromColumns, Tag(f"{KIND_OF}columns")]
    | Annotated[FromLookup, Tag(f"{KIND_OF}lookup")]
)
SOURCES: Final[dict[str, type[Strict]]] = {
    keys_of(kind)[0]: kind for kind in (get_args(one)[0] for one in get_args(Source))
}


def _source_kind(source: Any) -> str | None:
    """The tag of a source in the union."""
    known = keys_of(type(source)) if isinstance(source, Strict) else source
    kind = next((name for name in SOURCES if name in known), None)
    return None if kind is None else KIND_OF + kind


class OtherValue(Strict):
    """What a value becomes that `map` does not name."""

    value: PlainValue


class FieldSpec(Strict):
    """One column of the normalized table."""

    model_config = ConfigDict(serialize_by_alias=True)  # `from` is a word of Python's

    name: Annotated[str, Field(pattern=FIELD_NAME)]
    label: str | None = None
    type: FieldType = FieldType.TEXT
    required: bool = False
    optional: bool = False  # a file may lack its column
    max_blank_share: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None
    unique: bool = False
    synonyms: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    pattern: Annotated[str, Field(max_length=MAX_EXPRESSION)] | None = None
    clean: tuple[Clean, ...] = (Clean.STRIP,)
    formats: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = ()
    day_first: bool | None = None
    decimal: Literal[".", ","] | None = None
    unit: Literal["share", "percent"] | None = None
    min: Bound | None = None
    max: Bound | None = None
    min_length: Annotated[int, Field(ge=0)] | None = None
    max_length: Annotated[int, Field(ge=0)] | None = None
    allowed: Lookup | tuple[PlainValue, ...] | None = None
    default: PlainValue | None = None
    constant: PlainValue | None = None
    source: Annotated[Source, Discriminator(_source_kind)] | None = Field(default=None, alias="from")
    map: Annotated[dict[str, PlainValue], Field(min_length=1)] | None = None
    otherwise: (
        Annotated[Literal["finding", "keep", "blank"], Tag(f"{KIND_OF}word")]
        | Annotated[OtherValue, Tag(f"{KIND_OF}value")]
        | None
    ) = None
    merged: Literal["fill"] | None = None
    fill_down: bool = False  # blank cells take the value above
    severity: Literal["error", "warning"] = "error"
    number_format: Annotated[str, Field(max_length=100)] | None = None
    scale: Annotated[int, Field(ge=0, le=9)] | None = None  # digits behind the point in csv, jsonl and parquet
    description: Annotated[str, Field(max_length=2000)] | None = None  # for people, and evidence for mapping
    examples: Annotated[tuple[PlainValue, ...], Field(max_length=20)] = ()

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None and (problem := problem_with(pattern)) is not None:
            raise wrong(f"is not a regular expression: {problem}", "a Python regular expression")
        return pattern

    @field_validator("allowed", mode="before")
    @classmethod
    def _list_or_lookup(cls, allowed: Any) -> Any:
        what = 'a list of values, or {"lookup": an auxiliary input, "column": its column}'
        if isinstance(allowed, Lookup) or allowed is None:
            return allowed
        if isinstance(allowed, dict):
            if set(allowed) != {"lookup", "column"} or not all(isinstance(v, str) and v for v in allowed.values()):
                raise wrong(f"is {shown(allowed)}", what)
            return allowed
        if not isinstance(allowed, list | tuple) or not all(isinstance(v, str | int | float) for v in allowed):
            raise wrong(f"is {shown(allowed)}", what)
        if not allowed:
            raise wrong("is an empty list: no value would ever pass", what)
        return tuple(allowed)

    @field_validator("source", mode="before")
    @classmethod
    def _known_source(cls, source: Any) -> Any:
        if source is None or isinstance(source, Strict):
            return source
        what = f"an object with one of {', '.join(SOURCES)}"
        if not isinstance(source, dict):
            raise wrong(f"is {shown(source)}", what)
        kinds = [name for name in SOURCES if name in source]
        if len(kinds) != 1:
            guess = "" if kinds else nearest(next(iter(source), ""), SOURCES)
            raise wrong(f"is {shown(source)}{guess}", what)
        known = keys_of(SOURCES[kinds[0]])
        for key in source:
            if key not in known:
                raise wrong(f"is not a known key{nearest(key, known)}", f"known keys here: {', '.join(known)}", key)
        return source

    @field_validator("formats")
    @classmethod
    def _directives(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        for n, form in enumerate(formats):
            if "%" not in form:
                meant = directives(form)
                what = f"is {shown(form)}" + (f"; did you mean {meant}?" if meant else "")
                raise wrong(what, "strptime directives such as %Y-%m-%d", n)
        return formats

    @model_validator(mode="after")
    def _fills_own_column(self) -> Self:
        if self.fill_down and self.source is not None:
            raise wrong("is set together with from", "fill_down for a field with a column of its own", "fill_down")
        return self

    @model_validator(mode="after")
    def _fits_type(self) -> Self:
        if self.type is FieldType.ENUM and self.allowed is None:
            raise wrong("is missing", "an enum needs a list of values, or a lookup and its column", "allowed")
        only_for: dict[str, set[FieldType]] = {
            "formats": TEMPORAL,
            "day_first": {FieldType.DATE, FieldType.DATETIME},
            "decimal": NUMERIC,
            "scale": {FieldType.DECIMAL, FieldType.MONEY, FieldType.PERCENT},
            "unit": {FieldType.PERCENT},
        }
        for name, kinds in only_for.items():
            if getattr(self, name) not in (None, ()) and self.type not in kinds:
                raise wrong(f"does not go with type {self.type}", f"for {', '.join(sorted(kinds))}", name)
        self._check_pairs()
        self._check_map()
        self._check_values()
        return self

    def _check_pairs(self) -> None:
        """Refuse keys that contradict each other."""
        if self.required and self.optional:
            raise wrong("is set together with required", "required or optional, not both", "optional")
        others = (
            ("default", self.default),
            ("from", self.source),
            ("fill_down", self.fill_down or None),
            ("map", self.map),
        )
        for key, other in others:
            if self.constant is not None and other is not None:
                raise wrong("is set together with constant", f"constant or {key}, not both", key)

    def _check_values(self) -> None:
        """Refuse bounds and constants that the type cannot have."""
        for name in ("min", "max", "default", "constant"):
            value = getattr(self, name)
            if value is None:
                continue
            if name in ("min", "max") and self.type not in NUMERIC | TEMPORAL:
                raise wrong(f"does not go with type {self.type}", f"numbers and times; for text {name}_length", name)
            if wanted := fits(self.type, value):
                raise wrong(f"is {shown(value)}, which is not of type {self.type}", wanted, name)
        for low, high in (("min", "max"), ("min_length", "max_length")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise wrong(f"is {shown(least)}, above {high} {shown(most)}", f"at most {high}", low)

    def _check_map(self) -> None:
        if self.map is None:
            if self.otherwise is not None:
                raise wrong("is set without map", "what happens to values that map does not name", "otherwise")
            return
        folded = set[str]()
        for key in self.map:
            if key.strip().casefold() in folded:
                raise wrong("is in it twice", "values that differ by more than case and outer blanks", "map", key)
            folded.add(key.strip().casefold())
        allowed = {str(v).strip().casefold() for v in self.allowed} if isinstance(self.allowed, tuple) else None
        values = [(("map", key), value) for key, value in self.map.items()]
        if isinstance(self.otherwise, OtherValue):
            values.append((("otherwise", "value"), self.otherwise.value))
        for at, value in values:
            if wanted := fits(self.type, value):
                raise wrong(f"is {shown(value)}, which is not of type {self.type}", wanted, *at)
            if allowed is not None and str(value).strip().casefold() not in allowed:
                raise wrong(f"is {shown(value)}, which is not one of the allowed values", "one of allowed", *at)


_LETTERS = (
    ("yyyy", "%Y"), ("yy", "%y"), ("mmmm", "%B"), ("mmm", "%b"), ("dd", "%d"), ("hh24", "%H"), ("hh", "%H"),
    ("ss", "%S"), ("d", "%d"), ("h", "%H"),
)  # fmt: skip


def directives(form: str) -> str | None:
    """A format in the letters of spreadsheets and databases, DD.MM.YYYY, in directives; None if it is none."""
    out, at, text = "", 0, form.casefold()
    while at < len(text):
        letters = next((one for one in ("mm", "mi", "m") if text.startswith(one, at)), "")
        found = next(((name, made) for name, made in _LETTERS if text.startswith(name, at)), None)
        if found is None and letters:  # after hours and before seconds it is a minute
            is_minute = letters == "mi" or out.endswith(("%H:", "%H.")) or text[at + len(letters) :].startswith(":ss")
            found = letters, "%M" if is_minute else "%m"
        if found is None and text[at].isalpha() and text[at] != "t":
            return None
        out += found[1] if found else form[at]
        at += len(found[0]) if found else 1
    return out if "%" in out else None


class RowCount(Strict):
    """How many rows a job may have in its output."""

    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.min is None and self.max is None:
            raise wrong("has neither min nor max", "at least one of them")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise wrong(f"is {self.min}, above max {self.max}", "at most max", "min")
        return self


class RowRule(Strict):
    """A rule over the fields of one row, or over all rows; it has one of `then`, `check`, `unique`, `sum` and `rows`.

    `then` is checked where `when` holds (always, if there is no `when`). Both are one comparison:
    a field, an operator, and a constant or another field. `check` is an expression that must not be false.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
    when: "Comparison | None" = None
    then: "Comparison | None" = None
    check: ExpressionText | None = None
    unique: Annotated[tuple[FieldNameText, ...], Field(min_length=1, max_length=20)] | None = None
    sum: FieldNameText | None = None
    equals: (
        Annotated[Literal["total_row"], Tag(f"{KIND_OF}word")] | Annotated[FieldNameText, Tag(f"{KIND_OF}field")] | None
    ) = None
    tolerance: Annotated[float, Field(ge=0)] | None = None
    rows: RowCount | None = None
    message: Annotated[str, Field(max_length=200)] | None = None
    severity: Literal["error", "warning"] = "error"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [name for name in RULES if getattr(self, name) is not None]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none of them"
            raise wrong(f"has {found}", f"exactly one of {', '.join(RULES)}")
        if self.when is not None and kinds[0] not in ("then", "check"):
            raise wrong(f"does not go with {kinds[0]}", "for then and check: a row where when holds is checked", "when")
        if self.sum is not None and self.equals is None:
            raise wrong("is missing", 'with sum: "total_row", or a field that has the total', "equals")
        for name in ("equals", "tolerance"):
            if self.sum is None and getattr(self, name) is not None:
                raise wrong("is set without sum", "for sum", name)
        return self


RULES: Final = ("then", "check", "unique", "sum", "rows")


class Comparison(Strict):
    field: str
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "empty", "present"]
    value: Any = None
    other: str | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        unary = self.op in ("empty", "present")
        operands = (self.value is not None) + (self.other is not None)
        if operands != (0 if unary else 1):
            wants = "nothing beside field" if unary else "exactly one of value and other beside field"
            raise wrong(f"has {operands} of value and other with operator {self.op}", wants)
        if self.op in ("in", "not in") and not isinstance(self.value, list):
            raise wrong(f"is {shown(self.value)}", f"a list of values: operator {self.op} takes one", "value")
        return self


RowRule.model_rebuild()


def problem_with(pattern: str) -> str | None:
    """Why a regular expression does not compile; None if it does.

    Expressions are parsed here and compiled only in a box: compiling can cost far more than the expression is long (a
    case-insensitive class of 65,000 characters takes a millisecond, and a manifest has room for thousands). Parsing
    costs its length and finds every mistake but one, a look-behind of variable width, which is checked separately.
    """
    try:
        parsed = _parser.parse(pattern)
        return "look-behind requires fixed-width pattern" if _loose_lookbehind(parsed) else None
    except (re.error, RecursionError, OverflowError) as error:
        return str(error) or type(error).__name__


def _loose_lookbehind(parsed: Any) -> bool:
    for op, argument in parsed:
        if op in (_constants.ASSERT, _constants.ASSERT_NOT) and argument[0] < 0:
            low, high = argument[1].getwidth()
            if low != high:
                return True
        if any(_loose_lookbehind(inner) for inner in _inside(argument)):
            return True
    return False


def _inside(argument: Any) -> list[Any]:
    """The patterns nested in a part of a pattern."""
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [inner for one in argument for inner in _inside(one)]
    return []
