"""JobTable on SQLite."""

import contextlib
import itertools
import random
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection, Row

from core.chores import resting
from core.ends import COUNTER_SECONDS, NUMBERS, SENDER_SECONDS, EndCounts, end_counts
from core.errors import RecordNewer, RowUnreadable
from core.jobs import Job, Outcome, State, dump_job, first, lease_owner, load_job
from core.ports import Caps, Clock, JobQuery, LineMark, Message, NewerRow, Page, Pause, Refused, Resolution, Tally
from core.verdicts import FAULTS
from infra.local import bells
from infra.local.sqlite import Database
from infra.local.sqlite_queue import insert_message, queue_bell

_STATES = frozenset(State)
_SET_BACK_SECONDS = 60.0
_MARKED_SECONDS = 86400.0
_NEWEST = "ORDER BY created_at DESC, job_id DESC"
_MOST_SCANNED = 1000  # rows that one page scans at most where no index has the answer
_BATCH = 200
_MOST_CHECKED = 1000  # QUEUED jobs that are checked for their messages at once
_INDEXED = (Outcome.ERRORS, Outcome.WARNINGS)
_KNOWN = "job_id, tenant, workflow, state, created_at"  # beside the record in every version; see NewerRow


class SqliteJobTable:
    def __init__(self, database: Database, clock: Clock, wake_at: Callable[[Job], float | None]) -> None:
        self._db = database
        self._clock = clock
        self._wake_at = wake_at
        self._bell = database.folder / "bells" / "jobs"
        self._listeners = threading.local()  # a ring wakes every waiting thread, so each has its own

    @property
    def database(self) -> Path:
        return self._db.path

    def add(self, job: Job) -> tuple[Job, bool]:
        with self._db.write() as db:
            added, made = self._insert(db, job)
        if made:
            bells.ring(self._bell)
        return added, made

    def add_sent(self, job: Job, delay: float) -> tuple[Job, bool]:
        with self._db.write() as db:
            added, made = self._insert(db, job)
            if made:
                insert_message(db, Message.of(added), delay=delay, now=self._clock.now())
        if made:
            bells.ring(queue_bell(self._db))
            bells.ring(self._bell)
        return added, made

    def without_message(self, cursor: str | None) -> tuple[tuple[Job, ...], str | None]:
        at, _, job_id = (cursor or "-inf|").partition("|")
        rows = self._db.read().execute(_WITHOUT_MESSAGE, (float(at), job_id, _MOST_CHECKED)).fetchall()
        missing = _readable(row for row in rows if row["doc"] is not None)
        following = f"{rows[-1]['created_at']!r}|{rows[-1]['job_id']}" if len(rows) == _MOST_CHECKED else None
        return tuple(job for job in missing if job.enqueued_at is not None), following

    def get(self, job_id: str) -> Job | None:
        row = self._db.read().execute("SELECT doc FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
        return load_job(row["doc"], job_id) if row else None

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        found = {}
        for job_id in job_ids:
            with contextlib.suppress(RowUnreadable):
                if (job := self.get(job_id)) is not None:
                    found[job_id] = job
        return found

    def replace(self, old: Job, new: Job) -> Job | None:
        with self._db.write() as db:
            written = self._replace(db, old, new)
        if written is not None:
            bells.ring(self._bell)
        return written

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        with self._db.write() as db:
            refused = _paused(db, new) or _capped(db, new, caps)
            written = None if refused else self._replace(db, old, new)
        if written is not None:
            bells.ring(self._bell)
        return refused or written

    def remove(self, old: Job) -> bool:
        with self._db.write() as db:
            gone = db.execute("DELETE FROM jobs WHERE job_id = ? AND rev = ?", (old.job_id, old.rev)).rowcount == 1
            if gone and old.fence:
                db.execute(
                    "INSERT INTO fences (tenant, fence) VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE"
                    " SET fence = max(fence, excluded.fence)",
                    (old.tenant, old.fence),
                )
        bells.ring(self._bell)
        return gone

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page:
        db = self._db.read()
        filters, values = _filters(query)
        # Either an index has the answer in order, or a bounded number of rows is scanned.
        budget = limit if not filters else max(limit, _MOST_SCANNED)
        rows: list[Row] = []
        scanned, more = 0, True
        while more and scanned < budget and len(rows) < limit:
            at_once = min(_BATCH if scanned else min(limit, _BATCH), budget - scanned)
            entries = self._entries(query, at_once + 1, cursor)
            batch, more = entries[:at_once], len(entries) > at_once
            found = {
                row["job_id"]: row
                for row in db.execute(
                    f"SELECT {_KNOWN}, doc FROM jobs WHERE job_id IN ({','.join('?' * len(batch))}) {filters}",  # noqa: S608 - from constants
                    (*(job_id for _, job_id in batch), *values),
                )
            }
            for position, (at, job_id) in enumerate(batch, 1):
                scanned += 1
                cursor = f"{at!r}|{job_id}"
                if job_id in found:
                    rows.append(found[job_id])
                    if len(rows) == limit:
                        more = more or position < len(batch)
                        break
        newer: list[NewerRow] = []
        jobs = tuple(job for job in _readable(rows, newer) if query.holds(job))
        return Page(
            jobs=jobs,
            cursor=cursor if more else None,
            newer=tuple(row for row in newer if query.holds(row)),
        )

    def _entries(self, query: JobQuery, limit: int, cursor: str | None) -> list[tuple[float, str]]:
        """Time and id of the newest jobs of a tenant and of states: an index has each pair in order."""
        bounds, edges = list[str](), list[object]()
        if cursor is not None:
            at, _, job_id = cursor.partition("|")
            bounds.append("(created_at, job_id) < (?, ?)")
            edges += [float(at), job_id]
        if query.created_from is not None:
            bounds.append("created_at >= ?")
            edges.append(query.created_from)
        if query.created_to is not None:
            bounds.append("created_at < ?")
            edges.append(query.created_to)
        states: list[str] | None = None if query.states is None else sorted(query.states)
        if query.outcome is not None:
            states = [str(State.SUCCEEDED)]
        if states is None and query.tenant is not None:
            found = self._db.read().execute("SELECT DISTINCT state FROM job_counts WHERE tenant = ?", (query.tenant,))
            states = [state for (state,) in found]
        lanes: list[tuple[list[str], list[object]]] = [([], [])]
        own = [] if query.tenant is None else ["tenant = ?"]
        named = [] if query.tenant is None else [query.tenant]
        if query.outcome in _INDEXED:
            lanes = [([*own, "outcome = ?"], [*named, str(query.outcome)])]
        elif states is not None:
            lanes = [([*own, "state = ?"], [*named, state]) for state in states]
        if not lanes:
            return []
        parts, values = [], list[object]()
        for conditions, bound in lanes:
            where = " AND ".join([*conditions, *bounds]) or "1 = 1"
            lane = f"SELECT created_at, job_id FROM jobs WHERE {where} {_NEWEST} LIMIT ?"  # noqa: S608 - from constants
            parts.append(f"SELECT * FROM ({lane})")  # noqa: S608 - as above
            values += [*bound, *edges, limit]
        rows = self._db.read().execute(f"{' UNION ALL '.join(parts)} {_NEWEST} LIMIT ?", (*values, limit))
        return [(at, job_id) for at, job_id in rows]

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        rows = self._db.read().execute(
            f"SELECT {_KNOWN}, doc FROM jobs WHERE line = ? ORDER BY created_at, job_id",  # noqa: S608 - a constant
            (line,),
        )
        newer: list[NewerRow] = []
        jobs = tuple(_readable(rows, newer))
        if whole and newer:
            raise newer[0].why
        return jobs

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._awake(before, limit, resting=False)

    def outdated(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._awake(before, limit, resting=True)

    def damaged(self, *, limit: int = 100) -> dict[str, RowUnreadable]:
        found: dict[str, RowUnreadable] = {}
        for row in self._db.read().execute("SELECT job_id, state, doc FROM jobs ORDER BY created_at"):
            try:
                job = load_job(row["doc"], row["job_id"])
            except RowUnreadable as error:
                found[row["job_id"]] = error
            else:
                if job.state != row["state"]:
                    found[row["job_id"]] = RowUnreadable(
                        f"row {job.job_id} says {row['state']} in its column, {job.state} in its record"
                    )
            if len(found) >= limit:
                break
        return found

    def counts(self) -> dict[State, int]:
        rows = self._db.read().execute("SELECT state, sum(n) FROM job_counts GROUP BY state")
        return {State(state): n for state, n in rows if state in _STATES and n > 0}

    def count(self, states: frozenset[State], *, before: float) -> int:
        names = sorted(states)
        (n,) = (
            self._db.read()
            .execute(
                f"SELECT count(*) FROM jobs WHERE state IN ({','.join('?' * len(names))}) AND created_at < ?",  # noqa: S608 - from constants
                (*names, before),
            )
            .fetchone()
        )
        return int(n)

    def tally(self, tenant: str | None = None) -> Tally:
        found: dict[str, dict[State, int]] = {}
        where, values = ("", ()) if tenant is None else ("WHERE tenant = ?", (tenant,))
        rows = self._db.read().execute(
            f"SELECT tenant, state, sum(n) FROM job_counts {where} GROUP BY tenant, state HAVING sum(n) > 0",  # noqa: S608 - from constants
            values,
        )
        for name, state, n in rows:
            if state not in _STATES:
                continue  # edited by hand; `damaged` reports it
            found.setdefault(name, {})[State(state)] = n
        return Tally(found)

    def recount(self) -> int:
        now = self._clock.now()
        with self._db.write() as db:
            db.execute(
                "DELETE FROM ends WHERE at < ? OR (tenant = '' AND at < ?)",
                (now - SENDER_SECONDS, now - COUNTER_SECONDS),
            )
            db.execute("DELETE FROM resolutions WHERE at < ?", (now - SENDER_SECONDS,))
        return 0  # a start counts the rows themselves

    def ends(self, since: float) -> tuple[EndCounts, ...]:
        return self._ends("tenant = '' AND at >= ? ORDER BY at", since)

    def sender_ends(self, since: float, tenant: str | None = None) -> tuple[EndCounts, ...]:
        if tenant is not None:
            return self._ends("tenant = ? AND at >= ?", tenant, since)
        return self._ends("tenant <> '' AND at >= ?", since)

    def _ends(self, where: str, *values: object) -> tuple[EndCounts, ...]:
        names = ", ".join(NUMBERS)
        rows = self._db.read().execute(
            f"SELECT tenant, workflow, at, last_at, last_job, {names} FROM ends WHERE {where}",  # noqa: S608 - from constants
            values,
        )
        return tuple(
            EndCounts(
                at=at, numbers=tuple(numbers), tenant=tenant, workflow=workflow, last_at=last_at, last_job=last_job
            )
            for tenant, workflow, at, last_at, last_job, *numbers in rows
        )

    def resolve(self, resolution: Resolution) -> bool:
        one = resolution
        with self._db.write() as db:
            changed = db.execute(
                "INSERT INTO resolutions (what, until, tenant, at, by, note) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (what) DO UPDATE SET until = excluded.until, tenant = excluded.tenant, at = excluded.at,"
                " by = excluded.by, note = excluded.note WHERE excluded.until > resolutions.until",
                (one.what, one.until, one.tenant, one.at, one.by, one.note),
            ).rowcount
        return changed == 1

    def resolutions(self) -> tuple[Resolution, ...]:
        rows = self._db.read().execute(
            "SELECT what, until, tenant, at, by, note FROM resolutions ORDER BY at DESC, what"
        )
        return tuple(Resolution(**dict(row)) for row in rows)

    def pause(self, pause: Pause) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT OR IGNORE INTO pauses (tenant, workflow, since, by) VALUES (?, ?, ?, ?)",
                (pause.tenant or "", pause.workflow or "", pause.since, pause.by),
            )

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        with self._db.write() as db:
            gone = db.execute(
                "DELETE FROM pauses WHERE tenant = ? AND workflow = ?", (tenant or "", workflow or "")
            ).rowcount
        bells.ring(self._bell)
        return gone > 0

    def pauses(self) -> tuple[Pause, ...]:
        rows = self._db.read().execute("SELECT tenant, workflow, since, by FROM pauses ORDER BY since")
        return tuple(
            Pause(tenant=r["tenant"] or None, workflow=r["workflow"] or None, since=r["since"], by=r["by"])
            for r in rows
        )

    def erase_tenant(self, tenant: str) -> int:
        """Overwrites what it deletes, and rebuilds the file: pages that were free before may hold more."""
        gone = 0
        self._db.read().execute("PRAGMA secure_delete = ON")
        with self._db.write() as db:
            for statement in (
                "DELETE FROM jobs WHERE tenant = ?",
                "DELETE FROM messages WHERE tenant = ?",
                "DELETE FROM dead_letters WHERE tenant = ?",
                "DELETE FROM lanes WHERE tenant = ?",
            ):
                gone += db.execute(statement, (tenant,)).rowcount
            for name in ("job_counts", "ends", "resolutions"):
                db.execute(f"DELETE FROM {name} WHERE tenant = ?", (tenant,))  # noqa: S608 - from constants
            # Of all tenants: the numbers stay, without the name of a job that is gone.
            db.execute("UPDATE ends SET last_job = '' WHERE last_job NOT IN (SELECT job_id FROM jobs)")
            db.execute("DELETE FROM marks WHERE substr(line, 1, length(?) + 1) = ? || '/'", (tenant, tenant))
        self._db.rebuild()
        return gone

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        now = self._clock.now()
        with self._db.write() as db:
            cursor = db.execute(
                "INSERT INTO leases (name, owner, expires) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
                " SET owner = excluded.owner, expires = excluded.expires"
                " WHERE leases.owner = excluded.owner OR leases.expires <= ?"
                # Nobody holds a lease for so long: the clock was set back, and its owner may have died long ago.
                " OR leases.expires > ?",
                (name, owner, now + seconds, now, now + seconds + _SET_BACK_SECONDS),
            ).rowcount
        return cursor == 1

    def let_go(self, name: str, owner: str) -> None:
        with self._db.write() as db:
            db.execute("DELETE FROM leases WHERE name = ? AND owner = ?", (name, owner))

    def generations(self, names: Collection[str]) -> dict[str, int]:
        rows = self._db.read().execute(
            f"SELECT name, n FROM generations WHERE name IN ({','.join('?' * len(names))})",  # noqa: S608 - only marks
            tuple(names),
        )
        return dict.fromkeys(names, 0) | dict(map(tuple, rows))

    def advance(self, name: str) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO generations (name, n) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = n + 1", (name,)
            )

    def marked(self, lines: Collection[str]) -> dict[str, bytes]:
        rows = self._db.read().execute(
            f"SELECT line, planned_from FROM marks WHERE line IN ({','.join('?' * len(lines))}) AND until > ?",  # noqa: S608 - only marks
            (*lines, self._clock.now()),
        )
        return dict(map(tuple, rows))

    def mark(self, marks: Mapping[str, LineMark]) -> None:
        now = self._clock.now()
        with self._db.write() as db:
            for line, mark in marks.items():
                rows = db.execute("SELECT job_id, rev FROM jobs WHERE line = ?", (line,))
                if {(job_id, rev) for job_id, rev in rows} == mark.rows:
                    # Not all on the same day, so that no sweep plans everything again.
                    until = now + _MARKED_SECONDS * (1 + random.random()) / 2  # noqa: S311 - no secret
                    db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (line, mark.planned_from, until))

    def wait(self, seconds: float) -> None:
        listener: bells.Listener | None = getattr(self._listeners, "here", None)
        if listener is None:
            listener = self._listeners.here = bells.Listener(self._bell)
        listener.wait(seconds)

    def _insert(self, db: Connection, job: Job) -> tuple[Job, bool]:
        row = db.execute("SELECT doc FROM jobs WHERE job_id = ?", (job.job_id,)).fetchone()
        if row is not None:
            return load_job(row["doc"], job.job_id), False
        floor = db.execute("SELECT fence FROM fences WHERE tenant = ?", (job.tenant,)).fetchone()
        job = first(job, floor["fence"] if floor else 0)
        db.execute(
            "INSERT INTO jobs (job_id, tenant, workflow, line, created_at, state, wake_at, resting, rev, doc)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (job.job_id, job.tenant, job.workflow, job.line, job.created_at, *self._written(job)),
        )
        return job, True

    def _replace(self, db: Connection, old: Job, new: Job) -> Job | None:
        written, owner = replace(new, rev=old.rev + 1), lease_owner(old)
        changed = db.execute(
            _REPLACE,
            (*self._written(written), old.job_id, old.rev, owner, owner),
        ).rowcount
        if changed != 1:
            return None
        for counts in end_counts(old, written) or ():
            of = (counts.tenant, counts.workflow, counts.at)
            db.execute(_COUNT_END, (*of, *counts.numbers, counts.last_at, counts.last_job))
        return written

    def _written(self, job: Job) -> tuple[str, float | None, bool, int, str]:
        return str(job.state), self._wake_at(job), resting(job), job.rev, dump_job(job)

    def _awake(self, before: float, limit: int, *, resting: bool) -> tuple[Job, ...]:
        rows = self._db.read().execute(
            "SELECT job_id, doc FROM jobs WHERE resting = ? AND wake_at <= ? ORDER BY wake_at", (resting, before)
        )
        # As many readable rows as requested: unreadable ones would stay first forever.
        return tuple(itertools.islice(_readable(rows), limit))


def _field(path: str) -> str:
    return f"CASE WHEN json_valid(doc) THEN json_extract(doc, '$.{path}') END"


_REPLACE = f"""UPDATE jobs SET state = ?, wake_at = ?, resting = ?, rev = ?, doc = ?
  WHERE job_id = ? AND rev = ? AND (? IS NULL OR {_field("lease.owner")} = ?)"""  # noqa: S608 - from constants


# The next QUEUED jobs, and of those that have no message the record; one snapshot.
_WITHOUT_MESSAGE = """SELECT created_at, job_id,
    CASE WHEN NOT EXISTS (SELECT 1 FROM messages WHERE messages.job_id = jobs.job_id) THEN doc END AS doc
  FROM jobs WHERE state = 'QUEUED' AND (created_at, job_id) > (?, ?) ORDER BY created_at, job_id LIMIT ?"""


_ADDED = ", ".join(f"{name} = {name} + excluded.{name}" for name in NUMBERS)
_COUNT_END = f"""INSERT INTO ends (tenant, workflow, at, {", ".join(NUMBERS)}, last_at, last_job)
  VALUES ({", ".join("?" * (5 + len(NUMBERS)))})
  ON CONFLICT (tenant, workflow, at) DO UPDATE SET {_ADDED},
    last_job = CASE WHEN excluded.last_at >= last_at THEN excluded.last_job ELSE last_job END,
    last_at = max(last_at, excluded.last_at)"""  # noqa: S608 - from constants


def _readable(rows: Iterable[Row], newer: list[NewerRow] | None = None) -> Iterator[Job]:
    """The jobs of the rows that can be read; `newer` receives the rows that a newer program wrote."""
    for row in rows:
        try:
            yield load_job(row["doc"], row["job_id"])
        except RecordNewer as error:
            if newer is not None:
                newer.append(NewerRow(**{name: row[name] for name in _KNOWN.split(", ")}, why=error))
        except RowUnreadable:
            continue


def _filters(query: JobQuery) -> tuple[str, list[object]]:
    """What no index answers, as a condition on the row; a record that is not JSON never matches."""
    found, values = list[str](), list[object]()

    def add(condition: str, *bound: object) -> None:
        found.append(condition)
        values.extend(bound)

    if query.workflow is not None:
        add("workflow = ?", query.workflow)
    if query.text is not None:
        add(f"instr(casefold({_field('subject')} || char(10) || job_id), ?) > 0", query.text.casefold())
    if query.outcome is not None and query.states is not None and State.SUCCEEDED not in query.states:
        add("1 = 0")
    if query.outcome is Outcome.CLEAN:
        add("outcome IS NULL")
    if query.verdict is not None:
        add(f"{_field('error.verdict')} = ?", str(query.verdict))
    if query.fault is not None:
        verdicts = [str(verdict) for verdict, fault in FAULTS.items() if fault is query.fault]
        add(f"{_field('error.verdict')} IN ({','.join('?' * len(verdicts))})", *verdicts)
    if query.runner is not None:
        add(f"{_field('lease.owner')} = ?", query.runner)
    if query.ended_from is not None:
        add(f"{_field('ended_at')} >= ?", query.ended_from)
    if query.ended_to is not None:
        add(f"{_field('ended_at')} < ?", query.ended_to)
    return "".join(f" AND {condition}" for condition in found), values


def _paused(db: Connection, job: Job) -> Refused | None:
    row = db.execute(
        "SELECT tenant, workflow FROM pauses WHERE tenant IN ('', ?) AND workflow IN ('', ?) LIMIT 1",
        (job.tenant, job.workflow),
    ).fetchone()
    if row is None:
        return None
    what = f"workflow {row['workflow']} of tenant {row['tenant']}" if row["workflow"] else f"tenant {row['tenant']}"
    return Refused(reason=f"waiting: paused, {what if row['tenant'] else 'everything'}", scope="pause")


def _capped(db: Connection, job: Job, caps: Caps) -> Refused | None:
    if caps.tenant:
        (n,) = db.execute("SELECT count(*) FROM jobs WHERE state = 'RUNNING' AND tenant = ?", (job.tenant,)).fetchone()
        if n >= caps.tenant:
            return Refused(reason=f"waiting: tenant {job.tenant} {n}/{caps.tenant} running", scope="tenant")
    if caps.workflow:
        (n,) = db.execute(
            "SELECT count(*) FROM jobs WHERE state = 'RUNNING' AND tenant = ? AND workflow = ?",
            (job.tenant, job.workflow),
        ).fetchone()
        if n >= caps.workflow:
            return Refused(reason=f"waiting: workflow {job.workflow} {n}/{caps.workflow} running", scope="workflow")
    return None
