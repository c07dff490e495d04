"""Who may start in the slots of one runner, and whose job makes room. Pure: the fleet carries it out.

Theory of operation. A box cannot be suspended and resumed, so a job that makes room starts over. Three rules follow.

1. A tenant with several slots gives one to a tenant that has none: its youngest job makes room, its oldest never does.
2. Whatever the tenants are, long jobs have all slots but one. A job is long once it has run for QUANTUM_SECONDS, or if
   it did so before, or if its tenant's jobs did of late. While long jobs fill every slot and a tenant without long jobs
   waits, the one that became long last makes room. It is long from its next start on, so that it starts in a slot of
   the long ones, where nothing stops it. The last slot is lent to long jobs only while no other tenant has been seen
   for a while.
3. Tenants that used more than their share of slot time of late start when nobody else waits.

With a single slot there is none to keep free: a job makes room after QUANTUM_SECONDS, and then after twice the time of
its longest run so far, until it ends.

So a tenant whose jobs are short waits for one quantum, and one more for each waiting tenant that is as short and has
used as little, whatever all others do; and every job ends, since long jobs that started within their slots are never
the last to have become long. Everything is known to one process; nothing has to be shared between runners: each keeps
its own last slot free.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.jobs import Job, State

QUANTUM_SECONDS = 5.0
LONG_SECONDS = 300.0  # how long a tenant is remembered for a long job
QUIET_SECONDS = 10.0  # without another tenant's job, after which the last slot is lent again
_HALF_LIFE_SECONDS = 60.0  # of slot time that was used
_FORGOTTEN_SECONDS = 0.05  # of slot time: too little to remember
_NEVER = -math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Occupant:
    """A job in a slot, or beyond the slots until another makes room."""

    key: str
    tenant: str
    started: float
    long_from: float  # when it becomes long


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotAccount:
    """What a tenant has had of late."""

    used: float = 0.0  # slot seconds, by half each _HALF_LIFE_SECONDS, as of `at`
    at: float = 0.0
    long_until: float = _NEVER
    shares_until: float = _NEVER  # it made room as a tenant of several slots, and keeps the last one free until then


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Whose jobs may start now."""

    most: int
    avoid: frozenset[str]  # tenants that may not start now
    last: frozenset[str]  # tenants that may, if nobody else waits
    beyond: bool = False  # every slot is in use: one job starts beyond them, and another makes room
    patient: bool = False  # one of those is likely to end in a moment


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotShares:
    """The slots of one process. Every method returns a decision, or the state that follows."""

    slots: int
    occupants: tuple[Occupant, ...] = ()  # by start
    tenants: Mapping[str, SlotAccount] = field(default_factory=dict)
    short_seen: float = _NEVER  # when a job of a tenant without long jobs last started

    @property
    def full(self) -> bool:
        return len(self.occupants) >= self.slots

    @property
    def crowded(self) -> bool:
        """Whether a job waits beyond the slots."""
        return len(self.occupants) > self.slots

    def offer(self, now: float) -> Offer | None:
        """Whose jobs to receive now; None: nobody's, until something changes."""
        held = Counter(one.tenant for one in self.occupants)
        long = self._long(now)
        if not self.full:
            return self._offer_free(held, long, now)
        if self.crowded:
            return None
        if max(held.values()) > 1:
            return self._beyond(frozenset(held), now, patient=True)
        if all(one.long_from <= now for one in self.occupants):
            return self._beyond(frozenset(held) | long, now)
        return None

    def _offer_free(self, held: Counter[str], long: frozenset[str], now: float) -> Offer:
        avoid: frozenset[str] = frozenset()
        free = self.slots - len(self.occupants)
        sharing = {tenant for tenant, account in self.tenants.items() if account.shares_until > now}
        if free == 1 and self.slots > 1:
            avoid |= {tenant for tenant in sharing if held[tenant]}
            if all(one.long_from <= now for one in self.occupants) and now < self.short_seen + QUIET_SECONDS:
                avoid |= long
        # One at a time where the next one's right depends on who the first one is.
        return Offer(most=1 if sharing or long else free, avoid=avoid, last=self.heavy(now) - avoid)

    def _beyond(self, avoid: frozenset[str], now: float, *, patient: bool = False) -> Offer:
        return Offer(most=1, avoid=avoid, last=self.heavy(now) - avoid, beyond=True, patient=patient)

    def victims(self, tenant: str, now: float) -> tuple[str, ...]:
        """The jobs of which one makes room for a tenant's job beyond the slots, first choice first."""
        others = [one for one in self.occupants if one.tenant != tenant]
        if not self.crowded or len(others) < len(self.occupants) - 1:
            return ()  # the tenant has a slot
        held = Counter(one.tenant for one in others)
        most = max(held.values(), default=0)
        if most > 1:
            crowd = next(one.tenant for one in reversed(others) if held[one.tenant] == most)
            theirs = [one.key for one in others if one.tenant == crowd]
            return tuple(reversed(theirs[1:]))
        if all(one.long_from <= now for one in others):
            return (max(reversed(others), key=lambda one: one.long_from).key,)
        return ()

    def heavy(self, now: float) -> frozenset[str]:
        """Tenants that have used more of late than the mean of all, and more than a quantum."""
        used = {tenant: _used(account, now) for tenant, account in self.tenants.items()}
        for one in self.occupants:
            used[one.tenant] = used.get(one.tenant, 0.0) + now - one.started
        mean = sum(used.values()) / len(used) if used else 0.0
        return frozenset(tenant for tenant, n in used.items() if n > max(mean, QUANTUM_SECONDS))

    def may_exceed(self, job_ran: float) -> bool:
        """Whether a job may start beyond the slots, by its longest run so far: one long job never replaces another."""
        crowd = max(Counter(one.tenant for one in self.occupants).values(), default=0) > 1
        return self.slots == 1 or crowd or job_ran < QUANTUM_SECONDS

    def begin(self, key: str, tenant: str, now: float) -> "SlotShares":
        """A message is handed to a slot, or beyond the slots."""
        shared = {
            name: replace(account, shares_until=now + QUIET_SECONDS)
            for name, account in self.tenants.items()
            if name != tenant and account.shares_until > now
        }
        return replace(
            self,
            occupants=(*self.occupants, self._occupant(key, tenant, 0.0, now)),
            tenants={**self.tenants, **shared},
            short_seen=self.short_seen if tenant in self._long(now) else now,
        )

    def place(self, key: str, job_ran: float, now: float) -> "SlotShares":
        """A job has its lease and its slot. `job_ran`: its longest run so far."""
        placed = (self._occupant(key, one.tenant, job_ran, now) if one.key == key else one for one in self.occupants)
        return replace(self, occupants=tuple(placed))

    def _occupant(self, key: str, tenant: str, job_ran: float, now: float) -> Occupant:
        quantum = max(QUANTUM_SECONDS, 2 * job_ran)
        if self.slots > 1 and (job_ran >= QUANTUM_SECONDS or tenant in self._long(now)):
            quantum = 0.0
        return Occupant(key=key, tenant=tenant, started=now, long_from=now + quantum)

    def stop(self, key: str, now: float) -> "SlotShares":
        """A job has to make room."""
        return self._noted(key, shares_until=now + QUIET_SECONDS)

    def refuse(self, key: str, now: float) -> "SlotShares":
        """A job beyond the slots turned out to be long, in another process perhaps."""
        return self._noted(key, long_until=now + LONG_SECONDS)

    def _noted(self, key: str, **known: float) -> "SlotShares":
        noted = {
            one.tenant: replace(self.tenants.get(one.tenant, SlotAccount()), **known)
            for one in self.occupants
            if one.key == key
        }
        return replace(self, tenants={**self.tenants, **noted})

    def end(self, key: str, now: float) -> "SlotShares":
        """A job has left its slot."""
        ended = next((one for one in self.occupants if one.key == key), None)
        if ended is None:
            return self
        ran = now - ended.started
        account = self.tenants.get(ended.tenant, SlotAccount())
        used = _used(account, now) + ran
        until = now + LONG_SECONDS if ran >= QUANTUM_SECONDS else account.long_until
        tenants = {**self.tenants, ended.tenant: replace(account, used=used, at=now, long_until=until)}
        return replace(
            self,
            occupants=tuple(one for one in self.occupants if one.key != key),
            tenants={name: one for name, one in tenants.items() if _is_remembered(one, now)},
        )

    def _long(self, now: float) -> frozenset[str]:
        """Tenants whose jobs run, or ran of late, for a quantum or longer."""
        running = {one.tenant for one in self.occupants if now - one.started >= QUANTUM_SECONDS}
        return frozenset(name for name, one in self.tenants.items() if one.long_until > now) | running


def longest_run(job: Job) -> float:
    """The longest time for which a job ran before it went back to the queue, as far as its row remembers."""
    pairs = zip(job.history, job.history[1:], strict=False)
    return max((to - at for (was, at), (now, to) in pairs if (was, now) == (State.RUNNING, State.QUEUED)), default=0.0)


def _used(account: SlotAccount, now: float) -> float:
    return account.used * math.exp2((account.at - now) / _HALF_LIFE_SECONDS)


def _is_remembered(account: SlotAccount, now: float) -> bool:
    return _used(account, now) > _FORGOTTEN_SECONDS or max(account.long_until, account.shares_until) > now
