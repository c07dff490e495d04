"""What the console's pages cost with few and with many jobs in the table, and what watchers cost the runners.

python -m tests.bench.bench_console [--small N] [--large N] [--dynamodb N] [--watchers N] [--drops N]

0 leaves a part out. Pages are asked for in this process; the facade is made anew for `overview, cold`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from console.facade import Facade
from core.chores import wake_at
from core.jobs import Job, JobError, ObjectRef, State, dump_job
from core.settings import Settings
from core.verdicts import Verdict
from infra.aws.dynamodb_items import SHARDS, job_item
from infra.aws.provision import provision
from infra.wiring import Stack, open_stack
from tests.bench.meter import Meter
from tests.contract import servers
from tests.support import keeper
from tests.support.console import MANIFEST, ApiRig, api_rig

ROUNDS = 60
TENANTS = 10  # so that each has a full page of jobs in the small table too
STATES = (*[State.SUCCEEDED] * 90, *[State.FAILED] * 7, State.CANCELLED, State.QUEUED, State.SKIPPED)


def job(n: int) -> Job:
    ref = ObjectRef(key=f"inbox/t{n % TENANTS}/d{n}/manifest.json", version="0" * 64, digest="0" * 64, size=300)
    state = STATES[n * 7919 % len(STATES)]
    at = 1_700_000_000.0 + n
    return Job(
        job_id=f"t{n % TENANTS}-members-{n:08d}",
        identity=f"{n:064d}",
        tenant=f"t{n % TENANTS}",
        workflow=f"w{n % 3}",
        subject=f"d{n}/m.xlsx",
        state=state,
        manifest=ref,
        error=JobError(verdict=Verdict.RULE_ERROR, message="it broke") if state is State.FAILED else None,
        created_at=at,
        updated_at=at,
        started_at=at,
        ended_at=at + 1,
        history=(("QUEUED", at), ("RUNNING", at), (str(state), at + 1)),
        rev=1,
    )


def fill(folder: Path, n: int) -> None:
    """Rows without the sync of each write: they would take an hour."""
    with open_stack(Settings(storage_data_dir=folder)) as stack:
        db = stack.table._db.read()  # type: ignore[attr-defined]
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN IMMEDIATE")
        rows = (
            (
                j.job_id,
                j.tenant,
                j.workflow,
                j.line,
                j.created_at,
                str(j.state),
                wake_at(j, stack.settings.timings),
                1,
                1,
                dump_job(j),
            )
            for j in map(job, range(n))
        )
        db.executemany(
            "INSERT INTO jobs (job_id, tenant, workflow, line, created_at, state, wake_at, resting, rev, doc)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        db.execute("COMMIT")


def median(act: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Milliseconds of CPU, of all threads of this process: others use this machine too."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        act()
        taken.append((time.process_time() - began) * 1000)
    return statistics.median(taken)


def pages(rigs: dict[int, ApiRig]) -> dict[int, dict[str, float]]:
    """Every page with few and with many jobs, in turns, so that what else the machine does slows both alike."""
    lists = {
        "list": "/jobs",
        "list, deep page": "/jobs?cursor={deep}",
        "list of a tenant": "/jobs?tenant=t3",
        "list of failures": "/jobs?state=FAILED&state=TIMED_OUT",
        "list of a tenant's failures": "/jobs?tenant=t3&state=FAILED&limit=3",
        "list by text": "/jobs?text=7/m.x&limit=20",
        "list by fault, workflow": "/jobs?fault=config&workflow=w1&limit=4",
        "job": "/jobs/{one}",
        "metrics": "/metrics",
        "overview": "/overview",
    }
    shown = {
        "page: overview": "/",
        "page: jobs": "/jobs",
        "page: jobs, deep": "/jobs?cursor={deep}",
        "page: job": "/jobs/{one}",
        "page: review": "/review",
        "page: senders": "/senders",
    }
    found: dict[int, dict[str, float]] = {n: {} for n in rigs}

    def get(n: int, path: str, accept: str) -> None:
        deep = f"{1_700_000_000.0 + n / 2!r}|zzz"
        rigs[n].context.answers.forget()  # or the same answer would be given for half a second
        asked = path.format(one=f"t{(n // 2) % TENANTS}-members-{n // 2:08d}", deep=deep)
        rigs[n].client.get(asked, headers={"Accept": accept}).raise_for_status()

    def measure(name: str, rounds: int, act: Callable[[int], object]) -> None:
        for n in rigs:
            act(n)
        taken: dict[int, list[float]] = {n: [] for n in rigs}
        for _ in range(rounds):
            for n, spent in taken.items():
                began = time.process_time()
                act(n)
                spent.append((time.process_time() - began) * 1000)
        for n, spent in taken.items():
            found[n][name] = statistics.median(spent)

    for paths, accept in ((lists, "application/json"), (shown, "text/html")):
        for name, path in paths.items():
            measure(name, ROUNDS, lambda n, path=path, accept=accept: get(n, path, accept))
    measure("overview, cold", 12, lambda n: Facade(rigs[n].stack).overview())
    measure("senders, cold", 12, lambda n: Facade(rigs[n].stack).senders("t3"))
    return found


def embedded(small: int, large: int) -> None:
    with contextlib.ExitStack() as opened:
        rigs: dict[int, ApiRig] = {}
        for n in (small, large):
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-console-")))
            fill(folder, n)
            rigs[n] = opened.enter_context(api_rig(folder))
        told = pages(rigs)
    table("SQLite", small, told[small], large, told[large])


def table(name: str, small: int, few: dict[str, float], large: int, many: dict[str, float]) -> None:
    print(f"{name:<30} {small:>10,} jobs {large:>10,} jobs   times")
    for what, before in few.items():
        unit = "  " if what.endswith(("requests", "units")) else "ms"
        print(f"{what:<30} {before:>12.2f} {unit} {many[what]:>12.2f} {unit} {many[what] / max(before, 0.01):>7.2f}")


def dynamodb(small: int, large: int) -> None:
    """CPU of this process, requests and read units of each page; the emulator's own time says nothing about AWS."""
    with keeper.run_folder(), servers.credentials(server := servers.ministack()):
        told: dict[int, dict[str, float]] = {}
        for n in (small, large):
            with tempfile.TemporaryDirectory(prefix="bench-console-") as folder:
                url = servers.url("dynamodb", f"bench-{n}", server)
                provision(Settings(storage_data_dir=Path(folder), table_url=url), apply=True)
                told[n] = _dynamodb_pages(Path(folder), url, n)
    table("DynamoDB (emulator)", small, told[small], large, told[large])


def _dynamodb_pages(folder: Path, url: str, n: int) -> dict[str, float]:
    one, found, meter = job(n // 2).job_id, dict[str, float](), Meter()
    paths = {
        "list": "/jobs",
        "list of a tenant": "/jobs?tenant=t3",
        "list of failures": "/jobs?state=FAILED&state=TIMED_OUT",
        "list of a tenant's failures": "/jobs?tenant=t3&state=FAILED&limit=3",
        "list by text": "/jobs?text=7/m.x&limit=20",
        "job": f"/jobs/{one}",
        "overview": "/overview",
        "page: overview": "/",
        "page: jobs": "/jobs",
        "page: job": f"/jobs/{one}",
        "page: senders": "/senders",
    }
    with api_rig(folder, table_url=url) as rig:
        _put_items(rig.stack, n)
        meter.attach(rig.stack.table._db)  # type: ignore[attr-defined]

        def get(name: str) -> None:
            rig.context.answers.forget()
            accept = "text/html" if name.startswith("page") else "application/json"
            rig.client.get(paths[name], headers={"Accept": accept}).raise_for_status()

        for name in paths:
            get(name)
            found[name] = median(lambda name=name: get(name), 9)
            _forget_all_but_counts(rig.context.facade)
            meter.reset()
            get(name)
            found[f"{name}, requests"], found[f"{name}, read units"] = float(meter.requests.total()), meter.reads
        meter.reset()
        began = time.process_time()
        rig.stack.table.tally(), rig.stack.table.counts()
        found["count of all, aside"] = (time.process_time() - began) * 1000
        found["count of all, requests"], found["count of all, read units"] = (
            float(meter.requests.total()),
            meter.reads,
        )
    return found


def _forget_all_but_counts(facade: Facade) -> None:
    """The counts of the whole table are taken aside, not by a page; keep them for the next page."""
    facade._recent.clear()
    facade._senders.clear()
    facade._pauses._known = None
    for counted in (facade._counts, facade._tally(None)):
        counted.get()
        assert counted._known is not None
        counted._known = replace(counted._known, until=counted._known.until + 1e6)


def _put_items(stack: Stack, n: int) -> None:
    """Rows as the adapter stores them, in batches: a transaction for each would take minutes."""
    made = [
        {"PutRequest": {"Item": job_item(one, "bench", lambda j: wake_at(j, stack.settings.timings), SHARDS)}}
        for one in map(job, range(n))
    ]
    db, name = stack.table._db, stack.table._name  # type: ignore[attr-defined]
    for at in range(0, n, 25):
        left = db.batch_write_item(RequestItems={name: made[at : at + 25]})["UnprocessedItems"]
        assert not left


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """`ade up` in a process of its own; its console's address."""
    given = {"ADE_STORAGE_DATA_DIR": str(folder), "ADE_CONSOLE_LISTEN": "127.0.0.1:0", "ADE_TENANT_CONCURRENCY": "0"}
    words = [sys.executable, "-m", "console", "up", "--json"]
    up = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=os.environ | given | {"ADE_WORKFLOW_CONCURRENCY": "0"}
    )
    assert up.stdout is not None
    try:
        address = ""
        for line in up.stdout:
            told = json.loads(line)
            if told["event"] == "up":
                address = told["console"]
                break
        threading.Thread(target=lambda: [None for _ in up.stdout or ()], daemon=True).start()
        yield address
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(60)


def drop(folder: Path, wave: str, n: int) -> float:
    """Put drops into the bucket, and wait for all of them; jobs a second."""
    inbox = folder / "bucket" / "inbox" / "acme" / wave
    rows = "".join(f"name {k},{k % 90}\n" for k in range(400))
    with open_stack(replace(Settings(storage_data_dir=folder), log_level="error")) as stack:
        (inbox).mkdir(parents=True)
        for k in range(n):
            (inbox / f"f{k}.csv").write_text(f"Name,Age\nfirst {k},1\n{rows}")
        before = stack.table.counts().get(State.SUCCEEDED, 0)
        began = time.monotonic()
        (inbox / "manifest.json").write_text(json.dumps(MANIFEST))
        while stack.table.counts().get(State.SUCCEEDED, 0) < before + n:
            stack.table.wait(0.5)
        return n / (time.monotonic() - began)


async def _watch(address: str, watchers: int, until: Path) -> None:
    """Half of them follow logs of jobs that run or wait, half ask for lists every second."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    answers = 0

    async def follow(k: int) -> None:
        while not os.access(until, os.F_OK):
            listed = json.loads(await asyncio.to_thread(_get, f"{address}/jobs?limit=20&state=QUEUED&state=RUNNING"))
            jobs = [job["job_id"] for job in listed["jobs"]] or ["none"]
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(
                f"GET /jobs/{jobs[k % len(jobs)]}/logs?follow=true HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
            )
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(5):
                    while await reader.read(4096):
                        pass
            writer.close()

    async def look() -> None:
        nonlocal answers
        reader, writer = await asyncio.open_connection(host, port)
        while not os.access(until, os.F_OK):
            writer.write(f"GET /jobs?limit=50 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            answers += 1
            await asyncio.sleep(1.0)

    await asyncio.gather(*(follow(k) for k in range(watchers // 2)), *(look() for _ in range(watchers - watchers // 2)))
    print(f"lists answered: {answers}")


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


def load(watchers: int, drops: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-console-") as name:
        folder = Path(name)
        with running(folder) as address:
            _get(f"{address}/health")
            drop(folder, "warm", 10)
            quiet, watched, shares = [], [], []
            for k in range(4):
                quiet.append(drop(folder, f"quiet{k}", drops))
                until = folder / f"until{k}"
                words = [sys.executable, "-m", "tests.bench.bench_console", "--watch", address, "--until", str(until)]
                others = subprocess.Popen([*words, "--watchers", str(watchers)], preexec_fn=lambda: os.nice(19))  # noqa: PLW1509 - one thread reads
                time.sleep(2)
                began, used = time.monotonic(), _server_cpu()
                watched.append(drop(folder, f"watched{k}", drops))
                shares.append((_server_cpu() - used) / (time.monotonic() - began))
                until.touch()
                others.wait(30)
    shown = " ".join(f"{q:.1f}/{w:.1f}" for q, w in zip(quiet, watched, strict=True))
    share = statistics.median(watched) / statistics.median(quiet)
    print(f"jobs a second, quiet/with {watchers} watchers: {shown}; median {share:.0%} of the quiet one")
    print(f"the server used {statistics.median(shares):.0%} of a core meanwhile; machine load {os.getloadavg()[0]:.1f}")


def _server_cpu() -> float:
    """CPU seconds of the console's processes that belong to this benchmark."""
    found = 0.0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"serve" in words and b"bench-console-" in (entry / "environ").read_bytes():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--dynamodb", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--drops", type=int, default=60)
    parser.add_argument("--watch", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.watch:
        asyncio.run(_watch(asked.watch, asked.watchers, asked.until))
        return
    if asked.large:
        embedded(asked.small, asked.large)
    if asked.dynamodb:
        dynamodb(asked.small, asked.dynamodb)
    if asked.watchers:
        load(asked.watchers, asked.drops)


if __name__ == "__main__":
    main()
