"""`ade`, which is also `python -m ade_drop`."""

import sys

from ade_drop import put_own_packages_first


def start() -> int:
    put_own_packages_first()
    from console.cli import start as start_command  # noqa: PLC0415 - ours only from here on

    return start_command()


if __name__ == "__main__":
    sys.exit(start())
