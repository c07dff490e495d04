"""Runs one command and turns what it raises into words and an exit code."""

import argparse
import os
import sqlite3
import traceback
from typing import Protocol

from console.exits import Exit
from console.output import Output
from core.errors import AdeError, ManifestInvalid, SandboxUnavailable, StoreUnavailable


class Command(Protocol):
    """A module of console/commands: its options, and what it does."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, out: Output) -> int: ...


def run(command: Command, args: argparse.Namespace) -> int:
    out = Output(as_json=bool(getattr(args, "json", False)))
    try:
        return command.run(args, out)
    except ManifestInvalid as error:
        problems = [f"  {p.path}: {p.problem} (allowed: {p.allowed})" for p in error.problems]
        return _say(out, "\n".join(["the manifest does not validate:", *problems]), Exit.USAGE)
    except (StoreUnavailable, SandboxUnavailable) as error:
        return _say(out, str(error), Exit.UNAVAILABLE)
    except AdeError as error:
        return _say(out, str(error), Exit.USAGE)
    except BrokenPipeError:
        raise
    except (OSError, sqlite3.DatabaseError) as error:
        return _say(out, _os_words(error), Exit.UNAVAILABLE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line: a fault of ours, told as one
        if os.environ.get("ADE_LOG_LEVEL") == "debug":
            traceback.print_exc()
        said = f"internal error: {type(error).__name__}: {error}\nADE_LOG_LEVEL=debug shows where; please report it"
        return _say(out, said, Exit.INTERNAL)


def _say(out: Output, text: str, code: Exit) -> int:
    if out.as_json:
        out.emit({"error": text, "exit": int(code)})
    out.note(f"ade: {text}")
    return code


def _os_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}"
