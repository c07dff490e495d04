"""A day of drops, simulated: handler, queue, runners, scaling, caps, throttles and kills, drop by drop.

python -m tests.bench.simulate [--drops-per-day N] [--hours FROM-TO] [--grain N] [--shards N] … [--svg FILE]

A discrete-event simulation. What it does not know it takes from tests/bench/measurements.json, which
`python -m tests.bench.measure` makes: how long boxes ran, and what a job asks of S3, SQS and DynamoDB. What cannot be
measured without an account (latencies of AWS, start of a Fargate task, the rate at which one item takes
transactions) stands in `Knobs` with the value that was assumed. One simulated drop stands for `grain` real ones
and takes their share of every limit.
"""

import heapq
import itertools
import math
import random
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """The plan; every number that one may want to turn."""

    drops_per_day: float = 10e6
    start_hour: float = 0.0
    end_hour: float = 24.0
    peak: float = 10.0  # the burst, as a multiple of the mean
    burst_minutes: float = 10.0
    burst_hour: float = 10.0
    tenants: int = 1000
    skew: float = 1.0  # Zipf's exponent; 0: all alike
    tenant_cap: int = 0  # ADE_TENANT_CONCURRENCY; 0: none
    # The handler: events per drop, per call, calls at once, seconds per call
    events_per_drop: float = 2.0
    batch: int = 10
    handlers: int = 100
    handler_seconds: float = 0.12
    # Runners
    slots: int = 4  # ADE_MAX_CONCURRENCY
    least_runners: int = 1
    most_runners: int = 1000
    backlog_per_runner: float = 10.0
    start_seconds: float = 75.0  # from the decision to the first job of a new task
    scale_every: float = 60.0  # the metric's period
    scale_in_after: float = 300.0
    kills_per_runner_hour: float = 0.01
    lease_seconds: float = 30.0
    wait_seconds: float = 0.30  # a job's round trips to S3, DynamoDB and SQS, one after the other
    # Limits of DynamoDB
    shards: int = 32
    partition_writes: float = 1000.0  # write units per second and partition
    wake_units: float = 9.0  # write units of one job on the index that takes most of them
    item_transactions: float = 100.0  # transactions per second that one item takes before they conflict
    counters: int = 1  # counters that the running jobs of one tenant are spread over
    grain: int = 1
    seed: int = 1


def arrivals_per_second(knobs: Knobs, at: float) -> float:
    """A working day: quiet nights, two humps, and one burst; without the burst a day's mean is the plan's."""
    hour = at / HOUR % 24
    humps = sum(math.exp(-((hour - middle) ** 2) / (2 * 2.0**2)) for middle in (10.5, 15.0))
    shape = 0.25 + 0.75 * humps * 24 / (2 * 2.0 * math.sqrt(2 * math.pi))
    mean = knobs.drops_per_day / 86400
    if 0 <= (hour - knobs.burst_hour) * 60 < knobs.burst_minutes:
        return max(shape, knobs.peak) * mean
    return shape * mean


class Limiter:
    """Something that takes so many units a second and lets the rest wait; a second's worth may come at once."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._free_at = 0.0
        self.throttled = 0

    def delay(self, now: float, units: float) -> float:
        """How long these units have to wait."""
        burst = 1.0
        self._free_at = max(self._free_at, now - burst) + units / self._rate
        late = max(0.0, self._free_at - now)
        self.throttled += late > 0
        return late


@dataclass
class Drop:
    number: int
    tenant: int
    came: float
    ready: float = 0.0
    attempt: int = 0
    where: int = -1  # its place among those that run


@dataclass
class Minute:
    """What an operator's graph shows."""

    at: float
    waiting: int
    running: int
    runners: int


@dataclass
class Outcome:
    knobs: Knobs
    arrived: int = 0
    ended: Counter[int] = field(default_factory=Counter)  # ends by number of drop; each must be one
    ages: list[float] = field(default_factory=list)  # from the upload to the start of the attempt that counted
    sojourns: list[float] = field(default_factory=list)
    handler_late: float = 0.0  # the longest that an event waited for a handler
    in_system: float = 0.0  # drops times seconds
    last: float = 0.0
    runner_seconds: float = 0.0
    most_running: int = 0
    most_waiting: int = 0
    killed: int = 0
    held_back: int = 0  # starts put off because the tenant was at its cap
    throttles: dict[str, int] = field(default_factory=dict)
    throttled_seconds: float = 0.0
    minutes: list[Minute] = field(default_factory=list)

    def age(self, share: float) -> float:
        """A percentile of the queue age."""
        ordered = sorted(self.ages)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    @property
    def most_runners(self) -> int:
        return max((m.runners for m in self.minutes), default=0)


class Simulation:
    def __init__(self, knobs: Knobs, box_seconds: list[float]) -> None:
        self._k = knobs
        self._boxes = box_seconds
        self._random = random.Random(knobs.seed)
        weights = [1 / (n + 1) ** knobs.skew for n in range(knobs.tenants)]
        self._tenants = list(itertools.accumulate(weights))
        per_second = knobs.handlers * knobs.batch / (knobs.events_per_drop * knobs.handler_seconds)
        self._handler = Limiter(per_second)
        self._partitions = [Limiter(knobs.partition_writes) for _ in range(knobs.shards)]
        self._counters = [Limiter(knobs.item_transactions * knobs.counters) for _ in range(knobs.tenants)]
        self._events: list[tuple[float, int, str, object]] = []
        self._order = itertools.count()
        self._waiting: dict[int, deque[Drop]] = {}
        self._turns: deque[int] = deque()  # tenants with something waiting, served in turn
        self._parked: set[int] = set()  # at their cap
        self._running: list[Drop] = []
        self._of_tenant: Counter[int] = Counter()
        self._runners = self._wanted = knobs.least_runners
        self._low_since: float | None = None
        self._waits = 0
        self._clock = knobs.start_hour * HOUR
        self.outcome = Outcome(knobs)

    def run(self) -> Outcome:
        """Until every drop that came has ended."""
        for at, tenant in self._arrivals():
            self._run_until(at)
            drop = Drop(self.outcome.arrived, tenant, at)
            self.outcome.arrived += 1
            late = self._handler.delay(at, self._k.grain)
            self.outcome.handler_late = max(self.outcome.handler_late, late)
            self._at(at + late + self._k.handler_seconds, "ready", drop)
        self._run_until(math.inf)
        self.outcome.throttles = {
            "handler": self._handler.throttled,
            "busiest index partition": max(p.throttled for p in self._partitions),
            "all index partitions": sum(p.throttled for p in self._partitions),
            "busiest counter": max(c.throttled for c in self._counters),
        }
        return self.outcome

    def _arrivals(self) -> Iterator[tuple[float, int]]:
        k, at = self._k, self._k.start_hour * HOUR
        most = k.peak * k.drops_per_day / 86400 / k.grain
        self._at(at + k.scale_every, "scale")
        self._at(at + 60, "minute")
        while True:
            at += self._random.expovariate(most)
            if at >= k.end_hour * HOUR:
                return
            if self._random.random() * most * k.grain < arrivals_per_second(k, at):
                draw = self._random.random() * self._tenants[-1]
                yield at, bisect_left(self._tenants, draw)

    def _at(self, when: float, kind: str, what: object = None) -> None:
        heapq.heappush(self._events, (when, next(self._order), kind, what))

    def _run_until(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            when, _, kind, what = heapq.heappop(self._events)
            self._pass(when)
            if kind == "ready" and isinstance(what, Drop):
                self._ready(what)
            elif kind == "end" and isinstance(what, tuple):
                self._end(*what)
            elif kind == "scale":
                self._scale(until)
            elif kind == "started" and isinstance(what, int):
                self._runners += what
            elif kind == "minute":
                self._minute(until)
            self._start()
        if until < math.inf:
            self._pass(until)

    def _pass(self, now: float) -> None:
        """Count what was there for as long as it was."""
        span = now - self._clock
        self.outcome.in_system += span * (self.outcome.arrived - len(self.outcome.sojourns)) * self._k.grain
        self.outcome.runner_seconds += span * self._runners
        self._clock = now

    def _ready(self, drop: Drop) -> None:
        drop.ready = self._clock
        line = self._waiting.setdefault(drop.tenant, deque())
        if not line:
            self._turns.append(drop.tenant)
        line.append(drop)
        self._waits += 1
        self.outcome.most_waiting = max(self.outcome.most_waiting, self._waits * self._k.grain)

    def _start(self) -> None:
        k = self._k
        while self._turns and (len(self._running) + 1) * k.grain <= self._runners * k.slots:
            tenant = self._turns.popleft()
            if k.tenant_cap and self._of_tenant[tenant] * k.grain >= k.tenant_cap:
                self._parked.add(tenant)
                self.outcome.held_back += k.grain
                continue
            line = self._waiting[tenant]
            drop = line.popleft()
            if line:
                self._turns.append(tenant)
            self._waits -= 1
            self._take(drop)

    def _take(self, drop: Drop) -> None:
        k, now = self._k, self._clock
        drop.attempt += 1
        drop.where = len(self._running)
        self._running.append(drop)
        self._of_tenant[drop.tenant] += 1
        partition = self._partitions[self._random.randrange(k.shards)]
        late = partition.delay(now, k.wake_units * k.grain)
        # A start and an end meet on the tenant's counter.
        late = max(late, self._counters[drop.tenant].delay(now, 2 * k.grain))
        self.outcome.throttled_seconds += late * k.grain
        self.outcome.most_running = max(self.outcome.most_running, len(self._running) * k.grain)
        seconds = late + k.wait_seconds + self._random.choice(self._boxes)
        self._at(now + seconds, "end", (drop, drop.attempt, now + late))

    def _end(self, drop: Drop, attempt: int, began: float) -> None:
        if attempt != drop.attempt or drop.where < 0:
            return  # that attempt was killed
        self._leave(drop)
        self.outcome.ended[drop.number] += 1
        self.outcome.ages.append(began - drop.came)
        self.outcome.sojourns.append(self._clock - drop.came)
        self.outcome.last = self._clock

    def _leave(self, drop: Drop) -> None:
        last = self._running.pop()
        if last is not drop:
            self._running[drop.where] = last
            last.where = drop.where
        drop.where = -1
        self._of_tenant[drop.tenant] -= 1
        if drop.tenant in self._parked:
            self._parked.discard(drop.tenant)
            self._turns.append(drop.tenant)

    def _scale(self, until: float) -> None:
        """The template's rule: as many runners as the backlog asks for; out at once, in after a while."""
        k, now = self._k, self._clock
        if until == math.inf and not self._waits and not self._running:
            return
        self._kill(k.scale_every)
        asked = math.ceil(self._waits * k.grain / k.backlog_per_runner)
        busy = math.ceil(len(self._running) * k.grain / k.slots)
        asked = max(k.least_runners, min(k.most_runners, asked))
        if asked > self._wanted:
            self._at(now + k.start_seconds, "started", asked - self._wanted)
            self._wanted, self._low_since = asked, None
        elif asked < self._wanted:
            self._low_since = self._low_since if self._low_since is not None else now
            if now - self._low_since >= k.scale_in_after:
                # A task that works is protected; the idle ones go, a tenth of the fleet at most.
                gone = min(self._wanted - max(asked, busy), max(1, self._wanted // 10), self._runners - busy)
                gone = max(0, gone)
                self._runners -= gone
                self._wanted -= gone
        else:
            self._low_since = None
        self._at(now + k.scale_every, "scale")

    def _kill(self, seconds: float) -> None:
        """Runners that died in the last while: their jobs come back when the lease is over, the service makes a new one."""
        k = self._k
        expected = self._runners * k.kills_per_runner_hour * seconds / HOUR
        dead = int(expected) + (self._random.random() < expected % 1)
        for _ in range(min(dead, self._runners)):
            self._runners -= 1
            self._at(self._clock + k.start_seconds, "started", 1)
            share = len(self._running) / max(1, self._runners + 1)
            lost = int(share) + (self._random.random() < share % 1)
            for _ in range(lost):
                drop = self._random.choice(self._running)
                self._leave(drop)
                self.outcome.killed += k.grain
                self._at(self._clock + k.lease_seconds, "ready", drop)

    def _minute(self, until: float) -> None:
        k = self._k
        shown = Minute(self._clock, self._waits * k.grain, len(self._running) * k.grain, self._runners)
        self.outcome.minutes.append(shown)
        if until < math.inf or self._waits or self._running:
            self._at(self._clock + 60, "minute")
