"""Runs one command and turns what it raises into a message and an exit code (docs/reference/commands.md)."""

import argparse
import contextlib
import os
import signal
import sqlite3
import threading
import traceback
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from console.cli.output import Printer
from core.errors import AdeError, ManifestInvalid, SandboxUnavailable, StoreUnavailable
from infra import own_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.jobs import Job


class Exit(IntEnum):
    OK = 0
    FAILED = 1  # a job failed, or the doctor found a problem
    USAGE = 2  # invalid arguments, files, settings or manifest
    TIMED_OUT = 3  # a job ran out of time, or `--wait` did
    STOPPED = 4  # a job was cancelled or skipped, or its outputs have expired
    UNAVAILABLE = 5  # store, table, queue or sandbox is unavailable; try again later
    REVIEW = 6  # a job waits for a person's decision
    INTERNAL = 70  # a bug of ade-drop
    INTERRUPTED = 130  # ended by a second Ctrl-C, or by one while there was nothing to drain


_BY_STATE = {  # by name: core.jobs costs more to load than `ade --help` may
    "SUCCEEDED": Exit.OK,
    "FAILED": Exit.FAILED,
    "TIMED_OUT": Exit.TIMED_OUT,
    "CANCELLED": Exit.STOPPED,
    "SKIPPED": Exit.STOPPED,
    "EXPIRED": Exit.STOPPED,
    "REVIEW": Exit.REVIEW,
}
# Of several jobs the worst end counts: what failed hides nothing, what was stopped hides no failure.
_WORST_FIRST = (Exit.FAILED, Exit.TIMED_OUT, Exit.STOPPED, Exit.REVIEW, Exit.OK)


def exit_of(jobs: "list[Job]") -> Exit:
    """The exit code of jobs that have ended or wait for a person: the worst of theirs."""
    found = {_BY_STATE[job.state] for job in jobs}
    return next((code for code in _WORST_FIRST if code in found), Exit.OK)


class Command(Protocol):
    """A module of console/cli/commands: its options and its action."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, out: Printer) -> int: ...


def run(command: Command, args: argparse.Namespace) -> int:
    return run_work(command.run, args)


def run_work(work: "Callable[[argparse.Namespace, Printer], int]", args: argparse.Namespace) -> int:
    """Run a command, or the part of one that a process of its own does; expected errors become exit codes."""
    out = Printer(as_json=bool(getattr(args, "json", False)))
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # see console.cli.start
    try:
        return work(args, out)
    except ManifestInvalid as error:
        problems = [f"  {p.path}: {p.problem} (allowed: {p.allowed})" for p in error.problems]
        return _fail(out, "\n".join(["the manifest does not validate:", *problems]), Exit.USAGE)
    except (StoreUnavailable, SandboxUnavailable) as error:
        return _fail(out, str(error), Exit.UNAVAILABLE)
    except AdeError as error:
        return _fail(out, str(error), Exit.USAGE)
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as error:
        if remedy := own_code.missing_extra(error):
            return _fail(out, remedy, Exit.USAGE)
        return _fail_internally(out, error)
    except (OSError, sqlite3.DatabaseError) as error:
        return _fail(out, _os_words(error), Exit.UNAVAILABLE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: report it as an internal error
        return _fail_internally(out, error)


def _fail_internally(out: Printer, error: Exception) -> int:
    if os.environ.get("ADE_LOG_LEVEL") == "debug":
        traceback.print_exception(error)
    message = f"internal error: {type(error).__name__}: {error}\nplease report it with ADE_LOG_LEVEL=debug"
    return _fail(out, message, Exit.INTERNAL)


def _fail(out: Printer, text: str, code: Exit) -> int:
    if out.as_json:
        with contextlib.suppress(OSError):  # where the output itself cannot be written
            out.emit({"error": text, "exit": int(code)})
    out.note(f"ade: {text}")
    return code


def _os_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}"
