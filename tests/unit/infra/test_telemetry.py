"""What a process counts, how it shows it, and that it costs nothing to have traces off."""

import io
import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from core.errors import SettingsError
from handlers.sources.aws_lambda import EMBEDDED, EmbeddedMetrics
from infra.meters import METRICS, SNAPSHOT, Meters, exposition, read_snapshots
from infra.metrics_server import MetricsServer
from infra.telemetry import GAUGES, Telemetry, exporting
from tests.support.console import api_rig

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "infra" / "deploy"
# What the console shows from the table and the queue, besides what processes count.
CONSOLE = ("ade_jobs", "ade_queue_messages", "ade_queue_oldest_seconds", "ade_review_waiting", "ade_pauses")


def test_counters_and_histograms_are_shown_as_prometheus_wants_them():
    meters = Meters()
    meters.add("ade.waits", scope="tenant")
    meters.add("ade.waits", 2, scope="tenant")
    meters.observe("ade.pass", 0.3, **{"pass": "write"})
    meters.observe("ade.pass", 400.0, **{"pass": "write"})
    lines = exposition({"": meters.snapshot()})
    assert 'ade_waits_total{scope="tenant"} 3' in lines
    assert 'ade_pass_seconds_bucket{pass="write",le="0.25"} 0' in lines
    assert 'ade_pass_seconds_bucket{pass="write",le="0.5"} 1' in lines
    assert 'ade_pass_seconds_bucket{pass="write",le="+Inf"} 2' in lines
    assert 'ade_pass_seconds_count{pass="write"} 2' in lines
    assert 'ade_pass_seconds_sum{pass="write"} 400.3' in lines
    assert lines.count("# TYPE ade_waits_total counter") == 1


def test_a_measurement_below_zero_counts_as_none():
    meters = Meters()
    meters.observe("ade.queue.wait", -5.0)  # clocks differ
    assert "ade_queue_wait_seconds_sum 0" in exposition({"": meters.snapshot()})


def test_the_processes_of_a_machine_are_distinguished(tmp_path):
    for owner in ("up-1", "runner-2"):
        meters = Meters()
        (tmp_path / owner).mkdir()
        meters.add("ade.rescues")
        stop = meters.write_to(tmp_path / owner / SNAPSHOT)
        (tmp_path / owner / SNAPSHOT).write_text(json.dumps(meters.snapshot()))
        if owner == "runner-2":
            stop()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / SNAPSHOT).write_text("{")
    found = read_snapshots(tmp_path)
    assert list(found) == ["up-1"], "one ended, one is damaged"
    assert 'ade_rescues_total{process="up-1"} 1' in exposition(found)
    assert not (tmp_path / "runner-2").exists()


def test_a_snapshot_of_another_release_shows_what_is_known():
    lines = exposition({"p": {"metrics": 1, "series": [[["ade.new"], 1, None], [["ade.rescues"], 2, None]]}})
    assert 'ade_rescues_total{process="p"} 2' in lines
    assert not [line for line in lines if "ade_new" in line]


def test_a_process_without_a_console_shows_its_metrics_over_http():
    meters = Meters()
    meters.add("ade.rescues")
    server = MetricsServer("127.0.0.1:0", meters)
    try:
        with urllib.request.urlopen(f"{server.address}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert b"ade_rescues_total 1\n" in answer.read()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{server.address}/", timeout=10)
        with pytest.raises(SettingsError, match="free port"):
            MetricsServer(server.address.removeprefix("http://"), meters)
    finally:
        server.close()


def test_an_invocation_of_lambda_is_one_line_of_embedded_metrics():
    stream, telemetry = io.StringIO(), Telemetry()
    telemetry.meters.add("ade.jobs.recorded", 7, what="created")
    with EmbeddedMetrics(telemetry, "ade", stream).invocation():
        telemetry.meters.add("ade.jobs.recorded", 2, what="created")
        telemetry.meters.add("ade.events.refused")
    line = json.loads(stream.getvalue())
    (about,) = line["_aws"]["CloudWatchMetrics"]
    assert about["Namespace"] == "ade"
    assert {metric["Name"] for metric in about["Metrics"]} == {*EMBEDDED, "InvocationSeconds"} == line.keys() - {"_aws"}
    assert (line["JobsCreated"], line["EventsRefused"], line["ScansFailed"]) == (2, 1, 0)


def test_an_invocation_that_fails_is_measured_too_and_still_fails():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="x"), EmbeddedMetrics(Telemetry(), "ade", stream).invocation():
        raise ValueError("x")
    assert stream.getvalue()


def test_without_a_namespace_lambda_writes_no_metrics():
    stream = io.StringIO()
    with EmbeddedMetrics(Telemetry(), "", stream).invocation():
        pass
    assert not stream.getvalue()


def test_switched_off_nothing_of_opentelemetry_is_imported():
    words = "import sys, console.cli.commands.up, handlers.sources.aws_lambda; print([m for m in sys.modules if 'opentelemetry' in m])"
    done = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_switching_it_on_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"ade-drop\[telemetry\]"), exporting(on=True, role="x"):
        pass


def test_the_docs_list_every_metric():
    page = (ROOT / "docs" / "guides" / "telemetry.md").read_text()
    for metric in METRICS:
        labels = "".join(f"`{label}`" for label in metric.labels)
        assert f"| `{metric.prometheus}` |" in page, metric.prometheus
        assert all(f"`{label}`" in page for label in metric.labels), labels
    for name in (*CONSOLE, *GAUGES, *EMBEDDED):
        assert f"`{name}`" in page, name


def known(expression):
    """Every metric that an expression of Prometheus names."""
    shown = {metric.prometheus for metric in METRICS}
    shown |= {f"{m.prometheus}_{part}" for m in METRICS if m.kind == "histogram" for part in ("bucket", "sum", "count")}
    return set(re.findall(r"\bade_[a-z_]+", expression)) - shown - set(CONSOLE)


def test_every_alert_and_every_panel_uses_metrics_that_exist():
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())["groups"][0]["rules"]
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    expressions = [rule["expr"] for rule in rules]
    expressions += [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(expressions) > 20
    assert {name for expression in expressions for name in known(expression)} == set()
    for rule in rules:
        assert {"summary", "remedy"} <= rule["annotations"].keys(), rule["alert"]


def watched() -> set[tuple[str, str]]:
    """What alerts watch the increase of: each metric with its one condition."""
    rules = (DEPLOY / "prometheus-rules.yaml").read_text()
    return set(re.findall(r"increase\((ade_\w+)(?:\{(\w+=\"\w+\")\})?\[", rules))


def test_what_alerts_watch_the_increase_of_is_there_before_it_happens():
    """A series that appears at 1 has not increased, for Prometheus; so the first event would raise no alert."""
    lines = [line for line in exposition({"": Meters().snapshot()}) if not line.startswith("#")]
    assert len(watched()) > 6
    for name, condition in watched():
        fitting = [line for line in lines if line.startswith(name) and condition in line]
        assert fitting, (name, condition)
        assert all(line.endswith(" 0") for line in fitting)


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="there is no promtool (Debian: apt-get install prometheus)"
)
class TestByPromtool:
    @staticmethod
    def run(*words: str, given: str | None = None) -> str:
        done = subprocess.run(
            ["promtool", *words], input=given, capture_output=True, text=True, timeout=60, check=False
        )
        told = done.stdout + done.stderr
        assert done.returncode == 0, told
        return told

    def test_the_rules_are_valid(self):
        assert "SUCCESS" in self.run("check", "rules", str(DEPLOY / "prometheus-rules.yaml"))

    def test_alerts_are_raised_when_they_should_be_and_only_then(self, tmp_path: Path):
        rules = DEPLOY / "prometheus-rules.yaml"
        by_name = {rule["alert"]: rule for rule in yaml.safe_load(rules.read_text())["groups"][0]["rules"]}
        cases = yaml.safe_load((Path(__file__).parent / "prometheus-alerts.yaml").read_text())
        for moment in (moment for case in cases["tests"] for moment in case["alert_rule_test"]):
            rule = by_name[moment["alertname"]]
            moment["exp_alerts"] = [
                {
                    "exp_labels": rule["labels"],
                    "exp_annotations": {
                        name: re.sub(r"{{.*?}}", alert.get("value", ""), text)
                        for name, text in rule["annotations"].items()
                    },
                }
                for alert in moment["exp_alerts"]
            ]
        made = tmp_path / "alerts.yaml"
        made.write_text(yaml.safe_dump(cases | {"rule_files": [str(rules)], "evaluation_interval": "1m"}))
        self.run("test", "rules", str(made))

    def test_what_a_process_shows_is_valid(self):
        meters = Meters()
        for metric in METRICS:
            change = meters.observe if metric.kind == "histogram" else meters.add
            change(metric.name, 0.3, **dict.fromkeys(metric.labels, 'odd "\\name\n'))
        shown = "".join(f"{line}\n" for line in exposition({"one": meters.snapshot(), "two": Meters().snapshot()}))
        assert self.run("check", "metrics", given=shown) == ""

    def test_what_the_console_shows_is_valid(self, tmp_path: Path):
        with api_rig(tmp_path) as rig:
            rig.failed("a")
            rig.client.get("/jobs")
            shown = rig.client.get("/metrics").text
        assert {f"# TYPE {name} gauge" for name in CONSOLE} <= set(shown.splitlines())
        assert self.run("check", "metrics", given=shown) == ""


def test_every_metric_has_a_panel():
    board = (DEPLOY / "grafana-dashboard.json").read_text()
    assert [metric.prometheus for metric in METRICS if metric.prometheus not in board] == []
