"""The command `ade`. In: arguments. Out: an exit code. Only the module of the given command is loaded."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

from console.cli import guard
from console.cli.commands import COMMANDS, module_of

EPILOG = """\
examples:
  ade up                                                watch the bucket, run jobs, clean up
  ade drop members.xlsx --manifest manifest.json --tenant acme --wait
  ade try members.xlsx --manifest manifest.json --out result/
  ade jobs --state FAILED
  ade doctor

Settings are ADE_* variables (docs/reference/settings.md). Exit codes and JSON shapes are in docs/reference/commands.md.
"""


class Parser(argparse.ArgumentParser):
    """argparse, with a pointer to the help of the command in error messages."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The tree of commands. `only`: give options to this one and leave the others as bare names."""
    parser = Parser(
        prog="ade",
        description="Drop a spreadsheet and a manifest into a bucket; a clean workbook and an audit come out.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, summary in COMMANDS.items():
        one = commands.add_parser(
            name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if only in (None, name):
            module_of(name).arguments(one)
            add_json(one)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json` on a command and on each of its own subcommands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to its own tree
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for child in action.choices.values():
                add_json(child)
            return
    if "--json" not in parser._option_string_actions:  # noqa: SLF001
        parser.add_argument("--json", action="store_true", help="print JSON (docs/reference/commands.md)")


def main(words: Sequence[str] | None = None) -> int:
    _prepare_streams()
    words = list(sys.argv[1:] if words is None else words)
    if words[:1] == ["--version"]:
        words[0] = "version"
    only = next((w for w in words if not w.startswith("-")), "")
    parser = build_parser(only if only in COMMANDS else "")
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help()
        return 2
    gc.enable()  # see ade_drop/__main__.py
    return _guarded(args)


def _prepare_streams() -> None:
    """Make both streams writable: one may be closed, or in an encoding without the signs that are printed."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            if (opened := os.open(os.devnull, os.O_WRONLY)) != descriptor:  # so that no file gets its number
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _guarded(args: argparse.Namespace) -> int:
    """Run a command; expected errors are reported without a traceback."""
    try:
        code = guard.run(module_of(args.command), args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; Python must not complain when it flushes at exit.
        _let_go_of_stdout()
        return 0
    except OSError as error:
        _let_go_of_stdout()
        print(f"ade: the output cannot be written: {error.strerror}", file=sys.stderr)
        return guard.Exit.UNAVAILABLE
    return code


def _let_go_of_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
