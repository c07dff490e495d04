"""Connections to one PostgreSQL database: where it is, what is tried again, for how long, and what callers see.

Theory of operation. Each call takes a connection of the pool and runs one statement, which is its own transaction
(autocommit): no call leaves a transaction open behind it, and a death holds no lock. A call ends in one of three ways.
It returns. It raises StoreUnavailable: the server did not answer within the deadline. Or it raises CallRefused: it
said something that trying again will not change. A connection that broke while a statement was in progress leaves open
whether the statement was committed; the next try knows it, and checks whether the work is already done.

A pooler that gives a session to somebody else after each transaction (pgbouncer in transaction mode) is recognised by
the process number that the server has and the one that the connection was given: then nothing is prepared, and
nothing listens.
"""

import contextlib
import copy
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Self, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import errors
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from core.errors import CallRefused, SettingsError, StoreUnavailable
from infra.postgres.refusals import Refusals
from infra.retrying import CallPolicy

SCHEMA_VERSION = 3  # this program's; it also works with the next one, whose migration keeps what it needs
SCHEMES = ("postgresql", "postgres")
_OPTIONS = {"schema", "pooler", "pool"}
_POOLERS = ("auto", "none", "session", "transaction")
_POOL_SIZE = 8
_CONNECT_WAIT_SECONDS = 0.5
_ISOLATION = "read committed"  # a start counts after it got its locks; in a stricter mode it would see what was before
UTF8_REMEDY = "make a database with ENCODING 'UTF8' TEMPLATE template0"
_REMEDY = "run `ade infra init` with a role that owns the schema"

_POOL_LOG = logging.getLogger("psycopg.pool")  # each error reaches its caller; none goes to stderr beside the log
_POOL_LOG.addHandler(logging.NullHandler())
_POOL_LOG.propagate = False

T = TypeVar("T")
Row = tuple[Any, ...]
Act = Callable[["Link", bool], T]  # a connection, and whether an earlier try may have taken effect


@dataclass(frozen=True, kw_only=True, slots=True)
class PostgresAddress:
    """Where a database is, and how to get there. Its text and repr hold no secret."""

    shown: str
    schema: str = "ade"
    pooler: str = "auto"  # whether a pooler is in between, and of what kind
    pool: int = _POOL_SIZE
    conninfo: str = field(repr=False)

    def __str__(self) -> str:
        return self.shown

    def hide(self, text: str) -> str:
        """A text of the server or of the driver without the secrets that it might repeat."""
        for name, value in conninfo_to_dict(self.conninfo).items():
            if name in {"password", "sslpassword"} and value:
                text = text.replace(str(value), "…")
        return " ".join(text.split())


def parse_database(url: str) -> PostgresAddress:
    """`postgresql://user@host:port/name?schema=…&pooler=…&pool=…`; the rest is libpq's. Errors repeat no value."""
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise SettingsError("not a PostgreSQL address; give postgresql://host/database")
    place, _, options = rest.partition("?")
    named = [(option.partition("="), option) for option in options.split("&") if option]
    ours = {name: unquote(value) for (name, _, value), _ in named if name in _OPTIONS}
    theirs = "&".join(option for (name, _, _), option in named if name not in _OPTIONS)  # read by libpq alone
    plain = f"postgresql://{place}" + (f"?{theirs}" if theirs else "")
    libpq = _read_by_libpq(url, plain)
    hosts = str(libpq.get("host") or libpq.get("hostaddr") or "")
    if "," in hosts and "target_session_attrs" not in libpq:
        plain = make_conninfo(plain, target_session_attrs="read-write")  # the one that is the primary now
    return PostgresAddress(
        shown=f"postgresql://{_server(libpq, hosts)}/{libpq.get('dbname') or ''}",
        schema=_schema(ours.get("schema", "ade")),
        pooler=_pooler(ours.get("pooler", "auto")),
        pool=_pool_size(ours.get("pool", str(_POOL_SIZE))),
        conninfo=plain,
    )


def _read_by_libpq(url: str, plain: str) -> ConnDict:
    """The parts of an address as libpq understands it."""
    try:
        parts = conninfo_to_dict(plain)
    except (psycopg.Error, UnicodeEncodeError):
        parts = {}
    if not parts or not _readable(url, parts):
        raise SettingsError(
            "postgresql://…: libpq cannot read this address; write special characters of a password as %xx, "
            "or leave it out and use PGPASSFILE"
        )
    return parts


def _server(libpq: ConnDict, hosts: str) -> str:
    if libpq.get("service"):
        return f"service {libpq['service']}"
    return (hosts or "localhost") + (f":{libpq['port']}" if libpq.get("port") else "")


def _schema(name: str) -> str:
    if not name.isidentifier() or not name.isascii() or len(name) > 40:
        raise SettingsError("postgresql://…: schema must be a short plain name")
    return name


def _pooler(kind: str) -> str:
    if kind not in _POOLERS:
        raise SettingsError(f"postgresql://…: pooler must be one of {', '.join(_POOLERS)}")
    return kind


def _pool_size(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 200):
        raise SettingsError("postgresql://…: pool must be a whole number from 1 to 200")
    return int(text)


def _readable(url: str, parts: ConnDict) -> bool:
    """Whether the parts that we show are what they should be: half a password with a plain @, / or # lands in them."""
    shown = "".join(str(parts.get(name) or "") for name in ("host", "hostaddr", "dbname", "service"))
    return (
        not any(mark in url for mark in "#\0")
        and not any(mark in shown for mark in "@=#")
        and "://" not in shown
        and all(port.isdigit() for port in str(parts.get("port") or "0").split(",") if port)
    )


class Link(psycopg.Connection[Row]):
    """A connection that knows when it was last known to work."""

    checked_at = 0.0


class Statements(dict[str, str]):
    """The statements of sql/queries.sql by name, for one schema."""

    def __init__(self, schema: str) -> None:
        super().__init__()
        text = resources.files("infra.postgres").joinpath("sql/queries.sql").read_text(encoding="utf-8")
        name = ""
        for line in text.splitlines():
            if line.startswith("-- ") and line.endswith(" --"):
                name = line[3:-3]
                self[name] = ""
            elif name and not line.startswith("-- "):
                self[name] += in_schema(line, schema) + "\n"


def in_schema(text: str, schema: str) -> str:
    """Our SQL, written for the schema "ade", for another."""
    return text if schema == "ade" else text.replace("ade.", f'"{schema}".')


def storable(values: dict[str, object]) -> dict[str, object]:
    """Values with a sign in the place of what no text in PostgreSQL holds: NUL and halves of surrogate pairs.

    For what is looked up, which then is not found, and for texts for people. The rows of jobs are written as they are.
    """
    return {name: storable_value(value) for name, value in values.items()}


def storable_value(value: Any) -> Any:
    """One value, as `storable` has it."""
    if isinstance(value, list):
        return [storable_value(each) for each in value]
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Connections:
    """A pool of connections and how calls over them are made. Safe to share between threads; opened when first used."""

    def __init__(
        self,
        database: PostgresAddress,
        *,
        deadline: float = 30.0,
        longest_wait: float = 2.0,
        try_seconds: float = 15.0,
        size: int | None = None,
        on_retry: Callable[[str, str], None] = lambda _what, _why: None,
        on_note: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`try_seconds`: after which a single try is cut off, so that a silent network cannot hold its caller."""
        self.database = database
        self.service = str(database)
        self.sql = Statements(database.schema)
        self.ahead: float | None = None  # by how much our clock was ahead of the server's on the last new connection
        self.on_note = on_note
        self._policy = CallPolicy(deadline=deadline, longest_wait=longest_wait)
        self._try_seconds = try_seconds
        self._on_retry = on_retry
        self._size = size or database.pool
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Link] | None = None
        self._broken_at = 0.0
        self._why = ""  # the last error of connecting
        self._definite: str | None = None  # an error of connecting that trying again will not change
        self._refusals = Refusals()
        self._watch = _Watch()

    def within(self, seconds: float) -> "Connections":
        """Connections whose calls end within `seconds`, several tries included."""
        policy = self._policy.within(seconds)
        return Connections(
            self.database,
            deadline=policy.deadline,
            longest_wait=policy.longest_wait,
            try_seconds=seconds / 4,
            size=2,
            on_retry=self._on_retry,
            on_note=self.on_note,
        )

    def __call__(self, what: str, act: Act[T]) -> T:
        """Do `act` on a connection until it returns or the deadline is over; it may run several times."""
        until = time.monotonic() + self._policy.deadline
        breaks = 0

        def attempt() -> T:
            nonlocal breaks
            link: Link | None = None
            try:
                with self._lent(until) as link, self._watch(link, self._try_seconds):
                    return act(link, breaks > 0)
            except psycopg.Error as error:
                if link is not None and (link.closed or isinstance(error, errors.ReadOnlySqlTransaction)):
                    self._broken_at = time.monotonic()
                    breaks += 1
                self._raise_definite(what, error)
                raise

        try:
            return self._policy.run(
                attempt,
                is_transient=lambda error: isinstance(error, psycopg.Error),
                on_retry=lambda error: self._on_retry(what, self._explain(error)),
                # A connection that idled too long, or a server that is back already.
                skips_wait=lambda tries: tries == breaks == 1,
            )
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"{self.service} did not answer {what}: {self._describe(error)}; is it up?"
            ) from None
        except UnicodeEncodeError:
            raise CallRefused(f"{self.service} refused {what!r}: a text in it is not Unicode") from None

    def run(self, what: str, name: str, /, **values: Any) -> list[Row]:
        """One statement of sql/queries.sql that gives rows; safe to repeat."""
        parameters = storable(values)
        return self(what, lambda db, _retried: db.execute(self.sql[name], parameters).fetchall())

    def change(self, what: str, name: str, /, **values: Any) -> int:
        """One statement that gives no rows; how many it changed."""
        parameters = storable(values)
        return self(what, lambda db, _retried: db.execute(self.sql[name], parameters).rowcount)

    def watched(self, link: Link) -> contextlib.AbstractContextManager[None]:
        """Cut a connection outside of the pool off if a statement on it takes longer than a try may."""
        return self._watch(link, self._try_seconds)

    def connect(self) -> tuple[Link, bool]:
        """A connection outside of the pool, for who keeps it; and whether it is a session of its own."""
        link = Link.connect(self._conninfo(), autocommit=True, prepare_threshold=None)
        try:
            return link, not self._configure(link)
        except BaseException:
            link.close()
            raise

    def close(self) -> None:
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=2)
        self._watch.close()

    def _conninfo(self) -> str:
        parameters = conninfo_to_dict(self.database.conninfo)
        usual = {
            "application_name": "ade-drop",
            "client_encoding": "UTF8",  # whatever PGCLIENTENCODING or the role says
            "connect_timeout": str(max(2, int(self._try_seconds / 2))),
            "keepalives_idle": "10",
            "keepalives_interval": "5",
            "keepalives_count": "3",
            "tcp_user_timeout": str(int(self._try_seconds * 1000)),
        }
        return make_conninfo(self.database.conninfo, **{k: v for k, v in usual.items() if k not in parameters})

    def _open(self) -> "ConnectionPool[Link]":
        with self._opening:
            if self._pool is None:
                outer = self

                class Known(Link):
                    """Remembers why connecting fails: the pool only waits and tries again."""

                    @classmethod
                    def connect(cls, *args: Any, **kwargs: Any) -> Any:
                        try:
                            return super().connect(*args, **kwargs)
                        except psycopg.Error as error:
                            outer._connecting_failed(error)
                            raise

                self._pool = ConnectionPool(
                    self._conninfo(),
                    connection_class=Known,
                    kwargs={"autocommit": True, "prepare_threshold": 2},
                    min_size=0,
                    max_size=self._size,
                    open=False,
                    configure=self._configured,
                    check=self._check,
                    reconnect_timeout=0.0,  # whoever needs one tries again: see __call__
                    max_idle=300.0,
                    num_workers=2,
                    name=f"ade-{id(self):x}",
                )
                self._pool.open()
            return self._pool

    @contextlib.contextmanager
    def _lent(self, until: float) -> Iterator[Link]:
        pool = self._open()
        self._definite = None
        # A short wait: a connection that is refused, or one that comes later, is checked by the next try.
        link = pool.getconn(timeout=max(0.05, min(until - time.monotonic(), _CONNECT_WAIT_SECONDS)))
        try:
            yield link
        except errors.ReadOnlySqlTransaction:
            link.close()  # this server is a standby now; the next connection asks for the primary again
            raise
        finally:
            pool.putconn(link)

    def _configured(self, link: Link) -> None:
        try:
            self._configure(link)
        except psycopg.Error as error:
            self._connecting_failed(error)
            raise
        except StoreUnavailable as error:
            self._definite = str(error)
            raise psycopg.OperationalError(str(error)) from None

    def _configure(self, link: Link) -> bool:
        """Make a new connection ours; whether a pooler may take its session away between two transactions."""
        began = time.time()
        try:
            with self._watch(link, self._try_seconds):
                row = link.execute(self.sql["version"], prepare=False).fetchone()
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            raise CallRefused(f"{self.service} has no schema {self.database.schema!r} of ade-drop; {_REMEDY}") from None
        ended = time.time()
        version, theirs, served_by, isolation, digits, encoding = row or (0, ended, 0, "", 0, "")
        if encoding != "UTF8":
            raise CallRefused(f"{self.service} holds texts in {encoding}; {UTF8_REMEDY}")
        self.ahead = max(began - theirs, 0.0) or min(ended - theirs, 0.0)
        check_version(version or 0, self.service)
        pooled = self.database.pooler == "transaction" or (
            self.database.pooler == "auto" and served_by != link.info.backend_pid
        )
        if pooled:
            link.prepare_threshold = None
            # A SET would go to whoever has the session next.
            if isolation != _ISOLATION:
                raise CallRefused(
                    f"{self.service} begins transactions as {isolation}, by which caps would not hold; "
                    f"ALTER ROLE … SET default_transaction_isolation = '{_ISOLATION}'"
                )
            if digits < 1:
                raise CallRefused(
                    f"{self.service} rounds numbers, so that pages would skip jobs; "
                    "ALTER ROLE … SET extra_float_digits = 1"
                )
        else:
            ours = f"SET statement_timeout = {int(self._try_seconds * 1000)}; SET lock_timeout = 0"
            if isolation != _ISOLATION:
                ours += f"; SET default_transaction_isolation = '{_ISOLATION}'"
            if digits < 1:
                ours += "; SET extra_float_digits = 1"
            link.execute(ours, prepare=False)
        link.checked_at = time.monotonic()
        self._why = ""
        return pooled

    def _check(self, link: Link) -> None:
        """Before a connection is lent: whether it outlived the last failure, if there was one since it was well."""
        if link.checked_at <= self._broken_at:
            with self._watch(link, min(self._try_seconds, 2.0)):
                link.execute("SELECT 1", prepare=False)
            link.checked_at = time.monotonic()

    def _connecting_failed(self, error: psycopg.Error) -> None:
        self._why = self.database.hide(str(error))
        if self._refusals.hold(error, self._conninfo(), self._try_seconds / 2):
            self._definite = f"{self.service} refused the connection: {self._why}"

    def _describe(self, error: psycopg.Error) -> str:
        return (self._why if isinstance(error, PoolTimeout) else "") or self.database.hide(str(error))

    def _explain(self, error: BaseException) -> str:
        """Why a call is tried again; of a connection that cannot be made, what the server or the network said."""
        name = type(error).__name__
        return f"{name}: {self._why}" if isinstance(error, PoolTimeout) and self._why else name

    def _raise_definite(self, what: str, error: psycopg.Error) -> None:
        if isinstance(error, PoolTimeout):
            if self._definite is not None:
                raise CallRefused(self._definite) from None
            return
        if transient(error):
            return
        message = self.database.hide(str(error.diag.message_primary or error))
        if isinstance(error, errors.UndefinedTable | errors.UndefinedFunction | errors.InvalidSchemaName):
            message += f"; {_REMEDY}"
        elif isinstance(error, errors.InsufficientPrivilege):
            message += "; docs/guides/postgres.md says which role may do what"
        raise CallRefused(f"{self.service} refused {what}: {type(error).__name__}, {message}") from error


# A name or a text too large for an index or a page: it always will be. The driver counts it as a failure of the server.
_TOO_LARGE = (errors.ProgramLimitExceeded, errors.StatementTooComplex)


def transient(error: psycopg.Error) -> bool:
    """Whether the same call may well succeed a moment later.

    Connections that are refused or break, a server that starts, stops or recovers, a full disk, too many connections,
    a statement that took too long, a deadlock, and a standby that is being promoted.
    """
    if isinstance(error, _TOO_LARGE):
        return False
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | errors.ReadOnlySqlTransaction)


def check_version(found: int, service: str) -> None:
    """Raise CallRefused where this program and the schema are more than one version apart."""
    if found < SCHEMA_VERSION:
        raise CallRefused(f"{service} has schema version {found} and this program needs {SCHEMA_VERSION}; {_REMEDY}")
    if found > SCHEMA_VERSION + 1:
        raise CallRefused(
            f"{service} was upgraded by a newer ade-drop (schema version {found}; this program knows up to "
            f"{SCHEMA_VERSION + 1}); upgrade this process"
        )


class OnConnections:
    """An adapter whose calls go by connections to one schema of a server."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    @property
    def database(self) -> PostgresAddress:
        """Which one it is; see infra.queueing.add."""
        return self._db.database

    def within(self, seconds: float) -> Self:
        """The same by calls that end within `seconds`, for heartbeats; connections of its own, to be closed."""
        hasty = copy.copy(self)
        hasty._db = self._db.within(seconds)  # noqa: SLF001 - one of us
        return hasty

    def close(self) -> None:
        self._db.close()


class _Watch:
    """Cuts off connections whose statement takes too long: libpq itself would wait for a silent peer forever."""

    def __init__(self) -> None:
        self._some = threading.Condition()
        self._busy: dict[Link, float] = {}
        self._thread: threading.Thread | None = None
        self._idle = False
        self._ended = False

    @contextlib.contextmanager
    def __call__(self, link: Link, seconds: float) -> Iterator[None]:
        with self._some:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="postgres-watch", daemon=True)
                self._thread.start()
            if self._idle:
                self._some.notify()
            self._busy[link] = time.monotonic() + seconds
        try:
            yield
        finally:
            with self._some:
                self._busy.pop(link, None)

    def close(self) -> None:
        with self._some:
            self._ended = True
            self._some.notify()

    def _run(self) -> None:
        with self._some:
            while not self._ended:
                if not self._busy:
                    self._idle = True
                    self._some.wait()
                    self._idle = False
                    continue
                now = time.monotonic()
                for link in [link for link, until in self._busy.items() if until <= now]:
                    del self._busy[link]
                    _cut(link)
                self._some.wait(0.5)


def _cut(link: Link) -> None:
    """End a connection under the one who waits for it, who then sees it broken."""
    with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(link.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
