"""Erases a tenant: everything of it goes but its name.

Theory of operation. Every step may be repeated, and the steps are in an order in which nothing comes back: the tenant
is put in quarantine, so nothing new is accepted; what runs is cancelled and waited for; loaded rows go by the load
ledger; the rows of its jobs go before their files, since a row whose files are missing is healed (runner/audit.py);
then the bucket with every version, staged files, replays, tokens, action log, and what this machine remembers of files.
A kill anywhere leaves the quarantine and a tenant that is partly there; the same call goes on.

No other tenant is touched: a tenant's keys begin with its name and a slash, and what has no such key (staged files,
replays, the action log) is found by job ids that the table knew, or knows no more.
"""

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename
from typing import Final

from console.api.access import LINKS_KEY, TOKENS_KEY, Access
from console.api.actions import ACTIONS
from console.api.spools import forget_spooled
from core.errors import AdeError, IllegalTransition, StoreUnavailable
from core.jobs import Job, State, job_ids_of
from core.keys import BENCHES, CONFIGS, INBOX, OUTPUTS, REPLAYS, REQUESTS, WORK
from core.ports import ErasesTenants, JobQuery, ObjectStore, Purges
from infra.loads import Loads
from infra.local.presence import alive_owners, open_below
from infra.quarantine import begin_quarantine, in_quarantine
from infra.wiring import Stack
from runner.control import Control

_PAGE = 200
_ROUNDS = 5
_ACTIVE: Final = frozenset({State.RUNNING, State.PUBLISHING})
_MOST_BYTES = 16 * 1024 * 1024  # of an entry of the action log, an answer or the report of a replay
_ABANDONED_SECONDS = 60.0
_BLOCK = 4 * 1024 * 1024


@dataclass(slots=True)
class ErasureReport:
    """What was there and went, by place, and what a search found afterwards. Holds no name but the tenant's."""

    tenant: str
    erased: dict[str, int] = field(default_factory=dict)
    searched: dict[str, int] = field(default_factory=dict)  # how much was scanned: keys, names, bytes
    found: list[str] = field(default_factory=list)  # where something is left

    def add(self, place: str, count: int) -> None:
        self.erased[place] = self.erased.get(place, 0) + count


def erase_tenant(
    stack: Stack, control: Control, tenant: str, *, by: str, wait_seconds: float, note: Callable[[str], None]
) -> ErasureReport:
    """Erase a tenant and search for what is left; the quarantine stays. Raises StoreUnavailable while a job runs."""
    report = ErasureReport(tenant)
    begin_quarantine(stack.table, stack.clock, tenant, by)
    note("in quarantine: nothing new is accepted")
    _stop_jobs(stack, control, tenant, wait_seconds)
    for name, rows in Loads(stack.settings, stack.store, stack.clock).erase(tenant).items():
        report.add(f"rows loaded into {name}", rows)
    known = set[str]()
    for _ in range(_ROUNDS):
        jobs = _remove_rows(stack, tenant, known, report)
        files = _remove_files(stack, tenant, known, report)
        if not jobs and not files:
            break
    report.add("tokens", _revoke(stack, tenant))
    report.add("former versions", _forget_former(stack))
    if isinstance(stack.table, ErasesTenants):
        report.add("rows and messages", stack.table.erase_tenant(tenant))
    _clear_machine(stack, known, report)
    _search(stack, tenant, known, report)
    return report


def is_known(stack: Stack, tenant: str) -> bool:
    """Whether there is anything of a tenant, or was before it was put in quarantine."""
    if in_quarantine(stack.table, tenant) or any(True for _ in _jobs(stack, JobQuery(tenant=tenant))):
        return True
    return any(f"{top}{tenant}/" in stack.store.level(top).folders for top in (INBOX, CONFIGS, OUTPUTS))


def _stop_jobs(stack: Stack, control: Control, tenant: str, wait_seconds: float) -> None:
    until = time.monotonic() + wait_seconds
    while active := list(_jobs(stack, JobQuery(tenant=tenant, states=_ACTIVE))):
        for job in active:
            if job.state is State.RUNNING and job.cancel_requested_at is None:
                with contextlib.suppress(IllegalTransition):
                    control.cancel(job.job_id)
        if time.monotonic() > until:
            raise StoreUnavailable(
                f"{active[0].job_id} is {active[0].state} still; nothing was erased yet. Start `ade up` or "
                "`ade janitor run` if no process is there to end it, and run the same command again"
            )
        stack.table.wait(0.5)


def _jobs(stack: Stack, query: JobQuery) -> Iterator[Job]:
    cursor: str | None = None
    while True:
        page = stack.table.page(query, limit=_PAGE, cursor=cursor)
        yield from page.jobs
        if (cursor := page.cursor) is None:
            return


def _remove_rows(stack: Stack, tenant: str, known: set[str], report: ErasureReport) -> int:
    gone = 0
    for job in list(_jobs(stack, JobQuery(tenant=tenant))):
        known.add(job.job_id)
        stack.queue.redrive(job.job_id)
        gone += stack.table.remove(job)
    report.add("jobs", gone)
    return gone


def _remove_files(stack: Stack, tenant: str, known: set[str], report: ErasureReport) -> int:
    gone = 0
    for top in (INBOX, CONFIGS, OUTPUTS, BENCHES):
        gone += (count := _purge(stack.store, f"{top}{tenant}/"))
        report.add(top.rstrip("/"), count)
    for folder in _folders(stack.store, WORK):
        job_id = basename(folder.rstrip("/"))
        if job_id in known or (job_id.startswith(job_ids_of(tenant)) and stack.table.get(job_id) is None):
            gone += (count := _purge(stack.store, folder))
            report.add("work", count)
    for replay in _folders(stack.store, REPLAYS):
        gone += (count := _purge(stack.store, f"{replay}{tenant}/"))
        report.add("replays", count + _shorten_report(stack.store, f"{replay}report.json", tenant))
    for folder in (ACTIONS, REQUESTS):
        for day in stack.store.level(folder).folders:
            mine = [key for key in stack.store.keys(day) if _mentions(stack.store, key, tenant, known)]
            for key in mine:
                _purge(stack.store, key)
            gone += len(mine)
            report.add("action log and answers", len(mine))
    return gone


def _purge(store: ObjectStore, prefix: str) -> int:
    return store.purge(prefix) if isinstance(store, Purges) else store.delete_prefix(prefix)


def _folders(store: ObjectStore, prefix: str) -> list[str]:
    """The folders below a prefix, and those of which a bucket that keeps versions has nothing else."""
    return list(store.purgeable_folders(prefix) if isinstance(store, Purges) else store.level(prefix).folders)


def _forget_former(stack: Stack) -> int:
    """Delete former versions of the documents that all tenants share: a bucket may keep them."""
    if not isinstance(stack.store, Purges):
        return 0
    reports = (f"{replay}report.json" for replay in _folders(stack.store, REPLAYS))
    return sum(stack.store.purge_former(key) for key in (TOKENS_KEY, LINKS_KEY, *reports))


def _shorten_report(store: ObjectStore, key: str, tenant: str) -> int:
    """Take a tenant's lines out of the report of a replay."""
    with contextlib.suppress(AdeError, ValueError, KeyError, TypeError):
        report = json.loads(store.read(key, limit=_MOST_BYTES))
        left = [one for one in report["differences"] if one["tenant"] != tenant]
        if gone := len(report["differences"]) - len(left):
            store.put(key, json.dumps(report | {"differences": left, "republished": []}, indent=2).encode())
            return gone
    return 0


def _mentions(store: ObjectStore, key: str, tenant: str, known: set[str]) -> bool:
    """Whether an entry is about a tenant, its files or its jobs; one that cannot be read is kept.

    A tenant may be called as a workflow of another, or as whoever acts: only what an entry names as a tenant is one.
    """
    if key.endswith(f".{tenant}.json") and re.fullmatch(r"\d{6}\.\d{6}-[0-9a-f]{8}", basename(key)[: -len(tenant) - 6]):
        return True
    try:
        entry = json.loads(store.read(key, limit=_MOST_BYTES))
    except (AdeError, ValueError):
        return False
    below = tuple(f"{top}{tenant}/" for top in (INBOX, CONFIGS, OUTPUTS))
    return any(
        (name == "tenant" and text == tenant) or text in known or text.startswith(below) for name, text in _texts(entry)
    )


def _texts(value: object) -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, with the name of the member that it is in."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        match waiting.pop():
            case (name, str(text)):
                yield name, text
            case (name, list(items)):
                waiting += [(name, item) for item in items]
            case (_, dict(items)):
                waiting += items.items()


def _revoke(stack: Stack, tenant: str) -> int:
    gone = 0
    for key in (TOKENS_KEY, LINKS_KEY):
        access = Access(stack.store, stack.clock, key=key)
        for grant in [grant for grant in access.grants() if grant.tenant == tenant]:
            access.revoke(grant.id)
            gone += 1
    return gone


def _clear_machine(stack: Stack, known: set[str], report: ErasureReport) -> None:
    """Remove what processes of this machine have of it: scratch folders of attempts, half-written files, downloads."""
    alive, gone = set(alive_owners(stack.run_dir)), 0
    for owner in stack.run_dir.iterdir() if stack.run_dir.is_dir() else ():
        for scratch in owner.iterdir() if owner.is_dir() else ():
            if scratch.name.rpartition("-")[0] in known and (owner.name not in alive or scratch.is_dir()):
                shutil.rmtree(scratch, ignore_errors=True)
                gone += 1
    temporary = stack.settings.storage_data_dir.absolute() / "tmp"
    for file in temporary.iterdir() if temporary.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - file.lstat().st_ctime > _ABANDONED_SECONDS and not open_below(file):
                file.unlink()
                gone += 1
    report.add("scratch", gone + forget_spooled(stack.run_dir))


def _search(stack: Stack, tenant: str, known: set[str], report: ErasureReport) -> None:
    """Look for what is left: keys, rows, and the names of files and jobs in every byte of our databases and logs."""
    prefixes = [f"{top}{tenant}/" for top in (INBOX, CONFIGS, OUTPUTS, BENCHES)]
    prefixes += [f"{replay}{tenant}/" for replay in stack.store.level(REPLAYS).folders]
    for prefix in prefixes:
        report.found += [f"{prefix}…" for _ in zip(stack.store.keys(prefix), range(1), strict=False)]
    report.searched["prefixes"] = len(prefixes)
    report.found += [f"job {job.job_id}" for job in _jobs(stack, JobQuery(tenant=tenant))]
    dead = [letter.message for letter in stack.queue.dead(limit=10_000)]
    report.found += [f"dead letter {message.job_id}" for message in dead if message.tenant == tenant]
    marks = [*(prefix.encode() for prefix in prefixes), *(job_id.encode() for job_id in known)]
    data = stack.settings.storage_data_dir.absolute()
    for file in _own_files(data):
        report.searched["bytes"] = report.searched.get("bytes", 0) + file.stat().st_size
        if _holds(file, marks):
            report.found.append(str(file.relative_to(data)))
    report.searched["names"] = len(marks)


def _own_files(data: Path) -> Iterator[Path]:
    """The files that ade-drop itself writes on this machine, buckets apart."""
    for name in ("ade.sqlite", "loaded.sqlite", "hashes.sqlite", "restored.sqlite"):
        yield from (data / f"{name}{end}" for end in ("", "-wal", "-shm") if (data / f"{name}{end}").is_file())
    for folder in ("access", "tmp", "run"):
        for at, _, names in os.walk(data / folder):
            yield from (path for name in names if (path := Path(at) / name).is_file() and not path.is_symlink())


def _holds(file: Path, marks: list[bytes]) -> bool:
    """Whether a file has one of these texts in it, also across the blocks that it is read in."""
    if not marks:
        return False
    wanted = re.compile(b"|".join(re.escape(mark) + b"(?![A-Za-z0-9])" for mark in marks))
    longest, tail = max(map(len, marks)) + 1, b""
    with contextlib.suppress(OSError), file.open("rb") as body:
        while block := body.read(_BLOCK):
            if wanted.search(tail + block):
                return True
            tail = (tail + block)[-longest:]
    return False
