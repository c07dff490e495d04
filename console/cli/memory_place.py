"""Where a command finds a memory: a file at the desk, or the object of a tenant's workflow in the bucket."""

import argparse
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from console.cli import wire
from core.errors import UsageError
from core.keys import check_key
from core.memories import (
    MAX_MEMORY_BYTES,
    Memory,
    MemoryInvalid,
    is_memory,
    own_key,
    parse_memory,
    serialized,
)
from infra.memories import change_memory, read_memory


class MemoryPlace:
    """Reads a memory and changes it; `name` is what a message calls it."""

    def __init__(self, *, file: Path | None = None, key: str = "") -> None:
        self._file = file
        self._key = key
        self.name = str(file) if file is not None else key

    def read(self) -> Memory:
        if self._file is not None:
            return _read(self._file)
        with wire.opened() as stack:
            return read_memory(stack.store, self._key).memory

    def change(self, change: Callable[[Memory], Memory]) -> Memory:
        """Apply a change; what others write at the same time is kept."""
        if self._file is None:
            with wire.opened() as stack:
                changed = change_memory(stack.store, self._key, change).memory
                if "/" in self._key:
                    stack.table.advance(self._key.split("/")[1])
                return changed
        with _held(self._file):
            new = change(_read(self._file))
            body = serialized(new)
            parse_memory(body)
            with NamedTemporaryFile(dir=self._file.absolute().parent, prefix=".memory-", delete=False) as target:
                target.write(body)
            Path(target.name).chmod(0o644)
            Path(target.name).replace(self._file)
        return new


def add_arguments(parser: argparse.ArgumentParser, *, workflow: bool) -> None:
    parser.add_argument("--memory", metavar="FILE", type=Path, help="a memory in a file instead of the bucket")
    parser.add_argument("--tenant", metavar="T", help="the tenant whose memory in the bucket is meant")
    parser.add_argument("--key", metavar="KEY", help="another memory of the bucket: configs/_shared/NAME.memory.json")
    if workflow:
        parser.add_argument("--workflow", metavar="W", help="the workflow, with --tenant")


def place_of(args: argparse.Namespace, workflow: str | None) -> MemoryPlace:
    """The memory that the arguments name."""
    named = [name for name in ("memory", "tenant", "key") if getattr(args, name) is not None]
    if len(named) != 1:
        raise UsageError("which memory? give one of --memory FILE, --tenant T (with its workflow) or --key KEY")
    if args.memory is not None:
        return MemoryPlace(file=args.memory)
    if args.key is not None:
        if not is_memory(args.key):
            raise UsageError(f"--key {args.key}: a memory's key is configs/…/NAME.memory.json")
        return MemoryPlace(key=check_key(args.key))
    if not workflow:
        raise UsageError("which workflow? add --workflow W")
    return MemoryPlace(key=own_key(args.tenant, workflow))


def _read(path: Path) -> Memory:
    try:
        with path.open("rb") as source:
            return parse_memory(source.read(MAX_MEMORY_BYTES + 1))
    except FileNotFoundError:
        return Memory()
    except OSError as error:
        raise UsageError(f"memory {path}: {error.strerror}") from None
    except MemoryInvalid as error:
        raise UsageError(f"memory {path} was refused: {error}") from None


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """One writer at a time; the folder is locked, so that no file is left over."""
    try:
        folder = os.open(path.absolute().parent, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"memory {path}: {error.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
