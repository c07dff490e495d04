"""report.html: a verified artifact as one page for the person who sent the file. No scripts, no cell values.

The file, the time and the verdict come first, then what to fix, then what became what, then the details. It is made
where outputs are verified, never where rules run. All text in it is the box's, so all of it is escaped, and the page
forbids its reader's browser everything but its own style.
"""

from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from runner.engine.document_types import ArtifactDocument, FindingPart, ValidationPart
from runner.engine.pages import drawing
from runner.engine.pages.drawing import bounded, escape
from runner.engine.pages.explain import explain, span

_STYLE: Final = (
    drawing.STYLE + "*{box-sizing:border-box}body{font:16px/1.55 system-ui,sans-serif;max-width:70rem;margin:0 auto;"
    "padding:1.5rem 1rem 4rem;color:var(--ink);background:var(--page)}h1{font-size:1.5rem;margin:0;"
    "overflow-wrap:anywhere}h2{font-size:1.15rem;margin:0 0 .6rem}p{margin:.4rem 0}"
    "section,.verdict{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem 1.2rem;"
    "margin:1rem 0}.verdict{border-left:.5rem solid var(--good)}.verdict.bad{border-left-color:var(--error)}"
    ".verdict.fair{border-left-color:var(--warning)}.verdict p:first-child{font-size:1.15rem;font-weight:600}"
    "table{border-collapse:collapse;width:100%;font-size:.92rem}th,td{text-align:left;padding:.35rem .6rem;"
    "border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:600}"
    "td{overflow-wrap:break-word;min-width:3rem}.tiles{display:flex;gap:.6rem;flex-wrap:wrap}"
    ".tile{border:1px solid var(--line);border-radius:.5rem;padding:.4rem .9rem;color:var(--soft)}"
    ".tile b{display:block;font-size:1.2rem;color:var(--ink)}code{background:var(--none);padding:0 .25rem;"
    "border-radius:.2rem}.fixes{list-style:none;padding:0;margin:0}.fixes li{display:grid;"
    "grid-template-columns:4rem 1fr minmax(0,max-content);gap:0 .6rem;padding:.6rem 0;"
    "border-bottom:1px solid var(--line);overflow-wrap:anywhere}.fixes li:last-child{border-bottom:0}"
    ".fixes .cells{line-height:1.8;max-width:22rem;text-align:right}"
    "@media(max-width:40rem){.fixes li{display:block}.fixes .cells{text-align:left;max-width:none}}"
    "details>summary{cursor:pointer;font-weight:600}.explained li{overflow-wrap:anywhere}"
    "@media print{:root{--page:#fff;--card:#fff;--ink:#000}body{max-width:none;padding:0;font-size:11pt}"
    "section{break-inside:auto;border:0;padding:0}tr,li{break-inside:avoid}.scroll{overflow:visible}}"
)
SHOWN: Final = 500
_POLICY: Final = (
    "default-src 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)


def report(artifact: ArtifactDocument, *, at: float | None = None) -> str:
    """The page. `at`: when the job ended."""
    names = [source["name"] for source in artifact["inputs"] if source["role"] == "primary"]
    title = names[0] if len(names) == 1 else f"{artifact['job'].get('workflow') or 'job'}, {len(names)} files"
    when = "" if at is None else f", {datetime.fromtimestamp(at, UTC):%d %B %Y, %H:%M} UTC"
    fixes, drift = drawing.fixes(artifact), drawing.drift(artifact)
    parts = [
        _section("What to fix", fixes) if fixes else "",
        _section("What became what", drawing.columns(artifact) + "<h3>The sheet</h3>" + drawing.grids(artifact)),
        _section("Since the sender's last drop", drift) if drift else "",
        _section("How values were read", readings) if (readings := drawing.readings(artifact)) else "",
        _details(artifact),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body><main>'
        f'<h1>{escape(title)}</h1><p class="soft">{escape(str(artifact["job"].get("workflow") or ""))}{when}</p>'
        f"{_verdict(artifact)}{_corrected(artifact)}{''.join(parts)}</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    """A section of the page."""
    return f"<section><h2>{title}</h2>{body}</section>"


def _verdict(artifact: ArtifactDocument) -> str:
    """What became of the file, in one sentence, and the counts behind it."""
    summary, output = artifact["summary"], artifact["output"]
    errors, warnings = summary["findings"]["error"], summary["findings"]["warning"]
    rejected = summary["left_out"].get("rejected", 0)
    rows = _many(summary["rows_out"], "row")
    if not output["sheets"] and "empty_input" in artifact["validation"]["by_code"]:
        kind, sentence = "bad", "The file has too few rows of data: nothing was written."
    elif not output["sheets"]:
        kind, sentence = "bad", "The file was not taken over: nothing was written."
    elif not summary["rows_out"] and not rejected:
        kind, sentence = "fair", "No rows of data were found: the output is empty."
    elif rejected:
        kind, sentence = "fair", f"{rows} taken over; {_many(rejected, 'row')} sent back to be fixed."
    elif errors:
        kind, sentence = "fair", f"{rows} taken over; {_many(errors, 'value')} to fix."
    else:
        kind, sentence = "good", f"{rows} taken over; nothing to fix." if not warnings else f"{rows} taken over."
    if kind == "good" and warnings:
        sentence += f" {_many(warnings, 'value')} to check."
    left_out = sum(summary["left_out"].values())
    tiles = (
        ("rows written", summary["rows_out"]),
        ("rows left out", left_out),
        ("columns used", summary["columns_mapped"]),
        ("columns not used", summary["columns_unmapped"]),
        ("errors", errors),
        ("warnings", warnings),
    )
    body = "".join(f'<div class="tile"><b>{count:,}</b>{name}</div>' for name, count in tiles)
    return f'<div class="verdict {kind}"><p>{sentence}</p><div class="tiles">{body}</div></div>'


def _corrected(artifact: ArtifactDocument) -> str:
    """Which files corrected rows of an earlier result, and what became of those rows."""
    corrections = artifact.get("mends")
    if not isinstance(corrections, dict):
        return ""
    files = [str(source["name"]) for source in artifact["inputs"] if source["role"] == "mended"]
    more = f" and {len(files) - 5} more" if len(files) > 5 else ""
    sentence = f"{_many(corrections['rows'], 'row')} corrected by {', '.join(files[:5])}{more}."
    left = f" {_many(corrections['left_out'], 'row')} left out; see below." if corrections["left_out"] else ""
    return f"<p>{escape(sentence + left)}</p>"


def _many(count: int, noun: str) -> str:
    """A count and its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _details(artifact: ArtifactDocument) -> str:
    """What is folded away: the job, what was left out, findings and decisions."""
    job = artifact["job"]
    return (
        f"<section><details><summary>Details</summary><p>Job {escape(str(job.get('job_id') or ''))}, attempt "
        f"{escape(str(job.get('attempt') or ''))}.</p>{_left_out(artifact)}{_findings(artifact['validation'])}"
        f"{_decisions(artifact)}</details></section>"
    )


def _table(heads: tuple[str, ...], rows: Iterable[str]) -> str:
    """A table that scrolls."""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in heads)
    body, note = bounded(rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}'


def _row(*cells: object, kind: str = "") -> str:
    """A row of a table."""
    return f'<tr class="{escape(kind)}">' + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _left_out(artifact: ArtifactDocument) -> str:
    """Rows, cells and columns that are not in the output."""
    rows: list[str] = []
    total = 0
    for sheet in artifact["sheets"]:
        names = {table["ref"]: table["range"] for table in sheet["tables"]}
        places = [
            (f"{'row' if run['rows'] == 1 else 'rows'} {span(run)}", run["as"].replace("_", " "), run.get("table"))
            for run in sheet["rows"]
            if run["as"] not in ("data", "header")
        ]
        places += [(f"cells {part['range']}", "beside a table", None) for part in sheet["beside"]]
        places += [
            (f"column {part['column']}", part["why"], table["ref"])
            for table in sheet["tables"]
            for part in table["left_out_columns"]
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
        sentence = (
            "Nothing: every row and column is in the output." if artifact["output"]["sheets"] else "No row was read."
        )
        return f"<h3>Left out</h3><p>{sentence}</p>"
    note = f"<p>{SHOWN} of {total} places are listed; artifact.json has them all.</p>" if total > SHOWN else ""
    return "<h3>Left out</h3>" + note + _table(("sheet", "what", "taken for", "table"), rows)


def _findings(validation: ValidationPart) -> str:
    """The findings: how many of each code, and the first ones."""
    if not validation["total"]:
        return "<h3>Findings</h3><p>None.</p>"
    totals = (
        _row(total["severity"], total["code"], total["field"] or "", total["count"], kind=total["severity"])
        for total in validation["totals"]
    )
    listed = validation["findings"][:SHOWN]
    rows = [_finding_row(finding) for finding in listed]
    note = f"<p>{len(listed)} of {validation['total']} are listed.</p>" if validation["total"] > len(listed) else ""
    return (
        "<h3>Findings</h3>"
        + _table(("severity", "code", "field", "count"), totals)
        + "<h3>Where</h3>"
        + note
        + _table(("severity", "code", "field", "sheet", "cell", "what", "rule"), rows)
    )


def _finding_row(finding: FindingPart) -> str:
    """A finding as a row of a table: what is wrong, where, and the rule that says so."""
    severity = finding["severity"]
    rule = f"{finding['file']}:{finding['line']}" if finding.get("file") else finding.get("rule", "")
    return _row(
        severity, finding["code"], finding.get("field", ""), _place(finding), finding.get("cell", ""),
        finding["message"], rule, kind=severity,
    )  # fmt: skip


def _place(finding: FindingPart) -> str:
    """Where a finding is."""
    return ", ".join(part for part in (finding.get("input"), finding.get("sheet")) if part)


def _decisions(artifact: ArtifactDocument) -> str:
    """Every decision in a sentence."""
    lines, note = bounded(f"<li>{escape(line)}</li>" for line in explain(artifact))
    return f'<h3>Decisions</h3><ul class="explained">{lines}</ul>{note}'
