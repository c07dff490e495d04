"""One big workbook, the same work, by `ade try` and by what people use today.

    python -m tests.bench engine [--rows 1000000] [--repeat 3] [--only WAY ...] [--one-core]

Every way reads the workbook of tests/bench/peers/frames/make_workbook.py, finds its header below the title rows, renames
ten columns, trims and converts every cell, counts those that break a rule, and writes a formatted workbook. Each one's
output is compared with ours, cell by cell, before it is timed.
"""

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.harness import process_trees
from tests.bench.harness.cells import assert_equal
from tests.bench.harness.environments import CACHE, PEERS, ROOT, own_environment, own_versions, python_of, versions_of
from tests.bench.harness.figures import Figure, Report, Section
from tests.bench.harness.process_trees import Usage

NAME = "engine"
TITLE = "One big workbook"
OURS = "ade try"
FIELDS = [
    {"name": "member_id", "required": True, "unique": True, "pattern": "M[0-9]{7}", "clean": ["strip", "upper"]},
    {"name": "first_name"},
    {"name": "last_name", "required": True},
    {"name": "email", "type": "email"},
    {"name": "start_date", "type": "date", "required": True},
    {"name": "birth_date", "type": "date"},
    {"name": "gross_pay", "type": "money"},
    {"name": "hours", "type": "decimal"},
    {"name": "plan", "type": "enum", "allowed": ["Gold", "Silver", "Bronze"]},
    {"name": "active", "type": "boolean"},
]
MANIFEST = {"manifest": 1, "name": "bench", "fields": FIELDS}
# A way: its environment, its script and what the script is asked for besides source and target.
WAYS = {
    "openpyxl": ("frames", "openpyxl_plain.py", ()),
    "pandas, openpyxl": ("frames", "pandas_openpyxl.py", ()),
    "pandas, calamine, xlsxwriter": ("frames", "pandas_calamine_xlsxwriter.py", ()),
    "polars, fastexcel, xlsxwriter": ("vectors", "polars_columns.py", ("xlsxwriter",)),
    "polars, fastexcel, xlsxturbo": ("vectors", "polars_columns.py", ()),
}
FASTEST = "polars, fastexcel, xlsxturbo"
QUICK_ROWS = 500
QUICK_TITLE = f"{QUICK_ROWS:,} rows, as CI checks them"


def workbook(rows: int, python: Path) -> Path:
    path = CACHE / f"members-{rows}.xlsx"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        half = path.with_suffix(".half")
        subprocess.run([python, PEERS / "frames" / "make_workbook.py", half, str(rows)], check=True)
        half.rename(path)
    return path


def our_command(source: Path, folder: Path) -> list[str | Path]:
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    ade = Path(sys.executable).with_name("ade")
    return [ade, "try", source, "--manifest", folder / "manifest.json", "--out", folder / "out"]


def peer_command(way: str, source: Path, folder: Path, python: Path | None = None) -> list[str | Path]:
    environment, script, more = WAYS[way]
    return [python or python_of(environment), PEERS / environment / script, source, target_of(way, folder), *more]


def target_of(way: str, folder: Path) -> Path:
    return folder / "out" / "normalized.xlsx" if way == OURS else folder / f"{way.replace(', ', '-')}.xlsx"


def measure(
    commands: dict[str, list[str | Path]], folder: Path, repeat: int, cores: int | None = None
) -> tuple[dict[str, dict[str, Figure]], str]:
    """Figures of each command, and what was compared before."""
    compileall.compile_dir(ROOT / "runner", quiet=1)  # as an installed package is, the peers' included
    env = own_environment(PYTHONPATH=str(ROOT))
    cells = 0
    for way, command in commands.items():
        process_trees.run(command, folder=folder, env=env)
        if way != OURS:
            cells += assert_equal(target_of(OURS, folder), target_of(way, folder), way)
    runs: dict[str, list[Usage]] = {}
    for _ in range(repeat):
        for way, command in commands.items():  # in turn, so that a busy moment hits all alike
            runs.setdefault(way, []).append(process_trees.run(command, folder=folder, env=env, cores=cores))
    names = ("CPU s", "wall s", "peak MB")
    found = {
        way: {name: Figure.of(values) for name, values in zip(names, zip(*used, strict=True), strict=True)}
        for way, used in runs.items()
    }
    return found, f"Compared before timing: {cells:,} cells, none different." if cells else ""


def big(rows: int, ways: list[str], repeat: int, *, one_core: bool = False) -> Section:
    source = workbook(rows, python_of("frames"))
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as name:
        folder = Path(name)
        commands = {OURS: our_command(source, folder)} | {way: peer_command(way, source, folder) for way in ways}
        found, compared = measure(commands, folder, repeat, cores=1 if one_core else None)
    where = ", on one core" if one_core else ""
    chosen = " ".join(f'"{way}"' for way in ways) or "none"
    options = ("" if ways == list(WAYS) else f" --only {chosen}") + (" --one-core" if one_core else "")
    asked = f"make bench ARGS='engine --rows {rows} --repeat {repeat}{options}'"
    return Section(
        title=f"{rows:,} rows of 10 columns{where}",
        command=asked,
        ways=found,
        repeats=repeat,
        ours=OURS,
        ratio_of="CPU s",
        compared=compared,
    )


def quick() -> list[Section]:
    """What CI runs: the openpyxl script, in our own environment."""
    source = workbook(QUICK_ROWS, Path(sys.executable))
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as name:
        folder = Path(name)
        commands = {
            OURS: our_command(source, folder),
            "openpyxl": peer_command("openpyxl", source, folder, Path(sys.executable)),
        }
        found, compared = measure(commands, folder, repeat=1)
    command = "make bench ARGS='engine --quick'"
    return [
        Section(
            title=QUICK_TITLE, command=command, ways=found, repeats=1, ours=OURS, ratio_of="CPU s", compared=compared
        )
    ]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rows", type=int, nargs="+", help="as the page has them unless said: see main")
    made.add_argument("--repeat", type=int, default=3)
    made.add_argument("--only", nargs="*", choices=[*WAYS, "none"], help="these peers")
    made.add_argument("--one-core", action="store_true", help="on one core only")
    return made


def main(words: list[str]) -> Report:
    asked = parser().parse_args(words)
    everyone = [way for way in asked.only if way in WAYS] if asked.only is not None else list(WAYS)
    if asked.rows:
        sections = [big(rows, everyone, asked.repeat, one_core=asked.one_core) for rows in asked.rows]
    else:
        fastest = [way for way in everyone if way == FASTEST]
        sections = [
            big(100_000, fastest, asked.repeat),
            big(100_000, [], asked.repeat, one_core=True),
            big(10_000, everyone, asked.repeat),
            big(1_000_000, [], 1),
            *quick(),
        ]
    versions = own_versions() | versions_of("frames") | versions_of("vectors")
    whole = not asked.rows and asked.only is None
    return Report(name=NAME, title=TITLE, sections=sections, versions=versions, whole=whole)
