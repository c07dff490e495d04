"""A process that was asked to stop ends in time, even while a call in one of its threads never returns."""

import signal
import subprocess
import sys

import pytest

from console.cli.guard import Exit

HANGS = """
import sys, threading, time
from console.cli.signals import Signals
with Signals() as signals:
    print("up", flush=True)
    signals.wait()
    signals.end_within(0.1)
threading.Thread(target=time.sleep, args=(600,)).start()  # the interpreter's exit waits for it
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_what_hangs(number: int):
    with subprocess.Popen([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        try:
            assert process.wait(60) == Exit.UNAVAILABLE
        finally:
            process.kill()
