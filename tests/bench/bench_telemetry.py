"""What telemetry costs: switched off, counted in memory, and switched on with an exporter that keeps everything.

Per call, and per job over the whole embedded path with a scripted box (no engine, so that the rest weighs most).
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from infra.telemetry import Telemetry
from tests.support.world import World

CALLS = 50_000
JOBS = 40
ROUNDS = 5
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def switched_on() -> Telemetry:
    traces = TracerProvider(shutdown_on_exit=False)
    traces.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    meters = MeterProvider(metric_readers=[InMemoryMetricReader()], shutdown_on_exit=False)
    return Telemetry(tracer=traces.get_tracer("bench"), meter=meters.get_meter("bench"))


def per_call(act: Callable[[], object], calls: int = CALLS) -> float:
    """Microseconds."""
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()  # of the CPU, whoever else uses the machine
        for _ in range(calls):
            act()
        best = min(best, time.thread_time() - began)
    return best / calls * 1e6


def per_job(telemetry: Telemetry | None) -> float:
    """Milliseconds of CPU."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), telemetry=telemetry)
        try:
            keys = [key for n in range(JOBS) for key in world.drop(name=f"{n}.csv")]
            runner = world.runner()
            began = time.process_time()
            world.intake.changed(keys)
            while world.handle_one(runner):
                pass
            return (time.process_time() - began) / JOBS * 1000
        finally:
            world.close()


def main(_words: list[str]) -> None:
    off, on = Telemetry(), switched_on()
    print("microseconds per call           off       on")
    for what, act in (
        ("counter", lambda t: t.meters.add("ade.waits", scope="tenant")),
        ("histogram", lambda t: t.meters.observe("ade.pass", 0.1, **{"pass": "write"})),
        ("span", lambda t: t.span("stage", TRACE, start=1.0, end=2.0)),
    ):
        costs = [per_call(lambda: act(t), CALLS if t is off else CALLS // 10) for t in (off, on)]  # noqa: B023 - called at once
        print(f"  {what:<25}{costs[0]:>10.2f}{costs[1]:>9.2f}")
    found: dict[str, list[float]] = {"off": [], "on": []}
    for _ in range(ROUNDS):  # in turn, so that a busy machine is unfair to both
        found["off"].append(per_job(None))
        found["on"].append(per_job(switched_on()))
    for what, each in found.items():
        print(
            f"milliseconds of CPU per job, {what:<4} {statistics.median(each):8.2f}  (of {ROUNDS}: {min(each):.2f} to {max(each):.2f})"
        )


if __name__ == "__main__":
    main([])
