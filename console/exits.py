"""Exit codes, named in one place; docs/commands.md has the same table."""

from enum import IntEnum

from core.jobs import Job, State


class Exit(IntEnum):
    OK = 0
    FAILED = 1  # a job failed, or the doctor found something wrong
    USAGE = 2  # words, files, settings or a manifest that do not fit
    TIMED_OUT = 3  # a job ran out of time, or `--wait` did
    STOPPED = 4  # a job was cancelled or skipped, or its outputs have expired
    UNAVAILABLE = 5  # store, table, queue or sandbox cannot be had; trying again later may work
    INTERNAL = 70  # a fault of ade-drop itself
    INTERRUPTED = 130  # ended by a second Ctrl-C, or by one while there was nothing to drain


_BY_STATE = {
    State.SUCCEEDED: Exit.OK,
    State.FAILED: Exit.FAILED,
    State.TIMED_OUT: Exit.TIMED_OUT,
    State.CANCELLED: Exit.STOPPED,
    State.SKIPPED: Exit.STOPPED,
    State.EXPIRED: Exit.STOPPED,
}
# Of several jobs the worst end counts: what failed hides nothing, what was stopped hides no failure.
_WORST_FIRST = (Exit.FAILED, Exit.TIMED_OUT, Exit.STOPPED, Exit.OK)


def exit_of(jobs: list[Job]) -> Exit:
    """The exit code of jobs that have ended: the worst of their ends."""
    found = {_BY_STATE[job.state] for job in jobs}
    return next((code for code in _WORST_FIRST if code in found), Exit.OK)
