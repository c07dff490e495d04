"""The examples of docs/explanation/structure.md hold."""

import json
import pathlib
import re

from runner.engine.scan import scan_file
from runner.engine.structure import TableDetector
from runner.engine.structure.detection import MOST_STORED
from runner.engine.structure.features import names
from runner.engine.structure.tables import NAMES

PAGE = (pathlib.Path(__file__).resolve().parents[4] / "docs/explanation/structure.md").read_text(encoding="utf-8")


def block(kind):
    return re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_example_gives_what_the_page_says(tmp_path):
    file = tmp_path / "members.csv"
    file.write_text(block("csv"), encoding="utf-8")
    said = json.loads(block("json"))["tables"]
    found = scan_file(file)["sheets"][0]["tables"]
    assert [{key: one[key] for key in said[0]} for one in found] == said


def test_the_page_lists_every_label():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(NAMES)


def test_the_page_counts_facts_and_rows_right():
    assert f"by {len(names())} facts" in PAGE
    assert f"at most {MOST_STORED:,}" in PAGE


def test_the_rule_of_the_page_leaves_its_row_out():
    scope = {}
    exec(block("python"), scope)
    detector = TableDetector(
        row_scores=lambda _, values: scope["detect_void"](row_values_sample=values).get("scores", {})
    )
    for number in range(1, 30):
        detector.add(number, ["Name", "Pay"] if number == 1 else ["VOID" if number == 9 else f"name {number}", 1.5])
    (table,) = detector.tables()
    assert 9 in table.left_out
