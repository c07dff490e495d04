"""Past bugs, put back one at a time: the simulator has to find each of them, or it looks at the wrong things."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import core.fairness
import core.jobs
import core.keys
import core.proofs
import handlers.overlays
import handlers.recording
import runner.janitor
import runner.latest
import runner.publish
import runner.staging
from console.library import Library
from core.drops import is_placeholder
from core.fairness import Offer, SlotShares
from core.jobs import Job
from core.keys import latest_key, result_key
from handlers.recording import Recorder, _Line
from runner.audit import Audit
from runner.control import Control
from runner.documents import read_document, read_order
from runner.latest import LatestPointers
from runner.publish import Publisher
from runner.versions import StoredVersions
from tests.sim.crowd import Crowd
from tests.sim.postgres_world import kept, simulate_on
from tests.sim.shared import Shared, Withdrawn
from tests.sim.world import Outcome, simulate


def _patch(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    before = getattr(owner, name)
    setattr(owner, name, value)
    stack.callback(setattr, owner, name, before)


def _tie_look(stack: ExitStack) -> None:
    """Two versions of one key in one second: each superseded the other, and no sweep revived either."""

    def stamp(self: _Line, _stands: Callable[[], bool]) -> float | None:
        mine = self.planned.stamp
        newer = any(job.stamp > mine and not is_placeholder(job) for job in self.others)
        return None if newer else mine

    def supersede(self: Recorder, planned: Job, line: _Line, done: Any) -> None:
        for older in line.others:
            if older.stamp <= planned.stamp and not is_placeholder(older) and older.state in core.jobs.UNSTARTED:
                self._try(older, lambda j: handlers.recording._superseded(j, planned, self.clock.now()))

    after = Recorder._after

    def unrevived(self: Recorder, job: Job, planned: Job, line: _Line, stands: Any) -> Job | None:
        return after(self, job, planned, line, lambda: False)

    _patch(stack, _Line, "stamp", stamp)
    _patch(stack, Recorder, "_supersede", supersede)
    _patch(stack, Recorder, "_after", unrevived)


def _fence_floor(stack: ExitStack) -> None:
    """A row that was forgotten came back with fence 0."""
    _patch(stack, core.jobs, "first", lambda job, _floor: replace(job, rev=1))


def _latest_followed(stack: ExitStack) -> None:
    """latest.json was deleted without a look at what a newer job had written meanwhile; takes thousands of seeds."""

    def retract(self: LatestPointers, job: Job, *, fall_back: bool = False) -> None:
        order = read_order(read_document(self.store, latest_key(job)))
        if order and order[-1] == job.job_id:
            self.store.delete(latest_key(job))

    _patch(stack, LatestPointers, "retract", retract)


def _result_condition(stack: ExitStack) -> None:
    """result.json was written without a condition, by finishers that slept too."""

    def say(self: Publisher, job: Job, body: bytes, _there: Any) -> bool:
        self.store.put(result_key(job), body)
        return True

    _patch(stack, Publisher, "_write_result", say)


def _expiry_wait(stack: ExitStack) -> None:
    """A job that had just expired ran again at once, and the outputs of that run were removed as the old ones."""
    _patch(stack, handlers.recording, "is_retracted", lambda _job, _now: True)
    _patch(stack, runner.publish, "is_current", lambda _table, _job: True)
    _patch(stack, runner.latest, "is_current", lambda _table, _job: True)
    _patch(stack, Publisher, "_read_back", lambda _self, _job, _body: True)
    _patch(stack, Audit, "round", lambda _self: Counter())  # it heals what this bug leaves


def _believed(*_: Any, **__: Any) -> None:
    pass


def _any_content(stack: ExitStack) -> None:
    """What a proxy sent for an object was taken for it: a part, another object, a page."""
    _patch(stack, core.proofs, "check_read", _believed)


def _any_length(stack: ExitStack) -> None:
    """A description without its length made another job of the same file, and what was staged was not compared."""
    _patch(stack, core.proofs, "check_described", _believed)
    _patch(stack, runner.staging, "check_pinned", _believed)


def _any_answer(stack: ExitStack) -> None:
    """A page that said 200 was taken for a write."""
    _patch(stack, core.proofs, "check_written", _believed)


def _one_tenant_only(stack: ExitStack) -> None:
    """Only a tenant with several slots made room: as many tenants as slots, one job each, held all others."""
    beyond = SlotShares._beyond

    def unless_long(self: SlotShares, avoid: frozenset[str], now: float, *, patient: bool = False) -> Offer | None:
        return beyond(self, avoid, now, patient=patient) if patient else None

    _patch(stack, SlotShares, "_beyond", unless_long)


def _long_everywhere(stack: ExitStack) -> None:
    """A job that was stopped had all the time it wanted at its next start, in the last slot too."""

    def occupant(self: SlotShares, key: str, tenant: str, job_ran: float, now: float) -> core.fairness.Occupant:
        quantum = 1e6 if job_ran else core.fairness.QUANTUM_SECONDS
        return core.fairness.Occupant(key=key, tenant=tenant, started=now, long_from=now + quantum)

    _patch(stack, SlotShares, "_occupant", occupant)


def _beyond_the_slots(stack: ExitStack) -> None:
    """A job that another one has to make room for did not wait until it had."""
    _patch(stack, SlotShares, "crowded", False)


def _promotion_left(stack: ExitStack) -> None:
    """A promotion that died in the middle left a workflow that no command found any more."""
    _patch(stack, Library, "_left", lambda _self, _promotion: iter(()))


def _revert_forgotten(stack: ExitStack) -> None:
    """The version before the last promotion was deleted with its last job: there was nothing to go back to."""
    _patch(stack, StoredVersions, "_promoted", lambda _self, _key: frozenset())


def _replayed_input(stack: ExitStack) -> None:
    """`ade remove` of a replay's job deleted the sender's file."""
    replaced = Control._being_removed
    _patch(stack, Control, "_being_removed", lambda self, job: replace(replaced(self, job), replay=""))


def _overlay_of_others(stack: ExitStack) -> None:
    """A tenant's overlay changed the jobs of another."""
    places = handlers.overlays.overlay_places
    _patch(stack, handlers.overlays, "overlay_places", lambda _tenant, name, key: places("acme", name, key))


def _unkept(stack: ExitStack) -> None:
    """A version was deleted while jobs named it."""
    _patch(stack, StoredVersions, "_is_named", lambda _self, _table, _version: False)
    _patch(stack, runner.janitor, "_UNNAMED_SECONDS", -1e5)


def _replay_published(stack: ExitStack) -> None:
    """A replay published to outputs/."""
    _patch(stack, core.keys, "REPLAYS", "outputs/")


MUTANTS: dict[str, Callable[[ExitStack], None]] = {
    "tie-look": _tie_look,
    "fence-floor": _fence_floor,
    "latest-followed": _latest_followed,
    "result-condition": _result_condition,
    "expiry-wait": _expiry_wait,
    "any-content": _any_content,
    "any-length": _any_length,
    "any-answer": _any_answer,
    "one-tenant-only": _one_tenant_only,
    "long-everywhere": _long_everywhere,
    "beyond-the-slots": _beyond_the_slots,
    "promotion-left": _promotion_left,
    "revert-forgotten": _revert_forgotten,
    "replayed-input": _replayed_input,
    "overlay-of-others": _overlay_of_others,
    "unkept": _unkept,
    "replay-published": _replay_published,
}
SHARED = {
    "promotion-left",
    "revert-forgotten",
    "replayed-input",
    "overlay-of-others",
    "unkept",
    "replay-published",
}  # found in tests/sim/shared.py
CROWDED = {"one-tenant-only", "long-everywhere", "beyond-the-slots"}  # found in tests/sim/crowd.py


@contextmanager
def reverted(name: str | None) -> Iterator[None]:
    """The product without one of its fixes."""
    with ExitStack() as stack:
        if name is not None:
            MUTANTS[name](stack)
        yield


def run(
    what: tuple[int, str | None],
    database: str | None = None,
    *,
    crowd: bool = False,
    shared: bool = False,
    withdrawn: bool = False,
) -> Outcome:
    """One seed, and the fix that is undone for it; on the PostgreSQL server of that URL, or in memory."""
    seed, without = what
    with reverted(without):
        if crowd or without in CROWDED:
            return simulate(seed, Crowd)
        if withdrawn:
            return simulate(seed, Withdrawn)
        if shared or without in SHARED:
            return simulate(seed, Shared)
        return simulate(seed) if database is None else simulate_on(kept(database), seed)
