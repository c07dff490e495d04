"""`ade init DIR`: create a commented config package that works."""

import argparse
from pathlib import Path
from shlex import quote

from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.scaffold import FILES
from core.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", type=Path, help="a new or empty folder")


def run(args: argparse.Namespace, out: Printer) -> int:
    folder: Path = args.dir
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; choose a new folder")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sample, manifest, result = (quote(str(folder / name)) for name in ("sample.csv", "manifest.json", "result"))
    command = f"ade try {sample} --manifest {manifest} --out {result}"
    if out.as_json:
        out.emit({"dir": str(folder), "files": list(FILES), "try": command})
    else:
        for name in FILES:
            out.line(str(folder / name))
        out.note(f"\nnow run: {command}")
    return Exit.OK
