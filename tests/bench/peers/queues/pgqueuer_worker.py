"""pgqueuer over asyncpg. `init`, `send FIRST LAST`, or `work`.

Tuned: batches of ten, ten at a time, a look every second besides its notifications; jobs of workers that were silent for
5 s are taken over.
"""

import asyncio
import logging
import sys
from datetime import timedelta

import asyncpg
from done import note
from pgqueuer import AsyncpgDriver, PgQueuer, Queries

logging.disable(logging.CRITICAL)
command, url, *rest = sys.argv[1:]


async def main():
    connection = await asyncpg.connect(url)
    driver = AsyncpgDriver(connection)
    if command == "init":
        await Queries(driver).install()
    elif command == "send":
        numbers = range(*map(int, rest))
        for at in range(0, len(numbers), 1000):
            some = numbers[at : at + 1000]
            await Queries(driver).enqueue(["job"] * len(some), [b"%d" % n for n in some], [0] * len(some))
    else:
        queue = PgQueuer(driver)

        @queue.entrypoint("job")
        async def job(given):
            note(given.payload)

        await queue.run(
            dequeue_timeout=timedelta(seconds=1),
            batch_size=10,
            max_concurrent_tasks=20,
            shutdown_on_listener_failure=True,
            heartbeat_timeout=timedelta(seconds=5),
        )


asyncio.run(main())
