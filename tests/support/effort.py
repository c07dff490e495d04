"""How much a run tries: `make quick` draws fewer random examples, CI the usual number, ADE_TEST_FULL=1 runs everything."""

import os

QUICK = os.environ.get("ADE_TEST_QUICK") == "1"
FULL = os.environ.get("ADE_TEST_FULL") == "1"
_QUICK_SHARE = 5


def examples(usual: int) -> int:
    """How many random examples to draw where CI draws `usual`."""
    return max(usual // _QUICK_SHARE, min(usual, 3)) if QUICK else usual
