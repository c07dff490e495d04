"""Artifacts in plain sentences, with care: a box wrote them, and a config of strangers may have had its hand in it."""

import json
from pathlib import Path

from runner.engine.explain import explain

_LIMIT = 256 * 1024 * 1024


def explained(path: Path) -> list[str]:
    """The decisions of a job, one sentence a line; nothing where there is no artifact."""
    try:
        if path.stat().st_size > _LIMIT:
            return [f"{path.name} is too large to be explained here; open report.html"]
        return explain(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{path.name} does not have the shape of an artifact"]
