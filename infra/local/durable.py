"""Folders that are still there after a power loss: a name is on the disk once the folder it stands in was synced."""

import contextlib
import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; when this returns, the disk has them. There already: nothing is done."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring what a folder lists to the disk; one that is gone needs nothing."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
