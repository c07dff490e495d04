"""result.json, status.json, rejected.json and latest.json keep their published schemas.

Every embedded spine test compares what it has written too (tests/support/world.py).
"""

import json
import re
from dataclasses import replace

import jsonschema
import pytest

from core.jobs import ENDED, JobError, OutputFile, State
from core.verdicts import FAULTS, Verdict
from infra.statuses import status_body
from runner.documents import latest_body, result_body, withdrawn_body
from tests.contract.jobs import a_job
from tests.support.documents import DOCUMENTS, REFERENCE, check_document, schema

FILE = OutputFile(name="normalized.xlsx", size=9, sha256="0" * 64)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_a_schema_and_lets_keys_be_added(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert "additionalProperties" not in schema(name)
    assert schema(name)["properties"][name] == {"const": 1, "description": "The version of this document."}


@pytest.mark.parametrize("state", sorted(ENDED))
def test_every_end_is_described(state):
    job = replace(a_job("a"), state=state, files=(FILE,), retention_seconds=9.0, history=((str(state), 5.0),))
    check_document("result", as_json(result_body(job)))
    check_document("result", as_json(withdrawn_body(job)))
    check_document("latest", as_json(latest_body(job)))


@pytest.mark.parametrize("verdict", sorted(Verdict))
def test_every_verdict_is_described(verdict):
    job = replace(a_job("a"), state=State.FAILED, error=JobError(verdict=verdict, message="m", where={"line": 3}))
    check_document("result", as_json(result_body(job)))
    assert FAULTS[verdict] in schema("result")["properties"]["error"]["anyOf"][0]["properties"]["fault"]["enum"]


@pytest.mark.parametrize("state", sorted(set(State) - ENDED))
def test_every_state_in_which_a_job_waits_is_described(state):
    check_document("status", as_json(status_body(replace(a_job("a"), state=state, due_at=1.0, workflow="-"))))


def test_a_document_that_lacks_a_key_or_has_a_new_one_is_noticed():
    good = as_json(result_body(replace(a_job("a"), state=State.SUCCEEDED)))
    for bad in (good | {"new": 1}, {k: v for k, v in good.items() if k != "quality"}, good | {"result": 2}):
        with pytest.raises(AssertionError):
            check_document("result", bad)


def test_the_docs_name_every_schema():
    text = (REFERENCE / "documents.md").read_text()
    assert {*re.findall(r"\((\w+)\.schema\.json\)", text)} >= set(DOCUMENTS)


def as_json(body):
    return json.loads(body)
