"""Reads artifact.json and review.json: unambiguous JSON that matches the schema."""

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from runner.engine.contract import Json, OutputName
from runner.engine.document_types import ArtifactDocument, ReviewDocument
from runner.engine.protocol import BadOutput

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_ELEMENTS: Final = 6_000_000  # commas and brackets: memory grows with them
_SCHEMAS: Final[dict[str, Path]] = {
    name: Path(__file__).parents[1] / name.replace(".json", ".schema.json")
    for name in (OutputName.ARTIFACT, OutputName.REVIEW)
}
_NAME = re.compile(r'"([a-z_0-9]{1,40})":')
_DEEP: Final = 8  # steps of a path shown in a message


def read_artifact(raw: bytes) -> ArtifactDocument:
    """Read an artifact that matches its schema; raises BadOutput."""
    artifact: ArtifactDocument = read_document(raw, OutputName.ARTIFACT)
    return artifact


def read_review(raw: bytes) -> ReviewDocument:
    """Read a review that matches its schema; raises BadOutput."""
    review: ReviewDocument = read_document(raw, OutputName.REVIEW)
    return review


def read_document(raw: bytes, name: OutputName = OutputName.ARTIFACT) -> Any:
    """Read a document of an output; raises BadOutput if it is too large, is ambiguous JSON or does not match its
    schema."""
    if len(raw) > MAX_BYTES:
        raise BadOutput(f"{name} is over {MAX_BYTES} bytes")
    if sum(map(raw.count, (b",", b"[", b"{"))) > MAX_ELEMENTS:
        raise BadOutput(f"{name} has more than {MAX_ELEMENTS} elements")
    try:
        document = json.loads(
            raw.decode(), parse_constant=_no_constant, parse_float=_parse_finite, object_pairs_hook=_without_twins
        )
        if b"\\u" in raw:  # the only source of unpaired surrogates
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BadOutput(f"{name} is not unambiguous JSON") from None
    try:
        validator(name).validate(document)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise BadOutput(f"{name} does not match its schema at {_describe_place(error, name)}") from None
    return document


@cache
def validator(name: OutputName = OutputName.ARTIFACT) -> jsonschema_rs.Validator:
    """Return what checks a document against its schema; made once."""
    return jsonschema_rs.validator_for(json.loads(_SCHEMAS[name].read_text()))


@cache
def _known_names(name: str) -> frozenset[str]:
    """Return the keys that a schema names."""
    return frozenset(_NAME.findall(_SCHEMAS[name].read_text()))


def _describe_place(error: Exception, name: str) -> str:
    """Describe where the schema does not match, in the schema's own words: other keys are text from the box."""
    steps = list(getattr(error, "instance_path", []))
    shown = [str(step) if isinstance(step, int) or step in _known_names(name) else "…" for step in steps[:_DEEP]]
    return "/" + "/".join(shown)


def _no_constant(_: str) -> None:
    """Refuse NaN and Infinity, which are not JSON."""
    raise ValueError


def _parse_finite(text: str) -> float:
    """Parse a number of a document; raises ValueError for one that is too large."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _without_twins(pairs: list[tuple[str, object]]) -> Json:
    """Make an object of its members; refuses one with a key twice, which readers would read differently."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members
