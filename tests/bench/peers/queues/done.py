"""Notes that a job is done: one line in the file that BENCH_DONE names, in one write, so that workers can share it."""

import os

_file = (
    os.open(os.environ["BENCH_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    if "BENCH_DONE" in os.environ
    else 1
)


def note(number):
    os.write(_file, b"%d\n" % int(number))
