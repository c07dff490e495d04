"""The path of a drop, step by step, on the embedded adapters."""

import hashlib
import io
import json
import stat
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import datetime

import pytest

from core.jobs import State
from core.keys import job_folder
from core.ports import Pause
from core.verdicts import Verdict
from tests.support.world import MANIFEST, World


def states(world):
    return {j.subject: str(j.state) for j in world.jobs()}


def test_a_drop_is_published_with_result_json(world):
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    assert world.result(job)["status"] == "SUCCEEDED"
    keys = list(world.store.keys("outputs/"))
    folder = f"outputs/acme/d/a.csv/members/{job.job_id}/"
    assert [k.removeprefix(folder) for k in keys if k.startswith(folder)] == [
        "artifact.json",
        "logs.txt",
        "normalized.xlsx",
        "report.html",
        "result.json",
    ]
    assert "outputs/acme/d/a.csv/members/latest.json" in keys
    assert not list(world.store.keys("work/"))


def test_result_json_is_the_last_thing_written(world):
    written = []
    put = world.store.put
    world.store.put = lambda key, *a, **k: (written.append(key), put(key, *a, **k))[1]
    put_new = world.store.put_new
    world.store.put_new = lambda bodies: (written.extend(bodies), put_new(bodies))[1]
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    outputs = [k.rpartition("/")[2] for k in written if k.startswith("outputs/")]
    assert outputs.index("normalized.xlsx") < outputs.index("latest.json")
    assert outputs[-1] == "result.json"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_arrival_order_does_not_matter(world, order):
    keys = world.drop()
    for n in order:
        world.intake.changed([keys[n]])
    world.work_off(world.runner())
    assert states(world) == {"d/a.csv": "SUCCEEDED"}


def test_a_lone_spreadsheet_is_listed_and_says_what_it_waits_for(world):
    key = world.put("inbox/acme/x/lone.xlsx", b"x")
    world.intake.changed([key])
    (job,) = world.jobs()
    assert (job.state, job.workflow, job.reason) == (State.AWAITING, "-", f"no manifest selects {key}")


def test_the_lone_row_gives_way_when_a_manifest_comes(world):
    world.intake.changed([world.put("inbox/acme/x/lone.csv", b"x")])
    world.intake.changed([world.put("inbox/acme/x/manifest.json", MANIFEST)])
    (job,) = world.jobs()
    assert (job.state, job.workflow) == (State.QUEUED, "members")


def test_a_lone_manifest_waits_for_its_inputs_and_gives_way(world):
    world.intake.changed([world.put("inbox/acme/x/manifest.json", MANIFEST)])
    (job,) = world.jobs()
    assert job.state is State.AWAITING
    assert job.waiting_for == ("inbox/acme/x/*.xlsx", "inbox/acme/x/*.csv")
    world.intake.changed([world.put("inbox/acme/x/a.csv", b"x")])
    assert states(world) == {"x/a.csv": "QUEUED"}


def test_a_missing_look_up_table_holds_the_job_until_it_comes(world):
    aux = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}
    world.intake.changed(world.drop(inputs=aux))
    (job,) = world.jobs()
    assert (job.state, job.waiting_for) == (State.AWAITING, ("inbox/acme/d/lookups/plans.csv",))
    world.intake.changed([world.put("inbox/acme/d/lookups/plans.csv", b"code\nA\n")])
    (job,) = world.jobs()
    assert job.state is State.QUEUED
    assert [i.name for i in job.inputs] == ["a.csv", "plans"]


def test_a_new_look_up_table_triggers_nothing(world):
    aux = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}
    world.put("inbox/acme/d/lookups/plans.csv", b"code\nA\n")
    world.intake.changed(world.drop(inputs=aux))
    world.work_off(world.runner())
    world.intake.changed([world.put("inbox/acme/d/lookups/plans.csv", b"code\nB\n")])
    world.intake.sweep()
    assert len(world.jobs()) == 1


def test_the_same_content_again_is_the_same_job(world):
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    world.intake.changed(world.drop())
    world.intake.sweep()
    (job,) = world.jobs()
    assert (job.state, job.attempts_total) == (State.SUCCEEDED, 1)


def test_a_failed_job_is_retried_by_a_new_drop_but_not_by_a_sweep(world):
    world.sandbox.verdict = Verdict.RULE_ERROR
    world.intake.changed(world.drop())
    runner = world.runner()
    world.work_off(runner)
    world.intake.sweep()
    (job,) = world.jobs()
    assert job.state is State.FAILED
    assert world.result(job)["error"]["fault"] == "config"
    world.intake.changed(world.drop())
    world.work_off(runner)
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    assert world.result(job)["status"] == "SUCCEEDED"


def test_a_job_that_found_none_of_its_fields_fails_with_its_audit_published(world):
    world.sandbox.verdict = Verdict.NOTHING_MAPPED
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    result = world.result(job)
    assert (result["status"], result["error"]["fault"]) == ("FAILED", "input")
    assert [f["name"] for f in result["files"]] == ["artifact.json", "report.html", "logs.txt"]
    published = {key.rpartition("/")[2] for key in world.store.keys(job_folder(job))}
    assert published == {"artifact.json", "report.html", "logs.txt", "result.json"}


def test_the_audit_of_a_failure_goes_when_the_job_fails_for_another_reason(world):
    runner = world.runner()
    for verdict in (Verdict.NOTHING_MAPPED, Verdict.RULE_ERROR):
        world.sandbox.verdict = verdict
        world.intake.changed(world.drop())
        world.work_off(runner)
    (job,) = world.jobs()
    published = {key.rpartition("/")[2] for key in world.store.keys(job_folder(job))}
    assert published == {"logs.txt", "report.html", "result.json"}


@pytest.mark.parametrize("verdict", [Verdict.INPUT_UNREADABLE, Verdict.RULE_ERROR, Verdict.MEMORY, Verdict.WALL_CLOCK])
def test_a_job_that_failed_by_its_file_its_rules_or_a_limit_has_a_report(world, verdict):
    world.sandbox.verdict = verdict
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    listed = {file["name"]: file for file in world.result(job)["files"]}
    page = world.store.read(job_folder(job) + "report.html", limit=1_000_000)
    assert listed["report.html"]["size"] == len(page)
    assert listed["report.html"]["sha256"] == hashlib.sha256(page).hexdigest()
    assert b"inbox/acme/d/" in page or verdict is Verdict.RULE_ERROR


def test_a_report_of_a_failure_is_in_the_manifests_language(world):
    world.sandbox.verdict = Verdict.INPUT_UNREADABLE
    world.intake.changed(world.drop(language="de"))
    world.work_off(world.runner())
    (job,) = world.jobs()
    page = world.store.read(job_folder(job) + "report.html", limit=1_000_000).decode()
    assert '<html lang="de">' in page
    assert "Die Datei konnte nicht gelesen werden." in page


def test_a_failure_of_our_own_has_no_report(world):
    world.sandbox.verdict = Verdict.ENGINE_FAILED
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert world.result(job)["status"] == "FAILED"
    assert "report.html" not in [file["name"] for file in world.result(job)["files"]]


def test_a_new_version_supersedes_what_has_not_started(world):
    world.intake.changed(world.drop(body=b"id\n1\n"))
    world.intake.changed(world.drop(body=b"id\n2\n"))
    world.work_off(world.runner())
    by_state = {str(j.state): j for j in world.jobs()}
    assert set(by_state) == {"SKIPPED", "SUCCEEDED"}
    assert by_state["SKIPPED"].reason == f"superseded by {by_state['SUCCEEDED'].job_id}"
    assert world.result(by_state["SKIPPED"])["status"] == "SKIPPED"


def test_an_input_replaced_before_it_was_read_is_superseded_not_lost(world):
    world.intake.changed(world.drop(body=b"id\n1\n"))
    world.drop(body=b"id\n2\n")  # the event is still on its way
    runner = world.runner()
    world.work_off(runner)
    world.intake.sweep()
    world.work_off(runner)
    assert sorted(str(j.state) for j in world.jobs()) == ["SKIPPED", "SUCCEEDED"]


def test_every_manifest_that_selects_a_file_gets_its_own_job(world):
    world.put("inbox/acme/d/two.manifest.json", MANIFEST | {"name": "pay"})
    world.put("configs/acme/standing/manifest.json", MANIFEST | {"name": "all", "subscribe": ["**/*.csv"]})
    world.drop()
    world.intake.sweep()
    assert sorted(j.workflow for j in world.jobs()) == ["all", "members", "pay"]


def test_a_changed_standing_manifest_does_not_run_again_over_history(world):
    standing = MANIFEST | {"name": "all", "subscribe": ["**/*.csv"]}
    world.put("configs/acme/all/manifest.json", standing)
    world.put("inbox/acme/d/a.csv", b"id\n1\n")
    world.intake.sweep()
    world.work_off(world.runner())
    world.put("configs/acme/all/manifest.json", standing | {"description": "second"})
    world.intake.sweep()
    assert len(world.jobs()) == 1
    world.intake.changed([world.put("inbox/acme/d/b.csv", b"id\n1\n")])
    assert len(world.jobs()) == 2


def test_a_sweep_of_parameters_makes_one_job_per_combination(world):
    world.intake.changed(world.drop(sweep={"rate": [1, 2], "kind": ["x", "y"]}, params={"year": 2026}))
    assert sorted((j.params["rate"], j.params["kind"], j.params["year"]) for j in world.jobs()) == [
        (1, "x", 2026),
        (1, "y", 2026),
        (2, "x", 2026),
        (2, "y", 2026),
    ]


def test_per_drop_takes_all_files_as_one_job(world):
    world.put("inbox/acme/d/b.csv", b"id\n2\n")
    world.intake.changed(world.drop(inputs={"primary": ["*.csv"], "per": "drop"}))
    (job,) = world.jobs()
    assert (job.subject, [i.name for i in job.inputs]) == ("d", ["a.csv", "b.csv"])


def test_per_drop_waits_for_inputs_that_are_named_outright(world):
    world.intake.changed(world.drop(inputs={"primary": ["a.csv", "b.csv"], "per": "drop"}))
    (job,) = world.jobs()
    assert (job.state, job.waiting_for) == (State.AWAITING, ("inbox/acme/d/b.csv",))
    world.intake.changed([world.put("inbox/acme/d/b.csv", b"id\n2\n")])
    world.work_off(world.runner())
    assert "SUCCEEDED" in states(world).values()
    assert "AWAITING" not in states(world).values()


def test_not_before_holds_a_job_until_its_time(world):
    world.clock.at = 1_750_000_000.0
    world.intake.changed(world.drop(not_before="2025-06-16T00:00:00Z"))
    runner = world.runner()
    (job,) = world.jobs()
    assert job.state is State.SCHEDULED
    runner.janitor.chores()
    assert world.jobs()[0].state is State.SCHEDULED
    world.clock.move(2 * 86400)
    world.work_off(runner)
    assert world.jobs()[0].state is State.SUCCEEDED


def test_data_outside_the_schedule_window_is_skipped(world):
    world.intake.changed(world.drop(data_time="2024-05-01", schedule={"start_time": "2025-01-01T00:00:00Z"}))
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, world.result(job)["status"]) == (State.SKIPPED, "SKIPPED")


def test_a_bad_manifest_is_rejected_in_words_and_taken_back_when_mended(world):
    world.put("inbox/acme/d/a.csv", b"id\n")
    key = world.put("inbox/acme/d/manifest.json", MANIFEST | {"fields": [{"name": "id", "type": "nubmer"}], "extra": 1})
    world.intake.changed([key, "inbox/acme/d/a.csv"])
    told = json.loads(world.store.read("outputs/acme/d/rejected.json", limit=10_000))
    assert {p["path"] for p in told["problems"]} == {"$.fields[0].type", "$.extra"}
    assert "decimal" in next(p["allowed"] for p in told["problems"] if p["path"] == "$.fields[0].type")
    (job,) = world.jobs()
    assert "does not validate; see outputs/acme/d/rejected.json" in job.reason
    world.intake.changed([world.put("inbox/acme/d/manifest.json", MANIFEST)])
    assert world.store.head("outputs/acme/d/rejected.json") is None
    assert states(world) == {"d/a.csv": "QUEUED"}


@pytest.mark.parametrize(
    "inputs",
    [
        {"primary": ["../globex/*.csv"]},
        {"primary": ["/etc/*.csv"]},
        {"primary": ["inbox/globex/*.csv"]},
        {"auxiliary": [{"name": "x", "path": "inbox/globex/plans.csv"}]},
        {"auxiliary": [{"name": "x", "path": "configs/globex/plans.csv"}]},
        {"auxiliary": [{"name": "x", "path": "../../globex/plans.csv"}]},
        {"auxiliary": [{"name": "x", "path": "outputs/../inbox/globex/plans.csv"}]},
    ],
)
def test_a_manifest_that_names_what_is_not_its_own_is_rejected(world, inputs):
    world.put("inbox/globex/plans.csv", b"secret\n")
    world.intake.changed(world.drop(inputs=inputs))
    assert world.store.head("outputs/acme/d/rejected.json") is not None
    assert all(j.state is State.AWAITING for j in world.jobs() if j.tenant == "acme")


def zipped(*members):
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return body.getvalue()


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (("../evil.py", b"", 0o644), "leaves its folder"),
        (("/abs.py", b"", 0o644), "leaves its folder"),
        (("columns/x.py", b"/etc/passwd", stat.S_IFLNK | 0o777), "a link"),
        (("columns/big.py", b"\0" * 30_000_000, 0o644), "would unpack"),
    ],
)
def test_a_hostile_config_zip_is_rejected(world, member, said):
    world.put("inbox/acme/d/config.zip", zipped(member))
    world.intake.changed(world.drop(config="config.zip"))
    told = json.loads(world.store.read("outputs/acme/d/rejected.json", limit=10_000))
    assert said in told["problems"][0]["problem"]
    assert all(j.state is State.AWAITING for j in world.jobs())


def test_a_config_that_has_not_arrived_holds_the_job(world):
    world.intake.changed(world.drop(config="./config"))
    (job,) = world.jobs()
    assert (job.state, job.waiting_for) == (State.AWAITING, ("inbox/acme/d/config/",))
    world.intake.changed([world.put("inbox/acme/d/config/columns/id.py", b"x = 1\n")])
    world.work_off(world.runner())
    assert [str(j.state) for j in world.jobs()] == ["SUCCEEDED"]


def test_a_config_zip_beside_the_manifest_counts_without_being_named(world):
    world.put("inbox/acme/d/config.zip", zipped(("columns/id.py", b"x = 1\n", 0o644)))
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    assert [r.key for r in job.config] == ["inbox/acme/d/config.zip"]
    assert job.config_place == "inbox/acme/d/config.zip"
    world.work_off(world.runner())
    assert world.jobs()[0].state is State.SUCCEEDED


def test_a_tenant_at_its_cap_waits_with_a_reason_and_blocks_nobody(tmp_path):
    world = World(tmp_path, tenant_concurrency=1)
    for tenant in ("acme", "globex"):
        for name in ("a.csv", "b.csv"):
            world.drop(tenant, name, name.encode())
    world.intake.sweep()
    runner, seen = world.runner(), []

    def during():
        other = world.runner()
        world.handle_one(other)
        world.handle_one(other)
        world.handle_one(other)
        seen.extend((j.tenant, str(j.state), j.reason) for j in world.jobs())

    world.sandbox.during = during
    world.handle_one(runner)
    waiting = [(t, r) for t, s, r in seen if s == "QUEUED" and r]
    first = next(t for t, s, _ in seen if s == "RUNNING")
    assert waiting == [(first, f"waiting: tenant {first} 1/1 running")]
    assert sum(1 for t, s, _ in seen if t != first and s == "SUCCEEDED") == 2
    world.work_off(runner)
    assert all(j.state is State.SUCCEEDED and j.attempts_total == 1 for j in world.jobs())
    world.close()


def test_a_runner_that_sleeps_past_its_lease_cannot_commit(world):
    world.intake.changed(world.drop())
    late, other = world.runner(), world.runner()

    def during():
        world.clock.move(31)
        world.work_off(other)

    world.sandbox.during = during
    world.handle_one(late)
    (job,) = world.jobs()
    assert (job.state, job.fence, job.attempts_total) == (State.SUCCEEDED, 2, 2)
    assert world.result(job)["attempts"] == 2


def test_a_cancel_of_a_running_job_is_requested_then_confirmed(world):
    world.intake.changed(world.drop())
    runner, seen = world.runner(), []

    def during():
        seen.append(world.control.cancel(world.jobs()[0].job_id))
        runner.beats.round()

    world.sandbox.during = during
    world.handle_one(runner)
    assert seen[0].state is State.RUNNING
    assert seen[0].cancel_requested_at is not None
    (job,) = world.jobs()
    assert (job.state, world.result(job)["status"]) == (State.CANCELLED, "CANCELLED")


def test_our_own_faults_are_tried_again_then_buried(world):
    world.intake.changed(world.drop())
    runner = world.runner()
    for _ in range(3):
        world.sandbox.verdict = Verdict.BOX_FAILED
        world.handle_one(runner)
        world.clock.move(60)
    (job,) = world.jobs()
    assert (job.state, job.attempts_total) == (State.FAILED, 3)
    assert [d.message.job_id for d in world.queue.dead()] == [job.job_id]
    world.control.retry(job.job_id)
    world.work_off(runner)
    assert world.jobs()[0].state is State.SUCCEEDED
    assert not world.queue.dead()


def test_an_ended_job_expires_and_its_outputs_go_but_result_json(world):
    world.intake.changed(world.drop())
    runner = world.runner()
    world.work_off(runner)
    world.clock.move(49 * 3600)
    runner.janitor.chores()
    world.intake.sweep()
    world.work_off(runner)
    (job,) = world.jobs()
    assert (job.state, world.result(job)["status"], world.result(job)["files"]) == (State.EXPIRED, "EXPIRED", [])
    assert [k.rpartition("/")[2] for k in world.store.keys("outputs/")] == ["result.json"]


def test_the_newest_good_result_outlives_its_retention_until_a_newer_one_is_as_old(tmp_path):
    with closing(World(tmp_path, keep_latest_days=30.0)) as world:
        runner = world.runner()

        def later(hours):
            world.clock.move(hours * 3600)
            runner.janitor.chores()
            return [job.state for job in sorted(world.jobs(), key=lambda job: job.created_at)]

        world.intake.changed(world.drop())
        world.work_off(runner)
        assert later(60) == [State.SUCCEEDED], "Friday's result is there on Monday"
        world.intake.changed(world.drop(body=b"id\n2\n"))
        world.work_off(runner)
        assert later(30) == [State.SUCCEEDED, State.SUCCEEDED]
        assert later(24) == [State.EXPIRED, State.SUCCEEDED]
        for _ in range(30):
            states = later(24)
        assert states[-1] is State.EXPIRED, "nothing stays for ever"


@pytest.mark.parametrize(("keep_days", "hours"), [(None, 48.0), (0.5, 12.0), (3.0, 72.0), (400.0, 240.0)])
def test_a_result_says_how_long_it_is_kept_and_is(tmp_path, keep_days, hours):
    with closing(World(tmp_path, max_keep_days=10.0)) as world:
        world.intake.changed(world.drop(keep_days=keep_days))
        runner = world.runner()
        world.work_off(runner)
        (job,) = world.jobs()
        result = world.result(job)
        expires = datetime.fromisoformat(result["expires_at"]).timestamp()
        assert expires == pytest.approx(
            datetime.fromisoformat(result["timings"]["ended_at"]).timestamp() + 3600 * hours
        )
        assert job.expires_at == pytest.approx(expires, abs=0.01), "the row says the same"
        world.clock.move(expires - world.clock.now() - 1)
        runner.janitor.chores()
        assert world.jobs()[0].state is State.SUCCEEDED
        world.clock.move(10)
        runner.janitor.chores()
        (job,) = world.jobs()
        assert (job.state, job.expires_at, world.result(job)["expires_at"]) == (State.EXPIRED, None, None)


def test_a_setting_that_was_lowered_shortens_no_promise(tmp_path):
    with closing(World(tmp_path)) as world:
        world.intake.changed(world.drop())
        world.work_off(world.runner())
        world.fragile = replace(world.fragile, settings=replace(world.settings, retention_hours=1.0))
        janitor = world.runner().janitor
        world.clock.move(47 * 3600)
        janitor.chores()
        assert world.jobs()[0].state is State.SUCCEEDED
        world.clock.move(2 * 3600)
        janitor.chores()
        assert world.jobs()[0].state is State.EXPIRED


def test_the_newest_good_result_stays_also_where_keep_days_is_short(tmp_path):
    with closing(World(tmp_path, keep_latest_days=30.0)) as world:
        world.intake.changed(world.drop(keep_days=0.5))
        runner = world.runner()
        world.work_off(runner)
        world.clock.move(60 * 3600)
        runner.janitor.chores()
        assert world.jobs()[0].state is State.SUCCEEDED


@pytest.mark.parametrize(("taken_back", "rows"), [(True, 0), (False, 1)])
def test_an_expired_row_is_forgotten_once_its_input_is_gone(world, taken_back, rows):
    world.intake.changed(world.drop())
    runner = world.runner()
    world.work_off(runner)
    for _ in range(2):
        world.clock.move(49 * 3600)
        if taken_back:
            world.store.delete("inbox/acme/d/a.csv")
        runner.janitor.chores()
        world.clock.move(5)
        runner.janitor.chores()
    assert len(world.jobs()) == rows
    assert len(list(world.store.keys("outputs/"))) == rows


def test_a_pause_holds_a_tenant_and_a_resume_lets_it_go(world):
    world.table.pause(Pause(tenant="acme", workflow=None, since=world.clock.now(), by="test"))
    world.intake.changed(world.drop())
    runner = world.runner()
    world.handle_one(runner)
    (job,) = world.jobs()
    assert (job.state, job.reason) == (State.QUEUED, "waiting: paused, tenant acme")
    assert world.table.resume("acme", None)
    world.work_off(runner)
    assert world.jobs()[0].attempts_total == 1


def test_a_row_that_was_never_enqueued_is_found(world):
    """A process whose queue is not in the table's database may end between the two."""
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    world.table.replace(job, replace(job, enqueued_at=None))
    for delivery in world.queue.receive(most=10, wait=0, visibility=30):
        world.queue.ack(delivery.receipt)
    world.clock.move(5)
    world.work_off(world.runner())
    assert states(world) == {"d/a.csv": "SUCCEEDED"}


def test_a_link_in_the_inbox_is_not_followed(world, tmp_path):
    (tmp_path / "secret.csv").write_text("secret")
    world.drop()
    (world.store.root / "inbox/acme/d/link.csv").symlink_to(tmp_path / "secret.csv")
    world.intake.sweep()
    world.intake.changed(["inbox/acme/d/link.csv"])
    assert set(states(world)) == {"d/a.csv"}
