"""The walk of docs/guides/rule-author.md, step by step: its files, its commands, its words."""

import json
import re
from pathlib import Path

from core.manifests import parse_manifest
from runner.engine.pages.explain import explain
from tests.support.engine_jobs import run_order

PAGE = (Path(__file__).parents[4] / "docs" / "guides" / "rule-author.md").read_text()
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def try_it(folder: Path) -> str:
    """What `ade try` does with the folder, and what it says."""
    manifest = parse_manifest((folder / "manifest.json").read_bytes())
    auxiliary = [
        {"role": "auxiliary", "name": a.name, "file": a.path, "path": a.path} for a in manifest.inputs.auxiliary
    ]
    order = {
        "order": 1,
        "job": {},
        "manifest": manifest.model_dump(mode="json"),
        "inputs": [{"role": "primary", "name": "members.csv", "path": "members.csv"}, *auxiliary],
        "config": {"path": manifest.config},
        "outputs": {"normalized.xlsx": "normalized.xlsx", "artifact.json": "artifact.json"},
    }
    return "\n".join(explain(run_order(order, folder).artifact))


def test_each_step_of_the_tutorial_says_what_the_page_says(tmp_path):
    steps = 0
    for kind, name, text in BLOCK.findall(PAGE):
        if name:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif kind == "console":
            steps += 1
            command, *lines = text.strip().splitlines()
            assert command == "$ ade try members.csv --manifest manifest.json --out out"
            said = try_it(tmp_path)
            assert [line for line in lines if line not in said] == [], said
    assert steps == 6


def test_the_tutorials_manifests_are_json():
    manifests = [text for _, name, text in BLOCK.findall(PAGE) if name == "manifest.json"]
    assert len([json.loads(m) for m in manifests]) == 5
