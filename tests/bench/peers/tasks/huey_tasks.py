"""huey with its queue in SQLite, no results kept.

Tuned: workers are processes and look for tasks every 5 ms.
"""

import os
from pathlib import Path

from huey import SqliteHuey
from one_file import convert

huey = SqliteHuey("bench", filename=str(Path(os.environ["BENCH_FOLDER"]) / "huey.sqlite"), results=False)


@huey.task()
def convert_file(source, target):
    convert(source, target)
