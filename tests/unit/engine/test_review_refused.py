"""review.json comes from a box: what does not hold is refused, and no page is made of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runner.boxes import Isolation
from runner.engine.contract import InputFile, JobFacts, Order
from runner.engine.verifying import BadOutput
from runner.engine.verifying.order import verify_review
from tests.support.outputs import order_to_verify, review

BOX = Isolation(driver="process", level="limits", rungs={}, gaps=())
ORDER = Order(
    job=JobFacts(job_id="acme-m-1", tenant="acme", workflow="m", attempt=1),
    manifest={"name": "m", "mapping": {"review": "unsure"}},
    inputs=(InputFile(role="primary", name="a.csv", path=Path("in", "0"), sha256="0" * 64, size=3),),
    config_digest="d",
)


def verified(tmp_path, found, order=ORDER):
    (tmp_path / "review.json").write_bytes(found if isinstance(found, bytes) else json.dumps(found).encode())
    asked = order_to_verify(order, ["review.json"], BOX, audit=True, review=True)
    return verify_review(asked.below(tmp_path))


def test_an_honest_review_holds(tmp_path):
    assert verified(tmp_path, review(ORDER)) == review(ORDER)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"job": ORDER.job.encode() | {"job_id": "globex-m-1", "params": {}}}, "its job"),
        ({"inputs": []}, "its inputs"),
        ({"decision": {"key": "k", "version": "v", "sha256": "", "by": "mallory"}}, "its decision"),
        ({"why": "always"}, "although the manifest"),
        ({"questions": []}, "schema at /questions"),
        ({"questions": review(ORDER, 2)["questions"][:1] * 2}, "one question twice"),
        ({"more": 1}, "schema at /"),
        ({"review_version": 2}, "schema at /review_version"),
    ],
)
def test_a_review_that_says_something_else_than_the_runner_knows_is_refused(tmp_path, change, word):
    with pytest.raises(BadOutput, match=word):
        verified(tmp_path, review(ORDER) | change)


@pytest.mark.parametrize("raw", [b"", b"{", b'{"a": 1, "a": 2}', b"NaN", b"[" * 5000, b" " * (5 << 20)])
def test_what_is_no_review_is_refused(tmp_path, raw):
    with pytest.raises(BadOutput):
        verified(tmp_path, raw)


@pytest.mark.parametrize(
    "change", [{"text": "x" * 1001}, {"header": "x" * 501}, {"id": "column-zz"}, {"kind": "other"}]
)
def test_a_question_out_of_bounds_is_refused(tmp_path, change):
    found = review(ORDER)
    found["questions"][0] |= change
    with pytest.raises(BadOutput, match="schema at /questions/0"):
        verified(tmp_path, found)


def test_a_job_whose_manifest_never_asks_cannot_ask(tmp_path):
    never = replace(ORDER, manifest={"name": "m", "mapping": {"review": "never"}})
    with pytest.raises(BadOutput):
        verified(tmp_path, review(ORDER), never)
