"""What answers change: two rehearsals of one job, compared by what people ask about."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from console.web.rehearsals import Rehearsal

_MISSHAPEN = (ValueError, TypeError, KeyError, AttributeError)
_MOST = 60


class AnswerChange(NamedTuple):
    what: str
    before: str
    after: str


def changes(before: Rehearsal, after: Rehearsal) -> list[AnswerChange]:
    """Only what differs; an artifact that cannot be understood is as good as none."""
    lines = [AnswerChange("The job", _end(before), _end(after))]
    lines += _differences(_columns(before.artifact), _columns(after.artifact), "no field")
    lines += _differences(_counts(before.artifact), _counts(after.artifact), "0")
    return [one for one in lines if one.before != one.after][:_MOST]


def _end(done: Rehearsal) -> str:
    questions = (done.review or {}).get("questions")
    if isinstance(questions, list) and questions:
        return f"asks {len(questions)} more" if len(questions) > 1 else "asks one more"
    return "writes a result" if done.job.error is None else str(done.job.error.verdict).replace("_", " ")


def _differences(before: Mapping[str, str], after: Mapping[str, str], nothing: str) -> list[AnswerChange]:
    names = list(dict.fromkeys([*before, *after]))
    return [AnswerChange(name, before.get(name, nothing), after.get(name, nothing)) for name in names]


def _columns(artifact: Mapping[str, Any] | None) -> dict[str, str]:
    try:
        return {
            f"Column {one['column']}" + (f" “{one['header']}”" if one["header"] else ""): str(
                one["target"] or "no field"
            )
            for one in (artifact or {}).get("mapping") or ()
        }
    except _MISSHAPEN:
        return {}


def _counts(artifact: Mapping[str, Any] | None) -> dict[str, str]:
    if artifact is None:
        return {}
    try:
        summary, findings = artifact["summary"], artifact["validation"]["findings"]
        counted = Counter(f"{one['severity'].capitalize()}s, {one['code']}" for one in findings)
        rows = {"Rows written": f"{int(summary['rows_out']):,}"}
    except _MISSHAPEN:
        return {}
    return rows | {name: f"{n:,}" for name, n in sorted(counted.items()) if not name.startswith("Info")}
