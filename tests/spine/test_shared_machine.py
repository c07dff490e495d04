"""The state machine over a shared workflow: its versions, overlays, corrections, resets and replays, in any order."""

import json
from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from console.again import run_again
from console.library import LIVE, Library
from console.replays import Replayer
from core.errors import AdeError
from core.jobs import ENDED, RETRIABLE, State
from core.keys import latest_key
from tests.spine.test_machine import BODIES, CRASHES, NAMES, REVIEWED, TENANTS, Spine, storm
from tests.support.effort import examples

SHARED = "configs/_shared/members/manifest.json"
WORKFLOW = REVIEWED | {"tenants": ["*"], "subscribe": ["d/*.csv"]}


class SharedSpine(Spine):
    @initialize(coarse=st.just(False))
    def manifests_are_there(self, coarse):
        self.world.put(SHARED, WORKFLOW)

    @rule(tenant=TENANTS, name=NAMES, body=BODIES, what=st.sampled_from(["file", "correct", "overlay", "none"]))
    def upload_unnoticed(self, tenant, name, body, what):
        overlay = f"configs/{tenant}/members.overlay.json"
        if what == "file":
            self.upload(tenant, name, body)
        elif what == "correct":
            self.events.append(self.world.put(SHARED, WORKFLOW | {"fields": [{"name": f"id{len(body)}{name[0]}"}]}))
        elif what == "overlay":
            self.events.append(self.world.put(overlay, {"overlay": 1, "reading": {"delimiter": body.decode()[3]}}))
        else:
            self.world.store.delete(overlay)
            self.events.append(overlay)

    @rule(act=st.sampled_from(["retry", "reset"]), n=st.integers(0, 5), crash=CRASHES)
    def run_again(self, act, n, crash):
        """Somebody runs a job again, with the workflow as it is by then."""
        states = RETRIABLE - {State.EXPIRED} | ({State.SUCCEEDED} if act == "reset" else set())
        jobs = sorted((j for j in self.world.jobs() if j.state in states and not j.unpublished), key=lambda j: j.job_id)
        if jobs:
            job_id = jobs[n % len(jobs)].job_id
            with suppress(AdeError):
                self.dying(crash, lambda: run_again(self.world.intake, self.world.control, act, job_id))

    @rule(tenant=TENANTS, crash=CRASHES)
    def replay(self, tenant, crash):
        """Somebody replays history with the live version for a moment; it may be killed, and others go on with it."""

        def act():
            library = Library(self.world.fragile.store)
            standing = library.find("members")
            version = library.load(standing, LIVE)
            made = Replayer(self.world.fragile, standing, version, tenant=tenant, since=None)
            made.feed(made.pairs(), at_once=2, stopped=lambda: True, seen=lambda _: None)

        self.dying(crash, act)

    def come_to_rest(self):
        super().come_to_rest()
        for job in self.world.jobs():
            assert not job.replay or job.state in ENDED, f"{job.job_id} of a replay is {job.state}"
            assert job.earlier is None, f"{job.job_id} is at rest and has an earlier result"
        strays = [k for k in self.world.store.keys("outputs/") if "~" in k]
        assert not strays, f"a replay published to {strays}"

    def latest_follows_the_inbox(self, jobs):
        """latest.json names a success of the file that is there, where that has one, and never one of a replay."""
        for key, digest in self.latest.items():
            mine = [j for j in jobs if not j.replay and any(i.ref.key == key for i in j.inputs)]
            newest = {
                j.job_id for j in mine if j.state is State.SUCCEEDED and any(i.ref.digest == digest for i in j.inputs)
            }
            if newest:
                named = json.loads(self.world.store.read(latest_key(mine[0]), limit=1 << 20))["job_id"]
                assert named in newest, f"{latest_key(mine[0])} names {named}, but {newest} are of what is there"


def test_versions_overlays_resets_and_replays_lose_nothing_and_publish_nothing_twice():
    storm("embedded", examples(15), SharedSpine)
