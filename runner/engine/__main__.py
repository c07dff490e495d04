"""`python -I -B -m runner.engine ORDER [--channel FD]`: carry out an order (docs/reference/engine-order.md)."""

import json
import os
import sys
from pathlib import Path

from runner.engine import job

USAGE = "usage: python -m runner.engine ORDER [--channel FD]"


def main(words: list[str]) -> int:
    """Carry out the order that a file holds; the exit code says whether its final event was written."""
    if len(words) not in (1, 3) or (len(words) == 3 and (words[1] != "--channel" or not words[2].isdecimal())):
        print(USAGE, file=sys.stderr)  # noqa: T201  # there is no channel yet
        return job.UNREPORTED
    path = Path(words[0])
    try:
        order = json.loads(path.read_bytes())
        channel = os.fdopen(int(words[2]) if len(words) == 3 else 3, "w", encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"{USAGE}\n{type(error).__name__}: cannot open the order or the channel", file=sys.stderr)  # noqa: T201
        return job.UNREPORTED
    with channel:
        return job.run(order, channel, folder=path.parent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
