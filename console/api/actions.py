"""Who did what: every act is one small object that nobody changes, and a log event."""

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from console.api.access import Principal
from core.errors import ObjectMissing, ObjectTooLarge
from core.keys import ACCESS
from core.ports import Clock, ObjectStore
from infra.logs import Log

ACTIONS = f"{ACCESS}actions/"
_LIMIT = 1024 * 1024  # 100 keys of the longest, and then some
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

    def latest(self, most: int, *, tenant: str | None = None) -> list[dict[str, Any]]:
        """The newest entries, newest first; of one tenant where one is given."""
        seen = islice(self._entries("" if tenant is None else _of(tenant)), _MOST_READ)
        return list(islice((entry for entry in seen if tenant in (None, entry.get("tenant"))), most))

    def _entries(self, ending: str) -> Iterator[dict[str, Any]]:
        for day in sorted(self._store.level(ACTIONS).folders, reverse=True):
            for key in sorted((key for key in self._store.keys(day) if key.endswith(ending)), reverse=True):
                try:
                    entry = json.loads(self._store.read(key, limit=_LIMIT))
                except (ObjectMissing, ObjectTooLarge, ValueError):
                    continue
                if isinstance(entry, dict):
                    yield entry


def _of(tenant: object) -> str:
    """How the name of an entry ends."""
    return f".{tenant}.json" if tenant else ".json"
