"""Files without a manifest, over HTTP and on the Drop page: the standing workflows that select them."""

import json

import pytest

from core.jobs import State
from tests.api.test_previews import ran
from tests.support.console import MANIFEST, ApiRig

__all__ = ["ran"]
SHARED = "configs/_shared/everyone/manifest.json"
SECRET = "https://example.org/hooks/secret"
WORKFLOW = MANIFEST | {
    "name": "everyone",
    "tenants": ["acme"],
    "subscribe": ["north/*.csv"],
    "notify": [{"to": SECRET}],
}


@pytest.fixture
def shared(rig: ApiRig) -> ApiRig:
    rig.stack.store.put(SHARED, json.dumps(WORKFLOW).encode())
    return rig


def submit(rig: ApiRig, tenant="acme", path="north", at="/jobs"):
    sender = rig.from_afar(rig.token("sender", tenant))
    return sender.post(at, data={"tenant": tenant, "path": path}, files={"files": ("p.csv", b"Name,Age\nann,3\n")})


def test_a_file_without_a_manifest_goes_to_the_standing_workflow(shared):
    (job,) = submit(shared).json()["jobs"]
    assert (job["workflow"], job["subject"], job["state"]) == ("everyone", "north/p.csv", "QUEUED")


@pytest.mark.parametrize(("tenant", "path"), [("acme", "south"), ("other", "north")])
def test_a_file_that_no_workflow_selects_is_refused_and_not_stored(shared, tenant, path):
    answer = submit(shared, tenant, path)
    assert answer.status_code == 422
    assert "no standing workflow selects" in answer.json()["detail"]
    assert not list(shared.stack.store.keys("inbox/"))


def test_a_preview_is_that_of_the_standing_workflow(shared, ran):
    assert submit(shared, at="/drop/preview").status_code == 200
    ((job, inputs),) = ran
    assert (job.workflow, job.tenant, list(inputs)) == ("everyone", "acme", ["inbox/acme/north/p.csv"])


def test_the_drop_page_shows_no_tenant_the_manifest_that_all_share(shared):
    (job,) = submit(shared).json()["jobs"]
    sender = shared.from_afar(shared.token("sender", "acme"))
    page = sender.get(f"/drop?from={job['job_id']}", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert SECRET not in page.text


def test_no_request_writes_below_the_shared_configs(shared):
    before = shared.stack.store.read(SHARED, limit=10_000)
    operator = shared.from_afar(shared.token("operator"))
    body = {"tenant": "_shared", "manifest": json.dumps(MANIFEST)}
    answers = [
        operator.post("/jobs", data=body, files={"files": ("p.csv", b"x\n")}),
        operator.post(
            "/jobs",
            data=body | {"tenant": "acme", "path": "../../configs/_shared/x"},
            files={"files": ("p.csv", b"x\n")},
        ),
        operator.post("/jobs", json={"tenant": "acme", "keys": [SHARED]}),
    ]
    assert all(400 <= answer.status_code < 500 for answer in answers)
    assert shared.stack.store.read(SHARED, limit=10_000) == before
    assert not any(job.state is State.QUEUED for job in shared.stack.table.line("_shared/p.csv|members"))
