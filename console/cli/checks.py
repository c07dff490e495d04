"""The checks of `ade doctor`: this machine, the services, the table and the queue, each with a remedy."""

import io
import itertools
import os
import platform
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from posixpath import basename

from console.cli import wire
from console.cli.acts import scope_words
from console.job_facts import plural, span, when
from core.errors import AdeError, RecordNewer, SettingsError
from core.jobs import State
from core.keys import INBOX, is_ignored
from core.ports import JobQuery
from core.settings import PREFIX, Settings, shown_url, unknown_variables
from infra.local.folder_watch import Inotify
from infra.local.presence import Presence, new_owner
from infra.logs import Log
from infra.probes import probe_queue, probe_store, probe_table
from infra.wiring import Stack
from runner import audit as audit_results
from runner.audit import AUDITED, Audit
from runner.boxes import Isolation
from runner.engine.contract import escape_controls
from runner.sandbox.drivers import at_least

OK, WARNING, WRONG = "ok", "warning", "wrong"
_LITTLE_BYTES, _LOW_BYTES = 100 * 1024**2, 1024**3
_SKEW_SECONDS = 2.0
_FEW_WATCHES = 8192
_NAMED_LINKS = 5
_LEAST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: str
    message: str
    remedy: str = ""


def check_python() -> Iterator[Check]:
    version = platform.python_version()
    if tuple(map(int, platform.python_version_tuple()[:2])) < _LEAST_PYTHON:
        yield Check("python", WRONG, f"Python {version}", "ade-drop needs 3.11 or newer: make PYTHON=python3.11 setup")
    else:
        yield Check("python", OK, f"Python {version} on {platform.system()} {platform.release()}")


def check_settings() -> Iterator[Check]:
    """Also works if the settings do not parse."""
    try:
        Settings.from_env(os.environ)
    except SettingsError as error:
        for line in str(error).splitlines():
            variable = line.partition("=")[0]
            yield Check(
                "settings", WRONG, line, f"correct or unset {variable}; docs/reference/settings.md lists all of them"
            )
    else:
        variables = sorted(v for v in os.environ if v.startswith(PREFIX))
        yield Check(
            "settings",
            OK,
            f"{len(variables)} set by ADE_* variables: {', '.join(variables)}"
            if variables
            else "all at their defaults",
        )
    known = [PREFIX + name.upper() for name in Settings.__dataclass_fields__]
    for variable in unknown_variables(os.environ):
        near = get_close_matches(variable, known, n=1)
        hint = (
            f"did you mean {near[0]}?" if near else "unset it, or check its spelling against docs/reference/settings.md"
        )
        yield Check("settings", WARNING, f"{variable} is not a setting of ade-drop", hint)


def usable_settings() -> Settings:
    """The settings, or those of the valid variables alone, so that the other checks can go on."""
    env = dict(os.environ)
    for _ in range(len(env)):
        try:
            return Settings.from_env(env)
        except SettingsError as error:
            for line in str(error).splitlines():
                env.pop(line.partition("=")[0], None)
    return Settings()


def check_folder(folder: Path) -> Iterator[Check]:
    """The data folder: exists or can be created, is writable, has free space."""
    name = "data folder"
    elsewhere = "or set ADE_STORAGE_DATA_DIR to a folder that this user can write to"
    if folder.exists() and not folder.is_dir():
        yield Check(name, WRONG, f"{folder} is not a folder", f"move that file away, {elsewhere}")
        return
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    problem = _unwritable(there)
    if problem:
        what = str(folder) if there == folder else f"{folder} does not exist and cannot be created: {there}"
        yield Check(name, WRONG, f"{what} {problem}", f"chmod u+w {there}, or remount it writable, {elsewhere}")
    elif there != folder:
        yield Check(name, OK, f"{folder} does not exist yet; the first command creates it")
    else:
        yield Check(name, OK, f"{folder.absolute()} is writable")
        if folder.stat().st_mode & 0o007:
            message = f"{folder.absolute()} is open to every user of this machine, with all drops and results in it"
            yield Check(
                name, WARNING, message, f"chmod o-rwx {folder}; docs/guides/operator.md says how to share the inbox"
            )
    yield _free_space(there)


def _unwritable(folder: Path) -> str:
    """Why a folder cannot be written to; empty if it can."""
    try:
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            return "is on a file system that is mounted read-only"
        probe = folder / f".ade-doctor-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return f"cannot be written to ({error.strerror})"
    if not folder.stat().st_mode & 0o222:
        # Root can write anyway, but the user that the service runs as cannot.
        return f"is marked read-only (mode {folder.stat().st_mode & 0o777:o})"
    return ""


def _free_space(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    message = f"{free / 1024**3:.1f} GiB free on the file system of {folder}"
    if free >= _LOW_BYTES:
        return Check("free space", OK, message)
    level = WRONG if free < _LITTLE_BYTES else WARNING
    return Check("free space", level, message, "free some space, or lower ADE_RETENTION_HOURS")


def check_watch(folder: Path) -> Iterator[Check]:
    name = "change notice"
    try:
        notifier = Inotify()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        remedy = "raise it: sysctl fs.inotify.max_user_instances=1024; until then the inbox is polled"
        yield Check(name, WARNING, f"no inotify instance is available ({why})", remedy)
        return
    notifier.close()
    limit = _limit("max_user_watches")
    inbox = folder / "bucket" / "inbox"
    needed = sum(1 for _ in os.walk(inbox)) if inbox.is_dir() else 0
    if limit is not None and needed * 2 > limit:
        level = WRONG if needed > limit else WARNING
        remedy = f"sysctl fs.inotify.max_user_watches={max(_FEW_WATCHES, needed * 4)}; the sweep finds the rest"
        yield Check(name, level, f"the inbox has {plural(needed, 'folder')} and the limit is {limit} watches", remedy)
    else:
        yield Check(name, OK, f"inotify, {plural(needed, 'folder')} of {limit or 'unknown'} watches")


def check_links(folder: Path) -> Iterator[Check]:
    """Links among the standing workflows and overlays, which the bucket does not follow: nothing reads them."""
    bucket = folder / "bucket"
    links: list[str] = []
    for at, folders, files in os.walk(bucket / "configs"):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links += [
            str((Path(at) / name).relative_to(bucket)) for name in (*folders, *files) if (Path(at) / name).is_symlink()
        ]
    if links:
        named = ", ".join(sorted(links)[:_NAMED_LINKS]) + (", …" if len(links) > _NAMED_LINKS else "")
        message = f"links are not followed, so nothing reads {escape_controls(named)}"
        yield Check("configs", WARNING, message, "put the files themselves there: cp -rL")


def _limit(name: str) -> int | None:
    try:
        return int(Path(f"/proc/sys/fs/inotify/{name}").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def check_sandbox(isolation: Isolation, settings: Settings) -> Iterator[Check]:
    holds = [rung for rung, there in isolation.rungs.items() if there]
    missing = [rung for rung, there in isolation.rungs.items() if not there]
    message = f"{isolation.driver} gives level {isolation.level}; has: {', '.join(holds) or 'nothing'}"
    if missing:
        message += f"; missing: {', '.join(missing)}"
    if at_least(isolation, settings.sandbox_min_level):
        yield Check("sandbox", OK, message)
    else:
        remedy = (
            f"configs with Python are refused here (ADE_SANDBOX_MIN_LEVEL={settings.sandbox_min_level}); "
            f"see docs/explanation/sandbox.md for what a host must allow; "
            f"if every config is trusted, set it to {isolation.level}"
        )
        yield Check("sandbox", WARNING, message, remedy)
    for gap in isolation.gaps:
        yield Check("sandbox", OK, f"gap: {gap}")


def check_network(settings: Settings) -> Iterator[Check]:
    """Where rules may use the network, whatever believes this machine believes them."""
    if settings.runtime_network_access:
        yield Check(
            "network",
            WARNING,
            "ADE_RUNTIME_NETWORK_ACCESS=true: rules reach whatever this host reaches, its loopback included; "
            "the console asks every caller for a token",
            "make a token with `ade token new`; give services on this host a password, and block the metadata "
            "address for this user; or unset the variable",
        )


def check_wheelhouse(settings: Settings) -> Iterator[Check]:
    house = settings.wheelhouse
    if house is None:
        yield Check("wheelhouse", OK, "ADE_WHEELHOUSE is not set: configs with requirements.txt find no packages")
    elif not house.is_dir():
        yield Check("wheelhouse", WRONG, f"{house} is not a folder", "create it, or unset ADE_WHEELHOUSE")
    else:
        n = sum(1 for _ in house.glob("*.whl"))
        remedy = "" if n else f"fill it: pip download -d {house} PACKAGE"
        yield Check("wheelhouse", OK if n else WARNING, f"{n} wheels in {house}", remedy)


def check_clock(folder: Path, newest: float | None) -> Iterator[Check]:
    """Leases and schedules need a clock that agrees with the file system's and does not go backwards."""
    now = time.time()
    set_it = "synchronize the clock: timedatectl set-ntp true"
    if newest is not None and newest > now + _SKEW_SECONDS:
        message = f"a job was changed {newest - now:.0f} s in the future: the clock went back"
        yield Check("clock", WRONG, message, set_it)
        return
    probe = folder / f".ade-doctor-clock-{os.getpid()}"
    try:
        probe.touch()
        skew = probe.stat().st_mtime - time.time()
        probe.unlink()
    except OSError:
        yield Check("clock", OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))
        return
    if abs(skew) > _SKEW_SECONDS:
        yield Check("clock", WRONG, f"the file system's clock differs from this machine's by {skew:+.0f} s", set_it)
    else:
        yield Check("clock", OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def guarded(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """A check that fails is itself a finding and does not stop the others."""
    try:
        yield from checks
    except (AdeError, OSError, sqlite3.Error) as error:
        yield Check(name, WRONG, str(error), "fix this first and run `ade doctor` again")


_STORE_REMEDY = (
    "check the rights of this user; on Ceph and others `aws s3api delete-public-access-block --bucket BUCKET` may "
    "help; if ETags are no MD5s, add etag=opaque to ADE_STORE_URL (docs/guides/cloud.md)"
)
_TABLE_REMEDY = "check the rights of this user; a DynamoDB must support transactions (TransactWriteItems)"
_QUEUE_REMEDY = "check the rights of this user; an SQS queue must be a standard one, not FIFO"
_OLD_SECONDS = 300.0
_OVERDUE_SECONDS = 60.0
_FORGOTTEN_SECONDS = 3600.0  # expired jobs may wait for urgent ones
_SERVICE_SKEW_SECONDS = 3.0
_SHOWN = 20
_MOST_CHECKED = 1000
_FAILED = 200  # failed jobs to check, newest first


def check_table(stack: Stack) -> Iterator[Check]:
    if stack.settings.table_url:
        yield Check("table", OK, f"{shown_url(stack.settings.table_url)} answers; {_jobs(stack)}")
        return
    path = stack.settings.storage_data_dir.absolute() / "ade.sqlite"
    db = sqlite3.connect(path, timeout=5, isolation_level=None)
    try:
        mode = db.execute("PRAGMA journal_mode").fetchone()[0]
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    except sqlite3.Error as error:
        remedy = f"check which process holds it (fuser {path}), and that the file and its folder are writable"
        yield Check("table", WRONG, f"{path} cannot be written to: {error}", remedy)
        return
    finally:
        db.close()
    if mode != "wal":
        remedy = "put ADE_STORAGE_DATA_DIR on a local disk: network file systems do not support WAL"
        yield Check("table", WRONG, f"{path} is in journal mode {mode}, not WAL", remedy)
        return
    yield Check("table", OK, f"SQLite {sqlite3.sqlite_version}, WAL; {_jobs(stack)}")


def _jobs(stack: Stack) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(stack.table.counts().items())) or "no jobs"


def check_store(stack: Stack) -> Iterator[Check]:
    """A bucket in the cloud: one call; its error is reported as it is."""
    if stack.settings.store_url:
        tenants = len(stack.store.folder("inbox/").folders)
        yield Check("store", OK, f"{shown_url(stack.settings.store_url)} answers; {plural(tenants, 'tenant')}")


def check_writes(stack: Stack) -> Iterator[Check]:
    """What jobs do with each service, for no job: one that only answers may refuse every write."""
    settings = stack.settings
    probes: tuple[tuple[str, str, Callable[[], None], str], ...] = (
        ("store", settings.store_url, lambda: probe_store(stack.store), _STORE_REMEDY),
        ("table", settings.table_url, lambda: probe_table(stack.table, stack.clock), _TABLE_REMEDY),
        ("queue", settings.queue_url, lambda: probe_queue(stack.queue), _QUEUE_REMEDY),
    )
    for name, url, probe, remedy in probes:
        try:
            probe()
        except AdeError as error:
            yield Check(name, WRONG, f"no job can work with it: {error}", remedy if url else "see the message")
        else:
            yield Check(name, OK, "what jobs do with it works, tried with a probe")


def check_queue(stack: Stack) -> Iterator[Check]:
    """Waiting jobs against ADE_QUEUE_SIZE, the age of the oldest ready message, and whether a runner is alive."""
    stats, size = stack.queue.stats(), stack.settings.queue_size
    working = wire.runners(stack)
    full = {
        tenant: counts[State.QUEUED]
        for tenant, counts in stack.table.tally().tenants.items()
        if counts.get(State.QUEUED, 0) > size
    }
    for tenant, n in sorted(full.items()):
        remedy = (
            "start more runners (`ade run`) or raise ADE_MAX_CONCURRENCY; "
            "ADE_QUEUE_SIZE only says when HTTP submits get 429"
        )
        message = f"queue full: tenant {tenant} has {plural(n, 'job')} waiting, over ADE_QUEUE_SIZE={size}"
        yield Check("queue", WRONG, message, remedy)
    if stats.oldest_seconds is not None and stats.oldest_seconds > _OLD_SECONDS:
        message = f"the oldest message has been ready for {span(stats.oldest_seconds)}"
        yield Check("queue", WARNING, message, "see `ade jobs --state QUEUED` for what they wait for")
    if stats.ready and not working:
        remedy = "start `ade up`, or `ade run` on another machine that shares this data"
        yield Check("queue", WRONG, f"{plural(stats.ready, 'message')} ready and no runner is alive here", remedy)
    for owner, why in working.items():
        if why:
            remedy = "fix that; the runner checks every few seconds and resumes by itself; no job lost an attempt"
            yield Check("queue", WRONG, f"{owner} takes no jobs: {escape_controls(why)}", remedy)
    pauses = stack.table.pauses()
    shut = {pause.tenant for pause in pauses if pause.is_quarantine}  # which has a check of its own
    for pause in (one for one in pauses if one.tenant is None or one.tenant not in shut):
        name = scope_words(pause.tenant, pause.workflow)
        words = "all" if pause.tenant is None else f"tenant {pause.tenant}"
        words = f"workflow {pause.tenant} {pause.workflow}" if pause.workflow else words
        yield Check("queue", WARNING, f"{name} is paused by {pause.by}", f"ade resume {words}")
    moving = f"{stats.ready} ready, {stats.in_flight} in flight, {stats.delayed} delayed"
    yield Check("queue", OK, f"{moving}; {plural(len(working), 'runner')} here")


def check_quarantine(stack: Stack) -> Iterator[Check]:
    for pause in stack.table.pauses():
        if pause.is_quarantine:
            yield Check(
                "quarantine",
                WARNING,
                f"nothing of tenant {pause.tenant} is accepted or run, since {when(pause.since)}, by {pause.by}",
                f"`ade quarantine {pause.tenant} --end`, if that is over",
            )


def check_dead(stack: Stack) -> Iterator[Check]:
    letters = stack.queue.dead(limit=1000)
    if not letters:
        yield Check("dead letters", OK, "none")
        return
    last = letters[-1]
    message = f"{plural(len(letters), 'job')} used up all attempts without fault of their own; the last: {last.reason}"
    yield Check("dead letters", WRONG, message, "fix the cause, then `ade queue redrive`; `ade queue dead` lists them")


def check_engine(stack: Stack) -> Iterator[Check]:
    """Failures blamed on a sender or a config that may be bugs of the engine."""
    failed = stack.table.page(JobQuery(states=frozenset({State.FAILED})), limit=_FAILED).jobs
    suspected = [job for job in failed if job.summary.get("engine_fault")]
    if not suspected:
        yield Check("engine", OK, "no failed job looks like a bug of the engine")
        return
    last = suspected[0]
    message = f"{plural(len(suspected), 'failed job')} may be due to a bug of the engine; the last, {last.job_id}: "
    remedy = "report it with the log event engine_fault_suspected; if rules ran, they may have caused or forged it"
    yield Check("engine", WARNING, message + str(last.summary["engine_fault"]), remedy)


def check_rows(stack: Stack) -> Iterator[Check]:
    """Rows that no program can read, or that contradict themselves after an edit by hand."""
    damaged = stack.table.damaged(limit=_SHOWN)
    for why in damaged.values():
        if isinstance(why, RecordNewer):
            yield Check("rows", WARNING, str(why), "upgrade this machine; see docs/guides/upgrading.md")
            continue
        yield Check("rows", WRONG, str(why), "repair or delete the row: the next sweep creates it again")
    if not damaged:
        yield Check("rows", OK, "every row can be read")


def check_results(stack: Stack) -> Iterator[Check]:
    """Every ended job against its outputs; costs a listing for each."""
    audit, found, cursor = Audit(stack.store, stack.table, stack.clock, Log(stream=io.StringIO())), Counter[str](), None
    while True:
        page = stack.table.page(JobQuery(states=AUDITED), limit=_MOST_CHECKED, cursor=cursor)
        for job in page.jobs:
            found["checked"] += 1
            match audit.check(job):
                case audit_results.RESTORED:
                    yield Check("results", WARNING, f"{job.job_id}: outputs were missing and are put back")
                case audit_results.RUN_AGAIN:
                    yield Check("results", WARNING, f"{job.job_id}: outputs were missing; it runs again")
                case audit_results.UNEXPLAINED:
                    found["missing"] += 1
                    if found["missing"] <= _SHOWN:
                        message = f"{job.job_id} is {job.state}, and outputs of it are missing"
                        yield Check(
                            "results", WRONG, message, f"if nobody removed them on purpose: ade reset {job.job_id}"
                        )
        cursor = page.cursor
        if cursor is None:
            break
    if found["missing"] > _SHOWN:
        yield Check("results", WRONG, f"{found['missing']} jobs lack outputs", "see the first ones above")
    yield Check("results", OK, f"{plural(found['checked'], 'ended job')} compared with the bucket")


def check_inbox(stack: Stack) -> Iterator[Check]:
    """Objects that no job will read because of their names or the store itself."""
    unreadable: dict[str, str] = {}
    top = stack.store.level(INBOX)
    loose = [key for key in (*top.keys, *top.refused_keys) if not is_ignored(basename(key))]
    for key in loose[:_SHOWN]:
        yield Check("inbox", WARNING, f"{key!r} is not in a tenant's folder", f"put it below {INBOX}<tenant>/")
    checked = sum(1 for _ in itertools.islice(stack.store.objects(INBOX, unreadable=unreadable), _MOST_CHECKED))
    for key, why in list(unreadable.items())[:_SHOWN]:
        yield Check("inbox", WARNING, f"{key!r} is set aside: {why}", "rename it, or check its permissions")
    if not loose and not unreadable:
        more = "; more were not checked" if checked == _MOST_CHECKED else ""
        yield Check("inbox", OK, f"{plural(checked, 'object')}, none set aside{more}")


def check_orphans(stack: Stack) -> Iterator[Check]:
    """Jobs of processes that died on this machine: known at once, long before their leases are over."""
    presence = Presence(stack.run_dir, new_owner("console"))
    try:
        dead = set(presence.sweep())
        left = [
            job
            for job in stack.table.page(JobQuery(states=frozenset({State.RUNNING})), limit=1000).jobs
            if job.lease is not None and job.lease.owner in dead
        ]
        served = any(presence.others(role) for role in (*wire.RUNNING_ROLES, "janitor"))
    finally:
        presence.close()
    if left and left[0].lease is not None:
        message = f"{plural(len(left), 'job')} of a process that died ({left[0].lease.owner}), first {left[0].job_id}"
        remedy = (
            "wait a moment: another process takes over" if served else "start `ade up` or `ade run`, which takes over"
        )
        yield Check("orphans", WARNING if served else WRONG, message, remedy)


def check_stuck(stack: Stack) -> Iterator[Check]:
    """Chores that no janitor does: expired leases, unfinished publications."""
    now = stack.clock.now()
    overdue = stack.table.attention(now - _OVERDUE_SECONDS, limit=1000)
    overdue += stack.table.outdated(now - _FORGOTTEN_SECONDS, limit=1000)
    if not overdue:
        yield Check("chores", OK, "nothing is overdue")
        return
    states = sorted({str(job.state) for job in overdue})
    late = f"{plural(len(overdue), 'job')} overdue for a chore; no janitor is at work"
    message = f"{late} ({', '.join(states)}), first {overdue[0].job_id}"
    yield Check("chores", WRONG, message, "start `ade up` or `ade janitor run`, or do them now: `ade janitor run-once`")


def check_clocks(stack: Stack) -> Iterator[Check]:
    """This machine's clock against those of the services, which every machine of a fleet shares."""
    remedy = "synchronize the clock: timedatectl set-ntp true; in a container, on its host"
    for caller in stack.callers:
        if caller.ahead is not None and abs(caller.ahead) > _SERVICE_SKEW_SECONDS:
            where = "ahead of" if caller.ahead > 0 else "behind"
            message = f"clock at least {abs(caller.ahead):.0f} s {where} that of {caller.service.partition('?')[0]}"
            yield Check("clock", WARNING, message, remedy)


def newest_change(stack: Stack) -> float | None:
    jobs = stack.table.page(JobQuery(), limit=20).jobs
    return max((job.updated_at for job in jobs), default=None)
