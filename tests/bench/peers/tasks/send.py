"""Sends a task for each line of its input: SOURCE TARGET. `python send.py huey_tasks` or `celery_tasks`."""

import importlib
import sys

task = importlib.import_module(sys.argv[1]).convert_file
send = getattr(task, "delay", task)  # huey's tasks are called
for line in sys.stdin:
    send(*line.split())
