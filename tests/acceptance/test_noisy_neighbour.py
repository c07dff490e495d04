"""While one tenant does its worst, another tenant's drops go on as if it were alone: one `ade up`, real boxes, no setting.

What holds without a clock is counted: every drop of the other tenant succeeds at its first attempt, what the attacker
sent ends by no fault of ours, nothing is dead-lettered and the process lives; drops end while the attack lasts, if it
lasts. With ADE_TEST_FULL=1 the clock is read too, as a ratio with the quiet time of the same process: on a machine that
runs other tests it would say more of those.
"""

import statistics
import time
from dataclasses import dataclass

import pytest

from core.jobs import Job, State
from core.ports import JobQuery
from core.settings import Settings
from core.verdicts import Fault
from infra.wiring import Stack, open_stack
from tests.acceptance.ade import Ade, Up
from tests.support.attacks import ANY, ATTACKS, CSV, MANIFEST, REJECTED, WAITS, Attack, put
from tests.support.effort import FULL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SLOWDOWN = 3
LEAST_QUIET_SECONDS = 1.0  # below this the ratio says more of the machine than of us
LEAST_DROPS = 5
PACE_SECONDS = 0.5  # between the drops that follow those, while the attack goes on
PATIENCE_SECONDS = 300


@dataclass
class Street:
    """Two tenants of one `ade up`."""

    ade: Ade
    up: Up
    stack: Stack
    quiet: float = 0.0
    drops: int = 0

    def drop(self) -> float:
        """A drop of the tenant that means well: seconds from its last byte to its end."""
        self.drops += 1
        folder = self.ade.bucket / "inbox" / "acme" / f"d{self.drops}"
        put(folder, "a.csv", f"{CSV}{self.drops},x\n")
        put(folder, "manifest.json", MANIFEST)
        began = time.monotonic()
        end = self.up.wait_for(lambda e: e["event"] == "job_ended" and f"/acme/{folder.name}/" in e["outputs"])
        assert end["state"] == "SUCCEEDED", end
        return time.monotonic() - began

    def jobs(self, tenant: str) -> list[Job]:
        found: list[Job] = []
        cursor = None
        while True:
            page = self.stack.table.page(JobQuery(tenant=tenant), cursor=cursor)
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found

    def over(self, attack: Attack, folders: list[str]) -> bool:
        """Whether all that the attacker sent has come to where it can go no further."""
        if attack.ends == REJECTED:
            return all((self.ade.bucket / "outputs" / "mallory" / f / "rejected.json").exists() for f in folders)
        if attack.ends == WAITS:
            waiting = [
                j.subject for j in self.jobs("mallory") if j.state is State.AWAITING and attack.reason in j.reason
            ]
            return all(any(subject.startswith(f) for subject in waiting) for f in folders)
        ended = [e["outputs"] for e in self.up.events if e["event"] == "job_ended"]
        return all(any(f"/mallory/{f}/" in outputs for outputs in ended) for f in folders)


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    ade = Ade(tmp_path_factory.mktemp("street"), {})
    with ade.up() as up, open_stack(Settings.from_env(ade.environment())) as stack:
        made = Street(ade, up, stack)
        made.drop()
        if FULL:
            made.quiet = statistics.median(made.drop() for _ in range(LEAST_DROPS))
        yield made
        assert up.process.poll() is None, "the process ended by itself"
        assert up.end() == 0
    broken = [e for e in up.events if e["event"] in ("slot_failed", "service_failed", "job_not_handled")]
    assert not broken


# One in three by default, and the one that takes every slot.
@pytest.mark.parametrize(
    "name",
    [
        name if n % 6 == 0 or "every slot" in name else pytest.param(name, marks=pytest.mark.long)
        for n, name in enumerate(ATTACKS)
    ],
)
def test_a_tenant_that_does_its_worst_slows_nobody_down(street, name):
    attack = ATTACKS[name]
    folders = [f"{name.replace(' ', '-')}-{n}" for n in range(attack.copies)]
    for folder in folders:
        attack.make(street.ade.bucket / "inbox" / "mallory" / folder)
    took: list[float] = []
    meanwhile = 0
    late = time.monotonic() + PATIENCE_SECONDS
    while not (over := street.over(attack, folders)) or len(took) < LEAST_DROPS:
        assert over or time.monotonic() < late, f"not over: {street.jobs('mallory')}"
        if len(took) >= LEAST_DROPS:
            time.sleep(PACE_SECONDS)
        took.append(street.drop())
        meanwhile += not street.over(attack, folders)

    theirs = [j for j in street.jobs("mallory") if j.subject.split("/")[0] in folders]
    assert attack.ends == ANY or {str(j.state) for j in theirs} <= {attack.ends, State.AWAITING}
    assert [j.error for j in theirs if j.error is not None and j.error.fault == Fault.OURS] == []
    assert {j.attempt for j in theirs} <= {0, 1}, "an attempt was lost"
    assert {(j.state, j.attempts_total) for j in street.jobs("acme")} == {(State.SUCCEEDED, 1)}
    assert street.stack.queue.stats().dead == 0
    assert meanwhile or not attack.lasts, "no drop ended before the attack did"
    if FULL:
        bound = SLOWDOWN * max(street.quiet, LEAST_QUIET_SECONDS)
        assert statistics.median(took) <= bound, f"{took}, quiet: {street.quiet:.2f}"
