"""JobTable on PostgreSQL. Its multi-step writes are functions of the schema (sql/migrations), the rest sql/queries.sql.

Every write carries a name of its own (`writer`): where the answer to an earlier try was lost, the name in the row shows
whether that try had got through. A row's fence starts above those of its tenant's removed rows; how high that is, is
remembered here and corrected by the server where it is out of date.
"""

import itertools
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import psycopg

from core.chores import resting
from core.ends import COUNTER_SECONDS, SENDER_SECONDS, EndCounts, end_counts
from core.errors import RecordNewer, RowUnreadable
from core.jobs import Job, Outcome, State, dump_job, first, lease_owner, load_job
from core.ports import Caps, Clock, JobQuery, Message, NewerRow, Page, Pause, Refused, Resolution, Tally
from infra.postgres.connections import Connections, Link, OnConnections, Row, in_schema, storable
from infra.postgres.listening import JOBS, QUEUE, PostgresBells
from infra.postgres.pg_queue import PRIORITY_SECONDS

_STATES = frozenset(State)
# States that most rows are in, which the index of states leaves out.
_COMMON = frozenset({State.SUCCEEDED, State.EXPIRED})
_UNCOMMON = "state NOT IN ('SUCCEEDED', 'EXPIRED')"  # in the words of that index
_INDEXED = (Outcome.ERRORS, Outcome.WARNINGS)
_NOT_CLEAN = ("state = 'SUCCEEDED'", "outcome IS NOT NULL")  # in the words of the indexes of outcomes
_BESIDE = ("job_id", "tenant", "workflow", "state", "created_at")  # beside the record in every version; see NewerRow
_BATCH = 500
_MOST_CHECKED = 1000  # QUEUED jobs whose messages one statement looks for
_MOST_READ = 2000  # rows whose records are read for one page
_FLOOR_PASSED = "AD001"
_MOST_FLOORS = 10_000
_FIRST = {"after_at": float("-inf"), "after_id": ""}


class PostgresJobTable(OnConnections):
    """One schema of a database, made by `ade infra init`. Safe to share between threads."""

    def __init__(
        self,
        connections: Connections,
        bells: PostgresBells,
        wake_at: Callable[[Job], float | None],
        *,
        clock: Clock | None = None,
    ) -> None:
        """`clock`: whose time leases go by; None: the server's, which all machines share."""
        super().__init__(connections)
        self._bells = bells
        self._wake_at = wake_at
        self._clock = clock
        self._floors: dict[str, int] = {}
        self._seen = threading.local()  # a change between two waits of a thread is not lost

    def add(self, job: Job) -> tuple[Job, bool]:
        return self._insert(job, {"send": False, "now": None, "priority": 0, "delay": 0.0})

    def add_sent(self, job: Job, delay: float) -> tuple[Job, bool]:
        """`add`, and send the job's message in the same transaction if it was made: both, or neither."""
        message = {"send": True, "now": self._now(), "priority": Message.of(job).priority, "delay": float(delay)}
        added, made = self._insert(job, message)
        if made:
            self._bells.ring(QUEUE)
        return added, made

    def _insert(self, job: Job, message: Mapping[str, object]) -> tuple[Job, bool]:
        writer = _writer()
        while True:
            floor = self._floors.get(job.tenant, 0)
            new = first(job, floor)
            row = self._columns(new, writer) | {"workflow": job.workflow, "line": job.line, "floor": floor}
            row |= {"created_at": job.created_at, "tenant": job.tenant, "head_start": PRIORITY_SECONDS, **message}
            made, there, passed = self._db(f"add {job.job_id}", lambda db, _retried: self._add(db, row))  # noqa: B023 - called at once
            if passed is not None:
                self._remember_floor(job.tenant, passed)
                continue
            found = new if there is None else load_job(there, job.job_id)
            if made:
                self._bells.ring(JOBS)
            return found, made

    def get(self, job_id: str) -> Job | None:
        rows = self._db.run(f"get {job_id}", "get_job", job_id=job_id)
        return load_job(rows[0][0], job_id) if rows else None

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        found: dict[str, Job] = {}
        wanted = sorted(set(job_ids))
        for begin in range(0, len(wanted), _BATCH):
            rows = self._db.run("get jobs", "get_jobs", job_ids=wanted[begin : begin + _BATCH])
            found |= {job.job_id: job for job in _readable(_Row(i, doc) for i, doc in rows)}
        return found

    def replace(self, old: Job, new: Job) -> Job | None:
        written = replace(new, rev=old.rev + 1)
        row = self._columns(written, _writer()) | {"old_rev": old.rev, "old_owner": lease_owner(old)}
        counts = end_counts(old, written)
        statement = self._db.sql["replace_job" if counts is None else "end_job"]
        row |= {} if counts is None else _counted(counts)

        def act(db: Link, retried: bool) -> bool:  # noqa: FBT001 - as every act
            if db.execute(statement, row).rowcount == 1:
                return True
            return retried and db.execute(self._db.sql["written_by"], row).fetchone() is not None

        if not self._db(f"write {old.job_id}", act):
            return None
        self._bells.ring(JOBS)
        return written

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        written = replace(new, rev=old.rev + 1)
        row = self._columns(written, _writer()) | {"old_rev": old.rev, "tenant": new.tenant, "workflow": new.workflow}
        row |= {"cap_tenant": caps.tenant, "cap_workflow": caps.workflow, "exact": False}

        def act(db: Link, retried: bool) -> Row:  # noqa: FBT001 - as every act
            (found,) = db.execute(self._db.sql["admit_job"], row | {"retried": retried}).fetchall()
            return found

        outcome = self._db(f"start {old.job_id}", act)
        if outcome[0] == "again":
            row["exact"] = True
            outcome = self._db(f"start {old.job_id}", act)
        match outcome[0]:
            case "started":
                self._bells.ring(JOBS)
                return written
            case "moved":
                return None
            case scope:
                return _refused(scope, outcome, caps)

    def remove(self, old: Job) -> bool:
        row = {"job_id": old.job_id, "rev": old.rev, "tenant": old.tenant, "fence": old.fence}

        def act(db: Link, retried: bool) -> bool:  # noqa: FBT001 - as every act
            if (gone := db.execute(self._db.sql["remove_job"], row).fetchone()) and gone[0]:
                return True
            return retried and db.execute(self._db.sql["get_job"], row).fetchone() is None

        removed = self._db(f"remove {old.job_id}", act)
        self._bells.ring(JOBS)
        return removed

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page:
        if query.plain or (query.outcome in _INDEXED and replace(query, outcome=None).plain):
            rows, cursor = self._list(query, limit, cursor)
            newer: list[NewerRow] = []
            jobs = tuple(_readable(map(_named, rows), newer))
            return Page(jobs=jobs, cursor=cursor, newer=tuple(row for row in newer if query.holds(row)))
        # What is only in the records is searched in a bounded number of them; the next page goes on from there.
        found: list[Job] = []
        for _ in range(0, _MOST_READ, _BATCH):
            rows, following = self._list(query, _BATCH, cursor)
            for row in rows:
                job = next(_readable([_named(row)]), None)
                if job is not None and query.holds(job):
                    found.append(job)
                    if len(found) == limit:
                        last = following is None and row is rows[-1]
                        return Page(jobs=tuple(found), cursor=None if last else _cursor(row))
            cursor = following
            if cursor is None:
                break
        return Page(jobs=tuple(found), cursor=cursor)

    def _list(self, query: JobQuery, limit: int, cursor: str | None) -> tuple[list[Row], str | None]:
        """Rows that fit by what is known without their records, and where to go on."""
        text, values = _listing(query, limit + 1, cursor)
        text, parameters = in_schema(text, self._db.database.schema), storable(values)
        rows = self._db("list jobs", lambda db, _retried: db.execute(text, parameters).fetchall())
        return rows[:limit], _cursor(rows[limit - 1]) if len(rows) > limit else None

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        rows = self._db.run("read a line", "line", line=line)
        newer: list[NewerRow] = []
        jobs = tuple(_readable(map(_named, rows), newer))
        if whole and newer:
            raise newer[0].why
        return jobs

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._awake("attention", before, limit)

    def outdated(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        return self._awake("outdated", before, limit)

    def without_message(self, cursor: str | None) -> tuple[tuple[Job, ...], str | None]:
        """Of the next thousand QUEUED jobs those that were sent and have no message; where to go on, None: at the end.

        For where the queue is in this database. A job that was never sent may be about to be: see core/chores.py.
        """
        at, _, job_id = (cursor or "-inf|").partition("|")
        rows = self._db.run("read rows", "without_message", after_at=float(at), after_id=job_id, limit=_MOST_CHECKED)
        missing = _readable(_Row(i, doc) for _, i, doc in rows if doc is not None)
        following = f"{rows[-1][0]!r}|{rows[-1][1]}" if len(rows) == _MOST_CHECKED else None
        return tuple(job for job in missing if job.enqueued_at is not None), following

    def damaged(self, *, limit: int = 100) -> dict[str, RowUnreadable]:
        found: dict[str, RowUnreadable] = {}
        for _, job_id, state, doc in self._walk("every_row"):
            try:
                job = load_job(doc, job_id)
            except RowUnreadable as error:
                found[job_id] = error
            else:
                if job.state != state:
                    found[job_id] = RowUnreadable(
                        f"row {job.job_id} says {state} in its column, {job.state} in its record"
                    )
            if len(found) >= limit:
                break
        return found

    def counts(self) -> dict[State, int]:
        return {State(state): n for state, n in self._db.run("count jobs", "counts") if state in _STATES}

    def count(self, states: frozenset[State], *, before: float) -> int:
        ((n,),) = self._db.run("count jobs", "count_created_before", states=_names(states), before=before)
        return int(n)

    def tally(self, tenant: str | None = None) -> Tally:
        found: dict[str, dict[State, int]] = {}
        of = {} if tenant is None else {"tenant": tenant}
        for name, state, n in self._db.run("count jobs", "counts_of_tenant" if of else "counts_by_tenant", **of):
            if state in _STATES:  # else edited by hand; `damaged` reports it
                found.setdefault(name, {})[State(state)] = n
        return Tally(found)

    def recount(self) -> int:
        """A start counts the rows themselves, so none is wrong; removes what nobody needs, and opens missing lanes."""
        self._db.change("tidy up", "tidy", now=self._now(), kept=COUNTER_SECONDS, kept_of_senders=SENDER_SECONDS)
        self._db.run("tidy up", "reopen_lanes")
        return 0

    def ends(self, since: float) -> tuple[EndCounts, ...]:
        rows = self._db.run("count ends", "ends", since=since)
        return tuple(
            EndCounts(at=at, numbers=tuple(numbers), last_at=last_at, last_job=last_job)
            for at, *numbers, last_at, last_job in rows
        )

    def sender_ends(self, since: float, tenant: str | None = None) -> tuple[EndCounts, ...]:
        rows = self._db.run("count ends", "sender_ends", since=since, tenant=tenant)
        return tuple(
            EndCounts(
                at=at, numbers=tuple(numbers), tenant=owner, workflow=workflow, last_at=last_at, last_job=last_job
            )
            for owner, workflow, at, *numbers, last_at, last_job in rows
        )

    def resolve(self, resolution: Resolution) -> bool:
        row = storable(asdict(resolution))

        def act(db: Link, retried: bool) -> bool:  # noqa: FBT001 - as every act
            if db.execute(self._db.sql["resolve"], row).rowcount == 1:
                return True
            return retried and db.execute(self._db.sql["resolved_by"], row).fetchone() is not None

        return self._db("resolve", act)

    def resolutions(self) -> tuple[Resolution, ...]:
        return tuple(
            Resolution(what=what, until=until, tenant=tenant, at=at, by=by, note=note)
            for what, until, tenant, at, by, note in self._db.run("read resolutions", "resolutions")
        )

    def pause(self, pause: Pause) -> None:
        row = {"tenant": pause.tenant or "", "workflow": pause.workflow or "", "since": pause.since, "by": pause.by}
        self._db.change("pause", "add_pause", **row)

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        row = storable({"tenant": tenant or "", "workflow": workflow or ""})

        def act(db: Link, retried: bool) -> bool:  # noqa: FBT001 - as every act
            return db.execute(self._db.sql["remove_pause"], row).rowcount > 0 or retried

        gone = self._db("resume", act)
        self._bells.ring(JOBS)
        return gone

    def pauses(self) -> tuple[Pause, ...]:
        return tuple(
            Pause(tenant=tenant or None, workflow=workflow or None, since=since, by=by)
            for tenant, workflow, since, by in self._db.run("read pauses", "pauses")
        )

    def erase_tenant(self, tenant: str) -> int:
        """The pages of deleted rows are overwritten when vacuum has been there and others need them."""
        return int(self._db.run("erase a tenant", "erase_tenant", tenant=tenant)[0][0])

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        return self._db.change(f"hold {name}", "hold", name=name, owner=owner, seconds=seconds, now=self._now()) == 1

    def let_go(self, name: str, owner: str) -> None:
        self._db.change(f"let go {name}", "let_go", name=name, owner=owner)

    def generations(self, names: Collection[str]) -> dict[str, int]:
        rows = self._db.run("read generations", "generations", names=list(names))
        return dict.fromkeys(names, 0) | {name: int(n) for name, n in rows}

    def advance(self, name: str) -> None:
        self._db.change(f"advance {name}", "advance", name=name)

    def wait(self, seconds: float) -> None:
        seen = getattr(self._seen, "count", None)
        self._bells.wait(JOBS, self._bells.count(JOBS) if seen is None else seen, seconds)
        self._seen.count = self._bells.count(JOBS)

    def _add(self, db: Link, row: dict[str, object]) -> tuple[bool, str | None, int | None]:
        """Whether it was made, else the record that is there; or the fence that the row must start above."""
        try:
            ((made, there),) = db.execute(self._db.sql["add_job"], row).fetchall()
        except psycopg.Error as error:
            if error.sqlstate != _FLOOR_PASSED:
                raise
            return False, None, int(error.diag.message_detail or 0)
        return made, there, None

    def _now(self) -> float | None:
        return None if self._clock is None else self._clock.now()

    def _columns(self, job: Job, writer: int) -> dict[str, object]:
        return {
            "job_id": job.job_id,
            "state": str(job.state),
            "wake_at": self._wake_at(job),
            "resting": resting(job),
            "rev": job.rev,
            "writer": writer,
            "doc": dump_job(job),
        }

    def _remember_floor(self, tenant: str, floor: int) -> None:
        if len(self._floors) >= _MOST_FLOORS:
            self._floors.clear()
        self._floors[tenant] = floor

    def _awake(self, name: str, before: float, limit: int) -> tuple[Job, ...]:
        rows = self._walk(name, before=before, batch=min(limit + 1, _BATCH))
        # As many readable rows as requested: unreadable ones would stay first forever.
        return tuple(itertools.islice(_readable(_Row(i, doc) for _, i, doc in rows), limit))

    def _walk(self, name: str, *, batch: int = _BATCH, **values: Any) -> Iterator[Row]:
        """The rows of a statement that begin with the moment and the id by which they are sorted, batch by batch."""
        after = dict(_FIRST)
        while True:
            rows = self._db.run("read rows", name, limit=batch, **after, **values)
            yield from rows
            if len(rows) < batch:
                return
            after = {"after_at": rows[-1][0], "after_id": rows[-1][1]}


def _writer() -> int:
    return secrets.randbits(63)


def _counted(counts: tuple[EndCounts, EndCounts]) -> dict[str, object]:
    """What an end counts, as the statement takes it: of all first, then of the sender."""
    return {
        "tenants": [one.tenant for one in counts],
        "workflows": [one.workflow for one in counts],
        "ats": [one.at for one in counts],
        "numbers": list(counts[0].numbers),
        "last_at": counts[0].last_at,
    }


def _names(states: Iterable[State]) -> list[str]:
    return sorted(str(state) for state in states)


def _cursor(row: Row) -> str:
    return f"{row[4]!r}|{row[0]}"


class _Row(NamedTuple):
    """A row as it was read: its id and record, and with the columns beside the record where those are needed."""

    job_id: str
    doc: str | bytes
    beside: tuple[str, str, str, float] | None = None  # tenant, workflow, state, creation


def _named(row: Row) -> _Row:
    job_id, tenant, workflow, state, created_at, doc = row
    return _Row(job_id, doc, (tenant, workflow, state, created_at))


def _readable(rows: Iterable[_Row], newer: list[NewerRow] | None = None) -> Iterator[Job]:
    """The jobs of the rows that can be read; `newer` receives the rows that a newer program wrote."""
    for row in rows:
        try:
            yield load_job(row.doc, row.job_id)
        except RecordNewer as error:
            if newer is not None and row.beside is not None:
                tenant, workflow, state, created_at = row.beside
                newer.append(
                    NewerRow(
                        job_id=row.job_id,
                        tenant=tenant,
                        workflow=workflow,
                        state=state,
                        created_at=created_at,
                        why=error,
                    )
                )
        except RowUnreadable:
            continue


def _listing(query: JobQuery, limit: int, cursor: str | None) -> tuple[str, dict[str, object]]:
    """Newest first. Of each uncommon state the newest come from its own stretch of the index, and are then merged."""
    where: list[str] = []
    values: dict[str, object] = {"limit": limit}
    for name in ("tenant", "workflow"):
        if (wanted := getattr(query, name)) is not None:
            where.append(f"{name} = %({name})s")
            values[name] = wanted
    if cursor is not None:
        at, _, job_id = cursor.partition("|")
        where.append("(created_at, job_id) < (%(at)s, %(job_id)s)")
        values |= {"at": float(at), "job_id": job_id}
    for name, sign in (("created_from", ">="), ("created_to", "<")):
        if (edge := getattr(query, name)) is not None:
            where.append(f"created_at {sign} %({name})s")
            values[name] = edge
    if query.outcome is not None and query.states is not None and State.SUCCEEDED not in query.states:
        parts = []
    elif query.outcome in _INDEXED:
        values["outcome"] = str(query.outcome)
        parts = [[*_NOT_CLEAN, "outcome = %(outcome)s", *where]]
    elif query.outcome is not None:
        parts = [["state = 'SUCCEEDED'", "outcome IS NULL", *where]]
    elif query.states is None:
        parts = [where]
    else:
        parts = []
        for n, state in enumerate(_names(query.states - _COMMON)):
            parts.append([f"state = %(state{n})s", _UNCOMMON, *where])
            values[f"state{n}"] = state
        if common := _names(query.states & _COMMON):
            parts.append(["state = ANY (%(common)s)", *where])
            values["common"] = common
    newest = "ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s"
    columns = ", ".join((*_BESIDE, "doc"))
    selects = [f"(SELECT {columns} FROM ade.jobs WHERE {' AND '.join(part or ['true'])} {newest})" for part in parts]  # noqa: S608 - from constants
    nothing = f"(SELECT {columns} FROM ade.jobs WHERE false)"  # noqa: S608 - from constants
    return f"SELECT {columns} FROM ({' UNION ALL '.join(selects or [nothing])}) AS found {newest}", values  # noqa: S608 - from constants


def _refused(scope: str, outcome: Row, caps: Caps) -> Refused:
    _, tenant, workflow, n = outcome
    match scope:
        case "pause":
            what = f"workflow {workflow} of tenant {tenant}" if workflow else f"tenant {tenant}"
            reason = f"waiting: paused, {what if tenant else 'everything'}"
        case "tenant":
            reason = f"waiting: tenant {tenant} {n}/{caps.tenant} running"
        case _:
            reason = f"waiting: workflow {workflow} {n}/{caps.workflow} running"
    return Refused(reason=reason, scope=scope)
