"""What one process counts and measures: a closed list of metrics, kept in memory and shown to Prometheus.

Always on, since an update costs about a microsecond. With OpenTelemetry switched on (infra/telemetry.py), every update
goes there too. A process with a scratch folder writes its numbers to `metrics.json` in it, so that the console of the
same machine shows them at /metrics; the file goes with the folder.
"""

import contextlib
import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from core.verdicts import FAULTS, Fault
from infra.prometheus_text import family, histogram, sample

SNAPSHOT = "metrics.json"
_MOST_SERIES = 2000  # labels come from closed sets, so this is never reached; a bug must not fill the memory
_LARGEST_SNAPSHOT = 1024 * 1024
_WRITE_SECONDS = 1.0  # between two snapshots, at least
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

Kind = Literal["counter", "histogram", "gauge"]
Series = tuple[str, ...]  # a metric's name and the values of its labels


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    name: str  # as OpenTelemetry spells it
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    unit: str = "1"
    zeros: tuple[tuple[str, ...], ...] = ()  # values of the labels that are shown before anything was counted

    @property
    def prometheus(self) -> str:
        """The name as Prometheus spells it."""
        unit = "_seconds" if self.unit == "s" else ""
        return self.name.replace(".", "_") + unit + ("_total" if self.kind == "counter" else "")


_OURS = tuple(("FAILED", str(verdict), "ours") for verdict, fault in FAULTS.items() if fault is Fault.OURS)
_OUTCOMES = (("delivered",), ("failed",), ("refused",), ("given_up",))

METRICS = (
    Metric(
        name="ade.scans",
        kind="counter",
        about="scans of the bucket",
        labels=("outcome",),
        zeros=(("ok",), ("failed",)),
    ),
    Metric(name="ade.scan", kind="histogram", unit="s", about="how long a scan took"),
    Metric(name="ade.events.refused", kind="counter", about="bucket events that could not be decoded"),
    Metric(name="ade.jobs.recorded", kind="counter", about="jobs created, queued and superseded", labels=("what",)),
    Metric(name="ade.queue.wait", kind="histogram", unit="s", about="from a job's message to its start"),
    Metric(
        name="ade.waits",
        kind="counter",
        about="starts refused, by cap or pause",
        labels=("scope",),
        zeros=(("tenant",), ("workflow",), ("pause",)),
    ),
    Metric(name="ade.running", kind="gauge", about="jobs that this process is running"),
    Metric(name="ade.attempts", kind="counter", about="attempts that ended", labels=("verdict", "fault")),
    Metric(name="ade.attempt", kind="histogram", unit="s", about="how long an attempt took"),
    Metric(name="ade.pass", kind="histogram", unit="s", about="how long a pass took", labels=("pass",)),
    Metric(name="ade.box.start", kind="histogram", unit="s", about="how long a box took to start"),
    Metric(name="ade.publish", kind="histogram", unit="s", about="how long a publication took"),
    Metric(
        name="ade.jobs.ended",
        kind="counter",
        about="jobs that ended",
        labels=("state", "verdict", "fault"),
        zeros=(("SUCCEEDED", "ok", "nobody"), *_OURS),
    ),
    Metric(
        name="ade.results",
        kind="counter",
        about="results that were published, by their outcome",
        labels=("outcome",),
        zeros=(("clean",), ("warnings",), ("errors",)),
    ),
    Metric(name="ade.reviews", kind="counter", about="jobs that began to wait for a person"),
    Metric(name="ade.beats.missed", kind="counter", about="heartbeats that could not be written"),
    Metric(name="ade.leases.lost", kind="counter", about="attempts whose lease was lost"),
    Metric(name="ade.rescues", kind="counter", about="jobs taken from runners that were lost"),
    Metric(name="ade.dead.letters", kind="counter", about="messages moved to the dead letters"),
    Metric(name="ade.chores.failed", kind="counter", about="chores of the janitor that failed"),
    Metric(
        name="ade.notices",
        kind="counter",
        about="notices, by how their delivery went",
        labels=("outcome",),
        zeros=_OUTCOMES,
    ),
)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}


def _zeros(metric: Metric) -> tuple[tuple[str, ...], ...]:
    return metric.zeros if metric.labels or metric.kind != "counter" else ((),)


class Forward(Protocol):
    """Receives every update as well: the instruments of OpenTelemetry."""

    def update(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None: ...


class Meters:
    """The numbers of one process. Safe to share between threads; no method raises for what it is given."""

    def __init__(self, forward: Forward | None = None) -> None:
        self._forward = forward
        self._lock = threading.Lock()
        # Of counters and gauges; of histograms the sum. Counters that alerts watch begin at 0: one that appears with
        # its first event has not increased, as Prometheus sees it.
        self._values: dict[Series, float] = {(m.name, *values): 0 for m in METRICS for values in _zeros(m)}
        self._buckets: dict[Series, list[int]] = {}
        self._changed = threading.Event()

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        """Increase a counter, or change a gauge."""
        metric, series = self._of(name, labels)
        with self._lock:
            if series in self._values or len(self._values) < _MOST_SERIES:
                self._values[series] = self._values.get(series, 0) + value
        self._updated(metric, value, labels)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a measurement to a histogram."""
        metric, series = self._of(name, labels)
        value = max(0.0, value)
        with self._lock:
            if series not in self._values and len(self._values) >= _MOST_SERIES:
                return
            self._values[series] = self._values.get(series, 0.0) + value
            counts = self._buckets.setdefault(series, [0] * (len(_SECONDS) + 1))
            counts[bisect_left(_SECONDS, value)] += 1
        self._updated(metric, value, labels)

    def value(self, name: str, **labels: str) -> float:
        """A counter's value, or how many measurements a histogram has."""
        _, series = self._of(name, labels)
        with self._lock:
            counts = self._buckets.get(series)
            return self._values.get(series, 0) if counts is None else sum(counts)

    def snapshot(self) -> dict[str, object]:
        """Every series as plain values."""
        with self._lock:
            plain = [[list(series), value, self._buckets.get(series)] for series, value in self._values.items()]
        return {"metrics": 1, "series": plain}

    def counters(self) -> dict[Series, float]:
        with self._lock:
            return {series: value for series, value in self._values.items() if BY_NAME[series[0]].kind == "counter"}

    def write_to(self, path: Path) -> Callable[[], None]:
        """Write the numbers to a file whenever they change, at most once a second; the result ends that."""
        stopped = threading.Event()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._changed.set()  # the zeros are to be seen before the first change

        def run() -> None:
            while not stopped.is_set():
                self._changed.wait()
                self._changed.clear()
                if not stopped.is_set():
                    write_snapshot(path, self.snapshot())
                stopped.wait(_WRITE_SECONDS)

        thread = threading.Thread(target=run, name="meters", daemon=True)
        thread.start()

        def stop() -> None:
            stopped.set()
            self._changed.set()
            thread.join()
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # jobs' folders are in it
                path.parent.rmdir()

        return stop

    def _of(self, name: str, labels: Mapping[str, str]) -> tuple[Metric, Series]:
        metric = BY_NAME[name]
        return metric, (name, *(labels[label] for label in metric.labels))

    def _updated(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        if not self._changed.is_set():
            self._changed.set()
        if self._forward is not None:
            self._forward.update(metric, value, labels)


def write_snapshot(path: Path, snapshot: Mapping[str, Any]) -> None:
    """Replace the file; an error is ignored, since the next change writes it again, unless the folder is gone."""
    fresh = path.with_suffix(".tmp")
    with contextlib.suppress(OSError):
        fresh.write_text(json.dumps(snapshot), encoding="utf-8")
        fresh.replace(path)


def read_snapshots(run_dir: Path) -> dict[str, dict[str, object]]:
    """The numbers of this machine's processes by name; a file that cannot be read is left out."""
    found: dict[str, dict[str, object]] = {}
    for path in sorted(run_dir.glob(f"*/{SNAPSHOT}")):
        try:
            if path.stat().st_size <= _LARGEST_SNAPSHOT:
                found[path.parent.name] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
    return found


def exposition(snapshots: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The lines of Prometheus' text format for several processes; an empty name adds no label."""
    lines: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
    for process, snapshot in snapshots.items():
        for series, value, counts in _known(snapshot):
            metric = BY_NAME[series[0]]
            labels = dict(zip(metric.labels, series[1:], strict=True)) | ({"process": process} if process else {})
            if counts is None:
                lines[metric.name].append(sample(metric.prometheus, labels, value))
            else:
                lines[metric.name] += histogram(metric.prometheus, labels, _SECONDS, counts, value)
    return [
        line
        for metric in METRICS
        if lines[metric.name]
        for line in (*family(metric.prometheus, metric.kind, metric.about), *lines[metric.name])
    ]


def _known(snapshot: Mapping[str, Any]) -> Iterable[tuple[list[str], float, list[int] | None]]:
    """The series that this program knows; another release may have written others."""
    for series, value, counts in snapshot.get("series", ()):
        metric = BY_NAME.get(series[0])
        if metric is not None and len(series) == len(metric.labels) + 1:
            yield series, value, counts
