"""The structure pass on labelled sheets of other people: what it reaches must not be lost.

The weights were trained on these files, so the figures here are higher than on files never seen; those are what
`tools/train_structure.py` tells by cross-validation (docs/explanation/structure.md).
"""

import json
import pathlib

import pytest

from runner.engine.scan import scan_file
from tests.bench.structure_scores import LINES, TABLES, box, counts, score

LABELLED = pathlib.Path(__file__).resolve().parents[3] / "shared/corpus/labelled"
EVERY = 4  # one sheet of four: the whole takes over a minute

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.slow,
    pytest.mark.skipif(not LABELLED.exists(), reason="the shared corpus is not here"),
]


def scanned():
    for source in LINES + TABLES:
        lines = (LABELLED / "truth" / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
        truths = [truth for truth in map(json.loads, lines) if counts(source, truth)]
        for truth in truths[::EVERY]:
            yield source, truth, scan_file(LABELLED / truth["file"])


def tables_in(result, truth):
    sheets = result["sheets"]
    if truth.get("sheet") and not truth["file"].endswith(".csv"):
        sheets = [one for one in sheets if one["name"] == truth["sheet"]]
    return [one | {"range": box(one["range"])} for sheet in sheets for one in sheet["tables"]]


def test_scores_hold():
    results = list(scanned())
    assert [truth["file"] for _, truth, result in results if "error" in result] == []
    means = score([(source, truth, tables_in(result, truth)) for source, truth, result in results])
    floors = {"header_f1": 0.95, "leaf": 0.92, "recall": 0.88, "precision": 0.86}
    assert {key: (means[key], floor) for key, floor in floors.items() if means[key] < floor} == {}
