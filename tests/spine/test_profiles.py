"""The profile of a sender's last drop: kept at publication, in order, however often and late; and corrected results."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.jobs import CorrectionOf, OutputFile, State
from core.keys import corrected_latest_key, latest_key, profile_key, staging_folder
from infra.queueing import Lanes
from runner.engine.contract import OutputName
from runner.profiles import with_profile
from runner.publish import Publisher
from tests.contract.jobs import a_job
from tests.support.world import World

BODY = b'{"profile":1,"rows":%d,"columns":[]}'
HEAD = {"after": None, "layout": "one"}


def publisher(world: World) -> Publisher:
    return Publisher(world.store, world.table, world.clock, Lanes(1))


def committed(world: World, name: str, *, stamp: float, rows: int, head=None, **more):
    """A job about to be published, its files staged."""
    job, _ = world.table.add(replace(a_job(name), state=State.PUBLISHING, stamp=stamp, attempts_total=1,
                                     files=(OutputFile(name="logs.txt", size=1, sha256="0" * 64),), **more))  # fmt: skip
    world.store.put(staging_folder(job.job_id, job.fence) + "logs.txt", b"x")
    body = json.dumps(HEAD | (head or {})).encode() + b"\n" + BODY % rows
    world.store.put(staging_folder(job.job_id, job.fence) + OutputName.PROFILE, body)
    return job


def all_kept(world: World, job) -> list[tuple[str, int]]:
    """Whose profiles are kept, and their rows; the newest first."""
    lines = [json.loads(line) for line in world.store.read(profile_key(job), limit=100_000).splitlines()]
    return [(head["job_id"], body["rows"]) for head, body in zip(lines[::2], lines[1::2], strict=True)]


def kept(world: World, job) -> tuple[str, int]:
    (only,) = all_kept(world, job)
    return only


def test_a_published_job_leaves_its_profile_and_nothing_staged(world):
    job = committed(world, "a", stamp=1.0, rows=7)
    publisher(world).finish(job)
    assert kept(world, job) == (job.job_id, 7)
    assert list(world.store.keys("work/")) == []


def test_an_older_job_that_ends_late_does_not_replace_a_newer_profile(world):
    old, new = committed(world, "old", stamp=1.0, rows=1), committed(world, "new", stamp=2.0, rows=2)
    assert profile_key(old) == profile_key(new)
    publisher(world).finish(new)
    publisher(world).finish(old)
    assert kept(world, new) == (new.job_id, 2)


def test_finishing_twice_changes_nothing(world):
    job = committed(world, "a", stamp=1.0, rows=7)
    publisher(world).finish(job)
    before = world.store.head(profile_key(job))
    publisher(world).finish(job)
    assert world.store.head(profile_key(job)) == before


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "a", "b", "x"])), min_size=1, max_size=20))
def test_a_finisher_that_repeats_a_dead_one_writes_the_same(drops):
    file = None
    for n, (layout, after) in enumerate(drops):
        job = replace(a_job(f"j{n}"), stamp=float(n))
        staged = json.dumps({"after": after, "layout": layout}).encode() + b"\n" + BODY % n
        file = with_profile(file, job, staged)
        assert with_profile(file, job, staged) == file


def test_a_profile_that_cannot_be_read_is_replaced(world):
    job = committed(world, "a", stamp=1.0, rows=7)
    world.store.put(profile_key(job), b"[" * 5000)
    publisher(world).finish(job)
    assert kept(world, job) == (job.job_id, 7)


class TestKinds:
    def test_files_of_two_kinds_keep_a_profile_each_and_the_newest_of_its_kind(self, world):
        one = committed(world, "a", stamp=1.0, rows=1, head={"layout": "members"})
        two = committed(world, "b", stamp=2.0, rows=2, head={"layout": "payments"})
        more = committed(world, "c", stamp=3.0, rows=3, head={"layout": "members"})
        for job in (one, two, more):
            publisher(world).finish(job)
        assert all_kept(world, one) == [(more.job_id, 3), (two.job_id, 2)]

    def test_a_changed_layout_replaces_what_it_was_compared_with(self, world):
        one = committed(world, "a", stamp=1.0, rows=1)
        publisher(world).finish(one)
        two = committed(world, "b", stamp=2.0, rows=2, head={"after": one.job_id, "layout": "two"})
        publisher(world).finish(two)
        assert kept(world, one) == (two.job_id, 2)

    def test_a_late_drop_of_a_kind_that_was_replaced_since_does_not_come_back(self, world):
        one = committed(world, "a", stamp=1.0, rows=1)
        late = committed(world, "b", stamp=2.0, rows=2, head={"after": one.job_id, "layout": "late"})
        new = committed(world, "c", stamp=3.0, rows=3, head={"after": one.job_id, "layout": "new"})
        for job in (one, new, late):
            publisher(world).finish(job)
        assert kept(world, one) == (new.job_id, 3)

    def test_only_the_newest_kinds_are_kept(self, world):
        jobs = [committed(world, f"n{n}", stamp=float(n), rows=n, head={"layout": str(n)}) for n in range(12)]
        for job in jobs:
            publisher(world).finish(job)
        assert [rows for _, rows in all_kept(world, jobs[0])] == [11, 10, 9, 8, 7, 6, 5, 4]

    def test_what_is_kept_stays_small_enough_to_be_read(self, world):
        jobs = [committed(world, f"n{n}", stamp=float(n), rows=n, head={"layout": str(n)}) for n in range(4)]
        wide = b"{}\n" + b" " * 400_000
        for n, job in enumerate(jobs):
            world.store.put(
                staging_folder(job.job_id, job.fence) + OutputName.PROFILE, b'{"layout": "%d"}\n' % n + wide[3:]
            )
            publisher(world).finish(job)
        assert world.store.head(profile_key(jobs[0])).size < 1 << 20


class TestMendedResults:
    def first(self, world, stamp: float = 1.0):
        job = committed(world, "first", stamp=stamp, rows=1, subject="2026/members.xlsx")
        publisher(world).finish(job)
        return world.table.get(job.job_id)

    def mends(self, world, first, *, stamp: float = 5.0, name: str = "mended"):
        facts = CorrectionOf(
            files=(), job_id=first.job_id, subject=first.subject, stamp=first.stamp, created_at=first.created_at
        )
        return committed(world, name, stamp=stamp, rows=1, subject=f"2026/{name}.xlsx", mends=facts)

    def named(self, world, key: str) -> str | None:
        return json.loads(world.store.read(key, limit=10_000))["job_id"] if world.store.head(key) else None

    def test_the_first_drops_latest_names_the_mended_result(self, world):
        first = self.first(world)
        job = self.mends(world, first)
        publisher(world).finish(job)
        assert self.named(world, latest_key(first)) == self.named(world, latest_key(job)) == job.job_id

    def test_a_newer_version_of_the_first_drop_wins_even_if_it_ends_earlier_or_later(self, world):
        first = self.first(world)
        early = committed(world, "newer", stamp=3.0, rows=1, subject=first.subject)
        publisher(world).finish(early)
        publisher(world).finish(self.mends(world, first))
        assert self.named(world, latest_key(first)) == early.job_id
        late = committed(world, "newest", stamp=4.0, rows=1, subject=first.subject)
        publisher(world).finish(self.mends(world, first, name="again", stamp=9.0))
        publisher(world).finish(late)
        assert self.named(world, latest_key(first)) == late.job_id

    def test_of_two_mended_results_the_later_upload_is_named(self, world):
        first = self.first(world)
        late, early = self.mends(world, first, name="b", stamp=9.0), self.mends(world, first, name="c", stamp=7.0)
        publisher(world).finish(late)
        publisher(world).finish(early)
        assert self.named(world, latest_key(first)) == late.job_id

    def test_a_mended_result_that_is_taken_back_lets_the_first_one_be_named_again(self, world):
        first = self.first(world)
        job = self.mends(world, first)
        done = publisher(world).finish(job)
        publisher(world).latest.retract(done)
        assert corrected_latest_key(job) == latest_key(first)
        assert self.named(world, latest_key(first)) == first.job_id
