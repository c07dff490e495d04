"""awa, whose queue is in Rust. `init`, `send FIRST LAST`, or `work`.

Tuned: ten workers, a poll every 50 ms; heartbeats every second, jobs of workers that were silent for 5 s are rescued once a
second.
"""

import asyncio
import sys
from dataclasses import dataclass

from awa import AsyncClient, Client
from done import note

command, url, *rest = sys.argv[1:]


@dataclass
class Number:
    number: int


def send(first, last):
    client = Client(url)
    for at in range(first, last, 1000):
        client.insert_many_copy([Number(n) for n in range(at, min(last, at + 1000))], queue="bench")


async def work():
    client = AsyncClient(url)

    @client.task(Number, queue="bench")
    async def job(given):
        note(given.args.number)

    await client.start(
        [("bench", 10)],
        poll_interval_ms=50,
        heartbeat_interval_ms=1000,
        heartbeat_staleness_ms=5000,
        heartbeat_rescue_interval_ms=1000,
        leader_election_interval_ms=1000,
    )
    await asyncio.Event().wait()


if command == "init":
    Client(url).migrate()
elif command == "send":
    send(*map(int, rest))
else:
    asyncio.run(work())
