"""review.html: the questions of a verified review.json as one page for a person, with a decision ready to copy.

Made where outputs are verified, like report.html. All text in it is the box's: every piece is escaped and bounded,
there are no scripts, and the page forbids its reader's browser everything but its own style.
"""

import json
from base64 import b64encode
from hashlib import sha256
from typing import Final

from runner.engine.contract import Json
from runner.engine.document_types import CandidatePart, QuestionPart, ReasonPart, ReviewDocument
from runner.engine.pages.drawing import escape, in_words

_STYLE: Final = (
    ":root{color-scheme:light dark;--ink:#1c2733;--soft:#5b6878;--line:#d8dee6;--card:#fff;--page:#f6f7f9;"
    "--mark:#1f5fbf}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6ebf1;--soft:#9aa7b6;--line:#38424e;--card:#1d242c;--page:#12171d;"
    "--mark:#7fb2ff}}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--ink);"
    "background:var(--page)}h1{font-size:1.5rem}h2{font-size:1.1rem;margin:0 0 .5rem}.soft{color:var(--soft)}"
    "section{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:1rem;margin:1rem 0}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem .3rem 0;"
    "border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}th{white-space:nowrap}.mark{"
    "color:var(--mark)}"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:1rem;overflow:auto;"
    "user-select:all}code{overflow-wrap:anywhere}"
)
_POLICY: Final = (
    "default-src 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)
_MOST_REASONS: Final = 6
_MOST_NAMED: Final = 20  # answers that fit nothing


def review_page(review: ReviewDocument) -> str:
    """Draw the questions of a review as a page, with a decision that answers them as the job would."""
    job, questions = review["job"], review["questions"]
    title = f"{job.get('workflow') or 'job'}: {len(questions)} question{'' if len(questions) == 1 else 's'}"
    file = next((source["name"] for source in review["inputs"] if source["role"] == "primary"), "the file")
    name = (review["answer_to"] or f"{file}.decision.json").rpartition("/")[2]
    more = f"<p>{review['left_out']} more questions follow when these are answered.</p>" if review["left_out"] else ""
    decision_note = ""
    if review["decision"] is not None:
        decision_note = (
            f"<p>The decision of {escape(review['decision']['by'])} was applied and leaves these questions open."
            f"{_name_unused(review.get('unused', []))}</p>"
        )
    body = "".join(_draw_question(number, question) for number, question in enumerate(questions, 1))
    decision_text = json.dumps(_ready_decision(review), indent=2, ensure_ascii=False)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f'<h1>{escape(title)}</h1><p class="soft">Job {escape(str(job.get("job_id") or ""))}, {escape(file)}</p>'
        "<p>The job has written nothing yet. It waits until somebody answers, or until its deadline in status.json.</p>"
        f"{decision_note}{body}{more}<h2>How to answer</h2><p>Save this as <code>{escape(name)}</code> beside the "
        "file that was dropped. Check every answer: each starts with what the job would do. "
        "Add your name as <code>by</code>. "
        'Headers and fields are remembered for the next files, unless it says <code>"remember": false</code>. '
        f"Or run <code>ade review {escape(str(job.get('job_id') or ''))}</code>.</p>"
        f"<pre>{_escape_long(decision_text)}</pre></body></html>\n"
    )


def _name_unused(numbers: list[int]) -> str:
    """Name the answers of an earlier decision that fit nothing, by number, in a sentence; empty if there are none."""
    if not numbers:
        return ""
    listed = ", ".join(map(str, numbers[:_MOST_NAMED])) + (" and others" if len(numbers) > _MOST_NAMED else "")
    is_single = len(numbers) == 1
    fits = f"number {listed} fits" if is_single else f"numbers {listed} fit"
    return f" Of its answers, {fits} no column and no question of this file: check headers, letters and ids."


def _draw_question(number: int, question: QuestionPart) -> str:
    """Draw a question as a section of the page."""
    place = [question["input"], question["sheet"], question["table"] and question["table"].rpartition("!")[2]]
    where = ", ".join(escape(part) for part in place if part)
    rows = "".join(_draw_candidate(question, candidate) for candidate in question["candidates"])
    return (
        f"<section><h2>{number}. {escape(question['text'])}</h2>"
        f'<p class="soft">{where}; question <code>{escape(question["id"])}</code></p>'
        "<table><tr><th>answer</th><th>value</th><th>probability</th><th>what speaks for it, or against it</th></tr>"
        f"{rows}</table></section>"
    )


def _draw_candidate(question: QuestionPart, candidate: CandidatePart) -> str:
    """Draw a possible answer as a row of a table."""
    chosen = candidate["value"] == question["chosen"]
    label = escape(candidate["label"]) + (' <b class="mark">(what the job would do)</b>' if chosen else "")
    value = "null" if candidate["value"] is None else escape(candidate["value"])
    sure = "" if candidate["probability"] is None else f"{candidate['probability']:.0%}"
    reasons = [reason_text for reason in candidate["reasons"][:_MOST_REASONS] if (reason_text := _draw_reason(reason))]
    return f"<tr><td>{label}</td><td><code>{value}</code></td><td>{sure}</td><td>{'; '.join(reasons)}</td></tr>"


def _draw_reason(reason: ReasonPart) -> str:
    """Draw what speaks for an answer, in words; its rule and weight as a title."""
    text = in_words(reason["rule"], reason["weight"])
    return f'<span title="{escape(reason["rule"])} {reason["weight"] or 0:+.2f}">{escape(text)}</span>' if text else ""


def _ready_decision(review: ReviewDocument) -> Json:
    """Make a decision that answers every question as the job would."""
    return {
        "decision": 1,
        "workflow": review["job"].get("workflow"),
        "by": "your name",
        "answers": [_ready_answer(question) for question in review["questions"]],
    }


def _ready_answer(question: QuestionPart) -> Json:
    """Make an answer that says by itself what it is about, where it can."""
    header = question["header"]
    plain = header is not None and header.isprintable()  # else it could not be copied from the page
    about = {"header": header, "column": question["column"]} if plain else {"column": question["column"]}
    if question["kind"] == "column":
        return {"sheet": question["sheet"], **about, "field": question["chosen"]}
    if question["kind"] == "reading":
        return {"sheet": question["sheet"], **about, "reading": question["chosen"]}
    return {"id": question["id"], "value": question["chosen"]}


def _escape_long(text: str) -> str:
    """Escape a text of any length; `escape` alone would cut it."""
    return "".join(escape(text[start : start + 1000]) for start in range(0, len(text), 1000))
