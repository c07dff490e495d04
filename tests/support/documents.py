"""Documents that programs read, compared with their published schemas."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from core.ports import ObjectStore

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
DOCUMENTS = ("result", "status", "rejected", "latest")


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / f"{name}.schema.json").read_text())
    return found


@cache
def _closed(name: str) -> jsonschema_rs.Draft202012Validator:
    """A schema without the freedom to add keys: what we write today is all described."""
    return jsonschema_rs.Draft202012Validator({**schema(name), "additionalProperties": False})


def check_document(name: str, document: object) -> None:
    """Raise an AssertionError if a document is not as the schema of its name says."""
    problems = [f"{error.instance_path}: {error.message}" for error in _closed(name).iter_errors(document)]
    assert not problems, f"{name}.json is not as docs/reference/{name}.schema.json says: {problems}"


def check_all(store: ObjectStore) -> None:
    """Check every such document below `outputs/` that is one of ours; tests put others in their place."""
    for key in store.keys("outputs/"):
        name = key.rpartition("/")[2].removesuffix(".json")
        if name in DOCUMENTS and key.endswith(".json"):
            try:
                document = json.loads(store.read(key, limit=1 << 24))
            except ValueError:
                continue
            by_hand = isinstance(document, dict) and document.keys() <= {"latest", "job_id", "order"}
            if isinstance(document, dict) and document.get(name) == 1 and not by_hand:
                check_document(name, document)
