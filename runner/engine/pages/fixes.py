"""What to fix: the findings of an artifact, grouped by kind and column, each as a sentence in the sender's language."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.common.findings import AUTHOR_ENTRY
from runner.engine.pages.drawing import bounded, draw_setting, escape, where
from runner.engine.pages.messages import ENGLISH, Catalogue, catalogue

_MOST_CELLS: Final = 24  # of one group that are listed
_MOST_GROUPS: Final = 200
LONGEST_VALUE: Final = 80  # characters of a value that is shown
_CELL = re.compile(r"(?P<letters>[A-Z]{1,3})[0-9]{1,7}")

ShownValues = Mapping[int, str]  # by the number of the finding in the artifact


class Sentence(NamedTuple):
    """What is wrong, and what to do about it."""

    text: str
    fix: str = ""


class _Kind(NamedTuple):
    """What all findings of a group have in common; what is not known, or need not be named, is empty."""

    severity: str
    file: str
    sheet: str
    column: str  # its letters
    header: str
    field: str
    label: str  # of the field, for people
    code: str
    entry: str
    params: tuple[tuple[str, str | int], ...]
    message: str  # of its author; empty where the catalogue has a sentence
    rule: str


class _Group(NamedTuple):
    """The findings of a kind: two lists with one item for each of them."""

    cells: list[str]  # addresses, or the rows of findings about rows; empty for a finding about neither
    numbers: list[int]  # of the findings in the artifact


def sentence(finding: Mapping[str, Any], phrases: Catalogue, count: int = 1) -> Sentence:
    """Write a finding as a sentence in a language: by its code, and by its entry if the code has several sentences.

    A message that an author wrote stays as it is. `count`: how many findings the sentence is about.
    """
    code, entry = str(finding["code"]), str(finding.get("entry") or "")
    key = phrases.first_key(f"finding.{code}.{entry}", f"finding.{code}") or f"finding.{AUTHOR_ENTRY}"
    if entry == AUTHOR_ENTRY:
        key = f"finding.{AUTHOR_ENTRY}"
    fix = phrases.first_key(f"fix.{code}.{entry}", f"fix.{code}")
    params = {
        "count": count,
        "message": str(finding["message"]),
        "field": str(finding.get("field") or ""),
        "rule": str(finding.get("rule") or ""),
        **(finding.get("params") or {}),
    }
    return Sentence(phrases.fill(key, params), phrases.fill(fix, params) if fix and entry != AUTHOR_ENTRY else "")


def fixes(
    artifact: Mapping[str, Any],
    *,
    phrases: Catalogue | None = None,
    values: ShownValues | None = None,
    most: int = _MOST_GROUPS,
) -> str:
    """Draw what to fix as markup, by column, in the words of the sender: their header, their cells; empty if nothing is
    to fix.

    `values`: of the cells, if they may be shown. `most`: how many kinds are seen at once; the others are in a fold.
    """
    phrases = phrases or catalogue(ENGLISH)
    groups = _group_findings(artifact, phrases)
    if not groups:
        return ""
    counts = _exact_counts(artifact, groups)
    ordered = sorted(groups.items(), key=lambda item: _sort_key(item[0]))
    items, note = bounded(
        (_draw_group(kind, group, counts, phrases, values) for kind, group in ordered[:most]), phrases
    )
    folded, cut = bounded(
        (_draw_group(kind, group, counts, phrases, values) for kind, group in ordered[most:_MOST_GROUPS]), phrases
    )
    fold = ""
    if folded:
        title = escape(phrases("page.kinds.fold", count=min(len(ordered), _MOST_GROUPS) - most))
        fold = f'<details class="fold more"><summary>{title}</summary><ul class="fixes">{folded}</ul>{cut}</details>'
    notes = [phrases("page.kinds.more", count=len(groups) - _MOST_GROUPS)] if len(groups) > _MOST_GROUPS else []
    total, listed = artifact["validation"]["total"], artifact["validation"]["kept"]
    if listed < total and not _all_are_in_groups(artifact, counts):
        notes.append(phrases("page.listed", listed=listed, total=total))
    return f'<ul class="fixes">{items}</ul>{note}{fold}' + "".join(
        f'<p class="soft">{escape(line)}</p>' for line in notes
    )


def _group_findings(artifact: Mapping[str, Any], phrases: Catalogue) -> dict[_Kind, _Group]:
    """Group the errors and warnings of an artifact by kind."""
    places = _PlaceNames.of(artifact)
    groups: dict[_Kind, _Group] = {}
    for number, finding in enumerate(artifact["validation"]["findings"]):
        if _is_to_fix(finding):
            group = groups.setdefault(_kind_of(finding, places, phrases), _Group([], []))
            group.cells.append(_cell_or_row(finding, phrases))
            group.numbers.append(number)
    return groups


class _PlaceNames(NamedTuple):
    """How the places of findings are named to the sender."""

    headers: Mapping[tuple[str, str], str]  # by table and letters of the column
    labels: Mapping[str, str]  # by field
    with_file: bool  # there are several files, so each is named
    with_sheet: bool

    @classmethod
    def of(cls, artifact: Mapping[str, Any]) -> "_PlaceNames":
        """Learn from an artifact how places in the inputs of its job are named."""
        files = sum(source["role"] != "auxiliary" for source in artifact["inputs"])
        headers = {(part["table"], part["column"]): part["header"] or "" for part in artifact["mapping"]}
        labels = {str(part["field"]): str(part["label"]) for part in artifact["output"]["columns"] if part.get("label")}
        return cls(headers, labels, with_file=files > 1, with_sheet=len(artifact["sheets"]) > 1)


def _is_to_fix(finding: Mapping[str, Any]) -> bool:
    """Whether a finding is an error or a warning that says more than the verdict above the list."""
    repeats_verdict = finding["code"] in _VERDICTS and "entry" not in finding
    return finding["severity"] != "info" and not repeats_verdict


def _kind_of(finding: Mapping[str, Any], places: _PlaceNames, phrases: Catalogue) -> _Kind:
    """Return the kind that a finding is grouped by."""
    code, entry = str(finding["code"]), str(finding.get("entry") or "")
    address = _CELL.fullmatch(str(finding.get("cell") or ""))
    column = address["letters"] if address else ""
    is_author_text = entry == AUTHOR_ENTRY or f"finding.{code}" not in phrases or code in _OWN_WORDS
    return _Kind(
        severity=str(finding["severity"]),
        file=str(finding.get("input") or "") if places.with_file else "",
        sheet=str(finding.get("sheet") or "") if places.with_sheet else "",
        column=column,
        header=places.headers.get((finding.get("table", ""), column), ""),
        field=str(finding.get("field") or ""),
        label=places.labels.get(str(finding.get("field")), ""),
        code=code,
        entry=entry,
        params=tuple((finding.get("params") or {}).items()),
        message=str(finding["message"]) if is_author_text else "",
        rule=str(finding.get("rule") or ""),
    )


def _cell_or_row(finding: Mapping[str, Any], phrases: Catalogue) -> str:
    """Return the address of a finding's cell, or its row in words; empty without either, or if its sentence names the
    rows."""
    if finding.get("cell"):
        return str(finding["cell"])
    row, names_rows = finding.get("row"), "first" in (finding.get("params") or {})
    return phrases("page.row", row=row) if row and not names_rows else ""


_OWN_WORDS: Final = frozenset({"rule_issue", "rule_warning"})  # codes whose sentence is the message of a rule
_VERDICTS: Final = frozenset({"rows_rejected", "nothing_mapped"})  # codes that say no more than the verdict above


def _sort_key(kind: _Kind) -> tuple[object, ...]:
    """Return a key that sorts kinds: errors first, then as the columns are in the file."""
    return kind.severity != "error", kind.file, kind.sheet, len(kind.column), kind.column


def _exact_counts(artifact: Mapping[str, Any], groups: Mapping[_Kind, _Group]) -> Mapping[tuple[str, str, str], int]:
    """Count all findings, also those that are not listed, by code, severity and field.

    Only where one group has them all: of several groups the artifact does not say how many each has.
    """
    groups_by_total: dict[tuple[str, str, str], int] = {}
    for kind in groups:
        total = (kind.code, kind.severity, kind.field)
        groups_by_total[total] = groups_by_total.get(total, 0) + 1
    return {
        key: total["count"]
        for total in artifact["validation"]["totals"]
        if groups_by_total.get(key := (total["code"], total["severity"], total["field"] or "")) == 1
    }


def _all_are_in_groups(artifact: Mapping[str, Any], counts: Mapping[tuple[str, str, str], int]) -> bool:
    """Whether each error and warning is in a group, also those that the artifact only counts.

    `counts`: as `_exact_counts` returns them.
    """
    listed: dict[tuple[str, str, str], int] = {}
    for finding in artifact["validation"]["findings"]:
        total = (str(finding["code"]), str(finding["severity"]), str(finding.get("field") or ""))
        listed[total] = listed.get(total, 0) + 1
    return all(
        total["severity"] == "info" or key in counts or listed.get(key, 0) >= total["count"]
        for total in artifact["validation"]["totals"]
        for key in [(total["code"], total["severity"], total["field"] or "")]
    )


def _draw_group(
    kind: _Kind,
    group: _Group,
    counts: Mapping[tuple[str, str, str], int],
    phrases: Catalogue,
    values: ShownValues | None,
) -> str:
    """Draw a group as an item of the list: where, what, what to do, and its cells. `counts`: as `_exact_counts` returns
    them."""
    count = counts.get((kind.code, kind.severity, kind.field), len(group.cells))
    shown = {**kind._asdict(), "field": kind.label or kind.field}
    written = sentence({**shown, "params": dict(kind.params)}, phrases, count)
    place = escape(where({**shown, "input": kind.file, "row": None}, phrases))
    severity = escape(kind.severity)
    return (
        f'<li class="{severity}"><b class="{severity}-text">'
        f"{escape(phrases(f'page.{_severity_word(kind.severity)}'))}</b>"
        f'<div>{f"<span class=place>{place}</span>" if place else ""}<span class="says">{escape(written.text)}</span>'
        + (f'<span class="soft">{escape(written.fix)}</span>' if written.fix else "")
        + f"</div>{_draw_cells(group, count, phrases, values)}</li>"
    )


def _severity_word(severity: str) -> str:
    """Return what the list calls a severity: error, or warning for all others."""
    return "error" if severity == "error" else "warning"


def _draw_cells(group: _Group, count: int, phrases: Catalogue, values: ShownValues | None) -> str:
    """Draw the first cells of a group, each once and with its value if values are shown, and how many more there are.

    `count`: all findings of the group, listed in the artifact or not. Empty if none is about a cell or a row.
    """
    first_numbers: dict[str, int] = {}  # cell -> the number of its first finding
    for cell, number in zip(group.cells, group.numbers, strict=True):
        if cell:
            first_numbers.setdefault(cell, number)
    listed = list(first_numbers.items())[:_MOST_CELLS]
    if not listed:
        return ""
    more = max(count, len(first_numbers)) - len(listed)
    rest = f" {escape(phrases('page.cells.more', count=more))}" if more > 0 else ""
    drawn = [
        _draw_cell(cell, number, values, after="," * (n < len(listed))) for n, (cell, number) in enumerate(listed, 1)
    ]
    return f' <span class="cells">{" ".join(drawn)}{rest}</span>'


def _draw_cell(cell: str, number: int, values: ShownValues | None, *, after: str) -> str:
    """Draw a cell as markup, with the value that the finding of this number is about if values are shown.

    `after`: what follows it on the same line.
    """
    value = None if values is None else values.get(number)
    shown = f" {quoted(value)}" if value is not None else ""
    return f'<span class="cell"><code>{escape(cell)}</code>{shown}{after}</span>'


def quoted(value: str) -> str:
    """Quote a sender's value as markup: cut, without characters that nobody sees, and apart from the direction around
    it."""
    cut = value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 1] + "…"
    return f"<q><bdi>{escape(visible(cut))}</bdi></q>"


def visible(value: str) -> str:
    """Replace each character that is not one to see: control, format and bidi characters."""
    return value if value.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in value)


class FindingCells(NamedTuple):
    """The row of a finding in a table, as markup."""

    severity: str
    place: str
    sentence: str
    code: str
    remedy: str  # what settles it; empty for most findings


def finding_rows(
    findings: Sequence[Mapping[str, Any]], phrases: Catalogue, most: int, values: ShownValues | None
) -> list[FindingCells]:
    """Draw the first findings as rows of a table. `values`: of the cells, if they may be shown."""
    rows = []
    for number, finding in enumerate(findings[:most]):
        value = None if values is None else values.get(number)
        cell = escape(str(finding.get("cell") or ""))
        place = escape(where({**finding, "column": "", "row": None if cell else finding.get("row")}, phrases))
        remedy = draw_setting((finding.get("params") or {}).get("settle"), phrases)
        severity = {"error": "error", "warning": "warning"}.get(str(finding["severity"]), "note")
        rows.append(
            FindingCells(
                severity=escape(phrases(f"page.{severity}")),
                place=f"{place} {cell} {'' if value is None else quoted(value)}",
                sentence=escape(sentence(finding, phrases).text),
                code=f"<code>{escape(str(finding['code']))}</code>",
                remedy=remedy,
            )
        )
    return rows
