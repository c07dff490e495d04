"""A crew of real processes that can be killed, and what must be found when it has done its work."""

import hashlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from core.jobs import ENDED, State
from core.keys import OUTPUTS, WORK
from infra.wiring import Stack
from tests.support.forks import ADE, short_ade

RUN, JANITOR, LISTEN = ("run",), ("janitor", "run"), ("listen",)
_END_SECONDS = 60


class Crew:
    """Commands of `ade`, each a process of its own, under the same settings; started and ended as a context."""

    def __init__(self, commands: Sequence[tuple[str, ...]], env: dict[str, str], log: Path) -> None:
        self._commands = commands
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ADE_")} | env
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []
        self.kills = 0

    def __enter__(self) -> Self:
        self._processes = [self._start(words) for words in self._commands]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill_one(self) -> None:
        """Any of them, at once and without a word; another takes its place."""
        n = random.randrange(len(self._processes))
        self._processes[n].send_signal(signal.SIGKILL)
        self._processes[n].wait()
        self._processes[n] = self._start(self._commands[n])
        self.kills += 1

    def restart_the_dead(self) -> None:
        """What a service manager does with a process that gave up."""
        for n, process in enumerate(self._processes):
            if process.poll() is not None:
                self._processes[n] = self._start(self._commands[n])

    def said(self) -> str:
        """The last words of the crew, for when something went wrong."""
        return self._log.read_text()[-3000:]

    def _start(self, words: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            return subprocess.Popen([str(ADE), *words], env=self.env, stdout=log, stderr=log, start_new_session=True)


def call(env: dict[str, str], *words: str) -> None:
    """One command of `ade`, to its end."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ADE_")} | env
    done = subprocess.run([str(short_ade()), *words], env=clean, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"ade {' '.join(words)} exited with {done.returncode}\n{done.stderr[-2000:]}"


def ended(stack: Stack) -> int:
    return sum(n for state, n in stack.table.counts().items() if state in ENDED)


def check_outcome(stack: Stack, drops: int) -> None:
    """Every drop one result, all of it whole, nothing left over."""
    assert stack.table.counts() == {State.SUCCEEDED: drops}
    results = [k for k in stack.store.keys(OUTPUTS) if k.endswith("/result.json")]
    assert len(results) == drops
    assert len({k.rsplit("/", 3)[0] for k in results}) == drops, "a drop has two results"
    for key in results:
        told = json.loads(stack.store.read(key, limit=1 << 20))
        assert told["status"] == "SUCCEEDED"
        for file in told["files"]:
            body = stack.store.read(key.replace("result.json", file["name"]), limit=1 << 26)
            assert hashlib.sha256(body).hexdigest() == file["sha256"], f"{key}: {file['name']} differs from its hash"
    assert not list(stack.store.keys(WORK)), "work/ is not empty"
