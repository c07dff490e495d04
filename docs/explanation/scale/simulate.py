"""A day of drops, simulated: handler, queue, runners, scaling, caps, throttles and kills, drop by drop.

    python docs/explanation/scale/simulate.py            every scenario, an hour and a half around the burst, coarse
    python docs/explanation/scale/simulate.py --day      the whole day, finer; some minutes
    python docs/explanation/scale/simulate.py --day --only "the plan" --svg docs/explanation/scale/day.svg

A discrete-event simulation that needs nothing but Python. README.md says what the scenarios mean. It takes measured
numbers from measurements.json, which `python -m tests.bench.measure` makes: how long boxes ran, what a job asks of S3,
SQS and DynamoDB, and what AWS charges. What cannot be measured without an account (latencies of AWS, start of a Fargate
task, the rate at which one item takes transactions) is assumed in `Knobs`. One simulated drop stands for `grain` real
ones and takes their share of every limit.
"""

import argparse
import heapq
import itertools
import json
import math
import random
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

HOUR = 3600.0
MEASURED = Path(__file__).with_name("measurements.json")


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


# How many of a hundred files have so many rows; the boxes' times by rows are measured.
MIX = {"50": 60, "1000": 30, "10000": 9, "50000": 1}
PLAN = Knobs(tenant_cap=200, slots=2, most_runners=1200, handlers=100, shards=32, backlog_per_runner=4.0, counters=16)
SCENARIOS: dict[str, Knobs] = {
    "the plan": PLAN,
    "template's defaults": replace(
        PLAN, tenant_cap=5, counters=1, most_runners=20, handlers=10, shards=8, backlog_per_runner=10.0
    ),
    "8 shards": replace(PLAN, shards=8),
    "64 shards": replace(PLAN, shards=64),
    "one counter a tenant": replace(PLAN, counters=1),
    "no tenant cap": replace(PLAN, tenant_cap=0),
    "one tenant has half": replace(PLAN, skew=2.0),
    "20 handlers": replace(PLAN, handlers=20),
    "400 runners at most": replace(PLAN, most_runners=400),
    "backlog 10 per runner": replace(PLAN, backlog_per_runner=10.0),
    "runners start in 5 min": replace(PLAN, start_seconds=300.0),
    "one kill a runner-hour": replace(PLAN, kills_per_runner_hour=1.0),
    "half of the drops": replace(PLAN, drops_per_day=PLAN.drops_per_day / 2),
    "twice the drops": replace(PLAN, drops_per_day=PLAN.drops_per_day * 2),
}


def box_times(seed: int = 1) -> list[float]:
    """Seconds that boxes take, in the shares of the mix."""
    boxes = json.loads(MEASURED.read_text())["box"]
    draw = random.Random(seed)
    return [draw.choice(boxes[rows])["wall_seconds"] for rows, share in MIX.items() for _ in range(share)]


def dollars(outcome: Outcome, hours: float) -> dict[str, float]:
    """What the simulated time costs: requests and units by the measured cost of a job, time by the simulation."""
    told, knobs = json.loads(MEASURED.read_text()), outcome.knobs
    prices = told["prices"]
    drops = len(outcome.sojourns) * knobs.grain
    calls = drops * knobs.events_per_drop / knobs.batch
    fargate = outcome.runner_seconds / HOUR * (prices["FARGATE_VCPU_HOUR"] + 2 * prices["FARGATE_GB_HOUR"])
    # The janitor looks every 2 s and sweeps by listing; runners that wait ask SQS every 10 s.
    idle = hours * 360 * outcome.knobs.least_runners * prices["SQS_REQUEST"]
    idle += hours * 1800 * knobs.shards * 0.5 * prices["DYNAMODB_READ"]
    return {
        "requests and units": drops * told["dollars_per_job"],
        "runners": fargate,
        "handler": calls * (prices["LAMBDA_REQUEST"] + 0.5 * knobs.handler_seconds * prices["LAMBDA_GB_SECOND"]),
        "idle looks": idle,
    }


def line(name: str, outcome: Outcome, hours: float) -> str:
    k = outcome.knobs
    cost = sum(dollars(outcome, hours).values())
    return (
        f"{name:24} {outcome.age(0.5):7.1f} {outcome.age(0.95):8.1f} {outcome.age(0.99):8.1f}"
        f" {outcome.most_runners:8d} {outcome.most_waiting:10,d} {outcome.handler_late:8.1f}"
        f" {outcome.throttles['all index partitions'] * k.grain:10,d}"
        f" {outcome.throttles['busiest counter'] * k.grain:10,d} {outcome.killed:7,d} {cost:9,.0f}"
    )


HEADER = (
    f"{'':24} {'age of a job, s':^25} {'runners':>8} {'waiting':>10} {'handler':>8} {'index':>10} {'counter':>10}"
    f" {'jobs':>7} {'$':>9}\n"
    f"{'scenario':24} {'p50':>7} {'p95':>8} {'p99':>8} {'at most':>8} {'at most':>10} {'late, s':>8} {'throttled':>10}"
    f" {'throttled':>10} {'killed':>7} {'':>9}"
)


def svg(outcome: Outcome) -> str:
    """Backlog and runners over the day, as a plain picture."""
    wide, high, left, low = 900, 300, 60, 30
    minutes = outcome.minutes
    first, last = minutes[0].at, minutes[-1].at
    most_waiting = max(1, *(m.waiting for m in minutes))
    most_runners = max(1, *(m.runners for m in minutes))

    def path(values: list[float], most: float) -> str:
        points = [
            f"{left + (m.at - first) / (last - first) * wide:.1f},{high - v / most * (high - 20):.1f}"
            for m, v in zip(minutes, values, strict=True)
        ]
        return " ".join(points)

    hours = range(int(first // HOUR) + 1, int(last // HOUR) + 1)
    ticks = "".join(
        f'<line x1="{x:.1f}" y1="{high}" x2="{x:.1f}" y2="{high + 4}" stroke="#888"/>'
        f'<text x="{x:.1f}" y="{high + 18}" text-anchor="middle">{hour}:00</text>'
        for hour in hours
        if hour % 2 == 0 or len(hours) < 6
        for x in [left + (hour * HOUR - first) / (last - first) * wide]
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left * 2 + wide} {high + low + 30}"'
        ' font-family="sans-serif" font-size="12" role="img"'
        ' aria-label="Waiting jobs and runners over the simulated day">\n'
        f'<line x1="{left}" y1="{high}" x2="{left + wide}" y2="{high}" stroke="#888"/>{ticks}\n'
        f'<polyline fill="none" stroke="#c40" points="{path([m.waiting for m in minutes], most_waiting)}"/>\n'
        f'<polyline fill="none" stroke="#06c" points="{path([m.runners for m in minutes], most_runners)}"/>\n'
        f'<text x="{left}" y="14" fill="#c40">waiting jobs, at most {most_waiting:,}</text>\n'
        f'<text x="{left + wide}" y="14" text-anchor="end" fill="#06c">runners, at most {most_runners:,}</text>\n'
        "</svg>\n"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--day", action="store_true", help="the whole day, not two hours of it")
    parser.add_argument("--grain", type=int, default=0, help="real drops that one simulated drop stands for")
    parser.add_argument("--only", default="", help="the scenarios whose name holds this")
    parser.add_argument("--svg", type=Path, help="draw the first scenario into this file")
    asked = parser.parse_args(arguments)
    hours = (0.0, 24.0) if asked.day else (9.5, 11.0)
    grain = asked.grain or (10 if asked.day else 40)
    boxes = box_times()
    shown = {name: knobs for name, knobs in SCENARIOS.items() if asked.only in name}
    print(
        f"{hours[0]:g}:00 to {hours[1]:g}:00, one simulated drop for {grain}; boxes: {sum(boxes) / len(boxes):.2f} s mean"
    )
    print(HEADER)
    for n, (name, knobs) in enumerate(shown.items()):
        began = time.perf_counter()
        outcome = Simulation(replace(knobs, start_hour=hours[0], end_hour=hours[1], grain=grain), boxes).run()
        print(line(name, outcome, hours[1] - hours[0]), f"  ({time.perf_counter() - began:.0f} s)", flush=True)
        if n == 0:
            parts = ", ".join(f"{what} ${cost:,.2f}" for what, cost in dollars(outcome, hours[1] - hours[0]).items())
            print(f"{'':24} {parts}; in flight at most {outcome.most_running:,}")
            if asked.svg:
                asked.svg.write_text(svg(outcome))


if __name__ == "__main__":
    main()
