"""Change notices on their way to the intake: decoded, narrowed to our bucket, looked at together."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.keys import CONFIGS, INBOX
from handlers.events import Change, decode, newest
from handlers.intake import Intake, Report


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Takes bodies in; when it returns, what they tell of is in the table."""

    intake: Intake
    bucket: str
    on_report: Callable[[Report], None] = lambda _report: None

    def take(self, body: str | bytes | Mapping[str, Any]) -> int:
        """Look at what one body tells of, and say how many keys that were; raises UnknownEvent."""
        return self.look(decode(body))

    def look(self, changes: Iterable[Change]) -> int:
        """Changes outside our bucket, inbox and configs are no business of ours: outputs tell of themselves too."""
        keys = [c.key for c in newest(changes) if c.bucket == self.bucket and c.key.startswith((INBOX, CONFIGS))]
        if keys:
            self.on_report(self.intake.changed(keys))
        return len(keys)
