"""What `ade doctor` looks at in table and queue: full, stuck, dead, paused, nobody at work."""

import itertools
import sqlite3
from collections.abc import Iterator
from posixpath import basename

from console import wire
from console.checks import OK, WARNING, WRONG, Check
from console.scopes import scope_words
from console.words import plural, span
from core.errors import RecordNewer
from core.jobs import State
from core.keys import INBOX, is_ignored
from core.ports import JobQuery
from infra.wiring import Stack
from runner.sandbox.logs import printable

_OLD_SECONDS = 300.0
_OVERDUE_SECONDS = 60.0
_FORGOTTEN_SECONDS = 3600.0  # what has expired may wait for what is more urgent
_SKEW_SECONDS = 3.0
_SHOWN = 20
_LOOKED_AT = 1000
_FAILED = 200  # failed jobs, newest first, that are looked at


def check_table(stack: Stack) -> Iterator[Check]:
    if stack.settings.table_url:
        yield Check("table", OK, f"{stack.settings.table_url.partition('?')[0]} answers; {_jobs(stack)}")
        return
    path = stack.settings.storage_data_dir.absolute() / "ade.sqlite"
    db = sqlite3.connect(path, timeout=5, isolation_level=None)
    try:
        mode = db.execute("PRAGMA journal_mode").fetchone()[0]
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    except sqlite3.Error as error:
        remedy = f"see who holds it (fuser {path}), and whether the file and its folder are writable"
        yield Check("table", WRONG, f"{path} cannot be written to: {error}", remedy)
        return
    finally:
        db.close()
    if mode != "wal":
        remedy = "put ADE_STORAGE_DATA_DIR on a local disk: network file systems do not carry WAL"
        yield Check("table", WRONG, f"{path} is in journal mode {mode}, not WAL", remedy)
        return
    yield Check("table", OK, f"SQLite {sqlite3.sqlite_version}, WAL; {_jobs(stack)}")


def _jobs(stack: Stack) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(stack.table.counts().items())) or "no jobs"


def check_store(stack: Stack) -> Iterator[Check]:
    """A bucket in the cloud: asked once; what it does not answer is an error in its own words."""
    if stack.settings.store_url:
        tenants = len(stack.store.folder("inbox/").folders)
        yield Check("store", OK, f"{stack.settings.store_url.partition('?')[0]} answers; {plural(tenants, 'tenant')}")


def check_queue(stack: Stack) -> Iterator[Check]:
    """Waiting jobs against ADE_QUEUE_SIZE, the age of what is ready, and whether anybody works."""
    stats, size = stack.queue.stats(), stack.settings.queue_size
    working = wire.runners(stack)
    full = {
        tenant: counts[State.QUEUED]
        for tenant, counts in stack.table.tenants().items()
        if counts.get(State.QUEUED, 0) > size
    }
    for tenant, n in sorted(full.items()):
        remedy = (
            "start more runners (`ade run`) or raise ADE_MAX_CONCURRENCY; "
            "ADE_QUEUE_SIZE only says when HTTP submits get 429"
        )
        said = f"queue full: tenant {tenant} has {plural(n, 'job')} waiting, over ADE_QUEUE_SIZE={size}"
        yield Check("queue", WRONG, said, remedy)
    if stats.oldest_seconds is not None and stats.oldest_seconds > _OLD_SECONDS:
        said = f"the oldest message has been ready for {span(stats.oldest_seconds)}"
        yield Check("queue", WARNING, said, "see `ade jobs --state QUEUED` for what they wait for")
    if stats.ready and not working:
        remedy = "start `ade up`, or `ade run` on another machine that shares this data"
        yield Check("queue", WRONG, f"{plural(stats.ready, 'message')} ready and no runner is alive here", remedy)
    for owner, why in working.items():
        if why:
            remedy = "mend that; it looks again every few seconds and goes on by itself, and no job has lost a try"
            yield Check("queue", WRONG, f"{owner} takes no jobs: {printable(why)}", remedy)
    for pause in stack.table.pauses():
        name = scope_words(pause.tenant, pause.workflow)
        words = "all" if pause.tenant is None else f"tenant {pause.tenant}"
        words = f"workflow {pause.tenant} {pause.workflow}" if pause.workflow else words
        yield Check("queue", WARNING, f"{name} is paused by {pause.by}", f"ade resume {words}")
    moving = f"{stats.ready} ready, {stats.in_flight} in flight, {stats.delayed} delayed"
    yield Check("queue", OK, f"{moving}; {plural(len(working), 'runner')} here")


def check_dead(stack: Stack) -> Iterator[Check]:
    letters = stack.queue.dead(limit=1000)
    if not letters:
        yield Check("dead letters", OK, "none")
        return
    last = letters[-1]
    said = f"{plural(len(letters), 'job')} used up all tries through our own fault; the last: {last.reason}"
    yield Check("dead letters", WRONG, said, "mend the cause, then `ade queue redrive`; `ade queue dead` lists them")


def check_engine(stack: Stack) -> Iterator[Check]:
    """Ends that a sender or a config has to answer for, and that may be a fault of the engine's all the same."""
    failed = stack.table.page(JobQuery(states=frozenset({State.FAILED})), limit=_FAILED).jobs
    suspected = [job for job in failed if job.summary.get("engine_fault")]
    if not suspected:
        yield Check("engine", OK, "no failed job looks like a fault of the engine's")
        return
    last = suspected[0]
    said = f"{plural(len(suspected), 'failed job')} may be the engine's fault; the last, {last.job_id}: "
    remedy = "report it with the log event engine_fault_suspected; where rules ran, they may have caused or forged it"
    yield Check("engine", WARNING, said + str(last.summary["engine_fault"]), remedy)


def check_rows(stack: Stack) -> Iterator[Check]:
    """Rows that no program can read, or that somebody edited so that they contradict themselves."""
    damaged = stack.table.damaged(limit=_SHOWN)
    for why in damaged.values():
        if isinstance(why, RecordNewer):
            yield Check("rows", WARNING, str(why), "upgrade what runs here, as docs/upgrading.md says")
            continue
        yield Check("rows", WRONG, str(why), "mend the row, or delete it: the next sweep makes it anew from the inbox")
    if not damaged:
        yield Check("rows", OK, "every row can be read")


def check_inbox(stack: Stack) -> Iterator[Check]:
    """Objects that nobody will read, because their names or the store itself stand in the way."""
    aside: dict[str, str] = {}
    top = stack.store.level(INBOX)
    loose = [key for key in (*top.keys, *top.strange) if not is_ignored(basename(key))]
    for key in loose[:_SHOWN]:
        yield Check("inbox", WARNING, f"{key!r} is in no tenant's folder", f"put it below {INBOX}<tenant>/")
    looked = sum(1 for _ in itertools.islice(stack.store.objects(INBOX, aside=aside), _LOOKED_AT))
    for key, why in list(aside.items())[:_SHOWN]:
        yield Check("inbox", WARNING, f"{key!r} is set aside: {why}", "rename it, or see to its permissions")
    if not loose and not aside:
        more = "; more were not looked at" if looked == _LOOKED_AT else ""
        yield Check("inbox", OK, f"{plural(looked, 'object')}, none set aside{more}")


def check_stuck(stack: Stack) -> Iterator[Check]:
    """Chores that nobody does: leases that ran out, publications that nobody finished."""
    now = stack.clock.now()
    overdue = stack.table.attention(now - _OVERDUE_SECONDS, limit=1000)
    overdue += stack.table.outdated(now - _FORGOTTEN_SECONDS, limit=1000)
    if not overdue:
        yield Check("chores", OK, "nothing is overdue")
        return
    states = sorted({str(job.state) for job in overdue})
    late = f"{plural(len(overdue), 'job')} overdue for a chore that nobody does"
    said = f"{late} ({', '.join(states)}), first {overdue[0].job_id}"
    yield Check("chores", WRONG, said, "start `ade up` or `ade janitor run`, or do them now: `ade janitor run-once`")


def check_clocks(stack: Stack) -> Iterator[Check]:
    """Our clock against the services' own, which are all that the machines of a fleet have in common."""
    remedy = "let the system keep time: timedatectl set-ntp true; in a container, on its host"
    for caller in stack.callers:
        if caller.ahead is not None and abs(caller.ahead) > _SKEW_SECONDS:
            where = "ahead of" if caller.ahead > 0 else "behind"
            said = f"our clock is at least {abs(caller.ahead):.0f} s {where} that of {caller.service.partition('?')[0]}"
            yield Check("clock", WARNING, said, remedy)


def newest_change(stack: Stack) -> float | None:
    jobs = stack.table.page(JobQuery(), limit=20).jobs
    return max((job.updated_at for job in jobs), default=None)
