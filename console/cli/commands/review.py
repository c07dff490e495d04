"""`ade review JOB`: walk through the questions of a job that waits for a person, and drop the decision."""

import argparse
import getpass
import sys

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import job_shape, when
from core.decisions import DecisionInvalid
from core.errors import PreconditionFailed, UsageError
from core.jobs import Job, State
from core.keys import decision_place, job_folder
from core.ports import ObjectStore
from core.verdicts import Verdict
from handlers.intake import Intake
from infra.reviews import DecisionBody, ListedQuestion, put_decision, read_questions
from infra.wiring import Stack
from runner.engine.pages.drawing import in_words

_REASONS = 3
_LAST_ROW = 1_048_576


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument(
        "--answer",
        metavar="ID=VALUE",
        action="append",
        default=[],
        type=_answer,
        help="answer a question (by id or number) without asking; nothing after = is none of the candidates",
    )
    parser.add_argument("--accept", action="store_true", help="take the likeliest answer to whatever is not answered")
    parser.add_argument("--by", metavar="NAME", help="who decides (default: the user's name)")
    parser.add_argument("--no-remember", action="store_true", help="for this file only: the memory stays as it is")
    parser.epilog = "ade review acme-members-7f3k9q2d --answer 1=street --answer 2=day_first"


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        job = _waiting(wire.make_control(stack).find(args.job))
        questions = read_questions(stack.store, job_folder(job))
        answers = _answers_by_id(args.answer, questions)
        if out.as_json and not answers and not args.accept:
            out.emit({"job": job_shape(job), "decision": decision_place(job), "questions": questions})
            return Exit.OK
        if not answers and not args.accept:
            if not sys.stdin.isatty():
                _show_all(job, questions, out)
                return Exit.OK
            answers = Walk(out).through(questions)
            if not answers:
                out.note("nothing was answered; the job goes on waiting")
                return Exit.OK
        key = _put(stack.store, job, answers, args)
        return _report(stack, job, key, out)


def _waiting(job: Job) -> Job:
    expired = job.error is not None and job.error.verdict is Verdict.REVIEW_EXPIRED
    if job.state is not State.REVIEW and not (job.state is State.FAILED and expired):
        raise UsageError(f"job {job.job_id} is {job.state}; only a job that is REVIEW has questions")
    return job


def _answer(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not ID=VALUE")
    return name, value


def _answers_by_id(pairs: list[tuple[str, str]], questions: list[ListedQuestion]) -> dict[str, str | None]:
    """ListedQuestion id to value, for answers by id or by number."""
    by_name = {q["id"]: q for q in questions} | {str(n): q for n, q in enumerate(questions, 1)}
    found: dict[str, str | None] = {}
    for name, value in pairs:
        question = by_name.get(name)
        if question is None:
            raise UsageError(
                f"{name!r} is no question; ask for them with --json: {', '.join(q['id'] for q in questions)}"
            )
        found[question["id"]] = _checked(question, value or None)
    return found


def _checked(question: ListedQuestion, value: str | None) -> str | None:
    """A value that answers a question; any field may be given for a column, any row for a header."""
    known = [candidate["value"] for candidate in question["candidates"]]
    free = question["kind"] == "column" or (question["kind"] == "header" and _is_row(value or ""))
    if value not in known and not (free and value is not None):
        shown = ", ".join("(none)" if v is None else v for v in known)
        raise UsageError(f"{question['id']}: {(value or '(none)')[:60]} is no answer; it can be {shown}")
    return value


def _is_row(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(_LAST_ROW)) and 1 <= int(text) <= _LAST_ROW


class Walk:
    """Asks one question after the other on a terminal."""

    def __init__(self, out: Printer) -> None:
        self._out = out

    def through(self, questions: list[ListedQuestion]) -> dict[str, str | None]:
        self._out.note("Answer with a number or a value. Enter takes the answer marked *; s skips, q ends.")
        found: dict[str, str | None] = {}
        for n, question in enumerate(questions, 1):
            self._out.line()
            _show(n, question, self._out)
            answer = self._ask(question)
            if answer == "q":
                break
            if answer is not None:
                found[question["id"]] = answer[0]
        return found

    def _ask(self, question: ListedQuestion) -> tuple[str | None] | str | None:
        """One value, `q` to end, or None to skip."""
        while True:
            try:
                typed = input("> ").strip()
            except EOFError:
                return "q"
            if typed in ("q", "s"):
                return "q" if typed == "q" else None
            options = [candidate["value"] for candidate in question["candidates"]]
            if not typed:
                return (question["chosen"],)
            if question["kind"] != "header" and typed.isdecimal() and 1 <= int(typed) <= len(options):
                return (options[int(typed) - 1],)
            try:
                return (_checked(question, typed),)
            except UsageError as error:
                self._out.note(str(error))


def _show_all(job: Job, questions: list[ListedQuestion], out: Printer) -> None:
    for n, question in enumerate(questions, 1):
        _show(n, question, out)
        out.line()
    waits = f"waits until {when(job.due_at)}" if job.state is State.REVIEW else "has failed, and runs again if answered"
    out.note(f"{job.job_id} {waits}; answer with `ade review {job.job_id} --answer 1=VALUE`")


def _show(number: int, question: ListedQuestion, out: Printer) -> None:
    out.heading(f"{number}. {question['text']}")
    out.line(f"   {question['id']}")
    for n, candidate in enumerate(question["candidates"], 1):
        mark = "*" if candidate["value"] == question["chosen"] else " "
        sure = "" if candidate["probability"] is None else f"  {candidate['probability']:.0%}"
        reasons = [in_words(str(reason.get("rule", "")), reason.get("weight")) for reason in candidate["reasons"]]
        why = "; ".join([one for one in reasons if one][:_REASONS])
        why = f"  ({why})" if why else ""
        name = candidate["value"] if question["kind"] == "header" else n  # there a number is a row
        out.line(f" {mark} {name}) {candidate['label']}{sure}{why}")


def _put(store: ObjectStore, job: Job, answers: dict[str, str | None], args: argparse.Namespace) -> str:
    """Write the decision; what an earlier one says about other questions stays in it."""
    questions = {q["id"]: q for q in read_questions(store, job_folder(job))}
    decision: DecisionBody = {
        "decision": 1,
        "workflow": job.workflow,
        "job": job.job_id,
        "by": args.by or getpass.getuser(),
        "answers": [_self_contained(questions[name], value) for name, value in answers.items()],
    }
    if args.accept:
        decision["accept"] = True
    if args.no_remember:
        decision["remember"] = False
    try:
        return put_decision(store, job, decision)
    except DecisionInvalid as error:
        raise UsageError("; ".join(f"{p.path}: {p.problem} (allowed: {p.allowed})" for p in error.problems)) from None
    except PreconditionFailed:
        raise UsageError(f"somebody else decided on {job.job_id} in the meantime; check it and repeat") from None


def _self_contained(question: ListedQuestion, value: str | None) -> dict[str, object]:
    """An answer that says what it is about by its header if it has one, so that it can be read and remembered."""
    header = question["header"]
    if question["kind"] == "required" and value is not None:
        header = next((c.get("header") for c in question["candidates"] if c["value"] == value), None)
        if header is not None:
            return {"sheet": question["sheet"], "header": header, "column": value, "field": question["field"]}
    if header is not None and question["kind"] in ("column", "reading"):
        kind = "field" if question["kind"] == "column" else "reading"
        return {"sheet": question["sheet"], "header": header, "column": question["column"], kind: value}
    return {"id": question["id"], "value": value}


def _report(stack: Stack, job: Job, key: str, out: Printer) -> int:
    """Let the intake read the decision at once, as it would after the bucket's event; report what became of the job."""
    Intake.over(stack).changed([key])
    now = stack.table.get(job.job_id) or job
    if out.as_json:
        out.emit({"job": job_shape(now), "decision": key})
    else:
        out.line(f"{now.job_id}  {now.state}  {now.reason}".rstrip())
        out.note(f"the decision is {key}")
    return Exit.OK
