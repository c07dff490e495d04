"""One bad object, row, tenant or message never ends the work on the others: it is set aside and named."""

import json

import pytest

from console.cli import checks
from core.drops import Workflow
from core.errors import ObjectRefused, RowUnreadable, StoreUnavailable
from core.jobs import State
from core.ports import JobQuery
from handlers.workflows import LiveView
from infra.aws.dynamodb_items import job_key


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


def spoil(world, job_id):
    """As somebody does who edits the table by hand."""
    if hasattr(world.table, "_reads"):
        world.table._db.update_item(
            TableName=world.table._name,
            Key=job_key(job_id),
            UpdateExpression="SET doc = :doc",
            ExpressionAttributeValues={":doc": {"B": b"no job"}},
        )
    else:
        with world.table._db.write() as db:
            db.execute("UPDATE jobs SET doc = 'no job' WHERE job_id = ?", (job_id,))


def done(world):
    world.work_off(world.runner())
    return {j.tenant: str(j.state) for j in world.jobs()}


def deny_access(world, refused):
    """Let the store deny access to one key; returns the call that it replaces."""
    head = world.store.head

    def refusing(key):
        if key == refused:
            raise ObjectRefused(f"{key}: AccessDenied (403)")
        return head(key)

    world.store.head = refusing
    if (listings := getattr(world.store, "_listings", None)) is not None:
        listings._agreed = False  # as where versions may not be listed: each object is asked for
    return head


def looked_at(world, how, keys):
    return world.intake.sweep() if how == "sweep" else world.intake.changed(keys)


@pytest.mark.parametrize("how", ["event", "sweep"])
@pytest.mark.parametrize(
    "manifest",
    [
        r'{"manifest": 1, "name": "\ud800", "fields": [{"name": "id"}]}',
        r'{"manifest": 1, "name": "m", "description": "\udfff", "fields": [{"name": "id"}]}',
        r'{"manifest": 1, "name": "m", "\ud800": 1, "fields": [{"name": "id"}]}',
        "[" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_a_manifest_that_breaks_its_reader_is_rejected_and_keeps_nobody_waiting(world, how, manifest):
    world.put("inbox/acme/d/a.csv", b"id\n1\n")
    keys = [world.put("inbox/acme/d/manifest.json", manifest.encode()), *world.drop(tenant="globex")]
    looked_at(world, how, keys)
    assert done(world)["globex"] == "SUCCEEDED"
    told = json.loads(world.store.read("outputs/acme/d/rejected.json", limit=1 << 20))
    assert told["problems"][0]["manifest"] == keys[0]


@pytest.mark.parametrize("how", ["event", "sweep"])
def test_an_object_that_the_store_refuses_is_set_aside(world, how):
    keys = [*world.drop(name="b.csv"), *world.drop(tenant="globex"), world.put("inbox/acme/d/a.csv", b"id\n1\n")]
    deny_access(world, "inbox/acme/d/a.csv")
    report = looked_at(world, how, keys)
    assert any("AccessDenied" in line for line in (*report.failed, *report.refused))
    assert {(j.tenant, j.subject) for j in world.jobs()} == {("acme", "d/b.csv"), ("globex", "d/a.csv")}


def test_a_drop_that_is_refused_in_part_is_not_taken_for_whole(world):
    keys = world.drop(inputs={"primary": ["*.csv"], "per": "drop"})
    keys.append(world.put("inbox/acme/d/b.csv", b"id\n2\n"))
    head = deny_access(world, "inbox/acme/d/b.csv")
    for how in ("event", "sweep"):
        report = looked_at(world, how, keys)
        assert any("AccessDenied" in line for line in (*report.failed, *report.refused))
    assert world.jobs() == []
    world.store.head = head
    world.intake.sweep()
    assert [len(j.inputs) for j in world.jobs()] == [2]


@pytest.mark.parametrize("how", ["event", "sweep"])
def test_a_row_that_cannot_be_read_is_set_aside(world, how):
    keys = [*world.drop(), *world.drop(tenant="globex")]
    world.intake.changed(keys[:2])
    (bad,) = world.jobs()
    spoil(world, bad.job_id)
    with pytest.raises(RowUnreadable, match=bad.job_id):
        world.table.get(bad.job_id)
    report = looked_at(world, how, keys)
    runner = world.runner()
    for _ in range(6):  # its message comes back, and is nobody else's affair
        world.clock.move(3)
        runner.janitor.chores()
        runner.janitor.collect()
        for delivery in world.queue.receive(most=1, wait=0, visibility=35):
            if delivery.message.job_id != bad.job_id:
                runner.worker.handle(delivery)
    assert {j.tenant: j.state for j in world.jobs()} == {"globex": State.SUCCEEDED}
    assert not [line for line in report.failed if "globex" in line]
    assert world.table.damaged().keys() == {bad.job_id}
    assert any(check.level == "wrong" and bad.job_id in check.message for check in checks.check_rows(world.fragile))


def test_a_row_that_cannot_be_read_keeps_no_file_beside_it_waiting(world):
    keys = world.drop(name="a.csv")
    world.intake.changed(keys)
    (bad,) = world.jobs()
    spoil(world, bad.job_id)
    for n in range(3):
        world.put(f"inbox/acme/d/{n}.csv", f"id\n{n}\n".encode())
    report = world.intake.sweep()
    assert sorted(job.subject for job in world.jobs()) == ["d/0.csv", "d/1.csv", "d/2.csv"]
    assert any(bad.job_id in line for line in report.failed)


def test_many_rows_that_cannot_be_read_do_not_hide_the_others(world):
    for n in range(5):
        world.intake.changed(world.drop(name=f"{n}.csv", body=f"{n}".encode()))
    first = sorted(world.jobs(), key=lambda j: j.created_at)[:4]
    for job in first:
        spoil(world, job.job_id)
    world.clock.move(2000)
    world.table.attention(world.clock.now(), limit=1)
    (seen,) = world.table.attention(world.clock.now(), limit=1)
    assert seen.job_id not in {job.job_id for job in first}
    assert len(world.table.page(JobQuery(), limit=2).jobs) <= 2
    assert [j.job_id for j in world.jobs()] == [seen.job_id]


def test_a_row_deleted_by_hand_comes_back_and_its_line_can_be_read(world):
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    if hasattr(world.table, "_reads"):
        world.table._db.delete_item(TableName=world.table._name, Key=job_key(job.job_id))
    else:
        with world.table._db.write() as db:
            db.execute("DELETE FROM jobs")
    world.clock.move(1)
    for _ in range(2):
        world.intake.sweep()
    assert len(world.table.line(job.line)) == 1
    assert done(world) == {"acme": "SUCCEEDED"}


def test_a_chore_that_breaks_keeps_no_other_waiting(world):
    for tenant in ("acme", "globex"):
        world.intake.changed(world.drop(tenant=tenant))
    runner = world.runner()
    world.work_off(runner)
    world.clock.move(49 * 3600)
    replace = world.table.replace

    def broken(old, new):
        if old.tenant == "acme":
            raise ValueError("something nobody thought of")
        return replace(old, new)

    world.table.replace = broken
    done = runner.janitor.chores()
    world.table.replace = replace
    assert done["chores_failed"]
    assert {j.tenant: str(j.state) for j in world.jobs()} == {"acme": "SUCCEEDED", "globex": "EXPIRED"}
    assert "chore_failed" in world.log._stream.getvalue()


def test_a_tenant_that_breaks_the_sweep_keeps_no_other_waiting(world):
    for tenant in ("acme", "globex"):
        world.drop(tenant=tenant)
    line = world.table.line

    def broken(of):
        if of.startswith("acme/"):
            raise ValueError("something nobody thought of")
        return line(of)

    world.table.line = broken
    report = world.intake.sweep()
    assert any("something nobody thought of" in said for said in report.failed)
    assert {j.tenant for j in world.jobs()} == {"globex"}


@pytest.mark.parametrize("refused", [False, True])
def test_a_drop_of_many_files_is_looked_through_once_not_once_per_file(world, monkeypatch, refused):
    count = 100
    keys = world.drop(inputs={"primary": ["*.csv"], "per": "drop"})
    keys += [world.put(f"inbox/acme/d/{n}.csv", b"id\n2\n") for n in range(count)]
    if refused:
        head = world.store.head
        monkeypatch.setattr(world.store, "head", lambda key: head(key) if key != keys[-1] else refuse(key))
    asked = []
    selects, names = Workflow.selects, LiveView.names
    monkeypatch.setattr(Workflow, "selects", lambda self, key: (asked.append(key), selects(self, key))[1])
    monkeypatch.setattr(LiveView, "names", lambda self, of: (asked.extend(found := names(self, of)), found)[1])
    report = world.intake.changed(keys)
    assert len(asked) < 15 * count
    assert [len(j.inputs) for j in world.jobs()] == ([] if refused else [count + 1])
    assert len(report.failed) == (2 if refused else 0), "told for the object and for its drop, once each"


def refuse(key):
    raise ObjectRefused(f"{key}: AccessDenied (403)")


def test_doctor_names_what_lies_in_no_tenants_folder(world):
    world.put("inbox/loose.xlsx", b"x")
    assert any("loose.xlsx" in check.message for check in checks.check_inbox(world.fragile))


def test_a_store_that_does_not_answer_is_nobodys_fault(world):
    world.drop()
    level = world.store.level

    def silent(prefix):
        raise StoreUnavailable("is it up?")

    world.store.level = silent
    with pytest.raises(StoreUnavailable):
        world.intake.changed(["inbox/acme/d/a.csv"])
    world.store.level = level
    assert world.intake.sweep().failed == []
