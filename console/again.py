"""Runs a job again for an operator: with its workflow as it is now, if that was corrected since."""

from typing import Literal

from core.jobs import ENDED, RETRIABLE, Job, State
from handlers.intake import Intake
from runner.control import AGAIN, Control

Act = Literal["retry", "reset"]


def run_again(intake: Intake, control: Control, act: Act, job_id: str) -> Job:
    """The job that runs now: this one, or that of the same input with the current version of its standing workflow.

    Whoever plans that input for the same version meets the same job, so it runs once. What an earlier version
    published stays: latest.json moves on when the new job has published.
    """
    job = control.check(job_id, AGAIN[act])
    successor = intake.successor(job) if job.state in ENDED else None
    if successor is None:
        now = control.find(job_id)
        if now.rev != job.rev and not now.ended:
            return now  # its input was dropped again, which was found just now
        again = control.retry(job_id) if act == "retry" else control.reset(job_id)
        if again.state is not State.AWAITING:
            return again
        intake.changed([item.ref.key for item in again.inputs])  # its parts may be there by now
        return control.table.get(job_id) or again  # a row that only says what is missing gives way to the real job
    control.note_successor(job_id, successor.job_id)
    if successor.state in RETRIABLE | {State.SKIPPED}:
        return control.retry(successor.job_id)
    return successor
