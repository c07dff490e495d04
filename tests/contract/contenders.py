"""Callers that compete for one row, key or message, in threads and in processes of their own."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

from core.errors import PreconditionFailed
from core.jobs import Job, start
from core.ports import Caps, JobTable, ObjectStore, Refused, WorkQueue

P = TypeVar("P")
R = TypeVar("R")
Open = Callable[[], AbstractContextManager[P]]


def race(kind: str, workers: int, act: Callable[..., R], *each: list[Any]) -> list[R]:
    """Run `act` once per set of arguments, all at the same time; `kind` is "threads" or "processes"."""
    if kind == "threads":
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(act, *each))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(act, *each))


def put_if(another: Open[ObjectStore], key: str, condition: dict[str, Any], body: bytes) -> bool:
    """Whether the put won; `condition` is `if_absent` or `if_version`."""
    with another() as store:
        try:
            store.put(key, body, **condition)
        except PreconditionFailed:
            return False
        return True


def add_one(another: Open[JobTable], job: Job) -> bool:
    with another() as table:
        return table.add(job)[1]


def replace_one(another: Open[JobTable], old: Job, reason: str) -> bool:
    with another() as table:
        return table.replace(old, replace(old, reason=reason)) is not None


def admit_many(another: Open[JobTable], jobs: list[Job], owner: str, caps: Caps) -> tuple[list[str], list[str]]:
    """Try to start each job; the ids that started and the scopes that refused."""
    started, refused = [], []
    with another() as table:
        for job in jobs:
            answer = table.admit(job, start(job, owner=owner, now=job.created_at, lease_seconds=30), caps)
            if isinstance(answer, Refused):
                refused.append(answer.scope)
            elif answer is not None:
                started.append(answer.job_id)
    return started, refused


def hold_one(another: Open[JobTable], name: str, owner: str) -> bool:
    with another() as table:
        return table.hold(name, owner, 30)


def receive_all(another: Open[WorkQueue], visibility: float) -> list[str]:
    """Receive until the queue is silent; the ids in the order they came."""
    found = []
    with another() as queue:
        while got := queue.receive(most=3, wait=0.2, visibility=visibility):
            found += [delivery.message.job_id for delivery in got]
            for delivery in got:
                queue.ack(delivery.receipt)
    return found
