"""A killed runner is replaced at once, so what its start loads is what a kill costs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

UNNEEDED = ("apscheduler", "asyncio", "packaging", "smtplib", "http.client", "urllib.request", "runner.engine.pages")


def test_a_runner_starts_without_what_few_jobs_need():
    words = f"import sys, runner.assembly, infra.wiring; print([m for m in {UNNEEDED!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
