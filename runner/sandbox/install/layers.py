"""Layers: the wheels of a requirements.txt, installed once in a box and shared read-only by all jobs that need them.

A layer is a folder named by the digest of its inputs. It appears atomically, by a rename; two runners that make the
same one at once both succeed. Each use updates its modification time, by which `collect` removes old ones.
"""

import hashlib
import os
import shutil
import sys
import time
import zipfile
from pathlib import Path

from core.errors import AdeError
from core.verdicts import Verdict
from runner.boxes import BoxLimits, BoxOrder, Killed, Sandbox
from runner.engine.contract import PRIMARY, InputFile, Order
from runner.sandbox.install.archives import ARCHIVE, safe_name

MIB = 1024 * 1024
MAX_FILES = 50_000
LEAST_AGE = 3600.0  # a job may use a layer for this long after it requested it
LIMITS = BoxLimits(wall_seconds=300, cpu_seconds=120, memory_mb=512, file_mb=512)
_BLOCK = 1024 * 1024
_LABEL = "layer-"  # and the folder in which the installer works


class LayerRefused(AdeError):
    """The requirements cannot be installed; the message names the line or package, and the remedy."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class Layers:
    """Creates and caches layers. `sandbox` runs the installer (see drivers.make_layers)."""

    def __init__(self, *, cache: Path, wheelhouse: Path | None, sandbox: Sandbox) -> None:
        self._cache = cache
        self._wheelhouse = wheelhouse
        self._sandbox = sandbox

    def prepare_layer(
        self,
        requirements: Path,
        *,
        tenant: str,
        killed: Killed = lambda: None,
    ) -> Path:
        """The folder with everything installed, created if needed. Raises LayerRefused or SandboxUnavailable."""
        text = requirements.read_bytes()
        path = self._cache / self._digest(text)
        if not path.is_dir():
            self._cache.mkdir(parents=True, exist_ok=True)
            self._make(text, path, tenant=tenant, killed=killed)
        os.utime(path)
        return path

    def collect(self, older_than: float) -> int:
        """Remove layers not used for this many seconds, and unfinished ones; returns how many.

        An installer whose folder is gone ends.
        """
        if not self._cache.is_dir():
            return 0
        self._sandbox.reap(lambda label: (self._cache / label.removeprefix(_LABEL)).is_dir())
        before = time.time() - max(older_than, LEAST_AGE)
        count = 0
        for path in sorted(self._cache.iterdir()):
            if path.stat().st_mtime < before:
                dying = path.with_name(f"dying-{os.urandom(8).hex()}")
                try:
                    path.rename(dying)
                except FileNotFoundError:
                    continue  # another janitor removes it
                remove(dying)
                count += 1
        return count

    def close(self) -> None:
        self._sandbox.close()

    def _digest(self, text: bytes) -> str:
        """The digest of all that determines what is installed: the requirements, the interpreter, the wheelhouse."""
        sha = hashlib.sha256(text)
        sha.update(f"\0{sys.implementation.cache_tag} {sys.platform} {os.uname().machine}".encode())
        if self._wheelhouse is not None and self._wheelhouse.is_dir():
            for path in sorted(self._wheelhouse.glob("*.whl")):
                found = path.stat()
                sha.update(f"\0{path.name} {found.st_size} {found.st_mtime_ns}".encode())
        return sha.hexdigest()

    def _make(self, text: bytes, path: Path, *, tenant: str, killed: Killed) -> None:
        work = self._cache / f"half-{os.urandom(8).hex()}"
        try:
            (work / "box" / "in").mkdir(parents=True)
            (work / "box" / "in" / "0").write_bytes(text)
            order = BoxOrder(
                label=f"{_LABEL}{work.name}",
                tenant=tenant,
                scratch=work / "box",
                job=Order(
                    manifest={}, inputs=(InputFile(role=PRIMARY, name="requirements.txt", path=Path("in", "0")),)
                ),
                outputs=(ARCHIVE,),
                limits=LIMITS,
                layer=self._wheelhouse,
            )
            report = self._sandbox.run(order, killed=killed)
            if report.verdict is not Verdict.OK:
                raise LayerRefused(report.verdict, f"requirements.txt: {report.message}")
            unpack(report.outputs[ARCHIVE], work / "layer", most_bytes=LIMITS.file_mb * MIB)
            seal(work / "layer")
            try:
                (work / "layer").rename(path)
            except OSError:
                if not path.is_dir():
                    raise
        finally:
            remove(work)


def unpack(archive: Path, target: Path, *, most_bytes: int) -> None:
    """Unpack an archive from a box. It is untrusted: every name, size and count is checked."""
    target.mkdir()
    left = most_bytes
    try:
        with zipfile.ZipFile(archive) as source:
            infos = source.infolist()
            if len(infos) > MAX_FILES:
                raise LayerRefused(Verdict.BAD_OUTPUT, f"the layer has more than {MAX_FILES} files")
            for info in infos:
                if not safe_name(info.filename) or info.compress_type != zipfile.ZIP_STORED:
                    raise LayerRefused(Verdict.BAD_OUTPUT, "the layer has a file name that leads outside")
                left -= _write(source, info, target / info.filename, left)
    except (zipfile.BadZipFile, EOFError, FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise LayerRefused(Verdict.BAD_OUTPUT, f"the layer cannot be unpacked: {type(error).__name__}") from error


def _write(source: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, most: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with source.open(info) as content, path.open("xb") as out:
        while block := content.read(_BLOCK):
            written += len(block)
            if written > most:
                raise LayerRefused(Verdict.FILE_SIZE, "the layer exceeds its size limit")
            out.write(block)
    return written


def seal(folder: Path) -> None:
    """Make it readable by everyone and writable by no one."""
    for place, _, files in os.walk(folder):
        for name in files:
            Path(place, name).chmod(0o444)
        Path(place).chmod(0o555)


def remove(folder: Path) -> None:
    """Remove a folder, sealed or not, if it exists."""
    for place, _, _ in os.walk(folder):
        Path(place).chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)
