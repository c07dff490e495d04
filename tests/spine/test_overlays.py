"""A tenant's or a sender's overlay changes what it names of a standing workflow, for its own files, and gives no right."""

import json

import pytest

from core.jobs import State
from tests.support.world import MANIFEST, World

SHARED = "configs/_shared/members/manifest.json"
OVERLAY = "configs/acme/members.overlay.json"
FIELDS = [{"name": "id", "synonyms": ["number"]}, {"name": "start", "type": "date"}]
WORKFLOW = MANIFEST | {
    "fields": FIELDS,
    "tenants": ["*"],
    "subscribe": ["**/*.csv"],
    "reading": {"delimiter": ",", "total_rows": "keep"},
    "limits": {"timeout_seconds": 60},
}


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.put(SHARED, WORKFLOW)
    yield made
    made.close()


def put(world, key=OVERLAY, **says):
    world.intake.changed([world.put(key, {"overlay": 1, **says})])


def drop(world, tenant="acme", name="a.csv"):
    world.intake.changed([world.put(f"inbox/{tenant}/{name}", b"id\n1\n")])
    return next(j for j in world.jobs() if (j.tenant, j.subject) == (tenant, name))


def order(world, *where):
    """The order of the box that processed a file."""
    job = drop(world, *where)
    world.work_off(world.runner())
    assert world.table.get(job.job_id).state is State.SUCCEEDED
    return next(o for o in world.sandbox.orders if o.job.job_id == job.job_id)


def problems(world, folder=""):
    body = world.store.read(f"outputs/acme/_configs/{folder}rejected.json", limit=10_000)
    return {p.get("overlay"): p for p in json.loads(body)["problems"]}


def test_it_changes_what_it_names_and_nothing_else(world):
    plain = order(world, "north").manifest
    says = {"fields": {"id": {"synonyms": ["nr"]}, "start": {"formats": ["%d.%m.%Y"]}}, "reading": {"delimiter": ";"}}
    put(world, **says, limits={"timeout_seconds": 30})
    changed = order(world, "acme")
    wanted = json.loads(json.dumps(plain))
    wanted["fields"][0]["synonyms"] = ["number", "nr"]
    wanted["fields"][1]["formats"] = ["%d.%m.%Y"]
    wanted["reading"]["delimiter"] = ";"
    wanted["limits"]["timeout_seconds"] = 30
    assert json.loads(json.dumps(changed.manifest)) == wanted
    (told,) = changed.overlays
    assert (told.key, told.changes) == (
        OVERLAY,
        ("fields.id.synonyms", "fields.start.formats", "reading.delimiter", "limits.timeout_seconds"),
    )


def test_values_of_a_map_are_added_to_those_of_the_manifest(world):
    fields = [{"name": "id"}, {"name": "plan", "map": {"G": "gold", "S": "silver"}}]
    world.put(SHARED, WORKFLOW | {"fields": fields})
    put(world, fields={"plan": {"map": {"or": "gold", "s": "standard"}}, "id": {"map": {"-": "none"}}})
    number, plan = order(world).manifest["fields"]
    assert (plan["map"], plan["otherwise"]) == ({"G": "gold", "or": "gold", "s": "standard"}, None)
    assert (number["map"], number["otherwise"]) == ({"-": "none"}, "keep"), "values that it does not name stay"


def test_the_artifact_says_what_came_from_where(world):
    put(world, reading={"delimiter": ";"})
    job = drop(world)
    world.work_off(world.runner())
    (key,) = [k for k in world.store.keys(f"outputs/acme/a.csv/members/{job.job_id}/") if k.endswith("artifact.json")]
    config = json.loads(world.store.read(key, limit=1_000_000))["config"]
    assert [(one["key"], one["changes"]) for one in config["overlays"]] == [(OVERLAY, ["reading.delimiter"])]


def test_it_is_part_of_the_job_only_where_there_is_one(world):
    before = drop(world, "acme", "x.csv")
    assert (before.overlays, before.version) == ((), "")
    put(world, reading={"delimiter": ";"})
    other, own = drop(world, "north"), drop(world)
    assert other.config_digest == before.config_digest == own.workflow_version
    assert own.config_digest != before.config_digest
    assert [ref.key for ref in own.overlays] == [OVERLAY]


def test_a_senders_overlay_comes_after_that_of_its_tenant(world):
    put(world, reading={"delimiter": ";", "total_rows": "drop"})
    put(world, "configs/acme/north/members.overlay.json", reading={"delimiter": "|"})
    assert order(world, "acme", "2026-11/a.csv").manifest["reading"]["delimiter"] == ";"
    reading = order(world, "acme", "north/2026-11/a.csv").manifest["reading"]
    assert (reading["delimiter"], reading["total_rows"]) == ("|", "drop")


@pytest.mark.parametrize(
    ("says", "path"),
    [
        ({"fields": {"idd": {"synonyms": ["x"]}}}, "$.fields.idd"),
        ({"fields": {"id": {"formats": ["%Y"]}}}, "$.fields.id.formats"),
        ({"limits": {"timeout_seconds": 61}}, "$.limits.timeout_seconds"),
        ({"runtime_network_access": True}, "$.runtime_network_access"),
        ({"config": "config"}, "$.config"),
        ({"notify": [{"to": "https://example.org"}]}, "$.notify"),
        ({"tenants": ["north"]}, "$.tenants"),
        ({"subscribe": ["*"]}, "$.subscribe"),
        ({"inputs": {"auxiliary": [{"name": "x", "path": "configs/north/x.csv"}]}}, "$.inputs"),
        ({"fields": {"id": {"required": False}}}, "$.fields.id.required"),
        ({"mapping": {"review": "never"}}, "$.mapping"),
        ({"overlay": 2}, "$.overlay"),
    ],
)
def test_what_it_may_not_change_is_rejected_and_its_files_wait(world, says, path):
    put(world, **says)
    assert problems(world)[OVERLAY]["path"] == path
    waiting = drop(world)
    assert (waiting.state, waiting.waiting_for) == (State.AWAITING, (OVERLAY,))
    assert drop(world, "north").state is State.QUEUED, "nobody else waits for it"
    world.sweep()
    put(world, reading={"delimiter": ";"})
    (job,) = [j for j in world.jobs() if j.tenant == "acme"]
    assert (job.state, len(job.overlays)) == (State.QUEUED, 1)
    assert world.store.head("outputs/acme/_configs/rejected.json") is None


def test_what_was_processed_does_not_wait_for_an_overlay_that_cannot_be_used(world):
    done = drop(world)
    world.work_off(world.runner())
    put(world, config="x")
    world.sweep()
    assert [job.job_id for job in world.jobs()] == [done.job_id]
    assert drop(world, name="b.csv").state is State.AWAITING


@pytest.mark.parametrize("way", ["event", "sweep"])
def test_files_do_not_wait_for_an_overlay_that_is_gone(world, way):
    put(world, config="x")
    drop(world)
    world.store.delete(OVERLAY)
    if way == "event":
        world.intake.changed([OVERLAY])
    world.sweep()
    (job,) = world.jobs()
    assert (job.state, job.overlays) == (State.QUEUED, ())


def test_an_overlay_that_is_named_after_no_workflow_is_reported(world):
    put(world, "configs/acme/membres.overlay.json", reading={"delimiter": ";"})
    assert "named after no workflow" in problems(world)["configs/acme/membres.overlay.json"]["problem"]


def test_a_tenants_overlay_is_no_other_tenants(world):
    put(world, reading={"delimiter": ";"})
    put(world, "configs/acme/north/members.overlay.json", reading={"delimiter": "|"})
    assert drop(world, "north").overlays == ()
    assert drop(world, "north", "acme/a.csv").overlays == ()


def test_an_overlay_of_shared_configs_serves_nobody(world):
    world.put("configs/_shared/members.overlay.json", {"overlay": 1, "reading": {"delimiter": ";"}})
    world.sweep()
    assert drop(world).overlays == ()


def test_a_new_overlay_does_not_run_again_what_was_processed(world):
    drop(world)
    world.work_off(world.runner())
    put(world, reading={"delimiter": ";"})
    world.sweep()
    (job,) = world.jobs()
    assert (job.state, job.overlays) == (State.SUCCEEDED, ())


def test_a_job_runs_with_the_overlay_it_was_planned_with_or_not_at_all(world):
    put(world, reading={"delimiter": ";"})
    job = drop(world)
    world.put(OVERLAY, {"overlay": 1, "reading": {"delimiter": "|"}})
    world.work_off(world.runner())
    world.sweep()
    world.work_off(world.runner())
    assert [o.manifest["reading"]["delimiter"] for o in world.sandbox.orders] == ["|"]
    assert {j.job_id: j.state for j in world.jobs()}[job.job_id] is State.SKIPPED
