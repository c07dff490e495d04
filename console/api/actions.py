"""Who did what: every act is one small object that nobody changes, and a log event."""

import json
import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from console.api.access import Principal
from core.budget import Budget, plain
from core.errors import ObjectMissing, ObjectTooLarge
from core.keys import ACCESS
from core.ports import Clock, ObjectStore
from infra.logs import Log

ACTIONS = f"{ACCESS}actions/"
_BUDGET = Budget(bytes=1024 * 1024, values=5000)  # 100 keys of the longest, and then some
_DAY = re.compile(rf"{ACTIONS}\d{{4}}-\d\d-\d\d/")
_NAME = re.compile(r"\d{6}\.\d{6}-[0-9a-f]{8}\.(.+)\.json")
_MOST_READ = 2000


class ActionLog:
    """Objects `access/actions/<day>/<time>-<random>[.<tenant>].json`: many may write, a day lists quickly, and what one
    tenant does hides nothing of another's."""

    def __init__(self, store: ObjectStore, clock: Clock, log: Log) -> None:
        self._store = store
        self._clock = clock
        self._log = log

    def note(self, who: Principal, act: str, **facts: Any) -> None:
        """Keep one act. Raises where it cannot be kept: an act that leaves no trace is not done."""
        at = datetime.fromtimestamp(self._clock.now(), UTC)
        entry = {"at": at.isoformat(timespec="milliseconds"), "by": who.name, "token": who.id, "act": act, **facts}
        of = _of(facts.get("tenant"))
        key = f"{ACTIONS}{at:%Y-%m-%d}/{at:%H%M%S.%f}-{secrets.token_hex(4)}{of}"
        self._store.put(key, json.dumps(entry, ensure_ascii=False, default=str).encode(), if_absent=True)
        self._log.info("action", **{name: value for name, value in entry.items() if name != "at"})

    def tidy(self, days: int) -> None:
        """Delete the entries of days that are further back; 0: of none."""
        if days:
            first = datetime.fromtimestamp(self._clock.now(), UTC) - timedelta(days=days)
            for folder in self._store.level(ACTIONS).folders:
                if _DAY.fullmatch(folder) and folder < f"{ACTIONS}{first:%Y-%m-%d}/":
                    self._store.delete_prefix(folder)

    def latest(self, most: int, *, tenant: str | None = None) -> list[dict[str, object]]:
        """The newest entries, newest first; of one tenant where one is given."""
        seen = islice(self._entries(tenant), _MOST_READ)
        return list(islice((entry for entry in seen if tenant in (None, entry.get("tenant"))), most))

    def _entries(self, tenant: str | None) -> Iterator[dict[str, object]]:
        for day in sorted(self._store.level(ACTIONS).folders, reverse=True):
            named = (key for key in self._store.keys(day) if tenant is None or _is_of(key, tenant))
            for key in sorted(named, reverse=True):
                try:
                    entry = plain(self._store.read(key, limit=_BUDGET.bytes), _BUDGET)
                except (ObjectMissing, ObjectTooLarge, ValueError):
                    continue
                if isinstance(entry, dict):
                    yield entry


def _is_of(key: str, tenant: str) -> bool:
    """Whether an entry is of a tenant. A tenant's name may have dots: `evil.acme` is not `acme`."""
    found = _NAME.fullmatch(key.rpartition("/")[2])
    return found is not None and found[1] == tenant


def _of(tenant: object) -> str:
    """How the name of an entry ends."""
    return f".{tenant}.json" if tenant else ".json"
