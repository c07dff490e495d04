"""What an artifact says, ready for a page. An artifact is untrusted: whatever is wrong with it, the page is shown."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from runner.engine.pages import drawing
from runner.engine.pages.fixes import fixes
from runner.engine.pages.messages import catalogue

_PAGE = 100
_SURE = 0.85  # from here on a bar is green
_PLAUSIBLE = 0.3
_FIXES = 5  # kinds of what to fix that are seen at once
_NOTHING = Markup("")
_MISSHAPEN = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings a viewer asked for; empty is any."""

    severity: str = ""
    code: str = ""
    field: str = ""
    column: str = ""
    start: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "FindingFilter":
        start = query.get("start", "")
        words = {name: query.get(name, "")[:200] for name in ("severity", "code", "field", "column")}
        return cls(**words, start=int(start) if start.isdecimal() and len(start) < 8 else 0)

    @property
    def is_set(self) -> bool:
        return self != FindingFilter()

    def as_query(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("severity", "code", "field", "column")}

    def holds(self, finding: Mapping[str, Any]) -> bool:
        column = str(finding.get("cell") or "").rstrip("0123456789")
        return (
            self.severity in ("", finding.get("severity"))
            and self.code in ("", finding.get("code"))
            and self.field in ("", finding.get("field"))
            and self.column in ("", column)
        )


@dataclass(frozen=True, slots=True)
class FindingList:
    shown: list[dict[str, object]]
    fitting: int
    total: int
    start: int
    following: int | None  # where the next page starts
    previous: int | None
    severities: dict[str, int]
    codes: dict[str, int]
    fields: dict[str, int]
    sheets: int  # that the findings are in


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts of an artifact as they are drawn; `trouble` says why there are none."""

    trouble: str = ""
    summary: Mapping[str, Any] | None = None
    doubtful: Markup = _NOTHING  # columns that a person may want to check, and how many
    doubts: int = 0
    certain: Markup = _NOTHING  # the others
    certainties: int = 0
    grids: Markup = _NOTHING
    readings: Markup = _NOTHING
    fixes: Markup = _NOTHING
    drift: Markup = _NOTHING
    findings: FindingList | None = None
    decided_by: str = ""
    memories: tuple[str, ...] = ()
    passes: tuple[tuple[str, float], ...] = ()
    heads: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # header rows by sheet


def explanation(artifact: Mapping[str, Any] | None, wanted: FindingFilter, *, link: str = "") -> Explanation | None:
    """What to show of an artifact; None: there is none. `link`: where the marks of the grid lead."""
    if artifact is None:
        return None
    try:
        return _explained(artifact, wanted, link)
    except _MISSHAPEN:
        return Explanation(trouble="artifact.json is not one that this version understands; download it instead")


def fixes_for_senders(artifact: Mapping[str, Any] | None, language: str) -> Markup:
    """What to fix, in a language; nothing where an artifact does not say."""
    try:
        return _NOTHING if artifact is None else _drawn(fixes(artifact, phrases=catalogue(language), most=_FIXES))
    except _MISSHAPEN:
        return _NOTHING


def _explained(artifact: Mapping[str, Any], wanted: FindingFilter, link: str) -> Explanation:
    decision = artifact.get("decision") or {}
    doubtful = [one for one in artifact["mapping"] if _is_doubtful(one)]
    certain = [one for one in artifact["mapping"] if not _is_doubtful(one)]
    return Explanation(
        summary=artifact["summary"],
        doubtful=_columns(artifact, doubtful),
        doubts=len(doubtful),
        certain=_columns(artifact, certain),
        certainties=len(certain),
        grids=_drawn(drawing.grids(artifact, link=link)),
        readings=_drawn(drawing.readings(artifact)),
        fixes=_drawn(fixes(artifact, most=_FIXES)),
        drift=_drawn(drawing.drift(artifact)),
        findings=_findings(artifact["validation"], wanted),
        decided_by=str(decision.get("by") or ""),
        memories=tuple(str(one["key"]) for one in artifact.get("memories") or ()),
        heads=_heads(artifact["sheets"]),
        passes=tuple((str(one["pass"]), float(one["seconds"])) for one in artifact["pass_history"]),
    )


def _heads(sheets: Any) -> dict[str, tuple[int, ...]]:
    return {
        str(sheet["name"]): tuple(int(row) for table in sheet["tables"][:3] for row in table["header_rows"][:3])
        for sheet in sheets[:20]
        if not sheet.get("skipped")
    }


def _is_doubtful(column: Mapping[str, Any]) -> bool:
    """Whether a column's field is less than sure, or it has none and could well be one."""
    if column["target"]:
        return drawing.share(column) < _SURE
    return any(drawing.share(one) >= _PLAUSIBLE for one in column["runners_up"])


def _columns(artifact: Mapping[str, Any], some: list[Any]) -> Markup:
    return _drawn(drawing.columns({**artifact, "mapping": some})) if some else _NOTHING


def _drawn(html: str) -> Markup:
    return Markup(html)  # noqa: S704 - the engine's drawings escape every text


def _findings(validation: Mapping[str, Any], wanted: FindingFilter) -> FindingList:
    listed = [one for one in validation["findings"] if isinstance(one, dict)]
    fitting = [one for one in listed if wanted.holds(one)]
    start = min(wanted.start, max(0, len(fitting) - 1))
    end = start + _PAGE
    return FindingList(
        shown=fitting[start:end],
        fitting=len(fitting),
        total=int(validation["total"]),
        start=start,
        following=end if end < len(fitting) else None,
        previous=max(0, start - _PAGE) if start else None,
        severities=dict(Counter(str(one["severity"]) for one in listed)),
        codes=dict(Counter(str(one["code"]) for one in listed).most_common(50)),
        fields=dict(Counter(str(one["field"]) for one in listed if one.get("field")).most_common(100)),
        sheets=len({(str(one.get("input")), str(one.get("sheet"))) for one in listed if one.get("sheet")}),
    )
