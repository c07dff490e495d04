"""The plan for ten million drops a day, tried out: docs/scale.md says what the scenarios mean.

python -m tests.bench.bench_simulate            two hours around the burst, coarse: what `make bench` prints
python -m tests.bench.bench_simulate --day      the whole day, finer; some minutes
python -m tests.bench.bench_simulate --day --svg docs/scale-day.svg
"""

import argparse
import json
import random
import time
from dataclasses import replace
from pathlib import Path

from tests.bench import prices
from tests.bench.measure import FILE
from tests.bench.simulate import HOUR, Knobs, Outcome, Simulation

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
    boxes = json.loads(FILE.read_text())["box"]
    draw = random.Random(seed)
    return [draw.choice(boxes[rows])["wall_seconds"] for rows, share in MIX.items() for _ in range(share)]


def dollars(outcome: Outcome, hours: float) -> dict[str, float]:
    """What the simulated time costs: requests and units by the measured cost of a job, time by the simulation."""
    told, knobs = json.loads(FILE.read_text()), outcome.knobs
    drops = len(outcome.sojourns) * knobs.grain
    calls = drops * knobs.events_per_drop / knobs.batch
    fargate = outcome.runner_seconds / HOUR * (prices.FARGATE_VCPU_HOUR + 2 * prices.FARGATE_GB_HOUR)
    # The janitor looks every 2 s and sweeps by listing; runners that wait ask SQS every 10 s.
    idle = hours * 360 * outcome.knobs.least_runners * prices.SQS_REQUEST
    idle += hours * 1800 * knobs.shards * 0.5 * prices.DYNAMODB_READ
    return {
        "requests and units": drops * told["dollars_per_job"],
        "runners": fargate,
        "handler": calls * (prices.LAMBDA_REQUEST + 0.5 * knobs.handler_seconds * prices.LAMBDA_GB_SECOND),
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
