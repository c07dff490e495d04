"""Values in report.html: only where the manifest asks for them, harmless whatever they are, and nowhere else."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engine.contract import InputFacts, JobFacts, OutputName, ReportTerms, VerifyOrder
from runner.engine.pages.fixes import fixes, quoted
from runner.engine.pages.report import report
from runner.engine.protocol import BadOutput
from runner.engine.verifying import order as verifying
from tests.support.engine_jobs import run_job
from tests.support.samples import artifact

SAMPLE = artifact("Pay")
HOSTILE = [
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "\u202etxt.exe\u202c",
    "\u2066a\u2069\u200f\u061c",
    "\u05d0\u05d1\u05d2 1 2",
    "a\x00b\x07\x1b[31mc\r\nd",
    '=HYPERLINK("http://x","y")',
    "&lt;b&gt;",
    "\ud800",
    "z" * 1_000_000,
    "e" + "\u0301" * 5000,
    "\U000e0041\ufeff\u200b",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_is_text_that_everybody_sees_and_short(value):
    page = report(SAMPLE, values={0: value})
    inner = re.search(r"<q><bdi>(.*?)</bdi></q>", page)
    assert inner is not None
    assert "<" not in inner[1]
    assert inner[1].isprintable()
    assert len(inner[1]) < 80 * 7
    assert "<script" not in page
    assert "<img" not in page
    page.encode(errors="replace")


def test_a_value_is_beside_its_cell_and_hidden_unless_given():
    assert "<code>A3</code> <q><bdi>ten</bdi></q>" in fixes(SAMPLE, values={0: "ten"})
    assert "<q>" not in fixes(SAMPLE)
    assert "<q>" not in fixes(SAMPLE, values={7: "of no finding"})


def test_a_long_value_is_cut_to_eighty_characters():
    assert quoted("x" * 80) == f"<q><bdi>{'x' * 80}</bdi></q>"
    assert quoted("x" * 81) == f"<q><bdi>{'x' * 79}…</bdi></q>"


def checked(tmp_path: Path, body: bytes, *, shown: bool = True):
    """What the verifier takes from the file of values that a box wrote."""
    path = tmp_path / OutputName.SHOWN_VALUES
    path.write_bytes(body)
    wanted = VerifyOrder(
        job=JobFacts(), params={}, config_digest="", known=tuple[InputFacts, ...](),
        report=ReportTerms(shows_values=shown), written={OutputName.SHOWN_VALUES: path},
    )  # fmt: skip
    return verifying._read_shown_values(wanted, SAMPLE)


def test_values_are_taken_by_finding(tmp_path):
    assert checked(tmp_path, b'{"0": "ten"}') == {0: "ten"}
    assert checked(tmp_path, b"") == {}


def test_values_that_the_manifest_does_not_ask_for_are_refused(tmp_path):
    with pytest.raises(BadOutput, match="does not ask for"):
        checked(tmp_path, b"{}", shown=False)


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"nonsense", b"{", b'{"1": "no such finding"}', b'{"-1": "x"}', b'{"0": 3}', b'{"0": null}',
        b'{"\xc2\xb2": "x"}', b'{"99999999999999999999": "x"}', json.dumps({"0": "x" * 81}).encode(), b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_forged_file_of_values_is_refused_without_its_text(tmp_path, body):
    with pytest.raises(BadOutput) as refused:
        checked(tmp_path, body)
    assert str(refused.value) in ("values.json is not JSON", "values.json does not hold short texts by finding")


def test_a_report_without_values_needs_no_file_of_them():
    wanted = VerifyOrder(job=JobFacts(), params={}, config_digest="", known=())
    assert verifying._read_shown_values(wanted, SAMPLE) is None
    assert verifying._read_shown_values(replace(wanted, report=ReportTerms(shows_values=True)), SAMPLE) == {}


MARK = "Zqx9Secret"
ROWS = [["id", "qty", "month"], ["a", 1, "x"], ["b", MARK, "y"], ["c", -4, "z"], ["d", 2, "z"]]
FIELDS = [{"name": "id", "unique": True}, {"name": "qty", "type": "integer", "min": 0}]
SHOWN = {"values": "shown"}


def shown(done) -> dict[str, str]:
    """The values of the report's list of what to fix, by cell."""
    page = (done.folder / "report.html").read_text().partition("<details")[0]
    return dict(re.findall(r"<code>([A-Z]+[0-9]+)</code> <q><bdi>(.*?)</bdi></q>", page))


def test_the_values_of_wrong_cells_are_in_the_report_and_not_in_the_artifact(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS, report=SHOWN)
    assert shown(done) == {"B3": MARK, "B4": "-4"}
    assert MARK not in (tmp_path / "artifact.json").read_text()
    assert MARK not in json.dumps(done.events)


def test_without_being_asked_no_value_leaves_the_box(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS)
    assert shown(done) == {}
    assert MARK not in (tmp_path / "report.html").read_text()
    assert not (tmp_path / OutputName.SHOWN_VALUES).exists()


def test_values_of_a_job_that_fails_for_its_errors_are_shown_too(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS, report=SHOWN, on_error="reject")
    assert shown(done) == {"B3": MARK, "B4": "-4"}


def test_values_of_rows_that_wait_for_others_are_shown_too(tmp_path):
    rows = [*ROWS, ["a", 7, "w"]]
    fields = [{"name": "id"}, FIELDS[1]]
    done = run_job(tmp_path, rows, fields=fields, report=SHOWN, row_shape={"dedupe": {"key": ["id"], "keep": "last"}})
    assert shown(done) == {"B3": MARK, "B4": "-4"}


def test_values_of_columns_that_became_rows_are_shown_at_their_own_cells(tmp_path):
    rows = [["id", "Jan", "Feb"], ["a", 1, "two"], ["b", "three", 4]]
    fields = [{"name": "id"}, {"name": "month"}, {"name": "qty", "type": "integer"}]
    unpivot = {"columns": ["Jan", "Feb"], "name_to": "month", "value_to": "qty"}
    done = run_job(tmp_path, rows, fields=fields, report=SHOWN, row_shape={"unpivot": unpivot})
    assert shown(done) == {"C2": "two", "B3": "three"}
