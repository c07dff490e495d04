"""One scheduler for every thread of every simulated process: exactly one runs, and which is next follows from the seed.

Theory of operation. An actor is a thread that holds the baton or waits for it. Whoever gives the baton away (a sleep, a
call to a port, a lock that is taken) says when it wants it back in simulated time; the one whose time is next gets it.
Times are drawn from the seed's random, so the seed decides how actors interleave, and real time decides nothing. A
process is a group of actors that share memory and die together: a Death unwinds each of them at the point where it
stands, and what a dead process still tries to call raises Death again.
"""

import hashlib
import heapq
import threading
import traceback
from collections.abc import Callable
from typing import Any

EPOCH = 1_750_000_000.0
_MOST_STEPS = 200_000  # twenty times what a long run takes


class Death(BaseException):
    """The process of this thread has died."""


class Process:
    """What lives and dies together. `skew`: how far its clock is off."""

    def __init__(self, name: str, scheduler: "Scheduler", *, skew: float = 0.0, machine: str = "") -> None:
        self.name = name
        self.machine = machine or name
        self.skew = skew
        self.dead = False
        self.paused_until = 0.0  # until then none of its calls is made
        self.actors: list[Actor] = []
        self.on_death: Callable[[], None] = lambda: None
        self._scheduler = scheduler

    def now(self) -> float:
        return self._scheduler.now + self.skew

    def steady(self) -> float:
        return self._scheduler.now - EPOCH

    def die(self) -> None:
        """End every actor where it stands; the caller too, if it is one of them."""
        if not self.dead:
            self.dead = True
            self._scheduler.trace("dies", self.name)
            for actor in self.actors:
                self._scheduler.wake(actor)
            self.on_death()


class Actor:
    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self.baton = threading.Lock()
        self.baton.acquire()
        self.ticket = 0  # of its newest entry in the schedule; older ones are void
        self.ended = False


class Scheduler:
    def __init__(self) -> None:
        self.now = EPOCH
        self.steps = 0
        self.lines: list[str] = []
        self.crashes: list[str] = []
        self._hash = hashlib.sha256()
        self._schedule: list[tuple[float, int, Actor]] = []
        self._numbers = 0
        self.world = Actor("world", Process("world", self))  # whoever built the scheduler
        self.current = self.world
        self._alive: dict[Actor, None] = {}

    # What actors do

    def sleep(self, seconds: float) -> None:
        """Let others run for so long."""
        self._enter(self.current, self.now + max(0.0, seconds))
        self._give_away()

    def wake(self, actor: Actor, at: float | None = None) -> None:
        """Have an actor run at `at`, or now, whatever it waits for."""
        if not actor.ended and actor is not self.current:
            self._enter(actor, self.now if at is None else max(at, self.now))

    def trace(self, *words: Any) -> None:
        line = f"{self.now - EPOCH:10.3f} {self.current.name:12} {' '.join(map(str, words))}"
        self.lines.append(line)
        self._hash.update(line.encode())

    @property
    def digest(self) -> str:
        """Of every step so far: two runs with one digest were the same run."""
        return self._hash.hexdigest()

    # What the world does

    def spawn(self, process: Process, name: str, act: Callable[[], None], *, after: float = 0.0) -> Actor:
        actor = Actor(f"{process.name}.{name}", process)
        process.actors.append(actor)
        self._alive[actor] = None
        threading.Thread(target=self._live, args=(actor, act), daemon=True, name=actor.name).start()
        self._enter(actor, self.now + after)
        return actor

    def close(self) -> None:
        """End every actor; none is left when this returns."""
        while self._alive:
            for actor in self._alive:
                actor.process.dead = True
                self._enter(actor, self.now)
            self._enter(self.world, self.now + 1e9)
            self._give_away()

    def _live(self, actor: Actor, act: Callable[[], None]) -> None:
        actor.baton.acquire()
        try:
            if not actor.process.dead:
                act()
        except Death:
            pass
        except BaseException:  # noqa: BLE001 - the run reports it
            self.crashes.append(f"{actor.name}: {traceback.format_exc()}")
            self._enter(self.world, self.now)
        actor.ended = True
        del self._alive[actor]
        actor.process.actors.remove(actor)
        if not self._alive:
            self._enter(self.world, self.now)
        self._next().baton.release()

    def _enter(self, actor: Actor, at: float) -> None:
        self._numbers += 1
        actor.ticket = self._numbers
        heapq.heappush(self._schedule, (at, self._numbers, actor))

    def _next(self) -> Actor:
        while True:
            at, ticket, actor = heapq.heappop(self._schedule)
            if actor.ticket == ticket and not actor.ended:
                self.now = max(self.now, at)
                self.steps += 1
                if self.steps == _MOST_STEPS:
                    self.crashes.append(f"the run has no end: {_MOST_STEPS} steps, the last by {actor.name}")
                    self._enter(actor, self.now)
                    actor = self.world
                self.current = actor
                return actor

    def _give_away(self) -> None:
        me = self.current
        chosen = self._next()
        if chosen is not me:
            chosen.baton.release()
            me.baton.acquire()
        if me.process.dead:
            raise Death


class SimLock:
    """A lock between actors: who finds it taken lets others run until it is free."""

    scheduler: Scheduler  # of the run under way

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[Actor] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        while self._taken:
            if not blocking:
                return False
            self._waiting.append(self.scheduler.current)
            self.scheduler.sleep(1e6)
        self._taken = True
        return True

    def release(self) -> None:
        self._taken = False
        for actor in self._waiting:
            self.scheduler.wake(actor)
        self._waiting.clear()

    def locked(self) -> bool:
        return self._taken

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
