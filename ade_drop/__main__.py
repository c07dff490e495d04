"""`ade`, which is also `python -m ade_drop`."""

import gc
import sys

from ade_drop import put_own_packages_first

_OBJECTS = 20_000  # new ones between two collections of cycles; with the default, 700, they take a tenth of a start


def start() -> int:
    gc.set_threshold(_OBJECTS)
    put_own_packages_first()
    from console.cli import start as start_command  # noqa: PLC0415 - ours only from here on

    return start_command()


if __name__ == "__main__":
    sys.exit(start())
