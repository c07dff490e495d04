"""The command line: `ade`."""

import signal


def start() -> int:
    """The program. While it loads, Ctrl-C ends it at once, by the signal and without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from console.cli.main import main  # noqa: PLC0415  # takes most of the time until a command runs

    return main()
