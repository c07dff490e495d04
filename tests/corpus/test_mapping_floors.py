"""Mapping on labelled workbooks of other people, with the fields' bare names and nothing else to go by."""

import json
from itertools import islice
from pathlib import Path

import openpyxl
import pytest

from runner.engine.fields import Field
from runner.engine.mapping.score import THRESHOLD, ColumnIn, Sample, choose

LABELLED = Path(__file__).parents[3] / "shared" / "corpus" / "labelled"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not LABELLED.exists(), reason="the shared corpus is not here"),
]


def mapped(truth):
    book = openpyxl.load_workbook(LABELLED / truth["file"], read_only=True)
    headers, *rows = islice(book[truth["sheet"]].iter_rows(values_only=True), 201)
    book.close()
    columns = [ColumnIn(n, (str(h),), Sample(v)) for n, (h, *v) in enumerate(zip(headers, *rows, strict=True))]
    fields = [Field({"name": name}) for name in truth["target_fields"]]
    found = choose(columns, fields, threshold=THRESHOLD, detected={}, allowed=lambda _: None)
    return {headers[c.position]: c.field for c in found if c.field is not None}


def test_no_column_is_given_to_a_field_it_is_not_and_three_of_four_are_found():
    right = wrong = wanted = 0
    for line in (LABELLED / "truth" / "mapping_h2_xlsx.jsonl").read_text().splitlines():
        truth = json.loads(line)
        found = mapped(truth)
        good = sum(truth["mapping"].get(header) == field for header, field in found.items())
        right, wrong, wanted = right + good, wrong + len(found) - good, wanted + len(truth["mapping"])
    assert (wrong, right / wanted > 0.75) == (0, True), f"{right} right, {wrong} wrong of {wanted}"
