"""Runners that die are replaced; those that end by themselves are not, and a failure of one ends all."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from console.cli.guard import Exit
from console.cli.supervisor import Supervisor
from infra.logs import Log

SOON = 60.0  # more than anything here takes; only a failing test sits it out


def supervised(work: Callable[[], int], *, processes: int = 1) -> tuple[int, list[dict[str, object]]]:
    said = io.StringIO()
    code = Supervisor(work, Log(stream=said), processes=processes).run()
    return code, [json.loads(line) for line in said.getvalue().splitlines()]


def starts(folder: Path) -> int:
    return len(list(folder.glob("start-*")))


def note_start(folder: Path) -> int:
    """How many forks have started, this one included."""
    (folder / f"start-{os.getpid()}").touch()
    return starts(folder)


def test_a_runner_that_is_killed_is_replaced(tmp_path: Path):
    def work() -> int:
        if note_start(tmp_path) < 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return Exit.OK

    code, said = supervised(work)
    assert (code, starts(tmp_path)) == (Exit.OK, 3)
    assert [(line["event"], line["code"]) for line in said] == [("runner_replaced", -signal.SIGKILL)] * 2
    assert [line["restart_in_seconds"] for line in said] == [0.1, 0.2]  # it dies at once, so the next one waits


def test_a_runner_with_a_bug_is_replaced(tmp_path: Path):
    def work() -> int:
        if note_start(tmp_path) == 1:
            raise RuntimeError
        return Exit.OK

    assert supervised(work)[0] == Exit.OK
    assert starts(tmp_path) == 2


def test_one_that_ends_by_itself_leaves_the_others_to_their_work(tmp_path: Path):
    def work() -> int:
        if note_start(tmp_path) == 2:
            return Exit.OK
        until = time.monotonic() + SOON
        while starts(tmp_path) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        (tmp_path / "done").touch()
        return Exit.OK

    code, said = supervised(work, processes=2)
    assert (code, said, starts(tmp_path)) == (Exit.OK, [], 2)
    assert (tmp_path / "done").exists()


def test_one_that_fails_ends_all(tmp_path: Path):
    def work() -> int:
        if note_start(tmp_path) == 2:
            return Exit.UNAVAILABLE
        time.sleep(SOON)  # SIGTERM ends it
        return Exit.OK

    began = time.monotonic()
    assert supervised(work, processes=2)[0] == Exit.UNAVAILABLE
    assert time.monotonic() - began < SOON


_PROGRAM = """
import os, sys, time
from pathlib import Path
from console.cli.supervisor import Supervisor
from infra.logs import Log

def work():
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(60)
    return 0

sys.exit(Supervisor(work, Log(), processes=2).run())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_runner_outlives_its_supervisor(tmp_path: Path, number: signal.Signals):
    with subprocess.Popen([sys.executable, "-c", _PROGRAM, str(tmp_path)]) as process:
        until = time.monotonic() + SOON
        while len(pids := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(SOON) == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
