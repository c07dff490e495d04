"""What any simulation of queues must obey, and what this one is for."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from core.settings import Settings
from docs.explanation.scale.simulate import (
    MEASURED,
    MIX,
    SCENARIOS,
    Knobs,
    Limiter,
    Outcome,
    Simulation,
    box_times,
    dollars,
    svg,
)
from tests.bench import prices

SMALL = Knobs(
    drops_per_day=30_000,
    start_hour=9.5,
    end_hour=11.0,
    tenants=20,
    tenant_cap=4,
    slots=2,
    most_runners=8,
    backlog_per_runner=4.0,
    kills_per_runner_hour=3.0,
)
BOXES = [0.2] * 9 + [3.0]


def run(knobs: Knobs = SMALL, boxes: list[float] = BOXES) -> Outcome:
    return Simulation(knobs, boxes).run()


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return run()


def test_every_arrival_ends_exactly_once_whatever_was_killed(outcome: Outcome):
    assert outcome.killed > 0, "nothing was killed: this run shows nothing"
    assert sorted(outcome.ended) == list(range(outcome.arrived))
    assert set(outcome.ended.values()) == {1}


def test_littles_law_holds(outcome: Outcome):
    span = outcome.last - SMALL.start_hour * 3600
    number = outcome.in_system / span
    rate, stay = outcome.arrived / span, sum(outcome.sojourns) / outcome.arrived
    assert number == pytest.approx(rate * stay, rel=0.02)


def test_no_job_starts_before_it_came(outcome: Outcome):
    assert min(outcome.ages) >= 0


def test_the_same_seed_gives_the_same_day(outcome: Outcome):
    assert run().ages == outcome.ages


@pytest.mark.parametrize("seed", range(3))
def test_with_twice_the_load_nobody_waits_less(seed: int):
    # A fleet of one size: a growing one is larger after a burst, and then serves faster than before.
    knobs = replace(SMALL, seed=seed, tenant_cap=0, least_runners=2, most_runners=2, kills_per_runner_hour=0.0)
    once, twice = run(knobs), run(replace(knobs, drops_per_day=2 * knobs.drops_per_day))
    assert twice.arrived > 1.8 * once.arrived
    for share in (0.5, 0.95, 0.99):
        assert twice.age(share) >= 0.9 * once.age(share)
    assert sum(twice.ages) / twice.arrived > sum(once.ages) / once.arrived


def test_a_coarser_grain_tells_the_same_story():
    knobs = replace(SMALL, drops_per_day=150_000, tenant_cap=0, most_runners=40, kills_per_runner_hour=0.0)
    fine, coarse = run(knobs), run(replace(knobs, grain=2))
    assert coarse.arrived * 2 == pytest.approx(fine.arrived, rel=0.05)
    assert coarse.runner_seconds == pytest.approx(fine.runner_seconds, rel=0.25)
    assert coarse.most_waiting == pytest.approx(fine.most_waiting, rel=0.35)


def test_a_hot_partition_throttles_and_more_shards_cure_it():
    hot = replace(SMALL, drops_per_day=2e5, most_runners=40, partition_writes=50.0, shards=2, tenant_cap=0)
    cured = replace(hot, shards=256)
    before, after = run(hot).throttles["all index partitions"], run(cured).throttles["all index partitions"]
    assert before > 100
    assert after < before / 10


def test_caps_keep_a_tenant_from_taking_the_fleet():
    crowd = replace(SMALL, skew=3.0, drops_per_day=60_000, kills_per_runner_hour=0.0)
    assert run(replace(crowd, tenant_cap=2)).most_running < run(replace(crowd, tenant_cap=0)).most_running


def test_a_limiter_lets_a_seconds_worth_through_and_no_more():
    limiter = Limiter(10.0)
    assert [limiter.delay(100.0, 1) for _ in range(10)] == [0.0] * 10
    assert limiter.delay(100.0, 1) == pytest.approx(0.1)
    assert limiter.delay(110.0, 1) == 0.0


def test_the_mix_is_measured():
    assert sum(MIX.values()) == 100
    assert len(box_times()) == 100
    assert min(box_times()) > 0


def test_the_prices_are_those_of_the_benchmarks():
    said = json.loads(MEASURED.read_text())["prices"]
    assert said == {name: getattr(prices, name) for name in said}


def test_costs_and_picture_come_out(outcome: Outcome):
    assert all(cost > 0 for cost in dollars(outcome, 1.5).values())
    drawn = svg(outcome)
    assert drawn.startswith("<svg")
    assert drawn.count("<polyline") == 2


def test_every_scenario_turns_a_knob_of_the_plan():
    plan = SCENARIOS["the plan"]
    assert all(knobs != plan for name, knobs in SCENARIOS.items() if name != "the plan")


def test_the_templates_defaults_are_the_templates():
    text = (Path(__file__).parents[3] / "infra/deploy/template.yaml").read_text()
    told = {
        name: float(n) for name, n in re.findall(r"^  (\w+):\n    Type: Number\n    Default: (\d+)", text, re.MULTILINE)
    }
    knobs = SCENARIOS["template's defaults"]
    assert (knobs.most_runners, knobs.tenant_cap) == (told["MaxRunners"], told["TenantConcurrency"])
    assert (knobs.shards, f"MaximumConcurrency: {knobs.handlers}}}" in text) == (told["Shards"], True)
    assert (knobs.backlog_per_runner, knobs.slots) == (told["BacklogPerRunner"], Settings().max_concurrency)
