"""What the storms share: drops that go on while everything fails, and what must be found in the bucket afterwards."""

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.keys import OUTPUTS
from core.ports import JobQuery, Message
from infra.wiring import Stack
from tests.support.crew import Crew, ended

MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id", "type": "integer"}, {"name": "name"}]}
ENV = {
    "ADE_LEASE_SECONDS": "8",
    "ADE_MAX_ATTEMPTS": "100",
    "ADE_RETRY_BACKOFF_SECONDS": "0.1",
    "ADE_TENANT_CONCURRENCY": "3",
    "ADE_LOG_LEVEL": "error",
    "ADE_SANDBOX": "process",
    "ADE_SANDBOX_MIN_LEVEL": "limits",
    "ADE_SWEEP_SECONDS": "20",
}
_AT_ONCE = 5  # drops between two looks


def drop(stack: Stack, n: int) -> None:
    folder = f"inbox/t{n % 4}/d{n}"
    stack.store.put(f"{folder}/m.csv", f"id;name\n{n};a\n{n + 1};b\n".encode())
    stack.store.put(f"{folder}/manifest.json", json.dumps(MANIFEST).encode())


def redeliver(stack: Stack) -> int:
    """Messages that come a second time, for jobs in whatever state they are."""
    jobs = stack.table.page(JobQuery(), limit=20).jobs
    for job in random.sample(jobs, min(2, len(jobs))):
        stack.queue.send(Message(job_id=job.job_id, tenant=job.tenant))
    return min(2, len(jobs))


@dataclass
class Storm:
    """Drops files until all have ended. Processes are killed and messages repeated all the time."""

    stack: Stack
    crew: Crew
    drops: int
    patience: float  # seconds
    strikes: Sequence[tuple[float, Callable[[], object]]]  # each once, when that share of the drops has ended
    gusts: Sequence[Callable[[], object]] = ()  # again and again
    calm: tuple[float, float] = (4.0, 10.0)  # least and most seconds between two kills
    most_kills: int = 1000  # a busy machine that has to start processes all the time comes to nothing else
    again: int = field(default=0, init=False)  # messages sent twice

    def rage(self) -> None:
        began, dropped, strikes = time.monotonic(), 0, list(self.strikes)
        next_kill = began + self.calm[0]
        next_gust = began + self.calm[0] / 2
        while (done := ended(self.stack)) < self.drops or strikes:
            late = time.monotonic() > began + self.patience
            assert not late, f"not done in {self.patience:g} s: {self.stack.table.counts()}\n{self.crew.said()}"
            for n in range(dropped, min(self.drops, dropped + _AT_ONCE)):
                drop(self.stack, n)
            dropped = min(self.drops, dropped + _AT_ONCE)
            self.stack.table.wait(0.5)
            self.crew.restart_the_dead()
            if time.monotonic() > next_gust:
                for gust in self.gusts:
                    gust()
                next_gust = time.monotonic() + random.uniform(*self.calm) / 2
            if time.monotonic() > next_kill and self.crew.kills < self.most_kills:
                self.crew.kill_one()
                self.again += redeliver(self.stack)
                next_kill = time.monotonic() + random.uniform(*self.calm)
            if strikes and done >= strikes[0][0] * self.drops:
                strikes.pop(0)[1]()


def versions(s3: Any, bucket: str) -> dict[str, list[str]]:
    """The ETags of every version that each output ever had; deletions are told as "deleted"."""
    found: dict[str, list[str]] = {}
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=OUTPUTS):
        for version in page.get("Versions", ()):
            found.setdefault(version["Key"], []).append(version["ETag"])
        for marker in page.get("DeleteMarkers", ()):
            found.setdefault(marker["Key"], []).append("deleted")
    return found


def check_published_once(s3: Any, bucket: str) -> int:
    """A result is written once. A file may be copied again by whoever finishes for another, and is the same then.

    `status.json` is no output: it is there only while something waits, as a drop does during an outage.
    """
    found = {key: etags for key, etags in versions(s3, bucket).items() if not key.endswith("/status.json")}
    results = {key: etags for key, etags in found.items() if key.endswith("/result.json")}
    twice = {key: etags for key, etags in results.items() if len(etags) != 1}
    assert not twice, f"published more than once: {twice}"
    changed = {key: etags for key, etags in found.items() if len(set(etags)) != 1}
    assert not changed, f"outputs changed: {changed}"
    return sum(len(etags) for etags in found.values()) - len(found)
