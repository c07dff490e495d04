"""What a request would make is counted before it is stored or recorded: files times combinations of a sweep."""

import json

import pytest

from core.jobs import State
from core.ports import JobQuery
from infra.quarantine import begin_quarantine
from tests.support.console import MANIFEST, ApiRig, api_rig

SWEPT = MANIFEST | {"sweep": {"rate": list(range(1000))}}


@pytest.fixture
def small(tmp_path):
    with api_rig(tmp_path / "data", queue_size=4) as rig:
        yield rig


def rows(rig: ApiRig) -> int:
    return len(rig.stack.table.page(JobQuery(), limit=500).jobs)


def many(count: int):
    return [("files", (f"p{n}.csv", f"Name,Age\nann,{n}\n".encode())) for n in range(count)]


def form(manifest=MANIFEST):
    return {"tenant": "acme", "manifest": json.dumps(manifest)}


@pytest.mark.parametrize(("manifest", "files"), [(SWEPT, 8), (SWEPT, 1), (MANIFEST, 5)])
def test_a_drop_that_makes_more_jobs_than_may_wait_stores_nothing(small: ApiRig, manifest, files):
    answer = small.submit(data=form(manifest), files=many(files))
    assert (answer.status_code, "ADE_QUEUE_SIZE" in answer.text) == (422, True)
    assert (rows(small), list(small.stack.store.keys("inbox/"))) == (0, [])


def test_a_drop_waits_until_all_its_jobs_fit(small: ApiRig):
    for n in range(3):
        small.job(f"{n}", state=State.QUEUED)
    assert small.submit(data=form(), files=many(2)).status_code == 429
    assert small.submit(data=form(), files=many(1)).status_code == 202


def test_a_drop_that_fits_is_taken(small: ApiRig):
    assert small.submit(data=form(MANIFEST | {"sweep": {"rate": [1, 2]}}), files=many(2)).status_code == 202
    assert rows(small) == 4


def test_the_jobs_of_keys_are_counted_before_they_are_recorded(small: ApiRig):
    small.stack.store.put("inbox/acme/d/manifest.json", json.dumps(SWEPT).encode())
    for n in range(8):
        small.stack.store.put(f"inbox/acme/d/{n}.csv", b"Name,Age\n")
    for keys in (["inbox/acme/d/manifest.json"], ["inbox/acme/d/1.csv"]):
        assert small.client.post("/jobs", json={"tenant": "acme", "keys": keys}).status_code == 422
    assert rows(small) == 0


def test_a_standing_workflow_counts_too(small: ApiRig):
    small.stack.store.put("configs/acme/all/manifest.json", json.dumps(SWEPT | {"subscribe": ["**/*.csv"]}).encode())
    assert small.submit().status_code == 422


@pytest.mark.parametrize("last", ["manifest.json", "p.csv"])
def test_an_upload_is_refused_where_its_jobs_would_not_fit(small: ApiRig, last):
    bodies = {"p.csv": b"Name,Age\nann,3\n", "manifest.json": json.dumps(SWEPT).encode()}
    first = next(name for name in bodies if name != last)
    small.stack.store.put(f"inbox/acme/d/{first}", bodies[first])
    answer = small.client.put(f"/uploads/inbox/acme/d/{last}", content=bodies[last])
    assert (answer.status_code, small.stack.store.head(f"inbox/acme/d/{last}")) == (422, None)


def test_uploads_wait_for_the_backlog(small: ApiRig):
    for n in range(4):
        small.job(f"{n}", state=State.QUEUED)
    assert small.client.put("/uploads/inbox/acme/d/p.csv", content=b"x").status_code == 429
    assert small.client.put("/uploads/inbox/other/d/p.csv", content=b"x").status_code == 200


def test_an_upload_of_a_bad_manifest_is_stored_and_rejected_like_any_other(small: ApiRig):
    assert small.client.put("/uploads/inbox/acme/d/manifest.json", content=b"{").status_code == 200


def test_nothing_is_stored_of_a_tenant_in_quarantine(rig: ApiRig):
    begin_quarantine(rig.stack.table, rig.stack.clock, "acme", "ops")
    for name in (
        "p.csv",
        "manifest.json",
    ):  # a manifest that does not validate makes no job, and is a file all the same
        assert rig.client.put(f"/uploads/inbox/acme/{name}", content=b"{").status_code == 403
    assert rig.client.post("/uploads", json={"tenant": "acme", "names": ["p.csv"]}).status_code == 403
    assert rig.submit().status_code == 403
    assert list(rig.stack.store.keys("inbox/")) == []
    assert rig.submit(tenant="acme-2").status_code == 202
