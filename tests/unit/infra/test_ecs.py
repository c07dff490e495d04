"""Scale-in protection: asked of a real HTTP agent while jobs run, prolonged, given back, and never in a job's way."""

import io
import json
from collections.abc import Iterator

import pytest

from infra.aws.ecs import Agent, Pace, TaskShield, task_shield
from infra.deploy.local_cloud import free_port
from infra.logs import Log
from tests.support.ecs_agent import EcsAgent, ecs_agent

PACE = Pace()


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def agent() -> Iterator[EcsAgent]:
    with ecs_agent() as playing:
        yield playing


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def shield(agent: EcsAgent, time: Time, said: io.StringIO) -> TaskShield:
    return TaskShield(Agent(agent.uri), Log(stream=said), monotonic=time)


def test_an_idle_task_asks_for_nothing(shield: TaskShield, agent: EcsAgent):
    shield.round()
    assert agent.asked == []


def test_a_job_protects_the_task_for_some_minutes(shield: TaskShield, agent: EcsAgent):
    shield.busy(1)
    shield.round()
    assert agent.asked == [{"ProtectionEnabled": True, "ExpiresInMinutes": PACE.expires // 60}]
    assert agent.paths == ["/api/task/task-protection/v1/state"]


def test_a_second_job_does_not_ask_again(shield: TaskShield, agent: EcsAgent):
    for jobs in (1, 2, 1):
        shield.busy(jobs)
        shield.round()
    assert agent.wishes == [True]


def test_a_long_job_prolongs_before_the_protection_runs_out(shield: TaskShield, agent: EcsAgent, time: Time):
    shield.busy(1)
    shield.round()
    time.now += shield.round()
    shield.round()
    assert agent.wishes == [True, True]
    assert time.now - 1000 < PACE.expires / 2


def test_the_end_of_the_last_job_gives_the_protection_back(shield: TaskShield, agent: EcsAgent, time: Time):
    shield.busy(1)
    shield.round()
    shield.busy(0)
    time.now += shield.round()
    shield.round()
    assert agent.wishes == [True, False]


def test_a_job_that_follows_at_once_keeps_the_protection(shield: TaskShield, agent: EcsAgent, time: Time):
    shield.busy(1)
    shield.round()
    shield.busy(0)
    time.now += PACE.linger / 2
    shield.round()
    shield.busy(1)
    time.now += PACE.linger
    shield.round()
    assert agent.wishes == [True]


def test_a_task_that_is_never_idle_lets_itself_be_replaced(shield: TaskShield, agent: EcsAgent, time: Time):
    shield.busy(2)
    shield.round()
    time.now += PACE.stretch
    assert not shield.ready(), "a stretch that is over takes no new job"
    shield.busy(0)
    shield.round()
    assert agent.wishes == [True, False]
    assert not shield.ready(), "ECS gets a moment to end the task"
    time.now += PACE.rest
    assert shield.ready()


def test_jobs_of_an_overlong_stretch_stay_protected(shield: TaskShield, agent: EcsAgent, time: Time):
    shield.busy(1)
    shield.round()
    time.now += PACE.stretch
    shield.round()
    assert agent.wishes == [True, True]


class TestAnAgentThatFails:
    @pytest.mark.parametrize(
        "answer",
        [
            (500, b"{}"),
            (403, b'{"error": {"Code": "AccessDeniedException"}}'),
            (200, b'{"failure": {"Reason": "TASK_NOT_VALID", "Detail": "no service"}}'),
            (200, b"not json"),
            (200, b"[]"),
        ],
        ids=["broken", "no right", "refused", "no JSON", "no object"],
    )
    def test_is_logged_and_asked_again_after_a_pause(
        self, shield: TaskShield, agent: EcsAgent, time: Time, said: io.StringIO, answer: tuple[int, bytes]
    ):
        well, agent.answer = agent.answer, answer
        shield.busy(1)
        assert shield.round() == PACE.retry
        shield.round()
        assert agent.wishes == [True], "no second call before the pause is over"
        assert json.loads(said.getvalue())["event"] == "protection_failed"
        agent.answer = well
        time.now += PACE.retry
        shield.round()
        assert agent.wishes == [True, True]
        assert shield.round() == PACE.renew

    def test_that_is_not_there_stops_nobody(self, time: Time, said: io.StringIO):
        shield = TaskShield(Agent(f"http://127.0.0.1:{free_port()}"), Log(stream=said), monotonic=time)
        shield.start()
        shield.busy(1)
        assert shield.ready()
        shield.stop()


def test_the_thread_protects_by_itself_and_gives_back_at_the_end(agent: EcsAgent):
    shield = TaskShield(Agent(agent.uri), Log(stream=io.StringIO()))
    shield.start()
    shield.busy(1)
    agent.wait_for([True])
    shield.busy(0)
    shield.stop()
    assert agent.wishes == [True, False]


@pytest.mark.parametrize("environment", [{}, {"ECS_AGENT_URI": ""}, {"ECS_AGENT_URI": "file:///etc/passwd"}])
def test_elsewhere_there_is_no_shield(environment: dict[str, str]):
    assert task_shield(environment, Log()) is None
