"""How a box ended, judged from what the runner saw and, where nothing contradicts it, from what the box says."""

import re
import signal
from dataclasses import dataclass, field
from typing import Any

from core.ports import BoxLimits
from core.verdicts import EXPLAINED, Verdict

_CODES = {
    "input_unreadable": Verdict.INPUT_UNREADABLE,
    "nothing_mapped": Verdict.NOTHING_MAPPED,
    "rule_error": Verdict.RULE_ERROR,
    "config_refused": Verdict.CONFIG_REFUSED,
    "out_of_memory": Verdict.MEMORY,
    "bad_output": Verdict.BAD_OUTPUT,  # of a box that verifies another's outputs
    "engine_error": Verdict.RULE_ERROR,  # or the input's, where no rule was there to bring it about
}
_OWN_KILL = {
    Verdict.CANCELLED: "cancelled",
    Verdict.LEASE_LOST: "the lease was lost while the box ran",
}
_REFUSED_FORK = "BlockingIOError"  # what Python makes of the answer that a refused fork gets, and of little else
_NAME = re.compile(r"[A-Za-z_0-9]{1,40}")
_TRACE = re.compile(r"(?:(?:^| )[a-z_]{1,30}/[a-z_0-9]{1,30}\.py:[0-9]{1,5}){1,20}")
OUT_OF_MEMORY = 72  # exit code of our own code in the box


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the runner observed of one box."""

    end: dict[str, Any] | None  # the closing event, checked for form
    code: int | None  # exit status, negative: killed by that signal; None: it was never learnt
    cpu_seconds: float = 0.0
    killed_as: Verdict | None = None  # why we killed it
    violation: str | None = None  # what was wrong on the channel or with the log
    output_problem: str | None = None
    output_at_limit: str | None = None
    out_of_memory: bool = False  # the kernel says so
    too_many_processes: bool = False  # the kernel says so
    setup_problem: str | None = None  # our own code could not build the box
    trusted: bool = False  # there was no Python of the sender's in the box


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    verdict: Verdict
    message: str
    where: dict[str, Any] = field(default_factory=dict)
    suspicion: str = ""  # what speaks for a fault of the engine's own, in names and lines of our code


def judge(seen: Seen, limits: BoxLimits) -> Ending:
    """The verdict. What the kernel says goes before what the box says."""
    if seen.setup_problem is not None:
        return Ending(verdict=Verdict.BOX_FAILED, message=f"the box could not start: {seen.setup_problem}")
    if seen.killed_as is not None:
        return _killed_by_us(seen.killed_as, seen, limits)
    if seen.violation is not None:
        return Ending(verdict=Verdict.BAD_OUTPUT, message=f"the box broke its protocol: {seen.violation}")
    if seen.out_of_memory:
        return _memory(limits)
    if seen.code is None:
        return Ending(verdict=Verdict.BOX_FAILED, message="the keeper of the box was lost")
    if seen.code < 0:
        return _signalled(-seen.code, seen, limits)
    if seen.end is None:
        return _silent(seen, limits)
    return _said(seen.end, seen, limits)


def _killed_by_us(why: Verdict, seen: Seen, limits: BoxLimits) -> Ending:
    if why is Verdict.WALL_CLOCK:
        message = f"still running after {limits.wall_seconds:g} s of wall clock"
    elif why is Verdict.BAD_OUTPUT:
        message = f"the box broke its protocol: {seen.violation}"
    elif why is Verdict.FILE_SIZE:
        message = (
            f"wrote more than a box may: {limits.file_mb} MiB a file, "
            f"and no more log than {limits.log_bytes} bytes, many times over"
        )
    elif why is Verdict.PROCESSES:
        message = "had more threads than a box may have"
    else:
        message = _OWN_KILL.get(why, str(why))
    return Ending(verdict=why, message=message)


def _signalled(number: int, seen: Seen, limits: BoxLimits) -> Ending:
    # The kernel ends process 1 of a namespace by SIGKILL, and counts CPU for limits more coarsely than for usage.
    if number == signal.SIGXCPU or (number == signal.SIGKILL and seen.cpu_seconds >= limits.cpu_seconds / 2):
        return Ending(verdict=Verdict.CPU, message=f"used more than {limits.cpu_seconds} s of CPU")
    if number == signal.SIGXFSZ:
        return _file_size(limits)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    if number == signal.SIGSYS:
        return Ending(verdict=Verdict.SIGNAL, message="made a system call that no box may make (SIGSYS)")
    return Ending(verdict=Verdict.SIGNAL, message=f"killed by {name}")


def _silent(seen: Seen, limits: BoxLimits) -> Ending:
    if seen.output_at_limit is not None:
        return _file_size(limits)
    if seen.code == OUT_OF_MEMORY:
        return _memory(limits)
    return Ending(verdict=Verdict.BAD_OUTPUT, message=f"ended with exit code {seen.code} and no closing word")


def _said(end: dict[str, Any], seen: Seen, limits: BoxLimits) -> Ending:
    if end["ok"] or _CODES[end["error"]["code"]] in EXPLAINED:
        if seen.output_problem is not None:
            return Ending(verdict=Verdict.BAD_OUTPUT, message=seen.output_problem)
        if seen.code != 0:
            message = f"said it was done and ended with exit code {seen.code}"
            return Ending(verdict=Verdict.BAD_OUTPUT, message=message)
    if end["ok"]:
        return Ending(verdict=Verdict.OK, message="")
    error = end["error"]
    trace = str(error["where"].pop("trace", ""))
    verdict = _CODES[error["code"]]
    suspicion = ""
    if error["code"] == "engine_error":
        verdict = Verdict.INPUT_UNREADABLE if seen.trusted else verdict
        suspicion = _suspicion(str(error["where"].get("exception", "")), trace)
    if error["code"] in {"engine_error", "rule_error"}:
        if seen.output_at_limit is not None:
            return _file_size(limits)
        if seen.too_many_processes or _REFUSED_FORK in error["message"]:
            message = f"tried to start more than {limits.processes} further processes"
            return Ending(verdict=Verdict.PROCESSES, message=message, where=error["where"])
    return Ending(verdict=verdict, message=error["message"], where=error["where"], suspicion=suspicion)


def _suspicion(exception: str, trace: str) -> str:
    """What a box claims to have met in our code. A rule can claim it, too, so only words of the right form count."""
    name = exception if _NAME.fullmatch(exception) else "an error"
    return f"{name} at {trace if _TRACE.fullmatch(trace) else 'an unknown place'}"


def _memory(limits: BoxLimits) -> Ending:
    return Ending(verdict=Verdict.MEMORY, message=f"used more than {limits.memory_mb} MiB of memory")


def _file_size(limits: BoxLimits) -> Ending:
    return Ending(verdict=Verdict.FILE_SIZE, message=f"wrote a file of more than {limits.file_mb} MiB")
