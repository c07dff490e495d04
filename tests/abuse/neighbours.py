"""What a neighbour notices of each attack of the cost table: p50 and p95 of a quiet tenant's drops and calls, alone and under it.

    python -m tests.abuse.neighbours             prints the third table of docs/explanation/cost.md
    python -m tests.abuse.neighbours sleeping    one attack only
    DROPS=60 python -m tests.abuse.neighbours    more drops for each number

One `ade up` at default settings. The quiet tenant drops one small file after the other and asks for its jobs after each;
quiet and attacked turns alternate, so that whatever else the machine does falls on both. An attacker sends about a MB a
second, or ten requests, for as long as its turn lasts; no two are alike, so that nothing is read from a cache.
"""

import contextlib
import http.client
import itertools
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.ade import Ade, Up
from tests.support.attacks import CSV, MANIFEST, fields, package, put

RATIO = 2.0  # what a neighbour's p95 may grow by
LEAST_SECONDS = 0.03
DROPS = int(os.environ.get("DROPS", "40"))
TURNS = 4
CALM_SECONDS = 3.0
SLEEPERS = 3  # one more than there are slots
HALF_UPLOADS = 40


@dataclass
class Street:
    """A quiet tenant and whoever attacks it."""

    ade: Ade
    up: Up
    address: str
    tokens: dict[str, str]
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def mallory(self) -> Path:
        return self.ade.bucket / "inbox" / "mallory" / f"d{next(self.numbers)}"

    def drop(self) -> float:
        """Seconds from the last byte of a small drop to its end."""
        folder = self.ade.bucket / "inbox" / "acme" / f"d{next(self.numbers)}"
        put(folder, "a.csv", f"{CSV}{folder.name[1:]},x\n")
        began = time.monotonic()
        put(folder, "manifest.json", MANIFEST)
        end = self.up.wait_for(lambda e: e["event"] == "job_ended" and f"/acme/{folder.name}/" in e["outputs"])
        assert end["state"] == "SUCCEEDED", end
        return time.monotonic() - began

    def ask(self) -> float:
        """Seconds that the quiet tenant waits for the list of its jobs."""
        began = time.monotonic()
        assert self.call("acme", "GET", "/jobs?limit=10") == 200
        return time.monotonic() - began

    def call(self, who: str, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> int:
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "Content-Type": kind}
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


Act = Callable[[Street, int], None]


@dataclass(frozen=True)
class Nuisance:
    """`act` is called every `pace` seconds, with a number that grows; `over` once the attack ends."""

    act: Act
    pace: float = 1.0
    over: Callable[[Street], None] = lambda _: None


def mistakes(n: int) -> bytes:
    return b'{"manifest":1,"name":"m%d","fields":[' % n + b",".join([b'""'] * 190_000) + b"]}"


def _manifest(street: Street, n: int) -> None:
    put(street.mallory, "manifest.json", mistakes(n))


def _memory(street: Street, n: int) -> None:
    entries = b",".join(b'{"header":%d}' % (n + i) for i in range(300_000))
    put(street.ade.bucket / "configs" / "mallory", "m.memory.json", b'{"memory":1,"headers":[' + entries + b"]}")
    folder = street.mallory
    put(folder, "a.csv", f"{CSV}{n},x\n")
    put(folder, "manifest.json", MANIFEST)


def _decision(street: Street, n: int) -> None:
    folder = street.mallory
    answers = b",".join(b'{"id":"%d","value":null}' % (n + i) for i in range(8000))
    put(folder, "a.csv", f"{CSV}{n},x\n")
    put(folder, "a.csv.decision.json", b'{"decision":1,"by":"m","answers":[' + answers + b"]}")
    put(folder, "manifest.json", MANIFEST | {"mapping": {"review": "always"}})


def _rejects(street: Street, n: int) -> None:
    """A file that says that it corrects the rejects of jobs which there are not."""
    folder = street.mallory
    rows = "".join(f"mallory-m-{n:08d}:{i},{i},x\n" for i in range(30_000))
    put(folder, "a.csv", f"ade_key,id,name\n{rows}")
    put(folder, "manifest.json", MANIFEST)


def _rules(street: Street, n: int) -> None:
    """Rules that fill what is learnt from a drop (its profile) with columns."""
    folder = street.mallory
    put(folder, "a.csv", ",".join(f"h{n}_{i}" for i in range(3000)) + "\n" + ",".join(["1"] * 3000) + "\n")
    put(folder, "manifest.json", fields(400))


def _event(street: Street, n: int) -> None:
    """Notifications of an embedded bucket are changes of files: very many in one folder."""
    folder = street.mallory
    for i in range(300):
        put(folder, f"{n}-{i}.txt", "x")


def _uploads(street: Street, n: int) -> None:
    street.call("mallory", "PUT", f"/uploads/inbox/mallory/u/{n}.bin", os.urandom(1_000_000), "text/csv")


def _check(street: Street, n: int) -> None:
    street.call("mallory", "POST", "/drop/check", mistakes(n))


def _operations(street: Street, n: int) -> None:
    paths = ["/jobs?limit=100", f"/jobs?text={n}", "/overview", "/senders", "/memory", "/review", "/ready", "/metrics"]
    street.call("mallory", "GET", paths[n % len(paths)])
    street.call("mallory", "POST", "/jobs", b'{"tenant":"mallory","keys":[' + b'"a",' * 200_000 + b'"b"]}')


def _pages(street: Street, n: int) -> None:
    connection = http.client.HTTPConnection(street.address, timeout=60)
    path = ["/", "/drop", "/review", "/memory", "/overview", "/login"][n % 6]
    headers = {"Authorization": f"Bearer {street.tokens['mallory']}", "Accept": "text/html"}
    connection.request("GET", f"{path}?next={'x' * 4000}{n}", headers=headers)
    connection.getresponse().read()
    connection.close()


class HalfUploads:
    """Requests that are begun and never finished."""

    def __init__(self) -> None:
        self.open: list[socket.socket] = []

    def act(self, street: Street, n: int) -> None:
        host, _, port = street.address.partition(":")
        for _ in range(4):
            if len(self.open) < HALF_UPLOADS:
                connection = socket.create_connection((host, int(port)), timeout=10)
                head = f"PUT /uploads/inbox/mallory/h/{n}.csv HTTP/1.1\r\nHost: {street.address}\r\n"
                head += f"Authorization: Bearer {street.tokens['mallory']}\r\nContent-Length: 50000000\r\n\r\n"
                connection.sendall(head.encode())
                self.open.append(connection)
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.sendall(b"x" * 25_000)

    def over(self, _street: Street) -> None:
        for connection in self.open:
            connection.close()
        self.open.clear()


def _sleep(street: Street, n: int) -> None:
    make = package({"config/hooks/evil.py": "import time\ndef on_job_start(**_):\n    time.sleep(600)\n"})
    if n < 2 * SLEEPERS:
        make(street.ade.bucket / "inbox" / f"sleeper{n % SLEEPERS}" / f"d{next(street.numbers)}")


def _wake(street: Street) -> None:
    for n in range(SLEEPERS):
        street.ade("pause", "tenant", f"sleeper{n}")
        for job in street.ade("jobs", "--tenant", f"sleeper{n}", "--json").json:
            street.ade("cancel", job["job_id"], expect=None)


_half = HalfUploads()
NUISANCES: dict[str, Nuisance] = {
    "manifest with mistakes": Nuisance(_manifest),
    "memory with mistakes": Nuisance(_memory, pace=3.0),
    "decision": Nuisance(_decision),
    "rejects": Nuisance(_rejects),
    "profile": Nuisance(_rules),
    "events": Nuisance(_event),
    "uploads": Nuisance(_uploads),
    "`/drop/check`": Nuisance(_check),
    "API operations": Nuisance(_operations, pace=0.2),
    "pages": Nuisance(_pages, pace=0.1),
    "half uploads": Nuisance(_half.act, pace=0.2, over=_half.over),
    "sleeping tenants": Nuisance(_sleep, pace=0.05, over=_wake),
}


@contextlib.contextmanager
def attacked(street: Street, nuisance: Nuisance, begin: int) -> Iterator[list[int]]:
    """While the block runs; what it yields has how often the attacker acted."""
    end, acted = threading.Event(), [begin]

    def go_on() -> None:
        while not end.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                nuisance.act(street, acted[0])
            acted[0] += 1
            end.wait(nuisance.pace)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield acted
    finally:
        end.set()
        thread.join(120)


@dataclass
class Waits:
    quiet: list[float] = field(default_factory=list)
    under: list[float] = field(default_factory=list)

    def row(self) -> str:
        p50, p95 = (_at(self.quiet, share) for share in (0.5, 0.95))
        hit50, hit95 = (_at(self.under, share) for share in (0.5, 0.95))
        return f"{p50:.2f} / {p95:.2f} | {hit50:.2f} / {hit95:.2f} | {self.ratio:.1f}"

    @property
    def ratio(self) -> float:
        """Of the p95 under attack and the quiet one; below LEAST_SECONDS it would say more of the machine."""
        quiet, under = (max(_at(values, 0.95), LEAST_SECONDS) for values in (self.quiet, self.under))
        return under / quiet


def _at(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def measure(street: Street, nuisance: Nuisance) -> tuple[Waits, Waits]:
    """The quiet tenant's drops and calls, in turns."""
    drops, calls, acted = Waits(), Waits(), 0
    for _ in range(TURNS):
        for _ in range(DROPS // TURNS):
            drops.quiet.append(street.drop())
            calls.quiet.append(street.ask())
        with attacked(street, nuisance, acted) as counted:
            for _ in range(DROPS // TURNS):
                drops.under.append(street.drop())
                calls.under.append(street.ask())
        acted = counted[0]
        nuisance.over(street)
        time.sleep(CALM_SECONDS)
        street.drop()
    return drops, calls


def measure_sleepers(street: Street, nuisance: Nuisance) -> tuple[Waits, Waits]:
    """Who sleeps cannot be stopped in turns: all quiet drops come first."""
    drops, calls = Waits(), Waits()
    for waits in ("quiet", "under"):
        with attacked(street, nuisance, 0 if waits == "under" else 2 * SLEEPERS):
            for _ in range(DROPS):
                getattr(drops, waits).append(street.drop())
                getattr(calls, waits).append(street.ask())
    nuisance.over(street)
    return drops, calls


@contextlib.contextmanager
def opened() -> Iterator[Street]:
    with tempfile.TemporaryDirectory(prefix="ade-neighbours-") as folder:
        ade = Ade(Path(folder), {"ADE_CONSOLE_LISTEN": "127.0.0.1:0"})
        tokens = {
            name: ade("token", "new", "--name", name, "--scope", "sender", "--tenant", name).out.strip()
            for name in ("acme", "mallory")
        }
        with ade.up() as up:
            began = up.wait_for(lambda e: e["event"] == "up")
            street = Street(ade, up, began["console"].removeprefix("http://"), tokens)
            street.drop()
            street.ask()
            yield street
            assert up.process.poll() is None, "the process ended by itself"


def measure_one(name: str) -> tuple[Waits, Waits]:
    """The drops and calls of a quiet tenant, alone and under an attack."""
    nuisance = NUISANCES[name]
    with opened() as street:
        return (measure_sleepers if nuisance.act is _sleep else measure)(street, nuisance)


def main(names: Sequence[str]) -> int:
    print("| attack | drops, quiet p50 / p95 s | under attack | ratio of p95 | calls, quiet | under attack | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in NUISANCES:
        if names and not any(part in name for part in names):
            continue
        drops, calls = measure_one(name)
        print(f"| {name} | {drops.row()} | {calls.row()} |", flush=True)
        if names:
            print(json.dumps([[round(n, 2) for n in waits.under] for waits in (drops, calls)]), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
