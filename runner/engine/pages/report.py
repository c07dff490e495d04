"""report.html: one screen for the person who sent the file, in their language. No scripts, nothing from elsewhere.

The verdict comes first, then how to send corrections, then what to fix; the rest is folded. A job that ended with an
artifact is reported from that, where its outputs are verified and never where rules run. One that ended without is
reported from what the runner itself knows: the verdict, its reason, and names. All text that a box or a sender wrote is
escaped, and the page forbids its reader's browser everything but its own style.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

from runner.engine.contract import PLAIN_REPORT, OutputName, ReportTerms
from runner.engine.document_types import ArtifactDocument
from runner.engine.pages import drawing
from runner.engine.pages.drawing import bounded, escape
from runner.engine.pages.fixes import ShownValues, finding_rows, fixes
from runner.engine.pages.messages import Catalogue, catalogue

_STYLE: Final = (
    drawing.STYLE + "*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;"
    "padding:1.25rem 1rem 3rem;color:var(--ink);background:var(--page)}h1{font-size:1.35rem;margin:0;"
    "overflow-wrap:anywhere}h2{font-size:1.05rem;margin:0 0 .5rem}p{margin:.35rem 0;"
    "overflow-wrap:anywhere}a{color:var(--mark)}"
    "section,details.card,.verdict{background:var(--card);border:1px solid var(--line);border-radius:.6rem;"
    "padding:.9rem 1.1rem;margin:.8rem 0}.verdict{border-left:.5rem solid var(--good)}"
    ".verdict.bad{border-left-color:var(--error)}.verdict.fair{border-left-color:var(--warning)}"
    ".verdict .what{font-size:1.2rem;font-weight:600;margin:0}.verdict p{margin:.2rem 0}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:.35rem .6rem;"
    "border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:600}"
    "td{overflow-wrap:break-word;min-width:3rem}.tiles{display:flex;gap:.3rem 1.4rem;flex-wrap:wrap;margin-top:.5rem;"
    "color:var(--soft);font-size:.92rem}.tiles b{color:var(--ink)}code{background:var(--none);padding:.05rem .3rem;"
    "border-radius:.2rem;overflow-wrap:anywhere}td code{overflow-wrap:normal}"
    "q{quotes:'“' '”'}:lang(de) q{quotes:'„' '“'}:lang(fr) q{quotes:'«\\a0' '\\a0»'}:lang(es) q{quotes:'«' '»'}"
    "q bdi{overflow-wrap:anywhere}.cell{display:inline-block;max-width:100%}"
    "ol.steps{margin:0;padding-left:1.3rem}ol.steps li{margin:.25rem 0}.fixes{list-style:none;padding:0;margin:0}"
    ".fixes li{display:grid;grid-template-columns:5.75rem minmax(0,1fr) minmax(0,20rem);gap:0 .8rem;padding:.6rem 0;"
    "border-bottom:1px solid var(--line);overflow-wrap:anywhere}.fixes li:last-child{border-bottom:0}"
    ".fixes li>div>span{display:block}.fixes .place{font-size:.88rem;color:var(--soft)}"
    ".fixes .says{font-weight:600}.fixes .cells{line-height:1.8}"
    "details.card{margin:.4rem 0;padding:.55rem 1.1rem}"
    "details.card>summary{cursor:pointer;font-weight:600}details.card[open]>summary{margin-bottom:.5rem}"
    "summary:focus-visible,a:focus-visible{outline:2px solid var(--mark);outline-offset:2px}"
    "@media(max-width:40rem){body{padding:.8rem .6rem 2rem}.fixes li{display:block}"
    "section,.verdict{padding:.75rem .8rem}details.card{padding:.55rem .8rem}}"
    "@media print{:root{--page:#fff;--card:#fff;--ink:#000}body{max-width:none;padding:0;font-size:11pt}"
    "section,details.card{break-inside:auto;border:0;padding:0}tr,li{break-inside:avoid}.scroll{overflow:visible}}"
)
SHOWN: Final = 500
_POLICY: Final = (
    "default-src 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)
_MOST_FILES: Final = 5  # named in a sentence
_REFUSALS: Final = ("empty_input", "nothing_mapped", "rows_rejected")  # codes that say why nothing was written


@dataclass(frozen=True, kw_only=True)
class FailedJob:
    """A job that ended without an artifact, as the runner knows it."""

    verdict: str
    reason: str = ""  # why an input is unreadable
    message: str = ""  # English, for the people who run the workflow
    files: tuple[str, ...] = ()
    workflow: str = ""
    job_id: str = ""
    attempt: int = 0


def report(
    artifact: ArtifactDocument,
    *,
    at: float | None = None,
    terms: ReportTerms = PLAIN_REPORT,
    values: ShownValues | None = None,
) -> str:
    """Draw the page of a job with an artifact. `at`: when it ended. `values`: of findings, if they may be shown."""
    phrases = catalogue(terms.language)
    names = [str(source["name"]) for source in artifact["inputs"] if source["role"] == "primary"]
    errors = artifact["summary"]["findings"]["error"]
    to_fix = fixes(artifact, phrases=phrases, values=values)
    body = [
        _draw_verdict(artifact, phrases),
        _draw_corrections(artifact, phrases),
        _draw_next_steps(artifact, terms, phrases) if errors or not artifact["output"]["sheets"] else "",
        _draw_section(phrases("page.fix" if errors else "page.check"), to_fix) if to_fix else "",
        *_draw_folded_sections(artifact, phrases, values),
        _draw_about(phrases, artifact["job"].get("job_id"), artifact["job"].get("attempt")),
    ]
    return _draw_page(phrases, names, str(artifact["job"].get("workflow") or ""), body, at=at, terms=terms)


def failure_report(job: FailedJob, *, at: float | None = None, terms: ReportTerms = PLAIN_REPORT) -> str:
    """Draw the page of a job that ended without an artifact."""
    phrases = catalogue(terms.language)
    key = phrases.first_key(f"verdict.{job.verdict}.{job.reason}", f"verdict.{job.verdict}") or "verdict.limit"
    todo = phrases.first_key(f"{key}.do", f"verdict.{job.verdict}.do") or "verdict.limit.do"
    body = [
        f'<div class="verdict bad"><p class="what">{escape(phrases(key))}</p><p>{escape(phrases(todo))}</p></div>',
        f"<section>{_name_folder(phrases, 'page.next.where', terms)}</section>" if _is_sent_again(job) else "",
        _draw_about(phrases, job.job_id, job.attempt, job.message),
    ]
    return _draw_page(phrases, job.files, job.workflow, body, at=at, terms=terms)


def _is_sent_again(job: FailedJob) -> bool:
    """Whether another file may help, and not only another workflow."""
    return job.verdict not in ("rule_error", "config_refused", "bad_output", "signal")


def _draw_page(
    phrases: Catalogue,
    names: Iterable[str],
    workflow: str,
    body: Iterable[str],
    *,
    at: float | None,
    terms: ReportTerms,
) -> str:
    """Draw a whole page: the file, the workflow and the time above everything else; `body` is markup."""
    listed = list(names)
    title = listed[0] if len(listed) == 1 else phrases("page.files", count=len(listed))
    about = " · ".join(part for part in (workflow, "" if at is None else phrases.date(at)) if part)
    retention = ""
    if at is not None and terms.retention_seconds:
        until = phrases.date(at + terms.retention_seconds)
        retention = f'<p class="soft">{escape(phrases("page.kept", date=until))}</p>'
    return (
        f'<!doctype html><html lang="{phrases.language}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body><main>'
        f'<h1>{escape(title)}</h1><p class="soft">{escape(about)}</p>{"".join(body)}{retention}</main></body></html>\n'
    )


def _draw_section(title: str, body: str) -> str:
    """Draw a section with a heading; its body is markup."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _draw_folded(title: str, body: str, *, is_open: bool = False) -> str:
    """Draw a section that is folded until somebody opens it; nothing if its body is empty."""
    opened = " open" if is_open else ""
    return f'<details class="card"{opened}><summary>{escape(title)}</summary>{body}</details>' if body else ""


def _draw_verdict(artifact: ArtifactDocument, phrases: Catalogue) -> str:
    """Draw what became of the file in words, what to do, and the counts behind it."""
    summary = artifact["summary"]
    findings = summary["findings"]
    kind, sentences = _verdict_sentences(artifact, phrases)
    tiles = (
        ("rows_out", summary["rows_out"]),
        ("left_out", sum(summary["left_out"].values())),
        ("errors", findings["error"]),
        ("warnings", findings["warning"]),
    )
    counted = "".join(
        f"<span><b>{phrases.number(count)}</b> {escape(phrases(f'page.tile.{name}', count=count))}</span>"
        for name, count in tiles
    )
    first, *rest = sentences
    more = "".join(f"<p>{escape(line)}</p>" for line in rest)
    return (
        f'<div class="verdict {kind}"><p class="what">{escape(first)}</p>{more}<div class="tiles">{counted}</div></div>'
    )


class _Outcome(NamedTuple):
    """How the job ended, for the sender."""

    kind: str  # good, fair or bad
    sentences: list[str]  # the verdict first


def _verdict_sentences(artifact: ArtifactDocument, phrases: Catalogue) -> _Outcome:
    """Decide how good the result is, and say it in sentences."""
    summary, rows = artifact["summary"], artifact["summary"]["rows_out"]
    if not artifact["output"]["sheets"]:
        return _Outcome("bad", _refusal_sentences(artifact, phrases))
    if rejected := summary["left_out"].get("rejected", 0):
        return _Outcome(
            "fair", [phrases("verdict.rejected", count=rejected), phrases("verdict.rejected.rest", count=rows)]
        )
    if not rows:
        return _Outcome("fair", [phrases("verdict.none")])
    if summary["findings"]["error"]:
        return _Outcome("fair", [phrases("verdict.errors", count=rows)])
    outcome = "warnings" if summary["findings"]["warning"] else "clean"
    return _Outcome("good", [phrases(f"verdict.{outcome}", count=rows), phrases(f"verdict.{outcome}.do")])


def _refusal_sentences(artifact: ArtifactDocument, phrases: Catalogue) -> list[str]:
    """Explain why nothing was written, and what to do."""
    codes = artifact["validation"]["by_code"]
    why = next((code for code in _REFUSALS if code in codes), "drifted" if "drift_columns" in codes else "")
    return [phrases(f"verdict.{why}"), phrases(f"verdict.{why}.do")] if why else [phrases("verdict.refused")]


def _draw_corrections(artifact: ArtifactDocument, phrases: Catalogue) -> str:
    """Say which files corrected rows of an earlier result, and what became of those rows; empty if none did."""
    corrections = artifact.get("mends")
    if not isinstance(corrections, dict):
        return ""
    files = [str(source["name"]) for source in artifact["inputs"] if source["role"] == "mended"]
    named = ", ".join(files[:_MOST_FILES]) + (", …" if len(files) > _MOST_FILES else "")
    sentences = [phrases("page.corrected", count=corrections["rows"], files=named)]
    if corrections["left_out"]:
        sentences.append(phrases("page.corrected.left", count=corrections["left_out"]))
    return "".join(f"<p>{escape(line)}</p>" for line in sentences)


def _draw_next_steps(artifact: ArtifactDocument, terms: ReportTerms, phrases: Catalogue) -> str:
    """Say where the file to correct is, and where to drop it, as a section."""
    if artifact["output"].get("rejects", {}).get("rows"):
        name = escape(OutputName.REJECTS)
        opening = escape(phrases("page.next.open_rejects")).replace(name, f'<a href="{name}">{name}</a>', 1)
        steps = [
            opening,
            escape(phrases("page.next.correct_rejects")),
            _name_folder(phrases, "page.next.drop_rejects", terms),
        ]
    elif artifact["output"]["sheets"] or "rows_rejected" in artifact["validation"]["by_code"]:
        steps = [escape(phrases("page.next.correct_file")), _name_folder(phrases, "page.next.drop_file", terms)]
    else:
        return f"<section>{_name_folder(phrases, 'page.next.where', terms)}</section>"
    listed = "".join(f"<li>{step}</li>" for step in steps)
    return _draw_section(phrases("page.next"), f'<ol class="steps">{listed}</ol>')


def _name_folder(phrases: Catalogue, key: str, terms: ReportTerms) -> str:
    """Write the sentence of a key, with the folder of the inbox behind it, as markup; another one if the folder is not
    known."""
    if not terms.drop_to:
        return escape(phrases("page.next.nowhere"))
    return f"{escape(phrases(key))} <code>{escape(terms.drop_to)}/</code>"


def _draw_folded_sections(artifact: ArtifactDocument, phrases: Catalogue, values: ShownValues | None) -> Iterable[str]:
    """Draw the sections that are folded away; only that of columns in doubt is open."""
    doubtful = drawing.columns(artifact, phrases=phrases, reasons=False, doubtful=True)
    why = f'<p class="soft">{escape(phrases("page.doubtful.why"))}</p>'
    yield _draw_folded(phrases("page.doubtful"), doubtful and why + doubtful, is_open=True)
    yield _draw_folded(phrases("page.columns"), drawing.columns(artifact, phrases=phrases, reasons=False))
    grids = drawing.grids(artifact, phrases=phrases, reasons=False)
    yield _draw_folded(phrases("page.sheets"), grids and drawing.legend(phrases) + grids)
    yield _draw_folded(phrases("page.drift"), drawing.drift(artifact, phrases=phrases))
    yield _draw_folded(phrases("page.readings"), drawing.readings(artifact, phrases=phrases))
    yield _draw_folded(phrases("page.left_out"), _draw_left_out(artifact, phrases))
    yield _draw_folded(phrases("page.findings"), _draw_findings(artifact, phrases, values))


def _draw_about(phrases: Catalogue, job_id: object, attempt: object, message: str = "") -> str:
    """Say which job it was, for those who ask about it, with the program's own message."""
    line = f"<p>{escape(phrases('page.job', job=str(job_id or ''), attempt=str(attempt or '')))}</p>"
    if message:
        line += f"<p>{escape(phrases('page.technical'))} <code>{escape(message)}</code></p>"
    return _draw_folded(phrases("page.about"), line)


def _draw_table(phrases: Catalogue, heads: Iterable[str], rows: Iterable[str]) -> str:
    """Draw a table that scrolls; `heads`: names of its columns in the catalogue, `rows`: as markup."""
    head = "".join(f'<th scope="col">{escape(phrases(f"page.head.{name}"))}</th>' for name in heads)
    body, note = bounded(rows, phrases)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}'


def _draw_row(cells: Iterable[str]) -> str:
    """Draw a row of a table; its cells are markup."""
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _draw_left_out(artifact: ArtifactDocument, phrases: Catalogue) -> str:
    """List rows, cells and columns that are not in the output, as a table; a sentence if there are none."""
    rows: list[str] = []
    total = 0
    for sheet in artifact["sheets"]:
        places = _left_out_places(sheet, phrases)
        total += len(places)
        name = escape(drawing.where({"input": sheet["input"], "sheet": sheet["name"]}, phrases))
        room = max(0, SHOWN - len(rows))
        rows += [_draw_row((name, escape(what), escape(why), escape(area))) for what, why, area in places[:room]]
    if not rows:
        is_written = artifact["output"]["sheets"]
        return f"<p>{escape(phrases('page.left_out.none' if is_written else 'page.left_out.unread'))}</p>"
    note = f"<p>{escape(phrases('page.left_out.listed', listed=SHOWN, total=total))}</p>" if total > SHOWN else ""
    return note + _draw_table(phrases, ("sheet", "what", "reason", "table"), rows)


class _LeftOut(NamedTuple):
    """Something that is left out, in words."""

    what: str
    why: str
    table: str = ""  # its range; empty for what is of no table


def _left_out_places(sheet: Mapping[str, Any], phrases: Catalogue) -> list[_LeftOut]:
    """List what is left out of a sheet: rows, cells beside tables, columns; or the sheet as a whole."""
    if sheet.get("skipped"):
        return [_LeftOut(phrases("page.whole_sheet"), phrases("page.not_read"))]
    ranges = {table["ref"]: str(table["range"]) for table in sheet["tables"]}
    places = [
        _LeftOut(
            _rows_in_words(run, phrases),
            drawing.kind_words(run["as"], phrases),
            ranges.get(run.get("table") or "", ""),
        )
        for run in sheet["rows"]
        if run["as"] not in ("data", "header")
    ]
    areas = (phrases("page.cells", range=stray["range"]) for stray in sheet["beside"])
    places += [_LeftOut(area, phrases("page.beside")) for area in areas]
    places += [
        _LeftOut(
            phrases("page.column", letters=column["column"]),
            phrases("page.unmapped" if column["why"] == "unmapped" else "kind.hidden"),
            str(table["range"]),
        )
        for table in sheet["tables"]
        for column in table["left_out_columns"]
    ]
    return places


def _rows_in_words(run: Mapping[str, Any], phrases: Catalogue) -> str:
    """Write the rows of a run in words."""
    if run["from"] == run["to"]:
        return phrases("page.row", row=run["from"])
    return phrases("page.rows", first=run["from"], last=run["to"])


def _draw_findings(artifact: ArtifactDocument, phrases: Catalogue, values: ShownValues | None) -> str:
    """List the first findings one by one, as a table; a sentence if there are none."""
    validation = artifact["validation"]
    listed = validation["findings"][:SHOWN]
    if not listed:
        return f"<p>{escape(phrases('page.findings.none'))}</p>"
    rows = (_draw_row(cells) for cells in finding_rows(listed, phrases, SHOWN, values))
    total = validation["total"]
    note = phrases("page.listed", listed=len(listed), total=total) if total > len(listed) else ""
    return (f"<p>{escape(note)}</p>" if note else "") + _draw_table(
        phrases, ("severity", "place", "finding", "code", "settle"), rows
    )
