"""procrastinate. `init`, `send FIRST LAST`, or `work`: what each is asked for by tests/bench/bench_queue.py.

Tuned: ten jobs at a time in one event loop, a poll every second besides its notifications. A worker that is gone is noticed
by its heartbeats: jobs of workers that were silent for 5 s are retried once a second, as its documentation shows.
"""

import asyncio
import logging
import sys

from done import note
from procrastinate import App, PsycopgConnector

SILENT_SECONDS = 5
logging.disable(logging.CRITICAL)
command, url, *rest = sys.argv[1:]
app = App(connector=PsycopgConnector(conninfo=url))


@app.task(name="job", retry=100)
async def job(number):
    note(number)


async def retry_stalled():
    while True:
        await asyncio.sleep(1)
        stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=SILENT_SECONDS)
        for one in stalled:
            await app.job_manager.retry_job(one)


async def main():
    async with app.open_async():
        if command == "init":
            await app.schema_manager.apply_schema_async()
        elif command == "send":
            first, last = map(int, rest)
            await job.batch_defer_async(*({"number": n} for n in range(first, last)))
        else:
            chores = asyncio.create_task(retry_stalled())
            await app.run_worker_async(
                concurrency=10,
                fetch_job_polling_interval=1,
                install_signal_handlers=False,
                update_heartbeat_interval=1,
                stalled_worker_timeout=SILENT_SECONDS,
            )
            chores.cancel()


asyncio.run(main())
