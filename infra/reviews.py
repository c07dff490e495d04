"""Reads the questions that a job published: `review.json`, bounded and tolerant of whatever is there."""

import json
from typing import Any

from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge
from core.ports import ObjectStore

REVIEW, PAGE = "review.json", "review.html"
REVIEW_FILES = (REVIEW, PAGE)
_LARGEST = 4 * 1024 * 1024
_MOST = 200
_TEXTS = ("id", "kind", "text")
_OPTIONAL = ("input", "sheet", "table", "column", "header", "field", "chosen")


def read_questions(store: ObjectStore, folder: str) -> list[dict[str, Any]]:
    """The questions in a job's folder; none if there is no review that can be read.

    Each has `id`, `kind`, `text`, the optional places, and `candidates` of `value`, `label`, `probability`, `reasons`.
    """
    try:
        review = json.loads(store.read(folder + REVIEW, limit=_LARGEST))
        questions = review["questions"][:_MOST]
    except (ObjectMissing, ObjectChanged, ObjectTooLarge, ValueError, TypeError, KeyError, RecursionError):
        return []
    return [q for raw in questions if (q := _question(raw)) is not None]


def _question(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in _TEXTS):
        return None
    candidates = raw.get("candidates")
    return {
        **{name: raw[name] for name in _TEXTS},
        **{name: raw[name] if isinstance(raw.get(name), str) else None for name in _OPTIONAL},
        "candidates": [
            c for one in (candidates if isinstance(candidates, list) else [])[:20] if (c := _candidate(one))
        ],
    }


def _candidate(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("value"), str | None):
        return None
    probability = raw.get("probability")
    reasons = raw.get("reasons")
    return {
        "value": raw.get("value"),
        "label": str(raw.get("label") or raw.get("value") or "none"),
        "probability": probability if isinstance(probability, int | float) else None,
        "reasons": [r for r in (reasons if isinstance(reasons, list) else [])[:20] if isinstance(r, dict)],
        **({"header": raw["header"]} if isinstance(raw.get("header"), str) else {}),
    }
