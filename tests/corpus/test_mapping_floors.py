"""Mapping on labelled workbooks of other people: with the fields' bare names, and after learning from one workbook."""

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pytest

from runner.engine.common.fields import Field
from runner.engine.mapping.score import THRESHOLD, ColumnIn, Sample, choose
from runner.engine.memory.confirmed import ConfirmedHeaders
from runner.engine.memory.recall import Recall

LABELLED = Path(__file__).parents[3] / "shared" / "corpus" / "labelled"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not LABELLED.exists(), reason="the shared corpus is not here"),
]


class Score(NamedTuple):
    right: int
    wrong: int
    wanted: int

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, self.right + self.wrong + self.wanted)


@cache
def workbooks() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (LABELLED / "truth" / "mapping_h2_xlsx.jsonl").read_text().splitlines()]


@cache
def columns(n: int) -> list[ColumnIn]:
    truth = workbooks()[n]
    book = openpyxl.load_workbook(LABELLED / truth["file"], read_only=True)
    headers, *rows = islice(book[truth["sheet"]].iter_rows(values_only=True), 201)
    book.close()
    return [ColumnIn(at, (str(h),), Sample(v)) for at, (h, *v) in enumerate(zip(headers, *rows, strict=True))]


def score(numbers: list[int], entries: list[dict[str, Any]]) -> Score:
    right = wrong = wanted = 0
    for n in numbers:
        truth = workbooks()[n]
        fields = [Field({"name": name}) for name in truth["target_fields"]]
        recall = Recall(ConfirmedHeaders(entries))
        found = choose(columns(n), fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None, recall=recall)
        given = {columns(n)[c.position].headers[0]: c.field for c in found if c.field is not None}
        good = sum(truth["mapping"].get(header) == field for header, field in given.items())
        right, wrong, wanted = right + good, wrong + len(given) - good, wanted + len(truth["mapping"])
    return Score(right, wrong, wanted)


def test_with_bare_names_no_column_is_given_to_a_field_it_is_not_and_nearly_all_are_found():
    found = score(list(range(len(workbooks()))), [])
    assert (found.wrong, found.f1 >= 0.95) == (0, True), found


def test_one_workbook_teaches_the_others():
    for taught, truth in enumerate(workbooks()):
        entries = [{"header": h, "field": f, "count": 1, "at": "2026-01-31"} for h, f in truth["mapping"].items()]
        found = score([n for n in range(len(workbooks())) if n != taught], entries)
        assert found.f1 >= 0.97, (taught, found)
