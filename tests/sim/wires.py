"""What lies between a process and its ports: every call takes time, may fail, may lose its answer, may be the last."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core import proofs
from core.errors import ObjectRefused, PreconditionFailed, StoreUnavailable
from core.jobs import Job
from core.ports import (
    Body,
    Caps,
    Delivery,
    Fetched,
    Folder,
    JobQuery,
    Level,
    Message,
    Metadata,
    ObjectInfo,
    Page,
    Pause,
    Refused,
)
from infra.aws.sqs_events import RawEvent
from tests.sim.parts import SimQueue, SimStore, SimTable
from tests.sim.scheduler import Actor, Death, Process, Scheduler

PAGE = b"<html><body>Signed in</body></html>"


@dataclass
class Faults:
    """How often what goes wrong; drawn once for each seed, so that each seed has its own kind of trouble."""

    dies: float = 0.0  # per call: the process ends before it, or after it
    refused: float = 0.0  # the call does nothing and says so
    unanswered: float = 0.0  # the call is done, and the caller hears of an error
    slow: float = 0.0  # takes long, up to `slowest`
    slowest: float = 5.0
    box_fails: float = 0.0
    event_lost: float = 0.0
    event_again: float = 0.0
    message_again: float = 0.0  # delivered to two at once
    paused: float = (
        0.0  # per call: the whole process stands still before it (SIGSTOP, a VM that is moved), then goes on
    )
    lies: float = 0.0  # per answer of the store: somebody else gives it
    partitions: list[tuple[str, str, float, float]] = field(default_factory=list)  # process, port, from, to

    @classmethod
    def drawn(cls, rng: random.Random, length: float) -> "Faults":
        def some(chance: float, least: float, most: float) -> float:
            return rng.uniform(least, most) if rng.random() < chance else 0.0

        made = cls(
            dies=some(0.5, 0.001, 0.02),
            refused=some(0.4, 0.002, 0.03),
            unanswered=some(0.4, 0.002, 0.03),
            slow=some(0.6, 0.005, 0.1),
            slowest=rng.choice([2.0, 5.0, 20.0, 45.0]),
            box_fails=some(0.3, 0.05, 0.3),
            event_lost=some(0.4, 0.05, 0.5),
            event_again=some(0.5, 0.1, 0.5),
            message_again=some(0.4, 0.05, 0.3),
        )
        if rng.random() < 0.35:
            for _ in range(rng.randint(1, 3)):
                start = rng.uniform(0, length)
                who = rng.choice(["intake", "runner", "janitor"]) + str(rng.randint(1, 2))
                port = rng.choice(["store", "table", "queue"])
                made.partitions.append((who, port, start, start + rng.choice([10.0, 60.0, 1e9])))
        return made


class Waiters:
    """Actors that sleep until something comes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: dict[Actor, None] = {}

    def wait(self, until: float) -> None:
        me = self._scheduler.current
        self._waiting[me] = None
        try:
            self._scheduler.sleep(until - self._scheduler.now)
        finally:
            self._waiting.pop(me, None)

    def notify(self) -> None:
        for actor in self._waiting:
            self._scheduler.wake(actor)


@dataclass
class Network:
    """Carries every call of every process."""

    scheduler: Scheduler
    rng: random.Random
    faults: Faults
    met: Counter[str]
    pauses: random.Random  # draws of their own, so that a seed without pauses is what it was
    lies: random.Random  # likewise
    on: bool = True
    resumed: float = 0.0  # when the last process that stands still goes on

    def __post_init__(self) -> None:
        self.began = self.scheduler.now

    def call(self, process: Process, port: str, name: str, act: Callable[[], Any], *about: Any) -> Any:
        if process.dead:
            raise Death
        rng, faults = self.rng, self.faults
        self._pause(process)
        self.scheduler.sleep(self._latency())
        draw = rng.random() if self.on else 1.0
        label = f"{port}.{name}({', '.join(map(said, about))})"
        if self.on and self._cut_off(process, port):
            self.scheduler.trace(label, "→ unreachable")
            self.met["unreachable"] += 1
            self.scheduler.sleep(rng.uniform(0.1, 10.0))
            raise StoreUnavailable(f"{port} cannot be reached")
        if draw < faults.dies:
            self.met["died"] += 1
            if draw < faults.dies / 2:
                process.die()
                raise Death
        elif draw < faults.dies + faults.refused:
            self.scheduler.trace(label, "→ refused")
            self.met["refused"] += 1
            raise StoreUnavailable(f"{port} did not answer")
        try:
            result = act()
        except Exception as error:
            self.scheduler.trace(label, "→", type(error).__name__)
            if isinstance(error, PreconditionFailed):
                self.met["conditional_put_lost"] += 1
            if isinstance(error, ObjectRefused):
                self.met["object_refused"] += 1
            self.scheduler.sleep(self._latency())
            raise
        self.scheduler.trace(label, "→", said(result))
        if draw < faults.dies:
            process.die()
            raise Death
        self.scheduler.sleep(self._latency())
        if faults.dies + faults.refused <= draw < faults.dies + faults.refused + faults.unanswered:
            self.scheduler.trace(label, "→ no answer")
            self.met["unanswered"] += 1
            raise StoreUnavailable(f"{port} did not answer")
        return result

    def _pause(self, process: Process) -> None:
        """Now and then a process is stopped for anything from seconds to longer than everything is kept."""
        now = self.scheduler.now
        if self.on and process.paused_until <= now and self.pauses.random() < self.faults.paused:
            self.met["paused"] += 1
            process.paused_until = now + self.pauses.choice([3.0, 40.0, 100.0, 100.0, 700.0, 4000.0, 8000.0])
            self.resumed = max(self.resumed, process.paused_until)
            self.scheduler.trace("stands still for", round(process.paused_until - now))
        while process.paused_until > self.scheduler.now:
            self.scheduler.sleep(process.paused_until - self.scheduler.now)

    def lie(self, kinds: Sequence[str]) -> str:
        """What a proxy answers in the store's place now; "" for most answers, which are the store's own."""
        if not self.on or self.lies.random() >= self.faults.lies:
            return ""
        kind = self.lies.choice(kinds)
        self.met[f"lie_{kind}"] += 1
        self.scheduler.trace("a lie:", kind)
        return kind

    def hidden_for(self, seconds: float) -> float:
        """How long a queue really hides a message that was asked to be hidden for so long."""
        if self.on and self.rng.random() < self.faults.message_again:
            self.met["message_again"] += 1
            return self.rng.uniform(0, 5.0)
        return seconds

    def _latency(self) -> float:
        draw = self.rng.random()
        if self.on and draw < self.faults.slow:
            return self.rng.uniform(0.0, self.faults.slowest)
        return 0.001 + 0.03 * draw

    def _cut_off(self, process: Process, port: str) -> bool:
        at = self.scheduler.now - self.began
        name = process.name.split("#")[0]
        return any(who == name and what == port and a <= at < b for who, what, a, b in self.faults.partitions)


def said(value: Any) -> str:
    """A value in a few letters, for the trace."""
    match value:
        case Job():
            return f"{value.job_id}:{value.state}/f{value.fence}/r{value.rev & 0xFFFFF}"
        case ObjectInfo():
            return f"{value.key}@{value.version[:8]}"
        case Delivery():
            return f"{value.message.job_id}#{value.receives}"
        case Message():
            return value.job_id
        case Refused():
            return value.scope
        case bytes():
            return f"{len(value)} bytes"
        case tuple() | list():
            return "[" + ", ".join(map(said, value[:6])) + ("…" if len(value) > 6 else "") + "]"
        case str() | int() | float() | bool() | None:
            return str(value)
        case _:
            return type(value).__name__


class WiredStore:
    """An ObjectStore as one process reaches it. What a service does object by object is a call for each."""

    def __init__(self, network: Network, process: Process, store: SimStore) -> None:
        self._n, self._p, self._s = network, process, store

    def _call(self, name: str, act: Callable[[], Any], *about: Any) -> Any:
        return self._n.call(self._p, "store", name, act, *about)

    def head(self, key: str) -> ObjectInfo | None:
        return self._described(self._call("head", lambda: self._s.head(key), key))

    def _described(self, info: ObjectInfo | None) -> ObjectInfo | None:
        """Like S3, whose digests hold the length that the answer says."""
        if info is None or info.size == 0 or not self._n.lie(["empty"]):
            return info
        proofs.check_described(info.key, size=0, digest=info.digest)
        return replace(info, size=0, digest=f"{info.digest}:0")

    def objects(self, prefix: str, *, unreadable: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        return iter(self._call("objects", lambda: list(self._s.objects(prefix, unreadable=unreadable)), prefix))

    def keys(self, prefix: str) -> Iterator[str]:
        return iter(self._call("keys", lambda: list(self._s.keys(prefix)), prefix))

    def folder(self, prefix: str) -> Folder:
        return self._call("folder", lambda: self._s.folder(prefix), prefix)

    def level(self, prefix: str) -> Level:
        found = self._call("level", lambda: self._s.level(prefix), prefix)

        def infos(keys: Collection[str]) -> list[ObjectInfo]:
            got = [info for key in keys for info in self._call("infos", lambda key=key: found.infos([key]), key)]
            return [info for one in got if (info := self._described(one)) is not None]

        return replace(found, infos=infos)

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        return self._call("read", lambda: self._read(key, version, limit), key)

    def _read(self, key: str, version: str | None, limit: int) -> bytes:
        body = self._s.read(key, version=version, limit=limit)
        came, said = body, hashlib.sha256(body).hexdigest()
        match self._n.lie(["short", "swapped", "page"]):
            case "short":
                came = body[: len(body) // 3]
            case "swapped":
                came = self._n.lies.choice([other for _, other in self._s._b.objects.values()])[:limit]
            case "page":
                came = PAGE
        proofs.check_read(
            key, size=len(came), digest=hashlib.sha256(came).hexdigest(), stored_size=None, stored_digest=said
        )
        return came

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        def act() -> Fetched:
            body = self._read(key, version, limit)
            with to.open("xb") as out:
                out.write(body)
            there = self._s._b.objects.get(key)
            at = version if version is not None or there is None else there[0].version
            return Fetched(size=len(body), sha256=hashlib.sha256(body).hexdigest(), version=at)

        return self._call("fetch", act, key)

    def put(
        self, key: str, body: Body, *, if_version: str | None = None, if_absent: bool = False, metadata: Metadata = None
    ) -> ObjectInfo:
        def act() -> ObjectInfo:
            content = body if isinstance(body, bytes) else body.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            lie = self._n.lie(["refused", "answered"])
            if lie == "refused":
                proofs.check_written(key, digest=digest, stored_digest=None)
                return ObjectInfo(key=key, version=digest, digest=digest, size=len(content), modified=0.0)
            made = self._s.put(key, content, if_version=if_version, if_absent=if_absent, metadata=metadata)
            proofs.check_written(key, digest=digest, stored_digest=None if lie else made.digest)
            return made

        return self._call("put", act, key)

    def link(self, key: str, *, seconds: int, write: bool = False, save_as: str | None = None) -> str | None:
        return None

    def copy(self, source: str, target: str) -> None:
        def act() -> None:
            lie = self._n.lie(["uncopied"])
            if not lie:
                self._s.copy(source, target)
            proofs.check_written(target, digest=source, stored_digest=None if lie else source)

        self._call("copy", act, source, target)

    def delete(self, key: str) -> None:
        self._call("delete", lambda: self._s.delete(key), key)

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def delete_prefix(self, prefix: str) -> int:
        keys = list(self.keys(prefix))
        self.delete_all(keys)
        return len(keys)


class WiredTable:
    """A JobTable as one process reaches it."""

    def __init__(self, network: Network, process: Process, table: SimTable) -> None:
        self._n, self._p, self._t = network, process, table

    def _call(self, name: str, act: Callable[[], Any], *about: Any) -> Any:
        return self._n.call(self._p, "table", name, act, *about)

    def add(self, job: Job) -> tuple[Job, bool]:
        return self._call("add", lambda: self._t.add(job), job)

    def get(self, job_id: str) -> Job | None:
        return self._call("get", lambda: self._t.get(job_id), job_id)

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        return self._call("get_all", lambda: self._t.get_all(job_ids), list(job_ids))

    def replace(self, old: Job, new: Job) -> Job | None:
        written = self._call("replace", lambda: self._t.replace(old, new), new)
        if written is None:
            self._n.met["conditional_write_lost"] += 1
        return written

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        return self._call("admit", lambda: self._t.admit(old, new, caps), new)

    def remove(self, old: Job) -> bool:
        return self._call("remove", lambda: self._t.remove(old), old)

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page:
        return self._call("page", lambda: self._t.page(query, limit=limit, cursor=cursor))

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        return self._call("line", lambda: self._t.line(line, whole=whole), line)

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._call("attention", lambda: self._t.attention(before, limit=limit))

    def pause(self, pause: Pause) -> None:
        self._call("pause", lambda: self._t.pause(pause))

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        return self._call("resume", lambda: self._t.resume(tenant, workflow))

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        return self._call("hold", lambda: self._t.hold(name, owner, seconds), name)

    def let_go(self, name: str, owner: str) -> None:
        self._call("let_go", lambda: self._t.let_go(name, owner), name)

    def generations(self, names: Collection[str]) -> dict[str, int]:
        return self._call("generations", lambda: self._t.generations(names), *names)

    def advance(self, name: str) -> None:
        self._call("advance", lambda: self._t.advance(name), name)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the port has, without a story of its own."""
        act = getattr(self._t, name)
        return lambda *args, **more: self._call(name, lambda: act(*args, **more))


class WiredQueue:
    """A WorkQueue as one process reaches it; `soonest` and `coming` let a receive sleep until there is something."""

    chooses_tenants = SimQueue.chooses_tenants

    def __init__(self, network: Network, process: Process, queue: SimQueue, coming: Waiters) -> None:
        self._n, self._p, self._q, self._coming = network, process, queue, coming

    def _call(self, name: str, act: Callable[[], Any], *about: Any) -> Any:
        return self._n.call(self._p, "queue", name, act, *about)

    def send(self, message: Message, *, delay: float = 0.0) -> None:
        self._call("send", lambda: self._q.send(message, delay=delay), message)

    def send_all(self, messages: Sequence[tuple[Message, float]]) -> None:
        for message, delay in messages:
            self.send(message, delay=delay)

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        until = self._n.scheduler.now + wait
        while True:
            soonest = self._q._m.soonest()
            if soonest is None or soonest > self._n.scheduler.now:
                self._coming.wait(until if soonest is None else min(until, soonest))
            else:
                got = self._call(
                    "receive", lambda: self._q.receive(most=most, wait=0, visibility=visibility, avoid=avoid)
                )
                if got:
                    return got
            if self._n.scheduler.now >= until:
                return ()

    def hide(self, receipt: str, seconds: float) -> bool:
        return self._call("hide", lambda: self._q.hide(receipt, seconds), receipt)

    def ack(self, receipt: str) -> None:
        self._call("ack", lambda: self._q.ack(receipt), receipt)

    def bury(self, message: Message, reason: str) -> None:
        self._call("bury", lambda: self._q.bury(message, reason), message)

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._q, name)
        return lambda *args, **more: self._call(name, lambda: act(*args, **more))


@dataclass
class _Notice:
    body: str
    visible_at: float
    receipt: str = ""
    receives: int = 0


class Notices:
    """The queue that the bucket's notifications come to; one process's client of it is `events`."""

    def __init__(self, network: Network, coming: Waiters) -> None:
        self._n = network
        self._coming = coming
        self.notices: list[_Notice] = []
        self._numbers = 0

    def tell(self, body: str) -> None:
        """The bucket tells of a change: once, several times, late, or never."""
        rng, faults = self._n.rng, self._n.faults
        if self._n.on and rng.random() < faults.event_lost:
            self._n.met["event_lost"] += 1
            return
        copies = 1
        while self._n.on and copies < 4 and rng.random() < faults.event_again:
            copies += 1
        for _ in range(copies):
            late = rng.choice([0.0, 0.05, 0.5, 3.0, 40.0]) if self._n.on else 0.1
            self.notices.append(_Notice(body, self._n.scheduler.now + rng.uniform(0, late)))
        self._coming.notify()

    def client(self, process: Process) -> "WiredEvents":
        return WiredEvents(self, self._n, process, self._coming)

    def take(self) -> list[RawEvent]:
        now = self._n.scheduler.now
        ready = [notice for notice in self.notices if notice.visible_at <= now]
        self._n.rng.shuffle(ready)
        taken = []
        for notice in ready[: self._n.rng.choice([1, 1, 2, 10])]:
            self._numbers += 1
            notice.receipt, notice.receives = f"e{self._numbers}", notice.receives + 1
            notice.visible_at = now + 60
            taken.append(RawEvent(notice.body, notice.receipt, notice.receives))
        return taken


class WiredEvents:
    def __init__(self, notices: Notices, network: Network, process: Process, coming: Waiters) -> None:
        self._notices, self._n, self._p, self._coming = notices, network, process, coming

    def receive(self) -> list[RawEvent]:
        while True:
            now = self._n.scheduler.now
            soonest = min((notice.visible_at for notice in self._notices.notices), default=now + 1e6)
            if soonest > now:
                self._coming.wait(soonest)
            elif got := self._n.call(self._p, "events", "receive", self._notices.take):
                return got

    def done_all(self, events: Sequence[RawEvent]) -> None:
        receipts = {event.receipt for event in events}

        def act() -> None:
            self._notices.notices = [n for n in self._notices.notices if n.receipt not in receipts]

        if events:
            self._n.call(self._p, "events", "done", act, len(events))

    def refuse(self, body: str, reason: str) -> None:
        raise AssertionError(f"the bucket tells of nothing that cannot be read: {reason}")
