"""report.html: a verified artifact as one readable page. No scripts, nothing fetched, no cell values.

It is made where outputs are verified, never where rules run. All text in it is the box's, so all of it is escaped, and
the page forbids its reader's browser everything but its own style.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

from runner.engine.explain import evidence, explain, span, where

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1c2733}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #d8dee6;vertical-align:top}"
    "th{background:#1f3864;color:#fff;position:sticky;top:0}.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".error{color:#b00020}.warning{color:#8a5a00}.info{color:#44546a}.muted{color:#6b7787}"
    ".tiles{display:flex;gap:1rem;flex-wrap:wrap}.tile{border:1px solid #d8dee6;border-radius:.4rem;padding:.6rem 1rem}"
    ".tile b{display:block;font-size:1.3rem}code{background:#f2f4f7;padding:0 .2rem}"
)
SHOWN: Final = 500
MAX_SECTION: Final = 2 * 1024 * 1024  # characters of one list; artifact.json has all of it
_LONGEST: Final = 2000  # characters of one text
_POLICY: Final = (
    "default-src 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_CUT: Final = "<p>The list is cut short here; artifact.json has all of it.</p>"


def escape(text: str) -> str:
    """Text for a page; the standard library's own function loads a table of two thousand entities."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    if not text.isprintable():
        text = _HIDDEN.sub("\ufffd", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def _bounded(lines: Iterable[str]) -> tuple[str, str]:
    """As many of the lines as a section has room for, and a note where that is not all of them."""
    kept: list[str] = []
    room = MAX_SECTION
    for line in lines:
        room -= len(line)
        if room < 0:
            return "".join(kept), _CUT
        kept.append(line)
    return "".join(kept), ""


def report(artifact: dict[str, Any]) -> str:
    """The page."""
    job, summary = artifact["job"], artifact["summary"]
    title = f"{job.get('workflow') or 'job'} · {job.get('job_id') or ''}"
    counts = summary["findings"]
    tiles = (
        ("rows", summary["rows_out"]),
        ("rows left out", sum(summary["left_out"].values())),
        ("tables", summary["tables"]),
        ("columns mapped", summary["columns_mapped"]),
        ("columns unmapped", summary["columns_unmapped"]),
        ("errors", counts["error"]),
        ("warnings", counts["warning"]),
    )
    body = "".join(f'<div class="tile"><b>{n}</b>{escape(name)}</div>' for name, n in tiles)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><style>'
        f'{_STYLE}</style></head><body><h1>{escape(title)}</h1><div class="tiles">{body}</div>'
        f"{_drift(artifact)}{_mapping(artifact)}{_left_out(artifact)}{_readings(artifact)}{_findings(artifact['validation'])}"
        f"{_decisions(artifact)}</body></html>\n"
    )


def _table(heads: tuple[str, ...], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body, note = _bounded(rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _row(*cells: object, kind: str = "") -> str:
    return f'<tr class="{escape(kind)}">' + "".join(f"<td>{escape(str(c))}</td>" for c in cells) + "</tr>"


def _drift(artifact: dict[str, Any]) -> str:
    """How the drop differs from the sender's last one."""
    drift = artifact.get("drift")
    if drift is None:
        return ""
    rows = [
        _row(kind, c.get("header") or f"{c.get('from')} → {c.get('to')}", *_before_and_now(kind, c))
        for kind in ("new", "gone", "renamed", "moved", "remapped")
        for c in drift["columns"][kind]
    ]
    rows += [_row(v["what"], v["header"], _plain(v["before"]), _plain(v["now"])) for v in drift["values"]]
    counted = drift.get("rows")
    if counted is not None and counted["out_of_range"]:
        rows.append(_row("rows", "", counted["before"], counted["now"], kind="warning"))
    said = _table(("change", "column", "before", "now"), rows) if rows else "<p>Nothing out of range.</p>"
    return f"<h2>Since the sender's last drop</h2>{said}"


def _before_and_now(kind: str, column: dict[str, Any]) -> tuple[object, object]:
    if kind in ("new", "gone"):
        field = column.get("field") or "-"
        return ("", field) if kind == "new" else (field, "")
    return (column.get("from") or "-", column.get("to") or "-")


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value:.0%}"


def _mapping(artifact: dict[str, Any]) -> str:
    rows = (
        _row(
            m["table"],
            m["column"],
            m["header"] or "",
            m["target"] or "-",
            f"{m['probability']:.2f}",
            ", ".join(f"{c['rule']} {c['weight']:+.1f}" for c in m["contributors"]) or (m["note"] or ""),
            kind="" if m["target"] else "muted",
        )
        for m in artifact["mapping"]
    )
    heads = ("table", "column", "header", "field", "probability", "why")
    return "<h2>Columns</h2>" + (_table(heads, rows) if artifact["mapping"] else "<p>No column was mapped.</p>")


def _left_out(artifact: dict[str, Any]) -> str:
    """Rows, cells and columns that are not in the output."""
    rows: list[str] = []
    total = 0
    for sheet in artifact["sheets"]:
        names = {t["ref"]: t["range"] for t in sheet["tables"]}
        places = [
            (f"{'row' if run['rows'] == 1 else 'rows'} {span(run)}", run["as"].replace("_", " "), run.get("table"))
            for run in sheet["rows"]
            if run["as"] not in ("data", "header")
        ]
        places += [(f"cells {one['range']}", "beside a table", None) for one in sheet["beside"]]
        places += [
            (f"column {one['column']}", one["why"], table["ref"])
            for table in sheet["tables"]
            for one in table["left_out_columns"]
        ]
        total += len(places)
        room = max(0, SHOWN - len(rows))
        rows += [
            _row(f"{sheet['input']}, {sheet['name']}", what, why, names[ref] if ref else "-")
            for what, why, ref in places[:room]
        ]
        if sheet.get("skipped"):
            rows.append(_row(f"{sheet['input']}, {sheet['name']}", "the whole sheet", sheet["skipped"], "-"))
    if not rows:
        return "<h2>Left out</h2><p>Nothing: every row and column is in the output.</p>"
    note = f"<p>{SHOWN} of {total} places are listed; artifact.json has them all.</p>" if total > SHOWN else ""
    return "<h2>Left out</h2>" + note + _table(("sheet", "what", "taken for", "table"), rows)


def _readings(artifact: dict[str, Any]) -> str:
    """Choices between two readings, guesses first."""
    made = sorted(artifact["readings"], key=lambda one: bool(one["sure"]))
    if not made:
        return ""
    rows = [
        _row(
            one["kind"].replace("_", " "), one["chosen"], where(one), evidence(one),
            "yes" if one["sure"] else "a guess", one.get("settle", ""), kind="" if one["sure"] else "warning",
        )
        for one in made[:SHOWN]
    ]  # fmt: skip
    note = f"<p>{SHOWN} of {len(made)} are listed.</p>" if len(made) > SHOWN else ""
    return "<h2>Readings</h2>" + note + _table(("reading", "chosen", "where", "evidence", "sure", "to settle it"), rows)


def _findings(validation: dict[str, Any]) -> str:
    if not validation["total"]:
        return "<h2>Findings</h2><p>None.</p>"
    totals = (
        _row(t["severity"], t["code"], t["field"] or "", t["count"], kind=t["severity"]) for t in validation["totals"]
    )
    shown = validation["findings"][:SHOWN]
    rows = [
        _row(
            f["severity"], f["code"], f.get("field", ""), f.get("sheet", ""), f.get("cell", ""), f["message"],
            f"{f['file']}:{f['line']}" if f.get("file") else f.get("rule", ""), kind=f["severity"],
        )
        for f in shown
    ]  # fmt: skip
    note = f"<p>{len(shown)} of {validation['total']} are listed.</p>" if validation["total"] > len(shown) else ""
    return (
        "<h2>Findings</h2>"
        + _table(("severity", "code", "field", "count"), totals)
        + "<h2>Where</h2>"
        + note
        + _table(("severity", "code", "field", "sheet", "cell", "what", "rule"), rows)
    )


def _decisions(artifact: dict[str, Any]) -> str:
    lines, note = _bounded(f"<li>{escape(line)}</li>" for line in explain(artifact))
    return f"<h2>Decisions</h2><ul>{lines}</ul>{note}"
