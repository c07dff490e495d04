"""What a replay left in the bucket to say what it is: `replays/<id>/replay.json`."""

import json
from dataclasses import asdict, dataclass

from core.errors import ObjectMissing, ObjectTooLarge
from core.keys import REPLAYS
from core.ports import ObjectStore
from core.versions import version_folder

REPLAY_FILE = "replay.json"
_LIMIT = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """History of a workflow with one of its versions."""

    id: str
    workflow: str
    manifest: str  # key of the live manifest
    version: str
    tenant: str | None = None
    since: float | None = None

    @property
    def folder(self) -> str:
        return f"{REPLAYS}{self.id}/"

    @property
    def version_folder(self) -> str:
        return version_folder(self.manifest, self.version)

    def body(self) -> bytes:
        return json.dumps({"replay": 1, **asdict(self)}, indent=2).encode()


def read_replay(store: ObjectStore, folder: str) -> Replay | None:
    """The replay of a folder; None if it is not one, or of a newer program."""
    try:
        raw = json.loads(store.read(f"{folder}{REPLAY_FILE}", limit=_LIMIT))
        if raw.pop("replay") != 1:
            return None
        return Replay(**raw)
    except (ObjectMissing, ObjectTooLarge, ValueError, TypeError, KeyError, AttributeError):
        return None
