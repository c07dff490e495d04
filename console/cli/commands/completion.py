"""`ade completion bash|zsh|fish`: completion scripts generated from the command tree."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from console.cli.guard import Exit
from console.cli.main import build_parser
from console.cli.output import Printer


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(_WRITERS))
    parser.epilog = "bash: source <(ade completion bash)   zsh: ade completion zsh > ~/.zfunc/_ade   fish: …/ade.fish"


def run(args: argparse.Namespace, out: Printer) -> int:
    script = _WRITERS[args.shell](list(_words(build_parser(), ())))
    if out.as_json:
        out.emit({"shell": args.shell, "script": script})
    else:
        print(script, end="")
    return Exit.OK


@dataclass(frozen=True, slots=True)
class Words:
    """The subcommands and options of a command, each with its help."""

    path: tuple[str, ...]
    commands: dict[str, str]
    options: dict[str, str]


def _words(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Words]:
    commands: dict[str, str] = {}
    options: dict[str, str] = {}
    children: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to its own tree
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            children = dict(action.choices)
            commands = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
        elif action.option_strings:
            options |= dict.fromkeys(action.option_strings, action.help or "")
        elif action.choices is not None:
            commands |= dict.fromkeys(map(str, action.choices), "")
    yield Words(path, commands, options)
    for name, child in children.items():
        yield from _words(child, (*path, name))


def _bash(all_words: list[Words]) -> str:
    cases = "\n".join(f'    "{" ".join(w.path)}") words="{" ".join([*w.commands, *w.options])}" ;;' for w in all_words)
    return f"""\
# bash completion for ade
_ade() {{
  local here="${{COMP_WORDS[COMP_CWORD]}}" path="" word words=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) ;; *) [ "${{path// /}}" = "$path" ] && path="${{path:+$path }}$word" ;; esac
  done
  case "$path" in
{cases}
    *) path="${{path%% *}}"; case "$path" in
{_indent(cases)}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$here"))
  [ ${{#COMPREPLY[@]}} -eq 0 ] && COMPREPLY=($(compgen -f -- "$here"))
}}
complete -o filenames -F _ade ade
"""


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _zsh(all_words: list[Words]) -> str:
    cases = "\n".join(
        f"    {_quoted(' '.join(w.path))}) words=({' '.join(_described(w.commands | w.options))}) ;;" for w in all_words
    )
    return f"""\
#compdef ade
# zsh completion for ade
_ade() {{
  local -a words_before words
  words_before=(${{${{(@)words[2,CURRENT-1]}}:#-*}})
  case "${{(j: :)words_before[1,2]}}" in
{cases}
  esac
}}
"""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _described(words: dict[str, str]) -> list[str]:
    return [_quoted(f"{name.replace(':', chr(92) + ':')}:{_plain(help_)}") for name, help_ in words.items()]


def _plain(help_: str) -> str:
    return help_.replace("%%", "%").replace("`", "")


def _fish(all_words: list[Words]) -> str:
    lines = ["# fish completion for ade"]
    for w in all_words:
        if not w.path:
            when = "__fish_use_subcommand"
        else:
            when = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in w.path)
        for name, help_ in w.commands.items():
            lines.append(f"complete -c ade -n {_quoted(when)} -a {name} -d {_quoted(_plain(help_))}")
        for name, help_ in w.options.items():
            flag = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            lines.append(f"complete -c ade -n {_quoted(when)} {flag} -d {_quoted(_plain(help_))}")
    return "\n".join(lines) + "\n"


_WRITERS: dict[str, Callable[[list[Words]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
