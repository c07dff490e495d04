"""The command line as a whole: help, JSON, exit codes, colours, completion, and that the docs tell the truth about it."""

import argparse
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from console.cli.commands import COMMANDS
from console.cli.guard import Exit
from console.cli.main import build_parser
from core.jobs import State
from core.manifests import manifest_schema
from core.settings import PREFIX, Settings
from tests.acceptance.ade import ADE, Ade, Terminal

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = (
    ROOT / "README.md",
    DOCS / "start" / "first-drop.md",
    DOCS / "start" / "from-samples.md",
    *(
        DOCS / "guides" / f"{name}.md"
        for name in ("sender", "downstream", "operator", "console", "testing", "backups", "tenants", "links")
    ),
    *(DOCS / "reference" / f"{name}.md" for name in ("commands", "settings")),
    DOCS / "explanation" / "mapping.md",
)


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


def leaves(parser=None, path=()):
    """Every command that can be run, with its parser."""
    parser = parser or build_parser()
    children = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not children:
        yield " ".join(path), parser
    for action in children:
        for name, child in action.choices.items():
            yield from leaves(child, (*path, name))


def test_every_command_has_json():
    without = [name for name, parser in leaves() if "--json" not in parser._option_string_actions]
    assert without == []


def test_every_command_stands_in_the_docs():
    text = (REFERENCE / "commands.md").read_text()
    assert [name for name, _ in leaves() if f"`ade {name}" not in text] == []


def test_every_option_stands_in_the_docs():
    text = (REFERENCE / "commands.md").read_text()
    options = {o for _, parser in leaves() for o in parser._option_string_actions if o.startswith("--")}
    assert sorted(o for o in options - {"--help"} if o not in text) == []


def test_every_exit_code_stands_in_the_docs_with_its_name():
    text = (REFERENCE / "commands.md").read_text()
    assert [code.name for code in Exit if f"| {code.value} | {code.name} |" not in text] == []


def test_every_state_stands_in_the_docs():
    text = (REFERENCE / "states.md").read_text()
    assert [state for state in State if f"| `{state}` |" not in text or f"\n| {state} |" not in text] == []


@pytest.mark.parametrize("spec", fields(Settings), ids=lambda spec: spec.name)
def test_every_setting_stands_in_the_docs_with_its_default(spec):
    default = spec.default
    shown = f"{default:g}" if isinstance(default, float) else str(default).lower() if default is not None else ""
    words = f"| `{PREFIX}{spec.name.upper()}` | {f'`{shown}`' if shown else 'unset'} | {spec.metadata['doc']} |"
    assert words in (REFERENCE / "settings.md").read_text()


def test_the_published_schema_is_the_one_in_the_code():
    assert json.loads((REFERENCE / "manifest.schema.json").read_text()) == manifest_schema()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_in_their_order(page, tmp_path):
    """Every `sh` block of a page, one after the other in one shell, stopping at the first that fails."""
    text = page.read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks, f"{page.name} has no example"
    script = "set -eu\n" + "\n".join(blocks).replace(".venv/bin/ade", "ade").replace("make ", ": make ")
    env = Ade(tmp_path).environment(ADE_SANDBOX_MIN_LEVEL="limits", ADE_STORAGE_DATA_DIR="data")
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_help_loads_nothing_heavy():
    code = "import sys; from console.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('pydantic', 'rich', 'sqlite3.dbapi2', 'apscheduler') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    # sqlite3 is known to the guard by its error alone, which costs little.
    assert done.stdout.splitlines()[-1] in ("[]", "['sqlite3.dbapi2']")


def test_every_command_is_listed_in_the_help(ade):
    said = ade("--help").out
    assert [name for name in COMMANDS if f"    {name}" not in said] == []


def test_no_words_at_all_is_a_usage_error(ade):
    assert ade(expect=2).out.startswith("usage: ade")


def test_an_unknown_word_is_a_usage_error_that_says_where_help_is(ade):
    assert "--help" in ade("jbos", expect=2).err


@pytest.mark.parametrize("words", [("jobs", "--nope"), ("memory", "show", "--nope")])
def test_an_unknown_option_points_to_the_help_of_its_command(ade, words):
    command = " ".join(word for word in words[:2] if not word.startswith("-"))
    assert f"unrecognized arguments: --nope; see `ade {command} --help`" in ade(*words, expect=2).err


def test_the_version_is_reported(ade):
    assert ade("--version").out == ade("version").out
    assert ade("version", "--json").json["version"]


def test_a_pipe_gets_no_colours_and_no_cut_lines(ade):
    job = ade.dropped()
    said = ade("jobs").out
    assert "\x1b" not in said
    assert job in said


def on_terminal(ade, *words, **env):
    with Terminal(ade, *words, **env) as screen:
        screen.end()
    return screen.said


def test_a_terminal_gets_colours_unless_asked_otherwise(ade):
    ade.dropped()
    assert "\x1b[34mQUEUED\x1b[0m" in on_terminal(ade, "jobs")
    assert "\x1b" not in on_terminal(ade, "jobs", NO_COLOR="1")


def test_names_of_strangers_cannot_move_the_cursor(ade):
    ade("sweep")
    folder = ade.bucket / "inbox" / "acme"
    folder.mkdir(parents=True)
    (folder / "a\u202eb.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    ade("sweep")
    said = ade("jobs").out
    assert "\u202e" not in said
    assert "a\\u202eb.csv" in said


def test_a_reader_that_has_seen_enough_is_no_error(ade):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {ADE} manifest-schema | head -c 1"],
        env=ade.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("ade retr", ["retry", "retry-failed"]), ("ade queue re", ["redrive"]), ("ade jobs --te", ["--tenant"])],
)
def test_bash_completes_commands_and_options(ade, typed, expected):
    words = typed.split()
    script = f"""{ade("completion", "bash").out}
COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _ade; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_know_every_command(ade, shell):
    script = ade("completion", shell).out
    assert [name for name in COMMANDS if name not in script] == []


def _shell(tmp_path, line, **environment):
    """A command line as a shell runs it, without a terminal."""
    settings = {"PATH": "/usr/bin:/bin", "ADE_STORAGE_DATA_DIR": str(tmp_path / "data"), **environment}
    return subprocess.run(
        ["sh", "-c", line.replace("ade ", f"{ADE} ")], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
    )  # fmt: skip


@pytest.mark.parametrize("line", ["ade version >&-", "ade version >&- 2>&-", "ade version 2>&-"])
def test_a_closed_stream_is_no_error(tmp_path, line):
    done = _shell(tmp_path, line)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["ade version >/dev/full", "ade version --json >/dev/full"])
def test_output_that_cannot_be_written_is_reported_in_one_line(tmp_path, line):
    done = _shell(tmp_path, line)
    assert done.returncode == Exit.UNAVAILABLE
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_signs_that_the_terminal_cannot_show_do_not_stop_a_command(tmp_path):
    (tmp_path / "in.csv").write_text("name,größe\nZoë,1\nAnn,2\n", encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = _shell(tmp_path, "ade scan in.csv", **ascii_only)
    assert done.returncode == 0, done.stderr
    (tmp_path / "manifest.json").write_text('{"manifest": 1, "name": "m", "fields": [{"name": "name"}]}')
    done = _shell(tmp_path, "ade map in.csv --manifest manifest.json --json", **ascii_only)
    assert "größe" in [column["header"] for column in json.loads(done.stdout)["tables"][0]["columns"]], done.stderr


def test_a_damaged_table_is_named_with_its_remedy(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ade.sqlite").write_bytes(b"not a database at all" * 50)
    done = _shell(tmp_path, "ade jobs")
    assert done.returncode == Exit.UNAVAILABLE
    assert "ade.sqlite is damaged" in done.stderr
    assert "restore it from a backup" in done.stderr


@pytest.mark.parametrize("words", [["jobs"], ["scan", "in.csv"]])
def test_ctrl_c_while_a_command_loads_leaves_no_traceback(tmp_path, words):
    """The first line of the command's own modules is traced; from there on the signal may come at any time."""
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    code = (
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('sqlite3', 'console.cli.commands.jobs', 'console.cli.commands.scan'):\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press())\n"
        "from console.cli import start\n"
        f"sys.argv = ['ade', *{words!r}]\n"
        "sys.exit(start())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-2, "")
