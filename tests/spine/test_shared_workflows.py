"""One workflow in configs/_shared/ serves the tenants that it names, and lends nobody a right."""

import json

import pytest

from core.jobs import State
from core.keys import job_folder
from tests.support.places import PLACES
from tests.support.stamps import stamped
from tests.support.world import MANIFEST, World

SHARED = "configs/_shared/members/manifest.json"
WORKFLOW = MANIFEST | {"tenants": ["*"], "subscribe": ["**/*.csv"]}


@pytest.fixture(params=["embedded", "versioned cloud"])
def world(request, tmp_path):
    made = World(tmp_path, PLACES[request.param])
    yield made
    made.close()


@pytest.fixture
def local(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def drop(world, tenant, name="a.csv", body=b"id\n1\n"):
    key = world.put(f"inbox/{tenant}/{name}", body)
    world.intake.changed([key])
    return key


def real(world):
    return {(j.tenant, j.subject, j.workflow): j for j in world.jobs()}


def problems(world, name="members"):
    return json.loads(world.store.read(f"outputs/_shared/{name}/rejected.json", limit=10_000))["problems"]


def test_every_tenant_is_served_by_events_and_by_the_sweep(world):
    world.intake.changed([world.put(SHARED, WORKFLOW)])
    drop(world, "acme")
    world.put("inbox/north/2026-11/b.csv", b"id\n2\n")
    world.sweep()
    world.work_off(world.runner())
    assert {k: j.state for k, j in real(world).items()} == {
        ("acme", "a.csv", "members"): State.SUCCEEDED,
        ("north", "2026-11/b.csv", "members"): State.SUCCEEDED,
    }
    assert all(job_folder(j).startswith(f"outputs/{j.tenant}/") for j in world.jobs())


def test_a_file_that_waits_for_a_manifest_finds_the_shared_one_at_once(world):
    drop(world, "acme")
    drop(world, "north")
    world.intake.changed([world.put(SHARED, WORKFLOW | {"tenants": ["acme"]})])
    assert {k: j.state for k, j in real(world).items()} == {
        ("acme", "a.csv", "members"): State.QUEUED,
        ("north", "a.csv", "-"): State.AWAITING,
    }


@pytest.mark.parametrize(
    ("named", "served"), [(["acme"], {"acme"}), (["ac*", "north"], {"acme", "north"}), (["A*"], set())]
)
def test_only_the_tenants_that_it_names_are_served(local, named, served):
    local.put(SHARED, WORKFLOW | {"tenants": named})
    for tenant in ("acme", "north", "south"):
        drop(local, tenant)
    local.sweep()
    assert {j.tenant for j in local.jobs() if j.workflow == "members"} == served


def test_a_manifest_beside_the_file_and_the_shared_one_both_run(local):
    local.put(SHARED, WORKFLOW | {"name": "everyone"})
    local.intake.changed(local.drop())
    assert {j.workflow for j in local.jobs()} == {"members", "everyone"}


def test_a_changed_shared_workflow_is_used_for_the_next_file_at_once(local):
    local.intake.changed([local.put(SHARED, WORKFLOW)])
    drop(local, "acme")
    local.work_off(local.runner())
    local.intake.changed([local.put(SHARED, WORKFLOW | {"fields": [{"name": "number"}]})])
    drop(local, "acme", "b.csv")
    local.sweep()
    digests = {j.subject: j.config_digest for j in local.jobs()}
    assert digests.keys() == {"a.csv", "b.csv"}
    assert digests["a.csv"] != digests["b.csv"]


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (MANIFEST, "$.subscribe"),
        (MANIFEST | {"subscribe": ["*.csv"]}, "$.tenants"),
        (WORKFLOW | {"tenants": ["a/b"]}, "$.tenants[0]"),
        (
            WORKFLOW | {"inputs": {"auxiliary": [{"name": "x", "path": "inbox/acme/x.csv"}]}},
            "$.inputs.auxiliary[0].path",
        ),
    ],
)
@pytest.mark.parametrize("way", ["event", "sweep"])
def test_a_shared_manifest_that_serves_nobody_is_reported(local, manifest, path, way):
    key = local.put(SHARED, manifest)
    report = local.intake.changed([key]) if way == "event" else local.intake.sweep()
    assert report.rejected == [key]
    assert path in [p["path"] for p in problems(local)]
    local.put(SHARED, WORKFLOW)
    local.sweep()
    assert local.store.head("outputs/_shared/members/rejected.json") is None, "the report goes with its problem"


@pytest.mark.parametrize(
    "key", ["configs/_shared/members/.draft/manifest.json", "configs/acme/.versions/1/manifest.json"]
)
def test_drafts_and_kept_versions_process_nothing(local, key):
    local.intake.changed([local.put(key, WORKFLOW if "_shared" in key else MANIFEST | {"subscribe": ["*.csv"]})])
    drop(local, "acme")
    local.sweep()
    assert [j.workflow for j in local.jobs()] == ["-"]


def test_no_tenant_serves_others(local):
    key = local.put("configs/acme/all/manifest.json", WORKFLOW)
    report = local.intake.changed([key])
    drop(local, "north")
    local.sweep()
    assert report.rejected == [key]
    assert [j.workflow for j in local.jobs()] == ["-"]


@pytest.mark.parametrize(
    "named",
    [
        {"inputs": {"primary": ["*.csv"], "auxiliary": [{"name": "x", "path": SHARED}]}},
        {
            "inputs": {
                "primary": ["*.csv"],
                "auxiliary": [{"name": "x", "path": "configs/_shared/members/.draft/x.csv"}],
            }
        },
        {"config": "configs/_shared/members/.versions/1"},
    ],
)
def test_a_tenant_reads_neither_shared_manifests_nor_drafts_nor_versions(local, named):
    local.put(SHARED, WORKFLOW | {"tenants": ["north"], "notify": [{"to": "https://example.org/secret"}]})
    keys = local.drop(**named)
    assert local.intake.changed(keys).rejected == [keys[1]]


def test_a_package_that_a_tenant_names_comes_without_the_shared_manifest(local):
    local.put(SHARED, WORKFLOW | {"tenants": ["north"], "notify": [{"to": "https://example.org/secret"}]})
    local.put("configs/_shared/members/columns/id.py", b"")
    local.intake.changed(local.drop(config="configs/_shared/members"))
    (job,) = local.jobs()
    assert [ref.key for ref in job.config] == ["configs/_shared/members/columns/id.py"]


def test_only_what_the_shared_manifest_names_is_staged(local):
    local.put("configs/_shared/members/secret.csv", b"x\n")
    local.put("configs/_shared/members/plans.csv", b"code\nA\n")
    local.put("configs/_shared/members/columns/id.py", b"")
    aux = {"auxiliary": [{"name": "plans", "path": "plans.csv"}]}
    local.put(SHARED, WORKFLOW | {"inputs": aux, "config": "."})
    drop(local, "acme")
    (job,) = local.jobs()
    assert [i.ref.key for i in job.inputs] == ["inbox/acme/a.csv", "configs/_shared/members/plans.csv"]
    assert [ref.key for ref in job.config] == ["configs/_shared/members/columns/id.py"]


def test_a_shared_workflow_costs_a_sweep_no_listing_per_tenant(local):
    """The calls of a sweep grow with the tenants as they did before, whatever is shared."""
    tenants = 12

    def calls():
        for n in range(tenants):
            local.put(f"inbox/t{n}/a.csv", b"id\n1\n")
        local.sweep()
        local.sweep()
        listed = []
        objects, level = local.store.objects, local.store.level
        local.store.objects = lambda prefix, **k: (listed.append(prefix), objects(prefix, **k))[1]
        local.store.level = lambda prefix: (listed.append(prefix), level(prefix))[1]
        local.sweep()
        local.store.objects, local.store.level = objects, level
        return len(listed)

    before = calls()
    for n in range(5):
        local.put(f"configs/_shared/w{n}/manifest.json", WORKFLOW | {"name": f"w{n}"})
    assert calls() == before
    assert len(local.jobs()) == 5 * tenants


def test_a_missing_drop_of_a_tenant_without_an_inbox_is_noticed(local):
    local.put(SHARED, WORKFLOW | {"tenants": ["acme", "b*"], "expect": {"by": "06:00"}})
    stamped(local, lambda _: local.clock.now() - 2 * 86400)
    local.sweep()
    assert [(j.tenant, j.waiting_for) for j in local.jobs()] == [("acme", ("the expected drop",))]
