"""Celery with a broker in SQLite, no results kept.

Tuned: looks for messages every 5 ms instead of every second, takes one at a time, no gossip, no events. Its broker in the
filesystem lost messages at that pace: it reads files that are not written yet.
"""

import os
from pathlib import Path

from celery import Celery
from kombu.transport.sqlalchemy import Transport
from one_file import convert

Transport.polling_interval = 0.005  # its options go to SQLAlchemy, which knows no such thing

app = Celery("celery_tasks", broker=f"sqla+sqlite:///{Path(os.environ['BENCH_FOLDER']) / 'celery.sqlite'}")
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task(name="convert")
def convert_file(source, target):
    convert(source, target)
