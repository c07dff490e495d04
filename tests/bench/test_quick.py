"""The benchmarks run, every way does the same work, and no ratio is worse than half of what docs/bench/ says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import FULL

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["engine", pytest.param("drops", marks=pytest.mark.skipif(not FULL, reason="long"))])
def test_a_quick_run_finds_the_ratios_that_are_documented(name):
    command = [sys.executable, "-m", "tests.bench", name, "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
