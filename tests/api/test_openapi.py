"""The OpenAPI document is the published one, and the server keeps to it, whoever calls and whatever they send."""

import json
import re
from http import HTTPStatus
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from console.api.openapi import OPERATIONS, document
from core.jobs import State
from tests.support.console import ApiRig, api_rig

pytest_plugins = ["schemathesis.pytest.plugin"]
PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
SECRET = "hidden-tenant"
EXAMPLES = 6


def test_the_published_document_is_what_the_operations_say():
    """To renew it: python -m console.api.openapi > docs/reference/openapi.json"""
    assert json.loads(PUBLISHED.read_text()) == json.loads(json.dumps(document()))


def test_the_server_gives_the_same_document(rig: ApiRig):
    assert rig.client.get("/openapi.json").json() == json.loads(PUBLISHED.read_text())


def test_every_operation_has_a_name_of_its_own():
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with api_rig(tmp_path_factory.mktemp("fuzz") / "data", console_rate=10**6, queue_size=10**6) as rig:
        files = {"artifact.json": b"{}", "normalized.xlsx": b"PK", "logs.txt": b"one\ntwo\n", "result.json": b"{}"}
        for tenant in ("acme", SECRET):
            rig.job("seen", tenant=tenant, state=State.SUCCEEDED, files=files, ended_at=1.0)
            rig.job("failed", tenant=tenant, state=State.FAILED, ended_at=1.0)
            rig.job("waits", tenant=tenant, state=State.QUEUED)
        yield rig


def _cases(filter_out: str):
    schema = schemathesis.openapi.from_dict(document())
    return schema.exclude(path_regex=filter_out)


SCHEMA = _cases(r"^/events$")


def _fast(*phases: Phase) -> settings:
    return settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        database=None,
    )


THOROUGH, FAST = _fast(Phase.explicit, Phase.generate), _fast(Phase.generate)  # explicit: every bound of the schema


def _known_job(case, tenant: str) -> None:
    """Half of the made-up ids name a job that is there: else every answer would be 404."""
    if "job_id" in case.path_parameters and len(str(case.path_parameters["job_id"])) % 2:
        case.path_parameters["job_id"] = f"{tenant}-members-seen"


@pytest.mark.slow
@SCHEMA.parametrize()
@THOROUGH
def test_whatever_a_local_caller_sends_is_answered_by_the_book(case, fuzzed: ApiRig):
    _known_job(case, "acme")
    _send(case, fuzzed.client)


@pytest.mark.slow
@SCHEMA.parametrize()
@FAST
def test_a_token_of_one_tenant_meets_no_other(case, fuzzed: ApiRig):
    _known_job(case, SECRET)
    client = fuzzed.from_afar(_token(fuzzed))
    answer = _send(case, client)
    told = answer.text
    for given in (case.path_parameters, case.query, case.body, case.headers):
        told = told.replace(SECRET, "") if SECRET in str(given) else told
    assert SECRET not in told


@pytest.mark.slow
@SCHEMA.parametrize()
@FAST
def test_without_a_token_nothing_is_reported_from_afar(case, fuzzed: ApiRig):
    answer = _send(case, fuzzed.from_afar())
    if answer.status_code not in (401, 404, 405, 414, 421):
        assert case.path in ("/health", "/session")


def _token(rig: ApiRig, kept: dict[int, str] = {}) -> str:  # noqa: B006 - one for all
    return kept.setdefault(id(rig), rig.token("operator", "acme"))


def _send(case, client):
    sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
    headers = {
        name: value
        for name, value in dict(sent.get("headers") or {}).items()
        if name.lower() not in ("host", "user-agent", "authorization")
        and re.fullmatch(r"[\x20-\x7e]*", str(value)) is not None
    }
    request = client.build_request(
        sent["method"],
        sent["url"],
        params=sent.get("params"),
        headers=headers,
        json=sent.get("json"),
        content=sent.get("data") if isinstance(sent.get("data"), bytes | str) else None,
        data=sent.get("data") if isinstance(sent.get("data"), dict) else None,
        files=_files(sent.get("files")),
    )
    request.read()
    answer = client.send(request, follow_redirects=False, stream=True)
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        # It ends only with the job, and an earlier case may have put the job back into the queue.
        assert answer.status_code == HTTPStatus.OK
        answer.close()
        answer._content = b""
        return answer
    answer.read()
    case.validate_response(answer, checks=CHECKS)
    return answer


def _files(parts):
    """Schemathesis also makes parts that no client could send; they go as text."""
    if parts is None:
        return None

    def sendable(part):
        name, body, *rest = part if isinstance(part, tuple) else (None, part)
        return (name, body if isinstance(body, bytes | str) else json.dumps(body, default=str), *rest)

    return [(name, sendable(part)) for name, part in (parts.items() if isinstance(parts, dict) else parts)]
