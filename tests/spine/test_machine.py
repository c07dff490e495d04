"""A rule-based state machine over real adapters, embedded and cloud: anything may happen in any order, at any step.

Events are duplicated, reordered and lost; intake, runners and janitor die before or after any external step; runners
come back late; jobs are cancelled, retried, expired; time is moved by hand, the servers' time too. What must hold is
checked after every step, and after the storm everything must come to its end.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections import defaultdict
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from core.jobs import ENDED, NO_WORKFLOW, RETRIABLE, TRANSITIONS, State
from core.keys import job_folder, latest_key
from core.ports import Pause
from core.verdicts import Verdict
from tests.support.effort import examples
from tests.support.places import PLACES
from tests.support.stamps import stamped
from tests.support.world import MANIFEST, Crash, World, planned

TENANTS = st.sampled_from(["acme", "globex"])
NAMES = st.sampled_from(["a.csv", "b.csv", "c.csv"])
BODIES_ = [b"id\n1\n", b"id\n2\n", b"id\n3\n"]
BODIES = st.sampled_from(BODIES_)
# Which external step to die at, and on which side of it; mostly none.
CRASHES = st.one_of(st.none(), st.tuples(st.integers(0, 24), st.booleans()))
VERDICTS = st.sampled_from(
    [Verdict.OK] * 4
    + [Verdict.NEEDS_REVIEW] * 2
    + [Verdict.RULE_ERROR, Verdict.NOTHING_MAPPED, Verdict.BOX_FAILED, Verdict.WALL_CLOCK, Verdict.MEMORY]
)
CAP = 1
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # thousands of syncs, none of them the point here
ACTS = st.sampled_from(
    ["runner", "janitor", "late janitor", "all", "expiry", "intake", "new version", "cancel", "retry", "answer"]
)
# A job may need a person, who has an hour; then some manifests fail it and some take the likeliest answers.
REVIEWED = MANIFEST | {"mapping": {"review": "unsure"}, "review": {"expires": "1h"}}
ACCEPTING = {"review": {"expires": "1h", "on_expiry": "accept"}}
AUXILIARY = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}


def die():
    raise Crash


class Spine(RuleBasedStateMachine):
    def __init__(self, place):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.world = World(self.folder, place, tenant_concurrency=CAP, workflow_concurrency=CAP, max_attempts=3)
        self.events: list[str] = []
        self.latest: dict[str, str] = {}  # digest of what each sender put last under each key, and got a yes for
        self.published: dict[str, list[bytes]] = defaultdict(list)
        self.fences: dict[str, int] = defaultdict(int)
        self.outputs: dict[str, str] = {}  # version of every output when it was last looked at
        self.watch_publications()

    def watch_publications(self):
        put = self.world.store.put

        def watched(key, body, **conditions):
            info = put(key, body, **conditions)
            if key.startswith("outputs/") and key.endswith("/result.json"):
                told = json.loads(body)
                if told["status"] == "SUCCEEDED":
                    self.published[told["job_id"]].append(body)
                elif told["status"] in ("EXPIRED", "PUBLISHING"):  # gone, or withdrawn for the next one
                    self.published[told["job_id"]].clear()
            return info

        self.world.store.put = watched

    def dying(self, crash, act):
        """Run an act that may die at a step; a death loses the process's memory, never what it wrote."""
        self.world.crasher.arm(*(crash[0],) if crash else (None,), after=bool(crash and crash[1]))
        try:
            act()
        except Crash:
            self.world.intake = self.world.new_intake()
        finally:
            self.world.crasher.arm(None)

    @initialize(coarse=st.booleans())
    def manifests_are_there(self, coarse):
        if coarse:  # a store whose times are so coarse that versions often have equal ones
            stamped(self.world, lambda info: info.modified // 10_000 * 10_000)
        for tenant in ("acme", "globex"):
            self.world.put(f"inbox/{tenant}/d/manifest.json", REVIEWED)

    # What senders do

    @rule(tenant=TENANTS, name=NAMES, body=BODIES, crash=CRASHES)
    def drop(self, tenant, name, body, crash):
        self.upload(tenant, name, body)
        self.dying(crash, lambda: self.world.intake.changed([self.events[-1]]))

    def upload(self, tenant, name, body):
        key = self.world.put(f"inbox/{tenant}/d/{name}", body)
        self.latest[key] = self.world.store.head(key).digest
        self.events.append(key)

    @rule(
        tenant=TENANTS,
        name=NAMES,
        body=BODIES,
        what=st.sampled_from(["file", "manifest", "sweep", "needs", "accept", "look-up"]),
    )
    def upload_unnoticed(self, tenant, name, body, what):
        """An upload whose event is still on its way, or never comes."""
        changed = {"manifest": {}, "sweep": {"sweep": {"rate": [1, 2]}}, "needs": {"inputs": AUXILIARY}}
        changed["accept"] = ACCEPTING
        if what == "file":
            self.upload(tenant, name, body)
        elif what == "look-up":
            self.events.append(self.world.put(f"inbox/{tenant}/d/lookups/plans.csv", body))
        else:
            self.events.append(self.world.put(f"inbox/{tenant}/d/manifest.json", REVIEWED | changed[what]))

    @rule(tenant=TENANTS, name=NAMES, by=st.sampled_from(["ann", "bob"]), crash=CRASHES, told=st.booleans())
    def answer(self, tenant, name, by, crash, told):
        """Somebody decides, whether anything was asked or not; the event may be late, or never come."""
        self.decide(tenant, name, by)
        if told:
            self.dying(crash, lambda: self.world.intake.changed([self.events[-1]]))

    def decide(self, tenant, name, by):
        said = {"decision": 1, "by": by, "answers": [{"header": "ID", "field": "id"}]}
        self.events.append(self.world.put(f"inbox/{tenant}/d/{name}.decision.json", said))

    @rule(tenant=TENANTS, name=NAMES, bad=st.booleans(), told=st.booleans())
    def spoil_answer(self, tenant, name, bad, told):
        key = f"inbox/{tenant}/d/{name}.decision.json"
        self.world.put(key, b"{") if bad else self.world.store.delete(key)
        self.events.append(key)
        if told:
            self.world.intake.changed([key])

    # What the event service does: any event, any number of times, in any order, or never

    @rule(n=st.integers(0, 50), crash=CRASHES, sweep=st.booleans())
    def deliver(self, n, crash, sweep):
        if sweep:
            self.dying(crash, self.world.sweep)
        elif self.events:
            key = self.events[n % len(self.events)]
            self.dying(crash, lambda: self.world.intake.changed([key]))

    @rule(tenant=TENANTS, name=NAMES, bodies=st.permutations(BODIES_), late_first=st.booleans())
    def overtake(self, tenant, name, bodies, late_first):
        """Two handlers see a version each and then record in either order."""
        plans = []
        for body in bodies[:2]:
            self.upload(tenant, name, body)
            plans.append(planned(self.world.new_intake(), self.events[-1]))
        for record in reversed(plans) if late_first else plans:
            record()

    # What runners do

    @rule(verdict=VERDICTS, crash=CRASHES, more=st.integers(0, 3))
    def run_some(self, verdict, crash, more):
        runner = self.world.runner()
        for _ in range(more):
            self.world.handle_one(runner)
        self.world.sandbox.verdict = verdict
        self.dying(crash, lambda: self.world.handle_one(runner))
        runner.close()

    @rule(seconds=st.sampled_from([1.0, 31.0, 40.0]), crash=CRASHES, other_dies=st.booleans())
    def run_late(self, seconds, crash, other_dies):
        """A runner stands still in the middle of a job while the world goes on; then it wants to commit."""
        late, other = self.world.runner(), self.world.runner()
        taken = []

        def meanwhile():
            mine = next(j for j in self.world.jobs() if j.lease and j.lease.owner == late.presence.owner)
            self.world.clock.move(seconds)
            other.janitor.chores()
            if other_dies:
                self.world.sandbox.during = die
            with suppress(Crash):
                self.world.handle_one(other)
            now = self.world.table.get(mine.job_id)
            taken.extend([now] if now.fence > mine.fence else [])

        self.world.sandbox.during = meanwhile
        self.dying(crash, lambda: self.world.handle_one(late))
        self.world.sandbox.during = lambda: None
        for job in taken:
            assert self.world.table.get(job.job_id) == job, f"{job.job_id}: a stale fence changed the row"
        late.close()
        other.close()

    @rule(
        step=st.integers(0, 30), actor=st.sampled_from(["runner", "janitor", "intake"]), other=ACTS, after=st.booleans()
    )
    def interleave(self, step, actor, other, after):
        """Somebody else acts between any two external steps of a runner, the janitor or an intake."""
        first, second = self.world.runner(), self.world.runner()
        acts = {
            "runner": self.world.handle_one,
            "janitor": lambda r: r.janitor.chores(),
            "late janitor": lambda r: (self.world.clock.move(31), r.janitor.chores()),
            "all": lambda r: (self.world.clock.move(31), r.janitor.chores(), self.world.handle_one(r)),
            "expiry": lambda r: (self.world.clock.move(49 * 3600), r.janitor.chores()),
            "intake": lambda _: self.world.new_intake().sweep(),
            "new version": lambda _: self.upload("acme", "a.csv", os.urandom(4)),
            "cancel": lambda _: self.cancel(),
            "retry": lambda _: self.retry(),
            "answer": lambda _: (
                self.decide("acme", "a.csv", "ann"),
                self.world.new_intake().changed(self.events[-1:]),
            ),
        }
        self.world.crasher.arm(step, after=after, meanwhile=lambda: acts[other](second))
        acts[actor](first)
        self.world.crasher.arm(None)
        first.close()
        second.close()

    @rule(crash=CRASHES)
    def run_cancelled(self, crash):
        runner = self.world.runner()

        def meanwhile():
            for job in self.world.jobs():
                if job.state is State.RUNNING:
                    self.world.control.cancel(job.job_id)
            runner.beats.round()

        self.world.sandbox.during = meanwhile
        self.dying(crash, lambda: self.world.handle_one(runner))
        self.world.sandbox.during = lambda: None
        runner.close()

    # What operators and time do

    @rule(act=st.sampled_from(["retry"] * 3 + ["resume"] * 2 + ["cancel", "pause", "expiry"]), tenant=TENANTS)
    def operate(self, act, tenant):
        match act:
            case "cancel":
                self.cancel()
            case "retry":
                self.retry()
            case "pause":
                self.world.table.pause(Pause(tenant=tenant, workflow=None, since=0.0, by="test"))
            case "resume":
                self.world.table.resume(tenant, None)
            case "expiry":
                self.world.clock.move(48 * 3600 + 60)

    def cancel(self):
        for job in self.world.jobs()[:1]:
            if job.state in (State.QUEUED, State.AWAITING, State.REVIEW):
                self.world.control.cancel(job.job_id)

    def retry(self):
        for job in self.world.jobs():
            if job.state in RETRIABLE - {State.EXPIRED}:
                self.world.control.retry(job.job_id)

    @rule(crash=CRASHES, seconds=st.sampled_from([0.0, 3.0, 31.0, 1000.0]))
    def tidy(self, crash, seconds):
        self.world.clock.move(seconds)
        runner = self.world.runner()
        self.dying(crash, lambda: (runner.janitor.chores(), runner.janitor.collect()))
        runner.close()

    # What must hold, always

    @invariant()
    def promises_hold(self):
        jobs = self.world.jobs()
        self.caps_are_never_exceeded(jobs)
        self.fences_only_grow(jobs)
        self.every_step_is_in_the_table_of_transitions(jobs)
        self.published_files_match_their_hashes(jobs)
        self.a_job_is_published_once()

    def caps_are_never_exceeded(self, jobs):
        running = defaultdict(int)
        for job in jobs:
            running[job.tenant] += job.state is State.RUNNING
        assert all(n <= CAP for n in running.values()), f"over the cap: {dict(running)}"

    def fences_only_grow(self, jobs):
        for job in jobs:
            assert job.fence >= self.fences[job.job_id], f"{job.job_id}: fence went back"
            self.fences[job.job_id] = job.fence

    def every_step_is_in_the_table_of_transitions(self, jobs):
        for job in jobs:
            steps = [State(name) for name, _ in job.history]
            for a, b in pairwise(steps):
                assert b in TRANSITIONS[a], f"{job.job_id} went from {a} to {b}"

    def published_files_match_their_hashes(self, jobs):
        outputs = {o.key: o.version for o in self.world.store.objects("outputs/")}
        changed = {key for key, _ in outputs.items() ^ self.outputs.items()}
        self.outputs = outputs
        for job in jobs:
            folder = job_folder(job)
            told = self.world.result(job) if any(key.startswith(folder) for key in changed) else None
            if told is None or told["status"] != "SUCCEEDED":
                continue
            for file in told["files"]:
                body = self.world.store.read(folder + file["name"], limit=1 << 20)
                assert hashlib.sha256(body).hexdigest() == file["sha256"], f"{job.job_id}: {file['name']} differs"

    def a_job_is_published_once(self):
        for job_id, bodies in self.published.items():
            assert len(bodies) <= 1, f"{job_id} was published {len(bodies)} times"

    def teardown(self):
        """After the storm: everything acknowledged comes to exactly one end, and nothing is left lying about."""
        try:
            self.come_to_rest()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)

    def come_to_rest(self):
        world = self.world
        for tenant in ("acme", "globex"):
            world.table.resume(tenant, None)
            world.put(f"inbox/{tenant}/d/lookups/plans.csv", b"code\n")  # a new manifest would plan everything anew
        runner = world.runner()
        for _ in range(3):
            world.sweep()
            world.work_off(runner)
        world.clock.move(3601)  # whoever has not decided by now does not
        world.work_off(runner)
        runner.janitor.collect()
        jobs = world.jobs()
        waiting = [j for j in jobs if j.state not in ENDED and self.has_input(j) and j.workflow != NO_WORKFLOW]
        assert not waiting, f"waits forever: {[(j.job_id, str(j.state), j.reason) for j in waiting]}"
        for job in jobs:
            if job.state in ENDED:
                told = world.result(job)
                assert told is not None, f"{job.job_id} is {job.state} and has no result.json"
                assert told["status"] == job.state, f"{job.job_id} is {job.state}, result.json says {told['status']}"
        for key, digest in self.latest.items():
            ends = [j for j in jobs if any(i.ref.key == key and i.ref.digest == digest for i in j.inputs)]
            assert any(j.state in ENDED - {State.SKIPPED} for j in ends), f"drop {key} was lost"
        self.latest_follows_the_inbox(jobs)
        assert not list(world.store.keys("work/")), "staged files were left behind"

    def latest_follows_the_inbox(self, jobs):
        """latest.json names a success of the version that stands, where that has one."""
        manifests = {t: self.world.store.head(f"inbox/{t}/d/manifest.json").digest for t in ("acme", "globex")}
        for key, digest in self.latest.items():
            mine = [j for j in jobs if any(i.ref.key == key and i.role == "primary" for i in j.inputs)]
            newest = {
                j.job_id
                for j in mine
                if j.state is State.SUCCEEDED
                and j.manifest.digest == manifests[j.tenant]
                and any(i.ref.key == key and i.ref.digest == digest for i in j.inputs)
            }
            at = latest_key(mine[0])
            if newest:
                named = json.loads(self.world.store.read(at, limit=1 << 20))["job_id"]
                assert named in newest, f"{at} names {named}, but {newest} stand in the inbox"

    @staticmethod
    def has_input(job):
        return any(i.role == "primary" for i in job.inputs)


def storm(place, examples, kind=Spine):
    run_state_machine_as_test(
        partial(kind, PLACES[place]),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_nothing_is_lost_published_twice_or_stuck_whatever_happens():
    storm("embedded", int(os.environ.get("ADE_TEST_MACHINE_EXAMPLES", examples(40))))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.every_cloud
@pytest.mark.parametrize(
    "place", ["postgres", "versioned cloud", "cloud on seaweedfs", pytest.param("cloud", marks=pytest.mark.long)]
)
def test_nothing_is_lost_published_twice_or_stuck_in_the_cloud(place):
    storm(place, int(os.environ.get("ADE_TEST_CLOUD_EXAMPLES", "2")))
