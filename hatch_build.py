"""Writes the commit into what is built, for `ade --version`: from ADE_COMMIT, git, or the sdist that is built from."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "COMMIT"  # as infra/own_code.py reads it


class CommitHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # asks git whenever somebody wants to know
            return
        if commit := commit_of(Path(self.root)):
            self._folder = tempfile.TemporaryDirectory(prefix="ade-commit-")
            file = Path(self._folder.name) / NAME
            file.write_text(f"{commit}\n", encoding="ascii")
            target = f"ade_drop/{NAME}" if self.target_name == "wheel" else NAME
            build_data["force_include"][str(file)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def commit_of(root: Path) -> str:
    """Empty where nothing says it."""
    if named := os.environ.get("ADE_COMMIT", "").strip()[:12]:
        return named
    if (root / ".git").exists():
        asked = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
        try:
            return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""
    return (root / NAME).read_text(encoding="ascii").strip() if (root / NAME).exists() else ""
