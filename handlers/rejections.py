"""`rejected.json`: what is wrong with the manifests of a folder, and which of its files nobody will ever read.

Level-triggered: each report is made from what stands in the folder, replaces the one before, and goes away with the
last problem. Whether there is one to take back costs a look, so folders that are known to have none are remembered.
"""

import json
import threading
from collections.abc import Sequence
from posixpath import basename

from core.drops import PACKAGE_FOLDERS, Workflow
from core.errors import KeyRefused, ManifestInvalid, ObjectMissing, ObjectTooLarge, Problem
from core.keys import (
    INBOX,
    MAX_KEY_BYTES,
    SPREADSHEETS,
    is_ignored,
    is_manifest,
    is_spreadsheet,
    meant,
    place,
    refusal,
    rejected_key,
)
from core.ports import ObjectInfo, ObjectStore
from handlers.views import View
from handlers.workflows import Packages, Workflows

_REMEMBERED = 100_000
_LARGEST = 1024 * 1024
_MOST_PROBLEMS = 1000


class Rejections:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, workflows: Workflows, packages: Packages) -> None:
        self._store = store
        self._workflows = workflows
        self._packages = packages
        self._lock = threading.Lock()
        self._clean: set[str] = set()  # reports that are known not to be there
        self._told: set[str] = set()  # folders that this process has reported on

    def told(self, prefix: str) -> list[str]:
        """Folders below a prefix with a report of this process's: to be looked at again even when they are gone."""
        with self._lock:
            return sorted(folder for folder in self._told if folder.startswith(prefix))

    def report(self, view: View, folder: str, unread: Sequence[str], *, remembered: bool = False) -> None:
        """Write what is wrong in a folder beside where its outputs would go, or take the last report back.

        `unread`: keys of its files that nobody reads. `remembered`: believe that what was taken back stays so.
        """
        target = rejected_key(f"{folder}manifest.json")
        if refusal(target):
            return
        problems = [
            {"manifest": info.key, **problem.as_dict()}
            for info in view.infos([key for key in view.names(folder) if is_manifest(basename(key))])
            for problem in self._problems(view, info)
        ]
        problems += [{"file": key, **unread_problem(key).as_dict()} for key in unread]
        if problems:
            told: dict[str, object] = {"rejected": 1, "problems": problems[:_MOST_PROBLEMS]}
            if len(problems) > _MOST_PROBLEMS:
                told["left_out"] = len(problems) - _MOST_PROBLEMS
            # A name that is not UTF-8 must not keep the others from being told.
            body = json.dumps(told, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
            if self._read(target) != body:
                self._store.put(target, body)
        elif not (remembered and target in self._clean) and self._store.head(target) is not None:
            self._store.delete(target)
        with self._lock:
            (self._clean.discard if problems else self._clean.add)(target)
            (self._told.add if problems else self._told.discard)(folder)
            if len(self._clean) > _REMEMBERED:
                self._clean.clear()

    def _read(self, key: str) -> bytes | None:
        try:
            return self._store.read(key, limit=_LARGEST)
        except (ObjectMissing, ObjectTooLarge):
            return None

    def _problems(self, view: View, info: ObjectInfo) -> list[Problem]:
        loaded = self._workflows.load(info)
        if isinstance(loaded, Workflow):
            try:
                self._packages.find(view, loaded)
            except ManifestInvalid as error:
                return error.problems
            return []
        return loaded.problems if loaded is not None else []


def is_unread(key: str, workflows: Sequence[Workflow]) -> bool:
    """Whether nobody will ever read a file: of no known kind, and no manifest selects it or names it; or too long.

    A spreadsheet that no manifest selects is not among them: it waits, and its row says for what. Neither is what looks
    like part of a config package, which may come before its manifest.
    """
    at, name = place(key), basename(key)
    if any(w.too_long(key) and w.selects(key) for w in workflows):
        return True
    if is_manifest(name) or is_spreadsheet(name) or is_ignored(name):
        return False
    folders = f"/{at.folder}"
    if "/config/" in folders or any(f"/{part}" in folders for part in PACKAGE_FOLDERS):
        return False
    if name.endswith(".py") or name in ("requirements.txt", "config.zip") or "/." in folders or "/__" in folders:
        return False
    return not any(w.uses(key) or w.selects(key) for w in workflows)


def unread_problem(key: str) -> Problem:
    why = refusal(key)
    if why is not None:
        return Problem("$", why, "a name without backslash, tab, newline or '..', in UTF-8")
    name = basename(key)
    if is_spreadsheet(name):
        said = f"is not read: the keys of its outputs would be longer than {MAX_KEY_BYTES} bytes"
        return Problem("$", said, "a shorter path")
    hint = meant(name)
    asked = f"; did you mean {hint}?" if hint else ""
    kind = f"files ending in .{name.rpartition('.')[2]}" if "." in name else "files without an ending"
    known = f"{', '.join(SPREADSHEETS)}, a manifest.json, or a manifest whose inputs name this file"
    return Problem("$", f"is not read: no manifest selects it, and {kind} are not spreadsheets{asked}", known)


def unread_line(key: str) -> str:
    """The same for the log and `ade sweep`, which name the key themselves."""
    return refusal(key) or f"{key!r} {unread_problem(key).problem}"


def home(key: str) -> str | None:
    """The folder whose report names a key that is refused; None: there is no place for one, or nobody to read it."""
    folder = key[: key.rfind("/") + 1]
    try:
        place(f"{folder}x")
    except KeyRefused:
        return None
    return folder if folder.startswith(INBOX) else None
