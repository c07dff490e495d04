"""What every job table promises."""

import threading
from dataclasses import replace
from typing import ClassVar

import pytest

from core.chores import Timings, defer
from core.ends import COUNTER_SECONDS, DAY, SENDER_SECONDS, STEP
from core.jobs import Job, JobError, Lease, Outcome, State, again, beat, move, start
from core.ports import Caps, JobQuery, JobTable, Pause, Refused, Resolution, Tally
from core.verdicts import Fault, Verdict
from tests.contract import contenders
from tests.contract.jobs import NOW, a_job, with_reason
from tests.contract.rigs import Rig

FREE = Caps(tenant=0, workflow=0)


def added(table: JobTable, name: str, **more) -> Job:
    return table.add(a_job(name, **more))[0]


def started(table: JobTable, job: Job, caps: Caps = FREE) -> Job:
    answer = table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), caps)
    assert isinstance(answer, Job), answer
    return answer


class TestOwners:
    """A table that was restored from a backup counts fences and revs a second time: two runners may hold the same."""

    def test_a_runner_writes_its_own_row(self, table: JobTable):
        mine = started(table, added(table, "a"))
        assert table.replace(mine, beat(mine, now=NOW + 1, lease_seconds=30)) is not None

    def test_a_row_that_another_runner_holds_is_not_written(self, table: JobTable):
        theirs = started(table, added(table, "a"))
        mine = replace(theirs, lease=Lease(owner="r2", expires=NOW + 30))
        assert table.replace(mine, beat(mine, now=NOW + 1, lease_seconds=30)) is None
        assert table.replace(mine, move(mine, State.PUBLISHING, now=NOW)) is None
        assert table.get(theirs.job_id) == theirs

    def test_a_row_that_nobody_holds_any_more_is_not_written_by_a_former_holder(self, table: JobTable):
        job = added(table, "a")
        mine = replace(job, state=State.RUNNING, lease=Lease(owner="r2", expires=NOW + 30))
        assert table.replace(mine, move(mine, State.PUBLISHING, now=NOW)) is None
        assert table.get(job.job_id) == job


class TestAdding:
    def test_a_new_job_is_made(self, table: JobTable):
        job, made = table.add(a_job("a"))
        assert made
        assert table.get(job.job_id) == job

    def test_every_field_comes_back(self, table: JobTable):
        job, _ = table.add(a_job("a"))
        assert table.get("acme-members-a") == replace(a_job("a"), rev=job.rev)

    def test_a_second_add_returns_the_first_row(self, table: JobTable):
        first, _ = table.add(a_job("a"))
        second, made = table.add(a_job("a", reason="another"))
        assert not made
        assert second == first

    def test_a_second_add_returns_the_row_as_it_is_now(self, table: JobTable):
        first, _ = table.add(a_job("a"))
        now = table.replace(first, with_reason(first, "moved on"))
        assert table.add(a_job("a")) == (now, False)

    def test_a_job_that_is_not_there_is_none(self, table: JobTable):
        assert table.get("acme-members-nothing") is None

    def test_a_job_with_very_many_inputs_comes_back(self, table: JobTable):
        one = a_job("a").inputs[0]
        many = tuple(
            replace(one, name=f"file {n}", ref=replace(one.ref, key=f"inbox/acme/{n:05d}/{'x' * 100}.csv"))
            for n in range(3000)
        )
        job, _ = table.add(a_job("a", inputs=many))
        assert table.get(job.job_id) == job

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_of_many_that_add_one_makes_it(self, table_rig: Rig[JobTable], kind: str):
        jobs = [a_job("a", reason=f"writer {n}") for n in range(8)]
        made = contenders.race(table_rig.race_in(kind), 4, contenders.add_one, [table_rig.another] * 8, jobs)
        assert made.count(True) == 1
        row = table_rig.port.get("acme-members-a")
        assert row is not None
        assert row.reason == f"writer {made.index(True)}"


class TestRowsThatComeBack:
    """A row may be forgotten and made anew under the same id; whoever holds the former one can do nothing to it."""

    def removed(self, table: JobTable) -> Job:
        """A row that was started three times, as its last runner holds it."""
        job = added(table, "a")
        for _ in range(3):
            job = started(table, job)
            held = job
            job = table.replace(job, move(job, State.QUEUED, now=NOW))
            assert job is not None
        assert table.remove(job)
        return held

    def test_a_fence_never_repeats(self, table: JobTable):
        held = self.removed(table)
        job = started(table, added(table, "a"))
        assert job.fence > held.fence

    def test_a_rev_never_repeats(self, table: JobTable):
        held = self.removed(table)
        job = started(table, added(table, "a"))
        while job.rev < held.rev:
            job = table.replace(job, with_reason(job, f"rev {job.rev}")) or job
        assert table.replace(held, move(held, State.PUBLISHING, now=NOW)) is None
        assert table.get(job.job_id) == job

    def test_a_row_that_was_removed_twice_starts_higher_still(self, table: JobTable):
        first = self.removed(table)
        second = self.removed(table)
        assert started(table, added(table, "a")).fence > second.fence > first.fence

    def test_a_row_of_another_tenant_starts_at_nothing(self, table: JobTable):
        self.removed(table)
        assert added(table, "b", tenant="globex").fence == 0

    def test_a_row_that_never_started_leaves_no_trace(self, table: JobTable):
        assert table.remove(added(table, "a"))
        assert added(table, "a").fence == 0


class TestReplacing:
    def test_the_row_is_written_under_a_new_rev(self, table: JobTable):
        old = added(table, "a")
        new = table.replace(old, with_reason(old, "new"))
        assert new is not None
        assert new.rev > old.rev
        assert table.get(old.job_id) == new

    def test_an_outdated_rev_changes_nothing(self, table: JobTable):
        old = added(table, "a")
        now = table.replace(old, with_reason(old, "first"))
        assert table.replace(old, with_reason(old, "second")) is None
        assert table.get(old.job_id) == now

    def test_a_row_that_is_gone_is_not_written(self, table: JobTable):
        old = added(table, "a")
        table.remove(old)
        assert table.replace(old, with_reason(old, "new")) is None
        assert table.get(old.job_id) is None

    def test_a_row_that_never_was_is_not_written(self, table: JobTable):
        assert table.replace(a_job("a", rev=1), a_job("a", rev=1)) is None
        assert table.get("acme-members-a") is None

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_of_many_that_replace_one_wins(self, table_rig: Rig[JobTable], kind: str):
        old = added(table_rig.port, "a")
        won = contenders.race(
            table_rig.race_in(kind),
            4,
            contenders.replace_one,
            [table_rig.another] * 8,
            [old] * 8,
            [f"writer {n}" for n in range(8)],
        )
        assert won.count(True) == 1
        row = table_rig.port.get(old.job_id)
        assert row is not None
        assert row.reason == f"writer {won.index(True)}"


class TestRemoving:
    def test_the_row_is_gone(self, table: JobTable):
        job = added(table, "a")
        assert table.remove(job)
        assert table.get(job.job_id) is None
        assert table.line(job.line) == ()
        assert table.page(JobQuery()).jobs == ()

    def test_again_is_false(self, table: JobTable):
        job = added(table, "a")
        table.remove(job)
        assert not table.remove(job)

    def test_a_row_that_moved_on_stays(self, table: JobTable):
        old = added(table, "a")
        now = table.replace(old, with_reason(old, "new"))
        assert not table.remove(old)
        assert table.get(old.job_id) == now

    def test_the_id_is_free_again(self, table: JobTable):
        table.remove(added(table, "a"))
        job, made = table.add(a_job("a"))
        assert made
        assert table.line(job.line) == (job,)


class TestAdmission:
    def test_a_job_starts(self, table: JobTable):
        job = started(table, added(table, "a"))
        assert table.get(job.job_id) == job
        assert job.state is State.RUNNING

    def test_an_outdated_rev_does_not_start(self, table: JobTable):
        old = added(table, "a")
        table.replace(old, with_reason(old, "moved on"))
        assert table.admit(old, start(old, owner="r1", now=NOW, lease_seconds=30), FREE) is None

    def test_a_start_that_met_another_rev_takes_no_slot(self, table: JobTable):
        old = added(table, "a")
        now = table.replace(old, with_reason(old, "moved on"))
        assert now is not None
        table.admit(old, start(old, owner="r1", now=NOW, lease_seconds=30), Caps(tenant=1, workflow=1))
        started(table, now, Caps(tenant=1, workflow=1))

    def test_the_same_start_twice_is_one_start(self, table: JobTable):
        old = added(table, "a")
        started(table, old)
        assert table.admit(old, start(old, owner="r2", now=NOW, lease_seconds=30), FREE) is None

    def test_a_full_tenant_is_refused_with_its_numbers(self, table: JobTable):
        for name in "ab":
            started(table, added(table, name))
        job = added(table, "c", workflow="other")
        answer = table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), Caps(tenant=2, workflow=5))
        assert answer == Refused(reason="waiting: tenant acme 2/2 running", scope="tenant")
        assert table.get(job.job_id) == job

    def test_a_full_workflow_is_refused_with_its_numbers(self, table: JobTable):
        started(table, added(table, "a"))
        job = added(table, "b")
        answer = table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), Caps(tenant=5, workflow=1))
        assert answer == Refused(reason="waiting: workflow members 1/1 running", scope="workflow")

    def test_a_full_tenant_holds_up_nobody_else(self, table: JobTable):
        started(table, added(table, "a"))
        started(table, added(table, "b", tenant="other"), Caps(tenant=1, workflow=1))

    def test_a_workflow_of_the_same_name_belongs_to_its_tenant(self, table: JobTable):
        started(table, added(table, "a"), Caps(tenant=0, workflow=1))
        started(table, added(table, "b", tenant="other"), Caps(tenant=0, workflow=1))

    def test_a_refusal_by_one_cap_takes_nothing_from_the_other(self, table: JobTable):
        started(table, added(table, "a"))
        for name in "bcd":
            job = added(table, name)
            table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), Caps(tenant=2, workflow=1))
        started(table, added(table, "e", workflow="other"), Caps(tenant=2, workflow=1))

    def test_a_running_job_with_a_dead_lease_still_counts(self, table_rig: Rig[JobTable]):
        table = table_rig.port
        started(table, added(table, "a"))
        table_rig.later(3600)
        job = added(table, "b")
        answer = table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), Caps(tenant=1, workflow=0))
        assert isinstance(answer, Refused)

    @pytest.mark.parametrize(
        "leave",
        [
            lambda job: move(job, State.PUBLISHING, now=NOW),
            lambda job: move(job, State.QUEUED, now=NOW),
            lambda job: move(job, State.FAILED, now=NOW),
            lambda job: move(job, State.CANCELLED, now=NOW),
        ],
        ids=["committed", "rescued", "failed", "cancelled"],
    )
    def test_a_job_that_leaves_running_frees_its_slot(self, table: JobTable, leave):
        job = started(table, added(table, "a"), Caps(tenant=1, workflow=1))
        assert table.replace(job, leave(job)) is not None
        started(table, added(table, "b"), Caps(tenant=1, workflow=1))

    def test_a_running_job_that_is_removed_frees_its_slot(self, table: JobTable):
        assert table.remove(started(table, added(table, "a"), Caps(tenant=1, workflow=1)))
        started(table, added(table, "b"), Caps(tenant=1, workflow=1))

    def test_a_slot_is_freed_once_however_often_it_is_tried(self, table: JobTable):
        caps = Caps(tenant=2, workflow=2)
        job = started(table, added(table, "a"), caps)
        started(table, added(table, "b"), caps)
        for _ in range(3):
            table.replace(job, move(job, State.FAILED, now=NOW))
        started(table, added(table, "c"), caps)
        last = added(table, "d")
        assert isinstance(table.admit(last, start(last, owner="r", now=NOW, lease_seconds=30), caps), Refused)

    def test_a_heartbeat_takes_no_second_slot(self, table: JobTable):
        caps = Caps(tenant=2, workflow=2)
        job = started(table, added(table, "a"), caps)
        for n in range(3):
            job = table.replace(job, beat(job, now=NOW + n, lease_seconds=30))
        started(table, added(table, "b"), caps)

    def test_a_job_that_runs_again_counts_once(self, table: JobTable):
        caps = Caps(tenant=2, workflow=2)
        job = started(table, added(table, "a"), caps)
        failed = table.replace(job, move(job, State.FAILED, now=NOW))
        queued = table.replace(failed, again(failed, now=NOW, reason="retry"))
        started(table, queued, caps)
        started(table, added(table, "b"), caps)

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_caps_hold_when_many_runners_start_at_once(self, table_rig: Rig[JobTable], kind: str):
        if not table_rig.isolates:
            pytest.skip("this server's transactions do not isolate")
        caps = Caps(tenant=3, workflow=2)
        jobs = [added(table_rig.port, f"{w}{n}", workflow=w) for n in range(6) for w in ("alpha", "beta")]
        results = contenders.race(
            table_rig.race_in(kind),
            4,
            contenders.admit_many,
            [table_rig.another] * 4,
            [jobs[n:] + jobs[:n] for n in range(4)],
            [f"runner-{n}" for n in range(4)],
            [caps] * 4,
        )
        ran = [job_id for ids, _ in results for job_id in ids]
        assert len(ran) == len(set(ran)), "a job was started twice"
        running = table_rig.port.page(JobQuery(states=frozenset({State.RUNNING}))).jobs
        assert {job.job_id for job in running} == set(ran)
        assert len(running) == caps.tenant, "slots were free and none was given, or a cap was passed"
        assert max(sum(job.workflow == w for job in running) for w in ("alpha", "beta")) <= caps.workflow


class TestPauses:
    @pytest.mark.parametrize(
        ("tenant", "workflow", "words"),
        [(None, None, "everything"), ("acme", None, "acme"), ("acme", "members", "members")],
    )
    def test_a_paused_job_does_not_start(self, table: JobTable, tenant, workflow, words: str):
        table.pause(Pause(tenant=tenant, workflow=workflow, since=NOW, by="ops"))
        job = added(table, "a")
        answer = table.admit(job, start(job, owner="r1", now=NOW, lease_seconds=30), FREE)
        assert isinstance(answer, Refused)
        assert answer.scope == "pause"
        assert words in answer.reason

    @pytest.mark.parametrize(("tenant", "workflow"), [("other", None), ("acme", "other"), ("other", "members")])
    def test_a_pause_of_something_else_does_not_matter(self, table: JobTable, tenant, workflow):
        table.pause(Pause(tenant=tenant, workflow=workflow, since=NOW, by="ops"))
        started(table, added(table, "a"))

    @pytest.mark.parametrize(("tenant", "workflow"), [(None, None), ("acme", None), ("acme", "members")])
    def test_resume_lets_it_start_again(self, table: JobTable, tenant, workflow):
        table.pause(Pause(tenant=tenant, workflow=workflow, since=NOW, by="ops"))
        assert table.resume(tenant, workflow)
        started(table, added(table, "a"))

    def test_resume_of_what_is_not_paused_is_false(self, table: JobTable):
        table.pause(Pause(tenant="acme", workflow=None, since=NOW, by="ops"))
        assert not table.resume(None, None)
        assert not table.resume("acme", "members")
        assert table.resume("acme", None)
        assert not table.resume("acme", None)

    def test_a_pause_does_not_end_what_runs(self, table: JobTable):
        job = started(table, added(table, "a"))
        table.pause(Pause(tenant="acme", workflow=None, since=NOW, by="ops"))
        assert table.replace(job, beat(job, now=NOW, lease_seconds=30)) is not None

    def test_the_first_of_two_equal_pauses_stays(self, table: JobTable):
        first = Pause(tenant="acme", workflow=None, since=NOW, by="first")
        table.pause(first)
        table.pause(Pause(tenant="acme", workflow=None, since=NOW + 1, by="second"))
        assert table.pauses() == (first,)

    def test_pauses_come_oldest_first(self, table: JobTable):
        one = Pause(tenant="zeta", workflow="w", since=NOW, by="ops")
        two = Pause(tenant=None, workflow=None, since=NOW + 1, by="ops")
        three = Pause(tenant="acme", workflow=None, since=NOW + 2, by="ops")
        for pause in (two, three, one):
            table.pause(pause)
        assert table.pauses() == (one, two, three)


class TestPages:
    @pytest.fixture(autouse=True)
    def _fill(self, table: JobTable):
        self.jobs = [
            added(
                table,
                f"{n:02d}",
                tenant="acme" if n % 3 else "other",
                workflow="members" if n % 2 else "plans",
                state=State.FAILED if n % 5 == 0 else State.AWAITING,
                created_at=NOW + n // 2,  # pairs share a moment
            )
            for n in range(20)
        ]

    def walk(self, table: JobTable, query: JobQuery, limit: int) -> list[Job]:
        found: list[Job] = []
        cursor = None
        for _ in range(100):
            page = table.page(query, limit=limit, cursor=cursor)
            assert len(page.jobs) <= limit
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found
        raise AssertionError("the pages have no end")

    def expected(self, **conditions) -> list[Job]:
        newest_first = sorted(self.jobs, key=lambda job: (job.created_at, job.job_id), reverse=True)
        return [job for job in newest_first if all(getattr(job, k) == v for k, v in conditions.items())]

    def test_newest_first(self, table: JobTable):
        assert list(table.page(JobQuery()).jobs) == self.expected()

    @pytest.mark.parametrize("limit", [1, 3, 7, 20, 21])
    def test_pages_of_any_size_join_without_gap_or_overlap(self, table: JobTable, limit: int):
        assert self.walk(table, JobQuery(), limit) == self.expected()

    @pytest.mark.parametrize(
        "conditions",
        [
            {"tenant": "acme"},
            {"tenant": "nobody"},
            {"workflow": "plans"},
            {"tenant": "acme", "workflow": "plans"},
            {"state": State.FAILED},
            {"tenant": "acme", "state": State.FAILED},
            {"tenant": "other", "workflow": "members", "state": State.AWAITING},
        ],
    )
    def test_all_conditions_hold(self, table: JobTable, conditions):
        query = {k: v for k, v in conditions.items() if k != "state"}
        if "state" in conditions:
            query["states"] = frozenset({conditions["state"]})
        assert self.walk(table, JobQuery(**query), 4) == self.expected(**conditions)

    def test_several_states(self, table: JobTable):
        both = frozenset({State.FAILED, State.AWAITING})
        assert self.walk(table, JobQuery(states=both), 6) == self.expected()

    def test_no_state_at_all_matches_nothing(self, table: JobTable):
        assert table.page(JobQuery(states=frozenset())).jobs == ()

    def test_the_last_page_says_so(self, table: JobTable):
        assert table.page(JobQuery(), limit=20).cursor is None
        assert table.page(JobQuery(tenant="nobody"), limit=20).cursor is None

    def test_a_job_that_comes_while_paging_shifts_nothing(self, table: JobTable):
        first = table.page(JobQuery(), limit=5)
        added(table, "new", created_at=NOW + 1000)
        second = table.page(JobQuery(), limit=5, cursor=first.cursor)
        assert [*first.jobs, *second.jobs] == self.expected()[:10]

    def test_a_job_moves_between_states_in_the_lists(self, table: JobTable):
        job = self.expected(state=State.AWAITING)[0]
        moved = table.replace(job, move(job, State.QUEUED, now=NOW))
        assert table.page(JobQuery(states=frozenset({State.QUEUED}))).jobs == (moved,)
        assert job.job_id not in {j.job_id for j in table.page(JobQuery(states=frozenset({State.AWAITING}))).jobs}

    @pytest.mark.parametrize(
        ("query", "fits"),
        [
            (JobQuery(text="ACME-MEMBERS-0"), lambda job: "acme-members-0" in job.job_id),
            (JobQuery(text="no such subject"), lambda _: False),
            (JobQuery(created_from=NOW + 3, created_to=NOW + 6), lambda job: NOW + 3 <= job.created_at < NOW + 6),
            (
                JobQuery(tenant="acme", created_to=NOW + 4),
                lambda job: job.tenant == "acme" and job.created_at < NOW + 4,
            ),
            (JobQuery(runner="nobody"), lambda _: False),
        ],
    )
    @pytest.mark.parametrize("limit", [1, 3, 50])
    def test_whatever_is_asked_for_holds(self, table: JobTable, query: JobQuery, fits, limit: int):
        assert self.walk(table, query, limit) == [job for job in self.expected() if fits(job)]

    def test_why_and_when_a_job_ended_can_be_asked_for(self, table: JobTable):
        job = self.expected(state=State.FAILED, tenant="acme")[0]
        error = JobError(verdict=Verdict.RULE_ERROR, message="x")
        ended = table.replace(job, replace(job, error=error, ended_at=NOW + 50))
        for query in (
            JobQuery(verdict=Verdict.RULE_ERROR),
            JobQuery(fault=Fault.CONFIG, states=frozenset({State.FAILED})),
            JobQuery(ended_from=NOW + 50, ended_to=NOW + 51),
            JobQuery(ended_to=NOW + 51, tenant="acme", workflow=job.workflow),
        ):
            assert self.walk(table, query, 5) == [ended]
        for query in (
            JobQuery(verdict=Verdict.MEMORY),
            JobQuery(fault=Fault.OURS),
            JobQuery(ended_from=NOW + 51),
            JobQuery(ended_to=NOW + 50),
        ):
            assert self.walk(table, query, 5) == []

    def test_results_are_found_by_their_outcome(self, table: JobTable):
        counts = {
            Outcome.CLEAN: {"error": 0, "warning": 0, "info": 9},
            Outcome.WARNINGS: {"error": 0, "warning": 2, "info": 0},
            Outcome.ERRORS: {"error": 3, "warning": 2, "info": 0},
        }
        results: dict[Outcome, list[Job]] = {outcome: [] for outcome in Outcome}
        for n, (outcome, findings) in enumerate([*counts.items()] * 3):
            tenant = "acme" if n < 6 else "other"
            job = added(table, f"r{n}", tenant=tenant, created_at=NOW + 100 + n)
            for state in (State.RUNNING, State.PUBLISHING, State.SUCCEEDED):
                job = table.replace(job, move(job, state, now=NOW, summary={"findings": findings}))
            results[outcome].insert(0, job)
        added(table, "running", state=State.RUNNING, summary={"findings": counts[Outcome.ERRORS]})
        added(table, "old", state=State.SUCCEEDED, summary={})
        for outcome, jobs in results.items():
            assert self.walk(table, JobQuery(outcome=outcome), 2) == jobs
            assert self.walk(table, JobQuery(outcome=outcome, tenant="acme"), 1) == [
                j for j in jobs if j.tenant == "acme"
            ]
            assert self.walk(table, JobQuery(outcome=outcome, workflow="nothing"), 2) == []
            assert self.walk(table, JobQuery(outcome=outcome, created_to=NOW + 101), 2) == [
                j for j in jobs if j.created_at < NOW + 101
            ]
            assert self.walk(table, JobQuery(outcome=outcome, states=frozenset({State.FAILED})), 2) == []
        both = self.walk(table, JobQuery(states=frozenset({State.SUCCEEDED})), 4)
        assert {job.job_id for job in both} == {
            "acme-members-old",
            *(job.job_id for jobs in results.values() for job in jobs),
        }
        assert table.counts()[State.SUCCEEDED] == 10
        bad = results[Outcome.ERRORS][0]
        again_ = table.replace(bad, again(bad, now=NOW, reason="reset"))
        assert again_ is not None
        assert bad.job_id not in {job.job_id for job in self.walk(table, JobQuery(outcome=Outcome.ERRORS), 5)}

    def test_a_lease_names_its_runner(self, table: JobTable):
        job = self.expected(state=State.AWAITING)[0]
        held = table.replace(job, replace(job, lease=Lease(owner="up-a", expires=NOW)))
        assert self.walk(table, JobQuery(runner="up-a"), 5) == [held]

    def test_counts_add_up(self, table: JobTable):
        assert table.counts() == {State.FAILED: 4, State.AWAITING: 16}

    def test_a_count_of_states_by_age(self, table: JobTable):
        for name, state, age in (("a", State.QUEUED, 10), ("b", State.RUNNING, 20), ("c", State.QUEUED, 0)):
            added(table, name, state=state, created_at=NOW - age)
        both = frozenset({State.QUEUED, State.RUNNING})
        assert table.count(both, before=NOW + 1) == 3
        assert table.count(both, before=NOW) == 2
        assert table.count(frozenset({State.QUEUED}), before=NOW - 5) == 1
        assert table.count(frozenset({State.TIMED_OUT}), before=NOW + 1) == 0

    def test_counts_by_tenant(self, table: JobTable):
        other = {State.FAILED: 2, State.AWAITING: 5}
        assert table.tally() == Tally({"acme": {State.FAILED: 2, State.AWAITING: 11}, "other": other})
        assert table.tally("other") == Tally({"other": other})
        assert table.tally("nobody") == Tally({})


class TestLines:
    def test_oldest_first_and_only_that_line(self, table: JobTable):
        later = added(table, "b", subject="x.csv", created_at=NOW + 5)
        earlier = added(table, "a", subject="x.csv", created_at=NOW + 1)
        added(table, "c", subject="y.csv")
        added(table, "d", subject="x.csv", tenant="other")
        added(table, "e", subject="x.csv", workflow="plans")
        assert table.line(later.line) == (earlier, later)

    def test_a_line_shows_the_callers_own_writes_at_once(self, table: JobTable):
        job = added(table, "a", subject="x.csv")
        for n in range(5):
            job = table.replace(job, with_reason(job, f"write {n}"))
            assert table.line(job.line) == (job,)

    def test_a_line_of_nothing_is_empty(self, table: JobTable):
        assert table.line("acme/nothing|members") == ()

    def test_a_line_may_have_a_very_long_name(self, table: JobTable):
        job = added(table, "a", subject="é" * 500 + ".csv")
        assert table.line(job.line) == (job,)


class TestAttention:
    def test_longest_overdue_first_up_to_the_moment_asked_for(self, table: JobTable):
        for name, due in (("a", 30), ("b", 10), ("c", 20), ("d", 99)):
            added(table, name, state=State.SCHEDULED, due_at=NOW + due)
        assert [job.job_id[-1] for job in table.attention(NOW + 30)] == ["b", "c", "a"]

    def test_the_limit_keeps_the_longest_overdue(self, table: JobTable):
        for n in range(12):
            added(table, f"{n:02d}", state=State.SCHEDULED, due_at=NOW + n)
        assert [job.job_id[-2:] for job in table.attention(NOW + 50, limit=3)] == ["00", "01", "02"]

    def test_a_job_that_only_people_move_is_never_listed(self, table: JobTable):
        added(table, "a", state=State.AWAITING)
        assert table.attention(NOW + 1e9) == ()

    def test_a_write_moves_the_moment(self, table: JobTable):
        job = added(table, "a", state=State.SCHEDULED, due_at=NOW + 10)
        table.replace(job, replace(job, due_at=NOW + 50))
        assert table.attention(NOW + 20) == ()
        assert len(table.attention(NOW + 50)) == 1

    def test_moments_are_distinguished_within_a_second(self, table: JobTable):
        added(table, "a", state=State.SCHEDULED, due_at=NOW + 10.5)
        assert table.attention(NOW + 10.4) == ()
        assert len(table.attention(NOW + 10.5)) == 1

    def test_what_only_has_to_expire_stands_apart(self, table: JobTable):
        old = NOW - 1e6
        for name, state, more in (
            ("expires", State.SUCCEEDED, {"ended_at": old}),
            ("forgotten", State.EXPIRED, {"ended_at": old, "updated_at": old}),
            ("unpublished", State.FAILED, {"ended_at": old, "updated_at": old, "unpublished": True}),
            ("queued", State.QUEUED, {"enqueued_at": old}),
        ):
            table.add(a_job(name, state=state, **more))
        assert {job.job_id for job in table.attention(NOW)} == {"acme-members-unpublished", "acme-members-queued"}
        assert {job.job_id for job in table.outdated(NOW)} == {"acme-members-expires", "acme-members-forgotten"}
        assert len(table.outdated(NOW, limit=1)) == 1

    def test_a_row_says_how_long_its_outputs_are_kept(self, table: JobTable):
        """Also one that was recorded before rows said it."""
        days = 86_400.0
        for name, row in (
            ("before", {}),
            ("short", {"keep_days": 0.5, "retention_seconds": 0.5 * days}),
            ("long", {"keep_days": 60.0, "retention_seconds": 60 * days}),
            ("promised", {"retention_seconds": 9 * days}),
        ):
            table.add(a_job(name, state=State.SUCCEEDED, ended_at=NOW, **row))

        def outdated(after: float) -> set[str]:
            return {job.job_id.rpartition("-")[2] for job in table.outdated(NOW + after)}

        assert outdated(0.4 * days) == set()
        assert outdated(0.5 * days) == {"short"}
        assert outdated(2 * days) == {"short", "before"}
        assert outdated(9 * days) == {"short", "before", "promised"}
        assert outdated(60 * days) == {"short", "before", "promised", "long"}

    def test_an_ended_job_that_starts_anew_needs_attention_again(self, table: JobTable):
        job, _ = table.add(a_job("a", state=State.FAILED, ended_at=NOW))
        assert [j.job_id for j in table.outdated(NOW + 1e6)] == [job.job_id]
        table.replace(job, again(job, now=NOW, reason="retry"))
        assert table.outdated(NOW + 1e6) == ()
        assert [j.job_id for j in table.attention(NOW + 1e6)] == [job.job_id]

    def test_a_chore_that_was_deferred_needs_attention_later(self, table: JobTable):
        job, _ = table.add(a_job("a", state=State.QUEUED, enqueued_at=NOW - 1000))
        table.replace(job, defer(job, NOW, Timings()))
        assert table.attention(NOW + 50) == ()
        assert len(table.attention(NOW + 300)) == 1

    def test_a_removed_job_needs_no_attention(self, table: JobTable):
        table.remove(added(table, "a", state=State.SCHEDULED, due_at=NOW))
        assert table.attention(NOW + 1) == ()


class TestNamedLeases:
    def test_one_owner_at_a_time(self, table: JobTable):
        assert table.hold("janitor", "one", 30)
        assert not table.hold("janitor", "two", 30)

    def test_the_owner_prolongs_it(self, table_rig: Rig[JobTable]):
        table = table_rig.port
        assert table.hold("janitor", "one", 30)
        table_rig.later(20)
        assert table.hold("janitor", "one", 30)
        table_rig.later(20)
        assert not table.hold("janitor", "two", 30)

    def test_it_is_free_when_it_ran_out(self, table_rig: Rig[JobTable]):
        table = table_rig.port
        table.hold("janitor", "one", 30)
        table_rig.later(30)
        assert table.hold("janitor", "two", 30)
        assert not table.hold("janitor", "one", 30)

    def test_it_is_free_when_given_back(self, table: JobTable):
        table.hold("janitor", "one", 30)
        table.let_go("janitor", "one")
        assert table.hold("janitor", "two", 30)

    def test_giving_back_what_another_holds_has_no_effect(self, table: JobTable):
        table.hold("janitor", "one", 30)
        table.let_go("janitor", "two")
        table.let_go("nothing", "two")
        assert not table.hold("janitor", "two", 30)

    def test_two_names_are_two_leases(self, table: JobTable):
        assert table.hold("janitor", "one", 30)
        assert table.hold("sweep", "two", 30)

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_of_many_one_gets_it(self, table_rig: Rig[JobTable], kind: str):
        got = contenders.race(
            table_rig.race_in(kind),
            4,
            contenders.hold_one,
            [table_rig.another] * 8,
            ["janitor"] * 8,
            [f"owner {n}" for n in range(8)],
        )
        assert got.count(True) == 1


def test_wait_returns_when_its_time_is_over(table: JobTable):
    table.wait(0)
    table.wait(0.01)


def test_wait_is_not_outlived_by_a_change_in_this_process(table: JobTable):
    table.wait(0)
    changed = threading.Thread(target=lambda: added(table, "a"))
    changed.start()
    table.wait(20)
    changed.join()
    assert table.get("acme-members-a") is not None


def published(table: JobTable, name: str, at: float = NOW, **more) -> tuple[Job, Job]:
    """A job before and after the write that ends it."""
    job = added(table, name, state=State.PUBLISHING, **more)
    ended = table.replace(job, move(job, State.SUCCEEDED, now=at, ended_at=at))
    assert ended is not None
    return job, ended


class TestEnds:
    """Counters that pages draw rates from: each end once, by time and by sender."""

    SUMMARY: ClassVar = {"rows_out": 8, "rows_with_errors": 2, "left_out": {"rejected": 2}, "drift": 3}

    def test_ends_are_counted_for_all_and_by_sender(self, table: JobTable):
        published(table, "a", summary=self.SUMMARY)
        _, last = published(table, "b", NOW + 5, summary=self.SUMMARY)
        published(table, "c", tenant="north", workflow="w#1")
        (of_all,) = table.ends(NOW - STEP)
        assert (of_all.at, of_all["files"], of_all["rows"], of_all["wrong"]) == (NOW - NOW % STEP, 3, 20, 4)
        found = {(one.tenant, one.workflow): one for one in table.sender_ends(NOW - DAY)}
        assert set(found) == {("acme", "members"), ("north", "w#1")}
        acme = found["acme", "members"]
        assert (acme.at, acme["files"], acme["drifted"], acme.error_rate) == (NOW - NOW % DAY, 2, 2, 0.2)
        assert (acme.last_job, acme.last_at) == (last.job_id, NOW + 5)

    def test_an_end_that_lost_the_race_counts_nothing(self, table: JobTable):
        job, ended = published(table, "a")
        assert table.replace(job, move(job, State.SUCCEEDED, now=NOW, ended_at=NOW)) is None
        assert table.replace(ended, with_reason(ended, "read again")) is not None
        assert [one["files"] for one in table.ends(0.0)] == [1]

    def test_failures_count_and_other_ends_do_not(self, table: JobTable):
        error = JobError(verdict=Verdict.RULE_ERROR, message="it broke")
        bad = started(table, added(table, "bad"))
        table.replace(bad, move(bad, State.FAILED, now=NOW, error=error, ended_at=NOW, lease=None))
        gone = added(table, "gone")
        table.replace(gone, move(gone, State.CANCELLED, now=NOW, ended_at=NOW))
        again_ = added(table, "again", replay="r1", state=State.PUBLISHING)
        table.replace(again_, move(again_, State.SUCCEEDED, now=NOW, ended_at=NOW))
        assert [(one["files"], one["failed"]) for one in table.ends(0.0)] == [(1, 1)]

    def test_stretches_are_apart_in_order_and_since_a_time(self, table: JobTable):
        for n in (2, 0, 1):
            published(table, f"j{n}", NOW + n * DAY)
        assert [one.at for one in table.ends(NOW + STEP)] == [at - at % STEP for at in (NOW + DAY, NOW + 2 * DAY)]

    def test_one_tenant_sees_its_own(self, table_rig: Rig[JobTable]):
        table = table_rig.port
        table_rig.clock.at = NOW + 60
        for tenant in ("acme", "acme2", "acm"):
            published(table, "a", tenant=tenant)
        assert [one.tenant for one in table.sender_ends(0.0, "acme")] == ["acme"]
        assert len(table.sender_ends(0.0)) == 3

    def test_old_counters_go(self, table_rig: Rig[JobTable]):
        table, now = table_rig.port, NOW
        for n, age in enumerate((0.0, COUNTER_SECONDS + DAY, SENDER_SECONDS + 2 * DAY)):
            published(table, f"j{n}", now - age)
        table_rig.clock.at = now
        table.recount()
        assert len(table.ends(0.0)) == 1
        assert len(table.sender_ends(0.0)) == 2


class TestResolutions:
    ONE = Resolution(what="failures/acme/ü#1", until=NOW, tenant="acme", at=NOW + 9, by="ann", note="told them\n\u2028")

    def test_a_resolution_comes_back_as_it_was(self, table: JobTable):
        assert table.resolutions() == ()
        assert table.resolve(self.ONE)
        assert table.resolutions() == (self.ONE,)

    def test_the_first_to_resolve_a_matter_counts(self, table: JobTable):
        table.resolve(self.ONE)
        assert not table.resolve(replace(self.ONE, by="ben", at=NOW + 20))
        assert not table.resolve(replace(self.ONE, by="ben", at=NOW + 20, until=NOW - 1))
        assert table.resolutions() == (self.ONE,)

    def test_what_happened_again_is_resolved_again(self, table: JobTable):
        later = replace(self.ONE, until=NOW + 30, at=NOW + 40, by="ben")
        other = replace(self.ONE, what="dead", tenant="")
        for one in (self.ONE, other, later):
            assert table.resolve(one)
        assert table.resolutions() == (later, other)

    def test_old_ones_go(self, table_rig: Rig[JobTable]):
        table_rig.port.resolve(self.ONE)
        table_rig.clock.at = NOW + SENDER_SECONDS + 60
        table_rig.port.recount()
        assert table_rig.port.resolutions() == ()
