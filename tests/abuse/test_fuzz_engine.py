"""A few seconds of fuzzing in every run; minutes of it: see fuzz_engine.py."""

import os
import signal

from tests.abuse.fuzz_engine import fuzz


def test_mutated_workbooks_and_random_manifests_end_in_the_engines_own_words():
    before = signal.getsignal(signal.SIGALRM)
    try:
        ends, broken = fuzz(float(os.environ.get("FUZZ_SECONDS", "6")), 1, [], None)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert broken == []
    assert ends["ok"] > 0
