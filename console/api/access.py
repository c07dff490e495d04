"""Who may do what: tokens and people with scopes, kept as hashes in one object of the bucket.

A token is `ade_<id>_<secret>`. The secret has 256 random bits, so one SHA-256 of it is enough, and only that is kept.
The object is changed by conditional writes alone: two operators who change it at once both get their way.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import AdeError, PreconditionFailed, StoreUnavailable, UsageError
from core.keys import ACCESS
from core.ports import Clock, ObjectStore
from infra.newest import read_newest

TOKENS_KEY, LINKS_KEY = f"{ACCESS}tokens.json", f"{ACCESS}links.json"
_LIMIT = 4 * 1024 * 1024
_MOST = 5000
_TRIES = 8
_FRESH_SECONDS = 2.0  # a revoked token works for no longer than this
_STALE_SECONDS = 60.0  # how long a bucket that does not answer may leave us with what we know


class Permission(StrEnum):
    READ = "read"
    INPUT = "input"  # download what the sender wrote
    VALUES = "values"  # see cells on pages; given besides a scope, never with it
    SUBMIT = "submit"
    DECIDE = "decide"  # answer reviews, change memories
    ACT = "act"  # retry, cancel, reset, remove, pause
    AUTHOR = "author"  # draft, save, replay and promote workflows


class Scope(StrEnum):
    SENDER = "sender"
    READER = "reader"
    REVIEWER = "reviewer"
    AUTHOR = "author"
    OPERATOR = "operator"


RIGHTS: dict[Scope, frozenset[Permission]] = {
    Scope.SENDER: frozenset({Permission.READ, Permission.INPUT, Permission.SUBMIT}),
    Scope.READER: frozenset({Permission.READ}),
    Scope.REVIEWER: frozenset({Permission.READ, Permission.INPUT, Permission.DECIDE}),
    Scope.AUTHOR: frozenset({Permission.READ, Permission.INPUT, Permission.SUBMIT, Permission.AUTHOR}),
    Scope.OPERATOR: frozenset(Permission) - {Permission.VALUES},
}
VALUES = "values"  # what a token asks for besides its scope: `--scope reviewer,values`


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever makes a request."""

    id: str
    name: str
    scope: Scope
    tenant: str | None = None  # None: every tenant
    values: bool = False  # whether they may see cells on pages

    def may(self, right: Permission) -> bool:
        if right is Permission.VALUES:
            return self.values and Permission.INPUT in RIGHTS[self.scope]
        return right in RIGHTS[self.scope]

    def sees(self, tenant: str) -> bool:
        return self.tenant is None or self.tenant == tenant


LOCAL = Principal("local", "local", Scope.OPERATOR, values=True)
ANYONE = Principal("", "anyone", Scope.READER, "")  # of no tenant that can be


class Grant(BaseModel):
    """What one token, or one person whom a proxy names, may do."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(min_length=1, max_length=40)
    name: str = Field(max_length=200)
    scope: Scope
    tenant: str | None = Field(default=None, max_length=63)
    values: bool = False  # whether its holder may see cells on pages
    hash: str = Field(default="", max_length=64)  # SHA-256 of the secret; empty for a person
    user: str = Field(default="", max_length=320)  # as the proxy names them
    created_at: float
    expires_at: float | None = None
    by: str = Field(default="", max_length=200)
    # Of an upload link alone: what it is for, the folder that its files go to, and the largest of them.
    workflow: str = Field(default="", max_length=200)
    path: str = Field(default="", max_length=800)
    most_mb: int = Field(default=0, ge=0)

    def principal(self) -> Principal:
        return Principal(self.id, self.name, self.scope, self.tenant, self.values)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkFacts:
    """What an upload link is for."""

    workflow: str
    path: str
    most_mb: int


class _Grants(BaseModel):
    model_config = ConfigDict(extra="ignore")

    access: Literal[1] = 1
    grants: list[Grant] = Field(default=[], max_length=_MOST)


class Access:
    """The grants of one bucket. Safe to share between threads."""

    def __init__(self, store: ObjectStore, clock: Clock, *, key: str = TOKENS_KEY) -> None:
        """`key`: the object that holds the grants; upload links have one of their own (`LINKS_KEY`)."""
        self._store = store
        self._clock = clock
        self._key = key
        self._lock = threading.Lock()
        self._known: dict[str, Grant] = {}
        self._version: str | None = None
        self._read_at: float | None = None

    def holder(self, token: str) -> Principal | None:
        """Who holds a token; None where nobody does."""
        grant = self.grant(token)
        return None if grant is None else grant.principal()

    def grant(self, token: str) -> Grant | None:
        """What a token grants; None where it is nobody's. Takes the same time whatever part of it is wrong."""
        parts = token.split("_", 2)
        number, secret = (parts[1], parts[2]) if len(parts) == 3 and parts[0] == "ade" else ("", "")
        grant = self._grants().get(number)
        wanted = grant.hash if grant is not None and grant.hash else "0" * 64
        fits = hmac.compare_digest(_hashed(secret), wanted)
        return grant if grant is not None and fits and self._lasts(grant) else None

    def person(self, user: str) -> Principal | None:
        """What a person may do whom a trusted proxy names."""
        found = [g for g in self._grants().values() if g.user and hmac.compare_digest(g.user.encode(), user.encode())]
        return next((g.principal() for g in found if self._lasts(g)), None)

    def lasts(self, who: Principal) -> bool:
        """Whether a caller's grant is still there and unchanged."""
        if who in (LOCAL, ANYONE):
            return True
        grant = self._grants().get(who.id)
        return grant is not None and grant.principal() == who and self._lasts(grant)

    def grants(self) -> list[Grant]:
        grants, _ = self._read()
        return sorted(grants.grants, key=lambda grant: grant.created_at)

    def new(
        self,
        name: str,
        scope: Scope,
        *,
        tenant: str | None,
        user: str = "",
        days: float | None = None,
        by: str = "",
        values: bool = False,
        link: LinkFacts | None = None,
    ) -> tuple[Grant, str]:
        """Add a grant; the token is returned here and nowhere else (empty for a person)."""
        if scope is Scope.SENDER and tenant is None:
            raise UsageError("a sender is the sender of one tenant; say which with --tenant")
        if values and Permission.INPUT not in RIGHTS[scope]:
            raise UsageError(f"a {scope} may not read inputs, so it cannot see values; use reviewer,values")
        now, secret = self._clock.now(), "" if user else secrets.token_urlsafe(32)
        grant = Grant(
            id=secrets.token_hex(5),
            name=name,
            scope=scope,
            tenant=tenant,
            values=values,
            hash=_hashed(secret) if secret else "",
            user=user,
            created_at=now,
            expires_at=None if days is None else now + days * 86400,
            by=by,
            **(asdict(link) if link is not None else {}),
        )
        self._change(lambda grants: [*grants, grant])
        return grant, f"ade_{grant.id}_{secret}" if secret else ""

    def revoke(self, number: str) -> Grant:
        gone: list[Grant] = []

        def change(grants: list[Grant]) -> list[Grant]:
            gone[:] = [grant for grant in grants if grant.id == number]
            if not gone:
                raise UsageError(f"there is no token {number}; `ade token list` shows them by their ids")
            return [grant for grant in grants if grant.id != number]

        self._change(change)
        return gone[0]

    def _change(self, change: Callable[[list[Grant]], list[Grant]]) -> None:
        for _ in range(_TRIES):
            there, version = self._read()
            after = change(there.grants)
            if len(after) > _MOST:
                raise UsageError(f"{self._key} holds {_MOST} tokens, the most there may be; revoke some")
            body = _Grants(grants=after).model_dump_json(indent=1).encode()
            try:
                self._store.put(self._key, body, if_version=version, if_absent=version is None)
            except PreconditionFailed:
                continue
            self._read_at = None
            return
        raise StoreUnavailable(f"{self._key} is changed by others all the time; try again")

    def _read(self) -> tuple[_Grants, str | None]:
        found = read_newest(self._store, self._key, limit=_LIMIT)
        if found is None:
            return _Grants(), None
        try:
            return _Grants.model_validate_json(found.body), found.info.version
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise StoreUnavailable(f"{self._key} is damaged at {where or 'its start'}; repair or delete it") from None

    def _grants(self) -> dict[str, Grant]:
        """The grants as they are, or were a moment ago."""
        now = self._clock.steady()
        with self._lock:
            if self._read_at is not None and now - self._read_at < _FRESH_SECONDS:
                return self._known
            try:
                grants, self._version = self._read()
            except AdeError:
                if self._read_at is None or now - self._read_at > _STALE_SECONDS:
                    raise
                return self._known
            self._known, self._read_at = {grant.id: grant for grant in grants.grants}, now
            return self._known

    def _lasts(self, grant: Grant) -> bool:
        return grant.expires_at is None or self._clock.now() < grant.expires_at


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="backslashreplace")).hexdigest()
