"""Hostile rules against every strength of box that this host can give, as root, as a plain user and in a container.

Each test starts `tests.abuse.suite` as that user and reads its verdicts: nothing got through, every end was one that
the case allows, nothing was left behind, and the next job ran as if nothing had been.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from runner.sandbox.session import OWN_ROOT
from tests.abuse.cases import CASES
from tests.support.effort import FULL

pytestmark = pytest.mark.slow
ROOT = os.geteuid() == 0
# Every case at the default level and for a plain user in a container, the strongest and the weakest place. Other users and
# boxes, and cold ones, which cost ten times as much, take a part of the cases unless asked for all.
EVERY = 1 if FULL else 3
CATEGORIES = {
    "read",
    "secrets",
    "network",
    "process",
    "kernel",
    "resources",
    "tampering",
    "outputs",
    "crash",
    "channel",
}


def needed(what: str) -> None:
    """Skip at a desk that lacks something; in CI the host has to have it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing in CI; .ci/run has to provide it")
    pytest.skip(f"needs {what}")


@pytest.fixture
def place():
    """A folder that other users can walk to, which pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="ade-abuse-place-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def suite(folder: Path, *options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the boxes of one kind promise, and how every case ended in them."""
    command = [sys.executable, "-m", "tests.abuse.suite", "--dir", str(folder), *options]
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    ran = subprocess.run(command, cwd=OWN_ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"the suite broke after {len(lines)} lines:\n{ran.stderr[-3000:]}"
    return lines[0], lines[1:]


def check(outcomes: list[dict[str, Any]], *, every: int = 1) -> None:
    assert len(outcomes) == len(CASES[::every])
    bad = [
        f"{o['case']}: {o['verdict']} ({o['message']}){' GOT THROUGH' if o['through'] else ''} left={o['left']} "
        f"next job ok={o.get('next', True)} {o['log']}"
        for o in outcomes
        if o["through"] or o["left"] or not o["expected"] or not o.get("next", True)
    ]
    assert not bad, "\n".join(bad)


def as_plain() -> list[str]:
    return ["--plain"] if ROOT else []


@pytest.mark.parametrize("every", [1, EVERY])
def test_there_are_cases_of_every_kind(every):
    assert len(CASES[::every]) >= 40
    assert {case.category for case in CASES[::every]} == CATEGORIES


def test_nothing_gets_through_at_the_default_level(place):
    found, outcomes = suite(place)
    if ROOT and found["level"] != "isolated":
        needed("user namespaces")
    check(outcomes)


def test_nothing_gets_through_for_a_plain_user(place):
    if not ROOT:
        pytest.skip("needs root, to become another user")
    found, outcomes = suite(place, "--plain", "--every", str(EVERY))
    if found["level"] != "isolated":
        needed("user namespaces for plain users")
    check(outcomes, every=EVERY)


@pytest.mark.parametrize("user", ["root", "plain"])
def test_nothing_gets_through_in_a_container_without_privileges(place, user):
    if not ROOT:
        pytest.skip("needs root, to become a container")
    every, options = (1, ["--plain"]) if user == "plain" else (EVERY, [])
    found, outcomes = suite(place, "--contained", "--every", str(every), *options)
    assert found["level"] == "confined"
    assert not found["rungs"]["namespaces"]
    check(outcomes, every=every)


@pytest.mark.long
def test_nothing_gets_through_when_every_box_starts_cold(place):
    found, outcomes = suite(place, "--cold", "--every", str(EVERY))
    assert not found["rungs"]["warm"]
    check(outcomes, every=EVERY)


def test_nothing_gets_through_bubblewrap(place):
    if shutil.which("bwrap") is None:
        needed("bubblewrap")
    found, outcomes = suite(place, "--cold", "--build", "bubblewrap", "--every", str(EVERY), *as_plain())
    assert found["level"] == "isolated"
    check(outcomes, every=EVERY)


@pytest.mark.long
def test_the_process_driver_lets_most_of_it_through(place):
    """Or else the suite could not fail."""
    found, outcomes = suite(
        place, "--driver", "process", "--only", "^(read|secrets|network|process|kernel)/", *as_plain()
    )
    through = {outcome["case"] for outcome in outcomes if outcome["through"]}
    assert found["level"] == "limits"
    assert len(through) >= 35
    assert {"secrets/the runner's environment", "network/TCP to the host", "process/fork"} <= through
