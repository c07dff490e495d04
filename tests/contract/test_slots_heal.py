"""What a table counts beside its rows comes back to what the rows say, whatever somebody did to it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.jobs import Job, State, move, start
from core.ports import Caps, JobQuery, JobTable, Refused
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import job_key, number, slots_key
from tests.contract.jobs import NOW, a_job
from tests.contract.rigs import Rig

TWO = Caps(tenant=2, workflow=2)
LARGE = Caps(tenant=64, workflow=64)
_RUNNING = JobQuery(states=frozenset({State.RUNNING}))


def try_start(table: JobTable, name: str, caps: Caps = TWO) -> Job | Refused | None:
    job, _ = table.add(a_job(name))
    return table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), caps)


def counted(table: JobTable, name: str, caps: Caps = TWO) -> Job:
    job = try_start(table, name, caps)
    assert isinstance(job, Job)
    return job


def recounted(rig: Rig[JobTable]) -> int:
    """The janitor's looks over two minutes."""
    found = 0
    for _ in range(4):
        found += rig.port.recount()
        rig.clock.move(30)
    return found


def spoil(table: JobTable, running: int, workflow: str | None = None, counter: int = 0) -> None:
    if not isinstance(table, DynamoJobTable):
        pytest.skip("this table counts its rows")
    table._db.update_item(
        TableName=table._name,
        Key=slots_key("acme", workflow, counter),
        UpdateExpression="SET running = :n",
        ExpressionAttributeValues={":n": number(running)},
    )


def test_where_all_is_right_nothing_is_corrected(table_rig: Rig[JobTable]):
    table = table_rig.port
    jobs = [counted(table, name) for name in "ab"]
    assert isinstance(try_start(table, "c"), Refused)
    assert recounted(table_rig) == 0
    assert isinstance(try_start(table, "d"), Refused)
    table.replace(jobs[0], move(jobs[0], State.FAILED, now=NOW))
    counted(table, "e")


@pytest.mark.parametrize("workflow", [None, "members"])
@pytest.mark.parametrize("running", [3, 99])
def test_a_counter_that_is_too_high_blocks_its_tenant_for_minutes_only(table_rig, workflow, running):
    table = table_rig.port
    counted(table, "a")
    spoil(table, running, workflow)
    assert isinstance(try_start(table, "b"), Refused)
    assert recounted(table_rig) == 1
    counted(table, "c")
    assert isinstance(try_start(table, "d"), Refused), "the cap holds as before"


def test_a_counter_that_is_too_low_is_corrected_once_it_refuses(table_rig: Rig[JobTable]):
    table = table_rig.port
    for name in "ab":
        counted(table, name)
    spoil(table, 0)
    spoil(table, 0, "members")
    for name in "cd":
        counted(table, name)
    assert isinstance(try_start(table, "e"), Refused)
    recounted(table_rig)
    answer = try_start(table, "f")
    assert answer == Refused(reason="waiting: tenant acme 4/2 running", scope="tenant")


def test_a_row_deleted_by_hand_gives_its_slot_back(table_rig: Rig[JobTable]):
    table = table_rig.port
    jobs = [counted(table, name) for name in "ab"]
    if not isinstance(table, DynamoJobTable):
        pytest.skip("this table counts its rows")
    table._db.delete_item(TableName=table._name, Key=job_key(jobs[0].job_id))
    assert isinstance(try_start(table, "c"), Refused)
    assert recounted(table_rig) == 2, "the tenant's and the workflow's"
    counted(table, "d")


def test_counters_of_large_caps_heal_too(table_rig: Rig[JobTable]):
    table = table_rig.port
    counted(table, "a", LARGE)
    for counter in range(1, 17):
        spoil(table, 4, None, counter)
    assert isinstance(try_start(table, "b", LARGE), Refused)
    assert recounted(table_rig) == 16
    counted(table, "c", LARGE)


def test_a_counter_that_moves_is_left_alone(table_rig: Rig[JobTable]):
    """Starts and ends between two looks: what was read of the rows may be of another moment."""
    table = table_rig.port
    first = counted(table, "a")
    spoil(table, 99)
    assert isinstance(try_start(table, "b"), Refused)
    table.recount()
    table_rig.clock.move(30)
    table.replace(first, move(first, State.FAILED, now=NOW))
    assert table.recount() == 0
    table_rig.clock.move(30)
    assert table.recount() == 1
    counted(table, "c")


def test_ends_while_it_is_recounted_are_not_lost(table_rig: Rig[JobTable]):
    if not table_rig.isolates:
        pytest.skip("this server's transactions do not isolate")
    table, caps = table_rig.port, Caps(tenant=10, workflow=0)
    for turn in range(3):
        jobs = [counted(table, f"{turn}-{n}", caps) for n in range(5)]
        spoil(table, 12)
        assert isinstance(try_start(table, f"{turn}-refused", caps), Refused)
        table._slots._doubted.clear()
        table.recount()
        table_rig.clock.move(30)

        def end(job):
            return table.replace(job, move(job, State.FAILED, now=NOW))

        with ThreadPoolExecutor(6) as pool:
            recount = pool.submit(table.recount)
            assert all(pool.map(end, jobs))
            recount.result()
        try_start(table, f"{turn}-again", Caps(tenant=1, workflow=0))
        recounted(table_rig)
        assert table._slots._count(10, "acme", None) == table.count(frozenset({State.RUNNING}), before=NOW + 1)
        for job in table.page(_RUNNING).jobs:
            end(job)
