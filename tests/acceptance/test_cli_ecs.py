"""A runner in an ECS task asks its agent for protection while it works, and works all the same without an answer."""

from pathlib import Path

from infra.deploy.local_cloud import free_port
from tests.acceptance.ade import Ade
from tests.support.ecs_agent import ecs_agent

TRUSTED = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"}


def test_a_runner_is_protected_while_it_works_and_not_after(tmp_path: Path):
    ade = Ade(tmp_path, TRUSTED)
    job_id = ade.dropped()
    with ecs_agent() as agent:
        ade("run", "--drain", ECS_AGENT_URI=agent.uri, http_proxy="http://127.0.0.1:1")
        assert agent.wishes == [True, False]
    assert ade.state(job_id) == "SUCCEEDED"


def test_a_job_succeeds_where_the_agent_does_not_answer(tmp_path: Path):
    ade = Ade(tmp_path, TRUSTED)
    job_id = ade.dropped()
    done = ade("run", "--drain", ECS_AGENT_URI=f"http://127.0.0.1:{free_port()}")
    assert "protection_failed" in done.err
    assert ade.state(job_id) == "SUCCEEDED"
