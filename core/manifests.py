"""Manifest v1: what a sender writes to say what should happen to which spreadsheets."""

import json
from datetime import UTC, datetime
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from core.errors import ManifestInvalid, Problem
from core.fields import FieldSpec, Lookup, RowRule, Strict

MAX_MANIFEST_BYTES = 1024 * 1024
MAX_SWEEP = 1000
SHARED_PREFIX = "configs/_shared/"

Scalar = str | int | float | bool | None
Pattern = Annotated[str, Field(min_length=1, max_length=500)]


def _inside(path: str) -> str:
    """Keep a path below the folder it is relative to."""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or ".." in parts or "\0" in path:
        raise ValueError("must stay below its own folder: no leading '/', no '..', no backslash")
    return path


class Auxiliary(Strict):
    """A look-up table: pinned when the job is made, never a trigger.

    `path` is relative to the manifest's folder, or a whole key: `inbox/<own tenant>/…`, `configs/<own tenant>/…`
    or `configs/_shared/…`.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
    path: Pattern
    required: bool = True

    _path_inside = field_validator("path")(_inside)


class Inputs(Strict):
    primary: Annotated[tuple[Pattern, ...], Field(min_length=1)] = ("*.xlsx", "*.csv")
    auxiliary: tuple[Auxiliary, ...] = ()
    per: Literal["file", "drop"] = "file"

    @field_validator("primary")
    @classmethod
    def _all_inside(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if pattern.split("/")[0] in ("inbox", "outputs", "configs", "work"):
                raise ValueError("patterns are relative to the manifest's own folder, not keys of the bucket")
        return tuple(_inside(pattern) for pattern in patterns)

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        names = [a.name for a in self.auxiliary]
        if len(set(names)) != len(names):
            raise ValueError("auxiliary names must differ from each other")
        return self


class Mapping(Strict):
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    unmapped: Literal["keep", "prefix", "drop"] = "keep"


class Reading(Strict):
    """Which parts of a workbook count: hidden sheets, rows and columns."""

    sheets: tuple[Pattern, ...] = ("*",)
    hidden_sheets: Literal["skip", "read"] = "skip"
    hidden_rows: Literal["skip", "read"] = "read"
    hidden_columns: Literal["skip", "read"] = "read"


class Output(Strict):
    sheet: Annotated[str, Field(min_length=1, max_length=31, pattern=r"^[^\[\]:*?/\\]+$")] = "Normalized"
    findings_sheet: bool = False
    header: Literal["name", "label"] = "name"


class Schedule(Strict):
    """Selects by the data's own time, so that history can be replayed with the right meaning."""

    start_time: datetime | None = None
    end_time: datetime | None = None

    @field_validator("start_time", "end_time")
    @classmethod
    def _zoned(cls, at: datetime | None) -> datetime | None:
        return zoned(at)

    def holds(self, at: float) -> bool:
        after = self.start_time is None or at >= self.start_time.timestamp()
        return after and (self.end_time is None or at < self.end_time.timestamp())


class Limits(Strict):
    """What a job may use; the settings cap what is asked for. None: the setting itself."""

    timeout_seconds: Annotated[int, Field(ge=1)] | None = None
    cpu_seconds: Annotated[int, Field(ge=1)] | None = None
    memory_mb: Annotated[int, Field(ge=64)] | None = None
    file_mb: Annotated[int, Field(ge=1)] | None = None


class Manifest(Strict):
    """One workflow. Only `manifest`, `name` and one of `fields` or `config` are required."""

    manifest: Literal[1]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    inputs: Inputs = Inputs()
    subscribe: tuple[Pattern, ...] = ()
    config: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    fields: tuple[FieldSpec, ...] = ()
    rules: tuple[RowRule, ...] = ()
    mapping: Mapping = Mapping()
    reading: Reading = Reading()
    output: Output = Output()
    on_rule_error: Literal["finding", "fail"] = "finding"
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

    @field_validator("data_time", "not_before")
    @classmethod
    def _zoned(cls, at: datetime | None) -> datetime | None:
        return zoned(at)

    @field_validator("subscribe")
    @classmethod
    def _subscribe_inside(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_inside(pattern) for pattern in patterns)

    @field_validator("config")
    @classmethod
    def _config_place(cls, place: str | None) -> str | None:
        if place is None or place == ".":
            return place
        place = _inside(place.removeprefix("./"))
        if place.startswith("configs/") and not place.startswith(SHARED_PREFIX):
            raise ValueError("may name only its own folder or configs/_shared/<name>")
        return place

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.fields and self.config is None:
            raise ValueError("one of `fields` or `config` is required")
        names = [f.name.casefold() for f in self.fields]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"field names must differ from each other: {', '.join(twice)}")
        known = {f.name for f in self.fields}
        for rule in self.rules:
            for side in (rule.when, rule.then):
                for name in (side.field, side.other) if side else ():
                    if name is not None and name not in known:
                        raise ValueError(f"rule {rule.name!r} names no declared field: {name}")
        aux = {a.name for a in self.inputs.auxiliary}
        for f in self.fields:
            if isinstance(f.allowed, Lookup) and f.allowed.lookup not in aux:
                raise ValueError(f"field {f.name!r} looks up {f.allowed.lookup!r}, which is no auxiliary input")
        if both := sorted(set(self.params) & set(self.sweep)):
            raise ValueError(f"a parameter stands in `params` or in `sweep`, not in both: {', '.join(both)}")
        size = 1
        for values in self.sweep.values():
            size *= len(values)
        if size > MAX_SWEEP:
            raise ValueError(f"the sweep makes {size} jobs per input; at most {MAX_SWEEP}")
        return self

    def param_sets(self) -> list[dict[str, Scalar]]:
        """Every combination of the sweep, over the fixed parameters; one set where there is no sweep."""
        names = sorted(self.sweep)
        return [
            {**self.params, **dict(zip(names, values, strict=True))}
            for values in product(*(self.sweep[n] for n in names))
        ]


def zoned(at: datetime | None) -> datetime | None:
    """A time without a zone means UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def parse_manifest(body: bytes) -> Manifest:
    """Validate a manifest's bytes; raise ManifestInvalid with one problem per mistake."""
    if len(body) > MAX_MANIFEST_BYTES:
        raise ManifestInvalid([Problem("$", f"is {len(body)} bytes", f"at most {MAX_MANIFEST_BYTES} bytes")])
    try:
        raw = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 (byte {error.start})"
        raise ManifestInvalid([Problem("$", problem, "a JSON object in UTF-8")]) from None
    except (ValueError, RecursionError) as error:
        raise ManifestInvalid([Problem("$", f"is no JSON: {error}", "a JSON object in UTF-8")]) from None
    if not isinstance(raw, dict):
        raise ManifestInvalid([Problem("$", f"is a JSON {type(raw).__name__}", "a JSON object")])
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        raise ManifestInvalid([_problem(e) for e in error.errors(include_url=False)]) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        names = [k for k, _ in pairs]
        raise ValueError(f"key stands twice: {next(n for n in names if names.count(n) > 1)}")
    return seen


def _problem(error: ErrorDetails) -> Problem:
    loc = [part for part in error["loc"] if not (isinstance(part, str) and part.startswith(("tuple[", "function-")))]
    path = "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc)
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return Problem(path, "is no known key", "known keys are in docs/manifest.schema.json")
    if kind == "missing":
        return Problem(path, "is missing", "this key is required")
    if kind == "value_error":
        return Problem(path, str(context.get("error", error["msg"])), "see docs/manifest.md")
    allowed = str(context.get("expected") or context.get("pattern") or error["msg"])
    return Problem(path, error["msg"], allowed)


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of manifest v1, for editors; exported to docs/."""
    schema = Manifest.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "ade-drop manifest v1",
    }
