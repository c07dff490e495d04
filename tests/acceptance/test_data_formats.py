"""Other people's readers find the same cells in the workbook, the CSV, the JSON lines and the Parquet file."""

import itertools
import json
import random
import subprocess
from pathlib import Path

import pytest

from core.manifests import parse_manifest
from tests.support.clients import READERS, installed
from tests.support.effort import FULL
from tests.truth import families
from tests.truth.cases import FAMILIES
from tests.truth.running import manifest_of, run_case

assert families

DATA_FILES = ("normalized.xlsx", "normalized.csv", "normalized.jsonl", "normalized.parquet", "schema.json")
FILES = 500 if FULL else 40


def with_formats(case):
    """The case with all formats asked for."""
    output = {**case.manifest.get("output", {}), "formats": ["xlsx", "csv", "jsonl", "parquet"]}
    case.manifest = {**case.manifest, "output": output}
    parse_manifest(json.dumps(manifest_of(case)).encode())
    return case


@pytest.mark.slow
def test_every_reader_finds_the_cells_of_the_workbook(tmp_path):
    names = [name for name, family in FAMILIES.items() if not (family.stranger or family.by_hand)]
    random.Random(0).shuffle(names)
    folders: list[str] = []
    for seed, name in itertools.product(range(3), names):
        case = with_formats(FAMILIES[name].case(seed))
        folder = tmp_path / name / str(seed)
        outcome = run_case(case, folder, outputs=DATA_FILES)
        if outcome.error is None and len(outcome.artifact["output"]["sheets"]) == 1:
            folders.append(str(folder))
        if len(folders) == FILES:
            break
    assert len(folders) == FILES
    python = installed("readers", READERS) / "python"
    script = Path(__file__).parents[1] / "support" / "readers.py"
    done = subprocess.run([python, script, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
