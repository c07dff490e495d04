"""What `ade doctor` looks at: each check says what it found and, where something is wrong, how to mend it."""

import os
import platform
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from console.words import plural
from core.errors import AdeError, SettingsError
from core.ports import Isolation
from core.settings import PREFIX, Settings, unknown_variables
from infra.local.folder_watch import Inotify
from runner.sandbox.levels import at_least

OK, WARNING, WRONG = "ok", "warning", "wrong"
_LITTLE_BYTES, _LOW_BYTES = 100 * 1024**2, 1024**3
_SKEW_SECONDS = 2.0
_FEW_WATCHES = 8192
_LEAST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: str
    said: str
    remedy: str = ""


def check_python() -> Iterator[Check]:
    version = platform.python_version()
    if tuple(map(int, platform.python_version_tuple()[:2])) < _LEAST_PYTHON:
        yield Check("python", WRONG, f"Python {version}", "ade-drop needs 3.11 or newer: make PYTHON=python3.11 setup")
    else:
        yield Check("python", OK, f"Python {version} on {platform.system()} {platform.release()}")


def check_settings() -> Iterator[Check]:
    """Works although the settings do not parse: that is what it is for."""
    try:
        Settings.from_env(os.environ)
    except SettingsError as error:
        for line in str(error).splitlines():
            variable = line.partition("=")[0]
            yield Check("settings", WRONG, line, f"correct or unset {variable}; docs/settings.md lists all of them")
    else:
        given = sorted(v for v in os.environ if v.startswith(PREFIX))
        yield Check(
            "settings",
            OK,
            f"{len(given)} set by ADE_* variables: {', '.join(given)}" if given else "all at their defaults",
        )
    known = [PREFIX + name.upper() for name in Settings.__dataclass_fields__]
    for variable in unknown_variables(os.environ):
        near = get_close_matches(variable, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "unset it, or check its spelling against docs/settings.md"
        yield Check("settings", WARNING, f"{variable} means nothing to ade-drop", hint)


def usable_settings() -> Settings:
    """The settings, or those that the good variables alone would give, so that the other checks can go on."""
    env = dict(os.environ)
    for _ in range(len(env)):
        try:
            return Settings.from_env(env)
        except SettingsError as error:
            for line in str(error).splitlines():
                env.pop(line.partition("=")[0], None)
    return Settings()


def check_folder(folder: Path) -> Iterator[Check]:
    """The data folder: there or makeable, writable, with room."""
    name = "data folder"
    elsewhere = "or set ADE_STORAGE_DATA_DIR to a folder that this user may write to"
    if folder.exists() and not folder.is_dir():
        yield Check(name, WRONG, f"{folder} is no folder", f"move that file away, {elsewhere}")
        return
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    problem = _unwritable(there)
    if problem:
        what = str(folder) if there == folder else f"{folder} is not there and cannot be made: {there}"
        yield Check(name, WRONG, f"{what} {problem}", f"chmod u+w {there}, or remount it writable, {elsewhere}")
    elif there != folder:
        yield Check(name, OK, f"{folder} is not there yet; the first command makes it")
    else:
        yield Check(name, OK, f"{folder.absolute()} is writable")
    yield _free_space(there)


def _unwritable(folder: Path) -> str:
    """Why a folder cannot be written to; empty where it can."""
    try:
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            return "is on a file system that is mounted read-only"
        probe = folder / f".ade-doctor-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return f"cannot be written to ({error.strerror})"
    if not folder.stat().st_mode & 0o222:
        # Root writes all the same, and whoever the service runs as will not.
        return f"is marked read-only (mode {folder.stat().st_mode & 0o777:o})"
    return ""


def _free_space(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    said = f"{free / 1024**3:.1f} GiB free on the file system of {folder}"
    if free >= _LOW_BYTES:
        return Check("free space", OK, said)
    level = WRONG if free < _LITTLE_BYTES else WARNING
    return Check("free space", level, said, "make room, or lower ADE_RETENTION_HOURS so that outputs go sooner")


def check_watch(folder: Path) -> Iterator[Check]:
    name = "change notice"
    try:
        notifier = Inotify()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        remedy = "raise it: sysctl fs.inotify.max_user_instances=1024; until then the inbox is polled"
        yield Check(name, WARNING, f"no inotify instance can be had ({why})", remedy)
        return
    notifier.close()
    limit = _limit("max_user_watches")
    inbox = folder / "bucket" / "inbox"
    needed = sum(1 for _ in os.walk(inbox)) if inbox.is_dir() else 0
    if limit is not None and needed * 2 > limit:
        level = WRONG if needed > limit else WARNING
        remedy = f"sysctl fs.inotify.max_user_watches={max(_FEW_WATCHES, needed * 4)}; what is not watched is swept"
        yield Check(name, level, f"the inbox has {plural(needed, 'folder')} and the limit is {limit} watches", remedy)
    else:
        yield Check(name, OK, f"inotify, {plural(needed, 'folder')} of {limit or 'unknown'} watches")


def _limit(name: str) -> int | None:
    try:
        return int(Path(f"/proc/sys/fs/inotify/{name}").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def check_sandbox(isolation: Isolation, settings: Settings) -> Iterator[Check]:
    holds = [rung for rung, there in isolation.rungs.items() if there]
    missing = [rung for rung, there in isolation.rungs.items() if not there]
    said = f"{isolation.driver} gives level {isolation.level}; holds: {', '.join(holds) or 'nothing'}"
    if missing:
        said += f"; missing: {', '.join(missing)}"
    if at_least(isolation, settings.sandbox_min_level):
        yield Check("sandbox", OK, said)
    else:
        remedy = (
            f"configs with Python are refused here (ADE_SANDBOX_MIN_LEVEL={settings.sandbox_min_level}); "
            f"docs/sandbox.md says what a host must allow; if every config is trusted, set it to {isolation.level}"
        )
        yield Check("sandbox", WARNING, said, remedy)
    for gap in isolation.gaps:
        yield Check("sandbox", OK, f"gap: {gap}")


def check_wheelhouse(settings: Settings) -> Iterator[Check]:
    house = settings.wheelhouse
    if house is None:
        yield Check("wheelhouse", OK, "ADE_WHEELHOUSE is not set: configs with requirements.txt find no packages")
    elif not house.is_dir():
        yield Check("wheelhouse", WRONG, f"{house} is no folder", "make it, or unset ADE_WHEELHOUSE")
    else:
        n = sum(1 for _ in house.glob("*.whl"))
        remedy = "" if n else f"fill it: pip download -d {house} PACKAGE"
        yield Check("wheelhouse", OK if n else WARNING, f"{n} wheels in {house}", remedy)


def check_clock(folder: Path, newest: float | None) -> Iterator[Check]:
    """Leases and schedules need a clock that agrees with the file system's and does not go back."""
    now = time.time()
    set_it = "let the system keep time: timedatectl set-ntp true"
    if newest is not None and newest > now + _SKEW_SECONDS:
        said = f"a job was changed {newest - now:.0f} s in the future: the clock went back"
        yield Check("clock", WRONG, said, set_it)
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
        yield Check("clock", WRONG, f"the file system's clock is {skew:+.0f} s off ours", set_it)
    else:
        yield Check("clock", OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def guarded(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """A check that breaks is itself a finding and stops none of the others."""
    try:
        yield from checks
    except (AdeError, OSError, sqlite3.Error) as error:
        yield Check(name, WRONG, str(error), "mend this first and run `ade doctor` again")
