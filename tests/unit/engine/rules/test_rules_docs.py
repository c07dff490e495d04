"""Every example in the rule author's pages is run."""

import json
import re
from datetime import datetime, time
from pathlib import Path

import pytest

from core.fields import Clean, FieldSpec, FieldType, RowRule
from core.manifests import Manifest, parse_manifest
from core.wording import keys_of
from runner.engine.rules.load import ARGUMENTS, HOOKS
from tests.support.engine_jobs import run_job

REFERENCE = Path(__file__).parents[4] / "docs" / "reference"
EXAMPLE = re.compile(r"```(json|python)\n(.*?)```\n\n(\| .*?)(?:\n\n|\Z)", re.DOTALL)
CELL = re.compile(r"`([^`]*)`")


def examples(page):
    """(code, header, [(cell, becomes, finding)]) of each code block that a table follows."""
    for _, code, table in EXAMPLE.findall((REFERENCE / page).read_text()):
        lines = [[c.strip() for c in line.strip("| ").split(" | ")] for line in table.splitlines()]
        rows = []
        for before, after in lines[2:]:
            words = CELL.findall(after)
            rows.append(
                (json.loads(CELL.findall(before)[0]), json.loads(words[0]), words[1] if len(words) > 1 else None)
            )
        yield code, lines[0][0], rows


def plain(value):
    """A written value the way the pages show it."""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, time) else value


def check(done, name, rows):
    assert [plain(v) for v in done.column(name)] == [after for _, after, _ in rows]
    wanted = [(f"A{n}", finding) for n, (_, _, finding) in enumerate(rows, 2) if finding]
    assert [(f["cell"], f["code"]) for f in done.findings if f.get("cell")] == wanted


TYPES = list(examples("types.md"))
PYTHON = list(examples("python-rules.md"))


@pytest.mark.parametrize("example", TYPES, ids=lambda e: e[0].strip()[:60])
def test_an_example_of_types_md_holds(example, tmp_path):
    code, _, rows = example
    field = json.loads(code)
    done = run_job(
        tmp_path, [[field["name"], "row"], *([before, n] for n, (before, _, _) in enumerate(rows))], fields=[field]
    )
    check(done, field["name"], rows)


@pytest.mark.parametrize("example", PYTHON, ids=lambda e: e[0].splitlines()[0] + e[0].splitlines()[1][:30])
def test_an_example_of_python_rules_md_holds(example, tmp_path):
    code, header, rows = example
    path = code.splitlines()[0].removeprefix("# ")
    done = run_job(
        tmp_path,
        [[header, "row"], *([before, n] for n, (before, _, _) in enumerate(rows))],
        fields=[{"name": name} for name in sorted({header, "code"}) if name.isidentifier()],
        rules={path: code},
    )
    check(done, "code", rows)


def test_the_row_rule_of_types_md_is_one():
    text = (REFERENCE / "types.md").read_text().partition("## rules over a row")[2]
    RowRule.model_validate_json(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])


def test_every_type_step_and_key_is_in_types_md():
    text = (REFERENCE / "types.md").read_text()
    assert [t for t in FieldType if f"## {t}" not in text] == []
    assert [c for c in Clean if f"`{c}`" not in text] == []
    pages = text + (REFERENCE / "manifest.md").read_text()
    assert [k for k in keys_of(FieldSpec) if k not in pages] == []


def test_every_argument_and_hook_is_in_python_rules_md():
    text = (REFERENCE / "python-rules.md").read_text()
    named = {a for arguments in ARGUMENTS.values() for a in arguments}
    assert [a for a in sorted(named) if f"`{a}`" not in text] == []
    assert [h for h in HOOKS if f"`{h}`" not in text] == []


def test_the_manifest_of_manifest_md_validates_and_names_every_key():
    text = (REFERENCE / "manifest.md").read_text()
    raw = re.search(r"```json\n(.*?)```", text, re.DOTALL)[1]
    parse_manifest(raw.encode())
    assert [k for k in keys_of(Manifest) if f"`{k}" not in text] == []
    assert [k for k in keys_of(FieldSpec) if f"`{k}`" not in text] == []


def test_every_code_of_a_finding_is_in_findings_md():
    """Codes are literals in the first place of `add`, or in the second of `flag`."""
    text = (REFERENCE / "findings.md").read_text()
    calls = re.compile(r"(?:findings\.add\(|flag\([^()]*?,)\s*\"([a-z_]+)\"", re.DOTALL)
    engine = REFERENCE.parents[1] / "runner" / "engine"
    found = {code for path in engine.rglob("*.py") for code in calls.findall(path.read_text())}
    assert len(found) >= 14
    assert [code for code in sorted(found) if f"`{code}`" not in text] == []
