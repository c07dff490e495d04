"""Small made-up wheels, and environments to install wheels into."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

from infra import own_code


def make_wheel(folder: Path, name: str, version: str = "1.0", *, files: Mapping[str, str] | None = None) -> Path:
    """A wheel of these files, or of one module that knows its own name and version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    contents = {
        **(files or {f"{name}.py": f"NAME, VERSION = {name!r}, {version!r}\n"}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*contents, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            archive.writestr(file, content)
    return path


def build_own_wheel(folder: Path, source: Path = own_code.ROOT, **env: str) -> Path:
    """The product's wheel, built by the backend that is installed here."""
    folder.mkdir(parents=True, exist_ok=True)
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    command = [sys.executable, "-P", "-c", code, str(folder)]
    subprocess.run(command, cwd=source, env={**os.environ, **env}, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Environment:
    """A virtual environment that also sees the libraries that are installed here, but nothing of this checkout."""

    def __init__(self, home: Path) -> None:
        self.bin = home / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
        self.packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
        self._libraries = self.packages / "zz_libraries.pth"  # read after the packages of the environment itself

    def pip(self, command: str, *words: object) -> None:
        self._libraries.unlink(missing_ok=True)  # pip is to see what is installed here and nothing else
        options = ["--quiet", "--disable-pip-version-check"]
        options += ["--no-deps", "--no-index", "--no-compile"] if command == "install" else ["--yes"]
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), command, *options]
        subprocess.run([*pip, *map(str, words)], check=True, capture_output=True, text=True)
        self._libraries.write_text(sysconfig.get_path("purelib") + "\n")

    @property
    def names(self) -> set[str]:
        """What was installed, as an import sees it."""
        found = {path.name.partition(".")[0] for path in self.packages.iterdir() if path.suffix != ".dist-info"}
        return found - {self._libraries.stem, "__pycache__"}

    def run(self, *words: object, cwd: Path, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.bin / str(words[0])), *map(str, words[1:])],
            cwd=cwd, env={"PATH": "/usr/bin:/bin", **env}, check=False, capture_output=True, text=True,
        )  # fmt: skip
