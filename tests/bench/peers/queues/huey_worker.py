"""huey on SQLite. `init`, `send FIRST LAST`, or `work`; the URL is the path of its file.

Tuned: one worker thread in each process, 5 ms between looks, no results. It has no way to notice a worker that is gone: a
task that was taken is lost with it.
"""

import logging
import sys

from done import note
from huey import SqliteHuey
from huey.consumer import Consumer

logging.disable(logging.CRITICAL)
command, url, *rest = sys.argv[1:]
huey = SqliteHuey("bench", filename=url, results=False)


@huey.task(name="job")
def job(number):
    note(number)


if command == "send":
    for n in range(*map(int, rest)):
        job(n)
elif command == "work":
    Consumer(huey, workers=1, initial_delay=0.005, max_delay=0.005, periodic=False).run()
