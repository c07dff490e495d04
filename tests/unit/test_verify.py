"""What a box may not publish, whatever it says."""

import json
import shutil
from pathlib import Path

import pytest

from core.ports import Isolation
from runner.verify import BadOutput, counts, verify, verify_audit
from tests.support.outputs import artifact, as_bytes, audit, workbook

ROOT = Path(__file__).parents[2]
BOX = Isolation(driver="jail", level="isolated", rungs={}, gaps=())
ORDER = {
    "job": {"job_id": "a-b-1", "tenant": "a", "workflow": "b", "attempt": 1},
    "params": {},
    "inputs": [{"role": "primary", "name": "m.csv", "path": "in/0", "size": 3, "sha256": "0" * 64}],
    "config": {"path": None, "digest": "d"},
}


def outputs(folder, *, book=None, told=None):
    body = told if isinstance(told, bytes) else as_bytes(told or artifact(ORDER, BOX))
    (folder / "artifact.json").write_bytes(body)
    (folder / "normalized.xlsx").write_bytes(workbook() if book is None else book)
    return {name: folder / name for name in ("artifact.json", "normalized.xlsx")}


def test_honest_outputs_pass_with_their_counts(tmp_path):
    assert verify(ORDER, outputs(tmp_path), BOX)["rows_out"] == 1


def other(**changes):
    made = artifact(ORDER, BOX)
    for path, value in changes.items():
        at = made
        *folders, last = path.split("__")
        for name in folders:
            at = at[int(name) if name.isdigit() else name]
        at[last] = value
    return made


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (other(job__job_id="another"), "about its job"),
        (other(job__tenant="globex"), "about its job"),
        (other(config__digest="x"), "about its config"),
        (other(inputs__0__sha256="1" * 64), "about its inputs"),
        (other(engine__sandbox={"driver": "jail", "level": "none", "rungs": {}}), "about its sandbox"),
        (artifact(ORDER, BOX, rows=2), "counts 2 rows, normalized.xlsx has 1"),
        (other(output__rows=2), "the rows of its tables and its output"),
        (other(output__sheets=["Other"]), "sheets that normalized.xlsx does not have"),
        (other(surprise="value"), "does not fit its schema"),
        (other(summary="7"), "does not fit its schema at /summary"),
        (b"{", "is no JSON"),
        (b'{"a": NaN}', "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
    ],
)
def test_an_artifact_that_cannot_be_true_is_refused(tmp_path, told, said):
    with pytest.raises(BadOutput, match=said):
        verify(ORDER, outputs(tmp_path, told=told), BOX)


@pytest.mark.parametrize(
    ("book", "said"),
    [
        (workbook(sheet='<row r="1"><c r="A1"><f>1+1</f></c></row>'), "formula"),
        (workbook(sheet='<row r="1"><c r="A1"><f t="shared">1+1</f></c></row>'), "formula"),
        (workbook(sheet='<x:row r="1"><x:c r="A1"><x:f>1+1</x:f></x:c></x:row>'), "formula"),
        (workbook(sheet="<!-- <row --><row r='1'/><row r='2'/>"), "not read back"),
        (workbook(more={"xl/vbaProject.bin": "x"}), "a plain workbook does not have"),
        (workbook(more={"xl/externalLinks/externalLink1.xml": "x"}), "a plain workbook does not have"),
        (workbook(more={"../evil": "x"}), "a plain workbook does not have"),
        (b"PK\x03\x04", "no workbook"),
        (b"", "no workbook"),
    ],
)
def test_a_workbook_with_more_than_values_is_refused(tmp_path, book, said):
    with pytest.raises(BadOutput, match=said):
        verify(ORDER, outputs(tmp_path, book=book), BOX)


def test_a_missing_output_is_refused(tmp_path):
    found = outputs(tmp_path)
    del found["normalized.xlsx"]
    with pytest.raises(BadOutput, match=r"no normalized\.xlsx"):
        verify(ORDER, found, BOX)


def test_no_text_of_the_box_gets_into_the_counts():
    told = {"rows_in": "SECRET", "tables": True, "rows_out": -1, "findings": {"error": "SECRET"}, "SECRET": 1}
    assert "SECRET" not in json.dumps(counts(told))


def test_the_published_schema_is_the_one_that_is_enforced():
    """docs/ has the copy that people read."""
    assert (ROOT / "docs/artifact.schema.json").read_text() == (ROOT / "runner/artifact.schema.json").read_text()


def test_tags_at_the_edge_of_a_block_are_counted(tmp_path):
    rows = 60_000
    told = artifact(ORDER, BOX, rows=rows)
    found = outputs(tmp_path, book=workbook(rows), told=told)
    assert verify(ORDER, found, BOX)["rows_out"] == rows
    shutil.rmtree(tmp_path)


def audited(folder, told):
    (folder / "artifact.json").write_bytes(as_bytes(told))
    (folder / "report.html").write_text("<p>nothing</p>")
    return {name: folder / name for name in ("artifact.json", "report.html")}


def test_the_audit_of_a_job_that_wrote_no_workbook_passes_with_its_counts(tmp_path):
    assert verify_audit(ORDER, audited(tmp_path, audit(ORDER, BOX)), BOX)["rows_out"] == 0


def test_an_audit_is_of_its_own_job_and_counts_no_rows_of_a_workbook(tmp_path):
    with pytest.raises(BadOutput, match="about its job"):
        verify_audit({**ORDER, "job": {**ORDER["job"], "job_id": "x"}}, audited(tmp_path, audit(ORDER, BOX)), BOX)
    with pytest.raises(BadOutput, match="workbook that was not written"):
        verify_audit(ORDER, audited(tmp_path, artifact(ORDER, BOX)), BOX)
    with pytest.raises(BadOutput, match=r"no report\.html"):
        verify_audit(ORDER, {"artifact.json": tmp_path / "artifact.json"}, BOX)
