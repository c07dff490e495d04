"""Writes a manifest's fields as a contract of another tool."""

import json
from collections.abc import Callable, Mapping
from typing import Final

import yaml

from console.contracts import frictionless, json_schema, odcs, sql_tables
from core.manifests import Manifest


def _as_json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _as_yaml(document: object) -> str:
    written: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return written


EXPORTS: Final[Mapping[str, Callable[[Manifest], str]]] = {
    "jsonschema": lambda manifest: _as_json(json_schema.exported(manifest)),
    "odcs": lambda manifest: _as_yaml(odcs.exported(manifest)),
    "frictionless": lambda manifest: _as_json(frictionless.exported(manifest)),
    "postgres": sql_tables.exported,
}


def exported(manifest: Manifest, to: str) -> str:
    """The contract as a text; `to` is one of EXPORTS."""
    return EXPORTS[to](manifest)
