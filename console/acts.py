"""What retry, cancel, reset and remove share: one act on several jobs, each told, the worst ending the command."""

from collections.abc import Callable, Iterable

from console.exits import Exit
from console.output import Output
from console.shapes import job_shape
from core.errors import AdeError
from core.jobs import Job


def act(job_ids: Iterable[str], change: Callable[[str], Job], *, done: Callable[[Job], str], out: Output) -> int:
    """Do it to every job; one that cannot be changed is told and stops none of the others."""
    code, told = Exit.OK, []
    for job_id in job_ids:
        try:
            job = change(job_id)
        except AdeError as error:
            code = Exit.USAGE
            told.append({"job_id": job_id, "refused": str(error)})
            out.note(f"ade: {error}")
            continue
        told.append(job_shape(job))
        if not out.as_json:
            out.line(f"{job.job_id}  {done(job)}")
    if out.as_json:
        out.emit(told)
    return code
