"""Queues under trouble, ours and others, on one PostgreSQL server in one run: what is kept of the rate, and when it is back.

    python -m tests.bench queue [--only WAY ...] [--troubles TROUBLE ...] [--seconds 4]

The method is that of hardbyte/postgresql-job-queue-benchmarking. Two worker processes each, restarted at once when they
end, as a service manager does; jobs that do nothing; always enough that wait. Ours are two of `ade run`, or the two that
`ade run --processes 2` forks, of which one is killed and the supervisor is not; `ade janitor run` stands beside them. One
trouble after the other, with a quiet time before and after each. `kept`: jobs done while a trouble lasts, of those that the
mean rate of the two quiet times would have done, so that a busier moment of the machine hits both. `back after`: seconds from
its end until a whole second had four fifths of the rate before it. huey has no server, so only the kills concern it.
"""

import argparse
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.harness.environments import PEERS, ROOT, own_environment, own_versions, python_of, versions_of
from tests.bench.harness.figures import Figure, Report, Section
from tests.bench.harness.process_trees import tree
from tests.support.postgres_server import Cluster, cluster

NAME = "queue"
TITLE = "Queues under trouble"
OURS, SUPERVISED = "ade-drop", "ade-drop, --processes 2"
WAYS = (OURS, SUPERVISED, "procrastinate", "pgqueuer", "awa", "huey on SQLite")
CONNECTIONS = 60
_SERVER = f"max_connections = {CONNECTIONS}\nshared_buffers = 256MB\nmax_wal_size = 2GB\n"
_WORKERS = 2
_KILL_EVERY = 2.0
_LONGEST_BACK = 30.0
_STEP = 0.1


class Crew:
    """Worker processes of one way, restarted when they end, and a sender that keeps enough jobs waiting."""

    def __init__(self, way: str, url: str, folder: Path) -> None:
        self._way, self._url, self._folder = way, url, folder
        self._done = folder / "done"
        self._done.touch()
        self._read, self._seen = 0, set[int]()
        self.times: list[float] = []  # when each job was first seen to be done
        self._sent = 0
        self._ours = way in (OURS, SUPERVISED)
        self._least = 300 if self._ours else 5_000  # that wait; peers insert in bulk, ours records drops one by one
        workers = [("work", str(_WORKERS))] if way == SUPERVISED else [("work",)] * _WORKERS
        self._words: list[tuple[str, ...]] = [*workers, *([("janitor",)] if self._ours else [])]
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._workers: list[subprocess.Popen[bytes]] = []

    def command(self, *words: str) -> list[str]:
        if self._ours:
            return [sys.executable, "-m", "tests.bench.queue_worker", words[0], self._url, *words[1:]]
        script = PEERS / "queues" / f"{self._way.split()[0]}_worker.py"
        return [str(python_of("queues")), str(script), words[0], self._url, *words[1:]]

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        env = own_environment(BENCH_DONE=str(self._done), BENCH_FOLDER=str(self._folder / "data"), PYTHONPATH=str(ROOT))
        with (self._folder / f"said-{words[0]}").open("ab") as said:
            return subprocess.Popen(
                self.command(*words), env=env, cwd=ROOT, stdout=said, stderr=said, start_new_session=True
            )

    def call(self, *words: str) -> bool:
        return self.start(*words).wait() == 0

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        if not self.call("init"):
            raise SystemExit(f"{self._way}: init failed\n{(self._folder / 'said-init').read_text()[-2000:]}")
        self._send(self._least)
        self._workers = [self.start(*words) for words in self._words]
        chores = [threading.Thread(target=turn, daemon=True) for turn in (self._watch, self._keep_waiting)]
        for thread in chores:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in chores:
                thread.join()
            for worker in self._workers:
                kill(worker)

    def kill_one(self) -> None:
        with self._lock:
            if self._way == SUPERVISED:
                _, *forks = tree(self._workers[0].pid)
                os.kill(random.choice(forks), signal.SIGKILL)
                return
            n = random.randrange(_WORKERS)
            kill(self._workers[n])
            self._workers[n] = self.start("work")

    def rate(self, since: float, until: float) -> float:
        return sum(since <= at < until for at in self.times) / (until - since)

    def _send(self, count: int) -> None:
        if self.call("send", str(self._sent), str(self._sent + count)):
            self._sent += count

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            with self._lock:
                for n, worker in enumerate(self._workers):
                    if worker.poll() is not None:
                        self._workers[n] = self.start(*self._words[n])
            with self._done.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read += len(whole)
            now = time.monotonic()
            for line in whole.split():
                if (number := int(line)) not in self._seen:
                    self._seen.add(number)
                    self.times.append(now)

    def _keep_waiting(self) -> None:
        """Enough for several seconds at the rate of the last ones."""
        while not self._ended.wait(0.2):
            now = time.monotonic()
            if self._sent - len(self._seen) < (wanted := max(self._least, int(10 * self.rate(now - 3, now)))):
                self._send(wanted)


def kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def restart(_: Crew, server: Cluster, seconds: float) -> None:
    del seconds
    server.stop()
    server.start()


def kill_backends(_: Crew, server: Cluster, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(psycopg.Error), psycopg.connect(server.url, autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        time.sleep(1.0)


def exhaust(_: Crew, server: Cluster, seconds: float) -> None:
    """Take every connection that is left, as a program with a leak does."""
    held: list[Any] = []
    with contextlib.suppress(psycopg.Error):
        while len(held) < CONNECTIONS:
            held.append(psycopg.connect(server.url))
    time.sleep(seconds)
    for one in held:
        one.close()


def idle_in_transaction(_: Crew, server: Cluster, seconds: float) -> None:
    with psycopg.connect(server.url) as db:
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        db.execute("SELECT count(*) FROM pg_class").fetchone()
        time.sleep(seconds)


def read_actively(_: Crew, server: Cluster, seconds: float) -> None:
    """Two reports that scan a table of their own all the time."""

    def scan() -> None:
        until = time.monotonic() + seconds
        with psycopg.connect(server.url, autocommit=True) as db:
            while time.monotonic() < until:
                db.execute("SELECT sum(n), count(DISTINCT n % 1000) FROM generate_series(1, 200000) AS n").fetchone()

    readers = [threading.Thread(target=scan) for _ in range(2)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()


def kill_workers(crew: Crew, _: Cluster, seconds: float) -> None:
    for _turn in range(round(2 * seconds / _KILL_EVERY)):
        crew.kill_one()
        time.sleep(_KILL_EVERY)


TROUBLES: dict[str, Callable[[Crew, Cluster, float], None]] = {
    "workers killed every 2 s": kill_workers,
    "server restarted": restart,
    "backends killed": kill_backends,
    "pool exhausted": exhaust,
    "idle in transaction": idle_in_transaction,
    "active readers": read_actively,
}


def measure(way: str, server: Cluster, folder: Path, seconds: float, troubles: Sequence[str]) -> dict[str, Figure]:
    url = server.url
    if way.startswith("huey"):
        url = str(folder / "huey.sqlite")
    else:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {folder.name}")  # type: ignore[arg-type]
        url = f"{server.url.rpartition('/')[0]}/{folder.name}"
    crew = Crew(way, url, folder)
    found: dict[str, float] = {}
    with crew.working():
        until = time.monotonic() + _LONGEST_BACK
        while len(crew.times) < 20:
            if time.monotonic() > until:
                raise SystemExit(f"{way} does nothing:\n{(folder / 'said-work').read_text()[-3000:]}")
            time.sleep(_STEP)
        time.sleep(2.0)
        quiet = [quiet_rate(crew, 2 * seconds)]
        for name, trouble in TROUBLES.items():
            if name not in troubles or (way.startswith("huey") and trouble is not kill_workers):
                continue
            began = time.monotonic()
            trouble(crew, server, seconds)
            ended = time.monotonic()
            found[f"{name}: back after s"] = back = back_after(crew, quiet[-1], ended)
            quiet.append(quiet_rate(crew, 2 * seconds))
            kept = 100 * crew.rate(began, ended) / (statistics.mean(quiet[-2:]) or 1e-9)
            found[f"{name}: kept %"] = kept
            rates = f"{crew.rate(began, ended):.1f} jobs/s, {quiet[-2]:.1f} before and {quiet[-1]:.1f} after"
            print(f"  {way}: {name}: kept {kept:.0f} % ({rates}), back after {back:.1f} s", flush=True)
    found["quiet jobs/s"] = statistics.median(quiet)
    return {name: Figure.of([value]) for name, value in found.items()}


def quiet_rate(crew: Crew, seconds: float) -> float:
    began = time.monotonic()
    time.sleep(seconds)
    return crew.rate(began, time.monotonic())


def back_after(crew: Crew, quiet: float, since: float) -> float:
    while (now := time.monotonic()) < since + _LONGEST_BACK:
        if now >= since + 1 and crew.rate(now - 1, now) >= 0.8 * quiet:
            return now - 1 - since
        time.sleep(_STEP)
    return _LONGEST_BACK


def main(words: list[str]) -> Report:
    parser = argparse.ArgumentParser(
        prog="queue", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=WAYS)
    parser.add_argument("--troubles", nargs="*", choices=list(TROUBLES), default=list(TROUBLES))
    parser.add_argument("--seconds", type=float, default=4.0, help="how long a trouble lasts")
    asked = parser.parse_args(words)
    found: dict[str, dict[str, Figure]] = {}
    with cluster(_SERVER) as server, tempfile.TemporaryDirectory(prefix="ade-bench-") as name:
        for number, way in enumerate(asked.only or WAYS):
            folder = Path(name) / f"bench_{number}"
            folder.mkdir()
            found[way] = measure(way, server, folder, asked.seconds, asked.troubles)
        with psycopg.connect(server.url) as db:
            version = str(db.execute("SHOW server_version").fetchone()[0]).split()[0]  # type: ignore[index]
    turned = {
        figure: {way: figures[figure] for way, figures in found.items() if figure in figures}
        for figure in dict.fromkeys(name for figures in found.values() for name in figures)
    }
    section = Section(
        title="Rate kept, and time until it is back",
        command="make bench ARGS=queue",
        ways=turned,
        repeats=1,
        note="`back after` of 30 means: not within that time.",
    )
    versions = own_versions() | {"PostgreSQL": version} | versions_of("queues")
    return Report(
        name=NAME,
        title=TITLE,
        sections=[section],
        versions=versions,
        whole=asked.only is None and len(asked.troubles) == len(TROUBLES),
    )


def quick() -> list[Section]:
    """Nothing that could run in seconds."""
    return []
