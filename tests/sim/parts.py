"""Store, table and queue in memory, for thousands of worlds: as strict as the services, and no more helpful.

They pass the contract suites (tests/contract/adapters.py). Where the services differ, these are the less convenient one:
HEAD tells whole seconds, a queue keeps every copy of a message and hands out any that is visible, listings have no
promise but their order. State stands in `Bucket`, `Rows` and `Messages`; a client of it is what one process holds.
"""

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from core import jobs as rules
from core.chores import resting
from core.ends import COUNTER_SECONDS, SENDER_SECONDS, EndCounts, end_counts
from core.errors import (
    ObjectChanged,
    ObjectMissing,
    ObjectRefused,
    ObjectTooLarge,
    PreconditionFailed,
    RowUnreadable,
)
from core.jobs import Job, State
from core.keys import check_key, refusal
from core.ports import (
    Body,
    Caps,
    Clock,
    DeadLetter,
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
    QueueStats,
    Refused,
    Resolution,
    Tally,
    readable,
)


class Bucket:
    """Objects by key. `versioned`: what was replaced or deleted can still be read by its version."""

    def __init__(self, clock: Clock, *, versioned: bool = False) -> None:
        self.clock = clock
        self.versioned = versioned
        self.lock = threading.RLock()
        self.objects: dict[str, tuple[ObjectInfo, bytes]] = {}
        self.former: dict[tuple[str, str], bytes] = {}
        self.refused: set[str] = set()  # keys that the store will not tell of now
        self.numbers = itertools.count(1)
        self.on_change: Callable[[str, bytes | None], None] = lambda _key, _body: None


class SimStore:
    def __init__(self, bucket: Bucket) -> None:
        self._b = bucket

    def head(self, key: str) -> ObjectInfo | None:
        if key in self._b.refused:
            raise ObjectRefused(f"object {key} is refused")
        found = self._b.objects.get(key)
        return found[0] if found else None

    def objects(self, prefix: str, *, unreadable: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        found = []
        for key in self._keys(prefix):
            if key in self._b.refused:
                if unreadable is not None:
                    unreadable[key] = f"object {key} is refused"
            else:
                found.append(self._b.objects[key][0])
        return iter(found)

    def keys(self, prefix: str) -> Iterator[str]:
        return iter(self._keys(prefix))

    def folder(self, prefix: str) -> Folder:
        keys, folders = self._split(prefix)
        return Folder(objects=tuple(info for key in keys if (info := self.head(key))), folders=folders)

    def level(self, prefix: str) -> Level:
        keys, folders = self._split(prefix)
        unreadable: dict[str, str] = {}

        def infos(wanted: Collection[str]) -> list[ObjectInfo]:
            return readable(wanted, self.head, unreadable)

        return Level(keys=keys, folders=folders, infos=infos, unreadable=unreadable)

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        if key in self._b.refused:
            raise ObjectRefused(f"object {key} is refused")
        found = self._b.objects.get(key)
        if version is not None and (found is None or found[0].version != version):
            body = self._b.former.get((key, version))
            if body is None and found is not None:
                raise ObjectChanged(f"object {key} is no longer at version {version[:12]}")
        else:
            body = found[1] if found else None
        if body is None:
            raise ObjectMissing(f"object {key} is not there")
        if len(body) > limit:
            raise ObjectTooLarge(f"object {key} is {len(body)} bytes; at most {limit} are read here")
        return body

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        body = self.read(key, version=version, limit=limit)
        with to.open("xb") as out:
            out.write(body)
        there = version if version is not None else self._b.objects[key][0].version
        return Fetched(size=len(body), sha256=hashlib.sha256(body).hexdigest(), version=there)

    def put(
        self, key: str, body: Body, *, if_version: str | None = None, if_absent: bool = False, metadata: Metadata = None
    ) -> ObjectInfo:
        check_key(key)
        content = body if isinstance(body, bytes) else body.read_bytes()
        with self._b.lock:
            there = self._b.objects.get(key)
            if (if_absent or if_version is not None) and (there[0].version if there else None) != if_version:
                raise PreconditionFailed(f"object {key}: expected {if_version or 'nothing'}, found something else")
            return self._write(key, content, dict(metadata or {}))

    def link(self, key: str, *, seconds: int, write: bool = False, save_as: str | None = None) -> str | None:
        return None

    def copy(self, source: str, target: str) -> None:
        with self._b.lock:
            found = self._b.objects.get(source)
            if found is None:
                raise ObjectMissing(f"object {source} is not there")
            self._write(check_key(target), found[1], {})

    def delete(self, key: str) -> None:
        with self._b.lock:
            found = self._b.objects.pop(key, None)
            if found is not None:
                if self._b.versioned:
                    self._b.former[key, found[0].version] = found[1]
                self._b.on_change(key, None)

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def delete_prefix(self, prefix: str) -> int:
        keys = self._keys(prefix)
        self.delete_all(keys)
        return len(keys)

    def close(self) -> None:
        pass

    def _write(self, key: str, body: bytes, metadata: dict[str, str]) -> ObjectInfo:
        digest = hashlib.sha256(body).hexdigest()
        there = self._b.objects.get(key)
        version = digest
        if self._b.versioned:
            version = f"v{next(self._b.numbers)}"
            if there is not None:
                self._b.former[key, there[0].version] = there[1]
        modified = float(int(self._b.clock.now()))
        info = ObjectInfo(key=key, version=version, digest=digest, size=len(body), modified=modified, metadata=metadata)
        self._b.objects[key] = (info, body)
        self._b.on_change(key, body)
        return info

    def _keys(self, prefix: str) -> list[str]:
        with self._b.lock:
            return sorted(key for key in self._b.objects if key.startswith(prefix))

    def _split(self, prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        keys, folders = [], dict[str, None]()
        for key in self._keys(prefix):
            name, slash, _ = key.removeprefix(prefix).partition("/")
            if slash:
                folders[f"{prefix}{name}/"] = None
            elif refusal(key) is None:
                keys.append(key)
        return tuple(keys), tuple(folders)


class Rows:
    """What a table holds."""

    def __init__(self, wake_at: Callable[[Job], float | None]) -> None:
        self.wake_at = wake_at
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.jobs: dict[str, Job] = {}
        self.wakes: dict[str, float] = {}
        self.fences: dict[str, int] = {}
        self.pauses: dict[tuple[str, str], Pause] = {}
        self.leases: dict[str, tuple[str, float]] = {}
        self.generations: dict[str, int] = {}
        self.ends: dict[tuple[str, str, float], EndCounts] = {}
        self.resolutions: dict[str, Resolution] = {}
        self.on_write: Callable[[Job | None, Job | None], None] = lambda _old, _new: None

    def write(self, old: Job | None, new: Job | None) -> None:
        if new is not None:
            self.jobs[new.job_id] = new
            wake = self.wake_at(new)
            if wake is None:
                self.wakes.pop(new.job_id, None)
            else:
                self.wakes[new.job_id] = wake
        elif old is not None:
            del self.jobs[old.job_id]
            self.wakes.pop(old.job_id, None)
        self.on_write(old, new)
        self.changed.notify_all()


class SimTable:
    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._r = rows
        self._clock = clock

    def add(self, job: Job) -> tuple[Job, bool]:
        with self._r.lock:
            there = self._r.jobs.get(job.job_id)
            if there is not None:
                return there, False
            job = rules.first(job, self._r.fences.get(job.tenant, 0))
            self._r.write(None, job)
            return job, True

    def get(self, job_id: str) -> Job | None:
        return self._r.jobs.get(job_id)

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        return {job_id: job for job_id in job_ids if (job := self._r.jobs.get(job_id)) is not None}

    def replace(self, old: Job, new: Job) -> Job | None:
        with self._r.lock:
            there = self._r.jobs.get(old.job_id)
            if there is None or there.rev != old.rev or rules.lease_owner(old) not in (None, rules.lease_owner(there)):
                return None
            new = replace(new, rev=old.rev + 1)
            self._r.write(there, new)
            for one in end_counts(old, new) or ():
                key = (one.tenant, one.workflow, one.at)
                self._r.ends[key] = self._r.ends[key] + one if key in self._r.ends else one
            return new

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        with self._r.lock:
            return self._paused(new) or self._capped(new, caps) or self.replace(old, new)

    def remove(self, old: Job) -> bool:
        with self._r.lock:
            there = self._r.jobs.get(old.job_id)
            if there is None or there.rev != old.rev:
                return False
            if there.fence:
                self._r.fences[there.tenant] = max(there.fence, self._r.fences.get(there.tenant, 0))
            self._r.write(there, None)
            return True

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page:
        with self._r.lock:
            found = [job for job in self._r.jobs.values() if query.holds(job)]
        found.sort(key=lambda job: (job.created_at, job.job_id), reverse=True)
        if cursor is not None:
            at, _, job_id = cursor.partition("|")
            found = [job for job in found if (job.created_at, job.job_id) < (float(at), job_id)]
        last = found[limit - 1] if len(found) > limit else None
        return Page(jobs=tuple(found[:limit]), cursor=f"{last.created_at!r}|{last.job_id}" if last else None)

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        with self._r.lock:
            found = [job for job in self._r.jobs.values() if job.line == line]
        return tuple(sorted(found, key=lambda job: (job.created_at, job.job_id)))

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return tuple(job for job in self._due(before) if not resting(job))[:limit]

    def outdated(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return tuple(job for job in self._due(before) if resting(job))[:limit]

    def _due(self, before: float) -> list[Job]:
        with self._r.lock:
            due = sorted((at, job_id) for job_id, at in self._r.wakes.items() if at <= before)
            return [self._r.jobs[job_id] for _, job_id in due]

    def damaged(self, *, limit: int = 100) -> dict[str, RowUnreadable]:
        return {}

    def counts(self) -> dict[State, int]:
        return _counted(self._r.jobs.values())

    def count(self, states: frozenset[State], *, before: float) -> int:
        with self._r.lock:
            return sum(job.state in states and job.created_at < before for job in self._r.jobs.values())

    def ends(self, since: float) -> tuple[EndCounts, ...]:
        return tuple(one for _, one in sorted(self._r.ends.items()) if not one.tenant and one.at >= since)

    def sender_ends(self, since: float, tenant: str | None = None) -> tuple[EndCounts, ...]:
        kept = [one for one in self._r.ends.values() if one.tenant and one.at >= since]
        return tuple(one for one in kept if tenant in (None, one.tenant))

    def resolve(self, resolution: Resolution) -> bool:
        there = self._r.resolutions.get(resolution.what)
        if there is not None and there.until >= resolution.until:
            return False
        self._r.resolutions[resolution.what] = resolution
        return True

    def resolutions(self) -> tuple[Resolution, ...]:
        return tuple(sorted(self._r.resolutions.values(), key=lambda one: (-one.at, one.what)))

    def recount(self) -> int:
        now = self._clock.now()
        for key, one in list(self._r.ends.items()):
            if one.at < now - (SENDER_SECONDS if one.tenant else COUNTER_SECONDS):
                del self._r.ends[key]
        for what, made in list(self._r.resolutions.items()):
            if made.at < now - SENDER_SECONDS:
                del self._r.resolutions[what]
        return 0  # a start counts the rows themselves

    def tally(self, tenant: str | None = None) -> Tally:
        with self._r.lock:
            jobs = [job for job in self._r.jobs.values() if tenant in (None, job.tenant)]
        names = sorted({job.tenant for job in jobs})
        return Tally({name: _counted(job for job in jobs if job.tenant == name) for name in names})

    def pause(self, pause: Pause) -> None:
        self._r.pauses.setdefault((pause.tenant or "", pause.workflow or ""), pause)

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        return self._r.pauses.pop((tenant or "", workflow or ""), None) is not None

    def pauses(self) -> tuple[Pause, ...]:
        return tuple(sorted(self._r.pauses.values(), key=lambda pause: pause.since))

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        now = self._clock.now()
        with self._r.lock:
            holder, expires = self._r.leases.get(name, (owner, 0.0))
            if holder != owner and expires > now:
                return False
            self._r.leases[name] = (owner, now + seconds)
            return True

    def let_go(self, name: str, owner: str) -> None:
        with self._r.lock:
            if self._r.leases.get(name, ("", 0.0))[0] == owner:
                del self._r.leases[name]

    def generations(self, names: Collection[str]) -> dict[str, int]:
        return {name: self._r.generations.get(name, 0) for name in names}

    def advance(self, name: str) -> None:
        with self._r.lock:
            self._r.generations[name] = self._r.generations.get(name, 0) + 1

    def wait(self, seconds: float) -> None:
        with self._r.changed:
            self._r.changed.wait(min(seconds, 1.0))

    def close(self) -> None:
        pass

    def _paused(self, job: Job) -> Refused | None:
        for tenant, workflow in (("", ""), (job.tenant, ""), (job.tenant, job.workflow)):
            if (tenant, workflow) in self._r.pauses:
                what = workflow or tenant or "everything"
                return Refused(reason=f"waiting: paused, {what}", scope="pause")
        return None

    def _capped(self, job: Job, caps: Caps) -> Refused | None:
        running = [j for j in self._r.jobs.values() if j.state is State.RUNNING and j.tenant == job.tenant]
        if caps.tenant and len(running) >= caps.tenant:
            return Refused(reason=f"waiting: tenant {job.tenant} {len(running)}/{caps.tenant} running", scope="tenant")
        n = sum(j.workflow == job.workflow for j in running)
        if caps.workflow and n >= caps.workflow:
            return Refused(reason=f"waiting: workflow {job.workflow} {n}/{caps.workflow} running", scope="workflow")
        return None


def _counted(jobs: "Iterator[Job] | Collection[Job]") -> dict[State, int]:
    found: dict[State, int] = {}
    for job in jobs:
        found[job.state] = found.get(job.state, 0) + 1
    return found


@dataclass
class _Copy:
    """One message on its way; the same message may have several."""

    message: Message
    sent_at: float
    visible_at: float
    receives: int = 0
    receipt: str = ""


@dataclass
class Messages:
    """What a queue holds; time is its own."""

    clock: Clock
    copies: list[_Copy] = field(default_factory=list)
    letters: dict[str, DeadLetter] = field(default_factory=dict)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    changed: threading.Condition = field(default_factory=threading.Condition)
    shuffle: Callable[[list[_Copy]], None] = lambda _copies: None  # in which order visible ones are handed out
    hidden_for: Callable[[float], float] = lambda seconds: seconds  # shorter: the message is delivered twice
    on_send: Callable[[], None] = lambda: None

    def soonest(self) -> float | None:
        return min((copy.visible_at for copy in self.copies), default=None)


class SimQueue:
    chooses_tenants = False

    def __init__(self, messages: Messages) -> None:
        self._m = messages
        self._woken = False

    def send(self, message: Message, *, delay: float = 0.0) -> None:
        with self._m.changed:
            now = self._m.clock.now()
            self._m.copies.append(_Copy(message, now, now + delay))
            self._m.on_send()
            self._m.changed.notify_all()

    def send_all(self, messages: Sequence[tuple[Message, float]]) -> None:
        for message, delay in messages:
            self.send(message, delay=delay)

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        until = time.monotonic() + wait if wait else 0.0
        with self._m.changed:
            while True:
                taken = self._take(most, visibility)
                left = until - time.monotonic() if wait else 0.0
                if taken or left <= 0 or self._woken:
                    self._woken = False
                    return taken
                self._m.changed.wait(left)

    def hide(self, receipt: str, seconds: float) -> bool:
        with self._m.changed:
            copy = self._held(receipt)
            if copy is not None:
                copy.visible_at = self._m.clock.now() + seconds
                if seconds <= 0:
                    copy.receipt = ""
                self._m.on_send()
            return copy is not None

    def ack(self, receipt: str) -> None:
        with self._m.changed:
            copy = self._held(receipt)
            if copy is not None:
                self._m.copies.remove(copy)

    def missing(self, job_ids: Sequence[str], expected: Callable[[], int]) -> tuple[str, ...]:
        del expected
        here = {copy.message.job_id for copy in self._m.copies}
        return tuple(job_id for job_id in job_ids if job_id not in here)

    def bury(self, message: Message, reason: str) -> None:
        self._m.letters[message.job_id] = DeadLetter(message=message, reason=reason, at=self._m.clock.now())

    def dead(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        return tuple(sorted(self._m.letters.values(), key=lambda letter: letter.at)[:limit])

    def redrive(self, job_id: str | None = None) -> int:
        gone = [name for name in self._m.letters if job_id in (None, name)]
        for name in gone:
            del self._m.letters[name]
        return len(gone)

    def stats(self) -> QueueStats:
        now = self._m.clock.now()
        ready = [copy for copy in self._m.copies if copy.visible_at <= now]
        held = [copy for copy in self._m.copies if copy.visible_at > now and copy.receipt]
        return QueueStats(
            ready=len(ready),
            in_flight=len(held),
            delayed=len(self._m.copies) - len(ready) - len(held),
            dead=len(self._m.letters),
            oldest_seconds=max((now - copy.sent_at for copy in ready), default=None),
        )

    def wake(self) -> None:
        with self._m.changed:
            self._woken = True
            self._m.changed.notify_all()

    def close(self) -> None:
        pass

    def _take(self, most: int, visibility: float) -> tuple[Delivery, ...]:
        now = self._m.clock.now()
        ready = [copy for copy in self._m.copies if copy.visible_at <= now]
        self._m.shuffle(ready)
        taken = []
        for copy in ready[:most]:
            copy.visible_at, copy.receives = now + self._m.hidden_for(visibility), copy.receives + 1
            copy.receipt = f"r{next(self._m.numbers)}"
            taken.append(
                Delivery(message=copy.message, receipt=copy.receipt, receives=copy.receives, sent_at=copy.sent_at)
            )
        return tuple(taken)

    def _held(self, receipt: str) -> _Copy | None:
        """The copy of a receipt that is not stale: neither received again, nor given back, nor deleted."""
        return next((copy for copy in self._m.copies if receipt and copy.receipt == receipt), None)
