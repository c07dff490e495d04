"""One trace per drop, from the event to the publication, and every metric: seen by OpenTelemetry's own exporters."""

import io
import json
from dataclasses import replace

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core.errors import StoreUnavailable
from core.jobs import State
from core.ports import Pause
from core.verdicts import Verdict
from infra.logs import Log
from infra.meters import METRICS
from infra.telemetry import Telemetry
from tests.support.places import PLACES, embedded
from tests.support.world import World


class Seen:
    """What an exporter got."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        traces = TracerProvider(shutdown_on_exit=False)
        traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(tracer=traces.get_tracer("t"), meter=meters.get_meter("t"))

    def spans(self):
        return self.exporter.get_finished_spans()

    def points(self, name):
        data = self.reader.get_metrics_data()
        found = [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return {tuple(sorted(point.attributes.items())): getattr(point, "value", None) or point for point in found}

    def value(self, name, **labels):
        point = self.points(name).get(tuple(sorted(labels.items())), 0)
        return getattr(point, "count", point)


@pytest.fixture
def seen():
    return Seen()


@pytest.fixture(params=["embedded", "postgres", "cloud"])
def world(request, tmp_path, seen):
    made = World(tmp_path, PLACES[request.param], telemetry=seen.telemetry)
    yield made
    made.close()


@pytest.fixture
def here(tmp_path, seen):
    made = World(tmp_path, embedded, telemetry=seen.telemetry)
    made.log = Log(stream=io.StringIO())
    yield made
    made.close()


def names(spans):
    return {span.name for span in spans}


def below(spans, name):
    """Names of the spans right below the one of a name."""
    (parent,) = [span for span in spans if span.name == name]
    return {s.name for s in spans if s.parent is not None and s.parent.span_id == parent.context.span_id}


@pytest.mark.every_cloud
def test_a_drop_is_one_trace_from_its_event_to_its_publication(world, seen):
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    spans = seen.spans()
    assert {f"{span.context.trace_id:032x}" for span in spans} == {job.trace.split("-")[1]}
    assert [span.name for span in spans if span.parent is None] == ["drop"]
    assert below(spans, "drop") == {"enqueue", "queue", "attempt", "publish"}
    assert below(spans, "attempt") == {"stage", "box", "upload"}
    passes = {"pass structure", "pass mapping", "pass transform", "pass validate", "pass write"}
    assert passes <= below(spans, "box") <= passes | {"box start", "pass read"}


def test_the_message_carries_the_trace_on_sqs(world):
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    (delivery,) = world.queue.receive(most=1, wait=1, visibility=30)
    assert delivery.message.trace in ("", job.trace)
    if type(world.queue).__name__ == "SqsWorkQueue":
        assert delivery.message.trace == job.trace


def test_two_drops_of_one_scan_are_two_traces(here, seen):
    here.intake.changed([*here.drop(name="a.csv"), *here.drop(name="b.csv")])
    assert len({job.trace for job in here.jobs()}) == 2
    assert len({span.context.trace_id for span in seen.spans()}) == 2


def test_a_scan_that_finds_a_known_job_starts_no_trace(here, seen):
    keys = here.drop()
    here.intake.changed(keys)
    (before,) = here.jobs()
    here.intake.changed(keys)
    here.intake.sweep()
    (after,) = here.jobs()
    assert after.trace == before.trace
    assert [span.name for span in seen.spans()].count("drop") == 1


def test_every_attempt_and_a_publication_by_another_process_join_the_trace(here, seen):
    here.intake.changed(here.drop())
    here.sandbox.verdict = Verdict.BOX_FAILED
    runner = here.runner()
    here.handle_one(runner)
    here.work_off(here.runner())
    spans = seen.spans()
    assert len({span.context.trace_id for span in spans}) == 1
    tries = [span for span in spans if span.name == "attempt"]
    assert [span.attributes["ade.verdict"] for span in tries] == ["box_failed", "ok"]
    assert [span.status.is_ok for span in tries] == [False, True]


def test_a_job_of_a_process_without_traces_gets_one_at_its_start(here, seen):
    quiet = here.new_intake()
    quiet.telemetry = quiet._recorder.telemetry = Telemetry()
    quiet.changed(here.drop())
    assert here.jobs()[0].trace == ""
    here.work_off(here.runner())
    (job,) = here.jobs()
    assert {f"{span.context.trace_id:032x}" for span in seen.spans()} == {job.trace.split("-")[1]}
    assert {"job", "attempt", "publish"} <= names(seen.spans())


def test_a_trace_that_somebody_damaged_stops_nothing(here, seen):
    here.intake.changed(here.drop())
    (job,) = here.jobs()
    here.table.replace(job, replace(job, trace="nonsense\n" * 100))
    here.work_off(here.runner())
    assert here.jobs()[0].state is State.SUCCEEDED


def test_log_lines_about_a_job_carry_its_trace(here):
    here.intake.changed(here.drop())
    stream = here.log._stream
    here.work_off(here.runner())
    (job,) = here.jobs()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    about = [line for line in lines if line.get("job_id") == job.job_id]
    assert {line["event"] for line in about} >= {"job_started", "attempt_ended", "job_ended"}
    assert {line.get("trace_id") for line in about} == {job.trace.split("-")[1]}


def test_without_telemetry_rows_messages_and_logs_are_as_before(tmp_path):
    world = World(tmp_path)
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert job.trace == ""
    assert "trace" not in world.log._stream.getvalue()
    world.close()


class TestMetrics:
    def test_a_success(self, here, seen):
        here.intake.changed(here.drop())
        assert seen.value("ade.jobs.recorded", what="created") == 1
        assert seen.value("ade.jobs.recorded", what="queued") == 1
        here.work_off(here.runner())
        assert seen.value("ade.scans", outcome="ok") == 1
        assert seen.value("ade.scan") == 1
        assert seen.value("ade.attempts", verdict="ok", fault="nobody") == 1
        assert seen.value("ade.jobs.ended", state="SUCCEEDED", verdict="ok", fault="nobody") == 1
        assert seen.value("ade.attempt") == seen.value("ade.queue.wait") == seen.value("ade.publish") == 1
        assert {labels[0][1] for labels in seen.points("ade.pass")} >= {"structure", "mapping", "transform", "write"}
        assert seen.telemetry.meters.value("ade.running") == 0

    def test_failures_by_verdict_and_fault(self, here, seen):
        here.intake.changed(here.drop())
        here.sandbox.verdict = Verdict.RULE_ERROR
        here.work_off(here.runner())
        assert seen.value("ade.jobs.ended", state="FAILED", verdict="rule_error", fault="config") == 1

    def test_a_failure_of_the_product_is_a_dead_letter(self, here, seen):
        here.intake.changed(here.drop())
        runner = here.runner()
        for _ in range(here.settings.max_attempts):
            here.sandbox.verdict = Verdict.BOX_FAILED
            here.handle_one(runner)
            here.clock.move(600)
        here.work_off(runner)
        assert seen.value("ade.dead.letters") == 1
        assert seen.value("ade.jobs.ended", state="FAILED", verdict="box_failed", fault="ours") == 1

    def test_waits_by_cap(self, here, seen):
        here.intake.changed(here.drop())
        here.table.pause(Pause(tenant="acme", workflow=None, since=0.0, by="ann"))
        here.handle_one(here.runner())
        assert seen.value("ade.waits", scope="pause") == 1

    def test_heartbeats_missed_and_leases_lost(self, here, seen):
        here.intake.changed(here.drop())
        runner = here.runner()

        class Down:
            def replace(self, *_):
                raise StoreUnavailable("down")

            get = replace

        def outage():
            runner.beats._table = Down()
            here.clock.move(11)
            runner.beats.round()
            here.clock.move(60)

        here.sandbox.during = outage
        here.handle_one(runner)
        assert seen.value("ade.beats.missed") == 1
        assert seen.value("ade.attempts", verdict="lease_lost", fault="ours") == 1

    def test_rescues(self, here, seen):
        here.intake.changed(here.drop())
        lost = here.runner()
        (delivery,) = here.queue.receive(most=1, wait=0, visibility=30)
        lost.worker._admit(here.table.get(delivery.message.job_id))
        lost.close()
        here.runners.remove(lost)
        here.clock.move(60)
        here.runner().janitor.chores()
        assert seen.value("ade.rescues") == 1

    def test_reviews(self, here, seen):
        here.sandbox.asks = True
        here.intake.changed(here.drop(mapping={"review": "always"}))
        here.handle_one(here.runner())
        assert seen.value("ade.reviews") == 1

    def test_a_scan_that_fails(self, here, seen):
        here.drop()
        here.intake._store.level = None
        with pytest.raises(TypeError):
            here.intake.sweep()
        assert seen.value("ade.scans", outcome="failed") == 1

    def test_what_queue_and_table_hold_is_exported_by_the_leader(self, here, seen):
        runner = here.runner()
        here.intake.changed([*here.drop(name="a.csv"), *here.drop(name="b.csv")])
        runner.janitor._led(runner.janitor.recount)
        seen.telemetry.watch(runner.janitor.gauges)
        assert seen.value("ade.queue.messages", kind="ready") == 2
        assert seen.value("ade.jobs", state="QUEUED") == 2
        assert seen.points("ade.queue.oldest")

    def test_who_does_not_lead_says_nothing_of_them(self, here):
        runner = here.runner()
        here.intake.changed([*here.drop(name="a.csv"), *here.drop(name="b.csv")])
        assert runner.janitor.gauges() == {}, "it does not lead"
        runner.janitor._led(runner.janitor.recount)
        here.clock.move(5)
        found = runner.janitor.gauges()
        assert found["ade.queue.messages", "ready"] == 2
        assert found["ade.queue.oldest", ""] == 5.0
        assert found["ade.jobs", "QUEUED"] == 2


def test_every_metric_is_shown_once_and_named_as_prometheus_wants():
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert len({metric.prometheus for metric in METRICS}) == len(METRICS)
