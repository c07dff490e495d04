"""With telemetry on, a request is a span, and the trace of a job that it brings begins there."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core.jobs import State
from infra.logs import Log
from infra.telemetry import Telemetry
from runner.assembly import assemble
from runner.sandbox.install.layers import Layers
from tests.support.console import MANIFEST, ApiRig, api_rig
from tests.support.world import Boxes, ScriptedSandbox

CALLER = f"00-{'ab' * 16}-{'cd' * 8}-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def rig(tmp_path: Path, exporter: InMemorySpanExporter) -> Iterator[ApiRig]:
    traces = TracerProvider(shutdown_on_exit=False)
    traces.add_span_processor(SimpleSpanProcessor(exporter))
    with api_rig(tmp_path / "data", telemetry=Telemetry(tracer=traces.get_tracer("t"))) as made:
        yield made


def spans(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def run_all(rig: ApiRig, scratch: Path) -> None:
    sandbox = ScriptedSandbox()
    boxes = Boxes(sandbox, Layers(cache=scratch / "layers", wheelhouse=None, sandbox=sandbox))
    runner = assemble(rig.stack, boxes, Log(stream=io.StringIO()))
    try:
        for delivery in rig.stack.queue.receive(most=10, wait=0, visibility=runner.beats.visibility):
            runner.worker.handle(delivery)
    finally:
        runner.close()


def test_a_drop_over_http_is_one_trace_from_the_request_to_the_box(
    rig: ApiRig, exporter: InMemorySpanExporter, tmp_path: Path
):
    (told,) = rig.submit().raise_for_status().json()["jobs"]
    run_all(rig, tmp_path)
    job = rig.stack.table.get(told["job_id"])
    assert job is not None
    assert job.state is State.SUCCEEDED
    found = spans(exporter)
    assert {span.context.trace_id for span in found.values()} == {found["POST /jobs"].context.trace_id}
    assert [name for name, span in found.items() if span.parent is None] == ["POST /jobs"]
    above = {name: span.parent.span_id for name, span in found.items() if span.parent is not None}
    assert above["drop"] == found["POST /jobs"].context.span_id
    assert above["attempt"] == above["queue"] == found["drop"].context.span_id
    assert above["box"] == found["attempt"].context.span_id


def test_it_names_route_status_and_jobs(rig: ApiRig, exporter: InMemorySpanExporter):
    (job,) = rig.submit().json()["jobs"]
    rig.client.get(f"/jobs/{job['job_id']}")
    rig.client.get("/jobs/none")
    told = [attributes(span) for span in exporter.get_finished_spans() if " /jobs" in span.name]
    assert told[0] == {
        "http.request.method": "POST",
        "http.route": "/jobs",
        "http.response.status_code": 202,
        "ade.job_ids": (job["job_id"],),
    }
    assert [(one["http.route"], one["http.response.status_code"]) for one in told[1:]] == [
        ("/jobs/{job_id}", 200),
        ("/jobs/{job_id}", 404),
    ]


def test_a_known_caller_has_it_below_their_own_span_and_a_stranger_has_not(rig: ApiRig, exporter: InMemorySpanExporter):
    rig.from_afar(rig.token("reader"), traceparent=CALLER).get("/jobs")
    rig.from_afar("ade_wrong_wrong", traceparent=CALLER).get("/jobs")
    known, stranger = exporter.get_finished_spans()
    assert known.parent is not None
    assert f"{known.context.trace_id:032x}" == "ab" * 16
    assert (stranger.parent, attributes(stranger)["http.response.status_code"]) == (None, 401)


def test_a_job_that_somebody_else_recorded_is_linked(rig: ApiRig, exporter: InMemorySpanExporter):
    rig.stack.store.put("inbox/acme/people/p.csv", b"Name,Age\nann,3\n")
    rig.stack.store.put("inbox/acme/people/manifest.json", json.dumps(MANIFEST).encode())
    rig.context.submissions.scan(["inbox/acme/people/p.csv"])  # as the watch does, which may be faster
    rig.client.post("/jobs", json={"tenant": "acme", "keys": ["inbox/acme/people/p.csv"]}).raise_for_status()
    found = spans(exporter)
    (link,) = found["POST /jobs"].links
    assert link.context.trace_id == found["drop"].context.trace_id != found["POST /jobs"].context.trace_id


def test_what_machines_ask_for_every_few_seconds_makes_none(rig: ApiRig, exporter: InMemorySpanExporter):
    for path in ("/health", "/ready", "/metrics"):
        rig.client.get(path).raise_for_status()
    assert not exporter.get_finished_spans()


def test_a_caller_who_sends_no_traceparent_that_can_be_read_begins_a_trace(rig: ApiRig, exporter: InMemorySpanExporter):
    rig.client.get("/jobs", headers={"traceparent": f"00-{'0' * 31}g-{'cd' * 8}-01"})
    rig.client.get("/jobs", headers={"traceparent": "x" * 5000})
    assert [span.parent for span in exporter.get_finished_spans()] == [None, None]
