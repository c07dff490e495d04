"""In: a folder of the bucket. Out: its `rejected.json`: problems of its manifests and decisions, and its unread files.

Level-triggered: each report describes the folder as it is now, replaces the one before, and is deleted with the last
problem. Checking whether an old report exists costs a request, so folders without one are cached, and the table counts
the reports of a tenant: before one is written, a counter is advanced that it shares with a few other folders. Where it
is 0, there is no report, once a sweep has checked all folders of a tenant: older programs did not count.
"""

import json
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from posixpath import basename

from core.drops import PACKAGE_FOLDERS, Workflow
from core.errors import KeyRefused, ManifestInvalid, ObjectMissing, ObjectTooLarge, Problem
from core.keys import (
    CONFIGS,
    INBOX,
    MAX_KEY_BYTES,
    SHARED,
    SPREADSHEETS,
    is_ignored,
    is_manifest,
    is_spreadsheet,
    meant,
    place,
    refusal,
    rejected_key,
)
from core.ports import JobTable, ObjectInfo, ObjectStore
from handlers.generations import Generations
from handlers.workflows import BucketView, Packages, Workflows

# What is wrong with the decisions, or the overlays, of a folder, each with its key.
Found = Callable[[BucketView, str], list[tuple[str, Problem]]]
_CACHED = 1_000
_COUNTERS = 64  # of reports for each tenant
_LARGEST = 1024 * 1024
_MOST_PROBLEMS = 1000


@dataclass(eq=False, repr=False)
class Rejections:
    """Safe to share between threads."""

    store: ObjectStore
    table: JobTable
    workflows: Workflows
    packages: Packages
    decided: Found
    overlaid: Found

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._clean: set[str] = set()  # reports that are known not to exist
        self._reported: set[str] = set()  # folders that this process has reported on
        self._counted: set[str] = set()  # tenants whose reports are counted

    def reported(self, prefix: str) -> list[str]:
        """Folders below a prefix that this process has reported: to be scanned again even when they are gone."""
        with self._lock:
            return sorted(folder for folder in self._reported if folder.startswith(prefix))

    def report(
        self,
        view: BucketView,
        folder: str,
        unread: Sequence[str],
        generations: Generations,
        *,
        cached: bool = False,
    ) -> None:
        """Write a folder's report beside where its outputs would go, or delete the old one.

        `unread`: keys of its files that no job will read. `cached`: trust that a deleted report stays deleted.
        """
        target = rejected_key(f"{folder}manifest.json")
        if refusal(target):
            return
        problems = self._all_problems(view, folder, unread)
        if problems:
            report: dict[str, object] = {"rejected": 1, "problems": problems[:_MOST_PROBLEMS]}
            if len(problems) > _MOST_PROBLEMS:
                report["left_out"] = len(problems) - _MOST_PROBLEMS
            # A name that is not UTF-8 must not hide the other problems.
            body = json.dumps(report, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
            if self._read(target) != body:
                self.table.advance(report_marks(folder)[1])
                self.store.put(target, body)
        elif not (cached and target in self._clean) and self._may_exist(folder, target, generations):
            self.store.delete(target)
        with self._lock:
            (self._clean.discard if problems else self._clean.add)(target)
            (self._reported.add if problems else self._reported.discard)(folder)
            if len(self._clean) > _CACHED:
                self._clean.clear()

    def _all_problems(self, view: BucketView, folder: str, unread: Sequence[str]) -> list[dict[str, str]]:
        """What is wrong in a folder: with its manifests, files, decisions and overlays."""
        problems = [
            {"manifest": info.key, **problem.as_dict()}
            for info in view.infos([key for key in view.names(folder) if is_manifest(basename(key))])
            for problem in self._problems(view, info)
        ]
        problems += [{"file": key, **unread_problem(key).as_dict()} for key in unread]
        if folder.startswith(INBOX) and view.decisions(folder):
            problems += [{"decision": key, **problem.as_dict()} for key, problem in self.decided(view, folder)]
        if folder.startswith(CONFIGS) and not folder.startswith(SHARED):
            problems += [{"overlay": key, **problem.as_dict()} for key, problem in self.overlaid(view, folder)]
        return problems

    def _may_exist(self, folder: str, target: str, generations: Generations) -> bool:
        all_checked, counted = report_marks(folder)
        sure = generations.of(all_checked) and not generations.of(counted)
        return not sure and self.store.head(target) is not None

    def all_checked(self, tenant: str, generations: Generations) -> None:
        """Note that a sweep has checked all folders of a tenant: from now on its reports are counted."""
        with self._lock:
            if tenant in self._counted:
                return
            self._counted.add(tenant)
        mark = _checked_mark(tenant)
        if not generations.of(mark):
            self.table.advance(mark)

    def _read(self, key: str) -> bytes | None:
        try:
            return self.store.read(key, limit=_LARGEST)
        except (ObjectMissing, ObjectTooLarge):
            return None

    def _problems(self, view: BucketView, info: ObjectInfo) -> list[Problem]:
        loaded = self.workflows.load(info)
        if isinstance(loaded, Workflow):
            try:
                self.packages.find(view, loaded)
            except ManifestInvalid as error:
                return error.problems
            return []
        return loaded.problems if loaded is not None else []


def report_marks(folder: str) -> tuple[str, str]:
    """Two names of generations: all folders of its tenant were checked; reports of this folder, or a few others."""
    tenant = folder.split("/")[1]
    return _checked_mark(tenant), f"reports/{tenant}/{zlib.crc32(folder.encode(errors='surrogateescape')) % _COUNTERS}"


def all_report_marks(tenant: str) -> list[str]:
    return [_checked_mark(tenant), *(f"reports/{tenant}/{n}" for n in range(_COUNTERS))]


def _checked_mark(tenant: str) -> str:
    return f"reports/{tenant}"


def is_unread(key: str, workflows: Sequence[Workflow]) -> bool:
    """Whether no job will ever read a file: its kind is unknown and no manifest selects or names it, or it is too long.

    False for a spreadsheet that no manifest selects: it waits, and its row says for what. False for what looks like
    part of a config package, which may be put before its manifest.
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
        problem = f"is not read: the keys of its outputs would be longer than {MAX_KEY_BYTES} bytes"
        return Problem("$", problem, "a shorter path")
    hint = meant(name)
    asked = f"; did you mean {hint}?" if hint else ""
    kind = f"files ending in .{name.rpartition('.')[2]}" if "." in name else "files without an ending"
    known = f"{', '.join(SPREADSHEETS)}, a manifest.json, or a manifest whose inputs name this file"
    return Problem("$", f"is not read: no manifest selects it, and {kind} are not spreadsheets{asked}", known)


def unread_line(key: str) -> str:
    """The same problem as one line with the key, for the log and `ade sweep`."""
    return refusal(key) or f"{key!r} {unread_problem(key).problem}"


def report_folder(key: str) -> str | None:
    """The folder whose report names a refused key; None if it has no tenant to report to."""
    folder = key[: key.rfind("/") + 1]
    try:
        place(f"{folder}x")
    except KeyRefused:
        return None
    return folder if folder.startswith(INBOX) else None
