"""The declared part of a workflow: fields, their types and the rules on them."""

import re
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

FIELD_NAME = r"^[A-Za-z_][A-Za-z0-9_ .-]{0,99}$"


class Strict(BaseModel):
    """Unknown keys are refused: a typo must not silently do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


class Lookup(Strict):
    """Allowed values that stand in a column of an auxiliary input."""

    lookup: Annotated[str, Field(min_length=1)]
    column: Annotated[str, Field(min_length=1)]


class FieldSpec(Strict):
    """One column of the normalized table."""

    name: Annotated[str, Field(pattern=FIELD_NAME)]
    label: str | None = None
    type: FieldType = FieldType.TEXT
    required: bool = False
    unique: bool = False
    synonyms: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    pattern: str | None = None
    clean: tuple[Clean, ...] = (Clean.STRIP,)
    formats: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = ()
    day_first: bool | None = None
    decimal: Literal[".", ","] | None = None
    min: int | float | str | None = None
    max: int | float | str | None = None
    min_length: Annotated[int, Field(ge=0)] | None = None
    max_length: Annotated[int, Field(ge=0)] | None = None
    allowed: Lookup | tuple[str | int | float | bool, ...] | None = None
    default: str | int | float | bool | None = None
    severity: Literal["error", "warning"] = "error"
    number_format: Annotated[str, Field(max_length=100)] | None = None

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"is no regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _fits_type(self) -> Self:
        if self.type is FieldType.ENUM and self.allowed is None:
            raise ValueError("an enum field needs `allowed`: a list of values, or a lookup and its column")
        if self.formats and self.type not in TEMPORAL:
            raise ValueError(f"`formats` is for {', '.join(sorted(TEMPORAL))}, not {self.type}")
        for name in ("min", "max"):
            bound = getattr(self, name)
            if bound is None:
                continue
            if self.type in NUMERIC and isinstance(bound, str):
                raise ValueError(f"`{name}` of a {self.type} field is a number")
            if self.type in TEMPORAL and not isinstance(bound, str):
                raise ValueError(f"`{name}` of a {self.type} field is an ISO 8601 text")
            if self.type not in NUMERIC | TEMPORAL:
                raise ValueError(f"`{name}` is for numbers and times; for text use `{name}_length`")
        return self


class RowRule(Strict):
    """A rule over several fields of one row.

    `then` is checked where `when` holds (always, if there is no `when`). Both are one comparison:
    a field, an operator, and a constant or another field.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
    when: "Comparison | None" = None
    then: "Comparison"
    message: Annotated[str, Field(max_length=200)] | None = None
    severity: Literal["error", "warning"] = "error"


class Comparison(Strict):
    field: str
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "empty", "present"]
    value: Any = None
    other: str | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        unary = self.op in ("empty", "present")
        given = (self.value is not None) + (self.other is not None)
        if given != (0 if unary else 1):
            wants = "nothing" if unary else "exactly one of `value` and `other`"
            raise ValueError(f"operator {self.op!r} takes {wants} beside `field`")
        if self.op in ("in", "not in") and not isinstance(self.value, list):
            raise ValueError(f"operator {self.op!r} takes a list in `value`")
        return self


RowRule.model_rebuild()
