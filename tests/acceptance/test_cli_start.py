"""What a long-lived process owes to whoever starts it: a clear refusal, and a sign of life."""

from pathlib import Path

import pytest

from runner.janitor import ALIVE
from tests.acceptance.ade import Ade

WEAK = {"ADE_SANDBOX": "process"}  # gives level `limits` on every host


@pytest.fixture
def ade(tmp_path: Path) -> Ade:
    return Ade(tmp_path, WEAK)


@pytest.mark.parametrize("words", [("run", "--drain"), ("run", "--json"), ("up",)])
def test_a_runner_refuses_to_start_below_the_level_that_was_asked_for(ade: Ade, words: tuple[str, ...]):
    job_id = ade.dropped()
    done = ade(*words, expect=5, ADE_SANDBOX_MIN_LEVEL="isolated")
    for part in ("this runner does not start", "'isolated'", "'limits'", "docs/explanation/sandbox.md"):
        assert part in done.err
    job = ade("status", job_id, "--json").json
    assert (job["state"], job["attempts_total"]) == ("QUEUED", 0)


def test_a_runner_starts_at_the_level_that_was_asked_for(ade: Ade):
    job_id = ade.dropped()
    ade("run", "--drain", ADE_SANDBOX_MIN_LEVEL="limits")
    assert ade.state(job_id) == "SUCCEEDED"


def test_the_default_level_refuses_configs_and_not_the_start(ade: Ade):
    """A drop without Python runs at every level."""
    job_id = ade.dropped()
    ade("run", "--drain")
    assert ade.state(job_id) == "SUCCEEDED"


def test_the_janitor_runs_nobodys_code_and_starts_at_every_level(ade: Ade):
    ade("janitor", "run-once", ADE_SANDBOX_MIN_LEVEL="isolated")


def test_a_runner_leaves_a_sign_of_life(ade: Ade):
    ade("run", "--drain")
    assert (ade.data / "run" / "runner.alive").exists()


def test_a_janitor_leaves_a_sign_of_life_and_says_so(ade: Ade):
    with ade.up("janitor", "run", "--json", first="janitor_started") as running:
        assert running.wait_for(lambda event: event["event"] == ALIVE)["level"] == "info"
        assert (ade.data / "run" / "janitor.alive").exists()
        assert running.end() == 0
