"""What people who tried it for the first time stumbled over."""

import io
import json
import logging
import subprocess
import time
from dataclasses import replace

import pytest

from core.jobs import Lease, State
from core.settings import Settings
from infra.logs import ForeignLogs, Log
from infra.wiring import open_stack
from tests.acceptance.ade import ADE, Ade


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgresql://ade@127.0.0.1:1/ade", "dynamodb://jobs?endpoint=http://127.0.0.1:1"])
def test_a_table_that_does_not_answer_is_named_at_once(ade: Ade, url):
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    command = subprocess.Popen(
        [ADE, "jobs"], env=ade.environment(ADE_TABLE_URL=url, **keys), stderr=subprocess.PIPE, text=True
    )
    try:
        began = time.monotonic()
        said = command.stderr.readline()
        assert "does not answer" in said
        assert "127.0.0.1" in said
        assert time.monotonic() - began < 20, "long before the half minute for which it tries"
    finally:
        command.kill()
        command.communicate()


def test_the_doctor_sees_jobs_of_a_dead_process_before_their_lease_is_over(ade: Ade):
    job_id = ade.dropped()
    with open_stack(Settings.from_env(ade.environment())) as stack:
        job = stack.table.get(job_id)
        lease = Lease(owner="runner-here-1-dead", expires=stack.clock.now() + 600)
        stack.table.replace(job, replace(job, state=State.RUNNING, lease=lease, fence=job.fence + 1))
    (ade.data / "run/runner-here-1-dead.lock").touch()  # whose lock nobody holds
    checks = ade("doctor", "--json", expect=1).json["checks"]
    (orphans,) = [check for check in checks if check["name"] == "orphans"]
    assert job_id in orphans["said"]
    assert "ade run" in orphans["remedy"]


def test_what_a_library_logs_is_an_event_of_ours(capfd):
    stream = io.StringIO()
    ForeignLogs.capture("apscheduler", Log(stream=stream))
    logging.getLogger("apscheduler.executors.default").warning("Run time of job %s was missed", "sweep")
    event = json.loads(stream.getvalue())
    assert (event["event"], event["library"]) == ("library_logged", "apscheduler.executors.default")
    assert event["message"] == "Run time of job sweep was missed"
    assert capfd.readouterr() == ("", "")
