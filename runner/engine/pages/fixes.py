"""What to fix: the findings of an artifact, grouped by kind and column, each as a sentence in the sender's language."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.common.findings import AUTHOR_ENTRY
from runner.engine.pages.drawing import bounded, escape, where
from runner.engine.pages.messages import ENGLISH, Catalogue, catalogue

_CELLS: Final = 24  # of one group that are listed
_GROUPS: Final = 200
LONGEST_VALUE: Final = 80  # characters of a value that is shown
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")

ShownValues = Mapping[int, str]  # by the number of the finding in the artifact


class Sentence(NamedTuple):
    """What is wrong, and what to do about it."""

    text: str
    fix: str = ""


class _Kind(NamedTuple):
    """What all findings of a group have in common."""

    severity: str
    file: str
    sheet: str
    column: str
    header: str
    field: str
    code: str
    entry: str
    params: tuple[tuple[str, str | int], ...]
    message: str  # of its author, if nobody else says it
    rule: str


class _Group(NamedTuple):
    """The findings of a kind."""

    cells: list[str]  # addresses, or the rows of findings about rows
    numbers: list[int]  # of the findings in the artifact


def sentence(finding: Mapping[str, Any], words: Catalogue, count: int = 1) -> Sentence:
    """A finding in a language: by its code, and by its entry if the code has several sentences."""
    code, entry = str(finding["code"]), str(finding.get("entry") or "")
    key = words.first_key(f"finding.{code}.{entry}", f"finding.{code}") or f"finding.{AUTHOR_ENTRY}"
    if entry == AUTHOR_ENTRY:
        key = f"finding.{AUTHOR_ENTRY}"
    fix = words.first_key(f"fix.{code}.{entry}", f"fix.{code}")
    params = {
        "count": count,
        "message": str(finding["message"]),
        "field": str(finding.get("field") or ""),
        "rule": str(finding.get("rule") or ""),
        **(finding.get("params") or {}),
    }
    return Sentence(words.fill(key, params), words.fill(fix, params) if fix and entry != AUTHOR_ENTRY else "")


def fixes(artifact: Mapping[str, Any], *, words: Catalogue | None = None, values: ShownValues | None = None) -> str:
    """What to fix, by column, in the words of the sender: their header, their cells. `values`: to be shown."""
    words = words or catalogue(ENGLISH)
    groups = _grouped(artifact, words)
    if not groups:
        return ""
    counts = _exact_counts(artifact, groups)
    ordered = sorted(groups.items(), key=lambda item: _order(item[0]))
    items, note = bounded((_item(kind, group, counts, words, values) for kind, group in ordered[:_GROUPS]), words)
    notes = [words("page.kinds.more", count=len(groups) - _GROUPS)] if len(groups) > _GROUPS else []
    total, listed = artifact["validation"]["total"], artifact["validation"]["kept"]
    if listed < total:
        notes.append(words("page.listed", listed=listed, total=total))
    return f'<ul class="fixes">{items}</ul>{note}' + "".join(f'<p class="soft">{escape(line)}</p>' for line in notes)


def _grouped(artifact: Mapping[str, Any], words: Catalogue) -> dict[_Kind, _Group]:
    """Errors and warnings by kind."""
    headers = {(m["table"], m["column"]): m["header"] or "" for m in artifact["mapping"]}
    is_one = sum(source["role"] != "auxiliary" for source in artifact["inputs"]) < 2  # file, so it need not be named
    has_sheets = len(artifact["sheets"]) > 1
    groups: dict[_Kind, _Group] = {}
    for number, finding in enumerate(artifact["validation"]["findings"]):
        if finding["severity"] == "info" or (finding["code"] in _VERDICTS and "entry" not in finding):
            continue
        cell, code = str(finding.get("cell") or ""), str(finding["code"])
        found = _CELL.fullmatch(cell)
        column = found[1] if found else ""
        entry = str(finding.get("entry") or "")
        own = entry == AUTHOR_ENTRY or f"finding.{code}" not in words or code in _OWN_WORDS
        params = finding.get("params") or {}
        kind = _Kind(
            severity=str(finding["severity"]),
            file="" if is_one else str(finding.get("input") or ""),
            sheet=str(finding.get("sheet") or "") if has_sheets else "",
            column=column,
            header=headers.get((finding.get("table", ""), column), ""),
            field=str(finding.get("field") or ""),
            code=code,
            entry=entry,
            params=tuple(params.items()),
            message=str(finding["message"]) if own else "",
            rule=str(finding.get("rule") or ""),
        )
        group = groups.setdefault(kind, _Group([], []))
        row = finding.get("row")
        group.cells.append(cell or (words("page.row", row=row) if row and "first" not in params else ""))
        group.numbers.append(number)
    return groups


_OWN_WORDS: Final = frozenset({"rule_issue", "rule_warning"})  # codes whose sentence is the message of a rule
_VERDICTS: Final = frozenset({"rows_rejected", "nothing_mapped"})  # codes that say no more than the verdict above


def _order(kind: _Kind) -> tuple[object, ...]:
    """Errors first; then as the columns are in the file."""
    return kind.severity != "error", kind.file, kind.sheet, len(kind.column), kind.column


def _exact_counts(artifact: Mapping[str, Any], groups: Mapping[_Kind, _Group]) -> Mapping[tuple[str, str, str], int]:
    """How many findings a group has in all, also those that are not listed, if it is the only one of its total."""
    alone: dict[tuple[str, str, str], int] = {}
    for kind in groups:
        total = (kind.code, kind.severity, kind.field)
        alone[total] = alone.get(total, 0) + 1
    return {
        key: total["count"]
        for total in artifact["validation"]["totals"]
        if alone.get(key := (total["code"], total["severity"], total["field"] or "")) == 1
    }


def _item(
    kind: _Kind,
    group: _Group,
    counts: Mapping[tuple[str, str, str], int],
    words: Catalogue,
    values: ShownValues | None,
) -> str:
    """A group as an item of the list: where, what, what to do, and its cells."""
    count = counts.get((kind.code, kind.severity, kind.field), len(group.cells))
    sentences = sentence({**kind._asdict(), "params": dict(kind.params)}, words, count)
    place = escape(where({**kind._asdict(), "input": kind.file, "row": None}, words))
    severity = escape(kind.severity)
    return (
        f'<li class="{severity}"><b class="{severity}-text">{escape(words(f"page.{_word(kind.severity)}"))}</b>'
        f'<div>{f"<span class=place>{place}</span>" if place else ""}<span class="says">{escape(sentences.text)}</span>'
        + (f'<span class="soft">{escape(sentences.fix)}</span>' if sentences.fix else "")
        + f"</div>{_cells(group, count, words, values)}</li>"
    )


def _word(severity: str) -> str:
    return "error" if severity == "error" else "warning"


def _cells(group: _Group, count: int, words: Catalogue, values: ShownValues | None) -> str:
    """The cells of a group, each with its value if values are shown."""
    shown: dict[str, int] = {}
    for cell, number in zip(group.cells, group.numbers, strict=True):
        if cell:
            shown.setdefault(cell, number)
    listed = [_cell(cell, number, values) for cell, number in list(shown.items())[:_CELLS]]
    if not listed:
        return ""
    more = max(count, len(shown)) - len(listed)
    rest = f" {escape(words('page.cells.more', count=more))}" if more > 0 else ""
    return f' <span class="cells">{", ".join(listed)}{rest}</span>'


def _cell(cell: str, number: int, values: ShownValues | None) -> str:
    value = None if values is None else values.get(number)
    return f"<code>{escape(cell)}</code>" + (f" {quoted(value)}" if value is not None else "")


def quoted(value: str) -> str:
    """A sender's value as markup: cut, without characters that nobody sees, and apart from the direction around it."""
    cut = value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 1] + "…"
    return f"<q><bdi>{escape(visible(cut))}</bdi></q>"


def visible(value: str) -> str:
    """A text with a mark for each character that is not one to see: control, format and bidi characters."""
    return value if value.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in value)


def finding_rows(
    findings: Sequence[Mapping[str, Any]], words: Catalogue, most: int, values: ShownValues | None
) -> list[tuple[str, str, str, str, str]]:
    """The first findings as rows of a table, as markup: what kind, where, what, its code, and what settles it."""
    rows = []
    for number, finding in enumerate(findings[:most]):
        value = None if values is None else values.get(number)
        cell = escape(str(finding.get("cell") or ""))
        place = escape(where({**finding, "column": "", "row": None if cell else finding.get("row")}, words))
        remedy = escape(str((finding.get("params") or {}).get("settle") or ""))
        severity = {"error": "error", "warning": "warning"}.get(str(finding["severity"]), "note")
        rows.append(
            (
                escape(words(f"page.{severity}")),
                f"{place} {cell} {'' if value is None else quoted(value)}",
                escape(sentence(finding, words).text),
                f"<code>{escape(str(finding['code']))}</code>",
                f"<code>{remedy}</code>" if remedy else "",
            )
        )
    return rows
