"""How much a run tries: `make quick` draws few random examples, CI half of the usual number, ADE_TEST_FULL=1 runs everything."""

import os

QUICK = os.environ.get("ADE_TEST_QUICK") == "1"
FULL = os.environ.get("ADE_TEST_FULL") == "1"
_QUICK_SHARE, _CI_SHARE = 5, 2


def examples(usual: int) -> int:
    """How many random examples to draw where ADE_TEST_FULL=1 draws `usual`."""
    share = 1 if FULL else _QUICK_SHARE if QUICK else _CI_SHARE
    return max(usual // share, min(usual, 3))
