"""report.html and the drawings that it shares with the console."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from runner.engine.pages import drawing
from runner.engine.pages.report import report
from tests.support.documents import artifact

SAMPLE = artifact("Pay")


def changed(**parts: Any) -> dict[str, Any]:
    """The sample with some of its parts changed, each a dictionary merged into the one there or a new value."""
    made = deepcopy(SAMPLE)
    for name, value in parts.items():
        made[name] = made.get(name, {}) | value if isinstance(value, dict) else value
    return made


def findings(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"findings": list(listed), "kept": len(listed), "total": len(listed)}


def finding(cell: str, message: str = "is blank", severity: str = "error") -> dict[str, Any]:
    return {"code": "x", "severity": severity, "message": message, "sheet": "Pay", "table": "Pay", "cell": cell}


def test_the_file_the_time_and_the_verdict_come_before_everything_else():
    page = report(SAMPLE, at=1_750_000_000)
    places = [page.index(text) for text in ("<h1>Pay</h1>", "15 June 2025", "taken over", "What to fix", "Details")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("errors", "warnings", "left_out", "sheets", "said"),
    [
        (0, 0, {}, ["x"], "7 rows taken over; nothing to fix."),
        (0, 3, {}, ["x"], "7 rows taken over. 3 values to check."),
        (1, 0, {}, ["x"], "7 rows taken over; 1 value to fix."),
        (2, 0, {"rejected": 2}, ["x"], "7 rows taken over; 2 rows sent back to be fixed."),
        (1, 0, {}, [], "The file was not taken over: nothing was written."),
    ],
)
def test_the_verdict_is_one_sentence(errors, warnings, left_out, sheets, said):
    counts = {"error": errors, "warning": warnings, "info": 0}
    made = changed(summary={"findings": counts, "left_out": left_out}, output={"sheets": sheets})
    assert f"<p>{said}</p>" in report(made)


def test_what_to_fix_is_reported_once_for_all_cells_of_a_column_in_the_senders_words():
    page = drawing.fixes(changed(validation=findings(finding("A3"), finding("A5"), finding("B5"))))
    assert page.count("<li") == 2
    assert "column A “Pay”: is blank" in page
    assert "<code>A3</code>, <code>A5</code>" in page


def test_the_file_is_named_where_there_are_several_and_one_that_corrects_rows_is_called_so():
    one = SAMPLE["inputs"][0]
    inputs = [{**one, "name": "a.csv"}, {**one, "name": "b.csv"}]
    listed = [{**finding("A3"), "input": name} for name in ("a.csv", "b.csv")]
    page = report(changed(inputs=inputs, validation={**SAMPLE["validation"], **findings(*listed)}))
    assert page.count("File “a.csv”, sheet “Pay”, column A") == 1
    assert "2 files" in page
    inputs[1]["role"] = "mended"
    page = report(changed(inputs=inputs, mends={"jobs": ["j"], "rows": 3, "left_out": 1}))
    assert "<h1>a.csv</h1>" in page
    assert "3 rows corrected by b.csv. 1 row left out; see below." in page


def test_errors_come_before_warnings_and_notes_are_left_out():
    listed = (finding("A3", "odd", "warning"), finding("A4", "wrong"), finding("A5", "by the way", "info"))
    page = drawing.fixes(changed(validation=findings(*listed)))
    assert page.index("wrong") < page.index("odd")
    assert "by the way" not in page


def test_a_grid_of_many_runs_shows_its_first_and_last_ones():
    made = changed()
    rows = [{"from": n, "to": n, "as": "data" if n % 2 else "group", "table": "t1", "rows": 1} for n in range(2, 5000)]
    made["sheets"][0]["rows"] = rows
    grid = drawing.grids(made)
    assert grid.count("<tr>") < 70
    assert '<th scope="row">2</th>' in grid
    assert '<th scope="row">4,999</th>' in grid
    assert "4,950 more runs of rows" in grid


def test_a_grid_counts_findings_in_their_column_and_run():
    grid = drawing.grids(changed(validation=findings(finding("A3"), finding("A5"), finding("A9"))))
    assert 'title="2 errors in column A">2</span>' in grid


@pytest.mark.parametrize(("value", "kind"), [(0.99, "high"), (0.6, "middle"), (0.1, "low")])
def test_a_bar_is_as_long_as_its_probability(value, kind):
    assert f'class="{kind}" width="{100 * value:.0f}"' in drawing.bar(value)


def test_artifacts_of_the_version_before_are_drawn_too():
    old = {"table": "Pay", "column": "A", "header": "Pay", "header_cell": "A1", "target": "pay", "score": 0.5,
           "contributors": [{"rule": "header", "delta": 0.5}], "runners_up": [], "note": None}  # fmt: skip
    assert "50%" in drawing.columns(changed(mapping=[old]))


def test_what_changed_since_the_last_drop_is_listed_and_nothing_is_reported_to_be_so():
    assert "New column “Pay”" in drawing.drift(SAMPLE)
    same = {"columns": {}, "values": [], "previous": {}}
    assert "Nothing changed" in drawing.drift(changed(drift=same) | {"drift": same})
    without = {name: part for name, part in SAMPLE.items() if name != "drift"}
    assert drawing.drift(without) == ""


def documented_rules():
    table = (
        (Path(__file__).parents[3] / "docs/explanation/mapping.md").read_text().partition("| rule | what it is |")[2]
    )
    names = [
        name
        for line in table.strip().split("\n\n")[0].splitlines()
        for name in re.findall("`([^`]+)`", line.split("|")[1])
    ]
    return [name for name in names if name != "prior" and "." not in name]


@pytest.mark.parametrize("rule", [*documented_rules(), "header", "header:name~", "decision", "hooks.after_mapping"])
def test_every_reason_has_words_for_and_against(rule):
    said = {drawing.in_words(rule, 1.0), drawing.in_words(rule, -1.0)}
    assert len(said) == 2
    assert rule not in said
    assert not any(text.endswith(" ") or "{" in text for text in said)
