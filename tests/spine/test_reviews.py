"""A job that needs a person waits for a decision, in any order of arrival, and loses nothing on the way."""

import json
from dataclasses import replace

import pytest

from core.decisions import DecisionInvalid
from core.errors import IllegalTransition
from core.jobs import State
from core.keys import job_folder, staging_folder
from core.memories import own_key, parse_memory
from core.verdicts import Verdict
from infra.reviews import put_decision
from infra.statuses import status_key
from tests.support import world as support
from tests.support.effort import FULL
from tests.support.world import Crash, World

INPUT = "inbox/acme/d/a.csv"
DECISION = f"{INPUT}.decision.json"
REVIEWED = {"mapping": {"review": "unsure"}, "review": {"expires": "2h"}}
ANSWER = {"decision": 1, "workflow": "members", "by": "ann", "answers": [{"header": "ID No", "field": "id"}]}


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


@pytest.fixture
def local(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def asking(world, **manifest):
    """A job that waits for a decision, and the runner that let it wait."""
    world.intake.changed(world.drop(**(REVIEWED | manifest)))
    runner = world.runner()
    world.sandbox.verdict = Verdict.NEEDS_REVIEW
    world.handle_one(runner)
    (job,) = world.jobs()
    assert job.state is State.REVIEW, job
    return job, runner


def answer(world, key=DECISION, told=True, **more):
    world.put(key, ANSWER | more)
    if told:
        world.intake.changed([key])


def names(world, job):
    return {key.removeprefix(job_folder(job)) for key in world.store.keys(job_folder(job))}


def told(world, key):
    return json.loads(world.store.read(key, limit=1 << 20)) if world.store.head(key) else None


def refusals(world):
    found = told(world, "outputs/acme/d/rejected.json") or {"problems": []}
    return [(p["path"], p["problem"]) for p in found["problems"] if p.get("decision") == DECISION]


def test_a_job_that_asks_publishes_its_questions_and_says_that_it_waits(world):
    job, _ = asking(world)
    assert names(world, job) == {"review.json", "review.html"}
    assert (job.lease, job.unpublished, job.waiting_for) == (None, False, (DECISION,))
    status = told(world, status_key(job))
    assert (status["state"], status["waiting_for"]) == ("REVIEW", [DECISION])
    assert status["due_at"]
    assert world.result(job) is None
    assert list(world.store.keys("work/")) == []
    assert world.table.counts()[State.REVIEW] == 1
    assert world.queue.stats().ready + world.queue.stats().in_flight == 0


def test_a_dropped_decision_lets_it_run_and_its_result_comes(world):
    job, runner = asking(world)
    answer(world)
    assert world.table.get(job.job_id).state is State.QUEUED
    world.work_off(runner)
    done = world.table.get(job.job_id)
    assert (done.state, done.decision.key) == (State.SUCCEEDED, DECISION)
    assert names(world, done) == {"artifact.json", "logs.txt", "normalized.xlsx", "report.html", "result.json"}
    assert told(world, f"{job_folder(done)}artifact.json")["decision"]["by"] == "ann"
    assert told(world, status_key(job)) is None
    assert refusals(world) == []


def test_a_decision_is_remembered_once_however_often_it_is_published(local):
    job, runner = asking(local)
    answer(local)
    local.crasher.arm(None)
    local.work_off(runner)
    done = local.table.get(job.job_id)
    runner.publisher._remember(done)
    runner.publisher._remember(replace(done))
    memory = parse_memory(local.store.read(own_key("acme", "members"), limit=1 << 20))
    (entry,) = memory.headers
    assert (entry.header, entry.field, entry.by, entry.count, entry.senders) == ("ID No", "id", "ann", 1, ("d",))
    (shape,) = memory.shapes
    assert (shape.sender, shape.headers, shape.header_rows, shape.by, shape.count) == ("d", ("ID No",), (1,), "ann", 1)


def test_a_box_puts_no_words_into_a_persons_mouth(local, monkeypatch):
    _, runner = asking(local)
    answer(local)
    lies = [
        {"header": "Total", "field": "id"},
        {"header": "Fax", "field": None},
        {"header": "Date", "reading": "comma"},
    ]
    monkeypatch.setattr(support, "_applied", lambda _: [*lies, {"header": "ID No", "field": "id"}])
    local.work_off(runner)
    memory = parse_memory(local.store.read(own_key("acme", "members"), limit=1 << 20))
    assert ([entry.header for entry in memory.headers], memory.readings) == (["ID No"], ())


def test_a_decision_that_is_not_to_be_remembered_is_not(local):
    _, runner = asking(local)
    answer(local, remember=False)
    local.work_off(runner)
    assert local.store.head(own_key("acme", "members")) is None


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ([("A", "phone"), ("B", None)], {"phone": "phone"}),
        ([("A", None), ("B", "phone")], {"phone": "phone"}),
        ([("A", "phone"), ("B", "id")], {}),
    ],
)
def test_of_columns_with_one_header_a_field_is_remembered_and_two_are_not(local, given, known):
    _, runner = asking(local, fields=[{"name": "id"}, {"name": "phone"}])
    answer(local, answers=[{"header": "phone", "column": c, "field": f} for c, f in given])
    local.work_off(runner)
    info = local.store.head(own_key("acme", "members"))
    memory = parse_memory(local.store.read(info.key, limit=1 << 20) if info else b'{"memory": 1}')
    assert {e.header: e.field for e in memory.headers} == known


def test_a_reading_is_remembered_for_its_sender(local):
    _, runner = asking(local)
    answer(
        local, answers=[{"header": "Date", "reading": "day_first"}, {"id": "x", "header": "Date", "reading": "comma"}]
    )
    local.work_off(runner)
    memory = parse_memory(local.store.read(own_key("acme", "members"), limit=1 << 20))
    assert [(e.sender, e.header, e.reading, e.by) for e in memory.readings] == [
        ("d", "Date", "day_first", "ann"), ("d", "Date", "comma", "ann"),
    ]  # fmt: skip


def test_a_memory_that_nobody_can_read_stops_no_publication(local):
    local.put(own_key("acme", "members"), b"no json")
    job, runner = asking(local)
    answer(local)
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED
    assert "decision_not_remembered" in local.log._stream.getvalue()
    assert local.store.read(own_key("acme", "members"), limit=99) == b"no json"


def test_jobs_pin_the_memory_that_is_there_and_a_new_memory_runs_nothing_again(local):
    local.put(own_key("acme", "members"), b'{"memory": 1}')
    local.intake.changed(local.drop(**REVIEWED))
    (job,) = local.jobs()
    assert [ref.key for ref in job.memories] == [own_key("acme", "members")]
    local.work_off(local.runner())
    local.intake.changed([local.put(own_key("acme", "members"), b'{"memory": 1, "headers": []}')])
    local.sweep()
    assert [(j.job_id, j.state) for j in local.jobs()] == [(job.job_id, State.SUCCEEDED)]


def test_a_memory_that_changed_since_costs_no_job(local):
    local.put(own_key("acme", "members"), b'{"memory": 1}')
    local.intake.changed(local.drop(**REVIEWED))
    local.put(own_key("acme", "members"), b'{"memory": 1, "values": []}')
    local.work_off(local.runner())
    assert [j.state for j in local.jobs()] == [State.SUCCEEDED]


def test_a_decision_before_the_file_and_before_the_question_is_taken_along(world):
    answer(world)
    world.intake.changed(world.drop(**REVIEWED))
    (job,) = [j for j in world.jobs() if j.workflow == "members"]
    assert job.decision.key == DECISION
    world.work_off(world.runner())
    assert world.table.get(job.job_id).state is State.SUCCEEDED


def test_a_decision_that_comes_while_the_job_runs_is_not_lost(world):
    world.intake.changed(world.drop(**REVIEWED))
    runner = world.runner()
    world.sandbox.verdict = Verdict.NEEDS_REVIEW
    world.sandbox.during = lambda: answer(world)
    world.handle_one(runner)
    (job,) = world.jobs()
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    world.work_off(runner)
    assert world.table.get(job.job_id).state is State.SUCCEEDED


def test_a_decision_whose_event_was_lost_is_found_by_the_sweep(local):
    job, runner = asking(local)
    answer(local, told=False)
    local.sweep()
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED


def test_a_decision_that_leaves_questions_open_is_used_once(local):
    job, runner = asking(local)
    answer(local)
    local.sandbox.verdict = Verdict.NEEDS_REVIEW
    local.work_off(runner)
    local.sweep()
    local.intake.changed([DECISION])
    waiting = local.table.get(job.job_id)
    assert (waiting.state, waiting.attempts_total) == (State.REVIEW, 2)
    assert "leaves open" in waiting.reason
    answer(local, answers=[{"header": "other", "field": "id"}])
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED


def test_a_decision_that_is_replaced_before_it_is_read_counts_as_the_newest(local):
    job, runner = asking(local)
    answer(local)
    answer(local, by="bob")
    local.work_off(runner)
    assert told(local, f"{job_folder(job)}artifact.json")["decision"]["by"] == "bob"


@pytest.mark.parametrize("event", [True, False])
def test_a_decision_that_is_deleted_before_it_is_read_is_asked_for_again(local, event):
    job, runner = asking(local)
    answer(local)
    local.store.delete(DECISION)
    if event:
        local.intake.changed([DECISION])
    local.sandbox.verdict = Verdict.NEEDS_REVIEW
    local.handle_one(runner)
    waiting = local.table.get(job.job_id)
    assert (waiting.state, waiting.decision) == (State.REVIEW, None)
    answer(local)
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("bad", "path", "word"),
    [
        (b"{", "$", "not JSON"),
        (b'{"decision": 1, "by": "' + b"x" * (1 << 20) + b'"}', "$", "bytes"),
        (json.dumps(ANSWER | {"remembr": 1}).encode(), "$.remembr", "did you mean remember"),
        (json.dumps(ANSWER | {"answers": [{"header": "A", "field": "nope"}]}).encode(), "$.answers[0].field", "nope"),
        (json.dumps(ANSWER | {"workflow": "payroll"}).encode(), "$.workflow", "payroll"),
        (json.dumps(ANSWER | {"job": "globex-members-00000000"}).encode(), "$.job", "not a job of this file"),
    ],
    ids=["no JSON", "1 MB", "unknown key", "unknown field", "other workflow", "another tenant's job"],
)
def test_a_decision_that_cannot_be_used_is_refused_in_words_and_loses_nothing(local, bad, path, word):
    job, runner = asking(local)
    local.put(DECISION, bad)
    local.intake.changed([DECISION])
    assert local.table.get(job.job_id) == job
    ((where, problem),) = refusals(local)
    assert where == path
    assert word in problem
    local.sweep()
    assert len(refusals(local)) == 1
    answer(local)
    assert refusals(local) == []
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED


def test_a_decision_for_another_tenants_job_does_nothing_to_it(local):
    local.intake.changed(local.drop(tenant="globex", **REVIEWED))
    runner = local.runner()
    local.sandbox.verdict = Verdict.NEEDS_REVIEW
    local.handle_one(runner)
    (other,) = local.jobs()
    local.intake.changed(local.drop(**REVIEWED))
    answer(local, job=other.job_id)
    assert local.table.get(other.job_id) == other
    assert [path for path, _ in refusals(local)] == ["$.job"]
    assert "globex" not in json.dumps([j.state for j in local.jobs()])


def test_a_replayed_decision_of_an_older_version_is_refused(local):
    job, runner = asking(local)
    local.clock.move(5)
    local.intake.changed([local.put(INPUT, b"id\n2\n")])
    (skipped,) = [j for j in local.jobs() if j.job_id == job.job_id]
    assert skipped.state is State.SKIPPED
    local.sandbox.verdict = Verdict.NEEDS_REVIEW
    local.work_off(runner)
    answer(local, job=job.job_id)
    (waiting,) = [j for j in local.jobs() if j.job_id != job.job_id]
    assert (waiting.state, waiting.decision) == (State.REVIEW, None)
    ((path, problem),) = refusals(local)
    assert (path, "had ended (SKIPPED)" in problem) == ("$", True)


def test_a_decision_that_comes_after_the_end_is_refused_with_the_remedy(local):
    local.intake.changed(local.drop(**REVIEWED))
    local.work_off(local.runner())
    answer(local)
    ((_, problem),) = refusals(local)
    (job,) = local.jobs()
    assert "SUCCEEDED" in problem
    assert job.decision is None
    local.control.reset(job.job_id)
    local.work_off(local.runner())
    assert local.table.get(job.job_id).decision.key == DECISION
    local.sweep()
    assert refusals(local) == []


def test_a_decision_is_neither_a_spreadsheet_nor_an_input(local):
    local.put(DECISION, ANSWER)
    local.intake.changed(local.drop(inputs={"primary": ["*"]}, **REVIEWED))
    local.sweep()
    assert [[i.name for i in j.inputs] for j in local.jobs()] == [["a.csv"]]


def test_a_drop_of_several_files_takes_the_decision_beside_any_of_them(local):
    local.put("inbox/acme/d/b.csv", b"id\n2\n")
    job, runner = asking(local, inputs={"per": "drop"})
    assert job.waiting_for == (DECISION,)
    answer(local, key="inbox/acme/d/b.csv.decision.json")
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED


# The deadline


def test_nobody_answers_and_the_job_fails_with_words(world):
    job, runner = asking(world)
    world.clock.move(2 * 3600 + 1)
    runner.janitor.chores()
    failed = world.table.get(job.job_id)
    assert (failed.state, failed.error.verdict) == (State.FAILED, Verdict.REVIEW_EXPIRED)
    assert world.result(failed)["error"]["verdict"] == "review_expired"
    assert {"review.json", "review.html"} <= names(world, failed)
    assert told(world, status_key(job)) is None
    answer(world)
    world.work_off(runner)
    assert world.table.get(job.job_id).state is State.SUCCEEDED
    assert "review.json" not in names(world, job)


def test_nobody_answers_and_the_likeliest_answers_are_taken(local):
    job, runner = asking(local, review={"expires": "30m", "on_expiry": "accept"})
    seen = []
    run = runner.worker.attempts.run
    local.clock.move(1801)
    box = local.sandbox.run
    local.sandbox.run = lambda order, **more: seen.append(getattr(order.job, "accept", None)) or box(order, **more)
    local.work_off(runner)
    assert run
    assert seen[0] is True
    assert local.table.get(job.job_id).state is State.SUCCEEDED


def test_a_deadline_that_has_not_come_changes_nothing(local):
    job, runner = asking(local)
    local.clock.move(7000)
    runner.janitor.chores()
    runner.janitor.collect()
    assert local.table.get(job.job_id) == job


# What operators do


def test_a_job_that_waits_can_be_cancelled_at_once(world):
    job, _ = asking(world)
    world.control.cancel(job.job_id)
    ended = world.table.get(job.job_id)
    assert (ended.state, world.result(ended)["status"]) == (State.CANCELLED, "CANCELLED")
    assert names(world, ended) == {"result.json"}
    assert told(world, status_key(job)) is None


def test_no_result_names_questions_though_they_are_still_staged(local):
    """The process died before it had deleted what it copied, and the job is cancelled."""
    job, _ = asking(local)
    for name in ("review.json", "review.html"):
        local.store.copy(job_folder(job) + name, f"{staging_folder(job.job_id, job.fence)}{name}")
    local.control.cancel(job.job_id)
    assert local.result(local.table.get(job.job_id))["files"] == []
    assert names(local, job) == {"result.json"}
    assert list(local.store.keys("work/")) == []


def test_a_cancel_while_the_questions_are_made_wins(local):
    local.intake.changed(local.drop(**REVIEWED))
    runner = local.runner()
    local.sandbox.verdict = Verdict.NEEDS_REVIEW
    local.sandbox.during = lambda: local.control.cancel(local.jobs()[0].job_id)
    local.handle_one(runner)
    assert [j.state for j in local.jobs()] == [State.CANCELLED]


@pytest.mark.parametrize("act", ["retry", "reset"])
def test_a_job_that_waits_can_be_run_again(local, act):
    job, runner = asking(local)
    getattr(local.control, act)(job.job_id)
    local.work_off(runner)
    done = local.table.get(job.job_id)
    assert done.state is State.SUCCEEDED
    assert "review.json" not in names(local, done)


def test_a_job_that_waits_can_be_removed(local):
    job, _ = asking(local)
    local.control.remove(job.job_id)
    assert local.jobs() == []
    assert list(local.store.keys("outputs/")) == []


def test_a_retry_uses_what_was_learnt_since(local):
    job, runner = asking(local)
    local.put(own_key("acme", "members"), b'{"memory": 1}')
    local.control.retry(job.job_id)
    assert [ref.key for ref in local.table.get(job.job_id).memories] == [own_key("acme", "members")]
    local.work_off(runner)


def test_a_newer_version_supersedes_a_job_that_waits(world):
    job, runner = asking(world)
    world.clock.move(5)
    world.intake.changed([world.put(INPUT, b"id\n2\n")])
    assert world.table.get(job.job_id).state is State.SKIPPED
    world.work_off(runner)
    assert world.result(job)["status"] == "SKIPPED"
    assert names(world, job) == {"result.json"}


def test_a_file_that_its_sender_took_back_is_no_longer_asked_about(local):
    job, _ = asking(local)
    local.store.delete(INPUT)
    local.intake.changed([INPUT])
    assert local.table.get(job.job_id).state is State.SKIPPED


def test_a_waiting_job_takes_no_slot(tmp_path):
    world = World(tmp_path, tenant_concurrency=1)
    asking(world)
    world.intake.changed([world.put("inbox/acme/d/b.csv", b"id\n9\n")])
    runner = world.runner()
    world.handle_one(runner)
    assert sorted(j.state for j in world.jobs()) == [State.REVIEW, State.SUCCEEDED]
    world.close()


def test_a_cancelled_review_does_not_come_back_by_its_decision(local):
    job, _ = asking(local)
    local.control.cancel(job.job_id)
    answer(local)
    assert local.table.get(job.job_id).state is State.CANCELLED
    with pytest.raises(IllegalTransition):
        local.control.cancel(job.job_id)


# Deaths


@pytest.mark.slow
def test_a_death_at_any_step_of_a_review_loses_nothing(tmp_path):
    """Dropped, asked, answered and published, with a death before every external step and after every third.

    After a step and before the next one, what others can see is the same; ADE_TEST_FULL=1 tries both at every step.
    """
    for after in (False, True):
        for step in range(0, 200, 3 if after and not FULL else 1):
            world = World(tmp_path / f"{after}-{step}")
            dies = _reviewed(world, step, after=after)
            world.close()
            if not dies:
                break
        else:
            raise AssertionError("never got through")


def _reviewed(world, step, *, after):
    """Whether the process died at the step."""
    died, world.sandbox.asks = False, True
    acts = [
        lambda: world.intake.changed(world.drop(**REVIEWED)),
        lambda: world.handle_one(world.runner()),
        lambda: answer(world),
        lambda: world.handle_one(world.runner()),
    ]
    world.crasher.arm(step, after=after)
    for act in acts:
        try:
            act()
        except Crash:
            died = True
            world.intake = world.new_intake()
    world.crasher.arm(None)
    runner = world.runner()
    for _ in range(2):
        world.sweep()
        world.work_off(runner)
    (job,) = world.jobs()
    where = f"step {step}, after {after}: {job.state} {job.reason}"
    assert job.state is State.SUCCEEDED, where
    assert names(world, job) == {"artifact.json", "logs.txt", "normalized.xlsx", "report.html", "result.json"}, where
    assert world.result(job)["status"] == "SUCCEEDED", where
    assert told(world, status_key(job)) is None, where
    runner.janitor.collect()
    assert list(world.store.keys("work/")) == [], where
    if job.decision is not None:
        memory = parse_memory(world.store.read(own_key("acme", "members"), limit=1 << 20))
        assert [e.count for e in (*memory.headers, *memory.shapes)] == [1, 1], where
    return died


LONG = "ä" * 118 + ".csv"  # 240 bytes: no room for .decision.json on a file system


def test_a_file_with_a_very_long_name_is_answered_by_a_file_named_after_its_job(world):
    name = LONG + "x" * 7 + ".csv"
    world.intake.changed(world.drop(name=name, **REVIEWED))
    runner = world.runner()
    world.sandbox.verdict = Verdict.NEEDS_REVIEW
    world.handle_one(runner)
    (job,) = world.jobs()
    key = f"inbox/acme/d/{job.job_id}.decision.json"
    assert job.waiting_for == (key,)
    assert told(world, f"{job_folder(job)}review.json")["answer_to"] == key
    assert (
        f"{job.job_id}.decision.json</code>"
        in world.store.read(f"{job_folder(job)}review.html", limit=1 << 20).decode()
    )
    answer(world, key=key)
    world.work_off(runner)
    done = world.table.get(job.job_id)
    assert (done.state, done.decision.key) == (State.SUCCEEDED, key)


@pytest.mark.parametrize("told_of", [True, False])
def test_a_decision_named_after_a_job_is_found_by_its_event_and_by_the_sweep(local, told_of):
    job, runner = asking(local)
    answer(local, key=f"inbox/acme/d/{job.job_id}.decision.json", told=told_of)
    if not told_of:
        local.sweep()
    local.work_off(runner)
    assert local.table.get(job.job_id).state is State.SUCCEEDED


def test_a_decision_named_after_a_job_elsewhere_or_of_another_tenant_does_nothing(local):
    job, _ = asking(local)
    for key in (f"inbox/globex/d/{job.job_id}.decision.json", f"inbox/acme/e/{job.job_id}.decision.json"):
        answer(local, key=key)
    local.sweep()
    assert local.table.get(job.job_id) == job


def test_of_several_decisions_on_a_job_the_newest_that_is_for_it_counts(local):
    job, runner = asking(local)
    answer(local, told=False)
    local.clock.move(5)
    answer(local, key=f"inbox/acme/d/{job.job_id}.decision.json", workflow="other", told=False)
    local.sweep()
    local.work_off(runner)
    assert local.table.get(job.job_id).decision.key == DECISION
    local.control.reset(job.job_id)
    assert local.table.get(job.job_id).decision.key == DECISION


def test_one_decision_answers_every_job_of_a_parameter_sweep(local):
    local.intake.changed(local.drop(sweep={"rate": [1, 2]}, **REVIEWED))
    runner = local.runner()
    for _ in range(2):
        local.sandbox.verdict = Verdict.NEEDS_REVIEW
        local.handle_one(runner)
    assert [j.state for j in local.jobs()] == [State.REVIEW, State.REVIEW]
    answer(local)
    local.work_off(runner)
    assert [(j.state, j.decision.key) for j in local.jobs()] == [(State.SUCCEEDED, DECISION)] * 2


def test_answers_by_command_to_jobs_of_one_file_take_nothing_from_each_other(local):
    local.intake.changed(local.drop(sweep={"rate": [1, 2]}, **REVIEWED))
    runner = local.runner()
    for _ in range(2):
        local.sandbox.verdict = Verdict.NEEDS_REVIEW
        local.handle_one(runner)
    one, two = local.jobs()
    keys = [put_decision(local.store, job, ANSWER | {"job": job.job_id}) for job in (one, two)]
    assert keys == [DECISION, f"inbox/acme/d/{two.job_id}.decision.json"]
    local.sweep()
    local.work_off(runner)
    assert [j.decision.key for j in map(local.table.get, (one.job_id, two.job_id))] == keys


def test_what_an_earlier_answer_by_command_said_stays_and_what_is_said_again_goes_first(local):
    job, runner = asking(local)
    said = [{"header": "ID No", "field": "id"}, {"header": "Notes", "field": None}]
    put_decision(local.store, job, ANSWER | {"job": job.job_id, "answers": said})
    local.sweep()
    local.sandbox.verdict = Verdict.NEEDS_REVIEW
    local.work_off(runner)
    again = local.table.get(job.job_id)
    more = [{"header": "Date", "reading": "comma"}, {"header": "Notes", "field": "id"}]
    put_decision(local.store, again, ANSWER | {"job": job.job_id, "answers": more})
    assert told(local, DECISION)["answers"] == [*more, said[0]]


def test_an_answer_by_command_with_an_unknown_field_is_refused_at_once_and_one_that_is_there_spoils_no_other(local):
    job, _ = asking(local)
    bad = {"header": "x", "field": "nope"}
    with pytest.raises(DecisionInvalid, match="nope"):
        put_decision(local.store, job, ANSWER | {"answers": [bad]})
    assert local.store.head(DECISION) is None
    answer(local, answers=[bad, {"header": "y", "field": None}])
    assert refusals(local)
    put_decision(local.store, job, ANSWER)
    assert told(local, DECISION)["answers"] == [*ANSWER["answers"], {"header": "y", "field": None}]


def test_a_decision_replaced_while_the_job_ends_is_refused_and_the_one_that_was_read_keeps_its_date(local):
    job, runner = asking(local)
    answer(local)
    given = local.table.get(job.job_id)

    def replaced():
        local.clock.move(9)
        answer(local, by="bob")

    local.sandbox.during = replaced
    local.handle_one(runner)
    done = local.table.get(job.job_id)
    assert (done.decision, done.decided_at) == (given.decision, given.decided_at)
    local.sweep()
    assert [problem for _, problem in refusals(local) if "had ended (SUCCEEDED)" in problem]
