"""Artifacts as plain sentences. An artifact is untrusted: a box wrote it, perhaps under a hostile config."""

import json
from pathlib import Path

from core.errors import AdeError
from core.ports import ObjectStore
from runner.engine.pages.explain import explain, left_out, reading

_LIMIT = 256 * 1024 * 1024
_STATUS_LIMIT = 64 * 1024 * 1024
_LINES = 20  # of each kind, for a job's status


def explained(path: Path) -> list[str]:
    """The decisions of a job, one sentence per line; nothing without an artifact."""
    try:
        if path.stat().st_size > _LIMIT:
            return [f"{path.name} is too large to explain here; open report.html"]
        return explain(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{path.name} is not a valid artifact"]


def accounted(store: ObjectStore, key: str) -> tuple[list[str], list[str]]:
    """What a published artifact says was left out, and the choices between readings; a few lines of each."""
    try:
        artifact = json.loads(store.read(key, limit=_STATUS_LIMIT))
        many = len(artifact["sheets"]) > 1
        gone = [
            f"{sheet['name']}: {line}" if many else line for sheet in artifact["sheets"] for line in left_out(sheet)
        ]
        made = [reading(one) for one in sorted(artifact["readings"], key=lambda one: bool(one["sure"]))]
    except AdeError:  # gone or unavailable: show the row's own counts only
        return [], []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{key} is not a valid artifact"], []
    return _first(gone), _first(made)


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - _LINES
    return lines[:_LINES] + ([f"{more} more in artifact.json"] if more > 0 else [])
