"""Folders that survive a power loss: a name is on disk once its parent folder is synced."""

import contextlib
import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; when this returns, they are on disk. Does nothing if it exists."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder's listing to disk; does nothing if the folder is gone."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
