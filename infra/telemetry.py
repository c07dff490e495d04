"""Traces and metrics of one process: the one place that knows OpenTelemetry.

Theory of operation. A job has one trace. Its root, the span `drop`, is made when the row is created and written into it
(`Job.trace`, as W3C traceparent), so it survives the queue, retries and other processes; a message on SQS carries a
copy. Every later span names the root as its parent. Spans are made when their work is done, from measured times: there
is no active span to carry along, and a box needs no exporter, since the runner makes the spans of its passes. A job
that came over HTTP has its request above the root.

Off by default: then nothing of OpenTelemetry is imported and a span is one comparison. `ADE_TELEMETRY=true` switches it
on at the start of a process; where and what to export say the standard OTEL_* variables. Nothing here raises after the
start: a collector that is down must not stop the work.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import SettingsError
from core.jobs import Job
from infra.meters import METRICS, Meters, Metric
from infra.own_code import install_line

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from opentelemetry.trace import SpanContext, Tracer

SCOPE = "ade-drop"
_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_FLUSH_MILLIS = 5000
_CACHED_SECONDS = 2.0

Value = str | int | float | bool
Gauges = Callable[[], Mapping[tuple[str, str], float]]  # by name and by the value of its label


class Telemetry:
    """Makes spans and counts. Without a tracer and a meter, spans cost nothing and counts stay in this process."""

    def __init__(
        self,
        *,
        tracer: "Tracer | None" = None,
        meter: "Meter | None" = None,
        now: Callable[[], float] = time.time,
        flush: Callable[[], object] | None = None,
    ) -> None:
        self._tracer = tracer
        self._meter = meter
        self._flush = flush
        self.now = now
        self.meters = Meters(_Instruments(meter) if meter is not None else None)

    @property
    def traces(self) -> bool:
        return self._tracer is not None

    def root(self, name: str, *, start: float, below: str = "", kind: str = "consumer") -> "Root | None":
        """A span that others name as their parent before it ends: the first of a trace, unless it is `below` another.

        None while traces are off.
        """
        if self._tracer is None:
            return None
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - only where it is switched on

        with contextlib.suppress(Exception):
            known = _PARENT.fullmatch(below)
            context = _context_of(known) if known else None
            begun = self._tracer.start_span(
                name, context=context, kind=SpanKind[kind.upper()], start_time=_nanos(start)
            )
            return Root(begun)
        return None

    def span(
        self, name: str, trace: str, *, start: float, end: float, kind: str = "internal", **facts: Value | None
    ) -> str:
        """A span below the one that `trace` names; returns the traceparent of the new one, for spans below it.

        `failed` among the facts marks it as an error, with that text.
        """
        if self._tracer is None or not (known := _PARENT.fullmatch(trace)):
            return trace
        with contextlib.suppress(Exception):
            return _made(self._tracer, name, known, (start, max(start, end)), {"kind": kind, **facts})
        return trace

    def flush(self) -> None:
        """Export now what was not exported yet."""
        if self._flush is not None:
            with contextlib.suppress(Exception):
                self._flush()

    def watch(self, gauges: Gauges) -> None:
        """Export what the queue and the table hold whenever metrics are collected; called by one process of a fleet."""
        if self._meter is None:
            return
        gauges = _briefly_cached(gauges)  # read once for all of them
        for name, (label, unit, about) in GAUGES.items():
            self._meter.create_observable_gauge(
                name, callbacks=[_observed(gauges, name, label)], unit=unit, description=about
            )


# What the queue and the table hold: by name the label, the unit and what it means.
GAUGES: Mapping[str, tuple[str, str, str]] = {
    "ade.queue.messages": ("kind", "1", "messages in the work queue: ready, in flight, delayed, dead"),
    "ade.queue.oldest": ("", "s", "age of the oldest message that is ready"),
    "ade.jobs": ("state", "1", "jobs by state; REVIEW waits for a person"),
}


class Root:
    """A span that has begun and not yet ended: the root of a job's trace, or a request."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self.trace = _parent_of(span)

    def end(self, at: float, **facts: Value | None) -> None:
        with contextlib.suppress(Exception):
            _set(self._span, facts)
            self._span.end(end_time=_nanos(at))

    def end_request(self, at: float, method: str, route: str, status: int, jobs: Mapping[str, str]) -> None:
        """End the span of an HTTP request, named as OpenTelemetry names such. `jobs`: their traces by their ids."""
        with contextlib.suppress(Exception):
            from opentelemetry import trace as api  # noqa: PLC0415 - only where it is switched on

            named = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
            self._span.set_attributes(named | ({"ade.job_ids": list(jobs)} if jobs else {}))
            for trace in jobs.values():
                # Somebody else was faster to record the job, so it has a trace of its own.
                known = _PARENT.fullmatch(trace)
                if known and known[1] != self.trace.split("-")[1]:
                    self._span.add_link(_span_context(known))
            if status >= 500:
                self._span.set_status(api.Status(api.StatusCode.ERROR))
            self._span.end(end_time=_nanos(at))


def trace_id(job: Job) -> str | None:
    """The id that the job's log lines carry; None if it has no trace."""
    known = _PARENT.fullmatch(job.trace)
    return known[1] if known else None


def job_fields(job: Job) -> dict[str, str]:
    """What every log line about a job says."""
    traced = trace_id(job)
    return {"job_id": job.job_id} | ({"trace_id": traced} if traced else {})


@contextlib.contextmanager
def exporting(*, on: bool, role: str) -> Iterator[Telemetry]:
    """The telemetry of a process; if `on`, exported as the OTEL_* variables say until the context ends."""
    if not on:
        yield Telemetry()
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(
            f"ADE_TELEMETRY=true needs the extra `telemetry` ({error.name} is missing): "
            f"{install_line('telemetry')}, or unset it"
        ) from None
    about = Resource.create({"service.name": SCOPE, "ade.role": role})  # OTEL_SERVICE_NAME and the like come first
    traces = TracerProvider(resource=about, shutdown_on_exit=False)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    meters = MeterProvider(metric_readers=[reader], resource=about, shutdown_on_exit=False)

    def flush() -> None:
        traces.force_flush(_FLUSH_MILLIS)
        meters.force_flush(_FLUSH_MILLIS)

    made = Telemetry(tracer=traces.get_tracer(SCOPE), meter=meters.get_meter(SCOPE), flush=flush)
    try:
        yield made
    finally:
        with contextlib.suppress(Exception):
            traces.force_flush(_FLUSH_MILLIS)
            traces.shutdown()
        with contextlib.suppress(Exception):
            meters.shutdown(timeout_millis=_FLUSH_MILLIS)


class _Instruments:
    """OpenTelemetry's counterparts of our metrics."""

    def __init__(self, meter: "Meter") -> None:
        self._update: dict[str, Callable[..., None]] = {}
        for metric in METRICS:
            about = metric.name, metric.unit, metric.about
            match metric.kind:
                case "counter":
                    self._update[metric.name] = meter.create_counter(*about).add
                case "gauge":
                    self._update[metric.name] = meter.create_up_down_counter(*about).add
                case "histogram":
                    self._update[metric.name] = meter.create_histogram(*about).record

    def update(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        with contextlib.suppress(Exception):
            self._update[metric.name](value, dict(labels))


def _briefly_cached(gauges: Gauges) -> Gauges:
    values: Mapping[tuple[str, str], float] = {}
    until = 0.0

    def read() -> Mapping[tuple[str, str], float]:
        nonlocal values, until
        if time.monotonic() >= until:
            values, until = gauges(), time.monotonic() + _CACHED_SECONDS
        return values

    return read


def _observed(gauges: Gauges, name: str, label: str) -> "Callable[[CallbackOptions], Iterable[Observation]]":
    def observe(_options: "CallbackOptions") -> "Iterable[Observation]":
        from opentelemetry.metrics import Observation  # noqa: PLC0415 - as above

        try:
            found = gauges()
        except Exception:  # noqa: BLE001 - the table is down: no point in the chart
            return []
        return [Observation(v, {label: of} if label else {}) for (which, of), v in found.items() if which == name]

    return observe


def _made(
    tracer: "Tracer",
    name: str,
    parent: re.Match[str],
    times: tuple[float, float],
    facts: Mapping[str, Value | None],
) -> str:
    from opentelemetry import trace as api  # noqa: PLC0415 - only where it is switched on

    kind = api.SpanKind[str(facts["kind"]).upper()]
    span = tracer.start_span(name, context=_context_of(parent), kind=kind, start_time=_nanos(times[0]))
    failed = facts.get("failed")
    _set(span, {fact: value for fact, value in facts.items() if fact not in ("kind", "failed")})
    if failed:
        span.set_status(api.Status(api.StatusCode.ERROR, str(failed)))
    span.end(end_time=_nanos(times[1]))
    return _parent_of(span)


def _context_of(parent: re.Match[str]) -> "Context":
    from opentelemetry import trace as api  # noqa: PLC0415 - as above

    return api.set_span_in_context(api.NonRecordingSpan(_span_context(parent)))


def _span_context(named: re.Match[str]) -> "SpanContext":
    from opentelemetry import trace as api  # noqa: PLC0415 - as above

    return api.SpanContext(int(named[1], 16), int(named[2], 16), True, api.TraceFlags(int(named[3], 16)))


def _set(span: Any, facts: Mapping[str, Value | None]) -> None:
    span.set_attributes({f"ade.{name}": value for name, value in facts.items() if value is not None})


def _parent_of(span: Any) -> str:
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _nanos(at: float) -> int:
    return int(at * 1_000_000_000)
